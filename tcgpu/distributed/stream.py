"""Counting on a device that is smaller than the graph: parts one after the other, the next one's copies behind kernels.

Where all columns fit, they stay on the device, and the list of edges streams past them: of each edge its column, made
from `col_ptr` slice by slice; its row is there already. Where they do not, one range of columns stays and smaller ones
move past it, each pair a part; then the next range stays. So at most two ranges are counted at a time, and one more is
on its way. Copies and kernels have a stream each, and what moves has two places to lie in, in turns.

The graph is read in pieces, by way of pinned memory; one in a folder stays in its files. The native engine takes the
same parts, right in the graph's arrays.
"""

import time
from collections import deque
from dataclasses import dataclass
from functools import partial

import numpy as np

from tcgpu import registry
from tcgpu.distributed import copying, cut, device_parts
from tcgpu.distributed.journal import journal
from tcgpu.distributed.layout import SUMS, byte_count, layout, walk
from tcgpu.distributed.work import Found, count_part, method_of, opened
from tcgpu.engines import runtime
from tcgpu.engines.staging import Feeder, Load
from tcgpu.kernels import simulated
from tcgpu.progress import progress

EARLY = 6  # parts whose columns are asked for before they are launched
BATCH = 1 << 32  # look-ups after which the counts of the parts launched so far are read
EDGE_US = 9  # microseconds in the simulator of an edge that a part looks at, whether or not it is its own
PART_US = 3300
PART_WORK = 1 << 30  # look-ups of one part natively: about a second's, so that a count can be interrupted


def count(graph, *, method=None, engine=None, order=None, device_memory=None, resume=None, show=None, max_seconds=None,
          **knobs):  # fmt: skip
    """How many triangles `graph` has, part by part. See `tcgpu.count`."""
    limit = None if device_memory is None else byte_count(device_memory)
    chosen = method_of(method, engine, knobs)
    graph = opened(graph)
    if graph.folder is None or order is not None:
        graph = graph.ordered(order or chosen.order)
    with registry.on_engine(chosen, engine, max_seconds):
        if chosen.engines == ("cpu",):
            return _count_natively(graph, limit, resume, show)
        return Streaming(graph, limit, **knobs).count(resume, show)


@dataclass(frozen=True)
class Overlap:
    """When the device copied, and when it counted: rows of two times each, in milliseconds, in their order."""

    copies: np.ndarray
    kernels: np.ndarray

    @property
    def copies_ms(self):
        return float(np.diff(self.copies).sum())

    @property
    def kernels_ms(self):
        return float(np.diff(self.kernels).sum())

    @property
    def whole_ms(self):
        """From the first of all to the last."""
        both = np.concatenate((self.copies, self.kernels))
        return float(np.ptp(both)) if both.size else 0.0

    @property
    def hidden(self):
        """The share of the time of the copies in which a kernel ran, too; 0 if there were none."""
        if not self.copies_ms or not self.kernels.size:
            return 0.0
        counted = np.stack((np.zeros(len(self.kernels)), np.diff(self.kernels).ravel()), 1).ravel().cumsum()
        return float(np.diff(np.interp(self.copies, self.kernels.ravel(), counted)).sum() / self.copies_ms)


class Place:
    """Memory on the device for columns, or for a list of edges: what is in it, or on its way."""

    def __init__(self, memory):
        self.memory = memory
        self.key = self.load = self.block = None
        self.waited_for = None  # the load that kernels from now on are launched behind
        self.free = None  # the event that the last part that was launched on it is done


class Sums:
    """What the parts that were launched last have, added up on the device in a number for each; read some at a time.

    Numbers are never set back: what one has is what it had when it was read last, and the triangles of a part.
    """

    def __init__(self, numbers, stream):
        self.numbers, self.stream = numbers, stream
        self.of_one = [numbers[k : k + 1] for k in range(numbers.size)]
        self.read, self.before = runtime.pinned(numbers.size, np.int64), [0] * numbers.size
        self.batches = deque()  # (first number, parts, event): to be read when the event is done
        self.parts, self.work = [], 0.0  # of the batch that is launched now
        self.half = numbers.size // 2
        self.first = 0

    def next(self, part):
        """The number that a part is to be added to."""
        self.parts.append(part)
        self.work += part.work
        return self.of_one[self.first + len(self.parts) - 1]

    @property
    def full(self):
        return len(self.parts) == self.half or self.work > BATCH

    def launched(self):
        """All parts of a batch are launched: have their numbers copied."""
        last = self.first + len(self.parts)
        self.stream.copy_out(self.numbers, self.first, self.read[self.first : last])
        self.batches.append((self.first, self.parts, self.stream.event()))
        self.first = self.half - self.first
        self.parts, self.work = [], 0.0

    def found(self):
        """Wait for the oldest batch; each of its parts with its triangles."""
        first, parts, copied = self.batches.popleft()
        copied.synchronize()
        for k, part in enumerate(parts, first):
            after = int(self.read[k])
            yield part, after - self.before[k]
            self.before[k] = after


class Streaming:
    """One count of a graph on the engine's device, in no more than so many bytes of its memory.

    limit: None for what the device has free. timed: have the device time what it does. After `count`, `device_bytes`
    and `pinned_bytes` are how much memory it took, and `overlap`, if timed, how well copies hid behind kernels.
    """

    def __init__(self, graph, limit=None, *, timed=False, **knobs):
        self.graph, self.knobs, self.timed = graph, knobs, timed
        free = runtime.memory_free() - device_parts.MARGIN
        self.limit = free if limit is None else min(limit, free)
        self.layout = layout(graph, self.limit)
        self.device_bytes = self.pinned_bytes = 0
        self.all_places, self.overlap = [], None

    def count(self, resume=None, show=None):
        """The number of triangles. resume, show: a journal's file, how to show progress; see `tcgpu.count`."""
        parts = self.layout.parts
        check_simulated(self.graph, parts)
        with journal(resume, self.graph, "count", parts) as kept, _bar(parts, kept, show) as bar:
            try:
                with runtime.kept_ring(self.layout.move or self.layout.stay) as ring:
                    self._allocate(ring)
                    self._run(kept, bar)
                if self.timed:
                    self._measure()
                return sum(kept.done.values())
            finally:
                self._let_go()

    def _allocate(self, ring):
        """All the memory that it takes on the device, and the pinned memory of `ring`, which outlives the count."""
        plan = self.layout
        self.counting = runtime.Stream()
        self.sums = Sums(self._array(SUMS, 0), self.counting)
        self.nothing = runtime.device_array(0, np.int32)
        self.stay = self._place(plan.stay)
        self.places = deque(self._place(plan.move) for _ in range(plan.places if plan.move else 0))
        self.feeder = Feeder(ring, timed=self.timed)
        self.pinned_bytes = ring.nbytes + self.sums.read.nbytes
        self.kernels = []  # (event, event)
        self.read_at = time.perf_counter()  # when the last batch was read

    def _place(self, words):
        self.all_places.append(Place(self._array(words)))
        return self.all_places[-1]

    def _array(self, words, fill=None):
        self.device_bytes += 8 * words
        if self.device_bytes > self.limit:
            raise AssertionError(f"{self.device_bytes:,} bytes of the device were to be {self.limit:,}")
        return runtime.device_array(words, np.int64, fill)

    def _run(self, kept, bar):
        """Ask for what parts take, some parts before they are launched; launch a batch before the last one is read."""
        asked = deque()
        for part in _left(walk(self.layout), kept):
            asked.append((part, *self._ask(part)))
            if len(asked) > EARLY:
                self._launch(*asked.popleft(), kept, bar)
        while asked:
            self._launch(*asked.popleft(), kept, bar)
        if self.sums.parts:
            self.sums.launched()
        while self.sums.batches:
            self._keep(kept, bar)

    def _ask(self, part):
        """Where its columns are, or will be, and what moves past them, or None: each a place, its key, and a Load."""
        begin, end = self.layout.columns[part.first]
        near = self._on_its_way(self.stay, (begin, end), copying.fill_columns)
        if self.layout.whole:
            return near, self._moving((part.first, part.last), copying.fill_columns_of)
        return near, self._moving((part.low, part.high), copying.fill_columns) if part.low >= end else None

    def _moving(self, key, fill):
        """A place for what moves: where it is already, or the one that was taken longest ago."""
        for place in self.places:
            if place.key == key:
                return self._on_its_way(place, key, fill)
        self.places.rotate(1)
        return self._on_its_way(self.places[0], key, fill)

    def _on_its_way(self, place, key, fill):
        """A place, its key, and the Load that brings there what the key stands for: asked for unless it was before."""
        if place.key != key:
            size = -(-(key[1] - key[0]) // 2) if fill is copying.fill_columns_of else cut.words(self.graph, *key)
            fill = partial(fill, self.graph, *key)
            place.key, place.load = key, self.feeder.ask(Load(place.memory, size, fill, lambda: place.free))
        return place, key, place.load

    def _launch(self, part, near, far, kept, bar):
        """Have the device count a part, when what it takes is there."""
        block, rows, columns = self._brought(*near), None, self.nothing
        if self.layout.whole:
            self._brought(*far, as_block=False)
            columns = far[0].memory.view(np.int32)
        elif far is not None:
            rows = self._brought(*far).part_of(part.low, part.high)
        begin = self.counting.event(timing=True) if self.timed else None
        device_parts.launch_count(
            block, rows or block.part_of(block.begin, block.end), part, self.sums.next(part),
            columns=columns, stream=self.counting, **self.knobs,
        )  # fmt: skip
        near[0].free = done = self.counting.event(self.timed)
        if far is not None:
            far[0].free = done
        self.kernels.append((begin, done))
        if self.sums.full:
            self.sums.launched()
            if len(self.sums.batches) > 1:
                self._keep(kept, bar)

    def _brought(self, place, key, load, as_block=True):
        """The Block in a place, made once, when the kernels may count on it."""
        ready = self.feeder.bring(load)
        if load is not place.waited_for:
            self.counting.wait(ready)
            place.waited_for = load
            place.block = device_parts.Block.in_memory(self.graph, *key, place.memory) if as_block else None
        return place.block

    def _keep(self, kept, bar):
        """Wait for a batch, and write down what its parts have."""
        batch, before = list(self.sums.found()), self.read_at
        self.read_at = time.perf_counter()
        for part, triangles in batch:
            kept.add(Found(part, triangles, (self.read_at - before) / len(batch), runtime.engine()))
            bar.add(part.work)

    def _measure(self):
        """When the device copied and counted, from its first copy on."""
        first = next((begin for begin, _ in self.feeder.copies), None)
        self.overlap = Overlap(*(
            np.array([[event.ms_since(first) for event in events] for events in both]).reshape(-1, 2)
            for both in (self.feeder.copies, self.kernels)
        ))  # fmt: skip

    def _let_go(self):
        """Whatever happened, keep no memory of the device."""
        runtime.synchronize()
        for place in self.all_places:
            vars(place).clear()  # its load knows it, too: two that know each other stay until Python looks for such
        self.all_places.clear()
        for name in ("stay", "places", "sums", "nothing", "feeder", "kernels", "counting"):
            self.__dict__.pop(name, None)
        runtime.give_device_back()


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


def check_simulated(graph, parts):
    """Announce a simulated count of all these parts that takes long; GraphError if it takes longer than it may."""
    if runtime.engine() == "sim":
        edges = sum(part.last - part.first for part in parts)
        microseconds = simulated.search_work(graph, 40, 2.1) + EDGE_US * edges + PART_US * len(parts)
        simulated.check("warp_search", simulated.seconds(0, microseconds))
