"""The time of cliques, of cycles of 4 vertices and of motifs on one GPU, beside a count of triangles.

For each graph a row for its triangles, a row for its cliques of each size, one for its cycles of 4 vertices, joined
across or not, and one for its motifs. Each is checked by the native engine.

    kernel_ms     the kernels, by the device's events; of motifs there is none, as the host works in between
    process_ms    from columns in degree order on the device to the number; of motifs, from columns on the host
    native_ms     the native engine, the faster of two runs, from columns in degree order on the host
    to_count      kernel_ms over that of the triangles

    python benchmarks/motifs.py [--graph NAME ...] [--repeats 5] [--into FOLDER]

It takes less than 4 minutes. Written to motifs-GPU.csv in the folder; rows of other graphs that are there stay.
"""

import argparse
import statistics
import time
from functools import partial
from pathlib import Path

import gpu

import tcgpu
from tcgpu import DeviceGraph, Graph, measurement, records
from tcgpu.engines import runtime
from tcgpu.subgraphs import cliques, cycles
from tcgpu.subgraphs.four_at_edges import count_cycles

GRAPHS = {  # name -> raw edges, and the sizes of cliques; larger ones take a minute or more, or are many billions
    "rmat18": (lambda: gpu.generate.edges("rmat", 18, permuted=False), (4, 5)),
    "rmat20": (lambda: gpu.generate.edges("rmat", 20, permuted=False), (4,)),
    "cliques of up to 24": (lambda: gpu.cliques(count=20_000, largest=24), (4, 5, 6, 7, 8)),
    "cliques of up to 400": (gpu.cliques, (4,)),
    "mesh 2048 x 2048": (lambda: gpu.generate.edges("mesh", 2048, 2048), (4,)),
}


def plans(graph, sizes):
    """What to count -> the function that plans it, for a graph in degree order."""
    of_cliques = {f"cliques of {k}": partial(cliques.plan, graph, k) for k in sizes}
    return {"triangles": partial(gpu.ADAPTIVE.plan, graph), **of_cliques, "cycles of 4": partial(cycles.plan, graph)}


def natively(what, graph):
    """The number that the native engine finds, or all of its motifs."""
    if what == "motifs":
        return tcgpu.motifs(graph, engine="cpu")
    return count_cycles(graph) if what == "cycles of 4" else tcgpu.cliques(graph, size_of(what), engine="cpu")


def size_of(what):
    return 3 if what == "triangles" else int(what.removeprefix("cliques of "))


def measured(name, edges, sizes, repeats):
    """The rows of one graph. edges: (u, v, number of vertices)."""
    graph = DeviceGraph.from_edges(*edges, order="degree")
    given = Graph.from_edges(*edges)
    given.ordered("degree")  # made once, before a time is taken
    about = {"graph": name, "vertices": graph.n, "edges": graph.m, "longest_column": graph.max_column}
    about |= {"engine": runtime.engine(), "repeats": repeats}
    count_ms = None
    for what, make in plans(graph, sizes).items():
        found = make().count()  # compiles, too
        plan = make()
        kernel = gpu.kernel_times(plan, repeats)
        count_ms = count_ms or statistics.median(kernel)
        yield (
            about
            | row(what, found, given, partial(lambda make: make().count(), make), repeats)
            | {
                "kernel_ms": round(statistics.median(kernel), 4),
                "kernel_ms_spread": round(max(kernel) - min(kernel), 4),
                "to_count": round(statistics.median(kernel) / count_ms, 3),
                "launches": len(plan.steps),
                "bytes_needed": plan.device_bytes,
            }
        )
    of_motifs = partial(tcgpu.motifs, given, engine=runtime.engine())
    yield about | row("motifs", of_motifs(), given, of_motifs, repeats)


def row(what, found, graph, work, repeats):
    """What every row has; SystemExit unless the native engine finds the same."""
    native = []
    for _ in range(2):  # the first may compile
        begin = time.perf_counter()
        expected = natively(what, graph)
        native.append((time.perf_counter() - begin) * 1e3)
    check(f"{what} of a graph of {graph.m:,} edges", found, expected)
    process = gpu.by_clock(work, repeats)
    return {
        "what": what,
        "found": found if isinstance(found, int) else sum(found.values()),
        "process_ms": round(statistics.median(process), 4),
        "process_ms_spread": round(max(process) - min(process), 4),
        "native_ms": round(min(native), 4),
    }


def check(what, found, expected):
    if found != expected:
        raise SystemExit(f"{what}: kernels find {found}, the native engine {expected}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    machine, rows = measurement.machine("gpu"), records.Rows()
    tcgpu.motifs(tcgpu.generate.rmat(15))  # compiles what the native engine takes, but not for a small graph
    for name, (edges, sizes) in GRAPHS.items():
        if arguments.graph and not any(part.lower() in name.lower() for part in arguments.graph):
            continue
        for found in measured(name, edges(), sizes, arguments.repeats):
            print(f"{name:<24}{found['what']:<16}{found['found']:>22,}{found.get('kernel_ms', 0):12.3f}"
                  f"{found['process_ms']:12.3f}{found['native_ms']:12.1f}{found.get('to_count', 0):8.2f}",
                  flush=True)  # fmt: skip
            rows.append(found | machine)
    if rows and arguments.into:
        gpu.keep(Path(arguments.into, records.record_path("motifs", rows).name), rows)


if __name__ == "__main__":
    main()
