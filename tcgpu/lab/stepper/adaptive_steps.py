"""`adaptive`: by degree, every vertex in the way that suits it (see `by_degree`); else local columns, and merges.

A local column is long and all of its rows are within a few words of it: rows of bits lie one over the other, word AND
word. All other columns are merged.
"""

from tcgpu.lab.stepper.adaptive_degree_steps import Classes, by_degree, taken
from tcgpu.lab.stepper.frames import GLOBAL, REGISTERS, bits, counted, listed
from tcgpu.lab.stepper.merge_steps import Merge, two_pointers


def adaptive(recorder, *, near=12, hubs=6, heavy=4, crowd=4, short=3, words=2, word=8):
    """The knobs are `adaptive`'s own, made for small graphs; a word has `word` bits, 64 on a GPU."""
    graph = recorder.scene.graph
    if graph.order == "degree":
        near = min(near, graph.n)
        return by_degree(recorder, Classes(graph, near, min(hubs, near), heavy, crowd, short), word)
    return as_it_comes(recorder, Local(graph, short, words, word))


class Local:
    """Which columns are local, as in `local_kernel`, and their rows of bits: so many words, the vertex's own first."""

    def __init__(self, graph, short, words, word):
        self.graph, self.words, self.word = graph, words, word
        columns = [graph.column(v).tolist() for v in range(graph.n)]
        local = [j for j in range(graph.n) if len(columns[j]) >= short and self.reach(j) <= words]
        self.tasks = {"local": local, "merge": [j for j in range(graph.n) if columns[j] and j not in local]}
        self.bits = [[row for row in rows if row < self.begin(v) + words * word] for v, rows in enumerate(columns)]

    def begin(self, v):
        """The vertex that the first bit of v's row stands for."""
        return v // self.word * self.word

    def reach(self, j):
        """Over how many words column j reaches."""
        return (int(self.graph.column(j)[-1]) - self.begin(j)) // self.word + 1


def as_it_comes(recorder, local):
    graph, done = local.graph, []
    some = [f"{kernel}_kernel {len(tasks)}" for kernel, tasks in local.tasks.items() if tasks]
    caption = (
        "Neighbours may have close numbers in this order. A column that is long and reaches over few words, here of "
        f"{local.word} bits, is local. {f'Columns taken by {listed(some)}.' if some else 'No column has a row.'}"
    )
    yield recorder.frame(f"{graph.order} order", caption, (taken(graph, local.tasks),))
    for kernel, play in (("local", _words), ("merge", _merges)):
        for j in local.tasks[kernel]:
            yield from play(recorder, local, j, taken(graph, local.tasks, done, (kernel, j)))
            done.append((kernel, j))


def _words(recorder, local, j, table):
    """Local column j: the words of its row of bits AND those of each column i in it."""
    own, begin, reach = local.bits[j], local.begin(j), local.reach(j)
    title = f"local_kernel, column {j}"
    room = begin, local.words * local.word, local.word

    def panels(i=None, common=()):
        shift = 0 if i is None else local.begin(i) - begin
        label = "column i's row of bits" if i is None else f"column {i}'s row of bits, shifted by {shift}"
        return (
            table,
            bits(f"column {j}'s row of bits", own, *room, REGISTERS, look="looked" if i is None else "there"),
            bits(label, [] if i is None else local.bits[i], *room, GLOBAL),
            bits("AND", common, *room, REGISTERS, hits=common),
        )

    caption = (
        f"A warp takes column {j}, which is local: all its rows lie within {counted(reach, 'word')}, a word a lane."
    )
    yield recorder.frame(title, caption, panels(), looked=[j], there=own)
    for i in own:
        over = reach - (local.begin(i) - begin) // local.word  # words that lie one over the other
        common = [row for row in local.bits[i] if row in own]
        left = f"The bits of {listed(common)} are left." if common else "No bit is left."
        caption = f"Column {i}'s row of bits, {counted(over, 'word')} of it, over column {j}'s: word AND word. {left}"
        yield recorder.frame(title, caption, panels(i, common), nonzero=(i, j), there=own,
                             found=[(j, i, k) for k in common], lookups=over)  # fmt: skip


def _merges(recorder, local, j, table):
    """All nonzeros of column j, each merged by a thread of its own."""
    col_ptr = local.graph.col_ptr
    for e in range(int(col_ptr[j]), int(col_ptr[j + 1])):
        merge = _Merge(local.graph, e, table)
        i, _ = merge.nonzero
        title = f"merge_kernel, nonzero ({i}, {j})"
        yield recorder.frame(
            title, f"A thread takes nonzero ({i}, {j}). {merge.beginning()}", merge.panels(), nonzero=(i, j)
        )
        yield from two_pointers(recorder, title, merge)


class _Merge(Merge):
    """A Merge under the table of kernels and vertices."""

    def __init__(self, graph, e, table):
        super().__init__(graph, e)
        self.table = table

    def panels(self, p=None, q=None, hits=()):
        return self.table, *super().panels(p, q, hits)[:-1]
