"""Run a kernel whose source is instrumented, see `rewriting`: once, for all who read what its threads do.

A thread is a `Lane`. It finds where each accessed element lies, does what the kernel says, and calls `reads`, `changes`
and `wrote`. What becomes of that is up to its class: that of `recorder` records what the hardware would do, that of
`shadow_memory` looks for faults, and a class of both does both.
"""

import gc
import heapq
import math
from dataclasses import dataclass
from itertools import islice
from operator import index as as_index

import numpy as np

from tcgpu.engines.simulator import Block, SimulatedCuda, Thread, simulated
from tcgpu.insight.events import MEMORY_SHIFT, SHARED
from tcgpu.insight.races import ATOMIC, STORE
from tcgpu.insight.rewriting import Instrument
from tcgpu.progress import pulse

ATOMIC_TAKES = "an atomic operation takes an array, an index and a value"


@dataclass(slots=True)
class ArrayPlace:
    """How an array lies in memory."""

    array: np.ndarray  # kept alive, since its id is the key
    begin: int  # the address of its first element
    at: int  # the offset of that in its memory
    length: int | None  # None if it has several dimensions
    stride: int
    bytes: int  # of an element
    size: int = 0  # log2 of that, shifted as in the log of `shadow_memory`
    written: bytearray | None = None  # a 1 for each byte of the memory that was written; None if all were
    logged: bool = True  # whether several threads may access it


class Lane(Thread):
    """A thread, as its instrumented kernel sees it: here it does what the kernel says, and no more.

    step(site)                  It comes to a statement.
    enter(loop), leave()        It comes to a loop; it has left it.
    begin_task(meets)           It begins a round of a task loop; meets: whether the threads of a block wait for each
                                other in it.
    reads(site, known, offset, index, changed)          It reads an element: see `load`. known: the ArrayPlace of its
                                                        array; offset: in bytes.
    changes(site, known, offset, index)                 It is about to change one atomically.
    wrote(site, kind, known, offset, index, old, new)   It has written to one; kind: STORE or ATOMIC; old, new: values.
    """

    def __init__(self, block, number):
        super().__init__(block, number)
        self.block, self.known = block, block.arrays

    def step(self, *what):
        pass

    enter = leave = begin_task = reads = changes = wrote = step

    def again(self, site):
        """It begins another round of a `while`, or its last test."""
        return True

    def rounds(self, site, items):
        """The items of a `for`, one per round."""
        return items

    def rounds_on(self):
        """By how many rounds the loop goes on."""
        return 1

    def task_again(self, site):
        """As `again`, of a task loop."""
        return self.again(site)

    def task_rounds(self, site, items):
        """As `rounds`, of a task loop."""
        return self.rounds(site, items)

    def call(self, site, function, /, *args, **named):
        """It calls a device function."""
        return function(*args, **named)

    def call_waiting(self, site, function, /, *args, **named):
        """It calls one in which threads wait."""
        return (yield from function(*args, **named))

    def waits(self, site, barrier):
        """It waits for other threads."""
        return barrier

    def waited(self, answer):
        """It goes on with the answer of a barrier or a shuffle."""
        return answer

    def outside(self, site, array, index):
        """An index is below 0 or past the end: Python counts from the end, or raises an IndexError."""
        _ = array[index]

    def load(self, site, array, index, changed=False):
        """It reads an element; changed: only to change it."""
        if type(array) is np.ndarray:
            known = self.known.get(id(array)) or self.block.layout(array)
            offset = self.offset(site, known, index)
            if offset is not None:
                self.reads(site, known, offset, index, changed)
        return array[index]

    def at(self, stored, loaded, array):
        """What stands for an array of which an element is about to be written; and read before, unless `loaded` is
        None."""
        return Target(self, stored, loaded, array)

    def store(self, site, array, index, value):
        known = offset = None
        if type(array) is np.ndarray:
            known = self.known.get(id(array)) or self.block.layout(array)
            offset = self.offset(site, known, index)
        if offset is None:
            array[index] = value
            return
        old = array[index]
        array[index] = value
        self.wrote(site, STORE, known, offset, index, old, array[index])

    def atomic(self, site, operation, array, index, *values):
        if type(array) is not np.ndarray or not values:
            raise TypeError(ATOMIC_TAKES)
        known = self.known.get(id(array)) or self.block.layout(array)
        element = (0,) * array.ndim if operation.__name__ == "compare_and_swap" else index
        offset = self.offset(site, known, element)
        self.changes(site, known, offset, element)
        old = operation(array, index, *values)
        self.wrote(site, ATOMIC, known, offset, element, old, array[element])
        return old

    def offset(self, site, known, index):
        """The byte offset of an element in its array; None if the index selects several."""
        length = known.length
        if length is None:
            return self.offset_of_several(site, known, index)
        if type(index) is tuple:
            (index,) = index
        number = as_index(index)
        if not 0 <= number < length:
            self.outside(site, known.array, number)
            number += length
        return number * known.stride

    def offset_of_several(self, site, known, index):
        """The same for an array of several dimensions."""
        indices = index if type(index) is tuple else (index,)
        if any(isinstance(each, slice) for each in indices):
            return None
        numbers, shape = tuple(map(as_index, indices)), known.array.shape
        if not all(0 <= number < length for number, length in zip(numbers, shape, strict=False)):
            self.outside(site, known.array, numbers if len(numbers) > 1 else numbers[0])
        if len(numbers) < len(shape):
            return None
        places = zip(numbers, shape, known.array.strides, strict=True)
        return sum(number % length * stride for number, length, stride in places)


class Target:
    """Stands for an array in a statement that writes to it: `Target(lane, stored, loaded, array)[index] += value`.

    Python gives it the index and the value. Each statement has its own, since `value` may call functions that write to
    other arrays.
    """

    __slots__ = ("array", "lane", "loaded", "stored")

    def __init__(self, lane, stored, loaded, array):
        self.lane, self.stored, self.loaded, self.array = lane, stored, loaded, array

    def __getitem__(self, index):
        return self.lane.load(self.loaded, self.array, index, True)

    def __setitem__(self, index, value):
        self.lane.store(self.stored, self.array, index, value)


class InstrumentedBlock(Block):
    """A block whose threads are Lanes, of its `lane_kind`; it knows how the arrays lie that they access."""

    lane_kind = Lane
    begun = turns = 0  # its clock when it began; how often it has run up to a wait

    def __init__(self, number, launch, run, args, **more):
        self.arrays = dict(launch.arrays)  # id of an array -> its ArrayPlace
        super().__init__(number, launch, run, args, kind=self.lane_kind, **more)

    @property
    def clock(self):
        """Of blocks that take turns, the one with the least is the next to run."""
        return self.begun + self.turns

    def run(self):
        self.turns += 1
        return super().run()

    def layout(self, array):
        """The ArrayPlace of an array, kept while the block runs."""
        found = self.arrays[id(array)] = self.launch.layout(array, self)
        return found


class InstrumentedCuda(SimulatedCuda):
    """A launch of an instrumented kernel: a `SimulatedCuda` that numbers the memories of arrays.

    A subclass has `block_kind`, the class of its blocks.
    """

    rewriting = Instrument
    errors = {"over": "ignore", "divide": "ignore"}  # of NumPy: integers wrap around on a GPU

    def __init__(self, blocks, threads, shared):
        super().__init__(blocks, threads, int(shared))
        self.numbers = {}  # id of an array that owns memory -> number
        self.names, self.sizes = {}, {}  # number -> names of the arrays that the kernel is called with; bytes
        self.arrays = {}  # those arrays: id -> ArrayPlace
        self.running = []  # a heap: (clock, number, block)

    def finished(self, block):
        """A block has returned."""

    def name(self, function, args):
        """Know the arrays that a kernel is called with by the names of its parameters."""
        for name, array in zip(function.__code__.co_varnames, args, strict=False):
            if type(array) is np.ndarray:
                known = self.arrays[id(array)] = self.layout(array, None)
                self.names[known.begin >> MEMORY_SHIFT].append(name)

    def layout(self, array, block):
        """The ArrayPlace of an array; block: in whose shared memory it may be, or None."""
        owner, number = owner_of(array), SHARED
        at = 0 if owner is array else array.ctypes.data - owner.ctypes.data
        begin = block and block.shared.begin(owner)
        if begin is None:
            number, begin = self.numbers.setdefault(id(owner), len(self.numbers) + 1), 0
            self.names.setdefault(number, [])
            self.sizes.setdefault(number, owner.nbytes)
        length, stride = (array.size, array.strides[0]) if array.ndim == 1 else (None, 0)
        return ArrayPlace(array, (number << MEMORY_SHIFT) + begin + at, at, length, stride, array.itemsize)

    def simulate(self, function, args, at_a_time):
        """Run the Python function of a kernel on NumPy arrays, which it changes; at_a_time: how many blocks take turns.

        The next to run, up to its next wait, is the one with the least clock.
        """
        blocks, run = math.prod(map(int, self.gridDim)), simulated(function, self)
        self.name(function, args)
        waiting = (self.block_kind(number, self, run, args) for number in range(blocks))
        self.running = running = [(0, block.number, block) for block in islice(waiting, at_a_time)]
        done, collects = 0, gc.isenabled()
        gc.disable()  # it would look at millions of small objects, none of which is garbage: half of the time
        try:
            with np.errstate(**self.errors):
                while running:
                    clock, number, block = running[0]
                    if block.run():
                        heapq.heapreplace(running, (block.clock, number, block))
                        continue
                    heapq.heappop(running)
                    done += 1
                    pulse(done / blocks)
                    self.finished(block)
                    for following in islice(waiting, 1):  # takes the place of the one that has returned
                        following.begun = clock
                        heapq.heappush(running, (clock, following.number, following))
        finally:
            if collects:
                gc.enable()


def owner_of(array):
    """The array that owns the memory of another one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
