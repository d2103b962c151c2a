"""`adaptive`: every vertex in the way that suits it. Ours, of the ideas of all four papers and a few more.

Contract: the sum over all nonzeros (i, j) of L of the rows that columns i and j share, each counted by exactly one of
the kernels below. Any knobs give the same count.

Skewed graphs come in degree order: the last vertices are the ones with most neighbours. There the triangle j < i < k is
found at column j's nonzero i, which asks for the rows k past i of column j that column i has, too. A row among the last
65,535 vertices is *near the end* and has a number of 16 bits, its near number; the last 8,192 vertices are *hubs*; a
column with many near rows is *heavy*.

    hub_kernel      i a hub, column j heavy   a warp per heavy column: 64 hubs at a time, word AND word
    crowd_kernel    k near, i in many columns a block per i: column i as bytes in shared memory, looked up for what
                                              follows i in each column j that holds it, 16 bits a look-up
    window_kernel   k near, all other i       the same with bits, and with smaller blocks
    far_kernel      k not near, column short  a thread per nonzero: two pointers
    hash_kernel     k not near, column long   a warp per column j: its rows in a hash table, looked up for each column i

Flat graphs stay in their natural order, where neighbours have close numbers. A column is *local* if it is long and all
of its rows are within a few thousand of it.

    local_kernel    column j local            a warp per column: bits relative to the column, word AND word
    merge_kernel    all others                a thread per nonzero: two pointers

These two need to know, for each vertex i, the columns that hold it: its *in-edges*, which `setup` lists. Asked
this way round, degree order costs the fewest look-ups: d (d - 1) / 2 for a column of length d.
"""

import numpy as np

from tcgpu.declarations import Knob, Method
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint8, uint32, uint64
from tcgpu.kernels import Plan, Scan, check_deal, check_positions, device_graph, orientation, simulated
from tcgpu.kernels.adaptive import setup
from tcgpu.kernels.adaptive.setup import (
    ALL_LANES,
    BITS,
    EMPTY,
    GOLDEN,
    HUB_0,
    HUBS,
    LENGTH_BITS,
    LENGTH_MASK,
    NEAR,
    NO_CROWD,
    ROW,
    TABLE,
    TASK,
    dealt_thread,
    launch,
    local_words,
    tasks_created,
    tasks_listed,
)
from tcgpu.kernels.adaptive.tally import support_plan, triangles_plan
from tcgpu.kernels.device import columns
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to

__all__ = ["plan", "prepare", "support_plan", "triangles_plan"]


@kernel("void(uint16[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64, int64[::1])")
def hub_kernel(near, near_ptr, heavy, listed, queue, rows, lowest, total):
    """A warp per heavy column j: for each hub i of it, from near number `lowest` on, row i of bits AND column j's.

    Lane l holds words l, l + 32, l + 64 and l + 96 of column j's bits. A hub's row has bits only past the hub, so the
    later a hub, the fewer of its words count: the last 2,048 hubs, which most columns know, need one word a lane.
    Warps take columns off a queue, the next one while they are at work on the last.
    """
    bits32 = cuda.shared.array(0, uint32)
    bits64 = cuda.shared.array(0, uint64)  # the same memory
    lane = uint32(cuda.threadIdx.x & 31)
    warp = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(ROW))
    own = uint32(warp + lane)
    count = uint64(0)
    following = int64(0)
    if lane == 0:
        following = cuda.atomic.add(queue, 0, 1)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < listed[0]:
        if lane == 0:
            following = cuda.atomic.add(queue, 0, 1)
        j = heavy[task]
        begin, end = uint32(4 * near_ptr[j]), uint32(4 * near_ptr[j + 1])
        for k in range(4):
            bits64[uint32(own + uint32(32 * k))] = uint64(0)
        cuda.syncwarp()
        first, hubs = end, 32
        while hubs == 32:  # the hubs are the last rows: all of a warp's lanes found one, so there may be more
            p = uint32(first - uint32(1) - lane)
            x = uint32(0)
            if uint32(lane) < uint32(first - begin):
                x = uint32(near[p])
            if x >= uint32(lowest):
                h = uint32(x - uint32(HUB_0))
                word = uint32(uint32(warp + warp) + (h >> uint32(5)))
                cuda.atomic.or_(bits32, word, uint32(uint32(1) << (h & uint32(31))))
            hubs = cuda.popc(uint32(cuda.ballot_sync(ALL_LANES, x >= uint32(lowest))))
            first = uint32(first - uint32(hubs))
        cuda.syncwarp()
        own0, own1 = bits64[own], bits64[uint32(own + uint32(32))]
        own2, own3 = bits64[uint32(own + uint32(64))], bits64[uint32(own + uint32(96))]
        p = first
        while p < end:  # hubs with up to four words a lane
            x = uint32(near[p])
            if x >= uint32(HUB_0 + 6144):
                break
            row = uint32(uint32(x - uint32(HUB_0)) * uint32(ROW) + lane)
            found = uint32(cuda.popc(own3 & rows[uint32(row + uint32(96))]))
            found = uint32(found + uint32(cuda.popc(own2 & rows[uint32(row + uint32(64))])))
            if x < uint32(HUB_0 + 4096):
                found = uint32(found + uint32(cuda.popc(own1 & rows[uint32(row + uint32(32))])))
                found = uint32(found + uint32(cuda.popc(own0 & rows[row])))
            count += uint64(found)
            p = uint32(p + uint32(1))
        row = uint32(uint32(96) + lane)
        while uint32(p + uint32(4)) <= end:  # hubs with one: four at a time, so that four loads are under way
            a = rows[uint32(uint32(uint32(near[p]) - uint32(HUB_0)) * uint32(ROW) + row)]
            b = rows[uint32(uint32(uint32(near[uint32(p + uint32(1))]) - uint32(HUB_0)) * uint32(ROW) + row)]
            c = rows[uint32(uint32(uint32(near[uint32(p + uint32(2))]) - uint32(HUB_0)) * uint32(ROW) + row)]
            d = rows[uint32(uint32(uint32(near[uint32(p + uint32(3))]) - uint32(HUB_0)) * uint32(ROW) + row)]
            found = uint32(uint32(cuda.popc(own3 & a)) + uint32(cuda.popc(own3 & b)))
            found = uint32(found + uint32(cuda.popc(own3 & c)) + uint32(cuda.popc(own3 & d)))
            count += uint64(found)
            p = uint32(p + uint32(4))
        while p < end:
            a = rows[uint32(uint32(uint32(near[p]) - uint32(HUB_0)) * uint32(ROW) + row)]
            count += uint64(cuda.popc(own3 & a))
            p = uint32(p + uint32(1))
        task = cuda.shfl_sync(ALL_LANES, following, 0)
    add_block_to(total, int64(count))


@cuda.jit(device=True)
def bytes_set(there, four):
    """How many of four near numbers, 16 bits each, have a byte that is 1."""
    low, high = uint32(four), uint32(four >> uint64(32))
    a = uint32(there[low & uint32(NEAR)]) + uint32(there[low >> uint32(16)])
    b = uint32(there[high & uint32(NEAR)]) + uint32(there[high >> uint32(16)])
    return uint32(a + b)


@kernel("void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], int64, int64[::1])")
def crowd_kernel(near, quads, columns, pieces, in_edges, task_ptr, lanes, total):
    """A block per task: the near rows of a column as bytes, looked up for the pieces that its many in-edges name.

    Near numbers are read four at a time. What a piece holds too much, at its front, are pads (0) and rows up to i
    itself: column i has none of them. So there is no mask and no branch around a look-up. `lanes` share a piece, each
    with two loads under way. A byte a row costs more memory than a bit, and half the instructions.
    """
    there = cuda.shared.array(0, uint8)
    words = cuda.shared.array(0, uint64)  # the same memory
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    lanes = uint32(lanes)
    group, seat, groups = uint32(thread // lanes), uint32(thread % lanes), uint32(threads // lanes)
    k = thread
    while k < uint32((NEAR + 1) // 8):
        words[k] = uint64(0)
        k = uint32(k + threads)
    cuda.syncthreads()
    count = int64(0)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        column, piece = columns[task], pieces[task]
        begin = uint32(uint32(column >> uint64(LENGTH_BITS)) * uint32(4))
        end = uint32(begin + uint32(column & uint64(LENGTH_MASK)) * uint32(4))
        p = uint32(begin + thread)
        while p < end:
            x = uint32(near[p])
            if x != 0:
                there[x] = 1
            p = uint32(p + threads)
        i = uint32(piece >> uint64(LENGTH_BITS))
        i_end = uint32(i + uint32(piece & uint64(LENGTH_MASK)))
        i = uint32(i + group)
        cuda.syncthreads()
        found = uint32(0)
        while i < i_end and group < groups:
            other = in_edges[i]
            q = uint32(other >> uint64(LENGTH_BITS))
            q_end = uint32(q + uint32(other & uint64(LENGTH_MASK)))
            q = uint32(q + seat)
            while q < q_end:
                r = uint32(q + lanes)
                one, two = quads[q], uint64(0)
                if r < q_end:
                    two = quads[r]
                found = uint32(found + bytes_set(there, one))
                found = uint32(found + bytes_set(there, two))
                q = uint32(r + lanes)
            i = uint32(i + groups)
        count += int64(found)
        cuda.syncthreads()
        p = uint32(begin + thread)
        while p < end:
            there[uint32(near[p])] = 0
            p = uint32(p + threads)
        cuda.syncthreads()
        task -= cuda.gridDim.x
    add_block_to(total, count)


@cuda.jit(device=True)
def bits_set(bits, four):
    """How many of four near numbers, 16 bits each, are set among the bits."""
    low, high = uint32(four), uint32(four >> uint64(32))
    a = bits[(low >> uint32(5)) & uint32(2047)] >> (low & uint32(31))
    b = bits[low >> uint32(21)] >> ((low >> uint32(16)) & uint32(31))
    c = bits[(high >> uint32(5)) & uint32(2047)] >> (high & uint32(31))
    d = bits[high >> uint32(21)] >> ((high >> uint32(16)) & uint32(31))
    return uint32((a & uint32(1)) + (b & uint32(1)) + (c & uint32(1)) + (d & uint32(1)))


@kernel("void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], int64, int64[::1])")
def window_kernel(near, quads, columns, pieces, in_edges, task_ptr, lanes, total):
    """As crowd_kernel, for few in-edges: bits instead of bytes, so that many small blocks have their own."""
    bits = cuda.shared.array(0, uint32)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    lanes = uint32(lanes)
    group, seat, groups = uint32(thread // lanes), uint32(thread % lanes), uint32(threads // lanes)
    k = thread
    while k < uint32(BITS):
        bits[k] = uint32(0)
        k = uint32(k + threads)
    cuda.syncthreads()
    count = int64(0)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        column, piece = columns[task], pieces[task]
        begin = uint32(uint32(column >> uint64(LENGTH_BITS)) * uint32(4))
        end = uint32(begin + uint32(column & uint64(LENGTH_MASK)) * uint32(4))
        p = uint32(begin + thread)
        while p < end:
            x = uint32(near[p])
            if x != 0:
                cuda.atomic.or_(bits, x >> uint32(5), uint32(uint32(1) << (x & uint32(31))))
            p = uint32(p + threads)
        i = uint32(piece >> uint64(LENGTH_BITS))
        i_end = uint32(i + uint32(piece & uint64(LENGTH_MASK)))
        i = uint32(i + group)
        cuda.syncthreads()
        found = uint32(0)
        while i < i_end and group < groups:
            other = in_edges[i]
            q = uint32(other >> uint64(LENGTH_BITS))
            q_end = uint32(q + uint32(other & uint64(LENGTH_MASK)))
            q = uint32(q + seat)
            while q < q_end:
                found = uint32(found + bits_set(bits, quads[q]))
                q = uint32(q + lanes)
            i = uint32(i + groups)
        count += int64(found)
        cuda.syncthreads()
        p = uint32(begin + thread)
        while p < end:
            bits[uint32(near[p]) >> uint32(5)] = uint32(0)
            p = uint32(p + threads)
        cuda.syncthreads()
        task -= cuda.gridDim.x
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64[::1])")
def merge_kernel(col_ptr, row_idx, col_of, short, words, index, of, total):
    """A thread per nonzero (i, j): two pointers along columns i and j, unless column j is local.

    All pointers are asked for before any is looked at: what a mesh waits for is their way through memory.
    """
    count = int64(0)
    e = dealt_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j + 1]
        if words > 0 and p_end - col_ptr[j] >= short and (row_idx[p_end - 1] >> 6) - (j >> 6) < words:
            p_end = int64(0)
        count += common_values(row_idx, e + 1, p_end, row_idx, col_ptr[i], col_ptr[i + 1])
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64[::1])")
def far_kernel(col_ptr, row_idx, col_of, far, short, index, of, total):
    """A thread per nonzero (i, j): two pointers along the far rows of columns i and j, if j has fewer than `short`.

    Most nonzeros are near and have nothing to do: only the others ask for the pointers of column i.
    """
    count = int64(0)
    e = dealt_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        length = far[j]
        p_end = col_ptr[j] + length
        if e + 1 < p_end and length < short:
            q = col_ptr[i]
            count += common_values(row_idx, e + 1, p_end, row_idx, q, q + far[i])
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64, int64, int64[::1])")
def hash_kernel(col_ptr, row_idx, far, long, listed, most, lanes, total):
    """A block per listed column j: its first far[j] rows in a hash table, looked up for those of each column i in it.

    The table, in shared memory, takes `most` rows at a time. `lanes` threads share a column i.
    """
    table = cuda.shared.array(0, int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    group, seat, groups = thread // lanes, thread % lanes, threads // lanes
    count = int64(0)
    task = cuda.blockIdx.x
    while task < listed[1]:
        j = long[task]
        end = col_ptr[j] + far[j]
        first = col_ptr[j]
        while first < end:
            length = min(end - first, most)
            size, shift = 64, 26
            while size < 2 * length:
                size, shift = 2 * size, shift - 1
            k = thread
            while k < size:
                table[k] = EMPTY
                k += threads
            cuda.syncthreads()
            p = first + thread
            while p < first + length:
                x = row_idx[p]
                k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(shift)
                while cuda.atomic.cas(table, k, EMPTY, x) != EMPTY:
                    k = (k + uint32(1)) & uint32(size - 1)
                p += threads
            cuda.syncthreads()
            e = col_ptr[j] + group if group < groups else end
            while e < end:
                i = row_idx[e]
                q, q_end = col_ptr[i] + seat, col_ptr[i] + far[i]
                while q < q_end:
                    x = row_idx[q]
                    k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(shift)
                    y = table[k]
                    while y != EMPTY and y != x:
                        k = (k + uint32(1)) & uint32(size - 1)
                        y = table[k]
                    count += y == x
                    q += lanes
                e += groups
            cuda.syncthreads()
            first += length
        task += cuda.gridDim.x
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int64[::1])")
def local_kernel(col_ptr, row_idx, rows, words, short, index, of, total):
    """A warp per local column j: the words of its row of bits AND those of each column i in it.

    Row v of bits has `words` words and begins at vertex v rounded down to a multiple of 64, so that words of two rows
    lie one over the other. A lane holds a word of row j and asks four columns at a time for theirs.
    """
    lane = uint32(cuda.threadIdx.x & 31)
    words = uint32(words)
    count = uint64(0)
    j = dealt_thread(index, of) >> 5
    while j < col_ptr.size - 1:
        begin, end = uint32(col_ptr[j]), uint32(col_ptr[j + 1])
        home = uint32(j >> 6)
        reach = uint32(0)
        if uint32(end - begin) >= uint32(short):
            reach = uint32(uint32(row_idx[uint32(end - uint32(1))] >> 6) - home + uint32(1))
        if uint32(0) < reach <= words:
            k = lane
            while uint32(k - lane) < reach:
                own = uint64(0)
                if k < reach:
                    own = rows[uint64(uint64(j) * uint64(words) + uint64(k))]
                e = begin
                while e < end:
                    found = uint32(0)
                    for s in range(4):
                        f = uint32(e + uint32(s))
                        i = uint32(j)
                        if f < end:
                            i = uint32(row_idx[f])
                        offset = uint32((i >> uint32(6)) - home)
                        other = uint64(0)
                        if offset <= k < reach and i != uint32(j):
                            other = rows[uint64(uint64(i) * uint64(words) + uint64(uint32(k - offset)))]
                        found = uint32(found + uint32(cuda.popc(own & other)))
                    count += uint64(found)
                    e = uint32(e + uint32(4))
                k = uint32(k + uint32(32))
        j += (cuda.gridsize(1) >> 5) * of
    add_block_to(total, int64(count))


# What a count of raw edges in degree order launches, in this order. A process that is the first to do so has them
# compiled in other processes: one after the other they take five seconds.
BY_DEGREE = (
    orientation.count_occurrences,
    orientation.pack_occurrences,
    orientation.number_vertices,
    orientation.pack_edges,
    orientation.mark_new,
    orientation.unpack_new,
    columns.find_col_ptr,
    columns.fill_empty_columns,
    setup.measure_columns,
    setup.bound_in_edges,
    setup.lay_out,
    setup.count_tasks,
    setup.fill_tasks,
    setup.fill_hub_rows,
    hub_kernel,
    crowd_kernel,
    window_kernel,
    hash_kernel,
    far_kernel,
)


METHOD = Method(
    name="adaptive",
    source="ours",
    summary="for each vertex what suits it: rows of bits, windows, hash tables, merges; cleans on the GPU",
    order="auto",
    module=__name__,
    declared=(
        Knob("near", NEAR, "last vertices that have a 16-bit number", 0, NEAR),
        Knob("hubs", HUBS, "last vertices that are hubs", 0, HUBS),
        Knob("heavy", 64, "near rows from which on a column is heavy", 0, 2**30),
        Knob("crowd", 128, "in-edges from which on a vertex is for a block", 1, NO_CROWD),
        Knob("short", 32, "rows up to which a column is short", 2, 2**30),
        Knob("words", None, "words of 64 that a local column reaches over", 0, 1024),
    ),
)


def prepare(graph, order):
    """What `plan` takes, as `device_graph.prepare` makes it."""
    if order in ("auto", "degree"):
        runtime.compile_ahead(BY_DEGREE)
    return device_graph.prepare(graph, order)


@METHOD.planner
def plan(graph, *, near, hubs, heavy, crowd, short, words, deal=(0, 1)):
    """By degree, the classes that the graph's order was made for; in any other order, local columns and the rest.

    near, hubs: how many of the last vertices are near the end, how many are hubs; heavy: more near rows than that make
    a column heavy; crowd: so many in-edges make a vertex one for crowd_kernel; short: fewer far rows than that make a
    column short, fewer rows at all keep it from being local; words: how many words of 64 vertices a local column may
    reach over, 0 for no local columns, None for what suits the graph.

    deal: (index, of) counts one share of the triangles, number `index` of `of`. The shares add up to the whole, and
    take about as long as each other.
    """
    check_positions(graph)
    deal = check_deal(deal)
    if graph.order == "degree":
        return _by_degree(graph, near, min(hubs, near), heavy // 4, short, crowd, deal)
    words = local_words(graph, short) if words is None else words
    return _as_it_comes(graph, short, words, deal)


def _as_it_comes(graph, short, words, deal):
    args = ("col_ptr", "row_idx", "col_of", short, words, *deal, "total")
    merging = launch(merge_kernel, -(-graph.m // deal[1]), 64, args, most=16384)
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    work = simulated.work(graph, 3.8 * graph.m, row_us=1.0)
    if not words:
        return Plan(method="adaptive", copied=copied, created={}, steps=[merging], work=work)
    filling = ("row_idx", "col_of", words, "rows32")
    counting = ("col_ptr", "row_idx", "rows", words, short, *deal, "total")
    return Plan(
        method="adaptive",
        copied=copied,
        created={"rows": (graph.n * words, np.uint64, 0)},
        views={"rows32": ("rows", np.uint32)},
        steps=[
            launch(setup.fill_local_rows, graph.m, 256, filling),
            launch(local_kernel, 32 * -(-graph.n // deal[1]), 128, counting, most=8448),
            merging,
        ],
        work=work,
    )


def _by_degree(graph, near, hubs, heavy, short, crowd, deal):
    n, m = graph.n, graph.m
    base, zero, lowest = n - near, n - NEAR - 1, NEAR + 1 - hubs
    if NEAR + 1 + 1024 > runtime.facts().shared_per_block:  # it has no room for a byte for each near row
        crowd = NO_CROWD
    measuring = ("col_ptr", "row_idx", base, heavy, short, *deal, "far", "quad_count", "heavy", "long", "listed")
    laying = ("col_ptr", "row_idx", "col_of", "near_ptr", base, zero, heavy, lowest, *deal, "put", "near", "in_edges")
    hub_args = ("near", "near_ptr", "heavy", "listed", "queue", "rows", lowest, "total")
    far_args = ("col_ptr", "row_idx", "col_of", "far", short, *deal, "total")
    hash_args = ("col_ptr", "row_idx", "far", "long", "listed", TABLE, 8, "total")
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    occurrences = getattr(graph, "occurrences", None)
    if occurrences is None:
        in_edges, counting = m, launch(orientation.count_rows, m, 256, ("row_idx", "in_count"))
    else:
        copied["occurrences"] = occurrences
        in_edges = 2 * graph.records - m
        counting = launch(setup.bound_in_edges, n, 256, ("occurrences", "col_ptr", "in_count"))
    return Plan(
        method="adaptive",
        copied=copied,
        created={
            "far": (n, np.int32, None),
            "quad_count": (n, np.int32, None),
            "near_ptr": (n + 1, np.int32, None),
            "heavy": (n, np.int32, None),
            "long": (n, np.int32, None),
            "listed": (2, np.int64, 0),
            "queue": (1, np.int64, None),
            "quads": (m // 4 + min(n, m) + 1, np.uint64, 0),
            "in_count": (n, np.int32, 0),
            "in_ptr": (n + 1, np.int64, None),
            "put": (n + 1, np.int64, None),
            "in_edges": (in_edges, np.uint64, None),
            "rows": (HUBS * ROW, np.uint64, 0),
            **tasks_created("few", n, min(n, m)),
            **tasks_created("crowd", n, m // crowd + m // TASK + 1),
        },
        views={"near": ("quads", np.uint16), "rows32": ("rows", np.uint32)},
        setup=[
            launch(setup.measure_columns, n, 256, measuring),
            Scan("quad_count", "near_ptr"),
            counting,
            Scan("in_count", "in_ptr"),
            Scan("in_count", "put"),
            launch(setup.lay_out, m, 256, laying),
            *tasks_listed("few", n, 1, crowd),
            *tasks_listed("crowd", n, crowd, NO_CROWD),
        ],
        steps=[
            launch(setup.fill_hub_rows, 32 * min(hubs, n), 256, ("near", "near_ptr", hubs, "rows32", "queue")),
            launch(hub_kernel, 32 * n, 128, hub_args, most=4224, shared=4 * 8 * ROW),
            launch(crowd_kernel, 512 * (m // crowd), 512, _window_args("crowd"), 396, shared=NEAR + 1),
            launch(window_kernel, 96 * n, 96, _window_args("few"), most=11088, shared=4 * BITS),
            launch(hash_kernel, 64 * n, 64, hash_args, most=4224, shared=2 * 4 * TABLE),
            launch(far_kernel, -(-m // deal[1]), 64, far_args, most=16384),
        ],
        work=simulated.work(graph, 2800 * graph.n),
    )


def _window_args(kind):
    return ("near", "quads", f"{kind}_columns", f"{kind}_pieces", "in_edges", f"{kind}_ptr", 8, "total")
