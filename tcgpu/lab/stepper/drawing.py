"""A frame as a picture: the graph on the left, the panels on the right, all at the same positions in every frame.

The unit is the inch, so that letters and cells keep their sizes. Orange marks what is read, blue what is stored, grey
what is no longer needed, as in `tcgpu.figures`; dark marks triangles. The colours differ in brightness, too, so that
colour-blind readers can distinguish them.
"""

import numpy as np
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from tcgpu.figures import BLUE, GREY, ORANGE, Picture
from tcgpu.lab.stepper.frames import GLOBAL, SHARED, Cells, Frame, Lower, Matrix, RowIdx

INK, PALE, MUTED = "#2d3748", "#ebf4fb", "#718096"
STYLE = {  # look -> face, border, letters, width of the border
    "there": (PALE, BLUE, INK, 1.0),
    "looked": (ORANGE, ORANGE, "white", 1.0),
    "miss": ("white", ORANGE, ORANGE, 1.4),
    "hit": (INK, INK, "white", 1.0),
    "done": ("white", GREY, "#a0aec0", 0.8),
    "empty": ("white", "#e2e8f0", "#cbd5e0", 0.8),
}
VERTEX_STYLE = STYLE | {None: STYLE["there"], "there": (BLUE, BLUE, "white", 1.0)}
LEGEND = {"there": "stored", "looked": "looked at", "miss": "not found", "hit": "triangle", "done": "done"}

# inches, all that follows
WIDTH, HEIGHT = 10.4, 5.4
MARGIN = 0.25
CORNER = 0.4, 0.65  # of the graph
RIGHT = 4.0, 0.15, WIDTH - 0.2, 4.75  # x, y, x_end, y_end of the panels
CELL = 0.36
LABEL, BETWEEN = 0.27, 0.12  # a panel's label; from one panel to the next
GAP = 0.1  # between words
BRANCH = 0.42  # from one level of a search tree to the next
STRIP = 0.2  # height of `row_idx`, and most of the width of an element
LOWER = 1.45  # sides of L
SMALLEST = 0.15  # cell of a matrix, at least
ABOVE = LABEL + 0.25  # a matrix

PER_LINE = 16  # cells
LEGIBLE = 4.5  # points: the least size of letters
VERTICES = ((16, 400, 11), (40, 200, 8.5), (10**9, 110, 6))  # (most vertices, size of a dot, size of its letters)


def draw(frame: Frame) -> Picture:
    """The frame as a Picture, without its caption."""
    picture = Picture(figsize=(WIDTH, HEIGHT))
    ax = inch_axes(picture)
    draw_title(ax, frame)
    draw_graph(ax, frame)
    draw_legend(ax)
    draw_panels(picture, frame)
    return picture


def inch_axes(picture, x=0.0, y=0.0, scale=1.0):
    """Axes over the whole picture with the origin at (x, y), whose unit is an inch times `scale`."""
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(-x / scale, (WIDTH - x) / scale), ylim=(-y / scale, (HEIGHT - y) / scale))
    ax.set_axis_off()
    return ax


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
    draw_lines(ax, points[np.stack(graph.edges(), axis=1)], GREY, 1, zorder=2)
    draw_lines(ax, points[np.array(frame.edges, np.int64).reshape(-1, 2)], ORANGE, 2.6, zorder=2.2)
    size, letters = next((size, letters) for most, size, letters in VERTICES if graph.n <= most)
    faces, borders, inks, _ = zip(*(VERTEX_STYLE[frame.vertices.get(v)] for v in range(graph.n)))
    ax.scatter(*points.T, s=size, c=faces, edgecolors=borders, linewidths=1.3, zorder=3)
    for v, (x, y) in enumerate(points.tolist()):
        write(ax, x, y - 0.005, str(v), letters, inks[v], zorder=4)


def draw_legend(ax):
    x = MARGIN
    for look, meaning in LEGEND.items():
        draw_squares(ax, [(x, 0.18)], 0.13, [look], inset=0)
        write(ax, x + 0.19, 0.245, meaning, 8, MUTED, ha="left", va="center")
        x += 0.32 + 0.058 * len(meaning)


# -------------------------------------------------------------------------------------------------------------- strokes


def scale_of(ax):
    return WIDTH / np.ptp(ax.get_xlim())


def write(ax, x, y, text, size, color=INK, ha="center", va="center_baseline", bold=False, **more):
    """Write a text of `size` points times the scale of the axes, centred at (x, y) unless ha and va say otherwise."""
    weight = "bold" if bold else None
    return ax.text(x, y, text, size=size * scale_of(ax), color=color, ha=ha, va=va, weight=weight, **more)


def draw_rectangles(ax, boxes, faces, borders="white", widths=0.5):
    """Draw rectangles (x, y, width, height), each with its own face, and border if several are given."""
    patches = [Rectangle((x, y), width, height) for x, y, width, height in boxes]
    ax.add_collection(PatchCollection(patches, facecolors=faces, edgecolors=borders, linewidths=widths))


def draw_squares(ax, corners, side, looks, inset=0.02):
    """Draw a square for each look but "", with its lower left corner at the given point."""
    kept = [(x + inset, y + inset, look) for (x, y), look in zip(corners, looks) if look]
    faces, borders, _, widths = zip(*(STYLE[look] for *_, look in kept)) if kept else ((), (), (), ())
    draw_rectangles(ax, [(x, y, side - 2 * inset, side - 2 * inset) for x, y, _ in kept], faces, borders, widths)


def draw_lines(ax, ends, colour, width, zorder):
    """Draw straight lines, two points each."""
    ax.add_collection(LineCollection(ends, colors=colour, linewidths=width, zorder=zorder))


def draw_memory(ax, y, top, width, memory):
    """Write the name of a memory. Draw a box around shared memory (solid) or registers (dashed)."""
    write(ax, width, top - 0.13, memory, 9, MUTED, ha="right", va="center", style="italic")
    if memory not in ("", GLOBAL):
        ax.add_patch(FancyBboxPatch(
            (-0.08, y), width + 0.16, top - y, boxstyle="round,pad=0,rounding_size=0.06", facecolor="#f7fafc",
            edgecolor=MUTED, lw=1, ls="-" if memory == SHARED else "--", zorder=-1,
        ))  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- panels


def draw_panels(picture, frame):
    """Draw the panels, one below the other, smaller if they do not fit. A matrix fills the remaining space."""
    x, y, x_end, y_end = RIGHT
    total = sum(panel_height(panel) + BETWEEN for panel in frame.panels)
    scale = min(1.0, (y_end - y) / total)
    ax = inch_axes(picture, x, y_end, scale)
    top, width, spare = 0.0, (x_end - x) / scale, (y_end - y) / scale - total
    for panel in frame.panels:
        height = panel_height(panel)
        if isinstance(panel, Matrix):  # its cells are as large as fits
            rows, columns = size_of(panel)
            height = ABOVE + rows * min(CELL, (width - margin_of(panel)) / columns, (height + spare - ABOVE) / rows)
        write(ax, 0, top - 0.13, panel.label, 11, ha="left", va="center", bold=True)
        draw_memory(ax, top - height, top, width, getattr(panel, "memory", ""))
        DRAW[type(panel)](ax, panel, top, width, height, frame.scene.graph)
        top -= height + BETWEEN


def panel_height(panel):
    """The height of a panel at scale 1; the least height of a matrix."""
    if isinstance(panel, Cells):
        count = 1 if panel.tree else max(1, -(-max(panel.room, len(panel.values)) // PER_LINE))
        return LABEL + tree_height(panel) + count * sum(line_heights(panel))
    if isinstance(panel, Matrix):
        return ABOVE + SMALLEST * size_of(panel)[0]
    return LABEL + STRIP + 0.05 if isinstance(panel, RowIdx) else LOWER + 0.1


def tree_height(cells):
    return BRANCH * cells.tree.room if cells.tree else 0


def line_heights(cells):
    """The heights of a line of cells: the space for heads, the cells, the space for marks."""
    return 0.17 if cells.heads else 0.06, CELL, 0.08 if cells.marks is None else 0.2


def draw_cells(ax, cells, top, width, height, graph):
    top -= LABEL + tree_height(cells)
    across = max(PER_LINE, cells.room) if cells.tree else PER_LINE  # a tree needs all cells in one line
    side = min(CELL, width / across)
    corners, gap = [], 0.0
    for k in range(len(cells.values) + 1):  # also of the next cell, where nodes past the last one are drawn
        line, column = divmod(k, across)
        gap = 0.0 if column == 0 else gap + GAP * (k - 1 in cells.gaps)
        corners.append((column * side + gap, top - line_heights(cells)[0] - line * sum(line_heights(cells)) - side))
    if not cells.values:
        ax.add_patch(Rectangle(corners[0], side, side, facecolor="none", edgecolor=GREY, lw=0.8, ls=":"))
        return
    if cells.tree:
        draw_tree(ax, cells, top, width, [x + side / 2 for x, _ in corners], side)
    draw_squares(ax, corners, side, cells.looks)
    for (x, y), value, look in zip(corners, cells.values, cells.looks):
        ink, bold = STYLE[look][2], look in ("looked", "hit")
        write(ax, x + side / 2, y + side / 2, str(value), min(11, 30 * side), ink, bold=bold)
    for k, text in cells.heads.items():
        (x, y), short = corners[k], len(text) <= 3
        write(ax, x + short * side / 2, y + side + 0.04, text, 8, MUTED, ha="center" if short else "left", va="bottom")
    for k, text in (cells.marks or {}).items():
        x, y = corners[k]
        write(ax, x + side / 2, y - 0.02, text, 9.5, ORANGE, va="top", bold=True)


def draw_tree(ax, cells, bottom, width, middles, side):
    """Draw the search tree, each node above its cell, the root at the top; a node past all cells is a dash."""
    tree, top = cells.tree, bottom + BRANCH * len(cells.tree.levels)
    nodes = [(level, cell) for level, positions in enumerate(tree.levels) for cell in positions]
    at = [(middles[cell], top - BRANCH * (level + 0.5)) for level, cell in nodes]
    if tree.cached:
        draw_memory(ax, top - BRANCH * tree.cached, top, width, SHARED)
    draw_lines(ax, [(at[(k - 1) // 2], at[k]) for k in range(1, len(at))], GREY, 1, zorder=1)
    radius = min(0.135, 0.46 * side)
    for node, ((x, y), (_, cell)) in enumerate(zip(at, nodes)):
        face, border, ink, line = STYLE["looked" if node in tree.lanes else "there"]
        ax.add_patch(Circle((x, y), radius, facecolor=face, edgecolor=border, lw=line, zorder=2))
        text = str(cells.values[cell]) if cell < len(cells.values) else "–"
        write(ax, x, y, text, min(9, 62 * radius), ink, zorder=3)
        write(ax, x, y + radius + 0.02, tree.lanes.get(node, ""), 9, ORANGE, va="bottom", bold=True, zorder=3)


def draw_row_idx(ax, panel, top, width, height, graph):
    side, begins, place = min(width / max(1, graph.m), STRIP), graph.col_ptr, np.arange(graph.m)
    odd = np.searchsorted(np.unique(begins[:-1]), place, side="right") % 2 == 1
    colours = np.where(odd, "#edf2f7", "#e2e8f0")  # every other column, so that their beginnings can be seen
    for v in panel.columns:
        colours[begins[v] : begins[v + 1]] = "#90b4dc"
    colours[list(panel.read)] = ORANGE
    draw_rectangles(ax, [(side * k, top - LABEL - STRIP, side, STRIP) for k in place], colours.tolist())


def draw_lower(ax, lower, top, width, height, graph):
    """Draw L and its label: nonzeros as squares, highlighted columns as bands."""
    side, left, top, bottom = LOWER / max(1, graph.n), LABEL, top - 0.05, top - 0.05 - LOWER
    for j in lower.columns:
        ax.add_patch(Rectangle((left + j * side, bottom), side, LOWER, facecolor=ORANGE, alpha=0.15, lw=0))
    nonzeros = list(zip(*(end.tolist() for end in graph.edges())))
    colours = [{"looked": ORANGE, "hit": INK}.get(lower.looks.get(nonzero), BLUE) for nonzero in nonzeros]
    boxes = [(left + j * side, top - (i + 1) * side, side, side) for i, j in nonzeros]
    draw_rectangles(ax, boxes, colours, widths=0.3)
    ax.plot([left, left, left + LOWER, left], [top, bottom, bottom, top], color=GREY, lw=0.8)


def size_of(matrix):
    """Rows and columns that a matrix needs space for."""
    return max(matrix.room[0], len(matrix.rows), 1), max(matrix.room[1], len(matrix.columns), 1)


def margin_of(matrix):
    """The space on the left of a matrix, for the names of its rows."""
    return 0.15 + 0.085 * max((len(str(row)) for row in matrix.rows), default=2)


def draw_matrix(ax, matrix, top, width, height, graph):
    side = (height - ABOVE) / size_of(matrix)[0]
    left, top = margin_of(matrix), top - ABOVE + 0.05
    rows, columns = range(len(matrix.rows)), range(len(matrix.columns))
    corners = [(left + c * side, top - (r + 1) * side) for r in rows for c in columns]
    draw_squares(ax, corners, side, [look for line in matrix.looks for look in line], inset=0.06 * side)
    letters = min(10, 36 * side)
    if letters * scale_of(ax) >= LEGIBLE:
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


DRAW = {Cells: draw_cells, RowIdx: draw_row_idx, Lower: draw_lower, Matrix: draw_matrix}
