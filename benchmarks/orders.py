"""Hold the choice of a way to count on a GPU against the times of all ways, on graphs of many kinds.

    python benchmarks/orders.py measure [--edges 8e6 ...] [--seed 1] [--kind NAME ...] [--into FOLDER]   on a GPU
    python benchmarks/orders.py fit                                                     anywhere, from the record

measure  the kernel times of `adaptive` in natural order, with each width of the local columns' rows of bits, and in
         degree order, merged, by look-ups and by classes, and those of `triangles` and `support`; what is chosen for
         the raw edges and for the clean graph; the sums that it is chosen by. For the choice, look-ups also take
         LISTS_SHARE of the time that their lists take: lists that take longer than they save are not worth it
fit      prints the nanoseconds of each sum, for `tcgpu.kernels.order_costs`, with which estimates are closest to the
         recorded times, and choices to the best; close to those of before where the times do not say otherwise

The record is called "orders". A graph is a row.
"""

import argparse
import json
import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path

import kinds
import numpy as np
from scipy.optimize import minimize

from tcgpu import measurement, records
from tcgpu.engines import runtime
from tcgpu.kernels.adaptive import look_ups
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.edge_sums import describe_edges
from tcgpu.kernels.order_costs import WORDS, OrderCosts
from tcgpu.registry import METHODS

REPEATS, LONG_MS = 5, 100  # runs of a launch; milliseconds from which on it runs once
TALLIES = "triangles", "support"
FAR_FROM_BEST = 5  # times the best count: where a count takes longer, tallies are measured only if chosen
WAYS = "natural", "merged", "looked", "degree"
LISTS_SHARE = 0.22  # of the time of lists, that the choice of look-ups takes into account
# of `fit`: the weight of wrong choices; how close, as logarithms, estimates are that share a choice; how often it
# minimizes; the weight of ways over FAR_FROM_BEST, and of a change, squared and as a logarithm
REGRET, SOFT, TURNS, FAR_WEIGHT, CHANGE_WEIGHT = 60, 0.05, 6, 0.2, 20


def draw(job):
    """(kind, edges asked for, graph) of a job (kind, number of edges, seed)."""
    kind, edges, seed = job
    u, v, n = kinds.KINDS[kind](edges, seed)
    return kind, edges, (np.asarray(u, np.int32), np.asarray(v, np.int32), n)


def kernel_ms(plan):
    """The least time of a plan's launches, and its result."""
    run = plan.allocate()
    run.launch()
    run.reset()
    first = runtime.elapsed_ms(run.launch, run.reset)
    times = [runtime.elapsed_ms(run.launch, run.reset) for _ in range(REPEATS if first < LONG_MS else 0)]
    run.reset()
    run.launch()
    found = run.result()
    run.free()
    return min([first, *times]), found


def lists_of(plan):
    """A plan whose launches are the set-up of look-ups."""
    return replace(plan, setup=(), steps=plan.setup, refills={"last_rows": 0, "sizes": 0})


def measured(kind, asked, edges):
    """The row of a graph."""
    method, (u, v, n) = METHODS["adaptive"], edges
    u, v = runtime.to_device(u), runtime.to_device(v)
    raw = DeviceGraph.from_edges(u, v, n, order="auto").order
    natural = DeviceGraph.from_edges(u, v, n)
    natural.order_costs, *_ = describe_edges(natural.row_idx, natural.col_of, n)  # of its own edges, not sampled
    costs = natural.order_costs
    degree = natural.ordered("degree")
    plans = {f"natural {words} ms": method.plan(natural, words=words) for words in (0, *widths(costs))}
    plans |= {"merged ms": method.plan(degree, merge=1), "degree ms": method.plan(degree, merge=0)}
    plans |= {"looked ms": look_ups.plan(degree)}
    times, counts = {"lists ms": round(kernel_ms(lists_of(plans["looked ms"]))[0], 4)}, set()
    for name, plan in plans.items():
        ms, count = kernel_ms(plan)
        times[name] = round(ms, 4)
        counts.add(count)
    if len(counts) > 1:
        raise SystemExit(f"the counts differ on {kind}: {counts}")
    best = times_of_counts(times)
    knobs = {"natural": {}, "merged": {"merge": 1}, "degree": {"merge": 0}}
    for way in knobs:
        if best[way] > FAR_FROM_BEST * min(best.values()) and way != way_of_tallies(costs):
            continue
        for name, of in zip(TALLIES, (method.tallies["vertices"], method.support_plan), strict=True):
            ms, found = kernel_ms(of(natural if way == "natural" else degree, **knobs[way]))
            if int(found.sum(dtype=np.int64)) != 3 * count:
                raise SystemExit(f"{name} are wrong on {kind}")
            times[f"{name} by {way} ms"] = round(ms, 4)
    return {
        "kind": kind, "asked": asked, "vertices": n, "edges": natural.m, "triangles": count, **times,
        "order": costs.best(), "order of raw edges": raw, "words": costs.best_words(),
        "max_column": costs.max_column, "max_degree": costs.max_degree, "sums": json.dumps(costs.sums),
    }  # fmt: skip


def widths(costs):
    """The WORDS that some column is local by."""
    return [words for words in WORDS if any(costs.sums[f"words {width}"] for width in WORDS if width <= words)]


def costs_of(row):
    """The OrderCosts of a row of the record."""
    return OrderCosts(row["vertices"], row["edges"], row["max_column"], json.loads(row["sums"]))


def way_of_count(costs):
    """The way that is chosen for a count."""
    if costs.best() == "natural":
        return "natural"
    return "looked" if costs.looks_up() else "merged" if costs.merges() else "degree"


def way_of_tallies(costs):
    """The way that is chosen for `triangles` and `support`."""
    return "natural" if costs.best_for_tallies() == "natural" else "merged" if costs.merges_for_tallies() else "degree"


def times_of_counts(row):
    """Milliseconds of each way to count, natural order with the best of its widths."""
    times = {name: row[name] for name in row if name.endswith(" ms") and " by " not in name and row[name] != ""}
    return {way: min(ms for name, ms in times.items() if way in name) for way in WAYS}


def chosen_and_best(row):
    """Milliseconds of the chosen count, and of the fastest one."""
    costs, times = costs_of(row), times_of_counts(row)
    way = way_of_count(costs)
    chosen = row[f"natural {costs.best_words()} ms"] if way == "natural" else times[way]
    return chosen, min(times.values())


def tallies_and_best(row):
    """Milliseconds of `triangles` and `support` in the way chosen for them, and of the fastest count in those ways: by
    look-ups nothing but the whole graph's triangles are counted."""
    way, times = way_of_tallies(costs_of(row)), times_of_counts(row)
    return *(row[f"{name} by {way} ms"] for name in TALLIES), min(times[way] for way in WAYS if way != "looked")


def counts_and_ms(row):
    """[(name of a table of nanoseconds, its counts, milliseconds)] of the ways that were measured: of a count, and of
    tallies."""
    costs = costs_of(row)
    ways = {"merged": ("MERGED", costs.merged_counts()), "degree": ("DEGREE", costs.degree_counts())}
    ways |= {f"natural {words}": ("NATURAL", costs.natural_counts(words)) for words in (0, *WORDS)}
    count = [(f"{table}_NS", counts, row.get(f"{way} ms", "")) for way, (table, counts) in ways.items()]
    count.append(("LOOKED_NS", costs.looked_counts(), row["looked ms"] + LISTS_SHARE * row["lists ms"]))
    ways["natural"] = ways[f"natural {row['words']}"]
    tallies = [
        (f"{table}_TALLY_NS", counts, row.get(f"{name} by {way} ms", ""))
        for way, (table, counts) in ways.items()
        for name in TALLIES
    ]
    return [[each for each in found if each[2] != ""] for found in (count, tallies)]


def fit(rows):
    """Print the nanoseconds with which estimates come closest to the recorded times, and the choices to the best.

    The loss has three parts: how far off estimates are, with less weight for ways that take over FAR_FROM_BEST times
    the best; how far the nanoseconds are from those of before; and how much longer than the best the chosen way takes.
    So that the loss is smooth, ways whose estimates are nearly equal share the choice, by SOFT.
    """
    from tcgpu.kernels import order_costs as module

    rows = [row for row in rows if json.loads(row["sums"])["looked up"]]  # others are known to have no triangles
    for of_graphs in zip(*map(counts_and_ms, rows), strict=True):
        tables = sorted({table for ways in of_graphs for table, *_ in ways})
        keys = [(table, key) for table in tables for key in getattr(module, table)]
        counts = [[of.get(key, 0) * (table == own) for own, key in keys] for ways in of_graphs for table, of, _ in ways]
        counts, times = np.array(counts, float), 1e6 * np.array([ms for ways in of_graphs for *_, ms in ways])
        sizes = [len(ways) for ways in of_graphs]
        first = np.cumsum([0, *sizes[:-1]])
        slower = np.log(times / np.repeat(np.minimum.reduceat(times, first), sizes))
        near = slower < np.log(FAR_FROM_BEST)
        natural = np.array([table == "NATURAL_NS" for ways in of_graphs for table, *_ in ways])
        before = np.log([max(getattr(module, table)[key], 1e-7) for table, key in keys])

        def loss(logarithms):
            nanoseconds = counts @ np.exp(logarithms)  # noqa: B023
            off = np.sqrt(0.003 + np.log(nanoseconds / times) ** 2) @ np.where(near, 1, FAR_WEIGHT)  # noqa: B023
            off += CHANGE_WEIGHT * ((logarithms - before) ** 2).sum()  # noqa: B023
            preferred = np.maximum(1, nanoseconds / module.LITTLE - module.LITTLE_NS)
            estimates = np.log(np.where(natural, preferred, nanoseconds))  # noqa: B023
            chosen = np.exp((np.repeat(np.minimum.reduceat(estimates, first), sizes) - estimates) / SOFT)  # noqa: B023
            chosen /= np.repeat(np.add.reduceat(chosen, first), sizes)  # noqa: B023
            return off + REGRET * (chosen * np.minimum(slower, 3)).sum()  # noqa: B023

        found = before
        for _ in range(TURNS):
            found = minimize(loss, found, method="Powell", options={"maxiter": 60, "ftol": 1e-4}).x
        found = np.exp(found)
        for table in tables:
            values = {key: float(f"{value:.3g}") for (own, key), value in zip(keys, found, strict=True) if own == table}
            print(table, {key: value if value > 1e-12 else 0 for key, value in values.items()})
        print("   estimated over measured, percentiles 0 5 25 50 75 95 100:",
              np.percentile((counts @ found / times)[near], [0, 5, 25, 50, 75, 95, 100]).round(2))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "fit"))
    parser.add_argument("--edges", type=float, nargs="*", default=[2e7, 8e6, 3e6, 1e6, 3e5, 1e5])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", metavar="NAME", help="part of a kind's name; may be repeated")
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the record goes")
    arguments = parser.parse_args()
    if arguments.what == "fit":
        return fit(records.reference("orders"))
    chosen = [kind for kind in kinds.KINDS if not arguments.kind or any(part in kind for part in arguments.kind)]
    jobs = [(kind, int(edges), arguments.seed) for edges in arguments.edges for kind in chosen]
    about, rows, path = {"engine": "gpu", **measurement.machine("gpu")}, records.Rows(), None
    with multiprocessing.get_context("spawn").Pool(min(12, os.cpu_count())) as pool:
        for kind, asked, edges in pool.imap(draw, jobs):
            row = measured(kind, asked, edges)
            rows.append(row | about)
            path = path or Path(arguments.into, records.record_path("orders", rows).name)
            names = {name: "" for row in rows for name in row}
            records.Rows(names | row for row in rows).write_csv(path)
            taken, best = chosen_and_best(row)
            ways = f"{way_of_count(costs_of(row))} (raw {row['order of raw edges']}), {way_of_tallies(costs_of(row))}"
            ms_of_tallies = zip(TALLIES, tallies_and_best(row)[:-1], strict=True)
            tallies = " ".join(f"{name} {ms / best:.1f}x" for name, ms in ms_of_tallies)
            mark = "!" if taken > 1.2 * best else " "
            print(f"{asked:8} {kind:32} chosen {taken:8.4f} best {best:8.4f} {mark} {tallies}  {ways}", flush=True)
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
