"""The speedup of `column_block` over `naive` against nonzeros per column: estimated, measured, published.

`draw_sweep` draws it for the explorer, the notebooks and the README.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from matplotlib.patheffects import withStroke

from tcgpu import datasets
from tcgpu.figures import LOOKS, axes, plain_ticks
from tcgpu.records import Rows

NOW, ESTIMATED, MEASURED, PUBLISHED, PICKED = "this run", "estimated", "measured", "published", "the picked graph"
SPEEDUP = "speedup, column_block over naive"
REPORT_COLUMNS = 27  # that a block takes at a time: the report's choice on three of its four graphs
APART = 0.11  # of names at the ends of curves, at least, as a share of the chart's height
LONG_NAME = 45  # characters: names in a legend that are longer stand in one column


class Curve(NamedTuple):
    """A curve of the chart. kind: NOW, ESTIMATED, MEASURED, PUBLISHED, or PICKED: one point of one graph."""

    name: str
    kind: str
    points: list[tuple[float, float]]  # nonzeros per column, speedup


def published_speedups() -> list[tuple[float, float]]:
    """Return the report's four graphs: [(nonzeros per column, speedup)]."""
    return sorted((row["edges"] / row["vertices"], row["speedup"]) for row in datasets.published("report_matrices"))


def points_of(curves, quantity="speedup") -> Rows:
    """Return the points of curves as rows of a table."""
    return Rows(
        {"curve": curve.name, "of": curve.kind, "nonzeros_per_column": x, quantity: y}
        for curve in curves
        for x, y in curve.points
    )


def crossings(points) -> list[float]:
    """Return the places x where a curve, straight between its points on logarithmic axes, goes through 1."""
    found = []
    for (x, y), (next_x, next_y) in pairwise(points):
        if (y < 1) != (next_y < 1):
            part = math.log(1 / y) / math.log(next_y / y)
            found.append(x * (next_x / x) ** part)
    return found


def draw_sweep(curves, *, graph="", limits=None, ylabel=SPEEDUP, legend=False, size=9, ax=None):
    """Draw curves over nonzeros per column on logarithmic axes. Returns the figure.

    A name has its colour, an estimate is dashed, what was published has stars. Where a speedup goes through 1, a circle
    and a number say at how many nonzeros per column: the threshold.

    graph: the name of the graph of the PICKED points, which are stars in the colours of the curves of their names.
    limits: the least and the most nonzeros per column. legend: names the curves in a legend below, not each at its end.
    size: of letters, in points.
    """
    ax = ax or axes(7.4, 4.2)
    looks, picked = _looks(curves), [curve for curve in curves if curve.kind == PICKED]
    drawn = [curve for curve in curves if curve.kind != PICKED and curve.points]
    for curve in drawn:
        name = f"{curve.name} {curve.kind}".replace(" ", "-")
        ax.plot(*zip(*curve.points, strict=True), **looks[curve[:2]], lw=1.5, label=curve.name, gid=name)
    for curve in picked:
        color = looks[curve[:2]]["color"]
        name = f"{graph}: {curve.name}" if graph else None
        ax.plot(*curve.points[0], "*", color=color, mec="black", mew=0.6, ms=12, zorder=4, label=name)
    places = [x for curve in (picked if limits else curves) for x, _ in curve.points] + [*(limits or ())]
    ax.set(xscale="log", yscale="log", xlim=(min(places) / 1.15, max(places) * 1.15))
    ax.set_xlabel("nonzeros per column", size=size)
    ax.set_ylabel(ylabel, size=size)
    if ylabel.startswith("speedup"):
        ax.axhline(1, color="black", lw=0.8, zorder=1)
        for curve in drawn:
            _mark_crossings(ax, curve, looks[curve[:2]]["color"], size)
    ax.grid(color="#edf2f7")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=size)
    plain_ticks(ax.xaxis, ax.yaxis)
    if legend and drawn:
        longest = max(len(label) for label in ax.get_legend_handles_labels()[1])
        columns = 2 if longest <= LONG_NAME else 1
        ax.figure.legend(frameon=False, fontsize=size - 1, loc="outside lower center", ncols=columns)
    elif drawn:
        _name_ends(ax, drawn, looks, size)
    return ax.figure


def _looks(curves):
    """(name, kind) -> the colour, marker and dashes of its line."""
    looks, names = {}, list(dict.fromkeys(curve.name for curve in curves))
    for name, kind, _ in curves:
        color, marker = LOOKS[names.index(name) % len(LOOKS)][:2]
        marker, size = ("*", 9) if kind == PUBLISHED else (marker, 4.5)
        looks[name, kind] = {"color": color, "marker": marker, "ls": "--" if kind == ESTIMATED else "-", "ms": size}
    return looks


def _mark_crossings(ax, curve, color, size):
    """Circle the places where a curve goes through 1, and say where they are."""
    for place in crossings(curve.points):
        ax.plot(place, 1, "o", ms=11, mfc="none", mec=color)
        rising = max((x, y) for x, y in curve.points if x < place)[1] < 1
        side, align = (-7, "right") if rising else (7, "left")  # where the curve does not go
        ax.annotate(
            f"{place:.1f}", (place, 1), (side, 5), textcoords="offset points", ha=align, size=size, color=color,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip


def _name_ends(ax, drawn, looks, size):
    """Name each curve to the right of the chart, as near to its last point as the names of the others allow."""
    low, high = ax.get_ylim()
    lowest = 0.0
    for curve in sorted(drawn, key=lambda curve: curve.points[-1][1]):
        place = max(lowest, math.log(curve.points[-1][1] / low) / math.log(high / low))
        line = {"arrowstyle": "-", "color": looks[curve[:2]]["color"], "lw": 1, "shrinkB": 4, "relpos": (0, 0.5)}
        ax.annotate(
            f"{curve.name}\n{curve.kind}", curve.points[-1], (1.03, place), textcoords="axes fraction", va="center",
            size=size, arrowprops=line,
        )  # fmt: skip
        lowest = place + APART
