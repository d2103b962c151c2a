"""Shapes: what a drawn view of the player consists of, and the same shapes as a picture, where nothing is played.

Blue is data, orange is what is pointed out, grey is the rest, as in `tcgpu.figures`; dark marks results. The colours
differ in brightness, too, so that colour-blind readers can distinguish them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from matplotlib.patches import Circle, FancyBboxPatch, Polygon

from tcgpu.figures import BLUE, GREY, ORANGE, Picture

PIXELS = 100  # of a picture, an inch


class Shape(NamedTuple):
    """A part of a picture; lengths are pixels, from the upper left corner of the picture to the right and down.

    kind: "box" at x, y, width, height; "dot" at x, y, radius; "line" or "area" through points x, y, x, y, ...; "text"
    around x, y, size. look: a name of LOOKS; of a text also "start", "end", "bold", "italic". tip: what the player says
    of it at the pointer. layer: shapes of higher layers are in front.
    """

    kind: str
    look: str
    at: tuple
    text: str = ""
    tip: str = ""
    layer: int = 0


class Look(NamedTuple):
    """Colours on white paper and on dark paper: of the inside, the border, and letters inside; "" is none."""

    face: tuple = ("", "")
    border: tuple = ("", "")
    ink: tuple = ("#2d3748", "#e8edf4")
    width: float = 1.0  # of the border, in pixels
    dashes: tuple = ()  # lengths of dashes and gaps
    opacity: float = 1.0  # of the inside


PAPER, INK = ("#ffffff", "#181e27"), ("#2d3748", "#e8edf4")
DATA, POINT, IDLE, MUTED = (BLUE, "#5ea3e6"), (ORANGE, "#f0934a"), (GREY, "#56637a"), ("#718096", "#a3b1c4")
ON_DATA = "#ffffff", "#0b1118"
FAINT = "#e2e8f0", "#323d4d"
PALE = "#ebf4fb", "#1d2d42"
LOOKS = {
    "there": Look(PALE, DATA, INK),
    "stored": Look(DATA, DATA, ON_DATA),
    "looked": Look(POINT, POINT, ("#ffffff", "#1a202c")),
    "miss": Look(PAPER, POINT, POINT, 1.5),
    "hit": Look(INK, INK, PAPER),
    "done": Look(PAPER, IDLE, ("#8a97aa", "#7d8a9e")),
    "empty": Look(PAPER, FAINT, ("#a0aec0", "#5f6c80")),
    "chosen": Look(("#90b4dc", "#3d6ea3")),
    "odd": Look(FAINT),
    "even": Look(("#edf2f7", "#273140")),
    "old": Look(DATA, opacity=0.09),
    "new": Look(POINT, opacity=0.4),
    "outline": Look(border=INK, width=2.5),
    "edge": Look(border=IDLE, width=1.2),
    "lit": Look(border=POINT, width=3.2),
    "path": Look(border=DATA, width=4),
    "cut": Look(border=MUTED, width=1.2, dashes=(4, 3)),
    "nothing": Look(border=IDLE, width=1, dashes=(1.5, 2.5)),
    "shared": Look(("#f7fafc", "#1f2733"), MUTED, width=1.2),
    "registers": Look(("#f7fafc", "#1f2733"), MUTED, width=1.2, dashes=(5, 3)),
    "muted": Look(ink=MUTED),
    "point": Look(ink=("#c05621", "#f0934a")),
    "plain": Look(),
}
ROUND = {"shared": 6, "registers": 6}  # look of a box -> radius of its corners


def css() -> str:
    """Return the style of the looks for player.css, for both themes."""
    rules = []
    for name, look in LOOKS.items():
        face, border, ink = (f"light-dark({', '.join(pair)})" if pair[0] else "none" for pair in look[:3])
        style = [f"fill: {face}", f"stroke: {border}", f"stroke-width: {look.width}", f"fill-opacity: {look.opacity}"]
        if look.dashes:
            style.append(f"stroke-dasharray: {' '.join(map(str, look.dashes))}")
        rules += [
            f".tcgpu-player .drawing .{name} {{ {'; '.join(style)} }}\n",
            f".tcgpu-player .drawing text.{name} {{ fill: {ink}; stroke: none; fill-opacity: 1 }}\n",
        ]
    rules += [f".tcgpu-player .{name} {{ rx: {radius}px }}\n" for name, radius in ROUND.items()]
    return "".join(rules)


def table(steps: Iterable[Sequence[Shape]]) -> list:
    """Return all shapes of some steps, each once: [kind, look, at, text, tip, ranges], in the order of drawing.

    ranges: the steps in which the shape is drawn, as first, end, first, end, ...
    """
    found: dict[Shape, list] = {}
    for step, shapes in enumerate(steps):
        for shape in dict.fromkeys(shapes):
            ranges = found.setdefault(shape, [])
            if ranges and ranges[-1] == step:
                ranges[-1] += 1
            else:
                ranges += step, step + 1
    in_order = sorted(found.items(), key=lambda item: item[0].layer)
    return [[shape.kind, shape.look, shape.at, shape.text, shape.tip, ranges] for shape, ranges in in_order]


def draw(shapes: Iterable[Shape], width: float, height: float) -> Picture:
    """Return a picture of some shapes, on white paper."""
    picture = Picture(figsize=(width / PIXELS, height / PIXELS))
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.set_axis_off()
    for order, shape in enumerate(sorted(shapes, key=lambda shape: shape.layer)):
        if shape.kind == "text":
            _write(ax, shape, order)
        else:
            ax.add_patch(_patch(shape, zorder=order))
    return picture


def _patch(shape, zorder):
    """A shape that is no text, as matplotlib draws it."""
    look = LOOKS[shape.look]
    points = 72 / PIXELS  # of a pixel
    face = (look.face[0], look.opacity) if look.face[0] else "none"
    style = {
        "facecolor": "none" if shape.kind == "line" else face, "edgecolor": look.border[0] or "none",
        "linewidth": points * look.width, "zorder": zorder,
        "linestyle": (0, [points * dash for dash in look.dashes]) if look.dashes else "-",
    }  # fmt: skip
    if shape.kind == "dot":
        *middle, radius = shape.at
        return Circle(middle, radius, **style)
    if shape.kind == "box":
        x, y, width, height = shape.at
        corners = f"round,pad=0,rounding_size={ROUND[shape.look]}" if shape.look in ROUND else "square,pad=0"
        return FancyBboxPatch((x, y), width, height, boxstyle=corners, **style)
    return Polygon(list(zip(shape.at[::2], shape.at[1::2], strict=True)), closed=shape.kind == "area", **style)


def _write(ax, shape, zorder):
    look, *how = shape.look.split()
    x, y, size = shape.at
    ax.text(
        x, y, shape.text, size=size * 72 / PIXELS, color=LOOKS[look].ink[0], zorder=zorder, va="center_baseline",
        ha="left" if "start" in how else "right" if "end" in how else "center",
        weight="bold" if "bold" in how else None, style="italic" if "italic" in how else None,
    )  # fmt: skip
