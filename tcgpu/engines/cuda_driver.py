"""Launch compiled kernels by `cupy.cuda.driver`, with Numba's layout of arguments.

Launching a kernel with seven arrays takes 10 microseconds here, and 55 with numba-cuda; while other threads compete for
the GIL, as those that fill pinned memory do, 17 and 104.
"""

import ctypes
import struct
import threading
from functools import cache

from tcgpu.engines.kernel_language import parameters


def allocation(address):
    """Where the allocation begins in which an address of a device is."""
    from cuda.bindings.driver import cuMemGetAddressRange  # CuPy has no function for it

    error, begin, _ = cuMemGetAddressRange(address)
    if error:
        raise RuntimeError(f"cuMemGetAddressRange: {error.name}")
    return int(begin)


def load(driver, image, most_shared):
    """The function of an Image, loaded for this thread's device, with the maximum of dynamic shared memory allowed.

    driver: `cupy.cuda.driver`. most_shared: bytes of shared memory that a block may have.
    """
    function = driver.moduleGetFunction(driver.moduleLoadData(image.cubin), image.entry)
    room = most_shared - driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
    driver.funcSetAttribute(function, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room)
    return function


def passed(signature, args):
    """What a launch passes for the arguments: the words of arrays, and numbers; None if they do not have the types of a
    signature, of contiguous arrays and numbers."""
    kinds, values = _kinds(signature), []
    if len(kinds) != len(args):
        return None
    for (dtype, dimensions, itemsize), arg in zip(kinds, args, strict=True):
        shape = getattr(arg, "shape", ())
        if len(shape) != dimensions:
            return None
        if not shape:
            values.append(arg)
            continue
        strides = arg.strides
        if arg.dtype != dtype or strides != (itemsize,) and not arg.flags.c_contiguous:
            return None
        values += (0, 0, arg.size, itemsize, arg.data.ptr) + shape + strides
    return values


@cache
def _kinds(signature):
    """(dtype, dimensions, bytes of an element) of each parameter; a number has no dimensions."""
    return [(*each, each.dtype.itemsize) for each in parameters(signature)]


class Launcher:
    """Launches a kernel with one signature on one device.

    driver: `cupy.cuda.driver`. function: from `load`. cooperative: see `Kernel`.
    """

    def __init__(self, driver, function, signature, cooperative=False):
        self.driver, self.function, self.cooperative = driver, function, cooperative
        form = "".join(each.form for each in parameters(signature))
        self.form = struct.Struct("<" + form)
        self.memory = ctypes.create_string_buffer(max(8, self.form.size))
        first = ctypes.addressof(self.memory)
        self.places = (ctypes.c_void_p * len(form))(*range(first, first + self.form.size, 8))
        self.lock = threading.Lock()  # for `memory`, which the driver copies before it returns

    def launch(self, blocks, threads, values, shared, stream):
        """Launch the kernel with what `passed` returned; CuPy's CUDADriverError if that is not possible."""
        with self.lock:
            self.form.pack_into(self.memory, 0, *values)
            shape = self.function, blocks, 1, 1, threads, 1, 1, shared, stream, ctypes.addressof(self.places)
            if self.cooperative:
                self.driver.launchCooperativeKernel(*shape)
            else:
                self.driver.launchKernel(*shape, 0)

    def blocks_per_sm(self, threads, shared):
        """How many blocks of this shape an SM runs at a time."""
        return self.driver.occupancyMaxActiveBlocksPerMultiprocessor(self.function, threads, shared)

    def carve_out(self, percent):
        """See `runtime.Kernel.carve_out`."""
        carveout = self.driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        self.driver.funcSetAttribute(self.function, carveout, percent)
