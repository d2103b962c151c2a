"""`merge_path`: several lanes an edge, the merge of its two columns cut by diagonals into equal parts.

A merge is a way through a grid, from the upper left corner to the lower right one: to the right past a row of column j,
down past a row of column i. A frame is a step of all lanes at the same time.
"""

from tcgpu.lab.stepper.frames import GLOBAL, Matrix, are, counted, listed
from tcgpu.lab.stepper.merge_steps import ends, memory


def merge_path(recorder, nonzeros, *, lanes=4):
    """`lanes` lanes a nonzero, 32 on a GPU. The nonzeros are played one after the other."""
    graph = recorder.scene.graph
    i, j = graph.row_idx[nonzeros], graph.col_of[nonzeros]
    room = int(graph.column_lengths[i].max(initial=0)), int((graph.col_ptr[j + 1] - nonzeros - 1).max(initial=0))
    for e in nonzeros.tolist():
        path = _Path(recorder, e, lanes, room)
        yield path.begun()
        if path.right and path.down:
            yield from path.cut()
            yield from path.walked()


class _Path:
    """The way through the grid of one nonzero (i, j): past the rows `right` of column j and `down` of column i."""

    def __init__(self, recorder, e, lanes, room):
        self.recorder, self.graph, self.lanes, self.room = recorder, recorder.scene.graph, lanes, room
        self.nonzero = i, j = ends(self.graph, e)
        col_ptr = self.graph.col_ptr
        self.right_at, self.down_at = e + 1, int(col_ptr[i])
        self.right = self.graph.row_idx[e + 1 : col_ptr[j + 1]].tolist()
        self.down = self.graph.column(i).tolist()
        self.steps = len(self.right) + len(self.down)
        self.part = -(-self.steps // lanes)
        self.cuts = [min(lane * self.part, self.steps) for lane in range(lanes)]
        self.title = f"{counted(lanes, 'lane')}, nonzero ({i}, {j})"
        self.hits = set()

    def begun(self):
        i, j = self.nonzero
        if not self.right or not self.down:
            empty = f"Column {i} is empty" if self.right else f"Nothing follows row {i} in column {j}"
            caption = f"Nonzero ({i}, {j}): {empty}, so there is nothing to merge."
        else:
            caption = (
                f"{counted(self.lanes, 'lane')} take nonzero ({i}, {j}). Its merge takes {self.steps} steps: "
                f"{len(self.right)} to the right, past rows of column {j}, and {len(self.down)} down, past rows of "
                f"column {i}. Each lane is to take {self.part} of them, from the diagonal on that has its number."
            )
        return self._frame(caption, self.panels())

    def cut(self):
        """Every lane finds by binary search where the merge crosses its diagonal."""
        low = [max(0, d - len(self.down)) for d in self.cuts]
        high = [min(d, len(self.right)) for d in self.cuts]
        step = 0
        while any(a < b for a, b in zip(low, high)):
            middle = {lane: (low[lane] + high[lane]) >> 1 for lane in range(self.lanes) if low[lane] < high[lane]}
            cells = {lane: (self.cuts[lane] - 1 - x, x) for lane, x in middle.items()}  # row, column
            for lane, (y, x) in cells.items():
                if self.right[x] <= self.down[y]:
                    low[lane] = x + 1
                else:
                    high[lane] = x
            step += 1
            (i, j), one = self.nonzero, len(cells) == 1
            who = f"{'Lane' if one else 'Lanes'} {listed(cells)} {'compares' if one else 'compare'}"
            caption = (
                f"Where does the merge cross a diagonal? Step {step} of a binary search along each. {who} a row of "
                f"column {j} with one of column {i}: where the former is not past the latter, the crossing is further "
                "right, else further left."
            )
            ranges = {lane: (low[lane], high[lane]) for lane in range(self.lanes)}
            yield self._frame(caption, self.panels(cells, ranges), cells)
        self.begins = [(d - x, x) for d, x in zip(self.cuts, low)]

    def walked(self):
        """The lanes take their parts of the way, all at the same time."""
        at, ways = list(self.begins), [[begin] for begin in self.begins]
        for step in range(1, self.part + 1):
            cells = {
                lane: (y, x) for lane, (y, x) in enumerate(at) if y < len(self.down) and x < len(self.right)
            }  # the others are at the end of a column
            if not cells:
                return
            found = []
            for lane, (y, x) in cells.items():
                if self.right[x] == self.down[y]:
                    found.append((self.nonzero[1], self.nonzero[0], self.right[x]))
                at[lane] = (y, x + 1) if self.right[x] <= self.down[y] else (y + 1, x)
                ways[lane].append(at[lane])
            self.hits |= {row for _, _, row in found}
            said = [f"{self.right[x]} with {self.down[y]}" for y, x in cells.values()]
            caption = f"Step {step} of {self.part}, all lanes at the same time: "
            caption += (
                f"{listed(said)} {are(said)} compared. " if len(said) < self.lanes else f"they compare {listed(said)}. "
            )
            caption += "A lane goes right past the row of its column j, unless that is larger: then it goes down."
            yield self._frame(caption, self.panels(cells, ways=ways, at=dict(enumerate(at))), cells, found)

    def _frame(self, caption, panels, cells=(), found=()):
        rows = {row for y, x in dict(cells).values() for row in (self.right[x], self.down[y])}
        return self.recorder.frame(self.title, caption, panels, nonzero=self.nonzero, there=rows, found=list(found),
                                   lookups=len(cells))  # fmt: skip

    def panels(self, cells=(), ranges=None, ways=(), at=None):
        """cells: which lane compares which rows; ranges: between which columns its crossing is; at: its corner."""
        (i, j), graph = self.nonzero, self.graph
        compared = dict(cells)
        seen = [["empty"] * len(self.right) for _ in self.down]
        for y, x in compared.values():
            seen[y][x] = "looked"
        for y, row in enumerate(self.down):
            if row in self.hits:
                seen[y][self.right.index(row)] = "hit"
        if at is None:
            at = {lane: self._middle(lane, (ranges or {}).get(lane)) for lane in range(self.lanes)}
        dots = {}
        for lane, corner in at.items():
            dots[corner] = f"{dots[corner]} {lane}" if corner in dots else str(lane)
        read = [place for y, x in compared.values() for place in (self.right_at + x, self.down_at + y)]
        return (
            Matrix(f"column {j} behind row {i}, to the right, and column {i}, down", tuple(self.down),
                   tuple(self.right), tuple(tuple(line) for line in seen), GLOBAL,
                   paths=tuple(tuple(way) for way in ways),
                   cuts=tuple(self.cuts) if self.right and self.down else (), dots=dots, room=self.room),
            memory(graph, (j, i), read),
        )  # fmt: skip

    def _middle(self, lane, between):
        """A corner on the lane's diagonal: the middle of what is left of it."""
        d = self.cuts[lane]
        low, high = between or (max(0, d - len(self.down)), min(d, len(self.right)))
        x = (low + high) // 2
        return d - x, x
