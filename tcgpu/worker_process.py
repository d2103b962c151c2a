"""Pools of processes that have an environment each. Nothing is imported here that looks for GPUs.

A new process imports this module before it sets its variables: so those that hide GPUs are set first.
"""

import multiprocessing.connection
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType


def process_pool(environments):
    """A pool with a process for each dict of environment variables."""
    context = _ContextWithoutMain()
    queue = context.SimpleQueue()
    for environment in environments:
        queue.put(environment)
    return ProcessPoolExecutor(len(environments), mp_context=context, initializer=_init_worker, initargs=(queue,))


class _ProcessWithoutMain(SpawnProcess):
    """A spawned process that does not run its parent's script, and ignores SIGINT even before `_init_worker`."""

    @staticmethod
    def _Popen(process):
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # while it starts, its parent seems to have no script
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which it inherits
        try:
            return SpawnProcess._Popen(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            sys.modules["__main__"] = main


class _ContextWithoutMain(SpawnContext):
    Process = _ProcessWithoutMain


def _init_worker(environments):
    """Set this pool process's environment, ignore SIGINT, and exit with the parent.

    environments: a queue that holds a dict of variables for each process of the pool.
    """
    os.environ.update({"TCGPU_QUIET": "1"} | environments.get())  # its parent says that code is compiled
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
