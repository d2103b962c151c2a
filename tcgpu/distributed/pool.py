"""Counting one graph by the workers of an executor.

There are more parts than workers, and the executor gives the next part to whichever is free: that balances the load. If
the workers have GPUs that hold the whole graph, each instead counts one share of it by the fastest method.

The graph is not sent with the parts. A worker that does not have it maps it: from the graph's own folder, or else from
a file without a name that exists while the verb runs. A worker on another machine is sent the columns. It then keeps
the graph for the next part, and for the next count.

If a worker dies, the result is still right: each part is added once, however often it was counted. Dask counts the
parts again elsewhere. Our own pools are restarted and continue with the parts that are left. Any other process pool
cannot be used after that, and `WorkerLost` is raised; under MPI the whole job ends.
"""

import os
import uuid
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, closing
from functools import cache, partial
from queue import SimpleQueue
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu import cpu
from tcgpu.distributed import worker
from tcgpu.distributed.cut import MANY_PARTS, shares, slices
from tcgpu.distributed.executors import LOSSES, RESTARTS, workers_of
from tcgpu.distributed.journal import count_parts
from tcgpu.distributed.shared_arrays import shared_file
from tcgpu.distributed.worker import DoesNotFit, Task, method_of, opened
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import GraphError, MethodError, WorkerLost
from tcgpu.graph import Graph
from tcgpu.progress import underway, uninterrupted
from tcgpu.registry import BUILT_IN, choose, on_engine

PER_WORKER = 8  # parts: while the last ones are counted, the others wait for about a sixteenth of the time


def count(graph, executor, *, method=None, engine=None, order=None, parts=None, progress=None, resume=None,
          max_seconds=None, **knobs):  # fmt: skip
    """The number of triangles of a graph; see `tcgpu.count`."""
    with workers_of(executor) as workers:
        if (ENGINE == "gpu" or workers.dask) and engine in (None, "gpu") and isinstance(graph, tuple):  # raw edges
            if workers.dask:
                from tcgpu.distributed import dask_members as group
            else:
                from tcgpu.distributed import division as group

            if group.divides(graph, workers, method, order, parts, resume, knobs):
                with underway(progress, "counting on several GPUs"):
                    return sum(member.triangles for member in group.results(graph, workers, **knobs))
        graph = opened(graph)
        options = {"method": method, "engine": engine, "knobs": knobs}
        name = "adaptive" if method is None and _fast(workers, engine) else method
        if name is not None:
            chosen = choose(name, engine, order, knobs)
            _check_simulated(chosen, graph, engine, order, knobs, workers, max_seconds)
            of_user = chosen.name not in BUILT_IN
            if not resume and (of_user or chosen.shares):
                of_share = options | {"method": chosen if of_user else name, "order": order or chosen.order}
                whole = of_user and not chosen.shares  # one worker counts the whole graph
                number = _number(parts, 1 if whole else workers.number)
                if whole and number > 1:
                    raise MethodError(f"method {chosen.name!r} counts whole graphs, not {number} parts of one")
                each = shares(number, graph.m)
                try:
                    return count_parts(graph, each, Job(workers, graph, "count", **of_share).run, None, progress)
                except DoesNotFit:
                    if method is not None:
                        raise
            else:
                method_of(method, engine, knobs)
        else:
            method_of(None, engine, knobs)
        ordered = _ordered(graph, order)
        natively = name in (None, "cpu") and not resume  # the parts of a journal are the same for all engines
        number = _number(parts, MANY_PARTS if resume else PER_WORKER * workers.number)
        cut = slices(ordered, number, work=cpu.edge_work if natively else None)
        return count_parts(ordered, cut, Job(workers, ordered, "count", **options).run, resume, progress)


def tally(verb, graph, executor, *, order=None, parts=None, progress=None, max_seconds=None, **options):
    """The triangles of each vertex (verb "triangles"; see `tcgpu.triangles`) or edge ("support"): int64.

    options: method and engine.
    """
    graph = opened(graph)
    ordered = _ordered(graph, order)
    method = method_of(**options)
    total = np.zeros(ordered.m if verb == "support" else ordered.n, np.int64)
    with workers_of(executor) as workers:
        _check_simulated(method, ordered, options.get("engine"), None, {}, workers, max_seconds)
        cut = slices(ordered, _number(parts, PER_WORKER * workers.number))
        add = partial(worker.add_values, total)
        count_parts(ordered, cut, Job(workers, ordered, verb, **options).run, None, progress, add)
    if verb == "support":
        return cpu.in_edge_order_of(graph, ordered, total)
    return total if ordered is graph else total[ordered.rank]


def method_and_engine(executor, method=None, engine=None):
    """The names of the method and engine that the workers of an executor will probably use."""
    with workers_of(executor) as workers:
        method = method or ("adaptive" if _fast(workers, engine) else "cpu")
        return method, "cpu" if method == "cpu" else engine or workers.engine()


def results(graph, executor, parts, *, verb="count", **options):
    """Yield the PartResult of each part as soon as it is there. Parts are of the graph in the order that it has.

    options: method, engine, order and knobs, a dict.
    """
    with workers_of(executor) as workers, closing(Job(workers, graph, verb, **options).run(parts)) as each:
        yield from each


def _number(parts, default):
    """The number of parts; GraphError for one that is not possible."""
    if parts is None:
        return default
    if isinstance(parts, bool) or not isinstance(parts, (int, np.integer)) or parts < 1:
        raise GraphError(f"a graph is cut into 1 part or more, not {parts!r}")
    return int(parts)


def _fast(workers, engine):
    """Whether to use "adaptive" if no method is named: on GPUs, and in the simulator if engine is "sim"."""
    return engine == "sim" or engine in (None, "gpu") and workers.engine() == "gpu"


def _check_simulated(method, graph, engine, order, knobs, workers, max_seconds):
    """Announce a count by simulators that takes long; GraphError if it takes longer than it may."""
    if method.engines != ("cpu",) and (engine or workers.engine()) == "sim":
        from tcgpu.kernels import simulated

        with on_engine(method, "sim", max_seconds):
            plan = method.plan(method.prepare(graph, order), **knobs)
            simulated.check(method.name, plan.simulated_seconds / workers.number)


def _ordered(graph, order):
    """The graph in the order to count it in. One in a folder stays there if no order is named."""
    return graph if order is None and graph.folder is not None else graph.ordered(order or "auto")


_tokens: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


class Job:
    """One verb on one graph: has the workers count each part until there is one result for it."""

    def __init__(self, workers, graph, verb, *, method=None, engine=None, order=None, knobs=()):
        token = _tokens.setdefault(graph, uuid.uuid4().hex)
        worker.of_this_process[token] = graph
        cores = max(1, (os.cpu_count() or 1) // workers.number)  # as if all workers were on one machine like this one
        home = worker.process_and_gpus()
        self.task = Task(token, uuid.uuid4().hex, verb, method, engine, order, cores, dict(knobs), home)
        self.workers, self.graph = workers, graph
        self.left = {}  # parts without a result
        self.submitted = {}  # future -> (part, how many of the sources its worker did not find the graph by)
        self.finished = SimpleQueue()  # futures
        self.restarts = 0

    def run(self, parts):
        """Yield a PartResult for each part that is not empty. Those with the most work are submitted first."""
        self.left = dict.fromkeys(sorted((part for part in parts if not part.empty), key=lambda part: -part.work))
        with ExitStack() as stack:
            self.sources = self._sources(stack)
            try:
                while self.left:
                    if not self.submitted:  # at first, and when two workers have counted the same tasks
                        self._submit(self.left)
                    future = self.finished.get()
                    if future not in self.submitted:  # of a pool that has been replaced
                        continue
                    part, tried = self.submitted.pop(future)
                    try:
                        with uninterrupted():
                            result = future.result()
                    except Exception as error:
                        self._restart(error)
                        continue
                    if result is None:
                        self._submit([part], tried + 1)
                    elif result.part in self.left:
                        del self.left[result.part]
                        yield result
            finally:
                self.workers.unneeded = list(self.submitted)

    def _sources(self, stack):
        """Functions that return what a worker may get the graph from, to be tried in turn. Each makes it once."""
        graph = self.graph
        sent = cache(lambda: self.workers.sendable(Graph(graph.col_ptr, graph.row_idx, validate=False)))
        if graph.folder is not None:
            folder = worker.Folder(str(graph.folder), graph.folder_state)
            return [lambda: folder, sent]
        return [lambda: None, cache(lambda: stack.enter_context(shared_file(graph))), sent]

    def _submit(self, parts, tried=0):
        try:
            for part in list(parts):
                source = self.sources[tried]()
                with uninterrupted():
                    future = self.workers.submit(self.task, part, source)
                    self.submitted[future] = part, tried
                    future.add_done_callback(self.finished.put)
        except BrokenExecutor as error:
            self._restart(error)

    def _restart(self, error):
        """Submit all parts that are left to new workers, if one died; WorkerLost if there are none."""
        if not isinstance(error, LOSSES) and not type(error).__module__.startswith("distributed."):  # Dask's own
            raise error
        self.submitted.clear()
        self.restarts += 1
        if self.restarts <= RESTARTS and self.workers.restart():
            self._submit(self.left)
            return
        raise WorkerLost(
            f"a worker died (killed, or out of memory), and {type(self.workers.executor).__name__} cannot continue: "
            f"{len(self.left)} parts are not counted; resume=FILE keeps those that are. {error}"
        ) from error
