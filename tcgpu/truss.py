"""k-trusses: the parts of a graph that hold together by triangles, and how deep each edge is in them.

The k-truss is the largest subgraph whose every edge is in at least k - 2 triangles of that subgraph; k counts as in
NetworkX and in Bisson & Fatica, so that a clique of k vertices is a k-truss and the 2-truss is every edge. The truss
number of an edge is the largest k whose k-truss has it.
"""

import importlib

import numpy as np

from tcgpu import columns, counting, peeling
from tcgpu.counting import ENGINES, GPU, Method, on_engine
from tcgpu.engines.choice import ENGINE
from tcgpu.graph import Graph, GraphError, as_graph
from tcgpu.progress import underway
from tcgpu.suggest import unknown

ON_GPU = Method(
    name="k_truss",
    source="Bisson & Fatica",
    summary="support by bitmaps, weak edges removed until none is weak; large graphs are counted anew each round",
    order="natural",
    engines=GPU,
    module="tcgpu.kernels.bisson_fatica.k_truss",
)


def k_truss(graph, k, *, engine=None, progress=None, max_seconds=None):
    """The k-truss of `graph` as a Graph of its own: only the vertices that have an edge left, by their labels.

    k: a whole number of at least 2. engine: "cpu", "gpu" or "sim"; without one, the GPU where there is one. progress,
    max_seconds: as in `tcgpu.count`. Where the graph has no labels, the result's are the vertex numbers in `graph`;
    where nothing is lost it has none, either.
    """
    k = _checked(k)
    graph = as_graph(graph)
    return _kept(graph, _on(engine, progress, max_seconds, "peel", graph, k))


def truss_numbers(graph, *, engine=None, progress=None, max_seconds=None):
    """The largest k whose k-truss has the edge: int32, one an edge, in the order of `graph.edges()`; 2 at least.

    Keywords: as in `k_truss`.
    """
    return _on(engine, progress, max_seconds, "numbers", as_graph(graph))


def _checked(k):
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 2:
        raise GraphError(f"k must be a whole number of at least 2, not {k!r}")
    return int(k)


def engine_of(engine=None):
    """What finds trusses here: the engine asked for, else the GPU or the CPU; GraphError where there is none such."""
    if engine == "cpu" or engine is None and ENGINE != "gpu":
        return "cpu"
    if engine not in (None, *GPU):
        raise GraphError(unknown("engine", engine, ENGINES))
    return counting.engine_of(ON_GPU, engine)


def _on(engine, progress, max_seconds, verb, graph, *args):
    """`peel(graph, k)`, which edges stay, or `numbers(graph)`, by the room that does it on this engine."""
    name = engine_of(engine)
    with underway(progress, f"peeling {graph.m:,} edges on {name}"):
        if name == "cpu":
            return getattr(peeling, verb)(graph, *args)
        with on_engine(ON_GPU, engine, max_seconds):
            return getattr(importlib.import_module(ON_GPU.module), verb)(graph, *args)


def _kept(graph, keep):
    """The Graph of the edges that `keep` marks and of the vertices that these join."""
    left = graph.kept(keep)
    inside = columns.met(left.col_ptr, left.row_idx)
    number = np.cumsum(inside, dtype=np.int32) - np.int32(1)
    col_ptr = np.append(left.col_ptr[:-1][inside], left.m)
    row_idx = columns.called(number, left.row_idx)
    return Graph(col_ptr, row_idx, labels=_labels(graph, inside), name=graph.name, validate=False)


def _labels(graph, inside):
    """What the source called the vertices that are inside; None where each is called by its number."""
    if graph.labels is None:
        return None if inside.all() else np.flatnonzero(inside)
    if isinstance(graph.labels, np.ndarray):
        return graph.labels[inside]
    return [graph.labels[v] for v in np.flatnonzero(inside)]
