"""What `tcgpu.clean` does in NumPy, on all cores: above all, sort raw edges into the columns of L without duplicates.

Memory traffic dominates the time, so each edge is read twice and its key is written once, whatever the size of the
graph. The first pass counts the edges of each bucket, a range of 2^shift columns. The second makes a key of each edge
and writes it to its bucket. Buckets fit a core's cache: each is sorted there, its duplicates are dropped, and its rows
are written over its keys. They are copied only if duplicates leave gaps between the buckets, or if keys have 64 bits.

    key = (column mod 2^shift) << bits + 1 | row << 1 | direction

    column = min(u, v), row = max(u, v), direction = 1 where u > v; a row number has `bits` bits

Keys have 32 bits if that is enough, else 64. If the vertices get other numbers, the first pass looks these up and keeps
them for the second. What the functions take and return, those of the same names in `tcgpu.clean` say.
"""

import numpy as np

from tcgpu.arrays import CleanColumns, locked, running_sums
from tcgpu.cpu.edges import last_up_to
from tcgpu.cpu_costs import INSERTED_MEAN, INSERTED_ROWS, MANY
from tcgpu.engines.native import U32, U64, fetch_add, jit, run_threads, shares, stoppable, stopped, threads

MIN_BUCKETS, MAX_BUCKETS = 1 << 8, 1 << 13
BUCKET_EDGES = 1 << 13  # the desired size of a bucket: at most 64 KB of keys, which a core's cache holds
HIGH_DEGREE = 1 << 12  # so few vertices have as many neighbours that one thread sorts these
SORT_SHARES = 16  # of a share of the buckets: a worker takes as many neighbours, so few cache lines have two writers
CHUNK = 1 << 16  # elements that a worker takes from a queue at a time


def min_max(u, v):
    if u.size == 0:
        return 0, -1
    bounds = np.empty((shares(u.size), 2), np.int64)
    run_threads(_min_max, locked(u), locked(v), bounds, workers=len(bounds))
    return int(bounds[:, 0].min()), int(bounds[:, 1].max())


def clean_columns(u, v, n, rank=None):
    rank = np.empty(0, np.int32) if rank is None else rank
    return _columns(_count_edges, (locked(u), locked(v), locked(rank)), u.size, n)


def moved_columns(col_ptr, row_idx, rank):
    return _columns(_count_moved, (col_ptr, row_idx, locked(rank)), row_idx.size, rank.size)


def column_of_each(col_ptr, m):
    col_of = np.empty(m, np.int32)
    run_threads(_column_of_each, col_ptr, col_of, workers=shares(m))
    return col_of


def degrees(col_ptr, row_idx):
    return occurrences(col_ptr.size - 1, row_idx, col_ptr=col_ptr, dtype=np.int64)


def occurrences(n, *lists, col_ptr=None, dtype=np.int32):
    """How often each of 0..n-1 occurs in the lists, plus the lengths of the columns, if there are."""
    size = max(values.size for values in lists)
    workers = threads() if size >= MANY else 1
    workers = max(1, min(workers, size // max(n, 1)))  # so the counters take no more memory than a list
    counters = np.zeros((workers, n), np.int32)
    for values in lists:
        queue = np.zeros(1, np.int64)
        run_threads(_occurrences, locked(values), queue, counters, workers=workers, queue=stoppable(queue, values.size))
    total = np.empty(n, dtype)
    run_threads(_add_counters, counters, col_ptr, total, workers=shares(n))
    return total


def adjacency(col_ptr, row_idx, degree):
    indptr = running_sums(degree)
    indices = np.empty(2 * row_idx.size, np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_fill_adjacency, col_ptr, row_idx, queue, indptr[:-1].copy(), indices, workers=1,
                queue=stoppable(queue, row_idx.size))  # fmt: skip
    return indptr, indices


def rank_by_degree(degree):
    degree = locked(degree)
    n, workers = degree.size, threads() if degree.size >= MANY else 1
    kinds = min(int(degree.max(initial=0)) + 1, HIGH_DEGREE) + 1  # each low degree, and all high ones
    counters, of_kind = np.zeros((workers, kinds), np.int64), np.empty((kinds, workers), np.int64)
    run_threads(_count_degrees, degree, counters, of_kind, workers=workers)
    starts = running_sums(of_kind.ravel())
    rank, high = np.empty(n, np.int32), np.empty(int(of_kind[-1].sum()), np.int32)
    run_threads(_rank_by_degree, degree, starts, counters, rank, high, workers=workers)
    rank[high[np.argsort(degree[high], kind="stable")]] = np.arange(n - high.size, n)
    return rank


def rank_by_bfs(indptr, indices):
    rank = np.full(indptr.size - 1, -1, np.int32)
    queue, reached = np.zeros(1, np.int64), np.empty(rank.size, np.int32)
    run_threads(_rank_by_bfs, indptr, indices, queue, reached, rank, workers=1, queue=stoppable(queue, indices.size))
    return rank


def first_invalid_column(col_ptr, row_idx):
    found = np.full(shares(max(row_idx.size, col_ptr.size)), -1, np.int64)
    run_threads(_first_invalid_column, col_ptr, row_idx, found, workers=found.size)
    found = found[found >= 0]
    return int(found.min()) if found.size else -1


# -------------------------------------------------------------------------------------------- sort, without duplicates


def _key_layout(edges, n):
    """The shift of columns to buckets, the bits of a row number, and the type of the keys: 32 bits if these suffice."""
    bits = (max(n, 1) - 1).bit_length()
    buckets = min(max(edges // BUCKET_EDGES, MIN_BUCKETS), MAX_BUCKETS)
    shift = max(0, bits - (buckets - 1).bit_length())
    most = 31 - bits  # with a larger shift, a key does not fit in 32 bits
    if bits - most <= (MAX_BUCKETS - 1).bit_length():
        return min(shift, most), bits, np.uint32
    return shift, bits, np.uint64


def _columns(count, source, edges, n):
    """The CleanColumns of edges: their keys without loops are written bucket after bucket, and then sorted.

    count: the first pass over the `source`, whose last array has the vertices' numbers, if there are.
    """
    shift, bits, key_type = _key_layout(edges, n)
    workers, buckets = shares(edges), (max(n, 1) - 1 >> shift) + 1
    counters, of_bucket = np.zeros((workers, buckets), np.int64), np.empty((buckets, workers), np.int64)
    ranked = np.empty(edges if source[-1].size else 0, np.uint64)  # both ends of each edge: to look them up once
    run_threads(count, *source, shift, counters, of_bucket, ranked, workers=workers)
    starts = running_sums(of_bucket.ravel())
    keys = np.empty(int(starts[-1]), key_type)
    run_threads(_partition, edges, *source[:2], ranked, shift, bits, starts, counters, keys, workers=workers)
    del counters, of_bucket, ranked  # the memory is for sorting
    return _sorted(keys, starts[::workers].copy(), edges, n, shift, bits, key_type)


def _sorted(keys, bounds, edges, n, shift, bits, key_type):
    """The CleanColumns of partitioned keys; `edges` are these and the loops."""
    workers = threads() if edges >= MANY else 1
    col_ptr = np.zeros(n + 1, np.int64)
    found = np.zeros((bounds.size - 1, 3), np.int64)  # rows kept, edges in both directions, longest column
    largest = int(np.diff(bounds).max())
    workers = max(1, min(workers, 2 * keys.size // max(1, largest)))  # so `scratch` is at most twice as large as `keys`
    scratch = np.empty((workers, largest), key_type)
    digits = np.empty((workers, 2, 2 << bits // 2), np.int64)  # of a row and the direction, half of their bits each
    column_ends = np.empty((workers, 1 << shift), np.int64)
    queue = np.zeros(1, np.int64)
    rows = keys.view(np.uint32)
    run_threads(
        _sort_buckets, keys, bounds, shift, bits, queue, scratch, scratch.view(np.uint32), digits, column_ends,
        rows, col_ptr, found, workers=workers, queue=stoppable(queue, edges),
    )  # fmt: skip
    kept, pairs, longest = int(found[:, 0].sum()), int(found[:, 1].sum()), int(found[:, 2].max())
    if kept == rows.size:
        row_idx = rows.view(np.int32)
    else:
        row_idx = np.empty(kept, np.int32)
        offsets = np.concatenate(([0], np.cumsum(found[:, 0])))
        queue[0] = 0
        run_threads(_close_gaps, bounds, offsets, shift, queue, rows, col_ptr, row_idx, workers=workers,
                    queue=stoppable(queue, edges))  # fmt: skip
    return CleanColumns(col_ptr, row_idx, edges - keys.size, keys.size - kept - pairs, pairs, longest)


@jit
def _count_edges(worker, workers, u, v, rank, shift, counters, of_bucket, ranked):
    """Count the edges of each bucket in this worker's share, without loops: in `counters`, then in `of_bucket`.

    Writes the ranks of their ends, if any.
    """
    count = counters[worker]
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        a, b = U64(u[U64(k)]), U64(v[U64(k)])
        if rank.size:
            a, b = U64(rank[a]), U64(rank[b])
            ranked[U64(k)] = a << U64(32) | b
        count[min(a, b) >> U64(shift)] += a != b
    for bucket in range(count.size):
        of_bucket[bucket, worker] = count[bucket]


@jit
def _count_moved(worker, workers, col_ptr, row_idx, rank, shift, counters, of_bucket, ranked):
    """As `_count_edges`, of the edges of columns."""
    count = counters[worker]
    at, last = row_idx.size * worker // workers, row_idx.size * (worker + 1) // workers
    u = last_up_to(col_ptr, np.int64(0), col_ptr.size, at)
    while at < last:
        a, end = U64(rank[U64(u)]), min(last, col_ptr[U64(u + 1)])
        for k in range(at, end):
            b = U64(rank[U64(row_idx[U64(k)])])
            ranked[U64(k)] = a << U64(32) | b
            count[min(a, b) >> U64(shift)] += 1
        at = end
        u += 1
    for bucket in range(count.size):
        of_bucket[bucket, worker] = count[bucket]


@jit
def _partition(worker, workers, edges, u, v, ranked, shift, bits, starts, counters, keys):
    """Write the keys of this worker's share where they belong: `starts` has each worker's place in each bucket."""
    free = counters[worker]
    for k in range(free.size):
        free[k] = starts[worker + k * workers]
    for k in range(edges * worker // workers, edges * (worker + 1) // workers):
        if ranked.size:
            a, b = ranked[U64(k)] >> U64(32), ranked[U64(k)] & U64(0xFFFFFFFF)
        else:
            a, b = U64(u[U64(k)]), U64(v[U64(k)])
        if a == b:
            continue
        column, row = min(a, b), max(a, b)
        bucket = column >> U64(shift)
        keys[U64(free[bucket])] = column - (bucket << U64(shift)) << U64(bits + 1) | row << U64(1) | U64(a > b)
        free[bucket] += 1


@jit
def _sort_buckets(
    worker, workers, keys, bounds, shift, bits, queue, scratch, by_column, digits, column_ends, rows, col_ptr, found,
):  # fmt: skip
    """Sort buckets by (column, row), drop duplicates, and write the rows to the start of their bucket's memory.

    `rows` is the memory of `keys`, `by_column` that of `scratch`. Writes to `col_ptr[j + 1]` where column j ends if no
    bucket before it has duplicates, and to `found` how many rows were kept, how many edges came in both directions, and
    the length of the longest column.
    """
    n = col_ptr.size - 1
    words = rows.size // max(1, keys.size)
    ends = column_ends[worker]
    step = max(1, len(found) // (workers * SORT_SHARES))
    begin = fetch_add(queue, 0, step)
    while begin < len(found):
        for bucket in range(begin, min(begin + step, len(found))):
            if stopped(queue):
                return
            first, last = bounds[bucket], bounds[bucket + 1]
            sorted_rows = by_column[worker, : last - first]
            columns = min(n - (bucket << shift), 1 << shift)
            longest = _start_columns(keys, first, last, bits, columns, ends)
            by_insertion = longest <= INSERTED_ROWS and last - first <= INSERTED_MEAN * columns
            if not by_insertion:
                _sort_by_row(keys, first, last, bits, digits[worker], scratch[worker])
            for k in range(first, last):
                key = U64(keys[U64(k)])
                j = key >> U64(bits + 1)
                sorted_rows[U64(ends[j])] = U32(key & U64((2 << bits) - 1))
                ends[j] += 1
            if by_insertion:
                _sort_by_insertion(sorted_rows, ends, columns)
            bucket_rows = rows[words * first : words * last]
            column_end = col_ptr[(bucket << shift) + 1 :]
            if _repeated(sorted_rows, ends, columns):
                kept, both, longest = _drop_duplicates(sorted_rows, ends, columns, first, bucket_rows, column_end)
            else:
                _copy_columns(sorted_rows, ends, columns, first, bucket_rows, column_end)
                kept, both = last - first, np.int64(0)
            found[bucket, 0], found[bucket, 1], found[bucket, 2] = kept, both, longest
        begin = fetch_add(queue, 0, step)


@jit
def _start_columns(keys, first, last, bits, columns, starts):
    """Write where each column of a bucket starts in it; returns the length of the longest column."""
    starts[:columns] = 0
    for k in range(first, last):
        starts[U64(keys[U64(k)]) >> U64(bits + 1)] += 1
    longest = at = np.int64(0)
    for j in range(columns):
        length = starts[j]
        starts[j] = at
        at += length
        longest = max(longest, length)
    return longest


@jit
def _sort_by_row(keys, first, last, bits, digits, scratch):
    """Stable radix sort of `keys[first:last]` by row and direction, in two passes, by those bits that differ."""
    differ = U64(0)
    for k in range(first, last):
        differ |= U64(keys[U64(k)] ^ keys[U64(first)])
    differ &= U64((2 << bits) - 1)
    digit_bits = 0
    while differ >> U64(2 * digit_bits):
        digit_bits += 1
    low, high = digits[0, : 1 << digit_bits], digits[1, : 1 << digit_bits]
    low[:] = 0
    high[:] = 0
    mask = U64((1 << digit_bits) - 1)
    for k in range(first, last):
        key = U64(keys[U64(k)])
        low[key & mask] += 1
        high[key >> U64(digit_bits) & mask] += 1
    at_low = at_high = np.int64(0)
    for digit in range(low.size):
        at_low, low[digit] = at_low + low[digit], at_low
        at_high, high[digit] = at_high + high[digit], at_high
    for k in range(first, last):
        key = keys[U64(k)]
        digit = U64(key) & mask
        scratch[U64(low[digit])] = key
        low[digit] += 1
    for k in range(last - first):
        key = scratch[U64(k)]
        digit = U64(key) >> U64(digit_bits) & mask
        keys[U64(first) + U64(high[digit])] = key
        high[digit] += 1


@jit
def _sort_by_insertion(rows, ends, columns):
    """Sort each of the columns that follow one another in `rows`."""
    begin = np.int64(0)
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
def _repeated(rows, ends, columns):
    """Whether a row is in one of the sorted columns twice: next to itself, and not at the end of a column."""
    equal = np.int64(0)
    for k in range(1, rows.size):
        equal += rows[U64(k)] ^ rows[U64(k - 1)] <= U32(1)
    begin = np.int64(0)
    for j in range(columns):
        end = ends[U64(j)]
        if 0 < begin < end:
            equal -= rows[U64(begin)] ^ rows[U64(begin - 1)] <= U32(1)
        begin = end
    return equal > 0


@jit
def _copy_columns(sorted_rows, ends, columns, first, rows, column_end):
    """Write the rows without their direction bit to `rows`, and where each column ends to `column_end`."""
    for k in range(sorted_rows.size):
        rows[U64(k)] = sorted_rows[U64(k)] >> U32(1)
    for j in range(columns):
        column_end[U64(j)] = first + ends[U64(j)]


@jit
def _drop_duplicates(sorted_rows, ends, columns, first, rows, column_end):
    """As `_copy_columns`, each distinct row of a column once.

    Returns how many rows were kept, how many came in both directions, and the length of the longest column.
    """
    kept = k = pairs = longest = np.int64(0)
    for j in range(columns):
        begin, previous = kept, U32(0)  # less than any row
        while k < ends[U64(j)]:
            row = sorted_rows[U64(k)]
            kept += row ^ previous > U32(1)
            pairs += row ^ previous == U32(1)
            rows[U64(kept - 1)] = row >> U32(1)
            previous = row
            k += 1
        longest = max(longest, kept - begin)
        column_end[U64(j)] = first + kept
    return kept, pairs, longest


@jit
def _close_gaps(worker, workers, bounds, offsets, shift, queue, rows, col_ptr, row_idx):
    """Copy the kept rows of each bucket to `row_idx`, and correct `col_ptr`."""
    n, words = col_ptr.size - 1, rows.size // bounds[-1]
    bucket = fetch_add(queue, 0, 1)
    while bucket < offsets.size - 1:
        at, gap = offsets[bucket], bounds[bucket] - offsets[bucket]
        kept = rows[words * bounds[bucket] :]
        for k in range(offsets[bucket + 1] - at):
            row_idx[U64(at + k)] = np.int32(kept[U64(k)])
        for j in range(bucket << shift, min(n, bucket + 1 << shift)):
            col_ptr[U64(j + 1)] -= gap
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
def _add_counters(worker, workers, counters, col_ptr, total):
    """Add up all workers' counters, and the lengths of the columns, if there are, in one share of the vertices."""
    n = total.size
    for v in range(n * worker // workers, n * (worker + 1) // workers):
        total[U64(v)] = 0 if col_ptr is None else col_ptr[U64(v + 1)] - col_ptr[U64(v)]
    for count in counters:
        for v in range(n * worker // workers, n * (worker + 1) // workers):
            total[U64(v)] += count[U64(v)]


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
def _count_degrees(worker, workers, degree, counters, of_kind):
    """Count each kind of degree in this worker's share of the vertices: in `counters`, then in `of_kind`."""
    count = counters[worker]
    for v in range(degree.size * worker // workers, degree.size * (worker + 1) // workers):
        count[min(U64(degree[U64(v)]), U64(count.size - 1))] += 1
    for kind in range(count.size):
        of_kind[kind, worker] = count[kind]


@jit
def _rank_by_degree(worker, workers, degree, starts, counters, rank, high):
    """Counting sort of this worker's share by kinds of degrees; lists the vertices of the last kind in `high`.

    starts: the first rank of each kind for each worker.
    """
    free = counters[worker]
    for k in range(free.size):
        free[k] = starts[worker + k * workers]
    last = U64(free.size - 1)
    for v in range(degree.size * worker // workers, degree.size * (worker + 1) // workers):
        kind = min(U64(degree[U64(v)]), last)
        rank[U64(v)] = free[kind]
        if kind == last:
            high[U64(free[kind] - (degree.size - high.size))] = v
        free[kind] += 1


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
