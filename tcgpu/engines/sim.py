"""The engine "sim": it runs kernels as Python. Arrays are NumPy's; copies and streams do their work immediately."""

import os
import time

import numpy as np

from tcgpu.engines.facts import Facts
from tcgpu.engines.simulator import simulate


class Event:
    """The time when it was made: all work before it is done."""

    def __init__(self):
        self.seconds = time.perf_counter()

    def query(self):
        return True

    def synchronize(self):
        pass

    def ms_since(self, begin):
        return (self.seconds - begin.seconds) * 1e3


class Stream:
    def event(self, timing=False):
        return Event()

    def wait(self, event):
        pass

    def copy_in(self, array, at, source):
        array.view(source.dtype)[at : at + source.size] = source

    def copy_out(self, array, at, target):
        target[:] = array[at : at + target.size]


class Engine:
    """See `runtime`, whose functions of these names say what they do."""

    name = "sim"
    estimates_time = True
    in_main_memory = True
    arrays = np
    Stream = Stream

    def launch(self, kernel, blocks, threads, args, shared, stream):
        simulate(kernel.py_func, blocks, threads, kernel.typed(args), shared=shared)

    def blocks_at_a_time(self, kernel, threads, shared, device):
        if kernel.cooperative:
            return 1  # one block is done before the next begins
        return max(1, min(device.threads_per_sm // threads, device.shared_per_sm // max(1, shared))) * device.sms

    def to_device(self, array):
        return np.array(array, order="C")

    def to_library(self, array):
        return np.asarray(array)

    def device_array(self, shape, dtype, fill=None):
        if fill == 0:
            return np.zeros(shape, dtype)  # takes memory only where it is written
        return np.empty(shape, dtype) if fill is None else np.full(shape, np.int64(fill).astype(dtype))

    def refill(self, array, fill):
        array.fill(fill)

    def reading(self, array):
        copied = array.copy()
        return lambda: copied

    def synchronize(self, *what):
        """All is done, there is no cache, and nothing is compiled or kept."""

    carve_out = release_device_memory = synchronize

    def event(self, timing=False):
        return Event()

    def pinned(self, length, dtype):
        return np.empty(length, dtype)

    def this_device(self):
        return "sim"

    def kept_ring(self, words):
        from tcgpu.engines.staging import Staged  # it has threads: only streaming uses it here

        return Staged.kept_ring(self, words)

    def fill_from_host(self, array, fill):
        if array.size:
            fill(0, array)

    def copy_from_host(self, source, array):
        array[:] = source

    def copy_to_host(self, array, target):
        target[:] = array

    def elapsed_ms(self, work, prepare=lambda: None, waits=False):
        prepare()
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3

    def facts(self):
        return Facts(self.memory_free())

    def memory_free(self):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def kept_bytes(self):
        return 0
