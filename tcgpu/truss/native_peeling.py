"""k-trusses and truss numbers on all cores of a CPU: edges are peeled off, those in the fewest triangles first.

The remaining graph is kept as whole neighbourhoods, because a triangle may break at any of its edges. A round peels the
frontier, which is all edges that are in too few triangles now. For each of its edges the longer neighbourhood is marked
and the shorter looked up in the marks. This finds the triangles that break, and the other two edges of each lose one.
Edges of the frontier with the same longer neighbourhood share its marks. A triangle with two edges in the frontier is
broken by the first of them. Peeled edges stay in the neighbourhoods until the edges are renumbered.

Truss numbers are found level by level (a level is a number of triangles). The edges of a batch of levels are listed at
a time, so that a level does not read all edges. After a batch, the remaining edges and vertices are renumbered if they
are few enough for a smaller graph, which uses the caches better, to pay. Where a graph collapses, a frontier is in so
many triangles that it is faster to count those of the remaining edges again. Where it is dense, or becomes so, truss
numbers are found from rows of bits (`dense_truss`).
"""

from typing import NamedTuple

import numpy as np

from tcgpu import cpu
from tcgpu.arrays import blocks, locked
from tcgpu.clean import occurrences
from tcgpu.cpu_costs import FEW_WEAK, LARGE_ROUND, RECOUNT, SHRINK, SOME_TRIANGLES
from tcgpu.engines.native import I32, I64, U64, fetch_add, jit, run_threads, stoppable, stopped, threads
from tcgpu.truss import dense_truss

GONE = np.int32(-(1 << 31))  # below the support of all edges
# Other supports below 0: below IN_FRONTIER, GONE + 1 + the position in the frontier of an edge in it; of a peeled edge,
# PEELED_AT - its level. A remaining edge may be below 0 for a moment, by no more than the number of threads.
IN_FRONTIER, PEELED_AT = np.int32(-(1 << 20)), np.int32(-(1 << 19))
MAX_ALONE = 1 << 22  # look-ups of a round that only one thread runs where it cannot be stopped
MAX_LOOKUPS = 1 << 24  # then a call returns to Python, where it can be interrupted
CHUNK = 4  # neighbourhoods that a worker takes at a time

DONE, LARGE, PAUSED = range(3)  # why `_peel_rounds` returns

# Counters that all workers share; `stopped` reads the first one. The frontier is `peeled[BEGIN:PEELED]`, the next one
# `peeled[PEELED:FOUND]`; `batch[:LISTED]` lists the edges of levels LEVEL to END - 1; NEXT is the next of the TO_MARK
# vertices `to_mark`; WORK is how many look-ups a LARGE round takes.
STOP, LEVEL, END, LISTED, BEGIN, PEELED, FOUND, TO_MARK, NEXT, WORK = range(10)


class Remaining(NamedTuple):
    """Edges, of which some remain, and every vertex's neighbourhood, with the numbers of the edges."""

    support: np.ndarray  # int32: the triangles that it is in now, or see IN_FRONTIER and PEELED_AT
    first: np.ndarray  # the edge's ends
    second: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    edge: np.ndarray


class Scratch(NamedTuple):
    """Memory for the rounds."""

    counters: np.ndarray
    batch: np.ndarray  # the edges of the levels that are listed
    peeled: np.ndarray  # edges in the order in which they are peeled
    head: np.ndarray  # for a vertex, the first edge of the frontier that uses its marks, by its position there, or -1
    link: np.ndarray  # for an edge of the frontier, by its position, that of the next one after it
    to_mark: np.ndarray  # the vertices whose neighbourhoods are marked in this round
    marks: np.ndarray  # for each worker and vertex, its place in the marked neighbourhood, from `bases` on
    bases: np.ndarray  # for each worker; higher than all marks of earlier neighbourhoods, which need no clearing
    hits: np.ndarray  # for each worker, the places in both neighbourhoods


def peel(graph, k):
    """Which edges are in the k-truss: an array of bool, in the order of `row_idx`."""
    ordered = cpu.in_order(graph, "auto", "support")
    keep, done = np.ones(ordered.m, bool), k <= 2
    while not done:
        keep[keep] = _between_degrees(_kept(ordered, keep), k - 1)
        left = _kept(ordered, keep)
        support = cpu.support(left, "natural").astype(np.int32)
        weak = np.count_nonzero(support < k - 2)
        done = k == 3 or weak == 0  # for k = 3 weak edges are in no triangle: no others become weak
        if not done and weak < FEW_WEAK * left.m:
            keep[keep], done = _peel_weak(left, support, k - 3)
        else:
            keep[keep] = support >= k - 2
    return cpu.in_edge_order_of(graph, ordered, keep)


def numbers(graph):
    """The truss number of each edge (int32), in the order of `row_idx`."""
    ordered = cpu.in_order(graph, "auto", "support")
    found = cpu.support(ordered, "natural").astype(np.int32)  # as the support of Remaining
    found[found == 0] = PEELED_AT
    support, first, second, n, origin = found, ordered.col_of, ordered.row_idx, ordered.n, None
    rest, level = None, 0
    while True:
        left = support >= 0
        many, most = np.count_nonzero(left), support.max(initial=0)
        if support.min(where=left, initial=most) == most:  # also if there are none: no triangles need to be broken
            support[left] = PEELED_AT - most
            break
        if dense := _dense(left, support, first, second, n):
            rest = scratch = first = second = None  # levels take memory, too
            support[left] = PEELED_AT - dense_truss.levels(*dense, level)
            break
        if many <= SHRINK * support.size:
            if origin is not None:
                found[origin] = support
            rest = scratch = None
            origin = np.flatnonzero(left).astype(_wide(ordered.m)) if origin is None else origin[left]
            first, second, n = _renumbered(first[left], second[left], n)
            support, first, second = support[left], locked(first), locked(second)
        del left
        if rest is None:
            rest = _remaining(support, first, second, n)
            scratch = _scratch(rest)
        _list_batch(support, scratch)
        broken = _peel_batch(rest, scratch, many)
        level = scratch.counters[LEVEL]
        if not broken:
            rest = scratch = None
            if origin is not None:
                found[origin] = support
            support[support >= 0] = np.maximum(cpu.support(ordered.kept(found >= 0), "natural"), level)
    if origin is not None:
        found[origin] = support
    rest = scratch = support = None
    return cpu.in_edge_order_of(graph, ordered, np.subtract(PEELED_AT + 2, found, out=found))


def _wide(m):
    """The type of numbers of m edges."""
    return np.int32 if m < 2**31 else np.int64


def _dense(left, support, first, second, n):
    """The edges that `left` marks as `dense_truss` takes them: (first, second, support, n); None if not dense."""
    many, triangles = np.count_nonzero(left), support.sum(where=left, dtype=np.int64)
    if triangles <= SOME_TRIANGLES * many:
        return None
    is_end = np.zeros(n, bool)
    for block in blocks(left.size):
        is_end[first[block][left[block]]] = is_end[second[block][left[block]]] = True
    if not dense_truss.is_dense(many, triangles, np.count_nonzero(is_end)):
        return None
    first, second, n = _renumbered(first[left], second[left], n)
    return first, second, support[left], n


def _between_degrees(graph, degree):
    """Mark the edges that join two vertices of at least this degree; all edges, if hardly any are excluded."""
    high = graph.degrees >= degree
    if graph.degrees[~high].sum() < FEW_WEAK * graph.m:
        return np.ones(graph.m, bool)
    rows, cols = graph.edges()
    return high[rows] & high[cols]


def _kept(graph, keep):
    return graph if keep.all() else graph.kept(keep)


def _peel_weak(graph, support, level):
    """Which edges remain when those in at most `level` triangles are peeled, and again, until there are none.

    Returns also whether there are none, or their triangles are too many to be broken.
    """
    rest = _remaining(support, graph.col_of, graph.row_idx, graph.n)
    scratch = _scratch(rest)
    scratch.counters[[LEVEL, END, LISTED]] = level, level + 1, _list(support, level + 1, scratch.batch)
    done = _peel_batch(rest, scratch, graph.m)
    return support >= 0, done


def _remaining(support, first, second, n):
    m, left = support.size, support >= 0
    indptr = np.append(0, np.cumsum(occurrences(n, first[left], second[left]), dtype=np.int64))
    indices, edge = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], _wide(m))
    queue = np.zeros(1, np.int64)
    run_threads(_fill_neighbourhoods, support, first, second, queue, indptr[:-1].copy(), indices, edge,
                workers=1, queue=stoppable(queue, m))  # fmt: skip
    return Remaining(support, first, second, indptr, indices, edge)


def _renumbered(first, second, n):
    """The ends of edges, numbered from 0 on without gaps, and the number of vertices that are ends."""
    number = np.zeros(n, np.int32)
    number[first] = 1
    number[second] = 1
    number = np.cumsum(number, dtype=np.int32) - 1
    return number[first], number[second], int(number[-1]) + 1 if n else 0


def _scratch(rest):
    m, n, wide = rest.support.size, rest.indptr.size - 1, rest.edge.dtype
    longest = int(np.diff(rest.indptr).max(initial=0))
    return Scratch(
        counters=np.zeros(10, np.int64),
        batch=np.empty(m, wide),
        peeled=np.empty(m, wide),
        head=np.full(n, -1, wide),
        link=np.empty(m, wide),
        to_mark=np.empty(n, np.int32),
        marks=np.zeros((threads(), n), np.int32),
        bases=np.ones(threads(), np.int64),
        hits=np.empty((threads(), 2, longest + 1), np.int32),
    )


def _list_batch(support, scratch):
    """List the edges of the next levels: enough levels to make up for reading all edges once."""
    edges = np.zeros(support.max() + 1, np.int64)  # of each level
    for block in blocks(support.size):
        np.add.at(edges, support[block][support[block] >= 0], 1)
    levels, inside = np.cumsum(edges > 0), np.cumsum(edges)  # up to each level
    end = np.searchsorted(levels * inside, inside[-1], side="right")
    scratch.counters[:] = 0
    scratch.counters[[LEVEL, END, LISTED]] = np.searchsorted(levels, 1), end, _list(support, end, scratch.batch)


def _list(support, end, batch):
    """List the remaining edges in fewer triangles than `end`; returns how many there are."""
    listed = 0
    for block in blocks(support.size):
        found = block.start + np.flatnonzero((support[block] >= 0) & (support[block] < end))
        batch[listed : listed + found.size] = found
        listed += found.size
    return listed


def _peel_batch(rest, scratch, left):
    """Peel all edges of the batch.

    Returns False if it stops at a frontier with so many triangles that counting those of the remaining edges is faster:
    the frontier is peeled, but its triangles are not broken. left: how many edges remain before the batch.
    """
    workers, counters = threads(), scratch.counters
    large = LARGE_ROUND if workers > 1 else MAX_ALONE
    while (why := _peel_rounds(large, rest, scratch)) != DONE:
        if why == LARGE and counters[WORK] > RECOUNT * (left - counters[PEELED]):
            frontier = scratch.peeled[counters[BEGIN] : counters[PEELED]]
            rest.support[frontier] = PEELED_AT - counters[LEVEL]
            scratch.head[scratch.to_mark[: counters[TO_MARK]]] = -1
            return False
        if why == LARGE:
            run_threads(_break_triangles, rest, scratch, workers=workers, queue=counters)
    return True


@jit
def _fill_neighbourhoods(worker, workers, support, first, second, queue, put, indices, edge):
    """Append each edge that remains to the neighbourhoods of both ends; those of a vertex v go to put[v]."""
    for e in range(first.size):
        if stopped(queue):
            return
        if support[U64(e)] < 0:
            continue
        u, v = U64(first[U64(e)]), U64(second[U64(e)])
        indices[U64(put[u])], edge[U64(put[u])] = v, e
        indices[U64(put[v])], edge[U64(put[v])] = u, e
        put[u] += 1
        put[v] += 1


@jit
def _peel_rounds(large, rest, scratch):
    """Peel until the batch is DONE, a LARGE round of at least `large` look-ups comes, or MAX_LOOKUPS are done."""
    support, batch, peeled, head, link = rest.support, scratch.batch, scratch.peeled, scratch.head, scratch.link
    counters = scratch.counters
    first, second, indptr = rest.first, rest.second, rest.indptr
    total = I64(0)
    while total < MAX_LOOKUPS:
        begin, end, level = counters[PEELED], counters[FOUND], counters[LEVEL]
        for x in range(counters[BEGIN], begin):  # the previous frontier
            support[U64(peeled[U64(x)])] = PEELED_AT - level
        if begin == end:  # no edge has become weak: find the edges of this level in the batch
            lowest, listed = counters[END], I64(0)
            for x in range(counters[LISTED]):
                e = batch[U64(x)]
                s = support[U64(e)]
                if s > level:
                    batch[U64(listed)] = e
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
        count = I64(0)
        work = I64(0)
        for x in range(end - 1, begin - 1, -1):  # link the edges of the frontier to their longer neighbourhoods
            e = U64(peeled[U64(x)])
            support[e] = GONE + 1 + (x - begin)
            u, v = U64(first[e]), U64(second[e])
            of_u, of_v = indptr[u + U64(1)] - indptr[u], indptr[v + U64(1)] - indptr[v]
            if of_u < of_v:
                u, v, of_u, of_v = v, u, of_v, of_u
            work += of_v
            if head[u] < 0:
                work += of_u
                scratch.to_mark[U64(count)] = u
                count += 1
            link[U64(x - begin)] = head[u]
            head[u] = x - begin
        counters[BEGIN], counters[PEELED], counters[FOUND] = begin, end, end
        counters[TO_MARK], counters[NEXT] = count, 0
        if work >= large:
            counters[WORK] = work
            return LARGE
        _break_triangles(I64(0), I64(1), rest, scratch)  # of the types of `run_threads`: compiled once
        total += work
    return PAUSED


@jit
def _break_triangles(worker, workers, rest, scratch):
    """One round: each triangle with an edge in the frontier takes one off the support of its other edges."""
    first, second, indptr = rest.first, rest.second, rest.indptr
    indices, edge = rest.indices, rest.edge
    support, counters, batch, peeled = rest.support, scratch.counters, scratch.batch, scratch.peeled
    head, link, to_mark, bases = scratch.head, scratch.link, scratch.to_mark, scratch.bases
    marks, here, there = scratch.marks[worker], scratch.hits[worker, 0], scratch.hits[worker, 1]
    level, batch_end = I32(counters[LEVEL]), I32(counters[END])
    alone = workers == 1
    while True:
        chunk = fetch_add(counters, NEXT, CHUNK)
        if chunk >= counters[TO_MARK] or stopped(counters):
            break
        for x in range(chunk, min(counters[TO_MARK], chunk + CHUNK)):
            u = I64(to_mark[U64(x)])
            begin, length = indptr[U64(u)], indptr[U64(u + 1)] - indptr[U64(u)]
            base = bases[worker]
            if base + length >= 1 << 31:
                for k in range(marks.size):
                    marks[U64(k)] = 0
                base = 1
            bases[worker] = base + length
            for k in range(length):
                marks[U64(indices[U64(begin + k)])] = base + k
            position = I64(head[U64(u)])
            head[U64(u)] = -1
            while position >= 0:
                e = I64(peeled[U64(counters[BEGIN] + position)])
                v = I64(first[U64(e)]) + I64(second[U64(e)]) - u
                start = indptr[U64(v)]
                stop = indptr[U64(v + 1)]
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
                    if IN_FRONTIER <= f_left <= PEELED_AT or IN_FRONTIER <= g_left <= PEELED_AT:
                        continue
                    if min(f_left, g_left) < IN_FRONTIER:  # the first edge of the frontier breaks the triangle
                        f_left, g_left = (
                            GONE if own > g_left else f_left,
                            GONE if own > f_left else g_left,
                        )
                    for side in range(2):
                        other, left = (f, f_left) if side == 0 else (g, g_left)
                        if left <= level:
                            continue
                        if alone:
                            support[U64(other)] = left - I32(1)
                        else:
                            left = fetch_add(support, other, I32(-1))
                            if left <= level:
                                fetch_add(support, other, I32(1))
                        if left == level + 1:
                            peeled[U64(fetch_add(counters, FOUND, 1))] = other
                        elif left == batch_end:
                            batch[U64(fetch_add(counters, LISTED, 1))] = other
                position = I64(link[U64(position)])
