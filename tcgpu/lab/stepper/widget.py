"""The stepper as a widget: a play button, a slider that takes the arrow keys, the picture and its caption in words."""

import html
from functools import lru_cache

import ipywidgets as widgets
import traitlets

from tcgpu import figures
from tcgpu.errors import GraphError
from tcgpu.lab.stepper.drawing import WIDTH, draw
from tcgpu.lab.stepper.stepping import steps

MAX_FRAMES = 4000
PIXELS = 100  # an inch of the picture on the screen
SHARPNESS = 130  # dots an inch of the picture: more than the screen's, for those that have more
PAUSE = 1200  # milliseconds a step while it plays
KEPT = 64  # pictures
CAPTION = (
    '<div class="tcgpu-stepper-caption" role="status" data-step="{step}" data-steps="{steps}" '
    'data-triangles="{triangles}" data-lookups="{lookups}" style="font-size:115%; line-height:1.45; min-height:4.4em">'
    "{words}</div>"
)


def step(graph, method="naive", *, order=None, column=None, edge=None, **knobs):
    """A Stepper: the method at work on a small graph, to step through. For what may be asked see `steps`."""
    frames = []
    for frame in steps(graph, method, order=order, column=column, edge=edge, **knobs):
        if len(frames) == MAX_FRAMES:
            raise GraphError(f"this takes more than {MAX_FRAMES:,} steps: take a smaller graph, or a column of it")
        frames.append(frame)
    if not frames:
        raise GraphError("there is nothing to step through: the graph has no edge, or the column no row")
    return Stepper(frames)


class Stepper(widgets.VBox):
    """Shows one of `frames`: number `step`, counted from 0. Set it, move the slider, or press play."""

    step = traitlets.Int(0)

    def __init__(self, frames):
        self.frames = list(frames)
        last = len(self.frames) - 1
        self._png = lru_cache(maxsize=KEPT)(self._drawn)
        self.play = widgets.Play(max=last, interval=PAUSE, layout=widgets.Layout(width="auto"))
        self.slider = widgets.IntSlider(max=last, description="step", readout_format="d",
                                        layout=widgets.Layout(width="30em"))  # fmt: skip
        self.picture = widgets.Image(format="png", layout=widgets.Layout(
            width=f"{WIDTH * PIXELS:.0f}px", max_width="100%", object_fit="contain"))  # fmt: skip
        self.caption = widgets.HTML(layout=widgets.Layout(width=f"{WIDTH * PIXELS - 40:.0f}px", max_width="100%"))
        last = widgets.Label(f"of {last}")
        controls = widgets.HBox([self.play, self.slider, last], layout=widgets.Layout(align_items="center"))
        super().__init__([controls, self.picture, self.caption])
        self.add_class("tcgpu-stepper")
        traitlets.link((self, "step"), (self.slider, "value"))
        traitlets.link((self, "step"), (self.play, "value"))
        self._show()

    @property
    def frame(self):
        """The one that is shown."""
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

    def _drawn(self, number):
        return figures.png(draw(self.frames[number], caption=False), dpi=SHARPNESS)

    def __repr__(self):
        last = self.frames[-1]
        found = f"{len(last.triangles):,} triangle{'s' * (len(last.triangles) != 1)}"
        return f"<Stepper {last.scene.method}: {len(self.frames):,} steps, {found}, {last.lookups:,} {last.scene.unit}>"
