"""The tables and figures of the papers, measured again: `python benchmarks/papers.py SUITE` runs a suite.

    report    the report's four matrices, else generated graphs of their classes, in natural and in degree order
    sweep     its two kernels over nonzeros per column, from 1 to 64
    cache     the same two, in equal launch shapes, while a GPU's L1 cache shrinks
    table1    Bisson & Fatica's kernels on graph500's graphs and on those in the folder that TCGPU_GRAPHS names
    samples   their four kernels on generated graphs of every kind, to fit the constants of Algorithm 5 to
    truss3    the 3-trusses of the graphs of `table1`
    trusses   k-trusses for k from 3 to 100
    levels    Chatterjee et al.'s figures, beside one native thread
    lengths   merges and searches by the lengths of an edge's two columns
    tricore   TriCore's kernel and its baselines on R-MAT graphs
    ladder    `adaptive` without its ideas, and with one after the other
    webgpu    the kernels by CUDA and by WebGPU on one GPU
    published the methods as their papers have them beside ours, on graphs of the papers

    python benchmarks/papers.py SUITE [--methods M,M] [--engine gpu] [--repeats 5] [--share 0.01] [--output FILE.csv]

`report` takes a matrix that is on this machine: `tcgpu fetch auto` downloads one, TCGPU_GRAPHS names a folder of yours.

The record goes to data/measured/SUITE-MACHINE.csv, where the notebooks read it. --share makes the graphs of a suite
smaller, for smaller machines.
"""

import argparse
import inspect
import json
import math
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path

import tcgpu
from tcgpu import cpu, datasets
from tcgpu.built_in import K_TRUSS
from tcgpu.errors import GraphError, KernelError, TcgpuError
from tcgpu.generators import GENERATORS
from tcgpu.generators import edges as drawn_edges
from tcgpu.graph import Graph, as_graph
from tcgpu.kernels import simulated
from tcgpu.kernels.bisson_fatica import k_truss
from tcgpu.kernels.chatterjee import levels
from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.measurement import (
    REPEATS,
    check_agreement,
    common_result,
    machine,
    measure,
    medians,
    raw_edges,
    run_plan,
    settings_of,
    timed_runs,
)
from tcgpu.progress import part, underway
from tcgpu.records import Rows, fitting_columns, record_path
from tcgpu.registry import METHODS, choose, engine_of, on_engine

sys.path.append(str(Path(__file__).resolve().parents[1] / "notebooks"))
from helpers import lengths, level_models

LARGE = 1 << 25  # edges of a graph that is run twice at most

# The report's four graphs, generated: the call, and how many columns the report's second kernel takes at a time. How
# many triangles great-britain_osm has is in none of our sources. europe_osm, of the same collection, has 61,710
# (nvGraph's tests) and 54,054,660 edges (SuiteSparse): 1.1 for a thousand edges, and the generated one 1.2.
REPORT = {
    "delaunay_n22": ("delaunay", {"n": 1 << 22}, 27),
    "great-britain_osm": ("road", {"rows": 1767, "cols": 1767, "kept": 0.535, "bends": 1.3}, 27),
    "auto": ("mesh3d", {"planes": 77, "rows": 76, "cols": 77}, 27),
    "coPapersCiteseer": ("copapers", {"n": 434_102}, 1),
}
REPORT_METHODS = ("naive", "column_block", "bitmap", "report_auto")
SWEEP = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # nonzeros per column
SWEEP_EDGES = 1 << 23
ORDERS = ("natural", "degree")
SHARED_PERCENT = (-1, 0, 25, 50, 75)
CACHE = (2, 4, 8, 16, 24, 32, 40, 48, 64)  # nonzeros per column
CACHE_SHAPES = ({"threads": 512, "blocks": 256, "columns": 27}, {"threads": 128, "blocks": 1024, "columns": 27})

# Bisson & Fatica's four kernels, and the longest column that a suite leaves to a single thread or warp.
FOUR = ("bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global")
LONGEST_ALONE = {"bitmap_thread": 1 << 12, "bitmap_warp": 1 << 16}
GRAPH500 = range(18, 25)  # scales
SAMPLES = (  # graphs of many mean and longest columns and sizes
    *(("by_nonzeros", {"m": m, "nonzeros_per_column": k}) for m in (1 << 15, 1 << 21) for k in (2, 4, 8, 12, 16, 32)),
    *(("rmat", {"scale": scale, "edge_factor": k}) for scale in (14, 16, 18, 20) for k in (2, 4, 8, 16)),
    *(("copapers", {"n": n, "mean_degree": d}) for n in (20_000, 200_000) for d in (8, 20, 74)),
    *(("barabasi_albert", {"n": 1 << s, "k": k}) for s in (13, 16, 19) for k in (3, 6, 12)),
    *(("delaunay", {"n": 1 << s}) for s in (13, 16, 19)),
    *(("road", {"rows": r, "cols": r}) for r in (64, 256, 1024)),
    *(("mesh3d", {"planes": r, "rows": r, "cols": r}) for r in (20, 40, 80)),
    *(("watts_strogatz", {"n": 1 << s, "k": 20}) for s in (14, 18)),
)
# For Figure 5 one graph each that suits a thread, a warp or a block per column, and the values of k.
TRUSSES = (
    ("road", {"rows": 1200, "cols": 1200}),
    ("barabasi_albert", {"n": 1 << 20, "k": 7}),
    ("copapers", {"n": 100_000}),
    ("rmat", {"scale": 22}),
)
TRUSS_METHODS = (K_TRUSS, k_truss.METHOD)
TRUSS_KS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 75, 100)

# Chatterjee et al., by figure: how many vertices or which graph, which settings, and whether to time a native thread,
# too. Their graphs of up to 1,200 vertices are not published: small worlds stand for them. Of SNAP's they name none.
LEVELS_SNAP = ("as20000102", "ca-GrQc", "p2p-Gnutella04", "ca-HepPh", "ca-AstroPh", "ca-CondMat")
LEVELS = (
    ("10", (200, 400, 600, 800, 1000, 1200), ({},), True),
    ("11", (5_000, 10_000, 15_000, 20_000, 25_000, *LEVELS_SNAP), ({},), True),
    ("12", (200, 400, 600, 800, 1000, 1200),
     [{"memory": "global", "arrangement": arrangement} for arrangement in ("one", "redundant")], False),
    ("approaches", (400,), [{"approach": approach} for approach in "ABCD"], False),
    ("memory", (1000, 10_000), [{"memory": m, "lanes": n} for m in ("auto", "global") for n in (1, 32)], False),
    ("schedule", (("mesh", {"rows": 300, "cols": 300}),),
     [{"schedule": order, "piece": 2**62, "threads": 1024, "blocks": 132} for order in ("longest", "given")], False),
    ("skip", (1000, 25_000), ({"skip": True},), False),
)  # fmt: skip
LEVELS_NATIVE = 500_000_000  # combinations: of more, the native thread tests a share

# TriCore: lengths of columns; how many edges look up two of them follows from a number of rows in all, within limits.
LENGTHS = (1, 4, 16, 64, 256, 1024, 4096)
LENGTHS_METHODS = ("naive", "merge_path", "thread_search", "warp_search")
LENGTHS_ROWS, LENGTHS_EDGES = 1 << 32, (1 << 19, 1 << 22)
# R-MAT as it is drawn; and with as many edges as the slides' Kronecker1, where a thread per edge takes long.
TRICORE = (
    ("rmat20", {"scale": 20, "permuted": False}, ("naive", "adaptive", *LENGTHS_METHODS[1:])),
    ("rmat22", {"scale": 22, "permuted": False}, ("naive", "adaptive", *LENGTHS_METHODS[1:])),
    ("rmat22 of degree 64", {"scale": 22, "edge_factor": 64}, ("adaptive", "merge_path", "warp_search")),
)

# `adaptive`: the graphs of the ladder, and its rungs. In natural order some methods take seconds on a skewed graph.
LADDER_GRAPHS = {name: size for name, size, _ in TRICORE[:2]}
SLOW = 1 << 25  # edges from which on they do
NO_CROWD = {"crowd": 2**30}
LADDER = (  # what is new, method, order, knobs
    ("two pointers", "naive", "natural", {}),
    ("degree order", "naive", "degree", {}),
    ("bits in global memory", "bitmap", "natural", {}),
    ("bits in global memory", "bitmap", "degree", {}),
    ("four bitmaps", "bitmap_auto", "natural", {}),
    ("four bitmaps", "bitmap_auto", "degree", {}),
    ("hash tables and short merges", "adaptive", "degree", {"near": 0}),  # as the record calls it: merges alone now
    ("in-edges: windows of bits, 16 bits a look-up", "adaptive", "degree", {"hubs": 0} | NO_CROWD),
    ("bytes for crowds", "adaptive", "degree", {"hubs": 0}),
    ("hubs: word and word", "adaptive", "degree", {}),
    ("hubs, no bytes", "adaptive", "degree", NO_CROWD),
    ("a quarter of the hubs", "adaptive", "degree", {"hubs": 2048}),
    ("half of the hubs", "adaptive", "degree", {"hubs": 4096}),
    ("hubs for every column", "adaptive", "degree", {"heavy": 0}),
    ("half of the near vertices", "adaptive", "degree", {"near": 32767}),
)

# What kernels take by CUDA and by WebGPU
WEBGPU_METHODS = (
    *REPORT_METHODS[:3], "bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global",
    "merge_path", "thread_search", "warp_search",
)  # fmt: skip
WEBGPU = (
    *((f"{k} nonzeros per column", "by_nonzeros", {"m": SWEEP_EDGES, "nonzeros_per_column": k})
      for k in (1, 2, 4, 8, 16, 32, 64)),
    ("rmat16", "rmat", {"scale": 16}),
    ("mesh 1024 x 1024", "mesh", {"rows": 1024, "cols": 1024}),
)  # fmt: skip

# What differs where a method is as published: on which graphs, in which order, and the settings of the methods.
PUBLISHED = (
    *((f"{name} class", generator, size, "natural",
       {"naive": [{}], "column_block": [{"columns": columns}], "report_auto": [{}]})
      for name, (generator, size, columns) in REPORT.items()),
    *((f"graph500-scale{scale}-ef16", "rmat", {"scale": scale}, "natural", dict.fromkeys(FOUR[1:], [{}]))
      for scale in (18, 20, 22)),
    *((name, "rmat", size, "degree", {"warp_search": [{}, {"cached": False}]}) for name, size, _ in TRICORE),
    ("mesh 1024 x 1024", "mesh", {"rows": 1024, "cols": 1024}, "degree", {"warp_search": [{}, {"cached": False}]}),
    *((f"small world {n}", "watts_strogatz", {"n": n, "k": 10, "rewired": 0.1}, "natural", {"levels": [{}]})
      for n in (1_000, 10_000)),
)  # fmt: skip
PUBLISHED_TRUSSES = (18, 20)  # scales of graph500
TRUSS_VERSIONS = {
    version: replace(k_truss.METHOD, planned=partial(k_truss.plan, method="block_global", published=published))
    for version, published in (("published", True), ("ours", False))
}


def run(suite, methods=None, *, engine=None, repeats=REPEATS, share=1.0):
    """Measure a suite; returns Rows. methods: names; those of the suite if None. share: of its graphs' size."""
    options = {} if methods is None else {"methods": methods}
    items, measured = SUITES[suite]
    rows, items = Rows(), items(share)
    for k, item in enumerate(items):
        with part(k, len(items)):
            rows += measured(item, **options, engine=engine, repeats=repeats, share=share)
    return rows


# Each suite measures one of its items, which is a graph as a rule, and returns Rows; SUITES has the items.


# ---------------------------------------------------------------------------------------------------------- the report


def report(name, methods=REPORT_METHODS, *, engine, repeats, share):
    """The report's table: one of its four graphs, in natural and in degree order.

    At full size, the matrix if it is on this machine. Else a generated graph of the class, whose name in the record
    ends with " class"; `made` is the call that made it, empty for a matrix.
    """
    generator, size, columns = REPORT[name]
    real = share == 1 and name in {entry.name for entry in datasets.here()}
    graph = datasets.load(name) if real else GENERATORS[generator](**scaled(size, share))
    rows = Rows()
    for order in ORDERS:
        rows += measure(graph, methods, knobs={"columns": columns}, engine=engine, order=order, repeats=repeats,
                        name=name if real else f"{name} class")  # fmt: skip
    return Rows(row | {"made": "" if real else graph.name} for row in rows)


def sweep(nonzeros, methods=REPORT_METHODS[:3], *, engine, repeats, share):
    """The report's kernels at so many nonzeros per column, at a fixed number of edges, in both orders.

    `column_block` runs with one column at a time, with 27, and with as many as give each thread a nonzero.
    """
    graph = GENERATORS["by_nonzeros"](**scaled({"m": SWEEP_EDGES}, share), nonzeros_per_column=nonzeros)
    knobs = [{"columns": columns} for columns in sorted({1, 27, fitting_columns(nonzeros)})]
    rows = Rows()
    for order in ORDERS:
        rows += measure(graph, methods, knobs=knobs, engine=engine, order=order, repeats=repeats,
                        name=f"{nonzeros:g} nonzeros per column")  # fmt: skip
    return rows


def cache(nonzeros, methods=REPORT_METHODS[:2], *, engine, repeats, share):
    """A graph of the sweep, both kernels in equal launch shapes, while the L1 cache shrinks: the kernels alone.

    `shared_percent` in a row is the share of an SM's fast memory that is kept for shared memory and so taken from the
    L1 cache; -1 where the driver chose.
    """
    graph = GENERATORS["by_nonzeros"](**scaled({"m": SWEEP_EDGES}, share), nonzeros_per_column=nonzeros)
    about = {"graph": f"{nonzeros:g} nonzeros per column", "vertices": graph.n, "edges": graph.m}
    about |= {"nonzeros_per_column": round(graph.nonzeros_per_column, 3)}
    kernels = [step.kernel for method in methods for step in METHODS[method].plan(graph).steps]
    rows = Rows()
    try:
        for percent in SHARED_PERCENT:
            for kernel in kernels:
                kernel.carve_out(percent)
            for method in methods:
                for setting in settings_of(method, list(CACHE_SHAPES)):
                    row, triangles = best_kernel_time(graph, method, setting, engine, repeats)
                    found = {"triangles": triangles, "order": "natural", "knobs": json.dumps(setting)}
                    rows.append(about | {"shared_percent": percent} | found | row)
    finally:
        for kernel in kernels:
            kernel.carve_out(-1)
    check_agreement(rows)
    return rows


# ----------------------------------------------------------------------------------------------------- Bisson & Fatica


def table1(which, methods=(*FOUR, "bitmap_auto"), *, engine, repeats, share):
    """A graph of Table I, in natural order: see `table1_graph`.

    A method is left out where it refuses the graph, or would leave a long column to one thread or warp. Counts are
    checked against the native engine's. A row has the length of the longest column.
    """
    name, raw = table1_graph(which, share)
    graph = as_graph(raw)
    fitting = methods_that_fit(methods, graph, engine)
    found = measure(raw, fitting, engine=engine, repeats=fewer(repeats, graph.m), name=name)
    if found[0]["triangles"] != cpu.count(graph):
        raise RuntimeError(f"{fitting[0]} counts {found[0]['triangles']:,} on {name}, cpu {cpu.count(graph):,}")
    return Rows(row | {"longest_column": graph.max_column} for row in found)


def samples(sample, methods=FOUR, *, engine, repeats, share):
    """The kernels' times alone, on a generated graph of one of many kinds: the best of the repeats."""
    generator, size = sample
    try:
        graph = GENERATORS[generator](**scaled(size, share))
    except GraphError:  # no graph that small has columns that long
        return Rows()
    about = {"graph": graph.name, "vertices": graph.n, "edges": graph.m, "longest_column": graph.max_column}
    return Rows(
        about | best_kernel_time(graph, method, {}, engine, repeats)[0]
        for method in methods_that_fit(methods, graph, engine)
    )


def truss3(which, *, engine, repeats, share):
    """Table I's other half: the 3-truss of a graph of `table1`; but for a large one, checked against the native
    support."""
    name, raw = table1_graph(which, share)
    graph = as_graph(raw)
    found = measure_truss(raw, (3,), engine=engine, repeats=fewer(repeats, graph.m), name=name)
    in_triangles = int((cpu.support(graph) > 0).sum()) if graph.m < LARGE else found[0]["kept"]
    if found[0]["kept"] != in_triangles:
        raise RuntimeError(f"k_truss keeps {found[0]['kept']:,} edges of {name}, in triangles are {in_triangles:,}")
    return found


def trusses(sample, *, engine, repeats, share):
    """Figure 5: trusses for k from 3 to 100, of a large graph for each of the four kernels."""
    generator, size = sample
    return measure_truss(GENERATORS[generator](**scaled(size, share)), TRUSS_KS, engine=engine, repeats=repeats)


def measure_truss(graph, ks, methods=TRUSS_METHODS, *, engine=None, repeats=REPEATS, name=None):
    """Time the k-truss of a graph for each k; returns Rows, each with the number of edges `kept`.

    A row for each k and method: by default as `tcgpu.k_truss` finds it, and by `bitmaps`, Algorithm 3 of Bisson &
    Fatica. A large graph is run once for each k past 3.
    """
    graph = graph if isinstance(graph, tuple) else as_graph(graph)
    plain = as_graph(graph)
    about = {"graph": name or plain.name or "", "vertices": plain.n, "edges": plain.m}
    rows = Rows()
    with on_engine(K_TRUSS, engine):
        own = K_TRUSS.prepare(plain)
        where = {"engine": engine_of(K_TRUSS, engine), "order": own.order}
        for method in methods:
            run_plan(method.plan(own, k=4), method)  # warm up
        for k in ks:
            times, every = 1 if k > 3 and plain.m >= LARGE else repeats, []
            for method in methods:
                runs = timed_runs(method, raw_edges(graph, plain), "natural", {"k": k}, times, summary=edges_kept)
                every += runs
                found = {"k": k, "kept": common_result(method.name, every), "method": method.name}
                rows.append(about | found | where | medians(runs) | {"repeats": times} | machine(engine))
    return rows


def edges_kept(numbers):
    """The number of edges in the truss, from the plan's result: 0 for an edge that stays."""
    return int((numbers == 0).sum())


def of_table1(share):
    """The graphs of Table I: scales of graph500, and the names of graphs on this machine.

    Those are of the folder that TCGPU_GRAPHS names, and downloads of Table I, but for graphs that have more than this
    share of the edges of graph500's largest.
    """
    own = {entry.name for entry in datasets.own()}
    there = (entry for entry in datasets.here() if entry.name in own or entry.family == "graph challenge")
    fitting = (entry.name for entry in there if (entry.edges or 0) <= share * (16 << GRAPH500[-1]))
    return [scale for scale in GRAPH500 if scale + round(math.log2(share)) >= 1] + list(fitting)


def table1_graph(which, share):
    """The name and the Graph or raw edges of one `of_table1`; share: of the vertices of graph500's."""
    if isinstance(which, str):
        return which, datasets.load(which)
    scale = which + round(math.log2(share))
    return f"graph500-scale{scale}-ef16", drawn_edges("rmat", scale)[:2]


def methods_that_fit(methods, graph, engine):
    """Those of the methods that take the graph, and would not leave a very long column to a single thread or warp."""
    fitting = []
    for name in methods:
        chosen = choose(name, engine)
        try:
            with on_engine(chosen, engine):
                chosen.plan(graph)
        except TcgpuError:
            continue
        if graph.max_column <= LONGEST_ALONE.get(name, graph.max_column):
            fitting.append(name)
    return fitting


# --------------------------------------------------------------------------------------------------- Chatterjee et al.


def of_levels(share):
    """What is measured for Chatterjee et al.'s figures, one size after the other; named graphs only at full size."""
    every = [(figure, size, settings, beside) for figure, sizes, settings, beside in LEVELS for size in sizes]
    return [what for what in every if share == 1 or not isinstance(what[1], str)]


def levels_figures(what, methods=("levels",), *, engine, repeats, share):
    """A graph of Figures 10 to 12, or another choice in the method: see LEVELS.

    A row has its figure, the number of combinations to test, and in how many chunks of how many vertices at most. A
    native thread that would take long tests only the `share` of them that its row names, counts no triangles, and its
    times are what all would take at that rate.
    """
    figure, size, settings, beside = what
    graph = levels_graph(size, share)
    found = measure(graph, methods, knobs=list(settings), engine=engine, repeats=repeats)
    with on_engine(METHODS["levels"], engine):
        chunks = levels.split_for_device(graph)
    if beside:
        found.append(native_levels(graph, chunks, found[0], repeats))
    about = {"chunks": len(chunks), "too_large": chunks.too_large, "largest": int(chunks.size.max(initial=0))}
    return Rows({"figure": figure, "tests": chunks.total_tests, "share": 1.0} | about | row for row in found)


def levels_graph(what, share):
    """A graph of `share` times the size: one of the catalogue, a generator's, or a small world of so many vertices.

    There each has 10 neighbours in the mean, and one edge in ten leads anywhere.
    """
    if isinstance(what, str):
        if what not in {entry.name for entry in datasets.here()}:
            raise GraphError(f"{what} is not on this machine; `tcgpu fetch {what}` downloads it")
        return datasets.load(what)
    generator, size = what if isinstance(what, tuple) else ("watts_strogatz", {"n": what, "k": 10, "rewired": 0.1})
    graph = as_graph(GENERATORS[generator](**scaled(size, share, least=12)))
    graph.name = f"{'small world' if generator == 'watts_strogatz' else generator} {graph.n}"
    return graph


def native_levels(graph, chunks, like, repeats):
    """The row of one native thread that tests the combinations of the chunks, beside the row of a GPU that did."""
    parts = -(-chunks.total_tests // LEVELS_NATIVE) or 1
    share = {"approach": "D", "threads": parts, "only": parts // 2}
    small = levels_graph(12, 1)
    level_models.count_triangles(small, split(small, shared_bits=0, machines=1))  # compiles
    runs = []
    for _ in range(repeats):
        begin = time.perf_counter()
        again = Graph.from_edges(*graph.edges(), graph.n)
        split(again, shared_bits=chunks.shared_bits, machines=chunks.machines)
        cut = time.perf_counter()
        found = level_models.count_triangles(graph, chunks, **share)
        seconds = (time.perf_counter() - cut) * parts
        runs.append((seconds * 1e3, seconds * 1e3, (seconds + cut - begin) * 1e3))
    if parts == 1 and found != like["triangles"]:
        raise RuntimeError(f"levels and its native thread disagree: {like['triangles']} and {found}")
    same = ("graph", "vertices", "edges", "nonzeros_per_column")
    return {
        **{key: like[key] for key in same},
        "triangles": found if parts == 1 else "",
        "method": "levels",
        "engine": "cpu",
        "order": like["order"],
        "knobs": json.dumps({"threads": 1}),
        **medians(runs),
        "repeats": repeats,
        "share": 1 / parts,
        **machine("cpu"),
    }


# ------------------------------------------------------------------------------------------------------------- TriCore


def lengths_of_columns(pair, methods=LENGTHS_METHODS, *, engine, repeats, share):
    """The time of an edge by the lengths of its two columns: only the kernels' times, the best of the repeats.

    `warp_search` runs without the top of its search tree, too. A row has the number of edges `asking`, which share the
    time, and the lengths `shorter` and `longer` of their columns.
    """
    m, n = pair
    edges = max(1, round(share * min(LENGTHS_EDGES[1], max(LENGTHS_EDGES[0], LENGTHS_ROWS // (m + n)))))
    graph = lengths.graph(m, n, edges)
    about = {"graph": graph.name, "vertices": graph.n, "edges": graph.m}
    about |= {"shorter": m, "longer": n, "asking": lengths.asking(graph)}
    found, expected = Rows(), cpu.count(graph)
    for method in methods:
        for setting in settings_of(method, [{}, {"cached": False}]):
            row, triangles = best_kernel_time(graph, method, setting, engine, repeats)
            if triangles != expected:
                raise RuntimeError(f"{method} counts {triangles:,} on {graph.name}, cpu {expected:,}")
            found.append(about | {"triangles": triangles, "knobs": json.dumps(setting)} | row)
    return found


def tricore(what, methods=None, *, engine, repeats, share):
    """TriCore's kernel, with and without the top of its search tree, and its baselines, in degree order.

    methods: of those that are run on the graph, which ones; all if None. A row has the amount of work.
    """
    name, size, runs = what
    raw = drawn_edges("rmat", **scaled(size, share))
    chosen = [method for method in runs if methods is None or method in methods]
    found = Rows()
    for method in chosen:
        with suppress(KernelError):  # of `adaptive`, by WebGPU
            found += measure(raw, method, knobs=[{}, {"cached": False}], engine=engine, order="degree",
                             repeats=fewer(repeats, raw[0].size), name=name)  # fmt: skip
    check_agreement(found)
    work = lengths.work(as_graph(raw).ordered("degree"))
    return Rows(row | work for row in found)


# ------------------------------------------------------------------------------------------------------------ adaptive


def ladder(name, *, engine, repeats, share):
    """A row for each rung of the LADDER that the engine has, its kernels alone: each is an `idea` more."""
    graph, rows = GENERATORS["rmat"](**scaled(LADDER_GRAPHS[name], share)), Rows()
    about = {"graph": name, "vertices": graph.n, "edges": graph.m}
    for idea, method, order, knobs in LADDER:
        if (order == "natural" and graph.m >= SLOW) or not methods_that_fit([method], graph, engine):
            continue
        with suppress(KernelError):  # of `adaptive`, by WebGPU
            row, triangles = best_kernel_time(graph, method, knobs, engine, min(3, repeats), order)
            found = {"triangles": triangles, "idea": idea, "order": order, "knobs": json.dumps(knobs)}
            rows.append(about | found | row)
    check_agreement(rows)
    return rows


# --------------------------------------------------------------------------------------------------------------- WebGPU


def webgpu(what, methods=WEBGPU_METHODS, *, engine, repeats, share):
    """The kernels by CUDA and by WebGPU, in the launches that CUDA chooses; or on the `engine` that is named."""
    name, call, size = what
    graph, rows = GENERATORS[call](**scaled(size, share)), Rows()
    for method in methods_that_fit(methods, graph, engine or "webgpu"):
        chosen = choose(method)
        with on_engine(chosen, engine or "gpu"):
            step = chosen.plan(chosen.prepare(graph)).steps[-1]
        shape = {"threads": step.threads, "blocks": step.blocks}
        for each in ("gpu", "webgpu") if engine is None else (engine,):
            rows += measure(graph, method, knobs=shape, engine=each, repeats=repeats, name=name)
    return rows


# ----------------------------------------------------------------------------------------------------------- published


def published(what, *, engine, repeats, share):
    """What the papers have beside what is ours, each pair in one launch shape: that of the published one.

    A row has its `case`, a method and a graph, and its `version`. The trusses are by a block per column.
    """
    if isinstance(what, int):
        return published_trusses(what, engine=engine, repeats=repeats, share=share)
    name, call, size, order, methods = what
    graph, rows = GENERATORS[call](**scaled(size, share, least=12)), Rows()
    for method in methods_that_fit(methods, graph, engine):
        chosen = choose(method, engine)
        for setting in methods[method]:
            with on_engine(chosen, engine):
                step = chosen.plan(chosen.prepare(graph, order), published=True, **setting).steps[-1]
            shape = {"threads": step.threads, "blocks": step.blocks}
            knobs = [setting | shape | {"published": version == "published"} for version in TRUSS_VERSIONS]
            found = measure(graph, method, knobs=knobs, engine=engine, order=order,
                            repeats=fewer(repeats, graph.m), name=name)  # fmt: skip
            rows += versions(found, f"{method}{'' if setting.get('cached', True) else ', no top'}: {name}")
    return rows


def published_trusses(scale, *, engine, repeats, share):
    """The trusses of `published`, of a graph of graph500 of this scale."""
    name, rows = f"graph500-scale{scale}-ef16", Rows()
    graph = GENERATORS["rmat"](**scaled({"scale": scale}, share))
    for k in (3, 4):
        found = measure_truss(graph, (k,), TRUSS_VERSIONS.values(), engine=engine, repeats=repeats, name=name)
        if found[0]["kept"] != found[1]["kept"]:
            raise RuntimeError(f"the {k}-truss of {name} has {found[0]['kept']} edges and {found[1]['kept']}")
        rows += versions(found, f"{k}-truss: {name}")
    return rows


def versions(rows, case):
    """The rows of a published method and of ours, as such."""
    return Rows({"case": case, "version": version} | row for row, version in zip(rows, TRUSS_VERSIONS, strict=True))


# -------------------------------------------------------------------------------------------------------- all of these


def best_kernel_time(graph, method, setting, engine, repeats, order="natural"):
    """The best time of a method's kernels in `repeats` runs as a row; and the count."""
    chosen = choose(method, engine)
    with on_engine(chosen, engine):
        plan = chosen.plan(chosen.prepare(graph, order), **setting)
        times, _, counts = zip(*(run_plan(plan, chosen) for _ in range(1 + repeats)), strict=True)
    timed = {"method": method, "engine": engine_of(chosen, engine), "kernel_ms": round(min(times[1:]), 4)}
    return timed | {"repeats": repeats} | machine(engine), counts[0]


def fewer(repeats, edges):
    """How often to repeat a run on a graph with this many edges: a large one at most twice."""
    return min(2, repeats) if edges >= LARGE else repeats


def scaled(size, share, least=2):
    """The sizes of a generator for a graph of `share` times as many vertices."""
    if not 0 < share <= 1:
        raise GraphError(f"a share of a suite's size is above 0 and at most 1, not {share!r}")
    counts = {key: value for key, value in size.items() if key in ("n", "m", "rows", "cols", "planes")}
    if "scale" in size:
        return size | {"scale": max(1, size["scale"] + round(math.log2(share)))}
    return size | {key: max(least, round(value * share ** (1 / len(counts)))) for key, value in counts.items()}


SUITES = {  # what gives the items, and what measures one of them
    "report": (lambda share: list(REPORT), report),
    "sweep": (lambda share: SWEEP, sweep),
    "cache": (lambda share: CACHE, cache),
    "table1": (of_table1, table1),
    "samples": (lambda share: SAMPLES, samples),
    "truss3": (of_table1, truss3),
    "trusses": (lambda share: TRUSSES, trusses),
    "levels": (of_levels, levels_figures),
    "lengths": (lambda share: [*combinations_with_replacement(LENGTHS, 2)], lengths_of_columns),
    "tricore": (lambda share: TRICORE, tricore),
    "ladder": (lambda share: list(LADDER_GRAPHS), ladder),
    "webgpu": (lambda share: WEBGPU, webgpu),
    "published": (lambda share: PUBLISHED + PUBLISHED_TRUSSES, published),
}


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--methods", metavar="M,M", help="which methods, separated by commas; default: the suite's")
    parser.add_argument("--engine", metavar="E", help="gpu, webgpu, sim or cpu; default: the first here")
    parser.add_argument("--repeats", metavar="N", type=int, default=REPEATS, help="runs of which the median counts")
    parser.add_argument("--share", metavar="X", type=float, default=1.0, help="of the size of the suite's graphs")
    parser.add_argument("--max-seconds", metavar="S", type=float, help="how long a run in the simulator may take")
    parser.add_argument("--output", metavar="FILE", help="where the record goes")
    arguments = parser.parse_args(argv)
    if arguments.repeats < 1:
        parser.error(f"repeats must be at least 1, not {arguments.repeats}")
    if not 0 < arguments.share <= 1:
        parser.error(f"share must be above 0 and at most 1, not {arguments.share}")
    methods = None if arguments.methods is None else arguments.methods.split(",")
    if methods is not None and "methods" not in inspect.signature(SUITES[arguments.suite][1]).parameters:
        parser.error(f"--methods: the suite {arguments.suite} has methods of its own")
    try:
        for name in methods or (() if arguments.engine == "cpu" else ("adaptive",)):
            engine_of(choose(name, arguments.engine), arguments.engine)
        limited = nullcontext() if arguments.max_seconds is None else simulated.limited(arguments.max_seconds)
        with limited, underway(None, f"measuring {arguments.suite}"):
            rows = run(
                arguments.suite, methods, engine=arguments.engine, repeats=arguments.repeats, share=arguments.share
            )
    except tcgpu.TcgpuError as error:
        parser.error(str(error))
    print(rows)
    path = arguments.output or record_path(arguments.suite, rows)
    rows.write_csv(path)
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
