"""`thread_search`: a thread per edge, every row of the shorter column looked up in the longer one (TriCore's baseline).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share. Thread t takes the edges t, t + all
threads, and so on, whatever the launch shape.

What it costs: with m rows in the shorter column and n in the longer, m log n steps instead of the m + n of a merge, so
a short column with a long one is cheap. But the 32 lanes of a warp search 32 different columns: each step reads 32
unrelated addresses, and the warp takes as long as its longest search.
"""

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import launch
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_columns
from tcgpu.kernels.tricore.edge_columns import columns_of


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def thread_search_kernel(col_ptr, row_idx, col_of, total):
    count = int64(0)
    e = cuda.grid(1)
    while e < row_idx.size:
        p, rest, q, length = columns_of(e, col_ptr, row_idx, col_of)
        if rest <= length:
            count += int64(lookups(row_idx, q, length, p, rest))
        else:
            count += int64(lookups(row_idx, p, rest, q, length))
        e += cuda.gridsize(1)
    add_block_to(total, count)


@cuda.jit(device=True)
def lookups(rows, place, length, p, keys):
    """The number of the `keys` rows from rows[p] on that are among the `length` rows from rows[place] on."""
    hits, end = uint32(0), p + keys
    while p < end:
        hits += contains(rows, place, length, rows[p])
        p += 1
    return hits


@planner("thread_search", prepare)
def plan(graph, *, threads, blocks):
    step = launch(thread_search_kernel, graph.m, threads, blocks)
    return edge_columns.plan("thread_search", graph, step, edge_us=8.3, step_us=0.6)
