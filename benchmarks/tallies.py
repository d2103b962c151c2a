"""The time of `adaptive` for the triangles of each edge and of each vertex, beside its count, on one GPU.

For each of the graphs of gpu.py a row for the count, the edges, the vertices, and the edges by a bitmap method, which
checks them; then a row for each kernel that finds the vertices' triangles: it is all of those that find the edges', and
one more.

    kernel_ms     the kernels, by the device's events; of a single one, when those before it have run
    process_ms    from columns in the right order on the device to the result in host memory
    to_count      kernel_ms over that of the count

    python benchmarks/tallies.py [--graph NAME ...] [--repeats 5] [--into FOLDER]

Written to tallies-GPU.csv in the folder; rows of other graphs that are there stay.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path

import gpu
import numpy as np

from tcgpu import measurement, records, registry
from tcgpu.engines import runtime
from tcgpu.kernels.device_graph import DeviceGraph

MOST_EDGES = 1 << 27  # of more, the results alone would fill a host


def plans(graph):
    """For each result the plan that finds it, not started."""
    return {
        "count": gpu.ADAPTIVE.plan(graph),
        "edges": gpu.ADAPTIVE.support_plan(graph),
        "vertices": registry.triangles_plan(gpu.ADAPTIVE, graph),
        "edges by a bitmap": gpu.CHECK.support_plan(graph),
    }


def measured(name, graph, repeats):
    """The rows of one graph."""
    about = {
        "graph": name,
        "vertices": graph.n,
        "edges": graph.m,
        "engine": runtime.engine(),
        "order": graph.order,
        "repeats": repeats,
    }
    results = {what: plan.count() for what, plan in plans(graph).items()}  # compiles, too
    check(name, graph, results)
    count_ms = None
    for what, plan in plans(graph).items():
        kernel = gpu.kernel_times(plan, repeats)
        process = gpu.by_clock(lambda what=what: plans(graph)[what].count(), repeats)
        count_ms = count_ms or statistics.median(kernel)
        yield about | {
            "triangles": results["count"],
            "what": what,
            "method": plan.method,
            "kernel": "all",
            "kernel_ms": round(statistics.median(kernel), 4),
            "kernel_ms_spread": round(max(kernel) - min(kernel), 4),
            "process_ms": round(statistics.median(process), 4),
            "process_ms_spread": round(max(process) - min(process), 4),
            "to_count": round(statistics.median(kernel) / count_ms, 3),
            "bytes_needed": plan.device_bytes,
        }
    run = plans(graph)["vertices"].allocate()
    for k, step in enumerate(run.plan.steps):
        work, before = partial(step.run, run.arrays), partial(again, run, k)
        kernel = [runtime.elapsed_ms(work, before) for _ in range(repeats)]
        yield about | {
            "what": "part of vertices",
            "kernel": step.kernel.__name__,
            "kernel_ms": round(statistics.median(kernel), 4),
            "kernel_ms_spread": round(max(kernel) - min(kernel), 4),
            "to_count": round(statistics.median(kernel) / count_ms, 3),
        }
    run.free()


def again(run, k):
    """The state before step k."""
    run.reset()
    for step in run.plan.steps[:k]:
        step.run(run.arrays)


def check(name, graph, results):
    """SystemExit unless all results agree."""
    edges, other = results["edges"], results["edges by a bitmap"]
    ends = (runtime.to_host(end) for end in (graph.row_idx, graph.col_of))
    twice = sum(np.bincount(end, edges, graph.n) for end in ends)  # below 2^53 a float64 is exact
    sums = int(edges.sum(dtype=np.int64)), int(results["vertices"].sum())
    if not np.array_equal(edges, other) or not np.array_equal(2 * results["vertices"], twice):
        raise SystemExit(f"on {name} some edges or vertices are not in as many triangles as the other way says")
    if sums != (3 * results["count"],) * 2:
        raise SystemExit(f"on {name} edges and vertices sum up to {sums}, of {results['count']:,} triangles")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    machine, rows = measurement.machine("gpu"), records.Rows()
    for name, edges in gpu.GRAPHS.items():
        if arguments.graph and not any(part.lower() in name.lower() for part in arguments.graph):
            continue
        u, v, n = edges()
        if u.size > MOST_EDGES:
            continue
        graph = DeviceGraph.from_edges(u, v, n, order="auto")
        for row in measured(name, graph, arguments.repeats):
            print(f"{name:<24}{row['what']:<20}{row['kernel']:<20}{row['kernel_ms']:10.3f}{row['to_count']:8.2f}",
                  flush=True)  # fmt: skip
            rows.append(row | machine)
    if rows and arguments.into:
        gpu.keep(Path(arguments.into, records.record_path("tallies", rows).name), rows)


if __name__ == "__main__":
    main()
