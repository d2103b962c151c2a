"""DeviceGraph: a graph's columns on the device, made there from raw edges.

The same columns as a Graph's, from the same input. In natural order threads sort the columns if all are short. All
other edges are sorted at once by CuPy. Few numbers are copied to the host on the way: the least and largest vertex,
what a count costs in each order, and how many different edges there are.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from tcgpu.arrays import locked, unmasked
from tcgpu.engines import runtime
from tcgpu.foreign_graphs import check_relabel
from tcgpu.gpu_costs import MANY_EDGES, MOSTLY_NEW, SHORT_COLUMN, SHORT_NEARBY, SMALL
from tcgpu.graph import (
    Graph,
    GraphError,
    Order,
    as_graph,
    check_inferred,
    checked_marks,
    edge_arrays,
    known_count,
    known_order,
)
from tcgpu.kernels import fitting, orientation, run
from tcgpu.kernels.device import columns
from tcgpu.kernels.device.warp import WARP
from tcgpu.kernels.edge_sums import VERY_MANY, degrees_of_edges, describe_edges, estimate_edges
from tcgpu.kernels.prefix_sum import scan

INT64 = np.dtype(np.int64)
MOST_SHORT = 1 << 16  # an edge between two of these has a key of 32 bits


@dataclass(eq=False, repr=False)
class DeviceGraph:
    """A simple undirected graph on the device; its columns, `order`, `rank` and `name` are as a Graph's.

    Its arrays must not be written to: unlike those of a Graph they cannot be made read-only on a GPU, and kernels rely
    on them unchecked. `to_graph` checks them.
    """

    n: int
    col_ptr: Any
    row_idx: Any
    col_of: Any
    order: str = "natural"
    rank: Any = None
    name: str | None = None
    natural_ids: Any = None  # the id of each vertex before `rank` is applied, or a function that returns these; None
    # where vertex v is simply v
    degrees: Any = None  # in degree order, if known: of each vertex, or a little more, as repeats and loops count; then
    most_in_edges: int = 0  # is their sum less the rows of all columns
    may_sample = False  # whether `order_costs` may be `sampled`, as those of raw edges are

    @classmethod
    @fitting("the graph")
    def from_edges(
        cls, u: Any, v: Any, n: int | None = None, *, relabel: bool = False, order: Order = "natural",
        clean: bool = False, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Make a graph from two arrays of vertex numbers, on the host or device, with loops and duplicates.

        n, relabel: as in `Graph.from_edges`; the ids are sorted on the device.
        clean: the edges have no loops and no duplicates in either direction; this is not checked.
        """
        u, v = edges_on_device(u, v)
        ids = None
        if relabel:
            check_relabel(n)
            u, v, n, ids = _compact(u, v)
        n, check = vertices(u, v, n)
        return cls.of_vertices(u, v, n, check, known_order(order), clean, name, ids)

    @classmethod
    def of_vertices(cls, u, v, n, check, order, clean=False, name=None, ids=None):
        """Make a graph of what `edges_on_device` and `vertices` return; the other arguments are those of `from_edges`,
        and the ids of the vertices."""
        order, known = _chosen(u, v, n, order, check)
        if order == "degree":
            made = cls._by_rank(u, v, n, known.rank, clean, name, ids)
        elif order == "natural":
            made = cls(n, *_natural_columns(u, v, n, clean, known), name=name, natural_ids=ids)
        else:
            raise GraphError(f"on a device vertices are numbered by degree or as they come, not by order {order!r}")
        if made.m > MOSTLY_NEW * u.size:
            made.degrees, made.most_in_edges = known.degrees, 2 * u.size - made.m
            if known.costs:
                made.order_costs = known.costs
        made.may_sample = order == "natural"
        return made

    @classmethod
    def _by_rank(cls, u, v, n, rank, clean, name, ids):
        """Make a graph in degree order from device arrays whose numbers are checked."""
        return cls(n, *_sorted_columns(u, v, n, clean, rank), "degree", rank, name, ids)

    @classmethod
    @fitting("the graph")
    def from_graph(cls, graph: Any) -> Self:
        """A copy of a Graph's columns, in the order that it has; `col_of` is made on the device, `ids` if asked for."""
        col_ptr, row_idx = (on_device(array, "columns") for array in (graph.col_ptr, graph.row_idx))
        col_of = _empty(row_idx, row_idx.size, np.int32)
        run(columns.find_columns, row_idx.size, col_ptr, col_of)
        ids = partial(_natural_ids, graph)
        return cls(graph.n, col_ptr, row_idx, col_of, graph.order, graph.rank, graph.name, natural_ids=ids)

    def to_graph(self) -> Graph:
        """Copy the columns to a Graph, whose `ids` are this one's."""
        ids = None if self.ids is None else runtime.to_host(self.ids)
        columns = [runtime.to_host(array) for array in (self.col_ptr, self.row_idx)]
        if columns[0] is not self.col_ptr:  # these are copies, and need no other
            columns = map(locked, columns)
        return Graph(*columns, labels=ids, name=self.name, order=self.order)

    @cached_property
    def ids(self) -> Any:
        """The id of each vertex, an array on the device; None where that is v itself, or a name that is no integer."""
        ids = self.natural_ids() if callable(self.natural_ids) else self.natural_ids
        if self.rank is None:
            return ids
        xp = runtime.arrays_of(self.col_ptr)
        source = xp.empty(self.n, INT64)
        source[xp.asarray(self.rank)] = xp.arange(self.n)
        return source if ids is None else ids[source]

    @property
    def _ids_now(self):
        """`ids`, or the function that returns them: the `natural_ids` of a graph that is made of this one."""
        return self.natural_ids if self.rank is None else self.ids

    @fitting("the graph in another order")
    def ordered(self, order: Order) -> Self:
        """The same graph in degree order, made once, or itself; `auto` takes the one that costs less."""
        if known_order(order) == "auto":
            order = self.order if self.order == "degree" or self.m <= SMALL else self.order_costs.best()
        return self if order in ("natural", self.order) else self._by_degree

    @cached_property
    def order_costs(self) -> Any:
        """What a count costs in each way, if this order is the natural one."""
        return self._describe(self.may_sample)

    def _describe(self, may_sample):
        costs, degrees, _ = describe_edges(self.row_idx, self.col_of, self.n, may_sample=may_sample)
        if self.order != "degree" and "_by_degree" not in vars(self):
            self._degrees = degrees.copy()  # without the other arrays that are in the same memory
        return costs

    def describe_exactly(self) -> Any:
        """Make sure that `order_costs` are not sampled, if this order is the natural one."""
        costs = vars(self).get("order_costs")
        if self.order == "natural" and (costs is None or costs.sampled):
            self.order_costs = self._describe(False)
            if "_by_degree" in vars(self):
                self._by_degree.order_costs = self.order_costs

    @cached_property
    def _by_degree(self):
        ends, degrees = (self.row_idx, self.col_of), vars(self).pop("_degrees", None)
        if degrees is None:
            degrees = degrees_of_edges([ends], self.n)
        rank, degrees = rank_by_degree(degrees)
        made = DeviceGraph._by_rank(*ends, self.n, rank, True, self.name, self._ids_now)
        made.order_costs, made.degrees, made.most_in_edges = self.order_costs, degrees, self.m
        return made

    def kept(self, keep: Any) -> "DeviceGraph":
        """The graph with the same vertices and only the edges that `keep` marks: a bool for each."""
        from tcgpu.kernels.picking import Marked  # a count needs none

        marked = Marked(runtime.to_device_library(checked_marks(keep, self.m)))
        row_idx, col_of = marked.of(self.row_idx), marked.of(self.col_of)
        col_ptr = runtime.device_array(self.n + 1, np.int64, -1)
        for step in columns.col_ptr_steps(self.n, col_of.size, col_of=col_of, col_ptr=col_ptr):
            step.run({})
        return DeviceGraph(self.n, col_ptr, row_idx, col_of, self.order, name=self.name, natural_ids=self._ids_now)

    def joined(self) -> tuple[Any, Any, Any]:
        """Which vertices have an edge, and where the columns of these begin in the rows, which have new numbers."""
        from tcgpu.kernels.picking import Marked, between, picked

        joined = between(degrees_of_edges([(self.row_idx, self.col_of)], self.n), 1, np.iinfo(np.int32).max)
        marked = Marked(joined)
        return joined, marked.of(self.col_ptr[:-1]), picked(marked.places, self.row_idx)

    @property
    def m(self) -> int:
        return self.row_idx.size

    @property
    def nonzeros_per_column(self) -> float:
        return self.m / self.n if self.n else 0.0

    @property
    def column_lengths(self) -> Any:
        return self.col_ptr[1:] - self.col_ptr[:-1]

    @cached_property
    def max_column(self) -> int:
        costs = vars(self).get("order_costs")
        if costs and costs.m == self.m and self.order == "natural":  # they are those of its edges, without repeats
            return costs.max_column
        return int(self.column_lengths.max()) if self.n else 0

    @property
    def nbytes(self) -> int:
        return self.col_ptr.nbytes + self.row_idx.nbytes + self.col_of.nbytes

    def __repr__(self):
        name = f" {self.name!r}" if self.name else ""
        return f"<DeviceGraph{name}: {self.n:,} vertices, {self.m:,} edges, {self.order} order>"


def _natural_ids(graph):
    """The id of each vertex of a Graph before its order, on the device; None where vertex v is simply v, or has a name
    that is no integer."""
    try:
        ids = graph.ids
    except (GraphError, ValueError):  # ValueError: of names that NumPy takes for arrays of different lengths
        return None
    if ids is None:
        return None
    return runtime.to_device(ids if graph.rank is None else ids[graph.rank])


def prepare(graph, order):
    """The graph that `plan` takes. On a GPU its columns are on the device; raw edges are cleaned and sorted there."""
    if runtime.current().in_main_memory:
        return as_graph(graph, order)
    if order in ("bfs", "random"):
        graph, order = as_graph(graph, order), "natural"
    if not isinstance(graph, (tuple, DeviceGraph)):
        graph = DeviceGraph.from_graph(as_graph(graph))
    if isinstance(graph, tuple):
        graph = DeviceGraph.from_edges(*edge_arrays(graph), order=order)
    return graph.ordered(order)


def engine_for(graph, engine=None):
    """The engine that is named; else a GPU that there is, if the graph has many edges; else the CPU."""
    edges = len(graph[0]) if isinstance(graph, tuple) else graph.m
    return engine or ("gpu" if runtime.ENGINE == "gpu" and edges >= MANY_EDGES else "cpu")


def order_for_tallies(graph, order):
    """The order to count the triangles of each edge or vertex in; `auto` takes the one that costs less."""
    if order == "auto" and isinstance(graph, DeviceGraph) and graph.m > SMALL:
        graph.describe_exactly()
        return graph.order_costs.best_for_tallies()
    return order


def on_device(array, what):
    """The array as a contiguous device array (CuPy; NumPy in the simulator) of 32- or 64-bit integers."""
    array = runtime.to_device_library(unmasked(array, what))
    if array.ndim != 1 or array.dtype.kind not in "iu" and array.size:
        raise GraphError(f"{what} must be one-dimensional and hold whole numbers, not {array.dtype} {array.shape}")
    if array.dtype.itemsize < 4 or not array.size:
        array = array.astype(np.int32)
    if array.dtype == np.uint64:
        if int(array.max()) > np.iinfo(INT64).max:
            raise GraphError(f"{what} has {int(array.max())}, past the largest possible id, {np.iinfo(INT64).max}")
        array = array.astype(INT64)
    return runtime.arrays_of(array).ascontiguousarray(array)


def edges_on_device(u, v):
    """Two arrays of vertex numbers on the device, of one type and length."""
    u, v = on_device(u, "u"), on_device(v, "v")
    if u.size != v.size:
        raise GraphError(f"u has {u.size:,} entries and v has {v.size:,}: they are the two ends of edges")
    return (u, v) if u.dtype == v.dtype else (u.astype(INT64), v.astype(INT64))


def vertices(u, v, n):
    """The number of vertices; and, if it is given, a function that waits until all vertex numbers are known to be in
    range, and raises GraphError if one is not."""
    extent = runtime.current().device_array(2, np.int64, -1)
    run(orientation.find_extent, u.size, u, v, extent)
    read = runtime.current().reading(extent)

    def check():
        below, high = read().tolist()
        return vertices_of(~below, high, n, u.size)

    return (check(), None) if n is None else (known_count(n), check)


def vertices_of(low, high, n, edges):
    """The number of vertices; GraphError if a vertex number is out of range."""
    inferred = n is None
    n = high + 1 if inferred else known_count(n)
    if low < 0 or high >= n:
        wrong = low if low < 0 else high
        raise GraphError(f"vertices are numbered from 0 to n - 1 = {n - 1:,}; the edges have {wrong:,}")
    if inferred:
        check_inferred(n, edges)
    return n


def _compact(u, v):
    """Number the ids that occur in two arrays in ascending order, from 0, on the device: `(u, v, n, ids)`.

    `ids` (int64) is None if every id equals its vertex number.
    """
    xp = runtime.arrays_of(u)
    ids = xp.unique(xp.concatenate((xp.unique(u), xp.unique(v))))
    if not ids.size or int(ids[0]) == 0 and int(ids[-1]) == ids.size - 1:
        return u, v, ids.size, None
    u, v = (xp.searchsorted(ids, ends).astype(np.int32) for ends in (u, v))
    return u, v, ids.size, ids.astype(INT64)


def rank_by_degree(degrees):
    """(rank, the degrees in ascending order); rank[v]: the number of vertex v by ascending degree."""
    n = degrees.size
    keys, rank, ascending = (_empty(degrees, n, dtype) for dtype in (np.uint64, np.int32, np.int32))
    run(orientation.pack_numbered, n, degrees, keys)
    runtime.sort(keys)
    run(orientation.number_vertices, n, keys, rank, ascending)
    return rank, ascending


class Known(NamedTuple):
    """What is known of raw edges once an order is chosen, or None. Repeats count, and loops twice."""

    costs: Any = None  # of a count
    lengths: Any = None  # for natural order: how many rows each column has
    rank: Any = None  # for degree order, as the degrees by rank
    degrees: Any = None


def _chosen(u, v, n, order, check=None):
    """The order to take for raw edges, and what is Known of them. check: None, or called before any kernel relies on
    vertex numbers: `measure_vertices`, which does not, runs meanwhile."""
    costs = degrees = lengths = estimated = None
    if order in ("auto", "natural") and u.size > SMALL:
        estimated = order == "auto" and estimate_edges(u, v, n, check)
        costs, degrees, lengths = estimated or describe_edges(u, v, n, may_sample=True, check=check)
    elif check:
        check()
    if order == "auto":
        order = costs.best() if costs else "natural"
    if order != "degree":
        return order, Known(costs, lengths)
    rank, degrees = rank_by_degree(degrees_of_edges([(u, v)], n) if degrees is None else degrees)
    return order, Known(costs, None, rank, None if estimated else degrees)


def _natural_columns(u, v, n, clean, known):
    """`(col_ptr, row_idx, col_of)` of the distinct edges, in natural order. If `clean`, all edges are distinct."""
    if known.costs and known.costs.max_column <= (SHORT_NEARBY if known.costs.nearby else SHORT_COLUMN):
        return _short_columns(u, v, n, known.lengths, clean)
    return _sorted_columns(u, v, n, clean, _empty(u, 0, np.int32))


def _sorted_columns(u, v, n, clean, rank):
    """The same by a sort of all keys, with each vertex v replaced by rank[v] unless `rank` is empty."""
    packed = _packed(u, v, n, rank)
    for each in packed:
        runtime.sort(each.keys)
    return columns_of_keys(packed, n, clean)


class Keys(NamedTuple):
    """Keys of edges whose vertices are numbered from `first` on, with `bits` bits each."""

    keys: Any
    bits: int = 32
    first: int = 0


def _packed(u, v, n, rank):
    """The Keys of raw edges: of 32 bits where both vertices are among the last, in degree order or if all are."""
    first32 = 0 if n <= MOST_SHORT else n - MOST_SHORT if rank.size else n
    most, sizes = u.size if first32 else -(-u.size // 2), runtime.device_array(2, np.int64, 0)
    spare = most // 8 if u.size < VERY_MANY else 0  # then this memory will do for in-edges, counted with repeats
    keys = _empty(u, most + spare, np.uint64)
    keys32 = keys.view(np.uint32)
    run(orientation.pack_edges, u.size, u, v, rank, first32, keys, keys32, sizes)
    _empty(u, most, np.uint64)  # meanwhile: memory that stays reserved, first for the sort, then for the columns
    longer, shorter = runtime.reading(sizes)().tolist()
    packed = Keys(keys[:longer]), Keys(keys32[keys32.size - shorter :], 16, first32)
    return [each for each in packed if each.keys.size]


def columns_of_keys(sorted_keys, n, clean):
    """`(col_ptr, row_idx, col_of)` of the distinct edges among sorted keys; if `clean`, all keys are distinct edges.

    sorted_keys: Keys, in the order of their columns.
    """
    cuts = [0, *accumulate(-(-each.keys.size // orientation.PART) for each in sorted_keys)]
    counts, starts = (runtime.device_array(size, np.int64) for size in (cuts[-1], cuts[-1] + 1))
    if clean:
        m = 0
        for each, (begin, end) in zip(sorted_keys, pairwise(cuts), strict=True):
            starts[begin:end] = runtime.arrays_of(starts).arange(m, m + each.keys.size, orientation.PART)
            m += each.keys.size
    else:
        for each, (begin, end) in zip(sorted_keys, pairwise(cuts), strict=True):
            run(orientation.count_new, WARP * (end - begin), each.keys, counts[begin:end])
        scan(counts, starts)
        m = int(starts[-1])
    row_idx, col_of = (runtime.device_array(m, np.int32) for _ in range(2))
    col_ptr = runtime.device_array(n + 1, np.int64, -1)
    for (keys, bits, first), (begin, end) in zip(sorted_keys, pairwise(cuts), strict=True):
        args = keys, bits, first, starts[begin : end + 1], row_idx, col_of, col_ptr
        run(orientation.unpack, WARP * (end - begin), *args)
    run(columns.fill_empty_columns, n + 1, col_of, col_ptr)
    return col_ptr, row_idx, col_of


def _short_columns(u, v, n, lengths, clean):
    """As `_natural_columns`, of short columns. lengths: repeats included; the array is written to."""
    xp = runtime.arrays_of(u)
    starts, rows = xp.empty(n + 1, np.int64), xp.empty(u.size, np.int32)
    scan(lengths, starts)
    run(orientation.scatter_rows, u.size, u, v, starts[:-1].copy(), rows)
    run(orientation.sort_columns, n, starts, rows, lengths)
    if clean:
        m, col_ptr, row_idx = u.size, starts, rows
    else:
        col_ptr = xp.empty(n + 1, np.int64)
        scan(lengths, col_ptr)
        m = int(col_ptr[-1])
        row_idx = xp.empty(m, np.int32)
    col_of = xp.empty(m, np.int32)
    run(orientation.close_gaps, n, starts, rows, col_ptr, row_idx, col_of)
    return col_ptr, row_idx, col_of


def _empty(like, length, dtype):
    return runtime.arrays_of(like).empty(length, dtype)
