"""The methods by name, and the public verbs over them.

Every verb takes whatever `as_graph` understands: a Graph, a NetworkX graph, a SciPy sparse matrix, or edge arrays.
"""

import importlib
import importlib.util
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from tcgpu import cpu
from tcgpu.engines.choice import ENGINE
from tcgpu.graph import ORDERS, Graph, GraphError, as_graph
from tcgpu.progress import underway
from tcgpu.suggest import did_you_mean, unknown

GPU = ("gpu", "sim")
ENGINES = (*GPU, "cpu")


@dataclass(frozen=True)
class Method:
    """A way to count triangles: where it comes from, what its knobs are, what can run it.

    `module` names the room that has its `plan(graph, **knobs)`: everything decided, nothing begun (see
    `tcgpu.kernels.Plan`). It is imported when the method is first used, so that listing methods needs no CUDA.
    """

    name: str
    source: str
    summary: str
    order: str  # what its source used; "auto" where the method looks at the graph
    engines: tuple[str, ...]
    module: str
    knobs: dict = field(default_factory=dict)  # name -> default; held against `plan` by the tests

    def prepare(self, graph, order=None):
        """What `plan` takes, of whatever `as_graph` takes: a Graph in an order, unless the method has its own way."""
        own = getattr(importlib.import_module(self.module), "prepare", as_graph)
        return own(graph, order or self.order)

    def plan(self, graph, **knobs):
        """One count of `graph` in the order that it has, decided and not begun."""
        return importlib.import_module(self.module).plan(graph, **knobs)

    def support_plan(self, graph, **knobs):
        """Each edge's triangles, decided and not begun; GraphError if the method only counts."""
        module = importlib.import_module(self.module)
        if not hasattr(module, "support_plan"):
            others = "cpu, adaptive and the bitmap methods do"
            raise GraphError(f"method {self.name!r} does not tell edge from edge; {others}")
        return module.support_plan(graph, **knobs)

    def triangles_plan(self, graph, **knobs):
        """Each vertex's triangles, decided and not begun; GraphError if the method only counts."""
        own = getattr(importlib.import_module(self.module), "triangles_plan", None)
        if own is not None:
            return own(graph, **knobs)
        ends = importlib.import_module("tcgpu.kernels.ends")
        return ends.of_vertices(self.support_plan(graph, **knobs), graph)


METHODS = {
    method.name: method
    for method in (
        Method(
            name="naive",
            source="report",
            summary="a thread per nonzero, two-pointer dot product of two columns",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.report.naive",
            knobs={"threads": 512, "blocks": 256},
        ),
        Method(
            name="column_block",
            source="report",
            summary="a block per k consecutive columns, kept in shared memory; a thread per nonzero",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.report.column_block",
            knobs={"threads": 128, "blocks": 1024, "columns": 27, "tile": 2048},
        ),
        Method(
            name="bitmap",
            source="report",
            summary="a block per column, kept as an array of bits in global memory",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.report.bitmap",
            knobs={"threads": 128, "blocks": 1024, "lanes": 8},
        ),
        Method(
            name="report_auto",
            source="report",
            summary="naive for short columns, column_block from a threshold of nonzeros per column on",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.report.report_auto",
            knobs={"threshold": 7.0},
        ),
        Method(
            name="bitmap_thread",
            source="Bisson & Fatica",
            summary="a thread per column; of at most 12 rows, in registers",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.bisson_fatica.bitmap_thread",
            knobs={"threads": 128, "blocks": 1 << 16},
        ),
        Method(
            name="bitmap_warp",
            source="Bisson & Fatica",
            summary="a warp per column, kept as bits in global memory",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.bisson_fatica.bitmap_warp",
            knobs={"threads": 128, "blocks": None, "lanes": 8, "fold": 11, "word": 32},
        ),
        Method(
            name="bitmap_block_shared",
            source="Bisson & Fatica",
            summary="a block per column, kept as bits in shared memory",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.bisson_fatica.bitmap_block_shared",
            knobs={"threads": 256, "blocks": None, "lanes": 16},
        ),
        Method(
            name="bitmap_block_global",
            source="Bisson & Fatica",
            summary="a block per column, kept as bits in global memory, with a fold of them in shared memory",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.bisson_fatica.bitmap_block_global",
            knobs={"threads": 256, "blocks": None, "lanes": 32, "fold": 17, "word": 32},
        ),
        Method(
            name="bitmap_auto",
            source="Bisson & Fatica",
            summary="one of these four, by the mean and the longest column and the number of vertices",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.bisson_fatica.bitmap_auto",
            knobs={"longest_thread": 12, "mean_warp": 8.0, "vertices_shared": 128 << 10},
        ),
        Method(
            name="merge_path",
            source="TriCore's baseline",
            summary="several lanes per edge; the merge of its two columns cut by diagonals into equal parts",
            order="degree",
            engines=GPU,
            module="tcgpu.kernels.tricore.merge_path",
            knobs={"threads": 128, "blocks": 1 << 16, "lanes": 32},
        ),
        Method(
            name="thread_search",
            source="TriCore's baseline",
            summary="a thread per edge; each row of the shorter column looked up in the longer by binary search",
            order="degree",
            engines=GPU,
            module="tcgpu.kernels.tricore.thread_search",
            knobs={"threads": 128, "blocks": 1 << 16},
        ),
        Method(
            name="warp_search",
            source="TriCore",
            summary="a warp per edge; 32 binary searches at a time, the top of the tree in shared memory",
            order="degree",
            engines=GPU,
            module="tcgpu.kernels.tricore.warp_search",
            knobs={"threads": 64, "blocks": None, "cached": True},
        ),
        Method(
            name="levels",
            source="Chatterjee et al.",
            summary="two adjacent levels of a breadth-first search as a bit matrix; every combination tested, by index",
            order="natural",
            engines=GPU,
            module="tcgpu.kernels.chatterjee.levels",
            knobs={
                "threads": None,
                "blocks": 1024,
                "lanes": 32,
                "approach": "D",
                "memory": "auto",
                "layout": "s-utm",
                "arrangement": "redundant",
                "schedule": "longest",
                "piece": 0,
                "roots": 256,
                "skip": False,
            },
        ),
        Method(
            name="adaptive",
            source="ours",
            summary="for each vertex what suits it: rows of bits, windows, hash tables, merges; cleans on the GPU",
            order="auto",
            engines=GPU,
            module="tcgpu.kernels.adaptive",
            knobs={"near": 65535, "hubs": 8192, "heavy": 64, "crowd": 128, "short": 32, "words": None},
        ),
        Method(
            name="cpu",
            source="ours",
            summary="native threads: rows of bits for hubs, byte marks or packed words for the rest",
            order="auto",
            engines=("cpu",),
            module="tcgpu.cpu",
        ),
    )
}


def methods():
    """Every method there is, as a list of Method."""
    return list(METHODS.values())


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
        return importlib.import_module("tcgpu.parts").count(graph, method, **in_parts, **wish, **knobs)
    chosen = choose(method, engine, order, knobs)
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting by {chosen.name}"):
        return chosen.plan(chosen.prepare(graph, order), **knobs).count()


def choose(method=None, engine=None, order=None, knobs=()):
    """The Method that `count` would run; GraphError says what is wrong with the wish."""
    if engine is not None and engine not in ENGINES:
        raise GraphError(unknown("engine", engine, ENGINES))
    wanted = automatic(engine) if method is None else method
    if wanted not in METHODS:
        raise GraphError(unknown("method", wanted, METHODS))
    if order is not None and order not in ORDERS:
        raise GraphError(unknown("order", order, ORDERS))
    chosen = METHODS[wanted]
    for knob in knobs:
        if knob not in chosen.knobs:
            has = f"its knobs are {', '.join(chosen.knobs)}" if chosen.knobs else "it has none"
            hint = did_you_mean(knob, chosen.knobs)
            raise GraphError(f"method {chosen.name!r} has no knob {knob!r}{hint}; {has}")
    check_engine(chosen, engine)
    return chosen


def check_engine(method, engine):
    """GraphError unless a Method runs on an engine, or none is named."""
    if engine is not None and engine not in ENGINES:
        raise GraphError(unknown("engine", engine, ENGINES))
    if engine is not None and engine not in method.engines:
        raise GraphError(f"method {method.name!r} runs on {' or '.join(method.engines)}, not on {engine!r}")


def automatic(engine=None):
    """The method where none is named: the fastest on the engine asked for, else on what this machine has."""
    if engine in (None, "gpu") and ENGINE == "gpu" and importlib.util.find_spec("cupy"):
        return "adaptive"
    return "adaptive" if engine in GPU else "cpu"


def engine_of(method, engine=None):
    """What would run a Method here: the engine that is asked for, or the first of its own that this machine has."""
    check_engine(method, engine)
    if method.engines == ("cpu",):
        return "cpu"
    from tcgpu.engines import runtime

    if engine == "gpu" and runtime.ENGINE != "gpu":
        raise GraphError(f"no engine 'gpu' here: {runtime.REASON}; engine 'sim' is for small graphs")
    return engine or runtime.engine()


@contextmanager
def on_engine(method, engine=None, max_seconds=None):
    """Run a Method's kernels on an engine inside the `with`, in the simulator for no longer than `max_seconds`.

    GraphError, with the way out, where the device's memory does not suffice.
    """
    name = engine_of(method, engine)
    if name == "cpu":
        yield
        return
    from tcgpu.engines import runtime
    from tcgpu.kernels import fitting, simulated

    with simulated.limited(max_seconds), runtime.using(name), fitting(method.name):
        yield


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


def for_edges(graph, method, engine, order):
    """The Method that finds the triangles of edges: on a GPU, if none is named, what is fastest for a graph's size."""
    wanted = automatic(engine) if method is None else method
    if method is None and wanted == "adaptive" and isinstance(graph, Graph):
        bitmaps = importlib.import_module("tcgpu.kernels.bisson_fatica.support")
        if bitmaps.is_middling(graph):
            wanted = f"bitmap_{bitmaps.fastest(graph)}"
    return choose(wanted, engine, order)


def _there_and_back(method, graph, order):
    """A graph as it came, in the order that it is to be counted in, and what brings the result back to the first."""
    back = method.prepare(graph, "natural")
    return back, method.prepare(back, order), importlib.import_module("tcgpu.kernels.carry")


def _by_many(verb, graph, executor, progress, **wish):
    """A verb by the workers of an executor."""
    return getattr(importlib.import_module("tcgpu.parts.pools"), verb)(graph, executor, show=progress, **wish)


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
    paths = sum_exactly(_pairs(graph))
    return 3 * count(graph) / paths if paths else 0.0


def sum_exactly(values):
    """The sum of int64 values as a Python int, however large."""
    halves = int((values >> 32).sum()), int((values & 0xFFFFFFFF).sum())
    return (halves[0] << 32) + halves[1]


def _pairs(graph: Graph):
    """How many pairs of neighbours each vertex has."""
    degree = np.asarray(graph.degrees, np.int64)
    return degree * (degree - 1) // 2
