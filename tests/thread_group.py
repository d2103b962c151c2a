"""A group whose members are threads of this process: for the simulator, whose arrays are NumPy's."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tcgpu.distributed import division
from tcgpu.distributed.groups import GpuGroup
from tcgpu.engines import runtime


@dataclass(frozen=True)
class HostEdges:
    """Raw edges in arrays of the host, of which each of some members takes a range."""

    u: np.ndarray
    v: np.ndarray
    members: int

    def of_member(self, rank):
        """[u, v] of a member, as arrays on its device."""
        begin, end = division.range_of(self.u.size, rank, self.members)
        return [runtime.to_device_library(ends[begin:end]) for ends in (self.u, self.v)]


class NcclError(RuntimeError):
    """As CuPy's: another member has failed."""


class Meeting:
    """Where the members of a ThreadGroup exchange arrays."""

    def __init__(self, size):
        self.size, self.pieces = size, [[]] * size
        self.barrier, self._ranks = threading.Barrier(size), itertools.count()

    def join(self):
        """The ThreadGroup of one more member."""
        return ThreadGroup(self, next(self._ranks), self.size)

    def wait(self):
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise NcclError("another member has failed") from None


class ThreadGroup(GpuGroup):
    """Threads, which end with the first that fails."""

    def __init__(self, meeting, rank, size):
        self.rank, self.size, self._failed, self._meeting = rank, size, False, meeting

    def __exit__(self, kind, *error):
        super().__exit__(kind, *error)
        if kind is not None:
            self._meeting.barrier.abort()

    def _sum(self, array):
        arrays = np.empty((self.size, array.size), array.dtype)
        self._exchange([array] * self.size, arrays)
        array[:] = arrays.sum(axis=0)

    def _exchange(self, pieces, places):
        self._meeting.pieces[self.rank] = pieces
        self._meeting.wait()
        for sent, place in zip(self._meeting.pieces, places, strict=True):
            place[:] = sent[self.rank]
        self._meeting.wait()


def members(number, work):
    """What `work(group)` returns in each of `number` members, in the simulator."""
    meeting = Meeting(number)

    def member():
        with runtime.using("sim"), meeting.join() as group:
            return group.rank, work(group)

    with ThreadPoolExecutor(number) as threads:
        futures = [threads.submit(member) for _ in range(number)]
    errors = [future.exception() for future in futures if future.exception() is not None]
    if errors:
        raise max(errors, key=division.is_own)
    return [result for _, result in sorted((future.result() for future in futures), key=lambda found: found[0])]
