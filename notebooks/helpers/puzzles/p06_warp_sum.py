"""The sum of a warp, without shared memory

*Belongs to [09](09_edges_and_vertices.ipynb).* The 32 threads of a warp, its *lanes*, can hand each other a number
directly. `cuda.shfl_down_sync(0xFFFFFFFF, x, k)` returns the `x` of the lane `k` further on: a *shuffle*. The mask
says that all 32 lanes take part. No memory is used and no barrier is needed. Here a block is one warp, in every
launch that is tried. Fill in the sum: after it, lane 0 has the count of all 32.

Hint: It is the reduction of puzzle 5 again: 16 lanes further on, then 8, 4, 2, 1.

Hint: Two lines: a loop over `16, 8, 4, 2, 1`, and an addition. All lanes do it; what the upper ones get doesn't
matter.
"""

import tcgpu
from helpers.puzzles.given import triangles_at
from tcgpu import cuda, int64

TARGET = {"atomics": 4, "shared_requests": 0}
CHECKED = {"threads": 32}


@tcgpu.method(threads=32, blocks=4)
def warp_sum(col_ptr, row_idx, col_of, total):
    count = int64(0)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        count += triangles_at(e, col_ptr, row_idx, col_of)
    # given: ...  # 2 lines: lane 0 gets the sum of all counts
    for step in (16, 8, 4, 2, 1):
        count += cuda.shfl_down_sync(0xFFFFFFFF, count, step)
    # end
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, count)
