"""Triangles per vertex and per edge where a graph is dense: whole neighbourhoods as rows of bits.

In the order that a graph has, the vertices from `base` on are its dense ones. A triangle u < v < w with u >= base has
all three vertices there. So these triangles are found apart from all others: an edge between dense vertices is in as
many of them as its two rows of bits have in common, one AND and popcount for 64 vertices.
"""

import numpy as np

from tcgpu.cpu.edges import all_of, workers_for
from tcgpu.engines.native import fetch_add, jit, popcount, run_threads, stoppable

LINE = 8  # 64-bit words in a cache line: rows start at whole lines
WORD = 1 / 6  # what an AND and popcount of two words costs, in look-ups of one row,
EDGE = 4  # and what an edge costs beside its words
CHUNK = 16  # rows a worker takes at a time,
BLOCK = 1 << 15  # words of the rows that these are met with at a time: 256 KB, which a second-level cache holds

I64 = np.int64
U64 = np.uint64


def first_dense(graph):
    """The vertex from which on rows of bits cost least, and no more bytes than 8 for each edge there; n if none do."""
    lengths = np.diff(graph.col_ptr[graph.n - most_dense(graph) :])
    dense = dense_tail(lengths, lengths * (lengths - 1) // 2)[0]
    if dense:  # now by what wedges do cost: nothing, where their middle vertex has no column
        dense = dense_tail(lengths[-dense:], wedge_lookups(graph, graph.n - dense))[0]
    return graph.n - dense


def most_dense(graph):
    """How many vertices at most have rows of bits that take no more than 8 bytes an edge."""
    return min(graph.n, 8 * int(graph.m**0.5))


def dense_tail(lengths, lookups):
    """How many of the last vertices should have rows of bits, and what that costs more than without: 0 or less.

    Given the lengths of their columns, and the look-ups that these take without.
    """
    edges, spared = np.cumsum(lengths[::-1]), np.cumsum(lookups[::-1])
    rows = np.arange(1, edges.size + 1)
    words = stride(rows)
    cost = np.where(rows * words <= edges, edges * (EDGE + WORD * words) + rows * words - spared, 0)
    best = int(cost.argmin()) if cost.size else 0
    return (best + 1, int(cost[best])) if cost.size and cost[best] < 0 else (0, 0)


def wedge_lookups(graph, first):
    """How many look-ups the column of each vertex from `first` on takes without rows of bits (int64)."""
    found = np.empty(graph.n - first, np.int64)
    run_threads(_wedge_lookups, graph.col_ptr, graph.row_idx, first, found, workers=workers_for(all_of(graph)))
    return found


def add_dense(graph, base, by_edge, found, workers):
    """Add to `found`, of each edge (int32) or vertex (int64), its triangles among the vertices from `base` on."""
    hubs = graph.n - base
    words = stride(hubs)
    bits = np.zeros(hubs * words, np.uint64)
    run_threads(_fill_rows, graph.col_ptr, graph.row_idx, base, words, bits, workers=workers)
    queue = np.array([0, -(-hubs // CHUNK), max(1, BLOCK // words)], np.int64)
    totals = np.zeros((workers, 0 if by_edge else hubs), np.int64)
    edges = found if by_edge else None
    run_threads(_meet_rows, graph.col_ptr, graph.row_idx, base, words, bits, queue, edges, totals, workers=workers,
                queue=stoppable(queue, graph.m))  # fmt: skip
    if not by_edge:
        found[base:] += totals.sum(axis=0) >> 1  # each triangle of a vertex was met at two of its edges


def stride(rows):
    """From how many words to the next row."""
    return -(-rows // (64 * LINE)) * LINE


@jit
def _wedge_lookups(worker, workers, col_ptr, row_idx, first, found):
    for u in range(worker, found.size, workers):
        end, total = col_ptr[U64(first + u + 1)], I64(0)
        for k in range(col_ptr[U64(first + u)], end):
            v = U64(row_idx[U64(k)])
            total += end - 1 - k if col_ptr[v] < col_ptr[v + U64(1)] else 0
        found[u] = total


@jit
def _fill_rows(worker, workers, col_ptr, row_idx, base, words, bits):
    """Whole neighbourhoods among the vertices from `base` on; every worker fills the rows of its share."""
    hubs = col_ptr.size - 1 - base
    low, high = hubs * worker // workers, hubs * (worker + 1) // workers
    for u in range(high):
        word, bit = u >> 6, U64(1) << U64(u & 63)
        begin, end = col_ptr[U64(base + u)], col_ptr[U64(base + u + 1)]
        if u >= low:
            for k in range(begin, end):
                v = I64(row_idx[U64(k)]) - base
                bits[U64(u * words + (v >> 6))] |= U64(1) << U64(v & 63)
        first = begin + np.searchsorted(row_idx[begin:end], base + low)
        for k in range(first, end):
            v = I64(row_idx[U64(k)]) - base
            if v >= high:
                break
            bits[U64(v * words + word)] |= bit


@jit
def _meet_rows(worker, workers, col_ptr, row_idx, base, words, bits, queue, edges, totals):
    """The triangles at each edge between dense vertices: added to `edges`, or at both ends to this worker's `totals`.

    Some rows u at a time meet the rows v of one block after the other, so that both stay in the caches.
    """
    hubs = col_ptr.size - 1 - base
    rows = queue[2]
    at = np.empty(CHUNK, np.int64)
    while True:
        chunk = fetch_add(queue, 0, 1)
        if chunk >= queue[1]:
            break
        low, high = chunk * CHUNK, min(hubs, (chunk + 1) * CHUNK)
        for u in range(low, high):
            at[u - low] = col_ptr[U64(base + u)]
        for block in range(low // rows, -(-hubs // rows)):
            stop = base + (block + 1) * rows
            for u in range(low, high):
                k, end = at[u - low], col_ptr[U64(base + u + 1)]
                total = I64(0)
                while k < end and row_idx[U64(k)] < stop:
                    v = I64(row_idx[U64(k)]) - base
                    one, other = u * words, v * words
                    common = U64(0)
                    for word in range(words):
                        common += popcount(bits[U64(one + word)] & bits[U64(other + word)])
                    if edges is None:
                        totals[worker, v] += I64(common)
                        total += I64(common)
                    else:
                        edges[U64(k)] += np.int32(common)
                    k += 1
                at[u - low] = k
                if edges is None:
                    totals[worker, u] += total
