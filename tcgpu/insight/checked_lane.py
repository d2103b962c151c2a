"""Instrument a kernel so that its threads check each access, and log it in the shadow memory of their block."""

import ast
import inspect
from operator import index as as_index
from typing import NamedTuple

import numpy as np

from tcgpu.engines.simulator import BLOCK, WARP
from tcgpu.insight.accesses import LANE, ReportAccesses, Target, expression_of
from tcgpu.insight.races import ATOMIC, LOAD, MEMORY_SHIFT, SHARED, STORE, merged

# What an access was, in one number: interval of its thread << 28 | place << 4 | log2 of its bytes << 1 | changed
INTERVAL_SHIFT, PLACE_SHIFT, PLACE_MASK = 28, 4, 0xFFFFFF
KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC, "wait": -1, "loop": -1}
ATOMIC_TAKES = "an atomic operation takes an array, an index and a value"
NOTHING_SEEN = [-1] * WARP


class Place(NamedTuple):
    """A place in the source where something happens; kind: a key of KINDS."""

    kind: str
    function: str
    file: str
    line: int
    expression: str  # what is read or written, as source


PLACES: list[Place] = []  # of every function that was checked in this process, by number


class CheckAccesses(ReportAccesses):
    """Rewrites a function so that its threads report accesses, waits and rounds of `while` loops by their Place."""

    def __init__(self, function):
        super().__init__(function)
        self.function, self.file = function.__name__, inspect.getsourcefile(function) or function.__code__.co_filename
        self.before = function.__code__.co_firstlineno - 1  # lines of the file before the function

    def site(self, kind, node, expression=""):
        PLACES.append(Place(kind, self.function, self.file, self.before + node.lineno, expression))
        return len(PLACES) - 1 << PLACE_SHIFT

    def waiting(self, call):
        number = self.site("wait", call, ast.unparse(call.func))
        return expression_of(f"{LANE}.waited()", ast.Yield(expression_of(f"{LANE}.waits({number})", call)))

    def visit_While(self, loop):
        number = self.site("loop", loop)
        self.generic_visit(loop)
        again = ast.copy_location(expression_of(f"{LANE}.again({number})"), loop)
        loop.test = ast.copy_location(ast.BoolOp(ast.And(), [again, loop.test]), loop)
        return loop


class CheckedLane:
    """A thread whose accesses are checked; an instrumented kernel calls its methods."""

    def __init__(self, block, thread):
        self.block, self.thread = block, thread
        self.known = block.arrays
        self.rounds = 0
        self.at_place = None  # where it waits
        self.clock, self.seen, self.phase = 0, NOTHING_SEEN, 0
        self.told = {}  # by messages, see races.Interval
        self.fenced = None  # the block that the last fence is for, None for all; what the thread knew then
        self.interval = block.new_interval(self)
        self.log_address, self.log_what = block.address.append, block.what.append
        self.log_value = block.value.append

    def load(self, place, array, index):
        if type(array) is not np.ndarray:
            return array[index]
        known = self.known.get(id(array)) or self.block.layout(array)
        offset = self.offset(place, known, index)
        if offset is None:
            return array[index]  # a view
        written = known.written
        if written is not None and written.find(0, known.at + offset, known.at + offset + known.bytes) >= 0:
            self.block.checker.unwritten(self, place, array, index)
        if known.logged:
            self.log_address(known.begin + offset)
            self.log_what(self.interval | place | known.size)
            self.log_value(0)
        return array[index]

    load_old = load

    def at(self, stored, loaded, array):
        return Target(self, stored, loaded, array)

    def store(self, place, array, index, value):
        if type(array) is not np.ndarray:
            array[index] = value
            return
        known = self.known.get(id(array)) or self.block.layout(array)
        offset = self.offset(place, known, index)
        if offset is None:
            array[index] = value
            return
        old = array[index]
        array[index] = value
        self.wrote(place, known, offset, old, array[index])

    def atomic(self, place, operation, array, index, *values):
        if type(array) is not np.ndarray or not values:
            raise TypeError(ATOMIC_TAKES)
        known = self.known.get(id(array)) or self.block.layout(array)
        if operation.__name__ == "compare_and_swap":
            offset, element = self.offset(place, known, 0), 0
            old = operation(array, index, *values)
        else:
            offset, element = self.offset(place, known, index), index
            if known.written is not None and known.written.find(0, known.at + offset, known.at + offset + 1) >= 0:
                self.block.checker.unwritten(self, place, array, index)
            old = operation(array, index, *values)
        if self.fenced or self.block.checker.messages:
            self.pass_message(known.begin + offset)
        self.wrote(place, known, offset, old, array[element])
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
        messages, block = self.block.checker.messages, self.block.number
        where = block if address >> MEMORY_SHIFT == SHARED else None
        received = [messages[key] for key in ((where, address, None), (where, address, block)) if key in messages]
        if received:
            self.told = merged([self.told, *received])
            self.interval = self.block.new_interval(self)
        if self.fenced:
            only, known = self.fenced
            messages[where, address, only] = merged([messages.get((where, address, only), {}), known, self.told])

    def wrote(self, place, known, offset, old, new):
        if known.written is not None:
            begin = known.at + offset
            known.written[begin : begin + known.bytes] = b"\1" * known.bytes
        if known.logged:
            self.log_address(known.begin + offset)
            self.log_what(self.interval | place | known.size | bool(old != new))
            self.log_value(hash(new))

    def offset(self, place, known, index):
        """The byte offset of an element in its array; None if the index selects several."""
        if known.length is None:
            return self.offset_of_several(place, known, index)
        if type(index) is tuple:
            (index,) = index
        number = as_index(index)
        if not 0 <= number < known.length:
            self.block.checker.outside(self, place, known.array, number)
        return number * known.stride

    def offset_of_several(self, place, known, index):
        """The same for an array of several dimensions."""
        indices = index if type(index) is tuple else (index,)
        if any(isinstance(each, slice) for each in indices):
            return None
        numbers = tuple(map(as_index, indices))
        for number, length in zip(numbers, known.array.shape, strict=False):
            if not 0 <= number < length:
                self.block.checker.outside(self, place, known.array, numbers if len(numbers) > 1 else number)
        if len(numbers) < known.array.ndim:
            return None
        return sum(number * stride for number, stride in zip(numbers, known.array.strides, strict=False))

    def waits(self, place, barrier):
        self.at_place = place
        if barrier.mask is not BLOCK and not barrier.mask >> self.thread.lane & 1:
            self.block.checker.not_in_mask(self, barrier)
        return barrier

    def waited(self, answer):
        return answer

    def again(self, place):
        self.rounds += 1
        if self.rounds > self.block.checker.most_rounds:
            self.block.checker.endless(self, place)
        return True
