"""Host memory on its way to a device: threads fill pinned slots with the next pieces while the device copies others.

A device copies from ordinary memory by way of pinned memory of the driver's, which one thread fills: that takes several
times as long as the link to the device does. What a slot is filled with need not be memory as it lies: whatever writes
a piece of it may do. The way back is the same, the other way round. This module knows no device: it is given pinned
arrays and a stream (see `runtime.kept_ring`).
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tcgpu.engines.native import threads

SLOT_WORDS = 1 << 20  # int64 words of pinned memory in each of a ring's slots, at most
SLOTS = 8
PIECE_WORDS = 1 << 17  # a load that is alone is spread over all slots, but in no smaller pieces than of so many words
FILLERS = 4  # threads that fill them


class Load:
    """Something that is on its way into memory on the device, in pieces; sizes and places are counted in elements."""

    def __init__(self, memory, size, fill, after=lambda: None):
        self.memory, self.size = memory, size
        self.fill = fill  # (first element, pinned elements): writes these
        self.after = after  # tells the event from which on the memory may be written to, or None
        self.in_line = 0  # pieces that no slot has yet
        self.left = 0  # pieces that have not been copied
        self.ready = None  # the event that all of it is there, once its last piece is under way


class Ring:
    """Slots of pinned memory, all of a size, a stream that copies from them, and threads that fill them."""

    def __init__(self, stream, slots, fillers):
        self.stream, self.slots = stream, slots
        self.threads = ThreadPoolExecutor(min(fillers, len(slots), threads()), "tcgpu-feeder")

    @property
    def nbytes(self):
        return sum(slot.nbytes for slot in self.slots)

    def end(self):
        """No slot is filled any more, and the threads are gone."""
        self.threads.shutdown(cancel_futures=True)


class Feeder:
    """Loads that go through a Ring in the order asked for, its slots filled as far ahead as there are any.

    dtype: of the elements. timed: keep the events around each copy in `copies`. spread: a load is alone, so that many
    small pieces are there sooner than a few large ones. A ring has one feeder at a time.
    """

    def __init__(self, ring, dtype=np.int64, timed=False, spread=False):
        self.ring, self.timed, self.spread, self.copies = ring, timed, spread, []
        self.slots = [slot.view(dtype) for slot in ring.slots]
        self.copied = [None] * len(self.slots)  # the event that what is in a slot has been copied
        self.pieces = deque()  # (load, first element, elements) that no slot has yet
        self.filled = deque()  # (load, first element, slot's number, elements, when they are filled)
        self.taken = 0

    def ask(self, load):
        """Put a Load in line; returns it."""
        size = _spread(load.size, self.slots) if self.spread else self.slots[0].size
        for at in range(0, load.size, size):
            self.pieces.append((load, at, min(size, load.size - at)))
            load.in_line += 1
            load.left += 1
        self._fill_ahead()
        return load

    def bring(self, load):
        """Have everything up to this Load copied; returns the event that it is there."""
        while load.left:
            self._fill_ahead(load)
            self._copy_next()
        return load.ready

    def _fill_ahead(self, load=None):
        """Have slots filled that are free; where a Load lacks slots and there is nothing to copy yet, wait for them."""
        while self.pieces and len(self.filled) < len(self.slots):
            number = self.taken % len(self.slots)
            copied = self.copied[number]
            if copied is not None and not copied.query():
                if load is None or not load.in_line or (self.filled and self.filled[0][-1].done()):
                    return
                copied.synchronize()
            self._fill(number)

    def _fill(self, number):
        load, at, size = self.pieces.popleft()
        filling = self.ring.threads.submit(load.fill, at, self.slots[number][:size])
        self.filled.append((load, at, number, size, filling))
        load.in_line -= 1
        self.taken += 1

    def _copy_next(self):
        load, at, number, size, filling = self.filled.popleft()
        filling.result()
        stream, after = self.ring.stream, load.after() if at == 0 else None
        if after is not None:
            stream.wait(after)
        begin = stream.event(timing=True) if self.timed else None
        stream.copy_in(load.memory, at, self.slots[number][:size])
        load.ready = self.copied[number] = stream.event(self.timed)
        if self.timed:
            self.copies.append((begin, load.ready))
        load.left -= 1


def drain(ring, array, take):
    """Have `take(first, pinned elements)` see all of a device array, piece by piece: several threads, in any order.

    At return all has been seen. Half of the slots are for copies that are under way, the others for threads.
    """
    slots, flying = [slot.view(array.dtype) for slot in ring.slots], deque()
    size, taking = _spread(array.size, slots), [None] * len(slots)

    def land():
        number, first, piece, copied = flying.popleft()
        copied.synchronize()
        taking[number] = ring.threads.submit(take, first, piece)

    for turn, first in enumerate(range(0, array.size, size)):
        if len(flying) >= max(1, len(slots) // 2):
            land()
        number = turn % len(slots)
        if taking[number] is not None:
            taking[number].result()
        piece = slots[number][: min(size, array.size - first)]
        ring.stream.copy_out(array, first, piece)
        flying.append((number, first, piece, ring.stream.event()))
    while flying:
        land()
    for taken in filter(None, taking):
        taken.result()


def _spread(size, slots):
    """How large the pieces are of something of `size` elements that has all slots for itself."""
    return min(slots[0].size, max(8 * PIECE_WORDS // slots[0].itemsize, -(-size // len(slots))))
