"""2,048 counters of a warp, a bit of 64 of them to a word: what counts the ones of many rows of bits place by place.

Plane 0 holds the ones of all counters, plane 1 their twos, plane 2 their fours, and so on. A plane is 32 words, one a
lane; word w holds counters 64 w to 64 w + 63. To add a word to the counters of its place is what a processor's adder
does, in AND and XOR, for 64 counters at once and with no addition for each 1.

The first five planes are in registers while words are added, a tuple of five to a lane; carries go on into the other
planes, in shared memory. Positions there are 64 bits wide: a distance that is known then takes no instruction.
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
    """Three words: bit for bit the lower and the upper digit of their sum."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@cuda.jit(device=True)
def cleared(planes):
    """All counters 0: clears the planes that are in shared memory, returns those in registers."""
    mine = planes.first + (cuda.threadIdx.x & 31)
    for k in range(IN_REGISTERS, planes.count):
        planes.words[mine + uint64(32 * k)] = 0
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
    """Put the planes in registers where all lanes of the warp can read them."""
    mine = planes.first + (cuda.threadIdx.x & 31)
    planes.words[mine] = registers[0]
    planes.words[mine + 32] = registers[1]
    planes.words[mine + 64] = registers[2]
    planes.words[mine + 96] = registers[3]
    planes.words[mine + 128] = registers[4]


@cuda.jit(device=True)
def counter(planes, number):
    """One of the 2,048 counters, by its number; all planes have been stored."""
    at = 2 * planes.first + (number >> 5) + 64 * uint64(planes.count)
    bit, value = number & 31, uint32(0)
    for _ in range(planes.count):
        at -= 64
        value = (2 * value) | ((planes.words32[at] >> bit) & 1)
    return value


@cuda.jit(device=True)
def eight_words(rows, row, source, at):
    """A lane's words, number `at`, of eight rows: those that lanes `source` to `source` + 7 pass the positions of."""
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
