"""What all charts share: figures that a notebook shows without pyplot, colours, and the looks of series.

Blue is data, orange is what the chart points out, grey is the rest. Series differ by more than their colours, whose
neighbours differ in brightness, too: for print, and for colour-blind readers.
"""

import io
from collections import Counter
from itertools import cycle
from typing import NamedTuple

import numpy as np
from matplotlib.category import StrCategoryFormatter
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatter, LogLocator, NullLocator, ScalarFormatter

from tcgpu.engines.forking import fork_safe_lock

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#cbd5e0"
DARK, DARK_GREY = "#2d3748", "#718096"
PALE, SKY, GOLD, PURPLE = "#edf2f7", "#63b3ed", "#ecc94b", "#b83280"
COLORS = {  # colour -> its name in a picture's text form
    BLUE: "blue", ORANGE: "orange", GREY: "grey", DARK: "dark", DARK_GREY: "dark grey", PALE: "pale", SKY: "light blue",
    GOLD: "yellow", PURPLE: "purple", "#000000": "black", "#ffffff": "white",
}  # fmt: skip
LISTED = 20  # the most points, bars or numbers that the text form lists one by one


class Look(NamedTuple):
    """How a series is drawn: as a line with markers and dashes, or as bars with a hatch."""

    color: str
    marker: str
    dashes: str | tuple
    hatch: str

    @property
    def line(self):
        """The look as arguments of `Axes.plot`."""
        return {"color": self.color, "marker": self.marker, "ls": self.dashes}


LOOKS = (
    Look(BLUE, "o", "-", ""),
    Look(ORANGE, "s", "--", "///"),
    Look(DARK, "^", ":", "..."),
    Look(SKY, "D", "-.", "xxx"),
    Look(GOLD, "v", (0, (6, 2, 1, 2)), "\\\\\\"),
    Look(PURPLE, "P", (0, (6, 2, 1, 2, 1, 2)), "ooo"),
)


def looks(series):
    """Each of some series with its look, which repeats after six."""
    return zip(series, cycle(LOOKS))


_font_lock = fork_safe_lock()


class Picture(Figure):
    """A figure that a notebook shows as the last line of a cell, without pyplot and its global state.

    Its text form says what it draws.
    """

    def draw(self, renderer):
        """Draw all texts as they are, so that a name with two dollars is no formula; but for powers at ticks."""
        axes = [axis for ax in self.axes for axis in (ax.xaxis, ax.yaxis)]
        powers = [axis for axis in axes if isinstance(axis.get_major_formatter(), LogFormatter)]
        formulas = {text for axis in powers for text in axis.get_ticklabels(which="both")}
        for text in self.findobj(Text):
            text.set_parse_math(text in formulas)
        super().draw(renderer)

    def _repr_png_(self):
        return png(self)

    def __repr__(self):
        charts = [ax for ax in self.axes if ax.has_data() or ax.texts]
        return "\n".join([f"<Picture of {counted(len(charts), 'chart')}>", *map(described, charts)])


def described(ax) -> str:
    """Return what a chart draws as text: its axes, and the numbers of its lines, bars, points, or their range."""
    lines = [f'"{ax.get_title()}"'] if ax.get_title() else []
    if ax.axison:
        axes = _axis("x", ax.xaxis, ax.get_xscale()), _axis("y", ax.yaxis, ax.get_yscale())
        lines += [axis for axis in axes if len(axis) > 1]
    unnamed = [line for line in ax.lines if not _label(line)]
    together = unnamed if len(unnamed) > 3 else []
    for line in ax.lines:
        if line not in together:
            lines.append(f"line{_label(line)}{_color([line.get_color()])}: {_points(ax, [line])}")
    if together:
        colors = _color([line.get_color() for line in together])
        lines.append(f"{counted(len(together), 'line')}{colors}: {_points(ax, together)}")
    containers = [container for container in ax.containers if isinstance(container, BarContainer)]
    series = {}  # label -> bars
    for container in containers:
        series.setdefault(_label(container), []).extend((bar, container.orientation == "vertical") for bar in container)
    lines += [_bars(ax, label, bars) for label, bars in series.items()]
    others = len(ax.patches) - sum(map(len, containers))
    if others:
        lines.append(counted(others, "shape"))
    lines += [_collection(collection, ax.axison) for collection in ax.collections]
    lines += map(_image, ax.images)
    lines += _legend(ax)
    said = [text.get_text() for text in ax.texts if text.get_text()]
    numbers = [text for text in said if text.replace(",", "").replace(".", "").replace("%", "").isdigit()]
    if said and len(said) <= 12:
        lines.append(f"texts: {', '.join(said)}")
    elif said:
        of_numbers = f", of which numbers: {'; '.join(numbers)}" if 0 < len(numbers) <= LISTED else ""
        lines.append(f"{len(said)} texts{of_numbers}")
    return "\n".join(f"{'-' if k == 0 else ' '} {line}" for k, line in enumerate(" ".join(x.split()) for x in lines))


def _axis(name, axis, scale):
    """An axis as text, with its categories if it has some."""
    said = [name] + ([f'"{axis.get_label_text()}"'] if axis.get_label_text() else [])
    said += ["logarithmic"] if scale == "log" else []
    said += ["reversed"] if axis.get_inverted() else []
    names = _categories(axis)
    return " ".join(said + ([f"of {', '.join(names.values())}"] if names else []))


def _categories(axis):
    """Position -> name, of an axis whose ticks have names."""
    formatter, locator = axis.get_major_formatter(), axis.get_major_locator()
    if isinstance(formatter, StrCategoryFormatter):
        return {place: name for name, place in axis.units._mapping.items()}
    if isinstance(locator, FixedLocator) and not isinstance(formatter, ScalarFormatter):
        places = locator.locs.tolist()
        return dict(zip(places, map(str, formatter.format_ticks(places)), strict=True))
    return {}


def _points(ax, lines):
    """The points of some lines, or how many there are, and their spans."""
    for along, of_data in zip("yx", lines[0].get_transform().contains_branch_seperately(ax.transData), strict=True):
        if not of_data:
            values = lines[0].get_ydata() if along == "y" else lines[0].get_xdata()
            return f"across, at {along} {_span(values)}"
    x, y = np.concatenate([np.asarray(line.get_data(orig=False), float) for line in lines], axis=1)
    if len(lines) == 1 and 0 < len(x) <= LISTED:
        return ", ".join(f"({a:.4g}, {b:.4g})" for a, b in zip(x, y, strict=True))
    return counted(len(x), "point") + (f", x {_span(x)}, y {_span(y)}" if len(x) else "")


def _bars(ax, label, bars):
    """Some bars as text: how long each is, or from where to where, and its place on the axis."""
    found, ends = [], []
    for bar, upright in bars:
        base, length, begin, width = bar.get_y(), bar.get_height(), bar.get_x(), bar.get_width()
        if not upright:
            base, length, begin, width = begin, width, base, length
        names, middle = _categories(ax.xaxis if upright else ax.yaxis), begin + width / 2
        near = names[min(names, key=lambda place: abs(place - middle))] if names else ""
        found.append((f"{near} ", "") if names else ("", f" at {middle:.4g}") if ax.axison else ("", ""))
        ends.append((base, base + length))
    ends = np.array(ends, float).reshape(-1, 2)
    floating = ends[:, 0].any()
    heading = f"{counted(len(bars), 'bar')}{label}{_color([bar.get_facecolor() for bar, _ in bars])}: "
    if len(bars) > LISTED:
        return heading + _span(np.diff(ends)) + (f", beginning at {_span(ends[:, 0])}" if floating else "")
    return heading + ", ".join(
        before + (f"{low:.4g} to {high:.4g}" if floating else f"{high:.4g}") + after
        for (before, after), (low, high) in zip(found, ends, strict=True)
    )


def _collection(collection, measured):
    """A collection as text; the places of its points only where the axes are `measured`."""
    if isinstance(collection, PathCollection):
        points = np.asarray(collection.get_offsets(), float)
        found = f"{counted(len(points), 'dot')}{_label(collection)}{_color(collection.get_facecolor())}"
        return f"{found}: x {_span(points[:, 0])}, y {_span(points[:, 1])}" if measured and len(points) else found
    if isinstance(collection, LineCollection):
        kind, colors = "segment", collection.get_colors()
    else:
        kind, colors = "area", collection.get_facecolor()
    return f"{counted(len(collection.get_paths()), kind)}{_label(collection)}{_color(colors)}"


def _image(image):
    """An image as text: its cells row by row, or their span, and the colours of the least and the largest."""
    cells = np.ma.filled(np.ma.masked_invalid(np.ma.asarray(image.get_array(), float)), np.nan)
    least, largest = (_color([image.cmap(end)]) for end in (0.0, 1.0))
    heading = f"image of {' x '.join(map(str, cells.shape))}{least}{largest.replace(',', ' to')}: "
    if cells.size > LISTED**2:
        return heading + _span(cells)
    return heading + "; ".join(" ".join("-" if np.isnan(cell) else f"{cell:.4g}" for cell in row) for row in cells)


def _legend(ax):
    """A chart's own legend, if it names other things than the lines, bars and points on it: a line of text, or none."""
    legend = ax.get_legend()
    if not legend:
        return []
    named = {handle.get_label() for handle in ax.get_legend_handles_labels()[0]}
    entries = [
        f"{text.get_text()} in{_color([handle.get_facecolor()])[1:]}"
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True)
        if text.get_text() not in named and hasattr(handle, "get_facecolor")
    ]
    return [f"legend: {', '.join(entries)}"] if entries else []


def _color(colors):
    """The names of some colours as the end of a heading, with how many have each; without a name it is a number."""
    names = Counter(COLORS.get(to_hex(color), to_hex(color)) for color in colors)
    if not 0 < len(names) <= 4:
        return ""
    counts = " and ".join(f"{many} {name}" for name, many in names.items())
    return f", {counts}" if len(names) > 1 else f", {next(iter(names))}"


def _label(artist):
    """The label of an artist, if it has one that a legend would show."""
    label = str(artist.get_label() or "")
    return f' "{label}"' if label and not label.startswith("_") else ""


def _span(values):
    """The least, the mean and the largest of some numbers."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if not values.size:
        return "nothing"
    if values.min() == values.max():
        return f"{values.min():.4g}"
    return f"{values.min():.4g} to {values.max():.4g} (mean {values.mean():.4g})"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def png(figure: Figure, dpi: float = 110, source: str | None = None) -> bytes:
    """Return a figure as a PNG file, without the name of the program that wrote it. source: what to cite for it."""
    return _saved(figure, format="png", dpi=dpi, metadata={"Software": None, "Source": source})


def svg(figure: Figure, source: str | None = None) -> bytes:
    """Return a figure as an SVG file. source: what to cite for it."""
    return _saved(figure, format="svg", metadata={"Source": source} if source else None)


def _saved(figure, **settings):
    """A figure as a file. Threads take turns: matplotlib's fonts are not thread-safe."""
    memory = io.BytesIO()
    with _font_lock:
        figure.savefig(memory, **settings)
    return memory.getvalue()


def axes(width: float = 6.0, height: float = 4.0, **grid):
    """Return axes on a new Picture of `width` x `height` inches. grid: arguments of `Figure.subplots`, like `ncols`."""
    return Picture(figsize=(width, height), layout="constrained").subplots(**grid)


def plain_ticks(*axes):
    """Have the ticks of logarithmic axes say plain numbers: 1, 2, 5, 10, or fewer on a long axis."""
    for axis in axes:
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(base=10, subs=(1,) if high / low > 300 else (1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_locator(NullLocator())
