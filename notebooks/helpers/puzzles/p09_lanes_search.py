"""A warp searches for 32 rows at a time

*Belongs to [06](06_warp_search.ipynb).* A block takes a nonzero: here one warp, but any number of threads must do,
even one. Its lanes take neighbouring rows of column `j` after nonzero `e`, so these loads coalesce, and each lane
looks its row up in column `i`, which ascends: by *binary search*. It halves the range from `low` to `high` that may
hold the row until nothing is left. Fill in the lanes' rows and the search. In the end `low` is the first place in
column `i` whose row is not below `x`.

Hint: The rows of column `j` after nonzero `e` begin at `e + 1`. The lanes begin there one after the other, and go on
in steps of `cuda.blockDim.x`.

Hint: While `low < high`, look at the middle, `(low + high) // 2`. Is its row below `x`? Then all up to the middle are
out: `low = middle + 1`. Otherwise `high = middle`.
"""

import tcgpu
from tcgpu import cuda, int64

TARGET = {"load_requests": 9_500}


@tcgpu.method(threads=32, blocks=64)
def lanes_search(col_ptr, row_idx, col_of, total):
    lane, count = cuda.threadIdx.x, int64(0)
    for e in range(cuda.blockIdx.x, row_idx.size, cuda.gridDim.x):
        i, j = row_idx[e], col_of[e]
        # given: for p in ...:  # the rows of this lane in column j
        for p in range(e + 1 + lane, col_ptr[j + 1], cuda.blockDim.x):
            # end
            x, low, high = row_idx[p], col_ptr[i], col_ptr[i + 1]
            # given: ...  # 6 lines: halve what lies between low and high
            while low < high:
                middle = (low + high) // 2
                if row_idx[middle] < x:
                    low = middle + 1
                else:
                    high = middle
            # end
            if low < col_ptr[i + 1] and row_idx[low] == x:
                count += 1
    cuda.atomic.add(total, 0, count)
