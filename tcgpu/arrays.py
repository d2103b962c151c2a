"""The columns of a graph as arrays; and NumPy functions that take int64 where its index type has 32 bits (browsers)."""

import sys
from typing import NamedTuple

import numpy as np

from tcgpu.errors import GraphError


class CleanColumns(NamedTuple):
    """Sorted columns, how many edges of each kind were dropped, and the length of the longest column."""

    col_ptr: np.ndarray
    row_idx: np.ndarray
    loops: int
    duplicates: int
    reversed: int
    longest: int


BLOCK = 1 << 14  # elements in a block


def blocks(size, most=BLOCK):
    """Yield slices of `size` elements, of at most `most`, for which arrays need little memory."""
    return (slice(first, min(size, first + most)) for first in range(0, size, most))


def bincount(values, weights=None, minlength=0):
    """`numpy.bincount`, for whole numbers of any type; counts are int64."""
    return np.asarray(np.bincount(np.asarray(values, np.intp), weights, minlength), "i8" if weights is None else "f8")


def repeat(values, repeats):
    """`numpy.repeat`, for repeats of any type."""
    return np.repeat(values, np.asarray(repeats).astype(np.intp, copy=False))


def running_sums(values):
    """Before each value, the sum of those before it; then the sum of all (int64)."""
    sums = np.zeros(values.size + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


def sum_exactly(values):
    """The sum of int64 values as a Python int, however large."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def is_locked(array):
    """Whether the memory of an array is for reading only: what `locked` returned, constant bytes, or a mapped file."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:  # also where it is in bytes, as NumPy leaves what was unpickled
            return False
        array = array.base
    kinds = (memoryview, bytes, *([sys.modules["mmap"].mmap] if "mmap" in sys.modules else []))
    return isinstance(array, kinds) and memoryview(array).readonly


def locked(array):
    """A read-only array in the same memory, which NumPy does not make writeable again.

    Numba compiles another version of a function for read-only arrays. Those of a Graph are, so others are locked first.
    """
    if is_locked(array):
        return array
    try:
        return np.asarray(memoryview(array).toreadonly())
    except ValueError:  # a type without buffers, such as datetime64; a view of this copy stays read-only
        array = array.copy()
        array.flags.writeable = False
        return array


def unmasked(values, what):
    """Return the values; GraphError if they have masked entries, as in NumPy, or missing ones, as in Arrow and Polars.

    The caller must leave these out: a mask of `u` alone does not say which entries of `v` to drop.
    """
    if isinstance(values, np.ndarray):
        count, kind = np.count_nonzero(getattr(values, "mask", False)), "masked"  # numpy.ma is slow to import
    else:
        count, kind = getattr(values, "null_count", 0), "missing"
        if callable(count):
            count = np.sum(np.asarray(count()))  # of a table of Polars, one for each column
    if count:
        raise GraphError(f"{what} has {count} {kind} entries; leave them out first, in both ends of the edges")
    return values
