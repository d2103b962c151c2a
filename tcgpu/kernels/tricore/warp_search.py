"""`warp_search`: a warp per edge, 32 binary searches at a time, the top of the search tree in shared memory (TriCore).

Contract: the sum over some nonzeros (i, j) of the rows that columns i and j share. The rows of the shorter column are
looked up in the longer one; of column j only those after row i, for column i has no rows up to i. Any numbers of
threads and blocks give the same count; threads are rounded up to whole warps.

The kernel counts a whole graph, or part of one that is too large for the device: a range of its edges, with the columns
of a range of vertices for j, and of another for i. Its parameters:

    cols        column j of edge e is cols[e - first]; if `cols` is empty, a binary search in `j_ptr` finds j
    first, last the edges: positions first..last - 1 in `j_rows`
    j_low       the first vertex of the range for j
    j_ptr       column j begins at j_ptr[j - j_low] in `j_rows`; one element more than there are columns
    j_rows      j_rows[e] is the row i of edge e
    i_low, i_ptr, i_rows    the same for the columns i; edges whose row i is out of this range are skipped

A warp reads the rows of 32 edges at a time. It appends the edges whose row i is in range to a list in shared memory,
until the list has an edge for each lane: the next steps take a warp as long for one edge as for 32. If all 32 rows are
in range, as in a whole graph, each lane keeps its own edge, and the list is not used.

Each lane then loads where the two columns of its edge begin and end. Edges with up to 32 rows to look up share the
lanes: a lane does one look-up at a time, of any of these edges. The whole warp takes the other edges, one by one: its
lanes look up neighbouring rows at the same time, so their loads coalesce.

`published`: the slides' kernel, for whole graphs. Every edge has a warp of its own, however few rows there are to look
up; the 31 elements of the top are brought for each edge; a lane makes one search at a time; both columns are whole.

With `cached`, 32 evenly spaced elements of the longer column are copied to shared memory first. They are the first five
levels of the search tree, which every search passes. It ends in the part of the column between two of them.
"""

from tcgpu.built_in import planner
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import Step, enough_blocks, launch
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.device.search import contains, last_up_to
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import prepare
from tcgpu.kernels.tricore import edge_columns

LEVELS = 5  # of the search tree in shared memory: 32 elements, one a lane
FEW_LOOKUPS = WARP  # an edge with no more look-ups shares the lanes with others
LIST = WARP  # words for the edges that stay listed between rounds; within a round the list overlaps the next words
LOOKUPS = 5 * WARP  # words that describe the look-ups of a warp's 32 edges, five an edge
WORDS = LIST + LOOKUPS + 2 * WARP  # of shared memory for a warp; the last are the tops of two search trees, in turn
ROUNDS = 6  # how often a warp reads 32 edges
SWAPPED = 1 << 31  # this bit of a length says that the rows of column i are looked up in column j
LENGTH = SWAPPED - 1  # the other bits
NO_ROW = -1
NO_COLUMN = -1
PAST_ALL = 2**31 - 1  # larger than every row


@kernel(
    "void(int32[::1], int64, int64, int64, int64[::1], int32[::1], int64, int64[::1], int32[::1], int64, int64[::1])",
    most_threads=1024,
)
def warp_search_kernel(cols, first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, cached, total):
    words = cuda.shared.array(0, uint32)
    top = cuda.shared.array(0, int32)  # the same memory
    lane = cuda.threadIdx.x & 31
    warp, warps = cuda.threadIdx.x >> 5, cuda.blockDim.x >> 5
    edge_list = warp * WORDS
    at = edge_list + LIST
    top_at = at + LOOKUPS
    count, listed = int64(0), uint32(0)
    e = first + (int64(cuda.blockIdx.x) * warps + warp) * WARP + lane
    step = int64(cuda.gridDim.x) * warps * WARP
    while e - lane < last or listed:
        mine, i_at, e, listed = next_edge(words, edge_list, listed, lane, e, step, last, j_rows, i_low, i_ptr)
        keys = key_count = column = length = uint32(0)
        if i_at >= 0:
            column, length = uint32(i_ptr[i_at]), uint32(i_ptr[i_at + 1] - i_ptr[i_at])
            keys, key_count = uint32(mine + 1), uint32(column_end(mine, cols, first, j_low, j_ptr) - mine - 1)
            if length < key_count:
                keys, key_count, column, length = column, length, keys, key_count | SWAPPED
        write_lookups(words, at + lane, lane, keys, key_count, column, length)
        cuda.syncwarp()
        hits = shared_hits(words, at, lane, j_rows, i_rows)
        many = cuda.ballot_sync(ALL_LANES, key_count > FEW_LOOKUPS)
        while many:
            edge = at + cuda.ffs(many) - 1
            many &= many - 1
            p = words[edge] + words[edge + WARP]
            p_end = p + words[edge + 4 * WARP]
            place, size = words[edge + 2 * WARP], words[edge + 3 * WARP]
            top_at = at + at + 2 * LOOKUPS + WARP - top_at  # the other one: lanes may still read this one
            if size & SWAPPED:
                size &= LENGTH
                hits += warp_hits(j_rows, place, size, i_rows, p, p_end, top, top_at, lane, cached)
            else:
                hits += warp_hits(i_rows, place, size, j_rows, p, p_end, top, top_at, lane, cached)
        count += int64(hits)
        cuda.syncwarp()
    add_block_to(total, count)


@cuda.jit(device=True)
def column_index(i, i_low, i_ptr):
    """The index k such that column i begins at i_ptr[k]; NO_COLUMN if i is out of range."""
    k = int64(i) - i_low
    return k if 0 <= k < i_ptr.size - 1 else int64(NO_COLUMN)


@cuda.jit(device=True)
def column_end(e, cols, first, j_low, j_ptr):
    """Where the column of nonzero e ends: column `cols[e - first]`; without `cols`, found by binary search."""
    if cols.size:
        return j_ptr[cols[e - first] - j_low + 1]
    return j_ptr[last_up_to(j_ptr, 0, j_ptr.size - 1, e) + 1]


@cuda.jit(device=True)
def next_edge(words, edge_list, listed, lane, e, step, last, j_rows, i_low, i_ptr):
    """Return this lane's next edge whose row i is in range, and the index of column i (NO_COLUMN if there is no edge
    left for the lane); then the edge that the lane reads next, and the length of the list.

    Reads 32 edges at a time until 32 are listed or there are no more. Returns the last ones listed, so that at most 31
    stay in the list. If all 32 rows read are in range and no edge is listed, the list is not used.
    """
    while e - lane < last and listed < WARP:
        mine, i_at = e, int64(NO_COLUMN)
        if e < last:
            i_at = column_index(j_rows[e], i_low, i_ptr)
        in_range = cuda.ballot_sync(ALL_LANES, i_at >= 0)
        e += step
        if listed == 0 and (in_range == ALL_LANES or e - lane >= last):
            return mine, i_at, e, listed
        if i_at >= 0:
            before = in_range & (1 << lane) - 1
            words[edge_list + listed + cuda.popc(before)] = mine
        listed += cuda.popc(in_range)
    cuda.syncwarp()
    taken = min(listed, WARP)
    listed -= taken
    mine, i_at = e, int64(NO_COLUMN)
    if lane < taken:
        mine = int64(words[edge_list + listed + lane])
        i_at = column_index(j_rows[mine], i_low, i_ptr)
    cuda.syncwarp()
    return mine, i_at, e, listed


@cuda.jit(device=True)
def write_lookups(words, own, lane, keys, key_count, column, length):
    """Write the look-ups of this lane's edge for the other lanes: five words, 32 apart.

    They are: `end`, the sum of the look-ups of the edges up to this one that share the lanes; the offset of its keys,
    less the sum before it; the offset of the column to search; its length; the number of the edge's own look-ups.
    """
    few = key_count if key_count <= FEW_LOOKUPS else uint32(0)
    end = few
    for level in range(LEVELS):
        step = uint32(1 << level)
        other = cuda.shfl_up_sync(ALL_LANES, end, step)
        if lane >= step:
            end += other
    words[own] = end
    words[own + WARP] = keys - (end - few)
    words[own + 2 * WARP] = column
    words[own + 3 * WARP] = length
    words[own + 4 * WARP] = key_count


@cuda.jit(device=True)
def shared_hits(words, at, lane, j_rows, i_rows):
    """The number of rows that this lane finds for edges with few look-ups: it does look-ups `lane`, `lane` + 32, ..."""
    lookups = words[at + (WARP - 1)]
    t, hits = lane, uint32(0)
    while t < lookups:
        edge = at  # becomes the edge of look-up t: the first one whose sum is larger than t
        for level in range(LEVELS):
            step = WARP // 2 >> uint32(level)
            if words[edge + step - 1] <= t:
                edge += step
        key = words[edge + WARP] + t
        place, size = words[edge + 2 * WARP], words[edge + 3 * WARP]
        if size & SWAPPED:
            hits += contains(j_rows, place, size & LENGTH, i_rows[key])
        else:
            hits += contains(i_rows, place, size, j_rows[key])
        t += WARP
    return hits


@cuda.jit(device=True)
def warp_hits(rows, place, size, keys, p, p_end, top, at, lane, cached):
    """The number of keys[p:p_end] that this lane finds among the `size` rows from rows[place] on; it takes every 32nd.

    A search has two stages: it finds the last element in shared memory up to the key, then searches the part of the
    column from there on. All parts have the same length, so that all lanes take the same steps; the last part overlaps
    the one before. Each lane does two searches at a time.
    """
    part = size
    if cached:
        part = size + (WARP - 1) >> LEVELS
        mine = lane * part
        top[at + lane] = rows[place + mine] if mine < size else int32(PAST_ALL)
        cuda.syncwarp()
    hits = uint32(0)
    p += lane
    while p < p_end:
        q = p + WARP
        x, y = keys[p], int32(NO_ROW)
        if q < p_end:
            y = keys[q]
        a, b = place, place
        if cached:
            s, t = at, at
            for level in range(LEVELS):
                step = uint32(WARP // 2 >> level)
                if top[s + step] <= x:
                    s += step
                if top[t + step] <= y:
                    t += step
            a = place + min((s - at) * part, size - part)
            b = place + min((t - at) * part, size - part)
        length = part
        while length > 1:
            half = length >> 1
            if rows[a + half] <= x:
                a += half
            if rows[b + half] <= y:
                b += half
            length -= half
        hits += rows[a] == x
        hits += rows[b] == y
        p = q + WARP
    return hits


@kernel("void(int32[::1], int64[::1], int32[::1], int64, int64[::1])", most_threads=1024)
def published_kernel(col_of, col_ptr, row_idx, cached, total):
    tops = cuda.shared.array(0, int32)
    lane, top = cuda.threadIdx.x & 31, cuda.threadIdx.x >> 5 << 5
    count, e = int64(0), cuda.grid(1) >> 5
    while e < row_idx.size:
        p, p_end = column_bounds(col_ptr, row_idx[e])
        q, q_end = column_bounds(col_ptr, col_of[e])
        if p_end - p > q_end - q:
            p, p_end, q, q_end = q, q_end, p, p_end
        if cached:
            if lane > 0:
                tops[top + lane] = row_idx[q + begin_of_part(lane, q_end - q)]
            cuda.syncwarp()
        p += lane
        while p < p_end:
            key, begin, end = row_idx[p], q, q_end
            if cached:
                s = uint32(0)
                for level in range(LEVELS):
                    step = uint32(WARP // 2 >> level)
                    if tops[top + s + step] <= key:
                        s += step
                begin, end = q + begin_of_part(s, q_end - q), q + begin_of_part(s + 1, q_end - q)
            count += contains(row_idx, begin, end - begin, key)
            p += WARP
        if cached:
            cuda.syncwarp()
        e += cuda.gridsize(1) >> 5
    add_block_to(total, count)


@cuda.jit(device=True)
def begin_of_part(k, size):
    """Where part k of 32 parts of `size` rows begins, in 32 bits."""
    return k * (size >> LEVELS) + (k * (size & (WARP - 1)) >> LEVELS)


def shape(edges, threads=64, blocks=None):
    """(blocks, threads, bytes of shared memory) of the launch of `warp_search_kernel` for this number of edges."""
    warps = -(-threads // WARP)
    threads = warps * WARP
    most = 2**31 - 1 if blocks is None else blocks
    blocks = enough_blocks(most, edges, threads * (ROUNDS if blocks is None else 1))
    return blocks, threads, warps * max(4 * WORDS, WARP * BYTES_PER_THREAD)


@planner("warp_search", prepare)
def plan(graph, *, threads, blocks, cached, published):
    columns = ("col_ptr", "row_idx")
    blocks, threads, shared = shape(graph.m, threads, blocks)
    if published:
        step = launch(published_kernel, blocks * threads, threads, blocks, cached=int(cached))
    else:
        args = ("col_of", 0, graph.m, 0, *columns, 0, *columns, int(cached), "total")
        step = Step(warp_search_kernel, blocks, threads, args, shared)
    return edge_columns.plan("warp_search", graph, step, edge_us=40, step_us=2.1)
