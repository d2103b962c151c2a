"""Groups of workers that exchange arrays of their devices.

A group has `size` members; `rank` is a member's number. Every member calls the same operations in the same order:

    sum(array)         replaces each member's array by the elementwise sum of all
    exchange(pieces)   sends the array pieces[k] to member k, and returns (array, sizes): what all members sent here,
                       one after the other, and how many elements each of them sent
    gather(array)      the same if each member sends one array to all

The operations of one count are inside `with group`. Each GPU is in a process of its own, and NCCL carries the arrays:
one group serves any number of counts, until one fails. If a member dies or fails, the others wait for it until their
processes are ended.
"""

import ctypes
import os

import numpy as np

from tcgpu.engines import runtime

STREAM = 0  # CUDA's default stream, in which kernels are launched
SETTINGS = {"NCCL_NVLS_ENABLE": "0"}  # of NCCL: without multicast over NVLink


def nccl():
    """CuPy's module for NCCL, with which GPUs exchange arrays; None if there is none."""
    return runtime.named("gpu").nccl() if runtime.ENGINE == "gpu" else None


class GpuGroup:
    """GPUs of one machine or of several. key: the same for all members, from `new_key` of any process that goes on.

    Its communicator is freed with its process alone. `destroy` waits for all members, and so would Python when it
    deletes the communicator, at the latest at the end of the process; `abort` waits for them, too.
    """

    @staticmethod
    def new_key():
        return nccl().get_unique_id()

    def __init__(self, key, rank, size):
        self.rank, self.size = rank, size
        self.sent_bytes = 0  # from this member to others, in one count
        self._failed = False
        os.environ |= SETTINGS
        self._nccl = nccl()
        self._communicator = self._nccl.NcclCommunicator(size, key, rank)  # waits for all members
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._communicator))  # so that Python never deletes it
        self._types = {np.dtype(np.int32): self._nccl.NCCL_INT32, np.dtype(np.int64): self._nccl.NCCL_INT64}

    def __enter__(self):
        if self._failed:
            raise RuntimeError("the members of a group that has failed may be at different operations")
        self.sent_bytes = 0
        return self

    def __exit__(self, kind, *error):
        self._failed = kind is not None

    def sum(self, array):
        self._sum(array)
        self.sent_bytes += 2 * array.nbytes * (self.size - 1) // self.size  # around a ring: first sums, then results
        return array

    def exchange(self, pieces):
        sizes = np.zeros(self.size**2, np.int64)
        sizes[self.rank * self.size :][: self.size] = [piece.size for piece in pieces]
        sizes = runtime.to_host(self.sum(runtime.to_device(sizes))).reshape(self.size, self.size)[:, self.rank].tolist()
        received = runtime.device_array(sum(sizes), pieces[0].dtype)
        ends = np.cumsum(sizes).tolist()
        self._exchange(pieces, [received[end - size : end] for size, end in zip(sizes, ends, strict=True)])
        self.sent_bytes += sum(piece.nbytes for k, piece in enumerate(pieces) if k != self.rank)
        return received, sizes

    def gather(self, array):
        return self.exchange([array] * self.size)

    def _sum(self, array):
        at, kind = array.data.ptr, self._types[array.dtype]
        self._communicator.allReduce(at, at, array.size, kind, self._nccl.NCCL_SUM, STREAM)

    def _exchange(self, pieces, places):
        places[self.rank][:] = pieces[self.rank]
        self._nccl.groupStart()
        for other, (piece, place) in enumerate(zip(pieces, places, strict=True)):
            if other != self.rank:
                self._transfer(self._communicator.send, piece, other)
                self._transfer(self._communicator.recv, place, other)
        self._nccl.groupEnd()

    def _transfer(self, function, array, other):
        if array.size:
            function(array.data.ptr, array.nbytes, self._nccl.NCCL_UINT8, other, STREAM)
