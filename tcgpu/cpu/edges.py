"""Some of a graph's edges, and how many threads they are worth."""

from typing import NamedTuple

from tcgpu.engines.native import MANY, threads


class Edges(NamedTuple):
    """Of a graph's edges (u, v), u < v, those at positions first..last - 1 of its list whose v is in low..high - 1."""

    first: int
    last: int
    low: int
    high: int


def all_of(graph):
    """All edges of a graph."""
    return Edges(0, graph.m, 0, graph.n)


def workers_for(part, wanted=None):
    """How many threads count so many edges: `wanted`, or all there are, if they are worth waking."""
    return (wanted or threads()) if part.last - part.first >= MANY else 1
