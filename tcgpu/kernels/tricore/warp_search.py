"""`warp_search`: a warp per edge, 32 binary searches at a time, the top of the search tree in shared memory (TriCore).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share. The rows of the shorter column are looked
up in the longer one; of column j only those after row i, for column i has no row up to i. The edges and the two columns
that each asks for may lie in different arrays: see `edge_list`. Any numbers of threads and blocks give the same count;
a warp is never cut, so threads are rounded up to whole warps.

A warp reads the rows of 32 edges at a time. Where all columns are at hand every edge counts, and each lane keeps its
own. Where only some are, as in a part of a graph, edges that count wait in line in shared memory until there are 32 of
them, one for each lane: what follows takes a warp as long for one edge as for many.

Each lane then fetches where the two columns of its edge begin and end. Edges with up to 32 rows to look up share the
lanes: a look-up a lane, whatever edge it is of. The others are taken one by one by the whole warp, whose lanes look up
neighbouring rows at the same time and so read memory side by side.

With `cached`, 32 elements of the longer column, evenly spaced, are brought to shared memory first: the first five
levels of the search tree, which every search goes through. It ends in the part of the column between two of them.
"""

from tcgpu.declarations import Knob, Method, blocks_knob, threads_knob
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_slices
from tcgpu.kernels.tricore.edge_slices import place_at_hand, stretches

__all__ = ["plan", "prepare", "shape"]

LEVELS = 5  # of the search tree in shared memory: 32 elements, one a lane
FEW = 32  # look-ups up to which an edge shares the lanes with others
TOLD = 5 * WARP  # words that the lanes of a warp tell each other of their edges, five each
LINE = WARP  # words of the line of edges that stay there while a warp works; the others are where it then tells
WORDS = LINE + TOLD + 2 * WARP  # of shared memory for a warp: behind those, two tops, filled in turns
ROUNDS = 6  # how often a warp reads 32 edges
FLIPPED = 1 << 31  # marks a length: the rows of column i are looked up in column j
LENGTH = FLIPPED - 1
NO_ROW = -1
PAST_ALL = 2**31 - 1  # past every row: there are at most so many vertices, and the last one has a number less


METHOD = Method(
    name="warp_search",
    source="TriCore",
    summary="a warp per edge; 32 binary searches at a time, the top of the tree in shared memory",
    order="degree",
    module=__name__,
    declared=(
        threads_knob(64),
        blocks_knob(None),
        Knob("cached", True, "top of the search tree in shared memory", choices=(False, True)),
    ),
)


@kernel(f"void({edge_slices.ARGUMENTS}, int64, int64[::1])", most_threads=1024)
def warp_search_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, cached, total):
    told = cuda.shared.array(0, uint32)
    top = cuda.shared.array(0, int32)  # the same memory
    lane = cuda.threadIdx.x & 31
    warp, warps = cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5
    line = warp * WORDS
    at = line + LINE
    near = at + TOLD
    count, waiting = int64(0), uint32(0)
    e = first + (int64(cuda.blockIdx.x) * warps + warp) * WARP + lane
    step = int64(cuda.gridDim.x) * warps * WARP
    while e - lane < last or waiting:
        mine, i_at, e, waiting = gathered(told, line, waiting, lane, e, step, last, j_rows, i_low, i_ptr)
        keys = looks = column = length = uint32(0)
        if i_at >= 0:
            keys, looks, column, length = stretches(mine, i_at, cols, first, j_low, j_ptr, i_ptr)
            if length < looks:
                keys, looks, column, length = column, length, keys, looks | FLIPPED
        tell(told, at + lane, lane, keys, looks, column, length)
        cuda.syncwarp()
        hits = shared_hits(told, at, lane, j_rows, i_rows)
        many = cuda.ballot_sync(ALL_LANES, looks > FEW)
        while many:
            edge = at + cuda.ffs(many) - 1
            many &= many - 1
            p = told[edge] + told[edge + WARP]
            p_end = p + told[edge + 4 * WARP]
            place, size = told[edge + 2 * WARP], told[edge + 3 * WARP]
            near = at + at + 2 * TOLD + WARP - near  # the other one: lanes may still read the last
            if size & FLIPPED:
                size &= LENGTH
                hits += warp_hits(j_rows, place, size, i_rows, p, p_end, top, near, lane, cached)
            else:
                hits += warp_hits(i_rows, place, size, j_rows, p, p_end, top, near, lane, cached)
        count += int64(hits)
        cuda.syncwarp()
    add_block_to(total, count)


@cuda.jit(device=True)
def gathered(line, at, waiting, lane, e, step, last, j_rows, i_low, i_ptr):
    """An edge that counts for this lane, and which of the columns at hand is its column i: -1 if no edge is left for
    the lane. Then the next edge that the lane is to read, and how many edges wait in line.

    Reads 32 edges after 32 until as many wait or there are no more; before that, at most 31 wait. The last ones in line
    are taken, so that at most 31 words of it are to be kept. Nobody stands in line whose turn it is at once.
    """
    while e - lane < last and waiting < WARP:
        mine, i_at = e, int64(-1)
        if e < last:
            i_at = place_at_hand(j_rows[e], i_low, i_ptr)
        counting = cuda.ballot_sync(ALL_LANES, i_at >= 0)
        e += step
        if waiting == 0 and (counting == ALL_LANES or e - lane >= last):
            return mine, i_at, e, waiting
        if i_at >= 0:
            before = counting & (1 << lane) - 1
            line[at + waiting + cuda.popc(before)] = mine
        waiting += cuda.popc(counting)
    cuda.syncwarp()
    taken = min(waiting, WARP)
    waiting -= taken
    mine, i_at = e, int64(-1)
    if lane < taken:
        mine = int64(line[at + waiting + lane])
        i_at = place_at_hand(j_rows[mine], i_low, i_ptr)
    cuda.syncwarp()
    return mine, i_at, e, waiting


@cuda.jit(device=True)
def tell(told, own, lane, keys, looks, column, length):
    """Write down for the other lanes what this lane's edge has to look up.

    Five words, 32 apart: how many look-ups the edges up to this one have that share the lanes; where its keys begin,
    less that sum before it; where the column to search begins, its length; how many look-ups it has itself.
    """
    few = looks if looks <= FEW else uint32(0)
    end, step = few, uint32(1)
    while step < WARP:
        other = cuda.shfl_up_sync(ALL_LANES, end, step)
        if lane >= step:
            end += other
        step += step
    told[own] = end
    told[own + WARP] = keys - (end - few)
    told[own + 2 * WARP] = column
    told[own + 3 * WARP] = length
    told[own + 4 * WARP] = looks


@cuda.jit(device=True)
def shared_hits(told, at, lane, j_rows, i_rows):
    """How many rows this lane finds of those that edges with few of them look up: number `lane`, `lane` + 32, ..."""
    looked_up = told[at + (WARP - 1)]
    t, hits = lane, uint32(0)
    while t < looked_up:
        edge = at  # it is of the first edge whose sum is past t
        for level in range(LEVELS):
            step = WARP // 2 >> uint32(level)
            if told[edge + step - 1] <= t:
                edge += step
        key = told[edge + WARP] + t
        place, size = told[edge + 2 * WARP], told[edge + 3 * WARP]
        if size & FLIPPED:
            hits += contains(j_rows, place, size & LENGTH, i_rows[key])
        else:
            hits += contains(i_rows, place, size, j_rows[key])
        t += WARP
    return hits


@cuda.jit(device=True)
def warp_hits(rows, place, size, keys, p, p_end, top, at, lane, cached):
    """How many of keys[p:p_end] this lane finds among the `size` rows from rows[place] on: every 32nd.

    A search has two stages: which of the elements in shared memory is the last one up to the key, then the part of the
    column from there on. All parts are as long as one another, so that all lanes take the same steps; the last one
    begins early enough for that. Two searches are under way at a time in every lane.
    """
    part = size
    if cached:
        part = size + (WARP - 1) >> LEVELS
        mine = lane * part
        top[at + lane] = rows[place + mine] if mine < size else int32(PAST_ALL)
        cuda.syncwarp()
    hits = uint32(0)
    p += lane
    while p < p_end:
        q = p + WARP
        x, y = keys[p], int32(NO_ROW)
        if q < p_end:
            y = keys[q]
        a, b = place, place
        if cached:
            s, t = at, at
            for level in range(LEVELS):
                step = uint32(WARP // 2 >> level)
                if top[s + step] <= x:
                    s += step
                if top[t + step] <= y:
                    t += step
            a = place + min((s - at) * part, size - part)
            b = place + min((t - at) * part, size - part)
        length = part
        while length > 1:
            half = length >> 1
            if rows[a + half] <= x:
                a += half
            if rows[b + half] <= y:
                b += half
            length -= half
        hits += rows[a] == x
        hits += rows[b] == y
        p = q + WARP
    return hits


def shape(edges, threads=64, blocks=None):
    """(blocks, threads, bytes of shared memory) to launch `warp_search_kernel` with on so many edges."""
    warps = -(-threads // WARP)
    threads = warps * WARP
    most = 2**31 - 1 if blocks is None else blocks
    blocks = enough_blocks(most, edges, threads * (ROUNDS if blocks is None else 1))
    return blocks, threads, warps * max(4 * WORDS, WARP * BYTES_PER_THREAD)


@METHOD.planner
def plan(graph, *, threads, blocks, cached):
    """blocks: None for so many that a warp takes 32 edges a few times."""
    return edge_slices.plan(
        "warp_search",
        graph,
        warp_search_kernel,
        shape(graph.m, threads, blocks),
        int(cached),
        edge_us=40,
        step_us=2.1,
    )
