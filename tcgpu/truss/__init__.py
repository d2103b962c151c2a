"""k-trusses and truss numbers: edges are peeled off, those in the fewest triangles first."""

from contextlib import nullcontext
from importlib import import_module
from itertools import compress
from typing import Any, Unpack

import numpy as np

from tcgpu.api import Options, check_only, taken, verb
from tcgpu.arrays import locked
from tcgpu.built_in import K_TRUSS
from tcgpu.cpu import small
from tcgpu.declarations import CUDA
from tcgpu.engines import runtime
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import EngineError, MethodError
from tcgpu.graph import Graph
from tcgpu.progress import underway
from tcgpu.registry import check_engine, engine_of, on_engine


@verb
def k_truss(graph: Any, k: int, **options: Unpack[Options]) -> Graph:
    """Find the k-truss: the largest subgraph whose every edge is in at least k - 2 of its triangles.

    Parameters
    ----------
    k
        2 or more. A clique of k vertices is a k-truss; the 2-truss is every edge.
    graph, options
        As in `tcgpu.count`. Methods are "cpu" and "k_truss" (GPU). Trusses are found in the graph's own
        order, and not by an executor.

    Returns
    -------
    Graph
        Only the vertices that have an edge left. Its labels are those of `graph`, or the vertex numbers in `graph` if
        that has none; without labels if no vertex is lost.
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 2:
        raise MethodError(f"k must be a whole number of at least 2, not {k!r}")
    return _without_isolated(*_peeled("k_truss", "peel", graph, options, int(k)))


@verb
def truss_numbers(graph: Any, **options: Unpack[Options]) -> np.ndarray:
    """Find each edge's truss number: the largest k whose k-truss has the edge.

    Parameters
    ----------
    graph, options
        As in `tcgpu.count`, with the methods of `k_truss`.

    Returns
    -------
    numpy.ndarray
        int32, one number of at least 2 an edge, in the order of `graph.edges()`.
    """
    return _peeled("truss_numbers", "numbers", graph, options)[-1]


def truss_engine(engine: str | None = None) -> str:
    """Return what finds trusses here: the engine that is named, else the GPU if there is one, else "cpu"."""
    if engine == "cpu" or engine is None and ENGINE != "gpu":
        return "cpu"
    check_engine("a truss", engine, (*CUDA, "cpu"))
    return engine_of(K_TRUSS, engine)


def _peeled(verb, function, graph, options, *args):
    """The graph's name and labels, and what a function of the engine's module returns of it.

    function: "numbers", of a graph; or "peel", of a graph and k, which marks the edges that stay: of these, what
    `_joined` returns. On a GPU the graph is a DeviceGraph, and the marks are there, too.
    """
    check_only(verb, {"cpu", K_TRUSS.name}, (*CUDA, "cpu"), options)
    method, engine, order = options["method"], options["engine"], options["order"]
    if order not in (None, "natural"):
        raise MethodError(f"{verb} works in the graph's own order, not in {order!r}: leave order= out")
    if method == "cpu" and engine in CUDA or method == K_TRUSS.name and engine == "cpu":
        raise EngineError(f"method {method!r} does not run on {engine!r}")
    name = engine_of(K_TRUSS, engine) if method == K_TRUSS.name else truss_engine(method or engine)
    graph = taken(graph, name)
    with nullcontext() if name == "cpu" else on_engine(K_TRUSS, name, options["max_seconds"]):
        if name == "cpu":
            peeled = graph
            peeling = small if small.serves(graph) else import_module("tcgpu.truss.native_peeling")
        else:
            from tcgpu.truss import peeling

            peeled = peeling.prepare(graph, "natural")
        labels = graph.labels if isinstance(graph, Graph) else peeled.ids
        with underway(options["progress"], f"peeling {peeled.m:,} edges on {name}"):
            found = getattr(peeling, function)(peeled, *args)
            return peeled.name, labels, _joined(peeled.kept(found)) if function == "peel" else found


def _joined(graph):
    """Which vertices have an edge, and where the columns of these begin in the rows, which have new numbers."""
    if not isinstance(graph, Graph):
        return [runtime.to_host(array) for array in graph.joined()]
    joined = graph.degrees > 0
    number = np.cumsum(joined, dtype=np.int32) - np.int32(1)
    return joined, graph.col_ptr[:-1][joined], number[graph.row_idx]


def _without_isolated(name, labels, columns):
    """The Graph of the vertices that have an edge. columns: from `_joined`."""
    joined, starts, rows = columns
    if labels is not None:
        labels = list(compress(labels, joined)) if isinstance(labels, list) else runtime.to_host(labels)[joined]
    elif not joined.all():
        labels = np.flatnonzero(joined)
    return Graph(locked(np.append(starts, rows.size)), locked(rows), labels=labels, name=name, validate=False)
