"""How a graph goes through a device that is smaller than it is: what stays there, what moves past it, in which parts.

Where all columns fit they stay, and the list of edges moves past them in slices. Where they do not, one range of
columns stays and smaller ones move past it, each pair a part; then the next range stays.
"""

import re
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from tcgpu.distributed.cut import MOST_ROWS, ROW_BYTES, pairs, slices, words
from tcgpu.errors import GraphError

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
         "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
SHARES = ((3 / 4, 2), (1 / 2, 2), (1 / 2, 1))  # of the memory, what may stay; how many ranges may move through the rest
SLICE = 1 << 23  # edges of which a slice has no more
BUSY = 1 << 22  # edges that keep a device busy: of fewer there is one slice
SAMPLE = 1 << 14  # edges that are enough to tell how far a count has come
LEAST = 1 << 10  # a slice of fewer is not worth a launch
SUMS = 32  # parts whose triangles are added up on the device before the host reads them


def byte_count(text):
    """ "512MB" or "2GiB" or a whole number, as a number of bytes."""
    if isinstance(text, (int, np.integer)) and not isinstance(text, bool) and text > 0:
        return int(text)
    match = isinstance(text, str) and re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b)?\s*", text.lower())
    size = match and round(float(match[1]) * UNITS[match[2] or "b"])
    if not size:
        raise GraphError(f"device_memory is a number of bytes, or a text such as '512MB' or '2GiB', not {text!r}")
    return size


@dataclass(frozen=True)
class Layout:
    """How a graph goes through so much memory: its parts, the columns that stay at a time, what moves past them."""

    parts: list
    columns: dict  # the position of a part's first edge -> the range of vertices in whose columns its edges lie
    stay: int  # int64 words of memory for the columns that stay
    move: int  # and for each of what moves
    places: int  # how many of these there are
    whole: bool  # all columns stay, and what moves is the list of edges

    @property
    def device_bytes(self):
        return 8 * (self.stay + self.places * self.move) + 8 * SUMS


def layout(graph, limit):
    """The Layout of a graph in `limit` bytes of device memory; GraphError if they are too few."""
    columns, reason = words(graph, 0, graph.n), f"{8 * SUMS} of them are for sums"
    left = limit - 8 * SUMS - 8 * columns
    most = min(SLICE, left // (2 * ROW_BYTES) & ~1, max(LEAST, graph.m))
    if most >= min(LEAST, graph.m) and graph.m <= MOST_ROWS:
        parts = slices(graph, max(1, graph.m // BUSY), most, SAMPLE)
        longest = max((part.last - part.first for part in parts), default=0)
        return Layout(parts, {part.first: (0, graph.n) for part in parts}, columns, (longest + 1) // 2, 2, True)
    for share, places in SHARES:
        room = limit - 8 * SUMS
        stay = int(room * share) // 8 * 8
        if stay <= 0:
            break
        try:
            parts = pairs(graph, stay, min(stay, (room - stay) // places // 8 * 8), SAMPLE)
        except GraphError as error:
            reason = error
            continue
        some = [part for part in parts if not part.empty]
        columns = {first: next(group).columns(graph) for first, group in groupby(some, key=lambda part: part.first)}
        stay = max((words(graph, *range_) for range_ in columns.values()), default=0)
        moving = {(part.low, part.high) for part in some if part.low >= columns[part.first][1]}
        return Layout(parts, columns, stay, max((words(graph, *rows) for rows in moving), default=0), places, False)
    raise GraphError(f"{limit:,} bytes of device memory are too few for this graph: {reason}")


def walk(layout):
    """The parts that are not empty; pairs so that what moves last past one range moves first past the next."""
    groups = groupby((part for part in layout.parts if not part.empty), key=lambda part: part.first)
    for k, (_, group) in enumerate(groups):
        own, *others = group
        yield own
        yield from reversed(others) if k % 2 else others
