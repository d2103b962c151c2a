"""Counting a part on all cores of a CPU: byte for byte in the graph's own arrays, which may be memory-mapped.

A worker takes a stretch of the part's edges. Of each column there it sets the rows behind the first of these edges as
bits, and looks up the columns of the edges' rows. Beside the graph, a worker needs a bit for each vertex; to tell edges
or vertices apart, an int32.
"""

import numpy as np

from tcgpu._native import fetch_add, inline, jit, run_threads, threads

STRETCH = 1 << 10, 1 << 16  # edges that a worker takes at a time: at least, at most;
TURNS = 16  # between them, so many that each worker comes for more about as often
MANY = 50_000  # fewer edges are not worth waking the other cores

I64 = np.int64
U64 = np.uint64


def count(graph, part, workers=None):
    """The number of triangles of a Part."""
    if part.barren(graph):
        return 0
    workers = _workers(part, workers)
    found = np.zeros(workers, np.int64)
    marks = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    run_threads(_count, graph.col_ptr, graph.row_idx, *_ends(part), _queue(part, workers), marks, found,
                workers=workers)  # fmt: skip
    return int(found.sum())


def fill_columns(graph, begin, end, at, words):
    """Words of the memory of a range of columns, from word `at` on: first where each begins, then the rows, by twos."""
    first, last = graph.col_ptr[begin], graph.col_ptr[end]
    _fill_columns(graph.col_ptr, graph.row_idx, begin, end, first, last, at, words, words.view(np.int32))


def fill_columns_of(graph, first, last, at, words):
    """Words of a list of the columns of nonzeros first..last - 1, by twos, from word `at` on."""
    begin = first + 2 * at
    _fill_columns_of(graph.col_ptr, begin, min(last, begin + 2 * words.size), words.view(np.int32))


def tally(graph, part, by_edge, workers=None):
    """The triangles of a Part at each of their edges, or of their vertices: [(where an array begins, the array)].

    The arrays reach over the edges or vertices that the part's triangles may have, and no further.
    """
    if part.barren(graph):
        return []
    workers = _workers(part, workers)
    found = [(low, np.zeros(high - low, np.int64)) for low, high in part.reach(graph, by_edge)]
    (near0, near), (far0, far) = found[0], found[-1]
    marks = np.zeros((workers, graph.n), np.int32)
    run_threads(_tally, graph.col_ptr, graph.row_idx, *_ends(part), _queue(part, workers), marks, by_edge,
                near0, far0, near, far, workers=workers)  # fmt: skip
    return found


def _workers(part, workers):
    return (workers or threads()) if part.last - part.first >= MANY else 1


def _ends(part):
    return np.array([part.first, part.last], np.int64), np.array([part.low, part.high], np.int64)


def _queue(part, workers):
    """The number of the next stretch to take, and how many edges it has."""
    return np.array([0, min(max((part.last - part.first) // (workers * TURNS), STRETCH[0]), STRETCH[1])], np.int64)


@inline
def _first_from(row_idx, begin, end, row):
    """The first position in begin..end - 1 whose row is `row` or more, or `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if row_idx[U64(middle)] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def _count(worker, workers, col_ptr, row_idx, edges, rows, queue, all_marks, found):
    marks = all_marks[worker]
    total = I64(0)
    while True:
        at = edges[0] + queue[1] * fetch_add(queue, 0, 1)
        if at >= edges[1]:
            break
        stop = min(edges[1], at + queue[1])
        j = np.searchsorted(col_ptr, at, side="right") - 1
        while at < stop:
            end = col_ptr[U64(j + 1)]
            here = min(stop, end)
            begin = _first_from(row_idx, at, here, rows[0])
            last = _first_from(row_idx, begin, here, rows[1])
            if begin < last and begin + 1 < end:
                for k in range(begin + 1, end):
                    row = U64(row_idx[U64(k)])
                    marks[row >> U64(6)] |= U64(1) << (row & U64(63))
                for e in range(begin, last):
                    i = U64(row_idx[U64(e)])
                    common = U64(0)
                    for k in range(col_ptr[i], col_ptr[i + U64(1)]):
                        row = U64(row_idx[U64(k)])
                        common += marks[row >> U64(6)] >> (row & U64(63)) & U64(1)
                    total += I64(common)
                for k in range(begin + 1, end):
                    marks[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
            at = here
            j += 1
    found[worker] = total


@jit
def _tally(worker, workers, col_ptr, row_idx, edges, rows, queue, all_marks, by_edge, near0, far0, near, far):
    """Add to the edges or vertices of every triangle; what is shared, in one atomic step each.

    `near` begins at edge or vertex `near0` and has what belongs to the part's columns, `far` from `far0` on what
    belongs to its rows; they may be one array.
    """
    marks = all_marks[worker]
    while True:
        at = edges[0] + queue[1] * fetch_add(queue, 0, 1)
        if at >= edges[1]:
            break
        stop = min(edges[1], at + queue[1])
        j = np.searchsorted(col_ptr, at, side="right") - 1
        while at < stop:
            end = col_ptr[U64(j + 1)]
            here = min(stop, end)
            begin = _first_from(row_idx, at, here, rows[0])
            last = _first_from(row_idx, begin, here, rows[1])
            if begin < last and begin + 1 < end:
                for k in range(begin + 1, end):
                    marks[U64(row_idx[U64(k)])] = k - begin
                for e in range(begin, last):
                    i = U64(row_idx[U64(e)])
                    common = I64(0)
                    for k in range(col_ptr[i], col_ptr[i + U64(1)]):
                        row = row_idx[U64(k)]
                        place = marks[U64(row)]
                        if place:
                            common += 1
                            if by_edge:
                                fetch_add(near, begin + place - near0, 1)
                                fetch_add(far, k - far0, 1)
                            else:
                                fetch_add(far, I64(row) - far0, 1)
                    if common and by_edge:
                        fetch_add(near, e - near0, common)
                    elif common:
                        fetch_add(near, j - near0, common)
                        fetch_add(far, I64(i) - far0, common)
                for k in range(begin + 1, end):
                    marks[U64(row_idx[U64(k)])] = 0
            at = here
            j += 1


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
