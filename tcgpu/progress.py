"""Progress reporting and cancellation: callbacks of long work, a bar at a terminal, a widget in a notebook.

Long work calls `pulse` now and then. The caller may have it call a function, which may raise and so end the work:

    with watched(callback):        # callback(share)
        for k, method in enumerate(methods):
            with part(k, len(methods)):
                tcgpu.measure(graph, method)

A benchmark pulses before each run, the simulator before each thread that it runs, compiled functions on the CPU ten
times a second. A launch on a GPU cannot be ended half-way.

To show progress there are two ways:

    with progress(wish, total, "counting") as bar:      # work that comes in known amounts
        bar.add(amount)
    with underway(wish, "counting 1,000 edges"):        # work of another kind: the share that it reports by
        plan.count()                                    # `pulse`, or the time that it has taken
"""

import sys
import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar

WIDTH = 30  # characters of the bar
PATIENCE = 0.5  # seconds after which a bar appears that nobody asked for; most counts are done by then
HEARTBEAT = 1.0  # seconds between lines where stderr is no terminal, and a bar was asked for
BLINK = 0.1  # seconds between two looks of a bar


_callback = ContextVar("callback", default=None)
_stretch = ContextVar("stretch", default=(0.0, 1.0))  # of all the work, what is under way


@contextmanager
def watched(callback):
    """Call `callback(share)` while the work inside the `with` runs, and the callback of a `with` around it, too.

    share: how much of the work is done, from 0 to 1; None where the work only says that it goes on. The callback may
    raise an exception, which ends the work.
    """
    outer, (low, high) = _callback.get(), _stretch.get()

    def tell(share):
        callback(share)
        if outer is not None:
            outer(share if share is None else low + share * (high - low))

    before, stretch = _callback.set(tell), _stretch.set((0.0, 1.0))
    try:
        yield
    finally:
        _stretch.reset(stretch)
        _callback.reset(before)


@contextmanager
def part(number, of):
    """The work inside the `with` is part `number`, from 0 on, of `of` parts of equal length."""
    low, high = _stretch.get()
    step = (high - low) / of
    token = _stretch.set((low + number * step, low + (number + 1) * step))
    try:
        pulse(0.0)
        yield
    finally:
        _stretch.reset(token)


def watching():
    """Whether there is a callback."""
    return _callback.get() is not None


def each_part(works):
    """Call functions without arguments in turn; each is one part of equal length."""
    for k, work in enumerate(works):
        if watching():
            with part(k, len(works)):
                work()
        else:
            work()


def pulse(share=None):
    """Tell the callback, if there is one, that the work goes on, and how much of the part under way is done."""
    callback = _callback.get()
    if callback is not None:
        low, high = _stretch.get()
        callback(share if share is None else low + share * (high - low))


# ------------------------------------------------------------------------------------------------------------- the bar


class Progress:
    """How much of so much work is done. A context: at its end what was shown is gone.

    measured: whether work comes in known amounts, so that there is a share of it from the start, and a time that is
    left. Without it, `share` is None until the work says something.
    """

    def __init__(self, total, show, measured=True):
        self.total, self.done, self._show, self.measured, self.known = total, 0.0, show, measured, measured

    def __enter__(self):
        self._show.open(self)
        return self

    def __exit__(self, *failure):
        self._show.close()

    def add(self, work):
        """Some more work is done: tell whoever watches, who may raise an exception to end it."""
        self.reach(self.done + work)

    def reach(self, done):
        """So much of the work is done."""
        self.done, self.known = min(max(done, self.done), self.total), True
        if self.measured:  # else `pulse` has been called already
            pulse(self.share)
        self._show.tell(self)

    @property
    def share(self):
        if not self.known:
            return None
        return self.done / self.total if self.total else 1.0


def progress(wish, total, what):
    """A `Progress` over `total` work, shown as `wish` says.

    True: a widget in a notebook, a bar at a terminal, lines on any other stderr. None: a bar at a terminal, once it has
    taken a while. False: nothing. A function is called with what is done and the total.
    """
    return Progress(total, _shown(wish, what))


@contextmanager
def underway(wish, what):
    """Show, as `progress` does, how far the work inside the `with` is, as soon as it says so; a function gets (x, 1.0).

    Until then, and where it says nothing, as a count by native threads does, it is shown for how long it has run.
    """
    show = _shown(wish, what)
    if type(show) is _Quiet:
        yield
        return
    with Progress(1.0, show, measured=False) as bar:
        with watched(lambda share: None if share is None else bar.reach(share)):
            yield
        bar.reach(1.0)


def _shown(wish, what):
    """The object that shows progress as `wish` says."""
    if callable(wish):
        return _Calls(wish)
    if wish and _in_notebook():
        return _Widget(what)
    if wish or (wish is None and sys.stderr.isatty()):
        return _Bar(what, 0.0 if wish else PATIENCE, sys.stderr.isatty())
    return _Quiet()


class _Quiet:
    """Shows nothing."""

    def open(self, progress):
        pass

    def tell(self, progress):
        pass

    def close(self):
        pass


class _Calls(_Quiet):
    def __init__(self, function):
        self.function = function

    def tell(self, progress):
        self.function(progress.done, progress.total)


class _Bar:
    """One line on stderr, written over and over at a terminal and wiped at the end; else now and then a line more.

    A thread writes it where the work tells nothing for a while.
    """

    def __init__(self, what, patience, at_terminal):
        self.what, self.at_terminal, self.at_once = what, at_terminal, patience == 0
        self.pause = BLINK if at_terminal else HEARTBEAT
        self.begin = time.monotonic()
        self.next, self.shown = self.begin + patience, False
        self.lock, self.closed = threading.Lock(), threading.Event()
        self.teller = None

    def open(self, progress):
        if self.at_once and not progress.known:
            self.tell(progress)
        self.teller = threading.Thread(target=self._keep_telling, args=(progress,), name="tcgpu progress", daemon=True)
        self.teller.start()

    def _keep_telling(self, progress):
        while not self.closed.wait(self.pause):
            self.tell(progress)

    def tell(self, progress):
        now = time.monotonic()
        with self.lock:
            if now < self.next:
                return
            self.next = now + self.pause
            self.shown = True
            text = f"tcgpu: {self.what}{_told(progress, now - self.begin)}"
            before, after = ("\r", "\033[K") if self.at_terminal else ("", "\n")
            print(before + text, end=after, file=sys.stderr, flush=True)

    def close(self):
        self.closed.set()
        if self.teller is not None:
            self.teller.join()
        if self.shown and self.at_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Widget(_Quiet):
    """A bar under the notebook's cell, gone when the count is done."""

    def __init__(self, what):
        import ipywidgets
        from IPython.display import display

        self.bar = ipywidgets.FloatProgress(value=0.0, min=0.0, max=1.0)
        self.text = ipywidgets.Label(what)
        self.box = ipywidgets.HBox([self.text, self.bar])
        self.what, self.begin, self.next = what, time.monotonic(), 0.0
        display(self.box)

    def tell(self, progress):
        now = time.monotonic()
        if now >= self.next or progress.share == 1:
            self.next = now + BLINK
            self.bar.value = progress.share or 0.0
            self.text.value = f"{self.what}, {_left(progress, now - self.begin)}"

    def close(self):
        self.box.close()
        self.bar.close()
        self.text.close()


def _told(progress, seconds):
    """What a bar says behind the name of the work, which has run for so long."""
    if progress.share is None:
        return f", {seconds:,.0f} s"
    full = int(progress.share * WIDTH)
    return f" [{'=' * full}{' ' * (WIDTH - full)}] {progress.share:4.0%} {_left(progress, seconds)}"


def _left(progress, seconds):
    """How long it still takes, by how long it took so far; where that is not known, the latter."""
    if progress.measured and progress.share:
        return f"{seconds * (1 - progress.share) / progress.share:,.0f} s left"
    return f"{seconds:,.0f} s"


def _in_notebook():
    """Whether a notebook's kernel runs this, which shows widgets."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
