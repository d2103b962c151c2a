"""What tests give to processes to do; it imports little, so that a process is there soon."""

import os
import signal
import time


def seat_after_a_while(seconds):
    """What the environment says of this process's place, and whether it ignores interrupts."""
    time.sleep(seconds)
    return os.environ["TCGPU_TEST_SEAT"], signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def number_after_a_while(seconds):
    """Which one of its pool this process is."""
    from tcgpu.parts import worker

    time.sleep(seconds)
    return worker._number_here()


def go_elsewhere():
    """Make this process find no folder, as on another machine."""
    from tcgpu.parts import worker

    worker._mapped = lambda folder: None
