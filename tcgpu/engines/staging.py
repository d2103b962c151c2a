"""Copies between large host arrays and a device, through pinned memory that several threads fill or empty.

The driver copies ordinary memory through a pinned buffer that a single thread fills: that is several times slower than
the link to the device. Here threads fill slots of pinned memory with the next pieces while the device copies others;
they may convert the data. Copies from the device work in the same way. This module imports no device library: an engine
that copies in this way is a `Staged`, whose own are its streams and its pinned arrays.
"""

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np

from tcgpu.cpu_costs import LARGE_COPY
from tcgpu.engines.native import threads
from tcgpu.progress import uninterrupted

SLOT_WORDS = 1 << 20  # the maximum int64 words of pinned memory in a slot
SLOTS = 8
PIECE_WORDS = 1 << 17  # the minimum piece, in words, when one load is spread over all slots
FILLERS = 8  # threads that fill or empty slots: with four, a fast link waits for them


class Ring:
    """Slots of pinned memory of equal size, a stream that copies, and threads that fill or empty the slots."""

    def __init__(self, stream, slots, fillers):
        self.stream, self.slots = stream, slots
        self.threads = ThreadPoolExecutor(min(fillers, len(slots), threads()), "tcgpu-feeder")

    def end(self):
        """Stop the threads."""
        self.threads.shutdown(cancel_futures=True)


class Load:
    """An array to be written on the device.

    memory: the device array; size: its elements; fill(first, piece) writes a pinned array that becomes the elements
    from number `first` on.
    """

    def __init__(self, memory, size, fill):
        self.memory, self.size, self.fill = memory, size, fill
        self.without_slot = 0  # pieces
        self.not_copied = 0  # pieces
        self.ready = None  # the event that the last piece is copied


class Feeder:
    """Copies Loads in the order requested, and fills all free slots of a Ring ahead.

    dtype: of the elements. spread: only one load is requested at a time, and its pieces use all slots. A ring has one
    feeder at a time.
    """

    def __init__(self, ring, dtype=np.int64, spread=False):
        self.ring, self.spread = ring, spread
        self.slots = [slot.view(dtype) for slot in ring.slots]
        self.copied = [None] * len(self.slots)  # the event after which a slot may be filled again
        self.pieces = deque()  # (load, first element, elements) without a slot
        self.filled = deque()  # (load, first element, slot number, elements, future of the filling)
        self.slots_taken = 0

    def request(self, load):
        size = _piece_size(load.size, self.slots) if self.spread else self.slots[0].size
        for first in range(0, load.size, size):
            self.pieces.append((load, first, min(size, load.size - first)))
            load.without_slot += 1
            load.not_copied += 1
        self._fill_ahead()
        return load

    def copy(self, load, after=None):
        """Enqueue the copies of this Load and all before it; returns the event that it is on the device.

        after: an event that must be done before its memory is overwritten.
        """
        if after is not None and load.not_copied:
            self.ring.stream.wait(after)
        while load.not_copied:
            self._fill_ahead(load)
            self._copy_next()
        return load.ready

    def _fill_ahead(self, load=None):
        """Start filling free slots. Waits for a slot only if `load` needs one and nothing else can be copied yet."""
        while self.pieces and len(self.filled) < len(self.slots):
            number = self.slots_taken % len(self.slots)
            copied = self.copied[number]
            if copied is not None and not copied.query():
                if load is None or not load.without_slot or (self.filled and _uninterrupted(self.filled[0][-1].done)):
                    return
                copied.synchronize()
            next_load, first, size = self.pieces.popleft()
            filling = _uninterrupted(self.ring.threads.submit, next_load.fill, first, self.slots[number][:size])
            self.filled.append((next_load, first, number, size, filling))
            next_load.without_slot -= 1
            self.slots_taken += 1

    def _copy_next(self):
        load, first, number, size, filling = self.filled.popleft()
        _uninterrupted(filling.result)
        self.ring.stream.copy_in(load.memory, first, self.slots[number][:size])
        load.ready = self.copied[number] = self.ring.stream.event()
        load.not_copied -= 1


def fetch(ring, array, take):
    """Call `take(first, piece)` with pinned copies of all pieces of a device array, from several threads in any order.

    Half of the slots are for copies in progress, the others for threads that read. Returns when all calls have.
    """
    slots, copying = [slot.view(array.dtype) for slot in ring.slots], deque()
    size, reading = _piece_size(array.size, slots), [None] * len(slots)

    def read_next():
        number, first, piece, copied = copying.popleft()
        copied.synchronize()
        reading[number] = _uninterrupted(ring.threads.submit, take, first, piece)

    for turn, first in enumerate(range(0, array.size, size)):
        if len(copying) >= max(1, len(slots) // 2):
            read_next()
        number = turn % len(slots)
        if reading[number] is not None:
            _uninterrupted(reading[number].result)
        piece = slots[number][: min(size, array.size - first)]
        ring.stream.copy_out(array, first, piece)
        copying.append((number, first, piece, ring.stream.event()))
    while copying:
        read_next()
    for future in filter(None, reading):
        _uninterrupted(future.result)


def _uninterrupted(function, *args):
    """Call a short function of an executor or a future."""
    with uninterrupted():
        return function(*args)


def _piece_size(size, slots):
    """Elements of each piece of an array of `size` elements that uses all slots."""
    return min(slots[0].size, max(8 * PIECE_WORDS // slots[0].itemsize, -(-size // len(slots))))


# ----------------------------------------------------------------------------------------------- the rings of an engine

kept = threading.local()  # `rings`: each thread keeps its own, as pinning the memory takes longer than filling it


def end_rings():
    """Free this thread's rings."""
    for ring in vars(kept).pop("rings", {}).values():
        ring.end()


def is_large(array):
    """Whether an array is copied through a ring."""
    plain = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and array.dtype.isnative
    return plain and array.nbytes >= LARGE_COPY


def read_piece(array, first, piece):
    piece[:] = array[first : first + piece.size]  # NumPy lets other threads run meanwhile


def write_piece(array, first, piece):
    array[first : first + piece.size] = piece


def write_halves(array, first, piece):
    np.right_shift(piece, 1, out=array[first : first + piece.size])


class Staged:
    """What an engine has that copies large host arrays through pinned memory."""

    def fill_from_host(self, array, fill):
        """See `runtime.fill_from_host`. The default stream and that of the ring wait for each other: kernels launched
        before are done when the first piece is copied."""
        if array.size:
            with self._ring_for(array) as ring:
                feeder = Feeder(ring, array.dtype, spread=True)
                feeder.copy(feeder.request(Load(array, array.size, fill))).synchronize()

    @contextmanager
    def kept_ring(self, words):
        """This thread's ring for its device; inside the `with` no other code uses it. It is kept for the next call.

        words: the minimum int64 words of a slot, up to SLOT_WORDS. A ring that is too small is replaced by one of the
        next power of 2. After an exception the ring is not kept.
        """
        rings = vars(kept).setdefault("rings", {})
        key = os.getpid(), self.this_device()  # a forked child lacks the ring's threads
        ring, words = rings.pop(key, None), min(1 << max(0, words - 1).bit_length(), SLOT_WORDS)
        if ring is not None and ring.slots[0].size < words:
            ring.end()
            ring = None
        if ring is None:
            slots = [self.pinned(words, np.int64) for _ in range(SLOTS)]
            ring = Ring(self.Stream(), slots, FILLERS)
        try:
            yield ring
        except BaseException:
            ring.end()
            self.synchronize()  # copies from its memory may be in progress
            raise
        rings[key] = ring

    def _ring_for(self, array):
        """This thread's ring, with slots for an array that uses all of them."""
        return self.kept_ring(max(PIECE_WORDS, array.nbytes // (8 * SLOTS)))

    def upload(self, array):
        """A new device array, copied from a host array through this thread's ring."""
        flat = array if array.ndim == 1 else np.ascontiguousarray(array).reshape(-1)
        uploaded = self.device_array(flat.size, flat.dtype)
        self.copy_from_host(flat, uploaded)
        return uploaded.reshape(array.shape)

    def download(self, array, halved=False):
        """A new host array, copied from a contiguous device array, or half of each of its whole numbers."""
        downloaded = np.empty(array.shape, array.dtype)
        write = write_halves if halved else write_piece
        self.copy_to_host(array.reshape(array.size), downloaded.reshape(-1), write)
        return downloaded

    def copy_from_host(self, source, array):
        self.fill_from_host(array, partial(read_piece, source))

    def copy_to_host(self, array, target, write=write_piece):
        if array.size:
            with self._ring_for(array) as ring:
                fetch(ring, array, partial(write, target))
