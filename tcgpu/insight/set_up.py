"""What precedes the counting kernels, in NumPy: the costs of orders, and the set-up kernels of plans.

`estimate` needs both for graphs of up to 10^8 edges. Each function of IN_NUMPY has the parameters of its kernel and
fills the same arrays in seconds. What a GPU's atomic operations put into an order that may differ each time is here in
the order of the threads.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from tcgpu.arrays import bincount, repeat
from tcgpu.engines.simulator import WARP
from tcgpu.errors import MethodError
from tcgpu.graph import as_graph
from tcgpu.kernels import Step, adaptive, device_graph, edge_sums, orientation
from tcgpu.kernels.adaptive import layout, merging
from tcgpu.kernels.device import columns
from tcgpu.kernels.device.merge import EVEN
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.order_costs import DEGREE, LONGEST, NATURAL, OrderCosts

SIMULATED_EDGES = 30_000  # up to which other kernels run in the simulator
PART = 1 << 18  # nonzeros at a time, which limits the memory for intermediate arrays

ON_DEVICE = device_graph.prepare, adaptive.prepare  # what makes a DeviceGraph of a graph, on a GPU

pack_piece, slot_of_nonzero = layout.pack_piece.py_func, layout.slot_of_nonzero.py_func


class HostGraph(DeviceGraph):
    """A DeviceGraph with its arrays in main memory."""

    @cached_property
    def order_costs(self):
        """As `edge_sums.costs_of_edges` finds them on a device."""
        stride = min(edge_sums.MOST_STRIDE, max(1, self.m // edge_sums.SAMPLED))
        found = costs_of_orders(self, stride, stride)
        if stride > 1 and found.best() == "natural" and found.may_miss():
            return costs_of_orders(self, 1, stride)
        return found


def prepare(method, graph, order=None):
    """The graph that `method.prepare` makes on a GPU, with its arrays in main memory; the same order is chosen."""
    if method.prepared not in ON_DEVICE:
        return method.prepare(graph, order)

    def in_order(order):
        found = graph.ordered(order)
        return HostGraph(found.n, found.col_ptr, found.row_idx, found.col_of, found.order, found.rank, found.name)

    graph, order = as_graph(graph), order or method.order
    if order == "auto":
        natural = in_order("natural")
        order = "natural" if graph.m <= device_graph.SMALL else natural.order_costs.best()
        return natural if order == "natural" else in_order(order)
    return in_order(order)


def set_up(plan, graph):
    """The Run of a plan, with its arrays in main memory, filled as the plan's set-up steps do.

    MethodError for a large graph if a step is neither a Scan nor one of IN_NUMPY: the simulator would take too long.
    """
    others = {step.kernel.__name__ for step in plan.setup if isinstance(step, Step) and step.kernel not in IN_NUMPY}
    if others and graph.m > SIMULATED_EDGES:
        raise MethodError(
            f"{plan.method} sets up its arrays with {', '.join(sorted(others))}, which the simulator runs for up to "
            f"{SIMULATED_EDGES:,} edges, not {graph.m:,}: take a smaller graph"
        )
    run = replace(plan, setup=()).allocate()
    for step in plan.setup:
        if isinstance(step, Step) and step.kernel in IN_NUMPY:
            IN_NUMPY[step.kernel](*step.values(run.arrays))
        else:
            step.run(run.arrays)
    return run


def costs_of_orders(graph, natural_stride, stride):
    """The OrderCosts of a graph: of its warps of nonzeros, one in `natural_stride` is added up, or one in `stride`."""
    n, m, row_idx, lengths = graph.n, graph.m, graph.row_idx, np.diff(graph.col_ptr).astype(np.int32)
    degrees, rows = lengths.copy(), np.zeros(n, np.int32)
    for part in parts_of(m):
        np.add.at(degrees, row_idx[part], np.int32(1))  # another type than theirs takes 40 times as long
    spans, filled = np.zeros(n, np.int32), np.flatnonzero(lengths)  # over which the rows of local columns reach
    spans[filled] = ((row_idx[graph.col_ptr[filled + 1] - 1] >> 6) - (filled >> 6) >> 5) + 1
    spans[(lengths < edge_sums.SHORT) | (spans > edge_sums.NOT_LOCAL)] = 0
    behind = np.cumsum(bincount(bins_of(degrees), minlength=edge_sums.BINS)[::-1])  # vertices in the last bins
    hub_bin = edge_sums.BINS - np.count_nonzero(behind <= edge_sums.HUBS)
    natural, by_degree = np.zeros(len(NATURAL), np.int64), np.zeros(len(DEGREE), np.int64)
    longest = [0] * len(LONGEST)
    for part in parts_of(m):
        np.add.at(rows, in_degree_order(graph, part, degrees)[0], np.int32(1))
    for part in parts_of(m, natural_stride):
        i, j = row_idx[part], graph.col_of[part]
        merged, searched = rows_of_merge(lengths[j], lengths[i])
        distant, width = i - j > edge_sums.DISTANT * n // max(1, m), np.minimum(spans[j], 3)
        found = [merged, idle(merged), searched, distant]
        for k in range(1, 4):
            found += merged[width == k], searched[width == k], spans[j][width == k]
        longest[:4] = [max(longest[k], (merged + searched)[width == k].max(initial=0)) for k in range(4)]
        natural += [values.sum(dtype=np.int64) for values in found]
    for part in parts_of(m, stride):
        first, last = in_degree_order(graph, part, degrees)
        light = rows[first] < edge_sums.HEAVY
        by_hub = ~light & (bins_of(degrees[last]) >= hub_bin)
        pairs = rows[first].astype(np.int64) - 1
        merged, searched = rows_of_merge(rows[first], rows[last])
        sums = pairs[light].sum(), pairs[~light & ~by_hub].sum(), by_hub.sum()
        by_degree += [*sums, merged.sum(), idle(merged).sum(), searched.sum()]
        longest[-1] = max(longest[-1], (merged + searched).max(initial=0))
    found = *natural_stride * natural, *stride * by_degree, *longest
    sums = dict(zip((*NATURAL, *DEGREE, *LONGEST), map(int, found), strict=True))
    return OrderCosts(n, m, int(lengths.max(initial=0)), sums, int(degrees.max(initial=0)))


def in_degree_order(graph, part, degrees):
    """The first and the last end of these nonzeros in degree order."""
    i, j = graph.row_idx[part], graph.col_of[part]
    first = np.where(degrees[i] < degrees[j], i, j)
    return first, i + j - first


def bins_of(degrees):
    """As `edge_sums.bin_of`, of each degree."""
    above = np.maximum(np.frexp(degrees)[1] - 5, 0)
    return 16 * above + (degrees >> above)


def rows_of_merge(column, row):
    """As `edge_sums.rows_of_merge`, of each nonzero."""
    behind = column >> 1
    few, many, both = np.minimum(row, behind), np.maximum(row, behind), row.astype(np.int64) + behind
    steps = few.astype(np.int64) * np.frexp(many)[1]
    merged = (few > 0) & (both <= edge_sums.LONG) & ((both <= EVEN) | (steps >= both))
    return np.where(merged, both, 0), np.where(merged, 0, steps)


def idle(merged):
    """How many rows more the lane of each warp merges that merges most, added up over the lanes."""
    warps = np.pad(merged, (0, -merged.size % WARP)).reshape(-1, WARP)
    return WARP * warps.max(axis=1) - warps.sum(axis=1)


def find_col_ptr(col_of, col_ptr):
    begins = np.flatnonzero(np.diff(col_of, prepend=np.int32(-1)))
    col_ptr[col_of[begins]] = begins


def fill_empty_columns(col_of, col_ptr):
    empty = np.flatnonzero(col_ptr < 0)
    col_ptr[empty] = np.searchsorted(col_of, empty)


def count_rows(row_idx, counts):
    for part in parts_of(row_idx.size):
        np.add.at(counts, row_idx[part], np.int32(1))


def measure_columns(
    col_ptr, row_idx, first_near, heavy_quads, index, of, far_count, quad_count, heavy_columns, list_size
):  # fmt: skip
    lengths = np.diff(col_ptr)
    filled = np.flatnonzero(lengths)
    far_count[:] = 0
    far_count[filled] = np.add.reduceat(row_idx < first_near, col_ptr[filled].astype(np.intp), dtype=np.int32)
    quad_count[:] = (lengths - far_count + 3) >> 2
    own = np.arange(lengths.size) % of == index  # of the columns from the last to the first
    found = lengths.size - 1 - np.flatnonzero((quad_count > heavy_quads)[::-1] & own)
    heavy_columns[list_size[0] :][: found.size] = found
    list_size[0] += found.size


def leave_out_hub_pairs(col_ptr, row_idx, quad_count, first_hub, heavy_quads, in_count):
    heavy = repeat(quad_count > heavy_quads, np.diff(col_ptr))
    in_count -= bincount(row_idx[heavy & (row_idx >= first_hub)], minlength=in_count.size).astype(np.int32)


def lay_out(
    col_ptr, row_idx, col_of, far_count, quad_ptr, first_near, first_hub, heavy_quads, index, of, in_end, near,
    in_edges, far_edges,
):  # fmt: skip
    for part in parts_of(row_idx.size):
        e, i, j = np.arange(part.start, part.stop), row_idx[part], col_of[part]
        begin, end = quad_ptr[j], quad_ptr[j + 1]
        by_hubs = (i >= first_hub) & (end - begin > heavy_quads)
        is_near, slot = i >= first_near, slot_of_nonzero(col_ptr, quad_ptr, e, j)
        near[slot[is_near]] = i[is_near] - (col_ptr.size - 2 - layout.NEAR)
        begin = np.where(is_near, (slot + 1) >> 2, begin)
        far_rows = np.maximum(0, col_ptr[j] + far_count[j] - (e + 1)) if far_edges.size else np.zeros_like(e)
        kept = np.flatnonzero(((begin < end) & ~by_hubs | (far_rows > 0)) & (i % of == index))
        kept = kept[np.argsort(i[kept], kind="stable")]
        rows = i[kept]
        first = np.flatnonzero(np.diff(rows, prepend=np.int32(-1)))  # in-edge of each row
        counts = np.diff(first, append=rows.size)
        place = in_end[rows] + np.arange(rows.size) - repeat(first, counts)
        in_edges[place] = pack_piece(begin[kept], end[kept] - begin[kept])
        listed = place < far_edges.size
        far_edges[place[listed]] = pack_piece(e[kept] + 1, far_rows[kept])[listed]
        in_end[rows[first]] += counts


def count_tasks(in_ptr, in_end, lengths, fewest, fewer, tasks):
    in_edges = (in_end - in_ptr)[: tasks.size]
    has_tasks = (fewest <= in_edges) & (in_edges < fewer) & (lengths > 0)
    tasks[:] = np.where(has_tasks, -(-in_edges // layout.MAX_TASK_IN_EDGES), 0)


def fill_tasks(in_ptr, in_end, begins, lengths, task_ptr, columns, pieces):
    i = repeat(np.arange(task_ptr.size - 1), np.diff(task_ptr))
    first = in_ptr[i] + (np.arange(i.size) - task_ptr[i]) * layout.MAX_TASK_IN_EDGES
    columns[: i.size] = pack_piece(begins[i], lengths[i])
    pieces[: i.size] = pack_piece(first, np.minimum(layout.MAX_TASK_IN_EDGES, in_end[i] - first))


def fill_filters(col_ptr, row_idx, filters):
    filters[:] = 0
    filled = np.flatnonzero(np.diff(col_ptr))
    filters[filled] = np.bitwise_or.reduceat(
        np.uint64(1) << (row_idx & 63).astype(np.uint64), col_ptr[filled].astype(np.intp)
    )


def try_filters(col_ptr, row_idx, col_of, filters, stride, tried):
    for e in range(0, row_idx.size, stride):
        rows = row_idx[e + 1 : col_ptr[col_of[e] + 1]]
        bits = filters[row_idx[e]] >> (rows & 63).astype(np.uint64) & np.uint64(1)
        tried += (rows.size > 0, bits.any())


def parts_of(nonzeros, stride=1):
    """Yield at most PART nonzeros at a time, as a slice; or as indices, if only every `stride`th warp takes any."""
    for begin in range(0, nonzeros, PART):
        part = slice(begin, min(nonzeros, begin + PART))
        if stride > 1:
            indices = np.arange(part.start, part.stop)
            part = indices[indices // WARP % stride == 0]
        yield part


IN_NUMPY = {
    columns.find_col_ptr: find_col_ptr,
    columns.fill_empty_columns: fill_empty_columns,
    orientation.count_rows: count_rows,
    layout.measure_columns: measure_columns,
    layout.leave_out_hub_pairs: leave_out_hub_pairs,
    layout.lay_out: lay_out,
    layout.count_tasks: count_tasks,
    layout.fill_tasks: fill_tasks,
    merging.fill_filters: fill_filters,
    merging.try_filters: try_filters,
}
