"""Breadth-first searches from many roots at once, a block per root, for Algorithm 1 of Chatterjee et al.

Contract: `Search(graph).scores(roots, shared_bits, layout)` returns for each root how its component would be split into
chunks of two adjacent levels: what `chunks.score` returns.

A block keeps the vertices it has reached in a queue, one level after the other. Groups of LANES threads take the
vertices of the last level. The thread that first marks a neighbour appends it to the queue. A mark is the number of the
search, so that nothing is cleared between two searches of a block.
"""

import numpy as np

from tcgpu.built_in import LAYOUTS
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel
from tcgpu.kernels.chatterjee import chunks

LANES = 8
THREADS, ALL_THREADS = 128, 1 << 17  # of a block, and of all blocks: with few roots a block has more
MAX_BYTES = 1 << 30  # of the marks and queues of all blocks

UPPER, STRICT = LAYOUTS.index("utm"), LAYOUTS.index("s-utm")


@cuda.jit(device=True)
def add_chunk(score, first, second, last, shared_bits, layout):
    """Add to a search's score the chunk of two adjacent levels; in the last chunk every combination is tested."""
    size, spare = first + second, 0 if last else second
    bits = size * size
    if layout == UPPER:
        bits = size * (size + 1) // 2
    elif layout == STRICT:
        bits = size * (size - 1) // 2
    if bits > shared_bits:
        score[0] += 1
    else:
        score[1] += bits
    score[2] += size * (size - 1) // 2 * (size - 2) // 3 - spare * (spare - 1) // 2 * (spare - 2) // 3


@kernel("void(int64[::1], int32[::1], int32[::1], int64, int64, int32[:, ::1], int32[:, ::1], int64[:, ::1])")
def search_kernel(indptr, indices, roots, shared_bits, layout, marks, queues, scores):
    tail = cuda.shared.array(1, int32)
    thread, threads, block = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockIdx.x
    search = block
    while search < roots.size:
        if thread == 0:
            queues[block, 0] = roots[search]
            marks[block, roots[search]] = search
            tail[0] = 1
        cuda.syncthreads()
        before, begin, end = 0, 0, 1  # the last level is queue[begin:end], the one before it has `before` vertices
        while begin < end:
            p = begin + thread // LANES
            while p < end:
                v = queues[block, p]
                e = indptr[v] + thread % LANES
                while e < indptr[v + 1]:
                    w = indices[e]
                    if marks[block, w] != search and cuda.atomic.exch(marks, (block, w), search) != search:
                        queues[block, cuda.atomic.add(tail, 0, 1)] = w
                    e += LANES
                p += threads // LANES
            cuda.syncthreads()
            reached = tail[0]
            if thread == 0:
                if before or reached == end:
                    add_chunk(scores[search], before, end - begin, reached == end, shared_bits, layout)
                scores[search, 3] += 1
            cuda.syncthreads()  # all threads have read `tail`
            before, begin, end = end - begin, end, reached
        search += cuda.gridDim.x


class Search(chunks.Search):
    """The native searches, but the scores computed by a kernel."""

    def scores(self, roots, shared_bits, layout):
        n = self.queue.size
        blocks = max(1, min(len(roots), ALL_THREADS // THREADS, MAX_BYTES // (8 * n)))
        threads = min(1024, ALL_THREADS // blocks // THREADS * THREADS)
        marks = runtime.device_array((blocks, n), np.int32, -1)
        queues = runtime.device_array((blocks, n), np.int32)
        scores = runtime.device_array((len(roots), 4), np.int64, 0)
        inputs = (runtime.to_device(array) for array in (*self.adjacency, np.asarray(roots, np.int32)))
        search_kernel.launch(blocks, threads, *inputs, shared_bits, LAYOUTS.index(layout), marks, queues, scores)
        return runtime.to_host(scores)
