"""Bitmaps of columns, as in Bisson & Fatica's kernels, shared by the threads of a warp or block.

Bit r of a bitmap says whether the column has row r. Bits are set atomically, since threads set bits of the same word;
no thread reads them meanwhile. At the end only the words that were set are cleared, so the cost of a column depends on
its length and not on n.

Their rows list the neighbours with lower numbers, our columns those with higher numbers: vertex v there is vertex
n - 1 - v here. Either way the number of look-ups is the sum over all v of in(v) * out(v). What differs is which
vertices have a long bitmap: a hub with a small number has a long column, and a short row.

A bitmap in global memory has a `fold` in shared memory: 2^k bits, where bit b stands for all rows that are b modulo
2^k. If a bit of the fold is 0, so are its bits of the bitmap; nearly all look-ups end there.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.gpu_costs import LONG_COLUMN, LONG_LIST
from tcgpu.kernels import elsewhere, launch
from tcgpu.kernels.device.columns import column_bounds


class Bitmap(NamedTuple):
    """A column as bits: the bit of `row` is in words[begin + (row >> shift)].

    Shared memory holds 32-bit words from near[at] on: the whole bitmap if it is not `folded`, else its fold of mask + 1
    bits.
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
    """Clear the words that have the bit of a row."""
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
    """The bit of a row in the bitmap, if the fold's bit is set.

    Lanes whose fold's bit is 0 load the first word: 32 lanes rarely agree, and without a branch several loads can be
    in flight.
    """
    maybe = near_bit(bitmap, row)
    word = uint32(row) >> uint32(bitmap.shift) if maybe else uint32(0)
    return uint32(bitmap.words[uint64(bitmap.begin) + word] >> (row & ((1 << bitmap.shift) - 1))) & maybe


@cuda.jit(device=True)
def bit_of(bitmap, row, folded):
    return folded_bit(bitmap, row) if folded else near_bit(bitmap, row)


@cuda.jit(device=True)
def hits(bitmap, row_idx, q, q_end, step, last, folded):
    """How many of the ascending rows row_idx[q:q_end:step] up to `last` have their bit set; positions are uint32.

    Four loads are in flight at a time.
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


# ------------------------------------------------------------------------------------------------ a column per block

BATCH = 4  # columns that a block takes from the queue at a time, at most
BOUNDS_BYTES = 8  # of shared memory a thread, for `load_bounds`; at the end `add_block_to` takes as much


@kernel("void(int64[::1])")
def restart(queue):
    queue[0] = 0


@cuda.jit(device=True)
def load_bounds(col_ptr, row_idx, e, end, near, at):
    """If e < end: write where column i of nonzero e = (i, j) begins and ends into near[at] and near[at + 1]."""
    if e < end:
        i = row_idx[e]
        near[at], near[at + 1] = column_bounds(col_ptr, i)


@cuda.jit(device=True)
def chunk_hits(bitmap, row_idx, size, team, long_list, last, folded):
    """The number of rows that this thread finds of the `size` columns whose bounds `load_bounds` wrote.

    Short columns are looked up by `lanes` threads each, long ones by the whole block. team: (group, lane, groups,
    lanes) of this thread.
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
    """The number of triangles that this thread finds; the block takes batches of columns j from a queue.

    It sets the bits of column j, then looks up all columns i of its nonzeros (i, j). Long columns j are taken first.
    Shared memory holds two words a thread for `load_bounds`, the next batch, and `words` words of bits.
    """
    near, thread, threads = bitmap.near, cuda.threadIdx.x, cuda.blockDim.x
    next_task, n, count = 2 * threads, uint32(col_ptr.size - 1), int64(0)
    team = thread // lanes, thread % lanes, threads // lanes, lanes  # a division takes longer than a short column
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
            if end - begin > 1 and (end - begin >= LONG_COLUMN) == (sweep == 0):
                p = begin + thread
                while p < end:
                    set_row(bitmap, row_idx[p], folded)
                    p += threads
                last, chunk = row_idx[end - 1], begin
                while chunk < end:
                    load_bounds(col_ptr, row_idx, chunk + thread, end, near, 2 * thread)
                    cuda.syncthreads()
                    count += chunk_hits(bitmap, row_idx, min(threads, end - chunk), team, long_list, last, folded)
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


def launches_by_block(kernel, graph, threads, blocks, shared, lanes, **knobs):
    """The launches of a kernel that calls `count_by_block`; batches are small enough for each block to get some."""
    batch = max(1, min(BATCH, graph.n // (4 * blocks)))
    knobs |= {"lanes": min(lanes, threads), "batch": batch, "long_list": LONG_LIST * threads}
    return [launch(restart, 1, 1), launch(kernel, blocks * threads, threads, blocks, shared, **knobs)]


def bounds_and_batch_bytes(threads):
    """Shared memory of a block in front of its bits."""
    return BOUNDS_BYTES * threads + 4


# -------------------------------------------------------------------------------------------------- memory and knobs


def bitmaps_of_blocks(method, graph, blocks, per_block, bitmap_bytes, others=0):
    """How many blocks, up to `blocks`, of how many bitmaps fit the device: of fewer than `per_block` if it has to be.

    They fit together with the graph and `others` bytes; GraphError if no bitmap does. A sixteenth of the free memory
    stays free: allocations are rounded up, and memory has gaps.
    """
    free, needed = runtime.memory_free(), others + bitmap_bytes
    needed += 0 if runtime.is_on_gpu(graph.col_ptr) else graph.nbytes
    room = free - free // 16 - needed
    if room < 0:
        raise GraphError(
            f"{method} needs {needed:,} bytes on the device, for the graph and one bitmap; it has {free:,} free, a "
            f"sixteenth of which stays free: {elsewhere()}"
        )
    fitting = min(blocks * per_block, 1 + room // max(1, bitmap_bytes))
    per_block = min(per_block, fitting)
    return fitting // per_block, per_block


def check_shared(method, what, needed):
    """GraphError unless a block of this device may have that many bytes of shared memory."""
    most = runtime.facts().shared_per_block
    if needed > most:
        raise GraphError(f"{method}: {what} takes {needed:,} bytes of shared memory; a block has at most {most:,} here")
    return needed


WORDS = {32: np.uint32, 64: np.int64}  # the type of a word; NumPy does not shift uint64 by a signed number


def fold_bits_of(fold, n):
    """The bits of a fold: 2^fold, or fewer if n vertices need fewer."""
    return 1 << min(fold, max(5, (n - 1).bit_length()))
