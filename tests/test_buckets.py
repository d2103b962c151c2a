"""Columns of raw edges by buckets, and the other ways on the device, against those of `Graph`."""

import numpy as np
import pytest
from sampling import share

from tcgpu import Graph, GraphError, generate
from tcgpu.engines import runtime
from tcgpu.insight.faults import check_launch
from tcgpu.kernels import buckets, device_graph, orientation
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.order_costs import OrderCosts
from tcgpu.kernels.prefix_sum import scan


def difficult(kind, random, n, edges):
    """Raw edges of a kind."""
    u, v = random.integers(0, n, (2, edges))
    if kind == "near each other":
        v = np.minimum(n - 1, u + random.geometric(0.05, edges))
    elif kind == "hubs first":
        u //= max(1, n // 8)
    elif kind == "few vertices":
        few = random.integers(0, n, 9)
        u, v = few[u % 9], few[v % 9]
    elif kind == "sorted":
        u.sort()
    return u, v, n


KINDS = ("random", "near each other", "hubs first", "few vertices", "sorted")


def same_columns(made, u, v):
    """Check a DeviceGraph against the distinct edges of u and v."""
    rank = np.arange(made.n) if made.rank is None else runtime.to_host(made.rank).astype(np.int64)
    ends = rank[np.asarray(u, np.int64)], rank[np.asarray(v, np.int64)]
    column, row = np.minimum(*ends), np.maximum(*ends)
    column, row = np.divmod(np.unique((column * made.n + row)[column != row]), made.n)
    col_ptr, row_idx, col_of = map(runtime.to_host, (made.col_ptr, made.row_idx, made.col_of))
    assert np.array_equal(col_of, column) and np.array_equal(row_idx, row)
    assert np.array_equal(col_ptr, np.searchsorted(column, np.arange(made.n + 1)))
    assert made.max_column == np.diff(col_ptr).max(initial=0)
    if made.order == "degree":
        assert np.array_equal(runtime.to_host(made.degrees), np.bincount([*column, *row], minlength=made.n))


@pytest.fixture
def few_in_a_bucket(monkeypatch):
    """Buckets of about 16 keys, for graphs of any size without short columns."""
    for module, name, value in (
        (buckets, "SIZE_BITS", 4), (device_graph, "SMALL", 10), (device_graph, "SHORT_COLUMN", -1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def made_by_buckets(monkeypatch):
    """The graphs whose columns were made by buckets: a list of what `columns_by_bucket` was called with."""
    made_by, own = [], buckets.columns_by_bucket
    monkeypatch.setattr(buckets, "columns_by_bucket", lambda *args: (made_by.append(args), own(*args))[1])
    return made_by


@pytest.mark.sim
@pytest.mark.parametrize("n, edges", [(2, 40), (60, 500), (900, 1000)])
@pytest.mark.parametrize("kind", share(KINDS, "buckets", of=5))
def test_buckets_make_the_columns_of_a_graph(kind, n, edges, few_in_a_bucket, made_by_buckets):
    u, v, n = difficult(kind, np.random.default_rng(n), n, edges)
    for order in ("natural", "degree"):
        with runtime.using("sim"):
            same_columns(DeviceGraph.from_edges(u, v, n, order=order), u, v)
    assert len(made_by_buckets) == 1


@pytest.mark.sim
@pytest.mark.parametrize("n, edges", [(50, 17_000), (4000, 30_000)])
@pytest.mark.parametrize("kind", KINDS)
def test_buckets_of_compiled_kernels(kind, n, edges, large, made_by_buckets, monkeypatch):
    monkeypatch.setattr(device_graph, "SHORT_COLUMN", -1)
    u, v, n = difficult(kind, np.random.default_rng(n), n, edges)
    for order in ("natural", "degree"):
        same_columns(DeviceGraph.from_edges(u, v, n, order=order), u, v)
    assert len(made_by_buckets) == 1


@pytest.mark.sim
@pytest.mark.parametrize("order", ["auto", "degree"])
def test_degrees_keep_no_other_memory(order, few_in_a_bucket, monkeypatch):
    monkeypatch.setattr(OrderCosts, "best", lambda costs: "degree")
    u, v, n = difficult("hubs first", np.random.default_rng(7), 60, 500)
    with runtime.using("sim"):
        made = DeviceGraph.from_edges(u, v, n, order=order)
        same_columns(made, u, v)
    assert made.order == "degree" and made.degrees.base is None


@pytest.mark.sim
def test_columns_that_do_not_fit_a_block_are_sorted(few_in_a_bucket, monkeypatch):
    monkeypatch.setattr(buckets, "columns_by_bucket", lambda *args: pytest.fail("a bucket is too large"))
    hub = np.arange(1, 6001)
    with runtime.using("sim"):
        assert DeviceGraph.from_edges(0 * hub, hub).max_column == hub.size


@pytest.fixture
def two_lengths(monkeypatch):
    """Keys of 32 bits between the last 20 vertices, for graphs of any size; nothing but a sort of keys."""
    for name, value in (("MOST_SHORT", 20), ("FEW_RAW", 0), ("SMALL", 10)):
        monkeypatch.setattr(device_graph, name, value)


@pytest.mark.sim
@pytest.mark.parametrize("n, edges", [(1, 5), (20, 40), (21, 300), (60, 500), (900, 1000), (900, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_two_lengths_make_the_columns_of_a_graph(kind, n, edges, two_lengths, compiled_kernels):
    u, v, n = difficult(kind, np.random.default_rng(n), n, edges)
    same_columns(DeviceGraph.from_edges(u, v, n, order="degree"), u, v)
    clean = Graph.from_edges(u, v, n).edges()
    same_columns(DeviceGraph.from_edges(*clean, n, order="degree", clean=True), *clean)


@pytest.mark.sim
@pytest.mark.parametrize("last", [20, 100])
def test_loops_have_no_keys(last, two_lengths, monkeypatch):
    monkeypatch.setattr(device_graph, "MOST_SHORT", last)
    loops = np.arange(50)
    with runtime.using("sim"):
        same_columns(DeviceGraph.from_edges(loops, loops, 60, order="degree"), loops, loops)


@pytest.mark.sim
@pytest.mark.parametrize("first32", [0, 40, 60])
def test_keys_are_packed_without_faults(first32):
    u, v, n = difficult("hubs first", np.random.default_rng(8), 60, 300)
    rank, degrees = np.random.default_rng(9).permutation(n).astype(np.int32), np.zeros(n, np.int32)
    memory, sizes = np.full(u.size, orientation.NO_EDGE).view(np.uint64), np.zeros(2, np.int64)
    keys32 = memory.view(np.uint32)
    args = u.astype(np.int32), v.astype(np.int32), rank, degrees, first32, memory, keys32, sizes
    assert not check_launch(orientation.pack_edges.py_func, 2, 64, args)
    a, b = rank[u][u != v].astype(np.uint64), rank[v][u != v].astype(np.uint64)
    low, high = np.minimum(a, b), np.maximum(a, b)
    longer, last = low < first32, np.uint64(first32)
    assert sizes.tolist() == [longer.sum(), (~longer).sum()]
    expected = (low << np.uint64(32) | high)[longer]
    assert sorted(memory[: sizes[0]]) == sorted(expected)
    expected = ((low - last) << np.uint64(16) | high - last)[~longer]
    assert sorted(keys32[keys32.size - sizes[1] :]) == sorted(expected)
    assert np.array_equal(degrees, -2 * np.bincount(rank[u[u == v]], minlength=n))


@pytest.mark.sim
@pytest.mark.parametrize("order", ["auto", "natural", "degree"])
@pytest.mark.parametrize("wrong", [-1, 60, 2**31 + 3, -(2**40), 2**40 + 1])
def test_a_vertex_out_of_range_is_named_before_memory_is_read_by_it(order, wrong, two_lengths):
    """The simulator stops kernels that use such a number; where n is given, `measure_vertices` runs first."""
    u = np.arange(50)
    v = u[::-1].copy()
    u[7] = wrong
    with runtime.using("sim"), pytest.raises(GraphError, match=f"n - 1 = 59; the edges have {wrong:,}"):
        DeviceGraph.from_edges(u, v, 60, order=order)


def test_weights_keep_every_column_of_a_bucket_within_32_bits():
    for n in (1, 2, 1 << 20, 1 << 21, (1 << 21) + 1, (1 << 24) - 5, 1 << 31):
        columns = (1 << buckets.SIZE_BITS) / buckets._weight(n)  # of a bucket, at most
        assert buckets._weight(n) == 1 or columns * 2 ** buckets._row_bits(n) <= 2**32
    assert buckets.suit(1 << 24, 1 << 28, 500)
    assert not buckets.suit(1 << 27, 1 << 28, 500)  # most buckets would have few keys


@pytest.mark.sim
def test_buckets_have_no_faults(few_in_a_bucket):
    u, v, n = difficult("near each other", np.random.default_rng(3), 90, 300)
    u, v = u.astype(np.int32), v.astype(np.int32)
    low, high = np.minimum(u, v), np.maximum(u, v)
    lengths = np.bincount(low[low != high], minlength=n).astype(np.int32)
    starts, weight, row_bits = np.empty(n + 1, np.int64), 1, 7
    scan(lengths, starts)
    number = (u.size + weight * n >> buckets.SIZE_BITS) + 1
    first_column, cursor = np.full(number + 1, -1, np.int32), np.full(number, -1)
    keys, counts, bucket_ptr = np.zeros(u.size, np.uint32), np.zeros(number, np.int32), np.empty(number + 1, np.int64)
    room = buckets._room(lengths.max())
    assert not check_launch(buckets.find_buckets.py_func, 1, 64, (starts, weight, first_column, cursor))
    args = u, v, starts, weight, row_bits, first_column, cursor, keys
    assert not check_launch(buckets.scatter_edges.py_func, 1, 64, args)
    args = keys, starts, first_column, row_bits, room, counts
    assert not check_launch(buckets.sort_buckets.py_func, 2, 64, args, shared=buckets._shared_bytes(room))
    scan(counts, bucket_ptr)
    row_idx, col_of, col_ptr = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.int32), np.empty(n + 1, int)
    args = keys, starts, first_column, bucket_ptr, row_bits, row_idx, col_of, col_ptr
    assert not check_launch(buckets.unpack_buckets.py_func, 2, 64, args)
    same_columns(DeviceGraph(n, col_ptr, row_idx, col_of), u, v)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_on_a_gpu(kind, dtype):
    shapes = [(50, 20_000), (70_000, 500_000), (3000, 900_000), (1 << 22, 2_000_000), (90_000, 3_000_000)]
    for seed, (n, edges) in enumerate(shapes):
        u, v, n = difficult(kind, np.random.default_rng(seed), n, edges)
        for order in ("natural", "degree"):
            same_columns(DeviceGraph.from_edges(u.astype(dtype), v.astype(dtype), n, order=order), u, v)


@pytest.mark.gpu
def test_large_buckets_on_a_gpu():
    graph = generate.clique(6000)  # columns of up to 5999 rows
    u, v = np.random.default_rng(5).permuted(graph.edges(), axis=0).astype(np.int32)
    with runtime.using("gpu"):
        assert buckets.suit(graph.n, 2 * graph.m, 2 * 5999)
        made = DeviceGraph.from_edges(np.append(u, v), np.append(v, u), order="natural")
    assert made.to_graph().equals(Graph(graph.col_ptr, graph.row_idx))
