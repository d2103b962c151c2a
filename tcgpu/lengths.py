"""Edges that ask for two columns of given lengths: a graph of nothing else, to measure a method over (m, n).

What an intersection costs goes by how long its two lists are. In a graph of the world they are of all lengths at once.
"""

import numpy as np

from tcgpu.graph import Graph, GraphError

DENSITY = 4  # rows are drawn from so many times as many: a quarter of the shorter list is in the longer one
ROWS = 1 << 20  # of all longer lists together: more than a first-level cache holds


def graph(m, n, edges=1 << 20, *, seed=0):
    """A Graph with about so many edges (i, j) whose column j has m rows after row i, in the mean, and column i n.

    Its other edges have nothing to be looked up in: their columns i are empty. `asking(graph)` says how many ask.

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
    second = max(firsts, ROWS // n if edges * n > ROWS else -(-edges // 4))
    third = DENSITY * max(rest, n)
    js = np.concatenate([first + spread(chance, first, firsts, second),
                         first + second + spread(chance, first, rest, third)], axis=1)  # fmt: skip
    i_rows = first + second + spread(chance, second, n, third)
    lengths = np.repeat([js.shape[1], n, 0], [first, second, third])
    row_idx = np.concatenate([js.ravel(), i_rows.ravel()]).astype(np.int32)
    return Graph(np.concatenate([[0], np.cumsum(lengths)]), row_idx, name=f"{m} rows looked up among {n}")


def spread(chance, lists, length, among):
    """Ascending lists of different numbers below `among`, one in each of `length` equal stretches of them."""
    edges = np.arange(length + 1, dtype=np.int64) * among // length
    return edges[:-1] + (chance.random((lists, length)) * np.diff(edges)).astype(np.int64)


def asking(graph):
    """How many edges (i, j) have rows to look up in both columns."""
    ends = graph.col_ptr[graph.col_of + 1]
    return int(np.count_nonzero((graph.column_lengths[graph.row_idx] > 0) & (np.arange(graph.m) + 1 < ends)))
