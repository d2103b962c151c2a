"""`levels`: two adjacent levels of a breadth-first search as a bit matrix; every combination is tested by its bits."""

import numpy as np

from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.lab.stepper.frames import SHARED, Matrix, cells, counted, listed
from tcgpu.lab.stepper.vertex_positions import BOX


def levels(builder, *, skip=False):
    """A frame per level, one for each chunk's bits, then one for all combinations with the same first two vertices.

    skip: whether all combinations of two vertices that are not joined are skipped at once.
    """
    chunks = split_small(builder.graph)
    yield from search_levels(builder, chunks)
    for c in range(len(chunks)):
        chunk = _Chunk(builder, chunks, c)
        yield chunk.write()
        for i in range(chunk.first):
            for j in range(i + 1, len(chunk.vertices) - 1):
                yield chunk.test(i, j, skip)


def split_small(graph):
    """The chunks that the kernel makes of a small graph: of every component from its first vertex on."""
    return split(graph, shared_bits=8 * 48 * 1024, machines=1, roots=1)


def level_of(chunks):
    """The level of each vertex in its component, in the order of `chunks.order`."""
    sizes = np.diff(chunks.level_ptr)
    number = np.repeat(np.arange(sizes.size), sizes)
    begins = np.isin(chunks.order, chunks.roots)  # a component begins with its root
    return number - number[begins][np.cumsum(begins) - 1]


def vertices_by_level(chunks):
    """The vertices of each level, of all components together."""
    level = level_of(chunks)
    return [chunks.order[level == depth] for depth in range(level.max(initial=-1) + 1)]


def level_points(graph):
    """A point per vertex, in inches: levels from the top down, the vertices of a level side by side on an arc."""
    found, every = np.zeros((graph.n, 2)), vertices_by_level(split_small(graph))
    for depth, here in enumerate(every):
        across = (np.arange(here.size) + 0.5) / here.size
        bent = (here.size > 2) * 0.45 * ((2 * across - 1) ** 2 - 0.5)  # so that edges inside a level can be seen
        found[here] = np.stack([across, 1 - (depth + 0.5 + bent) / len(every)], axis=1)
    return found * BOX


def search_levels(builder, chunks):
    """The levels of all components, side by side: a frame per level."""
    every = [vertices.tolist() for vertices in vertices_by_level(chunks)]
    for depth, here in enumerate(every):
        if depth == 0:
            roots = f"vertex {here[0]}" if len(here) == 1 else f"vertices {listed(here)}, one in each component"
            caption = f"A breadth-first search begins at {roots}: that is level 0."
        else:
            size = "vertex" if len(here) == 1 else f"{len(here)} vertices"
            caption = f"Level {depth}: the {size} joined to level {depth - 1} and not reached before."
        panels = [
            cells(f"level {number}", vertices if number <= depth else (), "looked" if number == depth else "there",
                  memory="", room=len(vertices))
            for number, vertices in enumerate(every)
        ]  # fmt: skip
        there = [v for vertices in every[:depth] for v in vertices]
        yield builder.frame(f"level {depth}", caption, panels, looked=here, there=there)


class _Chunk:
    """One chunk: its matrix, and its combinations. Its vertices are numbered 0, 1, ... from its first level on."""

    def __init__(self, builder, chunks, c):
        self.builder, self.tests = builder, int(chunks.tests[c])
        self.vertices, self.first = chunks.vertices(c).tolist(), int(chunks.first[c])
        self.largest = int(chunks.size.max())
        number = {v: k for k, v in enumerate(self.vertices)}
        edges = zip(*(end.tolist() for end in builder.graph.edges()))
        self.bits = {tuple(sorted((number[v], number[w]))) for v, w in edges if v in number and w in number}
        level = int(chunks.level[c])
        deepest = max(level_of(chunks)[chunks.start[c] : chunks.start[c] + chunks.size[c]])
        self.name = f"levels {level} and {deepest}" if deepest > level else f"level {level}"

    def write(self):
        size = len(self.vertices)
        caption = (
            f"The {size} vertices of {self.name} are a chunk. A block writes its {counted(len(self.bits), 'edge')} "
            f"as bits above the diagonal of a matrix: {size * (size - 1) // 2} bits in shared memory. Then it tests "
            f"{counted(self.tests, 'combination')} of three vertices: those that begin with one of the first "
            f"{self.first}."
        )
        panels = [self._matrix(dict.fromkeys(self.bits, "looked"))]
        return self.builder.frame(f"chunk of {self.name}", caption, panels, looked=self.vertices)

    def test(self, i, j, skip):
        """The combinations of i < j and all k past j: the lanes take neighbouring ones."""
        v, last = self.vertices, range(j + 1, len(self.vertices))
        joined = (i, j) in self.bits
        skipped = skip and not joined
        closed = [k for k in last if {(i, j), (i, k), (j, k)} <= self.bits]
        tested = {(i, j)} if skipped else {(i, j), *((p, k) for k in last for p in (i, j))}
        looks = dict.fromkeys(self.bits, "there") | {bit: "looked" if bit in self.bits else "miss" for bit in tested}
        looks |= {bit: "hit" for k in closed for bit in ((i, j), (i, k), (j, k))}
        tests = counted(len(last), "combination")
        if skipped:
            caption = f"Vertices {v[i]} and {v[j]} are not joined: their {tests} with a third one are not tested."
        else:
            caption = f"Vertices {v[i]} and {v[j]} with each later one: {tests}, three bits each. "
            if closed:
                caption += f"All three are set for {listed(v[k] for k in closed)}."
            elif joined:
                caption += "None has all three set."
            else:
                caption += "The first bit says that these two are not joined."
        return self.builder.frame(
            f"chunk of {self.name}: {v[i]}, {v[j]} and a third", caption, [self._matrix(looks)],
            looked=(v[i], v[j]), there=v, edges=[(v[i], v[j])] * joined,
            found=[tuple(sorted((v[i], v[j], v[k]))) for k in closed], lookups=0 if skipped else len(last),
        )  # fmt: skip

    def _matrix(self, looks):
        vertices, numbers = tuple(self.vertices), range(len(self.vertices))
        lines = tuple(tuple(looks.get((p, q), "empty") if p < q else "" for q in numbers) for p in numbers)
        label = "the chunk's bits, a row and a column a vertex"
        return Matrix(label, vertices, vertices, lines, SHARED, room=(self.largest, self.largest))
