"""Counting a graph part by part on one device that may be smaller than the graph. Copies run while kernels count.

If all columns fit, they are copied once, and the parts are ranges of the edge list. If not, one range of columns stays
on the device while smaller ones are copied there in turn, and each pair of ranges is a part; then the next range stays.
Copies and kernels have a stream each. The ranges that move have two buffers, so that one can be filled while kernels
read the other.

The graph is read in pieces, through pinned memory; one in a folder stays in its files. The engine "cpu" counts the same
parts directly in the graph's arrays.

Many raw edges are cleaned by the device, which gets them in pieces, too (`columns_in_pieces`). If all columns fit, they
are counted where they are.
"""

import re
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle, groupby
from typing import NamedTuple

import numpy as np

from tcgpu import registry
from tcgpu.arrays import locked
from tcgpu.distributed import cut, device_parts
from tcgpu.distributed.journal import open_journal
from tcgpu.distributed.worker import PartResult, count_part, method_of, opened
from tcgpu.engines import runtime
from tcgpu.engines.staging import Feeder, Load
from tcgpu.errors import GraphError
from tcgpu.gpu_costs import CLEANED_EDGES
from tcgpu.graph import Graph, as_graph, checked_edges, edge_arrays
from tcgpu.kernels import simulated
from tcgpu.kernels.columns_in_pieces import LAST_STEP, DoesNotSuit, ranges_of_columns
from tcgpu.progress import part, underway
from tcgpu.progress import progress as progress_bar

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
         "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
RAW_EDGE_US = 160  # microseconds in the simulator of a raw edge that is cleaned and counted
DIVISIONS = ((3 / 4, 2), (1 / 2, 2), (1 / 2, 1))  # to try: the share of memory that stays; buffers in the rest
SLICE = 1 << 22  # edges of a part where all columns fit: enough to keep a device busy
SAMPLE = 1 << 14  # edges that are examined to estimate the work of parts
TOTAL_BYTES = 8  # of the number on the device that kernels add triangles to
MOST_AHEAD = 6  # parts whose columns are requested before they are launched
MAX_PENDING = 32  # parts that are launched before the oldest result is read
MAX_PENDING_WORK = 1 << 33  # look-ups of these
EDGE_US = 9  # microseconds in the simulator of an edge that a part examines, counted or not
PART_US = 3300
NATIVE_WORK = 1 << 30  # look-ups of a part on the CPU: about a second, so that the count can be interrupted


def count(graph, *, method=None, engine=None, order=None, device_memory=None, resume=None, progress=None,
          max_seconds=None, **knobs):  # fmt: skip
    """The number of triangles of a graph, counted part by part; see `tcgpu.count`."""
    limit = None if device_memory is None else byte_count(device_memory)
    chosen = method_of(method, engine, knobs)
    raw = isinstance(graph, (tuple, list))  # raw edges are sorted once, into the order that they are counted in
    plain = limit is not None and resume is None and order in (None, chosen.order) and not knobs
    if plain and isinstance(graph, tuple) and chosen.engines != ("cpu",):
        graph = checked_edges(*edge_arrays(graph))
        if graph[0].size >= CLEANED_EDGES:
            on_engine, bar = registry.on_engine(chosen, engine, max_seconds), underway(progress, "counting")
            with suppress(DoesNotSuit), on_engine, bar, runtime.freed_afterwards():
                return _count_in_pieces(*graph, limit)
    graph = as_graph(graph, order or chosen.order) if raw else opened(graph)
    if graph.folder is None or order is not None:
        graph = graph.ordered(order or chosen.order)
    with registry.on_engine(chosen, engine, max_seconds):
        if chosen.engines == ("cpu",):
            return _count_natively(graph, limit, resume, progress)
        return Streaming(graph, limit, **knobs).count(resume, progress)


def _count_in_pieces(u, v, n, limit):
    """The number of triangles of raw edges, which the device cleans; DoesNotSuit if `limit` is too small for that.

    Columns that do not fit all together go back to the host, and are streamed.
    """
    if runtime.estimates_time:
        simulated.check("warp_search", simulated.seconds(0, RAW_EDGE_US * u.size))
    runtime.release_device_memory()
    memory = min(limit, runtime.memory_free() - device_parts.MARGIN_BYTES) - TOTAL_BYTES
    kept = 0
    for some in ranges_of_columns(u, v, n, memory):
        if some.is_whole:
            with part(*LAST_STEP):
                return _count_columns(some)
        if some.begin == 0:
            pointers, rows = np.empty(some.of + 1, np.int64), np.empty(u.size, np.int32)  # what is written takes memory
        pointers[some.begin : some.end + 1] = runtime.to_host(some.pointers) + kept
        runtime.copy_to_host(some.rows, rows[kept : kept + some.rows.size])
        kept += some.rows.size
        del some  # its memory is for the next
    if not kept:
        return 0
    runtime.release_device_memory()
    with part(*LAST_STEP):
        columns = locked(pointers), locked(rows[:kept])
        return Streaming(Graph(*columns, order="degree", validate=False), limit).count(progress=False)


def _count_columns(columns):
    """The triangles of all columns of a graph, which are on the device."""
    total = runtime.device_array(1, np.int64, 0)
    held = device_parts.DeviceColumns(0, columns.end, 0, columns.pointers, columns.rows)
    whole = cut.Part(0, columns.rows.size, 0, columns.end)
    device_parts.launch_count(held, held.only(0, columns.end), whole, total)
    return int(runtime.to_host(total)[0])


def byte_count(size):
    """The bytes of "512MB", "2GiB" or a whole number."""
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size > 0:
        return int(size)
    match = isinstance(size, str) and re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b)?\s*", size.lower())
    found = match and round(float(match[1]) * UNITS[match[2] or "b"])
    if not found:
        raise GraphError(f"device_memory= is a number of bytes, or a text such as '512MB' or '2GiB', not {size!r}")
    return found


def _count_natively(graph, limit, resume, progress):
    parts = native_parts(graph, limit)
    with open_journal(resume, graph, "count", parts) as journal, _progress(progress, parts, journal) as bar:
        for part in parts:
            if part not in journal.done:
                journal.add(count_part(graph, part, method="cpu"))
                bar.add(part.work)
        return sum(journal.done.values())


def native_parts(graph, limit):
    """The parts that the engine "cpu" counts, with at most `limit` bytes of columns at a time."""
    if limit is None or cut.column_bytes(graph, 0, graph.n) <= limit:
        work = cut.slices(graph, 1)[0].work
        return cut.slices(graph, max(cut.MANY_PARTS, int(work / NATIVE_WORK)))
    return layout(graph, limit).parts


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

    def __init__(self, memory):
        self.memory = memory
        self.range = self.load = self.columns = None
        self.released = None  # the event that the last part which reads it is done


class Request(NamedTuple):
    """Columns that are in a buffer, or on their way there."""

    buffer: Buffer
    load: Load
    columns: device_parts.DeviceColumns


class Streaming:
    """One count of a graph on the engine's device, in at most `limit` bytes of its memory; None: in what is free.

    `device_bytes` is the memory that it takes there, and after `count`, `pinned_bytes` that on the host.
    """

    def __init__(self, graph, limit=None, **knobs):
        self.graph, self.knobs = graph, knobs
        free = runtime.memory_free() - device_parts.MARGIN_BYTES
        self.limit = free if limit is None else min(limit, free)
        self.layout = layout(graph, self.limit)
        self.device_bytes, self.pinned_bytes = self.layout.device_bytes, 0

    def count(self, resume=None, progress=None):
        """The number of triangles. resume: the path of a journal; progress: as in `tcgpu.count`."""
        parts = self.layout.parts
        if runtime.estimates_time:
            edges = sum(part.last - part.first for part in parts)
            microseconds = simulated.search_work(self.graph, 40, 2.1) + EDGE_US * edges + PART_US * len(parts)
            simulated.check("warp_search", simulated.seconds(0, microseconds))
        with open_journal(resume, self.graph, "count", parts) as journal, _progress(progress, parts, journal) as bar:
            try:
                with runtime.kept_ring(self.layout.move_words or self.layout.stay_words) as ring:
                    self._allocate(ring)
                    self._run(journal, bar)
                return sum(journal.done.values())
            finally:
                self._free()

    def _allocate(self, ring):
        self.stream, self.feeder = runtime.Stream(), Feeder(ring)
        self.total, self.totals = runtime.device_array(1, np.int64, 0), runtime.pinned(MAX_PENDING, np.int64)
        self.pending = deque()  # (part, where its total is copied to, event), of the parts that are launched
        self.staying = Buffer(runtime.device_array(self.layout.stay_words, np.int64))
        sizes = [self.layout.move_words] * self.layout.buffers
        self.moving = deque(Buffer(runtime.device_array(words, np.int64)) for words in sizes)
        self.pinned_bytes = ring.nbytes + self.totals.nbytes

    def _run(self, journal, bar):
        """Count all parts that are not done. Columns are requested some parts ahead of the launch."""
        todo = deque(part for part in self.layout.in_turn() if part not in journal.done)
        requested, places = deque(), cycle(np.split(self.totals, self.totals.size))
        self.total_read, self.time_read = 0, time.perf_counter()
        while todo or requested:
            while todo and len(requested) <= MOST_AHEAD:
                requested.append((todo[0], *self._request_columns(todo.popleft())))
            self._launch(*requested.popleft(), next(places))
            self._read_results(journal, bar)
        while self.pending:
            self._read_oldest(journal, bar)

    def _request_columns(self, part):
        """The Requests of the columns that the part's edges are in, and of those of its rows, which may be the same."""
        stays = self.layout.staying[part.first]
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
            fill = partial(device_parts.fill_columns, self.graph, *range_)
            buffer.load = self.feeder.request(Load(buffer.memory, cut.column_words(self.graph, *range_), fill))
            buffer.columns = device_parts.DeviceColumns.in_memory(self.graph, *range_, buffer.memory)
            buffer.range = range_
        return Request(buffer, buffer.load, buffer.columns)

    def _launch(self, part, near, far, place):
        """Launch the kernel of a part as soon as its columns are copied, and the copy of the total after it."""
        for buffer, load, _ in (near, far):
            self.stream.wait(self.feeder.copy(load, after=buffer.released))
        columns = far.columns
        rows = columns.only(columns.begin, columns.end) if near is far else columns.only(part.low, part.high)
        device_parts.launch_count(near.columns, rows, part, self.total, stream=self.stream, **self.knobs)
        self.stream.copy_out(self.total, 0, place)
        near.buffer.released = far.buffer.released = done = self.stream.event()
        self.pending.append((part, place, done))

    def _read_results(self, journal, bar):
        """Read the results that are there; wait for the oldest ones if too many are pending."""
        while self.pending:
            work = sum(part.work for part, _, _ in self.pending)
            waits = len(self.pending) >= MAX_PENDING or work > MAX_PENDING_WORK
            if not waits and not self.pending[0][-1].query():
                return
            self._read_oldest(journal, bar)

    def _read_oldest(self, journal, bar):
        """Wait for the oldest part and record its triangles: the difference of two totals."""
        part, place, done = self.pending.popleft()
        done.synchronize()
        total, now = int(place[0]), time.perf_counter()
        journal.add(PartResult(part, total - self.total_read, now - self.time_read, runtime.engine()))
        bar.add(part.work)
        self.total_read, self.time_read = total, now

    def _free(self):
        """Free all memory of the device, even after an error."""
        runtime.synchronize()
        for name in ("staying", "moving", "total", "totals", "pending", "feeder", "stream"):
            self.__dict__.pop(name, None)
        runtime.release_device_memory()


def _progress(progress, parts, journal):
    done = sum(part.work for part in parts if part in journal.done)
    return progress_bar(progress, sum(part.work for part in parts), "counting", done)
