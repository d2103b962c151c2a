"""Cliques and cycles of four vertices on a GPU: what `tcgpu.motifs` and `tcgpu.cliques` enumerate.

Each function here takes a graph, which it prepares for the engine that is used.
"""

import numpy as np

from tcgpu import cpu
from tcgpu.declarations import GPU, Method
from tcgpu.engines import runtime
from tcgpu.kernels import adaptive, results, simulated
from tcgpu.kernels.device_graph import order_for_tallies, prepare
from tcgpu.subgraphs import cliques, cycles

METHOD = Method(
    name="motifs",
    source="ours",
    summary="rows of bits for the cliques that begin at a vertex, counters for the paths that end there",
    engines=(*GPU, "cpu"),
    prepared=prepare,
)


def count_cliques(graph, k):
    if k <= 3:
        return (graph.n, graph.m, 0)[k - 1] or adaptive.plan(prepare(graph, "auto")).count()
    return cliques.plan(prepare(graph, "degree"), k).count()


def for_motifs(graph):
    """What is enumerated for motifs: triangles at each edge (int64), 4-cliques, and 4-cycles, joined across or not."""
    given = prepare(graph, "natural")
    own, by_degree = prepare(given, order_for_tallies(given, "auto")), prepare(given, "degree")
    support = results.edges_in_order_of(given, adaptive.support_plan(own), own)
    at_edges, *totals = _results(support, cliques.plan(by_degree, 4), cycles.plan(by_degree))
    return cpu.widened(at_edges), *totals


def for_orbits(graph):
    """What is enumerated for orbits, of a Graph in degree order: five int64 arrays with a number for each edge.

    Its triangles, its 4-cliques, the two sums over its triangles of `cpu.four_at_edges`, and its 4-cycles.
    """
    from tcgpu.subgraphs import reductions, triangle_sums  # no other count imports them

    ordered = prepare(graph, "natural")
    plans = adaptive.support_plan(ordered), cliques.plan(ordered, 4, at_edges=True), cycles.plan(ordered, at_edges=True)
    support, clique, cycle = _results(*plans, work=2 * triangle_sums.work(graph))
    support = cpu.widened(support)

    def summed(f, **values):
        return reductions.reduce_triangles(graph, f, **values, per="edge", order="natural", totals=triangle_sums.totals)

    triangles = summed(_of_other_edges, edge_values=support - 1)
    neighbours = summed(_of_third_vertices, vertex_values=graph.degrees.astype(np.int64) - 2)
    return support, clique, triangles, neighbours, cycle


def _results(*plans, work=0):
    """The results of plans, which together stay below the simulator's limit. work: microseconds that follow there."""
    if runtime.estimates_time:
        seconds = sum(plan.simulated_seconds for plan in plans) + simulated.seconds(0, work)
        simulated.check("motifs", seconds)
    return [plan.count() for plan in plans]


def _of_other_edges(u, v, w, uv, uw, vw):
    """For `reduce_triangles` at each edge: the values of the two other edges."""
    return uw + vw, uv + vw, uv + uw


def _of_third_vertices(u, v, w, x, y, z):
    """For `reduce_triangles` at each edge: the value of the vertex that is not an end."""
    return z, y, x
