"""`warp_search`: a warp per edge, 32 binary searches at a time, the top of the search tree in shared memory (TriCore).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share. The rows of the shorter column are looked
up in the longer one; of column j only those after row i, for column i has no row up to i. A warp takes 32 edges at a
time: each lane fetches where the columns of one of them begin and end. Edges with few rows to look up then share the
lanes, a look-up a lane, whatever edge it is of. The others are taken one by one, by the whole warp: 32 neighbouring
rows are looked up at the same time, so that the lanes read memory side by side.

With `cached`, 32 elements of the longer column, evenly spaced, are brought to shared memory first: the first five
levels of the search tree, where every search begins. A search ends in the part of the column between two of them.

The edges and the two columns that an edge asks for may lie in different arrays, which is how a graph that is too large
for the device is counted: see `warp_search_kernel`. Any numbers of threads and blocks give the same count; a warp is
never cut, so threads are rounded up to whole warps.
"""

from tcgpu._cuda import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Plan, Step, check_knob, enough_blocks
from tcgpu.kernels.bits import check_edges, simulated_lookups
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.levels import check_choice
from tcgpu.kernels.reduction import BYTES_PER_THREAD, add_block_to

__all__ = ["plan", "prepare", "shape"]

WARP = 32
ALL_LANES = 0xFFFFFFFF
LEVELS = 5  # of the search tree in shared memory: 32 elements, one a lane
FEW = 16  # look-ups up to which edges share the lanes
FLIPPED = 1 << 31  # marks a length: the rows of column i are looked up in column j
LENGTH = FLIPPED - 1
BYTES_PER_LANE = 24  # of shared memory, for what a lane tells the others of its edge
NEVER = 2**31


@cuda.jit(device=True)
def found(rows, place, length, value, key):
    """Whether `key` is one of the `length` ascending rows from rows[place] on, the first of which is `value`.

    All lanes with the same length take the same steps: the part that may hold the key is halved, whatever was found.
    """
    while length > uint32(1):
        half = uint32(length >> uint32(1))
        x = rows[uint32(place + half)]
        if x <= key:
            place = uint32(place + half)
            value = x
        length = uint32(length - half)
    return value == key


@cuda.jit(device=True)
def sums_up_to(value, lane):
    """The sum of the values of all lanes of a warp up to this one."""
    step = uint32(1)
    while step < uint32(WARP):
        other = cuda.shfl_up_sync(ALL_LANES, int32(value), step)
        if lane >= step:
            value = uint32(value + uint32(other))
        step = uint32(step + step)
    return value


@kernel(
    "void(int32[::1], int64, int64, int64, int64[::1], int32[::1], int64, int64[::1], int32[::1], int64, int64[::1])"
)
def warp_search_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, cached_from, total):
    """Add to total[0] what the edges first..last-1 have in common, as far as column i is among those at hand.

    j_rows      rows of consecutive columns from vertex `j_low` on, j_ptr[j - j_low] is where column j begins, and
                j_rows[e] the row i of edge e
    cols        the column j of edge e at cols[e - first]; empty where it is to be searched for in `j_ptr`
    i_rows      rows of consecutive columns from vertex `i_low` on, i_ptr[i - i_low] is where column i begins; an edge
                whose row i is not among these is stepped over
    cached_from how many rows an edge must look up to have the top of the search tree brought to shared memory

    In memory both are the columns of the whole graph. No array may have 2^32 - 64 rows or more.
    """
    told = cuda.shared.array(0, uint32)  # for every warp: five words a lane and the top of the tree
    top = cuda.shared.array(0, int32)  # the same memory
    lane = uint32(cuda.threadIdx.x & 31)
    warp, warps = uint32(cuda.threadIdx.x >> 5), uint32(cuda.blockDim.x >> 5)
    at = uint32(warp * uint32(6 * WARP))
    own = uint32(at + lane)
    count = int64(0)
    e = first + (int64(cuda.blockIdx.x) * warps + warp) * WARP + lane
    while e - lane < last:
        keys, looks, column, length = uint32(0), uint32(0), uint32(0), uint32(0)
        if e < last:
            i = int64(j_rows[e]) - i_low
            if i >= 0 and i < i_ptr.size - 1:
                keys = uint32(e + 1)
                looks = uint32(column_end(cols, e - first, j_low, j_ptr, e) - e - 1)
                column = uint32(i_ptr[i])
                length = uint32(i_ptr[i + 1] - i_ptr[i])
                if length < looks:
                    keys, looks, column, length = column, length, keys, uint32(looks | uint32(FLIPPED))
        few = looks if looks <= uint32(FEW) else uint32(0)
        end = sums_up_to(few, lane)
        told[own] = end
        told[uint32(own + uint32(WARP))] = uint32(keys - uint32(end - few))
        told[uint32(own + uint32(2 * WARP))] = column
        told[uint32(own + uint32(3 * WARP))] = length
        told[uint32(own + uint32(4 * WARP))] = looks
        cuda.syncwarp()
        looked_up = told[uint32(at + uint32(WARP - 1))]
        t, hits = lane, uint32(0)
        while t < looked_up:
            edge = at  # the look-up is of the first edge whose sum is past t
            for level in range(LEVELS):
                step = uint32(uint32(WARP // 2) >> uint32(level))
                if told[uint32(edge + step - uint32(1))] <= t:
                    edge = uint32(edge + step)
            key = uint32(told[uint32(edge + uint32(WARP))] + t)
            place, size = told[uint32(edge + uint32(2 * WARP))], told[uint32(edge + uint32(3 * WARP))]
            rows, others = i_rows, j_rows
            if size & uint32(FLIPPED):
                rows, others, size = j_rows, i_rows, uint32(size & uint32(LENGTH))
            hits = uint32(hits + found(rows, place, size, rows[place], others[key]))
            t = uint32(t + uint32(WARP))
        cuda.syncwarp()
        many = uint32(cuda.ballot_sync(ALL_LANES, looks > uint32(FEW)))
        while many:
            source = uint32(uint32(cuda.ffs(many)) - uint32(1))
            many = uint32(many & uint32(many - uint32(1)))
            edge = uint32(at + source)
            p = uint32(told[uint32(edge + uint32(WARP))] + told[edge])
            p_end = uint32(p + told[uint32(edge + uint32(4 * WARP))])
            place, size = told[uint32(edge + uint32(2 * WARP))], told[uint32(edge + uint32(3 * WARP))]
            rows, others = i_rows, j_rows
            if size & uint32(FLIPPED):
                rows, others, size = j_rows, i_rows, uint32(size & uint32(LENGTH))
            if uint32(p_end - p) >= uint32(cached_from):
                hits = uint32(hits + cached_hits(rows, place, size, others, p, p_end, top, uint32(at + uint32(5 * WARP)), lane))
            else:
                value = rows[place]
                p = uint32(p + lane)
                while p < p_end:
                    hits = uint32(hits + found(rows, place, size, value, others[p]))
                    p = uint32(p + uint32(WARP))
        count += int64(hits)
        cuda.syncwarp()
        e += int64(cuda.gridDim.x) * warps * WARP
    add_block_to(total, count)


@cuda.jit(device=True)
def column_end(cols, k, j_low, j_ptr, e):
    """Where the column of nonzero e ends: that of its vertex cols[k] or, without `cols`, the first end past e."""
    if cols.size:
        return j_ptr[cols[k] - j_low + 1]
    low, high = int64(1), j_ptr.size - 1
    while low < high:
        middle = (low + high) >> 1
        if j_ptr[middle] <= e:
            low = middle + 1
        else:
            high = middle
    return j_ptr[low]


@cuda.jit(device=True)
def cached_hits(rows, place, size, others, p, p_end, top, at, lane):
    """How many of others[p:p_end] this lane finds among the `size` rows from rows[place] on; a search in two stages.

    First in the 32 elements of the column that the lanes bring to shared memory, then between two of those.
    """
    part, rest = uint32(size >> uint32(LEVELS)), uint32(size & uint32(WARP - 1))
    cuda.syncwarp()
    top[uint32(at + lane)] = rows[uint32(place + uint32(lane * part) + (uint32(lane * rest) >> uint32(LEVELS)))]
    cuda.syncwarp()
    longest = uint32(uint32(size + uint32(WARP - 1)) >> uint32(LEVELS))
    hits = uint32(0)
    p = uint32(p + lane)
    while p < p_end:
        key = others[p]
        t = uint32(0)
        for level in range(LEVELS):
            step = uint32(uint32(WARP // 2) >> uint32(level))
            if top[uint32(at + t + step)] <= key:
                t = uint32(t + step)
        begin = uint32(place + uint32(t * part) + (uint32(t * rest) >> uint32(LEVELS)))
        hits = uint32(hits + found(rows, begin, longest, top[uint32(at + t)], key))
        p = uint32(p + uint32(WARP))
    return hits


def shape(edges, threads=128, blocks=None):
    """(blocks, threads, bytes of shared memory) to launch `warp_search_kernel` with on so many edges."""
    warps = -(-check_knob("threads", threads, 1, 1024) // WARP)
    threads = warps * WARP
    most = 1 << 16 if blocks is None else check_knob("blocks", blocks, 1, 2**31 - 1)
    return enough_blocks(most, edges, threads), threads, threads * max(BYTES_PER_LANE, BYTES_PER_THREAD)


def plan(graph, *, threads=128, blocks=None, cached=True):
    """blocks: None for as many as suit the graph; cached: False searches in global memory from the root on."""
    check_edges("warp_search", graph)
    check_choice("cached", cached, (False, True))
    blocks, threads, shared = shape(graph.m, threads, blocks)
    columns = ("col_ptr", "row_idx")
    args = ("col_of", 0, graph.m, 0, *columns, 0, *columns, 2 * WARP if cached else NEVER, "total")
    return Plan(
        method="warp_search",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of},
        created={},
        steps=[Step(warp_search_kernel, blocks, threads, args, shared)],
        work=simulated_lookups(graph),
    )
