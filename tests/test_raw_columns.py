"""Columns of raw edges, in each way that the device makes them, against those of `Graph`."""

import numpy as np
import pytest
from sampling import share

from tcgpu import Graph, GraphError
from tcgpu.engines import runtime
from tcgpu.insight.faults import check_launch
from tcgpu.kernels import device_graph, orientation
from tcgpu.kernels.device_graph import DeviceGraph


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


@pytest.fixture
def ordered(monkeypatch):
    """An order is chosen for graphs of any size."""
    monkeypatch.setattr(device_graph, "SMALL", 10)


@pytest.mark.sim
@pytest.mark.parametrize("short", [-1, 10_000], ids=["keys", "short columns"])
@pytest.mark.parametrize("n, edges", [(2, 40), (60, 500), (900, 1000)])
@pytest.mark.parametrize("kind", share(KINDS, "raw columns", of=5))
def test_raw_edges_make_the_columns_of_a_graph(kind, n, edges, short, ordered, monkeypatch):
    for name in ("SHORT_COLUMN", "SHORT_NEARBY"):
        monkeypatch.setattr(device_graph, name, short)
    u, v, n = difficult(kind, np.random.default_rng(n), n, edges)
    for order in ("natural", "degree"):
        with runtime.using("sim"):
            same_columns(DeviceGraph.from_edges(u, v, n, order=order), u, v)


@pytest.mark.sim
@pytest.mark.parametrize("short", [-1, 10_000], ids=["keys", "short columns"])
@pytest.mark.parametrize("n, edges", [(50, 17_000), (4000, 30_000)])
@pytest.mark.parametrize("kind", KINDS)
def test_raw_edges_in_compiled_kernels(kind, n, edges, short, large, monkeypatch):
    for name in ("SHORT_COLUMN", "SHORT_NEARBY"):
        monkeypatch.setattr(device_graph, name, short)
    u, v, n = difficult(kind, np.random.default_rng(n), n, edges)
    for order in ("natural", "degree"):
        same_columns(DeviceGraph.from_edges(u, v, n, order=order), u, v)


@pytest.fixture
def two_lengths(monkeypatch):
    """Keys of 32 bits between the last 20 vertices, for graphs of any size; nothing but a sort of keys."""
    for name, value in (("MOST_SHORT", 20), ("SMALL", 10)):
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
    rank = np.random.default_rng(9).permutation(n).astype(np.int32)
    memory, sizes = np.full(u.size, -1).view(np.uint64), np.zeros(2, np.int64)
    keys32 = memory.view(np.uint32)
    args = u.astype(np.int32), v.astype(np.int32), rank, first32, memory, keys32, sizes
    assert not check_launch(orientation.pack_edges.py_func, 2, 64, args)
    a, b = rank[u][u != v].astype(np.uint64), rank[v][u != v].astype(np.uint64)
    low, high = np.minimum(a, b), np.maximum(a, b)
    longer, last = low < first32, np.uint64(first32)
    assert sizes.tolist() == [longer.sum(), (~longer).sum()]
    expected = (low << np.uint64(32) | high)[longer]
    assert sorted(memory[: sizes[0]]) == sorted(expected)
    expected = ((low - last) << np.uint64(16) | high - last)[~longer]
    assert sorted(keys32[keys32.size - sizes[1] :]) == sorted(expected)


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


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_on_a_gpu(kind, dtype):
    shapes = [(50, 20_000), (70_000, 500_000), (3000, 900_000), (1 << 22, 2_000_000), (90_000, 3_000_000)]
    for seed, (n, edges) in enumerate(shapes):
        u, v, n = difficult(kind, np.random.default_rng(seed), n, edges)
        for order in ("natural", "degree"):
            same_columns(DeviceGraph.from_edges(u.astype(dtype), v.astype(dtype), n, order=order), u, v)
