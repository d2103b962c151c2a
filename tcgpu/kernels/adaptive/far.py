"""Triangles j < i < k with a far k: columns are merged. In a large graph, where it pays to list far rows with the
in-edges, they are looked up in column i.

Few of these look-ups find a row. As near numbers are, the last 16 bits of rows are looked up in a window, a quad at a
time; only if one has its bit there, its first 16 bits are read, and a hash table decides.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.adaptive.layout import far_part, in_share, unpack_piece, unpack_quad
from tcgpu.kernels.adaptive.tables import TASKS, clear_window, entry_of, fill_table
from tcgpu.kernels.adaptive.windows import WINDOW_WORDS, bit_of
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.shared_memory import clear_counters
from tcgpu.kernels.device.warp import add_warps_to

# How far_window_kernel is launched: in-edges, from and below; threads; rows of a table, a power of two; lanes
FEW_IN_EDGES, NO_LIMIT = 32, 2**31 - 1
FAR_WINDOWS = (FEW_IN_EDGES, NO_LIMIT, 256, 1024, 16), (1, FEW_IN_EDGES, 64, 128, 8)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64[::1])")
def far_kernel(col_ptr, row_idx, col_of, far_count, index, of, total):
    """A thread per nonzero (i, j), with i in share `index`: merge the far rows of columns i and j.

    Most nonzeros are near and have nothing to do.
    """
    count = int64(0)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        p_end = col_ptr[j] + far_count[j]
        if e + 1 < p_end and (of == 1 or in_share(i, index, of)):
            q = col_ptr[i]
            count += common_values(row_idx, e + 1, p_end, row_idx, q, q + far_count[i])
    add_warps_to(total, count)


@cuda.jit(device=True)
def numbers_set(bits, quad):
    """Which of a quad's four numbers have their bit in the window, as four bits."""
    a, b, c, d = unpack_quad(quad)
    return bit_of(bits, a) | bit_of(bits, b) << 1 | bit_of(bits, c) << 2 | bit_of(bits, d) << 3


@cuda.jit(device=True)
def has_row(table, size, shift, high, low):
    """1 if the table has the row with these halves, else 0."""
    row = int32(high) << 16 | int32(low)
    return uint32(table[entry_of(table, size, shift, row)] == row)


@kernel(f"void(int32[::1], uint16[::1], uint64[::1], {TASKS}, int64, int64, int64[::1])")
def far_window_kernel(column_rows, high, quads, columns, pieces, in_edges, task_ptr, table_rows, lanes, total):
    """A block per task: rows of column i, `table_rows` at a time, go into a window and a table, where the far rows of
    its in-edges are looked up.

    column_rows: has column i. lanes: threads that share an in-edge; they read the next one while they look up the rows
    of this one. A row whose bit is set waits for the next such row: until then the rest of it is read. Row 0 is in no
    column.
    """
    table, bits = cuda.shared.array(0, int32), cuda.shared.array(0, uint32)  # the same memory
    thread, threads, lanes = cuda.threadIdx.x, cuda.blockDim.x, uint32(lanes)
    clear_counters(bits, WINDOW_WORDS)
    count = int64(0)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        first, end = unpack_piece(columns[task])
        begin, at_end = unpack_piece(pieces[task])
        while first < end:
            length = min(end - first, uint32(table_rows))
            size, shift = fill_table(table, bits, column_rows, first, length, False)
            found, waiting_high, waiting_low = uint32(0), uint32(0), uint32(0)
            at, in_edge = begin + thread // lanes, uint64(0)
            if at < at_end:
                in_edge = in_edges[at]
            while at < at_end:
                q, q_end = far_part(in_edge)
                q += thread % lanes
                at += threads // lanes
                if at < at_end:
                    in_edge = in_edges[at]
                while q < q_end:
                    quad, slot = quads[q], 4 * uint64(q)
                    hits = numbers_set(bits, quad)
                    while hits != 0:
                        if hits & 1:
                            found += has_row(table, size, shift, waiting_high, waiting_low)
                            waiting_high, waiting_low = uint32(high[slot]), uint32(quad) & 0xFFFF
                        hits, quad, slot = hits >> 1, quad >> 16, slot + 1
                    q += lanes
            count += found + has_row(table, size, shift, waiting_high, waiting_low)
            clear_window(bits, column_rows, first, length)
            first += length
        task -= cuda.gridDim.x
    add_warps_to(total, count)
