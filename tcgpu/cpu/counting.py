"""Counting: four designs, each of which is right for any graph, and only slow for some.

All ask, for a vertex u and every v in its column, what of v's own column is in u's, too:

    short  where no column is long: the rest of u's column, one after the other, against sixteen rows of v's at once
    words  where columns are long and neighbours close: u's column as bits, v's as its non-zero 64-bit words, of which
           each holds many neighbours
    hubs   where most edges lead to few vertices, the last ones, as in degree order: their columns as rows of bits, so
           that a pair of hubs costs an AND and a popcount of few words, or one bit test a neighbour, whichever is less;
           where v is no hub, or there are none, u's column as bits, and all of v's looked up

A part of the edges (u, v) is counted by the same code as all of them. Beside the graph, which may be memory-mapped, a
worker then needs a bit for each vertex, and with words a WINDOW; all together the hubs' rows.

Inner loops are written out, not called: Numba counts, atomically, the references to every array that a function is
given, even where it inlines that function, and twice as long a count is what it cost here.
"""

import numpy as np

from tcgpu.cpu.choose import AND_WORDS, LINE, design, kept_design
from tcgpu.cpu.edges import Edges, all_of, workers_for
from tcgpu.engines.native import (
    LANES,
    fetch_add,
    jit,
    matches,
    popcount,
    prefetch,
    run_threads,
    shares,
    stoppable,
    stopped,
)

WINDOW = 1 << 23  # nonzeros of the columns that are packed into words at a time, for each worker
LOOKUP = 2  # what it costs not to have a row packed, in rows to pack
STRETCH = 1 << 10, 1 << 16  # edges that a worker takes at a time: at least, at most;
TURNS = 64  # between them, so many that each worker comes for more about as often
FAR, NEAR = 16, 6  # so many nonzeros ahead, ask for where a column lies, and for the column

I64 = np.int64
U64 = np.uint64


def count(graph, part=None, workers=None):
    """The number of triangles of a Graph, counted in the order that it has, as a Python int.

    part: some of its edges, as `Edges` or a `tcgpu.distributed.Part` has them; a triangle u < v < w counts at its edge
    (u, v).
    """
    if part is None:
        return count_by(design(graph), graph, all_of(graph), workers)
    return count_by(kept_design(graph), graph, part, workers)


def count_by(design, graph, part, workers=None):
    """The same by a Design, whichever it is."""
    workers = workers_for(part, workers)
    if design.name == "short":
        return _count_short(graph, part, workers)
    if design.name == "words":
        return _count_words(graph, part, workers)
    return _count_hubs(graph, part, workers, *design.hubs)


def _count_short(graph, part, workers):
    found = np.zeros(workers, np.int64)
    ends = _ends(graph, part, workers)
    run_threads(_short, graph.col_ptr, graph.row_idx, *ends, found,
                workers=workers, queue=stoppable(ends[-1], part.last - part.first))  # fmt: skip
    return int(found.sum())


def _count_hubs(graph, part, workers, base, start, bits):
    marks = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    found = np.zeros(workers, np.int64)
    ends = _ends(graph, part, workers)
    run_threads(_hubs, graph.col_ptr, graph.row_idx, *ends, base, start, bits, marks, found,
                workers=workers, queue=stoppable(ends[-1], part.last - part.first))  # fmt: skip
    return int(found.sum())


def _count_words(graph, part, workers):
    """Window after window: the columns that most edges of a stretch lead to are packed, then the stretch is counted."""
    most = min(graph.m, WINDOW * workers)
    place, word = np.empty(most, np.int32), np.empty(most, np.uint64)
    marks = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    found = np.zeros(workers, np.int64)
    step = max(1, most if most == graph.m else most * 7 // 8)
    for first in range(part.first, part.last, step):
        stretch = Edges(first, min(part.last, first + step), part.low, part.high)
        low, high = _window(graph, stretch, most)
        range_of = np.empty((high - low, 2), np.int64)
        run_threads(_pack_words, graph.col_ptr, graph.row_idx, low, high, place, word, range_of,
                    workers=shares(int(graph.col_ptr[high] - graph.col_ptr[low])))  # fmt: skip
        beyond = None if high - low == graph.n else high  # what tells columns that are packed is then not compiled
        ends = _ends(graph, stretch, workers)
        run_threads(_words, graph.col_ptr, graph.row_idx, *ends, low, beyond, place, word, range_of, marks, found,
                    workers=workers, queue=stoppable(ends[-1], part.last - part.first))  # fmt: skip
    return int(found.sum())


def _window(graph, part, most):
    """The range of vertices whose columns are to be packed, with no more nonzeros than `most`: by a sample of edges.

    Of a range that ends earlier, more columns are looked up row by row; of a later one, more are packed in vain.
    """
    if part.last - part.first == graph.m <= most and part.low <= 0 and part.high >= graph.n:
        return 0, graph.n
    step = max(1, (part.last - part.first) // 1024)
    v = np.sort(graph.row_idx[part.first + step // 2 : part.last : step])
    v = v[np.searchsorted(v, part.low) : np.searchsorted(v, part.high)].astype(np.int64)
    if v.size == 0:
        return 0, 0
    u = int(np.searchsorted(graph.col_ptr, part.first, side="right")) - 1
    low = u if part.low <= u else int(v[0])  # with the columns of u, if they come right before
    length, packed = graph.col_ptr[v + 1] - graph.col_ptr[v], graph.col_ptr[v + 1] - graph.col_ptr[low]
    cost = packed + LOOKUP * step * (length.sum() - np.cumsum(length))
    fits = int(np.searchsorted(packed, most, side="right"))
    return low, int(v[np.argmin(cost[:fits])]) + 1 if fits else low


def _ends(graph, part, workers):
    """What is to be counted, and the queue: the next stretch to take, how many there are, and the edges of each.

    Where v may be any vertex, its range is None: what looks at it is then not compiled.
    """
    edges = part.last - part.first
    size = min(max(edges // (workers * TURNS), STRETCH[0]), STRETCH[1])
    queue = np.array([0, -(-edges // size), size], np.int64)
    if part.low <= 0 and part.high >= graph.n:
        return part.first, part.last, None, None, queue
    return part.first, part.last, part.low, part.high, queue


@jit
def _short(worker, workers, col_ptr, row_idx, first, last, low, high, queue, found):
    m = row_idx.size
    total = I64(0)
    while True:
        stretch = fetch_add(queue, 0, 1)
        if stretch >= queue[1]:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = U64(np.searchsorted(col_ptr, at, side="right") - 1)
        while at < stop:
            u += U64(1)
            begin, end = at, col_ptr[u]
            at = end
            here = min(stop, end - 1)
            if low is not None:
                while begin < here and row_idx[U64(begin)] < low:
                    begin += 1
                while begin < here and row_idx[U64(here - 1)] >= high:
                    here -= 1
            for k in range(begin, here):
                if k + FAR < m:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                    prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                v = U64(row_idx[U64(k)])
                q, after = col_ptr[v], col_ptr[v + U64(1)]
                while q < after:
                    if q + LANES <= m:
                        for i in range(k + 1, end):
                            total += matches(row_idx, q, np.int32(after - q), row_idx[U64(i)])
                    else:  # so near the end of all columns that sixteen rows are not there to be read
                        for j in range(q, after):
                            for i in range(k + 1, end):
                                total += row_idx[U64(i)] == row_idx[U64(j)]
                    q += LANES
    found[worker] = total


@jit
def _hubs(worker, workers, col_ptr, row_idx, first, last, low, high, queue, base, start, bits, all_marks, found):
    """Rows of bits where the middle vertex is a hub (from `base` on), marks where it is not."""
    marks = all_marks[worker]
    m = row_idx.size
    words = (start.size + 62) >> 6
    marks0 = base >> 6  # the word of the first hub
    total = I64(0)
    while True:
        stretch = queue[1] - 1 - fetch_add(queue, 0, 1)
        if stretch < 0:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = np.searchsorted(col_ptr, at, side="right") - 2
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            here = min(stop, end - 1)
            if low is not None:
                while begin < here and row_idx[U64(begin)] < low:
                    begin += 1
                while begin < here and row_idx[U64(here - 1)] >= high:
                    here -= 1
            if begin >= here:
                continue
            hubs = end  # where the column's hubs begin, or the edges
            while hubs > begin and row_idx[U64(hubs - 1)] >= base:
                hubs -= 1
            many = end - hubs > 12  # from here on it pays to have the hubs as bits
            marked = begin if hubs > begin else hubs if many else end
            u_line = (u - base) // 64 // LINE * LINE
            copied = many and u >= base and words - u_line < end - marked  # u's own row of bits has the marks
            if copied:
                for word in range(u_line, words):
                    marks[U64(marks0 + word)] = bits[U64(start[U64(u - base)] - u_line + word)]
            else:
                for k in range(marked, end):
                    row = U64(row_idx[U64(k)])
                    marks[row >> U64(6)] |= U64(1) << (row & U64(63))
            for k in range(begin, min(hubs, here)):
                if k + FAR < m:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                    prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                v = U64(row_idx[U64(k)])
                common = U64(0)
                for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                    row = U64(row_idx[U64(q)])
                    common += marks[row >> U64(6)] >> (row & U64(63)) & U64(1)
                total += I64(common)
            for k in range(hubs, here):
                hub = I64(row_idx[U64(k)]) - base
                line = hub // 64 // LINE * LINE
                row_at = start[U64(hub)] - line
                common = U64(0)
                if many and (end - k) * AND_WORDS > words - line:
                    for word in range(line, words):
                        common += popcount(marks[U64(marks0 + word)] & bits[U64(row_at + word)])
                else:
                    for j in range(k + 1, end):
                        bit = U64(row_idx[U64(j)] - base)
                        common += bits[U64(row_at) + (bit >> U64(6))] >> (bit & U64(63)) & U64(1)
                total += I64(common)
            if copied:
                for word in range(u_line, words):
                    marks[U64(marks0 + word)] = U64(0)
            else:
                for k in range(marked, end):
                    marks[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
    found[worker] = total


@jit
def _pack_words(worker, workers, col_ptr, row_idx, low, high, place, word, range_of):
    """Each column as the non-zero words of its bit array; a worker's columns lie one close behind the other."""
    begin = low + (high - low) * worker // workers
    put = col_ptr[begin] - col_ptr[low] - 1  # never more words than rows: there is room
    for u in range(begin, low + (high - low) * (worker + 1) // workers):
        range_of[U64(u - low), 0] = put + 1
        last, bits = np.int32(-1), U64(0)
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            w = row_idx[U64(k)]
            if w >> np.int32(6) != last:
                last, bits = w >> np.int32(6), U64(0)
                put += 1
                place[U64(put)] = last
            bits |= U64(1) << U64(w & 63)
            word[U64(put)] = bits
        range_of[U64(u - low), 1] = put + 1


@jit
def _words(
    worker, workers, col_ptr, row_idx, first, last, low, high, queue, packed, beyond, place, word, range_of, rows, found
):  # fmt: skip
    """Words of the columns of vertices packed..beyond - 1, or with None of all; of others row by row."""
    marks = rows[worker]
    total = I64(0)
    while True:
        stretch = fetch_add(queue, 0, 1)
        if stretch >= queue[1]:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = np.searchsorted(col_ptr, at, side="right") - 2
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            here = min(stop, end - 1)
            if low is not None:
                while begin < here and row_idx[U64(begin)] < low:
                    begin += 1
                while begin < here and row_idx[U64(here - 1)] >= high:
                    here -= 1
            if begin >= here:
                continue
            near, far, own = begin, here, True  # the edges whose v is packed, and whether u is
            if beyond is not None:
                own = packed <= u < beyond
                while near < far and row_idx[U64(near)] < packed:
                    near += 1
                while near < far and row_idx[U64(far - 1)] >= beyond:
                    far -= 1
            if own:
                for q in range(range_of[U64(u - packed), 0], range_of[U64(u - packed), 1]):
                    marks[U64(place[U64(q)])] = word[U64(q)]
            else:
                for k in range(begin, end):
                    row = U64(row_idx[U64(k)])
                    marks[row >> U64(6)] |= U64(1) << (row & U64(63))
            for k in range(near, far):
                v = U64(row_idx[U64(k)] - packed)
                common = U64(0)
                for q in range(range_of[v, 0], range_of[v, 1]):
                    common += popcount(marks[U64(place[U64(q)])] & word[U64(q)])
                total += I64(common)
            if beyond is not None:
                for k in range(begin, here - (far - near)):
                    v = U64(row_idx[U64(k if k < near else k + far - near)])
                    common = U64(0)
                    for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                        row = U64(row_idx[U64(q)])
                        common += marks[row >> U64(6)] >> (row & U64(63)) & U64(1)
                    total += I64(common)
            if own:
                for q in range(range_of[U64(u - packed), 0], range_of[U64(u - packed), 1]):
                    marks[U64(place[U64(q)])] = U64(0)
            else:
                for k in range(begin, end):
                    marks[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
    found[worker] += total
