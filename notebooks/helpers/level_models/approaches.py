"""The four approaches of section VIII to generate combinations and to divide them between threads.

    A  generated beforehand and stored; a thread reads those of its share
    B  generated one after the other from the one before: one thread
    C  by starting number: thread t takes all combinations whose smallest element is t (`pair_ranges`: two of them)
    D  equal division: thread t takes the t-th part of all indices and unranks the first of it

All are ranges of the lexicographic order, so that one function counts by any of them (`algorithm2.count_triangles`).
"""

from math import comb

import numpy as np

from helpers.level_models.combinations import numbered
from tcgpu.built_in import APPROACHES
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown


def share(total, threads, thread):
    """The range of `thread` when 0..total-1 is divided equally: parts differ by at most one."""
    return total * thread // threads, total * (thread + 1) // threads


def ranges(approach, n, k, threads, first=None):
    """Where each thread's range of indices begins, and at last how many there are: int64, one more than threads.

    first: only combinations with one of the first so many elements are wanted (see `chunks`). B has one thread, and C
    one for each element that may be the smallest, whatever is asked for.
    """
    smallest = min(n if first is None else first, max(n - k + 1, 0))
    total = numbered(n, k) - comb(n - smallest, k)
    if known(approach) == "B":
        bounds = [0, total]
    elif approach == "C":
        bounds = [comb(n, k) - comb(n - element, k) for element in range(smallest + 1)]
    else:
        bounds = [share(total, threads, thread)[0] for thread in range(threads + 1)]
    return np.array(bounds, np.int64)


def pair_ranges(n, k, first=None):
    """The variant of C for n² threads: `ranges` of a thread for each two elements that a combination begins with."""
    smallest = range(min(n if first is None else first, max(n - k + 1, 0)))
    lengths = (comb(n - 1 - second, k - 2) for one in smallest for second in range(one + 1, n - k + 2))
    return np.cumsum([0, *lengths])


def storage_bits(approach, n, k, threads, first=None):
    """What must be stored: of k elements of log2(n) bits each, rounded up, all combinations (A), or for every thread
    the one before and the one at hand (B, C and D)."""
    bounds = ranges(approach, n, k, threads, first)
    combination = k * max(n - 1, 0).bit_length()
    return combination * (int(bounds[-1]) if approach == "A" else 2 * (bounds.size - 1))


def compare(n, k, threads, first=None):
    """One row an approach: bits stored, threads, the longest range, and what that makes of it.

    imbalance: the longest range over the mean of the threads that there are. speedup: the most that the threads can
    gain over one, which is all combinations over the longest range.
    """
    rows = []
    for approach in APPROACHES:
        lengths = np.diff(ranges(approach, n, k, threads, first))
        longest, total = int(lengths.max(initial=0)), int(lengths.sum())
        rows.append({
            "approach": approach,
            "storage_bits": storage_bits(approach, n, k, threads, first),
            "threads": lengths.size,
            "longest": longest,
            "imbalance": longest * lengths.size / total if total else 1.0,
            "speedup": total / longest if total else 1.0,
        })  # fmt: skip
    return rows


def known(approach):
    """The name of an approach, if it is one."""
    if approach not in APPROACHES:
        raise GraphError(unknown("approach", approach, APPROACHES))
    return approach
