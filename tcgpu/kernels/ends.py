"""The triangles of a vertex, out of those of its edges: each of them has two there.

Contract: a plan that finds every edge's triangles becomes one that finds every vertex's.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Step, enough_blocks, simulated
from tcgpu.kernels.device.warp import ALL_LANES

SUMMED, OWN = 16384, 2048  # nonzeros that a block takes at a time, last vertices that it has counters for
THREADS, BLOCKS = 512, 2112


@kernel("void(int32[::1], int32[::1], int32[::1], int64[::1])")
def sum_ends(row_idx, col_of, support, twice):
    """Blocks take nonzeros a stretch at a time; the last vertices, where most meet, have counters in shared memory.

    A stretch is so short that none of these can overflow; a support that is so large as to endanger that goes past.
    """
    counters = cuda.shared.array(0, uint32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    lane = thread & 31
    base = twice.size - OWN
    k = thread
    while k < OWN:
        counters[k] = 0
        k += threads
    begin = int64(cuda.blockIdx.x) * SUMMED
    while begin < row_idx.size:
        end = min(begin + SUMMED, row_idx.size)
        cuda.syncthreads()
        e = begin + thread
        while e - lane < end:  # whole warps
            i, j, triangles = int32(0), int32(-1), int32(0)
            if e < end:
                i, j, triangles = row_idx[e], col_of[e], support[e]
            if triangles != 0:
                if i >= base and triangles <= 0xFFFF:
                    cuda.atomic.add(counters, i - base, uint32(triangles))
                else:
                    cuda.atomic.add(twice, i, int64(triangles))
            total = int64(triangles)  # of the lanes from this one on that have the same column
            for distance in (1, 2, 4, 8, 16):
                other = cuda.shfl_down_sync(ALL_LANES, total, distance)
                column = cuda.shfl_down_sync(ALL_LANES, j, distance)
                if lane + distance < 32 and column == j:
                    total += other
            before = cuda.shfl_up_sync(ALL_LANES, j, 1)
            if total != 0 and (lane == 0 or before != j):
                cuda.atomic.add(twice, j, total)
            e += threads
        cuda.syncthreads()
        k = thread
        while k < OWN:
            found = counters[k]
            counters[k] = 0
            if found != 0:
                cuda.atomic.add(twice, base + k, int64(found))
            k += threads
        begin += int64(cuda.gridDim.x) * SUMMED


def of_vertices(plan, graph):
    """The plan of every edge's triangles, which has `row_idx` and `support`, as one of every vertex's: int64."""
    args = ("row_idx", "col_of", "support", "twice")
    return plan.then(
        Step(sum_ends, enough_blocks(BLOCKS, graph.m, SUMMED), THREADS, args, shared=4 * OWN),
        "twice",
        copied={"col_of": graph.col_of},
        created={"twice": (graph.n, np.int64, 0)},
        work=simulated.work(graph, 27 * graph.m),
        halved=True,
    )
