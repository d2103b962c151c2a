"""Reading text: tcgpu against `pandas.read_csv(engine="c")` and SciPy's `mmread`, in one run, on the same files.

The files are made for the run, of about `--megabytes` each (larger numbers take more), in a temporary folder, so that
they are read from the system's cache: this times parsing, not a disk. Readers take turns, so that other load of
the machine affects all of them; they have to agree. tcgpu's `edges` are two arrays of vertex numbers, gaps between
them closed; `Graph` goes on to the cleaned, sorted columns. The ratio is the median of the peer, the first reader of
a file, over that of each.

    python benchmarks/parse.py [--megabytes 100] [--threads 2] [--repeats 5] [--output FILE.csv]
"""

import argparse
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.io

import tcgpu
from tcgpu import measurement, records
from tcgpu.engines import native
from tcgpu.formats import FORMATS, format_of

GAP = 10  # how far apart vertex numbers are in the list with gaps
WIDE_GAP = 10**11  # and in the list with numbers of 64 bits


def pandas_edges(path, separator):
    frame = pd.read_csv(path, sep=separator, header=None, engine="c")
    return frame[0].to_numpy(), frame[1].to_numpy()


def scipy_edges(path):
    matrix = scipy.io.mmread(path)
    return matrix.coords


def tcgpu_edges(path):
    return FORMATS[format_of(path)].read_edges(str(path))[:2]


def tcgpu_graph(path):
    return tcgpu.read(path).edges()


def random_edges(megabytes):
    """Edges whose text has about this size; vertex numbers are below a power of two, as in a benchmark's graph."""
    edges = megabytes * 72_000
    n = 1 << (edges // 8).bit_length()
    return np.random.default_rng(0).integers(0, n, (2, edges)), n


def files(folder, megabytes):
    """Make the files; yields (what it is, path, readers by name, the peer first)."""
    (u, v), n = random_edges(megabytes)
    ours = {"tcgpu, edges": tcgpu_edges, "tcgpu, Graph": tcgpu_graph}
    for what, name, separator, factor in (
        ("edge list", "edges.txt", "\t", 1),
        ("edge list, commas", "edges.csv", ",", 1),
        ("edge list, gaps", "gaps.txt", "\t", GAP),
        ("edge list, 64 bits", "wide.txt", "\t", WIDE_GAP),
    ):
        path = folder / name
        pd.DataFrame({"u": u * factor, "v": v * factor}).to_csv(path, sep=separator, header=False, index=False)
        yield what, path, {"pandas": partial(pandas_edges, separator=separator), **ours}
    graph = tcgpu.Graph.from_edges(u, v, n)
    matrix, lists = folder / "graph.mtx", folder / "graph.graph"
    tcgpu.write(graph, matrix)
    yield "Matrix Market", matrix, {"SciPy": scipy_edges, **ours}
    tcgpu.write(graph, lists)
    yield "METIS; SciPy: .mtx", lists, {"SciPy": lambda _: scipy_edges(matrix), "tcgpu, Graph": tcgpu_graph}


def compare(path, readers, repeats):
    """Median seconds of each reader, in turns; every reader finds the same edges each time."""
    seconds = {name: [] for name in readers}
    found = {name: distinct_edges(*read(path)) for name, read in readers.items()}  # compiles, and fills the cache
    if len(set(found.values())) > 1:
        raise SystemExit(f"the readers differ on {path.name}: {found}")
    for _ in range(repeats):
        for name, read in readers.items():
            begin = time.perf_counter()
            read(path)
            seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(runs) for name, runs in seconds.items()}


def distinct_edges(u, v):
    """The number of distinct edges, which all readers must agree on."""
    low, high = np.minimum(u, v)[u != v].astype(np.uint64), np.maximum(u, v)[u != v].astype(np.uint64)
    keys = np.sort(low * np.uint64(0x9E3779B97F4A7C15) + high)
    return 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="size of each edge list")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    arguments = parser.parse_args()
    native.set_threads(arguments.threads)
    machine = measurement.machine("cpu")
    rows = records.Rows()
    print(f"{'file':<22}{'MB':>6}  {'reader':<15}{'s':>8}{'MB/s':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for what, path, readers in files(Path(folder), arguments.megabytes):
            medians = compare(path, readers, arguments.repeats)
            megabytes, peer = path.stat().st_size / 1e6, next(iter(medians.values()))
            for name, seconds in medians.items():
                row = {
                    "file": what,
                    "megabytes": round(megabytes, 1),
                    "reader": name,
                    "seconds": round(seconds, 4),
                    "megabytes_per_s": round(megabytes / seconds),
                    "ratio": round(peer / seconds, 2),
                    "repeats": arguments.repeats,
                }
                print(
                    f"{what:<22}{megabytes:>6.0f}  {name:<15}{seconds:>8.3f}{row['megabytes_per_s']:>8}"
                    f"{row['ratio']:>7.2f}x",
                    flush=True,
                )
                rows.append(row | machine)
    if arguments.output:
        rows.write_csv(arguments.output)
        print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
