"""Methods that merge two sorted lists of rows: `naive`, `column_block`. A frame is one comparison of two rows."""

from tcgpu.kernels.report.column_block import longest_group
from tcgpu.lab.stepper.frames import SHARED, Lower, cells, counted, positions


def naive(builder, nonzeros):
    """A thread per nonzero: two pointers along two columns. The threads are shown one after the other."""
    for e in nonzeros:
        i, j = builder.ends(e)
        question = f"Thread {e} takes nonzero ({i}, {j}): which rows do columns {j} and {i} share?"
        yield from merge_columns(builder, f"thread {e}, nonzero ({i}, {j})", question, e)


def column_block(builder, nonzeros, *, columns=3, threads=4, tile=32):
    """A block per `columns` columns: their rows in a tile of shared memory, a thread per nonzero of theirs.

    The threads of a block, and the blocks, are shown one after the other.
    """
    graph, wanted = builder.graph, set(nonzeros)
    room = min(tile, longest_group(graph.col_ptr, columns))
    for first in range(0, graph.n, columns):
        group = range(first, min(first + columns, graph.n))
        end = int(graph.col_ptr[group.stop])
        for begin in range(int(graph.col_ptr[first]), end, tile):
            loaded = range(begin, min(begin + tile, end))
            merged = range(int(graph.col_ptr[graph.col_of[begin]]), loaded.stop)  # the nonzeros that use this tile
            if wanted.intersection(merged):
                block = _Block(builder, group, loaded, threads, room)
                yield block.load_tile()
                for k, e in enumerate(merged):
                    if e in wanted:
                        yield from block.merge(e, k % threads)


class _Block:
    """A block of `column_block` with the rows `loaded`, a range of `row_idx`, in its tile."""

    def __init__(self, builder, columns, loaded, threads, room):
        self.builder, self.graph = builder, builder.graph
        self.columns, self.loaded, self.threads, self.room = columns, loaded, threads, room
        self.rows = self.graph.row_idx[loaded.start : loaded.stop].tolist()
        self.name = f"columns {columns[0]} to {columns[-1]}" if len(columns) > 1 else f"column {columns[0]}"

    def load_tile(self):
        every = int(self.graph.col_ptr[self.columns.stop] - self.graph.col_ptr[self.columns.start])
        part = "" if len(self.rows) == every else f", as many of {every} as fit the tile,"
        caption = (
            f"A block takes {self.name}. Its {counted(self.threads, 'thread')} copy {counted(len(self.rows), 'row')}"
            f"{part} into shared memory. Then they wait for each other at a barrier."
        )
        panels = (
            self._tile("looked"),
            self.builder.column(None, "column i"),
            self.builder.row_idx(self.columns, self.loaded),
            Lower(tuple(self.columns)),
        )
        return self.builder.frame(f"block of {self.name}", caption, panels, looked=self.columns)

    def merge(self, e, thread):
        """A thread merges the part of column j that is in the tile with column i."""
        (i, j), col_ptr = self.builder.ends(e), self.graph.col_ptr
        steps = search_steps(col_ptr, self.columns.start, self.columns.stop, e)
        caption = (
            f"Thread {thread} takes nonzero {e} and finds its column, {j}, in {counted(steps, 'step')} of binary "
            f"search in col_ptr. Its row is {i}."
        )
        begin, end = max(e + 1, self.loaded.start), min(int(col_ptr[j + 1]), self.loaded.stop)
        inside = range(begin - self.loaded.start, end - self.loaded.start)  # positions in the tile
        of_j, of_i = self.rows[inside.start : inside.stop], self.graph.column(i).tolist()

        def panels(p=None, q=None, hits=()):
            at = [] if p is None else [inside.start + p]
            found = [k for k in positions(self.rows, hits) if k in inside]
            return (
                self._tile("done", dict.fromkeys(at, "p"), there=inside[p or 0 :], looked=at, hit=found),
                self.builder.column(i, f"column {i}", q, "q", hits),
                self.builder.row_idx((*self.columns, i), () if q is None else (int(col_ptr[i]) + q,)),
                lower((i, j), self.columns, () if p is None else (of_j[p], of_i[q]), hits),
            )

        title = f"block of {self.name}, thread {thread}, nonzero ({i}, {j})"
        yield from merge(self.builder, title, caption, (i, j), of_j, of_i, panels)

    def _tile(self, look, marks=None, **looks):
        """The rows in the tile, with the column that they are of above them."""
        owners = self.graph.col_of[self.loaded.start : self.loaded.stop].tolist()
        starts = [k for k in range(len(owners)) if k == 0 or owners[k] != owners[k - 1]]
        heads = {k: f"column {owners[k]}" if owners.count(owners[k]) > 1 else str(owners[k]) for k in starts}
        return cells("the block's tile", self.rows, look, **looks, memory=SHARED, heads=heads, marks=marks or {},
                     gaps=tuple(k - 1 for k in starts[1:]), room=self.room)  # fmt: skip


def search_steps(col_ptr, first, last, e):
    """How often a binary search halves the columns first..last-1 until it finds that of nonzero e."""
    steps = 0
    while last - first > 1:
        middle = (first + last) >> 1
        first, last = (middle, last) if col_ptr[middle] <= e else (first, middle)
        steps += 1
    return steps


# ------------------------------------------------------------------------------------------------------- any two lists


def merge(builder, title, beginning, nonzero, of_j, of_i, panels):
    """The frames of a merge: one before it begins, and one per comparison.

    of_j, of_i: the sorted rows of column j and of column i that are merged. panels(p, q, hits): the panels while the
    pointers are at positions p and q of these lists, None before the first comparison, and `hits` are the shared rows.
    """
    i, j = nonzero
    if not of_j:
        beginning += f" Nothing follows row {i} in column {j}: there is nothing to do."
    elif not of_i:
        beginning += f" Column {i} is empty: there is nothing to do."
    else:
        beginning += f" Pointer p begins at row {of_j[0]}, the first after row {i} in column {j}; "
        beginning += f"q at row {of_i[0]}, the first of column {i}."
    yield builder.frame(title, beginning, panels(), nonzero=nonzero)
    p, q, hits = 0, 0, set()
    while p < len(of_j) and q < len(of_i):
        x, y, at = of_j[p], of_i[q], (p, q)
        p, q = p + (x <= y), q + (y <= x)
        if x == y:
            hits.add(x)
            caption = f"p and q are both at row {x}: columns {j} and {i} share it. Both advance."
        else:
            behind, ahead = ("p", y) if x < y else ("q", x)
            caption = f"p is at row {x}, q at row {y}. {min(x, y)} is smaller than {ahead}, so {behind} advances."
        if p == len(of_j) and q == len(of_i):
            caption += f" Columns {j} and {i} both end there."
        elif p == len(of_j) or q == len(of_i):
            caption += f" Column {j if p == len(of_j) else i} ends there: nothing more can be shared."
        yield builder.frame(title, caption, panels(*at, hits), nonzero=(i, j), there=(x, y), edges=((x, j), (y, i)),
                            found=[(j, i, x)] if x == y else [], lookups=1)  # fmt: skip


def merge_columns(builder, title, beginning, e, table=None):
    """The frames of a merge of whole columns in global memory: what follows nonzero e in its column, and column i.

    The panels are the two columns, `row_idx` and L; with a `table`, that in front of them, and no L.
    """
    graph, (i, j) = builder.graph, builder.ends(e)
    first = e + 1 - int(graph.col_ptr[j])  # column i has none of the rows before this position
    of_j, of_i = graph.column(j).tolist()[first:], graph.column(i).tolist()

    def panels(p=None, q=None, hits=()):
        begun, label = p is not None, f"column {j}, merged from after row {i} on"
        found = (
            builder.column(j, label, first + p if begun else None, "p", hits, first),
            builder.column(i, f"column {i}", q, "q", hits),
            builder.row_idx((j, i), (e + 1 + p, int(graph.col_ptr[i]) + q) if begun else ()),
        )
        return (table, *found) if table else (*found, lower((i, j), (j, i), (of_j[p], of_i[q]) if begun else (), hits))

    return merge(builder, title, beginning, (i, j), of_j, of_i, panels)


def lower(nonzero, columns, read, hits):
    """L while the merge of `nonzero` reads these two rows, of column j and of column i, and has found `hits`."""
    i, j = nonzero
    looks = dict.fromkeys([nonzero, *zip(read, (j, i))], "looked")
    return Lower(tuple(columns), looks | {(k, v): "hit" for k in hits for v in nonzero})
