"""Start-up of a pool process. Imports nothing that looks for GPUs, so that variables that hide them are set first."""

import multiprocessing.connection
import os
import signal
import threading


def init_worker(environments):
    """Set this pool process's environment, ignore SIGINT, and exit with the parent.

    environments: a queue that holds a dict of variables for each process of the pool.
    """
    os.environ.update(environments.get())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
