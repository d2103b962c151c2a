"""`thread_search`: a thread per edge, every row of the shorter column looked up in the longer one (TriCore's baseline).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share. Thread t takes the edges t, t + all
threads, and so on, whatever the launch shape; see `edge_list` for where its columns may lie.

What it costs: with m rows in the shorter column and n in the longer, m log n steps instead of the m + n of a merge, so
that a short column beside a long one is cheap. But the 32 lanes of a warp search 32 different columns: every step of
theirs reads 32 places that have nothing to do with each other, and the warp waits for its longest search.
"""

from tcgpu.declarations import Method, blocks_knob, threads_knob
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device.search import contains
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_slices
from tcgpu.kernels.tricore.edge_slices import columns_of

__all__ = ["plan", "prepare"]


METHOD = Method(
    name="thread_search",
    source="TriCore's baseline",
    summary="a thread per edge; each row of the shorter column looked up in the longer by binary search",
    order="degree",
    module=__name__,
    declared=(threads_knob(128), blocks_knob(1 << 16)),
)


@kernel(f"void({edge_slices.ARGUMENTS}, int64[::1])")
def thread_search_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, total):
    count = int64(0)
    e = first + cuda.grid(1)
    while e < last:
        p, rest, q, length = columns_of(e, cols, first, j_low, j_ptr, j_rows, i_low, i_ptr)
        if rest <= length:
            count += int64(lookups(i_rows, q, length, j_rows, p, rest))
        else:
            count += int64(lookups(j_rows, p, rest, i_rows, q, length))
        e += cuda.gridsize(1)
    add_block_to(total, count)


@cuda.jit(device=True)
def lookups(rows, place, length, keys, p, many):
    """How many of the `many` keys from keys[p] on are among the `length` rows from rows[place] on."""
    hits, end = uint32(0), p + many
    while p < end:
        hits += contains(rows, place, length, keys[p])
        p += 1
    return hits


@METHOD.planner
def plan(graph, *, threads, blocks):
    blocks = enough_blocks(blocks, graph.m, threads)
    shape = blocks, threads, threads * BYTES_PER_THREAD
    return edge_slices.plan("thread_search", graph, thread_search_kernel, shape, edge_us=8.3, step_us=1.2)
