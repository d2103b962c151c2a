"""What a launch would take on a GPU: a simple model of one, of few constants, applied to what a trace has seen.

A warp does its steps one after the other. A step takes its time for each operation, and once for each kind of memory
that it waits for: longer where the warp reads a sector for the first time, which is not in the L1 cache yet. Between
two barriers a block takes as long as its slowest warp, and all in all no less than its multiprocessor needs to issue
its instructions; a block begins when there is room for it.

The constants are the least squares of the relative error over launches that were traced, and timed on a GPU
(`benchmarks/trace.py`); they are recorded under the GPU's name. What is left out: how full the caches are, how
multiprocessors get in each other's way, how the waits of several statements overlap.
"""

import heapq
from dataclasses import astuple, dataclass, fields
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from tcgpu import records
from tcgpu.engines.simulator import WARP
from tcgpu.tracing.events import SECTOR

BLOCKS_PER_SM = 32  # at most, whatever they need
SCHEDULERS = 4  # of a multiprocessor: each issues an instruction a cycle
MOST_WARPS = 1024 // WARP  # of a block
ROUNDS = 12  # of fitting: with other constants another warp may be the slowest


@dataclass(frozen=True)
class Costs:
    """Nanoseconds, each for one warp."""

    launch: float  # of a kernel that does nothing
    operation: float
    first_load: float  # a step that reads a sector of global memory for the first time
    load: float  # any other step that reads global memory
    sector: float  # each sector of a request for global memory after the first
    shared: float  # a step that reads shared memory
    conflict: float  # each wavefront of a request for shared memory after the first
    atomic: float  # a step with atomic operations in global memory
    meeting: float  # each sector of their request after the first
    barrier: float

    def of(self, asked):
        """The nanoseconds of each row of `features`."""
        return asked @ np.array(astuple(self))


NAMES = tuple(field.name for field in fields(Costs))
LAUNCH, OPERATION, FIRST_LOAD, LOAD, SECTORS, SHARED, CONFLICT, ATOMIC, MEETING, BARRIER = range(len(NAMES))


@dataclass(frozen=True)
class Machine:
    """A GPU as the model sees it."""

    name: str
    sms: int
    threads_per_sm: int
    shared_per_sm: int
    issue: float  # nanoseconds in which a multiprocessor issues the instructions of one operation
    costs: Costs

    @classmethod
    @cache
    def recorded(cls):
        """The GPU that was calibrated last."""
        return cls.of(records.latest("machine")[0])

    @classmethod
    def of(cls, row):
        """By the row of a record."""
        costs = Costs(**{name: row[f"{name}_ns"] for name in NAMES})
        size = {name: row[f"gpu_{name}"] for name in ("name", "sms", "threads_per_sm", "shared_per_sm")}
        return cls(**size, issue=row["issue_ns"], costs=costs)

    def blocks_at_a_time(self, threads, shared=0):
        """How many blocks of this shape run at the same time."""
        fit = min(BLOCKS_PER_SM, self.threads_per_sm // threads, self.shared_per_sm // max(1, shared))
        return self.sms * max(1, fit)

    def nanoseconds(self, work, threads, shared=0):
        """How long a launch takes, by its Work, the threads of a block, and its bytes of dynamic shared memory."""
        issued = self.issue * work.operations
        blocks = np.maximum(self.costs.of(work.slowest(self.costs)), issued)
        at_work = self.blocks_at_a_time(threads, shared)
        return self.costs.launch + max(finished(blocks, at_work), issued.sum() / self.sms)


class Work(NamedTuple):
    """What the warps of a launch ask of a machine, from barrier to barrier: a row for each warp and part."""

    block: np.ndarray
    part: np.ndarray  # behind so many barriers
    asked: np.ndarray  # a column for each of the Costs
    operations: np.ndarray  # of each block

    @classmethod
    def of(cls, events, asked):
        """Of the events of a launch, and what its steps ask for: `features`."""
        warp = events.block.astype(np.int64) * MOST_WARPS + events.warp
        barriers = np.cumsum(asked[:, BARRIER]) - asked[:, BARRIER]
        begins = np.flatnonzero(np.diff(warp, prepend=-1))
        part = (barriers - np.repeat(barriers[begins], np.diff(begins, append=warp.size))).astype(np.int64)
        of_part = np.flatnonzero(np.diff(warp, prepend=-1) | np.diff(part, prepend=-1))
        operations = np.bincount(events.block, asked[:, OPERATION])
        return cls(events.block[of_part], part[of_part], np.add.reduceat(asked, of_part, axis=0), operations)

    def slowest(self, costs):
        """What each block asks for: in each part, what its slowest warp asks."""
        order = np.lexsort((-costs.of(self.asked), self.part, self.block))
        block, part = self.block[order], self.part[order]
        first = np.flatnonzero(np.diff(block, prepend=-1) | np.diff(part, prepend=-1))
        blocks = np.zeros((self.operations.size, self.asked.shape[1]))
        np.add.at(blocks, block[first], self.asked[order[first]])
        return blocks


def features(events):
    """What each step asks of a machine: a row a step, a column for each of the Costs."""
    steps = events.step_site.size
    asked = np.zeros((steps, len(NAMES)))
    numbers, place = np.unique(events.step_site, return_inverse=True)
    sites = [events.sites[number] for number in numbers.tolist()]
    asked[:, OPERATION] = np.array([site.operations for site in sites])[place]
    asked[:, BARRIER] = np.array([site.barrier for site in sites])[place]
    load, atomic = events.of_kind("load"), events.of_kind("atomic")
    waits = events.of_kind("load", shared=True) | events.of_kind("atomic", shared=True)
    sums = {
        FIRST_LOAD: load & first_time(events),
        LOAD: load,
        SECTORS: np.where(events.shared | atomic, 0, events.sectors - 1),
        SHARED: waits,
        CONFLICT: np.where(events.shared, events.wavefronts - 1, 0),
        ATOMIC: atomic,
        MEETING: np.where(atomic, events.sectors - 1, 0),
    }
    for column, values in sums.items():
        asked[:, column] = np.bincount(events.step, values, steps)
    for column in (FIRST_LOAD, LOAD, SHARED, ATOMIC):  # what a step waits for several times, it waits for once
        asked[:, column] = asked[:, column] > 0
    asked[:, LOAD] -= asked[:, FIRST_LOAD]
    return asked


def first_time(events):
    """Which requests read a sector that no request of the same warp has read before."""
    warp = events.block.astype(np.int64) * MOST_WARPS + events.warp
    load = events.of_kind("load")[events.request]
    request, sector = events.request[load], events.address[load] // SECTOR
    _, first = np.unique(np.stack([warp[events.step[request]], sector]), axis=1, return_index=True)
    found = np.zeros(events.lanes.size, bool)
    found[request[first]] = True
    return found


def finished(times, at_a_time):
    """When all blocks are done, if each begins as soon as one of so many places is free."""
    places = []
    for time in times.tolist():
        begin = heapq.heappop(places) if len(places) == at_a_time else 0
        heapq.heappush(places, begin + time)
    return max(places)


def fitted(works, nanoseconds):
    """The Costs with which the slowest blocks of launches come closest to these times.

    Launches whose blocks do not all run at the same time say less than they are to say.
    """
    times = np.array(nanoseconds, float)
    costs = Costs(*[1.0] * len(NAMES))
    for _ in range(ROUNDS):
        rows = []
        for work in works:
            blocks = work.slowest(costs)
            rows.append(blocks[np.argmax(costs.of(blocks))])
        rows = np.array(rows)
        rows[:, LAUNCH] = 1
        found, _ = nnls(rows / times[:, None], np.ones(times.size))
        costs = Costs(*((np.array(astuple(costs)) + found) / 2).tolist())
    return Costs(*found.tolist())
