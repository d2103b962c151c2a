"""How many vertices a file has."""

import numpy as np

from tcgpu import cleaning
from tcgpu.errors import GraphError

FEW = 1 << 24  # vertices that any machine has memory for
LONELY = 256  # more vertices than this for each edge look like a mistake


def checked_count(n):
    """`n` as a count of vertices: None, or an int that a graph can have."""
    if n is None:
        return None
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 <= n <= cleaning.MAX_VERTICES:
        raise GraphError(f"n must be a whole number in 0..{cleaning.MAX_VERTICES}, not {n!r}")
    return int(n)


def checked_memory(n, edges, path, or_else=""):
    """Refuse a vertex count that a few bytes claim and gigabytes would be asked for; `or_else` is another way out."""
    if n > FEW and n > LONELY * edges:
        size = f"{8 * n / 1e9:.1f} GB"
        raise GraphError(
            f"{path}: {n} vertices for {edges} edges would take {size}; if that is meant, say n={n}{or_else}"
        )


def checked_against(n, found, path):
    """Refuse a file that has another number of vertices than the caller asked for."""
    if n is not None and n != found:
        raise GraphError(f"{path} has {found} vertices, not the {n} that were asked for")
