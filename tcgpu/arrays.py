"""NumPy functions that take int64 where NumPy's own index type has 32 bits, as in a browser; and exact sums."""

import numpy as np


def bincount(values, weights=None, minlength=0):
    """`numpy.bincount`, for whole numbers of any type."""
    return np.bincount(np.asarray(values).astype(np.intp, copy=False), weights, minlength)


def repeat(values, repeats):
    """`numpy.repeat`, for repeats of any type."""
    return np.repeat(values, np.asarray(repeats).astype(np.intp, copy=False))


def sum_exactly(values):
    """The sum of int64 values as a Python int, however large."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
