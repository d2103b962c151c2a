"""Triangles j < i < k with hubs i and k and a heavy column j: word AND word, 64 hubs at a time."""

from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import FIRST_HUB, HUB_GROUP, HUB_WORDS, column_slots, near_number
from tcgpu.kernels.device.warp import ALL_LANES, add_warps_to, take_task

HUB_BYTES = 4 * 8 * HUB_WORDS  # of shared memory, for four warps


@cuda.jit(device=True)
def write_hub_bits(near, begin, end, first_hub, words, words32, at):
    """A warp writes the hubs of the column at near[begin:end] as bits to words[at : at + HUB_WORDS].

    words32: the same memory as `words`. first_hub: the near number of the first hub. Returns the slot of the column's
    first hub.
    """
    lane = cuda.threadIdx.x & 31
    for k in range(0, HUB_WORDS, 32):
        words[at + lane + uint32(k)] = 0
    cuda.syncwarp()
    first, hubs = end, uint32(32)
    while hubs == 32:  # hubs come last: if all lanes have found one, there may be more in front
        x = uint32(0)
        if lane < first - begin:
            x = near_number(near, first - 1 - lane)
        if x >= first_hub:
            h = x - FIRST_HUB
            cuda.atomic.or_(words32, 2 * at + (h >> 5), 1 << (h & 31))
        hubs = cuda.popc(cuda.ballot_sync(ALL_LANES, x >= first_hub))
        first -= hubs
    cuda.syncwarp()
    return first


@cuda.jit(device=True)
def common_bits(a, b):
    """How many bits two words share."""
    return cuda.popc(a & b)


@cuda.jit(device=True)
def row_of(near, p):
    """The position in hub_rows where the row of the hub in slot p begins."""
    return (near_number(near, p) - FIRST_HUB) * HUB_WORDS


@cuda.jit(device=True)
def common_hubs(near, first, end, hub_rows, own):
    """The number of bits that a lane's words of a column, `own`, share with the rows of its hubs, near[first:end].

    A lane has a word of each of the four groups of hubs. Row h has bits only past hub h: in the group of h and later.
    """
    lane = cuda.threadIdx.x & 31
    count = uint64(0)
    p = first
    while p < end:
        at = row_of(near, p) + lane
        if at >= 3 * HUB_GROUP * HUB_WORDS:
            break
        found = common_bits(own[3], hub_rows[at + 96]) + common_bits(own[2], hub_rows[at + 64])
        if at < 2 * HUB_GROUP * HUB_WORDS:
            found += common_bits(own[1], hub_rows[at + 32]) + common_bits(own[0], hub_rows[at])
        count += found
        p += 1
    at = lane + 96
    while p + 4 <= end:  # one word each: four hubs at a time, so that four loads are in flight
        a = hub_rows[row_of(near, p) + at]
        b = hub_rows[row_of(near, p + 1) + at]
        c = hub_rows[row_of(near, p + 2) + at]
        d = hub_rows[row_of(near, p + 3) + at]
        count += common_bits(own[3], a) + common_bits(own[3], b) + common_bits(own[3], c) + common_bits(own[3], d)
        p += 4
    while p < end:
        count += common_bits(own[3], hub_rows[row_of(near, p) + at])
        p += 1
    return count


@kernel("void(uint16[::1], int32[::1], int32[::1], int64[::1], int64[::1], uint64[::1], int64, int64[::1])")
def hub_kernel(near, quad_ptr, heavy_columns, list_size, queue, hub_rows, first_hub, total):
    """A warp per heavy column j: for each hub i in it, the row of bits of i AND the bits of column j.

    Lane l has words l, l + 32, l + 64 and l + 96 of column j. Warps take columns off a queue.
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
        begin, end = column_slots(quad_ptr, heavy_columns[task])
        first = write_hub_bits(near, begin, end, uint32(first_hub), words, words32, at)
        own = words[mine], words[mine + 32], words[mine + 64], words[mine + 96]
        count += common_hubs(near, first, end, hub_rows, own)
        task = cuda.shfl_sync(ALL_LANES, following, 0)
    add_warps_to(total, int64(count))
