"""Triangles j < i < k with a far k: columns are merged.

In a large graph, where it pays to list in-edges for this, a column i becomes a hash table: `far_window_kernel`. The
*_kernel functions count; `far_tally` counts for each edge, as `support_plan` says.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import shared_thread, unpack_piece
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to

EMPTY = -1
NO_ROW = -2  # in no table
HASH_FACTOR = 2654435769  # Knuth's multiplier: 2^32 over the golden ratio
ROW_BYTES = 16  # of a hash table, half full at most, and its filter, for a row
# How far_window_kernel is launched: for which number of in-edges, from and below; threads; rows of a table, 32 at
# least; lanes.
FEW_IN_EDGES, NO_LIMIT = 32, 2**31 - 1
FAR_WINDOWS = (FEW_IN_EDGES, NO_LIMIT, 256, 1024, 16), (1, FEW_IN_EDGES, 32, 128, 8)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64[::1])")
def far_kernel(col_ptr, row_idx, col_of, far_count, index, of, total):
    """A thread per nonzero (i, j): merge the far rows of columns i and j.

    Most nonzeros are near and have nothing to do. Only the others read where column i begins.
    """
    count = int64(0)
    e = shared_thread(index, of)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j] + far_count[j]
        if e + 1 < p_end:
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


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def far_tally(col_ptr, row_idx, col_of, far_count, support):
    """As far_kernel, for each edge."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j] + far_count[j]
        if e + 1 < p_end:
            q = col_ptr[i]
            found = tally_common_values(row_idx, e + 1, p_end, q, q + far_count[i], support)
            if found != 0:
                cuda.atomic.add(support, e, found)
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def insert(table, mask, shift, row):
    """Insert a row into a hash table of mask + 1 = 2^(32 - shift) entries."""
    entry = (uint32(row) * HASH_FACTOR) >> shift
    while cuda.atomic.cas(table, entry, EMPTY, row) != EMPTY:
        entry = (entry + 1) & mask


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
def has_row(table, size, shift, row):
    """Whether the table has the row."""
    found = False
    if may_have(table, size, shift, row):
        found = table[entry_of(table, size - 1, shift, row)] == row
    return found


@cuda.jit(device=True)
def count_rows(table, size, shift, row_idx, q, q_end, lanes):
    """How many of the rows row_idx[q:q_end:lanes] the table has. Four are read at a time."""
    found = int32(0)
    while q < q_end:
        first, second, third, fourth = row_idx[q], int32(NO_ROW), int32(NO_ROW), int32(NO_ROW)
        if q + lanes < q_end:
            second = row_idx[q + lanes]
        if q + 2 * lanes < q_end:
            third = row_idx[q + 2 * lanes]
        if q + 3 * lanes < q_end:
            fourth = row_idx[q + 3 * lanes]
        found += has_row(table, size, shift, first)
        found += has_row(table, size, shift, second)
        found += has_row(table, size, shift, third)
        found += has_row(table, size, shift, fourth)
        q += 4 * lanes
    return found


@cuda.jit(device=True)
def fill_table(table, row_idx, first, length):
    """The block writes rows row_idx[first:first + length] to a hash table with a filter; it returns the table's size,
    and the shift of the hash."""
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    size, shift = uint32(64), uint32(26)
    while size < 2 * length:
        size, shift = 2 * size, shift - 1
    entry = uint32(thread)
    while entry < size:
        table[entry], table[size + entry] = EMPTY, 0
        entry += threads
    cuda.syncthreads()
    p = first + thread
    while p < first + length:
        insert(table, size - 1, shift, row_idx[p])
        add_to_filter(table, size, shift, row_idx[p])
        p += threads
    cuda.syncthreads()
    return size, shift


@kernel(
    "void(int32[::1], int32[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], int64, int64, int64, int64[::1])"
)
def far_window_kernel(column_rows, row_idx, columns, pieces, far_edges, task_ptr, step, table_rows, lanes, total):
    """A block per task: the far rows of column i go into a hash table, where those of its in-edges are looked up.

    A column with d far rows takes d (d - 1) / 2 look-ups, few of which find a row: a filter rules out most of them with
    one read. The price is the list of in-edges. column_rows: where columns i are; `row_idx`, if they are in the same
    array as the in-edges' rows. Every `step`-th element of `far_edges` is one. table_rows: rows in the table at a time.
    lanes: threads that share an in-edge; they read the next one while they look up the rows of this one.
    """
    table = cuda.shared.array(0, int32)
    thread, threads, lanes, step = cuda.threadIdx.x, cuda.blockDim.x, uint32(lanes), uint64(step)
    count = int64(0)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        first, end = unpack_piece(columns[task])
        begin, at_end = unpack_piece(pieces[task])
        while first < end:
            length = min(end - first, uint32(table_rows))
            size, shift = fill_table(table, column_rows, first, length)
            at, piece = begin + thread // lanes, uint64(0)
            if at < at_end:
                piece = far_edges[step * at]
            while at < at_end:
                q, q_end = unpack_piece(piece)
                at += threads // lanes
                if at < at_end:
                    piece = far_edges[step * at]
                count += count_rows(table, size, shift, row_idx, q + thread % lanes, q_end, lanes)
            cuda.syncthreads()
            first += length
        task -= cuda.gridDim.x
    add_block_to(total, count)
