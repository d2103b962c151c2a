"""Edges with any ids: relabelling on the host, on the device and from files, and what is refused without it."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tcgpu
from tcgpu import DeviceGraph, Graph, GraphError
from tcgpu.declarations import CUDA
from tcgpu.engines import runtime
from tcgpu.engines.native import set_threads

BILLION = [1_000_000_000, 1, 2], [1, 2, 1_000_000_000]
END = 2**63 - 1
ENGINES = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in CUDA]
IDS = st.integers(-END - 1, END) | st.integers(-3, 12) | st.integers(END - 3, END) | st.integers(10**6, 10**6 + 9)


def named_edges(graph):
    """The edges of a graph as sets of ids."""
    ids = np.arange(graph.n) if graph.ids is None else graph.ids
    return {frozenset((int(ids[i]), int(ids[j]))) for i, j in zip(*graph.edges(), strict=True)}


@given(st.lists(st.tuples(IDS, IDS), max_size=40), st.sampled_from(["natural", "degree", "random", "bfs"]))
def test_any_ids_become_the_vertices_that_occur(pairs, order):
    u, v = [a for a, _ in pairs], [b for _, b in pairs]
    graph = Graph.from_edges(np.array(u, np.int64), np.array(v, np.int64), relabel=True, order=order)
    occurring = sorted({*u, *v})
    assert graph.n == len(occurring)
    assert graph.ids is None or graph.ids.dtype == np.int64
    if order == "natural":
        assert (list(range(graph.n)) if graph.ids is None else graph.ids.tolist()) == occurring
    assert named_edges(graph) == {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    graph._validate()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("low, span", [(-(2**63), 2**64), (-1000, 3000), (-(2**40), 2**41), (5, 2**33)])
def test_many_ids_on_all_cores(workers, low, span):
    drawn = np.random.default_rng(5).integers(0, 30_000, (2, 60_000))
    ends = np.array([low + k * (span // 30_000) for k in range(30_000)], np.int64)[drawn]
    set_threads(workers)
    try:
        graph = Graph.from_edges(*ends, relabel=True)
    finally:
        set_threads(None)
    ids, numbers = np.unique(ends, return_inverse=True)
    assert np.array_equal(graph.ids, ids)
    assert graph.equals(Graph.from_edges(*numbers.reshape(ends.shape), ids.size, labels=ids))


def test_ids_are_the_labels_where_these_are_integers():
    assert Graph.from_edges([0, 1], [1, 2]).ids is None
    assert Graph.from_edges([0, 1], [1, 2], relabel=True).ids is None
    assert Graph.from_edges([1, 0], [2, 1]).ordered("degree").ids.tolist() == [0, 2, 1]
    assert Graph.from_networkx(nx.Graph([(10, 30), (30, 20)])).ids.tolist() == [10, 30, 20]
    with pytest.raises(GraphError, match=r"not called by whole numbers; graph\.labels"):
        _ = Graph.from_networkx(nx.Graph([("a", "b")])).ids


def test_trusses_keep_ids_and_counts_do_not_depend_on_them():
    graph = Graph.from_edges([7, 9, 10**12, 9], [9, 10**12, 7, -4], relabel=True)
    assert (graph.ids.tolist(), tcgpu.count(graph)) == ([-4, 7, 9, 10**12], 1)
    assert tcgpu.triangles(graph).tolist() == [0, 1, 1, 1]
    assert tcgpu.k_truss(graph, 3).ids.tolist() == [7, 9, 10**12]


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=20)
@given(
    st.lists(st.tuples(IDS, IDS), max_size=20),
    st.sampled_from(["natural", "degree"]),
    st.sampled_from(["natural", "degree"]),
)
@example([(0, 1), (2, 1)], "degree", "degree")
def test_ids_on_the_device(engine, pairs, order, later):
    u, v = (np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1))
    expected = Graph.from_edges(u, v, relabel=True)
    with runtime.using(engine):
        made = DeviceGraph.from_edges(u, v, relabel=True, order=order).ordered(later)
        half = made.kept(runtime.to_device_library(np.arange(made.m) % 2 == 0))
        row_idx, col_of, ids, ids_of_half = (
            None if array is None else runtime.to_host(array)
            for array in (made.row_idx, made.col_of, made.ids, half.ids)
        )
        back = made.to_graph()
    ids = np.arange(made.n) if ids is None else ids
    assert sorted(ids.tolist()) == sorted(np.unique((u, v)).tolist())
    named = {frozenset((int(ids[i]), int(ids[j]))) for i, j in zip(row_idx, col_of, strict=True)}
    assert named == named_edges(expected)
    assert (np.arange(back.n) if back.ids is None else back.ids).tolist() == ids.tolist()
    assert (np.arange(half.n) if ids_of_half is None else ids_of_half).tolist() == ids.tolist()


SPARSE = [
    (lambda: Graph.from_edges(*BILLION), r"3 edges .* 1,000,000,001 vertices; .*relabel=True.*n=1000000001"),
    (lambda: tcgpu.count(BILLION), "relabel=True"),
    (lambda: tcgpu.triangles(list(zip(*BILLION, strict=True))), "relabel=True"),
    (lambda: Graph.from_edges([2**40], [1]), "more than 2,147,483,647, .*relabel=True"),
    (lambda: Graph.from_edges([-1], [1]), "not negative; relabel=True"),
    (lambda: Graph.from_edges(*BILLION, 9), r"with n = 9 vertex numbers end at 8$"),
]


@pytest.mark.parametrize("make, words", SPARSE)
def test_numbers_far_apart_are_refused_before_memory_is_taken(make, words):
    tracemalloc.start()
    try:
        with pytest.raises(GraphError, match=words):
            make()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # a billion vertices take 8 GB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("relabel", [False, True])
def test_ids_stay_through_orders_and_kept_edges_on_the_device(engine, relabel):
    u, v = np.array([7, 1, 2, 1, 4, 4]), np.array([1, 2, 7, 4, 7, 3])
    with runtime.using(engine):
        by_degree = DeviceGraph.from_edges(u, v, relabel=relabel, order="degree")
        assert by_degree.rank is not None
        keep = runtime.to_device_library(np.arange(by_degree.m) != 2)
        kept = by_degree.kept(keep)
        assert named_edges(by_degree.to_graph()) == set(map(frozenset, zip(u.tolist(), v.tolist(), strict=True)))
        assert named_edges(kept.to_graph()) < named_edges(by_degree.to_graph()) and kept.m == by_degree.m - 1
        backwards = Graph.from_edges(u, v).reordered(np.arange(8)[::-1])
        again = DeviceGraph.from_graph(backwards).ordered("degree").to_graph()
        assert named_edges(again) == named_edges(backwards) == named_edges(by_degree.to_graph())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_a_graph_of_the_host_has_its_ids_on_the_device(engine, order):
    numbered = Graph.from_edges([100, 5, 7, 9], [5, 7, 100, 5], relabel=True).ordered(order)
    names = nx.Graph([("a", "b"), ("b", (1, 2)), ("a", (1,)), ((1, 2), (1,))])
    with runtime.using(engine):
        made = DeviceGraph.from_graph(numbered)
        assert np.array_equal(runtime.to_host(made.ids), numbered.ids)
        assert named_edges(made.to_graph()) == named_edges(made.ordered("degree").to_graph()) == named_edges(numbered)
        plain = DeviceGraph.from_graph(tcgpu.generate.rmat(4, 3).ordered(order))
        assert plain.ids is None if order == "natural" else len(plain.ids) == 16
        named = DeviceGraph.from_graph(Graph.from_networkx(names).ordered(order)).ordered("degree")
        assert named.to_graph().m == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_far_apart_are_refused_on_the_device(engine):
    with runtime.using(engine):
        with pytest.raises(GraphError, match=r"3 edges .* 1,000,000,001 vertices; .*relabel=True"):
            DeviceGraph.from_edges(*map(np.array, BILLION))
        with pytest.raises(GraphError, match="more than 2,147,483,647, .*relabel=True"):
            DeviceGraph.from_edges(np.array([2**40]), np.array([1]))
        assert DeviceGraph.from_edges(*map(np.array, BILLION), relabel=True).m == 3
        with pytest.raises(GraphError, match="from 0 to n - 1 = 1; the edges have 5$"):
            DeviceGraph.from_edges(np.array([3]), np.array([5]), 2)


def test_few_isolated_vertices_or_an_explicit_n_are_allowed():
    assert Graph.from_edges([100_000, 1], [1, 2]).n == 100_001
    assert Graph.from_edges([5_000_000, 1], [1, 2], 5_000_001).n == 5_000_001
    assert Graph.from_scipy(sp.coo_array(([1], ([0], [4_999_999])), shape=(5_000_000,) * 2)).n == 5_000_000
    u = np.arange(40_000)
    assert Graph.from_edges(u, np.append(u[1:], 5_000_000)).n == 5_000_001  # 62.5 vertices for each end
    with pytest.raises(GraphError, match="relabel=True"):
        Graph.from_edges(u, np.append(u[1:], 5_200_000))


@pytest.mark.parametrize("make", [Graph.from_edges, DeviceGraph.from_edges])
def test_invalid_ids_are_refused(make):
    huge = np.array([1, 2**63 + 5], np.uint64)
    with pytest.raises(GraphError, match="9223372036854775813.* past the largest possible id, 9223372036854775807"):
        make(huge, huge, relabel=True)
    with pytest.raises(GraphError, match="without n"):
        make(np.array([1]), np.array([2]), 3, relabel=True)
    made = make(np.array([1, 2**63 - 1], np.uint64), np.array([1, 1]), relabel=True)
    assert runtime.to_host(made.ids).tolist() == [1, END]


@pytest.mark.parametrize("make", [Graph.from_edges, DeviceGraph.from_edges])
@pytest.mark.parametrize("n", [-1, 2.0, True, "3"])
def test_invalid_numbers_of_vertices_are_refused(make, n):
    with pytest.raises(GraphError, match="n must be a whole number of at least 0"):
        make(np.array([0]), np.array([1]), n)


def test_ids_of_more_than_64_bits_are_names():
    with pytest.raises(GraphError, match="whole numbers of at most 64 bits"):
        Graph.from_edges([2**64], [1])
    assert list(Graph.from_edges([2**64], [1], relabel=True).labels) == [1, 2**64]
    with pytest.raises(GraphError, match="without n and labels"):
        Graph.from_edges([5], [1], relabel=True, labels=["a", "b"])


def test_reading_with_and_without_relabelling(tmp_path):
    (tmp_path / "x.txt").write_text("7 9\n9 12\n12 7\n")
    for graph in tcgpu.read(tmp_path / "x.txt"), tcgpu.read(tmp_path / "x.txt", relabel=True):
        assert (graph.n, graph.ids.tolist(), graph.labels.tolist()) == (3, [7, 9, 12], [7, 9, 12])
    for graph in tcgpu.read(tmp_path / "x.txt", relabel=False), tcgpu.read(tmp_path / "x.txt", base=0):
        assert (graph.n, graph.ids) == (13, None)
    assert tcgpu.read(tmp_path / "x.txt", relabel=False, base=1).n == 12
    for more in {"base": 1}, {"n": 20}:
        with pytest.raises(GraphError, match="it goes without base= and n="):
            tcgpu.read(tmp_path / "x.txt", relabel=True, **more)
    tcgpu.write(graph, tmp_path / "x.mtx")
    with pytest.raises(GraphError, match="relabel= is for edge lists"):
        tcgpu.read(tmp_path / "x.mtx", relabel=True)
    assert tcgpu.read(tmp_path / "x.mtx", relabel=False).n == 13
    (tmp_path / "far.txt").write_text("1000000000 9\n9 12\n12 1000000000\n")
    with pytest.raises(GraphError, match=r"would take 8.0 GB.*relabel=True and without base="):
        tcgpu.read(tmp_path / "far.txt", relabel=False)
