"""Compute column pointers from the columns of the nonzeros (the report's `findCol_ptr`), and the reverse.

Contract: `col_of` (int32, m) ascends; `col_ptr` (int64, n + 1) is all -1 before, the column pointers after. A column
starts where `col_of` changes: in `find_col_ptr` a thread writes if its nonzero is in another column than the one
before. Empty columns keep -1; the report skips them when it computes lengths. Here `fill_empty_columns` sets them: an
empty column starts at the first nonzero of a later column.

`find_columns` computes `col_of` from `col_ptr`, so that only half of a graph's bytes are copied to the device. Each
thread searches for the column of its nonzero; neighbouring threads read nearly the same addresses.
"""

from tcgpu.engines.runtime import cuda, int64, kernel, uint32
from tcgpu.kernels import launch
from tcgpu.kernels.device.search import first_from, last_up_to


@kernel("void(int32[::1], int64[::1])")
def find_col_ptr(col_of, col_ptr):
    for e in range(cuda.grid(1), col_of.size, cuda.gridsize(1)):
        if e == 0 or col_of[e - 1] != col_of[e]:
            col_ptr[col_of[e]] = e


@kernel("void(int32[::1], int64[::1])")
def fill_empty_columns(col_of, col_ptr):
    for j in range(cuda.grid(1), col_ptr.size, cuda.gridsize(1)):
        if col_ptr[j] < 0:
            col_ptr[j] = first_from(col_of, 0, col_of.size, j)  # the first nonzero of a later column


@cuda.jit(device=True)
def column_bounds(col_ptr, j):
    """Where column j begins and ends: two uint32."""
    return uint32(col_ptr[j]), uint32(col_ptr[j + 1])


@kernel("void(int64[::1], int32[::1])")
def find_columns(col_ptr, col_of):
    for e in range(cuda.grid(1), col_of.size, cuda.gridsize(1)):
        col_of[e] = last_up_to(col_ptr, 0, col_ptr.size - 1, e)


@cuda.jit(device=True)
def columns_of_edge(col_ptr, col_of, row_idx, uv):
    """The columns whose common rows w make triangles u < v < w with edge (u, v): v's, and u's from this edge on.

    Returns where the shorter one begins and ends, where the longer one does, and whether v's is the shorter one.
    """
    v = row_idx[uv]
    p, p_end, q, q_end = int64(uv + 1), col_ptr[col_of[uv] + 1], col_ptr[v], col_ptr[v + 1]
    if q_end - q < p_end - p:
        return q, q_end, p, p_end, True
    return p, p_end, q, q_end, False


def col_ptr_steps(n, m, **arrays):
    """The launches that fill `col_ptr` from `col_of`. arrays: these two, if a plan has other names for them."""
    return [launch(find_col_ptr, m, 256, **arrays), launch(fill_empty_columns, n + 1, 256, **arrays)]
