"""`merge_path`: several lanes per edge; diagonals cut the merge of its two columns into equal parts.

A merge is a path through a grid, from the upper left corner to the lower right one: to the right past a row of column
j, down past a row of column i. A frame is a step of all lanes at the same time.
"""

from tcgpu.lab.stepper.frames import Matrix, are, counted, listed


def merge_path(builder, nonzeros, *, lanes=4):
    """`lanes` lanes per nonzero, 32 on a GPU. The nonzeros are shown one after the other."""
    paths = [_Path(builder, e, lanes) for e in nonzeros]
    room = max((len(path.down) for path in paths), default=0), max((len(path.right) for path in paths), default=0)
    for path in paths:
        path.room = room
        yield path.begin()
        if path.right and path.down:
            yield from path.find_starts()
            yield from path.walk()


class _Path:
    """The path through the grid of one nonzero (i, j): past the rows `right` of column j and `down` of column i."""

    def __init__(self, builder, e, lanes):
        self.builder, self.lanes, self.nonzero = builder, lanes, builder.ends(e)
        i, j = self.nonzero
        col_ptr, row_idx = builder.graph.col_ptr, builder.graph.row_idx
        self.right_begin, self.down_begin = e + 1, int(col_ptr[i])
        self.right, self.down = row_idx[e + 1 : col_ptr[j + 1]].tolist(), builder.graph.column(i).tolist()
        self.steps = len(self.right) + len(self.down)
        self.part = -(-self.steps // lanes)
        self.cuts = [min(lane * self.part, self.steps) for lane in range(lanes)]
        self.low = [max(0, cut - len(self.down)) for cut in self.cuts]  # where each lane may start on its diagonal:
        self.high = [min(cut, len(self.right)) for cut in self.cuts]  # columns from low to high of the grid
        self.hits = set()

    def begin(self):
        i, j = self.nonzero
        if not self.right or not self.down:
            empty = f"Column {i} is empty" if self.right else f"Nothing follows row {i} in column {j}"
            caption = f"Nonzero ({i}, {j}): {empty}, so there is nothing to merge."
        else:
            caption = (
                f"{counted(self.lanes, 'lane')} take nonzero ({i}, {j}). Its merge takes {self.steps} steps: "
                f"{len(self.right)} to the right, past rows of column {j}, and {len(self.down)} down, past rows of "
                f"column {i}. Each lane takes {self.part} of them, from where the merge crosses its diagonal."
            )
        return self._frame(caption, {}, self._middles())

    def find_starts(self):
        """Each lane finds by binary search where the path crosses its diagonal."""
        low, high, step = self.low, self.high, 0
        while low != high:
            step += 1
            middle = {lane: (low[lane] + high[lane]) >> 1 for lane in range(self.lanes) if low[lane] < high[lane]}
            cells = {lane: (self.cuts[lane] - 1 - x, x) for lane, x in middle.items()}  # row, column
            for lane, (y, x) in cells.items():
                if self.right[x] <= self.down[y]:
                    low[lane] = x + 1
                else:
                    high[lane] = x
            (i, j), one = self.nonzero, len(cells) == 1
            who = f"{'Lane' if one else 'Lanes'} {listed(cells)} {'compares' if one else 'compare'}"
            caption = (
                f"Each lane searches its diagonal for the point where the merge crosses it: step {step}. {who} a row "
                f"of column {j} with a row of column {i}. If the latter is smaller, the point is further left, else "
                "further right."
            )
            yield self._frame(caption, cells, self._middles())

    def walk(self):
        """The lanes take their parts of the path, all at the same time."""
        at = [(cut - x, x) for cut, x in zip(self.cuts, self.low)]
        paths = [[corner] for corner in at]
        for step in range(1, self.part + 1):
            cells = {lane: (y, x) for lane, (y, x) in enumerate(at) if y < len(self.down) and x < len(self.right)}
            if not cells:
                return  # all lanes are at the end of a column
            found = []
            for lane, (y, x) in cells.items():
                if self.right[x] == self.down[y]:
                    found.append((self.nonzero[1], self.nonzero[0], self.right[x]))
                at[lane] = (y, x + 1) if self.right[x] <= self.down[y] else (y + 1, x)
                paths[lane].append(at[lane])
            self.hits |= {row for _, _, row in found}
            pairs = [f"{self.right[x]} with {self.down[y]}" for y, x in cells.values()]
            caption = f"Step {step} of {self.part}, all lanes at the same time: "
            caption += f"they compare {listed(pairs)}. " if len(pairs) == self.lanes else (
                f"{listed(pairs)} {are(pairs)} compared. ")  # fmt: skip
            caption += f"If the row of column {self.nonzero[0]} is smaller, the lane goes down, else right."
            yield self._frame(caption, cells, at, paths, found)

    def _middles(self):
        """The corner of the grid in the middle of what is left of each lane's diagonal."""
        columns = [(low + high) // 2 for low, high in zip(self.low, self.high)]
        return [(cut - x, x) for cut, x in zip(self.cuts, columns)]

    def _frame(self, caption, cells, corners, paths=(), found=()):
        """cells: lane -> the cell (row, column) of the grid whose rows it compares; corners: where each lane is."""
        (i, j), compared = self.nonzero, cells.values()
        looks = [["empty"] * len(self.right) for _ in self.down]
        for y, x in compared:
            looks[y][x] = "looked"
        for row in self.hits:
            looks[self.down.index(row)][self.right.index(row)] = "hit"
        dots = {}
        for lane, corner in enumerate(corners):
            dots[corner] = f"{dots[corner]} {lane}" if corner in dots else str(lane)
        grid = Matrix(
            f"column {j} after row {i}, to the right, and column {i}, down", tuple(self.down), tuple(self.right),
            tuple(map(tuple, looks)), paths=tuple(map(tuple, paths)), dots=dots, room=self.room,
            cuts=tuple(self.cuts) if self.right and self.down else (),
        )  # fmt: skip
        read = [position for y, x in compared for position in (self.right_begin + x, self.down_begin + y)]
        return self.builder.frame(
            f"{counted(self.lanes, 'lane')}, nonzero ({i}, {j})", caption, (grid, self.builder.row_idx((j, i), read)),
            nonzero=self.nonzero, there={row for y, x in compared for row in (self.right[x], self.down[y])},
            found=list(found), lookups=len(cells),
        )  # fmt: skip
