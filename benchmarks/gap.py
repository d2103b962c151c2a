"""The synthetic graphs of the GAP benchmark suite, as published, on one GPU and on the CPU. A row a graph and scale.

    device_total_ms, kernel_ms, peak_bytes      as in `large.py`: from raw edges that are on the device
    kept_ms                     device_total_ms where memory of an earlier count is kept: the driver gives none
    divided_ms                  from raw edges that lie in parts on all visible GPUs, `gpus`, to their count together
    graph_ms                    from clean columns in natural order on the device to the count: by the suite's rules,
                                what is made of a graph for a count is part of it
    total_ms                    from two arrays of raw edges in host memory to the count
    draw_s                      to draw these on the CPU; then their vertices are permuted, as the suite does
    cpu_graph_s, cpu_total_s    as graph_ms and total_ms, on the CPU, of one run
    published                   the triangles that others count; at other scales than theirs nothing

    python benchmarks/gap.py [--scales 27] [--repeats 3] [--gpu] [--into FOLDER]

At scale 27 this takes about 5 minutes with 16 cores, 128 GB of memory, and 80 GB on the GPU.
"""

import statistics
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import divided
import gpu
import large
import numpy as np
from threads import best

import tcgpu
from tcgpu import measurement, records
from tcgpu.distributed import executors
from tcgpu.engines import runtime
from tcgpu.kernels.device_graph import DeviceGraph

PUBLISHED = {("gap_kron", 27): 106_873_365_648, ("gap_urand", 27): 5_378}


def on_device(edges, rank=None):
    """The raw edges `(u, v, n)` on the device; vertex v gets the number `rank[v]`."""
    u, v = map(runtime.to_device_library, edges[:2])
    return (u, v, edges[2]) if rank is None else (rank[u], rank[v], edges[2])


def counted(graph):
    """The triangles of what `adaptive` prepares."""
    return large.ADAPTIVE.plan(large.ADAPTIVE.prepare(graph)).count()


def by_clock(work, repeats, found):
    """The median milliseconds of `work`; its counts go into `found`."""
    return round(statistics.median(gpu.by_clock(lambda: found.add(work()), repeats)), 2)


def by_one(edges, repeats, found):
    """What one GPU takes that holds the raw edges, or clean columns; its counts go into `found`."""
    raw = on_device(edges)
    kept_ms = by_clock(lambda: counted(raw), repeats, found)
    natural = DeviceGraph.from_edges(*raw)
    return {"kept_ms": kept_ms, "graph_ms": by_clock(lambda: counted(replace(natural)), repeats, found)}


def by_all(edges, repeats, found):
    """What all GPUs together take; their counts go into `found`."""
    gpus, parts = runtime.visible_gpus(), []
    for number, cuts in enumerate(pairwise(edges[0].size * k // gpus for k in range(gpus + 1))):
        runtime.use_gpu(number)
        runtime.release_device_memory()
        parts.append([runtime.to_device_library(ends[slice(*cuts)]) for ends in edges[:2]])
        runtime.synchronize()
    runtime.use_gpu(0)
    with executors.workers_of("gpus") as workers:
        runs = [divided.on_all((*map(list, zip(*parts, strict=True)), edges[2]), workers) for _ in range(repeats)]
    found.update(run[0] for run in runs)
    return {"gpus": gpus, "divided_ms": divided.median(runs)}


def by_cpu(edges, found):
    """What the CPU takes; its counts go into `found`."""
    clean, times = tcgpu.Graph.from_edges(*edges), {}
    again = tcgpu.Graph(clean.col_ptr, clean.row_idx, validate=False)  # without what `clean` remembers
    for key, graph in {"cpu_graph_s": again, "cpu_total_s": edges}.items():
        count, times[key] = best(lambda graph=graph: tcgpu.count(graph, engine="cpu"), 1)
        found.add(count)
    return times


def measured(name, scale, repeats, cpu=True):
    """The row of a graph; without those of the CPU, if it is not to count."""
    edges, draw_s = best(lambda: tcgpu.generate.edges(name, scale), 1)
    rank = np.random.default_rng(0).permutation(edges[2]).astype(np.int32)
    edges = *map(runtime.to_host, on_device(edges, runtime.to_device_library(rank))[:2]), edges[2]
    row = large.of_edges(f"{name} {scale}", lambda: on_device(edges), repeats, scale <= large.CHECKED)
    found, published = {row["triangles"]}, PUBLISHED.get((name, scale), "")
    row["total_ms"] = by_clock(lambda: counted(edges), repeats, found)
    row |= by_one(edges, repeats, found)
    row |= by_all(edges, repeats, found) if runtime.visible_gpus() > 1 and runtime.nccl() else {}
    row |= by_cpu(edges, found) if cpu else {}
    if len(found | {published} - {""}) > 1:
        raise SystemExit(f"the counts of {row['graph']} differ: {found}, published {published}")
    return row | {"draw_s": draw_s, "published": published}


def main():
    arguments = large.options(__doc__.splitlines()[0], [27], gpu="the CPU counts nothing")
    if runtime.engine() != "gpu":
        sys.exit("graphs of this size need a GPU")
    about, rows = measurement.machine("gpu"), records.Rows()
    shown = ("graph", "triangles", "published", "device_total_ms", "kept_ms", "kernel_ms", "graph_ms", "total_ms")
    for name in ("gap_kron", "gap_urand"):
        measured(name, large.FIRST, 1)  # compiles
        for scale in arguments.scales:
            rows.append(measured(name, scale, arguments.repeats, not arguments.gpu) | about)
            cpu = (f"{key} {rows[-1].get(key)}" for key in ("draw_s", "divided_ms", "cpu_graph_s", "cpu_total_s"))
            print(*(rows[-1][key] for key in shown), *cpu, flush=True)
            rows.write_csv(Path(arguments.into, records.record_path("gap", rows).name))


if __name__ == "__main__":
    main()
