"""Number the ids of vertices, any 64-bit integers, as 0..n-1.

If the ids are close together, a table with a bit for each integer between the smallest and the largest marks those that
occur; the vertex of an id is the number of marks before it. Otherwise the ids are sorted and looked up. `compact` takes
and returns what that of `tcgpu.clean` does.
"""

import numpy as np

from tcgpu.arrays import bincount, locked
from tcgpu.cpu.cleaning import min_max
from tcgpu.cpu.edges import last_up_to
from tcgpu.engines.native import U64, fetch_or, jit, lowest_bit, popcount, run_threads, shares, threads

MAX_SPAN_PER_EDGE = 64  # the table may cover this many integers for each edge: 16 bytes an edge,
MAX_SPAN = 1 << 24  # and always this many


def compact(u, v):
    low, high = min_max(u, v)
    span = high - low + 1
    if span > MAX_SPAN_PER_EDGE * u.size + MAX_SPAN:
        return _compact_by_sorting(u, v, low)
    marks = np.zeros((span + 63) // 64 * 2, np.uint64)  # for each 64 ids: a word of marks, and how many come before it
    for ends in (u, v):
        _run(_mark, ends, low, marks)
    counts = np.zeros(shares(marks.size), np.int64)
    run_threads(_count_marked, marks, counts, workers=counts.size)
    n = int(counts.sum())
    if n == span and low == 0:
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), n, None
    ids = np.empty(n, np.int64)
    run_threads(_number_marked, marks, np.cumsum(counts) - counts, low, ids, workers=counts.size)
    return *(_vertices(_rank, ends, low, marks) for ends in (u, v)), n, ids


def _compact_by_sorting(u, v, low):
    """`compact` for ids too far apart for a table."""
    parts = [None] * threads()
    run_threads(_distinct_in_share, u, v, parts, workers=len(parts))
    ids = _distinct(np.concatenate(parts), kind="stable").astype(np.int64)  # a stable sort merges sorted parts
    # `starts`: where the ids of each range of 2^shift integers start; most ranges have about one id
    shift = max(0, (int(ids[-1]) - low).bit_length() - ids.size.bit_length())
    ranges = (ids.view(U64) - U64(low % 2**64)) >> U64(shift)  # unsigned: a span may need all 64 bits
    starts = np.concatenate(([0], np.cumsum(bincount(ranges.astype(np.int64)))))
    return *(_vertices(_search, ends, low, shift, starts, ids) for ends in (u, v)), ids.size, ids


def _distinct_in_share(worker, workers, u, v, parts):
    """Write the distinct ids of a share of the edges to `parts[worker]`, ascending."""
    share = slice(u.size * worker // workers, u.size * (worker + 1) // workers)
    ids = np.concatenate((u[share], v[share]))
    bits = max(1, ids.size.bit_length())
    latest = np.full(1 << bits, ids[0] if ids.size else 0, ids.dtype)
    kept = _drop_repeats(ids, latest, U64(64 - bits))
    parts[worker] = _distinct(ids[:kept])


def _distinct(values, kind=None):
    """The distinct values, ascending; the array is sorted in place."""
    values.sort(kind=kind)
    first = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def _vertices(function, ids, *args):
    """The vertex of each id, looked up by `function`."""
    vertices = np.empty(ids.size, np.int32)
    _run(function, ids, *args, vertices)
    return vertices


def _run(function, values, *args):
    run_threads(function, locked(values), *args, workers=shares(values.size))


@jit
def _mark(worker, workers, ids, low, marks):
    """Set the bit of each id in a share of `ids`."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word, bit = place >> U64(6) << U64(1), U64(1) << (place & U64(63))
        if marks[word] & bit == 0:
            fetch_or(marks, word, bit)


@jit
def _count_marked(worker, workers, marks, counts):
    """Write how many ids are marked in a share of the table to `counts[worker]`."""
    words = marks.size // 2
    for k in range(words * worker // workers, words * (worker + 1) // workers):
        counts[worker] += np.int64(popcount(marks[U64(2 * k)]))


@jit
def _number_marked(worker, workers, marks, before, low, ids):
    """Write the marked ids in ascending order, and after each word of marks how many come before it."""
    words = marks.size // 2
    put = before[worker]
    for k in range(words * worker // workers, words * (worker + 1) // workers):
        marks[U64(2 * k + 1)] = put
        rest = marks[U64(2 * k)]
        while rest:
            ids[U64(put)] = low + 64 * k + lowest_bit(rest)
            rest &= rest - U64(1)
            put += 1


@jit
def _rank(worker, workers, ids, low, marks, vertices):
    """The vertex of an id is the number of marked ids before it."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        place = U64(ids[U64(k)] - low)
        word = place >> U64(6) << U64(1)
        below = marks[word] & ((U64(1) << (place & U64(63))) - U64(1))
        vertices[U64(k)] = marks[word | U64(1)] + popcount(below)


@jit
def _drop_repeats(ids, latest, shift):
    """Move ids that differ from the latest id of their hash to the front; returns how many.

    This drops most repeats, so that less is sorted. `latest` holds ids[0] at first, which stays in its place.
    """
    kept = min(ids.size, 1)
    for k in range(1, ids.size):
        slot = U64(ids[U64(k)]) * U64(0x9E3779B97F4A7C15) >> shift
        if latest[slot] != ids[U64(k)]:
            latest[slot] = ids[U64(kept)] = ids[U64(k)]
            kept += 1
    return kept


@jit
def _search(worker, workers, ids, low, shift, starts, distinct, vertices):
    """The vertex of an id is its index among the distinct ids; `starts` says between which two indices to look."""
    for k in range(ids.size * worker // workers, ids.size * (worker + 1) // workers):
        key = np.int64(ids[U64(k)])
        part = (U64(key) - U64(low)) >> U64(shift)
        vertices[U64(k)] = last_up_to(distinct, starts[part], starts[part + U64(1)], key)
