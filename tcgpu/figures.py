"""What all charts share: figures that a notebook shows without pyplot, and three colours.

Colours have one meaning everywhere: blue is data, orange is what the chart points out, grey is the rest.
"""

import io

from matplotlib.figure import Figure

from tcgpu.engines.forking import fork_safe_lock

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#cbd5e0"
_font_lock = fork_safe_lock()


class Picture(Figure):
    """A figure that a notebook shows by itself, without pyplot and its global state."""

    def _repr_png_(self):
        return png(self)


def png(figure, dpi=110):
    """A figure as the bytes of a PNG file. One at a time: matplotlib's fonts are not safe for threads."""
    memory = io.BytesIO()
    with _font_lock:
        figure.savefig(memory, format="png", dpi=dpi)
    return memory.getvalue()


def axes(width=6.0, height=4.0, **grid):
    """Axes on a new Picture of `width` x `height` inches; `grid`: arguments of `Figure.subplots`, like `ncols`."""
    return Picture(figsize=(width, height), layout="constrained").subplots(**grid)
