"""Column i as a hash table in shared memory, in which rows of its in-edges are looked up.

Few look-ups find a row: a window in front of the table, with a bit for the last 16 bits of each row, rules out most
others with one read. `far.far_window_kernel` counts so the triangles with a far k of a large graph. `table_tally`
counts those of each edge: beside each entry of the table is a counter.
"""

from tcgpu.engines.runtime import cuda, int32, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import unpack_piece
from tcgpu.kernels.adaptive.windows import WINDOW_BYTES, WINDOW_WORDS, bit_of
from tcgpu.kernels.device.shared_memory import clear_counters

EMPTY = -1
HASH_FACTOR = 2654435769  # Knuth's multiplier: 2^32 over the golden ratio
TASKS = "uint64[::1], uint64[::1], uint64[::1], int32[::1]"


def table_bytes(rows, words):
    """Of shared memory, for a window and a table that is half full at most: `words` for each of its entries."""
    return WINDOW_BYTES + 8 * words * rows


@cuda.jit(device=True)
def insert(table, size, shift, row):
    """Insert a row into the hash table of size = 2^(32 - shift) entries."""
    entry = (uint32(row) * HASH_FACTOR) >> shift
    while cuda.atomic.cas(table, WINDOW_WORDS + entry, EMPTY, row) != EMPTY:
        entry = (entry + 1) & (size - 1)


@cuda.jit(device=True)
def entry_of(table, size, shift, row):
    """The place of the entry that has the row, or of the EMPTY entry that shows that the row is not in the table."""
    entry = (uint32(row) * HASH_FACTOR) >> shift
    while table[WINDOW_WORDS + entry] != EMPTY and table[WINDOW_WORDS + entry] != row:
        entry = (entry + 1) & (size - 1)
    return WINDOW_WORDS + entry


@cuda.jit(device=True)
def fill_table(table, bits, rows, first, length, counters):
    """The block writes rows[first : first + length] to the window, which is 0, and to the table behind it, and sets its
    counters to 0 if there are any. Returns the table's size, and the shift of its hash.

    table, bits: the same memory.
    """
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    size, shift = uint32(64), uint32(26)
    while size < 2 * length:
        size, shift = 2 * size, shift - 1
    entry = uint32(thread)
    while entry < size:
        table[WINDOW_WORDS + entry] = EMPTY
        if counters:
            table[WINDOW_WORDS + size + entry] = 0
        entry += threads
    cuda.syncthreads()
    p = first + thread
    while p < first + length:
        row = rows[p]
        insert(table, size, shift, row)
        cuda.atomic.or_(bits, (row & 0xFFFF) >> 5, 1 << (row & 31))
        p += threads
    cuda.syncthreads()
    return size, shift


@cuda.jit(device=True)
def clear_window(bits, rows, first, length):
    """The block clears the window of what `fill_table` wrote, once all threads are here."""
    cuda.syncthreads()
    p = first + cuda.threadIdx.x
    while p < first + length:
        bits[(rows[p] & 0xFFFF) >> 5] = 0
        p += cuda.blockDim.x
    cuda.syncthreads()


@cuda.jit(device=True)
def look_up(table, bits, size, shift, row, p, support):
    """1 if the table has a row, that of nonzero p, else 0; added to the support of p and to the entry's counter."""
    if row != EMPTY and bit_of(bits, row & 0xFFFF):
        entry = entry_of(table, size, shift, row)
        if table[entry] == row:
            cuda.atomic.add(support, p, 1)
            cuda.atomic.add(table, size + entry, 1)
            return int32(1)
    return int32(0)


@cuda.jit(device=True)
def look_up_rows(table, bits, size, shift, row_idx, p, p_end, lanes, support):
    """How many of the rows row_idx[p:p_end:lanes] the table has. Four are read at a time."""
    found = int32(0)
    while p < p_end:
        first, second, third, fourth = row_idx[p], int32(EMPTY), int32(EMPTY), int32(EMPTY)
        if p + lanes < p_end:
            second = row_idx[p + lanes]
        if p + 2 * lanes < p_end:
            third = row_idx[p + 2 * lanes]
        if p + 3 * lanes < p_end:
            fourth = row_idx[p + 3 * lanes]
        found += look_up(table, bits, size, shift, first, p, support)
        found += look_up(table, bits, size, shift, second, p + lanes, support)
        found += look_up(table, bits, size, shift, third, p + 2 * lanes, support)
        found += look_up(table, bits, size, shift, fourth, p + 3 * lanes, support)
        p += 4 * lanes
    return found


@cuda.jit(device=True)
def empty_table(table, bits, size, shift, row_idx, first, length, support):
    """Once all threads are here, the block adds a table's counters to its rows' support, and clears the window."""
    cuda.syncthreads()
    p = first + cuda.threadIdx.x
    while p < first + length:
        row = row_idx[p]
        bits[(row & 0xFFFF) >> 5] = 0
        found = table[size + entry_of(table, size, shift, row)]
        if found != 0:
            cuda.atomic.add(support, p, found)
        p += cuda.blockDim.x
    cuda.syncthreads()


@kernel(f"void(int32[::1], {TASKS}, int64, int64, int32[::1])")
def table_tally(row_idx, columns, pieces, in_edges, task_ptr, table_rows, lanes, support):
    """A block per task: column i goes into a table, `table_rows` rows at a time, where the rows of its in-edges are
    looked up. A row that is found is a triangle of edge (i, j), of (k, j) and of (k, i).

    lanes: threads that share an in-edge; they read the next one while they look up the rows of this one.
    """
    table, bits = cuda.shared.array(0, int32), cuda.shared.array(0, uint32)  # the same memory
    thread, threads, lanes = cuda.threadIdx.x, cuda.blockDim.x, uint32(lanes)
    clear_counters(bits, WINDOW_WORDS)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        first, end = unpack_piece(columns[task])
        begin, at_end = unpack_piece(pieces[task])
        while first < end:
            length = min(end - first, uint32(table_rows))
            size, shift = fill_table(table, bits, row_idx, first, length, True)
            at, piece = begin + thread // lanes, uint64(0)
            if at < at_end:
                piece = in_edges[at]
            while at < at_end:
                p, p_end = unpack_piece(piece)
                at += threads // lanes
                if at < at_end:
                    piece = in_edges[at]
                found = look_up_rows(table, bits, size, shift, row_idx, p + thread % lanes, p_end, lanes, support)
                if found != 0:
                    cuda.atomic.add(support, p - 1, found)  # of the nonzero (i, j), which is before its piece
            empty_table(table, bits, size, shift, row_idx, first, length, support)
            first += length
        task -= cuda.gridDim.x
