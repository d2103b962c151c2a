"""Triangles j < i < k with a far k: columns are merged. In a large graph, where it pays to list in-edges for this, a
column i becomes a hash table: `tables.far_window_kernel`."""

from tcgpu.engines.runtime import cuda, int64, kernel
from tcgpu.kernels.adaptive.layout import in_share
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.warp import add_warps_to

# How far_window_kernel is launched: for which number of in-edges, from and below; threads; rows of a table, 32 at
# least; lanes.
FEW_IN_EDGES, NO_LIMIT = 32, 2**31 - 1
FAR_WINDOWS = (FEW_IN_EDGES, NO_LIMIT, 256, 1024, 16), (1, FEW_IN_EDGES, 32, 128, 8)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64[::1])")
def far_kernel(col_ptr, row_idx, col_of, far_count, index, of, total):
    """A thread per nonzero (i, j), with i in share `index`: merge the far rows of columns i and j.

    Most nonzeros are near and have nothing to do. A share has the same vertices as one with memory for far in-edges.
    """
    count = int64(0)
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j] + far_count[j]
        if e + 1 < p_end and (of == 1 or in_share(i, index, of)):
            q = col_ptr[i]
            count += common_values(row_idx, e + 1, p_end, row_idx, q, q + far_count[i])
        e += cuda.gridsize(1)
    add_warps_to(total, count)
