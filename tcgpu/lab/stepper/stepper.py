"""The stepper as a widget: `step` makes the frames of a method, and the player shows them."""

import textwrap
from collections.abc import Sequence
from itertools import islice
from typing import Any

import traitlets

from tcgpu.errors import GraphError
from tcgpu.graph import Order
from tcgpu.lab.stepper.drawing import HEIGHT, WIDTH, draw, shapes_of
from tcgpu.lab.stepper.frames import Cells, Frame, Matrix, counted, listed
from tcgpu.lab.stepper.stepping import steps
from tcgpu.player.shapes import table
from tcgpu.player.widget import Player
from tcgpu.registry import Method

MAX_FRAMES = 4000


def step(
    graph: Any,
    method: str | Method = "naive",
    *,
    order: Order | None = None,
    column: int | None = None,
    edge: tuple[int, int] | None = None,
    **knobs: Any,
) -> "Stepper":
    """Show how a method counts the triangles of a small graph, picture by picture.

    Parameters
    ----------
    graph
        A Graph, or anything else that `tcgpu.count` takes, of at most 64 vertices and 400 edges.
    method
        A name from `tcgpu.methods()`, except "cpu"; or a Method of your own, of which each step of a warp that accesses
        memory is a picture: which lanes access which elements.
    order
        How the vertices are numbered: by default as given, for "adaptive" by degree.
    column, edge
        Show only the nonzeros of this column, or only the nonzero (i, j), in the numbers of this order. Not for
        "levels", "adaptive" and a method of your own.
    **knobs
        Numbers that are small, so that a small graph has something to show: 4 lanes in place of 32, words of 8 bits.
        A method of your own takes its own knobs, with its own defaults.
    """
    shown = steps(graph, method, order=order, column=column, edge=edge, **knobs)
    frames = list(islice(shown, MAX_FRAMES + 1))
    if len(frames) > MAX_FRAMES:
        raise GraphError(f"this takes more than {MAX_FRAMES:,} pictures: take a smaller graph, or a column of it")
    if not frames:
        raise GraphError("there is nothing to step through: the graph has no edge, or the column no row")
    return Stepper(frames)


class Stepper(Player):
    """A widget that shows one of `frames`, each a picture: `frames[step]`. Its text form describes the first."""

    def __init__(self, frames: Sequence[Frame]):
        self.frames = list(frames)
        super().__init__(recording(self.frames), still=lambda: draw(self.frames[0]), words=described(self.frames))

    @property
    def frame(self) -> Frame:
        return self.frames[self.step]

    @traitlets.validate("step")
    def _inside(self, proposal):
        return min(max(proposal["value"], 0), len(self.frames) - 1)


def recording(frames: Sequence[Frame]) -> dict:
    """Return frames as a recording; see `tcgpu.player` for what a recording is."""
    scene = frames[0].scene
    columns = {
        "title": [frame.title for frame in frames],
        "caption": [frame.caption for frame in frames],
        "totals": [", ".join(frame.totals) for frame in frames],
    }
    shown = table(map(shapes_of, frames))
    picture = {"kind": "picture", "width": WIDTH, "height": HEIGHT, "shapes": shown, "words": scene.method}
    return {
        "title": scene.method,
        "facts": f"{scene.graph.n} vertices, {scene.graph.m} edges, {scene.graph.order} order.",
        "words": {"part": "method", "sequence": "pictures of", "step": "picture", "first": 1},
        "parts": [
            {
                "name": scene.method,
                "note": "",
                "views": [{"kind": "caption"}, picture],
                "sequences": [{"name": "the whole count", "steps": len(frames), "columns": columns}],
            }
        ],
    }


def described(frames: Sequence[Frame]) -> str:
    """Return what a stepper shows as text: the totals, and the first frame with its panels."""
    first, last = frames[0], frames[-1]
    lines = [
        f"<Stepper {last.scene.method}: {counted(len(frames), 'picture')}, {', '.join(reversed(last.totals))}>",
        f"Picture 1: {first.title}",
        *textwrap.wrap(first.caption, 88, initial_indent="  ", subsequent_indent="  "),
        *(f"  {panel.label}: {looks_of(panel)}" for panel in first.panels),
    ]
    return "\n".join(lines)


def looks_of(panel) -> str:
    """Return how many cells of a panel have which look, as "8 cells: 6 there, 2 looked"."""
    if isinstance(panel, Cells):
        looks = panel.looks
    elif isinstance(panel, Matrix):
        looks = [look for line in panel.looks for look in line if look]
    else:
        return f"columns {listed(panel.columns)}, {len(panel.read)} read"
    each = ", ".join(f"{looks.count(look)} {look}" for look in dict.fromkeys(looks))
    return counted(len(looks), "cell") + (f", {each}" if each else "")
