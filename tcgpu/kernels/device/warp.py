"""What the lanes of a warp do together."""

from tcgpu.engines.runtime import cuda, int64

WARP = 32  # lanes
ALL_LANES = 0xFFFFFFFF  # the mask of a whole warp


@cuda.jit(device=True)
def sum_of_warp(value):
    """The sum of all 32 lanes' values, in lane 0."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(ALL_LANES, value, distance)
    return value


@cuda.jit(device=True)
def max_of_warp(value):
    """The largest of all 32 lanes' values, in each lane."""
    for distance in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(ALL_LANES, value, distance))
    return value


@cuda.jit(device=True)
def sum_up_to(value):
    """The sum of the values of lanes 0 to this one."""
    lane = cuda.threadIdx.x & 31
    for distance in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(ALL_LANES, value, distance)
        if lane >= distance:
            value += before
    return value


@cuda.jit(device=True)
def add_warps_to(total, count):
    """As `add_block_to`, for blocks of whole warps: each warp adds up its lanes, then the first warp adds up the warps.
    It has two barriers, not one for each round: counts of small graphs take 4 % less time. With it, `window_kernel`
    takes 12 us more on an H200; we do not know why."""
    partial, lane, warp = cuda.shared.array(0, int64), cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    found = sum_of_warp(count)
    cuda.syncthreads()  # all threads have finished their previous use of the memory
    if lane == 0:
        partial[warp] = found
    cuda.syncthreads()
    if warp == 0:
        found = sum_of_warp(partial[lane] if lane < cuda.blockDim.x // WARP else int64(0))
        if lane == 0 and found != 0:
            cuda.atomic.add(total, 0, found)


@cuda.jit(device=True)
def append_lanes(chosen, value, values, sizes, which):
    """Append the value of each chosen lane to `values`, whose size is sizes[which]."""
    lane = cuda.threadIdx.x & 31
    mask = cuda.ballot_sync(ALL_LANES, chosen)
    first = int64(0)
    if lane == 0 and mask != 0:
        first = cuda.atomic.add(sizes, which, int64(cuda.popc(mask)))
    first = cuda.shfl_sync(ALL_LANES, first, 0)
    if chosen:
        values[first + cuda.popc(mask & ((1 << lane) - 1))] = value


@cuda.jit(device=True)
def take_task(queues, which):
    """Return the next number of a queue in lane 0 of a warp; 0 in the others.

    A warp takes its next task before it begins the current one, so that it does not wait for the atomic addition.
    """
    task = int64(0)
    if cuda.threadIdx.x & 31 == 0:
        task = cuda.atomic.add(queues, which, 1)
    return task
