"""Triangles per vertex and per edge where neighbours have close numbers: whole neighbourhoods as packed words.

The triangles at an edge are the common neighbours of its ends: the words of one neighbourhood are ANDed with the bitmap
of the other. Nothing is written for each triangle. The words take at most 24 bytes an edge.
"""

import numpy as np

from tcgpu.cpu.counting import chunk_bounds, chunks, pack_words
from tcgpu.cpu.edges import all_edges
from tcgpu.engines.native import jit, popcount, run_threads, shares, stoppable, stopped

I64 = np.int64
U64 = np.uint64


def word_tally(graph, by_edge, workers):
    """The triangles at each edge (int32) or vertex (int64), as one row of an array."""
    indptr, indices = graph.adjacency
    word_index, words = np.empty(indices.size, np.int32), np.empty(indices.size, np.uint64)
    span = np.empty((graph.n, 2), np.int64)
    run_threads(pack_words, indptr, indices, 0, graph.n, word_index, words, span, workers=shares(indices.size))
    bounds = chunk_bounds(graph, all_edges(graph), workers)
    queue = np.array([0, bounds.size - 1], np.int64)
    bitmaps = np.zeros((workers, graph.n // 64 + 1), np.uint64)
    edges = np.zeros((1, graph.m), np.int32) if by_edge else None
    totals = np.zeros((workers, 0 if by_edge else graph.n), np.int64)
    run_threads(_tally_words, graph.col_ptr, graph.row_idx, queue, bounds, word_index, words, span, bitmaps, edges,
                totals, workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip
    return edges if by_edge else totals.sum(axis=0, keepdims=True) >> 1  # a vertex finds each triangle at two edges


@jit
def _tally_words(
    worker, workers, col_ptr, row_idx, queue, bounds, word_index, words, span, bitmaps, edges, totals
):  # fmt: skip
    """Write the common neighbours of each edge's ends to `edges`, or add them to both ends in this worker's totals."""
    bitmap = bitmaps[worker]
    for _, u, at, stop in chunks(queue, bounds, col_ptr):
        while at < stop and not stopped(queue):
            u += 1
            begin, end = at, min(stop, col_ptr[U64(u + 1)])
            at = col_ptr[U64(u + 1)]
            if begin == end:
                continue
            for q in range(span[U64(u), 0], span[U64(u), 1]):
                bitmap[U64(word_index[U64(q)])] = words[U64(q)]
            total = I64(0)
            for k in range(begin, end):
                v = U64(row_idx[U64(k)])
                common = U64(0)
                for q in range(span[v, 0], span[v, 1]):
                    common += popcount(bitmap[U64(word_index[U64(q)])] & words[U64(q)])
                if edges is not None:
                    edges[0, U64(k)] = common
                else:
                    totals[worker, v] += I64(common)
                    total += I64(common)
            if edges is None:
                totals[worker, U64(u)] += total
            for q in range(span[U64(u), 0], span[U64(u), 1]):
                bitmap[U64(word_index[U64(q)])] = U64(0)
