"""Adding up a block's counts: the tree in shared memory after Harris, "Optimizing Parallel Reduction in CUDA".

In each round neighbouring threads add the upper half of the partial sums to the lower half: so warps do not diverge
until the last rounds, and there are no bank conflicts. A block may have any size: if the number of sums is odd, the
middle one is left for the next round.
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
    cuda.syncthreads()  # all threads have finished their previous use of the memory
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
