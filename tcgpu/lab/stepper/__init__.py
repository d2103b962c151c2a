"""A stepper: a method at work on a small graph, step by step, to look at and to play with.

    frames, playing             the steps as data: `steps(graph, method)` yields a `Frame` a step
    merges, paths, searches, bitmaps, levels, adaptive, by_degree       what makes the frames of which methods
    places, look, panels, drawing       a frame as a picture: `draw(frame)`
    widget                      a slider, a play button, a caption: `step(graph, method)`

The frames follow the kernels loop by loop, with a few lanes in place of 32 and words of a few bits, so that a graph of
ten vertices has something to show. What they find is exact, and what they count is what the kernels do.
"""

from tcgpu.lab.stepper.drawing import draw
from tcgpu.lab.stepper.frames import Frame
from tcgpu.lab.stepper.players import PLAYED, steps
from tcgpu.lab.stepper.widget import Stepper, step

__all__ = ["PLAYED", "Frame", "Stepper", "draw", "step", "steps"]
