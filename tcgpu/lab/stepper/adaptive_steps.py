"""`adaptive`: which kernel takes which vertex or column, and the steps of each kernel.

In degree order the knobs assign work to kernels as on a GPU, with smaller values: `near` and `hubs` vertices at the
end, columns of more than `heavy` near rows, vertices in `crowd` columns or more. In other orders a column is local if
it has `short` rows or more, all of them within a few words of bits; the others are merged. The first panel shows which
kernel takes which vertex, and which vertices are done.
"""

from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, SHARED, Matrix, bits, cells, counted, listed
from tcgpu.lab.stepper.merge_steps import merge

QUAD = 4  # near rows that are read at a time


def adaptive(builder, *, near, hubs, heavy, crowd, short, words, word):
    """The frames of `adaptive`, with values of its knobs for small graphs; a word has `word` bits, 64 on a GPU."""
    if builder.graph.order == "degree":
        near = min(near, builder.graph.n)
        kernels = ByDegree(builder, near, min(hubs, near), heavy, crowd, word)
    else:
        kernels = OtherOrder(builder, short, words, word)
    vertices = tuple(range(builder.graph.n))
    tasks = [(kernel, v) for kernel, taken in kernels.tasks.items() for v in taken]

    def table(now):
        """The panel of the kernels that have work for each vertex; the tasks before number `now` are done."""
        looks = {task: "done" if k < now else "looked" if k == now else "there" for k, task in enumerate(tasks)}
        lines = [[looks.get((kernel, v), "") for v in vertices] for kernel in kernels.tasks]
        return Matrix("which kernel takes which vertex", tuple(kernels.tasks), vertices, lines, memory="")

    title, caption, panels, highlighted = kernels.overview()
    taken = listed(f"{len(taken)} by {kernel}_kernel" for kernel, taken in kernels.tasks.items() if taken)
    yield builder.frame(title, f"{caption} Vertices taken: {taken}.", (table(-1), *panels), **highlighted)
    for k, (kernel, v) in enumerate(tasks):
        yield from getattr(kernels, kernel)(v, table(k))


def and_bits(builder, kernel, table, j, own, window, word, beginning, others):
    """The frames of a warp that ANDs the row of bits of column j, with rows `own`, with the rows of bits of others.

    window: the first row with a bit, and the number of bits. others: (i, its rows, how much is ANDed, look-ups).
    """

    def panels(i="i", rows=(), common=(), written=True):
        yield table
        yield bits(f"column {j}'s row of bits", own, *window, word, REGISTERS, written=written)
        yield bits(f"column {i}'s row of bits", rows, *window, word, GLOBAL)
        yield bits("AND", common, *window, word, REGISTERS, hits=common)

    title = f"{kernel}, column {j}"
    yield builder.frame(title, beginning, panels(), looked=[j], there=own)
    for i, rows, how, lookups in others:
        common = [row for row in rows if row in own]
        caption = f"Column {i}'s row of bits, {how}, AND column {j}'s. Bits that are left: {listed(common)}."
        yield builder.frame(title, caption, panels(i, rows, common, written=False), nonzero=(i, j), there=own,
                            found=[(j, i, k) for k in common], lookups=lookups)  # fmt: skip


class OtherOrder:
    """Local columns, as in `local_kernel`: rows of `words` words of bits, the vertex's own word first. Else merges."""

    def __init__(self, builder, short, words, word):
        self.builder, self.word, self.size = builder, word, words * word
        self.columns = [builder.rows(v) for v in range(builder.graph.n)]
        local = [j for j, rows in enumerate(self.columns) if len(rows) >= short and self.words(j, rows) <= words]
        self.tasks = {"local": local, "merge": [j for j, rows in enumerate(self.columns) if rows and j not in local]}

    def words(self, j, rows):
        """The number of words from column j's first word to the word of the last of these rows."""
        return rows[-1] // self.word - j // self.word + 1

    def overview(self):
        caption = (
            "Neighbours may have close numbers in this order. A column that is long and spans few words, here of "
            f"{self.word} bits, is local."
        )
        return f"{self.builder.graph.order} order", caption, (), {}

    def local(self, j, table):
        """AND the words of column j's row of bits with those of each column i in it."""
        own, word, others = self.columns[j], self.word, []
        for i in own:
            begin, over = i // word * word, self.words(i, own)  # the words in both rows of bits
            rows = [row for row in self.columns[i] if row < begin + self.size]
            others.append((i, rows, f"{counted(over, 'word')} of it, shifted by {begin - j // word * word} bits", over))
        reach = counted(self.words(j, own), "word")
        beginning = f"A warp takes column {j}, which is local: all its rows lie within {reach}, a word a lane."
        window = j // word * word, self.size
        return and_bits(self.builder, "local_kernel", table, j, own, window, word, beginning, others)

    def merge(self, j, table):
        """All nonzeros of column j, each merged by a thread of its own."""
        return merge_each(self.builder, "merge_kernel", self.builder.span(j), table)


class ByDegree:
    """Near vertices, hubs, heavy columns and tasks, as `kernels.adaptive.layout` computes them."""

    def __init__(self, builder, near, hubs, heavy, crowd, word):
        self.builder, self.word, self.near, self.hubs = builder, word, near, hubs
        n = builder.graph.n
        self.first_near, self.first_hub = n - near, n - hubs
        self.columns = [builder.rows(v) for v in range(n)]
        self.far_rows = [[row for row in rows if row < self.first_near] for rows in self.columns]
        self.near_rows = [[row for row in rows if row >= self.first_near] for rows in self.columns]
        self.quads = [["pad"] * (-len(rows) % QUAD) + rows for rows in self.near_rows]  # padded at the front
        heavy = [len(quads) // QUAD > heavy // QUAD for quads in self.quads]
        self.in_edges = [[] for _ in range(n)]  # of i: (j, the quads of column j that have its near rows after i)
        for i, j in builder.ends:
            after = sum(row > i for row in self.near_rows[j])
            begin = (len(self.quads[j]) - after) // QUAD * QUAD if i >= self.first_near else 0
            if self.quads[j][begin:] and not (i >= self.first_hub and heavy[j]):
                self.in_edges[i].append((j, self.quads[j][begin:]))
        order = range(n - 1, -1, -1)  # the last vertices have the most work and come first
        looked_up = [i for i in order if self.in_edges[i] and self.near_rows[i]]
        self.tasks = {
            "hub": [j for j in order if heavy[j]],
            "crowd": [i for i in looked_up if len(self.in_edges[i]) >= crowd],
            "window": [i for i in looked_up if len(self.in_edges[i]) < crowd],
            "far": [j for j in order if len(self.far_rows[j]) > 1],
        }

    def overview(self):
        caption = (
            f"In degree order, the last {self.near} vertices are near the end and have numbers of 16 bits; the last "
            f"{self.hubs} of them are hubs."
        )
        n = self.builder.graph.n
        near, hubs = range(self.first_near, n), range(self.first_hub, n)
        begins = {0: "far", self.first_near: "near the end", self.first_hub: "hubs"}
        panel = cells(
            "the vertices", range(n), "empty", there=near, looked=hubs, memory="", room=n,
            heads={v: text for v, text in begins.items() if v < n}, gaps=(self.first_near - 1, self.first_hub - 1),
        )  # fmt: skip
        return "by degree", caption, (panel,), {"looked": hubs, "there": near}

    def hub(self, j, table):
        """Heavy column j: its hubs as bits; for each hub i in it, hub i's row of bits AND these."""
        own = [row for row in self.columns[j] if row >= self.first_hub]
        beginning = f"A warp takes column {j}, which is heavy: {counted(len(self.near_rows[j]), 'near row')}. "
        beginning += f"Its hubs become bits: {listed(own)}."
        others = [(i, self.columns[i], "all hubs at once", 1) for i in own]
        window = self.first_hub, self.hubs
        return and_bits(self.builder, "hub_kernel", table, j, own, window, self.word, beginning, others)

    def crowd(self, i, table):
        """As `window`, with bytes instead of bits."""
        return self.window(i, table, "crowd", "byte", 0)

    def window(self, i, table, kernel="window", unit="bit", word=None):
        """Vertex i: its near rows as bits, where the rows after i of each column j that has row i are looked up."""
        near, in_edges, word = self.near_rows[i], self.in_edges[i], self.word if word is None else word
        room, title = max(map(len, self.quads)), f"{kernel}_kernel, vertex {i}"

        def panels(label="column j", quads=(), at=0, keys=()):
            now, hits = range(at, min(at + QUAD, len(quads))), [row for row in keys if row in near]
            yield table
            yield bits(f"column {i}'s near rows as {unit}s", near, self.first_near, self.near, word, SHARED, keys=keys,
                       hits=hits)  # fmt: skip
            yield cells(label, quads, done=range(at), looked=now, hit=[k for k in now if quads[k] in hits],
                        gaps=tuple(range(QUAD - 1, len(quads) - 1, QUAD)), room=room)  # fmt: skip

        beginning = (
            f"A block takes vertex {i} with its {counted(len(in_edges), 'in-edge')}. The near rows of column {i}, "
            f"{listed(near)}, become {unit}s. Then the rows after {i} of the columns with row {i} are looked up."
        )
        if unit == "byte":
            beginning += " There are many look-ups, and reading a byte takes fewer instructions than a bit."
        yield self.builder.frame(title, beginning, panels(), looked=[i], there=near)
        for j, quads in in_edges:
            for at in range(0, len(quads), QUAD):
                four = quads[at : at + QUAD]
                keys = [row for row in four if row != "pad"]
                caption = f"Column {j} has row {i}: four look-ups at a time, {listed(four)}."
                if min(keys) <= i or len(keys) < QUAD:
                    caption += f" Pads, and rows up to {i}, only fill the four: column {i} has no such row."
                shown = panels(f"column {j}, the part with the rows after {i}", quads, at, keys)
                yield self.builder.frame(
                    title, caption, shown, nonzero=(i, j), there=keys, edges=[(k, j) for k in keys if k > i],
                    found=[(j, i, k) for k in keys if k in near], lookups=QUAD,
                )  # fmt: skip

    def far(self, j, table):
        """Column j: its far rows, merged with those of column i for each of its rows i, by a thread per nonzero."""
        nonzeros = self.builder.span(j, self.first_near)[:-1]
        return merge_each(self.builder, "far_kernel", nonzeros, table, self.first_near)


def merge_each(builder, kernel, nonzeros, table, below=None):
    """Merge the rows below `below` for each of these nonzeros, with a thread for each."""
    for e in nonzeros:
        i, j = builder.ends[e]
        yield from merge(builder, f"{kernel}, nonzero ({i}, {j})", f"A thread takes nonzero ({i}, {j}).", e,
                         front=(table,), below=below)  # fmt: skip
