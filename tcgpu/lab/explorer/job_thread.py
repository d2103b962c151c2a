"""One background thread per explorer: it runs jobs one at a time, reports their progress, and can stop one.

Where there are no threads, as in a browser, the event loop runs the jobs, in slices if the browser can suspend Python:
a job that reports its progress lets events be handled, so that the page is served, and the job can be stopped.
"""

import asyncio
import importlib
import sys
import threading
import time

from tcgpu import progress

INTERVAL = 0.1  # seconds between two progress reports


class Stopped(Exception):
    """Raised inside a job that is being stopped."""


def can_suspend():
    """Whether what runs now can wait while a browser handles events."""
    return sys.platform == "emscripten" and importlib.import_module("pyodide.ffi").can_run_sync()


def handle_events(seconds=0.0):
    """Let the browser handle events for so long, where `can_suspend()`."""
    importlib.import_module("pyodide.ffi").run_sync(asyncio.sleep(seconds))


class JobThread:
    """Runs jobs by name, in the order in which they were submitted. The thread ends when no job is left.

    report: called from the thread with the share of the job that is done, from 0 to 1. stoppable: whether a job that
    runs can be stopped; in some browsers it cannot.
    """

    def __init__(self, report=lambda share: None):
        self._report = report
        self._changed = threading.Condition()
        self._waiting = {}  # name -> job
        self._thread = None  # where there are no threads, the event loop's handle
        self.stoppable = True
        self._running = None  # the name of the job that runs
        self._stop = False
        self._share, self._reported = 0.0, 0.0  # the job's progress, and when it was last reported

    def submit(self, name, job):
        """Run `job()` after the jobs that wait; it replaces a waiting job of the same name."""
        with progress.uninterrupted(), self._changed:
            self._waiting[name] = job
            if self._thread is None:
                self._start()

    def stop(self, name):
        """Stop the job of this name at its next progress report; returns True if it was removed before it began."""
        with progress.uninterrupted(), self._changed:
            self._stop = self._stop or self._running == name
            return self._waiting.pop(name, None) is not None

    def wait(self, seconds=None):
        """Wait until no job is left, at most `seconds`; returns whether none is left."""
        if not isinstance(self._thread, asyncio.Handle):
            with self._changed:
                return self._changed.wait_for(lambda: self._thread is None, seconds)
        begin = time.monotonic()
        while self._thread and (seconds is None or time.monotonic() - begin < seconds):
            if can_suspend():
                handle_events(INTERVAL)
            elif self._running is None:
                self._thread.cancel()
                self._run()
            else:  # a suspended job; what handles an event cannot wait for it
                break
        return self._thread is None

    def _start(self):
        thread = threading.Thread(target=self._run, name="tcgpu explorer", daemon=True)
        try:
            thread.start()
            self._thread = thread
        except RuntimeError:  # there are no threads
            self._thread = asyncio.get_running_loop().call_soon(self._run)

    def _run(self):
        self.stoppable = not isinstance(self._thread, asyncio.Handle) or can_suspend()
        with progress.watched(self._pulse):
            while job := self._next():
                try:
                    job()
                except Stopped:
                    pass

    def _next(self):
        """The next job; None if there is none, and the thread ends."""
        with self._changed:
            self._running = next(iter(self._waiting), None)
            self._stop, self._share = False, 0.0
            if self._running is None:
                self._thread = None
                self._changed.notify_all()
                return None
            return self._waiting.pop(self._running)

    def _pulse(self, share):
        if self._stop:
            raise Stopped
        self._share = max(self._share, share or 0.0)
        if time.monotonic() - self._reported > INTERVAL:
            self._report(self._share)
            if self.stoppable and isinstance(self._thread, asyncio.Handle):
                handle_events()
            self._reported = time.monotonic()
