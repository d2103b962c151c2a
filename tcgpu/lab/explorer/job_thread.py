"""The one thread of an explorer: it does a job at a time, and ends the one under way when asked to."""

import threading
import time

from tcgpu import progress

BETWEEN = 0.1  # seconds from one word of progress to the next
IDLE = 5.0  # seconds without a job after which the thread ends; the next job starts another


class Stopped(Exception):
    """Raised inside a job that is to end."""


class Worker:
    """Jobs by name: of those that wait, a new one takes the place of the one that has its name.

    progress: called from the thread, now and then, with how much of the job is done.
    """

    def __init__(self, progress=lambda share: None):
        self._progress = progress
        self._changed = threading.Condition()
        self._waiting = {}  # name -> job
        self._thread = None
        self._name = None  # of the job under way
        self._stop = False
        self._told, self._share = 0.0, 0.0  # when progress was last told, and what it is

    def do(self, name, job):
        """Have `job()` done in the thread, after the one under way."""
        with self._changed:
            self._waiting[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tcgpu explorer", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self, name):
        """End the job of this name at its next pulse if it is under way; whether it waited, and now is not to begin."""
        with self._changed:
            self._stop = self._stop or self._name == name
            waited = self._waiting.pop(name, None) is not None
            self._changed.notify_all()
            return waited

    def wait(self, seconds=None):
        """Wait until there is nothing left to do; whether that came to be in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and self._name is None, seconds)

    def _work(self):
        try:
            with progress.watched(self._pulse):
                while job := self._next():
                    self._do(job)
        finally:
            self._thread = None

    def _do(self, job):
        try:
            job()
        except Stopped:
            pass
        finally:
            with self._changed:
                self._name, self._stop, self._share = None, False, 0.0
                self._changed.notify_all()

    def _next(self):
        """The next job; None when none came for a while, and the thread is to end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, IDLE):
                self._thread = None
                return None
            self._name = next(iter(self._waiting))
            return self._waiting.pop(self._name)

    def _pulse(self, share):
        if self._stop:
            raise Stopped
        if share is not None:
            self._share = max(share, self._share)
        now = time.monotonic()
        if now - self._told > BETWEEN:
            self._told = now
            self._progress(self._share)
