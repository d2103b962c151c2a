"""How many triangles each edge is in, and what it loses when edges go: the four kernels of Bisson & Fatica.

Their Algorithm 4 and their update_support in one. Contract: a triangle j < i < k is found where column j, turned into
bits, meets column i, walked row by row: once, by who owns column j, the lowest of its vertices (the paper keeps lower
neighbours, and finds it by the highest). Its three edges are nonzeros, of which two are at hand, e = (i, j) and
q = (k, i), and the third, f = (k, j), is looked up. The first time each of the three gains 1 in `support`. In a later
round a nonzero that goes has a negative support, and each other nonzero of its triangles loses 1, once a triangle,
however many of the three go: who goes is settled before the round begins, and what stays cannot fall below 0.

    thread        a thread a column, twelve of its rows at a time in registers
    warp          a warp a column, its bits in global memory
    block_shared  a block a column, its bits in shared memory
    block_global  a block a column, its bits in global memory

`find_off`, where in column j a row lies, takes one step: beside each word of bits is kept the place of the word's first
row, and the bits below are counted.

A look-up in global memory takes long and mostly finds nothing. So `warp` and `block_global` keep coarse bits beside,
in shared memory, one for 2^shift neighbouring rows, and go on to the exact ones where these are set. `block_shared` has
no others: where a coarse bit is set, it looks at the column itself. Few bits are enough for a short column, so that it
runs three times: small blocks for short columns, of which a multiprocessor holds many, and a large one for those that
need it. Blocks and warps take columns off a queue, as they become free.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tcgpu.declarations import check_integer
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, Step, enough_blocks, simulated
from tcgpu.kernels.device.warp import ALL_LANES, WARP, sum_of_warp
from tcgpu.kernels.device_graph import SMALL

IN_REGISTERS = 12  # rows of a column that a thread has at hand
MOST_EDGES = 2**31 - 1

# `state`: how many columns each of three lists holds, how many of them are taken, and what a round is about
LISTS = 3
TAKEN, WEAK, LOWEST, ROUND, STATE = LISTS, 2 * LISTS, 2 * LISTS + 1, 2 * LISTS + 2, 2 * LISTS + 3
HIGHEST = 2**31 - 1

BYTES_PER_WORD = 8  # of bits: its own four, and the place of its first row
COARSE = 256, 4096  # words of coarse bits of a warp, of a block
# the three sizes of `block_shared`: columns up to so many rows, threads, words of bits
SIZES = ((64, 64, 128), (1024, 256, 2048), (HIGHEST, 768, 12288))


class Columns(NamedTuple):
    """What is left of a graph: column j has the `length[j]` rows from `row_idx[col_ptr[j]]` on."""

    col_ptr: np.ndarray
    length: np.ndarray
    row_idx: np.ndarray
    support: np.ndarray  # of each nonzero; below 0 if it goes
    weak: np.ndarray  # of each column, the last round in which one of its nonzeros went
    round: int  # 0 counts all triangles, a later one those that go


class Bits(NamedTuple):
    """A column as bits: from words[mine] on, each for 2^shift rows; `far` words on, the place of a word's first row."""

    words: np.ndarray
    mine: int
    shift: int
    far: int


# -------------------------------------------------------------------------------------------------- what all kernels do


@cuda.jit(device=True)
def settle(support, e, q, f, round):
    """One triangle: the nonzeros q and f gain or lose at once, what nonzero e does is returned."""
    if round == 0:
        cuda.atomic.add(support, q, 1)
        cuda.atomic.add(support, f, 1)
        return int32(1)
    e_stays, q_stays, f_stays = support[e] >= 0, support[q] >= 0, support[f] >= 0
    if e_stays and q_stays and f_stays:
        return int32(0)
    if q_stays:
        cuda.atomic.add(support, q, -1)
    if f_stays:
        cuda.atomic.add(support, f, -1)
    return int32(-1) if e_stays else int32(0)


@cuda.jit(device=True)
def bounds(col_ptr, length, j):
    """Where column j begins and ends."""
    begin = uint32(col_ptr[j])
    return begin, begin + uint32(length[j])


@cuda.jit(device=True)
def place_of(bits, row):
    """In which word a row has its bit, and that bit."""
    bit = uint32(row) >> bits.shift
    return bits.mine + (bit >> 5), 1 << (bit & 31)


@cuda.jit(device=True)
def set_bits(row_idx, begin, end, worker, workers, bits):
    """Set the bits of a column's rows, and note where each word's first row lies, if there is room for that."""
    p = begin + worker
    while p < end:
        word, own = place_of(bits, row_idx[p])
        cuda.atomic.or_(bits.words, word, own)
        if bits.far > 0:
            if p == begin or place_of(bits, row_idx[p - 1])[0] != word:
                bits.words[word + bits.far] = p
        p += workers


@cuda.jit(device=True)
def clear_bits(row_idx, begin, end, worker, workers, bits):
    p = begin + worker
    while p < end:
        bits.words[place_of(bits, row_idx[p])[0]] = 0
        p += workers


@cuda.jit(device=True)
def is_set(bits, row):
    word, own = place_of(bits, row)
    return uint32(bits.words[word] & own != 0)


@cuda.jit(device=True)
def find_off(row_idx, row, end, bits):
    """Where a row lies in the column of the bits, which ends before `end`; `end` if it is not there."""
    word, own = place_of(bits, row)
    set_in_word = bits.words[word]
    if set_in_word & own == 0:
        return end
    below = set_in_word & own - 1
    f = bits.words[word + bits.far] + cuda.popc(below)
    if bits.shift > 0:  # at least so many rows lie before it, and there may be some more
        while f < end and row_idx[f] < row:
            f += 1
        if f < end and row_idx[f] != row:
            f = end
    return f


@cuda.jit(device=True)
def walk(graph, e, q, q_end, stride, end, near, bits):
    """Meet a thread's share q, q + stride, ... of column i with the bits of column j; what nonzero e gains of it.

    Four rows are asked for at once: what takes time is to wait for them.
    """
    row_idx, gain = graph.row_idx, int32(0)
    while q < q_end:
        last = q_end - 1
        q1, q2, q3 = q + stride, q + 2 * stride, q + 3 * stride
        row0, row1 = row_idx[q], row_idx[min(q1, last)]
        row2, row3 = row_idx[min(q2, last)], row_idx[min(q3, last)]
        found = is_set(near, row0)
        found |= (is_set(near, row1) & (q1 < q_end)) << 1
        found |= (is_set(near, row2) & (q2 < q_end)) << 2
        found |= (is_set(near, row3) & (q3 < q_end)) << 3
        while found:
            which = cuda.ffs(found) - 1
            found &= found - 1
            at = q + which * stride
            f = find_off(row_idx, row_idx[at], end, bits)
            if f < end:
                gain += settle(graph.support, e, at, f, graph.round)
        q += 4 * stride
    return gain


@cuda.jit(device=True)
def meet(graph, j, begin, end, warp, warps, near, bits):
    """Meet column j, whose bits are set, with the column i of each of its nonzeros: a warp takes one after the other.

    Where there are more warps than nonzeros, several share one. A warp reads where 32 columns lie in one go, a lane
    each, and then walks them. All lanes of the warp must call it. In a round after the first, only a column that has
    a weak nonzero, or meets one that has, is walked.
    """
    lane = cuda.laneid
    stop = end - 1  # the last one's column has no row that column j has, too
    share = max(1, warps // (stop - begin))
    groups = warps // share
    group = warp // share
    stride = share * 32
    first = warp % share * 32 + lane
    chunk = begin + group if group < groups else stop
    any_way = graph.round == 0 or graph.weak[j] == graph.round
    while chunk < stop:
        own = chunk + lane * groups
        own_begin, own_end = int32(0), int32(0)
        if own < stop:
            i = uint32(graph.row_idx[own])
            if any_way or graph.weak[i] == graph.round:
                own_begin = int32(graph.col_ptr[i])
                own_end = own_begin + graph.length[i]
        for turn in range(min(32, (stop - chunk + groups - 1) // groups)):
            q = uint32(cuda.shfl_sync(ALL_LANES, own_begin, turn))
            q_end = uint32(cuda.shfl_sync(ALL_LANES, own_end, turn))
            if q < q_end:
                e = chunk + turn * groups
                gain = sum_of_warp(walk(graph, e, q + first, q_end, stride, end, near, bits))
                if lane == 0 and gain != 0:
                    cuda.atomic.add(graph.support, e, gain)
        chunk += 32 * groups


@cuda.jit(device=True)
def walk_columns(graph, columns, state, which, near, bits, words, apart):
    """A block takes columns off list `which`, one after the other, sets their bits and meets them.

    `near` has `words` words. `bits` are `apart`, or the same.
    """
    taken = cuda.shared.array(1, int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    for word in range(thread, words, threads):
        near.words[near.mine + word] = 0
    if thread == 0:
        taken[0] = cuda.atomic.add(state, TAKEN + which, 1)
    cuda.syncthreads()
    at = taken[0]
    while at < state[which]:
        j = columns[which * graph.length.size + at]
        begin, end = bounds(graph.col_ptr, graph.length, j)
        set_bits(graph.row_idx, begin, end, thread, threads, near)
        if apart:
            set_bits(graph.row_idx, begin, end, thread, threads, bits)
        cuda.syncthreads()
        if thread == 0:  # what comes next is asked for now: the answer is there when it is needed
            taken[0] = cuda.atomic.add(state, TAKEN + which, 1)
        meet(graph, j, begin, end, thread // 32, threads // 32, near, bits)
        cuda.syncthreads()
        at = taken[0]
        clear_bits(graph.row_idx, begin, end, thread, threads, near)
        if apart:
            clear_bits(graph.row_idx, begin, end, thread, threads, bits)
        cuda.syncthreads()


# --------------------------------------------------------------------------------------------------------- four kernels

ARRAYS = "int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]"


@kernel(f"void({ARRAYS})")
def support_thread(col_ptr, length, row_idx, support, weak, columns, state):
    round = state[ROUND]
    at = cuda.grid(1)
    while at < state[0]:
        j = columns[at]
        begin, end = bounds(col_ptr, length, j)
        any_way = round == 0 or weak[j] == round
        first = begin
        while first < end:  # once, unless the column is long
            rows = cuda.local.array(IN_REGISTERS, int32)
            for k in range(uint32(IN_REGISTERS)):
                rows[k] = row_idx[first + k] if first + k < end else int32(-1)
            highest = row_idx[min(end, first + IN_REGISTERS) - 1]
            e = begin
            i = row_idx[e]
            while i < highest:
                if any_way or weak[i] == round:
                    q, q_end = bounds(col_ptr, length, i)
                    gain = int32(0)
                    while q < q_end:
                        row = row_idx[q]
                        f = end
                        for k in range(uint32(IN_REGISTERS)):
                            f = first + k if rows[k] == row else f
                        if f < end:
                            gain += settle(support, e, q, f, round)
                        q = q + 1 if row < highest else q_end
                    if gain != 0:
                        cuda.atomic.add(support, e, gain)
                e += 1
                i = row_idx[e]
            first += IN_REGISTERS
        at += cuda.gridsize(1)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32, uint32)")
def support_warp(col_ptr, length, row_idx, support, weak, columns, state, bitmap, words, coarse, shift):
    shared = cuda.shared.array(0, uint32)
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    lane, lanes, warp = cuda.laneid, uint32(WARP), cuda.threadIdx.x // WARP
    near = Bits(shared, warp * coarse, shift, uint32(0))
    bits = Bits(bitmap, uint32(cuda.grid(1) // 32) * 2 * words, uint32(0), words)
    word = lane
    while word < coarse:
        shared[near.mine + word] = 0
        word += 32
    while True:
        at = int32(0)
        if lane == 0:
            at = cuda.atomic.add(state, TAKEN, 1)
        at = cuda.shfl_sync(ALL_LANES, at, 0)
        if at >= state[0]:
            break
        j = columns[at]
        begin, end = bounds(col_ptr, length, j)
        cuda.syncwarp()
        set_bits(row_idx, begin, end, lane, lanes, near)
        set_bits(row_idx, begin, end, lane, lanes, bits)
        cuda.syncwarp()
        meet(graph, j, begin, end, uint32(0), uint32(1), near, bits)
        cuda.syncwarp()
        clear_bits(row_idx, begin, end, lane, lanes, near)
        clear_bits(row_idx, begin, end, lane, lanes, bits)


@kernel(f"void({ARRAYS}, uint32, uint32, uint32)")
def support_block_shared(col_ptr, length, row_idx, support, weak, columns, state, which, words, shift):
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    bits = Bits(cuda.shared.array(0, uint32), uint32(0), shift, words)
    walk_columns(graph, columns, state, which, bits, bits, words, False)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32, uint32)")
def support_block_global(col_ptr, length, row_idx, support, weak, columns, state, bitmap, words, coarse, shift):
    graph = Columns(col_ptr, length, row_idx, support, weak, state[ROUND])
    near = Bits(cuda.shared.array(0, uint32), uint32(0), shift, uint32(0))
    bits = Bits(bitmap, cuda.blockIdx.x * 2 * words, uint32(0), words)
    walk_columns(graph, columns, state, 0, near, bits, coarse, True)


# ----------------------------------------------------------------------------------------- a round: who is to be walked


@kernel("void(int64[::1], int32[::1])")
def measure_columns(col_ptr, length):
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        length[j] = col_ptr[j + 1] - col_ptr[j]


@kernel("void(int32[::1], int32)")
def begin_round(state, round):
    for place in range(cuda.grid(1), state.size, cuda.gridsize(1)):
        state[place] = round if place == ROUND else HIGHEST if place == LOWEST else 0


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int64, int64)")
def list_columns(length, near, columns, state, short, middling):
    """Put the columns that may gain or lose into lists, by length: up to `short`, up to `middling`, longer."""
    round = state[ROUND]
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        rows = length[j]
        if rows >= 2 and (round == 0 or near[j] == round):
            which = 0 if rows <= short else 1 if rows <= middling else 2
            columns[which * length.size + cuda.atomic.add(state, which, 1)] = j


# ------------------------------------------------------------------------------------------------------------- launcher

THREADS, BLOCKS = 256, 1024  # of what goes over all columns or nonzeros
COMMON = ("col_ptr", "length", "row_idx", "support", "weak", "columns", "state")
MIDDLING = SMALL, 1 << 21  # edges: `adaptive` goes by degree from the first on; up to the second, that does not pay


@dataclass
class SupportPlan(ArrayPlan):
    """A plan whose result is the number of triangles of each edge: int32, one a nonzero, column after column.

    `listing` and `walks` are its launches that list columns, and that walk those of each list.
    """

    listing: Step | None = None
    walks: tuple = ()


def plan(graph, method=None, *, threads=None, blocks=None, **knobs):
    """The support of every edge by one of METHODS; without `threads` and `blocks`, as many as suit the device.

    knobs: `coarse`, words of coarse bits, of `warp` and `block_global`; `sizes` of `block_shared`, three as in SIZES.
    """
    if graph.m > MOST_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MOST_EDGES:,}")
    method = method or fastest(graph)
    limits, arrays, walks = METHODS[method](graph, threads, blocks, **knobs)
    n = graph.n
    listing = Step(list_columns, over(n), THREADS, ("length", "near", "columns", "state", *limits))
    return SupportPlan(
        method=f"support by {method}",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={
            "length": (n, np.int32, None),
            "support": (graph.m, np.int32, 0),
            "weak": (n, np.int32, 0),
            "near": (n, np.int32, 0),
            "columns": (len(walks) * n, np.int32, None),
            "state": (STATE, np.int32, 0),
            **arrays,
        },
        setup=[Step(measure_columns, over(n), THREADS, ("col_ptr", "length"))],
        steps=[Step(begin_round, 1, WARP, ("state", 0)), listing, *walks],
        listing=listing,
        walks=tuple(walks),
        work=_simulated_work(graph, method, walks),
    )


def _simulated_work(graph, method, walks):
    """Microseconds in the simulator: of the lanes that a nonzero takes, the threads that a column takes, the rows."""
    nonzero_us, column_us, row_us = SIMULATED_US[method]
    if method == "thread" and runtime.engine() == "sim":  # a column is gone over once for each twelve of its rows
        nonzero_us *= float((graph.column_lengths[graph.col_of] / IN_REGISTERS + 1).mean()) if graph.m else 1
    columns = simulated.column_rounds(graph, passing=0) * walks[0].threads
    return simulated.work(graph, nonzero_us * graph.m + column_us * columns, row_us)


def is_middling(graph):
    """Whether the bitmaps' set-up, which is next to nothing, makes them faster than `adaptive` is."""
    return MIDDLING[0] < graph.m <= MIDDLING[1]


def fastest(graph):
    """The one of METHODS to take where none is named."""
    return "thread" if graph.max_column <= IN_REGISTERS else "block_shared"


def over(tasks):
    """How many blocks of THREADS go over so many columns or nonzeros."""
    return enough_blocks(BLOCKS, tasks, THREADS)


def _thread(graph, threads, blocks):
    threads = check_integer("threads", threads or 128, 1, 1024)
    blocks = enough_blocks(check_integer("blocks", blocks or 2**31 - 1, 1, 2**31 - 1), graph.n, threads)
    return (HIGHEST, HIGHEST), {}, [Step(support_thread, blocks, threads, COMMON)]


def _warp(graph, threads, blocks, coarse=COARSE[0]):
    threads = _whole_warps(threads or 256)
    words, bitmaps = _bitmaps(graph, blocks and blocks * threads // WARP, runtime.facts().threads_per_sm // WARP)
    threads = min(threads, bitmaps * WARP)
    warps = threads // WARP
    blocks = bitmaps // warps
    coarse, shift = _coarse(graph, coarse)
    arrays = {"bitmap": (blocks * warps * 2 * words, np.uint32, 0)}
    args = (*COMMON, "bitmap", words, coarse, shift)
    return (HIGHEST, HIGHEST), arrays, [Step(support_warp, blocks, threads, args, shared=4 * coarse * warps)]


def _block_global(graph, threads, blocks, coarse=COARSE[1]):
    threads = _whole_warps(threads or 256)
    words, blocks = _bitmaps(graph, blocks, max(1, runtime.facts().threads_per_sm // threads))
    coarse, shift = _coarse(graph, coarse)
    arrays = {"bitmap": (blocks * 2 * words, np.uint32, 0)}
    args = (*COMMON, "bitmap", words, coarse, shift)
    return (HIGHEST, HIGHEST), arrays, [Step(support_block_global, blocks, threads, args, shared=4 * coarse)]


def _block_shared(graph, threads, blocks, sizes=SIZES):
    facts = runtime.facts()
    walks = []
    for which, (_, usual, words) in enumerate(sizes):
        words, shift = _coarse(graph, min(words, (facts.shared_per_block - 16) // BYTES_PER_WORD))
        many = _whole_warps(threads or usual)
        resident = max(1, min(facts.threads_per_sm // many, facts.shared_per_sm // (words * BYTES_PER_WORD + 1024)))
        number = enough_blocks(check_integer("blocks", blocks or facts.sms * resident, 1, 2**31 - 1), graph.n, 1)
        args = (*COMMON, which, words, shift)
        walks.append(Step(support_block_shared, number, many, args, shared=words * BYTES_PER_WORD))
    return [rows for rows, *_ in sizes[:-1]], {}, walks


# microseconds in the simulator of a nonzero, of a column for each thread of its worker, of a row
SIMULATED_US = {
    "thread": (1.2, 0, 3.1),
    "warp": (100, 4.1, 30),
    "block_shared": (270, 8.9, 16),
    "block_global": (120, 26, 24),
}
METHODS = {"thread": _thread, "warp": _warp, "block_shared": _block_shared, "block_global": _block_global}


def _whole_warps(threads):
    """The threads of a block, up to a whole number of warps, as lanes of a warp share out the work."""
    return -(-check_integer("threads", threads, 1, 1024) // WARP) * WARP


def _coarse(graph, most):
    """How many words, up to `most`, the bits of a column take, and for how many rows a bit stands, as an exponent."""
    shift = max(0, (max(graph.n, 1) - 1).bit_length() - (32 * most).bit_length() + 1)
    return ((max(graph.n, 1) - 1) >> shift) // 32 + 1, shift


def _bitmaps(graph, wanted, resident):
    """The words of a bitmap in global memory, and how many bitmaps: as many as are wanted, or run at once, and fit."""
    words = max(1, -(-graph.n // 32))
    others = 4 * (8 * graph.n + 7 * graph.m)  # the rest of a k-truss
    fit = min((runtime.memory_free() - others) // (words * BYTES_PER_WORD), (2**32 - 1) // (2 * words))
    wanted = check_integer("blocks", wanted or runtime.facts().sms * resident, 1, 2**31 - 1)
    return words, max(1, min(wanted, fit, graph.n))
