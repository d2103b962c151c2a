"""Run a kernel in the simulator, and find its mistake."""

from typing import Any

import numpy as np

import tcgpu
from tcgpu import cuda


def histogram(values: Any, counts: Any) -> None:
    """Count how often each value occurs."""
    cuda.atomic.add(counts, values[cuda.grid(1)], 1)


values, counts = np.array([2, 0, 2, 2]), np.zeros(3, np.int64)
print(tcgpu.simulate(histogram, 2, 2, values, counts), counts)  # prints no faults [1 0 3]
for fault in tcgpu.simulate(histogram, 2, 3, values, counts):
    print(fault.kind, fault.line)  # prints bounds 13
