"""`bitmap_block_shared`: a block owns a column, written down as bits in shared memory (Bisson & Fatica's, for small n).

Contract: the same sum as `naive`. A block's bitmap has n bits and lies in its shared memory, as much of that as the
device gives a block; a graph of more vertices is refused. The block takes columns off a queue, long ones first. It sets
a column's bits, then takes its rows in chunks of one a thread: each thread fetches where its row's column begins and
ends, and then these columns are looked up, short ones by `lanes` threads each, long ones by the whole block.
"""

import numpy as np

from tcgpu.declarations import Knob, Method, blocks_knob, threads_knob
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, Step, enough_blocks, simulated
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.device.bits import (
    LONG_LIST,
    batch_of,
    belongs,
    bring_list,
    check_edges,
    lists_and_task_bytes,
    near_hits,
    set_near_bit,
    with_queue,
)
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device_graph import prepare

__all__ = ["plan", "prepare", "support_plan"]


METHOD = Method(
    name="bitmap_block_shared",
    source="Bisson & Fatica",
    summary="a block per column, kept as bits in shared memory",
    module=__name__,
    declared=(
        threads_knob(256),
        blocks_knob(None),
        Knob("lanes", 16, "threads on a column that is looked up", 1, 1024),
    ),
)


@kernel("void(int64[::1], int32[::1], int64, int64, int64, int64[::1], int64[::1])")
def bitmap_block_shared_kernel(col_ptr, row_idx, lanes, batch, long_list, queue, total):
    near = cuda.shared.array(0, uint32)  # two words a thread for `bring_list`, the next task, then the bits
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    lanes = uint32(lanes)
    group, lane, groups = thread // lanes, thread % lanes, threads // lanes
    next_task, at, n = 2 * threads, 2 * threads + 1, uint32(col_ptr.size - 1)
    word, words = thread, n + 31 >> 5
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
                    set_near_bit(near, at, row_idx[p])
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
                                count += near_hits(near, at, row_idx, q, q_end, step, last)
                            t += apart
                        whole += 1
                    cuda.syncthreads()
                    chunk += threads
                p = begin + thread
                while p < end:
                    near[uint32(at + (row_idx[p] >> 5))] = uint32(0)
                    p += threads
                cuda.syncthreads()
            j += 1
        cuda.syncthreads()
        task = near[next_task]
    add_block_to(total, count)


def shared_bytes(n, threads):
    """What a block takes for a graph of n vertices."""
    return max(lists_and_task_bytes(threads) + 4 * -(-n // 32), threads * BYTES_PER_THREAD)


def most_vertices(threads=256):
    """How many vertices a graph may have on this device."""
    return 8 * (runtime.facts().shared_per_block - lists_and_task_bytes(threads)) // 32 * 32


@METHOD.planner
def plan(graph, *, threads, blocks, lanes):
    """blocks: None for as many as the device runs at a time."""
    check_edges("bitmap_block_shared", graph)
    lanes = min(lanes, threads)
    shared = shared_bytes(graph.n, threads)
    if graph.n > most_vertices(threads):
        raise GraphError(
            f"bitmap_block_shared has room for {most_vertices(threads):,} vertices in the shared memory of a block "
            f"here, not for {graph.n:,}: take bitmap_block_global"
        )
    if blocks is None:
        blocks = bitmap_block_shared_kernel.blocks_at_a_time(threads, shared)
    blocks = enough_blocks(blocks, graph.n, 1)
    args = ("col_ptr", "row_idx", lanes, batch_of(graph, blocks), LONG_LIST * threads, "queue", "total")
    return Plan(
        method="bitmap_block_shared",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"queue": (1, np.int64, 0)},
        steps=with_queue(Step(bitmap_block_shared_kernel, blocks, threads, args, shared)),
        work=simulated.work(graph, 18 * threads * simulated.column_rounds(graph), row_us=14),
    )


def support_plan(graph):
    """Each edge's triangles by the same division of labour: see `tcgpu.kernels.bisson_fatica.support`."""
    return support.plan(graph, "block_shared")
