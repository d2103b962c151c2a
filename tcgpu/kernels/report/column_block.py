"""`column_block`: a block owns k consecutive columns and keeps them in shared memory (the report, section 7).

Contract: the same sum as `naive`. The rows of k columns are contiguous in `row_idx`; a block copies them into a tile of
shared memory, so that each is read from global memory once, however many nonzeros use it. Then each thread takes one of
the columns' nonzeros (i, j), finds j by binary search, and merges column j, in the tile, with column i, in global
memory. With k = 1 a short column leaves most threads idle; a larger k keeps them busy, at the price of the search.

Columns that do not fit the tile are streamed through it: each tile holds a part of them, and the block merges that part
for the nonzeros of every column that has rows in it.

`published`: the report's `computeCol`. It keeps k whole columns, so a graph is refused whose columns do not fit, and
merges all of column j; ours adds the tiles, and begins column j behind row i. Two flaws of the pseudocode are mended: a
block's sum begins at 0 for each group of columns, and one thread stores it. A barrier is added before the next columns
are loaded. How it finds the column of an element it does not say; here it is the same binary search.
"""

import numpy as np

from tcgpu.built_in import MAX_TILE, planner
from tcgpu.engines.runtime import cuda, int32, int64, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, check_positions, launch, simulated
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import last_up_to

THREADS = 128  # of a block, as in the report
BYTES_PER_ROW = 4


@kernel("void(int64[::1], int32[::1], int64, int64, int64[::1])")
def column_block_kernel(col_ptr, row_idx, columns, tile_size, total):
    tile = cuda.shared.array(0, int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    n = col_ptr.size - 1
    count = int64(0)
    for first in range(cuda.blockIdx.x * columns, n, cuda.gridDim.x * columns):
        last = min(first + columns, n)
        tile_begin, end = col_ptr[first], col_ptr[last]
        while tile_begin < end:
            tile_end = min(tile_begin + tile_size, end)
            cuda.syncthreads()  # all threads have finished reading the previous tile
            p = tile_begin + thread
            while p < tile_end:
                tile[p - tile_begin] = row_idx[p]
                p += threads
            cuda.syncthreads()
            e = col_ptr[last_up_to(col_ptr, first, last, tile_begin)] + thread
            while e < tile_end:
                j = last_up_to(col_ptr, first, last, e)
                p, p_end = max(e + 1, tile_begin), min(col_ptr[j + 1], tile_end)
                i = row_idx[e]
                count += common_values(tile, p - tile_begin, p_end - tile_begin, row_idx, col_ptr[i], col_ptr[i + 1])
                e += threads
            tile_begin = tile_end
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int64, int64[::1])")
def published_kernel(col_ptr, row_idx, columns, total):
    block_col = cuda.shared.array(0, int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    n = col_ptr.size - 1
    count = int64(0)
    for first in range(cuda.blockIdx.x * columns, n, cuda.gridDim.x * columns):
        last = min(first + columns, n)
        begin, end = col_ptr[first], col_ptr[last]
        e = begin + thread
        while e < end:
            block_col[e - begin] = row_idx[e]
            e += threads
        cuda.syncthreads()
        e = begin + thread
        while e < end:
            i, j = row_idx[e], last_up_to(col_ptr, first, last, e)
            p, p_end = col_ptr[j] - begin, col_ptr[j + 1] - begin
            count += common_values(block_col, p, p_end, row_idx, col_ptr[i], col_ptr[i + 1])
            e += threads
        cuda.syncthreads()
    add_block_to(total, count)


@planner("column_block")
def plan(graph, *, threads, blocks, columns, tile, published):
    check_positions(graph, "column_block")
    longest = max(1, longest_group(graph.col_ptr, columns))
    if published and longest > MAX_TILE:
        raise GraphError(
            f"column_block as published keeps {columns} whole columns in shared memory, which has room for "
            f"{MAX_TILE:,} rows, not for {longest:,}: take fewer columns or published=False"
        )
    tile = longest if published else min(tile, longest)  # no more than some block needs
    sizes = {"shared": tile * BYTES_PER_ROW, "columns": columns} | ({} if published else {"tile_size": tile})
    counting = published_kernel if published else column_block_kernel
    return Plan(
        method="column_block",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={},
        steps=[launch(counting, -(-graph.n // columns) * threads, threads, blocks, **sizes)],
        work=simulated.work(graph, 18 * graph.m, row_us=0.8),
    )


def longest_group(col_ptr, columns):
    """The most nonzeros that a group of `columns` consecutive columns has."""
    starts = col_ptr[np.minimum(np.arange(0, col_ptr.size - 1 + columns, columns), col_ptr.size - 1)]
    return int(np.diff(starts).max(initial=0))
