"""How long a new process takes to its first count, with caches of compiled code that are empty, and that are filled.

Each row is a new process, from its start to its result, in seconds:

    python_s     from the start of the process to the first line of its program
    edges_s      to raw edges where they are counted: on a GPU CuPy is imported and they are copied; else NumPy
    tcgpu_s      to the end of `import tcgpu`, which imports no module of the package
    count_s      `tcgpu.count((u, v))`: the modules that it needs, compiled code or the compiler, and the count
    answer_s     all of it
    exit_s       from the start of the process to its end

`caches`: whether the folders for compiled code were empty: TCGPU_CACHE, NUMBA_CACHE_DIR, CUPY_CACHE_DIR and CUDA's.

    python benchmarks/first_answer.py [--engine gpu|cpu] [--scale 5 10 20] [--repeats 5] [--into FOLDER]

Written to first-answer-MACHINE.csv in the folder.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from tcgpu import generate, measurement, records
from tcgpu.engines import runtime

CACHES = ("TCGPU_CACHE", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
STEPS = ("python_s", "edges_s", "tcgpu_s", "count_s")

PROGRAM = """
import time
begin = time.monotonic()
import json, sys
folder, engine = sys.argv[1:]
if engine == "gpu":
    import cupy as xp
else:
    import numpy as xp
u, v = (xp.asarray(xp.load(f"{folder}/{end}.npy")) for end in "uv")
if engine == "gpu":
    xp.cuda.Device().synchronize()
edges = time.monotonic()
import tcgpu
imported = time.monotonic()
found = tcgpu.count((u, v), engine=engine)
end = time.monotonic()
print(json.dumps({"triangles": found, "moments": [begin, edges, imported, end]}))
"""


def first_answer(folder, engine, caches):
    """One new process that counts the edges in a folder; its row, all times in seconds."""
    environment = os.environ | {name: os.fspath(caches / name.lower()) for name in CACHES}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    start = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.fspath(folder), engine],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    exit_s = time.monotonic() - start
    said = json.loads(ran.stdout)
    moments = [start, *said["moments"]]
    row = {name: round(after - before, 3) for name, (before, after) in zip(STEPS, pairwise(moments), strict=True)}
    row |= {"answer_s": round(moments[-1] - start, 3), "exit_s": round(exit_s, 3)}
    return {"triangles": said["triangles"]} | row


def measured(engine, scale, repeats):
    """The rows of one engine: one with empty caches, and one for each repeat with the caches that it filled."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, caches = Path(temporary), Path(temporary) / "caches"
        u, v, n = generate.edges("rmat", scale, 16)
        for name, end in (("u", u), ("v", v)):
            np.save(folder / f"{name}.npy", end)
        for number in range(repeats + 1):
            about = {"graph": f"rmat{scale}", "vertices": n, "records": u.size, "engine": engine}
            filled = "filled" if number else "empty"
            yield about | {"caches": filled} | first_answer(folder, engine, caches) | measurement.machine(engine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    best = "gpu" if runtime.ENGINE == "gpu" else "cpu"
    parser.add_argument("--engine", choices=("gpu", "cpu"), default=best)
    parser.add_argument("--scale", type=int, nargs="+", default=[20])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", type=Path, help="folder for the record")
    arguments = parser.parse_args()
    rows = []
    for scale in arguments.scale:
        found = []
        for row in measured(arguments.engine, scale, arguments.repeats):
            shown = ("graph", "caches", *STEPS, "answer_s", "exit_s", "triangles")
            print({name: row[name] for name in shown}, flush=True)
            found.append(row)
        measurement.check_agreement([{"method": f"with {row['caches']} caches", **row} for row in found])
        rows += found
    if arguments.into:
        records.Rows(rows).write_csv(arguments.into / records.record_path("first-answer", rows).name)


if __name__ == "__main__":
    main()
