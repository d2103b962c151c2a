"""Triangles per vertex, per edge, and one by one.

Triangles among the last vertices, if these are dense, are found from rows of bits (`neighbourhoods`). Others are found
in the way that is estimated to be fastest: at each edge, from packed words of whole neighbourhoods or from columns, as
in a count (`edge_tally`). Per vertex, those with two dense vertices are found from rows of bits, too. Per
edge, others may be found from their middle vertex v, whose column is marked: for each smaller neighbour u the rows
after v in u's column (a wedge list) are looked up in the marks, which gives the positions of all three edges.

All results are the same for any number of threads. A part of the edges (u, v) is tallied from columns alone.
Results are arrays of all vertices or edges, but a part writes only to the ranges that its triangles can touch; the
system provides no memory for pages that are never written. Besides these ranges, a part needs for each worker a bit
for each vertex, and per edge an int32.
"""

import functools
from itertools import islice
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu.arrays import blocks, running_sums
from tcgpu.clean import occurrences
from tcgpu.cpu import small
from tcgpu.cpu.edge_tally import add, add_at_edges
from tcgpu.cpu.edges import Edges, all_edges, marking_workers, takes_any_v, workers_for
from tcgpu.cpu.finding import FAR, NEAR, Emitter, finder, run
from tcgpu.cpu.neighbourhoods import add_dense, add_dense_pairs, dense_rows, word_tally
from tcgpu.cpu.orders import in_order, tally_plan
from tcgpu.engines.choice import NUMBA
from tcgpu.engines.native import fetch_add, inline, jit, prefetch, run_threads, shares, stoppable, stopped, uncounted

MAX_COPIES = 4  # up to this many workers each have a result array; more workers share one, with atomic additions
CHUNK = 128  # middle vertices that a worker takes at a time
AHEAD = 8  # how many wedge lists ahead to prefetch the first rows of one
ROWS, MAX_ROWS = 1 << 18, 1 << 24  # triangles in the arrays of `list_triangles`: at least, at most

I64 = np.int64
U64 = np.uint64


def triangles(graph, order="auto"):
    """The number of triangles at each vertex (int64), in the graph's own order. order: the order to count in."""
    ordered = in_order(graph, order, "triangles")
    if ordered.max_column < 2:
        return np.zeros(graph.n, np.int64)
    found = tally(ordered, False)[0][1]
    return widened(found) if ordered is graph else _moved(found, ordered.rank, np.int64)


def support(graph, order="auto"):
    """The number of triangles at each edge (int64), in the order of `row_idx`. order: as in `triangles`."""
    ordered = in_order(graph, order, "support")
    if ordered.max_column < 2:
        return np.zeros(graph.m, np.int64)
    found = tally(ordered, True)[0][1]
    return widened(found) if ordered is graph else _moved(found, positions_in(ordered, graph), np.int64)


def _tallies(graph, by_edge, workers=None):
    """The triangles at each edge or vertex: some arrays, which have to be added up."""
    plan, workers = tally_plan(graph, by_edge), workers_for(all_edges(graph), workers)
    if plan.method == "words":
        return word_tally(graph, by_edge, workers)
    base, part = plan.base, Edges(0, int(graph.col_ptr[plan.base]), 0, graph.n)
    shared = workers > MAX_COPIES
    found = _zeros(1 if shared or not part.last else workers, graph, by_edge)
    if base < graph.n:
        bits = dense_rows(graph, base, workers)
        add_dense(graph, base, bits, by_edge, found[0], workers)
    if not part.last:
        return found
    if by_edge and plan.method == "wedges":
        _add_wedges(graph, base, found, shared, workers)
    elif by_edge or base == graph.n:
        add_at_edges(graph, part, by_edge, found, shared, workers)
    else:
        add_at_edges(graph, part._replace(high=base), by_edge, found, shared, workers)
        add_dense_pairs(graph, base, bits, found, shared, workers)
    return found


def _zeros(copies, graph, by_edge):
    """Arrays for the triangles at each edge, fewer than n, or vertex, at most m: each has another edge opposite."""
    return np.zeros((copies, graph.m if by_edge else graph.n), np.int32 if by_edge or graph.m < 2**31 else np.int64)


def tally(graph, by_edge, part=None, workers=None):
    """The triangles at each edge or vertex, in the graph's own order: a list of (first, array).

    Without a part there is one array, from 0 on. With a part, only triangles u < v < w whose edge (u, v) is in it are
    tallied; there are then two arrays, for the ranges of u and of v, or one if these overlap.
    """
    if not NUMBA:
        return [(0, (small.support if by_edge else small.triangles)(graph, part=part))]
    if part is None:
        found, spans = _tallies(graph, by_edge, workers), [(0, graph.m if by_edge else graph.n)]
    else:
        workers, spans = workers_for(part, workers), _spans(graph, part, by_edge)
        shared = workers > MAX_COPIES
        found = _zeros(1 if shared else workers, graph, by_edge)
        add_at_edges(graph, part, by_edge, found, shared, workers)
    for low, high in spans:
        for other in found[1:]:
            found[0, low:high] += other[low:high]
    return [(low, found[0, low:high]) for low, high in spans]


def _add_wedges(graph, base, found, shared, workers):
    """Add the triangles u < v < w with u < base to `found`, at each edge."""
    workers = marking_workers(graph, workers)
    start, lists = _wedges(graph, base, workers)
    marks = np.zeros((workers, graph.n), np.int32)
    counters = np.zeros((workers, graph.max_column + 1), np.int32)
    queue = np.array([0, -(-graph.n // CHUNK)], np.int64)  # the next chunk, how many there are
    run_threads(_tally, graph.col_ptr, graph.row_idx, start, lists, queue, marks, counters, found,
                True if shared else None,
                workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip


def in_edge_order_of(graph, ordered, values):
    """Values for the edges of `ordered`, the same graph in another order, in the order of `graph`'s edges."""
    return values if ordered is graph else _moved(values, positions_in(ordered, graph), values.dtype)


def _moved(values, at, dtype):
    return _made(at.size, dtype, lambda part: values[at[part]])


def widened(values):
    """An int32 array as int64."""
    return _made(values.size, np.int64, lambda part: values[part])


def _made(size, dtype, values):
    """An array of the values of each part, by all threads: most of the time goes into first touching the memory."""
    made = np.empty(size, dtype)

    def fill(worker, workers):
        for part in islice(blocks(size), worker, None, workers):
            made[part] = values(part)  # NumPy releases the GIL here

    run_threads(fill, workers=shares(size))
    return made


_known_positions = WeakKeyDictionary()  # a graph in another order -> the position in it of each edge


def positions_in(ordered, graph):
    """The position in `ordered`, the same graph in another order, of each edge of `graph`."""
    if ordered not in _known_positions:
        found = np.empty(graph.m, np.int32 if graph.m < 2**31 else np.int64)
        run_threads(_find_edges, graph.col_ptr, graph.row_idx, ordered.rank, ordered.col_ptr, ordered.row_idx, found,
                    workers=shares(graph.m))  # fmt: skip
        _known_positions[ordered] = found
    return _known_positions[ordered]


def list_triangles(graph, chunk=1 << 20, order="auto"):
    """Yield every triangle once, as int32 arrays of shape (at most `chunk`, 3). A row holds vertices j < i < k."""
    ordered = in_order(graph, order, "triangles")
    renumbered = ordered is not graph
    find, source = _listing_finder(renumbered), np.empty(ordered.n if renumbered else 0, np.int64)
    if renumbered:
        source[ordered.rank] = np.arange(ordered.n)
    most = _most_triangles(ordered)
    at_once = max(min(max(chunk, ROWS), MAX_ROWS, int(most[-1])), ordered.max_column)
    bitmaps, hits = np.zeros((1, ordered.n // 64 + 1), np.uint64), np.empty((1, ordered.max_column), np.int32)
    first = 0
    while first < ordered.m:
        last = int(np.searchsorted(most, most[first] + at_once, side="right")) - 1
        part, first = Edges(first, last, 0, ordered.n), last
        rows, listed = np.empty((at_once, 3), np.int32), np.zeros(1, np.int64)
        run(find, ordered, part, 1, True, bitmaps, None, hits, (rows, listed, source), None, None, None)
        for at in range(0, listed[0], chunk):
            yield rows[at : min(at + chunk, listed[0])]


def _most_triangles(graph):
    """The most triangles u < v < w that all edges (u, v) before each one may have: running sums."""
    most, lengths = np.empty(graph.m, np.int64), graph.column_lengths
    for block in blocks(graph.m):
        after = graph.col_ptr[1:][graph.col_of[block]] - np.arange(block.start + 1, block.stop + 1)
        most[block] = np.minimum(after, lengths[graph.row_idx[block]])
    return running_sums(most)


@functools.cache
def _listing_finder(renumbered):
    """The loop that lists triangles; the state is an array of rows, how many of these are filled, and, if the vertices
    are renumbered, their numbers for the caller."""

    @inline
    def begin(state, worker):
        return uncounted(state[0]), uncounted(state[1]), uncounted(state[2])

    @inline
    def triangle(own, u, v, w, uv, uw, vw):
        rows, listed, source = own
        at = U64(listed[0])
        if renumbered:
            a, b, c = source[U64(u)], source[U64(v)], source[U64(w)]
            u, w = min(a, b, c), max(a, b, c)
            v = a + b + c - u - w
        rows[at, 0], rows[at, 1], rows[at, 2] = u, v, w
        listed[0] += 1

    return finder(Emitter(begin, triangle))


def _spans(graph, part, by_edge):
    """The ranges of edges or vertices that the triangles u < v < w of a part can have: those of u and of v; or one.

    Per vertex, that of v is also that of w.
    """
    rows = graph.row_idx[part.first : part.last]
    if not takes_any_v(part, graph):
        rows = rows[(part.low <= rows) & (rows < part.high)]
    if not rows.size:
        return [(0, 0)]
    u_ends = [np.searchsorted(graph.col_ptr, part.first, side="right") - 1, np.searchsorted(graph.col_ptr, part.last)]
    v_ends = [rows.min(), rows.max() + 1]
    if by_edge:
        u_ends, v_ends = graph.col_ptr[u_ends], graph.col_ptr[v_ends]
    else:
        v_ends[1] = graph.row_idx[slice(*graph.col_ptr[u_ends])].max() + 1
    (low, near), (far, high) = map(int, u_ends), map(int, v_ends)
    return [(low, max(near, high))] if far <= near else [(low, near), (far, high)]


def _wedges(graph, base, workers):
    """The wedge lists of every middle vertex v: for each smaller neighbour u < base, the rows after v in u's column.

    Returns `(start, lists)`. The lists of v are `lists[start[v]:start[v + 1]]`, in order of u. Each holds the first
    position in `row_idx` and the one after the last; the position before the first is the edge (u, v).
    """
    edges = int(graph.col_ptr[base])
    of_all = edges == graph.m
    smaller = graph.degrees - graph.column_lengths if of_all else occurrences(graph.n, graph.row_idx[:edges])
    start = running_sums(smaller)
    lists = np.empty((edges, 2), np.int32 if graph.m < 2**31 else np.int64)
    cuts = np.searchsorted(start, np.arange(workers + 1) * edges // workers)  # each worker's share of the v
    cuts[0], cuts[-1] = 0, graph.n
    queue = np.zeros(1, np.int64)
    run_threads(_fill_wedges, graph.col_ptr, graph.row_idx, base, cuts, queue, start[:-1].copy(), lists,
                workers=workers, queue=stoppable(queue, edges))  # fmt: skip
    return start, lists


@jit
def _fill_wedges(worker, workers, col_ptr, row_idx, base, cuts, queue, put, lists):
    """Read all edges, and fill the lists of this worker's share of the middle vertices."""
    low, high = cuts[worker], cuts[worker + 1]
    for u in range(min(base, high)):
        if stopped(queue):
            return
        end = col_ptr[U64(u + 1)]
        for k in range(col_ptr[U64(u)], end):
            v = I64(row_idx[U64(k)])
            if low <= v < high:
                at = put[U64(v)]
                lists[U64(at), 0] = k + 1
                lists[U64(at), 1] = end
                put[U64(v)] = at + 1


@jit
def _tally(
    worker, workers, col_ptr, row_idx, start, lists, queue, all_marks, all_counters, all_found, shared,
):  # fmt: skip
    """Add the triangles u < v < w at (u, v) once a list, at (u, w) one by one, at (v, w) in a counter.

    shared: None if every worker has its own array; then no atomic additions are compiled. Only where each hit takes an
    atomic addition is there a branch, which cannot be predicted; else rows that miss are counted in counter 0.
    """
    marks, counters = all_marks[worker], all_counters[worker]
    found = uncounted(all_found[worker if shared is None else 0])
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(start.size - 1, (chunk + 1) * CHUNK)):
            if stopped(queue):
                return
            begin, end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            for k in range(begin, end):
                marks[U64(row_idx[U64(k)])] = k - begin + 1
            for q in range(start[U64(v)], start[U64(v + 1)]):
                if q + AHEAD < lists.shape[0]:
                    prefetch(row_idx, I64(lists[U64(q + AHEAD), 0]))
                    prefetch(found, I64(lists[U64(q + AHEAD), 0]))
                first, closed = I64(lists[U64(q), 0]), np.int32(0)
                for k in range(first, I64(lists[U64(q), 1])):
                    place = marks[U64(row_idx[U64(k)])]
                    if shared is None or place:
                        hit = np.int32(place > 0)
                        counters[U64(place)] += np.int32(1)
                        closed += hit
                        add(found, k, hit, shared)
                add(found, first - 1, closed, shared)
            for k in range(begin, end):
                add(found, k, counters[U64(k - begin + 1)], shared)
                counters[U64(k - begin + 1)] = 0
                marks[U64(row_idx[U64(k)])] = 0


@jit
def _find_edges(worker, workers, col_ptr, row_idx, rank, own_ptr, own_idx, found):
    """The position of each edge in the columns of another vertex order, by binary search."""
    n, m = col_ptr.size - 1, row_idx.size
    for j in range(n * worker // workers, n * (worker + 1) // workers):
        a = rank[U64(j)]
        for k in range(col_ptr[U64(j)], col_ptr[U64(j + 1)]):
            if k + FAR < m:  # most often there are more edges of vertex j
                prefetch(own_ptr, min(a, rank[U64(row_idx[U64(k + FAR)])]))
                near = U64(min(a, rank[U64(row_idx[U64(k + NEAR)])]))
                prefetch(own_idx, own_ptr[near] + own_ptr[near + U64(1)] >> 1)
            b = rank[U64(row_idx[U64(k)])]
            column, row = U64(min(a, b)), max(a, b)
            at, left = own_ptr[column], own_ptr[column + U64(1)] - own_ptr[column]
            while left > 1:  # no branch depends on the rows: it could not be predicted
                half = left >> 1
                at += half * I64(own_idx[U64(at + half - 1)] < row)
                left -= half
            found[U64(k)] = at
