"""A frame as shapes: the graph on the left, the panels on the right, all at the same positions in every frame.

The unit is the pixel, of which the player shows fewer or more on narrow or wide screens.
"""

import textwrap

import numpy as np

from tcgpu.figures import Picture
from tcgpu.lab.stepper.frames import GLOBAL, SHARED, Cells, Frame, Matrix, RowIdx, counted
from tcgpu.player import shapes
from tcgpu.player.shapes import Shape

MEANINGS = {
    "there": "stored", "stored": "stored", "looked": "looked at", "miss": "looked up, not found", "hit": "triangle",
    "done": "done", "empty": "nothing stored", "chosen": "nothing stored",
}  # fmt: skip
LEGEND = {"there": "stored", "looked": "looked at", "miss": "not found", "hit": "triangle", "done": "done"}
LEGEND_OF_TRACE = {"there": "stored, or written now", "looked": "read now"}

# pixels, all that follows
WIDTH, HEIGHT = 1040, 480
CORNER = 40, 415  # the lower left corner of the graph
INCH = 100  # of the positions of vertices
RIGHT = 400, 8, 1020, 470  # x, y, x_end, y_end of the panels
CELL = 36
LABEL, BETWEEN = 27, 12  # a panel's label; from one panel to the next
GAP = 10  # between words
BRANCH = 42  # from one level of a search tree to the next
STRIP = 20  # height of `row_idx`, and most of the width of an element
SMALLEST = 4  # cell of a matrix, at least
ABOVE = LABEL + 25  # a matrix
HEADING, CAPTION = 56, 24  # of a still picture: the height of the heading, and of a line of the caption
PER_CAPTION_LINE = 118  # letters

PER_LINE = 16  # cells
LEGIBLE = 6.5  # the least size of letters
VERTICES = ((16, 14, 15), (40, 10, 12), (10**9, 7.5, 8.5))  # (most vertices, radius of a dot, size of its letters)


def draw(frame: Frame) -> Picture:
    """Return the frame as a picture, with its title above and its caption below."""
    title, totals = frame.title, "      ".join(frame.totals)
    lines = textwrap.wrap(frame.caption, PER_CAPTION_LINE)
    text = [
        Shape("text", "plain start bold", (25, 26, 22), frame.scene.method),
        Shape("text", "plain start", (40 + 14 * len(frame.scene.method), 27, 17), title),
        Shape("text", "plain end", (WIDTH - 20, 27, 17), totals),
        Shape("line", "edge", (25, HEADING - 6, WIDTH - 20, HEADING - 6)),
    ]
    text += [
        Shape("text", "plain start", (25, HEADING + HEIGHT + (k + 0.5) * CAPTION, 15.5), line)
        for k, line in enumerate(lines)
    ]
    height = HEADING + HEIGHT + CAPTION * len(lines) + 8
    return shapes.draw([*text, *shapes_of(frame, HEADING)], WIDTH, height)


def shapes_of(frame: Frame, down: int = 0) -> list[Shape]:
    """Return the shapes of a frame, moved down by so many pixels: the graph, the legend, and the panels."""
    pen = Pen(down=down)
    draw_graph(pen, frame)
    x = 25
    for look, meaning in (LEGEND if frame.scene.finds else LEGEND_OF_TRACE).items():
        pen.box(look, x, HEIGHT - 31, 13, 13)
        pen.text("muted start", x + 19, HEIGHT - 24.5, 11, meaning)
        x += 30 + 6 * len(meaning)
    draw_panels(pen, frame)
    return pen.shapes


class Pen:
    """Makes shapes, at positions that count from an origin, in a unit of `scale` pixels, all moved down."""

    def __init__(self, x=0.0, y=0.0, scale=1.0, found=None, down=0):
        self.x, self.y, self.scale, self.down = x, y, scale, down
        self.shapes = [] if found is None else found

    def box(self, look, x, y, width, height, tip="", layer=0):
        self._add("box", look, [self.x + x * self.scale, self.y + y * self.scale], (width, height), "", tip, layer)

    def dot(self, look, x, y, radius, tip="", layer=0):
        self._add("dot", look, [self.x + x * self.scale, self.y + y * self.scale], (radius,), "", tip, layer)

    def line(self, look, points, layer=0, kind="line"):
        at = [z for x, y in points for z in (self.x + x * self.scale, self.y + y * self.scale)]
        self._add(kind, look, at, (), "", "", layer)

    def text(self, look, x, y, size, text, layer=0):
        self._add("text", look, [self.x + x * self.scale, self.y + y * self.scale], (size,), text, "", layer)

    def _add(self, kind, look, at, sizes, text, tip, layer):
        at = [round(float(z), 1) + self.down * (k % 2) for k, z in enumerate(at)]
        at += [round(float(size * self.scale), 1) for size in sizes]
        self.shapes.append(Shape(kind, look, tuple(at), text, tip, layer))


def draw_graph(pen, frame):
    """Triangles under edges under vertices; new triangles and highlighted edges are in front of the rest."""
    graph = frame.scene.graph
    points = (np.array(CORNER) + frame.scene.points * (INCH, -INCH)).tolist()
    for k, triangle in enumerate(frame.triangles):
        corners = [points[v] for v in triangle]
        new = k >= len(frame.triangles) - frame.new
        pen.line("new" if new else "old", corners, layer=new, kind="area")
        if new:
            pen.line("outline", corners, layer=4, kind="area")
    for ends in zip(*(end.tolist() for end in graph.edges()), strict=True):
        pen.line("edge", [points[v] for v in ends], layer=2)
    for ends in frame.edges:
        pen.line("lit", [points[v] for v in ends], layer=3)
    radius, letters = next((radius, letters) for most, radius, letters in VERTICES if graph.n <= most)
    for v, (x, y) in enumerate(points):
        look = frame.vertices.get(v)
        rows = counted(int(graph.col_ptr[v + 1] - graph.col_ptr[v]), "row")
        tip = f"vertex {v}: {MEANINGS[look]}; column {v} has {rows}" if look else f"vertex {v}; column {v} has {rows}"
        style = {None: "there", "there": "stored"}.get(look, look)
        pen.dot(style, x, y, radius, tip, layer=5)
        pen.text(style, x, y, letters, str(v), layer=6)


# --------------------------------------------------------------------------------------------------------------- panels


def draw_panels(pen, frame):
    """Draw the panels, one below the other, smaller if they do not fit. A matrix fills the remaining space."""
    x, y, x_end, y_end = RIGHT
    total = sum(panel_height(panel) + BETWEEN for panel in frame.panels)
    scale = min(1.0, (y_end - y) / total)
    pen = Pen(x, y, scale, pen.shapes, pen.down)
    top, width, spare = 0.0, (x_end - x) / scale, (y_end - y) / scale - total
    for panel in frame.panels:
        height = panel_height(panel)
        if isinstance(panel, Matrix):  # its cells are as large as fits
            rows, columns = size_of(panel)
            height = ABOVE + rows * min(CELL, (width - margin_of(panel)) / columns, (height + spare - ABOVE) / rows)
        pen.text("plain start bold", 0, top + 13, 15, panel.label, layer=2)
        draw_memory(pen, top, height, width, getattr(panel, "memory", ""))
        DRAW[type(panel)](pen, panel, top, width, height, frame.scene.graph)
        top += height + BETWEEN


def draw_memory(pen, top, height, width, memory):
    """Write the name of a memory. Draw a box around shared memory (solid) or registers (dashed)."""
    if memory:
        pen.text("muted end italic", width, top + 13, 12.5, memory, layer=2)
    if memory not in ("", GLOBAL):
        pen.box("shared" if memory == SHARED else "registers", -8, top, width + 16, height)


def draw_squares(pen, corners, side, looks, tips, inset=2):
    """Draw a square for each look but "", with its upper left corner at the given point."""
    for (x, y), look, tip in zip(corners, looks, tips, strict=True):
        if look:
            pen.box(look, x + inset, y + inset, side - 2 * inset, side - 2 * inset, tip, layer=1)


def panel_height(panel):
    """The height of a panel at scale 1; the least height of a matrix."""
    if isinstance(panel, Cells):
        count = 1 if panel.tree else max(1, -(-max(panel.room, len(panel.values)) // PER_LINE))
        return LABEL + tree_height(panel) + count * sum(line_heights(panel))
    if isinstance(panel, Matrix):
        return ABOVE + SMALLEST * size_of(panel)[0]
    return LABEL + STRIP + 5


def tree_height(cells):
    return BRANCH * cells.tree.room if cells.tree else 0


def line_heights(cells):
    """The heights of a line of cells: the space for heads, the cells, the space for marks."""
    return 17 if cells.heads else 6, CELL, 8 if cells.marks is None else 20


def draw_cells(pen, cells, top, width, height, graph):
    top += LABEL + tree_height(cells)
    across = max(PER_LINE, cells.room) if cells.tree else PER_LINE  # a tree needs all cells in one line
    side = min(CELL, width / across)
    corners, gap = [], 0.0
    for k in range(len(cells.values) + 1):  # also of the next cell, where nodes past the last one are drawn
        line, column = divmod(k, across)
        gap = 0.0 if column == 0 else gap + GAP * (k - 1 in cells.gaps)
        corners.append((column * side + gap, top + line_heights(cells)[0] + line * sum(line_heights(cells))))
    if not cells.values:
        pen.box("nothing", *corners[0], side, side, "nothing is here", layer=1)
        return
    if cells.tree:
        draw_tree(pen, cells, top, width, [x + side / 2 for x, _ in corners], side)
    shown = zip(cells.values, cells.looks, strict=True)
    tips = [f"{cells.label}: {value or '-'}, {MEANINGS[look]}" for value, look in shown]
    draw_squares(pen, corners[:-1], side, cells.looks, tips)
    for (x, y), value, look in zip(corners[:-1], cells.values, cells.looks, strict=True):
        if value != "":
            bold = " bold" if look in ("looked", "hit") else ""
            pen.text(look + bold, x + side / 2, y + side / 2, min(15, 0.42 * side), str(value), layer=2)
    for k, text in cells.heads.items():
        (x, y), short = corners[k], len(text) <= 3
        pen.text("muted" if short else "muted start", x + short * side / 2, y - 7, 11, text, layer=2)
    for k, text in (cells.marks or {}).items():
        x, y = corners[k]
        pen.text("point bold", x + side / 2, y + side + 10, 13, text, layer=2)


def draw_tree(pen, cells, bottom, width, middles, side):
    """Draw the search tree, each node above its cell, the root at the top; a node past all cells is a dash."""
    tree, top = cells.tree, bottom - BRANCH * len(cells.tree.levels)
    nodes = [(level, cell) for level, positions in enumerate(tree.levels) for cell in positions]
    at = [(middles[cell], top + BRANCH * (level + 0.5)) for level, cell in nodes]
    if tree.cached:
        draw_memory(pen, top, BRANCH * tree.cached, width, SHARED)
    for k in range(1, len(at)):
        pen.line("edge", [at[(k - 1) // 2], at[k]], layer=1)
    radius = min(13.5, 0.46 * side)
    for node, ((x, y), (_, cell)) in enumerate(zip(at, nodes, strict=True)):
        look = "looked" if node in tree.lanes else "there"
        text = str(cells.values[cell]) if cell < len(cells.values) else "–"
        pen.dot(look, x, y, radius, layer=2)
        pen.text(look, x, y, min(12.5, 0.9 * radius), text, layer=3)
        pen.text("point bold", x, y - radius - 8, 12, tree.lanes.get(node, ""), layer=3)


def draw_row_idx(pen, panel, top, width, height, graph):
    side, begins, place = min(width / max(1, graph.m), STRIP), graph.col_ptr, np.arange(graph.m)
    odd = np.searchsorted(np.unique(begins[:-1]), place, side="right") % 2 == 1
    looks = np.where(odd, "even", "odd").astype(object)  # every other column, so that their beginnings can be seen
    for v in panel.columns:
        looks[begins[v] : begins[v + 1]] = "chosen"
    looks[list(panel.read)] = "looked"
    for k, (look, row, column) in enumerate(zip(looks, graph.row_idx.tolist(), graph.col_of.tolist(), strict=True)):
        read = ", read" if look == "looked" else ""
        pen.box(look, side * k + 0.4, top + LABEL, side - 0.8, STRIP, f"row_idx[{k}] = {row}, in column {column}{read}")


def size_of(matrix):
    """Rows and columns that a matrix needs space for."""
    return max(matrix.room[0], len(matrix.rows), 1), max(matrix.room[1], len(matrix.columns), 1)


def margin_of(matrix):
    """The space on the left of a matrix, for the names of its rows."""
    return 15 + 8.5 * max((len(str(row)) for row in matrix.rows), default=2)


def draw_matrix(pen, matrix, top, width, height, graph):
    side = (height - ABOVE) / size_of(matrix)[0]
    left, top = margin_of(matrix), top + ABOVE - 5
    rows, columns = range(len(matrix.rows)), range(len(matrix.columns))
    corners = [(left + c * side, top + r * side) for r in rows for c in columns]
    looks = [look for line in matrix.looks for look in line]
    tips = [
        f"{row}, {column}: {MEANINGS[look]}" if look else ""
        for row, line in zip(matrix.rows, matrix.looks, strict=True)
        for column, look in zip(matrix.columns, line, strict=True)
    ]  # fmt: skip
    draw_squares(pen, corners, side, looks, tips, inset=0.06 * side)
    letters = min(14, 0.5 * side)
    if letters * pen.scale >= LEGIBLE:
        for r, text in enumerate(matrix.rows):
            pen.text("plain end", left - 7, top + (r + 0.5) * side, letters, str(text), layer=2)
        for c, text in enumerate(matrix.columns):
            pen.text("plain", left + (c + 0.5) * side, top - 3 - letters / 2, letters, str(text), layer=2)
    for path in matrix.paths:
        pen.line("path", [(left + c * side, top + r * side) for r, c in path], layer=2)
    for cut in matrix.cuts:  # from the lower end of the diagonal to its upper end
        low, high = (min(cut, len(rows)), max(0, cut - len(rows))), (max(0, cut - len(columns)), min(cut, len(columns)))
        pen.line("cut", [(left + c * side, top + r * side) for r, c in (low, high)], layer=2)
    for (r, c), text in matrix.dots.items():
        letters = min(12.5, 0.47 * side)
        wide = letters * (0.9 + 0.62 * len(text))
        x, y = left + c * side, top + r * side
        pen.box("looked", x - wide / 2, y - 0.75 * letters, wide, 1.5 * letters, layer=4)
        pen.text("looked bold", x, y, letters, text, layer=5)


DRAW = {Cells: draw_cells, RowIdx: draw_row_idx, Matrix: draw_matrix}
