"""`levels` for subgraphs of k = 3, 4 or 5 vertices: every combination of k vertices of a chunk is tested, by its index.

Contract: `plan(graph, k, kind)` counts the sets of k vertices that are a clique, connected, or independent. Which sets
can be one decides about the chunks (Chatterjee et al., sections III and X):

    clique        any two vertices are neighbours: they lie in two adjacent levels, as a triangle does
    connected     an edge leads at most one level on: the vertices lie in k consecutive levels
    independent   the vertices may lie in any levels, and in several components: one chunk has all vertices. The paper
                  names two adjacent levels here, too, and so would miss the sets that lie further apart

A set is counted in the chunk that begins with its first level: as in `chunks.py`, the combinations to test are the
first `tests` of a chunk in lexicographic order. The work is their number, whatever the edges.

Kernel: as `levels_kernel`, but a thread takes a range of its own (approach D). It finds the first combination by its
index, steps to the next, and reads which of the others are neighbours of the last vertex. All kinds have one kernel: a
table says for each graph of the first k - 1 vertices which neighbours of the last one make a set that counts.
"""

from functools import cache
from math import comb

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.chatterjee import levels
from tcgpu.kernels.chatterjee.chunks import MAX_TESTS, Split, chunks_of_levels
from tcgpu.kernels.chatterjee.levels import (
    CHUNK,
    FIRST,
    LAST,
    MIN_TASK,
    MORE_THREADS,
    ORIGIN,
    SIZE,
    STRIDE,
    TASKS_PER_BLOCK,
    THREADS,
    WORDS,
    bit_at,
    make_matrix,
    matrix_kernel,
    next_task,
    row_start,
)
from tcgpu.kernels.device.reduction import add_block_to

SIZES = 3, 4, 5  # vertices of a subgraph
BLOCKS = 1024
TEST_US, RANGE_US = {3: 2.4, 4: 3.5, 5: 6.0}, 60.0  # microseconds in the simulator: of a test, of a thread's range


@cuda.jit(device=True)
def choose(n, k):
    """The number of combinations of k out of n; on the way it is at most k times as large."""
    found = int64(1)
    for i in range(k):
        found = found * (n - i) // (i + 1)
    return found


@cuda.jit(device=True)
def combination(index, n, k):
    """The combination a < b < c < d < e with this index in the lexicographic order of all k of 0..n-1.

    Of fewer than five vertices, the first ones are 0 and mean nothing. As in `levels.combination`, each vertex is found
    from the end: the last C(m, k) combinations are those of the last m vertices.
    """
    left, high = choose(n, k) - index, n
    a = b = c = d = e = int32(0)
    while k:
        low = int64(k - 1)  # so few vertices have fewer combinations than `left`, `high` have not
        while high - low > 1:
            middle = (low + high) >> 1
            if choose(middle, k) < left:
                low = middle
            else:
                high = middle
        a, b, c, d, e = b, c, d, e, int32(n - high)
        high -= 1
        left -= choose(high, k)
        k -= 1
    return a, b, c, d, e


@cuda.jit(device=True)
def test_range(bits, origin, stride, shrink, n, k, first, last, counted):
    """How many of the chunk's combinations first..last-1 count. origin, stride, shrink: see `levels.row_start`."""
    count, left = int64(0), last - first
    if left <= 0:
        return count
    a, b, c, d, e = combination(first, n, k)
    while left > 0:  # combinations that differ in the last vertex only
        row_c, row_d = row_start(c, origin, stride, shrink), row_start(d, origin, stride, shrink)
        row_a, row_b = row_start(a, origin, stride, shrink), row_start(b, origin, stride, shrink)
        shape = bit_at(bits, row_c + d)
        if k > 3:
            shape |= bit_at(bits, row_b + d) << 1 | bit_at(bits, row_b + c) << 2
        if k > 4:
            shape |= bit_at(bits, row_a + d) << 3 | bit_at(bits, row_a + c) << 4 | bit_at(bits, row_a + b) << 5
        counting, end = counted[shape], min(n, e + left)
        left -= end - e
        while e < end:
            near = bit_at(bits, row_d + e) | bit_at(bits, row_c + e) << 1
            if k > 3:
                near |= bit_at(bits, row_b + e) << 2
            if k > 4:
                near |= bit_at(bits, row_a + e) << 3
            count += counting >> near & 1
            e += 1
        d += 1
        if d == n - 1:
            c += 1
            if c == n - 2:
                b += 1
                if b == n - 3:
                    a += 1
                    b = a + 1
                c = b + 1
            d = c + 1
        e = d + 1
    return count


@kernel(
    "void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64, int64, uint32[::1], uint32[::1], "
    "int64[::1])"
)
def combinations_kernel(chunks, tasks, low, high, bits, shrink, k, counted, queue, total):
    shared = cuda.shared.array(0, uint32)
    count, thread, threads = int64(0), cuda.threadIdx.x, cuda.blockDim.x
    task = next_task(shared, queue, tasks.shape[0])
    while task < tasks.shape[0]:
        chunk, first, size = tasks[task, CHUNK], tasks[task, FIRST], tasks[task, LAST] - tasks[task, FIRST]
        n, origin, stride = chunks[chunk, SIZE], chunks[chunk, ORIGIN], chunks[chunk, STRIDE]
        begin, end = first + size * thread // threads, first + size * (thread + 1) // threads
        if chunks[chunk, WORDS]:
            make_matrix(shared, chunks, chunk, shrink, low, high)
            count += test_range(shared, origin, stride, shrink, n, k, begin, end, counted)
        else:
            count += test_range(bits, origin, stride, shrink, n, k, begin, end, counted)
        task = next_task(shared, queue, tasks.shape[0])
    add_block_to(total, count)


@cache
def counted_shapes(k, kind):
    """Which sets count: the table that the kernel reads (uint32), by the shape of the first k - 1 vertices.

    Vertices are numbered from the last of these on: d, c, b, a are 0, 1, 2, 3, and e is k - 1. Of i < j, bit
    j (j - 1) / 2 + i of a shape says whether they are neighbours. Bit `near` of an element says whether a set counts in
    which e has these neighbours.
    """
    pairs = [(i, j) for j in range(k) for i in range(j)]
    table = np.zeros(1 << comb(k - 1, 2), np.uint32)
    for shape in range(1 << len(pairs)):
        edges = [pair for bit, pair in enumerate(pairs) if shape >> bit & 1]
        reached = {0}
        for edge in edges * k:
            reached |= {*edge} if reached & {*edge} else set()
        if {"clique": edges == pairs, "independent": not edges, "connected": len(reached) == k}[kind]:
            table[shape % table.size] |= 1 << shape // table.size
    return table


def split_for(graph, k, kind):
    """The chunks of a graph in which the sets of a kind lie: see above."""
    if kind != "independent":
        return levels.split_for_device(graph, k=k, width=2 if kind == "clique" else k)
    order, zeros = np.arange(graph.n, dtype=np.int32), np.zeros(graph.n, np.int32)  # a component of one level
    level_ptr, *chunks = chunks_of_levels(order, zeros, zeros, k, 1)
    device = runtime.facts()
    shared_bits = 8 * device.shared_per_block - levels.TASK_BITS
    return Split("s-utm", shared_bits, device.sms, order, level_ptr, order[:1], zeros[:1], *chunks, k)


def plan(graph, k, kind):
    """The plan of one count; GraphError if there are too many combinations."""
    if k not in SIZES:
        raise GraphError(f"levels counts subgraphs of 3 to 5 vertices, not of {k}: leave method= out")
    split = split_for(graph, k, kind)
    tests, numbered = split.total_tests, comb(int(split.size.max(initial=0)), k)
    if max(tests, k * numbered) > MAX_TESTS:
        raise GraphError(f"{max(tests, numbered):,} combinations are too many for 63 bits: leave method= out")
    low, high, edge_ptr = levels.edges_by_level(graph, split)
    table, bits = levels.chunk_table(split, edge_ptr, "auto", "redundant")
    shared = 4 * (1 + int(table[:, WORDS].max(initial=0)))
    threads = MORE_THREADS if 4 * shared > runtime.facts().shared_per_sm else THREADS
    levels.check_duration(split, tests, threads, BLOCKS, "D", "take a smaller graph")
    tasks = levels.task_table(split.tests, max(MIN_TASK, -(-tests // (BLOCKS * TASKS_PER_BLOCK))), "longest")
    shape = {"grid_threads": len(tasks) * threads, "threads": threads, "max_blocks": BLOCKS}
    found = Plan(
        "levels",
        {"chunks": table, "tasks": tasks, "low": low, "high": high, "counted": counted_shapes(k, kind)},
        {"bits": (levels.words_needed(bits), np.uint32, 0), "queue": (1, np.uint32, 0)},
        [launch(combinations_kernel, **shape, shared=shared, shrink=1, k=k)],
        setup=[launch(matrix_kernel, **shape, shrink=1)] if bits else [],
        work=int(TEST_US[k] * tests + RANGE_US * min(tests, threads * len(tasks))),
    )
    if runtime.estimates_time:
        simulated.check("levels", found.simulated_seconds)
    return found
