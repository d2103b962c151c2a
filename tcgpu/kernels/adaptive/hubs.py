"""Triangles j < i < k with a hub k, a heavy column j and an i that has a row of bits: word AND word, 64 hubs at a time.

Hubs have rows of bits, in a large graph all near vertices.
"""

from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import FIRST_HUB, HUB_GROUP, HUB_WORDS, near_number, near_slots
from tcgpu.kernels.device.warp import ALL_LANES, add_warps_to, take_task

HUB_BYTES = 4 * 8 * HUB_WORDS  # of shared memory, for four warps


@cuda.jit(device=True)
def write_hub_bits(near, begin, end, words, words32, at):
    """A warp writes the hubs at near[begin:end] as bits to words[at : at + HUB_WORDS]. words32: the same memory."""
    lane = cuda.threadIdx.x & 31
    for k in range(0, HUB_WORDS, 32):
        words[at + lane + uint32(k)] = 0
    cuda.syncwarp()
    p = begin + lane
    while p < end:
        h = near_number(near, p) - FIRST_HUB
        cuda.atomic.or_(words32, 2 * at + (h >> 5), 1 << (h & 31))
        p += 32
    cuda.syncwarp()


@cuda.jit(device=True)
def row_of(near, p, first_number):
    """The position in hub_rows where the row of the vertex in slot p begins."""
    return (near_number(near, p) - first_number) * HUB_WORDS


@cuda.jit(device=True)
def common_hubs(near, p, end, first_number, hub_rows, own, lowest):
    """The number of bits that a lane's words of a column, `own`, share with the rows of its vertices, near[p:end].

    A lane has a word of each of the four groups of hubs; the column has hubs in group `lowest` and later. A hub's row
    has bits only past it: in its group and later.
    """
    lane = cuda.threadIdx.x & 31
    count = uint64(0)
    middle, last = FIRST_HUB + 2 * HUB_GROUP, FIRST_HUB + 3 * HUB_GROUP
    while lowest < 3 and p < end and near_number(near, p) < last:
        at = row_of(near, p, first_number) + lane
        found = cuda.popc(own[3] & hub_rows[at + 96]) + cuda.popc(own[2] & hub_rows[at + 64])
        if lowest < 2 and near_number(near, p) < middle:
            found += cuda.popc(own[1] & hub_rows[at + 32]) + cuda.popc(own[0] & hub_rows[at])
        count += found
        p += 1
    lane += 96
    while p + 4 <= end:  # one word each: four rows at a time, so that four loads are in flight
        a = hub_rows[row_of(near, p, first_number) + lane]
        b = hub_rows[row_of(near, p + 1, first_number) + lane]
        c = hub_rows[row_of(near, p + 2, first_number) + lane]
        d = hub_rows[row_of(near, p + 3, first_number) + lane]
        count += cuda.popc(own[3] & a) + cuda.popc(own[3] & b) + cuda.popc(own[3] & c) + cuda.popc(own[3] & d)
        p += 4
    while p < end:
        count += cuda.popc(own[3] & hub_rows[row_of(near, p, first_number) + lane])
        p += 1
    return count


@kernel(
    "void(uint16[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64,"
    " int64[::1])"
)
def hub_kernel(
    near, quad_ptr, quad_count, hub_count, heavy_columns, list_size, queue, hub_rows, first_number, total
):  # fmt: skip
    """A warp per heavy column j: for each i in it that has a row of bits, this row AND the bits of column j.

    first_number: the near number of the vertex that has the first row: that of the first hub, or 0, which no vertex
    has. Lane l has words l, l + 32, l + 64 and l + 96 of column j. Warps take columns off a queue.
    """
    words = cuda.shared.array(0, uint64)
    words32 = cuda.shared.array(0, uint32)  # the same memory
    at = (cuda.threadIdx.x >> 5) * HUB_WORDS  # this warp's words
    mine = at + (cuda.threadIdx.x & 31)
    count = uint64(0)
    following = take_task(queue, 0)
    task = cuda.shfl_sync(ALL_LANES, following, 0)
    while task < list_size[0]:
        following = take_task(queue, 0)
        j = heavy_columns[task]
        begin, end = near_slots(quad_ptr, quad_count, j)
        hubs = end - uint64(hub_count[j])
        write_hub_bits(near, hubs, end, words, words32, at)
        own = words[mine], words[mine + 32], words[mine + 64], words[mine + 96]
        lowest = (near_number(near, hubs) - FIRST_HUB) // HUB_GROUP
        if first_number > 0:
            begin = hubs
        count += common_hubs(near, begin, end, uint32(first_number), hub_rows, own, lowest)
        task = cuda.shfl_sync(ALL_LANES, following, 0)
    add_warps_to(total, int64(count))
