"""One background thread per explorer: it runs jobs one at a time, reports their progress, and can stop one."""

import threading
import time

from tcgpu import progress

INTERVAL = 0.1  # seconds between two progress reports


class Stopped(Exception):
    """Raised inside a job that is being stopped."""


class JobThread:
    """Runs jobs by name, in the order in which they were submitted. The thread ends when no job is left.

    report: called from the thread with the share of the job that is done, from 0 to 1.
    """

    def __init__(self, report=lambda share: None):
        self._report = report
        self._changed = threading.Condition()
        self._waiting = {}  # name -> job
        self._thread = None
        self._running = None  # the name of the job that runs
        self._stop = False
        self._share, self._reported = 0.0, 0.0  # the job's progress, and when it was last reported

    def submit(self, name, job):
        """Run `job()` after the jobs that wait; it replaces a waiting job of the same name."""
        with progress.uninterrupted(), self._changed:
            self._waiting[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tcgpu explorer", daemon=True)
                self._thread.start()

    def stop(self, name):
        """Stop the job of this name at its next progress report; returns True if it was removed before it began."""
        with progress.uninterrupted(), self._changed:
            self._stop = self._stop or self._running == name
            return self._waiting.pop(name, None) is not None

    def wait(self, seconds=None):
        """Wait until no job is left, at most `seconds`; returns whether none is left."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, seconds)

    def _run(self):
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
        now = time.monotonic()
        if now - self._reported > INTERVAL:
            self._reported = now
            self._report(self._share)
