"""Columns: from raw edges to the clean, sorted columns of the strictly lower triangular matrix L, on all cores.

    clean_columns(u, v, n)             raw edges, any direction, with loops and duplicates
    renumber(col_ptr, row_idx, rank)   the columns of the same graph under another numbering

Both go the same way, because memory is what costs: an edge becomes one 64-bit key (column, row, direction); keys are
partitioned by column into buckets that fit a core's cache; a bucket is sorted there, freed of duplicates, and copied
to its place. Two scattered passes over memory in all, whatever the graph's size.

    key = column << 32 | row << 1 | direction      column = min(u, v), row = max(u, v), direction = 1 where u > v
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.native import MANY, fetch_add, inline, jit, run_threads, shares, stoppable, stopped, threads

MAX_VERTICES = 2**31 - 1  # a vertex number has 31 bits of the key
BUCKETS = 256, 4096  # at least, at most; between them as many as
BUCKET = 1 << 13  # edges in each ask for: 64 KB of keys, which a core's cache holds
SHORT = 24  # columns up to this length are sorted by insertion, if they
FEW = 4  # have no more rows than this in the mean
CHUNK = 1 << 16  # elements that a worker takes from a queue at a time

U64 = np.uint64
U32 = np.uint32


class Columns(NamedTuple):
    """Sorted columns, and what cleaning dropped on the way to them."""

    col_ptr: np.ndarray
    row_idx: np.ndarray
    loops: int
    duplicates: int
    reversed: int


def extent(u, v):
    """The smallest and the largest vertex number in two integer arrays; (0, -1) where there is none."""
    if u.size == 0:
        return 0, -1
    workers = shares(u.size)
    found = np.empty((workers, 2), np.int64)
    run_threads(_extent, u, v, found, workers=workers)
    return int(found[:, 0].min()), int(found[:, 1].max())


def clean_columns(u, v, n, rank=None):
    """The columns of the graph with edges `u[k] - v[k]` on vertices 0..n-1, and counts of what was dropped.

    `u` and `v` are contiguous arrays of one type, int32 or int64, with every number in 0..n-1 (see `extent`). With a
    `rank`, vertex v is called `rank[v]` from the start, which spares a second sort.
    """
    workers, buckets, shift = _plan(u.size, n)
    keys = np.empty(u.size, np.uint64)
    sizes = np.zeros((workers, buckets), np.int64)  # how many edges of each share belong to each bucket
    rank = np.empty(0, np.int32) if rank is None else rank
    run_threads(_pack_edges, u, v, rank, shift, keys, sizes, workers=workers)
    loops = u.size - int(sizes.sum())
    col_ptr, row_idx, reversed_pairs = _sort(keys, sizes, shift, n)
    return Columns(col_ptr, row_idx, loops, u.size - loops - row_idx.size - reversed_pairs, reversed_pairs)


def renumber(col_ptr, row_idx, rank):
    """The columns when vertex v is called `rank[v]`, a permutation (int32)."""
    n, m = rank.size, row_idx.size
    workers, buckets, shift = _plan(m, n)
    keys = np.empty(m, np.uint64)
    sizes = np.zeros((workers, buckets), np.int64)
    run_threads(_pack_columns, col_ptr, row_idx, rank, shift, keys, sizes, workers=workers)
    return _sort(keys, sizes, shift, n)[:2]


def column_of_each(col_ptr, m):
    """`col_of`: the column of each nonzero."""
    col_of = np.empty(m, np.int32)
    run_threads(_column_of_each, col_ptr, col_of, workers=shares(m))
    return col_of


def kept(col_ptr, row_idx, keep):
    """The columns with no other nonzeros than those that `keep` marks, a bool for each."""
    starts = np.zeros(col_ptr.size, np.int64)
    run_threads(_count_kept, col_ptr, keep, starts, workers=shares(row_idx.size))
    np.cumsum(starts, out=starts)
    rows = np.empty(starts[-1], np.int32)
    run_threads(_fill_kept, col_ptr, row_idx, keep, starts, rows, workers=shares(row_idx.size))
    return starts, rows


def called(names, values):
    """names[value] for each of the values, all of them int32."""
    found = np.empty(values.size, np.int32)
    run_threads(_called, names, values, found, workers=shares(values.size))
    return found


def met(col_ptr, row_idx):
    """Which vertices have an edge."""
    found = np.diff(col_ptr) > 0
    run_threads(_mark, row_idx, found, workers=shares(row_idx.size))
    return found


def degrees(col_ptr, row_idx):
    """How many neighbours each vertex has: the length of its column and of its row of L."""
    return np.diff(col_ptr) + occurrences(row_idx, col_ptr.size - 1)


def occurrences(values, n):
    """How often each of 0..n-1 occurs (int32)."""
    workers = max(1, min(_workers(values.size), values.size // max(n, 1)))  # their counts take no more than the values
    found = np.zeros((workers, n), np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_occurrences, values, queue, found, workers=workers, queue=stoppable(queue, values.size))
    for others in found[1:]:
        found[0] += others
    return found[0]


def spread(u, v, n):
    """The median difference between the two numbers of an edge, as a share of n: small where neighbours are close."""
    return float(np.median(np.abs(u.astype(np.int64) - v))) / n if u.size else 0.0


def skew(u, v, n):
    """Mean squared degree over squared mean degree, 1 where all are alike, from edges drawn at random.

    Two random ends of edges are the same vertex with probability sum(d^2) / (2m)^2: coincidences tell the sum.
    """
    half = u.size // 2
    one, other = np.concatenate((u[:half], v[:half])), np.concatenate((u[half:], v[half:]))
    return _coincidences(one, other) * n / max(one.size * other.size, 1)


def work(u, v, m):
    """Look-ups an edge, the mean of len(column i) over the nonzeros (i, j), from edges drawn at random out of m.

    The larger end of one is the smaller end of another with probability sum(row length * column length) / m^2.
    """
    half = u.size // 2
    one, other = np.minimum(u, v)[:half], np.maximum(u, v)[half:]
    return _coincidences(one, other) * m / max(one.size * other.size, 1)


def _coincidences(a, b):
    """How many pairs (k, l) have a[k] == b[l]."""
    a, b = np.sort(a), np.sort(b)
    return int((np.searchsorted(b, a, side="right") - np.searchsorted(b, a, side="left")).sum())


def sample(m, n):
    """Which of m edges `spread`, `skew` and `work` should see: enough, in random order, for a hundred coincidences.

    Drawn at random from all of them: were one taken from each stretch of a sorted list, few would coincide.
    """
    return np.random.default_rng(0).choice(m, min(m, 2000 + int(8 * n**0.5)), replace=False)


def adjacency(col_ptr, row_idx, degree):
    """Whole neighbourhoods as CSR `(indptr, indices)`, each sorted: first the smaller neighbours, then the column."""
    indptr = np.zeros(degree.size + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    indices = np.empty(2 * row_idx.size, np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_fill_adjacency, col_ptr, row_idx, queue, indptr[:-1].copy(), indices, workers=1,
                queue=stoppable(queue, row_idx.size))  # fmt: skip
    return indptr, indices


def rank_by_degree(degree):
    """Ascending degree, equal degrees in the given order: `rank[v]` is the new number of v."""
    rank = np.empty(degree.size, np.int32)
    _rank_by_degree(degree, np.zeros(int(degree.max(initial=0)) + 2, np.int64), rank)
    return rank


def rank_by_bfs(indptr, indices):
    """Breadth first from vertex 0, then from the first vertex not yet reached, and so on."""
    rank = np.full(indptr.size - 1, -1, np.int32)
    queue, found = np.zeros(1, np.int64), np.empty(rank.size, np.int32)
    run_threads(_rank_by_bfs, indptr, indices, queue, found, rank, workers=1, queue=stoppable(queue, indices.size))
    return rank


def first_fault(col_ptr, row_idx):
    """The first column that is not strictly ascending within (column, n), or -1: what validation looks for."""
    faults = np.full(shares(max(row_idx.size, col_ptr.size)), -1, np.int64)
    run_threads(_first_fault, col_ptr, row_idx, faults, workers=faults.size)
    found = faults[faults >= 0]
    return int(found.min()) if found.size else -1


def _workers(edges):
    return threads() if edges >= MANY else 1


def _plan(edges, n):
    """How many shares and buckets, and the shift that takes a column to its bucket."""
    wanted = min(max(edges // BUCKET, BUCKETS[0]), BUCKETS[1])
    last = max(n, 1) - 1
    shift = max(0, last.bit_length() - (wanted - 1).bit_length())
    return shares(edges), (last >> shift) + 1, shift


def _sort(keys, sizes, shift, n):
    """Partition the packed keys into buckets, sort and clean each, and put them together."""
    packers, buckets = sizes.shape
    ends = np.cumsum(sizes.T.ravel())
    starts = np.ascontiguousarray((ends - sizes.T.ravel()).reshape(buckets, packers).T)
    bounds = np.concatenate(([0], ends[packers - 1 :: packers]))
    packed = sizes.sum(axis=1)
    partitioned = np.empty(int(bounds[-1]), np.uint64)
    run_threads(_partition, keys, packed, shift, starts, partitioned, workers=packers)

    workers = _workers(keys.size)
    sorted_rows = keys.view(np.uint32)  # the keys are not needed again: their memory is
    col_ptr = np.zeros(n + 1, np.int64)
    kept = np.zeros(buckets, np.int64)
    reversed_pairs = np.zeros(buckets, np.int64)
    scratch = np.empty((workers, int(np.diff(bounds).max(initial=0))), np.uint64)
    half = ((max(n, 2) - 1).bit_length() + 1) // 2  # a row number is sorted in two halves of its bits
    digits = np.empty((workers, 2, 1 << half), np.uint32)
    lengths = np.empty((workers, (1 << shift) + 1), np.int64)
    queue = np.zeros(1, np.int64)
    run_threads(
        _sort_buckets, partitioned, bounds, shift, half, queue, scratch, digits, lengths,
        sorted_rows, col_ptr, kept, reversed_pairs, workers=workers, queue=stoppable(queue, keys.size),
    )  # fmt: skip

    offsets = np.concatenate(([0], np.cumsum(kept)))
    row_idx = np.empty(int(offsets[-1]), np.int32)
    queue[0] = 0
    run_threads(_put_together, bounds, offsets, shift, queue, sorted_rows, col_ptr, row_idx, workers=workers,
                queue=stoppable(queue, keys.size))  # fmt: skip
    return col_ptr, row_idx, int(reversed_pairs.sum())


@jit
def _extent(worker, workers, u, v, found):
    low, high = np.int64(u[0]), np.int64(u[0])
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        a, b = np.int64(u[U64(k)]), np.int64(v[U64(k)])
        low = min(low, a, b)
        high = max(high, a, b)
    found[worker, 0] = low
    found[worker, 1] = high


@jit
def _pack_edges(worker, workers, u, v, rank, shift, keys, sizes):
    """Each worker packs its share of the edges, without the loops, from the start of its share of `keys`."""
    size = sizes[worker]
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
        size[column >> U64(shift)] += 1
        put += 1


@jit
def _pack_columns(worker, workers, col_ptr, row_idx, rank, shift, keys, sizes):
    """As `_pack_edges`, from columns and new numbers; the share of a worker may begin inside a column."""
    size = sizes[worker]
    first = row_idx.size * worker // workers
    last = row_idx.size * (worker + 1) // workers
    j = np.searchsorted(col_ptr, first, side="right") - 1
    k = first
    while k < last:
        a = U64(rank[U64(j)])
        end = min(last, col_ptr[U64(j + 1)])
        while k < end:
            b = U64(rank[row_idx[U64(k)]])
            column, row = min(a, b), max(a, b)
            keys[U64(k)] = column << U64(32) | row << U64(1)
            size[column >> U64(shift)] += 1
            k += 1
        j += 1


@jit
def _partition(worker, workers, keys, packed, shift, starts, partitioned):
    start = starts[worker]
    first = keys.size * worker // workers
    for k in range(first, first + packed[worker]):
        key = keys[U64(k)]
        bucket = key >> U64(32 + shift)
        partitioned[U64(start[bucket])] = key
        start[bucket] += 1


@jit
def _sort_buckets(
    worker, workers, partitioned, bounds, shift, half, queue, scratch, digits, lengths,
    sorted_rows, col_ptr, kept, reversed_pairs,
):  # fmt: skip
    """Sort one bucket after the other by (column, row), and keep each row of a column once.

    Leaves the kept rows of a bucket at the start of its part of `sorted_rows`, the length of column j in
    `col_ptr[j + 1]`, and counts of kept and reversed edges.
    """
    n = col_ptr.size - 1
    ends = lengths[worker]
    while True:
        bucket = fetch_add(queue, 0, 1)
        if bucket >= kept.size:
            break
        first, last = bounds[bucket], bounds[bucket + 1]
        column0 = bucket << shift
        columns = min(n - column0, 1 << shift)
        longest = _start_columns(partitioned, first, last, column0, columns, ends)
        by_insertion = longest <= SHORT and last - first <= FEW * columns
        if not by_insertion:
            _sort_by_row(partitioned, first, last, half, digits[worker], scratch[worker])
        for k in range(first, last):
            key = partitioned[U64(k)]
            j = (key >> U64(32)) - U64(column0)
            sorted_rows[U64(ends[j])] = U32(key)
            ends[j] += 1
        if by_insertion:
            _sort_by_insertion(sorted_rows, first, ends, columns)
        kept[bucket], reversed_pairs[bucket] = _keep_once(sorted_rows, first, ends, columns, column0, col_ptr)


@jit
def _start_columns(partitioned, first, last, column0, columns, starts):
    """Where each column of a bucket starts; returns the longest column's length."""
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
def _sort_by_row(keys, first, last, half, digits, scratch):
    """Radix sort of `keys[first:last]` by row in two passes; equal rows keep their order."""
    low, high = digits[0], digits[1]
    low[:] = 0
    high[:] = 0
    mask = U64((1 << half) - 1)
    for k in range(first, last):
        row = keys[U64(k)] >> U64(1) & U64(0x7FFFFFFF)
        low[row & mask] += U32(1)
        high[row >> U64(half)] += U32(1)
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
        digit = (key >> U64(1) & U64(0x7FFFFFFF)) >> U64(half)
        keys[U64(first) + U64(high[digit])] = key
        high[digit] += U32(1)


@jit
def _sort_by_insertion(rows, first, ends, columns):
    """Sort each of the columns that lie one behind the other in `rows[first:]`."""
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
def _keep_once(rows, first, ends, columns, column0, col_ptr):
    """Move each row of a sorted column once, without its direction bit, up behind those already kept.

    Leaves the columns' lengths in `col_ptr`; returns how many rows were kept and how many came in both directions.
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
def _put_together(worker, workers, bounds, offsets, shift, queue, sorted_rows, col_ptr, row_idx):
    """Copy each bucket's kept rows to their place and turn its column lengths into `col_ptr`."""
    n = col_ptr.size - 1
    while True:
        bucket = fetch_add(queue, 0, 1)
        if bucket >= offsets.size - 1:
            break
        at, gap = offsets[bucket], bounds[bucket] - offsets[bucket]
        for k in range(at, offsets[bucket + 1]):
            row_idx[U64(k)] = np.int32(sorted_rows[U64(k + gap)])
        for j in range(bucket << shift, min(n, bucket + 1 << shift)):
            at += col_ptr[U64(j + 1)]
            col_ptr[U64(j + 1)] = at


@jit
def _column_of_each(worker, workers, col_ptr, col_of):
    n = col_ptr.size - 1
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            col_of[U64(k)] = j


@inline
def _share(col_ptr, worker, workers):
    """The columns of one worker out of so many: about as many nonzeros for each."""
    m = col_ptr[-1]
    return np.searchsorted(col_ptr, m * worker // workers), np.searchsorted(col_ptr, m * (worker + 1) // workers)


@jit
def _count_kept(worker, workers, col_ptr, keep, starts):
    begin, end = _share(col_ptr, worker, workers)
    for j in range(begin, end):
        count = 0
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            count += keep[U64(k)]
        starts[U64(j + 1)] = count


@jit
def _fill_kept(worker, workers, col_ptr, row_idx, keep, starts, rows):
    begin, end = _share(col_ptr, worker, workers)
    at = starts[U64(begin)]
    for k in range(col_ptr[U64(begin)], col_ptr[U64(end)]):
        if keep[U64(k)]:
            rows[U64(at)] = row_idx[U64(k)]
            at += 1


@jit
def _called(worker, workers, names, values, found):
    for k in range(values.size * worker // workers, values.size * (worker + 1) // workers):
        found[U64(k)] = names[U64(values[U64(k)])]


@jit
def _mark(worker, workers, values, found):
    for k in range(values.size * worker // workers, values.size * (worker + 1) // workers):
        place = U64(values[U64(k)])
        if not found[place]:  # so that threads do not take each other's lines of the cache
            found[place] = True


@jit
def _occurrences(worker, workers, values, queue, found):
    count = found[worker]
    while True:
        first = fetch_add(queue, 0, CHUNK)
        if first >= values.size:
            break
        for k in range(first, min(values.size, first + CHUNK)):
            count[U64(values[U64(k)])] += 1


@jit
def _fill_adjacency(worker, workers, col_ptr, row_idx, queue, put, indices):
    for j in range(put.size):
        if stopped(queue):
            return
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            i = U64(row_idx[U64(k)])
            indices[U64(put[i])] = j
            put[i] += 1
    for j in range(put.size):  # now every smaller neighbour is in: the column comes behind them
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
def _rank_by_bfs(worker, workers, indptr, indices, queue, found, rank):
    """`found` holds the vertices in the order in which they are reached."""
    seen = done = 0
    for root in range(rank.size):
        if rank[root] >= 0:
            continue
        found[seen] = root
        rank[root] = seen
        seen += 1
        while done < seen and not stopped(queue):
            v = found[done]
            done += 1
            for k in range(indptr[v], indptr[v + 1]):
                w = indices[k]
                if rank[w] < 0:
                    rank[w] = seen
                    found[seen] = w
                    seen += 1


@jit
def _first_fault(worker, workers, col_ptr, row_idx, faults):
    n = col_ptr.size - 1
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        before = np.int64(j)
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            row = np.int64(row_idx[U64(k)])
            if row <= before or row >= n:
                faults[worker] = j
                return
            before = row
