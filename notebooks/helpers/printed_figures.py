"""Figures 1 and 3 of Bisson & Fatica's *Static Graph Challenge on GPU*, drawn from a graph. Our copy lacks theirs."""

import numpy as np
from matplotlib.patches import Rectangle

from tcgpu.figures import BLUE, DARK, GREY, ORANGE, axes


def draw_product(graph):
    """Figure 1: the two halves of the adjacency matrix, and their product, of which the grey elements are added up."""
    lower = graph.lower().toarray().astype(int)
    product = np.tril(lower @ lower.T, -1)
    found = int((product * lower).sum())
    panels = axes(9, 3.4, ncols=3)
    matrices = {"L": lower, "U": lower.T, f"Lower(L x U): {found} in grey": product}
    for panel, (name, matrix) in zip(panels, matrices.items(), strict=True):
        kept = lower if matrix is product else matrix
        for row, column in np.argwhere(matrix + kept):
            _cell(panel, column, row, matrix[row, column], GREY if kept[row, column] else "white")
        _without_frame(panel, (-0.1, graph.n + 0.1), (graph.n + 0.1, -0.1))
        panel.set(title=name, xticks=np.arange(graph.n) + 0.5, yticks=np.arange(graph.n) + 0.5, aspect="equal")
        panel.set_xticklabels(range(graph.n), size=8)
        panel.set_yticklabels(range(graph.n), size=8)
    return panels[0].figure


def draw_places(graph, triangle, threads):
    """Figure 3: where the edges of a triangle i > j > k are, in the lists of lower vertices of i and of j.

    threads: of the block, which reads a chunk of as many vertices of list i at a time. Orange is the triangle.
    """
    i, j, k = triangle
    lists = [np.flatnonzero(row) for row in graph.lower().toarray()]
    panel = axes(8, 3.6)
    for y, (vertex, wanted) in enumerate(((i, {j, k}), (j, {k}))):
        panel.text(-0.3, 4 * y + 0.5, f"list of {'ij'[y]} = {vertex}", ha="right", va="center")
        for place, other in enumerate(lists[vertex]):
            _cell(panel, place + 0.4 * (place // threads) * (y == 0), 4 * y, other, ORANGE if other in wanted else BLUE)
    panel.text(-0.3, 2.5, "bits", ha="right", va="center")
    for vertex in range(graph.n):
        _cell(panel, vertex, 2, int(vertex in lists[i]), ORANGE if vertex == k else GREY)
    panel.text(k + 0.5, 1.85, str(k), ha="center", size=8)
    width = graph.n + 1
    told = (
        f"thread {list(lists[i]).index(j) % threads} hands out j = {j}; each adds what it finds to (i, j)",
        "bit k of list i is set: the triangle is closed",
        f"thread {list(lists[j]).index(k) % threads} reads k = {k}: adds to (j, k) here, to (i, k) in the list of i",
    )
    for line, text in enumerate(told):
        panel.text(width, 2 * line + 0.5, text, va="center", size=8, color=DARK)
    _without_frame(panel, (-3, width + 9), (5.5, -0.5))
    panel.set(xticks=[], yticks=[])
    return panel.figure


def _cell(panel, x, y, text, color):
    panel.add_patch(Rectangle((x, y), 1, 1, facecolor=color, edgecolor=DARK, lw=0.8))
    ink = "white" if color in (BLUE, ORANGE) else "black"
    panel.text(x + 0.5, y + 0.5, str(text), color=ink, ha="center", va="center", size=9)


def _without_frame(panel, xlim, ylim):
    panel.set(xlim=xlim, ylim=ylim)
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
