"""The native engine: exact counts on all cores of a CPU.

`count` picks one of four designs by what the columns look like; each asks, for a vertex u and every v in its column,
what of v's own column is in u's, too:

    short  where no column is long: the rest of u's column, one after the other, against sixteen rows of v's at once
    words  where columns are long and neighbours close: u's and v's column as their non-zero 64-bit words, of which each
           holds many neighbours
    hubs   in degree order: the columns of the top vertices as rows of bits, so that a pair of hubs costs an AND and a
           popcount of few words, or one bit test a neighbour, whichever is less; marks for the rest
    marks  for any other: u's column marked, a byte a vertex, and all of v's looked up

Per vertex, per edge and one by one (`triangles`, `support`, `list_triangles`) triangles u < v < w are found from their
middle: v's column is marked, and of every smaller neighbour u the rows behind v are looked up. This takes the fewest
look-ups, and the place of all three edges is at hand. All results are the same for any number of threads.

Inner loops are written out, not called: Numba counts, atomically, the references to every array that a function is
given, even where it inlines that function, and twice as long a count is what it cost here.
"""

import numpy as np

from tcgpu._native import LANES, fetch_add, inline, jit, matches, popcount, prefetch, run_threads, threads
from tcgpu.columns import MANY

SHORT_COLUMN = 32  # where none is longer, comparing beats marking
DENSE = 12  # nonzeros per column from which packed words beat byte marks,
CLOSE = 0.5  # if there are no more words than this for each nonzero
LONG_COLUMN = 64  # hubs pay where some column is as long
HUB_DEGREE = 32  # a hub has at least this many neighbours
MOST_HUBS = 1 << 16
FEW_WORKERS = 4  # no more than these have an array of all edges each
CHUNK = 256  # vertices a worker takes at a time
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


def count(graph):
    """The number of triangles of a Graph, counted in the order that it has, as a Python int."""
    if graph.max_column <= SHORT_COLUMN:
        return _count_short(graph)
    if graph.nonzeros_per_column >= DENSE and _words_per_nonzero(graph) <= CLOSE:
        return _count_words(graph)
    if graph.order == "degree" and graph.max_column >= LONG_COLUMN:
        return _count_hubs(graph, *_hub_rows(graph))
    return _count_hubs(graph, graph.n, np.zeros(1, np.int64), np.zeros(1, np.uint64))


def triangles(graph, order="auto"):
    """How many triangles each vertex is in (int64, n); `order` is the one to count in, not of the result."""
    own = graph.ordered(order)
    found = np.zeros(own.n, np.int64)
    _tally_all(own, vertices=found, edges=np.empty(0, np.int64))
    return found if own is graph else found[own.rank]


def support(graph, order="auto"):
    """How many triangles each edge is in (int64, m), edge by edge as in `row_idx`."""
    own = graph.ordered(order)
    if _workers(own) > FEW_WORKERS:
        found = np.zeros(own.m, np.int64)
        _tally_all(own, vertices=np.empty(0, np.int64), edges=found)
    else:
        found = _support_apart(own)
    return carried_back(graph, own, found)


def _support_apart(graph):
    """The support in the order that a graph has, each worker counting in an array of its own."""
    workers = _workers(graph)
    marks = np.zeros((workers, graph.n), np.int32)
    counters = np.zeros((workers, graph.max_column + 1), np.int32)
    found = np.zeros((workers, graph.m), np.int32)
    run_threads(_tally_apart, graph.col_ptr, graph.row_idx, *_wedges(graph), _queue(graph), marks, counters, found,
                workers=workers)  # fmt: skip
    total = found[0].astype(np.int64)
    for others in found[1:]:
        total += others
    return total


def carried_back(graph, own, values):
    """A value for each edge of `own`, the same graph in another order, edge by edge as in `graph`."""
    if own is graph:
        return values
    back = np.empty_like(values)
    run_threads(_carry_back, graph.col_ptr, graph.row_idx, own.rank, own.col_ptr, own.row_idx, values, back,
                workers=_workers(graph))  # fmt: skip
    return back


def list_triangles(graph, chunk=1 << 20, order="auto"):
    """Every triangle once, as int32 arrays of shape (at most `chunk`, 3); in a row j < i < k."""
    if chunk < 1:
        raise ValueError(f"a chunk holds at least 1 triangle, not {chunk}")
    own = graph.ordered(order)
    wedges = _wedges(own)
    marks = _scratch(own)[0]
    found = np.zeros(own.m, np.int64)  # triangles over each wedge list, in their order
    run_threads(_count_wedges, own.col_ptr, own.row_idx, *wedges, _queue(own), marks, found, workers=len(marks))
    ends = np.cumsum(found)
    source = None if own is graph else np.argsort(own.rank).astype(np.int32)
    first = done = 0
    while first < own.m and done < ends[-1]:
        last = max(first + 1, int(np.searchsorted(ends, done + chunk, side="right")))
        rows = np.empty((int(ends[last - 1]) - done, 3), np.int32)
        _list_wedges(own.col_ptr, own.row_idx, own.col_of, *wedges, first, last, marks[0], rows)
        if source is not None:
            rows = np.sort(source[rows], axis=1)
        for at in range(0, len(rows), chunk):
            yield rows[at : at + chunk]
        first, done = last, int(ends[last - 1])


def _workers(graph):
    return threads() if graph.m >= MANY else 1


def _queue(graph):
    """The number of the next chunk to take, and how many chunks there are."""
    return np.array([0, -(-graph.n // CHUNK)], np.int64)


def _words_per_nonzero(graph):
    """How many 64-bit words hold a column's rows, for each of them: by some stretches of `row_idx`."""
    starts = np.linspace(0, max(graph.m - 1024, 0), 64, dtype=np.int64)
    word = np.stack([graph.row_idx[start : start + 1024] for start in starts]) >> 6
    return np.mean(word[:, 1:] != word[:, :-1])


def _hub_rows(graph):
    """The top vertices' columns as bits: the first hub, where each one's words start, and the words.

    Vertex w is bit w - base; the row of a hub v starts at the line of words that holds v, since all of its column lies
    behind v.
    """
    as_large = int(4 * graph.m**0.5)  # this many rows take a byte an edge
    hubs = min(int((graph.degrees >= HUB_DEGREE).sum()), as_large, MOST_HUBS) // 64 * 64
    base = graph.n - hubs
    words = hubs // 64
    first = np.arange(hubs, dtype=np.int64) // 64 // LINE * LINE
    start = np.concatenate(([0], np.cumsum(words - first))) if hubs else np.zeros(1, np.int64)
    bits = np.zeros(int(start[-1]) + LINE, np.uint64)
    run_threads(_fill_hub_rows, graph.col_ptr, graph.row_idx, base, start, bits, workers=_workers(graph))
    return base, start, bits


def _count_short(graph):
    found = np.zeros(_workers(graph), np.int64)
    run_threads(_short, graph.col_ptr, graph.row_idx, _queue(graph), found, workers=found.size)
    return int(found.sum())


def _count_hubs(graph, base, start, bits):
    workers = _workers(graph)
    marks = np.zeros((workers, graph.n), np.uint8)
    row = np.zeros((workers, (graph.n - base) // 64 + LINE), np.uint64)
    found = np.zeros(workers, np.int64)
    run_threads(_hubs, graph.col_ptr, graph.row_idx, _queue(graph), base, start, bits, marks, row, found,
                workers=workers)  # fmt: skip
    return int(found.sum())


def _count_words(graph):
    workers = _workers(graph)
    place = np.empty(graph.m, np.int32)
    word = np.empty(graph.m, np.uint64)
    range_of = np.empty((graph.n, 2), np.int64)
    run_threads(_pack_words, graph.col_ptr, graph.row_idx, place, word, range_of, workers=workers)
    row = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    found = np.zeros(workers, np.int64)
    run_threads(_words, graph.col_ptr, graph.row_idx, place, word, range_of, _queue(graph), row, found,
                workers=workers)  # fmt: skip
    return int(found.sum())


def _wedges(graph):
    """For every vertex v, the lists to look up in its column: of each smaller neighbour u the rows behind v.

    Returns `(start, lists)`: v's are `lists[start[v]:start[v + 1]]`, each the first and last position in `row_idx`;
    the position before the first is the edge (v, u) itself.
    """
    start = np.zeros(graph.n + 1, np.int64)
    np.cumsum(graph.degrees - graph.column_lengths, out=start[1:])
    lists = np.empty((graph.m, 2), np.int32 if graph.m < 2**31 else np.int64)
    workers = _workers(graph)
    cuts = np.searchsorted(start, np.arange(workers + 1) * graph.m // workers)
    cuts[0], cuts[-1] = 0, graph.n
    run_threads(_fill_wedges, graph.col_ptr, graph.row_idx, cuts, start[:-1].copy(), lists, workers=workers)
    return start, lists


def _tally_all(graph, vertices, edges):
    marks, counters = _scratch(graph)
    run_threads(_tally, graph.col_ptr, graph.row_idx, graph.col_of, *_wedges(graph), _queue(graph), marks, counters,
                vertices, edges, workers=len(marks))  # fmt: skip


def _scratch(graph):
    """For every worker: marks (a place in the column + 1 for each vertex) and a counter for each place."""
    workers = _workers(graph)
    return np.zeros((workers, graph.n), np.int32), np.zeros((workers, graph.max_column), np.int64)


@jit
def _short(worker, workers, col_ptr, row_idx, queue, found):
    n, m = col_ptr.size - 1, row_idx.size
    total = I64(0)
    while True:
        chunk = fetch_add(queue, 0, 1)
        if chunk >= queue[1]:
            break
        for u in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            end = col_ptr[U64(u + 1)]
            for k in range(col_ptr[U64(u)], end - 1):
                if k + FAR < m:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                    prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                v = U64(row_idx[U64(k)])
                first, last = col_ptr[v], col_ptr[v + U64(1)]
                while first < last:
                    if first + LANES <= m:
                        for i in range(k + 1, end):
                            total += matches(row_idx, first, np.int32(last - first), row_idx[U64(i)])
                    else:  # so near the end of all columns that sixteen rows are not there to be read
                        for q in range(first, last):
                            for i in range(k + 1, end):
                                total += row_idx[U64(i)] == row_idx[U64(q)]
                    first += LANES
    found[worker] = total


@jit
def _fill_hub_rows(worker, workers, col_ptr, row_idx, base, start, bits):
    for hub in range(worker, start.size - 1, workers):
        first = hub // 64 // LINE * LINE
        for k in range(col_ptr[base + hub], col_ptr[base + hub + 1]):
            bit = U64(row_idx[U64(k)] - base)
            bits[U64(start[hub] - first) + (bit >> U64(6))] |= U64(1) << (bit & U64(63))


@jit
def _hubs(worker, workers, col_ptr, row_idx, queue, base, start, bits, all_marks, rows, found):
    """Bits where the middle vertex is a hub (from `base` on), marks where it is not; chunks from the top down."""
    marks, row = all_marks[worker], rows[worker]
    n, m = col_ptr.size - 1, row_idx.size
    words = (n - base) >> 6
    total = I64(0)
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for u in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            begin, end = col_ptr[U64(u)], col_ptr[U64(u + 1)]
            if end - begin < 2:
                continue
            hubs = end  # where the column's hubs begin
            while hubs > begin and row_idx[U64(hubs - 1)] >= base:
                hubs -= 1
            if end - hubs >= 2:
                total += _hub_pairs(row_idx, hubs, end, base, words, start, bits, row)
            if hubs > begin:
                for k in range(begin, end):
                    marks[U64(row_idx[U64(k)])] = 1
                for k in range(begin, min(hubs, end - 1)):
                    if k + FAR < m:
                        prefetch(col_ptr, row_idx[U64(k + FAR)])
                        prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                    v = U64(row_idx[U64(k)])
                    marked = np.uint32(0)
                    for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                        marked += np.uint32(marks[U64(row_idx[U64(q)])])
                    total += I64(marked)
                for k in range(begin, end):
                    marks[U64(row_idx[U64(k)])] = 0
    found[worker] = total


@inline
def _hub_pairs(row_idx, begin, end, base, words, start, bits, row):
    """How many pairs of the hubs `row_idx[begin:end]` are neighbours."""
    total = I64(0)
    many = end - begin > 12  # from here on it pays to have the hubs as bits
    if many:
        for k in range(begin, end):
            bit = U64(row_idx[U64(k)] - base)
            row[bit >> U64(6)] |= U64(1) << (bit & U64(63))
    for k in range(begin, end - 1):
        hub = I64(row_idx[U64(k)]) - base
        first = hub // 64 // LINE * LINE
        at = start[U64(hub)]
        if many and (end - k) * 4 > words - first:
            shared = U64(0)
            for word in range(words - first):
                shared += popcount(row[U64(first + word)] & bits[U64(at + word)])
            total += I64(shared)
        else:
            linked = U64(0)
            for j in range(k + 1, end):
                bit = U64(row_idx[U64(j)] - base)
                linked += bits[U64(at - first) + (bit >> U64(6))] >> (bit & U64(63)) & U64(1)
            total += I64(linked)
    if many:
        for k in range(begin, end):
            row[U64(row_idx[U64(k)] - base) >> U64(6)] = U64(0)
    return total


@jit
def _pack_words(worker, workers, col_ptr, row_idx, place, word, range_of):
    """Each column as the non-zero words of its bit array; a worker's columns lie one close behind the other."""
    n = col_ptr.size - 1
    first = n * worker // workers
    put = col_ptr[first] - 1  # never more words than rows: there is room
    for u in range(first, n * (worker + 1) // workers):
        range_of[U64(u), 0] = put + 1
        last = np.int32(-1)
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            w = row_idx[U64(k)]
            if w >> np.int32(6) != last:
                last = w >> np.int32(6)
                put += 1
                place[U64(put)] = last
                word[U64(put)] = U64(0)
            word[U64(put)] |= U64(1) << U64(w & 63)
        range_of[U64(u), 1] = put + 1


@jit
def _words(worker, workers, col_ptr, row_idx, place, word, range_of, queue, rows, found):
    row = rows[worker]
    n = col_ptr.size - 1
    total = I64(0)
    while True:
        chunk = fetch_add(queue, 0, 1)
        if chunk >= queue[1]:
            break
        for u in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            begin, end = range_of[U64(u), 0], range_of[U64(u), 1]
            for k in range(begin, end):
                row[U64(place[U64(k)])] = word[U64(k)]
            for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)] - 1):
                v = U64(row_idx[U64(k)])
                shared = U64(0)
                for q in range(range_of[v, 0], range_of[v, 1]):
                    shared += popcount(row[U64(place[U64(q)])] & word[U64(q)])
                total += I64(shared)
            for k in range(begin, end):
                row[U64(place[U64(k)])] = U64(0)
    found[worker] = total


@jit
def _fill_wedges(worker, workers, col_ptr, row_idx, cuts, put, lists):
    """Every worker reads all columns and fills the lists of its own share of the vertices, each in order of u."""
    low, high = cuts[worker], cuts[worker + 1]
    for u in range(min(high, col_ptr.size - 1)):
        end = col_ptr[U64(u + 1)]
        for k in range(col_ptr[U64(u)], end):
            v = I64(row_idx[U64(k)])
            if low <= v < high:
                lists[U64(put[U64(v)]), 0] = k + 1
                lists[U64(put[U64(v)]), 1] = end
                put[U64(v)] += 1


@inline
def _mark_places(row_idx, begin, end, marks):
    for k in range(begin, end):
        marks[U64(row_idx[U64(k)])] = k - begin + 1


@inline
def _unmark(row_idx, begin, end, marks):
    for k in range(begin, end):
        marks[U64(row_idx[U64(k)])] = 0


@jit
def _tally(
    worker, workers, col_ptr, row_idx, col_of, start, lists, queue, all_marks, all_counters, vertices, edges
):  # fmt: skip
    """Add its triangles to every vertex, or where `edges` is not empty to every edge.

    Only the far edge (u, w) is added to triangle by triangle; the other two wait in a sum or in their counter.
    """
    marks, counters = all_marks[worker], all_counters[worker]
    n = col_ptr.size - 1
    by_edge = edges.size > 0
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            begin, end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
            if begin == end or start[U64(v)] == start[U64(v + 1)]:
                continue
            _mark_places(row_idx, begin, end, marks)
            total = I64(0)
            for q in range(start[U64(v)], start[U64(v + 1)]):
                first = I64(lists[U64(q), 0])
                closed = I64(0)
                for k in range(first, I64(lists[U64(q), 1])):
                    place = marks[U64(row_idx[U64(k)])]
                    if place:
                        closed += 1
                        counters[U64(place - 1)] += 1
                        if by_edge:
                            fetch_add(edges, k, 1)
                if closed and by_edge:
                    fetch_add(edges, first - 1, closed)
                elif closed:
                    fetch_add(vertices, I64(col_of[U64(first - 1)]), closed)
                    total += closed
            if total:
                fetch_add(vertices, v, total)
            for k in range(begin, end):
                counted = counters[U64(k - begin)]
                counters[U64(k - begin)] = 0
                if counted and by_edge:
                    fetch_add(edges, k, counted)
                elif counted:
                    fetch_add(vertices, I64(row_idx[U64(k)]), counted)
            _unmark(row_idx, begin, end, marks)


@jit
def _tally_apart(worker, workers, col_ptr, row_idx, start, lists, queue, all_marks, all_counters, all_edges):
    """Add its triangles to every edge as `_tally` does, where nothing is shared; so no look-up needs a branch.

    What is not in v's column has place 0 and goes into a counter that is never read.
    """
    marks, counters, edges = all_marks[worker], all_counters[worker], all_edges[worker]
    n = col_ptr.size - 1
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            break
        for v in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            begin, end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
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
                    edges[U64(k)] += hit
                    closed += hit
                edges[U64(first - 1)] += closed
            for k in range(begin, end):
                edges[U64(k)] += counters[U64(k - begin + 1)]
                counters[U64(k - begin + 1)] = 0
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
