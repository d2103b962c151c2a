"""Give a kernel of one's own knobs and a name, and register it."""

from typing import Any

import tcgpu
from tcgpu import Knob, cuda


@tcgpu.method("edges_by_step", threads=32, blocks=4, step=Knob(2, "edges a thread takes", 1, 64))
def counts_edges(m: Any, step: Any, total: Any) -> None:
    """Count edges, `step` at a time."""
    for first in range(cuda.grid(1) * step, m, cuda.gridsize(1) * step):
        cuda.atomic.add(total, 0, min(step, m - first))


tcgpu.register(counts_edges)
print(tcgpu.count([(0, 1), (1, 2), (2, 3)], "edges_by_step", engine="sim", step=1))  # prints 3
print(counts_edges.knobs, counts_edges in tcgpu.methods())  # prints {'threads': 32, 'blocks': 4, 'step': 2} True
tcgpu.unregister("edges_by_step")
