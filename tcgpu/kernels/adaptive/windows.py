"""How many triangles with a near k, and not of two hubs and a heavy column, each nonzero is in.

For `tally`, which says what is what. Column i is put where many can look it up, and looked up for what follows
i in each column j that holds it.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint16, uint32, uint64
from tcgpu.kernels.adaptive.setup import ALL_LANES, BITS, LENGTH_BITS, LENGTH_MASK, NEAR

ROOM = 1024  # counters of a block of window_tally; rows beyond are counted in global memory
SIEVE = 128  # words of bits of a warp of sieve_tally
CHUNK = 1024  # quads that a warp lines up at a time: as many as 32 words have bits
QUEUE = 64  # quads with hits that wait to be settled: 31, and one of each lane
DESK = 32 + 32 + QUEUE  # words of shared memory that a warp needs for `meet`


class Column(NamedTuple):
    """Column i, which is near[begin:end]; its bits are in `words` words, a power of 2, from bits[at] on.

    Words for all near numbers are exact: first_of[word] says where in the column a word's first row is, and the first
    `room` rows have counters behind that. Of fewer words, some rows share a bit.
    """

    begin: int
    end: int
    bits: np.ndarray
    at: int
    words: int
    first_of: np.ndarray
    room: int


@cuda.jit(device=True)
def is_set(bits, at, words, x):
    """1 if the bit of near number x is set, else 0: of `words` words of bits, a power of 2, from bits[at] on."""
    word = uint32(at + ((x >> uint32(5)) & uint32(words - uint32(1))))
    return uint32(uint32(bits[word] >> (x & uint32(31))) & uint32(1))


@cuda.jit(device=True)
def marked(column, four):
    """Which of four near numbers, 16 bits each, are set among a column's bits: the last four bits say so."""
    bits, at, words = column.bits, column.at, column.words
    low, high = uint32(four), uint32(four >> uint64(32))
    a, b = is_set(bits, at, words, low & uint32(NEAR)), is_set(bits, at, words, low >> uint32(16))
    c, d = is_set(bits, at, words, high & uint32(NEAR)), is_set(bits, at, words, high >> uint32(16))
    return uint32(a | b << uint32(1) | c << uint32(2) | d << uint32(3))


@cuda.jit(device=True)
def place_of(near, column, x):
    """Where in a column's part of `near` a row is of which the bit is set; its end if the row is not there."""
    low, high = column.begin, column.end
    if column.words == uint32(BITS):
        word = uint32(x >> uint32(5))
        below = uint32(column.bits[word] & uint32(uint32(uint32(1) << (x & uint32(31))) - uint32(1)))
        return uint32(low + uint32(column.first_of[uint32(uint32(2 * BITS) + word)]) + uint32(cuda.popc(below)))
    while low < high:
        middle = uint32((low + high) >> uint32(1))
        if uint32(near[middle]) < x:
            low = uint32(middle + uint32(1))
        else:
            high = middle
    if x == uint32(0) or low == column.end or uint32(near[low]) != x:  # 0 fills up quads
        low = column.end
    return low


@cuda.jit(device=True)
def gain(gains, slot, more):
    """Add to a gain, of which there are two in a word."""
    cuda.atomic.add(gains, slot >> uint32(1), uint32(more << (uint32(16) * (slot & uint32(1)))))


@cuda.jit(device=True)
def settle(near, quads, column, q, hits, gains, tallies):
    """What a quad of near numbers and a column have in common, if the bits speak the truth: how many numbers."""
    four, found = quads[q], uint32(0)
    while hits != uint32(0):
        which = uint32(uint32(cuda.ffs(hits)) - uint32(1))
        hits = uint32(hits & uint32(hits - uint32(1)))
        place = place_of(near, column, uint32(four >> uint64(uint32(16) * which)) & uint32(NEAR))
        if place != column.end:
            found = uint32(found + uint32(1))
            gain(gains, uint32(uint32(4) * q + which), uint32(1))
            row = uint32(place - column.begin)
            if row < column.room:
                cuda.atomic.add(column.bits, uint32(uint32(BITS + BITS // 2) + row), uint32(1))
            else:
                cuda.atomic.add(tallies, place, int32(1))
    return found


@cuda.jit(device=True)
def sum_up_to(value, lane):
    """The sum of what all lanes up to this one have."""
    for distance in (1, 2, 4, 8, 16):
        before = uint32(cuda.shfl_up_sync(ALL_LANES, int32(value), distance))
        if lane >= uint32(distance):
            value = uint32(value + before)
    return value


@cuda.jit(device=True)
def meet(near, quads, in_edges, i, count, column, desk, gains, tallies):
    """A warp meets a column with the pieces that `count` in-edges, up to 32, from i on name: how many triangles a
    lane's in-edge has. All lanes must call it.

    Most pieces are short. So the warp lines them up, one after the other, and takes 32 quads at a time of that line:
    bits say at which places a piece begins, and how many of them lie before a quad, whose it is. Quads with a hit wait
    in a queue until there are 32, so that few lanes are idle when they are settled. Of the warp's shared memory, from
    bits[desk] on, the first 32 words are these bits, the next 32 count triangles by in-edge, the others are the queue.
    """
    bits, lane = column.bits, uint32(cuda.laneid)
    sums, queue = uint32(desk + uint32(32)), uint32(desk + uint32(64))
    upto = uint32(uint32(uint32(2) << lane) - uint32(1))  # the bits of all lanes up to this one
    q, length = uint32(0), uint32(0)
    if lane < count:
        other = in_edges[uint32(i + lane)]
        q, length = uint32(other >> uint64(LENGTH_BITS)), uint32(other & uint64(LENGTH_MASK))
    after = sum_up_to(length, lane)
    before = uint32(after - length)
    total = uint32(cuda.shfl_sync(ALL_LANES, int32(after), 31))
    ahead = int32(q - before)  # from a place in the line to the quad that is there
    bits[uint32(sums + lane)] = uint32(0)
    chunk = begun = uint32(0)
    while chunk < total:
        stop = min(uint32(CHUNK), uint32(total - chunk))
        bits[uint32(desk + lane)] = uint32(0)
        cuda.syncwarp()
        begin = uint32(before - chunk)
        if length != uint32(0) and begin < uint32(CHUNK):
            cuda.atomic.or_(bits, uint32(desk + (begin >> uint32(5))), uint32(uint32(1) << (begin & uint32(31))))
        cuda.syncwarp()
        turn = queued = uint32(0)
        while turn < stop:
            begins = bits[uint32(desk + (turn >> uint32(5)))]
            own = uint32(begun + uint32(cuda.popc(begins & upto)) - uint32(1))
            begun = uint32(begun + uint32(cuda.popc(begins)))
            place, hits = uint32(turn + lane), uint32(0)
            q = uint32(uint32(cuda.shfl_sync(ALL_LANES, ahead, own)) + chunk + place)
            if place < stop:
                hits = marked(column, quads[q])
            lanes = uint32(cuda.ballot_sync(ALL_LANES, hits != uint32(0)))
            if hits != uint32(0):
                to = uint32(queue + queued + uint32(cuda.popc(lanes & uint32(upto >> uint32(1)))))
                bits[to] = uint32(own << uint32(14) | place << uint32(4) | hits)
            queued = uint32(queued + uint32(cuda.popc(lanes)))
            turn = uint32(turn + uint32(32))
            cuda.syncwarp()
            while queued >= uint32(32) or (queued != uint32(0) and turn >= stop):
                some = min(queued, uint32(32))
                queued = uint32(queued - some)
                waiting = uint32(0)
                if lane < some:
                    waiting = bits[uint32(queue + queued + lane)]
                cuda.syncwarp()
                own, place = uint32(waiting >> uint32(14)), uint32((waiting >> uint32(4)) & uint32(CHUNK - 1))
                q = uint32(uint32(cuda.shfl_sync(ALL_LANES, ahead, own)) + chunk + place)
                if lane < some:
                    found = settle(near, quads, column, q, uint32(waiting & uint32(15)), gains, tallies)
                    if found != uint32(0):
                        cuda.atomic.add(bits, uint32(sums + own), found)
        chunk = uint32(chunk + uint32(CHUNK))
    cuda.syncwarp()
    return bits[uint32(sums + lane)]


@cuda.jit(device=True)
def gain_of_in_edge(found, i, is_near, origins, gains, support):
    """What the nonzero gains that in-edge i stands for."""
    if found != uint32(0):
        if is_near:
            gain(gains, origins[i], found)
        else:
            cuda.atomic.add(support, origins[i], int32(found))


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " int64[::1], uint32[::1], int32[::1], int32[::1])"
)
def window_tally(
    near, quads, columns, pieces, in_edges, origins, task_ptr, in_ptr, base, queue, gains, tallies, support
):
    """A block per task: the near rows of a column as bits, and its warps meet it with what its in-edges name.

    Blocks take tasks off a queue. Beside each word of bits is kept where in the column its first row is: with the bits
    below, that says where a row is, and so which counter is its.
    """
    bits = cuda.shared.array(0, uint32)  # and from bits[counters] on, how often each row was hit; then the warps' desks
    first_of = cuda.shared.array(0, uint16)  # the same memory; from first_of[2 * BITS] on
    taken = cuda.shared.array(1, int64)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    warp, warps, lane = uint32(thread >> uint32(5)), uint32(threads >> uint32(5)), uint32(thread & uint32(31))
    counters = uint32(BITS + BITS // 2)
    desk = uint32(uint32(BITS + BITS // 2 + ROOM) + warp * uint32(DESK))
    first_near = in_ptr[base]
    k = thread
    while k < uint32(BITS + BITS // 2 + ROOM):
        bits[k] = uint32(0)
        k = uint32(k + threads)
    if thread == 0:
        taken[0] = cuda.atomic.add(queue, 2, 1)
    cuda.syncthreads()
    tasks = task_ptr[task_ptr.size - 1]
    task = tasks - 1 - taken[0]  # the last ones, which have most to do, come first
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
        in_edges_here = uint32(piece & uint64(LENGTH_MASK))
        i_end = uint32(i + in_edges_here)
        is_near = i >= first_near
        share = min(uint32(32), uint32(uint32(in_edges_here + warps - uint32(1)) // warps))
        i = uint32(i + warp * share)
        cuda.syncthreads()
        if thread == 0:
            taken[0] = cuda.atomic.add(queue, 2, 1)
        while i < i_end:
            own = Column(begin, end, bits, uint32(0), uint32(BITS), first_of, uint32(ROOM))
            count = min(share, uint32(i_end - i))
            found = meet(near, quads, in_edges, i, count, own, desk, gains, tallies)
            gain_of_in_edge(found, uint32(i + lane), is_near, origins, gains, support)
            i = uint32(i + warps * share)
        cuda.syncthreads()
        p = uint32(begin + thread)
        while p < end:
            bits[uint32(near[p]) >> uint32(5)] = uint32(0)
            place = uint32(p - begin)
            if place < uint32(ROOM):
                times = bits[uint32(counters + place)]
                bits[uint32(counters + place)] = uint32(0)
                if times != uint32(0):
                    cuda.atomic.add(tallies, p, int32(times))
            p = uint32(p + threads)
        task = tasks - 1 - taken[0]
        cuda.syncthreads()


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " uint32[::1], int32[::1], int32[::1])"
)
def sieve_tally(near, quads, columns, pieces, in_edges, origins, task_ptr, in_ptr, base, gains, tallies, support):
    """A warp per task of a few in-edges: as window_tally, with so few bits that several rows share one.

    Where a bit is set, the row is searched for. This takes longer for a hit, but spares most of what a task costs that
    has few.
    """
    bits = cuda.shared.array(0, uint32)
    first_of = cuda.shared.array(0, uint16)  # not used
    lane = uint32(cuda.threadIdx.x & 31)
    mine = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(SIEVE + DESK))
    desk = uint32(mine + uint32(SIEVE))
    first_near = in_ptr[base]
    for k in range(0, SIEVE, 32):
        bits[uint32(mine + lane + uint32(k))] = uint32(0)
    cuda.syncwarp()
    task = task_ptr[task_ptr.size - 1] - 1 - (cuda.grid(1) >> 5)
    while task >= 0:
        column, piece = columns[task], pieces[task]
        begin = uint32(uint32(column >> uint64(LENGTH_BITS)) * uint32(4))
        end = uint32(begin + uint32(column & uint64(LENGTH_MASK)) * uint32(4))
        p = uint32(begin + lane)
        while p < end:
            x = uint32(near[p])
            if x != 0:
                word = uint32(mine + ((x >> uint32(5)) & uint32(SIEVE - 1)))
                cuda.atomic.or_(bits, word, uint32(uint32(1) << (x & uint32(31))))
            p = uint32(p + uint32(32))
        i, count = uint32(piece >> uint64(LENGTH_BITS)), uint32(piece & uint64(LENGTH_MASK))
        cuda.syncwarp()
        own = Column(begin, end, bits, mine, uint32(SIEVE), first_of, uint32(0))
        found = meet(near, quads, in_edges, i, count, own, desk, gains, tallies)
        gain_of_in_edge(found, uint32(i + lane), i >= first_near, origins, gains, support)
        cuda.syncwarp()
        p = uint32(begin + lane)
        while p < end:
            bits[uint32(mine + ((uint32(near[p]) >> uint32(5)) & uint32(SIEVE - 1)))] = uint32(0)
            p = uint32(p + uint32(32))
        cuda.syncwarp()
        task -= cuda.gridsize(1) >> 5
