"""Breadth-first search by level, a block per root: how Algorithm 1 of Chatterjee et al. tries many roots at once.

Contract: `Search(graph)(root)` gives the vertices that a root reaches, level by level, as the native search does.
`Search(graph).scores(roots, shared_bits, layout)` searches from each root by itself and says how its component would be
cut into chunks of two adjacent levels: a row of SCORE a root.

A block keeps what it has reached in a queue, one level behind the other. Its threads take the vertices of the last
level, LANES of them one vertex, and whoever first marks a neighbour puts it into the queue. A mark is the number of the
search, so that nothing has to be cleared between two searches of a block.
"""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel
from tcgpu.kernels.chatterjee import chunks
from tcgpu.kernels.chatterjee.chunks import LAYOUTS

LANES = 8
THREADS, ALL_THREADS = 128, 1 << 17  # of a block, and of all: a block may have more threads where roots are few
SCRATCH = 1 << 30  # bytes that the marks and queues of all blocks may take

SCORE = ("large", "bits", "tests", "levels")  # chunks too large for shared memory, bits of the others, combinations
UPPER, STRICT = LAYOUTS.index("utm"), LAYOUTS.index("s-utm")


@cuda.jit(device=True)
def add_chunk(score, first, second, last, shared_bits, layout):
    """Add to a search's score the chunk of two adjacent levels; in the last one every vertex may be the smallest."""
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


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int64, int64, int32[:, ::1], int32[:, ::1], int32[::1], int64[:, ::1])"
)
def search_kernel(indptr, indices, roots, shared_bits, layout, marks, queues, starts, scores):
    tail = cuda.shared.array(1, int32)
    thread, threads, block = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockIdx.x
    search = block
    while search < roots.size:
        if thread == 0:
            queues[block, 0] = roots[search]
            marks[block, roots[search]] = search
            tail[0] = 1
        cuda.syncthreads()
        before, begin, end, depth = 0, 0, 1, 0  # the last level is queue[begin:end], the one before it `before` long
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
                if search == 0:
                    starts[depth + 1] = end
            cuda.syncthreads()  # everybody has read how far the queue reaches
            before, begin, end, depth = end - begin, end, reached, depth + 1
        search += cuda.gridDim.x


class Search(chunks.Search):
    """The native search, but that the levels are found by a kernel."""

    def __init__(self, graph):
        super().__init__(graph)
        self.n = graph.n
        self.on_device = None

    def __call__(self, root):
        scores, queues, starts = self.run([root])
        levels = runtime.to_host(scores)[0, SCORE.index("levels")]
        starts = runtime.to_host(starts)[: levels + 1].astype(np.int64)
        return runtime.to_host(queues[0])[: starts[-1]], starts

    def scores(self, roots, shared_bits, layout="s-utm"):
        """What each root would make of its component: int64, a row of SCORE a root."""
        return runtime.to_host(self.run(roots, shared_bits, LAYOUTS.index(layout))[0])

    def run(self, roots, shared_bits=0, layout=0):
        """Search from each root; returns the scores, the queues, and where the first search's levels start in its own.

        All of them on the device: queues are large, and of many searches nobody reads them.
        """
        if self.on_device is None:
            self.on_device = [runtime.to_device(array) for array in self.adjacency]
        blocks = max(1, min(len(roots), ALL_THREADS // THREADS, SCRATCH // (8 * self.n)))
        threads = min(1024, ALL_THREADS // blocks // THREADS * THREADS)
        marks = runtime.device_array((blocks, self.n), np.int32, -1)
        queues = runtime.device_array((blocks, self.n), np.int32)
        starts = runtime.device_array(self.n + 1, np.int32, 0)
        scores = runtime.device_array((len(roots), len(SCORE)), np.int64, 0)
        roots = runtime.to_device(np.asarray(roots, np.int32))
        args = (*self.on_device, roots, shared_bits, layout, marks, queues, starts, scores)
        search_kernel.launch(blocks, threads, *args)
        return scores, queues, starts
