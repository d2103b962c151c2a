"""A frame as a picture: the graph on the left, the method's panels on the right, all at the same places in each frame.

Everything is drawn in inches on one pair of axes, so that letters and cells keep their sizes.
"""

import textwrap

import numpy as np
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from tcgpu import plots
from tcgpu.plots import BLUE, GREY, ORANGE
from tcgpu.stepper.frames import GLOBAL, SHARED, Cells, Lower, Matrix, Strip

WIDTH, HEIGHT, CAPTION = 10.4, 5.4, 0.75  # inches
CORNER = 0.4, 0.65  # of the graph's box
RIGHT = 4.0, 0.15, WIDTH - 0.2, 4.75  # the panels'
CELL = 0.36
PER_LINE = 16  # cells
HEAD, FOOT, LABEL, APART = 0.17, 0.2, 0.27, 0.12  # above, below a line of cells; a panel's label; between panels
SMALLEST = 0.15  # cell of a matrix, at least
LOWER = 1.55  # height of L
BRANCH = 0.42  # from one level of a search tree to the next
INK, PALE, MUTED = "#2d3748", "#ebf4fb", "#718096"

# look -> face, border, letters, width of the border
STYLE = {
    "there": (PALE, BLUE, INK, 1.0),
    "looked": (ORANGE, ORANGE, "white", 1.0),
    "miss": ("white", ORANGE, ORANGE, 1.4),
    "hit": (INK, INK, "white", 1.0),
    "done": ("white", GREY, "#a0aec0", 0.8),
    "empty": ("white", "#e2e8f0", "#cbd5e0", 0.8),
}
LEGEND = (
    ("there", "there"),
    ("looked", "looked at"),
    ("miss", "in vain"),
    ("hit", "a triangle"),
    ("done", "done with"),
)


def draw(frame, *, caption=True):
    """The frame as a Picture; the caption under it can be left out where it is shown otherwise."""
    below = CAPTION if caption else 0.0
    picture = plots.Picture(figsize=(WIDTH, HEIGHT + below))
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(-below, HEIGHT))
    ax.set_axis_off()
    _draw_title(ax, frame)
    _draw_graph(ax, frame)
    _draw_panels(ax, frame.scene.graph, frame.panels)
    if caption:
        ax.text(0.25, 0, textwrap.fill(frame.caption, 118), size=11, color=INK, va="top", linespacing=1.4)
    return picture


def _draw_title(ax, frame):
    scene = frame.scene
    name = ax.text(0.25, HEIGHT - 0.33, scene.method, size=17, weight="bold", color=INK, va="center")
    ax.annotate(frame.title, (1, 0.5), (12, 0), xycoords=name, textcoords="offset points", size=12.5, color=INK,
                va="center")  # fmt: skip
    found, plural = len(frame.triangles), "s" * (len(frame.triangles) != 1)
    tally = f"{frame.lookups:,} {scene.unit}      {found:,} triangle{plural}"
    ax.text(WIDTH - 0.2, HEIGHT - 0.33, tally, size=12.5, color=INK, va="center", ha="right")
    ax.plot([0.25, WIDTH - 0.2], [HEIGHT - 0.6] * 2, color=GREY, lw=0.8)


def _draw_graph(ax, frame):
    graph, points = frame.scene.graph, frame.scene.points + CORNER
    old, new = np.split(np.array(frame.triangles, np.int64).reshape(-1, 3), [len(frame.triangles) - frame.new])
    ax.add_collection(PolyCollection(points[old], facecolors=BLUE, alpha=0.07, zorder=0))
    ax.add_collection(PolyCollection(points[new], facecolors=ORANGE, alpha=0.4, zorder=1))
    ax.add_collection(PolyCollection(points[new], facecolors="none", edgecolors=INK, linewidths=2, zorder=2.5))
    ax.add_collection(LineCollection(points[np.stack(graph.edges(), axis=1)], colors=GREY, linewidths=1, zorder=2))
    if frame.edges:
        ax.add_collection(LineCollection(points[np.array(frame.edges)], colors=ORANGE, linewidths=2.6, zorder=2.2))
    size, letters = (400, 11) if graph.n <= 16 else (200, 8.5) if graph.n <= 40 else (110, 6)
    styles = [_of_vertex(frame.vertices.get(v)) for v in range(graph.n)]
    faces, borders, inks = zip(*styles) if styles else ((), (), ())
    ax.scatter(*points.T, s=size, c=list(faces), edgecolors=list(borders), linewidths=1.3, zorder=3)
    for v, (x, y) in enumerate(points.tolist()):
        ax.text(x, y - 0.005, str(v), size=letters, color=inks[v], ha="center", va="center_baseline", zorder=4)
    x = 0.25
    for look, what in LEGEND:
        face, border, _, width = STYLE[look]
        ax.add_patch(Rectangle((x, 0.18), 0.13, 0.13, facecolor=face, edgecolor=border, lw=width))
        ax.text(x + 0.19, 0.245, what, size=8, color=MUTED, va="center")
        x += 0.3 + 0.05 * len(what)


def _of_vertex(look):
    """Face, border and letters of a vertex; one whose row is read is in full blue."""
    if look is None:
        return PALE, BLUE, INK
    if look == "there":
        return BLUE, BLUE, "white"
    return STYLE[look][:3]


# --------------------------------------------------------------------------------------------------------- the panels


def _draw_panels(ax, graph, panels):
    x, y, x_end, y_end = RIGHT
    wanted = sum(_height(panel) + APART for panel in panels)
    scale = min(1.0, (y_end - y) / wanted)
    top = y_end
    for panel in panels:
        if isinstance(panel, Matrix):
            room = y_end - y - scale * (wanted - _height(panel))
            top -= _draw_matrix(ax, panel, x, top, x_end - x, room, scale) + scale * APART
        else:
            if isinstance(panel, Lower):
                _draw_lower(ax, graph, panel, x, top, x_end, scale)
            else:
                (_draw_strip if isinstance(panel, Strip) else _draw_cells)(ax, panel, x, top, x_end, scale)
            top -= scale * (_height(panel) + APART)


def _lines(cells):
    return 1 if cells.tree else max(1, -(-max(cells.room, len(cells.values)) // PER_LINE))


def _pitch(cells):
    """From one line of cells to the next; there is room for heads and marks where such may come."""
    return (HEAD if cells.heads else 0.06) + CELL + (FOOT if cells.marked else 0.08)


def _height(panel):
    if isinstance(panel, Cells):
        return LABEL + (BRANCH * panel.tree.levels if panel.tree else 0) + _lines(panel) * _pitch(panel)
    if isinstance(panel, Strip):
        return LABEL + 0.25
    if isinstance(panel, Lower):
        return LOWER
    return LABEL + 0.25 + SMALLEST * max(panel.room[0], len(panel.rows))


def _label(ax, panel, x, top, x_end, scale, height):
    """What the panel is, and in which memory; `height` is its own."""
    ax.text(x, top - 0.13 * scale, panel.label, size=11 * scale, weight="bold", color=INK, va="center")
    memory = getattr(panel, "memory", None)
    if memory:
        ax.text(x_end, top - 0.13 * scale, memory, size=9 * scale, color=MUTED, va="center", ha="right", style="italic")
    if memory not in (None, "", GLOBAL):
        _box(ax, x, top - height, x_end, top, memory)


def _box(ax, x, y, x_end, y_end, memory):
    """Around what lies in a memory other than global memory: a line for shared memory, dashes for registers."""
    ax.add_patch(FancyBboxPatch((x - 0.08, y), x_end - x + 0.16, y_end - y, facecolor="#f7fafc", edgecolor=MUTED, lw=1,
                                zorder=-1, boxstyle="round,pad=0,rounding_size=0.06",
                                ls="-" if memory == SHARED else "--"))  # fmt: skip


def _draw_cells(ax, cells, x, top, x_end, scale):
    _label(ax, cells, x, top, x_end, scale, scale * _height(cells))
    across = PER_LINE if cells.tree is None else max(PER_LINE, cells.room)
    side = min(CELL * scale, (x_end - x) / across)
    high = top - scale * LABEL
    if cells.tree:
        high -= scale * BRANCH * cells.tree.levels
    corners, gap = [], 0.0
    for k in range(len(cells.values) + 1):
        line, place = divmod(k, across)
        gap = 0.0 if place == 0 else gap + 0.1 * scale * (k - 1 in cells.gaps)
        y = high - scale * ((HEAD if cells.heads else 0.06) + line * _pitch(cells)) - side
        corners.append((x + place * side + gap, y))
    if not cells.values:
        (left, low), *_ = corners
        ax.add_patch(Rectangle((left, low), side, side, facecolor="none", edgecolor=GREY, lw=0.8, ls=":"))
        return
    if cells.tree:
        _draw_tree(ax, cells, x, x_end, high, corners, side, scale)
    _draw_squares(ax, corners, side, cells.looks)
    letters = min(11 * scale, 30 * side)
    for (left, low), value, look in zip(corners, cells.values, cells.looks):
        ax.text(left + side / 2, low + side / 2, str(value), size=letters, color=STYLE[look][2], ha="center",
                va="center_baseline", weight="bold" if look in ("looked", "hit") else None)  # fmt: skip
    for k, text in cells.heads.items():
        left, low = corners[k]
        centred = len(text) <= 3
        ax.text(left + centred * side / 2, low + side + 0.04 * scale, text, size=8 * scale, color=MUTED,
                ha="center" if centred else "left", va="bottom")  # fmt: skip
    for k, text in cells.marks.items():
        left, low = corners[k]
        ax.text(left + side / 2, low - 0.02 * scale, text, size=9.5 * scale, color=ORANGE, weight="bold", ha="center",
                va="top")  # fmt: skip


def _draw_tree(ax, cells, x, x_end, base, corners, side, scale):
    """The search tree, each node over its cell, the root at the top."""
    tree = cells.tree
    lift = BRANCH * scale
    levels = 1 + max((level for level, _ in tree.nodes), default=-1)
    at = [(corners[place][0] + side / 2, base + lift * (levels - level - 0.5)) for level, place in tree.nodes]
    if tree.cached:
        y = base + lift * (levels - tree.cached)
        _box(ax, x, y, x_end, y + lift * tree.cached, SHARED)
        ax.text(
            x_end,
            y + lift * tree.cached - 0.1,
            SHARED,
            size=9 * scale,
            color=MUTED,
            va="center",
            ha="right",
            style="italic",
        )
    branches = [(at[(k - 1) // 2], at[k]) for k in range(1, len(at))]
    ax.add_collection(LineCollection(branches, colors=GREY, linewidths=1, zorder=1))
    radius = min(0.135 * scale, 0.46 * side)
    for (left, y), (_, place), look, lanes in zip(at, tree.nodes, tree.looks, tree.lanes):
        face, border, ink, width = STYLE[look]
        ax.add_patch(Circle((left, y), radius, facecolor=face, edgecolor=border, lw=width, zorder=2))
        said = str(cells.values[place]) if place < len(cells.values) else "–"  # past all rows
        ax.text(left, y, said, size=min(9 * scale, 62 * radius), color=ink, ha="center",
                va="center_baseline", zorder=3)  # fmt: skip
        ax.text(left, y + radius + 0.02, lanes, size=9 * scale, color=ORANGE, weight="bold", ha="center", va="bottom",
                zorder=3)  # fmt: skip


def _draw_squares(ax, corners, side, looks, inset=0.02):
    """A square for each look but "", its lower left corner at the corner of that place."""
    squares = [Rectangle((x + inset, y + inset), side - 2 * inset, side - 2 * inset) for x, y in corners]
    kept = [k for k, look in enumerate(looks) if look]
    face, border, _, width = zip(*(STYLE[looks[k]] for k in kept)) if kept else ((), (), (), ())
    ax.add_collection(PatchCollection([squares[k] for k in kept], facecolors=face, edgecolors=border, linewidths=width))


def _draw_strip(ax, strip, x, top, x_end, scale):
    _label(ax, strip, x, top, x_end, scale, 0)
    width = min((x_end - x) / max(1, strip.size), 0.2)
    low, high = top - scale * (LABEL + 0.2), 0.2 * scale
    owner = np.searchsorted(np.unique(strip.starts), np.arange(strip.size), side="right") % 2
    face = np.where(owner == 1, "#edf2f7", "#e2e8f0").astype(object)
    for begin, end in strip.parts:
        face[begin:end] = "#90b4dc"
    for at in strip.looked:
        face[at] = ORANGE
    places = [Rectangle((x + width * k, low), width, high) for k in range(strip.size)]
    ax.add_collection(PatchCollection(places, facecolors=face.tolist(), edgecolors="white", linewidths=0.6))


def _draw_lower(ax, graph, lower, x, top, x_end, scale):
    """L as squares, the columns that stand out as bands; its upper left corner beside the label."""
    _label(ax, lower, x, top, x_end, scale, 0)
    side = (LOWER - 0.1) * scale / max(1, graph.n)
    left, high = x + LABEL, top - 0.05
    for j in lower.columns:
        ax.add_patch(
            Rectangle(
                (left + j * side, high - graph.n * side), side, graph.n * side, facecolor=ORANGE, alpha=0.15, lw=0
            )
        )
    places = [
        Rectangle((left + j * side, high - (i + 1) * side), side, side) for i, j in zip(graph.row_idx, graph.col_of)
    ]
    looks = [lower.looks.get(edge) for edge in zip(graph.row_idx.tolist(), graph.col_of.tolist())]
    faces = [{"looked": ORANGE, "hit": INK}.get(look, BLUE) for look in looks]
    ax.add_collection(PatchCollection(places, facecolors=faces, edgecolors="white", linewidths=0.3))
    corners = [(left, high), (left, high - graph.n * side), (left + graph.n * side, high - graph.n * side)]
    ax.plot(*zip(*corners, corners[0]), color=GREY, lw=0.8)


def _draw_matrix(ax, matrix, x, top, width, room, scale):
    """Returns how high it is. Cells are as large as the room lets them be."""
    rows, columns = (max(given, there) for given, there in zip(matrix.room, (len(matrix.rows), len(matrix.columns))))
    margin = 0.15 + 0.085 * max((len(str(text)) for text in matrix.rows), default=2)
    above = scale * (LABEL + 0.2)
    side = min(CELL, (width - margin) / max(1, columns), (room - above - 0.05) / max(1, rows))
    height = above + 0.05 + rows * side
    _label(ax, matrix, x, top, x + width, scale, height)
    left, high = x + margin, top - above
    corners = [
        (left + c * side, high - (r + 1) * side) for r in range(len(matrix.rows)) for c in range(len(matrix.columns))
    ]
    _draw_squares(ax, corners, side, [look for line in matrix.looks for look in line], inset=0.06 * side)
    for way in matrix.paths:
        corners = [(left + c * side, high - r * side) for r, c in way]
        ax.plot(*zip(*corners), color=BLUE, lw=3, zorder=2, solid_capstyle="round")
    for d in matrix.cuts:
        ends = [(left + c * side, high - r * side) for r, c in _diagonal(d, len(matrix.rows), len(matrix.columns))]
        ax.plot(*zip(*ends), color=MUTED, lw=1, ls=(0, (3, 2)), zorder=2)
    for (r, c), text in matrix.dots.items():
        badge = {"boxstyle": "round,pad=0.25", "fc": ORANGE, "ec": "none"}
        ax.text(left + c * side, high - r * side, text, size=min(9, 34 * side), color="white", weight="bold",
                ha="center", va="center", zorder=4, bbox=badge)  # fmt: skip
    letters = min(10, 36 * side)
    if letters >= 4.5:
        for r, text in enumerate(matrix.rows):
            ax.text(
                left - 0.07,
                high - (r + 0.5) * side,
                str(text),
                size=letters,
                color=INK,
                ha="right",
                va="center_baseline",
            )
        for c, text in enumerate(matrix.columns):
            ax.text(left + (c + 0.5) * side, high + 0.03, str(text), size=letters, color=INK, ha="center", va="bottom")
    return height


def _diagonal(d, rows, columns):
    """The two corners (row, column) where diagonal d begins and ends."""
    return (min(d, rows), max(0, d - rows)), (max(0, d - columns), min(d, columns))
