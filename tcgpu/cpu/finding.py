"""Find the triangles u < v < w of the edges (u, v) of a part: one loop, whatever becomes of the triangles.

For each edge the rows of u's column after v are looked for in v's column: they are compared, LANES at once, if u's
column is short; v's column is searched if it is much longer; else its rows are looked up in a bitmap of u's column,
which stays in the caches. An `Emitter` says what becomes of a triangle. It is bound when the loop is compiled. Without
one the loop counts: then rows are not even listed, hubs' rows of bits are ANDed, and edges may be put off (`counting`).

The loops over a column are not functions. These would have array arguments, whose references Numba counts atomically,
even for an inlined function: counts took twice as long. What an emitter adds to is therefore `uncounted`.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tcgpu.cpu.edges import last_up_to, takes_any_v
from tcgpu.cpu_costs import AND_WORDS, FEW_HUBS, FEW_ROWS, LATER_ROWS, MUCH_LONGER
from tcgpu.engines import native
from tcgpu.engines.native import CACHE_LINE, I32, I64, LANES, U64, inline, jit, lowest_bit, matching, popcount

CHUNK = 1 << 10, 1 << 16  # edges that a worker takes at a time: at least, at most,
CHUNKS = 64  # and between these limits as many as make this number of chunks for each worker
PIECES = 2  # chunks of a very long column for each worker
FAR, NEAR = 16, 6  # how many nonzeros ahead to prefetch v's column pointer, and the start of its column
REST_BITS = 16  # of the number of rows of u's column that are left for an edge that is counted later
MOST_ROWS = 1 << REST_BITS


class Emitter(NamedTuple):
    """What becomes of triangles: compiled functions, of which most may be missing."""

    begin: Callable  # (state, worker): what the other functions get as `own`
    triangle: Callable | None = None  # (own, u, v, w, uv, uw, vw): a triangle and the positions of its edges
    edge: Callable | None = None  # (own, v, uv, many): all triangles of an edge (u, v), at least one, are emitted
    column: Callable | None = None  # (own, u, many): the same of a vertex u
    ahead: Callable | None = None  # (own, position): triangles at the edges from this position on may follow soon


@functools.cache
def finder(emitter=None, compares=False):
    """The compiled loop for an Emitter, or for a count, which `run` calls.

        find(worker, workers, col_ptr, row_idx, low, high, queue, bounds, ahead, bitmaps, places, hits, state, hubs,
             later, found)

    compares: whether all columns are short, so that rows are only compared. What is None below is not compiled.
    ahead: None if most columns are near, and nothing is to be prefetched. bitmaps: a bit for each vertex, 0, for each
    worker. places, hits: with an emitter, an int32 for each vertex and for each row of the longest column; without
    `places` only w is emitted where rows are looked up in a bitmap. state: of the emitter. hubs, later, found: of a
    count, the Hubs, what `counting` counts later, and where each worker writes its count.
    """
    counting = emitter is None
    begin_worker, emit, emit_edge, emit_column, announce = emitter or (None,) * 5

    @jit
    def find(
        worker, workers, col_ptr, row_idx, low, high, queue, bounds, ahead, bitmaps, places, hits, state, hubs, later,
        found,
    ):  # fmt: skip
        m, total = row_idx.size, I64(0)
        if not compares:
            bitmap = bitmaps[worker]
        if not counting:
            own, hit = begin_worker(state, worker), hits[worker]
            if places is not None:
                place = places[worker]
        if hubs is not None:
            base, start, bits = hubs
            words, first_hub_word = (start.size + 62) >> 6, base >> 6
        if later is not None:
            shift, counters, of_bucket = later
        for chunk, u, at, stop in chunks(queue, bounds, col_ptr):
            if later is not None:
                counters[chunk] = 0
            while at < stop and (compares or not native.stopped(queue)):
                u += 1
                begin, end = at, col_ptr[U64(u + 1)]
                at = end
                last_v = min(stop, end - 1)
                if low is not None:
                    begin, last_v = within(row_idx, begin, last_v, low, high)
                if not compares and begin >= last_v:
                    continue
                short = end - begin <= FEW_ROWS and m >= LANES
                first_hub = end
                if hubs is not None:
                    while first_hub > begin and row_idx[U64(first_hub - 1)] >= base:
                        first_hub -= 1
                marked = end  # rows from this position on are in the bitmap
                of_u = I64(0)
                for k in range(begin, min(first_hub, last_v)):
                    if ahead is not None:
                        if k + FAR < m:
                            native.prefetch(col_ptr, row_idx[U64(k + FAR)])
                            soon = col_ptr[U64(row_idx[U64(k + NEAR)])]
                            native.prefetch(row_idx, soon)
                            if announce is not None:
                                announce(own, soon)
                    v = U64(row_idx[U64(k)])
                    q, v_end = col_ptr[v], col_ptr[v + U64(1)]
                    many = I64(0)
                    if compares or short and v_end - q <= MUCH_LONGER:
                        while True:
                            read = min(q, m - LANES)
                            if counting:
                                i = k + 1
                                while True:  # a row is left: a loop that tested this first took a third more time
                                    same = matching(row_idx, read, I32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                                    many += I64(popcount(same))
                                    i += 1
                                    if i >= end:
                                        break
                            else:
                                shared = U64(0)  # the rows that are found: a branch could not be predicted
                                for i in range(k + 1, end):
                                    same = matching(row_idx, read, I32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                                    shared |= U64(same != U64(0)) << U64(i - k)
                                while shared:
                                    i = k + lowest_bit(shared)
                                    same = matching(row_idx, read, I32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                                    emit(own, u, v, row_idx[U64(i)], k, i, q + lowest_bit(same))
                                    many += 1
                                    shared &= shared - U64(1)
                            q += LANES
                            if q >= v_end:
                                break
                    elif (end - k) * MUCH_LONGER < v_end - q:
                        for i in range(k + 1, end):
                            row, left = row_idx[U64(i)], v_end - q
                            while left > 1:  # no branch depends on the rows: it could not be predicted
                                half = left >> 1
                                q += half * I64(row_idx[U64(q + half - 1)] < row)
                                left -= half
                            if counting:
                                many += row_idx[U64(q)] == row
                            elif row_idx[U64(q)] == row:
                                emit(own, u, v, row, k, i, q)
                                many += 1
                    elif later is not None and is_later(end - k, v_end - q):
                        counters[chunk, U64(q >> shift)] += 1
                    elif q < v_end:
                        if marked == end:
                            marked = k + 1
                            for i in range(marked, end):
                                row = U64(row_idx[U64(i)])
                                bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                                if places is not None:
                                    place[row] = i - begin
                        if counting:
                            common = U64(0)
                            for j in range(q, v_end):
                                row = U64(row_idx[U64(j)])
                                common += bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1)
                            many = I64(common)
                        else:
                            for j in range(q, v_end):  # list the hits without a branch, then emit them
                                row = U64(row_idx[U64(j)])
                                hit[U64(many)] = row if places is None else j - q
                                many += I64(bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1))
                            for x in range(many):
                                if places is None:
                                    emit(own, u, v, hit[U64(x)], k, 0, 0)
                                else:
                                    j = q + I64(hit[U64(x)])
                                    row = row_idx[U64(j)]
                                    emit(own, u, v, row, k, begin + I64(place[U64(row)]), j)
                    if counting:
                        total += many
                    elif many:
                        of_u += many
                        if emit_edge is not None:
                            emit_edge(own, v, k, many)
                if hubs is not None:
                    if first_hub < last_v:
                        many_hubs = end - first_hub > FEW_HUBS
                        u_line = (u - base) // 64 // CACHE_LINE * CACHE_LINE
                        # whether copying u's own row of bits is faster
                        copied = many_hubs and u >= base and words - u_line < end - first_hub
                        if copied:
                            for word in range(u_line, words):
                                bitmap[U64(first_hub_word + word)] = bits[U64(start[U64(u - base)] - u_line + word)]
                        elif many_hubs and marked == end:
                            marked = first_hub
                            for k in range(marked, end):
                                row = U64(row_idx[U64(k)])
                                bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                        for k in range(first_hub, last_v):
                            hub = I64(row_idx[U64(k)]) - base
                            line = hub // 64 // CACHE_LINE * CACHE_LINE
                            bits_at = start[U64(hub)] - line
                            common = U64(0)
                            if many_hubs and (end - k) * AND_WORDS > words - line:
                                for word in range(line, words):
                                    common += popcount(bitmap[U64(first_hub_word + word)] & bits[U64(bits_at + word)])
                            else:
                                for j in range(k + 1, end):
                                    bit = U64(row_idx[U64(j)] - base)
                                    common += bits[U64(bits_at) + (bit >> U64(6))] >> (bit & U64(63)) & U64(1)
                            total += I64(common)
                        if copied:
                            for word in range(u_line, words):
                                bitmap[U64(first_hub_word + word)] = U64(0)
                if emit_column is not None:
                    if of_u:
                        emit_column(own, u, of_u)
                if not compares:
                    for k in range(marked, end):
                        bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
            if later is not None:
                for bucket in range(len(of_bucket)):
                    of_bucket[bucket, chunk] = counters[chunk, bucket]
        if counting:
            found[worker] = total

    return find


@functools.cache
def words_finder(emitter=None):
    """As `finder`, for words of columns: it ANDs those of v's column with u's bitmap, if these are packed.

        find(worker, workers, col_ptr, row_idx, low, high, queue, bounds, packed, packed_end, word_index, words, span,
             bitmaps, state, found)

    packed, packed_end: the range of vertices whose columns are packed; rows of others are tested one by one. An
    emitter gets the number of triangles of each edge. All columns are then packed, or whole neighbourhoods: see
    `pack_words`.
    """
    counting = emitter is None
    begin_worker, _, emit_edge, emit_column, _ = emitter or (None,) * 5

    @jit
    def find(
        worker, workers, col_ptr, row_idx, low, high, queue, bounds, packed, packed_end, word_index, words, span,
        bitmaps, state, found,
    ):  # fmt: skip
        bitmap, total = bitmaps[worker], I64(0)
        if not counting:
            own = begin_worker(state, worker)
        for _, u, at, stop in chunks(queue, bounds, col_ptr):
            while at < stop and not native.stopped(queue):
                u += 1
                begin, end = at, col_ptr[U64(u + 1)]
                at = end
                last_v = min(stop, end - counting)  # in whole neighbourhoods, the last row of u's column counts, too
                if low is not None:
                    begin, last_v = within(row_idx, begin, last_v, low, high)
                if begin >= last_v:
                    continue
                near, far = within(row_idx, begin, last_v, packed, packed_end)  # these edges have a packed v
                u_packed = packed <= u < packed_end
                if u_packed:
                    for q in range(span[U64(u - packed), 0], span[U64(u - packed), 1]):
                        bitmap[U64(word_index[U64(q)])] = words[U64(q)]
                else:
                    for k in range(begin, end):
                        row = U64(row_idx[U64(k)])
                        bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                of_u = I64(0)
                for k in range(near, far):
                    v = U64(row_idx[U64(k)] - packed)
                    common = U64(0)
                    for q in range(span[v, 0], span[v, 1]):
                        common += popcount(bitmap[U64(word_index[U64(q)])] & words[U64(q)])
                    of_u += I64(common)
                    if not counting:
                        emit_edge(own, v, k, I64(common))
                if counting:
                    for k in range(begin, last_v - (far - near)):
                        v = U64(row_idx[U64(k if k < near else k + far - near)])
                        common = U64(0)
                        for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                            row = U64(row_idx[U64(q)])
                            common += bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1)
                        of_u += I64(common)
                    total += of_u
                if emit_column is not None:
                    emit_column(own, u, of_u)
                if u_packed:
                    for q in range(span[U64(u - packed), 0], span[U64(u - packed), 1]):
                        bitmap[U64(word_index[U64(q)])] = U64(0)
                else:
                    for k in range(begin, end):
                        bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
        if counting:
            found[worker] = total

    return find


@jit
def pack_words(worker, workers, col_ptr, row_idx, low, high, word_index, words, span):
    """Pack the columns of vertices low..high - 1: the non-zero words of each column's bitmap, and their indices there.

    The words of vertex u are those at positions span[u - low, 0]..span[u - low, 1] - 1. A column has no more words than
    nonzeros, so each worker writes where the nonzeros of its columns begin.
    """
    begin = low + (high - low) * worker // workers
    put = col_ptr[begin] - col_ptr[low] - 1
    for u in range(begin, low + (high - low) * (worker + 1) // workers):
        span[U64(u - low), 0] = put + 1
        last, bits = np.int32(-1), U64(0)
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            row = row_idx[U64(k)]
            if row >> np.int32(6) != last:
                last, bits = row >> np.int32(6), U64(0)
                put += 1
                word_index[U64(put)] = last
            bits |= U64(1) << U64(row & 63)
            words[U64(put)] = bits
        span[U64(u - low), 1] = put + 1


def run(find, graph, part, workers, *args):
    """Call a loop of a `finder` for all edges of a part: `find(worker, workers, ..., bounds, *args)`."""
    bounds = chunk_bounds(graph, part, workers)
    queue = np.array([0, bounds.size - 1], np.int64)  # the next chunk, how many there are
    v_range = (None, None) if takes_any_v(part, graph) else (part.low, part.high)  # None: compiled without comparisons
    native.run_threads(find, graph.col_ptr, graph.row_idx, *v_range, queue, bounds, *args,
                       workers=workers, queue=native.stoppable(queue, part.last - part.first))  # fmt: skip


def chunk_bounds(graph, part, workers):
    """The first edges of all chunks of a part, and the end of the last one (int64).

    A kernel marks a column again in each chunk that the column reaches into. So columns of many chunks are cut into
    fewer.
    """
    chunk = min(max((part.last - part.first) // (workers * CHUNKS), CHUNK[0]), CHUNK[1])
    bounds = np.append(np.arange(part.first, part.last, chunk), part.last)
    if graph.max_column <= 2 * PIECES * workers * chunk:
        return bounds
    columns = np.searchsorted(graph.col_ptr, bounds[:-1], side="right") - 1
    columns, chunks_of = np.unique(columns, return_counts=True)
    for u in columns[chunks_of > 2 * PIECES * workers]:
        begin, end = np.clip(graph.col_ptr[u : u + 2], part.first, part.last)
        pieces = np.linspace(begin, end, PIECES * workers + 1).astype(np.int64)
        bounds = np.concatenate([bounds[bounds < begin], pieces, bounds[bounds > end]])
    return np.unique(bounds)


@inline
def is_later(left, rows):
    """Whether an edge of a whole graph is counted later: if v's column is long, but not so long that it is searched.

    left: the rows of u's column that are left, v included. rows: those of v's column.
    """
    return rows >= LATER_ROWS and left <= min(rows, MOST_ROWS) and rows <= left * MUCH_LONGER


@inline
def within(row_idx, begin, end, low, high):
    """The positions in begin..end - 1 whose rows are in low..high - 1: the first, and the one after the last."""
    while begin < end and row_idx[U64(begin)] < low:
        begin += 1
    while begin < end and row_idx[U64(end - 1)] >= high:
        end -= 1
    return begin, end


@native.uncached
def chunks(queue, bounds, col_ptr):
    """Take chunks of edges until none is left.

    Yield the number of each, the column before that of its first edge, its first edge, and its end.
    """
    while True:
        chunk = queue[1] - 1 - native.fetch_add(queue, 0, 1)
        if chunk < 0:
            return
        at = bounds[chunk]
        yield chunk, last_up_to(col_ptr, I64(0), col_ptr.size, at) - 1, at, bounds[chunk + 1]
