"""What is known of memory while threads are checked: how arrays lie in it, what was written, who accessed what."""

from array import array as typed_array
from typing import NamedTuple

import numpy as np

from tcgpu.engines.simulator import WARP, Block
from tcgpu.insight.checked_lane import INTERVAL_SHIFT, KIND_SHIFT, NOTHING_SEEN, SITE_MASK, SITE_SHIFT, CheckedLane
from tcgpu.insight.races import Accesses, Interval, merged
from tcgpu.insight.rewriting import owner_of


class Layout(NamedTuple):
    """How an array lies in memory: see `Checker.layout`."""

    array: np.ndarray  # kept alive, since its id is the key
    begin: int  # the address of its first element
    at: int  # the offset of that in its memory
    length: int | None  # None if it has several dimensions
    stride: int
    bytes: int  # of an element
    size: int  # log2 of that, shifted as in the log
    written: bytearray | None  # a 1 for each byte of the memory that was written; None if all were
    logged: bool  # whether several threads may access it


class Written:
    """Which bytes of arrays were written, over several launches. arrays: those to which nothing has been written."""

    def __init__(self, arrays=()):
        self._of = {}
        for array in arrays:
            owner = owner_of(array)
            self._of[id(owner)] = owner, bytearray(owner.nbytes)

    def of(self, owner):
        """A 1 for each byte that was written; None for an array that was written as a whole."""
        found = self._of.get(id(owner))
        return found and found[1]

    def fill(self, array):
        """All of an array has been written."""
        self._of.pop(id(owner_of(array)), None)


class CheckedBlock(Block):
    """A block that runs, what its threads accessed, and what they have waited for.

    A thread begins a new *interval* at each barrier that orders memory. In an interval of its own, with the number
    `clock`, it has seen what lane k of its warp did up to that lane's clock `seen[k]`. A *phase* lasts from one barrier
    of the whole block, or of a whole warp, to the next one.

    A *message* is what a thread knew at a fence, sent by its next atomic operations on an element, and received by
    those that others do on that element later: they are `told` of it.
    """

    def __init__(self, number, checker, run, args):
        super().__init__(number, checker, run, args)
        self.arrays = dict(checker.arrays)  # id of an array -> Layout
        self.written = {}  # id of a memory of its own -> its Layout's `written`
        self.address, self.what, self.value = (typed_array("q") for _ in range(3))
        self.intervals = []
        self.phases = typed_array("q"), typed_array("q")  # of the block and of the warp, of each interval
        self.phase = 0
        for thread in self.threads:
            thread.record = CheckedLane(self, thread)

    def new_interval(self, lane):
        self.intervals.append(Interval(lane.thread, lane.clock, lane.seen, self.phase, lane.told))
        self.phases[0].append(self.phase)
        self.phases[1].append(lane.phase)
        return len(self.intervals) - 1 << INTERVAL_SHIFT

    def layout(self, array):
        """The Layout of an array, kept while the block runs."""
        found = self.arrays[id(array)] = self.launch.layout(array, self)
        return found

    def passed_block(self):
        """All threads have waited for each other."""
        self.phase += 1
        told = merged(thread.record.told for thread in self.threads)
        for thread in self.threads:
            lane = thread.record
            lane.clock, lane.seen, lane.told = 0, NOTHING_SEEN, told
            lane.interval = self.new_interval(lane)

    def passed_warp(self, lanes):
        """Lanes of a warp have waited for each other."""
        whole = len(lanes) == min(WARP, len(self.threads) - lanes[0].thread.warp * WARP)
        seen = list(map(max, *(lane.seen for lane in lanes))) if len(lanes) > 1 else list(lanes[0].seen)
        for lane in lanes:
            seen[lane.thread.lane] = lane.clock
        told = merged(lane.told for lane in lanes)
        for lane in lanes:
            lane.clock, lane.seen, lane.told = lane.clock + 1, seen, told
            lane.phase += whole
            lane.interval = self.new_interval(lane)

    def log(self):
        """What was accessed: an Accesses."""
        address, what, value = (np.array(column, np.int64) for column in (self.address, self.what, self.value))
        size, kind, site = what >> 1 & 7, what >> KIND_SHIFT & 3, what >> SITE_SHIFT & SITE_MASK
        accesses = Accesses(address, size, kind, what & 1 == 1, value, site, what >> INTERVAL_SHIFT)
        return accesses.in_units(self.launch.smallest)
