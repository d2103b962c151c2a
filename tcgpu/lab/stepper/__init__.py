"""The stepper: how a method counts the triangles of a small graph, step by step.

The frames follow the loops of the kernels, with a few lanes instead of 32 and words of a few bits, because their graphs
are small. Triangles and numbers of look-ups are exact.
"""

from tcgpu.lab.stepper.drawing import draw, shapes_of
from tcgpu.lab.stepper.frames import Frame
from tcgpu.lab.stepper.stepper import Stepper, step
from tcgpu.lab.stepper.stepping import SHOWN, steps

__all__ = ["SHOWN", "Frame", "Stepper", "draw", "shapes_of", "step", "steps"]
