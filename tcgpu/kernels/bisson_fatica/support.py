"""The triangles of each edge, its support, and updates of it when edges are removed (Bisson & Fatica).

Their Algorithm 4 and update_support in one, with additions of ours: coarse bits, lists of columns by length, a warp for
each neighbour; `algorithm_4` has it as printed. A triangle j < i < k is found once, at nonzero e = (i, j): column j
becomes bits, and each row k of column i is looked up in them: nonzero q = (k, i). `find_off` finds the third
nonzero, f = (k, j). (The paper keeps lower neighbours, and finds a triangle at its highest vertex.)

In round 0, each of the three gains 1 in `support`. Before a later round, the nonzeros to be removed are marked by a
negative support. The others lose 1 for each triangle in which one or more of the three are removed.

    thread        a thread per column, twelve of its rows at a time in registers
    warp          a warp per column, its bits in global memory
    block_shared  a block per column, its bits in shared memory
    block_global  a block per column, its bits in global memory

`find_off` needs no search: each word of bits stores the position of its first row, and popcount adds the offset.

Most look-ups find nothing. So `warp` and `block_global` also keep coarse bits in shared memory, one for 2^shift
neighbouring rows, and look up the exact bits only where a coarse bit is set. `block_shared` has coarse bits only, and
where one is set it reads the column itself. A short column needs few bits. So there are three launches: small blocks,
of which an SM holds many, for short columns, and larger blocks for longer columns.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.gpu_costs import BITMAP_EDGES
from tcgpu.kernels import ArrayPlan, launch, simulated
from tcgpu.kernels.device.warp import ALL_LANES, WARP, sum_of_warp

MOST_IN_REGISTERS = 12  # rows of a column that a thread has in registers
MAX_INT32 = 2**31 - 1

# `state`: the length of each list of columns, how many of its columns are taken, and what `k_truss` stores of a round
LISTS = 3
TAKEN, WEAK, LOWEST, ROUND, STATE_SIZE = LISTS, 2 * LISTS, 2 * LISTS + 1, 2 * LISTS + 2, 2 * LISTS + 3

BYTES_PER_WORD = 8  # of bits: four of the bits, four of the position of its first row
# The launches of a method: for columns of at most this many rows, the threads of a block and the words of bits in
# shared memory, for each warp with `warp`, else for each block
SHAPES = {
    "thread": ((MAX_INT32, 128, 0),),
    "warp": ((MAX_INT32, 256, 256),),
    "block_shared": ((64, 64, 128), (1024, 256, 2048), (MAX_INT32, 768, 12288)),
    "block_global": ((MAX_INT32, 256, 4096),),
}
# microseconds in the simulator for a nonzero, for a column (times the threads that work on it), for a row
SIMULATED_US = {
    "thread": (1.2, 0, 3.1),
    "warp": (100, 4.1, 30),
    "block_shared": (270, 8.9, 16),
    "block_global": (120, 26, 24),
}
THREADS, BLOCKS = 256, 1024  # of the kernels that do little for each column or nonzero


class Columns(NamedTuple):
    """The remaining graph: column j has the `length[j]` rows from `row_idx[col_ptr[j]]` on."""

    col_ptr: np.ndarray
    length: np.ndarray
    row_idx: np.ndarray
    support: np.ndarray  # of each nonzero; negative if it is removed
    weak: np.ndarray  # of each column: the last round in which one of its nonzeros was removed
    round: int  # 0: count all triangles; later: those that lose an edge


class Bits(NamedTuple):
    """A column as bits, from words[first] on; each bit stands for 2^shift rows.

    The position of the first row of words[k] is words[k + positions]; positions is 0 if they are not stored.
    """

    words: np.ndarray
    first: int
    shift: int
    positions: int


# ----------------------------------------------------------------------------------------------------- device functions


@cuda.jit(device=True)
def update_triangle(support, e, q, f, round):
    """Update the supports of nonzeros q and f for one triangle; returns what to add to that of e."""
    if round == 0:
        cuda.atomic.add(support, q, 1)
        cuda.atomic.add(support, f, 1)
        return int32(1)
    # other threads add to these supports now, but that changes no sign: of a nonzero that stays, 0 or more are left
    e_stays, q_stays, f_stays = support[e] >= 0, support[q] >= 0, support[f] >= 0
    if e_stays and q_stays and f_stays:
        return int32(0)
    if q_stays:
        cuda.atomic.add(support, q, -1)
    if f_stays:
        cuda.atomic.add(support, f, -1)
    return int32(-1) if e_stays else int32(0)


@cuda.jit(device=True)
def remaining_rows(col_ptr, length, j):
    """Where the rows of column j begin and end."""
    begin = uint32(col_ptr[j])
    return begin, begin + uint32(length[j])


@cuda.jit(device=True)
def word_and_bit(bits, row):
    """The position of the word that has the bit of a row, and that bit."""
    bit = uint32(row) >> bits.shift
    return bits.first + (bit >> 5), 1 << (bit & 31)


@cuda.jit(device=True)
def set_bits(row_idx, begin, end, thread, threads, bits):
    """Set the bits of a column's rows, and store the position of each word's first row if `bits` has room for it."""
    p = begin + thread
    while p < end:
        word, bit = word_and_bit(bits, row_idx[p])
        cuda.atomic.or_(bits.words, word, bit)
        if bits.positions > 0:
            if p == begin or word_and_bit(bits, row_idx[p - 1])[0] != word:
                bits.words[word + bits.positions] = p
        p += threads


@cuda.jit(device=True)
def clear_bits(row_idx, begin, end, thread, threads, bits):
    """Clear the words that have the bits of a column's rows."""
    p = begin + thread
    while p < end:
        bits.words[word_and_bit(bits, row_idx[p])[0]] = 0
        p += threads


@cuda.jit(device=True)
def is_set(bits, row):
    """1 if the bit of a row is set, else 0."""
    word, bit = word_and_bit(bits, row)
    return uint32(bits.words[word] & bit != 0)


@cuda.jit(device=True)
def find_off(row_idx, row, end, bits):
    """The position of a row in the column of the bits, which ends before `end`; `end` if it has no such row."""
    word, bit = word_and_bit(bits, row)
    set_in_word = bits.words[word]
    if set_in_word & bit == 0:
        return end
    below = set_in_word & bit - 1
    f = bits.words[word + bits.positions] + cuda.popc(below)
    if bits.shift > 0:  # rows share bits: the row is at this position or later
        while f < end and row_idx[f] < row:
            f += 1
        if f < end and row_idx[f] != row:
            f = end
    return f


@cuda.jit(device=True)
def look_up_rows(graph, e, q, q_end, stride, end, coarse, bits):
    """Look up the rows q, q + stride, ... of column i in the bits of column j; returns what nonzero e gains.

    Four loads are in flight at a time.
    """
    row_idx, gain = graph.row_idx, int32(0)
    while q < q_end:
        last = q_end - 1
        q1, q2, q3 = q + stride, q + 2 * stride, q + 3 * stride
        row0, row1 = row_idx[q], row_idx[min(q1, last)]
        row2, row3 = row_idx[min(q2, last)], row_idx[min(q3, last)]
        found = is_set(coarse, row0)
        found |= (is_set(coarse, row1) & (q1 < q_end)) << 1
        found |= (is_set(coarse, row2) & (q2 < q_end)) << 2
        found |= (is_set(coarse, row3) & (q3 < q_end)) << 3
        while found:
            which = cuda.ffs(found) - 1
            found &= found - 1
            at = q + which * stride
            f = find_off(row_idx, row_idx[at], end, bits)
            if f < end:
                gain += update_triangle(graph.support, e, at, f, graph.round)
        q += 4 * stride
    return gain


@cuda.jit(device=True)
def intersect_columns(graph, j, begin, end, warp, warps, coarse, bits):
    """Intersect column j, whose bits are set, with the column i of each of its nonzeros, one after the other.

    Each warp takes every `warps`-th nonzero; where there are more warps than nonzeros, several share one. A warp reads
    the bounds of 32 columns at a time, one a lane. All lanes of the warp must call it. After round 0, a column i is
    skipped unless it or column j has a removed nonzero.
    """
    lane = cuda.laneid
    stop = end - 1  # the column of the last nonzero has no row in common with column j
    share = max(1, warps // (stop - begin))
    groups = warps // share
    group = warp // share
    stride = share * 32
    first = warp % share * 32 + lane
    chunk = begin + group if group < groups else stop
    all_columns = graph.round == 0 or graph.weak[j] == graph.round
    while chunk < stop:
        own = chunk + lane * groups
        own_begin, own_end = int32(0), int32(0)
        if own < stop:
            i = uint32(graph.row_idx[own])
            if all_columns or graph.weak[i] == graph.round:
                own_begin = int32(graph.col_ptr[i])
                own_end = own_begin + graph.length[i]
        for turn in range(min(32, (stop - chunk + groups - 1) // groups)):
            q = uint32(cuda.shfl_sync(ALL_LANES, own_begin, turn))
            q_end = uint32(cuda.shfl_sync(ALL_LANES, own_end, turn))
            if q < q_end:
                e = chunk + turn * groups
                gain = sum_of_warp(look_up_rows(graph, e, q + first, q_end, stride, end, coarse, bits))
                if lane == 0 and gain != 0:
                    cuda.atomic.add(graph.support, e, gain)
        chunk += 32 * groups


@cuda.jit(device=True)
def synchronize(by_warp):
    """Wait for the other threads of the worker, a warp or a block."""
    if by_warp:
        cuda.syncwarp()
    else:
        cuda.syncthreads()


@cuda.jit(device=True)
def walk_columns(graph, columns, state, which, coarse, bits, words, separate, by_warp):
    """A worker (a warp or a block) takes columns of list `which` off a queue, sets their bits and intersects them.

    coarse: `words` words in shared memory. bits: the same words, or, if `separate`, others in global memory.
    """
    taken = cuda.shared.array(WARP, int32)  # the next column of each worker of the block
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    worker, warp, warps = uint32(0), thread // WARP, threads // WARP
    if by_warp:
        worker, warp, warps, thread, threads = warp, uint32(0), uint32(1), cuda.laneid, uint32(WARP)
    word = thread
    while word < words:
        coarse.words[coarse.first + word] = 0
        word += threads
    if thread == 0:
        taken[worker] = cuda.atomic.add(state, TAKEN + which, 1)
    synchronize(by_warp)
    at = taken[worker]
    while at < state[which]:
        j = columns[which * graph.length.size + at]
        begin, end = remaining_rows(graph.col_ptr, graph.length, j)
        set_bits(graph.row_idx, begin, end, thread, threads, coarse)
        if separate:
            set_bits(graph.row_idx, begin, end, thread, threads, bits)
        synchronize(by_warp)
        if thread == 0:  # take the next column now, so that no thread waits for the atomic addition later
            taken[worker] = cuda.atomic.add(state, TAKEN + which, 1)
        intersect_columns(graph, j, begin, end, warp, warps, coarse, bits)
        synchronize(by_warp)
        at = taken[worker]
        clear_bits(graph.row_idx, begin, end, thread, threads, coarse)
        if separate:
            clear_bits(graph.row_idx, begin, end, thread, threads, bits)
        synchronize(by_warp)


# ---------------------------------------------------------------------------------------------------------- the kernels

ARRAYS = "int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]"


@kernel(f"void({ARRAYS})")
def support_thread(col_ptr, length, row_idx, support, weak, columns, state):
    """A thread per column j: twelve of its rows in registers, compared with each row of each column i."""
    round = state[ROUND]
    at = cuda.grid(1)
    while at < state[0]:
        j = columns[at]
        begin, end = remaining_rows(col_ptr, length, j)
        all_columns = round == 0 or weak[j] == round
        first = begin
        while first < end:  # one iteration, unless the column is long
            rows = cuda.local.array(MOST_IN_REGISTERS, int32)
            for k in range(uint32(MOST_IN_REGISTERS)):
                rows[k] = row_idx[first + k] if first + k < end else int32(-1)
            highest = row_idx[min(end, first + MOST_IN_REGISTERS) - 1]
            e = begin
            i = row_idx[e]
            while i < highest:
                if all_columns or weak[i] == round:
                    q, q_end = remaining_rows(col_ptr, length, i)
                    gain = int32(0)
                    while q < q_end:
                        row = row_idx[q]
                        f = end
                        for k in range(uint32(MOST_IN_REGISTERS)):
                            f = first + k if rows[k] == row else f
                        if f < end:
                            gain += update_triangle(support, e, q, f, round)
                        q = q + 1 if row < highest else q_end
                    if gain != 0:
                        cuda.atomic.add(support, e, gain)
                e += 1
                i = row_idx[e]
            first += MOST_IN_REGISTERS
        at += cuda.gridsize(1)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32, uint32)")
def support_warp(col_ptr, length, row_idx, support, weak, columns, state, bitmap, bitmap_words, words, shift):
    """A warp per column: exact bits in global memory, coarse ones in shared memory."""
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    coarse = Bits(cuda.shared.array(0, uint32), cuda.threadIdx.x // WARP * words, shift, uint32(0))
    bits = Bits(bitmap, uint32(cuda.grid(1) // 32) * 2 * bitmap_words, uint32(0), bitmap_words)
    walk_columns(graph, columns, state, 0, coarse, bits, words, True, True)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32, uint32)")
def support_block_global(col_ptr, length, row_idx, support, weak, columns, state, bitmap, bitmap_words, words, shift):
    """A block per column: exact bits in global memory, coarse ones in shared memory."""
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    coarse = Bits(cuda.shared.array(0, uint32), uint32(0), shift, uint32(0))
    bits = Bits(bitmap, cuda.blockIdx.x * 2 * bitmap_words, uint32(0), bitmap_words)
    walk_columns(graph, columns, state, 0, coarse, bits, words, True, False)


@kernel(f"void({ARRAYS}, uint32, uint32, uint32)")
def support_block_shared(col_ptr, length, row_idx, support, weak, columns, state, which, words, shift):
    """A block per column of list `which`: coarse bits in shared memory."""
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    bits = Bits(cuda.shared.array(0, uint32), uint32(0), shift, words)
    walk_columns(graph, columns, state, which, bits, bits, words, False, False)


@kernel("void(int64[::1], int32[::1])")
def measure_columns(col_ptr, length):
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        length[j] = col_ptr[j + 1] - col_ptr[j]


@kernel("void(int32[::1], int32)")
def begin_round(state, round):
    for k in range(cuda.grid(1), state.size, cuda.gridsize(1)):
        state[k] = round if k == ROUND else MAX_INT32 if k == LOWEST else 0


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64)")
def list_columns(length, affected, columns, state, least, short, middling):
    """List the columns of `least` rows whose supports may change: of up to `short`, up to `middling`, more rows."""
    round = state[ROUND]
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        rows = length[j]
        if rows >= least and (round == 0 or affected[j] == round):
            which = 0 if rows <= short else 1 if rows <= middling else 2
            columns[which * length.size + cuda.atomic.add(state, which, 1)] = j


# ------------------------------------------------------------------------------------------------------------- the plan


def plan(graph, method=None, *, shapes=None, blocks=None):
    """The plan of every edge's support, int32 in the order of the nonzeros, by one of the methods in SHAPES.

    shapes: instead of those in SHAPES. blocks: the most blocks of a launch; by default, what suits the device.
    """
    if graph.m > MAX_INT32:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MAX_INT32:,}")
    method = method or fastest(graph)
    shapes, n = shapes or SHAPES[method], graph.n
    walks, bitmap = [], 0
    for which, (_, threads, words) in enumerate(shapes):
        step, bitmap = _walk(graph, method, which, threads, words, blocks)
        walks.append(step)
    short, middling = (*(rows for rows, _, _ in shapes), MAX_INT32)[:2]
    return ArrayPlan(
        method=f"support by {method}",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={
            "length": (n, np.int32, None),
            "support": (graph.m, np.int32, 0),
            "weak": (n, np.int32, 0),
            "affected": (n, np.int32, 0),
            "columns": (len(walks) * n, np.int32, None),
            "state": (STATE_SIZE, np.int32, 0),
            "bitmap": (bitmap, np.uint32, 0),
        },
        setup=[launch(measure_columns, n, THREADS, BLOCKS)],
        steps=[
            launch(begin_round, STATE_SIZE, WARP, round=0),
            launch(list_columns, n, THREADS, BLOCKS, least=2, short=short, middling=middling),
            *walks,
        ],
        work=_simulated_work(graph, method, walks),
    )


def are_bitmaps_faster(graph):
    """Whether the bitmaps are faster than `adaptive`, by the graph's size."""
    return BITMAP_EDGES[0] < graph.m <= BITMAP_EDGES[1]


def fastest(graph):
    """The fastest of the methods in SHAPES."""
    return "thread" if graph.max_column <= MOST_IN_REGISTERS else "block_shared"


def _walk(graph, method, which, threads, words, blocks):
    """The launch for the columns of list `which`, and how many words of bitmaps it needs in global memory."""
    n, facts = graph.n, runtime.facts()
    threads = min(threads, facts.threads_per_block)
    if method == "thread":
        return launch(support_thread, n, threads, blocks or MAX_INT32), 0
    if method == "block_shared":
        words, shift = _coarse(n, min(words, (facts.shared_per_block - 4 * WARP) // BYTES_PER_WORD))
        shared = BYTES_PER_WORD * words
        resident = max(1, min(facts.threads_per_sm // threads, facts.shared_per_sm // (shared + 1024)))
        blocks, known = blocks or facts.sms * resident, {"which": which, "words": words, "shift": shift}
        return launch(support_block_shared, n * threads, threads, blocks, shared, **known), 0
    columns = threads // WARP if method == "warp" else 1  # on which a block works at a time
    running = (blocks or facts.sms * max(1, facts.threads_per_sm // threads)) * columns
    bitmap_words = max(1, -(-n // 32))
    others = 4 * (8 * n + 7 * graph.m)  # bytes: the rest of a k-truss
    fit = min((runtime.memory_free() - others) // (bitmap_words * BYTES_PER_WORD), (2**32 - 1) // (2 * bitmap_words))
    bitmaps = max(1, min(running, fit, n))
    if method == "warp":
        columns = min(columns, bitmaps)
        threads = columns * WARP
    words, shift = _coarse(n, words)
    blocks, known = bitmaps // columns, {"bitmap_words": bitmap_words, "words": words, "shift": shift}
    kernel = support_warp if method == "warp" else support_block_global
    step = launch(kernel, blocks * threads, threads, blocks, 4 * words * columns, **known)
    return step, blocks * columns * 2 * bitmap_words


def _coarse(n, most):
    """The least shift with which at most `most` words have a bit for every 2^shift of n rows: `(words, shift)`."""
    shift = max(0, (max(n, 1) - 1).bit_length() - (32 * most).bit_length() + 1)
    return ((max(n, 1) - 1) >> shift) // 32 + 1, shift


def _simulated_work(graph, method, walks):
    """Microseconds in the simulator."""
    nonzero_us, column_us, row_us = SIMULATED_US[method]
    if method == "thread" and runtime.estimates_time:  # it reads each column i once for every twelve rows of j
        nonzero_us *= float((graph.column_lengths[graph.col_of] / MOST_IN_REGISTERS + 1).mean()) if graph.m else 1
    columns = simulated.column_rounds(graph, passing=0) * walks[0].threads
    return simulated.work(graph, nonzero_us * graph.m + column_us * columns, row_us)
