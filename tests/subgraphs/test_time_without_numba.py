"""Without Numba, motifs and cliques that take long are announced, or refused; forecasts are near the times."""

import re
import subprocess
import sys

import pytest
from sampling import default_and_share

COMMON = """
import logging, os, time
os.environ["TCGPU_NUMPY"] = "1"
import numpy as np, tcgpu
from tcgpu.kernels import simulated
make, clock = tcgpu.generate, time.process_time
wheel = tcgpu.Graph.from_edges(np.r_[np.zeros(9000, int), 1:9000], np.r_[1:9001, 2:9001])
"""
REFUSED = """
large = make.rmat(14)
for verb in tcgpu.motifs, lambda graph: tcgpu.motifs(graph, "edge"), lambda graph: tcgpu.cliques(graph, 6):
    start = clock()
    try:
        verb(large)
    except tcgpu.GraphError as error:
        print(str(error)[:9], "without Numba: take a smaller graph" in str(error), "max_seconds=" in str(error))
    assert clock() - start < 10
simulated.NOTICE = 0.1
logging.basicConfig(format="%(message)s")
assert tcgpu.motifs(wheel)["clique"] == 0 and tcgpu.cliques(make.clique(9), 4, max_seconds=5) == 126
"""
FORECAST = """
def noted(what, seconds, *_):
    forecasts.append(seconds)
simulated.check = noted
for graph in {graphs}:
    for verb, *more in (tcgpu.motifs,), (tcgpu.motifs, "edge"), (tcgpu.cliques, 5):
        forecasts, start = [], clock()
        verb(graph, *more)
        took = clock() - start
        if not took / 3 - 0.1 < forecasts[0] < 3 * took + 0.1:
            print(graph.name, more, took, forecasts[0])
"""
GRAPHS = ("wheel", "make.rmat(8)", "make.mesh(40, 40)", "make.barabasi_albert(900, 6)", "make.copapers(200, 30)",
          "make.road(60, 60)", "make.clique(50)")  # fmt: skip


def ran(code):
    return subprocess.run([sys.executable, "-c", COMMON + code], capture_output=True, text=True, check=True)


def test_long_work_is_refused_or_announced():
    run = ran(REFUSED)
    assert run.stdout.splitlines() == ["counting  True True"] * 3
    said = r"counting subgraphs of 4 vertices takes about [01] seconds without Numba; if that is too long, "
    assert re.match(said, run.stderr)
    assert run.stderr.count("\n") == 1


@pytest.mark.sim
def test_forecasts_are_within_a_factor_of_three():
    graphs = ", ".join(default_and_share(GRAPHS, "forecasts", of=2))
    assert ran(FORECAST.replace("{graphs}", f"({graphs})")).stdout == ""
