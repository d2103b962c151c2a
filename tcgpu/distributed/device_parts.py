"""Parts on a GPU or in its simulator: ranges of columns lie there, a kernel counts the edges between two of them.

Columns go there through a ring of pinned host memory: while one piece is copied the next ones are filled. A thread of
Python's keeps the columns that its last part took: another part of the graph finds them there.
"""

import threading
import weakref
from dataclasses import dataclass
from functools import partial

import numpy as np

from tcgpu.distributed import copying
from tcgpu.distributed.cut import MOST_ROWS, column_bytes, words
from tcgpu.engines import runtime
from tcgpu.kernels.tricore import part_tally, warp_search

MARGIN = 1 << 16  # bytes of the device that are left alone: allocations are rounded up


@dataclass(frozen=True, eq=False)
class Block:
    """The columns of vertices begin..end - 1 on the device; positions count from `first`, where theirs begin."""

    begin: int
    end: int
    first: int
    pointers: object
    rows: object

    @classmethod
    def in_memory(cls, graph, begin, end, memory):
        """As a part of `memory`, a device array of int64 that has room for it; not filled yet."""
        first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
        pointers = end - begin + 1
        rows = runtime.stretch(memory, pointers, last - first, np.int32)
        return cls(begin, end, first, runtime.stretch(memory, 0, pointers, np.int64), rows)

    def part_of(self, low, high):
        """(low, pointers, rows) of some of the columns, or of all."""
        if (low, high) == (self.begin, self.end):
            return low, self.pointers, self.rows
        return low, runtime.stretch(self.pointers, low - self.begin, high - low + 1, np.int64), self.rows


def launch_count(near, far, part, total, *, columns=None, cached=True, stream=None):
    """Add to total[0] the triangles over the part's edges: columns of block `near`, rows among `far`.

    far: what `Block.part_of` gives. columns: on the device the columns of these edges, if they are at hand; else they
    are searched for.
    """
    blocks, size, shared = warp_search.shape(part.last - part.first)
    if columns is None:
        columns = runtime.device_array(0, np.int32)
    warp_search.warp_search_kernel.launch(
        blocks, size, columns, part.first - near.first, part.last - near.first, near.begin, near.pointers, near.rows,
        *far, int(cached), total, shared=shared, stream=stream,
    )  # fmt: skip


def count(graph, part, **knobs):
    """The number of triangles of a Part, and how often a piece of it had to be halved to fit the device."""

    def whole(piece):
        if piece.barren(graph):
            return 0
        near, far = _blocks(graph, piece)
        total = runtime.device_array(1, np.int64, 0)
        launch_count(near, far.part_of(*piece.rows(graph)), piece, total, **knobs)
        return int(runtime.to_host(total)[0])

    found = _in_pieces(graph, part, whole)
    return sum(found), len(found) - 1


def tally(graph, part, by_edge):
    """The triangles of a Part at each of their edges, or vertices, as `cpu.tally` has them, and as in `count`."""

    def whole(piece):
        if piece.barren(graph):
            return []
        near, far = _blocks(graph, piece)
        ranges = piece.reach(graph, by_edge)
        arrays = [runtime.device_array(high - low, np.int32 if by_edge else np.int64, 0) for low, high in ranges]
        bases = [low - block.first if by_edge else low for (low, _), block in zip((ranges[0], ranges[-1]), (near, far))]
        blocks, size = part_tally.shape(piece.last - piece.first)
        part_tally.part_tally.launch(
            blocks, size, piece.first - near.first, piece.last - near.first, near.begin, near.pointers, near.rows,
            *far.part_of(*piece.rows(graph)), by_edge, arrays[0], bases[0], arrays[-1], bases[1],
        )  # fmt: skip
        return [(low, runtime.to_host(array)) for (low, _), array in zip(ranges, arrays)]

    found = _in_pieces(graph, part, whole)
    return [values for piece in found for values in piece], len(found) - 1


def forget():
    """Let go of the columns that this thread keeps on its device."""
    _mine.kept = None


def _in_pieces(graph, part, work):
    """What `work` says of the part, or of the pieces that it falls into until each fits the device: a list."""
    found, pieces = [], [part]
    while pieces:
        piece = pieces.pop()
        try:
            found.append(work(piece))
        except runtime.OutOfMemory:
            forget()
            pieces += reversed(piece.halves(graph))
    return found


# ------------------------------------------------------------------------------------------- what a thread keeps there


_mine = threading.local()


class Kept:
    """The blocks of one graph that a thread has on its device: as many as its last part took."""

    def __init__(self, graph):
        self.graph, self.engine, self.blocks = weakref.ref(graph), runtime.engine(), []

    def of(self, graph):
        return self.graph() is graph and self.engine == runtime.engine()

    def holding(self, begin, end):
        """The block that has these columns, or None."""
        return next((block for block in self.blocks if block.begin <= begin and end <= block.end), None)

    def have(self, graph, part):
        """Have the columns that a part takes, or all of the graph's if it may have any row; let go of the rest."""
        ranges = part.ranges(graph)
        if part.high >= graph.n and any(self.holding(*range_) is None for range_ in ranges):
            try:
                return self._have(graph, [(0, graph.n)])
            except runtime.OutOfMemory:
                pass  # then those that it takes
        self._have(graph, ranges)

    def _have(self, graph, ranges):
        held = [self.holding(*range_) for range_ in ranges]
        self.blocks = list(dict.fromkeys(filter(None, held)))
        missing = [range_ for range_, block in zip(ranges, held) if block is None]
        if not _fits(graph, missing):
            raise runtime.OutOfMemory("the columns of a part do not fit the device")
        for begin, end in missing:
            self.blocks.append(_brought(graph, begin, end))


def _blocks(graph, part):
    """The blocks that hold a part's columns, and the columns of its rows: of one graph two, or twice the same."""
    kept = getattr(_mine, "kept", None)
    if kept is None or not kept.of(graph):
        kept = _mine.kept = Kept(graph)
    kept.have(graph, part)
    ranges = part.ranges(graph)
    return kept.holding(*ranges[0]), kept.holding(*ranges[-1])


def _fits(graph, ranges):
    """Whether the device has room for these ranges of columns, and the kernels numbers for their nonzeros."""
    longest = max((int(graph.col_ptr[end] - graph.col_ptr[begin]) for begin, end in ranges), default=0)
    size = sum(column_bytes(graph, *range_) for range_ in ranges)
    return longest <= MOST_ROWS and size + MARGIN <= runtime.memory_free()


def _brought(graph, begin, end):
    memory = runtime.device_array(words(graph, begin, end), np.int64)
    runtime.fill_from_host(memory, partial(copying.fill_columns, graph, begin, end))
    return Block.in_memory(graph, begin, end, memory)
