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

from typing import NamedTuple

import numpy as np

from tcgpu.declarations import Knob
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.kernels import Step
from tcgpu.kernels.device.columns import column_bounds


class Bitmap(NamedTuple):
    """A column as bits: that of `row` is in words[begin + (row >> shift)].

    Close by, in shared memory, are 32-bit words from near[at] on: the whole bitmap if it is not `folded`, else its fold
    of mask + 1 bits.
    """

    near: np.ndarray
    at: int  # uint32
    mask: int  # uint32
    words: np.ndarray  # of uint32 or int64
    begin: int
    shift: int  # a word has 2^shift bits


@cuda.jit(device=True)
def set_row(bitmap, row, folded):
    """Set the bit of a row."""
    if folded:
        shift = bitmap.shift
        cuda.atomic.or_(bitmap.words, bitmap.begin + (row >> shift), 1 << (row & ((1 << shift) - 1)))
    bit = uint32(row) & bitmap.mask
    cuda.atomic.or_(bitmap.near, bitmap.at + (bit >> 5), 1 << (bit & 31))


@cuda.jit(device=True)
def clear_row(bitmap, row, folded):
    """Clear the word that has the bit of a row."""
    if folded:
        bitmap.words[bitmap.begin + (row >> bitmap.shift)] = 0
    bitmap.near[bitmap.at + ((uint32(row) & bitmap.mask) >> 5)] = 0


@cuda.jit(device=True)
def near_bit(bitmap, row):
    """The bit of a row in shared memory."""
    bit = uint32(row) & bitmap.mask
    return bitmap.near[bitmap.at + (bit >> 5)] >> (bit & 31) & 1


@cuda.jit(device=True)
def folded_bit(bitmap, row):
    """The bit of a row in the bitmap itself, looked up where the fold has it.

    Every lane loads a word, those whose fold says no the first one of all: 32 lanes rarely agree, and without a branch
    several of these loads can be under way.
    """
    maybe = near_bit(bitmap, row)
    word = uint32(row) >> uint32(bitmap.shift) if maybe else uint32(0)
    return uint32(bitmap.words[uint64(bitmap.begin) + word] >> (row & ((1 << bitmap.shift) - 1))) & maybe


@cuda.jit(device=True)
def bit_of(bitmap, row, folded):
    return folded_bit(bitmap, row) if folded else near_bit(bitmap, row)


@cuda.jit(device=True)
def hits(bitmap, row_idx, q, q_end, step, last, folded):
    """How many of the rows row_idx[q:q_end:step], as far as they go up to `last`, are set.

    The rows ascend. Four loads are under way at a time; positions are uint32.
    """
    three, found = 3 * step, uint32(0)
    while q < q_end and q_end - q > three:
        a, b = row_idx[q], row_idx[q + step]
        c, d = row_idx[q + step + step], row_idx[q + three]
        if a > last:
            return found
        a, b = bit_of(bitmap, a, folded), bit_of(bitmap, b, folded)
        c, d = bit_of(bitmap, c, folded), bit_of(bitmap, d, folded)
        found += a + b + c + d
        q += three + step
    while q < q_end:
        a = row_idx[q]
        if a > last:
            return found
        found += bit_of(bitmap, a, folded)
        q += step
    return found


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
        near[at], near[at + 1] = column_bounds(col_ptr, i)


@cuda.jit(device=True)
def hits_of_chunk(bitmap, row_idx, size, team, long_list, last, folded):
    """A block looks up the lists that `bring_list` wrote, one a thread; how many rows this thread finds.

    Short lists are looked up by `lanes` threads each, long ones by the whole block. team: (group, lane, groups, lanes),
    which of how many groups this thread is in, and which of its lanes it is.
    """
    near, thread, threads, count = bitmap.near, cuda.threadIdx.x, cuda.blockDim.x, uint32(0)
    group, lane, groups, lanes = team
    t = group if group < groups else size
    while t < size:
        q, q_end = near[2 * t], near[2 * t + 1]
        if q_end - q <= long_list:
            count += hits(bitmap, row_idx, q + lane, q_end, lanes, last, folded)
        t += groups
    t = uint32(0)
    while t < size:
        q, q_end = near[2 * t], near[2 * t + 1]
        if q_end - q > long_list:
            count += hits(bitmap, row_idx, q + thread, q_end, threads, last, folded)
        t += 1
    return count


@cuda.jit(device=True)
def count_by_block(col_ptr, row_idx, bitmap, words, lanes, batch, long_list, queue, folded):
    """A block takes batches of columns off a queue, sets the bits of each column, and looks up the columns it names.

    First the batches of long columns, then those of the others. In shared memory there are two words a thread for
    `bring_list`, the next batch, then the `words` words of bits. Returns what this thread finds.
    """
    near, thread, threads = bitmap.near, cuda.threadIdx.x, cuda.blockDim.x
    next_task, n, count = 2 * threads, uint32(col_ptr.size - 1), int64(0)
    team = thread // lanes, thread % lanes, threads // lanes, lanes  # divided once: it takes longer than a short column
    word = thread
    while word < words:
        near[bitmap.at + word] = 0
        word += threads
    batches = (n + batch - 1) // batch
    task = cuda.blockIdx.x
    while task < 2 * batches:
        cuda.syncthreads()
        if thread == 0:
            near[next_task] = cuda.gridDim.x + cuda.atomic.add(queue, 0, 1)
        sweep = task // batches
        j = (task - sweep * batches) * batch
        j_end = min(j + batch, n)
        while j < j_end:
            begin, end = column_bounds(col_ptr, j)
            if belongs(end - begin, sweep):
                p = begin + thread
                while p < end:
                    set_row(bitmap, row_idx[p], folded)
                    p += threads
                last, chunk = row_idx[end - 1], begin
                while chunk < end:
                    bring_list(col_ptr, row_idx, chunk + thread, end, near, 2 * thread)
                    cuda.syncthreads()
                    count += hits_of_chunk(bitmap, row_idx, min(threads, end - chunk), team, long_list, last, folded)
                    cuda.syncthreads()
                    chunk += threads
                p = begin + thread
                while p < end:
                    clear_row(bitmap, row_idx[p], folded)
                    p += threads
                cuda.syncthreads()
            j += 1
        cuda.syncthreads()
        task = near[next_task]
    return count


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
