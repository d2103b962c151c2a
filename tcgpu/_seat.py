"""What a process of a pool does before it imports anything that looks around on its machine."""

import multiprocessing.connection
import os
import signal
import threading


def take_seat(free):
    """Have an environment of one's own. free: a queue with the variables of each process.

    Interrupts are for the process that started this one. Where that one has ended, however it did, this one ends, too.
    """
    os.environ.update(free.get())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
