"""How many vertices a file has, and what they are called."""

import numpy as np

from tcgpu import columns
from tcgpu._native import fetch_or, jit, popcount, run_threads, threads, trailing_zeros
from tcgpu.graph import GraphError

U64 = np.uint64
SPREAD = 64  # a table of marks may be for this many more numbers than there are edges: 16 bytes an edge
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
    marks = np.zeros((span + 63) // 64 * 2, np.uint64)  # for 64 numbers: which of them occur, how many before them do
    for ids in (u, v):
        _on_all_cores(_mark, ids, low, marks)
    counts = np.zeros(threads(), np.int64)
    run_threads(_count_marked, marks, counts, workers=counts.size)
    n = int(counts.sum())
    if n == span and low == 0:
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), n, None
    labels = np.empty(n, np.int64)
    run_threads(_number_marked, marks, np.cumsum(counts) - counts, low, labels, workers=counts.size)
    return *(_renumbered(_rank, ids, low, marks) for ids in (u, v)), n, labels


def _compact_by_sorting(u, v, low):
    """For numbers spread so wide that a table of all between them is too large."""
    shares = [None] * threads()
    run_threads(_distinct_in_share, u, v, shares, workers=len(shares))
    labels = _distinct(np.concatenate(shares), kind="stable").astype(np.int64)  # a stable sort merges sorted shares
    # a table of where the labels of each range of 2^shift numbers start: most ranges have about one
    shift = max(0, (int(labels[-1]) - low).bit_length() - labels.size.bit_length())
    starts = np.concatenate(([0], np.cumsum(np.bincount((labels - low) >> shift))))
    return *(_renumbered(_search, ids, low, shift, starts, labels) for ids in (u, v)), labels.size, labels


def _distinct_in_share(worker, workers, u, v, shares):
    share = slice(u.size * worker // workers, u.size * (worker + 1) // workers)
    ids = np.concatenate((u[share], v[share]))
    bits = max(1, ids.size.bit_length())
    kept = _sift(ids, np.full(1 << bits, -1, ids.dtype), U64(64 - bits))
    shares[worker] = _distinct(ids[:kept])


def _distinct(values, kind=None):
    """The distinct ones of these values, ascending; they are sorted in place."""
    values.sort(kind=kind)
    first = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def _renumbered(function, ids, *args):
    numbers = np.empty(ids.size, np.int32)
    _on_all_cores(function, ids, *args, numbers)
    return numbers


def _on_all_cores(function, values, *args):
    run_threads(function, values, *args, workers=threads() if values.size > columns.MANY else 1)


@jit
def _mark(worker, workers, ids, low, marks):
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word, bit = place >> U64(6) << U64(1), U64(1) << (place & U64(63))
        if marks[word] & bit == 0:
            fetch_or(marks, word, bit)


@jit
def _count_marked(worker, workers, marks, counts):
    words = marks.size // 2
    for k in range(words * worker // workers, words * (worker + 1) // workers):
        counts[worker] += np.int64(popcount(marks[U64(2 * k)]))


@jit
def _number_marked(worker, workers, marks, before, low, labels):
    """The occurring numbers in ascending order, and beside each word of marks how many come before it."""
    words = marks.size // 2
    put = before[worker]
    for k in range(words * worker // workers, words * (worker + 1) // workers):
        marks[U64(2 * k + 1)] = put
        rest = marks[U64(2 * k)]
        while rest:
            labels[U64(put)] = low + 64 * k + np.int64(trailing_zeros(rest))
            rest &= rest - U64(1)
            put += 1


@jit
def _rank(worker, workers, ids, low, marks, numbers):
    """The new number of a vertex is how many marked ones come before it."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word = place >> U64(6) << U64(1)
        below = marks[word] & ((U64(1) << (place & U64(63))) - U64(1))
        numbers[U64(k)] = marks[word | U64(1)] + popcount(below)


@jit
def _sift(ids, latest, shift):
    """Move to the front what is not the latest number with its hash: most duplicates go, so that less is sorted."""
    kept = 0
    for k in range(ids.size):
        slot = U64(ids[U64(k)]) * U64(0x9E3779B97F4A7C15) >> shift
        if latest[slot] != ids[U64(k)]:
            latest[slot] = ids[U64(kept)] = ids[U64(k)]
            kept += 1
    return kept


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
