"""How many triangles of two hubs each nonzero of a heavy column, and each of a hub's own column, is in.

For `tally`, which says what is what. Both kernels lay rows of bits one over the other and count, place by
place, how many of them have a 1 there: see `planes`. A warp takes 32 rows at a time, of which each lane knows one, and
asks for eight of them at once; where fewer are left, for a row of zeros.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.planes import IN_REGISTERS, clear_planes, keep_planes, read_counter, tally_eight
from tcgpu.kernels.adaptive.setup import ALL_LANES, FRONTS, HUB_0, HUBS, PIECE, ROW, STRETCH, pieces_before

STRETCHES = HUBS // STRETCH
COLUMN_PLANES = 13  # of 2^13 hubs none is its own neighbour
PIECE_PLANES = 10  # counts up to PIECE


@cuda.jit(device=True)
def row_word(rows, place, source, at):
    """A lane's word of the row that lane `source` knows the place of."""
    return rows[uint32(uint32(cuda.shfl_sync(ALL_LANES, place, source)) + at)]


@cuda.jit(device=True)
def four_counts(own, a, b, c, d):
    """How many bits a word shares with each of four others, a byte each."""
    front = uint32(uint32(cuda.popc(own & a)) | uint32(cuda.popc(own & b)) << uint32(8))
    return uint32(front | uint32(cuda.popc(own & c)) << uint32(16) | uint32(cuda.popc(own & d)) << uint32(24))


@cuda.jit(device=True)
def eight_sums(front, back, lane):
    """The sums over all lanes of eight numbers up to 64, a byte each; a lane without bits 2 and 4 gets one of them.

    Its bit 16 chooses between `front` and `back`, bit 8 between the bytes 0, 2 and 1, 3, bit 1 between the lower and
    the upper of these two: each exchange of all lanes leaves a lane half of what it had.
    """
    front = uint32(front + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(front), 16)))  # up to 128
    back = uint32(back + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(back), 16)))
    if lane & uint32(16) != uint32(0):
        front = back
    mine, other = uint32(front & uint32(0x00FF00FF)), uint32((front >> uint32(8)) & uint32(0x00FF00FF))
    if lane & uint32(8) != uint32(0):
        mine, other = other, mine
    mine = uint32(mine + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(other), 8)))
    for distance in (4, 2, 1):
        mine = uint32(mine + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(mine), distance)))
    return uint32((mine >> uint32(uint32(16) * (lane & uint32(1)))) & uint32(0xFFFF))


@kernel(
    "void(uint16[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64, int64, uint64[::1],"
    " int32[::1])"
)
def column_tally(near, near_ptr, heavy, listed, queue, rows, lowest, most, held, tallies):
    """A warp per heavy column j: the rows of its hubs, one over the other, counted for its hubs, place by place.

    One stretch of hubs after the other. In the rows of the stretch's own hubs, bits stand for neighbours on either
    side: what is counted is what (i, j) and (k, j) gain from two hubs of the stretch. The rows of earlier hubs give
    (k, j), and each row's bits that column j has, too, (i, j). `held` gets each column's bits.
    """
    words = cuda.shared.array(0, uint64)
    words32 = cuda.shared.array(0, uint32)  # the same memory
    lane = uint32(cuda.threadIdx.x & 31)
    warp = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(ROW + 32 * COLUMN_PLANES))
    first_plane = uint32(warp + uint32(ROW))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    seat = uint32((lane >> uint32(2)) & uint32(4) | (lane >> uint32(3)) & uint32(1) | (lane & uint32(1)) << uint32(1))
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
                hub = uint32(x - uint32(HUB_0))
                word = uint32(uint32(warp + warp) + (hub >> uint32(5)))
                cuda.atomic.or_(words32, word, uint32(uint32(1) << (hub & uint32(31))))
            hubs = cuda.popc(uint32(cuda.ballot_sync(ALL_LANES, x >= lowest)))
            first = uint32(first - uint32(hubs))
        cuda.syncwarp()
        planes = uint32(uint32(32) - uint32(cuda.clz(uint32(end - first))))  # a place counts as many hubs, or less
        planes = min(uint32(COLUMN_PLANES), max(uint32(IN_REGISTERS), planes))
        k = uint32((lowest - uint32(HUB_0)) >> uint32(11))
        while k < uint32(STRETCHES):
            own = words[uint32(warp + lane + uint32(32) * k)]
            held[uint32(uint32(uint32(1) + k * uint32(most) + uint32(task)) * uint32(32) + lane)] = own
            if cuda.any_sync(ALL_LANES, own != uint64(0)):
                clear_planes(words, plane, planes)
                ones = twos = fours = eights = sixteens = uint64(0)
                at = uint32(uint32(32) * k + lane)
                home = uint32(uint32(HUB_0) + uint32(STRETCH) * k)
                limit = uint32(home + uint32(STRETCH))
                p, count = first, 32
                while p < end and count == 32:
                    x = limit
                    if uint32(p + lane) < end:
                        x = uint32(near[uint32(p + lane)])
                    count = cuda.popc(uint32(cuda.ballot_sync(ALL_LANES, x < limit)))
                    earlier = cuda.popc(uint32(cuda.ballot_sync(ALL_LANES, x < home)))
                    place = int32(HUBS * ROW)  # the row of zeros
                    if x < limit:
                        place = int32(uint32(x - uint32(HUB_0)) * uint32(ROW))
                    for s in range(0, count, 8):
                        a, b = row_word(rows, place, s, at), row_word(rows, place, s + 1, at)
                        c, d = row_word(rows, place, s + 2, at), row_word(rows, place, s + 3, at)
                        e, f = row_word(rows, place, s + 4, at), row_word(rows, place, s + 5, at)
                        g, h = row_word(rows, place, s + 6, at), row_word(rows, place, s + 7, at)
                        ones, twos, fours, eights, sixteens = tally_eight(
                            ones, twos, fours, eights, sixteens, a, b, c, d, e, f, g, h, words, spill
                        )
                        if s < earlier:
                            front, back = four_counts(own, a, b, c, d), four_counts(own, e, f, g, h)
                            found = eight_sums(front, back, lane)
                            if lane & uint32(6) == uint32(0) and s + seat < earlier and found != uint32(0):
                                cuda.atomic.add(tallies, uint32(p + uint32(s) + seat), int32(found))
                    p = uint32(p + uint32(32))
                keep_planes(words, plane, ones, twos, fours, eights, sixteens)
                cuda.syncwarp()
                p = uint32(first + lane)
                while p < end:
                    x = uint32(near[p])
                    if home <= x < limit:
                        found = read_counter(words32, first_plane, uint32(x & uint32(STRETCH - 1)), planes)
                        if found != uint32(0):
                            cuda.atomic.add(tallies, p, int32(found))
                    p = uint32(p + uint32(32))
                cuda.syncwarp()
            k = uint32(k + uint32(1))
        task = cuda.shfl_sync(ALL_LANES, following, 0)


@kernel(
    "void(uint16[::1], int32[::1], int64[::1], uint64[::1], int32[::1], int32[::1], int32[::1], uint64[::1], int64,"
    " int64[::1], int32[::1])"
)
def pair_tally(near, near_ptr, in_ptr, in_edges, crossed, piece_ptr, piece_places, held, most, queue, tallies):
    """A warp per stretch and piece of a hub's list of heavy columns: their bits, counted for the hub's rows.

    Lists name columns in about the same order. First come the pieces at the front of all lists, and so on, so that the
    bits that are read at a time are few enough for the cache.
    """
    words = cuda.shared.array(0, uint64)
    words32 = cuda.shared.array(0, uint32)  # the same memory
    lane = uint32(cuda.threadIdx.x & 31)
    first_plane = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(32 * PIECE_PLANES))
    plane = uint32(first_plane + lane)
    spill = uint32(plane + uint32(32 * IN_REGISTERS))
    n, following = near_ptr.size - 1, int64(0)
    if lane == 0:
        following = cuda.atomic.add(queue, 1, 1)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < STRETCHES * piece_ptr[FRONTS * HUBS]:
        if lane == 0:
            following = cuda.atomic.add(queue, 1, 1)
        piece, k = task // STRETCHES, uint32(task % STRETCHES)
        place = piece_places[piece]
        hub = place % HUBS
        if hub // STRETCH <= k:
            u = n - HUBS + hub
            done = (pieces_before(place // HUBS, crossed[hub]) + piece - piece_ptr[place]) * PIECE
            i_end = int64(in_ptr[u + 1] - done)
            i = int64(i_end - min(PIECE, crossed[hub] - done))
            clear_planes(words, plane, PIECE_PLANES)
            ones = twos = fours = eights = sixteens = uint64(0)
            before = uint32(uint32(1) + k * uint32(most))
            while i < i_end:
                place = int32(0)  # zeros
                if i + lane < i_end:
                    place = int32(uint32(before + uint32(in_edges[i + lane])) * uint32(32))
                for s in range(0, min(i_end - i, 32), 8):
                    a, b = row_word(held, place, s, lane), row_word(held, place, s + 1, lane)
                    c, d = row_word(held, place, s + 2, lane), row_word(held, place, s + 3, lane)
                    e, f = row_word(held, place, s + 4, lane), row_word(held, place, s + 5, lane)
                    g, h = row_word(held, place, s + 6, lane), row_word(held, place, s + 7, lane)
                    ones, twos, fours, eights, sixteens = tally_eight(
                        ones, twos, fours, eights, sixteens, a, b, c, d, e, f, g, h, words, spill
                    )
                i += 32
            keep_planes(words, plane, ones, twos, fours, eights, sixteens)
            cuda.syncwarp()
            home = uint32(uint32(HUB_0) + uint32(STRETCH) * k)
            p, end = uint32(uint32(4 * near_ptr[u]) + lane), uint32(4 * near_ptr[u + 1])
            while p < end:
                x = uint32(near[p])
                if home <= x < uint32(home + uint32(STRETCH)):
                    found = read_counter(words32, first_plane, uint32(x & uint32(STRETCH - 1)), uint32(PIECE_PLANES))
                    if found != uint32(0):
                        cuda.atomic.add(tallies, p, int32(found))
                p = uint32(p + uint32(32))
            cuda.syncwarp()
        task = cuda.shfl_sync(ALL_LANES, following, 0)
