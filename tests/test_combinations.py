"""Subgraphs of 3 to 5 vertices by `levels`: chunks, combinations by index, counts on all engines, what is refused."""

import itertools
from collections import Counter
from math import comb

import compiled
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import brute_force, sparse_graphs

import tcgpu
from helpers.level_models import unranked
from tcgpu import EngineError, Graph, GraphError, MethodError, cuda
from tcgpu.engines import runtime
from tcgpu.kernels.chatterjee import combinations, levels
from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.kernels.chatterjee.combinations import combination
from tcgpu.subgraphs.of_k_vertices import KINDS

every_size = pytest.mark.parametrize("k", combinations.SIZES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def in_one(*graphs):
    """The graphs as components of one, then two isolated vertices; numbers are mixed."""
    n = sum(graph.n for graph in graphs) + 2
    number, before, ends = np.random.default_rng(5).permutation(n), 0, []
    for graph in graphs:
        ends.append(number[before + np.stack(graph.edges())])
        before += graph.n
    return Graph.from_edges(*np.concatenate(ends, axis=1), n)


GRAPHS = {
    "random": tcgpu.generate.random(18, 60, seed=1),
    "components": in_one(tcgpu.generate.random(9, 20, seed=2), tcgpu.generate.clique(6), tcgpu.generate.path(7)),
    "mesh": tcgpu.generate.mesh(5, 5),
    "no edge": tcgpu.generate.empty(8),
    "no vertex": tcgpu.generate.empty(0),
}
LARGER = {
    "mesh": tcgpu.generate.mesh(12, 9),
    "small world": tcgpu.generate.watts_strogatz(90, 6, 0.1, seed=1),
    "components": in_one(tcgpu.generate.rmat(6, 6, seed=1), tcgpu.generate.clique(20), tcgpu.generate.road(6, 8)),
}


def by_levels(graph, k, kind, engine="sim"):
    return tcgpu.count_subgraphs(graph, k, kind, method="levels", engine=engine)


@settings(max_examples=15)
@given(sparse_graphs(most_vertices=9), st.sampled_from(combinations.SIZES), st.sampled_from(KINDS))
def test_counts_are_those_of_brute_force(graph, k, kind):
    assert by_levels(graph, k, kind) == brute_force(graph, k, kind)


@every_size
@every_kind
@pytest.mark.parametrize("name", GRAPHS)
def test_counts_are_those_of_the_native_engine(name, k, kind, compiled_kernels):
    assert by_levels(GRAPHS[name], k, kind) == tcgpu.count_subgraphs(GRAPHS[name], k, kind)


@every_size
@every_kind
@pytest.mark.parametrize("shared_bits", [0, 10])
def test_counts_of_small_tasks_and_of_chunks_in_global_memory(shared_bits, k, kind, monkeypatch):
    graph = in_one(tcgpu.generate.random(8, 14, seed=3), tcgpu.generate.path(5))
    settings = {"shared_bits": shared_bits, "machines": 4}
    monkeypatch.setattr(combinations, "MIN_TASK", 5)
    monkeypatch.setattr(combinations, "THREADS", 8)
    monkeypatch.setattr(levels, "split_for_device", lambda graph, **more: split(graph, **settings, **more))
    plan = combinations.plan(graph, k, kind)
    assert len(plan.copied["tasks"]) > len(plan.copied["chunks"])
    in_global = {bool(words == 0) for words in plan.copied["chunks"][:, levels.WORDS]}
    assert in_global == ({False} if kind == "independent" else {True, shared_bits == 0})
    assert plan.count() == tcgpu.count_subgraphs(graph, k, kind)


@pytest.mark.parametrize("k, n", [(3, 3), (3, 1_500_000), (4, 11), (4, 60_000), (5, 5), (5, 12), (5, 9000)])
def test_a_combination_is_found_by_its_index(k, n):
    def write(first, n, k, found):
        a, b, c, d, e = combination(first + cuda.grid(1), n, k)
        for place, vertex in enumerate((a, b, c, d, e)):
            found[cuda.grid(1), place] = vertex

    most = comb(n, k)
    for first in sorted({0, max(0, most // 3), max(0, most - 300)}):
        found = np.zeros((min(300, most - first), 5), np.int32)
        tcgpu.simulate(write, 1, len(found), first, n, k, found, faults=False)
        assert np.array_equal(found[:, 5 - k :], unranked(first + np.arange(len(found)), n, k))
        assert not found[:, : 5 - k].any()


@every_size
@every_kind
def test_a_set_counts_by_its_shape(k, kind):
    table, pairs = combinations.counted_shapes(k, kind), [(i, j) for j in range(k) for i in range(j)]
    inside = comb(k - 1, 2)
    for shape in range(1 << len(pairs)):
        edges = [pair for bit, pair in enumerate(pairs) if shape >> bit & 1]
        graph = Graph.from_edges(np.array(edges, np.int64).reshape(-1, 2), n=k)
        counts = table[shape & (1 << inside) - 1] >> (shape >> inside) & 1
        assert counts == brute_force(graph, k, kind)


@settings(max_examples=30)
@given(sparse_graphs(), st.sampled_from(combinations.SIZES), st.sampled_from(KINDS), st.integers(0, 40))
def test_every_set_is_tested_once(graph, k, kind, shared_bits):
    with pytest.MonkeyPatch.context() as patch, runtime.using("sim"):
        settings = {"shared_bits": shared_bits, "machines": 2}
        patch.setattr(levels, "split_for_device", lambda graph, **more: split(graph, **settings, **more))
        chunks = combinations.split_for(graph, k, kind)
    tested = Counter()
    for c, (tests, size) in enumerate(zip(chunks.tests.tolist(), chunks.size.tolist(), strict=True)):
        first = itertools.islice(itertools.combinations(range(size), k), tests)
        tested.update(frozenset(chunks.vertices(c)[list(places)].tolist()) for places in first)
    assert tested.total() == chunks.total_tests and max(tested.values(), default=1) == 1
    joined = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    joined.add_nodes_from(range(graph.n))
    for chosen in map(frozenset, itertools.combinations(range(graph.n), k)):
        part = joined.subgraph(chosen)
        is_kind = {"clique": nx.density(part) == 1, "independent": not part.size(), "connected": nx.is_connected(part)}
        assert chosen in tested or not is_kind[kind]


def test_levels_spare_combinations():
    """Of a path, a clique needs two neighbours, connected sets k in a row."""
    with runtime.using("sim"):
        for k in combinations.SIZES:
            path = {kind: combinations.split_for(tcgpu.generate.path(100), k, kind) for kind in KINDS}
            assert {kind: chunks.total_tests for kind, chunks in path.items()} == {
                "clique": 0, "connected": 101 - k, "independent": comb(100, k)
            }  # fmt: skip


@pytest.mark.sim
@every_size
@every_kind
@pytest.mark.parametrize("name", LARGER)
def test_counts_of_the_compiled_kernel(name, k, kind, processor):
    with processor.instead_of_the_simulator(**compiled.LARGE):
        assert combinations.plan(LARGER[name], k, kind).count() == tcgpu.count_subgraphs(LARGER[name], k, kind)


@pytest.mark.sim
@every_kind
def test_counts_in_any_order_of_threads(kind, processor, monkeypatch):
    """Where a barrier is missing, a count changes or threads wait in vain."""
    monkeypatch.setattr(combinations, "MIN_TASK", 1000)
    with processor.instead_of_the_simulator(seed=1, **compiled.LARGE):
        found = combinations.plan(LARGER["components"], 3, kind).count()
    assert found == tcgpu.count_subgraphs(LARGER["components"], 3, kind)


@pytest.mark.gpu
@every_size
@every_kind
@pytest.mark.parametrize("name", LARGER)
def test_counts_on_a_gpu(name, k, kind):
    assert by_levels(LARGER[name], k, kind, "gpu") == tcgpu.count_subgraphs(LARGER[name], k, kind)


@pytest.mark.gpu
@every_size
def test_counts_of_long_graphs_on_a_gpu(k):
    graph = tcgpu.generate.mesh(40, 300)
    assert by_levels(graph, k, "clique", "gpu") == tcgpu.count_subgraphs(graph, k)


@pytest.mark.parametrize("graph, k, kind, message", [
    (tcgpu.generate.clique(20), 6, "clique", "levels counts subgraphs of 3 to 5 vertices, not of 6: leave method= out"),
    (tcgpu.generate.star(40_000), 5, "connected", f"{comb(40_000, 5):,} combinations are too many for"),
    (tcgpu.generate.empty(12_000), 5, "independent", "combinations are too many for 63 bits"),
    (tcgpu.generate.clique(500), 4, "clique", "levels would take .* in the simulator: take engine='cpu' without"),
])  # fmt: skip
def test_too_much_is_refused_before_any_launch(graph, k, kind, message):
    with pytest.raises(GraphError, match=message):
        by_levels(graph, k, kind)


def test_long_runs_on_a_gpu_are_refused(monkeypatch):
    monkeypatch.setattr(runtime.current(), "estimates_time", False)
    with pytest.raises(
        GraphError, match=f"on this GPU to test {comb(9000, 4):,} combinations: take a smaller graph, or"
    ):
        combinations.plan(tcgpu.generate.empty(9000), 4, "independent")


@pytest.mark.parametrize("options, error, message", [
    ({"method": "naive"}, MethodError, "count_subgraphs has the methods cpu, levels, not 'naive'"),
    ({"method": "levels", "engine": "cpu"}, EngineError, "method 'levels' runs on gpu or sim or webgpu, not on 'cpu'"),
    ({"method": "cpu", "engine": "sim"}, EngineError, "count_subgraphs.* runs on cpu, not on 'sim'"),
    ({"method": "levels", "engine": "sim", "max_seconds": 0}, GraphError, "max_seconds is a number of seconds above 0"),
    ({"max_seconds": -1}, GraphError, "max_seconds is a number of seconds above 0, not -1"),
])  # fmt: skip
def test_invalid_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        tcgpu.count_subgraphs(GRAPHS["mesh"], 3, **options)


def test_the_native_method_has_a_name():
    assert tcgpu.count_subgraphs(GRAPHS["mesh"], 3, method="cpu") == tcgpu.count(GRAPHS["mesh"])
