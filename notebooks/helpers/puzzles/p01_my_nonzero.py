"""Which nonzero is mine?

*Needs [01](01_naive.ipynb).* Every thread runs the same kernel. All that tells threads apart is their number. Here
thread 0 takes nonzero 0, thread 1 nonzero 1, and so on: fill in which one is mine, and who has none. `triangles_at`
is given: how many rows the two columns of a nonzero share.

Every block has 64 threads, and the launch takes as many blocks as the nonzeros need (`tasks` says so). So the last
block has threads for which there is no nonzero.

Hint: `cuda.threadIdx.x` is the number of a thread in its block, `cuda.blockIdx.x` that of the block, and
`cuda.blockDim.x` how many threads a block has.

Hint: `cuda.grid(1)` is all three in one: the number of a thread, counted over all blocks.

Hint: There are `row_idx.size` nonzeros, numbered from 0.
"""

import tcgpu
from helpers.puzzles.given import triangles_at
from tcgpu import cuda

TARGET = {"sectors_per_request": 6.2}
CHECKED = {"threads": 64, "blocks": 1024}


@tcgpu.method(threads=64, blocks=1024, tasks=("nonzeros", "merge"))
def my_nonzero(col_ptr, row_idx, col_of, total):
    # given: e = ...  # the nonzero of this thread
    e = cuda.grid(1)
    # end
    # given: if ...:  # is there such a nonzero?
    if e < row_idx.size:
        # end
        found = triangles_at(e, col_ptr, row_idx, col_of)
        cuda.atomic.add(total, 0, found)
