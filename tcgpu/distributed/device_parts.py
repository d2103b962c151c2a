"""Parts of a graph on a GPU, or in its simulator, which may have less memory than the graph. Copies run while kernels
count.

If all columns fit, they are copied once. If not, one range of columns stays on the device while smaller ones are copied
there in turn, and each pair of ranges is a part; then the next range stays. Copies and kernels have a stream each. The
ranges that move have two buffers, so that one can be filled while kernels read the other. The graph is read in pieces,
through pinned memory; one in a folder stays in its files.

`Streaming` counts all parts of a graph, `count` and `tally` any one, for a worker: each thread keeps the columns of its
last part on the device, where the next part of the same graph may find them.
"""

import threading
import time
import weakref
from collections import deque
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, groupby
from typing import NamedTuple

import numpy as np

from tcgpu.distributed import cut, part_tally
from tcgpu.distributed.cut import PartResult
from tcgpu.distributed.journal import count_parts
from tcgpu.engines import runtime
from tcgpu.engines.staging import Feeder, Load
from tcgpu.errors import GraphError
from tcgpu.kernels import NO_ROOM, simulated
from tcgpu.kernels.tricore import warp_search

MARGIN = 1 << 16  # bytes of the device that are left free: allocations are rounded up
DIVISIONS = ((3 / 4, 2), (1 / 2, 2), (1 / 2, 1))  # to try: the share of memory that stays; buffers in the rest
SLICE = 1 << 22  # edges of a part where all columns fit: enough to keep a device busy
SAMPLE = 1 << 14  # edges that are examined to estimate the work of parts
TOTAL_BYTES = 8  # of the number on the device that kernels add triangles to
MOST_AHEAD = 6  # parts whose columns are requested before they are launched
MAX_PENDING = 32  # parts that are launched before the oldest result is read
MAX_PENDING_WORK = 1 << 33  # look-ups of these
EDGE_US = 9  # microseconds in the simulator of an edge that a part examines, counted or not
PART_US = 3300


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


# ----------------------------------------------------------------------------------------------------------- any part

_thread = threading.local()  # `kept`: (weak reference to a graph, engine, Streaming)


def count(graph, part, **knobs):
    """(triangles of a Part, the number of pieces in which it was counted to fit the device)."""

    def count_piece(piece, near, far):
        total = runtime.device_array(1, np.int64, 0)
        launch_count(near, far.only(*piece.rows(graph)), piece, total, **knobs)
        return int(runtime.to_host(total)[0])

    results = _in_pieces(graph, part, count_piece)
    return sum(results), len(results)


def tally(graph, part, by_edge):
    """(the triangles of a Part at each of their edges, or vertices, as `cpu.tally` returns them; pieces as above)."""

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

    results = _in_pieces(graph, part, tally_piece)
    return [values for piece in results for values in piece], len(results)


def forget():
    """Free the columns that this thread keeps on its device."""
    _thread.kept = None


def _in_pieces(graph, part, work):
    """What `work(piece, near, far)` returns of each piece of a part; half as much memory is tried if it is too much."""
    limit = None
    while True:
        of, engine, streaming = getattr(_thread, "kept", None) or (lambda: None, None, None)
        if of() is not graph or engine != runtime.engine():
            forget()
            streaming = Streaming(weakref.proxy(graph), limit)
            _thread.kept = weakref.ref(graph), runtime.engine(), streaming
        try:
            with closing(streaming.pieces(part)) as pieces:
                return [work(*each) for each in pieces]
        except BaseException as error:
            forget()  # its columns may be incomplete
            if type(error).__name__ not in NO_ROOM:
                raise
            limit = streaming.limit // 2


# ------------------------------------------------------------------------------------------------------------- layout


@dataclass(frozen=True)
class Layout:
    """How a graph goes through limited memory: its parts, and the device buffers that they take."""

    parts: list
    staying: dict  # a part's `first` -> the range of vertices whose columns stay while it is counted
    stay_words: int  # int64 words of the buffer for the columns that stay
    move_words: int = 0  # of each buffer for columns that move
    buffers: int = 0  # how many of these

    @property
    def device_bytes(self):
        return 8 * (self.stay_words + self.buffers * self.move_words) + TOTAL_BYTES

    def in_turn(self):
        """The parts that are not empty. Every second group is reversed: it starts with the range that moved last."""
        groups = groupby((part for part in self.parts if not part.empty), key=lambda part: part.first)
        for k, (_, (own, *others)) in enumerate(groups):
            yield own
            yield from reversed(others) if k % 2 else others


def layout(graph, limit):
    """The Layout of a graph in `limit` bytes of device memory; GraphError if they are too few."""
    memory = limit - TOTAL_BYTES
    all_words = cut.column_words(graph, 0, graph.n)
    if 8 * all_words <= memory and graph.m <= cut.MAX_ROWS:
        parts = cut.slices(graph, max(1, graph.m // SLICE), SAMPLE)
        return Layout(parts, {part.first: (0, graph.n) for part in parts}, all_words)
    reason = f"{TOTAL_BYTES} of them are for the result"
    for share, buffers in DIVISIONS:
        stay = int(memory * share) // 8 * 8
        if stay <= 0:
            break
        try:
            parts = cut.pairs(graph, stay, min(stay, (memory - stay) // buffers // 8 * 8), SAMPLE)
        except GraphError as error:
            reason = error
            continue
        some = [part for part in parts if not part.empty]
        staying = {first: next(group).columns(graph) for first, group in groupby(some, key=lambda part: part.first)}
        moving = {(part.low, part.high) for part in some if part.low >= staying[part.first][1]}
        stay_words = max((cut.column_words(graph, *each) for each in staying.values()), default=0)
        move_words = max((cut.column_words(graph, *each) for each in moving), default=0)
        return Layout(parts, staying, stay_words, move_words, buffers)
    raise GraphError(f"{limit:,} bytes of device memory are too few for this graph: {reason}")


# ---------------------------------------------------------------------------------------------------------- streaming


class Buffer:
    """Device memory for a range of columns, and what was requested last for it."""

    def __init__(self, words):
        self.memory = runtime.device_array(words, np.int64)
        self.range = self.load = self.columns = None
        self.released = None  # the event that the last part which reads it is done


class Request(NamedTuple):
    """Columns that are in a buffer, or on their way there."""

    buffer: Buffer
    load: Load
    columns: DeviceColumns


class Streaming:
    """Counts of a graph on the engine's device, in at most `limit` bytes of its memory; None: in what is free."""

    def __init__(self, graph, limit=None, **knobs):
        self.graph, self.knobs = graph, knobs
        free = runtime.memory_free() - MARGIN
        self.limit = free if limit is None else min(limit, free)
        self.layout = layout(graph, self.limit)

    def count(self, resume=None, progress=None):
        """The number of triangles. resume: the path of a journal; progress: as in `tcgpu.count`."""
        parts = self.layout.parts
        if runtime.estimates_time:
            edges = sum(part.last - part.first for part in parts)
            microseconds = simulated.search_work(self.graph, 40, 2.1) + EDGE_US * edges + PART_US * len(parts)
            simulated.check("warp_search", simulated.seconds(0, microseconds))
        return count_parts(self.graph, parts, self.results, resume, progress)

    def results(self, parts):
        """Yield a PartResult for each of some parts of the layout that is not empty; after that, all memory is free.

        Columns are requested some parts ahead of the launch.
        """
        parts = set(parts)
        todo, requested = deque(part for part in self.layout.in_turn() if part in parts), deque()
        try:
            with self._feeding():
                self.stream, self.pending = runtime.Stream(), deque()
                self.total, self.totals = runtime.device_array(1, np.int64, 0), runtime.pinned(MAX_PENDING, np.int64)
                self.total_read, self.time_read = 0, time.perf_counter()
                places = cycle(np.split(self.totals, self.totals.size))
                while todo or requested:
                    while todo and len(requested) <= MOST_AHEAD:
                        requested.append((todo[0], *self._request_columns(todo.popleft())))
                    self._launch(*requested.popleft(), next(places))
                    yield from self._results(wait=False)
                yield from self._results(wait=True)
        finally:
            runtime.synchronize()
            for name in ("staying", "moving", "total", "totals", "pending", "feeder", "stream"):
                self.__dict__.pop(name, None)
            runtime.release_device_memory()

    def pieces(self, part):
        """(piece, near, far) for each piece of any part: its DeviceColumns, and those of its rows, are on the device.

        They stay there.
        """
        pieces = self.layout.in_turn() if self.layout.buffers else [part]
        with self._feeding():
            for each in pieces:
                piece = each.within(part)
                if not piece.has_no_triangles(self.graph):
                    near, far = self._request_columns(each)
                    for request in (near, far):
                        self.feeder.copy(request.load).synchronize()
                    yield piece, near.columns, far.columns

    @contextmanager
    def _feeding(self):
        """This thread's ring of pinned memory, through which columns are copied to the buffers on the device."""
        with runtime.kept_ring(self.layout.move_words or self.layout.stay_words) as ring:
            self.feeder = Feeder(ring)
            if not hasattr(self, "staying"):
                self.staying = Buffer(self.layout.stay_words)
                self.moving = deque(Buffer(self.layout.move_words) for _ in range(self.layout.buffers))
            yield

    def _request_columns(self, part):
        """The Requests of the columns that the part's edges are in, and of those of its rows, which may be the same."""
        stays = self.layout.staying.get(part.first, (0, self.graph.n))
        near = self._request(self.staying, stays)
        if part.low < stays[1]:
            return near, near
        moves = part.low, part.high
        buffer = next((buffer for buffer in self.moving if buffer.range == moves), self.moving[-1])
        self.moving.remove(buffer)
        self.moving.appendleft(buffer)  # so the last one is the buffer whose last use is longest ago
        return near, self._request(buffer, moves)

    def _request(self, buffer, range_):
        """Have a range of columns copied to a buffer, unless it is there or on its way."""
        if buffer.range != range_:
            fill = partial(fill_columns, self.graph, *range_)
            buffer.load = self.feeder.request(Load(buffer.memory, cut.column_words(self.graph, *range_), fill))
            buffer.columns = DeviceColumns.in_memory(self.graph, *range_, buffer.memory)
            buffer.range = range_
        return Request(buffer, buffer.load, buffer.columns)

    def _launch(self, part, near, far, place):
        """Launch the kernel of a part as soon as its columns are copied, and the copy of the total after it."""
        for buffer, load, _ in (near, far):
            self.stream.wait(self.feeder.copy(load, after=buffer.released))
        rows = far.columns.only(*part.rows(self.graph))
        launch_count(near.columns, rows, part, self.total, stream=self.stream, **self.knobs)
        self.stream.copy_out(self.total, 0, place)
        near.buffer.released = far.buffer.released = done = self.stream.event()
        self.pending.append((part, place, done))

    def _results(self, wait):
        """Yield the results that are there, each the difference of two totals; wait for all of them, or for the oldest
        if too many are pending."""
        while self.pending:
            work = sum(part.work for part, _, _ in self.pending)
            full = len(self.pending) >= MAX_PENDING or work > MAX_PENDING_WORK
            if not (wait or full or self.pending[0][-1].query()):
                return
            part, place, done = self.pending.popleft()
            done.synchronize()
            total, now = int(place[0]), time.perf_counter()
            yield PartResult(part, total - self.total_read, now - self.time_read, runtime.engine())
            self.total_read, self.time_read = total, now
