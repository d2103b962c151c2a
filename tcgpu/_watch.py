"""Long work that can be watched and ended: who starts it gives a watch, and the work says now and then that it goes on.

    with watched(callback):        # callback(share) may raise, and so ends the work
        for k, method in enumerate(methods):
            with part(k, len(methods)):
                tcgpu.measure(graph, method)

`share` is how much of all parts is done, None where the work only says that it goes on. A benchmark tells before each
run, the simulator before each thread that it lets run, compiled functions on the CPU ten times a second. A launch on a
GPU cannot be ended half-way.
"""

from contextlib import contextmanager
from contextvars import ContextVar

_watch = ContextVar("watch", default=None)
_stretch = ContextVar("stretch", default=(0.0, 1.0))  # of all the work, what is under way


@contextmanager
def watched(callback):
    """Have `callback(share)` called by the work inside the `with`."""
    token = _watch.set(callback)
    try:
        yield
    finally:
        _watch.reset(token)


@contextmanager
def part(number, of):
    """What is done inside the `with` is one of so many parts of equal length, by its number from 0 on."""
    low, high = _stretch.get()
    step = (high - low) / of
    token = _stretch.set((low + number * step, low + (number + 1) * step))
    try:
        pulse(0.0)
        yield
    finally:
        _stretch.reset(token)


def watching():
    """Whether there is a watch."""
    return _watch.get() is not None


def pulse(share=None):
    """Tell the watch, if there is one, that the work goes on, and how much of the part under way is done."""
    callback = _watch.get()
    if callback is not None:
        low, high = _stretch.get()
        callback(share if share is None else low + share * (high - low))
