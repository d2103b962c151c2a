"""Counts by merging columns: in natural order those that are not local, in degree order all, if that costs less than
classes of columns.

Where one of two columns is much longer, or both are long, the rows of the shorter one are looked up in the other. A
warp lasts as long as its slowest lane: so its lanes take these searches in turn.
"""

from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.merge import common_values, common_values_apart, rows_to_search
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device.warp import ALL_LANES, add_warps_to, sum_of_warp, sum_up_to
from tcgpu.kernels.device_graph import SMALL, DeviceGraph
from tcgpu.kernels.order_costs import MANY_EDGES, SHORT_ROWS

TRIALS, MOST_FOUND = 1 << 16, 66  # nonzeros for which they are tried, at least; of a hundred, that find a row at most
SOME, FOUND = range(2)  # positions in `tried`


@cuda.jit(device=True)
def ranges_of(e, col_ptr, row_idx, col_of, short, words):
    """Begin and end of the two ranges of rows that are intersected for nonzero e = (i, j): those of column j after row
    i, and column i. The first range ends at 0, so it is empty, if column j is local.

    It reads all pointers before it compares any, because on a mesh most of the time is spent waiting for memory.
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
    add_warps_to(total, count)


@kernel("void(int64[::1], int32[::1], uint64[::1])")
def fill_filters(col_ptr, row_idx, filters):
    """A thread per column: write its filter, in which bit `row % 64` is set for each of its rows."""
    for j in range(cuda.grid(1), filters.size, cuda.gridsize(1)):
        bits = uint64(0)
        for p in range(col_ptr[j], col_ptr[j + 1]):
            bits |= uint64(1) << uint64(row_idx[p] & 63)
        filters[j] = bits


@cuda.jit(device=True)
def first_in_filter(row_idx, p, p_end, step, bits):
    """The first of every `step`-th position from p on whose row is in a filter; p_end or more if there is none."""
    while p < p_end and bits >> uint64(row_idx[p] & 63) & uint64(1) == uint64(0):
        p += step
    return p


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64, int64[::1])")
def try_filters(col_ptr, row_idx, col_of, filters, stride, tried):
    """A thread per nonzero (i, j), of which it takes one in `stride`: count those with rows of column j after row i,
    and those of them with a row in the filter of column i."""
    some = found = int64(0)
    for e in range(stride * cuda.grid(1), row_idx.size, stride * cuda.gridsize(1)):
        p, p_end = uint32(e + 1), uint32(col_ptr[col_of[e] + 1])
        some += p < p_end
        found += first_in_filter(row_idx, p, p_end, uint32(1), filters[row_idx[e]]) < p_end
    some, found = sum_of_warp(some), sum_of_warp(found)
    if cuda.threadIdx.x & 31 == 0:
        cuda.atomic.add(tried, SOME, some)
        cuda.atomic.add(tried, FOUND, found)


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64[::1], int64, int64, int64[::1])")
def merge_filtered_kernel(col_ptr, row_idx, col_of, filters, tried, index, of, total):
    """As merge_kernel, for a graph without local columns in which columns i and j are mostly far apart: it first looks
    which rows of column j after row i are in the filter of column i. In a graph with few triangles often none is, and
    then no row of column i is read. It only merges if `tried` says that more than MOST_FOUND percent are found."""
    count, looks = int64(0), 100 * tried[FOUND] <= MOST_FOUND * tried[SOME]
    e = shared_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p, p_end = uint32(e + 1), uint32(col_ptr[j + 1])
        if looks and p < p_end:
            p = first_in_filter(row_idx, p, p_end, uint32(1), filters[i])
        if p < p_end:
            q, q_end = column_bounds(col_ptr, i)
            if looks:  # it has read rows of column j, which are in the caches now
                count += common_values(row_idx, p, p_end, row_idx, q, q_end)
            elif q < q_end:
                count += common_values_apart(row_idx, p, p_end, row_idx, q, q_end)
        e += cuda.gridsize(1) * of
    add_warps_to(total, count)


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
    add_warps_to(total, count)


@cuda.jit(device=True)
def shorter_first(p, p_end, q, q_end):
    """The begin and the length of two ranges, the shorter one first; zeros if one is empty."""
    if p >= p_end or q >= q_end:
        return uint32(0), uint32(0), uint32(0), uint32(0)
    if p_end - p > q_end - q:
        p, p_end, q, q_end = q, q_end, p, p_end
    return uint32(p), uint32(p_end - p), uint32(q), uint32(q_end - q)


@cuda.jit(device=True)
def search_in_turn(row_idx, p, q, many, ends, all_rows):
    """The lanes of a warp look up rows for each other: all of their rows, in a sequence of `all_rows`.

    A lane's rows are the numbers before `ends`, from the previous lane's `ends` on; number t is row_idx[p + t]. They
    are looked up in the `many` rows from row_idx[q] on. Returns how many of those that this lane looks up are there.
    """
    common, lane, t = int64(0), uint32(cuda.threadIdx.x & 31), uint32(0)
    while t < all_rows:
        turn, owner = t + lane, uint32(0)
        for step in range(5):
            half = uint32(16 >> step)
            if cuda.shfl_sync(ALL_LANES, ends, owner + half - 1) <= turn:
                owner += half
        first, place, length = (
            cuda.shfl_sync(ALL_LANES, p, owner),
            cuda.shfl_sync(ALL_LANES, q, owner),
            cuda.shfl_sync(ALL_LANES, many, owner),
        )
        if turn < all_rows:
            common += contains(row_idx, place, length, row_idx[first + turn])
        t += uint32(32)
    return common


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64[::1])")
def merge_short_kernel(col_ptr, row_idx, col_of, short, words, long, index, of, total):
    """As merge_kernel, but where one range is much longer than the other, or both are long, the lanes of a warp look up
    the rows of the shorter one in turn."""
    count, lane = int64(0), cuda.threadIdx.x & 31
    e = shared_thread(index, of)
    while e - lane < row_idx.size:  # whole warps
        begin = end = other = other_end = int64(0)
        if e < row_idx.size:
            begin, end, other, other_end = ranges_of(e, col_ptr, row_idx, col_of, short, words)
        p, few, q, many = shorter_first(begin, end, other, other_end)
        rows = rows_to_search(few, many, uint32(long))
        if rows == 0:  # column j first in all lanes, most of which have the same one
            count += common_values(row_idx, begin, end, row_idx, other, other_end)
        if cuda.any_sync(ALL_LANES, rows > 0):
            ends = sum_up_to(rows)
            count += search_in_turn(row_idx, p - (ends - rows), q, many, ends, cuda.shfl_sync(ALL_LANES, ends, 31))
        e += cuda.gridsize(1) * of
    add_warps_to(total, count)


# --------------------------------------------------------------------------------------- how plans choose among these


def has_no_triangles(graph):
    """Whether it is known that there are no triangles."""
    if not isinstance(graph, DeviceGraph):
        return False
    return graph.order == "degree" and graph.max_column < 2 or graph.m > SMALL and graph.order_costs.no_triangles


def has_short_columns(graph):
    """Whether all columns are so short that `merge_columns_kernel` counts the graph fastest."""
    if isinstance(graph, DeviceGraph) and graph.m > SMALL and graph.order == "natural":
        return graph.order_costs.short_columns
    return graph.m > MANY_EDGES and graph.max_column <= SHORT_ROWS


def has_distant_columns(graph):
    """Whether most edges are between vertices whose columns are far apart in natural order.

    In degree order, too, `merge_filtered_kernel` is faster on such graphs and slower on most others.
    """
    return isinstance(graph, DeviceGraph) and graph.m > SMALL and not graph.order_costs.nearby
