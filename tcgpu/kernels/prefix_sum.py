"""Exclusive prefix sums: starts[k] = counts[0] + ... + counts[k - 1], in two launches.

The counts are cut into parts, one for each block, and these into shares, one for each warp. The first kernel adds up
each part. In the second, a block adds up the sums of all parts before its own: there it starts.
"""

import numpy as np

from tcgpu.engines.runtime import arrays_of, cuda, int64, kernel
from tcgpu.kernels.device.warp import ALL_LANES, WARP, sum_of_warp, sum_up_to

THREADS, MOST_PARTS = 256, 1024
WARPS = THREADS // WARP
# The types of counts, and of counts and starts
COUNTS = "uint8[::1]", "int32[::1]", "int64[::1]"
COUNTS_AND_STARTS = "int32[::1], int32[::1]", *(f"{counts}, int64[::1]" for counts in COUNTS)


@cuda.jit(device=True)
def share_of_warp(size):
    """Where the share of this warp begins and ends, in `size` counts; shares are as long as each other and a multiple
    of WARP, but for the end."""
    warps = int64(cuda.gridDim.x) * WARPS
    length = (size + WARP * warps - 1) // (WARP * warps) * WARP
    begin = min(size, length * (cuda.grid(1) // WARP))
    return begin, min(size, begin + length)


@cuda.jit(device=True)
def sum_of_share(counts, begin, end):
    """The sum of counts[begin:end], in lane 0 of the warp."""
    found, k = int64(0), begin + cuda.threadIdx.x % WARP
    while k < end:
        found += counts[k]
        k += WARP
    return sum_of_warp(found)


@cuda.jit(device=True)
def sum_up_warps(of_warp, sums, warps):
    """The sum of what the first `warps` warps of the block have in lane 0. sums: WARPS elements of shared memory."""
    cuda.syncthreads()
    if cuda.threadIdx.x % WARP == 0:
        sums[cuda.threadIdx.x // WARP] = of_warp
    cuda.syncthreads()
    total = int64(0)
    for warp in range(warps):
        total += sums[warp]
    return total


@kernel(*(f"void({counts}, int64[::1])" for counts in COUNTS))
def sum_parts(counts, sums):
    """A block per part: add up its counts."""
    of_warps = cuda.shared.array(WARPS, int64)
    begin, end = share_of_warp(counts.size)
    found = sum_up_warps(sum_of_share(counts, begin, end), of_warps, WARPS)
    if cuda.threadIdx.x == 0:
        sums[cuda.blockIdx.x] = found


@kernel(*(f"void({types}, int64[::1])" for types in COUNTS_AND_STARTS))
def write_starts(counts, starts, sums):
    """A block per part: write where each of its counts starts."""
    of_warps = cuda.shared.array(WARPS, int64)
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    before, part = int64(0), int64(cuda.threadIdx.x)
    while part < cuda.blockIdx.x:
        before += sums[part]
        part += THREADS
    start = sum_up_warps(sum_of_warp(before), of_warps, WARPS)
    begin, end = share_of_warp(counts.size)
    start += sum_up_warps(sum_of_share(counts, begin, end), of_warps, warp)
    k = begin + lane
    while k - lane < end:  # whole warps
        count = int64(counts[k]) if k < end else int64(0)
        up_to = sum_up_to(count)
        if k < end:
            starts[k] = start + up_to - count
        start += cuda.shfl_sync(ALL_LANES, up_to, WARP - 1)
        k += WARP
    if cuda.grid(1) == cuda.gridsize(1) - 1:
        starts[counts.size] = start


def scan(counts, starts):
    """Write the prefix sums of `counts` to `starts`, which has one element more: the sum of all."""
    xp = arrays_of(starts)
    if xp is np:
        starts[:1] = 0
        np.cumsum(counts, out=starts[1:], dtype=starts.dtype)
        return
    parts = max(1, min(MOST_PARTS, counts.size // (8 * THREADS)))
    sums = xp.empty(parts, np.int64)
    sum_parts.launch(parts, THREADS, counts, sums)
    write_starts.launch(parts, THREADS, counts, starts, sums)
