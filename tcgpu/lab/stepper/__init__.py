"""The stepper: how a method counts the triangles of a small graph, step by step.

    frames, stepping            the steps as data: `steps(graph, method)` yields a `Frame` per step
    *_steps                     the frames of each method; trace_steps those of a method of a user's
    drawing                     a frame as shapes, and as a picture: `shapes_of(frame)`, `draw(frame)`
    stepper                     the widget that plays them: `step(graph, method)`

The frames follow the loops of the kernels, with a few lanes instead of 32 and words of a few bits, because their graphs
are small. Triangles and numbers of look-ups are exact.
"""

from tcgpu.lab.stepper.drawing import draw, shapes_of
from tcgpu.lab.stepper.frames import Frame
from tcgpu.lab.stepper.stepper import Stepper, step
from tcgpu.lab.stepper.stepping import SHOWN, steps

__all__ = ["SHOWN", "Frame", "Stepper", "draw", "shapes_of", "step", "steps"]
