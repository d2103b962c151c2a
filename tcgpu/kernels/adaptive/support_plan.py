"""The plan that counts the triangles of each edge, or of each vertex: the arrays of a count, and other kernels.

For each triangle j < i < k, the nonzeros (i, j), (k, j) and (k, i) gain 1. An atomic addition for each would take
longer than finding the triangle. So rows of bits are added up where possible: `support_counters` counts for 64 vertices
at once how many rows have their bit set.

In degree order, triangles with a near k are counted by slot: in slot_support16 for a quad's number or an in-edge, in
slot_support for a row of column i or a hub.

    column_tally    hubs i, k, heavy j   a warp per j adds up the rows of its hubs: that gives (k, j) and (i, j)
    pair_tally      the same triangles   a warp per i adds up the bits of heavy columns that hold i: that gives (k, i)
    window_tally    other near k         a block per i, as window_kernel: (i, j) is a sum, (k, i) is counted in shared
                                         memory, (k, j) takes an atomic addition
    sieve_tally     the same, i with     a warp per i: as window_tally, with a smaller bitmap that gives false positives
                    few in-edges
    far_tally       far k                as far_kernel and hash_kernel: atomic additions for all three
    hash_tally
    gather          near k               from slots to nonzeros

In natural order, where a vertex is banded if all of its neighbours are within a few thousand of it:

    band_tally      banded i and j       a warp per j adds up the rows of all its neighbours: that gives all of (i, j)
    merge_tally     other edges          two pointers, or few rows looked up among many; counters in shared memory
    search_tally    the same             many rows looked up among many, 512 to a task
    merge_columns_tally                  all edges, if columns are short and counters do not pay: a thread per column

`results.sum_ends` adds up the triangles of a vertex's edges. Without bands, `merge_corners`, `search_corners` and
`merge_columns_corners` count those of vertices.
"""

from dataclasses import replace

import numpy as np

from tcgpu.built_in import HUBS, LONG, NEAR
from tcgpu.declarations import check_integer
from tcgpu.engines.runtime import cuda, int32, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import ArrayPlan, launch, results, simulated
from tcgpu.kernels.adaptive import far, layout, local, merging, support_layout
from tcgpu.kernels.adaptive import support_bands as bands
from tcgpu.kernels.adaptive import support_merges as merges
from tcgpu.kernels.adaptive import support_windows as windows
from tcgpu.kernels.adaptive.layout import HUB_WORDS, most_quads, slot_of_nonzero
from tcgpu.kernels.adaptive.support_counters import IN_REGISTERS
from tcgpu.kernels.adaptive.support_hubs import BATCH_BYTES, COLUMN_BYTES, HUB_GROUPS, column_tally, pair_tally

FEW = 32  # in-edges: vertices with fewer are for support_windows.sieve_tally
LARGE = 1 << 23  # edges: in larger graphs a column is heavy only with twice as many near rows
MAX_EDGES = 2**31 - 1
MAX_HEAVY = 2**25 - 1  # heavy columns: the positions of their bits must fit 32 bits
MAX_BAND_WORDS = 2**32  # positions of words must fit 32 bits
MAX_QUADS = 2**30 - 1  # the positions of their slots must fit 32 bits: graphs that may have more are merged
MAX_COLUMN = 2**16  # rows of a column whose counts fit into slot_support16
NO_LIMIT = 2**30  # in-edges


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], uint16[::1], int32[::1], int32[::1])")
def gather(col_ptr, col_of, quad_ptr, far_count, by_slot16, slot_support, support):
    """A thread per nonzero: copy the count of its slot, if its row is near."""
    e = cuda.grid(1)
    while e < support.size:
        j = col_of[e]
        if e - col_ptr[j] >= far_count[j]:
            slot = slot_of_nonzero(col_ptr, quad_ptr, e, j)
            support[e] = slot_support[slot] + int32(by_slot16[slot])
        e += cuda.gridsize(1)


def support_plan(graph, *, near=NEAR, hubs=HUBS, heavy=None, short=32, long=LONG, words=None, merge=None):
    """The plan of each edge's triangles.

    near, hubs, heavy, short, long, words, merge: as in `plan`; words: also how far a band extends to either side. The
    default of heavy is the fastest on R-MAT graphs: 64, and 128 for a large graph.
    """
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MAX_EDGES:,}")
    near = check_integer("near", near, 0, NEAR)
    hubs, given = min(check_integer("hubs", hubs, 0, HUBS), near), heavy
    heavy = check_integer("heavy", (64 if graph.m < LARGE else 128) if heavy is None else heavy, 0, 2**30)
    short, long = check_integer("short", short, 2, 2**30), check_integer("long", long, 1, 2**30)
    if graph.order != "degree":
        words = local.local_words(graph) if words is None else check_integer("words", words, 0, 1024)
        return _merged(graph, long, words)
    if merge is None:
        merge = (near, hubs, given) == (NEAR, HUBS, None) and merging.merges_all_for_tallies(graph)
    if merge or most_quads(graph) > MAX_QUADS or graph.max_column > MAX_COLUMN:  # as no column is in that order
        return _merged(graph, long, 0)
    return _by_classes(graph, near, hubs, heavy // 4, short)


def triangles_plan(graph, **knobs):
    """The plan of each vertex's triangles; knobs as in `support_plan`."""
    plan = support_plan(graph, **knobs)
    if {"slot_support", "band_rows"} & plan.created.keys():
        return results.sums_at_vertices(plan, graph)
    long = knobs.get("long", LONG)
    created = {"twice": (graph.n, np.int64, 0), **merges.searches(graph, long)}
    return replace(plan, steps=merges.launches(graph, long), created=created, output="twice", halved=True)


def _merged(graph, long, words):
    n, m = graph.n, graph.m
    words = words if 2 * words * n <= MAX_BAND_WORDS else 0
    created, banded, views = merges.searches(graph, long), [], {}
    if words:
        created["band_rows"], views["band_rows32"] = (n * 2 * words, np.uint64, 0), ("band_rows", np.uint32)
        planes = max(IN_REGISTERS, (128 * words).bit_length())
        shared = 2 * (8 * 32 * planes + 2 * bands.LISTED)  # of two warps
        banded = [
            launch(bands.fill_band_rows, m, 256, words=words),
            launch(bands.mark_open, m, 256),
            launch(bands.band_tally, 32 * n, 64, 16896, shared, words=words, most_planes=planes),
        ]
    return ArrayPlan(
        method="adaptive",
        copied=layout.columns_of(graph),
        created={
            **created,
            "support": (m, np.int32, 0),
            "wide": (n if words else 1, np.int32, 0),
            "open": (n if words else 1, np.int32, 0),
        },
        steps=[*banded, *merges.launches(graph, long, words)],
        views=views,
        work=simulated.work(graph, row_us=1.8),
    )


def _by_classes(graph, near, hubs, heavy_quads, short):
    n, m = graph.n, graph.m
    most_heavy = min(n, m // (4 * heavy_quads + 1) + 1) if hubs else 0
    if most_heavy >= MAX_HEAVY:
        raise GraphError(f"heavy={4 * heavy_quads} may make too many of {n:,} columns heavy: take the default")
    cuts = {"first_near": n - near, "first_hub": n - hubs, "heavy_quads": heavy_quads}
    made, batches = layout.in_edges_by_degree(graph, n - near, heavy_quads, short), support_layout.batches(graph)
    many = layout.tasks_by_in_edges("window", n, m, FEW, NO_LIMIT)
    few = layout.tasks_by_in_edges("sieve", n, m, 1, FEW)
    slots, in_edges, batched = most_quads(graph) * 4, made.created["in_edges"][0], batches.created["batch_list"][0]
    by_hubs = [
        launch(column_tally, 32 * n, 128, 4224, COLUMN_BYTES, first_hub=NEAR + 1 - hubs, most_heavy=most_heavy),
        launch(pair_tally, HUB_GROUPS * 32 * batched, 128, 4224, BATCH_BYTES, most_heavy=most_heavy),
    ]
    tasks = {kind: {**layout.task_arrays(kind), "first_near": max(0, n - near)} for kind in ("window", "sieve")}
    return ArrayPlan(
        method="adaptive",
        copied=made.copied,
        created={
            **made.created,
            **many.created,
            **few.created,
            **batches.created,
            "support": (m, np.int32, 0),
            "slot_support": (slots, np.int32, 0),
            "slot_support16": (slots // 2, np.uint32, 0),
            "heavy_number": (n, np.int32, None),
            "queues": (3, np.int64, None),
            "edge_slots": (in_edges, np.uint32, None),
            "hub_rows": ((HUBS + 1) * HUB_WORDS, np.uint64, 0),  # the last row stays zero
            "heavy_bits": (32 * (1 + HUB_GROUPS * most_heavy), np.uint64, None),
        },
        views={
            "near": ("quads", np.uint16),
            "hub_rows32": ("hub_rows", np.uint32),
            "by_slot16": ("slot_support16", np.uint16),
        },
        setup=[
            *made.setup,
            launch(support_layout.number_heavy, n, 256),
            launch(support_layout.lay_out_nonzeros, m, 256, **cuts),
            *many.setup,
            *few.setup,
            *batches.setup,
        ],
        steps=[
            launch(layout.fill_group_rows, 32 * min(hubs, n), 256, hubs=hubs),
            *(by_hubs if hubs else []),
            launch(windows.window_tally, 128 * (m // FEW), 128, shared=windows.WINDOW_BYTES, **tasks["window"]),
            launch(windows.sieve_tally, 32 * n, 128, 4224, windows.SIEVE_BYTES, **tasks["sieve"]),
            launch(far.hash_tally, 128 * n, 128, 4224, far.TALLY_BYTES),
            launch(far.far_tally, m, 64, 16384, short=short),
            launch(gather, m, 256, 16384),
        ],
        # the threads of count_batches and list_batches add no sums over their block: 4 microseconds less for each
        work=simulated.work(graph, -4.0 * 2 * batches.created["batch_count"][0], row_us=9.1),
    )
