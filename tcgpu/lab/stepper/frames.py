"""What the stepper shows, as plain data: a `Frame` per step, made of panels of a few kinds. Nothing here draws.

Every cell, vertex and bit of a frame has a *look*, which means the same everywhere:

    there    stored here
    looked   read in this step
    miss     looked up in this step, and not there
    hit      part of a triangle
    done     no longer needed
    empty    nothing is stored here
"""

from dataclasses import dataclass, field

import numpy as np

from tcgpu.graph import Graph

LOOKS = ("there", "done", "looked", "miss", "hit", "empty")
GLOBAL, SHARED, REGISTERS = "global memory", "shared memory", "registers"


@dataclass(frozen=True)
class Cells:
    """A line of cells: a column, a range of memory, bits. With a `tree`, a search tree above them.

    heads: position -> text above the cell. marks: position -> text below it; None where no frame has any. gaps: the
    positions after which a gap is drawn. room: the most cells that such a panel has, so that it keeps its size.
    """

    label: str
    values: tuple
    looks: tuple
    memory: str = GLOBAL
    heads: dict = field(default_factory=dict)
    marks: dict | None = None
    gaps: tuple = ()
    room: int = 0
    tree: object = None


@dataclass(frozen=True)
class Tree:
    """A search tree over cells: complete, level by level, left to right; the top `cached` levels in shared memory."""

    nodes: tuple  # (level, position of the cell that the node stands for)
    looks: tuple
    lanes: tuple  # the lanes at each node, as text
    cached: int
    levels: int  # of the deepest tree that the panel has room for


@dataclass(frozen=True)
class Matrix:
    """Rows and columns of cells: a bit matrix, or the grid of a merge. `looks[r][c]` is "" where there is no cell.

    paths: lines along the borders of cells, each a list of (row, column) corners. cuts: diagonals, by the number of
    steps from the upper left corner. dots: (row, column) corner -> text. room: the most rows and columns.
    """

    label: str
    rows: tuple
    columns: tuple
    looks: tuple
    memory: str = GLOBAL
    paths: tuple = ()
    cuts: tuple = ()
    dots: dict = field(default_factory=dict)
    room: tuple = (0, 0)


@dataclass(frozen=True)
class Strip:
    """A whole array in small: `size` elements, parts that begin at `starts`, and which of them are highlighted."""

    label: str
    size: int
    starts: tuple
    parts: tuple = ()
    looked: tuple = ()


@dataclass(frozen=True)
class Lower:
    """The strictly lower triangular matrix L in small: highlighted columns, and the looks of nonzeros."""

    columns: tuple
    looks: dict = field(default_factory=dict)  # (i, j) -> look
    label: str = "L"


@dataclass(frozen=True)
class Scene:
    """What all frames share: the graph in the method's order, and a point per vertex in inches."""

    graph: Graph
    method: str
    unit: str  # what `lookups` counts
    points: np.ndarray


@dataclass(frozen=True)
class Frame:
    """One step."""

    scene: Scene
    title: str
    caption: str
    panels: tuple
    triangles: tuple  # (j, i, k), j < i < k: all found so far
    new: int  # how many of them, the last ones, this step found
    lookups: int  # so far
    vertices: dict  # vertex -> look, of highlighted ones
    edges: tuple  # highlighted ones, pairs of vertices


class FrameBuilder:
    """Makes the frames of a scene, and the panels that most methods share; adds up triangles and look-ups."""

    def __init__(self, scene):
        self.scene, self.graph = scene, scene.graph
        self.triangles, self.lookups = [], 0

    def frame(self, title, caption, panels, *, nonzero=(), looked=(), there=(), edges=(), found=(), lookups=0):
        """The next frame; triangles `found` in this step and its look-ups are added to the totals.

        nonzero: the (i, j) that is worked on, if any; looked, there, edges: other vertices and edges to highlight.
        """
        self.triangles += found
        self.lookups += int(lookups)
        looked = {*nonzero, *looked}
        corners = {v for triangle in found for v in triangle}
        vertices = dict.fromkeys(there, "there") | dict.fromkeys(looked, "looked")
        vertices |= dict.fromkeys(corners - looked, "hit")
        if nonzero:
            edges = (nonzero, *edges)
        return Frame(self.scene, title, caption + triangles_text(found), tuple(panels), tuple(self.triangles),
                     len(found), self.lookups, vertices, tuple(edges))  # fmt: skip

    def ends(self, e):
        """Row and column of nonzero e."""
        return int(self.graph.row_idx[e]), int(self.graph.col_of[e])

    def column(self, v, label, at=None, mark="", hits=(), begin=0):
        """Column v as cells with a pointer; an empty line where v is None. See `pointed`."""
        rows = () if v is None else self.graph.column(v).tolist()
        return self.pointed(label, rows, at, mark, hits, begin)

    def pointed(self, label, rows, at=None, mark="", hits=(), begin=0):
        """Sorted rows with a pointer at position `at`; what is before it, or before position `begin`, is done."""
        here = [] if at is None else [at]
        done = range(max([begin, *here]))
        return cells(label, rows, done=done, looked=here, hit=positions(rows, hits, begin),
                     marks=dict.fromkeys(here, mark), room=self.graph.max_column)  # fmt: skip

    def row_idx(self, columns, read=()):
        """The array `row_idx`: these columns and the elements that are read are highlighted."""
        begins = self.graph.col_ptr.tolist()
        parts = tuple((begins[v], begins[v + 1]) for v in columns)
        return Strip("row_idx", self.graph.m, tuple(begins[:-1]), parts, tuple(read))


def cells(label, values, look="there", *, there=(), done=(), looked=(), miss=(), hit=(), **more):
    """Cells with these values, all of one look except at the positions given by look; `more`: other fields of Cells."""
    looks = [look] * len(values)
    for other, at in zip(LOOKS, (there, done, looked, miss, hit)):
        for position in at:
            looks[position] = other
    return Cells(label, tuple(values), tuple(looks), **more)


def positions(rows, wanted, begin=0):
    """The positions, from `begin` on, of the rows that are in `wanted`."""
    return [k for k, row in enumerate(rows) if k >= begin and row in wanted]


def bits(label, rows, first, size, word, memory, *, keys=(), hits=(), written=False):
    """Cells that say which of the `size` rows from `first` on are in `rows`: bits in words of `word` bits.

    keys: rows that are looked up; hits: those of them that close triangles. written: whether this step writes the
    bits. word: 0 for bytes.
    """
    ones, keys = {row - first for row in rows if first <= row < first + size}, {row - first for row in keys}
    return cells(
        label, [str(int(k in ones)) for k in range(size)], "empty", memory=memory, room=size,
        heads={k: str(k + first) for k in range(size)}, gaps=tuple(range(word - 1, size - 1, word)) if word else (),
        there=ones, looked=ones if written else keys & ones, miss=keys - ones, hit=[row - first for row in hits],
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------- words for captions


def listed(values):
    """Values as a sentence names them: "2", "2 and 3", "2, 3 and 7"."""
    *before, last = [str(value) for value in values]
    return f"{', '.join(before)} and {last}" if before else last


def counted(number, noun):
    """A number and its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def are(values):
    return "is" if len(values) == 1 else "are"


def triangles_text(found):
    """The end of a caption: the triangles that a step found; empty if there are none."""
    if not found:
        return ""
    each = [f"{j}, {i}, {k}" for j, i, k in found]
    return f" A triangle: {each[0]}." if len(found) == 1 else f" {len(found)} triangles: {'; '.join(each)}."
