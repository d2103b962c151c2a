"""The arrays that `adaptive` makes on the device before it counts: near numbers, in-edges, tasks, rows of bits.

quads         four numbers of 16 bits to a uint64, column after column; `near` is the same memory as uint16. A position
              in `near` is a slot. A column's near numbers ascend to the end of its last quad; zeros pad the first of
              these quads in front. In a large graph the last 16 bits of its far rows come before them, from the
              beginning of its first quad on; `high` has their first 16 bits in the same slots, and zeros behind them
quad_ptr      quad_ptr[j] to quad_ptr[j + 1]: the quads of column j. The last quad_count[j] of them have near numbers
in_edges      in_ptr[i] to in_end[i]: the in-edges of vertex i, columns j that have row i. Each is stored as the quads
              of column j with its rows past i: where the near ones begin, how many far ones are in front, and how many
              near ones there are
columns,      a task is a vertex i and some of its in-edges: columns[task] is the piece of `quads` or `row_idx` with the
  pieces      near or far rows of column i, pieces[task] the piece of `in_edges`
hub_rows      HUB_WORDS uint64 for each hub, in a large graph for each near vertex v: bit k says that hub k > v is a
              neighbour

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
from tcgpu.kernels.device.warp import append_lanes
from tcgpu.kernels.device_graph import DeviceGraph

FIRST_HUB = NEAR + 1 - HUBS  # the near number of the first hub
HUB_WORDS = HUBS // 64  # words of a hub's row of bits
HUB_GROUP = 2048  # hubs: 32 lanes with a 64-bit word each
FEWEST_HUBS = 48  # of a group in a column, where all near vertices have rows of bits
LENGTH_BITS = 24  # of a piece; the higher bits are its offset
MAX_TASK_IN_EDGES = 8192
MOST_BLOCKS = 1 << 24  # of a launch whose threads take an element each, so that in-edges are listed in order
MOST_FAR = 4 * ((1 << 16) - 1)  # far rows of a column in quads: an in-edge has 16 bits for their number
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
def pack_in_edge(begin, far, near):
    """The in-edge that is `near` quads of near rows, from quad `begin` on, and in front of them `far` of far rows."""
    return uint64((int64(begin) << 32) | (int64(far) << 16) | int64(near))


@cuda.jit(device=True)
def far_part(in_edge):
    """Where the quads of an in-edge's far rows begin and end."""
    end = uint32(in_edge >> 32)
    return end - (uint32(in_edge) >> 16), end


@cuda.jit(device=True)
def near_part(in_edge):
    """Where the quads of an in-edge's near rows begin and end."""
    begin = uint32(in_edge >> 32)
    return begin, begin + (uint32(in_edge) & 0xFFFF)


@cuda.jit(device=True)
def quads_of(numbers):
    """The quads that `numbers` numbers take."""
    return (numbers + 3) >> 2


@cuda.jit(device=True)
def slots(begin, end):
    """Where the slots of quads begin..end - 1 begin and end. There may be more slots than 32 bits can number."""
    return 4 * uint64(begin), 4 * uint64(end)


@cuda.jit(device=True)
def near_slots(quad_ptr, quad_count, j):
    """Where the slots of column j's near numbers, the zeros in front of them included, begin and end."""
    end = quad_ptr[j + 1]
    return slots(end - quad_count[j], end)


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


@cuda.jit(device=True)
def hubs_to_count(row_idx, begin, end, n, first_hub, least):
    """How many of the last rows of a column, row_idx[begin:end], are hubs that `hub_kernel` counts: those of the last
    group, and of each group in front of these while it has `least` rows."""
    first, group = end, int64(n)
    while group > first_hub:
        group = max(int64(first_hub), group - HUB_GROUP)
        before = first_from(row_idx, begin, first, group)
        if first - before < least:
            break
        first = before
    return end - first


@kernel(
    "void(int64, int64[::1], int32[::1], int64, int64, int64, int64, int64, int64, int64, int32[::1], int32[::1],"
    " int32[::1], int32[::1], int32[::1], int64[::1])"
)
def measure_columns(
    n, col_ptr, row_idx, first_near, first_hub, heavy_quads, least, has_far, index, of, far_count, hub_count,
    quad_count, all_quads, heavy_columns, list_size,
):  # fmt: skip
    """A thread per column: count its far rows, the hubs that `hub_kernel` counts if it is heavy, the quads of its near
    rows, and all, with those of far rows (has_far: 0 or 1). List it if it has such hubs and is in share `index`.

    n: of the graph. The last columns, which have most work, are listed first.
    """
    lane = cuda.threadIdx.x & 31
    columns = col_ptr.size - 1
    for place in range(cuda.grid(1), columns + lane, cuda.gridsize(1)):  # whole warps
        j = columns - 1 - place
        hubs = int64(0)
        if j >= 0:
            begin, end = col_ptr[j], col_ptr[j + 1]
            far = first_from(row_idx, begin, end, first_near) - begin
            if (end - begin - far + 3) >> 2 > heavy_quads:
                hubs = hubs_to_count(row_idx, begin + far, end, n, first_hub, least)
            quads = quads_of(end - begin - far - hubs) + quads_of(hubs)
            far_count[j], hub_count[j], quad_count[j] = far, hubs, quads
            all_quads[j] = quads + has_far * quads_of(far)
        own = in_share(place, index, of)
        append_lanes(own and hubs > 0, j, heavy_columns, list_size, 0)


@kernel("void(int32[::1], int64[::1], int32[::1])")
def count_by_degrees(degrees, col_ptr, in_count):
    """A thread per vertex: how many in-edges it has at most, its degree less its own column's length."""
    for v in range(cuda.grid(1), in_count.size, cuda.gridsize(1)):
        in_count[v] = degrees[v] - int32(col_ptr[v + 1] - col_ptr[v])


@cuda.jit(device=True)
def list_of(i, of, stride, first_near):
    """The number of the list with the in-edges of vertex i: i, or if stride > 0 that of columns that are divided among
    `of` workers, as in `distributed.divided.Own`."""
    if stride == 0:
        return int64(i)
    return of * stride + i - first_near if i >= first_near else (i % of) * stride + i // of


@cuda.jit(device=True)
def may_be_in_edge(e, i, j, col_ptr, hub_count, index, of):
    """Whether vertex i is in this share, and not one of column j's hubs that `hub_kernel` counts."""
    return (of == 1 or in_share(i, index, of)) and e < col_ptr[j + 1] - hub_count[j]


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64, int64, int32[::1])")
def count_in_edges(col_ptr, row_idx, col_of, hub_count, first_near, index, of, members, stride, in_count):
    """A thread per nonzero (i, j) that may be an in-edge of i: count it in i's list."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i = row_idx[e]
        if may_be_in_edge(e, i, col_of[e], col_ptr, hub_count, index, of):
            cuda.atomic.add(in_count, list_of(i, members, stride, first_near), 1)


@cuda.jit(device=True)
def slot_of_nonzero(e, end, quads_end, hubs):
    """The slot of nonzero e, whose row is near: column j ends before nonzero `end` and quad `quads_end`. Its last
    `hubs` rows begin a quad if they are those that `hub_kernel` counts."""
    if e < end - hubs:
        return 4 * (quads_end - quads_of(hubs)) - (end - hubs - e)
    return 4 * quads_end - (end - e)


@cuda.jit(device=True)
def lay_out_nonzero(
    e, i, j, n, col_ptr, far_count, hub_count, quad_ptr, first_near, first_row, has_far, near, high
):  # fmt: skip
    """Write row i of column j, nonzero e, to the column's quads. Returns those of its rows past i, without hubs that
    `hub_kernel` counts: (begin of the near ones, number of far ones, number of near ones)."""
    end, far_quads = int64(quad_ptr[j + 1]), int64(0)
    if i >= first_near:
        hubs = int64(hub_count[j])
        slot = slot_of_nonzero(e, col_ptr[j + 1], end, hubs)
        near[slot] = i - (n - 1 - NEAR)
        if i >= first_row:
            end -= quads_of(hubs)
        begin = (slot + 1) >> 2
        return begin, far_quads, max(end - begin, far_quads)
    far_end = int64(quad_ptr[j])
    if has_far:
        slot = 4 * far_end + (e - col_ptr[j])
        near[slot], high[slot] = i & 0xFFFF, i >> 16
        far_end += quads_of(far_count[j])
        if e + 1 < col_ptr[j] + far_count[j]:
            far_quads = far_end - ((slot + 1) >> 2)
    return far_end, far_quads, end - far_end


@kernel(
    "void(int64, int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64,"
    " int64, int64, int64, uint32[::1], uint16[::1], uint16[::1], uint64[::1])"
)
def lay_out(
    n, col_ptr, row_idx, col_of, far_count, hub_count, quad_ptr, first_near, first_row, has_far, index, of, members,
    stride, in_end, near, high, in_edges,
):  # fmt: skip
    """A thread per nonzero (i, j): write row i to column j's quads, and column j to the in-edges of i.

    n: of the graph. Only in-edges of this share's vertices i. in_end: the position of the next in-edge of each list.
    """
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        begin, far_quads, near_quads = lay_out_nonzero(
            e, i, j, n, col_ptr, far_count, hub_count, quad_ptr, first_near, first_row, has_far, near, high
        )
        if far_quads + near_quads > 0 and may_be_in_edge(e, i, j, col_ptr, hub_count, index, of):
            at = cuda.atomic.add(in_end, list_of(i, members, stride, first_near), 1)
            in_edges[at] = pack_in_edge(begin, far_quads, near_quads)


@kernel("void(int64[::1], uint32[::1], int32[::1], int64, int64, int32[::1])")
def count_tasks(in_ptr, in_end, lengths, fewest, fewer, tasks):
    """A thread per vertex i: how many tasks it has if lengths[i] > 0 and fewest <= in-edges < fewer."""
    for i in range(cuda.grid(1), tasks.size, cuda.gridsize(1)):
        in_edges = int64(in_end[i]) - in_ptr[i]
        made = int64(0)
        if fewest <= in_edges < fewer and lengths[i] > 0:
            made = (in_edges + MAX_TASK_IN_EDGES - 1) // MAX_TASK_IN_EDGES
        tasks[i] = made


@kernel("void(int64[::1], int32[::1])")
def measure_lengths(col_ptr, lengths):
    """A thread per column: how many rows it has."""
    for j in range(cuda.grid(1), lengths.size, cuda.gridsize(1)):
        lengths[j] = col_ptr[j + 1] - col_ptr[j]


@kernel("void(int64[::1], int32[::1], int32[::1], int64, uint32[::1], uint64[::1])")
def list_in_edges(col_ptr, row_idx, col_of, last, in_end, in_edges):
    """A thread per nonzero (i, j) with j before `last`: add the piece of `row_idx` with the rows of column j past i to
    the in-edges of i, if there are any."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        j = col_of[e]
        rows = col_ptr[j + 1] - (e + 1)
        if j < last and rows > 0:
            in_edges[cuda.atomic.add(in_end, row_idx[e], 1)] = pack_piece(e + 1, rows)


TASK_TYPES = "int32[::1], int32[::1], uint64[::1], uint64[::1]"


@kernel(*(f"void(int64[::1], uint32[::1], {begins}, int64, {TASK_TYPES})" for begins in ("int32[::1]", "int64[::1]")))
def fill_tasks(in_ptr, in_end, begins, behind, lengths, task_ptr, columns, pieces):
    """A thread per vertex i: write its tasks. The piece that is column i has lengths[i] elements, from begins[i] on, or
    (behind: 0 or 1) up to begins[i + 1]."""
    for i in range(cuda.grid(1), task_ptr.size - 1, cuda.gridsize(1)):
        first = in_ptr[i]
        for task in range(task_ptr[i], task_ptr[i + 1]):
            columns[task] = pack_piece(begins[i + behind] - behind * lengths[i], lengths[i])
            pieces[task] = pack_piece(first, min(MAX_TASK_IN_EDGES, int64(in_end[i]) - first))
            first += MAX_TASK_IN_EDGES


@kernel("void(uint16[::1], int32[::1], int32[::1], int64, int64, uint32[::1], int64[::1])")
def fill_hub_rows(near, quad_ptr, quad_count, rows, first_number, hub_rows32, queue):
    """A warp per vertex of the last `rows` ones: set bit k of its row for each hub k that is in its column. Sets the
    queue to 0.

    first_number: the near number of the vertex that has the first row.
    """
    thread, lane = cuda.grid(1), cuda.threadIdx.x & 31
    if thread == 0:
        queue[0] = 0
    n = quad_ptr.size - 1
    v = n - 1 - (thread >> 5)
    while v >= max(int64(0), n - rows):
        row = HUB_WORDS * (v - (n - 1 - NEAR) - first_number)
        p, end = near_slots(quad_ptr, quad_count, v)
        p += lane
        while p < end:
            k = int64(near[p]) - FIRST_HUB
            if k >= 0:
                cuda.atomic.or_(hub_rows32, 2 * row + (k >> 5), 1 << (k & 31))
            p += 32
        v -= cuda.gridsize(1) >> 5


# ------------------------------------------------------------------------------- what plans launch and create for these


def columns_of(graph):
    """The arrays of a graph that plans copy to the device."""
    return {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}


def most_quads(graph, parts=1):
    """The most quads that the numbers of a graph can need, if each column has this many parts that begin a quad."""
    return graph.m // 4 + parts * min(graph.n, graph.m) + 1


class SetUp(NamedTuple):
    """Arrays and set-up steps at the beginning of a plan, as in `Plan`."""

    copied: dict
    created: dict
    setup: list


def room_for_in_edges(graph):
    """The SetUp that counts each vertex' in-edges, and has memory for them."""
    n, m, copied = graph.n, graph.m, columns_of(graph)
    counting, most = launch(orientation.count_rows, m, 256, counts="in_count"), m
    if isinstance(graph, DeviceGraph) and graph.degrees is not None:
        copied["degrees"] = graph.degrees
        counting, most = launch(count_by_degrees, n, 256), graph.most_in_edges
    created = {
        "in_edges": (most, np.uint64, None),  # the first: it gets the memory of what the graph was made of
        "in_count": (n, np.int32, 0),
        "in_ptr": (n + 1, np.int64, None),
        "in_end": (n + 1, np.uint32, None),
    }
    return SetUp(copied, created, [counting, Scan("in_count", "in_ptr", "in_end")])


def in_edges_by_degree(graph, cuts, has_far, sized):
    """The SetUp that fills quads and in-edges, and lists heavy columns. cuts: what its kernels take of the knobs.

    sized: there is no more memory for quads and in-edges than are counted. The host waits for it.
    """
    n, m = graph.n, graph.m
    copied, room, (counting, starts) = room_for_in_edges(graph)
    cuts = {**cuts, "n": n, "has_far": int(has_far), "members": 1, "stride": 0}
    if counted := "degrees" not in copied:
        counting = launch(count_in_edges, m, 256, MOST_BLOCKS, **cuts)
    most_heavy = min(n, m // (4 * cuts["heavy_quads"] + 1))
    created = {
        **room,
        **dict.fromkeys(("far_count", "hub_count", "quad_count", "all_quads"), (n, np.int32, None)),
        "quad_ptr": (n + 1, np.int32, None),
        "heavy_columns": (most_heavy, np.int32, None),
        "list_size": (1, np.int64, 0),
        "quads": (most_quads(graph) + most_heavy, np.uint64, 0),
        "high": (0, np.uint16, None),
    }
    setup = [launch(measure_columns, n, 256, MOST_BLOCKS, **cuts), Scan("all_quads", "quad_ptr"), counting, starts]
    if sized and counted:
        del created["in_edges"]
        setup += [Sized("in_edges", "in_ptr", np.uint64)]
    if sized:
        del created["quads"]
        setup += [Sized("quads", "quad_ptr", np.uint64, 0, ("near", np.uint16))]
    if has_far:
        setup += [Sized("high_quads", "quad_ptr", np.uint64, 0, ("high", np.uint16))]
    return SetUp(copied, created, [*setup, launch(lay_out, m, 256, MOST_BLOCKS, **cuts)])


NEAR_ROWS = {"begins": "quad_ptr", "behind": 1, "lengths": "quad_count"}  # the pieces of columns i in their tasks
FAR_ROWS = {"begins": "col_ptr", "behind": 0, "lengths": "far_count"}


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
