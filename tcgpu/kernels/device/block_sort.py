"""Sort keys of 32 bits in the shared memory of a block, by DIGIT_BITS at a time, from the lowest on."""

from tcgpu.engines.runtime import cuda, uint32
from tcgpu.kernels.device.shared_memory import clear_counters
from tcgpu.kernels.device.warp import WARP, sum_up_to

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS


@cuda.jit(device=True)
def range_of_warp(size):
    """Where the keys of this warp begin and end, of `size` keys of its block."""
    warp, warps = uint32(cuda.threadIdx.x // WARP), uint32(cuda.blockDim.x // WARP)
    length = (size // WARP + warps) // warps * WARP
    return min(size, warp * length), min(size, (warp + 1) * length)


@cuda.jit(device=True)
def scan_counters(counters, starts):
    """Replace each warp's counter of a digit by the sum of those of the warps before; write where each digit starts.

    The counters of warp w begin at w * DIGITS.
    """
    digit, warps = cuda.threadIdx.x, cuda.blockDim.x // WARP
    while digit < DIGITS:
        before = uint32(0)
        for warp in range(warps):
            here = warp * DIGITS + digit
            counters[here], before = before, before + counters[here]
        starts[digit] = before
        digit += cuda.blockDim.x
    cuda.syncthreads()
    if cuda.threadIdx.x < WARP:
        first, found = cuda.threadIdx.x * (DIGITS // WARP), uint32(0)
        for digit in range(first, first + DIGITS // WARP):
            found += starts[digit]
        before = sum_up_to(found) - found
        for digit in range(first, first + DIGITS // WARP):
            starts[digit], before = before, before + starts[digit]
    cuda.syncthreads()


@cuda.jit(device=True)
def sort_digit(keys, sorted_keys, counters, starts, size, shift):
    """Sort `size` keys by DIGIT_BITS from bit `shift` on; equal ones keep their order.

    counters: 2 * DIGITS for each warp. starts: DIGITS. All in shared memory.
    """
    lane, warps = uint32(cuda.threadIdx.x & 31), cuda.blockDim.x // WARP
    own = uint32(cuda.threadIdx.x // WARP * DIGITS)  # this warp's counters, and its masks of lanes
    masks = counters[warps * DIGITS :]
    first, end = range_of_warp(size)
    clear_counters(counters, 2 * warps * DIGITS)
    e = first + lane
    while e < end:
        cuda.atomic.add(counters, own + ((keys[e] >> shift) & (DIGITS - 1)), uint32(1))
        e += WARP
    cuda.syncthreads()
    scan_counters(counters, starts)
    e = first + lane
    while e - lane < end:
        key = digit = place = same = uint32(0)
        if e < end:
            key = keys[e]
            digit = (key >> shift) & (DIGITS - 1)
            cuda.atomic.or_(masks, own + digit, uint32(1) << lane)
        cuda.syncwarp()
        if e < end:
            same = masks[own + digit]  # the lanes that have this digit
            place = starts[digit] + counters[own + digit] + cuda.popc(same & ((uint32(1) << lane) - 1))
        cuda.syncwarp()
        if e < end:
            sorted_keys[place] = key
            if same >> lane == 1:  # the last of these lanes
                counters[own + digit] += cuda.popc(same)
                masks[own + digit] = 0
        cuda.syncwarp()
        e += WARP
    cuda.syncthreads()


def counter_bytes(threads):
    """The shared memory of the counters of a block."""
    return 8 * (threads // WARP << DIGIT_BITS)
