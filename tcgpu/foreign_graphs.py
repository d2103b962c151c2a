"""The edges of graphs and tables of other libraries, and of edges between names, for the `from_...` of `Graph`."""

import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from itertools import chain, compress
from typing import Any

import numpy as np

from tcgpu.arrays import repeat, unmasked
from tcgpu.errors import GraphError, needing

# names of the columns of an edge's two ends, in lower case, without punctuation and a final "id" or "node"
END_NAMES = (
    ("source", "target"), ("source", "destination"), ("source", "dest"), ("src", "dst"), ("src", "dest"),
    ("src", "tgt"), ("from", "to"), ("u", "v"), ("i", "j"), ("v1", "v2"), ("id1", "id2"), ("node1", "node2"),
    ("vertex1", "vertex2"), ("row", "col"), ("row", "column"),
)  # fmt: skip
UNNAMED = ["", "0", "1"]  # how pandas names an index and two columns that have no names

# a method that tables of pandas, Polars or PyArrow have: their columns are taken by name
TABLES = "iterrows", "get_column", "column_names"
ARRAYS = "__array__", "__dlpack__", "__cuda_array_interface__"
_SUFFIX = re.compile(r"(?<=.)(?:node|vertex)?(?:id|idx)?\Z")
NOT_SQUARE = (
    "an adjacency matrix is square; if rows and columns of A are two sets of vertices, "
    "scipy.sparse.block_array([[None, A], [A.T, None]]) is the matrix of their graph"
)


def type_name(thing):
    """The full name of a thing's type, with its module."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")


def not_here(thing):
    """The error about a graph or a path where columns or edges are expected; it names what makes a Graph of it."""
    makers = {"tocoo": "Graph.from_scipy", "adj": "Graph.from_networkx", "startswith": "tcgpu.read"}
    maker = next((maker for method, maker in makers.items() if hasattr(thing, method)), "Graph.from_edges")
    return GraphError(f"{maker} makes a graph of a {type_name(thing)}; Graph(col_ptr, row_idx) takes columns")


def check_relabel(n, labels=None):
    """Refuse `relabel=True` together with `n` or `labels`."""
    if n is not None or labels is not None:
        raise GraphError("relabel=True numbers and names the vertices by itself, without n and labels")


def edges_of(u, v, n, labels, relabel):
    """What `Graph.from_edges` is given, as `(u, v, n, labels)` with other libraries' things and names resolved.

    Without v, u may be a table, or a graph of igraph, networkit, graph-tool or PyG. With `relabel`, names become vertex
    numbers, and n is not None. Arrays and lists of numbers, also of pairs, are left as they are.
    """
    if v is None and (known := _of_library(u)):
        u, v, vertices, names = known
        n, labels = vertices if n is None else n, names if labels is None else labels
    elif v is None and not (isinstance(u, (list, tuple)) or any(hasattr(u, name) for name in ARRAYS)):
        if hasattr(u, "adj") or hasattr(u, "tocoo"):
            raise not_here(u)
        raise GraphError(
            f"cannot make a graph of a {type_name(u)}; give a Graph, a NetworkX graph, a SciPy sparse matrix, edge "
            "arrays (u, v) or (u, v, n), a list of pairs, or a table of two columns; files go through tcgpu.read"
        )
    if relabel:
        check_relabel(n, labels)
    return relabel and _numbered(u, v) or (u, v, n, labels)


def _of_library(thing):
    """The edges of another library's graph, known by its methods: `(u, v, n or None, labels)`; None if unknown."""
    labels = None
    if any(hasattr(thing, name) for name in (*TABLES, "__arrow_c_stream__")):
        return *_ends_in(thing), None, None
    if hasattr(thing, "num_nodes") and hasattr(thing, "edge_index"):  # PyG
        return *thing.edge_index, thing.num_nodes, None
    if hasattr(thing, "get_edgelist"):  # igraph
        pairs, vertices = thing.get_edgelist(), range(thing.vcount())
        labels = thing.vs["name"] if "name" in thing.vs.attributes() else None
    elif hasattr(thing, "iterEdges"):  # networkit
        pairs, vertices = list(thing.iterEdges()), list(thing.iterNodes())
    elif hasattr(thing, "get_edges"):  # graph-tool, with the edges' weights in further columns
        pairs, vertices = thing.get_edges(), thing.get_vertices()
    else:
        return None
    u, v = np.asarray(pairs, np.int64).T[:2] if len(pairs) else np.empty((2, 0), np.int64)
    vertices = np.asarray(vertices, np.int64)
    if (vertices != np.arange(vertices.size)).any():  # some were removed, or a filter hides them
        u, v, labels = np.searchsorted(vertices, u), np.searchsorted(vertices, v), vertices
    return u, v, vertices.size, labels


def _ends_in(table):
    """The two columns of a table that are the ends of its edges."""
    if not any(hasattr(table, name) for name in TABLES):  # Arrow's stream is read by what is imported, or by PyArrow
        with needing(f"a {type_name(table)}"):
            read = sys.modules["polars"].DataFrame if "polars" in sys.modules else import_module("pyarrow").table
        try:
            table = read(table)
        except Exception as error:  # each has its own
            raise GraphError(f"a {type_name(table)} is not a table of two columns: {error}") from None
    names = list(getattr(table, "column_names", None) or table.columns)
    first, second = two_columns(list(map(str, names)))
    return table[names[first]], table[names[second]]


def two_columns(names):
    """The numbers of those columns that are the ends of edges, by their names, unless there are only two."""
    pairs = pairs_of_ends(names)
    if len(pairs) != 1 and len(names) != 2:
        raise GraphError(
            f"which two of the columns {', '.join(names)} are the ends of an edge? "
            "Name these source and target, or give a table of these two alone"
        )
    return pairs[0] if len(pairs) == 1 else (0, 1)


def pairs_of_ends(names):
    """Which of END_NAMES are among these names of columns; and the columns of each: a list of (first, second)."""
    short = [_SUFFIX.sub("", re.sub(r"[\W_]", "", name.casefold()), count=1) for name in names]
    found = [pair for pair in END_NAMES if set(short).issuperset(pair)] or [("0", "1")] * (names == UNNAMED)
    return [(a, b) for pair in found for a, first in enumerate(short) if first == pair[0]
            for b, second in enumerate(short) if second == pair[1]]  # fmt: skip


def _numbered(u, v):
    """As `number_names`, of names in arrays or lists, or in pairs if v is None; None if there are only numbers."""
    if v is None and isinstance(u, (list, tuple)) and all(isinstance(p, (list, tuple)) and len(p) == 2 for p in u):
        u, v = zip(*u, strict=True) if len(u) else ((), ())
    elif v is None and isinstance(u, np.ndarray) and u.shape[1:] == (2,):
        u, v = u.T
    given = () if v is None else ((u, _names(u, "u")), (v, _names(v, "v")))
    if all(names is None for _, names in given):
        return None
    return number_names(*(np.asarray(ends).tolist() if names is None else names for ends, names in given))


def _names(values, what):
    """The values as a list; None if they are numbers. NumPy makes text of all in [1, "a"]: a list is left as it is."""
    listed = isinstance(values, (list, tuple))
    if hasattr(values, "__cuda_array_interface__"):
        return None
    values = values if listed else unmasked(values, what)
    try:
        array = np.asarray(values)
    except ValueError:  # items of different lengths
        return list(values)
    if listed and array.size and (array.ndim > 1 or array.dtype.kind not in "biu"):
        return list(values)
    return array.tolist() if array.dtype.kind in "OSTU" else None


def number_names(u, v):
    """Number the vertices of edges u[k] - v[k] between names: `(u, v, n, names)`.

    Names are text or anything else that can be hashed, but floats. Their order is ascending; if they cannot be
    compared, as they occur first.
    """
    if len(u) != len(v):
        raise GraphError(f"u has {len(u)} entries, v has {len(v)}; an edge needs one of each")
    try:
        names = list(dict.fromkeys(chain(u, v)))
    except TypeError as error:
        raise GraphError(f"names of vertices are text or anything else that can be hashed: {error}") from None
    for name in names:
        if name is None or isinstance(name, float) or type(name).__name__ in ("NAType", "NaTType"):
            raise GraphError(f"an end of an edge is {name!r}, which names no vertex; leave these edges out first")
    with suppress(TypeError):
        names = sorted(names)
    number = {name: k for k, name in enumerate(names)}
    ends = np.fromiter(map(number.__getitem__, chain(u, v)), np.int32, 2 * len(u))
    return ends[: len(u)], ends[len(u) :], len(names), names


def networkx_edges(graph):
    """The edges of a NetworkX graph as its adjacency lists them; of an undirected one, only those from u to v >= u.

    Returns the nodes as labels (None if node v is the int v), the ends u and v as vertex numbers (int64), and an
    iterator over the edges' dicts of attributes (of a multigraph, the dicts of its parallel edges).
    """
    nodes = list(graph)
    inner = [near for _, near in graph.adjacency()]
    # the length of a view of a multigraph counts neighbours, too, whose edges the view hides
    lists = [near if isinstance(near, dict) else list(near) for near in inner]
    lengths = list(map(len, lists))
    flat: Iterable[Any] = chain.from_iterable(lists)
    numbered = nodes == list(range(len(nodes))) and all(type(node) is int for node in nodes)
    if not numbered:
        number = {node: v for v, node in enumerate(nodes)}
        flat = map(number.__getitem__, flat)
    v = np.fromiter(list(flat), np.int64, sum(lengths))  # NumPy reads a list faster than another iterator
    u = repeat(np.arange(len(nodes)), lengths)
    attributes: Iterable[Any] = chain.from_iterable(near.values() for near in inner)
    if not graph.is_directed():  # every edge is listed at both of its ends
        once = u <= v
        if np.count_nonzero(u < v) != np.count_nonzero(u > v):
            raise GraphError("the view's filter of edges treats (u, v) and (v, u) differently; graph.copy() has none")
        u, v, attributes = u[once], v[once], compress(attributes, once.tobytes())
    return None if numbered else nodes, u, v, attributes


def scipy_edges(matrix):
    """The rows and columns of the nonzero entries of a SciPy sparse matrix or array; GraphError if it is not square."""
    if not hasattr(matrix, "tocoo"):
        raise GraphError(
            f"a SciPy sparse matrix is expected, not a {type_name(matrix)}; "
            "scipy.sparse.csr_array(A) makes one of a dense matrix A"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"{NOT_SQUARE}; this one has shape {tuple(matrix.shape)}")
    coo = matrix.tocoo()
    if _can_cancel(coo.data):
        matrix = matrix.tocsr()  # this adds up duplicates, unless the matrix is CSR already
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        coo = matrix.tocoo()
    row, col = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    stored = coo.data != 0
    if not stored.all():
        row, col = row[stored], col[stored]
    return row, col


def _can_cancel(values):
    """Whether values that are not all 0 may add up to 0."""
    if values.dtype.kind == "b" or not values.size:
        return False
    if values.dtype.kind not in "iuf" or not (values >= 0).all():
        return True
    return values.dtype.kind in "iu" and int(values.max()) * values.size > np.iinfo(values.dtype).max  # may wrap
