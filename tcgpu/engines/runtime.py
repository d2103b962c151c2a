"""Kernels, arrays, streams and timing on the engine that runs kernels now: the door to all engines.

An engine is the `Engine` of a module of its name, `gpu`, `webgpu` or `sim`, which is imported when it is first used. A
process has one (see `choice`); inside `with using("sim")` it is the simulator. What an engine has is here, too:

    device_array(shape, dtype, fill=None)  a new array; `fill` is None, or 0 or -1 for every element
    refill(array, fill)                    set every element to 0 or -1
    reading(array)                         copy a small contiguous array to the host, later: returns a function that
                                           waits for this copy and returns it, but does not wait for kernels that are
                                           launched after this call
    fill_from_host(array, fill)            write a one-dimensional array: `fill(first, piece)` writes a piece, the
                                           elements from `first` on. It may be called from several threads, in any
                                           order. Returns when all is copied
    copy_from_host(source, array)          copy a host array to one of the same type and size in this way
    copy_to_host(array, target)            copy an array to a host array of the same type and size
    kept_ring(words)                       a context: this thread's `staging.Ring`, with slots of as many int64 words
    pinned(length, dtype)                  a new host array that the device copies asynchronously
    Stream()                               a queue of work, in order, concurrent with other streams: event();
                                           wait(event) of another stream; copy_in(array, at, source) from a pinned
                                           array to elements `at` and following; copy_out(array, at, target)
    event(timing=False)                    a new event that is done when all kernels launched until now are: the host
                                           may `synchronize` or `query`
    synchronize()                          wait until the device is idle
    elapsed_ms(work, prepare, waits=False) milliseconds from the start of the first launch of `work()` to the end of
                                           the last. `prepare()` is called before each attempt, untimed. If `work`
                                           itself `waits` for the device, Python's time is included
    release_device_memory()                return the memory that the engine keeps for the next array to the driver
    arrays                                 the library, like NumPy, for operations on its arrays
    estimates_time                         it is so slow that plans estimate their time: see `kernels.simulated`
    in_main_memory                         its arrays are NumPy's

Kernels are decorated with `kernel`, device functions with `cuda.jit(device=True)`; see `kernel_language`.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tcgpu.engines import kernel_language
from tcgpu.engines.choice import ENGINE, ENGINES, REASON, visible_gpus
from tcgpu.engines.facts import Facts
from tcgpu.engines.kernel_language import array_type, cuda, int32, int64, type_of, uint8, uint16, uint32, uint64

__all__ = [
    "Facts", "array_type", "cuda", "int32", "int64", "type_of", "uint8", "uint16", "uint32", "uint64",
    "visible_gpus",
]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- the engine

_engine = ContextVar("engine", default=None)


def engine():
    """The name of the engine that runs kernels now: "gpu", "webgpu" or "sim"."""
    return named_engine() or ENGINE


def named_engine():
    """The name that `using` was given; None outside."""
    return _engine.get()


def current():
    """The engine that runs kernels now."""
    return named(_engine.get() or ENGINE)


@cache
def named(name):
    return import_module(f"tcgpu.engines.{name}").Engine()


def __getattr__(name):
    """What the engine has. It takes a microsecond: what every count asks, it asks `current()`."""
    return getattr(current(), name)


def why_missing(name):
    """Why there is no engine of this name here; None if there is one."""
    if name == "webgpu":
        from tcgpu.engines.webgpu import device

        return device.why_missing()
    return None if name in ENGINES and (name != "gpu" or ENGINE == "gpu") else REASON


class using:
    """Run kernels on the engine `name` inside the `with`."""

    def __init__(self, name):
        reason = why_missing(name)
        if reason:
            raise ValueError(f"no engine {name!r} here: {reason}")
        self.name = name

    def __enter__(self):
        self.token = _engine.set(self.name)

    def __exit__(self, *error):
        _engine.reset(self.token)


# ------------------------------------------------------------------------------------------------------------- kernels


class Kernel:
    """A kernel, compiled for each of its signatures at the first launch with arguments that fit it.

    py_func: the function as written. signatures: texts such as "void(int32[::1])"; without any, a launch takes the
    types of its arguments (see `of_types`). most_threads: the maximum threads of a block, for a kernel that could
    otherwise be compiled with too many registers for a block of 1024; or (threads, blocks), for one that should have so
    few registers that an SM holds that many such blocks. cooperative: all blocks of a launch run at the same time, so
    that they may wait for each other; a launch has at most `blocks_at_a_time`, by `most_threads`; in the simulator one.
    """

    def __init__(self, py_func, signatures, most_threads=None, cooperative=False):
        self.py_func, self.signatures, self.most_threads = py_func, signatures, most_threads
        self.cooperative = cooperative
        self.__name__, self.__doc__, self.__module__ = py_func.__name__, py_func.__doc__, py_func.__module__
        self.__wrapped__ = py_func
        self.compiled = {}  # name of an engine -> what it keeps of this kernel
        self._of_types = {}  # signature -> Kernel, of a kernel without signatures

    def __repr__(self):
        return f"<kernel {self.__name__}>"

    def __reduce__(self):
        return Kernel, (self.py_func, self.signatures, self.most_threads, self.cooperative)

    def of_types(self, types):
        """This kernel; if it has no signatures, the one for parameters of these types, as `type_of` returns them."""
        if self.signatures:
            return self
        signature = f"void({', '.join(types)})"
        return self._of_types.setdefault(
            signature, Kernel(self.py_func, (signature,), self.most_threads, self.cooperative)
        )

    def launch(self, blocks, threads, *args, shared=0, stream=None):
        """Launch `blocks` x `threads` with `shared` bytes of dynamic shared memory a block; does not wait for a GPU."""
        if not self.signatures:
            return self.of_types(map(type_of, args)).launch(blocks, threads, *args, shared=shared, stream=stream)
        current().launch(self, blocks, threads, args, shared, stream)

    def typed(self, args):
        """The arguments, with numbers cast to their types in the first signature."""
        if not self.signatures:
            return self.of_types(map(type_of, args)).typed(args)
        typed = zip(args, kernel_language.parameters(self.signatures[0]), strict=True)
        return [each.dtype.type(arg) if isinstance(arg, int) else arg for arg, each in typed]

    def wgsl(self, threads=128, shared=0, features=()):
        """This kernel in WGSL, the shader language of WebGPU, for its first signature: to read.

        threads, shared: threads of a block, and bytes of its dynamic shared memory. features: what the device has of
        "int64", "int64-atomics", "subgroups-of-32" and "ordered-barriers"; a browser has none.
        """
        from tcgpu.engines.webgpu.translator import translated

        return translated(self, self.signatures[0], threads, shared, frozenset(features)).wgsl

    def carve_out(self, percent):
        """Set the percentage of an SM's fast memory that is shared memory; the rest is the L1 cache.

        The GPU rounds it to a size that it supports; -1 is the driver's default. The simulator has no cache.
        """
        current().carve_out(self, percent)

    def blocks_at_a_time(self, threads, shared=0):
        """How many blocks of this shape the whole device runs at the same time."""
        return current().blocks_at_a_time(self, threads, shared, facts())


def kernel(*signatures: Any, most_threads: int | tuple[int, int] | None = None, cooperative: bool = False) -> Any:
    """Decorate a function as a kernel for these signatures, or, as `@kernel`, for any arguments."""
    if len(signatures) == 1 and callable(signatures[0]):
        return Kernel(signatures[0], ())
    return lambda py_func: Kernel(py_func, signatures, most_threads, cooperative)


# -------------------------------------------------------------------------------------------------------------- arrays


def device_arrays(created):
    """A new array for each name of `created`: name -> (length, dtype, fill), as for `device_array`."""
    if hasattr(current(), "device_arrays"):
        return current().device_arrays(created)
    return {name: current().device_array(*what) for name, what in created.items()}


def is_on_gpu(array):
    """Whether an array, of any library with a common protocol, is in the memory of a GPU."""
    return hasattr(array, "__cuda_array_interface__")


def to_device(array):
    """A copy of a host array on the engine's device; an array that is on the GPU already is not copied."""
    return current().to_device(to_host(array) if current().in_main_memory else array)


def to_device_library(array):
    """The array as one of the engine's; it may be the same memory."""
    return current().to_library(to_host(array) if current().in_main_memory else array)


def to_host(array):
    """An array on the host or a GPU as a NumPy array; it may be of any library with a common protocol."""
    if isinstance(array, np.ndarray):
        return array
    if is_on_gpu(array):
        return named("gpu").to_host(array)
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            pass  # NumPy cannot read that device; the library's own conversion may
    return np.asarray(array)


def to_host_halved(array):
    """Half of each whole number of an array, as a NumPy array: threads that copy a large one from a GPU halve them."""
    return named("gpu").to_host(array, halved=True) if is_on_gpu(array) else to_host(array) >> 1


def arrays_of(array):
    """The library for operations on a whole array: that of the engine whose it is, else NumPy."""
    return named("gpu").arrays if is_on_gpu(array) else getattr(array, "library", np)


def sort(keys):
    """Sort a device array in place."""
    arrays_of(keys).asarray(keys).sort()


# ---------------------------------------------------------------------------------------------------------- the device


def use_gpu(number):
    """Make this thread use a GPU, by its number among those visible to the process."""
    if ENGINE == "gpu":
        named("gpu").use(number)


_pretended = ContextVar("pretended", default=None)  # the Facts of `as_device`


@contextmanager
def as_device(facts):
    """Make plans inside the `with` as for a device with these `Facts`."""
    token = _pretended.set(facts)
    try:
        yield
    finally:
        _pretended.reset(token)


def facts():
    """The `Facts` of the engine's device."""
    return _pretended.get() or current().facts()


def memory_free():
    """Bytes of device memory that are free; the simulator has the main memory."""
    pretended = _pretended.get()
    return pretended.memory_bytes if pretended else current().memory_free()


def fits(size):
    """Whether `size` bytes of device memory are free; the driver is asked only if the engine has kept fewer."""
    return (not _pretended.get() and size <= current().kept_bytes()) or size <= memory_free()
