"""Measuring: methods on one graph, in three timings, every count checked, with the machine named.

kernel    from the first to the last kernel, by the device's events
process   kernel, allocation, set-up and reading the result back
total     process, and all from raw edges to the columns: cleaning, ordering
"""

import csv
import datetime
import html
import io
import json
import math
import os
import platform
import re
import statistics
import time
from importlib import import_module
from importlib.metadata import version
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

from tcgpu import cpu, datasets, lengths, levels
from tcgpu.datasets import data_path
from tcgpu.engines import native
from tcgpu.errors import GraphError
from tcgpu.formats.files import replacing
from tcgpu.generators import GENERATORS
from tcgpu.graph import Graph, as_graph
from tcgpu.progress import part
from tcgpu.registry import K_TRUSS, METHODS, choose, engine_of, on_engine

REPEATS = 5

# The report's four graphs, generated: the call, and how many columns the report's second kernel takes at a time.
REPORT = {
    "delaunay_n22": ("delaunay", {"n": 1 << 22}, 27),
    "great-britain_osm": ("road", {"rows": 772, "cols": 772, "bends": 7}, 27),
    "auto": ("mesh3d", {"planes": 77, "rows": 76, "cols": 77}, 27),
    "coPapersCiteseer": ("copapers", {"n": 434_102}, 1),
}
REPORT_METHODS = ("naive", "column_block", "bitmap", "report_auto")
SWEEP = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # nonzeros per column
SWEEP_EDGES = 1 << 23
ORDERS = ("natural", "degree")
# For Figure 5 of Bisson & Fatica a graph each that is for a thread, a warp or a block a column, and the values of k.
TRUSSES = (
    ("road", {"rows": 1200, "cols": 1200}),
    ("barabasi_albert", {"n": 1 << 20, "k": 7}),
    ("copapers", {"n": 100_000}),
    ("rmat", {"scale": 22}),
)
TRUSS_WAYS = {"k_truss": {}, "bitmaps": {"method": "bitmaps"}}
TRUSS_KS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 75, 100)
SHARED_PERCENT = (-1, 0, 25, 50, 75)
SHAPES = (
    {"threads": 512, "blocks": 256, "columns": 1},
    {"threads": 128, "blocks": 1024, "columns": 1},
    {"threads": 128, "blocks": 1 << 16, "columns": 1},
    {"threads": 256, "blocks": 1 << 16, "columns": 4},
    {"threads": 512, "blocks": 1 << 16, "columns": 4},
)
# Bisson & Fatica's four kernels; the longest column that a record leaves to a single thread or warp: it takes seconds.
FOUR = ("bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global")
LONGEST_ALONE = {"bitmap_thread": 1 << 12, "bitmap_warp": 1 << 16}
GRAPH500 = range(18, 25)  # scales
LARGE = 1 << 25  # edges from which on two runs are enough
SAMPLES = (  # graphs of many mean and longest columns and sizes: what the constants of Algorithm 5 are fitted to
    *(("by_nonzeros", {"m": m, "nonzeros_per_column": k}) for m in (1 << 15, 1 << 21) for k in (2, 4, 8, 12, 16, 32)),
    *(("rmat", {"scale": scale, "edge_factor": k}) for scale in (14, 16, 18, 20) for k in (2, 4, 8, 16)),
    *(("copapers", {"n": n, "mean_degree": d}) for n in (20_000, 200_000) for d in (8, 20, 74)),
    *(("barabasi_albert", {"n": 1 << s, "k": k}) for s in (13, 16, 19) for k in (3, 6, 12)),
    *(("delaunay", {"n": 1 << s}) for s in (13, 16, 19)),
    *(("road", {"rows": r, "cols": r}) for r in (64, 256, 1024)),
    *(("mesh3d", {"planes": r, "rows": r, "cols": r}) for r in (20, 40, 80)),
    *(("watts_strogatz", {"n": 1 << s, "k": 20}) for s in (14, 18)),
)
# What Chatterjee et al. measured, by figure: how many vertices, which settings, and whether a native thread, too. Their
# graphs of up to 1,200 vertices are not known: small worlds stand for them. Of SNAP's graphs they do not say which.
LEVELS = (
    ("10", (200, 400, 600, 800, 1000, 1200), ({},), True),
    ("11", (5_000, 10_000, 15_000, 20_000, 25_000), ({},), True),
    ("12", (200, 400, 600, 800, 1000, 1200),
     [{"memory": "global", "arrangement": arrangement} for arrangement in ("one", "redundant")], False),
    ("approaches", (400,), [{"approach": approach} for approach in levels.APPROACHES], False),
    ("memory", (1000, 10_000), [{"memory": m, "lanes": n} for m in ("auto", "global") for n in (1, 32)], False),
    ("schedule", (("mesh", {"rows": 300, "cols": 300}),),
     [{"schedule": order, "piece": 2**62, "threads": 1024, "blocks": 132} for order in ("longest", "given")], False),
    ("skip", (1000, 25_000), ({"skip": True},), False),
)  # fmt: skip
# Lengths of columns, and how many edges ask for two of them: so many rows in all, but no fewer and no more edges.
LENGTHS = (1, 4, 16, 64, 256, 1024, 4096)
LENGTHS_METHODS = ("naive", "merge_path", "thread_search", "warp_search")
LENGTHS_ROWS, LENGTHS_EDGES = 1 << 32, (1 << 19, 1 << 22)
# R-MAT as it is drawn; and permuted, with as many edges as the slides' Kronecker1, where a thread per edge takes long.
TRICORE = (
    ("rmat20", {"scale": 20, "permuted": False}, ("naive", "adaptive", *LENGTHS_METHODS[1:])),
    ("rmat22", {"scale": 22, "permuted": False}, ("naive", "adaptive", *LENGTHS_METHODS[1:])),
    ("rmat22 of degree 64", {"scale": 22, "edge_factor": 64}, ("adaptive", "merge_path", "warp_search")),
)
LEVELS_SNAP = ("as20000102", "ca-GrQc", "p2p-Gnutella04", "ca-HepPh", "ca-AstroPh", "ca-CondMat")
LEVELS_NATIVE = 500_000_000  # combinations: of more, the native thread tests a share
SHOWN = ("graph", "method", "engine", "order", "knobs", "triangles", "k", "kept", "kernel_ms", "process_ms", "total_ms")


class Timing(NamedTuple):
    """One run's three timings in milliseconds, and what it counted."""

    triangles: int
    kernel_ms: float
    process_ms: float
    total_ms: float


class Rows(list):
    """Measurements as a list of dicts, which a notebook shows as a table of those columns that are `shown`."""

    shown = SHOWN

    def write_csv(self, path):
        """Write all rows as `csv` has them."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(self.csv().encode())

    def csv(self):
        """All rows as the text of a CSV file, one column for every key."""
        file = io.StringIO()
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in self for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self)
        return file.getvalue()

    @classmethod
    def read_csv(cls, path):
        """What `write_csv` wrote, numbers as numbers."""
        with Path(path).open(newline="") as file:
            return cls({key: _parsed(text) for key, text in row.items()} for row in csv.DictReader(file))

    def table(self):
        """What a person wants to see of the rows: a list of lists of strings, the first one the heading."""
        shown = [key for key in self.shown if any(row.get(key, "") != "" for row in self)]
        body = [[_short(row.get(key, "")) for key in shown] for row in self]
        return [[key.replace("_", " ") for key in shown], *body]

    def __repr__(self):
        table = self.table()
        widths = [max(map(len, column)) for column in zip(*table)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)

    def _repr_html_(self):
        kinds = ["th"] + ["td"] * len(self)
        lines = (
            "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in line) for kind, line in zip(kinds, self.table())
        )
        return "<table><tr>" + "</tr><tr>".join(lines) + "</tr></table>"


def measure(graph, methods=("cpu",), *, knobs=None, engine=None, order=None, repeats=REPEATS, name=None,
            max_seconds=None):  # fmt: skip
    """Time `methods` on a graph; returns Rows, one for each method and setting of its knobs.

    graph: a Graph or anything `as_graph` takes; `total` starts from the pair of edge arrays where one is given, else
    from the graph's own edges. methods: names, or one name. knobs: a dict, or several to be tried in turn, of the
    knobs that the methods have (a method leaves out what it does not know). The medians of `repeats` runs after one to
    warm up, and their spread (largest less smallest); RuntimeError if any two counts differ. max_seconds: how long all
    runs of a method may take in the simulator; see `tcgpu.count`.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise GraphError(f"repeats must be at least 1, and a whole number, not {repeats!r}")
    graph = graph if isinstance(graph, tuple) else as_graph(graph)
    plain = as_graph(graph)
    about = {
        "graph": name or plain.name or "",
        "vertices": plain.n,
        "edges": plain.m,
        "nonzeros_per_column": round(plain.nonzeros_per_column, 3),
    }
    rows = Rows()
    for method in [methods] if isinstance(methods, str) else methods:
        for setting in _settings(method, knobs):
            measured = _measured(graph, plain, method, setting, engine, order, repeats, max_seconds)
            rows.append(about | measured | machine(engine))
    check_agreement(rows)
    return rows


def check_agreement(rows):
    """RuntimeError if the rows of one graph do not all have the same count."""
    if len({row["triangles"] for row in rows}) > 1:
        found = ", ".join(f"{row['method']} {row['triangles']}" for row in rows)
        raise RuntimeError(f"methods disagree on {rows[0]['graph'] or 'the graph'}: {found}")


def measure_report(methods=REPORT_METHODS, *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """The report's table: its four classes of graphs at `share` of their size, in natural and in degree order.

    `tell` is called with the rows of each graph as they come.
    """
    rows = Rows()
    for name, (generator, size, columns) in REPORT.items():
        graph = GENERATORS[generator](**_scaled(size, share))
        for order in ORDERS:
            found = measure(graph, methods, knobs={"columns": columns}, engine=engine, order=order, repeats=repeats,
                            name=f"{name} class")  # fmt: skip
            tell(found)
            rows += found
    return rows


def measure_sweep(methods=REPORT_METHODS[:2], *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """The report's two kernels over nonzeros per column from 1 to 64, at a fixed number of edges, in both orders.

    `column_block` runs with one column at a time, with 27, and with as many as give each thread a nonzero.
    """
    rows = Rows()
    for nonzeros in SWEEP:
        graph = GENERATORS["by_nonzeros"](**_scaled({"m": SWEEP_EDGES}, share), nonzeros_per_column=nonzeros)
        knobs = [{"columns": columns} for columns in sorted({1, 27, fitting_columns(nonzeros)})]
        name = f"{nonzeros:g} nonzeros per column"
        for order in ORDERS:
            found = measure(graph, methods, knobs=knobs, engine=engine, order=order, repeats=repeats, name=name)
            tell(found)
            rows += found
    return rows


def fitting_columns(nonzeros_per_column):
    """How many columns `column_block` has to take at a time to give each of its threads a nonzero."""
    return max(1, round(METHODS["column_block"].knobs["threads"] / nonzeros_per_column))


def measure_cache(methods=REPORT_METHODS[:2], *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """The report's two kernels on its densest class, in equal launch shapes, while the L1 cache shrinks.

    `shared_percent` in a row is the share of an SM's fast memory that is kept for shared memory and so taken from the
    L1 cache; -1 where the driver chose.
    """
    generator, size, _ = REPORT["coPapersCiteseer"]
    graph = GENERATORS[generator](**_scaled(size, share))
    kernels = [step.kernel for method in methods for step in METHODS[method].plan(graph).steps]
    rows = Rows()
    try:
        for percent in SHARED_PERCENT:
            for kernel in kernels:
                kernel.carve_out(percent)
            for order in ORDERS:
                found = measure(graph, methods, knobs=list(SHAPES), engine=engine, order=order, repeats=repeats,
                                name="coPapersCiteseer class")  # fmt: skip
                for row in found:
                    row["shared_percent"] = percent
                tell(found)
                rows += found
    finally:
        for kernel in kernels:
            kernel.carve_out(-1)
    return rows


def measure_table1(methods=(*FOUR, "bitmap_auto"), *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """Table I of Bisson & Fatica, in natural order: the graphs in the folder that TCGPU_GRAPHS names, and graph500's.

    share: below 1, smaller scales of graph500, and none of the other graphs that has more than that share of the edges
    of graph500's largest. A method is left out where it refuses the graph, or would leave a long column to one thread
    or warp. Counts are checked against the native engine's. A row says how long the longest column is.
    """
    rows = Rows()
    for name, raw in _table1_graphs(share):
        graph = as_graph(raw)
        fitting = _fitting(methods, graph, engine)
        times = min(2, repeats) if graph.m >= LARGE else repeats
        found = measure(raw, fitting, engine=engine, repeats=times, name=name)
        if found[0]["triangles"] != cpu.count(graph):
            raise RuntimeError(f"{fitting[0]} counts {found[0]['triangles']:,} on {name}, cpu {cpu.count(graph):,}")
        for row in found:
            row["longest_column"] = graph.max_column
        tell(found)
        rows += found
    return rows


def measure_samples(methods=FOUR, *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """Only the kernels' times of `methods` on generated graphs of every kind: the best of the repeats."""
    rows = Rows()
    for generator, size in SAMPLES:
        try:
            graph = GENERATORS[generator](**_scaled(size, share))
        except GraphError:  # no graph that small has columns that long
            continue
        found = Rows()
        about = {"graph": graph.name, "vertices": graph.n, "edges": graph.m, "longest_column": graph.max_column}
        for method in _fitting(methods, graph, engine):
            found.append(about | _kernel_alone(graph, method, {}, engine, repeats)[0])
        tell(found)
        rows += found
    return rows


def measure_lengths(methods=LENGTHS_METHODS, *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """What an edge costs by the lengths of its two columns, each with LENGTHS: only the kernels' times, the best of the
    repeats, on the graphs of `tcgpu.lengths`. `warp_search` runs without the top of its search tree, too.

    A row says how many edges are `asking`, which is what its time is for, and for `shorter` and `longer` columns.
    """
    rows = Rows()
    for m, n in combinations_with_replacement(LENGTHS, 2):
        edges = max(1, round(share * min(LENGTHS_EDGES[1], max(LENGTHS_EDGES[0], LENGTHS_ROWS // (m + n)))))
        graph = lengths.graph(m, n, edges)
        about = {"graph": graph.name, "vertices": graph.n, "edges": graph.m}
        about |= {"shorter": m, "longer": n, "asking": lengths.asking(graph)}
        found, wanted = Rows(), cpu.count(graph)
        for method in methods:
            for setting in _settings(method, [{}, {"cached": False}]):
                row, triangles = _kernel_alone(graph, method, setting, engine, repeats)
                if triangles != wanted:
                    raise RuntimeError(f"{method} counts {triangles:,} on {graph.name}, cpu {wanted:,}")
                found.append(about | {"triangles": triangles, "knobs": json.dumps(setting)} | row)
        tell(found)
        rows += found
    return rows


def measure_tricore(methods=None, *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """TriCore's kernel, with and without the top of its search tree, and what it is compared with, in degree order.

    methods: of those that are run on each graph, which ones; all, if none is named. A row says what work there is.
    """
    rows = Rows()
    for name, size, runs in TRICORE:
        raw = GENERATORS["rmat"].edges(**_scaled(size, share))
        chosen = [method for method in runs if methods is None or method in methods]
        times = min(2, repeats) if raw[0].size >= LARGE else repeats
        found = measure(raw, chosen, knobs=[{}, {"cached": False}], engine=engine, order="degree", repeats=times,
                        name=name)  # fmt: skip
        work = lengths.work(as_graph(raw).ordered("degree"))
        for row in found:
            row |= work
        tell(found)
        rows += found
    return rows


def _kernel_alone(graph, method, setting, engine, repeats):
    """The best time of a method's kernels of so many runs, in natural order, as a row; and the count."""
    chosen = choose(method, engine)
    with on_engine(chosen, engine):
        plan = chosen.plan(chosen.prepare(graph, "natural"), **setting)
        times, _, counts = zip(*(_run(plan, chosen) for _ in range(1 + repeats)))
    timed = {"method": method, "engine": engine_of(chosen, engine), "kernel_ms": round(min(times[1:]), 4)}
    return timed | {"repeats": repeats} | machine(engine), counts[0]


def _table1_graphs(share):
    """(name, Graph or raw edges) of each."""
    scales = [scale + round(math.log2(share)) for scale in GRAPH500]
    for entry in datasets.own():
        if entry.edges <= share * (16 << GRAPH500[-1]):
            yield entry.name, datasets.load(entry.name)
    for scale in scales:
        if scale >= 1:
            yield f"graph500-scale{scale}-ef16", GENERATORS["rmat"].edges(scale)[:2]


def _fitting(methods, graph, engine):
    """Those of the methods that take the graph, and would not leave a very long column to a single thread or warp."""
    taken = []
    for name in methods:
        chosen = choose(name, engine)
        try:
            with on_engine(chosen, engine):
                chosen.plan(graph)
        except GraphError:
            continue
        if graph.max_column <= LONGEST_ALONE.get(name, graph.max_column):
            taken.append(name)
    return taken


def measure_levels(methods=("levels",), *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """Figures 10 to 12 of Chatterjee et al., and what else there is to choose in their method: see LEVELS.

    A row says which figure it is for, how many combinations there are to test, and in how many chunks of how many
    vertices at most. A native thread that would take long tests only the `share` of them that its row names, counts no
    triangles, and its times are what all would take at that rate.
    """
    rows = Rows()
    for figure, sizes, settings, beside in LEVELS:
        graphs = [_levels_graph(size, share) for size in sizes]
        if figure == "11" and share == 1:
            graphs += [datasets.load(name) for name in LEVELS_SNAP]
        for graph in graphs:
            found = measure(graph, methods, knobs=list(settings), engine=engine, repeats=repeats)
            with on_engine(METHODS["levels"], engine):
                chunks = import_module(METHODS["levels"].module).cut(graph)
            if beside:
                found.append(_native_levels(graph, chunks, found[0], repeats))
            about = {"chunks": len(chunks), "too_large": chunks.too_large, "largest": int(chunks.size.max(initial=0))}
            for row in found:
                row |= {"figure": figure, "tests": chunks.total_tests, "share": 1.0} | about | row
            tell(found)
            rows += found
    return rows


def _levels_graph(what, share):
    """A graph of `share` times the size: a generator's, or of so many vertices a small world.

    There each has 10 neighbours in the mean, and one edge in ten leads anywhere.
    """
    generator, size = what if isinstance(what, tuple) else ("watts_strogatz", {"n": what, "k": 10, "rewired": 0.1})
    graph = as_graph(GENERATORS[generator](**_scaled(size, share, least=12)))
    graph.name = f"{'small world' if generator == 'watts_strogatz' else generator} {graph.n}"
    return graph


def _native_levels(graph, chunks, like, repeats):
    """The row of one native thread that works off the chunks, beside the row of a GPU that did."""
    parts = -(-chunks.total_tests // LEVELS_NATIVE) or 1
    share = {"approach": "D", "threads": parts, "only": parts // 2}
    levels.count_triangles(_levels_graph(12, 1))  # compiles
    runs = []
    for _ in range(repeats):
        begin = time.perf_counter()
        again = Graph.from_edges(*graph.edges(), graph.n)
        levels.split(again, shared_bits=chunks.shared_bits, machines=chunks.machines)
        cut = time.perf_counter()
        found = levels.count_triangles(graph, chunks, **share)
        seconds = (time.perf_counter() - cut) * parts
        runs.append((seconds * 1e3, seconds * 1e3, (seconds + cut - begin) * 1e3))
    if parts == 1 and found != like["triangles"]:
        raise RuntimeError(f"levels and its native thread disagree: {like['triangles']} and {found}")
    same = ("graph", "vertices", "edges", "nonzeros_per_column")
    timings = dict(zip(("kernel_ms", "process_ms", "total_ms"), zip(*runs)))
    return {
        **{key: like[key] for key in same},
        "triangles": found if parts == 1 else "",
        "method": "levels",
        "engine": "cpu",
        "order": like["order"],
        "knobs": json.dumps({"threads": 1}),
        **{key: round(statistics.median(times), 4) for key, times in timings.items()},
        **{f"{key}_spread": round(max(times) - min(times), 4) for key, times in timings.items()},
        "repeats": repeats,
        "share": 1 / parts,
        **machine("cpu"),
    }


def measure_truss(graph, ks=(3,), *, engine=None, repeats=REPEATS, name=None):
    """Time the k-truss of a graph for each k; returns Rows, each with the edges that are left, as `kept`.

    Two for each k: as `tcgpu.k_truss` goes about it, and by `bitmaps`, Algorithm 3 of Bisson & Fatica, which are the
    same for most graphs. As `measure`, on a GPU or in the simulator. A large graph is run once for each k past 3.
    """
    graph = graph if isinstance(graph, tuple) else as_graph(graph)
    plain = as_graph(graph)
    about = {"graph": name or plain.name or "", "vertices": plain.n, "edges": plain.m}
    rows = Rows()
    with on_engine(K_TRUSS, engine):
        own = K_TRUSS.prepare(plain)
        where = {"engine": engine_of(K_TRUSS, engine), "order": own.order}
        for knobs in TRUSS_WAYS.values():
            _run(K_TRUSS.plan(own, k=4, **knobs), K_TRUSS)  # warm up
        for k in ks:
            times, every = 1 if k > 3 and plain.m >= LARGE else repeats, []
            for way, knobs in TRUSS_WAYS.items():
                runs = _runs(K_TRUSS, own, _raw(graph, plain), "natural", {"k": k, **knobs}, times, seen=_kept)
                every += runs
                found = {"k": k, "kept": _agreed(K_TRUSS.name, every), "method": way}
                rows.append(about | found | where | _timings(runs) | {"repeats": times} | machine(engine))
    return rows


def measure_truss3(*, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """Table I's other half: the 3-trusses of the graphs of `measure_table1`; all but the largest are held against the
    native support."""
    rows = Rows()
    for name, raw in _table1_graphs(share):
        graph = as_graph(raw)
        times = min(2, repeats) if graph.m >= LARGE else repeats
        found = measure_truss(raw, (3,), engine=engine, repeats=times, name=name)
        in_triangles = int((cpu.support(graph) > 0).sum()) if graph.m < LARGE else found[0]["kept"]
        if found[0]["kept"] != in_triangles:
            raise RuntimeError(f"k_truss keeps {found[0]['kept']:,} edges of {name}, in triangles are {in_triangles:,}")
        tell(found)
        rows += found
    return rows


def _kept(number):
    """How many edges are in the truss, by what its plan says of each: 0 where it stays."""
    return int((number == 0).sum())


def measure_trusses(ks=TRUSS_KS, *, engine=None, repeats=REPEATS, share=1.0, tell=lambda row: None):
    """Figure 5 of Bisson & Fatica: trusses for k from 3 to 100, of a large graph for each of the four kernels."""
    rows = Rows()
    for generator, size in TRUSSES:
        found = measure_truss(GENERATORS[generator](**_scaled(size, share)), ks, engine=engine, repeats=repeats)
        tell(found)
        rows += found
    return rows


SUITES = {
    "report": measure_report,
    "sweep": measure_sweep,
    "cache": measure_cache,
    "table1": measure_table1,
    "samples": measure_samples,
    "truss3": measure_truss3,
    "trusses": measure_trusses,
    "levels": measure_levels,
    "lengths": measure_lengths,
    "tricore": measure_tricore,
}


def record_path(suite, rows):
    """Where the record of a suite goes: `data/measured/SUITE-MACHINE.csv` of a checkout, else the current folder."""
    machine = rows[0].get("gpu_name") if rows[0]["engine"] == "gpu" else rows[0]["cpu"]
    folder = data_path("measured")
    name = re.sub(r"[^a-z0-9]+", "-", f"{suite} {machine}".lower()).strip("-")
    return (folder if folder.is_dir() else Path()) / f"{name}.csv"


def _scaled(size, share, least=2):
    """The sizes of a generator for a graph of `share` times as many vertices."""
    if not 0 < share <= 1:
        raise GraphError(f"a share of a suite's size is past 0 and at most 1, not {share!r}")
    counts = {key: value for key, value in size.items() if key in ("n", "m", "rows", "cols", "planes")}
    if "scale" in size:
        return size | {"scale": max(1, size["scale"] + round(math.log2(share)))}
    return size | {key: max(least, round(value * share ** (1 / len(counts)))) for key, value in counts.items()}


def time_once(graph, method=None, *, engine=None, order=None, max_seconds=None, **knobs):
    """Run one count, once, and return its Timing. The first run of a method compiles it. Keywords as in `count`."""
    chosen = choose(method, engine, order, knobs)
    with on_engine(chosen, engine, max_seconds):
        begin = time.perf_counter()
        ordered = chosen.prepare(graph, order)
        plan = chosen.plan(ordered, **knobs)
        kernel, process, found = _run(plan, chosen)
        return Timing(found, kernel, process, (time.perf_counter() - begin) * 1e3)


def machine(engine=None):
    """What this machine is, for a record to name: GPU, CPU, versions, and the date."""
    facts = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "threads": native.threads(),
        "python": platform.python_version(),
        "system": platform.system(),
        "numba": version("numba"),
    }
    if engine != "cpu":
        from tcgpu.engines import runtime

        if runtime.engine() == "gpu":
            facts |= {f"gpu_{key}": value for key, value in runtime.facts().asdict().items()}
    return facts


def _measured(graph, plain, method, knobs, engine, order, repeats, max_seconds):
    """The row of one method with one setting of its knobs, without what all rows of a graph share."""
    chosen = choose(method, engine, order, knobs)
    wanted = order or chosen.order
    with on_engine(chosen, engine, max_seconds):
        ordered = chosen.prepare(plain, wanted)
        plan = chosen.plan(ordered, **knobs)
        _check_simulated(plan, 1 + 2 * repeats)
        _run(plan, chosen)  # warm up: compiles, loads, fills caches
        runs = _runs(chosen, ordered, _raw(graph, plain), wanted, knobs, repeats)
    return {
        "triangles": _agreed(method, runs),
        "method": method,
        "engine": engine_of(chosen, engine),
        "order": ordered.order,
        "knobs": json.dumps(chosen.knobs | knobs),
        **_timings(runs),
        "repeats": repeats,
    }


def _check_simulated(plan, runs):
    """Announce runs of a plan that take the simulator long; GraphError if they take longer than they may."""
    if plan.method != "cpu":
        from tcgpu.engines import runtime
        from tcgpu.kernels import simulated

        if runtime.engine() == "sim":
            simulated.check(f"{plan.method}, measured by {runs} runs,", runs * plan.simulated_seconds)


def _raw(graph, plain):
    """The arrays that `total` begins with."""
    return graph if isinstance(graph, tuple) else (*plain.edges(), plain.n)


def _runs(chosen, ordered, raw, wanted, knobs, repeats, seen=int):
    """A tuple a run: its three timings, and what was `seen` of its result and of that from raw edges on."""
    runs = []
    for k in range(repeats):
        with part(2 * k, 2 * repeats):
            kernel, process, found = _run(chosen.plan(ordered, **knobs), chosen)
        with part(2 * k + 1, 2 * repeats):
            begin = time.perf_counter()
            again = chosen.plan(chosen.prepare(raw, wanted), **knobs).count()
        runs.append((kernel, process, (time.perf_counter() - begin) * 1e3, seen(found), seen(again)))
    return runs


def _agreed(method, runs):
    """What all runs found; RuntimeError if that is not the same."""
    counts = {count for run in runs for count in run[3:]}
    if len(counts) > 1:
        raise RuntimeError(f"{method} does not repeat itself: it counted {sorted(counts)}")
    return counts.pop()


def _timings(runs):
    """Medians of the three timings, and how far they spread."""
    timings = dict(zip(("kernel_ms", "process_ms", "total_ms"), list(zip(*runs))[:3]))
    return {
        **{key: round(statistics.median(times), 4) for key, times in timings.items()},
        **{f"{key}_spread": round(max(times) - min(times), 4) for key, times in timings.items()},
    }


def _run(plan, method):
    """Carry a plan out by stages; returns kernel and process milliseconds and the count."""
    timed = _by_clock if method.engines == ("cpu",) else _by_events
    try:
        begin = time.perf_counter()
        plan.allocate()
        _synchronize(method)
        allocated = time.perf_counter()
        kernel = timed(plan)
        launched = time.perf_counter()
        found = plan.result()
        return kernel, (allocated - begin + time.perf_counter() - launched) * 1e3 + kernel, found
    finally:
        plan.free()


def _by_clock(plan):
    begin = time.perf_counter()
    plan.launch()
    return (time.perf_counter() - begin) * 1e3


def _by_events(plan):
    from tcgpu.engines import runtime

    return runtime.elapsed_ms(plan.launch, prepare=plan.reset, waits=plan.waits)


def _synchronize(method):
    if method.engines != ("cpu",):
        from tcgpu.engines import runtime

        runtime.synchronize()


def _settings(method, knobs):
    """The settings of a method's knobs to try, each without the knobs that it does not have."""
    known = choose(method).knobs
    given = [knobs or {}] if knobs is None or isinstance(knobs, dict) else knobs
    settings = [{key: value for key, value in setting.items() if key in known} for setting in given]
    return [setting for k, setting in enumerate(settings) if setting not in settings[:k]]


def _cpu_name():
    """The model of the processor, as the system calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _parsed(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _short(value):
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
