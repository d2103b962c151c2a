"""What the puzzles give: two device functions."""

from tcgpu import cuda, int64


@cuda.jit(device=True)
def common(a, p, p_end, b, q, q_end):
    """How many rows `a[p:p_end]` and `b[q:q_end]` share; both ascend."""
    found = int64(0)
    while p < p_end and q < q_end:
        x, y = a[p], b[q]
        found += x == y
        p += x <= y
        q += y <= x
    return found


@cuda.jit(device=True)
def triangles_at(e, col_ptr, row_idx, col_of):
    """How many triangles are counted at nonzero `e`: the rows that its two columns share."""
    i, j = row_idx[e], col_of[e]
    return common(row_idx, e + 1, col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])
