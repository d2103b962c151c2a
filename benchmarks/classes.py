"""What `crowd_kernel` of `adaptive` saves: kernel times with and without it, on one GPU.

It is left out by a knob: `crowd=2**30`. The counts of all settings must agree. (The record also has `short=2**30`,
which left out hash tables for long columns; adaptive has none of these since.)

    python benchmarks/classes.py [--graph NAME ...] [--repeats 5] [--into FOLDER]

Written to classes-GPU.csv in the folder; rows of other graphs that are there stay.
"""

import argparse
import statistics
from pathlib import Path

import gpu
import numpy as np

from tcgpu import generate, measurement, records
from tcgpu.engines import runtime

NONE = 2**30
SETTINGS = {}, {"crowd": 128}, {"crowd": 2048}, {"crowd": NONE}


def chung_lu(n, m, power, seed):
    """Draw `m` edges between vertices of weights 1, 2**-power, 3**-power, ...: `(u, v, n)`."""
    chance = np.random.default_rng(seed)
    ends = np.cumsum(np.arange(1, n + 1) ** -power)
    u, v = (np.searchsorted(ends, ends[-1] * chance.random(m)) for _ in range(2))
    return u, v, n


GRAPHS = {name: gpu.GRAPHS[name] for name in gpu.GRAPHS if "rmat" in name or "graph500" in name} | {
    "R-MAT 21, ef 8, a = .45": lambda: generate.edges("rmat", 21, 8, 0.45, 0.22, 0.22, seed=9),
    "Barabasi-Albert 1M x 16": lambda: generate.edges("barabasi_albert", 1_000_000, 16),
    "Chung-Lu 2M, 32M edges": lambda: chung_lu(2_000_000, 32_000_000, 0.5, seed=4),
    "Chung-Lu 1M, 24M edges": lambda: chung_lu(1_000_000, 24_000_000, 0.7, seed=8),
}


def measured(name, u, v, n, repeats):
    """Yield a row for each setting."""
    graph = gpu.ADAPTIVE.prepare((*map(runtime.to_device_library, (u, v)), n), "degree")
    counts = set()
    for knobs in SETTINGS:
        plan = gpu.ADAPTIVE.plan(graph, **knobs)
        counts.add(plan.count())  # compiles, too
        if len(counts) > 1:
            raise SystemExit(f"{knobs} counts otherwise on {name}: {sorted(counts)}")
        times = gpu.kernel_times(plan, repeats)
        chosen = gpu.ADAPTIVE.knobs | knobs
        yield {
            "graph": name,
            "vertices": graph.n,
            "edges": graph.m,
            "triangles": min(counts),
            "engine": runtime.engine(),
            "crowd": chosen["crowd"],
            "short": chosen["short"],
            "kernel_ms": round(statistics.median(times), 4),
            "kernel_ms_spread": round(max(times) - min(times), 4),
            "repeats": repeats,
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    options = parser.parse_args()
    machine, rows = measurement.machine("gpu"), records.Rows()
    for name, edges in GRAPHS.items():
        if options.graph and not any(part.lower() in name.lower() for part in options.graph):
            continue
        for row in measured(name, *edges(), options.repeats):
            print(f"{name:<26}{row['crowd']:>12}{row['short']:>12}{row['kernel_ms']:10.3f}", flush=True)
            rows.append(row | machine)
    if rows and options.into:
        gpu.keep(Path(options.into, records.record_path("classes", rows).name), rows)


if __name__ == "__main__":
    main()
