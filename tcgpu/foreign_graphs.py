"""The edges of graphs of other libraries, NetworkX and SciPy, for `Graph.from_networkx` and `Graph.from_scipy`."""

from collections.abc import Iterable
from itertools import chain, compress
from typing import Any

import numpy as np

from tcgpu.arrays import repeat
from tcgpu.errors import GraphError

NOT_SQUARE = (
    "an adjacency matrix is square; if rows and columns of A are two sets of vertices, "
    "scipy.sparse.block_array([[None, A], [A.T, None]]) is the matrix of their graph"
)


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
            f"a SciPy sparse matrix is expected, not a {type(matrix).__name__}; "
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
