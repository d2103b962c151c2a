"""Numba's CPU compiler, and threads that run the compiled functions on all cores.

A compiled function for all cores takes `(worker, workers, ...)`, and `run_threads` runs it. It releases the GIL and
runs in threads of this module, not with Numba's `parallel=True`: that compiles several times slower, needs a threading
layer, and may not be called from several Python threads at once. Large arrays are allocated by NumPy, in huge pages,
which Numba's own are not, and passed in.

Every call can be stopped. Python cannot interrupt compiled code, so the calling thread only waits: Ctrl-C or the
callback of `progress` can interrupt it, and it then signals the workers to return.
"""

import _thread
import atexit
import os
import threading
import time
from collections import deque
from queue import Empty, SimpleQueue
from types import FunctionType

import numpy as np

from tcgpu import progress
from tcgpu.cpu_costs import MANY
from tcgpu.engines import choice

with progress.uninterrupted():  # a part of Numba may never be imported again
    import numba
    from llvmlite import ir
    from numba import typeof, types
    from numba.core import cgutils
    from numba.core.dispatcher import Dispatcher
    from numba.core.errors import NumbaError
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic
    from numba.np.numpy_support import as_dtype, from_dtype

    from tcgpu.engines.code_cache import cached
    from tcgpu.engines.meaning import meaning

I32, I64, U32, U64 = np.int32, np.int64, np.uint32, np.uint64  # short names, for many casts
SHARE = 1 << 20  # elements of an array that a worker reads before it can be stopped
STOPPED = 1 << 62  # `queue[0]` of a stopped call
POLL = 0.1  # seconds between two calls of the progress callback
MOST_COMPILED = 16  # functions of callers that are kept
GRACE = 0.3  # seconds that a stopped call waits for its workers, which otherwise end later


def jit(function, **options):
    """Compile a function for the CPU at its first call; the machine code is kept on disk.

    It is compiled in a pool thread, so that KeyboardInterrupt does not interrupt the compiler.
    """
    return _compiled_in_pool(cached(numba.njit(nogil=True, error_model="numpy", **options)(function)))


def _compiled_in_pool(dispatcher):
    compile_here = dispatcher.compile
    dispatcher.compile = lambda signature: _in_pool(compile_here, signature)
    return dispatcher


def uncached(function):
    """As `jit`, in each process: for generators, which Numba cannot load, and for what calls a caller's function."""
    return _compiled_in_pool(numba.njit(nogil=True, error_model="numpy")(function))


def compiled(function):
    """The dispatcher of a caller's function, as it and all that it uses are now; one of Numba's remains as it is.

    Functions of the same meaning have the same. The last ones are kept, as compiled code takes memory.
    """
    if not isinstance(function, FunctionType):  # Numba says what is wrong
        return function if isinstance(function, Dispatcher) else numba.njit(function)
    key = meaning(function, here=True)
    found = _compiled.pop(key, None)
    if found is None or meaning(found.py_func, here=True) != key:  # it would be compiled for other arguments as it is
        found = _compiled_in_pool(numba.njit(nogil=True)(function))
    _compiled[key] = found
    for old in list(_compiled)[:-MOST_COMPILED]:
        _compiled.pop(old, None)
    return found


_compiled = {}  # meaning -> dispatcher, from the one on that was used first


def result_types(dispatcher, *dtypes):
    """Compile a function for arguments of these dtypes; the dtypes of its result: one, or a tuple of them.

    TypeError if it does not compile; Numba's type in place of a dtype where the result is no number.
    """

    def dtype(kind):
        return as_dtype(kind) if isinstance(kind, (types.Number, types.Boolean)) else kind

    def signature(dispatcher, arguments):
        return typeof(dispatcher).get_call_type(cpu_target.typing_context, arguments, {})

    try:
        arguments = tuple(map(from_dtype, dtypes))
        known = dispatcher.overloads.get(arguments)
        found = (known.signature if known else _in_pool(signature, dispatcher, arguments)).return_type
    except (NumbaError, NotImplementedError) as error:  # the latter for fields of structures
        raise TypeError(str(error)) from None
    found = types.unliteral(found)
    return tuple(map(dtype, found)) if isinstance(found, types.BaseTuple) else dtype(found)


def inline(function):
    """As `jit`, and copied into the compiled functions that call it."""
    return jit(function, inline="always")


_threads = None


def threads():
    """The number of worker threads: that of `set_threads`, or NUMBA_NUM_THREADS, or the number of cores."""
    return _threads or numba.config.NUMBA_NUM_THREADS


def set_threads(count):
    """Use `count` worker threads from now on; None goes back to the default."""
    global _threads
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"threads must be a whole number of at least 1, not {count!r}")
    _threads = count


def shares(size):
    """The number of workers for a pass over `size` elements: a multiple of `threads()`, or 1 if it is short.

    If there are more workers than threads, a call can be stopped between two of them. For functions that need no memory
    for each worker.
    """
    return threads() * max(1, -(-size // (SHARE * threads()))) if size >= MANY else 1


def stoppable(queue, size):
    """The `queue` for `run_threads`, or None if there are so few elements that the work is short."""
    return queue if size >= MANY else None


def run_threads(function, *args, workers=None, queue=None):
    """Call the compiled `function(worker, workers, *args)` once for each worker; return when all calls have returned.

    At most `threads()` workers run at a time, in the order of their numbers, so no worker may wait for another. Several
    Python threads may call this at once; they share one pool.

    KeyboardInterrupt, or an exception of a worker or of the callback of `progress`, stops the call: workers that have
    not begun are not started, and `queue[0]` becomes STOPPED. A function that takes its tasks with
    `fetch_add(queue, 0, 1)` then finds no more; others have to test `stopped(queue)`. Their results are incomplete.

    workers: their number, `threads()` by default. queue: an int64 array among the arguments. Without it a single worker
    is called directly and cannot be stopped: for short work.
    """
    workers = workers or threads()
    if workers == 1 and queue is None and getattr(function, "overloads", True):
        function(0, 1, *args)
        return
    progress.pulse()  # work of many short calls reports, too
    _Call(lambda worker: function(worker, workers, *args), range(workers), queue).run(threads())


def _in_pool(function, *args):
    """What the compiler, called in a thread of the pool, returns: KeyboardInterrupt does not interrupt it there."""
    choice.has_compiled = True
    if not _interruptible():
        return function(*args)
    results = []
    _Call(lambda _: results.append(function(*args)), range(1)).run(1)
    return results[0]


def _interruptible():
    """Whether KeyboardInterrupt or the callback of `progress` may interrupt this thread."""
    return progress.watching() or threading.get_ident() == threading.main_thread().ident


# ------------------------------------------------------------------------------------------------------------- the pool
#
# An exception of a signal's handler may be raised after any call in the main thread. `threading` and
# `concurrent.futures` have locks in Python, which such an exception leaves locked for ever. Here the main thread calls
# only queues, deques and lists of C, each call of which is done or not begun, and each state between two calls is safe.


class _Call:
    """A function to be called for each element of `waiting`, by threads of the pool and perhaps the calling one."""

    def __init__(self, function, waiting, queue=None):
        self.function, self.waiting, self.queue = function, deque(waiting), queue
        self.working = []  # an element for each thread that works
        self.errors = []
        self.changed = SimpleQueue()  # an element from each thread that ends

    def run(self, most):
        """Have up to `most` threads work; return when all of `waiting` is done, or raise what ended the call."""
        here = not _interruptible()
        try:
            try:
                for _ in range(min(most, len(self.waiting)) - here):
                    _pool.submit(self)
            except RuntimeError:  # no more threads can be started: those that have been do the work, and this one
                progress.pulse()  # unless the call is stopped, and so perhaps the process, which then starts no threads
                here = True
            if here:
                self.work()
            while self.waiting or self.working:
                if not self._has_changed(POLL):
                    progress.pulse()
        except BaseException as error:
            self.stop()
            _stopped[:] = [self.working]
            end = time.monotonic() + GRACE
            while self.working and self._has_changed(end - time.monotonic()):
                pass
            if isinstance(error, KeyboardInterrupt):
                error.__traceback__ = None  # omit the frames of the wait
            raise
        if self.errors:
            raise self.errors.pop(0)

    def work(self):
        """Call the function for one waiting element after another, until a call fails, which stops the others."""
        self.working.append(None)
        try:
            for element in iter(self._next, None):
                self.function(element)
        except BaseException as error:
            self.stop()
            self.errors.append(error)
        self.working.pop()
        self.changed.put(None)

    def _next(self):
        """Take the next waiting element; None if there is none."""
        try:
            return self.waiting.popleft()
        except IndexError:
            return None

    def stop(self):
        self.waiting.clear()
        if self.queue is not None:
            self.queue[0] = STOPPED

    def _has_changed(self, seconds):
        """Wait until a thread ends, at most `seconds`; returns whether one has."""
        try:
            self.changed.get(timeout=max(seconds, 0))
        except Empty:
            return False
        return True


_stopped = []  # the threads that worked on the call that was stopped last: `_Call.working`


def busy():
    """Whether threads still run something of a stopped call that cannot be stopped, such as Numba's compiler."""
    return any(_stopped)


class _Pool:
    """Threads that work on calls. They are started when they are needed, and end with the process."""

    def __init__(self):
        self.calls, self.idle, self.ended = SimpleQueue(), SimpleQueue(), SimpleQueue()
        self.started = []  # an element for each thread

    def submit(self, call):
        """Have one more thread work on a call; RuntimeError if there is none and none can be started."""
        try:
            self.idle.get_nowait()
        except Empty:
            if len(self.started) < max(os.cpu_count() or 1, threads()):
                self.started.append(_thread.start_new_thread(self._serve, ()))
        self.calls.put(call)

    def _serve(self):
        while (call := self.calls.get()) is not None:
            call.work()
            del call
            self.idle.put(None)
        self.ended.put(None)

    def end(self):
        """Wait for all threads: they must not run compiled code while Python frees it."""
        for _ in self.started:
            self.calls.put(None)
        for _ in self.started:
            self.ended.get()


_pool = _Pool()


def _new_pool():
    """A forked child has none of its parent's threads; it starts its own."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_pool)


@atexit.register
def _end_pool():
    ending = _pool
    _new_pool()  # for what comes later
    ending.end()


def _address(context, builder, signature, args):
    """The address of `array[index]`, given (array, index, ...); of `array[0]`, given only the array."""
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]]) if len(args) > 1 else data


def _atomic(operation):
    """Generate code for an atomic operation on (array, index, value)."""

    def generate(context, builder, signature, args):
        return builder.atomic_rmw(operation, _address(context, builder, signature, args), args[2], "monotonic")

    return generate


@intrinsic
def stopped(typing_context, queue):
    """Whether the `run_threads` call with this queue is stopped: one load, which is never optimized away."""

    def generate(context, builder, signature, args):
        taken = builder.load_atomic(_address(context, builder, signature, args), "monotonic", 8)
        return builder.icmp_signed(">=", taken, ir.Constant(taken.type, STOPPED))

    return types.boolean(queue), generate


@intrinsic
def uncounted(typing_context, array):
    """The same array without reference counting: many calls from many threads would contend for one counter."""

    def generate(context, builder, signature, args):
        own = context.make_array(signature.args[0])(context, builder, args[0])
        own.meminfo = own.meminfo.type(None)
        own.parent = own.parent.type(None)
        return own._getvalue()

    return array(array), generate


@intrinsic
def popcount(typing_context, word):
    """How many bits of a uint64 are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@intrinsic
def lowest_bit(typing_context, word):
    """The position of the lowest set bit of a uint64 that is not 0."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def fetch_add(typing_context, array, index, value):
    """Add `value` to `array[index]` atomically and return the value before. Workers take tasks with it."""
    return array.dtype(array, types.intp, array.dtype), _atomic("add")


@intrinsic
def fetch_or(typing_context, array, index, bits):
    """Set `bits` in `array[index]` atomically and return the value before. Workers share bitmaps with it."""
    return array.dtype(array, types.intp, array.dtype), _atomic("or")


@intrinsic
def prefetch(typing_context, array, index):
    """Load the cache line of `array[index]` ahead of its use. The index may be out of range."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature, args)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


CACHE_LINE = 8  # 64-bit words
LANES = 16  # int32 elements that `matching` compares at once
_lanes = ir.VectorType(ir.IntType(32), LANES)


@intrinsic
def matching(typing_context, array, index, live, value):
    """Which of the first `live` (any number) of the LANES elements from `array[index]` (int32) on equal `value`: bits.

    All LANES are read and compared at once, so the array must reach that far.
    """

    def generate(context, builder, signature, args):
        def in_all_lanes(scalar):
            undefined = ir.Constant(_lanes, ir.Undefined)
            first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
            return builder.shuffle_vector(first, undefined, ir.Constant(_lanes, [0] * LANES))

        address = builder.bitcast(_address(context, builder, signature, args), _lanes.as_pointer())
        equal = builder.icmp_signed("==", builder.load(address, align=4), in_all_lanes(args[3]))
        alive = builder.icmp_signed("<", ir.Constant(_lanes, list(range(LANES))), in_all_lanes(args[2]))
        mask = builder.bitcast(builder.and_(equal, alive), ir.IntType(LANES))
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(array, types.intp, types.int32, types.int32), generate


_words = ir.VectorType(ir.IntType(64), CACHE_LINE)


@intrinsic
def common_bits(typing_context, first, i, second, j):
    """How many bits the CACHE_LINE words (uint64) from first[i] and from second[j] on share, with a few instructions.

    LLVM does not find these in a loop over few words.
    """

    def generate(context, builder, signature, args):
        def call(name, kind, value):
            name = f"llvm.{name}.v{CACHE_LINE}i64"
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [value])

        lines = []
        for at, array in ((0, signature.args[0]), (2, signature.args[2])):
            address = _address(context, builder, types.void(array), args[at : at + 2])
            lines.append(builder.load(builder.bitcast(address, _words.as_pointer()), align=8))
        shared = call("ctpop", ir.FunctionType(_words, [_words]), builder.and_(*lines))
        return call("vector.reduce.add", ir.FunctionType(ir.IntType(64), [_words]), shared)

    return types.uint64(first, types.intp, second, types.intp), generate
