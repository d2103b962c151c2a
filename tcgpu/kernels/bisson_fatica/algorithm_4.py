"""Algorithm 4 of Bisson & Fatica as they print it, with their names: supports, and counts without lines 18 to 22.

Worker w of W, a block or a warp, takes the rows w, w + W, ... of `rows`. It sets the bits of a row's neighbours, in
words of 64 bits, and reads the row of each neighbour j: one j at a time, which a thread hands out to all others.

What is not as printed:

- Lines 10 and 13 have an i where j is meant: see `data/published/errata.csv`.
- The paper keeps lower neighbours, our columns higher ones: vertex v there is vertex n - 1 - v here. So a column is
  read from its end: when j is handed out, the bits of all rows past it are set.
- What the paper leaves open is done in the simplest way. `broadcast`: each thread has a word of shared memory for the
  others to read. `find_off`: a binary search, one of two ways that the paper names; it promises one of constant time
  and does not show it. `reset_bitmap`: the words that were set.

The paper prints the block's kernel, and says that a warp's is like it, that the bits may be in shared memory, and that
`update_support` is like it, too. Round 0 counts supports; a later one takes broken triangles off.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.bisson_fatica.support import LISTED, ROUND, THREADS, remaining_rows, synchronize, update_triangle
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device.warp import WARP


@cuda.jit(device=True)
def algorithm_4(cols, roff, rlen, rows, state, bits, supp, counts_only, by_warp):
    """Take this worker's share of the rows; returns how many triangles this thread finds.

    state: how many rows there are, and the round. bits: an array, and where this worker's words begin in it.
    """
    c, n, round = cuda.shared.array(0, int32), state[LISTED], state[ROUND]
    bmap, first = bits
    thread, threads, at = cuda.threadIdx.x, cuda.blockDim.x, uint32(0)
    s, workers = cuda.blockIdx.x, cuda.gridDim.x
    if by_warp:
        s, workers = uint32(cuda.grid(1) // WARP), uint32(cuda.gridsize(1) // WARP)
        at, thread, threads = thread // WARP * WARP, thread % WARP, uint32(WARP)
    found = int64(0)
    while s < n:
        io_s, io_e = remaining_rows(roff, rlen, rows[s])
        io = io_e
        while io > io_s:
            c[at + thread] = cols[io - 1 - thread] if io_s + thread < io else int32(-1)
            if c[at + thread] > -1:
                cuda.atomic.or_(bmap, first + (c[at + thread] >> 6), int64(1) << (c[at + thread] & 63))
            synchronize(by_warp)
            for t in range(threads):
                j = c[at + t]  # broadcast(c, t)
                if j == -1:
                    break
                cnt = int32(0)
                jo, jo_e = remaining_rows(roff, rlen, j)
                jo += thread
                while jo < jo_e:
                    k = cols[jo]
                    if bmap[first + (k >> 6)] >> (k & 63) & 1:
                        if counts_only:
                            cnt += 1
                        else:
                            cnt += update_triangle(supp, io - 1 - t, jo, first_from(cols, io_s, io_e, k), round)
                    jo += threads
                if counts_only:
                    found += cnt
                else:
                    cuda.atomic.add(supp, io - 1 - t, cnt)
            io -= min(threads, io - io_s)
            synchronize(by_warp)
        io = io_s + thread
        while io < io_e:
            bmap[first + (cols[io] >> 6)] = 0
            io += threads
        synchronize(by_warp)
        s += workers
    return found


@cuda.jit(device=True)
def cleared_bits(words):
    """Clear `words` words of a block's shared memory, behind those for `broadcast`; returns where they begin."""
    bmap, threads = cuda.shared.array(0, int64), cuda.blockDim.x
    first = int64(threads + 1 >> 1)
    word = cuda.threadIdx.x
    while word < words:
        bmap[first + word] = 0
        word += threads
    cuda.syncthreads()
    return first


ARRAYS = "int32[::1], int64[::1], int32[::1], int32[::1], int32[::1]"

# ------------------------------------------------------------------------------------------------------------- counts


@kernel(f"void({ARRAYS}, int64[::1], int64, int64[::1])")
def count_by_warp(row_idx, col_ptr, length, columns, state, bitmap, words, total):
    bits = bitmap, cuda.grid(1) // WARP * words
    add_block_to(total, algorithm_4(row_idx, col_ptr, length, columns, state, bits, length, True, True))


@kernel(f"void({ARRAYS}, int64[::1], int64, int64[::1])")
def count_by_block(row_idx, col_ptr, length, columns, state, bitmap, words, total):
    bits = bitmap, cuda.blockIdx.x * words
    add_block_to(total, algorithm_4(row_idx, col_ptr, length, columns, state, bits, length, True, False))


@kernel(f"void({ARRAYS}, int64, int64[::1])")
def count_in_shared(row_idx, col_ptr, length, columns, state, words, total):
    bits = cuda.shared.array(0, int64), cleared_bits(words)
    add_block_to(total, algorithm_4(row_idx, col_ptr, length, columns, state, bits, length, True, False))


# ----------------------------------------------------------------------------------------------------------- supports


@kernel(f"void({ARRAYS}, int64[::1], int64, int32[::1])")
def support_by_warp(row_idx, col_ptr, length, columns, state, bitmap, words, support):
    bits = bitmap, cuda.grid(1) // WARP * words
    algorithm_4(row_idx, col_ptr, length, columns, state, bits, support, False, True)


@kernel(f"void({ARRAYS}, int64[::1], int64, int32[::1])")
def support_by_block(row_idx, col_ptr, length, columns, state, bitmap, words, support):
    bits = bitmap, cuda.blockIdx.x * words
    algorithm_4(row_idx, col_ptr, length, columns, state, bits, support, False, False)


@kernel(f"void({ARRAYS}, int64, int32[::1])")
def support_in_shared(row_idx, col_ptr, length, columns, state, words, support):
    bits = cuda.shared.array(0, int64), cleared_bits(words)
    algorithm_4(row_idx, col_ptr, length, columns, state, bits, support, False, False)


# -------------------------------------------------------------------------------------------------------------- plans

KERNELS = {  # method -> the kernels for counts and for supports
    "warp": (count_by_warp, support_by_warp),
    "block_shared": (count_in_shared, support_in_shared),
    "block_global": (count_by_block, support_by_block),
}


def count_plan(graph, method, *, threads, blocks):
    """The plan of a count by "warp", "block_shared" or "block_global"; blocks: None for as many as run at a time."""
    name = f"bitmap_{method}"
    step, created = _walk(graph, method, name, KERNELS[method][0], threads, blocks)
    return Plan(name, {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx}, created, [step],
                setup=[launch(support.measure_columns, graph.n, THREADS), *support.listing(graph, 1)],
                work=_simulated_work(graph, method, step))  # fmt: skip


def support_plan(graph, method):
    """The plan of every edge's support; a thread's kernel is the same as ours."""
    if method == "thread":
        return support.plan(graph, method)
    step, created = _walk(graph, method, f"support by {method}", KERNELS[method][1], THREADS, None, True)
    name, work = f"support by {method} as published", _simulated_work(graph, method, step)
    return support.plan_by(step, graph, name, created, 1, work)


def _walk(graph, method, name, kernel, threads, blocks, truss=False):
    words, teams = -(-graph.n // 64) or 1, 1
    if method == "warp":
        teams = -(-threads // WARP)
        threads = teams * WARP
    in_shared = method == "block_shared"
    shared = 8 * (threads // teams + 1 >> 1) + 8 * words * in_shared
    bitmap = 0 if in_shared else words, np.int64
    return support.walk(kernel, graph, name, threads, teams, blocks, shared, bitmap, truss, words=words)


def _simulated_work(graph, method, step):
    """Microseconds in the simulator: for every row, and for every j, of all threads of a worker."""
    return simulated.work(graph, 5 * (WARP if method == "warp" else step.threads) * (graph.n + graph.m), row_us=10)
