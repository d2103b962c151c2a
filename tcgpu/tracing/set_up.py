"""The set-up kernels of plans, in NumPy: `estimate` needs the arrays that they fill, of up to 10^8 edges.

Each function has the parameters of its kernel and fills the same arrays in seconds. What a GPU's atomic operations put
into an order that may differ each time is here in the order of the threads.
"""

import numpy as np

from tcgpu.errors import MethodError
from tcgpu.kernels import Step, orientation
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.device import columns

SIMULATED_EDGES = 30_000  # up to which other kernels run in the simulator
PART = 1 << 22  # nonzeros at a time, which limits the memory for intermediate arrays

pack_piece, slot_of_nonzero = layout.pack_piece.py_func, layout.slot_of_nonzero.py_func


def set_up(plan, graph):
    """Allocate a plan's arrays in main memory, and fill them as its set-up steps do.

    MethodError for a large graph if a step is neither a Scan nor one of IN_NUMPY: the simulator would take too long.
    """
    steps, plan.setup = plan.setup, []
    others = {step.kernel.__name__ for step in steps if isinstance(step, Step) and step.kernel not in IN_NUMPY}
    if others and graph.m > SIMULATED_EDGES:
        raise MethodError(
            f"{plan.method} sets up its arrays with {', '.join(sorted(others))}, which the simulator runs for up to "
            f"{SIMULATED_EDGES:,} edges, not {graph.m:,}: take a smaller graph"
        )
    plan.allocate()
    for step in steps:
        if isinstance(step, Step) and step.kernel in IN_NUMPY:
            IN_NUMPY[step.kernel](*(plan.arrays[arg] if isinstance(arg, str) else arg for arg in step.args))
        else:
            step.run(plan.arrays)


def find_col_ptr(col_of, col_ptr):
    begins = np.flatnonzero(np.diff(col_of, prepend=np.int32(-1)))
    col_ptr[col_of[begins]] = begins


def fill_empty_columns(col_of, col_ptr):
    empty = np.flatnonzero(col_ptr < 0)
    col_ptr[empty] = np.searchsorted(col_of, empty)


def count_rows(row_idx, counts):
    for part in parts_of(row_idx.size):
        counts += np.bincount(row_idx[part], minlength=counts.size)


def measure_columns(
    col_ptr, row_idx, first_near, heavy_quads, long_rows, index, of, far_count, quad_count, heavy_columns,
    long_columns, list_sizes,
):  # fmt: skip
    lengths = np.diff(col_ptr)
    filled = np.flatnonzero(lengths)
    far_count[:] = 0
    far_count[filled] = np.add.reduceat(row_idx < first_near, col_ptr[filled], dtype=np.int32)
    quad_count[:] = (lengths - far_count + 3) >> 2
    own = np.arange(lengths.size) % of == index  # of the columns from the last to the first
    lists = (quad_count > heavy_quads, heavy_columns, layout.HEAVY), (far_count >= long_rows, long_columns, layout.LONG)
    for listed, values, which in lists:
        found = lengths.size - 1 - np.flatnonzero(listed[::-1] & own)
        values[list_sizes[which] :][: found.size] = found
        list_sizes[which] += found.size


def lay_out(
    col_ptr, row_idx, col_of, quad_ptr, first_near, first_hub, heavy_quads, index, of, in_end, near, in_edges
):  # fmt: skip
    for part in parts_of(row_idx.size):
        e, i, j = np.arange(part.start, part.stop), row_idx[part], col_of[part]
        begin, end = quad_ptr[j], quad_ptr[j + 1]
        by_hubs = (i >= first_hub) & (end - begin > heavy_quads)
        is_near, slot = i >= first_near, slot_of_nonzero(col_ptr, quad_ptr, e, j)
        near[slot[is_near]] = i[is_near] - (col_ptr.size - 2 - layout.NEAR)
        begin = np.where(is_near, (slot + 1) >> 2, begin)
        kept = np.flatnonzero((begin < end) & ~by_hubs & (i % of == index))
        kept = kept[np.argsort(i[kept], kind="stable")]
        rows = i[kept]
        first = np.flatnonzero(np.diff(rows, prepend=np.int32(-1)))  # in-edge of each row
        counts = np.diff(first, append=rows.size)
        place = in_end[rows] + np.arange(rows.size) - np.repeat(first, counts)
        in_edges[place] = pack_piece(begin[kept], end[kept] - begin[kept])
        in_end[rows[first]] += counts


def count_tasks(in_ptr, in_end, quad_ptr, fewest, fewer, tasks):
    in_edges = (in_end - in_ptr)[: tasks.size]
    has_tasks = (fewest <= in_edges) & (in_edges < fewer) & (quad_ptr[:-1] < quad_ptr[1:])
    tasks[:] = np.where(has_tasks, -(-in_edges // layout.MAX_TASK_IN_EDGES), 0)


def fill_tasks(in_ptr, in_end, quad_ptr, task_ptr, columns, pieces):
    i = np.repeat(np.arange(task_ptr.size - 1), np.diff(task_ptr))
    first = in_ptr[i] + (np.arange(i.size) - task_ptr[i]) * layout.MAX_TASK_IN_EDGES
    columns[: i.size] = pack_piece(quad_ptr[i], quad_ptr[i + 1] - quad_ptr[i])
    pieces[: i.size] = pack_piece(first, np.minimum(layout.MAX_TASK_IN_EDGES, in_end[i] - first))


def parts_of(nonzeros):
    """Yield slices of at most PART nonzeros, which cover them all."""
    for begin in range(0, nonzeros, PART):
        yield slice(begin, min(nonzeros, begin + PART))


IN_NUMPY = {
    columns.find_col_ptr: find_col_ptr,
    columns.fill_empty_columns: fill_empty_columns,
    orientation.count_rows: count_rows,
    layout.measure_columns: measure_columns,
    layout.lay_out: lay_out,
    layout.count_tasks: count_tasks,
    layout.fill_tasks: fill_tasks,
}
