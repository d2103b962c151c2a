"""The three designs of a count. Each is correct for every graph; `tcgpu.cpu` says which graphs each is fast for.

For every edge (u, v), u < v, a design counts the rows w > v that the columns of u and v share: triangles u < v < w.
The same code counts a part of the edges or all of them. A worker needs a bit for each vertex, with "words" also 12
bytes for each of MOST_PACKED nonzeros; workers share the hubs' rows of bits. An edge that is counted later takes 12
bytes in a list.
"""

import numpy as np

from tcgpu.arrays import running_sums
from tcgpu.cpu.choose import MOST_PACKED, Design, design, hub_rows, kept_design
from tcgpu.cpu.edges import Edges, all_edges, takes_any_v, workers_for
from tcgpu.cpu.finding import FAR, REST_BITS, chunk_bounds, chunks, finder, is_later, pack_words, run, words_finder
from tcgpu.cpu_costs import CLOSE, LATER_EDGES, NEIGHBOURS
from tcgpu.engines.native import CACHE_LINE, I64, LANES, U64, fetch_add, jit, prefetch, run_threads, shares, stopped

STRETCHES, STRETCH = 4, 1 << 14  # edges that are looked at for a first triangle
SAMPLES = 64  # edges that are looked at to decide whether columns are far
BUCKET_BITS = 10  # there are at most 2^this buckets of edges that are counted later
AHEAD = 4  # how many of these edges ahead to prefetch the rows to look up

LINE_ROWS = 2 * CACHE_LINE  # rows in a cache line
COUNT, COUNT_SHORT, COUNT_WORDS = finder(), finder(compares=True), words_finder()


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
    workers = workers_for(part, workers)
    if design.name == "short" and graph.m >= LANES:
        edges = np.linspace(part.first, max(part.first, part.last - 1), SAMPLES).astype(np.int64)
        far = part.last > part.first and np.median(graph.col_ptr[graph.row_idx[edges]] - edges) > CLOSE
        return _total(COUNT_SHORT, graph, part, workers, True if far else None, *[None] * 6)
    bitmaps = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    if design.name == "hubs":
        return _count_columns(graph, part, workers, design.hubs, bitmaps)
    return _count_words(graph, part, workers, bitmaps)


def _count_columns(graph, part, workers, hubs, bitmaps):
    """Count by columns of u; of a whole graph, put off the edges that are faster by columns of v, and then sort them.

    A bucket of them has the columns of v that begin in a range of `row_idx`. Each chunk of edges counts those that it
    puts into each bucket, and then lists them there.
    """
    if part != all_edges(graph) or graph.m < LATER_EDGES:
        return _total(COUNT, graph, part, workers, True, bitmaps, None, None, None, hubs, None)
    bounds, shift = chunk_bounds(graph, part, workers), max(0, graph.m.bit_length() - BUCKET_BITS)
    chunk_count, buckets = bounds.size - 1, (graph.m >> shift) + 1
    counters, of_bucket = np.empty((chunk_count, buckets), np.int64), np.empty((buckets, chunk_count), np.int64)
    total = _total(COUNT, graph, part, workers, True, bitmaps, None, None, None, hubs, (shift, counters, of_bucket))
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
        total += _total(COUNT_WORDS, graph, chunk, workers, low, high, word_index, words, span, bitmaps, None)
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


def _total(find, graph, part, workers, *args):
    """The number of triangles at the edges of a part."""
    found = np.zeros(workers, np.int64)
    run(find, graph, part, workers, *args, found)
    return int(found.sum())


@jit
def _list_later(worker, workers, col_ptr, row_idx, base, queue, bounds, shift, starts, counters, later, of_v):
    """List the edges (u, v) to count later in their buckets: the first row to look up and their number, and v.

    starts: where each chunk's edges belong in each bucket.
    """
    for chunk, u, at, stop in chunks(queue, bounds, col_ptr):
        free = counters[chunk]
        for k in range(free.size):
            free[k] = starts[chunk + k * len(counters)]
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
