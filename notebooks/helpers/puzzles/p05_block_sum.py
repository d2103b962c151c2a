"""One sum from all threads of a block

*Belongs to [01](01_naive.ipynb), which adds up so; needs the barriers of puzzle 4.* Up to now each thread added its
count to `total` with an atomic addition, and they stand in line for it. Here each thread keeps its count in shared
memory, `sums[me]` (`shared` says how many bytes of it a block has: 8 a thread); the block adds up, and adds to
`total` once.

Adding one by one takes 63 steps. In a *reduction* half of the threads add at a time: 64 sums become 32, then 16, 8,
4, 2, 1. It must hold for any number of threads, 7 or 33, too. The target also asks for no *bank conflict*: lanes of a
warp that want words 32 or 64 apart, of one *bank* of shared memory, wait in turn. Lanes side by side on words side by
side have none.

Hint: Keep in `left` how many sums are left, first `cuda.blockDim.x`. While there is more than one, thread `me` adds
`sums[me + half]` to `sums[me]`, with `half = (left + 1) // 2`, if there is such a sum. Then `half` are left.

Hint: Every round reads what others wrote in the round before: a barrier before the loop, and one in each round. All
threads must reach a barrier, so it can't stand in an `if` that only some enter.
"""

import tcgpu
from helpers.puzzles.given import triangles_at
from tcgpu import cuda, int64

TARGET = {"atomics": 2, "shared_requests": 110, "bank_conflicts": 0}


@tcgpu.method(threads=64, blocks=2, shared="8 * threads")
def block_sum(col_ptr, row_idx, col_of, total):
    sums, me = cuda.shared.array(0, int64), cuda.threadIdx.x
    sums[me] = 0
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        sums[me] += triangles_at(e, col_ptr, row_idx, col_of)
    # given: ...  # 8 lines: add all sums to sums[0]
    left = cuda.blockDim.x
    cuda.syncthreads()
    while left > 1:
        half = (left + 1) // 2
        if me + half < left:
            sums[me] += sums[me + half]
        cuda.syncthreads()
        left = half
    # end
    if me == 0:
        cuda.atomic.add(total, 0, sums[0])
