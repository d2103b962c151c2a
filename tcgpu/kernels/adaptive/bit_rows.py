"""Rows of bits, a bit for each neighbour: a word AND a word finds 64 of an edge's triangles at a time.

For a count in natural order, row v of `local_rows` has the `words` uint64 from the word of v on, and bits for column v.
A column is local if it has at least `short` rows and all of them are there.

For the triangles of each edge (see `support_plan`), rows have bits on either side. In natural order, row v has the
2 * `words` uint64 around v, which is in word `words`. A vertex is banded if all of its neighbours are there; the others
are wide. In degree order the last vertices are the core, and row v has a bit for each vertex of the core, whose
triangles are found.
"""

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import launch
from tcgpu.kernels.adaptive.layout import shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.warp import ALL_LANES, WARP, add_warps_to
from tcgpu.kernels.device_graph import SMALL, DeviceGraph

EDGES, FEW_EDGES = 64, 16  # neighbouring nonzeros that a warp takes at a time, and in a graph
MANY = 1 << 19  # of fewer edges than this
MOST_FOLD = 3  # 2^3 lanes at most share an edge
LISTED_BYTES = 12  # of shared memory, for a word of a row and its number


@kernel("void(int32[::1], int32[::1], int64, uint32[::1])")
def fill_local_rows(row_idx, col_of, words, local_rows32):
    """A thread per nonzero (i, j): set bit i of row j."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            cuda.atomic.or_(local_rows32, 2 * (j * words + offset) + ((i >> 5) & 1), 1 << (i & 31))


@kernel("void(int32[::1], int32[::1], int64, uint32[::1], int32[::1])")
def fill_band_rows(row_idx, col_of, words, rows32, wide):
    """A thread per nonzero (i, j): set bit i of row j and bit j of row i, or mark both vertices as wide."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = int64(row_idx[e]), int64(col_of[e])
        offset = (i >> 6) - (j >> 6)
        if offset < words:
            at = 2 * (2 * words * j + words + offset) + ((i >> 5) & 1)
            cuda.atomic.or_(rows32, at, 1 << (i & 31))
            at = 2 * (2 * words * i + words - offset) + ((j >> 5) & 1)
            cuda.atomic.or_(rows32, at, 1 << (j & 31))
        else:
            wide[i] = 1
            wide[j] = 1


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1])")
def mark_open(row_idx, col_of, wide, open):
    """A thread per nonzero (i, j): mark column j as open if j or one of its rows is wide."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        if wide[row_idx[e]] or wide[col_of[e]]:
            open[col_of[e]] = 1


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, uint32[::1])")
def fill_core_rows(col_ptr, row_idx, col_of, first, stride, rows32):
    """A thread per nonzero (i, j) of the core, whose first vertex is `first`: set bit i of row j and bit j of row i."""
    for e in range(col_ptr[first] + cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e] - first, col_of[e] - first
        cuda.atomic.or_(rows32, 2 * stride * j + (i >> 5), 1 << (i & 31))
        cuda.atomic.or_(rows32, 2 * stride * i + (j >> 5), 1 << (j & 31))


@cuda.jit(device=True)
def list_words(rows, begin, stride, listed, numbers, at):
    """A warp lists those of rows[begin : begin + stride] that are not 0, and their numbers, from place `at` on; returns
    how many there are."""
    lane, count = uint32(cuda.threadIdx.x & 31), uint32(0)
    cuda.syncwarp()
    k = lane
    while k - lane < stride:
        word = uint64(0)
        if k < stride:
            word = rows[begin + k]
        mask = cuda.ballot_sync(ALL_LANES, word != 0)
        if word != 0:
            place = at + count + cuda.popc(mask & ((uint32(1) << lane) - 1))
            listed[place], numbers[place] = word, k
        count += cuda.popc(mask)
        k += uint32(32)
    cuda.syncwarp()
    return count


@cuda.jit(device=True)
def lanes_of(count):
    """How many lanes share an edge whose column has so many words, as a power of two: 2^fold."""
    fold = uint32(0)
    while fold < MOST_FOLD and (1 << fold) < count:
        fold += uint32(1)
    return fold


@cuda.jit(device=True)
def common_bits(listed, numbers, k, end, lanes, rows, row, ahead):
    """Bits that every `lanes`-th listed word from k on shares with rows[row:], whose word of number n is rows[row + n].
    Numbers below `ahead` are before that row."""
    found = uint32(0)
    while k < end:
        number = numbers[k]
        if number >= ahead:
            found += cuda.popc(listed[k] & rows[row + number])
        k += lanes
    return found


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int64, int64[::1])")
def local_kernel(col_ptr, row_idx, col_of, local_rows, words, short, each, index, of, total):
    """A warp per `each` neighbouring nonzeros (i, j), one local column j of them after the other: 1 to 8 lanes AND row
    j, which the warp holds in shared memory, with row i."""
    listed, numbers = cuda.shared.array(0, uint64), cuda.shared.array(0, uint32)
    lane, stride, found = uint32(cuda.threadIdx.x & 31), uint32(words), int64(0)
    at = (cuda.threadIdx.x // WARP) * stride
    numbers = numbers[2 * (cuda.blockDim.x // WARP) * stride :]  # behind the words of all warps
    begin = shared_thread(index, of) // WARP * each
    while begin < row_idx.size:
        e, end = uint32(begin), uint32(min(begin + each, row_idx.size))
        while e < end:
            j = col_of[e]
            first, last = column_bounds(col_ptr, j)
            stop = min(last, end)
            if last - first >= short and (row_idx[last - 1] >> 6) - (j >> 6) < words:
                count = list_words(local_rows, uint64(j) * stride, stride, listed, numbers, at)
                fold = lanes_of(count)
                lanes, p = uint32(1) << fold, e + (lane >> fold)
                while p < stop:
                    ahead, k = uint32((row_idx[p] >> 6) - (j >> 6)), at + (lane & (lanes - 1))
                    row = uint64(row_idx[p]) * stride - ahead
                    found += common_bits(listed, numbers, k, at + count, lanes, local_rows, row, ahead)
                    p += uint32(32) >> fold
            e = stop
        begin += int64(cuda.gridsize(1) // WARP) * each * of
    add_warps_to(total, found)


@kernel("void(int64[::1], int32[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int32[::1], int32[::1])")
def and_tally(col_ptr, row_idx, col_of, rows, first, stride, words, each, wide, support):
    """As local_kernel, for each edge (i, j), with columns j from `first` on: it writes the number of triangles.

    words: 0 in the core; else edges with a `wide` end keep what they have.
    """
    listed, numbers = cuda.shared.array(0, uint64), cuda.shared.array(0, uint32)
    lane, stride = uint32(cuda.threadIdx.x & 31), uint32(stride)
    at = (cuda.threadIdx.x // WARP) * stride
    numbers = numbers[2 * (cuda.blockDim.x // WARP) * stride :]  # behind the words of all warps
    begin = col_ptr[first] + cuda.grid(1) // WARP * each
    while begin < row_idx.size:
        e, end = uint32(begin), uint32(min(begin + each, row_idx.size))
        while e < end:
            j, count = col_of[e], uint32(0)
            _, last = column_bounds(col_ptr, j)
            stop = min(last, end)
            if words == 0 or wide[j] == 0:
                count = list_words(rows, uint64(j - first) * stride, stride, listed, numbers, at)
            fold = lanes_of(count)
            turn, lanes = lane >> fold, uint32(1) << fold
            p = e + turn
            while p - turn < stop and (words == 0 or wide[j] == 0):  # whole warps
                found = uint32(0)
                if p < stop:
                    i, ahead, k = row_idx[p], uint32(0), at + (lane & (lanes - 1))
                    if words > 0:
                        ahead = uint32((i >> 6) - (j >> 6))
                    row = uint64(i - first) * stride - ahead
                    found = common_bits(listed, numbers, k, at + count, lanes, rows, row, ahead)
                distance = uint32(1)
                while distance < lanes:
                    found += cuda.shfl_xor_sync(ALL_LANES, found, distance)
                    distance += distance
                if p < stop and lane & (lanes - 1) == 0 and (words == 0 or wide[row_idx[p]] == 0):
                    support[p] = int32(found)
                p += uint32(32) >> fold
            e = stop
        begin += int64(cuda.gridsize(1) // WARP) * each


# ------------------------------------------------------------------------------------- what plans launch, and with what


def by_rows(kernel, edges, share, stride, **given):
    """The launch of local_kernel or and_tally for `share` of so many edges, with rows of `stride` words."""
    each, threads = EDGES if edges > MANY else FEW_EDGES, 128 if stride <= 256 else WARP
    shared = LISTED_BYTES * stride * threads // WARP
    return launch(kernel, WARP * -(-share // each), threads, 16896, shared, stride=stride, each=each, **given)


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
