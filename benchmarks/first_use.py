"""What the first call of a new process takes: NetworkX's functions with the backend on, and each verb.

    python benchmarks/first_use.py [--engine cpu|gpu] [--task NAME ...] [--repeats 5] [--into FOLDER]

Each row is a call in a new process:

    task         a function of NetworkX ("nx.triangles"), or a verb of tcgpu
    graph        "small", of 300 vertices and 1,500 edges; or "rmat14", for which code is compiled; for a GPU "rmat18",
                 whose edges the GPU cleans
    caches       whether compiled code was on disk: "filled" or "empty"
    seconds      of the call, with all that it imports and compiles; the median of the repeats where caches are filled
    processor_s  the processor time of that
    networkx_s   seconds of NetworkX's own code, in a new process, too
    ratio        seconds / networkx_s
    compiler     whether Numba was imported: "imported" or "not imported"
    says         what it wrote to stderr

Written to first-use-MACHINE.csv in the folder, after each task.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tcgpu import measurement, records

CACHES = ("TCGPU_CACHE", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
FUNCTIONS = ("triangles", "clustering", "transitivity", "generalized_degree", "all_triangles", "square_clustering",
             "triadic_census")  # fmt: skip
VERBS = {
    "count": "tcgpu.count(graph)",
    "triangles": "tcgpu.triangles(graph)",
    "support": "tcgpu.support(graph)",
    "clustering": "tcgpu.clustering(graph)",
    "list_triangles": "list(tcgpu.list_triangles(graph))",
    "truss_numbers": "tcgpu.truss_numbers(graph)",
    "k_truss": "tcgpu.k_truss(graph, 4)",
    "cliques": "tcgpu.cliques(graph, 4)",
    "motifs": "tcgpu.motifs(graph)",
    "reduce_triangles": "tcgpu.reduce_triangles(graph, lambda u, v, w: 1)",
    "read": "tcgpu.read(path)",
}
ON_CPU = "reduce_triangles", "read"  # also where there is a GPU
OF_NETWORKX = """
import networkx as nx
nx.config.warnings_to_ignore.add("cache")
graph = nx.gnm_random_graph(300, 1500, seed=1)
if "{name}" == "triadic_census":
    graph = nx.DiGraph(list(graph.edges))
if {on}:
    nx.config.backend_priority.algos = ["tcgpu"]
def call():
    found = nx.{name}(graph)
    return list(found) if "{name}" == "all_triangles" else found
"""
OF_VERB = """
import numpy as np
import tcgpu
graph = tuple(np.load("edges.npy"))
path = "edges.txt"
def call():
    return {call}
"""
TIMED = """
import json, sys, time
begin, begun = time.perf_counter(), time.process_time()
call()
end, ended = time.perf_counter(), time.process_time()
print(json.dumps({"seconds": end - begin, "processor_s": ended - begun,
                  "compiler": "imported" if "numba" in sys.modules else "not imported"}))
"""


def run(program, caches, folder="."):
    """One new process: what it prints as a dict, and what it says. caches: a folder; None for the user's."""
    named = {} if caches is None else dict.fromkeys(CACHES, os.fspath(caches))
    environment = os.environ | named | {"TCGPU_QUIET": "0"}
    command = [sys.executable, "-c", program + TIMED]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(ran.stdout) | {"says": ran.stderr.strip()}


def median(program, repeats):
    """The process of the median time."""
    ran = sorted((run(program, None) for _ in range(repeats)), key=lambda each: each["seconds"])
    return ran[statistics.median_low(range(repeats))]


def of_networkx(name, repeats):
    """The row of a function of NetworkX, with the backend on and, for `networkx_s`, off."""
    without, found = (median(OF_NETWORKX.format(name=name, on=on), repeats) for on in (False, True))
    ratio = found["seconds"] / without["seconds"]
    about = {"task": f"nx.{name}", "graph": "small", "edges": 1500, "caches": "filled", "engine": "cpu"}
    return about | found | {"networkx_s": without["seconds"], "ratio": ratio}


def of_verb(name, graph, edges):
    """The row of a verb whose code is not on disk yet. edges: an array (2, m)."""
    (row,) = of_verb_again(name, graph, edges, "cpu", ("empty",))
    return row


def of_verb_again(name, graph, edges, engine, caches=("empty", "filled")):
    """The rows of processes that use the same caches, one after the other."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "edges.npy"), edges)
        np.savetxt(Path(folder, "edges.txt"), edges.T, fmt="%d")
        ran = [run(OF_VERB.format(call=VERBS[name]), Path(folder, "caches"), folder) for _ in caches]
    about = {"task": name, "graph": graph, "edges": edges.shape[1], "networkx_s": "", "ratio": ""}
    return [{"caches": each, "engine": engine} | about | found for each, found in zip(caches, ran, strict=True)]


def main():
    import networkx as nx
    import numpy as np

    import tcgpu

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--task", action="append", metavar="NAME", help="part of a task's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", type=Path, help="folder for the record")
    arguments = parser.parse_args()
    small = np.array(nx.gnm_random_graph(300, 1500, seed=1).edges).T
    graphs = {"small": small, "rmat14": np.array(tcgpu.generate.rmat(14, 8, seed=1).edges())}
    tasks = [(f"nx.{name}", of_networkx, (name, arguments.repeats)) for name in FUNCTIONS]
    tasks += [(name, of_verb, (name, *graph)) for graph in graphs.items() for name in VERBS]
    if arguments.engine == "gpu":
        edges = np.array(tcgpu.generate.rmat(18, 12, seed=1).edges())
        tasks = [(name, of_verb_again, (name, "rmat18", edges, "gpu")) for name in VERBS if name not in ON_CPU]
    machine, rows = measurement.machine(arguments.engine), []
    for name, measure, given in tasks:
        if arguments.task and not any(part in name for part in arguments.task):
            continue
        found = measure(*given)
        for row in found if isinstance(found, list) else [found]:
            row = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
            print(*(f"{key} {row[key]}" for key in row if key != "edges"), flush=True)
            rows.append(row | machine)
        if arguments.into:
            records.Rows(rows).write_csv(arguments.into / records.record_path("first-use", rows).name)


if __name__ == "__main__":
    main()
