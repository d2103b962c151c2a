"""Small launches, each of which tests one rule of a trace; `benchmarks/trace.py` compares them with the GPU's counters.

A `pattern` is one request of one warp to elements at certain addresses.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Plan, Step

LANE = np.arange(32)
PATTERNS = {  # the element that each lane accesses; none where it is below 0
    "side by side": LANE,
    "one further": LANE + 1,
    "back to front": LANE[::-1],
    "shuffled": np.random.default_rng(0).permutation(32),
    "all the same": 0 * LANE,
    "two by turns": LANE % 2 * 64,
    "halves the same": LANE % 16,
    "pairs": LANE // 2,
    "pairs, 32 apart": LANE // 2 * 32,
    "2 apart": LANE * 2,
    "4 apart": LANE * 4,
    "8 apart": LANE * 8,
    "16 apart": LANE * 16,
    "32 apart": LANE * 32,
    "33 apart": LANE * 33,
    "out of 64": np.random.default_rng(1).integers(0, 64, 32),
    "out of 1024": np.random.default_rng(2).integers(0, 1024, 32),
    "16 lanes": np.where(LANE < 16, LANE, -1),
    "every other lane": np.where(LANE % 2, LANE, -1),
    "one lane": np.where(LANE == 5, LANE, -1),
}
ELEMENTS = 1056
TYPES = ("uint8[::1]", "uint16[::1]", "int32[::1]", "int64[::1]")


@kernel(*(f"void({values}, int32[::1], int64[::1])" for values in TYPES))
def read(values, index, out):
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = values[i]


@kernel(*(f"void({values}, int32[::1], int64[::1])" for values in TYPES))
def write(values, index, out):
    i = index[cuda.threadIdx.x]
    if i >= 0:
        values[i] = cuda.threadIdx.x


@kernel("void(int32[::1], int32[::1], int64[::1])")
def add_to(values, index, out):
    i = index[cuda.threadIdx.x]
    if i >= 0:
        cuda.atomic.add(values, i, 7)


@kernel("void(int32[::1], int32[::1], int64[::1])")
def add_to_and_keep(values, index, out):
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = cuda.atomic.add(values, i, 7)


@kernel("void(int32[::1], int32[::1], int64[::1])")
def shared_read_4(values, index, out):
    near = cuda.shared.array(0, int32)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = near[i]


@kernel("void(int64[::1], int32[::1], int64[::1])")
def shared_read_8(values, index, out):
    near = cuda.shared.array(0, int64)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = near[i]


@kernel("void(int32[::1], int32[::1], int64[::1])")
def shared_write_4(values, index, out):
    near = cuda.shared.array(0, int32)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        near[i] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = near[cuda.threadIdx.x]


@kernel("void(int64[::1], int32[::1], int64[::1])")
def shared_write_8(values, index, out):
    near = cuda.shared.array(0, int64)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        near[i] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = near[cuda.threadIdx.x]


@kernel("void(int32[::1], int32[::1], int64[::1])")
def shared_or(values, index, out):
    near = cuda.shared.array(0, uint32)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        cuda.atomic.or_(near, i, uint32(4))
    cuda.syncthreads()
    out[cuda.threadIdx.x] = near[cuda.threadIdx.x]


PATTERN_KERNELS = {  # name -> kernel, type of an element
    **{f"read, {np.dtype(kind).itemsize} bytes": (read, kind) for kind in (np.int32, np.int64, np.uint8, np.uint16)},
    **{f"write, {np.dtype(kind).itemsize} bytes": (write, kind) for kind in (np.int32, np.int64)},
    "add": (add_to, np.int32),
    "add and keep": (add_to_and_keep, np.int32),
    "read shared, 4 bytes": (shared_read_4, np.int32),
    "read shared, 8 bytes": (shared_read_8, np.int64),
    "write shared, 4 bytes": (shared_write_4, np.int32),
    "write shared, 8 bytes": (shared_write_8, np.int64),
    "or shared": (shared_or, np.int32),
}


def patterns():
    """(kernel, pattern), by name: all patterns that are read, every other one of the rest."""
    for name in PATTERN_KERNELS:
        yield from ((name, pattern) for pattern in list(PATTERNS)[:: 1 if name.startswith("read") else 2])


def pattern_plan(name, pattern):
    """One warp, one request."""
    kernel, kind = PATTERN_KERNELS[name]
    values = np.zeros(ELEMENTS, kind)
    return Plan(
        method=name,
        copied={"values": values, "index": PATTERNS[pattern].astype(np.int32)},
        created={"out": (32, np.int64, 0)},
        steps=[Step(kernel, 1, 32, ("values", "index", "out"), shared=values.nbytes)],
    )
