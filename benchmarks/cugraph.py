"""Counts and trusses of graphs of 64 kinds beside cuGraph's on the same GPU. It needs pylibcugraph and rmm.

Each row is a graph and a program. Raw edges are on the GPU, in random order; a clean graph is a DeviceGraph, or
cuGraph's SGGraph, which numbers vertices by degree. Times are medians after one call that is not timed:

    raw_ms       from raw edges to the number of triangles
    count_ms     the same from a clean graph. cuGraph's call finds the triangles of each vertex
    vertices_ms  the triangles of each vertex, from a clean graph. tcgpu's are in host memory then, cuGraph's on the GPU
    truss_ms     the 4-truss of a clean graph. tcgpu's is in host memory then, cuGraph's on the GPU
    raw_truss_ms the same from raw edges
    numbers_ms   the truss numbers of all edges, in host memory; cuGraph has none
    failed       what went wrong instead

Counts and numbers of edges must be the same. cuGraph has a process of its own, with a pool of GPU memory, that is ended
after LIMIT_S seconds without an answer.

    python benchmarks/cugraph.py [--edges 3e6] [--seed 1] [--kind NAME ...] [--repeats 5] [--into FOLDER]

Written to cugraph-MACHINE.csv in the folder.
"""

import multiprocessing
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

import cupy
from raw_calls import asked_for

import tcgpu
from tcgpu import DeviceGraph, measurement, records

LIMIT_S, POOL_BYTES = 8, 8 << 30
ENOUGH_S = 1  # of calls of one kind


def median_ms(call, repeats):
    """The result of a call, and the median of its milliseconds."""
    found, times = call(), []
    while len(times) < repeats and sum(times) < 1e3 * ENOUGH_S:
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        found = call()
        cupy.cuda.runtime.deviceSynchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return found, round(statistics.median(times), 4)


def by_tcgpu(u, v, repeats):
    """What tcgpu finds, and its times."""
    graph = DeviceGraph.from_edges(u, v)
    row = {"program": "tcgpu", "version": tcgpu.__version__, "vertices": graph.n, "edges": graph.m}
    row["triangles"], row["count_ms"] = median_ms(lambda: tcgpu.count(graph), repeats)
    raw, row["raw_ms"] = median_ms(lambda: tcgpu.count((u, v)), repeats)
    each, row["vertices_ms"] = median_ms(lambda: tcgpu.triangles(graph), repeats)
    truss, row["truss_ms"] = median_ms(lambda: tcgpu.k_truss(graph, 4), repeats)
    raw_truss, row["raw_truss_ms"] = median_ms(lambda: tcgpu.k_truss((u, v), 4), repeats)
    numbers, row["numbers_ms"] = median_ms(lambda: tcgpu.truss_numbers(graph), repeats)
    row["truss_edges"] = truss.m
    if not row["triangles"] == raw == each.sum() // 3 or not truss.m == raw_truss.m == (numbers >= 4).sum():
        raise SystemExit(f"the results differ: {row}")
    return row


def serve(requests):
    """Answer requests (u, v, repeats), arrays on the host, with cuGraph's times, one by one; None ends."""
    import pylibcugraph
    import rmm

    rmm.reinitialize(pool_allocator=True, initial_pool_size=POOL_BYTES)
    handle = pylibcugraph.ResourceHandle()
    simple = pylibcugraph.GraphProperties(is_symmetric=True, is_multigraph=False)
    cleaned = {"renumber": True, "symmetrize": True, "drop_self_loops": True, "drop_multi_edges": True}
    requests.send("ready")
    while edges := requests.recv():
        u, v, repeats = *map(cupy.asarray, edges[:2]), edges[2]

        def build(u=u, v=v):
            return pylibcugraph.SGGraph(handle, simple, u, v, **cleaned)

        def count(graph):
            return pylibcugraph.triangle_count(handle, graph, None, False)[1]

        def truss(graph):
            return pylibcugraph.k_truss_subgraph(handle, graph, 4, False)[0]

        try:
            graph = build()
            found, ms = median_ms(lambda graph=graph: count(graph), repeats)
            requests.send({"triangles": int(found.sum()) // 3, "count_ms": ms, "vertices_ms": ms})
            requests.send({"raw_ms": median_ms(lambda: count(build()), repeats)[1]})
            found, ms = median_ms(lambda graph=graph: truss(graph), repeats)
            requests.send({"truss_edges": found.size // 2, "truss_ms": ms})
            requests.send({"raw_truss_ms": median_ms(lambda: truss(build()), repeats)[1]})
            requests.send({})
        except RuntimeError as error:
            requests.send({"failed": str(error).splitlines()[0]})


class CuGraph:
    """The process that runs cuGraph, or none yet."""

    process = None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.requests, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        self.requests.recv()

    def measured(self, u, v, repeats):
        """What cuGraph finds, and its times, as far as it comes."""
        if self.process is None:
            self.start()
        row = {"program": "cuGraph", "version": version("pylibcugraph-cu13")}
        self.requests.send((u, v, repeats))
        part = row
        while part and "failed" not in part:
            ready = self.requests.poll(LIMIT_S)
            part = self.requests.recv() if ready else {"failed": f"no answer in {LIMIT_S} s"}
            row |= part
        if part:
            self.process.kill()
            self.process = None
        return row


def main():
    arguments, graphs = asked_for(__doc__.splitlines()[0], [3e6], 5)
    about, rows, other = {"engine": "gpu"} | measurement.machine("gpu"), records.Rows(), CuGraph()
    for kind, asked, (u, v, _) in graphs:
        ours = by_tcgpu(cupy.asarray(u), cupy.asarray(v), arguments.repeats)
        cupy.get_default_memory_pool().free_all_blocks()
        theirs = other.measured(u, v, arguments.repeats)
        for row in (ours, theirs):
            if any(row.get(key, ours[key]) != ours[key] for key in ("triangles", "truss_edges")):
                raise SystemExit(f"the results differ: {ours}, {theirs}")
            graph = {"graph": f"{kind}, {asked:,} edges", "asked": asked, "seed": arguments.seed, "records": u.size}
            rows.append(graph | row | about)
            print(graph["graph"], *(f"{key} {row[key]}" for key in row if key.endswith(("_ms", "failed"))), flush=True)
    path = Path(arguments.into, records.record_path("cugraph", rows).name)
    records.Rows(rows).write_csv(path)
    print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
