"""`adaptive` for edges and vertices: in how many triangles each of them is. The layout of `adaptive`, other kernels.

Contract: for a triangle j < i < k, once each, the nonzeros (i, j), (k, j) and (k, i) gain 1. Triangles come by the
billion, so that the point is to spend no atomic addition on each of them. The rows of bits of many columns lie one over
the other; how many of them have a 1 in each place is counted for 64 places at once, by the logic that a processor adds
with (`tally_eight`): one plane of bits for the ones, one for the twos, and so on, a few of them in registers.

Skewed graphs, in degree order; hubs come in stretches of 2,048, for each of which a lane has one word:

    column_tally    i and k hubs, column j heavy  a warp per heavy column j: the rows of its hubs, one over the other,
                                                  give (k, j) and (i, j)
    pair_tally      the same triangles            a warp per hub i: the heavy columns that hold it, one over the other,
                                                  give (k, i)
    window_tally    k near, all others            a block per i, as `window_kernel`: (i, j) a sum, (k, i) counted in
                                                  shared memory, (k, j) an atomic addition
    sieve_tally     the same, i in few columns    a warp per i, all of them atomic additions
    far_tally, hash_tally   k not near            atomic additions: there are few of these triangles
    gather          nonzeros that are near        were counted where their near numbers are; now by nonzero

Flat graphs, in natural order; a vertex is *banded* if all of its neighbours are within a few thousand of it:

    band_tally      j and i banded                a warp per j: the rows of all its neighbours, on either side, one over
                                                  the other, give (i, j) for each of its nonzeros, complete
    merge_tally     all other nonzeros            two pointers, atomic additions

For the triangles of a vertex, `ends.sum_ends` adds up those of its edges.
"""

from dataclasses import replace

import numpy as np

from tcgpu.declarations import check_integer
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import Scan, ends, orientation, simulated
from tcgpu.kernels.adaptive import setup
from tcgpu.kernels.adaptive.band import BAND_LIST, band_tally, fill_band_rows, mark_open, merge_corners, merge_tally
from tcgpu.kernels.adaptive.hubs import COLUMN_PLANES, PIECE_PLANES, STRETCHES, column_tally, pair_tally
from tcgpu.kernels.adaptive.planes import IN_REGISTERS
from tcgpu.kernels.adaptive.setup import (
    BITS,
    EMPTY,
    FRONTS,
    GOLDEN,
    HUBS,
    NEAR,
    NO_CROWD,
    PIECE,
    ROW,
    TABLE,
    TASK,
    launch,
    local_words,
    tasks_created,
    tasks_listed,
)
from tcgpu.kernels.adaptive.windows import DESK, ROOM, SIEVE, sieve_tally, window_tally
from tcgpu.kernels.bisson_fatica.support import SupportPlan

FEW = 32  # in-edges that make a vertex one for window_tally
LANES = 4  # share an in-edge in hash_tally
MANY = 1 << 23  # edges of a large graph
MOST_EDGES = 2**31 - 1
MOST_HEAVY = 2**25 - 1  # columns whose bits a number of 32 bits can tell apart
MOST_WORDS = 2**32  # of bands: numbers of 32 bits tell them apart
LONGEST = 2**16  # rows of a column whose gains fit into 16 bits


# ------------------------------------------------------------------------------------------------------ in degree order


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64, int32[::1])")
def far_tally(col_ptr, row_idx, col_of, far, short, support):
    """A thread per nonzero (i, j): two pointers along the far rows of columns i and j, if j has fewer than `short`."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        length = far[j]
        p_end = col_ptr[j] + length
        if e + 1 < p_end and length < short:
            p, q = uint32(e + 1), uint32(col_ptr[i])
            q_end = uint32(q + uint32(far[i]))
            found = int32(0)
            while p < uint32(p_end) and q < q_end:
                x, y = row_idx[p], row_idx[q]
                if x == y:
                    cuda.atomic.add(support, p, int32(1))
                    cuda.atomic.add(support, q, int32(1))
                    found = int32(found + int32(1))
                p = uint32(p + (x <= y))
                q = uint32(q + (y <= x))
            if found != 0:
                cuda.atomic.add(support, e, found)
        e += cuda.gridsize(1)


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def hash_tally(col_ptr, row_idx, far, long, listed, support):
    """A block per listed column j: its first far[j] rows in a hash table, and where they are, looked up for those of
    each column i in it."""
    table = cuda.shared.array(0, int32)  # TABLE rows at a time; then, from table[2 * TABLE] on, where each is
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    group, seat, groups = thread // LANES, thread % LANES, threads // LANES
    task = cuda.blockIdx.x
    while task < listed[1]:
        j = long[task]
        first, end = col_ptr[j], col_ptr[j] + far[j]
        while first < end:
            length = min(end - first, TABLE)
            k = thread
            while k < 2 * TABLE:
                table[k] = EMPTY
                k += threads
            cuda.syncthreads()
            p = first + thread
            while p < first + length:
                x = row_idx[p]
                k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(22)
                while cuda.atomic.cas(table, k, EMPTY, x) != EMPTY:
                    k = (k + uint32(1)) & uint32(2 * TABLE - 1)
                table[k + uint32(2 * TABLE)] = int32(p - first)
                p += threads
            cuda.syncthreads()
            e = col_ptr[j] + group
            while e < end:
                i = row_idx[e]
                q, q_end = col_ptr[i] + seat, col_ptr[i] + far[i]
                found = int32(0)
                while q < q_end:
                    x = row_idx[q]
                    k = uint32(uint32(x) * uint32(GOLDEN)) >> uint32(22)
                    y = table[k]
                    while y != EMPTY and y != x:
                        k = (k + uint32(1)) & uint32(2 * TABLE - 1)
                        y = table[k]
                    if y == x:
                        cuda.atomic.add(support, first + table[k + uint32(2 * TABLE)], int32(1))
                        cuda.atomic.add(support, q, int32(1))
                        found = int32(found + int32(1))
                    q += LANES
                if found != 0:
                    cuda.atomic.add(support, e, found)
                e += groups
            cuda.syncthreads()
            first += length
        task += cuda.gridDim.x


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], uint16[::1], int32[::1], int32[::1])")
def gather(col_ptr, col_of, near_ptr, far, gains16, tallies, support):
    """A thread per nonzero whose row is near: what was counted where its near number is."""
    e = cuda.grid(1)
    while e < support.size:
        j = col_of[e]
        if e - col_ptr[j] >= far[j]:
            slot = 4 * int64(near_ptr[j + 1]) - (col_ptr[j + 1] - e)
            support[e] = tallies[slot] + int32(gains16[slot])
        e += cuda.gridsize(1)


# ------------------------------------------------------------------------------------------------------------- launcher


def support_plan(graph, **knobs):
    """The triangles of each edge; knobs as in `_made`."""
    return _made(graph, **knobs)


def triangles_plan(graph, **knobs):
    """The triangles of each vertex; knobs as in `_made`."""
    plan = _made(graph, **knobs)
    if [step.kernel for step in plan.steps] != [merge_tally]:
        return ends.of_vertices(plan, graph)
    plan.steps = [replace(plan.steps[0], kernel=merge_corners, args=("col_ptr", "row_idx", "col_of", "twice"))]
    plan.created = {"twice": (graph.n, np.int64, 0), "total": plan.created["total"]}
    return ends.halved(plan)


def _made(graph, *, near=NEAR, hubs=HUBS, heavy=None, short=32, words=None):
    """near, hubs, heavy, short, words: as in `adaptive.plan`; words: also how far a band reaches to either side.

    Without heavy, what was fastest on R-MAT graphs: a large one's columns are only heavy if they have twice as many.
    """
    if graph.m > MOST_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for edge support on a GPU, which takes up to {MOST_EDGES:,}")
    near = check_integer("near", near, 0, NEAR)
    hubs = min(check_integer("hubs", hubs, 0, HUBS), near)
    heavy = check_integer("heavy", (64 if graph.m < MANY else 128) if heavy is None else heavy, 0, 2**30)
    short = check_integer("short", short, 2, 2**30)
    if graph.order == "degree" and graph.max_column <= LONGEST:  # as columns in that order are
        return _by_degree(graph, near, hubs, heavy // 4, short)
    words = local_words(graph, short) if words is None else check_integer("words", words, 0, 1024)
    return _as_it_comes(graph, words)


def _as_it_comes(graph, words):
    words = words if 2 * words * graph.n <= MOST_WORDS else 0
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    merging = ("col_ptr", "row_idx", "col_of", words, "wide", "open", "support")
    created = {
        "support": (graph.m, np.int32, 0),
        "wide": (graph.n if words else 1, np.int32, 0),
        "open": (graph.n if words else 1, np.int32, 0),
    }
    steps = [launch(merge_tally, graph.m, 64, merging, most=16384)]
    views = {}
    if words:
        created["rows"] = (graph.n * 2 * words, np.uint64, 0)
        views["rows32"] = ("rows", np.uint32)
        planes = max(IN_REGISTERS, (128 * words).bit_length())
        banding = ("col_ptr", "row_idx", "rows", "rows32", "wide", words, planes, "support")
        shared = 2 * (8 * 32 * planes + 2 * BAND_LIST)  # a warp each
        steps = [
            launch(fill_band_rows, graph.m, 256, ("row_idx", "col_of", words, "rows32", "wide")),
            launch(mark_open, graph.m, 256, ("row_idx", "col_of", "wide", "open")),
            launch(band_tally, 32 * graph.n, 64, banding, most=16896, shared=shared),
            *steps,
        ]
    work = simulated.work(graph, row_us=1.8)
    return SupportPlan(method="adaptive", copied=copied, created=created, steps=steps, views=views, work=work)


def _by_degree(graph, near, hubs, heavy, short):
    n, m = graph.n, graph.m
    base, zero, lowest = n - near, n - NEAR - 1, NEAR + 1 - hubs
    most = min(n, m // (4 * heavy + 1) + 1) if hubs else 0  # heavy columns
    if most >= MOST_HEAVY:
        raise GraphError(f"heavy={4 * heavy} may make too many of {n:,} columns heavy: take the default")
    columns = ("col_ptr", "row_idx", "col_of")
    measuring = ("col_ptr", "row_idx", base, heavy, short, 0, 1, "far", "quad_count", "heavy", "long", "listed")
    laying = (*columns, "near_ptr", "place", base, zero, heavy, lowest,
              "in_ptr", "put", "crossed", "near", "in_edges", "origins")  # fmt: skip
    by_stretch = ("near", "near_ptr", hubs, "rows32", "queues", "held")
    by_column = ("near", "near_ptr", "heavy", "listed", "queues", "rows", lowest, most, "held", "tallies")
    by_pair = ("near", "near_ptr", "in_ptr", "in_edges", "crossed", "piece_ptr", "piece_places", "held", most, "queues",
               "tallies")  # fmt: skip
    by_window = ("near", "quads", "few_columns", "few_pieces", "in_edges", "origins", "few_ptr", "in_ptr", max(0, base),
                 "queues", "gains", "tallies", "support")  # fmt: skip
    by_sieve = ("near", "quads", "tiny_columns", "tiny_pieces", "in_edges", "origins", "tiny_ptr", "in_ptr",
                max(0, base), "gains", "tallies", "support")  # fmt: skip
    pieces = min(n, HUBS) + m // PIECE
    by_hubs = [
        launch(column_tally, 32 * n, 128, by_column, most=4224, shared=4 * 8 * (ROW + 32 * COLUMN_PLANES)),
        launch(pair_tally, STRETCHES * 32 * pieces, 128, by_pair, most=4224, shared=4 * 8 * 32 * PIECE_PLANES),
    ]
    copied = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of}
    occurrences = getattr(graph, "occurrences", None)
    if occurrences is None:
        in_edges, counting = m, launch(orientation.count_rows, m, 256, ("row_idx", "in_count"))
    else:
        copied["occurrences"] = occurrences
        in_edges = 2 * graph.records - m
        counting = launch(setup.bound_in_edges, n, 256, ("occurrences", "col_ptr", "in_count"))
    quads = m // 4 + min(n, m) + 1
    return SupportPlan(
        method="adaptive",
        copied=copied,
        created={
            "support": (m, np.int32, 0),
            "tallies": (4 * quads, np.int32, 0),
            "gains": (2 * quads, np.uint32, 0),
            "far": (n, np.int32, None),
            "quad_count": (n, np.int32, None),
            "near_ptr": (n + 1, np.int32, None),
            "heavy": (n, np.int32, None),
            "place": (n, np.int32, None),
            "long": (n, np.int32, None),
            "listed": (2, np.int64, 0),
            "queues": (3, np.int64, None),
            "quads": (quads, np.uint64, 0),
            "in_count": (n, np.int32, 0),
            "in_ptr": (n + 1, np.int64, None),
            "put": (n + 1, np.int64, None),
            "in_edges": (in_edges, np.uint64, None),
            "origins": (in_edges, np.uint32, None),
            "rows": ((HUBS + 1) * ROW, np.uint64, 0),  # and one of zeros
            "crossed": (HUBS, np.int32, 0),
            "pieces": (FRONTS * HUBS, np.int32, None),
            "piece_ptr": (FRONTS * HUBS + 1, np.int32, None),
            "piece_places": (pieces, np.int32, None),
            "held": (32 * (1 + STRETCHES * most), np.uint64, None),
            **tasks_created("few", n, m // FEW + m // TASK + 1),
            **tasks_created("tiny", n, min(n, m)),
        },
        views={
            "near": ("quads", np.uint16),
            "rows32": ("rows", np.uint32),
            "gains16": ("gains", np.uint16),
        },
        setup=[
            launch(setup.measure_columns, n, 256, measuring),
            launch(setup.place_heavy, n, 256, ("heavy", "listed", "place")),
            Scan("quad_count", "near_ptr"),
            counting,
            Scan("in_count", "in_ptr"),
            Scan("in_count", "put"),
            launch(setup.lay_out_nonzeros, m, 256, laying),
            *tasks_listed("few", n, FEW, NO_CROWD),
            *tasks_listed("tiny", n, 1, FEW),
            launch(setup.count_pieces, FRONTS * HUBS, 256, ("crossed", "pieces")),
            Scan("pieces", "piece_ptr"),
            launch(setup.fill_pieces, FRONTS * HUBS, 256, ("piece_ptr", "piece_places")),
        ],
        steps=[
            launch(setup.fill_stretch_rows, 32 * min(hubs, n), 256, by_stretch),
            *(by_hubs if hubs else []),
            launch(window_tally, 128 * (m // FEW), 128, by_window, shared=6 * BITS + 4 * ROOM + 4 * 4 * DESK),
            launch(sieve_tally, 32 * n, 128, by_sieve, most=4224, shared=4 * 4 * (SIEVE + DESK)),
            launch(hash_tally, 64 * n, 64, (*columns[:2], "far", "long", "listed", "support"), 4224, 4 * 4 * TABLE),
            launch(far_tally, m, 64, (*columns, "far", short, "support"), most=16384),
            launch(gather, m, 256, ("col_ptr", "col_of", "near_ptr", "far", "gains16", "tallies", "support"), 16384),
        ],
        # the threads of count_pieces and fill_pieces add nothing up with others: 4 microseconds less for each
        work=simulated.work(graph, -4.0 * 2 * FRONTS * HUBS, row_us=9.1),
    )
