"""The speedup of a count on 1, 2 and 4 GPUs of one host, each of which holds the graph; and the time of each part.

Process pools of one worker a GPU count the same graph by `adaptive`, a share for each GPU, and by
`warp_search`, in many slices. A row a graph, method and number of GPUs:

    wall_ms       all of `count(graph, executor=...)`, from the call to the count
    worker_ms     the time of the slowest worker, from its first launch to its result
    kernel_ms     of this the kernels, by the device's events; worker_ms and kernel_ms are empty for slices
    dispatch_ms   as many calls of an empty function as there are parts: the overhead of the pool

A row a graph, method and number of parts, for the simulation of more GPUs than there are: `parts_ms` is a list of the
times of the parts; for shares the kernels alone, for slices from the launch to the result.

    python benchmarks/scaling.py [--graph NAME ...] [--gpus 1,2,4] [--repeats 15] [--seconds 600] [--into FOLDER]

Both methods have to find the same count. After `--seconds`, nothing new is started. Without a GPU, the simulator
counts a small graph in processes of the CPU, to test this script.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import gpu

from tcgpu import formats, generate, measurement, records
from tcgpu.distributed import executors, pool, shared_arrays, shares, slices, worker
from tcgpu.engines import choice, runtime, staging
from tcgpu.engines.choice import ENGINE
from tcgpu.kernels.device_graph import DeviceGraph

GRAPHS = {
    "graph500-scale24-ef16": gpu.GRAPHS["graph500-scale24-ef16"],
    "graph500-scale25-ef16": gpu.GRAPHS["graph500-scale25-ef16"],
}
SMALL = {"rmat5": lambda: generate.edges("rmat", 5, 8)}  # for the simulator
WORKERS = (8, 16, 32, 64, 128, 256, 512, 1024)  # that are simulated
SHARES = "adaptive"
SLICES = "warp_search"
SHOWN = ("method", "gpus", "parts", "wall_ms", "worker_ms", "kernel_ms", "dispatch_ms")


class Deadline:
    """Whether the time is over."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def __bool__(self):
        return time.monotonic() > self.end


def columns(edges, folder):
    """Natural columns of raw edges, and the same by degree, each in a folder of its own that all processes map."""
    u, v, n = edges
    device = DeviceGraph.from_edges(u, v, n)
    for order in ("natural", "degree"):
        formats.write(device.ordered(order).to_graph(), Path(folder, order), "folder")
    staging.end_rings()
    runtime.release_device_memory()
    return [formats.open_folder(Path(folder, order)) for order in ("natural", "degree")]


def pool_of(gpus):
    """A new pool with a process for each of `gpus` GPUs."""
    if ENGINE != "gpu":
        return executors.processes(gpus)
    names = choice.named_gpus() or [str(number) for number in range(choice.visible_gpus())]
    return executors.gpus(names[:gpus])


def counts(graph, executor, method, parts):
    """The result of `count`; for slices, the graph is in degree order already."""
    options = {"engine": "sim"} if ENGINE != "gpu" else {}
    order = {"order": "natural"} if method == SLICES else {}
    return pool.count(graph, executor, method=method, parts=parts, **order, **options)


def times(graph, executor, method, parts, verb="time"):
    """The seconds of each part, in the order of the parts."""
    options = {"engine": "sim"} if ENGINE != "gpu" else {}
    if method == SHARES:
        options |= {"verb": verb, "order": "auto"}
    found = {each.part: each for each in pool.results(graph, executor, parts, method=method, **options)}
    return [found[part].seconds for part in parts if part in found], sum(each.triangles for each in found.values())


def row_of(about, graph, executor, gpus, method, repeats):
    """One row of counts."""
    parts = gpus if method == SHARES else pool.PER_WORKER * gpus
    wall = []
    for _ in range(1 + repeats):
        begin = time.perf_counter()
        triangles = counts(graph, executor, method, parts)
        wall.append((time.perf_counter() - begin) * 1e3)
    row = about | {"method": method, "gpus": gpus, "parts": parts, "triangles": triangles}
    row |= spread("wall_ms", wall[1:]) | spread(
        "dispatch_ms", [dispatch(executor, parts) for _ in range(1 + repeats)][1:]
    )
    if method == SHARES:
        each_share = shares(gpus, graph.m)
        for key, verb in (("worker_ms", "count"), ("kernel_ms", "time")):
            runs = [times(graph, executor, method, each_share, verb)[0] for _ in range(repeats)]
            row |= spread(key, [max(seconds) * 1e3 for seconds in runs])
    return row | {"repeats": repeats}


def dispatch(executor, parts):
    """Milliseconds that a pool takes for parts without any work."""
    begin = time.perf_counter()
    for empty in [executor.submit(worker.engine_here) for _ in range(parts)]:
        empty.result()
    return (time.perf_counter() - begin) * 1e3


def spread(key, ms):
    return {key: round(statistics.median(ms), 4), f"{key}_spread": round(max(ms) - min(ms), 4)}


def parts_row(about, graph, executor, method, parts):
    """One row of part times; all workers of a pool count the parts."""
    seconds, triangles = times(graph, executor, method, parts)
    ms = [round(each * 1e3, 4) for each in seconds]
    return about | {"method": method, "parts": len(parts), "triangles": triangles, "parts_ms": json.dumps(ms)}


def measured(name, edges, started, repeats, over):
    """The rows of one graph, on pools by their number of GPUs."""
    with tempfile.TemporaryDirectory(prefix="scaling-", dir=shared_arrays.MEMORY) as folder:
        natural, by_degree = columns(edges, folder)
        about = {"graph": name, "vertices": natural.n, "edges": natural.m, "engine": runtime.engine()}
        log(f"{name}: {natural.m:,} edges")
        with ThreadPoolExecutor() as starters:  # all processes start, and compile, at the same time
            list(starters.map(lambda item: counts(natural, item[1], SHARES, item[0]), started.items()))
        log("started")
        for method, graph in ((SHARES, natural), (SLICES, by_degree)):
            for gpus, executor in started.items():
                if not over:
                    yield row_of(about, graph, executor, gpus, method, repeats)
            most, executor = max(started.items())
            for workers in (1, *WORKERS):
                if not over:
                    cut = shares(workers, graph.m) if method == SHARES else slices(graph, pool.PER_WORKER * workers)
                    yield parts_row(about, graph, executor, method, cut)


def check(rows):
    """SystemExit if not all rows of a graph have the same count."""
    found = {}
    for row in rows:
        found.setdefault(row["graph"], {})[row["triangles"]] = row
    for graph, by_count in found.items():
        if len(by_count) > 1:
            said = ", ".join(f"{row['method']} in {row['parts']} parts {count:,}" for count, row in by_count.items())
            raise SystemExit(f"the counts of {graph} differ: {said}")


def log(what, begin=time.monotonic()):  # noqa: B008
    print(f"{time.monotonic() - begin:6.1f} s  {what}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    here = [gpus for gpus in (1, 2, 4) if ENGINE != "gpu" or gpus <= choice.visible_gpus()]
    parser.add_argument("--gpus", default=",".join(map(str, here)), help="how many at a time")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=600, help="after so long nothing new is begun")
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    over, rows = Deadline(arguments.seconds), records.Rows()
    graphs = GRAPHS if ENGINE == "gpu" else SMALL
    names = [name for name in graphs if not arguments.graph or any(part in name for part in arguments.graph)]
    with ExitStack() as stack:
        started = {gpus: stack.enter_context(pool_of(gpus)) for gpus in map(int, arguments.gpus.split(","))}
        machine = measurement.machine(ENGINE)
        for name in names:
            for row in measured(name, graphs[name](), started, arguments.repeats, over):
                rows.append(row | machine)
                log(", ".join(f"{key} {row[key]}" for key in SHOWN if key in row))
            check(rows)
            if rows and arguments.into:
                rows.write_csv(Path(arguments.into, records.record_path("scaling", rows).name))


if __name__ == "__main__":
    main()
