"""How many vertices a file has, and what they are called."""

import numpy as np

from tcgpu import columns
from tcgpu._native import jit, popcount, run_threads, threads
from tcgpu.graph import GraphError

U64 = np.uint64
SPREAD = 32  # numbers may be spread this much wider than there are of them; beyond, they are sorted
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
    if high - low >= SPREAD * u.size + (1 << 20):
        return _compact_by_sorting(u, v)
    span = high - low + 1
    seen = np.zeros((span + 63) // 64 * 64, np.bool_)
    for ids in (u, v):
        _in_shares(_mark, ids, low, seen)
    n = int(np.count_nonzero(seen))
    if n == span and low == 0:
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), n, None
    labels = np.flatnonzero(seen) + low
    words = np.packbits(seen, bitorder="little").view("<u8").astype(np.uint64, copy=False)
    before = np.zeros(words.size, np.int32)
    before[1:] = np.cumsum(np.bitwise_count(words[:-1]))
    u, v = (_renumbered(_rank, ids, low, words, before) for ids in (u, v))
    return u, v, n, labels


def _compact_by_sorting(u, v):
    labels = np.unique(np.concatenate((u, v))).astype(np.int64, copy=False)
    u, v = (_renumbered(_search, ids, labels) for ids in (u, v))
    return u, v, labels.size, labels


def _renumbered(function, ids, *args):
    numbers = np.empty(ids.size, np.int32)
    _in_shares(function, ids, *args, numbers)
    return numbers


def _in_shares(function, ids, *args):
    run_threads(function, ids, *args, workers=threads() if ids.size > columns.MANY else 1)


@jit
def _mark(worker, workers, ids, low, seen):
    """Several workers may mark the same vertex: they write the same byte."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        seen[U64(ids[U64(k)] - low)] = True


@jit
def _rank(worker, workers, ids, low, words, before, numbers):
    """The new number of a vertex is how many marked ones come before it."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word = place >> U64(6)
        below = words[word] & ((U64(1) << (place & U64(63))) - U64(1))
        numbers[U64(k)] = before[word] + np.int32(popcount(below))


@jit
def _search(worker, workers, ids, labels, numbers):
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        first, last = 0, labels.size
        while last - first > 1:
            middle = (first + last) >> 1
            if labels[U64(middle)] <= ids[U64(k)]:
                first = middle
            else:
                last = middle
        numbers[U64(k)] = first
