"""Cutting a graph into parts of about equal work, without ever loading one that is memory-mapped.

A `Part` is some of the edges (i, j): a stretch of the list, and of that those whose row i lies in a range of vertices.
Every edge of a cut lies in exactly one part, and a triangle belongs to its edge between the two smallest vertices, so
the parts' counts add up to the graph's. To count a part takes the columns that its edges lie in and those of its rows.

    slices(graph, parts)       stretches of the list, any rows: for who has all columns
    pairs(graph, stay, pass)   two ranges of vertices at a time: for who has room for some columns only
    deals(of)                  no edges at all, but "hand k of n": for methods that deal out their own tasks

Work is estimated in look-ups, from column lengths: an edge's shorter column is looked up in the longer. Of a large
graph a sample of the edges tells.
"""

from dataclasses import dataclass, field

import numpy as np

from tcgpu.errors import GraphError

SAMPLE = 1 << 18  # edges that are looked at to estimate the work of all
EDGE = 16  # what an edge costs beside its look-ups, in look-ups
ROW_BYTES = 4  # a nonzero of a column on a device
POINTER_BYTES = 8  # where a column starts there, counted from the first of its range
MOST_ROWS = 2**32 - 64  # nonzeros of one range of columns: what a kernel can number
MANY_PARTS = 64  # where nobody says how many


@dataclass(frozen=True)
class Part:
    """Of a graph's edges (i, j) those at positions first..last - 1 of its list whose row i is in low..high - 1."""

    first: int
    last: int
    low: int
    high: int
    work: float = field(default=0.0, compare=False)  # estimated look-ups

    @property
    def empty(self):
        """Whether it has no edges, as its ends say."""
        return self.first >= self.last or self.low >= self.high

    def columns(self, graph):
        """The range of vertices in whose columns its edges lie."""
        if self.first >= self.last:
            return 0, 0
        pointers = graph.col_ptr
        after = int(np.searchsorted(pointers, self.last))
        return int(np.searchsorted(pointers, self.first, side="right")) - 1, after

    def rows(self, graph):
        """The range of vertices that its edges may have as rows: all of them lie behind their column."""
        begin, _ = self.columns(graph)
        low = min(max(self.low, begin + 1), graph.n)
        return low, max(low, min(self.high, graph.n))

    def barren(self, graph):
        """Whether it has no edges that can be in a triangle, by the look of its ends."""
        low, high = self.rows(graph)
        return self.empty or low == high

    def ranges(self, graph):
        """The ranges of vertices whose columns it takes: two, or one where they touch."""
        (begin, end), (low, high) = self.columns(graph), self.rows(graph)
        return [(begin, max(end, high))] if low <= end or low == high else [(begin, end), (low, high)]

    def reach(self, graph, by_edge):
        """The ranges of edges, or of vertices, that its triangles may have: two, or one where they touch."""
        (begin, end), (low, high), at = self.columns(graph), self.rows(graph), graph.col_ptr
        if by_edge:
            near, far = (self.first, int(at[end])), (int(at[low]), int(at[max(low, high)]))
        else:
            near, far = (begin, end), (low, graph.n)
        return [(near[0], max(near[1], far[1]))] if far[0] <= near[1] else [near, far]

    def halves(self, graph):
        """Two parts that take fewer columns at a time and are this one together; GraphError if it has but one edge."""
        (begin, end), (low, high) = self.columns(graph), self.rows(graph)
        if end - begin > 1 and column_bytes(graph, begin, end) >= column_bytes(graph, low, high):
            middle = int(graph.col_ptr[_middle(graph, begin, end)])
            return self._with(last=middle), self._with(first=middle)
        if high - low > 1:
            middle = _middle(graph, low, high)
            return self._with(high=middle), self._with(low=middle)
        raise GraphError("a part that takes two columns cannot be halved")

    def _with(self, **ends):
        return Part(**{"first": self.first, "last": self.last, "low": self.low, "high": self.high} | ends,
                    work=self.work / 2)  # fmt: skip


@dataclass(frozen=True)
class Deal:
    """The `index`-th of `of` hands into which a method deals the tasks that it makes of a whole graph."""

    index: int
    of: int
    work: float = field(default=0.0, compare=False)

    empty = False


def deals(of):
    """All hands of a deal."""
    return [Deal(index, of) for index in range(of)]


def slices(graph, parts=MANY_PARTS, most_edges=None, sample=SAMPLE, work=None):
    """The list of edges in so many stretches of about equal work, or in more of at most so many edges.

    work: another estimate than that in look-ups of the shorter column, as `tcgpu.cpu.edge_work` is for the native
    engine. In a small graph some parts are empty.
    """
    if parts < 1:
        raise GraphError(f"a graph is cut into 1 part or more, not {parts}")
    positions, _, _, work = sampled(graph, sample, work)
    total, each = float(work.sum()), float(work.sum()) / parts
    before = np.concatenate(([0.0], np.cumsum(work)))
    ends = np.interp(np.arange(1, parts) * each, before, np.append(positions, graph.m)).astype(np.int64)
    cuts = [0, *ends.tolist(), graph.m]
    found = []
    for first, last in zip(cuts, cuts[1:]):
        pieces = max(1, -(-(last - first) // (most_edges or graph.m + 1)))
        ends = [first + (last - first) * k // pieces for k in range(pieces + 1)]
        found += (Part(*stretch, 0, graph.n, total / parts / pieces) for stretch in zip(ends, ends[1:]))
    return found


def pairs(graph, stay, move, sample=SAMPLE):
    """Pairs of ranges of vertices: one range takes up to `stay` bytes on a device, the other up to `move`.

    The parts of one first range come one after the other: its own edges, then those into each later range. GraphError
    if some column alone is too long.
    """
    edges_of, cuts = graph.col_ptr, ranges(graph, move)
    groups = _grouped(graph, cuts, max(stay, move))
    work = _work_of_pairs(graph, groups, cuts, sample)
    found = []
    for k, (begin, end) in enumerate(zip(groups, groups[1:])):
        first, last = int(edges_of[begin]), int(edges_of[end])
        lows = [begin, *(cut for cut in cuts if cut >= end)]
        for low, high in zip(lows, [end, *lows[2:]]):
            found.append(Part(first, last, low, high, float(work[k, np.searchsorted(cuts, low)])))
    return found


def ranges(graph, most_bytes):
    """Where ranges of vertices begin and end whose columns take no more than that on a device: [..., n].

    They begin where the first column does that is not empty. No edge is before, and none leads there: who has a smaller
    neighbour comes after it. In degree order that spares the vertices without any.
    """
    most_bytes = min(most_bytes, ROW_BYTES * MOST_ROWS)
    cuts = [int(np.searchsorted(graph.col_ptr[: graph.n], 0, side="right")) - 1] if graph.m else [0]
    while cuts[-1] < graph.n:
        begin = cuts[-1]
        low, high = begin, graph.n  # the largest end that fits lies in low..high
        while low < high:
            middle = (low + high + 1) >> 1
            if column_bytes(graph, begin, middle) <= most_bytes:
                low = middle
            else:
                high = middle - 1
        if low == begin:
            raise GraphError(
                f"column {begin} alone takes {column_bytes(graph, begin, begin + 1):,} bytes on the device, "
                f"of which there are {int(most_bytes):,} for a range of columns"
            )
        cuts.append(low)
    return cuts


def column_bytes(graph, begin, end):
    """Bytes on a device of the columns of vertices begin..end - 1, as a range of its own."""
    if begin >= end:
        return 0
    return POINTER_BYTES * (end - begin + 1) + ROW_BYTES * int(graph.col_ptr[end] - graph.col_ptr[begin])


def words(graph, begin, end):
    """How many int64 of memory hold the columns of vertices begin..end - 1 on a device."""
    return -(-column_bytes(graph, begin, end) // 8)


def sampled(graph, sample=SAMPLE, work=None):
    """Some of the edges, evenly spread: (position, row, column, the work of the stretch that each stands for)."""
    step = max(1, graph.m // sample)
    positions = np.arange(step // 2, graph.m, step)
    rows = graph.row_idx[positions]
    columns = np.searchsorted(graph.col_ptr, positions, side="right") - 1
    each = (work or _look_ups)(graph, positions, rows, columns)
    return positions - step // 2, rows, columns, step * each.astype(np.float64)


def _look_ups(graph, positions, rows, columns):
    """The work of single edges: their shorter column's look-ups in the longer."""
    return EDGE + np.minimum(*(graph.col_ptr[ends + 1] - graph.col_ptr[ends] for ends in (rows, columns)))


def _middle(graph, begin, end):
    """The vertex in begin + 1..end - 1 where the columns of begin..end - 1 are halved."""
    half = (int(graph.col_ptr[begin]) + int(graph.col_ptr[end])) // 2
    return min(max(int(np.searchsorted(graph.col_ptr[begin : end + 1], half)) + begin, begin + 1), end - 1)


def _grouped(graph, cuts, most_bytes):
    """Of `cuts` those with which ranges become as large as they may."""
    groups = cuts[:1]
    for before, cut in zip(cuts, cuts[1:]):
        if column_bytes(graph, groups[-1], cut) > most_bytes:
            groups.append(before)
    return [*groups, graph.n] if graph.n else [0]


def _work_of_pairs(graph, groups, cuts, sample):
    """work[k, c]: of the edges between group k's columns and the rows of the range that begins at cuts[c].

    A group's own rows count to its first range.
    """
    _, rows, columns, work = sampled(graph, sample)
    group = np.searchsorted(groups, columns, side="right") - 1
    low = np.searchsorted(cuts, rows, side="right") - 1
    within = rows < np.append(groups, graph.n)[group + 1]
    low[within] = np.searchsorted(cuts, np.asarray(groups)[group[within]])
    flat = np.bincount(group * len(cuts) + low, work, len(groups) * len(cuts))
    return flat.reshape(len(groups), len(cuts))
