"""What `compiled` has, where there is no Numba: functions for the CPU run as Python, in one thread. They are slow."""

import functools

import numpy as np

from tcgpu import progress

I32, I64, U32, U64 = np.int32, np.int64, np.uint32, np.uint64
SHARE, STOPPED, CACHE_LINE, LANES, MOST_COMPILED = 1 << 20, 1 << 62, 8, 16, 16


class NumbaError(Exception):
    """Is never raised here."""


class _Exact(np.ndarray):
    """An array whose integers are Python's, but for uint64: they do not overflow, as compiled ones do not."""

    def __getitem__(self, at):
        found = super().__getitem__(at)
        return int(found) if isinstance(found, np.integer) else found


def _exact(value):
    plain = type(value) is np.ndarray and value.dtype.kind in "iu" and value.dtype != np.uint64
    return value.view(_Exact) if plain else value


def jit(function, **options):
    """The function, run as Python; its uint64 wrap around, as compiled ones do."""

    @functools.wraps(function)
    def run(*args):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*map(_exact, args))

    run.py_func = function
    return run


uncached = inline = jit


def compiled(function):
    return function if hasattr(function, "py_func") else jit(function)


def result_types(function, *dtypes):
    """The dtypes of the function's result for arguments of these dtypes: one, or a tuple; TypeError if it raises."""
    try:
        found = function(*(np.ones((), dtype)[()] for dtype in dtypes))
    except Exception as error:
        raise TypeError(str(error)) from None
    return tuple(np.asarray(value).dtype for value in found) if isinstance(found, tuple) else np.asarray(found).dtype


def threads():
    return 1


def set_threads(count):
    if count not in (None, 1):
        raise ValueError(f"without Numba there is one thread, not {count!r}")


def shares(size):
    return 1


def stoppable(queue, size):
    return queue


def run_threads(function, *args, workers=None, queue=None):
    for worker in range(workers or 1):
        progress.pulse()
        function(worker, workers or 1, *args)


def busy():
    return False


def stopped(queue):
    progress.pulse()
    return False


def uncounted(array):
    return array


def popcount(word):
    return np.uint64(int(word).bit_count())


def lowest_bit(word):
    return (int(word) & -int(word)).bit_length() - 1


def fetch_add(array, index, value):
    array = array.reshape(-1)  # index: counted through all dimensions
    before = array[index]
    array[index] += array.dtype.type(value)
    return before


def fetch_or(array, index, bits):
    return fetch_add(array, index, array.dtype.type(bits) & ~array.reshape(-1)[index])


def prefetch(array, index):
    pass


def matching(array, index, live, value):
    equal = array[int(index) : int(index) + min(LANES, max(0, int(live)))] == value
    return np.uint64(sum(1 << k for k in np.flatnonzero(equal).tolist()))


def common_bits(first, i, second, j):
    i, j = int(i), int(j)
    return np.uint64(np.bitwise_count(first[i : i + CACHE_LINE] & second[j : j + CACHE_LINE]).sum())
