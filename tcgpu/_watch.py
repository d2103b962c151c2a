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
    """Have `callback(share)` called by the work inside the `with`; whoever watches from outside is told, too."""
    outer, (low, high) = _watch.get(), _stretch.get()

    def tell(share):
        callback(share)
        if outer is not None:
            outer(share if share is None else low + share * (high - low))

    watch, stretch = _watch.set(tell), _stretch.set((0.0, 1.0))
    try:
        yield
    finally:
        _stretch.reset(stretch)
        _watch.reset(watch)


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


def each_part(works):
    """Do several works, functions without arguments, in turn: each is one part of equal length, for who watches."""
    for k, work in enumerate(works):
        if watching():
            with part(k, len(works)):
                work()
        else:
            work()


def pulse(share=None):
    """Tell the watch, if there is one, that the work goes on, and how much of the part under way is done."""
    callback = _watch.get()
    if callback is not None:
        low, high = _stretch.get()
        callback(share if share is None else low + share * (high - low))
