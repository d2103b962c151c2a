"""Counting one part of a graph; and what the workers of an executor do, threads or processes on any machine.

An executor's workers are sent a `Task` with each part. It names the graph by a token. A worker keeps its last graph, on
its device if it has one, from part to part and from count to count. If it does not have the graph, it is sent the part
again with a source: a folder or shared file, which it maps, or if it can't, the graph itself. All of this can be
pickled.
"""

import math
import os
import threading
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import current_process
from weakref import WeakValueDictionary

import numpy as np

from tcgpu import cpu, registry
from tcgpu.declarations import CUDA, Method
from tcgpu.distributed.cut import Part, PartResult
from tcgpu.engines.choice import ENGINE, visible_gpus
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import GraphError, MethodError, TcgpuError
from tcgpu.graph import Graph, as_graph

METHODS = ("warp_search", "cpu")  # those that count single edges, and so any part
SETTLED_SECONDS = 2  # file systems note times in steps of up to so many
DTYPES = (np.uint8, np.uint16, np.uint32, np.int64)  # of values that are returned
# Variables that hold a process's number on its machine: of Open MPI, MPICH and Intel MPI, Slurm, PALS
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PALS_LOCAL_RANKID")


def count_part(graph, part: Part, verb: str = "count", *, method: str | None = None,
               engine: str | None = None, cores: int | None = None, **knobs) -> PartResult:  # fmt: skip
    """Count the triangles of one part of a graph, in the order that the graph has.

    Parameters
    ----------
    graph : Graph, or path of one
        The last path stays open.
    part : Part
        Of edges, for "warp_search" or "cpu"; of tasks, for a method that distributes these: "adaptive".
    verb : str
        "count"; "support" and "triangles" also return the triangles of edges at each edge, or vertex, in `values`.
    method, engine, **knobs
        As in `tcgpu.count`.
    cores : int, optional
        The most that the engine "cpu" may use; by default all.
    """
    if part.of_tasks:
        chosen = registry.choose(method or "adaptive", engine, None, knobs)
    else:
        chosen = method_of(method, engine, knobs)
    with registry.on_engine(chosen, engine):
        begin = time.perf_counter()
        triangles, *more = _count(opened(graph), part, verb, chosen, cores, knobs)
        return PartResult(part, triangles, time.perf_counter() - begin, registry.engine_of(chosen, engine), *more)


def _count(graph, part, verb, method, cores, knobs):
    """(triangles, in how many pieces the part was counted, values)."""
    if part.of_tasks:
        return plan_of_part(method, method.prepare(graph), part, knobs).count(), 1, ()
    if method.engines == ("cpu",):
        if verb == "count":
            return cpu.count(graph, part, cores), 1, ()
        values, pieces = cpu.tally(graph, verb == "support", part, cores), 1
    else:
        from tcgpu.distributed import device_parts

        if verb == "count":
            return *device_parts.count(graph, part, **knobs), ()
        values, pieces = device_parts.tally(graph, part, verb == "support")
    values = tuple(_compact(*each) for each in values)
    return sum(int(array.sum(dtype=np.int64)) for _, array in values) // 3, pieces, values


def plan_of_part(method, graph, part, knobs):
    """The plan of a part of tasks; the only one of a graph is the graph, which every method counts."""
    which = {"share": (part.index, part.of)} if part.of > 1 else {}
    return method.plan(graph, **which, **knobs)


def sum_values(results, length: int) -> np.ndarray:
    """Add up the `values` of PartResults: int64, one for each of `length` edges or vertices."""
    total = np.zeros(length, np.int64)
    for result in results:
        add_values(total, result)
    return total


def add_values(total, result):
    for first, values in result.values:
        total[first : first + values.size] += values


def method_of(method=None, engine=None, knobs=()):
    """The Method that counts a Part; GraphError if the one that is named does not."""
    registry.check_engine("a count in parts", engine, (*CUDA, "cpu"))
    if method is None:
        method = "warp_search" if engine in CUDA or engine is None and ENGINE == "gpu" else "cpu"
    chosen = registry.choose(method, engine, None, knobs)
    if chosen.name not in METHODS:
        parts = ", ".join(METHODS)
        whole = "counts shares of a graph (tcgpu.distributed.shares)" if chosen.shares else "counts whole graphs"
        raise MethodError(f"method {chosen.name!r} {whole}; those that count a Part are {parts}")
    return chosen


def opened(graph):
    """The Graph itself, or the one at a path: the last one stays open."""
    if not isinstance(graph, (str, os.PathLike)):
        return as_graph(graph)
    from tcgpu import formats
    from tcgpu.formats.binary import file_state

    path = os.path.abspath(graph)
    state = file_state(path)
    changed = max((change for *_, change in state), default=0)
    if time.time_ns() - changed < SETTLED_SECONDS * 10**9:  # a change in the same step of the clock would not be seen
        return formats.read(path)
    return _opened(path, os.stat(path).st_dev, state)


@lru_cache(maxsize=1)
def _opened(path, device, state):
    from tcgpu import formats

    return formats.read(path)


def _compact(first, array):
    """The same values for a long way: without zeros at the ends, in the smallest type."""
    nonzero = array != 0
    begin = int(nonzero.argmax()) if array.size else 0
    end = array.size - int(nonzero[::-1].argmax()) if array.size and nonzero[begin] else begin
    array = array[begin:end]
    largest = int(array.max(initial=0))
    return first + begin, array.astype(next(dtype for dtype in DTYPES if largest <= np.iinfo(dtype).max))


# ------------------------------------------------------------------------------------------- the workers of an executor


@dataclass(frozen=True)
class Task:
    """What to do with each part of one count. It is sent with every part, so it is small."""

    graph: str  # token
    count: str  # token of this count
    verb: str  # "count", "support", "triangles"; "time" is "count" of tasks, timed by the device
    method: str | Method | None
    engine: str | None
    order: str | None  # in which tasks are counted; edges are of the graph as it is sent
    cores: int  # for the engine "cpu"
    knobs: dict
    home: tuple  # `process_and_gpus` of the process that submits the task


@dataclass(frozen=True)
class Folder:
    """The folder of a graph: by now, or on another machine, its path may lead to another."""

    path: str
    state: tuple

    def graph(self):
        """The Graph in the folder; None if it is another."""
        from tcgpu.formats import open_folder

        graph = open_folder(self.path)
        return graph if graph.folder_state == self.state else None


class DoesNotFit(GraphError):
    """Raised by a worker whose GPU has no memory for a whole graph."""


def run(task, part, source=None):
    """The PartResult of a part; None if this worker does not have the graph. source: a Graph, or what maps one."""
    number = gpu(task)
    held = _find_graph(task, number, source)
    if held is None:
        return None
    if part.of_tasks:
        return held.count_tasks(task, part)
    options = {"method": task.method, "engine": task.engine, "cores": task.cores, **task.knobs}
    with nullcontext() if number is None else held.lock:
        return count_part(held.graph, part, task.verb, **options)


def forget_graphs():
    """Free the graphs that this process keeps, and their plans."""
    with _lock:
        _held.clear()


def engine_here():
    """The engine that this process has for kernels."""
    return ENGINE


@dataclass
class HeldGraph:
    """A graph that a worker keeps, and for one part of tasks a plan that is allocated and set up."""

    token: str
    graph: Graph
    lock: threading.Lock = field(default_factory=fork_safe_lock)
    prepared: object = None  # what the method's `prepare` returned
    planned: tuple = ()  # (method, order, knobs, of, Part) of the plan
    run: object = None  # of the plan, with its arrays
    counted_for: str = ""  # the token of the count that the plan was last used for

    def count_tasks(self, task, part):
        """Count a part of tasks: the one that is planned, if this count has not used it yet. Any other takes a new
        plan; which one a worker counts makes no difference."""
        method = registry.named(task.method)
        options = task.method, task.order, tuple(sorted(task.knobs.items())), part.of
        with self.lock, registry.on_engine(method, task.engine, math.inf):  # the caller has checked the time it takes
            if self.planned[:-1] == options and self.counted_for != task.count:
                part = self.planned[-1]
            if self.planned != (*options, part):
                self._make_plan(method, task, part)
                self.planned = *options, part
            self.counted_for = task.count
            triangles, seconds = self._run(timed_by_device=task.verb == "time")
            return PartResult(part, triangles, seconds, task.engine or ENGINE)

    def _run(self, timed_by_device):
        """(triangles, seconds that the plan took or, timed by the device, its kernels)."""
        if timed_by_device:
            from tcgpu.engines import runtime

            seconds = runtime.elapsed_ms(self.run.launch, self.run.reset) / 1e3
            return self.run.result(), seconds
        begin = time.perf_counter()
        self.run.reset()
        self.run.launch()
        return self.run.result(), time.perf_counter() - begin

    def _make_plan(self, method, task, part):
        """Plan and allocate a part of tasks; raises DoesNotFit."""
        if self.planned[:2] != (task.method, task.order):
            self.prepared = None
        self.planned, self.run = (), None
        try:
            if self.prepared is None:
                self.prepared = method.prepare(self.graph, task.order)
            plan = plan_of_part(method, self.prepared, part, task.knobs)
        except MemoryError as error:
            self.prepared = None
            raise DoesNotFit(str(error)) from error
        try:
            self.run = plan.allocate()
        except (MemoryError, TcgpuError) as error:  # TcgpuError: by the plan's own estimate
            raise DoesNotFit(str(error)) from error


_held: dict[int | None, HeldGraph] = {}  # by the number of the GPU; None for no GPU
of_this_process: WeakValueDictionary[str, Graph] = WeakValueDictionary()  # by token: for workers that are threads
_lock = fork_safe_lock()


def _find_graph(task, number, source):
    """The HeldGraph of the task for a GPU, which replaces that of another graph; None if the graph is missing."""
    with _lock:
        held = _held.get(number)
        if held is None or held.token != task.graph:
            graph = source if isinstance(source, Graph) else of_this_process.get(task.graph)
            if graph is None:  # it may be held for another GPU
                graph = next((kept.graph for kept in _held.values() if kept.token == task.graph), None)
            if graph is None:
                graph = _mapped(source)
            if graph is None:
                return None
            _held[number] = held = HeldGraph(task.graph, graph)
        return held


def _mapped(source):
    """The Graph of a Folder or SharedFile; None if it is missing."""
    try:
        return source and source.graph()
    except (OSError, GraphError):
        return None


# ----------------------------------------------------------------------------------------------- the GPU of each worker

_thread = threading.local()
_threads_on: Counter[int] = Counter()  # GPU number -> threads of this process that use it


def process_and_gpus():
    """This process's number, and which GPUs its environment names."""
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def gpu(task):
    """The number of the GPU that this worker uses from its first task on; None if it uses none."""
    if ENGINE != "gpu" or task.engine not in (None, "gpu") or task.method == "cpu":
        return None
    if not hasattr(_thread, "gpu"):
        use_gpu(_choose_gpu(task.home))
    return _thread.gpu


def use_gpu(number):
    """Make this worker use a GPU, by its number among those visible to the process."""
    from tcgpu.engines import runtime

    runtime.use_gpu(number)
    _thread.gpu = number


def _choose_gpu(home):
    """Which of the visible GPUs this worker uses. home: `process_and_gpus` of the process that submits the task.

    Threads of that process take its GPUs in turn. A process that sees other GPUs was given them on
    purpose and takes the first. Others go by their number on this machine.
    """
    process, visible = home
    if process == os.getpid():
        with _lock:
            number = min(range(visible_gpus()), key=_threads_on.__getitem__)
            _threads_on[number] += 1
            return number
    return 0 if visible != os.environ.get("CUDA_VISIBLE_DEVICES") else _number_here() % visible_gpus()


def _number_here():
    """This process's number among those started with it on its machine, from 0 on."""
    for name in LOCAL_RANKS:
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return (getattr(current_process(), "_identity", None) or (1,))[0] - 1
