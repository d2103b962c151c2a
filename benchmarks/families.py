"""Every verb of the native engine on every kind of graph: how far each is from the best.

    python benchmarks/families.py [--kind NAME ...] [--verb NAME ...] [--edges 3e6] [--threads 2] [--repeats 5]
                                  [--limit 12] [--output FILE.csv | --record] [--resume]

`count`, `triangles` and `support` run in natural order, in degree order, and in the order that is chosen
automatically; other verbs only as they are, for a first time, and twice. A row holds the least times of some runs,
taken in turns:

    first   from a Graph of which nothing is known: the choice and the sorting of an order included
    again   the third call with the same Graph, which then knows its order for good
    wall    milliseconds; cpu: milliseconds of processor time, all threads together, less disturbed by other load

A run that is not done within `--limit` seconds is ended; its times are empty. All counts of a graph must agree.

The file is written after each kind, whose rows replace those that it had. `--resume` measures only the kinds of which
it has no rows of this commit.
"""

import argparse
import itertools
import sys
import time
from pathlib import Path

import kinds
import numpy as np

import tcgpu
from tcgpu import measurement, progress, records
from tcgpu.engines import native

ORDERS = ("natural", "degree", "auto")
TALLIES = {"count": 1, "triangles": 3, "support": 3}  # and the corners or edges of a triangle
OTHERS = {
    "clustering": tcgpu.clustering,
    "transitivity": tcgpu.transitivity,
    "is_triangle_free": tcgpu.is_triangle_free,
    "k_truss 3": lambda graph, **options: tcgpu.k_truss(graph, 3, **options),
    "k_truss 5": lambda graph, **options: tcgpu.k_truss(graph, 5, **options),
    "truss_numbers": tcgpu.truss_numbers,
    "4-cliques": lambda graph, **options: tcgpu.count_subgraphs(graph, 4),
    "connected 4": lambda graph, **options: tcgpu.count_subgraphs(graph, 4, "connected"),
}
TIMES = ("first_wall", "first_cpu", "again_wall", "again_cpu")
LONG = 0.3  # seconds for a run, from which on it is not repeated
NOISE = 3.0  # milliseconds of processor time by which two runs of the same call may differ
# the most that each of `ratios` may be
BARS = {"choice": 1.2, "triangles": 4.0, "support": 6.0, "seconds": 10.0}


class OverLimit(Exception):
    """A run has taken too long."""


def fresh(graph):
    """A copy of the Graph that remembers nothing."""
    return tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False)


def limited(call, graph, limit):
    """(result, wall ms, processor ms) of one call; OverLimit after `limit` seconds."""
    end = time.perf_counter() + limit

    def check(share):
        if time.perf_counter() > end:
            raise OverLimit

    with progress.watched(check):
        wall, processor = time.perf_counter(), time.process_time()
        result = call(graph)
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


def calls(chosen):
    """Each (verb, order) to measure, and its call."""
    for verb, order in itertools.product(TALLIES, ORDERS):
        if not chosen or verb in chosen:
            yield (
                (verb, order),
                lambda graph, verb=verb, order=order: getattr(tcgpu, verb)(graph, method="cpu", order=order),
            )
    for verb, function in OTHERS.items():
        if not chosen or verb in chosen:
            yield (verb, ""), lambda graph, function=function: function(graph, engine="cpu")


def measure(kind, graph, verbs, repeats, limit):
    """Rows of one graph."""
    times, results, slow = {}, {}, set()
    for turn in range(1 + repeats):  # the first turn compiles and warms up
        for name, call in list(calls(verbs))[:: (-1) ** turn]:  # what ran before it affects a run
            if turn > 1 and (name in slow or name[0] not in TALLIES) or name in slow and not times[name]:
                continue
            try:
                results[name], taken = first_and_again(call, graph, limit, name[0] in TALLIES)
            except OverLimit:
                times[name], results[name], taken = [], None, None
            times.setdefault(name, []).extend([taken] if taken else [])
            if not taken or taken[0] > LONG * 1e3:
                slow.add(name)
            else:
                slow.discard(name)
    counts = {
        int(np.sum(results[verb, order])) // TALLIES[verb]
        for verb, order in results
        if verb in TALLIES and results[verb, order] is not None
    }
    if len(counts) > 1:
        raise SystemExit(f"the counts differ on {kind}: {counts}")
    for (verb, order), runs in times.items():
        least = [min((run[k] for run in runs), default=np.inf) for k in range(4)]
        least = [round(time, 3) if time < np.inf else "" for time in least]
        about = {"kind": kind, "vertices": graph.n, "edges": graph.m, "triangles": max(counts, default="")}
        yield about | {"engine": "cpu", "verb": verb, "order": order} | dict(zip(TIMES, least))


def ratios(rows, key):
    """What the bars limit, on one graph, by one of the TIMES: a dict of name -> number, infinite if a run was ended.

    choice: `count`, the automatic order over the better one; triangles, support: the automatic order over `count` in
    the better order; seconds: the slowest verb in automatic order.
    """
    rows = [row for row in rows if row["verb"] in TALLIES or key.startswith("first")]
    taken = {(row["verb"], row["order"]): row[key] if row[key] != "" else np.inf for row in rows}
    found = {}
    if ("count", "auto") in taken:
        best = min(taken["count", "natural"], taken["count", "degree"])
        found["choice"] = taken["count", "auto"] / best
        found |= {verb: taken[verb, "auto"] / best for verb in ("triangles", "support") if (verb, "auto") in taken}
    verbs = (name for name in taken if name[1] in ("auto", ""))
    found["seconds"] = max((taken[name] for name in verbs), default=0) / 1e3
    return found


def over_bars(rows, key):
    """Those ratios of a graph that are over their bars; not a choice that costs no more than NOISE."""
    over = {name: value for name, value in ratios(rows, key).items() if value > BARS[name]}
    taken = {row["order"]: row[key] for row in rows if row["verb"] == "count"}
    if "choice" in over and taken["auto"] - min(taken["natural"] or np.inf, taken["degree"] or np.inf) <= NOISE:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", metavar="NAME", help="part of a kind's name; may be repeated")
    parser.add_argument("--verb", action="append", metavar="NAME", help="may be repeated")
    parser.add_argument("--edges", type=float, default=3e6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=12, metavar="SECONDS")
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    parser.add_argument("--record", action="store_true", help="write it to data/measured")
    parser.add_argument("--resume", action="store_true", help="measure only what the file does not have")
    arguments = parser.parse_args()
    native.set_threads(arguments.threads)
    machine = measurement.machine("cpu")
    path = records.record_path("families", [{"engine": "cpu"} | machine]) if arguments.record else arguments.output
    for kind in left_to_measure(path, machine, arguments.kind, arguments.resume):
        draw = kinds.KINDS[kind]
        graph = tcgpu.Graph.from_edges(*draw(arguments.edges, arguments.seed))
        found = list(measure(kind, graph, arguments.verb, arguments.repeats, arguments.limit))
        if path:
            write(path, kind, [row | machine for row in found])
        print(f"{kind}: {graph.n:,} vertices, {graph.m:,} edges, {found[0]['triangles']} triangles")
        for row in found:
            print(f"  {row['verb']:<17}{row['order']:<8}" + "".join(f"{row[key] or '-':>10}" for key in TIMES))
        for key in ("first_cpu", "again_cpu"):
            values = ratios(found, key).items()
            marks = (f"{name} {value:.2f}{'!' * (value > BARS[name])}" for name, value in values)
            print(f"  {key}: " + ", ".join(marks), flush=True)
    if path:
        print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
