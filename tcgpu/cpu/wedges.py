"""Estimate the number of triangles from random wedges, in NumPy: nothing is compiled for it.

A pair of rows of one column is a wedge whose common vertex comes first, and each triangle closes one such wedge: so the
triangles are the wedges times the share of them that is closed. Wedges are drawn until as many are closed as the
relative error needs. How many draws that takes, over their mean, has a gamma distribution where the share is small, and
a narrower one where it is large. So the error is known before the first draw, and no look at the draws in between
spoils it.
"""

from math import atanh, ceil, floor, sqrt, tanh
from statistics import NormalDist

import numpy as np

from tcgpu.arrays import running_sums
from tcgpu.cpu.neighbours import are_among
from tcgpu.declarations import check_integer
from tcgpu.errors import MethodError
from tcgpu.graph import Graph, as_graph
from tcgpu.progress import pulse, underway

DRAWS = 1 << 15  # at a time


class ApproximateCount(int):
    """An estimated number of triangles, or if `exact` the number itself, which then takes no longer to count."""

    low: int  # the exact number is not below it and not above `high`, with the probability `confidence`
    high: int
    confidence: float
    samples: int  # wedges that were drawn
    exact: bool

    def __new__(cls, triangles: int, low: int = 0, high: int = 0, samples: int = 0) -> "ApproximateCount":
        made = super().__new__(cls, triangles)
        made.samples, made.exact = samples, not samples
        made.low, made.high, made.confidence = (triangles, triangles, 1.0) if made.exact else (low, high, 0.95)
        return made

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"{self.low:,} to {self.high:,} with a confidence of {self.confidence:.0%}"
        return f"<{int(self):,} triangles: {how}>"

    __str__ = int.__repr__


def check(error, seed, others):
    """MethodError if an estimate cannot be made. others: keywords that say how to count exactly, and their values."""
    if not isinstance(error, (int, float, np.number)) or not 0 < error < 1:
        raise MethodError(f"approximate must be a relative error above 0 and below 1, not {error!r}")
    if given := [f"{name}=" for name, value in others.items() if value is not None]:
        raise MethodError(f"approximate= draws wedges in NumPy, by no method: leave {', '.join(given)} out")
    check_integer("seed", 0 if seed is None else seed, 0, 2**63 - 1)


def estimate(graph, error, seed, order=None, progress=None):
    """The ApproximateCount of a graph, of this relative error; None if an exact count takes less."""
    graph = as_graph(graph, order or ("natural" if isinstance(graph, Graph) else "auto"))
    with underway(progress, f"drawing wedges of {graph.m:,} edges"):
        return _estimated(graph, error, np.random.default_rng(seed))


def _estimated(graph, error, random):
    sums = running_sums(graph.column_lengths * (graph.column_lengths - 1))  # of ordered pairs of rows, twice the wedges
    if graph.m * error**2 < 1 or not sums[-1]:  # more closed wedges are needed than there are edges
        return None
    missing, scale = closed_wedges(error)
    tried = _draw(graph, sums, random)  # and not used again: if more are closed by chance, the estimate is no larger
    if (tried.sum() - 2 * sqrt(tried.sum())) * graph.m < missing * tried.size:  # it takes more draws than edges
        return None
    needed, samples = missing, 0
    while (found := (closed := _draw(graph, sums, random)).sum()) < missing:
        missing, samples = missing - found, samples + DRAWS
        pulse(1 - missing / needed)
    samples += int(np.flatnonzero(random.permutation(closed))[missing - 1]) + 1
    triangles = int(sums[-1]) / 2 * scale / samples
    return ApproximateCount(round(triangles), floor(triangles / (1 + error)), ceil(triangles / (1 - error)), samples)


def closed_wedges(error):
    """How many closed wedges a relative error needs; and what, over the draws until then, is the share of closed ones.

    By Wilson's and Hilferty's approximation: the cube root of a gamma distribution is nearly normal.
    """
    z, x = NormalDist().inv_cdf(0.975), tanh(atanh(error) / 3)
    needed = ceil(((z + sqrt(z**2 + 4 * x**2)) / (6 * x)) ** 2)
    return needed, needed * ((1 - 1 / (9 * needed)) * (1 - x)) ** 3 * (1 + error)


def _draw(graph, sums, random):
    """Whether each of DRAWS random wedges is closed, column after column."""
    drawn = np.sort(random.integers(sums[-1], size=DRAWS))  # memory is read in its order: twice as fast
    column = np.searchsorted(sums, drawn, side="right") - 1
    first = graph.col_ptr[column]
    one, other = np.divmod(drawn - sums[column], graph.col_ptr[column + 1] - first - 1)
    one, other = graph.row_idx[first + one], graph.row_idx[first + other + (other >= one)]
    low, high = np.minimum(one, other), np.maximum(one, other)
    first = graph.col_ptr[low]
    return are_among(graph.row_idx, first, graph.col_ptr[low + 1] - first, high)
