"""Exact sums of integers and of floats, in the words of `tcgpu.subgraphs.exact_sums`, to which many threads add.

Contract: `sums` (uint64) has the words of `size` sums, in global or shared memory: word k of a sum is at index
k * size + at. Additions are atomic and lose no bit, so that the order of the threads changes nothing.
"""

from tcgpu.engines.runtime import cuda, int64, uint64
from tcgpu.subgraphs.exact_sums import FLAGS, INFINITE, MINUS_INFINITE, NOT_A_NUMBER, WORDS

EXPONENT, FRACTION = 0x7FF, (1 << 52) - 1  # the bits of a float64


@cuda.jit(device=True)
def add_word(sums, index, word):
    """Add a word to one of a sum; returns the carry."""
    before = cuda.atomic.add(sums, index, word)
    return uint64(before + word < before)


@cuda.jit(device=True)
def add_integer(sums, at, value, size):
    """Add an int64 or uint64 to a sum."""
    high = add_word(sums, at, uint64(value)) - uint64(value < 0)
    if high != 0:
        add_word(sums, size + at, high)


@cuda.jit(device=True)
def add_float(sums, at, value, size):
    """Add a float64 to a sum."""
    bits = value.view(uint64)
    exponent, fraction = int64(bits >> 52) & EXPONENT, bits & FRACTION
    if exponent == EXPONENT:
        flag = NOT_A_NUMBER if fraction != 0 else MINUS_INFINITE if value < 0 else INFINITE
        cuda.atomic.or_(sums, FLAGS * size + at, uint64(flag))
        return
    if exponent != 0:
        fraction |= FRACTION + 1
        exponent -= 1
    word, shift = exponent >> 6, uint64(exponent & 63)
    if bits >> 63 != 0:
        word += WORDS
    left = fraction >> 1 >> (63 - shift)  # the bits for the next word
    left += add_word(sums, word * size + at, fraction << shift)
    while left != 0:
        word += 1
        left = add_word(sums, word * size + at, left)


@cuda.jit(device=True)
def add_sums(totals, size, sums):
    """Add the sums of a block to those of all blocks; the threads of the block share the words."""
    for k in range(cuda.threadIdx.x, totals.size, cuda.blockDim.x):
        index, left = int64(k), sums[k]
        if index >= FLAGS * size:  # only sums of floats have so many words
            cuda.atomic.or_(totals, index, left)
            left = uint64(0)
        while left != 0 and index < totals.size:
            left = add_word(totals, index, left)
            index += size
