"""Where the bits of an adjacency matrix lie (the paper, section IV): the whole of it, or a triangle of it.

    matrix   all of the n x n bits; every edge is there twice
    utm      the upper triangle with the diagonal: n (n + 1) / 2 bits
    s-utm    the upper triangle without the diagonal, which is 0 anyhow: n (n - 1) / 2 bits

Row after row, so that the bits of (i, j), (i, j + 1), ... lie side by side: threads that take neighbouring combinations
read neighbouring bits. Bit p is bit `p % 32` of the 32-bit word `p // 32`.
"""

import os
from math import isqrt

import numpy as np

from tcgpu.engines.native import jit
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown

LAYOUTS = ("matrix", "utm", "s-utm")
WORD = 32  # bits in a word
ROW = 64  # words in 256 bytes, the width of a partition of memory
I64 = np.int64


def bits_needed(n, layout):
    """How many bits the adjacency of n vertices takes (equations 1 and 2)."""
    return {"matrix": n * n, "utm": n * (n + 1) // 2, "s-utm": n * (n - 1) // 2}[known(layout)]


def max_vertices(bits, layout):
    """The most vertices whose adjacency fits in so many bits."""
    if bits < 0:
        raise GraphError(f"a memory has at least 0 bits, not {bits}")
    n = {"matrix": isqrt(bits), "utm": (isqrt(8 * bits + 1) - 1) // 2, "s-utm": (isqrt(8 * bits + 1) + 1) // 2}
    return n[known(layout)]


def limits(device=None):
    """The largest graphs by memory and layout: `{"shared": {layout: vertices}, "global": ...}`.

    device: anything with `shared_per_block` and `memory_bytes`, by default the facts of the device at hand.
    """
    if device is None:
        from tcgpu.engines import runtime

        device = runtime.facts()
    memories = {"shared": device.shared_per_block, "global": device.memory_bytes}
    return {name: {layout: max_vertices(8 * size, layout) for layout in LAYOUTS} for name, size in memories.items()}


def row_start(i, n, layout):
    """Where row i would have its bit of column 0: `position(i, j)` is this plus j."""
    return {
        "matrix": i * n,
        "utm": i * n - i * (i + 1) // 2,
        "s-utm": i * (n - 1) - i * (i + 1) // 2 - 1,
    }[known(layout)]


def position(i, j, n, layout):
    """Which bit tells whether i and j, i < j, are neighbours in a graph of n vertices; numbers or int64 arrays."""
    return row_start(i, n, layout) + j


def words_needed(bits):
    """How many 32-bit words hold so many bits."""
    return -(-bits // WORD)


def pack(graph, vertices=None, layout="s-utm"):
    """The adjacency of some vertices (all, if none are named) among themselves, as words (uint32).

    The vertices are numbered 0, 1, ... as they are listed.
    """
    vertices = np.arange(graph.n, dtype=np.int32) if vertices is None else np.asarray(vertices, np.int32)
    place = np.full(graph.n, -1, np.int32)
    place[vertices] = np.arange(vertices.size)
    words = empty_words(bits_needed(vertices.size, layout))
    fill(words, graph, vertices, place, [0], [vertices.size], [0], layout)
    return words


def empty_words(bits):
    """Words for so many bits, all 0; GraphError where they would take more memory than there is."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if bits // 8 > memory:
        raise GraphError(f"{bits // 8:,} bytes of adjacency bits are more than this machine's memory of {memory:,}")
    return np.zeros(words_needed(bits), np.uint32)


def fill(words, graph, order, place, start, size, first_bit, layout, stride=ROW):
    """Set the bits of several matrices: of `order[start : start + size]` among themselves, from `first_bit` on.

    `place[v]` is where v stands in `order`, or negative. stride: how many words lie from one row of 256 bytes of a
    matrix to its next; ROW, where they follow each other.
    """
    numbers = (np.asarray(array, np.int64) for array in (start, size, first_bit))
    _fill(words, *graph.adjacency, order, place, *numbers, LAYOUTS.index(known(layout)), stride)


def spread(bit, stride):
    """Where a bit lies whose matrix has `stride` words from one row of 256 bytes to the next; see `fill`."""
    row = ROW * WORD
    return bit // row * (stride * WORD) + bit % row


def known(layout):
    """The name of a layout, if it is one."""
    if layout not in LAYOUTS:
        raise GraphError(unknown("layout", layout, LAYOUTS))
    return layout


@jit
def row_of(i, n, layout):
    """`row_start`, compiled; `layout` is its place in LAYOUTS."""
    if layout == 0:
        return i * n
    return i * n - i * (i + 1) // 2 - (i + 1 if layout == 2 else 0)


@jit
def _fill(words, indptr, indices, order, place, start, size, first_bit, layout, stride):
    for c in range(start.size):
        n = size[c]
        first_word = first_bit[c] >> 5
        for i in range(n):
            row = row_of(I64(i), n, layout)
            v = order[start[c] + i]
            for k in range(indptr[v], indptr[v + 1]):
                j = place[indices[k]] - start[c]
                if i < j < n or (layout == 0 and 0 <= j < n):
                    bit = row + j
                    word = bit >> 5
                    words[first_word + (word >> 6) * stride + (word & 63)] |= np.uint32(1) << np.uint32(bit & 31)
