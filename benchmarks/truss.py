"""k-trusses and truss numbers by the native engine against NetworkX and igraph's C library, in one run.

Each starts from a graph that it has built already, and none keeps anything from one run to the next. The ratio is a
peer's median over tcgpu's, of runs taken in turns, so that other load of the machine affects both; a slow run is
not repeated. Every result is checked, edge by edge.

    python benchmarks/truss.py [--graph NAME ...] [--peer NAME ...] [--threads 2] [--repeats 5] [--output FILE.csv]

NetworkX finds one truss at a time, igraph all numbers at once: each is timed for that. igraph's C library is called
by a small program, `igraph_trussness.c`, compiled on the spot: Debian has the library as libigraph-dev. Without it, or
without a compiler, it is left out, with the reason.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import tcgpu
from tcgpu import measurement, records
from tcgpu.engines import native

GRAPHS = {
    "R-MAT scale 16, ef 16": ("rmat", {"scale": 16, "edge_factor": 16}),
    "co-papers-like, 20k, degree 60": ("copapers", {"n": 20_000, "mean_degree": 60}),
    "Barabasi-Albert, 50k x 8": ("barabasi_albert", {"n": 50_000, "k": 8}),
    "Delaunay, 2^16 random points": ("delaunay", {"n": 1 << 16, "numbering": "random"}),
}
PEERS = ("NetworkX", "igraph")
K = 3
SLOW = 5  # seconds for a run from which on a peer is not made to repeat it; tcgpu's first run may compile


def fresh(graph):
    """A copy of the Graph without cached results."""
    return tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False)


def our_truss(graph):
    """Seconds, and the edges of the truss as sorted keys."""
    graph = fresh(graph)
    begin = time.perf_counter()
    truss = tcgpu.k_truss(graph, K, engine="cpu")
    seconds = time.perf_counter() - begin
    labels = np.arange(truss.n) if truss.labels is None else truss.labels
    return seconds, keys(*(labels[ends] for ends in truss.edges()))


def our_numbers(graph):
    """Seconds, and the truss number of every edge."""
    graph = fresh(graph)
    begin = time.perf_counter()
    found = tcgpu.truss_numbers(graph, engine="cpu")
    return time.perf_counter() - begin, found


def networkx_truss(plain):
    """As `our_truss`, of a NetworkX graph."""
    import networkx

    begin = time.perf_counter()
    truss = networkx.k_truss(plain, K, backend="networkx")
    seconds = time.perf_counter() - begin
    return seconds, keys(*np.array(truss.edges, np.int64).reshape(-1, 2).T)


def keys(u, v):
    """Each edge as one number, sorted: independent of the order and direction of edges."""
    return np.sort(np.minimum(u, v).astype(np.int64) << 32 | np.maximum(u, v))


def compiled(folder):
    """The program that calls igraph's C library; RuntimeError with the reason if there is none."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("there is no C compiler")
    flags = ["-I/usr/include/igraph", "-ligraph"]
    if shutil.which("pkg-config"):
        pkg_config = subprocess.run(["pkg-config", "--cflags", "--libs", "igraph"], capture_output=True, text=True)
        flags = pkg_config.stdout.split() if pkg_config.returncode == 0 else flags
    source, program = Path(__file__).with_name("igraph_trussness.c"), Path(folder, "igraph_trussness")
    done = subprocess.run([compiler, "-O3", source, "-o", program, *flags], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("igraph's C library is not here (libigraph-dev)")
    return program


def igraph_numbers(program, edges):
    """As `our_numbers`, by the program, from a file of edges."""
    found = edges.with_name("found")
    return float(said_by(program, edges, found)), np.fromfile(found, np.int32)


def said_by(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def write_edges(graph, path):
    rows, cols = graph.edges()
    numbers = np.concatenate([[graph.n], np.stack([cols, rows], axis=1).ravel()]).astype(np.int32)
    numbers.tofile(path)
    return path


def in_turns(runs, repeats):
    """The seconds of each of `runs` (name -> call), as lists; SystemExit if any two results differ."""
    taken = {name: [] for name in runs}
    results = {}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            if turn and name != "tcgpu" and taken[name][0] > SLOW:  # once will do: warming up takes little beside it
                continue
            seconds, results[name] = run()
            if turn == 1:
                taken[name].clear()  # that was to warm up
            taken[name].append(seconds)
            if not np.array_equal(results[name], next(iter(results.values()))):
                raise SystemExit(f"{name} does not find what {next(iter(results))} does")
    return taken


def rows_of(name, task, edges, taken, versions):
    """A row for each library of one task on one graph."""
    medians = {library: statistics.median(seconds) for library, seconds in taken.items()}
    for library, median in medians.items():
        yield {
            "task": f"{task} of {name}",
            "edges": edges,
            "library": library,
            "version": versions[library],
            "seconds": round(median, 5),
            "ratio": round(median / medians["tcgpu"], 2),
            "fastest": round(min(taken[library]), 5),
            "slowest": round(max(taken[library]), 5),
            "repeats": len(taken[library]),
            "load": round(os.getloadavg()[0], 2),
        }


def compare(name, graph, program, folder, repeats, peers=PEERS):
    """Rows of one graph: one truss, then all numbers. program: as `compiled` makes it, or None."""
    versions, runs = {"tcgpu": tcgpu.__version__}, {"tcgpu": partial(our_truss, graph)}
    if "NetworkX" in peers:
        import networkx

        versions["NetworkX"] = networkx.__version__
        runs["NetworkX"] = partial(networkx_truss, graph.to_networkx())
    yield from rows_of(name, f"{K}-truss", graph.m, in_turns(runs, repeats), versions)
    runs = {"tcgpu": partial(our_numbers, graph)}
    if program:
        runs["igraph"] = partial(igraph_numbers, program, write_edges(graph, Path(folder, "edges")))
        versions["igraph"] = said_by(program)
    yield from rows_of(name, "truss numbers", graph.m, in_turns(runs, repeats), versions)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--peer", action="append", metavar="NAME", help="a peer's name, or none; may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    arguments = parser.parse_args()
    native.set_threads(arguments.threads)
    machine = measurement.machine("cpu")
    rows, program, peers = records.Rows(), None, arguments.peer or PEERS
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compiled(folder) if "igraph" in peers else None
        except RuntimeError as reason:
            print(f"igraph is left out: {reason}")
        print(f"{'task':<54}{'library':<10}{'seconds':>9}{'ratio':>9}")
        for name, (generator, size) in GRAPHS.items():
            if arguments.graph and not any(part.lower() in name.lower() for part in arguments.graph):
                continue
            graph = tcgpu.generate.GENERATORS[generator](**size)
            for row in compare(name, graph, program, folder, arguments.repeats, peers):
                print(f"{row['task']:<54}{row['library']:<10}{row['seconds']:>9.4f}{row['ratio']:>8.1f}x", flush=True)
                rows.append(row | machine)
    if arguments.output:
        rows.write_csv(arguments.output)
        print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
