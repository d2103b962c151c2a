"""Triangles of edges and vertices by merging columns, in natural order. See `support_plan`.

Atomic additions to one address take turns, one a nanosecond: those to a hub, or to the edge between two hubs, would
take longer than all else. So a block has COUNTERS counters in shared memory. A key, which is the position of a nonzero
or a vertex, has two places among them. The first key that comes to a place keeps it until the block has done a chunk of
nonzeros; a key that finds both places taken has its additions in global memory. In a local graph few keys of a chunk
share a place, so nearly all additions stay in shared memory.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import launch
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.order_costs import FEW

THREADS, BLOCKS = 256, 2112
COUNTERS = 1024  # of a block; a power of 2
COUNTER_BYTES = 4 * 2 * COUNTERS  # of shared memory: the keys, then the sums
MOST_TURNS = 4  # nonzeros of a thread in a chunk, at most
NO_KEY = -1
MOST_ADDED = 0xFFFF  # in shared memory at a time, so that no counter overflows


class Tally(NamedTuple):
    """The columns and their counters; `corners`: of vertices, else of edges.

    Unless `all_edges`, only those edges count of which an end is `wide`.
    """

    row_idx: np.ndarray
    counters: np.ndarray  # int32, in shared memory
    sums: np.ndarray  # for all keys, in global memory
    wide: np.ndarray
    all_edges: bool


class Ranges(NamedTuple):
    """The rows of two columns that are to be intersected, the fewer first; whether all edges of a column count."""

    p: int
    p_end: int
    q: int
    q_end: int
    all_of_p: bool
    all_of_q: bool


@cuda.jit(device=True)
def claimed(counters, place, key):
    """Whether a counter is the key's; it becomes so if it is nobody's."""
    owner = counters[place]
    if owner == NO_KEY:
        owner = cuda.atomic.cas(counters, place, NO_KEY, key)
    return owner == key or owner == NO_KEY


@cuda.jit(device=True)
def add_to_key(tally, key, more):
    """Add to the sum of a key: in shared memory if one of its places is free."""
    counters, key = tally.counters, int32(key)
    place = key & (COUNTERS - 1)
    shared = more <= MOST_ADDED
    if shared and not claimed(counters, place, key):
        place ^= COUNTERS // 2
        shared = claimed(counters, place, key)
    if shared:
        cuda.atomic.add(counters, COUNTERS + place, int32(more))
    else:
        cuda.atomic.add(tally.sums, key, more)


@cuda.jit(device=True)
def clear_counters(counters):
    """All threads of the block give all counters to nobody."""
    k = cuda.threadIdx.x
    while k < COUNTERS:
        counters[k] = NO_KEY
        counters[COUNTERS + k] = 0
        k += cuda.blockDim.x
    cuda.syncthreads()


@cuda.jit(device=True)
def empty_counters(tally):
    """All threads of the block add its counters to the sums in global memory, and give them to nobody."""
    counters = tally.counters
    cuda.syncthreads()
    k = cuda.threadIdx.x
    while k < COUNTERS:
        if counters[k] != NO_KEY:
            cuda.atomic.add(tally.sums, counters[k], counters[COUNTERS + k])
        k += cuda.blockDim.x
    cuda.syncthreads()
    clear_counters(counters)


@cuda.jit(device=True)
def add_common(tally, ranges, p, q, corners):
    """A row that both columns have, at nonzeros p and q: add to its vertex, or to both edges."""
    row = tally.row_idx[p]
    if corners:
        add_to_key(tally, row, int32(2))
    else:
        to_row = not tally.all_edges and tally.wide[row] != 0
        if ranges.all_of_p or to_row:
            add_to_key(tally, p, int32(1))
        if ranges.all_of_q or to_row:
            add_to_key(tally, q, int32(1))


@cuda.jit(device=True)
def merge(tally, ranges, corners):
    """Intersect by two pointers; returns how many rows both have."""
    row_idx, p, q, found = tally.row_idx, ranges.p, ranges.q, int32(0)
    while p < ranges.p_end and q < ranges.q_end:
        x, y = row_idx[p], row_idx[q]
        if x == y:
            add_common(tally, ranges, p, q, corners)
            found += 1
        p += x <= y
        q += y <= x
    return found


@cuda.jit(device=True)
def gallop(tally, ranges, first, step, corners):
    """Look up every `step`-th row of the fewer from `first` on among the others: ahead by steps that double, then half.
    Returns how many are there."""
    row_idx, p, q, q_end, found = tally.row_idx, ranges.p + first, ranges.q, ranges.q_end, int32(0)
    while p < ranges.p_end and q < q_end:
        row, ahead = row_idx[p], uint32(1)
        while ahead < q_end - q and row_idx[q + ahead] <= row:
            q += ahead
            ahead <<= 1
        while ahead > 1:
            ahead >>= 1
            if ahead < q_end - q and row_idx[q + ahead] <= row:
                q += ahead
        if row_idx[q] == row:
            add_common(tally, ranges, p, q, corners)
            found += 1
        p += step
    return found


@cuda.jit(device=True)
def gallop_together(tally, ranges, many, corners):
    """The lanes of a warp look up the rows of each lane that has `many`. Returns how many of this lane's are found."""
    lane, own = cuda.threadIdx.x & 31, int32(0)
    mask = cuda.ballot_sync(ALL_LANES, many)
    while mask != 0:
        source = cuda.ffs(mask) - 1
        mask &= mask - 1
        shared = Ranges(
            cuda.shfl_sync(ALL_LANES, ranges.p, source),
            cuda.shfl_sync(ALL_LANES, ranges.p_end, source),
            cuda.shfl_sync(ALL_LANES, ranges.q, source),
            cuda.shfl_sync(ALL_LANES, ranges.q_end, source),
            cuda.shfl_sync(ALL_LANES, int32(ranges.all_of_p), source) != 0,
            cuda.shfl_sync(ALL_LANES, int32(ranges.all_of_q), source) != 0,
        )
        found = gallop(tally, shared, lane, uint32(32), corners)
        for distance in (1, 2, 4, 8, 16):
            found += cuda.shfl_xor_sync(ALL_LANES, found, distance)
        if lane == source:
            own = found
    return own


@cuda.jit(device=True)
def ranges_to_merge(col_ptr, e, i, j, all_of_i, all_of_j):
    """The Ranges of nonzero e = (i, j): the rows of column j behind i, and column i."""
    p, p_end = uint32(e + 1), uint32(col_ptr[j + 1])
    q, q_end = column_bounds(col_ptr, i)
    if p_end - p > q_end - q:
        p, p_end, q, q_end, all_of_i, all_of_j = q, q_end, p, p_end, all_of_j, all_of_i
    return Ranges(p, p_end, q, q_end, all_of_j, all_of_i)


@cuda.jit(device=True)
def merge_chunks(tally, col_ptr, col_of, open, long, chunk, corners):
    """A block takes `chunk` nonzeros (i, j) at a time, a thread one: it merges columns i and j; if these have more than
    `long` rows together, it looks up those of the shorter one. The warp does so together if they are more than FEW.

    With `bands`, only edges with a wide end count, which only an `open` column j finds.
    """
    row_idx, wide, thread = tally.row_idx, tally.wide, cuda.threadIdx.x
    clear_counters(tally.counters)
    begin = int64(cuda.blockIdx.x) * chunk
    while begin < row_idx.size:
        end = min(begin + chunk, row_idx.size)
        e = begin + thread
        while e - (thread & 31) < end:  # whole warps
            i = j = found = int32(0)
            all_of_i = all_of_j = tally.all_edges
            ranges, many = Ranges(uint32(0), uint32(0), uint32(0), uint32(0), all_of_j, all_of_i), False
            if e < end:
                i, j = row_idx[e], col_of[e]
                if not tally.all_edges:
                    all_of_i, all_of_j = wide[i] != 0, wide[j] != 0
                if tally.all_edges or open[j] != 0:
                    ranges = ranges_to_merge(col_ptr, e, i, j, all_of_i, all_of_j)
                    rows = ranges.p_end - ranges.p
                    if rows + (ranges.q_end - ranges.q) <= long:
                        found = merge(tally, ranges, corners)
                    elif rows <= FEW:
                        found = gallop(tally, ranges, uint32(0), uint32(1), corners)
                    else:
                        many = True
            if cuda.any_sync(ALL_LANES, many):
                more = gallop_together(tally, ranges, many, corners)
                if many:
                    found = more
            if found != 0:
                if corners:
                    add_to_key(tally, i, 2 * found)
                    add_to_key(tally, j, 2 * found)
                elif all_of_i or all_of_j:
                    add_to_key(tally, e, found)
            e += cuda.blockDim.x
        empty_counters(tally)
        begin += int64(cuda.gridDim.x) * chunk


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int32[::1], int32[::1], int64, int64, int32[::1])")
def merge_tally(col_ptr, row_idx, col_of, words, wide, open, long, chunk, support):
    """Count the triangles of each edge; of those of wide vertices alone, which band_tally omits, if words > 0."""
    counters = cuda.shared.array(0, int32)
    merge_chunks(Tally(row_idx, counters, support, wide, words == 0), col_ptr, col_of, open, long, chunk, False)


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64[::1])")
def merge_corners(col_ptr, row_idx, col_of, long, chunk, twice):
    """Add 2 for each triangle of a vertex."""
    counters = cuda.shared.array(0, int32)
    merge_chunks(Tally(row_idx, counters, twice, row_idx, True), col_ptr, col_of, row_idx, long, chunk, True)


def launch_merges(kernel, graph, long, **given):
    """The launch of one of these kernels: with so small chunks that each block gets one, if there are enough edges."""
    turns = max(1, min(MOST_TURNS, graph.m // (THREADS * BLOCKS)))
    given |= {"long": long, "chunk": THREADS * turns}
    return launch(kernel, -(-graph.m // turns), THREADS, 2**20, COUNTER_BYTES, **given)
