"""Small launches, each of which tests one rule of a trace; `benchmarks/trace.py` compares them with the GPU's counters.

A `pattern` is one request of one warp to elements at certain addresses. A `chain` is a loop of requests, each of which
depends on the result of the one before: the latency of a request is the time over the number of rounds.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Plan, Step

# ------------------------------------------------------------------------------------------------------------ patterns

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


# -------------------------------------------------------------------------------------------------------------- chains

ROUNDS = 256
NEAR = 1024  # elements of a chain in shared memory


@kernel("void(int32[::1], int32[::1], int64, int64[::1])")
def follow(start, after, rounds, out):
    i = start[cuda.threadIdx.x]
    for _ in range(rounds):
        i = after[i]
    out[cuda.threadIdx.x] = i


@kernel("void(int32[::1], int32[::1], int64, int64[::1])")
def follow_shared(start, after, rounds, out):
    near = cuda.shared.array(0, int32)
    for k in range(cuda.threadIdx.x, after.size, cuda.blockDim.x):
        near[k] = after[k]
    cuda.syncthreads()
    i = start[cuda.threadIdx.x]
    for _ in range(rounds):
        i = near[i]
    out[cuda.threadIdx.x] = i


@kernel("void(int32[::1], int32[::1], int64, int64[::1])")
def follow_atomic(start, after, rounds, out):
    i = start[cuda.threadIdx.x]
    for _ in range(rounds):
        i = cuda.atomic.add(after, i, 0)
    out[cuda.threadIdx.x] = i


@kernel("void(int32[::1], int32[::1], int64, int64[::1])")
def compute(start, after, rounds, out):
    i = uint32(start[cuda.threadIdx.x])
    for _ in range(rounds):
        i = uint32(uint32(i * uint32(5)) ^ uint32(i >> uint32(3)))
    out[cuda.threadIdx.x] = i


@kernel("void(int32[::1], int32[::1], int64, int64[::1])")
def meet(start, after, rounds, out):
    for _ in range(rounds):
        cuda.syncthreads()
    out[cuda.threadIdx.x] = 0


def _ring(step, size):
    """`size` elements; element i holds the index (i + step) % size."""
    return (np.arange(size) + step) % size


CHAINS = {  # kernel, where each lane starts, where each element leads, threads
    "read: one sector again": (follow, 0 * LANE, _ring(0, 32), 32),
    "read: 4 sectors again": (follow, LANE, _ring(0, 32), 32),
    "read: 32 sectors again": (follow, 32 * LANE, _ring(0, NEAR), 32),
    "read: a new sector each time": (follow, 0 * LANE, _ring(32, 32 * ROUNDS), 32),
    "read: 32 new sectors each time": (follow, 32 * LANE, _ring(NEAR, NEAR * ROUNDS), 32),
    "shared: no conflict": (follow_shared, LANE, _ring(0, NEAR), 32),
    "shared: 4 lanes a bank": (follow_shared, 4 * LANE, _ring(0, NEAR), 32),
    "shared: 32 lanes a bank": (follow_shared, 32 * LANE, _ring(0, NEAR), 32),
    "atomic: 32 elements, 4 sectors": (follow_atomic, LANE, _ring(0, 32), 32),
    "atomic: 32 elements, 32 sectors": (follow_atomic, 32 * LANE, _ring(0, NEAR), 32),
    "atomic: one element": (follow_atomic, 0 * LANE, _ring(0, 32), 32),
    "compute": (compute, LANE, _ring(0, 32), 32),
    **{f"meet: {threads} threads": (meet, LANE, _ring(0, 32), threads) for threads in (32, 128, 512)},
}


def chain_plan(name):
    kernel, start, after, threads = CHAINS[name]
    return Plan(
        method=name,
        copied={"start": start.astype(np.int32), "after": after.astype(np.int32)},
        created={"out": (threads, np.int64, 0)},
        steps=[Step(kernel, 1, threads, ("start", "after", ROUNDS, "out"), shared=4 * NEAR)],
    )
