"""Turn raw edges into the clean, sorted columns of the strictly lower triangular matrix L; number ids; make orders.

Each function is written here in NumPy, which serves few edges, and all where there is no Numba. `cpu.cleaning` and
`cpu.compact` have the same compiled, on all cores: many edges go there.
"""

import functools
from collections import deque
from importlib import import_module

import numpy as np

from tcgpu.arrays import CleanColumns, bincount, repeat, running_sums
from tcgpu.engines.choice import in_numpy

MAX_VERTICES = 2**31 - 1  # so a row number and the direction of an edge fit in 32 bits


def compiled_for_many(function):
    """Decorate a function that is compiled in `tcgpu.cpu`, too: that one is called where arrays are large."""
    home = "tcgpu.cpu.compact" if function.__name__ == "compact" else "tcgpu.cpu.cleaning"

    @functools.wraps(function)
    def either(*args):
        if in_numpy(sum(array.size for array in args if isinstance(array, np.ndarray)), compiled=False):
            return function(*args)
        return getattr(import_module(home), function.__name__)(*args)

    return either


@compiled_for_many
def min_max(u, v):
    """The smallest and the largest number in two arrays of equal length, int32 or int64; (0, -1) if they are empty."""
    return (int(min(u.min(), v.min())), int(max(u.max(), v.max()))) if u.size else (0, -1)


@compiled_for_many
def clean_columns(u, v, n, rank=None):
    """The CleanColumns of the graph with edges `u[k] - v[k]` on vertices 0..n-1.

    `u` and `v` are contiguous arrays of one type, int32 or int64, with all numbers in 0..n-1 (see `min_max`). If
    `rank` is given, vertex v gets the number `rank[v]` at once, which saves a second sort.
    """
    u, v = ((ends if rank is None else rank[ends]).astype(np.int64) for ends in (u, v))
    no_loop = u != v
    loops, u, v = int(u.size - np.count_nonzero(no_loop)), u[no_loop], v[no_loop]
    directed = np.sort((np.minimum(u, v) * n + np.maximum(u, v)) << 1 | (u > v))
    directed = directed[np.diff(directed, prepend=-1) > 0]  # numpy.unique imports numpy.ma
    edges = directed >> 1
    edges = edges[np.diff(edges, prepend=-1) > 0]
    lengths = bincount(edges // max(n, 1), minlength=n)
    row_idx, pairs = (edges % max(n, 1)).astype(np.int32), directed.size - edges.size
    return CleanColumns(
        running_sums(lengths), row_idx, loops, u.size - directed.size, pairs, int(lengths.max(initial=0))
    )


@compiled_for_many
def moved_columns(col_ptr, row_idx, rank):
    """The CleanColumns of the same graph in which vertex v has the number `rank[v]`."""
    return clean_columns(column_of_each(col_ptr, row_idx.size), row_idx, rank.size, rank)


@compiled_for_many
def column_of_each(col_ptr, m):
    """The column of each of the m nonzeros (int32)."""
    return repeat(np.arange(col_ptr.size - 1, dtype=np.int32), np.diff(col_ptr))


@compiled_for_many
def occurrences(n, *lists):
    """How often each of 0..n-1 occurs in one or more lists (int32)."""
    return sum(bincount(values, minlength=n) for values in lists).astype(np.int32)


@compiled_for_many
def degrees(col_ptr, row_idx):
    """The number of neighbours of each vertex (int64): the length of its column and of its row."""
    return np.diff(col_ptr) + bincount(row_idx, minlength=col_ptr.size - 1)


@compiled_for_many
def adjacency(col_ptr, row_idx, degree):
    """The sorted neighbours of each vertex as CSR `(indptr, indices)`: the smaller ones, then those of its column."""
    column = column_of_each(col_ptr, row_idx.size)
    ends, others = np.concatenate((row_idx, column)), np.concatenate((column, row_idx))
    return running_sums(degree), others[np.lexsort((others, ends))]


@compiled_for_many
def rank_by_degree(degree):
    """`rank[v]`, the number of vertex v by ascending degree; vertices of equal degree keep their order."""
    rank = np.empty(degree.size, np.int32)
    rank[np.argsort(degree, kind="stable")] = np.arange(degree.size, dtype=np.int32)
    return rank


@compiled_for_many
def rank_by_bfs(indptr, indices):
    """`rank[v]`, when a breadth-first search reaches v from vertex 0, or else from the first vertex not yet reached."""
    starts, others = indptr.tolist(), indices.tolist()
    rank = dict.fromkeys(())  # vertex -> None, in the order in which they are reached
    for root in range(len(starts) - 1):
        waiting = deque([] if root in rank else [root])
        rank.setdefault(root)
        while waiting:
            v = waiting.popleft()
            new = [w for w in others[starts[v] : starts[v + 1]] if w not in rank]
            rank |= dict.fromkeys(new)
            waiting += new
    found = np.empty(len(rank), np.int32)
    found[np.fromiter(rank, np.intp, len(rank))] = np.arange(len(rank), dtype=np.int32)
    return found


@compiled_for_many
def first_invalid_column(col_ptr, row_idx):
    """The first column that is not strictly ascending with all rows between the column's number and n, or -1."""
    column, n = column_of_each(col_ptr, row_idx.size), col_ptr.size - 1
    before = np.append(-1, row_idx[:-1])[: row_idx.size]
    first = col_ptr[:-1][np.diff(col_ptr) > 0]
    before[first] = column[first]
    wrong = np.flatnonzero((row_idx <= before) | (row_idx >= n))
    return int(column[wrong[0]]) if wrong.size else -1


@compiled_for_many
def compact(u, v):
    """Number the ids that occur in two arrays in ascending order: `(u, v, n, ids)`.

    u, v: the ends of edges, contiguous arrays of one type, int32 or int64; ids may be negative. Returns both ends as
    vertices (int32), the number of vertices, and the id of each vertex (int64), or None if every id is the vertex
    itself.
    """
    ids, number = np.unique(np.concatenate((u, v)), return_inverse=True)
    number, n = number.astype(np.int32), ids.size
    is_vertex = n == 0 or ids[0] == 0 and ids[-1] == n - 1
    return number[: u.size], number[u.size :], n, None if is_vertex else ids.astype(np.int64)
