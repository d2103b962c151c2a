"""Launches appended to a plan of edge support: sums at vertices, and results in the caller's vertex numbering."""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import launch, simulated
from tcgpu.kernels.device.search import last_up_to
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.picking import pick

CHUNK = 16384  # nonzeros that a block takes at a time: so few that no counter in shared memory overflows
MOST_SHARED = 2048  # for the last vertices, which in degree order have the most edges


@kernel("void(int32[::1], int32[::1], int32[::1], int64[::1])")
def sum_ends(row_idx, col_of, support, twice):
    """A thread per nonzero (i, j): add its triangles to twice[i] and twice[j]. Each triangle has two edges at a vertex.

    The lanes of a warp that have the same column add up their triangles first.
    """
    counters = cuda.shared.array(0, uint32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    lane = thread & 31
    base = twice.size - MOST_SHARED
    for k in range(thread, MOST_SHARED, threads):
        counters[k] = 0
    for begin in range(int64(cuda.blockIdx.x) * CHUNK, row_idx.size, int64(cuda.gridDim.x) * CHUNK):
        end = min(begin + CHUNK, row_idx.size)
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
        for k in range(thread, MOST_SHARED, threads):
            found = counters[k]
            counters[k] = 0
            if found != 0:
                cuda.atomic.add(twice, base + k, int64(found))


def sums_at_vertices(plan, graph):
    """The plan of edge support, extended to return the triangles of each vertex (int64)."""
    threads = min(512, runtime.facts().threads_per_block)
    return plan.then(
        launch(sum_ends, -(-graph.m // CHUNK) * threads, threads, shared=4 * MOST_SHARED),
        "twice",
        copied={"col_of": graph.col_of},
        created={"twice": (graph.n, np.int64, 0)},
        work=simulated.work(graph, 27 * graph.m),
        halved=True,
    )


@kernel("void(int32[::1], int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def reorder_edges(given_rows, given_columns, rank, col_ptr, row_idx, found, reordered):
    """A thread per nonzero of the given graph, whose vertex v is rank[v] in the graph of `found`: look up its value."""
    for e in range(cuda.grid(1), given_rows.size, cuda.gridsize(1)):
        i, j = rank[given_rows[e]], rank[given_columns[e]]
        if i < j:
            i, j = j, i
        reordered[e] = found[last_up_to(row_idx, col_ptr[j], col_ptr[j + 1], i)]


def edges_in_order_of(given, plan, ordered):
    """Make a plan that computes a number for each edge of `ordered` return it for the edges of `given`, its source."""
    if ordered is given:
        return plan
    arrays = {"given_rows": given.row_idx, "given_columns": given.col_of, "rank": ordered.rank}
    step = launch(reorder_edges, given.m, 256, 16384, found=plan.output)
    return plan.then(step, "reordered", copied=arrays, created={"reordered": (given.m, np.int32, None)})


def vertices_in_order_of(given, plan, ordered):
    """The same for a plan that computes a number (int64) for each vertex."""
    if ordered is given:
        return plan
    step = launch(pick, given.n, 256, 16384, values=plan.output, at="rank", picked="reordered")
    return plan.then(step, "reordered", copied={"rank": ordered.rank}, created={"reordered": (given.n, np.int64, None)})
