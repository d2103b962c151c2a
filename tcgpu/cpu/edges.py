"""A part of a graph's edges, and how many threads it keeps busy."""

from typing import NamedTuple

from tcgpu.engines.native import MANY, threads


class Edges(NamedTuple):
    """The edges (u, v), u < v, at positions first..last - 1 of a graph's `row_idx` whose v is in low..high - 1.

    A `tcgpu.distributed.Part` has the same fields and can stand wherever Edges can.
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


def workers_for(part, wanted=None):
    """The number of threads for a part: `wanted`, or all; 1 if there are too few edges to wake more."""
    return (wanted or threads()) if part.last - part.first >= MANY else 1
