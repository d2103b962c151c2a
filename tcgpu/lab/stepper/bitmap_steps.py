"""Methods that look up: a column is written down as bits, or kept in registers, and other columns' rows are looked up.

A frame is one go of some lanes, each with a row or, where the kernel has four loads under way, with up to four. The
groups of lanes of a block or warp take nonzeros side by side; here these come one after the other.
"""

from dataclasses import dataclass

from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, SHARED, Cells, are, bits, counted, listed, looks, where
from tcgpu.lab.stepper.merge_steps import column, ends, memory

FOUR = 4  # loads of a lane under way at a time, in Bisson and Fatica's kernels


def bitmap(recorder, nonzeros, *, lanes=4, word=8):
    """A block per column: its bits in global memory."""
    return _play(recorder, nonzeros, _Owner("block", GLOBAL, lanes, word))


def bitmap_warp(recorder, nonzeros, *, lanes=4, word=8, fold=3):
    """A warp per column: its bits in global memory, their fold, of 2^fold bits, in shared memory."""
    return _play(recorder, nonzeros, _Owner("warp", GLOBAL, lanes, word, 1 << fold, stops=True))


def bitmap_block_shared(recorder, nonzeros, *, lanes=4, word=8):
    """A block per column: its bits in shared memory."""
    return _play(recorder, nonzeros, _Owner("block", SHARED, lanes, word, stops=True))


def bitmap_block_global(recorder, nonzeros, *, lanes=4, word=8, fold=3):
    """A block per column: its bits in global memory, their fold, of 2^fold bits, in shared memory."""
    return _play(recorder, nonzeros, _Owner("block", GLOBAL, lanes, word, 1 << fold, stops=True))


def bitmap_thread(recorder, nonzeros, *, registers=12):
    """A thread per column, which it keeps in registers, or searches where it is longer."""
    for j, edges in by_column(recorder.scene.graph, nonzeros):
        thread = _Thread(recorder, j, registers)
        yield thread.loaded()
        for e in edges:
            yield from thread.looked_up(e)


@dataclass(frozen=True)
class _Owner:
    """Who owns a column, and how: where its bits are, how many lanes share a nonzero, how many bits make a word."""

    name: str
    bits: str
    lanes: int
    word: int
    fold: int = 0
    stops: bool = False  # at the first row past the column's last one


def _play(recorder, nonzeros, owner):
    for j, edges in by_column(recorder.scene.graph, nonzeros):
        own = _Bits(recorder, owner, j)
        if len(own.rows) < 2:
            yield own.passed_over()
            continue
        yield own.written()
        for e in edges:
            yield from own.looked_up(e)
        yield own.cleared()


def by_column(graph, nonzeros):
    """The columns that have some of the nonzeros, with these."""
    found = {}
    for e in nonzeros.tolist():
        found.setdefault(int(graph.col_of[e]), []).append(e)
    return found.items()


# -------------------------------------------------------------------------------------------------- bits of a column


class _Bits:
    """A column's bits, and what is asked of them."""

    def __init__(self, recorder, owner, j):
        self.recorder, self.owner, self.j = recorder, owner, j
        self.graph = recorder.scene.graph
        self.begin = int(self.graph.col_ptr[j])
        self.rows = self.graph.column(j).tolist()
        self.title = f"{owner.name} of column {j}"

    def passed_over(self):
        caption = (
            f"Column {self.j} has a single row, and no triangle begins there: the {self.owner.name} steps over it."
        )
        return self.recorder.frame(self.title, caption, self.panels(rows=()), looked=[self.j])

    def written(self):
        owner = self.owner
        fold = f" In the fold, row r has bit r modulo {owner.fold}." if owner.fold else ""
        caption = (
            f"A {owner.name} takes column {self.j} and sets a bit for each of its rows, all at the same time. "
            f"Several share a word, here of {owner.word} bits, so that each is set by an atomic OR.{fold}"
        )
        return self._whole_column(caption, self.panels(look="looked", own=looks(len(self.rows), "looked")))

    def cleared(self):
        words = len({row // self.owner.word for row in self.rows})
        caption = (
            f"Column {self.j} is done with. Only the words that have a bit of it are cleared, {words} of "
            f"{-(-self.graph.n // self.owner.word)}: a column costs its length, however many vertices there are."
        )
        return self._whole_column(caption, self.panels(rows=(), own=looks(len(self.rows), "done")))

    def _whole_column(self, caption, panels):
        panels[-1] = memory(self.graph, (self.j,), range(self.begin, self.begin + len(self.rows)))
        return self.recorder.frame(self.title, caption, panels, looked=[self.j], there=self.rows)

    def looked_up(self, e):
        """The rows of the column that nonzero e names, a go of the lanes at a time."""
        i, j = ends(self.graph, e)
        title, owner = f"{self.title}, nonzero ({i}, {j})", self.owner
        others, hits = self.graph.column(i).tolist(), set()
        if not others:
            caption = f"Nonzero ({i}, {j}): column {i} is empty, there is nothing to look up."
            yield self.recorder.frame(title, caption, self.panels(i), nonzero=(i, j))
        for asked, past in goes(others, owner.lanes, self.rows[-1] if owner.stops else None):
            keys = [others[k] for k in asked]
            found = [(j, i, row) for row in keys if row in self.rows]
            hits |= {row for _, _, row in found}
            yield self.recorder.frame(
                title, self._caption(i, keys, past), self.panels(i, asked, hits, past=past), nonzero=(i, j), there=keys,
                edges=[(row, i) for row in keys], found=found, lookups=len(keys),
            )  # fmt: skip

    def _caption(self, i, keys, past):
        left_out = f"Row {past} is past the last row of column {self.j}: the rest of column {i} is left out."
        if not keys:
            return left_out
        if len(keys) > self.owner.lanes:
            who = f"{counted(self.owner.lanes, 'lane')}, with up to {FOUR} loads each under way, look"
        else:
            who = f"{len(keys)} lanes look" if len(keys) > 1 else "A lane looks"
        said = f"{who} up {listed(keys)} of column {i}: {self._answer(keys)}"
        return said if past is None else f"{said} {left_out}"

    def _answer(self, keys):
        here = [row for row in keys if row in self.rows]
        answer = f"{'bit' if len(here) == 1 else 'bits'} {listed(here)} {are(here)} set." if here else (
            "the bit is not set." if len(keys) == 1 else "none of the bits is set.")  # fmt: skip
        if not self.owner.fold:
            return answer
        folded = {row % self.owner.fold for row in self.rows}
        ones = [row for row in keys if row % self.owner.fold in folded]
        zeros = [row for row in keys if row not in ones]
        if not ones:
            return f"the fold has a 0 for {listed(zeros)}, and so have the bits."
        zeros = f"a 0 for {listed(zeros)}, " if zeros else ""
        return f"the fold has {zeros}a 1 for {listed(ones)}; {answer}"

    def panels(self, i=None, asked=(), hits=(), past=None, rows=None, look="there", own=None):
        """rows: those whose bits are set, by default the column's; look: of these; own: looks of the column's cells."""
        owner, graph = self.owner, self.graph
        rows = self.rows if rows is None else rows
        others = () if i is None else tuple(graph.column(i).tolist())
        keys = [others[k] for k in asked]
        own = own or looks(len(self.rows), looked=where(self.rows, [i]))
        stopped = where(others, [past])
        done = range(max(asked, default=0))
        hit = [k for k in where(others, hits) if k in (*done, *asked)]
        seen = looks(len(others), done=done, looked=asked, miss=stopped, hit=hit)
        lanes = {k: str(place % owner.lanes) for place, k in enumerate(asked)}
        label = "column i" if i is None else f"column {i}, and which lane looks a row up"
        read = [int(graph.col_ptr[i]) + k for k in (*asked, *stopped)]
        panels = [
            Cells(f"column {self.j}", tuple(self.rows), own, room=graph.max_column, marked=False),
            bits("its bits", rows, 0, graph.n, owner.word, owner.bits, asked=keys, hits=set(hits).intersection(keys),
                 look=look),
            Cells(label, others, seen, marks=lanes, room=graph.max_column),
            memory(graph, (self.j,) if i is None else (self.j, i), read),
        ]  # fmt: skip
        if owner.fold:
            folded, asks = ({row % owner.fold for row in some} for some in (rows, keys))
            label = f"their fold: row r has bit r modulo {owner.fold}"
            fold = bits(label, folded, 0, owner.fold, owner.word, SHARED, asked=asks, look=look)
            panels.insert(2, fold)
        return panels


def goes(rows, lanes, last=None):
    """What `lanes` lanes look up in a go: the places of rows, and the row at which a lane stops, if one does.

    Lane l takes rows l, l + lanes, ...; with a `last` row to stop past, four at a time while there are more than three
    times `lanes` left to it, and a lane stops where the first of a go is past it.
    """
    begins = list(range(min(lanes, len(rows))))
    while begins:
        asked, following, past = [], [], None
        for begin in begins:
            if last is not None and rows[begin] > last:
                past = rows[begin] if past is None else min(past, rows[begin])
                continue
            four = last is not None and len(rows) - begin > 3 * lanes
            places = range(begin, begin + (FOUR if four else 1) * lanes, lanes)
            asked += places
            if places.stop < len(rows):
                following.append(places.stop)
        yield sorted(asked), past
        begins = following


# ------------------------------------------------------------------------------------------------ a column in registers


class _Thread:
    """What a thread does with its column."""

    def __init__(self, recorder, j, registers):
        self.recorder, self.graph, self.j, self.registers = recorder, recorder.scene.graph, j, registers
        self.rows = self.graph.column(j).tolist()
        self.begin = int(self.graph.col_ptr[j])
        self.kept = len(self.rows) <= registers
        self.title = f"thread {j}, column {j}"

    def loaded(self):
        if len(self.rows) < 2:
            caption = f"Column {self.j} has a single row, and no triangle begins there: the thread has nothing to do."
        elif self.kept:
            caption = (
                f"Thread {self.j} reads column {self.j} into its registers, of which it has {self.registers} for that."
            )
        else:
            caption = (
                f"Column {self.j} has {len(self.rows)} rows, too many for {self.registers} registers. "
                f"Thread {self.j} will search it in memory for each row that it looks up."
            )
        panels = self.panels(own=looks(len(self.rows), "looked"))
        panels[-1] = memory(self.graph, (self.j,), range(self.begin, self.begin + len(self.rows)))
        return self.recorder.frame(self.title, caption, panels, looked=[self.j], there=self.rows)

    def looked_up(self, e):
        """The rows of the column that nonzero e names, one by one, up to the last row of the thread's own."""
        i, j = ends(self.graph, e)
        title, last, low = f"{self.title}, nonzero ({i}, {j})", self.rows[-1], e + 1 - self.begin
        others, hits = self.graph.column(i).tolist(), set()
        if i == last:
            return  # nothing follows
        if not others:
            caption = f"Nonzero ({i}, {j}): column {i} is empty, there is nothing to look up."
            yield self.recorder.frame(title, caption, self.panels(i), nonzero=(i, j))
        for k, row in enumerate(others):
            if row > last:
                caption = f"Row {row} of column {i} is past {last}, the last row of column {j}: the rest is left out."
                yield self.recorder.frame(
                    title, caption, self.panels(i, k, hits, past=True), nonzero=(i, j), there=[row]
                )
                return
            found = [(j, i, row)] if row in self.rows else []
            if self.kept:
                caption = f"Row {row} of column {i} is compared with all registers, and "
                caption += "one of them has it." if found else "none of them has it."
            else:
                low, steps = first_not_below(self.rows, low, row)
                caption = f"Row {row} of column {i} is searched for, in {counted(steps, 'step')}, "
                caption += "and found." if found else "in vain."
            hits |= {row for _, _, row in found}
            own = (
                None if self.kept else looks(len(self.rows), done=range(low), looked=[low], hit=where(self.rows, hits))
            )
            yield self.recorder.frame(title, caption, self.panels(i, k, hits, own=own), nonzero=(i, j), there=[row],
                                      edges=[(row, i)], found=found, lookups=1)  # fmt: skip

    def panels(self, i=None, at=None, hits=(), own=None, past=False):
        graph, j, free = self.graph, self.j, self.registers - len(self.rows)
        own = own or looks(len(self.rows), looked=where(self.rows, [i]))
        values = (*self.rows, *[""] * free) if self.kept else ("",) * self.registers
        full = range(len(self.rows)) if self.kept else ()
        compared = full if at is not None and not past else ()
        kept = looks(self.registers, "empty", there=full, looked=compared, hit=where(values, hits))
        heads = {k: f"r{k}" for k in range(self.registers)}
        read = () if at is None else (int(graph.col_ptr[i]) + at,)
        return [
            Cells(f"column {j}", tuple(self.rows), own, room=graph.max_column, marked=False),
            Cells("the thread's registers", values, kept, REGISTERS, heads, room=self.registers, marked=False),
            column(graph, i, "column i" if i is None else f"column {i}", at, "q", hits),
            memory(graph, (j,) if i is None else (j, i), read),
        ]


def first_not_below(rows, low, row):
    """Of the ascending rows, from `low` on and before the last, the place of the first not below `row`; the steps."""
    high, steps = len(rows) - 1, 0
    while low < high:
        middle = (low + high) >> 1
        low, high = (middle + 1, high) if rows[middle] < row else (low, middle)
        steps += 1
    return low, steps
