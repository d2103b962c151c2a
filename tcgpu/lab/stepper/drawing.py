"""A frame as a picture: the graph on the left, the method's panels on the right, all at the same places in each frame.

Everything is drawn in inches on one pair of axes, so that letters and cells keep their sizes.
"""

import textwrap

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from tcgpu import figures
from tcgpu.figures import BLUE, GREY, ORANGE
from tcgpu.lab.stepper import panels
from tcgpu.lab.stepper.drawing_style import INK, LEGEND, MUTED, PALE, STYLE, lines, write

WIDTH, HEIGHT, CAPTION = 10.4, 5.4, 0.75  # inches
MARGIN = 0.25
CORNER = 0.4, 0.65  # of the graph
RIGHT = 4.0, 0.15, WIDTH - 0.2, 4.75  # x, y, x_end, y_end of the panels
VERTICES = ((16, 400, 11), (40, 200, 8.5), (10**9, 110, 6))  # up to so many of them: size of a dot, of its letters


def draw(frame, *, caption=True):
    """The frame as a Picture; the caption under it can be left out where it is shown otherwise."""
    below = CAPTION if caption else 0.0
    picture = figures.Picture(figsize=(WIDTH, HEIGHT + below))
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(-below, HEIGHT))
    ax.set_axis_off()
    _draw_title(ax, frame)
    _draw_graph(ax, frame)
    _draw_legend(ax)
    panels.draw_all(ax, frame.scene.graph, frame.panels, *RIGHT)
    if caption:
        write(ax, MARGIN, 0, textwrap.fill(frame.caption, 118), 11, ha="left", va="top", linespacing=1.4)
    return picture


def _draw_title(ax, frame):
    """The method, what is at work, and the tally."""
    y, scene, found = HEIGHT - 0.33, frame.scene, len(frame.triangles)
    name = write(ax, MARGIN, y, scene.method, 17, ha="left", va="center", bold=True)
    ax.annotate(frame.title, (1, 0.5), (12, 0), xycoords=name, textcoords="offset points", size=12.5, color=INK,
                va="center")  # fmt: skip
    tally = f"{frame.lookups:,} {scene.unit}      {found:,} triangle{'s' * (found != 1)}"
    write(ax, WIDTH - 0.2, y, tally, 12.5, ha="right", va="center")
    ax.plot([MARGIN, WIDTH - 0.2], [HEIGHT - 0.6] * 2, color=GREY, lw=0.8)


def _draw_graph(ax, frame):
    """Triangles under edges under vertices; new triangles and what stands out are in front of the rest."""
    graph, points = frame.scene.graph, frame.scene.points + CORNER
    before = len(frame.triangles) - frame.new
    old, new = np.split(np.array(frame.triangles, np.int64).reshape(-1, 3), [before])
    ax.add_collection(PolyCollection(points[old], facecolors=BLUE, alpha=0.07, zorder=0))
    ax.add_collection(PolyCollection(points[new], facecolors=ORANGE, alpha=0.4, zorder=1))
    ax.add_collection(PolyCollection(points[new], facecolors="none", edgecolors=INK, linewidths=2, zorder=2.5))
    lines(ax, points[np.stack(graph.edges(), axis=1)], GREY, 1, order=2)
    lines(ax, points[np.array(frame.edges, np.int64).reshape(-1, 2)], ORANGE, 2.6, order=2.2)
    size, letters = next((size, letters) for most, size, letters in VERTICES if graph.n <= most)
    faces, borders, inks = zip(*(_of_vertex(frame.vertices.get(v)) for v in range(graph.n)))
    ax.scatter(*points.T, s=size, c=faces, edgecolors=borders, linewidths=1.3, zorder=3)
    for v, (x, y) in enumerate(points.tolist()):
        write(ax, x, y - 0.005, str(v), letters, inks[v], zorder=4)


def _of_vertex(look):
    """Face, border and letters of a vertex: as of a cell, but full blue where its row is at hand and pale elsewhere."""
    return {None: (PALE, BLUE, INK), "there": (BLUE, BLUE, "white")}.get(look) or STYLE[look][:3]


def _draw_legend(ax):
    x = MARGIN
    for look, what in LEGEND.items():
        face, border, _, width = STYLE[look]
        ax.add_patch(Rectangle((x, 0.18), 0.13, 0.13, facecolor=face, edgecolor=border, lw=width))
        write(ax, x + 0.19, 0.245, what, 8, MUTED, ha="left", va="center")
        x += 0.3 + 0.05 * len(what)
