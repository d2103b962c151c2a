"""Columns of raw edges in natural order, by buckets: edges are put into buckets of neighbouring columns, and a block
sorts each of these.

Fewer bytes are moved than by a radix sort of all keys. But it must be known how many rows each column has, repeats
included, so that no bucket is too large for the shared memory of a block. Column j is in the bucket of number
(starts[j] + weight * j) >> SIZE_BITS: so a bucket has at most 1 << SIZE_BITS keys and those of its last column; and its
columns are few enough that the place of a column in it and a row fit the 32 bits of a key.
"""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import run
from tcgpu.kernels.device.block_sort import DIGIT_BITS, DIGITS, counter_bytes, range_of_warp, sort_digit
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.orientation import ENDS
from tcgpu.kernels.prefix_sum import scan

SIZE_BITS, KEY_BITS = 11, 32
THREADS, MOST_BLOCKS = 256, 1 << 20  # of the launches with a block per bucket


@cuda.jit(device=True)
def bucket_of(starts, j, weight):
    """The bucket of column j."""
    return int32((starts[j] + weight * j) >> SIZE_BITS)


@kernel("void(int64[::1], int64, int32[::1], int64[::1])")
def find_buckets(starts, weight, first_column, cursor):
    """A thread per column, and one more: write the first column of each bucket, or the next one's if it has none, and
    where its keys begin.

    starts: where the rows of each column begin. The last element of `first_column` is the number of columns.
    """
    j, n = int64(cuda.grid(1)), starts.size - 1
    while j <= n:
        bucket, before = int32(cursor.size), int32(-1)
        if j < n:
            bucket = bucket_of(starts, j, weight)
        if j > 0:
            before = bucket_of(starts, j - 1, weight)
        while before < bucket:
            before += 1
            first_column[before] = j
            if before < cursor.size:
                cursor[before] = starts[j]
        j += cuda.gridsize(1)


@cuda.jit(device=True)
def take_place(cursor, bucket):
    """The next free place in a bucket, for each lane whose bucket is not -1."""
    first, place = cuda.shfl_sync(ALL_LANES, bucket, 0), int64(0)
    if cuda.all_sync(ALL_LANES, bucket == first and first >= 0):
        lane = cuda.threadIdx.x & 31
        if lane == 0:
            place = cuda.atomic.add(cursor, bucket, WARP)
        place = cuda.shfl_sync(ALL_LANES, place, 0) + lane
    elif bucket >= 0:
        place = cuda.atomic.add(cursor, bucket, 1)
    return place


@kernel(*(f"void({ends}, int64[::1], int64, int64, int32[::1], int64[::1], uint32[::1])" for ends in ENDS))
def scatter_edges(u, v, starts, weight, row_bits, first_column, cursor, keys):
    """A thread per edge that is no loop: write its key to its bucket. cursor: the next free place of each bucket."""
    e, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while e - lane < u.size:  # whole warps
        j = i = bucket = int32(-1)
        if e < u.size and u[e] != v[e]:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            bucket = bucket_of(starts, j, weight)
        place = take_place(cursor, bucket)
        if bucket >= 0:
            keys[place] = uint32(j - first_column[bucket]) << row_bits | uint32(i)
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def is_new(keys, e, end):
    """Whether sorted key e occurs for the first time, if e < end."""
    return e < end and (e == 0 or keys[e - 1] != keys[e])


@cuda.jit(device=True)
def take_new(keys, size, sums, begin, out):
    """Write those of a block's sorted keys that occur for the first time to `out`, from `begin` on; how many there are.

    sums: an element for each warp, in shared memory.
    """
    lane, warp = uint32(cuda.threadIdx.x & 31), cuda.threadIdx.x // WARP
    first, end = range_of_warp(size)
    e, found = first + lane, uint32(0)
    while e - lane < end:
        found += cuda.popc(cuda.ballot_sync(ALL_LANES, is_new(keys, e, end)))
        e += WARP
    if lane == 0:
        sums[warp] = found
    cuda.syncthreads()
    place = total = uint32(0)
    for other in range(cuda.blockDim.x // WARP):
        if other == warp:
            place = total
        total += sums[other]
    e = first + lane
    while e - lane < end:
        new = is_new(keys, e, end)
        mask = cuda.ballot_sync(ALL_LANES, new)
        if new:
            out[begin + place + cuda.popc(mask & ((uint32(1) << lane) - 1))] = keys[e]
        place += cuda.popc(mask)
        e += WARP
    return total


@kernel("void(uint32[::1], int64[::1], int32[::1], int64, int64, int32[::1])")
def sort_buckets(keys, starts, first_column, row_bits, room, counts):
    """A block per bucket: sort its keys and leave out those that occurred before; write how many are left.

    room: the most keys of a bucket, which fit the block's shared memory twice.
    """
    shared, starts_of_digits = cuda.shared.array(0, uint32), cuda.shared.array(DIGITS, uint32)
    bucket = cuda.blockIdx.x
    while bucket < counts.size:
        begin = starts[first_column[bucket]]
        size = uint32(starts[first_column[bucket + 1]] - begin)
        e = uint32(cuda.threadIdx.x)
        while e < size:
            shared[e] = keys[begin + e]
            e += cuda.blockDim.x
        cuda.syncthreads()
        columns = uint32(first_column[bucket + 1] - first_column[bucket])
        bits = uint32(row_bits) + 32 - cuda.clz(columns - 1)
        own, other, counters = shared, shared[room:], shared[2 * room :]
        shift = uint32(0)
        while shift < bits and size > 0:
            sort_digit(own, other, counters, starts_of_digits, size, shift)
            own, other = other, own
            shift += DIGIT_BITS
        found = take_new(own, size, starts_of_digits, begin, keys)
        if cuda.threadIdx.x == 0:
            counts[bucket] = found
        cuda.syncthreads()
        bucket += cuda.gridDim.x


@kernel("void(uint32[::1], int64[::1], int32[::1], int64[::1], int64, int32[::1], int32[::1], int64[::1])")
def unpack_buckets(keys, starts, first_column, bucket_ptr, row_bits, row_idx, col_of, col_ptr):
    """A block per bucket: write its columns. bucket_ptr: where the nonzeros of each bucket begin."""
    bucket, buckets = cuda.blockIdx.x, first_column.size - 1
    while bucket < buckets:
        first, begin, at = first_column[bucket], starts[first_column[bucket]], bucket_ptr[bucket]
        end = begin + bucket_ptr[bucket + 1] - at
        shift = at - begin
        p = begin + cuda.threadIdx.x
        while p < end:
            row_idx[p + shift] = keys[p] & ((uint32(1) << row_bits) - 1)
            col_of[p + shift] = first + int32(keys[p] >> row_bits)
            p += cuda.blockDim.x
        j = int64(first) + cuda.threadIdx.x
        while j < first_column[bucket + 1]:
            col_ptr[j] = first_from(keys, begin, end, (j - first) << row_bits) + shift
            j += cuda.blockDim.x
        if bucket == buckets - 1 and cuda.threadIdx.x == 0:
            col_ptr[col_ptr.size - 1] = bucket_ptr[buckets]
        bucket += cuda.gridDim.x


def suit(n, edges, longest):
    """Whether buckets suit a graph. longest: the rows of the longest column, repeats included."""
    if _weight(n) * n > edges:  # most buckets would have few keys
        return False
    return _shared_bytes(_room(longest)) + 4 * DIGITS <= runtime.facts().shared_per_block


def _room(longest):
    return (1 << SIZE_BITS) + longest


def _shared_bytes(room):
    return 8 * room + counter_bytes(THREADS)


def _row_bits(n):
    return max(1, (n - 1).bit_length())


def _weight(n):
    """What a column adds to the size of its bucket, besides its rows."""
    return max(1, 1 << SIZE_BITS + _row_bits(n) >> KEY_BITS)


def columns_by_bucket(u, v, n, lengths, longest):
    """`(col_ptr, row_idx, col_of)` of the distinct edges. lengths: the rows of each column, repeats included."""
    xp, weight, row_bits, room = runtime.arrays_of(u), _weight(n), _row_bits(n), _room(longest)
    buckets = (u.size + weight * n >> SIZE_BITS) + 1
    starts, cursor, bucket_ptr = (xp.empty(size, np.int64) for size in (n + 1, buckets, buckets + 1))
    first_column, counts = xp.empty(buckets + 1, np.int32), xp.empty(buckets, np.int32)
    keys = xp.empty(u.size, np.uint32)
    scan(lengths, starts)
    run(find_buckets, n + 1, starts, weight, first_column, cursor)
    run(scatter_edges, u.size, u, v, starts, weight, row_bits, first_column, cursor, keys)
    args = keys, starts, first_column, row_bits, room, counts
    sort_buckets.launch(min(buckets, MOST_BLOCKS), THREADS, *args, shared=_shared_bytes(room))
    scan(counts, bucket_ptr)
    m = int(bucket_ptr[-1])
    row_idx, col_of, col_ptr = xp.empty(m, np.int32), xp.empty(m, np.int32), xp.empty(n + 1, np.int64)
    args = keys, starts, first_column, bucket_ptr, row_bits, row_idx, col_of, col_ptr
    unpack_buckets.launch(min(buckets, MOST_BLOCKS), THREADS, *args)
    return col_ptr, row_idx, col_of
