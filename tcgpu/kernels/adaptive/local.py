"""Graphs in natural order, where neighbours have close numbers: local columns as rows of bits, the others merged.

A column is local if it has at least `short` rows, and from its own vertex on they span at most `words` words of 64
vertices. Row v of `local_rows` has `words` uint64; its first bit is vertex v rounded down to a multiple of 64, so that
the words of two rows are aligned.
"""

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import shared_thread
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device_graph import SMALL

WORDS = (32, 64, 128)
NO_VERTEX = 0xFFFFFFFF  # past the words of any column


def local_words(graph, short):
    """The least number of WORDS with which most nonzeros are in local columns; 0 if there is none, or no memory."""
    if graph.m <= SMALL or graph.nonzeros_per_column < short // 4:
        return 0
    xp = runtime.arrays_of(graph.col_ptr)
    lengths = xp.diff(graph.col_ptr)
    columns = xp.flatnonzero(lengths >= short)
    reach = (graph.row_idx[graph.col_ptr[columns + 1] - 1] >> 6) - (columns >> 6) + 1
    for words in WORDS:
        fits = 8 * words * graph.n <= runtime.memory_free() // 4
        if fits and 2 * int(lengths[columns][reach <= words].sum()) > graph.m:
            return words
    return 0


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


@kernel("void(int64[::1], int32[::1], uint64[::1], int64, int64, int64, int64, int64[::1])")
def local_kernel(col_ptr, row_idx, local_rows, words, short, index, of, total):
    """A warp per local column j: AND the words of its row with those of the row of each vertex i in it.

    A lane holds a word of row j, and reads the words of four vertices at a time.
    """
    lane = cuda.threadIdx.x & 31
    row_words = uint64(words)
    count = uint64(0)
    j = shared_thread(index, of) >> 5
    while j < col_ptr.size - 1:
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
                e = begin
                while e < end:
                    found = uint32(0)
                    for s in range(4):
                        i = uint32(NO_VERTEX)
                        if e + uint32(s) < end:
                            i = uint32(row_idx[e + uint32(s)])
                        found += common_local(local_rows, row_words, home, k, reach, own, i)
                    count += found
                    e += 4
                k += 32
        j += (cuda.gridsize(1) >> 5) * of
    add_block_to(total, int64(count))


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64[::1])")
def merge_kernel(col_ptr, row_idx, col_of, short, words, index, of, total):
    """A thread per nonzero (i, j) of a column that is not local: merge columns i and j.

    It reads all four ends before it compares any, because on a mesh most of the time is spent waiting for memory.
    """
    count = int64(0)
    e = shared_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j + 1]
        if words > 0 and p_end - col_ptr[j] >= short and (row_idx[p_end - 1] >> 6) - (j >> 6) < words:
            p_end = int64(0)
        count += common_values(row_idx, e + 1, p_end, row_idx, col_ptr[i], col_ptr[i + 1])
        e += cuda.gridsize(1) * of
    add_block_to(total, count)
