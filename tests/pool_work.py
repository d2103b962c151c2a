"""What tests give to processes to do; it imports little, so that a process is there soon."""

import os
import signal
import time
from pathlib import Path


def meet(folder, others, patience=60):
    """Wait in a folder until so many processes are there: none of them can do the work of another in the meantime."""
    Path(folder, str(os.getpid())).touch()
    deadline = time.monotonic() + patience
    while len(os.listdir(folder)) < others:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{os.listdir(folder)} waited in vain")
        time.sleep(0.01)


def seat(folder, others):
    """What the environment says of this process's place, and whether it ignores interrupts."""
    meet(folder, others)
    return os.environ["TCGPU_TEST_SEAT"], signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def number(folder, others):
    """Which one of its pool this process is."""
    from tcgpu.distributed import worker

    meet(folder, others)
    return worker._number_here()


def go_elsewhere():
    """Make this process find no folder and no shared file, as on another machine."""
    from tcgpu.distributed import worker

    worker._mapped = lambda source: None
