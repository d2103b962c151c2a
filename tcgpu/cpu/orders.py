"""The order in which the native engine finds a graph's triangles soonest: by what both orders cost, not by a sample.

Costs are in look-ups: sums over the lengths of columns and how often vertices are rows. Those of degree order are known
from the degrees before anything is sorted. Where natural order costs no more than degree order would at the least,
nothing more is looked at.
"""

from weakref import WeakKeyDictionary

import numpy as np

from tcgpu.cpu import choose
from tcgpu.cpu.dense import LINE, dense_tail, most_dense, wedge_lookups
from tcgpu.cpu.edges import all_of, workers_for
from tcgpu.engines.native import jit, run_threads

COMPARED, PACKED, MARKED, HUB = 24, 20, 40, 6  # what an edge costs beside its look-ups: short, words, marks, hubs
HUB_WORD = 0.8  # what a word of two hubs' rows costs,
PACKED_WORD = 1.5  # and one of a packed column
STRETCHES = 128  # a column is marked once in each of the stretches that a count is cut into: at most so many
APART = {"count": 0, "triangles": 8, "support": 40}  # what an edge costs more by degree: far apart, carried back
BETTER = 0.85  # degree order has to cost less than this share of natural order

U64 = np.uint64

_known = WeakKeyDictionary()  # a Graph -> {verb: order}


def in_order(graph, order, verb):
    """A Graph in an order; in that which suits a verb best where the order is "auto"."""
    return graph.ordered(best_order(graph, verb) if order == "auto" else order)


def best_order(graph, verb):
    """In which order a Graph's "count", "triangles" or "support" takes less time: "natural" or "degree".

    Where a sample of its edges tells already that degree order pays, that is believed.
    """
    if graph.order == "degree" or not graph.m:
        return "natural"
    known = _known.setdefault(graph, {})
    if verb not in known:
        better = _counts_faster(graph) if verb == "count" else _tallies_faster(graph, APART[verb] * graph.m)
        known[verb] = "degree" if better else "natural"
    return known[verb]


def _counts_faster(graph):
    """Whether degree order makes a count faster."""
    if graph.max_column <= choose.SHORT_COLUMN:
        return False
    if graph._auto == "degree":
        return True
    name, base = choose.chosen(graph)
    lengths, degrees = graph.column_lengths, graph.degrees
    if name == "words":
        natural = PACKED * graph.m + PACKED_WORD * choose.words_per_nonzero(graph) * _sums(lengths, degrees)[1]
    else:
        edges, lookups, _ = _sums(lengths[:base], degrees)
        natural = MARKED * edges + lookups + _marks_cost(graph, _sums(lengths, degrees)[2])
        natural += _hubs_cost(degrees[base:] - lengths[base:]).sum()
    if BETTER * natural <= HUB * graph.m:
        return False
    lengths = _larger_neighbours(graph)
    edges, lookups, squares = _sums(lengths, degrees)
    if lengths.max() <= choose.SHORT_COLUMN:
        return COMPARED * edges + squares / 2 < BETTER * natural
    last = _last_by_degree(graph, choose.hub_limit(graph))
    hubs = degrees[last] - lengths[last]
    instead = _hubs_cost(hubs) - hubs * (MARKED + lengths[last].astype(np.int64))
    cost = MARKED * edges + lookups + _marks_cost(graph, squares) + min(0, np.cumsum(instead[::-1]).min())
    return cost < BETTER * natural


def _tallies_faster(graph, apart):
    """Whether degree order makes finding each vertex's or edge's triangles faster, by more than `apart` look-ups."""
    lengths, most = graph.column_lengths, most_dense(graph)
    natural = _tally_cost(lengths, lengths[graph.n - most :])
    if natural <= apart:
        return False
    if graph._auto == "degree":
        return True
    natural = min(natural, int(wedge_lookups(graph, 0).sum()))  # less where middle vertices have no column
    if natural <= apart:
        return False
    lengths = _larger_neighbours(graph)
    return _tally_cost(lengths, lengths[_last_by_degree(graph, most)].astype(np.int64)) + apart < natural


def _hubs_cost(smaller):
    """What the last vertices cost as hubs, each the larger end of so many edges."""
    return smaller * (HUB + HUB_WORD * (np.arange(smaller.size, 0, -1) // 64 + LINE // 2))


def _marks_cost(graph, squares):
    """What it takes to mark each column in every stretch of edges that it reaches into; `squares` of their lengths."""
    return squares * (STRETCHES / 2 / graph.m)


def _tally_cost(lengths, last):
    """What wedges and rows of bits cost together where columns have these lengths, those of the `last` vertices too."""
    squares = _sums(lengths, lengths)[2]
    return (squares - float(lengths.sum())) / 2 + dense_tail(last, last * (last - 1) // 2)[1]


def _larger_neighbours(graph):
    """How many neighbours each vertex has behind it in degree order: the length of its column there (int32)."""
    workers = max(1, min(workers_for(all_of(graph)), graph.m // graph.n))  # together no more numbers than edges
    found = np.zeros((workers, graph.n), np.int32)
    run_threads(_count_larger, graph.col_ptr, graph.row_idx, graph.degrees, found, workers=workers)
    for others in found[1:]:
        found[0] += others
    return found[0]


def _last_by_degree(graph, most):
    """The last vertices in degree order, ascending, at most so many."""
    most = min(graph.n, most)
    last = np.argpartition(graph.degrees, graph.n - most)[graph.n - most :]
    return last[np.argsort(graph.degrees[last], kind="stable")]


@jit
def _sums(lengths, degrees):
    """Of the first columns, of these lengths: how many edges lead to their vertices, the look-ups there, the squares.

    The look-ups are an edge's times the length of the column that it leads to; squares are of lengths; all as floats.
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
    """How many neighbours each vertex has behind it in degree order, by each worker's share of the columns."""
    n = col_ptr.size - 1
    for u in range(n * worker // workers, n * (worker + 1) // workers):
        for k in range(col_ptr[U64(u)], col_ptr[U64(u + 1)]):
            v = U64(row_idx[U64(k)])
            found[worker, U64(u) if degrees[U64(u)] <= degrees[v] else v] += 1
