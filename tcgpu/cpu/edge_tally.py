"""Triangles per vertex and per edge, found at each edge (u, v): the rest of u's column is looked for in v's column.

As in `counting`, the columns are compared, or v's is searched, or its rows are looked up in a bitmap, which stays in
the caches. Little is done where no triangle is found. Besides the results, a worker needs a bit for each vertex, an
int32 for each row of the longest column, and at edges one for each vertex: the places of rows in u's column.
"""

import numpy as np

from tcgpu.cpu.counting import FAR, FEW_ROWS, MUCH_LONGER, NEAR, chunk_bounds, chunks, within
from tcgpu.cpu.edges import marking_workers
from tcgpu.engines.native import (
    LANES,
    fetch_add,
    inline,
    jit,
    lowest_bit,
    matching,
    prefetch,
    run_threads,
    stoppable,
    stopped,
    uncounted,
)

I32 = np.int32
I64 = np.int64
U64 = np.uint64


def add_at_edges(graph, part, by_edge, found, shared, workers):
    """Add the triangles u < v < w of the edges (u, v) of a part to `found`, at each edge or vertex.

    found: an array for each worker, or one that is shared.
    """
    workers = marking_workers(graph, workers) if by_edge else workers
    bounds = chunk_bounds(graph, part, workers)
    queue = np.array([0, bounds.size - 1], np.int64)
    bitmaps = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    places = np.empty((workers, graph.n if by_edge else 0), np.int32)
    hits = np.empty((workers, graph.max_column), np.int32)
    run_threads(_add_at_edges, graph.col_ptr, graph.row_idx, part.low, part.high, queue, bounds,
                True if by_edge else None, True if shared else None, bitmaps, places, hits, found,
                workers=workers, queue=stoppable(queue, part.last - part.first))  # fmt: skip


@inline
def add(found, index, value, shared):
    """Add to an element of `found`, atomically if that is shared (True, not None)."""
    if shared is None:
        found[U64(index)] += value
    elif value:
        fetch_add(found, index, value)


@inline
def _add_triangle(row_idx, i, j, by_edge, found, shared):
    """Add 1 at the edges (u, w) and (v, w), which are at positions i and j, or at w."""
    if by_edge is None:
        add(found, I64(row_idx[U64(i)]), I64(1), shared)
    else:
        add(found, i, I32(1), shared)
        add(found, j, I32(1), shared)


@jit
def _add_at_edges(
    worker, workers, col_ptr, row_idx, low, high, queue, bounds, by_edge, shared, bitmaps, all_places, all_hits,
    all_found,
):  # fmt: skip
    """Add the triangles of each edge (u, v): there and at u once, at the others one by one.

    by_edge, shared: True or None, so that only what is needed is compiled.
    """
    bitmap, place, hit = bitmaps[worker], all_places[worker], all_hits[worker]
    found = uncounted(all_found[worker if shared is None else 0])
    m = row_idx.size
    for _, u, at, stop in chunks(queue, bounds, col_ptr):
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            begin, last_v = within(row_idx, begin, min(stop, end - 1), low, high)
            short = end - begin <= FEW_ROWS and m >= LANES
            marked = end  # rows from this position on are in the bitmap
            of_u = I64(0)
            for k in range(begin, last_v):
                if k + FAR < m:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                    ahead = col_ptr[U64(row_idx[U64(k + NEAR)])]
                    prefetch(row_idx, ahead)
                    if by_edge is not None:
                        prefetch(found, ahead)
                v = U64(row_idx[U64(k)])
                q, v_end = col_ptr[v], col_ptr[v + U64(1)]
                of_edge = I32(0)
                if short and v_end - q <= MUCH_LONGER:
                    while q < v_end:
                        read, hits = min(q, m - LANES), U64(0)  # hits: the rows that are found
                        for i in range(k + 1, end):  # first all of them: a branch could not be predicted
                            same = matching(row_idx, read, I32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                            hits |= U64(same != U64(0)) << U64(i - k)
                        while hits:
                            i = k + lowest_bit(hits)
                            same = matching(row_idx, read, I32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                            of_edge += I32(1)
                            _add_triangle(row_idx, i, q + lowest_bit(same), by_edge, found, shared)
                            hits &= hits - U64(1)
                        q += LANES
                elif (end - k) * MUCH_LONGER < v_end - q:
                    for i in range(k + 1, end):
                        row, left = row_idx[U64(i)], v_end - q
                        while left > 1:  # no branch depends on the rows: it could not be predicted
                            half = left >> 1
                            q += half * I64(row_idx[U64(q + half - 1)] < row)
                            left -= half
                        if row_idx[U64(q)] == row:
                            of_edge += I32(1)
                            _add_triangle(row_idx, i, q, by_edge, found, shared)
                elif q < v_end:
                    if marked == end:
                        marked = k + 1
                        for i in range(marked, end):
                            row = U64(row_idx[U64(i)])
                            bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                            if by_edge is not None:
                                place[row] = i - begin
                    hits = I64(0)
                    for j in range(q, v_end):  # list the hits without a branch, then add them
                        row = row_idx[U64(j)]
                        hit[U64(hits)] = row if by_edge is None else I32(j - q)
                        hits += I64(bitmap[U64(row) >> U64(6)] >> (U64(row) & U64(63)) & U64(1))
                    of_edge += I32(hits)
                    for x in range(hits):
                        if by_edge is None:
                            add(found, I64(hit[U64(x)]), I64(1), shared)
                        else:
                            j = q + I64(hit[U64(x)])
                            i = begin + I64(place[U64(row_idx[U64(j)])])
                            _add_triangle(row_idx, i, j, by_edge, found, shared)
                if of_edge:
                    if by_edge is None:
                        add(found, I64(v), I64(of_edge), shared)
                        of_u += I64(of_edge)
                    else:
                        add(found, k, of_edge, shared)
            if by_edge is None and of_u:
                add(found, u, of_u, shared)
            for k in range(marked, end):
                bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
