"""The engine that runs kernels: how they are launched and timed, where their arrays lie, what the device is.

The engine is the process's own (see `choice`), but for a stretch of code under `using("sim")`. On engine "gpu" arrays
are CuPy's, and `kernel_compiler` and `cuda_driver` turn kernels into launches; on engine "sim" arrays are NumPy's, and
`simulator` runs kernels as Python. Both engines live in one process.

Kernels are decorated with `kernel`, device functions with `cuda.jit(device=True)`; see `kernel_language`.
"""

import ctypes
import os
import threading
import time
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache, partial

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
    """What runs a kernel that is started now: "gpu" or "sim"."""
    return _engine.get()


@contextmanager
def using(name):
    """Start kernels on the engine `name` inside the `with`."""
    if name not in ENGINES or (name == "gpu" and ENGINE != "gpu"):
        raise ValueError(f"no engine {name!r} here: {REASON}")
    token = _engine.set(name)
    try:
        yield
    finally:
        _engine.reset(token)


def use_gpu(number):
    """From now on this thread works on the GPU of this number among those that the process sees."""
    if ENGINE == "gpu":
        _cupy().cuda.Device(number).use()


def this_gpu():
    """The number of the GPU that this thread works on."""
    device = cuda_driver.current_device()
    if device is None:  # a new thread works on the one that CuPy names, from its first use of the runtime on
        use_gpu(_cupy().cuda.Device().id)
        _cupy().cuda.runtime.free(0)
        device = cuda_driver.current_device()
    return device


# ------------------------------------------------------------------------------------------------------------- kernels


class Kernel:
    """A kernel for fixed signatures; compiled for one when it is first launched with arguments that fit it.

    `py_func` is the function as written, `signatures` what it may be compiled for: tests compile it to PTX, a trace
    runs it in a simulator of its own. `most_threads` is how many threads a block may have for it, where it would
    otherwise be given more registers than there are for a block of 1024.
    """

    def __init__(self, py_func, signatures, most_threads=None):
        self.py_func, self.signatures, self.most_threads = py_func, signatures, most_threads
        self.__name__, self.__doc__, self.__module__ = py_func.__name__, py_func.__doc__, py_func.__module__
        self.__wrapped__ = py_func
        self._lock, self._code = threading.Lock(), {}  # (signature, compute capability) -> the driver's code
        self._launchers = {}  # device -> {signature: its launcher}

    def __repr__(self):
        return f"<kernel {self.__name__}>"

    def launch(self, blocks, threads, *args, shared=0, stream=None):
        """Run `blocks` x `threads` with `shared` bytes of dynamic shared memory a block. A GPU is not waited for."""
        if engine() == "sim":
            return simulate(self.py_func, blocks, threads, args, shared=shared)
        self._launcher(args).launch(blocks, threads, args, shared, stream.handle if stream else 0)

    def _launcher(self, args):
        """The launcher on this thread's device for the signature that these arguments fit."""
        known = self._launchers.setdefault(this_gpu(), {})
        for launcher in list(known.values()):  # another thread may add one
            if launcher.fits(args):
                return launcher
        for signature in self.signatures:
            if signature not in known and cuda_driver.fits(signature, args):
                return self._compiled(signature)
        given = ", ".join(f"{arg.dtype} {arg.shape}" if hasattr(arg, "shape") else type(arg).__name__ for arg in args)
        raise TypeError(f"kernel {self.__name__} takes {' or '.join(self.signatures)}, not ({given})")

    def _compiled(self, signature):
        """The launcher for one signature on this thread's device, from now on kept."""
        device = this_gpu()
        capability = cuda_driver.compute_capability(device)
        with self._lock:
            code = self._code.get((signature, capability))
            if code is None:
                image = kernel_compiler.image(self.py_func, signature, capability, self.most_threads)
                code = self._code[signature, capability] = cuda_driver.Code(image)
            launchers = self._launchers.setdefault(device, {})
            if signature not in launchers:
                launchers[signature] = cuda_driver.Launcher(code.function(device), signature)
            return launchers[signature]

    def _all_launchers(self):
        return [self._compiled(signature) for signature in self.signatures]

    def carve_out(self, percent):
        """From now on give shared memory this share of an SM's fast memory, and the L1 cache the rest.

        The GPU takes the next size that it has; -1 leaves it to the driver. For experiments: what if the cache were
        smaller? The simulator has no cache.
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


def kernel(*signatures, most_threads=None):
    """Decorate a function as a kernel for these signatures."""
    return lambda py_func: Kernel(py_func, signatures, most_threads)


_asked_for = set()  # kernels that `compile_ahead` has seen


def compile_ahead(kernels):
    """Have kernels compiled by other processes, if there are many that no process has compiled before."""
    new = [each for each in dict.fromkeys(kernels) if each not in _asked_for]
    if new and engine() == "gpu":
        _asked_for.update(new)
        kernel_compiler.compile_ahead(new, cuda_driver.compute_capability(this_gpu()))


# -------------------------------------------------------------------------------------------------------------- arrays


class OutOfMemory(MemoryError):
    """The device has no room for an array."""


def to_device(array):
    """A copy on the engine's device of a host array; an array that is on the GPU already is used as it is."""
    if engine() == "sim":
        return np.array(to_host(array), order="C")
    return _cupy().ascontiguousarray(to_device_library(array))


def device_array(shape, dtype, fill=None):
    """A new array on the engine's device; `fill` is None, or 0 or -1 for every element."""
    if engine() == "sim":
        return np.empty(shape, dtype) if fill is None else np.full(shape, fill, dtype)
    cupy = _cupy()
    try:
        array = cupy.empty(shape, dtype)
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise OutOfMemory(f"no room for an array of {shape} on the device: {error}") from error
    if fill is not None:
        refill(array, fill)
    return array


def stretch(array, begin, size, dtype):
    """Elements of a device array of int64, from number `begin` on, as `size` elements of another type."""
    return array[begin:].view(dtype)[:size]


def refill(array, fill):
    """Set every element of a device array to 0 or -1: values whose bytes are all alike, so that memset will do."""
    if isinstance(array, np.ndarray):
        array.fill(fill)
    elif array.size:
        array.data.memset_async(fill & 0xFF, array.nbytes)


def to_host(array):
    """Any array, on the host or on a GPU, of any library that speaks a common protocol, as a NumPy array."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__cuda_array_interface__"):
        array = _cupy().asarray(array)
        return _fetched(array) if _is_large(array) and array.flags.c_contiguous else array.get()
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            pass  # on a device that NumPy cannot read: the library's own conversion may
    return np.asarray(array)


def arrays_of(array):
    """The library for whole-array operations where an array lies: CuPy for one on a GPU, else NumPy."""
    return _cupy() if hasattr(array, "__cuda_array_interface__") else np


def scan(counts, starts):
    """starts[k] = counts[0] + ... + counts[k - 1]: one more than there are counts."""
    xp = arrays_of(starts)
    counts, starts = xp.asarray(counts), xp.asarray(starts)
    starts[:1] = 0
    xp.cumsum(counts, out=starts[1:], dtype=starts.dtype)


def sort(keys):
    """Sort a device array in place."""
    arrays_of(keys).asarray(keys).sort()


def to_device_library(array):
    """Any array as one of the library for whole arrays on the engine's device: CuPy, or NumPy in the simulator."""
    if engine() == "sim":
        return np.asarray(to_host(array))
    library = _cupy()
    return library.asarray(_sent(array) if isinstance(array, np.ndarray) and _is_large(array) else array)


def _cupy():
    import cupy  # not at the top: engine "sim" goes without, and it looks at the machine

    return cupy


def synchronize():
    """Wait for the device."""
    if engine() == "gpu":
        this_gpu()
        cuda_driver.synchronize()


def give_back():
    """Let the driver have what nobody uses any more: device memory kept for the next array, this thread's rings."""
    for own in vars(_mine).pop("rings", {}).values():
        own.end()
    give_device_back()


def give_device_back():
    """Let the driver have the device memory that nobody uses any more."""
    if engine() == "gpu":
        _cupy().get_default_memory_pool().free_all_blocks()


# ------------------------------------------------------------------------------------------------------------- streams


class Stream:
    """A queue of the device: its work is done in order, beside other streams. The simulator's is done at once."""

    def __init__(self):
        self.own = None
        if engine() == "gpu":
            this_gpu()
            self.own = _cupy().cuda.Stream()
            self.handle = self.own.ptr

    def event(self, timing=False):
        """What is done when the stream has come this far: the host may `synchronize` with it, and `query` it."""
        return _Moment() if self.own is None else cuda_driver.Event(self.handle, timing)

    def wait(self, event):
        """Go on only when another stream's event is done."""
        if self.own is not None:
            event.hold(self.handle)

    def copy_in(self, array, at, source):
        """A pinned array to elements `at` and following of a device array; both are contiguous."""
        if self.own is None:
            array.view(source.dtype)[at : at + source.size] = source
        elif source.size:
            target = array.data.ptr + at * source.itemsize
            cuda_driver.copy_in(target, source.ctypes.data, source.nbytes, self.handle)

    def copy_out(self, array, at, target):
        """Elements `at` and following of a device array to a pinned one."""
        if self.own is None:
            target[:] = array[at : at + target.size]
        elif target.size:
            source = array.data.ptr + at * target.itemsize
            cuda_driver.copy_out(target.ctypes.data, source, target.nbytes, self.handle)


class _Moment:
    """What an event is to the simulator, where all work is done at once: a time."""

    def __init__(self):
        self.seconds = time.perf_counter()

    def query(self):
        return True

    def synchronize(self):
        pass

    def ms_since(self, begin):
        return (self.seconds - begin.seconds) * 1e3


def pinned(length, dtype):
    """A new host array that stays in its place, so that a GPU copies from and to it while the host goes on.

    NumPy's memory, pinned: that is several times as fast as the driver's own, because it comes in huge pages.
    """
    memory = np.empty(length, dtype)
    if engine() == "gpu" and length:
        this_gpu()
        cuda_driver.pin(memory.ctypes.data, memory.nbytes)
        weakref.finalize(memory, cuda_driver.unpin, memory.ctypes.data)
    return memory


# -------------------------------------------------------------------------------------------------- large host arrays

LARGE = 4 << 20  # bytes: an array of fewer is there before threads could help

_mine = threading.local()  # the rings that a thread keeps: to pin their memory takes longer than to fill it


def fill_from_host(array, fill):
    """Have `fill(first, piece)` write all elements of a one-dimensional device array, pinned piece by pinned piece.

    The calls come from several threads, in any order. At return everything is there. What was launched on the default
    stream before has come to its end when the first piece is copied: that stream and ours wait for each other.
    """
    if array.size:
        with _ring_for(array) as own:
            feeder = staging.Feeder(own, array.dtype, spread=True)
            feeder.copy(feeder.request(staging.Load(array, array.size, fill))).synchronize()


@contextmanager
def kept_ring(words):
    """This thread's ring for its device and no other user, its slots of `words` int64 words or more, up to SLOT_WORDS.

    It has a stream of its own. One that is too small makes way for one of the next power of 2; one that something went
    wrong with is not kept.
    """
    rings = vars(_mine).setdefault("rings", {})
    place = os.getpid(), this_gpu() if engine() == "gpu" else "sim"  # a forked child has no threads
    own, words = rings.pop(place, None), min(1 << max(0, words - 1).bit_length(), staging.SLOT_WORDS)
    if own is not None and own.slots[0].size < words:
        own.end()
        own = None
    if own is None:
        slots = [pinned(words, np.int64) for _ in range(staging.SLOTS)]
        own = staging.Ring(Stream(), slots, staging.FILLERS)
    try:
        yield own
    except BaseException:
        own.end()
        synchronize()  # its memory may go when nothing is copied from it any more
        raise
    rings[place] = own


def _is_large(array):
    """Whether an array goes to a GPU, or comes from there, through a ring."""
    plain = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative
    return plain and array.nbytes >= LARGE


def _sent(array):
    """A host array as a new one on the device, by way of this thread's ring."""
    flat = array if array.ndim == 1 else np.ascontiguousarray(array).reshape(-1)
    there = device_array(flat.size, flat.dtype)
    fill_from_host(there, partial(_copy_piece, flat))
    return there.reshape(array.shape)


def _fetched(array):
    """A contiguous device array as a new one on the host, by way of this thread's ring."""
    here = np.empty(array.shape, array.dtype)
    with _ring_for(array) as own:
        staging.fetch(own, array.reshape(array.size), partial(_keep_piece, here.reshape(-1)))
    return here


def _ring_for(array):
    """This thread's ring, its slots as large as suits an array that has it for itself."""
    return kept_ring(max(staging.PIECE_WORDS, array.nbytes // (8 * staging.SLOTS)))


def _keep_piece(array, first, piece):
    array[first : first + piece.size] = piece


def _copy_piece(array, first, piece):
    piece[:] = array[first : first + piece.size]  # NumPy lets other threads run meanwhile


# -------------------------------------------------------------------------------------------------------------- timing


@kernel("void(int64)")
def _stay_busy(microseconds):
    for _ in range(microseconds):
        cuda.nanosleep(uint32(1000))


def elapsed_ms(work, prepare=lambda: None, *, waits=False):
    """Milliseconds that the launches of `work()` keep the device busy, from the first to the last.

    The events lie behind a kernel that sleeps while Python enqueues the launches: what is measured is the device, not
    Python. Were the device idle before all was enqueued, it is done again behind a longer sleep; `prepare()` goes
    before each try, untimed. Work that `waits` for the device itself, and goes on by what it reads there, is timed as
    it is, Python included. The simulator is timed by the clock.
    """
    if engine() == "sim":
        prepare()
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3
    microseconds = 1000
    while True:
        prepare()
        _stay_busy.launch(1, 1, microseconds)
        begin = cuda_driver.Event(timing=True)
        work()
        end = cuda_driver.Event(timing=True)
        kept_busy = not begin.query()
        end.synchronize()
        if waits or kept_busy or microseconds > 1_000_000:
            return end.ms_since(begin)
        microseconds *= 4


@contextmanager
def profiled():
    """Have a profiler that waits for it, as `ncu --profile-from-start off` does, look at what the `with` launches."""
    if engine() == "gpu":
        cuda_driver.start_profiler()
    try:
        yield
    finally:
        if engine() == "gpu":
            synchronize()
            cuda_driver.stop_profiler()


# --------------------------------------------------------------------------------------------------------- the machine


@dataclass(frozen=True)
class Facts:
    """What the engine's device is; sizes in bytes. In the simulator, the figures of a common GPU (T4-like limits)."""

    name: str
    compute_capability: str
    sms: int
    threads_per_sm: int
    shared_per_block: int
    shared_per_sm: int
    l2_bytes: int
    memory_bytes: int
    clock_mhz: int
    driver: str
    cuda: str
    numba: str
    numba_cuda: str

    def asdict(self):
        return asdict(self)


def facts():
    """The `Facts` of the engine's device."""
    return _facts(this_gpu() if engine() == "gpu" else None)


@cache
def _facts(device):
    """The `Facts` of a GPU, by its number; None: of the simulator."""
    versions = {"numba": kernel_compiler.version("numba"), "numba_cuda": kernel_compiler.version("numba-cuda")}
    if device is None:
        return Facts(
            name="CUDA simulator",
            compute_capability="7.5",
            sms=1,
            threads_per_sm=1024,
            shared_per_block=48 << 10,
            shared_per_sm=64 << 10,
            l2_bytes=4 << 20,
            memory_bytes=_main_memory(),
            clock_mhz=0,
            driver="",
            cuda="",
            **versions,
        )
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
    """Bytes of device memory that are free now; the simulator's is the main memory."""
    if engine() == "sim":
        return _main_memory()
    return _cupy().cuda.runtime.memGetInfo()[0] + _cupy().get_default_memory_pool().free_bytes()


def _main_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def copy_bandwidth():
    """Measured bytes a second, read and written together, of a device-to-device copy much larger than the caches."""
    size = min(1 << 30 if engine() == "gpu" else 1 << 26, memory_free() // 8)
    source, target = device_array(size, np.uint8, 0), device_array(size, np.uint8, 0)
    copy = partial(arrays_of(target).copyto, target, source)
    copy()
    return 2 * size / (min(elapsed_ms(copy) for _ in range(5)) * 1e-3)


def _driver_version():
    """The version of NVIDIA's driver, "580.159.04" say; empty where NVML does not tell."""
    nvml = shared_library("libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(96)
    told = nvml is not None and nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0
    return text.value.decode() if told else ""
