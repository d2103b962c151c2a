"""Choose the vertex order, natural or by degree, by estimates of a verb's cost in both.

Both costs are those of a sample of the edges. This is safe, because no edge takes many times the length of the shorter
of its two columns. In degree order the columns' lengths follow from the degrees, without sorting.

The first call of a verb with a graph chooses the order of all later ones. It sorts itself if it then takes no more than
twice as long as without; else the second call does: a graph that is counted again is worth sorting.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu import cpu_costs as costs
from tcgpu.arrays import bincount
from tcgpu.cpu import choose
from tcgpu.cpu.neighbourhoods import cost_of_rows, dense_at_edges, first_dense, max_dense
from tcgpu.cpu.neighbours import are_among
from tcgpu.engines.native import CACHE_LINE, LANES

CALLS = 64  # of a verb that repay sorting, if it pays

_known = WeakKeyDictionary()  # a Graph -> {verb: the order of all later calls}
_plans = WeakKeyDictionary()  # a Graph -> {by_edge: its TallyPlan}


def in_order(graph, order, verb):
    """The Graph in an order; for "auto", in the best order for a verb."""
    return graph.ordered(best_order(graph, verb) if order == "auto" else order)


def best_order(graph, verb):
    """The order, "natural" or "degree", in which "count", "triangles" or "support" is fastest for a Graph."""
    if graph.order == "degree" or graph.max_column <= 1:
        return "natural"
    known = _known.setdefault(graph, {})
    if verb in known:
        return known[verb]
    natural, degree, sorting = order_costs(graph, verb)
    known[verb] = "degree" if degree + sorting / CALLS < natural else "natural"
    return known[verb] if sorting + degree <= 2 * natural else "natural"


def order_costs(graph, verb):
    """The estimated costs of a verb in natural and in degree order, and of sorting for the latter.

    Degree order is taken to cost the same, without an estimate, if natural order takes little more than reading the
    edges, but for forests, or if all degrees are about equal.
    """
    by_edge = verb == "support"
    plan = None if verb == "count" else tally_plan(graph, by_edge)
    natural = plan.cost if plan else count_cost(graph)
    little = graph.n <= graph.m and natural < costs.EDGE * graph.m
    if little or graph.max_degree * graph.n < costs.SKEWED * 2 * graph.m:
        return natural, natural, 0.0
    sorting = 0.0 if ("degree", 0) in graph._orders else costs.SORTED_EDGE * graph.m + costs.SORTED_VERTEX * graph.n
    sample = _by_degree(graph)
    if sample.length.mean() < 1.25:  # no column has two rows, so there is no triangle, and nothing to move
        return natural, 0.0, sorting
    longest = np.quantile((sample.length, sample.rows), 0.98)  # longer ones are those of blocks of unlike ends
    base = choose.first_hub(graph, sample.from_v, sample.rows, longest, choose.MAX_HUBS)
    degree = graph.m * _edge_costs(sample, graph.n - base, graph.m >= costs.LATER_EDGES).mean()
    if plan:
        moved = graph.m if by_edge else graph.n
        degree = costs.TALLIED * degree + costs.TRIANGLE[by_edge] * plan.triangles + costs.MOVED * moved
    elif longest <= costs.SHORT_COLUMN:
        degree *= costs.SHORT
    return natural, degree, sorting + by_edge * costs.FOUND_EDGE * graph.m


def count_cost(graph):
    """The estimated cost of a count in the graph's own order."""
    name, base = choose.design_name(graph)
    sample = _in_own_order(graph)
    if name == "words":
        return graph.m * (costs.WORDS_EDGE + costs.WORD * choose.words_per_nonzero(graph) * sample.rows.mean())
    cost = graph.m * _edge_costs(sample, graph.n - base, graph.m >= costs.LATER_EDGES).mean()
    return costs.SHORT * cost if name == "short" else cost


class TallyPlan(NamedTuple):
    """How to count triangles at vertices or edges in the graph's own order."""

    method: str  # "words", or how triangles of other than dense vertices are found: "edges", or per edge also "wedges"
    base: int  # the first of the dense vertices
    cost: float
    triangles: float = 0.0  # about how many have no more than one dense vertex


def tally_plan(graph, by_edge):
    """The TallyPlan with the least cost, kept for later calls."""
    plans = _plans.setdefault(graph, {})
    if by_edge not in plans:
        plans[by_edge] = _new_plan(graph, by_edge)
    return plans[by_edge]


def _new_plan(graph, by_edge):
    plans, bases, first = [], [graph.n], graph.n - max_dense(graph)
    lengths = np.diff(graph.col_ptr[first:])
    if by_edge:
        bases.append(first_dense(graph))
    elif lengths.max(initial=0) > costs.FEW_ROWS:  # else there is no dense part, and the degrees are not needed
        bases = [graph.n - dense_at_edges(graph.degrees[first:], lengths)]
    sample = _in_own_order(graph)
    closed, weight = _closed(graph, sample), graph.m / sample.rows.size
    for base in bases:
        edges, dense, hubs = int(graph.col_ptr[base]), graph.n - base, 0 if by_edge else graph.n - base
        others = sample.from_u > dense
        cost = costs.DENSE * cost_of_rows(graph.m - edges, dense)
        triangles = weight * closed[others & (sample.from_v > hubs)].sum()
        at_edges = weight * _edge_costs(sample, hubs)[others].sum()
        at_edges = costs.TALLIED * at_edges + costs.TRIANGLE[by_edge] * triangles
        plans.append(TallyPlan("edges", base, cost + at_edges, triangles))
        if by_edge:
            wedges = costs.WEDGES_EDGE * edges + costs.WEDGE * weight * sample.rest[others].sum()
            plans.append(TallyPlan("wedges", base, cost + wedges, triangles))
    if choose.design_name(graph)[0] == "words":
        of_v = graph.degrees[graph.row_idx[choose.sample_of_edges(graph)]].mean()
        cost = (costs.PACKED_EDGE + costs.WORDS_EDGE + costs.WORD * choose.words_per_nonzero(graph) * of_v) * graph.m
        plans.append(TallyPlan("words", graph.n, cost))
    return min(plans, key=lambda plan: plan.cost)


class Sample(NamedTuple):
    """Arrays of some edges (u, v) in a vertex order, u before v."""

    from_u: np.ndarray  # how many vertices there are from u on,
    from_v: np.ndarray  # and from v on
    length: np.ndarray  # rows of u's column,
    rest: np.ndarray  # those of them after v,
    rows: np.ndarray  # and rows of v's column
    far: np.ndarray  # whether the columns are far apart


def _in_own_order(graph):
    """A Sample in the graph's own order."""
    edges, u, v = _sampled_edges(graph)
    rest, rows = graph.col_ptr[u + 1] - edges - 1, graph.col_ptr[v + 1] - graph.col_ptr[v]
    far = graph.col_ptr[v] - edges > costs.DISTANT
    return Sample(graph.n - u, graph.n - v, graph.col_ptr[u + 1] - graph.col_ptr[u], rest, rows, far)


def _by_degree(graph):
    """A Sample in degree order, estimated from the degrees of both ends of some edges.

    A vertex with d neighbours is d times among the ends: so each end stands for 1 / d of a vertex, in the number of
    those from an end on. The share of the neighbours that are in a vertex's column is about the share of first ends
    among those near it, and varies as if each neighbour were drawn.
    """
    edges, *ends = _sampled_edges(graph)
    ends = np.stack(ends)
    degrees = graph.degrees[ends]
    swapped = degrees[0] > degrees[1]
    ends, degrees = (np.where(swapped, pair[::-1], pair) for pair in (ends, degrees))
    order = np.argsort(-(degrees * graph.n + ends), axis=None)
    place, share = np.empty((2, *ends.shape))
    place.flat[order] = np.cumsum(2 * graph.m / order.size / degrees.flat[order])
    blocks = np.arange(order.size) // int(order.size**0.5)
    share.flat[order] = (bincount(blocks, order < edges.size) / bincount(blocks))[blocks]
    drawn = np.random.default_rng(0).normal(degrees * share, np.sqrt(degrees * share * (1 - share)))
    (from_u, from_v), (length, rows) = place, np.rint(np.clip(drawn, 0, place))
    rest = edges % np.maximum(length, 1)  # as of any edge of the column
    hot = degrees[1] > graph.m // costs.HOT
    far = (from_u - from_v) * graph.nonzeros_per_column > costs.DISTANT
    return Sample(from_u, from_v, length, rest, rows, far & ~hot)


def _sampled_edges(graph):
    """The positions of the edges of a Sample, their u and their v."""
    edges = choose.sample_of_edges(graph)
    return edges, np.searchsorted(graph.col_ptr, edges, side="right") - 1, graph.row_idx[edges]


def _closed(graph, sample):
    """Estimates of the triangles of each edge of a Sample in the graph's own order, from one row for every fourth."""
    edges = choose.sample_of_edges(graph)[::4]
    rest, rows, closed = sample.rest[::4].copy(), sample.rows[::4], np.zeros(sample.rows.size)
    middle = graph.row_idx[np.minimum(graph.col_ptr[graph.row_idx[edges]] + rows // 2, graph.m - 1)]
    closed[::4] = 4 * rows * are_among(graph.row_idx, edges + 1, rest, middle)
    return closed


def _edge_costs(sample, hubs, later=False):
    """The estimated cost of each edge of a Sample in a count with so many hubs, the last vertices.

    later: whether edges are counted later where that pays.
    """
    _, from_v, length, rest, rows, far = sample
    of_bits = costs.HUB_EDGE - costs.EDGE + np.minimum(rest, costs.HUB_WORD * (from_v // 64 + CACHE_LINE // 2))
    ways = (
        (rest == 0, 0),
        (from_v <= hubs, of_bits),
        (rows == 0, 0),
        ((length <= costs.FEW_ROWS) & (rows <= costs.MUCH_LONGER),
         costs.COMPARISON * rest * np.ceil(rows / LANES) + costs.FAR_EDGE * far),
        ((rest + 1) * costs.MUCH_LONGER < rows, costs.SEARCH * rest * np.log2(np.maximum(rows, 1))),
        (later & (rows >= costs.LATER_ROWS) & (rest < rows), costs.LATER_EDGE + rest),
    )  # fmt: skip
    looked_up = costs.LOOKUP_EDGE + rows + costs.FAR_EDGE * far / 2
    return costs.EDGE + np.select(*zip(*ways, strict=True), looked_up)
