"""Triangles u < v < w per vertex with v and w dense and u not: found from the rows of bits of `dense`.

The triangles at an edge (u, v) are the bits that v's row shares with a bitmap of u's column. If u has few dense
neighbours, each pair of them is tested instead.
"""

import numpy as np

from tcgpu.cpu.dense import words_per_row
from tcgpu.cpu.edge_tally import add
from tcgpu.cpu.edges import vertices
from tcgpu.engines.native import CACHE_LINE, common_bits, jit, run_threads, stoppable, stopped, uncounted

FEW = 4  # pairs are tested if u has at most this many dense neighbours for each cache line of a row of bits

I64 = np.int64
U64 = np.uint64


def add_dense_pairs(graph, base, bits, found, shared, workers):
    """Add the triangles u < base <= v < w of a graph to `found`, at each vertex.

    bits: the `dense_rows` from vertex `base` on. found: an array for each worker, or one that is shared.
    """
    words = words_per_row(graph.n - base)
    queue, bitmaps = np.zeros(1, np.int64), np.zeros((workers, words), np.uint64)
    run_threads(_add_dense_pairs, graph.col_ptr, graph.row_idx, base, words, bits, queue, bitmaps,
                True if shared else None, found, workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip


@jit
def _add_dense_pairs(worker, workers, col_ptr, row_idx, base, words, bits, queue, bitmaps, shared, all_found):
    found, bitmap = uncounted(all_found[worker if shared is None else 0]), bitmaps[worker]
    for u in vertices(queue, base):
        end = col_ptr[U64(u + 1)]
        first = end
        while first > col_ptr[U64(u)] and row_idx[U64(first - 1)] >= base:
            first -= 1
        if end - first < 2:
            continue
        if stopped(queue):
            return
        few = end - first <= FEW * (words // CACHE_LINE)
        if not few:
            for k in range(first, end):
                v = I64(row_idx[U64(k)]) - base
                bitmap[U64(v >> 6)] |= U64(1) << U64(v & 63)
        of_u = I64(0)
        for k in range(first, end):
            v, of_edge = I64(row_idx[U64(k)]) - base, I64(0)
            if few:
                for j in range(k + 1, end):
                    w = I64(row_idx[U64(j)]) - base
                    bit = I64(bits[U64(v * words + (w >> 6))] >> U64(w & 63) & U64(1))
                    of_edge += bit
                    add(found, base + w, bit, shared)
            else:
                for word in range(0, words, CACHE_LINE):
                    of_edge += I64(common_bits(bits, v * words + word, bitmap, word))
            of_u += of_edge
            add(found, base + v, of_edge, shared)
        add(found, u, of_u if few else of_u >> 1, shared)
        if not few:
            for k in range(first, end):
                bitmap[U64(I64(row_idx[U64(k)]) - base >> 6)] = U64(0)
