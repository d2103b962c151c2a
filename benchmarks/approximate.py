"""What an estimate of the number of triangles takes beside an exact count, in new processes.

Each row is a way to count a graph that `tcgpu.write` put into a folder, in its natural order:

    way           "exact", or the relative error of an estimate; then the order, where it is not the graph's
    caches        whether compiled code was on disk: "filled" or "empty"
    read_s        seconds to read the graph, which compiles the check of a large one
    first_s       of the first count after that, with all that it imports and compiles
    again_s       of a second one; each of these is of the fastest of the repeats where caches are filled
    samples       how many wedges were drawn; 0 of an exact count
    off           by which share of the exact number the estimate is off

    python benchmarks/approximate.py [--graph NAME ...] [--repeats 3] [--into FOLDER]

Written to approximate-MACHINE.csv in the folder.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import tcgpu
from tcgpu import measurement, records

CACHES = ("TCGPU_CACHE", "NUMBA_CACHE_DIR")
TIMES = ("read_s", "first_s", "again_s")
GRAPHS = {
    "R-MAT, 1 million": ("rmat", 16),
    "R-MAT, 8 million": ("rmat", 19),
    "small world, 8 million": ("watts_strogatz", 1 << 18, 64),
    "mesh, 8 million": ("mesh", 1633, 1633),
    "Barabasi-Albert, 8 million": ("barabasi_albert", 1 << 20, 8),
}
WAYS = {
    "exact": {},
    ".1": {"approximate": 0.1},
    ".01": {"approximate": 0.01},
    ".01, degree order": {"approximate": 0.01, "order": "degree"},
}
PROGRAM = """
import json, sys, time
import tcgpu
begin = time.perf_counter()
graph, options = tcgpu.read("graph"), json.loads(sys.argv[1])
read = time.perf_counter()
found = tcgpu.count(graph, **options)
first = time.perf_counter()
tcgpu.count(graph, **options)
again = time.perf_counter()
times = {"read_s": read - begin, "first_s": first - read, "again_s": again - first}
print(json.dumps({"triangles": found, "samples": getattr(found, "samples", 0)} | times))
"""


def run(options, folder, caches):
    """One new process that counts the graph of a folder twice: what it prints, as a dict."""
    environment = os.environ | {name: os.fspath(caches) for name in CACHES} | {"TCGPU_QUIET": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(options)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(ran.stdout)


def measured(name, graph, repeats):
    """The rows of a graph: of each way, one with empty caches and one with those that it filled."""
    exact = tcgpu.count(graph)
    for way, options in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            tcgpu.write(graph, Path(folder, "graph"), "folder")
            runs = [run(options, folder, Path(folder, "caches")) for _ in range(repeats + 1)]
        for caches, found in {"empty": runs[:1], "filled": runs[1:]}.items():
            row = {"graph": name, "vertices": graph.n, "edges": graph.m, "engine": "cpu", "way": way, "caches": caches}
            row |= found[0] | {"off": abs(found[0]["triangles"] / exact - 1) if exact else 0.0}
            if row["off"] > 3 * options.get("approximate", 0):
                raise SystemExit(f"on {name} {way} is {row['triangles']:,}, of {exact:,} triangles")
            yield row | {time: min(one[time] for one in found) for time in TIMES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--into", type=Path, help="folder for the record")
    arguments = parser.parse_args()
    machine, rows = measurement.machine("cpu"), []
    for name, (generator, *sizes) in GRAPHS.items():
        if arguments.graph and not any(part in name for part in arguments.graph):
            continue
        for row in measured(name, tcgpu.generate.GENERATORS[generator](*sizes, seed=1), arguments.repeats):
            row = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
            print(*(f"{key} {row[key]}" for key in row if key not in ("vertices", "engine")), flush=True)
            rows.append(row | machine)
    if arguments.into:
        records.Rows(rows).write_csv(arguments.into / records.record_path("approximate", rows).name)


if __name__ == "__main__":
    main()
