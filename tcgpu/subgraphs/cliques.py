"""Count the cliques of k vertices, 4 <= k <= 8, at their first vertex u: cliques of k - 1 rows of column u.

Contract: a graph in degree order, which makes the longest column short, of any kind. `total` gets the number of
cliques, an int64; at edges, for k = 4, `found` gets twice the cliques of each edge, int64, too. The kernels read the
tiles of the columns (see `tiles`), chunk after chunk.

4 vertices: rows i and j of a column that are neighbours are in as many cliques u, i, j, l as their rows of bits have
bits in common. A warp takes a tile (a, b), whose bits are the pairs i, j. It goes through the groups c of l: a lane has
the words of one i and one j for group c, and all 32 words of the i go round by shuffles.

4 vertices, at each edge: the same with all rows l, also those before i and j, and a counter for each pair i, j. The
edge (i, j) is in as many cliques of u as it counts. The edge (u, i) is in half of what all pairs with i count, as each
clique has two of them. So the edge (i, j) gets twice its counter, and the result is halved.

More: a warp takes a tile and its pairs i, j one after the other. The common bits of both, in shared memory, are a set
of rows. One row after the other is chosen from it, which leaves a smaller set, until two rows are to be chosen: that is
the number of neighbours in the set, by lanes with a row each. A set gets one word for each group of the column.
"""

from functools import partial

import numpy as np

from tcgpu import cpu
from tcgpu.arrays import bincount
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.graph import as_graph
from tcgpu.kernels import ArrayPlan, Plan, check_positions, launch
from tcgpu.kernels.device.bits import check_shared, restart
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device.warp import ALL_LANES, WARP, take_task
from tcgpu.subgraphs import tiles
from tcgpu.subgraphs.tiles import fill_hub_rows, fill_tiles, groups_of, list_tiles, tile_number, transposed

LEAST, MOST = 4, 8  # vertices of a clique
THREADS, BLOCKS = 128, 8448
TILE_US, SET_US = 6000, 450  # microseconds in the simulator: of a tile, and of a set
MOST_SIMULATED = 10_000  # of more, the simulator takes minutes, whatever their sets are


@kernel("void(int64[::1], int64[::1], int64, int32[::1], uint32[::1], int64, uint32[::1], int64[::1])")
def count_fours(col_ptr, tile_ptr, first, tile_column, tile_place, count, tiles, total):
    """A warp per tile: count cliques of 4 vertices."""
    lane, t, found = cuda.threadIdx.x & 31, uint32(cuda.grid(1)) // WARP, int64(0)
    while t < count:
        u, place = tile_column[t], tile_place[t]
        a, b, begin, groups = place & 0xFFFF, place >> 16, uint32(tile_ptr[u] - first), groups_of(col_ptr, u)
        joined = transposed(tiles[32 * t + lane])  # bit i of lane j
        if cuda.any_sync(ALL_LANES, joined != 0):
            c, common = b, uint32(0)
            while c < groups:
                of_i = tiles[32 * (begin + tile_number(a, c)) + lane]
                of_j = tiles[32 * (begin + tile_number(b, c)) + lane]
                for i in range(WARP):
                    chosen = uint32(0) - (joined >> uint32(i) & 1)  # all bits, or none
                    common += cuda.popc(cuda.shfl_sync(ALL_LANES, of_i, i) & of_j & chosen)
                c += 1
            found += common
        t += uint32(cuda.gridsize(1)) // WARP
    add_block_to(total, found)


@cuda.jit(device=True)
def bits_of(tiles, begin, a, c):
    """Of each lane's row of group a: which rows of group c are neighbours of it, before it or after it."""
    lane, bits = cuda.threadIdx.x & 31, uint32(0)
    if a <= c:
        bits = tiles[32 * (begin + tile_number(a, c)) + lane]
    if c <= a:
        bits |= transposed(tiles[32 * (begin + tile_number(c, a)) + lane])
    return bits


@kernel("void(int64[::1], int32[::1], int64[::1], int64, int32[::1], uint32[::1], int64, uint32[::1], int64[::1])")
def fours_at_edges(col_ptr, row_idx, tile_ptr, first, tile_column, tile_place, count, tiles, found):
    """A warp per tile: add to the edges of each clique of 4 vertices. A warp has a counter for each pair i, j."""
    counters = cuda.shared.array(0, uint32)
    lane, t = cuda.threadIdx.x & 31, uint32(cuda.grid(1)) // WARP
    own = 32 * (cuda.threadIdx.x - lane)  # the counter of bits i and j is own + 32 i + j
    while t < count:
        u, place = tile_column[t], tile_place[t]
        a, b, begin, groups = place & 0xFFFF, place >> 16, uint32(tile_ptr[u] - first), groups_of(col_ptr, u)
        at_i, at_j = uint32(col_ptr[u]) + 32 * a, uint32(col_ptr[u]) + 32 * b  # the edges of u and these groups
        joined = transposed(tiles[32 * t + lane])  # bit i of lane j
        if cuda.any_sync(ALL_LANES, joined != 0):
            for i in range(WARP):
                counters[own + 32 * i + lane] = 0
            for c in range(groups):
                of_i, of_j = bits_of(tiles, begin, a, c), bits_of(tiles, begin, b, c)
                for i in range(WARP):
                    chosen = uint32(0) - (joined >> uint32(i) & 1)
                    common = cuda.popc(cuda.shfl_sync(ALL_LANES, of_i, i) & of_j & chosen)
                    counters[own + 32 * i + lane] += common
            cuda.syncwarp()
            of_lane_i, of_lane_j = int64(0), int64(0)
            for i in range(WARP):
                of_lane_i += counters[own + 32 * lane + (lane + i & 31)]  # so that no two lanes read the same bank
                common = counters[own + 32 * i + lane]
                if common != 0:
                    v = row_idx[at_i + i]
                    at_ij = first_from(row_idx, col_ptr[v], col_ptr[v + 1], row_idx[at_j + lane])
                    cuda.atomic.add(found, at_ij, 2 * int64(common))
                    of_lane_j += common
            if of_lane_i != 0:
                cuda.atomic.add(found, at_i + lane, of_lane_i)
            if of_lane_j != 0:
                cuda.atomic.add(found, at_j + lane, of_lane_j)
            cuda.syncwarp()
        t += uint32(cuda.gridsize(1)) // WARP


@cuda.jit(device=True)
def neighbours_within(tiles, begin, groups, sets, at, first):
    """This lane's share of the pairs of neighbours in the set sets[at:at + groups]; groups before `first` are empty."""
    lane, b, count = cuda.threadIdx.x & 31, first, int64(0)
    while b < groups:
        bits = sets[at + b]
        if bits != 0:
            chosen, c = uint32(0) - (bits >> lane & 1), b
            while c < groups:
                count += cuda.popc(sets[at + c] & tiles[32 * (begin + tile_number(b, c)) + lane] & chosen)
                c += 1
        b += 1
    return count


@cuda.jit(device=True)
def first_group(sets, at, first, groups):
    """The first group from `first` on in which the set sets[at:at + groups] has a row; or one from `groups` on."""
    lane, some = cuda.threadIdx.x & 31, uint32(0)
    while first < groups and some == 0:
        some = cuda.ballot_sync(ALL_LANES, first + lane < groups and sets[at + min(first + lane, groups - 1)] != 0)
        first += cuda.ffs(some) - 1 if some != 0 else uint32(WARP)
    return first


@cuda.jit(device=True)
def cliques_within(tiles, begin, groups, sets, at, first, size):
    """This lane's share of the cliques of `size` > 1 rows in a set; the sets that are left of it come behind it.

    A row that was chosen is taken out of its set: all cliques that it is the first row of are counted.
    """
    lane, depth, count = cuda.threadIdx.x & 31, int64(0), int64(0)
    while depth >= 0:
        own = at + uint32(depth) * groups
        b = groups
        if depth + 2 == size:
            count += neighbours_within(tiles, begin, groups, sets, own, first)
        else:
            b = first_group(sets, own, first, groups)
        if b >= groups:
            depth -= 1
        else:
            bits, x = sets[own + b], first + lane
            row = cuda.ffs(bits) - 1
            while x < groups:
                left = uint32(0)
                if x >= b:
                    left = sets[own + x] & tiles[32 * (begin + tile_number(b, x)) + row]
                sets[own + groups + x] = left
                x += WARP
            cuda.syncwarp()
            if lane == 0:
                sets[own + b] = bits & (bits - 1)
            depth += 1
        cuda.syncwarp()
    return count


@kernel(
    "void(int64[::1], int64[::1], int64, int32[::1], uint32[::1], int64, uint32[::1], int64, int64, int64[::1], "
    "int64[::1])"
)
def count_larger(col_ptr, tile_ptr, first, tile_column, tile_place, count, tiles, k, words, queue, total):
    """Warps take tiles from a queue: count cliques of k > 4 vertices. words: of shared memory for a warp's sets."""
    sets = cuda.shared.array(0, uint32)
    lane, at, found = cuda.threadIdx.x & 31, cuda.threadIdx.x // WARP * uint32(words), int64(0)
    t = cuda.shfl_sync(ALL_LANES, take_task(queue, 0), 0)
    while t < count:
        u, place = tile_column[t], tile_place[t]
        a, b, begin, groups = place & 0xFFFF, place >> 16, uint32(tile_ptr[u] - first), groups_of(col_ptr, u)
        mine = tiles[32 * uint32(t) + lane]
        rows = cuda.ballot_sync(ALL_LANES, mine != 0)
        while rows != 0:
            i = cuda.ffs(rows) - 1
            rows &= rows - 1
            bits = cuda.shfl_sync(ALL_LANES, mine, i)
            while bits != 0:
                j, x = cuda.ffs(bits) - 1, b + lane
                bits &= bits - 1
                while x < groups:
                    of_i = tiles[32 * (begin + tile_number(a, x)) + i]
                    sets[at + x] = of_i & tiles[32 * (begin + tile_number(b, x)) + j]
                    x += WARP
                cuda.syncwarp()
                found += cliques_within(tiles, begin, groups, sets, at, b, k - 3)
                cuda.syncwarp()
        t = cuda.shfl_sync(ALL_LANES, take_task(queue, 0), 0)
    add_block_to(total, found)


def plan(graph, k, at_edges=False):
    """The plan of the number of cliques of k vertices, of a graph in degree order; or, for k = 4, of those at edges."""
    if not LEAST <= k <= MOST:
        raise GraphError(f"cliques of up to {MOST} vertices are counted on a GPU, not of {k}: take engine='cpu'")
    check_positions(graph, "cliques on a GPU")
    tile_ptr, chunks = tiles.chunks(graph, k - 1)
    most, hubs = max((count for _, count in chunks), default=0), min(tiles.HUBS, graph.n) if chunks else 0
    first_hub, threads, words = graph.n - hubs, THREADS, (k - LEAST) * (graph.max_column + 31 >> 5)
    while threads > WARP and threads // WARP * 4 * words > 1 << 15:  # so that several blocks fit an SM
        threads //= 2
    shared = check_shared("cliques", "a set of rows", threads // WARP * 4 * words)
    steps = [launch(fill_hub_rows, WARP * hubs, THREADS, first_hub=first_hub)] if hubs else []
    for first, count in chunks:
        of_chunk = {"first": first, "count": count}
        steps.append(launch(list_tiles, count, THREADS, **of_chunk))
        steps.append(launch(fill_tiles, WARP * count, THREADS, BLOCKS, first_hub=first_hub, count=count))
        if at_edges:
            steps.append(launch(fours_at_edges, WARP * count, THREADS, BLOCKS, 4 * WARP * THREADS, **of_chunk))
        elif k == LEAST:
            steps.append(launch(count_fours, WARP * count, THREADS, BLOCKS, **of_chunk))
        else:
            larger = launch(count_larger, WARP * count, threads, BLOCKS, shared, k=k, words=words, **of_chunk)
            steps += [launch(restart, 1, 1), larger]
    kind = partial(ArrayPlan, output="found", halved=True) if at_edges else Plan
    return kind(
        method="cliques",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "tile_ptr": tile_ptr},
        created={
            "hub_rows": (hubs * (hubs + 31 >> 5), np.uint32, 0),
            "tile_column": (most, np.int32, None),
            "tile_place": (most, np.uint32, None),
            "tiles": (32 * most, np.uint32, None),
            "queue": (1, np.int64, None),
            "found": (graph.m * at_edges, np.int64, 0),
        },
        steps=steps,
        work=simulated_work(graph, k, sum(count for _, count in chunks)) * (1 + at_edges),
    )


def simulated_work(graph, k, many):
    """Microseconds in the simulator. many: tiles."""
    if not runtime.estimates_time:
        return 0
    sets = sets_of_rows(as_graph(graph), k - 3) if k > LEAST and 0 < many <= MOST_SIMULATED else 0
    return int(TILE_US * many + SET_US * sets)


def sets_of_rows(graph, most):
    """Sets of 2 to `most` rows of a column that are cliques, at most: as many as where its edges make up one clique."""
    sets, edges = 0.0, np.zeros(graph.n)
    for found in cpu.list_triangles(graph, 1 << 20, "natural"):
        edges += bincount(found[:, 0], minlength=graph.n)
    rows = np.sqrt(2 * edges + 0.25) + 0.5
    for size in range(2, most + 1):
        sets += edges.sum()
        edges *= np.maximum(rows - size, 0) / (size + 1)
    return sets
