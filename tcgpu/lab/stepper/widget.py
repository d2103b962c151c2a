"""The stepper as a widget: a play button, a slider that takes the arrow keys, the picture and its caption."""

import html
from functools import lru_cache
from itertools import islice

import ipywidgets as widgets
import traitlets

from tcgpu import figures
from tcgpu.errors import GraphError
from tcgpu.lab.stepper.drawing import WIDTH, draw
from tcgpu.lab.stepper.frames import Frame, counted
from tcgpu.lab.stepper.stepping import steps

MAX_FRAMES = 4000
PIXELS = 100  # on the screen for an inch of the picture
DPI = 130  # of the picture: more than PIXELS, for screens that have more
PAUSE = 1200  # milliseconds between two steps while it plays
KEPT = 64  # pictures
CAPTION = (
    '<div class="tcgpu-stepper-caption" role="status" data-step="{step}" data-steps="{steps}" '
    'data-triangles="{triangles}" data-lookups="{lookups}" style="font-size:115%; line-height:1.45; min-height:4.4em">'
    "{words}</div>"
)


def step(
    graph,
    method: str = "naive",
    *,
    order: str | None = None,
    column: int | None = None,
    edge: tuple[int, int] | None = None,
    **knobs,
) -> "Stepper":
    """Show how a method counts the triangles of a small graph, step by step.

    Parameters
    ----------
    graph
        A Graph, or anything else that `tcgpu.count` takes, of at most 64 vertices and 400 edges.
    method
        A name from `tcgpu.methods()`, except "cpu".
    order
        How the vertices are numbered: by default as given, for "adaptive" by degree.
    column, edge
        Show only the nonzeros of this column, or only the nonzero (i, j), in the numbers of this order. Not for
        "levels" and "adaptive".
    **knobs
        Numbers that are small, so that a small graph has something to show: 4 lanes in place of 32, words of 8 bits.

    Returns
    -------
    Stepper
        A widget, which a notebook shows.

    Raises
    ------
    MethodError
        If the stepper has no such method or knob.
    GraphError
        If the graph is too large, or there is nothing to show.
    """
    shown = steps(graph, method, order=order, column=column, edge=edge, **knobs)
    frames = list(islice(shown, MAX_FRAMES + 1))
    if len(frames) > MAX_FRAMES:
        raise GraphError(f"this takes more than {MAX_FRAMES:,} steps: take a smaller graph, or a column of it")
    if not frames:
        raise GraphError("there is nothing to step through: the graph has no edge, or the column no row")
    return Stepper(frames)


class Stepper(widgets.VBox):
    """A widget that shows one of `frames`: number `step`, from 0. Set it, move the slider, or press play."""

    step = traitlets.Int(0)

    def __init__(self, frames: list[Frame]):
        self.frames = list(frames)
        last, layout = len(self.frames) - 1, widgets.Layout
        self._png = lru_cache(KEPT)(lambda number: figures.png(draw(self.frames[number]), dpi=DPI))
        self.play = widgets.Play(max=last, interval=PAUSE, layout=layout(width="auto"))
        self.slider = widgets.IntSlider(max=last, description="step", readout_format="d", layout=layout(width="30em"))
        size = layout(width=f"{WIDTH * PIXELS:.0f}px", max_width="100%", object_fit="contain")
        self.picture = widgets.Image(format="png", layout=size)
        self.caption = widgets.HTML(layout=layout(width=f"{WIDTH * PIXELS - 40:.0f}px", max_width="100%"))
        controls = [self.play, self.slider, widgets.Label(f"of {last}")]
        super().__init__([widgets.HBox(controls, layout=layout(align_items="center")), self.picture, self.caption])
        self.add_class("tcgpu-stepper")
        traitlets.link((self, "step"), (self.slider, "value"))
        traitlets.link((self, "step"), (self.play, "value"))
        self._show()

    @property
    def frame(self) -> Frame:
        """The frame that is shown."""
        return self.frames[self.step]

    @traitlets.validate("step")
    def _inside(self, proposal):
        return min(max(proposal["value"], 0), len(self.frames) - 1)

    @traitlets.observe("step")
    def _show(self, change=None):
        frame = self.frame
        self.picture.value = self._png(self.step)
        self.caption.value = CAPTION.format(
            step=self.step, steps=len(self.frames), triangles=len(frame.triangles), lookups=frame.lookups,
            words=html.escape(frame.caption),
        )  # fmt: skip

    def __repr__(self):
        last = self.frames[-1]
        found = counted(len(last.triangles), "triangle")
        return f"<Stepper {last.scene.method}: {len(self.frames):,} steps, {found}, {last.lookups:,} {last.scene.unit}>"
