"""The engine "gpu", of NVIDIA: kernels are compiled by `kernel_compiler` and launched by `cuda_driver`; arrays, streams
and events are CuPy's. No other module knows that they are."""

import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace

import numpy as np

from tcgpu.engines import cuda_driver, kernel_compiler
from tcgpu.engines.choice import driver_version
from tcgpu.engines.facts import Facts
from tcgpu.engines.kernel_language import cuda, uint32
from tcgpu.engines.staging import Staged, is_large

PAGE = 1 << 11  # int64 of pinned memory, to which `reading` copies an array
ALIGNED_BYTES, MOST_TOGETHER = 512, 1 << 27  # bytes: multiples of it at which arrays begin; of a shared allocation
NOT_READY = 600  # cudaErrorNotReady, for which CuPy has no name
FOR_EVERY_DEVICE = 1  # cudaHostRegisterPortable, likewise: copies to and from every device of the process

_thread = threading.local()  # its pages for `reading` on each GPU


@cache
def _cupy():
    import cupy  # not at the top: it takes a second

    return cupy


def this_gpu():
    """The number of the GPU that this thread uses."""
    cuda = _cupy().cuda
    try:
        return cuda.driver.ctxGetDevice()
    except cuda.driver.CUDADriverError:  # in a new thread, CuPy's choice takes effect at the first call of the runtime
        cuda.Device().use()
        cuda.runtime.free(0)
        return cuda.driver.ctxGetDevice()


def _compute_capability(device):
    digits = _cupy().cuda.Device(device).compute_capability  # "90" is 9.0: the minor version has one digit
    return int(digits[:-1]), int(digits[-1])


def _attribute(device, name):
    """An attribute of a device; name: the CUDA runtime's without `cudaDevAttr`."""
    runtime = _cupy().cuda.runtime
    return runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), device)


# ------------------------------------------------------------------------------------------------------------- kernels


class CompiledKernel:
    """The machine code of a `runtime.Kernel`, compiled for each signature and GPU at the first launch that needs it."""

    def __init__(self, kernel):
        self.kernel, self._lock = kernel, threading.Lock()
        self._launchers = {}  # (signature, device) -> Launcher

    def launch(self, blocks, threads, args, shared=0, stream=None):
        for signature in self.kernel.signatures:
            values = cuda_driver.passed(signature, args)
            if values is not None:
                return self._launcher(signature).launch(blocks, threads, values, shared, stream.handle if stream else 0)
        name, signatures = self.kernel.py_func.__name__, " or ".join(self.kernel.signatures)
        given = ", ".join(f"{arg.dtype} {arg.shape}" if hasattr(arg, "shape") else type(arg).__name__ for arg in args)
        raise TypeError(f"kernel {name} takes {signatures}, not ({given})")

    def _launcher(self, signature):
        """The Launcher for a signature on this thread's device."""
        key = signature, this_gpu()
        return self._launchers.get(key) or self._compiled(*key)

    def _compiled(self, signature, device):
        kernel, driver = self.kernel, _cupy().cuda.driver
        with self._lock:
            if (signature, device) not in self._launchers:
                capability = _compute_capability(device)
                image = kernel_compiler.image(kernel.py_func, signature, capability, kernel.most_threads)
                function = cuda_driver.load(driver, image, _attribute(device, "MaxSharedMemoryPerBlockOptin"))
                launcher = cuda_driver.Launcher(driver, function, signature, kernel.cooperative)
                self._launchers[signature, device] = launcher
            return self._launchers[signature, device]

    def all_launchers(self):
        """Those of all signatures on this thread's device."""
        return map(self._launcher, self.kernel.signatures)


def _sleep(microseconds):
    for _ in range(microseconds):
        cuda.nanosleep(uint32(1000))


# -------------------------------------------------------------------------------------------------------------- arrays


class Reading:
    """A copy of a small array to a page, which is pinned memory and an event: called, it waits for the copy, and
    returns another of it."""

    def __init__(self, pages, page, array):
        self.pages, self.page = pages, page
        self.memory, self.copied = page
        self.size, self.dtype = array.size, array.dtype
        _copy(self.memory.ctypes.data, array.data.ptr, array.nbytes)
        self.copied.record()

    def __call__(self):
        self.copied.synchronize()
        return self.memory.view(self.dtype)[: self.size].copy()

    def __del__(self):
        if not sys.is_finalizing():
            self.copied.synchronize()  # if an error came before it was read, the copy may be in progress
            self.pages.append(self.page)


@dataclass(frozen=True)
class SharedArray:
    """An array on a GPU that other processes of the machine may open, as long as its own process has it."""

    gpu: int  # among those visible to its own process
    handle: bytes  # of the allocation that it is in
    offset: int  # bytes
    size: int
    dtype: str


class _Opened:
    """What keeps the memory of another process open."""


def _close(address):
    runtime = _cupy().cuda.runtime
    runtime.deviceSynchronize()  # kernels may still read it
    runtime.ipcCloseMemHandle(address)


def _unpin(address):
    with suppress(RuntimeError):  # at the end of a process the driver may be gone
        _cupy().cuda.runtime.hostUnregister(address)


# ------------------------------------------------------------------------------------------------- streams and events


class Event:
    """An event in a stream, or without one in the default stream: it is done when all work enqueued before it is."""

    def __init__(self, stream=None, timing=False):
        self.own = _cupy().cuda.Event(disable_timing=not timing)
        self.record(stream)

    def record(self, stream=None):
        """Set it anew, at what is enqueued now."""
        self.own.record(stream or _cupy().cuda.Stream.null)

    def query(self):
        """Whether it is done; CuPy's CUDARuntimeError if work before it failed."""
        runtime = _cupy().cuda.runtime
        try:
            runtime.check_status(runtime.eventQuery(self.own.ptr))
        except runtime.CUDARuntimeError as error:
            if error.status == NOT_READY:
                return False
            raise
        return True

    def synchronize(self):
        """Wait until it is done, while other Python threads may run."""
        self.own.synchronize()

    def ms_since(self, begin):
        """Milliseconds from another event to this one. Both must have timing and be done."""
        return _cupy().cuda.get_elapsed_time(begin.own, self.own)


class Stream:
    def __init__(self):
        self.own = _cupy().cuda.Stream()
        self.handle = self.own.ptr

    def event(self, timing=False):
        return Event(self.own, timing)

    def wait(self, event):
        self.own.wait_event(event.own)

    def copy_in(self, array, at, source):
        if source.size:
            target = array.data.ptr + at * source.itemsize
            _copy(target, source.ctypes.data, source.nbytes, self.handle)

    def copy_out(self, array, at, target):
        if target.size:
            source = array.data.ptr + at * target.itemsize
            _copy(target.ctypes.data, source, target.nbytes, self.handle)


def _copy(target, source, size, stream=0):
    """Enqueue a copy of `size` bytes between addresses, one of pinned memory and one of a device."""
    runtime = _cupy().cuda.runtime
    runtime.memcpyAsync(target, source, size, runtime.memcpyDefault, stream)


# ---------------------------------------------------------------------------------------------------------- the engine


class Engine(Staged):
    """See `runtime`, whose functions of these names say what they do."""

    name = "gpu"
    estimates_time = False
    in_main_memory = False
    Stream = Stream

    def __init__(self):
        kernel_compiler.prepare()
        sleep = {"py_func": _sleep, "signatures": ("void(int64)",), "most_threads": None, "cooperative": False}
        self._sleep = CompiledKernel(SimpleNamespace(**sleep))

    def launch(self, kernel, blocks, threads, args, shared, stream):
        self._of(kernel).launch(blocks, threads, args, shared, stream)

    def _of(self, kernel):
        found = kernel.compiled.get(self.name)  # another thread may come first with a new one
        return found or kernel.compiled.setdefault(self.name, CompiledKernel(kernel))

    def blocks_at_a_time(self, kernel, threads, shared, device):
        if kernel.cooperative:  # its registers suffice for the blocks that it is compiled for
            return device.sms * min(kernel.most_threads[1], device.threads_per_sm // threads)
        launchers = self._of(kernel).all_launchers()
        return device.sms * max(1, min(each.blocks_per_sm(threads, shared) for each in launchers))

    def carve_out(self, kernel, percent):
        for launcher in self._of(kernel).all_launchers():
            launcher.carve_out(percent)

    def sleep(self, microseconds, stream=None):
        """Launch a kernel that takes this long."""
        self._sleep.launch(1, 1, (microseconds,), stream=stream)

    @property
    def arrays(self):
        return _cupy()

    def to_device(self, array):
        return _cupy().ascontiguousarray(self.to_library(array))

    def to_library(self, array):
        return _cupy().asarray(self.upload(array) if isinstance(array, np.ndarray) and is_large(array) else array)

    def device_array(self, shape, dtype, fill=None):
        array = _cupy().empty(shape, dtype)
        if fill is not None:
            self.refill(array, fill)
        return array

    def device_arrays(self, created):
        """Small ones share an allocation, those with the same fill side by side: one call of the driver for all."""
        places, filled, size = {}, [], 0
        for fill in (None, 0, -1):
            begin = size
            for name, (length, dtype, own) in created.items():
                if own == fill:
                    places[name] = size
                    size += -(-length * np.dtype(dtype).itemsize // ALIGNED_BYTES) * ALIGNED_BYTES
            filled.append((begin, size - begin, fill))
        if size > MOST_TOGETHER:
            return {name: self.device_array(*what) for name, what in created.items()}
        cupy = _cupy()
        memory = cupy.cuda.alloc(size)
        for begin, length, fill in filled[1:]:
            if length:
                (memory + begin).memset_async(fill & 0xFF, length)
        return {name: cupy.ndarray(*created[name][:2], memory + place) for name, place in places.items()}

    def refill(self, array, fill):
        """By memset: the bytes of 0 and of -1 are all equal."""
        if array.size:
            array.data.memset_async(fill & 0xFF, array.nbytes)

    def to_host(self, array, halved=False):
        """A NumPy array of one on a GPU; halved: of half of each number, which the threads compute that copy it."""
        array = _cupy().asarray(array)
        if is_large(array) and array.flags.c_contiguous:
            return self.download(array, halved)
        return array.get() >> 1 if halved else array.get()

    def reading(self, array):
        pages = vars(_thread).setdefault(this_gpu(), [])
        return Reading(pages, pages.pop() if pages else (self.pinned(PAGE, np.int64), Event()), array)

    def pinned(self, length, dtype):
        """NumPy allocates it in huge pages, then it is pinned: several times as fast as the driver's own memory."""
        memory = np.empty(length, dtype)
        if length:
            _cupy().cuda.runtime.hostRegister(memory.ctypes.data, memory.nbytes, FOR_EVERY_DEVICE)
            weakref.finalize(memory, _unpin, memory.ctypes.data)
        return memory

    def contiguous_there(self, array):
        """An array on any GPU, of any library with a common protocol, as a contiguous one of CuPy on the same GPU."""
        cuda, address = _cupy().cuda, array.__cuda_array_interface__["data"][0]
        gpu = cuda.runtime.pointerGetAttributes(address).device if address else cuda.Device().id
        with cuda.Device(gpu):  # on another one, CuPy's asarray makes a copy there
            return _cupy().ascontiguousarray(_cupy().asarray(array))

    def shared_array(self, array):
        """The SharedArray of what `contiguous_there` returned, if it has elements and one dimension."""
        with array.device:
            _cupy().cuda.runtime.deviceSynchronize()  # another process does not wait for streams of this one
            base = cuda_driver.allocation(array.data.ptr)
            handle = _cupy().cuda.runtime.ipcGetMemHandle(base)
        return SharedArray(array.device.id, handle, array.data.ptr - base, array.size, array.dtype.str)

    def opened_array(self, shared):
        """A SharedArray of another process as an array here, which is read where it lies."""
        cuda = _cupy().cuda
        address = cuda.runtime.ipcOpenMemHandle(shared.handle)
        owner = _Opened()
        weakref.finalize(owner, _close, address).atexit = False
        size = shared.offset + shared.size * np.dtype(shared.dtype).itemsize
        pointer = cuda.MemoryPointer(cuda.UnownedMemory(address, size, owner), shared.offset)
        return _cupy().ndarray(shared.size, shared.dtype, pointer)

    def nccl(self):
        """See `distributed.groups.nccl`."""
        from cupy.cuda import nccl

        return nccl if nccl.available else None

    def synchronize(self):
        _cupy().cuda.runtime.deviceSynchronize()

    def event(self, timing=False):
        return Event(timing=timing)

    def elapsed_ms(self, work, prepare=lambda: None, waits=False):
        """A kernel that sleeps runs first, while Python enqueues the launches, so that Python's time is not measured.
        If it ends too early, all is repeated with a longer sleep."""
        microseconds = 1000
        while True:
            prepare()
            self.sleep(microseconds)
            begin = Event(timing=True)
            work()
            end = Event(timing=True)
            kept_busy = not begin.query()
            end.synchronize()
            if waits or kept_busy or microseconds > 1_000_000:
                return end.ms_since(begin)
            microseconds *= 4

    def use(self, number):
        _cupy().cuda.Device(number).use()

    def this_device(self):
        return this_gpu()

    def facts(self):
        return _facts(this_gpu())

    def memory_free(self):
        return _cupy().cuda.runtime.memGetInfo()[0] + self.kept_bytes()

    def kept_bytes(self):
        return _cupy().get_default_memory_pool().free_bytes()

    def release_device_memory(self):
        _cupy().get_default_memory_pool().free_all_blocks()


@cache
def _facts(device):
    runtime = _cupy().cuda.runtime
    version = runtime.runtimeGetVersion()
    return Facts(
        name=runtime.getDeviceProperties(device)["name"].decode(),
        compute_capability="{}.{}".format(*_compute_capability(device)),
        sms=_attribute(device, "MultiProcessorCount"),
        threads_per_sm=_attribute(device, "MaxThreadsPerMultiProcessor"),
        shared_per_block=_attribute(device, "MaxSharedMemoryPerBlockOptin"),
        shared_per_sm=_attribute(device, "MaxSharedMemoryPerMultiprocessor"),
        l2_bytes=_attribute(device, "L2CacheSize"),
        memory_bytes=runtime.memGetInfo()[1],
        clock_mhz=_attribute(device, "ClockRate") // 1000,
        driver=driver_version(),
        cuda=f"{version // 1000}.{version % 1000 // 10}",
        numba=kernel_compiler.version("numba"),
        numba_cuda=kernel_compiler.version("numba-cuda"),
    )
