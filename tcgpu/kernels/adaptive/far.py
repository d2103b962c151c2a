"""Triangles j < i < k with a far k: short columns are merged, a long column becomes a hash table.

The *_kernel functions count; the *_tally functions count for each edge, as `support_plan` says.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels.adaptive.layout import LONG_LIST, in_share, shared_thread
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import first_from

EMPTY = -1
HASH_FACTOR = 2654435769  # Knuth's multiplier: 2^32 over the golden ratio
TABLE_ROWS = 512  # in a hash table at a time; a longer column is processed in chunks
TABLE_BYTES = 4 * 2 * TABLE_ROWS  # of shared memory: at most half of a table is full
COUNT_BYTES = 2 * TABLE_BYTES  # the table, and a word of its filter for each entry
TALLY_BYTES = 3 * TABLE_BYTES  # also the nonzero of each row
LANES = 16  # threads that share a column i, for a count


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64[::1])")
def far_kernel(col_ptr, row_idx, col_of, far_count, short, index, of, total):
    """A thread per nonzero (i, j): merge the far rows of columns i and j, if j has fewer than `short`.

    Most nonzeros are near and have nothing to do. Only the others read where column i begins.
    """
    count = int64(0)
    e = shared_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        length = far_count[j]
        p_end = col_ptr[j] + length
        if e + 1 < p_end and length < short:
            q = col_ptr[i]
            count += common_values(row_idx, e + 1, p_end, row_idx, q, q + far_count[i])
        e += cuda.gridsize(1) * of
    add_block_to(total, count)


@cuda.jit(device=True)
def tally_common_values(row_idx, p, p_end, q, q_end, support):
    """Merge row_idx[p:p_end] and row_idx[q:q_end]: add 1 to both nonzeros of each common row; return their number."""
    p, p_end, q, q_end = uint32(p), uint32(p_end), uint32(q), uint32(q_end)
    found = int32(0)
    while p < p_end and q < q_end:
        x, y = row_idx[p], row_idx[q]
        if x == y:
            cuda.atomic.add(support, p, 1)
            cuda.atomic.add(support, q, 1)
            found += 1
        p += x <= y
        q += y <= x
    return found


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int32[::1])")
def far_tally(col_ptr, row_idx, col_of, far_count, short, support):
    """As far_kernel, for each edge."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        length = far_count[j]
        p_end = col_ptr[j] + length
        if e + 1 < p_end and length < short:
            q = col_ptr[i]
            found = tally_common_values(row_idx, e + 1, p_end, q, q + far_count[i], support)
            if found != 0:
                cuda.atomic.add(support, e, found)
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def insert(table, mask, shift, row):
    """Insert a row into a hash table of mask + 1 = 2^(32 - shift) entries; returns the index of its entry."""
    entry = (uint32(row) * HASH_FACTOR) >> shift
    while cuda.atomic.cas(table, entry, EMPTY, row) != EMPTY:
        entry = (entry + 1) & mask
    return entry


@cuda.jit(device=True)
def add_to_filter(table, size, shift, row):
    """Set the row's bit in the filter behind the table's entries, one word for each. Some rows share a bit."""
    place = (uint32(row) * HASH_FACTOR) >> (shift - 5)  # the word, and 5 bits for the bit in it
    cuda.atomic.or_(table, size + (place >> 5), int32(1 << (place & 31)))


@cuda.jit(device=True)
def may_have(table, size, shift, row):
    """1 if the row's bit in the filter is set, else 0: then the table does not have the row."""
    place = (uint32(row) * HASH_FACTOR) >> (shift - 5)
    return (uint32(table[size + (place >> 5)]) >> (place & 31)) & 1


@cuda.jit(device=True)
def entry_of(table, mask, shift, row):
    """The index of the entry that has the row, or of the EMPTY entry that shows that the row is not in the table."""
    entry = (uint32(row) * HASH_FACTOR) >> shift
    while table[entry] != EMPTY and table[entry] != row:
        entry = (entry + 1) & mask
    return entry


@cuda.jit(device=True)
def count_rows(table, size, shift, row_idx, q, q_end, lanes):
    """How many of the rows row_idx[q:q_end:lanes] the table has. Two are read at a time."""
    found = int32(0)
    while q < q_end:
        row, other, other_may_be = row_idx[q], int32(0), uint32(0)
        if q + lanes < q_end:
            other = row_idx[q + lanes]
            other_may_be = may_have(table, size, shift, other)
        if may_have(table, size, shift, row):
            found += table[entry_of(table, size - 1, shift, row)] == row
        if other_may_be:
            found += table[entry_of(table, size - 1, shift, other)] == other
        q += 2 * lanes
    return found


@cuda.jit(device=True)
def tally_rows(table, size, shift, row_idx, q, q_end, lanes, first, support):
    """The same; adds to the support of each row's nonzero q, and of its nonzero in the column that is at `first`."""
    found = int32(0)
    while q < q_end:
        row = row_idx[q]
        if may_have(table, size, shift, row):
            at = entry_of(table, size - 1, shift, row)
            if table[at] == row:
                found += 1
                cuda.atomic.add(support, first + table[2 * size + at], 1)
                cuda.atomic.add(support, q, 1)
        q += lanes
    return found


@cuda.jit(device=True)
def counts_far_column(i, of, theirs, low, high):
    """Whether far column i is one of vertices low to high - 1, and in share `theirs` of `of`."""
    return low <= i < high and in_share(i, theirs, of)


@cuda.jit(device=True)
def look_up_long_columns(
    col_ptr, row_idx, far_count, long_columns, list_sizes, lanes, of, theirs, low, high, support, tally
):  # fmt: skip
    """A block per long column j: its far rows go into a hash table, where the far rows of each column i are looked up.

    Few of them are there: so most are ruled out by a filter, which takes one read and no loop.

    lanes: threads that share a column i. of: 1 for all columns i; else only those of `counts_far_column`. tally: add to
    the support of all three edges; the nonzero of each row is then behind the filter. Returns the number of triangles
    that this thread finds.
    """
    table = cuda.shared.array(0, int32)
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    count = int64(0)
    task = cuda.blockIdx.x
    while task < list_sizes[LONG_LIST]:
        j = long_columns[task]
        first, end = col_ptr[j], col_ptr[j] + far_count[j]
        e_begin, e_end = first, end
        if of > 1:
            e_begin = first_from(row_idx, first, end, low)
            e_end = first_from(row_idx, e_begin, end, high)
        while first < end and e_begin < e_end:
            length = min(end - first, TABLE_ROWS)
            size, shift = uint32(64), uint32(26)
            while size < 2 * length:
                size, shift = 2 * size, shift - 1
            entry = thread
            while entry < size:
                table[entry], table[size + entry] = EMPTY, 0
                entry += threads
            cuda.syncthreads()
            p = first + thread
            while p < first + length:
                at = insert(table, size - 1, shift, row_idx[p])
                add_to_filter(table, size, shift, row_idx[p])
                if tally:
                    table[2 * size + at] = p - first
                p += threads
            cuda.syncthreads()
            e = e_begin + thread // lanes
            while e < e_end:
                i = row_idx[e]
                if of == 1 or in_share(i, theirs, of):
                    q, q_end = col_ptr[i] + thread % lanes, col_ptr[i] + far_count[i]
                    if tally:
                        found = tally_rows(table, size, shift, row_idx, q, q_end, lanes, first, support)
                        if found != 0:
                            cuda.atomic.add(support, e, found)
                    else:
                        found = count_rows(table, size, shift, row_idx, q, q_end, lanes)
                    count += found
                e += threads // lanes
            cuda.syncthreads()
            first += length
        task += cuda.gridDim.x
    return count


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int64[::1])")
def hash_kernel(col_ptr, row_idx, far_count, long_columns, list_sizes, total):
    """A block per long column: count."""
    count = look_up_long_columns(
        col_ptr, row_idx, far_count, long_columns, list_sizes, LANES, 1, 0, 0, 0, row_idx, False
    )
    add_block_to(total, count)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def hash_tally(col_ptr, row_idx, far_count, long_columns, list_sizes, support):
    """A block per long column: count for each edge."""
    look_up_long_columns(col_ptr, row_idx, far_count, long_columns, list_sizes, 4, 1, 0, 0, 0, support, True)
