"""Choose the vertex order, natural or by degree, by estimates of a verb's cost in both.

The cost in natural order is that of a sample of the edges. This is safe, because no edge takes many times the length of
the shorter of its two columns. The cost in degree order follows from the degrees and from the numbers of neighbours of
higher degree, without sorting; it is only computed if natural order costs more than sorting.

The first call of a verb with a graph includes sorting in the cost of degree order. From the second call on it does not:
a graph that is counted again is worth sorting.
"""

import math
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu import cpu_costs as costs
from tcgpu.clean import rank_by_degree
from tcgpu.cpu import choose
from tcgpu.cpu.edges import all_edges, last_up_to, workers_for
from tcgpu.cpu.finding import is_later
from tcgpu.cpu.neighbourhoods import cost_of_rows, dense_at_edges, first_dense, max_dense
from tcgpu.engines.native import CACHE_LINE, LANES, jit, prefetch, run_threads, threads

SAMPLE, EVERY = 8, 512  # the edges in a row that are read of every so many

I64 = np.int64
U64 = np.uint64

_known = WeakKeyDictionary()  # a Graph -> {verb: the order of all later calls; None if it is chosen anew}
_plans = WeakKeyDictionary()  # a Graph -> {by_edge: its TallyPlan}


def in_order(graph, order, verb):
    """The Graph in an order; for "auto", in the best order for a verb."""
    return graph.ordered(best_order(graph, verb) if order == "auto" else order)


def best_order(graph, verb):
    """The order, "natural" or "degree", in which "count", "triangles" or "support" is fastest for a Graph."""
    if graph.order == "degree" or graph.max_column <= 1:
        return "natural"
    known = _known.setdefault(graph, {})
    if known.get(verb) is None:
        first = verb not in known
        order = "degree" if _degree_order_pays(graph, verb, first) else "natural"
        known[verb] = None if first and order == "natural" else order
        return order
    return known[verb]


def _degree_order_pays(graph, verb, first):
    """Whether degree order makes a verb faster; on the first call including sorting, unless that is done."""
    if first and verb == "count" and choose.design_name(graph)[0] == "short":
        return False  # a count takes less than sorting
    sorting, by_edge = 0.0, verb == "support"
    if first and ("degree", 0) not in graph._orders:
        sorting = costs.SORTED_EDGE * graph.m + costs.SORTED_VERTEX * graph.n
    if verb == "count":
        natural, least = count_cost(graph), costs.SHORT * costs.EDGE * graph.m
    else:
        plan = tally_plan(graph, by_edge)
        natural, least = plan.cost, costs.TALLIED * costs.EDGE * graph.m + costs.TRIANGLE[by_edge] * plan.triangles / 2
    if first and natural <= sorting + least or graph.max_degree * graph.n < costs.SKEWED * 2 * graph.m:
        return False
    moving = (costs.FOUND_EDGE if first else costs.MOVED_EDGE) * graph.m if by_edge else 0.0
    ranked = Ranked(rank_by_degree(graph.degrees), _lengths_by_degree(graph))
    if ranked.lengths.max() < 2:  # there is no triangle, and nothing to move
        return sorting < natural
    cost = _ranked_cost(graph, ranked)
    if verb != "count":
        cost = moving + costs.TALLIED * cost + costs.TRIANGLE[by_edge] * plan.triangles
    elif ranked.lengths.max() <= costs.SHORT_COLUMN:
        cost *= costs.SHORT
    return sorting + cost < natural


def count_cost(graph):
    """The estimated cost of a count in the graph's own order."""
    name, base = choose.design_name(graph)
    cost, rows, *_ = _sampled(graph, graph.m, base, later=graph.m >= costs.LATER_EDGES)
    if name == "words":
        return costs.WORDS_EDGE * graph.m + costs.WORD * choose.words_per_nonzero(graph) * rows
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
    for base in bases:
        edges = int(graph.col_ptr[base])
        dense = costs.DENSE * cost_of_rows(graph.m - edges, graph.n - base)
        cost, _, triangles = _sampled(graph, edges, graph.n if by_edge else base)
        cost = costs.TALLIED * cost + costs.TRIANGLE[by_edge] * triangles
        plans.append(TallyPlan("edges", base, dense + cost, triangles))
        if by_edge:
            wedges = (np.square(graph.column_lengths[:base], dtype=np.float64).sum() - edges) / 2
            cost = costs.WEDGES_EDGE * edges + costs.WEDGE * wedges
            plans.append(TallyPlan("wedges", base, dense + cost, triangles))
    if choose.design_name(graph)[0] == "words":
        of_v = graph.degrees[graph.row_idx[choose.sample_of_edges(graph)]].mean()
        cost = (costs.PACKED_EDGE + costs.WORDS_EDGE + costs.WORD * choose.words_per_nonzero(graph) * of_v) * graph.m
        plans.append(TallyPlan("words", graph.n, cost))
    return min(plans, key=lambda plan: plan.cost)


class Ranked(NamedTuple):
    """Degree order: each vertex's place in it, and the length of its column there."""

    rank: np.ndarray
    lengths: np.ndarray


def _ranked_cost(graph, ranked):
    """The estimated cost of a count in degree order, unless it has only short columns."""
    sample = choose.sample_of_edges(graph)
    columns = np.searchsorted(graph.col_ptr, sample, side="right") - 1
    rows = graph.row_idx[sample]
    last = np.where(ranked.rank[columns] > ranked.rank[rows], columns, rows)
    place, lengths = graph.n - ranked.rank[last], ranked.lengths[last]
    base = choose.first_hub(graph, place, lengths, ranked.lengths.max(), choose.MAX_HUBS)
    return _sampled(graph, graph.m, base, ranked, later=graph.m >= costs.LATER_EDGES)[0]


def _sampled(graph, edges, base, ranked=None, later=False):
    """Estimates for the first edges (u, v) of a graph.

    They are the cost in a count, the rows in the columns of all v, and, but not in another order, `ranked`, the
    triangles where v is no hub. base: the first hub. later: whether edges are counted later where that pays.
    """
    if not edges:
        return 0.0, 0.0, 0.0
    take = SAMPLE if edges > costs.MANY else EVERY
    first = np.arange(0, edges, EVERY)
    skip = (first + 1).astype(U64) * U64(0x9E3779B97F4A7C15) >> U64(33)  # looks random, to miss no pattern
    places = np.minimum(first + (skip % U64(EVERY - take + 1)).astype(I64), np.maximum(first, edges - take))
    sums = np.zeros((threads() if edges // EVERY * take >= costs.MANY else 1, 4))
    other = (*ranked, graph.degrees) if ranked else (*np.empty((2, 0), np.int32), graph.col_ptr)
    run_threads(_add_sample, graph.col_ptr, graph.row_idx, *other, places, edges, take, base, later, sums,
                workers=len(sums))  # fmt: skip
    sums = sums.sum(axis=0)
    return sums[:3] * (edges / sums[3])


def _lengths_by_degree(graph):
    """The length of each vertex's column in degree order (int32)."""
    workers = max(1, min(workers_for(all_edges(graph)), graph.m // graph.n))  # so counts need no more memory than edges
    found = np.zeros((workers, graph.n), np.int32)
    run_threads(_count_larger, graph.col_ptr, graph.row_idx, graph.degrees, found, workers=workers)
    for other in found[1:]:
        found[0] += other
    return found[0]


@jit
def _add_sample(worker, workers, col_ptr, row_idx, rank, lengths, degrees, places, edges, take, base, later, all_sums):
    """Add to this worker's sums, of its share of the edges: the costs, the rows in the columns of v, the triangles,
    and the number of edges.

    They are `take` edges from each of some places on. The triangles are estimated from one row for every eighth edge.
    """
    n, u, sums = col_ptr.size - 1, 0, all_sums[worker]
    words = (n - base) // 64
    mean = row_idx.size // n + 1
    for x in range(places.size * worker // workers, places.size * (worker + 1) // workers):
        at, ahead = places[U64(x)], places[U64(min(x + 1, places.size - 1))]
        prefetch(row_idx, places[U64(min(x + 2, places.size - 1))])
        for k in range(ahead, min(ahead + take, edges)):
            prefetch(col_ptr, row_idx[U64(k)])
        step = 1
        while u + step < n and col_ptr[U64(u + step)] <= at:
            u += step
            step *= 2
        u = last_up_to(col_ptr, u, min(u + step, n) + 1, at)
        for k in range(at, min(at + take, edges)):
            while k >= col_ptr[U64(u + 1)]:
                u += 1
            v = I64(row_idx[U64(k)])
            if not rank.size:
                length = col_ptr[U64(u + 1)] - col_ptr[U64(u)]
                rest = col_ptr[U64(u + 1)] - k - 1
                rows = col_ptr[U64(v + 1)] - col_ptr[U64(v)]
                far = col_ptr[U64(v)] - k > costs.DISTANT
            else:
                a, b = I64(rank[U64(u)]), I64(rank[U64(v)])
                length, rows = I64(lengths[U64(u)]), I64(lengths[U64(v)])
                if a > b:
                    length, rows = rows, length
                rest = k % length  # as of any of the column's edges
                hot = max(degrees[U64(u)], degrees[U64(v)]) > row_idx.size // costs.HOT
                far = abs(a - b) * mean > costs.DISTANT and not hot
                v = max(a, b)
            cost = float(costs.EDGE)
            if v >= base and rest:
                cost = costs.HUB_EDGE + min(float(rest), costs.HUB_WORD * (words - (v - base) // 64 + CACHE_LINE // 2))
            elif rows and rest:
                if length <= costs.FEW_ROWS and rows <= costs.MUCH_LONGER:
                    cost += costs.COMPARISON * rest * ((rows + LANES - 1) // LANES) + costs.FAR_EDGE * far
                elif (rest + 1) * costs.MUCH_LONGER < rows:
                    cost += costs.SEARCH * rest * math.log2(rows)
                elif later and is_later(rest + 1, rows):
                    cost += costs.LATER_EDGE + rest
                else:
                    cost += costs.LOOKUP_EDGE + rows + costs.FAR_EDGE * far / 2
                if not rank.size and k % 8 == 0:
                    row = row_idx[U64(col_ptr[U64(v)] + rows // 2)]
                    if row_idx[U64(last_up_to(row_idx, k, k + 1 + rest, row))] == row:
                        sums[2] += 8 * rows
            sums[0] += cost
            sums[1] += rows
            sums[3] += 1


@jit
def _count_larger(worker, workers, col_ptr, row_idx, degrees, found):
    """Count the neighbours after each vertex in degree order, in one worker's share of the columns."""
    n, of_worker = col_ptr.size - 1, found[worker]
    for u in range(n * worker // workers, n * (worker + 1) // workers):
        degree, of_u = degrees[U64(u)], np.int32(0)
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            v = U64(row_idx[U64(k)])
            after = np.int32(degree <= degrees[v])  # no branch: it could not be predicted
            of_u += after
            of_worker[v] += np.int32(1) - after
        of_worker[U64(u)] += of_u
