"""`merge_path`: several lanes per edge, the merge of its two columns cut into equal parts (TriCore's baseline).

Contract: the sum over nonzeros (i, j) of the rows that columns i and j share. `lanes` neighbouring threads share an
edge, whatever the launch shape; threads that do not fill a group stay idle.

A merge of m and n rows takes m + n steps: on a grid, a step to the right for each row of column j and down for each row
of column i. After d steps the merge is on diagonal d. A binary search along that diagonal finds the point where the
merge crosses it. So every lane finds the start of its part, and all parts have the same number of steps: Green, McColl
and Bader's *merge path*.

What it costs: the merge, the searches on the diagonals, and strided access: the addresses that the lanes of a warp read
are the length of a part apart.
"""

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import launch
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_columns
from tcgpu.kernels.tricore.edge_columns import columns_of


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64[::1])")
def merge_path_kernel(col_ptr, row_idx, col_of, lanes, total):
    thread, groups = cuda.grid(1), cuda.gridsize(1) // lanes
    group, lane = thread // lanes, uint32(thread % lanes)
    count = int64(0)
    e = group if group < groups else row_idx.size
    while e < row_idx.size:
        p, rest, q, length = columns_of(e, col_ptr, row_idx, col_of)
        if rest > 0 and length > 0:
            all_steps = rest + length
            part = (all_steps + uint32(lanes) - 1) // uint32(lanes)
            d = min(lane * part, all_steps)
            x = steps_right(row_idx, p, rest, row_idx, q, length, d)
            count += int64(matches(row_idx, p + x, p + rest, row_idx, q + (d - x), q + length, part))
        e += groups
    add_block_to(total, count)


@cuda.jit(device=True)
def steps_right(a, p, a_length, b, q, b_length, d):
    """How many of the first d steps of the merge pass a row of `a`; of two equal rows, the row of `a` comes first."""
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
    """The number of common rows found in `steps` steps of the merge of a[p:p_end] and b[q:q_end]."""
    found = uint32(0)
    while steps > 0 and p < p_end and q < q_end:
        x, y = a[p], b[q]
        found += x == y
        p += x <= y
        q += x > y
        steps -= 1
    return found


@planner("merge_path", prepare)
def plan(graph, *, threads, blocks, lanes):
    lanes = min(lanes, threads * blocks)
    step = launch(merge_path_kernel, graph.m * lanes, threads, blocks, lanes=lanes)
    return edge_columns.plan("merge_path", graph, step, edge_us=9.5 * lanes, step_us=1.5)
