"""Graph: a simple undirected graph as the columns of its strictly lower triangular matrix L.

Column j holds the sorted neighbours i > j of vertex j: `row_idx[col_ptr[j]:col_ptr[j + 1]]`. A graph has no loops, and
each edge once; `graph.cleaned` says how many loops and repeated edges of its source were dropped.

A graph does not change: native code relies on its arrays. It holds them `locked`, copies those of a caller, and hands
out a new view each time, because NumPy lets a caller change the shape and type even of an array that is read-only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from tcgpu import clean
from tcgpu.arrays import bincount, is_locked, locked, repeat, unmasked
from tcgpu.errors import GraphError, MethodError, needing, roomy
from tcgpu.suggest import check_known

Order = Literal["natural", "degree", "bfs", "random", "auto"]  # of the vertices
ORDERS: tuple[str, ...] = get_args(Order)
BLOCK = 1 << 20  # pointers whose differences are in memory at a time
MAX_PER_END = 64  # without `n`, more vertices than this for each end of an edge are refused,
ALWAYS_ALLOWED = 1 << 22  # unless there are no more than these, which take 40 MB and a tenth of a second


Labels = Sequence | np.ndarray | None


class Names(list):
    """The names of vertices: a list that cannot be changed."""

    def _refuse(self, *args: Any, **options: Any) -> Any:
        raise GraphError("the labels of a graph do not change; list(graph.labels) makes a list that does")

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self) -> tuple:
        return Names, (list(self),)


@dataclass(frozen=True)
class Cleaned:
    """What was dropped: loops, repeats of an edge in a direction already seen, and the second direction of an edge."""

    loops: int = 0
    duplicates: int = 0
    reversed: int = 0

    def __str__(self) -> str:
        counts = (self.loops, "loop"), (self.duplicates, "duplicate"), (self.reversed, "reversed pair")
        dropped = [f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count]
        return "dropped " + ", ".join(dropped) if dropped else "nothing dropped"


class Graph:
    """A simple undirected graph on vertices 0..n-1 with m edges, stored as sorted columns.

    It does not change: all its arrays are read-only, and `array.copy()` makes one to write to.

    Parameters
    ----------
    col_ptr, row_idx
        The columns: each strictly ascending, with all rows larger than the column's number.
    labels
        The source's name of each vertex.
    validate
        Whether to check the columns; GraphError names the first wrong one. Without, wrong ones may end the process.
    """

    def __init__(
        self,
        col_ptr: Any,
        row_idx: Any = None,
        *,
        labels: Labels = None,
        name: str | None = None,
        order: str = "natural",
        cleaned: Cleaned | None = None,
        validate: bool = True,
    ) -> None:
        if row_idx is None:
            from tcgpu.foreign_graphs import not_here

            raise not_here(col_ptr)
        self._col_ptr = _held(_integers(col_ptr, "col_ptr"), np.int64)
        row_idx = _integers(row_idx, "row_idx")
        if row_idx.dtype != np.int32 and row_idx.size:
            if not 0 <= int(row_idx.min()) <= int(row_idx.max()) < clean.MAX_VERTICES:
                raise GraphError(f"row_idx holds numbers outside 0..{clean.MAX_VERTICES - 1}")
        self._row_idx = _held(row_idx, np.int32)
        self._rank: np.ndarray | None = None
        self.n: int = self._col_ptr.size - 1  #: the number of vertices
        self.m: int = self._row_idx.size  #: the number of edges
        self.name = name  #: None if it has none
        self.order = order  #: how the vertices are numbered
        self.folder: Path | None = None  #: the folder whose files hold the columns, mapped into memory
        self.folder_state: tuple | None = None  # `formats.binary.file_state` of the folder
        self.cleaned = cleaned or Cleaned()  #: what was dropped from the source
        self._source_labels = _checked_labels(labels, self.n)
        self._orders: dict[tuple[str, int], Self] = {}
        if validate:
            self._validate()

    @classmethod
    @roomy
    def from_edges(
        cls,
        u: Any,
        v: Any = None,
        n: int | None = None,
        *,
        relabel: bool = False,
        labels: Labels = None,
        name: str | None = None,
        order: Order = "natural",
    ) -> Self:
        """Make a graph from edges `u[k] - v[k]`, in any order and direction, with loops and duplicates.

        Parameters
        ----------
        u, v
            Integers: lists, NumPy, Arrow or pandas columns, and device arrays of any library that has DLPack or
            `__cuda_array_interface__`. Floats are refused, even whole ones, and so are arrays with masked entries.
            Without `v`, `u` is a list of pairs, one array of shape (edges, 2), a graph of igraph, networkit, graph-tool
            or PyG, or a table, of pandas or Arrow: its columns named source and target, or alike, or its only two.
        n
            The number of vertices; by default the largest number plus one. The default is refused, before memory is
            allocated, if it is more than 64 vertices for each end of an edge, and more than 4 million.
        relabel
            The ends are ids, any integers of 64 bits, or names: text, or all else that can be hashed, but floats. The
            vertices are those that occur, in ascending order, and `graph.labels[v]` is the id or name of vertex v; so
            is `graph.ids[v]` if they are integers (both are None if every id equals its vertex number).
        order
            Number the vertices in this order at once, which saves the second sort of `ordered`. Degrees then include
            repeated edges.
        """
        if relabel or v is None and not isinstance(u, (list, np.ndarray)):
            from tcgpu.foreign_graphs import edges_of

            u, v, n, labels = edges_of(u, v, n, labels, relabel)
        if v is None:
            u, v = two_columns(u)
        u, v = _same_type(_integers(u, "u"), _integers(v, "v"))
        if relabel and n is None:
            u, v, n, names = clean.compact(u, v)
            labels = names if names is None else locked(names)
        n = _vertex_count(n, u, v)
        if known_order(order) == "auto":
            from tcgpu.sampled_order import faster_order

            order = faster_order(u.size, n, lambda drawn: (u[drawn], v[drawn]))
        rank = clean.rank_by_degree(clean.occurrences(n, u, v)) if order == "degree" else None
        col_ptr, row_idx, *dropped, longest = clean.clean_columns(u, v, n, rank)
        graph = cls(
            locked(col_ptr), locked(row_idx), labels=labels, name=name, cleaned=Cleaned(*dropped), validate=False
        )
        graph.max_column = longest
        if rank is None:
            return graph.ordered(order)
        graph.order, graph._rank = order, locked(rank)
        return graph

    @classmethod
    def from_scipy(cls, matrix: Any, *, name: str | None = None) -> Self:
        """Make a graph from a square SciPy sparse matrix or array.

        Every nonzero entry is an edge, in one direction or both. Values stored more than once for one entry are added
        up first, as in SciPy.
        """
        from tcgpu.foreign_graphs import scipy_edges

        row, col = scipy_edges(matrix)
        return cls.from_edges(row, col, matrix.shape[0], name=name)

    @classmethod
    def from_networkx(cls, graph: Any, *, name: str | None = None) -> Self:
        """Make a graph from any NetworkX graph; its nodes become `labels`, directed edges lose their direction."""
        from tcgpu.foreign_graphs import networkx_edges

        labels, u, v, _ = networkx_edges(graph)
        return cls.from_edges(u, v, len(graph), labels=labels, name=name or graph.name or None)

    @classmethod
    def from_csr(
        cls, indptr: Any, indices: Any, n: int | None = None, *, labels: Labels = None, name: str | None = None
    ) -> Self:
        """Make a graph from compressed rows (or columns: the graph is the same), in one direction or both."""
        indptr = _integers(indptr, "indptr").astype(np.int64, copy=False)
        indices = _integers(indices, "indices")
        rows = indptr.size - 1
        _check_pointers(indptr, indices.size, "indptr")
        if n is not None and n < rows:
            raise GraphError(f"indptr has {rows} rows, more than n = {n}")
        u = repeat(np.arange(rows, dtype=np.int64 if indices.dtype.itemsize > 4 else np.int32), np.diff(indptr))
        return cls.from_edges(u, indices, rows if n is None else n, labels=labels, name=name)

    @property
    def col_ptr(self) -> np.ndarray:
        """The n + 1 offsets of the columns in `row_idx` (int64)."""
        return self._col_ptr.view()

    @property
    def row_idx(self) -> np.ndarray:
        """The m nonzeros of L (int32)."""
        return self._row_idx.view()

    @property
    def rank(self) -> np.ndarray | None:
        """`rank[v]`: the number here of vertex v of the graph that this one was ordered from; None in natural order."""
        return self._rank if self._rank is None else self._rank.view()

    @property
    def labels(self) -> list | np.ndarray | None:
        """The source's name of each vertex (an integer, text, or a NetworkX node); None if vertex v is named v."""
        return self._labels.view() if isinstance(self._labels, np.ndarray) else self._labels

    @cached_property
    def _labels(self):
        labels = self._source_labels
        if self._rank is None:
            return labels
        source = np.empty(self.n, np.int64)
        source[self._rank] = np.arange(self.n)
        if isinstance(labels, list):
            return Names(labels[v] for v in source)
        return locked(source if labels is None else labels[source])

    @property
    def ids(self) -> np.ndarray | None:
        """The `labels` as an array of integers; None if vertex v is named v; GraphError if they are not integers."""
        if self.labels is None:
            return None
        numbers = np.asarray(self.labels) if self.n else np.empty(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise GraphError("the vertices of this graph are not called by whole numbers; graph.labels has their names")
        return numbers

    @property
    def col_of(self) -> np.ndarray:
        """The column of each nonzero (int32, m)."""
        return self._col_of.view()

    @cached_property
    def _col_of(self):
        return locked(clean.column_of_each(self._col_ptr, self.m))

    @property
    def degrees(self) -> np.ndarray:
        """The number of neighbours of each vertex: the length of its column and of its row of L."""
        return self._degrees.view()

    @cached_property
    def _degrees(self):
        return locked(clean.degrees(self._col_ptr, self._row_idx))

    @property
    def column_lengths(self) -> np.ndarray:
        """The number of nonzeros in each column."""
        return np.diff(self._col_ptr)

    @property
    def nonzeros_per_column(self) -> float:
        """The mean length of the columns, m / n."""
        return self.m / self.n if self.n else 0.0

    @cached_property
    def max_column(self) -> int:
        """The length of the longest column."""
        return max((int(lengths.max()) for lengths in _differences(self._col_ptr)), default=0)

    @cached_property
    def max_degree(self) -> int:
        """The largest number of neighbours."""
        return int(self._degrees.max(initial=0))

    @property
    def nbytes(self) -> int:
        """Bytes of the columns: `col_ptr` and `row_idx`."""
        return self._col_ptr.nbytes + self._row_idx.nbytes

    def column_histogram(self) -> list[tuple[int, int, int]]:
        """How many columns have 0, 1, 2-3, 4-7, ... nonzeros: a list of (shortest, longest, columns)."""
        exponent = np.frexp(self.column_lengths.astype(np.float64))[1]  # 0 for an empty column, else 1 + log2
        counts = bincount(exponent, minlength=1)
        return [(1 << e >> 1, max((1 << e) - 1, 0), int(count)) for e, count in enumerate(counts)]

    @property
    def adjacency(self) -> tuple[np.ndarray, np.ndarray]:
        """All neighbours of each vertex, sorted, as CSR `(indptr, indices)`."""
        indptr, indices = self._adjacency
        return indptr.view(), indices.view()

    @cached_property
    def _adjacency(self):
        indptr, indices = clean.adjacency(self._col_ptr, self._row_idx, self._degrees)
        return locked(indptr), locked(indices)

    def column(self, j: int) -> np.ndarray:
        """The sorted rows of column j."""
        return self._row_idx[self._col_ptr[j] : self._col_ptr[j + 1]]

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """The edges as two arrays, rows i and columns j with i > j, column after column."""
        return self.row_idx, self.col_of

    def ordered(self, order: Order, seed: int = 0) -> Self:
        """The same graph with its vertices numbered in another order; made once, then remembered.

        Parameters
        ----------
        order
            `degree`: by ascending degree, which keeps columns short; `bfs`: breadth first; `random`: by `seed`;
            `natural`: unchanged; `auto`: `degree` if a sample of edges says that counts get faster, else `natural`.

        Returns
        -------
        Graph
            Its `rank[v]` is the new number of this graph's vertex v.
        """
        if known_order(order) == "auto":
            order = self._auto
        if order == "natural" or order == self.order == "degree":
            return self
        key = (order, seed if order == "random" else 0)
        if key not in self._orders:
            self._orders[key] = self._renumbered(self._rank_in(order, seed), order)
        return self._orders[key]

    def reordered(self, rank: Any, *, order: str = "given") -> Self:
        """The same graph in which vertex v has the number `rank[v]`, a permutation of 0..n-1."""
        rank = _integers(rank, "rank")
        if not np.array_equal(np.sort(rank), np.arange(self.n)):
            raise GraphError(f"a rank is a permutation of 0..{self.n - 1}")
        return self._renumbered(rank.astype(np.int32), order)

    def kept(self, keep: Any) -> Self:
        """The graph with the same vertices and only some of the edges.

        Parameters
        ----------
        keep
            A bool for each edge, in the order of `edges()`.
        """
        kept = np.flatnonzero(checked_marks(_to_host(keep, "keep"), self.m))
        columns = locked(np.searchsorted(kept, self._col_ptr)), locked(self._row_idx[kept])
        return type(self)(*columns, labels=self.labels, name=self.name, validate=False)

    def lower(self) -> Any:
        """L as a SciPy CSC array of ones; its arrays are copies."""
        with needing("a SciPy matrix"):
            from scipy.sparse import csc_array

        arrays = np.ones(self.m, np.int64), self._row_idx.copy(), self._col_ptr.copy()
        return csc_array(arrays, shape=(self.n, self.n))

    def to_scipy(self) -> Any:
        """The symmetric adjacency matrix as a SciPy CSR array of ones; its arrays are copies."""
        with needing("a SciPy matrix"):
            from scipy.sparse import csr_array

        indptr, indices = (array.copy() for array in self._adjacency)
        return csr_array((np.ones(2 * self.m, np.int64), indices, indptr), shape=(self.n, self.n))

    def to_networkx(self) -> Any:
        """A `networkx.Graph` whose nodes are the labels."""
        import networkx as nx

        graph = nx.Graph(name=self.name) if self.name else nx.Graph()
        label = names_of(self).__getitem__
        graph.add_nodes_from(map(label, range(self.n)))
        graph.add_edges_from(zip(map(label, self.col_of.tolist()), map(label, self.row_idx.tolist()), strict=True))
        return graph

    def equals(self, other: "Graph") -> bool:
        """Whether two graphs have the same vertices (labels, too) and edges."""
        columns = (self.col_ptr, other.col_ptr), (self.row_idx, other.row_idx)
        return all(np.array_equal(*pair) for pair in columns) and list(names_of(self)) == list(names_of(other))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return (
            f"<Graph{name}: {self.n:,} vertices, {self.m:,} edges, {self.nonzeros_per_column:.2f} nonzeros per column "
            f"(at most {self.max_column:,}), {self.order} order; {self.cleaned}>"
        )

    def _repr_html_(self) -> str:
        from tcgpu.markup import element

        facts = {"graph": self.name or "", "vertices": f"{self.n:,}", "edges": f"{self.m:,}", "order": self.order}
        facts |= {"nonzeros per column": f"{self.nonzeros_per_column:.2f}", "cleaned": str(self.cleaned)}
        return element("table", *(element("tr", element("th", name), element("td", facts[name])) for name in facts))

    def __getstate__(self) -> dict[str, Any]:
        """The state that is sent to another process: the columns, without the values computed from them."""
        derived = ("_labels", "max_column", "_col_of", "_degrees", "max_degree", "_adjacency", "_auto")
        return {name: value for name, value in self.__dict__.items() if name not in derived} | {"_orders": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Lock the arrays: those of a pickle or of a deep copy can be written to."""
        arrays = {name: locked(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        self.__dict__.update(state | arrays)

    @cached_property
    def _auto(self):
        """The order that "auto" stands for."""
        from tcgpu.sampled_order import faster_order

        column = partial(np.searchsorted, self._col_ptr, side="right")
        return faster_order(self.m, self.n, lambda drawn: (self._row_idx[drawn], column(drawn) - 1))

    def _rank_in(self, order, seed):
        if order == "degree":
            return clean.rank_by_degree(self._degrees)
        if order == "bfs":
            return clean.rank_by_bfs(*self._adjacency)
        return np.random.default_rng(seed).permutation(self.n).astype(np.int32)

    def _renumbered(self, rank, order):
        col_ptr, row_idx, *_, longest = clean.moved_columns(self._col_ptr, self._row_idx, rank)
        moved = type(self)(locked(col_ptr), locked(row_idx), labels=self.labels, name=self.name, order=order,
                           cleaned=self.cleaned, validate=False)  # fmt: skip
        moved._rank, moved.max_column = locked(rank), longest
        return moved

    def _validate(self):
        if self.n < 0:
            raise GraphError("col_ptr is empty; it has one entry more than there are columns")
        if self.n > clean.MAX_VERTICES:
            raise GraphError(f"{self.n} vertices are more than {clean.MAX_VERTICES}")
        _check_pointers(self._col_ptr, self.m, "col_ptr")
        j = clean.first_invalid_column(self._col_ptr, self._row_idx)
        if j >= 0:
            raise GraphError(f"column {j} is not a strictly ascending list of rows in {j + 1}..{self.n - 1}")


def as_graph(thing: Any, order: Order = "natural") -> Graph:
    """Make a Graph in some order from any object that describes a graph.

    Parameters
    ----------
    thing
        A Graph or DeviceGraph, a NetworkX graph, a SciPy sparse matrix; edges as a tuple `(u, v)` or `(u, v, n)` of
        arrays or sequences, a list of pairs, or an array of shape (edges, 2). A tuple of two is always `(u, v)`, a list
        always holds pairs. A square array is refused, even of shape (2, 2): it may be a dense adjacency matrix.
        Whatever else `Graph.from_edges` takes, a table say.
    """
    if isinstance(thing, Graph):
        return thing.ordered(order)
    if hasattr(thing, "to_graph"):  # columns on a device
        return thing.to_graph().ordered(order)
    if hasattr(thing, "tocoo"):
        return Graph.from_scipy(thing).ordered(order)
    if hasattr(thing, "is_directed") and hasattr(thing, "adj"):
        return Graph.from_networkx(thing).ordered(order)
    if isinstance(thing, tuple):
        return Graph.from_edges(*edge_arrays(thing), order=order)
    if isinstance(thing, list):
        if len(thing) == 2 and all(hasattr(item, "shape") for item in thing):
            raise GraphError("a list holds pairs, one for each edge; two arrays of ends go into a tuple: (u, v)")
        return Graph.from_edges(thing, order=order)
    if isinstance(thing, np.ndarray) or hasattr(thing, "__cuda_array_interface__"):
        if len(thing.shape) == 2 and thing.shape[0] == thing.shape[1]:
            raise GraphError(
                f"an array A of shape {tuple(thing.shape)} may be a dense adjacency matrix: if it is, give "
                "scipy.sparse.csr_array(A); if its rows are edges, Graph.from_edges(A)"
            )
    return Graph.from_edges(thing, order=order)


def checked_edges(u, v, n=None):
    """(u, v, n): raw edges that `Graph.from_edges` takes, as host arrays of one type, int32 or int64.

    n: the number of vertices; GraphError if an edge has another one.
    """
    u, v = _same_type(_integers(u, "u"), _integers(v, "v"))
    return u, v, _vertex_count(n, u, v)


def edge_arrays(edges):
    """The tuple itself if it is `(u, v)` or `(u, v, n)`, else GraphError."""
    if len(edges) == 2 or len(edges) == 3 and np.ndim(edges[2]) == 0:
        return edges
    raise GraphError(
        f"edges in a tuple are (u, v) or (u, v, n), not {len(edges)} things; pairs go into a list: [(0, 1), (1, 2)]"
    )


def known_order(order):
    """Return `order`; MethodError if there is none of this name."""
    return check_known("order", order, ORDERS, MethodError)


def _held(array, dtype):
    """The array as a Graph holds it: of this type and locked; a copy, since a caller may have it, unless it is so."""
    return array if array.dtype == dtype and is_locked(array) else locked(array.astype(dtype))


def checked_marks(keep, m):
    """Return the array `keep`; GraphError if it does not have a bool for each of m edges."""
    if keep.dtype != bool and keep.size:
        raise GraphError(
            f"keep is a bool for each of {m:,} edges, not {keep.dtype}; "
            "of the places of edges, numpy.isin(numpy.arange(graph.m), places) makes these"
        )
    if keep.shape != (m,):
        raise GraphError(f"there is a mark for each of {m:,} edges, not an array of {keep.shape}")
    return keep


def known_count(n):
    """Return `n` as an int; GraphError if it cannot be a number of vertices."""
    most = clean.MAX_VERTICES
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= most:
        raise GraphError(f"n must be a whole number of at least 0 and at most {most}, not {n!r}")
    return int(n)


def check_inferred(n, edges):
    """Refuse vertex numbers so large that there can be no n vertices, or that nearly all would have no edge."""
    if n > clean.MAX_VERTICES:
        hint = "the most there can be; relabel=True numbers those that occur"
        raise GraphError(f"{n:,} vertices are more than {clean.MAX_VERTICES:,}, {hint}")
    if n > max(2 * MAX_PER_END * edges, ALWAYS_ALLOWED):
        raise GraphError(
            f"{edges:,} edges with vertex numbers up to {n - 1:,} would make {n:,} vertices; "
            f"Graph.from_edges(u, v, relabel=True) numbers those that occur; if all are meant, say n={n}"
        )


def _integers(values, what):
    """A one-dimensional contiguous NumPy array of a native integer type, from host or device; else GraphError."""
    values = _to_host(values, what)
    if values.size == 0 and values.ndim == 1:
        return np.empty(0, np.int32)
    if values.dtype.kind not in "iu":
        size = " of at most 64 bits" if values.dtype == object else ""
        names = values.dtype.kind in "OSTU" and what in "uv"
        way = "; Graph.from_edges(..., relabel=True) takes names" if names else ""
        raise GraphError(f"{what} must hold whole numbers{size}, not {values.dtype}{way}")
    if values.ndim != 1:
        raise GraphError(f"{what} must be one-dimensional, not of shape {values.shape}")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _to_host(values, what):
    """A NumPy array of the values, from host or device."""
    if isinstance(unmasked(values, what), np.ndarray):
        return values
    has_dlpack = hasattr(values, "__dlpack_device__")
    on_host = not has_dlpack or values.__dlpack_device__()[0] == 1  # DLPack's number for host memory
    if hasattr(values, "__cuda_array_interface__") or not on_host:
        from tcgpu.engines import runtime

        return runtime.to_host(values)
    if has_dlpack:
        try:
            return np.from_dlpack(values)
        except (BufferError, TypeError, ValueError, NotImplementedError):
            pass  # Arrow does not export dictionaries, and converts them itself
    try:
        return np.asarray(values)
    except ValueError:
        raise GraphError(f"{what} cannot become an array: its items have different lengths") from None


def _same_type(u, v):
    """Both arrays as int32, or both as int64 if a type or an unsigned value needs it: only these are compiled."""
    if u.size != v.size:
        raise GraphError(f"u has {u.size} entries, v has {v.size}; an edge needs one of each")
    wide = False
    for ends in (u, v):
        largest = int(ends.max(initial=0)) if ends.dtype.kind == "u" else 0
        if largest > np.iinfo(np.int64).max:
            raise GraphError(f"vertex {largest} is past the largest possible id, {np.iinfo(np.int64).max}")
        wide |= ends.dtype.itemsize > 4 or largest > np.iinfo(np.int32).max
    dtype = np.int64 if wide else np.int32
    return u.astype(dtype, copy=False), v.astype(dtype, copy=False)


def two_columns(pairs):
    """Both ends of the edges in a list of pairs or in an array of shape (edges, 2)."""
    pairs = _to_host(pairs, "the list of pairs" if isinstance(pairs, list) else "the array of edges")
    if pairs.size == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError(f"edges in one array have shape (edges, 2), not {pairs.shape}")
    return pairs[:, 0], pairs[:, 1]


def _vertex_count(n, u, v):
    """`n`, or by default the largest number plus one; GraphError names the first edge that is out of range."""
    low, high = clean.min_max(u, v)
    inferred = n is None
    n = high + 1 if inferred else known_count(n)
    if low < 0:
        k = int(np.argmax((u < 0) | (v < 0)))
        hint = "; relabel=True takes any ids" if inferred else ""
        raise GraphError(f"edge {k} is ({u[k]}, {v[k]}); vertex numbers are not negative{hint}")
    if high >= n:
        k = int(np.argmax((u >= n) | (v >= n)))
        raise GraphError(f"edge {k} is ({u[k]}, {v[k]}); with n = {n} vertex numbers end at {n - 1}")
    if inferred:
        check_inferred(n, u.size)
    return n


def _differences(pointers):
    """`numpy.diff(pointers)` in blocks, which need little memory."""
    return (np.diff(pointers[k : k + BLOCK + 1]) for k in range(0, pointers.size - 1, BLOCK))


def _check_pointers(pointers, stored, what):
    descends = any((lengths < 0).any() for lengths in _differences(pointers))
    if pointers.size == 0 or pointers[0] != 0 or pointers[-1] != stored or descends:
        raise GraphError(f"{what} must ascend from 0 to {stored}, the number of stored indices")


def _checked_labels(labels, n):
    """The labels as a Graph holds them, so that they do not change; GraphError if they do not name n vertices."""
    if isinstance(labels, (dict, set, frozenset)):
        raise GraphError(
            f"labels are a list or an array of the names of vertices 0, 1, 2, ..., not a {type(labels).__name__}; "
            "of a dict by vertex, [names[v] for v in range(n)] makes one"
        )
    if type(labels) in (np.ndarray, np.memmap):
        labels = _held(labels, labels.dtype)
    elif labels is not None and not isinstance(labels, Names):
        labels = Names(labels)
    if labels is not None and len(labels) != n:
        raise GraphError(f"{len(labels)} labels do not name {n} vertices")
    return labels


def names_of(graph):
    """The names of all vertices as Python objects, because NetworkX prints NumPy integers in another way."""
    if graph.labels is None:
        return range(graph.n)
    return Names(graph.labels.tolist()) if isinstance(graph.labels, np.ndarray) else graph.labels
