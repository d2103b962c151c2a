"""Truss numbers of a dense graph: levels are halved, and supports are counted anew from rows of bits.

A level is a truss number less 2: the truss of a level is what remains when edges in fewer triangles are peeled, again
and again. Peeling at the level in the middle tells the edges of the upper half of levels from the others. The upper
half is then divided in the same way, alone; and the lower half, in the graph of both. So each edge is in as many
peelings as the number of levels has binary digits.

A peeling sweeps over the edges. An edge has lost at most as many triangles as its ends have lost edges since it was
counted. Only if too few may be left are its triangles counted again, by ANDs and popcounts of two rows of bits; it is
removed at once if they are too few. Removing each triangle, as `truss` does, takes longer where an edge is in hundreds
of them.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.cpu.neighbourhoods import words_per_row
from tcgpu.cpu_costs import MANY, WORTH
from tcgpu.engines.native import CACHE_LINE, I32, I64, U64, common_bits, fetch_add, jit, run_threads, stoppable, threads

GONE = -1  # the support of an edge that is peeled
COUNT = -2  # the level of a sweep that counts all edges
CHUNK = 1 << 10  # edges that a worker takes at a time
NEXT, PEELED = range(2)  # counters: the next edge to take, how many edges a sweep has peeled


class Rows(NamedTuple):
    """Edges, and the graph of those that are not peeled as rows of bits."""

    first: np.ndarray  # the ends of each edge
    second: np.ndarray
    support: np.ndarray  # int32: the triangles of each edge when they were counted, or GONE
    counted: np.ndarray  # int32: for each edge, how many edges its ends had lost then
    words: int
    bits: np.ndarray
    lost: np.ndarray  # int32: how many edges each vertex has lost, including those that were added again


def is_dense(edges, triangles, n):
    """Whether this pays for edges between n vertices: rows are short, and the mean support is over n / WORTH.

    triangles: the sum of the support.
    """
    return n * words_per_row(n) <= edges and triangles > edges * n / WORTH


def levels(first, second, support, n, low):
    """The level of each edge (int32) of a graph of n vertices, or `low` for a lower level.

    support: the number of triangles that each edge is in; up to `low`, any number that is no higher than that.
    """
    bits = np.zeros(n * words_per_row(n), np.uint64)
    counted = np.zeros(first.size, np.int32)
    rows = Rows(first, second, np.empty_like(counted), counted, words_per_row(n), bits, np.zeros(n, np.int32))
    edges = np.arange(first.size, dtype=np.int32)
    _add(edges, rows)
    rows.support[:] = support
    found = np.empty(edges.size, np.int32)
    _divide(rows, edges, low, int(support.max(initial=0)) + 1, found)
    return found


def _divide(rows, edges, low, high, found):
    """Find the levels of some edges, which are from `low` on and below `high`.

    The graph consists of these edges, which have been counted, and those of higher levels. It is the same at the end.
    """
    if not edges.size:
        return
    support = rows.support[edges]
    least = support - rows.lost[rows.first[edges]] - rows.lost[rows.second[edges]] + rows.counted[edges]
    low, high = max(low, int(least.min())), min(high, int(support.max()) + 1)
    if high - low <= 1:
        found[edges] = low
        return
    middle = (low + high + 1) // 2
    left = edges
    while number := _sweep(rows, left, middle):
        if number > left.size // 4:
            left = left[rows.support[left] != GONE]
    peeled = rows.support[edges] == GONE
    upper, lower = edges[~peeled], edges[peeled]
    _divide(rows, upper, middle, high, found)
    _add(lower, rows)
    _sweep(rows, lower, COUNT)
    _divide(rows, lower, low, middle, found)


def _sweep(rows, edges, level):
    """One sweep over some edges; COUNT as the level counts all and peels none. Returns how many it has peeled."""
    counters = np.zeros(2, np.int64)
    run_threads(_count_and_peel, edges, rows, level, counters,
                workers=threads() if edges.size >= MANY else 1, queue=stoppable(counters, edges.size))  # fmt: skip
    return counters[PEELED]


@jit
def _add(edges, rows):
    """Add edges to the graph, of unknown support."""
    for x in range(edges.size):
        e = U64(edges[U64(x)])
        u, v = I64(rows.first[e]), I64(rows.second[e])
        rows.bits[U64(u * rows.words + (v >> 6))] |= U64(1) << U64(v & 63)
        rows.bits[U64(v * rows.words + (u >> 6))] |= U64(1) << U64(u & 63)
        rows.support[e] = 0


@jit
def _count_and_peel(worker, workers, edges, rows, level, counters):
    """Count the edges that may be in fewer triangles than `level`, and peel those that are.

    A worker may count a triangle that another one breaks. An edge that is removed counts as lost after that, and what
    the ends have lost is read before an edge is counted. So the next sweep counts the edge again, if need be.
    """
    first, second, support, counted = rows.first, rows.second, rows.support, rows.counted
    bits, lost = rows.bits, rows.lost
    while True:
        chunk = fetch_add(counters, NEXT, CHUNK)
        if chunk >= edges.size:
            break
        peeled = I64(0)
        for x in range(chunk, min(chunk + CHUNK, edges.size)):
            e = U64(edges[U64(x)])
            if support[e] == GONE:
                continue
            u, v = I64(first[e]), I64(second[e])
            least = support[e] - lost[U64(u)] - lost[U64(v)] + counted[e]
            if level == COUNT or least < level <= support[e]:
                counted[e] = fetch_add(lost, u, I32(0)) + fetch_add(lost, v, I32(0))  # read before the bits
                common = U64(0)
                for word in range(0, rows.words, CACHE_LINE):
                    common += common_bits(bits, u * rows.words + word, bits, v * rows.words + word)
                support[e] = common
            if support[e] < level:
                support[e] = GONE
                peeled += 1
                fetch_add(bits, u * rows.words + (v >> 6), -(U64(1) << U64(v & 63)))
                fetch_add(bits, v * rows.words + (u >> 6), -(U64(1) << U64(u & 63)))
                fetch_add(lost, u, I32(1))
                fetch_add(lost, v, I32(1))
        fetch_add(counters, PEELED, peeled)
