"""Combinations by number (the paper, section VIII): the index-th of all k-combinations of 0..n-1, and the next one.

They are in lexicographic order: (0, 1, 2), (0, 1, 3), ..., (n - 3, n - 2, n - 1). A thread that is given a range of
indices unranks the first and steps to the next from there; nothing is stored for it. Unranking goes from the end of the
order, by combinadics: with `left` combinations behind the wanted one, the smallest element is n - 1 - d for the largest
d of which C(d, k) <= left; the rest is a combination of k - 1 out of the d elements behind it, with left - C(d, k)
behind it in turn. d is found by bisection, in whole numbers only: a device function can follow step by step.

Constrained forms: "at least one of the first f elements" are the first C(n, k) - C(n - f, k) indices (see `sets`),
"none but the first f" are combinations of f, and `unrank_parts` takes a given number out of each of several sets.
"""

from math import comb, prod

import numpy as np

from tcgpu.engines.native import jit
from tcgpu.errors import GraphError

I64 = np.int64
MOST = 2**62  # so many combinations can be numbered: what is worked out on the way stays below 2^63


def unrank(index, n, k):
    """The index-th k-combination of 0..n-1 in lexicographic order, as a tuple."""
    return tuple(unranked([index], n, k)[0].tolist())


def unranked(indices, n, k):
    """The k-combinations of several indices: int32, one a row."""
    total = numbered(n, k)
    indices = np.asarray(indices, np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < total:
        raise GraphError(f"there are {total:,} combinations of {k} out of {n}; an index is from 0 to {total - 1:,}")
    found = np.empty((indices.size, k), np.int32)
    _unrank_all(indices, n, found)
    return found


def rank(combination, n):
    """The index of an ascending combination: what `unrank` takes."""
    k = len(combination)
    behind = sum(comb(n - 1 - element, k - place) for place, element in enumerate(combination))
    return comb(n, k) - 1 - behind


def numbered(n, k):
    """C(n, k); GraphError if there are too many combinations to number with 63 bits."""
    if k < 1 or n < 0:
        raise GraphError(f"a combination has at least 1 of at least 0 elements, not {k} of {n}")
    total = comb(n, k)
    if total * k > MOST:
        raise GraphError(f"{total:,} combinations of {k} out of {n:,} are too many to be numbered with 63 bits")
    return total


def count_parts(sizes, takes):
    """How many combinations have `takes[s]` elements out of each set s of `sizes[s]`."""
    return prod(comb(size, take) for size, take in zip(sizes, takes))


def unrank_parts(index, sizes, takes):
    """The index-th combination with `takes[s]` out of each set s: the sets are numbered one behind the other.

    Each set's part is a combination by itself; the index is read as a number whose digits are theirs.
    """
    total = count_parts(sizes, takes)
    if not 0 <= index < total:
        raise GraphError(f"there are {total:,} such combinations; an index is from 0 to {total - 1:,}")
    found = []
    for s in range(len(sizes) - 1, -1, -1):
        index, digit = divmod(index, comb(sizes[s], takes[s]))
        part = unrank(digit, sizes[s], takes[s]) if takes[s] else ()
        found[:0] = [sum(sizes[:s]) + element for element in part]
    return tuple(found)


def takes(k, levels, *, contiguous=True):
    """How k vertices may spread over levels with at least one in the first: tuples of numbers that add up to k.

    contiguous: without a gap, as a connected subgraph's do.
    """

    def spread(left, levels):
        if levels == 1:
            yield (left,)
            return
        for take in range(left, -1, -1):
            for rest in spread(left - take, levels - 1):
                yield (take, *rest)

    for found in spread(k, levels):
        gap = contiguous and any(not here and any(found[at:]) for at, here in enumerate(found))
        if found[0] and not gap:
            yield found


@jit
def binomial(n, k):
    """C(n, k) in 64 bits, 0 where n < k. On the way it is at most k times as large."""
    if n < k:
        return I64(0)
    found = I64(1)
    for j in range(1, k + 1):
        found = found * (n - k + j) // j
    return found


@jit
def unrank_into(index, n, k, found):
    """`found[:k]` becomes the index-th k-combination of 0..n-1."""
    left = binomial(n, k) - 1 - index
    high = I64(n)
    for place in range(k):
        size = k - place
        low = I64(size - 1)  # C(low, size) = 0 <= left < C(high, size)
        while high - low > 1:
            middle = (low + high) >> 1
            if binomial(middle, size) <= left:
                low = middle
            else:
                high = middle
        found[place] = n - 1 - low
        left -= binomial(low, size)
        high = low


@jit
def successor(found, n, k):
    """`found[:k]` becomes the next k-combination; False, and as it was, if it is the last."""
    place = k - 1
    while place >= 0 and found[place] == n - k + place:
        place -= 1
    if place < 0:
        return False
    found[place] += 1
    for later in range(place + 1, k):
        found[later] = found[later - 1] + 1
    return True


@jit
def _unrank_all(indices, n, found):
    for row in range(indices.size):
        unrank_into(indices[row], n, found.shape[1], found[row])
