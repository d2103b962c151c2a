"""A part of a graph's edges, the number of threads that count it, and the vertices that each of them takes."""

from typing import NamedTuple

from tcgpu.cpu_costs import MANY
from tcgpu.engines.native import U64, fetch_add, jit, threads, uncached

TAKEN = 64  # vertices that a worker takes at a time
MARKS = 3  # times the columns: the most memory for the marks of all workers


class Edges(NamedTuple):
    """The edges (u, v), u < v, at positions first..last - 1 of a graph's `row_idx` whose v is in low..high - 1.

    A `tcgpu.distributed.Part` has the same fields and can be used wherever Edges can.
    """

    first: int
    last: int
    low: int
    high: int


def all_edges(graph):
    return Edges(0, graph.m, 0, graph.n)


def takes_any_v(part, graph):
    """Whether the edges (u, v) of a part may have any v."""
    return part.low <= 0 and part.high >= graph.n


def workers_for(part, most=None):
    """The number of threads for a part: `most`, or all; 1 if there are too few edges to wake more."""
    return (most or threads()) if part.last - part.first >= MANY else 1


def marking_workers(graph, workers=None):
    """As many of the `workers`, by default those for all edges, as may have an int32 for each vertex."""
    return max(1, min(workers or workers_for(all_edges(graph)), MARKS * graph.nbytes // (4 * graph.n + 1)))


@jit
def last_up_to(values, low, high, most):
    """The last of the positions low to high - 1 of ascending values that has at most `most`; `low` if none has.

    It is compiled much faster than `numpy.searchsorted`.
    """
    while high - low > 1:
        middle = (low + high) >> 1
        if values[U64(middle)] <= most:
            low = middle
        else:
            high = middle
    return low


@uncached
def vertices(queue, n):
    """Take vertices until none of 0 to n - 1 is left; yield each one."""
    while True:
        first = fetch_add(queue, 0, TAKEN)
        if first >= n:
            return
        for k in range(min(TAKEN, n - first)):
            yield first + k
