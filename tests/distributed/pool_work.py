"""Functions that tests run in other processes; few imports, so that a process starts quickly."""

import os
import signal
import time
from pathlib import Path


def wait_for_processes(folder, processes, seconds=60):
    """Wait until this many processes have called this with the folder, so that each of them gets one task."""
    Path(folder, str(os.getpid())).touch()
    deadline = time.monotonic() + seconds
    while len(os.listdir(folder)) < processes:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{os.listdir(folder)} waited too long")
        time.sleep(0.01)


def environment(folder, processes):
    """A variable of this process's environment, and whether it ignores SIGINT."""
    wait_for_processes(folder, processes)
    return os.environ["TCGPU_TEST_VALUE"], signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def why_this_engine():
    """Why this process has its engine for kernels."""
    from tcgpu.engines import choice

    return choice.REASON


def number(folder, processes):
    """This process's number in its pool."""
    from tcgpu.distributed import worker

    wait_for_processes(folder, processes)
    return worker._number_here()


def go_elsewhere():
    """Make this process find no folder and no shared file, as on another machine."""
    from tcgpu.distributed import worker

    worker._mapped = lambda source: None


def member(division):
    """As `division.count_as_member`, for tests: what `division.knobs` tell it to do. One that waits never ends.

    Returns (the sum of its part of u, (process, key)).
    """
    number, folder = division.members.index(os.environ["CUDA_VISIBLE_DEVICES"]), division.knobs["folder"]
    meeting = Path(folder, division.knobs["count"] + division.key)
    meeting.mkdir(exist_ok=True)
    wait_for_processes(meeting, len(division.members))
    if division.knobs["fails"] == "once" and not Path(folder, "failed").exists() or division.knobs["fails"] == "raises":
        if number != 1:
            time.sleep(600)
        elif division.knobs["fails"] == "raises":
            raise ValueError("member 1 fails")
        Path(folder, "failed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    u, _ = division.edges.of_member(number)
    return int(u.sum()), (os.getpid(), division.key)
