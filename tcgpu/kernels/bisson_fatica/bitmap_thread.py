"""`bitmap_thread`: a thread per column, which it holds in registers (Bisson & Fatica's kernel for short rows).

Contract: the same sum as `naive`. A thread reads a column of at most 12 rows into twelve registers. For every row i of
the column, it compares each row of column i with all twelve: no bitmap, no barrier. With more than twelve registers
the paper's kernel for edge support ran fewer threads on an SM.

Longer columns are counted too, slowly: the thread searches its column in memory for each row.
"""

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int32, int64, kernel
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device_graph import prepare

REGISTERS = 12
NO_ROW = -1


@cuda.jit(device=True)
def nth(row_idx, p, end):
    """Row p of a column that ends at `end`; NO_ROW past it."""
    return row_idx[p] if p < end else int32(NO_ROW)


@cuda.jit(device=True)
def hits_in_registers(row_idx, begin, end, col_ptr):
    """How many rows a column of at most REGISTERS rows shares with the columns of its rows."""
    r0, r1, r2 = nth(row_idx, begin, end), nth(row_idx, begin + 1, end), nth(row_idx, begin + 2, end)
    r3, r4, r5 = nth(row_idx, begin + 3, end), nth(row_idx, begin + 4, end), nth(row_idx, begin + 5, end)
    r6, r7, r8 = nth(row_idx, begin + 6, end), nth(row_idx, begin + 7, end), nth(row_idx, begin + 8, end)
    r9, r10, r11 = nth(row_idx, begin + 9, end), nth(row_idx, begin + 10, end), nth(row_idx, begin + 11, end)
    last, hits = row_idx[end - 1], int64(0)
    e = begin
    while e < end - 1:
        q, q_end = col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]
        while q < q_end:
            row = row_idx[q]
            if row > last:
                break
            hits += (row == r0) | (row == r1) | (row == r2) | (row == r3) | (row == r4) | (row == r5) | (
                row == r6) | (row == r7) | (row == r8) | (row == r9) | (row == r10) | (row == r11)  # fmt: skip
            q += 1
        e += 1
    return hits


@cuda.jit(device=True)
def hits_by_search(row_idx, begin, end, col_ptr):
    """`hits_in_registers` for a column of any length."""
    last, hits = row_idx[end - 1], int64(0)
    e = begin
    while e < end - 1:
        low = e + 1
        q, q_end = col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]
        while q < q_end:
            row = row_idx[q]
            if row > last:
                break
            low = first_from(row_idx, low, end - 1, row)  # both ascend: rows before `low` cannot match any more
            hits += row_idx[low] == row
            q += 1
        e += 1
    return hits


@kernel("void(int64[::1], int32[::1], int64[::1])")
def bitmap_thread_kernel(col_ptr, row_idx, total):
    count = int64(0)
    j = cuda.grid(1)
    while j < col_ptr.size - 1:
        begin, end = col_ptr[j], col_ptr[j + 1]
        if end - begin > REGISTERS:
            count += hits_by_search(row_idx, begin, end, col_ptr)
        elif end - begin > 1:
            count += hits_in_registers(row_idx, begin, end, col_ptr)
        j += cuda.gridsize(1)
    add_block_to(total, count)


@planner("bitmap_thread", prepare)
def plan(graph, *, threads, blocks):
    return Plan(
        method="bitmap_thread",
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx},
        created={},
        steps=[launch(bitmap_thread_kernel, graph.n, threads, blocks)],
        work=simulated.work(graph, 1.7 * graph.n, row_us=0.84),
    )


@plan.for_edges
def support_plan(graph, published=False):
    return support.plan(graph, "thread")
