"""Graphs, launch shapes and knobs for the tests of kernels, in the simulator and on a GPU."""

import csv
import importlib
import pkgutil
from dataclasses import replace

import networkx as nx
import numpy as np

import tcgpu
from tcgpu import Graph
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels import Step

ROOMS_OF_KERNELS = "distributed", "kernels", "subgraphs", "truss"


def kernel_modules():
    """The modules of the package that kernels are in."""
    for room in ROOMS_OF_KERNELS:
        for found in pkgutil.walk_packages([f"{tcgpu.__path__[0]}/{room}"], f"tcgpu.{room}."):
            yield importlib.import_module(found.name)


def every_kernel():
    """Each kernel of the package once."""
    for module in kernel_modules():
        for value in vars(module).values():
            if isinstance(value, runtime.Kernel) and value.__module__ == module.__name__:
                yield value


def name_of(kernel):
    """The name of a kernel's file, and its own."""
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}"


# odd ones too: one thread, warps that are not full, more blocks than columns, more threads than nonzeros
SHAPES = [
    {"threads": 1, "blocks": 1},
    {"threads": 33, "blocks": 3},
    {"threads": 64, "blocks": 7},
    {"threads": 31, "blocks": 10_000},
    {"threads": 100, "blocks": 2},
    {"threads": 256, "blocks": 5},
]
KNOBS = {
    "naive": [{}],
    "column_block": [{"columns": 27}, {"columns": 1, "tile": 5}, {"columns": 4, "tile": 64}, {"columns": 10**6}],
    "bitmap": [{}, {"lanes": 1}, {"lanes": 7}, {"lanes": 32}],
    "bitmap_warp": [{"fold": 5}, {"lanes": 7, "word": 64}, {"lanes": 32, "fold": 6}, {"lanes": 1}],
    "bitmap_block_shared": [{}, {"lanes": 1}, {"lanes": 7}],
    "bitmap_block_global": [{"fold": 5}, {"lanes": 7, "word": 64, "fold": 6}, {"lanes": 1, "word": 64}, {}],
    "merge_path": [{}, {"lanes": 1}, {"lanes": 7}, {"lanes": 64}, {"lanes": 1024}],
    "warp_search": [{}, {"cached": False}],
    "levels": [
        {"memory": "global"},
        {"approach": "A", "piece": 500},
        {"approach": "B", "memory": "global", "arrangement": "one"},
        {"lanes": 7, "piece": 77, "layout": "matrix", "memory": "global", "arrangement": "one"},
        {"approach": "C", "layout": "utm"},
        {"schedule": "given", "piece": 300, "lanes": 1},
    ],
}
# the same of what runs as its paper has it
PUBLISHED = {
    "naive": [{}],
    "column_block": [{"columns": 3}, {"columns": 1}],
    "bitmap_warp": [{}],
    "bitmap_block_shared": [{}],
    "bitmap_block_global": [{}],
    "warp_search": [{}, {"cached": False}],
}
PUBLISHED = {method: [knobs | {"published": True} for knobs in found] for method, found in PUBLISHED.items()}

# knobs with which a method is done soon, and the most edges of the well-known graphs that it is tried on
QUICK = {"levels": {"skip": True, "lanes": 1}}
MOST_EDGES = {"sim": {"levels": 500}, "gpu": {"levels": 20_000}}


def with_few_blocks(plan, blocks=3):
    """The plan with at most so many blocks in each launch, as small graphs need in the simulator."""

    def fewer(step):
        return replace(step, blocks=min(step.blocks, blocks)) if isinstance(step, Step) else step

    return replace(plan, setup=map(fewer, plan.setup), steps=map(fewer, plan.steps))


def run_shuffled(run, seed, blocks=None):
    """Run the steps of a Run in the simulator, each with its blocks or so many, and threads in a new random order."""
    for step in run.plan.steps:
        shape = blocks or step.blocks, step.threads
        simulate(step.kernel.py_func, *shape, step.values(run.arrays), shared=step.shared, seed=seed)


def settings(method, graph=None):
    """Every shape, each with one of the method's knobs in turn, and the method's defaults; for `graph`, if given."""
    if method == "report_auto":  # it chooses the shape
        return [{}, {"threshold": 0}, {"threshold": 10**9}, {"published": True}]
    if method == "bitmap_auto":  # it chooses the kernel, and the simulator has tried each of them by its own name
        if runtime.engine() == "sim":
            return [{}, {"longest_thread": 10**6}, {"published": True}]
        steps = {"longest_thread": 0, "mean_warp": 0, "vertices_shared": 0}
        return [{}, {"longest_thread": 10**6}, {"published": True}] + [dict(list(steps.items())[:k]) for k in (1, 2, 3)]
    if method == "adaptive":  # it chooses the shapes; its classes are forced in tests of their own
        return [{}, {"words": 0}, {"words": 2, "short": 2}, {"words": 33, "short": 5}]
    found = [{}]
    for knobs in (KNOBS.get(method, [{}]), PUBLISHED.get(method, [])):
        found += [shape | knobs[k % len(knobs)] for k, shape in enumerate(SHAPES) if knobs]
        if method.startswith("bitmap_block"):  # has blocks of the last shape as it comes
            found.pop()
    return _levels_settings(found, graph) if method == "levels" and graph is not None else found


def _levels_settings(found, graph):
    """The settings of `levels` that are fast enough: its time grows with the combinations, unless it skips."""
    simulated = runtime.engine() == "sim"
    if graph.n <= (70 if simulated else 500):
        return [*found, {"published": True}]
    skipping = [knobs | QUICK["levels"] | {"piece": 0} for knobs in found if knobs.get("approach") != "A"]
    busy = [{}] + [knobs for knobs in skipping if knobs.get("threads", 256) * knobs.get("blocks", 1024) >= 1000]
    return skipping if simulated else busy


def small_graphs():
    """name -> Graph: small graphs, each of which is difficult in one way."""
    rng = np.random.default_rng(7)
    star = np.zeros(60, np.int64), np.arange(1, 61)
    gap = np.array([0, 0, 1, 900, 900, 901]), np.array([1, 2, 2, 901, 990, 990])
    return {
        "nothing": Graph.from_edges([], [], 0),
        "no edges": Graph.from_edges([], [], 40),
        "one edge": Graph.from_edges([0], [1]),
        "one triangle": Graph.from_edges([0, 0, 1], [1, 2, 2]),
        "star": Graph.from_edges(*star),
        "wheel": Graph.from_networkx(nx.wheel_graph(50)),
        "clique": Graph.from_edges(*np.triu_indices(70, 1)),
        "empty columns between": Graph.from_edges(*gap, 1200),
        "bipartite": Graph.from_networkx(nx.complete_bipartite_graph(20, 30)),
        "random": Graph.from_edges(rng.integers(0, 300, 2500), rng.integers(0, 300, 2500)),
        "skewed": Graph.from_networkx(nx.barabasi_albert_graph(200, 8, seed=1)),
        "two long columns": Graph.from_edges(np.repeat([0, 1], 300), np.tile(np.arange(2, 302), 2)),
    }


def well_known(folder, most_edges=float("inf")):
    """(name, Graph, triangles) of each graph in the folder that has no more edges than that."""
    with open(folder / "INDEX.tsv", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if int(row["edges"]) <= most_edges:
                format = {"el": "edges"}.get(row["format"], row["format"])
                yield row["name"], tcgpu.read(folder / row["file"], format), int(row["triangles"])


def raw(graph, seed=0):
    """The edges of a graph in random order and direction, with repeats and loops."""
    random = np.random.default_rng(seed)
    u, v = graph.edges()
    few = random.integers(0, max(1, graph.m), min(graph.m, 20))
    loops = random.integers(0, max(1, graph.n), 3) if graph.n else np.zeros(0, int)
    u, v = np.concatenate([u, v[few], loops]).astype(np.int32), np.concatenate([v, u[few], loops]).astype(np.int32)
    order, turned = random.permutation(u.size), random.random(u.size) < 0.5
    return np.where(turned, v, u)[order], np.where(turned, u, v)[order], graph.n
