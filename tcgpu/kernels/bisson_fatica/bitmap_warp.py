"""`bitmap_warp`: a warp per column, stored as bits in global memory (Bisson & Fatica's, for rows of medium length).

Contract: the same sum as `naive`. Every warp has a bitmap of n bits, all 0, and a fold of it in shared memory (see
`bits`). For each of its columns j it sets the column's bits, looks up the rows of column i for each row i, with `lanes`
neighbouring threads, and clears the bits. Its lanes wait for each other, never for the block. Columns too short for a
triangle are skipped.

`published`: without a fold, and a neighbour at a time, see `algorithm_4`. `lanes`, `fold` and `word` are ours.

It launches as many warps as the device runs at a time and has memory for; if there is too little memory for the warps
of one block, the block has fewer, down to one. The last warp of a block may have fewer than 32 lanes.
"""

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import Plan, check_positions, enough_blocks, launch, simulated
from tcgpu.kernels.bisson_fatica import algorithm_4, support
from tcgpu.kernels.device import bits as bitmaps
from tcgpu.kernels.device.bits import Bitmap, clear_row, hits, load_bounds, set_row
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.warp import WARP
from tcgpu.kernels.device_graph import prepare

ARRAYS = "int64[::1], int32[::1], {}[::1], uint32, uint32, uint32, int64[::1]"


@kernel(f"void({ARRAYS.format('uint32')})", f"void({ARRAYS.format('int64')})")
def bitmap_warp_kernel(col_ptr, row_idx, bits, shift, fold_bits, lanes, total):
    near = cuda.shared.array(0, uint32)  # for every warp: two words a lane for `load_bounds`, then its fold
    thread, lane = cuda.threadIdx.x, cuda.threadIdx.x & 31
    width = min(WARP, cuda.blockDim.x - (thread - lane))  # the last warp of an odd block has fewer lanes
    all_lanes = uint32((1 << int64(width)) - 1)
    per_block = cuda.blockDim.x + WARP - 1 >> 5
    warp, warps = cuda.blockIdx.x * per_block + (thread >> 5), cuda.gridDim.x * per_block
    words = fold_bits >> 5
    at = (thread >> 5) * (words + 2 * WARP) + 2 * WARP
    word = lane
    while word < words:
        near[at + word] = 0
        word += width
    cuda.syncwarp(all_lanes)
    lanes = min(lanes, width)
    group, groups, place = lane // lanes, width // lanes, lane % lanes
    begin_bits = int64(warp) * (bits.size // int64(warps))
    bitmap = Bitmap(near, at, fold_bits - 1, bits, begin_bits, shift)
    j, count = warp, int64(0)
    while j + 1 < col_ptr.size:
        begin, end = column_bounds(col_ptr, j)
        if end - begin > 1:
            p = begin + lane
            while p < end:
                set_row(bitmap, row_idx[p], True)
                p += width
            last, chunk = row_idx[end - 1], begin
            while chunk < end:
                load_bounds(col_ptr, row_idx, chunk + lane, end, near, at - 2 * WARP + 2 * lane)
                cuda.syncwarp(all_lanes)
                t, size = group, min(width, end - chunk)
                while t < size and group < groups:  # lanes are left over if `lanes` does not divide the warp
                    q, q_end = near[at - 2 * WARP + 2 * t], near[at - 2 * WARP + 2 * t + 1]
                    count += hits(bitmap, row_idx, q + place, q_end, lanes, last, True)
                    t += groups
                cuda.syncwarp(all_lanes)
                chunk += width
            p = begin + lane
            while p < end:
                clear_row(bitmap, row_idx[p], True)
                p += width
            cuda.syncwarp(all_lanes)
        j += warps
    add_block_to(total, count)


@planner("bitmap_warp", prepare)
def plan(graph, *, threads, blocks, lanes, fold, word, published):
    """blocks: None for as many as the device runs at a time."""
    if published:
        return algorithm_4.count_plan(graph, "warp", threads=threads, blocks=blocks)
    check_positions(graph, "bitmap_warp")
    fold_bits = bitmaps.fold_bits_of(fold, graph.n)
    words = -(-graph.n // word)
    warps = -(-threads // WARP)
    shared = warps * (bitmaps.BOUNDS_BYTES * WARP + fold_bits // 8)
    bitmaps.check_shared("bitmap_warp", f"fold={fold} for {warps} warps", shared)
    if blocks is None:
        blocks = bitmap_warp_kernel.blocks_at_a_time(threads, shared)
    blocks = enough_blocks(blocks, graph.n, warps)
    blocks, fitting = bitmaps.bitmaps_of_blocks("bitmap_warp", graph, blocks, warps, words * word // 8)
    if fitting < warps:
        threads, warps = fitting * WARP, fitting
    knobs = {"shift": word.bit_length() - 1, "fold_bits": fold_bits, "lanes": min(lanes, WARP)}
    return Plan(
        method="bitmap_warp",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={"bits": (blocks * warps * words, bitmaps.WORDS[word], 0)},
        steps=[launch(bitmap_warp_kernel, blocks * threads, threads, blocks, shared, **knobs)],
        work=simulated.work(graph, 7.9 * WARP * simulated.column_rounds(graph), row_us=6.1),
    )


@plan.for_edges
def support_plan(graph, published=False):
    return (algorithm_4.support_plan if published else support.plan)(graph, "warp")
