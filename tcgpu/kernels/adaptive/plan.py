"""The plan of a count: which kernels, in which order and shape, on which arrays."""

import numpy as np

from tcgpu.built_in import CROWD, HEAVY, HUBS, LONG, NEAR, NEVER, SHORT, planner
from tcgpu.engines import runtime
from tcgpu.gpu_costs import FEW_RAW, SMALL
from tcgpu.graph import edge_arrays, known_count
from tcgpu.kernels import Plan, check_positions, check_share, device_graph, launch, simulated
from tcgpu.kernels.adaptive import dense, edge_table, far, layout, look_ups, merging, tables, windows
from tcgpu.kernels.adaptive.bit_rows import by_rows, fill_local_rows, local_kernel, local_words
from tcgpu.kernels.adaptive.hubs import HUB_BYTES, hub_kernel
from tcgpu.kernels.adaptive.layout import FIRST_HUB, HUB_WORDS
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.order_costs import MAY_SEARCH

MAX_QUADS = 2**31 - 1  # that quad_ptr can number: graphs that may have more are merged
FAR_EDGES_FROM = 1 << 27  # nonzeros from which on it pays to list far rows with the in-edges
LONG_PIECES_FROM = 1 << 27  # nonzeros from which on in-edges are so long that 16 threads share one in crowd_kernel
CLASSES = NEAR, HUBS, HEAVY, CROWD  # the defaults of four knobs: only with these may merging replace them,
USUAL = *CLASSES, SHORT, LONG, None, None, (0, 1)  # and only with those of all may rows of bits


def prepare(graph, order):
    """What `plan` takes: RawEdges, if they are few or of few vertices; or what `device_graph.prepare` makes."""
    if order == "auto" and isinstance(graph, tuple) and not runtime.current().in_main_memory:
        return _of_raw(*edge_arrays(graph))
    return device_graph.prepare(graph, order)


def _of_raw(u, v, n=None):
    u, v = device_graph.edges_on_device(u, v)
    if u.size <= FEW_RAW and runtime.engine() != "webgpu" and (n is None or known_count(n) <= dense.MOST_FEW):
        below, high, found = dense.count_few(u, v)
        n, check = device_graph.vertices_of(~below, high, n, u.size), None
        if n <= dense.MOST_FEW:
            return dense.RawEdges(u, v, n, found)
    else:
        n, check = device_graph.vertices(u, v, n)
    if u.size <= FEW_RAW or n <= dense.MOST_ROWS and dense.is_dense(n, u.size):
        if check:
            check()
        return dense.RawEdges(u, v, n)
    return DeviceGraph.of_vertices(u, v, n, check, "auto")


@planner("adaptive", prepare)
def plan(graph, *, near, hubs, heavy, crowd, short, long, words, merge, share):
    """The count of a graph: in degree order by classes, merges or look-ups; in another local columns and merges. Raw
    edges are counted without columns, in rows of bits or a hash table.

    near, hubs, heavy, crowd, short, long, words, merge: its knobs. share: (index, of) counts share number `index` of
    `of`; the counts of all shares add up to the total, and take about equally long.
    """
    share = check_share(share)
    usual = (near, hubs, heavy, crowd, short, long, words, merge, share) == USUAL
    if isinstance(graph, dense.RawEdges):
        edges = u, v, n = graph[:3]
        if usual and graph.found is not None:
            return dense.Counted(graph)
        if usual and n > dense.MOST_ROWS:
            return edge_table.plan(*edges)
        if usual:
            return dense.plan(*edges, dense.is_dense(n, u.size))
        graph = device_graph.prepare(edges, "auto")
    check_positions(graph)
    if usual and isinstance(graph, DeviceGraph) and graph.m > SMALL:
        if graph.n <= dense.MOST_ROWS and graph.order_costs.suits_tiles():
            return dense.plan(graph.row_idx, graph.col_of, graph.n, True)
        if graph.order == "degree" and graph.order_costs.looks_up() and runtime.fits(look_ups.PIECE_BYTES * graph.m):
            return look_ups.plan(graph)
    if graph.order != "degree":
        return _merged(graph, short, long, local_words(graph, share) if words is None else words, share)
    if merge is None:
        merge = (near, hubs, heavy, crowd) == CLASSES and isinstance(graph, DeviceGraph) and graph.order_costs.merges()
    has_far = graph.m >= FAR_EDGES_FROM
    too_long = has_far and graph.max_column > layout.MOST_FAR  # by bad estimates
    if merge or too_long or layout.most_quads(graph, 3) > MAX_QUADS:
        return _merged(graph, short, long, 0, share)
    return _by_classes(graph, near, min(hubs, near), heavy // 4, crowd, share, has_far)


def _merged(graph, short, long, words, share):
    of_share = {"index": share[0], "of": share[1]}
    known = {"short": short, "words": words} | of_share
    created, views, setup, of_local, threads = {}, {}, [], [], -(-graph.m // share[1])
    if words:
        created["local_rows"] = (graph.n * words, np.uint64, 0)
        views["local_rows32"] = ("local_rows", np.uint32)
        of_local = [
            launch(fill_local_rows, graph.m, 256, words=words),
            by_rows(local_kernel, graph.m, threads, words, **known),
        ]
    merges = [launch(merging.merge_kernel, threads, 256, 4096, **known)]
    if merging.has_no_triangles(graph):
        merges = []
    elif not words and merging.has_short_columns(graph):
        columns = -(-graph.n // share[1])
        merges = [launch(merging.merge_columns_kernel, columns, 256, 1056, **of_share)]
    elif graph.max_column > min(long // 2, MAY_SEARCH):  # else columns differ too little for searches to pay
        merges = [launch(merging.merge_short_kernel, threads, 64, 16384, long=long, **known)]
    elif not words and merging.has_distant_columns(graph):
        created |= {"filters": (graph.n, np.uint64, None), "tried": (2, np.int64, 0)}
        stride = max(1, graph.m // merging.TRIALS)
        trials = launch(merging.try_filters, graph.m // stride, 256, stride=stride)
        setup = [launch(merging.fill_filters, graph.n, 256), trials]
        merges = [launch(merging.merge_filtered_kernel, threads, 128, 16384, **of_share)]
    return Plan(
        method="adaptive",
        copied=layout.columns_of(graph),
        created=created,
        views=views,
        setup=setup,
        steps=[*of_local, *merges],
        work=simulated.work(graph, 3.8 * graph.m, row_us=1.0),
    )


def _by_classes(graph, near, hubs, heavy_quads, crowd, share, has_far):
    n, m = graph.n, graph.m
    sized = has_far or m >= layout.SIZED_FROM
    rows, first_number, most_rows, least = hubs, FIRST_HUB, HUBS, 0  # of bits
    if has_far:
        rows, first_number, most_rows, least = near, 0, NEAR + 1, layout.FEWEST_HUBS
    cuts = {"first_near": n - near, "first_hub": n - hubs, "first_row": n - rows, "heavy_quads": heavy_quads}
    cuts |= {"least": least, "index": share[0], "of": share[1]}
    made = layout.in_edges_by_degree(graph, cuts, has_far, sized)
    tasks, of_near = near_windows(n, m, crowd, sized)
    merges = [launch(far.far_kernel, m, 64, 16384, **cuts)]
    far_tasks, of_far = far_windows(n, "row_idx") if has_far else ([], merges)
    tasks += far_tasks
    return Plan(
        method="adaptive",
        copied=made.copied,
        created={
            **made.created,
            **{name: array for kind in tasks for name, array in kind.created.items()},
            "hub_rows": (most_rows * HUB_WORDS, np.uint64, 0),
            "queue": (1, np.int64, None),
        },
        views={"hub_rows32": ("hub_rows", np.uint32), **({} if sized else {"near": ("quads", np.uint16)})},
        setup=[*made.setup, *(step for kind in tasks for step in kind.setup)],
        steps=[
            launch(layout.fill_hub_rows, 32 * min(rows, n), 256, rows=rows, first_number=first_number),
            launch(hub_kernel, 32 * n, 128, 4224, HUB_BYTES, first_number=first_number),
            *of_near,
            *of_far,
        ],
        work=simulated.work(graph, 2800 * n),
    )


def near_windows(n, in_edges, crowd, sized):
    """(Layouts of the tasks, launches) that look up near rows: windows of n vertices with at most `in_edges` in-edges.

    crowd: a knob. sized: as in `layout.tasks_by_in_edges`.
    """
    if windows.CROWD_BYTES + 1024 > runtime.facts().shared_per_block:  # too small for a byte for each near number
        crowd = NEVER
    tasks, launches = [layout.tasks_by_in_edges("window", n, in_edges, 1, crowd, sized)], []
    if crowd < NEVER:
        tasks.append(layout.tasks_by_in_edges("crowd", n, in_edges, crowd, NEVER, sized))
        shape = 640 * (in_edges // crowd), 640, 396, windows.CROWD_BYTES
        lanes = 16 if in_edges >= LONG_PIECES_FROM else 8
        launches = [launch(windows.crowd_kernel, *shape, lanes=lanes, **layout.task_arrays("crowd"))]
    shape = 96 * n, 96, 11088, windows.WINDOW_BYTES
    given = {"lanes": 8, **layout.task_arrays("window")}
    return tasks, [*launches, launch(windows.window_kernel, *shape, **given)]


def far_windows(n, column_rows):
    """(Layouts of the tasks, launches) that look up far rows: windows of n vertices. column_rows: see
    `far.far_window_kernel`."""
    tasks, launches = [], []
    for fewest, fewer, threads, rows, lanes in far.FAR_WINDOWS:
        kind, shared = f"far{fewest}", tables.table_bytes(rows, 1)
        tasks.append(layout.tasks_by_in_edges(kind, n, 0, fewest, fewer, True, layout.FAR_ROWS))
        given = {"column_rows": column_rows, "table_rows": rows, "lanes": lanes} | layout.task_arrays(kind)
        launches.append(launch(far.far_window_kernel, threads * n, threads, 1 << 17, shared, **given))
    return tasks, launches
