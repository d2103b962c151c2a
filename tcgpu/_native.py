"""The one door to Numba's CPU compiler: how functions are compiled, how they run on all cores, what LLVM adds.

A compiled function that wants every core takes `(worker, workers, ...)` and is started with `run_threads`. Plain
functions without the GIL on threads of our own, rather than Numba's `parallel=True`: they compile several times
faster, need no threading layer, and may be called from many Python threads at once. Large arrays are made by NumPy and
handed in: NumPy's come in huge pages, Numba's own do not.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

jit = numba.njit(nogil=True, cache=True, error_model="numpy")
inline = numba.njit(nogil=True, cache=True, error_model="numpy", inline="always")

_lock = threading.Lock()
_pool = None
_threads = None


def threads():
    """How many worker threads the compiled functions use: `set_threads`, else NUMBA_NUM_THREADS, else every core."""
    return _threads or numba.config.NUMBA_NUM_THREADS


def set_threads(count):
    """Use `count` worker threads from now on; None goes back to the default."""
    global _threads
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"threads must be a whole number of at least 1, not {count!r}")
    _threads = count


def run_threads(function, *args, workers=None):
    """Call the compiled `function(worker, workers, *args)` once for every worker, all at the same time; wait for all.

    The calling thread is worker 0. Several threads may do this at once: they share one pool, and a worker never
    waits for another, so the worst that happens is waiting in line.
    """
    workers = workers or threads()
    if workers == 1:
        function(0, 1, *args)
        return
    others = [_workers_pool().submit(function, worker, workers, *args) for worker in range(1, workers)]
    try:
        function(0, workers, *args)
    finally:
        for other in others:
            other.result()


def _workers_pool():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, threads()), thread_name_prefix="tcgpu")
        return _pool


def _forget_pool():
    """A forked child has none of its parent's threads: it makes its own when it needs them."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


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


LANES = 16
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
