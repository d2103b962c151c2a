"""The benchmark of combinations: what it measures and checks, in the simulator."""

import subprocess
import sys

import pytest

import tcgpu
from tcgpu.subgraphs.of_k_vertices import KINDS

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("combinations")


@pytest.fixture(scope="module")
def graph():
    graph = tcgpu.generate.watts_strogatz(14, 4, 0.1)
    graph.name = "small"
    return graph


@pytest.mark.sim
@pytest.mark.parametrize("kind", KINDS)
def test_each_way_has_a_row(benchmark, graph, kind):
    rows = list(benchmark.measured(graph, kind, 4, engine="sim", repeats=2))
    assert [row["way"] for row in rows] == ["levels", *["rows of bits"] * (kind == "clique"), "cpu"]
    for row in rows:
        assert row["subgraphs"] == tcgpu.count_subgraphs(graph, 4, kind) <= row["tests"] and row["process_ms"] > 0
    assert rows[0]["kernel_ms"] > 0 and {row["kernel_ms"] for row in rows[1:]} == {""}


@pytest.mark.parametrize("options", [{"engine": None}, {"engine": "sim", "most": 10}])
def test_without_a_gpu_and_beyond_the_limit_levels_is_not_timed(benchmark, graph, options):
    levels, rows_of_bits, cpu = benchmark.measured(graph, "clique", 3, repeats=1, **options)
    assert (rows_of_bits["process_ms"] == "") == (options["engine"] is None)
    assert levels["process_ms"] == levels["subgraphs"] == "" and levels["tests"] == cpu["tests"] > cpu["subgraphs"] > 0


@pytest.mark.sim
def test_different_results_end_the_benchmark(benchmark, graph, monkeypatch):
    monkeypatch.setattr(benchmark.tcgpu, "count_subgraphs", lambda graph, k, kind, **options: len(options))
    with pytest.raises(SystemExit, match="on small, clique of 3"):
        list(benchmark.measured(graph, "clique", 3, engine="sim", repeats=1))


def test_it_prints_a_line_for_each_way(root):
    command = [sys.executable, root / "benchmarks" / "combinations.py", "--vertices", "20", "--kind", "clique"]
    printed = subprocess.check_output(command, text=True, cwd=root)
    assert printed.count("small world 20 ") == 9
