"""Every verb of an engine on every kind of graph: how far each is from the best.

    python benchmarks/families.py [--engine cpu] [--kind NAME ...] [--verb NAME ...] [--edges 3e6] [--threads 2]
                                  [--repeats 5] [--limit 12] [--output FILE.csv | --record] [--resume]
    python benchmarks/families.py --engine gpu [--edges 8e6] [--repeats 2] ...

`count`, `triangles` and `support` run in natural order, in degree order, and in the order that is chosen
automatically; other verbs only as they are, for a first time, and at most twice. A row holds the least times of some
runs, taken in turns:

    first   from a Graph of which nothing is known: the choice and the sorting of an order included
    again   the third call with the same Graph, which then knows its order for good
    wall    milliseconds; cpu: milliseconds of processor time, all threads together, less disturbed by other load
    kernel  on a GPU: milliseconds of the kernels that count, in their own order; not of those that make the order

On a GPU a DeviceGraph takes the place of the Graph: its columns are on the device. Results are on the host. Verbs that
need the columns there, too, copy them: clustering, transitivity, trusses, cliques, motifs. A GPU does not count the
connected subgraphs of 4 vertices alone: there are the motifs instead, which are these by their shapes. Its last verb is
a count of raw edges that are on the device.

A run that is not done within `--limit` seconds is ended; on a GPU, where a launch cannot be, it may go on, but does not
count. Its times are empty, as are those of a run that does not fit the device. All counts of a graph must agree, on a
GPU also with that of the native engine.

The file is written after each kind, whose rows replace those that it had. `--resume` measures only the kinds of which
it has no rows of this commit.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import kinds
import numpy as np
import orders

import tcgpu
from tcgpu import measurement, progress, records
from tcgpu.declarations import GPU
from tcgpu.engines import native, runtime
from tcgpu.kernels.device_graph import DeviceGraph, order_for_tallies
from tcgpu.registry import METHODS

# of each engine: the edges of a graph, the threads, the runs after the first
DEFAULTS = {"cpu": (3e6, 2, 5), "gpu": (8e6, None, 2), "sim": (100, None, 0)}
ORDERS = ("natural", "degree", "auto")
TALLIES = {"count": 1, "triangles": 3, "support": 3}  # and the corners or edges of a triangle
OTHERS = {
    "clustering": tcgpu.clustering,
    "transitivity": tcgpu.transitivity,
    "is_triangle_free": tcgpu.is_triangle_free,
    "k_truss 3": lambda graph, **options: tcgpu.k_truss(graph, 3, **options),
    "k_truss 5": lambda graph, **options: tcgpu.k_truss(graph, 5, **options),
    "truss_numbers": tcgpu.truss_numbers,
    "4-cliques": lambda graph, **options: tcgpu.count_subgraphs(graph, 4, **options),
}
RAW = "count of raw edges"
TIMES = ("first_wall", "first_cpu", "again_wall", "again_cpu")
LONG = 0.3  # seconds for a run, from which on it is not repeated
WARM_UP = "R-MAT", "banded, wide"  # small ones, for which a GPU's kernels are compiled
# the most that each of `ratios` may be, by the times that they are held to
BARS = {"choice": 1.2, "triangles": 4.0, "support": 6.0, "seconds": 10.0}
HELD = {"cpu": ("first_cpu", "again_cpu"), **dict.fromkeys(GPU, ("first_wall", "again_wall", "kernel"))}
# milliseconds that a choice may cost, whatever its ratio: by so much two runs of the same call may differ, and on a GPU
# a first call may sort for those that follow
NOISE = {"first_cpu": 3.0, "again_cpu": 3.0, "first_wall": 3.0, "again_wall": 0.3, "kernel": 0.005}


class OverLimit(Exception):
    """A run has taken too long."""


def fresh(graph):
    """A copy of the Graph or DeviceGraph that remembers nothing."""
    if isinstance(graph, DeviceGraph):
        return DeviceGraph(graph.n, graph.col_ptr, graph.row_idx, graph.col_of)
    return tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False)


def settle(graph):
    """Wait for the device, if the graph is on one."""
    if isinstance(graph, DeviceGraph):
        runtime.synchronize()


def limited(call, graph, limit):
    """(result, wall ms, processor ms) of one call; OverLimit after `limit` seconds."""
    settle(graph)
    end = time.perf_counter() + limit

    def check(share):
        if time.perf_counter() > end:
            raise OverLimit

    with progress.watched(check):
        wall, processor = time.perf_counter(), time.process_time()
        result = call(graph)
        settle(graph)
        taken = (time.perf_counter() - wall) * 1e3, (time.process_time() - processor) * 1e3
    check(None)  # short work calls back only now
    return result, *taken


def first_and_again(call, graph, limit, again):
    """The result, and the four TIMES of the first call and, if asked for, the third."""
    graph = fresh(graph)
    result, *first = limited(call, graph, limit)
    if not again:
        return result, (*first, np.inf, np.inf)
    limited(call, graph, limit)
    return result, (*first, *limited(call, graph, limit)[1:])


def calls(chosen, engine="cpu", raw=None):
    """Each (verb, order) to measure, and its call. raw: edges on the device."""
    for verb, order in itertools.product(TALLIES, ORDERS):
        if not chosen or verb in chosen:
            yield (verb, order), partial(getattr(tcgpu, verb), engine=engine, order=order)
    connected = {"connected 4": lambda graph, **options: tcgpu.count_subgraphs(graph, 4, "connected", **options)}
    of_gpu = {"motifs": tcgpu.motifs, RAW: lambda graph, **options: tcgpu.count(raw, **options)}
    for verb, function in (OTHERS | (connected if engine == "cpu" else of_gpu)).items():
        if not chosen or verb in chosen:
            yield (verb, ""), partial(function, engine=engine)


def kernel_ms(graph, verb, order):
    """Milliseconds of the kernels of a verb in an order, and its result in the order in which they count."""
    method = METHODS["adaptive"]
    given = method.prepare(graph, "natural")
    own = method.prepare(given, order if verb == "count" else order_for_tallies(given, order))
    plans = {"count": method.plan, "triangles": method.tallies["vertices"], "support": method.support_plan}
    return orders.kernel_ms(plans[verb](own))


def measure(kind, graph, verbs, repeats, limit, engine="cpu"):
    """Rows of one graph: a Graph; on a GPU, raw edges (u, v, n) on the host."""
    times, results, slow, kernel = {}, {}, set(), {}
    raw = None
    if engine != "cpu":
        results["count", "native engine"] = tcgpu.count(graph, "cpu")
        raw = *map(runtime.to_device, graph[:2]), graph[2]
        graph = DeviceGraph.from_edges(*raw)
    for turn in range(1 + repeats):  # the first turn compiles and warms up
        for name, call in list(calls(verbs, engine, raw))[:: (-1) ** turn]:  # what ran before it affects a run
            tally = name[0] in TALLIES
            if turn > 1 and (name in slow or not tally):
                continue
            if name in slow and not (times[name] and (tally or engine == "cpu")):  # a GPU is warm: see `run`
                continue
            try:
                results[name], taken = first_and_again(call, graph, limit, tally)
            except (OverLimit, tcgpu.GraphError) as reason:
                print(f"{kind}, {' '.join(name)}: {reason or 'over the limit'}", file=sys.stderr)
                times[name], results[name], taken = [], None, None
            times.setdefault(name, []).extend([taken] if taken else [])
            if not taken or taken[0] > LONG * 1e3:
                slow.add(name)
            else:
                slow.discard(name)
    used = fresh(graph)  # which knows its orders after the first plan
    for name in times:
        if engine != "cpu" and name[0] in TALLIES and times[name]:
            kernel[name], results[*name, "kernel"] = kernel_ms(used, *name)
    counts = {
        int(np.sum(result)) // TALLIES.get(verb, 1)
        for (verb, *_), result in results.items()
        if (verb in TALLIES or verb == RAW) and result is not None
    }
    if len(counts) > 1:
        raise SystemExit(f"the counts differ on {kind}: {counts}")
    for (verb, order), runs in times.items():
        least = [min((run[k] for run in runs), default=np.inf) for k in range(4)]
        least = [round(time, 3) if time < np.inf else "" for time in least]
        about = {"kind": kind, "vertices": graph.n, "edges": graph.m, "triangles": max(counts, default="")}
        row = about | {"engine": engine, "verb": verb, "order": order} | dict(zip(TIMES, least, strict=True))
        ms = kernel.get((verb, order), "")
        yield row if engine == "cpu" else row | {"kernel": ms and round(ms, 4)}


def ratios(rows, key):
    """What the bars limit, on one graph, by one of the times: a dict of name -> number, infinite if a run was ended.

    choice: `count`, the automatic order over the better one; triangles, support: the automatic order over `count` in
    the better order, but not by the wall times of a GPU, which copies their results to the host; seconds: the slowest
    verb in automatic order.
    """
    tallies = () if key.endswith("wall") and rows[0]["engine"] != "cpu" else ("triangles", "support")
    rows = [row for row in rows if row["verb"] in TALLIES or key.startswith("first")]
    taken = {(row["verb"], row["order"]): row[key] if row[key] != "" else np.inf for row in rows}
    found = {}
    if ("count", "auto") in taken:
        best = min(taken["count", "natural"], taken["count", "degree"])
        found["choice"] = taken["count", "auto"] / best
        found |= {verb: taken[verb, "auto"] / best for verb in tallies if (verb, "auto") in taken}
    verbs = (name for name in taken if name[1] in ("auto", ""))
    found["seconds"] = max((taken[name] for name in verbs), default=0) / 1e3
    return found


def over_bars(rows, key):
    """Those ratios of a graph that are over their bars; not a choice that costs no more than NOISE."""
    over = {name: value for name, value in ratios(rows, key).items() if value > BARS[name]}
    taken = {row["order"]: row[key] or np.inf for row in rows if row["verb"] == "count"}
    if "choice" in over and taken["auto"] - min(taken["natural"], taken["degree"]) <= NOISE[key]:
        del over["choice"]
    return over


def read(path):
    """The rows of a file, by kind; none if there is no file."""
    found = {}
    for row in records.Rows.read_csv(path) if path and Path(path).exists() else ():
        found.setdefault(row["kind"], []).append(row)
    return found


def left_to_measure(path, machine, parts=None, resume=False):
    """The kinds to measure: with one of the `parts` in their names; to resume, without rows of this commit."""
    commit = {kind: rows[0]["tcgpu"].rstrip("+") for kind, rows in read(path).items()} if resume else {}
    named = (kind for kind in kinds.KINDS if not parts or any(part.lower() in kind.lower() for part in parts))
    return [kind for kind in named if commit.get(kind) != machine["tcgpu"].rstrip("+")]


def write(path, kind, rows):
    """Write the rows of a kind to the file, in the place of those that it had."""
    by_kind = read(path) | {kind: rows}
    records.Rows(row for kind in kinds.KINDS for row in by_kind.get(kind, ())).write_csv(path)


def drawn(jobs, engine):
    """What `orders.draw` makes of each job; for a GPU all at once, as later it would disturb the wall times."""
    if engine == "cpu":
        return map(orders.draw, jobs)
    processes = min(12, os.cpu_count(), len(jobs) or 1)
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(orders.draw, jobs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=DEFAULTS, default="cpu")
    parser.add_argument("--kind", action="append", metavar="NAME", help="part of a kind's name; may be repeated")
    parser.add_argument("--verb", action="append", metavar="NAME", help="may be repeated")
    parser.add_argument("--edges", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--limit", type=float, default=12, metavar="SECONDS")
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    parser.add_argument("--record", action="store_true", help="write it to data/measured")
    parser.add_argument("--resume", action="store_true", help="measure only what the file does not have")
    arguments = parser.parse_args()
    engine = arguments.engine
    given = arguments.edges, arguments.threads, arguments.repeats
    edges, threads, repeats = (own if one is None else one for one, own in zip(given, DEFAULTS[engine], strict=True))
    native.set_threads(threads)
    with contextlib.nullcontext() if engine == "cpu" else runtime.using(engine):
        run(arguments, engine, edges, repeats)


def run(arguments, engine, edges, repeats):
    """Measure all kinds on an engine."""
    machine = measurement.machine(engine)
    path = records.record_path("families", [{"engine": engine} | machine]) if arguments.record else arguments.output
    left = left_to_measure(path, machine, arguments.kind, arguments.resume)
    graphs = drawn([(kind, int(edges), arguments.seed) for kind in left], engine)
    for kind in WARM_UP if left and engine != "cpu" else ():
        *_, small = orders.draw((kind, max(50, edges // 40), arguments.seed))
        list(measure(kind, small, arguments.verb, 0, np.inf, engine))
    for kind, _, graph in graphs:
        graph = tcgpu.Graph.from_edges(*graph) if engine == "cpu" else graph
        found = list(measure(kind, graph, arguments.verb, repeats, arguments.limit, engine))
        if path:
            write(path, kind, [row | machine for row in found])
        about = found[0]
        print(f"{kind}: {about['vertices']:,} vertices, {about['edges']:,} edges, {about['triangles']} triangles")
        for row in found:
            shown = (f"{row[key] or '-':>10}" for key in (*TIMES, "kernel") if key in row)
            print(f"  {row['verb']:<19}{row['order']:<8}" + "".join(shown))
        for key in HELD[engine]:
            values = ratios(found, key).items()
            marks = (f"{name} {value:.2f}{'!' * (value > BARS[name])}" for name, value in values)
            print(f"  {key}: " + ", ".join(marks), flush=True)
    if path:
        print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
