"""The unit of work: one part of a graph, counted by whoever has it. Everything here can be pickled.

    count_part(graph, part) -> Found      how many triangles
    triangles_part, support_part          the same at each vertex, at each edge: arrays over those that it may touch

`graph` is a Graph, or the path of one: a worker on the same machine, or with the same file system, opens it once, and a
folder stays in its files. Parts are of the graph in the order that it has.
"""

import importlib
import os
import time
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tcgpu import cpu, formats, registry
from tcgpu.distributed.cut import Deal, Part
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import MethodError
from tcgpu.graph import as_graph

METHODS = ("warp_search", "cpu")  # those that count an edge at a time, and so any part
SMALLEST = (np.uint8, np.uint16, np.uint32, np.int64)


@dataclass(frozen=True)
class Found:
    """What a part has, and what it took."""

    part: Part | Deal
    triangles: int
    seconds: float
    engine: str
    halved: int = 0  # how often it, or a piece of it, did not fit the device
    values: tuple = field(default=(), repr=False)  # (where an array begins, the array), of edges or of vertices


def count_part(graph, part, *, method=None, engine=None, cores=None, **knobs):
    """The triangles of one part of a graph.

    part: a Part, or a Deal, which any method may count that has the knob `deal`.
    method: "warp_search" or "cpu" for a Part; engine: as in `count`. Without them, what this machine has.
    cores: how many of them the native engine takes; without a number, all.
    Other keywords are the method's knobs.
    """
    if isinstance(part, Deal):
        return _hand(graph, part, registry.choose(method or "adaptive", engine, None, knobs), engine, knobs)
    chosen = method_of(method, engine, knobs)
    if chosen.engines == ("cpu",):
        return _found(part, chosen, engine, lambda: (cpu.count(opened(graph), part, cores), 0))
    return _found(part, chosen, engine, lambda: _device().count(opened(graph), part, **knobs))


def support_part(graph, part, *, method=None, engine=None, cores=None):
    """At each edge that the part's triangles may have, how many of them have it: in `values`."""
    return _tallied(graph, part, True, method, engine, cores)


def triangles_part(graph, part, *, method=None, engine=None, cores=None):
    """At each vertex that the part's triangles may have, how many of them have it: in `values`."""
    return _tallied(graph, part, False, method, engine, cores)


def added(founds, length):
    """The sum of what parts have found at each of so many edges or vertices: int64."""
    total = np.zeros(length, np.int64)
    for found in founds:
        for begin, values in found.values:
            total[begin : begin + values.size] += values
    return total


def opened(graph):
    """The Graph itself, or the one at a path: the last one stays open."""
    if not isinstance(graph, (str, os.PathLike)):
        return as_graph(graph)
    path = os.path.abspath(graph)
    return _opened(path, _modified(path))


def takes_parts(method):
    """Whether a method, by its name, counts a Part."""
    return method in METHODS


def method_of(method=None, engine=None, knobs=()):
    """The Method that counts a Part; GraphError if the one that is named does not."""
    if method is None:
        method = "warp_search" if engine in registry.GPU or engine is None and ENGINE == "gpu" else "cpu"
    chosen = registry.choose(method, engine, None, knobs)
    if not takes_parts(chosen.name):
        parts = ", ".join(METHODS)
        raise MethodError(f"method {chosen.name!r} counts whole graphs; those that count parts are {parts}")
    return chosen


def _hand(graph, deal, method, engine, knobs):
    def work():
        prepared = method.prepare(opened(graph))
        return method.plan(prepared, deal=(deal.index, deal.of), **knobs).count(), 0

    return _found(deal, method, engine, work)


def _tallied(graph, part, by_edge, method, engine, cores):
    chosen = method_of(method, engine)

    def work():
        if chosen.engines == ("cpu",):
            values, halved = cpu.tally(opened(graph), by_edge, part, cores), 0
        else:
            values, halved = _device().tally(opened(graph), part, by_edge)
        values = tuple(map(_small, values))
        return sum(_sum(array) for _, array in values) // 3, halved, values

    return _found(part, chosen, engine, work)


def _found(part, method, engine, work):
    """A Found of what `work` says: triangles, how often halved, values."""
    with registry.on_engine(method, engine):
        begin = time.perf_counter()
        triangles, *more = work()
        return Found(part, triangles, time.perf_counter() - begin, registry.engine_of(method, engine), *more)


def _device():
    """The room that knows the GPU; imported when it is first used."""
    return importlib.import_module("tcgpu.distributed.device_parts")


def _small(values):
    """The same without zeros at the ends, in the smallest type that holds them: it may have far to go."""
    begin, array = values
    some = array != 0
    first = int(some.argmax()) if array.size else 0
    last = array.size - int(some[::-1].argmax()) if array.size and some[first] else first
    array = array[first:last]
    largest = int(array.max(initial=0))
    dtype = next(dtype for dtype in SMALLEST if largest <= np.iinfo(dtype).max)
    return begin + first, array.astype(dtype)


def _sum(array):
    """The sum of an array in one of SMALLEST: as many as there can be of the narrow ones do not reach 64 bits."""
    return cpu.sum_exactly(array) if array.dtype == np.int64 else int(array.sum(dtype=np.int64))


def _modified(path):
    """When a file, or the files of a folder, were last written."""
    paths = [path, *(entry.path for entry in os.scandir(path))] if os.path.isdir(path) else [path]
    return tuple(os.stat(path).st_mtime_ns for path in paths)


@lru_cache(maxsize=1)
def _opened(path, modified):
    return formats.read(path)
