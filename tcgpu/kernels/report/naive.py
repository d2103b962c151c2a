"""`naive`: a thread per nonzero, two-pointer dot product of two columns (the report, section 5).

Contract: the sum over all nonzeros (i, j) of L of the rows that columns i and j share. Any numbers of threads and
blocks give the same count: thread t takes the nonzeros t, t + all threads, and so on.

`published`: both pointers start at the front of their columns, as the report says (section 5). Ours begins column j
behind row i, for column i has no rows up to i.

What it costs: a warp takes as long as its longest pair of columns (divergence), and column i may be anywhere in memory
(scattered loads). So a mesh is fastest in its natural order, in which neighbours have close numbers.
"""

import numpy as np

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int64, kernel
from tcgpu.kernels import Plan, check_positions, launch, simulated
from tcgpu.kernels.device import columns
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def naive_kernel(col_ptr, row_idx, col_of, total):
    count = int64(0)
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        # column j is read from behind row i on: column i has no rows up to i
        count += common_values(row_idx, e + 1, col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])
        e += cuda.gridsize(1)
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def published_kernel(col_ptr, row_idx, col_of, total):
    count = int64(0)
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        count += common_values(row_idx, col_ptr[j], col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])
        e += cuda.gridsize(1)
    add_block_to(total, count)


@planner("naive")
def plan(graph, *, threads, blocks, published):
    """The report's way: rows and columns of the nonzeros go to the device, `col_ptr` is made there."""
    check_positions(graph, "naive")
    return Plan(
        method="naive",
        copied={"row_idx": graph.row_idx, "col_of": graph.col_of},
        created={"col_ptr": (graph.n + 1, np.int64, -1)},
        setup=columns.col_ptr_steps(graph.n, graph.m),
        steps=[launch(published_kernel if published else naive_kernel, graph.m, threads, blocks)],
        work=simulated.work(graph, row_us=1.3),
    )
