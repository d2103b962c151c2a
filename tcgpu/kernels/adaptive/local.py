"""Graphs in natural order, where neighbours have close numbers: local columns as rows of bits, the others merged.

A column is local if it has at least `short` rows, and from its own vertex on they span at most `words` words of 64
vertices. Row v of `local_rows` has `words` uint64; its first bit is vertex v rounded down to a multiple of 64, so that
the words of two rows are aligned.
"""

from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import LENGTH_BITS, pack_piece, shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.device_graph import SMALL, DeviceGraph
from tcgpu.kernels.order_costs import FEW

TOGETHER = 64  # rows that the lanes of a warp look up for one of them
SEARCHED = 512  # rows that a block of search_kernel looks up at a time
NO_SEARCH = 2**64 - 1
NO_VERTEX = 0xFFFFFFFF  # past the words of any column
ROWS_OF_WARP = 128  # of a local column, about
SHORT_ROWS, SHORT_NEAR_ROWS = 6, 12  # rows up to which a thread merges a whole column; where most are of near vertices


def local_words(graph):
    """The `words` with which a count of the graph in natural order is fastest; 0 for a small graph."""
    return graph.order_costs.best_words() if isinstance(graph, DeviceGraph) and graph.m > SMALL else 0


def local_fold(graph):
    """2^fold warps share a local column: more than one if columns have hundreds of rows, and so are few."""
    rows = graph.m // max(1, graph.n)
    return min(4, max(0, (rows // ROWS_OF_WARP).bit_length() - 1))


def has_short_columns(graph):
    """Whether columns are so short that `merge_columns_kernel` counts the graph fastest; not asked of a small graph."""
    if graph.m <= SMALL or graph.max_column > SHORT_NEAR_ROWS:
        return False
    near = isinstance(graph, DeviceGraph) and 8 * graph.order_costs.sums["distant"] <= graph.m
    return near or graph.max_column <= SHORT_ROWS


@kernel("void(int32[::1], int32[::1], int64, uint32[::1])")
def fill_local_rows(row_idx, col_of, words, local_rows32):
    """A thread per nonzero (i, j): set bit i of row j."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            cuda.atomic.or_(local_rows32, 2 * (j * words + offset) + ((i >> 5) & 1), 1 << (i & 31))
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def common_local(local_rows, words, home, k, reach, own, i):
    """Bits that `own`, word k of a local column, shares with the row of vertex i; the column begins at word `home`."""
    offset = (i >> 6) - home
    other = uint64(0)
    if offset <= k and k < reach:
        other = local_rows[uint64(i) * words + (k - offset)]
    return cuda.popc(own & other)


@kernel("void(int64[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int64, int64[::1])")
def local_kernel(col_ptr, row_idx, local_rows, words, short, fold, index, of, total):
    """2^fold warps per local column j: AND the words of its row with those of the row of each vertex i in it.

    A lane holds a word of row j, and reads the words of four vertices at a time.
    """
    lane = cuda.threadIdx.x & 31
    row_words = uint64(words)
    count = uint64(0)
    warp = shared_thread(index, of) >> 5
    while warp < (col_ptr.size - 1) << fold:
        j, mine = warp >> fold, uint32(4 * (warp & ((1 << fold) - 1)))
        begin, end = column_bounds(col_ptr, j)
        home, reach = uint32(j >> 6), uint32(0)
        if end - begin >= short:
            reach = uint32(row_idx[end - 1] >> 6) - home + 1
        if reach <= words:
            k = lane
            while k - lane < reach:
                own = uint64(0)
                if k < reach:
                    own = local_rows[uint64(j) * row_words + k]
                e = begin + mine
                while e < end:
                    found = uint32(0)
                    for s in range(4):
                        i = uint32(NO_VERTEX)
                        if e + uint32(s) < end:
                            i = uint32(row_idx[e + uint32(s)])
                        found += common_local(local_rows, row_words, home, k, reach, own, i)
                    count += found
                    e += uint32(4) << uint32(fold)
                k += 32
        warp += (cuda.gridsize(1) >> 5) * of
    add_block_to(total, int64(count))


@cuda.jit(device=True)
def ranges_of(e, col_ptr, row_idx, col_of, short, words):
    """Where the two ranges of rows begin and end that nonzero e = (i, j) has to intersect: those of column j behind row
    i, and column i. The first ends at 0 if column j is local.

    It reads all four ends before it compares any, because on a mesh most of the time is spent waiting for memory.
    """
    i, j = row_idx[e], col_of[e]
    p_end = col_ptr[j + 1]
    if words > 0 and p_end - col_ptr[j] >= short and (row_idx[p_end - 1] >> 6) - (j >> 6) < words:
        p_end = int64(0)
    return e + 1, p_end, col_ptr[i], col_ptr[i + 1]


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64[::1])")
def merge_kernel(col_ptr, row_idx, col_of, short, words, index, of, total):
    """A thread per nonzero (i, j) of a column that is not local: merge columns i and j."""
    count = int64(0)
    e = shared_thread(index, of)
    while e < row_idx.size:
        p, p_end, q, q_end = ranges_of(e, col_ptr, row_idx, col_of, short, words)
        count += common_values(row_idx, p, p_end, row_idx, q, q_end)
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int64, int64, int64[::1])")
def merge_columns_kernel(col_ptr, row_idx, index, of, total):
    """A thread per column j, which is short: merge it with the columns of its rows.

    Neighbouring threads read neighbouring columns: a mesh takes half the time of merge_kernel, which reads `col_of` and
    the end of column j for each nonzero.
    """
    count = int64(0)
    j = shared_thread(index, of)
    while j < col_ptr.size - 1:
        p, p_end = column_bounds(col_ptr, j)
        while p + 1 < p_end:
            q, q_end = column_bounds(col_ptr, row_idx[p])
            p += 1
            count += common_values(row_idx, p, p_end, row_idx, q, q_end)
        j += cuda.gridsize(1) * of
    add_block_to(total, count)


@cuda.jit(device=True)
def list_searches(searches, queue, e, rows):
    """List the searches of `rows` rows for nonzero e, SEARCHED rows to a task. False if there is no room for them."""
    tasks = (rows + SEARCHED - 1) // SEARCHED
    place = cuda.atomic.add(queue, 0, tasks)
    room = place + tasks <= searches.size
    for k in range(min(tasks, searches.size - place)):
        searches[place + k] = pack_piece(e, k) if room else uint64(NO_SEARCH)
    return room


@cuda.jit(device=True)
def common_by_galloping(rows, p, p_end, q, q_end, every):
    """How many rows both ranges share; `every`-th row of the first, which is short, is looked for in the second.

    From where the last one was, it looks ahead in steps that double, then halves the last step: a row that is near, as
    in a wheel, is found at once.
    """
    common = int64(0)
    while p < p_end and q < q_end:
        row, step = rows[p], int64(1)
        while q + step < q_end and rows[q + step] <= row:
            q += step
            step <<= 1
        while step > 1:
            step >>= 1
            if q + step < q_end and rows[q + step] <= row:
                q += step
        common += rows[q] == row
        p += every
    return common


@cuda.jit(device=True)
def common_in_turn(rows, p, p_end, q, q_end, many):
    """The lanes of a warp look up the rows of each lane that has `many`; returns how many this lane finds for all."""
    common, mask = int64(0), cuda.ballot_sync(ALL_LANES, many)
    while mask != 0:
        lane = cuda.ffs(mask) - 1
        mask &= mask - 1
        first, first_end = cuda.shfl_sync(ALL_LANES, p, lane), cuda.shfl_sync(ALL_LANES, p_end, lane)
        second, second_end = cuda.shfl_sync(ALL_LANES, q, lane), cuda.shfl_sync(ALL_LANES, q_end, lane)
        common += common_by_galloping(rows, first + (cuda.threadIdx.x & 31), first_end, second, second_end, 32)
    return common


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, uint64[::1], int64[::1], int64[::1])"
)
def merge_short_kernel(col_ptr, row_idx, col_of, short, words, long, index, of, searches, queue, total):
    """As merge_kernel, but where the two ranges have more than `long` rows together, look up those of the shorter one:
    FEW by this thread, TOGETHER by its warp, more in search_kernel."""
    count, lane = int64(0), cuda.threadIdx.x & 31
    e = shared_thread(index, of)
    while e - lane < row_idx.size:  # whole warps
        p = p_end = q = q_end = int64(0)
        many = False
        if e < row_idx.size:
            p, p_end, q, q_end = ranges_of(e, col_ptr, row_idx, col_of, short, words)
            if p_end - p > q_end - q:
                p, p_end, q, q_end = q, q_end, p, p_end
            if p >= p_end or p_end - p + q_end - q <= long:
                count += common_values(row_idx, p, p_end, row_idx, q, q_end)
            elif p_end - p <= FEW:
                count += common_by_galloping(row_idx, p, p_end, q, q_end, 1)
            else:
                many = p_end - p <= TOGETHER or not list_searches(searches, queue, e, p_end - p)
        if cuda.any_sync(ALL_LANES, many):
            count += common_in_turn(row_idx, p, p_end, q, q_end, many)
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64[::1], int64[::1])")
def search_kernel(col_ptr, row_idx, col_of, searches, queue, total):
    """A block per task: look up SEARCHED rows of the shorter range of a nonzero in the longer one, by binary search."""
    count = int64(0)
    task = int64(cuda.blockIdx.x)
    while task < min(queue[0], searches.size):
        search = searches[task]
        if search != NO_SEARCH:
            e, k = int64(search >> LENGTH_BITS), int64(search & ((1 << LENGTH_BITS) - 1))
            p, p_end, q, q_end = ranges_of(e, col_ptr, row_idx, col_of, 0, 0)
            if p_end - p > q_end - q:
                p, p_end, q, q_end = q, q_end, p, p_end
            place, length = uint32(q), uint32(q_end - q)
            p += k * SEARCHED
            p_end = min(p_end, p + SEARCHED)
            p += cuda.threadIdx.x
            while p < p_end:
                count += contains(row_idx, place, length, row_idx[p])
                p += cuda.blockDim.x
        task += cuda.gridDim.x
    add_block_to(total, count)
