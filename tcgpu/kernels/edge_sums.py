"""Sums over the edges of a graph, by which `order_costs` chooses how to count it.

The sums need no columns, so an order is chosen before any edge is sorted. Loops cost nothing; an edge that occurs twice
counts twice. `describe_edges` launches these kernels:

    measure_vertices       from all edges: the rows of each column and how far they reach, and the columns that each
                           vertex is a row of
    describe_vertices      packs this for each vertex; a histogram of the degrees
    find_hubs              which degree the hubs have at least, and the LAST vertices
    count_rows_by_degree   the rows of each column in degree order. Where that takes longer than it saves, count_ends
                           and estimate_rows: from the edges in the sample at vertices of about the same degree
    add_up_costs           adds up what edges cost: of many a sample, a million at least

Few edges may make up the whole cost of natural order. So before that is chosen, all edges are added up if a single one
might matter. From VERY_MANY edges on, a sample measures the vertices, if it leaves no doubt of degree order.
"""

from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from tcgpu.built_in import HEAVY, HUBS, LONG, SHORT
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import THREADS, enough_blocks, launch, run
from tcgpu.kernels.device.merge import rows_to_search
from tcgpu.kernels.device.shared_memory import FREE, claim, clear_counters
from tcgpu.kernels.device.warp import ALL_LANES, WARP, max_of_warp, sum_of_warp, sum_up_to
from tcgpu.kernels.order_costs import DEGREE, LONGEST, NATURAL, SURE, WORDS, OrderCosts
from tcgpu.kernels.orientation import ENDS

SAMPLED, MOST_STRIDE = 1 << 20, 64  # edges that are added up, at least; one group of 32 edges in `stride` is
VERY_MANY, AN_EDGE = 1 << 29, 2  # edges from which on a sample measures vertices first; vertices for each edge in it
DISTANT = 1 << 17  # nonzeros: columns that are farther apart are not in a cache at the same time
SPAN = WORDS[0]  # words of 64 vertices: how far a column reaches is counted in spans,
NOT_LOCAL = WORDS[-1] // SPAN  # of which no local column reaches over so many after the first
LAST = 1 << 14  # vertices in degree order whose columns are rows of bits for look-ups, which take 32 MB
TABLE_THREADS, TABLE_BLOCKS = 1024, 264  # of a block that has a table; of a launch
TABLE_BYTES, PLACE_BYTES, DEGREE_BYTES = 1 << 16, 16, 8  # of a table, at most; of a place; where it counts degrees
# If a vertex has MANY_A_VERTEX edges, a range of RANGE vertices is counted at a time: the counts of all would not be in
# a cache, and the edges are read fast.
RANGE, MOST_RANGES, MANY_A_VERTEX = 1 << 23, 8, 4
SCATTER = 2654435761  # the multiplier of the hash
BINS = 512  # of a histogram of degrees: see `bin_of`

# Positions: in SUMS, from LOCAL_SUMS on three for each of WORDS; in LONGEST; in `most`, which is of all vertices.
SUMS, WIDTHS = (*NATURAL, *DEGREE), len(WORDS)
MERGED_ROWS, IDLE_ROWS, SEARCH_STEPS, DISTANT_EDGES, LOCAL_SUMS = range(len(NATURAL) - 3 * WIDTHS + 1)
PAIRS, HEAVY_PAIRS, HUB_ROWS, *BY_DEGREE, LOOKED_UP, FAR_STEPS = range(len(NATURAL), len(SUMS))
MERGED_BY_DEGREE, IDLE_BY_DEGREE, STEPS_BY_DEGREE = BY_DEGREE
LONGEST_BY_DEGREE = LONGEST.index("longest by degree")
MAX_COLUMN, MAX_DEGREE, HUB_BIN, LAST_BIN, MOST_SIZE = range(5)

# What `pack_vertex` packs: the lowest bits are the degree, the next the rows of the column.
DEGREE_BITS, ROWS_BITS = 31, 30


# ---------------------------------------------------------------------- neighbours and rows of vertices, from all edges


@cuda.jit(device=True)
def keep_most(most, k, value):
    """Set element k to the value, which has its type, if that is more."""
    if most[k] < value:
        cuda.atomic.max(most, k, value)


@cuda.jit(device=True)
def place_of(owners, table_bits, x):
    """The place of vertex x in the block's table: one of two; -1 if others have both, or anything if x < 0."""
    place = int32(uint32(x) * SCATTER >> (32 - table_bits))
    if x < 0 or claim(owners, place, x):
        return place
    return place ^ 1 if claim(owners, place ^ 1, x) else int32(-1)


@cuda.jit(device=True)
def count_vertex(counts, table, x, place, times):
    """Add to a vertex's count, or to that of its place in the table; once for all lanes of a warp if they add the same.
    x: the vertex, -1 for none."""
    first, other = cuda.shfl_sync(ALL_LANES, x, 0), cuda.shfl_sync(ALL_LANES, times, 0)
    if cuda.all_sync(ALL_LANES, x == first and times == other):
        times *= WARP
        if cuda.threadIdx.x % WARP != 0:
            x = int32(-1)
    if x >= 0:
        if place >= 0:
            cuda.atomic.add(table, place, times)
        else:
            cuda.atomic.add(counts, x, times)


MEASURE_TYPES = "int32[::1], int32[::1], int32[::1], int64, int64, int64, int64"


@kernel(*(f"void({ends}, {MEASURE_TYPES})" for ends in ENDS), most_threads=TABLE_THREADS)
def measure_vertices(u, v, lengths, in_columns, reach, every, low, high, table_bits):
    """A thread per edge: count the rows of each column, and the columns that each vertex is a row of; a loop as two.

    Of `every` neighbouring edges, a power of two, one is counted; which one, changes without a pattern.
    Only vertices from `low` up to `high` are counted, not that one; other numbers change nothing. reach: over how many
    spans the rows of a column reach after the first one, at most NOT_LOCAL. Each block has a table of 2 ** table_bits
    counts in shared memory, for the first vertices that it meets: among these are the hubs, to whose counts in global
    memory all blocks would have to add in turn.
    """
    shared, size = cuda.shared.array(0, int32), 1 << table_bits
    owners, table_lengths, table_in_columns, table_reach = shared, shared[size:], shared[2 * size :], shared[3 * size :]
    for place in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        owners[place], table_lengths[place], table_in_columns[place], table_reach[place] = FREE, 0, 0, 0
    cuda.syncthreads()
    group, lane = cuda.grid(1), cuda.threadIdx.x & 31
    while (group - lane) * every < u.size:  # whole warps
        e = group * every + int64(uint32(group) * SCATTER >> 16 & (every - 1))
        j = i = int32(-1)
        times, spans = int32(1), int32(0)
        if e < u.size and u[e] == v[e]:
            i, times = int32(u[e]), int32(2)
        elif e < u.size:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            spans = min(int32(NOT_LOCAL), ((i >> 6) - (j >> 6)) >> 5)
        if j < low or j >= high:
            j, spans = int32(-1), int32(0)
        if i < low or i >= high:
            i = int32(-1)
        place = place_of(owners, table_bits, j)
        if spans > 0 and place >= 0:
            keep_most(table_reach, place, spans)
        elif spans > 0:
            keep_most(reach, j, spans)
        count_vertex(lengths, table_lengths, j, place, int32(1))
        count_vertex(in_columns, table_in_columns, i, place_of(owners, table_bits, i), times)
        group += cuda.gridsize(1)
    cuda.syncthreads()
    for place in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        if table_lengths[place] > 0:
            cuda.atomic.add(lengths, owners[place], table_lengths[place])
        if table_in_columns[place] > 0:
            cuda.atomic.add(in_columns, owners[place], table_in_columns[place])
        if table_reach[place] > 0:
            keep_most(reach, owners[place], table_reach[place])


@kernel(*(f"void({ends}, int32[::1], int64, int64, int64)" for ends in ENDS), most_threads=TABLE_THREADS)
def count_degrees(u, v, degrees, low, high, table_bits):
    """As measure_vertices, but count only the edges at each vertex; a loop as two."""
    shared, size = cuda.shared.array(0, int32), 1 << table_bits
    owners, counts = shared, shared[size:]
    for place in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        owners[place], counts[place] = FREE, 0
    cuda.syncthreads()
    for e in range(cuda.grid(1), u.size + (cuda.threadIdx.x & 31), cuda.gridsize(1)):  # whole warps
        a = b = int32(-1)
        if e < u.size and low <= int64(u[e]) < high:
            a = int32(u[e])
        if e < u.size and low <= int64(v[e]) < high:
            b = int32(v[e])
        count_vertex(degrees, counts, a, place_of(owners, table_bits, a), int32(1))
        count_vertex(degrees, counts, b, place_of(owners, table_bits, b), int32(1))
    cuda.syncthreads()
    for place in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        if counts[place] > 0:
            cuda.atomic.add(degrees, owners[place], counts[place])


# -------------------------------------------------------------------------------------------- degrees, and who is a hub


@cuda.jit(device=True)
def add_once(counts, place, value):
    """Add to an element, or to none for a place below 0; once for all lanes of a warp, if they add the same to one."""
    first, other = cuda.shfl_sync(ALL_LANES, place, 0), cuda.shfl_sync(ALL_LANES, value, 0)
    if cuda.all_sync(ALL_LANES, place == first and value == other):
        if cuda.threadIdx.x & 31 == 0 and place >= 0:
            cuda.atomic.add(counts, place, 32 * value)
    elif place >= 0:
        cuda.atomic.add(counts, place, value)


@cuda.jit(device=True)
def pack_vertex(degree, length, spans):
    """64 bits: the degree of a vertex, the rows of its column, and the spans that this reaches over, 0 if not local."""
    most = int64((1 << ROWS_BITS) - 1)
    return uint64(degree | min(length, most) << DEGREE_BITS) | uint64(spans) << uint64(DEGREE_BITS + ROWS_BITS)


@cuda.jit(device=True)
def degree_of(vertex):
    """The degree of a packed vertex."""
    return int32(vertex & uint64((1 << DEGREE_BITS) - 1))


@cuda.jit(device=True)
def length_of(vertex):
    """The rows of its column."""
    return int32(vertex >> DEGREE_BITS & uint64((1 << ROWS_BITS) - 1))


@cuda.jit(device=True)
def spans_of(vertex):
    """The spans of SPAN words that its column reaches over; 0 if it is not local."""
    return int32(vertex >> DEGREE_BITS + ROWS_BITS)


@cuda.jit(device=True)
def bin_of(degree):
    """The bin of a degree: its own up to 31; then 16 bins from one power of two to the next."""
    above = max(27 - int32(cuda.clz(uint32(degree))), 0)  # the lowest bits, which a bin does not tell apart
    return int32(16 * above + (degree >> above))


@cuda.jit(device=True)
def add_block_bins(histogram, bins):
    """Add a block's histogram to that of all blocks."""
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        if bins[k] > 0:
            cuda.atomic.add(histogram, k, int64(bins[k]))


@kernel("void(int32[::1], int32[::1], int32[::1], int64, uint64[::1], int64[::1], int64[::1])")
def describe_vertices(lengths, degree, reach, short, packed, histogram, most):
    """A thread per vertex: pack what is known of it, and count its degree in the histogram.

    degree: before, how many columns the vertex is a row of; after, its degree. short: rows of a local column, at least.
    """
    bins = cuda.shared.array(BINS, int32)
    clear_counters(bins, BINS)
    lane = cuda.threadIdx.x & 31
    for x in range(cuda.grid(1), lengths.size + lane, cuda.gridsize(1)):  # whole warps
        length = own = int64(0)
        if x < lengths.size:
            length = int64(lengths[x])
            own = length + degree[x]
            spans = int64(0)
            if length >= short and reach[x] < NOT_LOCAL:
                spans = int64(reach[x]) + 1
            degree[x] = own
            packed[x] = pack_vertex(own, length, spans)
        add_once(bins, bin_of(own) if x < lengths.size else int32(-1), int32(1))
        length, own = max_of_warp(length), max_of_warp(own)
        if lane == 0:
            keep_most(most, MAX_COLUMN, length)
            keep_most(most, MAX_DEGREE, own)
    add_block_bins(histogram, bins)


@kernel("void(int64[::1], int64, int64, int64[::1])")
def find_hubs(histogram, hubs, last_ones, most):
    """Two warps: write to most[HUB_BIN] the least bin from which on there are at most `hubs` vertices, and to
    most[LAST_BIN] that for `last_ones`."""
    warp = cuda.threadIdx.x // WARP
    vertices = hubs if warp == 0 else last_ones
    last = BINS - BINS // WARP * (cuda.threadIdx.x % WARP) - 1  # lane 0 has the last bins
    own = int64(0)
    for k in range(BINS // WARP):
        own += histogram[last - k]
    behind = sum_up_to(own) - own
    least = int32(BINS)
    for k in range(BINS // WARP):
        behind += histogram[last - k]
        if behind <= vertices:
            least = int32(last - k)
    for step in range(5):
        least = min(least, cuda.shfl_xor_sync(ALL_LANES, least, 1 << step))
    if cuda.threadIdx.x % WARP == 0 and warp < 2:
        most[HUB_BIN + warp] = least


# ---------------------------------------------------------------------------------- rows of the columns in degree order


@cuda.jit(device=True)
def is_last(degree, a, other_degree, b):
    """Whether vertex a comes after vertex b in degree order."""
    return degree > other_degree or (degree == other_degree and a > b)


@kernel(*(f"void({ends}, uint64[::1], int32[::1])" for ends in ENDS))
def count_rows_by_degree(u, v, packed, rows):
    """A thread per edge: count it as a row of its column in degree order."""
    for e in range(cuda.grid(1), u.size + (cuda.threadIdx.x & 31), cuda.gridsize(1)):  # whole warps
        first = int32(-1)
        if e < u.size and u[e] != v[e]:
            first = int32(u[e])
            if is_last(degree_of(packed[first]), first, degree_of(packed[int32(v[e])]), int32(v[e])):
                first = int32(v[e])
        add_once(rows, first, int32(1))


@kernel(*(f"void({ends}, uint64[::1], int64, int64[::1])" for ends in ENDS))
def count_ends(u, v, packed, stride, ends):
    """A warp per 32 edges, of which it takes one in `stride`: count the bin of the degree of an edge's first end in
    degree order in ends[:BINS], that of its last in the other half."""
    first_bins, last_bins = cuda.shared.array(BINS, int32), cuda.shared.array(BINS, int32)
    clear_counters(first_bins, BINS)
    clear_counters(last_bins, BINS)
    lane = cuda.threadIdx.x & 31
    e = (cuda.grid(1) - lane) * stride + lane
    while e - lane < u.size:
        first = last = int32(-1)
        if e < u.size and u[e] != v[e]:
            a, b = degree_of(packed[int32(u[e])]), degree_of(packed[int32(v[e])])
            first, last = bin_of(min(a, b)), bin_of(max(a, b))
        add_once(first_bins, first, int32(1))
        add_once(last_bins, last, int32(1))
        e += cuda.gridsize(1) * stride
    add_block_bins(ends, first_bins)
    add_block_bins(ends[BINS:], last_bins)


@kernel("void(uint64[::1], int64[::1], int32[::1])")
def estimate_rows(packed, ends, rows):
    """A thread per vertex: of its neighbours, as many are rows of its column in degree order as at vertices of its
    bin; rounded up at as many of these as keeps the mean."""
    for x in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        degree = degree_of(packed[x])
        bin = bin_of(degree)
        firsts = ends[bin]
        sampled = max(int64(1), firsts + ends[BINS + bin])
        rows[x] = (int64(degree) * firsts + x % sampled) // sampled


# ------------------------------------------------------------------------------------------------------------- the sums


@cuda.jit(device=True)
def add_block_sums(total, sums):
    """Add the sums of all threads of the block to `total`, a warp to a sum. Thread t has sum k at k * threads + t."""
    cuda.syncthreads()
    lane, k = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5
    while k < total.size:
        found, thread = int64(0), lane
        while thread < cuda.blockDim.x:
            found += sums[k * cuda.blockDim.x + thread]
            thread += 32
        found = sum_of_warp(found)
        if lane == 0:
            cuda.atomic.add(total, k, found)
        k += cuda.blockDim.x >> 5


@cuda.jit(device=True)
def add_to_sum(sums, k, value):
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
def add_idle(sums, k, merged):
    """Add to sum k how many rows more the lane of a warp merges that merges most."""
    add_to_sum(sums, k, max_of_warp(merged) - merged)


@cuda.jit(device=True)
def add_in_natural_order(sums, j, i, packed, long, apart, longest):
    """Add the cost of nonzero (i, j) in natural order. Returns how many rows are merged.

    apart: the difference of two vertices' numbers up to which their columns are near each other.
    """
    spans = spans_of(packed[j])
    merged, searched = rows_of_merge(length_of(packed[j]), length_of(packed[i]), long)
    add_to_sum(sums, MERGED_ROWS, merged)
    add_to_sum(sums, SEARCH_STEPS, searched)
    add_to_sum(sums, DISTANT_EDGES, i - j > apart)
    width = min(spans, WIDTHS)
    if width > 0:
        k = LOCAL_SUMS + 3 * (width - 1)
        add_to_sum(sums, k, merged)
        add_to_sum(sums, k + 1, searched)
        add_to_sum(sums, k + 2, spans)
    keep_most(longest, width, int64(merged) + searched)
    return merged


@cuda.jit(device=True)
def add_in_degree_order(sums, first, last, packed, rows, most, long, longest):
    """Add the cost of an edge in degree order. rows: of each column there. Returns how many rows are merged."""
    own, other = degree_of(packed[first]), degree_of(packed[last])
    if is_last(own, first, other, last):
        first, last, own, other = last, first, other, own
    column, row = rows[first], rows[last]
    if column < HEAVY:
        add_to_sum(sums, PAIRS, max(column - 1, 0))
    elif bin_of(other) >= most[HUB_BIN]:
        add_to_sum(sums, HUB_ROWS, 1)
    else:
        add_to_sum(sums, HEAVY_PAIRS, column - 1)
    merged, searched = rows_of_merge(column, row, long)
    add_to_sum(sums, MERGED_BY_DEGREE, merged)
    add_to_sum(sums, STEPS_BY_DEGREE, searched)
    keep_most(longest, LONGEST_BY_DEGREE, int64(merged) + searched)
    few, many = min(column >> 1, row), max(column >> 1, row)
    add_to_sum(sums, LOOKED_UP, few)
    if few > 0 and bin_of(own if row < column >> 1 else other) < most[LAST_BIN]:
        add_to_sum(sums, FAR_STEPS, int64(few) * (32 - cuda.clz(uint32(many))))
    return merged


COST_TYPES = "uint64[::1], int32[::1], int64[::1], int64, int64, int64, int64[::1], int64[::1]"


@kernel(*(f"void({ends}, {COST_TYPES})" for ends in ENDS))
def add_up_costs(u, v, packed, rows, most, long, apart, stride, longest, total):
    """A warp per 32 edges, of which it takes one in `stride`: add what an edge costs in natural order, and in degree
    order. rows: of each column there."""
    sums = cuda.shared.array(0, int64)
    for k in range(total.size):
        sums[k * cuda.blockDim.x + cuda.threadIdx.x] = 0
    lane = cuda.threadIdx.x & 31
    e = (cuda.grid(1) - lane) * stride + lane
    while e - lane < u.size:
        merged = by_degree = uint32(0)
        if e < u.size and u[e] != v[e]:
            j, i = min(int32(u[e]), int32(v[e])), max(int32(u[e]), int32(v[e]))
            merged = add_in_natural_order(sums, j, i, packed, long, apart, longest)
            by_degree = add_in_degree_order(sums, j, i, packed, rows, most, long, longest)
        add_idle(sums, IDLE_ROWS, merged)
        add_idle(sums, IDLE_BY_DEGREE, by_degree)
        e += cuda.gridsize(1) * stride
    add_block_sums(total, sums)


# --------------------------------------------------------------------------------------------------------- the launches


_run = partial(run, blocks=1056)  # of more, each of which adds its own sums, the kernels take longer


class Sums:
    """The sums of edges u and v, on the device. packed: of each vertex, as `describe_vertices` makes it. stride: of
    that many groups of 32 edges one is added up."""

    def __init__(self, u, v, n, packed, stride):
        self.u, self.v, self.n, self.packed, self.stride = u, v, n, packed, stride
        cuts = list(accumulate([0, len(SUMS), len(LONGEST), MOST_SIZE, BINS, 2 * BINS]))
        arrays = runtime.arrays_of(u).zeros(cuts[-1], np.int64)
        self.sums, self.longest, self.most, self.histogram, self.ends = (arrays[slice(*cut)] for cut in pairwise(cuts))
        self.all = arrays[: cuts[3]]

    def costs(self, rows, sampled):
        """The OrderCosts; waits for the device. rows: of each column in degree order."""
        apart = DISTANT * self.n // max(1, self.u.size)
        args = self.u, self.v, self.packed, rows, self.most, LONG, apart, self.stride, self.longest, self.sums
        _run(add_up_costs, self.u.size // self.stride, *args, shared=8 * THREADS * len(SUMS))
        *found, max_column, max_degree, _, _ = runtime.reading(self.all)().tolist()
        sums = dict(zip((*SUMS, *LONGEST), found, strict=True))
        sums |= {name: self.stride * sums[name] for name in SUMS}
        none = self.stride == 1 and not sampled and not sums["looked up"]
        return OrderCosts(self.n, self.u.size, max_column, sums, max_degree, sampled, none)


def estimate_edges(u, v, n, check=None):
    """What describe_edges returns, estimated from few of very many edges; None if these are not, or if the exact
    degrees might lead to another order than that of degrees."""
    every = min(MOST_STRIDE, AN_EDGE * u.size // max(1, n))
    if u.size < VERY_MANY or every < 2:
        return None
    found = describe_edges(u, v, n, True, check, 1 << every.bit_length() - 1)
    return found if found[0].best(SURE) == "degree" else None


def describe_edges(u, v, n, may_sample=False, check=None, every=1):
    """The OrderCosts of edges, the degree of each vertex, and how many rows its column has; repeats count.

    may_sample: whether the costs of many edges may be `sampled`. check: see `device_graph._chosen`. every: a power of
    two; one in `every` edges measures the vertices.
    """
    xp = runtime.arrays_of(u)
    lengths, degree = measured = xp.zeros((2, n), np.int32)
    reach, packed = xp.zeros(n, np.int32), xp.empty(n, np.uint64)
    sums = Sums(u, v, n, packed, min(MOST_STRIDE, max(1, u.size // SAMPLED)))
    _by_ranges(measure_vertices, u.size // every, n, (u, v, lengths, degree, reach, every), PLACE_BYTES)
    if check:
        check()
    if every > 1:
        measured *= every  # estimates
    _run(describe_vertices, n, lengths, degree, reach, SHORT, packed, sums.histogram, sums.most)
    _run(find_hubs, 2 * WARP, sums.histogram, HUBS, LAST, sums.most)
    rows, sampled = reach, may_sample and sums.stride > 1  # of each column in degree order, in the memory of `reach`
    if sampled:
        _run(count_ends, u.size // sums.stride, u, v, packed, sums.stride, sums.ends)
        _run(estimate_rows, n, packed, sums.ends, rows)
    else:
        rows[:] = 0
        _run(count_rows_by_degree, u.size, u, v, packed, rows)
    costs = sums.costs(rows, sampled)
    if sums.stride > 1 and every == 1 and costs.best() == "natural" and costs.may_miss():
        sums.stride, sums.sums[:], sums.longest[:] = 1, 0, 0
        costs = sums.costs(rows, sampled)
    return costs, degree, lengths


def _table_bits(place_bytes):
    """A block's table has as many places as 64 KB have, or its shared memory."""
    return (min(TABLE_BYTES, runtime.facts().shared_per_block) // place_bytes).bit_length() - 1


def _by_ranges(kernel, edges, n, args, place_bytes):
    """Launch a kernel that counts `edges` at the vertices of a range, for each of equal ranges of all n vertices."""
    blocks, bits = enough_blocks(TABLE_BLOCKS, edges, TABLE_THREADS), _table_bits(place_bytes)
    ranges = min(MOST_RANGES, max(1, n // RANGE)) if edges >= MANY_A_VERTEX * n else 1
    for low, high in pairwise(n * bound // ranges for bound in range(ranges + 1)):
        kernel.launch(blocks, TABLE_THREADS, *args, low, high, bits, shared=place_bytes << bits)


def degrees_of_edges(pieces, n):
    """The degree of each vertex, an int32 array, by edges in pieces (u, v); repeats count, and loops twice."""
    degrees = runtime.device_array(n, np.int32, 0)
    for u, v in pieces:
        _by_ranges(count_degrees, u.size, n, (u, v, degrees), DEGREE_BYTES)
    return degrees


def degrees_step(edges, n, degrees):
    """The launch that adds the degrees of that many edges, u and v of a plan, to its array of the name `degrees`."""
    bits = _table_bits(DEGREE_BYTES)
    given = {"degrees": degrees, "low": 0, "high": n, "table_bits": bits}
    return launch(count_degrees, edges, TABLE_THREADS, TABLE_BLOCKS, DEGREE_BYTES << bits, **given)
