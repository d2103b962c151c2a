"""Compilation with Numba's CPU compiler, and threads that run the compiled functions on all cores.

A compiled function that uses every core takes `(worker, workers, ...)` and is started with `run_threads`. It runs
without the GIL on threads of our own rather than with Numba's `parallel=True`: that compiles several times slower,
needs a threading layer, and may not be called from many Python threads at once. NumPy allocates large arrays, which
are then passed in: NumPy's memory is in huge pages, Numba's is not.

Every call can be stopped: Python has no way to interrupt compiled code, so the calling thread waits where Ctrl-C and
the callback of `progress` reach it, and tells the workers to return.
"""

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tcgpu import progress
from tcgpu.engines.code_cache import cached
from tcgpu.engines.forking import fork_safe_lock

SHARE = 1 << 20  # elements of an array that a worker passes over before it can be stopped
MANY = 50_000  # fewer elements than this are not worth waking a second thread
STOPPED = 1 << 62  # what `queue[0]` holds once a call is stopped
BEAT = 0.1  # seconds between two calls of the progress callback
GRACE = 0.3  # seconds that a stopped call waits for its workers; later they end by themselves


def jit(function):
    """Compile a function for the CPU at its first call; the machine code is kept on disk."""
    return _compiled_apart(cached(numba.njit(nogil=True, error_model="numpy")(function)))


def inline(function):
    """As `jit`, and copied into the compiled functions that call it."""
    return _compiled_apart(cached(numba.njit(nogil=True, error_model="numpy", inline="always")(function)))


def _compiled_apart(dispatcher):
    """Have a Numba dispatcher compile in a pool thread, where KeyboardInterrupt cannot leave the compiler half-way."""
    own = dispatcher.compile

    def compile(signature):
        if not _interruptible():
            return own(signature)
        try:
            future = _workers_pool().submit(own, signature)
        except RuntimeError:  # no thread can be started
            return own(signature)
        _wait_for([future])
        return future.result()

    dispatcher.compile = compile
    return dispatcher


_lock = fork_safe_lock()
_pool = None
_threads = None
_unfinished = []  # futures of the call that was stopped last


def threads():
    """How many worker threads the compiled functions use: `set_threads`, else NUMBA_NUM_THREADS, else every core."""
    return _threads or numba.config.NUMBA_NUM_THREADS


def set_threads(count):
    """Use `count` worker threads from now on; None goes back to the default."""
    global _threads
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"threads must be a whole number of at least 1, not {count!r}")
    _threads = count


def shares(size):
    """How many workers a pass over `size` elements is cut into: a multiple of `threads()`, or 1 if it is short.

    More workers than threads wait in line, and a call is stopped between two of them. For functions that need no
    memory for each worker.
    """
    return threads() * max(1, -(-size // (SHARE * threads()))) if size >= MANY else 1


def stoppable(queue, size):
    """`queue`, for `run_threads`, if work on so many elements may take long; None if it is short."""
    return queue if size >= MANY else None


def run_threads(function, *args, workers=None, queue=None):
    """Call the compiled `function(worker, workers, *args)` once for every worker; return when all calls have.

    At most `threads()` workers run at a time, in the order of their numbers; no worker may wait for another. Several
    Python threads may do this at once: they share one pool.

    KeyboardInterrupt, or what the callback of `progress` raises, stops the call: workers that wait in line are not
    started, and `queue[0]` becomes `STOPPED`. So a function that takes its tasks with `fetch_add(queue, 0, 1)` finds
    no more; others poll `stopped(queue)`. What they have written until then is of no use.

    One worker without a queue is called directly and cannot be stopped: that is for short work.
    """
    workers = workers or threads()
    if workers == 1 and queue is None and getattr(function, "overloads", True):
        function(0, 1, *args)
        return
    waiting, others, here = deque(range(workers)), [], not _interruptible()

    def stop():
        waiting.clear()
        if queue is not None:
            queue[0] = STOPPED

    try:
        for _ in range(min(workers, threads()) - here):
            others.append(_workers_pool().submit(_work, waiting, function, workers, args))
    except RuntimeError:  # no more threads can be started: those that there are do the work, and this one
        here = True
    except BaseException:
        stop()
        raise
    if here:
        _work(waiting, function, workers, args)
    _wait_for(others, stop)
    for other in others:
        other.result()


def _interruptible():
    """Whether KeyboardInterrupt or the callback of `progress` may want to stop what this thread does."""
    return progress.watching() or threading.current_thread() is threading.main_thread()


def _wait_for(futures, stop=lambda: None):
    """Wait for all futures. What interrupts the wait is raised after `stop()`, when all are done or GRACE is over."""
    try:
        for future in futures:
            while not _done(future):
                progress.pulse()
    except BaseException as error:
        stop()
        _unfinished[:] = wait(futures, GRACE).not_done
        if isinstance(error, KeyboardInterrupt):
            error.__traceback__ = None  # the frames of the wait say nothing
        raise


def busy():
    """Whether workers of a stopped call are still at work: with what cannot be stopped, as Numba's compiler."""
    return not all(future.done() for future in _unfinished)


def _done(future):
    """Wait a beat at most for a future; whether it is done. KeyboardInterrupt is raised at once."""
    try:
        future.exception(BEAT)
    except TimeoutError:
        return False
    return True


def _work(waiting, function, workers, args):
    """Call the function for one waiting worker after the other; none is left when one has failed."""
    try:
        while True:
            try:
                worker = waiting.popleft()
            except IndexError:
                return
            function(worker, workers, *args)
    except BaseException:
        waiting.clear()
        raise


def _workers_pool():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, threads()), thread_name_prefix="tcgpu")
        return _pool


def _forget_pool():
    """A forked child has none of its parent's threads: it makes its own when it needs them."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


@intrinsic
def stopped(typing_context, queue):
    """Whether the `run_threads` call with this int64 array is stopped: one load, which is never optimized away."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        taken = builder.load_atomic(data, "monotonic", 8)
        return builder.icmp_signed(">=", taken, ir.Constant(taken.type, STOPPED))

    return types.boolean(queue), generate


@intrinsic
def popcount(typing_context, word):
    """How many bits of a uint64 are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context, word):
    """The position of the lowest set bit of a uint64 that has one."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@intrinsic
def fetch_add(typing_context, array, index, value):
    """Add `value` to `array[index]` in one atomic step; returns what was there before. How workers take tasks."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), generate


@intrinsic
def fetch_or(typing_context, array, index, bits):
    """Set `bits` in `array[index]` in one atomic step; returns what was there before. How workers share marks."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("or", builder.gep(data, [args[1]]), args[2], "monotonic")

    return array.dtype(array, types.intp, array.dtype), generate


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of `array[index]` ahead of its use. The index is not checked and may be wrong."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.gep(data, [args[1]])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


CACHE_LINE = 8  # 64-bit words
LANES = 16  # int32 elements that `matches` compares at once
_lanes = ir.VectorType(ir.IntType(32), LANES)


@intrinsic
def matches(typing_context, array, index, live, value):
    """How many of the first `live` of the LANES elements from `array[index]` (int32) on equal `value`.

    All LANES are read and compared at once, in as many instructions as the processor needs for them: the array must
    reach that far.
    """

    def generate(context, builder, signature, args):
        def everywhere(scalar):
            undefined = ir.Constant(_lanes, ir.Undefined)
            first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
            return builder.shuffle_vector(first, undefined, ir.Constant(_lanes, [0] * LANES))

        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), _lanes.as_pointer())
        equal = builder.icmp_signed("==", builder.load(address, align=4), everywhere(args[3]))
        alive = builder.icmp_signed("<", ir.Constant(_lanes, list(range(LANES))), everywhere(args[2]))
        mask = builder.bitcast(builder.and_(equal, alive), ir.IntType(LANES))
        return builder.zext(builder.ctpop(mask), ir.IntType(64))

    return types.int64(array, types.intp, types.int32, types.int32), generate
