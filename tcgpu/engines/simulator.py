"""Running a CUDA kernel as Python, one thread after the other: the engine "sim".

`simulate` runs the Python function of a kernel with a `SimulatedCuda` in place of `cuda`. A thread is a generator: in
the kernel's source, and in that of the device functions it calls, each call that waits for other threads becomes a
`yield`. So threads always run in the same order, switching is fast, and a barrier that some threads never reach is an
error at once. No CUDA package is needed.

It cannot run a thread that spins until another one has written something.
"""

import ast
import inspect
import math
import random
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, GeneratorType, SimpleNamespace
from typing import NamedTuple

import numpy as np

from tcgpu.engines import kernel_language
from tcgpu.engines.integers import SIMULATED_NAMES, SimulatedIntegers, typed_int
from tcgpu.errors import KernelError
from tcgpu.progress import pulse

WARP = 32
ALL_LANES = 0xFFFFFFFF
BLOCK = None  # the mask of a barrier of the whole block
STAND_IN = "__cuda__"  # an additional global name in every simulated function: its SimulatedCuda


class Barrier(NamedTuple):
    """Where a thread waits for all threads of its block, or for those lanes of its warp that are in a mask.

    value: the value that it shares with them. result(values, lane): the value returned to it; values: {lane: value}.
    orders: whether what they did to memory before it is seen by all of them after it; shuffles and votes don't.
    """

    mask: int | None
    value: object
    result: Callable
    orders: bool = True


class Dim3(NamedTuple):
    """A position in a launch, or its extent."""

    x: np.uint32
    y: np.uint32 = np.uint32(0)
    z: np.uint32 = np.uint32(0)

    def at(self, number):
        """The position of this number, where this is the extent: x counts fastest."""
        if self.y == self.z == 1:
            return Dim3(np.uint32(number))
        rest, x = divmod(int(number), int(self.x))
        return Dim3(*map(np.uint32, (x, rest % int(self.y), rest // int(self.y))))


def extent_of(sizes):
    """The extent of a grid or block as a Dim3; sizes: a number, or one for each of up to three dimensions."""
    sizes = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    return Dim3(*(np.uint32(int(size)) for size in (*sizes, 1, 1)[:3]))


def _atomic(change):
    """An operation of `cuda.atomic`: stores `change(old, *operands)` in an element and returns the old value."""

    def operation(self, array, index, *operands):
        old = array[index]
        array[index] = change(old, *operands)
        return old

    return operation


class Atomics:
    """`cuda.atomic`. Threads run one at a time, so no operation is interrupted."""

    add = _atomic(lambda old, value: old + value)
    sub = _atomic(lambda old, value: old - value)
    and_ = _atomic(lambda old, value: old & value)
    or_ = _atomic(lambda old, value: old | value)
    xor = _atomic(lambda old, value: old ^ value)
    max = _atomic(max)
    min = _atomic(min)
    inc = _atomic(lambda old, limit: 0 if old >= limit else old + 1)
    dec = _atomic(lambda old, limit: limit if old == 0 or old > limit else old - 1)
    exch = _atomic(lambda old, value: value)
    cas = _atomic(lambda old, expected, value: value if old == expected else old)

    def compare_and_swap(self, array, expected, value):
        return self.cas(array, (0,) * array.ndim, expected, value)


def numpy_type(dtype):
    """The NumPy type of a type in a kernel, NumPy's or Numba's."""
    return np.dtype(getattr(dtype, "name", dtype))


def _bits(value):
    """The bits of an integer as a text of 0 and 1, as many as its type has; 64 for a Python integer."""
    width = 8 * value.itemsize if isinstance(value, np.generic) else 64
    return f"{int(value) & (1 << width) - 1:0{width}b}"


def _mask(lanes):
    return np.uint32(sum(1 << int(lane) for lane in lanes))


def _of_block(result):
    """A method of SimulatedCuda: the block's threads share `predicate`; it returns `result(values)` to each."""
    return lambda self, predicate: Barrier(BLOCK, bool(predicate), lambda values, lane: np.uint32(result(values)))


def _of_warp(result, kind=lambda value: value):
    """A method of SimulatedCuda: the lanes of `mask` share `kind(value)`; it returns `result(values, lane, value,
    *args)` to each."""

    def method(self, mask, value, *args):
        return Barrier(int(mask), kind(value), lambda values, lane: result(values, lane, value, *args), False)

    return method


class SimulatedCuda:
    """The value of `cuda` inside a simulated kernel. `thread` is the one that runs now.

    There is no `activemask`: lanes do not run in lockstep, and wait for each other only at intrinsics.
    """

    rewriting = None  # the transformer of a function's syntax tree, set below
    warpsize = np.uint32(WARP)
    atomic = Atomics()
    local = SimpleNamespace(array=lambda shape, dtype: np.empty(shape, numpy_type(dtype)))  # arrays of a thread
    const = SimpleNamespace(array_like=lambda array: array)  # arrays that no thread writes

    def __init__(self, blocks, threads, shared):
        self.gridDim, self.blockDim = extent_of(blocks), extent_of(threads)
        self.dynamic_bytes = shared
        self.block = self.shared = self.thread = None  # of the block that runs

    def passed(self, barrier_of):
        """Called when threads go on from a barrier together; barrier_of: {thread: its Barrier}."""

    def stuck(self, waiting):
        """Called when threads can't go on; waiting: {thread: its Barrier} for each barrier."""
        threads = ", ".join(str(next(iter(barrier_of))) for barrier_of in waiting)
        raise RuntimeError(f"threads wait at barriers that others of their block never reach: {threads}")

    @property
    def threadIdx(self):
        return self.thread.index

    @property
    def blockIdx(self):
        return self.thread.block_index

    @property
    def laneid(self):
        return np.uint32(self.thread.lane)

    def grid(self, dimensions):
        block, index = self.thread.block_index, self.thread.index
        if dimensions == 1:
            return np.int64(block.x) * self.blockDim.x + index.x
        places = zip(block[:dimensions], self.blockDim, index, strict=False)
        return tuple(np.int64(b) * size + i for b, size, i in places)

    def gridsize(self, dimensions):
        if dimensions == 1:
            return np.int64(self.gridDim.x) * self.blockDim.x
        sizes = zip(self.gridDim[:dimensions], self.blockDim, strict=False)
        return tuple(np.int64(blocks) * size for blocks, size in sizes)

    def popc(self, value):
        return np.uint32(_bits(value).count("1"))

    def clz(self, value):
        return np.uint32(f"{_bits(value)}1".index("1"))

    def ffs(self, value):
        return np.uint32(1 + _bits(value)[::-1].find("1"))

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
        return Barrier(BLOCK, None, lambda values, lane: None)

    def syncwarp(self, mask=ALL_LANES):
        return Barrier(int(mask), None, lambda values, lane: None)

    syncthreads_count = _of_block(lambda values: sum(values.values()))
    syncthreads_and = _of_block(lambda values: all(values.values()))
    syncthreads_or = _of_block(lambda values: any(values.values()))
    shfl_sync = _of_warp(lambda values, lane, own, source: values.get(source % WARP, own))
    shfl_up_sync = _of_warp(lambda values, lane, own, delta: values.get(lane - delta, own))
    shfl_down_sync = _of_warp(lambda values, lane, own, delta: values.get(lane + delta, own))
    shfl_xor_sync = _of_warp(lambda values, lane, own, bits: values.get(lane ^ bits, own))
    ballot_sync = _of_warp(lambda values, lane, own: _mask(other for other in values if values[other]), bool)
    any_sync = _of_warp(lambda values, lane, own: any(values.values()), bool)
    all_sync = _of_warp(lambda values, lane, own: all(values.values()), bool)
    match_any_sync = _of_warp(lambda values, lane, own: _mask(other for other in values if values[other] == own))

    def lanemask_lt(self):
        return np.uint32((1 << self.thread.lane) - 1)

    def nanosleep(self, nanoseconds):
        pass


# the calls that become a `yield`
WAITING = {name for name in vars(SimulatedCuda) if name.startswith("sync") or name.endswith("_sync")}


class SharedMemory:
    """A block's shared memory, filled with arbitrary bytes as on a GPU, so that a read before a write shows."""

    UNINITIALIZED = 0xA5
    MOST_STATIC = 48 << 10  # bytes of arrays whose sizes the source says: of every GPU
    ALIGNMENT = 128

    def __init__(self, dynamic_bytes):
        self.dynamic = np.full(dynamic_bytes, self.UNINITIALIZED, np.uint8)
        self._views = {}  # of the dynamic memory, by type
        self._static = {}

    def array(self, shape, dtype):
        """The array of this call in the source, the same for all threads; shape 0 is the dynamic memory."""
        dtype = numpy_type(dtype)
        if shape == 0:
            if dtype not in self._views:
                whole = self.dynamic.size // dtype.itemsize * dtype.itemsize
                self._views[dtype] = self.dynamic[:whole].view(dtype)
            return self._views[dtype]
        caller = sys._getframe(1)
        call = caller.f_code, caller.f_lasti
        if call not in self._static:
            raw = np.full(int(np.prod(shape)) * dtype.itemsize, self.UNINITIALIZED, np.uint8)
            self._static[call] = raw.view(dtype).reshape(shape)
            in_all = sum(array.nbytes for array in self._static.values())
            if in_all > self.MOST_STATIC:
                raise KernelError(
                    f"the shared arrays of a block have {in_all:,} bytes, of at most {self.MOST_STATIC:,}; more is for "
                    "cuda.shared.array(0, type), whose bytes the launch asks for"
                )
        return self._static[call]

    def begin(self, owner):
        """The offset in this memory, in bytes, of the array that views have as `base`; None if it is elsewhere."""
        at = 0
        for array in (self.dynamic, *self._static.values()):
            if owner is array or owner is array.base:
                return at
            at += -(-array.nbytes // self.ALIGNMENT) * self.ALIGNMENT
        return None


class Thread:
    """A thread of a Block: its indices, and the generator that runs it; number: through all dimensions."""

    def __init__(self, block, number):
        self.block_number, self.number, self.launch = block.number, number, block.launch
        self.block_index, self.index = self.launch.gridDim.at(block.number), self.launch.blockDim.at(number)
        self.warp, self.lane = number // WARP, number % WARP
        self.steps = None

    def __str__(self):
        return f"thread {self._name('blockDim', self.index)} of block {self._name('gridDim', self.block_index)}"

    def _name(self, extent, position):
        """A position as text: a number, or one for each dimension that the launch has."""
        extent = getattr(self.launch, extent)
        dimensions = max([k for k in (1, 2, 3) if extent[k - 1] > 1], default=1)
        numbers = ", ".join(str(int(number)) for number in position[:dimensions])
        return f"({numbers})" if dimensions > 1 else numbers


class ThreadEnds(Exception):
    """Raised in a thread to end it at once."""


def simulate(function, blocks, threads, args, *, shared=0, seed=None):
    """Run the Python function of a kernel on NumPy arrays.

    blocks, threads: a number, or a tuple with one for each dimension.

    Between two barriers the threads of a block run one after the other, in the order of their numbers. With a `seed`
    the order is random: if a barrier is missing, the result changes.
    """
    stand_in = SimulatedCuda(blocks, threads, int(shared))
    blocks, run = math.prod(map(int, stand_in.gridDim)), simulated(function, stand_in)
    shuffle = random.Random(seed).shuffle if seed is not None else None
    with np.errstate(over="ignore", divide="ignore"):  # integers wrap around on a GPU
        for number in range(blocks):
            pulse(number / blocks)
            block = Block(number, stand_in, run, args, shuffle=shuffle)
            while block.run():
                pass


class Block:
    """A block that runs: its threads and its shared memory."""

    def __init__(self, number, launch, function, args, *, only=slice(None), shuffle=None, kind=Thread):
        """launch: a SimulatedCuda. function: from `simulated`. only: which threads run. shuffle: reorders a list. kind:
        the class of the threads."""
        self.number, self.launch, self.shared = number, launch, SharedMemory(launch.dynamic_bytes)
        self.function, self.args, self.shuffle = function, args, shuffle
        self.threads = [kind(self, k) for k in range(math.prod(map(int, launch.blockDim)))[only]]
        self.live = {thread.number for thread in self.threads}
        self.ready = [(thread, None) for thread in self.threads]  # with what the barrier returns that each waited at
        self.waiting = {}  # (warp, mask) or (BLOCK, BLOCK) -> {thread: its Barrier}

    def run(self):
        """Run up to the next wait; False if all threads have returned."""
        self.launch.block, self.launch.shared = self, self.shared
        if not self.ready:
            if self.waiting:
                self.launch.stuck(list(self.waiting.values()))
            self.args = ()  # the arrays live no longer than their launch
            return False
        if self.shuffle:
            self.shuffle(self.ready)
        for thread, result in self.ready:
            pulse()
            barrier = self._advance(thread, result)
            if barrier is None:
                self.live.discard(thread.number)
            else:
                key = (BLOCK, BLOCK) if barrier.mask is BLOCK else (thread.warp, barrier.mask)
                self.waiting.setdefault(key, {})[thread] = barrier
        self.ready = []
        self._pass_barriers()
        return True

    def _advance(self, thread, result):
        """Run a thread until it waits; returns its Barrier, or None if the thread has returned."""
        self.launch.thread = thread
        try:
            if thread.steps is None:
                thread.steps = self.function(*map(typed_int, self.args))
                # it is no generator if the kernel never waits: it has run then
                return next(thread.steps) if isinstance(thread.steps, GeneratorType) else None
            return thread.steps.send(result)
        except (StopIteration, ThreadEnds):
            return None
        except Exception as error:
            error.add_note(f"in {thread}")
            raise

    def _pass_barriers(self):
        """Make the threads ready that wait where all of their block or mask wait, but for those that have returned."""
        for (warp, mask), barrier_of in list(self.waiting.items()):
            expected = len(self.live)
            if mask is not BLOCK:
                expected = sum(mask >> lane & 1 for lane in range(WARP) if warp * WARP + lane in self.live)
            if len(barrier_of) == expected:
                del self.waiting[warp, mask]
                self.launch.passed(barrier_of)
                of_block, each = mask is BLOCK, barrier_of.items()
                values = {thread.number if of_block else thread.lane: barrier.value for thread, barrier in each}
                self.ready += [(thread, barrier.result(values, thread.lane)) for thread, barrier in each]


# ----------------------------------------------------------------------------------------------- kernels as generators


def simulated(function, stand_in):
    """A kernel or device function in which `cuda` is `stand_in`; a generator function if it waits for threads."""
    code, names = _rewritten(function, stand_in.rewriting), kernel_language.names_of(function)
    names.update(SIMULATED_NAMES)
    names[STAND_IN] = stand_in
    for name, value in names.items():
        if kernel_language.is_cuda(value):
            names[name] = stand_in
        elif type(value).__name__ in ("Integer", "Float"):  # a type of Numba's, which a user's kernel may use
            names[name] = getattr(np, value.name)
        elif kernel_language.is_device_function(value) and name in code.co_names:
            names[name] = simulated(value.py_func, stand_in)
    return FunctionType(code, names, function.__name__, tuple(map(typed_int, function.__defaults__ or ())))


@cache
def _rewritten(function, rewriting) -> CodeType:
    """The code of the function with typed integers, rewritten by `YieldWhereItWaits` or a subclass."""
    kernel_language.refuse_recursion(function)
    tree = kernel_language.source_tree(function)
    definition = tree.body[0]
    SimulatedIntegers(function).visit(definition)
    rewriting(function).visit(definition)
    return kernel_language.compiled_tree(tree, function)


class YieldWhereItWaits(kernel_language.KernelTransformer):
    """Makes each call that waits for other threads a `yield`."""

    def visit_Call(self, call):
        self.generic_visit(call)
        if self.waits(call):
            return ast.copy_location(ast.Yield(call), call)
        if self.device_function(call) and self.callee_waits(call):
            return ast.copy_location(ast.YieldFrom(call), call)
        return call

    def waits(self, call):
        """Whether the call is one of `cuda` that waits for other threads."""
        return isinstance(call.func, ast.Attribute) and self.is_cuda(call.func.value) and call.func.attr in WAITING

    def callee_waits(self, call):
        code = _rewritten(self.device_function(call), type(self))
        return bool(code.co_flags & inspect.CO_GENERATOR)


SimulatedCuda.rewriting = YieldWhereItWaits
