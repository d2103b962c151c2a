"""A count of a graph whose columns are divided among workers: each counts the nonzeros (i, j) of the columns j it owns.

Of `of` workers, number `index` owns the columns of vertices index, index + of, and so on; c numbers them from 0. It
lists the in-edges of all vertices i once: what its own columns have past i. Then columns i come to it in steps, to be
written to windows in which these are looked up: the near ones of all, then the far ones of one worker after the other.
So the steps of all workers count each triangle once, and none has the whole graph.
"""

from typing import Any, NamedTuple

import numpy as np

from tcgpu.built_in import HUBS, NEAR
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import MAX_EDGES, Plan, launch, run
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.adaptive.hubs import HUB_BYTES, hub_kernel
from tcgpu.kernels.adaptive.layout import HUB_WORDS
from tcgpu.kernels.adaptive.plan import CLASSES, MAX_QUADS, far_windows, near_windows
from tcgpu.kernels.picking import Marked, between
from tcgpu.kernels.prefix_sum import scan


class QuadColumns(NamedTuple):
    """Columns that come to a worker: the far rows of each, and its near rows as quads."""

    far_count: Any
    far_ptr: Any
    far_rows: Any
    quad_count: Any
    quad_ptr: Any
    quads: Any

    @classmethod
    def of_counts(cls, far_count, quad_count, far_rows, quads):
        """With these numbers of far rows and quads."""
        return cls(far_count, _starts(far_count, np.int64), far_rows, quad_count, _starts(quad_count, np.int32), quads)


class Own(NamedTuple):
    """What a worker has of its own: its columns, the heavy ones among them, and the in-edges of all vertices.

    The lists of in-edges of a worker's far vertices follow one another: that of vertex i is number
    (i % of) * stride + i // of. Those of near vertices come last, from number of * stride on.
    """

    n: int
    of: int
    stride: int
    first_near: int
    far_count: Any
    far_ptr: Any
    far_rows: Any
    hub_count: Any
    quad_count: Any
    quad_ptr: Any
    quads: Any
    high: Any
    heavy_columns: Any
    list_size: Any
    in_ptr: Any
    in_end: Any
    in_edges: Any

    def far_columns(self, index):
        """How many far columns a worker owns."""
        return max(0, -(-(self.first_near - index) // self.of))

    def part(self, begin, end):
        """What `QuadColumns.of_counts` takes of own columns begin..end - 1."""
        far, far_end = (int(self.far_ptr[k]) for k in (begin, end))
        counts = self.quad_count[begin:end]
        quads = _copied(self.quad_ptr[begin + 1 : end + 1], _starts(counts, np.int32), self.quads)
        return [self.far_count[begin:end], counts, self.far_rows[far:far_end], quads]

    def lists(self, begin, end):
        """The arrays of a plan by which tasks find lists begin..end - 1."""
        return {"in_ptr": self.in_ptr[begin : end + 1], "in_end": self.in_end[begin : end + 1]}


def lay_out(n, of, col_ptr, row_idx, col_of, *, near=NEAR, hubs=HUBS, heavy=CLASSES[2]):
    """The Own of a worker with these columns c, whose rows are vertices in degree order. near, hubs, heavy: knobs."""
    columns, m = col_ptr.size - 1, row_idx.size
    if m > MAX_EDGES or m // 4 + 2 * columns > MAX_QUADS:
        raise GraphError(f"{m:,} edges of a worker are too many for its near rows: more GPUs have fewer each")
    near = min(near, n)
    first_near, first_hub, heavy_quads, stride = n - near, n - min(hubs, near), heavy // 4, -(-n // of)
    far_count, hub_count, quad_count, all_quads = (runtime.device_array(columns, np.int32) for _ in range(4))
    most_heavy, list_size = min(columns, m // (4 * heavy_quads + 1)), runtime.device_array(1, np.int64, 0)
    heavy_columns = runtime.device_array(most_heavy, np.int32)
    cuts = n, col_ptr, row_idx, first_near, first_hub, heavy_quads, layout.FEWEST_HUBS, 1, 0, 1
    measured = far_count, hub_count, quad_count, all_quads, heavy_columns, list_size
    run(layout.measure_columns, columns, *cuts, *measured)
    if columns and int(far_count.max()) > layout.MOST_FAR:
        raise GraphError(f"{int(far_count.max()):,} far rows of a column are too many for the list of its in-edges")
    quad_ptr, in_count = _starts(all_quads, np.int32), runtime.device_array(of * stride + near, np.int32, 0)
    lists = 0, 1, of, stride
    run(layout.count_in_edges, m, col_ptr, row_idx, col_of, hub_count, first_near, *lists, in_count)
    in_ptr = _starts(in_count, np.int64)
    in_end, in_edges = in_ptr.astype(np.uint32), runtime.device_array(int(in_ptr[-1]), np.uint64)
    quads, high = (runtime.device_array(int(quad_ptr[-1]), np.uint64, 0) for _ in range(2))
    near, high, lists = quads.view(np.uint16), high.view(np.uint16), (first_near, first_near, 1, *lists)
    of_columns = col_ptr, row_idx, col_of, far_count, hub_count, quad_ptr
    run(layout.lay_out, m, n, *of_columns, *lists, in_end, near, high, in_edges)
    far_rows = Marked(between(row_idx, 0, first_near - 1)).of(row_idx)
    return Own(
        n, of, stride, first_near, far_count, _starts(far_count, np.int64), far_rows, hub_count, quad_count, quad_ptr,
        quads, high, heavy_columns, list_size, in_ptr, in_end, in_edges,
    )  # fmt: skip


def _starts(counts, dtype):
    """Where the elements of each begin, and the last ones end."""
    starts = runtime.device_array(counts.size + 1, dtype)
    scan(counts, starts)
    return starts


# -------------------------------------------------------------------------------------------------------------- steps


@kernel("void(int32[::1], int32[::1], uint64[::1], uint64[::1])")
def copy_quads(ends, quad_ptr, gathered, quads):
    """A warp per column: copy its quads, of which the last is before ends[c], to where they belong."""
    for c in range(cuda.grid(1) >> 5, quad_ptr.size - 1, cuda.gridsize(1) >> 5):
        end = quad_ptr[c + 1]
        for p in range(quad_ptr[c] + int64(cuda.threadIdx.x & 31), end, 32):
            quads[p] = gathered[ends[c] - (end - p)]


def _copied(ends, quad_ptr, gathered):
    """The quads of columns that end at `ends` among the gathered ones, one column's after the other's."""
    quads = runtime.device_array(int(quad_ptr[-1]), np.uint64)
    run(copy_quads, 32 * ends.size, ends, quad_ptr, gathered, quads)
    return quads


def near_columns(own, counts, quads):
    """(quad_count, quad_ptr, quads) of the columns of all near vertices.

    counts: for each worker, how many quads its own near columns have; quads: theirs, those of one worker after the
    other's.
    """
    near = own.n - own.first_near
    quad_count, ends = (runtime.device_array(near, np.int32) for _ in range(2))
    first = 0
    for index, found in enumerate(counts):
        columns, starts = slice((index - own.first_near) % own.of, None, own.of), _starts(found, np.int32)
        quad_count[columns], ends[columns] = found, starts[1:] + first
        first += int(starts[-1])
    quad_ptr = _starts(quad_count, np.int32)
    return quad_count, quad_ptr, _copied(ends, quad_ptr, quads)


def near_plan(own, quad_count, quad_ptr, quads, *, crowd=CLASSES[3]):
    """The Plan of the step with the columns of all near vertices, and of hubs by hubs. crowd: a knob."""
    near, first = own.n - own.first_near, own.of * own.stride
    tasks, windows = near_windows(near, own.in_edges.size, crowd, True)
    return _plan(
        own,
        {
            "near": quads.view(np.uint16), "quad_ptr": quad_ptr, "quad_count": quad_count,
            "own_near": own.quads.view(np.uint16), "own_ptr": own.quad_ptr, "own_count": own.quad_count,
            "hub_count": own.hub_count, "heavy_columns": own.heavy_columns, "list_size": own.list_size,
            **own.lists(first, first + near),
        },
        {
            "in_count": (near, np.int32, None), "hub_rows": ((NEAR + 1) * HUB_WORDS, np.uint64, 0),
            "queue": (1, np.int64, None),
        },
        tasks,
        [
            launch(layout.fill_hub_rows, 32 * near, 256, rows=near, first_number=0),
            launch(hub_kernel, 32 * own.heavy_columns.size, 128, 4224, HUB_BYTES, first_number=0,
                   near="own_near", quad_ptr="own_ptr", quad_count="own_count"),
            *windows,
        ],
        {"hub_rows32": ("hub_rows", np.uint32)},
    )  # fmt: skip


def far_plan(own, index, begin, columns, *, crowd=CLASSES[3]):
    """The Plan of a step with some far columns of worker `index`, its own from column `begin` on."""
    number, first = columns.far_count.size, index * own.stride + begin
    near_tasks, windows = near_windows(number, own.in_edges.size, crowd, True)
    far_tasks, far_launches = far_windows(number, "far_rows")
    return _plan(
        own,
        {
            "near": columns.quads.view(np.uint16), "quad_ptr": columns.quad_ptr, "quad_count": columns.quad_count,
            "col_ptr": columns.far_ptr, "far_count": columns.far_count, "far_rows": columns.far_rows,
            "high": own.high, **own.lists(first, first + number),
        },
        {"in_count": (number, np.int32, None)},
        near_tasks + far_tasks,
        windows + far_launches,
    )  # fmt: skip


def _plan(own, copied, created, tasks, steps, views=None):
    """A Plan with these arrays, which are on the device, those of a worker and of the tasks, and these steps."""
    return Plan(
        method="adaptive",
        copied={"quads": own.quads, "in_edges": own.in_edges, **copied},
        created={**created, **{name: array for kind in tasks for name, array in kind.created.items()}},
        views=views or {},
        setup=[step for kind in tasks for step in kind.setup],
        steps=steps,
    )
