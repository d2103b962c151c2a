"""Kernels that make a graph's columns from raw edges; `device_graph` launches them between sorts and scans.

A *key* is an edge as one number, its smaller vertex in the upper half of the bits: sorted keys are in the order of the
columns. Keys have 64 bits, or 32 if both vertices are among the last 2^16; these are numbered from the first of them.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels.device.warp import ALL_LANES, WARP, max_of_warp, sum_of_warp

# The types of u and v, the ends of the raw edges
ENDS = ("int32[::1], int32[::1]", "uint32[::1], uint32[::1]", "int64[::1], int64[::1]", "uint64[::1], uint64[::1]")
KEYS = "uint64[::1]", "uint32[::1]"  # the types of keys

PART = 1024  # sorted keys that a warp takes
MOST_THREADS = 1024  # of a block
EMPTY_BEFORE = 32  # empty columns in front of another, at most, for which the thread of its first edge writes col_ptr


@cuda.jit(device=True)
def pack(high, low):
    """A key of 64 bits with these numbers in its halves."""
    return (uint64(high) << 32) | uint64(low)


@cuda.jit(device=True)
def upper(key, bits):
    """The upper half of a key. bits: of each half."""
    return uint32(uint64(key) >> uint64(bits))


@cuda.jit(device=True)
def lower(key, bits):
    """The lower half of a key. bits: of each half."""
    return uint32(uint64(key) & ((uint64(1) << uint64(bits)) - uint64(1)))


@cuda.jit(device=True)
def raise_extent(extent, below, high):
    """Raise the two numbers to the largest that a thread has found; all threads of the block call it. Returns the
    largest `high` of the block."""
    of_block = cuda.shared.array(2, int64)
    if cuda.threadIdx.x < 2:
        of_block[cuda.threadIdx.x] = -1
    cuda.syncthreads()
    below, high = max_of_warp(below), max_of_warp(high)
    if cuda.threadIdx.x & 31 == 0:
        cuda.atomic.max(of_block, 0, below)
        cuda.atomic.max(of_block, 1, high)
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        cuda.atomic.max(extent, cuda.threadIdx.x, of_block[cuda.threadIdx.x])
    return of_block[1]


@kernel(*(f"void({ends}, int64[::1])" for ends in ENDS))
def find_extent(u, v, extent):
    """A thread per edge: raise extent[1] to the largest vertex number, and extent[0] to ~x of the least one, x.

    `extent` is -1 twice before: so ~extent[0] is 0 where no number is negative.
    """
    below, high = int64(-1), int64(-1)
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        a, b = int64(u[e]), int64(v[e])
        below, high = max(below, ~a, ~b), max(high, a, b)
    raise_extent(extent, below, high)


@kernel("void(int32[::1], int32[::1])")
def count_rows(row_idx, counts):
    """A thread per nonzero: count how often each row occurs."""
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, row_idx[e], 1)


@kernel("void(int32[::1], uint64[::1])")
def pack_numbered(values, keys):
    """A thread per value: a key that sorts by it, then by its number."""
    for k in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        keys[k] = pack(values[k], k)


@kernel("void(uint64[::1], int32[::1], int32[::1])")
def number_vertices(keys, rank, degrees):
    """A thread per sorted key: its index is the new number of its vertex; write that and the vertex's degree."""
    for place in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        rank[lower(keys[place], 32)] = place
        degrees[place] = upper(keys[place], 32)


@cuda.jit(device=True)
def next_place(kind, counts, starts, sizes):
    """The place of this thread's element among all of its kind, 0 or 1; any number if it has none, -1.

    sizes[kind]: how many there are, which is raised. counts, starts: in the block's shared memory.
    """
    lane, warp = cuda.threadIdx.x & 31, cuda.threadIdx.x // WARP
    masks = cuda.ballot_sync(ALL_LANES, kind == 0), cuda.ballot_sync(ALL_LANES, kind == 1)
    cuda.syncwarp()  # all lanes have read their count of the call before
    if lane < 2:
        counts[lane, warp] = cuda.popc(masks[1] if lane else masks[0])
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        before = int32(0)
        for other in range(cuda.blockDim.x // WARP):
            counts[lane, other], before = before, before + counts[lane, other]
        starts[lane] = cuda.atomic.add(sizes, lane, int64(before))
    cuda.syncthreads()
    own = max(kind, int32(0))
    mask = masks[1] if own else masks[0]
    return starts[own] + counts[own, warp] + cuda.popc(mask & ((1 << lane) - 1))


PACK_TYPES = "int32[::1], int64, uint64[::1], uint32[::1], int64[::1]"


@kernel(*(f"void({ends}, {PACK_TYPES})" for ends in ENDS))
def pack_edges(u, v, rank, first32, keys, keys32, sizes):
    """A thread per edge that is no loop: append its key, with each vertex v replaced by rank[v] unless `rank` is empty.

    first32: the first vertex of keys of 32 bits. `keys32` is filled from its end. sizes: of both, 0 before.
    """
    counts, starts = cuda.shared.array((2, MOST_THREADS // WARP), int32), cuda.shared.array(2, int64)
    for e in range(cuda.grid(1), u.size + cuda.threadIdx.x, cuda.gridsize(1)):  # whole blocks
        kind, low, high = int32(-1), int32(0), int32(0)
        if e < u.size:
            a, b = int32(u[e]), int32(v[e])
            if rank.size > 0:
                a, b = rank[a], rank[b]
            low, high = min(a, b), max(a, b)
            if low != high:
                kind = int32(low >= first32)
        place = next_place(kind, counts, starts, sizes)
        if kind == 0:
            keys[place] = pack(low, high)
        elif kind == 1:
            keys32[keys32.size - 1 - place] = uint32(low - first32) << 16 | uint32(high - first32)


@cuda.jit(device=True)
def is_new(keys, e):
    """Whether sorted key e is an edge that occurs for the first time."""
    return e == 0 or keys[e - 1] != keys[e]


@kernel(*(f"void({keys}, int64[::1])" for keys in KEYS))
def count_new(keys, counts):
    """A warp per PART sorted keys: count the edges that occur for the first time."""
    lane, part = cuda.threadIdx.x & 31, cuda.grid(1) // WARP
    while part < counts.size:
        e, end, found = part * PART + lane, min((part + 1) * PART, keys.size), int64(0)
        while e < end:
            found += is_new(keys, e)
            e += WARP
        found = sum_of_warp(found)
        if lane == 0:
            counts[part] = found
        part += cuda.gridsize(1) // WARP


@kernel(*(f"void({keys}, int64, int64, int64[::1], int32[::1], int32[::1], int64[::1])" for keys in KEYS))
def unpack(keys, bits, first, starts, row_idx, col_of, col_ptr):
    """A warp per PART sorted keys: write the edges that occur for the first time, from place starts[part] on.

    bits: of half a key; first: the vertex from which on the keys number them. Also written is where their columns
    begin, and up to EMPTY_BEFORE empty ones before each; the others keep what they have.
    """
    lane, part = cuda.threadIdx.x & 31, cuda.grid(1) // WARP
    while part < starts.size - 1:
        e, end, place = part * PART + lane, min((part + 1) * PART, keys.size), starts[part]
        following = keys[min(e, end - 1)]
        while e - lane < end:
            key, following = following, keys[min(e + WARP, end - 1)]  # which is read while this one is written
            new = e < end and is_new(keys, e)
            mask = cuda.ballot_sync(ALL_LANES, new)
            if new:
                j, i = first + upper(key, bits), first + lower(key, bits)
                at, previous = place + cuda.popc(mask & ((1 << lane) - 1)), first - 1
                row_idx[at], col_of[at] = i, j
                if e > 0:
                    previous = first + upper(keys[e - 1], bits)
                column = max(previous + 1, j - EMPTY_BEFORE)
                while column <= j:
                    col_ptr[column] = at
                    column += 1
            place += cuda.popc(mask)
            e += WARP
        part += cuda.gridsize(1) // WARP


# Columns that are short need no keys: rows are put into their columns, and each column is sorted by a thread.


@kernel(*(f"void({ends}, int64[::1], int32[::1])" for ends in ENDS))
def scatter_rows(u, v, cursor, rows):
    """A thread per edge that is no loop: write its row to rows[cursor[j]] of its column j, and move the cursor on."""
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        a, b = int32(u[e]), int32(v[e])
        if a != b:
            rows[cuda.atomic.add(cursor, min(a, b), 1)] = max(a, b)


@kernel("void(int64[::1], int32[::1], int32[::1])")
def sort_columns(starts, rows, lengths):
    """A thread per column: sort its rows, one after the other, without repeats; write how many there are."""
    for j in range(cuda.grid(1), lengths.size, cuda.gridsize(1)):
        begin, end = starts[j], starts[j + 1]
        p, kept = begin, begin
        while p < end:
            row, place = rows[p], kept
            while place > begin and rows[place - 1] > row:
                place -= 1
            if place == begin or rows[place - 1] != row:
                q = kept
                while q > place:
                    rows[q] = rows[q - 1]
                    q -= 1
                rows[place] = row
                kept += 1
            p += 1
        lengths[j] = kept - begin


@kernel("void(int64[::1], int32[::1], int64[::1], int32[::1], int32[::1])")
def close_gaps(starts, rows, col_ptr, row_idx, col_of):
    """A thread per column: copy its rows, which begin at starts[j], to where they belong; also write their column."""
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        shift = starts[j] - col_ptr[j]
        for p in range(col_ptr[j], col_ptr[j + 1]):
            row_idx[p], col_of[p] = rows[p + shift], j
