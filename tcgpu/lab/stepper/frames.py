"""What a stepper shows, as plain data: a `Frame` a step, made of a few kinds of panels. Nothing here draws.

Each cell, vertex or bit of a frame has a *look*, which says the same thing everywhere:

    there    what is there
    looked   what is looked at in this step
    miss     where one looks in this step, and nothing is there
    hit      what closes a triangle
    done     what is not needed any more
    empty    where nothing is
"""

from dataclasses import dataclass, field

import numpy as np

from tcgpu.graph import Graph

LOOKS = ("there", "looked", "miss", "hit", "done", "empty")
GLOBAL, SHARED, REGISTERS = "global memory", "shared memory", "registers"


@dataclass(frozen=True)
class Cells:
    """Cells in a row: a column, some stretch of memory, a row of bits. With a `tree`, a search tree over them.

    heads and marks are texts over and under cells: a dict of place -> text. `room`: how many cells there are to be in
    the longest of such panels, so that it keeps its size. gaps: after which cells there is one. marked: whether marks
    may come.
    """

    label: str
    values: tuple
    looks: tuple
    memory: str = GLOBAL
    heads: dict = field(default_factory=dict)
    marks: dict = field(default_factory=dict)
    gaps: tuple = ()
    room: int = 0
    tree: object = None
    marked: bool = True


@dataclass(frozen=True)
class Tree:
    """A search tree over cells: complete, level by level, left to right; the top `cached` ones in shared memory."""

    nodes: tuple  # (level, the place of the cell that the node stands for)
    looks: tuple
    lanes: tuple  # the lanes that are at each node, as text
    cached: int
    levels: int  # how many there are to be in the deepest tree


@dataclass(frozen=True)
class Matrix:
    """Rows and columns of cells: bits of a matrix, or where two lists meet. `looks[r][c]` is "" where there is no cell.

    paths: lines along the borders of cells, each a list of (row, column) corners; dots: (row, column) corner -> text.
    """

    label: str
    rows: tuple
    columns: tuple
    looks: tuple
    memory: str = GLOBAL
    values: tuple = ()
    paths: tuple = ()
    cuts: tuple = ()  # diagonals: how many steps along the path each lies from its beginning
    dots: dict = field(default_factory=dict)
    room: tuple = (0, 0)


@dataclass(frozen=True)
class Strip:
    """A long array, seen from afar: `size` elements, parts that begin at `starts`; which parts and places stand out."""

    label: str
    size: int
    starts: tuple
    parts: tuple = ()
    looked: tuple = ()


@dataclass(frozen=True)
class Lower:
    """The strictly lower triangular matrix L, seen from afar: the columns that stand out, and looks of nonzeros."""

    columns: tuple
    looks: dict = field(default_factory=dict)  # (i, j) -> look
    label: str = "L"


@dataclass(frozen=True)
class Scene:
    """What stays the same from the first frame to the last: the graph as its method numbers it, a point a vertex."""

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
    triangles: tuple  # (j, i, k), j < i < k: all that were found so far
    new: int  # so many of them, the last ones, in this step
    lookups: int  # so far
    vertices: dict  # vertex -> look, for those that stand out
    edges: tuple  # pairs of vertices, for those that do


class Recorder:
    """Makes the frames of one scene and keeps the tally: what was found, and after how many look-ups."""

    def __init__(self, scene):
        self.scene, self.triangles, self.lookups = scene, [], 0

    def frame(self, title, caption, panels, *, nonzero=(), looked=(), there=(), edges=(), found=(), lookups=0):
        """The next frame. What it found, and the look-ups that this took, are added to the tally.

        nonzero: (i, j), if one is at work; looked, there, edges: other vertices and edges that stand out.
        """
        self.triangles += found
        self.lookups += int(lookups)
        looked = {*nonzero, *looked}
        corners = {v for triangle in found for v in triangle}
        vertices = dict.fromkeys(there, "there") | dict.fromkeys(looked, "looked")
        vertices |= dict.fromkeys(corners - looked, "hit")
        if nonzero:
            edges = (nonzero, *edges)
        return Frame(self.scene, title, caption + said_found(found), tuple(panels), tuple(self.triangles), len(found),
                     self.lookups, vertices, tuple(edges))  # fmt: skip


# ------------------------------------------------------------------------------------------------------ looks of cells


def looks(size, look="there", **places):
    """So many looks: `look`, but others at the places that these name, the later ones before the earlier."""
    found = [look] * size
    for other, at in places.items():
        for place in at:
            found[place] = other
    return tuple(found)


def where(rows, wanted, begin=0):
    """At which places, from `begin` on, the rows are that are wanted."""
    return [k for k, row in enumerate(rows) if k >= begin and row in wanted]


def bits(label, rows, first, size, word, memory, *, asked=(), hits=(), look="there"):
    """Cells that say of `size` rows from `first` on whether they are among `rows`, in words of so many bits.

    asked: rows that are looked up; hits: those of them that close triangles. word: 0 for bytes.
    """
    ones = {row - first for row in rows if first <= row < first + size}
    seen = ["empty"] * size
    for place in ones:
        seen[place] = look
    for row in asked:
        seen[row - first] = "looked" if row - first in ones else "miss"
    for row in hits:
        seen[row - first] = "hit"
    values = tuple(str(int(place in ones)) for place in range(size))
    heads = {place: str(place + first) for place in range(size)}
    gaps = tuple(range(word - 1, size - 1, word)) if word else ()
    return Cells(label, values, tuple(seen), memory, heads, gaps=gaps, room=size, marked=False)


# --------------------------------------------------------------------------------------------------- words for captions


def listed(values):
    """Some values as they are said: "2", "2 and 3", "2, 3 and 7"."""
    *before, last = [str(value) for value in values]
    return f"{', '.join(before)} and {last}" if before else last


def counted(number, what):
    return f"{number:,} {what}{'s' * (number != 1)}"


def are(values):
    return "is" if len(values) == 1 else "are"


def said_found(found):
    """The end of a caption: which triangles a step found, or nothing."""
    if not found:
        return ""
    each = [f"{j}, {i}, {k}" for j, i, k in found]
    return f" A triangle: {each[0]}." if len(found) == 1 else f" {len(found)} triangles: {'; '.join(each)}."
