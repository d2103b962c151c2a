"""Sums over the neighbours of each vertex, in NumPy."""

import numpy as np

from tcgpu.arrays import blocks


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
