"""`bitmap`: a block turns a column into bits in global memory (the report, section 8, after Bisson & Fatica).

Contract: the same sum as `naive`. Every block owns one array of n bits, all 0. For column j it sets the bits of the
column's rows; then for each nonzero (i, j) the threads look up each row of column i: one memory access says whether
column j has it, without a search or a merge. At the end the block clears only the words that it set, so the cost of a
column depends on its length and not on n.

`lanes` threads share a nonzero: they read neighbouring rows of column i at the same time.
"""

import numpy as np

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.device.reduction import add_block_to


@kernel("void(int64[::1], int32[::1], uint32[::1], int64, int64[::1])")
def bitmap_kernel(col_ptr, row_idx, bits, lanes, total):
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    group, lane, groups = thread // lanes, thread % lanes, threads // lanes
    words = bits.size // cuda.gridDim.x
    mine = cuda.blockIdx.x * words  # where this block's bits begin
    count = int64(0)
    for j in range(cuda.blockIdx.x, col_ptr.size - 1, cuda.gridDim.x):
        begin, end = col_ptr[j], col_ptr[j + 1]
        if end - begin < 2:  # no triangle has this column's vertex as its first
            continue
        p = begin + thread
        while p < end:
            row = row_idx[p]
            cuda.atomic.or_(bits, mine + (row >> 5), 1 << (uint32(row) & 31))
            p += threads
        cuda.syncthreads()
        e = begin + group if group < groups else end  # threads are left over where `lanes` does not divide the block
        while e < end:
            i = row_idx[e]
            q, q_end = col_ptr[i] + lane, col_ptr[i + 1]
            while q < q_end:
                row = row_idx[q]
                count += bits[mine + (row >> 5)] >> (uint32(row) & 31) & 1
                q += lanes
            e += groups
        cuda.syncthreads()
        p = begin + thread
        while p < end:
            bits[mine + (row_idx[p] >> 5)] = 0
            p += threads
        cuda.syncthreads()
    add_block_to(total, count)


@planner("bitmap")
def plan(graph, *, threads, blocks, lanes):
    step = launch(bitmap_kernel, graph.n * threads, threads, blocks, lanes=min(lanes, threads))
    return Plan(
        method="bitmap",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"bits": (step.blocks * ((graph.n + 31) // 32), np.uint32, 0)},
        steps=[step],
        work=simulated.work(graph, 9 * threads * simulated.column_rounds(graph), row_us=1.2),
    )
