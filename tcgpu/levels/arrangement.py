"""How the chunks' bits lie in global memory (the paper, section X): together, or each chunk's by itself.

    one        a single matrix of all vertices, in the order of the split: chunks that share a level share its bits
    redundant  a matrix for each chunk, shared levels and all, from a 256-byte boundary on
    striped    the same, but every row of 256 bytes of chunk c in memory partition c % partitions (equation 11)

Global memory is dealt out to its partitions in turns of 256 bytes. Multiprocessors that read from one partition wait
for each other; the last arrangement keeps a chunk's readers to themselves as long as there are no more chunks at work
than partitions.
"""

from dataclasses import dataclass

import numpy as np

from tcgpu.errors import GraphError
from tcgpu.levels.storage import ROW, WORD, bits_needed, empty_words, fill, position, spread
from tcgpu.suggest import unknown

ARRANGEMENTS = ("one", "redundant", "striped")
PARTITIONS = 8  # of the paper's card, and of all NVIDIA's of its generation
PARTITION_BITS = ROW * WORD


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
