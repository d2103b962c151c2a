"""Triangles, trusses, cliques and cycles of small graphs in NumPy: nothing is compiled, nor is Numba imported.

All pairs of rows of a column are looked up among the edges, in degree order, which has the fewest such pairs, whatever
the `order` that is asked for.
"""

from itertools import pairwise

import numpy as np

from tcgpu import progress
from tcgpu.arrays import bincount, repeat
from tcgpu.engines.choice import NUMBA, in_numpy

PAIRS = 1 << 18  # that are looked up at a time


def serves(graph, part=None):
    """Whether the functions here are for this graph: it is small and Numba is not loaded, or there is no Numba."""
    if part is not None:
        return not NUMBA
    if not in_numpy(0):
        return False
    lengths = graph.column_lengths.astype(np.float64)
    pairs = min(lengths @ lengths, graph.m * (2 * graph.m) ** 0.5)  # in natural order, at most in degree order
    return in_numpy(2 * graph.m + pairs)


def triples(graph, part=None):
    """Yield arrays of shape (some, 3): the vertices of each triangle once, in any order. part: of which edges."""
    ordered = graph.ordered("degree") if part is None else graph
    begin, end, low, high = 0, ordered.m, 0, ordered.n
    if part is not None:
        begin, end, low, high = part.first, part.last, part.low, part.high
    rows, columns = ordered.row_idx.astype(np.int64), ordered.col_of.astype(np.int64)
    edges = columns * ordered.n + rows  # ascending
    later = ordered.col_ptr[1:][columns] - np.arange(1, ordered.m + 1)  # rows after this one in its column
    later[(rows < low) | (rows >= high)] = 0
    ends = np.cumsum(later)
    vertex = np.arange(ordered.n, dtype=np.int32)
    if ordered is not graph:
        vertex = np.empty_like(vertex)
        vertex[ordered.rank] = np.arange(ordered.n, dtype=np.int32)
    while begin < end:
        progress.pulse()
        most = (ends[begin - 1] if begin else 0) + PAIRS
        stop = min(max(begin + 1, int(np.searchsorted(ends, most, side="right"))), end)
        lengths = later[begin:stop]
        one, other = _pairs(begin, lengths)
        found = _positions(edges, rows[one] * ordered.n + rows[other]) >= 0
        one, other = one[found], other[found]
        yield vertex[np.stack([columns[one], rows[one], rows[other]], axis=1)]
        begin = stop


def count(graph, part=None):
    """The number of triangles of a Graph (int)."""
    return sum(map(len, triples(graph, part)))


def finds_triangle(graph):
    return any(map(len, triples(graph)))


def triangles(graph, order=None, part=None):
    """The number of triangles at each vertex (int64)."""
    found = np.zeros(graph.n, np.int64)
    for rows in triples(graph, part):
        found += bincount(rows.ravel(), minlength=graph.n)
    return found


def support(graph, order=None, part=None):
    """The number of triangles at each edge (int64), in the order of `row_idx`."""
    found = np.zeros(graph.m, np.int64)
    for _, positions in with_edges(graph, part):
        found += bincount(positions.ravel(), minlength=graph.m)
    return found


def with_edges(graph, part=None):
    """Yield arrays of shape (3, some): the vertices u < v < w of triangles, and the positions of uv, uw, vw."""
    edges = graph.col_of.astype(np.int64) * graph.n + graph.row_idx
    for rows in triples(graph, part):
        ends = np.sort(rows, axis=1).astype(np.int64).T
        u, v, w = ends
        yield ends, _positions(edges, np.stack([u, u, v]) * graph.n + np.stack([v, w, w]))


def list_triangles(graph, chunk=1 << 20, order=None):
    """Yield every triangle once, as int32 arrays of shape (at most `chunk`, 3). A row holds vertices j < i < k."""
    for rows in triples(graph):
        for first in range(0, len(rows), chunk):
            yield np.sort(rows[first : first + chunk], axis=1)


def cliques(graph, k):
    """The number of cliques of k vertices, k > 2."""
    rows, ends = graph.row_idx.tolist(), graph.col_ptr.tolist()
    larger = [{*rows[begin:end]} for begin, end in pairwise(ends)]  # neighbours

    def among(vertices, size):
        if size == 2:
            return sum(len(vertices & larger[v]) for v in vertices)
        return sum(among(vertices & larger[v], size - 1) for v in vertices)

    return sum(among(each, k - 1) for each in larger)


def cycles(graph):
    """The number of cycles of 4 vertices, whether they are joined across or not."""
    indptr, indices = graph.adjacency
    one, other = _pairs(0, repeat(indptr[1:], graph.degrees) - np.arange(1, indices.size + 1))
    ends = np.sort(indices[one] * np.int64(graph.n) + indices[other])  # of each path of two edges
    paths = np.diff(np.flatnonzero(np.diff(ends, prepend=-1)), append=ends.size)  # that have both ends in common
    return int((paths * (paths - 1) // 2).sum()) // 2


def _pairs(first, lengths):
    """Each position from `first` on with each of as many positions after it as `lengths` says: two arrays."""
    one = repeat(np.arange(first, first + lengths.size), lengths)
    return one, one + 1 + np.arange(one.size) - repeat(np.cumsum(lengths) - lengths, lengths)


def _positions(edges, wanted):
    """Where each of some numbers is in a sorted list; -1 if it is not there."""
    at = np.searchsorted(edges, wanted)
    at[at == edges.size] = 0
    return np.where(edges[at] == wanted, at, -1) if edges.size else at - 1


def peel(graph, k):
    """Which edges are in the k-truss: an array of bool, in the order of `row_idx`."""
    return numbers(graph) >= k


def numbers(graph):
    """The truss number of each edge (int32), in the order of `row_idx`."""
    listed = [positions for _, positions in with_edges(graph)]
    triangles = np.concatenate([np.empty((3, 0), np.int64), *listed], axis=1)
    support, found, k = bincount(triangles.ravel(), minlength=graph.m), np.zeros(graph.m, np.int32), 2
    while (found == 0).any():
        k = max(k, int(support[found == 0].min()) + 2)
        weak = (found == 0) & (support <= k - 2)
        found[weak] = k
        broken = weak[triangles].any(axis=0)
        support -= bincount(triangles[:, broken].ravel(), minlength=graph.m)
        triangles = triangles[:, ~broken]
    return found
