"""Prefix sums on the device: the kernels against NumPy, on sizes around those of parts and blocks."""

from itertools import product

import numpy as np
import pytest
from sampling import share

from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels import prefix_sum
from tcgpu.kernels.prefix_sum import THREADS, sum_parts, write_starts

TYPES = [(np.uint8, np.int64), (np.int32, np.int32), (np.int32, np.int64), (np.int64, np.int64)]


def expected(counts, dtype):
    return np.append(0, np.cumsum(counts, dtype=np.int64)).astype(dtype)


@pytest.mark.sim
@pytest.mark.parametrize(
    "size, parts, types", share(product([0, 1, 255, 256, 257, 700, 1281], [1, 2, 5], TYPES), "scans"), ids=str
)
def test_kernels_add_up_all_that_is_before(size, parts, types):
    counts = np.random.default_rng(size).integers(-5 * (types[0] != np.uint8), 90, size).astype(types[0])
    starts, sums = np.full(size + 1, -7, types[1]), np.full(parts, -7, np.int64)
    simulate(sum_parts.py_func, parts, THREADS, (counts, sums))
    simulate(write_starts.py_func, parts, THREADS, (counts, starts, sums))
    assert np.array_equal(starts, expected(counts, types[1]))


@pytest.mark.sim
def test_sums_of_64_bits_do_not_wrap():
    counts = np.full(600, 2**31 - 1, np.int32)
    starts = np.empty(601, np.int64)
    prefix_sum.scan(counts, starts)
    assert starts[-1] == 600 * (2**31 - 1)


@pytest.mark.gpu
@pytest.mark.parametrize("types", TYPES, ids=str)
@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 4097, 1_000_000, 2_097_153, 30_000_001])
def test_scan_on_a_gpu(size, types):
    counts = np.random.default_rng(size).integers(0, 70, size).astype(types[0])
    starts = runtime.device_array(size + 1, types[1])
    prefix_sum.scan(runtime.to_device(counts), starts)
    assert np.array_equal(runtime.to_host(starts), expected(counts, types[1]))
