"""What an estimate of the number of triangles takes beside an exact count, in new processes.

Each row is a way to count a graph that `tcgpu.write` put into a folder, in its natural order; the graph is read before:

    way           "exact", or the error of an estimate; then the order, where it is not the graph's
    empty_s       seconds of the first count of a process, with all that it imports and compiles, where no compiled
                  code is on disk but that of reading
    first_s       the same where all is on disk; the fastest of the repeats
    again_s       of a second count in such a process; the fastest
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
GRAPHS = {
    "R-MAT, 1 million": ("rmat", 16),
    "R-MAT, 8 million": ("rmat", 19),
    "small world, 8 million": ("watts_strogatz", 1 << 18, 64),
    "mesh, 8 million": ("mesh", 1633, 1633),
    "Barabasi-Albert, 8 million": ("barabasi_albert", 1 << 20, 8),
}
WAYS = {
    "exact": {},
    "within 10 %": {"approximate": 0.1},
    "within 1 %": {"approximate": 0.01},
    "within 1 %, degree order": {"approximate": 0.01, "order": "degree"},
}
PROGRAM = """
import json, sys, time
import tcgpu
graph, options = tcgpu.read("graph"), json.loads(sys.argv[1])
begin = time.perf_counter()
found = tcgpu.count(graph, **options)
first = time.perf_counter()
tcgpu.count(graph, **options)
again = time.perf_counter()
times = {"first_s": first - begin, "again_s": again - first}
print(json.dumps({"triangles": found, "samples": getattr(found, "samples", 0)} | times))
"""


def run(options, folder, caches):
    """One new process that counts the graph of a folder twice: what it prints, as a dict."""
    environment = os.environ | {name: os.fspath(caches) for name in CACHES} | {"TCGPU_QUIET": "1"}
    command = [sys.executable, "-c", PROGRAM, json.dumps(options)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(ran.stdout)


def measured(name, graph, repeats):
    """The rows of a graph, one of each way."""
    exact = tcgpu.count(graph)
    for way, options in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            tcgpu.write(graph, Path(folder, "graph"), "folder")
            first, *others = (run(options, folder, Path(folder, "caches")) for _ in range(repeats + 1))
        off = abs(first["triangles"] / exact - 1)
        if off > 3 * options.get("approximate", 0):
            raise SystemExit(f"on {name} {way} is {first['triangles']:,}, of {exact:,} triangles")
        row = {"graph": name, "vertices": graph.n, "edges": graph.m, "engine": "cpu", "way": way} | first
        times = {time: min(one[time] for one in others) for time in ("first_s", "again_s")}
        yield row | {"off": off, "empty_s": first["first_s"]} | times


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
