"""The executors that are named by a str: processes or threads of this machine, kept from one verb to the next.

To start a process takes seconds (imports, the GPU's context, kernels to compile), and what it then keeps is the graph
on its device: so a pool stays until the session ends, or `close` ends it.

A started process is bound to its GPU before it imports anything that could look for one. It does not run the script
that asked for it: that needs no `if __name__ == "__main__"`.
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType

from tcgpu.engines.choice import ENGINE, REASON, named_gpus, visible_gpus
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.engines.worker_process import init_worker
from tcgpu.errors import GraphError

_pools = {}  # name -> executor
_lock = fork_safe_lock()
_of_parent = []  # in a forked child: the parent's pools, kept, since to delete one writes to the parent's pipes


def pool(name):
    """The executor of a name out of POOLS, started if it is not there."""
    with _lock:
        if name not in _pools:
            _pools[name] = POOLS[name]()
        return _pools[name]


def _forget_pools():
    """A forked child starts pools of its own."""
    global _pools
    _of_parent.append(_pools)
    _pools = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def renewed(name):
    """A new executor in the place of one whose workers have died."""
    end(name)
    return pool(name)


def end(name):
    """End a pool at once, whatever its workers are doing."""
    with _lock:
        executor = _pools.pop(name, None)
    if executor is not None:
        workers = list((getattr(executor, "_processes", None) or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in workers:
            process.terminate()


def close():
    """End all pools, and let go of the graphs on their devices."""
    for name in list(_pools):
        with _lock:
            executor = _pools.pop(name, None)
        if executor is not None:
            executor.shutdown(cancel_futures=True)


def gpus(names=None):
    """A new pool of a process for each visible GPU, or for those with these names, as in CUDA_VISIBLE_DEVICES."""
    if ENGINE != "gpu":
        raise GraphError(f"executor 'gpus' has no GPU to work with: {REASON}; 'processes' are those of the CPU")
    names = names or named_gpus() or [str(number) for number in range(visible_gpus())]
    return _processes([{"CUDA_VISIBLE_DEVICES": name} for name in names])


def processes(number=None):
    """A new pool of so many processes of one thread each, by default one for each core. They see no GPU."""
    return _processes([{"NUMBA_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "-1"}] * (number or os.cpu_count() or 1))


def _processes(seats):
    """A process for each of `seats`, the variables of its environment."""
    context = _Apart()
    free = context.SimpleQueue()
    for seat in seats:
        free.put(seat)
    return ProcessPoolExecutor(len(seats), mp_context=context, initializer=init_worker, initargs=(free,))


def threads():
    """A new pool of threads: one for each visible GPU, else for each core."""
    return ThreadPoolExecutor(visible_gpus() if ENGINE == "gpu" else os.cpu_count(), thread_name_prefix="tcgpu-part")


POOLS = {"gpus": gpus, "processes": processes, "threads": threads}


class _Process(SpawnProcess):
    """A process that does not run its parent's script once more: nothing in there is for it."""

    @staticmethod
    def _Popen(process):
        with _without_main():
            return SpawnProcess._Popen(process)


class _Apart(SpawnContext):
    """Spawned processes of this kind."""

    Process = _Process


@contextmanager
def _without_main():
    """For as long as a process is being started, its parent has no script."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
