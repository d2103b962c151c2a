"""Graphs of so few vertices that a bit for each pair of them takes little memory: counted in a matrix of bits.

Row j has bit i for each edge j < i, so the bits that rows i and j share are the triangles j < i < k of that edge.

    tiles_kernel   a block per 64 x 64 pairs of rows, with or without an edge: a thread has 4 x 4 pairs, for which it
                   reads 4 + 4 words at a time from shared memory. For dense graphs
    edges_kernel   a warp per raw edge, a lane per word of its rows

Rows take raw edges as they are: an edge that is repeated sets its bit again. So a count of raw edges neither sorts them
nor makes columns.
"""

from typing import Any, NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.gpu_costs import DENSE_RAW
from tcgpu.kernels import Plan, launch
from tcgpu.kernels.device.warp import add_warps_to
from tcgpu.kernels.orientation import ENDS

MOST_ROWS = 1 << 14  # of so many vertices they take 32 MB
TILE = 64  # rows: a side of a tile
SIDE = 16  # threads: a side of a block, of which each has 4 x 4 pairs of rows
WORDS = 32  # of each row that a block holds in shared memory at a time,
PLACES = WORDS + 1  # in so many places, so that a column of words is in different banks
TILE_BYTES = 4 * 2 * TILE * PLACES


@kernel(*(f"void({ends}, int64, uint32[::1], int32[::1])" for ends in ENDS))
def fill_bits(u, v, stride, bits, new):
    """A thread per raw edge: set bit i of row j, and say whether it is `new`, unless nobody asks."""
    e = cuda.grid(1)
    while e < u.size:
        j, i = int64(min(u[e], v[e])), int64(max(u[e], v[e]))
        bit = uint32(1) << uint32(i & 31)
        before = bit  # of a loop
        if i != j:
            before = cuda.atomic.or_(bits, j * stride + (i >> 5), bit)
        if new.size > 0:
            new[e] = before & bit == 0
        e += cuda.gridsize(1)


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
def read_rows(bits, first, stride, begin, shared, at):
    """The block copies words from `begin` on of TILE rows to shared memory, from `at` on; 0 past a row's end."""
    lane = uint32(cuda.threadIdx.x & 31)
    for row in range(uint32(cuda.threadIdx.x >> 5), TILE, SIDE * SIDE // 32):
        word = uint32(0)
        if begin + lane < stride:
            word = bits[(first + row) * stride + begin + lane]
        shared[at + row * PLACES + lane] = word


@kernel("void(uint32[::1], int64, int64[::1])", most_threads=SIDE * SIDE)
def tiles_kernel(bits, tiles, total):
    """A block per tile: rows i of one group of TILE and rows j of the same group, or one before it.

    Two words at a time are added to the ones and twos of a pair of rows, as binary adders do, so that bits are counted
    half as often.
    """
    shared, found = cuda.shared.array(0, uint32), int64(0)
    ones, twos = cuda.local.array(16, uint32), cuda.local.array(16, int32)
    x, y = uint32(cuda.threadIdx.x % SIDE), uint32(cuda.threadIdx.x // SIDE)
    stride, tile = uint32(2 * tiles), int64(cuda.blockIdx.x)
    while tile < tiles * tiles:
        first_i, first_j = uint32(tile // tiles * TILE), uint32(tile % tiles * TILE)
        if first_j <= first_i:
            for pair in range(16):
                ones[pair], twos[pair] = 0, 0
            begin = first_i >> 5
            while begin < stride:
                cuda.syncthreads()
                read_rows(bits, first_i, stride, begin, shared, 0)
                read_rows(bits, first_j, stride, begin, shared, TILE * PLACES)
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
        tile += cuda.gridDim.x
    add_warps_to(total, found)


class RawEdges(NamedTuple):
    """Edges on the device with vertices 0 to n - 1."""

    u: Any
    v: Any
    n: int


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
