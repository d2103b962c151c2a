"""All blocks of a cooperative launch wait for each other.

`arrived` is one int64, 0 before the launch: how often a block has come to where all wait.
"""

from tcgpu.engines.runtime import cuda, int64


@cuda.jit(device=True)
def arrive(arrived):
    """One thread says that its block has come; returns what `arrived` is when all have."""
    blocks = int64(cuda.gridDim.x)
    cuda.threadfence()
    return (cuda.atomic.add(arrived, 0, 1) // blocks + 1) * blocks


@cuda.jit(device=True)
def wait_for_grid(arrived):
    """Wait until all threads of all blocks have come here, and see what they have written."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        all_here = arrive(arrived)
        while cuda.atomic.add(arrived, 0, 0) < all_here:
            pass
        cuda.threadfence()
    cuda.syncthreads()
