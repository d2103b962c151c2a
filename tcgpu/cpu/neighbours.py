"""What vertices and pairs of them need of their neighbours, in NumPy."""

import numpy as np

from tcgpu.arrays import bincount, blocks, repeat, running_sums
from tcgpu.errors import GraphError

AT_ONCE = 1 << 20  # neighbours that are in memory at a time


def edge_blocks(graph):
    """Yield blocks of the edges: a slice, the rows and the columns."""
    rows, columns = graph.edges()
    return ((block, rows[block], columns[block]) for block in blocks(graph.m))


def sum_at_ends(graph, at_row, at_column):
    """Of each vertex: the sum of `at_row` over the edges whose row it is, and of `at_column` where it is the column."""
    total = np.zeros(graph.n, np.result_type(at_row, np.int64))
    for ends, values in zip(graph.edges(), (at_row, at_column), strict=True):
        np.add.at(total, ends, values.astype(total.dtype, copy=False))  # other types take 20 times as long
    return total


def sum_over_neighbours(graph, values):
    """Of each vertex: the sum of its neighbours' values."""
    total = np.zeros_like(values)
    for _, rows, columns in edge_blocks(graph):
        np.add.at(total, rows, values[columns])
        np.add.at(total, columns, values[rows])
    return total


def checked_vertices(graph, nodes):
    """An array of the vertex numbers, or the one, that is given; GraphError if the graph does not have them."""
    given = np.atleast_1d(np.asarray(nodes))
    whole = given.dtype.kind in "iu" or not given.size
    if not whole or given.size and not 0 <= given.min() <= given.max() < graph.n:
        hint = "" if graph.labels is None else "; list(graph.labels).index(name) is the number of a name"
        raise GraphError(f"nodes are whole numbers from 0 to {graph.n - 1:,}, not {nodes!r:.60}{hint}")
    return given.astype(np.int64)


def common_neighbours(graph, a, b):
    """How many common neighbours the vertices a[k] and b[k] have (int64): those of the one with fewer are looked up."""
    indptr, indices = graph.adjacency
    degrees = np.diff(indptr)
    few, many = np.where(degrees[a] <= degrees[b], (a, b), (b, a))
    work, found, first = running_sums(degrees[few]), np.zeros(a.size, np.int64), 0
    while first < a.size:
        last = max(first + 1, int(np.searchsorted(work, work[first] + AT_ONCE, side="right")) - 1)
        lengths, starts = degrees[few[first:last]], indptr[few[first:last]] - work[first:last]
        pair = repeat(np.arange(first, last), lengths)
        looked_up = indices[starts[pair - first] + np.arange(work[first], work[last])]
        shared = are_among(indices, indptr[many[pair]], degrees[many[pair]], looked_up)
        found[first:last] = bincount(pair[shared] - first, minlength=last - first)
        first = last
    return found


def are_among(indices, at, length, wanted):
    """Whether `wanted[k]` is among `length[k]` sorted indices from `at[k]` on; `at` and `length` are overwritten."""
    while length.max(initial=0) > 1:  # a binary search for all of them
        half = length >> 1
        at += half * (indices[at + half - 1] < wanted)
        length -= half
    return (indices[at + length - 1] == wanted) & (length > 0)


def around(graph, nodes):
    """The graph of the edges between these vertices and their neighbours; and a mark for each vertex that is given."""
    inside = np.zeros(graph.n, bool)
    inside[nodes] = True
    rows, cols = graph.edges()
    near = inside.copy()
    near[rows[inside[cols]]] = near[cols[inside[rows]]] = True
    return graph.kept(near[rows] & near[cols]), inside


def neighbour_pairs(graph):
    """How many pairs of neighbours each vertex has."""
    degree = np.asarray(graph.degrees, np.int64)
    return degree * (degree - 1) // 2


def shares(part, of):
    """`part` / `of`; 0 where part is 0."""
    return np.divide(part, of, out=np.zeros(part.size), where=part != 0)
