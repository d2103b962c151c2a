"""The unit of work: one part of a graph, counted by whoever has it. Everything here can be pickled.

    count_part(graph, part) -> Found      how many triangles
    triangles_part, support_part          the same for each vertex, for each edge: as arrays over those that it may touch

`graph` is a Graph, or the path of one: a worker on the same machine, or with the same file system, opens it once, and a
folder stays in its files. Parts are of the graph in the order that it has.
"""

import os
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from tcgpu import counting, formats
from tcgpu.graph import Graph, GraphError, as_graph
from tcgpu.parts import native
from tcgpu.parts.cut import Deal, Part

SMALLEST = (np.uint8, np.uint16, np.uint32, np.int64)


@dataclass(frozen=True)
class Found:
    """What a part has, and what it took."""

    part: Part | Deal
    triangles: int
    seconds: float
    engine: str
    halved: int = 0  # how often a piece of it did not fit the device
    values: tuple = field(default=(), repr=False)  # (where an array begins, the array) of the edges or vertices


def count_part(graph, part, *, method=None, engine=None, threads=None, **knobs):
    """The triangles of one part of a graph.

    method, engine: as in `count`, of the methods that take parts; without them, what this machine has. threads: of the
    native engine, which takes all cores if not told otherwise.
    """
    return _timed(part, engine_of(engine), lambda: native.count(opened(graph), part, threads))


def support_part(graph, part, *, engine=None, threads=None):
    """For each edge that the part's triangles may have, of how many of them it is one: in `values`."""
    return _tallied(graph, part, True, engine, threads)


def triangles_part(graph, part, *, engine=None, threads=None):
    """For each vertex that the part's triangles may have, how many of them it is in: in `values`."""
    return _tallied(graph, part, False, engine, threads)


def added(founds, length):
    """The sum of what parts have found for each of so many edges or vertices: int64."""
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


def _modified(path):
    """When a file, or a file of a folder, was last written."""
    paths = [path, *(entry.path for entry in os.scandir(path))] if os.path.isdir(path) else [path]
    return tuple(os.stat(path).st_mtime_ns for path in paths)


@lru_cache(maxsize=1)
def _opened(path, modified):
    return formats.read(path)


def engine_of(engine):
    return "cpu"


def _timed(part, engine, work):
    begin = time.perf_counter()
    triangles = 0 if part.empty else work()
    return Found(part, triangles, time.perf_counter() - begin, engine)


def _tallied(graph, part, by_edge, engine, threads):
    begin = time.perf_counter()
    values = [] if part.empty else native.tally(opened(graph), part, by_edge, threads)
    triangles = sum(int(array.sum()) for _, array in values) // 3
    return Found(part, triangles, time.perf_counter() - begin, engine_of(engine), 0, tuple(map(_small, values)))


def _small(values):
    """The same without zeros at the ends, in the smallest type that holds them: it may have far to go."""
    begin, array = values
    some = np.flatnonzero(array)
    first, last = (int(some[0]), int(some[-1]) + 1) if some.size else (0, 0)
    largest = int(array[first:last].max(initial=0))
    dtype = next(dtype for dtype in SMALLEST if largest <= np.iinfo(dtype).max)
    return begin + first, array[first:last].astype(dtype)
