"""Find the faults of a kernel while it runs in the simulator: what a GPU would do without a word.

    faults = check_launch(function, blocks, threads, args)

runs the Python function of a kernel on NumPy arrays, and returns a `Fault` for each thing that it must not do:

    bounds      An index past the end of an array, or below 0: NumPy and Numba count that from the end, CUDA C does not.
                Also one past the shared memory that the launch asks for.
    unwritten   A read of memory to which nothing was written: shared and local memory at first, and arrays that the
                caller names.
    race        Two threads access one element, at least one of them writes to it, and nothing makes one of them wait
                for the other: no barrier of the block (or of the warp, for two lanes of one), and no launch in between.
                Atomic operations do not race with each other; an atomic operation and a plain access do.
    barrier     A barrier that some threads of the block never reach, at which threads wait at different places, or a
                lane that waits in a mask that it is not in.
    overflow    A product that does not fit its integer type; a sum or difference, too, if all numbers in it are signed.
                Unsigned sums often wrap around on purpose, and so do the products of hash functions: a product of
                unsigned numbers is no fault in a statement that also subtracts, shifts right, masks, or takes a rest.
    endless     A thread that goes round its loops without end.
    error       An exception of Python: a wrong type, a division, an unknown name.

After `bounds`, `endless` and `error` the launch ends; after the others it goes on. Each fault is reported once for each
place in the source.

Which accesses race follows from barriers alone, and not from the order in which threads happen to run. A shuffle or a
vote is no barrier: it orders no memory. Two accesses whose order makes no difference are no fault: two writes of the
same value, or a read and a write that does not change the value. So threads may clear a word together. Nor is a read
that only spares an atomic operation: `if low < least[0]: cuda.atomic.min(least, 0, low)`.
"""

import ast
import inspect
import linecache
import math
import sys
from array import array as typed_array
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import index as as_index
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from tcgpu.engines.accesses import LANE, ReportAccesses, expression_of
from tcgpu.engines.integers import POSITIONS
from tcgpu.engines.races import ATOMIC, LOAD, MEMORY_SHIFT, STORE, Accesses, first_race, unordered
from tcgpu.engines.simulator import (
    BLOCK,
    WARP,
    SharedMemory,
    SimulatedCuda,
    Thread,
    numpy_type,
    rounds,
    simulated,
)
from tcgpu.progress import pulse

MOST_ROUNDS = 20_000_000  # of all loops of a thread, before it is taken for endless
SHARED = 0  # the number of shared memory; arrays in global memory are numbered from 1 on
# What an access was, in one number: interval of its thread << 28 | place << 4 | log2 of its bytes << 1 | changed
INTERVAL_SHIFT, PLACE_SHIFT, PLACE_MASK = 28, 4, 0xFFFFFF
KINDS = {"load": LOAD, "store": STORE, "atomic": ATOMIC, "wait": -1, "loop": -1}
MIXING = {ast.RShift, ast.BitAnd, ast.BitXor, ast.Mod, ast.Sub}  # with these, unsigned numbers often wrap on purpose
VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


class Place(NamedTuple):
    """A place in the source where something happens; kind: a key of KINDS."""

    kind: str
    function: str
    file: str
    line: int
    expression: str  # what is read or written, as source


PLACES: list[Place] = []  # of every function that was checked in this process, by number


@dataclass(frozen=True)
class Fault:
    """Something that a kernel must not do. `str` tells it in a sentence.

    kind: as this module's text names them. kernel: its name. function, line, source: the place; a line of the file.
    block, thread: which one did it, or the first of them. array, index: what it accessed, if it did. says: what is
    wrong there.
    """

    kind: str
    kernel: str
    function: str
    line: int
    source: str
    block: int
    thread: int
    says: str
    array: str = ""
    index: int | tuple | None = None
    ends: bool = False  # whether the launch ended with it

    @property
    def lane(self):
        """The number of the thread in its warp."""
        return self.thread % WARP

    def __str__(self):
        inside = "" if self.function == self.kernel else f" (in {self.function})"
        return f"{self.kernel}, line {self.line}{inside}, `{self.source}`: {self.says}"


class Ended(Exception):
    """Ends a launch; its argument is the Fault."""


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


class Stored:
    """An element that is about to be written; and read before, if `loaded` is a place."""

    __slots__ = ("array", "lane", "loaded", "stored")

    def __init__(self, lane, stored, loaded, array):
        self.lane, self.stored, self.loaded, self.array = lane, stored, loaded, array

    def __getitem__(self, index):
        return self.lane.load(self.loaded, self.array, index)

    def __setitem__(self, index, value):
        self.lane.store(self.stored, self.array, index, value)


class CheckedLane:
    """A thread whose accesses are checked; an instrumented kernel calls its methods."""

    def __init__(self, block, thread):
        self.block, self.thread = block, thread
        self.known = block.arrays
        self.rounds = 0
        self.at_place = None  # where it waits
        self.clock, self.seen, self.phase = 0, NOTHING_SEEN, 0
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

    def at(self, stored, loaded, array):
        return Stored(self, stored, loaded, array)

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
        known = self.known.get(id(array)) or self.block.layout(array)
        if operation.__name__ == "compare_and_swap":
            offset, element = self.offset(place, known, 0), 0
            old = operation(array, index, *values)
        else:
            offset, element = self.offset(place, known, index), index
            if known.written is not None and known.written.find(0, known.at + offset, known.at + offset + 1) >= 0:
                self.block.checker.unwritten(self, place, array, index)
            old = operation(array, index, *values)
        self.wrote(place, known, offset, old, array[element])
        return old

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
        for number, length in zip(numbers, known.array.shape):
            if not 0 <= number < length:
                self.block.checker.outside(self, place, known.array, numbers if len(numbers) > 1 else number)
        if len(numbers) < known.array.ndim:
            return None
        return sum(number * stride for number, stride in zip(numbers, known.array.strides))

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


NOTHING_SEEN = [-1] * WARP


class CheckedBlock:
    """A block that runs: its threads, what they accessed, and what they have waited for.

    A thread begins a new *interval* at each barrier that orders memory. In an interval of its own, with the number
    `clock`, it has seen what lane k of its warp did up to that lane's clock `seen[k]`. A *phase* lasts from one barrier
    of the whole block, or of a whole warp, to the next one.
    """

    def __init__(self, number, checker, run, args):
        self.number, self.checker = number, checker
        self.shared = SharedMemory(checker.dynamic_bytes)
        self.arrays = dict(checker.arrays)  # id of an array -> Layout
        self.written = {}  # id of a memory of its own -> its Layout's `written`
        self.address, self.what, self.value = (typed_array("q") for _ in range(3))
        self.intervals = []  # the thread, the clock and what was seen, of each interval
        self.phases = typed_array("q"), typed_array("q")  # of the block and of the warp, of each interval
        self.phase = 0
        self.threads = [Thread(number, k, checker) for k in range(math.prod(map(int, checker.blockDim)))]
        for thread in self.threads:
            thread.record = CheckedLane(self, thread)
        self.turns = rounds(run, args, checker, self.threads)

    def run(self):
        """Run up to the next wait; False if all threads have returned."""
        self.checker.shared, self.checker.block = self.shared, self
        return next(self.turns, self) is not self

    def new_interval(self, lane):
        self.intervals.append((lane.thread, lane.clock, lane.seen))
        self.phases[0].append(self.phase)
        self.phases[1].append(lane.phase)
        return len(self.intervals) - 1 << INTERVAL_SHIFT

    def layout(self, array):
        """The Layout of an array, kept while the block runs."""
        found = self.arrays[id(array)] = self.checker.layout(array, self)
        return found

    def passed_block(self):
        """All threads have waited for each other."""
        self.phase += 1
        for thread in self.threads:
            lane = thread.record
            lane.clock, lane.seen = 0, NOTHING_SEEN
            lane.interval = self.new_interval(lane)

    def passed_warp(self, lanes):
        """Lanes of a warp have waited for each other."""
        whole = len(lanes) == min(WARP, len(self.threads) - lanes[0].thread.warp * WARP)
        seen = list(map(max, *(lane.seen for lane in lanes))) if len(lanes) > 1 else list(lanes[0].seen)
        for lane in lanes:
            seen[lane.thread.lane] = lane.clock
        for lane in lanes:
            lane.clock, lane.seen = lane.clock + 1, seen
            lane.phase += whole
            lane.interval = self.new_interval(lane)

    def log(self):
        """What was accessed: an Accesses."""
        what = np.frombuffer(self.what, np.int64) if self.what else np.zeros(0, np.int64)
        kinds = np.array([KINDS[place.kind] for place in PLACES], np.int8)
        place = what >> PLACE_SHIFT & PLACE_MASK
        address, value = (np.array(column, np.int64) for column in (self.address, self.value))
        interval = what >> INTERVAL_SHIFT
        return Accesses(address, what >> 1 & 7, kinds[place], what & 1 == 1, value, place, interval).in_units(
            self.checker.smallest
        )


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


def owner_of(array):
    """The array that owns the memory of another one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Checker(SimulatedCuda):
    """A `SimulatedCuda` that looks for the faults of one launch."""

    rewriting = CheckAccesses

    def __init__(self, kernel, blocks, threads, shared, written, most_rounds):
        super().__init__(blocks, threads, shared)
        self.kernel, self.written, self.most_rounds = kernel, written, most_rounds
        self.local = SimpleNamespace(array=self.local_array)
        self.arrays = {}  # those in global memory: id -> Layout
        self.names = {}  # number of a memory -> the name of its array
        self.numbers = {}  # id of an array that owns memory -> number
        self.smallest, self.sizes = {}, {}  # number of a memory -> log2 of bytes of its elements
        self.faults = {}  # what and where -> Fault
        self.block = None
        self.of_blocks = []  # (number of a block, what it accessed in global memory)

    @property
    def lane(self):
        return self.thread.record

    def local_array(self, shape, dtype):
        array = np.empty(shape, numpy_type(dtype))
        self.block.written[id(array)] = bytearray(array.nbytes)
        self.block.layout(array)  # which keeps it alive
        return array

    def name(self, function, args):
        """Know the arrays that a kernel is called with by the names of its parameters."""
        for name, array in zip(function.__code__.co_varnames, args):
            if type(array) is np.ndarray:
                self.arrays[id(array)] = self.layout(array, None, name)

    def layout(self, array, block, name=None):
        owner = owner_of(array)
        at = array.ctypes.data - owner.ctypes.data
        size = max(0, array.itemsize - 1).bit_length()
        begin = None if block is None else block.shared.begin(owner)
        logged = True
        if begin is not None:
            number, written = SHARED, block.written.setdefault(id(owner), bytearray(owner.nbytes))
        else:
            number = self.numbers.setdefault(id(owner), len(self.numbers) + 1)
            begin, written = 0, self.written.of(owner)
            if block is not None and id(owner) in block.written:
                logged, written = False, block.written[id(owner)]
            self.names.setdefault(number, name or "")
        self.sizes.setdefault(number, set()).add(size)
        if len(self.sizes[number]) > 1:
            self.smallest[number] = min(self.sizes[number])
        length, stride = (array.size, array.strides[0]) if array.ndim == 1 else (None, 0)
        begin = (number << MEMORY_SHIFT) + begin + at
        return Layout(array, begin, at, length, stride, array.itemsize, size << 1, written, logged)

    # ---------------------------------------------------------------------------------------------------------- faults

    def end(self, *what):
        """Report a fault and end the launch."""
        raise Ended(self.report(*what, ends=True))

    def report(self, kind, place, lane, says, array="", index=None, key=None, ends=False):
        """Keep a fault, unless it is known; returns it."""
        place = PLACES[place] if isinstance(place, int) else place
        source = linecache.getline(place.file, place.line).strip()
        thread = lane if isinstance(lane, Thread) else lane.thread
        who = thread.block_number, thread.number
        where = self.kernel, place.function, place.line, source
        fault = Fault(kind, *where, *who, says, array, index, ends)
        return self.faults.setdefault((kind, place, key), fault)

    def element(self, place, array, index):
        """An element in words, and the name of its array."""
        known = self.block.arrays[id(array)]
        memory = known.begin >> MEMORY_SHIFT
        source = array_of(place)
        name = self.names.get(memory) or source
        where = " in shared memory" if memory == SHARED else "" if known.logged else " in local memory"
        also = f" ({source} there)" if name != source else ""
        return name, f"{name}[{_inside(index)}]{where}{also}"

    def outside(self, lane, place, array, index):
        place = PLACES[place >> PLACE_SHIFT]
        name, element = self.element(place, array, index)
        verb = VERBS[place.kind]
        sizes = " x ".join(f"{length:,}" for length in array.shape)
        says = f"{lane.thread} {verb} {element}, out of bounds: the array has {sizes} element{'s' * (sizes != '1')}"
        if (
            self.block.arrays[id(array)].begin >> MEMORY_SHIFT == SHARED
            and owner_of(array) is self.block.shared.dynamic
        ):
            says += f", since the launch asks for {self.dynamic_bytes:,} bytes of shared memory"
        if min(index if isinstance(index, tuple) else (index,)) < 0:
            why = "an index below 0, which NumPy and Numba count from the end"
            says = f"{lane.thread} {verb} {element}, out of bounds: {why}"
        self.end("bounds", place, lane, says, name, index)

    def unwritten(self, lane, place, array, index):
        place = PLACES[place >> PLACE_SHIFT]
        index = tuple(map(int, index)) if isinstance(index, tuple) else int(index)
        name, element = self.element(place, array, index)
        says = f"{lane.thread} {VERBS[place.kind]} {element}, uninitialized: nothing was written to it"
        self.report("unwritten", place, lane, says, name, index)

    def endless(self, lane, place):
        says = f"{lane.thread} has gone round its loops {lane.rounds - 1:,} times, and is taken for endless"
        self.end("endless", place >> PLACE_SHIFT, lane, says)

    def not_in_mask(self, lane, barrier):
        says = f"{lane.thread} waits with the mask {barrier.mask:#x}, in which its own lane {lane.thread.lane} is not"
        self.end("barrier", lane.at_place >> PLACE_SHIFT, lane, says)

    def passed(self, barrier_of):
        block, lanes = self.block, [thread.record for thread in barrier_of]
        barrier = next(iter(barrier_of.values()))
        if len({lane.at_place for lane in lanes}) > 1:
            self.different_places(lanes)
        if barrier.mask is not BLOCK:
            if barrier.orders:
                block.passed_warp(lanes)
            return
        if len(lanes) < len(block.threads):
            gone = next(thread for thread in block.threads if thread not in barrier_of)
            place = lanes[0].at_place >> PLACE_SHIFT
            name = PLACES[place].expression
            says = f"{lanes[0].thread} waits here, but {gone} has returned: all threads of a block must reach {name}"
            self.report("barrier", place, lanes[0], says)
        block.passed_block()

    def different_places(self, lanes):
        first = lanes[0]
        other = next(lane for lane in lanes if lane.at_place != first.at_place)
        here, there = (PLACES[lane.at_place >> PLACE_SHIFT] for lane in (first, other))
        says = f"{first.thread} waits here, but {other.thread} waits at line {there.line}, {there.expression}"
        self.report("barrier", here, first, f"{says}: all must wait at the same place")

    def stuck(self, waiting):
        lanes = [next(iter(barrier_of)).record for barrier_of in waiting]
        first, *others = lanes
        names = [PLACES[lane.at_place >> PLACE_SHIFT] for lane in lanes]
        missing = f"{first.thread} waits for ever at {names[0].expression}, which others that it waits for never reach"
        if others:
            missing += f": {others[0].thread} waits at line {names[1].line}, {names[1].expression}"
        self.end("barrier", names[0], first, missing)

    def overflow(self, *_):
        frame = sys._getframe(1)
        while frame is not None and LANE not in frame.f_locals:
            frame = frame.f_back
        if frame is not None and may_not_wrap(frame):
            place = Place("overflow", frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno, "")
            self.report("overflow", place, self.lane, f"in {self.thread} a result does not fit its integer type")

    def failed(self, error):
        """A Python exception in the kernel; raises it again if it is not from there."""
        trace, place = error.__traceback__, None
        while trace is not None:
            if LANE in trace.tb_frame.f_locals:
                code = trace.tb_frame.f_code
                place = Place("error", code.co_name, code.co_filename, trace.tb_lineno, "")
            trace = trace.tb_next
        if place is None:
            raise error
        says = f"in {self.thread}: {type(error).__name__}: {error}"
        self.report("error", place, self.lane, says, ends=True)

    # ----------------------------------------------------------------------------------------------------------- races

    def finish_block(self, block):
        """Look for races between the threads of a block; keep what it accessed in global memory."""
        accesses, intervals = block.log(), block.intervals
        number = np.array([thread.number for thread, *_ in intervals])
        of_block, of_warp = (np.array(phases) for phases in block.phases)
        found, first = accesses.sharing(accesses.address, number)
        for phases in (of_block, of_warp):
            groups = np.zeros(found.address.size, np.int64)
            groups[first] = 1
            groups = np.cumsum(groups)
            own = phases[found.interval]
            if phases is of_warp:  # which tells nothing where threads of other warps take part
                warp = number[found.interval] // WARP
                size = np.diff(first, append=groups.size)
                alone = [np.repeat(reduce.reduceat(warp, first), size) for reduce in (np.minimum, np.maximum)]
                own = np.where(alone[0] == alone[1], own, 0)
            found, first = found.sharing(groups * (own.max(initial=0) + 1) + own, number)
            if first.size == 0:
                break
        self.races(found, first, lambda one, two: unordered(intervals[one], intervals[two]), block)
        in_global = accesses[accesses.address >> MEMORY_SHIFT != SHARED].distinct()
        threads = [intervals[k][0] for k in in_global.interval.tolist()]
        self.of_blocks.append((block.number, in_global, threads))

    def finish(self):
        """Look for races between blocks."""
        if len(self.of_blocks) < 2:
            return
        columns = Accesses(*(np.concatenate(column) for column in zip(*(found for _, found, _ in self.of_blocks))))
        threads = [thread for _, _, threads in self.of_blocks for thread in threads]
        columns = columns._replace(interval=np.arange(len(threads)))  # here each access is an interval of its own
        columns = columns.in_units(self.smallest)
        blocks = np.repeat([number for number, *_ in self.of_blocks], [len(threads) for *_, threads in self.of_blocks])
        found, first = columns.sharing(columns.address, blocks)
        self.races(found, first, lambda one, two: threads[one].block_number != threads[two].block_number, None, threads)

    def races(self, found, first, are_unordered, block, threads=None):
        """Report two accesses of each group that race; first: where the groups begin."""
        known = set()
        ends = [*first[1:].tolist(), found.address.size]
        for begin, end in zip(first.tolist(), ends):
            rows = list(zip(*(column[begin:end].tolist() for column in tuple(found))))
            places = frozenset(row[5] for row in rows)
            if places in known:
                continue
            race = first_race(rows, are_unordered)
            if race:
                known.add(places)
                one, two = (threads[row[6]] if threads else block.intervals[row[6]][0] for row in race)
                self.race(race[0], one, race[1], two, block)

    def race(self, one, thread, two, other, block):
        """Report a race of two accesses; each is a row of Accesses."""
        here, there = PLACES[one[5]], PLACES[two[5]]
        if there.kind != "load" and here.kind == "load" and here.line != there.line:
            one, here, there, thread, other = two, there, here, other, thread  # the write first
        if {here.kind, there.kind} == {"load", "atomic"} and guards(here, there):
            return
        same = (here.function, here.line) == (there.function, there.line)
        if "atomic" in (here.kind, there.kind):
            missing = "one of them is not atomic"
        elif same and is_update(here):
            missing = "so an update is lost; it lacks an atomic operation such as cuda.atomic.add"
        elif thread.block_number != other.block_number:
            missing = "and blocks do not wait for each other: it lacks an atomic operation, or a launch in between"
        elif thread.warp == other.warp:
            missing = "two lanes of a warp, with no syncwarp in between"
        else:
            missing = "with no syncthreads in between"
        name, index = self.element_at(one, here, block)
        element = f"{name}[{_inside(index)}]" + (
            " in shared memory" if block and one[0] >> MEMORY_SHIFT == SHARED else ""
        )
        if same and is_update(here):
            says = f"{thread} and {other} both read and write {element}"
        else:
            at_line = "" if same else f" at line {there.line}"
            says = f"{thread} {VERBS[here.kind]} {element}, {other} {VERBS[there.kind]} it{at_line}"
        self.report("race", here, thread, f"a race: {says}, {missing}", name, index, key=there.line)

    def element_at(self, access, place, block):
        """The name of an array, and the index of the element that was accessed."""
        address, size, *_ = access
        layouts = self.arrays if block is None else block.arrays
        inside = [each for each in layouts.values() if 0 <= address - each.begin < each.array.nbytes]
        inside.sort(key=lambda each: each.size != size << 1)  # first those with elements of this size
        if not inside:
            return array_of(place), 0
        known = inside[0]
        number = (address - known.begin) // known.bytes
        shape = known.array.shape
        index = number if len(shape) == 1 else tuple(int(k) for k in np.unravel_index(number, shape))
        return self.names.get(address >> MEMORY_SHIFT) or array_of(place), index


def _inside(index):
    """An index as it is written in brackets."""
    return ", ".join(map(str, index)) if isinstance(index, tuple) else str(index)


def array_of(place):
    """The array of an access, as it is written in the source."""
    return place.expression.partition("[")[0]


def is_update(place):
    """Whether a place is one of an element that is read, changed and written back: `a[i] += 1`."""
    statement = statement_at(place.file, place.line)
    return isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript)


def guards(one, two):
    """Whether a read is the test of an `if` around an atomic operation on that array: it only spares some of them."""
    load, atomic = sorted((one, two), key=lambda place: place.kind, reverse=True)
    if load.file != atomic.file or load.function != atomic.function or array_of(load) != array_of(atomic):
        return False
    first, last = getattr(statement_at(load.file, load.line), "guarded", (0, 0))
    return first <= atomic.line <= last


@cache
def statement_at(file, line):
    """The syntax tree of the statement at a line of a file; of one with others inside, its first line alone."""
    found = None
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # no file of Python
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            found = node  # the walk comes to inner statements later
    if isinstance(found, ast.If):
        found.test.guarded = found.body[0].lineno, found.body[-1].end_lineno
    return getattr(found, "test", getattr(found, "iter", found))


def may_not_wrap(frame):
    """Whether the integers that a frame computes with at its line should not wrap around."""
    statement = statement_at(frame.f_code.co_filename, frame.f_lineno)
    if statement is None:
        return True
    operations = {type(node) for node in ast.walk(statement)}
    return not _has_unsigned(statement, frame) or ast.Mult in operations and not operations & MIXING


def _has_unsigned(statement, frame):
    """Whether an unsigned number takes part in a statement that a frame runs."""
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(statement)}
    if any(name.startswith("uint") or name in POSITIONS for name in names):
        return True
    called = {getattr(node.func, "id", "") for node in ast.walk(statement) if isinstance(node, ast.Call)}
    if called - {"", "int32", "int64", "min", "max", "abs"}:  # a function of unknown type
        return True
    kinds = {getattr(frame.f_locals.get(name), "dtype", np.dtype(bool)).kind for name in names}
    return "u" in kinds


def check_launch(
    function, blocks, threads, args, *, shared=0, written=None, most_rounds=MOST_ROUNDS, at_a_time=64
) -> list[Fault]:
    """Run the Python function of a kernel on NumPy arrays, which it changes; returns its faults.

    blocks, threads: a number, or a tuple with one for each dimension. shared: bytes of dynamic shared memory of a
    block. written: a Written, which knows what earlier launches have written; without it, all arrays are. at_a_time:
    how many blocks take turns.
    """
    checker = Checker(function.__name__, blocks, threads, int(shared), written or Written(), most_rounds)
    blocks = math.prod(map(int, checker.gridDim))
    run = simulated(function, checker)
    checker.name(function, args)
    waiting = (CheckedBlock(number, checker, run, args) for number in range(blocks))
    running = list(islice(waiting, at_a_time))
    done = 0
    with np.errstate(over="call", divide="ignore", call=checker.overflow):
        try:
            while running:
                for block in list(running):
                    if not block.run():
                        done += 1
                        pulse(done / blocks)
                        running.remove(block)
                        checker.finish_block(block)
                        running += islice(waiting, 1)
        except Ended:
            pass
        except Exception as error:
            checker.failed(error)
        for block in running:  # those that a fault ended
            checker.finish_block(block)
        checker.finish()
    return list(checker.faults.values())
