"""A count of a graph whose columns are divided among workers: each counts the nonzeros (i, j) of the columns j it owns.

Of `of` workers, number `index` owns the columns of vertices index, index + of, and so on; c numbers them from 0. It
lists the in-edges of all vertices i once: the pieces of its own quads and far rows that are past i. Then columns i come
to it in steps, to be written to windows in which these are looked up: the near ones of all, then the far ones of one
worker after the other. So the steps of all workers count each triangle once, and none has the whole graph.
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
from tcgpu.kernels.adaptive.layout import HUB_WORDS, pack_piece, slot_of_nonzero
from tcgpu.kernels.adaptive.plan import CLASSES, MAX_QUADS, far_windows, near_windows
from tcgpu.kernels.prefix_sum import scan


class QuadColumns(NamedTuple):
    """Columns of one worker: the far rows of each, and its near rows as quads."""

    far_count: Any
    far_ptr: Any
    far_rows: Any
    quad_count: Any
    quad_ptr: Any
    quads: Any

    @classmethod
    def of_counts(cls, far_count, quad_count, far_rows=None, quads=None):
        """With these numbers of far rows and quads; `far_rows` is not filled, and `quads` is 0, where they are None."""
        far_ptr, quad_ptr = _starts(far_count, np.int64), _starts(quad_count, np.int32)
        if far_rows is None:
            far_rows = runtime.device_array(int(far_ptr[-1]), np.int32)
            quads = runtime.device_array(int(quad_ptr[-1]), np.uint64, 0)
        return cls(far_count, far_ptr, far_rows, quad_count, quad_ptr, quads)

    def part(self, begin, end):
        """What `of_counts` takes of columns begin..end - 1."""
        far, far_end, quad, quad_end = (int(at[k]) for at in (self.far_ptr, self.quad_ptr) for k in (begin, end))
        parts = (self.far_count, begin, end), (self.quad_count, begin, end)
        parts += (self.far_rows, far, far_end), (self.quads, quad, quad_end)
        return [array[at:at_end] for array, at, at_end in parts]


class Own(NamedTuple):
    """What a worker has of its own: its columns, the heavy ones among them, and the in-edges of all vertices.

    The lists of in-edges of a worker's far vertices follow one another: that of vertex i is number
    (i % of) * stride + i // of. Those of near vertices come last, from number of * stride on.
    """

    n: int
    of: int
    stride: int
    first_near: int
    columns: QuadColumns
    heavy_columns: Any
    list_size: Any
    in_ptr: Any
    in_end: Any
    far_pairs: Any  # of each in-edge of a far vertex the quads, then the far rows: they are written together
    near_edges: Any

    def far_columns(self, index):
        """How many far columns a worker owns."""
        return max(0, -(-(self.first_near - index) // self.of))


# ------------------------------------------------------------------------------------------- own columns and in-edges


@cuda.jit(device=True)
def list_of(i, of, stride, first_near):
    """The number of the list with the in-edges of vertex i."""
    return of * stride + i - first_near if i >= first_near else (i % of) * stride + i // of


@cuda.jit(device=True)
def pieces_past(e, i, c, col_ptr, far_ptr, quad_ptr, first_near, first_hub, heavy_quads):
    """What own column c has past row i of its nonzero e: (first quad, number of quads, first far row, number of rows).
    No quads if `hub_kernel` counts them."""
    begin, end = int64(quad_ptr[c]), int64(quad_ptr[c + 1])
    first, far_end = far_ptr[c] + (e - col_ptr[c]) + 1, far_ptr[c + 1]
    if i >= first_near:
        by_hubs = i >= first_hub and end - begin > heavy_quads
        begin = end if by_hubs else (slot_of_nonzero(col_ptr, quad_ptr, e, c) + 1) >> 2
        first = far_end
    return begin, end - begin, first, far_end - first


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64, int64, int64, int64, int64, int64,"
    " int32[::1], uint16[::1], int32[::1])"
)
def lay_out_own(
    col_ptr, row_idx, col_of, far_ptr, quad_ptr, first_near, first_hub, heavy_quads, n, of, stride, far_rows, near,
    in_count,
):  # fmt: skip
    """A thread per nonzero (i, c) of own columns: write i to their far rows, or its near number to their quads; count
    it among the in-edges of i, if it is one."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, c = int64(row_idx[e]), col_of[e]
        if i >= first_near:
            near[slot_of_nonzero(col_ptr, quad_ptr, e, c)] = i - (n - 1 - NEAR)
        else:
            far_rows[far_ptr[c] + (e - col_ptr[c])] = i
        _, quads, _, rows = pieces_past(e, i, c, col_ptr, far_ptr, quad_ptr, first_near, first_hub, heavy_quads)
        if quads + rows > 0:
            cuda.atomic.add(in_count, list_of(i, of, stride, first_near), 1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64, int64, int64, int64, int64, int64[::1],"
    " uint64[::1], uint64[::1])"
)
def list_in_edges(
    col_ptr, row_idx, col_of, far_ptr, quad_ptr, first_near, first_hub, heavy_quads, of, stride, in_end, far_pairs,
    near_edges,
):  # fmt: skip
    """A thread per nonzero (i, c) of own columns: write it to the list of in-edges of i, if it is one."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, c = int64(row_idx[e]), col_of[e]
        begin, quads, first, rows = pieces_past(e, i, c, col_ptr, far_ptr, quad_ptr, first_near, first_hub, heavy_quads)
        if quads + rows > 0:
            at = cuda.atomic.add(in_end, list_of(i, of, stride, first_near), 1)
            if i >= first_near:
                near_edges[at - far_pairs.size // 2] = pack_piece(begin, quads)
            else:
                far_pairs[2 * at], far_pairs[2 * at + 1] = pack_piece(begin, quads), pack_piece(first, rows)


def lay_out(n, of, col_ptr, row_idx, col_of, *, near=NEAR, hubs=HUBS, heavy=CLASSES[2]):
    """The Own of a worker with these columns c, whose rows are vertices in degree order. near, hubs, heavy: knobs."""
    columns, m = col_ptr.size - 1, row_idx.size
    if m > MAX_EDGES or m // 4 + columns > MAX_QUADS:
        raise GraphError(f"{m:,} edges of a worker are too many for its near rows: more GPUs have fewer each")
    near = min(near, n)
    first_near, first_hub, heavy_quads, stride = n - near, n - min(hubs, near), heavy // 4, -(-n // of)
    far_count, quad_count = (runtime.device_array(columns, np.int32) for _ in range(2))
    heavy_columns = runtime.device_array(min(columns, m // (4 * heavy_quads + 1)), np.int32)
    list_size = runtime.device_array(1, np.int64, 0)
    measured = far_count, quad_count, heavy_columns, list_size
    run(layout.measure_columns, columns, col_ptr, row_idx, first_near, heavy_quads, 0, 1, *measured)
    own = QuadColumns.of_counts(far_count, quad_count)
    in_count = runtime.device_array(of * stride + near, np.int32, 0)
    cuts = col_ptr, row_idx, col_of, own.far_ptr, own.quad_ptr, first_near, first_hub, heavy_quads
    run(lay_out_own, m, *cuts, n, of, stride, own.far_rows, own.quads.view(np.uint16), in_count)
    in_ptr = _starts(in_count, np.int64)
    in_end = in_ptr.copy()
    far_edges, in_edges = (int(in_ptr[k]) for k in (of * stride, -1))
    far_pairs, near_edges = (runtime.device_array(size, np.uint64) for size in (2 * far_edges, in_edges - far_edges))
    run(list_in_edges, m, *cuts, of, stride, in_end, far_pairs, near_edges)
    return Own(n, of, stride, first_near, own, heavy_columns, list_size, in_ptr, in_end, far_pairs, near_edges)


def _starts(counts, dtype):
    """Where the elements of each begin, and the last ones end."""
    starts = runtime.device_array(counts.size + 1, dtype)
    scan(counts, starts)
    return starts


# -------------------------------------------------------------------------------------------------------------- steps


@kernel("void(int64[::1], int32[::1], uint64[::1], uint64[::1])")
def copy_quads(begins, quad_ptr, gathered, quads):
    """A warp per column: copy its quads, which begin at begins[c], to where they belong."""
    c, columns = cuda.grid(1) >> 5, quad_ptr.size - 1
    while c < columns:
        to, p = int64(quad_ptr[c]), int64(cuda.threadIdx.x & 31)
        while to + p < quad_ptr[c + 1]:
            quads[to + p] = gathered[begins[c] + p]
            p += 32
        c += cuda.gridsize(1) >> 5


def near_columns(own, counts, quads):
    """(quad_count, quad_ptr, quads) of the columns of all near vertices.

    counts: for each worker, how many quads its own near columns have; quads: theirs, those of one worker after the
    other's.
    """
    near = own.n - own.first_near
    quad_count, begins = runtime.device_array(near, np.int32), runtime.device_array(near, np.int64)
    first = 0
    for index, found in enumerate(counts):
        columns, starts = slice((index - own.first_near) % own.of, None, own.of), _starts(found, np.int64)
        quad_count[columns], begins[columns] = found, starts[:-1] + first
        first += int(starts[-1])
    quad_ptr, in_order = _starts(quad_count, np.int32), runtime.device_array(first, np.uint64)
    run(copy_quads, 32 * near, begins, quad_ptr, quads, in_order)
    return quad_count, quad_ptr, in_order


def near_plan(own, quad_count, quad_ptr, quads, *, hubs=HUBS, crowd=CLASSES[3]):
    """The Plan of the step with the columns of all near vertices, and of hubs by hubs. hubs, crowd: knobs."""
    near, first, before = own.n - own.first_near, own.of * own.stride, own.far_pairs.size // 2  # of the lists of all
    hubs = min(hubs, near)
    tasks, windows = near_windows(near, own.near_edges.size, crowd, True)
    return _plan(
        {
            "near": quads.view(np.uint16), "quad_ptr": quad_ptr, "quad_count": quad_count,
            "in_ptr": own.in_ptr[first:] - before, "in_end": own.in_end[first:] - before,
            "in_edges": own.near_edges, "quads": own.columns.quads,
            "own_near": own.columns.quads.view(np.uint16), "own_quad_ptr": own.columns.quad_ptr,
            "heavy_columns": own.heavy_columns, "list_size": own.list_size,
        },
        {
            "in_count": (near, np.int32, None), "hub_rows": (HUBS * HUB_WORDS, np.uint64, 0),
            "queue": (1, np.int64, None),
        },
        tasks,
        [
            launch(layout.fill_hub_rows, 32 * hubs, 256, hubs=hubs),
            launch(hub_kernel, 32 * own.heavy_columns.size, 128, 4224, HUB_BYTES, first_hub=NEAR + 1 - hubs,
                   near="own_near", quad_ptr="own_quad_ptr"),
            *windows,
        ],
        {"hub_rows32": ("hub_rows", np.uint32)},
    )  # fmt: skip


def far_plan(own, index, begin, columns, *, crowd=CLASSES[3]):
    """The Plan of a step with some far columns of worker `index`, its own from column `begin` on."""
    number, first = columns.far_count.size, index * own.stride + begin
    lists = slice(first, first + number + 1)
    near_tasks, windows = near_windows(number, own.far_pairs.size // 2, crowd, True, step=2)
    far_tasks, tables = far_windows(number, "their_rows", step=2)
    return _plan(
        {
            "near": columns.quads.view(np.uint16), "quad_ptr": columns.quad_ptr, "quad_count": columns.quad_count,
            "col_ptr": columns.far_ptr, "far_count": columns.far_count, "their_rows": columns.far_rows,
            "in_ptr": own.in_ptr[lists], "in_end": own.in_end[lists], "quads": own.columns.quads,
            "in_edges": own.far_pairs, "far_edges": own.far_pairs[1:],
            "row_idx": own.columns.far_rows,
        },
        {"in_count": (number, np.int32, None)},
        near_tasks + far_tasks,
        windows + tables,
    )  # fmt: skip


def _plan(copied, created, tasks, steps, views=None):
    """A Plan with these arrays, which are on the device, those of the tasks, and these steps."""
    return Plan(
        method="adaptive",
        copied=copied,
        created={**created, **{name: array for kind in tasks for name, array in kind.created.items()}},
        views=views or {},
        setup=[step for kind in tasks for step in kind.setup],
        steps=steps,
    )
