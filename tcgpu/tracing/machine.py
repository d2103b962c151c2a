"""How long a launch would take on a GPU: a simple model with few constants, applied to a launch's Events.

A warp runs its steps one after the other. A step takes time for each operation, and once for each kind of memory that
it waits for: longer if the warp reads a sector for the first time, which is not in the L1 cache yet. Between two
barriers a block takes as long as its slowest warp, and at least as long as its multiprocessor needs to issue its
instructions; a block begins when there is room for it.

The constants are the least-squares fit of the relative error over launches that were traced, and timed on a GPU
(`benchmarks/trace.py`); they are recorded under the GPU's name. The model leaves out how full the caches are, how
multiprocessors slow each other down, and how the waits of several statements overlap.
"""

import heapq
from dataclasses import astuple, dataclass, fields
from functools import cache
from typing import NamedTuple

import numpy as np

from tcgpu import records
from tcgpu.tracing.events import SECTOR, Events, warps_of

BLOCKS_PER_SM = 32  # at most, whatever they need


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

    def of(self, demand):
        """The nanoseconds of each row of `demand`."""
        return demand @ np.array(astuple(self))


NAMES = tuple(field.name for field in fields(Costs))
LAUNCH, OPERATION, FIRST_LOAD, LOAD, SECTORS, SHARED, CONFLICT, ATOMIC, MEETING, BARRIER = range(len(NAMES))


@dataclass(frozen=True)
class Machine:
    """A GPU as the model sees it."""

    name: str
    sms: int
    threads_per_sm: int
    shared_per_sm: int  # bytes
    issue: float  # nanoseconds in which a multiprocessor issues the instructions of one operation
    costs: Costs

    @classmethod
    @cache
    def recorded(cls):
        """The GPU that was calibrated last."""
        return cls.of(records.latest("machine")[0])

    @classmethod
    def of(cls, row):
        """The GPU of a row of the record "machine"."""
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
        at_a_time = self.blocks_at_a_time(threads, shared)
        return self.costs.launch + max(finished(blocks, at_a_time), issued.sum() / self.sms)


class Work(NamedTuple):
    """What the warps of a launch do from barrier to barrier: a row for each warp and part."""

    block: np.ndarray
    part: np.ndarray  # how many barriers come before it
    demand: np.ndarray  # a column for each of the Costs
    operations: np.ndarray  # of each block

    @classmethod
    def of(cls, events, demand):
        """The work of a launch; `demand` is that of its steps."""
        warp = warps_of(events)
        barriers = np.cumsum(demand[:, BARRIER]) - demand[:, BARRIER]
        begins = np.flatnonzero(np.diff(warp, prepend=-1))
        part = (barriers - np.repeat(barriers[begins], np.diff(begins, append=warp.size))).astype(np.int64)
        rows = np.flatnonzero(np.diff(warp, prepend=-1) | np.diff(part, prepend=-1))
        operations = np.bincount(events.block, demand[:, OPERATION])
        return cls(events.block[rows], part[rows], np.add.reduceat(demand, rows, axis=0), operations)

    def slowest(self, costs):
        """The demand of each block: in each part, that of its slowest warp."""
        order = np.lexsort((-costs.of(self.demand), self.part, self.block))
        block, part = self.block[order], self.part[order]
        first = np.flatnonzero(np.diff(block, prepend=-1) | np.diff(part, prepend=-1))
        blocks = np.zeros((self.operations.size, self.demand.shape[1]))
        np.add.at(blocks, block[first], self.demand[order[first]])
        return blocks


def demand_of(events: Events):
    """What each step needs of a machine: a row per step, a column for each of the Costs."""
    steps = events.step_site.size
    demand = np.zeros((steps, len(NAMES)))
    numbers, position = np.unique(events.step_site, return_inverse=True)
    sites = [events.sites[number] for number in numbers.tolist()]
    demand[:, OPERATION] = np.array([site.operations for site in sites])[position]
    demand[:, BARRIER] = np.array([site.barrier for site in sites])[position]
    load, atomic = events.of_kind("load"), events.of_kind("atomic")
    sums = {
        FIRST_LOAD: load & first_loads(events),
        LOAD: load,
        SECTORS: np.where(events.shared | atomic, 0, events.sectors - 1),
        SHARED: events.of_kind("load", shared=True) | events.of_kind("atomic", shared=True),
        CONFLICT: np.where(events.shared, events.wavefronts - 1, 0),
        ATOMIC: atomic,
        MEETING: np.where(atomic, events.sectors - 1, 0),
    }
    for column, values in sums.items():
        demand[:, column] = np.bincount(events.step, values, steps)
    for column in (FIRST_LOAD, LOAD, SHARED, ATOMIC):  # a step waits once for all its requests of a kind
        demand[:, column] = demand[:, column] > 0
    demand[:, LOAD] -= demand[:, FIRST_LOAD]
    return demand


def first_loads(events):
    """Which requests read a sector that no earlier request of the same warp has read."""
    load = events.of_kind("load")[events.request]
    request, sector = events.request[load], events.address[load] // SECTOR
    _, first = np.unique(np.stack([warps_of(events)[events.step[request]], sector]), axis=1, return_index=True)
    found = np.zeros(events.lanes.size, bool)
    found[request[first]] = True
    return found


def finished(times, at_a_time):
    """When all blocks are done, if only so many run at a time and each begins as soon as one has ended."""
    ends = []
    for time in times.tolist():
        begin = heapq.heappop(ends) if len(ends) == at_a_time else 0
        heapq.heappush(ends, begin + time)
    return max(ends)
