"""What precedes the counting kernels, for graphs of up to 10^8 edges: the costs of orders, and the set-up of plans.

The simulator would take too long. The set-up kernels of ALONE run as a launch of a single thread, which is compiled for
the CPU if there are many edges. So what a GPU's atomic operations put into an order that may differ each time is here
in the order of the nonzeros.
"""

from dataclasses import replace
from functools import cache, cached_property
from types import FunctionType, ModuleType

import numpy as np

from tcgpu.arrays import bincount, blocks
from tcgpu.engines import interpreted
from tcgpu.engines.kernel_language import is_cuda, is_device_function, names_of
from tcgpu.engines.meaning import all_names
from tcgpu.engines.simulator import WARP
from tcgpu.errors import MethodError
from tcgpu.graph import as_graph
from tcgpu.kernels import Step, adaptive, device_graph, edge_sums, orientation
from tcgpu.kernels.adaptive import layout, look_ups, merging
from tcgpu.kernels.device import columns
from tcgpu.kernels.device.merge import EVEN
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.order_costs import LONGEST, OrderCosts

MOST_SIMULATED = 30_000  # up to which nothing is compiled, and other kernels run in the simulator
PART = 1 << 18  # nonzeros at a time, which limits the memory for intermediate arrays

ON_DEVICE = device_graph.prepare, adaptive.prepare  # what makes a DeviceGraph of a graph, on a GPU


class HostGraph(DeviceGraph):
    """A DeviceGraph with its arrays in main memory."""

    @cached_property
    def order_costs(self):
        """As `edge_sums.describe_edges` finds them on a device."""
        stride = min(edge_sums.MOST_STRIDE, max(1, self.m // edge_sums.SAMPLED))
        found = costs_of_orders(self, stride)
        if stride > 1 and found.best() == "natural" and found.may_miss():
            return costs_of_orders(self, 1)
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

    MethodError for a large graph if a step is neither a Scan nor has a kernel of ALONE: the simulator would take too
    long.
    """
    others = {step.kernel.__name__ for step in plan.setup if isinstance(step, Step) and step.kernel not in ALONE}
    if others and graph.m > MOST_SIMULATED:
        raise MethodError(
            f"{plan.method} sets up its arrays with {', '.join(sorted(others))}, which the simulator runs for up to "
            f"{MOST_SIMULATED:,} edges, not {graph.m:,}: take a smaller graph"
        )
    jit = interpreted.jit
    if graph.m > MOST_SIMULATED:
        from tcgpu.engines.native import jit  # it takes a second to load
    run = replace(plan, setup=()).allocate()
    for step in plan.setup:
        if isinstance(step, Step) and step.kernel in ALONE:
            function = TWINS.get(step.kernel) or by_one_thread(step.kernel, jit)
            function(*step.values(run.arrays))
        else:
            step.run(run.arrays)
    return run


def costs_of_orders(graph, stride):
    """The OrderCosts of a graph: of its warps of nonzeros, one in `stride` is added up."""
    n, m, row_idx, lengths = graph.n, graph.m, graph.row_idx, np.diff(graph.col_ptr).astype(np.int32)
    degrees, rows = lengths.copy(), np.zeros(n, np.int32)
    for part in parts_of(m):
        np.add.at(degrees, row_idx[part], np.int32(1))  # another type than theirs takes 40 times as long
    spans, filled = np.zeros(n, np.int32), np.flatnonzero(lengths)  # over which the rows of local columns reach
    spans[filled] = ((row_idx[graph.col_ptr[filled + 1] - 1] >> 6) - (filled >> 6) >> 5) + 1
    spans[(lengths < edge_sums.SHORT) | (spans > edge_sums.NOT_LOCAL)] = 0
    behind = np.cumsum(bincount(bins_of(degrees), minlength=edge_sums.BINS)[::-1])  # vertices in the last bins
    hub_bin, last_bin = (edge_sums.BINS - np.count_nonzero(behind <= most) for most in (edge_sums.HUBS, edge_sums.LAST))
    sums, longest = np.zeros(len(edge_sums.SUMS), np.int64), [0] * len(LONGEST)
    for part in parts_of(m):
        np.add.at(rows, in_degree_order(graph, part, degrees)[0], np.int32(1))
    for part in parts_of(m, stride):
        i, j = row_idx[part], graph.col_of[part]
        merged, searched = rows_of_merge(lengths[j], lengths[i])
        distant, width = i - j > edge_sums.DISTANT * n // max(1, m), np.minimum(spans[j], 3)
        found = [merged, idle(merged), searched, distant]
        for k in range(1, 4):
            found += merged[width == k], searched[width == k], spans[j][width == k]
        longest[:4] = [max(longest[k], (merged + searched)[width == k].max(initial=0)) for k in range(4)]
        first, last = in_degree_order(graph, part, degrees)
        light = rows[first] < edge_sums.HEAVY
        by_hub = ~light & (bins_of(degrees[last]) >= hub_bin)
        pairs = rows[first].astype(np.int64) - 1
        merged, searched = rows_of_merge(rows[first], rows[last])
        column, row = rows[first] >> 1, rows[last]
        few = np.minimum(column, row)
        far = bins_of(degrees[np.where(row < column, first, last)]) < last_bin
        steps = few.astype(np.int64) * np.frexp(np.maximum(column, row))[1]
        found += pairs[light], pairs[~light & ~by_hub], by_hub, merged, idle(merged), searched, few, steps[far]
        sums += [values.sum(dtype=np.int64) for values in found]
        longest[-1] = max(longest[-1], (merged + searched).max(initial=0))
    sums = dict(zip((*edge_sums.SUMS, *LONGEST), map(int, (*stride * sums, *longest)), strict=True))
    most = int(lengths.max(initial=0)), sums, int(degrees.max(initial=0))
    return OrderCosts(n, m, *most, no_triangles=stride == 1 and not sums["looked up"])


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


def parts_of(nonzeros, stride=1):
    """Yield at most PART nonzeros at a time, as a slice; or as indices, if only every `stride`th warp takes any."""
    for part in blocks(nonzeros, PART):
        if stride > 1:
            indices = np.arange(part.start, part.stop)
            part = indices[indices // WARP % stride == 0]
        yield part


# ----------------------------------------------------------------------------------------------- kernels by one thread


def add(array, index, value):
    before = array[index]
    array[index] += value
    return before


def _module(**names):
    """A module: Numba compiles what it has, as it does not for another object."""
    module = ModuleType("cuda")
    vars(module).update(names)
    return module


@cache
def cuda_of_one_thread(jit):
    """What `cuda` has for a thread beside which there are no others, in its warp neither: they add nothing to a sum."""
    zero, value = jit(lambda *_: 0), jit(lambda mask, value, lane=0: value)
    return _module(
        grid=zero, gridsize=jit(lambda _: 1), threadIdx=_module(x=0), atomic=_module(add=jit(add)),
        ballot_sync=value, shfl_sync=value, shfl_down_sync=zero, popc=jit(lambda mask: int(mask)),
    )  # fmt: skip


@cache
def by_one_thread(kernel, jit):
    """A kernel or device function for the only thread of a launch; jit: what compiles it."""
    function = kernel.py_func
    used = {*all_names(function.__code__), "__builtins__", "__name__"}
    names = {name: value for name, value in names_of(function).items() if name in used}
    for name, value in names.items():
        if is_cuda(value):
            names[name] = cuda_of_one_thread(jit)
        elif is_device_function(value):
            names[name] = by_one_thread(value, jit)
    return jit(FunctionType(function.__code__, names, function.__name__))


ALONE = {
    columns.find_col_ptr, columns.fill_empty_columns, orientation.count_rows, layout.measure_columns,
    layout.count_in_edges, layout.lay_out, layout.count_tasks, layout.fill_tasks, merging.fill_filters,
    merging.try_filters, look_ups.list_look_ups,
}  # fmt: skip


def list_look_ups(col_ptr, row_idx, col_of, first, last_rows, pieces, columns, sizes):
    """As the kernel, whose blocks append to the lists."""
    i, j, begin = row_idx.astype(np.int64), col_of.astype(np.int64), np.arange(1, row_idx.size + 1)
    behind, row = col_ptr[j + 1] - begin, col_ptr[i + 1] - col_ptr[i]
    begin, column = np.where(behind > row, col_ptr[i], begin), np.where(behind > row, j, i)
    length = np.minimum(behind, row)
    few, many = np.flatnonzero((length > 0) & (length <= look_ups.FEW)), np.flatnonzero(length > look_ups.FEW)
    sizes[:] = few.size, many.size
    for place, listed in ((np.arange(few.size), few), (row_idx.size - 1 - np.arange(many.size), many)):
        pieces[place], columns[place] = (begin[listed] << 32) | length[listed], column[listed]
    i, j = i[j >= first] - first, j[j >= first] - first
    np.bitwise_or.at(last_rows, look_ups.WORDS * j + (i >> 5), np.uint32(1) << (i & 31).astype(np.uint32))


TWINS = {look_ups.list_look_ups: list_look_ups}
