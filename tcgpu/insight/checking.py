"""`tcgpu.check`: whether a method is right, and if it is not, why, with the smallest graph that shows it.

After the simulator has run it, its kernels are compiled for three compute capabilities, where a compiler is installed,
and run on the GPUs that there are: NVIDIA's, and any other by WebGPU.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tcgpu import cpu, hardware
from tcgpu.engines import kernel_compiler, runtime
from tcgpu.errors import MethodError, MissingPackage, TcgpuError, needing
from tcgpu.generators import barabasi_albert, clique, empty, path, star
from tcgpu.graph import Graph, Order
from tcgpu.insight import trace
from tcgpu.insight.faults import CheckedRun, Fault
from tcgpu.insight.mistakes import mistakes_in
from tcgpu.kernels import Step
from tcgpu.markup import Markup, element, joined
from tcgpu.records import Table
from tcgpu.registry import Method, as_list, check_engine, choose, engine_of, on_engine

CAPABILITIES = (7, 5), (8, 0), (9, 0)
MOST_REGISTERS = 64  # of a thread: with more, fewer than half of an SM's threads can be there at once
SHAPES = tuple(
    {"threads": threads, "blocks": blocks}
    for threads, blocks in ((1, 1), (2, 1), (33, 3), (7, 5), (64, 1), (100, 2), (32, 40))
)
MOST_THREADS = 4096  # of a launch in the simulator; a method's own number of blocks may be more
LONGEST_RUN = 4.0  # seconds that the simulator may take for one count, by its estimate
PATIENCE = 5.0  # seconds to go on after the first problem
SHRINKING = 3.0  # seconds to look for a smaller graph, for each problem
MOST_PROBLEMS = 4  # that a report lists
TOO_FEW_THREADS = (
    "with more threads it is right: give each thread every column, edge or row from its number on, in steps of "
    "cuda.gridsize(1), or of cuda.blockDim.x where the threads of a block share them"
)
EACH_COUNTS_ALL = "each thread counts all: let it begin at cuda.grid(1), and go on in steps of cuda.gridsize(1)"
SCORED = ("load_requests", "sectors_per_request", "shared_requests", "bank_conflicts", "atomics", "lanes")


def reference_graphs() -> dict[str, Graph]:
    """Return graphs that are difficult in one way each, by name, from the smallest on."""
    far = np.array([0, 0, 65_537, 65_535, 65_535, 65_536, 69_997, 69_997, 69_998])
    ends = np.array([65_537, 69_999, 69_999, 65_536, 65_537, 65_537, 69_998, 69_999, 69_999])
    middle = np.array([5, 5, 6, 6, 7]), np.array([6, 7, 7, 8, 8])
    return {
        "no vertices": empty(0),
        "no edges": empty(7),
        "one edge": Graph.from_edges([0], [1]),
        "two edges": Graph.from_edges([0, 0], [1, 2]),
        "one triangle": Graph.from_edges([0, 0, 1], [1, 2, 2]),
        "path": path(12),
        "star": star(40),
        "empty columns first and last": Graph.from_edges(*middle, 14),
        "clique": clique(36),
        "skewed": barabasi_albert(60, 4, seed=2),
        "ids past 65,536": Graph.from_edges(far, ends, 70_000),
    }


def most_rounds(graph: Graph) -> int:
    """How often a thread may go round its loops before it is taken for endless."""
    return 5_000 + 50 * graph.n + 500 * graph.m


@dataclass
class Problem:
    """Something that is wrong with a method."""

    #: "count" for a wrong number of triangles, "source" for Python that no GPU runs, "compiler", "plan" for an error
    #: before any launch, or the kind of a fault; see `tcgpu.insight.faults`
    kind: str
    says: str  #: what is wrong, in a sentence
    on: str = ""  #: the name of the first graph that showed it; with it, `graph` and `knobs`
    graph: Graph | None = None
    knobs: dict = field(default_factory=dict)
    hint: str = ""  #: the most likely reason, if one can be told
    smallest: Graph | None = None  #: the smallest graph found on which it is still wrong
    fault: Fault | None = None

    @property
    def key(self) -> tuple:
        """Problems that are alike have the same."""
        return (self.kind, self.fault.function, self.fault.line) if self.fault else (self.kind,)

    def __str__(self):
        lines = [self.says if self.fault or self.kind == "source" else f"{self.kind}: {self.says}"]
        if self.hint:
            lines.append(self.hint)
        if self.on:
            given = ", ".join(f"{name}={value}" for name, value in self.knobs.items())
            lines.append(f"seen on {self.on!r}" + (f", with {given}" if given else ""))
        if self.smallest is not None:
            lines.append(f"the smallest such graph found: {in_words(self.smallest)}")
        return "\n   ".join(lines)


@dataclass
class Report:
    """What `tcgpu.check` found: true if nothing is wrong. Prints in words, in a notebook with drawings."""

    method: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: what was tried, in sentences
    score: Table | None = None  #: with `against`: what each method asks of the memory, and its estimated time

    def __bool__(self):
        return not self.problems

    @property
    def headline(self) -> str:
        """Whether the method is right, in a sentence."""
        return f"{self.method} is right." if self else f"{self.method} is not right."

    def __repr__(self):
        numbered = [f"{k}. {problem}" for k, problem in enumerate(self.problems, 1)]
        parts = [self.headline, *numbered, *self.notes]
        if self.score is not None:
            parts.append(repr(self.score))
        return "\n".join(parts)

    def _repr_html_(self):
        parts = [element("p", element("b", self.headline))]
        if self.problems:
            parts.append(element("ol", *(element("li", _in_html(problem)) for problem in self.problems)))
        parts += [element("p", note) for note in self.notes]
        if self.score is not None:
            parts.append(self.score._repr_html_())
        return joined(*parts)

    def draw(self) -> Any:
        """Draw the smallest graph that shows the first problem; None if there is none."""
        graph = next((problem.smallest for problem in self.problems if problem.smallest is not None), None)
        return None if graph is None else drawn(graph)


def in_words(graph: Graph) -> str:
    """A graph in words: its size, and its edges if they are few."""
    ends = sorted(zip(graph.col_of.tolist(), graph.row_idx.tolist(), strict=True))
    edges = ": " + " ".join(f"{u}-{v}" for u, v in ends) if 0 < len(ends) <= 12 else ""
    return f"{_many(graph.n, 'vertex', 'vertices')}, {_many(graph.m, 'edge')}{edges}"


def _many(number, one, many=None):
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def drawn(graph: Graph) -> Any:
    """A picture of a small graph with its triangles, the vertices in a circle, clockwise from the top.

    None of one that is too large or has no edges.
    """
    with needing("a drawing of a graph"):
        from tcgpu import plots

    if graph.m == 0 or graph.n > 100:
        return None
    edges = set(zip(graph.col_of.tolist(), graph.row_idx.tolist(), strict=True))
    triangles = [(a, b, c) for a, b in edges for c in range(b + 1, graph.n) if {(a, c), (b, c)} <= edges]
    angles = 2 * np.pi * np.arange(graph.n) / graph.n
    circle = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    figure = plots.draw_graph(graph, triangles=triangles, positions=circle)
    figure.axes[0].set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    size = max(2.5, graph.n / 12)
    figure.set_size_inches(size, size)
    return figure


def _in_html(problem):
    """A problem, with a drawing of its graph where there is Matplotlib."""
    pictures = []
    with suppress(MissingPackage):
        if problem.smallest is not None and (figure := drawn(problem.smallest)):
            from tcgpu.figures import svg

            pictures.append(Markup("".join(svg(figure).decode().partition("<svg")[1:])))
    return joined(*str(problem).splitlines(), *pictures, between=Markup("<br>"))


def check(
    method: str | Method,
    against: str | Method | Iterable[str | Method] | None = None,
    *,
    order: Order | None = None,
    engine: Literal["gpu", "webgpu"] | None = None,
    **knobs: Any,
) -> Report:
    """Check whether a method is right: on difficult graphs, for launches of any shape, with every memory access.

    First it reads the source: Python that no GPU runs is not run. In the simulator it looks for indices out of bounds,
    reads of memory that nothing has written, data races and missing atomic operations, barriers that not all threads
    reach, overflow and wrong counts; in the compiled code, for types, floating point, spilled registers; on GPUs, if
    there are any, for wrong counts. A kernel of 15 lines takes some seconds.

    Parameters
    ----------
    method
        What `tcgpu.method` made, or a name from `tcgpu.methods()`.
    against
        A method, or several, to compare it with: the report then has a score.
    order
        How the vertices are numbered; without it, as the method's source did.
    engine
        Which GPU it runs on after the simulator: "gpu" or "webgpu", which may be a software device; without it, on
        each that is there and is hardware.
    **knobs
        Knobs of the method that have one value. The launch shapes are tried with `threads` and `blocks` if the method
        has these knobs and they are not given.
    """
    chosen = choose(method, None, order, knobs)
    if "sim" not in chosen.engines:
        raise MethodError(f"method {chosen.name!r} has no kernels: there is nothing to check in the simulator")
    if engine is not None:
        check_engine("a check, after the simulator,", engine, ("gpu", "webgpu"))
        engine_of(chosen, engine)
    report = Check(chosen, order, knobs).run([engine] if engine else hardware.gpus())
    if against is not None and report:
        report.score = score([chosen, *as_list(against)], order, {chosen.name: knobs})
    elif against is not None:
        report.notes.append("No score: first it has to be right.")
    return report


class Check:
    """One check of a method, on graphs by name; `report` is what it has found so far."""

    def __init__(self, method: Method, order: str | None, knobs: dict, graphs: dict[str, Graph] | None = None):
        self.method, self.order, self.knobs = method, order, knobs
        self.graphs = reference_graphs() if graphs is None else graphs
        self.report = Report(method.name)
        self.runs = 0
        self.refused: set[str] = set()
        self.deadline = math.inf

    def run(self, engines: list[str]) -> Report:
        """Check all that there is, in the end on GPUs, by the names of their engines."""
        self.read_source()
        if self.report.problems:
            self.report.notes.append("Not run: no GPU runs this source.")
            return self.report
        self.run_in_simulator()
        for problem in self.report.problems:
            if problem.graph is not None:
                problem.smallest = self.smallest(problem, problem.graph)
        self.compile()
        self.run_on_gpus(engines)
        return self.report

    def read_source(self) -> None:
        """Look for what no kernel can do, although Python runs it; say where annotations are not read."""
        for kernel, arrays in self.kernels():
            mistakes = mistakes_in(kernel.py_func, arrays)
            self.report.problems += [Problem("source", mistake) for mistake in mistakes[:MOST_PROBLEMS]]
            if kernel.py_func.__annotations__:
                self.report.notes.append(
                    f"The annotations of {kernel.__name__} are not read: the types are those of the arguments."
                )

    # ------------------------------------------------------------------------------------------------- the simulator

    def run_in_simulator(self) -> None:
        """Count every graph with every shape."""
        for name, graph in self.graphs.items():
            shapes = self.shapes()
            for shape in shapes[:2] if graph.n > 1000 else shapes:
                if time.monotonic() > self.deadline or len(self.report.problems) >= MOST_PROBLEMS:
                    return
                found = self.problems(graph, self.knobs | shape)
                if shape is shapes[0]:
                    is_right = not found
                elif is_right and self.threads(shape) < max(graph.n, graph.m):
                    found = [replace(each, hint=TOO_FEW_THREADS) if each.kind == "count" else each for each in found]
                self.add(found, name, graph, self.knobs | shape)
        if not self.runs and self.refused:
            self.report.problems.append(Problem("plan", "nothing was counted. " + " ".join(sorted(self.refused))))
            self.refused.clear()
        if not self.report.problems:
            shapes = _many(len(self.shapes()), "launch shape")
            self.report.notes.append(
                f"In the simulator: {self.runs} counts of {_many(len(self.graphs), 'graph')} with {shapes}, no fault."
            )
        self.report.notes += sorted(self.refused)

    def shapes(self) -> list[dict]:
        """The values of `threads` and `blocks` to try: those of the method, with fewer blocks, then SHAPES."""
        free = [name for name in ("threads", "blocks") if name in self.method.knobs and name not in self.knobs]
        own = {}
        blocks, threads = self.method.knobs.get("blocks"), self.knobs.get("threads", self.method.knobs.get("threads"))
        if "blocks" in free and isinstance(blocks, int) and isinstance(threads, int):
            own["blocks"] = max(1, min(blocks, MOST_THREADS // threads))
        found: list[dict] = [own, *({name: shape[name] for name in free} for shape in SHAPES)]
        return [shape for k, shape in enumerate(found) if shape not in found[:k]]

    def threads(self, shape: dict) -> int:
        """How many threads a launch of this shape has, if the method has both knobs."""
        known = self.method.knobs | self.knobs | shape
        return math.prod(known.get(name) or 1 for name in ("threads", "blocks"))

    def add(self, problems: Iterable[Problem], name: str, graph: Graph, knobs: dict) -> None:
        """Add problems to the report, unless it has such ones."""
        known = {problem.key for problem in self.report.problems}
        for problem in problems:
            if problem.key not in known and len(self.report.problems) < MOST_PROBLEMS:
                problem.on, problem.graph, problem.knobs = name, graph, knobs
                self.report.problems.append(problem)
                known.add(problem.key)
                patience = 0 if problem.kind == "endless" else PATIENCE
                self.deadline = min(self.deadline, time.monotonic() + patience)

    def problems(self, graph: Graph, knobs: dict) -> list[Problem]:
        """Count a graph in the simulator; returns what is wrong."""
        with on_engine(self.method, "sim", math.inf):
            try:
                prepared = self.method.prepare(graph, self.order)
                plan = self.method.plan(prepared, **knobs)
                if plan.simulated_seconds > LONGEST_RUN:
                    self.refused.add("Some counts would take the simulator too long, and were left out.")
                    return []
                checked = CheckedRun(plan, most_rounds(graph))
            except TcgpuError as error:  # it refuses this graph or these knobs
                self.refused.add(f"It refuses some graphs or shapes: {error}.")
                return []
            except Exception as error:
                return [Problem("plan", f"{type(error).__name__}: {error}")]
            self.runs += 1
            count = checked.run_all()
        found = [Problem(fault.kind, str(fault), fault=fault) for fault in checked.faults]
        found.sort(key=lambda problem: problem.kind == "unwritten")  # often only the trace that a race leaves
        expected = cpu.count(graph)
        if count != expected and not any(fault.ends for fault in checked.faults):
            says = f"it counts {_many(count, 'triangle')}, there are {expected:,}"
            by_each = count == expected * self.threads(knobs) > expected
            found.append(Problem("count", says, hint=EACH_COUNTS_ALL if by_each else ""))
        return found

    # -------------------------------------------------------------------------------------------------- smaller graphs

    def smallest(self, problem: Problem, graph: Graph) -> Graph:
        """The smallest graph found on which a problem is still there; its sentence becomes the one on that graph."""
        until = time.monotonic() + SHRINKING

        def same(graph):
            return next((each for each in self.problems(graph, problem.knobs) if each.key == problem.key), None)

        graph = shrunk(graph, lambda smaller: same(smaller) is not None, until)
        found = same(graph)
        if found is not None:
            problem.says, problem.fault = found.says, found.fault
        return graph

    # ------------------------------------------------------------------------------------------- the compiler, the GPUs

    def compile(self) -> None:
        """Compile the kernels for each compute capability; without one, say why not."""
        missing = kernel_compiler.why_missing()
        if any(problem.kind == "error" for problem in self.report.problems):
            missing = "first there is an error to mend"
        if missing:
            self.report.notes.append(f"Not compiled: {missing}.")
            return
        for kernel, _ in self.kernels():
            found = []
            for capability in CAPABILITIES:
                try:
                    found += [
                        kernel_compiler.facts(kernel.py_func, signature, capability, kernel.most_threads)
                        for signature in kernel.signatures
                    ]
                except Exception as error:
                    says = f"{kernel.__name__} does not compile: {_compiler_says(error)}"
                    self.report.problems.append(Problem("compiler", says))
                    break
            else:
                self.report.notes.append(compiled_in_words(kernel.__name__, found))

    def kernels(self) -> list[tuple[runtime.Kernel, set[str]]]:
        """The kernels of the method's plan of some graph, and which of their parameters are arrays."""
        found = {}
        for name in ("skewed", "one triangle"):
            try:
                with runtime.using("sim"):
                    plan = self.method.plan(self.method.prepare(self.graphs[name], self.order), **self.knobs)
            except Exception:
                continue  # reported already, where it ran in the simulator
            for step in (step for step in (*plan.setup, *plan.steps) if isinstance(step, Step)):
                named = zip(inspect.signature(step.kernel.py_func).parameters, step.args, strict=True)
                found[step.kernel.__name__] = step.kernel, {name for name, arg in named if isinstance(arg, str)}
        return list(found.values())

    def run_on_gpus(self, engines: list[str]) -> None:
        """Compare the counts of GPUs, by the names of their engines, if nothing is wrong so far."""
        if not engines:
            self.report.notes.append(f"Not run on a GPU: {runtime.REASON}.")
        elif self.report.problems:
            self.report.notes.append("Not run on the GPU, where a fault may spoil the process.")
        else:
            for engine in engines:
                self.run_on_gpu(engine)

    def run_on_gpu(self, engine: str) -> None:
        """Count every graph with every shape on the GPU of an engine. What it cannot run is said, and no problem."""
        device = hardware.webgpu_device() if engine == "webgpu" else None
        where = f"{device.name} by WebGPU" if device else "the GPU"
        runs, refusal = 0, ""
        for name, graph in self.graphs.items():
            expected = cpu.count(graph)
            for shape in [{}, *self.shapes()]:
                try:
                    with on_engine(self.method, engine):
                        plan = self.method.plan(self.method.prepare(graph, self.order), **self.knobs | shape)
                        count = plan.count()
                except TcgpuError as error:
                    refusal = refusal or str(error)
                    continue
                runs += 1
                if count != expected:
                    says = f"on {where} it counts {_many(count, 'triangle')}, there are {expected:,}"
                    self.add([Problem("count", says)], name, graph, self.knobs | shape)
        if not runs:
            self.report.notes.append(f"Not run on {where}: {refusal}.")
        elif not self.report.problems:
            self.report.notes.append(f"On {where}: {runs} counts, all right.")


def _compiler_says(error):
    """What a compiler's error says in a line, and the place: the last error that it quotes, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    quoted = [line.partition("Error: ")[2] for line in lines if "Error: " in line and "Error: Failed in" not in line]
    said = [line for line in lines if not line.startswith(("Failed in", "-", "["))]
    places = [note.removeprefix("in ") for note in getattr(error, "__notes__", ()) if note.startswith("in File")]
    calls = [f"there is no {line[4:]} for these types" for line in lines if line.startswith(">>> ")]
    says = quoted[-1] if quoted else [*calls, *said, type(error).__name__][0]
    return " ".join([says, *(f"({place})" for place in places)])


def compiled_in_words(name: str, found: list) -> str:
    """What the compiler made of a kernel for all compute capabilities, in a sentence."""
    registers = max(each.registers for each in found)
    says = [f"{registers} registers" + (", which leaves room for few threads" if registers > MOST_REGISTERS else "")]
    spilled = max(each.spilled for each in found)
    says.append(f"{spilled} bytes spilled to memory" if spilled else "nothing spilled")
    floats = sorted({kind for each in found for kind in each.floats})
    if floats:
        says.append(f"floating point of type {' and '.join(floats)}" + (", which is slow" if "f64" in floats else ""))
    capabilities = ", ".join(f"{major}.{minor}" for major, minor in CAPABILITIES)
    return f"{name} compiled for {capabilities}: {', '.join(says)}."


def shrunk(graph: Graph, is_wrong: Callable[[Graph], bool], until: float) -> Graph:
    """Take vertices, then edges, from a graph as long as it stays wrong, until a time of `time.monotonic`."""
    for parts, only in ((lambda graph: graph.n, _with_vertices), (lambda graph: graph.m, _with_edges)):
        size = parts(graph)
        while size >= 1 and time.monotonic() < until:
            begin, removed = parts(graph), False
            while begin > 0 and time.monotonic() < until:  # from the end: where the numbers of others stay
                begin = max(0, begin - size)
                kept = np.ones(parts(graph), bool)
                kept[begin : begin + size] = False
                tried = only(graph, kept)
                if is_wrong(tried):
                    graph, removed = tried, True
            if size > 1 or not removed:
                size //= 2
    return graph


def _with_vertices(graph, kept):
    number = np.cumsum(kept) - 1
    inside = kept[graph.col_of] & kept[graph.row_idx]
    return Graph.from_edges(number[graph.col_of[inside]], number[graph.row_idx[inside]], int(kept.sum()))


def _with_edges(graph, kept):
    return Graph.from_edges(graph.col_of[kept], graph.row_idx[kept], graph.n)


def score(methods: list[str | Method], order: Order | None = None, knobs: dict | None = None) -> Table:
    """Return a row per method: what it asks of the memory for one graph, how busy its lanes are, its estimated time."""
    graph = barabasi_albert(120, 5, seed=3)
    rows = []
    for each in methods:
        chosen = choose(each)
        own = (knobs or {}).get(chosen.name, {})
        totals: Any = trace(graph, chosen, order=order, max_seconds=math.inf, **own).totals()
        idle = round(100 * (1 - totals["lanes"] / 32))
        measures = {name: totals[name] for name in SCORED if name != "lanes"}
        rows.append({"method": chosen.name} | measures | {"idle_lanes_%": idle, "estimated_us": totals["estimated_us"]})
    return Table(rows, *rows[0])
