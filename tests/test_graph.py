"""Graph: cleaning, orders, columns and conversions, against plain NumPy and set arithmetic."""

import contextlib
import copy
import pickle
import random
import re
import subprocess
import sys
import tracemalloc

import networkx as nx
import numpy as np
import pytest
import sampling
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import share

import tcgpu
from tcgpu import Graph, GraphError, MethodError, clean, generate, sampled_order
from tcgpu.cpu import cleaning
from tcgpu.engines.native import set_threads
from tcgpu.graph import Cleaned, as_graph


@st.composite
def multigraphs(draw, most_vertices=40, most_edges=150):
    """(u, v, n): records in any direction, with loops and duplicates, and vertices without any edge."""
    n = draw(st.integers(1, most_vertices))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=most_edges))
    pairs = np.array(pairs, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], n


def expected_edges(u, v):
    """The set of (smaller, larger) pairs."""
    return {(min(a, b), max(a, b)) for a, b in zip(u.tolist(), v.tolist(), strict=True) if a != b}


def edge_set(graph):
    rows, cols = graph.edges()
    return set(zip(cols.tolist(), rows.tolist(), strict=True))


@given(multigraphs())
def test_cleaning_keeps_every_edge_once_and_reports_what_it_dropped(multigraph):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n)
    directed = {(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True) if a != b}
    edges = expected_edges(u, v)
    assert (graph.n, graph.m) == (n, len(edges))
    assert edge_set(graph) == edges
    loops = int((u == v).sum())
    assert graph.cleaned == Cleaned(loops, u.size - loops - len(directed), len(directed) - len(edges))
    graph._validate()


@given(multigraphs(), st.randoms(use_true_random=False))
def test_kept_has_exactly_the_marked_edges(multigraph, chance):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n, labels=[f"v{k}" for k in range(n)])
    keep = np.array([chance.random() < 0.5 for _ in range(graph.m)], bool)
    kept = graph.kept(keep)
    kept._validate()
    rows, cols = graph.edges()
    assert edge_set(kept) == set(zip(cols[keep].tolist(), rows[keep].tolist(), strict=True))
    assert (kept.n, kept.labels) == (n, graph.labels)
    with pytest.raises(GraphError, match="a mark for each of"):
        graph.kept(np.append(keep, True))


@pytest.mark.parametrize("workers", [1, 2, 7, 64])
def test_kept_is_the_same_on_any_number_of_threads(monkeypatch, workers):
    monkeypatch.setattr(cleaning, "MANY", 0)
    monkeypatch.setattr("tcgpu.engines.native.MANY", 0)
    monkeypatch.setattr("tcgpu.engines.native.SHARE", 100)
    monkeypatch.setattr("tcgpu.engines.native._threads", workers)
    for graph in (generate.rmat(9, seed=1).ordered("degree"), generate.star(50), Graph.from_edges([8], [9], 20)):
        keep = np.random.default_rng(3).random(graph.m) < 0.6
        rows, cols = (ends[keep] for ends in graph.edges())
        kept = graph.kept(keep)
        assert np.array_equal(kept.row_idx, rows) and np.array_equal(kept.col_of, cols)


@given(multigraphs(), st.sampled_from(["degree", "bfs", "random", "auto", "natural"]), st.integers(0, 3))
def test_every_order_is_the_same_graph_renumbered(multigraph, order, seed):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n)
    other = graph.ordered(order, seed=seed)
    other._validate()
    if other is graph:
        assert order in ("natural", "auto")
        return
    assert sorted(other.rank.tolist()) == list(range(n))
    moved = {tuple(sorted((int(other.rank[a]), int(other.rank[b])))) for a, b in edge_set(graph)}
    assert edge_set(other) == moved
    assert np.array_equal(other.degrees[other.rank], graph.degrees)
    assert np.array_equal(np.asarray(other.labels)[other.rank], np.arange(n))
    assert graph.ordered(order, seed=seed) is other


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_degrees_and_ranks_are_the_same_for_any_number_of_threads(workers):
    """Low degrees are counted, high ones sorted."""
    chance = np.random.default_rng(workers)
    n, hubs = 300_000, np.arange(20)
    u = np.concatenate([chance.integers(0, n, 200_000), np.repeat(hubs, 5000 + 100 * hubs)])
    v = chance.integers(hubs.size, n, u.size)
    set_threads(workers)
    try:
        graph = Graph.from_edges(u, v, n)
        again, by_degree = Graph(graph.col_ptr, graph.row_idx), graph.ordered("degree")
        degrees, longest, most = again.degrees, again.max_column, again.max_degree
    finally:
        set_threads(None)
    lengths = np.diff(graph.col_ptr)
    assert np.array_equal(degrees, lengths + np.bincount(graph.row_idx, minlength=n))
    assert longest == graph.max_column == lengths.max() and most == degrees.max()
    assert np.array_equal(np.argsort(by_degree.rank), np.argsort(degrees, kind="stable"))
    by_degree._validate()
    assert np.array_equal(by_degree.degrees, np.sort(degrees))


@given(multigraphs())
def test_degrees_ascend_in_degree_order_also_when_made_from_edges(multigraph):
    u, v, n = multigraph
    assert (np.diff(Graph.from_edges(u, v, n).ordered("degree").degrees) >= 0).all()
    straight = Graph.from_edges(u, v, n, order="degree")
    straight._validate()
    records = np.bincount(u, minlength=n) + np.bincount(v, minlength=n)
    assert (np.diff(records[np.argsort(straight.rank)]) >= 0).all()
    back = {tuple(sorted((int(straight.labels[a]), int(straight.labels[b])))) for a, b in edge_set(straight)}
    assert back == expected_edges(u, v)


def test_statistics_of_a_sample_estimate_those_of_the_graph():
    graph = tcgpu.generate.rmat(18, seed=3)
    degree, column = np.asarray(graph.degrees, float), graph.column_lengths
    drawn = sampled_order.sample_edges(graph.m, graph.n)
    assert np.unique(drawn).size == drawn.size < graph.m / 100
    u, v = graph.row_idx[drawn], graph.col_of[drawn]
    skew = graph.n * (degree @ degree) / degree.sum() ** 2
    lookups = column @ (degree - column) / graph.m
    distance = np.median(graph.row_idx - graph.col_of) / graph.n
    assert sampled_order.degree_skew(u, v, graph.n) == pytest.approx(skew, rel=0.4)
    assert sampled_order.lookups_per_edge(u, v, graph.m) == pytest.approx(lookups, rel=0.4)
    assert sampled_order.relative_distance(u, v, graph.n) == pytest.approx(distance, rel=0.1)


def test_auto_chooses_degree_order_if_it_shortens_a_count():
    skewed = tcgpu.generate.rmat(12, seed=1)
    growing = tcgpu.generate.barabasi_albert(500_000, 8)
    close = tcgpu.generate.copapers(60_000, 40)  # skewed, but neighbours have close numbers
    flat = tcgpu.generate.random(2000, 50_000)
    graphs = skewed, growing, close, flat
    assert [g.ordered("auto").order for g in graphs] == ["degree", "degree", "natural", "natural"]
    rows, cols = skewed.edges()
    assert Graph.from_edges(rows, cols, order="auto").order == "degree"


def test_bfs_order_visits_level_by_level():
    graph = tcgpu.Graph.from_networkx(nx.random_labeled_tree(200, seed=1)).ordered("bfs")
    levels = nx.single_source_shortest_path_length(
        nx.Graph(zip(graph.col_of.tolist(), graph.row_idx.tolist(), strict=True)), 0
    )
    by_number = [levels[v] for v in range(graph.n)]
    assert by_number == sorted(by_number)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint16, ">i4"])
def test_large_arrays_of_any_type_on_any_number_of_threads(threads, dtype):
    """Past the size where more than one thread starts; long columns (sorted by radix) and short ones (by insertion)."""
    rng = np.random.default_rng(7)
    for n, m, low in ((60_000, 200_000, 0), (300, 120_000, 0), (60_000, 120_000, 59_990)):
        u, v = rng.integers(low, n, m), rng.integers(0, n, m)
        set_threads(threads)
        try:
            graph = Graph.from_edges(u.astype(dtype), v.astype(dtype), n)
        finally:
            set_threads(None)
        keys = np.unique((np.minimum(u, v) * n + np.maximum(u, v))[u != v])
        assert np.array_equal(graph.col_of * np.int64(n) + graph.row_idx, keys)
        ends = np.bincount(keys // n, minlength=n) + np.bincount(keys % n, minlength=n)
        assert np.array_equal(graph.degrees, ends)


def brute_columns(u, v, n, rank):
    """`clean_columns` by sorting all edges with NumPy: (column lengths, rows, loops, duplicates, reversed, longest)."""
    u, v = (u, v) if rank is None else (rank[u], rank[v])
    u, v = u.astype(np.int64), v.astype(np.int64)
    directed = np.unique((u * n + v)[u != v])
    column, row = np.divmod(directed, n)
    edges = np.unique(np.minimum(column, row) * n + np.maximum(column, row))
    lengths = np.bincount(edges // n, minlength=n)
    loops = int((u == v).sum())
    dropped = loops, u.size - loops - directed.size, directed.size - edges.size
    return lengths, edges % n, *dropped, lengths.max()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("key_type", [np.uint32, np.uint64])
@pytest.mark.parametrize("bucket_bits", share([0, 1, 3, 30], "buckets", of=2))
def test_keys_of_both_sizes_and_any_buckets_give_the_same_columns(monkeypatch, bucket_bits, key_type, dtype):
    """Short columns and long ones, with no duplicates, with some, and with every edge in both directions."""
    rng = np.random.default_rng(bucket_bits)

    def layout(edges, n):
        bits = (n - 1).bit_length()
        return max(0, bits - bucket_bits), bits, key_type

    monkeypatch.setattr(cleaning, "_key_layout", layout)
    for n, m in ((1, 4), (2, 9), (5, 60), (300, 200), (300, 9000), (30_000, 20_000), (5000, 60_000)):
        u, v = (rng.integers(0, n, m).astype(dtype) for _ in range(2))
        once = np.unique(np.minimum(u, v).astype(np.int64) * n + np.maximum(u, v))
        clean = tuple(ends.astype(dtype) for ends in np.divmod(once, n))
        both = tuple(np.concatenate(ends) for ends in ((*clean, u[:3]), (*clean[::-1], v[:3])))
        for ends in ((u, v), clean, both):
            for rank in (None, rng.permutation(n).astype(np.int32)):
                found = cleaning.clean_columns(*ends, n, rank)
                lengths, rows, *numbers = brute_columns(*ends, n, rank)
                assert np.array_equal(np.diff(found.col_ptr), lengths) and found.col_ptr[0] == 0
                assert np.array_equal(found.row_idx, rows) and found.row_idx.dtype == np.int32
                assert found[2:] == tuple(numbers)


def test_keys_have_32_bits_where_a_row_and_a_column_of_a_bucket_fit():
    for edges in (0, 10**5, 10**9):
        for n in (0, 1, 2, 1000, 1 << 16, 1 << 22, (1 << 22) + 1, 1 << 28, clean.MAX_VERTICES):
            shift, bits, key_type = cleaning._key_layout(edges, n)
            assert max(n - 1, 0) >> bits == 0 and shift >= 0 and max(n - 1, 0) >> shift < cleaning.MAX_BUCKETS
            assert shift + bits + 1 <= 8 * np.dtype(key_type).itemsize
            assert (key_type == np.uint32) == (n <= 1 << 22)


@given(multigraphs(), st.sampled_from(["natural", "degree", "bfs", "random"]))
def test_the_longest_column_is_known_in_every_order(multigraph, order):
    graph = Graph.from_edges(*multigraph, order=order)
    assert graph.__dict__["max_column"] == graph.column_lengths.max(initial=0)


def test_statistics():
    star = tcgpu.Graph.from_edges([0] * 9, range(1, 10), 12)
    assert star.degrees.tolist() == [9] + [1] * 9 + [0, 0]
    assert (star.max_column, star.max_degree, star.nonzeros_per_column) == (9, 9, 0.75)
    assert star.column_histogram() == [(0, 0, 11), (1, 1, 0), (2, 3, 0), (4, 7, 0), (8, 15, 1)]
    assert star.column(0).tolist() == list(range(1, 10))
    assert star.nbytes == 13 * 8 + 9 * 4
    assert len(star) == 12


def test_repr_is_one_line():
    graph = tcgpu.Graph.from_edges([0, 1, 1, 2, 3, 3], [1, 0, 2, 0, 3, 4], name="toy")
    assert repr(graph) == (
        "<Graph 'toy': 5 vertices, 4 edges, 0.80 nonzeros per column (at most 2), natural order; "
        "dropped 1 loop, 1 reversed pair>"
    )


def test_empty_graphs():
    for graph in (tcgpu.Graph.from_edges([], []), tcgpu.Graph.from_edges([], [], 0), tcgpu.Graph([0], [])):
        assert (graph.n, graph.m, graph.nonzeros_per_column, graph.max_degree) == (0, 0, 0.0, 0)
    for order in ("degree", "bfs", "random", "auto"):
        assert tcgpu.Graph.from_edges([], [], 4).ordered(order).n == 4
    assert tcgpu.Graph.from_networkx(nx.Graph()).n == 0


@given(multigraphs(most_vertices=12, most_edges=40))
@settings(max_examples=50)
def test_round_trips_through_scipy_networkx_and_csr(multigraph):
    graph = Graph.from_edges(*multigraph)
    symmetric = graph.to_scipy()
    assert (symmetric != symmetric.T).nnz == 0 and symmetric.nnz == 2 * graph.m
    assert Graph.from_scipy(symmetric).equals(graph)
    assert Graph.from_scipy(graph.lower()).equals(graph)
    assert Graph.from_scipy(sp.coo_matrix(symmetric)).equals(graph)
    assert Graph.from_networkx(graph.to_networkx()).equals(graph)
    assert Graph.from_csr(symmetric.indptr, symmetric.indices).equals(graph)
    assert Graph(graph.col_ptr, graph.row_idx).equals(graph)
    again = pickle.loads(pickle.dumps(graph))
    assert again.equals(graph) and again.cleaned == graph.cleaned


def test_scipy_zeros_are_no_edges_and_other_shapes_are_refused():
    matrix = sp.coo_array(([0.0, 2.0, -1.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    assert edge_set(Graph.from_scipy(matrix)) == {(1, 2), (0, 2)}
    with pytest.raises(GraphError, match=r"square.*\(2, 3\)"):
        Graph.from_scipy(sp.coo_array((2, 3)))


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr", "dok", "lil"])
def test_duplicate_entries_are_added_up_in_every_format(kind):
    data, row, col = [1, -1, 1, 1, 2], [0, 0, 1, 1, 2], [1, 1, 2, 2, 0]
    matrix = sp.coo_array((data, (row, col)), shape=(3, 3)).asformat(kind)
    stored = matrix.nnz
    assert edge_set(Graph.from_scipy(matrix)) == {(1, 2), (0, 2)}
    assert matrix.nnz == stored  # the caller's matrix is as it was


@pytest.mark.parametrize(
    "dtype, values, edge",
    [
        (np.uint8, [128, 128], False),  # wraps, as in every sum of SciPy's
        (np.int8, [64, 64], True),
        (np.uint64, [2**63, 2**63], False),
        (np.int64, [2, 3], True),
        (np.int64, [2, -2], False),
        (bool, [True, True], True),
        (bool, [False, True], True),
        (float, [0.5, 0.5], True),
        (float, [0.5, -0.5], False),
        (float, [0.0, 0.5], True),
        (complex, [1j, -1j], False),
        (complex, [1j, 1], True),
    ],
)
def test_duplicate_entries_have_the_value_that_scipy_computes(dtype, values, edge):
    coo = sp.coo_array((np.array(values, dtype), ([0, 0], [1, 1])), shape=(2, 2))
    assert bool(coo.toarray()[0, 1]) == edge
    assert Graph.from_scipy(coo).m == Graph.from_scipy(coo.tocsr()).m == edge


def test_a_compressed_matrix_that_stores_an_entry_twice():
    matrix = sp.csr_array(([1.0, -1.0, 2.0], [1, 1, 2], [0, 2, 3, 3]), shape=(3, 3))
    assert edge_set(Graph.from_scipy(matrix)) == {(1, 2)} == edge_set(Graph.from_scipy(matrix.tocoo()))
    assert matrix.nnz == 3


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_a_dense_matrix_is_refused_with_the_way_out(size, dtype):
    matrix = np.ones((size, size), dtype)
    with pytest.raises(GraphError, match=r"may be a dense adjacency matrix: .*scipy\.sparse\.csr_array\(A\)"):
        tcgpu.count(matrix)
    with pytest.raises(GraphError, match=r"not a numpy\.ndarray; scipy\.sparse\.csr_array\(A\)"):
        Graph.from_scipy(matrix)
    assert tcgpu.count(sp.csr_array(matrix)) == (0, 0, 0, 1, 4)[size]


def test_from_edges_takes_two_pairs_in_an_array():
    pairs = np.array([[0, 1], [1, 2]])
    assert edge_set(Graph.from_edges(pairs)) == {(0, 1), (1, 2)} == edge_set(as_graph(pairs.tolist()))


MASKED = np.ma.array([0, 1, 2], mask=[False, True, False])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Graph.from_edges(MASKED, [1, 2, 0]),
        lambda: Graph.from_edges([1, 2, 0], MASKED),
        lambda: Graph.from_edges(np.ma.array([[0, 1], [1, 2]], mask=[[0, 0], [0, 1]])),
        lambda: tcgpu.count((MASKED, MASKED)),
        lambda: tcgpu.DeviceGraph.from_edges(MASKED, np.array([1, 2, 0])),
        lambda: Graph.from_csr(np.ma.array([0, 1, 1], mask=[0, 0, 1]), [1]),
        lambda: Graph.from_edges([0, 1], [1, 2]).kept(np.ma.array([True, True], mask=[0, 1])),
    ],
)
def test_masked_entries_are_refused(make):
    with pytest.raises(GraphError, match="masked entries"):
        make()


def test_a_masked_array_without_masked_entries_is_an_array():
    assert Graph.from_edges(np.ma.array([0, 1, 2]), [1, 2, 0]).m == 3


def test_networkx_labels_directions_and_multi_edges():
    mixed = nx.Graph([("a", 1), (1, (2, 3)), ((2, 3), "a"), ("a", "a")])
    graph = Graph.from_networkx(mixed)
    assert graph.labels == ["a", 1, (2, 3)] and graph.m == 3 and graph.cleaned == Cleaned(loops=1)
    assert set(graph.to_networkx()) == {"a", 1, (2, 3)}
    directed = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    assert Graph.from_networkx(directed).cleaned == Cleaned(reversed=1)
    assert Graph.from_networkx(nx.MultiGraph([(0, 1), (0, 1), (1, 2)])).m == 2
    assert Graph.from_networkx(nx.Graph([(True, 2)])).labels == [True, 2]
    karate = Graph.from_networkx(nx.karate_club_graph())
    assert karate.labels is None and karate.m == 78 and karate.name == "Zachary's Karate Club"


class Arrow(list):
    """A column as in Arrow: DLPack does not take it if it has missing entries or a dictionary; NumPy converts it."""

    @property
    def null_count(self):
        return self.count(None)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        raise TypeError("DataType is not compatible with DLPack spec: dictionary<values=int64, indices=int32>")


@pytest.mark.parametrize("make", [Graph.from_edges, tcgpu.DeviceGraph.from_edges])
def test_columns_of_arrow_have_no_missing_entries_and_may_have_a_dictionary(make):
    assert make(Arrow([0, 1, 2]), Arrow([1, 2, 0])).m == 3
    with pytest.raises(GraphError, match="has 2 missing entries; leave them out first"):
        make(Arrow([None, 1, None]), [1, 2, 0])


class OnDevice:
    """An array of another library that exposes its memory through DLPack only."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_edges_from_lists_pairs_strided_views_and_dlpack():
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    triangle = Graph.from_edges([0, 1, 2], (1, 2, 0))
    for other in (
        Graph.from_edges(pairs),
        Graph.from_edges(np.asfortranarray(pairs)),
        Graph.from_edges(np.repeat(pairs, 2, axis=0)[::2]),
        Graph.from_edges(OnDevice([0, 1, 2]), OnDevice([1, 2, 0])),
        Graph.from_edges(np.array([0, 1, 2], np.int8), np.array([1, 2, 0], np.uint64)),
    ):
        assert other.equals(triangle)


@pytest.mark.gpu
def test_edges_from_device_arrays_of_any_library():
    from tcgpu.engines import runtime

    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    u, v = np.array([0, 1, 2]), np.array([1, 2, 0])
    triangle = Graph.from_edges(u, v)
    assert Graph.from_edges(cupy.asarray(u), cupy.asarray(v)).equals(triangle)
    assert Graph.from_edges(cupy.asarray(np.stack([u, v], axis=1))).equals(triangle)
    assert Graph.from_edges(runtime.to_device(u), runtime.to_device(v)).equals(triangle)
    assert tcgpu.count((cupy.asarray(u), cupy.asarray(v))) == 1


@pytest.mark.parametrize(
    ("u", "v", "n", "words"),
    [
        ([0, -4], [1, 2], None, r"edge 1 is \(-4, 2\).*not negative"),
        ([0, 3], [1, 2], 3, r"edge 1 is \(3, 2\); with n = 3 vertex numbers end at 2"),
        ([0, 1], [1], None, "u has 2 entries, v has 1"),
        ([0.5], [1], None, "whole numbers, not float64"),
        ([2.0], [1.0], None, "whole numbers, not float64"),
        ([float("nan")], [1], None, "whole numbers, not float64"),
        ([True], [False], None, "whole numbers, not bool"),
        ([[0, 1]], [[1, 2]], None, "one-dimensional"),
        (["a"], ["b"], None, "whole numbers"),
        ([2**40], [1], None, "vertices are more than 2,147,483,647"),
        (np.array([2**63], np.uint64), [1], None, "past the largest possible"),
        ([0], [1], -1, "n must be a whole number of at least 0"),
        ([0], [1], 2.0, "n must be a whole number"),
        ([0], [1], True, "n must be a whole number"),
    ],
)
def test_bad_edges_are_refused_by_name(u, v, n, words):
    with pytest.raises(GraphError, match=words):
        Graph.from_edges(u, v, n)


@pytest.mark.parametrize(
    ("col_ptr", "row_idx", "words"),
    [
        ([], [], "col_ptr is empty"),
        ([0, 2], [1], "ascend from 0 to 1"),
        ([0, 2, 1, 2], [1, 2], "ascend"),
        ([0, 2, 2, 2], [2, 1], "column 0 is not a strictly ascending"),
        ([0, 2, 2, 2], [1, 1], "column 0"),
        ([0, 0, 1, 1], [0], "column 1 .* rows in 2..2"),
        ([0, 1, 1], [2], "column 0"),
        ([0, 1, 1], [-1], "row_idx holds numbers outside"),
        ([0, 1, 1], [2**33], "row_idx holds numbers outside"),
    ],
)
def test_invalid_columns_are_refused(col_ptr, row_idx, words):
    with pytest.raises(GraphError, match=words):
        Graph(col_ptr, row_idx)


def test_other_invalid_arguments_are_refused_by_name():
    graph = Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(MethodError, match="no order 'size'"):
        graph.ordered("size")
    for rank in ([0, 1, 1], [-1, 0, 1], np.array([0, 1, -1], np.int32), [0, 1], [0, 1, 2**40]):
        with pytest.raises(GraphError, match="permutation of 0..2"):
            graph.reordered(rank)
    for places in ([1, 0], [1], np.array([1, 1], np.int8)):
        with pytest.raises(GraphError, match=r"not int.*isin\(numpy.arange\(graph.m\), places\) makes"):
            graph.kept(places)
    with pytest.raises(GraphError, match="2 labels do not name 3 vertices"):
        Graph.from_edges([0, 1], [1, 2], labels=["a", "b"])
    for labels in ({0: "a", 1: "b", 2: "c"}, {"a", "b", "c"}):
        with pytest.raises(GraphError, match=rf"not a {type(labels).__name__}; .*\[names\[v\] for v in range\(n\)\]"):
            Graph.from_edges([0, 1], [1, 2], labels=labels)
    with pytest.raises(GraphError, match="cannot make a graph of a dict"):
        tcgpu.count({0: [1]})
    with pytest.raises(GraphError, match=r"shape \(edges, 2\), not \(1, 3\)"):
        Graph.from_edges([[0, 1, 2]])
    for indptr in ([0, 3], np.array([0, 1, 0, 1], np.uint8), np.array([0, 2**63, 1], np.uint64)):
        with pytest.raises(GraphError, match="indptr must ascend from 0 to 1"):
            Graph.from_csr(indptr, [0])


@pytest.mark.parametrize("dtype, rows", [(np.int8, 300), (np.uint8, 300), (np.uint16, 70_000)])
def test_compressed_rows_may_be_more_than_the_type_of_the_indices_counts(dtype, rows):
    """All vertices are neighbours of 0 and 1."""
    indices = np.append(0, np.tile([0, 1], rows - 2)).astype(dtype)
    assert tcgpu.count(Graph.from_csr(np.maximum(0, 2 * np.arange(rows + 1) - 3), indices)) == rows - 2


PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3)]
VERBS = {
    "count": tcgpu.count,
    "count in parts": lambda edges: tcgpu.count(edges, executor="threads"),
    "triangles": lambda edges: tcgpu.triangles(edges).tolist(),
    "support": lambda edges: tcgpu.support(edges).tolist(),
    "list_triangles": lambda edges: [block.tolist() for block in tcgpu.list_triangles(edges)],
    "clustering": lambda edges: tcgpu.clustering(edges).tolist(),
    "average_clustering": tcgpu.average_clustering,
    "transitivity": tcgpu.transitivity,
    "count_subgraphs": lambda edges: tcgpu.count_subgraphs(edges, 3, "clique"),
    "cliques": lambda edges: tcgpu.cliques(edges, 3),
    "motifs": tcgpu.motifs,
    "is_triangle_free": tcgpu.is_triangle_free,
    "k_truss": lambda edges: edge_set(tcgpu.k_truss(edges, 3)),
    "truss_numbers": lambda edges: tcgpu.truss_numbers(edges).tolist(),
    "measure": lambda edges: tcgpu.measure(edges, ["cpu"], repeats=1)[0]["triangles"],
    "trace": lambda edges: tcgpu.trace(edges, "naive").triangles,
    "step": lambda edges: len(tcgpu.step(edges, "naive").frames),
    "count in the simulator": lambda edges: tcgpu.count(edges, "adaptive", engine="sim"),
    "support in the simulator": lambda edges: tcgpu.support(edges, engine="sim").tolist(),
}


@pytest.mark.sim
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_takes_edges_as_pairs_and_as_arrays(verb):
    expected = verb(Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3]))
    u, v = ([pair[k] for pair in PAIRS] for k in (0, 1))
    for edges in (
        PAIRS,
        [list(pair) for pair in PAIRS],
        [np.array(pair) for pair in PAIRS],
        np.array(PAIRS),
        (u, v),
        (np.array(u), np.array(v)),
        (u, v, 4),
    ):
        assert verb(edges) == expected


def test_a_list_holds_pairs_and_a_tuple_two_arrays():
    two = (0, 1), (1, 2)
    assert edge_set(as_graph(list(two))) == {(0, 1), (1, 2)}
    assert edge_set(as_graph((two[0], (2, 3)))) == {(0, 2), (1, 3)}
    assert as_graph([]).n == 0
    with pytest.raises(GraphError, match=r"a tuple are \(u, v\) or \(u, v, n\), not 3 things; pairs go into a list"):
        tcgpu.count(tuple(PAIRS[:3]))
    with pytest.raises(GraphError, match=r"two arrays of ends go into a tuple: \(u, v\)"):
        tcgpu.count([np.array([0, 1]), np.array([1, 2])])
    with pytest.raises(GraphError, match="items have different lengths"):
        tcgpu.count([(0, 1), (1, 2, 3)])
    with pytest.raises(GraphError, match=r"shape \(edges, 2\), not \(2, 3\)"):
        tcgpu.count([(0, 1, 5), (1, 2, 5)])


def test_import_is_quick_because_it_imports_nothing():
    """Tests the imported modules, not the time, which depends on the load of the machine."""
    heavy = "{'numpy', 'numba', 'scipy', 'networkx', 'matplotlib'}"
    code = f"import sys, tcgpu; assert not {heavy} & set(sys.modules); dir(tcgpu); print(tcgpu.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tcgpu.__version__


def test_a_long_column_takes_memory_on_few_threads_only():
    """The threads that sort a bucket need as much memory again."""
    ends = np.zeros(400_000, np.int32), np.arange(1, 400_001, dtype=np.int32)
    Graph.from_edges(*ends)
    set_threads(32)
    tracemalloc.start()
    try:
        assert Graph.from_edges(*ends).max_column == 400_000
        assert tracemalloc.get_traced_memory()[1] < 10 * ends[0].nbytes
    finally:
        tracemalloc.stop()
        set_threads(None)


def facts(graph):
    """What is known of a graph: if an array of it changes, some of this does, or the process ends."""
    orders = [graph.ordered(order) for order in ("natural", "degree", "bfs", "random")]
    tallies = tcgpu.support(graph), tcgpu.clustering(graph), tcgpu.truss_numbers(graph)
    per_vertex = tcgpu.motifs(graph, per="vertex")
    return [
        tcgpu.transitivity(graph), tcgpu.count_subgraphs(graph, 4, "connected"), tcgpu.motifs(graph),
        *([list(held.labels), tcgpu.count(held)] for held in orders), *map(list, [*tallies, *per_vertex.values()]),
    ]  # fmt: skip


HANDED_OUT = """
    g.col_ptr; g.row_idx; g.col_of; g.degrees; g.column_lengths; g.labels; g.ids; g.rank; g.column(g.n // 8)
    g.edges()[0]; g.edges()[1]; g.adjacency[0]; g.adjacency[1]
    g.lower(); g.lower().data; g.lower().indices; g.lower().indptr
    g.to_scipy(); g.to_scipy().data; g.to_scipy().indices; g.to_scipy().indptr
    Graph(g.col_ptr, g.row_idx).row_idx; g.kept(np.ones(g.m, bool)).row_idx; tcgpu.k_truss(g, 3).row_idx
    pickle.loads(pickle.dumps(g, 2)).row_idx; pickle.loads(pickle.dumps(g, 5)).col_ptr; copy.deepcopy(g).row_idx
    tcgpu.support(g); tcgpu.clustering(g); tcgpu.truss_numbers(g); next(tcgpu.list_triangles(g))
    tcgpu.motifs(g, per="vertex")["edge"]; col_ptr; row_idx; labels
"""
WRITES = """
    x += k; x *= -k; x[::3] = k; x[k % len(x)] = k; x.fill(k); x.put([0], k); x.setfield(1, np.int8)
    x.sort(); x[::-1].sort(); x.partition(k % len(x)); np.random.shuffle(x); x.byteswap(inplace=True)
    np.add(x, k, out=x); np.copyto(x, k); np.putmask(x, x > 1, k); memoryview(x)[0] = k; x.view(np.int8)[:] = 1
    np.lib.stride_tricks.as_strided(x)[:] = k; x.resize(1, refcheck=False); x.setflags(write=True); x.fill(k)
    x.flags.writeable = True; x.shape = -1, 1; x.dtype = np.int8; x.strides = 0,; x.append(k); x.pop(); x.clear()
    x.data[::3] = 0; x.eliminate_zeros(); x.setdiag(k); x.resize(5, 5); x[0, 1] = k; x.sum_duplicates()
"""


def test_only_memory_that_a_caller_can_write_to_is_copied(tmp_path):
    graph = generate.rmat(6, seed=1)
    np.save(tmp_path / "rows.npy", graph.row_idx)
    mapped, written = np.load(tmp_path / "rows.npy", mmap_mode="r"), np.array(graph.row_idx)
    read_only = written.view()
    read_only.flags.writeable = False
    unpickled = pickle.loads(pickle.dumps(written, 2))  # it is in constant bytes, and can be written to
    not_copied, copied = (graph.row_idx, mapped), (written, read_only, unpickled)
    for rows in (*not_copied, *copied):
        again = Graph(graph.col_ptr, rows)
        assert again.equals(graph)
        assert np.shares_memory(again.row_idx, rows) == any(rows is other for other in not_copied)


def test_copies_of_a_graph_are_read_only():
    graph = generate.rmat(6, seed=1).ordered("degree")
    pickled = (pickle.loads(pickle.dumps(graph, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1))
    for again in (copy.copy(graph), copy.deepcopy(graph), *pickled):
        assert again.equals(graph)
        assert not any(array.flags.writeable for array in (again.col_ptr, again.row_idx, again.rank, again.labels))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100 if sampling.full else 2))
def test_writes_to_what_a_graph_hands_out_or_is_made_of_do_not_change_it(seed):
    """NumPy and SciPy refuse them, or they are to a copy."""
    chance = random.Random(seed)
    handed_out, writes = (re.split(r";|\n", text.strip()) for text in (HANDED_OUT, WRITES))
    source = generate.rmat(6, seed=seed) if seed % 2 else generate.copapers(50, 12, seed=seed)
    labels = np.arange(source.n) if seed % 4 < 2 else list(range(source.n))
    names = globals() | {
        "copy": copy,
        "col_ptr": np.array(source.col_ptr),
        "row_idx": np.array(source.row_idx),
        "labels": labels,
    }
    graph = Graph(names["col_ptr"], names["row_idx"], labels=labels)
    expected = facts(graph)
    for _ in range(100):
        names["g"] = chance.choice([graph, graph.ordered("degree"), graph.reordered(range(graph.n))])
        names["x"], names["k"] = eval(chance.choice(handed_out).strip(), names), chance.choice([1, -1, 7, 10**8])
        for write in chance.sample(writes, 3):
            with contextlib.suppress(Exception):
                exec(write.strip(), names)
    assert facts(graph) == expected
