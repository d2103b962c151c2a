"""The engine "webgpu": its arrays are in buffers of a `device`, and kernels run there as `translator` writes them."""

import time

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.facts import Facts
from tcgpu.engines.kernel_language import cuda, parameters, uint32
from tcgpu.engines.webgpu.device import ALIGNMENT, open_device
from tcgpu.errors import EngineError, KernelError
from tcgpu.gpu_costs import SAME_SPEED

SMS, THREADS_PER_SM = 32, 2048  # WebGPU does not say what a GPU has: as many threads keep most of them busy
LONGEST_WAKE, FIRST_WAKE = 1.5, 0.5  # seconds that `wake` takes at most, and the first time at least
SPIN_BLOCKS = 1024


@runtime.kernel("void(uint32[::1], uint32)")
def spin(words, x):
    x += cuda.threadIdx.x
    for _ in range(uint32(20_000)):
        x = x * 1_664_525 + 1_013_904_223
    if x == 7:  # else the loop would be left out
        words[0] = x


@runtime.kernel("void(uint32[::1], uint32)")
def fill_words(words, value):
    k = cuda.grid(1)
    if k < words.size:
        words[k] = value


class Library:
    """What makes a device's arrays, in place of NumPy: without the other functions that NumPy has."""

    def __init__(self, device):
        self.device = device

    def empty(self, shape, dtype):
        return WebGpuArray(self.device, shape, dtype)

    def __getattr__(self, name):
        raise EngineError(f"this computes with whole arrays ({name}), which engine 'webgpu' cannot: use engine 'cpu'")


class WebGpuArray:
    """An array in a device's memory. It is read by `runtime.to_host`, or an element at a time."""

    def __init__(self, device, shape, dtype, buffer=None, offset=0):
        self.device, self.dtype, self.offset = device, np.dtype(dtype), offset
        self.shape = shape if isinstance(shape, tuple) else (int(shape),)
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape, dtype=np.int64))
        self.nbytes = self.size * self.dtype.itemsize
        self.buffer = buffer or device.buffer(self.nbytes)

    @property
    def library(self):
        """What makes arrays like this one: see `runtime.arrays_of`."""
        return Library(self.device)

    @property
    def bound(self):
        """What a kernel gets: the buffer, where the array begins, and bytes."""
        return self.buffer, self.offset if self.size else 0, max(16, -(-self.nbytes // 4) * 4)

    def view(self, dtype):
        return WebGpuArray(self.device, self.nbytes // np.dtype(dtype).itemsize, dtype, self.buffer, self.offset)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        """An element; or a slice of neighbours, whose memory is the array's."""
        if isinstance(index, slice):
            first, last, step = index.indices(self.size)
            offset = self.offset + first * self.dtype.itemsize
            if step != 1 or self.ndim != 1 or offset % ALIGNMENT:
                raise NotImplementedError(f"a slice of a WebGPU array begins at a multiple of {ALIGNMENT} bytes")
            return WebGpuArray(self.device, max(0, last - first), self.dtype, self.buffer, offset)
        at = self.offset + range(self.size)[index] * self.dtype.itemsize
        return np.frombuffer(self.device.read(self.buffer, at, self.dtype.itemsize), self.dtype)[0]

    def __setitem__(self, index, value):
        """Copy an array of this size, from the host or the device."""
        if index != slice(None) or np.shape(value) != self.shape:
            raise NotImplementedError("a WebGPU array is written as a whole")
        if isinstance(value, WebGpuArray):
            self.device.copy(value.buffer, value.offset, self.buffer, self.offset, self.nbytes)
        else:
            data = np.ascontiguousarray(value, self.dtype).reshape(-1).view(np.uint8)
            data = np.append(data, np.zeros(-data.size % 4, np.uint8)) if data.size % 4 else data  # whole words
            self.device.write(self.buffer, self.offset, data)

    def __array__(self, dtype=None, copy=None):
        words = np.empty(-(-self.nbytes // 4), np.uint32)
        if self.size:
            self.device.read_into(self.buffer, self.offset, words)
        target = words.view(np.uint8)[: self.nbytes].view(self.dtype).reshape(self.shape)
        return target if dtype is None else target.astype(dtype)


class Engine:
    """See `runtime`, whose functions of these names say what they do; what streams a graph in parts is not here."""

    name = "webgpu"
    estimates_time = False
    in_main_memory = True  # graphs are made there

    def __init__(self):
        self.device = open_device()
        self.fastest_spin = None  # nanoseconds of `wake`'s kernel

    # kernels

    def launch(self, kernel, blocks, threads, args, shared, stream):
        blocks, threads = (self.one_dimension(kernel, sizes) for sizes in (blocks, threads))
        self.check_shape(kernel, threads, shared)
        signature = self.signature(kernel, args)
        known = kernel.compiled.setdefault(self.name, {})
        key = signature, threads, shared
        if key not in known:
            known[key] = self.compiled(kernel, *key)
        text, pipeline = known[key]
        words = []
        for arg, of in zip(args, parameters(signature), strict=True):
            if of.dimensions:
                words += arg.shape
            else:
                word = int(arg) & (1 << 64) - 1
                words += [word & 0xFFFFFFFF, word >> 32][: 1 + (of.dtype.itemsize == 8)]
        params = np.array([*words, blocks], np.uint32).tobytes()
        bound = [args[number].bound for number, _ in text.arrays]
        if len({buffer for buffer, *_ in bound}) < len(bound):
            buffers = [args[number].buffer for number, _ in text.arrays]
            for (number, written), buffer in zip(text.arrays, buffers, strict=True):
                if written and buffers.count(buffer) > 1:
                    name = kernel.py_func.__code__.co_varnames[number]
                    raise KernelError(
                        f"kernel {kernel.__name__} writes {name}, whose memory it has by another name, too: WebGPU "
                        "does not allow it; give it a copy"
                    )
        self.device.dispatch(pipeline, blocks, params, bound)

    def compiled(self, kernel, signature, threads, shared):
        """(Text, Pipeline) of a kernel."""
        from tcgpu.engines.webgpu.translator import translated

        text = translated(kernel, signature, threads, shared, self.device.features)
        self.check_shape(kernel, threads, text.shared_bytes)
        most = self.device.limits.buffers_per_kernel
        if len(text.arrays) > most:
            raise KernelError(
                f"kernel {kernel.__name__} takes {len(text.arrays)} arrays; {self.device.info.name} allows {most}"
            )
        bindings = ("uniform", *("read_write" if written else "read" for _, written in text.arrays))
        wgsl = text.wgsl
        if self.device.info.kind == "software":  # from a loop with one exit it brings what the last thread read there
            wgsl = wgsl.replace(" loop {\n", " loop { if (block == 0xffffffffu) { break; }\n")
        return text, self.device.pipeline(wgsl, bindings, kernel.__name__)

    def signature(self, kernel, args):
        """The signature of a kernel that the arguments fit."""
        for signature in kernel.signatures:
            declared = parameters(signature)
            if len(declared) == len(args) and all(map(_fits, args, declared)):
                return signature
        given = ", ".join(f"{arg.dtype} {arg.shape}" if hasattr(arg, "shape") else type(arg).__name__ for arg in args)
        raise TypeError(f"kernel {kernel.__name__} takes {' or '.join(kernel.signatures)}, not ({given})")

    def check_shape(self, kernel, threads, shared):
        """KernelError unless the device runs blocks of this shape."""
        limits = self.device.limits
        for given, most, what, better in (
            (threads, limits.threads_per_block, "threads", "fewer threads"),
            (shared, limits.shared_bytes, "bytes of shared memory", "a smaller block or tile"),
        ):
            if given > most:
                raise KernelError(
                    f"a block of kernel {kernel.__name__} has {given:,} {what}; {self.device.info.name} allows "
                    f"{most:,}: give the method {better}"
                )

    def one_dimension(self, kernel, sizes):
        """The number of blocks, or threads, of a launch."""
        first, *others = sizes if isinstance(sizes, tuple) else (sizes,)
        if any(other != 1 for other in others):
            raise KernelError(f"kernel {kernel.__name__}: a launch has one dimension by WebGPU, not {sizes}")
        return first

    def blocks_at_a_time(self, kernel, threads, shared, device):
        if kernel.cooperative:
            raise KernelError(f"kernel {kernel.__name__}: blocks of WebGPU cannot wait for each other")
        return max(1, min(device.threads_per_sm // threads, device.shared_per_sm // max(1, shared))) * device.sms

    def release_device_memory(self, *what):
        """Caches are the driver's, and buffers to which nothing refers are freed."""

    carve_out = release_device_memory

    # arrays

    def device_array(self, shape, dtype, fill=None):
        array = WebGpuArray(self.device, shape, dtype)
        if fill:  # a new buffer has zeros
            self.refill(array, fill)
        return array

    def refill(self, array, fill):
        words = WebGpuArray(self.device, -(-array.nbytes // 4), np.uint32, array.buffer, array.offset)
        if fill == 0:
            self.device.clear(words.buffer, words.offset, words.nbytes)
        else:
            self.launch(fill_words, -(-words.size // 256), 256, (words, fill), 0, None)

    def to_device(self, array):
        if isinstance(array, WebGpuArray):
            return array
        made = WebGpuArray(self.device, np.shape(array), array.dtype)
        made[:] = array
        return made

    to_library = to_device

    def reading(self, array):
        copied = np.asarray(array)
        return lambda: copied

    # the device

    def synchronize(self):
        self.device.synchronize()

    def elapsed_ms(self, work, prepare=lambda: None, waits=False):
        prepare()
        self.wake()
        self.device.start_timing()
        try:
            work()
        finally:
            nanoseconds = self.device.stop_timing()
        return nanoseconds / 1e6

    def wake(self):
        """Keep the device at work until its clock is up: a GPU lowers it while there is nothing to do."""
        if self.device.info.kind == "software" or self.device.timed_by == "clock":
            return
        begin, first = time.perf_counter(), self.fastest_spin is None
        words = WebGpuArray(self.device, 1, np.uint32)
        spent = 0.0
        while spent < LONGEST_WAKE:
            self.device.start_timing()
            self.launch(spin, SPIN_BLOCKS, 256, (words, 1), 0, None)
            took = self.device.stop_timing()
            self.fastest_spin = min(took, self.fastest_spin or took)
            spent = time.perf_counter() - begin
            if took <= SAME_SPEED * self.fastest_spin and (not first or spent > FIRST_WAKE):
                return

    def facts(self):
        info, limits = self.device.info, self.device.limits
        return Facts(
            memory_bytes=self.memory_free(), name=info.name, compute_capability="", sms=SMS,
            threads_per_sm=THREADS_PER_SM, shared_per_block=limits.shared_bytes, shared_per_sm=limits.shared_bytes,
            driver=info.driver, backend=info.backend, kind=info.kind, threads_per_block=limits.threads_per_block,
        )  # fmt: skip

    def memory_free(self):
        """WebGPU does not say: what one buffer may have."""
        return self.device.limits.buffer_bytes

    def kept_bytes(self):
        return 0


def _fits(arg, of):
    """Whether an argument is of a parameter's type."""
    if of.dimensions:
        return getattr(arg, "dtype", None) == of.dtype and arg.ndim == of.dimensions
    return not getattr(arg, "shape", ())
