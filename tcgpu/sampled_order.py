"""Whether a graph is counted faster in degree order than in its own, estimated from a sample of its edges."""

import numpy as np

from tcgpu.cpu_costs import DEGREE_SKEW, LOOKUPS_PER_EDGE, RELATIVE_DISTANCE


def faster_order(m, n, ends):
    """The faster order to count a graph of m edges and n vertices in: "degree" or "natural".

    ends: called with the numbers of some edges, returns both ends of each.
    """
    u, v = ends(sample_edges(m, n))
    pays = (
        relative_distance(u, v, n) > RELATIVE_DISTANCE
        and degree_skew(u, v, n) > DEGREE_SKEW
        and lookups_per_edge(u, v, m) > LOOKUPS_PER_EDGE
    )
    return "degree" if pays else "natural"


def sample_edges(m, n):
    """Indices of random edges out of m: enough for about a hundred coincidences.

    Every k-th edge of a sorted list would not work: these edges have few vertices in common.
    """
    return np.random.default_rng(0).choice(m, min(m, 2000 + int(8 * n**0.5)), replace=False)


def relative_distance(u, v, n):
    """The median of |u - v| / n over the edges: small if neighbours have close numbers."""
    return float(np.median(np.abs(u.astype(np.int64) - v))) / n if u.size else 0.0


def degree_skew(u, v, n):
    """The mean squared degree over the squared mean degree: 1 if all degrees are equal. Estimated from random edges.

    Two random ends of edges are the same vertex with probability sum(d^2) / (2m)^2: so coincidences estimate the sum.
    """
    half = u.size // 2
    one, other = np.concatenate((u[:half], v[:half])), np.concatenate((u[half:], v[half:]))
    return _coincidences(one, other) * n / max(one.size * other.size, 1)


def lookups_per_edge(u, v, m):
    """The mean length of column i over the nonzeros (i, j), estimated from random edges out of m.

    The larger end of one is the smaller end of another with probability sum(row length * column length) / m^2.
    """
    half = u.size // 2
    one, other = np.minimum(u, v)[:half], np.maximum(u, v)[half:]
    return _coincidences(one, other) * m / max(one.size * other.size, 1)


def _coincidences(a, b):
    """The number of pairs (k, l) with a[k] == b[l]."""
    a, b = np.sort(a), np.sort(b)
    return int((np.searchsorted(b, a, side="right") - np.searchsorted(b, a, side="left")).sum())
