"""The stepper: how a method counts the triangles of a small graph, step by step.

    frames, stepping            the steps as data: `steps(graph, method)` yields a `Frame` per step
    *_steps                     the frames of each method
    drawing, vertex_positions   a frame as a picture: `draw(frame)`
    widget                      a slider, a play button, a caption: `step(graph, method)`

The frames follow the loops of the kernels, with a few lanes instead of 32 and words of a few bits, because their graphs
are small. Triangles and numbers of look-ups are exact.
"""

from tcgpu.lab.stepper.drawing import draw
from tcgpu.lab.stepper.frames import Frame
from tcgpu.lab.stepper.stepping import SHOWN, steps
from tcgpu.lab.stepper.widget import Stepper, step

__all__ = ["SHOWN", "Frame", "Stepper", "draw", "step", "steps"]
