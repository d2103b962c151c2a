"""Choose the order to count in by what a count costs in each: sums over all edges, computed on the device.

They need no columns, so an order is chosen before any edge is sorted. Loops do not count; an edge that occurs twice
counts twice. What each sum takes was fitted to the times of an H200 on graphs of many kinds (`benchmarks/orders.py`).
"""

from dataclasses import dataclass

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.orientation import ENDS

SHORT = 32  # rows from which on a column may be local
LONG = 1024  # rows of two columns together, from which on those of the shorter are looked up
FEW = 16  # rows that one thread looks up
WORDS = (32, 64, 128)  # of 64 vertices, that a local column may reach over
NEAR, HUBS = 65535, 8192  # the last vertices in degree order: see `adaptive`
THREADS, BLOCKS = 256, 1056
NATURAL = (
    "merged",  # rows to merge
    "idle",  # rows that lanes wait for while another lane of their warp merges
    "searched",  # rows to look up, times the steps of a search: by many threads
    "galloped",  # the same, by one thread
    "distant",  # edges between vertices whose numbers are far apart
    # of columns with at least `short` rows that reach over at most 32, 64 or 128 words of 64 vertices
    "merged 32", "searched 32", "words 32",
    "merged 64", "searched 64", "words 64",
    "merged 128", "searched 128", "words 128",
)  # fmt: skip
DEGREE = (
    "pairs",  # of rows in short columns, each twice
    "heavy pairs",  # of rows in long columns, the first of them no hub
    "hub rows",  # rows of long columns that are hubs
    "windows",  # columns with a near row whose vertex is a row itself
)
DISTANT = 1 << 15  # numbers apart
HEAVY = 64  # rows from which on a column is long

# Nanoseconds for each of a sum, on an H200. "merged" and so on are of columns that are not local, the first of NATURAL
# without a number.
NATURAL_NS = {
    "merged": 1.77e-3, "idle": 5.34e-4, "searched": 1.12e-3, "galloped": 3.75e-4, "distant": 5.1e-3,
    "nonzeros": 1.37e-4, "long": 47_700,  # once, if there are long columns
    "words": 2.58e-2, "local nonzeros": 2.7e-2, "local words": 2.3e-3,  # if there are rows of bits
}  # fmt: skip
DEGREE_NS = {
    "pairs": 2.27e-3, "heavy pairs": 3.5e-4, "hub rows": 0.132, "windows": 0.562, "nonzeros": 4.7e-3, "begin": 72_400,
}  # fmt: skip

# The same for the triangles of each edge or vertex.
NATURAL_TALLY_NS = {
    "merged": 1.97e-3, "idle": 1.41e-3, "searched": 1.42e-3, "galloped": 6.05e-4, "distant": 3.05e-3,
    "nonzeros": 5.42e-3, "long": 14_700, "words": 8.85e-2, "local nonzeros": 0, "local words": 2.73e-2,
}  # fmt: skip
DEGREE_TALLY_NS = {
    "pairs": 4.64e-3, "heavy pairs": 1.36e-3, "hub rows": 0.146, "windows": 0.382, "nonzeros": 0, "begin": 219_000,
}  # fmt: skip


@dataclass(frozen=True)
class OrderCosts:
    """The sums of a graph."""

    n: int
    m: int
    max_column: int  # rows of the longest column in natural order
    sums: dict  # of NATURAL and DEGREE
    max_degree: int = 0  # neighbours of the vertex that has most; costs do not depend on it

    def natural_counts(self, words=0):
        """How often each of NATURAL_NS is taken, if local columns reach over at most `words` words."""
        widths, names = [width for width in WORDS if width <= words], ("merged", "searched", "words")
        local = {name: sum(self.sums[f"{name} {width}"] for width in widths) for name in names}
        merged = self.sums["merged"] - local["merged"]
        return {
            "merged": merged,
            "idle": self.sums["idle"] * merged / max(1, self.sums["merged"]),
            "searched": self.sums["searched"] - local["searched"],
            "galloped": self.sums["galloped"],
            "distant": self.sums["distant"],
            "nonzeros": self.m,
            "long": 2 * self.max_column > LONG,
            "words": local["words"],
            "local nonzeros": self.m if words else 0,
            "local words": self.n * words,
        }

    def degree_counts(self):
        """How often each of DEGREE_NS is taken."""
        return {name: self.sums[name] for name in DEGREE} | {"nonzeros": self.m, "begin": 1}

    def natural_ns(self, words=0):
        """Nanoseconds of a count in natural order, if local columns reach over at most `words` words."""
        return _total(NATURAL_NS, self.natural_counts(words))

    def degree_ns(self):
        """Nanoseconds of a count in degree order."""
        return _total(DEGREE_NS, self.degree_counts())

    def best_words(self):
        """The `words` of the fastest count in natural order, of those for which there is memory."""
        room = runtime.memory_free() // 4
        return min((0, *(width for width in WORDS if 8 * width * self.n <= room)), key=self.natural_ns)

    def best(self):
        """The order of the fastest count."""
        return "natural" if self.natural_ns(self.best_words()) <= self.degree_ns() else "degree"

    def best_for_tallies(self):
        """The order of the fastest count of each edge's or vertex's triangles."""
        natural = _total(NATURAL_TALLY_NS, self.natural_counts(self.best_words()))
        return "natural" if natural <= _total(DEGREE_TALLY_NS, self.degree_counts()) else "degree"


def _total(nanoseconds, counts):
    return sum(nanoseconds[name] * count for name, count in counts.items())


def order_costs(u, v, n, fill=None):
    """The OrderCosts of the edges in two device arrays.

    fill: called with a kernel and its arguments instead of launching it.
    """
    xp = runtime.arrays_of(u)
    degree, length, reach, rows, windows = (xp.zeros(n, np.int32) for _ in range(5))
    natural, by_degree = xp.zeros(len(NATURAL), np.int64), xp.zeros(len(DEGREE), np.int64)

    def run(kernel, *args, shared=0):
        if fill is not None:
            return fill(kernel, u, v, *args)
        kernel.launch(enough_blocks(BLOCKS, u.size, THREADS), THREADS, u, v, *args, shared=shared)

    run(measure_vertices, degree, length, reach)
    run(cost_in_natural_order, degree, length, reach, SHORT, LONG, rows, natural, shared=8 * THREADS * len(NATURAL))
    sample = xp.sort(degree[:: max(1, n >> 16)])
    least = xp.concatenate([_least_degree(sample, last, n) for last in (NEAR, HUBS)])
    run(cost_in_degree_order, degree, rows, least, windows, by_degree, shared=8 * THREADS * len(DEGREE))
    most = [counts.max(keepdims=True) if n else xp.zeros(1, np.int32) for counts in (length, degree)]
    *found, max_column, max_degree = runtime.to_host(xp.concatenate([natural, by_degree, *most])).tolist()
    return OrderCosts(n, u.size, max_column, dict(zip((*NATURAL, *DEGREE), found)), max_degree)


def _least_degree(sample, last, n):
    """The largest degree that is not among those of the last vertices, estimated from sorted degrees of a sample."""
    if n <= last:
        return runtime.arrays_of(sample).full(1, -1, np.int32)
    place = sample.size - 1 - last * sample.size // n
    return sample[place : place + 1]


# ------------------------------------------------------------------------------------------------------------- kernels


@cuda.jit(device=True)
def add_one(counts, place):
    """Add 1 to an element; once for all lanes of a warp if they have the same, as at a hub."""
    first = cuda.shfl_sync(ALL_LANES, place, 0)
    if cuda.all_sync(ALL_LANES, place == first):
        if cuda.threadIdx.x & 31 == 0 and place >= 0:
            cuda.atomic.add(counts, place, 32)
    elif place >= 0:
        cuda.atomic.add(counts, place, 1)


@kernel(*(f"void({ends}, int32[::1], int32[::1], int32[::1])" for ends in ENDS))
def measure_vertices(u, v, degree, length, reach):
    """A thread per edge: count the neighbours of each vertex, and the rows of its column; how many words of 64 vertices
    these reach over."""
    e, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while e - lane < u.size:  # whole warps
        j = i = int32(-1)
        if e < u.size and u[e] != v[e]:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            words = (i >> 6) - (j >> 6) + 1
            if reach[j] < words:
                cuda.atomic.max(reach, j, words)
        add_one(degree, j)
        add_one(degree, i)
        add_one(length, j)
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def clear_sums(sums, count):
    """Set `count` sums of this thread to 0: thread t has sum k at k * threads + t."""
    for k in range(count):
        sums[k * cuda.blockDim.x + cuda.threadIdx.x] = 0


@cuda.jit(device=True)
def add_sums_to(total, sums):
    """Add the sums of all threads of the block to `total`, a warp to a sum."""
    cuda.syncthreads()
    lane, k = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    while k < total.size:
        found, thread = int64(0), lane
        while thread < cuda.blockDim.x:
            found += sums[k * cuda.blockDim.x + thread]
            thread += 32
        for step in range(5):
            found += cuda.shfl_xor_sync(ALL_LANES, found, 1 << step)
        if lane == 0:
            cuda.atomic.add(total, k, found)
        k += cuda.blockDim.x >> 5


@cuda.jit(device=True)
def add_to(sums, k, value):
    """Add to sum k of this thread."""
    sums[k * cuda.blockDim.x + cuda.threadIdx.x] += value


@cuda.jit(device=True)
def add_natural(sums, column, row, reach, short, long):
    """Add the cost of a nonzero in natural order: half of a column of `column` rows, and a column of `row` rows.
    Returns how many rows are merged."""
    behind = column >> 1
    merged, searched = int64(0), int64(0)
    if row > 0 and behind > 0:
        merged = row + behind
        if merged > long:
            merged, searched = int64(0), int64(min(row, behind)) * (32 - cuda.clz(uint32(max(row, behind))))
            if min(row, behind) <= FEW:
                add_to(sums, 3, searched)
                searched = int64(0)
    add_to(sums, 0, merged)
    add_to(sums, 2, searched)
    if column >= short and reach <= 128:
        k = 5
        if reach > 32:
            k = 8
        if reach > 64:
            k = 11
        add_to(sums, k, merged)
        add_to(sums, k + 1, searched)
        add_to(sums, k + 2, (reach + 31) >> 5)
    return uint32(merged)


@cuda.jit(device=True)
def first_and_last(a, b, degree):
    """The two ends of an edge in degree order."""
    first, last = min(a, b), max(a, b)
    if degree[last] < degree[first]:
        first, last = last, first
    return first, last


@kernel(*(f"void({ends}, int32[::1], int32[::1], int32[::1], int64, int64, int32[::1], int64[::1])" for ends in ENDS))
def cost_in_natural_order(u, v, degree, length, reach, short, long, rows, total):
    """A thread per edge: add what it costs in natural order, and count it as a row of its column in degree order."""
    sums = cuda.shared.array(0, int64)
    clear_sums(sums, total.size)
    e, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while e - lane < u.size:
        first, merged = int32(-1), uint32(0)
        if e < u.size and u[e] != v[e]:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            first, last = first_and_last(j, i, degree)
            merged = add_natural(sums, length[j], length[i], reach[j], short, long)
            add_to(sums, 4, i - j > DISTANT)
        add_one(rows, first)
        most = merged
        for step in range(5):
            most = max(most, cuda.shfl_xor_sync(ALL_LANES, most, 1 << step))
        add_to(sums, 1, most - merged)
        e += cuda.gridsize(1)
    add_sums_to(total, sums)


@kernel(*(f"void({ends}, int32[::1], int32[::1], int32[::1], int32[::1], int64[::1])" for ends in ENDS))
def cost_in_degree_order(u, v, degree, rows, least, windows, total):
    """A thread per edge: add what it costs in degree order, and mark columns with a near row whose vertex is a row.

    least: the degree of the first near vertex, and of the first hub.
    """
    sums = cuda.shared.array(0, int64)
    clear_sums(sums, total.size)
    e = cuda.grid(1)
    while e < u.size:
        a, b = int32(u[e]), int32(v[e])
        if a != b:
            first, last = first_and_last(a, b, degree)
            if rows[first] < HEAVY:
                add_to(sums, 0, rows[first] - 1)
            elif degree[last] > least[1]:
                add_to(sums, 2, 1)
            else:
                add_to(sums, 1, rows[first] - 1)
            if degree[last] > least[0] and degree[first] > rows[first] and windows[first] == 0:
                add_to(sums, 3, cuda.atomic.exch(windows, first, 1) == 0)
        e += cuda.gridsize(1)
    add_sums_to(total, sums)
