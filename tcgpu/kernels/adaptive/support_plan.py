"""The plan that counts the triangles of each edge, or of each vertex.

For each triangle j < i < k, the nonzeros (i, j), (k, j) and (k, i) gain 1. An atomic addition for each would take
longer than finding the triangle. So each way to find triangles keeps sums where it finds them:

    and_tally        rows of bits              a warp ANDs row j with row i: that is the sum of (i, j)
    table_tally      i with many in-edges      a block per i, its column a hash table with counters: (i, j) is a sum,
                                               (k, i) has a counter, (k, j) takes an atomic addition
    merge_few_tally  i with few in-edges       two pointers: atomic additions for all three
    merge_tally      other edges               two pointers, or few rows looked up among many; counters in shared memory
    merge_columns_tally                        all edges, if columns are short and counters do not pay: a thread per
                                               column

In degree order, the last vertices are the core. and_tally finds the triangles that are in the core; of the others, the
first vertex j is before it. If it costs less, all columns are merged. In natural order a vertex is banded if all of its
neighbours are within a few thousand of it. merge_tally has all edges of the columns where a vertex is not, and then
and_tally overwrites the edges of two banded vertices.

`results.sum_ends` adds up the triangles of a vertex's edges. If all columns are merged, the same kernels count those of
vertices at once.
"""

from dataclasses import replace

import numpy as np

from tcgpu.built_in import HUBS, LONG, NEAR
from tcgpu.declarations import check_integer
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, launch, results, simulated
from tcgpu.kernels.adaptive import bit_rows, layout, tables
from tcgpu.kernels.adaptive import support_merges as merges
from tcgpu.kernels.device_graph import DeviceGraph

MANY = 16  # in-edges, from which on a vertex' column becomes a table
TABLE_ROWS, LANES = 1024, 8  # of a table at a time; threads that share an in-edge
MAX_EDGES = 2**31 - 1
MAX_BAND_WORDS = 2**32  # positions of words must fit 32 bits
NO_LIMIT = 2**30  # in-edges


def support_plan(graph, *, near=NEAR, hubs=HUBS, heavy=None, short=None, long=LONG, words=None, merge=None):
    """The plan of each edge's triangles.

    long, words, merge: as in `plan`; words: also how far a band extends to either side. hubs: the vertices of the core,
    at most. near, heavy, short: they are checked, and change nothing.
    """
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MAX_EDGES:,}")
    near = check_integer("near", near, 0, NEAR)
    hubs, long = min(check_integer("hubs", hubs, 0, HUBS), near), check_integer("long", long, 1, 2**30)
    for name, value, least in (("heavy", heavy, 0), ("short", short, 2)):
        if value is not None:
            check_integer(name, value, least, 2**30)
    if graph.order != "degree":
        words = bit_rows.local_words(graph) if words is None else check_integer("words", words, 0, 1024)
        return _merged(graph, long, words)
    if merge is None:
        usual = (near, hubs) == (NEAR, HUBS) and isinstance(graph, DeviceGraph)
        merge = usual and graph.order_costs.merges_for_tallies()
    return _merged(graph, long, 0) if merge else _by_classes(graph, hubs)


def triangles_plan(graph, **knobs):
    """The plan of each vertex's triangles; knobs as in `support_plan`."""
    plan = support_plan(graph, **knobs)
    if "rows" in plan.created:
        return results.sums_at_vertices(plan, graph)
    long = knobs.get("long", LONG)
    created = {name: array for name, array in plan.created.items() if name != "support"}
    created["twice"] = (graph.n, np.int64, 0)
    return replace(plan, steps=merges.launches(graph, long), created=created, output="twice", halved=True)


def _merged(graph, long, words):
    n, m = graph.n, graph.m
    words = words if 2 * words * n <= MAX_BAND_WORDS else 0
    created, views, marked, banded = {}, {}, [], []
    if words:
        created["rows"], views["rows32"] = (n * 2 * words, np.uint64, 0), ("rows", np.uint32)
        marked = [launch(bit_rows.fill_band_rows, m, 256, words=words), launch(bit_rows.mark_open, m, 256)]
        banded = [bit_rows.by_rows(bit_rows.and_tally, m, m, 2 * words, first=0, words=words)]
    return ArrayPlan(
        method="adaptive",
        copied=layout.columns_of(graph),
        created={
            **created,
            "support": (m, np.int32, 0),
            "wide": (n if words else 1, np.int32, 0),
            "open": (n if words else 1, np.int32, 0),
        },
        steps=[*marked, *merges.launches(graph, long, words), *banded],
        views=views,
        work=simulated.work(graph, row_us=1.8),
    )


def _by_classes(graph, hubs):
    n, m = graph.n, graph.m
    first = max(0, n - hubs)
    made, of_columns = layout.room_for_in_edges(graph), layout.FAR_ROWS | {"lengths": "lengths"}
    tasks = layout.tasks_by_in_edges("table", n, m, MANY, NO_LIMIT, rows=of_columns)
    stride, of_core = (n - first + 63) // 64, []
    if hubs and m:
        of_core = [
            launch(bit_rows.fill_core_rows, m, 256, first=first, stride=stride),
            bit_rows.by_rows(bit_rows.and_tally, m, m, stride, first=first, words=0),
        ]
    given = {"table_rows": TABLE_ROWS, "lanes": LANES} | layout.task_arrays("table")
    shared = tables.table_bytes(TABLE_ROWS, 2)
    return ArrayPlan(
        method="adaptive",
        copied=made.copied,
        created={
            **made.created,
            **tasks.created,
            "lengths": (n, np.int32, None),
            "support": (m, np.int32, 0),
            "rows": ((n - first) * stride, np.uint64, 0),
            "wide": (1, np.int32, 0),
        },
        views={"rows32": ("rows", np.uint32)},
        setup=[
            launch(layout.measure_lengths, n, 256),
            *made.setup,
            launch(layout.list_in_edges, m, 256, last=first),
            *tasks.setup,
        ],
        steps=[
            *of_core,
            launch(tables.table_tally, 256 * (m // MANY), 256, 8448, shared, **given),
            launch(merges.merge_few_tally, m, 64, 16384, fewer=MANY, last=first),
        ],
        work=simulated.work(graph, row_us=9.1),
    )
