"""What an estimate of the number of triangles takes beside an exact count, in new processes.

Each row is a way to count a graph that `tcgpu.write` put into a folder, in its natural order:

    way           "exact", or the relative error of an estimate; then the order, where it is not the graph's
    caches        whether compiled code was on disk: "filled" or "empty"
    first_s       seconds of the first count of a process, with all that it imports and compiles; the median of the
                  repeats where caches are filled
    again_s       of a second one of the same graph
    samples       how many wedges were drawn; 0 of an exact count
    off           by which share of the exact number the estimate is off
    compiler      whether Numba was imported: "imported" or "not imported"

    python benchmarks/approximate.py [--graph NAME ...] [--repeats 3] [--into FOLDER]

Written to approximate-MACHINE.csv in the folder.
"""

import argparse
import json
import os
import statistics
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
    "small world, 1 million": ("watts_strogatz", 1 << 15, 64),
    "small world, 8 million": ("watts_strogatz", 1 << 18, 64),
    "mesh, 1 million": ("mesh", 578, 578),
    "mesh, 8 million": ("mesh", 1633, 1633),
    "Barabasi-Albert, 1 million": ("barabasi_albert", 1 << 17, 8),
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
import numpy as np
import tcgpu
graph, options, moments = tcgpu.read("graph"), json.loads(sys.argv[1]), [time.perf_counter()]
for _ in range(2):
    found = tcgpu.count(graph, **options)
    moments.append(time.perf_counter())
first, again = np.diff(moments).tolist()
compiler = "imported" if "numba" in sys.modules else "not imported"
samples = getattr(found, "samples", 0)
print(json.dumps({"triangles": found, "first_s": first, "again_s": again, "samples": samples, "compiler": compiler}))
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
            times = {time: statistics.median(one[time] for one in found) for time in ("first_s", "again_s")}
            yield row | times


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
