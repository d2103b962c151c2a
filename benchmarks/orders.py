"""Hold the choice of an order on a GPU against the times of both orders, on graphs of many kinds.

    python benchmarks/orders.py measure [--edges 8e6] [--seed 1] [--kind NAME ...] [--into FOLDER]    on a GPU
    python benchmarks/orders.py fit                                                     anywhere, from the record

measure  the kernel times of `adaptive` in natural order, with each width of the local columns' rows of bits, and in
         degree order, and those of `triangles` and `support` in both; what is chosen for the raw edges and for the
         clean graph; the sums that it is chosen by
fit      prints the nanoseconds of each sum that come closest to the recorded times, for `tcgpu.kernels.order_costs`

The record is called "orders". A kind of graph is a row.
"""

import argparse
import json
import multiprocessing
import os
import sys
from pathlib import Path

import kinds
import numpy as np
from scipy.optimize import minimize

from tcgpu import measurement, records
from tcgpu.engines import runtime
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.kernels.order_costs import WORDS, OrderCosts
from tcgpu.registry import METHODS

REPEATS, PATIENT = 5, 100  # runs of a launch; milliseconds from which on it runs once
TALLIES = "triangles", "support"
HOPELESS = 5  # times the best count: in an order in which a count takes longer, tallies are measured only if chosen


def draw(job):
    """(kind, edges) of a job (kind, number of edges, seed)."""
    kind, edges, seed = job
    u, v, n = kinds.KINDS[kind](edges, seed)
    return kind, (np.asarray(u, np.int32), np.asarray(v, np.int32), n)


def kernel_ms(plan):
    """The least time of a plan's launches, and its result."""
    plan.allocate()
    plan.launch()
    plan.reset()
    first = runtime.elapsed_ms(plan.launch, plan.reset)
    times = [runtime.elapsed_ms(plan.launch, plan.reset) for _ in range(REPEATS if first < PATIENT else 0)]
    plan.reset()
    plan.launch()
    found = plan.result()
    plan.free()
    return min([first, *times]), found


def measured(kind, edges):
    """The row of a kind."""
    method, (u, v, n) = METHODS["adaptive"], edges
    u, v = runtime.to_device(u), runtime.to_device(v)
    raw = DeviceGraph.from_edges(u, v, n, order="auto").order
    natural = DeviceGraph.from_edges(u, v, n)
    costs, degree = natural.order_costs, natural.ordered("degree")
    plans = {f"natural {words} ms": method.plan(natural, words=words) for words in (0, *widths(costs))}
    plans["degree ms"] = method.plan(degree)
    times, counts = {}, set()
    for name, plan in plans.items():
        ms, count = kernel_ms(plan)
        times[name] = round(ms, 4)
        counts.add(count)
    if len(counts) > 1:
        raise SystemExit(f"the counts differ on {kind}: {counts}")
    best = {"natural": min(ms for name, ms in times.items() if "natural" in name), "degree": times["degree ms"]}
    for order, given in (("natural", natural), ("degree", degree)):
        if best[order] > HOPELESS * min(best.values()) and order != costs.best_for_tallies():
            continue
        for name, of in zip(TALLIES, (method.tallies["vertices"], method.support_plan)):
            ms, found = kernel_ms(of(given))
            if int(found.sum(dtype=np.int64)) != 3 * count:
                raise SystemExit(f"{name} are wrong on {kind}")
            times[f"{name} by {order} ms"] = round(ms, 4)
    return {
        "kind": kind, "vertices": n, "edges": natural.m, "triangles": count, **times, "order": costs.best(),
        "order of raw edges": raw, "words": costs.best_words(),
        "max_column": costs.max_column, "max_degree": costs.max_degree, "sums": json.dumps(costs.sums),
    }  # fmt: skip


def widths(costs):
    """The WORDS that some column is local by."""
    return [words for words in WORDS if any(costs.sums[f"words {width}"] for width in WORDS if width <= words)]


def costs_of(row):
    """The OrderCosts of a row of the record."""
    return OrderCosts(row["vertices"], row["edges"], row["max_column"], json.loads(row["sums"]))


def chosen_and_best(row):
    """Milliseconds of the chosen count, and of the fastest one."""
    costs = costs_of(row)
    times = {name: row[name] for name in row if name.split()[0] in ("natural", "degree") and row[name] != ""}
    times.pop("degree", None)
    name = "degree ms" if costs.best() == "degree" else f"natural {costs.best_words()} ms"
    return times[name], min(times.values())


def tallies_and_best(row):
    """Milliseconds of `triangles` and `support` in the order chosen for them, and of the fastest count."""
    order = costs_of(row).best_for_tallies()
    return *(row[f"{name} by {order} ms"] for name in TALLIES), chosen_and_best(row)[1]


def fit(rows):
    """Print the nanoseconds of each sum with the least deviation from the recorded times."""
    from tcgpu.kernels import order_costs as module

    cases = {"NATURAL_NS": [], "DEGREE_NS": [], "NATURAL_TALLY_NS": [], "DEGREE_TALLY_NS": []}
    for row in rows:
        costs = costs_of(row)
        times = {words: row.get(f"natural {words} ms", "") for words in (0, *WORDS)}
        known = {words: ms for words, ms in times.items() if ms != ""}
        for words, ms in known.items():
            if ms < 3 * min(known.values()):
                cases["NATURAL_NS"].append((costs.natural_counts(words), ms))
        cases["DEGREE_NS"].append((costs.degree_counts(), row["degree ms"]))
        for order, counts in (("natural", costs.natural_counts(row["words"])), ("degree", costs.degree_counts())):
            tallies = [row.get(f"{name} by {order} ms", "") for name in TALLIES]
            if "" not in tallies:
                cases[f"{order.upper()}_TALLY_NS"].append((counts, sum(tallies) / 2))
    for name, found in cases.items():
        keys = list(getattr(module, name))
        counts = np.array([[count.get(key, 0) for key in keys] for count, _ in found], float)
        times = 1e6 * np.array([ms for _, ms in found])
        before = np.log(np.array([max(getattr(module, name)[key], 1e-9) for key in keys]))

        def off(logarithms):
            return np.sqrt(0.003 + np.log(counts @ np.exp(logarithms) / times) ** 2).sum()  # noqa: B023

        for method in ("Nelder-Mead", "Powell", "Nelder-Mead"):
            before = minimize(off, before, method=method, options={"maxiter": 40_000, "maxfev": 40_000}).x
        print(name, {key: float(f"{value:.3g}") for key, value in zip(keys, np.exp(before))})
        print("   estimated over measured, percentiles 0 5 25 50 75 95 100:",
              np.percentile(counts @ np.exp(before) / times, [0, 5, 25, 50, 75, 95, 100]).round(2))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("measure", "fit"))
    parser.add_argument("--edges", type=float, default=8e6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", metavar="NAME", help="part of a kind's name; may be repeated")
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the record goes")
    arguments = parser.parse_args()
    if arguments.what == "fit":
        return fit(records.reference("orders"))
    chosen = [kind for kind in kinds.KINDS if not arguments.kind or any(part in kind for part in arguments.kind)]
    jobs = [(kind, int(arguments.edges), arguments.seed) for kind in chosen]
    about, rows = {"engine": "gpu", **measurement.machine("gpu")}, records.Rows()
    with multiprocessing.get_context("spawn").Pool(min(12, os.cpu_count())) as pool:
        for kind, edges in pool.imap(draw, jobs):
            row = measured(kind, edges)
            rows.append(row | about)
            taken, best = chosen_and_best(row)
            orders = f"{row['order']} (raw {row['order of raw edges']}, tallies {costs_of(row).best_for_tallies()})"
            tallies = " ".join(f"{name} {ms / best:.1f}x" for name, ms in zip(TALLIES, tallies_and_best(row)))
            mark = "!" if taken > 1.2 * best else " "
            print(f"{kind:32} chosen {taken:8.3f} best {best:8.3f} {mark} {tallies}  {orders}", flush=True)
    names = {name: "" for row in rows for name in row}
    path = Path(arguments.into, records.record_path("orders", rows).name)
    records.Rows(names | row for row in rows).write_csv(path)
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
