"""`levels`: combinations of vertices from adjacent levels, each tested by its bits (Chatterjee et al., Algorithm 2).

Contract: a breadth-first search (`breadth.py`, `chunks.py`) cuts the graph into chunks of two adjacent levels. The
combinations of three vertices of a chunk whose smallest is in the first level (in a component's last chunk: anywhere)
are the first `tests` of the lexicographic order, and every triangle is one of them in one chunk. Each is tested by its
three bits in the chunk's adjacency matrix, and those that have all three are counted. Nothing is listed, searched or
merged: the work is the number of combinations, whatever the edges.

A task is a stretch of one chunk's combinations. Blocks take tasks from a queue, the longest first. A chunk whose matrix
fits into shared memory is set up there by the block, out of the chunk's edges; the others lie in global memory, and
blocks work on both kinds at once. How the threads of a block divide a task is the paper's section VIII:

    A   every combination was written to global memory beforehand, thread t reads the t-th
    B   one thread makes them one after the other
    C   a thread takes all that begin with the same vertex
    D   groups of `lanes` threads take equal stretches, found by index; the lanes take neighbouring combinations, whose
        bits are neighbours, too: one memory access serves a whole group
"""

import numpy as np

from tcgpu.declarations import Knob, Method, blocks_knob, check_choice, threads_knob
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.kernels import Plan, Step, enough_blocks, simulated
from tcgpu.kernels.chatterjee import breadth
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, ROW, WORD, bits_needed, position, split, words_needed
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to

APPROACHES = ("A", "B", "C", "D")
MEMORIES = ("auto", "shared", "global")
ARRANGEMENTS = ("redundant", "one")
ORDERS = ("longest", "given")
FEW, MANY = 256, 1024  # threads of a block
TASKS_PER_BLOCK = 4  # how often a block comes back for more, so that all are done at about the same time
SMALLEST = 1 << 16  # combinations that are worth a task
MOST_TASKS = 1 << 24
SEARCHED = {"gpu": 1 << 33, "sim": 1 << 27}  # vertices and edges that the searches for a good root may pass
PATIENCE = 600  # seconds that a count may take before it is refused
TEST_US = {"A": 6.0, "B": 3.2, "C": 3.2, "D": 5.0}  # microseconds of a test in the simulator
TESTS_PER_THREAD = 10_000_000  # a second, of a GPU's thread at work beside a thousand others of its SM
THREADS_AT_WORK = 1024  # of an SM

PARTITION = ROW * WORD  # bits of a stretch of global memory of which no two chunks have a part
TICKET = 32  # bits in front of a matrix in shared memory: the number of the block's task

# What the kernels know of a chunk: its vertices are START..START+SIZE-1, its edges EDGES..EDGES_END-1 of `low` and
# `high`; its matrix takes WORDS words of shared memory, or lies in global memory where that is 0; where its rows lie
# say ZERO and STEP (see `row_of`). And what they know of a task: its CHUNK, its combinations FIRST..LAST-1, and at
# which PLACE these were written down.
START, SIZE, EDGES, EDGES_END, WORDS, ZERO, STEP = range(7)
CHUNK, FIRST, LAST, PLACE = range(4)


METHOD = Method(
    name="levels",
    source="Chatterjee et al.",
    summary="two adjacent levels of a breadth-first search as a bit matrix; every combination tested, by index",
    module=__name__,
    declared=(
        threads_knob(None),
        blocks_knob(1024),
        Knob("lanes", 32, "threads that take neighbouring combinations", 1, WORD),
        Knob("approach", "D", "which thread takes which combinations", choices=tuple(APPROACHES)),
        Knob("memory", "auto", "where the bits of a chunk lie", choices=MEMORIES),
        Knob("layout", "s-utm", "how a symmetric matrix of bits is stored", choices=LAYOUTS),
        Knob("arrangement", "redundant", "a matrix for each chunk, or one for all", choices=ARRANGEMENTS),
        Knob("schedule", "longest", "which tasks go first", choices=tuple(ORDERS)),
        Knob("piece", 0, "most combinations of a task; 0: what suits", 0, 2**62),
        Knob("roots", 256, "roots that are tried for a component", 1),
        Knob("skip", False, "pass over pairs that are not joined", choices=(False, True)),
    ),
)


@cuda.jit(device=True)
def pairs(n):
    return n * (n - 1) // 2


@cuda.jit(device=True)
def triples(n):
    return n * (n - 1) // 2 * (n - 2) // 3


@cuda.jit(device=True)
def combination(index, n):
    """The combination i < j < k at an index of the lexicographic order of all triples of 0..n-1.

    From the end, the order counts up: of the last C(c, 3) triples all begin with one of the last c vertices.
    """
    left = triples(n) - index  # this triple and those behind it
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
def row_of(i, zero, step, fall):
    """Where row i would have its bit of column 0: one row is `step` from the next, and `fall` less with each."""
    return zero + i * step - fall * (i * (i + 1) >> 1)


@cuda.jit(device=True)
def bit_at(bits, place):
    return bits[uint64(place >> 5)] >> uint32(place & 31) & 1


@cuda.jit(device=True)
def test_stretch(bits, zero, step, fall, n, first, last, lane, lanes, skip):
    """How many of a chunk's combinations first..last-1 are triangles, of those that fall to one lane.

    zero, step, fall: where the rows of the chunk's matrix lie. With `skip`, all combinations whose first two vertices
    are not joined are passed over at once; without, each is tested.

    Of a row of combinations, in which only the third vertex k changes, a lane takes every 32nd. From one to the next,
    the two bits that depend on k lie at the same places of the next words: a test is two loads, two shifts and an AND.
    """
    count = int64(0)
    left = last - first
    if left <= 0:
        return count
    i, j, k = combination(first, n)
    here, there = row_of(i, zero, step, fall), row_of(j, zero, step, fall)
    while left > 0:
        length = min(left, n - k)
        joined = bit_at(bits, here + j)
        if joined or not skip:
            found = uint32(0)
            ahead = lane
            while ahead < min(length, WORD):
                near, far = here + k + ahead, there + k + ahead
                p, q = uint64(near >> 5), uint64(far >> 5)
                end = uint64((near >> 5) + ((length - ahead + WORD - 1) >> 5))
                right, further = uint32(near & 31), uint32(far & 31)
                while p < end:
                    found += bits[p] >> right & bits[q] >> further & joined
                    p += 1
                    q += 1
                ahead += lanes
            count += found
        left -= length
        j += 1
        if j == n - 1:
            i += 1
            here += step - fall * i
            j = i + 1
            there = here
        there += step - fall * j
        k = j + 1
    return count


@cuda.jit(device=True)
def test_task(bits, zero, step, fall, n, first, last, lanes, groups, parts, skip):
    """How many of a chunk's combinations first..last-1 are triangles, of those that fall to this thread.

    Groups of `lanes` threads take the parts one by one. There are `parts` equal ones, or if that is 0, one for each
    vertex that a combination may begin with.
    """
    count = int64(0)
    group, lane = cuda.threadIdx.x // lanes, cuda.threadIdx.x % lanes
    end_part = parts if parts else n
    part = group if group < groups else end_part  # threads are left over where `lanes` does not divide the block
    while part < end_part:
        if parts:
            begin, end = first + (last - first) * part // parts, first + (last - first) * (part + 1) // parts
        else:
            begin = max(first, triples(n) - triples(n - part))
            end = min(last, triples(n) - triples(n - part - 1))
        count += test_stretch(bits, zero, step, fall, n, begin, end, lane, lanes, skip)
        part += groups
    return count


@cuda.jit(device=True)
def set_edges(bits, zero, step, fall, start, low, high, first, last, thread, threads):
    """The threads set the bits of the edges first..last-1, between vertices of the chunk that begins at `start`."""
    e = first + thread
    while e < last:
        place = row_of(low[e] - start, zero, step, fall) + high[e] - start
        cuda.atomic.or_(bits, place >> 5, 1 << uint32(place & 31))
        e += threads


@cuda.jit(device=True)
def set_up(shared, chunks, chunk, fall, low, high):
    """Make a chunk's matrix in shared memory. It may be used when this returns."""
    word = cuda.threadIdx.x
    while word < chunks[chunk, WORDS]:
        shared[TICKET // WORD + word] = 0
        word += cuda.blockDim.x
    cuda.syncthreads()
    set_edges(shared, chunks[chunk, ZERO], chunks[chunk, STEP], fall, chunks[chunk, START], low, high,
              chunks[chunk, EDGES], chunks[chunk, EDGES_END], cuda.threadIdx.x, cuda.blockDim.x)  # fmt: skip
    cuda.syncthreads()


@cuda.jit(device=True)
def next_task(shared, queue, tasks):
    """The number of the task that this block takes; `tasks` or more if none is left.

    Every block asks once in vain. So the counter is back at 0, where it wraps, when the last one has.
    """
    cuda.syncthreads()  # nobody needs the shared memory of the task before any more
    if cuda.threadIdx.x == 0:
        shared[0] = cuda.atomic.inc(queue, 0, tasks + cuda.gridDim.x - 1)
    cuda.syncthreads()
    return int64(shared[0])


@kernel("void(int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64)")
def matrix_kernel(chunks, low, high, bits, fall):
    """Set the bits of the chunks that lie in global memory."""
    thread, threads = cuda.grid(1), cuda.gridsize(1)
    for chunk in range(chunks.shape[0]):
        if not chunks[chunk, WORDS]:
            zero, step, start = chunks[chunk, ZERO], chunks[chunk, STEP], chunks[chunk, START]
            first, last = chunks[chunk, EDGES], chunks[chunk, EDGES_END]
            set_edges(bits, zero, step, fall, start, low, high, first, last, thread, threads)


@kernel(
    "void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64, int64, int64, int64, int64, "
    "uint32[::1], int64[::1])"
)
def levels_kernel(chunks, tasks, low, high, bits, fall, lanes, groups, parts, skip, queue, total):
    shared = cuda.shared.array(0, uint32)
    count = int64(0)
    task = next_task(shared, queue, tasks.shape[0])
    while task < tasks.shape[0]:
        chunk, first, last = tasks[task, CHUNK], tasks[task, FIRST], tasks[task, LAST]
        n, zero, step = chunks[chunk, SIZE], chunks[chunk, ZERO], chunks[chunk, STEP]
        if chunks[chunk, WORDS]:
            set_up(shared, chunks, chunk, fall, low, high)
            count += test_task(shared, zero, step, fall, n, first, last, lanes, groups, parts, skip)
        else:
            count += test_task(bits, zero, step, fall, n, first, last, lanes, groups, parts, skip)
        task = next_task(shared, queue, tasks.shape[0])
    add_block_to(total, count)


# ----------------------------------------------------------------------------------- A: combinations written beforehand


@kernel("void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], int32[::1])")
def write_kernel(chunks, tasks, one, two, three):
    """Write down every combination of every task, the first of each at the task's place."""
    task = cuda.blockIdx.x
    while task < tasks.shape[0]:
        first, n = tasks[task, FIRST], chunks[tasks[task, CHUNK], SIZE]
        place, t = tasks[task, PLACE], int64(cuda.threadIdx.x)
        while first + t < tasks[task, LAST]:
            i, j, k = combination(first + t, n)
            one[place + t] = i
            two[place + t] = j
            three[place + t] = k
            t += cuda.blockDim.x
        task += cuda.gridDim.x


@cuda.jit(device=True)
def test_written(bits, zero, step, fall, one, two, three, first, last):
    """How many of the combinations written at first..last-1 are triangles, of those that fall to this thread."""
    count = int64(0)
    p = first + cuda.threadIdx.x
    while p < last:
        j, k = two[p], three[p]
        here, there = row_of(one[p], zero, step, fall), row_of(j, zero, step, fall)
        count += bit_at(bits, here + j) & bit_at(bits, here + k) & bit_at(bits, there + k)
        p += cuda.blockDim.x
    return count


@kernel(
    "void(int64[:, ::1], int64[:, ::1], int32[::1], int32[::1], uint32[::1], int64, "
    "int32[::1], int32[::1], int32[::1], uint32[::1], int64[::1])"
)
def written_kernel(chunks, tasks, low, high, bits, fall, one, two, three, queue, total):
    shared = cuda.shared.array(0, uint32)
    count = int64(0)
    task = next_task(shared, queue, tasks.shape[0])
    while task < tasks.shape[0]:
        chunk, first = tasks[task, CHUNK], tasks[task, PLACE]
        last = first + tasks[task, LAST] - tasks[task, FIRST]
        zero, step = chunks[chunk, ZERO], chunks[chunk, STEP]
        if chunks[chunk, WORDS]:
            set_up(shared, chunks, chunk, fall, low, high)
            count += test_written(shared, zero, step, fall, one, two, three, first, last)
        else:
            count += test_written(bits, zero, step, fall, one, two, three, first, last)
        task = next_task(shared, queue, tasks.shape[0])
    add_block_to(total, count)


# --------------------------------------------------------------------------------------------------------- the launcher


@METHOD.planner
def plan(graph, *, threads, blocks, lanes, approach, memory, layout, arrangement, schedule, piece, roots, skip):
    """Algorithm 1, and the tasks that Algorithm 2 makes of its chunks.

    threads: without a number, FEW, or MANY where an SM's shared memory holds but a block or two. lanes: how many of
    them take neighbouring combinations (approach D). memory: where the chunks' bits live: "shared", "global", or as
    they fit. arrangement: in global memory, "one" matrix for all or a "redundant" one for each chunk. schedule: the
    "longest" task first, or as they are "given". piece: the most combinations of a task; 0 for so many that every block
    finds a few tasks. roots: the most that are tried for a component. skip: pass over all combinations whose first two
    vertices are not joined: exact, but no longer the paper's algorithm.
    """
    check_choice("skip", skip, (False,) if approach == "A" else (False, True))
    chunks = cut(graph, layout, roots)
    low, high, edge_ptr = edges_by_level(graph, chunks)
    work = effort(chunks, edge_ptr, skip)
    table, bits = describe(chunks, edge_ptr, memory, arrangement)
    shared = 4 * (1 + int(table[:, WORDS].max(initial=0)))
    threads = threads or (MANY if 4 * shared > runtime.facts().shared_per_sm else FEW)
    lanes = min(lanes, threads)
    check_patience(chunks, work, threads, blocks, approach)
    piece = piece or max(SMALLEST, -(-chunks.total_tests // (blocks * TASKS_PER_BLOCK)))
    tasks = divide(chunks.tests, None if approach in "BC" else piece, schedule)
    blocks = enough_blocks(blocks, len(tasks), 1)
    copied = {"chunks": table, "tasks": tasks, "low": low, "high": high}
    created = {"bits": (words_needed(bits), np.uint32, 0), "queue": (1, np.uint32, 0)}
    shared = max(shared, threads * BYTES_PER_THREAD)
    matrix = ("low", "high", "bits", int(layout != "matrix"))
    setup = [Step(matrix_kernel, blocks, threads, ("chunks", *matrix))] if bits else []
    if approach == "A":
        written = dict.fromkeys(("one", "two", "three"), (int(chunks.tests.sum()), np.int32, None))
        created |= written
        setup.append(Step(write_kernel, blocks, threads, ("chunks", "tasks", *written)))
        step = Step(written_kernel, blocks, threads, ("chunks", "tasks", *matrix, *written, "queue", "total"), shared)
    else:
        groups = threads // lanes
        division = {"B": (1, 1, 1), "C": (1, threads, 0), "D": (lanes, groups, groups)}[approach]
        args = ("chunks", "tasks", *matrix, *division, int(skip), "queue", "total")
        step = Step(levels_kernel, blocks, threads, args, shared)
    microseconds = TEST_US[approach] * work + 15 * threads * len(tasks)
    return Plan("levels", copied, created, [step], setup=setup, work=int(microseconds))


def cut(graph, layout="s-utm", roots=256):
    """Algorithm 1: the Split of the graph for the device's shared memory. On a GPU, all roots are tried at once."""
    device = runtime.facts()
    shared = {"shared_bits": 8 * device.shared_per_block - TICKET, "machines": device.sms, "layout": layout}
    roots = worth_trying(graph, roots)
    if runtime.engine() == "gpu":
        search = breadth.Search(graph)
        roots = best_roots(search, **shared, most=roots)
        return split(graph, **shared, roots=roots, search=search)
    return split(graph, **shared, roots=roots)


def worth_trying(graph, roots):
    """So many roots, or fewer of a graph whose searches would take long; at least one."""
    return max(1, min(roots, SEARCHED[runtime.engine()] // (1 + graph.n + 2 * graph.m)))


def best_roots(search, shared_bits, machines, layout, most):
    """The best root of each component that does not fit shared memory, of up to `most` that are tried (int32).

    What makes one better is what `chunks.cost` says; of equals, the one with fewer combinations to test.
    """
    component, _ = search.forest()
    best = []
    for large in np.flatnonzero(bits_needed(np.bincount(component), layout) > shared_bits):
        members = np.flatnonzero(component == large)
        tried = members[np.linspace(0, members.size - 1, min(most, members.size)).astype(np.int64)]
        too_large, bits, tests, levels = search.scores(tried, shared_bits, layout).T
        fitting = np.maximum(levels - 1, 1) - too_large
        waste = shared_bits * machines * -(-fitting // machines) - bits
        best.append(tried[np.lexsort((tests, waste, too_large))[0]])
    return np.array(best, np.int32)


def edges_by_level(graph, chunks):
    """The edges as places (low < high) in the order of the chunks, so that those of any chunk lie together.

    First the edges inside a level, then those to the next one, then those inside that, ... Returns low, high, and where
    the edges inside and those out of each level begin.
    """
    one, two = (chunks.place[end] for end in graph.edges())
    low, high = np.minimum(one, two), np.maximum(one, two)
    levels = chunks.level_ptr.size - 1
    level = np.repeat(np.arange(levels), np.diff(chunks.level_ptr))
    key = 2 * level[low] + (level[low] < level[high])
    order = np.argsort(key, kind="stable")
    return low[order], high[order], np.searchsorted(key[order], np.arange(2 * levels + 1))


def describe(chunks, edge_ptr, memory, arrangement):
    """The table of chunks that the kernels read, and how many bits of global memory the matrices take."""
    fits = chunks.fits & (memory != "global")
    if memory == "shared" and not fits.all():
        raise GraphError(
            f"{np.count_nonzero(~fits)} of {len(chunks)} chunks are too large for shared memory, the largest of "
            f"{chunks.size.max():,} vertices: take memory='auto'"
        )
    first, last = (
        np.searchsorted(chunks.level_ptr, chunks.start + more, side="right") - 1 for more in (0, chunks.size - 1)
    )
    table = np.zeros((len(chunks), 7), np.int64)
    table[:, START], table[:, SIZE] = chunks.start, chunks.size
    table[:, EDGES], table[:, EDGES_END] = edge_ptr[2 * first], edge_ptr[2 * last + 1]
    table[:, WORDS] = np.where(fits, words_needed(chunks.bits), 0)
    rows, offset, begin, bits = chunks.size.astype(np.int64), 0, 0, 0
    if not fits.all() and arrangement == "one":
        bits = bits_needed(chunks.n, chunks.layout)
        rows, offset = np.where(fits, rows, chunks.n), np.where(fits, 0, chunks.start)
    elif not fits.all():
        taken = np.where(fits, 0, -(-chunks.bits // PARTITION) * PARTITION)
        begin, bits = np.cumsum(taken) - taken, int(taken.sum())
    table[:, ZERO] = np.where(fits, TICKET, begin) + position(offset, offset, rows, chunks.layout)
    table[:, STEP] = position(offset + 1, offset, rows, chunks.layout) - position(offset, offset, rows, chunks.layout)
    table[:, STEP] += chunks.layout != "matrix"  # row 1 has fallen already
    return table, bits


def effort(chunks, edge_ptr, skip):
    """How many combinations there are to test; with `skip`, about how many pairs and then combinations."""
    if not skip:
        return chunks.total_tests
    size, first = chunks.size.astype(np.int64), chunks.first.astype(np.int64)
    return int((size * first).sum() + edge_ptr[-1] * size.max(initial=0))


def divide(tests, piece, schedule):
    """The table of tasks that the kernels read: equal parts of each chunk's combinations, none of more than `piece`."""
    parts = np.ones(tests.size, np.int64) if piece is None else -(-tests // piece)
    if parts.sum() > MOST_TASKS:
        raise GraphError(f"{parts.sum():,} tasks are more than {MOST_TASKS:,}: take a larger piece than {piece:,}")
    chunk = np.repeat(np.arange(tests.size), parts)
    part = np.arange(chunk.size) - np.repeat(np.cumsum(parts) - parts, parts)
    tasks = np.empty((chunk.size, 4), np.int64)
    share, more = tests // parts, tests % parts  # the first `more` parts of a chunk have one combination more
    tasks[:, CHUNK], tasks[:, FIRST] = chunk, part * share[chunk] + np.minimum(part, more[chunk])
    tasks[:, LAST] = tasks[:, FIRST] + share[chunk] + (part < more[chunk])
    sizes = tasks[:, LAST] - tasks[:, FIRST]
    tasks[:, PLACE] = np.cumsum(sizes) - sizes
    return tasks[np.argsort(-sizes, kind="stable")] if schedule == "longest" else tasks


def check_patience(chunks, work, threads, blocks, approach):
    """GraphError, before anything is launched, if a GPU would be busy for too long."""
    if runtime.engine() == "sim":
        return  # Plan knows how long the simulator takes
    each = 1 if approach == "B" else threads
    device = runtime.facts()
    seconds = work / TESTS_PER_THREAD / min(each * blocks, THREADS_AT_WORK * device.sms)
    if approach in "BC" and work:
        seconds = max(seconds, work * (int(max(chunks.tests)) / chunks.total_tests) / TESTS_PER_THREAD / each)
    if seconds > PATIENCE:
        raise GraphError(
            f"levels would take about {simulated.duration(seconds)} on this GPU to test {work:,} combinations: "
            "take skip=True, which passes over most of them, or another method"
        )
