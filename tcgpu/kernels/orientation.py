"""Kernels that make a graph's columns from raw edges; `device_graph` launches them between sorts and scans.

A *key* is an edge in 64 bits, its smaller vertex in the upper half: sorted keys are in the order of the columns.
"""

from tcgpu.engines.runtime import cuda, int32, kernel, uint32, uint64

NO_EDGE = 2**64 - 1  # the key of a loop; it is sorted behind all others


@cuda.jit(device=True)
def pack(high, low):
    return (uint64(high) << 32) | uint64(low)


@cuda.jit(device=True)
def upper(key):
    return uint32(key >> 32)


@cuda.jit(device=True)
def lower(key):
    return uint32(key)


ENDS = ("int32[::1], int32[::1]", "uint32[::1], uint32[::1]", "int64[::1], int64[::1]", "uint64[::1], uint64[::1]")


@kernel(*(f"void({ends}, int32[::1])" for ends in ENDS))
def count_occurrences(u, v, occurrences):
    """A thread per edge: count how often each vertex occurs, loops and repeats included."""
    e = cuda.grid(1)
    while e < u.size:
        cuda.atomic.add(occurrences, int32(u[e]), 1)
        cuda.atomic.add(occurrences, int32(v[e]), 1)
        e += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1])")
def count_rows(row_idx, counts):
    """A thread per nonzero: count how often each row occurs."""
    e = cuda.grid(1)
    while e < row_idx.size:
        cuda.atomic.add(counts, row_idx[e], 1)
        e += cuda.gridsize(1)


@kernel("void(int32[::1], uint64[::1])")
def pack_occurrences(occurrences, keys):
    """A thread per vertex: a key that sorts by occurrences, then by the vertex."""
    v = cuda.grid(1)
    while v < keys.size:
        keys[v] = pack(occurrences[v], v)
        v += cuda.gridsize(1)


@kernel("void(uint64[::1], int32[::1], int32[::1])")
def number_vertices(keys, rank, occurrences):
    """A thread per sorted key: its index is the new number of its vertex; write that and the vertex's occurrences."""
    place = cuda.grid(1)
    while place < keys.size:
        rank[lower(keys[place])] = place
        occurrences[place] = upper(keys[place])
        place += cuda.gridsize(1)


@kernel(*(f"void({ends}, int32[::1], uint64[::1])" for ends in ENDS))
def pack_edges(u, v, rank, keys):
    """A thread per edge: write its key, with each vertex v replaced by rank[v] unless `rank` is empty."""
    e = cuda.grid(1)
    while e < keys.size:
        a, b = int32(u[e]), int32(v[e])
        if rank.size > 0:
            a, b = rank[a], rank[b]
        low, high = min(a, b), max(a, b)
        key = pack(low, high)
        if low == high:
            key = uint64(NO_EDGE)
        keys[e] = key
        e += cuda.gridsize(1)


@kernel("void(uint64[::1], int32[::1])", "void(uint64[::1], int64[::1])")
def mark_new(keys, new):
    """A thread per sorted key: write 1 where an edge occurs for the first time, 0 for repeats and loops."""
    e = cuda.grid(1)
    while e < keys.size:
        key = keys[e]
        new[e] = key != NO_EDGE and (e == 0 or keys[e - 1] != key)
        e += cuda.gridsize(1)


@kernel(*(f"void(uint64[::1], {place}[::1], int32[::1], int32[::1])" for place in ("int32", "int64")))
def unpack_new(keys, place, row_idx, col_of):
    """A thread per sorted key: write row and column of a new edge; place[e + 1] is place[e] for repeats and loops."""
    e = cuda.grid(1)
    while e < keys.size:
        if place[e] != place[e + 1]:
            row_idx[place[e]] = lower(keys[e])
            col_of[place[e]] = upper(keys[e])
        e += cuda.gridsize(1)


@kernel("void(uint64[::1], int32[::1], int32[::1])")
def unpack(keys, row_idx, col_of):
    """A thread per sorted key: write its row and column; all keys are different edges."""
    e = cuda.grid(1)
    while e < keys.size:
        row_idx[e] = lower(keys[e])
        col_of[e] = upper(keys[e])
        e += cuda.gridsize(1)
