"""Triangles u < v < w per vertex and per edge with v and w dense and u not: found from the rows of bits of `dense`.

The triangles at an edge (u, v) are the bits that v's row shares with a bitmap of u's column. If u has few dense
neighbours, each pair of them is tested instead. The triangles at an edge (v, w) are the u that are joined to both. Such
pairs are counted one by one for each u; or, if a batch of vertices u has many or the counts need too much memory, found
from other rows of bits: for each dense vertex, the u of the batch that it is joined to.
"""

import numpy as np

from tcgpu.cpu.dense import MAX_COUNTED, words_per_row
from tcgpu.cpu.edge_tally import add
from tcgpu.engines.native import CACHE_LINE, common_bits, fetch_add, jit, run_threads, stoppable, stopped, uncounted

BATCH = 64 * CACHE_LINE  # vertices u in a batch: a cache line of bits
FEW = 4  # pairs are tested if u has at most this many dense neighbours for each cache line of a row of bits
PAIRS = 2  # counting this many pairs one by one takes as long as an AND of two cache lines
MAX_COUNT = (1 << 16) - 1  # of a uint16

I32 = np.int32
I64 = np.int64
U64 = np.uint64


def add_dense_pairs(graph, base, bits, by_edge, found, shared, workers):
    """Add the triangles u < base <= v < w of a graph to `found`, at each edge or vertex.

    bits: the `dense_rows` from vertex `base` on. found: an array for each worker, or one that is shared.
    """
    dense, words = graph.n - base, words_per_row(graph.n - base)
    few_pairs = PAIRS * (graph.m - int(graph.col_ptr[base])) if dense <= MAX_COUNTED else 0
    queue = np.array([0, -(-base // BATCH), few_pairs], np.int64)  # the next batch, their number, pairs to count singly
    bitmaps = np.zeros((workers, words), np.uint64)
    firsts = np.empty((workers, BATCH), np.int64)
    counts = np.zeros((workers, dense * dense if few_pairs else 0), np.uint16) if by_edge else None
    batches = np.zeros((workers, dense * CACHE_LINE if by_edge else 0), np.uint64)
    run_threads(_add_dense_pairs, graph.col_ptr, graph.row_idx, base, words, bits, queue, bitmaps, firsts, counts,
                batches, True if shared else None, found, workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip


@jit
def _add_dense_pairs(
    worker, workers, col_ptr, row_idx, base, words, bits, queue, bitmaps, firsts, all_counts, batches, shared, all_found
):  # fmt: skip
    """Each worker takes one batch of vertices u after another. all_counts: None to add the triangles at vertices."""
    found = uncounted(all_found[worker if shared is None else 0])
    bitmap, batch, first_of = bitmaps[worker], batches[worker], firsts[worker]
    dense = col_ptr.size - 1 - base
    counted = 0  # vertices u whose pairs are in `counts`: each is in a count once
    while True:
        taken = fetch_add(queue, 0, 1)
        if taken >= queue[1]:
            break
        low, high = taken * BATCH, min(base, (taken + 1) * BATCH)
        pairs = I64(0)
        for u in range(low, high):
            end = col_ptr[U64(u + 1)]
            first = end
            while first > col_ptr[U64(u)] and row_idx[U64(first - 1)] >= base:
                first -= 1
            first_of[U64(u - low)] = first
            pairs += (end - first) * (end - first - 1) // 2
        one_by_one = pairs < queue[2]
        if all_counts is not None and one_by_one:
            if counted > MAX_COUNT - BATCH:
                _add_counts(col_ptr, row_idx, base, all_counts[worker], found, shared)
                counted = 0
            counted += BATCH
        for u in range(low, high):
            first, end = first_of[U64(u - low)], col_ptr[U64(u + 1)]
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
                v = I64(row_idx[U64(k)]) - base
                of_edge = I64(0)
                if few:
                    for j in range(k + 1, end):
                        w = I64(row_idx[U64(j)]) - base
                        bit = bits[U64(v * words + (w >> 6))] >> U64(w & 63) & U64(1)
                        of_edge += I64(bit)
                        if all_counts is None:
                            add(found, base + w, I64(bit), shared)
                        else:
                            found[U64(j)] += I32(bit)
                else:
                    for word in range(0, words, CACHE_LINE):
                        of_edge += I64(common_bits(bits, v * words + word, bitmap, word))
                of_u += of_edge
                if all_counts is None:
                    add(found, base + v, of_edge, shared)
                    continue
                found[U64(k)] += I32(of_edge)
                if one_by_one:
                    for j in range(k + 1, end):
                        all_counts[worker, U64(v * dense + I64(row_idx[U64(j)]) - base)] += np.uint16(1)
                else:
                    batch[U64(v * CACHE_LINE + (u - low >> 6))] |= U64(1) << U64(u - low & 63)
            if all_counts is None:
                add(found, I64(u), of_u if few else of_u >> 1, shared)
            if not few:
                for k in range(first, end):
                    bitmap[U64(I64(row_idx[U64(k)]) - base >> 6)] = U64(0)
        if all_counts is not None and not one_by_one:
            for v in range(dense):
                for k in range(col_ptr[U64(base + v)], col_ptr[U64(base + v + 1)]):
                    w = I64(row_idx[U64(k)]) - base
                    add(found, k, I32(common_bits(batch, v * CACHE_LINE, batch, w * CACHE_LINE)), shared)
            batch[:] = U64(0)
    if all_counts is not None and counted:
        _add_counts(col_ptr, row_idx, base, all_counts[worker], found, shared)


@jit
def _add_counts(col_ptr, row_idx, base, counts, found, shared):
    """Add the counts of pairs at the edges between dense vertices, and clear them."""
    dense = col_ptr.size - 1 - base
    for v in range(dense):
        for k in range(col_ptr[U64(base + v)], col_ptr[U64(base + v + 1)]):
            add(found, k, I32(counts[U64(v * dense + I64(row_idx[U64(k)]) - base)]), shared)
    counts[:] = 0
