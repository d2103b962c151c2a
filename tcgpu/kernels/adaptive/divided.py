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

from tcgpu.engines.runtime import cuda, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import check_positions, launch
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.adaptive.layout import HUBS, NEAR, add_in_edge, in_share, lay_out_nonzero
from tcgpu.kernels.adaptive.plan import CLASSES, MAX_QUADS, NO_TABLE, plan_classes


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
    return i >= all_from or (low <= i < high and in_share(i, theirs, of))


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int32[::1])")
def count_own_in_edges(col_ptr, row_idx, col_of, index, of, theirs, low, high, all_from, in_count):
    """A thread per nonzero (i, j): count it for i, if column i has rows. Some will be no in-edges."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i = row_idx[e]
        if in_share(col_of[e], index, of) and counts_column(i, of, theirs, low, high, all_from):
            if col_ptr[i] < col_ptr[i + 1]:
                cuda.atomic.add(in_count, i, 1)
        e += cuda.gridsize(1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64,"
    " int64, int64, int64[::1], uint16[::1], uint64[::1], uint64[::1])"
)
def lay_out_own(
    col_ptr, row_idx, col_of, far_count, quad_ptr, first_near, first_hub, heavy_quads, index, of, theirs, low, high,
    all_from, in_end, near, in_edges, far_edges,
):  # fmt: skip
    """As `layout.lay_out`, with the in-edges that `count_own_in_edges` counts."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        begin, end, is_in_edge = lay_out_nonzero(e, i, j, col_ptr, quad_ptr, first_near, first_hub, heavy_quads, near)
        if in_share(j, index, of) and counts_column(i, of, theirs, low, high, all_from):
            if col_ptr[i] < col_ptr[i + 1]:
                add_in_edge(e, i, j, begin, end, is_in_edge, col_ptr, far_count, in_end, in_edges, far_edges)
        e += cuda.gridsize(1)


def plan_step(graph, index, of, counted, own_edges, *, near=NEAR, hubs=HUBS, heavy=CLASSES[2], crowd=CLASSES[3]):
    """The Plan of a step on its graph.

    counted: a Counted; own_edges: the most nonzeros that the step counts.
    near, hubs, heavy, crowd: knobs of `adaptive`.
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
    made = layout.in_edges_by_degree(graph, n - near, heavy // 4, NO_TABLE, listed, counting)
    made.created["in_edges"] = (own_edges, np.uint64, None)
    made = layout.with_far_edges(made, n - near)
    return plan_classes(graph, made, launch(lay_out_own, m, 256, **cuts, **own), hubs, crowd)
