"""The columns of a part copied to where a device can fetch them, right from the graph's own arrays or files."""

import numpy as np

from tcgpu._native import jit

U64 = np.uint64


def fill_columns(graph, begin, end, at, words):
    """Words of the memory of a range of columns, from word `at` on: first where each begins, then the rows, by twos."""
    first, last = graph.col_ptr[begin], graph.col_ptr[end]
    _fill_columns(graph.col_ptr, graph.row_idx, begin, end, first, last, at, words, words.view(np.int32))


def fill_columns_of(graph, first, last, at, words):
    """Words of a list of the columns of nonzeros first..last - 1, by twos, from word `at` on."""
    begin = first + 2 * at
    _fill_columns_of(graph.col_ptr, begin, min(last, begin + 2 * words.size), words.view(np.int32))


@jit
def _fill_columns(col_ptr, row_idx, begin, end, first, last, at, words, halves):
    pointers = end - begin + 1
    stop = min(at + words.size, pointers)
    for k in range(at, stop):
        words[U64(k - at)] = col_ptr[U64(begin + k)] - first
    put = 2 * max(0, pointers - at)
    e = first + 2 * max(0, at - pointers)
    for k in range(min(halves.size - put, last - e)):
        halves[U64(put + k)] = row_idx[U64(e + k)]


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
