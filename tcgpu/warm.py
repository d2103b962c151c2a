"""Compile in advance what the verbs need: `tcgpu warm [VERB ...]`, a process for each verb.

A verb is called with graphs of the kinds that are counted in different ways, and its code stays on disk.
"""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tcgpu.engines.cache_folder import cache_folder
from tcgpu.errors import TcgpuError

# verb -> its module, and what it is called with besides a graph
VERBS: dict[str, tuple[str, list[dict]]] = {
    "cliques": ("subgraphs.of_k_vertices", [{"k": 4}, {"k": 5}]),
    "count": ("api", [{}, {"order": "natural"}]),
    "count_subgraphs": ("subgraphs.of_k_vertices", [{"k": 4, "kind": "connected"}, {"k": 4, "kind": "independent"}]),
    "generate": ("generators", []),
    "k_truss": ("truss", [{"k": 4}]),
    "list_triangles": ("api", [{}]),
    "motifs": ("subgraphs.four_vertices", [{"per": "graph"}, {"per": "vertex"}, {"per": "edge"}]),
    "read": ("formats", []),
    "reduce_triangles": ("subgraphs", [{"f": lambda u, v, w: 1}, {"f": lambda u, v, w: u / 2}]),
    "support": ("api", [{}]),
    "triangles": ("api", [{}]),
    "truss_numbers": ("truss", [{}]),
}
PROGRAM = "import sys; from tcgpu import warm; warm.compile_verb(sys.argv[1])"


def warm(verbs):
    """Compile what some verbs need, in as many processes as there are cores; yield each verb and its seconds."""

    def run(verb):
        begin, environment = time.perf_counter(), os.environ | {"TCGPU_QUIET": "1"}
        ran = subprocess.run([sys.executable, "-c", PROGRAM, verb], env=environment, capture_output=True, text=True)
        if ran.returncode:
            raise TcgpuError(f"{verb} does not compile here: {ran.stderr.strip().rpartition(chr(10))[2]}")
        return verb, time.perf_counter() - begin

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(run, verb) for verb in verbs]):
            yield done.result()


def folders():
    return Path(os.environ.get("NUMBA_CACHE_DIR") or cache_folder() / "native"), cache_folder() / "kernels"


def bytes_kept():
    """The size of all compiled code on disk."""
    return sum(path.stat().st_size for folder in folders() if folder.is_dir() for path in folder.iterdir())


def compile_verb(verb):
    from tcgpu import generators as generate
    from tcgpu.engines import choice, kernel_compiler, runtime
    from tcgpu.kernels import device_graph

    choice.MAX_IN_NUMPY = -1  # no small graph goes by NumPy,
    kernel_compiler.MOST_PROCESSES = 0  # and the other verbs have processes already
    module, calls = VERBS[verb]
    module = importlib.import_module(f"tcgpu.{module}")
    kinds = [generate.rmat(14, 8, seed=1), generate.mesh(200, 200), generate.copapers(2000, seed=1),
             generate.barabasi_albert(20_000, 5, seed=1), generate.clique(64)]  # fmt: skip
    many = (device_graph.MANY_EDGES, 0) if runtime.ENGINE == "gpu" else (device_graph.MANY_EDGES,)
    for device_graph.MANY_EDGES in many:  # a GPU takes what has so many edges, by kernels of its own
        for options in calls:
            for graph in (given for kind in kinds for given in (kind, kind.edges())):
                found = getattr(module, verb)(graph, **options)
                list(found if verb == "list_triangles" else ())
    if verb == "read":
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("txt", "csv", "mtx", "metis", "npz"):
                module.write(kinds[0], Path(folder, f"graph.{ending}"))
                module.read(Path(folder, f"graph.{ending}"))
