"""`adaptive` in degree order: which kernel takes which vertex, and what each of them does.

The classes are those of the kernels, made for small graphs by small knobs: `near` and `hubs` vertices at the end,
columns of more than `heavy` near rows, vertices in `crowd` columns or more, columns of `short` far rows or more. The
first panel says which kernel takes which vertex, and how far they have come.
"""

from tcgpu.kernels.adaptive.setup import EMPTY, GOLDEN
from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, SHARED, Cells, Matrix, bits, counted, listed, looks, where
from tcgpu.lab.stepper.merge_steps import Merge, two_pointers

QUAD = 4  # near numbers that are read at a time
SMALLEST_TABLE = 8


def by_degree(recorder, classes, word):
    """Every kernel's tasks, one after the other."""
    yield ordered(recorder, classes)
    plays = {"hub": _Hub, "crowd": _Window, "window": _Window, "hash": _Hash, "far": _Far}
    done = []
    for kernel, tasks in classes.tasks.items():
        for task in reversed(tasks):  # the last vertices have most to do and come first
            table = taken(classes.graph, classes.tasks, done, (kernel, task))
            yield from plays[kernel](recorder, classes, task, table, kernel, word).played()
            done.append((kernel, task))


class Classes:
    """Which vertex or column is whose, and what there is to do, as `setup` lays it out."""

    def __init__(self, graph, near, hubs, heavy, crowd, short):
        self.graph, self.near, self.hubs = graph, near, hubs
        self.base, self.first_hub = graph.n - near, graph.n - hubs
        columns = [graph.column(v).tolist() for v in range(graph.n)]
        self.far = [[row for row in rows if row < self.base] for rows in columns]
        self.near_rows = [[row for row in rows if row >= self.base] for rows in columns]
        self.quads = [[None] * (-len(rows) % QUAD) + rows for rows in self.near_rows]  # pads at the front
        self.heavy = [len(quads) // QUAD > heavy // QUAD for quads in self.quads]
        self.in_edges = [[] for _ in columns]  # of i: (j, as many quads of column j as have all near rows after i)
        for i, j in zip(*(end.tolist() for end in graph.edges())):
            after = sum(row > i for row in self.near_rows[j])
            begin = (len(self.quads[j]) - after) // QUAD * QUAD if i >= self.base else 0
            if self.quads[j][begin:] and not (i >= self.first_hub and self.heavy[j]):
                self.in_edges[i].append((j, self.quads[j][begin:]))
        asked = [i for i in range(graph.n) if self.in_edges[i] and self.near_rows[i]]
        self.tasks = {
            "hub": [j for j in range(graph.n) if self.heavy[j]],
            "crowd": [i for i in asked if len(self.in_edges[i]) >= crowd],
            "window": [i for i in asked if len(self.in_edges[i]) < crowd],
            "hash": [j for j in range(graph.n) if len(self.far[j]) >= short],
            "far": [j for j in range(graph.n) if 1 < len(self.far[j]) < short],
        }


def taken(graph, tasks, done=(), now=None):
    """Which kernel has work for which vertex: what is done, and what is at work now."""
    seen = {(kernel, v): "there" for kernel, vertices in tasks.items() for v in vertices}
    seen |= dict.fromkeys(done, "done") | dict.fromkeys([now] if now else [], "looked")
    every = tuple(range(graph.n))
    cells = tuple(tuple(seen.get((kernel, v), "") for v in every) for kernel in tasks)
    return Matrix("which kernel takes which vertex", tuple(tasks), every, cells, memory="")


def ordered(recorder, classes):
    graph = classes.graph
    some = [f"{kernel}_kernel {len(tasks)}" for kernel, tasks in classes.tasks.items() if tasks]
    caption = (
        f"In degree order, the last {classes.near} vertices are near the end and have numbers of 16 bits; the last "
        f"{classes.hubs} of them are hubs. {f'Vertices taken by {listed(some)}.' if some else 'No kernel has work.'}"
    )
    hubs, near = range(classes.first_hub, graph.n), range(classes.base, graph.n)
    begins = {0: "far", classes.base: "near the end", classes.first_hub: "hubs"}
    cells = Cells(
        "the vertices", tuple(range(graph.n)), looks(graph.n, "empty", there=near, looked=hubs), memory="",
        heads={v: text for v, text in begins.items() if v < graph.n}, gaps=(classes.base - 1, classes.first_hub - 1),
        room=graph.n, marked=False,
    )  # fmt: skip
    return recorder.frame("by degree", caption, (taken(graph, classes.tasks), cells), looked=hubs, there=near)


class _Task:
    """What one kernel does for one vertex."""

    def __init__(self, recorder, classes, task, table, kernel, word):
        self.recorder, self.classes, self.graph, self.table = recorder, classes, classes.graph, table
        self.kernel, self.word, self.vertex = kernel, word, task
        self.title = f"{kernel}_kernel, {'vertex' if kernel in ('crowd', 'window') else 'column'} {task}"

    def list_cells(self, label, rows, seen, gaps=(), room=None):
        room = room or self.graph.max_column
        return Cells(label, tuple(rows), seen, GLOBAL, gaps=gaps, room=room, marked=False)


class _Hub(_Task):
    """Heavy column j: its hubs as bits; for each hub i in it, hub i's row of bits AND these."""

    def played(self):
        j, first = self.vertex, self.classes.first_hub
        self.own = [row for row in self.graph.column(j).tolist() if row >= first]
        near = counted(len(self.classes.near_rows[j]), "near row")
        then = (
            f"Its hubs, {listed(self.own)}, become bits." if self.own else "It has no hub, so there is nothing to do."
        )
        caption = f"A warp takes column {j}, which is heavy: {near}. {then}"
        yield self.recorder.frame(self.title, caption, self.panels(), looked=[j], there=self.own)
        for i in self.own:
            common = [k for k in self.graph.column(i).tolist() if k in self.own]
            left = f"The bits of {listed(common)} are left." if common else "No bit is left."
            caption = f"Hub {i}: its row of bits AND column {j}'s, all hubs at once. {left}"
            yield self.recorder.frame(self.title, caption, self.panels(i, common), nonzero=(i, j), there=self.own,
                                      found=[(j, i, k) for k in common], lookups=1)  # fmt: skip

    def panels(self, i=None, common=()):
        room = self.classes.first_hub, self.classes.hubs, self.word
        rows = [] if i is None else self.graph.column(i).tolist()
        look = "looked" if i is None else "there"
        label = "a hub's row of bits" if i is None else f"hub {i}'s row of bits"
        return (
            self.table,
            bits(f"column {self.vertex}'s hubs", self.own, *room, REGISTERS, look=look),
            bits(label, rows, *room, GLOBAL),
            bits("AND", common, *room, REGISTERS, hits=common),
        )


class _Window(_Task):
    """Vertex i: column i's near rows as bits, or bytes, looked up for what follows i in each column j that holds it."""

    def played(self):
        i, classes = self.vertex, self.classes
        self.near, self.what = classes.near_rows[i], "byte" if self.kernel == "crowd" else "bit"
        self.longest = max(len(quads) for quads in classes.quads)
        in_edges = classes.in_edges[i]
        many = f"{counted(len(in_edges), 'in-edge')}, {counted(len(in_edges), 'column')} with row {i}"
        why = ": there is a crowd to ask, and a byte takes fewer instructions than a bit" if self.what == "byte" else ""
        caption = (
            f"A block takes vertex {i} with its {many}. The near rows of column {i}, {listed(self.near)}, "
            f"become {self.what}s{why}. Then what follows {i} in these columns is looked up."
        )
        yield self.recorder.frame(self.title, caption, self.panels(), looked=[i], there=self.near)
        for j, quads in in_edges:
            for at in range(0, len(quads), QUAD):
                yield self._four(j, quads, at)

    def _four(self, j, quads, at):
        i = self.vertex
        asked = [row for row in quads[at : at + QUAD] if row is not None]
        rest, pads = [row for row in asked if row <= i], QUAD - len(asked)
        padding = ["a pad" if pads == 1 else f"{pads} pads"] if pads else []
        caption = f"Column {j} has row {i}: four look-ups at a time, {listed([*asked, *padding])}."
        if rest or pads:
            filling = f"{listed([*rest, *padding])} {'is' if len(rest) + pads == 1 else 'are'}"
            caption += f" {filling[0].upper()}{filling[1:]} there to fill the four: column {i} has no such row."
        found = [(j, i, k) for k in asked if k in self.near]
        return self.recorder.frame(
            self.title, caption, self.panels(j, quads, at, asked), nonzero=(i, j), there=asked,
            edges=[(k, j) for k in asked if k > i], found=found, lookups=QUAD,
        )  # fmt: skip

    def panels(self, j=None, quads=(), at=0, asked=()):
        i, classes = self.vertex, self.classes
        hits = [row for row in asked if row in self.near]
        now = range(at, min(at + QUAD, len(quads)))
        seen = looks(len(quads), done=range(at), looked=now, hit=[k for k in now if quads[k] in hits])
        shown = ["pad" if row is None else row for row in quads]
        return (
            self.table,
            bits(f"column {i}'s near rows as {self.what}s", self.near, classes.base, classes.near,
                 self.word if self.what == "bit" else 0, SHARED, asked=asked, hits=hits),
            self.list_cells("column j" if j is None else f"column {j}, the part with what follows row {i}", shown, seen,
                            gaps=tuple(range(QUAD - 1, len(quads) - 1, QUAD)), room=self.longest),
        )  # fmt: skip


class _Hash(_Task):
    """Column j: its far rows in a hash table, looked up for the far rows of each column that they name."""

    def played(self):
        j, rows = self.vertex, self.classes.far[self.vertex]
        self.slots = hash_table(rows)
        caption = f"A block takes column {j} and puts its {len(rows)} far rows, too many to merge, into a hash table."
        yield self.recorder.frame(self.title, caption, self.panels(), looked=[j], there=rows)
        for i in rows:
            for at, k in enumerate(self.classes.far[i]):
                probed = probes(self.slots, k)
                there = self.slots[probed[-1]] == k
                caption = f"Row {k} of column {i} is looked up at place {listed(probed)}: "
                caption += "there it is." if there else f"an empty place, so that column {j} does not have it."
                panels = self.panels(i, at, probed, there)
                yield self.recorder.frame(self.title, caption, panels, nonzero=(i, j), there=[k], edges=[(k, i)],
                                          found=[(j, i, k)] * there, lookups=1)  # fmt: skip

    def panels(self, i=None, at=None, probed=(), there=False):
        full = [place for place, row in enumerate(self.slots) if row != EMPTY]
        last = probed[-1:] if there else ()
        seen = looks(
            len(self.slots), "empty", there=full, miss=set(probed) - set(full), looked=set(probed) & set(full), hit=last
        )
        heads = {place: str(place) for place in range(len(self.slots))}
        values = tuple("" if row == EMPTY else row for row in self.slots)
        rows = [] if i is None else self.classes.far[i]
        here = [] if at is None else [at]
        return (
            self.table,
            Cells(f"column {self.vertex}'s far rows in a hash table", values, seen, SHARED, heads, room=len(values),
                  marked=False),
            self.list_cells("column i's far rows" if i is None else f"column {i}'s far rows", rows,
                            looks(len(rows), done=range(at or 0), looked=here, hit=here if there else ())),
        )  # fmt: skip


def hash_table(rows):
    """The rows in a table of at least two places each, as hash_kernel puts them there; EMPTY where none is."""
    size = SMALLEST_TABLE
    while size < 2 * len(rows):
        size *= 2
    slots = [EMPTY] * size
    for row in rows:
        slots[probes(slots, row)[-1]] = row
    return slots


def probes(slots, row):
    """The places where a row is looked for, up to the one that has it or is empty."""
    place = (row * GOLDEN & 0xFFFFFFFF) >> (33 - len(slots).bit_length())
    probed = [place]
    while slots[place] not in (EMPTY, row):
        place = (place + 1) % len(slots)
        probed.append(place)
    return probed


class _Far(_Task):
    """Column j: its far rows merged with those of each column that they name, a thread a nonzero."""

    def played(self):
        j, far = self.vertex, self.classes.far
        begin = int(self.graph.col_ptr[j])
        for e in range(begin, begin + len(far[j]) - 1):
            merge = _FarMerge(self, e)
            i, _ = merge.nonzero
            title = f"far_kernel, nonzero ({i}, {j})"
            caption = f"A thread takes nonzero ({i}, {j}) and merges far rows. {merge.beginning()}"
            yield self.recorder.frame(title, caption, merge.panels(), nonzero=(i, j))
            yield from two_pointers(self.recorder, title, merge)


class _FarMerge(Merge):
    """A Merge of far rows."""

    def __init__(self, task, e):
        super().__init__(task.graph, e)
        self.task, self.far = task, task.classes.far
        i, j = self.nonzero
        self.of_j, self.of_i = self.far[j][self.behind :], self.far[i]

    def panels(self, p=None, q=None, hits=()):
        i, j = self.nonzero
        return (
            self.task.table,
            self.cells(j, None if p is None else self.behind + p, "p", hits, self.behind),
            self.cells(i, q, "q", hits),
        )

    def cells(self, v, at, mark, hits, begin=0):
        rows, here = self.far[v], [] if at is None else [at]
        seen = looks(len(rows), done=range(max([begin, *here])), looked=here, hit=where(rows, hits, begin))
        return Cells(
            f"column {v}'s far rows", tuple(rows), seen, marks=dict.fromkeys(here, mark), room=self.graph.max_column
        )
