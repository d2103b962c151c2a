"""`bitmap_block_shared`: a block per column, stored as bits in shared memory (Bisson & Fatica's, for small n).

Contract: the same sum as `naive`. A block's bitmap has n bits in its shared memory; a graph of more vertices than fit
is refused. The block takes columns from a queue, long ones first. It sets a column's bits, then takes its rows in
chunks of one a thread: each thread loads where its row's column begins and ends, and then the block looks up these
columns, short ones with `lanes` threads each, long ones with all threads.

`published`: without a queue, and a neighbour at a time, see `algorithm_4`. `lanes` are ours.
"""

import numpy as np

from tcgpu.built_in import planner
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, check_positions, enough_blocks, simulated
from tcgpu.kernels.bisson_fatica import algorithm_4, support
from tcgpu.kernels.device import bits as bitmaps
from tcgpu.kernels.device.bits import Bitmap, count_by_block
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device_graph import prepare


@kernel("void(int64[::1], int32[::1], uint32, uint32, uint32, int64[::1], int64[::1])")
def bitmap_block_shared_kernel(col_ptr, row_idx, lanes, batch, long_list, queue, total):
    near, words = cuda.shared.array(0, uint32), uint32(col_ptr.size + 30 >> 5)
    bitmap = Bitmap(near, 2 * cuda.blockDim.x + 1, uint32(0xFFFFFFFF), near, 0, uint32(5))
    count = count_by_block(col_ptr, row_idx, bitmap, words, lanes, batch, long_list, queue, False)
    add_block_to(total, count)


def shared_bytes(n, threads):
    """Shared memory of a block for a graph of n vertices."""
    return bitmaps.bounds_and_batch_bytes(threads) + 4 * -(-n // 32)


def most_vertices(threads=256):
    """How many vertices a graph may have on this device."""
    return 8 * (runtime.facts().shared_per_block - bitmaps.bounds_and_batch_bytes(threads)) // 32 * 32


def most_for_support():
    """The same for supports: beside each word of bits is the position of its first row."""
    return most_vertices() // 2


def check_room(graph, most):
    """GraphError if the graph has more vertices than `most`."""
    if graph.n > most:
        raise GraphError(
            f"bitmap_block_shared has room for {most:,} vertices in the shared memory of a block here, not for "
            f"{graph.n:,}: take bitmap_block_global"
        )


@planner("bitmap_block_shared", prepare)
def plan(graph, *, threads, blocks, lanes, published):
    """blocks: None for as many as the device runs at a time."""
    check_positions(graph, "bitmap_block_shared")
    shared = shared_bytes(graph.n, threads)
    check_room(graph, most_vertices(threads))
    if published:
        return algorithm_4.count_plan(graph, "block_shared", threads=threads, blocks=blocks)
    if blocks is None:
        blocks = bitmap_block_shared_kernel.blocks_at_a_time(threads, shared)
    blocks = enough_blocks(blocks, graph.n, 1)
    return Plan(
        method="bitmap_block_shared",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"queue": (1, np.int64, 0)},
        steps=bitmaps.launches_by_block(bitmap_block_shared_kernel, graph, threads, blocks, shared, lanes),
        work=simulated.work(graph, 9 * threads * simulated.column_rounds(graph), row_us=14),
    )


@plan.for_edges
def support_plan(graph, published=False):
    check_room(graph, most_for_support())
    return (algorithm_4.support_plan if published else support.plan)(graph, "block_shared")
