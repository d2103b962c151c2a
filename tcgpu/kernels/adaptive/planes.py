"""Counters that lie across words: one *plane* of bits for the ones of 64 counters, one for the twos, and so on.

Words added to the planes count, for each place, how many of them have a 1 there, by the logic that a processor adds
with: all 64 places at once, no addition for each 1. A warp has 32 words side by side in each plane:
2,048 counters. The first few planes are in registers, the others in shared memory, a plane 32 words after the other.

Places are 64 bits wide here: to those, a distance that is known needs no addition, nor a register that keeps its sum.
"""

from tcgpu.engines.runtime import cuda, uint32, uint64

IN_REGISTERS = 5  # planes of a warp's counters that are there


@cuda.jit(device=True)
def full_add(a, b, c):
    """Three words: bit for bit the lower and the upper digit of their sum."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@cuda.jit(device=True)
def tally_eight(ones, twos, fours, eights, sixteens, a, b, c, d, e, f, g, h, planes, at):
    """Add eight words to 64 counters. What carries past the registers goes to planes[at], planes[at + 32], ..."""
    ones, x = full_add(ones, a, b)
    ones, y = full_add(ones, c, d)
    twos, front = full_add(twos, x, y)
    ones, x = full_add(ones, e, f)
    ones, y = full_add(ones, g, h)
    twos, back = full_add(twos, x, y)
    fours, carry = full_add(fours, front, back)
    eights, carry = eights ^ carry, eights & carry
    sixteens, carry = sixteens ^ carry, sixteens & carry
    place = uint64(at)
    while carry != uint64(0):
        plane = planes[place]
        planes[place] = plane ^ carry
        carry = plane & carry
        place = uint64(place + uint64(32))
    return ones, twos, fours, eights, sixteens


@cuda.jit(device=True)
def clear_planes(planes, at, count):
    """The planes beyond the registers, of which a lane's first word is planes[at]."""
    for k in range(IN_REGISTERS, count):
        planes[uint64(uint64(at) + uint64(32 * k))] = uint64(0)


@cuda.jit(device=True)
def keep_planes(planes, at, ones, twos, fours, eights, sixteens):
    """The planes in registers, so that all lanes can read them."""
    place = uint64(at)
    planes[place] = ones
    planes[uint64(place + uint64(32))] = twos
    planes[uint64(place + uint64(64))] = fours
    planes[uint64(place + uint64(96))] = eights
    planes[uint64(place + uint64(128))] = sixteens


@cuda.jit(device=True)
def read_counter(planes32, first, place, count):
    """Counter `place`, out of 2,048 whose first word is number `first` of those that `planes32` shows half by half."""
    at = uint64(uint64(uint32(uint32(2) * first) + (place >> uint32(5))) + uint64(64) * uint64(count))
    bit, found = uint32(place & uint32(31)), uint32(0)
    for _ in range(count):
        at = uint64(at - uint64(64))
        found = uint32(uint32(found + found) | (uint32(planes32[at] >> bit) & uint32(1)))
    return found
