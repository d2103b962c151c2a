"""Calls of tcgpu.count with small graphs of 64 kinds on a GPU: with raw edges, and again with a graph that is made.

Each row is a graph, whose edges are in random order:

    raw_ms     from the edges on the GPU: of tcgpu.count((u, v)); the median
    again_ms   of tcgpu.count with a DeviceGraph of these edges that was counted before; the median
    kernel     the first counting kernel that is launched for the raw edges
    kernels_ms of the launches that count them, without those that set up; the fastest

Before it measures, the GPU is kept busy for two seconds: an idle one is slower.

    python benchmarks/raw_calls.py [--edges 1e5 1e6] [--seed 1] [--kind NAME ...] [--repeats 40] [--into FOLDER]

Written to raw-calls-MACHINE.csv in the folder.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

import kinds
import numpy as np
from orders import kernel_ms

import tcgpu
from tcgpu import DeviceGraph, measurement, records
from tcgpu.engines import runtime
from tcgpu.registry import METHODS

BUSY_S = 2


def draw(job):
    """(kind, edges asked for, (u, v, n)) of a job (kind, number of edges, seed); both ends and all edges shuffled."""
    kind, edges, seed = job
    u, v, n = kinds.KINDS[kind](edges, seed)
    order = np.random.default_rng(seed).permutation(len(u))
    return kind, edges, (np.asarray(u, np.int32)[order], np.asarray(v, np.int32)[order], n)


def keep_busy():
    """Let GPU and CPU work for a while: idle ones are slower."""
    runtime.sleep(BUSY_S * 1_000_000)
    end = time.monotonic() + BUSY_S
    while time.monotonic() < end:
        pass
    runtime.synchronize()


def median_ms(call, repeats):
    """The result of a call, and the median of its milliseconds, after some that are not timed."""
    times = []
    for _ in range(5 + repeats):
        runtime.synchronize()
        begin = time.perf_counter()
        found = call()
        times.append(1e3 * (time.perf_counter() - begin))
    return found, round(statistics.median(times[5:]), 4)


def measured(kind, asked, edges, repeats):
    """The row of a graph."""
    u, v = (runtime.to_device(ends) for ends in edges[:2])
    count, raw_ms = median_ms(lambda: tcgpu.count((u, v)), repeats)
    graph = DeviceGraph.from_edges(u, v)
    again, again_ms = median_ms(lambda: tcgpu.count(graph), repeats)
    method = METHODS["adaptive"]
    plan = method.plan(method.prepare((u, v), None))
    kernels_ms, found = kernel_ms(plan)
    if len({count, again, found}) > 1:
        raise SystemExit(f"the counts of {kind} differ: {count}, {again}, {found}")
    kernel = plan.steps[0].kernel.__name__ if plan.steps else ""
    return {
        "graph": f"{kind}, {asked:,} edges", "asked": asked, "vertices": edges[2], "records": u.size,
        "edges": graph.m, "triangles": count, "raw_ms": raw_ms, "again_ms": again_ms, "kernel": kernel,
        "kernels_ms": round(kernels_ms, 4), "repeats": repeats,
    }  # fmt: skip


def asked_for(description, edges, repeats):
    """The arguments of the command line, by default of so many edges and repeats, and the graphs that it asks for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--edges", type=float, nargs="*", default=edges)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", metavar="NAME", help="part of a kind's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the record goes")
    arguments = parser.parse_args()
    chosen = [kind for kind in kinds.KINDS if not arguments.kind or any(part in kind for part in arguments.kind)]
    jobs = [(kind, int(edges), arguments.seed) for edges in arguments.edges for kind in chosen]
    with multiprocessing.get_context("spawn").Pool(min(12, os.cpu_count())) as pool:
        return arguments, pool.map(draw, jobs, chunksize=1)


def main():
    arguments, graphs = asked_for(__doc__.splitlines()[0], [1e5, 1e6], 40)
    about, rows = {"engine": "gpu", **measurement.machine("gpu")}, records.Rows()
    keep_busy()
    for kind, asked, edges in graphs:
        row = measured(kind, asked, edges, arguments.repeats)
        rows.append(row | about)
        print(f"{row['graph']:54} raw {row['raw_ms']:8.3f} again {row['again_ms']:8.3f}  {row['kernel']}", flush=True)
    path = Path(arguments.into, records.record_path("raw-calls", rows).name)
    records.Rows(rows).write_csv(path)
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
