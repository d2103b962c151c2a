"""Progress reporting and cancellation: callbacks of long work, and a bar by tqdm, at a terminal or in a notebook.

Long work calls `pulse` now and then, which calls the callback of `watched`. It may raise an exception to end the work.
Callbacks are called before each run of a benchmark and each thread of the simulator, and ten times a second by compiled
functions on the CPU. A launch on a GPU cannot be ended half-way. `progress` shows amounts, `underway` the share
that work reports.
"""

import signal
import sys
import threading
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

PATIENCE = 0.5  # seconds until a bar appears with display=None; most counts are done by then

_callback = ContextVar("callback", default=None)
_part = ContextVar("part", default=(0.0, 1.0))  # the part of all the work that runs now, as two shares


@contextmanager
def watched(callback):
    """Call `callback(share)` while the work inside the `with` runs, and the callback of a `with` around it, too.

    share: how much of the work is done, from 0 to 1; None where the work reports only that it goes on. The callback may
    raise an exception, which ends the work.
    """
    outer, (low, high) = _callback.get(), _part.get()

    def report(share):
        callback(share)
        if outer is not None:
            outer(share if share is None else low + share * (high - low))

    before, part_before = _callback.set(report), _part.set((0.0, 1.0))
    try:
        yield
    finally:
        _part.reset(part_before)
        _callback.reset(before)


@contextmanager
def part(number, of):
    """The work inside the `with` is part `number`, from 0 on, of `of` parts of equal length."""
    low, high = _part.get()
    step = (high - low) / of
    token = _part.set((low + number * step, low + (number + 1) * step))
    try:
        pulse(0.0)
        yield
    finally:
        _part.reset(token)


class uninterrupted:
    """In the main thread, SIGINT is handled at the end of the `with`, not inside it.

    For imports, and for short calls of what has locks in Python, such as `threading` and `concurrent.futures`: a
    KeyboardInterrupt there leaves them locked, and what waits for them waits for ever.
    """

    def __enter__(self):
        self.came, self.handler = None, None
        if threading.get_ident() == threading.main_thread().ident:
            self.handler = signal.getsignal(signal.SIGINT)
        if callable(self.handler):
            signal.signal(signal.SIGINT, self._note)

    def _note(self, *signal_and_frame):
        self.came = signal_and_frame

    def __exit__(self, *error):
        if callable(self.handler):
            signal.signal(signal.SIGINT, self.handler)
            if self.came is not None:
                self.handler(*self.came)


def watching():
    return _callback.get() is not None


def each_part(works):
    """Call the functions in turn; each is one part of equal length."""
    if watching():
        works = [part(k, len(works))(work) for k, work in enumerate(works)]
    for work in works:
        work()


def pulse(share=None):
    """Call the callback, if any, with the share of all work that is done. share: of the part that runs."""
    callback = _callback.get()
    if callback is not None:
        low, high = _part.get()
        callback(share if share is None else low + share * (high - low))


# ------------------------------------------------------------------------------------------------------------- the bar


class Progress:
    """How much of `total` work is done; show(done, total), if not None, is called with each change."""

    def __init__(self, total, show, done=0.0):
        self.total, self.done, self._show = total, done, show

    def add(self, work):
        """Some more work is done: call the callback of `watched`, which may raise an exception, and show it."""
        done = min(self.done + work, self.total)
        pulse(done / self.total if self.total else 1.0)
        self.reach(done)

    def reach(self, done):
        """So much of the work is done, or more: show it."""
        self.done = min(max(done, self.done), self.total)
        if self._show is not None:
            self._show(self.done, self.total)


@contextmanager
def progress(display, total, what, done=0.0):
    """A `Progress` over `total` work, of which `done` is done before, shown according to `display`.

    True: a bar, in a notebook or on stderr. None: a bar if stderr is a terminal, once the work has taken a while.
    False: nothing. A function is called with what is done and the total.
    """
    with _shown(display, what, total, True) as show:
        yield Progress(total, show, done)


@contextmanager
def underway(display, what):
    """Show, as `progress` does, the share of the work inside the `with` that it reports by `pulse`: of a total of 1.0.

    Until it reports one, the bar shows for how long it has run.
    """
    with _shown(display, what, 1.0, False) as show:
        if show is None:
            yield
            return
        bar = Progress(1.0, show)
        with watched(lambda share: None if share is None else bar.reach(share)):
            yield
        bar.reach(1.0)


def _shown(display, what, total, known):
    """A context: a function of what is done and the total that shows them, as `display` says; None if it shows none."""
    if callable(display) or not (display or (display is None and sys.stderr.isatty())):
        return nullcontext(display if callable(display) else None)
    return _bar(what, total, known, 0.0 if display else PATIENCE)


@contextmanager
def _bar(what, total, known, patience):
    """The same of a bar, which appears after `patience` seconds."""

    def show(done, total):
        with uninterrupted():
            bar.show(done)

    bar = None
    try:
        with uninterrupted():
            from tcgpu.bar import Bar  # most calls show none

            bar = Bar(what, total, known, patience)
        yield show
    finally:
        if bar is not None:
            with uninterrupted():
                bar.close()
