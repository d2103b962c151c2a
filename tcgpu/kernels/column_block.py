"""`column_block`: a block owns k consecutive columns and keeps them in shared memory (the report, section 7).

Contract: the same sum as `naive`. The rows of k columns lie side by side in `row_idx`; a block copies them into a tile
of shared memory, so each is read from global memory once however many nonzeros meet it. Then a thread takes one of the
columns' nonzeros (i, j), finds which of the k columns j is by binary search, and merges column j, in the tile, with
column i, in global memory. With k = 1 a short column leaves most threads idle; a larger k keeps them busy, at the price
of the search.

Columns that do not fit the tile are streamed through it: each tile holds some part of them, and the nonzeros of every
column that reaches into the tile are merged with that part.
"""

import numpy as np

from tcgpu._cuda import cuda, int32, int64, kernel
from tcgpu.kernels import Plan, Step, check_knob, enough_blocks
from tcgpu.kernels.reduction import BYTES_PER_THREAD, add_block_to

BYTES_PER_ROW = 4
MAX_TILE = (48 << 10) // BYTES_PER_ROW  # what every GPU gives a block


@cuda.jit(device=True)
def column_holding(col_ptr, first, last, e):
    """Which of the columns first..last-1 nonzero e lies in."""
    while last - first > 1:
        middle = (first + last) >> 1
        if col_ptr[middle] <= e:
            first = middle
        else:
            last = middle
    return first


@cuda.jit(device=True)
def first_at_least(row_idx, q, q_end, row):
    """The position in row_idx[q:q_end], which ascends, of the first element that is `row` or more."""
    while q < q_end:
        middle = (q + q_end) >> 1
        if row_idx[middle] < row:
            q = middle + 1
        else:
            q_end = middle
    return q


@kernel("void(int64[::1], int32[::1], int64, int64, int64[::1])")
def column_block_kernel(col_ptr, row_idx, columns, tile_size, total):
    tile = cuda.shared.array(0, int32)
    n = col_ptr.size - 1
    count = int64(0)
    for first in range(cuda.blockIdx.x * columns, n, cuda.gridDim.x * columns):
        last = min(first + columns, n)
        end = col_ptr[last]
        for tile_begin in range(col_ptr[first], end, tile_size):
            tile_end = min(tile_begin + tile_size, end)
            cuda.syncthreads()  # nobody reads the tile before this one any more
            for p in range(tile_begin + cuda.threadIdx.x, tile_end, cuda.blockDim.x):
                tile[p - tile_begin] = row_idx[p]
            cuda.syncthreads()
            earliest = col_ptr[column_holding(col_ptr, first, last, tile_begin)]
            for e in range(earliest + cuda.threadIdx.x, tile_end, cuda.blockDim.x):
                j = column_holding(col_ptr, first, last, e)
                p = max(e + 1, tile_begin) - tile_begin
                p_end = min(col_ptr[j + 1], tile_end) - tile_begin
                i = row_idx[e]
                q, q_end = col_ptr[i], col_ptr[i + 1]
                if e < tile_begin and p < p_end:  # what comes before in column i met the tiles before
                    q = first_at_least(row_idx, q, q_end, tile[p])
                while p < p_end and q < q_end:
                    row_j, row_i = tile[p], row_idx[q]
                    count += row_j == row_i
                    p += row_j <= row_i
                    q += row_i <= row_j
    add_block_to(total, count)


def plan(graph, *, threads=128, blocks=1024, columns=27, tile=2048):
    """`tile`: how many rows fit the block's shared memory; less is taken where no block needs as much."""
    threads = check_knob("threads", threads, 1, 1024)
    columns = check_knob("columns", columns, 1, 2**31 - 1)
    tile = min(check_knob("tile", tile, 1, MAX_TILE), max(1, longest_group(graph.col_ptr, columns)))
    blocks = enough_blocks(check_knob("blocks", blocks, 1, 2**31 - 1), graph.n, columns)
    shared = max(tile * BYTES_PER_ROW, threads * BYTES_PER_THREAD)
    args = ("col_ptr", "row_idx", columns, tile, "total")
    return Plan(
        method="column_block",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={},
        steps=[Step(column_block_kernel, blocks, threads, args, shared)],
        work=int(graph.column_lengths[graph.row_idx].sum()) + 2 * graph.m,
    )


def longest_group(col_ptr, columns):
    """How many nonzeros the fullest `columns` consecutive columns hold that one block takes."""
    starts = col_ptr[np.minimum(np.arange(0, col_ptr.size - 1 + columns, columns), col_ptr.size - 1)]
    return int(np.diff(starts).max(initial=0))


def count(graph, *, threads=128, blocks=1024, columns=27, tile=2048):
    return plan(graph, threads=threads, blocks=blocks, columns=columns, tile=tile).count()
