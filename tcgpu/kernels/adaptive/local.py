"""Local columns, in natural order: they become rows of bits, and a word of them tests 64 vertices at a time.

A column is local if it has at least `short` rows, and from its own vertex on they span at most `words` words of 64
vertices. Row v of `local_rows` has `words` uint64; its first bit is vertex v rounded down to a multiple of 64, so that
the words of two rows are aligned.
"""

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.warp import ALL_LANES
from tcgpu.kernels.device_graph import SMALL, DeviceGraph

NO_VERTEX = 0xFFFFFFFF  # past the words of any column


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


# --------------------------------------------------------------------------------------- how plans choose among these


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
