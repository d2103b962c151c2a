"""Where the sectors that a sample reads are found: in the L1 cache, in the L2 cache, or in memory.

A cache keeps what was read last. A sector that a unit reads again is found if what the units on the same multiprocessor
touch in between fits into the cache: all of them are taken to touch as many lines as this one. A line has a place in
the L1 cache for each of its sectors, however few of them are read. A sector that a unit reads for the first time is
found if another unit has brought it, of those whose sectors fit. How likely that is follows from how many of the
sampled units touch it. Where rounds of loops were left out, or a unit was cut, others would read fewer new sectors than
those that were traced: their number grows as a power of the time, by Heaps' law.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.arrays import bincount, repeat
from tcgpu.gpu_costs import L1_USED
from tcgpu.insight.events import MEMORY_SHIFT, SECTOR, distinct_pairs, warps_of
from tcgpu.insight.sampling import BESIDE, GROUP

ARRAY_SHIFT = MEMORY_SHIFT - SECTOR.bit_length() + 1  # of the number of a sector: its array

LINE = 4  # sectors of a line
LINES = 4  # that the L1 cache finds in a cycle


class Sectors(NamedTuple):
    """The sectors of requests for global memory, a row for each sector of a request, by block and time."""

    request: np.ndarray
    block: np.ndarray
    first: np.ndarray  # whether the block touches the sector for the first time
    new: np.ndarray  # of a sector that is touched first: how likely it is that no round that was left out has done so
    fresh: np.ndarray  # how many sectors are touched first, by what the row stands for
    between: np.ndarray  # how many lines it has touched since the last time, otherwise
    popularity: np.ndarray  # of a sector that is touched first: the share of the other units that touch it
    written: np.ndarray  # whether the kernel writes to the sector
    beside: np.ndarray  # whether the block also touches the other sector of the same 64 bytes
    private: float  # the share of a warp's sectors that no other warp of its group touches


def sectors_of(sample):
    """The Sectors of a sample. Each block's are found alone, which takes less memory."""
    events = sample.events
    begins = np.flatnonzero(np.diff(events.block, prepend=-1))
    ends = np.append(begins[1:], events.block.size)
    order = np.argsort(events.block[begins])
    found = [_of_block(sample, *span) for span in zip(begins[order], ends[order], strict=True)]
    found = found or [_of_block(sample, 0, 0)]  # an empty kernel has no events
    request, sector, first, new, between = (np.concatenate(of_blocks) for of_blocks in zip(*found, strict=True))
    del found
    step = events.step[request]
    block, weight = events.block[step], sample.weight[step]
    fresh = (first * new * weight).astype(np.float32)
    popularity = (other_blocks(sector, block, weight, first, fresh) / max(1, sample.chosen.size - 1)).astype(np.float32)
    written = np.isin(sector, sector[~events.of_kind("load")[request]])
    private, group = 1.0, np.flatnonzero(block >= sample.chosen.size + BESIDE)
    if sample.groups and group.size:
        alone = distinct_pairs(warps_of(events)[step[group]], sector[group])[0].size
        private = distinct_pairs(block[group], sector[group])[0].size / alone
    return Sectors(request, block, first, new, fresh, between, popularity, written, beside(sector, block), private)


def _of_block(sample, begin, end):
    """Request, sector, first, new and between: of the block whose steps are `begin` to `end` - 1."""
    events, steps = sample.events, np.arange(begin, end)
    warp = events.warp[begin:end]
    begins = np.flatnonzero(np.diff(warp, prepend=-1))
    time = steps - repeat(steps[begins], np.diff(begins, append=warp.size))  # steps of the warp so far
    low, high = np.searchsorted(events.step, [begin, end])
    request = repeat(np.arange(low, high, dtype=np.int32), events.lanes[low:high])
    in_global = ~events.shared[request]
    sector = events.address[events.first[low] : events.first[high]][in_global] // SECTOR
    request, sector, _ = distinct_pairs(request[in_global], sector)
    step = events.step[request] - begin
    order = np.lexsort((request, warp[step], time[step]))
    request, sector, step = request[order], sector[order], step[order] + begin

    weight = sample.weight[step]
    since = since_last(sector)
    first = since == 0
    new = share_of_new(sector, sample.group[step], weight, first, sample.sizes)
    touched = touched_in(since_last(sector // LINE), weight)
    return request, sector, first, new.astype(np.float32), touched[since].astype(np.float32)


def since_last(numbers):
    """For each row, how many rows ago the same number was there; 0 if never."""
    order = np.argsort(numbers, kind="stable")
    places = 1 + np.flatnonzero(np.diff(numbers[order]) == 0)
    since = np.zeros(numbers.size, np.int32)
    since[order[places]] = order[places] - order[places - 1]
    return since


def touched_in(since, weight):
    """How many different numbers are in 0, 1, ... rows that follow each other, on average.

    Another row has another number if that was not in the rows before: as often as its last time is longer ago.
    """
    ago = np.where(since == 0, since.size, since)
    longer = 1 - np.cumsum(bincount(ago, weight, since.size + 1)) / max(1e-9, weight.sum())
    return np.append(0, np.cumsum(longer[:-1]))


def beside(sector, block):
    """For each row of Sectors whether the block also touches the other sector of the same 64 bytes."""
    row = block.astype(np.int64) << 44 | sector
    return np.isin(row ^ 1, row)


def other_blocks(sector, block, weight, first, fresh):
    """For each row of Sectors that is a first touch, how many other blocks touch the sector.

    Of a block of which rounds were left out, the sector may be found in few of its rows although it touches it: then
    neighbouring sectors are taken together, as many as a row stands for on average.
    """
    found, rows = np.zeros(sector.size), np.flatnonzero(first)
    if not rows.size:
        return found
    sector, block, fresh = sector[rows], block[rows], fresh[rows]
    _, which = np.unique(sector >> ARRAY_SHIFT, return_inverse=True)
    shift = np.ceil(np.log2(bincount(which, weight[rows]) / bincount(which))).astype(np.int8)[which]
    _, region = np.unique(sector >> shift << shift, return_inverse=True)
    _, own = np.unique(region * (1 + int(block.max())) + block, return_inverse=True)
    found[rows] = (bincount(region, fresh)[region] - bincount(own, fresh)[own]) / (1 << shift.astype(int))
    return found


def share_of_new(sector, group, weight, first, sizes):
    """For each row of a block, how many of the first touches of sectors that it stands for are first ones, as a share.

    If n of all N visits were traced, and found d different sectors, of which s were visited once: then all visits find
    about d * (N / n)^(s / d), by Heaps' law, and not more than an array has. A burst of rounds is a visit.
    """
    found = np.ones(sector.size)
    if not (weight > 1).any():
        return found
    order = np.lexsort((group, sector))
    visits = order[np.flatnonzero(np.diff(sector[order], prepend=-1) | np.diff(group[order], prepend=-1))]
    begins = np.flatnonzero(np.diff(sector[visits], prepend=-1))
    counts = np.diff(begins, append=visits.size)
    arrays, which = np.unique(sector >> ARRAY_SHIFT, return_inverse=True)
    n, all_visits = bincount(which[visits]), bincount(which[visits], weight[visits])
    of_sectors = which[visits[begins]]
    different, once = bincount(of_sectors), bincount(of_sectors, counts == 1)
    size = np.array([sizes.get(number, np.inf) / SECTOR for number in arrays.tolist()])
    expected = np.minimum(different * (all_visits / n) ** (once / different), np.maximum(size, different))
    return np.minimum(1, expected / bincount(which, first * weight))[which]


def wavefronts_of(events):
    """How many wavefronts each request takes, in shared memory or in the L1 cache.

    Both are the same memory and have the same banks. Of lines, the L1 cache finds four in a cycle: so the threads of a
    warp that read one word each take a wavefront if these are neighbours, 8 if each is on a line of its own, and 32 if
    all are at the same place of their lines, as the first rows of columns with 32 rows each are.
    """
    lines = np.zeros(events.lanes.size, np.int64)
    for _, part in events.by_blocks():
        request, _, _ = distinct_pairs(events.request[part], events.address[part] // (LINE * SECTOR))
        np.add.at(lines, request, 1)
    of_banks, _ = events.wavefronts_and_parts(np.ones(events.lanes.size, bool))
    return np.where(events.shared, of_banks, np.maximum(of_banks, lines / LINES))


class Found(NamedTuple):
    """The probability for each row of Sectors that the sector is found in a cache."""

    l1: np.ndarray
    l1_in_time: np.ndarray  # the same, but without what another warp of the block waits for at the same time
    l2: np.ndarray  # if not in L1


def found_in(sectors, sample, gpu, resident, in_shared, touched_bytes, running=1.0, rounds=1):
    """Where the sectors are found, if a multiprocessor has room for `resident` blocks.

    in_shared: bytes of a multiprocessor's fast memory that are not L1 cache but shared memory.
    touched_bytes: of memory that the launch touches; what a launch before it has left in L2 is found there.
    running: the share of these blocks' warps that run: those beside a task that outlasts the others have ended.
    rounds: tasks that a block takes one after the other. In the first one its warps read what they have in common at
    the same time, and all wait; no barrier keeps them together later, and the one that comes first waits for all.
    """
    l1_sectors = L1_USED * (gpu.l1_bytes - in_shared) / SECTOR
    l2_bytes = gpu.generation.l2_used * gpu.l2_bytes
    warps = sample.warps
    private = max(1 / warps, sectors.private ** float(np.log(warps) / np.log(GROUP))) if warps > 1 else 1.0
    of_units = sectors.block < sample.chosen.size
    a_unit = max(1.0, np.average(
        bincount(sectors.block[of_units], sectors.fresh[of_units], sample.chosen.size), weights=1 / sample.expected
    ))  # fmt: skip
    together = running * resident * warps * private  # warps of a multiprocessor, as if each had its own lines
    again = sectors.between * max(1.0, together) < l1_sectors / LINE
    again_in_l2 = sectors.between * max(1.0, together * gpu.sms) < l2_bytes / SECTOR / gpu.generation.l2_line
    stays_new = share_of_first(sectors, sample)[sectors.block] * sectors.new
    from_others = 1 - stays_new * np.exp(-sectors.popularity * l1_sectors / a_unit)
    l1, in_time = (
        np.where(sectors.first, 1 - (1 - from_others) * alone, again)
        for alone in (private, private + (1 - private) / rounds)
    )
    left = left_by_last_launch(touched_bytes / l2_bytes)
    popular = 1 - np.exp(-sectors.popularity * l2_bytes / SECTOR / a_unit)
    l2 = np.where(sectors.written, 1.0, np.maximum(left, np.where(sectors.first, popular, again_in_l2)))
    return Found(l1, in_time, l2)


def share_of_first(sectors, sample):
    """For each block of a sample, how many of its first touches of sectors stay first ones, as a share.

    The longer a unit runs, the more of its sectors it has touched before: by Heaps' law their number grows as a power
    of the time. How it grows is taken from the two halves of what was traced. Of a unit that was cut, that part stands
    for the rest, too, in which fewer sectors are new.
    """
    begins = np.searchsorted(sectors.block, np.arange(sample.chosen.size + 1))
    before = np.concatenate([[0], np.cumsum(sectors.fresh)])
    middles, ends = (begins[:-1] + begins[1:]) // 2, begins[1:]
    in_half, in_all = (np.maximum(1, before[end] - before[begins[:-1]]) for end in (middles, ends))
    growth = np.log2(in_all / in_half).clip(0, 1)
    found = np.ones(max(sectors.block.max(initial=0) + 1, sample.chosen.size))
    found[: sample.chosen.size] = sample.scale ** (growth - 1)
    return found


def left_by_last_launch(size):
    """The share that a launch finds in a cache of what it reads, if all of that is `size` times as large as the cache.

    A cache drops what was not read for the longest time. So of what is read over and over in the same order, nothing is
    left in time if it is a little too large. (Launches of 32 MB found 97 % in an H200's L2 cache, of 39 MB 76 %, of
    45 MB 1 %: the record "counters".)
    """
    return float(np.clip((1.1 - size) / 0.15, 0, 1))
