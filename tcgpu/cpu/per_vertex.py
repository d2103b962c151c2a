"""Triangles per vertex, per edge, and one by one.

Triangles u < v < w are found from their middle: v's column is marked, and of every smaller neighbour u the rows behind
v are looked up. This takes the fewest look-ups, and the place of all three edges is at hand. All results are the same
for any number of threads.

Where the last vertices are dense, the triangles among them are found from rows of bits instead (see `dense`).

A part of the edges (u, v) is worked off by the same code as all of them. It takes, beside the graph, an int32 for each
vertex and worker, two for each of its edges, and one for each edge, or two for each vertex, that its triangles can
have and each worker, if these are few; for triangles per vertex also one for each edge in the columns of its u.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.cleaning import occurrences
from tcgpu.cpu.dense import add_dense, first_dense
from tcgpu.cpu.edges import Edges, all_of, workers_for
from tcgpu.cpu.orders import in_order
from tcgpu.engines.native import fetch_add, inline, jit, run_threads, shares, stoppable, stopped

FEW_WORKERS = 4  # no more than these have an array of all edges, or vertices, each;
FEW_IN_PART = 2  # of a part's
CHUNK = 128  # vertices a worker takes at a time
ALIKE = 8  # one look-up in so many that finds otherwise than the rest costs more as a branch than without

I64 = np.int64
U64 = np.uint64


def triangles(graph, order="auto"):
    """How many triangles each vertex is in (int64, n); `order` is the one to count in, not of the result."""
    own = in_order(graph, order, "triangles")
    (_, found), = tally(own, False)  # fmt: skip
    return found if own is graph else found[own.rank]


def support(graph, order="auto"):
    """How many triangles each edge is in (int64, m), edge by edge as in `row_idx`."""
    own = in_order(graph, order, "support")
    (_, found), = tally(own, True)  # fmt: skip
    return carried_back(graph, own, found.astype(np.int64))


def tally(graph, by_edge, part=None, workers=None):
    """The triangles at each edge (int32) or vertex (int64), in the order that a graph has: [(where it begins, array)].

    Of all edges it is one array from 0 on. Of a part they are those edges or vertices that its triangles can have: two
    arrays, that of the edges' u and that of their v and beyond, or one where they touch.
    """
    few = FEW_WORKERS if part is None else FEW_IN_PART
    workers = workers_for(part or all_of(graph), workers)
    if part is None:
        base = first_dense(graph)
        reach = Reach(0, base, 0, graph.n, graph.n)
        part = Edges(0, int(graph.col_ptr[base]), 0, graph.n)
    else:
        base = graph.n
        reach = _reach(graph, part)
    spans = reach.edges(graph.col_ptr) if by_edge else reach.vertices()
    shared = None if workers <= few else True  # where nothing is, atomic steps are not compiled
    copies = 1 if shared or base == 0 else workers
    found = [np.zeros((copies, high - low), np.int32 if by_edge else np.int64) for low, high in spans]
    if base < graph.n:
        add_dense(graph, base, by_edge, found[0][0], workers)
    if base:
        _tally_wedges(graph, part, reach, by_edge, spans, found, shared, workers)
    for array in found:
        for others in array[1:]:
            array[0] += others
    return [(low, array[0]) for (low, _), array in zip(spans, found)]


def _tally_wedges(graph, part, reach, by_edge, spans, found, shared, workers):
    """Add the triangles u < v < w of the edges (u, v) of a part to `found`, the arrays of `spans`."""
    start, lists = _wedges(graph, part, reach, workers)
    edge0, columns = (0, None) if by_edge else _columns(graph, reach)
    marks = np.zeros((workers, graph.n), np.int32)
    counters = np.zeros((workers, graph.max_column + 4), np.int32)
    kernel = (_tally_edges if shared else _tally_apart) if by_edge else _tally_vertices
    origins = (reach.v_low, edge0, spans[0][0], spans[-1][0])
    queue = _chunks(reach)
    args = [start, lists, columns, queue, marks, counters, found[0], found[-1]]
    args += [origins if any(origins) else None, *(() if by_edge else (shared,))]
    stop = stoppable(queue, part.last - part.first)
    run_threads(kernel, graph.col_ptr, graph.row_idx, *args, workers=workers, queue=stop)


def carried_back(graph, own, values):
    """A value for each edge of `own`, the same graph in another order, edge by edge as in `graph`."""
    if own is graph:
        return values
    back = np.empty_like(values)
    run_threads(_carry_back, graph.col_ptr, graph.row_idx, own.rank, own.col_ptr, own.row_idx, values, back,
                workers=shares(graph.m))  # fmt: skip
    return back


def widened(values):
    """int32 numbers as int64, by all threads: most of that is to have the memory."""
    wide = np.empty(values.size, np.int64)
    run_threads(_widen, values, wide, workers=shares(values.size))
    return wide


def _widen(worker, workers, values, wide):
    part = slice(values.size * worker // workers, values.size * (worker + 1) // workers)
    wide[part] = values[part]  # NumPy lets other threads run meanwhile


def sum_exactly(values):
    """The sum of int64 values as a Python int, however large."""
    halves = int((values >> 32).sum()), int((values & 0xFFFFFFFF).sum())
    return (halves[0] << 32) + halves[1]


def list_triangles(graph, chunk=1 << 20, order="auto"):
    """Every triangle once, as int32 arrays of shape (at most `chunk`, 3); in a row j < i < k."""
    if chunk < 1:
        raise ValueError(f"a chunk holds at least 1 triangle, not {chunk}")
    own = in_order(graph, order, "triangles")
    part = all_of(own)
    reach, workers = _reach(own, part), workers_for(part)
    start, lists = _wedges(own, part, reach, workers)
    marks = np.zeros((workers, own.n), np.int32)
    found = np.zeros(own.m, np.int64)  # triangles over each wedge list, in their order
    queue = _chunks(reach)
    run_threads(_count_wedges, own.col_ptr, own.row_idx, start, lists, queue, marks, found, workers=workers,
                queue=stoppable(queue, part.last - part.first))  # fmt: skip
    ends = np.cumsum(found)
    source = None if own is graph else np.argsort(own.rank).astype(np.int32)
    first = done = 0
    while first < own.m and done < ends[-1]:
        last = max(first + 1, int(np.searchsorted(ends, done + chunk, side="right")))
        rows = np.empty((int(ends[last - 1]) - done, 3), np.int32)
        _list_wedges(own.col_ptr, own.row_idx, own.col_of, start, lists, first, last, marks[0], rows)
        if source is not None:
            rows = np.sort(source[rows], axis=1)
        for at in range(0, len(rows), chunk):
            yield rows[at : at + chunk]
        first, done = last, int(ends[last - 1])


def _chunks(reach):
    """The number of the next chunk of middle vertices to take, and how many chunks there are."""
    return np.array([0, -(-(reach.v_high - reach.v_low) // CHUNK)], np.int64)


class Reach(NamedTuple):
    """What a part's triangles u < v < w can be made of: ranges of vertices, and the edges in the columns of u."""

    u_low: int
    u_high: int
    v_low: int
    v_high: int
    w_high: int

    def vertices(self):
        """The range of u, and that of v and w; or one, if they touch."""
        return _merged((self.u_low, self.u_high), (self.v_low, self.w_high))

    def edges(self, col_ptr):
        """The ranges of edges in the columns of u, and of v; or one."""
        at = [int(col_ptr[end]) for end in self[:4]]
        return _merged((at[0], at[1]), (at[2], at[3]))


def _merged(near, far):
    return [(near[0], max(near[1], far[1]))] if far[0] <= near[1] else [near, far]


def _reach(graph, part):
    if part.last - part.first == graph.m and part.low == 0 and part.high >= graph.n:
        return Reach(0, graph.n, 0, graph.n, graph.n)
    return Reach(*_find_reach(graph.col_ptr, graph.row_idx, part.first, part.last, part.low, part.high).tolist())


def _wedges(graph, part, reach, workers):
    """For every vertex v, the lists to look up in its column: of each smaller neighbour u the rows behind v.

    Returns `(start, lists)`: those of v are `lists[start[v - v_low]:start[v - v_low + 1]]`, each the first and last
    position in `row_idx`; the position before the first is the edge (u, v) itself.
    """
    start = np.zeros(reach.v_high - reach.v_low + 1, np.int64)
    if part == all_of(graph):
        np.cumsum(graph.degrees - graph.column_lengths, out=start[1:])
    elif reach.v_low == part.first == 0 and reach.v_high == graph.n:
        np.cumsum(occurrences(graph.row_idx[: part.last], graph.n), out=start[1:])
    else:
        run_threads(_count_middles, graph.row_idx, part.first, part.last, reach.v_low, start, workers=workers)
        np.cumsum(start, out=start)
    many = int(start[-1])
    lists = np.empty((many, 2), np.int32 if graph.m < 2**31 else np.int64)
    cuts = np.searchsorted(start, np.arange(workers + 1) * many // workers)
    cuts[0], cuts[-1] = 0, start.size - 1
    last = part.last if part.last < graph.col_ptr[reach.u_high] else None  # no column is then cut
    queue = np.zeros(1, np.int64)
    run_threads(_fill_wedges, graph.col_ptr, graph.row_idx, part.first, last, reach.u_low, reach.u_high, reach.v_low,
                cuts, queue, start[:-1].copy(), lists,
                workers=workers, queue=stoppable(queue, part.last - part.first))  # fmt: skip
    return start, lists


def _columns(graph, reach):
    """The u of each edge in the columns that a Reach has them in, and where these edges begin."""
    if reach.u_low == reach.v_low == 0 and reach.v_high == graph.n:
        return 0, graph.col_of
    pointers = graph.col_ptr[reach.u_low : reach.u_high + 1]
    own = np.arange(reach.u_low, reach.u_high, dtype=np.int32)
    return int(pointers[0]), np.repeat(own, np.diff(pointers))


@inline
def _first_from(row_idx, begin, end, row):
    """The first position in begin..end - 1 whose row is `row` or more, or `end`."""
    while begin < end:
        middle = (begin + end) >> 1
        if row_idx[U64(middle)] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def _find_reach(col_ptr, row_idx, first, last, low, high):
    """The ends of a Reach, as small as they can be."""
    u_low, u_high, v_low, v_high, w_high = col_ptr.size, I64(0), I64(high), I64(low), I64(0)
    u = np.searchsorted(col_ptr, first, side="right") - 1
    at = I64(first)
    while at < last:
        end = col_ptr[U64(u + 1)]
        here = min(end, last)
        if at < here:
            begin, stop = at, here
            if row_idx[U64(at)] < low or row_idx[U64(here - 1)] >= high:
                begin = _first_from(row_idx, at, here, low)
                stop = _first_from(row_idx, begin, here, high)
            if begin < stop:
                u_low, u_high = min(u_low, u), u + 1
                v_low, v_high = min(v_low, I64(row_idx[U64(begin)])), max(v_high, I64(row_idx[U64(stop - 1)]) + 1)
                w_high = max(w_high, I64(row_idx[U64(end - 1)]) + 1)
        at = here
        u += 1
    if u_high == 0:
        return np.zeros(5, np.int64)
    return np.array([u_low, u_high, v_low, v_high, w_high])


@jit
def _count_middles(worker, workers, row_idx, first, last, v_low, start):
    """How many lists each middle vertex has, one place behind its own; every worker counts those of its share."""
    middles = start.size - 1
    low, high = v_low + middles * worker // workers, v_low + middles * (worker + 1) // workers
    for k in range(first, last):
        v = I64(row_idx[U64(k)])
        if low <= v < high:
            start[U64(v - v_low + 1)] += 1


@jit
def _fill_wedges(worker, workers, col_ptr, row_idx, first, last, u_low, u_high, v_low, cuts, queue, put, lists):
    """Every worker reads all edges and fills the lists of its own share of the middle vertices, each in order of u."""
    low, high = v_low + cuts[worker], v_low + cuts[worker + 1]
    begin = max(first, col_ptr[u_low])
    for u in range(u_low, min(u_high, high)):
        if stopped(queue):
            return
        end = col_ptr[U64(u + 1)]
        for k in range(begin, end if last is None else min(last, end)):
            v = I64(row_idx[U64(k)])
            if low <= v < high:
                at = put[U64(v - v_low)]
                lists[U64(at), 0] = k + 1
                lists[U64(at), 1] = end
                put[U64(v - v_low)] = at + 1
        begin = end


@inline
def _mark_places(row_idx, begin, end, marks):
    for k in range(begin, end):
        marks[U64(row_idx[U64(k)])] = k - begin + 4


@inline
def _unmark(row_idx, begin, end, marks):
    for k in range(begin, end):
        marks[U64(row_idx[U64(k)])] = 0


@jit
def _tally_vertices(
    worker, workers, col_ptr, row_idx, start, lists, columns, queue, all_marks, all_counters, nears, fars, origins,
    shared,
):  # fmt: skip
    """Add its triangles to every vertex: u's in `near`, from vertex `near0` on, those of v and w in `far`.

    Where about every look-up finds the same, as those of the chunk before did, it is a branch. Elsewhere it needs none:
    what is not in v's column has place 0, and goes into a counter that is never read.
    """
    marks, counters, near = all_marks[worker], all_counters[worker], nears[worker if shared is None else 0]
    middles = start.size - 1
    if origins is None:
        v_low = edge0 = near0 = far0 = 0
        far = near
    else:
        v_low, edge0, near0, far0 = origins
        far = fars[worker if shared is None else 0]
    looked, hits = I64(0), I64(0)  # in the chunk before
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        alike = min(hits, looked - hits) * ALIKE <= looked
        looked, hits = I64(0), I64(0)
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
            if stopped(queue):
                return
            begin, end = col_ptr[U64(v_low + v)], col_ptr[U64(v_low + v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            _mark_places(row_idx, begin, end, marks)
            total = I64(0)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                first, last = I64(lists[U64(q), 0]), I64(lists[U64(q), 1])
                closed = np.int32(0)
                if alike:
                    for k in range(first, last):
                        place = marks[U64(row_idx[U64(k)])]
                        if place:
                            counters[U64(place)] += np.int32(1)
                            closed += np.int32(1)
                else:
                    for k in range(first, last):
                        place = marks[U64(row_idx[U64(k)])]
                        hit = np.int32(place > 0)
                        counters[U64(place | np.int32(k) & np.int32(3) & (hit - np.int32(1)))] += np.int32(1)
                        closed += hit
                looked += last - first
                if closed:
                    u = I64(columns[U64(first - 1 - edge0)]) - near0
                    if shared is None:
                        near[U64(u)] += I64(closed)
                    else:
                        fetch_add(near, u, I64(closed))
                    total += I64(closed)
            hits += total
            if shared is None:
                far[U64(v_low + v - far0)] += total
            elif total:
                fetch_add(far, v_low + v - far0, total)
            for k in range(begin, end):
                counted = counters[U64(k - begin + 4)]
                counters[U64(k - begin + 4)] = 0
                if shared is None:
                    far[U64(I64(row_idx[U64(k)]) - far0)] += I64(counted)
                elif counted:
                    fetch_add(far, I64(row_idx[U64(k)]) - far0, I64(counted))
            _unmark(row_idx, begin, end, marks)


@jit
def _tally_edges(
    worker, workers, col_ptr, row_idx, start, lists, columns, queue, all_marks, all_counters, nears, fars, origins
):  # fmt: skip
    """Add its triangles to every edge: those in the columns of u in `near`, those in v's in `far`.

    Only the edge (u, w) is added to triangle by triangle; the other two wait in a sum or in their counter.
    """
    marks, counters, near = all_marks[worker], all_counters[worker], nears[0]
    middles = start.size - 1
    if origins is None:
        v_low = near0 = far0 = 0
        far = near
    else:
        v_low, _, near0, far0 = origins
        far = fars[0]
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
            if stopped(queue):
                return
            begin, end = col_ptr[U64(v_low + v)], col_ptr[U64(v_low + v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            _mark_places(row_idx, begin, end, marks)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                first = I64(lists[U64(q), 0])
                closed = np.int32(0)
                for k in range(first, I64(lists[U64(q), 1])):
                    place = marks[U64(row_idx[U64(k)])]
                    if place:
                        closed += np.int32(1)
                        counters[U64(place)] += np.int32(1)
                        fetch_add(near, k - near0, np.int32(1))
                if closed:
                    fetch_add(near, first - 1 - near0, closed)
            for k in range(begin, end):
                counted = counters[U64(k - begin + 4)]
                counters[U64(k - begin + 4)] = 0
                if counted:
                    fetch_add(far, k - far0, counted)
            _unmark(row_idx, begin, end, marks)


@jit
def _tally_apart(
    worker, workers, col_ptr, row_idx, start, lists, columns, queue, all_marks, all_counters, nears, fars, origins
):  # fmt: skip
    """Add its triangles to every edge as `_tally_edges` does, where nothing is shared, nor needs a branch."""
    marks, counters, near = all_marks[worker], all_counters[worker], nears[worker]
    middles = start.size - 1
    if origins is None:
        v_low = near0 = far0 = 0
        far = near
    else:
        v_low, _, near0, far0 = origins
        far = fars[worker]
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
            if stopped(queue):
                return
            begin, end = col_ptr[U64(v_low + v)], col_ptr[U64(v_low + v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            _mark_places(row_idx, begin, end, marks)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                first = I64(lists[U64(q), 0])
                closed = np.int32(0)
                for k in range(first, I64(lists[U64(q), 1])):
                    place = marks[U64(row_idx[U64(k)])]
                    hit = np.int32(place > 0)
                    counters[U64(place)] += np.int32(1)
                    near[U64(k - near0)] += hit
                    closed += hit
                near[U64(first - 1 - near0)] += closed
            for k in range(begin, end):
                far[U64(k - far0)] += counters[U64(k - begin + 4)]
                counters[U64(k - begin + 4)] = 0
            _unmark(row_idx, begin, end, marks)


@jit
def _carry_back(worker, workers, col_ptr, row_idx, rank, own_ptr, own_idx, values, back):
    """The value of each edge from another numbering's columns, found there by binary search."""
    n = col_ptr.size - 1
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            a, b = rank[U64(j)], rank[U64(row_idx[U64(k)])]
            column, row = U64(min(a, b)), max(a, b)
            at, left = own_ptr[column], own_ptr[column + U64(1)] - own_ptr[column]
            while left > 1:  # without a branch on what is found: it could not be predicted
                half = left >> 1
                at += half * I64(own_idx[U64(at + half - 1)] < row)
                left -= half
            back[U64(k)] = values[U64(at)]


@jit
def _count_wedges(worker, workers, col_ptr, row_idx, start, lists, queue, all_marks, found):
    """How many triangles each list closes."""
    marks = all_marks[worker]
    n = col_ptr.size - 1
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            if stopped(queue):
                return
            begin, end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
            _mark_places(row_idx, begin, end, marks)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                for k in range(I64(lists[U64(q), 0]), I64(lists[U64(q), 1])):
                    found[U64(q)] += marks[U64(row_idx[U64(k)])] > 0
            _unmark(row_idx, begin, end, marks)


@jit
def _list_wedges(col_ptr, row_idx, col_of, start, lists, first, last, marks, rows):
    """The triangles over `lists[first:last]`, one a row."""
    put = 0
    v = np.searchsorted(start, first, side="right") - 1
    while v < col_ptr.size - 1 and start[v] < last:
        begin, end = col_ptr[v], col_ptr[v + 1]
        _mark_places(row_idx, begin, end, marks)
        for q in range(max(first, start[v]), min(last, start[v + 1])):
            for k in range(I64(lists[q, 0]), I64(lists[q, 1])):
                if marks[row_idx[k]]:
                    rows[put, 0] = col_of[lists[q, 0] - 1]
                    rows[put, 1] = v
                    rows[put, 2] = row_idx[k]
                    put += 1
        _unmark(row_idx, begin, end, marks)
        v += 1
