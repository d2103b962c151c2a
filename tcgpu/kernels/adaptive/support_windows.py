"""Other triangles with a near k, for each of their edges: see `support_plan`.

Column i is in shared memory, as in `windows`. A warp intersects it with the pieces of up to 32 in-edges. Pieces are
short. So the warp concatenates them, and looks up 32 quads of the sequence at a time. Quads with a hit go to a queue
until there are 32 of them, so that few lanes are idle when hits are counted.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.built_in import NEAR
from tcgpu.engines.runtime import cuda, kernel, uint16, uint32, uint64
from tcgpu.kernels.adaptive.layout import lay_out_nonzero, near_number, pack_piece, unpack_piece, unpack_quad
from tcgpu.kernels.adaptive.windows import WINDOW_WORDS
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device.warp import ALL_LANES, sum_up_to

MAX_SHARED_COUNTERS = 1024  # of a block of window_tally; further rows are counted in global memory
FIRST_COUNTER = WINDOW_WORDS + WINDOW_WORDS // 2  # where they begin, after the bits and `first_of`
SIEVE_WORDS = 128  # of bits of a warp of sieve_tally
PLACE_BITS = 10  # of a quad in a chunk
CHUNK = 1 << PLACE_BITS  # quads that a warp concatenates at a time: the bits of 32 words
SUMS, QUEUE = 32, 64  # in a warp's scratch: bits where pieces begin, then a sum for each in-edge, then the queue
WARP_SCRATCH_WORDS = QUEUE + 31 + 32 + 1  # up to 31 quads stay in the queue, and each lane adds one
WINDOW_BYTES = 4 * (FIRST_COUNTER + MAX_SHARED_COUNTERS + 4 * WARP_SCRATCH_WORDS)  # for a block of four warps
SIEVE_BYTES = 4 * 4 * (SIEVE_WORDS + WARP_SCRATCH_WORDS)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64[::1], uint16[::1], uint64[::1],"
    " uint64[::1])"
)
def lay_out_edges(col_ptr, row_idx, col_of, quad_ptr, first_near, last, in_end, near, in_edges, edges):
    """As `layout.lay_out`, with only the in-edges that are columns before `last`. edges: for each in-edge (i, j) its
    nonzero and, in the lower half, the end of column j."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        begin, end, is_in_edge = lay_out_nonzero(e, i, j, col_ptr, quad_ptr, first_near, col_ptr.size, 0, near)
        if is_in_edge and j < last:
            k = cuda.atomic.add(in_end, i, 1)
            in_edges[k] = pack_piece(begin, end - begin)
            edges[k] = uint64(e) << uint64(32) | uint64(col_ptr[j + 1])
        e += cuda.gridsize(1)


class Column(NamedTuple):
    """Column i, which is near[begin:end], as bits: word k of `words`, a power of 2, is bits[at + k].

    WINDOW_WORDS words have a bit for each near number: then first_of[2 * WINDOW_WORDS + k] is the position in the
    column of word k's first row, and the first `counters` rows have counters, from bits[FIRST_COUNTER] on. With fewer
    words, several near numbers share a bit. The nonzero of slot s is s + shift, modulo 2^32.
    """

    begin: int
    end: int
    shift: int
    bits: np.ndarray
    at: int
    words: int
    first_of: np.ndarray
    counters: int


class Tally(NamedTuple):
    """The slots of all columns, the in-edges and their nonzeros: see `layout`, `lay_out_edges`."""

    near: np.ndarray
    quads: np.ndarray  # the same memory
    in_edges: np.ndarray
    edges: np.ndarray
    support: np.ndarray


@cuda.jit(device=True)
def candidate(column, x):
    """1 if the bit of near number x is set, else 0."""
    return (column.bits[column.at + ((x >> 5) & (column.words - 1))] >> (x & 31)) & 1


@cuda.jit(device=True)
def hits_of(column, quad):
    """Bits 0 to 3: which of a quad's four near numbers have their bit set in the column."""
    a, b, c, d = unpack_quad(quad)
    a, b, c, d = candidate(column, a), candidate(column, b), candidate(column, c), candidate(column, d)
    return a | (b << 1) | (c << 2) | (d << 3)


@cuda.jit(device=True)
def slot_of(near, column, x):
    """The slot of near number x, whose bit is set, in a column; the column's end if x is not there."""
    if column.words == WINDOW_WORDS:
        word = x >> 5
        below = column.bits[word] & ((1 << (x & 31)) - 1)
        return column.begin + column.first_of[2 * WINDOW_WORDS + word] + cuda.popc(below)
    slot = first_from(near, column.begin, column.end, x)
    if x == 0 or slot == column.end or near[slot] != x:  # zeros pad quads
        slot = column.end
    return slot


@cuda.jit(device=True)
def count_hits(tally, column, q, shift, hits):
    """Check the candidates of quad q exactly: the bits may give false positives. Returns how many there are.

    Each is a triangle: add 1 for its slot in the quad, to (k, j), and for its slot in column i, to (k, i). shift: as
    that of column i, for the column of the quad.
    """
    quad, found = tally.quads[q], uint32(0)
    while hits != 0:
        which = cuda.ffs(hits) - 1
        hits &= hits - 1
        slot = slot_of(tally.near, column, uint32(quad >> (16 * which)) & NEAR)
        if slot != column.end:
            found += 1
            cuda.atomic.add(tally.support, uint32(4 * q + which + shift), 1)
            row = slot - column.begin
            if row < column.counters:
                cuda.atomic.add(column.bits, FIRST_COUNTER + row, 1)
            else:
                cuda.atomic.add(tally.support, uint32(slot + column.shift), 1)
    return found


@cuda.jit(device=True)
def pack_entry(owner, place, hits):
    """An entry of the queue: the lane whose piece has a quad, the quad's place in the chunk, and its `hits_of`."""
    return (owner << PLACE_BITS + 4) | (place << 4) | hits


@cuda.jit(device=True)
def unpack_entry(entry):
    """The owner, the place and the hits."""
    return entry >> PLACE_BITS + 4, (entry >> 4) & (CHUNK - 1), entry & 15


@cuda.jit(device=True)
def mark_begins(bits, scratch, begin, length):
    """Set a bit for each lane, at the position in the chunk where its piece begins; none if its `length` is 0."""
    bits[scratch + (cuda.threadIdx.x & 31)] = 0
    cuda.syncwarp()
    if length != 0 and begin < CHUNK:
        cuda.atomic.or_(bits, scratch + (begin >> 5), 1 << (begin & 31))
    cuda.syncwarp()


@cuda.jit(device=True)
def count_queue(tally, column, scratch, queued, ahead, shift):
    """Count the hits of the last 32 entries of the queue, or of all if there are fewer; returns how many are left.

    ahead: for a lane's in-edge, its first quad less its position in the chunk; shift: see `count_hits`.
    """
    lane = cuda.threadIdx.x & 31
    taken = min(queued, 32)
    queued -= taken
    entry = uint32(0)
    if lane < taken:
        entry = column.bits[scratch + QUEUE + queued + lane]
    cuda.syncwarp()
    owner, place, hits = unpack_entry(entry)
    q, shift = cuda.shfl_sync(ALL_LANES, ahead, owner) + place, cuda.shfl_sync(ALL_LANES, shift, owner)
    if lane < taken:
        found = count_hits(tally, column, q, shift, hits)
        if found != 0:
            cuda.atomic.add(column.bits, scratch + SUMS + owner, found)
    return queued


@cuda.jit(device=True)
def intersect_pieces(tally, column, scratch, first, count):
    """A warp intersects column i with the pieces of in_edges[first : first + count], 32 at most, one a lane.

    scratch: where the warp's WARP_SCRATCH_WORDS begin in column.bits. In a chunk, the number of pieces that begin up to
    a quad gives the lane `owner` to whose piece it belongs.
    """
    bits, lane = column.bits, cuda.threadIdx.x & 31
    up_to = (2 << lane) - 1  # the bits of all lanes up to this one
    q = length = e = shift = uint32(0)
    if lane < count:
        q, q_end = unpack_piece(tally.in_edges[first + lane])
        edge = tally.edges[first + lane]
        length, e, shift = q_end - q, uint32(edge >> uint64(32)), uint32(edge) - 4 * q_end
    after = sum_up_to(length)
    total = cuda.shfl_sync(ALL_LANES, after, 31)
    ahead = q - (after - length)  # added to a position in the sequence, it gives the position of the quad
    bits[scratch + SUMS + lane] = 0
    chunk = begun = uint32(0)
    while chunk < total:
        stop = min(CHUNK, total - chunk)
        mark_begins(bits, scratch, after - length - chunk, length)
        turn = queued = uint32(0)
        while turn < stop:
            begins = bits[scratch + (turn >> 5)]
            owner = begun + cuda.popc(begins & up_to) - 1
            begun += cuda.popc(begins)
            place, hits = turn + lane, uint32(0)
            at = cuda.shfl_sync(ALL_LANES, ahead, owner) + chunk + place
            if place < stop:
                hits = hits_of(column, tally.quads[at])
            mask = cuda.ballot_sync(ALL_LANES, hits != 0)
            if hits != 0:
                bits[scratch + QUEUE + queued + cuda.popc(mask & (up_to >> 1))] = pack_entry(owner, place, hits)
            queued += cuda.popc(mask)
            turn += 32
            cuda.syncwarp()
            while queued >= 32 or (queued != 0 and turn >= stop):
                queued = count_queue(tally, column, scratch, queued, ahead + chunk, shift)
        chunk += CHUNK
    cuda.syncwarp()
    found = bits[scratch + SUMS + lane]
    if found != 0:
        cuda.atomic.add(tally.support, e, found)


@cuda.jit(device=True)
def write_column(near, column, thread, threads):
    """Threads of a block or warp write a column as bits, and, if these are exact, each word's first row."""
    p = column.begin + thread
    while p < column.end:
        x = near_number(near, p)
        if x != 0:
            cuda.atomic.or_(column.bits, column.at + ((x >> 5) & (column.words - 1)), 1 << (x & 31))
            if column.words == WINDOW_WORDS:
                before = uint32(0)
                if p > column.begin:
                    before = near_number(near, p - 1)
                if before == 0 or before >> 5 != x >> 5:
                    column.first_of[2 * WINDOW_WORDS + (x >> 5)] = p - column.begin
        p += threads


@cuda.jit(device=True)
def clear_column(near, column, thread, threads, support):
    """Threads of a block or warp clear a column's bits, and add its counters to its nonzeros."""
    p = column.begin + thread
    while p < column.end:
        column.bits[column.at + ((near_number(near, p) >> 5) & (column.words - 1))] = 0
        row = p - column.begin
        if row < column.counters:
            found = column.bits[FIRST_COUNTER + row]
            column.bits[FIRST_COUNTER + row] = 0
            if found != 0:
                cuda.atomic.add(support, uint32(p + column.shift), found)
        p += threads


@cuda.jit(device=True)
def shift_of_column(col_ptr, row_idx, edges, first, q_end):
    """The `shift` of column i, whose quads end at q_end. first: any of its in-edges."""
    i = row_idx[uint32(edges[first] >> uint64(32))]
    return uint32(col_ptr[i + 1]) - 4 * q_end


TALLY_TYPES = (
    "int64[::1], int32[::1], uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1],"
    " int32[::1]"
)


@kernel(f"void({TALLY_TYPES})")
def window_tally(col_ptr, row_idx, near, quads, columns, pieces, in_edges, edges, task_ptr, support):
    """A block per task: it writes column i as bits, and its warps intersect it with the pieces of the in-edges.

    The last tasks, which have most work, come first.
    """
    bits = cuda.shared.array(0, uint32)  # also the counters, and each warp's scratch
    first_of = cuda.shared.array(0, uint16)  # the same memory
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    warp, warps = thread >> 5, threads >> 5
    scratch = FIRST_COUNTER + MAX_SHARED_COUNTERS + warp * WARP_SCRATCH_WORDS
    tally = Tally(near, quads, in_edges, edges, support)
    k = thread
    while k < FIRST_COUNTER + MAX_SHARED_COUNTERS:
        bits[k] = 0
        k += threads
    cuda.syncthreads()
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        begin, end = unpack_piece(columns[task])
        at, at_end = unpack_piece(pieces[task])
        shift = shift_of_column(col_ptr, row_idx, edges, at, end)
        column = Column(4 * begin, 4 * end, shift, bits, 0, WINDOW_WORDS, first_of, MAX_SHARED_COUNTERS)
        write_column(near, column, thread, threads)
        share = min(32, (at_end - at + warps - 1) // warps)
        at += warp * share
        cuda.syncthreads()
        while at < at_end:
            intersect_pieces(tally, column, scratch, at, min(share, at_end - at))
            at += warps * share
        cuda.syncthreads()
        clear_column(near, column, thread, threads, support)
        cuda.syncthreads()
        task -= cuda.gridDim.x


@kernel(f"void({TALLY_TYPES})")
def sieve_tally(col_ptr, row_idx, near, quads, columns, pieces, in_edges, edges, task_ptr, support):
    """A warp per task of a few in-edges: as window_tally, with fewer words, so that several near numbers share a bit.

    If a bit is set, a binary search looks for the row. A hit takes longer, a task with few hits less long.
    """
    bits = cuda.shared.array(0, uint32)
    first_of = cuda.shared.array(0, uint16)  # not used
    lane = cuda.threadIdx.x & 31
    mine = (cuda.threadIdx.x >> 5) * (SIEVE_WORDS + WARP_SCRATCH_WORDS)
    tally = Tally(near, quads, in_edges, edges, support)
    for k in range(0, SIEVE_WORDS, 32):
        bits[mine + lane + uint32(k)] = 0
    cuda.syncwarp()
    task = task_ptr[task_ptr.size - 1] - 1 - (cuda.grid(1) >> 5)
    while task >= 0:
        begin, end = unpack_piece(columns[task])
        at, at_end = unpack_piece(pieces[task])
        shift = shift_of_column(col_ptr, row_idx, edges, at, end)
        column = Column(4 * begin, 4 * end, shift, bits, mine, SIEVE_WORDS, first_of, 0)
        write_column(near, column, lane, uint32(32))
        cuda.syncwarp()
        intersect_pieces(tally, column, mine + SIEVE_WORDS, at, at_end - at)
        cuda.syncwarp()
        clear_column(near, column, lane, uint32(32), support)
        cuda.syncwarp()
        task -= cuda.gridsize(1) >> 5
