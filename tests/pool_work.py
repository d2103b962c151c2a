"""What tests give to processes to do; it imports little, so that a process is there soon."""

import os
import signal
import time
from pathlib import Path


def meet(folder, others, patience=60):
    """Wait until so many processes have called this with the folder, so that none does the work of another."""
    Path(folder, str(os.getpid())).touch()
    deadline = time.monotonic() + patience
    while len(os.listdir(folder)) < others:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{os.listdir(folder)} waited too long")
        time.sleep(0.01)


def environment(folder, others):
    """A variable of this process's environment, and whether it ignores SIGINT."""
    meet(folder, others)
    return os.environ["TCGPU_TEST_VALUE"], signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def number(folder, others):
    """This process's number in its pool."""
    from tcgpu.distributed import worker

    meet(folder, others)
    return worker._number_here()


def go_elsewhere():
    """Make this process find no folder and no shared file, as on another machine."""
    from tcgpu.distributed import worker

    worker._mapped = lambda source: None
