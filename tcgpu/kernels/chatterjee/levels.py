"""`levels`: combinations of vertices from adjacent levels, each tested by its bits (Chatterjee et al., Algorithm 2).

Contract: Algorithm 1 (`chunks.py`) splits the graph into chunks of two adjacent levels of a breadth-first search. The
combinations of three vertices of a chunk that must be tested are the first `tests` in lexicographic order; every
triangle is one of them in one chunk. A combination is a triangle if its three bits in the chunk's adjacency matrix are
set. The work is the number of combinations, whatever the edges.

A task is a range of one chunk's combinations. Blocks take tasks from a queue, the longest first. If a chunk's matrix
fits shared memory, the block builds it there from the chunk's edges; the other matrices are in global memory. One
launch works on both kinds. How the threads of a block share a task (section VIII of the paper):

    A   all combinations are written to global memory beforehand; thread t reads the t-th
    B   one thread enumerates them one after the other
    C   a thread takes all that begin with the same vertex
    D   groups of `lanes` threads take equal ranges, found by index; the lanes take neighbouring combinations, whose
        bits are neighbours, too: one memory access serves a whole group
"""

import numpy as np

from tcgpu.arrays import repeat
from tcgpu.built_in import planner
from tcgpu.declarations import check_choice
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, launch, simulated
from tcgpu.kernels.chatterjee import breadth, chunks
from tcgpu.kernels.chatterjee.chunks import ROW, WORD, bits_needed, position, words_needed
from tcgpu.kernels.device.reduction import add_block_to

SEARCH_BUDGET = {True: 1 << 27, False: 1 << 33}  # vertices and edges that a search passes: in main memory, on a GPU
THREADS, MORE_THREADS = 256, 1024  # of a block; more where the shared memory of an SM holds only one or two blocks
TASKS_PER_BLOCK = 4  # so that all blocks end at about the same time
MIN_TASK, MAX_TASKS = 1 << 16, 1 << 24  # the least combinations that are worth a task; the most tasks
MAX_SECONDS = 600  # that a count may take before it is refused
TEST_US = {"A": 6.0, "B": 3.2, "C": 3.2, "D": 5.0}  # microseconds of a test in the simulator
TESTS_PER_SECOND = 10_000_000  # of a GPU's thread while its SM runs ACTIVE_THREADS
ACTIVE_THREADS = 1024

PARTITION = ROW * WORD  # bits of a range of global memory that no two chunks share
TASK_BITS = 32  # in front of a matrix in shared memory: the number of the block's task

# Columns of the table of chunks: the vertices are START..START+SIZE-1, the edges EDGES..EDGES_END-1 of `low` and
# `high`. The matrix takes WORDS words of shared memory, or is in global memory where that is 0. ORIGIN and STRIDE: see
# `row_start`. Columns of the table of tasks: the combinations FIRST..LAST-1 of CHUNK, written from OFFSET on (A).
START, SIZE, EDGES, EDGES_END, WORDS, ORIGIN, STRIDE = range(7)
CHUNK, FIRST, LAST, OFFSET = range(4)


@cuda.jit(device=True)
def pairs(n):
    return n * (n - 1) // 2


@cuda.jit(device=True)
def triples(n):
    return n * (n - 1) // 2 * (n - 2) // 3


@cuda.jit(device=True)
def combination(index, n):
    """The combination i < j < k with this index in the lexicographic order of all triples of 0..n-1.

    It is found from the end: the last C(c, 3) triples are those of the last c vertices.
    """
    left = triples(n) - index  # this triple and those after it
    low, high = int64(2), n  # the triples of `low` vertices are fewer than `left`, those of `high` are not
    while high - low > 1:
        middle = (low + high) >> 1
        if triples(middle) < left:
            low = middle
        else:
            high = middle
    i = n - high
    left -= triples(low)
    low, high = int64(1), n - i - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if pairs(middle) < left:
            low = middle
        else:
            high = middle
    j = n - high
    return i, j, n - (left - pairs(low))


@cuda.jit(device=True)
def row_start(i, origin, stride, shrink):
    """The index of the bit of row i and column 0: row 1 is `stride - shrink` bits after row 0, row 2 `shrink` less."""
    return origin + i * stride - shrink * (int64(i) * (i + 1) >> 1)


@cuda.jit(device=True)
def bit_at(bits, index):
    return bits[uint64(index >> 5)] >> uint32(index & 31) & 1


@cuda.jit(device=True)
def test_range(bits, origin, stride, shrink, n, first, last, lane, lanes, skip):
    """How many of the chunk's combinations first..last-1 are triangles, of those that this lane tests.

    origin, stride, shrink: see `row_start`. skip: skip all combinations whose first two vertices are not joined.

    While only the third vertex k changes, a lane takes every 32nd combination. The two bits that depend on k then have
    the same positions in the next words: a test is two loads, two shifts and an AND.
    """
    count = int64(0)
    left = last - first
    if left <= 0:
        return count
    i, j, k = combination(first, n)
    row_i, row_j = row_start(i, origin, stride, shrink), row_start(j, origin, stride, shrink)
    while left > 0:
        length = min(left, n - k)
        joined = bit_at(bits, row_i + j)
        if joined or not skip:
            found = uint32(0)
            t = lane
            while t < min(length, WORD):
                bit_i, bit_j = row_i + k + t, row_j + k + t
                p, q = uint64(bit_i >> 5), uint64(bit_j >> 5)
                p_end = uint64((bit_i >> 5) + ((length - t + WORD - 1) >> 5))
                shift_i, shift_j = uint32(bit_i & 31), uint32(bit_j & 31)
                while p < p_end:
                    found += bits[p] >> shift_i & bits[q] >> shift_j & joined
                    p += 1
                    q += 1
                t += lanes
            count += found
        left -= length
        j += 1
        if j == n - 1:
            i += 1
            row_i += stride - shrink * i
            j = i + 1
            row_j = row_i
        row_j += stride - shrink * j
        k = j + 1
    return count


@cuda.jit(device=True)
def test_task(bits, origin, stride, shrink, n, first, last, lanes, groups, parts, skip):
    """How many of the chunk's combinations first..last-1 are triangles, of those that this thread tests.

    Groups of `lanes` threads take parts of the range in turn: `parts` equal ones, or if that is 0, one for each vertex
    that a combination may begin with.
    """
    count = int64(0)
    group, lane = cuda.threadIdx.x // lanes, cuda.threadIdx.x % lanes
    end_part = parts if parts else n
    part = group if group < groups else end_part  # some threads stay idle if `lanes` does not divide the block
    while part < end_part:
        if parts:
            begin, end = first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts
        else:
            begin = max(first, triples(n) - triples(n - part))
            end = min(last, triples(n) - triples(n - part - 1))
        count += test_range(bits, origin, stride, shrink, n, begin, end, lane, lanes, skip)
        part += groups
    return count


@cuda.jit(device=True)
def set_edges(bits, origin, stride, shrink, start, low, high, first, last, thread, threads):
    """Set the bits of the edges first..last-1 in the matrix of the chunk that begins at vertex `start`."""
    e = first + thread
    while e < last:
        bit = row_start(low[e] - start, origin, stride, shrink) + high[e] - start
        cuda.atomic.or_(bits, bit >> 5, 1 << uint32(bit & 31))
        e += threads


@cuda.jit(device=True)
def make_matrix(shared, chunks, chunk, shrink, low, high):
    """Build a chunk's matrix in shared memory."""
    word = cuda.threadIdx.x
    while word < chunks[chunk, WORDS]:
        shared[TASK_BITS // WORD + word] = 0
        word += cuda.blockDim.x
    cuda.syncthreads()
    set_edges(shared, chunks[chunk, ORIGIN], chunks[chunk, STRIDE], shrink, chunks[chunk, START], low, high,
              chunks[chunk, EDGES], chunks[chunk, EDGES_END], cuda.threadIdx.x, cuda.blockDim.x)  # fmt: skip
    cuda.syncthreads()


@cuda.jit(device=True)
def next_task(shared, queue, tasks):
    """The number of the task that this block takes next; `tasks` or more if none is left.

    Each block gets one number past the last task. With that of the last block, the counter wraps to 0.
    """
    cuda.syncthreads()  # all threads have finished reading the previous task's matrix
    if cuda.threadIdx.x == 0:
        shared[0] = cuda.atomic.inc(queue, 0, tasks + cuda.gridDim.x - 1)
    cuda.syncthreads()
    return int64(shared[0])


@kernel("void(int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64)")
def matrix_kernel(chunks, low, high, bits, shrink):
    """Set the bits of the matrices in global memory."""
    thread, threads = cuda.grid(1), cuda.gridsize(1)
    for chunk in range(chunks.shape[0]):
        if not chunks[chunk, WORDS]:
            origin, stride, start = chunks[chunk, ORIGIN], chunks[chunk, STRIDE], chunks[chunk, START]
            first, last = chunks[chunk, EDGES], chunks[chunk, EDGES_END]
            set_edges(bits, origin, stride, shrink, start, low, high, first, last, thread, threads)


@kernel(
    "void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64, int64, int64, int64, int64, "
    "uint32[::1], int64[::1])"
)
def levels_kernel(chunks, tasks, low, high, bits, shrink, lanes, groups, parts, skip, queue, total):
    shared = cuda.shared.array(0, uint32)
    count = int64(0)
    task = next_task(shared, queue, tasks.shape[0])
    while task < tasks.shape[0]:
        chunk, first, last = tasks[task, CHUNK], tasks[task, FIRST], tasks[task, LAST]
        n, origin, stride = chunks[chunk, SIZE], chunks[chunk, ORIGIN], chunks[chunk, STRIDE]
        if chunks[chunk, WORDS]:
            make_matrix(shared, chunks, chunk, shrink, low, high)
            count += test_task(shared, origin, stride, shrink, n, first, last, lanes, groups, parts, skip)
        else:
            count += test_task(bits, origin, stride, shrink, n, first, last, lanes, groups, parts, skip)
        task = next_task(shared, queue, tasks.shape[0])
    add_block_to(total, count)


# ----------------------------------------------------------------------------------- A: combinations written beforehand


@kernel("void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], int32[::1])")
def write_kernel(chunks, tasks, one, two, three):
    """Write the combinations of every task from its OFFSET on."""
    task = cuda.blockIdx.x
    while task < tasks.shape[0]:
        first, n = tasks[task, FIRST], chunks[tasks[task, CHUNK], SIZE]
        offset, t = tasks[task, OFFSET], int64(cuda.threadIdx.x)
        while first + t < tasks[task, LAST]:
            i, j, k = combination(first + t, n)
            one[offset + t] = i
            two[offset + t] = j
            three[offset + t] = k
            t += cuda.blockDim.x
        task += cuda.gridDim.x


@cuda.jit(device=True)
def test_written(bits, origin, stride, shrink, one, two, three, first, last):
    """How many of the combinations written at first..last-1 are triangles, of those that this thread tests."""
    count = int64(0)
    p = first + cuda.threadIdx.x
    while p < last:
        j, k = two[p], three[p]
        row_i, row_j = row_start(one[p], origin, stride, shrink), row_start(j, origin, stride, shrink)
        count += bit_at(bits, row_i + j) & bit_at(bits, row_i + k) & bit_at(bits, row_j + k)
        p += cuda.blockDim.x
    return count


@kernel(
    "void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64, "
    "int32[::1], int32[::1], int32[::1], uint32[::1], int64[::1])"
)
def written_kernel(chunks, tasks, low, high, bits, shrink, one, two, three, queue, total):
    shared = cuda.shared.array(0, uint32)
    count = int64(0)
    task = next_task(shared, queue, tasks.shape[0])
    while task < tasks.shape[0]:
        chunk, first = tasks[task, CHUNK], tasks[task, OFFSET]
        last = first + tasks[task, LAST] - tasks[task, FIRST]
        origin, stride = chunks[chunk, ORIGIN], chunks[chunk, STRIDE]
        if chunks[chunk, WORDS]:
            make_matrix(shared, chunks, chunk, shrink, low, high)
            count += test_written(shared, origin, stride, shrink, one, two, three, first, last)
        else:
            count += test_written(bits, origin, stride, shrink, one, two, three, first, last)
        task = next_task(shared, queue, tasks.shape[0])
    add_block_to(total, count)


# --------------------------------------------------------------------------------------------------------- the launcher


@planner("levels")
def plan(
    graph, *, threads, blocks, lanes, approach, memory, layout, arrangement, schedule, piece, roots, skip, published
):
    """`skip` skips all combinations whose first two vertices are not joined: exact, but not the paper's algorithm.

    published: Algorithm 1 as printed, which tries every vertex as a root; then `roots` is not used.
    """
    check_choice("skip", skip, (False,) if approach == "A" or published else (False, True))
    split = split_for_device(graph, layout, None if published else roots)
    low, high, edge_ptr = edges_by_level(graph, split)
    work = split.total_tests
    if skip:  # about how many pairs and then combinations are tested
        work = int((split.size * split.first).sum() + edge_ptr[-1] * split.size.max(initial=0))
    table, bits = chunk_table(split, edge_ptr, memory, arrangement)
    shared = 4 * (1 + int(table[:, WORDS].max(initial=0)))
    more = min(MORE_THREADS, runtime.facts().threads_per_block)
    threads = threads or (more if 4 * shared > runtime.facts().shared_per_sm else THREADS)
    lanes = min(lanes, threads)
    check_duration(split, work, threads, blocks, approach)
    piece = piece or max(MIN_TASK, -(-split.total_tests // (blocks * TASKS_PER_BLOCK)))
    tasks = task_table(split.tests, None if approach in "BC" else piece, schedule)
    copied = {"chunks": table, "tasks": tasks, "low": low, "high": high}
    created = {"bits": (words_needed(bits), np.uint32, 0), "queue": (1, np.uint32, 0)}
    shape = {"grid_threads": len(tasks) * threads, "threads": threads, "max_blocks": blocks}
    shrink = int(layout != "matrix")
    setup = [launch(matrix_kernel, **shape, shrink=shrink)] if bits else []
    if approach == "A":
        created |= dict.fromkeys(("one", "two", "three"), (int(split.tests.sum()), np.int32, None))
        setup.append(launch(write_kernel, **shape))
        step = launch(written_kernel, **shape, shared=shared, shrink=shrink)
    else:
        groups = threads // lanes
        lanes, groups, parts = {"B": (1, 1, 1), "C": (1, threads, 0), "D": (lanes, groups, groups)}[approach]
        division = {"lanes": lanes, "groups": groups, "parts": parts, "skip": int(skip)}
        step = launch(levels_kernel, **shape, shared=shared, shrink=shrink, **division)
    microseconds = TEST_US[approach] * work + 15 * threads * len(tasks)
    return Plan("levels", copied, created, [step], setup=setup, work=int(microseconds))


def split_for_device(graph, layout="s-utm", roots=256, **more):
    """Algorithm 1 for the device's shared memory. It tries fewer roots if their searches would take long; as printed,
    with `roots` None, it raises GraphError instead.

    more: as `chunks.split` takes it.
    """
    device = runtime.facts()
    searched, budget = (chunks if runtime.in_main_memory else breadth), SEARCH_BUDGET[runtime.in_main_memory]
    most = max(1, budget // (1 + graph.n + 2 * graph.m))
    if roots is None and graph.n > most:
        raise GraphError(
            f"Algorithm 1 as printed makes a breadth-first search from each of {graph.n:,} vertices, which takes too "
            "long: take published=False"
        )
    return chunks.split(
        graph,
        shared_bits=8 * device.shared_per_block - TASK_BITS,
        machines=device.sms,
        layout=layout,
        roots=roots and min(roots, most),
        search=searched.Search(graph),
        **more,
    )


def edges_by_level(graph, split):
    """The edges as positions (low < high) in `split.order`, such that the edges of each chunk are contiguous.

    First the edges inside level 0, then those to level 1, then those inside level 1, ... Returns low, high, and the
    offsets where the edges inside and those out of each level begin.
    """
    one, two = (split.place[end] for end in graph.edges())
    low, high = np.minimum(one, two), np.maximum(one, two)
    levels = split.level_ptr.size - 1
    level = repeat(np.arange(levels), np.diff(split.level_ptr))
    key = 2 * level[low] + (level[low] < level[high])
    order = np.argsort(key, kind="stable")
    return low[order], high[order], np.searchsorted(key[order], np.arange(2 * levels + 1))


def chunk_table(split, edge_ptr, memory, arrangement):
    """The table of chunks that the kernels read, and how many bits of global memory the matrices take."""
    fits = split.fits & (memory != "global")
    if memory == "shared" and not fits.all():
        raise GraphError(
            f"{np.count_nonzero(~fits)} of {len(split)} chunks are too large for shared memory, the largest of "
            f"{split.size.max():,} vertices: take memory='auto'"
        )
    first, last = (np.searchsorted(split.level_ptr, v, side="right") - 1
                   for v in (split.start, split.start + split.size - 1))  # fmt: skip
    rows, offset, begin, bits = split.size, 0, 0, 0
    if not fits.all() and arrangement == "one":
        bits = bits_needed(split.n, split.layout)
        rows, offset = np.where(fits, rows, split.n), np.where(fits, 0, split.start)
    elif not fits.all():
        taken = np.where(fits, 0, -(-split.bits // PARTITION) * PARTITION)
        begin, bits = np.cumsum(taken) - taken, int(taken.sum())
    row_0, row_1 = (position(offset + row, offset, rows, split.layout) for row in (0, 1))
    table = np.empty((len(split), 7), np.int64)
    table[:, START], table[:, SIZE] = split.start, split.size
    table[:, EDGES], table[:, EDGES_END] = edge_ptr[2 * first], edge_ptr[2 * last + 1]
    table[:, WORDS] = np.where(fits, words_needed(split.bits), 0)
    table[:, ORIGIN] = np.where(fits, TASK_BITS, begin) + row_0
    table[:, STRIDE] = row_1 - row_0 + (split.layout != "matrix")
    return table, bits


def task_table(tests, piece, schedule):
    """The table of tasks that the kernels read: equal parts of each chunk's combinations, none of more than `piece`."""
    parts = np.ones(tests.size, np.int64) if piece is None else -(-tests // piece)
    if parts.sum() > MAX_TASKS:
        raise GraphError(f"{parts.sum():,} tasks are more than {MAX_TASKS:,}: take a larger piece than {piece:,}")
    chunk = repeat(np.arange(tests.size), parts)
    part = np.arange(chunk.size) - repeat(np.cumsum(parts) - parts, parts)
    share, more = tests // parts, tests % parts  # the first `more` parts of a chunk have one combination more
    first = part * share[chunk] + np.minimum(part, more[chunk])
    sizes = share[chunk] + (part < more[chunk])
    tasks = np.stack((chunk, first, first + sizes, np.cumsum(sizes) - sizes), axis=1)
    return tasks[np.argsort(-sizes, kind="stable")] if schedule == "longest" else tasks


def check_duration(split, work, threads, blocks, approach, way_out="take skip=True, which skips most of them"):
    """GraphError, before any launch, if a GPU would take longer than MAX_SECONDS."""
    if runtime.estimates_time:
        return  # Plan checks how long the simulator takes
    busy = 1 if approach == "B" else threads  # of a block
    seconds = work / TESTS_PER_SECOND / min(busy * blocks, ACTIVE_THREADS * runtime.facts().sms)
    if approach in "BC" and work:
        seconds = max(seconds, work * (int(max(split.tests)) / split.total_tests) / TESTS_PER_SECOND / busy)
    if seconds > MAX_SECONDS:
        raise GraphError(
            f"levels would take about {simulated.duration(seconds)} on this GPU to test {work:,} combinations: "
            f"{way_out}, or another method"
        )
