"""List triangles on a GPU, as many at a time as an array has rows for.

A warp finds the triangles u < v < w of an edge (u, v): of two columns, u's from this edge on and v's, it looks up the
rows of the shorter one in the longer one, 32 at a time. `common_rows` is launched twice: to count the triangles of each
edge, from whose sums follows where each goes; then to write them, for so many edges that their triangles fit the array.
So the list is the same each time.
"""

from bisect import bisect_right

import numpy as np

from tcgpu.declarations import GPU, Method
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel
from tcgpu.kernels import Plan, Scan, launch, simulated
from tcgpu.kernels.device.columns import columns_of_edge, find_columns
from tcgpu.kernels.device.search import find
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import prepare

MOST_ROWS = 1 << 24  # of the array, unless an edge may have more triangles
THREADS = 256
EDGE_US, STEP_US = 450, 4  # microseconds in the simulator for an edge, and for a step of a search, in both launches

METHOD = Method("list_triangles", "ours", "a warp per edge writes the triangles that it finds", engines=(*GPU, "cpu"))


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int32[::1], int64[::1], int32[::1], int32[::1])")
def common_rows(col_ptr, col_of, row_idx, first, last, counts, starts, number, rows):
    """Count the triangles of each edge from `first` to `last` - 1; or write them to `rows`, if that has elements.

    number: of each vertex for the caller, unless it is the vertex.
    """
    lane = cuda.threadIdx.x & 31
    for e in range(first + (cuda.grid(1) >> 5), last, cuda.gridsize(1) >> 5):
        u, v, found = int64(col_of[e]), int64(row_idx[e]), int64(0)
        p, p_end, q, q_end, _ = columns_of_edge(col_ptr, col_of, row_idx, e)
        while p < p_end:
            at = p + lane
            present = at < p_end and find(row_idx, q, q_end, row_idx[at]) >= 0
            lanes = cuda.ballot_sync(ALL_LANES, present)
            if present and rows.size > 0:
                place = starts[e] - starts[first] + found + cuda.popc(lanes & ((1 << lane) - 1))
                write_triangle(rows, 3 * place, u, v, int64(row_idx[at]), number)
            found += cuda.popc(lanes)
            p += 32
        if lane == 0 and rows.size == 0:
            counts[e] = int32(found)


@cuda.jit(device=True)
def write_triangle(rows, at, u, v, w, number):
    """Write the caller's numbers of three vertices, ascending, to rows[at:at + 3]."""
    if number.size > 0:
        u, v, w = int64(number[u]), int64(number[v]), int64(number[w])
    low, high = min(u, min(v, w)), max(u, max(v, w))
    rows[at], rows[at + 1], rows[at + 2] = int32(low), int32(u + v + w - low - high), int32(high)


def pieces(graph, order):
    """Yield every triangle once, in int32 arrays with three columns, of anything that `prepare` takes."""
    given = prepare(graph, "natural")
    ordered, number = prepare(given, order), np.empty(0, np.int32)
    if ordered is not given:
        number = runtime.arrays_of(ordered.rank).argsort(ordered.rank).astype(np.int32)
    with plan(ordered, number).carried_out() as done:
        arrays, starts, first = done.arrays, done.arrays["starts"], 0
        most = max(MOST_ROWS, ordered.max_column)
        while first < ordered.m:
            before = int(starts[first])
            last = bisect_right(range(ordered.m + 1), before + most, key=lambda e: int(starts[e])) - 1
            arrays["rows"] = runtime.device_array(3 * (int(starts[last]) - before), np.int32)
            if arrays["rows"].size:
                launch(common_rows, WARP * (last - first), THREADS, first=first, last=last).run(arrays)
            yield runtime.to_host(arrays["rows"]).reshape(-1, 3)
            first = last


def plan(graph, number):
    """The Plan that counts the triangles of each edge. number: as in `common_rows`."""
    return Plan(
        method=METHOD.name,
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "number": number},
        created={
            "col_of": (graph.m, np.int32, None), "counts": (graph.m, np.int32, None),
            "starts": (graph.m + 1, np.int64, None), "rows": (0, np.int32, None),
        },
        setup=[launch(find_columns, graph.m, THREADS)],
        steps=[
            launch(common_rows, WARP * graph.m, THREADS, first=0, last=graph.m),
            Scan("counts", "starts"),
        ],
        work=simulated.search_work(graph, EDGE_US, STEP_US),
    )  # fmt: skip
