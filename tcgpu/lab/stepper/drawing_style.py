"""What pictures of frames are drawn with: sizes in inches, a colour for each look, and a few strokes.

Orange is looked at, blue is there, grey is not needed, as in `tcgpu.figures`; dark is what was found. They differ in
brightness, too, for eyes that do not tell these colours.
"""

from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import FancyBboxPatch, Rectangle

from tcgpu.figures import BLUE, GREY, ORANGE
from tcgpu.lab.stepper.frames import SHARED

INK, PALE, MUTED = "#2d3748", "#ebf4fb", "#718096"
STYLE = {  # look -> face, border, letters, width of the border
    "there": (PALE, BLUE, INK, 1.0),
    "looked": (ORANGE, ORANGE, "white", 1.0),
    "miss": ("white", ORANGE, ORANGE, 1.4),
    "hit": (INK, INK, "white", 1.0),
    "done": ("white", GREY, "#a0aec0", 0.8),
    "empty": ("white", "#e2e8f0", "#cbd5e0", 0.8),
}
LEGEND = {"there": "there", "looked": "looked at", "miss": "in vain", "hit": "a triangle", "done": "done with"}
BOLD = ("looked", "hit")


def write(ax, x, y, said, size, color=INK, ha="center", va="center_baseline", bold=False, **more):
    """Some words, in points, their middle at (x, y) unless ha and va say otherwise."""
    weight = "bold" if bold else None
    return ax.text(x, y, said, size=size, color=color, ha=ha, va=va, weight=weight, **more)


def squares(ax, corners, side, looks, inset=0.02):
    """A square for each look but "", its lower left corner at the corner of that place."""
    kept = [(x, y, STYLE[look]) for (x, y), look in zip(corners, looks) if look]
    inner = side - 2 * inset
    cells = [Rectangle((x + inset, y + inset), inner, inner) for x, y, _ in kept]
    face, border, _, width = zip(*(style for *_, style in kept)) if kept else ((), (), (), ())
    ax.add_collection(PatchCollection(cells, facecolors=face, edgecolors=border, linewidths=width))


def bars(ax, boxes, colours, width=0.5):
    """A rectangle (x, y, width, height) in each colour, a little white between them."""
    patches = [Rectangle((x, y), wide, high) for x, y, wide, high in boxes]
    ax.add_collection(PatchCollection(patches, facecolors=colours, edgecolors="white", linewidths=width))


def lines(ax, ends, colour, width, order):
    """Straight lines, two points each."""
    ax.add_collection(LineCollection(ends, colors=colour, linewidths=width, zorder=order))


def memory_box(ax, x, y, x_end, y_end, memory):
    """Around what lies in a memory other than global memory: a line for shared memory, dashes for registers."""
    look = {"facecolor": "#f7fafc", "edgecolor": MUTED, "lw": 1, "ls": "-" if memory == SHARED else "--", "zorder": -1}
    ax.add_patch(FancyBboxPatch((x - 0.08, y), x_end - x + 0.16, y_end - y,
                                boxstyle="round,pad=0,rounding_size=0.06", **look))  # fmt: skip
