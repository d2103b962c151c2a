"""Running a kernel as Python and writing down what its lanes do: steps and requests, by block, warp and order.

A `Lane` keeps where a thread is: at which statement, in which round of which loops, by which calls. Lanes of a warp
that come to one statement in the same rounds of the same loops, by the same calls, do so in one *step*, and what they
access at one place of it is one *request*. That is what the hardware does: a warp whose lanes go different ways runs
one way after the other, and goes on together where these ways meet. A loop goes on with the lanes that have another
round, while the others wait behind it.

A value that a lane has read already by the very same expression, on its way here, in the same round of the same loops,
is *kept* in a register if nothing was written there or waited for since: no second request. "There" is global or shared
memory as a whole.

A compiler does more than that, and then a trace counts what is written and not what is run: it reads two neighbouring
words at once, moves a load onto the only way that needs it, and unrolls loops, whose rounds then fall apart.

Blocks run in turns: the next one to go on, up to its next meeting, is the one that has done the fewest steps. So tasks
that blocks take off a queue are dealt out as on a device, where all blocks are at work at the same time.
"""

import gc
import heapq
from contextlib import contextmanager
from itertools import islice

import numpy as np

from tcgpu.engines.simulator import WARP, SharedMemory, SimulatedCuda, Thread, rounds, simulated
from tcgpu.progress import pulse
from tcgpu.tracing.rewriting import REGISTERS, Recorded

SHARED = 0  # the number of the shared memory; arrays in global memory are numbered from 1 on
PLACE_BITS = 44  # of an address, below the number of the memory


class Step(dict):
    """What the lanes of a warp did at one place: number of a site, or of a round -> Step or Request.

    Sorted by these numbers, all of it is in the order in which a warp does it.
    """

    __slots__ = ("lanes",)  # those that ran it, as bits; none if it is a loop, a round or a call

    def __missing__(self, number):
        step = self[number] = Step()
        step.lanes = 0
        return step


class Request:
    __slots__ = ("size", "lanes", "addresses")

    def __init__(self, size):
        self.size, self.lanes, self.addresses = size, [], []


class Warp:
    def __init__(self):
        self.done = Step()
        self.steps = 0
        self.kept = 0  # loads that a register spared


class Lane:
    """What a traced kernel talks to: where one thread is, and what it does there."""

    def __init__(self, block, thread):
        self.block, self.warp = block, block.warps[thread.warp]
        self.number, self.bit = thread.lane, 1 << thread.lane
        self.inside = self.warp.done  # the round or call that the thread is in
        self.here = None  # the step that it does
        self.loops = []  # around it: what each is inside of, its own place, the number of the round
        self.registers = {}, {}  # of global and of shared memory: (expression, place) -> address, branches
        self.pending = None

    def step(self, site):
        self.here = here = self.inside[site]
        if not here.lanes:
            self.warp.steps += 1
        here.lanes |= self.bit

    def enter(self, loop):
        self.loops.append([self.inside, self.inside[loop], -1])

    def again(self, site):
        """One more round of a `while` begins, or its test says that there is none."""
        loop = self.loops[-1]
        loop[2] += 1
        self.inside = loop[1][loop[2]]
        self.step(site)
        return True

    def rounds(self, site, items):
        """The items of a `for`, a round each."""
        for item in items:
            self.again(site)
            yield item

    def leave(self):
        self.inside = self.loops.pop()[0]

    def call(self, site, function, *args, **named):
        inside, here, loops = self._go_into(site)
        result = function(*args, **named)
        self.inside, self.here, self.loops = inside, here, loops
        return result

    def call_waiting(self, site, function, *args, **named):
        inside, here, loops = self._go_into(site)
        result = yield from function(*args, **named)
        self.inside, self.here, self.loops = inside, here, loops
        return result

    def _go_into(self, site):
        """Go into a function; what to come back to."""
        back = self.inside, self.here, self.loops
        self.inside, self.loops = self.here[site], []
        return back

    def met(self, answer):
        """The thread goes on with what a meeting answered: others may have written meanwhile."""
        for registers in self.registers:
            registers.clear()
        return answer

    def load(self, site, array, index):
        value = array[index]
        if type(array) is np.ndarray and type(value) is not np.ndarray:
            size, address = self.block.address(array, index)
            expression, branches = REGISTERS[site]
            register = expression, id(self.inside)
            registers = self.registers[address >> PLACE_BITS == SHARED]
            known = registers.get(register)
            if known and known[0] == address and branches[: len(known[1])] == known[1]:
                self.warp.kept += 1
            else:
                registers[register] = address, branches
                self._request(site, size, address)
        return value

    def at(self, stored, loaded, array):
        """Stands for an array one of whose elements is about to be written, and read before if `loaded` is a site."""
        self.pending = stored, loaded, array
        return self

    def __getitem__(self, index):
        _, loaded, array = self.pending
        self._request(loaded, *self.block.address(array, index))
        return array[index]

    def __setitem__(self, index, value):
        stored, _, array = self.pending
        array[index] = value
        self._write(stored, array, index)

    def atomic(self, site, operation, array, index, *values):
        at = 0 if operation.__name__ == "compare_and_swap" else index
        self._write(site, array, at)
        return operation(array, index, *values)

    def _write(self, site, array, index):
        size, address = self.block.address(array, index)
        self.registers[address >> PLACE_BITS == SHARED].clear()
        self._request(site, size, address)

    def _request(self, site, size, address):
        request = self.here.get(site)
        if request is None:
            request = self.here[site] = Request(size)
        request.lanes.append(self.number)
        request.addresses.append(address)


class Recorder(SimulatedCuda):
    """A `SimulatedCuda` whose threads write down what they do.

    `memories` are the names of the arrays in global memory, by number: those of the kernel's parameters.
    """

    rewriting = Recorded

    def __init__(self, blocks, threads, shared):
        super().__init__(blocks, threads, shared)
        self.memories, self._number_of = ["shared memory"], {}

    @property
    def lane(self):
        return self.thread.record

    def enter(self, block):
        """From now on threads of this block run."""
        self.shared = block.shared

    def begin(self, array, name=None):
        """The address at which an array begins: its memory's number, and where in that; views share their memory."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        into = array.ctypes.data - owner.ctypes.data
        shared = None if name else self.shared.begin(owner)
        if shared is not None:
            return (SHARED << PLACE_BITS) + shared + into
        number = self._number_of.setdefault(id(owner), len(self.memories))
        if number == len(self.memories):
            self.memories.append(name or "local memory")
        else:
            self.memories[number] += f", {name}"
        return (number << PLACE_BITS) + into


class Block:
    """A block at work: its threads, what their warps have done, its shared memory."""

    def __init__(self, number, recorder, run, args, places):
        self.number, self.recorder = number, recorder
        self.begun = 0  # how many steps the device had done when it began
        self.shared = SharedMemory(recorder.dynamic_bytes)
        self.places = dict(places)  # id of an array -> what `place_of` says of it
        self._threads = [Thread(number, k) for k in range(recorder.blockDim.x)]
        self.warps = [Warp() for _ in range(-(-len(self._threads) // WARP))]
        for thread in self._threads:
            thread.record = Lane(self, thread)
        self._turns = rounds(run, args, recorder, self._threads)

    def go_on(self):
        """Run up to the next meeting; False if there is nothing left to do."""
        self.recorder.enter(self)
        return next(self._turns, self) is not self

    def forget(self):
        """Let go of what was done, which refers to itself in circles."""
        for thread in self._threads:
            del thread.record
        del self.warps, self._turns, self._threads

    @property
    def clock(self):
        """How many steps the device has done when this block has done its own so far."""
        return self.begun + max(warp.steps for warp in self.warps)

    def address(self, array, index):
        """Bytes of an element, and its address."""
        place = self.places.get(id(array))
        if place is None:
            place = self.places[id(array)] = place_of(array, self.recorder.begin(array))
        _, begin, size, lengths, strides = place
        if type(index) is not tuple:
            return size, begin + int(index) % lengths[0] * strides[0]  # from the end, if it is negative
        return size, begin + sum(int(i) % length * stride for i, length, stride in zip(index, lengths, strides))


def place_of(array, begin):
    """The array, its first address, bytes of an element, lengths and strides."""
    return array, begin, array.itemsize, array.shape, array.strides


@contextmanager
def _no_collection():
    """Keep Python from looking for garbage among millions of small objects, none of which is: half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def record(function, blocks, threads, args, *, shared=0, at_a_time=1024, done=lambda block: None):
    """Run the Python function of a kernel and call `done` with each Block that has returned.

    at_a_time: how many blocks are at work at the same time. Returns the names of the memories, by number.
    """
    recorder = Recorder(int(blocks), int(threads), int(shared))
    run = simulated(function, recorder)
    arrays = [(name, array) for name, array in zip(function.__code__.co_varnames, args) if type(array) is np.ndarray]
    places = {id(array): place_of(array, recorder.begin(array, name)) for name, array in arrays}
    waiting = (Block(number, recorder, run, args, places) for number in range(int(blocks)))
    at_work = [(0, block.number, block) for block in islice(waiting, at_a_time)]  # a heap: (clock, number, block)
    with np.errstate(over="ignore", divide="ignore"), _no_collection():  # integers wrap around on a GPU
        while at_work:
            clock, number, block = at_work[0]
            if block.go_on():
                heapq.heapreplace(at_work, (block.clock, number, block))
                continue
            pulse(1 - len(at_work) / blocks)
            heapq.heappop(at_work)
            done(block)
            block.forget()
            for following in islice(waiting, 1):  # in the place of the one that has returned
                following.begun = clock
                heapq.heappush(at_work, (clock, following.number, following))
    return recorder.memories
