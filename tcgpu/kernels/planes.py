"""Counters that lie across words: one *plane* of bits for the ones of 64 counters, one for the twos, and so on.

Words added to the planes count, for each place, how many of them have a 1 there, by the logic that a processor adds
with: all 64 places at once, no addition for each 1. A warp has 32 words side by side in each plane:
2,048 counters. The first few planes are in registers, the others in shared memory, a plane 32 words after the other.
"""

from tcgpu._cuda import cuda, uint32, uint64

IN_REGISTERS = 5  # planes of a warp's counters that are there


@cuda.jit(device=True)
def full_add(a, b, c):
    """Three words: bit for bit the lower and the upper digit of their sum."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@cuda.jit(device=True)
def tally_four(ones, twos, fours, eights, sixteens, a, b, c, d, planes, at):
    """Add four words to 64 counters. What carries past the registers goes to planes[at], planes[at + 32], ..."""
    ones, x = full_add(ones, a, b)
    ones, y = full_add(ones, c, d)
    twos, carry = full_add(twos, x, y)
    fours, carry = fours ^ carry, fours & carry
    eights, carry = eights ^ carry, eights & carry
    sixteens, carry = sixteens ^ carry, sixteens & carry
    while carry != uint64(0):
        plane = planes[at]
        planes[at] = plane ^ carry
        carry = plane & carry
        at = uint32(at + uint32(32))
    return ones, twos, fours, eights, sixteens


@cuda.jit(device=True)
def clear_planes(planes, at, count):
    """The planes beyond the registers, of which a lane's first word is planes[at]."""
    for k in range(IN_REGISTERS, count):
        planes[uint32(at + uint32(32 * k))] = uint64(0)


@cuda.jit(device=True)
def keep_planes(planes, at, ones, twos, fours, eights, sixteens):
    """The planes in registers, so that all lanes can read them."""
    planes[at] = ones
    planes[uint32(at + uint32(32))] = twos
    planes[uint32(at + uint32(64))] = fours
    planes[uint32(at + uint32(96))] = eights
    planes[uint32(at + uint32(128))] = sixteens


@cuda.jit(device=True)
def read_counter(planes, first, place, count):
    """Counter `place`, out of 2,048 of which planes[first] is the first word."""
    at = uint32(first + ((place >> uint32(6)) & uint32(31)))
    bit = uint64(place & uint32(63))
    found = uint32(0)
    for k in range(count):
        found |= uint32((planes[uint32(at + uint32(32 * k))] >> bit) & uint64(1)) << uint32(k)
    return found
