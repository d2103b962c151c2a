"""Edges that have directions, or weights: clustering, and the census of triads.

The clusterings are sums over triangles of a product of three values, one for each edge: how many directions it has; or
the cube roots of its weights over the largest, added up over its directions.
"""

from itertools import combinations_with_replacement
from math import comb

import numpy as np

from tcgpu.arrays import bincount, sum_exactly
from tcgpu.cpu import small
from tcgpu.cpu.neighbours import neighbour_pairs, shares, sum_at_ends
from tcgpu.errors import GraphError
from tcgpu.foreign_graphs import networkx_edges
from tcgpu.graph import Graph, as_graph, checked_edges, two_columns

FORWARDS, BACKWARDS = 1, 2  # bits: an edge leads from its smaller vertex to its larger, or back
REVERSED = np.array([0, BACKWARDS, FORWARDS, FORWARDS | BACKWARDS])


def described(given, directed, weights=None):
    """A Graph, the directions of each of its edges if these count, and their roots if there are weights."""
    graph = as_graph(given)
    if directed and (isinstance(given, Graph) or hasattr(given, "adj") and not given.is_directed()):
        raise GraphError("this graph has no directions: give edge arrays (u, v), pairs, or a NetworkX DiGraph")
    if isinstance(given, Graph):
        u, v = given.edges()
    elif hasattr(given, "adj"):
        if weights is not None and (given.is_multigraph() or not isinstance(weights, str)):
            raise GraphError("of a NetworkX graph without parallel edges, weights= is the name of an attribute")
        _, u, v, data = networkx_edges(given)
        weights = weights and [attributes.get(weights, 1) for attributes in data]
    else:
        u, v, _ = checked_edges(*(given if isinstance(given, tuple) else two_columns(given)))
    directions, roots = directions_of(graph, u, v), None
    if weights is not None:
        roots = roots_of(graph, u, v, weights)
        if np.count_nonzero(u != v) != (np.bitwise_count(directions).sum() if directed else graph.m):
            raise GraphError("some edges with weights are given twice: give each once, with the sum of its weights")
    return graph, directions if directed else None, roots


def places(graph, u, v):
    """The place in `graph.edges()` of each edge u[k] - v[k], all of which it has."""
    rows, cols = graph.edges()
    return np.searchsorted(cols * np.int64(graph.n) + rows, np.minimum(u, v) * np.int64(graph.n) + np.maximum(u, v))


def directions_of(graph, u, v):
    """FORWARDS, BACKWARDS or both for each edge of the graph of these edges, which lead from u to v (uint8)."""
    directions = np.zeros(graph.m, np.uint8)
    for bit, lead in ((FORWARDS, u < v), (BACKWARDS, u > v)):
        directions[places(graph, u[lead], v[lead])] |= bit
    return directions


def roots_of(graph, u, v, weights):
    """For each edge, the cube roots of its weights over the largest, added up over its directions (float64)."""
    try:
        values = np.asarray(weights, float)
    except (OverflowError, TypeError, ValueError):
        values = np.array(np.nan)
    joins = u != v
    with np.errstate(all="ignore"):
        values = values / values.max(initial=-np.inf)
    if values.shape != u.shape or not np.isfinite(values).all():
        raise GraphError(f"weights are a finite number for each of {u.size:,} edges, the largest of which is not 0")
    return bincount(places(graph, u[joins], v[joins]), np.cbrt(values[joins]), graph.m)


def local_clustering(graph, directions=None, roots=None, **options):
    """The clustering coefficient of each vertex, by the directions of edges, or their roots, or both."""
    values = np.bitwise_count(directions).astype(np.int64) if roots is None else roots
    found = _reduced(graph, _product, values, per="vertex", **options)
    if directions is None:
        return shares(found, neighbour_pairs(graph))
    # two edges in opposite directions to one neighbour are no pair; each pair can be closed in two directions
    many = np.bitwise_count(directions).astype(np.int64)
    degrees, twice = (sum_at_ends(graph, each, each) for each in (many, many == 2))
    return shares(found, degrees * (degrees - 1) - 2 * twice)


def _reduced(graph, f, values, bins=None, per="graph", **options):
    """As `tcgpu.reduce_triangles` of values of the edges; `f` takes arrays, too, for small graphs."""
    if not small.serves(graph) or any(value is not None for value in options.values()):
        from tcgpu.subgraphs import reduce_triangles, reductions

        return reduce_triangles(graph, reductions.fixed(f), edge_values=values, bins=bins, per=per, **options)
    total = np.zeros(bins or graph.n, np.int64 if bins else values.dtype)
    for ends, positions in small.with_edges(graph):
        result = f(*ends, *values[positions])
        for at in [result] if bins else ends:
            total += bincount(at, None if bins else result, total.size).astype(total.dtype)
    return total


def _product(u, v, w, uv, uw, vw):
    return uv * uw * vw


def _tricode(u, v, w, uv, uw, vw):
    """The code of a triad in NetworkX's table, from the directions of its edges."""
    return uv + 4 * uw + 16 * vw


def census(graph, directions, nodes=None):
    """The triads of each type, by the directions of the edges; with nodes, all less those of other vertices."""
    found = _census(graph, directions, graph.n)
    if nodes is None:
        return found
    outside = np.ones(graph.n, bool)
    outside[nodes] = False
    rows, cols = graph.edges()
    keep = outside[rows] & outside[cols]
    others = _census(graph.kept(keep), directions[keep], int(outside.sum()))
    return {name: triads - others[name] for name, triads in found.items()}


def _census(graph, directions, n):
    """The triads of each type, of a graph with n vertices and the `directions` of its edges; others are isolated.

    Only triangles are enumerated. Triads with two edges are the pairs of edges at their middle vertex, by directions,
    less those that triangles have. The edges, each with any third vertex, that are not in these are in triads with one.
    """
    from networkx.algorithms import triads

    names = triads.TRICODE_TO_NAME
    census = dict.fromkeys(triads.TRIAD_NAMES, 0)
    edges = {d: sum_at_ends(graph, directions == REVERSED[d], directions == d) for d in (1, 2, 3)}
    for d, e in combinations_with_replacement(edges, 2):
        pairs = edges[d] * edges[e] if d != e else edges[d] * (edges[d] - 1) // 2
        census[names[d + 4 * e]] += sum_exactly(pairs)
    closed = _reduced(graph, _tricode, directions.astype(np.int64), bins=64)
    for code in np.flatnonzero(closed).tolist():
        many, (uv, uw, vw) = int(closed[code]), (code & 3, code >> 2 & 3, code >> 4)
        census[names[code]] += many
        for d, e in ((uv, uw), (REVERSED[uv], vw), (REVERSED[uw], REVERSED[vw])):
            census[names[int(d + 4 * e)]] -= many
    found = census.copy()
    for name, kind, place in (("012", directions != 3, 1), ("102", directions == 3, 0)):
        inside = sum(int(triad[place]) * many for triad, many in found.items())
        census[name] = int(kind.sum()) * (n - 2) - inside
    census["003"] = comb(n, 3) - sum(census.values())
    return census
