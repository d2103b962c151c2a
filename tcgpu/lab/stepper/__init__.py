"""The stepper: how a method counts the triangles of a small graph, step by step.

    frames, stepping            the steps as data: `steps(graph, method)` yields a `Frame` per step
    *_steps                     what makes the frames of each method
    drawing, vertex_positions   a frame as a picture: `draw(frame)`
    widget                      a slider, a play button, a caption: `step(graph, method)`

The frames follow the kernels loop by loop, with a few lanes in place of 32 and words of a few bits, so that a graph of
ten vertices has something to show. The triangles are exact, and so are the numbers of look-ups.
"""

from tcgpu.lab.stepper.drawing import draw
from tcgpu.lab.stepper.frames import Frame
from tcgpu.lab.stepper.stepping import SHOWN, steps
from tcgpu.lab.stepper.widget import Stepper, step

__all__ = ["SHOWN", "Frame", "Stepper", "draw", "step", "steps"]
