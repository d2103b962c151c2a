"""Triangles per vertex and per edge: the emitters of `finding`, and the triangles of the edges (u, v) of a part.

Little is done where no triangle is found. Besides the results, a worker needs a bit for each vertex, an int32 for each
row of the longest column, and at edges one for each vertex: the places of rows in u's column.
"""

import functools

import numpy as np

from tcgpu.cpu.edges import marking_workers
from tcgpu.cpu.finding import Emitter, finder, run
from tcgpu.engines.native import U64, fetch_add, inline, prefetch, uncounted


def add_at_edges(graph, part, by_edge, found, shared, workers):
    """Add the triangles u < v < w of the edges (u, v) of a part to `found`, at each edge or vertex.

    found: an array for each worker, or one that is shared.
    """
    workers = marking_workers(graph, workers) if by_edge else workers
    bitmaps = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    places = np.empty((workers, graph.n), np.int32) if by_edge else None
    hits = np.empty((workers, graph.max_column), np.int32)
    find = finder(tallies(by_edge, shared))
    run(find, graph, part, workers, True, bitmaps, places, hits, found, None, None, None)


@inline
def add(found, index, value, shared):
    """Add to an element of `found`, atomically if that is shared (True, not None)."""
    if shared is None:
        found[U64(index)] += value
    elif value:
        fetch_add(found, index, value)


@functools.cache
def tallies(by_edge, shared):
    """The Emitter that adds triangles at each edge or vertex: at (u, v) or u and v once, at the others one by one.

    The state is an array for each worker, or a single one; additions to that are atomic if it is `shared`.
    """
    shared = True if shared else None

    @inline
    def begin(found, worker):
        return uncounted(found[min(worker, len(found) - 1)])

    @inline
    def triangle(found, u, v, w, uv, uw, vw):
        if by_edge:
            add(found, uw, found.dtype.type(1), shared)
            add(found, vw, found.dtype.type(1), shared)
        else:
            add(found, w, found.dtype.type(1), shared)

    @inline
    def edge(found, v, uv, many):
        add(found, uv if by_edge else v, found.dtype.type(many), shared)

    @inline
    def column(found, u, many):
        add(found, u, found.dtype.type(many), shared)

    return Emitter(begin, triangle, edge, *((None, prefetch) if by_edge else (column, None)))
