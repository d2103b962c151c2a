"""`levels`: levels of a breadth-first search, two adjacent ones as a bit matrix, every combination tested by bits."""

import numpy as np

from tcgpu.lab.stepper.frames import SHARED, Cells, Matrix, counted, listed, looks
from tcgpu.lab.stepper.vertex_positions import BOX
from tcgpu.levels import split


def levels(recorder, *, skip=False):
    """A frame a level, a frame for each chunk's bits, then one for all combinations with the same first two vertices.

    With `skip`, all combinations of two vertices that are not joined are passed over at once.
    """
    chunks = cut(recorder.scene.graph)
    yield from _searched(recorder, chunks)
    for c in range(len(chunks)):
        chunk = _Chunk(recorder, chunks, c)
        yield chunk.written()
        for i in range(chunk.first):
            for j in range(i + 1, len(chunk.vertices) - 1):
                yield chunk.tested(i, j, skip)


def cut(graph):
    """The chunks that the kernel has of a small graph: of every component from its first vertex on."""
    return split(graph, shared_bits=8 * 48 * 1024, machines=1, roots=1)


def level_of(chunks):
    """The level in its component of each vertex, as the split lists them."""
    sizes = np.diff(chunks.level_ptr)
    number = np.repeat(np.arange(sizes.size), sizes)
    begins = np.isin(chunks.order, chunks.roots)  # a component begins with its root
    return number - number[begins][np.cumsum(begins) - 1]


def points(graph):
    """A point a vertex, in inches: levels from the top down, a level's vertices side by side on an arc."""
    chunks = cut(graph)
    level = level_of(chunks)
    deepest = level.max(initial=0) + 1
    found = np.zeros((graph.n, 2))
    for depth in range(deepest):
        here = chunks.order[level == depth]
        across = (np.arange(here.size) + 0.5) / here.size
        bent = (here.size > 2) * 0.45 * ((2 * across - 1) ** 2 - 0.5)  # so that edges inside a level show, too
        found[here] = np.stack([across, 1 - (depth + 0.5 + bent) / deepest], axis=1)
    return found * BOX


def _searched(recorder, chunks):
    """The levels of all components, side by side: a frame a level."""
    level = level_of(chunks)
    every = [chunks.order[level == depth].tolist() for depth in range(level.max(initial=-1) + 1)]
    for depth, here in enumerate(every):
        if depth == 0:
            roots = f"vertex {here[0]}" if len(here) == 1 else f"vertices {listed(here)}, one in each component"
            caption = f"A breadth-first search begins at {roots}: that is level 0."
        else:
            caption = f"Level {depth} is what is joined to level {depth - 1} and was not reached before: "
            caption += f"{counted(len(here), 'vertex')}.".replace("vertexs", "vertices")
        panels = []
        for number, vertices in enumerate(every):
            shown = tuple(vertices) if number <= depth else ()
            seen = looks(len(shown), "looked" if number == depth else "there")
            panels.append(Cells(f"level {number}", shown, seen, memory="", room=len(vertices), marked=False))
        there = [v for vertices in every[:depth] for v in vertices]
        yield recorder.frame(f"level {depth}", caption, panels, looked=here, there=there)


class _Chunk:
    """One chunk: its matrix, and its combinations. Its vertices are numbered 0, 1, ... from its first level on."""

    def __init__(self, recorder, chunks, c):
        self.recorder, self.tests = recorder, int(chunks.tests[c])
        self.vertices, self.first = chunks.vertices(c).tolist(), int(chunks.first[c])
        self.largest = int(chunks.size.max())
        place = {v: p for p, v in enumerate(self.vertices)}
        edges = zip(*(end.tolist() for end in recorder.scene.graph.edges()))
        self.bits = {tuple(sorted((place[v], place[w]))) for v, w in edges if v in place and w in place}
        level = int(chunks.level[c])
        deepest = max(level_of(chunks)[chunks.start[c] : chunks.start[c] + chunks.size[c]])
        self.whose = f"levels {level} and {deepest}" if deepest > level else f"level {level}"

    def written(self):
        size = len(self.vertices)
        caption = (
            f"The {size} vertices of {self.whose} are a chunk. A block writes its {counted(len(self.bits), 'edge')} "
            f"as bits above the diagonal of a matrix: {size * (size - 1) // 2} bits in shared memory. Then it tests "
            f"{counted(self.tests, 'combination')} of three vertices: those that begin with one of the first "
            f"{self.first}."
        )
        panels = [self._matrix(dict.fromkeys(self.bits, "looked"))]
        return self.recorder.frame(f"chunk of {self.whose}", caption, panels, looked=self.vertices)

    def tested(self, i, j, skip):
        """The combinations of i < j and all k past j: the lanes take neighbouring ones."""
        bits, v = self.bits, self.vertices
        ks = range(j + 1, len(v))
        joined = (i, j) in bits
        passed = skip and not joined
        here = [k for k in ks if {(i, j), (i, k), (j, k)} <= bits]
        asked = {(i, j)} if passed else {(i, j), *((p, k) for k in ks for p in (i, j))}
        seen = (
            dict.fromkeys(bits, "there") | dict.fromkeys(asked - bits, "miss") | dict.fromkeys(asked & bits, "looked")
        )
        seen |= {bit: "hit" for k in here for bit in ((i, j), (i, k), (j, k))}
        third = counted(len(ks), "combination")
        if passed:
            caption = f"Vertices {v[i]} and {v[j]} are not joined: all {third} of them and a third one are passed over."
        else:
            caption = f"Vertices {v[i]} and {v[j]} with each that follows: {third}, three bits of each are looked at. "
            if here:
                caption += f"All three are set for {listed(v[k] for k in here)}."
            else:
                caption += (
                    "Never are all three set." if joined else "The first says already that the two are not joined."
                )
        return self.recorder.frame(
            f"chunk of {self.whose}: {v[i]}, {v[j]} and a third", caption, [self._matrix(seen)],
            looked=(v[i], v[j]), there=v, edges=[(v[i], v[j])] * joined,
            found=[tuple(sorted((v[i], v[j], v[k]))) for k in here], lookups=0 if passed else len(ks),
        )  # fmt: skip

    def _matrix(self, seen):
        vertices, places = tuple(self.vertices), range(len(self.vertices))
        cells = tuple(tuple(seen.get((p, q), "empty") if p < q else "" for q in places) for p in places)
        label = "the chunk's bits, a row and a column a vertex"
        return Matrix(label, vertices, vertices, cells, SHARED, room=(self.largest, self.largest))
