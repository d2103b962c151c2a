"""Cutting a graph into parts of about equal work. A memory-mapped graph is never loaded whole.

Every edge is in exactly one `Part` of a cut, and a triangle belongs to the edge between its two smallest vertices. So
the counts of the parts add up to that of the graph. Counting a part takes the columns that its edges are in, and those
of its rows.

`slices` are for where all columns are in memory, `pairs` for where only some are, `shares` for a method that
distributes its tasks itself.

Work is estimated in look-ups, from the lengths of columns: the rows of an edge's shorter column are looked up in the
longer one. Of a large graph a sample of the edges is examined.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from tcgpu.arrays import bincount
from tcgpu.errors import GraphError
from tcgpu.graph import Graph

SAMPLE = 1 << 18  # edges that are examined to estimate the work of all
EDGE = 16  # the cost of an edge apart from its look-ups, in look-ups
ROW_BYTES = 4  # of a nonzero on a device
POINTER_BYTES = 8  # of a column's offset there
MAX_ROWS = 2**32 - 64  # nonzeros of one range of columns that a kernel can number
MANY_PARTS = 64  # the default number of parts


@dataclass(frozen=True)
class Part:
    """Part number `index` of `of`: the edges (i, j) at positions first..last - 1 of a graph's edge list whose row i is
    in low..high - 1; or of the tasks that a method makes of the whole graph.
    """

    first: int
    last: int
    low: int
    high: int
    work: float = field(default=0.0, compare=False)  # estimated look-ups
    index: int = 0
    of: int = 1
    of_tasks: bool = False  # of those of a method, not of edges

    @property
    def empty(self) -> bool:
        """Whether one of its ranges of edges is empty."""
        return not self.of_tasks and (self.first >= self.last or self.low >= self.high)

    def columns(self, graph: Graph) -> tuple[int, int]:
        """The range of vertices in whose columns its edges are."""
        if self.first >= self.last:
            return 0, 0
        begin = int(np.searchsorted(graph.col_ptr, self.first, side="right")) - 1
        return begin, int(np.searchsorted(graph.col_ptr, self.last))

    def rows(self, graph: Graph) -> tuple[int, int]:
        """The range of vertices that its edges may have as rows, all of them larger than the edge's column."""
        begin, _ = self.columns(graph)
        low = min(max(self.low, begin + 1), graph.n)
        return low, max(low, min(self.high, graph.n))

    def has_no_triangles(self, graph: Graph) -> bool:
        """Whether its ranges alone show that it has no triangles."""
        low, high = self.rows(graph)
        return self.empty or low == high

    def result_ranges(self, graph: Graph, by_edge: bool) -> list[tuple[int, int]]:
        """The ranges of edges, or of vertices, that its triangles may have: two, or one if they touch."""
        (begin, end), (low, high), offset = self.columns(graph), self.rows(graph), graph.col_ptr
        if by_edge:
            near, far = (self.first, int(offset[end])), (int(offset[low]), int(offset[max(low, high)]))
        else:
            near, far = (begin, end), (low, graph.n)
        return [(near[0], max(near[1], far[1]))] if far[0] <= near[1] else [near, far]

    def within(self, other: "Part") -> "Part":
        """Its edges that are in another part, too."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Part(first, last, max(self.low, other.low), min(self.high, other.high))


@dataclass(frozen=True)
class PartResult:
    """The result of counting a part.

    pieces: in how many it was counted, to fit the device.
    values: (first, array) pairs: the triangles of edges, or vertices, from number `first` on.
    """

    part: Part
    triangles: int
    seconds: float
    engine: str
    pieces: int = 1
    values: tuple = field(default=(), repr=False)


def Share(index: int, of: int, work: float = 0.0) -> Part:
    """Part number `index` of `of` of a method's tasks."""
    return Part(0, 0, 0, 0, work, index, of, of_tasks=True)


def shares(of: int, work: float = 0.0) -> list[Part]:
    """All `of` parts of a graph for methods that distribute their tasks, each with the same part of `work`."""
    return [Share(index, of, work / of) for index in range(of)]


def slices(graph: Graph, parts: int = MANY_PARTS, sample: int = SAMPLE, work: Callable | None = None) -> list[Part]:
    """Cut the edge list of a graph into `parts` ranges of about equal work. In a small graph some are empty.

    sample: how many edges to examine. work: another estimate than look-ups, such as `tcgpu.cpu.edge_work`. It is called
    with the graph and the positions, rows and columns of edges, and returns the work of each.
    """
    if parts < 1:
        raise GraphError(f"a graph is cut into 1 part or more, not {parts}")
    positions, _, _, works = sampled(graph, sample, work)
    total = float(works.sum())
    before: np.ndarray = np.append(0.0, np.cumsum(works))
    ends = np.interp(np.arange(1, parts) * (total / parts), before, np.append(positions, graph.m)).astype(np.int64)
    cuts = [0, *ends.tolist(), graph.m]
    numbered = enumerate(pairwise(cuts))
    return [Part(first, last, 0, graph.n, total / parts, index, parts) for index, (first, last) in numbered]


def pairs(graph: Graph, stay: int, move: int, sample: int = SAMPLE) -> list[Part]:
    """Cut a graph into pairs of ranges of vertices.

    The columns of the first range of a pair take up to `stay` bytes on a device, those of the second up to `move`. The
    parts of one first range are consecutive: its own edges, then those to each later range. Raises GraphError if a
    single column is too long.
    """
    cuts = ranges(graph, move)
    groups = _merged(graph, cuts, max(stay, move))
    work = _work_of_pairs(graph, groups, cuts, sample)
    parts = []
    for k, (begin, end) in enumerate(pairwise(groups)):
        first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
        lows = [begin, *(cut for cut in cuts if cut >= end)]
        for low, high in zip(lows[:-1], [end, *lows[2:]], strict=True):
            parts.append(Part(first, last, low, high, float(work[k, np.searchsorted(cuts, low)])))
    return parts


def ranges(graph: Graph, max_bytes: int) -> list[int]:
    """The bounds of ranges of vertices whose columns take at most `max_bytes` on a device: [first, ..., n].

    The first is the first vertex with a column that is not empty. No smaller vertex has an edge.
    """
    max_bytes = min(max_bytes, ROW_BYTES * MAX_ROWS)
    cuts = [int(np.searchsorted(graph.col_ptr[: graph.n], 0, side="right")) - 1] if graph.m else [0]
    while cuts[-1] < graph.n:
        begin = cuts[-1]
        ends = range(begin + 1, graph.n + 1)
        fitting = bisect_right(ends, max_bytes, key=partial(column_bytes, graph, begin))
        if not fitting:
            raise GraphError(
                f"column {begin} alone takes {column_bytes(graph, begin, begin + 1):,} bytes on the device, "
                f"of which there are {int(max_bytes):,} for a range of columns"
            )
        cuts.append(begin + fitting)
    return cuts


def column_bytes(graph: Graph, begin: int, end: int) -> int:
    """Bytes on a device of the columns of vertices begin..end - 1, as a range of its own."""
    if begin >= end:
        return 0
    return POINTER_BYTES * (end - begin + 1) + ROW_BYTES * int(graph.col_ptr[end] - graph.col_ptr[begin])


def column_words(graph: Graph, begin: int, end: int) -> int:
    """The same in int64 words, rounded up."""
    return -(-column_bytes(graph, begin, end) // 8)


def sampled(graph, sample=SAMPLE, work=None):
    """(position, row, column, work) of evenly spaced edges; the work is that of all edges that each represents."""
    step = max(1, graph.m // sample)
    positions = np.arange(step // 2, graph.m, step)
    rows = graph.row_idx[positions]
    columns = np.searchsorted(graph.col_ptr, positions, side="right") - 1
    if work:
        each = work(graph, positions, rows, columns)
    else:  # the look-ups of the shorter column in the longer one
        each = EDGE + np.minimum(*(graph.col_ptr[ends + 1] - graph.col_ptr[ends] for ends in (rows, columns)))
    return positions - step // 2, rows, columns, step * each.astype(np.float64)


def _merged(graph, cuts, max_bytes):
    """The bounds of larger ranges, which merge as many of those between `cuts` as fit in `max_bytes`."""
    groups = cuts[:1]
    for before, cut in pairwise(cuts):
        if column_bytes(graph, groups[-1], cut) > max_bytes:
            groups.append(before)
    return [*groups, graph.n] if graph.n else [0]


def _work_of_pairs(graph, groups, cuts, sample):
    """work[k, c]: of the edges in group k's columns with rows in the range that begins at cuts[c].

    Rows within a group count for the first range of the group.
    """
    _, rows, columns, work = sampled(graph, sample)
    group = np.searchsorted(groups, columns, side="right") - 1
    low = np.searchsorted(cuts, rows, side="right") - 1
    within = rows < np.append(groups, graph.n)[group + 1]
    low[within] = np.searchsorted(cuts, np.asarray(groups)[group[within]])
    flat = bincount(group * len(cuts) + low, work, len(groups) * len(cuts))
    return flat.reshape(len(groups), len(cuts))
