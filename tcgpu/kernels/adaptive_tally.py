"""`adaptive` for edges and vertices: in how many triangles each of them is. The layout of `adaptive`, other kernels.

Contract: for a triangle j < i < k, once each, the nonzeros (i, j), (k, j) and (k, i) gain 1. Triangles come by the
billion, so that the point is to spend no atomic addition on each of them. The rows of bits of many columns lie one over
the other; how many of them have a 1 in each place is counted for 64 places at once, by the logic that a processor adds
with (`tally_four`): one plane of bits for the ones, one for the twos, and so on, a few of them in registers.

Skewed graphs, in degree order; hubs come in stretches of 2,048, for each of which a lane has one word:

    column_tally    i and k hubs, column j heavy  a warp per heavy column j: the rows of its hubs, one over the other,
                                                  give (k, j), and (i, j) where k is of i's stretch
    row_tally       k of a later stretch than i   a warp per heavy column j, as `hub_kernel`: gives (i, j)
    pair_tally      the same triangles            a warp per hub i: the heavy columns that hold it, one over the other,
                                                  give (k, i)
    window_tally    k near, all others            a block per i, as `window_kernel`: (i, j) a sum, (k, i) counted in
                                                  shared memory, (k, j) an atomic addition
    far_tally, hash_tally   k not near            atomic additions: there are few of these triangles
    gather          nonzeros that are near        were counted where their near numbers are; now by nonzero

Flat graphs, in natural order; a vertex is *banded* if all of its neighbours are within a few thousand of it:

    band_tally      j and i banded                a warp per j: the rows of all its neighbours, on either side, one over
                                                  the other, give (i, j) for each of its nonzeros, complete
    merge_tally     all other nonzeros            two pointers, atomic additions

For the triangles of a vertex, `sum_ends` adds up those of its edges: each has two there.
"""

import numpy as np

from tcgpu import _cuda
from tcgpu._cuda import cuda, int32, int64, kernel, uint16, uint32, uint64
from tcgpu.graph import GraphError
from tcgpu.kernels import Plan, Scan, adaptive_setup, check_knob, orientation
from tcgpu.kernels.adaptive_band import band_tally, fill_band_rows, mark_open, merge_tally
from tcgpu.kernels.adaptive_setup import (
    ALL_LANES,
    BITS,
    EMPTY,
    GOLDEN,
    HUB_0,
    HUBS,
    LENGTH_BITS,
    LENGTH_MASK,
    NEAR,
    NO_CROWD,
    PIECE,
    ROW,
    STRETCH,
    TABLE,
    TASK,
    launch,
    local_words,
    tasks_created,
    tasks_listed,
)
from tcgpu.kernels.bits import simulated_lookups
from tcgpu.kernels.planes import IN_REGISTERS, clear_planes, keep_planes, read_counter, tally_four

STRETCHES = HUBS // STRETCH
COLUMN_PLANES = 13  # a column has less than 2^13 hubs beside one
PIECE_PLANES = 10  # counts up to PIECE
LANES = 8  # share an in-edge
ROOM = 1024  # counters of a block of window_tally; rows beyond are counted in global memory
SUMMED, OWN = 16384, 2048  # nonzeros that a block of sum_ends takes at a time, last vertices that it has counters for
MOST_EDGES = 2**31 - 1


# ------------------------------------------------------------------------------------------------------ in degree order


@cuda.jit(device=True)
def row_of(rows, x, lowest, limit, at):
    """A lane's word of the row of near number x, if that is a hub before `limit`."""
    word = uint64(0)
    if lowest <= x < limit:
        word = rows[uint32(uint32(x - uint32(HUB_0)) * uint32(ROW) + at)]
    return word


@kernel(
    "void(uint16[::1], uint64[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64, int64,"
    " int64, uint64[::1], int32[::1])"
)
def column_tally(near, quads, near_ptr, heavy, listed, queue, rows, lowest, most, planes, held, tallies):
    """A warp per heavy column j: the rows of its hubs, one over the other, counted for its hubs, place by place.

    One stretch of hubs after the other. In the rows of the stretch's own hubs, bits stand for neighbours on either
    side: what is counted is what (i, j) and (k, j) gain from two hubs of the stretch. The rows of earlier hubs give
    (k, j); what (i, j) gains from a k of a later stretch is left to row_tally. `held` gets each column's bits.
    """
    words = cuda.shared.array(0, uint64)
    bits32 = cuda.shared.array(0, uint32)  # the same memory
    lane = uint32(cuda.threadIdx.x & 31)
    warp = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(ROW + 32 * COLUMN_PLANES))
    first_plane = uint32(warp + uint32(ROW))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    lowest = uint32(lowest)
    following = int64(0)
    if lane == 0:
        following = cuda.atomic.add(queue, 0, 1)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < listed[0]:
        if lane == 0:
            following = cuda.atomic.add(queue, 0, 1)
        j = heavy[task]
        begin, end = uint32(4 * near_ptr[j]), uint32(4 * near_ptr[j + 1])
        for k in range(STRETCHES):
            words[uint32(warp + lane + uint32(32 * k))] = uint64(0)
        cuda.syncwarp()
        first, hubs = end, 32
        while hubs == 32:  # the hubs are the last rows: all of a warp's lanes found one, so there may be more
            p = uint32(first - uint32(1) - lane)
            x = uint32(0)
            if uint32(lane) < uint32(first - begin):
                x = uint32(near[p])
            if x >= lowest:
                h = uint32(x - uint32(HUB_0))
                word = uint32(uint32(warp + warp) + (h >> uint32(5)))
                cuda.atomic.or_(bits32, word, uint32(uint32(1) << (h & uint32(31))))
            hubs = cuda.popc(uint32(cuda.ballot_sync(ALL_LANES, x >= lowest)))
            first = uint32(first - uint32(hubs))
        cuda.syncwarp()
        k = uint32((lowest - uint32(HUB_0)) >> uint32(11))
        while k < uint32(STRETCHES):
            own = words[uint32(warp + lane + uint32(32) * k)]
            held[uint64(uint64(uint64(k) * uint64(most) + uint64(task)) * uint64(32) + uint64(lane))] = own
            if cuda.any_sync(ALL_LANES, own != uint64(0)):
                clear_planes(words, plane, planes)
                ones = twos = fours = eights = sixteens = uint64(0)
                at = uint32(uint32(32) * k + lane)
                home = uint32(uint32(HUB_0) + uint32(STRETCH) * k)
                limit = uint32(home + uint32(STRETCH))
                q, q_end = uint32(first >> uint32(2)), uint32(end >> uint32(2))
                while q < q_end:
                    four = quads[q]
                    low, high = uint32(four), uint32(four >> uint64(32))
                    x0, x1 = uint32(low & uint32(NEAR)), uint32(low >> uint32(16))
                    x2, x3 = uint32(high & uint32(NEAR)), uint32(high >> uint32(16))
                    if x0 >= limit:
                        break
                    a, b = row_of(rows, x0, lowest, limit, at), row_of(rows, x1, lowest, limit, at)
                    c, d = row_of(rows, x2, lowest, limit, at), row_of(rows, x3, lowest, limit, at)
                    ones, twos, fours, eights, sixteens = tally_four(
                        ones, twos, fours, eights, sixteens, a, b, c, d, words, spill
                    )
                    q = uint32(q + uint32(1))
                keep_planes(words, plane, ones, twos, fours, eights, sixteens)
                cuda.syncwarp()
                p = uint32(first + lane)
                while p < end:
                    x = uint32(near[p])
                    if home <= x < limit:
                        found = read_counter(words, first_plane, uint32(x - uint32(HUB_0)), planes)
                        if found != uint32(0):
                            cuda.atomic.add(tallies, p, int32(found))
                    p = uint32(p + uint32(32))
                cuda.syncwarp()
            k = uint32(k + uint32(1))
        task = cuda.shfl_sync(ALL_LANES, following, 0)


@cuda.jit(device=True)
def later_bits(rows, x, own1, own2, own3, lowest, lane):
    """How many of a lane's bits are set in the row of near number x, in stretches after that of x; 0 if x is no hub."""
    found = uint32(0)
    if lowest <= x < uint32(HUB_0 + 3 * STRETCH):
        row = uint32(uint32(uint32(x - uint32(HUB_0)) * uint32(ROW)) + lane)
        found = uint32(cuda.popc(own3 & rows[uint32(row + uint32(96))]))
        if x < uint32(HUB_0 + 2 * STRETCH):
            found = uint32(found + uint32(cuda.popc(own2 & rows[uint32(row + uint32(64))])))
            if x < uint32(HUB_0 + STRETCH):
                found = uint32(found + uint32(cuda.popc(own1 & rows[uint32(row + uint32(32))])))
    return found


@kernel(
    "void(uint16[::1], uint64[::1], int32[::1], int32[::1], int64[::1], uint64[::1], uint64[::1], int64, int64,"
    " int32[::1])"
)
def row_tally(near, quads, near_ptr, heavy, listed, rows, held, lowest, most, tallies):
    """A warp per heavy column j: for each hub i of it, how many of its hubs in later stretches i is a neighbour of.

    Four hubs at a time: two sums of 16 bits in a word, and then two words, one in each half of the warp, so that five
    exchanges add up all four.
    """
    lane, lowest = uint32(cuda.threadIdx.x & 31), uint32(lowest)
    task = cuda.grid(1) >> 5
    while task < listed[0]:
        j = heavy[task]
        q, q_end = uint32(near_ptr[j]), uint32(near_ptr[j + 1])
        first = uint64(uint64(uint64(task) * uint64(32)) + uint64(lane))
        own1 = held[uint64(first + uint64(uint64(most) * uint64(32)))]
        own2 = held[uint64(first + uint64(uint64(most) * uint64(64)))]
        own3 = held[uint64(first + uint64(uint64(most) * uint64(96)))]
        above = q_end
        while q < above:  # the first quad whose last row is a hub
            middle = uint32(uint32(q + above) >> uint32(1))
            if uint32(near[uint32(uint32(4) * middle + uint32(3))]) < lowest:
                q = uint32(middle + uint32(1))
            else:
                above = middle
        while q < q_end:
            four = quads[q]
            low, high = uint32(four), uint32(four >> uint64(32))
            if (low & uint32(NEAR)) >= uint32(HUB_0 + 3 * STRETCH):
                break
            mine = later_bits(rows, uint32(low & uint32(NEAR)), own1, own2, own3, lowest, lane)
            second = later_bits(rows, uint32(low >> uint32(16)), own1, own2, own3, lowest, lane)
            other = later_bits(rows, uint32(high & uint32(NEAR)), own1, own2, own3, lowest, lane)
            fourth = later_bits(rows, uint32(high >> uint32(16)), own1, own2, own3, lowest, lane)
            mine, other = uint32(mine | second << uint32(16)), uint32(other | fourth << uint32(16))
            if lane >= uint32(16):
                mine, other = other, mine
            mine = uint32(mine + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(other), 16)))
            for distance in (8, 4, 2, 1):
                mine = uint32(mine + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(mine), distance)))
            found = uint32((mine >> uint32(uint32(16) * (lane & uint32(1)))) & uint32(0xFFFF))
            if (lane & uint32(15)) < uint32(2) and found != uint32(0):
                slot = uint32(uint32(4) * q + uint32(uint32(2) * (lane >> uint32(4))) + (lane & uint32(1)))
                cuda.atomic.add(tallies, slot, int32(found))
            q = uint32(q + uint32(1))
        task += cuda.gridsize(1) >> 5


@cuda.jit(device=True)
def held_word(held, in_edges, i, end, first, lane):
    """A lane's word of the column that entry i of a hub's list names, if there is that entry."""
    word = uint64(0)
    if i < end:
        word = held[uint64(uint64(first + in_edges[i]) * uint64(32) + uint64(lane))]
    return word


@kernel(
    "void(uint16[::1], int32[::1], int64[::1], uint64[::1], int32[::1], int32[::1], uint64[::1], int64, int64[::1],"
    " int32[::1])"
)
def pair_tally(near, near_ptr, in_ptr, in_edges, crossed, piece_ptr, held, most, queue, tallies):
    """A warp per piece of a hub's list of heavy columns: their bits, counted place by place, for the hub's rows."""
    words = cuda.shared.array(0, uint64)
    lane = uint32(cuda.threadIdx.x & 31)
    first_plane = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(32 * PIECE_PLANES))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    n, following = near_ptr.size - 1, int64(0)
    if lane == 0:
        following = cuda.atomic.add(queue, 1, 1)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < piece_ptr[HUBS]:
        if lane == 0:
            following = cuda.atomic.add(queue, 1, 1)
        h, above = 0, HUBS
        while above - h > 1:
            middle = (h + above) >> 1
            if piece_ptr[middle] <= task:
                h = middle
            else:
                above = middle
        u = n - HUBS + h
        begin, end = uint32(4 * near_ptr[u]), uint32(4 * near_ptr[u + 1])
        done = (task - piece_ptr[h]) * PIECE
        i_end = int64(in_ptr[u + 1] - done)
        i_begin = int64(i_end - min(PIECE, crossed[h] - done))
        k = uint32(h >> 11)
        while k < uint32(STRETCHES):
            clear_planes(words, plane, PIECE_PLANES)
            ones = twos = fours = eights = sixteens = uint64(0)
            first = uint64(uint64(k) * uint64(most))
            i = i_begin
            while i < i_end:
                a = held_word(held, in_edges, i, i_end, first, lane)
                b = held_word(held, in_edges, i + 1, i_end, first, lane)
                c = held_word(held, in_edges, i + 2, i_end, first, lane)
                d = held_word(held, in_edges, i + 3, i_end, first, lane)
                ones, twos, fours, eights, sixteens = tally_four(
                    ones, twos, fours, eights, sixteens, a, b, c, d, words, spill
                )
                i += 4
            keep_planes(words, plane, ones, twos, fours, eights, sixteens)
            cuda.syncwarp()
            home = uint32(uint32(HUB_0) + uint32(STRETCH) * k)
            p = uint32(begin + lane)
            while p < end:
                x = uint32(near[p])
                if home <= x < uint32(home + uint32(STRETCH)):
                    found = read_counter(words, first_plane, uint32(x - uint32(HUB_0)), PIECE_PLANES)
                    if found != uint32(0):
                        cuda.atomic.add(tallies, p, int32(found))
                p = uint32(p + uint32(32))
            cuda.syncwarp()
            k = uint32(k + uint32(1))
        task = cuda.shfl_sync(ALL_LANES, following, 0)


@cuda.jit(device=True)
def four_bits(bits, four):
    """Which of four near numbers, 16 bits each, are set among the bits: the last four bits of a number say so."""
    low, high = uint32(four), uint32(four >> uint64(32))
    a = bits[(low >> uint32(5)) & uint32(2047)] >> (low & uint32(31))
    b = bits[low >> uint32(21)] >> ((low >> uint32(16)) & uint32(31))
    c = bits[(high >> uint32(5)) & uint32(2047)] >> (high & uint32(31))
    d = bits[high >> uint32(21)] >> ((high >> uint32(16)) & uint32(31))
    front = (a & uint32(1)) | (b & uint32(1)) << uint32(1)
    return uint32(front | (c & uint32(1)) << uint32(2) | (d & uint32(1)) << uint32(3))


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int32[::1],"
    " int32[::1])"
)
def window_tally(near, quads, columns, pieces, in_edges, origins, task_ptr, tallies, support):
    """A block per task: the near rows of a column as bits, looked up for the pieces that its in-edges name.

    Beside each word of bits is kept where in the column its first row is: with the bits below, that says where a row
    is, and so which counter is its. The hits of a piece are added up by those who share it.
    """
    bits = cuda.shared.array(0, uint32)  # and from bits[counters] on, how often each row was hit
    first_of = cuda.shared.array(0, uint16)  # the same memory; from first_of[2 * BITS] on
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    group, seat, groups = uint32(thread // LANES), uint32(thread % LANES), uint32(threads // LANES)
    counters = uint32(BITS + BITS // 2)
    k = thread
    while k < uint32(BITS + BITS // 2 + ROOM):
        bits[k] = uint32(0)
        k = uint32(k + threads)
    cuda.syncthreads()
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        column, piece = columns[task], pieces[task]
        begin = uint32(uint32(column >> uint64(LENGTH_BITS)) * uint32(4))
        end = uint32(begin + uint32(column & uint64(LENGTH_MASK)) * uint32(4))
        p = uint32(begin + thread)
        while p < end:
            x = uint32(near[p])
            if x != 0:
                cuda.atomic.or_(bits, x >> uint32(5), uint32(uint32(1) << (x & uint32(31))))
                before = uint32(0)
                if p > begin:
                    before = uint32(near[uint32(p - uint32(1))])
                if before == 0 or before >> uint32(5) != x >> uint32(5):
                    first_of[uint32(uint32(2 * BITS) + (x >> uint32(5)))] = uint32(p - begin)
            p = uint32(p + threads)
        i = uint32(piece >> uint64(LENGTH_BITS))
        i_end = uint32(i + uint32(piece & uint64(LENGTH_MASK)))
        i = uint32(i + group)
        cuda.syncthreads()
        while uint32(i - (group & uint32(3))) < i_end:  # whole warps
            q, q_end = uint32(0), uint32(0)
            if i < i_end:
                other = in_edges[i]
                q = uint32(other >> uint64(LENGTH_BITS))
                q_end = uint32(q + uint32(other & uint64(LENGTH_MASK)))
            q = uint32(q + seat)
            found = uint32(0)
            while q < q_end:
                r = uint32(q + uint32(LANES))
                one, two = quads[q], uint64(0)
                if r < q_end:
                    two = quads[r]
                hits = uint32(four_bits(bits, one) | four_bits(bits, two) << uint32(4))
                found = uint32(found + uint32(cuda.popc(hits)))
                while hits != uint32(0):
                    which = uint32(uint32(cuda.ffs(hits)) - uint32(1))
                    hits = uint32(hits & uint32(hits - uint32(1)))
                    slot = uint32(uint32(4) * q + which)
                    x = uint32(one >> uint64(uint32(16) * (which & uint32(3)))) & uint32(NEAR)
                    if which >= uint32(4):
                        slot = uint32(uint32(4) * r + uint32(which - uint32(4)))
                        x = uint32(two >> uint64(uint32(16) * (which & uint32(3)))) & uint32(NEAR)
                    word = uint32(x >> uint32(5))
                    below = uint32(bits[word] & uint32(uint32(uint32(1) << (x & uint32(31))) - uint32(1)))
                    place = uint32(uint32(first_of[uint32(uint32(2 * BITS) + word)]) + uint32(cuda.popc(below)))
                    if place < uint32(ROOM):
                        cuda.atomic.add(bits, uint32(counters + place), uint32(1))
                    else:
                        cuda.atomic.add(tallies, uint32(begin + place), int32(1))
                    cuda.atomic.add(tallies, slot, int32(1))
                q = uint32(r + uint32(LANES))
            for distance in (4, 2, 1):
                found = uint32(found + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(found), distance)))
            if seat == 0 and found != uint32(0):
                cuda.atomic.add(support, origins[i], int32(found))
            i = uint32(i + groups)
        cuda.syncthreads()
        p = uint32(begin + thread)
        while p < end:
            bits[uint32(near[p]) >> uint32(5)] = uint32(0)
            place = uint32(p - begin)
            if place < uint32(ROOM):
                found = bits[uint32(counters + place)]
                bits[uint32(counters + place)] = uint32(0)
                if found != uint32(0):
                    cuda.atomic.add(tallies, p, int32(found))
            p = uint32(p + threads)
        cuda.syncthreads()
        task -= cuda.gridDim.x


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int32[::1])")
def far_tally(col_ptr, row_idx, col_of, far, short, support):
    """A thread per nonzero (i, j): two pointers along the far rows of columns i and j, if j has fewer than `short`."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        length = far[j]
        p_end = col_ptr[j] + length
        if e + 1 < p_end and length < short:
            p, q = uint32(e + 1), uint32(col_ptr[i])
            q_end = uint32(q + uint32(far[i]))
            found = int32(0)
            while p < uint32(p_end) and q < q_end:
                x, y = row_idx[p], row_idx[q]
                if x == y:
                    cuda.atomic.add(support, p, int32(1))
                    cuda.atomic.add(support, q, int32(1))
                    found = int32(found + int32(1))
                p = uint32(p + (x <= y))
                q = uint32(q + (y <= x))
            if found != 0:
                cuda.atomic.add(support, e, found)
        e += cuda.gridsize(1)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def hash_tally(col_ptr, row_idx, far, long, listed, support):
    """A block per listed column j: its first far[j] rows in a hash table, and where they are, looked up for those of
    each column i in it."""
    table = cuda.shared.array(0, int32)  # TABLE rows at a time; then, from table[2 * TABLE] on, where each is
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    group, seat, groups = thread // LANES, thread % LANES, threads // LANES
    task = cuda.blockIdx.x
    while task < listed[1]:
        j = long[task]
        first, end = col_ptr[j], col_ptr[j] + far[j]
        while first < end:
            length = min(end - first, TABLE)
            k = thread
            while k < 2 * TABLE:
                table[k] = EMPTY
                k += threads
            cuda.syncthreads()
            p = first + thread
            while p < first + length:
                x = row_idx[p]
                k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(22)
                while cuda.atomic.cas(table, k, EMPTY, x) != EMPTY:
                    k = (k + uint32(1)) & uint32(2 * TABLE - 1)
                table[k + uint32(2 * TABLE)] = int32(p - first)
                p += threads
            cuda.syncthreads()
            e = col_ptr[j] + group
            while e < end:
                i = row_idx[e]
                q, q_end = col_ptr[i] + seat, col_ptr[i] + far[i]
                found = int32(0)
                while q < q_end:
                    x = row_idx[q]
                    k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(22)
                    y = table[k]
                    while y != EMPTY and y != x:
                        k = (k + uint32(1)) & uint32(2 * TABLE - 1)
                        y = table[k]
                    if y == x:
                        cuda.atomic.add(support, first + table[k + uint32(2 * TABLE)], int32(1))
                        cuda.atomic.add(support, q, int32(1))
                        found = int32(found + int32(1))
                    q += LANES
                if found != 0:
                    cuda.atomic.add(support, e, found)
                e += groups
            cuda.syncthreads()
            first += length
        task += cuda.gridDim.x


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int32[::1], int32[::1])")
def gather(col_ptr, row_idx, col_of, near_ptr, base, tallies, support):
    """A thread per nonzero whose row is near: what was counted where its near number is."""
    e = cuda.grid(1)
    while e < row_idx.size:
        if row_idx[e] >= base:
            j = col_of[e]
            support[e] += tallies[4 * int64(near_ptr[j + 1]) - (col_ptr[j + 1] - e)]
        e += cuda.gridsize(1)


# -------------------------------------------------------------------------------------------------------- by the vertex


@kernel("void(int32[::1], int32[::1], int32[::1], int64[::1])")
def sum_ends(row_idx, col_of, support, twice):
    """Blocks take nonzeros a stretch at a time; the last vertices, where most meet, have counters in shared memory.

    A stretch is so short that none of these can overflow; a support that is so large as to endanger that goes past.
    """
    counters = cuda.shared.array(0, uint32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    lane = thread & 31
    base = twice.size - OWN
    k = thread
    while k < OWN:
        counters[k] = uint32(0)
        k += threads
    begin = int64(cuda.blockIdx.x) * SUMMED
    while begin < row_idx.size:
        end = min(begin + SUMMED, row_idx.size)
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
        k = thread
        while k < OWN:
            found = counters[k]
            counters[k] = uint32(0)
            if found != uint32(0):
                cuda.atomic.add(twice, base + k, int64(found))
            k += threads
        begin += int64(cuda.gridDim.x) * SUMMED


# ------------------------------------------------------------------------------------------------------------- launcher


class TallyPlan(Plan):
    """A plan whose result is the number of triangles of each edge: int32, one a nonzero, column after column."""

    def reset(self):
        for name in ("support", "tallies", "twice"):
            if name in self.arrays:
                _cuda.refill(self.arrays[name], 0)

    def result(self):
        return _cuda.to_host(self.arrays["support"])


class VertexPlan(TallyPlan):
    """A plan whose result is the number of triangles of each vertex: int64."""

    def result(self):
        return _cuda.to_host(self.arrays["twice"]) >> 1


def support_plan(graph, **knobs):
    """The triangles of each edge; knobs as in `_checked`."""
    return _made(TallyPlan, graph, **knobs)


def triangles_plan(graph, **knobs):
    """The triangles of each vertex; knobs as in `_checked`."""
    plan = _made(VertexPlan, graph, **knobs)
    plan.created["twice"] = (graph.n, np.int64, 0)
    args = ("row_idx", "col_of", "support", "twice")
    plan.steps.append(launch(sum_ends, 512 * (-(-graph.m // SUMMED)), 512, args, most=2112, shared=4 * OWN))
    return plan


def _made(kind, graph, *, near=NEAR, hubs=HUBS, heavy=64, short=32, words=None):
    """near, hubs, heavy, short, words: as in `adaptive.plan`; words: also how far a band reaches to either side."""
    if graph.m > MOST_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MOST_EDGES:,}")
    near = check_knob("near", near, 0, NEAR)
    hubs = min(check_knob("hubs", hubs, 0, HUBS), near)
    heavy = check_knob("heavy", heavy, 0, 2**30)
    short = check_knob("short", short, 2, 2**30)
    if graph.order == "degree":
        return _by_degree(kind, graph, near, hubs, heavy // 4, short)
    words = local_words(graph, short) if words is None else check_knob("words", words, 0, 1024)
    return _as_it_comes(kind, graph, words)


def _as_it_comes(kind, graph, words):
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    merging = ("col_ptr", "row_idx", "col_of", words, "wide", "open", "support")
    created = {
        "support": (graph.m, np.int32, 0),
        "wide": (graph.n if words else 1, np.int32, 0),
        "open": (graph.n if words else 1, np.int32, 0),
    }
    steps = [launch(merge_tally, graph.m, 64, merging, most=16384)]
    views = {}
    if words:
        created["rows"] = (graph.n * 2 * words, np.uint64, 0)
        views["rows32"] = ("rows", np.uint32)
        planes = max(IN_REGISTERS, (128 * words).bit_length())
        banding = ("col_ptr", "row_idx", "rows", "rows32", "wide", words, planes, "support")
        steps = [
            launch(fill_band_rows, graph.m, 256, ("row_idx", "col_of", words, "rows32", "wide")),
            launch(mark_open, graph.m, 256, ("row_idx", "col_of", "wide", "open")),
            launch(band_tally, 32 * graph.n, 128, banding, most=8448, shared=4 * 8 * 32 * planes),
            *steps,
        ]
    work = 5 * simulated_lookups(graph)
    return kind(method="adaptive", copied=copied, created=created, steps=steps, views=views, work=work)


def _by_degree(kind, graph, near, hubs, heavy, short):
    setup = adaptive_setup
    n, m = graph.n, graph.m
    base, zero, lowest = n - near, n - NEAR - 1, NEAR + 1 - hubs
    most = min(n, m // (4 * heavy + 1) + 1)  # heavy columns
    measuring = ("col_ptr", "row_idx", base, heavy, short, 0, 1, "far", "quad_count", "heavy", "long", "listed")
    laying = ("col_ptr", "row_idx", "col_of", "near_ptr", "place", base, zero, heavy, lowest,
              "in_ptr", "put", "crossed", "near", "in_edges", "origins")  # fmt: skip
    by_column = ("near", "quads", "near_ptr", "heavy", "listed", "queue", "rows", lowest, most,
                 COLUMN_PLANES, "held", "tallies")  # fmt: skip
    by_row = ("near", "quads", "near_ptr", "heavy", "listed", "rows", "held", lowest, most, "tallies")
    by_pair = ("near", "near_ptr", "in_ptr", "in_edges", "crossed", "piece_ptr", "held", most, "queue", "tallies")
    by_window = ("near", "quads", "few_columns", "few_pieces", "in_edges", "origins", "few_ptr", "tallies", "support")
    by_hubs = []
    if hubs:
        by_hubs = [
            launch(setup.fill_stretch_rows, 32 * min(hubs, n), 256, ("near", "near_ptr", hubs, "rows32", "queue")),
            launch(column_tally, 32 * n, 128, by_column, most=4224, shared=4 * 8 * (ROW + 32 * COLUMN_PLANES)),
            launch(row_tally, 32 * n, 128, by_row, most=4224),
            launch(pair_tally, 32 * (min(n, HUBS) + m // PIECE), 128, by_pair, 4224, shared=4 * 8 * 32 * PIECE_PLANES),
        ]
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    occurrences = getattr(graph, "occurrences", None)
    if occurrences is None:
        in_edges, counting = m, launch(orientation.count_rows, m, 256, ("row_idx", "in_count"))
    else:
        copied["occurrences"] = occurrences
        in_edges = 2 * graph.records - m
        counting = launch(setup.bound_in_edges, n, 256, ("occurrences", "col_ptr", "in_count"))
    quads = m // 4 + min(n, m) + 1
    return kind(
        method="adaptive",
        copied=copied,
        created={
            "support": (m, np.int32, 0),
            "tallies": (4 * quads, np.int32, 0),
            "far": (n, np.int32, None),
            "quad_count": (n, np.int32, None),
            "near_ptr": (n + 1, np.int32, None),
            "heavy": (n, np.int32, None),
            "place": (n, np.int32, None),
            "long": (n, np.int32, None),
            "listed": (2, np.int64, 0),
            "queue": (2, np.int64, None),
            "quads": (quads, np.uint64, 0),
            "in_count": (n, np.int32, 0),
            "in_ptr": (n + 1, np.int64, None),
            "put": (n + 1, np.int64, None),
            "in_edges": (in_edges, np.uint64, None),
            "origins": (in_edges, np.uint32, None),
            "rows": (HUBS * ROW, np.uint64, 0),
            "crossed": (HUBS, np.int32, 0),
            "pieces": (HUBS, np.int32, None),
            "piece_ptr": (HUBS + 1, np.int32, None),
            "held": (STRETCHES * most * 32 if hubs else 0, np.uint64, None),
            **tasks_created("few", n, min(n, m) + m // TASK + 1),
        },
        views={"near": ("quads", np.uint16), "rows32": ("rows", np.uint32)},
        setup=[
            launch(setup.measure_columns, n, 256, measuring),
            launch(setup.place_heavy, n, 256, ("heavy", "listed", "place")),
            Scan("quad_count", "near_ptr"),
            counting,
            Scan("in_count", "in_ptr"),
            Scan("in_count", "put"),
            launch(setup.lay_out_nonzeros, m, 256, laying),
            *tasks_listed("few", n, 1, NO_CROWD),
            launch(setup.count_pieces, HUBS, 256, ("crossed", "pieces")),
            Scan("pieces", "piece_ptr"),
        ],
        steps=[
            *by_hubs,
            launch(window_tally, 128 * n, 128, by_window, most=11088, shared=6 * BITS + 4 * ROOM),
            launch(hash_tally, 64 * n, 64, ("col_ptr", "row_idx", "far", "long", "listed", "support"), 4224,
                   shared=4 * 4 * TABLE),
            launch(far_tally, m, 64, ("col_ptr", "row_idx", "col_of", "far", short, "support"), most=16384),
            launch(gather, m, 256, ("col_ptr", "row_idx", "col_of", "near_ptr", base, "tallies", "support"), 16384),
        ],
        work=5 * simulated_lookups(graph),
    )  # fmt: skip
