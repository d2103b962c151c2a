"""Graphs of so few vertices that a bit for each pair of them takes little memory: counted in a matrix of bits.

Row j has bit i for each edge j < i, so the bits that rows i and j share are the triangles j < i < k of that edge.

    tiles_kernel   a block per 64 x 64 pairs of rows, with or without an edge: a thread has 4 x 4 pairs, for which it
                   reads 4 + 4 words at a time from shared memory. For dense graphs
    edges_kernel   a warp per raw edge, a lane per word of its rows
    few_kernel     sets the bits and counts tiles in one launch, before the host knows how many vertices there are

Rows take raw edges as they are: an edge that is repeated sets its bit again. So a count of raw edges neither sorts them
nor makes columns.
"""

from typing import Any, NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.gpu_costs import DENSE_RAW
from tcgpu.kernels import Plan, launch
from tcgpu.kernels.device.grid import arrive, wait_for_grid
from tcgpu.kernels.device.warp import add_warps_to
from tcgpu.kernels.orientation import ENDS, MOST_THREADS, raise_extent

MOST_ROWS = 1 << 14  # of so many vertices they take 32 MB
TILE = 64  # rows: a side of a tile
SIDE = 16  # threads: a side of a block, of which each has 4 x 4 pairs of rows
WORDS = 32  # of each row that a block holds in shared memory at a time,
PLACES = WORDS + 1  # in so many places, so that a column of words is in different banks
TILE_BYTES = 4 * 2 * TILE * PLACES
MOST_FEW = 1 << 11  # vertices that `few_kernel` counts, at most


@kernel(*(f"void({ends}, int64, uint32[::1], int32[::1])" for ends in ENDS))
def fill_bits(u, v, stride, bits, new):
    """A thread per raw edge: set bit i of row j, and say whether it is `new`, if that has room."""
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        j, i = int64(min(u[e], v[e])), int64(max(u[e], v[e]))
        bit = uint32(1) << uint32(i & 31)
        before = bit  # of a loop
        if i != j:
            before = cuda.atomic.or_(bits, j * stride + (i >> 5), bit)
        if new.size > 0:
            new[e] = before & bit == 0


@kernel(*(f"void({ends}, int32[::1], int64, uint64[::1], int64[::1])" for ends in ENDS))
def edges_kernel(u, v, new, stride, words, total):
    """A warp per new edge. stride: of the rows, which are `words` of 64 bits."""
    e, lane, found = cuda.grid(1) >> 5, cuda.threadIdx.x & 31, int64(0)
    while e < u.size:
        if new[e] != 0:
            j, i = int64(min(u[e], v[e])), int64(max(u[e], v[e]))
            k = (i >> 6) + lane
            while k < stride:
                found += cuda.popc(words[i * stride + k] & words[j * stride + k])
                k += 32
        e += cuda.gridsize(1) >> 5
    add_warps_to(total, found)


@cuda.jit(device=True)
def read_rows(bits, first, stride, begin, end, shared, at):
    """The block copies words from `begin` on of TILE rows to shared memory, from `at` on; 0 from word `end` on."""
    lane = uint32(cuda.threadIdx.x & 31)
    for row in range(uint32(cuda.threadIdx.x >> 5), TILE, SIDE * SIDE // 32):
        word = uint32(0)
        if begin + lane < end:
            word = bits[(first + row) * stride + begin + lane]
        shared[at + row * PLACES + lane] = word


@cuda.jit(device=True)
def triangles_of_tile(bits, stride, end, first_i, first_j):
    """The triangles of this thread's pairs of rows in the tile from rows first_i and first_j on, whose words begin
    `stride` apart, and are 0 from word `end` on.

    Two words at a time are added to the ones and twos of a pair of rows, as binary adders do, so that bits are counted
    half as often.
    """
    shared, found = cuda.shared.array(0, uint32), int64(0)
    ones, twos = cuda.local.array(16, uint32), cuda.local.array(16, int32)
    stride, end, first_i, first_j = uint32(stride), uint32(end), uint32(first_i), uint32(first_j)
    x, y = uint32(cuda.threadIdx.x % SIDE), uint32(cuda.threadIdx.x // SIDE)
    for pair in range(16):
        ones[pair], twos[pair] = 0, 0
    begin = first_i >> 5
    while begin < end:
        cuda.syncthreads()
        read_rows(bits, first_i, stride, begin, end, shared, 0)
        read_rows(bits, first_j, stride, begin, end, shared, TILE * PLACES)
        cuda.syncthreads()
        for word in range(0, WORDS, 2):
            for a in range(4):
                at = (x + SIDE * a) * PLACES + word
                one, other = shared[at], shared[at + 1]
                for b in range(4):
                    at = (TILE + y + SIDE * b) * PLACES + word
                    p, q, r = one & shared[at], other & shared[at + 1], ones[4 * a + b]
                    twos[4 * a + b] += cuda.popc((p & q) | (r & (p | q)))
                    ones[4 * a + b] = p ^ q ^ r
        begin += uint32(WORDS)
    for a in range(4):
        for b in range(4):
            i, j = first_i + x + SIDE * a, first_j + y + SIDE * b
            if (bits[j * stride + (i >> 5)] >> (i & 31)) & 1:
                found += 2 * twos[4 * a + b] + cuda.popc(ones[4 * a + b])
    return found


@kernel("void(uint32[::1], int64, int64[::1])", most_threads=SIDE * SIDE)
def tiles_kernel(bits, tiles, total):
    """A block per tile: rows i of one group of TILE and rows j of the same group, or one before it."""
    found, stride, tile = int64(0), uint32(2 * tiles), int64(cuda.blockIdx.x)
    while tile < tiles * tiles:
        first_i, first_j = uint32(tile // tiles * TILE), uint32(tile % tiles * TILE)
        if first_j <= first_i:
            found += triangles_of_tile(bits, stride, stride, first_i, first_j)
        tile += cuda.gridDim.x
    add_warps_to(total, found)


@kernel(
    *(f"void({ends}, uint32[::1], int64[::1], int64[::1], int64[::1])" for ends in ENDS),
    most_threads=(MOST_THREADS, 1), cooperative=True,
)  # fmt: skip
def few_kernel(u, v, bits, extent, arrived, total):
    """A thread per raw edge, then a block per tile: a whole count in one launch, of at most MOST_FEW vertices.

    bits: MOST_FEW rows, 0 before. extent: as find_extent raises it; if there are more vertices, nothing is counted.
    arrived: as in `device.grid`.
    """
    below, high, e = int64(-1), int64(-1), cuda.grid(1)
    while e < u.size and below < 0 and high < MOST_FEW:
        a, b = int64(u[e]), int64(v[e])
        below, high = max(below, ~a, ~b), max(high, a, b)
        if below < 0 and high < MOST_FEW and a != b:
            j, i = min(a, b), max(a, b)
            cuda.atomic.or_(bits, j * (MOST_FEW // 32) + (i >> 5), uint32(1) << uint32(i & 31))
        e += cuda.gridsize(1)
    for rest in range(e, u.size, cuda.gridsize(1)):  # no bits any more: several edges are read at a time
        below, high = max(below, ~int64(u[rest]), ~int64(v[rest])), max(high, int64(u[rest]), int64(v[rest]))
    if raise_extent(extent, below, high) >= MOST_FEW:  # too many vertices: this block waits for no other
        if cuda.threadIdx.x == 0:
            arrive(arrived)
        return
    wait_for_grid(arrived)
    tiles, found = uint32(extent[1] + TILE) // TILE, int64(0)
    if extent[0] >= 0 or extent[1] >= MOST_FEW:
        tiles = uint32(0)
    i, j = uint32(0), uint32(cuda.blockIdx.x)  # groups of rows
    while i < tiles:
        if j <= i:
            found += triangles_of_tile(bits, MOST_FEW // 32, 2 * tiles, TILE * i, TILE * j)
            j += uint32(cuda.gridDim.x)
        else:
            j -= i + uint32(1)
            i += uint32(1)
    add_warps_to(total, found)


class RawEdges(NamedTuple):
    """Edges on the device with vertices 0 to n - 1, and how many triangles they have, if that is known."""

    u: Any
    v: Any
    n: int
    found: int | None = None


class Counted:
    """A count that has been made. Its Plan, of the same launch, is made when anything else of it is read."""

    def __init__(self, edges):
        self.edges = edges

    def count(self):
        return self.edges.found

    def __getattr__(self, name):
        copied, rows = {"u": self.edges.u, "v": self.edges.v}, (MOST_FEW**2 // 32, np.uint32, 0)
        created = {"bits": rows, "extent": (2, np.int64, -1), "arrived": (1, np.int64, 0)}
        return getattr(Plan(method="adaptive", copied=copied, created=created, steps=[few_launch()]), name)


def few_launch():
    """The launch of `few_kernel`: a block on each SM. With two or four, they wait longer for each other."""
    blocks = few_kernel.blocks_at_a_time(SIDE * SIDE, TILE_BYTES)
    return launch(few_kernel, blocks * SIDE * SIDE, SIDE * SIDE, blocks, TILE_BYTES)


def count_few(u, v):
    """What `few_kernel` finds of edges on the device: (extent[0], extent[1], triangles)."""
    arrays = runtime.device_array(4 + MOST_FEW**2 // 64, np.int64, 0)
    found, extent = arrays[:3], arrays[:2]
    runtime.refill(extent, -1)
    given = {"u": u, "v": v, "bits": arrays[4:].view(np.uint32), "extent": extent, "total": arrays[2:3]}
    few_launch().run(given | {"arrived": arrays[3:4]})
    return runtime.reading(found)().tolist()


def is_dense(n, edges):
    """Whether tiles are faster than a warp per edge."""
    return DENSE_RAW * edges >= n * n


def plan(u, v, n, by_tiles):
    """The count of edges; distinct ones, unless they are raw."""
    tiles = -(-n // TILE)
    count = launch(tiles_kernel, tiles * tiles * SIDE * SIDE, SIDE * SIDE, 2**20, TILE_BYTES, tiles=tiles)
    if not by_tiles:
        count = launch(edges_kernel, 32 * u.size, 256, 16896, stride=tiles)
    return Plan(
        method="adaptive",
        copied={"u": u, "v": v},
        created={"bits": (2 * TILE * tiles * tiles, np.uint32, 0), "new": (0 if by_tiles else u.size, np.int32, None)},
        views={"words": ("bits", np.uint64)},
        setup=[launch(fill_bits, u.size, 256, stride=2 * tiles)],
        steps=[count],
    )
