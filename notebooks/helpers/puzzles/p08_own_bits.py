"""A bank for each lane

*Belongs to [07](07_levels.ipynb).* Here every thread takes a column of its own, and keeps it as bits in `words` words
of shared memory: no barrier, no atomic operation. Only one thing is open: where are they? Shared memory has 32
*banks*: word `k` is in bank `k % 32`. A bank gives one word at a time, so lanes of a warp that want different words
of one bank wait in turn: a *bank conflict*. Fill in the place of a thread's word number `word`. A block may
have any number of threads, even one; no two may share a place, and the target is no conflict at all.

Hint: The obvious place is `cuda.threadIdx.x * words + word`. It is right. Of 4 words a thread, which lanes have their
word 0 in bank 0?

Hint: There is no conflict, whatever words they want, if all words of a lane are in one bank of its own.

Hint: First word 0 of all threads, then word 1 of all threads, and so on. A block has `cuda.blockDim.x` threads.
"""

import tcgpu
from tcgpu import cuda, int64, uint32

TARGET = {"bank_conflicts": 0}


@cuda.jit(device=True)
def place(word, words):
    # given: return ...  # where this thread has its word number `word`
    return word * cuda.blockDim.x + cuda.threadIdx.x
    # end


@tcgpu.method(threads=32, blocks=4, shared="4 * threads * ((n + 31) // 32)")
def own_bits(n, col_ptr, row_idx, total):
    bits, words, count = cuda.shared.array(0, uint32), (n + 31) // 32, int64(0)
    for j in range(cuda.grid(1), n, cuda.gridsize(1)):
        for word in range(words):
            bits[place(word, words)] = 0
        for p in range(col_ptr[j], col_ptr[j + 1]):
            bits[place(row_idx[p] // 32, words)] |= uint32(1) << (row_idx[p] % 32)
        for e in range(col_ptr[j], col_ptr[j + 1]):
            for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                row = row_idx[q]
                count += bits[place(row // 32, words)] >> (row % 32) & 1
    cuda.atomic.add(total, 0, count)
