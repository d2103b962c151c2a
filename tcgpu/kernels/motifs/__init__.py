"""Cliques and cycles of four vertices on a GPU: what `tcgpu.motifs` and `tcgpu.cliques` enumerate.

    tiles      which rows of a column are neighbours of each other, in bits
    cliques    the cliques of 4 to 8 vertices, by common bits of rows
    cycles     the cycles of 4 vertices, by the paths between two of them

Each function here takes a graph, which it prepares for the engine that is used.
"""

from tcgpu import cpu
from tcgpu.declarations import Method
from tcgpu.engines import runtime
from tcgpu.kernels import adaptive, results, simulated
from tcgpu.kernels.device_graph import order_for_tallies, prepare
from tcgpu.kernels.motifs import cliques, cycles

METHOD = Method(
    name="motifs",
    source="ours",
    summary="rows of bits for the cliques that begin at a vertex, counters for the paths that end there",
    prepared=prepare,
)


def count_cliques(graph, k):
    """The number of cliques of k vertices, from 1 to 8."""
    if k <= 3:
        return (graph.n, graph.m, 0)[k - 1] or adaptive.plan(prepare(graph, "auto")).count()
    return cliques.plan(prepare(graph, "degree"), k).count()


def for_motifs(graph):
    """What is enumerated for motifs: triangles at each edge (int64), 4-cliques, and 4-cycles, joined across or not."""
    given = prepare(graph, "natural")
    own, by_degree = prepare(given, order_for_tallies(given, "auto")), prepare(given, "degree")
    support = results.edges_in_order_of(given, adaptive.support_plan(own), own)
    plans = support, cliques.plan(by_degree, 4), cycles.plan(by_degree)
    simulated.check("motifs", sum(plan.simulated_seconds for plan in plans) if runtime.engine() == "sim" else 0)
    at_edges, *totals = (plan.count() for plan in plans)
    return cpu.widened(at_edges), *totals
