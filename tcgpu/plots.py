"""Charts of graphs and their columns. Each function draws one, on the axes given or on a new figure."""

from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from tcgpu.figures import BLUE, GREY, ORANGE, axes, looks, plain_ticks
from tcgpu.graph import Graph


def draw_graph(
    graph: Graph, *, triangles: ArrayLike = (), positions: ArrayLike | None = None, ax: Axes | None = None
) -> Figure:
    """Draw a graph: vertices as dots, edges as lines, and `triangles`, rows of three vertices, as filled areas.

    positions: an array with a point for each vertex; without it, those of `layout`.
    """
    ax = ax or axes(5, 5)
    points = layout(graph) if positions is None else np.asarray(positions)
    lines = points[np.stack(graph.edges(), axis=1)]
    ax.add_collection(LineCollection(lines, colors=GREY, linewidths=1, zorder=1))
    if len(triangles):
        ax.add_collection(PolyCollection(points[np.asarray(triangles)], facecolors=ORANGE, alpha=0.25, zorder=0))
    ax.scatter(*points.T, s=160 if graph.n <= 100 else 12, color=BLUE, zorder=2)
    if graph.n <= 100:
        for v, point in enumerate(points):
            ax.annotate(str(v), point, color="white", ha="center", va="center", size=7, zorder=3)
    ax.set_axis_off()
    ax.set_aspect("equal")
    return ax.figure


def layout(graph: Graph, seed: int = 1) -> np.ndarray:
    """Return an array with a point for each vertex, by NetworkX's spring layout."""
    import networkx as nx

    numbered = nx.empty_graph(graph.n)
    numbered.add_edges_from(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    places = nx.spring_layout(numbered, seed=seed)
    return np.array([places[v] for v in range(graph.n)]).reshape(-1, 2)


def draw_columns(graph: Graph, *, looked_at: Iterable[int] = (), ax: Axes | None = None) -> Figure:
    """Draw the nonzeros of L, the strictly lower triangular matrix; the columns in `looked_at` are orange."""
    ax = ax or axes(5, 5)
    looked_at = list(looked_at)
    rows, cols = graph.edges()
    size = 180_000 / max(graph.n, 10) ** 2
    chosen = np.isin(cols, looked_at)
    for column in looked_at:
        ax.axvspan(column - 0.5, column + 0.5, color=ORANGE, alpha=0.15, lw=0)
    ax.scatter(cols[~chosen], rows[~chosen], s=size * 0.3, marker="s", color=BLUE, lw=0)
    ax.scatter(cols[chosen], rows[chosen], s=size * 0.3, marker="s", color=ORANGE, lw=0)
    ax.plot([-0.5, graph.n - 0.5], [-0.5, graph.n - 0.5], color=GREY, lw=1)
    ax.set(xlim=(-0.5, graph.n - 0.5), ylim=(graph.n - 0.5, -0.5), xlabel="column j", ylabel="row i")
    ax.set_aspect("equal")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    return ax.figure


def draw_column_lengths(graphs: Mapping[str, Graph], *, ax: Axes | None = None) -> Figure:
    """Draw how many columns have how many nonzeros, on logarithmic axes. graphs: a dict of name -> Graph."""
    ax = ax or axes(6, 3.5)
    for (name, graph), look in looks(graphs.items()):
        lengths, columns = np.unique(graph.column_lengths, return_counts=True)
        label = f"{name}: {graph.nonzeros_per_column:.1f} in the mean"
        ax.plot(np.maximum(lengths, 0.5), columns, look.marker, color=look.color, ms=3.5, label=label)
    ax.set(xscale="log", yscale="log", xlabel="nonzeros of a column", ylabel="columns")
    plain_ticks(ax.yaxis)
    longest = max([1, *(graph.column_lengths.max(initial=0) for graph in graphs.values())])
    powers = [10**k for k in range(len(str(longest)))]
    ax.set_xticks([0.5, *powers], ["0", *(f"{power:,}" for power in powers)])  # an empty column has no logarithm
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure
