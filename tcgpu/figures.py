"""What all charts share: figures that a notebook shows without pyplot, and three colours.

Blue is data, orange is what the chart points out, grey is the rest.
"""

import io

import numpy as np
from matplotlib.category import StrCategoryFormatter
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FuncFormatter, LogLocator, NullLocator

from tcgpu.engines.forking import fork_safe_lock

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#cbd5e0"
DARK, DARK_GREY = "#2d3748", "#718096"
_font_lock = fork_safe_lock()


class Picture(Figure):
    """A figure that a notebook shows as the last line of a cell, without pyplot and its global state.

    Its text form says what it draws.
    """

    def _repr_png_(self):
        return png(self)

    def __repr__(self):
        charts = [ax for ax in self.axes if ax.has_data() or ax.texts]
        return "\n".join([f"<Picture of {_counted(len(charts), 'chart')}>", *map(described, charts)])


def described(ax) -> str:
    """Return what a chart draws as text: its axes, and of each line, bars, points: how many, the least and largest."""
    lines = [f'"{ax.get_title()}"'] if ax.get_title() else []
    if ax.axison:
        axes = _axis("x", ax.xaxis, ax.get_xscale()), _axis("y", ax.yaxis, ax.get_yscale())
        lines += [axis for axis in axes if len(axis) > 1]
    unnamed = [line for line in ax.lines if not _label(line)]
    together = unnamed if len(unnamed) > 3 else []
    for line in ax.lines:
        if line not in together:
            lines.append(f"line{_label(line)}: {_points([line])}")
    if together:
        lines.append(f"{_counted(len(together), 'line')}: {_points(together)}")
    bars = {}  # label -> lengths
    containers = [container for container in ax.containers if isinstance(container, BarContainer)]
    for container in containers:
        along = "height" if container.orientation == "vertical" else "width"
        bars.setdefault(_label(container), []).extend(getattr(bar, f"get_{along}")() for bar in container)
    lines += [f"{_counted(len(lengths), 'bar')}{label}: {_span(lengths)}" for label, lengths in bars.items()]
    others = len(ax.patches) - sum(map(len, containers))
    if others:
        lines.append(_counted(others, "shape"))
    for collection in ax.collections:
        lines.append(_collection(collection, ax.axison))
    for image in ax.images:
        values = np.ma.compressed(np.ma.masked_invalid(image.get_array()))
        lines.append(f"image of {' x '.join(map(str, image.get_array().shape))}: {_span(values)}")
    said = [text.get_text() for text in ax.texts if text.get_text()]
    if said:
        lines.append(f"texts: {', '.join(said)}" if len(said) <= 12 else f"{len(said)} texts")
    return "\n".join(f"{'-' if k == 0 else ' '} {line}" for k, line in enumerate(" ".join(x.split()) for x in lines))


def _axis(name, axis, scale):
    """An axis as text, with its categories if it has some."""
    said = [name] + ([f'"{axis.get_label_text()}"'] if axis.get_label_text() else [])
    said += ["logarithmic"] if scale == "log" else []
    formatter = axis.get_major_formatter()
    if isinstance(formatter, FixedFormatter):
        said.append(f"of {', '.join(formatter.seq)}")
    elif isinstance(formatter, StrCategoryFormatter):
        said.append(f"of {', '.join(axis.units._mapping)}")
    return " ".join(said)


def _points(lines):
    """How many points some lines have, and their spans."""
    x, y = np.concatenate([np.asarray(line.get_data(orig=False), float) for line in lines], axis=1)
    return _counted(len(x), "point") + (f", x {_span(x)}, y {_span(y)}" if len(x) else "")


def _collection(collection, measured):
    """A collection as text; the places of its points only where the axes are `measured`."""
    if isinstance(collection, PathCollection):
        points = np.asarray(collection.get_offsets(), float)
        found = f"{_counted(len(points), 'dot')}{_label(collection)}"
        return f"{found}: x {_span(points[:, 0])}, y {_span(points[:, 1])}" if measured and len(points) else found
    kind = "segment" if isinstance(collection, LineCollection) else "area"
    return f"{_counted(len(collection.get_paths()), kind)}{_label(collection)}"


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


def _counted(number, noun):
    return f"{number:,} {noun}{'s' * (number != 1)}"


def png(figure: Figure, dpi: float = 110) -> bytes:
    """Return a figure as a PNG file, without the name of the program that wrote it."""
    return _saved(figure, format="png", dpi=dpi, metadata={"Software": None})


def svg(figure: Figure) -> bytes:
    """Return a figure as an SVG file."""
    return _saved(figure, format="svg")


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
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_locator(NullLocator())
