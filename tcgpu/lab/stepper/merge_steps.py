"""Methods that merge: `naive`, `column_block`. A frame is a comparison of two rows, one from either column."""

from tcgpu.kernels.report.column_block import longest_group
from tcgpu.lab.stepper.frames import SHARED, Cells, Lower, Strip, counted, looks, where


def naive(recorder, nonzeros):
    """A thread a nonzero: two pointers along two columns. The threads are played one after the other."""
    graph = recorder.scene.graph
    for e in nonzeros.tolist():
        merge = Merge(graph, e)
        i, j = merge.nonzero
        title = f"thread {e}, nonzero ({i}, {j})"
        caption = f"Thread {e} takes nonzero ({i}, {j}): which rows do columns {j} and {i} share? {merge.beginning()}"
        yield recorder.frame(title, caption, merge.panels(), nonzero=(i, j))
        yield from two_pointers(recorder, title, merge)


def column_block(recorder, nonzeros, *, columns=3, threads=4, tile=32):
    """A block per `columns` columns: their rows in a tile of shared memory, a thread per nonzero of theirs.

    The threads of a block, and the blocks, are played one after the other.
    """
    graph = recorder.scene.graph
    wanted, room = set(nonzeros.tolist()), min(tile, longest_group(graph.col_ptr, columns))
    for first in range(0, graph.n, columns):
        last = min(first + columns, graph.n)
        begin, end = int(graph.col_ptr[first]), int(graph.col_ptr[last])
        while begin < end:
            tile_end = min(begin + tile, end)
            reached = range(int(graph.col_ptr[graph.col_of[begin]]), tile_end)  # the nonzeros merged with this tile
            if wanted.intersection(reached):
                block = _Block(recorder, range(first, last), range(begin, tile_end), threads, room)
                yield block.filled()
                for place, e in enumerate(reached):
                    if e in wanted:
                        yield from block.merged(e, place % threads)
            begin = tile_end


class Merge:
    """A nonzero (i, j), the rows of its two columns that are merged, and how that is shown."""

    def __init__(self, graph, e):
        self.graph, self.e = graph, e
        self.nonzero = i, j = ends(graph, e)
        self.behind = e + 1 - int(graph.col_ptr[j])  # what column j has up to row i, column i does not have
        self.of_j, self.of_i = graph.column(j).tolist()[self.behind :], graph.column(i).tolist()

    def beginning(self):
        """Where the pointers go at first, or why there is nothing to merge."""
        i, j = self.nonzero
        if not self.of_j:
            return f"Nothing follows row {i} in column {j}: there is nothing to do."
        if not self.of_i:
            return f"Column {i} is empty: there is nothing to do."
        return (
            f"Pointer p goes to row {self.of_j[0]}, which follows row {i} in column {j}; "
            f"q to the front of column {i}, row {self.of_i[0]}."
        )

    def panels(self, p=None, q=None, hits=()):
        """While the pointers are at places p and q, and so far `hits` were found."""
        graph, (i, j) = self.graph, self.nonzero
        return (
            self.column_of_j(p, hits),
            column(graph, i, f"column {i}", at=q, mark="q", hits=hits),
            memory(graph, (j, i), self.read(p, q)),
            self.lower((j, i), p, q, hits),
        )

    def column_of_j(self, p, hits):
        i, j = self.nonzero
        at = None if p is None else self.behind + p
        return column(self.graph, j, f"column {j}, from behind row {i} on", at, "p", hits, self.behind)

    def read(self, p, q):
        """Which places of `row_idx` are read."""
        return () if p is None else (self.e + 1 + p, int(self.graph.col_ptr[self.nonzero[0]]) + q)

    def lower(self, columns, p, q, hits):
        i, j = self.nonzero
        marked = {(i, j): "looked"}
        if p is not None:
            marked |= {(self.of_j[p], j): "looked", (self.of_i[q], i): "looked"}
        return Lower(tuple(columns), marked | {(k, v): "hit" for k in hits for v in (i, j)})


class _Block:
    """What a block of `column_block` does with the nonzeros at `rows`, which are in its tile."""

    def __init__(self, recorder, columns, rows, threads, room):
        self.recorder, self.graph = recorder, recorder.scene.graph
        self.columns, self.rows, self.threads, self.room = columns, rows, threads, room
        first, last = columns[0], columns[-1]
        self.whose = f"columns {first} to {last}" if last > first else f"column {first}"

    def filled(self):
        graph = self.graph
        every = int(graph.col_ptr[self.columns.stop] - graph.col_ptr[self.columns.start])
        part = "" if len(self.rows) == every else f", as many of {every} as fit the tile,"
        caption = (
            f"A block takes {self.whose}. Its {counted(self.threads, 'thread')} copy {counted(len(self.rows), 'row')}"
            f"{part} into shared memory, side by side. Then they wait for each other: a barrier."
        )
        panels = (
            self._tile(looks(len(self.rows), "looked")),
            column(graph, None, "column i"),
            memory(graph, self.columns, self.rows),
            Lower(tuple(self.columns)),
        )
        return self.recorder.frame(f"block of {self.whose}", caption, panels, looked=self.columns)

    def merged(self, e, thread):
        """A thread's merge of the part of column j that the tile has with column i."""
        merge = _InTile(self, e)
        i, j = merge.nonzero
        title = f"block of {self.whose}, thread {thread}, nonzero ({i}, {j})"
        steps = steps_of_search(self.graph.col_ptr, self.columns.start, self.columns.stop, e)
        caption = (
            f"Thread {thread} takes nonzero {e} and finds its column, {j}, in {counted(steps, 'step')} of binary "
            f"search in col_ptr. Its row is {i}. {merge.beginning()}"
        )
        yield self.recorder.frame(title, caption, merge.panels(), nonzero=(i, j))
        yield from two_pointers(self.recorder, title, merge)

    def _tile(self, seen, marks=None):
        """The tile's rows, the columns that they are of over them."""
        rows = self.graph.row_idx[self.rows.start : self.rows.stop].tolist()
        owner = self.graph.col_of[self.rows.start : self.rows.stop].tolist()
        starts = [k for k in range(len(rows)) if k == 0 or owner[k] != owner[k - 1]]
        heads = {k: f"column {owner[k]}" if owner.count(owner[k]) > 1 else str(owner[k]) for k in starts}
        gaps = tuple(k - 1 for k in starts[1:])
        return Cells("the block's tile", tuple(rows), seen, SHARED, heads, marks or {}, gaps, self.room)


class _InTile(Merge):
    """A Merge of as much of column j as the block's tile holds."""

    def __init__(self, block, e):
        super().__init__(block.graph, e)
        self.block = block
        end = int(self.graph.col_ptr[self.nonzero[1] + 1])
        self.part = range(max(e + 1, block.rows.start), min(end, block.rows.stop))  # of `row_idx`
        self.of_j = self.graph.row_idx[self.part.start : self.part.stop].tolist()

    def panels(self, p=None, q=None, hits=()):
        graph, block, (i, _) = self.graph, self.block, self.nonzero
        begin = self.part.start - block.rows.start
        inside = range(begin, begin + len(self.part))
        rows = graph.row_idx[block.rows.start : block.rows.stop].tolist()
        found = [k for k in where(rows, hits) if k in inside]
        at = [] if p is None else [begin + p]
        seen = looks(len(rows), "done", there=inside[p or 0 :], looked=at, hit=found)
        return (
            block._tile(seen, dict.fromkeys(at, "p")),
            column(graph, i, f"column {i}", at=q, mark="q", hits=hits),
            memory(graph, (*block.columns, i), () if q is None else (int(graph.col_ptr[i]) + q,)),
            self.lower(block.columns, p, q, hits),
        )


def steps_of_search(col_ptr, first, last, e):
    """How often `column_holding` halves the columns first..last-1 to find the one of nonzero e."""
    steps = 0
    while last - first > 1:
        middle = (first + last) >> 1
        first, last = (middle, last) if col_ptr[middle] <= e else (first, middle)
        steps += 1
    return steps


# ------------------------------------------------------------------------------------------------ shared by all merges


def two_pointers(recorder, title, merge):
    """The merge, a frame a comparison."""
    (i, j), a, b = merge.nonzero, merge.of_j, merge.of_i
    p, q, hits = 0, 0, set()
    while p < len(a) and q < len(b):
        x, y, at = a[p], b[q], (p, q)
        p, q = p + (x <= y), q + (y <= x)
        if x == y:
            hits.add(x)
            caption = f"p and q are both at row {x}: columns {j} and {i} share it. Both move on."
        else:
            behind, ahead = ("p", y) if x < y else ("q", x)
            caption = f"p is at row {x}, q at row {y}. {min(x, y)} is smaller than {ahead}, so {behind} moves on."
        caption += ending(j, i, p == len(a), q == len(b))
        found = [(j, i, x)] if x == y else []
        yield recorder.frame(title, caption, merge.panels(*at, hits), nonzero=(i, j), there=(x, y),
                             edges=((x, j), (y, i)), found=found, lookups=1)  # fmt: skip


def ending(j, i, j_ends, i_ends):
    if j_ends and i_ends:
        return f" Columns {j} and {i} both end there."
    return f" Column {j if j_ends else i} ends there: nothing more can be shared." if j_ends or i_ends else ""


def ends(graph, e):
    """Row and column of a nonzero."""
    return int(graph.row_idx[e]), int(graph.col_of[e])


def column(graph, v, label, at=None, mark="", hits=(), begin=0):
    """Column v as cells, a pointer at place `at`; what is before it or before `begin` is done with. v: or None."""
    rows = () if v is None else tuple(graph.column(v).tolist())
    here = [] if at is None else [at]
    seen = looks(len(rows), done=range(max([begin, *here])), looked=here, hit=where(rows, hits, begin))
    return Cells(label, rows, seen, marks=dict.fromkeys(here, mark), room=graph.max_column)


def memory(graph, columns, read):
    """`row_idx` as it lies in memory: some columns stand out, and the places that are read."""
    parts = tuple((int(graph.col_ptr[v]), int(graph.col_ptr[v + 1])) for v in columns)
    return Strip("row_idx", graph.m, tuple(graph.col_ptr[:-1].tolist()), parts, tuple(read))
