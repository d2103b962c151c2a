"""The native engine: exact counts on all cores of a CPU, of a graph or of a part of its edges.

look     what a graph looks like, and so by which design it is counted
counts   the designs
tallies  triangles per vertex, per edge, and one by one
dense    the first two where a graph is dense, by rows of bits
"""

from tcgpu.cpu.counts import count, count_by
from tcgpu.cpu.edges import Edges
from tcgpu.cpu.look import Design, design, edge_work, hub_rows
from tcgpu.cpu.tallies import carried_back, list_triangles, support, tally, triangles, widened

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
    "list_triangles",
    "plan",
    "support",
    "tally",
    "triangles",
    "widened",
]


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
