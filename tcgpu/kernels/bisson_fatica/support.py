"""The triangles of each edge, its support, and updates of it when edges are removed (Bisson & Fatica).

Their Algorithm 4 and update_support in one, on the bitmaps of the counts, with a warp for each neighbour; `algorithm_4`
has it as printed. A triangle j < i < k is found once, at nonzero e = (i, j): column j becomes bits, and each row k of
column i is looked up in them: nonzero q = (k, i). `find_off` finds the third nonzero, f = (k, j). (The paper keeps
lower neighbours, and finds a triangle at its highest vertex.)

In round 0, each of the three gains 1 in `support`. Before a later round, the nonzeros to be removed are marked by a
negative support. The others lose 1 for each triangle in which one or more of the three are removed.

    thread        a thread per column, twelve of its rows at a time in registers
    warp          a warp per column, its bits in global memory, with a fold in shared memory (see `bits`)
    block_shared  a block per column, its bits in shared memory
    block_global  a block per column, its bits in global memory, with a fold

`find_off` needs no search: the position of each word's first row lies behind the words, and popcount adds the offset.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, check_positions, enough_blocks, launch, simulated
from tcgpu.kernels.device.bits import Bitmap, bit_of, bitmaps_of_blocks, check_shared, clear_row, fold_bits_of, set_row
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD
from tcgpu.kernels.device.warp import WARP, sum_of_warp

IN_REGISTERS = 12  # rows of a column that a thread has in registers
MAX_INT32 = 2**31 - 1

# `state`: how many columns are listed, and what `k_truss` stores of a round
LISTED, WEAK, LOWEST, ROUND, STATE_SIZE = range(5)

FOLDS = {"warp": 13, "block_global": 17}  # 2^fold bits of a fold
# microseconds in the simulator for a nonzero, for a column (times the threads that work on it), for a row
SIMULATED_US = {
    "thread": (1.2, 0, 3.1),
    "warp": (360, 0.8, 33),
    "block_shared": (220, 7.4, 33),
    "block_global": (230, 6.3, 36),
}
THREADS, BLOCKS = 256, 1024  # of the kernels that do little for each column or nonzero


class RemainingColumns(NamedTuple):
    """The remaining graph: column j has the `length[j]` rows from `row_idx[col_ptr[j]]` on."""

    col_ptr: np.ndarray
    length: np.ndarray
    row_idx: np.ndarray
    support: np.ndarray  # of each nonzero; negative if it is removed
    weak: np.ndarray  # of each column: the last round in which one of its nonzeros was removed
    round: int  # 0: count all triangles; later: those that lose an edge


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
def synchronize(by_warp):
    """Wait for the other threads of the worker, a warp or a block."""
    if by_warp:
        cuda.syncwarp()
    else:
        cuda.syncthreads()


@cuda.jit(device=True)
def find_off(bitmap, row, behind):
    """The position of a row whose bit is set; `behind` the words are the positions of their first rows."""
    word = bitmap.begin + (row >> 5)
    below = bitmap.words[word] & ((uint32(1) << uint32(row & 31)) - uint32(1))
    return bitmap.words[word + behind] + cuda.popc(below)


@cuda.jit(device=True)
def look_up_rows(graph, e, q, q_end, bitmap, behind, folded):
    """Look up every 32nd row from q on of column i in the bits of column j; returns what nonzero e = (i, j) gains."""
    gain = int32(0)
    while q < q_end:
        row = graph.row_idx[q]
        if bit_of(bitmap, row, folded):
            gain += update_triangle(graph.support, e, q, find_off(bitmap, row, behind), graph.round)
        q += WARP
    return gain


@cuda.jit(device=True)
def walk_columns(graph, columns, state, bitmap, near_words, behind, folded, by_warp):
    """Workers, warps or blocks, take the listed columns j in turns, set its bits, and intersect it with columns i.

    Each of its nonzeros (i, j) has a warp. After round 0, a column i is skipped unless it or column j has a removed
    nonzero. near_words: of each worker in shared memory. All lanes of a warp must call it.
    """
    row_idx, thread, threads = graph.row_idx, cuda.threadIdx.x, cuda.blockDim.x
    at, workers = cuda.blockIdx.x, cuda.gridDim.x
    if by_warp:
        at, workers = uint32(cuda.grid(1) // WARP), uint32(cuda.gridsize(1) // WARP)
        thread, threads = thread % WARP, uint32(WARP)
    word = thread
    while word < near_words:
        bitmap.near[bitmap.at + word] = 0
        word += threads
    synchronize(by_warp)
    while at < state[LISTED]:
        j = columns[at]
        begin, end = remaining_rows(graph.col_ptr, graph.length, j)
        p = begin + thread
        while p < end:
            row = row_idx[p]
            set_row(bitmap, row, folded)
            if p == begin or row_idx[p - 1] >> 5 != row >> 5:
                bitmap.words[bitmap.begin + behind + (row >> 5)] = p
            p += threads
        synchronize(by_warp)
        all_columns = graph.round == 0 or graph.weak[j] == graph.round
        e = begin + thread // WARP
        while e < end:
            i = row_idx[e]
            if all_columns or graph.weak[i] == graph.round:
                q, q_end = remaining_rows(graph.col_ptr, graph.length, i)
                gain = sum_of_warp(look_up_rows(graph, e, q + cuda.laneid, q_end, bitmap, behind, folded))
                if cuda.laneid == 0 and gain != 0:
                    cuda.atomic.add(graph.support, e, gain)
            e += threads // WARP
        synchronize(by_warp)
        p = begin + thread
        while p < end:
            clear_row(bitmap, row_idx[p], folded)
            p += threads
        synchronize(by_warp)
        at += workers


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
            rows = cuda.local.array(IN_REGISTERS, int32)
            for k in range(uint32(IN_REGISTERS)):
                rows[k] = row_idx[first + k] if first + k < end else int32(-1)
            highest = row_idx[min(end, first + IN_REGISTERS) - 1]
            e = begin
            i = row_idx[e]
            while i < highest:
                if all_columns or weak[i] == round:
                    q, q_end = remaining_rows(col_ptr, length, i)
                    gain = int32(0)
                    while q < q_end:
                        row = row_idx[q]
                        f = end
                        for k in range(uint32(IN_REGISTERS)):
                            f = first + k if rows[k] == row else f
                        if f < end:
                            gain += update_triangle(support, e, q, f, round)
                        q = q + 1 if row < highest else q_end
                    if gain != 0:
                        cuda.atomic.add(support, e, gain)
                e += 1
                i = row_idx[e]
            first += IN_REGISTERS
        at += cuda.gridsize(1)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32)")
def support_warp(col_ptr, length, row_idx, support, weak, columns, state, bitmap, words, fold_bits):
    graph = RemainingColumns(col_ptr, length, row_idx, support, weak, state[ROUND])
    near, near_words, first = cuda.shared.array(0, uint32), fold_bits >> 5, int64(cuda.grid(1) // WARP) * 2 * words
    bits = Bitmap(near, cuda.threadIdx.x // WARP * near_words, fold_bits - 1, bitmap, first, uint32(5))
    walk_columns(graph, columns, state, bits, near_words, words, True, True)


@kernel(f"void({ARRAYS}, uint32[::1], uint32, uint32)")
def support_block_global(col_ptr, length, row_idx, support, weak, columns, state, bitmap, words, fold_bits):
    graph = RemainingColumns(col_ptr, length, row_idx, support, weak, state[ROUND])
    near, first = cuda.shared.array(0, uint32), int64(cuda.blockIdx.x) * 2 * words
    bits = Bitmap(near, uint32(0), fold_bits - 1, bitmap, first, uint32(5))
    walk_columns(graph, columns, state, bits, fold_bits >> 5, words, True, False)


@kernel(f"void({ARRAYS}, uint32)")
def support_block_shared(col_ptr, length, row_idx, support, weak, columns, state, words):
    graph = RemainingColumns(col_ptr, length, row_idx, support, weak, state[ROUND])
    near = cuda.shared.array(0, uint32)
    bits = Bitmap(near, uint32(0), uint32(0xFFFFFFFF), near, uint32(0), uint32(5))
    walk_columns(graph, columns, state, bits, words, words, False, False)


KERNELS = {
    "thread": support_thread,
    "warp": support_warp,
    "block_shared": support_block_shared,
    "block_global": support_block_global,
}


@kernel("void(int64[::1], int32[::1])")
def measure_columns(col_ptr, length):
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        length[j] = col_ptr[j + 1] - col_ptr[j]


@kernel("void(int32[::1], int32)")
def begin_round(state, round):
    for k in range(cuda.grid(1), state.size, cuda.gridsize(1)):
        state[k] = round if k == ROUND else MAX_INT32 if k == LOWEST else 0


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int64)")
def list_columns(length, affected, columns, state, least):
    """List the columns of `least` rows whose supports may change."""
    round = state[ROUND]
    for j in range(cuda.grid(1), length.size, cuda.gridsize(1)):
        if length[j] >= least and (round == 0 or affected[j] == round):
            columns[cuda.atomic.add(state, LISTED, 1)] = j


# ------------------------------------------------------------------------------------------------------------- the plan


def plan(graph, method, *, threads=THREADS, blocks=None, fold=None):
    """The plan of every edge's support, int32 in the order of the nonzeros, by one of the methods in KERNELS.

    blocks: None for as many as the device runs at a time. fold: None for that of the method in FOLDS.
    """
    if graph.m > MAX_INT32:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MAX_INT32:,}")
    name, words, shared, bitmap = f"support by {method}", -(-graph.n // 32) or 1, 0, 0
    known = {"words": words}
    if method in FOLDS:
        known["fold_bits"] = fold_bits_of(fold or FOLDS[method], graph.n)
        shared, bitmap = known["fold_bits"] // 8, 2 * words
    elif method == "block_shared":
        shared = 8 * words
    teams = {"thread": threads, "warp": -(-threads // WARP)}.get(method, 1)
    bitmap = bitmap, np.uint32
    step, created = walk(KERNELS[method], graph, name, threads, teams, blocks, shared, bitmap, True, **known)
    return plan_by(step, graph, name, created, 2, _simulated_work(graph, method, step))


def plan_by(step, graph, method, created, least, work):
    """The plan of every edge's support by a step that walks the columns of `least` rows: see `walk`."""
    return ArrayPlan(
        method=method,
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created=created | {"support": (graph.m, np.int32, 0), "weak": (graph.n, np.int32, 0)},
        setup=[launch(measure_columns, graph.n, THREADS)],
        steps=[*listing(graph, least), step],
        work=work,
    )


def listing(graph, least):
    """The launches that list the columns of `least` rows; in a later round, those whose supports may change."""
    return [
        launch(begin_round, STATE_SIZE, WARP, round=0),
        launch(list_columns, graph.n, THREADS, BLOCKS, least=least),
    ]


def walk(kernel, graph, name, threads, teams, blocks, shared, bitmap, truss, **known):
    """The launch of a kernel that walks the listed columns, and the arrays for it.

    A block has `teams` threads, warps, or one for itself, which take a column each. A team has `shared` bytes of shared
    memory, and in global memory a bitmap of (words, their dtype). truss: leave memory for one. known: other arguments.
    """
    check_positions(graph, name)
    check_shared(name, f"a bit for each of {graph.n:,} vertices", teams * shared)
    if blocks is None:
        blocks = kernel.blocks_at_a_time(threads, max(teams * shared, threads * BYTES_PER_THREAD))
    blocks = enough_blocks(blocks, graph.n, teams)
    created = {
        "length": (graph.n, np.int32, None),
        "columns": (graph.n, np.int32, None),
        "affected": (graph.n, np.int32, 0),
        "state": (STATE_SIZE, np.int32, 0),
    }
    words, dtype = bitmap
    if words:
        others = 4 * (8 * graph.n + 7 * graph.m if truss else 3 * graph.n + STATE_SIZE)  # bytes
        blocks, fitting = bitmaps_of_blocks(name, graph, blocks, teams, words * np.dtype(dtype).itemsize, others)
        threads, teams = threads // teams * fitting, fitting
        created["bitmap"] = (blocks * teams * words, dtype, 0)
    return launch(kernel, blocks * threads, threads, blocks, teams * shared, **known), created


def _simulated_work(graph, method, step):
    """Microseconds in the simulator."""
    nonzero_us, column_us, row_us = SIMULATED_US[method]
    if method == "thread" and runtime.estimates_time:  # it reads each column i once for every twelve rows of j
        nonzero_us *= float((graph.column_lengths[graph.col_of] / IN_REGISTERS + 1).mean()) if graph.m else 1
    columns = simulated.column_rounds(graph, passing=0) * step.threads
    return simulated.work(graph, nonzero_us * graph.m + column_us * columns, row_us)
