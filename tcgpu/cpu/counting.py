"""The three designs of a count. Each is correct for every graph; `tcgpu.cpu` says which graphs each is fast for.

For every edge (u, v), u < v, a design counts the rows w > v that the columns of u and v share: triangles u < v < w.
The same code counts a part of the edges or all of them. A worker needs a bit for each vertex, with "words" also 12
bytes for each of MOST_PACKED nonzeros; workers share the hubs' rows of bits. An edge that is counted later takes 12
bytes in a list.

The loops over a column are repeated in each kernel. As functions they would have array arguments, whose references
Numba counts atomically, even for an inlined function: counts took twice as long.
"""

import numpy as np

from tcgpu.arrays import running_sums
from tcgpu.cpu.choose import AND_WORDS, MOST_PACKED, NEIGHBOURS, Design, design, hub_rows, kept_design
from tcgpu.cpu.edges import Edges, all_edges, takes_any_v, workers_for
from tcgpu.engines.native import (
    CACHE_LINE,
    LANES,
    fetch_add,
    inline,
    jit,
    matching,
    popcount,
    prefetch,
    run_threads,
    shares,
    stoppable,
    stopped,
    uncached,
)

CHUNK = 1 << 10, 1 << 16  # edges that a worker takes at a time: at least, at most,
CHUNKS = 64  # and between these limits as many as make this number of chunks for each worker
PIECES = 2  # chunks of a very long column for each worker
FEW_ROWS = 24  # if u's column has no more rows than this, they are compared
MUCH_LONGER = 48  # v's column is searched if it is longer than this number of times the rest of u's
STRETCHES, STRETCH = 4, 1 << 14  # edges that are looked at for a first triangle
FAR, NEAR = 16, 6  # how many nonzeros ahead to prefetch v's column pointer, and the start of its column
CLOSE = 1 << 14  # no prefetch pays if no more nonzeros than this are between most edges and v's column,
SAMPLES = 64  # of this many that are looked at
FEW_HUBS = 12  # for a column with no more hubs than this, test single bits instead of ANDing rows
LATER_EDGES = 1 << 23  # of fewer edges, no edge is counted later: caches have most columns
LATER_ROWS = 64  # an edge is counted later if v's column has this many rows, and u's has no more left,
REST_BITS = 16  # nor more than have these bits
BUCKET_BITS = 10  # there are at most 2^this buckets of them
AHEAD = 4  # how many of these edges ahead to prefetch the rows to look up

MOST_ROWS = 1 << REST_BITS
LINE_ROWS = 2 * CACHE_LINE  # rows in a cache line

I64 = np.int64
U64 = np.uint64


def count(graph, part=None, workers=None):
    """The number of triangles of a Graph (int), counted in its own order.

    part: count only the triangles u < v < w whose edge (u, v) is in it. workers: the number of threads (default: all).
    """
    if part is None:
        return count_by(design(graph), graph, all_edges(graph), workers)
    return count_by(kept_design(graph), graph, part, workers)


def finds_triangle(graph):
    """Whether there is a triangle at a few stretches of edges: True is certain, and found without counting."""
    plain = Design("hubs", hub_rows(graph, graph.n))
    first = np.linspace(0, max(0, graph.m - STRETCH), STRETCHES).astype(np.int64)
    return any(count_by(plain, graph, Edges(at, min(at + STRETCH, graph.m), 0, graph.n)) for at in first.tolist())


def count_by(design, graph, part, workers=None):
    """As `count`, by the given Design."""
    workers = workers_for(part, workers)
    if design.name == "short" and graph.m >= LANES:
        return _run(_short, graph, part, workers, True if _are_far(graph, part) else None)
    bitmaps = np.empty((workers, graph.n // 64 + 1), np.uint64)  # each worker clears its own
    if design.name == "hubs":
        return _count_columns(graph, part, workers, design.hubs, bitmaps)
    return _count_words(graph, part, workers, bitmaps)


def _are_far(graph, part):
    """Whether v's column is far from most edges (u, v) of a part."""
    edges = np.linspace(part.first, max(part.first, part.last - 1), SAMPLES).astype(np.int64)
    return part.last > part.first and np.median(graph.col_ptr[graph.row_idx[edges]] - edges) > CLOSE


def _count_columns(graph, part, workers, hubs, bitmaps):
    """Count by columns of u; of a whole graph, put off the edges that are faster by columns of v, and then sort them.

    A bucket of them has the columns of v that begin in a range of `row_idx`. Each chunk of edges counts those that it
    puts into each bucket, and then lists them there.
    """
    if part != all_edges(graph) or graph.m < LATER_EDGES:
        return _run(_columns, graph, part, workers, *hubs, bitmaps, 0, None, None)
    bounds, shift = chunk_bounds(graph, part, workers), max(0, graph.m.bit_length() - BUCKET_BITS)
    chunk_count, buckets = bounds.size - 1, (graph.m >> shift) + 1
    counters, of_bucket = np.empty((chunk_count, buckets), np.int64), np.empty((buckets, chunk_count), np.int64)
    total = _run(_columns, graph, part, workers, *hubs, bitmaps, shift, counters, of_bucket)
    starts = running_sums(of_bucket.ravel())
    begins = starts[::chunk_count].copy()
    largest = int(np.diff(begins).max())
    if not largest:
        return total
    later, of_v = np.empty(int(begins[-1]), np.int64), np.empty(int(begins[-1]), np.int32)
    queue = np.array([0, chunk_count], np.int64)
    run_threads(_list_later, graph.col_ptr, graph.row_idx, hubs.base, queue, bounds, shift, starts, counters, later,
                of_v, workers=workers, queue=queue)  # fmt: skip
    queue[:] = 0, buckets
    workers = max(1, min(workers, 2 * later.size // largest))  # so `sorted_` is at most twice as large as `later`
    sorted_, places = np.empty((workers, largest), np.int64), np.empty((workers, 1 << shift), np.int64)
    found = np.zeros(workers, np.int64)
    run_threads(_count_later, graph.col_ptr, graph.row_idx, queue, begins, shift, later, of_v, sorted_, places, bitmaps,
                found, workers=workers, queue=queue)  # fmt: skip
    return total + int(found.sum())


def _count_words(graph, part, workers, bitmaps):
    """Count one chunk of edges after the other, each after packing the columns of most of its v."""
    most = min(graph.m, MOST_PACKED * workers)
    word_index, words = np.empty(most, np.int32), np.empty(most, np.uint64)
    total, step = 0, max(1, most if most == graph.m else most * 7 // 8)
    for first in range(part.first, part.last, step):
        chunk = Edges(first, min(part.last, first + step), part.low, part.high)
        low, high = _to_pack(graph, chunk, most)
        span = np.empty((high - low, 2), np.int64)
        run_threads(pack_words, graph.col_ptr, graph.row_idx, low, high, word_index, words, span,
                    workers=shares(int(graph.col_ptr[high] - graph.col_ptr[low])))  # fmt: skip
        total += _run(_words, graph, chunk, workers, low, high, word_index, words, span, bitmaps)
    return total


def _to_pack(graph, chunk, most):
    """The range of vertices whose columns to pack, with at most `most` nonzeros.

    The range begins at the first u of the chunk (or its least v); "words" is chosen for graphs where most columns of v
    end within NEIGHBOURS nonzeros of the edge (u, v).
    """
    if most == graph.m and chunk.last - chunk.first == graph.m and takes_any_v(chunk, graph):
        return 0, graph.n
    u = int(np.searchsorted(graph.col_ptr, chunk.first, side="right")) - 1
    low = min(max(chunk.low, u), graph.n)
    end = graph.col_ptr[low] + min(most, chunk.last - chunk.first + NEIGHBOURS)
    high = int(np.searchsorted(graph.col_ptr, end, side="right")) - 1
    return low, max(low, min(chunk.high, high))


def _run(kernel, graph, part, workers, *args):
    """Run a counting kernel over the edges of a part; returns the sum of its workers' counts."""
    edges = part.last - part.first
    bounds = chunk_bounds(graph, part, workers)
    queue = np.array([0, bounds.size - 1], np.int64)  # the next chunk, how many there are
    v_range = (None, None) if takes_any_v(part, graph) else (part.low, part.high)  # None: compiled without comparisons
    found = np.zeros(workers, np.int64)
    run_threads(kernel, graph.col_ptr, graph.row_idx, *v_range, queue, bounds, *args, found,
                workers=workers, queue=stoppable(queue, edges))  # fmt: skip
    return int(found.sum())


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
def within(row_idx, begin, end, low, high):
    """The positions in begin..end - 1 whose rows are in low..high - 1: the first, and the one after the last."""
    while begin < end and row_idx[U64(begin)] < low:
        begin += 1
    while begin < end and row_idx[U64(end - 1)] >= high:
        end -= 1
    return begin, end


@uncached
def chunks(queue, bounds, col_ptr):
    """Take chunks of edges until none is left.

    Yield the number of each, the column before that of its first edge, its first edge, and its end.
    """
    while True:
        chunk = queue[1] - 1 - fetch_add(queue, 0, 1)
        if chunk < 0:
            return
        at = bounds[chunk]
        yield chunk, np.searchsorted(col_ptr, at, side="right") - 2, at, bounds[chunk + 1]


@jit
def _short(worker, workers, col_ptr, row_idx, low, high, queue, bounds, ahead, found):
    """Compare each row of u's column after v with LANES rows of v's column at once. Prefetch unless `ahead` is None.

    The last LANES nonzeros of all are read where fewer are left from the first row of v's column on.
    """
    m = row_idx.size
    total = I64(0)
    for _, u, at, stop in chunks(queue, bounds, col_ptr):
        while at < stop:
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            last_v = min(stop, end - 1)
            if low is not None:
                begin, last_v = within(row_idx, begin, last_v, low, high)
            for k in range(begin, last_v):
                if ahead is not None:
                    if k + FAR < m:
                        prefetch(col_ptr, row_idx[U64(k + FAR)])
                        prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                v = U64(row_idx[U64(k)])
                q, v_end = col_ptr[v], col_ptr[v + U64(1)]
                while True:
                    read = min(q, m - LANES)
                    i = k + 1
                    while True:  # a row is left: a loop that tested this first took a third more time
                        same = matching(row_idx, read, np.int32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                        total += I64(popcount(same))
                        i += 1
                        if i >= end:
                            break
                    q += LANES
                    if q >= v_end:
                        break
    found[worker] = total


@jit
def _columns(
    worker, workers, col_ptr, row_idx, low, high, queue, bounds, base, start, bits, bitmaps, shift, counters, of_bucket,
    found,
):  # fmt: skip
    """AND rows of bits if v is a hub (from vertex `base` on); else find the rest of u's column in v's column.

    v's column is searched if it is much longer. Otherwise it is compared with each row of the rest, LANES rows at once,
    if u's column is short; or each of its rows is tested in a bitmap of the rest. Edges to put off are only counted: by
    buckets, first in `counters`, then in `of_bucket`. Both are None if no edge is put off.
    """
    bitmap = bitmaps[worker]
    bitmap[:] = 0
    m = row_idx.size
    words = (start.size + 62) >> 6
    first_hub_word = base >> 6
    total = I64(0)
    for chunk, u, at, stop in chunks(queue, bounds, col_ptr):
        if counters is not None:
            counters[chunk] = 0
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            last_v = min(stop, end - 1)
            if low is not None:
                begin, last_v = within(row_idx, begin, last_v, low, high)
            if begin >= last_v:
                continue
            short = end - begin <= FEW_ROWS and m >= LANES
            hubs = end  # the position of the column's first hub, or `begin`
            while hubs > begin and row_idx[U64(hubs - 1)] >= base:
                hubs -= 1
            marked = end  # rows from this position on are in the bitmap
            for k in range(begin, min(hubs, last_v)):
                if k + FAR < m:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                    prefetch(row_idx, col_ptr[U64(row_idx[U64(k + NEAR)])])
                v = U64(row_idx[U64(k)])
                q, v_end = col_ptr[v], col_ptr[v + U64(1)]
                if short and v_end - q <= MUCH_LONGER:
                    while q < v_end:
                        read = min(q, m - LANES)
                        i = k + 1
                        while True:
                            same = matching(row_idx, read, np.int32(v_end - read), row_idx[U64(i)]) >> U64(q - read)
                            total += I64(popcount(same))
                            i += 1
                            if i >= end:
                                break
                        q += LANES
                elif (end - k) * MUCH_LONGER < v_end - q:
                    for i in range(k + 1, end):
                        row, left = row_idx[U64(i)], v_end - q
                        while left > 1:  # no branch depends on the rows: it could not be predicted
                            half = left >> 1
                            q += half * I64(row_idx[U64(q + half - 1)] < row)
                            left -= half
                        total += row_idx[U64(q)] == row
                elif counters is not None and is_later(end - k, v_end - q):
                    counters[chunk, U64(q >> shift)] += 1
                elif q < v_end:
                    if marked == end:
                        marked = k + 1
                        for i in range(marked, end):
                            row = U64(row_idx[U64(i)])
                            bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                    common = U64(0)
                    for j in range(q, v_end):
                        row = U64(row_idx[U64(j)])
                        common += bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1)
                    total += I64(common)
            if hubs < last_v:
                many = end - hubs > FEW_HUBS
                u_line = (u - base) // 64 // CACHE_LINE * CACHE_LINE
                copied = many and u >= base and words - u_line < end - hubs  # copying u's own row of bits is faster
                if copied:
                    for word in range(u_line, words):
                        bitmap[U64(first_hub_word + word)] = bits[U64(start[U64(u - base)] - u_line + word)]
                elif many and marked == end:
                    marked = hubs
                    for k in range(marked, end):
                        row = U64(row_idx[U64(k)])
                        bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
                for k in range(hubs, last_v):
                    hub = I64(row_idx[U64(k)]) - base
                    line = hub // 64 // CACHE_LINE * CACHE_LINE
                    bits_at = start[U64(hub)] - line
                    common = U64(0)
                    if many and (end - k) * AND_WORDS > words - line:
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
            for k in range(marked, end):
                bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
        if counters is not None:
            of_bucket[:, chunk] = counters[chunk]
    found[worker] = total


@inline
def is_later(left, rows):
    """Whether an edge of a whole graph is counted later: if v's column is long, but not so long that it is searched.

    left: the rows of u's column that are left, v included. rows: those of v's column.
    """
    return rows >= LATER_ROWS and left <= min(rows, MOST_ROWS) and rows <= left * MUCH_LONGER


@jit
def _list_later(worker, workers, col_ptr, row_idx, base, queue, bounds, shift, starts, counters, later, of_v):
    """List the edges (u, v) to count later in their buckets: the first row to look up and their number, and v.

    starts: where each chunk's edges belong in each bucket.
    """
    for chunk, u, at, stop in chunks(queue, bounds, col_ptr):
        free = counters[chunk]
        free[:] = starts[chunk : -1 : len(counters)]
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            for k in range(begin, min(stop, end - 1)):
                if k + FAR < row_idx.size:
                    prefetch(col_ptr, row_idx[U64(k + FAR)])
                v = U64(row_idx[U64(k)])
                if v >= base:
                    break
                q = col_ptr[v]
                if is_later(end - k, col_ptr[v + U64(1)] - q):
                    put = U64(free[U64(q >> shift)])
                    free[U64(q >> shift)] += 1
                    later[put], of_v[put] = (k + 1) << REST_BITS | end - k - 1, v


@jit
def _count_later(
    worker, workers, col_ptr, row_idx, queue, begins, shift, later, of_v, sorted_, places, bitmaps, found
):  # fmt: skip
    """Sort the edges of one bucket after the other by v, and test their rows in a bitmap of v's column.

    begins: where each bucket begins in `later`.
    """
    bitmap, edges, place = bitmaps[worker], sorted_[worker], places[worker]
    total, rest = I64(0), I64((1 << REST_BITS) - 1)
    while True:
        bucket = queue[1] - 1 - fetch_add(queue, 0, 1)
        if bucket < 0:
            break
        first, last = begins[bucket], begins[bucket + 1]
        if first == last:
            continue
        begin_of_bucket, count, at = bucket << shift, I64(0), I64(0)
        place[:] = 0
        for x in range(first, last):
            place[U64(col_ptr[U64(of_v[U64(x)])] - begin_of_bucket)] += 1
        for p in range(place.size):
            count, place[U64(p)] = count + place[U64(p)], count
        for x in range(first, last):
            p = U64(col_ptr[U64(of_v[U64(x)])] - begin_of_bucket)
            edges[U64(place[p])] = later[U64(x)]
            place[p] += 1
        for p in range(place.size):
            if at == place[U64(p)]:
                continue
            begin = begin_of_bucket + p
            v = row_idx[U64((edges[U64(at)] >> REST_BITS) - 1)]
            end = col_ptr[U64(v) + U64(1)]
            for k in range(begin, end):
                row = U64(row_idx[U64(k)])
                bitmap[row >> U64(6)] |= U64(1) << (row & U64(63))
            while at < place[U64(p)] and not stopped(queue):
                ahead = edges[U64(min(at + AHEAD, count - 1))]
                for k in range(ahead >> REST_BITS, (ahead >> REST_BITS) + (ahead & rest), LINE_ROWS):
                    prefetch(row_idx, k)
                edge, common = edges[U64(at)], U64(0)
                for k in range(edge >> REST_BITS, (edge >> REST_BITS) + (edge & rest)):
                    row = U64(row_idx[U64(k)])
                    common += bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1)
                total += I64(common)
                at += 1
            for k in range(begin, end):
                bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
    found[worker] = total


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


@jit
def _words(
    worker, workers, col_ptr, row_idx, low, high, queue, bounds, packed, packed_end, word_index, words, span, bitmaps,
    found,
):  # fmt: skip
    """AND the words of v's column with u's bitmap if v is in packed..packed_end - 1; else test its rows."""
    bitmap = bitmaps[worker]
    bitmap[:] = 0
    total = I64(0)
    for _, u, at, stop in chunks(queue, bounds, col_ptr):
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, col_ptr[U64(u + 1)]
            at = end
            last_v = min(stop, end - 1)
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
            for k in range(near, far):
                v = U64(row_idx[U64(k)] - packed)
                common = U64(0)
                for q in range(span[v, 0], span[v, 1]):
                    common += popcount(bitmap[U64(word_index[U64(q)])] & words[U64(q)])
                total += I64(common)
            for k in range(begin, last_v - (far - near)):
                v = U64(row_idx[U64(k if k < near else k + far - near)])
                common = U64(0)
                for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                    row = U64(row_idx[U64(q)])
                    common += bitmap[row >> U64(6)] >> (row & U64(63)) & U64(1)
                total += I64(common)
            if u_packed:
                for q in range(span[U64(u - packed), 0], span[U64(u - packed), 1]):
                    bitmap[U64(word_index[U64(q)])] = U64(0)
            else:
                for k in range(begin, end):
                    bitmap[U64(row_idx[U64(k)]) >> U64(6)] = U64(0)
    found[worker] = total
