"""Column i as a hash table in shared memory, in which rows of its in-edges are looked up.

A column with d rows takes d (d - 1) / 2 look-ups in all, few of which find a row: a filter rules out most others with
one read. The price is the list of in-edges. `far_window_kernel` counts so the triangles with a far k of a large graph.
`table_tally` counts those of each edge, with any k: beside each entry of the table is a counter.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import unpack_piece
from tcgpu.kernels.device.warp import add_warps_to

EMPTY = -1
NO_ROW = -2  # in no table
HASH_FACTOR = 2654435769  # Knuth's multiplier: 2^32 over the golden ratio
# Bytes of shared memory for a row of a table that is half full at most: an entry and a word of the filter, twice; and
# with counters
ROW_BYTES, COUNTED_ROW_BYTES = 16, 24


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
def look_up(table, size, shift, row, p, sums, tallying):
    """1 if the table has a row, that of nonzero p, else 0. If `tallying`, add that to sum p and the entry's counter."""
    found = int32(0)
    if may_have(table, size, shift, row):
        entry = entry_of(table, size - 1, shift, row)
        if table[entry] == row:
            found = int32(1)
            if tallying:
                cuda.atomic.add(sums, p, 1)
                cuda.atomic.add(table, 2 * size + entry, 1)
    return found


@cuda.jit(device=True)
def look_up_rows(table, size, shift, row_idx, p, p_end, lanes, sums, tallying):
    """How many of the rows row_idx[p:p_end:lanes] the table has. Four are read at a time."""
    found = int32(0)
    while p < p_end:
        first, second, third, fourth = row_idx[p], int32(NO_ROW), int32(NO_ROW), int32(NO_ROW)
        if p + lanes < p_end:
            second = row_idx[p + lanes]
        if p + 2 * lanes < p_end:
            third = row_idx[p + 2 * lanes]
        if p + 3 * lanes < p_end:
            fourth = row_idx[p + 3 * lanes]
        found += look_up(table, size, shift, first, p, sums, tallying)
        found += look_up(table, size, shift, second, p + lanes, sums, tallying)
        found += look_up(table, size, shift, third, p + 2 * lanes, sums, tallying)
        found += look_up(table, size, shift, fourth, p + 3 * lanes, sums, tallying)
        p += 4 * lanes
    return found


@cuda.jit(device=True)
def fill_table(table, row_idx, first, length, tallying):
    """The block writes rows row_idx[first:first + length] to a hash table with a filter and, if `tallying`, counters.
    Returns the table's size, and the shift of the hash."""
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    size, shift = uint32(64), uint32(26)
    while size < 2 * length:
        size, shift = 2 * size, shift - 1
    entry = uint32(thread)
    while entry < size:
        table[entry], table[size + entry] = EMPTY, 0
        if tallying:
            table[2 * size + entry] = 0
        entry += threads
    cuda.syncthreads()
    p = first + thread
    while p < first + length:
        insert(table, size - 1, shift, row_idx[p])
        add_to_filter(table, size, shift, row_idx[p])
        p += threads
    cuda.syncthreads()
    return size, shift


@cuda.jit(device=True)
def empty_table(table, size, shift, row_idx, first, length, sums):
    """The block adds the counters of a table's rows to their sums."""
    p = first + cuda.threadIdx.x
    while p < first + length:
        found = table[2 * size + entry_of(table, size - 1, shift, row_idx[p])]
        if found != 0:
            cuda.atomic.add(sums, p, found)
        p += cuda.blockDim.x


@cuda.jit(device=True)
def look_up_tasks(column_rows, row_idx, columns, pieces, in_edges, task_ptr, step, table_rows, lanes, sums, tallying):
    """A block per task: column i goes into a table, `table_rows` rows at a time, where the rows of its in-edges are
    looked up. Returns how many this thread finds; if `tallying`, adds them to the sums of nonzeros.

    column_rows: where columns i are; `row_idx`, if they are in the same array as the in-edges' rows. Every `step`-th
    element of `in_edges` is one. lanes: threads that share an in-edge; they read the next one while they look up the
    rows of this one.
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
            size, shift = fill_table(table, column_rows, first, length, tallying)
            at, piece = begin + thread // lanes, uint64(0)
            if at < at_end:
                piece = in_edges[step * at]
            while at < at_end:
                p, p_end = unpack_piece(piece)
                at += threads // lanes
                if at < at_end:
                    piece = in_edges[step * at]
                found = look_up_rows(table, size, shift, row_idx, p + thread % lanes, p_end, lanes, sums, tallying)
                if tallying and found != 0:
                    cuda.atomic.add(sums, p - 1, found)  # of the nonzero (i, j), which is before its piece
                count += found
            cuda.syncthreads()
            if tallying:
                empty_table(table, size, shift, column_rows, first, length, sums)
                cuda.syncthreads()
            first += length
        task -= cuda.gridDim.x
    return count


TASKS = "uint64[::1], uint64[::1], uint64[::1], int32[::1]"


@kernel(f"void(int32[::1], int32[::1], {TASKS}, int64, int64, int64, int64[::1])")
def far_window_kernel(column_rows, row_idx, columns, pieces, far_edges, task_ptr, step, table_rows, lanes, total):
    """Count the rows that are found."""
    no_sums = row_idx
    count = look_up_tasks(
        column_rows, row_idx, columns, pieces, far_edges, task_ptr, step, table_rows, lanes, no_sums, False
    )
    add_warps_to(total, count)


@kernel(f"void(int32[::1], {TASKS}, int64, int64, int32[::1])")
def table_tally(row_idx, columns, pieces, in_edges, task_ptr, table_rows, lanes, support):
    """Count the triangles of each edge: a row that is found is one of edge (i, j), of (k, j) and of (k, i)."""
    look_up_tasks(row_idx, row_idx, columns, pieces, in_edges, task_ptr, 1, table_rows, lanes, support, True)
