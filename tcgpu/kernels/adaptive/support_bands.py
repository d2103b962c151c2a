"""Graphs in natural order, where neighbours have close numbers: the triangles of each edge. See `support_plan`.

A vertex is banded if all of its neighbours, on either side, are within `words` words of 64 vertices; the others are
wide. Row v of `band_rows` has 2 * `words` uint64 with a bit for each of its neighbours; v itself is in word `words`.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint16, uint32, uint64
from tcgpu.kernels.adaptive.support_counters import IN_REGISTERS, Planes, add_eight, cleared, counter, store
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.warp import ALL_LANES, sum_up_to

LISTED = 1024  # neighbours that a warp lists at a time: the bits of 32 words


@kernel("void(int32[::1], int32[::1], int64, uint32[::1], int32[::1])")
def fill_band_rows(row_idx, col_of, words, band_rows32, wide):
    """A thread per nonzero (i, j): set bit i of row j and bit j of row i, or mark both vertices as wide."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            at = 2 * (2 * words * j + words + offset) + ((i >> 5) & 1)
            cuda.atomic.or_(band_rows32, at, 1 << (i & 31))
            at = 2 * (2 * words * i + words - offset) + ((j >> 5) & 1)
            cuda.atomic.or_(band_rows32, at, 1 << (j & 31))
        else:
            wide[i] = 1
            wide[j] = 1
        e += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1])")
def mark_open(row_idx, col_of, wide, open):
    """A thread per nonzero (i, j): mark column j as open if j or one of its rows is wide."""
    e = cuda.grid(1)
    while e < row_idx.size:
        if wide[row_idx[e]] or wide[col_of[e]]:
            open[col_of[e]] = 1
        e += cuda.gridsize(1)


class Bands(NamedTuple):
    """All rows of bits, and the memory where a warp lists the neighbours of a vertex."""

    rows: np.ndarray  # uint64
    rows32: np.ndarray  # the same memory as uint32
    words: int  # int32: half of the words of a row
    listed: np.ndarray  # uint16, in shared memory
    at: int  # where this warp's part of it begins


@cuda.jit(device=True)
def list_bits(bits, bands, lane):
    """List the numbers of the set bits of the warp's 32 words, all below LISTED; returns how many there are."""
    count = cuda.popc(bits)
    after = sum_up_to(count)
    at = bands.at + after - count
    cuda.syncwarp()
    while bits != 0:
        bands.listed[at] = 32 * lane + cuda.ffs(bits) - 1
        bits &= bits - 1
        at += 1
    cuda.syncwarp()
    return int32(cuda.shfl_sync(ALL_LANES, after, 31))


@cuda.jit(device=True)
def band_word(rows, mine, word, row, ahead, source):
    """This lane's word of another vertex's row; `row` and `ahead` are those of lane `source`. 0 past the row's end.

    mine: the position of the lane's word in row j. word: its number, counted from the word of j, less `words`. row: the
    distance in memory to the same word of the other row. ahead: how many words the other vertex is after j.
    """
    row, ahead = cuda.shfl_sync(ALL_LANES, row, source), cuda.shfl_sync(ALL_LANES, ahead, source)
    found = uint64(0)
    if word < ahead:
        found = rows[mine + row]
    return found


@cuda.jit(device=True)
def add_band_rows(bands, j, start, reach, fold, planes):
    """Add the rows of all neighbours of j to a warp's counters: words `start` to `reach`, counted from the word of j.

    2^fold lanes share a row. The warp lists the neighbours, of 32 words of row j at a time, then adds eight words a
    lane. Returns the number of neighbours.
    """
    rows, words, lane = bands.rows, bands.words, int32(cuda.threadIdx.x & 31)
    at_once, turn, in_word = 32 >> fold, lane >> fold, int32(j & 63)
    word = min(start + (lane & ((1 << fold) - 1)), reach - 1)
    mine = uint32(2 * words * j + words + word)
    word -= words
    registers = cleared(planes)
    neighbours, first, last = int32(0), int32(2), 2 * (words + reach)
    while first < last:
        bits = uint32(0)
        if first + lane < last:
            bits = bands.rows32[4 * words * j + first + lane]
        listed = list_bits(bits, bands, uint32(lane))
        neighbours += listed
        begin = 32 * (first - 2 * words) - in_word  # from j to the first vertex of these words
        done = int32(0)
        while done < listed:
            row, ahead = uint32(0), -words  # none
            if done + lane < listed:
                distance = begin + int32(bands.listed[bands.at + uint32(done + lane)])
                ahead = (distance + in_word) >> 6
                row = uint32(2 * words * distance - ahead)
            s = turn
            while s - turn < min(listed - done, 32):
                a = band_word(rows, mine, word, row, ahead, s)
                b = band_word(rows, mine, word, row, ahead, s + at_once)
                c = band_word(rows, mine, word, row, ahead, s + 2 * at_once)
                d = band_word(rows, mine, word, row, ahead, s + 3 * at_once)
                e = band_word(rows, mine, word, row, ahead, s + 4 * at_once)
                f = band_word(rows, mine, word, row, ahead, s + 5 * at_once)
                g = band_word(rows, mine, word, row, ahead, s + 6 * at_once)
                h = band_word(rows, mine, word, row, ahead, s + 7 * at_once)
                registers = add_eight(planes, registers, (a, b, c, d, e, f, g, h))
                s += 8 * at_once
            done += 32
        first += 32
    store(planes, registers)
    cuda.syncwarp()
    return neighbours


@kernel("void(int64[::1], int32[::1], uint64[::1], uint32[::1], int32[::1], int64, int64, int32[::1])")
def band_tally(col_ptr, row_idx, band_rows, band_rows32, wide, words, most_planes, support):
    """A warp per banded column j: add up the rows of all neighbours of j bit by bit, and read the sums at j's nonzeros.

    If these span few words, 8 or 16 lanes are enough for a row, and the warp adds up several sets of counters.
    """
    shared = cuda.shared.array(0, uint64)
    shared32 = cuda.shared.array(0, uint32)  # the same memory
    listed = cuda.shared.array(0, uint16)  # the same memory, behind the planes of all warps
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    plane_words = 32 * uint32(most_planes)
    first_plane = uint64(warp * plane_words)
    planes = Planes(shared, shared32, first_plane, uint32(most_planes))
    at = 4 * plane_words * (cuda.blockDim.x >> 5) + warp * LISTED
    bands = Bands(band_rows, band_rows32, int32(words), listed, at)
    j = cuda.grid(1) >> 5
    while j < col_ptr.size - 1:
        begin, end = column_bounds(col_ptr, j)
        reach = int32(0)
        if begin < end and wide[j] == 0:
            reach = int32((row_idx[end - 1] >> 6) - (j >> 6) + 1)
        fold = int32(3)
        while fold < 5 and reach > 1 << fold:
            fold += 1
        start = int32(0)
        while start < reach:
            neighbours = add_band_rows(bands, j, start, reach, fold, planes)
            digits = max(IN_REGISTERS, 32 - cuda.clz(uint32(neighbours)))
            used = Planes(shared, shared32, first_plane, digits)
            p = begin + lane
            while p < end:
                i = row_idx[p]
                word = int32((i >> 6) - (j >> 6) - start)
                if 0 <= word and word < 1 << fold and wide[i] == 0:
                    number, found = 64 * uint32(word) + uint32(i & 63), uint32(0)
                    for _ in range(32 >> fold):
                        found += counter(used, number)
                        number += uint32(64) << uint32(fold)
                    support[p] = found
                p += 32
            cuda.syncwarp()
            start += 32
        j += cuda.gridsize(1) >> 5
