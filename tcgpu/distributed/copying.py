"""The columns of a part copied to where a device can fetch them, right from the graph's own arrays or files."""

import numpy as np

from tcgpu.engines.native import jit

U64 = np.uint64


def fill_columns(graph, begin, end, at, words):
    """Words of the memory of a range of columns, from word `at` on: first where each begins, then the rows, by twos.

    NumPy does it, and lets other threads run meanwhile.
    """
    first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
    pointers = graph.col_ptr[begin + at : min(begin + at + words.size, end + 1)]
    np.subtract(pointers, first, out=words[: pointers.size])
    halves = words[pointers.size :].view(np.int32)
    row = first + 2 * max(0, at - (end - begin + 1))
    rows = graph.row_idx[row : min(last, row + halves.size)]
    halves[: rows.size] = rows


def fill_columns_of(graph, first, last, at, words):
    """Words of a list of the columns of nonzeros first..last - 1, by twos, from word `at` on."""
    begin = first + 2 * at
    _fill_columns_of(graph.col_ptr, begin, min(last, begin + 2 * words.size), words.view(np.int32))


@jit
def _fill_columns_of(col_ptr, begin, last, columns):
    at = begin
    j = np.searchsorted(col_ptr, at, side="right") - 1
    while at < last:
        end = min(last, col_ptr[U64(j + 1)])
        while at < end:
            columns[U64(at - begin)] = j
            at += 1
        j += 1
