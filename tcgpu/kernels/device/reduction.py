"""Adding up a block's counts: the tree in shared memory after Harris, "Optimizing Parallel Reduction in CUDA".

In each round the upper half of the partial sums is added onto the lower half, by threads that lie side by side: warps
stay whole as long as can be, and no two lanes meet in a bank. A block of any size will do: where the number of sums is
odd, the middle one waits for the next round.
"""

from tcgpu.engines.runtime import cuda, int64

BYTES_PER_THREAD = 8  # of dynamic shared memory


@cuda.jit(device=True)
def add_block_to(total, count):
    """Add the `count` of every thread of this block to `total[0]` with one atomic addition.

    All threads must call it. It overwrites the dynamic shared memory: BYTES_PER_THREAD for every thread of the block.
    """
    partial = cuda.shared.array(0, int64)
    thread = cuda.threadIdx.x
    cuda.syncthreads()  # whatever the memory was used for is over
    partial[thread] = count
    cuda.syncthreads()
    sums = cuda.blockDim.x
    while sums > 1:
        half = (sums + 1) >> 1
        if thread + half < sums:
            partial[thread] += partial[thread + half]
        cuda.syncthreads()
        sums = half
    if thread == 0:
        cuda.atomic.add(total, 0, partial[0])
