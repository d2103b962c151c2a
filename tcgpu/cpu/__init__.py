"""The native engine: exact counts on all cores of a CPU, of a graph or of a part of its edges.

choose      which design counts a graph
orders      which vertex order costs least
counting    the designs
per_vertex  triangles per vertex, per edge, and listed one by one
dense       the first two where a graph is dense, by rows of bits
truss       k-trusses and truss numbers
"""

import numpy as np

from tcgpu.cpu.choose import Design, design, edge_work, hub_rows
from tcgpu.cpu.counting import count, count_by
from tcgpu.cpu.edges import Edges
from tcgpu.cpu.orders import in_order
from tcgpu.cpu.per_vertex import carried_back, list_triangles, sum_exactly, support, tally, triangles, widened
from tcgpu.declarations import Method
from tcgpu.graph import as_graph

__all__ = [
    "Design",
    "Edges",
    "Plan",
    "carried_back",
    "count",
    "count_by",
    "design",
    "edge_work",
    "hub_rows",
    "in_order",
    "list_triangles",
    "plan",
    "prepare",
    "sum_exactly",
    "support",
    "tally",
    "triangles",
    "widened",
]


METHOD = Method(
    name="cpu",
    source="ours",
    summary="native threads: rows of bits for hubs, byte marks or packed words for the rest",
    order="auto",
    engines=("cpu",),
    module=__name__,
)


class Plan:
    """One native count in the stages of a GPU's (`tcgpu.kernels.Plan`): it needs no memory but the graph's own."""

    method = "cpu"
    device_bytes = 0

    def __init__(self, graph):
        self.graph, self.total = graph, None

    def allocate(self):
        pass

    def launch(self):
        self.total = count(self.graph)

    def reset(self):
        self.total = None

    def result(self):
        return self.total

    def free(self):
        pass

    def count(self):
        return count(self.graph)


def plan(graph):
    return Plan(graph)


def prepare(graph, order):
    """A Graph in the order to count it in, of whatever `as_graph` takes.

    Raw edges are sorted in the order that a sample of them asks for, and once more only where that was wrong.
    """
    if order != "auto":
        return as_graph(graph, order)
    raw = isinstance(graph, (tuple, np.ndarray)) or hasattr(graph, "__cuda_array_interface__")
    return in_order(as_graph(graph, "auto" if raw else "natural"), "auto", "count")
