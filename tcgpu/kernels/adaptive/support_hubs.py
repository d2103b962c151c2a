"""Triangles of hubs i and k and a heavy column j, for each of their edges: see `support_plan`.

Both kernels add rows of bits to a warp's counters: see `support_counters`. A warp takes 32 rows at a time; each lane
has the position of one, and all lanes read eight rows at once. If fewer are left, a row of zeros pads the eight.
"""

from tcgpu.built_in import HUBS
from tcgpu.engines.runtime import cuda, kernel, uint32, uint64
from tcgpu.kernels.adaptive.hubs import common_bits, write_hub_bits
from tcgpu.kernels.adaptive.layout import FIRST_HUB, HEAVY_LIST, HUB_GROUP, HUB_WORDS, column_slots, near_number
from tcgpu.kernels.adaptive.support_counters import (
    IN_REGISTERS,
    Planes,
    add_eight,
    cleared,
    counter,
    eight_words,
    store,
)
from tcgpu.kernels.adaptive.support_layout import BATCH, PHASES, batches_before
from tcgpu.kernels.device.warp import ALL_LANES, take_task

HUB_GROUPS = HUBS // HUB_GROUP
COLUMN_PLANES = 13  # a counter is below 2^13: a hub is not its own neighbour
BATCH_PLANES = 10  # counts up to BATCH
COLUMN_BYTES = 4 * 8 * (HUB_WORDS + 32 * COLUMN_PLANES)  # of shared memory, for four warps
BATCH_BYTES = 4 * 8 * 32 * BATCH_PLANES


@cuda.jit(device=True)
def common_bytes(own, a, b, c, d):
    """The numbers of bits that a word shares with each of four others, as four bytes."""
    front, back = common_bits(own, a) | (common_bits(own, b) << 8), common_bits(own, c) | (common_bits(own, d) << 8)
    return front | (back << 16)


@cuda.jit(device=True)
def sum_eight(front, back, lane):
    """Sums over all lanes of eight numbers up to 64, the bytes of `front` and `back`.

    Lanes whose numbers have bits 2 and 4 clear get one sum each: bit 16 chooses `front` or `back`, bit 8 bytes 0 and 2
    or 1 and 3, bit 1 the lower or upper of the two. Each exchange halves what a lane holds.
    """
    front += cuda.shfl_xor_sync(ALL_LANES, front, 16)  # bytes up to 128
    back += cuda.shfl_xor_sync(ALL_LANES, back, 16)
    if lane & 16 != 0:
        front = back
    mine, other = front & 0x00FF00FF, (front >> 8) & 0x00FF00FF
    if lane & 8 != 0:
        mine, other = other, mine
    mine += cuda.shfl_xor_sync(ALL_LANES, other, 8)
    for distance in (4, 2, 1):
        mine += cuda.shfl_xor_sync(ALL_LANES, mine, distance)
    return (mine >> (16 * (lane & 1))) & 0xFFFF


@cuda.jit(device=True)
def add_hub_rows(near, first, end, hub_rows, group, own, planes, slot_support):
    """Add the rows of the column's hubs near[first:end], of this group and before, to the counters of a group.

    Rows of hubs before the group also give (i, j) its triangles: bits that a row shares with the column's, `own`.
    """
    lane = cuda.threadIdx.x & 31
    number = ((lane >> 2) & 4) | ((lane >> 3) & 1) | ((lane & 1) << 1)  # of the sum that sum_eight gives this lane
    home = FIRST_HUB + HUB_GROUP * group
    limit = home + HUB_GROUP
    registers = cleared(planes)
    p, count = first, uint32(32)
    while p < end and count == 32:
        x = limit
        if p + lane < end:
            x = near_number(near, p + lane)
        count = cuda.popc(cuda.ballot_sync(ALL_LANES, x < limit))
        before = cuda.popc(cuda.ballot_sync(ALL_LANES, x < home))
        row = uint32(HUBS * HUB_WORDS)  # the row of zeros
        if x < limit:
            row = (x - FIRST_HUB) * HUB_WORDS
        for s in range(0, count, 8):
            a, b, c, d, e, f, g, h = eight_words(hub_rows, row, s, 32 * group + lane)
            registers = add_eight(planes, registers, (a, b, c, d, e, f, g, h))
            if s < before:
                found = sum_eight(common_bytes(own, a, b, c, d), common_bytes(own, e, f, g, h), lane)
                if lane & 6 == 0 and s + number < before and found != 0:
                    cuda.atomic.add(slot_support, p + s + number, found)
        p += 32
    store(planes, registers)
    cuda.syncwarp()


@cuda.jit(device=True)
def add_counters(near, begin, end, group, planes, slot_support):
    """Add each hub's counter to its slot, for the hubs of this group among near[begin:end]."""
    p = begin + (cuda.threadIdx.x & 31)
    while p < end:
        place = near_number(near, p) - FIRST_HUB - HUB_GROUP * group
        if place < HUB_GROUP:
            found = counter(planes, place)
            if found != 0:
                cuda.atomic.add(slot_support, p, found)
        p += 32
    cuda.syncwarp()


@kernel(
    "void(uint16[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64, int64, uint64[::1],"
    " int32[::1])"
)
def column_tally(
    near, quad_ptr, heavy_columns, list_sizes, queues, hub_rows, first_hub, most_heavy, heavy_bits, slot_support
):  # fmt: skip
    """A warp per heavy column j: add up the rows of its hubs, and read the counters of its hubs.

    It takes one group of hubs after the other. Within a group, rows have bits for neighbours on either side: the
    counters are what (i, j) and (k, j) gain from two hubs of the group. The rows of hubs of earlier groups give (k, j),
    and the bits that each of them shares with column j give (i, j). Stores the column's bits for `pair_tally`.
    """
    words = cuda.shared.array(0, uint64)
    words32 = cuda.shared.array(0, uint32)  # the same memory
    lane = cuda.threadIdx.x & 31
    at = (cuda.threadIdx.x >> 5) * (HUB_WORDS + 32 * COLUMN_PLANES)  # this warp's words
    if cuda.grid(1) < 32:
        heavy_bits[cuda.grid(1)] = 0
    following = take_task(queues, 0)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < list_sizes[HEAVY_LIST]:
        following = take_task(queues, 0)
        begin, end = column_slots(quad_ptr, heavy_columns[task])
        begin, end = uint32(begin), uint32(end)  # see support_plan.MAX_QUADS
        first = write_hub_bits(near, begin, end, uint32(first_hub), words, words32, at)
        digits = 32 - cuda.clz(end - first)  # a counter is at most the number of hubs
        digits = min(COLUMN_PLANES, max(IN_REGISTERS, digits))
        planes = Planes(words, words32, uint64(at + HUB_WORDS), digits)
        group = (uint32(first_hub) - FIRST_HUB) // HUB_GROUP
        while group < HUB_GROUPS:
            own = words[at + lane + 32 * group]
            heavy_bits[(1 + group * uint32(most_heavy) + uint32(task)) * 32 + lane] = own
            if cuda.any_sync(ALL_LANES, own != 0):
                add_hub_rows(near, first, end, hub_rows, group, own, planes, slot_support)
                add_counters(near, first, end, group, planes, slot_support)
            group += 1
        task = cuda.shfl_sync(ALL_LANES, following, 0)


@kernel(
    "void(uint16[::1], int32[::1], int64[::1], uint64[::1], int32[::1], int32[::1], int32[::1], uint64[::1], int64,"
    " int64[::1], int32[::1])"
)
def pair_tally(
    near, quad_ptr, in_ptr, in_edges, heavy_count, batch_ptr, batch_list, heavy_bits, most_heavy, queues, slot_support
):  # fmt: skip
    """A warp per group of hubs and batch of heavy columns of hub i: add up their bits, read the counters of i's rows.

    The lists of all hubs have columns in about the same order. Warps take the batches at the front of all lists first,
    so that the bits that they read at a time fit into the cache.
    """
    words = cuda.shared.array(0, uint64)
    words32 = cuda.shared.array(0, uint32)  # the same memory
    lane = cuda.threadIdx.x & 31
    planes = Planes(words, words32, uint64(cuda.threadIdx.x >> 5) * (32 * BATCH_PLANES), BATCH_PLANES)
    n = quad_ptr.size - 1
    following = take_task(queues, 1)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < HUB_GROUPS * batch_ptr[PHASES * HUBS]:
        following = take_task(queues, 1)
        batch, group = task // HUB_GROUPS, uint32(task % HUB_GROUPS)
        phase, hub = batch_list[batch] // HUBS, batch_list[batch] % HUBS
        if hub // HUB_GROUP <= group:
            u = n - HUBS + hub
            done = (batches_before(phase, heavy_count[hub]) + batch - batch_ptr[batch_list[batch]]) * BATCH
            at_end = in_ptr[u + 1] - done
            at = at_end - min(BATCH, heavy_count[hub] - done)
            registers = cleared(planes)
            while at < at_end:
                row = uint32(0)  # the row of zeros
                if at + lane < at_end:
                    row = (1 + group * uint32(most_heavy) + uint32(in_edges[at + lane])) * 32
                for s in range(0, min(at_end - at, 32), 8):
                    registers = add_eight(planes, registers, eight_words(heavy_bits, row, s, lane))
                at += 32
            store(planes, registers)
            cuda.syncwarp()
            begin, end = column_slots(quad_ptr, u)
            add_counters(near, uint32(begin), uint32(end), group, planes, slot_support)
        task = cuda.shfl_sync(ALL_LANES, following, 0)
