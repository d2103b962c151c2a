"""Tiles: which rows of a column are neighbours of each other, in bits. `cliques` reads them.

The rows of a column are taken in groups of 32. Tile (a, b) of a column, a <= b, has a word for each row of group a: its
bits say which rows of group b are neighbours of that row and come after it. So a warp reads or writes a tile by one
access of 128 bytes. A column of up to 32 b rows has b (b + 1) / 2 tiles, in the order (0, 0), (0, 1), (1, 1), (0, 2),
... Columns in which no clique can begin have none.

The tiles of all columns may take more memory than a device has. So columns are taken in chunks, each after the other:

    list_tiles    a thread per tile: of which column it is, and which one of it
    fill_tiles    a warp per tile: an edge is looked up for each of its bits. If its smaller end is a hub, that is a bit
                  of the hub's row of bits, which `fill_hub_rows` makes once; else a binary search in its column

A warp takes one tile, however long the column: so the longest columns are shared by all blocks.
"""

from itertools import pairwise

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import run
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.search import contains, last_up_to
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.prefix_sum import scan

HUBS = 1 << 14  # the last vertices, at most, that have rows of bits: 32 MiB of them
POOL, TILE_BYTES = 1 << 20, 4 * 32 + 8  # tiles of a chunk: 128 MiB of bits; more if a single column has more
MOST_GROUPS = 1 << 12  # of a column: in degree order 2^32 edges make at most 2,897


# ----------------------------------------------------------------------------------------------------- device functions


@cuda.jit(device=True)
def tile_number(a, b):
    """The number of tile (a, b) among those of its column."""
    return b * (b + 1) // 2 + a


@cuda.jit(device=True)
def groups_of(col_ptr, u):
    """How many groups of rows column u has."""
    return (uint32(col_ptr[u + 1]) - uint32(col_ptr[u]) + 31) >> 5


@cuda.jit(device=True)
def transposed(word):
    """The tile with rows and bits exchanged: bit r of lane b's result is bit b of lane r's word."""
    lane, distance, mask = cuda.threadIdx.x & 31, uint32(16), uint32(0xFFFF)
    while distance > 0:
        other = cuda.shfl_xor_sync(ALL_LANES, word, distance)
        if lane & distance:
            word = (word & ~mask) | (other >> distance & mask)
        else:
            word = (word & mask) | (other & mask) << distance
        distance >>= 1
        mask ^= mask << distance
    return word


@cuda.jit(device=True)
def searched_bits(col_ptr, row_idx, mine, rows, w):
    """In this lane's word, bit r: is w in the column of the vertex that lane r has in `mine`; for r < rows."""
    begin, end = column_bounds(col_ptr, mine)
    word, r = uint32(0), uint32(0)
    while r < rows:
        first, length = cuda.shfl_sync(ALL_LANES, begin, r), cuda.shfl_sync(ALL_LANES, end - begin, r)
        if length > 0:
            word |= uint32(contains(row_idx, first, length, w)) << r
        r += 1
    return word


@cuda.jit(device=True)
def hub_bits(hub_rows, words, first_hub, mine, w):
    """The same of hubs, by their rows of bits; bits of other lanes mean nothing. words: of a row."""
    own, bit = uint32(max(mine, first_hub) - first_hub) * words, uint32(max(w, first_hub) - first_hub)
    word, place = uint32(0), bit >> 5
    for r in range(WARP):
        word |= (hub_rows[cuda.shfl_sync(ALL_LANES, own, r) + place] >> (bit & 31) & 1) << uint32(r)
    return word


# ---------------------------------------------------------------------------------------------------------- the kernels


@kernel("void(int64[::1], int32[::1], int32, uint32[::1])")
def fill_hub_rows(col_ptr, row_idx, first_hub, hub_rows):
    """A warp per hub: set the bits of its neighbours, which are hubs with larger numbers."""
    hubs = uint32(col_ptr.size - 1 - first_hub)
    words, warps = (hubs + 31) >> 5, uint32(cuda.gridsize(1)) // WARP
    hub = uint32(cuda.grid(1)) // WARP
    while hub < hubs:
        p, end = column_bounds(col_ptr, int64(first_hub) + hub)
        p += cuda.threadIdx.x & 31
        while p < end:
            bit = uint32(row_idx[p] - first_hub)
            cuda.atomic.or_(hub_rows, hub * words + (bit >> 5), uint32(1) << (bit & 31))
            p += WARP
        hub += warps


@kernel("void(int64[::1], int64, int64, int32[::1], uint32[::1])")
def list_tiles(tile_ptr, first, count, tile_column, tile_place):
    """A thread per tile of the chunk that begins with tile `first`: write its column, and its (a, b) as a | b << 16."""
    for t in range(cuda.grid(1), count, cuda.gridsize(1)):
        u = last_up_to(tile_ptr, 0, tile_ptr.size - 1, first + t)
        number, b, step = uint32(first + t - tile_ptr[u]), uint32(0), uint32(MOST_GROUPS >> 1)
        while step > 0:
            if tile_number(0, b + step) <= number:
                b += step
            step >>= 1
        tile_column[t], tile_place[t] = u, (number - tile_number(0, b)) | b << 16


@kernel("void(int64[::1], int32[::1], uint32[::1], int32, int32[::1], uint32[::1], int64, uint32[::1])")
def fill_tiles(col_ptr, row_idx, hub_rows, first_hub, tile_column, tile_place, count, tiles):
    """A warp per tile: a lane has a row v of group a and a row w of group b. All lanes look at one v at a time."""
    lane, t = cuda.threadIdx.x & 31, uint32(cuda.grid(1)) // WARP
    words = (uint32(col_ptr.size - 1 - first_hub) + 31) >> 5
    while t < count:
        place = tile_place[t]
        begin, end = column_bounds(col_ptr, tile_column[t])
        a, b = begin + 32 * (place & 0xFFFF), begin + 32 * (place >> 16)
        v, w = row_idx[min(a + lane, end - 1)], row_idx[min(b + lane, end - 1)]
        rows, word = min(end - a, uint32(WARP)), uint32(0)
        searched = uint32(cuda.popc(cuda.ballot_sync(ALL_LANES, lane < rows and v < first_hub)))  # hubs are behind
        if searched < rows:
            word = hub_bits(hub_rows, words, first_hub, v, w) >> searched << searched
        if searched > 0:
            word |= searched_bits(col_ptr, row_idx, v, searched, w)
        if b + lane >= end:
            word = uint32(0)
        word = transposed(word)
        if lane >= rows:
            word = uint32(0)
        tiles[32 * t + lane] = word
        t += uint32(cuda.gridsize(1)) // WARP


@kernel("void(int64[::1], int64, int64[::1])")
def count_tiles(col_ptr, rows, counts):
    """A thread per column: how many tiles it has."""
    for u in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[u] = tile_number(0, groups_of(col_ptr, u)) if col_ptr[u + 1] - col_ptr[u] >= rows else 0


def chunks(graph, rows):
    """`tile_ptr`, whose element u is the first tile of column u; and (first tile, number of tiles) of each chunk.

    rows: how many rows a column needs to have tiles.
    """
    xp, n = runtime.arrays_of(graph.col_ptr), graph.n
    counts, tile_ptr = runtime.device_array(n, np.int64), runtime.device_array(n + 1, np.int64)
    run(count_tiles, n, runtime.to_device_library(graph.col_ptr), rows, counts)
    scan(counts, tile_ptr)
    pool, tiles = min(POOL, runtime.memory_free() // 4 // TILE_BYTES), int(tile_ptr[-1])
    cuts, place = [0], lambda tile: int(xp.searchsorted(tile_ptr, xp.asarray([tile]), "right")[0])
    while tiles - cuts[-1] > pool:  # as many columns as have no more tiles, or else one
        cuts.append(int(tile_ptr[max(place(cuts[-1] + pool) - 1, place(cuts[-1]))]))
    if cuts[-1] < tiles:
        cuts.append(tiles)
    return tile_ptr, [(first, end - first) for first, end in pairwise(cuts)]
