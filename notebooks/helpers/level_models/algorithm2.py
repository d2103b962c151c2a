"""Algorithm 2 on one core, which the paper compares its GPU with: every combination of three vertices of every chunk is
tested for its three edges.

The three edges are looked at in turn, up to the first that is not there.
Algorithm 2 as it is printed asks for the combinations of the first level, then for all with at least one of the first
level, which has those in it once more; here each is tested once. With `skip`, a pair that is no edge is not put
together with every third vertex first: a step towards intersections.
"""

import numpy as np

from helpers.level_models.approaches import ranges
from helpers.level_models.arrangement import empty_words, fill, row_of
from helpers.level_models.combinations import unrank_into, unranked
from tcgpu import list_triangles
from tcgpu.engines.native import inline, jit
from tcgpu.graph import as_graph
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, bits_needed, words_needed

I64 = np.int64
U32 = np.uint32
U64 = np.uint64
ZERO = np.zeros(1, np.int64)


def count_triangles(graph, chunks, *, skip=False, approach="B", threads=1, only=None):
    """The number of triangles, by Algorithm 2 on the chunks of a Split.

    approach, threads: how combinations are generated and divided (see `approaches`). One core does the work of all
    threads, so only the generation differs, and for A the memory. only: the number of a
    thread; no other thread's combinations are tested, and what is returned is its part of the count.
    """
    graph = as_graph(graph)
    words = empty_words(bits_needed(int(chunks.size.max(initial=0)), chunks.layout))
    layout = LAYOUTS.index(chunks.layout)
    total = 0
    for c, (n, first) in enumerate(zip(chunks.size.tolist(), chunks.first.tolist(), strict=True)):
        words[: words_needed(int(chunks.bits[c]))] = 0
        fill(words, graph, chunks.order, chunks.place, chunks.start[c : c + 1], [n], ZERO, chunks.layout)
        bounds = ranges(approach, n, 3, threads, first)
        stored = unranked(np.arange(bounds[-1]), n, 3) if approach == "A" else None
        for thread in range(bounds.size - 1) if only is None else [only]:
            begin, end = bounds[np.minimum([thread, thread + 1], bounds.size - 1)]
            if stored is None:
                total += _count_range(words, layout, n, begin, end, skip)
            else:
                total += _count_stored(words, layout, n, stored[begin:end])
    return int(total)


def printed_count(graph, chunks):
    """What Algorithm 2 counts as it is printed: for the first level of each chunk once more the triangles inside it."""
    level = np.searchsorted(chunks.level_ptr, chunks.place, side="right") - 1  # of each vertex, in all components
    corners = level[np.concatenate(list(list_triangles(graph)))]
    inside = corners[corners.min(axis=1) == corners.max(axis=1), 0]
    firsts = np.searchsorted(chunks.level_ptr, chunks.start, side="right") - 1
    return count_triangles(graph, chunks) + int(np.isin(inside, firsts).sum())


@inline
def _bit(words, bit):
    return words[U64(bit) >> U64(5)] >> U32(bit & 31) & U32(1)


@jit
def _count_range(words, layout, n, begin, end, skip):
    """How many of the combinations of 3 out of n with index begin..end-1 are triangles."""
    if begin >= end:
        return I64(0)
    combination = np.empty(3, np.int64)
    unrank_into(begin, n, 3, combination)
    a, b, c = combination
    row_a, row_b = row_of(a, n, layout), row_of(b, n, layout)
    found = I64(0)
    index = begin
    while index < end:
        if _bit(words, row_a + b):
            if _bit(words, row_a + c):
                found += I64(_bit(words, row_b + c))
        elif skip:
            index += n - 1 - c
            c = n - 1
        index += 1
        c += 1
        if c == n:
            b += 1
            if b == n - 1:
                a += 1
                b = a + 1
                row_a = row_of(a, n, layout)
            c = b + 1
            row_b = row_of(b, n, layout)
    return found


@jit
def _count_stored(words, layout, n, combinations):
    found = I64(0)
    for row in range(combinations.shape[0]):
        a, b, c = I64(combinations[row, 0]), I64(combinations[row, 1]), I64(combinations[row, 2])
        row_a, row_b = row_of(a, n, layout), row_of(b, n, layout)
        if _bit(words, row_a + b):
            if _bit(words, row_a + c):
                found += I64(_bit(words, row_b + c))
    return found
