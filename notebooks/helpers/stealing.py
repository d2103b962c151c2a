"""Work stealing, as in TriCore, beside the queue that all workers share: an executor, and a simulation by a record.

Each worker has a queue of its own. It takes the next part from the front; once that queue is empty, it takes the last
part of the longest other one. So workers meet at a queue only when one of them steals.
"""

import heapq
import sys
from collections import deque
from concurrent.futures import Executor, Future
from contextlib import suppress
from threading import Semaphore, Thread

import numpy as np

from helpers.level_models.schedules import schedule
from tcgpu.records import Table


class Pool(Executor):
    """An executor of threads that steal. `stolen` counts the tasks that another than their first owner ran.

    Where there are no threads, in a browser, each task runs when it is submitted.
    """

    def __init__(self, workers):
        self._max_workers = workers
        self.queues, self.there = [deque() for _ in range(workers)], Semaphore(0)
        self.submitted, self.stolen = 0, 0
        names = () if sys.platform == "emscripten" else range(workers)
        self.threads = [Thread(target=self._work, args=(name,), daemon=True) for name in names]
        for thread in self.threads:
            thread.start()

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        self._put(self.submitted % self._max_workers, (future, function, args, kwargs))
        self.submitted += 1
        if not self.threads:
            _run(*self._take(0))
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        for worker, _ in enumerate(self.threads):
            self._put(worker, None)
        for thread in self.threads if wait else ():
            thread.join()

    def _put(self, worker, task):
        self.queues[worker].append(task)
        self.there.release()

    def _take(self, worker):
        """The next task of a worker: its own, or the last one of the longest queue. It waits until there is one."""
        self.there.acquire()
        with suppress(IndexError):
            return self.queues[worker].popleft()
        while True:
            with suppress(IndexError):
                task = max(self.queues, key=len).pop()
                self.stolen += task is not None
                return task

    def _work(self, worker):
        while (task := self._take(worker)) is not None:
            _run(*task)


def _run(future, function, args, kwargs):
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)


def steals(times, workers):
    """When the last worker is done that takes parts of these times, and how many parts were stolen.

    Each worker begins with as many parts as the others, those that follow each other.
    """
    queues = [deque(own.tolist()) for own in np.array_split(times, workers)]
    free, ends, stolen = [(0.0, worker) for worker in range(workers)], [0.0], 0
    while any(queues):
        now, worker = heapq.heappop(free)
        if queues[worker]:
            time = queues[worker].popleft()
        else:
            time, stolen = max(queues, key=len).pop(), stolen + 1
        ends.append(now + time)
        heapq.heappush(free, (ends[-1], worker))
    return max(ends), stolen


def compare(times, each):
    """Of recorded times (parts -> milliseconds of each): a shared queue and stealing, for `each` parts a worker.

    Times over the ideal; how often a part is taken from the shared queue, and how often one is stolen.
    """
    found = []
    for parts, ms in sorted(times.items()):
        workers = parts // each
        if workers > 1:
            end, stolen = steals(ms, workers)
            ideal, queue = ms.sum() / workers, schedule(ms, workers, "given").makespan
            over = {"queue": round(float(queue / ideal), 2), "stealing": round(float(end / ideal), 2)}
            found.append({"parts": parts, "workers": workers} | over | {"taken": parts, "stolen": stolen})
    return Table(found, *found[0])
