"""Checks of the number of vertices that a file promises."""

from tcgpu.clean import MAX_VERTICES
from tcgpu.errors import FormatError

ALWAYS_ALLOWED = 1 << 24  # vertices that any machine has memory for
MAX_PER_EDGE = 256  # more vertices than this for each edge look like a mistake


def check_memory(n, edges, path, or_else=""):
    """Refuse a vertex count that a few bytes claim and that takes gigabytes; `or_else` names another way out."""
    if n > ALWAYS_ALLOWED and n > MAX_PER_EDGE * edges:
        size = f"{8 * n / 1e9:.1f} GB"
        raise FormatError(
            f"{path}: {n} vertices for {edges} edges would take {size}; if that is meant, read it with n={n}{or_else}"
        )


def check_count(n, found, path):
    """Refuse a file that has another number of vertices than the caller's `n`."""
    if n is not None and n != found:
        raise FormatError(f"{path} has {found} vertices, not n={n}")


def check_most(text, at, n):
    """Refuse more vertices than a graph can have, which the line at `at` promises."""
    if n > MAX_VERTICES:
        raise text.error(at, f"{n} vertices are more than {MAX_VERTICES}, the most there can be")
