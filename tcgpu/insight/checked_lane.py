"""The lane of a thread whose accesses are checked, and logged in the shadow memory of its block."""

from operator import index as as_index

import numpy as np

from tcgpu.engines.simulator import BLOCK, WARP
from tcgpu.insight.events import MEMORY_SHIFT, SHARED
from tcgpu.insight.races import ATOMIC, STORE, merged
from tcgpu.insight.rewriting import Lane

# What an access was, in one number: interval of its thread << 30 | number of its site << 6 | kind << 4 | log2 of its
# bytes << 1 | changed
INTERVAL_SHIFT, SITE_SHIFT, SITE_MASK, KIND_SHIFT = 30, 6, 0xFFFFFF, 4
ATOMIC_TAKES = "an atomic operation takes an array, an index and a value"
NOTHING_SEEN = [-1] * WARP


class CheckedLane(Lane):
    """A thread whose accesses are checked."""

    def __init__(self, block, thread):
        self.block, self.thread = block, thread
        self.known = block.arrays
        self.gone_round = 0  # how often, of all `while` loops
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
            self.block.launch.unwritten(self, site, array, index)
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
                self.block.launch.unwritten(self, site, array, index)
            old = operation(array, index, *values)
        if self.fenced or self.block.launch.messages:
            self.pass_message(known.begin + offset)
        self.wrote(site, ATOMIC, known, offset, old, array[element])
        return old

    def fence(self, only=None):
        """A fence: what the thread knows is in its messages from now on; only: the number of the block it is for."""
        block, number, phase = self.block.number, self.thread.number, self.block.phase
        known = self.told | {block: phase, (block, number): (phase, self.clock)}
        for lane, clock in enumerate(self.seen):
            if clock >= 0 and lane != self.thread.lane:
                known[block, number - self.thread.lane + lane] = phase, clock
        self.fenced = only, known
        self.clock += 1
        self.interval = self.block.new_interval(self)

    def pass_message(self, address):
        """Before an atomic operation: receive what others have sent by one on this address, and send to later ones."""
        messages, block = self.block.launch.messages, self.block.number
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
            self.block.launch.outside(self, site, known.array, number)
        return number * known.stride

    def offset_of_several(self, site, known, index):
        """The same for an array of several dimensions."""
        indices = index if type(index) is tuple else (index,)
        if any(isinstance(each, slice) for each in indices):
            return None
        numbers = tuple(map(as_index, indices))
        for number, length in zip(numbers, known.array.shape, strict=False):
            if not 0 <= number < length:
                self.block.launch.outside(self, site, known.array, numbers if len(numbers) > 1 else number)
        if len(numbers) < known.array.ndim:
            return None
        return sum(number * stride for number, stride in zip(numbers, known.array.strides, strict=False))

    def waits(self, site, barrier):
        self.at_site = site
        if barrier.mask is not BLOCK and not barrier.mask >> self.thread.lane & 1:
            self.block.launch.not_in_mask(self, barrier)
        return barrier

    def again(self, site):
        self.gone_round += 1
        if self.gone_round > self.block.launch.most_rounds:
            self.block.launch.endless(self, site)
        return True
