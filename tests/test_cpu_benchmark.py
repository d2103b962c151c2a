"""The benchmark of the native engine: it compares the libraries on a small graph with loops and duplicates."""

import importlib.util

import pytest

import tcgpu

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    module = load_benchmark("cpu")
    module.REST = 0
    return module


@pytest.fixture(scope="module")
def edges():
    return tcgpu.generate.edges("rmat", scale=11, seed=2)


def installed(benchmark):
    return [peer for peer in benchmark.PEERS if importlib.util.find_spec(peer.package)]


def test_every_library_that_is_here_gives_our_count(benchmark, edges, monkeypatch):
    monkeypatch.setattr(benchmark, "SLOW", float("inf"))  # on a busy machine, too, each runs twice
    rows = list(benchmark.compare("small", *edges, installed(benchmark), repeats=2))
    names = [row["library"] for row in rows]
    assert names[0] == "tcgpu" and {"SciPy", "NetworkX"} <= set(names)
    graph = tcgpu.Graph.from_edges(*edges)
    for row in rows:
        assert (row["edges"], row["triangles"]) == (graph.m, tcgpu.count(graph))
        assert row["count_s"] > 0 and row["raw_s"] > 0 and row["repeats"] == 2 and row["version"]
    assert (rows[0]["count_ratio"], rows[0]["raw_ratio"]) == (1, 1)


def test_different_counts_end_the_benchmark(benchmark, edges):
    liar = benchmark.Peer("liar", "numpy", lambda u, v, n: None, lambda built: 7)
    with pytest.raises(SystemExit, match="the counts differ on small"):
        list(benchmark.compare("small", *edges, [liar], repeats=1))


def test_a_slow_peer_runs_once_and_tcgpu_may_compile_first(benchmark, edges, monkeypatch):
    monkeypatch.setattr(benchmark, "SLOW", 0)
    rows = list(benchmark.compare("small", *edges, installed(benchmark)[:1], repeats=3))
    assert [row["repeats"] for row in rows] == [3, 1]


def test_a_peer_is_left_out_with_the_reason(benchmark, edges):
    absent = benchmark.Peer("absent", "no_such_package", None, None)
    assert benchmark.why_not(absent, *edges, patience=60) == "not installed"
    (scipy,) = (peer for peer in benchmark.PEERS if peer.name == "SciPy")
    assert benchmark.why_not(scipy, *edges, patience=0.01) == "not done within 0.01 s"
    assert benchmark.why_not(scipy, *edges, patience=120) is None
