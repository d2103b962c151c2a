"""The arrays that `adaptive` makes on the device before it counts: near numbers, in-edges, tasks, rows of bits.

quads         four near numbers to a uint64, column after column; `near` is the same memory as uint16. A position in
              `near` is a slot. A column's numbers ascend to the end of its last quad; zeros pad its first quad in front
quad_ptr      quad_ptr[j] to quad_ptr[j + 1]: the quads of column j
in_edges      in_ptr[i] to in_end[i]: the in-edges of vertex i, columns j that have row i. Each is stored as the piece
              of `quads` with all near numbers of column j past i
far_edges     the same in-edges of the far vertices, as pieces of `row_idx` with all far rows of column j past i; or
              nothing, if `far_kernel` counts what has a far k
columns,      a task is a vertex i and some of its in-edges: columns[task] is the piece of `quads` or `row_idx` with the
  pieces      near or far rows of column i, pieces[task] the piece of `in_edges` or `far_edges`
hub_rows      HUB_WORDS uint64 for each hub h: bit k says that hubs h and k > h are neighbours

A piece is the offset and length of a part of an array, in a uint64. `pack_piece` makes it, `unpack_piece` reads it.

Share `index` of `of` takes every `of`-th of the listed columns, of the vertices whose in-edges are looked up, and of
the blocks that take nonzeros: each triangle is counted by one share. In degree order neighbouring columns have about
equal work, and so have the shares.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.built_in import HUBS, NEAR
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import Scan, Sized, launch, orientation
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.device.shared_memory import clear_counters
from tcgpu.kernels.device.warp import append_lanes
from tcgpu.kernels.device_graph import DeviceGraph

FIRST_HUB = NEAR + 1 - HUBS  # the near number of the first hub
HUB_WORDS = HUBS // 64  # words of a hub's row of bits
HUB_GROUP = 2048  # hubs: 32 lanes with a 64-bit word each
LENGTH_BITS = 24  # of a piece; the higher bits are its offset
MAX_TASK_IN_EDGES = 8192
SIZED_FROM = 1 << 25  # nonzeros from which on quads, in-edges and tasks get no more memory than they need


@cuda.jit(device=True)
def pack_piece(offset, length):
    """The piece of `length` elements from element `offset` on."""
    return uint64((int64(offset) << LENGTH_BITS) | int64(length))


@cuda.jit(device=True)
def unpack_piece(piece):
    """Where a piece begins and ends."""
    begin = uint32(piece >> LENGTH_BITS)
    return begin, begin + uint32(piece & ((1 << LENGTH_BITS) - 1))


@cuda.jit(device=True)
def slots(begin, end):
    """Where the slots of quads begin..end - 1 begin and end. There may be more slots than 32 bits can number."""
    return 4 * uint64(begin), 4 * uint64(end)


@cuda.jit(device=True)
def column_slots(quad_ptr, j):
    """Where the slots of column j, zeros included, begin and end."""
    return slots(quad_ptr[j], quad_ptr[j + 1])


@cuda.jit(device=True)
def near_number(near, slot):
    """The near number in a slot."""
    return uint32(near[slot])


@cuda.jit(device=True)
def unpack_quad(quad):
    """The four near numbers of a quad."""
    low, high = uint32(quad), uint32(quad >> 32)
    return low & 0xFFFF, low >> 16, high & 0xFFFF, high >> 16


@cuda.jit(device=True)
def shared_thread(index, of):
    """This thread's number in a grid that is `of` times as large; the blocks of this grid are share `index` of it."""
    return (int64(cuda.blockIdx.x) * of + index) * cuda.blockDim.x + cuda.threadIdx.x


@cuda.jit(device=True)
def in_share(number, index, of):
    """Whether the vertex or column with this number is in share `index`."""
    return uint32(number) % uint32(of) == index


@kernel("void(int64[::1], int32[::1], int64, int64, int64, int64, int32[::1], int32[::1], int32[::1], int64[::1])")
def measure_columns(
    col_ptr, row_idx, first_near, heavy_quads, index, of, far_count, quad_count, heavy_columns, list_size
):  # fmt: skip
    """A thread per column: count its far rows and the quads of its near rows; list it if it is heavy.

    The last columns, which have most work, are listed first. The list contains only the columns of share `index`.
    """
    lane = cuda.threadIdx.x & 31
    n = col_ptr.size - 1
    place = cuda.grid(1)
    while place - lane < n:  # whole warps
        j = n - 1 - place
        far = quads = int64(0)
        if j >= 0:
            begin, end = col_ptr[j], col_ptr[j + 1]
            far = first_from(row_idx, begin, end, first_near) - begin
            quads = (end - begin - far + 3) >> 2
            far_count[j], quad_count[j] = far, quads
        own = in_share(place, index, of)
        append_lanes(own and quads > heavy_quads, j, heavy_columns, list_size, 0)
        place += cuda.gridsize(1)


@kernel("void(int32[::1], int64[::1], int32[::1])")
def count_in_edges(degrees, col_ptr, in_count):
    """A thread per vertex: how many in-edges it has, its degree less its own column's length."""
    for v in range(cuda.grid(1), in_count.size, cuda.gridsize(1)):
        in_count[v] = degrees[v] - int32(col_ptr[v + 1] - col_ptr[v])


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int32[::1])")
def leave_out_hub_pairs(col_ptr, row_idx, quad_count, first_hub, heavy_quads, in_count):
    """A warp per column: if it is heavy, take one off the in-edges of each of its rows that is a hub: `hub_kernel`
    counts these."""
    left_out = cuda.shared.array(HUBS, int32)
    clear_counters(left_out, HUBS)
    lane, j = cuda.threadIdx.x & 31, quad_count.size - 1 - (cuda.grid(1) >> 5)
    while j >= 0:
        if quad_count[j] > heavy_quads:
            p = col_ptr[j + 1] - 1 - lane
            while p >= col_ptr[j] and row_idx[p] >= first_hub:  # the last rows of the column
                cuda.atomic.add(left_out, row_idx[p] - first_hub, 1)
                p -= 32
        j -= cuda.gridsize(1) >> 5
    cuda.syncthreads()
    hub = int64(cuda.threadIdx.x)
    while first_hub + hub < in_count.size:
        if left_out[hub] > 0:
            cuda.atomic.add(in_count, first_hub + hub, -left_out[hub])
        hub += cuda.blockDim.x


@cuda.jit(device=True)
def slot_of_nonzero(col_ptr, quad_ptr, e, j):
    """The slot of nonzero e of column j, whose row is near."""
    return 4 * int64(quad_ptr[j + 1]) - (col_ptr[j + 1] - e)


@cuda.jit(device=True)
def lay_out_nonzero(e, i, j, col_ptr, quad_ptr, first_near, first_hub, heavy_quads, near):
    """Write i's near number, if it has one, to column j's quads. Returns (begin, end, is_in_edge).

    Quads begin to end - 1 have all near numbers of column j past i. They make an in-edge of i unless there are none, or
    `hub_kernel` counts them (i a hub, j heavy).
    """
    begin, end = int64(quad_ptr[j]), int64(quad_ptr[j + 1])
    by_hubs = i >= first_hub and end - begin > heavy_quads
    if i >= first_near:
        slot = slot_of_nonzero(col_ptr, quad_ptr, e, j)
        near[slot] = i - (col_ptr.size - 2 - NEAR)
        begin = (slot + 1) >> 2
    return begin, end, begin < end and not by_hubs


@cuda.jit(device=True)
def add_in_edge(e, i, j, begin, end, is_in_edge, col_ptr, far_count, in_end, in_edges, far_edges):
    """Add nonzero e = (i, j) to the in-edges of i: quads begin to end - 1, if they make one; and the far rows of column
    j past i, if there are any and `far_edges` is not empty."""
    far_rows = int64(0)
    if far_edges.size > 0:
        far_rows = max(far_rows, col_ptr[j] + far_count[j] - (e + 1))
    if is_in_edge or far_rows > 0:
        at = cuda.atomic.add(in_end, i, 1)
        in_edges[at] = pack_piece(begin, end - begin)
        if at < far_edges.size:
            far_edges[at] = pack_piece(e + 1, far_rows)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int64[::1],"
    " uint16[::1], uint64[::1], uint64[::1])"
)
def lay_out(
    col_ptr, row_idx, col_of, far_count, quad_ptr, first_near, first_hub, heavy_quads, index, of, in_end, near,
    in_edges, far_edges,
):  # fmt: skip
    """A thread per nonzero (i, j): write i's near number to column j's quads, and column j to the in-edges of i.

    Only in-edges of this share's vertices i. in_end[i] is the position of i's next in-edge.
    """
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        begin, end, is_in_edge = lay_out_nonzero(e, i, j, col_ptr, quad_ptr, first_near, first_hub, heavy_quads, near)
        if in_share(i, index, of):
            add_in_edge(e, i, j, begin, end, is_in_edge, col_ptr, far_count, in_end, in_edges, far_edges)


@kernel("void(int64[::1], int64[::1], int32[::1], int64, int64, int32[::1])")
def count_tasks(in_ptr, in_end, lengths, fewest, fewer, tasks):
    """A thread per vertex i: how many tasks it has if lengths[i] > 0 and fewest <= in-edges < fewer."""
    for i in range(cuda.grid(1), tasks.size, cuda.gridsize(1)):
        in_edges = in_end[i] - in_ptr[i]
        made = int64(0)
        if fewest <= in_edges < fewer and lengths[i] > 0:
            made = (in_edges + MAX_TASK_IN_EDGES - 1) // MAX_TASK_IN_EDGES
        tasks[i] = made


@kernel("void(int64[::1], int32[::1])")
def measure_lengths(col_ptr, lengths):
    """A thread per column: how many rows it has."""
    for j in range(cuda.grid(1), lengths.size, cuda.gridsize(1)):
        lengths[j] = col_ptr[j + 1] - col_ptr[j]


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64[::1], uint64[::1])")
def list_in_edges(col_ptr, row_idx, col_of, last, in_end, in_edges):
    """A thread per nonzero (i, j) with j before `last`: add the piece of `row_idx` with the rows of column j past i to
    the in-edges of i, if there are any."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        j = col_of[e]
        rows = col_ptr[j + 1] - (e + 1)
        if j < last and rows > 0:
            in_edges[cuda.atomic.add(in_end, row_idx[e], 1)] = pack_piece(e + 1, rows)


TASK_TYPES = "int32[::1], int32[::1], uint64[::1], uint64[::1]"


@kernel(*(f"void(int64[::1], int64[::1], {begins}, {TASK_TYPES})" for begins in ("int32[::1]", "int64[::1]")))
def fill_tasks(in_ptr, in_end, begins, lengths, task_ptr, columns, pieces):
    """A thread per vertex i: write its tasks. begins, lengths: the piece that is column i."""
    for i in range(cuda.grid(1), task_ptr.size - 1, cuda.gridsize(1)):
        first = in_ptr[i]
        for task in range(task_ptr[i], task_ptr[i + 1]):
            columns[task] = pack_piece(begins[i], lengths[i])
            pieces[task] = pack_piece(first, min(MAX_TASK_IN_EDGES, in_end[i] - first))
            first += MAX_TASK_IN_EDGES


@kernel("void(uint16[::1], int32[::1], int64, uint32[::1], int64[::1])")
def fill_hub_rows(near, quad_ptr, hubs, hub_rows32, queue):
    """A warp per hub h: set bit k of row h for each hub k > h that is a neighbour. Sets the queue to 0."""
    thread, lane = cuda.grid(1), cuda.threadIdx.x & 31
    if thread == 0:
        queue[0] = 0
    n = quad_ptr.size - 1
    h, first = HUBS - 1 - (thread >> 5), HUBS - min(hubs, n)
    while h >= first:
        v = n - HUBS + h
        p, end = column_slots(quad_ptr, v)
        p += lane
        while p < end:
            k = int64(near[p]) - FIRST_HUB
            if k >= 0:
                cuda.atomic.or_(hub_rows32, 2 * HUB_WORDS * h + (k >> 5), 1 << (k & 31))
            p += 32
        h -= cuda.gridsize(1) >> 5


# ------------------------------------------------------------------------------- what plans launch and create for these


def columns_of(graph):
    """The arrays of a graph that plans copy to the device."""
    return {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}


def most_quads(graph):
    """The most quads that the near numbers of a graph can need."""
    return graph.m // 4 + min(graph.n, graph.m) + 1


class SetUp(NamedTuple):
    """Arrays and set-up steps at the beginning of a plan, as in `Plan`."""

    copied: dict
    created: dict
    setup: list


def room_for_in_edges(graph):
    """The SetUp that counts each vertex' in-edges, and has memory for them."""
    n, m, copied = graph.n, graph.m, columns_of(graph)
    counting = launch(orientation.count_rows, m, 256, counts="in_count")
    if isinstance(graph, DeviceGraph) and graph.degrees is not None:
        copied["degrees"] = graph.degrees
        counting = launch(count_in_edges, n, 256)
    created = {
        "in_count": (n, np.int32, 0),
        "in_ptr": (n + 1, np.int64, None),
        "in_end": (n + 1, np.int64, None),
        "in_edges": (m, np.uint64, None),
    }
    return SetUp(copied, created, [counting, Scan("in_count", "in_ptr", "in_end")])


def in_edges_by_degree(graph, first_near, heavy_quads, share=(0, 1)):
    """The SetUp before `lay_out` fills quads and in-edges: the list of heavy columns, and memory for the rest."""
    n, m = graph.n, graph.m
    counted = room_for_in_edges(graph)
    created = {
        "far_count": (n, np.int32, None),
        "quad_count": (n, np.int32, None),
        "quad_ptr": (n + 1, np.int32, None),
        "heavy_columns": (min(n, m // (4 * heavy_quads + 1)), np.int32, None),
        "list_size": (1, np.int64, 0),
        "quads": (most_quads(graph), np.uint64, 0),
        **counted.created,
    }
    known = {"first_near": first_near, "heavy_quads": heavy_quads, "index": share[0], "of": share[1]}
    setup = [
        launch(measure_columns, n, 256, **known),
        Scan("quad_count", "quad_ptr"),
        *counted.setup,
    ]
    return SetUp(counted.copied, created, setup)


def without_hub_pairs(made, n, first_hub, heavy_quads):
    """The SetUp of `in_edges_by_degree` with no more memory for quads and in-edges than there are: none for the
    in-edges that `hub_kernel` counts. It takes a kernel more, and the host waits."""
    *before, starts = made.setup
    setup = [
        *before,
        launch(leave_out_hub_pairs, 32 * n, 256, first_hub=first_hub, heavy_quads=heavy_quads),
        starts,
        Sized("quads", "quad_ptr", np.uint64, 0, ("near", np.uint16)),
        Sized("in_edges", "in_ptr", np.uint64),
    ]
    created = {name: array for name, array in made.created.items() if name not in ("quads", "in_edges")}
    return SetUp(made.copied, created, setup)


def far_edges_bytes(graph, near):
    """What a plan takes that lists far in-edges, whose number is estimated from a sample, at most: for an in-edge and
    its near row, or with a far one; for a vertex, and the tasks and padding of a column."""
    of_far = 64 * int((graph.row_idx[::64] < graph.n - near).sum())
    return 10 * graph.m + 6 * of_far + 48 * graph.n + 38 * int((graph.col_ptr[1:] > graph.col_ptr[:-1]).sum())


NEAR_ROWS = {"begins": "quad_ptr", "lengths": "quad_count"}  # the pieces of columns i in their tasks
FAR_ROWS = {"begins": "col_ptr", "lengths": "far_count"}


def tasks_by_in_edges(kind, n, in_edges, fewest, fewer, sized=False, rows=NEAR_ROWS):
    """The SetUp of the tasks of those of n vertices with fewest <= in-edges < fewer. They have `in_edges` at most.

    sized: whether their arrays are Sized: they get no more memory than they need, for which the host waits. rows:
    NEAR_ROWS or FAR_ROWS; a vertex without any of these has no task.
    """
    arrays = task_arrays(kind)
    created = {arrays["task_ptr"]: (n + 1, np.int32, None)}
    made = [Sized(arrays[name], arrays["task_ptr"], np.uint64) for name in ("columns", "pieces")]
    if not sized:
        most = (min(n, in_edges) if fewest == 1 else in_edges // fewest) + in_edges // MAX_TASK_IN_EDGES + 1
        created |= {each.name: (most, each.dtype, None) for each in made}
    setup = [
        # in_count: its values are used no longer
        launch(count_tasks, n, 256, fewest=fewest, fewer=fewer, lengths=rows["lengths"], tasks="in_count"),
        Scan("in_count", arrays["task_ptr"]),
        *(made if sized else []),
        launch(fill_tasks, n, 256, **rows, **arrays),
    ]
    return SetUp({}, created, setup)


def task_arrays(kind):
    """The arrays that hold tasks of one kind: parameter of a kernel -> name of the array."""
    return {name: f"{kind}_{name}" for name in ("task_ptr", "columns", "pieces")}
