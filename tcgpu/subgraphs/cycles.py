"""Count the cycles of 4 vertices, whether they are joined across or not; also at each edge.

Contract: a graph in degree order, of any kind. `total` gets the number of cycles, an int64; `found`, if not empty,
those of each edge, int64, too.

A cycle is found at its last vertex x, as two paths x, v, u and x, w, u to a smaller vertex u, over vertices v and w
smaller than x. A team of threads takes a vertex x and has a counter for every u: each path adds 1, and makes a cycle
with each path that was counted before. In degree order x has most neighbours, so the neighbours of the others are few
to read. A path is in a cycle with each other path from x to u: so at edges, when all paths of x are counted, a path
adds the counter of its u, less 1, to its two edges.

Vertices x are in classes by how many paths they have. Where these are few, the counters are in a hash table with
places for twice as many; the more paths, the more threads and the larger a table. Where even the largest table is too
small, the last vertices, at which most paths end, have counters in shared memory, and the others in global memory,
where each block has its own: if memory is short, there are fewer blocks.

    vertex x      a team of 4 or 32 threads, or a block
    edge (x, v)   a group of `width` threads of the team
    path x, v, u  a thread of the group
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, Plan, launch, run
from tcgpu.kernels.adaptive.tables import EMPTY, HASH_FACTOR
from tcgpu.kernels.adjacency import adjacency
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.warp import WARP

MAX_EDGES = 2**31 - 2**19  # the position of a neighbour, and of the next one of the same thread, fit 32 bits
CLASSES = ((32, 4, 4, 256), (512, 32, 8, 128), (8192, 512, 16, 512))  # most paths; threads of a team, group, block
MOST_THREADS, MOST_WIDTH = 1024, 16  # the same where x has more paths
BLOCKS = 2112  # of a class with hash tables
COUNT, ADD, CLEAR = 0, 1, 2  # what is done with the counters
THREAD_US, PATH_US = 20, 6  # microseconds in the simulator: of a thread for a vertex x, of a path


class Paths(NamedTuple):
    """The graph, as `adjacency` returns it, and the counters of a team."""

    row_ptr: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    edge: np.ndarray
    in_shared: np.ndarray  # from `begin` on: the vertices of a hash table, if there is one, and the counters
    begin: int
    slots: int  # counters in shared memory; a power of 2 in a hash table
    first: int  # the first vertex with a counter in shared memory, at in_shared[begin]; -1: there is a hash table
    in_global: np.ndarray  # the counters of vertices below `first`, from in_global[begin_global] on
    begin_global: int


@cuda.jit(device=True)
def counter_of(paths, u):
    """The place of a vertex's counter in shared memory; -1 if it is in global memory."""
    if paths.first >= 0:
        return paths.begin + u - paths.first if u >= paths.first else -1
    slot = (uint32(u) * HASH_FACTOR) >> 16 & (paths.slots - 1)
    owner = cuda.atomic.cas(paths.in_shared, paths.begin + slot, EMPTY, u)
    while owner != EMPTY and owner != u:
        slot = (slot + 1) & (paths.slots - 1)
        owner = cuda.atomic.cas(paths.in_shared, paths.begin + slot, EMPTY, u)
    return paths.begin + paths.slots + slot


@cuda.jit(device=True)
def visit_paths(paths, x, team, width, what, found):
    """Go over the paths x, v, u with u and v smaller than x, shared by the threads of the team.

    COUNT: add 1 to the counter of each u; return the number of cycles that this thread finds.
    ADD: add to the two edges of each path how many other paths go from x to u.
    CLEAR: set the counters in global memory to 0.
    """
    lane, count = cuda.threadIdx.x & (width - 1), int64(0)
    group = uint32(((1 << width) - 1) << (cuda.threadIdx.x & 31 & -width))  # a mask
    p = uint32(paths.indptr[x]) + (cuda.threadIdx.x & (team - 1)) // width
    last = uint32(paths.indptr[x]) + uint32(paths.row_ptr[x + 1]) - uint32(paths.row_ptr[x])
    while p < last:
        v, at_xv = paths.indices[p], int64(0)
        at, end = uint32(paths.indptr[v]) + lane, uint32(paths.row_ptr[v + 1]) + paths.edge[p]  # where x follows
        while at < end:
            u, others = paths.indices[at], int64(0)
            place = counter_of(paths, u)
            if what == COUNT and place >= 0:
                count += cuda.atomic.add(paths.in_shared, place, 1)
            elif what == COUNT:
                count += cuda.atomic.add(paths.in_global, paths.begin_global + u, 1)
            elif what == CLEAR and place >= 0:
                end = at  # the counters of all that follow are in shared memory, too
            elif what == CLEAR:
                paths.in_global[paths.begin_global + u] = 0
            elif place >= 0:
                others = paths.in_shared[place] - 1
            else:
                others = paths.in_global[paths.begin_global + u] - 1
            if others > 0:
                cuda.atomic.add(found, paths.edge[at], others)
                at_xv += others
            at += width
        distance = width >> 1
        while what == ADD and distance > 0:
            at_xv += cuda.shfl_xor_sync(group, at_xv, distance)
            distance >>= 1
        if lane == 0 and at_xv > 0:
            cuda.atomic.add(found, paths.edge[p], at_xv)
        p += team // width
    return count


@cuda.jit(device=True)
def synchronize(team):
    """Wait for all threads of the team; all threads of the block call it."""
    if team > WARP:
        cuda.syncthreads()
    else:
        cuda.syncwarp()


@kernel(
    "void(int64[::1], int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int32, int32, int32, int32, "
    "int32[::1], int64[::1], int64[::1])",
    most_threads=MOST_THREADS,
)
def count_cycles(
    row_ptr, indptr, indices, edge, vertices, start, stop, team, width, slots, first, in_global, found, total
):
    """Teams take the vertices x in vertices[start:stop] in turns. The rest is explained at `Paths`."""
    in_shared = cuda.shared.array(0, int32)
    words, count = slots, int64(0)
    if first < 0:
        words += slots
    member, own = int32(cuda.threadIdx.x & (team - 1)), int32(cuda.threadIdx.x // team)
    begin, begin_global = own * words, int64(cuda.blockIdx.x) * max(first, 0)
    paths = Paths(row_ptr, indptr, indices, edge, in_shared, begin, slots, first, in_global, begin_global)
    teams, task = cuda.blockDim.x // team, start + int64(cuda.blockIdx.x) * (cuda.blockDim.x // team)
    while task < stop:
        for k in range(member, words, team):
            in_shared[begin + k] = EMPTY if k < words - slots else 0
        synchronize(team)
        what = COUNT
        while what <= CLEAR:
            if task + own < stop and (what == COUNT or what == ADD and found.size > 0 or what == CLEAR and first > 0):
                count += visit_paths(paths, vertices[task + own], team, width, what, found)
            synchronize(team)
            what += 1
        task += teams * cuda.gridDim.x
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1], int64[::1])")
def count_paths(col_ptr, row_idx, col_of, row_ptr, fewer):
    """A thread per nonzero (x, v): take the paths x, v, u over it from fewer[x]."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        v = col_of[e]
        cuda.atomic.add(fewer, row_idx[e], col_ptr[v] - e - (row_ptr[v + 1] - row_ptr[v]))


def plan(graph, at_edges=False):
    """The plan of the number of cycles of a graph in degree order, or of those at each edge."""
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for cycles on a GPU, which takes up to {MAX_EDGES:,}")
    row_ptr, indptr, indices, edge = adjacency(graph)
    xp, device = runtime.arrays_of(row_ptr), runtime.facts()
    fewer = runtime.device_array(graph.n, np.int64, 0)  # the most paths first
    columns = map(runtime.to_device_library, (graph.col_ptr, graph.row_idx, graph.col_of))
    run(count_paths, graph.m, *columns, row_ptr, fewer)
    fewer, vertices = xp.sort(fewer), xp.argsort(fewer).astype(np.int32)
    cuts = xp.searchsorted(fewer, xp.asarray([-1, *(-most for most, *_ in CLASSES)], fewer.dtype))
    stop, *starts = cuts.tolist()  # how many have more paths than 1, and more than each class has at most
    steps, visits = [], 0
    for start, (most, team, width, threads) in zip(starts, CLASSES, strict=True):
        slots = 2 * most
        shared = 4 * (slots + slots) * threads // team
        if start < stop and shared <= device.shared_per_block:
            of_class = {"team": team, "width": width, "slots": slots, "first": -1, "start": start, "stop": stop}
            steps.append(launch(count_cycles, (stop - start) * team, threads, BLOCKS, shared, **of_class))
            visits, stop = visits + max(threads, (stop - start) * team), start
    counters = 0
    if stop:
        slots, threads = min(graph.n, device.shared_per_block // 4), MOST_THREADS
        below, up_to = runtime.to_host(row_ptr[int(vertices[0]) :][:2]).tolist()
        while threads > WARP and threads > MOST_WIDTH * (up_to - below):
            threads //= 2
        first, blocks = graph.n - slots, min(stop, count_cycles.blocks_at_a_time(threads, 4 * slots))
        blocks = max(1, min(blocks, runtime.memory_free() // 4 // (4 * first + 1)))
        of_others = {"team": threads, "width": MOST_WIDTH, "slots": slots, "first": first, "start": 0, "stop": stop}
        steps.append(launch(count_cycles, blocks * threads, threads, blocks, 4 * slots, **of_others))
        visits, counters = visits + stop * threads, blocks * first
    work = THREAD_US * visits + PATH_US * -int(fewer.sum()) if runtime.estimates_time else 0
    kind = partial(ArrayPlan, output="found") if at_edges else Plan
    return kind(
        method="cycles of 4",
        copied={"row_ptr": row_ptr, "indptr": indptr, "indices": indices, "edge": edge, "vertices": vertices},
        created={"in_global": (counters, np.int32, 0), "found": (graph.m * at_edges, np.int64, 0)},
        steps=steps,
        work=work * (1 + at_edges),
    )
