"""Counters in the shared memory of a block."""

from tcgpu.engines.runtime import cuda


@cuda.jit(device=True)
def clear_counters(counters, size):
    """Set `size` counters to 0; all threads of the block wait until that is done."""
    k = cuda.threadIdx.x
    while k < size:
        counters[k] = 0
        k += cuda.blockDim.x
    cuda.syncthreads()
