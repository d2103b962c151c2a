"""Rows of bits that the threads of a warp or block share, and how many of them a device has room for.

The bitmaps of Bisson & Fatica. Bit r of a bitmap says whether its column has row r. Setting is atomic, for threads set
bits of one word at the same time; looking up is not, for nobody sets then. At the end only the words that were set are
cleared, so that a column costs its length and not n.

Their rows are the neighbours of lower number, our columns those of higher number: the mirror image. Call vertex v
n - 1 - v, and one becomes the other. Whichever way, each vertex v is looked through once for each of its neighbours on
one side, and is as long as it has neighbours on the other: the sum over all v of in(v) * out(v) look-ups either way.
What the mirror does change is who has the long bitmap: a hub with a small number has a long column, and a short row.

A bitmap in global memory has a `fold` in shared memory: 2^k bits, bit b for all rows that are b modulo 2^k. Where the
fold has a 0, so has the bitmap, and nearly all look-ups end there, close by.
"""

import numpy as np

from tcgpu.declarations import Knob
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.kernels import Step


@cuda.jit(device=True)
def set_bit(bits, mine, row, shift):
    """Set bit `row` of the bitmap whose words begin at bits[mine]; a word has 2^shift bits, 32 or 64."""
    cuda.atomic.or_(bits, mine + (row >> shift), 1 << (row & ((1 << shift) - 1)))


@cuda.jit(device=True)
def near_bit(near, at, row):
    """1 if bit `row` of a bitmap in shared memory is set; its 32-bit words begin at near[at]."""
    return near[at + (uint32(row) >> 5)] >> (uint32(row) & 31) & 1


@cuda.jit(device=True)
def set_near_bit(near, at, row):
    cuda.atomic.or_(near, uint32(at + (row >> 5)), 1 << uint32(row & 31))


@cuda.jit(device=True)
def near_hits(near, at, row_idx, q, q_end, step, last):
    """How many of the rows row_idx[q:q_end:step], as far as they go up to `last`, are set in the bitmap at near[at].

    The rows ascend. Four loads are under way at a time; a position is unsigned and has 32 bits.
    """
    three, hits = 3 * step, uint32(0)
    while q < q_end and q_end - q > three:
        a, b = row_idx[q], row_idx[q + step]
        c, d = row_idx[q + step + step], row_idx[q + three]
        if a > last:
            return hits
        two = near_bit(near, at, a) + near_bit(near, at, b)
        hits += two + near_bit(near, at, c) + near_bit(near, at, d)
        q += three + step
    while q < q_end:
        a = row_idx[q]
        if a > last:
            return hits
        hits += near_bit(near, at, a)
        q += step
    return hits


@cuda.jit(device=True)
def folded_bit(fold, at, mask, bits, mine, shift, row):
    """1 if bit `row` is set in the bitmap at bits[mine], whose fold of mask + 1 bits is at fold[at].

    Every lane loads a word, those whose fold says no the first one of all: 32 lanes rarely agree, and without a branch
    several of these loads can be under way.
    """
    maybe = near_bit(fold, at, uint32(row) & mask)
    word = uint32(row) >> uint32(shift) if maybe else uint32(0)
    return uint32(bits[uint64(mine) + uint64(word)] >> (row & ((1 << shift) - 1))) & maybe


@cuda.jit(device=True)
def folded_hits(fold, at, mask, bits, mine, shift, row_idx, q, q_end, step, last):
    """`near_hits` of a bitmap in global memory and its fold."""
    three, hits = 3 * step, uint32(0)
    while q < q_end and q_end - q > three:
        a, b = row_idx[q], row_idx[q + step]
        c, d = row_idx[q + step + step], row_idx[q + three]
        if a > last:
            return hits
        a, b = folded_bit(fold, at, mask, bits, mine, shift, a), folded_bit(fold, at, mask, bits, mine, shift, b)
        c, d = folded_bit(fold, at, mask, bits, mine, shift, c), folded_bit(fold, at, mask, bits, mine, shift, d)
        hits += a + b + c + d
        q += three + step
    while q < q_end:
        a = row_idx[q]
        if a > last:
            return hits
        hits += folded_bit(fold, at, mask, bits, mine, shift, a)
        q += step
    return hits


# ------------------------------------------------------------------------------------------- rows, a block at a time

LONG_ROW = 512  # rows of at least this length go first, so that no block is left with one at the end
LONG_LIST = 4  # times the threads of a block: the whole block looks up a list longer than that
BATCH = 4  # as many rows a block takes off the queue at a time, or fewer, so that there are some for every block


@kernel("void(int64[::1])")
def restart(queue):
    queue[0] = 0


@cuda.jit(device=True)
def belongs(length, sweep):
    """Whether a row is looked at in a sweep: those without a triangle in neither, long ones in the first."""
    return length > 1 and (length >= LONG_ROW) == (sweep == 0)


@cuda.jit(device=True)
def bring_list(col_ptr, row_idx, e, end, near, at):
    """Write into near[at] and near[at + 1] where the column that nonzero e names begins and ends; not past `end`."""
    if e < end:
        i = row_idx[e]
        near[at] = uint32(col_ptr[i])
        near[at + 1] = uint32(col_ptr[i + 1])


def batch_of(graph, blocks):
    """How many rows a block takes off the queue at a time."""
    return max(1, min(BATCH, graph.n // (4 * blocks)))


def with_queue(step):
    """The launches of a kernel whose blocks take rows off the array `queue`, which starts at 0 each time."""
    return [Step(restart, 1, 1, ("queue",)), step]


def lists_bytes(threads):
    """Of shared memory, for what `bring_list` writes, a list a thread."""
    return 8 * threads


def lists_and_task_bytes(threads):
    """The same, and the number of the next batch that the block takes."""
    return lists_bytes(threads) + 4


# ----------------------------------------------------------------------------------------------- what there is room for


MOST_EDGES = 2**32 - 2**13  # a position of 32 bits goes past the last edge by four times 1024 threads, and more


def check_edges(method, graph):
    """GraphError unless the edges can be numbered with 32 bits."""
    if graph.m > MOST_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for {method}, which takes {MOST_EDGES:,}: count it in parts")


def bitmaps_that_fit(method, graph, wanted, bitmap_bytes):
    """How many bitmaps, up to `wanted`, the device has room for beside the graph; GraphError if there is not one.

    A sixteenth of what is free is left alone: allocations are rounded up, and memory has gaps.
    """
    free = runtime.memory_free()
    columns = 0 if hasattr(graph.col_ptr, "__cuda_array_interface__") else graph.nbytes
    room = free - free // 16 - columns
    fitting = wanted if bitmap_bytes == 0 else min(wanted, room // bitmap_bytes)
    if room < 0 or fitting < 1:
        raise GraphError(
            f"{method} needs {columns + bitmap_bytes:,} bytes on the device, for the graph and one bitmap; it has "
            f"{free:,} free, a sixteenth of which is left alone: take another method, or count the graph in parts"
        )
    return fitting


def check_shared(method, what, wanted):
    """GraphError unless a block of this device may have that many bytes of shared memory."""
    most = runtime.facts().shared_per_block
    if wanted > most:
        raise GraphError(f"{method}: {what} takes {wanted:,} bytes of shared memory; a block has at most {most:,} here")
    return wanted


WORDS = {32: np.uint32, 64: np.int64}  # the type of a word; NumPy shifts no unsigned 64 bits by a signed number


def fold_bits_of(fold, n):
    """How many bits a fold of up to 2^fold has in a graph of n vertices: no more than it takes to have one for each."""
    return 1 << min(fold, max(5, (n - 1).bit_length()))


def fold_knob(default):
    """The knob `fold`."""
    return Knob("fold", default, "2^fold bits of a fold in shared memory", 5, 20)


WORD_KNOB = Knob("word", 32, "bits of a word", choices=tuple(WORDS))
