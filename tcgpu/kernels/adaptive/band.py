"""Rows of bits of banded vertices, and how many triangles the edges between them have: see `tally`.

Where neighbours have close numbers, all of a vertex's neighbours, on either side, are a short row of bits: its band.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint16, uint32, uint64
from tcgpu.kernels.adaptive.planes import IN_REGISTERS, clear_planes, keep_planes, read_counter, tally_eight
from tcgpu.kernels.adaptive.setup import ALL_LANES

BAND_LIST = 1024  # neighbours that a warp lists at a time: as many as 32 words have bits


@kernel("void(int32[::1], int32[::1], int64, uint32[::1], int32[::1])")
def fill_band_rows(row_idx, col_of, words, rows, wide):
    """A thread per nonzero (i, j): bit i of row j and bit j of row i, or both are wide: no neighbours of band rows.

    Row v has 2 * `words` words, and word `words` is the one that v itself is in.
    """
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            at = 2 * (2 * words * j + words + offset) + ((i >> 5) & 1)
            cuda.atomic.or_(rows, at, uint32(1) << uint32(i & 31))
            at = 2 * (2 * words * i + words - offset) + ((j >> 5) & 1)
            cuda.atomic.or_(rows, at, uint32(1) << uint32(j & 31))
        else:
            wide[i] = 1
            wide[j] = 1
        e += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1])")
def mark_open(row_idx, col_of, wide, open):
    """A thread per nonzero (i, j): column j is open if j or one of its rows is wide."""
    e = cuda.grid(1)
    while e < row_idx.size:
        if wide[row_idx[e]] or wide[col_of[e]]:
            open[col_of[e]] = 1
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def band_word(rows, own, place, row, behind, source):
    """A thread's word of the row that lane `source` knows: how far it lies from row j, and how many words `behind`.

    0 beyond the row: `place` is of the thread's word, as many words before the end of row j.
    """
    row, behind = cuda.shfl_sync(ALL_LANES, row, source), cuda.shfl_sync(ALL_LANES, behind, source)
    word = uint64(0)
    if place < behind:
        word = rows[uint32(own + uint32(row))]
    return word


@cuda.jit(device=True)
def list_bits(todo, listed, at, lane):
    """Where each lane's bits are, 32 to a lane, listed one after the other from listed[at] on; returns how many."""
    bits = int32(cuda.popc(todo))
    after = bits  # how many all lanes up to this one have
    for distance in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL_LANES, after, distance)
        if lane >= distance:
            after = int32(after + before)
    to = uint32(at + uint32(after - bits))
    while todo != uint32(0):
        listed[to] = uint16(uint32(32) * lane + uint32(cuda.ffs(todo)) - uint32(1))
        todo = uint32(todo & uint32(todo - uint32(1)))
        to = uint32(to + uint32(1))
    return cuda.shfl_sync(ALL_LANES, after, 31)


@kernel("void(int64[::1], int32[::1], uint64[::1], uint32[::1], int32[::1], int64, int64, int32[::1])")
def band_tally(col_ptr, row_idx, rows, rows32, wide, words, count, support):
    """A warp per banded column j: the rows of all j's neighbours, counted place by place, for j's nonzeros.

    Row j says who they are: 32 of its words at a time, listed in shared memory. Where j's nonzeros reach over few
    words, 8 or 16 lanes are enough for a row, and the warp takes as many rows at a time. `count` is of planes.
    """
    planes = cuda.shared.array(0, uint64)
    planes32 = cuda.shared.array(0, uint32)  # the same memory
    listed = cuda.shared.array(0, uint16)  # the same memory; behind all planes
    lane, warp = uint32(cuda.threadIdx.x & 31), uint32(cuda.threadIdx.x >> 5)
    first_plane = uint32(warp * uint32(32) * uint32(count))
    first_listed = uint32(uint32(cuda.blockDim.x) * uint32(4) * uint32(count) + warp * uint32(BAND_LIST))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    words32 = int32(words)
    j = cuda.grid(1) >> 5
    while j < col_ptr.size - 1:
        begin, end = col_ptr[j], col_ptr[j + 1]
        home, in_home, reach = j >> 6, int32(j & 63), int32(0)
        if begin < end and wide[j] == 0:
            reach = int32((row_idx[end - 1] >> 6) - home + 1)
        fold = int32(3)  # 2^fold lanes share a row
        while fold < 5 and reach > int32(1) << fold:
            fold = int32(fold + 1)
        width, at_once = int32(int32(1) << fold), int32(int32(32) >> fold)
        turn = int32(int32(lane) >> fold)
        start = int32(0)
        while start < reach:
            clear_planes(planes, plane, count)
            ones = twos = fours = eights = sixteens = uint64(0)
            place = int32(min(int32(start + int32(int32(lane) & int32(width - 1))), int32(reach - 1)))
            own = uint32(2 * words * j + words + place)
            place = int32(place - words32)
            first, last, neighbours = int32(2), int32(2 * int32(words32 + reach)), int32(0)
            while first < last:
                todo = uint32(0)
                if int32(first + int32(lane)) < last:
                    todo = rows32[4 * words * j + first + lane]
                cuda.syncwarp()
                listing = list_bits(todo, listed, first_listed, lane)
                cuda.syncwarp()
                neighbours = int32(neighbours + listing)
                beyond = int32(int32(32 * int32(first - 2 * words32)) - in_home)  # from j to these words' first vertex
                for done in range(0, int64(listing), 32):
                    row, behind = int32(0), int32(-words32)  # none
                    if done + lane < listing:
                        offset = int32(beyond + int32(listed[uint32(first_listed + uint32(done) + lane)]))
                        behind = int32(int32(offset + in_home) >> 6)
                        row = int32(int32(2 * words32) * offset - behind)
                    s, beside = turn, int32(min(listing - done, 32))
                    while int32(s - turn) < beside:
                        a = band_word(rows, own, place, row, behind, s)
                        b = band_word(rows, own, place, row, behind, int32(s + at_once))
                        c = band_word(rows, own, place, row, behind, int32(s + 2 * at_once))
                        d = band_word(rows, own, place, row, behind, int32(s + 3 * at_once))
                        e = band_word(rows, own, place, row, behind, int32(s + 4 * at_once))
                        f = band_word(rows, own, place, row, behind, int32(s + 5 * at_once))
                        g = band_word(rows, own, place, row, behind, int32(s + 6 * at_once))
                        h = band_word(rows, own, place, row, behind, int32(s + 7 * at_once))
                        ones, twos, fours, eights, sixteens = tally_eight(
                            ones, twos, fours, eights, sixteens, a, b, c, d, e, f, g, h, planes, spill
                        )
                        s = int32(s + 8 * at_once)
                first = int32(first + 32)
            keep_planes(planes, plane, ones, twos, fours, eights, sixteens)
            cuda.syncwarp()
            digits = max(uint32(IN_REGISTERS), uint32(uint32(32) - uint32(cuda.clz(uint32(neighbours)))))
            p = uint32(begin) + lane
            while p < uint32(end):
                i = row_idx[p]
                word = int32((i >> 6) - home - start)
                if 0 <= word < width and wide[i] == 0:
                    at, found = uint32(uint32(uint32(word) << uint32(6)) + uint32(i & 63)), uint32(0)
                    for _ in range(at_once):
                        found = uint32(found + read_counter(planes32, first_plane, at, digits))
                        at = uint32(at + (uint32(width) << uint32(6)))
                    support[p] = int32(found)
                p += 32
            cuda.syncwarp()
            start = int32(start + 32)
        j += cuda.gridsize(1) >> 5


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def merge_corners(col_ptr, row_idx, col_of, twice):
    """A thread per nonzero (i, j): two pointers along columns i and j; two for each corner of each triangle."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p, p_end = uint32(e + 1), uint32(col_ptr[j + 1])
        q, q_end = uint32(col_ptr[i]), uint32(col_ptr[i + 1])
        found = int64(0)
        while p < p_end and q < q_end:
            x, y = row_idx[p], row_idx[q]
            if x == y:
                cuda.atomic.add(twice, x, 2)
                found += 2
            p = uint32(p + (x <= y))
            q = uint32(q + (y <= x))
        if found != 0:
            cuda.atomic.add(twice, i, found)
            cuda.atomic.add(twice, j, found)
        e += cuda.gridsize(1)


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int32[::1], int32[::1], int32[::1])")
def merge_tally(col_ptr, row_idx, col_of, words, wide, open, support):
    """A thread per nonzero (i, j) of an open column: two pointers along columns i and j, for what band_tally leaves.

    Without rows of bits, that is everything.
    """
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p, p_end = uint32(e + 1), uint32(col_ptr[j + 1])
        q, q_end = uint32(col_ptr[i]), uint32(col_ptr[i + 1])
        all_edges = words == 0
        if not all_edges and open[j] == 0:
            q_end = q
        found = int32(0)
        while p < p_end and q < q_end:
            x, y = row_idx[p], row_idx[q]
            if x == y:
                if all_edges or wide[j] or wide[x]:
                    cuda.atomic.add(support, p, int32(1))
                if all_edges or wide[i] or wide[x]:
                    cuda.atomic.add(support, q, int32(1))
                found = int32(found + int32(1))
            p = uint32(p + (x <= y))
            q = uint32(q + (y <= x))
        if found != 0 and (all_edges or wide[i] or wide[j]):
            cuda.atomic.add(support, e, found)
        e += cuda.gridsize(1)
