"""A frame as a picture: the graph on the left, the panels on the right, all at the same positions in every frame.

Everything is drawn on one pair of axes whose unit is the inch, so that letters and cells keep their sizes. Orange is
what is looked at, blue what is stored, grey what is not needed, as in `tcgpu.figures`; dark is what was found. The
colours differ in brightness, too, for readers who cannot tell them apart.
"""

import textwrap
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from tcgpu.figures import BLUE, GREY, ORANGE, Picture
from tcgpu.graph import Graph
from tcgpu.lab.stepper.frames import GLOBAL, SHARED, Cells, Frame, Lower, Matrix, Strip

INK, PALE, MUTED = "#2d3748", "#ebf4fb", "#718096"
STYLE = {  # look -> face, border, letters, width of the border
    "there": (PALE, BLUE, INK, 1.0),
    "looked": (ORANGE, ORANGE, "white", 1.0),
    "miss": ("white", ORANGE, ORANGE, 1.4),
    "hit": (INK, INK, "white", 1.0),
    "done": ("white", GREY, "#a0aec0", 0.8),
    "empty": ("white", "#e2e8f0", "#cbd5e0", 0.8),
}
LEGEND = {"there": "stored", "looked": "looked at", "miss": "not found", "hit": "triangle", "done": "done"}
BOLD = ("looked", "hit")

# inches, all that follows
WIDTH, HEIGHT, CAPTION = 10.4, 5.4, 0.75
MARGIN = 0.25
CORNER = 0.4, 0.65  # of the graph
RIGHT = 4.0, 0.15, WIDTH - 0.2, 4.75  # x, y, x_end, y_end of the panels
CELL = 0.36
LABEL, BETWEEN = 0.27, 0.12  # a panel's label; from one panel to the next
HEAD, FOOT = 0.17, 0.2  # above and below a line of cells where there may be heads and marks
NO_HEAD, NO_FOOT = 0.06, 0.08  # and where there are none
GAP = 0.1  # between words
BRANCH = 0.42  # from one level of a search tree to the next
STRIP = 0.2  # height of a strip, and most of the width of an element
LOWER = 1.45  # sides of L
SMALLEST = 0.15  # cell of a matrix, at least

PER_LINE = 16  # cells
LEGIBLE = 4.5  # points: the least size of letters
VERTICES = ((16, 400, 11), (40, 200, 8.5), (10**9, 110, 6))  # up to so many of them: size of a dot, of its letters


def draw(frame: Frame, *, caption: bool = True) -> Picture:
    """The frame as a Picture, with or without its caption."""
    below = CAPTION if caption else 0.0
    picture = Picture(figsize=(WIDTH, HEIGHT + below))
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(-below, HEIGHT))
    ax.set_axis_off()
    draw_title(ax, frame)
    draw_graph(ax, frame)
    draw_legend(ax)
    draw_panels(ax, frame, *RIGHT)
    if caption:
        write(ax, MARGIN, 0, textwrap.fill(frame.caption, 118), 11, ha="left", va="top", linespacing=1.4)
    return picture


def draw_title(ax, frame):
    """The method, the title of the step, and the totals."""
    y, scene, found = HEIGHT - 0.33, frame.scene, len(frame.triangles)
    name = write(ax, MARGIN, y, scene.method, 17, ha="left", va="center", bold=True)
    ax.annotate(frame.title, (1, 0.5), (12, 0), xycoords=name, textcoords="offset points", size=12.5, color=INK,
                va="center")  # fmt: skip
    totals = f"{frame.lookups:,} {scene.unit}      {found:,} triangle{'s' * (found != 1)}"
    write(ax, WIDTH - 0.2, y, totals, 12.5, ha="right", va="center")
    ax.plot([MARGIN, WIDTH - 0.2], [HEIGHT - 0.6] * 2, color=GREY, lw=0.8)


def draw_graph(ax, frame):
    """Triangles under edges under vertices; new triangles and highlighted edges are in front of the rest."""
    graph, points = frame.scene.graph, frame.scene.points + CORNER
    triangles = np.array(frame.triangles, np.int64).reshape(-1, 3)
    old, new = np.split(triangles, [len(triangles) - frame.new])
    ax.add_collection(PolyCollection(points[old], facecolors=BLUE, alpha=0.07, zorder=0))
    ax.add_collection(PolyCollection(points[new], facecolors=ORANGE, alpha=0.4, zorder=1))
    ax.add_collection(PolyCollection(points[new], facecolors="none", edgecolors=INK, linewidths=2, zorder=2.5))
    lines(ax, points[np.stack(graph.edges(), axis=1)], GREY, 1, zorder=2)
    lines(ax, points[np.array(frame.edges, np.int64).reshape(-1, 2)], ORANGE, 2.6, zorder=2.2)
    size, letters = next((size, letters) for most, size, letters in VERTICES if graph.n <= most)
    style = STYLE | {None: (PALE, BLUE, INK, 1), "there": (BLUE, BLUE, "white", 1)}  # of vertices
    faces, borders, inks, _ = zip(*(style[frame.vertices.get(v)] for v in range(graph.n)))
    ax.scatter(*points.T, s=size, c=faces, edgecolors=borders, linewidths=1.3, zorder=3)
    for v, (x, y) in enumerate(points.tolist()):
        write(ax, x, y - 0.005, str(v), letters, inks[v], zorder=4)


def draw_legend(ax):
    x = MARGIN
    for look, meaning in LEGEND.items():
        face, border, _, width = STYLE[look]
        ax.add_patch(Rectangle((x, 0.18), 0.13, 0.13, facecolor=face, edgecolor=border, lw=width))
        write(ax, x + 0.19, 0.245, meaning, 8, MUTED, ha="left", va="center")
        x += 0.32 + 0.058 * len(meaning)


# -------------------------------------------------------------------------------------------------------------- strokes


def write(ax, x, y, text, size, color=INK, ha="center", va="center_baseline", bold=False, **more):
    """A text of `size` points, its middle at (x, y) unless ha and va say otherwise."""
    return ax.text(x, y, text, size=size, color=color, ha=ha, va=va, weight="bold" if bold else None, **more)


def rectangles(ax, boxes, faces, borders="white", widths=0.5):
    """Rectangles (x, y, width, height), each with its own face, and border if there are several."""
    patches = [Rectangle((x, y), width, height) for x, y, width, height in boxes]
    ax.add_collection(PatchCollection(patches, facecolors=faces, edgecolors=borders, linewidths=widths))


def squares(ax, corners, side, looks, inset=0.02):
    """A square for each look but "", with this lower left corner."""
    kept = [(x + inset, y + inset, look) for (x, y), look in zip(corners, looks) if look]
    faces, borders, _, widths = zip(*(STYLE[look] for *_, look in kept)) if kept else ((), (), (), ())
    rectangles(ax, [(x, y, side - 2 * inset, side - 2 * inset) for x, y, _ in kept], faces, borders, widths)


def lines(ax, ends, colour, width, zorder):
    """Straight lines, two points each."""
    ax.add_collection(LineCollection(ends, colors=colour, linewidths=width, zorder=zorder))


def memory_box(ax, x, y, x_end, y_end, memory):
    """A box around what is not in global memory: a line for shared memory, dashes for registers."""
    ax.add_patch(FancyBboxPatch(
        (x - 0.08, y), x_end - x + 0.16, y_end - y, boxstyle="round,pad=0,rounding_size=0.06", facecolor="#f7fafc",
        edgecolor=MUTED, lw=1, ls="-" if memory == SHARED else "--", zorder=-1,
    ))  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- panels


class Area(NamedTuple):
    """Where a panel is drawn, and by which scale."""

    ax: Axes
    graph: Graph
    x: float
    top: float
    x_end: float
    scale: float
    height: float

    def label(self, panel, memory=""):
        """The panel's label and memory; a box around what is not in global memory."""
        y, scale = self.top - 0.13 * self.scale, self.scale
        write(self.ax, self.x, y, panel.label, 11 * scale, ha="left", va="center", bold=True)
        write(self.ax, self.x_end, y, memory, 9 * scale, MUTED, ha="right", va="center", style="italic")
        if memory not in ("", GLOBAL):
            memory_box(self.ax, self.x, self.top - self.height, self.x_end, self.top, memory)


def draw_panels(ax, frame, x, y, x_end, y_end):
    """The panels, one below the other; if they do not fit, all are smaller. A matrix takes what the others leave."""
    wanted = sum(panel_height(panel) + BETWEEN for panel in frame.panels)
    scale = min(1.0, (y_end - y) / wanted)
    draw_panel = {Cells: draw_cells, Strip: draw_strip, Lower: draw_lower, Matrix: draw_matrix}
    top = y_end
    for panel in frame.panels:
        height = scale * panel_height(panel)
        if isinstance(panel, Matrix):
            height = matrix_height(panel, x_end - x, y_end - y - scale * wanted + height, scale)
        draw_panel[type(panel)](panel, Area(ax, frame.scene.graph, x, top, x_end, scale, height))
        top -= height + scale * BETWEEN


def panel_height(panel):
    """The height of a panel at scale 1, in inches; the least height of a matrix."""
    if isinstance(panel, Cells):
        count = 1 if panel.tree else max(1, -(-max(panel.room, len(panel.values)) // PER_LINE))
        return LABEL + tree_height(panel) + count * line_height(panel)
    if isinstance(panel, Matrix):
        return LABEL + 0.25 + SMALLEST * size_of(panel)[0]
    return LABEL + STRIP + 0.05 if isinstance(panel, Strip) else LOWER + 0.1


def tree_height(cells):
    return BRANCH * cells.tree.levels if cells.tree else 0


def line_height(cells):
    """From one line of cells to the next."""
    return head_height(cells) + CELL + (NO_FOOT if cells.marks is None else FOOT)


def head_height(cells):
    return HEAD if cells.heads else NO_HEAD


def draw_cells(cells, area):
    ax, scale = area.ax, area.scale
    area.label(cells, cells.memory)
    top = area.top - scale * (LABEL + tree_height(cells))
    across = max(PER_LINE, cells.room) if cells.tree else PER_LINE  # a tree needs all cells in one line
    side = min(CELL * scale, (area.x_end - area.x) / across)
    corners, gap = [], 0.0
    for k in range(len(cells.values) + 1):  # and of the next cell, where nodes past the last one are
        line, column = divmod(k, across)
        gap = 0.0 if column == 0 else gap + GAP * scale * (k - 1 in cells.gaps)
        y = top - scale * (head_height(cells) + line * line_height(cells)) - side
        corners.append((area.x + column * side + gap, y))
    if not cells.values:
        ax.add_patch(Rectangle(corners[0], side, side, facecolor="none", edgecolor=GREY, lw=0.8, ls=":"))
        return
    if cells.tree:
        draw_tree(cells, area, top, [x + side / 2 for x, _ in corners], side)
    squares(ax, corners, side, cells.looks)
    for (x, y), value, look in zip(corners, cells.values, cells.looks):
        size = min(11 * scale, 30 * side)
        write(ax, x + side / 2, y + side / 2, str(value), size, STYLE[look][2], bold=look in BOLD)
    for k, text in cells.heads.items():
        x, y = corners[k]
        x, ha = (x + side / 2, "center") if len(text) <= 3 else (x, "left")
        write(ax, x, y + side + 0.04 * scale, text, 8 * scale, MUTED, ha=ha, va="bottom")
    for k, text in (cells.marks or {}).items():
        x, y = corners[k]
        write(ax, x + side / 2, y - 0.02 * scale, text, 9.5 * scale, ORANGE, va="top", bold=True)


def draw_tree(cells, area, bottom, middles, side):
    """The search tree, each node above its cell, the root at the top; a node past all cells is a dash."""
    ax, scale, tree, step = area.ax, area.scale, cells.tree, BRANCH * area.scale
    levels = 1 + max((level for level, _ in tree.nodes), default=-1)
    at = [(middles[cell], bottom + step * (levels - level - 0.5)) for level, cell in tree.nodes]
    if tree.cached:
        top = bottom + step * levels
        memory_box(ax, area.x, top - step * tree.cached, area.x_end, top, SHARED)
        write(ax, area.x_end, top - 0.1, SHARED, 9 * scale, MUTED, ha="right", va="center", style="italic")
    lines(ax, [(at[(k - 1) // 2], at[k]) for k in range(1, len(at))], GREY, 1, zorder=1)
    radius = min(0.135 * scale, 0.46 * side)
    for (x, y), (_, cell), look, lanes in zip(at, tree.nodes, tree.looks, tree.lanes):
        face, border, ink, width = STYLE[look]
        ax.add_patch(Circle((x, y), radius, facecolor=face, edgecolor=border, lw=width, zorder=2))
        text = str(cells.values[cell]) if cell < len(cells.values) else "–"
        write(ax, x, y, text, min(9 * scale, 62 * radius), ink, zorder=3)
        write(ax, x, y + radius + 0.02, lanes, 9 * scale, ORANGE, va="bottom", bold=True, zorder=3)


def draw_strip(strip, area):
    area.label(strip)
    width, height = min((area.x_end - area.x) / max(1, strip.size), STRIP), STRIP * area.scale
    colours = np.full(strip.size, "#e2e8f0", object)
    odd = np.searchsorted(np.unique(strip.starts), np.arange(strip.size), side="right") % 2 == 1
    colours[odd] = "#edf2f7"  # every other part, so that their beginnings can be seen
    for begin, end in strip.parts:
        colours[begin:end] = "#90b4dc"
    colours[list(strip.looked)] = ORANGE
    y = area.top - area.scale * LABEL - height
    rectangles(area.ax, [(area.x + width * k, y, width, height) for k in range(strip.size)], colours.tolist())


def draw_lower(lower, area):
    """L beside its label: nonzeros as squares, highlighted columns as bands."""
    ax, graph, whole = area.ax, area.graph, LOWER * area.scale
    area.label(lower)
    side, left, top = whole / max(1, graph.n), area.x + LABEL, area.top - 0.05
    for j in lower.columns:
        ax.add_patch(Rectangle((left + j * side, top - whole), side, whole, facecolor=ORANGE, alpha=0.15, lw=0))
    nonzeros = list(zip(*(end.tolist() for end in graph.edges())))
    colours = [{"looked": ORANGE, "hit": INK}.get(lower.looks.get(nonzero), BLUE) for nonzero in nonzeros]
    boxes = [(left + j * side, top - (i + 1) * side, side, side) for i, j in nonzeros]
    rectangles(ax, boxes, colours, widths=0.3)
    ax.plot([left, left, left + whole, left], [top, top - whole, top - whole, top], color=GREY, lw=0.8)


def size_of(matrix):
    """Rows and columns that a matrix needs space for."""
    return max(matrix.room[0], len(matrix.rows), 1), max(matrix.room[1], len(matrix.columns), 1)


def margin_of(matrix):
    """The space on the left of a matrix, for the names of its rows."""
    return 0.15 + 0.085 * max((len(str(row)) for row in matrix.rows), default=2)


def matrix_height(matrix, width, height, scale):
    """The height of a matrix that may be so wide and high: its cells are as large as fits."""
    (rows, columns), above = size_of(matrix), scale * (LABEL + 0.2) + 0.05
    return above + rows * min(CELL, (width - margin_of(matrix)) / columns, (height - above) / rows)


def draw_matrix(matrix, area):
    ax, above = area.ax, area.scale * (LABEL + 0.2)
    area.label(matrix, matrix.memory)
    side = (area.height - above - 0.05) / size_of(matrix)[0]
    left, top = area.x + margin_of(matrix), area.top - above
    rows, columns = range(len(matrix.rows)), range(len(matrix.columns))
    corners = [(left + c * side, top - (r + 1) * side) for r in rows for c in columns]
    squares(ax, corners, side, [look for line in matrix.looks for look in line], inset=0.06 * side)
    letters = min(10, 36 * side)
    if letters >= LEGIBLE:
        for r, text in enumerate(matrix.rows):
            write(ax, left - 0.07, top - (r + 0.5) * side, str(text), letters, ha="right")
        for c, text in enumerate(matrix.columns):
            write(ax, left + (c + 0.5) * side, top + 0.03, str(text), letters, va="bottom")
    for path in matrix.paths:
        x, y = zip(*((left + c * side, top - r * side) for r, c in path))
        ax.plot(x, y, color=BLUE, lw=3, zorder=2, solid_capstyle="round")
    for cut in matrix.cuts:  # from the lower end of the diagonal to its upper end
        ends = (min(cut, len(rows)), max(0, cut - len(rows))), (max(0, cut - len(columns)), min(cut, len(columns)))
        r, c = np.transpose(ends)
        ax.plot(left + c * side, top - r * side, color=MUTED, lw=1, ls=(0, (3, 2)), zorder=2)
    badge = {"boxstyle": "round,pad=0.25", "fc": ORANGE, "ec": "none"}
    for (r, c), text in matrix.dots.items():
        x, y = left + c * side, top - r * side
        write(ax, x, y, text, min(9, 34 * side), "white", va="center", bold=True, zorder=4, bbox=badge)
