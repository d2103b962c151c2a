"""What is known of memory while threads are checked: how arrays lie in it, what was written, who accessed what.

A block keeps it, and the lanes of its threads check each access, and log it there.
"""

from array import array as typed_array
from operator import index as as_index
from typing import NamedTuple

import numpy as np

from tcgpu.engines.simulator import BLOCK, WARP, Block
from tcgpu.insight.events import MEMORY_SHIFT, SHARED
from tcgpu.insight.races import ATOMIC, STORE, Accesses, Interval, merged
from tcgpu.insight.rewriting import Lane, owner_of

# What an access was, in one number: interval of its thread << 30 | number of its site << 6 | kind << 4 | log2 of its
# bytes << 1 | changed
INTERVAL_SHIFT, SITE_SHIFT, SITE_MASK, KIND_SHIFT = 30, 6, 0xFFFFFF, 4
ATOMIC_TAKES = "an atomic operation takes an array, an index and a value"
NOTHING_SEEN = [-1] * WARP
ROUNDS_OF_A_WAIT = 10  # of a loop, that the simulator could run while a thread waits


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
        self.arrays = dict(checker.arrays)  # id of an array -> Layout
        self.written = {}  # id of a memory of its own -> its Layout's `written`
        self.address, self.what, self.value = (typed_array("q") for _ in range(3))
        self.intervals = []
        self.phase = 0
        super().__init__(number, checker, run, args, kind=CheckedLane)

    def new_interval(self, lane):
        self.intervals.append(Interval(lane, lane.clock, lane.seen, self.phase, lane.phase, lane.told))
        return len(self.intervals) - 1 << INTERVAL_SHIFT

    def layout(self, array):
        """The Layout of an array, kept while the block runs."""
        found = self.arrays[id(array)] = self.launch.layout(array, self)
        return found

    def passed_block(self):
        """All threads have waited for each other."""
        self.phase += 1
        told = merged(lane.told for lane in self.threads)
        for lane in self.threads:
            lane.clock, lane.seen, lane.told = 0, NOTHING_SEEN, told
            lane.interval = self.new_interval(lane)

    def passed_warp(self, lanes):
        """Lanes of a warp have waited for each other."""
        whole = len(lanes) == min(WARP, len(self.threads) - lanes[0].warp * WARP)
        seen = list(map(max, *(lane.seen for lane in lanes))) if len(lanes) > 1 else list(lanes[0].seen)
        for lane in lanes:
            seen[lane.lane] = lane.clock
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


class CheckedLane(Lane):
    """A thread whose accesses are checked."""

    def __init__(self, block, number):
        super().__init__(block, number)
        self.known = block.arrays
        self.gone_round = self.waited_rounds = 0  # how often, of all `while` loops; what its waits count as
        self.at_site = None  # the number of the one at which it waits
        self.clock, self.seen, self.phase = 0, NOTHING_SEEN, 0
        self.told = {}  # by messages, see races.Interval
        self.fenced = None  # the block that the last fence is for, None for all; what the thread knew then
        self.interval = block.new_interval(self)
        self.log_address, self.log_what = block.address.append, block.what.append
        self.log_value = block.value.append

    def load(self, site, array, index):
        if type(array) is not np.ndarray:
            return array[index]
        known = self.known.get(id(array)) or self.block.layout(array)
        offset = self.offset(site, known, index)
        if offset is None:
            return array[index]  # a view
        written = known.written
        if written is not None and written.find(0, known.at + offset, known.at + offset + known.bytes) >= 0:
            self.launch.unwritten(self, site, array, index)
        if known.logged:
            self.log_address(known.begin + offset)
            self.log_what(self.interval | site << SITE_SHIFT | known.size)
            self.log_value(0)
        return array[index]

    def store(self, site, array, index, value):
        if type(array) is not np.ndarray:
            array[index] = value
            return
        known = self.known.get(id(array)) or self.block.layout(array)
        offset = self.offset(site, known, index)
        if offset is None:
            array[index] = value
            return
        old = array[index]
        array[index] = value
        self.wrote(site, STORE, known, offset, old, array[index])

    def atomic(self, site, operation, array, index, *values):
        if type(array) is not np.ndarray or not values:
            raise TypeError(ATOMIC_TAKES)
        known = self.known.get(id(array)) or self.block.layout(array)
        if operation.__name__ == "compare_and_swap":
            offset, element = self.offset(site, known, 0), 0
            old = operation(array, index, *values)
        else:
            offset, element = self.offset(site, known, index), index
            if known.written is not None and known.written.find(0, known.at + offset, known.at + offset + 1) >= 0:
                self.launch.unwritten(self, site, array, index)
            old = operation(array, index, *values)
        if self.fenced or self.launch.messages:
            self.pass_message(known.begin + offset)
        self.wrote(site, ATOMIC, known, offset, old, array[element])
        return old

    def fence(self, only=None):
        """A fence: what the thread knows is in its messages from now on; only: the number of the block it is for."""
        block, number, phase = self.block_number, self.number, self.block.phase
        known = self.told | {block: phase, (block, number): (phase, self.clock)}
        for lane, clock in enumerate(self.seen):
            if clock >= 0 and lane != self.lane:
                known[block, number - self.lane + lane] = phase, clock
        self.fenced = only, known
        self.clock += 1
        self.interval = self.block.new_interval(self)

    def pass_message(self, address):
        """Before an atomic operation: receive what others have sent by one on this address, and send to later ones."""
        messages, block = self.launch.messages, self.block.number
        where = block if address >> MEMORY_SHIFT == SHARED else None
        received = [messages[key] for key in ((where, address, None), (where, address, block)) if key in messages]
        if received:
            self.told = merged([self.told, *received])
            self.interval = self.block.new_interval(self)
        if self.fenced:
            only, known = self.fenced
            messages[where, address, only] = merged([messages.get((where, address, only), {}), known, self.told])

    def wrote(self, site, kind, known, offset, old, new):
        if known.written is not None:
            begin = known.at + offset
            known.written[begin : begin + known.bytes] = b"\1" * known.bytes
        if known.logged:
            self.log_address(known.begin + offset)
            what = kind << KIND_SHIFT | known.size | bool(old != new)
            self.log_what(self.interval | site << SITE_SHIFT | what)
            self.log_value(hash(new))

    def offset(self, site, known, index):
        """The byte offset of an element in its array; None if the index selects several."""
        if known.length is None:
            return self.offset_of_several(site, known, index)
        if type(index) is tuple:
            (index,) = index
        number = as_index(index)
        if not 0 <= number < known.length:
            self.launch.outside(self, site, known.array, number)
        return number * known.stride

    def offset_of_several(self, site, known, index):
        """The same for an array of several dimensions."""
        indices = index if type(index) is tuple else (index,)
        if any(isinstance(each, slice) for each in indices):
            return None
        numbers = tuple(map(as_index, indices))
        for number, length in zip(numbers, known.array.shape, strict=False):
            if not 0 <= number < length:
                self.launch.outside(self, site, known.array, numbers if len(numbers) > 1 else number)
        if len(numbers) < known.array.ndim:
            return None
        return sum(number * stride for number, stride in zip(numbers, known.array.strides, strict=False))

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
        return True
