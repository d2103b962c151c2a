"""The native engine: exact counts on all cores of a CPU, of a whole graph or of a part of its edges.

A count picks a vertex order (`orders`), then a design (`choose`), and runs that design (`counting`). A design counts,
for each edge (u, v), the rows that the columns of u and v share:

    design  graphs                                             how the columns are intersected
    short   no column is over 32 rows, or few are and none is  16 rows are compared with one instruction
            over 128; and not "words": meshes, roads
    words   most columns, or few that take most of the time,   non-zero 64-bit words of the columns are ANDed
            have rows of close numbers: overlapping cliques,
            bands, cliques with tails
    hubs    all others: above all skewed graphs in degree      if v is a hub (one of the last vertices), rows of bits
            order                                              are ANDed; else, by the lengths of the columns, rows are
                                                               compared, or looked up in a bitmap, or v's is searched;
                                                               edges between long columns are put off, sorted by v, and
                                                               looked up in bitmaps of the columns of v

Speed on two cores, relative to "hubs" without hubs: "short" is 2.4 times as fast on a mesh, 1.6 on roads and 1.3 on a
Delaunay triangulation. Relative to that as it was when it only looked up rows in bitmaps: "words" 3.2 times on
overlapping cliques; "hubs" 3.7 times on R-MAT scale 18 in degree order. On other graphs each design is slower than the
best: "words" a fifth as fast as "short" on roads, "short" a 20th of "words" on cliques, "words" 0.6 of "hubs" on R-MAT.

`per_vertex` finds triangles per vertex, per edge and one by one. It uses rows of bits where a graph is dense (`dense`)
and for edges to its dense part (`dense_pairs`); elsewhere it intersects columns as a count does (`edge_tally`,
`word_tally`), or looks up wedges, which pays where most edges are in many triangles. `truss` peels edges for k-trusses
and truss numbers, `dense_truss` those of dense graphs. `four_at_edges` finds the cycles and cliques of four vertices
at each edge. `reductions` calls a function of the caller for each triangle and adds up what it returns, in
`exact_sums`. `edges` describes a part of a graph.

In compiled functions an array index is cast to uint64 (`U64`), because Numba checks signed ones for being negative.
"""

import numpy as np

from tcgpu.built_in import planner
from tcgpu.cpu.choose import Design, design, edge_work, hub_rows
from tcgpu.cpu.counting import count, count_by, finds_triangle
from tcgpu.cpu.edges import Edges
from tcgpu.cpu.orders import in_order
from tcgpu.cpu.per_vertex import in_edge_order_of, list_triangles, support, tally, triangles, widened
from tcgpu.cpu.reductions import reduce_triangles
from tcgpu.graph import as_graph

__all__ = [
    "Design",
    "Edges",
    "Plan",
    "count",
    "count_by",
    "design",
    "edge_work",
    "finds_triangle",
    "hub_rows",
    "in_order",
    "list_triangles",
    "plan",
    "prepare",
    "reduce_triangles",
    "support",
    "in_edge_order_of",
    "tally",
    "triangles",
    "widened",
]


class Plan:
    """A native count with the stages of a count on a GPU (`tcgpu.kernels.Plan`). It allocates nothing."""

    method = "cpu"
    device_bytes = 0

    def __init__(self, graph):
        self.graph = graph

    def allocate(self):
        pass

    reset = free = allocate

    def launch(self):
        self.total = count(self.graph)

    def result(self):
        return self.total

    def count(self):
        return count(self.graph)


def prepare(graph, order):
    """A Graph in the given order, made of anything that `as_graph` takes.

    With order "auto", raw edges are sorted in the order that a sample of them suggests, and again only if the costs of
    both orders then disagree.
    """
    if order != "auto":
        return as_graph(graph, order)
    raw = isinstance(graph, (tuple, np.ndarray)) or hasattr(graph, "__cuda_array_interface__")
    return in_order(as_graph(graph, "auto" if raw else "natural"), "auto", "count")


plan = planner("cpu", prepare)(Plan)
