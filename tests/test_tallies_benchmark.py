"""The benchmark of edges and vertices: what it measures and checks, in the simulator."""

import subprocess
import sys

import pytest

import tcgpu
from tcgpu import DeviceGraph
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("tallies")


@pytest.mark.sim
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_each_answer_and_each_kernel_has_a_row(benchmark, order):
    with runtime.using("sim"):
        graph = DeviceGraph.from_edges(*tcgpu.generate.edges("rmat", 4, 8)[:2], order=order)
        rows = list(benchmark.measured("small", graph, 1))
        steps = [step.kernel.__name__ for step in benchmark.plans(graph)["vertices"].steps]
    assert [row["kernel"] for row in rows] == ["all"] * 4 + steps
    assert [row["what"] for row in rows[:4]] == list(benchmark.plans(graph))
    assert rows[0]["triangles"] == tcgpu.count(graph.to_graph()) and rows[0]["to_count"] == 1
    for row in rows:
        share = row["kernel_ms"] / rows[0]["kernel_ms"]  # both rounded, and of a short kernel nothing may be left
        assert row["kernel_ms"] > 0 and row["to_count"] == pytest.approx(share, abs=0.002, rel=0.002)


@pytest.mark.sim
def test_different_results_end_the_benchmark(benchmark):
    with runtime.using("sim"):
        graph = DeviceGraph.from_edges(*tcgpu.generate.edges("rmat", 4, 8)[:2], order="natural")
        found = {what: plan.count() for what, plan in benchmark.plans(graph).items()}
        benchmark.check("small", graph, found)
        for what in ("edges", "vertices", "edges by a bitmap"):
            with pytest.raises(SystemExit, match="on small some edges or vertices"):
                benchmark.check("small", graph, found | {what: found[what] + 1})
        with pytest.raises(SystemExit, match="on small edges and vertices sum up to"):
            benchmark.check("small", graph, found | {"count": 1})


def test_its_help_lists_its_options(root):
    command = [sys.executable, root / "benchmarks" / "tallies.py", "--help"]
    assert "--graph" in subprocess.check_output(command, text=True, cwd=root)
