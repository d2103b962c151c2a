"""What is known of memory while threads are checked: what was written, and who accessed what.

A block keeps it, and the lanes of its threads check each access, and log it there.
"""

from array import array as typed_array

import numpy as np

from tcgpu.engines.simulator import BLOCK, WARP
from tcgpu.insight.events import MEMORY_SHIFT, SHARED
from tcgpu.insight.lanes import InstrumentedBlock, Lane, owner_of
from tcgpu.insight.races import Accesses, Interval, merged

# What an access was, in one number: interval of its thread << 30 | number of its site << 6 | kind << 4 | log2 of its
# bytes << 1 | changed
INTERVAL_SHIFT, SITE_SHIFT, SITE_MASK, KIND_SHIFT = 30, 6, 0xFFFFFF, 4
ROUNDS_OF_A_WAIT = 10  # of a loop, that the simulator could run while a thread waits


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


class CheckedBlock(InstrumentedBlock):
    """A block that runs, what its threads accessed, and what they have waited for.

    A thread begins a new *interval* at each barrier that orders memory; `clock` is its number in a *phase*, which lasts
    from one barrier of the whole block, or of a whole warp, to the next one. What a thread `knows` by other barriers
    is which intervals of others have ended before its own.

    A *message* is what a thread knew at a fence, sent by its next atomic operations on an element, and received by
    those that others do on that element later: they know it, too.
    """

    def __init__(self, *launched):
        self.written = {}  # id of a memory of its own -> its ArrayPlace's `written`
        self.address, self.what, self.value = (typed_array("q") for _ in range(3))
        self.intervals = []
        self.phase = 0
        super().__init__(*launched)

    def new_interval(self, lane):
        self.intervals.append(Interval(lane, lane.clock, self.phase, lane.phase, lane.knows))
        return len(self.intervals) - 1 << INTERVAL_SHIFT

    def passed_block(self):
        """All threads have waited for each other."""
        self.phase += 1
        known = merged(lane.knows for lane in self.threads)
        # all know of each other
        known = {who: known[who] for who in known if type(who) is int or who[0] != self.number}
        for lane in self.threads:
            lane.clock, lane.knows = 0, known
            lane.interval = self.new_interval(lane)

    def passed_warp(self, lanes):
        """Lanes of a warp have waited for each other."""
        whole = len(lanes) == min(WARP, len(self.threads) - lanes[0].warp * WARP)
        done = {(self.number, lane.number): (self.phase, lane.clock) for lane in lanes}
        known = merged([*(lane.knows for lane in lanes), done])
        for lane in lanes:
            lane.clock, lane.knows = lane.clock + 1, known
            lane.phase += whole
            lane.interval = self.new_interval(lane)

    def log(self):
        """What was accessed: an Accesses."""
        address, what, value = (np.array(column, np.int64) for column in (self.address, self.what, self.value))
        size, kind, site = what >> 1 & 7, what >> KIND_SHIFT & 3, what >> SITE_SHIFT & SITE_MASK
        accesses = Accesses(address, size, kind, what & 1 == 1, value, site, what >> INTERVAL_SHIFT)
        return accesses.in_units(self.launch.smallest)


class CheckedLane(Lane):
    def __init__(self, block, number):
        super().__init__(block, number)
        self.gone_round = self.waited_rounds = 0  # how often, of all `while` loops; what its waits count as
        self.at_site = None  # the number of the one at which it waits
        self.clock = self.phase = 0
        self.knows = {}  # see races.Interval
        self.fenced = None  # the block that the last fence is for, None for all; what the thread knew then
        self.interval = block.new_interval(self)
        self.log_address, self.log_what = block.address.append, block.what.append
        self.log_value = block.value.append

    def outside(self, site, array, index):
        self.launch.outside(self, site, array, index)

    def reads(self, site, known, offset, index, changed):
        if known.written is not None:
            self.is_written(site, known, offset, index)
        if known.logged:
            self.log_address(known.begin + offset)
            self.log_what(self.interval | site << SITE_SHIFT | known.size)
            self.log_value(0)
        super().reads(site, known, offset, index, changed)

    def is_written(self, site, known, offset, index):
        """Report a read of an element to which nothing was written."""
        begin = known.at + offset
        if known.written.find(0, begin, begin + known.bytes) >= 0:
            self.launch.unwritten(self, site, known.array, index)

    def changes(self, site, known, offset, index):
        if known.written is not None:
            self.is_written(site, known, offset, index)
        if self.fenced or self.launch.messages:
            self.pass_message(known.begin + offset)

    def wrote(self, site, kind, known, offset, index, old, new):
        if known.written is not None:
            begin = known.at + offset
            known.written[begin : begin + known.bytes] = b"\1" * known.bytes
        if known.logged:
            self.log_address(known.begin + offset)
            what = kind << KIND_SHIFT | known.size | bool(old != new)
            self.log_what(self.interval | site << SITE_SHIFT | what)
            self.log_value(hash(new))
        super().wrote(site, kind, known, offset, index, old, new)

    def fence(self, only=None):
        """A fence: what the thread knows is in its messages from now on; only: the number of the block it is for."""
        block, number, phase = self.block_number, self.number, self.block.phase
        self.fenced = only, self.knows | {block: phase, (block, number): (phase, self.clock)}
        self.clock += 1
        self.interval = self.block.new_interval(self)

    def pass_message(self, address):
        """Before an atomic operation: receive what others have sent by one on this address, and send to later ones."""
        messages, block = self.launch.messages, self.block.number
        where = block if address >> MEMORY_SHIFT == SHARED else None
        received = [messages[key] for key in ((where, address, None), (where, address, block)) if key in messages]
        if received:
            self.knows = merged([self.knows, *received])
            self.interval = self.block.new_interval(self)
        if self.fenced:
            only, known = self.fenced
            messages[where, address, only] = merged([messages.get((where, address, only), {}), known, self.knows])

    def waits(self, site, barrier):
        self.at_site = site
        self.waited_rounds += ROUNDS_OF_A_WAIT
        if barrier.mask is not BLOCK and not barrier.mask >> self.lane & 1:
            self.launch.not_in_mask(self, barrier)
        return barrier

    def again(self, site):
        self.gone_round += 1
        if self.gone_round + self.waited_rounds > self.launch.most_rounds:
            self.launch.endless(self, site)
        return super().again(site)


CheckedBlock.lane_kind = CheckedLane
