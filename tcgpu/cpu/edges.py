"""A part of a graph's edges, and the number of threads that count it."""

from typing import NamedTuple

from tcgpu.engines.native import MANY, threads


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
