"""Check a method that forgets that others add, too."""

from typing import Any

import tcgpu
from tcgpu import cuda


@tcgpu.method
def forgets(n: Any, total: Any) -> None:
    """Add without an atomic operation."""
    if cuda.grid(1) < n:
        total[0] += 1


report = tcgpu.check(forgets)
print(bool(report), report.method)  # prints False forgets
print(report.problems[0].says != "")  # prints True
