"""Counts in degree order that look up rows: of the two columns of a nonzero, those of the shorter one in the longer.

A first launch lists the nonzeros with rows to look up: in front those with few, one for a thread; from the end on those
with many, one for LANES threads. So all threads have work and none has much, which decides how long small graphs take.
The columns of the last LAST vertices, in which most rows are looked up, are rows of bits; others have filters.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.adaptive.merging import fill_filters, first_in_filter
from tcgpu.kernels.device.columns import column_bounds, columns_of_edge
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device.warp import WARP, add_warps_to
from tcgpu.kernels.edge_sums import LAST
from tcgpu.kernels.orientation import lower, next_place, pack, upper

WORDS = LAST // 32  # of a row
FEW = 16  # rows that a thread looks up, at most
LANES = 8  # threads that share more of them
THREADS = 256  # of a block that lists
PIECE_BYTES = 12  # of memory for each nonzero


@cuda.jit(device=True)
def list_piece(begin, length, column, pieces, columns, counts, starts, sizes):
    """List this thread's piece, if it has rows, and the column to look in. The last arguments: of `next_place`."""
    kind = int32(length > FEW) if length > 0 else int32(-1)
    place = next_place(kind, counts, starts, sizes)
    if kind == 1:
        place = pieces.size - 1 - place
    if kind >= 0:
        pieces[place], columns[place] = pack(begin, length), column


@kernel("void(int64[::1], int32[::1], int32[::1], int64, uint32[::1], uint64[::1], int32[::1], int64[::1])")
def list_look_ups(col_ptr, row_idx, col_of, first, last_rows, pieces, columns, sizes):
    """A thread per nonzero (i, j): list the piece of `row_idx` to look up, if there is one, and the column to look in;
    set bit i of row j, both counted from vertex `first` on. sizes: of the two lists, 0 before."""
    counts, starts = cuda.shared.array((2, THREADS // WARP), int32), cuda.shared.array(2, int64)
    for e in range(cuda.grid(1), row_idx.size + cuda.threadIdx.x, cuda.gridsize(1)):  # whole blocks
        begin, end, column = int64(0), int64(0), int32(0)
        if e < row_idx.size:
            begin, end, _, _, of_row = columns_of_edge(col_ptr, col_of, row_idx, e)
            column = col_of[e] if of_row else row_idx[e]
            i, j = row_idx[e] - first, col_of[e] - first
            if j >= 0:
                cuda.atomic.or_(last_rows, WORDS * j + (i >> 5), uint32(1) << uint32(i & 31))
        list_piece(begin, end - begin, column, pieces, columns, counts, starts, sizes)


@cuda.jit(device=True)
def look_up(col_ptr, row_idx, last_rows, filters, first, piece, column, turn, lanes):
    """How many rows of a piece are in a column; this thread takes number `turn` and every `lanes`-th one after it."""
    found, begin, length = int64(0), upper(piece, 32), lower(piece, 32)
    if column >= first:
        at = uint32(WORDS * (column - first))
        while turn < length:
            k = uint32(row_idx[begin + turn] - first)
            found += (last_rows[at + (k >> uint32(5))] >> (k & uint32(31))) & uint32(1)
            turn += lanes
    else:
        q, q_end = column_bounds(col_ptr, column)
        end, bits = begin + length, filters[column]
        p = first_in_filter(row_idx, begin + turn, end, lanes, bits)
        while p < end:
            found += contains(row_idx, q, q_end - q, row_idx[p])
            p = first_in_filter(row_idx, p + lanes, end, lanes, bits)
    return found


@kernel(
    "void(int64[::1], int32[::1], int64, uint32[::1], uint64[::1], uint64[::1], int32[::1], int64[::1], int64[::1])"
)
def look_up_kernel(col_ptr, row_idx, first, last_rows, filters, pieces, columns, sizes, total):
    """A thread per piece with few rows, then LANES threads per piece with many."""
    few, many, thread, found = sizes[0], sizes[1], cuda.grid(1), int64(0)
    turn = uint32(thread % LANES)
    for at in range(thread, few, cuda.gridsize(1)):
        found += look_up(col_ptr, row_idx, last_rows, filters, first, pieces[at], columns[at], uint32(0), uint32(1))
    at = row_idx.size - 1 - thread // LANES
    while at >= row_idx.size - many:
        found += look_up(col_ptr, row_idx, last_rows, filters, first, pieces[at], columns[at], turn, uint32(LANES))
        at -= cuda.gridsize(1) // LANES
    add_warps_to(total, found)


def plan(graph):
    """The count of a graph in degree order."""
    first = max(0, graph.n - LAST)
    return Plan(
        method="adaptive",
        copied=layout.columns_of(graph),
        created={
            "last_rows": (WORDS * min(graph.n, LAST), np.uint32, 0),
            "pieces": (graph.m, np.uint64, None),
            "columns": (graph.m, np.int32, None),
            "sizes": (2, np.int64, 0),
            "filters": (first, np.uint64, None),
        },
        setup=[launch(list_look_ups, graph.m, THREADS, first=first), launch(fill_filters, first, 256)],
        steps=[launch(look_up_kernel, LANES * graph.m, 128, 3168, first=first)],  # two waves on an H200
        work=simulated.work(graph, 3.8 * graph.m, row_us=1.0),
    )
