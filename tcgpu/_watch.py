"""Long work that can be watched and ended: who starts it gives a watch, and the work says now and then that it goes on.

    with watched(callback):        # callback(share) may raise, and so ends the work
        tcgpu.measure(graph, ...)

`share` is how much is done of the launch under way, None where that is not known. A benchmark tells before each run,
the simulator before each thread that it lets run. A launch on a GPU and a count by native threads cannot be ended
half-way.
"""

from contextlib import contextmanager
from contextvars import ContextVar

_watch = ContextVar("watch", default=None)


@contextmanager
def watched(callback):
    """Have `callback(share)` called by the work inside the `with`."""
    token = _watch.set(callback)
    try:
        yield
    finally:
        _watch.reset(token)


def pulse(share=None):
    """Tell the watch, if there is one, that the work goes on."""
    callback = _watch.get()
    if callback is not None:
        callback(share)
