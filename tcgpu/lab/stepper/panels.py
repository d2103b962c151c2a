"""The panels of a frame, one under the other. What does not fit is drawn smaller, all of it by the same scale."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from tcgpu.figures import BLUE, GREY, ORANGE
from tcgpu.graph import Graph
from tcgpu.lab.stepper.drawing_style import BOLD, INK, MUTED, STYLE, bars, lines, memory_box, squares, write
from tcgpu.lab.stepper.frames import GLOBAL, SHARED, Cells, Lower, Matrix, Strip

CELL = 0.36  # inches, as all below
PER_LINE = 16  # cells
LABEL, APART = 0.27, 0.12  # a panel's label; between panels
HEAD, FOOT = 0.17, 0.2  # above and below a line of cells, where heads and marks may come,
NO_HEAD, NO_FOOT = 0.06, 0.08  # and where not
GAP = 0.1  # between words
BRANCH = 0.42  # from one level of a search tree to the next
STRIP = 0.2  # height of a strip, and most of the width of an element
LOWER = 1.45  # sides of L
SMALLEST = 0.15  # cell of a matrix, at least
LEGIBLE = 4.5  # points, at least, of what its rows and columns are called


class Place(NamedTuple):
    """Where a panel is drawn, by what scale, and what of."""

    ax: Axes
    graph: Graph
    x: float
    top: float
    x_end: float
    scale: float
    height: float

    def label(self, panel, memory=""):
        """What the panel is, and in which memory, with a box around what is not in global memory."""
        y, s = self.top - 0.13 * self.scale, self.scale
        write(self.ax, self.x, y, panel.label, 11 * s, ha="left", va="center", bold=True)
        write(self.ax, self.x_end, y, memory, 9 * s, MUTED, ha="right", va="center", style="italic")
        if memory not in ("", GLOBAL):
            memory_box(self.ax, self.x, self.top - self.height, self.x_end, self.top, memory)


def draw_all(ax, graph, panels, x, y, x_end, y_end):
    """A matrix takes what room the others leave: its cells are as large as that lets them be."""
    wanted = sum(height(panel) + APART for panel in panels)
    scale = min(1.0, (y_end - y) / wanted)
    top = y_end
    for panel in panels:
        high = scale * height(panel)
        if isinstance(panel, Matrix):
            high = matrix_height(panel, x_end - x, y_end - y - scale * wanted + high, scale)
        DRAWERS[type(panel)](panel, Place(ax, graph, x, top, x_end, scale, high))
        top -= high + scale * APART


def height(panel):
    """How high the panel is to be, at scale 1."""
    if isinstance(panel, Cells):
        return LABEL + (BRANCH * panel.tree.levels if panel.tree else 0) + lines_of(panel) * pitch(panel)
    if isinstance(panel, Matrix):
        return LABEL + 0.25 + SMALLEST * size_of(panel)[0]
    return LABEL + STRIP + 0.05 if isinstance(panel, Strip) else LOWER + 0.1


# --------------------------------------------------------------------------------------------------------------- cells


def lines_of(cells):
    return 1 if cells.tree else max(1, -(-max(cells.room, len(cells.values)) // PER_LINE))


def pitch(cells):
    """From one line of cells to the next."""
    return (HEAD if cells.heads else NO_HEAD) + CELL + (FOOT if cells.marked else NO_FOOT)


def draw_cells(cells, place):
    ax, s = place.ax, place.scale
    place.label(cells, cells.memory)
    high = place.top - s * (LABEL + (BRANCH * cells.tree.levels if cells.tree else 0))
    corners, side = corners_of(cells, place, high)
    if not cells.values:
        ax.add_patch(Rectangle(corners[0], side, side, facecolor="none", edgecolor=GREY, lw=0.8, ls=":"))
        return
    if cells.tree:
        draw_tree(cells, place, high, [x + side / 2 for x, _ in corners], side)
    squares(ax, corners, side, cells.looks)
    for (x, y), value, look in zip(corners, cells.values, cells.looks):
        size = min(11 * s, 30 * side)
        write(ax, x + side / 2, y + side / 2, str(value), size, STYLE[look][2], bold=look in BOLD)
    for k, text in cells.heads.items():
        x, y = corners[k]
        short = len(text) <= 3
        middle = x + side / 2 if short else x
        write(ax, middle, y + side + 0.04 * s, text, 8 * s, MUTED, ha="center" if short else "left", va="bottom")
    for k, text in cells.marks.items():
        x, y = corners[k]
        write(ax, x + side / 2, y - 0.02 * s, text, 9.5 * s, ORANGE, va="top", bold=True)


def corners_of(cells, place, high):
    """The lower left corner of each cell, and of one more behind the last, below `high`; the side of a cell."""
    s, (room, across) = place.scale, (cells.room, PER_LINE)
    if cells.tree:
        across = max(across, room)  # all in one line
    side = min(CELL * s, (place.x_end - place.x) / across)
    corners, gap = [], 0.0
    for k in range(len(cells.values) + 1):
        line, column = divmod(k, across)
        gap = 0.0 if column == 0 else gap + GAP * s * (k - 1 in cells.gaps)
        y = high - s * ((HEAD if cells.heads else NO_HEAD) + line * pitch(cells)) - side
        corners.append((place.x + column * side + gap, y))
    return corners, side


def draw_tree(cells, place, base, middles, side):
    """The search tree, each node over its cell, the root at the top; a node past all cells is a dash."""
    ax, s, tree = place.ax, place.scale, cells.tree
    step = BRANCH * s
    levels = 1 + max((level for level, _ in tree.nodes), default=-1)
    at = [(middles[cell], base + step * (levels - level - 0.5)) for level, cell in tree.nodes]
    if tree.cached:
        y_end = base + step * levels
        memory_box(ax, place.x, y_end - step * tree.cached, place.x_end, y_end, SHARED)
        write(ax, place.x_end, y_end - 0.1, SHARED, 9 * s, MUTED, ha="right", va="center", style="italic")
    lines(ax, [(at[(k - 1) // 2], at[k]) for k in range(1, len(at))], GREY, 1, order=1)
    radius = min(0.135 * s, 0.46 * side)
    for (x, y), (_, cell), look, lanes in zip(at, tree.nodes, tree.looks, tree.lanes):
        face, border, ink, width = STYLE[look]
        ax.add_patch(Circle((x, y), radius, facecolor=face, edgecolor=border, lw=width, zorder=2))
        said = str(cells.values[cell]) if cell < len(cells.values) else "–"
        write(ax, x, y, said, min(9 * s, 62 * radius), ink, zorder=3)
        write(ax, x, y + radius + 0.02, lanes, 9 * s, ORANGE, va="bottom", bold=True, zorder=3)


# ----------------------------------------------------------------------------------------- memory and L, seen from afar


def draw_strip(strip, place):
    place.label(strip)
    wide, high = min((place.x_end - place.x) / max(1, strip.size), STRIP), STRIP * place.scale
    colours = np.full(strip.size, "#e2e8f0", object)
    odd = np.searchsorted(np.unique(strip.starts), np.arange(strip.size), side="right") % 2 == 1
    colours[odd] = "#edf2f7"  # every other part, so that one sees where they begin
    for begin, end in strip.parts:
        colours[begin:end] = "#90b4dc"
    colours[list(strip.looked)] = ORANGE
    y = place.top - place.scale * LABEL - high
    bars(place.ax, [(place.x + wide * k, y, wide, high) for k in range(strip.size)], colours.tolist())


def draw_lower(lower, place):
    """L as squares, the columns that stand out as bands, beside the label."""
    ax, graph, whole = place.ax, place.graph, LOWER * place.scale
    place.label(lower)
    side, left, high = whole / max(1, graph.n), place.x + LABEL, place.top - 0.05
    for j in lower.columns:
        band = (left + j * side, high - whole), side, whole
        ax.add_patch(Rectangle(*band, facecolor=ORANGE, alpha=0.15, lw=0))
    nonzeros = list(zip(*(end.tolist() for end in graph.edges())))
    colours = [{"looked": ORANGE, "hit": INK}.get(lower.looks.get(nonzero), BLUE) for nonzero in nonzeros]
    bars(ax, [(left + j * side, high - (i + 1) * side, side, side) for i, j in nonzeros], colours, 0.3)
    ax.plot([left, left, left + whole, left], [high, high - whole, high - whole, high], color=GREY, lw=0.8)


# ------------------------------------------------------------------------------------------------------------ matrices


def size_of(matrix):
    """Rows and columns that there is to be room for."""
    return max(matrix.room[0], len(matrix.rows), 1), max(matrix.room[1], len(matrix.columns), 1)


def margin_of(matrix):
    """Left of the cells, for what the rows are called."""
    return 0.15 + 0.085 * max((len(str(row)) for row in matrix.rows), default=2)


def matrix_height(matrix, width, room, scale):
    """How high a matrix is that has so much room; from that follows how large its cells are."""
    (rows, columns), above = size_of(matrix), scale * (LABEL + 0.2) + 0.05
    return above + rows * min(CELL, (width - margin_of(matrix)) / columns, (room - above) / rows)


def draw_matrix(matrix, place):
    ax, above = place.ax, place.scale * (LABEL + 0.2)
    place.label(matrix, matrix.memory)
    side = (place.height - above - 0.05) / size_of(matrix)[0]
    left, high = place.x + margin_of(matrix), place.top - above
    rows, columns = range(len(matrix.rows)), range(len(matrix.columns))
    corners = [(left + c * side, high - (r + 1) * side) for r in rows for c in columns]
    squares(ax, corners, side, [look for line in matrix.looks for look in line], inset=0.06 * side)
    letters = min(10, 36 * side)
    if letters >= LEGIBLE:
        for r, text in enumerate(matrix.rows):
            write(ax, left - 0.07, high - (r + 0.5) * side, str(text), letters, ha="right")
        for c, text in enumerate(matrix.columns):
            write(ax, left + (c + 0.5) * side, high + 0.03, str(text), letters, va="bottom")
    for way in matrix.paths:
        x, y = zip(*((left + c * side, high - r * side) for r, c in way))
        ax.plot(x, y, color=BLUE, lw=3, zorder=2, solid_capstyle="round")
    for cut in matrix.cuts:
        r, c = np.transpose(diagonal(cut, len(matrix.rows), len(matrix.columns)))
        ax.plot(left + c * side, high - r * side, color=MUTED, lw=1, ls=(0, (3, 2)), zorder=2)
    badge = {"boxstyle": "round,pad=0.25", "fc": ORANGE, "ec": "none"}
    for (r, c), text in matrix.dots.items():
        x, y = left + c * side, high - r * side
        write(ax, x, y, text, min(9, 34 * side), "white", va="center", bold=True, zorder=4, bbox=badge)


def diagonal(cut, rows, columns):
    """The two corners (row, column) where a diagonal begins and ends that so many steps lead to."""
    return (min(cut, rows), max(0, cut - rows)), (max(0, cut - columns), min(cut, columns))


DRAWERS = {Cells: draw_cells, Strip: draw_strip, Lower: draw_lower, Matrix: draw_matrix}
