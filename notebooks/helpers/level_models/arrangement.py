"""The chunks' bits in global memory (section X): together, or each chunk's by itself; and how large a graph fits.

    one        a single matrix of all vertices, in the order of the split: chunks that share a level share its bits
    redundant  a matrix for each chunk, shared levels and all, from a 256-byte boundary on
    striped    the same, but every row of 256 bytes of chunk c in memory partition c % partitions (equation 11)

Global memory is divided between its partitions in turns of 256 bytes. Multiprocessors that read from one partition wait
for each other; in the last arrangement the readers of a chunk have a partition to themselves, as long as there are no
more chunks under way than partitions.
"""

import os
from dataclasses import dataclass
from math import isqrt

import numpy as np

from tcgpu.declarations import check_choice
from tcgpu.engines.native import jit
from tcgpu.errors import GraphError
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, ROW, WORD, bits_needed, position, words_needed
from tcgpu.suggest import unknown

ARRANGEMENTS = ("one", "redundant", "striped")
PARTITIONS = 8  # of the paper's card, and of all NVIDIA's of its generation
PARTITION_BITS = ROW * WORD
I64 = np.int64


@dataclass(frozen=True)
class Arrangement:
    """The words, and where in them each chunk's bits lie.

    Vertices i < j of chunk c: bit `position(offset[c] + i, offset[c] + j, rows[c], layout)` of the matrix that begins
    at `first_bit[c]`; `stride` words lie from one row of 256 bytes of the matrix to the next.
    """

    name: str
    layout: str
    words: np.ndarray  # uint32
    first_bit: np.ndarray  # int64
    rows: np.ndarray  # int64: vertices of the matrix
    offset: np.ndarray  # int64: the chunk's first vertex in the matrix
    stride: int = ROW

    def bit(self, c, i, j):
        """Which bit of all tells whether vertices i < j of chunk c are neighbours; numbers or int64 arrays."""
        inside = position(self.offset[c] + i, self.offset[c] + j, self.rows[c], self.layout)
        return self.first_bit[c] + spread(inside, self.stride)

    def neighbours(self, c, i, j):
        """Whether they are."""
        bit = self.bit(c, i, j)
        return (self.words[bit // WORD] >> (bit % WORD).astype(np.uint32) & 1).astype(bool)


def arrange(graph, split, arrangement="redundant", partitions=PARTITIONS):
    """The bits of all chunks of a split of `graph`, as an Arrangement."""
    if arrangement not in ARRANGEMENTS:
        raise GraphError(unknown("arrangement", arrangement, ARRANGEMENTS))
    chunks = len(split)
    if arrangement == "one":
        matrices = np.zeros(1, np.int64), np.array([split.n]), np.zeros(1, np.int64)
        zeros = np.zeros(chunks, np.int64)
        of_chunks = zeros, np.full(chunks, split.n), split.start
        bits, stride = bits_needed(split.n, split.layout), ROW
    else:
        stripes = partitions if arrangement == "striped" else 1
        first_bit, bits = _in_stripes(-(-split.bits // PARTITION_BITS), stripes)
        size = split.size.astype(np.int64)
        matrices = split.start, size, first_bit
        of_chunks = first_bit, size, np.zeros(chunks, np.int64)
        stride = ROW * stripes
    words = empty_words(bits)
    fill(words, graph, split.order, split.place, *matrices, split.layout, stride)
    return Arrangement(arrangement, split.layout, words, *of_chunks, stride)


def _in_stripes(rows, stripes):
    """The first bit of each matrix of so many rows, the c-th in stripe c % stripes, and how many bits there are."""
    first_row = np.empty(rows.size, np.int64)
    highest = 0
    for stripe in range(stripes):
        ends = np.cumsum(rows[stripe::stripes])
        first_row[stripe::stripes] = ends - rows[stripe::stripes]
        highest = max(highest, int(ends[-1]) if ends.size else 0)
    first_bit = (first_row * stripes + np.arange(rows.size) % stripes) * PARTITION_BITS
    return first_bit, highest * stripes * PARTITION_BITS


# --------------------------------------------------------------------------------------------------- bits of adjacency


def max_vertices(bits, layout):
    """The most vertices whose adjacency fits in so many bits."""
    if bits < 0:
        raise GraphError(f"a memory has at least 0 bits, not {bits}")
    n = {"matrix": isqrt(bits), "utm": (isqrt(8 * bits + 1) - 1) // 2, "s-utm": (isqrt(8 * bits + 1) + 1) // 2}
    return n[check_choice("layout", layout, LAYOUTS)]


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
    _fill(words, *graph.adjacency, order, place, *numbers, LAYOUTS.index(layout), stride)


def spread(bit, stride):
    """Where a bit lies whose matrix has `stride` words from one row of 256 bytes to the next; see `fill`."""
    row = ROW * WORD
    return bit // row * (stride * WORD) + bit % row


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
