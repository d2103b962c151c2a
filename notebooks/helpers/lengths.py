"""Graphs whose edges all intersect two lists of given lengths m and n, to time a method by the lengths alone.

The time of an intersection depends on the lengths of its two lists. Real graphs have all lengths at once.
"""

import numpy as np

from tcgpu.arrays import repeat
from tcgpu.errors import GraphError
from tcgpu.graph import Graph

DENSITY = 4  # rows are drawn from a range this many times as long: a quarter of the shorter list is in the longer one
ROWS = 1 << 20  # in all longer lists together: more than a first-level cache holds


def graph(m, n, edges=1 << 20, *, seed=0):
    """A Graph with about this many edges (i, j) whose column j has m rows after row i, in the mean, and column i n.

    The columns i of its other edges are empty. `asking(graph)` is the number of edges with an intersection.

    Vertices come in three kinds, in this order. A j has a few i as its first rows, neighbouring in number, and then
    about as many rows k. So at its first i more than m rows are left, at its last i fewer, and m in the mean. An i has
    n rows k.
    """
    if not (1 <= m and 1 <= n and 1 <= edges):
        raise GraphError(f"lengths and edges are at least 1, not m={m}, n={n}, edges={edges}")
    chance = np.random.default_rng(seed)
    firsts = max(1, 2 * (m // 3) + 1 if m > 2 else 1)  # an odd number, so that the mean of what is left is whole
    rest = m - (firsts - 1) // 2
    first = max(1, round(edges / firsts))
    second = max(firsts, min(edges, ROWS) // n)
    third = DENSITY * max(rest, n)
    js = np.concatenate([first + spread(chance, first, firsts, second),
                         first + second + spread(chance, first, rest, third)], axis=1)  # fmt: skip
    i_rows = first + second + spread(chance, second, n, third)
    lengths = repeat([js.shape[1], n, 0], [first, second, third])
    row_idx = np.concatenate([js.ravel(), i_rows.ravel()]).astype(np.int32)
    return Graph(np.concatenate([[0], np.cumsum(lengths)]), row_idx, name=f"{m} rows looked up among {n}")


def spread(chance, lists, length, among):
    """Ascending lists of different numbers below `among`, one in each of `length` equal stretches of them."""
    edges = np.arange(length + 1, dtype=np.int64) * among // length
    return edges[:-1] + (chance.random((lists, length)) * np.diff(edges)).astype(np.int64)


def asking(graph):
    """The number of edges (i, j) whose intersection has two lists that are not empty."""
    ends = graph.col_ptr[graph.col_of + 1]
    return int(np.count_nonzero((graph.column_lengths[graph.row_idx] > 0) & (np.arange(graph.m) + 1 < ends)))


def steps(m, n):
    """How many steps two lists of these lengths take: (a merge, a binary search in the longer for each of the other).

    A merge passes over every row of both. A search among n rows takes as many steps as n has binary digits.
    """
    short, long = min(m, n), max(m, n)
    return (short + long, short * long.bit_length()) if short else (0, 0)


def work(graph):
    """The work of intersecting, for each edge (i, j), the rows of column j after i with all of column i: `lookups`, one
    for each row of the shorter list, `merge_steps` and `search_steps`; none where one of the lists is empty."""
    rest = graph.col_ptr[1:][graph.col_of] - np.arange(1, graph.m + 1)
    whole = graph.column_lengths[graph.row_idx].astype(np.int64)
    short, long = np.minimum(rest, whole), np.maximum(rest, whole)
    digits = np.frexp(long)[1].astype(np.int64)
    return {
        "merge_steps": int((rest + whole)[short > 0].sum()),
        "search_steps": int((short * digits).sum()),
        "lookups": int(short.sum()),
    }
