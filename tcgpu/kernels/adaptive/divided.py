"""A count of a graph whose columns are divided among workers: of the columns j of one worker, by the classes of `plan`.

A worker counts the nonzeros (i, j) of the columns j that it owns in steps. In each it has a graph in degree order in
which only some columns are not empty (`own_columns.joined`):

    first    its own columns, and those of all near vertices: it counts every (i, j) whose column i is there
    visits   its own far columns, and some far columns i of one other worker: it counts the (i, j) of these

Vertex j is its own if j % of == index. So the steps of all workers count each triangle once. Near vertices have no far
rows, and hubs are near: only the first step has hubs i.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.runtime import cuda, int64, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import check_positions, launch
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.adaptive.far import COUNT_BYTES, LANES, counts_far_column, look_up_long_columns
from tcgpu.kernels.adaptive.layout import HUBS, NEAR, in_share, lay_out_nonzero, pack_piece
from tcgpu.kernels.adaptive.plan import CLASSES, MAX_QUADS, NO_TABLE, plan_classes
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.order_costs import SHORT


class Counted(NamedTuple):
    """The columns i whose nonzeros (i, j) a step counts: of vertices low to high - 1 those in share `theirs`, and all
    from vertex `all_from` on."""

    theirs: int
    low: int
    high: int
    all_from: int


@cuda.jit(device=True)
def counts_column(i, of, theirs, low, high, all_from):
    """Whether a step counts column i."""
    return i >= all_from or counts_far_column(i, of, theirs, low, high)


@kernel("void(int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int32[::1])")
def count_own_in_edges(row_idx, col_of, quad_ptr, index, of, theirs, low, high, all_from, in_count):
    """A thread per nonzero (i, j): count it for i, if column i has near rows. Some will be no in-edges."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i = row_idx[e]
        if in_share(col_of[e], index, of) and counts_column(i, of, theirs, low, high, all_from):
            if quad_ptr[i] < quad_ptr[i + 1]:
                cuda.atomic.add(in_count, i, 1)
        e += cuda.gridsize(1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64, int64,"
    " int64, int64[::1], uint16[::1], uint64[::1])"
)
def lay_out_own(
    col_ptr, row_idx, col_of, quad_ptr, first_near, first_hub, heavy_quads, index, of, theirs, low, high, all_from,
    in_end, near, in_edges,
):  # fmt: skip
    """As `layout.lay_out`, with the in-edges that `count_own_in_edges` counts."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        begin, end, is_in_edge = lay_out_nonzero(e, i, j, col_ptr, quad_ptr, first_near, first_hub, heavy_quads, near)
        if is_in_edge and in_share(j, index, of) and counts_column(i, of, theirs, low, high, all_from):
            if quad_ptr[i] < quad_ptr[i + 1]:
                in_edges[cuda.atomic.add(in_end, i, 1)] = pack_piece(begin, end - begin)
        e += cuda.gridsize(1)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64, int64, int64, int64, int64[::1])")
def hash_own(col_ptr, row_idx, far_count, long_columns, list_sizes, of, theirs, low, high, total):
    """As `far.hash_kernel`; the long columns that are listed are the worker's own. Near columns have no far rows."""
    count = look_up_long_columns(
        col_ptr, row_idx, far_count, long_columns, list_sizes, LANES, of, theirs, low, high, row_idx, False
    )
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64[::1])")
def far_own(col_ptr, row_idx, col_of, far_count, short, index, of, theirs, low, high, total):
    """As `far.far_kernel`."""
    count = int64(0)
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        if in_share(j, index, of) and counts_far_column(i, of, theirs, low, high):
            length = far_count[j]
            p_end = col_ptr[j] + length
            if e + 1 < p_end and length < short:
                q = col_ptr[i]
                count += common_values(row_idx, e + 1, p_end, row_idx, q, q + far_count[i])
        e += cuda.gridsize(1)
    add_block_to(total, count)


def plan_step(graph, index, of, counted, own_edges, *, near=NEAR, hubs=HUBS, heavy=CLASSES[2], crowd=CLASSES[3],
              short=SHORT):  # fmt: skip
    """The Plan of a step on its graph.

    counted: a Counted; own_edges: the most nonzeros that the step counts.
    near, hubs, heavy, crowd, short: knobs of `adaptive`.
    """
    check_positions(graph)
    if layout.most_quads(graph) > MAX_QUADS:
        raise GraphError(f"{graph.m:,} edges of a step are too many for its near rows: more GPUs have fewer each")
    n, m = graph.n, graph.m
    near = min(near, n)
    hubs = min(hubs, near) if counted.all_from < n else 0
    own = {"index": index, "of": of, **counted._asdict()}
    cuts = {"first_near": n - near, "first_hub": n - hubs, "heavy_quads": heavy // 4}
    counting = launch(count_own_in_edges, m, 256, **own)
    listed = (n - 1 - index) % of, of  # lists begin with the last column
    made = layout.in_edges_by_degree(graph, n - near, heavy // 4, short, listed, counting)
    made.created["in_edges"] = (own_edges, np.uint64, None)
    tables = launch(hash_own, 128 * n, 128, 4224, COUNT_BYTES, **own) if short < NO_TABLE else None
    merges = launch(far_own, m, 64, 16384, short=short, **own)
    return plan_classes(graph, made, launch(lay_out_own, m, 256, **cuts, **own), hubs, crowd, tables, merges)
