"""What the lanes of one launch did, as columns: steps, the requests in them, the accesses that a request is made of.

What a request costs follows from its addresses, by rules that hold to the last digit where a GPU counts the same
(`benchmarks/trace.py`, the stage "pattern"):

    sectors       global memory is read and written in sectors of 32 bytes: as many as the lanes touch, each once. An
                  atomic request touches a sector once more for each lane that comes second to the same address there
    wavefronts    shared memory has 32 banks of 4 bytes, and takes one round for a request that wants no more than one
                  word of each bank; else as many as it wants words of one bank. Of an atomic request each lane counts,
                  also where two want the same word. Elements of 8 bytes are served to half a warp at a time, unless
                  they are read, and neighbouring lanes want the same ones by twos (0 and 1, or 0 and 2, and so on)
    conflicts     wavefronts beyond the first, of each part of the warp that is served
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tcgpu.engines.simulator import WARP
from tcgpu.tracing.recorder import PLACE_BITS, SHARED, Request
from tcgpu.tracing.rewriting import SITES

SECTOR = 32
BANKS, BANK_BYTES = 32, 4
KINDS = ("load", "store", "atomic")


class Columns:
    """Lists of arrays that become one array each."""

    def __init__(self, **types):
        self._types = types
        self._parts = {name: [] for name in types}

    def append(self, **values):
        for name, value in values.items():
            self._parts[name].append(np.asarray(value, self._types[name]))

    def joined(self):
        empty = {name: [np.empty(0, kind)] for name, kind in self._types.items()}
        return {name: np.concatenate(parts or empty[name]) for name, parts in self._parts.items()}


class Collector:
    """Takes the blocks of a launch as they return, and makes Events of them all."""

    def __init__(self):
        self._steps = Columns(block=np.int32, warp=np.int16, step_site=np.int32, mask=np.uint32)
        self._requests = Columns(step=np.int64, site=np.int32, size=np.uint8, lanes=np.uint8)
        self._accesses = Columns(lane=np.uint8, address=np.int64)
        self._many, self.kept = 0, 0

    def __call__(self, block):
        for number, warp in enumerate(block.warps):
            steps, requests = [], []  # (site, Step), and (number of the step, site, Request)
            _walk(warp.done, None, self._many, steps, requests)
            self._many += len(steps)
            self.kept += warp.kept
            self._steps.append(
                block=np.full(len(steps), block.number),
                warp=np.full(len(steps), number),
                step_site=[site for site, _ in steps],
                mask=[step.lanes for _, step in steps],
            )
            self._requests.append(
                step=[step for step, *_ in requests],
                site=[site for _, site, _ in requests],
                size=[request.size for *_, request in requests],
                lanes=[len(request.lanes) for *_, request in requests],
            )
            self._accesses.append(
                lane=[lane for *_, request in requests for lane in request.lanes],
                address=[address for *_, request in requests for address in request.addresses],
            )

    def events(self, threads, memories):
        columns = self._steps.joined() | self._requests.joined() | self._accesses.joined()
        numbers = np.unique(np.concatenate([columns["step_site"], columns["site"]]))
        sites = {number: SITES[number] for number in numbers.tolist()}
        return Events(threads=threads, memories=memories, sites=sites, kept=self.kept, **columns)


def _walk(place, step, before, steps, requests):
    """List the steps and requests inside a place, which is in this step, in the order in which they are done.

    before: how many steps are listed already, elsewhere.
    """
    for number in sorted(place):
        inner = place[number]
        if type(inner) is Request:
            requests.append((step, number, inner))
        elif inner.lanes:
            steps.append((number, inner))
            _walk(inner, before + len(steps) - 1, before, steps, requests)
        else:
            _walk(inner, step, before, steps, requests)


@dataclass(frozen=True, eq=False)
class Events:
    """The events of a launch, by block, warp and order."""

    threads: int  # of a block
    memories: list[str]
    sites: dict  # number -> Site
    kept: int  # loads that a register spared
    # a row a step
    block: np.ndarray
    warp: np.ndarray
    step_site: np.ndarray
    mask: np.ndarray  # the lanes that took part, as bits
    # a row a request
    step: np.ndarray  # which step it belongs to
    site: np.ndarray
    size: np.ndarray  # bytes of an element
    lanes: np.ndarray  # how many lanes take part
    # a row an access: those of the first request, then those of the second one
    lane: np.ndarray
    address: np.ndarray

    @cached_property
    def active(self):
        """How many lanes took part in each step."""
        return np.bitwise_count(self.mask).astype(np.int64)

    @cached_property
    def request(self):
        """Which request each access belongs to."""
        return np.repeat(np.arange(self.lanes.size), self.lanes)

    @cached_property
    def first(self):
        """Where the accesses of each request begin, and where those of the last one end."""
        return np.concatenate([[0], np.cumsum(self.lanes, dtype=np.int64)])

    @cached_property
    def shared(self):
        """Whether each request is for shared memory."""
        return self.address[self.first[:-1]] >> PLACE_BITS == SHARED

    def of_kind(self, kind, shared=False):
        """Which requests are loads, stores or atomic operations, in global or in shared memory."""
        return self._kind_is(kind) & (self.shared == shared)

    def _kind_is(self, kind):
        numbers, place = np.unique(self.site, return_inverse=True)
        return np.array([self.sites[number].kind == kind for number in numbers.tolist()], bool)[place]

    @cached_property
    def sectors(self):
        """How many sectors each request touches; an atomic one as often as lanes meet on one of its addresses."""
        request, address, lanes = distinct(self.request, self.address)
        atomic = np.where(self.atomic[request], lanes, 1)
        request, _, deepest = _reduced(np.maximum, request, address // SECTOR, atomic)
        return np.bincount(request, deepest, self.lanes.size).astype(np.int64)

    @cached_property
    def atomic(self):
        return self._kind_is("atomic")

    @cached_property
    def meeting(self):
        """How many lanes of each atomic request come second to their address."""
        request, _, _ = distinct(self.request, self.address)
        return np.where(self.atomic, self.lanes - np.bincount(request, minlength=self.lanes.size), 0)

    @property
    def wavefronts(self):
        """How many rounds shared memory takes for each request, if it is one for shared memory."""
        return self._rounds[0]

    @property
    def conflicts(self):
        """How many of these rounds addresses without a conflict would have spared."""
        return self._rounds[0] - self._rounds[1]

    @cached_property
    def _rounds(self):
        """Wavefronts of each request for shared memory, and how many parts it is served in."""
        of = np.flatnonzero(self.shared)
        place = np.cumsum(self.shared) - 1  # among those for shared memory
        chosen = self.shared[self.request]
        request, lane = place[self.request[chosen]], self.lane[chosen].astype(np.int64)
        address = self.address[chosen]
        wide = (self.size[of] > BANK_BYTES)[request]
        pairs = _agree(request, address, lane, of.size, 1) | _agree(request, address, lane, of.size, 2)
        split = ~(pairs & self._kind_is("load")[of])
        part = 2 * request + np.where(wide & split[request], lane // (WARP // 2), 0)
        words = np.concatenate([address, address[wide] + BANK_BYTES]) // BANK_BYTES
        part, words, lanes = distinct(np.concatenate([part, part[wide]]), words)
        atomic = self.atomic[of][part // 2]
        part, _, deep = _reduced(np.add, part, words % BANKS, np.where(atomic, lanes, 1))
        parts = np.zeros((of.size, 2), np.int64)
        np.maximum.at(parts.reshape(-1), part, deep)
        found = np.zeros((2, self.lanes.size), np.int64)
        found[:, of] = parts.sum(axis=1), (parts > 0).sum(axis=1)
        return found


def _agree(request, address, lane, many, bit):
    """Whether in each request the lanes whose numbers differ in this bit want the same, or one of the two nothing."""
    asked = np.full((many * WARP, 2), -1)
    pair, upper = request * WARP + (lane & ~bit), (lane & bit > 0).astype(int)
    asked[pair, upper] = address
    same = (asked[:, 0] == asked[:, 1]) | (asked < 0).any(axis=1)
    return same.reshape(many, WARP).all(axis=1)


def distinct(one, two):
    """The different pairs of two arrays, sorted, and how often each occurs."""
    return _reduced(np.add, one, two, np.ones(one.size, np.int64))


def _reduced(how, one, two, values):
    """The different pairs of two arrays, sorted, and the sum, or the maximum, of each one's values."""
    order = np.lexsort((two, one))
    one, two = one[order], two[order]
    new = np.ones(one.size, bool)
    new[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    begin = np.flatnonzero(new)
    return one[begin], two[begin], how.reduceat(values[order], begin) if begin.size else values
