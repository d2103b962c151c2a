"""Choose the vertex order, natural or by degree, by estimates of a verb's cost in both.

The costs, in look-ups, are sums over the lengths of columns and over the numbers of edges that lead to a vertex. Those
in degree order are computed from the degrees, without sorting. If natural order costs less than a lower bound for
degree order, nothing more is computed.
"""

from weakref import WeakKeyDictionary

import numpy as np

from tcgpu.cpu import choose
from tcgpu.cpu.dense import best_dense, max_dense, wedge_lookups
from tcgpu.cpu.edges import all_edges, workers_for
from tcgpu.engines.native import CACHE_LINE, jit, run_threads

# costs in look-ups
SHORT_EDGE, WORDS_EDGE, HUB_EDGE = 24, 20, 6  # an edge, besides its look-ups
HUB_WORD = 0.8  # a word of two hubs' rows
PACKED_WORD = 1.5  # a word of a packed column
# the extra cost of degree order for each edge: neighbours are far apart, and results are returned in natural order
DEGREE_EDGE = {"count": 0, "triangles": 8, "support": 40}
BETTER = 0.85  # degree order must cost less than this fraction of natural order
CHUNKS = 128  # the most chunks of edges in a count, which marks a column again in each chunk

U64 = np.uint64

_known = WeakKeyDictionary()  # a Graph -> {verb: order}


def in_order(graph, order, verb):
    """The Graph in an order; for "auto", in the best order for a verb."""
    return graph.ordered(best_order(graph, verb) if order == "auto" else order)


def best_order(graph, verb):
    """The order, "natural" or "degree", in which "count", "triangles" or "support" is fastest for a Graph.

    If `graph.ordered("auto")` chooses degree order by its sample, and natural order is not cheap, nothing is estimated.
    """
    if graph.order == "degree" or not graph.m:
        return "natural"
    known = _known.setdefault(graph, {})
    if verb not in known:
        by_degree = _count_by_degree(graph) if verb == "count" else _tally_by_degree(graph, DEGREE_EDGE[verb] * graph.m)
        known[verb] = "degree" if by_degree else "natural"
    return known[verb]


def _count_by_degree(graph):
    """Whether degree order makes a count faster."""
    if graph.max_column <= choose.SHORT_COLUMN:
        return False
    if graph._auto == "degree":
        return True
    name, base = choose.design_name(graph)
    lengths, degrees = graph.column_lengths, graph.degrees
    if name == "words":
        words = choose.words_per_nonzero(graph) * _sums(lengths, degrees)[1]
        natural = WORDS_EDGE * graph.m + PACKED_WORD * words
    else:
        edges, lookups, _ = _sums(lengths[:base], degrees)
        natural = choose.BITMAP_EDGE * edges + lookups + _bitmap_cost(graph, _sums(lengths, degrees)[2])
        natural += _hubs_cost(degrees[base:] - lengths[base:]).sum()
    if BETTER * natural <= HUB_EDGE * graph.m:
        return False
    lengths = _lengths_by_degree(graph)
    edges, lookups, squares = _sums(lengths, degrees)
    if lengths.max() <= choose.SHORT_COLUMN:
        return SHORT_EDGE * edges + squares / 2 < BETTER * natural
    last = _last_by_degree(graph, choose.hub_limit(graph))
    smaller = degrees[last] - lengths[last]
    saved = smaller * (choose.BITMAP_EDGE + lengths[last].astype(np.int64)) - _hubs_cost(smaller)
    cost = choose.BITMAP_EDGE * edges + lookups + _bitmap_cost(graph, squares) - max(0, np.cumsum(saved[::-1]).max())
    return cost < BETTER * natural


def _tally_by_degree(graph, extra):
    """Whether degree order makes tallies (triangles, support) faster by more than `extra` look-ups."""
    lengths, most = graph.column_lengths, max_dense(graph)
    natural = _tally_cost(lengths, lengths[graph.n - most :])
    if natural <= extra:
        return False
    if graph._auto == "degree":
        return True
    natural = min(natural, int(wedge_lookups(graph, 0).sum()))  # fewer where the middle of a wedge has no column
    if natural <= extra:
        return False
    lengths = _lengths_by_degree(graph)
    return _tally_cost(lengths, lengths[_last_by_degree(graph, most)].astype(np.int64)) + extra < natural


def _hubs_cost(smaller):
    """The cost of the last vertices as hubs; each is the larger end of `smaller` edges."""
    return smaller * (HUB_EDGE + HUB_WORD * (np.arange(smaller.size, 0, -1) // 64 + CACHE_LINE // 2))


def _bitmap_cost(graph, squares):
    """The cost of marking each column in a bitmap, once in every chunk of edges that it reaches into."""
    return squares * (CHUNKS / 2 / graph.m)


def _tally_cost(lengths, last):
    """The cost of tallies with columns of these lengths, the dense ones of the `last` vertices by rows of bits."""
    squares = _sums(lengths, lengths)[2]
    return (squares - float(lengths.sum())) / 2 + best_dense(last, last * (last - 1) // 2)[1]


def _lengths_by_degree(graph):
    """The length of each vertex's column in degree order (int32)."""
    workers = max(1, min(workers_for(all_edges(graph)), graph.m // graph.n))  # so counts need no more memory than edges
    found = np.zeros((workers, graph.n), np.int32)
    run_threads(_count_larger, graph.col_ptr, graph.row_idx, graph.degrees, found, workers=workers)
    for other in found[1:]:
        found[0] += other
    return found[0]


def _last_by_degree(graph, most):
    """The last vertices in degree order, ascending, at most `most`."""
    most = min(graph.n, most)
    last = np.argpartition(graph.degrees, graph.n - most)[graph.n - most :]
    return last[np.argsort(graph.degrees[last], kind="stable")]


@jit
def _sums(lengths, degrees):
    """For the first columns, of the given lengths: their edges (u, v), counted at v; the look-ups; the squared lengths.

    The look-ups of an edge (u, v) are the length of v's column. All three are floats.
    """
    edges = lookups = squares = 0.0
    for v in range(lengths.size):
        length, smaller = float(lengths[U64(v)]), float(degrees[U64(v)] - lengths[U64(v)])
        edges += smaller
        lookups += smaller * length
        squares += length * length
    return edges, lookups, squares


@jit
def _count_larger(worker, workers, col_ptr, row_idx, degrees, found):
    """Count the neighbours after each vertex in degree order, in one worker's share of the columns."""
    n = col_ptr.size - 1
    for u in range(n * worker // workers, n * (worker + 1) // workers):
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            v = U64(row_idx[U64(k)])
            found[worker, U64(u) if degrees[U64(u)] <= degrees[v] else v] += 1
