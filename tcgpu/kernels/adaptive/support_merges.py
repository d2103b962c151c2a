"""Triangles of edges and vertices by merging columns, in either order. See `support_plan`.

Atomic additions to one address take turns, one a nanosecond: those to a hub, or to the edge between two hubs, would
take longer than all else. So a block may have COUNTERS counters in shared memory. A key, which is the position of a
nonzero or a vertex, has two places among them. The first key that comes to a place keeps it until the block has done a
chunk of nonzeros; a key that finds both places taken has its additions in global memory. In a local graph few keys of a
chunk share a place, so nearly all additions stay in shared memory. On a graph with few triangles and no busy vertex,
counters cost more than they save: see `has_counters`. Where all columns are short and no counter is needed, a thread
merges a whole column.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import launch
from tcgpu.kernels.adaptive.merging import has_no_triangles, has_short_columns
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.shared_memory import FREE, claim
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.device_graph import SMALL, DeviceGraph

THREADS, BLOCKS = 256, 2112
COUNTERS = 2048  # of a block; a power of 2
COUNTER_BYTES = 4 * 2 * COUNTERS  # of shared memory: the keys, then the sums
FEW = 16  # rows that one thread looks up, at most
MOST_ADDED = 0xFFFF  # in shared memory at a time, so that no counter overflows
SUMS = "int32[::1]", "int64[::1]"  # the types of the sums of edges and vertices


class Tally(NamedTuple):
    """The columns and what is added up for them.

    Functions with a parameter `corners` add to vertices if it is True, else to edges.
    """

    row_idx: np.ndarray
    counters: np.ndarray  # int32, in shared memory: COUNTERS keys, then as many sums
    counting: bool  # whether there are any; if not, `counters` is another array of this type
    sums: np.ndarray  # for all keys, in global memory


class Ranges(NamedTuple):
    """The rows of two columns that are to be intersected, the fewer first."""

    p: int
    p_end: int
    q: int
    q_end: int


@cuda.jit(device=True)
def add_to_key(tally, key, more):
    """Add to the sum of a key: in shared memory if one of its places is free."""
    counters, key = tally.counters, int32(key)
    place = key & (COUNTERS - 1)
    shared = tally.counting and more <= MOST_ADDED
    if shared and not claim(counters, place, key):
        place ^= COUNTERS // 2
        shared = claim(counters, place, key)
    if shared:
        cuda.atomic.add(counters, COUNTERS + place, int32(more))
    else:
        cuda.atomic.add(tally.sums, key, more)


@cuda.jit(device=True)
def clear_counters(tally):
    """All threads of the block set all counters to 0 and free them."""
    if tally.counting:
        for k in range(cuda.threadIdx.x, COUNTERS, cuda.blockDim.x):
            tally.counters[k] = FREE
            tally.counters[COUNTERS + k] = 0
        cuda.syncthreads()


@cuda.jit(device=True)
def empty_counters(tally):
    """All threads of the block add its counters to the sums in global memory."""
    counters = tally.counters
    if tally.counting:
        cuda.syncthreads()
        for k in range(cuda.threadIdx.x, COUNTERS, cuda.blockDim.x):
            if counters[k] != FREE:
                cuda.atomic.add(tally.sums, counters[k], counters[COUNTERS + k])
        cuda.syncthreads()


@cuda.jit(device=True)
def add_common(tally, p, q, corners):
    """A row that both columns have, at nonzeros p and q: add to its vertex, or to both edges."""
    if corners:
        add_to_key(tally, tally.row_idx[p], int32(2))
    else:
        add_to_key(tally, p, int32(1))
        add_to_key(tally, q, int32(1))


@cuda.jit(device=True)
def merge(tally, ranges, corners):
    """Intersect by two pointers; returns how many rows both have."""
    row_idx, p, q, found = tally.row_idx, ranges.p, ranges.q, int32(0)
    while p < ranges.p_end and q < ranges.q_end:
        x, y = row_idx[p], row_idx[q]
        if x == y:
            add_common(tally, p, q, corners)
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
            add_common(tally, p, q, corners)
            found += 1
        p += step
    return found


@cuda.jit(device=True)
def add_found(tally, e, i, j, found, corners):
    """Add the number of triangles of nonzero e = (i, j) to the edge, or twice to its vertices."""
    if found != 0:
        if corners:
            add_to_key(tally, i, 2 * found)
            add_to_key(tally, j, 2 * found)
        else:
            add_to_key(tally, e, found)


@cuda.jit(device=True)
def gallop_in_turn(tally, ranges, many, corners):
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
        )
        found = gallop(tally, shared, lane, uint32(32), corners)
        for distance in (1, 2, 4, 8, 16):
            found += cuda.shfl_xor_sync(ALL_LANES, found, distance)
        if lane == source:
            own = found
    return own


@cuda.jit(device=True)
def ranges_to_merge(col_ptr, e, i, j):
    """The Ranges of nonzero e = (i, j): the rows of column j after i, and column i."""
    p, p_end = uint32(e + 1), uint32(col_ptr[j + 1])
    q, q_end = column_bounds(col_ptr, i)
    if p_end - p > q_end - q:
        return Ranges(q, q_end, p, p_end)
    return Ranges(p, p_end, q, q_end)


@cuda.jit(device=True)
def merge_chunks(tally, col_ptr, col_of, open, long, chunk, corners):
    """A block takes `chunk` nonzeros (i, j) at a time, a thread one: it merges columns i and j. If these have more than
    `long` rows together, it looks up those of the shorter one: FEW by itself, or more with its warp.

    If all columns have an element of `open`, only columns j that are marked there.
    """
    row_idx, thread, all_columns = tally.row_idx, cuda.threadIdx.x, open.size < col_ptr.size - 1
    for begin in range(int64(cuda.blockIdx.x) * chunk, row_idx.size, int64(cuda.gridDim.x) * chunk):
        clear_counters(tally)
        end = min(begin + chunk, row_idx.size)
        e = begin + thread
        while e - (thread & 31) < end:  # whole warps
            none, found, many = uint32(0), int32(0), False
            i = j = int32(0)
            ranges = Ranges(none, none, none, none)
            if e < end:
                i, j = row_idx[e], col_of[e]
            if e < end and (all_columns or open[j] != 0):
                ranges = ranges_to_merge(col_ptr, e, i, j)
                rows = ranges.p_end - ranges.p
                if rows + (ranges.q_end - ranges.q) <= long:
                    found = merge(tally, ranges, corners)
                elif rows <= FEW:
                    found = gallop(tally, ranges, uint32(0), uint32(1), corners)
                else:
                    many = True
            if cuda.any_sync(ALL_LANES, many):
                more = gallop_in_turn(tally, ranges, many, corners)
                if many:
                    found = more
            add_found(tally, e, i, j, found, corners)
            e += cuda.blockDim.x
        empty_counters(tally)


@kernel(*(
    f"void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, {sums}, int64)" for sums in SUMS
))  # fmt: skip
def merge_tally(col_ptr, row_idx, col_of, open, counting, long, chunk, sums, corners):
    """Count the triangles of each edge, if `open` marks their column j; or, if `corners` is 1, add 2 for each triangle
    of a vertex."""
    tally = Tally(row_idx, cuda.shared.array(0, int32), counting != 0, sums)
    merge_chunks(tally, col_ptr, col_of, open, long, chunk, corners != 0)


@kernel(*(f"void(int64[::1], int32[::1], {sums}, int64)" for sums in SUMS))
def merge_columns_tally(col_ptr, row_idx, sums, corners):
    """The same by a thread per column j, which is short: it merges it with the columns of its rows."""
    tally = Tally(row_idx, row_idx, False, sums)
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        p, p_end = column_bounds(col_ptr, j)
        of_column = int32(0)
        while p + 1 < p_end:
            e, i = p, row_idx[p]
            q, q_end = column_bounds(col_ptr, i)
            p += 1
            found = merge(tally, Ranges(p, p_end, q, q_end), corners != 0)
            if found != 0:
                if corners != 0:
                    cuda.atomic.add(sums, i, 2 * found)
                else:
                    cuda.atomic.add(sums, e, found)
                of_column += found
        if corners != 0 and of_column != 0:
            cuda.atomic.add(sums, j, 2 * of_column)


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1], uint32[::1], int64, int64, int32[::1])")
def merge_few_tally(col_ptr, row_idx, col_of, in_ptr, in_end, fewer, last, support):
    """The same of edges (i, j) with j before `last` and with fewer than `fewer` in-edges of i: a thread per edge."""
    tally = Tally(row_idx, row_idx, False, support)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        if j < last and int64(in_end[i]) - in_ptr[i] < fewer:
            found = merge(tally, ranges_to_merge(col_ptr, e, i, j), False)
            add_found(tally, e, i, j, found, False)


# --------------------------------------------------------------------------------------------------- what plans launch


BUSY = 256  # a vertex is busy if more than one in BUSY of all edges ends there
MANY_NEARBY, MANY = 5, 16  # edges a vertex, from which on triangles may be many: if most edges are nearby, and if not
MOST_TURNS = 8  # nonzeros of a thread in a chunk, at most


def has_counters(graph):
    """Whether blocks have counters: there is a busy vertex, or there may be many triangles."""
    if may_be_busy(graph):
        return True
    nearby = graph.order == "natural" and graph.order_costs.nearby
    return graph.m >= (MANY_NEARBY if nearby else MANY) * graph.n


def may_be_busy(graph):
    """Whether there is a busy vertex; True where that is not known, or does not matter."""
    known = isinstance(graph, DeviceGraph) and graph.m > SMALL
    return not known or BUSY * graph.order_costs.max_degree > graph.m


def launches(graph, long, words=None):
    """The launches that count the triangles of each edge; of each vertex if `words` is None."""
    if has_no_triangles(graph):
        return []
    of_edges = words is not None
    needs_counters = has_counters if of_edges else may_be_busy  # edges take more additions in global memory
    sums = {"sums": "support" if of_edges else "twice", "corners": int(not of_edges)}
    if not words and has_short_columns(graph) and not needs_counters(graph):
        return [launch(merge_columns_tally, graph.n, 128, 2**20, **sums)]
    turns = max(1, min(MOST_TURNS, graph.m // (THREADS * BLOCKS)))  # with few edges rather more blocks
    counting = has_counters(graph)
    known = {"long": long, "chunk": THREADS * turns, "counting": int(counting)} | sums
    return [launch(merge_tally, -(-graph.m // turns), THREADS, 2**20, COUNTER_BYTES * counting, **known)]
