"""Who does the parts: the workers behind an executor, whatever kind it is."""

import asyncio
import os
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from weakref import WeakKeyDictionary

from tcgpu.distributed import named_pools, worker
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import EngineError, GraphError
from tcgpu.progress import watched

PATIENCE = 20  # seconds to wait for a scheduler at an address

_engines = WeakKeyDictionary()  # executor -> the engine of its workers


class Crew:
    """An executor, and what there is to know of its workers. `name` is that of one of our own pools."""

    def __init__(self, executor, name=None):
        self.executor, self.name = executor, name
        self._ended = threading.Event()
        self._dask = getattr(executor, "_client", None)
        if self._dask is not None and self._dask.status != "running":
            raise GraphError(f"the executor's Dask client is {self._dask.status}")

    def submit(self, task, part, columns=None):
        """A future of what a worker makes of a part."""
        if self._dask is None:
            if isinstance(self.executor, ThreadPoolExecutor):
                return self.executor.submit(_until, self._ended, worker.do, task, part, columns)
            return self.executor.submit(worker.do, task, part, columns)
        wish = getattr(self.executor, "_kwargs", {}) | {"pure": False}
        future = self._dask.submit(worker.do, task, part, columns, **wish)
        return asyncio.run_coroutine_threadsafe(_gathered(self._dask, future), self._dask.loop.asyncio_loop)

    @cached_property
    def workers(self):
        """How many parts are done at a time."""
        if self._dask is not None:
            return max(1, sum(self._dask.nthreads().values()))
        told = getattr(self.executor, "num_workers", None) or getattr(self.executor, "_max_workers", None)
        return told or os.cpu_count() or 1

    @property
    def cores(self):
        """How many cores each worker may take for the native engine, if all are on one machine like this."""
        return max(1, (os.cpu_count() or 1) // self.workers)

    def engine(self):
        """Which engine a worker has for kernels, as the first one to answer says."""
        if self.executor not in _engines:
            self._check_start()
            _engines[self.executor] = self.executor.submit(worker.engine_here).result()
        return _engines[self.executor]

    def handed(self, columns):
        """Columns as an argument of `submit`. Dask keeps them among its workers, and can make them anew of its own."""
        if self._dask is None:
            return columns
        return self._dask.submit(worker.same, columns, pure=False)

    def renew(self):
        """Start workers in the place of those that have died; False where that is not ours to do."""
        if self.name is None:
            return False
        self.executor = named_pools.renewed(self.name)
        return True

    def end(self):
        """Stop the parts under way, whose results are not needed: in threads, and in processes of our own pools."""
        self._ended.set()
        if self.name is not None:
            named_pools.end(self.name)

    def _check_start(self):
        """GraphError for processes that would find the GPU in a state that no child can use."""
        context = getattr(self.executor, "_mp_context", None)
        if ENGINE == "gpu" and context is not None and context.get_start_method() == "fork":
            raise GraphError(
                "a forked process cannot use the GPU of its parent: give the pool "
                "mp_context=multiprocessing.get_context('spawn'), or take executor='gpus'"
            )


class Ended(Exception):
    """The result of a part is not needed any more."""


def _until(ended, function, *args):
    """Call the function; it is stopped within a second once the event `ended` is set."""

    def check(share):
        if ended.is_set():
            raise Ended

    with watched(check):
        return function(*args)


async def _gathered(client, future):
    """The result of a Dask future, found once more if it is lost with its worker on the way here.

    The futures of Dask's own executor take that for an error: they look at its state after they have its result.
    """
    return await client.gather(future, asynchronous=True)


@contextmanager
def crew(executor):
    """The Crew of an executor, of one of our own pools by its name, or of the Dask scheduler at an address."""
    if isinstance(executor, Executor):
        own = Crew(executor)
        try:
            yield own
        except BaseException:
            own.end()
            raise
    elif isinstance(executor, str) and "://" in executor:
        with _dask(executor) as client:
            yield Crew(client.get_executor(pure=False))
    elif executor in list(named_pools.POOLS):
        own = Crew(named_pools.pool(executor), executor)
        try:
            yield own
        except (KeyboardInterrupt, SystemExit):
            own.end()
            raise
    else:
        raise EngineError(
            f"an executor is one of concurrent.futures, or its name: {', '.join(named_pools.POOLS)}, dask://HOST:PORT; "
            f"that of a Dask client is client.get_executor(); {executor!r} is none"
        )


def _dask(address):
    try:
        from distributed import Client
    except ImportError:
        raise GraphError("Dask is not installed: pip install 'tcgpu[dask]'") from None
    scheme, _, place = address.partition("://")
    try:
        return Client(f"{'tcp' if scheme == 'dask' else scheme}://{place}", timeout=PATIENCE)
    except ValueError as error:
        raise GraphError(f"{address!r} is no address of a Dask scheduler, as dask://HOST:PORT: {error}") from None
