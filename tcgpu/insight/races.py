"""Which accesses to memory race: two of one element, by two threads, that nothing orders.

`Accesses.sharing` sorts out, in NumPy, the elements that several threads access and one of them writes, barrier by
barrier; of correct kernels few are left. `first_race` looks at those one by one.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.arrays import repeat
from tcgpu.insight.events import MEMORY_SHIFT

LOAD, STORE, ATOMIC = 0, 1, 2  # kinds of accesses


class Accesses(NamedTuple):
    """Columns: a row per access."""

    address: np.ndarray
    size: np.ndarray  # log2 of its bytes
    kind: np.ndarray
    changed: np.ndarray  # whether it changed the value
    value: np.ndarray  # a hash of what was written
    site: np.ndarray  # its number
    interval: np.ndarray

    def __getitem__(self, chosen):
        return Accesses(*(column[chosen] for column in tuple(self)))

    def in_units(self, smallest):
        """The same, with an access for each of the smallest elements that it covers, where a memory is accessed as
        elements of several sizes; smallest: number of such a memory -> log2 of bytes."""
        columns = self
        for memory, size in smallest.items():
            wide = (columns.address >> MEMORY_SHIFT == memory) & (columns.size > size)
            if wide.any():
                times = np.where(wide, 1 << np.maximum(columns.size - size, 0), 1)
                columns = Accesses(*(repeat(column, times) for column in tuple(columns)))
                number = np.arange(times.sum()) - repeat(np.cumsum(times) - times, times)  # of a part
                parts = np.where(repeat(wide, times), size, columns.size)
                columns = columns._replace(address=columns.address + (number << size), size=parts)
        return columns

    def sharing(self, key, who):
        """Those where several of `who` access what has one `key`, one of them writes and one is not atomic; sorted by
        key, else in the order that they have. who: of each interval. Also returns where each key begins."""
        order = np.argsort(key, kind="stable")
        key, who, kind = key[order], who[self.interval[order]], self.kind[order]
        first = np.flatnonzero(np.diff(key, prepend=key[:1] - 1)) if key.size else np.zeros(0, np.int64)
        if first.size == 0:
            return self[order], first
        shared = np.minimum.reduceat(who, first) != np.maximum.reduceat(who, first)
        shared &= (np.maximum.reduceat(kind, first) > LOAD) & (np.minimum.reduceat(kind, first) < ATOMIC)
        chosen = repeat(shared, np.diff(first, append=key.size))
        sizes = np.diff(first, append=key.size)[shared]
        return self[order[chosen]], np.cumsum(sizes) - sizes

    def distinct(self):
        """The first of those that are alike in address, kind and value."""
        order = np.lexsort((self.value, self.changed, self.kind, self.address))
        columns = self[order]
        new = np.zeros(order.size, bool)
        new[:1] = True
        for column in (columns.address, columns.kind, columns.changed, columns.value):
            new[1:] |= column[1:] != column[:-1]
        return columns[new]


def conflict(one, two):
    """Whether the order of two accesses to one element makes a difference; each is (kind, changed, value)."""
    if one[0] == LOAD or two[0] == LOAD:
        return one[1] or two[1]
    if one[0] == ATOMIC and two[0] == ATOMIC:
        return False
    return one[2] != two[2]


class Interval(NamedTuple):
    """What a thread does between two barriers, fences or messages; see `shadow_memory.CheckedBlock`."""

    thread: object
    clock: int
    phase: int  # of the block
    of_warp: int  # the phase of the warp
    knows: dict  # what it knows to be done: number of a block -> a phase; (number of a block, of a thread) -> its last


def unordered(one, two):
    """Whether nothing makes a thread wait between an access in the first of two intervals, and one in the second."""
    return one.thread is not two.thread and not is_known(one, two)


def merged(many):
    """What several threads know together: of each block and thread the latest."""
    many = list({id(known): known for known in many if known}.values())
    if len(many) == 1:
        return many[0]
    found = {}
    for known in many:
        for who, when in known.items():
            found[who] = max(found.get(who, when), when)
    return found


def is_known(one, two):
    """Whether in the second of two intervals it is known that the first one is over."""
    block = one.thread.block_number
    last = two.knows.get((block, one.thread.number), (-1, -1))
    return two.knows.get(block, 0) > one.phase or last >= (one.phase, one.clock)


def first_race(rows, are_unordered):
    """The first two of the rows that race; None if there is no race. The rows are in the order in which they ran."""
    loads, writes = {}, {}  # (interval, kind, changed, value) -> row
    for row in rows:
        _, _, kind, changed, value, _, interval = row
        for before in (writes,) if kind == LOAD else (writes, loads):
            for (other, *access), other_row in before.items():
                if other != interval and conflict(access, (kind, changed, value)) and are_unordered(other, interval):
                    return other_row, row
        before = loads if kind == LOAD else writes
        before.setdefault((interval, kind, changed, value), row)
    return None
