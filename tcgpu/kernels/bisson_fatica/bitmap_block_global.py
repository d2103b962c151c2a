"""`bitmap_block_global`: a block owns a column, written down as bits in global memory (Bisson & Fatica's, for any n).

Contract: the same sum as `naive`. Works like `bitmap_block_shared`, with a bitmap of n bits a block in global memory
and its fold in shared memory (see `bits`). There are as many blocks as the device runs at a time and has memory for,
down to one, and they cycle over the columns. Nothing is refused but a graph that does not fit with a single bitmap.
"""

import numpy as np

from tcgpu.declarations import Knob, Method, blocks_knob, threads_knob
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import Plan, Step, enough_blocks, simulated
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.device.bits import (
    LONG_LIST,
    WORD_KNOB,
    WORDS,
    batch_of,
    belongs,
    bitmaps_that_fit,
    bring_list,
    check_edges,
    check_shared,
    fold_bits_of,
    fold_knob,
    folded_hits,
    lists_and_task_bytes,
    set_bit,
    set_near_bit,
    with_queue,
)
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device_graph import prepare

__all__ = ["plan", "prepare", "support_plan"]

ARRAYS = "int64[::1], int32[::1], {}[::1], int64, int64, int64, int64, int64, int64[::1], int64[::1]"


METHOD = Method(
    name="bitmap_block_global",
    source="Bisson & Fatica",
    summary="a block per column, kept as bits in global memory, with a fold of them in shared memory",
    module=__name__,
    declared=(
        threads_knob(256),
        blocks_knob(None),
        Knob("lanes", 32, "threads on a column that is looked up", 1, 1024),
        fold_knob(17),
        WORD_KNOB,
    ),
)


@kernel(f"void({ARRAYS.format('uint32')})", f"void({ARRAYS.format('int64')})")
def bitmap_block_global_kernel(col_ptr, row_idx, bits, shift, fold_bits, lanes, batch, long_list, queue, total):
    near = cuda.shared.array(0, uint32)  # two words a thread for `bring_list`, the next task, then the fold
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    lanes = uint32(lanes)
    group, lane, groups = thread // lanes, thread % lanes, threads // lanes
    next_task, at, n = 2 * threads, 2 * threads + 1, uint32(col_ptr.size - 1)
    mine, mask = cuda.blockIdx.x * (bits.size // cuda.gridDim.x), uint32(fold_bits - 1)
    word, words = thread, uint32(fold_bits >> 5)
    while word < words:
        near[at + word] = uint32(0)
        word += threads
    batch, long_list = uint32(batch), uint32(long_list)
    batches, count = (n + batch - 1) // batch, int64(0)
    task = cuda.blockIdx.x  # first the batches of long columns, then those of the others
    while task < 2 * batches:
        cuda.syncthreads()
        if thread == 0:
            near[next_task] = uint32(cuda.gridDim.x + cuda.atomic.add(queue, 0, 1))
        sweep = task // batches
        j = (task - sweep * batches) * batch
        j_end = min(j + batch, n)
        while j < j_end:
            begin, end = uint32(col_ptr[j]), uint32(col_ptr[j + 1])
            if belongs(end - begin, sweep):
                p = begin + thread
                while p < end:
                    set_bit(bits, mine, row_idx[p], shift)
                    set_near_bit(near, at, row_idx[p] & mask)
                    p += threads
                last, chunk = row_idx[end - 1], begin
                while chunk < end:
                    bring_list(col_ptr, row_idx, chunk + thread, end, near, 2 * thread)
                    cuda.syncthreads()
                    size = min(threads, end - chunk)
                    whole = uint32(0)  # short lists by `lanes` threads each, then long ones by the whole block
                    while whole < 2:
                        t, apart = (uint32(0), uint32(1)) if whole else (group, groups)
                        first, step = (thread, threads) if whole else (lane, lanes)
                        while t < size and (whole or group < groups):
                            q, q_end = near[2 * t], near[2 * t + 1]
                            if (q_end - q > long_list) == (whole == 1):
                                q += first
                                count += folded_hits(near, at, mask, bits, mine, shift, row_idx, q, q_end, step, last)
                            t += apart
                        whole += 1
                    cuda.syncthreads()
                    chunk += threads
                p = begin + thread
                while p < end:
                    bits[mine + (row_idx[p] >> shift)] = 0
                    near[at + (uint32(row_idx[p] & mask) >> 5)] = uint32(0)
                    p += threads
                cuda.syncthreads()
            j += 1
        cuda.syncthreads()
        task = near[next_task]
    add_block_to(total, count)


@METHOD.planner
def plan(graph, *, threads, blocks, lanes, fold, word):
    """blocks: None for as many as the device runs at a time."""
    check_edges("bitmap_block_global", graph)
    lanes = min(lanes, threads)
    fold_bits = fold_bits_of(fold, graph.n)
    shared = max(lists_and_task_bytes(threads) + (fold_bits >> 3), threads * BYTES_PER_THREAD)
    check_shared("bitmap_block_global", f"fold={fold}", shared)
    words = -(-graph.n // word)
    if blocks is None:
        blocks = bitmap_block_global_kernel.blocks_at_a_time(threads, shared)
    blocks = enough_blocks(blocks, graph.n, 1)
    blocks = bitmaps_that_fit("bitmap_block_global", graph, blocks, words * word // 8)
    args = ("col_ptr", "row_idx", "bits", word.bit_length() - 1, fold_bits, lanes, batch_of(graph, blocks),
            LONG_LIST * threads, "queue", "total")  # fmt: skip
    return Plan(
        method="bitmap_block_global",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"bits": (blocks * words, WORDS[word], 0), "queue": (1, np.int64, 0)},
        steps=with_queue(Step(bitmap_block_global_kernel, blocks, threads, args, shared)),
        work=simulated.work(graph, 18 * threads * simulated.column_rounds(graph), row_us=19),
    )


def support_plan(graph):
    """Each edge's triangles by the same division of labour: see `tcgpu.kernels.bisson_fatica.support`."""
    return support.plan(graph, "block_global")
