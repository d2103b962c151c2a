"""Running a CUDA kernel as Python, one thread after the other: the engine "sim".

`simulate` runs the Python function of a kernel with a `SimulatedCuda` in place of `cuda`. A thread is a generator: in
the kernel's source, and in that of the device functions it calls, each call that waits for other threads becomes a
`yield`. So threads always run in the same order, switching costs little, and a barrier that some threads never reach
is an error at once. No CUDA package is needed.

What it cannot run is a thread that spins until another one has written something.
"""

import ast
import inspect
import random
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, GeneratorType
from typing import NamedTuple

import numpy as np

from tcgpu.engines.integers import SIMULATED_NAMES, SimulatedIntegers, typed_int
from tcgpu.engines.kernel_language import compiled_tree, is_cuda, is_device_function, names_of, source_tree
from tcgpu.progress import pulse

WARP = 32
ALL_LANES = 0xFFFFFFFF
BLOCK = None  # the mask of a meeting of the whole block
STAND_IN = "__cuda__"  # what a simulated function knows its `SimulatedCuda` by, whatever it calls it itself


class Meeting(NamedTuple):
    """What a thread waits for: that all threads of its block, or the lanes of a mask in its warp, are there.

    It brings `value`; `answer(lane, said)` makes what it goes on with out of {lane: value} of all who came.
    """

    mask: int | None
    value: object
    answer: Callable


def _nothing(lane, said):
    return None


class Dim3(NamedTuple):
    """A position in a launch, or its extent."""

    x: np.uint32
    y: np.uint32 = np.uint32(0)
    z: np.uint32 = np.uint32(0)


class Atomics:
    """`cuda.atomic`: each returns the value before. Threads run one at a time, so nothing can come between."""

    def add(self, array, index, value):
        return self._put(array, index, lambda old: old + value)

    def sub(self, array, index, value):
        return self._put(array, index, lambda old: old - value)

    def and_(self, array, index, value):
        return self._put(array, index, lambda old: old & value)

    def or_(self, array, index, value):
        return self._put(array, index, lambda old: old | value)

    def xor(self, array, index, value):
        return self._put(array, index, lambda old: old ^ value)

    def max(self, array, index, value):
        return self._put(array, index, lambda old: max(old, value))

    def min(self, array, index, value):
        return self._put(array, index, lambda old: min(old, value))

    def inc(self, array, index, limit):
        return self._put(array, index, lambda old: 0 if old >= limit else old + 1)

    def dec(self, array, index, limit):
        return self._put(array, index, lambda old: limit if old == 0 or old > limit else old - 1)

    def exch(self, array, index, value):
        return self._put(array, index, lambda old: value)

    def cas(self, array, index, expected, value):
        return self._put(array, index, lambda old: value if old == expected else old)

    def compare_and_swap(self, array, expected, value):
        return self.cas(array, (0,) * array.ndim, expected, value)

    def _put(self, array, index, change):
        old = array[index]
        array[index] = change(old)
        return old


class LocalMemory:
    """`cuda.local`: arrays of one thread."""

    def array(self, shape, dtype):
        return np.empty(shape, numpy_type(dtype))


class ConstantMemory:
    """`cuda.const`: arrays that no thread writes."""

    def array_like(self, array):
        return array


def numpy_type(dtype):
    """The NumPy type of a type that a kernel names: NumPy's or Numba's."""
    return np.dtype(getattr(dtype, "name", dtype))


def _bits(value):
    """The bits of an integer as a text of 0 and 1, as many as its type has; a Python integer has 64."""
    width = 8 * value.itemsize if isinstance(value, np.generic) else 64
    return f"{int(value) & (1 << width) - 1:0{width}b}"


def _mask(lanes):
    """The bits of these lanes."""
    return np.uint32(sum(1 << int(lane) for lane in lanes))


class SimulatedCuda:
    """What `cuda` is inside a simulated kernel. `thread` is the one that runs now.

    There is no `activemask`: lanes do not run in lockstep, they meet where an intrinsic says so.
    """

    rewriting = None  # what makes of a function's tree the one that runs; set below
    warpsize = np.uint32(WARP)
    atomic, local, const = Atomics(), LocalMemory(), ConstantMemory()

    def __init__(self, blocks, threads, shared):
        one = np.uint32(1)
        self.gridDim, self.blockDim = Dim3(np.uint32(blocks), one, one), Dim3(np.uint32(threads), one, one)
        self.dynamic_bytes = shared
        self.shared = self.thread = None

    def start_block(self):
        self.shared = SharedMemory(self.dynamic_bytes)

    @property
    def threadIdx(self):
        return self.thread.index

    @property
    def blockIdx(self):
        return self.thread.block

    @property
    def laneid(self):
        return np.uint32(self.thread.lane)

    def grid(self, dimensions):
        if dimensions != 1:
            raise ValueError("a kernel of tcgpu has one dimension")
        return np.int64(self.thread.block.x) * self.blockDim.x + self.thread.index.x

    def gridsize(self, dimensions):
        if dimensions != 1:
            raise ValueError("a kernel of tcgpu has one dimension")
        return np.int64(self.gridDim.x) * self.blockDim.x

    def popc(self, value):
        return np.uint32(_bits(value).count("1"))

    def clz(self, value):
        bits = _bits(value)
        return np.uint32(len(bits) - len(bits.lstrip("0")))

    def ffs(self, value):
        bits = _bits(value)
        return np.uint32(0 if "1" not in bits else len(bits) - bits.rindex("1"))

    def brev(self, value):
        return type(value)(int(_bits(value)[::-1], 2))

    def selp(self, condition, yes, no):
        return yes if condition else no

    def fma(self, a, b, c):
        return a * b + c

    def threadfence(self):
        pass

    threadfence_block = threadfence_system = threadfence

    def syncthreads(self):
        return Meeting(BLOCK, None, _nothing)

    def syncthreads_count(self, predicate):
        return Meeting(BLOCK, bool(predicate), lambda lane, said: np.uint32(sum(said.values())))

    def syncthreads_and(self, predicate):
        return Meeting(BLOCK, bool(predicate), lambda lane, said: np.uint32(all(said.values())))

    def syncthreads_or(self, predicate):
        return Meeting(BLOCK, bool(predicate), lambda lane, said: np.uint32(any(said.values())))

    def syncwarp(self, mask=ALL_LANES):
        return Meeting(int(mask), None, _nothing)

    def shfl_sync(self, mask, value, source):
        return Meeting(int(mask), value, lambda lane, said: said.get(source % WARP, value))

    def shfl_up_sync(self, mask, value, delta):
        return Meeting(int(mask), value, lambda lane, said: said.get(lane - delta, value))

    def shfl_down_sync(self, mask, value, delta):
        return Meeting(int(mask), value, lambda lane, said: said.get(lane + delta, value))

    def shfl_xor_sync(self, mask, value, bits):
        return Meeting(int(mask), value, lambda lane, said: said.get(lane ^ bits, value))

    def ballot_sync(self, mask, predicate):
        return Meeting(int(mask), bool(predicate), lambda lane, said: _mask(o for o in said if said[o]))

    def any_sync(self, mask, predicate):
        return Meeting(int(mask), bool(predicate), lambda lane, said: any(said.values()))

    def all_sync(self, mask, predicate):
        return Meeting(int(mask), bool(predicate), lambda lane, said: all(said.values()))

    def match_any_sync(self, mask, value):
        return Meeting(int(mask), value, lambda lane, said: _mask(o for o in said if said[o] == value))

    def lanemask_lt(self):
        return np.uint32((1 << self.thread.lane) - 1)

    def nanosleep(self, nanoseconds):
        pass


# the calls that become a `yield`
WAITING = {name for name in vars(SimulatedCuda) if name.startswith("sync") or name.endswith("_sync")}


class SharedMemory:
    """A block's shared memory: full of rubbish at first, as on a GPU, so that a read before a write shows."""

    RUBBISH = 0xA5
    ALIGNED = 128

    def __init__(self, dynamic_bytes):
        self._dynamic = np.full(dynamic_bytes, self.RUBBISH, np.uint8)
        self._views = {}  # of the dynamic memory, by type
        self._static = {}

    def array(self, shape, dtype):
        """The array that this place in the source asks for; shape 0 is the dynamic memory."""
        dtype = numpy_type(dtype)
        if shape == 0:
            if dtype not in self._views:
                whole = self._dynamic.size // dtype.itemsize * dtype.itemsize
                self._views[dtype] = self._dynamic[:whole].view(dtype)
            return self._views[dtype]
        caller = sys._getframe(1)
        place = caller.f_code, caller.f_lasti
        if place not in self._static:
            raw = np.full(int(np.prod(shape)) * dtype.itemsize, self.RUBBISH, np.uint8)
            self._static[place] = raw.view(dtype).reshape(shape)
        return self._static[place]

    def begin(self, owner):
        """How many bytes into this memory the array begins to which others are views; None if it lies elsewhere."""
        at = 0
        for array in (self._dynamic, *self._static.values()):
            if owner is array or owner is array.base:
                return at
            at += -(-array.nbytes // self.ALIGNED) * self.ALIGNED
        return None


class Thread:
    """One thread of one block: where it is, and the generator that runs it."""

    def __init__(self, block, number):
        self.block, self.index = Dim3(np.uint32(block)), Dim3(np.uint32(number))
        self.number, self.warp, self.lane = number, number // WARP, number % WARP
        self.steps = None

    def __str__(self):
        return f"thread {self.number} of block {self.block.x}"


def simulate(function, blocks, threads, args, *, shared=0, module=SimulatedCuda, seed=None):
    """Run the Python function of a kernel on NumPy arrays, `module` standing for `cuda` in it.

    Between two meetings the threads of a block run one after the other, in the order of their numbers; with a `seed`,
    in an order drawn anew each time: where a barrier is missing, the count then changes.
    """
    blocks, threads = int(blocks), int(threads)
    stand_in = module(blocks, threads, int(shared))
    run = simulated(function, stand_in)
    shuffle = random.Random(seed).shuffle if seed is not None else None
    with np.errstate(over="ignore", divide="ignore"):  # integers wrap around on a GPU
        for block in range(blocks):
            stand_in.start_block()
            pulse(block / blocks)
            for _ in rounds(run, args, stand_in, [Thread(block, number) for number in range(threads)], shuffle):
                pass


def rounds(run, args, stand_in, threads, shuffle=None):
    """Run the threads of a block; a pause each time that all of them wait or have returned."""
    live = {thread.number for thread in threads}
    ready = [(thread, None) for thread in threads]
    meetings = {}  # (warp, mask) or (BLOCK, BLOCK) -> {thread: its Meeting}
    while ready:
        if shuffle:
            shuffle(ready)
        for thread, answer in ready:
            pulse()
            meeting = _advance(run, args, stand_in, thread, answer)
            if meeting is None:
                live.discard(thread.number)
            else:
                place = (BLOCK, BLOCK) if meeting.mask is BLOCK else (thread.warp, meeting.mask)
                meetings.setdefault(place, {})[thread] = meeting
        ready = []
        for place in list(meetings):
            if len(meetings[place]) == _expected(place, live):
                ready += _answers(meetings.pop(place))
        yield
    if meetings:
        waiting = ", ".join(str(next(iter(came))) for came in meetings.values())
        raise RuntimeError(f"threads wait at barriers that others of their block never reach: {waiting}")


def _advance(run, args, stand_in, thread, answer):
    """Let the thread run on until it waits; the Meeting that it waits for, None when it has returned."""
    stand_in.thread = thread
    try:
        if thread.steps is None:
            thread.steps = run(
                *map(typed_int, args)
            )  # does all of it, and returns no generator, in a kernel that never waits
            return next(thread.steps) if isinstance(thread.steps, GeneratorType) else None
        return thread.steps.send(answer)
    except StopIteration:
        return None
    except Exception as error:
        error.add_note(f"in {thread}")
        raise


def _expected(place, live):
    """How many threads must come to a meeting: those of its block, or lanes of its warp, that have not returned."""
    warp, mask = place
    if mask is BLOCK:
        return len(live)
    return sum(mask >> lane & 1 for lane in range(WARP) if warp * WARP + lane in live)


def _answers(meeting_of):
    """What each thread of a meeting that has taken place goes on with."""
    block = next(iter(meeting_of.values())).mask is BLOCK
    said = {(thread.number if block else thread.lane): meeting.value for thread, meeting in meeting_of.items()}
    return [(thread, meeting.answer(thread.lane, said)) for thread, meeting in meeting_of.items()]


# --------------------------------------------------------------------------------------------- from kernel to generator


def simulated(function, stand_in):
    """The kernel or device function with `stand_in` for `cuda`; a generator function if it waits for other threads."""
    code, names = _rewritten(function, stand_in.rewriting), names_of(function)
    names.update(SIMULATED_NAMES)
    names[STAND_IN] = stand_in
    for name, value in names.items():
        if is_cuda(value):
            names[name] = stand_in
        elif type(value).__name__ == "Integer":  # Numba's, which a kernel of somebody's may name
            names[name] = getattr(np, value.name)
        elif is_device_function(value) and name in code.co_names:
            names[name] = simulated(value.py_func, stand_in)
    return FunctionType(code, names, function.__name__, tuple(map(typed_int, function.__defaults__ or ())))


@cache
def _rewritten(function, rewriting) -> CodeType:
    """The code of the function with typed integers, and as `YieldWhereItWaits`, or one that does more, rewrites it."""
    tree = source_tree(function)
    definition = tree.body[0]
    SimulatedIntegers(function).visit(definition)
    rewriting(function).visit(definition)
    return compiled_tree(tree, function)


class YieldWhereItWaits(ast.NodeTransformer):
    """A `yield` at each call that waits for other threads."""

    def __init__(self, function):
        self.names = names_of(function)

    def visit_Call(self, call):
        self.generic_visit(call)
        if self.waits(call):
            return ast.copy_location(ast.Yield(call), call)
        if self.calls_device_function(call) and self.callee_waits(call):
            return ast.copy_location(ast.YieldFrom(call), call)
        return call

    def waits(self, call):
        """Whether it is one of `cuda`'s that wait for other threads."""
        return isinstance(call.func, ast.Attribute) and self.is_cuda(call.func.value) and call.func.attr in WAITING

    def is_cuda(self, node):
        return isinstance(node, ast.Name) and is_cuda(self.names.get(node.id))

    def calls_device_function(self, call):
        return isinstance(call.func, ast.Name) and is_device_function(self.names.get(call.func.id))

    def callee_waits(self, call):
        code = _rewritten(self.names[call.func.id].py_func, type(self))
        return bool(code.co_flags & inspect.CO_GENERATOR)


SimulatedCuda.rewriting = YieldWhereItWaits
