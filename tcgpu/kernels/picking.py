"""Mark and pick elements of arrays on the device, as NumPy does by `low <= a`, `a[marks]` and `a[at]`.

CuPy compiles each such operation alone when a process first needs it, which takes a tenth of a second or more."""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.kernels import run
from tcgpu.kernels.prefix_sum import scan


@kernel("void(int32[::1], int64, int64, uint8[::1])")
def mark_between(values, low, high, marks):
    for e in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        marks[e] = low <= values[e] and values[e] <= high


@kernel(*(f"void(uint8[::1], int64[::1], {values}, {values})" for values in ("int32[::1]", "int64[::1]")))
def pick_marked(marks, places, values, picked):
    for e in range(cuda.grid(1), marks.size, cuda.gridsize(1)):
        if marks[e] != 0:
            picked[places[e]] = values[e]


@kernel(*(f"void(int64[::1], int32[::1], {picked})" for picked in ("int32[::1]", "int64[::1]")))
def pick(values, at, picked):
    for e in range(cuda.grid(1), at.size, cuda.gridsize(1)):
        picked[e] = values[at[e]]


def between(values, low, high):
    """Which values are in low..high: a bool for each."""
    marks = runtime.device_array(values.size, np.uint8)
    run(mark_between, values.size, values, low, high, marks)
    return marks.view(bool)


def picked(values, at):
    """The values (int64) at some places, as int32."""
    found = runtime.device_array(at.size, np.int32)
    run(pick, at.size, values, at, found)
    return found


class Marked:
    """The elements that `marks` (a bool for each) marks, in their order. places: how many are marked before each; at
    its end, how many in all."""

    def __init__(self, marks):
        self.marks = marks.view(np.uint8)
        self.places = runtime.device_array(marks.size + 1, np.int64)
        scan(self.marks, self.places)
        self.size = int(self.places[-1])

    def of(self, values):
        """The values of the marked elements."""
        found = runtime.device_array(self.size, values.dtype)
        run(pick_marked, self.marks.size, self.marks, self.places, values, found)
        return found
