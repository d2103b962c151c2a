"""What a block keeps in its shared memory: counters, and places that belong to the first key that comes there."""

from tcgpu.engines.runtime import cuda, int32

FREE = -1  # the owner of a free place


@cuda.jit(device=True)
def clear_counters(counters, size):
    """Set `size` counters to 0; all threads of the block wait until that is done."""
    for k in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        counters[k] = 0
    cuda.syncthreads()


@cuda.jit(device=True)
def claim(owners, place, key):
    """Whether a place belongs to the key (int32), which takes it if it is free."""
    owner = owners[place]
    if owner == FREE:
        owner = cuda.atomic.cas(owners, place, int32(FREE), key)
    return owner == FREE or owner == key
