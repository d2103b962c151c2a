"""Graph: a simple undirected graph as the columns of its strictly lower triangular matrix L.

Column j holds the sorted neighbours i > j of vertex j: `row_idx[col_ptr[j]:col_ptr[j + 1]]`. Whatever a graph is made
from is symmetrised and freed of loops and duplicates; `graph.cleaned` says how many of each were dropped.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from tcgpu import cleaning, ids
from tcgpu.errors import GraphError, MethodError
from tcgpu.suggest import unknown

ORDERS = ("natural", "degree", "bfs", "random", "auto")
# degree order pays if all three of these, as `cleaning` estimates them, exceed
MIN_RELATIVE_DISTANCE = 1 / 64
MIN_DEGREE_SKEW = 2.5
MIN_LOOKUPS_PER_EDGE = 4
PIECE = 1 << 20  # pointers that are checked at a time
SPARSE = 64  # more vertices than this for each end of an edge are refused where no `n` asks for them,
HARMLESS = 1 << 22  # unless they are no more than these, which take 40 MB and a tenth of a second


@dataclass(frozen=True)
class Cleaned:
    """What was dropped: loops, repeats of an edge in a direction already seen, and the second direction of an edge."""

    loops: int = 0
    duplicates: int = 0
    reversed: int = 0

    def __str__(self):
        counts = (self.loops, "loop"), (self.duplicates, "duplicate"), (self.reversed, "reversed pair")
        said = [f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count]
        return "dropped " + ", ".join(said) if said else "nothing dropped"


class Graph:
    """A simple undirected graph on vertices 0..n-1 with m edges, kept as sorted columns.

    Attributes: n, m; `col_ptr` (int64, n + 1), `row_idx` (int32, m), `col_of` (int32, m: the column of each nonzero);
    `labels` (what the source called vertex v is `labels[v]`: an integer, text, or the node of a NetworkX graph; None
    where that is v itself); `ids` (the labels, where all are integers); `name`; `order` (how the vertices are numbered)
    and `rank` (`rank[v]` is the number here of vertex v of the graph this one was ordered from; None in natural order);
    `cleaned`; `folder` (where its columns lie, if they are those of files, mapped into memory).
    """

    def __init__(self, col_ptr, row_idx, *, labels=None, name=None, order="natural", cleaned=None, validate=True):
        """From columns as they are: each strictly ascending, all of its rows past the diagonal, or GraphError."""
        self.col_ptr = _integers(col_ptr, "col_ptr").astype(np.int64, copy=False)
        self.row_idx = _narrow(_integers(row_idx, "row_idx"), "row_idx")
        self.n, self.m = self.col_ptr.size - 1, self.row_idx.size
        self.name, self.order, self.rank, self.folder = name, order, None, None
        self.cleaned = cleaned or Cleaned()
        self._source_labels = _checked_labels(labels, self.n)
        self._orders = {}
        if validate:
            self._validate()

    @classmethod
    def from_edges(cls, u, v=None, n=None, *, relabel=False, labels=None, name=None, order="natural"):
        """From two arrays of vertex numbers (or one of shape (edges, 2)), in any order, direction and number.

        u, v: lists, NumPy, Arrow or pandas columns, and device arrays of any library that speaks DLPack or
        `__cuda_array_interface__`. They hold integers: floats are refused, whole ones, too, and so are arrays with
        masked entries.
        n: the vertices are 0..n-1; without it, up to the largest number there is. Numbers that would make more than
        64 vertices for each end of an edge (and more than 4 million) are refused then, before memory is taken.
        relabel: the numbers are ids, any integers of 64 bits; the vertices are those that occur, in ascending order,
        and `graph.ids[v]` is the id of vertex v (`graph.ids` is None where every id is the vertex itself).

        In another `order`, vertices are renumbered on the way, as `ordered` would later at the price of a second sort;
        only that the degrees that rank them count every record of an edge.
        """
        if v is None:
            u, v = _two_columns(u)
        u, v = _alike(_integers(u, "u"), _integers(v, "v"))
        if relabel:
            check_relabel(n, labels)
            u, v, n, labels = ids.compact(u, v)
        low, high = cleaning.min_max(u, v)
        n = _vertex_count(n, low, high, u, v)
        if known_order(order) == "auto":
            drawn = cleaning.sample_edges(u.size, n)
            order = best_order(u[drawn], v[drawn], n, u.size)
        rank = None
        if order == "degree":
            rank = cleaning.rank_by_degree(cleaning.occurrences(u, n) + cleaning.occurrences(v, n))
        clean = cleaning.clean_columns(u, v, n, rank)
        graph = cls(clean.col_ptr, clean.row_idx, labels=labels, name=name, validate=False,
                    cleaned=Cleaned(clean.loops, clean.duplicates, clean.reversed))  # fmt: skip
        if order != "degree":
            return graph.ordered(order)
        graph.order, graph.rank = order, rank
        return graph

    @classmethod
    def from_scipy(cls, matrix, *, name=None):
        """From a square SciPy sparse matrix or array: every entry but 0 is an edge, in one direction or both.

        What is stored more than once for one entry is summed up first, as SciPy does.
        """
        if not hasattr(matrix, "tocoo"):
            raise GraphError(
                f"a SciPy sparse matrix is expected, not a {type(matrix).__name__}; "
                "scipy.sparse.csr_array(A) makes one of a dense matrix A"
            )
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"an adjacency matrix is square, this one has shape {tuple(matrix.shape)}")
        coo = matrix.tocoo()
        if _can_cancel(coo.data):
            matrix = matrix.tocsr()  # which sums up, but what is in such a format already
            if not matrix.has_canonical_format:
                matrix = matrix.copy()
                matrix.sum_duplicates()
            coo = matrix.tocoo()
        row, col = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        stored = coo.data != 0
        if not stored.all():
            row, col = row[stored], col[stored]
        return cls.from_edges(row, col, matrix.shape[0], name=name)

    @classmethod
    def from_networkx(cls, graph, *, name=None):
        """From any NetworkX graph; its nodes become `labels`. A directed graph's edges lose their direction."""
        nodes = list(graph)
        neighbours = graph.succ if graph.is_directed() else graph.adj
        count = [len(near) for near in neighbours.values()]
        flat = chain.from_iterable(neighbours.values())
        numbered = nodes == list(range(len(nodes))) and all(type(node) is int for node in nodes)
        if not numbered:
            number = {node: v for v, node in enumerate(nodes)}
            flat = map(number.__getitem__, flat)
        total = sum(count)
        v = np.fromiter(flat, np.int64, total)
        u = np.repeat(np.arange(len(nodes)), count)
        if not graph.is_directed():  # every edge is listed by both of its ends: once is enough
            once = u <= v
            u, v = u[once], v[once]
        return cls.from_edges(u, v, len(nodes), labels=None if numbered else nodes, name=name or graph.name or None)

    @classmethod
    def from_csr(cls, indptr, indices, n=None, *, labels=None, name=None):
        """From compressed rows (or columns: the graph is the same), in one direction or both."""
        indptr = _integers(indptr, "indptr")
        indices = _integers(indices, "indices")
        rows = indptr.size - 1
        _check_pointers(indptr, indices.size, "indptr")
        if n is not None and n < rows:
            raise GraphError(f"indptr has {rows} rows, more than n = {n}")
        u = np.repeat(np.arange(rows, dtype=indices.dtype), np.diff(indptr))
        return cls.from_edges(u, indices, rows if n is None else n, labels=labels, name=name)

    @cached_property
    def labels(self):
        """What the source called each vertex; None where vertex v is simply v."""
        if self.rank is None:
            return self._source_labels
        source = np.empty(self.n, np.int64)
        source[self.rank] = np.arange(self.n)
        labels = self._source_labels
        if labels is None:
            return source
        return [labels[v] for v in source] if isinstance(labels, list) else labels[source]

    @property
    def ids(self):
        """The id of each vertex, an array of integers; None where vertex v is simply v.

        These are the `labels` where all of them are whole numbers, as `relabel` leaves them; GraphError where they are
        something else.
        """
        if self.labels is None:
            return None
        numbers = np.asarray(self.labels) if self.n else np.empty(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise GraphError("the vertices of this graph are not called by whole numbers; graph.labels has their names")
        return numbers

    @cached_property
    def col_of(self):
        return cleaning.column_of_each(self.col_ptr, self.m)

    @cached_property
    def degrees(self):
        """How many neighbours each vertex has."""
        return cleaning.degrees(self.col_ptr, self.row_idx)

    @property
    def column_lengths(self):
        return np.diff(self.col_ptr)

    @property
    def nonzeros_per_column(self):
        return self.m / self.n if self.n else 0.0

    @cached_property
    def max_column(self):
        pieces = (self.col_ptr[k : k + PIECE + 1] for k in range(0, self.n, PIECE))
        return max((int(np.diff(piece).max()) for piece in pieces), default=0)

    @property
    def max_degree(self):
        return int(self.degrees.max(initial=0))

    @property
    def nbytes(self):
        """Bytes of the columns themselves: `col_ptr` and `row_idx`."""
        return self.col_ptr.nbytes + self.row_idx.nbytes

    def column_histogram(self):
        """How many columns have 0, 1, 2-3, 4-7, ... nonzeros: a list of (shortest, longest, columns)."""
        exponent = np.frexp(self.column_lengths.astype(np.float64))[1]  # 0 for an empty column, else 1 + log2
        counts = np.bincount(exponent, minlength=1)
        return [(1 << e >> 1, max((1 << e) - 1, 0), int(count)) for e, count in enumerate(counts)]

    @cached_property
    def adjacency(self):
        """Every vertex's whole sorted neighbourhood, as `(indptr, indices)`."""
        return cleaning.adjacency(self.col_ptr, self.row_idx, self.degrees)

    def column(self, j):
        """The sorted rows of column j."""
        return self.row_idx[self.col_ptr[j] : self.col_ptr[j + 1]]

    def edges(self):
        """The edges as two arrays, rows i and columns j with i > j, column after column."""
        return self.row_idx, self.col_of

    def ordered(self, order, seed=0):
        """The same graph with its vertices numbered in another order; made once, then remembered.

        `degree`: ascending, so that columns stay short; `bfs`: breadth first; `random`: by `seed`; `natural`: as this
        graph came; `auto`: by degree where that shortens a count, else as it came. In the result, `rank[v]` is the new
        number of this graph's vertex v.
        """
        if known_order(order) == "auto":
            order = self._auto
        if order == "natural" or order == self.order == "degree":
            return self
        key = (order, seed if order == "random" else 0)
        if key not in self._orders:
            self._orders[key] = self._renumbered(self._rank(order, seed), order)
        return self._orders[key]

    def reordered(self, rank, *, order="given"):
        """The same graph with vertex v called `rank[v]`, a permutation of 0..n-1."""
        rank = _narrow(_integers(rank, "rank"), "rank")
        if rank.size != self.n or not np.array_equal(np.bincount(rank, minlength=self.n), np.ones(self.n)):
            raise GraphError(f"a rank is a permutation of 0..{self.n - 1}")
        return self._renumbered(rank, order)

    def kept(self, keep):
        """The same vertices, and of the edges those that `keep` marks: a bool for each, in the order of `edges()`."""
        keep = np.ascontiguousarray(unmasked(keep, "keep"), bool)
        if keep.shape != (self.m,):
            raise GraphError(f"there is a mark for each of {self.m:,} edges, not an array of {keep.shape}")
        left = cleaning.select_edges(self.col_ptr, self.row_idx, keep)
        return Graph(*left, labels=self.labels, name=self.name, validate=False)

    def lower(self):
        """L as a SciPy CSC array of ones."""
        from scipy.sparse import csc_array

        return csc_array((np.ones(self.m, np.int64), self.row_idx, self.col_ptr), shape=(self.n, self.n))

    def to_scipy(self):
        """The symmetric adjacency matrix as a SciPy CSR array of ones."""
        from scipy.sparse import csr_array

        indptr, indices = self.adjacency
        return csr_array((np.ones(2 * self.m, np.int64), indices, indptr), shape=(self.n, self.n))

    def to_networkx(self):
        """A `networkx.Graph` whose nodes are the labels."""
        import networkx as nx

        graph = nx.Graph(name=self.name) if self.name else nx.Graph()
        label = (range(self.n) if self.labels is None else _python(self.labels)).__getitem__
        graph.add_nodes_from(map(label, range(self.n)))
        graph.add_edges_from(zip(map(label, self.col_of.tolist()), map(label, self.row_idx.tolist()), strict=True))
        return graph

    def equals(self, other):
        """Whether two graphs have the same vertices (labels, too) and edges."""
        labels = [range(g.n) if g.labels is None else _python(g.labels) for g in (self, other)]
        return (
            np.array_equal(self.col_ptr, other.col_ptr)
            and np.array_equal(self.row_idx, other.row_idx)
            and list(labels[0]) == list(labels[1])
        )

    def __len__(self):
        return self.n

    def __repr__(self):
        name = f" {self.name!r}" if self.name else ""
        return (
            f"<Graph{name}: {self.n:,} vertices, {self.m:,} edges, {self.nonzeros_per_column:.2f} nonzeros per column "
            f"(at most {self.max_column:,}), {self.order} order; {self.cleaned}>"
        )

    def __getstate__(self):
        """What travels to another process: the columns, not what was worked out from them."""
        derived = ("labels", "max_column", "col_of", "degrees", "adjacency", "_auto")
        return {name: value for name, value in self.__dict__.items() if name not in derived} | {"_orders": {}}

    @cached_property
    def _auto(self):
        """The order that "auto" stands for."""
        drawn = cleaning.sample_edges(self.m, self.n)
        column = np.searchsorted(self.col_ptr, drawn, side="right") - 1
        return best_order(self.row_idx[drawn], column, self.n, self.m)

    def _rank(self, order, seed):
        if order == "degree":
            return cleaning.rank_by_degree(self.degrees)
        if order == "bfs":
            return cleaning.rank_by_bfs(*self.adjacency)
        return np.random.default_rng(seed).permutation(self.n).astype(np.int32)

    def _renumbered(self, rank, order):
        col_ptr, row_idx = cleaning.renumber(self.col_ptr, self.row_idx, rank)
        moved = Graph(col_ptr, row_idx, labels=self.labels, name=self.name, order=order,
                      cleaned=self.cleaned, validate=False)  # fmt: skip
        moved.rank = rank
        return moved

    def _validate(self):
        if self.n < 0:
            raise GraphError("col_ptr is empty; it has one entry more than there are columns")
        if self.n > cleaning.MAX_VERTICES:
            raise GraphError(f"{self.n} vertices are more than {cleaning.MAX_VERTICES}")
        _check_pointers(self.col_ptr, self.m, "col_ptr")
        fault = cleaning.first_invalid_column(self.col_ptr, self.row_idx)
        if fault >= 0:
            raise GraphError(f"column {fault} is not a strictly ascending list of rows in {fault + 1}..{self.n - 1}")


def as_graph(thing, order="natural"):
    """A Graph in some order, from what a user may have.

    thing: a Graph or DeviceGraph, a NetworkX graph, a SciPy sparse matrix; edges as a tuple `(u, v)` or `(u, v, n)` of
    arrays or sequences, a list of pairs, or an array of shape (edges, 2). A tuple of two is always `(u, v)`, a list
    always holds pairs. A square array is refused: it looks like a dense adjacency matrix. An array of shape (2, 2) may
    be either, and is refused, too.
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
        return Graph.from_edges(*_pairs_in_list(thing), order=order)
    if isinstance(thing, np.ndarray) or hasattr(thing, "__cuda_array_interface__"):
        if len(thing.shape) == 2 and thing.shape[0] == thing.shape[1]:
            raise GraphError(
                f"an array A of shape {tuple(thing.shape)} may be a dense adjacency matrix: if it is, give "
                "scipy.sparse.csr_array(A); if its rows are edges, Graph.from_edges(A)"
            )
        return Graph.from_edges(thing, order=order)
    raise GraphError(
        f"cannot make a graph of a {type(thing).__name__}; give a Graph, a NetworkX graph, a SciPy sparse matrix, "
        "edge arrays (u, v) or (u, v, n), or a list of pairs; files go through tcgpu.read"
    )


def edge_arrays(edges):
    """The tuple itself if it is `(u, v)` or `(u, v, n)`, else GraphError."""
    if len(edges) == 2 or len(edges) == 3 and np.ndim(edges[2]) == 0:
        return edges
    raise GraphError(
        f"edges in a tuple are (u, v) or (u, v, n), not {len(edges)} things; pairs go into a list: [(0, 1), (1, 2)]"
    )


def _pairs_in_list(pairs):
    """Both ends of the edges in a list of pairs."""
    if len(pairs) == 2 and all(hasattr(item, "shape") for item in pairs):
        raise GraphError("a list holds pairs, one for each edge; two arrays of ends go into a tuple: (u, v)")
    return _two_columns(pairs)


def _can_cancel(values):
    """Whether the sum of some of the values may be 0 though not all of these are."""
    if values.dtype.kind == "b" or not values.size:
        return False
    if values.dtype.kind not in "iuf" or not (values >= 0).all():
        return True
    return values.dtype.kind in "iu" and int(values.max()) * values.size > np.iinfo(values.dtype).max  # may wrap


def best_order(u, v, n, m):
    """The order for a count of a graph of m edges, judged by edges drawn from it."""
    pays = (
        cleaning.relative_distance(u, v, n) > MIN_RELATIVE_DISTANCE
        and cleaning.degree_skew(u, v, n) > MIN_DEGREE_SKEW
        and cleaning.lookups_per_edge(u, v, m) > MIN_LOOKUPS_PER_EDGE
    )
    return "degree" if pays else "natural"


def known_order(order):
    if order not in ORDERS:
        raise MethodError(unknown("order", order, ORDERS))
    return order


def unmasked(values, what):
    """The values themselves; GraphError if they are a NumPy array with masked entries.

    Which edges to leave out is for the caller to say: a mask of `u` alone does not tell what becomes of `v`.
    """
    masked = getattr(values, "mask", False) if isinstance(values, np.ndarray) else False  # numpy.ma is slow to import
    if np.any(masked):
        count = np.count_nonzero(masked)
        raise GraphError(f"{what} has {count} masked entries; leave them out first, in both ends of the edges")
    return values


def check_relabel(n, labels=None):
    """Refuse `relabel=True` together with what numbers or names the vertices otherwise."""
    if n is not None or labels is not None:
        raise GraphError("relabel=True numbers and names the vertices by itself, without n and labels")


def known_count(n):
    """`n` as an int if it can be a number of vertices, else GraphError."""
    most = cleaning.MAX_VERTICES
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= most:
        raise GraphError(f"n must be a whole number of at least 0 and at most {most}, not {n!r}")
    return int(n)


def check_sparse(n, edges):
    """Refuse numbers so far apart that nearly all of the n vertices up to the largest would have no edge."""
    if n > max(2 * SPARSE * edges, HARMLESS):
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
        raise GraphError(f"{what} must hold whole numbers{size}, not {values.dtype}")
    if values.ndim != 1:
        raise GraphError(f"{what} must be one-dimensional, not of shape {values.shape}")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _to_host(values, what):
    if isinstance(values, np.ndarray):
        return unmasked(values, what)
    speaks_dlpack = hasattr(values, "__dlpack_device__")
    if speaks_dlpack and values.__dlpack_device__()[0] == 1:  # DLPack's number for host memory
        return np.from_dlpack(values)
    if speaks_dlpack or hasattr(values, "__cuda_array_interface__"):
        from tcgpu.engines import runtime

        return runtime.to_host(values)
    try:
        return np.asarray(values)
    except ValueError:
        raise GraphError(f"{what} cannot become an array: its items have different lengths") from None


def _alike(u, v):
    """Both arrays as int32 or both as int64, which is all that is compiled; unsigned ones keep their bits."""
    if u.size != v.size:
        raise GraphError(f"u has {u.size} entries, v has {v.size}; an edge needs one of each")
    wide = np.int64 if max(_width(u), _width(v)) > 4 else np.int32
    return _signed(u, wide), _signed(v, wide)


def _width(values):
    """The bytes that hold every value with its sign: a uint32 with its top bit set needs eight."""
    unsigned = values.dtype.kind == "u" and values.size and int(values.max()) > np.iinfo(np.int32).max
    return 8 if unsigned else values.dtype.itemsize


def _signed(values, wide):
    if values.dtype == np.uint64 and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise GraphError(f"vertex {int(values.max())} is past the largest possible id, {np.iinfo(np.int64).max}")
    return values.astype(wide, copy=False)


def _two_columns(pairs):
    pairs = _to_host(pairs, "the list of pairs" if isinstance(pairs, list) else "the array of edges")
    if pairs.size == 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise GraphError(f"edges in one array have shape (edges, 2), not {pairs.shape}")
    return pairs[:, 0], pairs[:, 1]


def _vertex_count(n, low, high, u, v):
    """`n`, or what the numbers ask for; GraphError names the first edge that is out of range."""
    inferred = n is None
    n = high + 1 if inferred else known_count(n)
    if low < 0:
        k = int(np.argmax((u < 0) | (v < 0)))
        hint = "; relabel=True takes any ids" if inferred else ""
        raise GraphError(f"edge {k} is ({u[k]}, {v[k]}); vertex numbers are not negative{hint}")
    if high >= n:
        k = int(np.argmax((u >= n) | (v >= n)))
        raise GraphError(f"edge {k} is ({u[k]}, {v[k]}); with n = {n} vertex numbers end at {n - 1}")
    if n > cleaning.MAX_VERTICES:
        hint = "; relabel=True numbers those that occur" if inferred else ""
        raise GraphError(f"{n} vertices are more than {cleaning.MAX_VERTICES}, the most there can be{hint}")
    if inferred:
        check_sparse(n, u.size)
    return n


def _narrow(values, what):
    """As int32; GraphError where a value does not fit."""
    if values.dtype == np.int32:
        return values
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < cleaning.MAX_VERTICES:
        raise GraphError(f"{what} holds numbers outside 0..{cleaning.MAX_VERTICES - 1}")
    return values.astype(np.int32)


def _check_pointers(pointers, stored, what):
    pieces = (pointers[k : k + PIECE + 1] for k in range(0, pointers.size, PIECE))
    descends = any((np.diff(piece) < 0).any() for piece in pieces)
    if pointers.size == 0 or pointers[0] != 0 or pointers[-1] != stored or descends:
        raise GraphError(f"{what} must ascend from 0 to {stored}, the number of stored indices")


def _checked_labels(labels, n):
    if labels is None:
        return None
    if not isinstance(labels, (list, np.ndarray)):
        labels = list(labels)
    if len(labels) != n:
        raise GraphError(f"{len(labels)} labels do not name {n} vertices")
    return labels


def _python(labels):
    """Labels as Python objects: a NumPy integer would be another node to NetworkX's eyes when printed."""
    return labels.tolist() if isinstance(labels, np.ndarray) else labels
