"""The memory transactions of a warp's request, by compute capability (section IX and Table III).

The rules are those of NVIDIA's CUDA C Programming Guide, version 3.2, appendix G:

    1.0, 1.1  half a warp at a time; one transaction (two for 16-byte words) if lane k takes the k-th word of an aligned
              segment, else one of 32 bytes for every lane
    1.2, 1.3  half a warp at a time; one for every segment that is touched, halved while one half of it is enough
    2.0       one for every 128-byte line of the cache
    sectors   today: one for every 32 bytes
"""

from typing import NamedTuple

import numpy as np

from tcgpu.errors import GraphError
from tcgpu.suggest import unknown

RULES = ("1.0", "1.1", "1.2", "1.3", "2.0", "sectors")
WARP = 32


class Transactions(NamedTuple):
    """For every request, how many transactions it takes and how many bytes they move."""

    count: np.ndarray
    bytes: np.ndarray


def transactions(addresses, rule, bytes_each=4):
    """The Transactions of requests by whole warps: `addresses` has a row of 32 byte addresses for each.

    A negative address is a lane that takes no part. `bytes_each`: 1, 2, 4, 8 or 16, of which addresses are multiples.
    """
    if rule not in RULES:
        raise GraphError(unknown("rule", rule, RULES))
    if bytes_each not in (1, 2, 4, 8, 16):
        raise GraphError(f"a lane takes 1, 2, 4, 8 or 16 bytes, not {bytes_each!r}")
    addresses = np.asarray(addresses, np.int64).reshape(-1, WARP)
    if rule in ("1.0", "1.1"):
        parts, answer = 2, _in_sequence
    elif rule in ("1.2", "1.3"):
        parts, answer = 2, _by_segment
    elif rule == "2.0":
        parts, answer = max(1, bytes_each // 4), _by_line
    else:
        parts, answer = 1, _by_sector
    found = answer(addresses.reshape(-1, WARP // parts), bytes_each)
    return Transactions(*(values.reshape(-1, parts).sum(axis=1) for values in found))


def access_pattern(name, warps=1):
    """Requests of the kinds that Table III names, 128 bytes each: "sequential", or "non-sequential": back to front."""
    lanes = {"sequential": np.arange(WARP), "non-sequential": np.arange(WARP)[::-1]}[name]
    return 4 * (lanes + WARP * np.arange(warps)[:, None])


def distinct(rows, size):
    """How many segments of `size` bytes each row touches."""
    segments = np.sort(np.where(rows < 0, -1, rows // size), axis=1)
    return _new(segments).sum(axis=1)


def _in_sequence(rows, bytes_each):
    lanes = rows.shape[1]
    active = rows >= 0
    base = rows - bytes_each * np.arange(lanes)
    highest = np.where(active, base, np.iinfo(np.int64).min).max(axis=1)
    lowest = np.where(active, base, np.iinfo(np.int64).max).min(axis=1)
    segment = min(lanes * bytes_each, 128)
    coalesced = (highest == lowest) & (highest % segment == 0) & (bytes_each >= 4)
    alone = active.sum(axis=1)
    moves = 2 if bytes_each == 16 else 1
    whole = np.where(alone > 0, moves, 0)
    return np.where(coalesced, whole, alone), np.where(coalesced, whole * segment, alone * 32)


def _by_segment(rows, bytes_each):
    size = {1: 32, 2: 64}.get(bytes_each, 128)
    rows = np.sort(rows, axis=1)
    begins = _new(np.where(rows < 0, -1, rows // size))
    count = begins.sum(axis=1)
    moved = np.zeros(rows.shape[0], np.int64)
    row, lane = np.nonzero(begins)
    ends = np.append(lane[1:], rows.shape[1])  # the lane behind the last of each segment
    ends[:-1][row[1:] != row[:-1]] = rows.shape[1]
    low, high = rows[row, lane], rows[row, ends - 1] + bytes_each - 1
    length = np.full(row.size, size)
    for half in (64, 32):
        length[(length > half) & (low // half == high // half)] = half
    np.add.at(moved, row, length)
    return count, moved


def _by_line(rows, bytes_each):
    count = distinct(rows, 128)
    return count, 128 * count


def _by_sector(rows, bytes_each):
    count = distinct(rows, 32)
    return count, 32 * count


def _new(segments):
    """Where each row of ascending segments has one for the first time; -1 is none."""
    begins = segments >= 0
    begins[:, 1:] &= segments[:, 1:] != segments[:, :-1]
    return begins
