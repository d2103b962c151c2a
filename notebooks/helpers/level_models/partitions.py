"""The partitions of global memory that are read at the same time (section X), for every arrangement of the bits.

A model of the start of a count: one warp a chunk, each on its own multiprocessor, all in step. A combination takes
three requests, one for each of its edges; what they touch is worked out from the arrangement, nothing is run.
"""

from dataclasses import dataclass

import numpy as np

from helpers.level_models.approaches import share
from helpers.level_models.arrangement import PARTITIONS
from helpers.level_models.coalescing import WARP
from helpers.level_models.combinations import unranked
from tcgpu.errors import GraphError
from tcgpu.kernels.chatterjee.chunks import WORD

HAND_OUTS = ("ranges", "turns")
SEGMENT = 128  # bytes of a transaction
WIDTH = 256  # bytes of a partition, before the next one's turn


@dataclass(frozen=True)
class Load:
    """Transactions by moment (row) and partition (column)."""

    transactions: np.ndarray

    @property
    def busy(self):
        """How many partitions are at work, in the mean of the moments."""
        return float((self.transactions > 0).sum(axis=1).mean()) if self.transactions.size else 0.0

    @property
    def turns(self):
        """How many turns all moments take when each partition serves one transaction a turn."""
        return int(self.transactions.max(axis=1, initial=0).sum())

    @property
    def camping(self):
        """Those turns over what they would be if the same transactions were spread evenly; 1 is best."""
        partitions = self.transactions.shape[1]
        even = (-(-self.transactions.sum(axis=1) // partitions)).sum()
        return float(self.turns / even) if even else 1.0


def requests(split, arrangement, steps=32, chunks=None, hand_out="ranges"):
    """What the warps of some chunks ask for: byte addresses of shape (chunks, 3 steps, 32), -1 for a lane at rest.

    chunks: their numbers; by default the first ones, as many as there are multiprocessors. hand_out: each lane has a
    range of the chunk's combinations ("ranges", approach D), or the lanes take them in "turns", 32 side by side.
    """
    if hand_out not in HAND_OUTS:
        raise GraphError(f"combinations are handed out in {' or '.join(HAND_OUTS)}, not {hand_out!r}")
    chunks = range(min(split.machines, len(split))) if chunks is None else chunks
    found = np.full((len(chunks), steps, 3, WARP), -1, np.int64)
    for at, c in enumerate(chunks):
        index, live = _indices(int(split.tests[c]), steps, hand_out)
        a, b, e = unranked(index[live], int(split.size[c]), 3).astype(np.int64).T
        for edge, (i, j) in enumerate(((a, b), (a, e), (b, e))):
            found[at, :, edge][live] = arrangement.bit(c, i, j) // WORD * 4
    return found.reshape(len(chunks), 3 * steps, WARP)


def partition_load(addresses, partitions=PARTITIONS):
    """The Load of `requests`: at each moment every chunk makes one, a transaction for each segment that it touches."""
    chunks, moments, _ = addresses.shape
    load = np.zeros((moments, partitions), np.int64)
    segments = np.sort(np.where(addresses < 0, -1, addresses // SEGMENT), axis=2)
    new = segments >= 0
    new[:, :, 1:] &= segments[:, :, 1:] != segments[:, :, :-1]
    chunk, moment, lane = np.nonzero(new)
    partition = segments[chunk, moment, lane] * SEGMENT // WIDTH % partitions
    np.add.at(load, (moment, partition), 1)
    return Load(load)


def half_warp(split, arrangement, chunk):
    """The last of the first three requests of a warp for a chunk's bits, by the first 16 lanes: way -> addresses."""
    asked = {way: requests(split, arrangement, 1, [chunk], way) for way in HAND_OUTS}
    return {way: addresses[0, -1, : WARP // 2] for way, addresses in asked.items()}


def memory_map(split, arrangement):
    """Which chunks have bits in which 256 bytes of memory: number of the 256 bytes -> chunks."""
    found = {}
    for c, size in enumerate(split.size.tolist()):
        pairs = np.triu_indices(size, 1)
        for row in np.unique(arrangement.bit(c, *(ends.astype(np.int64) for ends in pairs)) // (8 * WIDTH)).tolist():
            found.setdefault(row, []).append(c)
    return found


def queues(addresses, moment, partitions=PARTITIONS):
    """The transactions of `requests` at one moment: partition -> the chunks that ask for them, a number each."""
    waiting = {partition: [] for partition in range(partitions)}
    for chunk, asked in enumerate(addresses[:, moment]):
        for segment in np.unique(asked[asked >= 0] // SEGMENT).tolist():
            waiting[segment * SEGMENT // WIDTH % partitions].append(chunk)
    return waiting


def _indices(tests, steps, hand_out):
    """Which combination each lane tests at each step, and which lanes still have one."""
    step, lane = np.arange(steps, dtype=np.int64)[:, None], np.arange(WARP, dtype=np.int64)
    if hand_out == "turns":
        index = step * WARP + lane
        return index, index < tests
    begin, end = share(tests, WARP, lane)
    index = begin + step
    return index, index < end
