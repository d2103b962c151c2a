"""Kernels, arrays, streams and timing on the engines "gpu" and "sim", and the properties of the device.

Each process has an engine (see `choice`); inside `with using("sim")` it is the simulator. On "gpu", arrays are CuPy's,
and `kernel_compiler` and `cuda_driver` compile and launch kernels. On "sim", arrays are NumPy's, and `simulator` runs
kernels as Python.

Kernels are decorated with `kernel`, device functions with `cuda.jit(device=True)`; see `kernel_language`.
"""

import ctypes
import os
import threading
import time
import traceback
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tcgpu.engines import kernel_compiler, staging
from tcgpu.engines.choice import ENGINE, ENGINES, REASON, shared_library, visible_gpus
from tcgpu.engines.kernel_language import cuda, int32, int64, uint8, uint16, uint32, uint64
from tcgpu.engines.simulator import simulate

if ENGINE == "gpu":
    from tcgpu.engines import cuda_driver

__all__ = ["cuda", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "simulate", "visible_gpus"]


# ---------------------------------------------------------------------------------------------------------- the engine

_engine = ContextVar("engine", default=ENGINE)


def engine():
    """The engine that runs kernels now: "gpu" or "sim"."""
    return _engine.get()


@contextmanager
def using(name):
    """Run kernels on the engine `name` inside the `with`."""
    if name not in ENGINES or (name == "gpu" and ENGINE != "gpu"):
        raise ValueError(f"no engine {name!r} here: {REASON}")
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def use_gpu(number):
    """Make this thread use a GPU, by its number among those visible to the process."""
    if ENGINE == "gpu":
        _cupy().cuda.Device(number).use()


def this_gpu():
    """The number of the GPU that this thread uses."""
    device = cuda_driver.current_device()
    if device is None:  # in a new thread, CuPy's choice takes effect at the first call of the CUDA runtime
        use_gpu(_cupy().cuda.Device().id)
        _cupy().cuda.runtime.free(0)
        device = cuda_driver.current_device()
    return device


# ------------------------------------------------------------------------------------------------------------- kernels


class Kernel:
    """A kernel, compiled for each of its signatures at the first launch with arguments that fit it.

    py_func: the function as written. signatures: texts such as "void(int32[::1])"; without any, a launch takes the
    types of its arguments (see `of_types`). most_threads: the maximum threads of a block, for a kernel that could
    otherwise be compiled with too many registers for a block of 1024; or (threads, blocks), for one that should have so
    few registers that an SM holds that many such blocks. cooperative: all blocks of a launch run at the same time, so
    that they may wait for each other; a launch has at most `blocks_at_a_time`, and in the simulator one.
    """

    def __init__(self, py_func, signatures, most_threads=None, cooperative=False):
        self.py_func, self.signatures, self.most_threads = py_func, signatures, most_threads
        self.cooperative = cooperative
        self.__name__, self.__doc__, self.__module__ = py_func.__name__, py_func.__doc__, py_func.__module__
        self.__wrapped__ = py_func
        self._lock, self._code = threading.Lock(), {}  # (signature, compute capability) -> Code
        self._launchers = {}  # device -> {signature: Launcher}
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
        if engine() == "sim":
            return simulate(self.py_func, blocks, threads, self.typed(args), shared=shared)
        launcher, values = self._launcher(args)
        launcher.launch(blocks, threads, values, shared, stream.handle if stream else 0)

    def typed(self, args):
        """The arguments, with numbers cast to their types in the first signature."""
        if not self.signatures:
            return self.of_types(map(type_of, args)).typed(args)
        typed = zip(args, kernel_compiler.parameters(self.signatures[0]), strict=True)
        return [each.dtype.type(arg) if isinstance(arg, int) else arg for arg, each in typed]

    def _launcher(self, args):
        """The Launcher on this thread's device for the signature that matches the arguments, and what it passes."""
        known = self._launchers.setdefault(this_gpu(), {})
        for signature in self.signatures:
            values = cuda_driver.passed(signature, args)
            if values is not None:
                return known.get(signature) or self._compiled(signature), values
        given = ", ".join(f"{arg.dtype} {arg.shape}" if hasattr(arg, "shape") else type(arg).__name__ for arg in args)
        raise TypeError(f"kernel {self.__name__} takes {' or '.join(self.signatures)}, not ({given})")

    def _compiled(self, signature):
        """The Launcher for a signature on this thread's device, compiled at its first use."""
        device = this_gpu()
        capability = cuda_driver.compute_capability(device)
        with self._lock:
            code = self._code.get((signature, capability))
            if code is None:
                image = kernel_compiler.image(self.py_func, signature, capability, self.most_threads)
                code = self._code[signature, capability] = cuda_driver.Code(image)
            launchers = self._launchers.setdefault(device, {})
            if signature not in launchers:
                launchers[signature] = cuda_driver.Launcher(code.function(device), signature, self.cooperative)
            return launchers[signature]

    def _all_launchers(self):
        return [self._compiled(signature) for signature in self.signatures]

    def carve_out(self, percent):
        """Set the percentage of an SM's fast memory that is shared memory; the rest is the L1 cache.

        The GPU rounds it to a size that it supports; -1 is the driver's default. The simulator has no cache.
        """
        if engine() == "gpu":
            for launcher in self._all_launchers():
                launcher.carve_out(percent)

    def blocks_at_a_time(self, threads, shared=0):
        """How many blocks of this shape the whole device runs at the same time."""
        device = facts()
        if engine() == "sim":
            return max(1, min(device.threads_per_sm // threads, device.shared_per_sm // max(1, shared))) * device.sms
        return device.sms * max(1, min(each.blocks_per_sm(threads, shared) for each in self._all_launchers()))


def kernel(*signatures: Any, most_threads: int | tuple[int, int] | None = None, cooperative: bool = False) -> Any:
    """Decorate a function as a kernel for these signatures, or, as `@kernel`, for any arguments.

    >>> @tcgpu.kernel
    ... def double(values):
    ...     for k in range(cuda.grid(1), values.size, cuda.gridsize(1)):
    ...         values[k] *= 2
    """
    if len(signatures) == 1 and callable(signatures[0]):
        return Kernel(signatures[0], ())
    return lambda py_func: Kernel(py_func, signatures, most_threads, cooperative)


def type_of(value):
    """The type of an argument in a signature, as text: "int64" of a whole number, "int32[::1]" of an array."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        kinds = {bool: "bool", int: "int64", float: "float64"}
        if type(value) not in kinds:
            raise TypeError(f"a kernel takes arrays and numbers, not {value!r}")
        return kinds[type(value)]
    return array_type(dtype, value.ndim) if value.shape else np.dtype(dtype).name


def array_type(dtype, dimensions=1):
    """The type of a contiguous array in a signature, as text."""
    return f"{np.dtype(dtype).name}[{', '.join([':'] * (dimensions - 1) + ['::1'])}]"


_compiled_ahead = set()  # kernels that were passed to `compile_ahead`


def compile_ahead(kernels):
    """Compile kernels in other processes, if many of them are not in the cache on disk."""
    new = [each for each in dict.fromkeys(kernels) if each not in _compiled_ahead]
    if new and engine() == "gpu":
        _compiled_ahead.update(new)
        kernel_compiler.compile_ahead(new, cuda_driver.compute_capability(this_gpu()))


# -------------------------------------------------------------------------------------------------------------- arrays


class OutOfMemory(MemoryError):
    """The device has too little free memory for an array."""


def to_device(array):
    """A copy of a host array on the engine's device; an array that is on the GPU already is not copied."""
    if engine() == "sim":
        return np.array(to_host(array), order="C")
    return _cupy().ascontiguousarray(to_device_library(array))


def device_array(shape, dtype, fill=None):
    """A new array on the engine's device; `fill` is None, or 0 or -1 for every element."""
    if engine() == "sim":
        if fill == 0:
            return np.zeros(shape, dtype)  # takes memory only where it is written
        return np.empty(shape, dtype) if fill is None else np.full(shape, np.int64(fill).astype(dtype))
    cupy = _cupy()
    try:
        array = cupy.empty(shape, dtype)
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise OutOfMemory(f"no room for an array of {shape} on the device: {error}") from error
    if fill is not None:
        refill(array, fill)
    return array


def refill(array, fill):
    """Set every element of a device array to 0 or -1 by memset: their bytes are all equal."""
    if isinstance(array, np.ndarray):
        array.fill(fill)
    elif array.size:
        array.data.memset_async(fill & 0xFF, array.nbytes)


def to_host(array):
    """An array on the host or a GPU as a NumPy array; it may be of any library with a common protocol."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__cuda_array_interface__"):
        array = _cupy().asarray(array)
        return _download(array) if _is_large(array) and array.flags.c_contiguous else array.get()
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            pass  # NumPy cannot read that device; the library's own conversion may
    return np.asarray(array)


def to_host_halved(array):
    """Half of each whole number of an array, as a NumPy array: threads that copy a large one from a GPU halve them."""
    if hasattr(array, "__cuda_array_interface__"):
        array = _cupy().asarray(array)
        if _is_large(array) and array.flags.c_contiguous:
            return _download(array, _write_halves)
    return to_host(array) >> 1


def reading(array):
    """Copy a small contiguous device array to the host, later: returns a function that waits for this copy and returns
    it, but does not wait for kernels that are launched after this call."""
    if engine() == "sim":
        copied = array.copy()
        return lambda: copied
    pages = vars(_thread).setdefault("pages", [])
    page = pages.pop() if pages else pinned(PAGE, np.int64)
    target = page.view(array.dtype)[: array.size]
    cuda_driver.copy_out(target.ctypes.data, array.data.ptr, array.nbytes, 0)
    copied = event()

    def read():
        copied.synchronize()
        return target.copy()

    weakref.finalize(read, _keep_page, pages, page, copied).atexit = False
    return read


def _keep_page(pages, page, copied):
    """Keep a page for the next copy. If an error came before this one was read, it may be in progress."""
    copied.synchronize()
    pages.append(page)


def arrays_of(array):
    """The library for operations on a whole array: CuPy for one on a GPU, else NumPy."""
    return _cupy() if hasattr(array, "__cuda_array_interface__") else np


def sort(keys):
    """Sort a device array in place."""
    arrays_of(keys).asarray(keys).sort()


def to_device_library(array):
    """The array as a CuPy array on the GPU, or, in the simulator, as a NumPy array."""
    if engine() == "sim":
        return np.asarray(to_host(array))
    library = _cupy()
    return library.asarray(_upload(array) if isinstance(array, np.ndarray) and _is_large(array) else array)


def _cupy():
    import cupy  # not at the top: the engine "sim" works without it

    return cupy


@dataclass(frozen=True)
class SharedArray:
    """An array on a GPU that other processes of the machine may open, as long as its own process has it."""

    gpu: int  # among those visible to its own process
    handle: bytes  # of the allocation that it is in
    offset: int  # bytes
    size: int
    dtype: str


def contiguous_there(array):
    """An array on any GPU, of any library with a common protocol, as a contiguous one of CuPy on the same GPU."""
    cuda, address = _cupy().cuda, array.__cuda_array_interface__["data"][0]
    gpu = cuda.runtime.pointerGetAttributes(address).device if address else cuda.Device().id
    with cuda.Device(gpu):  # on another one, CuPy's asarray makes a copy there
        return _cupy().ascontiguousarray(_cupy().asarray(array))


def shared_array(array):
    """The SharedArray of what `contiguous_there` returned, if it has elements and one dimension."""
    with array.device:
        _cupy().cuda.runtime.deviceSynchronize()  # another process does not wait for streams of this one
        base = cuda_driver.allocation(array.data.ptr)
        handle = _cupy().cuda.runtime.ipcGetMemHandle(base)
    return SharedArray(array.device.id, handle, array.data.ptr - base, array.size, array.dtype.str)


def opened_array(shared):
    """A SharedArray of another process as an array here, which is read where it lies."""
    cuda = _cupy().cuda
    address = cuda.runtime.ipcOpenMemHandle(shared.handle)
    owner = _Opened()
    weakref.finalize(owner, _close, address).atexit = False
    size = shared.offset + shared.size * np.dtype(shared.dtype).itemsize
    pointer = cuda.MemoryPointer(cuda.UnownedMemory(address, size, owner), shared.offset)
    return _cupy().ndarray(shared.size, shared.dtype, pointer)


class _Opened:
    """What keeps the memory of another process open."""


def _close(address):
    runtime = _cupy().cuda.runtime
    runtime.deviceSynchronize()  # kernels may still read it
    runtime.ipcCloseMemHandle(address)


def nccl():
    """CuPy's module for NCCL, with which GPUs exchange arrays; None if CuPy finds no NCCL."""
    if ENGINE != "gpu":
        return None
    from cupy.cuda import nccl

    return nccl if nccl.available else None


def synchronize():
    """Wait until the device is idle."""
    if engine() == "gpu":
        this_gpu()
        cuda_driver.synchronize()


@contextmanager
def freed_afterwards():
    """Return all device memory that is taken inside the `with`, and not kept by the caller, to the driver at its end.

    After an error, the functions that it ended lose their local variables: they may be arrays.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        synchronize()
        release_device_memory()


def release_memory():
    """Return unused memory to the driver: what CuPy keeps for the next array, and this thread's pinned rings."""
    for ring in vars(_thread).pop("rings", {}).values():
        ring.end()
    release_device_memory()


def release_device_memory():
    """Return the device memory that CuPy keeps for the next array to the driver."""
    if engine() == "gpu":
        _cupy().get_default_memory_pool().free_all_blocks()


# ------------------------------------------------------------------------------------------------------------- streams


class Stream:
    """A queue of work on the device, in order, concurrent with other streams. The simulator does it immediately."""

    def __init__(self):
        self.own = None
        if engine() == "gpu":
            this_gpu()
            self.own = _cupy().cuda.Stream()
            self.handle = self.own.ptr

    def event(self, timing=False):
        """A new event that is done when all work in the stream until now is: the host may `synchronize` or `query`."""
        return _SimulatedEvent() if self.own is None else cuda_driver.Event(self.handle, timing)

    def wait(self, event):
        """Make later work in this stream wait for another stream's event."""
        if self.own is not None:
            event.delay(self.handle)

    def copy_in(self, array, at, source):
        """Copy a pinned array to elements `at` and following of a device array; both are contiguous."""
        if self.own is None:
            array.view(source.dtype)[at : at + source.size] = source
        elif source.size:
            target = array.data.ptr + at * source.itemsize
            cuda_driver.copy_in(target, source.ctypes.data, source.nbytes, self.handle)

    def copy_out(self, array, at, target):
        """Copy elements `at` and following of a device array to a pinned one."""
        if self.own is None:
            target[:] = array[at : at + target.size]
        elif target.size:
            source = array.data.ptr + at * target.itemsize
            cuda_driver.copy_out(target.ctypes.data, source, target.nbytes, self.handle)


def event(timing=False):
    """A new event that is done when all kernels launched until now are."""
    return _SimulatedEvent() if engine() == "sim" else cuda_driver.Event(timing=timing)


class _SimulatedEvent:
    """An event of the simulator, which does all work immediately: a time."""

    def __init__(self):
        self.seconds = time.perf_counter()

    def query(self):
        return True

    def synchronize(self):
        pass

    def ms_since(self, begin):
        return (self.seconds - begin.seconds) * 1e3


def pinned(length, dtype):
    """A new host array in pinned memory, which a GPU copies asynchronously.

    NumPy allocates it in huge pages, then it is pinned: several times as fast as the driver's own pinned memory.
    """
    memory = np.empty(length, dtype)
    if engine() == "gpu" and length:
        this_gpu()
        cuda_driver.pin(memory.ctypes.data, memory.nbytes)
        weakref.finalize(memory, cuda_driver.unpin, memory.ctypes.data)
    return memory


# -------------------------------------------------------------------------------------------------- large host arrays

LARGE = 4 << 20  # bytes of an array from which on several threads copy it faster
PAGE = 1 << 11  # int64 of pinned memory, to which `reading` copies an array

# `rings`, and `pages` for `reading`: each thread keeps its own, as pinning the memory takes longer than filling it
_thread = threading.local()


def fill_from_host(array, fill):
    """Write a one-dimensional device array: `fill(first, piece)` writes a pinned piece, the elements from `first` on.

    It is called from several threads, in any order. Returns when all is copied. The default stream and that of the ring
    wait for each other: kernels launched before are done when the first piece is copied.
    """
    if array.size:
        with _ring_for(array) as ring:
            feeder = staging.Feeder(ring, array.dtype, spread=True)
            feeder.copy(feeder.request(staging.Load(array, array.size, fill))).synchronize()


@contextmanager
def kept_ring(words):
    """This thread's ring for its device; inside the `with` no other code uses it. It is kept for the next call.

    words: the minimum int64 words of a slot, up to SLOT_WORDS. A ring that is too small is replaced by one of the next
    power of 2. After an exception the ring is not kept.
    """
    rings = vars(_thread).setdefault("rings", {})
    key = os.getpid(), this_gpu() if engine() == "gpu" else "sim"  # a forked child lacks the ring's threads
    ring, words = rings.pop(key, None), min(1 << max(0, words - 1).bit_length(), staging.SLOT_WORDS)
    if ring is not None and ring.slots[0].size < words:
        ring.end()
        ring = None
    if ring is None:
        slots = [pinned(words, np.int64) for _ in range(staging.SLOTS)]
        ring = staging.Ring(Stream(), slots, staging.FILLERS)
    try:
        yield ring
    except BaseException:
        ring.end()
        synchronize()  # copies from its memory may be in progress
        raise
    rings[key] = ring


def _write_piece(array, first, piece):
    array[first : first + piece.size] = piece


def _write_halves(array, first, piece):
    np.right_shift(piece, 1, out=array[first : first + piece.size])


def _ring_for(array):
    """This thread's ring, with slots for an array that uses all of them."""
    return kept_ring(max(staging.PIECE_WORDS, array.nbytes // (8 * staging.SLOTS)))


def _is_large(array):
    """Whether an array is copied through a ring."""
    plain = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative
    return plain and array.nbytes >= LARGE


def _upload(array):
    """A new device array, copied from a host array through this thread's ring."""
    flat = array if array.ndim == 1 else np.ascontiguousarray(array).reshape(-1)
    uploaded = device_array(flat.size, flat.dtype)
    copy_from_host(flat, uploaded)
    return uploaded.reshape(array.shape)


def _download(array, write=_write_piece):
    """A new host array, copied from a contiguous device array through this thread's ring."""
    downloaded = np.empty(array.shape, array.dtype)
    copy_to_host(array.reshape(array.size), downloaded.reshape(-1), write)
    return downloaded


def copy_from_host(source, array):
    """Copy a host array to a device array of the same type and size, as `fill_from_host` does."""
    fill_from_host(array, partial(_read_piece, source))


def copy_to_host(array, target, write=_write_piece):
    """Copy a device array to a host array of the same type and size, through this thread's ring."""
    if array.size:
        with _ring_for(array) as ring:
            staging.fetch(ring, array, partial(write, target))


def _read_piece(array, first, piece):
    piece[:] = array[first : first + piece.size]  # NumPy lets other threads run meanwhile


# -------------------------------------------------------------------------------------------------------------- timing


@kernel("void(int64)")
def _sleep(microseconds):
    for _ in range(microseconds):
        cuda.nanosleep(uint32(1000))


def elapsed_ms(work, prepare=lambda: None, *, waits=False):
    """Milliseconds from the start of the first launch of `work()` to the end of the last.

    A kernel that sleeps runs first, while Python enqueues the launches, so that Python's time is not measured. If it
    ends too early, all is repeated with a longer sleep. `prepare()` is called before each attempt, untimed. If `work`
    itself `waits` for the device, Python's time is included. For the simulator, the clock is read.
    """
    if engine() == "sim":
        prepare()
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3
    microseconds = 1000
    while True:
        prepare()
        _sleep.launch(1, 1, microseconds)
        begin = cuda_driver.Event(timing=True)
        work()
        end = cuda_driver.Event(timing=True)
        kept_busy = not begin.query()
        end.synchronize()
        if waits or kept_busy or microseconds > 1_000_000:
            return end.ms_since(begin)
        microseconds *= 4


# ---------------------------------------------------------------------------------------------------------- the device


@dataclass(frozen=True)
class Facts:
    """Properties of the engine's device; sizes in bytes. The simulator, the default, has the limits of a T4."""

    memory_bytes: int
    numba: str
    numba_cuda: str
    name: str = "CUDA simulator"
    compute_capability: str = "7.5"
    sms: int = 1
    threads_per_sm: int = 1024
    shared_per_block: int = 48 << 10
    shared_per_sm: int = 64 << 10
    l2_bytes: int = 4 << 20
    clock_mhz: int = 0
    driver: str = ""
    cuda: str = ""

    def asdict(self):
        return asdict(self)


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
    return _pretended.get() or _facts(this_gpu() if engine() == "gpu" else None)


@cache
def _facts(device):
    """The `Facts` of a GPU, by its number; None: of the simulator."""
    versions = {"numba": kernel_compiler.version("numba"), "numba_cuda": kernel_compiler.version("numba-cuda")}
    if device is None:
        return Facts(_main_memory(), **versions)
    version = _cupy().cuda.runtime.runtimeGetVersion()
    return Facts(
        name=cuda_driver.device_name(device),
        compute_capability="{}.{}".format(*cuda_driver.compute_capability(device)),
        sms=cuda_driver.attribute(device, "MULTIPROCESSOR_COUNT"),
        threads_per_sm=cuda_driver.attribute(device, "MAX_THREADS_PER_MULTIPROCESSOR"),
        shared_per_block=cuda_driver.attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        shared_per_sm=cuda_driver.attribute(device, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        l2_bytes=cuda_driver.attribute(device, "L2_CACHE_SIZE"),
        memory_bytes=_cupy().cuda.runtime.memGetInfo()[1],
        clock_mhz=cuda_driver.attribute(device, "CLOCK_RATE") // 1000,
        driver=_driver_version(),
        cuda=f"{version // 1000}.{version % 1000 // 10}",
        **versions,
    )


def memory_free():
    """Bytes of device memory that are free; the simulator has the main memory."""
    if _pretended.get():
        return _pretended.get().memory_bytes
    if engine() == "sim":
        return _main_memory()
    return _cupy().cuda.runtime.memGetInfo()[0] + _cupy().get_default_memory_pool().free_bytes()


def fits(size):
    """Whether `size` bytes of device memory are free; the driver is asked only where CuPy's pool has fewer."""
    if engine() == "gpu" and not _pretended.get() and size <= _cupy().get_default_memory_pool().free_bytes():
        return True
    return size <= memory_free()


def _main_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _driver_version():
    """The version of NVIDIA's driver, such as "580.159.04"; "" if NVML does not return it."""
    nvml = shared_library("libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(96)
    found = nvml is not None and nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0
    return text.value.decode() if found else ""
