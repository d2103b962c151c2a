"""What each idea of `adaptive` is worth: kernel times with and without it, on graphs of many kinds and sizes, on a GPU.

An idea is left out by a knob, or by another answer of the function that chooses it. Where the launches are then still
the same, it has no row. The plans of a graph run by turns, and all have to find as many triangles.

    result        what is counted: "graph", or the triangles of each of its "edges"
    without       the idea that is left out; "" with all of them
    kernel_ms     the kernels, by the device's events, the median of the repeats
    ratio         kernel_ms over that with all ideas: above 1 where the idea pays

    python benchmarks/ablation.py [--kind NAME ...] [--edges 100000 ...] [--repeats 7] [--seconds 540] [--into FOLDER]

Written to ablation-GPU.csv in the folder, with the rows of other kinds and sizes that are there. It stops after
`--seconds`; run again, it goes on behind the last kind and size of the file.
"""

import argparse
import statistics
import sys
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import gpu
import numpy as np
from kinds import KINDS

from tcgpu import measurement, records
from tcgpu.engines import runtime
from tcgpu.kernels.adaptive import layout, merging, support_merges
from tcgpu.kernels.order_costs import OrderCosts

NONE = 2**30
SUPPORT_PLAN = import_module("tcgpu.kernels.adaptive.support_plan")  # the package has a function of this name
SIZES = 1_000_000, 100_000, 300_000, 8_000_000
PLANS = {
    "graph": gpu.ADAPTIVE.plan,
    "edges": gpu.ADAPTIVE.support_plan,
}


def answers(module, name, answer):
    """What has a choice of a module, or the property of a class, answer this."""
    new = property(lambda costs: answer) if isinstance(module, type) else lambda graph: answer
    return patch.object(module, name, new)


OF_CLASSES = {  # what is left out of a plan by classes -> knobs
    "hubs": {"hubs": 0},
    "three quarters of the hubs": {"hubs": 2048},
    "crowd": {"crowd": NONE},
    "near numbers": {"near": 0, "hubs": 0},
}
IDEAS = {  # what is left out of any -> knobs, and choices that are made otherwise
    "local columns": ({"words": 0}, []),
    "classes": ({"merge": 1}, []),
    "merging in degree order": ({"merge": 0}, []),
    "searches": ({"long": NONE}, []),
    "a thread per short column": ({}, [answers(OrderCosts, "short_columns", False)]),
    "filters": ({}, [answers(merging, "has_distant_columns", False)]),
    "leaving out pairs of hubs": ({}, [patch.object(layout, "SIZED_FROM", NONE)]),
    "counters in shared memory": ({}, [answers(support_merges, "has_counters", False)]),
    "tables": ({}, [patch.object(SUPPORT_PLAN, "MANY", NONE)]),
}
SEARCHES_THERE = "searches in the other order"  # its ratio is over that order with all ideas
# The other order, with what then suits: how well the order is chosen
ORDERS = {"natural": "degree", "degree": "natural"}


def without(graph, other, result):
    """Yield (idea, graph, plan) of one result: all ideas first, then each that changes the launches."""
    make = PLANS[result]
    whole = make(graph)
    yield "", whole
    ideas = dict(IDEAS)
    if graph.order == "degree" and launches(make(graph, merge=0)) == launches(whole):
        ideas |= {idea: (knobs | {"merge": 0}, []) for idea, knobs in OF_CLASSES.items() if known(knobs, result)}
    for idea, (knobs, choices) in ideas.items():
        with ExitStack() as stack:
            for choice in choices:
                stack.enter_context(choice)
            changed = make(graph, **knobs)
        if launches(changed) != launches(whole):
            yield idea, changed
    whole, changed = make(other), make(other, **IDEAS["searches"][0])
    yield f"{graph.order} order", whole
    if launches(changed) != launches(whole):
        yield SEARCHES_THERE, changed


def known(knobs, result):
    """Whether the plan of a result has these knobs, and they change something."""
    return result == "graph" or not {"crowd", "near"} & {*knobs}


def launches(made):
    """The launches of a plan."""
    return [*made.setup, *made.steps]


def triangles_of(made, result):
    """How many triangles a plan finds."""
    found = made.count()
    return found if result == "graph" else int(np.sum(found, dtype=np.int64)) // 3


def measured(name, raw, repeats):
    """Yield the rows of one graph."""
    on_device = *map(runtime.to_device_library, raw[:2]), raw[2]
    graph = gpu.ADAPTIVE.prepare(on_device)
    other = gpu.ADAPTIVE.prepare(on_device, ORDERS[graph.order])
    expected = gpu.CHECK.plan(graph).count()
    for result in PLANS:
        plans = dict(without(graph, other, result))
        for idea, made in plans.items():
            if (found := triangles_of(made, result)) != expected:
                raise SystemExit(f"without {idea or 'nothing'}, {found:,} of {expected:,} triangles in {name}")
        runs, times = {idea: made.allocate() for idea, made in plans.items()}, {idea: [] for idea in plans}
        for _ in range(repeats):
            for idea, run in runs.items():
                times[idea].append(runtime.elapsed_ms(run.launch, run.reset))
        for run in runs.values():
            run.free()
        medians = {idea: statistics.median(each) for idea, each in times.items()}
        for idea, ms in medians.items():
            base = f"{graph.order} order" if idea == SEARCHES_THERE else ""
            yield {
                "graph": name,
                "vertices": graph.n,
                "edges": graph.m,
                "triangles": expected,
                "order": graph.order,
                "result": result,
                "without": idea,
                "kernel_ms": round(ms, 4),
                "kernel_ms_spread": round(max(times[idea]) - min(times[idea]), 4),
                "ratio": round(ms / medians[base], 3),
                "launches": len(plans[idea].steps),
                "repeats": repeats,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kind", action="append", choices=KINDS, metavar="NAME", help="a kind of graph; may be repeated"
    )
    parser.add_argument("--edges", action="append", type=int, help="about as many; may be repeated")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    options = parser.parse_args()
    begin, rows = time.monotonic(), records.Rows()
    machine = {"engine": runtime.ENGINE} | measurement.machine(runtime.ENGINE)
    path = Path(options.into or ".", records.record_path("ablation", [machine]).name)
    if options.into and path.exists():
        rows += records.Rows.read_csv(path)
    done = {row["graph"] for row in rows}
    for edges in options.edges or SIZES:
        for kind in options.kind or KINDS:
            name = f"{kind}, {edges:,}"
            if name in done:
                continue
            if time.monotonic() - begin > options.seconds:
                sys.exit(f"stopped before {name}")
            for row in measured(name, KINDS[kind](edges, seed=1), options.repeats):
                print(f"{name:<44}{row['result']:<10}{row['without']:<28}{row['kernel_ms']:10.4f}{row['ratio']:8.3f}",
                      flush=True)  # fmt: skip
                rows.append(row | machine)
            if options.into:
                records.Rows(rows).write_csv(path)


if __name__ == "__main__":
    main()
