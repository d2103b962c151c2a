"""`adaptive`: which kernel takes which vertex or column, and what each of them does.

In degree order the knobs say who takes what, as in the kernels but for small graphs: `near` and `hubs` vertices at the
end, columns of more than `heavy` near rows, vertices in `crowd` columns or more, columns of `short` far rows or more.
In other orders a column is local if it has `short` rows or more and all of them lie within a few words of bits, and the
others are merged. The first panel says which kernel takes which vertex, and which of them are done.
"""

from tcgpu.kernels.adaptive.far import EMPTY, HASH_FACTOR
from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, SHARED, Matrix, bits, cells, counted, listed
from tcgpu.lab.stepper.merge_steps import merge, merge_columns

QUAD = 4  # near rows that are read at a time
SMALLEST_TABLE = 8


def adaptive(builder, *, near=12, hubs=6, heavy=4, crowd=4, short=3, words=2, word=8):
    """The knobs are `adaptive`'s own, made for small graphs; a word has `word` bits, 64 on a GPU."""
    graph = builder.graph
    if graph.order == "degree":
        near = min(near, graph.n)
        kernels = ByDegree(builder, near, min(hubs, near), heavy, crowd, short, word)
    else:
        kernels = AsGiven(builder, short, words, word)
    yield kernels.overview()
    done = []
    for kernel, vertices in kernels.tasks.items():
        for v in vertices:
            yield from getattr(kernels, kernel)(v, kernels.table(done, (kernel, v)))
            done.append((kernel, v))


class Kernels:
    """The kernels of one order. `tasks`: kernel -> its vertices, in order. A method per kernel makes its frames."""

    def __init__(self, builder, word):
        self.builder, self.graph, self.word = builder, builder.graph, word
        self.columns = [self.graph.column(v).tolist() for v in range(self.graph.n)]

    def table(self, done=(), now=None):
        """Which kernel has work for which vertex: what is done, and what runs now."""
        looks = {(kernel, v): "there" for kernel, vertices in self.tasks.items() for v in vertices}
        looks |= dict.fromkeys(done, "done") | dict.fromkeys([now] if now else [], "looked")
        every = tuple(range(self.graph.n))
        lines = tuple(tuple(looks.get((kernel, v), "") for v in every) for kernel in self.tasks)
        return Matrix("which kernel takes which vertex", tuple(self.tasks), every, lines, memory="")

    def taken(self, what, nothing):
        """A sentence: how many vertices or columns each kernel takes."""
        some = [f"{len(tasks)} by {kernel}_kernel" for kernel, tasks in self.tasks.items() if tasks]
        return f"{what} taken: {listed(some)}." if some else nothing

    def and_bits(self, title, table, j, own, labels, window, beginning, others):
        """The frames of a warp that has column j's row of bits, and ANDs those of other columns with it.

        own: the rows that are bits; labels: of the two rows of bits at first; window: the first row that has a bit, and
        how many. others: (i, label, rows of column i, caption, look-ups) for each other column.
        """

        def panels(label=labels[1], rows=(), common=(), written=True):
            return (
                table,
                bits(labels[0], own, *window, self.word, REGISTERS, written=written),
                bits(label, rows, *window, self.word, GLOBAL),
                bits("AND", common, *window, self.word, REGISTERS, hits=common),
            )

        yield self.builder.frame(title, beginning, panels(), looked=[j], there=own)
        for i, label, rows, caption, lookups in others:
            common = [row for row in rows if row in own]
            caption += f" The bits of {listed(common)} are left." if common else " No bit is left."
            found = [(j, i, k) for k in common]
            yield self.builder.frame(title, caption, panels(label, rows, common, written=False), nonzero=(i, j),
                                     there=own, found=found, lookups=lookups)  # fmt: skip


# ---------------------------------------------------------------------------------------------------- in other orders


class AsGiven(Kernels):
    """Local columns, as in `local_kernel`: rows of `words` words of bits, the vertex's own word first. Else merges."""

    def __init__(self, builder, short, words, word):
        super().__init__(builder, word)
        self.bits_of_row = words * word
        columns = enumerate(self.columns)
        local = [j for j, rows in columns if len(rows) >= short and self._words(j, rows[-1]) <= words]
        self.tasks = {"local": local, "merge": [j for j, rows in enumerate(self.columns) if rows and j not in local]}

    def _begin(self, v):
        """The vertex that the first bit of v's row stands for."""
        return v // self.word * self.word

    def _words(self, j, row):
        """How many words there are from column j's first word to that of this row."""
        return (row - self._begin(j)) // self.word + 1

    def overview(self):
        taken = self.taken("Columns", "No column has a row.")
        caption = (
            "Neighbours may have close numbers in this order. A column that is long and spans few words, here "
            f"of {self.word} bits, is local. {taken}"
        )
        return self.builder.frame(f"{self.graph.order} order", caption, (self.table(),))

    def local(self, j, table):
        """The words of column j's row of bits AND those of each column i in it."""
        own, begin = self.columns[j], self._begin(j)
        reach = counted(self._words(j, own[-1]), "word")
        beginning = f"A warp takes column {j}, which is local: all its rows lie within {reach}, a word a lane."
        others = []
        for i in own:
            over = self._words(i, own[-1])  # words that both rows of bits have
            label = f"column {i}'s row of bits, shifted by {self._begin(i) - begin}"
            caption = f"Column {i}'s row of bits, {counted(over, 'word')} of it, over column {j}'s: word AND word."
            rows = [row for row in self.columns[i] if row < self._begin(i) + self.bits_of_row]
            others.append((i, label, rows, caption, over))
        labels, window = (f"column {j}'s row of bits", "column i's row of bits"), (begin, self.bits_of_row)
        return self.and_bits(f"local_kernel, column {j}", table, j, own, labels, window, beginning, others)

    def merge(self, j, table):
        """All nonzeros of column j, each merged by a thread of its own."""
        for e in range(int(self.graph.col_ptr[j]), int(self.graph.col_ptr[j + 1])):
            nonzero = f"nonzero ({self.builder.ends(e)[0]}, {j})"
            yield from merge_columns(self.builder, f"merge_kernel, {nonzero}", f"A thread takes {nonzero}.", e, table)


# ------------------------------------------------------------------------------------------------------ in degree order


class ByDegree(Kernels):
    """Near vertices, hubs and heavy columns, and what there is to do, as `layout` lays it out."""

    def __init__(self, builder, near, hubs, heavy, crowd, short, word):
        super().__init__(builder, word)
        n = self.graph.n
        self.near, self.hubs, self.first_near, self.first_hub = near, hubs, n - near, n - hubs
        self.far_rows = [[row for row in rows if row < self.first_near] for rows in self.columns]
        self.near_rows = [[row for row in rows if row >= self.first_near] for rows in self.columns]
        self.quads = [[None] * (-len(rows) % QUAD) + rows for rows in self.near_rows]  # padded at the front
        heavy = [len(quads) // QUAD > heavy // QUAD for quads in self.quads]
        self.in_edges = [[] for _ in range(n)]  # of i: (j, the quads of column j that have its near rows after i)
        for i, j in zip(*(end.tolist() for end in self.graph.edges())):
            after = sum(row > i for row in self.near_rows[j])
            begin = (len(self.quads[j]) - after) // QUAD * QUAD if i >= self.first_near else 0
            if self.quads[j][begin:] and not (i >= self.first_hub and heavy[j]):
                self.in_edges[i].append((j, self.quads[j][begin:]))
        order = range(n - 1, -1, -1)  # the last vertices have most to do and come first
        looked_up = [i for i in order if self.in_edges[i] and self.near_rows[i]]
        self.tasks = {
            "hub": [j for j in order if heavy[j]],
            "crowd": [i for i in looked_up if len(self.in_edges[i]) >= crowd],
            "window": [i for i in looked_up if len(self.in_edges[i]) < crowd],
            "hash": [j for j in order if len(self.far_rows[j]) >= short],
            "far": [j for j in order if 1 < len(self.far_rows[j]) < short],
        }

    def overview(self):
        n, taken = self.graph.n, self.taken("Vertices", "No kernel has work.")
        caption = (
            f"In degree order, the last {self.near} vertices are near the end and have numbers of 16 bits; the last "
            f"{self.hubs} of them are hubs. {taken}"
        )
        near, hubs = range(self.first_near, n), range(self.first_hub, n)
        begins = {0: "far", self.first_near: "near the end", self.first_hub: "hubs"}
        vertices = cells(
            "the vertices", range(n), "empty", there=near, looked=hubs, memory="", room=n,
            heads={v: text for v, text in begins.items() if v < n}, gaps=(self.first_near - 1, self.first_hub - 1),
        )  # fmt: skip
        return self.builder.frame("by degree", caption, (self.table(), vertices), looked=hubs, there=near)

    def hub(self, j, table):
        """Heavy column j: its hubs as bits; for each hub i in it, hub i's row of bits AND these."""
        own = [row for row in self.columns[j] if row >= self.first_hub]
        beginning = f"A warp takes column {j}, which is heavy: {counted(len(self.near_rows[j]), 'near row')}. "
        beginning += f"Its hubs, {listed(own)}, become bits." if own else "It has no hub, so there is nothing to do."
        others = [
            (i, f"hub {i}'s row of bits", self.columns[i],
             f"Hub {i}: its row of bits AND column {j}'s, all hubs at once.", 1)
            for i in own
        ]  # fmt: skip
        labels, window = (f"column {j}'s hubs", "a hub's row of bits"), (self.first_hub, self.hubs)
        return self.and_bits(f"hub_kernel, column {j}", table, j, own, labels, window, beginning, others)

    def crowd(self, i, table):
        """As `window`, with bytes in place of bits."""
        why = ": there are many look-ups, and reading a byte takes fewer instructions than a bit"
        return self._look_up(i, table, "crowd", "byte", why, 0)

    def window(self, i, table):
        """Vertex i: its near rows as bits, in which what follows i in each column j that has row i is looked up."""
        return self._look_up(i, table, "window", "bit", "", self.word)

    def _look_up(self, i, table, kernel, unit, why, word):
        near, in_edges = self.near_rows[i], self.in_edges[i]
        room = max(len(quads) for quads in self.quads)
        title = f"{kernel}_kernel, vertex {i}"

        def panels(label="column j", quads=(), at=0, keys=()):
            now, hits = range(at, min(at + QUAD, len(quads))), [row for row in keys if row in near]
            return (
                table,
                bits(f"column {i}'s near rows as {unit}s", near, self.first_near, self.near, word, SHARED, keys=keys,
                     hits=hits),
                cells(label, ["pad" if row is None else row for row in quads], done=range(at), looked=now, room=room,
                      hit=[k for k in now if quads[k] in hits], gaps=tuple(range(QUAD - 1, len(quads) - 1, QUAD))),
            )  # fmt: skip

        beginning = (
            f"A block takes vertex {i} with its {counted(len(in_edges), 'in-edge')}. The near rows of column {i}, "
            f"{listed(near)}, become {unit}s{why}. Then the rows after {i} of the columns with row {i} are looked up."
        )
        yield self.builder.frame(title, beginning, panels(), looked=[i], there=near)
        for j, quads in in_edges:
            for at in range(0, len(quads), QUAD):
                keys = [row for row in quads[at : at + QUAD] if row is not None]
                rest, pads = [row for row in keys if row <= i], QUAD - len(keys)
                padding = ["a pad" if pads == 1 else f"{pads} pads"] if pads else []
                caption = f"Column {j} has row {i}: four look-ups at a time, {listed([*keys, *padding])}."
                if rest or pads:
                    filling = f"{listed([*rest, *padding])} {'is' if len(rest) + pads == 1 else 'are'}"
                    caption += f" {filling[0].upper()}{filling[1:]} there to fill the four: column {i} has no such row."
                shown = panels(f"column {j}, the part with the rows after {i}", quads, at, keys)
                yield self.builder.frame(
                    title, caption, shown, nonzero=(i, j), there=keys, edges=[(k, j) for k in keys if k > i],
                    found=[(j, i, k) for k in keys if k in near], lookups=QUAD,
                )  # fmt: skip

    def hash(self, j, table):
        """Column j: its far rows in a hash table, in which the far rows of each of these columns are looked up."""
        rows, title = self.far_rows[j], f"hash_kernel, column {j}"
        slots = hash_table(rows)
        full = {k for k, row in enumerate(slots) if row != EMPTY}
        heads = {k: str(k) for k in range(len(slots))}

        def panels(i="i", others=(), at=None, probed=(), there=False):
            here = [] if at is None else [at]
            return (
                table,
                cells(f"column {j}'s far rows in a hash table", ["" if row == EMPTY else row for row in slots], "empty",
                      there=full, looked=full.intersection(probed), miss=set(probed) - full,
                      hit=probed[-1:] if there else (), memory=SHARED, heads=heads, room=len(slots)),
                cells(f"column {i}'s far rows", others, done=range(at or 0), looked=here, hit=here if there else (),
                      room=self.graph.max_column),
            )  # fmt: skip

        beginning = f"A block takes column {j} and puts its {len(rows)} far rows, too many to merge, into a hash table."
        yield self.builder.frame(title, beginning, panels(), looked=[j], there=rows)
        for i in rows:
            for at, k in enumerate(self.far_rows[i]):
                probed = probes(slots, k)
                there = slots[probed[-1]] == k
                caption = f"Row {k} of column {i} is looked up in slot {listed(probed)}: "
                caption += "found." if there else f"an empty slot, so column {j} does not have it."
                yield self.builder.frame(title, caption, panels(i, self.far_rows[i], at, probed, there), nonzero=(i, j),
                                         there=[k], edges=[(k, i)], found=[(j, i, k)] * there, lookups=1)  # fmt: skip

    def far(self, j, table):
        """Column j: its far rows merged with those of each column that they name, by a thread per nonzero."""
        rows = self.far_rows[j]
        for at, i in enumerate(rows[:-1]):
            others = self.far_rows[i]

            def panels(p=None, q=None, hits=(), i=i, others=others, first=at + 1):
                p = None if p is None else first + p
                pointed = self.builder.pointed
                return (
                    table,
                    pointed(f"column {j}'s far rows", rows, p, "p", hits, first),
                    pointed(f"column {i}'s far rows", others, q, "q", hits),
                )

            beginning = f"A thread takes nonzero ({i}, {j}) and merges far rows."
            title = f"far_kernel, nonzero ({i}, {j})"
            yield from merge(self.builder, title, beginning, (i, j), rows[at + 1 :], others, panels)


def hash_table(rows):
    """The rows in a table of at least two slots each, as hash_kernel stores them; EMPTY where there is none."""
    size = SMALLEST_TABLE
    while size < 2 * len(rows):
        size *= 2
    slots = [EMPTY] * size
    for row in rows:
        slots[probes(slots, row)[-1]] = row
    return slots


def probes(slots, row):
    """The slots where a row is looked for, up to the one that has it or is empty."""
    slot = (row * HASH_FACTOR & 0xFFFFFFFF) >> (33 - len(slots).bit_length())
    probed = [slot]
    while slots[slot] not in (EMPTY, row):
        slot = (slot + 1) % len(slots)
        probed.append(slot)
    return probed
