"""The native engine with all threads and with one, beside public programs of the same number of threads.

A row a graph and program, all times in seconds, each the best of some runs, more of short ones:

    raw_s     from two arrays of raw edges to the count
    graph_s   from a clean graph of which nothing is known, with what the program does to it before it counts
    count_s   the counting alone; of tcgpu, of a graph that was counted before

A public program is called with OMP_NUM_THREADS set, an option `--reps=RUNS`, and the path of a file of raw edges: the
number of vertices and that of edges, int64, and then the two ends of each edge, int32. It prints a line of JSON with
`triangles`, `raw_s`, `count_s`, and the seconds between a clean graph and the counting as `preprocess_s` or
`relabel_s`.

    python benchmarks/threads.py [--graph NAME ...] [--program NAME=COMMAND ...] [--threads 16] [--repeats 5]
                                 [--into FOLDER]

Written to threads-MACHINE.csv in the folder, after each graph.
"""

import argparse
import json
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import gpu
import numpy as np

import tcgpu
from tcgpu import measurement, records
from tcgpu.engines import native

GRAPHS = dict(list(gpu.GRAPHS.items())[:5])
GRAPHS["gap_kron 23"] = lambda: gap_kron(23)
SLOW = 1.5  # seconds from raw edges from which on a program runs once
ENOUGH = 0.5  # seconds; short runs are repeated more often, until they have taken as long
SHOWN = ("graph", "program", "threads", "raw_s", "graph_s", "count_s")


def gap_kron(scale):
    """The raw edges of GAP-kron, its vertices permuted, as its suite does."""
    u, v, n = tcgpu.generate.edges("gap_kron", scale)
    rank = np.random.default_rng(0).permutation(n).astype(np.int32)
    return rank[u], rank[v], n


def best(call, repeats):
    """What a call returns, and the least seconds of some calls."""
    seconds = []
    while len(seconds) < repeats or repeats > 1 and sum(seconds) < ENOUGH:
        begin = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - begin)
    return result, round(min(seconds), 5)


def by_tcgpu(edges, threads, repeats):
    """The count of raw edges `(u, v, n)` and the times of the native engine, after a run to warm up."""
    native.set_threads(threads)
    try:
        graph = tcgpu.Graph.from_edges(*edges)
        for _ in range(2):
            tcgpu.count(graph, engine="cpu")  # from the second call on, it is counted in the best order
        calls = {
            "count_s": lambda: tcgpu.count(graph, engine="cpu"),
            "graph_s": lambda: tcgpu.count(tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False), engine="cpu"),
            "raw_s": lambda: tcgpu.count(edges, engine="cpu"),
        }
        results = {key: best(call, repeats) for key, call in calls.items()}
    finally:
        native.set_threads(None)
    (triangles,) = {found for found, _ in results.values()}
    return triangles, {key: seconds for key, (_, seconds) in reversed(results.items())}


def by_program(command, path, threads, repeats):
    """The count and the times of a public program."""

    def run(repeats):
        ran = subprocess.run(
            [*shlex.split(command), f"--reps={repeats}", os.fspath(path)],
            env=os.environ | {"OMP_NUM_THREADS": str(threads)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(ran.stdout)

    said = run(1)
    if said["raw_s"] < SLOW and repeats > 1:
        said = run(max(repeats, int(ENOUGH / said["raw_s"])))
    before = said.get("preprocess_s", said.get("relabel_s", 0))
    times = {"raw_s": said["raw_s"], "graph_s": said["count_s"] + before, "count_s": said["count_s"]}
    return said["triangles"], {key: round(seconds, 5) for key, seconds in times.items()}


def measured(name, edges, programs, threads, repeats):
    """The rows of one graph. programs: the commands of public programs by their names."""
    u, v, n = edges
    found = {"tcgpu": (threads, *by_tcgpu(edges, threads, repeats)), "tcgpu, 1 thread": (1, *by_tcgpu(edges, 1, 1))}
    if programs:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            np.array([n, u.size], np.int64).tofile(file)
            np.stack((u, v), axis=1).astype(np.int32).tofile(file)
            file.flush()
            for program, command in programs.items():
                found[program] = (threads, *by_program(command, file.name, threads, repeats))
    if len({triangles for _, triangles, _ in found.values()}) > 1:
        raise SystemExit(
            f"the counts differ on {name}: " + ", ".join(f"{key} {row[1]:,}" for key, row in found.items())
        )
    facts = {"graph": name, "vertices": n, "records": u.size, "edges": tcgpu.Graph.from_edges(*edges).m}
    machine = measurement.machine("cpu")
    for program, (used, triangles, times) in found.items():
        row = facts | {"triangles": triangles, "program": program, "threads": used} | times | {"engine": "cpu"}
        yield row | {key: value for key, value in machine.items() if key not in row}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", choices=GRAPHS, action="append", help="may be repeated")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=COMMAND", help="may be repeated")
    parser.add_argument("--threads", type=int, default=native.threads())
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", type=Path, help="folder for the record")
    arguments = parser.parse_args()
    programs = dict(program.split("=", 1) for program in arguments.program)
    rows = records.Table([], *SHOWN)
    for name in arguments.graph or GRAPHS:
        found = records.Table(measured(name, GRAPHS[name](), programs, arguments.threads, arguments.repeats), *SHOWN)
        print(found, flush=True)
        rows += found
        if arguments.into:
            rows.write_csv(arguments.into / records.record_path("threads", rows).name)


if __name__ == "__main__":
    main()
