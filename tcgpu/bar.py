"""The bar that `progress` shows: one of tqdm's, at a terminal or in a notebook."""

import importlib.util
import os
import sys
import threading

KNOWN = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"  # tqdm's format of a share of the work
UNKNOWN = "{desc}: {elapsed}"  # and of work that has reported none
REFRESH = 0.1  # seconds between two updates of a bar
REFRESH_ELSEWHERE = 5.0  # the same where stderr is neither a terminal nor a notebook's: a line each


class Lines:
    """A stream that gets each frame of a bar as a line, for a file or a pipe."""

    def write(self, frame):
        text = frame.strip("\r ")
        if text:
            sys.stderr.write(f"{text}\n")

    def flush(self):
        sys.stderr.flush()


class Bar:
    """A tqdm bar that appears after `patience` seconds; a thread updates it while the work reports nothing.

    known: whether the share of the work that is done is known before it is first shown.
    """

    def __init__(self, what, total, known, patience):
        in_notebook = _in_notebook()
        if in_notebook:
            from tqdm.notebook import tqdm
        else:
            from tqdm.std import tqdm
        self.lock, self.closed, self.patience = threading.RLock(), threading.Event(), patience
        moving = in_notebook or sys.stderr.isatty()
        self.pause = REFRESH if moving else REFRESH_ELSEWHERE

        class Shown(tqdm):
            _lock = self.lock  # tqdm's own is a semaphore of the system
            monitor_interval = 0  # no second thread

        self.tqdm = Shown(desc=f"tcgpu: {what}", total=total, leave=False, miniters=0, mininterval=self.pause, nrows=20,
                          ncols=None if in_notebook else _columns(), bar_format=KNOWN if known else UNKNOWN,
                          delay=patience, file=None if moving else Lines())  # fmt: skip
        self.thread = threading.Thread(target=self._refresh, name="tcgpu progress", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:  # there are no threads: what the work reports updates the bar
            self.thread = None

    def show(self, done):
        with self.lock:
            if not self.closed.is_set():  # as it is when a thread goes on after an interrupt
                self.tqdm.bar_format = KNOWN
                self.tqdm.update(done - self.tqdm.n)

    def _refresh(self):
        if self.patience and self.closed.wait(self.patience):
            return
        self.tqdm.delay = 0  # else `close` leaves a bar that only this thread has shown
        while not self.closed.wait(self.pause):
            self.tqdm.refresh()

    def close(self):
        self.closed.set()
        if self.thread:
            self.thread.join()
        with self.lock:
            self.tqdm.close()
            del self.tqdm  # its end, too, swallows interrupts


def _columns():
    """The width of stderr's terminal, 80 if it reports 0, for which tqdm shows nothing; None if it is no terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (AttributeError, OSError, ValueError):  # a browser has none
        return None


def _in_notebook():
    """Whether a notebook's kernel runs this, which shows widgets, and there are widgets."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel") and importlib.util.find_spec("ipywidgets") is not None
