"""2,048 bit-sliced counters of a warp: in how many rows of 2,048 bits each bit is set.

Plane k has binary digit k of all counters. A plane is 32 words, one a lane; word w has the digits of counters 64 w to
64 w + 63. So a word of a row is added to 64 counters at once, by a carry-save adder of AND and XOR.

While words are added, each lane has its words of the first five planes in registers, as a tuple. Carries propagate into
the other planes, which are in shared memory. Positions there have 64 bits: adding a constant then needs no instruction.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, uint32, uint64
from tcgpu.kernels.device.warp import ALL_LANES

IN_REGISTERS = 5  # planes


class Planes(NamedTuple):
    """A warp's planes in shared memory: plane k is words[first + 32 * k : first + 32 * k + 32], for k below `count`."""

    words: np.ndarray  # uint64
    words32: np.ndarray  # the same memory as uint32
    first: int  # uint64
    count: int


@cuda.jit(device=True)
def full_add(a, b, c):
    """Add three words bit by bit: returns the lower and the upper digits of the sums."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@cuda.jit(device=True)
def cleared(planes):
    """Set all counters to 0: clear the planes in shared memory, return those in registers."""
    at = planes.first + (cuda.threadIdx.x & 31)
    for k in range(IN_REGISTERS, planes.count):
        planes.words[at + uint64(32 * k)] = 0
    return uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)


@cuda.jit(device=True)
def add_eight(planes, registers, eight):
    """Add eight words to a lane's 64 counters; returns the planes in registers."""
    ones, twos, fours, eights, sixteens = registers
    a, b, c, d, e, f, g, h = eight
    ones, x = full_add(ones, a, b)
    ones, y = full_add(ones, c, d)
    twos, front = full_add(twos, x, y)
    ones, x = full_add(ones, e, f)
    ones, y = full_add(ones, g, h)
    twos, back = full_add(twos, x, y)
    fours, carry = full_add(fours, front, back)
    eights, carry = eights ^ carry, eights & carry
    sixteens, carry = sixteens ^ carry, sixteens & carry
    at = planes.first + (cuda.threadIdx.x & 31) + 32 * IN_REGISTERS
    while carry != 0:
        word = planes.words[at]
        planes.words[at] = word ^ carry
        carry = word & carry
        at += 32
    return ones, twos, fours, eights, sixteens


@cuda.jit(device=True)
def store(planes, registers):
    """Store the planes of registers in shared memory, where all lanes of the warp can read them."""
    at = planes.first + (cuda.threadIdx.x & 31)
    planes.words[at] = registers[0]
    planes.words[at + 32] = registers[1]
    planes.words[at + 64] = registers[2]
    planes.words[at + 96] = registers[3]
    planes.words[at + 128] = registers[4]


@cuda.jit(device=True)
def counter(planes, number):
    """The value of a counter, once all planes are stored."""
    at = 2 * planes.first + (number >> 5) + 64 * uint64(planes.count)
    bit, value = number & 31, uint32(0)
    for _ in range(planes.count):
        at -= 64
        value = (2 * value) | ((planes.words32[at] >> bit) & 1)
    return value


@cuda.jit(device=True)
def eight_words(rows, row, source, at):
    """Word `at` of eight rows, whose positions lanes `source` to `source` + 7 have in `row`."""
    return (
        rows[cuda.shfl_sync(ALL_LANES, row, source) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 1) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 2) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 3) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 4) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 5) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 6) + at],
        rows[cuda.shfl_sync(ALL_LANES, row, source + 7) + at],
    )
