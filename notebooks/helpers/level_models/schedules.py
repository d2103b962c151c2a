"""Jobs on identical machines, for chunks on multiprocessors (section VI): makespan scheduling.

The best schedule is NP-hard to find. Taking the longest job first, always to the machine that is free first, is never
more than a third above it, and mostly much nearer.
"""

import heapq
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tcgpu.built_in import SCHEDULES
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown


@dataclass(frozen=True)
class Schedule:
    """The machine and the begin of each job: arrays by job, but for `loads`, which is by machine."""

    weights: np.ndarray
    machine: np.ndarray
    begin: np.ndarray
    loads: np.ndarray
    bound: float  # no schedule of these jobs is shorter

    @property
    def makespan(self):
        """When the last machine is done."""
        return self.loads.max(initial=0)

    @property
    def above_bound(self):
        """By which share the makespan exceeds the bound: 0.05 is 5%."""
        return float(self.makespan / self.bound - 1) if self.bound else 0.0


def schedule(weights, machines, order="longest"):
    """The Schedule of jobs that take `weights`, each started on the machine that is free first.

    order: "longest" first, or as "given", which is how a GPU hands out the blocks of a launch.
    """
    if order not in SCHEDULES:
        raise GraphError(unknown("order", order, SCHEDULES))
    weights = np.asarray(weights)
    jobs = np.argsort(-weights, kind="stable") if order == "longest" else np.arange(weights.size)
    free = [(0, machine) for machine in range(_at_least_one(machines))]
    machine, begin = np.zeros(weights.size, np.int32), np.zeros(weights.size, weights.dtype)
    for job, weight in zip(jobs.tolist(), weights[jobs].tolist(), strict=True):
        begin[job], machine[job] = free[0]
        heapq.heapreplace(free, (free[0][0] + weight, free[0][1]))
    loads = np.zeros(machines, weights.dtype)
    np.add.at(loads, machine, weights)
    return Schedule(weights, machine, begin, loads, lower_bound(weights, machines))


def lower_bound(weights, machines):
    """What no schedule can beat.

    The mean load; and of the r * machines + 1 longest jobs some machine has r + 1, so at least the r + 1 shortest of
    those (for r = 0, the longest job of all).
    """
    falling = sorted(np.asarray(weights).tolist(), reverse=True)
    sums = [0, *accumulate(falling)]
    rounds = range((len(falling) - 1) // _at_least_one(machines) + 1)
    crowded = (sums[r * machines + 1] - sums[r * (machines - 1)] for r in rounds)
    return max(sums[-1] / machines, max(crowded, default=0))


def estimate(shared_chunks, global_chunks, shared_time, global_time, machines=30):
    """Equation 6: rounds of chunks in shared memory, then those in global memory one after the other."""
    return -(-shared_chunks // _at_least_one(machines)) * shared_time + global_chunks * global_time


def _at_least_one(machines):
    if machines < 1:
        raise GraphError(f"there is at least 1 machine, not {machines!r}")
    return machines
