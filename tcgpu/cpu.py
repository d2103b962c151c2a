"""The native engine: exact counts on all cores of a CPU.

`count` picks one of four designs by what the columns look like; each asks, for a vertex u and every v in its column,
what of v's own column is in u's, too:

    short  where no column is long: the rest of u's column, one after the other, against sixteen rows of v's at once
    words  where columns are long and neighbours close: u's column as bits, v's as its non-zero 64-bit words, of which
           each holds many neighbours
    hubs   where most edges lead to few vertices, the last ones, as in degree order: their columns as rows of bits, so
           that a pair of hubs costs an AND and a popcount of few words, or one bit test a neighbour, whichever is less
    marks  for any other, and where v is no hub: u's column as bits, and all of v's looked up

Per vertex, per edge and one by one (`triangles`, `support`, `list_triangles`) triangles u < v < w are found from their
middle: v's column is marked, and of every smaller neighbour u the rows behind v are looked up. This takes the fewest
look-ups, and the place of all three edges is at hand. All results are the same for any number of threads.

A part of the edges (u, v) is counted by the same code as all of them. A worker then needs a bit for each vertex beside
the graph, and with words a WINDOW; all workers together the hubs' rows, which are kept for the next part. To tell edges
or vertices apart it takes an int32 for each vertex, and so much for each edge or vertex that the part can reach.

Inner loops are written out, not called: Numba counts, atomically, the references to every array that a function is
given, even where it inlines that function, and twice as long a count is what it cost here.
"""

import threading
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu._native import LANES, fetch_add, inline, jit, matches, popcount, prefetch, run_threads, threads
from tcgpu.columns import MANY

SHORT_COLUMN = 32  # where none is longer, comparing beats marking
DENSE = 12  # nonzeros per column from which packed words beat bits,
CLOSE = 0.5  # if there are no more words than this for each nonzero,
WITHIN = 0.75  # and of the edges so many lead to a column in the same window
LOOKUP = 2  # what it costs not to have a row packed, in rows to pack
WINDOW = 1 << 21  # nonzeros of the columns that are packed into words at a time, for each worker
LONG_COLUMN = 64  # hubs pay where some column is as long,
HUB_ROWS = 16  # each is the row of so many edges,
HUB_SHARE = 0.25  # and together they are of so many
MOST_HUBS = 1 << 16
MOST_KEPT = 1 << 15  # with parts: 64 MB
SAMPLE = 1 << 14  # edges that are looked at to tell hubs
FEW_WORKERS = 4  # no more than these have an array of all edges each;
FEW_IN_PART = 2  # of a part's
CHUNK = 256  # vertices a worker takes at a time, or
STRETCH = 1 << 10, 1 << 16  # edges: at least, at most;
TURNS = 64  # between them, so many that each worker comes for more about as often
LINE = 8  # 64-bit words in a cache line: rows of bits start at whole lines
FAR, NEAR = 16, 6  # so many nonzeros ahead, ask for where a column lies, and for the column

I64 = np.int64
U64 = np.uint64


class Plan:
    """One native count in the stages of a GPU's (`tcgpu.kernels.Plan`): it needs no memory but the graph's own."""

    method = "cpu"
    device_bytes = 0

    def __init__(self, graph):
        self.graph, self.total = graph, None

    def allocate(self):
        pass

    def launch(self):
        self.total = count(self.graph)

    def reset(self):
        self.total = None

    def result(self):
        return self.total

    def free(self):
        pass

    def count(self):
        return count(self.graph)


def plan(graph):
    return Plan(graph)


class Edges(NamedTuple):
    """Of a graph's edges (u, v), u < v, those at positions first..last - 1 of its list whose v is in low..high - 1."""

    first: int
    last: int
    low: int
    high: int


class Hubs(NamedTuple):
    """The last vertices, from `base` on: their columns as bits.

    Vertex w is bit w - base; the row of a hub v starts at the line of words that holds v, since all of its column lies
    behind v: at `bits[start[v - base]]`.
    """

    base: int
    start: np.ndarray
    bits: np.ndarray


class Design(NamedTuple):
    """How a graph is counted: "short", "words" or "hubs", with hubs, of which there may be none."""

    name: str
    hubs: Hubs | None = None


def count(graph, part=None, workers=None):
    """The number of triangles of a Graph, counted in the order that it has, as a Python int.

    part: some of its edges, as `Edges` or a `tcgpu.parts.Part` has them; a triangle u < v < w is its edge's (u, v).
    """
    if part is None:
        return count_by(design(graph), graph, _all(graph), workers)
    return count_by(_kept_design(graph), graph, part, workers)


def count_by(design, graph, part, workers=None):
    """The same by a Design, whichever it is: it is right for any graph, and only slow for some."""
    workers = _workers(part, workers)
    if design.name == "short":
        return _count_short(graph, part, workers)
    if design.name == "words":
        return _count_words(graph, part, workers)
    return _count_hubs(graph, part, workers, *design.hubs)


def design(graph, most_hubs=MOST_HUBS):
    """The Design for a graph, by its longest column and some stretches of its edges."""
    if graph.max_column <= SHORT_COLUMN:
        return Design("short")
    all_hubs = graph.n <= _most_hubs(graph, most_hubs)
    if not all_hubs and graph.nonzeros_per_column >= DENSE and _words_per_nonzero(graph) <= CLOSE and _share_within(graph) >= WITHIN:
        return Design("words")
    return Design("hubs", hub_rows(graph, _first_hub(graph, most_hubs)))


def triangles(graph, order="auto"):
    """How many triangles each vertex is in (int64, n); `order` is the one to count in, not of the result."""
    own = graph.ordered(order)
    (_, found), = tally(own, False)  # fmt: skip
    return found if own is graph else found[own.rank]


def support(graph, order="auto"):
    """How many triangles each edge is in (int64, m), edge by edge as in `row_idx`."""
    own = graph.ordered(order)
    (_, found), = tally(own, True)  # fmt: skip
    return carried_back(graph, own, found.astype(np.int64))


def tally(graph, by_edge, part=None, workers=None):
    """The triangles at each edge (int32) or vertex (int64), in the order that a graph has: [(where it begins, array)].

    Of all edges it is one array from 0 on. Of a part they are those edges or vertices that its triangles can have: two
    arrays, that of the edges' u and that of their v and beyond, or one where they touch.
    """
    few = FEW_WORKERS if part is None else FEW_IN_PART
    part = _all(graph) if part is None else part
    workers = _workers(part, workers)
    reach = _reach(graph, part)
    spans = reach.edges(graph.col_ptr) if by_edge else reach.vertices()
    wedges = _wedges(graph, part, reach, workers, sources=not by_edge)
    marks = np.zeros((workers, graph.n), np.int32)
    counters = np.zeros((workers, graph.max_column + 4), np.int32)
    kernel = (_tally_apart if workers <= few else _tally_edges) if by_edge else _tally_vertices
    copies = workers if kernel is _tally_apart else 1
    found = [np.zeros((copies, high - low), np.int32 if by_edge else np.int64) for low, high in spans]
    run_threads(kernel, graph.col_ptr, graph.row_idx, *wedges, reach.v_low, _chunks(reach), marks, counters,
                spans[0][0], found[0], spans[-1][0], found[-1], workers=workers)  # fmt: skip
    for array in found:
        for others in array[1:]:
            array[0] += others
    return [(low, array[0]) for (low, _), array in zip(spans, found)]


def carried_back(graph, own, values):
    """A value for each edge of `own`, the same graph in another order, edge by edge as in `graph`."""
    if own is graph:
        return values
    back = np.empty_like(values)
    run_threads(_carry_back, graph.col_ptr, graph.row_idx, own.rank, own.col_ptr, own.row_idx, values, back,
                workers=_workers(_all(graph)))  # fmt: skip
    return back


def list_triangles(graph, chunk=1 << 20, order="auto"):
    """Every triangle once, as int32 arrays of shape (at most `chunk`, 3); in a row j < i < k."""
    if chunk < 1:
        raise ValueError(f"a chunk holds at least 1 triangle, not {chunk}")
    own = graph.ordered(order)
    part = _all(own)
    reach, workers = _reach(own, part), _workers(part)
    start, lists, sources = _wedges(own, part, reach, workers, sources=True)
    marks = np.zeros((workers, own.n), np.int32)
    found = np.zeros(own.m, np.int64)  # triangles over each wedge list, in their order
    run_threads(_count_wedges, own.col_ptr, own.row_idx, start, lists, _chunks(reach), marks, found, workers=workers)
    ends = np.cumsum(found)
    source = None if own is graph else np.argsort(own.rank).astype(np.int32)
    first = done = 0
    while first < own.m and done < ends[-1]:
        last = max(first + 1, int(np.searchsorted(ends, done + chunk, side="right")))
        rows = np.empty((int(ends[last - 1]) - done, 3), np.int32)
        _list_wedges(own.col_ptr, own.row_idx, start, lists, sources, first, last, marks[0], rows)
        if source is not None:
            rows = np.sort(source[rows], axis=1)
        for at in range(0, len(rows), chunk):
            yield rows[at : at + chunk]
        first, done = last, int(ends[last - 1])


def _all(graph):
    return Edges(0, graph.m, 0, graph.n)


def _workers(part, wanted=None):
    return (wanted or threads()) if part.last - part.first >= MANY else 1


def _chunks(reach):
    """The number of the next chunk of middle vertices to take, and how many chunks there are."""
    return np.array([0, -(-(reach.v_high - reach.v_low) // CHUNK)], np.int64)


# ------------------------------------------------------------------------------------------------- what a graph looks like

_kept = WeakKeyDictionary()  # the graph that parts were counted of last -> its Design
_keeping = threading.Lock()


def _kept_design(graph):
    with _keeping:
        if graph not in _kept:
            _kept.clear()
            _kept[graph] = design(graph, MOST_KEPT)
        return _kept[graph]


def _some_stretches(graph):
    """Positions of edges: some stretches of the list."""
    starts = np.linspace(0, max(graph.m - 1024, 0), 64, dtype=np.int64)
    return starts[:, None] + np.arange(min(1024, graph.m))


def _words_per_nonzero(graph):
    """How many 64-bit words hold a column's rows, for each of them: by some stretches of `row_idx`."""
    word = graph.row_idx[_some_stretches(graph)] >> 6
    return np.mean(word[:, 1:] != word[:, :-1])


def _share_within(graph):
    """Of how many edges (u, v) the columns of u and v lie so close that a window holds both."""
    edges = _some_stretches(graph)[:, ::16]
    return np.mean(graph.col_ptr[graph.row_idx[edges] + 1] - edges < WINDOW // 8)


def _most_hubs(graph, most):
    return min(int(4 * graph.m**0.5), most)  # so many rows take a byte an edge


def _first_hub(graph, most):
    """From which vertex on they are hubs, by a sample of the edges; n if there are none worth it."""
    if graph.max_column < LONG_COLUMN:
        return graph.n
    step = max(1, graph.m // SAMPLE)
    place = np.sort(graph.n - graph.row_idx[step // 2 :: step])  # 1 is the last vertex
    hubs = min(_most_hubs(graph, most), graph.n)
    while hubs and step * np.diff(np.searchsorted(place, [hubs // 2, hubs], side="right"))[0] < HUB_ROWS * hubs // 2:
        hubs = hubs * 3 // 4
    if np.searchsorted(place, hubs, side="right") < HUB_SHARE * place.size:
        return graph.n
    return (graph.n - hubs) // 64 * 64


def hub_rows(graph, base):
    """The Hubs from vertex `base` on, a multiple of 64 or n."""
    hubs = graph.n - base
    first = np.arange(hubs, dtype=np.int64) // 64 // LINE * LINE
    start = np.concatenate(([0], np.cumsum(-(-hubs // 64) - first)))
    bits = np.zeros(int(start[-1]) + LINE, np.uint64)
    workers = threads() if hubs else 1
    run_threads(_fill_hub_rows, graph.col_ptr, graph.row_idx, base, start, bits, workers=workers)
    return Hubs(base, start, bits)


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


# ------------------------------------------------------------------------------------------------------------ the designs


def _count_short(graph, part, workers):
    found = np.zeros(workers, np.int64)
    run_threads(_short, graph.col_ptr, graph.row_idx, *_ends(part, workers), found, workers=workers)  # fmt: skip
    return int(found.sum())


def _count_hubs(graph, part, workers, base, start, bits):
    marks = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    found = np.zeros(workers, np.int64)
    run_threads(_hubs, graph.col_ptr, graph.row_idx, *_ends(part, workers), base, start, bits, marks, found, workers=workers)  # fmt: skip
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
        run_threads(_pack_words, graph.col_ptr, graph.row_idx, low, high, place, word, range_of, workers=workers)
        run_threads(_words, graph.col_ptr, graph.row_idx, *_ends(stretch, workers), low, place, word, range_of, marks,
                    found, workers=workers)  # fmt: skip
    return int(found.sum())


def _window(graph, part, most):
    """The range of vertices whose columns are to be packed, with no more nonzeros than `most`: by a sample of edges.

    Of a range that ends earlier, more columns are looked up row by row; of a later one, more are packed in vain.
    """
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


def _ends(part, workers):
    """What is to be counted, and the queue: the next stretch to take, how many there are, and the edges of each."""
    first, last, low, high = part.first, part.last, part.low, part.high
    size = min(max((last - first) // (workers * TURNS), STRETCH[0]), STRETCH[1])
    return first, last, low, high, np.array([0, -(-(last - first) // size), size], np.int64)


def _wedges(graph, part, reach, workers, sources):
    """For every vertex v, the lists to look up in its column: of each smaller neighbour u the rows behind v.

    Returns `(start, lists, sources)`: those of v are `lists[start[v - v_low]:start[v - v_low + 1]]`, each the first and
    last position in `row_idx`; the position before the first is the edge (u, v) itself. `sources` has the u of each, if
    it is asked for.
    """
    start = np.zeros(reach.v_high - reach.v_low + 1, np.int64)
    run_threads(_count_middles, graph.row_idx, part.first, part.last, reach.v_low, start, workers=workers)
    np.cumsum(start, out=start)
    many = int(start[-1])
    lists = np.empty((many, 2), np.int32 if graph.m < 2**31 else np.int64)
    sources = np.empty(many if sources else 0, np.int32)
    cuts = np.searchsorted(start, np.arange(workers + 1) * many // workers)
    cuts[0], cuts[-1] = 0, start.size - 1
    run_threads(_fill_wedges, graph.col_ptr, graph.row_idx, part.first, part.last, reach.u_low, reach.u_high,
                reach.v_low, cuts, start[:-1].copy(), lists, sources, workers=workers)  # fmt: skip
    return start, lists, sources


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
def _short(worker, workers, col_ptr, row_idx, first, last, low, high, queue, found):
    m = row_idx.size
    some_rows = low > 0 or high < col_ptr.size - 1
    total = I64(0)
    while True:
        stretch = fetch_add(queue, 0, 1)
        if stretch >= queue[1]:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = np.searchsorted(col_ptr, at, side="right") - 2
        while at < stop:
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            here = min(stop, end - 1)
            if some_rows:
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
def _fill_hub_rows(worker, workers, col_ptr, row_idx, base, start, bits):
    for hub in range(worker, start.size - 1, workers):
        first = hub // 64 // LINE * LINE
        for k in range(col_ptr[base + hub], col_ptr[base + hub + 1]):
            bit = U64(row_idx[U64(k)] - base)
            bits[U64(start[hub] - first) + (bit >> U64(6))] |= U64(1) << (bit & U64(63))


@jit
def _hubs(worker, workers, col_ptr, row_idx, first, last, low, high, queue, base, start, bits, all_marks, found):
    """Rows of bits where the middle vertex is a hub (from `base` on), marks where it is not."""
    marks = all_marks[worker]
    m = row_idx.size
    words = (start.size + 62) >> 6
    marks0 = base >> 6  # the word of the first hub
    some_rows = low > 0 or high < col_ptr.size - 1
    total = I64(0)
    while True:
        stretch = queue[1] - 1 - fetch_add(queue, 0, 1)
        if stretch < 0:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = np.searchsorted(col_ptr, at, side="right") - 2
        while at < stop:
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            here = min(stop, end - 1)
            if some_rows:
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
                if many and (end - k) * 4 > words - line:
                    for word in range(line, words):
                        common += popcount(marks[U64(marks0 + word)] & bits[U64(row_at + word)])
                else:
                    for j in range(k + 1, end):
                        bit = U64(row_idx[U64(j)] - base)
                        common += bits[U64(row_at) + (bit >> U64(6))] >> (bit & U64(63)) & U64(1)
                total += I64(common)
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
        last = np.int32(-1)
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            w = row_idx[U64(k)]
            if w >> np.int32(6) != last:
                last = w >> np.int32(6)
                put += 1
                place[U64(put)] = last
                word[U64(put)] = U64(0)
            word[U64(put)] |= U64(1) << U64(w & 63)
        range_of[U64(u - low), 1] = put + 1


@jit
def _words(
    worker, workers, col_ptr, row_idx, first, last, low, high, queue, packed, place, word, range_of, rows, found
):  # fmt: skip
    """Words of the columns from vertex `packed` on, as many as `range_of` has; of others row by row."""
    marks = rows[worker]
    some_rows = low > 0 or high < col_ptr.size - 1
    total = I64(0)
    while True:
        stretch = fetch_add(queue, 0, 1)
        if stretch >= queue[1]:
            break
        at = first + stretch * queue[2]
        stop = min(last, at + queue[2])
        u = np.searchsorted(col_ptr, at, side="right") - 2
        while at < stop:
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            here = min(stop, end - 1)
            if some_rows:
                while begin < here and row_idx[U64(begin)] < low:
                    begin += 1
                while begin < here and row_idx[U64(here - 1)] >= high:
                    here -= 1
            if begin >= here:
                continue
            mine = u - packed
            if 0 <= mine < range_of.shape[0]:
                for q in range(range_of[U64(mine), 0], range_of[U64(mine), 1]):
                    marks[U64(place[U64(q)])] = word[U64(q)]
            else:
                for k in range(begin, end):
                    row = U64(row_idx[U64(k)])
                    marks[row >> U64(6)] |= U64(1) << (row & U64(63))
            for k in range(begin, here):
                v = U64(row_idx[U64(k)])
                own = I64(v) - packed
                common = U64(0)
                if 0 <= own < range_of.shape[0]:
                    for q in range(range_of[U64(own), 0], range_of[U64(own), 1]):
                        common += popcount(marks[U64(place[U64(q)])] & word[U64(q)])
                else:
                    for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                        row = U64(row_idx[U64(q)])
                        common += marks[row >> U64(6)] >> (row & U64(63)) & U64(1)
                total += I64(common)
            if 0 <= mine < range_of.shape[0]:
                for q in range(range_of[U64(mine), 0], range_of[U64(mine), 1]):
                    marks[U64(place[U64(q)])] = U64(0)
            else:
                for k in range(begin, end):
                    marks[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
    found[worker] += total


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
def _fill_wedges(worker, workers, col_ptr, row_idx, first, last, u_low, u_high, v_low, cuts, put, lists, sources):
    """Every worker reads all edges and fills the lists of its own share of the middle vertices, each in order of u."""
    low, high = v_low + cuts[worker], v_low + cuts[worker + 1]
    for u in range(u_low, min(u_high, high)):
        end = col_ptr[U64(u + 1)]
        for k in range(max(first, col_ptr[U64(u)]), min(last, end)):
            v = I64(row_idx[U64(k)])
            if low <= v < high:
                at = put[U64(v - v_low)]
                lists[U64(at), 0] = k + 1
                lists[U64(at), 1] = end
                if sources.size:
                    sources[U64(at)] = u
                put[U64(v - v_low)] = at + 1


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
    worker, workers, col_ptr, row_idx, start, lists, sources, v_low, queue, all_marks, all_counters,
    near0, nears, far0, fars,
):  # fmt: skip
    """Add its triangles to every vertex: u's in `near`, from vertex `near0` on, those of v and w in `far`.

    No look-up needs a branch: what is not in v's column has place 0, and goes into a counter that is never read.
    """
    marks, counters, near, far = all_marks[worker], all_counters[worker], nears[0], fars[0]
    middles = start.size - 1
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
            begin, end = col_ptr[U64(v_low + v)], col_ptr[U64(v_low + v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            _mark_places(row_idx, begin, end, marks)
            total = I64(0)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                closed = np.int32(0)
                for k in range(I64(lists[U64(q), 0]), I64(lists[U64(q), 1])):
                    place = marks[U64(row_idx[U64(k)])]
                    hit = np.int32(place > 0)
                    counters[U64(place | np.int32(k) & np.int32(3) & (hit - np.int32(1)))] += np.int32(1)
                    closed += hit
                if closed:
                    fetch_add(near, I64(sources[U64(q)]) - near0, I64(closed))
                    total += I64(closed)
            if total:
                fetch_add(far, v_low + v - far0, total)
            for k in range(begin, end):
                counted = counters[U64(k - begin + 4)]
                counters[U64(k - begin + 4)] = 0
                if counted:
                    fetch_add(far, I64(row_idx[U64(k)]) - far0, I64(counted))
            _unmark(row_idx, begin, end, marks)


@jit
def _tally_edges(
    worker, workers, col_ptr, row_idx, start, lists, sources, v_low, queue, all_marks, all_counters,
    near0, nears, far0, fars,
):  # fmt: skip
    """Add its triangles to every edge: those in the columns of u in `near`, those in v's in `far`.

    Only the edge (u, w) is added to triangle by triangle; the other two wait in a sum or in their counter.
    """
    marks, counters, near, far = all_marks[worker], all_counters[worker], nears[0], fars[0]
    middles = start.size - 1
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
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
    worker, workers, col_ptr, row_idx, start, lists, sources, v_low, queue, all_marks, all_counters,
    near0, nears, far0, fars,
):  # fmt: skip
    """Add its triangles to every edge as `_tally_edges` does, where nothing is shared, nor needs a branch."""
    marks, counters, near, far = all_marks[worker], all_counters[worker], nears[worker], fars[worker]
    middles = start.size - 1
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(middles, (chunk + 1) * CHUNK)):
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
            low, high = own_ptr[column], own_ptr[column + U64(1)] - 1
            while low < high:
                middle = (low + high) >> 1
                if own_idx[U64(middle)] < row:
                    low = middle + 1
                else:
                    high = middle
            back[U64(k)] = values[U64(low)]


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
            begin, end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
            _mark_places(row_idx, begin, end, marks)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                for k in range(I64(lists[U64(q), 0]), I64(lists[U64(q), 1])):
                    found[U64(q)] += marks[U64(row_idx[U64(k)])] > 0
            _unmark(row_idx, begin, end, marks)


@jit
def _list_wedges(col_ptr, row_idx, start, lists, sources, first, last, marks, rows):
    """The triangles over `lists[first:last]`, one a row."""
    put = 0
    v = np.searchsorted(start, first, side="right") - 1
    while v < col_ptr.size - 1 and start[v] < last:
        begin, end = col_ptr[v], col_ptr[v + 1]
        _mark_places(row_idx, begin, end, marks)
        for q in range(max(first, start[v]), min(last, start[v + 1])):
            for k in range(I64(lists[q, 0]), I64(lists[q, 1])):
                if marks[row_idx[k]]:
                    rows[put, 0] = sources[q]
                    rows[put, 1] = v
                    rows[put, 2] = row_idx[k]
                    put += 1
        _unmark(row_idx, begin, end, marks)
        v += 1
