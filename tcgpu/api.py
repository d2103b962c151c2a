"""The verbs: count, triangles, support, clustering, k_truss and the others.

Every verb takes whatever `as_graph` takes: a Graph, a NetworkX graph, a SciPy sparse matrix, edge arrays, or pairs.
"""

import numpy as np

from tcgpu import cleaning, cpu
from tcgpu.cpu import truss
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import GraphError
from tcgpu.graph import Graph, as_graph
from tcgpu.progress import underway
from tcgpu.registry import ENGINES, GPU, K_TRUSS, choose, engine_of, for_edges, on_engine
from tcgpu.suggest import unknown


def count(graph, method=None, *, engine=None, order=None, executor=None, device_memory=None, resume=None,
          progress=None, max_seconds=None, **knobs):  # fmt: skip
    """How many triangles `graph` has: an exact Python int.

    method: a name out of `methods()`; without one, the best this machine has.
    engine: "gpu", "sim" or "cpu"; without one, the first of the method's that this machine has.
    order: "natural", "degree", "bfs", "random", or "auto" (by degree where the graph is skewed); without one, what
    the method's source used.
    progress: True shows a bar, False nothing; without either it is shown at a terminal. A function is called with what
    is done and the total. Nothing else changes.
    max_seconds: how long the simulator may take by its estimate; without a number, 30 seconds, and from 2 on the log
    "tcgpu" says how long it takes.
    Other keywords are the method's knobs.

    With any of these the graph is counted in parts, by method "warp_search" or "cpu", one after the other:

    device_memory: so much of the device is taken, a number of bytes or a text like "512MB"; what does not fit streams
    through it. On engine "cpu" no more columns are looked at at a time. The graph may be the path of a folder that
    `tcgpu.write` has made: it stays in its files, and is counted in the order that they have.
    resume: the path of a journal: what it says is done is not counted again.

    Or by many workers at a time; those with GPUs that hold the whole graph do so by "adaptive":

    executor: of `concurrent.futures`, a Dask client's or `MPIPoolExecutor`, too; or the name of one that is kept for
    the next count: "gpus" (a process for each GPU of this machine), "processes" (one for each core), "threads", or
    "dask://HOST:PORT". With it, parts: how many.
    """
    in_parts = {"executor": executor, "device_memory": device_memory, "resume": resume}
    if any(value is not None for value in in_parts.values()):
        wish = {"engine": engine, "order": order, "progress": progress, "max_seconds": max_seconds}
        from tcgpu import distributed

        return distributed.count(graph, method, **in_parts, **wish, **knobs)
    chosen = choose(method, engine, order, knobs)
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting by {chosen.name}"):
        return chosen.plan(chosen.prepare(graph, order), **knobs).count()


def triangles(graph, *, method=None, engine=None, order=None, executor=None, progress=None, max_seconds=None):
    """How many triangles each vertex is in: int64, one a vertex.

    All keywords: as in `support`, by which a GPU finds them.
    """
    wish = {"engine": engine, "order": order, "max_seconds": max_seconds}
    if executor is not None:
        return _by_many("triangles", graph, executor, progress, method=method, **wish)
    graph = _at_hand(graph)
    chosen = for_edges(graph, method, engine, order)
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting triangles of vertices by {chosen.name}"):
        if chosen.engines == ("cpu",):
            return cpu.triangles(as_graph(graph), order or "auto")
        back, own, carry = _there_and_back(chosen, graph, order)
        return carry.vertices_back(chosen.triangles_plan(own), own, back).count()


def support(graph, *, method=None, engine=None, order=None, executor=None, progress=None, max_seconds=None):
    """How many triangles each edge is in: int64, one an edge, in the order of `graph.edges()`.

    method: "cpu", "adaptive" or one of the bitmap methods; without one, what is fast on the engine. engine: "gpu",
    "sim" or "cpu"; without one, a GPU if there is one. order: to find them in, whatever that of the result.
    executor, progress, max_seconds: as in `count`; the methods of an executor are "warp_search" and "cpu".
    """
    wish = {"engine": engine, "order": order, "max_seconds": max_seconds}
    if executor is not None:
        return _by_many("support", graph, executor, progress, method=method, **wish)
    graph = _at_hand(graph)
    chosen = for_edges(graph, method, engine, order)
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting triangles of edges by {chosen.name}"):
        if chosen.engines == ("cpu",):
            return cpu.support(as_graph(graph), order or "auto")
        back, own, carry = _there_and_back(chosen, graph, order)
        return cpu.widened(carry.edges_back(chosen.support_plan(own), own, back).count())


def _at_hand(graph):
    """A graph as it came, if it has columns or comes as edges, or else made a Graph."""
    return graph if isinstance(graph, tuple) or hasattr(graph, "col_ptr") else as_graph(graph)


def _there_and_back(method, graph, order):
    """A graph as it came, in the order that it is to be counted in, and what brings the result back to the first."""
    from tcgpu.kernels import carry

    back = method.prepare(graph, "natural")
    return back, method.prepare(back, order), carry


def _by_many(verb, graph, executor, progress, **wish):
    """A verb by the workers of an executor."""
    from tcgpu.distributed import pool

    return getattr(pool, verb)(graph, executor, progress=progress, **wish)


def list_triangles(graph, chunk=1 << 20):
    """Every triangle once, in int32 arrays of at most `chunk` rows; a row holds vertices j < i < k."""
    return cpu.list_triangles(as_graph(graph), chunk)


def clustering(graph):
    """Each vertex's share of neighbour pairs that are neighbours themselves: float64; 0 where there is no pair."""
    graph = as_graph(graph)
    pairs = _pairs(graph)
    return np.divide(triangles(graph), pairs, out=np.zeros(graph.n), where=pairs > 0)


def average_clustering(graph):
    """The mean of `clustering`; 0 for a graph without vertices."""
    local = clustering(graph)
    return float(local.mean()) if local.size else 0.0


def transitivity(graph):
    """The share of all paths of two edges that a third edge closes: three times triangles over paths."""
    graph = as_graph(graph)
    paths = cpu.sum_exactly(_pairs(graph))
    return 3 * count(graph) / paths if paths else 0.0


def _pairs(graph: Graph):
    """How many pairs of neighbours each vertex has."""
    degree = np.asarray(graph.degrees, np.int64)
    return degree * (degree - 1) // 2


def is_triangle_free(graph):
    """Whether no three vertices are neighbours of each other."""
    return count(graph) == 0


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


def truss_engine(engine=None):
    """What finds trusses here: the engine asked for, else the GPU or the CPU; GraphError where there is none such."""
    if engine == "cpu" or engine is None and ENGINE != "gpu":
        return "cpu"
    if engine not in (None, *GPU):
        raise GraphError(unknown("engine", engine, ENGINES))
    return engine_of(K_TRUSS, engine)


def _on(engine, progress, max_seconds, verb, graph, *args):
    """`peel(graph, k)`, which edges stay, or `numbers(graph)`, by the room that does it on this engine."""
    name = truss_engine(engine)
    with underway(progress, f"peeling {graph.m:,} edges on {name}"):
        if name == "cpu":
            return getattr(truss, verb)(graph, *args)
        with on_engine(K_TRUSS, engine, max_seconds):
            return getattr(K_TRUSS.imported(), verb)(graph, *args)


def _kept(graph, keep):
    """The Graph of the edges that `keep` marks and of the vertices that these join."""
    left = graph.kept(keep)
    inside = cleaning.has_edge(left.col_ptr, left.row_idx)
    number = np.cumsum(inside, dtype=np.int32) - np.int32(1)
    col_ptr = np.append(left.col_ptr[:-1][inside], left.m)
    row_idx = cleaning.relabel(number, left.row_idx)
    return Graph(col_ptr, row_idx, labels=_labels(graph, inside), name=graph.name, validate=False)


def _labels(graph, inside):
    """What the source called the vertices that are inside; None where each is called by its number."""
    if graph.labels is None:
        return None if inside.all() else np.flatnonzero(inside)
    if isinstance(graph.labels, np.ndarray):
        return graph.labels[inside]
    return [graph.labels[v] for v in np.flatnonzero(inside)]
