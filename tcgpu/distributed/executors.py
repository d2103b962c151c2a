"""The executors that count parts: any of `concurrent.futures`, Dask's and MPI's, too, and our own pools by name.

Our own pools stay until the session ends, or `close` ends them: starting a process takes seconds (imports, the GPU's
context, compilation), and it keeps the last graph on its device. A process is bound to its GPU before it imports
anything that could look for one. It does not run the script that started it, which needs no `if __name__ ==
"__main__"`.
"""

import asyncio
import atexit
import os
import sys
import threading
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import cached_property
from queue import SimpleQueue
from weakref import WeakKeyDictionary

from tcgpu.distributed import worker
from tcgpu.engines.choice import ENGINE, REASON, named_gpus, visible_gpus
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import EngineError, GraphError
from tcgpu.progress import uninterrupted, watched

CONNECT_SECONDS = 20  # to wait for a Dask scheduler
LOSSES = BrokenExecutor, CancelledError  # of futures whose worker died, or whose pool was ended
RESTARTS = 3  # of our own pools in one call
ENDING_SECONDS = 10  # to wait for a process that was stopped

_engines: WeakKeyDictionary[Executor, str] = WeakKeyDictionary()  # of the workers of an executor


class Workers:
    """The workers of an executor. `name` is that of one of our own pools."""

    def __init__(self, executor, name=None):
        self.executor, self.name = executor, name
        self.unneeded = []  # futures that the call leaves
        self._ended = threading.Event()
        self.dask = getattr(executor, "_client", None)  # the Client of Dask's executor
        if self.dask is not None and self.dask.status != "running":
            raise GraphError(f"the executor's Dask client is {self.dask.status}")

    def submit(self, *task):
        """A future of `worker.run(*task)`."""
        if isinstance(self.executor, ThreadPoolExecutor):
            return self.executor.submit(self._run, *task)
        if self.dask is None:
            return self.executor.submit(worker.run, *task)
        options = getattr(self.executor, "_kwargs", {}) | {"pure": False}
        future = self.dask.submit(worker.run, *task, **options)
        return asyncio.run_coroutine_threadsafe(_gathered(self.dask, future), self.dask.loop.asyncio_loop)

    def _run(self, *task):
        """`worker.run`, stopped within a second once its result is not needed any more."""
        with watched(self._check):
            return worker.run(*task)

    def _check(self, share):
        if self._ended.is_set():
            raise CancelledError

    @cached_property
    def number(self):
        """How many parts are counted at a time."""
        if self.dask is not None:
            return max(1, sum(self.dask.nthreads().values()))
        known = getattr(self.executor, "num_workers", None) or getattr(self.executor, "_max_workers", None)
        return known or os.cpu_count() or 1

    def engine(self):
        """The engine that the workers have for kernels, according to the first that responds."""
        if self.executor not in _engines:
            context = getattr(self.executor, "_mp_context", None)
            if ENGINE == "gpu" and context is not None and context.get_start_method() == "fork":
                raise GraphError(
                    "a forked process cannot use the GPU of its parent: give the pool "
                    "mp_context=multiprocessing.get_context('spawn'), or take executor='gpus'"
                )
            finished = SimpleQueue()
            with uninterrupted():
                self.executor.submit(worker.engine_here).add_done_callback(finished.put)
            _engines[self.executor] = finished.get().result()
        return _engines[self.executor]

    def sendable(self, graph):
        """A graph as an argument of `submit`. Dask keeps the result of a task, and computes it again if it is lost."""
        return graph if self.dask is None else self.dask.submit(copy, graph, pure=False)

    def restart(self):
        """Replace workers that died; returns whether that was possible: for our own pools it is."""
        if self.name is None:
            return False
        for process in terminate(self.name, self.executor):
            process.join(ENDING_SECONDS)  # then the memory of its device is free
        self.executor = own_pool(self.name)
        return True

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        """Stop the parts that are left; if the user interrupts the count, one of our own pools entirely."""
        interrupted = error is not None and issubclass(error, (KeyboardInterrupt, SystemExit))
        with uninterrupted():
            self._ended.set()
            if interrupted and self.name is not None:  # before Python 3.12, no future of a pool that ends is cancelled
                terminate(self.name)
                return
            for future in self.unneeded:
                future.cancel()


async def _gathered(client, future):
    """The result of a Dask future; it is computed again if it is lost with its worker on the way here.

    Futures of Dask's own executor take that for an error.
    """
    return await client.gather(future, asynchronous=True)


@contextmanager
def workers_of(executor):
    """The Workers of an executor, of one of our own pools by its name, or of the Dask scheduler at an address."""
    with ExitStack() as stack:
        if isinstance(executor, str) and "://" in executor:
            workers = Workers(stack.enter_context(_dask_client(executor)).get_executor(pure=False))
        elif isinstance(executor, Executor):
            workers = Workers(executor)
        elif isinstance(executor, str) and executor in POOLS:
            workers = Workers(own_pool(executor), executor)
        else:
            raise EngineError(
                f"no executor {executor!r}; there are {', '.join(POOLS)}, dask://HOST:PORT, and in Python those of "
                "concurrent.futures; that of a Dask client is client.get_executor()"
            )
        yield stack.enter_context(workers)


def _dask_client(address):
    try:
        from distributed import Client
    except ImportError:
        raise GraphError("Dask is not installed: pip install 'tcgpu[dask]'") from None
    scheme, _, host = address.partition("://")
    try:
        return Client(f"{'tcp' if scheme == 'dask' else scheme}://{host}", timeout=CONNECT_SECONDS)
    except ValueError as error:
        raise GraphError(f"{address!r} is not the address of a Dask scheduler, dask://HOST:PORT: {error}") from None


# -------------------------------------------------------------------------------------------------------- our own pools


def process_pool(environments):
    """As that of `worker_process`, which a browser cannot import: it has no processes."""
    from tcgpu.worker_process import process_pool

    return process_pool(environments)


def gpus(names=None):
    """A new pool with a process for each visible GPU, or for those with these names, as in CUDA_VISIBLE_DEVICES."""
    if ENGINE != "gpu":
        raise GraphError(f"executor 'gpus' has no GPU to work with: {REASON}; 'processes' are those of the CPU")
    return process_pool([{"CUDA_VISIBLE_DEVICES": name} for name in names or gpu_names()])


def gpu_names():
    """The names of all visible GPUs, as in CUDA_VISIBLE_DEVICES."""
    return named_gpus() or [str(number) for number in range(visible_gpus())]


def processes(number=None):
    """A new pool of `number` processes of one thread, by default one for each core. They see no GPU."""
    return process_pool([{"NUMBA_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1"}] * (number or os.cpu_count() or 1))


def threads():
    """A new pool of threads: one for each visible GPU, or else for each core."""
    return ThreadPoolExecutor(visible_gpus() if ENGINE == "gpu" else os.cpu_count(), thread_name_prefix="tcgpu-part")


POOLS = {"gpus": gpus, "processes": processes, "threads": threads}

_lock = fork_safe_lock()
_pools: list[dict[str, Executor]] = [{}]  # by name, in the last dict
if hasattr(os, "register_at_fork"):  # a child starts its own: deleting the parent's would write to the parent's pipes
    os.register_at_fork(after_in_child=lambda: _pools.append({}))
atexit.register(lambda: _pools[-1].clear())  # while the modules are whole that executors need to end


class InTurn(Executor):
    """Runs each call when it is submitted: in a browser there are no processes and no threads."""

    _processes, _max_workers = (), 1

    def submit(self, function, *args):
        future = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def own_pool(name):
    """The executor of a name from POOLS, started at its first use."""
    if sys.platform == "emscripten" and name != "gpus":
        return InTurn()
    with _lock:
        if name not in _pools[-1]:
            _pools[-1][name] = POOLS[name]()
        return _pools[-1][name]


def terminate(name, only=None):
    """Stop one of our own pools at once; returns its processes. only: do nothing if it is another executor by now."""
    with uninterrupted():
        with _lock:
            executor = _pools[-1].get(name)
            if executor is None or only not in (None, executor):
                return []
            del _pools[-1][name]
        running = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        return running


def close():
    """Stop all our own pools, and free the memory of their devices."""
    with _lock:
        executors = list(_pools[-1].values())
        _pools[-1].clear()
    for executor in executors:
        executor.shutdown(cancel_futures=True)
