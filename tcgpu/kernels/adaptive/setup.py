"""What `adaptive` lays out on the device before it counts: near numbers, in-edges, tasks, rows of bits.

Near numbers: those rows of a column that are among the last NEAR vertices, counted from 1 on, in 16 bits each; columns
one after the other, in groups of four (a *quad*), the rows at the end and 0 where none is.

A *piece* of an array is a uint64: where it begins, and in the last LENGTH_BITS bits how long it is.

Work can be dealt out like cards. Share `index` has every `of`-th of the listed columns, of the vertices whose in-edges
are looked at, and of the blocks that take nonzeros: each triangle is of one share. In degree order neighbours have
about as much to do, and so have the shares.
"""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import Scan, Step, enough_blocks
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD
from tcgpu.kernels.device_graph import SMALL

NEAR = 65535  # vertices that are near the end
HUBS = 8192
HUB_0 = NEAR + 1 - HUBS  # the near number of the first hub
ROW = HUBS // 64  # words of a hub's row of bits
STRETCH = 2048  # hubs: as many as 32 lanes with a word each have bits
PIECE = 512  # heavy columns of a hub that are taken at a time
FRONTS = 8  # parts of all lists of heavy columns that are taken one after the other
BITS = (NEAR + 1) // 32  # words of the bits of all near numbers
LENGTH_BITS = 24
LENGTH_MASK = (1 << LENGTH_BITS) - 1
ALL_LANES = 0xFFFFFFFF
EMPTY = -1
GOLDEN = 2654435769  # Knuth's multiplier: 2^32 over the golden ratio
TABLE = 512  # rows that a hash table takes at a time
TASK = 8192  # in-edges that a task has at most
NO_CROWD = 2**30
WORDS = (32, 64, 128)


@cuda.jit(device=True)
def dealt_thread(index, of):
    """This thread's number in a grid `of` times as large whose blocks are dealt out, and this grid is share `index`."""
    return (int64(cuda.blockIdx.x) * of + index) * cuda.blockDim.x + cuda.threadIdx.x


@kernel(
    "void(int64[::1], int32[::1], int64, int64, int64, int64, int64, int32[::1], int32[::1], int32[::1], int32[::1],"
    " int64[::1])"
)
def measure_columns(col_ptr, row_idx, base, heavy_quads, long_rows, index, of, far, quads, heavy, long, listed):
    """A thread per column: how many rows come before vertex `base`, how many quads hold the others; heavy or long?

    The last columns, which have most to do, are listed first. `listed` counts the two lists, which have the columns of
    share `index` alone.
    """
    lane = cuda.threadIdx.x & 31
    n = col_ptr.size - 1
    place = cuda.grid(1)
    while place - lane < n:  # whole warps
        j = n - 1 - place
        before = after = int64(0)
        if j >= 0:
            low, high = col_ptr[j], col_ptr[j + 1]
            before, after = low, high
            while low < high:
                middle = (low + high) >> 1
                if row_idx[middle] < base:
                    low = middle + 1
                else:
                    high = middle
            before, after = low - before, (after - low + 3) >> 2
            far[j], quads[j] = before, after
        own = uint32(uint32(place) % uint32(of)) == uint32(index)
        list_lanes(own and after > heavy_quads, j, heavy, listed, 0)
        list_lanes(own and before >= long_rows, j, long, listed, 1)
        place += cuda.gridsize(1)


@cuda.jit(device=True)
def list_lanes(chosen, value, into, listed, kind):
    """Append the `value` of each chosen lane of a warp to a list, of which listed[kind] says the length."""
    lane = cuda.threadIdx.x & 31
    mask = uint32(cuda.ballot_sync(ALL_LANES, chosen))
    first = int64(0)
    if lane == 0 and mask != 0:
        first = cuda.atomic.add(listed, kind, int64(cuda.popc(mask)))
    first = cuda.shfl_sync(ALL_LANES, first, 0)
    if chosen:
        into[first + cuda.popc(mask & uint32((uint32(1) << uint32(lane)) - uint32(1)))] = value


@kernel("void(int32[::1], int64[::1], int32[::1])")
def bound_in_edges(occurrences, col_ptr, in_count):
    """A thread per vertex: it lies in no more columns than it occurs in edges beyond those of its own column."""
    v = cuda.grid(1)
    while v < in_count.size:
        in_count[v] = occurrences[v] - int32(col_ptr[v + 1] - col_ptr[v])
        v += cuda.gridsize(1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64[::1],"
    " uint16[::1], uint64[::1])"
)
def lay_out(col_ptr, row_idx, col_of, near_ptr, base, zero, heavy_quads, lowest, index, of, put, near, in_edges):
    """A thread per nonzero (i, j): its near number i - zero, and what of column j has to be looked up in column i.

    That is an in-edge of i: the piece of column j's quads that has all near rows past i. None where there are none, and
    where `hub_kernel` sees to it: i a hub from near number `lowest` on, column j heavy; and none where i is not of
    share `index`. `put[i]` is where i's in-edges go, and in the end where they end.
    """
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        x = i - zero
        begin, end = int64(near_ptr[j]), int64(near_ptr[j + 1])
        heavy = end - begin > heavy_quads
        if i >= base:
            after = col_ptr[j + 1] - e - 1
            near[4 * end - after - 1] = x
            begin = (4 * end - after) >> 2
        if begin < end and (x < lowest or not heavy) and uint32(uint32(i) % uint32(of)) == uint32(index):
            in_edges[cuda.atomic.add(put, i, 1)] = uint64(begin << LENGTH_BITS | end - begin)
        e += cuda.gridsize(1)


@kernel("void(int64[::1], int64[::1], int32[::1], int64, int64, int64, int32[::1])")
def count_tasks(in_ptr, put, near_ptr, fewest, fewer, most, tasks):
    """A thread per vertex of `fewest` in-edges or more, but `fewer`: how many tasks of at most `most` it makes."""
    i = cuda.grid(1)
    while i < tasks.size:
        in_edges = put[i] - in_ptr[i]
        made = int64(0)
        if fewest <= in_edges < fewer and near_ptr[i] < near_ptr[i + 1]:
            made = (in_edges + most - 1) // most
        tasks[i] = made
        i += cuda.gridsize(1)


@kernel("void(int64[::1], int64[::1], int32[::1], int64, int32[::1], uint64[::1], uint64[::1])")
def fill_tasks(in_ptr, put, near_ptr, most, task_ptr, columns, pieces):
    """A thread per vertex: for each of its tasks the piece of the quads that is its column, and of its in-edges."""
    i = cuda.grid(1)
    while i < task_ptr.size - 1:
        first, begin = in_ptr[i], int64(near_ptr[i])
        for task in range(task_ptr[i], task_ptr[i + 1]):
            columns[task] = uint64(begin << LENGTH_BITS | near_ptr[i + 1] - begin)
            pieces[task] = uint64(first << LENGTH_BITS | min(most, put[i] - first))
            first += most
        i += cuda.gridsize(1)


@kernel("void(uint16[::1], int32[::1], int64, uint32[::1], int64[::1])")
def fill_hub_rows(near, near_ptr, hubs, rows, queue):
    """A warp per hub: bit k of row h says that hubs h and k > h are neighbours. Puts hub_kernel's queue to 0."""
    lane = cuda.threadIdx.x & 31
    if cuda.grid(1) == 0:
        queue[0] = 0
    n = near_ptr.size - 1
    h = hubs - 1 - (cuda.grid(1) >> 5)
    while h >= max(0, hubs - n):
        v = n - hubs + h
        p, end = 4 * int64(near_ptr[v]) + lane, 4 * int64(near_ptr[v + 1])
        while p < end:
            k = int64(near[p]) - HUB_0
            if k >= 0:
                cuda.atomic.or_(rows, 2 * (v - n + HUBS) * ROW + (k >> 5), uint32(1) << uint32(k & 31))
            p += 32
        h -= cuda.gridsize(1) >> 5


@kernel("void(int32[::1], int64[::1], int32[::1])")
def place_heavy(heavy, listed, place):
    """A thread per heavy column: where in the list it is."""
    k = cuda.grid(1)
    while k < listed[0]:
        place[heavy[k]] = k
        k += cuda.gridsize(1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64[::1],"
    " int64[::1], int32[::1], uint16[::1], uint64[::1], uint32[::1])"
)
def lay_out_nonzeros(
    col_ptr, row_idx, col_of, near_ptr, place, base, zero, heavy_quads, lowest, in_ptr, put, crossed, near, in_edges,
    origins,
):  # fmt: skip
    """As `lay_out`; `origins` says where an in-edge has its near number, or which nonzero it is if it has none. What
    is left out there, the heavy columns that have hub i, is listed as well: from the end of i's in-edges on, backwards;
    `crossed` says how many they are."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        x, origin = i - zero, e
        begin, end = int64(near_ptr[j]), int64(near_ptr[j + 1])
        heavy = end - begin > heavy_quads
        if i >= base:
            origin = 4 * end - (col_ptr[j + 1] - e)
            near[origin] = x
            begin = (origin + 1) >> 2
        if x >= lowest and heavy:
            k = cuda.atomic.add(crossed, x - HUB_0, 1)
            in_edges[in_ptr[i + 1] - 1 - k] = uint64(place[j])
        elif begin < end:
            k = cuda.atomic.add(put, i, 1)
            in_edges[k] = uint64(begin << LENGTH_BITS | end - begin)
            origins[k] = origin
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def pieces_before(front, listed):
    """How many pieces of a hub's list come before a front: each front has about the same share of them."""
    return front * ((listed + PIECE - 1) // PIECE) // FRONTS


@kernel("void(int32[::1], int32[::1])")
def count_pieces(crossed, pieces):
    """A thread per front and hub: how many pieces of the hub's list it has."""
    k = cuda.grid(1)
    while k < pieces.size:
        front, listed = k // HUBS, crossed[k % HUBS]
        pieces[k] = pieces_before(front + 1, listed) - pieces_before(front, listed)
        k += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1])")
def fill_pieces(piece_ptr, piece_places):
    """A thread per front and hub: whose each of its pieces is."""
    k = cuda.grid(1)
    while k < piece_ptr.size - 1:
        for piece in range(piece_ptr[k], piece_ptr[k + 1]):
            piece_places[piece] = k
        k += cuda.gridsize(1)


@kernel("void(uint16[::1], int32[::1], int64, uint32[::1], int64[::1], uint64[::1])")
def fill_stretch_rows(near, near_ptr, hubs, rows, queues, held):
    """A warp per hub: bit k of row h for neighbours h < k, bit h of row k if both are of one stretch.

    Puts three queues to 0, and the first bits that are held: no column's.
    """
    lane = cuda.threadIdx.x & 31
    if cuda.grid(1) < 3:
        queues[cuda.grid(1)] = 0
    if cuda.grid(1) < 32:
        held[cuda.grid(1)] = uint64(0)
    n = near_ptr.size - 1
    h = HUBS - 1 - (cuda.grid(1) >> 5)
    while h >= max(HUBS - hubs, HUBS - n):
        v = n - HUBS + h
        p, end = 4 * int64(near_ptr[v]) + lane, 4 * int64(near_ptr[v + 1])
        while p < end:
            k = int64(near[p]) - HUB_0
            if k >= 0:
                cuda.atomic.or_(rows, 2 * h * ROW + (k >> 5), uint32(1) << uint32(k & 31))
                if k // STRETCH == h // STRETCH:
                    cuda.atomic.or_(rows, 2 * k * ROW + (h >> 5), uint32(1) << uint32(h & 31))
            p += 32
        h -= cuda.gridsize(1) >> 5


@kernel("void(int32[::1], int32[::1], int64, uint32[::1])")
def fill_local_rows(row_idx, col_of, words, rows):
    """A thread per nonzero (i, j): its bit in row j, which begins at vertex j rounded down to a multiple of 64."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            cuda.atomic.or_(rows, 2 * (j * words + offset) + ((i >> 5) & 1), uint32(1) << uint32(i & 31))
        e += cuda.gridsize(1)


# ------------------------------------------------------------------------------------------- what of it, for whom


def local_words(graph, short):
    """How many words local columns should reach over so that most nonzeros lie in one; 0 if none of WORDS does it."""
    if graph.m <= SMALL or graph.nonzeros_per_column < short // 4:
        return 0
    xp = runtime.arrays_of(graph.col_ptr)
    lengths = xp.diff(graph.col_ptr)
    columns = xp.flatnonzero(lengths >= short)
    reach = (graph.row_idx[graph.col_ptr[columns + 1] - 1] >> 6) - (columns >> 6) + 1
    for words in WORDS:
        fits = 8 * words * graph.n <= runtime.memory_free() // 4
        if fits and 2 * int(lengths[columns][reach <= words].sum()) > graph.m:
            return words
    return 0


def tasks_created(kind, n, most):
    """The arrays that hold at most `most` tasks of n vertices."""
    return {
        f"{kind}_count": (n, np.int32, None),
        f"{kind}_ptr": (n + 1, np.int32, None),
        f"{kind}_columns": (most, np.uint64, None),
        f"{kind}_pieces": (most, np.uint64, None),
    }


def tasks_listed(kind, n, fewest, fewer):
    """What lists the tasks of the vertices with `fewest` in-edges or more, but `fewer`."""
    counting = ("in_ptr", "put", "near_ptr", fewest, fewer, TASK, f"{kind}_count")
    filling = ("in_ptr", "put", "near_ptr", TASK, f"{kind}_ptr", f"{kind}_columns", f"{kind}_pieces")
    return [
        launch(count_tasks, n, 256, counting),
        Scan(f"{kind}_count", f"{kind}_ptr"),
        launch(fill_tasks, n, 256, filling),
    ]


def launch(kernel, threads_wanted, threads, args, most=2112, shared=0):
    """A launch of as many blocks as find something to do, at most `most`."""
    blocks = enough_blocks(most, threads_wanted, threads)
    return Step(kernel, blocks, threads, args, max(shared, threads * BYTES_PER_THREAD))
