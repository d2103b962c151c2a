"""How many triangles with a near k, and not of two hubs and a heavy column, each nonzero is in.

For `adaptive_tally`, which says what is what. Column i is put where many can look it up, and looked up for what follows
i in each column j that holds it.
"""

from tcgpu._cuda import cuda, int32, int64, kernel, uint16, uint32, uint64
from tcgpu.kernels.adaptive_setup import ALL_LANES, BITS, LENGTH_BITS, LENGTH_MASK, NEAR

LANES = 4  # share an in-edge
ROOM = 1024  # counters of a block of window_tally; rows beyond are counted in global memory
SIEVE = 64  # words of bits of a warp of sieve_tally


@cuda.jit(device=True)
def is_set(bits, at, words, x):
    """1 if the bit of near number x is set, else 0: of `words` words of bits, a power of 2, from bits[at] on."""
    word = uint32(at + ((x >> uint32(5)) & uint32(words - uint32(1))))
    return uint32(uint32(bits[word] >> (x & uint32(31))) & uint32(1))


@cuda.jit(device=True)
def marked(bits, at, words, four):
    """Which of four near numbers, 16 bits each, are set among the bits: the last four bits of a number say so."""
    low, high = uint32(four), uint32(four >> uint64(32))
    a, b = is_set(bits, at, words, low & uint32(NEAR)), is_set(bits, at, words, low >> uint32(16))
    c, d = is_set(bits, at, words, high & uint32(NEAR)), is_set(bits, at, words, high >> uint32(16))
    return uint32(a | b << uint32(1) | c << uint32(2) | d << uint32(3))


@cuda.jit(device=True)
def look_up(quads, q, q_end, bits, at, words):
    """A thread's share of a piece, up to eight quads: those near numbers of which the bits are set, as bits."""
    hits, turn = uint32(0), uint32(0)
    while q < q_end and turn < uint32(32):
        r = uint32(q + uint32(LANES))
        one, two = quads[q], uint64(0)  # both are asked for before one is looked at
        if r < q_end:
            two = quads[r]
        both = uint32(marked(bits, at, words, one) | marked(bits, at, words, two) << uint32(4))
        hits = uint32(hits | both << turn)
        turn = uint32(turn + uint32(8))
        q = uint32(r + uint32(LANES))
    return hits


@cuda.jit(device=True)
def slot_of(q, which):
    """Where the near number is that bit `which` of `look_up` stands for."""
    return uint32(uint32(4) * q + (which & uint32(3)) + uint32(LANES) * (which & uint32(28)))


@cuda.jit(device=True)
def gain(gains, slot, more):
    """Add to a gain, of which there are two in a word."""
    cuda.atomic.add(gains, slot >> uint32(1), uint32(more << (uint32(16) * (slot & uint32(1)))))


@cuda.jit(device=True)
def gain_of_all(found, seat, i, is_near, origins, gains, support):
    """What nonzero (i, j) gains, of which each of those who share it found some. All lanes of the warp must call it."""
    distance = LANES >> 1
    while distance > 0:
        found = uint32(found + uint32(cuda.shfl_xor_sync(ALL_LANES, int32(found), distance)))
        distance >>= 1
    if seat == uint32(0) and found != uint32(0):
        origin = origins[i]
        if is_near:
            gain(gains, origin, found)
        else:
            cuda.atomic.add(support, origin, int32(found))


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " int64[::1], uint32[::1], int32[::1], int32[::1])"
)
def window_tally(
    near, quads, columns, pieces, in_edges, origins, task_ptr, in_ptr, base, queue, gains, tallies, support
):
    """A block per task: the near rows of a column as bits, looked up for the pieces that its in-edges name.

    Blocks take tasks off a queue. Beside each word of bits is kept where in the column its first row is: with the bits
    below, that says where a row is, and so which counter is its. Hits are dealt with when all of a piece is looked up:
    then more threads of a warp have one.
    """
    bits = cuda.shared.array(0, uint32)  # and from bits[counters] on, how often each row was hit
    first_of = cuda.shared.array(0, uint16)  # the same memory; from first_of[2 * BITS] on
    taken = cuda.shared.array(1, int64)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    group, seat, groups = uint32(thread // LANES), uint32(thread % LANES), uint32(threads // LANES)
    counters = uint32(BITS + BITS // 2)
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
        i_end = uint32(i + uint32(piece & uint64(LENGTH_MASK)))
        is_near = i >= first_near
        i = uint32(i + group)
        cuda.syncthreads()
        if thread == 0:
            taken[0] = cuda.atomic.add(queue, 2, 1)
        while uint32(i - (group & uint32(32 // LANES - 1))) < i_end:  # whole warps
            q, q_end = uint32(0), uint32(0)
            if i < i_end:
                other = in_edges[i]
                q = uint32(other >> uint64(LENGTH_BITS))
                q_end = uint32(q + uint32(other & uint64(LENGTH_MASK)))
            q = uint32(q + seat)
            found = uint32(0)
            while q < q_end:
                hits = look_up(quads, q, q_end, bits, uint32(0), uint32(BITS))
                found = uint32(found + uint32(cuda.popc(hits)))
                while hits != uint32(0):
                    slot = slot_of(q, uint32(uint32(cuda.ffs(hits)) - uint32(1)))
                    hits = uint32(hits & uint32(hits - uint32(1)))
                    gain(gains, slot, uint32(1))
                    x = uint32(near[slot])
                    word = uint32(x >> uint32(5))
                    below = uint32(bits[word] & uint32(uint32(uint32(1) << (x & uint32(31))) - uint32(1)))
                    place = uint32(uint32(first_of[uint32(uint32(2 * BITS) + word)]) + uint32(cuda.popc(below)))
                    if place < uint32(ROOM):
                        cuda.atomic.add(bits, uint32(counters + place), uint32(1))
                    else:
                        cuda.atomic.add(tallies, uint32(begin + place), int32(1))
                q = uint32(q + uint32(8 * LANES))
            gain_of_all(found, seat, i, is_near, origins, gains, support)
            i = uint32(i + groups)
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


@cuda.jit(device=True)
def place_of(near, begin, end, x):
    """Where among near numbers from `begin` to `end`, which ascend, x is; `end` if it is not there."""
    low, high = begin, end
    while low < high:
        middle = uint32((low + high) >> uint32(1))
        if uint32(near[middle]) < x:
            low = uint32(middle + uint32(1))
        else:
            high = middle
    if low < end and uint32(near[low]) != x:
        low = end
    return low


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " uint32[::1], int32[::1], int32[::1])"
)
def sieve_tally(near, quads, columns, pieces, in_edges, origins, task_ptr, in_ptr, base, gains, tallies, support):
    """A warp per task of a few in-edges: as window_tally, with so few bits that several rows share one.

    Where a bit is set, the row is searched for. This takes longer for a hit, but spares most of what a task costs that
    has few. Here 0, which is no row, may share its bit with one.
    """
    bits = cuda.shared.array(0, uint32)
    lane = uint32(cuda.threadIdx.x & 31)
    mine = uint32(uint32(cuda.threadIdx.x >> 5) * uint32(SIEVE))
    group, seat = uint32(lane // LANES), uint32(lane % LANES)
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
        i = uint32(piece >> uint64(LENGTH_BITS))
        i_end = uint32(i + uint32(piece & uint64(LENGTH_MASK)))
        is_near = i >= first_near
        i = uint32(i + group)
        cuda.syncwarp()
        while uint32(i - group) < i_end:  # whole warps
            q, q_end = uint32(0), uint32(0)
            if i < i_end:
                other = in_edges[i]
                q = uint32(other >> uint64(LENGTH_BITS))
                q_end = uint32(q + uint32(other & uint64(LENGTH_MASK)))
            q = uint32(q + seat)
            found = uint32(0)
            while q < q_end:
                hits = look_up(quads, q, q_end, bits, mine, uint32(SIEVE))
                while hits != uint32(0):
                    slot = slot_of(q, uint32(uint32(cuda.ffs(hits)) - uint32(1)))
                    hits = uint32(hits & uint32(hits - uint32(1)))
                    x, place = uint32(0), end
                    if slot < uint32(uint32(4) * q_end):  # beyond are the zeros that look_up makes up
                        x = uint32(near[slot])
                    if x != uint32(0):  # a pad
                        place = place_of(near, begin, end, x)
                    if place < end:
                        found = uint32(found + uint32(1))
                        gain(gains, slot, uint32(1))
                        cuda.atomic.add(tallies, place, int32(1))
                q = uint32(q + uint32(8 * LANES))
            gain_of_all(found, seat, i, is_near, origins, gains, support)
            i = uint32(i + uint32(32 // LANES))
        cuda.syncwarp()
        p = uint32(begin + lane)
        while p < end:
            bits[uint32(mine + ((uint32(near[p]) >> uint32(5)) & uint32(SIEVE - 1)))] = uint32(0)
            p = uint32(p + uint32(32))
        cuda.syncwarp()
        task -= cuda.gridsize(1) >> 5
