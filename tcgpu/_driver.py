"""The one door to CUDA's driver: what is asked of it so often that the way through Numba takes longer than the work.

A launch of a kernel with seven arrays takes Numba 55 microseconds, this module 10. Beside threads that wait for
Python's lock, as those do that fill pinned memory, it is 104 and 17: each question to the driver lets one of them in,
and Numba has several for each launch.
"""

import ctypes
import struct
import threading

import numpy as np
from cuda.bindings import driver

# What compiled code takes of an array, before its shape and strides: two numbers that a device has no use for, how many
# elements there are, bytes of an element, the address.
ARRAY = "qqqqQ"
# How a number is packed: eight bytes each, of which the code takes the lower ones where it needs fewer.
NUMBERS = {"bool": "q", "int32": "q", "uint32": "q", "int64": "q", "uint64": "Q", "float64": "d"}


class DriverError(RuntimeError):
    """The driver refused, or tells of an error in a kernel that was launched before."""


def _asked(function, *args):
    """What the driver answers."""
    error, *answer = function(*args)
    if error:
        raise DriverError(f"{function.__name__}: {error.name}")
    return answer[0] if answer else None


def current_device():
    """The number of the device that this thread works on; None before it has one."""
    error, device = driver.cuCtxGetDevice()
    return None if error else int(device)


# -------------------------------------------------------------------------------------------------------------- copies


def copy_in(target, source, size, stream):
    """`size` bytes from one address, in pinned memory of the host, to another on the device."""
    _asked(driver.cuMemcpyHtoDAsync, target, source, size, stream)


def copy_out(target, source, size, stream):
    """The way back."""
    _asked(driver.cuMemcpyDtoHAsync, target, source, size, stream)


class Event:
    """What is done when a stream, of this handle, has come as far as it is filled now."""

    def __init__(self, stream=0, timing=False):
        flag = driver.CUevent_flags.CU_EVENT_DEFAULT if timing else driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
        self.handle = _asked(driver.cuEventCreate, flag)
        _asked(driver.cuEventRecord, self.handle, stream)

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
        """Wait until it is done; other threads of Python's may go on."""
        _asked(driver.cuEventSynchronize, self.handle)

    def hold(self, stream):
        """Have a stream wait for it."""
        _asked(driver.cuStreamWaitEvent, stream, self.handle, 0)

    def ms_since(self, begin):
        """Milliseconds from another event to this one: both have timing, and are done."""
        return _asked(driver.cuEventElapsedTime, begin.handle, self.handle)


# ------------------------------------------------------------------------------------------------------------ launches


class Launcher:
    """Launches one of the codes of a kernel that Numba has compiled, on the device that it was loaded on.

    overload: Numba's. The arguments are packed as its own launch would have them: held against that the first time. If
    a later Numba has them otherwise, nothing is launched here.
    """

    def __init__(self, overload):
        self.overload, self.kinds = overload, overload.argument_types
        self.fits = None  # whether Numba has the arguments like this; None: not known yet
        self.arrays = [(np.dtype(str(k.dtype)), k.ndim) if hasattr(k, "ndim") else None for k in self.kinds]
        form = "".join(ARRAY + 2 * k.ndim * "q" if hasattr(k, "ndim") else NUMBERS[str(k)] for k in self.kinds)
        self.form = struct.Struct("<" + form)
        self.memory = ctypes.create_string_buffer(self.form.size)
        first, last = ctypes.addressof(self.memory), ctypes.addressof(self.memory) + self.form.size
        self.places = (ctypes.c_void_p * len(form))(*range(first, last, 8))
        self.function = driver.CUfunction(int(overload._codelibrary.get_cufunc().handle))
        self.lock = threading.Lock()  # the memory is one thread's at a time; the driver has read it when it answers

    def launch(self, blocks, threads, args, shared, stream):
        """Launch it, unless the arguments are for other code, or Numba has them otherwise, or the driver refuses.

        Whether it was launched: if not, Numba's own launch does it, or says what is wrong.
        """
        values = self._values(args)
        if values is None or not self._as_numba_has_them(args, values):
            return False
        with self.lock:
            self.form.pack_into(self.memory, 0, *values)
            places = ctypes.addressof(self.places)
            (error,) = driver.cuLaunchKernel(self.function, blocks, 1, 1, threads, 1, 1, shared, stream, places, 0)
        return not error

    def _values(self, args):
        """What the code takes, number by number; None if some argument is not what it is compiled for."""
        values = []
        for array, arg in zip(self.arrays, args, strict=True):
            if array is None:
                values.append(arg)
            elif (arg.dtype, arg.ndim) == array and arg.is_c_contiguous():
                where = arg.device_ctypes_pointer.value or 0
                values += (0, 0, arg.size, array[0].itemsize, where, *arg.shape, *arg.strides)
            else:
                return None
        return values

    def _as_numba_has_them(self, args, values):
        if self.fits is None:
            theirs = []
            for kind, arg in zip(self.kinds, args):
                self.overload._prepare_args(kind, arg, 0, [], theirs)
            self.fits = [getattr(value, "value", value) or 0 for value in theirs] == values
        return self.fits
