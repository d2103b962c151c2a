"""A graph whose columns are divided among the members of a group, made from raw edges that are divided, too.

Vertices are numbered by degree. Of `of` members, number `index` owns the columns of vertices index, index + of, and so
on: neighbouring columns have about equal work, and so have the members. Each member packs its raw edges into keys,
sends every key to the owner of its column, and sorts those that it gets. No member has the whole graph.

`joined` makes a graph of some members' columns, in which all other columns are empty.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel
from tcgpu.errors import GraphError
from tcgpu.kernels import orientation, run
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import DeviceGraph, Keys, columns_of_keys, on_device, rank_by_degree, vertices_of
from tcgpu.kernels.edge_sums import degrees_of_edges
from tcgpu.kernels.orientation import ENDS, PART, pack
from tcgpu.kernels.prefix_sum import scan

MOST_MEMBERS = WARP  # a lane counts the keys of each


@cuda.jit(device=True)
def owner_of(u, v, e, end, rank, members):
    """(column, row, owner) of raw edge e; the owner is `members`, which is none, from `end` on and for a loop."""
    j, i, owner = int32(0), int32(0), int32(members)
    if e < end:
        a, b = rank[int32(u[e])], rank[int32(v[e])]
        j, i = min(a, b), max(a, b)
        if a != b:
            owner = j % int32(members)
    return j, i, owner


@kernel(*(f"void({ends}, int32[::1], int64, int64[::1])" for ends in ENDS))
def count_keys(u, v, rank, members, counts):
    """A warp per PART raw edges: counts[k * parts + part] of them are for member k, which lane k counts."""
    lane, part, parts = cuda.threadIdx.x & 31, cuda.grid(1) // WARP, counts.size // members
    while part < parts:
        e, end, found = part * PART + lane, min((part + 1) * PART, u.size), int64(0)
        while e - lane < end:
            _, _, owner = owner_of(u, v, e, end, rank, members)
            for member in range(members):
                mask = cuda.ballot_sync(ALL_LANES, owner == member)
                if lane == member:
                    found += cuda.popc(mask)
            e += WARP
        if lane < members:
            counts[lane * parts + part] = found
        part += cuda.gridsize(1) // WARP


@kernel(*(f"void({ends}, int32[::1], int64, int64[::1], uint64[::1])" for ends in ENDS))
def scatter_keys(u, v, rank, members, starts, keys):
    """The same: write the keys for member k from starts[k * parts + part] on. Its column number c is in the key."""
    lane, part, parts = cuda.threadIdx.x & 31, cuda.grid(1) // WARP, (starts.size - 1) // members
    while part < parts:
        e, end, place = part * PART + lane, min((part + 1) * PART, u.size), int64(0)
        if lane < members:
            place = starts[lane * parts + part]
        while e - lane < end:
            j, i, owner = owner_of(u, v, e, end, rank, members)
            for member in range(members):
                mask, at = cuda.ballot_sync(ALL_LANES, owner == member), cuda.shfl_sync(ALL_LANES, place, member)
                if owner == member:
                    keys[at + cuda.popc(mask & ((1 << lane) - 1))] = pack(j // int32(members), i)
                if lane == member:
                    place += cuda.popc(mask)
            e += WARP
        part += cuda.gridsize(1) // WARP


@kernel("void(int64[::1], int32[::1], int64, int64, int64[::1], int32[::1], int32[::1])")
def copy_columns(starts, rows, first, step, col_ptr, row_idx, col_of):
    """A warp per 32 columns: copy the rows of each column c to column first + step * c of a graph; also write col_of.

    Lane k knows column k of these; a lane that copies a row finds its column among them.
    """
    lane, columns = cuda.threadIdx.x & 31, starts.size - 1
    c = int64(cuda.grid(1))
    while c - lane < columns:
        end, shift = starts[min(c - lane + WARP, columns)], int64(0)
        start = starts[min(c, columns)]
        if c < columns:
            shift = col_ptr[first + step * c] - start
        p = cuda.shfl_sync(ALL_LANES, start, 0) + lane
        while p - lane < end:
            column = int64(0)  # the last that begins at p or before
            for half in (16, 8, 4, 2, 1):
                if cuda.shfl_sync(ALL_LANES, start, column + half) <= p:
                    column += half
            to = p + cuda.shfl_sync(ALL_LANES, shift, column)
            if p < end:
                row_idx[to], col_of[to] = rows[p], first + step * (c - lane + column)
            p += WARP
        c += cuda.gridsize(1)


@dataclass(eq=False)
class Columns:
    """Columns of a member: of vertices first, first + of, first + 2 of and so on, as many as `lengths` has."""

    first: int
    of: int
    lengths: Any  # int32
    rows: Any  # int32, column after column

    @property
    def end(self):
        """A vertex behind the last of these, and before the next."""
        return self.first + self.of * self.lengths.size

    @cached_property
    def starts(self):
        """Where each column begins in `rows`, and where the last one ends."""
        starts = runtime.device_array(self.lengths.size + 1, np.int64)
        scan(self.lengths, starts)
        return starts

    def part(self, begin, end):
        """The columns begin..end - 1 of these."""
        at, at_end = (int(self.starts[k]) for k in (begin, end))
        return Columns(self.first + self.of * begin, self.of, self.lengths[begin:end], self.rows[at:at_end])

    def split(self, vertex):
        """The columns of smaller vertices than this, and all others."""
        middle = min(self.lengths.size, max(0, -(-(vertex - self.first) // self.of)))
        return self.part(0, middle), self.part(middle, self.lengths.size)

    def pieces(self, number):
        """`number` ranges of these columns with about equal numbers of rows."""
        ends = np.linspace(0, self.rows.size, number + 1)[1:-1].astype(np.int64)
        cuts = runtime.to_host(runtime.arrays_of(self.starts).searchsorted(self.starts, runtime.to_device(ends)))
        cuts = [0, *np.minimum(cuts, self.lengths.size).tolist(), self.lengths.size]
        return [self.part(begin, end) for begin, end in zip(cuts, cuts[1:])]


def own_columns(group, ends, n=None):
    """(number of vertices, Columns of this member) of the graph whose raw edges all members have together.

    ends: [u, v], the raw edges of this member. The list is emptied, so that their memory is freed on the way.
    """
    if group.size > MOST_MEMBERS:
        raise GraphError(f"at most {MOST_MEMBERS} devices count a graph that is divided among them, not {group.size}")
    u, v = on_device(ends.pop(0), "u"), on_device(ends.pop(0), "v")
    if u.dtype != v.dtype:
        u, v = u.astype(np.int64), v.astype(np.int64)
    n = _vertices(group, u, v, n)
    degrees = degrees_of_edges(u, v, n)
    rank, _ = rank_by_degree(group.sum(degrees))
    pieces = _keys_of_members(u, v, rank, group.size)
    del u, v, rank, degrees
    keys, _ = group.exchange(pieces)
    del pieces
    runtime.sort(keys)
    columns = max(0, -(-(n - group.rank) // group.size))
    col_ptr, rows, _ = columns_of_keys([Keys(keys)], columns, False, runtime.device_array(0, np.int32))
    lengths = runtime.arrays_of(col_ptr).diff(col_ptr).astype(np.int32)
    return n, Columns(group.rank, group.size, lengths, rows)


def _vertices(group, u, v, n):
    """The number of vertices of all members' edges; GraphError if one of them is out of range."""
    extent = runtime.device_array(3, np.int64, -1)
    run(orientation.find_extent, u.size, u, v, extent[:2])
    extent[2] = u.size
    below, high, edges = runtime.to_host(group.gather(extent)[0]).reshape(group.size, 3).T
    return vertices_of(int(~below.max()), int(high.max()), n, int(edges.sum()))


def _keys_of_members(u, v, rank, members):
    """For each member, the keys of those raw edges whose columns it owns."""
    parts = -(-u.size // PART)
    counts, starts = (runtime.device_array(members * parts + more, np.int64) for more in (0, 1))
    run(count_keys, WARP * parts, u, v, rank, members, counts)
    scan(counts, starts)
    bounds = runtime.to_host(starts[:: max(1, parts)]).tolist() if parts else [0] * (members + 1)
    keys = runtime.device_array(bounds[-1], np.uint64)
    run(scatter_keys, WARP * parts, u, v, rank, members, starts, keys)
    return [keys[begin:end] for begin, end in zip(bounds, bounds[1:])]


def joined(n, parts):
    """The DeviceGraph with these Columns alone, in degree order; its other columns are empty."""
    lengths, col_ptr = runtime.device_array(n, np.int32, 0), runtime.device_array(n + 1, np.int64)
    for part in parts:
        lengths[part.first :: part.of][: part.lengths.size] = part.lengths
    scan(lengths, col_ptr)
    row_idx, col_of = (runtime.device_array(sum(part.rows.size for part in parts), np.int32) for _ in range(2))
    for part in parts:
        run(copy_columns, part.lengths.size, part.starts, part.rows, part.first, part.of, col_ptr, row_idx, col_of)
    return DeviceGraph(n, col_ptr, row_idx, col_of, "degree")
