"""`merge_path`: several lanes per edge, the merge of its two columns cut into equal parts (TriCore's baseline).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share; see `edge_list` for where the columns may
lie. `lanes` neighbouring threads share an edge, whatever the launch shape; those of all threads that are left over have
nothing to do.

A merge takes m + n steps, each of which passes over one row: a step to the right in the column j, down in the column i,
on the way from one corner of a grid to the other. Diagonal d of the grid is where the merge has taken d steps; a binary
search along it finds where the merge gets there. So every lane finds the beginning of its part for itself, and takes
as many steps as any other: Green, McColl and Bader's *merge path*.

What it costs: the work of a merge, the searches on the diagonals, and strided access: the lanes of a warp read places
that are a part apart from each other.
"""

from tcgpu.declarations import Knob, Method, blocks_knob, threads_knob
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_slices
from tcgpu.kernels.tricore.edge_slices import columns_of

__all__ = ["plan", "prepare"]


METHOD = Method(
    name="merge_path",
    source="TriCore's baseline",
    summary="several lanes per edge; the merge of its two columns cut by diagonals into equal parts",
    order="degree",
    module=__name__,
    declared=(threads_knob(128), blocks_knob(1 << 16), Knob("lanes", 32, "threads that share an edge", 1, 1024)),
)


@kernel(f"void({edge_slices.ARGUMENTS}, int64, int64[::1])")
def merge_path_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, lanes, total):
    thread, groups = cuda.grid(1), cuda.gridsize(1) // lanes
    group, seat = thread // lanes, uint32(thread % lanes)
    count = int64(0)
    e = first + group if group < groups else last
    while e < last:
        p, rest, q, length = columns_of(e, cols, first, j_low, j_ptr, j_rows, i_low, i_ptr)
        if rest > 0 and length > 0:
            all_steps = rest + length
            part = (all_steps + uint32(lanes) - 1) // uint32(lanes)
            d = min(seat * part, all_steps)
            x = steps_right(j_rows, p, rest, i_rows, q, length, d)
            a, b = p + x, q + (d - x)
            count += int64(matches(j_rows, a, p + rest, i_rows, b, q + length, part))
        e += groups
    add_block_to(total, count)


@cuda.jit(device=True)
def steps_right(a, p, a_length, b, q, b_length, d):
    """Of the first d steps of the merge, how many pass over a row of `a`; where rows agree, that of `a` goes first."""
    low = d - b_length if d > b_length else uint32(0)
    high = min(d, a_length)
    while low < high:
        middle = low + high >> 1
        if a[p + middle] <= b[q + (d - 1) - middle]:
            low = middle + 1
        else:
            high = middle
    return low


@cuda.jit(device=True)
def matches(a, p, p_end, b, q, q_end, steps):
    """How many rows agree in so many steps of the merge of a[p:p_end] and b[q:q_end]; a match counts as `a` goes on."""
    found = uint32(0)
    while steps > 0 and p < p_end and q < q_end:
        x, y = a[p], b[q]
        found += x == y
        p += x <= y
        q += x > y
        steps -= 1
    return found


@METHOD.planner
def plan(graph, *, threads, blocks, lanes):
    """lanes: 1 is a plain merge, a thread per edge."""
    blocks = enough_blocks(blocks, graph.m * lanes, threads)
    lanes = min(lanes, threads * blocks)
    shape = blocks, threads, threads * BYTES_PER_THREAD
    return edge_slices.plan("merge_path", graph, merge_path_kernel, shape, lanes, edge_us=9.5 * lanes, step_us=1.5)
