"""What the lanes of one launch did: columns of steps, of the requests in them, and of the accesses in each request.

What a request costs follows from its addresses, by rules that agree exactly with a GPU's own counters
(`benchmarks/trace.py`, the stage "pattern"):

    sectors       Global memory is read and written in sectors of 32 bytes: as many as the lanes touch, each once. An
                  atomic request touches a sector once more for each lane that comes second to the same address in it.
    wavefronts    Shared memory has 32 banks of 4 bytes. A request takes as many wavefronts as it accesses words of one
                  bank, and at least one. In an atomic request every lane counts, also if two access the same word.
                  Elements of 8 bytes are served to half a warp at a time, unless they are read, and neighbouring lanes
                  read the same ones in pairs (0 and 1, or 0 and 2, and so on).
    conflicts     wavefronts beyond the first, of each part of the warp that is served.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcgpu.arrays import BLOCK, bincount, blocks, repeat
from tcgpu.engines.simulator import WARP

SECTOR = 32  # bytes
BANKS, BANK_BYTES = 32, 4
MAX_WARPS = 1024 // WARP  # of a block
MEMORY_SHIFT = 44  # an address is the number of a memory, shifted left by this, plus a byte offset
SHARED = 0  # the number of shared memory; arrays in global memory are numbered from 1 on


@dataclass(frozen=True, eq=False)
class Events:
    """The events of a launch, by block, warp and order."""

    threads: int  # of a block
    memories: list[str]  # their names, by number
    sites: dict  # number -> Site
    signed: set  # numbers of the sites whose index is a signed integer: it may count from the end
    kept: int  # loads that needed no request, because a register had the value
    # one row per step
    block: np.ndarray
    warp: np.ndarray
    step_site: np.ndarray
    mask: np.ndarray  # the lanes that took part, as bits
    in_flight: np.ndarray  # whether it waits for what it loads together with the step before it: see `Site`
    # one row per request
    step: np.ndarray  # the number of its step
    site: np.ndarray
    size: np.ndarray  # bytes of an element
    lanes: np.ndarray  # how many lanes take part
    # one row per access: those of the first request, then those of the second one
    lane: np.ndarray
    address: np.ndarray

    @cached_property
    def active(self):
        """How many lanes took part in each step."""
        return np.bitwise_count(self.mask).astype(np.int64)

    @cached_property
    def request(self):
        return repeat(np.arange(self.lanes.size, dtype=np.int32), self.lanes)

    @cached_property
    def first(self):
        """Where the accesses of each request begin, and where those of the last one end."""
        return np.concatenate([[0], np.cumsum(self.lanes, dtype=np.int64)])

    @cached_property
    def shared(self):
        """Whether each request is for shared memory."""
        return self.address[self.first[:-1]] >> MEMORY_SHIFT == SHARED

    @cached_property
    def atomic(self):
        """Whether each request is atomic, in either memory."""
        return self.is_kind("atomic")

    def by_blocks(self):
        """Yield neighbouring requests and their accesses, as slices, for which arrays need little memory."""
        for block in blocks(self.lanes.size, BLOCK // WARP):
            yield block, slice(self.first[block.start], self.first[block.stop])

    def of_kind(self, kind, shared=False):
        """Which requests are of this kind, "load", "store" or "atomic", for global or for shared memory."""
        return self.is_kind(kind) & (self.shared == shared)

    def is_kind(self, kind):
        """Which requests are of this kind, in either memory."""
        return self.of_sites(self.site, lambda site: site.kind == kind, bool)

    def of_sites(self, numbers, what, dtype=int):
        """`what(site)` for the Site of each of these numbers, as an array."""
        numbers, position = np.unique(numbers, return_inverse=True)
        return np.array([what(self.sites[number]) for number in numbers.tolist()], dtype)[position]

    @cached_property
    def sectors(self):
        """How many sectors each request touches; an atomic one as often as lanes meet on one of its addresses."""
        found = np.zeros(self.lanes.size, np.int64)
        for _, part in self.by_blocks():
            request, address, lanes = distinct_pairs(self.request[part], self.address[part])
            atomic = np.where(self.atomic[request], lanes, 1)
            request, _, most = reduce_pairs(np.maximum, request, address // SECTOR, atomic)
            np.add.at(found, request, most)
        return found

    @cached_property
    def meeting(self):
        """How many lanes of each atomic request come second to their address."""
        request, _, _ = distinct_pairs(self.request, self.address)
        return np.where(self.atomic, self.lanes - bincount(request, minlength=self.lanes.size), 0)

    @property
    def wavefronts(self):
        """How many wavefronts each request for shared memory takes; 0 for global memory."""
        return self._wavefronts_and_parts[0]

    @property
    def conflicts(self):
        """How many wavefronts of each request are due to bank conflicts."""
        wavefronts, parts = self._wavefronts_and_parts
        return wavefronts - parts

    @cached_property
    def _wavefronts_and_parts(self):
        return self.wavefronts_and_parts(self.shared)

    def wavefronts_and_parts(self, of):
        """Wavefronts of the requests of this mask, and in how many parts of a warp each is served; 0 for the others."""
        found, loads = np.zeros((2, self.lanes.size), np.int64), self.is_kind("load")
        for block, part in self.by_blocks():
            chosen = block.start + np.flatnonzero(of[block])
            number = np.cumsum(of[block]) - 1  # among these
            access = of[self.request[part]]
            request, lane = number[self.request[part][access] - block.start], self.lane[part][access].astype(np.int64)
            address = self.address[part][access]
            wide = (self.size[chosen] > BANK_BYTES)[request]
            in_pairs = agree(request, address, lane, chosen.size, 1) | agree(request, address, lane, chosen.size, 2)
            split = ~(in_pairs & loads[chosen])
            of_part = 2 * request + np.where(wide & split[request], lane // (WARP // 2), 0)
            words = np.concatenate([address, address[wide] + BANK_BYTES]) // BANK_BYTES
            of_part, words, lanes = distinct_pairs(np.concatenate([of_part, of_part[wide]]), words)
            lanes = np.where(self.atomic[chosen][of_part // 2], lanes, 1)
            of_part, _, of_bank = reduce_pairs(np.add, of_part, words % BANKS, lanes)
            parts = np.zeros((chosen.size, 2), np.int64)
            np.maximum.at(parts.reshape(-1), of_part, of_bank)
            found[:, chosen] = parts.sum(axis=1), (parts > 0).sum(axis=1)
        return found


def warps_of(events):
    """A number for the warp of each step, over all blocks."""
    return events.block.astype(np.int64) * MAX_WARPS + events.warp


def agree(request, address, lane, requests, bit):
    """Whether in each request the lanes whose numbers differ in this bit access one address, if both access any."""
    accessed = np.full((requests * WARP, 2), -1)
    pair, upper = request * WARP + (lane & ~bit), (lane & bit > 0).astype(int)
    accessed[pair, upper] = address
    same = (accessed[:, 0] == accessed[:, 1]) | (accessed < 0).any(axis=1)
    return same.reshape(requests, WARP).all(axis=1)


def distinct_pairs(one, two):
    """The different pairs of two arrays, sorted, and how often each occurs."""
    return reduce_pairs(np.add, one, two, np.ones(one.size, np.int64))


def reduce_pairs(ufunc, one, two, values):
    """The different pairs of two arrays, sorted, and what `ufunc` (add or maximum) makes of the values of each."""
    order = np.lexsort((two, one))
    one, two = one[order], two[order]
    begin = np.flatnonzero(np.diff(one, prepend=-1) | np.diff(two, prepend=-1))
    return one[begin], two[begin], ufunc.reduceat(values[order], begin) if begin.size else values
