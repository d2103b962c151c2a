"""A column as bits

*Belongs to [03](03_bitmap.ipynb).* A block keeps column `j` as bits: bit `row` is 1 if the column has that row. Then
to look up a row takes one access, without a merge. Row `row` is bit `row % 32` of word `row // 32`. Fill in how to
set a bit and how to read one.

Two threads may set bits of the same word at the same time. `bits[word] |= mask` reads, changes and writes; in between
the other one may have written, and its bit is lost.

Hint: `uint32(1) << k` has bit `k` set and no other.

Hint: `cuda.atomic.or_(array, index, mask)` sets bits with nothing in between.

Hint: `word >> k & 1` is bit `k` of a word: 1 or 0.
"""

import tcgpu
from tcgpu import cuda, int64, uint32

TARGET = {"load_requests": 3_900}


@tcgpu.method(threads=32, blocks=8, shared="4 * ((n + 31) // 32)")
def column_bits(n, col_ptr, row_idx, total):
    bits, me, count = cuda.shared.array(0, uint32), cuda.threadIdx.x, int64(0)
    for j in range(cuda.blockIdx.x, n, cuda.gridDim.x):
        for word in range(me, bits.size, cuda.blockDim.x):
            bits[word] = 0
        cuda.syncthreads()
        for p in range(col_ptr[j] + me, col_ptr[j + 1], cuda.blockDim.x):
            row = row_idx[p]
            # given: ...  # 1 line: set its bit
            cuda.atomic.or_(bits, row // 32, uint32(1) << (row % 32))
            # end
        cuda.syncthreads()
        for e in range(col_ptr[j] + me, col_ptr[j + 1], cuda.blockDim.x):
            for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                row = row_idx[q]
                # given: count += ...  # 1 if its bit is set, else 0
                count += bits[row // 32] >> (row % 32) & 1
                # end
        cuda.syncthreads()
    cuda.atomic.add(total, 0, count)
