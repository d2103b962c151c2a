"""The methods by name, and which of them runs on which engine."""

import importlib
import importlib.util
from contextlib import contextmanager
from dataclasses import dataclass, field

from tcgpu.engines.choice import ENGINE
from tcgpu.errors import GraphError
from tcgpu.graph import ORDERS, Graph, as_graph
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

    def imported(self):
        """The module that has this method's `plan`."""
        return importlib.import_module(self.module)

    def prepare(self, graph, order=None):
        """What `plan` takes, of whatever `as_graph` takes: a Graph in an order, unless the method has its own way."""
        own = getattr(self.imported(), "prepare", as_graph)
        return own(graph, order or self.order)

    def plan(self, graph, **knobs):
        """One count of `graph` in the order that it has, decided and not begun."""
        return self.imported().plan(graph, **knobs)

    def support_plan(self, graph, **knobs):
        """Each edge's triangles, decided and not begun; GraphError if the method only counts."""
        module = self.imported()
        if not hasattr(module, "support_plan"):
            others = "cpu, adaptive and the bitmap methods do"
            raise GraphError(f"method {self.name!r} does not tell edge from edge; {others}")
        return module.support_plan(graph, **knobs)

    def triangles_plan(self, graph, **knobs):
        """Each vertex's triangles, decided and not begun; GraphError if the method only counts."""
        own = getattr(self.imported(), "triangles_plan", None)
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


K_TRUSS = Method(
    name="k_truss",
    source="Bisson & Fatica",
    summary="support by bitmaps, weak edges removed until none is weak; large graphs are counted anew each round",
    order="natural",
    engines=GPU,
    module="tcgpu.kernels.bisson_fatica.k_truss",
)


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


def for_edges(graph, method, engine, order):
    """The Method that finds the triangles of edges: on a GPU, if none is named, what is fastest for a graph's size."""
    wanted = automatic(engine) if method is None else method
    if method is None and wanted == "adaptive" and isinstance(graph, Graph):
        bitmaps = importlib.import_module("tcgpu.kernels.bisson_fatica.support")
        if bitmaps.is_middling(graph):
            wanted = f"bitmap_{bitmaps.fastest(graph)}"
    return choose(wanted, engine, order)
