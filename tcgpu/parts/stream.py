"""Counting on a device that is smaller than the graph: parts one after the other, the next one's copies behind kernels.

Where all columns fit, they stay on the device, and the list of edges streams past them: of each edge its column, made
from `col_ptr` slice by slice; its row is there already. Where they do not, one range of columns stays and smaller ones
move past it, each pair a part; then the next range stays. So at most two ranges are counted at a time, and one more is
on its way. Copies and kernels have a stream each, and what moves has two places to lie in, in turns.

The graph is read in pieces, by way of pinned memory; one in a folder stays in its files. The native engine takes the
same parts, right in the graph's arrays.
"""

from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tcgpu import _cuda, counting
from tcgpu.graph import GraphError
from tcgpu.kernels import SIMULATED_STEPS_PER_SECOND, SIMULATOR_PATIENCE, duration
from tcgpu.parts import cut, device, native
from tcgpu.parts.journal import journal
from tcgpu.parts.layout import byte_count, layout, moves, walk
from tcgpu.parts.progress import progress
from tcgpu.parts.work import Found, count_part, method_of, opened

AHEAD = 4  # parts that the device has been told to count while the host prepares the next
PART_WORK = 1 << 30  # look-ups of one part natively: about a second's, so that a count can be interrupted


def count(graph, *, method=None, engine=None, order=None, device_memory=None, resume=None, show=None, **knobs):
    """How many triangles `graph` has, part by part. See `tcgpu.count`."""
    limit = None if device_memory is None else byte_count(device_memory)
    chosen = method_of(method, engine, knobs)
    graph = opened(graph)
    if graph.folder is None or order is not None:
        graph = graph.ordered(order or chosen.order)
    with counting.on_engine(chosen, engine):
        if chosen.engines == ("cpu",):
            return _count_natively(graph, limit, resume, show)
        return Streaming(graph, limit, **knobs).count(resume, show)


@dataclass(frozen=True)
class Overlap:
    """What the device did, in milliseconds: copying, counting, and both from the first to the last."""

    copies_ms: float
    kernels_ms: float
    whole_ms: float

    @property
    def hidden(self):
        """The share of the copies behind which kernels ran; 0 if there were none."""
        both = self.copies_ms + self.kernels_ms - self.whole_ms
        return min(1.0, max(0.0, both / self.copies_ms)) if self.copies_ms else 0.0


class Place:
    """Memory on the device for what moves, and when it may be written to, and read."""

    def __init__(self, memory):
        self.memory, self.key, self.content = memory, None, None
        self.ready = self.free = None  # events: it is there; nobody needs it any more


class Streaming:
    """One count of a graph on the engine's device, in no more than so many bytes of its memory.

    limit: None for what the device has free. After `count`, `overlap` says how well copies hid behind kernels, and
    `device_bytes` how much memory it took.
    """

    def __init__(self, graph, limit=None, **knobs):
        self.graph, self.knobs = graph, knobs
        free = _cuda.memory_free() - device.MARGIN
        self.limit = free if limit is None else min(limit, free)
        self.layout = layout(graph, self.limit)
        self.device_bytes, self.overlap = 0, None
        self.copies, self.kernels = [], []  # (event, event)
        self.under_way = deque()  # (part, number, events) of those that the device has been told to count

    def count(self, resume=None, show=None):
        """The number of triangles. resume, show: a journal's file, how to show progress; see `tcgpu.count`."""
        parts = self.layout.parts
        check_patience("warp_search", sum(part.work for part in parts))
        with journal(resume, self.graph, "count", parts) as kept, _bar(parts, kept, show) as bar:
            try:
                self._allocate()
                for part in _left(parts if self.layout.whole else walk(parts), kept):
                    if part.barren(self.graph):
                        kept.add(Found(part, 0, 0.0, _cuda.engine()))
                        continue
                    self._launch(part)
                    if len(self.under_way) > AHEAD:
                        self._finish(kept, bar)
                while self.under_way:
                    self._finish(kept, bar)
                self._measure()
                return sum(kept.done.values())
            finally:
                self._let_go()

    def _allocate(self):
        """All the memory that it takes, on the device and pinned on the host."""
        plan = self.layout
        self.copying, self.counting = _cuda.stream(), _cuda.stream()
        self.total, self.before = self._array(1, 0), 0
        self.sums = _cuda.pinned(AHEAD + 2, np.int64)  # the total after each part under way
        self.nothing = _cuda.device_array(0, np.int32)
        self.stay = Place(self._array(plan.stay))
        self.places = deque(Place(self._array(plan.move)) for _ in range(plan.places if plan.move else 0))
        self.ring = device.Ring(self.copying, min(device.SLOT, 8 * max(plan.stay, plan.move)))
        self.launched = 0

    def _array(self, words, fill=None):
        self.device_bytes += 8 * words
        if self.device_bytes > self.limit:
            raise AssertionError(f"{self.device_bytes:,} bytes of the device were to be {self.limit:,}")
        return _cuda.device_array(words, np.int64, fill)

    def _launch(self, part):
        """Have the device count a part, once what it takes is there."""
        begin, end = (0, self.graph.n) if self.layout.whole else part.columns(self.graph)
        near = self._brought(self.stay, (begin, end), self._columns)
        taken, columns = [self.stay], self.nothing
        if self.layout.whole:
            taken.append(self._moved((part.first, part.last), self._columns_of_edges))
            columns, far = taken[1].content, near.part_of(0, self.graph.n)
        elif moves(self.graph, part):
            taken.append(self._moved((part.low, part.high), self._columns))
            far = taken[1].content.part_of(part.low, part.high)
        else:
            far = near.part_of(begin, end)
        for place in taken:
            place.ready.wait(self.counting)
        with self._timed(self.kernels, self.counting) as events:
            device.launch_count(near, far, part, self.total, columns=columns, stream=self.counting, **self.knobs)
        number = self.launched % self.sums.size
        _cuda.copy_out(self.total, self.sums[number : number + 1], self.counting)
        done = _cuda.event(self.counting)
        for place in taken:
            place.free = done
        self.launched += 1
        self.under_way.append((part, number, events, done))

    def _moved(self, key, bring):
        """The place where something is that moves; it may be there already."""
        for place in self.places:
            if place.key == key:
                return place
        self.places.rotate(1)
        self._brought(self.places[0], key, bring)
        return self.places[0]

    def _brought(self, place, key, bring):
        """The content of a place after it was brought there, if it was not: the copies wait until the place is free."""
        if place.key != key:
            if place.free is not None:
                place.free.wait(self.copying)
            with self._timed(self.copies, self.copying) as events:
                place.key, place.content = key, bring(place.memory, *key)
            place.ready = events[1]
        return place.content

    def _columns(self, memory, begin, end):
        return device.Block.in_memory(self.graph, begin, end, memory).fill(self.graph, self.ring)

    def _columns_of_edges(self, memory, first, last):
        columns = memory.view(np.int32)[: last - first]
        self.ring.send(columns, lambda at, piece: native.columns_of(self.graph, first + at, piece))
        return columns

    @contextmanager
    def _timed(self, times, stream):
        """Keep the events before and after what is done in the stream."""
        events = [_cuda.event(stream), None]
        yield events
        events[1] = _cuda.event(stream)
        times.append(events)

    def _finish(self, kept, bar):
        """Wait for the part that is under way for longest, and write down what it has."""
        part, number, (begin, end), done = self.under_way.popleft()
        done.synchronize()
        after = int(self.sums[number])
        kept.add(Found(part, after - self.before, _cuda.ms_between(begin, end) / 1e3, _cuda.engine()))
        self.before = after
        bar.add(part.work)

    def _measure(self):
        """Add up how long the device copied and counted."""
        both = self.copies + self.kernels
        spans = [sum(_cuda.ms_between(*events) for events in times) for times in (self.copies, self.kernels)]
        whole = max((_cuda.ms_between(both[0][0], end) for _, end in both), default=0.0)
        self.overlap = Overlap(*spans, whole)

    def _let_go(self):
        """Whatever happened, keep no memory, neither the device's nor pinned."""
        _cuda.synchronize()
        self.under_way.clear()
        self.stay = self.places = self.total = self.nothing = self.ring = self.sums = None
        self.copies, self.kernels = [], []
        _cuda.give_back()


def _count_natively(graph, limit, resume, show):
    """Part by part in the graph's own arrays; with a limit, no more columns than that at a time."""
    parts = native_parts(graph, limit)
    with journal(resume, graph, "count", parts) as kept, _bar(parts, kept, show) as bar:
        for part in _left(parts, kept):
            kept.add(count_part(graph, part, method="cpu"))
            bar.add(part.work)
        return sum(kept.done.values())


def native_parts(graph, limit):
    """The parts that the native engine counts one after the other."""
    if limit is None or cut.column_bytes(graph, 0, graph.n) <= limit:
        work = sum(part.work for part in cut.slices(graph, 1))
        return cut.slices(graph, max(cut.MANY_PARTS, int(work / PART_WORK)))
    return layout(graph, limit).parts


def _left(parts, kept):
    return (part for part in parts if part not in kept.done)


def _bar(parts, kept, show):
    bar = progress(show, sum(part.work for part in parts), "counting")
    bar.done = sum(part.work for part in parts if part in kept.done)
    return bar


def check_patience(method, lookups):
    """GraphError if the simulator would take too long for so many look-ups."""
    seconds = lookups / SIMULATED_STEPS_PER_SECOND
    if _cuda.engine() == "sim" and seconds > SIMULATOR_PATIENCE:
        raise GraphError(
            f"{method} would take about {duration(seconds)} in the simulator: "
            "take engine='cpu' or a smaller graph, or run it on a GPU"
        )
