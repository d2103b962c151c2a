"""`bitmap_block_global`: a block per column, stored as bits in global memory (Bisson & Fatica's, for any n).

Contract: the same sum as `naive`. Works like `bitmap_block_shared`, but each block has a bitmap of n bits in global
memory and its fold in shared memory (see `bits`). It launches as many blocks as the device runs at a time and has
memory for. A graph that does not fit the device with a single bitmap is refused.

`published`: without a fold, and a neighbour at a time, see `algorithm_4`. `lanes`, `fold` and `word` are ours.
"""

import numpy as np

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, kernel, uint32
from tcgpu.kernels import Plan, check_positions, enough_blocks, simulated
from tcgpu.kernels.bisson_fatica import algorithm_4, support
from tcgpu.kernels.device import bits as bitmaps
from tcgpu.kernels.device.bits import Bitmap, count_by_block
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device_graph import prepare

ARRAYS = "int64[::1], int32[::1], {}[::1], uint32, uint32, uint32, uint32, uint32, int64[::1], int64[::1]"


@kernel(f"void({ARRAYS.format('uint32')})", f"void({ARRAYS.format('int64')})")
def bitmap_block_global_kernel(col_ptr, row_idx, bits, shift, fold_bits, lanes, batch, long_list, queue, total):
    near, begin = cuda.shared.array(0, uint32), cuda.blockIdx.x * (bits.size // cuda.gridDim.x)
    bitmap = Bitmap(near, 2 * cuda.blockDim.x + 1, fold_bits - 1, bits, begin, shift)
    count = count_by_block(col_ptr, row_idx, bitmap, fold_bits >> 5, lanes, batch, long_list, queue, True)
    add_block_to(total, count)


@planner("bitmap_block_global", prepare)
def plan(graph, *, threads, blocks, lanes, fold, word, published):
    """blocks: None for as many as the device runs at a time."""
    if published:
        return algorithm_4.count_plan(graph, "block_global", threads=threads, blocks=blocks)
    check_positions(graph, "bitmap_block_global")
    fold_bits = bitmaps.fold_bits_of(fold, graph.n)
    shared = bitmaps.bounds_and_batch_bytes(threads) + (fold_bits >> 3)
    bitmaps.check_shared("bitmap_block_global", f"fold={fold}", shared)
    words = -(-graph.n // word)
    if blocks is None:
        blocks = bitmap_block_global_kernel.blocks_at_a_time(threads, shared)
    blocks = enough_blocks(blocks, graph.n, 1)
    blocks, _ = bitmaps.bitmaps_of_blocks("bitmap_block_global", graph, blocks, 1, words * word // 8)
    knobs = {"shift": word.bit_length() - 1, "fold_bits": fold_bits, "lanes": lanes}
    return Plan(
        method="bitmap_block_global",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"bits": (blocks * words, bitmaps.WORDS[word], 0), "queue": (1, np.int64, 0)},
        steps=bitmaps.launches_by_block(bitmap_block_global_kernel, graph, threads, blocks, shared, **knobs),
        work=simulated.work(graph, 9 * threads * simulated.column_rounds(graph), row_us=19),
    )


@plan.for_edges
def support_plan(graph, published=False):
    return (algorithm_4.support_plan if published else support.plan)(graph, "block_global")
