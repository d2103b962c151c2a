"""A graph's columns in degree order, made on a device from raw edges that it has no memory for.

The raw edges stay on the host. A *piece* of them is on the device at a time; in a *pass* each piece is copied there:

    first pass     the degree of each vertex, by which vertices are numbered
    second pass    how many rows each column has, repeats included, and so where it begins
    third pass     puts each row into its column; then columns are sorted, some at a time, and repeats are dropped

Where the rows of all columns need too much memory, the third pass is made for one range of columns after the other.

A vertex with fewer than two raw edges is in no triangle. Such vertices, and their edges, are left out: the others are
numbered from 0.
"""

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.kernels import MAX_EDGES, run
from tcgpu.kernels.device.search import last_up_to
from tcgpu.kernels.device_graph import Keys, columns_of_keys, rank_by_degree
from tcgpu.kernels.edge_sums import degrees_of_edges
from tcgpu.kernels.orientation import ENDS, pack
from tcgpu.kernels.prefix_sum import scan
from tcgpu.progress import part, pulse

PIECE, LEAST_PIECE = 1 << 25, 1 << 21  # raw edges of a piece: more are not copied faster, fewer are copied slowly
PIECE_SHARE = 1 / 8  # of the memory, at most, that a piece takes
MOST_RANGES = 4  # for more, the third pass is made so often that the host cleans faster
VERTEX_BYTES = 37  # of a vertex, while vertices are numbered
RANK_BYTES, POINTER_BYTES, ROW_BYTES = 4, 8, 4  # of a vertex, a column and a row after that
RANGE_SHARE = 15 / 16  # of the memory beside a piece, at most, for a range of columns; later the rest sorts it
KEY_BYTES = 24  # of a row that is sorted: a key, and its copy; or a key, row and column, and the last two once more
COLUMN_BYTES = 12  # of a column that is sorted: its pointer
MOST_SORTED = 1 << 28  # rows that are sorted at a time: more are not sorted faster
MOST_COUNTED = 1 << 31  # raw edges, up to which 32 bits hold every degree, in which a loop counts twice
STEPS = 4  # of a count, for its progress: the three passes,
LAST_STEP = 3, STEPS  # and what is done with the columns


class DoesNotSuit(Exception):
    """The device has too little memory for these steps. Other ways may take less."""


@kernel(*(f"void({ends}, int32[::1], int64, int64[::1])" for ends in ENDS))
def count_by_rank(u, v, rank, left_out, lengths):
    """A thread per raw edge: count it as a row of its column. Vertex x has number rank[x] - left_out, or none."""
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        a, b = rank[u[e]] - left_out, rank[v[e]] - left_out
        j = min(a, b)
        if j >= 0 and a != b:
            cuda.atomic.add(lengths, j, 1)


@kernel(*(f"void({ends}, int32[::1], int64, int64, int64, int64[::1], int32[::1])" for ends in ENDS))
def scatter_by_rank(u, v, rank, left_out, begin, first, cursor, rows):
    """The same for columns from `begin` on, as many as `cursor` has: write the row to rows[cursor[j - begin] - first],
    and move the cursor on."""
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        a, b = rank[u[e]] - left_out, rank[v[e]] - left_out
        k = min(a, b) - begin
        if 0 <= k < cursor.size and a != b:
            rows[cuda.atomic.add(cursor, k, 1) - first] = max(a, b)


@kernel("void(int64[::1], int64, int32[::1], uint64[::1])")
def pack_columns(starts, first, rows, keys):
    """A thread per row of some columns: a key of the column's number among these, and of the row. starts: where each
    column begins; first: where the first one does."""
    for k in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        keys[k] = pack(last_up_to(starts, 0, starts.size - 1, first + k), rows[k])


class RawEdges(NamedTuple):
    """Raw edges of the host: two arrays of one type, int32 or int64, with all numbers in 0..n-1."""

    u: np.ndarray
    v: np.ndarray
    n: int
    piece: int  # edges, at most

    @property
    def piece_bytes(self):
        """What a piece takes on the device."""
        return 2 * self.u.itemsize * self.piece

    def pieces(self):
        """The ends [u, v] of each piece on the device, in the same memory."""
        buffers = [runtime.device_array(self.piece, self.u.dtype) for _ in range(2)]
        for first in range(0, self.u.size, self.piece):
            pulse(first / self.u.size)
            ends = [each[first : first + self.piece] for each in (self.u, self.v)]
            held = [buffer[: each.size] for buffer, each in zip(buffers, ends, strict=True)]
            for array, each in zip(held, ends, strict=True):
                runtime.copy_from_host(each, array)
            yield held

    def run(self, kernel, *args):
        """Launch a kernel on each piece, with a thread for each raw edge."""
        for u, v in self.pieces():
            run(kernel, u.size, u, v, *args)


class Range(NamedTuple):
    """Columns begin..end - 1 of `of` on the device, sorted and without repeats."""

    begin: int
    end: int
    of: int
    pointers: Any  # int64: where each column begins in `rows`, and where the last one ends
    rows: Any  # int32

    @property
    def is_whole(self):
        """Whether these are all columns."""
        return self.end - self.begin == self.of


def ranges_of_columns(u, v, n, memory):
    """Yield each Range of columns of raw edges. All arrays together take at most `memory` bytes of the device, if the
    caller drops each Range before it takes the next. DoesNotSuit if that is too little.
    """
    edges = RawEdges(u, v, n, max(1, min(PIECE, u.size, int(memory * PIECE_SHARE) // (2 * u.itemsize))))
    if edges.piece < min(LEAST_PIECE, u.size) or VERTEX_BYTES * n + edges.piece_bytes > memory:
        raise DoesNotSuit
    with part(0, STEPS):
        rank, left_out = _numbered(edges)
        runtime.release_device_memory()
    columns = n - left_out
    memory -= RANK_BYTES * n + POINTER_BYTES * (columns + 1)
    if POINTER_BYTES * columns + edges.piece_bytes > memory:
        raise DoesNotSuit
    with part(1, STEPS):
        lengths, starts = runtime.device_array(columns, np.int64, 0), runtime.device_array(columns + 1, np.int64)
        edges.run(count_by_rank, rank, left_out, lengths)
        scan(lengths, starts)
        del lengths
        runtime.release_device_memory()
    most = min(ROW_BYTES * MAX_EDGES, int((memory - edges.piece_bytes) * RANGE_SHARE) - POINTER_BYTES)
    if ROW_BYTES * int(starts[columns]) + POINTER_BYTES * columns > MOST_RANGES * most:
        raise DoesNotSuit
    begin = first = 0
    while begin < columns:
        end = _end_of_range(starts, begin, columns, first, most, ROW_BYTES, POINTER_BYTES)
        pointers, rows = starts[begin : end + 1].copy(), runtime.device_array(int(starts[end]) - first, np.int32)
        with part(2, STEPS):
            edges.run(scatter_by_rank, rank, left_out, begin, first, pointers[:-1], rows)
            runtime.release_device_memory()
            kept = _sort_columns(starts[begin : end + 1], first, pointers, rows, memory - rows.nbytes - pointers.nbytes)
        yield Range(begin, end, columns, pointers, rows[:kept])
        begin, first = end, first + rows.size
        del pointers, rows
        runtime.release_device_memory()


def _numbered(edges):
    """(rank, left_out): vertex x gets number rank[x] - left_out, by ascending degree; the first vertices get none."""
    rank, degrees = rank_by_degree(degrees_of_edges(edges.pieces(), edges.n))
    left_out = 0
    if edges.u.size <= MOST_COUNTED:
        left_out = bisect_right(range(edges.n), 1, key=lambda k: int(degrees[k]) & 0xFFFFFFFF)
    return rank, left_out


def _end_of_range(starts, begin, end, first, most, row_bytes, column_bytes):
    """The end of the longest range of columns from `begin` on, up to `end`, that takes at most so many bytes.

    first: where column `begin` begins. DoesNotSuit if that column alone takes more.
    """

    def size(column):
        return row_bytes * (int(starts[column]) - first) + column_bytes * (column - begin)

    fitting = bisect_right(range(begin + 1, end + 1), most, key=size)
    if not fitting:
        raise DoesNotSuit
    return begin + fitting


def _sort_columns(starts, first, pointers, rows, memory):
    """Sort the rows of each column, drop repeats, and write where the columns begin then. Returns how many rows are
    left; they are in front.

    starts: where columns begin in `rows` before, less `first`. memory: bytes, for the sort.
    """
    begin, end, low, kept, most = 0, starts.size - 1, first, 0, min(memory, KEY_BYTES * MOST_SORTED)
    while begin < end:
        after = _end_of_range(starts, begin, end, low, most, KEY_BYTES, COLUMN_BYTES)
        high, some = int(starts[after]), slice(begin, after + 1)
        keys = runtime.device_array(high - low, np.uint64)
        run(pack_columns, keys.size, starts[some], low, rows[low - first : high - first], keys)
        runtime.sort(keys)
        col_ptr, row_idx, _ = columns_of_keys([Keys(keys)], after - begin, False)
        runtime.arrays_of(col_ptr).add(col_ptr, kept, out=pointers[some])
        rows[kept : kept + row_idx.size] = row_idx
        begin, low, kept = after, high, kept + row_idx.size
        del keys, col_ptr, row_idx, _
        runtime.release_device_memory()
    return kept
