"""Count the cycles of 4 vertices, whether they are joined across or not; also at each edge.

Contract: a graph in degree order, of any kind. `total` gets the number of cycles, an int64; `found`, if not empty,
those of each edge, int64, too.

A cycle is found at its last vertex x, as two paths x, v, u and x, w, u to a smaller vertex u, over vertices v and w
smaller than x. A block takes a vertex x and has a counter for every u: each path adds 1, and makes a cycle with each
path that was counted before. In degree order x has most neighbours, so the neighbours of the others are few to read.

Most paths end at vertices with many neighbours. So the counters of the last vertices are in shared memory, and only
those of the others in global memory, where each block has its own. If memory for all blocks is short, there are fewer
blocks. A block sets its counters back to 0 by the same paths.

A path is in a cycle with each other path from x to u. So at edges, when all paths of x are counted, a path adds the
counter of its u, less 1, to its two edges.

    v and the edge (x, v)    one for each lane of a warp
    the paths x, v, u        the lanes of a warp read the neighbours u of one v at a time

At edges a warp takes one v at a time, whose edge (x, v) gets the sum of its lanes by one addition.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, Plan, enough_blocks, launch
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device.warp import ALL_LANES, WARP, sum_of_warp
from tcgpu.kernels.device_graph import adjacency

MAX_EDGES = 2**31 - 2**19  # the position of a neighbour, and of the next one of the same lane, fit 32 bits
MOST_WARPS = 32  # of a block
THREAD_US, EDGE_US, PATH_US = 25, 250, 6  # microseconds in the simulator: of a thread for a vertex x, of (x, v), of u


class Paths(NamedTuple):
    """The graph, as `adjacency` returns it, and a block's counters."""

    row_ptr: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    edge: np.ndarray
    in_shared: np.ndarray  # in shared memory, the counters of vertices from `first_shared` on
    in_global: np.ndarray  # in global memory, those of the other vertices: from in_global[begin] on
    first_shared: int
    begin: int


@cuda.jit(device=True)
def visit_paths(paths, x, clear, shared_too):
    """Go over the paths x, v, u with u and v smaller than x, shared by the threads of the block.

    Add 1 to the counter of each u; return the number of cycles that this thread finds. Or `clear` the counters; those
    in shared memory only if `shared_too`.
    """
    lane, count = cuda.threadIdx.x & 31, int64(0)
    p = uint32(paths.indptr[x]) + cuda.threadIdx.x - lane
    last = uint32(paths.indptr[x]) + uint32(paths.row_ptr[x + 1]) - uint32(paths.row_ptr[x])
    while p < last:
        q, end = uint32(0), uint32(0)
        if p + lane < last:
            v = paths.indices[p + lane]
            q, end = uint32(paths.indptr[v]), uint32(paths.row_ptr[v + 1]) + paths.edge[p + lane]  # where x follows
        some = cuda.ballot_sync(ALL_LANES, q < end)
        while some != 0:
            which = cuda.ffs(some) - 1
            some &= some - 1
            at, until = cuda.shfl_sync(ALL_LANES, q, which) + lane, cuda.shfl_sync(ALL_LANES, end, which)
            while at < until:
                u = paths.indices[at]
                if u < paths.first_shared:
                    if clear:
                        paths.in_global[paths.begin + u] = 0
                    else:
                        count += cuda.atomic.add(paths.in_global, paths.begin + u, 1)
                elif not clear:
                    count += cuda.atomic.add(paths.in_shared, u - paths.first_shared, 1)
                elif shared_too:
                    paths.in_shared[u - paths.first_shared] = 0
                else:
                    until = at  # all that follow are in shared memory, too
                at += WARP
        p += cuda.blockDim.x
    return count


@cuda.jit(device=True)
def add_at_edges(paths, x, found):
    """Add to the two edges of each path x, v, u how many other paths go from x to u; warps share the vertices v."""
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x // WARP
    p = uint32(paths.indptr[x]) + warp
    last = uint32(paths.indptr[x]) + uint32(paths.row_ptr[x + 1]) - uint32(paths.row_ptr[x])
    while p < last:
        v, at_xv = paths.indices[p], int64(0)
        at, end = uint32(paths.indptr[v]) + lane, uint32(paths.row_ptr[v + 1]) + paths.edge[p]  # where x follows
        while at < end:
            u, others = paths.indices[at], int64(-1)
            if u < paths.first_shared:
                others += paths.in_global[paths.begin + u]
            else:
                others += paths.in_shared[u - paths.first_shared]
            if others > 0:
                cuda.atomic.add(found, paths.edge[at], others)
            at_xv += others
            at += WARP
        cuda.syncwarp()
        at_xv = sum_of_warp(at_xv)
        if lane == 0 and at_xv > 0:
            cuda.atomic.add(found, paths.edge[p], at_xv)
        p += cuda.blockDim.x // WARP


@kernel("void(int64[::1], int64[::1], int32[::1], int32[::1], int32[::1], int64, int32[::1], int64[::1], int64[::1])")
def count_cycles(row_ptr, indptr, indices, edge, vertices, first_shared, in_global, found, total):
    """Blocks take the vertices x in turns."""
    in_shared = cuda.shared.array(0, int32)
    thread, threads, n, count = cuda.threadIdx.x, cuda.blockDim.x, indptr.size - 1, int64(0)
    paths = Paths(
        row_ptr, indptr, indices, edge, in_shared, in_global, first_shared, int64(cuda.blockIdx.x) * first_shared
    )
    few, task = False, int64(cuda.blockIdx.x)
    while True:
        k = int64(thread)
        while not few and k < n - first_shared:
            in_shared[k] = 0
            k += threads
        if task >= vertices.size:
            break
        x = vertices[task]
        cuda.syncthreads()
        count += visit_paths(paths, x, False, True)
        cuda.syncthreads()
        if found.size > 0:
            add_at_edges(paths, x, found)
            cuda.syncthreads()
        few_paths = 32 * (row_ptr[x + 1] - row_ptr[x]) < n - first_shared  # probably fewer than counters
        visit_paths(paths, x, True, few_paths)
        task += cuda.gridDim.x
    add_block_to(total, count)


def plan(graph, at_edges=False):
    """The plan of the number of cycles of a graph in degree order, or of those at each edge."""
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for cycles on a GPU, which takes up to {MAX_EDGES:,}")
    row_ptr, indptr, indices, edge = adjacency(graph)
    xp, device = runtime.arrays_of(row_ptr), runtime.facts()
    smaller = xp.diff(row_ptr)  # neighbours of each vertex
    vertices = xp.ascontiguousarray(xp.flatnonzero(smaller > 1)[::-1].astype(np.int32))  # the longest work first
    threads = WARP * enough_blocks(MOST_WARPS, int(smaller.max()) if graph.n else 0, WARP)
    first_shared = max(0, graph.n - device.shared_per_block // 4)
    shared = max(4 * (graph.n - first_shared), BYTES_PER_THREAD * threads)
    blocks = device.sms * max(1, min(device.threads_per_sm // threads, device.shared_per_sm // (shared + 1024)))
    blocks = enough_blocks(max(1, min(blocks, runtime.memory_free() // 4 // (4 * first_shared + 1))), vertices.size, 1)
    work = 0
    if runtime.engine() == "sim":
        found = int((smaller[graph.col_of] + np.arange(graph.m) - graph.col_ptr[graph.col_of]).sum())
        work = (THREAD_US * threads * vertices.size + EDGE_US * graph.m + PATH_US * found) * (1 + at_edges)
    kind = partial(ArrayPlan, output="found") if at_edges else Plan
    return kind(
        method="cycles of 4",
        copied={"row_ptr": row_ptr, "indptr": indptr, "indices": indices, "edge": edge, "vertices": vertices},
        created={"in_global": (blocks * first_shared, np.int32, 0), "found": (graph.m * at_edges, np.int64, 0)},
        steps=[launch(count_cycles, blocks * threads, threads, blocks, shared, first_shared=first_shared)],
        work=work,
    )
