"""What a worker does and keeps: any process or thread that an executor has, on this machine or on another.

A `Task` names its graph by a token. A worker keeps the last graph that it had, on its device if it has one, from part
to part and from count to count; of one that it does not know it answers `Missing` and gets the part again with a way to
come by it: first the path of a folder, or of a shared file, which it maps; where it cannot, the columns themselves.
"""

import math
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import current_process
from weakref import WeakValueDictionary

from tcgpu import formats
from tcgpu.distributed.cut import Deal, Part
from tcgpu.distributed.journal import fingerprint
from tcgpu.distributed.shared_graph import SharedFile
from tcgpu.distributed.work import Found, count_part, support_part, triangles_part
from tcgpu.engines.choice import ENGINE, visible_gpus
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import GraphError, TcgpuError
from tcgpu.graph import Graph
from tcgpu.registry import METHODS, on_engine

VERBS = {"count": count_part, "support": support_part, "triangles": triangles_part}
# where a starter of processes says which one of its machine a process is: Open MPI, MPICH and Intel MPI, Slurm, PALS
LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PALS_LOCAL_RANKID")


@dataclass(frozen=True)
class Task:
    """What there is to do with each part. It goes with every one of them, so it is small."""

    graph: str  # the token of the graph
    sketch: str  # its fingerprint: on another machine a folder of the same name may be of another graph
    count: str  # which one of all counts this is
    verb: str  # of VERBS; of a Deal "count", or "time" to have its kernels timed
    method: str | None
    engine: str | None
    order: str | None  # that a Deal is counted in; Parts are of the graph as it comes
    cores: int  # for the native engine
    knobs: dict
    home: tuple  # process and GPUs of who asks; see `gpu`
    source: str | SharedFile | None = None  # what a worker of the same machine maps; a str is the path of a folder


@dataclass(frozen=True)
class Missing:
    """The answer of a worker that does not have the graph."""

    part: Part | Deal
    tried: str | SharedFile | None  # the source that it could not map


@dataclass(frozen=True)
class Unfit:
    """The answer of a worker that cannot count a Deal, for which the whole graph has to be on one GPU."""

    part: Deal
    reason: str


def do(task, part, columns=None):
    """Count a part: Found, Missing or Unfit. columns: the graph, for who cannot come by it otherwise."""
    number = gpu(task)
    held = _have(task, number, columns)
    if held is None:
        return Missing(part, task.source)
    if isinstance(part, Deal):
        return held.hand(task, part)
    wish = {"method": task.method, "engine": task.engine, "cores": task.cores, **task.knobs}
    if number is None:
        return VERBS[task.verb](held.graph, part, **wish)
    with held.lock:
        return VERBS[task.verb](held.graph, part, **wish)


def engine_here():
    """Which engine a worker has for kernels."""
    return ENGINE


# ------------------------------------------------------------------------------------------------------ what it keeps


@dataclass
class Held:
    """A graph as one worker has it, and of one Deal everything that a count needs, allocated and set up."""

    token: str
    graph: Graph
    lock: threading.Lock = field(default_factory=threading.Lock)
    columns: object = None  # what the method's `prepare` made of the graph
    planned: tuple = ()  # of what `plan` is: method, order, knobs, Deal
    plan: object = None
    given: str = ""  # the count that the Deal was last counted for

    def hand(self, task, deal):
        """Count a Deal. It is the one that is planned already, if that was not counted for this task before: which one
        a worker counts is all the same, to set up another one is work."""
        method = METHODS[task.method]
        wish = task.method, task.order, tuple(sorted(task.knobs.items())), deal.of
        with self.lock, on_engine(method, task.engine, math.inf):  # who asks has checked how long it takes
            if self.planned[:-1] == wish and self.given != task.count:
                deal = self.planned[-1]
            if self.planned != (*wish, deal):
                reason = self._set_up(method, task, deal)
                if reason:
                    return Unfit(deal, reason)
                self.planned = *wish, deal
            self.given = task.count
            timed = self._by_events if task.verb == "time" else self._by_clock
            triangles, seconds = timed()
            return Found(deal, triangles, seconds, task.engine or ENGINE)

    def _by_clock(self):
        """Count what is set up; what it came to, and the seconds that took."""
        begin = time.perf_counter()
        self.plan.reset()
        self.plan.launch()
        return self.plan.result(), time.perf_counter() - begin

    def _by_events(self):
        """The same; the seconds that the kernels kept the device busy."""
        from tcgpu.engines import runtime

        ms = runtime.elapsed_ms(self.plan.launch, self.plan.reset)
        return self.plan.result(), ms / 1e3

    def _set_up(self, method, task, deal):
        """Plan and allocate a Deal; why that cannot be, or None."""
        if self.planned[:2] != (task.method, task.order):
            self.columns = None
        self.planned, self.plan = (), None
        try:
            if self.columns is None:
                self.columns = method.prepare(self.graph, task.order)
            plan = method.plan(self.columns, deal=(deal.index, deal.of), **task.knobs)
        except MemoryError as error:
            self.columns = None
            return str(error)
        try:
            plan.allocate()
        except (MemoryError, TcgpuError) as error:  # the latter by its own estimate
            plan.free()
            return str(error)
        self.plan = plan
        return None


_held = {}  # one for each GPU that this process uses, under its number; None is that of no GPU
_at_home = WeakValueDictionary()  # token -> Graph: threads of the process that asks have its graphs at once
_holding = fork_safe_lock()


def _release_held():
    """In a forked child no thread of the parent counts any more."""
    for held in _held.values():
        held.lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_held)


def at_home(token, graph):
    """Let the workers that are threads of this process have a graph."""
    _at_home[token] = graph


def forget():
    """Let go of every graph that this process keeps."""
    _held.clear()


def _have(task, number, columns):
    """What this worker keeps of the task's graph, having come by it if need be; None if it cannot."""
    with _holding:
        held = _held.get(number)
        if held is None or held.token != task.graph:
            graph = _come_by(task, columns)
            if graph is None:
                return None
            _held[number] = held = Held(task.graph, graph)
        return held


def _come_by(task, columns):
    graph = columns if columns is not None else _at_home.get(task.graph)
    if graph is not None or task.source is None:
        return graph
    others = (held.graph for held in _held.values() if held.token == task.graph)
    graph = next(others, None) or _mapped(task.source)
    return graph if graph is not None and fingerprint(graph, whole=False) == task.sketch else None


def _mapped(source):
    """The Graph of a task's source; None if it is not there."""
    try:
        return source.open() if isinstance(source, SharedFile) else formats.open_folder(source)
    except (OSError, GraphError):
        return None


# ---------------------------------------------------------------------------------------------------------- its own GPU


_seat = threading.local()
_seats = Counter()  # how many threads of this process have taken each GPU


def here():
    """What a worker is told of the process that asks: which one it is, and which GPUs it sees."""
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def gpu(task):
    """The number of the GPU that this worker is bound to, from its first task on; None if it is to use none."""
    if ENGINE != "gpu" or task.engine in ("cpu", "sim") or task.method == "cpu":
        return None
    if not hasattr(_seat, "gpu"):
        from tcgpu.engines import runtime

        _seat.gpu = _own_gpu(task.home)
        runtime.use_gpu(_seat.gpu)
    return _seat.gpu


def _own_gpu(home):
    """Which one of the GPUs that this process sees is to be this worker's.

    Who has been shown other GPUs than the process that asks was bound by whoever started it: to the first one that it
    sees. Threads of one process take the GPUs in turn. Processes go by their number on this machine.
    """
    gpus = visible_gpus()
    process, visible = home
    if process == os.getpid():
        with _holding:
            number = min(range(gpus), key=_seats.__getitem__)
            _seats[number] += 1
            return number
    bound = visible != os.environ.get("CUDA_VISIBLE_DEVICES")
    return 0 if bound else _number_here() % gpus


def _number_here():
    """Which one of its kind this process is on its machine, as those say that started it; else 0."""
    for name in LOCAL_RANKS:
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return (getattr(current_process(), "_identity", None) or (1,))[0] - 1


def same(columns):
    """The columns themselves: what a scheduler keeps, and can make again, is the result of a task."""
    return columns
