"""How many vertices a file has, and what they are called."""

import numpy as np

from tcgpu import columns
from tcgpu._native import jit, popcount, run_threads, threads, trailing_zeros
from tcgpu.graph import GraphError

U64 = np.uint64
SPREAD = 256  # numbers up to this much wider apart than there are edges are marked in a table of bits
FEW = 1 << 24  # vertices that any machine has memory for
LONELY = 256  # more vertices than this for each edge look like a mistake


def checked_count(n):
    """`n` as a count of vertices: None, or an int that a graph can have."""
    if n is None:
        return None
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= columns.MAX_VERTICES:
        raise GraphError(f"n must be a whole number in 0..{columns.MAX_VERTICES}, not {n!r}")
    return int(n)


def checked_memory(n, edges, path):
    """Refuse a vertex count that a few bytes claim and gigabytes would be asked for."""
    if n > FEW and n > LONELY * edges:
        raise GraphError(
            f"{path}: {n} vertices for {edges} edges would take {8 * n / 1e9:.1f} GB; if that is meant, say n={n}"
        )


def checked_against(n, found, path):
    """Refuse a file that has another number of vertices than the caller asked for."""
    if n is not None and n != found:
        raise GraphError(f"{path} has {found} vertices, not the {n} that were asked for")


def compact(u, v):
    """Renumber the vertices that occur in two arrays 0, 1, ... in ascending order: `(u, v, n, labels)`.

    `labels[v]` (int64) is what vertex v was; None where nothing changed.
    """
    low, high = columns.extent(u, v)
    span = high - low + 1
    if span > SPREAD * u.size + FEW:
        return _compact_by_sorting(u, v, low)
    marks = np.zeros((span + 63) // 64, np.uint64)
    for ids in (u, v):
        _on_all_cores(_mark, ids, low, marks)
    in_word = np.bitwise_count(marks)
    n = int(in_word.sum(dtype=np.int64))
    if n == span and low == 0:
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), n, None
    before = np.cumsum(in_word, dtype=np.int64) - in_word
    labels = np.empty(n, np.int64)
    _on_all_cores(_list_marked, marks, before, low, labels)
    return *(_renumbered(_rank, ids, low, marks, before) for ids in (u, v)), n, labels


def _compact_by_sorting(u, v, low):
    """For numbers spread so wide that no table has room for all between them."""
    ids = np.sort(np.concatenate((u, v)))
    first = np.ones(ids.size, np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=first[1:])
    labels = ids[first].astype(np.int64)
    # of each range of 2^shift numbers, where its labels start: most ranges have about one
    shift = max(0, (int(labels[-1]) - low).bit_length() - labels.size.bit_length())
    ranges = (labels - low) >> shift
    starts = np.concatenate(([0], np.cumsum(np.bincount(ranges))))
    return *(_renumbered(_search, ids, low, shift, starts, labels) for ids in (u, v)), labels.size, labels


def _renumbered(function, ids, *args):
    numbers = np.empty(ids.size, np.int32)
    _on_all_cores(function, ids, *args, numbers)
    return numbers


def _on_all_cores(function, values, *args):
    run_threads(function, values, *args, workers=threads() if values.size > columns.MANY else 1)


@jit
def _mark(worker, workers, ids, low, marks):
    """Each worker looks at all numbers and marks those in its share of the words: none waits for another."""
    first = U64(marks.size * worker // workers)
    share = U64(marks.size * (worker + 1) // workers) - first
    for k in range(ids.size):
        place = U64(ids[U64(k)] - low)
        word = place >> U64(6)
        if word - first < share:
            marks[word] |= U64(1) << (place & U64(63))


@jit
def _list_marked(worker, workers, marks, before, low, labels):
    for k in range(marks.size * worker // workers, marks.size * (worker + 1) // workers):
        rest = marks[U64(k)]
        put = before[U64(k)]
        while rest:
            labels[U64(put)] = low + (k << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - U64(1)
            put += 1


@jit
def _rank(worker, workers, ids, low, marks, before, numbers):
    """The new number of a vertex is how many marked ones come before it."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word = place >> U64(6)
        below = marks[word] & ((U64(1) << (place & U64(63))) - U64(1))
        numbers[U64(k)] = before[word] + np.int64(popcount(below))


@jit
def _search(worker, workers, ids, low, shift, starts, labels, numbers):
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        wanted = np.int64(ids[U64(k)])
        place = U64(wanted - low) >> U64(shift)
        first, last = starts[place], starts[place + U64(1)]
        while last - first > 1:
            middle = (first + last) >> 1
            if labels[U64(middle)] <= wanted:
                first = middle
            else:
                last = middle
        numbers[U64(k)] = first
