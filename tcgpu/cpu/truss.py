"""k-trusses on all cores of a CPU: edges are peeled off, those in the fewest triangles first.

What is left of the graph is kept as whole neighbourhoods, for a triangle may break at any of its edges. A round takes
the frontier, all edges that are in too few triangles now, at once: of each, the longer neighbourhood is marked and the
shorter looked up in it, which finds the triangles that break, and the other two edges of each lose one. Edges of the
frontier that share their longer neighbourhood share its marks. A triangle with two edges in the frontier is for the
first of them to break. Peeled edges leave both neighbourhoods at once, the last ones there taking their places.

Truss numbers come level by level. So that not every level looks through all edges, a window of levels is opened at a
time and its edges are kept in a list of their own; behind each window what is left is numbered anew, if it has become
so much less that a smaller graph, closer together in the caches, pays.
"""

from typing import NamedTuple

import numpy as np

from tcgpu import cpu
from tcgpu.engines.native import fetch_add, jit, run_threads, stoppable, stopped, threads

GONE = np.int32(-(1 << 31))  # in place of its support: the edge was peeled in an earlier round
LEFT = np.int32(-(1 << 20))  # below: it is in the frontier, its place there added to GONE + 1; an edge that is left may
# be short of 0 for a moment, by no more than there are threads
SHRINK = 0.5  # with fewer edges left than this share, they are numbered anew
FEW = 0.3  # with less than this share of weak edges, breaking their triangles beats counting all others anew
LARGE = 100_000  # so many look-ups in a round are worth waking the other cores,
LARGE_ALONE = 1 << 22  # or, where there is no other core, are to be stopped half-way
LONGEST = 1 << 24  # look-ups after which a call returns to Python, where it can be interrupted
TAKEN = 4  # neighbourhoods a worker takes at a time

I32 = np.int32
I64 = np.int64
U64 = np.uint64

DONE, SHARED, MORE = range(3)  # what comes after a call of `_next_round`

# the shared counters
STOP, LEVEL, END, LISTED, BEGIN, PEELED, FOUND, HUBS, QUEUE = range(9)  # the first one is what `stopped` looks at


class Rest(NamedTuple):
    """What is left of a graph: its edges, and every vertex's neighbourhood with the numbers of the edges."""

    origin: np.ndarray  # the edge's number in the graph
    support: np.ndarray  # int32; the triangles that it is in now, or GONE
    first: np.ndarray
    second: np.ndarray
    indptr: np.ndarray
    length: np.ndarray  # how many are left of a neighbourhood: its first ones, in no order
    indices: np.ndarray
    edge: np.ndarray
    in_first: np.ndarray  # the edge's place in the neighbourhood of its first vertex
    in_second: np.ndarray


class Scratch(NamedTuple):
    """Memory for a Rest and all that come after it."""

    counters: np.ndarray
    near: np.ndarray  # the edges of the window
    peeled: np.ndarray  # edges in the order in which they go; the frontier is `peeled[BEGIN:PEELED]`
    head: np.ndarray  # of a vertex, the first of the frontier's edges that look it up,
    link: np.ndarray  # of an edge, the next
    hubs: np.ndarray  # the vertices that are looked up in this round
    marks: np.ndarray  # for each worker, a place in the marked neighbourhood for every vertex
    bases: np.ndarray  # for each worker, what that place counts from, past all earlier marks
    hits: np.ndarray  # for each worker, the places in both neighbourhoods


def peel(graph, k):
    """Which edges the k-truss keeps: bool, edge by edge as in `row_idx`."""
    own = cpu.in_order(graph, "auto", "support")
    left, origin = own, np.arange(own.m)
    while k > 2:
        left, origin = _without(left, origin, _ends_reach(left, k - 1))
        support = cpu.support(left, "natural")
        strong = support >= k - 2
        weak = left.m - int(strong.sum())
        if 0 < weak < FEW * left.m and k > 3:
            strong = _peel_weak(left, support, k - 3)
        left, origin = _without(left, origin, strong)
        if weak <= FEW * left.m or k == 3:  # a weak edge of k = 3 is in no triangle: there is none to break
            break
    keep = np.zeros(own.m, np.int32)
    keep[origin] = 1
    return cpu.carried_back(graph, own, keep) > 0


def numbers(graph):
    """The truss number of each edge (int32), edge by edge as in `row_idx`."""
    own = cpu.in_order(graph, "auto", "support")
    support = cpu.support(own, "natural").astype(np.int32)
    found = np.full(own.m, 2, np.int32)
    left = np.flatnonzero(support)
    if _alike(support[left]):  # also where there are none: no triangle need be broken
        found[left] += support[left]
        return cpu.carried_back(graph, own, found)
    rest = _rest(left, support, own.col_of, own.row_idx, own.n)
    scratch = _scratch(rest)
    while rest.origin.size:
        _open_window(rest.support, np.zeros(int(rest.support.max()) + 2, np.int64), scratch.near, scratch.counters)
        _peel_window(rest, scratch, found)
        left = np.flatnonzero(rest.support >= 0)
        if _alike(rest.support[left]):
            found[rest.origin[left]] = rest.support[left] + 2
            break
        if left.size <= SHRINK * rest.origin.size:
            rest = _rest(left, rest.support, rest.first, rest.second, rest.indptr.size - 1, rest.origin)
    return cpu.carried_back(graph, own, found)


def _alike(support):
    """Whether edges are all in as many triangles: all go in one round then, and have the same truss number."""
    return support.size == 0 or support.min() == support.max()


def _ends_reach(graph, degree):
    """Which edges join two vertices that have this degree; all where hardly any edge does not."""
    reach = graph.degrees >= degree
    if graph.degrees[~reach].sum() < FEW * graph.m:
        return np.ones(graph.m, bool)
    rows, cols = graph.edges()
    return reach[rows] & reach[cols]


def _without(graph, origin, keep):
    """The graph of the edges to keep, and what these were called before."""
    return (graph, origin) if keep.all() else (graph.kept(keep), origin[keep])


def _peel_weak(graph, support, level):
    """Which edges stay when those in at most `level` triangles go, and those that then are, until there is none."""
    support = support.astype(np.int32)
    rest = _rest(np.arange(graph.m), support, graph.col_of, graph.row_idx, graph.n)
    scratch = _scratch(rest)
    weak = np.flatnonzero(support <= level)
    scratch.near[: weak.size] = weak
    scratch.counters[[LEVEL, END, LISTED]] = level, level + 1, weak.size
    _peel_window(rest, scratch, support)
    return rest.support >= 0


def _rest(left, support, first, second, n, origin=None):
    """The edges `left` and the vertices that they join, numbered anew; `origin` is what edges were called before."""
    first, second = first[left], second[left]
    number = np.zeros(n, np.int32)
    number[first] = 1
    number[second] = 1
    number = np.cumsum(number, dtype=np.int32) - 1
    first, second = number[first], number[second]
    indptr = np.zeros(int(number[-1]) + 2 if n else 1, np.int64)
    wide = np.int32 if left.size < 2**31 else np.int64
    indices, edge = np.empty(2 * left.size, np.int32), np.empty(2 * left.size, wide)
    in_first, in_second = np.empty(left.size, np.int32), np.empty(left.size, np.int32)
    length = np.zeros(indptr.size - 1, np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_fill_neighbourhoods, first, second, queue, indptr, length, indices, edge, in_first, in_second,
                workers=1, queue=stoppable(queue, left.size))  # fmt: skip
    origin = left.astype(wide) if origin is None else origin[left]
    return Rest(origin, support[left], first, second, indptr, length, indices, edge, in_first, in_second)


def _scratch(rest):
    m, n, wide = rest.origin.size, rest.indptr.size - 1, rest.edge.dtype
    longest = int(np.diff(rest.indptr).max(initial=0))
    return Scratch(
        counters=np.zeros(9, np.int64),
        near=np.empty(m, wide),
        peeled=np.empty(m, wide),
        head=np.full(n, -1, wide),
        link=np.empty(m, wide),
        hubs=np.empty(n, np.int32),
        marks=np.zeros((threads(), n), np.int32),
        bases=np.ones(threads(), np.int64),
        hits=np.empty((threads(), 2, longest + 1), np.int32),
    )


def _peel_window(rest, scratch, found):
    workers = threads()
    large = LARGE if workers > 1 else LARGE_ALONE
    while (what := _next_round(large, rest, scratch, found)) != DONE:
        if what == SHARED:
            run_threads(_break_triangles, rest, scratch, workers=workers, queue=scratch.counters)


@jit
def _fill_neighbourhoods(
    worker, workers, first, second, queue, indptr, length, indices, edge, in_first, in_second
):  # fmt: skip
    n = length.size
    for e in range(first.size):
        indptr[U64(first[U64(e)]) + U64(1)] += 1
        indptr[U64(second[U64(e)]) + U64(1)] += 1
    for v in range(n):
        indptr[U64(v + 1)] += indptr[U64(v)]
    for e in range(first.size):
        if stopped(queue):
            return
        u, v = U64(first[U64(e)]), U64(second[U64(e)])
        in_first[U64(e)], in_second[U64(e)] = length[u], length[v]
        put = U64(indptr[u] + length[u])
        indices[put], edge[put] = v, e
        put = U64(indptr[v] + length[v])
        indices[put], edge[put] = u, e
        length[u] += 1
        length[v] += 1


@jit
def _open_window(support, histogram, near, counters):
    """List the edges of the next levels: as many levels as make looking through the list once a level pay."""
    left = I64(0)
    for e in range(support.size):
        if support[U64(e)] >= 0:
            histogram[U64(support[U64(e)])] += 1
            left += 1
    lowest = 0
    while left and not histogram[lowest]:
        lowest += 1
    end, levels, inside = lowest, 0, I64(0)
    while end < histogram.size and (levels == 0 or (levels + 1) * (inside + histogram[end]) <= left):
        levels += histogram[end] > 0
        inside += histogram[end]
        end += 1
    listed = 0
    for e in range(support.size):
        if 0 <= support[U64(e)] < end:
            near[U64(listed)] = e
            listed += 1
    counters[:] = 0
    counters[LEVEL], counters[END], counters[LISTED] = lowest, end, listed


@jit
def _next_round(large, rest, scratch, found):
    """Peel until the window is DONE, a round takes `large` look-ups or more (SHARED), or LONGEST are done (MORE)."""
    support, near, peeled, head, link = rest.support, scratch.near, scratch.peeled, scratch.head, scratch.link
    counters = scratch.counters
    first, second, in_first, in_second = rest.first, rest.second, rest.in_first, rest.in_second
    indptr, length, indices, edge = rest.indptr, rest.length, rest.indices, rest.edge
    total = I64(0)
    while total < LONGEST:
        begin, end, level = counters[PEELED], counters[FOUND], counters[LEVEL]
        for x in range(counters[BEGIN], begin):
            e = U64(peeled[U64(x)])
            support[e] = GONE
            found[U64(rest.origin[e])] = level + 2
            for u, place in ((U64(first[e]), in_first[e]), (U64(second[e]), in_second[e])):
                length[u] -= 1
                last = indptr[u] + length[u]
                f, w = edge[U64(last)], indices[U64(last)]
                put = indptr[u] + place
                edge[U64(put)], indices[U64(put)] = f, w
                if first[U64(f)] == u:
                    in_first[U64(f)] = place
                else:
                    in_second[U64(f)] = place
        if begin == end:
            lowest, listed = counters[END], I64(0)
            for x in range(counters[LISTED]):
                e = near[U64(x)]
                s = support[U64(e)]
                if s > level:
                    near[U64(listed)] = e
                    listed += 1
                    lowest = min(lowest, I64(s))
                elif s >= 0:
                    peeled[U64(end)] = e
                    end += 1
            total += counters[LISTED]
            counters[LISTED] = listed
            if begin == end:
                counters[BEGIN] = begin
                if lowest == counters[END]:
                    return DONE
                counters[LEVEL] = lowest
                continue
        hubs = I64(0)
        work = I64(0)
        for x in range(end - 1, begin - 1, -1):
            e = U64(peeled[U64(x)])
            support[e] = GONE + 1 + (x - begin)
            u, v = U64(first[e]), U64(second[e])
            if length[u] < length[v]:
                u, v = v, u
            work += length[v]
            if head[u] < 0:
                work += length[u]
                scratch.hubs[U64(hubs)] = u
                hubs += 1
            link[e] = head[u]
            head[u] = e
        counters[BEGIN], counters[PEELED], counters[FOUND] = begin, end, end
        counters[HUBS], counters[QUEUE] = hubs, 0
        if work >= large:
            return SHARED
        _break_triangles(0, 1, rest, scratch)
        total += work
    return MORE


@jit
def _break_triangles(worker, workers, rest, scratch):
    """One round: every triangle with an edge in the frontier takes one off the support of its others."""
    first, second, indptr, lengths = rest.first, rest.second, rest.indptr, rest.length
    indices, edge = rest.indices, rest.edge
    support, counters, near, peeled = rest.support, scratch.counters, scratch.near, scratch.peeled
    head, link, hubs, bases = scratch.head, scratch.link, scratch.hubs, scratch.bases
    marks, here, there = scratch.marks[worker], scratch.hits[worker, 0], scratch.hits[worker, 1]
    level, window = I32(counters[LEVEL]), I32(counters[END])
    alone = workers == 1
    while True:
        task = fetch_add(counters, QUEUE, TAKEN)
        if task >= counters[HUBS] or stopped(counters):
            break
        for t in range(task, min(counters[HUBS], task + TAKEN)):
            u = I64(hubs[U64(t)])
            begin, length = indptr[U64(u)], I64(lengths[U64(u)])
            base = bases[worker]
            if base + length >= 1 << 31:
                marks[:] = 0
                base = 1
            bases[worker] = base + length
            for k in range(length):
                marks[U64(indices[U64(begin + k)])] = base + k
            e = I64(head[U64(u)])
            head[U64(u)] = -1
            while e >= 0:
                v = I64(first[U64(e)]) + I64(second[U64(e)]) - u
                start = indptr[U64(v)]
                stop = start + lengths[U64(v)]
                own = support[U64(e)]
                hits = I64(0)
                for k in range(start, stop):
                    mark = I64(marks[U64(indices[U64(k)])])
                    here[U64(hits)] = k - start
                    there[U64(hits)] = mark - base
                    hits += mark >= base
                for hit in range(hits):
                    f, g = I64(edge[U64(start + here[U64(hit)])]), I64(edge[U64(begin + there[U64(hit)])])
                    f_left, g_left = support[U64(f)], support[U64(g)]
                    if min(f_left, g_left) < LEFT:  # in the frontier, too: the triangle is for the first to break
                        f_left, g_left = (
                            GONE if own > g_left else f_left,
                            GONE if own > f_left else g_left,
                        )
                    if f_left > level:
                        if alone:
                            support[U64(f)] = f_left - I32(1)
                        else:
                            f_left = fetch_add(support, f, I32(-1))
                            if f_left <= level:
                                fetch_add(support, f, I32(1))
                        if f_left == level + 1:
                            peeled[U64(fetch_add(counters, FOUND, 1))] = f
                        elif f_left == window:
                            near[U64(fetch_add(counters, LISTED, 1))] = f
                    if g_left > level:
                        if alone:
                            support[U64(g)] = g_left - I32(1)
                        else:
                            g_left = fetch_add(support, g, I32(-1))
                            if g_left <= level:
                                fetch_add(support, g, I32(1))
                        if g_left == level + 1:
                            peeled[U64(fetch_add(counters, FOUND, 1))] = g
                        elif g_left == window:
                            near[U64(fetch_add(counters, LISTED, 1))] = g
                marks[U64(v)] = 0
                e = I64(link[U64(e)])
