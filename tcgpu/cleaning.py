"""Turn raw edges into the clean, sorted columns of the strictly lower triangular matrix L, on all cores.

Memory traffic dominates the time, so there are only two scattered passes over memory, whatever the size of the graph:
each edge becomes a 64-bit key (column, row, direction); the keys are partitioned by column into buckets that fit a
core's cache; each bucket is sorted there, its duplicates are dropped, and the rest is copied to its position.

    key = column << 32 | row << 1 | direction      column = min(u, v), row = max(u, v), direction = 1 where u > v
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.native import MANY, fetch_add, jit, run_threads, shares, stoppable, stopped, threads

MAX_VERTICES = 2**31 - 1  # a vertex number has 31 bits of the key
MIN_BUCKETS, MAX_BUCKETS = 256, 4096
BUCKET_EDGES = 1 << 13  # the desired size of a bucket: 64 KB of keys, which a core's cache holds
SHORT_COLUMN = 24  # a bucket is sorted by insertion if no column has more rows than this
FEW_ROWS = 4  # and the mean column has no more than this
CHUNK = 1 << 16  # elements that a worker takes from a queue at a time

U64 = np.uint64
U32 = np.uint32


class Columns(NamedTuple):
    """Sorted columns, and how many edges of each kind were dropped."""

    col_ptr: np.ndarray
    row_idx: np.ndarray
    loops: int
    duplicates: int
    reversed: int


def min_max(u, v):
    """The smallest and the largest number in two arrays of equal length, int32 or int64; (0, -1) if they are empty."""
    if u.size == 0:
        return 0, -1
    bounds = np.empty((shares(u.size), 2), np.int64)
    run_threads(_min_max, u, v, bounds, workers=len(bounds))
    return int(bounds[:, 0].min()), int(bounds[:, 1].max())


def clean_columns(u, v, n, rank=None):
    """The Columns of the graph with edges `u[k] - v[k]` on vertices 0..n-1.

    `u` and `v` are contiguous arrays of one type, int32 or int64, with all numbers in 0..n-1 (see `min_max`). If
    `rank` is given, vertex v gets the number `rank[v]` at once, which saves a second sort.
    """
    buckets = min(max(u.size // BUCKET_EDGES, MIN_BUCKETS), MAX_BUCKETS)
    last = max(n, 1) - 1
    shift = max(0, last.bit_length() - (buckets - 1).bit_length())  # bucket = column >> shift
    keys = np.empty(u.size, np.uint64)
    counts = np.zeros((shares(u.size), (last >> shift) + 1), np.int64)  # of the keys for each bucket in each share
    rank = np.empty(0, np.int32) if rank is None else rank
    run_threads(_pack_edges, u, v, rank, shift, keys, counts, workers=len(counts))
    loops = u.size - int(counts.sum())
    col_ptr, row_idx, reversed_pairs = _sort(keys, counts, shift, n)
    return Columns(col_ptr, row_idx, loops, u.size - loops - row_idx.size - reversed_pairs, reversed_pairs)


def column_of_each(col_ptr, m):
    """The column of each of the m nonzeros (int32)."""
    col_of = np.empty(m, np.int32)
    run_threads(_column_of_each, col_ptr, col_of, workers=shares(m))
    return col_of


def occurrences(values, n):
    """How often each of 0..n-1 occurs among the values (int32)."""
    workers = threads() if values.size >= MANY else 1
    workers = max(1, min(workers, values.size // max(n, 1)))  # so the counters take no more memory than the values
    counters = np.zeros((workers, n), np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_occurrences, values, queue, counters, workers=workers, queue=stoppable(queue, values.size))
    for others in counters[1:]:
        counters[0] += others
    return counters[0]


def adjacency(col_ptr, row_idx, degree):
    """The sorted neighbours of each vertex as CSR `(indptr, indices)`: the smaller ones, then those of its column."""
    indptr = np.zeros(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    indices = np.empty(2 * row_idx.size, np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_fill_adjacency, col_ptr, row_idx, queue, indptr[:-1].copy(), indices, workers=1,
                queue=stoppable(queue, row_idx.size))  # fmt: skip
    return indptr, indices


def rank_by_degree(degree):
    """`rank[v]`, the number of vertex v by ascending degree; vertices of equal degree keep their order."""
    rank = np.empty(degree.size, np.int32)
    _rank_by_degree(degree, np.zeros(int(degree.max(initial=0)) + 2, np.int64), rank)
    return rank


def rank_by_bfs(indptr, indices):
    """`rank[v]`, when a breadth-first search reaches v from vertex 0, or else from the first vertex not yet reached."""
    rank = np.full(indptr.size - 1, -1, np.int32)
    queue, reached = np.zeros(1, np.int64), np.empty(rank.size, np.int32)
    run_threads(_rank_by_bfs, indptr, indices, queue, reached, rank, workers=1, queue=stoppable(queue, indices.size))
    return rank


def first_invalid_column(col_ptr, row_idx):
    """The first column that is not strictly ascending with all rows between the column's number and n, or -1."""
    found = np.full(shares(max(row_idx.size, col_ptr.size)), -1, np.int64)
    run_threads(_first_invalid_column, col_ptr, row_idx, found, workers=found.size)
    found = found[found >= 0]
    return int(found.min()) if found.size else -1


# -------------------------------------------------------------------------------------- statistics of a sample of edges


def sample_edges(m, n):
    """Indices of random edges out of m, for the three functions below: enough for about a hundred coincidences.

    Every k-th edge of a sorted list would not work: these edges have few vertices in common.
    """
    return np.random.default_rng(0).choice(m, min(m, 2000 + int(8 * n**0.5)), replace=False)


def relative_distance(u, v, n):
    """The median of |u - v| / n over the edges: small if neighbours have close numbers."""
    return float(np.median(np.abs(u.astype(np.int64) - v))) / n if u.size else 0.0


def degree_skew(u, v, n):
    """The mean squared degree over the squared mean degree: 1 if all degrees are equal. Estimated from random edges.

    Two random ends of edges are the same vertex with probability sum(d^2) / (2m)^2: so coincidences estimate the sum.
    """
    half = u.size // 2
    one, other = np.concatenate((u[:half], v[:half])), np.concatenate((u[half:], v[half:]))
    return _coincidences(one, other) * n / max(one.size * other.size, 1)


def lookups_per_edge(u, v, m):
    """The mean length of column i over the nonzeros (i, j), estimated from random edges out of m.

    The larger end of one is the smaller end of another with probability sum(row length * column length) / m^2.
    """
    half = u.size // 2
    one, other = np.minimum(u, v)[:half], np.maximum(u, v)[half:]
    return _coincidences(one, other) * m / max(one.size * other.size, 1)


def _coincidences(a, b):
    """The number of pairs (k, l) with a[k] == b[l]."""
    a, b = np.sort(a), np.sort(b)
    return int((np.searchsorted(b, a, side="right") - np.searchsorted(b, a, side="left")).sum())


# -------------------------------------------------------------------------------------------- sort, without duplicates


def _sort(keys, counts, shift, n):
    """Partition the packed keys into buckets, then sort each, drop duplicates, and concatenate them.

    Returns `(col_ptr, row_idx, edges that came in both directions)`.
    """
    packers, buckets = counts.shape
    ends = np.cumsum(counts.T.ravel())
    starts = np.ascontiguousarray((ends - counts.T.ravel()).reshape(buckets, packers).T)
    bounds = np.concatenate(([0], ends[packers - 1 :: packers]))
    partitioned = np.empty(int(bounds[-1]), np.uint64)
    run_threads(_partition, keys, counts.sum(axis=1), shift, starts, partitioned, workers=packers)

    workers = threads() if keys.size >= MANY else 1
    sorted_rows = keys.view(np.uint32)  # the keys are not needed again: reuse their memory
    col_ptr = np.zeros(n + 1, np.int64)
    kept = np.zeros(buckets, np.int64)
    reversed_pairs = np.zeros(buckets, np.int64)
    scratch = np.empty((workers, int(np.diff(bounds).max(initial=0))), np.uint64)
    digit_bits = ((max(n, 2) - 1).bit_length() + 1) // 2  # a row is sorted by two digits
    digits = np.empty((workers, 2, 1 << digit_bits), np.uint32)
    column_ends = np.empty((workers, (1 << shift) + 1), np.int64)
    queue = np.zeros(1, np.int64)
    run_threads(
        _sort_buckets, partitioned, bounds, shift, digit_bits, queue, scratch, digits, column_ends,
        sorted_rows, col_ptr, kept, reversed_pairs, workers=workers, queue=stoppable(queue, keys.size),
    )  # fmt: skip

    offsets = np.concatenate(([0], np.cumsum(kept)))
    row_idx = np.empty(int(offsets[-1]), np.int32)
    queue[0] = 0
    run_threads(_concatenate, bounds, offsets, shift, queue, sorted_rows, col_ptr, row_idx, workers=workers,
                queue=stoppable(queue, keys.size))  # fmt: skip
    return col_ptr, row_idx, int(reversed_pairs.sum())


@jit
def _pack_edges(worker, workers, u, v, rank, shift, keys, counts):
    """Pack this worker's share of the edges, without loops, from the start of its share of `keys`."""
    count = counts[worker]
    first = u.size * worker // workers
    put = first
    for k in range(first, u.size * (worker + 1) // workers):
        a, b = U64(u[U64(k)]), U64(v[U64(k)])
        if a == b:
            continue
        if rank.size:
            a, b = U64(rank[a]), U64(rank[b])
        column, row = min(a, b), max(a, b)
        keys[U64(put)] = column << U64(32) | row << U64(1) | U64(a > b)
        count[column >> U64(shift)] += 1
        put += 1


@jit
def _partition(worker, workers, keys, packed, shift, starts, partitioned):
    """Copy the `packed[worker]` keys of this worker's share to their buckets."""
    start = starts[worker]
    first = keys.size * worker // workers
    for k in range(first, first + packed[worker]):
        key = keys[U64(k)]
        bucket = key >> U64(32 + shift)
        partitioned[U64(start[bucket])] = key
        start[bucket] += 1


@jit
def _sort_buckets(
    worker, workers, partitioned, bounds, shift, digit_bits, queue, scratch, digits, column_ends,
    sorted_rows, col_ptr, kept, reversed_pairs,
):  # fmt: skip
    """Sort buckets by (column, row) and drop duplicates.

    Writes the rows of each bucket to the start of its part of `sorted_rows`, the length of column j to
    `col_ptr[j + 1]`, and how many edges were kept and how many came in both directions.
    """
    n = col_ptr.size - 1
    ends = column_ends[worker]
    bucket = fetch_add(queue, 0, 1)
    while bucket < kept.size:
        first, last = bounds[bucket], bounds[bucket + 1]
        column0 = bucket << shift
        columns = min(n - column0, 1 << shift)
        longest = _start_columns(partitioned, first, last, column0, columns, ends)
        by_insertion = longest <= SHORT_COLUMN and last - first <= FEW_ROWS * columns
        if not by_insertion:
            _sort_by_row(partitioned, first, last, digit_bits, digits[worker], scratch[worker])
        for k in range(first, last):
            key = partitioned[U64(k)]
            j = (key >> U64(32)) - U64(column0)
            sorted_rows[U64(ends[j])] = U32(key)
            ends[j] += 1
        if by_insertion:
            _sort_by_insertion(sorted_rows, first, ends, columns)
        kept[bucket], reversed_pairs[bucket] = _drop_duplicates(sorted_rows, first, ends, columns, column0, col_ptr)
        bucket = fetch_add(queue, 0, 1)


@jit
def _start_columns(partitioned, first, last, column0, columns, starts):
    """Write where each column of a bucket starts; returns the length of the longest column."""
    starts[:columns] = 0
    for k in range(first, last):
        starts[(partitioned[U64(k)] >> U64(32)) - U64(column0)] += 1
    longest = np.int64(0)
    at = first
    for j in range(columns):
        length = starts[j]
        starts[j] = at
        at += length
        longest = max(longest, length)
    return longest


@jit
def _sort_by_row(keys, first, last, digit_bits, digits, scratch):
    """Stable radix sort of `keys[first:last]` by row, in two passes."""
    low, high = digits[0], digits[1]
    low[:] = 0
    high[:] = 0
    mask = U64((1 << digit_bits) - 1)
    for k in range(first, last):
        row = keys[U64(k)] >> U64(1) & U64(0x7FFFFFFF)
        low[row & mask] += U32(1)
        high[row >> U64(digit_bits)] += U32(1)
    at_low = at_high = U32(0)
    for digit in range(low.size):
        at_low, low[digit] = at_low + low[digit], at_low
        at_high, high[digit] = at_high + high[digit], at_high
    for k in range(first, last):
        key = keys[U64(k)]
        digit = key >> U64(1) & mask
        scratch[U64(low[digit])] = key
        low[digit] += U32(1)
    for k in range(last - first):
        key = scratch[U64(k)]
        digit = (key >> U64(1) & U64(0x7FFFFFFF)) >> U64(digit_bits)
        keys[U64(first) + U64(high[digit])] = key
        high[digit] += U32(1)


@jit
def _sort_by_insertion(rows, first, ends, columns):
    """Sort each of the columns that follow one another in `rows[first:]`."""
    begin = first
    for j in range(columns):
        for k in range(begin + 1, ends[U64(j)]):
            row = rows[U64(k)]
            hole = k
            while hole > begin and rows[U64(hole - 1)] > row:
                rows[U64(hole)] = rows[U64(hole - 1)]
                hole -= 1
            rows[U64(hole)] = row
        begin = ends[U64(j)]


@jit
def _drop_duplicates(rows, first, ends, columns, column0, col_ptr):
    """Move each distinct row of the sorted columns, without its direction bit, to the front of the bucket.

    Writes the lengths of the columns to `col_ptr`; returns how many rows were kept and how many came in both
    directions.
    """
    pairs = np.int64(0)
    put = k = first
    for j in range(columns):
        before, end = put, ends[U64(j)]
        while k < end:
            row = rows[U64(k)] >> U32(1)
            directions = U32(0)
            while k < end and rows[U64(k)] >> U32(1) == row:
                directions |= U32(1) << (rows[U64(k)] & U32(1))
                k += 1
            pairs += directions == U32(3)
            rows[U64(put)] = row
            put += 1
        col_ptr[U64(column0 + j + 1)] = put - before
    return put - first, pairs


@jit
def _concatenate(worker, workers, bounds, offsets, shift, queue, sorted_rows, col_ptr, row_idx):
    """Copy the kept rows of each bucket to `row_idx`, and turn the lengths in `col_ptr` into offsets."""
    n = col_ptr.size - 1
    bucket = fetch_add(queue, 0, 1)
    while bucket < offsets.size - 1:
        at, gap = offsets[bucket], bounds[bucket] - offsets[bucket]
        for k in range(at, offsets[bucket + 1]):
            row_idx[U64(k)] = np.int32(sorted_rows[U64(k + gap)])
        for j in range(bucket << shift, min(n, bucket + 1 << shift)):
            at += col_ptr[U64(j + 1)]
            col_ptr[U64(j + 1)] = at
        bucket = fetch_add(queue, 0, 1)


# ------------------------------------------------------------------------------------------------------- other passes


@jit
def _min_max(worker, workers, u, v, bounds):
    """Write the smallest and the largest number in this worker's share of both arrays."""
    low = high = u[0]
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        a, b = u[U64(k)], v[U64(k)]
        low, high = min(low, a, b), max(high, a, b)
    bounds[worker, 0], bounds[worker, 1] = low, high


@jit
def _column_of_each(worker, workers, col_ptr, col_of):
    n = col_ptr.size - 1
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            col_of[U64(k)] = j


@jit
def _occurrences(worker, workers, values, queue, counters):
    count = counters[worker]
    first = fetch_add(queue, 0, CHUNK)
    while first < values.size:
        for k in range(first, min(values.size, first + CHUNK)):
            count[U64(values[U64(k)])] += 1
        first = fetch_add(queue, 0, CHUNK)


@jit
def _fill_adjacency(worker, workers, col_ptr, row_idx, queue, put, indices):
    for j in range(put.size):
        if stopped(queue):
            return
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            i = U64(row_idx[U64(k)])
            indices[U64(put[i])] = j
            put[i] += 1
    for j in range(put.size):  # all smaller neighbours are written: append those of the column
        if stopped(queue):
            return
        at = put[U64(j)]
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            indices[U64(at)] = row_idx[U64(k)]
            at += 1


@jit
def _rank_by_degree(degree, start, rank):
    """Counting sort: `start[d]` becomes the next free rank among the vertices of degree d."""
    for v in range(degree.size):
        start[U64(degree[U64(v)] + 1)] += 1
    for d in range(1, start.size):
        start[U64(d)] += start[U64(d - 1)]
    for v in range(degree.size):
        d = U64(degree[U64(v)])
        rank[U64(v)] = start[d]
        start[d] += 1


@jit
def _rank_by_bfs(worker, workers, indptr, indices, queue, reached, rank):
    """`reached` holds the vertices in the order in which the search reaches them."""
    seen = done = 0
    for root in range(rank.size):
        if rank[root] >= 0:
            continue
        reached[seen] = root
        rank[root] = seen
        seen += 1
        while done < seen and not stopped(queue):
            v = reached[done]
            done += 1
            for k in range(indptr[v], indptr[v + 1]):
                w = indices[k]
                if rank[w] < 0:
                    rank[w] = seen
                    reached[seen] = w
                    seen += 1


@jit
def _first_invalid_column(worker, workers, col_ptr, row_idx, found):
    n = col_ptr.size - 1
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        before = np.int64(j)
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            row = np.int64(row_idx[U64(k)])
            if row <= before or row >= n:
                found[worker] = j
                return
            before = row
