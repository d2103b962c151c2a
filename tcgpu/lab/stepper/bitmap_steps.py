"""Methods that look up: a column is stored as bits, or in registers, and rows of other columns are looked up in it.

A frame is one round of some lanes, each with one row or, where the kernel has four loads in flight, with up to four.
The groups of lanes of a block or warp take nonzeros side by side; here these come one after the other.
"""

from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, SHARED, are, bits, cells, counted, listed, positions

LOADS = 4  # of a lane in flight at a time, in Bisson and Fatica's kernels


def bitmap(builder, nonzeros, *, lanes=4, word=8):
    """A block per column: its bits in global memory."""
    return bit_steps(builder, nonzeros, "block", GLOBAL, lanes, word)


def bitmap_warp(builder, nonzeros, *, lanes=4, word=8, fold=3):
    """A warp per column: its bits in global memory, their fold, of 2^fold bits, in shared memory."""
    return bit_steps(builder, nonzeros, "warp", GLOBAL, lanes, word, fold=1 << fold, stops=True)


def bitmap_block_shared(builder, nonzeros, *, lanes=4, word=8):
    """A block per column: its bits in shared memory."""
    return bit_steps(builder, nonzeros, "block", SHARED, lanes, word, stops=True)


def bitmap_block_global(builder, nonzeros, *, lanes=4, word=8, fold=3):
    """A block per column: its bits in global memory, their fold, of 2^fold bits, in shared memory."""
    return bit_steps(builder, nonzeros, "block", GLOBAL, lanes, word, fold=1 << fold, stops=True)


def bit_steps(builder, nonzeros, owner, memory, lanes, word, *, fold=0, stops=False):
    """The frames of a bitmap method.

    owner, memory: who takes a column, and where its bits are. lanes: how many share a nonzero. word: bits of a word.
    fold: bits of the fold, 0 for none. stops: whether a lane stops at the first row past the column's last one.
    """
    for j, edges in by_column(builder, nonzeros):
        column = _Bits(builder, j, owner, memory, lanes, word, fold, stops)
        if len(column.rows) < 2:
            yield column.skip()
            continue
        yield column.write()
        for e in edges:
            yield from column.look_up(e)
        yield column.clear()


def bitmap_thread(builder, nonzeros, *, registers=12):
    """A thread per column, which it keeps in registers, or searches in memory where it is longer."""
    for j, edges in by_column(builder, nonzeros):
        column = _Registers(builder, j, registers)
        yield column.load()
        for e in edges:
            yield from column.look_up(e)


def by_column(builder, nonzeros):
    """(column, its nonzeros) of the columns that have some of these nonzeros."""
    found = {}
    for e in nonzeros:
        found.setdefault(builder.ends(e)[1], []).append(e)
    return found.items()


class _Column:
    """A column j in which rows are looked up. `panels` of a subclass: the panels but `row_idx`, which comes last."""

    def __init__(self, builder, j, title):
        self.builder, self.graph, self.j, self.title = builder, builder.graph, j, title
        self.rows = self.graph.column(j).tolist()

    def frame(self, caption, panels, read=(), there=()):
        """A frame for the whole column. read: positions of the rows that are read."""
        begin = int(self.graph.col_ptr[self.j])
        panels = *panels, self.builder.row_idx((self.j,), [begin + k for k in read])
        return self.builder.frame(self.title, caption, panels, looked=[self.j], there=there)

    def frame_of_nonzero(self, i, caption, panels, read=(), there=(), keys=(), found=()):
        """A frame for nonzero (i, j). read: positions of rows of column i; keys: the rows that are looked up."""
        begin = int(self.graph.col_ptr[i])
        panels = *panels, self.builder.row_idx((self.j, i), [begin + k for k in read])
        return self.builder.frame(
            f"{self.title}, nonzero ({i}, {self.j})", caption, panels, nonzero=(i, self.j), there=there or keys,
            edges=[(row, i) for row in keys], found=found, lookups=len(keys),
        )  # fmt: skip

    def own_cells(self, i=None, **looks):
        """The column's own cells; row i is looked at unless `looks` say otherwise."""
        looks = looks or {"looked": positions(self.rows, [i])}
        return cells(f"column {self.j}", self.rows, **looks, room=self.graph.max_column)


def nothing_in(i, j):
    return f"Nonzero ({i}, {j}): column {i} is empty, there is nothing to look up."


# ----------------------------------------------------------------------------------------------------- a column as bits


class _Bits(_Column):
    """A column stored as bits."""

    def __init__(self, builder, j, owner, memory, lanes, word, fold, stops):
        super().__init__(builder, j, f"{owner} of column {j}")
        self.owner, self.memory, self.lanes = owner, memory, lanes
        self.word, self.fold, self.stops = word, fold, stops

    def skip(self):
        caption = f"Column {self.j} has a single row, so no triangle begins there: the {self.owner} skips it."
        return self.frame(caption, self.panels(rows=()))

    def write(self):
        fold = f" In the fold, row r has bit r modulo {self.fold}." if self.fold else ""
        caption = (
            f"A {self.owner} takes column {self.j} and sets a bit for each of its rows, all at the same time. "
            f"Several bits share a word, here of {self.word} bits, so each is set by an atomic OR.{fold}"
        )
        every = range(len(self.rows))
        return self.frame(caption, self.panels(own=self.own_cells(looked=every), written=True), every, self.rows)

    def clear(self):
        words = len({row // self.word for row in self.rows})
        caption = (
            f"Column {self.j} is done. Only the words that have one of its bits are cleared, {words} of "
            f"{-(-self.graph.n // self.word)}: the cost depends on the column's length, not on the graph's size."
        )
        every = range(len(self.rows))
        return self.frame(caption, self.panels(own=self.own_cells(done=every), rows=()), every, self.rows)

    def look_up(self, e):
        """Look up the rows of column i of nonzero e, a round of the lanes at a time."""
        i, _ = self.builder.ends(e)
        others, hits = self.graph.column(i).tolist(), set()
        if not others:
            yield self.frame_of_nonzero(i, nothing_in(i, self.j), self.panels(i))
        for now, past in rounds_of_lanes(others, self.lanes, self.rows[-1] if self.stops else None):
            keys = [others[k] for k in now]
            found = [(self.j, i, row) for row in keys if row in self.rows]
            hits |= {row for _, _, row in found}
            stopped = positions(others, [past])
            panels = self.panels(i, now, hits, stopped)
            yield self.frame_of_nonzero(i, self._caption(i, keys, past), panels, [*now, *stopped], (), keys, found)

    def _caption(self, i, keys, past):
        lanes = self.lanes
        left_out = f"Row {past} is past the last row of column {self.j}: the rest of column {i} is skipped."
        if not keys:
            return left_out
        if len(keys) > lanes:
            who = f"{counted(lanes, 'lane')}, with up to {LOADS} loads each in flight, look"
        else:
            who = f"{len(keys)} lanes look" if len(keys) > 1 else "A lane looks"
        said = f"{who} up {listed(keys)} of column {i}: {self._answer(keys)}"
        return said if past is None else f"{said} {left_out}"

    def _answer(self, keys):
        here, fold = [row for row in keys if row in self.rows], self.fold
        if here:
            answer = f"{'bit' if len(here) == 1 else 'bits'} {listed(here)} {are(here)} set."
        else:
            answer = "the bit is not set." if len(keys) == 1 else "none of the bits is set."
        if not fold:
            return answer
        folded = {row % fold for row in self.rows}
        ones, zeros = ([row for row in keys if (row % fold in folded) == one] for one in (True, False))
        if not ones:
            return f"the fold has a 0 for {listed(zeros)}, and so have the bits."
        zeros = f"a 0 for {listed(zeros)}, " if zeros else ""
        return f"the fold has {zeros}a 1 for {listed(ones)}; {answer}"

    def panels(self, i=None, now=(), hits=(), stopped=(), *, rows=None, own=None, written=False):
        """now, stopped: positions of column i that lanes look up, and at which one stops; hits: rows found so far.

        rows: those whose bits are set, by default the column's; own: the column's cells.
        """
        graph = self.graph
        rows = self.rows if rows is None else rows
        others = [] if i is None else graph.column(i).tolist()
        keys, done = [others[k] for k in now], range(max(now, default=0))
        yield own or self.own_cells(i)
        yield bits("its bits", rows, 0, graph.n, self.word, self.memory, keys=keys,
                   hits=set(hits).intersection(keys), written=written)  # fmt: skip
        if self.fold:
            folded, keys_of_fold = ({row % self.fold for row in some} for some in (rows, keys))
            label = f"their fold: row r has bit r modulo {self.fold}"
            yield bits(label, folded, 0, self.fold, self.word, SHARED, keys=keys_of_fold, written=written)
        label = "column i" if i is None else f"column {i}, and which lane looks a row up"
        hit = [k for k in positions(others, hits) if k in (*done, *now)]
        lanes = {k: str(number % self.lanes) for number, k in enumerate(now)}
        yield cells(label, others, done=done, looked=now, miss=stopped, hit=hit, marks=lanes, room=graph.max_column)


def rounds_of_lanes(rows, lanes, last=None):
    """What `lanes` lanes look up in each round: positions of rows, and the row at which a lane stops, or None.

    Lane l takes rows l, l + lanes, ... With a `last` row, a lane stops where the first row of its round is past that,
    and takes four rows a round while more than three times `lanes` are left to it.
    """
    begins = list(range(min(lanes, len(rows))))
    while begins:
        now, following, past = [], [], None
        for begin in begins:
            if last is not None and rows[begin] > last:
                past = rows[begin] if past is None else min(past, rows[begin])
                continue
            several = last is not None and len(rows) - begin > 3 * lanes
            own = range(begin, begin + (LOADS if several else 1) * lanes, lanes)
            now += own
            if own.stop < len(rows):
                following.append(own.stop)
        yield sorted(now), past
        begins = following


# ------------------------------------------------------------------------------------------------ a column in registers


class _Registers(_Column):
    """A column that a thread keeps in its registers, if there are enough."""

    def __init__(self, builder, j, registers):
        super().__init__(builder, j, f"thread {j}, column {j}")
        self.registers, self.kept = registers, len(self.rows) <= registers

    def load(self):
        j, rows = self.j, self.rows
        if len(rows) < 2:
            caption = f"Column {j} has a single row, so no triangle begins there: the thread has nothing to do."
        elif self.kept:
            caption = f"Thread {j} reads column {j} into registers: it has {self.registers} for that."
        else:
            caption = (
                f"Column {j} has {len(rows)} rows, too many for {self.registers} registers. "
                f"Thread {j} will search it in memory for each row that it looks up."
            )
        every = range(len(rows))
        return self.frame(caption, self.panels(own=self.own_cells(looked=every)), every, rows)

    def look_up(self, e):
        """Look up the rows of column i of nonzero e one by one, up to the last row of the thread's own column."""
        (i, j), last = self.builder.ends(e), self.rows[-1]
        others, hits, low = self.graph.column(i).tolist(), set(), e + 1 - int(self.graph.col_ptr[j])
        if i == last:
            return  # nothing follows
        if not others:
            yield self.frame_of_nonzero(i, nothing_in(i, self.j), self.panels(i))
        for k, row in enumerate(others):
            if row > last:
                caption = f"Row {row} of column {i} is past {last}, the last row of column {j}: the rest is skipped."
                yield self.frame_of_nonzero(i, caption, self.panels(i, k, hits), [k], there=[row])
                return
            found, own = [(j, i, row)] if row in self.rows else [], None
            hits |= {row for _, _, row in found}
            if self.kept:
                caption = f"Row {row} of column {i} is compared with all registers, and "
                caption += "one of them has it." if found else "none of them has it."
            else:
                low, steps = first_not_below(self.rows, low, row)
                caption = f"Row {row} of column {i} is searched for, in {counted(steps, 'step')}, "
                caption += "and found." if found else "and not found."
                own = self.own_cells(done=range(low), looked=[low], hit=positions(self.rows, hits))
            panels = self.panels(i, k, hits, own, compared=self.kept)
            yield self.frame_of_nonzero(i, caption, panels, [k], keys=[row], found=found)

    def panels(self, i=None, at=None, hits=(), own=None, compared=False):
        """at: the position in column i; compared: whether the row there is compared with all registers."""
        values = self.rows if self.kept else []
        full, free = range(len(values)), [""] * (self.registers - len(values))
        yield own or self.own_cells(i)
        yield cells(
            "the thread's registers", [*values, *free], "empty", there=full, looked=full if compared else (),
            hit=positions(values, hits), memory=REGISTERS, heads={k: f"r{k}" for k in range(self.registers)},
            room=self.registers,
        )  # fmt: skip
        yield self.builder.column(i, "column i" if i is None else f"column {i}", at, "q", hits)


def first_not_below(rows, low, row):
    """The position of the first of sorted rows, from `low` on and before the last, not below `row`; steps it takes."""
    high, steps = len(rows) - 1, 0
    while low < high:
        middle = (low + high) >> 1
        low, high = (middle + 1, high) if rows[middle] < row else (low, middle)
        steps += 1
    return low, steps
