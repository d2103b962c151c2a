"""Counts without classes of columns. In natural order, local columns become rows of bits, and the others are merged. In
degree order, if that costs less than the classes, all columns are merged.

A column is local if it has at least `short` rows, and from its own vertex on they span at most `words` words of 64
vertices. Row v of `local_rows` has `words` uint64; its first bit is vertex v rounded down to a multiple of 64, so that
the words of two rows are aligned.
"""

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.merge import common_values, common_values_apart, rows_to_search
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device.warp import ALL_LANES, sum_up_to
from tcgpu.kernels.device_graph import SMALL, DeviceGraph
from tcgpu.kernels.order_costs import MANY_EDGES, SHORT_ROWS

SEARCHED = 256  # rows that a warp looks up at a time
PART_BITS = 24  # of a search; the higher bits are its nonzero
NO_SEARCH = 2**64 - 1
NO_VERTEX = 0xFFFFFFFF  # past the words of any column


def local_words(graph, share=(0, 1)):
    """The `words` with which a count of the graph in natural order is fastest; 0 for a small graph.

    If there is no memory for that many, it is fewer; but not for one share of several: all workers have to divide the
    work alike, whatever memory they have.
    """
    if not isinstance(graph, DeviceGraph) or graph.m <= SMALL:
        return 0
    words = graph.order_costs.best_words()
    if words == 0 or share[1] > 1:
        return words
    return graph.order_costs.best_words(runtime.memory_free() // 4)


def merges_all(graph):
    """Whether a count in degree order is fastest if it merges all columns."""
    return isinstance(graph, DeviceGraph) and graph.order_costs.merges()


def merges_all_for_tallies(graph):
    """The same for a count of each edge's or vertex's triangles."""
    return isinstance(graph, DeviceGraph) and graph.order_costs.merges_for_tallies()


def has_short_columns(graph):
    """Whether all columns are so short that `merge_columns_kernel` counts the graph fastest."""
    if isinstance(graph, DeviceGraph) and graph.m > SMALL and graph.order == "natural":
        return graph.order_costs.short_columns
    return graph.m > MANY_EDGES and graph.max_column <= SHORT_ROWS


def has_no_triangles(graph):
    """Whether no column has two rows; in natural order, finding out would take as long as a count."""
    return isinstance(graph, DeviceGraph) and graph.order == "degree" and graph.max_column < 2


def has_distant_columns(graph):
    """Whether most edges are between vertices whose columns are far apart in natural order.

    In degree order, too, `merge_distant_kernel` is faster on such graphs and slower on most others.
    """
    return isinstance(graph, DeviceGraph) and graph.m > SMALL and not graph.order_costs.nearby


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


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int64[::1])")
def local_kernel(col_ptr, row_idx, col_of, local_rows, words, short, index, of, total):
    """A warp takes 32 neighbouring nonzeros (i, j), one local column j of them after the other: it ANDs the words of
    row j with those of the rows of the vertices i.

    A lane reads the nonzero of its own, then holds a word of row j, and reads the words of four vertices at a time.
    """
    lane = uint32(cuda.threadIdx.x & 31)
    row_words = uint64(words)
    count = uint64(0)
    e = shared_thread(index, of)
    while e - lane < row_idx.size:  # whole warps
        i, j, reach = uint32(0), uint32(0), uint32(NO_VERTEX)
        if e < row_idx.size:
            i, j = uint32(row_idx[e]), uint32(col_of[e])
            begin, end = column_bounds(col_ptr, j)
            if end - begin >= short:
                reach = uint32(row_idx[end - 1] >> 6) - (j >> 6) + 1
        left = cuda.ballot_sync(ALL_LANES, reach <= words)
        while left != 0:
            first = uint32(cuda.ffs(left) - 1)
            column, last_word = cuda.shfl_sync(ALL_LANES, j, first), cuda.shfl_sync(ALL_LANES, reach, first)
            of_column = cuda.ballot_sync(ALL_LANES, j == column and reach <= words)
            left &= ~of_column
            stop = first + uint32(cuda.popc(of_column))
            home, k = column >> 6, lane
            while k - lane < last_word:
                own = uint64(0)
                if k < last_word:
                    own = local_rows[uint64(column) * row_words + k]
                r = first
                while r < stop:
                    found = uint32(0)
                    for s in range(4):
                        row = cuda.shfl_sync(ALL_LANES, i, (r + uint32(s)) & 31)
                        if r + uint32(s) >= stop:
                            row = uint32(NO_VERTEX)
                        found += common_local(local_rows, row_words, home, k, last_word, own, row)
                    count += found
                    r += uint32(4)
                k += uint32(32)
        e += cuda.gridsize(1) * of
    add_block_to(total, int64(count))


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
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64[::1])")
def merge_distant_kernel(col_ptr, row_idx, col_of, index, of, total):
    """As merge_kernel, for a graph without local columns in which columns i and j are mostly far apart."""
    count = int64(0)
    e = shared_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end, q, q_end = col_ptr[j + 1], col_ptr[i], col_ptr[i + 1]
        if e + 1 < p_end and q < q_end:
            count += common_values_apart(row_idx, e + 1, p_end, row_idx, q, q_end)
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
def pack_search(e, part):
    """Part number `part` of the searches of the nonzeros from e on."""
    return uint64((int64(e) << PART_BITS) | int64(part))


@cuda.jit(device=True)
def unpack_search(search):
    """The nonzero and the number of the part."""
    return int64(search >> PART_BITS), uint32(search & ((1 << PART_BITS) - 1))


@cuda.jit(device=True)
def shorter_first(p, p_end, q, q_end):
    """The begin and the length of two ranges, the shorter one first; zeros if one is empty."""
    if p >= p_end or q >= q_end:
        return uint32(0), uint32(0), uint32(0), uint32(0)
    if p_end - p > q_end - q:
        p, p_end, q, q_end = q, q_end, p, p_end
    return uint32(p), uint32(p_end - p), uint32(q), uint32(q_end - q)


@cuda.jit(device=True)
def search_in_turn(row_idx, p, q, many, ends, begin, end):
    """The lanes of a warp look up rows for each other, numbers begin..end - 1 of the rows of all lanes in a sequence.

    A lane's rows are the numbers before `ends`, from the previous lane's `ends` on; number t is row_idx[p + t]. They
    are looked up in the `many` rows from row_idx[q] on. Returns how many of those that this lane looks up are there.
    """
    common, lane, t = int64(0), uint32(cuda.threadIdx.x & 31), begin
    while t < end:
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
        if turn < end:
            common += contains(row_idx, place, length, row_idx[first + turn])
        t += uint32(32)
    return common


@cuda.jit(device=True)
def list_searches_of_warp(searches, queue, e, rows):
    """A warp lists tasks that look up the `rows` rows of its nonzeros, from e on; False if there is no room."""
    lane, tasks = cuda.threadIdx.x & 31, (int64(rows) + SEARCHED - 1) // SEARCHED
    place = int64(0)
    if lane == 0:
        place = cuda.atomic.add(queue, 0, tasks)
    place = cuda.shfl_sync(ALL_LANES, place, 0)
    room, k = place + tasks <= searches.size, int64(lane)
    while k < min(tasks, searches.size - place):
        searches[place + k] = pack_search(e, k) if room else uint64(NO_SEARCH)
        k += 32
    return room


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, uint64[::1], int64[::1], int64[::1])"
)
def merge_short_kernel(col_ptr, row_idx, col_of, short, words, long, index, of, searches, queue, total):
    """As merge_kernel, but where one range is much longer than the other, or both are long, look up the rows of the
    shorter one: the lanes of a warp in turn, or, if its nonzeros have more than SEARCHED of them, search_kernel."""
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
            all_rows = cuda.shfl_sync(ALL_LANES, ends, 31)
            if all_rows <= SEARCHED or not list_searches_of_warp(searches, queue, e - lane, all_rows):
                count += search_in_turn(row_idx, p - (ends - rows), q, many, ends, uint32(0), all_rows)
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, uint64[::1], int64[::1], int64[::1])")
def search_kernel(col_ptr, row_idx, col_of, short, words, long, searches, queue, total):
    """A warp per task: look up SEARCHED of the rows that 32 neighbouring nonzeros have to look up."""
    count, lane = int64(0), cuda.threadIdx.x & 31
    task = cuda.grid(1) >> 5
    while task < min(queue[0], searches.size):
        search = searches[task]
        if search != NO_SEARCH:
            e, part = unpack_search(search)
            e += lane
            p = few = q = many = uint32(0)
            if e < row_idx.size:
                begin, end, other, other_end = ranges_of(e, col_ptr, row_idx, col_of, short, words)
                p, few, q, many = shorter_first(begin, end, other, other_end)
            rows = rows_to_search(few, many, uint32(long))
            ends = sum_up_to(rows)
            first = part * uint32(SEARCHED)
            last = min(first + uint32(SEARCHED), cuda.shfl_sync(ALL_LANES, ends, 31))
            count += search_in_turn(row_idx, p - (ends - rows), q, many, ends, first, last)
        task += cuda.gridsize(1) >> 5
    add_block_to(total, count)
