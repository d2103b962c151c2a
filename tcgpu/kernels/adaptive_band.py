"""Rows of bits of banded vertices, and how many triangles the edges between them have: see `adaptive_tally`.

Where neighbours have close numbers, all of a vertex's neighbours, on either side, are a short row of bits: its band.
"""

from tcgpu._cuda import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.planes import IN_REGISTERS, clear_planes, keep_planes, read_counter, tally_four


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
def band_word(rows, u, at, words):
    """Word `at` of row u, if it has it."""
    word = uint64(0)
    if 0 <= at < 2 * words:
        word = rows[uint64(2 * words * u + at)]
    return word


@kernel("void(int64[::1], int32[::1], uint64[::1], uint32[::1], int32[::1], int64, int64, int32[::1])")
def band_tally(col_ptr, row_idx, rows, rows32, wide, words, count, support):
    """A warp per banded column j: the rows of all j's neighbours, counted place by place, for j's nonzeros.

    Row j says who they are: one of its words after the other, four of its bits at a time. `count` is of planes.
    """
    planes = cuda.shared.array(0, uint64)
    lane = uint32(cuda.threadIdx.x & 31)
    first_plane = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(32) * uint32(count))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    j = cuda.grid(1) >> 5
    while j < col_ptr.size - 1:
        begin, end = col_ptr[j], col_ptr[j + 1]
        home, reach = int64(j >> 6), int64(0)
        if begin < end and wide[j] == 0:
            reach = (row_idx[end - 1] >> 6) - home + 1
        start = int64(0)
        while start < reach:
            clear_planes(planes, plane, count)
            ones = twos = fours = eights = sixteens = uint64(0)
            for k in range(2, 2 * (words + reach)):
                todo = rows32[4 * words * j + k]
                first = int64(((home - words) << 6) + 32 * k)  # the vertex of the word's first bit
                at = int64(start + lane + 2 * words - (k >> 1))
                if start + lane >= reach:
                    at = int64(-1)
                while todo != uint32(0):
                    a = band_word(rows, first + cuda.ffs(todo) - 1, at, words)
                    todo = uint32(todo & uint32(todo - uint32(1)))
                    b = c = d = uint64(0)
                    if todo != uint32(0):
                        b = band_word(rows, first + cuda.ffs(todo) - 1, at, words)
                        todo = uint32(todo & uint32(todo - uint32(1)))
                    if todo != uint32(0):
                        c = band_word(rows, first + cuda.ffs(todo) - 1, at, words)
                        todo = uint32(todo & uint32(todo - uint32(1)))
                    if todo != uint32(0):
                        d = band_word(rows, first + cuda.ffs(todo) - 1, at, words)
                        todo = uint32(todo & uint32(todo - uint32(1)))
                    ones, twos, fours, eights, sixteens = tally_four(
                        ones, twos, fours, eights, sixteens, a, b, c, d, planes, spill
                    )
            keep_planes(planes, plane, ones, twos, fours, eights, sixteens)
            cuda.syncwarp()
            p = begin + lane
            while p < end:
                i = row_idx[p]
                offset = (i >> 6) - home
                if start <= offset < start + 32 and wide[i] == 0:
                    place = uint32(((offset - start) << 6) + (i & 63))
                    support[p] = int32(read_counter(planes, first_plane, place, count))
                p += 32
            cuda.syncwarp()
            start += 32
        j += cuda.gridsize(1) >> 5


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
