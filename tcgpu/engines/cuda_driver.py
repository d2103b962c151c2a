"""Calls of CUDA's driver: devices, copies, events, compiled code and launches. No other module imports the driver.

Launching a kernel with seven arrays takes 10 microseconds here, and 55 with numba-cuda; while other threads compete for
the GIL, as those that fill pinned memory do, 17 and 104.
"""

import ctypes
import struct
import threading
from functools import cache

from cuda.bindings import driver

from tcgpu.engines.kernel_language import parameters

ATTRIBUTES = driver.CUdevice_attribute


class DriverError(RuntimeError):
    """An error of a driver call, or of a kernel that was launched before."""


def _call(function, *args):
    """The result of a driver function; raises DriverError if it reports an error."""
    error, *answer = function(*args)
    if error:
        raise DriverError(f"{function.__name__}: {error.name}")
    return answer[0] if answer else None


# ------------------------------------------------------------------------------------------------------------- devices


def current_device():
    """The number of this thread's device; None before it has one."""
    error, device = driver.cuCtxGetDevice()
    return None if error else int(device)


def attribute(device, name):
    """An attribute of a device; name: the driver's without `CU_DEVICE_ATTRIBUTE_`."""
    return _call(driver.cuDeviceGetAttribute, getattr(ATTRIBUTES, f"CU_DEVICE_ATTRIBUTE_{name}"), device)


def compute_capability(device):
    """(major, minor)."""
    return tuple(attribute(device, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))


def device_name(device):
    """The name of a device, such as "NVIDIA H200"."""
    return _call(driver.cuDeviceGetName, 256, device).partition(b"\0")[0].decode()


def synchronize():
    """Wait until this thread's device is idle."""
    _call(driver.cuCtxSynchronize)


# ------------------------------------------------------------------------------------------------ copies, pinned memory


def copy_in(target, source, size, stream):
    """Copy `size` bytes between addresses, from pinned host memory to the device."""
    _call(driver.cuMemcpyHtoDAsync, target, source, size, stream)


def copy_out(target, source, size, stream):
    """Copy `size` bytes between addresses, from the device to pinned host memory."""
    _call(driver.cuMemcpyDtoHAsync, target, source, size, stream)


def allocation(address):
    """Where the allocation begins in which an address of a device is."""
    return int(_call(driver.cuMemGetAddressRange, address))


def pin(address, size):
    """Pin host memory, for copies to and from every device of the process."""
    _call(driver.cuMemHostRegister, address, size, driver.CU_MEMHOSTREGISTER_PORTABLE)


def unpin(address):
    """Undo `pin`; returns the driver's error code: at the end of a process the driver may be gone."""
    return int(driver.cuMemHostUnregister(address)[0])


class Event:
    """An event in a stream: it is done when all work enqueued before it is."""

    def __init__(self, stream=0, timing=False):
        flag = driver.CUevent_flags.CU_EVENT_DEFAULT if timing else driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.handle = _call(driver.cuEventCreate, flag)
        _call(driver.cuEventRecord, self.handle, stream)

    def __del__(self, destroy=driver.cuEventDestroy):
        if hasattr(self, "handle"):
            destroy(self.handle)

    def query(self):
        """Whether it is done."""
        (error,) = driver.cuEventQuery(self.handle)
        if error and error != driver.CUresult.CUDA_ERROR_NOT_READY:
            raise DriverError(f"cuEventQuery: {error.name}")
        return not error

    def synchronize(self):
        """Wait until it is done, while other Python threads may run."""
        _call(driver.cuEventSynchronize, self.handle)

    def delay(self, stream):
        """Make later work in a stream wait for this event."""
        _call(driver.cuStreamWaitEvent, stream, self.handle, 0)

    def ms_since(self, begin):
        """Milliseconds from another event to this one. Both must have timing and be done."""
        return _call(driver.cuEventElapsedTime, begin.handle, self.handle)


# ------------------------------------------------------------------------------------------------------------- kernels


def load(image):
    """The kernel of an Image, loaded into the driver for all devices of its compute capability."""
    library = _call(driver.cuLibraryLoadData, image.cubin, [], [], 0, [], [], 0)
    return _call(driver.cuLibraryGetKernel, library, image.entry.encode())


def function(kernel, device):
    """The function of a loaded kernel for this thread's device, with the maximum of dynamic shared memory allowed."""
    names = driver.CUfunction_attribute
    static = _call(driver.cuKernelGetAttribute, names.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, device)
    room = attribute(device, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") - static
    _call(driver.cuKernelSetAttribute, names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room, kernel, device)
    return _call(driver.cuKernelGetFunction, kernel)


def passed(signature, args):
    """What a launch passes for the arguments: the words of arrays, and numbers; None if they do not have the types of a
    signature, of contiguous arrays and numbers."""
    arrays, values = _arrays(signature), []
    if len(arrays) != len(args):
        return None
    for array, arg in zip(arrays, args, strict=True):
        if (getattr(arg, "ndim", 0) or None) != (array and array[1]):
            return None
        if array is None:
            values.append(arg)
            continue
        dtype, shape, strides, itemsize = arg.dtype, arg.shape, arg.strides, array[0].itemsize
        contiguous = len(shape) == 1 and strides[0] == itemsize or arg.flags.c_contiguous
        if dtype != array[0] or not contiguous:
            return None
        values += (0, 0, arg.size, itemsize, arg.data.ptr, *shape, *strides)
    return values


@cache
def _arrays(signature):
    """(dtype, dimensions) of each parameter that is an array; None for a number."""
    return [(each.dtype, each.dimensions) if each.dimensions else None for each in parameters(signature)]


class Launcher:
    """Launches a kernel with one signature on one device. function: from `function`; cooperative: see `Kernel`."""

    def __init__(self, function, signature, cooperative=False):
        self.function, self.cooperative = function, cooperative
        form = "".join(each.form for each in parameters(signature))
        self.form = struct.Struct("<" + form)
        self.memory = ctypes.create_string_buffer(max(8, self.form.size))
        first = ctypes.addressof(self.memory)
        self.places = (ctypes.c_void_p * len(form))(*range(first, first + self.form.size, 8))
        self.lock = threading.Lock()  # for `memory`, which the driver copies before it returns

    def launch(self, blocks, threads, values, shared, stream):
        """Launch the kernel with what `passed` returned; DriverError if that is not possible."""
        with self.lock:
            self.form.pack_into(self.memory, 0, *values)
            places = ctypes.addressof(self.places)
            shape = self.function, blocks, 1, 1, threads, 1, 1, shared, stream, places
            if self.cooperative:
                _call(driver.cuLaunchCooperativeKernel, *shape)
            else:
                _call(driver.cuLaunchKernel, *shape, 0)

    def blocks_per_sm(self, threads, shared):
        """How many blocks of this shape an SM runs at a time."""
        return _call(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor, self.function, threads, shared)

    def carve_out(self, percent):
        """See `runtime.Kernel.carve_out`."""
        carveout = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        _call(driver.cuFuncSetAttribute, self.function, carveout, percent)
