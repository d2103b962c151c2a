"""The two-pointer dot product: how many values two sorted ranges share. The report's kernels count with it.

Both pointers start at the front; the one at the smaller value advances, and both do where the values are equal. The
code adds the results of comparisons to the pointers: so the lanes of a warp, which rarely advance the same pointer, all
take the same path through the loop, and differ only in the number of iterations.
"""

from tcgpu.engines.runtime import cuda, int64, uint32

EVEN = 32  # rows of two columns, up to which both are merged whatever they are


@cuda.jit(device=True)
def common_values(a, p, p_end, b, q, q_end):
    """How many values a[p:p_end] and b[q:q_end], both strictly ascending, share; positions below 2^32.

    Unsigned 32-bit positions halve the arithmetic of the loop, and spare Numba's check for indices below 0.
    """
    p, p_end, q, q_end = uint32(p), uint32(p_end), uint32(q), uint32(q_end)
    common = int64(0)  # a 32-bit count makes the loop 6 % slower on a skewed graph
    while p < p_end and q < q_end:
        x, y = a[p], b[q]
        common += x == y
        p += x <= y
        q += y <= x
    return common


@cuda.jit(device=True)
def common_values_apart(a, p, p_end, b, q, q_end):
    """The same of two ranges that are not empty. It reads a value only when a pointer advances: more branches, fewer
    loads, which is faster where these mostly miss the caches."""
    p, p_end, q, q_end = uint32(p), uint32(p_end), uint32(q), uint32(q_end)
    common, x, y = int64(0), a[p], b[q]
    while True:
        common += x == y
        x_advances, y_advances = x <= y, y <= x
        p += x_advances
        q += y_advances
        if p >= p_end or q >= q_end:
            return common
        if x_advances:
            x = a[p]
        if y_advances:
            y = b[q]


@cuda.jit(device=True)
def rows_to_search(few, many, long):
    """How many of the `few` rows of a column to look up in another one of `many` rows; 0 if merging both is faster.

    A search takes as many steps as `many` has bits, a merge one for each row. More than `long` rows are never merged:
    a thread alone would take too long.
    """
    both = few + many
    if few == 0 or both <= long and (both <= EVEN or few * uint32(32 - cuda.clz(many)) >= both):
        return uint32(0)
    return few
