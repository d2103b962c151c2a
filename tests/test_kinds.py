"""The kinds of graphs of `benchmarks/kinds.py`: every verb is right on each."""

import numpy as np
import pytest
from test_cpu import by_scipy

import tcgpu
from tcgpu import Graph, cpu
from tcgpu.engines.native import set_threads


@pytest.fixture(scope="module")
def kinds(load_benchmark):
    return load_benchmark("kinds").KINDS


def pytest_generate_tests(metafunc):
    """A test for each kind, by name."""
    if "kind" in metafunc.fixturenames:
        names = (metafunc.config.rootpath / "benchmarks" / "kinds.py").read_text().split('@kind("')[1:]
        metafunc.parametrize("kind", [name.split('"')[0] for name in names])


@pytest.mark.parametrize("edges", [300, 4000])
def test_every_verb_is_right_on_every_kind(kinds, kind, edges, monkeypatch):
    """In every order, by one thread and by two; against the matrix A: the supports are (A A) * A."""
    u, v, n = kinds[kind](edges, seed=edges)
    graph = Graph.from_edges(u, v, n)
    assert graph.m > edges / 20 and n == graph.n
    support = by_scipy(graph)
    vertices = np.bincount(graph.row_idx, support, n) + np.bincount(graph.col_of, support, n)
    monkeypatch.setattr(cpu.edges, "MANY", 100)
    for threads in (1, 2):
        set_threads(threads)
        for order in ("natural", "degree", "auto"):
            fresh = Graph(graph.col_ptr, graph.row_idx)
            assert 3 * tcgpu.count(fresh, "cpu", order=order) == support.sum()
            assert np.array_equal(tcgpu.triangles(fresh, method="cpu", order=order), vertices // 2)
            assert np.array_equal(tcgpu.support(fresh, method="cpu", order=order), support)
    set_threads(None)
    numbers = tcgpu.truss_numbers(graph, engine="cpu")
    assert (numbers <= support + 2).all()
    for k in (3, 4, 6):
        assert tcgpu.k_truss(graph, k, engine="cpu").m == (numbers >= k).sum()
