"""One verb over many workers: any `concurrent.futures` executor does the parts, this adds up what they find.

The executor's own scheduling balances the load: there are more parts than workers, and whoever is free takes the next.
Where the workers have GPUs that hold the whole graph, it is one hand of a deal for each, by the fastest method.

A graph is not sent along with its parts. A worker that does not know it maps it: from the graph's own folder if it was
read from one, else from a file without a name that is there while the verb runs. A worker on another machine can open
neither, and is sent the columns. It then keeps the graph for the next part, and for the next count.

A worker that dies does not change the answer: every part is added once, whoever has done it and however often. Dask
gives its parts to others. The pools that are named by a str are started anew, and go on with the parts that are left.
Any other process pool is beyond use from then on, and `WorkerLost` says so; under MPI the whole job ends.
"""

import importlib
import inspect
import uuid
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing
from dataclasses import replace
from queue import SimpleQueue
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu import cpu
from tcgpu.distributed import worker
from tcgpu.distributed.crew import crew
from tcgpu.distributed.cut import MANY_PARTS, Deal, slices
from tcgpu.distributed.journal import fingerprint, journal
from tcgpu.distributed.shared_graph import Share
from tcgpu.distributed.work import method_of, opened
from tcgpu.distributed.worker import Missing, Task, Unfit
from tcgpu.errors import GraphError, WorkerLost
from tcgpu.progress import progress
from tcgpu.registry import METHODS, choose, on_engine

PER_WORKER = 8  # parts: the last ones then keep the others waiting for a sixteenth of the time, in the mean
RENEWALS = 3  # how often our own pools are started anew within a verb


class DoesNotFit(GraphError):
    """A worker has no room for a whole graph on its GPU."""


# --------------------------------------------------------------------------------------------------------------- verbs


def count(graph, executor, *, method=None, engine=None, order=None, parts=None, show=None, resume=None,
          max_seconds=None, **knobs):  # fmt: skip
    """How many triangles `graph` has; see `tcgpu.count`. parts: how many; show: the wish for a progress bar."""
    graph = opened(graph)
    with crew(executor) as workers:
        wish = {"method": method, "engine": engine, "knobs": knobs}
        named = "adaptive" if method is None and _fast(workers, engine) else method
        if named is not None:
            _check_simulated(choose(named, engine, order, knobs), graph, engine, order, knobs, workers, max_seconds)
        if named is not None and not resume and _deals(choose(named, engine, order, knobs)):
            try:
                return _dealt_out(workers, graph, parts, show, wish | {"method": named, "order": order})
            except DoesNotFit:
                if method is not None:
                    raise
        elif named is not None:
            method_of(method, engine, knobs)
        own = _ordered(graph, order)
        natively = named in (None, "cpu") and not resume  # a journal's parts are the same for every engine
        cut = slices(own, _number(parts, MANY_PARTS if resume else PER_WORKER * workers.workers),
                     work=cpu.edge_work if natively else None)  # fmt: skip
        return _counted(workers, own, cut, resume, show, wish)


def triangles(graph, executor, *, order=None, parts=None, show=None, max_seconds=None, **wish):
    """How many triangles each vertex is in: int64, one a vertex."""
    graph = opened(graph)
    own = _ordered(graph, order)
    tallied = _tallied(own, executor, "triangles", own.n, parts, show, max_seconds, wish)
    return tallied if own is graph else tallied[own.rank]


def support(graph, executor, *, order=None, parts=None, show=None, max_seconds=None, **wish):
    """How many triangles each edge is in: int64, one an edge, in the order of `graph.edges()`."""
    graph = opened(graph)
    own = _ordered(graph, order)
    tallied = _tallied(own, executor, "support", own.m, parts, show, max_seconds, wish)
    return cpu.carried_back(graph, own, tallied)


def engine_and_method(executor, method=None, engine=None):
    """What an executor's workers count with, as far as can be said before they have."""
    with crew(executor) as workers:
        method = method or ("adaptive" if _fast(workers, engine) else "cpu")
        return "cpu" if method == "cpu" else engine or workers.engine(), method


def found(graph, executor, parts, *, verb="count", **wish):
    """What each part has, as it comes: Found after Found. Parts are of the graph in the order that it has."""
    with crew(executor) as workers, closing(Errand(workers, graph, verb, **wish).founds(parts)) as founds:
        yield from founds


def dealt(graph, of):
    """All hands of a deal, each with its share of the work."""
    return [Deal(index, of, graph.m / of) for index in range(of)]


def _number(parts, usual):
    """How many parts there are to be; GraphError for a wish that none can be."""
    if parts is None:
        return usual
    if isinstance(parts, bool) or not isinstance(parts, (int, np.integer)) or parts < 1:
        raise GraphError(f"a graph is cut into 1 part or more, not {parts!r}")
    return int(parts)


def _fast(workers, engine):
    """Whether the fastest method is one for these workers: it wants a GPU, or is asked for in the simulator."""
    return engine == "sim" or engine in (None, "gpu") and workers.engine() == "gpu"


def _check_simulated(method, graph, engine, order, knobs, workers, max_seconds):
    """Announce a count by simulators that takes long; GraphError if it takes longer than it may."""
    if method.engines != ("cpu",) and (engine or workers.engine()) == "sim":
        from tcgpu.kernels import simulated

        with on_engine(method, "sim", max_seconds):
            plan = method.plan(method.prepare(graph, order), **knobs)
            simulated.check(method.name, plan.simulated_seconds / workers.workers)


def _deals(method):
    """Whether a Method deals out what it does on a whole graph."""
    return "deal" in inspect.signature(importlib.import_module(method.module).plan).parameters


def _dealt_out(workers, graph, parts, show, wish):
    """The count by a method that deals: a hand for every worker."""
    order = wish["order"] or METHODS[wish["method"]].order
    hands = dealt(graph, _number(parts, workers.workers))
    return _counted(workers, graph, hands, None, show, wish | {"order": order})


def _counted(workers, graph, parts, resume, show, wish):
    with journal(resume, graph, "count", parts) as kept, _bar(show, graph, parts) as bar:
        bar.add(sum(part.work for part in kept.done))
        todo = [part for part in parts if part not in kept.done]
        with closing(Errand(workers, graph, "count", **wish).founds(todo)) as founds:
            for found in founds:
                kept.add(found)
                bar.add(found.part.work)
        return sum(kept.done.values())


def _tallied(own, executor, verb, length, parts, show, max_seconds, wish):
    method = method_of(**wish)
    total = np.zeros(length, np.int64)
    with crew(executor) as workers:
        _check_simulated(method, own, wish.get("engine"), None, {}, workers, max_seconds)
        cut = slices(own, _number(parts, PER_WORKER * workers.workers))
        with _bar(show, own, cut) as bar, closing(Errand(workers, own, verb, **wish).founds(cut)) as founds:
            for found in founds:
                for begin, values in found.values:
                    total[begin : begin + values.size] += values
                bar.add(found.part.work)
    return total


def _ordered(graph, order):
    """The graph in the order to count it in: one that is mapped from a folder stays there if no order is named."""
    return graph if order is None and graph.folder is not None else graph.ordered(order or "auto")


def _bar(show, graph, parts):
    return progress(show, sum(part.work for part in parts), f"counting {graph.m:,} edges in {len(parts)} parts")


# -------------------------------------------------------------------------------------------------------------- errand

_known = WeakKeyDictionary()  # Graph -> what it is called among workers, and its sketch


class Errand:
    """The parts of one verb, out among workers, until each has been found once."""

    def __init__(self, crew, graph, verb, *, method=None, engine=None, order=None, knobs=()):
        if graph not in _known:
            _known[graph] = uuid.uuid4().hex, fingerprint(graph, whole=False)
        token, sketch = _known[graph]
        worker.at_home(token, graph)
        source = None if graph.folder is None else str(graph.folder)
        self.task = Task(token, sketch, uuid.uuid4().hex, verb, method, engine, order, crew.cores, dict(knobs),
                         worker.here(), source)  # fmt: skip
        self.crew, self.graph = crew, graph
        self.left = {}  # parts that are not found
        self.out = {}  # future -> the part that it is for
        self.came = SimpleQueue()  # futures that are done
        self.lost = 0  # how often workers had to be started anew
        self.columns = None

    def founds(self, parts):
        """Yield what each part that is not empty has, the one with most work first if they are done in that order."""
        self.left = {part: None for part in sorted(parts, key=lambda part: -part.work) if not part.empty}
        with Share(self.graph) as share:
            try:
                while self.left:
                    if not self.out:  # at first; later, where two workers have found the same hand
                        self._send(self.left)
                    answer = self._answer()
                    if isinstance(answer, Missing):
                        self._provide(share, answer)
                    elif isinstance(answer, Unfit):
                        raise DoesNotFit(answer.reason)
                    elif answer is not None and answer.part in self.left:
                        del self.left[answer.part]
                        yield answer
            finally:
                for future in self.out:
                    future.cancel()

    def _send(self, parts, columns=None):
        try:
            for part in list(parts):
                future = self.crew.submit(self.task, part, columns)
                self.out[future] = part
                future.add_done_callback(self.came.put)
        except BrokenExecutor as error:
            self._go_on(error)

    def _answer(self):
        """What the next future that is done came to; None if that is no answer."""
        future = self.came.get()
        if self.out.pop(future, None) is None:  # one of a pool that is no more
            return None
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            self._go_on(error)
        except Exception as error:
            if not type(error).__module__.startswith("distributed."):
                raise
            self._go_on(error)

    def _provide(self, share, missing):
        """Send a part once more with what its worker lacks: a source to map; if it could not map that, the columns."""
        if self.task.source is None:
            self.task = replace(self.task, source=share.source())
        if self.task.source == missing.tried:
            self.columns = self.columns or self.crew.handed(share.columns())
            self._send([missing.part], self.columns)
        else:
            self._send([missing.part])

    def _go_on(self, error):
        """After the death of a worker: all that is left to new workers; WorkerLost where there will be none."""
        self.out.clear()
        self.lost += 1
        if self.lost <= RENEWALS and self.crew.renew():
            self._send(self.left)
            return
        raise WorkerLost(
            f"a worker died (ended by someone, or out of memory), and {type(self.crew.executor).__name__} goes on no "
            f"more: {len(self.left)} parts are not counted; resume=FILE keeps those that are. {error}"
        ) from error
