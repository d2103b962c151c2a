"""How much work the tasks of `adaptive`'s kernels in degree order are: it follows from the arrays of its plan.

Each function has the parameters of its kernel and returns a row per task, in the order in which blocks or warps take
the tasks: 1, and numbers whose sum, each times a weight, is about the time of the task. `sampling` finds the weights.
"""

import numpy as np

from tcgpu.kernels.adaptive import hubs, layout, windows


def work_of_tasks(step, arrays):
    """The rows of a Step's tasks; None if its kernel is none of KERNELS, or it has no task."""
    if step.kernel not in KERNELS:
        return None
    rows = KERNELS[step.kernel](*step.values(arrays))
    return np.stack([np.ones(rows[0].size), *rows], axis=1).astype(np.float32) if rows[0].size else None


def of_windows(near, quads, columns, pieces, in_edges, task_ptr, step, lanes, total):
    """In-edges, their quads, and quads of column i."""
    tasks = slice(None, task_ptr[-1])
    first, end = ends_of(pieces[tasks][::-1])
    quads_before = sums_before(np.subtract(*ends_of(in_edges)[::-1]))
    return end - first, quads_before[end] - quads_before[first], np.subtract(*ends_of(columns[tasks][::-1])[::-1])


def of_heavy_columns(near, quad_ptr, heavy_columns, list_size, queue, hub_rows, first_hub, total):
    """Quads of column j, and hubs in it."""
    j = heavy_columns[: list_size[0]]
    begin, end = (ends[j].astype(np.int64) for ends in (quad_ptr[:-1], quad_ptr[1:]))
    hubs_before = sums_before(near >= first_hub)
    return end - begin, hubs_before[4 * end] - hubs_before[4 * begin]


def ends_of(pieces):
    """Where each piece begins and ends."""
    return [end.astype(np.int64) for end in layout.unpack_piece.py_func(pieces)]


def sums_before(values):
    """The sum of the values before each, and of all."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])


KERNELS = {
    windows.window_kernel: of_windows,
    windows.crowd_kernel: of_windows,
    hubs.hub_kernel: of_heavy_columns,
}
