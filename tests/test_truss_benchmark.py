"""The benchmark of trusses: what it compares, on a small graph."""

import numpy as np
import pytest

import tcgpu

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("truss")


@pytest.fixture(scope="module")
def graph():
    return tcgpu.generate.rmat(9, seed=2)


def test_every_installed_library_finds_the_same(benchmark, graph, tmp_path):
    try:
        program = benchmark.compiled(tmp_path)
    except RuntimeError:
        program = None
    rows = list(benchmark.compare("small", graph, program, tmp_path, repeats=2))
    libraries = ["tcgpu", "NetworkX", "tcgpu"] + ["igraph"] * (program is not None)
    assert [row["library"] for row in rows] == libraries
    for row in rows:
        assert row["task"] in ("3-truss of small", "truss numbers of small") and row["edges"] == graph.m
        assert 0 < row["fastest"] <= row["seconds"] <= row["slowest"] and row["repeats"] == 2 and row["version"]
    assert [row["ratio"] for row in rows if row["library"] == "tcgpu"] == [1, 1]


def test_peers_can_be_left_out(benchmark, graph, tmp_path):
    rows = benchmark.compare("small", graph, None, tmp_path, repeats=1, peers=["none"])
    assert [row["library"] for row in rows] == ["tcgpu", "tcgpu"]


def test_the_program_that_calls_igraph_finds_our_numbers(benchmark, graph, tmp_path):
    try:
        program = benchmark.compiled(tmp_path)
    except RuntimeError as reason:
        pytest.skip(str(reason))
    seconds, found = benchmark.igraph_numbers(program, benchmark.write_edges(graph, tmp_path / "edges"))
    assert seconds > 0 and np.array_equal(found, tcgpu.truss_numbers(graph))


def test_without_a_compiler_igraph_is_left_out(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="there is no C compiler"):
        benchmark.compiled(tmp_path)


def test_different_results_end_the_benchmark(benchmark, graph):
    with pytest.raises(SystemExit, match="liar does not find what tcgpu does"):
        runs = {"tcgpu": lambda: benchmark.our_numbers(graph), "liar": lambda: (1.0, np.full(graph.m, 2))}
        benchmark.in_turns(runs, repeats=1)


@pytest.mark.parametrize("name, more, runs", [("peer", 1, 1), ("peer", -1, 4), ("tcgpu", 1, 4)])
def test_a_slow_peer_runs_once(benchmark, name, more, runs):
    """Others run once more than requested, to warm up; that run is not counted."""
    began = []
    taken = benchmark.in_turns({name: lambda: (began.append(1) or benchmark.SLOW + more, 0)}, repeats=3)
    assert len(began) == runs and len(taken[name]) == min(runs, 3)
