"""Triangles per vertex and per edge by ANDs of whole neighbourhoods: nothing is written for each triangle.

Where neighbours have close numbers, neighbourhoods are packed into words, which take at most 24 bytes an edge. Where a
graph is dense, they are rows of bits.

The dense vertices are the last ones, from `base` on. A triangle u < v < w with u >= base has all three vertices among
them. These triangles are found separately: the number of them at an edge between dense vertices is the number of bits
that its two rows of bits share, found with one AND and popcount for 64 vertices. Per vertex, triangles with v and w
dense and u not are found in the same way: at an edge (u, v) from v's row and a bitmap of u's column.
"""

import numpy as np

from tcgpu.cpu.edge_tally import add, tallies
from tcgpu.cpu.edges import all_edges, last_up_to, vertices
from tcgpu.cpu.finding import pack_words, run, words_finder
from tcgpu.cpu_costs import DENSE_EDGE, DENSE_WORD
from tcgpu.engines import native
from tcgpu.engines.native import CACHE_LINE, I64, U64, fetch_add, jit, popcount, run_threads, shares, stopped

CHUNK = 16  # rows that a worker takes at a time
BLOCK = 1 << 15  # words of the rows that a chunk is intersected with at a time: 256 KB, to stay in the level-2 cache


def word_tally(graph, by_edge, workers):
    """The triangles at each edge (int32) or vertex (int64) of a graph, from packed words, as one row of an array."""
    indptr, indices = graph.adjacency
    word_index, words = np.empty(indices.size, np.int32), np.empty(indices.size, np.uint64)
    span = np.empty((graph.n, 2), np.int64)
    run_threads(pack_words, indptr, indices, 0, graph.n, word_index, words, span, workers=shares(indices.size))
    bitmaps = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    found = np.zeros((1, graph.m), np.int32) if by_edge else np.zeros((workers, graph.n), np.int64)
    find = words_finder(tallies(by_edge, False))
    run(find, graph, all_edges(graph), workers, 0, graph.n, word_index, words, span, bitmaps, found, None)
    return found if by_edge else found.sum(axis=0, keepdims=True) >> 1  # a vertex finds each triangle at two edges


def first_dense(graph):
    """The first dense vertex, with the least cost and at most 8 bytes of rows of bits an edge; n if there is none."""
    lengths = np.diff(graph.col_ptr[graph.n - max_dense(graph) :])
    return graph.n - _best_dense(lengths, lengths * (lengths - 1) // 2)


def dense_at_edges(degrees, lengths):
    """How many of the last vertices should have rows of bits if every edge to them uses these, per vertex.

    degrees, lengths: these vertices' degrees, and the lengths of their columns.
    """
    smaller = degrees - lengths
    return _best_dense(smaller, smaller * lengths.astype(np.int64))


def max_dense(graph):
    """How many rows of bits take no more than 8 bytes an edge."""
    return min(graph.n, 8 * int(graph.m**0.5))


def _best_dense(lengths, lookups):
    """How many of the last vertices should have rows of bits.

    lengths, lookups: the lengths of these vertices' columns, and the look-ups that they take without rows of bits.
    """
    edges, saved = np.cumsum(lengths[::-1]), np.cumsum(lookups[::-1])
    rows = np.arange(1, edges.size + 1)
    words = words_per_row(rows)
    cost = np.where(rows * words <= edges, cost_of_rows(edges, rows) - saved, 0)
    best = int(cost.argmin()) if cost.size else 0
    return best + 1 if cost.size and cost[best] < 0 else 0


def cost_of_rows(edges, rows):
    """The cost of this number of edges between vertices with rows of bits, and of making the rows."""
    words = words_per_row(rows)
    return edges * (DENSE_EDGE + DENSE_WORD * words) + rows * words


def words_per_row(rows):
    """The 64-bit words of a row of bits for this number of rows, in whole cache lines."""
    return -(-rows // (64 * CACHE_LINE)) * CACHE_LINE


def add_dense(graph, base, bits, by_edge, found, workers):
    """Add the triangles among the vertices from `base` on to `found`, at each edge or each vertex.

    bits: their `dense_rows`.
    """
    dense, words = graph.n - base, words_per_row(graph.n - base)
    queue = np.array([0, -(-dense // CHUNK), max(1, BLOCK // words)], np.int64)
    totals = np.zeros((workers, 0 if by_edge else dense), np.int64)
    run_threads(_intersect_rows, graph.col_ptr, graph.row_idx, base, words, bits, queue, found if by_edge else None,
                totals, workers=workers, queue=native.stoppable(queue, graph.m))  # fmt: skip
    if not by_edge:
        found[base:] += totals.sum(axis=0) >> 1  # a vertex finds each of its triangles at two edges


def add_dense_pairs(graph, base, bits, found, shared, workers):
    """Add the triangles u < base <= v < w of a graph to `found`, at each vertex.

    bits: the `dense_rows` from vertex `base` on. found: an array for each worker, or one that is shared.
    """
    words = words_per_row(graph.n - base)
    queue, bitmaps = np.zeros(1, np.int64), np.zeros((workers, words), np.uint64)
    run_threads(_add_dense_pairs, graph.col_ptr, graph.row_idx, base, words, bits, queue, bitmaps,
                True if shared else None, found, workers=workers, queue=native.stoppable(queue, graph.m))  # fmt: skip


def dense_rows(graph, base, workers):
    """The neighbourhoods among the vertices from `base` on as rows of bits: `words_per_row` uint64 each, in order."""
    words = words_per_row(graph.n - base)
    bits = np.zeros((graph.n - base) * words, np.uint64)
    run_threads(_fill_rows, graph.col_ptr, graph.row_idx, base, words, bits, workers=workers)
    return bits


@jit
def _fill_rows(worker, workers, col_ptr, row_idx, base, words, bits):
    """Set the bits of whole neighbourhoods among the vertices from `base` on; each worker fills its share of rows."""
    dense = col_ptr.size - 1 - base
    low, high = dense * worker // workers, dense * (worker + 1) // workers
    for u in range(high):
        word, bit = u >> 6, U64(1) << U64(u & 63)
        begin, end = col_ptr[U64(base + u)], col_ptr[U64(base + u + 1)]
        if u >= low:
            for k in range(begin, end):
                v = I64(row_idx[U64(k)]) - base
                bits[U64(u * words + (v >> 6))] |= U64(1) << U64(v & 63)
        for k in range(last_up_to(row_idx, begin - 1, end, base + low - 1) + 1, end):
            v = I64(row_idx[U64(k)]) - base
            if v >= high:
                break
            bits[U64(v * words + word)] |= bit


@jit
def _intersect_rows(worker, workers, col_ptr, row_idx, base, words, bits, queue, edges, totals):
    """Add the triangles at each edge between dense vertices to `edges`, or to both ends in this worker's `totals`.

    It intersects a chunk of rows u with one block of rows v after the other, so that both stay in the caches.
    """
    dense = col_ptr.size - 1 - base
    rows = queue[2]
    position = np.empty(CHUNK, np.int64)  # the next edge of each u
    while True:
        chunk = fetch_add(queue, 0, 1)
        if chunk >= queue[1]:
            break
        low, high = chunk * CHUNK, min(dense, (chunk + 1) * CHUNK)
        for u in range(low, high):
            position[u - low] = col_ptr[U64(base + u)]
        for block in range(low // rows, -(-dense // rows)):
            stop = base + (block + 1) * rows
            for u in range(low, high):
                k, end = position[u - low], col_ptr[U64(base + u + 1)]
                total = I64(0)
                while k < end and row_idx[U64(k)] < stop:
                    v = I64(row_idx[U64(k)]) - base
                    common = U64(0)
                    for word in range(words):
                        common += popcount(bits[U64(u * words + word)] & bits[U64(v * words + word)])
                    if edges is None:
                        totals[worker, v] += I64(common)
                        total += I64(common)
                    else:
                        edges[U64(k)] += np.int32(common)
                    k += 1
                position[u - low] = k
                if edges is None:
                    totals[worker, u] += total


@jit
def _add_dense_pairs(worker, workers, col_ptr, row_idx, base, words, bits, queue, bitmaps, shared, all_found):
    found, bitmap = native.uncounted(all_found[worker if shared is None else 0]), bitmaps[worker]
    for u in vertices(queue, base):
        end = col_ptr[U64(u + 1)]
        first = end
        while first > col_ptr[U64(u)] and row_idx[U64(first - 1)] >= base:
            first -= 1
        if end - first < 2:
            continue
        if stopped(queue):
            return
        for k in range(first, end):
            v = I64(row_idx[U64(k)]) - base
            bitmap[U64(v >> 6)] |= U64(1) << U64(v & 63)
        of_u = I64(0)
        for k in range(first, end):
            v, of_edge = I64(row_idx[U64(k)]) - base, I64(0)
            for word in range(0, words, CACHE_LINE):
                of_edge += I64(native.common_bits(bits, v * words + word, bitmap, word))
            of_u += of_edge
            add(found, base + v, of_edge, shared)
        add(found, u, of_u >> 1, shared)
        for k in range(first, end):
            bitmap[U64(I64(row_idx[U64(k)]) - base >> 6)] = U64(0)
