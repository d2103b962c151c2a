"""A shared tile and its barriers

*Needs [02](02_column_block.ipynb).* All nonzeros of column `j` read column `j`. So a block copies it to *shared
memory* once, `TILE` rows at a time, and its threads read the copy. `size` rows are in this tile; `me` is the number
of a thread in its block.

A tile saves requests where columns are long enough to keep a block's threads busy. Here they are not: a column has
about 7 rows in the mean, and a block takes one at a time, with 32 threads (any number must do, even one), most of
which have no nonzero. So the score has more requests than that of puzzle 3, where nearly every thread has one.
`column_block` takes several columns at a time.

A thread must not read a row before the one that copies it has. `cuda.syncthreads()` is a *barrier*: there every
thread of the block waits for all others. Without it you have a *race*: the result depends on who is first.
`tcgpu.check` finds races, even where the count happens to be right. Two barriers are missing.

Hint: Thread 0 copies row 0, thread 1 row 1, and so on; if the tile has more rows than the block has threads, each
goes on in steps of `cuda.blockDim.x`. Row `k` of the tile is `row_idx[first + k]`.

Hint: The first barrier stands between the copy and those who read it.

Hint: The second one stands at the end of the round: a fast thread must not begin the next tile while a slow one still
reads this one.
"""

import tcgpu
from helpers.puzzles.given import common
from tcgpu import cuda, int32, int64

TARGET = {"load_requests": 4_000}
TILE = 32


@tcgpu.method(threads=32, blocks=8)
def shared_tile(col_ptr, row_idx, total):
    tile, me, count = cuda.shared.array(TILE, int32), cuda.threadIdx.x, int64(0)
    for j in range(cuda.blockIdx.x, col_ptr.size - 1, cuda.gridDim.x):
        for first in range(col_ptr[j], col_ptr[j + 1], TILE):
            size = min(TILE, col_ptr[j + 1] - first)
            # given: ...  # 3 lines: copy row_idx[first : first + size] to the tile, wait
            for k in range(me, size, cuda.blockDim.x):
                tile[k] = row_idx[first + k]
            cuda.syncthreads()
            # end
            for e in range(col_ptr[j] + me, col_ptr[j + 1], cuda.blockDim.x):
                i = row_idx[e]
                count += common(tile, 0, size, row_idx, col_ptr[i], col_ptr[i + 1])
            # given: ...  # 1 line
            cuda.syncthreads()
            # end
    cuda.atomic.add(total, 0, count)
