"""A graph whose columns are divided among the members of a group, made from raw edges that are divided, too.

Vertices are numbered by degree. Of `of` members, number `index` owns the columns of vertices index, index + of, and so
on: neighbouring columns have about equal work, and so have the members. Each member packs its raw edges into keys,
sends every key to the owner of its column, and sorts those that it gets. No member has the whole graph.
"""

from itertools import pairwise

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.errors import GraphError
from tcgpu.kernels import orientation, run
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import Keys, columns_of_keys, on_device, rank_by_degree, vertices_of
from tcgpu.kernels.edge_sums import degrees_of_edges
from tcgpu.kernels.orientation import ENDS, PART, lower, pack, upper
from tcgpu.kernels.prefix_sum import scan

MOST_MEMBERS = WARP  # a lane counts the keys of each
ROOM = 64  # a 64th of the memory of keys


@cuda.jit(device=True)
def owner_of(key, members):
    """The member that owns a key's column; `members`, which is none, for a loop."""
    j = upper(key, 32)
    return int32(members) if j == lower(key, 32) else int32(j % uint32(members))


@kernel(*(f"void({ends}, int32[::1], int64, uint64[::1], int64[::1])" for ends in ENDS))
def pack_and_count(u, v, rank, members, packed, counts):
    """A warp per PART raw edges: write the key of each; counts[k * parts + part] of them are for member k, which lane k
    counts."""
    lane, part, parts = cuda.threadIdx.x & 31, cuda.grid(1) // WARP, counts.size // members
    while part < parts:
        e, end, found = part * PART + lane, min((part + 1) * PART, u.size), int64(0)
        while e - lane < end:
            owner = int32(members)
            if e < end:
                a, b = rank[int32(u[e])], rank[int32(v[e])]
                key = pack(min(a, b), max(a, b))
                packed[e], owner = key, owner_of(key, members)
            for member in range(members):
                mask = cuda.ballot_sync(ALL_LANES, owner == member)
                if lane == member:
                    found += cuda.popc(mask)
            e += WARP
        if lane < members:
            counts[lane * parts + part] = found
        part += cuda.gridsize(1) // WARP


@kernel("void(uint64[::1], int64, int64[::1], uint64[::1])")
def scatter_keys(packed, members, starts, keys):
    """The same: write the keys for member k from starts[k * parts + part] on, with its own number of the column."""
    lane, part, parts = cuda.threadIdx.x & 31, cuda.grid(1) // WARP, (starts.size - 1) // members
    while part < parts:
        e, end, place = part * PART + lane, min((part + 1) * PART, packed.size), int64(0)
        if lane < members:
            place = starts[lane * parts + part]
        while e - lane < end:
            key, owner = uint64(0), int32(members)
            if e < end:
                key = packed[e]
                owner = owner_of(key, members)
            for member in range(members):
                mask, at = cuda.ballot_sync(ALL_LANES, owner == member), cuda.shfl_sync(ALL_LANES, place, member)
                if owner == member:
                    own = upper(key, 32) // uint32(members)
                    keys[at + cuda.popc(mask & ((1 << lane) - 1))] = pack(own, lower(key, 32))
                if lane == member:
                    place += cuda.popc(mask)
            e += WARP
        part += cuda.gridsize(1) // WARP


def own_columns(group, ends, n=None):
    """(number of vertices, col_ptr, row_idx, col_of) of the graph whose raw edges all members have together: the last
    three of this member's columns, numbered from 0, the rows by degree.

    ends: [u, v], the raw edges of this member. The list is emptied, so that their memory is freed on the way.
    """
    if group.size > MOST_MEMBERS:
        raise GraphError(f"at most {MOST_MEMBERS} devices count a graph that is divided among them, not {group.size}")
    u, v = on_device(ends.pop(0), "u"), on_device(ends.pop(0), "v")
    if u.dtype != v.dtype:
        u, v = u.astype(np.int64), v.astype(np.int64)
    n = _vertices(group, u, v, n)
    degrees = degrees_of_edges([(u, v)], n)
    rank, _ = rank_by_degree(group.sum(degrees))
    ends += u, v
    del u, v, degrees
    pieces = _keys_of_members(ends, rank, group.size)
    del rank
    keys, _ = group.exchange(pieces)
    del pieces
    runtime.sort(keys)
    columns = max(0, -(-(n - group.rank) // group.size))
    return n, *columns_of_keys([Keys(keys)], columns, False)


def _vertices(group, u, v, n):
    """The number of vertices of all members' edges; GraphError if one of them is out of range."""
    extent = runtime.device_array(3, np.int64, -1)
    run(orientation.find_extent, u.size, u, v, extent[:2])
    extent[2] = u.size
    below, high, edges = runtime.to_host(group.gather(extent)[0]).reshape(group.size, 3).T
    return vertices_of(int(~below.max()), int(high.max()), n, int(edges.sum()))


def _keys_of_members(ends, rank, members):
    """For each member, the keys of those raw edges whose columns it owns. ends: [u, v], which is emptied."""
    size = ends[0].size
    parts = -(-size // PART)
    packed = _with_room(size)
    counts, starts = (runtime.device_array(members * parts + more, np.int64) for more in (0, 1))
    run(pack_and_count, WARP * parts, *ends, rank, members, packed, counts)
    ends.clear()
    scan(counts, starts)
    bounds = runtime.to_host(starts[:: max(1, parts)]).tolist() if parts else [0] * (members + 1)
    keys = _with_room(bounds[-1])
    run(scatter_keys, WARP * parts, packed, members, starts, keys)
    return [keys[begin:end] for begin, end in pairwise(bounds)]


def _with_room(size):
    """An array of keys. Its memory has some room, so that it does for those that other members send, and for a sort:
    memory is taken from the driver once."""
    return runtime.device_array(size + size // ROOM + ROOM, np.uint64)[:size]
