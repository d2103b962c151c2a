"""The demand of a sample's units on a GPU: instructions, waits, sectors of the caches and of memory."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from tcgpu import records
from tcgpu.arrays import bincount, repeat
from tcgpu.insight.caches import found_in, sectors_of, wavefronts_of
from tcgpu.insight.events import warps_of

# what instructions are made of
KINDS = ("arithmetic", "comparison", "call", "division", "step", "access", "access, signed index",
         "shared access", "shared access, signed index", "store", "atomic", "barrier")  # fmt: skip
# what a warp waits for
WAITS = ("L1", "L2", "memory", "shared", "atomic", "barrier", "conflict")

POWER = "power", "bounds"  # the p of the p-norm that joins the bounds of a launch


@cache
def constants():
    """The record of a fit to a GPU's counters and times: (what, of which of KINDS or WAITS) -> value; and POWER."""
    return {(row["what"], row["kind"]): row["value"] for row in records.reference("instructions")}


def each_takes(what):
    """How many "instructions" each of KINDS takes, or how many "cycles" of a warp."""
    return np.array([constants()[what, kind] for kind in KINDS])


def join(*bounds):
    """How long a launch takes whose bounds are these: arrays or numbers."""
    power = constants()[POWER]
    return sum(bound**power for bound in bounds) ** (1 / power)


class Steps:
    """What does not depend on a GPU: what each step of a warp does, and which sectors its requests read."""

    def __init__(self, sample):
        self.sample, events = sample, sample.events
        self.warp, self.block = warps_of(events), events.block
        self.blocks = max(sample.chosen.size, int(events.block.max(initial=0)) + 1)  # an empty kernel has no events
        self.sectors = sectors_of(sample)
        self.scale, self.time_scale = np.ones((2, self.blocks))
        self.scale[: sample.chosen.size], self.time_scale[: sample.chosen.size] = sample.scale, sample.time_scale
        self.barrier = events.of_sites(events.step_site, lambda site: site.barrier, np.int16)
        alone = (events.in_flight == 0) | (np.diff(self.warp, prepend=-1) != 0)
        self.runs = np.flatnonzero(alone)  # first steps of those that wait together
        counts = events.of_sites(events.step_site, lambda site: site.counts, np.int16).reshape(-1, 4)
        load, store, atomic = (events.of_kind(kind) for kind in ("load", "store", "atomic"))
        shared, signed = events.shared, np.isin(events.site, list(events.signed))
        self.load, self.store, self.atomic = load, store, atomic
        self.wavefronts = wavefronts_of(events)
        parts = (load & ~signed, load & signed, shared & ~signed, shared & signed, store, atomic)
        of_parts = (self.per_step(part).astype(np.int16) for part in parts)
        self.kinds = [*counts.T, np.ones(self.warp.size, np.int16), *of_parts, self.barrier]
        begins = np.flatnonzero(np.diff(self.warp, prepend=-1))
        before = np.cumsum(self.barrier, dtype=np.int32) - self.barrier
        self.part = before - repeat(before[begins], np.diff(begins, append=self.warp.size))  # barriers so far
        self.parts = np.flatnonzero(np.diff(self.warp, prepend=-1) | np.diff(self.part, prepend=-1))  # first steps

    def per_step(self, of_requests):
        """The sum over the requests of each step."""
        return bincount(self.sample.events.step, of_requests, self.warp.size)

    def largest(self, of_requests):
        """The largest of the requests of each step, at least 0."""
        found = np.zeros(self.warp.size)
        np.maximum.at(found, self.sample.events.step, of_requests)
        return found

    def longest_of_run(self, of_steps):
        """The largest of each run of steps, at its first step; 0 at the others."""
        found = np.zeros(self.warp.size)
        if self.runs.size:
            found[self.runs] = np.maximum.reduceat(of_steps, self.runs)
        return found

    def per_block(self, of_requests):
        """The sum over the requests of each block."""
        return self.scale * bincount(self.block, self.per_step(of_requests) * self.sample.weight, self.blocks)

    def demand(self, gpu, resident, *launch):
        """The Demand on a GPU with room for `resident` blocks on a multiprocessor; `launch` as for `found_in`."""
        events, sectors = self.sample.events, self.sectors
        found = found_in(sectors, self.sample, gpu, resident, *launch)
        requests = events.lanes.size
        of_l1, of_memory = 1 - found.l1, (1 - found.l1) * (1 - found.l2)
        loaded = of_memory * np.where(sectors.beside, 1, gpu.generation.l2_line)
        miss_l1, from_memory = (bincount(sectors.request, each, requests) for each in (of_l1, loaded))
        missing = 1 - found.l1_in_time
        waits_l2, waits_memory = (
            1 - np.exp(bincount(sectors.request, np.log(np.maximum(1e-9, 1 - miss)), requests))
            for miss in (missing, missing * (1 - found.l2))
        )
        in_shared = events.shared & ~events.of_kind("store", shared=True)
        loads = (self.largest(self.load * wait) for wait in (1, waits_l2, waits_memory))
        waits = np.stack([each.astype(np.float32) for each in (
            *map(self.longest_of_run, loads),
            self.longest_of_run(self.largest(in_shared) * (self.largest(self.load) == 0)), self.largest(self.atomic),
            self.barrier, self.largest((self.load | events.shared) * (self.wavefronts - 1)),
        )], axis=1)  # fmt: skip
        changes = self.store | self.atomic
        return Demand(
            kinds=np.column_stack(
                [self.scale * bincount(self.block, kind * self.sample.weight, self.blocks) for kind in self.kinds]
            ),
            l1=self.per_block((self.load | self.store) * self.wavefronts),
            l2=self.per_block(self.load * miss_l1 + changes * events.sectors),
            memory=self.per_block(self.load * from_memory),
            shared=self.per_block(events.shared * self.wavefronts),
            steps=self,
            waits=waits,
        )


@dataclass(frozen=True, eq=False)
class Demand:
    """The demand of each block of a sample, and what each step of a warp waits for."""

    kinds: np.ndarray  # a row per block, a column for each of KINDS
    l1: np.ndarray  # wavefronts of L1, by block
    l2: np.ndarray
    memory: np.ndarray
    shared: np.ndarray  # wavefronts of shared memory
    steps: Steps
    waits: np.ndarray  # a row per step, a column for each of WAITS

    def times(self, gpu):
        """How long each step takes, in nanoseconds, if no other warp is in the way."""
        computing = sum(kind * each for kind, each in zip(self.steps.kinds, each_takes("cycles"), strict=True))
        l1, l2, memory, *others = (gpu.ns(probe) for probe in ("L1", "L2", "memory", "shared", "atomic", "barrier"))
        probed = np.array([l1, l2 - l1, memory - l2, *others, 2 / gpu.clock_ghz])
        waits = probed * [constants()["share", wait] for wait in WAITS]  # of what was probed, in a kernel
        waiting = sum(wait * each for wait, each in zip(self.waits.T, waits, strict=True))
        return computing / gpu.clock_ghz + waiting

    def longest(self, times):
        """How long each block takes by itself, from the times of its steps: in each part, its slowest warp."""
        begins = self.steps.parts
        block, part = self.steps.block[begins], self.steps.part[begins]
        time = np.add.reduceat(times * self.steps.sample.weight, begins)
        order = np.lexsort((-time, part, block))
        slowest = order[np.flatnonzero(np.diff(block[order], prepend=-1) | np.diff(part[order], prepend=-1))]
        return self.steps.time_scale * bincount(block[slowest], time[slowest], self.l1.size)
