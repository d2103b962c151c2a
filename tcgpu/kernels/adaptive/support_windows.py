"""Other triangles with a near k, for each of their edges: see `support_plan`.

Column i is in shared memory, as in `windows`. A warp intersects it with the pieces of up to 32 in-edges. Pieces are
short. So the warp concatenates them, and looks up 32 quads of the sequence at a time. Quads with a hit go to a queue
until there are 32 of them, so that few lanes are idle when hits are counted.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.built_in import NEAR
from tcgpu.engines.runtime import cuda, int64, kernel, uint16, uint32
from tcgpu.kernels.adaptive.layout import near_number, unpack_piece, unpack_quad
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


class Column(NamedTuple):
    """Column i, which is near[begin:end], as bits: word k of `words`, a power of 2, is bits[at + k].

    WINDOW_WORDS words have a bit for each near number: then first_of[2 * WINDOW_WORDS + k] is the position in the
    column of word k's first row, and the first `counters` rows have counters, from bits[FIRST_COUNTER] on. With fewer
    words, several near numbers share a bit.
    """

    begin: int
    end: int
    bits: np.ndarray
    at: int
    words: int
    first_of: np.ndarray
    counters: int


class Tally(NamedTuple):
    """The slots of all columns, the in-edges, and their counters: see `layout`, `support_layout`."""

    near: np.ndarray
    quads: np.ndarray  # the same memory
    in_edges: np.ndarray
    edge_slots: np.ndarray
    slot_support16: np.ndarray  # 16 bits for each slot, two slots to a uint32
    slot_support: np.ndarray  # int32, for the same slots; `gather` adds both
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
def add16(support16, slot, more):
    """Add to a slot's 16 bits."""
    cuda.atomic.add(support16, slot >> 1, more << (16 * (slot & 1)))


@cuda.jit(device=True)
def count_hits(tally, column, q, hits):
    """Check the candidates of quad q exactly: the bits may give false positives. Returns how many there are.

    Each is a triangle: add 1 at its slot in the quad, for (k, j), and at its slot in column i, for (k, i).
    """
    quad, found = tally.quads[q], uint32(0)
    while hits != 0:
        which = cuda.ffs(hits) - 1
        hits &= hits - 1
        slot = slot_of(tally.near, column, uint32(quad >> (16 * which)) & NEAR)
        if slot != column.end:
            found += 1
            add16(tally.slot_support16, 4 * q + which, 1)
            row = slot - column.begin
            if row < column.counters:
                cuda.atomic.add(column.bits, FIRST_COUNTER + row, 1)
            else:
                cuda.atomic.add(tally.slot_support, slot, 1)
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
def count_queue(tally, column, scratch, queued, ahead):
    """Count the hits of the last 32 entries of the queue, or of all if there are fewer; returns how many are left.

    ahead: for a lane's in-edge, its first quad less its position in the chunk.
    """
    lane = cuda.threadIdx.x & 31
    taken = min(queued, 32)
    queued -= taken
    entry = uint32(0)
    if lane < taken:
        entry = column.bits[scratch + QUEUE + queued + lane]
    cuda.syncwarp()
    owner, place, hits = unpack_entry(entry)
    q = cuda.shfl_sync(ALL_LANES, ahead, owner) + place
    if lane < taken:
        found = count_hits(tally, column, q, hits)
        if found != 0:
            cuda.atomic.add(column.bits, scratch + SUMS + owner, found)
    return queued


@cuda.jit(device=True)
def intersect_pieces(tally, column, scratch, first, count, is_near):
    """A warp intersects column i with the pieces of in_edges[first : first + count], 32 at most, one a lane.

    scratch: where the warp's WARP_SCRATCH_WORDS begin in column.bits. In a chunk, the number of pieces that begin up to
    a quad gives the lane `owner` to whose piece it belongs. is_near: vertex i is near: its in-edges have slots.
    """
    bits, lane = column.bits, cuda.threadIdx.x & 31
    up_to = (2 << lane) - 1  # the bits of all lanes up to this one
    q = length = uint32(0)
    if lane < count:
        q, q_end = unpack_piece(tally.in_edges[first + lane])
        length = q_end - q
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
                queued = count_queue(tally, column, scratch, queued, ahead + chunk)
        chunk += CHUNK
    cuda.syncwarp()
    found = bits[scratch + SUMS + lane]
    if found != 0:
        slot = tally.edge_slots[first + lane]
        if is_near:
            add16(tally.slot_support16, slot, found)
        else:
            cuda.atomic.add(tally.support, slot, found)


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
def clear_column(near, column, thread, threads, slot_support):
    """Threads of a block or warp clear a column's bits, and add its counters to its slots."""
    p = column.begin + thread
    while p < column.end:
        column.bits[column.at + ((near_number(near, p) >> 5) & (column.words - 1))] = 0
        row = p - column.begin
        if row < column.counters:
            found = column.bits[FIRST_COUNTER + row]
            column.bits[FIRST_COUNTER + row] = 0
            if found != 0:
                cuda.atomic.add(slot_support, p, found)
        p += threads


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " int64[::1], uint32[::1], int32[::1], int32[::1])"
)
def window_tally(
    near, quads, columns, pieces, in_edges, edge_slots, task_ptr, in_ptr, first_near, queues, slot_support16,
    slot_support, support,
):  # fmt: skip
    """A block per task: it writes column i as bits, and its warps intersect it with the pieces of the in-edges.

    Blocks take tasks off a queue; the last tasks, which have most work, come first.
    """
    bits = cuda.shared.array(0, uint32)  # also the counters, and each warp's scratch
    first_of = cuda.shared.array(0, uint16)  # the same memory
    taken = cuda.shared.array(1, int64)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    warp, warps = thread >> 5, threads >> 5
    scratch = FIRST_COUNTER + MAX_SHARED_COUNTERS + warp * WARP_SCRATCH_WORDS
    tally = Tally(near, quads, in_edges, edge_slots, slot_support16, slot_support, support)
    near_in_edges = in_ptr[first_near]
    k = thread
    while k < FIRST_COUNTER + MAX_SHARED_COUNTERS:
        bits[k] = 0
        k += threads
    if thread == 0:
        taken[0] = cuda.atomic.add(queues, 2, 1)
    cuda.syncthreads()
    tasks = task_ptr[task_ptr.size - 1]
    task = tasks - 1 - taken[0]
    while task >= 0:
        begin, end = unpack_piece(columns[task])
        column = Column(4 * begin, 4 * end, bits, 0, WINDOW_WORDS, first_of, MAX_SHARED_COUNTERS)
        write_column(near, column, thread, threads)
        at, at_end = unpack_piece(pieces[task])
        is_near = at >= near_in_edges
        share = min(32, (at_end - at + warps - 1) // warps)
        at += warp * share
        cuda.syncthreads()
        if thread == 0:
            taken[0] = cuda.atomic.add(queues, 2, 1)
        while at < at_end:
            intersect_pieces(tally, column, scratch, at, min(share, at_end - at), is_near)
            at += warps * share
        cuda.syncthreads()
        clear_column(near, column, thread, threads, slot_support)
        task = tasks - 1 - taken[0]
        cuda.syncthreads()


@kernel(
    "void(uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], uint32[::1], int32[::1], int64[::1], int64,"
    " uint32[::1], int32[::1], int32[::1])"
)
def sieve_tally(
    near, quads, columns, pieces, in_edges, edge_slots, task_ptr, in_ptr, first_near, slot_support16, slot_support,
    support,
):  # fmt: skip
    """A warp per task of a few in-edges: as window_tally, with fewer words, so that several near numbers share a bit.

    If a bit is set, a binary search looks for the row. A hit takes longer, a task with few hits less long.
    """
    bits = cuda.shared.array(0, uint32)
    first_of = cuda.shared.array(0, uint16)  # not used
    lane = cuda.threadIdx.x & 31
    mine = (cuda.threadIdx.x >> 5) * (SIEVE_WORDS + WARP_SCRATCH_WORDS)
    tally = Tally(near, quads, in_edges, edge_slots, slot_support16, slot_support, support)
    near_in_edges = in_ptr[first_near]
    for k in range(0, SIEVE_WORDS, 32):
        bits[mine + lane + uint32(k)] = 0
    cuda.syncwarp()
    task = task_ptr[task_ptr.size - 1] - 1 - (cuda.grid(1) >> 5)
    while task >= 0:
        begin, end = unpack_piece(columns[task])
        column = Column(4 * begin, 4 * end, bits, mine, SIEVE_WORDS, first_of, 0)
        write_column(near, column, lane, uint32(32))
        at, at_end = unpack_piece(pieces[task])
        cuda.syncwarp()
        intersect_pieces(tally, column, mine + SIEVE_WORDS, at, at_end - at, at >= near_in_edges)
        cuda.syncwarp()
        clear_column(near, column, lane, uint32(32), slot_support)
        cuda.syncwarp()
        task -= cuda.gridsize(1) >> 5
