"""More nonzeros than threads

*Needs [01](01_naive.ipynb).* A GPU runs some hundred thousand threads; a graph has millions of nonzeros. So a
thread takes several. Any number of threads must do, even one: `tcgpu.check` tries eight launches.

Which ones a thread takes is up to you. But all 32 threads of a warp load at the same time, and memory answers
in *sectors* of 32 bytes, eight rows each. Neighbouring threads on neighbouring nonzeros share sectors. That is
*coalescing*, and the target measures it.

Hint: `range(begin, end, step)`: the thread's own number is a good beginning.

Hint: `cuda.gridsize(1)` is how many threads the launch has. The next nonzero that no other thread takes is that far
away.
"""

import tcgpu
from helpers.puzzles.given import triangles_at
from tcgpu import cuda, int64

TARGET = {"sectors_per_request": 6.2}


@tcgpu.method(threads=32, blocks=4)
def stride(col_ptr, row_idx, col_of, total):
    count = int64(0)
    # given: for e in ...:  # the nonzeros of this thread
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        # end
        count += triangles_at(e, col_ptr, row_idx, col_of)
    cuda.atomic.add(total, 0, count)
