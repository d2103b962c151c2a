"""Return results for edges or vertices in the caller's vertex numbering.

Counting is fastest where vertices are numbered by degree. To go back takes a search for each edge, in a short column,
and a look-up for each vertex.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, kernel
from tcgpu.kernels import Step, enough_blocks
from tcgpu.kernels.device.search import last_up_to

THREADS, BLOCKS = 256, 16384


@kernel("void(int32[::1], int32[::1], int32[::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def carry_edges(row_idx, col_of, rank, own_ptr, own_idx, found, carried):
    """A thread per nonzero: where it is among those of the other graph, which calls vertex v rank[v]."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = rank[row_idx[e]], rank[col_of[e]]
        if i < j:
            i, j = j, i
        carried[e] = found[last_up_to(own_idx, own_ptr[j], own_ptr[j + 1], i)]
        e += cuda.gridsize(1)


@kernel("void(int32[::1], int64[::1], int64[::1])")
def carry_vertices(rank, found, carried):
    v = cuda.grid(1)
    while v < rank.size:
        carried[v] = found[rank[v]]
        v += cuda.gridsize(1)


def edges_back(plan, own, back):
    """A plan of a number for each edge of `own`, its result now for those of `back`, which `own` was ordered from."""
    if own is back:
        return plan
    arrays = {"back_rows": back.row_idx, "back_columns": back.col_of, "rank": own.rank}
    args = (*arrays, "col_ptr", "row_idx", plan.output, "carried")
    return plan.then(_step(carry_edges, back.m, args), "carried", copied=arrays, created=_created(back.m, np.int32))


def vertices_back(plan, own, back):
    """The same for a plan of a number for each vertex."""
    if own is back:
        return plan
    step = _step(carry_vertices, back.n, ("rank", plan.output, "carried"))
    return plan.then(step, "carried", copied={"rank": own.rank}, created=_created(back.n, np.int64))


def _step(kernel, size, args):
    return Step(kernel, enough_blocks(BLOCKS, size, THREADS), THREADS, args)


def _created(size, dtype):
    return {"carried": (size, dtype, None)}
