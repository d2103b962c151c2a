"""How far a count has come, for whoever watches: a bar at a terminal, a widget in a notebook, calls of a function."""

import sys
import time

from tcgpu import _watch

WIDTH = 30  # characters of the bar
PATIENCE = 0.5  # seconds after which a bar appears that nobody asked for; most counts are done by then
HEARTBEAT = 1.0  # seconds between lines where stderr is no terminal, and a bar was asked for
BLINK = 0.1  # seconds between two looks of a bar


class Progress:
    """What of so much work is done. A context: at its end what was shown is gone."""

    def __init__(self, total, show):
        self.total, self.done, self._show = total, 0.0, show

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._show.close()

    def add(self, work):
        """Some more work is done: tell whoever watches, who may raise an exception to end it."""
        self.done = min(self.done + work, self.total)
        _watch.pulse(self.share)
        self._show.tell(self)

    @property
    def share(self):
        return self.done / self.total if self.total else 1.0


def progress(wish, total, what):
    """A `Progress` over `total` work that is shown as one may wish.

    True: a widget in a notebook, a bar at a terminal, lines on any other stderr. None: a bar at a terminal, once it has
    taken a while. False: nothing. A function is called with what is done and the total.
    """
    if callable(wish):
        return Progress(total, _Calls(wish))
    if wish and _in_notebook():
        return Progress(total, _Widget(what))
    if wish or (wish is None and sys.stderr.isatty()):
        return Progress(total, _Bar(what, 0.0 if wish else PATIENCE, sys.stderr.isatty()))
    return Progress(total, _Nothing())


class _Nothing:
    def tell(self, progress):
        pass

    def close(self):
        pass


class _Calls(_Nothing):
    def __init__(self, function):
        self.function = function

    def tell(self, progress):
        self.function(progress.done, progress.total)


class _Bar:
    """One line on stderr, written over and over at a terminal and wiped at the end; else now and then a line more."""

    def __init__(self, what, patience, at_terminal):
        self.what, self.at_terminal = what, at_terminal
        self.begin = time.monotonic()
        self.next, self.shown = self.begin + patience, False

    def tell(self, progress):
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + (BLINK if self.at_terminal else HEARTBEAT)
        self.shown = True
        text = f"tcgpu: {self.what} {_bar(progress.share)} {_left(progress.share, now - self.begin)}"
        before, after = ("\r", "\033[K") if self.at_terminal else ("", "\n")
        print(before + text, end=after, file=sys.stderr, flush=True)

    def close(self):
        if self.shown and self.at_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Widget:
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
            self.bar.value = progress.share
            self.text.value = f"{self.what}, {_left(progress.share, now - self.begin)}"

    def close(self):
        self.box.close()
        self.bar.close()
        self.text.close()


def _bar(share):
    full = int(share * WIDTH)
    return f"[{'=' * full}{' ' * (WIDTH - full)}] {share:4.0%}"


def _left(share, seconds):
    """How long it takes on, by how long it took so far."""
    left = seconds * (1 - share) / share if share else 0.0
    return f"{left:,.0f} s left" if share else f"{seconds:,.0f} s"


def _in_notebook():
    """Whether a notebook's kernel runs this, which shows widgets."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
