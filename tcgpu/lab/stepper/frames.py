"""The stepper's steps as plain data: a `Frame` per step, with panels of a few kinds. This module draws nothing.

Every cell, vertex and bit of a frame has a *look*, with the same meaning everywhere:

    there    stored here
    looked   read in this step
    miss     looked up in this step, and not there
    hit      part of a triangle
    done     no longer needed
    empty    nothing is stored here
    stored, chosen    in L: a nonzero, and where there is none in a column that is worked on
"""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from tcgpu.figures import counted  # for captions, as `listed` below
from tcgpu.graph import Graph

LOOKS = ("there", "done", "looked", "miss", "hit", "empty", "stored", "chosen")
GLOBAL, SHARED, REGISTERS = "global memory", "shared memory", "registers"
BOX = np.array([3.1, 4.0])  # inches, in which the vertices of a scene are


@dataclass(frozen=True)
class Cells:
    """A line of cells: a column, a range of memory, bits. With a `tree`, a search tree above them.

    heads: position -> text above the cell. marks: position -> text below it; None where no frame has any. gaps: the
    positions after which a gap is drawn. room: the most cells of this panel in any frame, so that it keeps its size.
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

    levels: list  # for each level, the positions of its nodes' cells
    lanes: dict  # number of a node in the whole tree -> the lanes at that node, as text
    cached: int
    room: int  # levels of the deepest tree that is shown


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
class RowIdx:
    """The whole array `row_idx` in small: highlighted columns, and the positions that are read."""

    columns: tuple
    read: tuple = ()
    label = "row_idx"


@dataclass(frozen=True)
class Scene:
    """The data that all frames share: the graph in the method's order, and a point in BOX per vertex."""

    graph: Graph
    method: str
    unit: str  # of `lookups`
    points: np.ndarray
    finds: bool = True  # whether the frames say which triangles are found


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

    @property
    def totals(self):
        """What was done so far, as texts: look-ups, and triangles if the frames say which are found."""
        done = [counted(self.lookups, self.scene.unit.removesuffix("s"))]
        return [*done, counted(len(self.triangles), "triangle")] if self.scene.finds else done


class FrameBuilder:
    """Makes the frames of a scene; adds up triangles and look-ups."""

    def __init__(self, scene):
        self.scene, self.graph = scene, scene.graph
        self.triangles, self.lookups = [], 0
        self.col_ptr, self.row_idx = self.graph.col_ptr.tolist(), self.graph.row_idx.tolist()
        self.ends = list(zip(self.row_idx, self.graph.col_of.tolist(), strict=True))  # row and column of each nonzero

    def frame(self, title, caption, panels, *, nonzero=(), looked=(), there=(), edges=(), found=(), lookups=0):
        """The next frame; triangles `found` in this step and its look-ups are added to the totals.

        nonzero: the (i, j) that is worked on, if any; looked, there, edges: other vertices and edges to highlight.
        """
        self.triangles += found
        self.lookups += lookups
        looked = {*nonzero, *looked}
        corners = {v for triangle in found for v in triangle}
        vertices = dict.fromkeys(there, "there") | dict.fromkeys(looked, "looked")
        vertices |= dict.fromkeys(corners - looked, "hit")
        if nonzero:
            edges = (nonzero, *edges)
        if found:
            each = "; ".join(f"{j}, {i}, {k}" for j, i, k in found)
            caption += f" {'A triangle' if len(found) == 1 else f'{len(found)} triangles'}: {each}."
        return Frame(self.scene, title, caption, tuple(panels), tuple(self.triangles), len(found), self.lookups,
                     vertices, tuple(edges))  # fmt: skip

    def span(self, v, below=None):
        """The positions of column v in `row_idx`, or of its rows below this one."""
        begin, end = self.col_ptr[v : v + 2]
        return range(begin, end if below is None else bisect_left(self.row_idx, below, begin, end))

    def rows(self, v):
        return self.graph.column(v).tolist()

    def cells(self, label, values, look="there", **more):
        """As the function `cells`, with room for the longest column."""
        return cells(label, values, look, **{"room": self.graph.max_column} | more)

    def pointed(self, label, span, window, at=None, mark="", hits=(), **more):
        """The rows at positions `span` of `row_idx`, with a pointer at position `at`.

        Rows outside of `window`, or before the pointer, are done; `hits` are rows, too.
        """
        begin = window.start if at is None else at
        here = [] if at is None else [at - span.start]
        return self.cells(
            label, [self.row_idx[k] for k in span], "done", there=[k - span.start for k in range(begin, window.stop)],
            looked=here, hit=[k - span.start for k in window if self.row_idx[k] in hits],
            marks=dict.fromkeys(here, mark), **more,
        )  # fmt: skip


def cells(label, values, look="there", *, there=(), done=(), looked=(), miss=(), hit=(), **more):
    """Cells with these values, all with one look except at the given positions; `more`: other fields of Cells."""
    looks = [look] * len(values)
    for other, at in zip(LOOKS, (there, done, looked, miss, hit), strict=False):
        for position in at:
            looks[position] = other
    return Cells(label, tuple(values), tuple(looks), **more)


class Noted:
    """Values that note the positions at which they are read."""

    def __init__(self, values):
        self.values, self.read = values, []

    def __getitem__(self, position):
        self.read.append(int(position))
        return self.values[position]


def run_noted(function, values, *args):
    """What a kernel's device function returns, and the positions of `values` that it reads. args: its arguments."""
    noted = Noted(values)
    found = function.py_func(*[noted if arg is values else arg for arg in args])
    return int(found), noted.read


def compared_by(function, values, *args):
    """As `run_noted`, for a function that compares: the positions two by two."""
    found, read = run_noted(function, values, *args)
    return found, list(zip(read[::2], read[1::2], strict=True))


def positions(rows, chosen):
    return [k for k, row in enumerate(rows) if row in chosen]


def lower(graph, columns, looks):
    """The strictly lower triangular matrix L: its nonzeros, with the looks of some (i, j), and the cells of columns."""
    looks = dict.fromkeys(zip(graph.row_idx.tolist(), graph.col_of.tolist(), strict=True), "stored") | looks
    vertices = tuple(range(graph.n))
    lines = [[looks.get((i, j), "chosen" if j < i and j in columns else "") for j in vertices] for i in vertices]
    return Matrix("L", vertices, vertices, lines, memory="")


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
    """Values as a sentence names them: "none", "2", "2 and 3", "2, 3 and 7"."""
    *before, last = [str(value) for value in values] or ["none"]
    return f"{', '.join(before)} and {last}" if before else last
