"""Functions of NetworkX by its own code and by the backend tcgpu, in one run.

    python benchmarks/networkx_backend.py [--task NAME ...] [--nodes 5000] [--peer none] [--repeats 5] [--output FILE]

The graph has triangles as a social network does, and 40 neighbours a node. Its edges have random weights; of the
directed graph, 3 in 5 edges lead each way. Columns of the record:

    networkx_s       processor time of NetworkX's own code, in seconds; a call that takes long is not repeated
    tcgpu_s          the same of tcgpu, conversion of the NetworkX graph included: the first call for a graph
    converted_s      from a graph that is converted already, as later calls find it, with no results kept
    ratio            networkx_s / tcgpu_s
    converted_ratio  networkx_s / converted_s

All are medians of processor time, added up over threads: of wall time, several threads of tcgpu would take less. The
results are compared, floats with a relative tolerance of 1e-9.
"""

import argparse
import math
import random
import statistics
import sys
import time
from functools import partial

import networkx as nx

import tcgpu
from tcgpu import measurement, records
from tcgpu.networkx_backend import BackendGraph, backend

TASKS = {
    "triangles": ("triangles", nx.Graph, None),
    "generalized_degree": ("generalized_degree", nx.Graph, None),
    "square_clustering": ("square_clustering", nx.Graph, None),
    "clustering": ("clustering", nx.Graph, None),
    "clustering, weighted": ("clustering", nx.Graph, "weight"),
    "clustering, directed": ("clustering", nx.DiGraph, None),
    "clustering, directed and weighted": ("clustering", nx.DiGraph, "weight"),
    "triadic_census": ("triadic_census", nx.DiGraph, None),
}
SLOW = 2  # seconds for a call from which on NetworkX is not made to repeat it


def draw(kind, nodes):
    """The graph or directed graph (`kind`) that is measured."""
    plain, chance = nx.powerlaw_cluster_graph(nodes, 20, 0.5, seed=1), random.Random(1)
    graph = kind()
    graph.add_nodes_from(plain)
    for u, v in plain.edges:
        ends = [(u, v)] if kind is nx.Graph else [[(u, v)], [(v, u)], [(u, v), (v, u)]][chance.choice((0, 0, 1, 1, 2))]
        graph.add_edges_from((a, b, {"weight": chance.random()}) for a, b in ends)
    return graph


def unused(converted):
    """A copy of a BackendGraph without results."""
    graph = tcgpu.Graph(converted.graph.col_ptr, converted.graph.row_idx, validate=False)
    return BackendGraph(graph, converted.source, converted.directions, converted.roots)


def median(prepare, repeats, warm_up=False):
    """The median processor time of the calls that `prepare()` returns, in seconds, and the last result."""
    taken = []
    for turn in range(repeats + warm_up):
        run = prepare()
        begin = time.process_time()
        result = run()
        if turn or not warm_up:
            taken.append(time.process_time() - begin)
        if taken and taken[0] > SLOW:
            break
    return statistics.median(taken), result


def agree(ours, theirs):
    """Whether two dicts have the same keys in one order, and the same values, floats up to rounding."""
    return list(ours) == list(theirs) and all(
        math.isclose(ours[key], theirs[key], rel_tol=1e-9)
        if isinstance(theirs[key], float)
        else ours[key] == theirs[key]
        for key in theirs
    )


def measure(task, graph, repeats, peer=True):
    """A row of one task; SystemExit if the results differ. peer: whether NetworkX runs, too."""
    name, _, weight = TASKS[task]
    function, options = getattr(nx, name), {} if weight is None else {"weight": weight}
    attributes = None if weight is None else {weight: 1}

    def first():
        graph.__networkx_cache__.clear()
        return partial(function, graph, backend="tcgpu", **options)

    converted = backend.convert_from_nx(graph, edge_attrs=attributes)
    row = {"function": task, "nodes": len(graph), "edges": graph.number_of_edges(), "networkx": nx.__version__}
    row["tcgpu_s"], found = median(first, repeats, warm_up=True)
    row["converted_s"], again = median(lambda: partial(function, unused(converted), **options), repeats)
    if peer:
        theirs = partial(function, graph, backend="networkx", **options)
        row["networkx_s"], expected = median(lambda: theirs, repeats)
        if not agree(found, expected) or not agree(again, expected):
            raise SystemExit(f"{task}: tcgpu does not find what NetworkX does")
        row["ratio"] = row["networkx_s"] / row["tcgpu_s"]
        row["converted_ratio"] = row["networkx_s"] / row["converted_s"]
    return {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", action="append", metavar="NAME", help="part of a task's name; may be repeated")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--peer", choices=["NetworkX", "none"], default="NetworkX", help="none: only tcgpu runs")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    arguments = parser.parse_args()
    nx.config.warnings_to_ignore.add("cache")
    machine, rows = measurement.machine("cpu"), records.Rows()
    graphs = {kind: draw(kind, arguments.nodes) for kind in (nx.Graph, nx.DiGraph)}
    for task, (_, kind, _) in TASKS.items():
        if arguments.task and not any(part in task for part in arguments.task):
            continue
        row = measure(task, graphs[kind], arguments.repeats, arguments.peer != "none")
        print(f"{task:<36}", *(f"{key} {row[key]:<10.4g}" for key in row if key.endswith(("_s", "ratio"))), flush=True)
        rows.append(row | machine)
    if arguments.output:
        rows.write_csv(arguments.output)
        print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
