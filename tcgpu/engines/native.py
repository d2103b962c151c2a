"""Numba's CPU compiler, and threads that run the compiled functions on all cores.

A compiled function for all cores takes `(worker, workers, ...)`, and `run_threads` runs it. It releases the GIL and
runs in threads of this module, not with Numba's `parallel=True`: that compiles several times slower, needs a threading
layer, and may not be called from several Python threads at once. Large arrays are allocated by NumPy, in huge pages,
which Numba's own are not, and passed in.

Every call can be stopped. Python cannot interrupt compiled code, so the calling thread only waits: Ctrl-C or the
callback of `progress` can interrupt it, and it then signals the workers to return.
"""

import functools
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait

import numba
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype, from_dtype

from tcgpu import progress
from tcgpu.engines.code_cache import cached
from tcgpu.engines.forking import fork_safe_lock

SHARE = 1 << 20  # elements of an array that a worker reads before it can be stopped
MANY = 50_000  # for fewer elements, a second thread does not pay
STOPPED = 1 << 62  # `queue[0]` of a stopped call
POLL = 0.1  # seconds between two calls of the progress callback
GRACE = 0.3  # seconds that a stopped call waits for its workers, which otherwise end later


def jit(function, **options):
    """Compile a function for the CPU at its first call; the machine code is kept on disk.

    It is compiled in a pool thread, so that KeyboardInterrupt does not interrupt the compiler.
    """
    return _compiled_in_pool(cached(numba.njit(nogil=True, error_model="numpy", **options)(function)))


def _compiled_in_pool(dispatcher):
    compile_here = dispatcher.compile

    def compile(signature):
        if not _interruptible():
            return compile_here(signature)
        try:
            future = _workers_pool().submit(compile_here, signature)
        except RuntimeError:  # no thread can be started
            return compile_here(signature)
        _wait_for([future])
        return future.result()

    dispatcher.compile = compile
    return dispatcher


def uncached(function):
    """As `jit`, in each process: for generators, which Numba cannot load, and for what calls a caller's function."""
    return _compiled_in_pool(numba.njit(nogil=True, error_model="numpy")(function))


@functools.cache
def compiled(function):
    """The dispatcher of a caller's function: it is compiled in each process, because it may change between them."""
    return function if isinstance(function, Dispatcher) else _compiled_in_pool(numba.njit(nogil=True)(function))


def result_types(dispatcher, *dtypes):
    """Compile a function for arguments of these dtypes; the dtypes of its result: one, or a tuple of them.

    TypeError if it does not compile; Numba's type in place of a dtype where the result is no number.
    """

    def dtype(kind):
        return as_dtype(kind) if isinstance(kind, (types.Number, types.Boolean)) else kind

    try:
        arguments = tuple(map(from_dtype, dtypes))
        found = typeof(dispatcher).get_call_type(cpu_target.typing_context, arguments, {}).return_type
    except (NumbaError, NotImplementedError) as error:  # the latter for fields of structures
        raise TypeError(str(error)) from None
    found = types.unliteral(found)
    return tuple(map(dtype, found)) if isinstance(found, types.BaseTuple) else dtype(found)


def inline(function):
    """As `jit`, and copied into the compiled functions that call it."""
    return jit(function, inline="always")


_lock = fork_safe_lock()
_pool = None
_threads = None
_unfinished = []  # futures of the call that was stopped last


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
    waiting, futures, here = deque(range(workers)), [], not _interruptible()

    def stop():
        waiting.clear()
        if queue is not None:
            queue[0] = STOPPED

    try:
        try:
            for _ in range(min(workers, threads()) - here):
                futures.append(_workers_pool().submit(_work, waiting, function, workers, args, stop))
        except RuntimeError:  # no more threads can be started: those that have been do the work, and this one
            progress.pulse()  # unless the call is stopped, and so perhaps the process, which then starts no threads
            here = True
    except BaseException:
        stop()
        raise
    if here:
        _work(waiting, function, workers, args, stop)
    _wait_for(futures, stop)
    for future in futures:
        future.result()


def _interruptible():
    """Whether KeyboardInterrupt or the callback of `progress` may interrupt this thread."""
    return progress.watching() or threading.current_thread() is threading.main_thread()


def _wait_for(futures, stop=lambda: None):
    """Wait for all futures. On an interrupt, call `stop()`, wait at most GRACE for them, then raise it."""
    try:
        for future in futures:
            while not future.done():
                if wait([future], POLL).not_done:
                    progress.pulse()
    except BaseException as error:
        stop()
        _unfinished[:] = wait(futures, GRACE).not_done
        if isinstance(error, KeyboardInterrupt):
            error.__traceback__ = None  # omit the frames of the wait
        raise


def busy():
    """Whether workers of a stopped call still run something that cannot be stopped, such as Numba's compiler."""
    return not all(future.done() for future in _unfinished)


def _work(waiting, function, workers, args, stop):
    """Call the function for one waiting worker after another, until a call fails, which stops the others."""
    try:
        while True:
            try:
                worker = waiting.popleft()
            except IndexError:
                return
            function(worker, workers, *args)
    except BaseException:
        stop()
        raise


def _workers_pool():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, threads()), thread_name_prefix="tcgpu")
        return _pool


def _forget_pool():
    """A forked child has none of its parent's threads; it starts its own."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


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
