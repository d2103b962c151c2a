"""Call a function of the caller for each triangle, and add up what it returns, on a GPU or in the simulator.

Contract: that of `reductions`. `sums` takes the same Reduction and returns the same sums, to the last bit where
the function returns the same numbers. A triangle is found at its edge (u, v): the columns of u, from this edge on, and
of v are compared, and each row of the shorter one is looked up in the longer one.

    count_rows         how many rows are looked up at each edge; a scan of these numbers follows
    reduce_triangles   a thread takes one row after the other, whatever edge it is of, so that all threads share the
                       work of a hub. It looks the row up, and calls the function if it finds it. A block has sums of
                       its own in shared memory, if they fit, and adds them to those of all blocks in the end

The kernel is made for each function. Numba compiles the function by its own rules, as it does for the CPU; also in the
simulator, which calls it compiled for the CPU. Neither on a GPU nor in the simulator does a division by zero raise. On
a GPU an exception ends its thread, and nothing else: so threads that come to their end are counted.
"""

from functools import lru_cache

import numpy as np

from tcgpu.declarations import Method
from tcgpu.engines import runtime
from tcgpu.engines.kernel_language import CallersFunction, DeviceFunction
from tcgpu.engines.native import MOST_COMPILED, NumbaError, uncached
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint64
from tcgpu.errors import GraphError, KernelError, MethodError
from tcgpu.kernels import Plan, Scan, launch, simulated
from tcgpu.kernels.device.columns import columns_of_edge, find_columns
from tcgpu.kernels.device.search import find, last_up_to
from tcgpu.subgraphs.add_exactly import add_float, add_integer, add_sums
from tcgpu.subgraphs.exact_sums import float_totals, integer_totals, zero_sums
from tcgpu.subgraphs.reductions import putting

THREADS = 256
SHARED_BYTES = 16 << 10  # the most that the sums of a block take
EDGE_US, STEP_US = 5, 2.5  # microseconds in the simulator for an edge, and for a step of a search
NO_VALUES = np.zeros(0, np.int8)
# of functions that numba-cuda has no code for, and of recursive ones
COMPILER_ERRORS = NumbaError, NotImplementedError, LookupError, AttributeError, KernelError

# `state`, int64: how many bins do not exist; of the first one u, v, w and the bin; how many threads came to their end
WRONG, FIRST, BIN, ENDED, STATE_SIZE = 0, 1, 4, 5, 6

METHOD = Method("reduce_triangles", "ours", "a function of the caller is called for each triangle")


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1])")
def count_rows(col_ptr, col_of, row_idx, counts):
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        p, p_end, q, q_end, of_v = columns_of_edge(col_ptr, col_of, row_idx, e)
        counts[e] = int32(p_end - p)


@cuda.jit(device=True)
def look_up(col_ptr, col_of, row_idx, starts, task):
    """The ends and the position of the edge that a task is of; where its row is in the columns of both, or -1."""
    uv = last_up_to(starts, 0, row_idx.size, task)
    p, p_end, q, q_end, of_v = columns_of_edge(col_ptr, col_of, row_idx, uv)
    at = p + task - starts[uv]
    other = find(row_idx, q, q_end, row_idx[at])
    uw, vw = (other, at) if of_v else (at, other)
    return int64(col_of[uv]), int64(row_idx[uv]), uv, uw, vw


@cuda.jit(device=True)
def sorted_by(number, u, v, w, uv, uw, vw):
    """The vertices of a triangle by the caller's numbers, ascending, and its edges accordingly."""
    if number[v] < number[u]:
        u, v, uw, vw = v, u, vw, uw
    if number[w] < number[v]:
        v, w, uv, uw = w, v, uw, uv
    if number[v] < number[u]:
        u, v, uw, vw = v, u, vw, uw
    return (u, v, w), (uv, uw, vw)


@cuda.jit(device=True)
def values_at(values, at):
    return values[at[0]], values[at[1]], values[at[2]]


@lru_cache(maxsize=MOST_COMPILED)
def kernel_for(function, returns, dtypes, in_block):
    """The kernel that calls a function.

    function: of Numba's. returns: as that of a Reduction. dtypes: of the values of vertices and of edges. in_block:
    whether a block has sums of its own.
    """
    f = CallersFunction(function.py_func, uncached(function.py_func))
    put = putting(DeviceFunction, (add_integer, add_float), *returns)
    of_vertices, of_edges = (dtype is not None for dtype in dtypes)
    names = [(dtype or NO_VALUES.dtype).name.replace("bool", "boolean") for dtype in dtypes]
    arrays = ["int64", "int32", "int32", "int64", "int32", *names, "uint64", "int64"]

    @kernel(f"void({', '.join(f'{name}[::1]' for name in arrays)}, int64)")
    def reduce_triangles(
        col_ptr, col_of, row_idx, starts, number, vertex_values, edge_values, totals, state, size
    ):  # fmt: skip
        sums = totals
        if in_block:
            sums = cuda.shared.array(0, uint64)
            for k in range(cuda.threadIdx.x, totals.size, cuda.blockDim.x):
                sums[k] = 0
            cuda.syncthreads()
        for task in range(cuda.grid(1), starts[row_idx.size], cuda.gridsize(1)):
            u, v, uv, uw, vw = look_up(col_ptr, col_of, row_idx, starts, task)
            if uw >= 0 and vw >= 0:
                vertices, edges = sorted_by(number, u, v, int64(row_idx[uw]), uv, uw, vw)
                a, b, c = int64(number[vertices[0]]), int64(number[vertices[1]]), int64(number[vertices[2]])
                x = values_at(vertex_values, vertices) if of_vertices else ()
                y = values_at(edge_values, edges) if of_edges else ()
                wrong = put(f(a, b, c, *x, *y), vertices, edges, size, sums, size)
                if wrong != 0 and cuda.atomic.add(state, WRONG, 1) == 0:
                    state[FIRST], state[FIRST + 1], state[FIRST + 2], state[BIN] = a, b, c, wrong
        cuda.atomic.add(state, ENDED, 1)
        if in_block:
            cuda.syncthreads()
            add_sums(totals, size, sums)

    return reduce_triangles


def plan(graph, reduction):
    """The Plan for a Reduction."""
    words = zero_sums(1, reduction.size, reduction.floats).shape[1]
    shared = 8 * words * reduction.size if 8 * words * reduction.size <= SHARED_BYTES else 0
    values = {"vertex_values": reduction.vertex_values, "edge_values": reduction.edge_values}
    for what, given in values.items():
        if given is not None and given.dtype.kind not in "biuf":
            raise GraphError(f"{what} on a GPU are numbers or bools, not {given.dtype}: engine 'cpu' takes these")
    dtypes = tuple(None if given is None else given.dtype for given in values.values())
    made = kernel_for(reduction.f, reduction.returns, dtypes, shared > 0)
    try:
        most_blocks = made.blocks_at_a_time(THREADS, shared)
    except COMPILER_ERRORS as error:
        reason = " ".join(str(error).partition("There are")[0].split())
        raise MethodError(f"f does not compile for a GPU, and engine 'cpu' runs it: {reason}") from None
    number = np.arange(graph.n, dtype=np.int32) if reduction.number is None else reduction.number
    copied = {name: NO_VALUES if given is None else given for name, given in values.items()}
    return Plan(
        method=METHOD.name,
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "number": number, **copied},
        created={
            "col_of": (graph.m, np.int32, None), "counts": (graph.m, np.int32, None),
            "starts": (graph.m + 1, np.int64, None), "totals": (words * reduction.size, np.uint64, 0),
            "state": (STATE_SIZE, np.int64, 0),
        },
        setup=[launch(find_columns, graph.m, THREADS), launch(count_rows, graph.m, THREADS), Scan("counts", "starts")],
        steps=[launch(made, graph.m, THREADS, most_blocks, shared, size=reduction.size)],
        work=work(graph),
    )  # fmt: skip


def work(graph):
    """Microseconds in the simulator."""
    return simulated.search_work(graph, EDGE_US, STEP_US)


def totals(graph, reduction):
    """The sums of a Reduction: floats, each rounded once, or the low and the high words of integers."""
    sums = _sums(graph, reduction)
    return float_totals(sums) if reduction.floats else integer_totals(sums)


def _sums(graph, reduction):
    """The sums of a Reduction, as `tcgpu.subgraphs.exact_sums` has them."""
    added = zero_sums(1, reduction.size, reduction.floats)
    if graph.max_column < 2:
        return added
    made = plan(graph, reduction)
    if made.device_bytes > (free := runtime.memory_free()):
        needs = f"these sums need {made.device_bytes:,} bytes on the device"
        raise GraphError(f"{needs}, which has {free:,} free: engine 'cpu' takes the memory of the host")
    with made.carried_out() as done:
        state = runtime.to_host(done.arrays["state"])
        if state[WRONG]:
            raise reduction.no_bin(state[FIRST:BIN].tolist(), state[BIN])
        if state[ENDED] != made.steps[0].blocks * made.steps[0].threads:
            raise MethodError("f raises an exception for a triangle; engine 'cpu' raises it here")
        totals = done.arrays["totals"].reshape(-1, reduction.size)
        for word in np.flatnonzero(runtime.to_host(totals.any(axis=1))):  # most words of floats are all 0
            added[0, word, : reduction.size] = runtime.to_host(totals[word])
            added[0, word, reduction.size] = 1
    return added
