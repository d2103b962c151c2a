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

from tcgpu._cuda import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import check_choice, check_knob, edge_list, enough_blocks
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.edge_list import columns_of, has
from tcgpu.kernels.reduction import BYTES_PER_THREAD, add_block_to

__all__ = ["plan", "prepare", "shape"]

WARP = 32
ALL_LANES = 0xFFFFFFFF
LEVELS = 5  # of the search tree in shared memory: 32 elements, one a lane
FEW = 32  # look-ups up to which edges share the lanes
FLIPPED = 1 << 31  # marks a length: the rows of column i are looked up in column j
LENGTH = FLIPPED - 1
BYTES_PER_LANE = 24  # of shared memory, for what a lane tells the others of its edge
NO_ROW = -1
PAST_ALL = 2**31 - 1  # past every row: a graph has at most 2^31 - 1 vertices
NEVER = 0


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


@kernel(f"void({edge_list.ARGUMENTS}, int64, int64[::1])", most_threads=1024)
def warp_search_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, cached, total):
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
            keys, looks, column, length = columns_of(e, cols, first, j_low, j_ptr, j_rows, i_low, i_ptr)
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
            if size & uint32(FLIPPED):
                hits = uint32(hits + has(j_rows, place, uint32(size & uint32(LENGTH)), j_rows[place], i_rows[key]))
            else:
                hits = uint32(hits + has(i_rows, place, size, i_rows[place], j_rows[key]))
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
            near = uint32(at + uint32(5 * WARP))
            if size & uint32(FLIPPED):
                size = uint32(size & uint32(LENGTH))
                hits = uint32(hits + warp_hits(j_rows, place, size, i_rows, p, p_end, top, near, lane, cached))
            else:
                hits = uint32(hits + warp_hits(i_rows, place, size, j_rows, p, p_end, top, near, lane, cached))
        count += int64(hits)
        cuda.syncwarp()
        e += int64(cuda.gridDim.x) * warps * WARP
    add_block_to(total, count)


@cuda.jit(device=True)
def warp_hits(rows, place, size, others, p, p_end, top, at, lane, cached):
    """How many of others[p:p_end] this lane finds among the `size` rows from rows[place] on.

    Two searches are under way at a time in every lane, so that the warp looks up 64 rows. A search has two stages:
    which of the 32 elements in shared memory is the last one up to the key, then the part of the column from there on.
    """
    part, first = size, rows[place]
    if cached:
        part = uint32(uint32(size + uint32(WARP - 1)) >> uint32(LEVELS))
        mine = uint32(lane * part)
        cuda.syncwarp()
        top[uint32(at + lane)] = rows[uint32(place + mine)] if mine < size else int32(PAST_ALL)
        cuda.syncwarp()
    hits = uint32(0)
    p = uint32(p + lane)
    while p < p_end:
        q = uint32(p + uint32(WARP))
        key, other = others[p], int32(NO_ROW)
        if q < p_end:
            other = others[q]
        a, b, x, y = place, place, first, first
        if cached:
            s, t = uint64(at), uint64(at)
            for level in range(LEVELS):
                step = uint64(uint64(WARP // 2) >> uint64(level))
                if top[s + step] <= key:
                    s += step
                if top[t + step] <= other:
                    t += step
            x, y = top[s], top[t]
            a = uint32(place + min(uint32(uint32(s - uint64(at)) * part), uint32(size - part)))
            b = uint32(place + min(uint32(uint32(t - uint64(at)) * part), uint32(size - part)))
        length = part
        while length > uint32(1):
            half = uint32(length >> uint32(1))
            v, w = rows[uint32(a + half)], rows[uint32(b + half)]
            if v <= key:
                a = uint32(a + half)
                x = v
            if w <= other:
                b = uint32(b + half)
                y = w
            length = uint32(length - half)
        hits = uint32(hits + (x == key) + (y == other))
        p = uint32(q + uint32(WARP))
    return hits


def shape(edges, threads=64, blocks=None):
    """(blocks, threads, bytes of shared memory) to launch `warp_search_kernel` with on so many edges."""
    warps = -(-check_knob("threads", threads, 1, 1024) // WARP)
    threads = warps * WARP
    most = 1 << 16 if blocks is None else check_knob("blocks", blocks, 1, 2**31 - 1)
    return enough_blocks(most, edges, threads), threads, threads * max(BYTES_PER_LANE, BYTES_PER_THREAD)


def plan(graph, *, threads=64, blocks=None, cached=True):
    """blocks: None for as many as suit the graph; cached: False searches in global memory from the root on."""
    check_choice("cached", cached, (False, True))
    return edge_list.plan("warp_search", graph, warp_search_kernel, shape(graph.m, threads, blocks), int(cached))
