"""Exclusive prefix sums: starts[k] = counts[0] + ... + counts[k - 1], in two launches.

The counts are cut into parts, one for each block. The first kernel adds up each part. In the second, a block adds up
the sums of all parts before its own: there it starts.
"""

import numpy as np

from tcgpu.engines.runtime import arrays_of, cuda, int64, kernel
from tcgpu.kernels.device.warp import WARP, sum_of_warp, sum_up_to

THREADS, MOST_PARTS = 256, 1024
WARPS = THREADS // WARP
TYPES = "int32[::1], int32[::1]", "int32[::1], int64[::1]", "int64[::1], int64[::1]"  # of counts and starts


def scan(counts, starts):
    """Write the prefix sums of `counts` to `starts`, which has one element more: the sum of all."""
    xp = arrays_of(starts)
    if xp is np:
        starts[:1] = 0
        np.cumsum(counts, out=starts[1:], dtype=starts.dtype)
        return
    parts = max(1, min(MOST_PARTS, counts.size // (8 * THREADS)))
    sums = xp.empty(parts, np.int64)
    sum_parts.launch(parts, THREADS, counts, starts, sums)
    write_starts.launch(parts, THREADS, counts, starts, sums)


@cuda.jit(device=True)
def first_of(part, parts, size):
    """The first of `size` counts that is in a part: a multiple of THREADS, but for the end."""
    return min(size, (size + THREADS * parts - 1) // (THREADS * parts) * THREADS * part)


@cuda.jit(device=True)
def sum_of_block(value, sums):
    """The sum of all threads' values, for each of them. sums: WARPS elements of shared memory."""
    value = sum_of_warp(value)
    if cuda.threadIdx.x % WARP == 0:
        sums[cuda.threadIdx.x // WARP] = value
    cuda.syncthreads()
    total = int64(0)
    for warp in range(WARPS):
        total += sums[warp]
    return total


@kernel(*(f"void({types}, int64[::1])" for types in TYPES))
def sum_parts(counts, starts, sums):
    """A block per part: add up its counts."""
    of_warps = cuda.shared.array(WARPS, int64)
    part, parts = int64(cuda.blockIdx.x), int64(cuda.gridDim.x)
    end = first_of(part + 1, parts, counts.size)
    found, k = int64(0), first_of(part, parts, counts.size) + cuda.threadIdx.x
    while k < end:
        found += counts[k]
        k += THREADS
    found = sum_of_block(found, of_warps)
    if cuda.threadIdx.x == 0:
        sums[part] = found


@kernel(*(f"void({types}, int64[::1])" for types in TYPES))
def write_starts(counts, starts, sums):
    """A block per part: write where each of its counts starts."""
    of_warps = cuda.shared.array(WARPS, int64)
    part, parts = int64(cuda.blockIdx.x), int64(cuda.gridDim.x)
    thread, lane, warp = int64(cuda.threadIdx.x), cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    before, other = int64(0), thread
    while other < part:
        before += sums[other]
        other += THREADS
    start = sum_of_block(before, of_warps)
    k, end = first_of(part, parts, counts.size) + thread, first_of(part + 1, parts, counts.size)
    while k - thread < end:  # whole blocks
        cuda.syncthreads()  # all have read `of_warps`
        count = int64(counts[k]) if k < end else int64(0)
        up_to = sum_up_to(count)
        if lane == WARP - 1:
            of_warps[warp] = up_to
        cuda.syncthreads()
        own = start
        for other in range(WARPS):
            if other < warp:
                own += of_warps[other]
            start += of_warps[other]
        if k < end:
            starts[k] = own + up_to - count
        k += THREADS
    if part == parts - 1 and thread == 0:
        starts[counts.size] = start
