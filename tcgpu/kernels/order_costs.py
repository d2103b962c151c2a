"""Choose how to count by what it costs: sums over all edges, computed on the device.

There are three ways. In natural order, local columns are rows of bits, the others are merged. In degree order, all are
merged, or there are classes of columns: hubs, windows, tables. The sums need no columns, so an order is chosen before
any edge is sorted. Loops do not count; an edge that occurs twice counts twice. What each sum takes was fitted to the
times of an H200 on graphs of many kinds (`benchmarks/orders.py`).
"""

from dataclasses import dataclass

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.merge import rows_to_search
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.orientation import ENDS

SHORT = 32  # rows from which on a column may be local
LONG = 1024  # rows of two columns together, from which on those of the shorter are looked up
MAY_SEARCH = 128  # rows of the longest column from which on any are looked up
WORDS = (32, 64, 128)  # of 64 vertices, that a local column may reach over
NEAR, HUBS = 65535, 8192  # the last vertices in degree order: see `adaptive`
THREADS, BLOCKS = 256, 1056
NATURAL = (
    "merged",  # rows to merge
    "idle",  # rows that lanes wait for while another lane of their warp merges
    "searched",  # rows to look up, times the steps of a search
    "distant",  # edges between vertices whose columns are far apart
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
    "merged by degree", "idle by degree", "searched by degree",  # as in natural order
)  # fmt: skip
# The most rows that a thread merges: for a column that is not local, of those that reach over 32, 64, 128 words, and in
# degree order.
LONGEST = ("longest", "longest 32", "longest 64", "longest 128", "longest by degree")
SHORT_ROWS, SHORT_NEAR_ROWS = 6, 12  # of the longest column, for short_columns; where most edges are near
MANY_EDGES = 1 << 17  # for short_columns
DISTANT = 1 << 17  # nonzeros: columns that are farther apart are not in a cache at the same time
HEAVY = 64  # rows from which on a column is heavy
LITTLE, LITTLE_NS = 1.05, 1_000  # times as long, and nanoseconds more

# Nanoseconds for each of a sum, on an H200. "merged", "idle" and "searched" are those of columns that are not local;
# "merged nearby" instead if most edges are near, "merged by column" if columns are short. "begin", "searches" and
# "local begin" are taken once: always, if there may be searches, if there are rows of bits.
NATURAL_NS = {
    "merged": 0.0019, "merged nearby": 0.0012, "merged by column": 7.43e-4, "idle": 3.09e-4, "searched": 0.00126,
    "distant": 0.00832, "nonzeros": 0, "longest": 95.4, "begin": 4_600, "searches": 6_160, "local begin": 9_510,
    "words": 0.0326, "local nonzeros": 0.0184, "local words": 4.89e-4,
}  # fmt: skip
MERGED_NS = {
    "merged": 0.00145, "idle": 3.54e-4, "searched": 8.85e-4, "nonzeros": 0.00224, "longest": 84.3, "begin": 4_910,
}  # fmt: skip
DEGREE_NS = {
    "pairs": 0.00172, "heavy pairs": 3.32e-4, "hub rows": 0.124, "windows": 0.521, "nonzeros": 0.0117, "longest": 11,
    "begin": 39_400,
}  # fmt: skip

# The same for the triangles of each edge or vertex.
NATURAL_TALLY_NS = {
    "merged": 0.00202, "merged nearby": 0.00172, "merged by column": 0.0021, "idle": 0.00161, "searched": 0.00106,
    "distant": 0.0062, "nonzeros": 0.0032, "longest": 224, "begin": 3_870, "searches": 8_920, "local begin": 28_100,
    "words": 0.0849, "local nonzeros": 0, "local words": 0.0319,
}  # fmt: skip
MERGED_TALLY_NS = {
    "merged": 0.00264, "idle": 7.84e-4, "searched": 0.00615, "nonzeros": 0.00849, "longest": 216, "begin": 4_520,
}  # fmt: skip
DEGREE_TALLY_NS = {
    "pairs": 0.00377, "heavy pairs": 0.00107, "hub rows": 0.143, "windows": 0.208, "nonzeros": 0.0208, "longest": 103,
    "begin": 63_700,
}  # fmt: skip


@dataclass(frozen=True)
class OrderCosts:
    """The sums of a graph."""

    n: int
    m: int
    max_column: int  # rows of the longest column in natural order
    sums: dict  # of NATURAL and DEGREE
    max_degree: int = 0  # neighbours of the vertex that has most; costs do not depend on it

    @property
    def near(self):
        """Whether most edges are between vertices whose columns are close to each other."""
        return 8 * self.sums["distant"] <= self.m

    @property
    def short_columns(self):
        """Whether the columns in natural order are so short that a thread merges each of them in turn."""
        return self.m > MANY_EDGES and self.max_column <= (SHORT_NEAR_ROWS if self.near else SHORT_ROWS)

    def natural_counts(self, words=0):
        """How often each of NATURAL_NS is taken, if local columns reach over at most `words` words."""
        widths, names = [width for width in WORDS if width <= words], ("merged", "searched", "words")
        local = {name: sum(self.sums[f"{name} {width}"] for width in widths) for name in names}
        merged, searched = self.sums["merged"] - local["merged"], self.sums["searched"] - local["searched"]
        others = ["longest", *(f"longest {width}" for width in WORDS if width > words)]
        how = "merged by column" if self.short_columns and not words else "merged nearby" if self.near else "merged"
        return dict.fromkeys(("merged", "merged nearby", "merged by column"), 0) | {
            how: merged,
            "idle": self.sums["idle"] * merged / max(1, self.sums["merged"]),
            "searched": searched,
            "distant": self.sums["distant"],
            "nonzeros": self.m,
            "longest": max(self.sums[name] for name in others),
            "begin": 1,
            "searches": self.max_column > MAY_SEARCH,
            "local begin": words > 0,
            "words": local["words"],
            "local nonzeros": self.m if words else 0,
            "local words": self.n * words,
        }

    def merged_counts(self):
        """How often each of MERGED_NS is taken."""
        sums = {name: self.sums[f"{name} by degree"] for name in ("merged", "idle", "searched", "longest")}
        return sums | {"nonzeros": self.m, "begin": 1}

    def degree_counts(self):
        """How often each of DEGREE_NS is taken."""
        sums = {name: self.sums[name] for name in ("pairs", "heavy pairs", "hub rows", "windows")}
        return sums | {"nonzeros": self.m, "longest": self.sums["longest by degree"], "begin": 1}

    def natural_ns(self, words=0):
        """Nanoseconds of a count in natural order, if local columns reach over at most `words` words."""
        return _total(NATURAL_NS, self.natural_counts(words))

    def merged_ns(self):
        """Nanoseconds of a count in degree order that merges all columns."""
        return _total(MERGED_NS, self.merged_counts())

    def degree_ns(self):
        """Nanoseconds of a count in degree order with classes of columns."""
        return _total(DEGREE_NS, self.degree_counts())

    def best_words(self):
        """The `words` of the fastest count in natural order, of those for which there is memory."""
        room = runtime.memory_free() // 4
        return min((0, *(width for width in WORDS if 8 * width * self.n <= room)), key=self.natural_ns)

    def best(self):
        """The order of the fastest count; the natural one if that takes little longer: vertices keep their numbers."""
        by_degree = min(self.merged_ns(), self.degree_ns())
        return "natural" if self.natural_ns(self.best_words()) <= LITTLE * by_degree + LITTLE_NS else "degree"

    def merges(self):
        """Whether a count in degree order is faster if it merges all columns."""
        return self.merged_ns() <= self.degree_ns()

    def best_for_tallies(self):
        """The order of the fastest count of each edge's or vertex's triangles."""
        natural = _total(NATURAL_TALLY_NS, self.natural_counts(self.best_words()))
        return "natural" if natural <= min(self._tallies_by_degree()) else "degree"

    def merges_for_tallies(self):
        """Whether the same in degree order is faster if it merges all columns."""
        merged, classes = self._tallies_by_degree()
        return merged <= classes

    def _tallies_by_degree(self):
        return _total(MERGED_TALLY_NS, self.merged_counts()), _total(DEGREE_TALLY_NS, self.degree_counts())


def _total(nanoseconds, counts):
    return sum(nanoseconds[name] * count for name, count in counts.items())


def order_costs(u, v, n, fill=None):
    """The OrderCosts of the edges in two device arrays.

    fill: called with a kernel and its arguments instead of launching it.
    """
    xp = runtime.arrays_of(u)
    degree, length, reach, rows, windows = (xp.zeros(n, np.int32) for _ in range(5))
    natural, by_degree = xp.zeros(len(NATURAL), np.int64), xp.zeros(len(DEGREE), np.int64)
    longest = xp.zeros(len(LONGEST), np.int32)

    def run(kernel, *args, shared=0):
        if fill is not None:
            return fill(kernel, u, v, *args)
        kernel.launch(enough_blocks(BLOCKS, u.size, THREADS), THREADS, u, v, *args, shared=shared)

    run(measure_vertices, degree, length, reach)
    apart, shared = DISTANT * n // max(1, u.size), 8 * THREADS * len(NATURAL)
    run(cost_in_natural_order, degree, length, reach, SHORT, LONG, apart, rows, longest, natural, shared=shared)
    sample = xp.sort(degree[:: max(1, n >> 16)])
    least = xp.concatenate([_least_degree(sample, last, n) for last in (NEAR, HUBS)])
    run(cost_in_degree_order, degree, rows, least, LONG, windows, longest, by_degree, shared=8 * THREADS * len(DEGREE))
    most = [counts.max(keepdims=True) if n else xp.zeros(1, np.int32) for counts in (length, degree)]
    *found, max_column, max_degree = runtime.to_host(xp.concatenate([natural, by_degree, longest, *most])).tolist()
    return OrderCosts(n, u.size, max_column, dict(zip((*NATURAL, *DEGREE, *LONGEST), found)), max_degree)


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
def rows_of_merge(column, row, long):
    """How many rows are merged for a nonzero whose columns have `column` and `row` rows, and the steps of searches.

    Half of the first column is behind the nonzero, on average.
    """
    behind = uint32(column >> 1)
    few, many = min(uint32(row), behind), max(uint32(row), behind)
    rows = rows_to_search(few, many, uint32(long))
    merged = uint32(0)
    if few > 0 and rows == 0:
        merged = few + many
    return merged, int64(rows) * (32 - cuda.clz(many))


@cuda.jit(device=True)
def add_natural(sums, column, row, reach, short, long, longest):
    """Add the cost of a nonzero in natural order, whose columns have `column` and `row` rows. Returns how many rows are
    merged."""
    merged, searched = rows_of_merge(column, row, long)
    add_to(sums, 0, merged)
    add_to(sums, 2, searched)
    width = 0
    if column >= short and reach <= 128:
        width = 1 + (reach > 32) + (reach > 64)
        k = 1 + 3 * width
        add_to(sums, k, merged)
        add_to(sums, k + 1, searched)
        add_to(sums, k + 2, (reach + 31) >> 5)
    keep_most(longest, width, merged)
    return merged


@cuda.jit(device=True)
def keep_most(most, k, value):
    """Set element k to the value if that is more."""
    if most[k] < value:
        cuda.atomic.max(most, k, int32(value))


@cuda.jit(device=True)
def add_idle(sums, k, merged):
    """Add to sum k how many rows more the lane of a warp merges that merges most."""
    most = merged
    for step in range(5):
        most = max(most, cuda.shfl_xor_sync(ALL_LANES, most, 1 << step))
    add_to(sums, k, most - merged)


@cuda.jit(device=True)
def first_and_last(a, b, degree):
    """The two ends of an edge in degree order."""
    first, last = min(a, b), max(a, b)
    if degree[last] < degree[first]:
        first, last = last, first
    return first, last


@kernel(
    *(
        f"void({ends}, int32[::1], int32[::1], int32[::1], int64, int64, int64, int32[::1], int32[::1], int64[::1])"
        for ends in ENDS
    )
)
def cost_in_natural_order(u, v, degree, length, reach, short, long, apart, rows, longest, total):
    """A thread per edge: add what it costs in natural order, and count it as a row of its column in degree order.

    apart: the difference of two vertices' numbers up to which their columns are near each other.
    """
    sums = cuda.shared.array(0, int64)
    clear_sums(sums, total.size)
    e, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while e - lane < u.size:
        first, merged = int32(-1), uint32(0)
        if e < u.size and u[e] != v[e]:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            first, last = first_and_last(j, i, degree)
            merged = add_natural(sums, length[j], length[i], reach[j], short, long, longest)
            add_to(sums, 3, i - j > apart)
        add_one(rows, first)
        add_idle(sums, 1, merged)
        e += cuda.gridsize(1)
    add_sums_to(total, sums)


@kernel(
    *(f"void({ends}, int32[::1], int32[::1], int32[::1], int64, int32[::1], int32[::1], int64[::1])" for ends in ENDS)
)
def cost_in_degree_order(u, v, degree, rows, least, long, windows, longest, total):
    """A thread per edge: add what it costs in degree order, and mark columns with a near row whose vertex is a row.

    least: the degree of the first near vertex, and of the first hub.
    """
    sums = cuda.shared.array(0, int64)
    clear_sums(sums, total.size)
    e, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while e - lane < u.size:
        merged = uint32(0)
        if e < u.size and u[e] != v[e]:
            first, last = first_and_last(int32(u[e]), int32(v[e]), degree)
            if rows[first] < HEAVY:
                add_to(sums, 0, rows[first] - 1)
            elif degree[last] > least[1]:
                add_to(sums, 2, 1)
            else:
                add_to(sums, 1, rows[first] - 1)
            if degree[last] > least[0] and degree[first] > rows[first] and windows[first] == 0:
                add_to(sums, 3, cuda.atomic.exch(windows, first, 1) == 0)
            merged, searched = rows_of_merge(rows[first], rows[last], long)
            add_to(sums, 4, merged)
            add_to(sums, 6, searched)
            keep_most(longest, 4, merged)
        add_idle(sums, 5, merged)
        e += cuda.gridsize(1)
    add_sums_to(total, sums)
