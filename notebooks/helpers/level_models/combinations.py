"""Combinations by number (section VIII): the index-th of all k-combinations of 0..n-1 in lexicographic order.

That is (0, 1, 2), (0, 1, 3), ..., (n - 3, n - 2, n - 1). A thread that is given a range of indices unranks the first
and steps to the next from there. Unranking counts from the end of the order, by combinadics: with `left` combinations
behind the wanted one, the smallest element is n - 1 - d for the largest d with C(d, k) <= left; the rest is a
combination of k - 1 of the d elements behind it, with left - C(d, k) behind it in turn. d is found by bisection, in
whole numbers only.
"""

from math import comb

import numpy as np

from tcgpu.engines.native import jit
from tcgpu.errors import GraphError

I64 = np.int64
MOST = 2**62  # combinations that can be numbered: intermediate results stay below 2^63


def unrank(index, n, k):
    """The index-th k-combination of 0..n-1 in lexicographic order, as a tuple."""
    return tuple(unranked([index], n, k)[0].tolist())


def unranked(indices, n, k):
    """The k-combinations of several indices: int32, one a row."""
    total = numbered(n, k)
    indices = np.asarray(indices, np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < total:
        raise GraphError(f"there are {total:,} combinations of {k} out of {n}; an index is from 0 to {total - 1:,}")
    found, left, high = np.empty((indices.size, k), np.int32), total - 1 - indices, np.full(indices.size, n, np.int64)
    for place in range(k):  # as `unrank_into`, for all indices at a time
        low = np.full(indices.size, k - place - 1, np.int64)
        while (high - low > 1).any():
            middle = (low + high) >> 1
            fits = _binomials(middle, k - place) <= left
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        found[:, place] = n - 1 - low
        left, high = left - _binomials(low, k - place), low
    return found


def _binomials(n, k):
    """C(n, k) of an array of at least k - 1."""
    found = np.ones(n.size, np.int64)
    for j in range(1, k + 1):
        found = found * (n - k + j) // j
    return found


def numbered(n, k):
    """C(n, k); GraphError if there are too many combinations to number with 63 bits."""
    if k < 1 or n < 0:
        raise GraphError(f"a combination has at least 1 of at least 0 elements, not {k} of {n}")
    total = comb(n, k)
    if total * k > MOST:
        raise GraphError(f"{total:,} combinations of {k} out of {n:,} are too many to be numbered with 63 bits")
    return total


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
    """Write the index-th k-combination of 0..n-1 to `found[:k]`."""
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
