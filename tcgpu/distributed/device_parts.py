"""Counting a part on a GPU or in its simulator, with only the columns on the device that the part takes.

Columns are copied there through a ring of pinned host memory: while one piece is copied, threads fill the next ones.
Each thread keeps the columns of its last part on the device, where the next part of the same graph may find them.
"""

import threading
import weakref
from dataclasses import dataclass
from functools import partial

import numpy as np

from tcgpu.distributed import part_tally
from tcgpu.distributed.cut import MAX_ROWS, column_bytes, column_words
from tcgpu.engines import runtime
from tcgpu.kernels.tricore import warp_search

MARGIN_BYTES = 1 << 16  # bytes of the device that are left free: allocations are rounded up


@dataclass(frozen=True, eq=False)
class DeviceColumns:
    """The columns of vertices begin..end - 1 on the device. Their nonzeros are numbered from `first`."""

    begin: int
    end: int
    first: int  # position in the graph's edge list of the first nonzero
    pointers: object
    rows: object

    @classmethod
    def in_memory(cls, graph, begin, end, memory):
        """As views of `memory`, a device array of int64 with room for them; `fill_columns` writes there."""
        first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
        pointers = end - begin + 1
        rows = _part_of(memory, pointers, last - first, np.int32)
        return cls(begin, end, first, _part_of(memory, 0, pointers, np.int64), rows)

    def only(self, low, high):
        """(low, pointers, rows) of the columns of vertices low..high - 1 among them, as kernels take them."""
        return low, _part_of(self.pointers, low - self.begin, high - low + 1, np.int64), self.rows


def _part_of(words, begin, size, dtype):
    """`size` elements of `dtype` in the memory of int64 words, from word `begin` on."""
    return words[begin:].view(dtype)[:size]


def fill_columns(graph, begin, end, at, words):
    """Write words `at` and following of the memory of a range of columns: the pointers, then the rows, two to a word.

    NumPy does the copying, and lets other threads run meanwhile.
    """
    first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
    pointers = graph.col_ptr[begin + at : min(begin + at + words.size, end + 1)]
    np.subtract(pointers, first, out=words[: pointers.size])
    row_words = words[pointers.size :].view(np.int32)
    row = first + 2 * max(0, at - (end - begin + 1))
    rows = graph.row_idx[row : min(last, row + row_words.size)]
    row_words[: rows.size] = rows


def launch_count(near, far, part, total, *, cached=True, stream=None):
    """Add to total[0] the triangles of the part's edges.

    near: the DeviceColumns that the edges are in. far: what `DeviceColumns.only` returns for their rows.
    """
    blocks, threads, shared = warp_search.shape(part.last - part.first)
    search_for_columns = runtime.device_array(0, np.int32)
    warp_search.warp_search_kernel.launch(
        blocks, threads, search_for_columns, part.first - near.first, part.last - near.first,
        near.begin, near.pointers, near.rows, *far, int(cached), total, shared=shared, stream=stream,
    )  # fmt: skip


def count(graph, part, **knobs):
    """(triangles of a Part, how often a piece of it was halved to fit the device)."""

    def count_piece(piece, near, far):
        total = runtime.device_array(1, np.int64, 0)
        launch_count(near, far.only(*piece.rows(graph)), piece, total, **knobs)
        return int(runtime.to_host(total)[0])

    results, halved = _in_pieces(graph, part, count_piece)
    return sum(results), halved


def tally(graph, part, by_edge):
    """(the triangles of a Part at each of their edges, or vertices, as `cpu.tally` returns them; halvings as above)."""

    def tally_piece(piece, near, far):
        ranges = piece.result_ranges(graph, by_edge)
        arrays = [runtime.device_array(high - low, np.int32 if by_edge else np.int64, 0) for low, high in ranges]
        begins = zip((ranges[0], ranges[-1]), (near, far), strict=True)
        bases = [low - held.first if by_edge else low for (low, _), held in begins]
        blocks, threads = part_tally.shape(piece.last - piece.first)
        part_tally.part_tally.launch(
            blocks, threads, piece.first - near.first, piece.last - near.first, near.begin, near.pointers, near.rows,
            *far.only(*piece.rows(graph)), by_edge, arrays[0], bases[0], arrays[-1], bases[1],
        )  # fmt: skip
        return [(low, runtime.to_host(array)) for (low, _), array in zip(ranges, arrays, strict=True)]

    results, halved = _in_pieces(graph, part, tally_piece)
    return [values for piece in results for values in piece], halved


def forget():
    """Free the columns that this thread keeps on its device."""
    _thread.cache = None


def _in_pieces(graph, part, work):
    """What `work(piece, near, far)` returns of a part, or of the pieces into which it is halved until each fits the
    device; and how often it was halved. near, far: see `_columns_of`. Pieces that have no triangles are left out."""
    results, pieces, halved = [], [part], 0
    while pieces:
        piece = pieces.pop()
        try:
            if not piece.has_no_triangles(graph):
                results.append(work(piece, *_columns_of(graph, piece)))
        except runtime.OutOfMemory:
            forget()
            pieces += reversed(piece.halves(graph))
            halved += 1
    return results, halved


# --------------------------------------------------------------------------------------- columns that are on the device

_thread = threading.local()


class ColumnCache:
    """The columns of one graph that a thread has on its device: those that its last part took."""

    def __init__(self, graph):
        self.graph, self.engine, self.held = weakref.ref(graph), runtime.engine(), []

    def find(self, begin, end):
        """The DeviceColumns that include these columns, or None."""
        return next((held for held in self.held if held.begin <= begin and end <= held.end), None)

    def load(self, graph, part):
        """Copy the columns that a part takes, or the whole graph's if the part may have any row; free the others."""
        ranges = part.column_ranges(graph)
        if part.high >= graph.n and any(self.find(*each) is None for each in ranges):
            try:
                return self._load(graph, [(0, graph.n)])
            except runtime.OutOfMemory:
                pass  # only those that the part takes, then
        self._load(graph, ranges)

    def _load(self, graph, ranges):
        found = [self.find(*each) for each in ranges]
        self.held = list(dict.fromkeys(filter(None, found)))
        missing = [each for each, held in zip(ranges, found, strict=True) if held is None]
        if not _fits(graph, missing):
            raise runtime.OutOfMemory("the columns of a part do not fit the device")
        for begin, end in missing:
            self.held.append(_copied(graph, begin, end))


def _columns_of(graph, part):
    """The DeviceColumns of a part's edges and of their rows, which may be the same."""
    cache = getattr(_thread, "cache", None)
    if cache is None or cache.graph() is not graph or cache.engine != runtime.engine():
        cache = _thread.cache = ColumnCache(graph)
    cache.load(graph, part)
    ranges = part.column_ranges(graph)
    return cache.find(*ranges[0]), cache.find(*ranges[-1])


def _fits(graph, ranges):
    """Whether the device has memory for these ranges of columns, and kernels can number their nonzeros."""
    longest = max((int(graph.col_ptr[end] - graph.col_ptr[begin]) for begin, end in ranges), default=0)
    size = sum(column_bytes(graph, *each) for each in ranges)
    return longest <= MAX_ROWS and size + MARGIN_BYTES <= runtime.memory_free()


def _copied(graph, begin, end):
    memory = runtime.device_array(column_words(graph, begin, end), np.int64)
    runtime.fill_from_host(memory, partial(fill_columns, graph, begin, end))
    return DeviceColumns.in_memory(graph, begin, end, memory)
