"""What all charts share: figures that a notebook shows without pyplot, and three colours.

Blue is data, orange is what the chart points out, grey is the rest.
"""

import io

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from tcgpu.engines.forking import fork_safe_lock

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#cbd5e0"
DARK, DARK_GREY = "#2d3748", "#718096"
_font_lock = fork_safe_lock()


class Picture(Figure):
    """A figure that a notebook shows as the last line of a cell, without pyplot and its global state."""

    def _repr_png_(self):
        return png(self)


def png(figure: Figure, dpi: float = 110) -> bytes:
    """Return a figure as a PNG file."""
    return _saved(figure, format="png", dpi=dpi)


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
