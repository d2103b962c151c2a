"""The functions behind `networkx_backend`, and the graphs that they take.

NetworkX converts its graphs to BackendGraphs with `convert_from_nx`, and caches them until a graph is changed; those of
views are not kept. Every result is the one that NetworkX returns: the same keys in the same order, the same Python
types, the same errors. Weighted clustering is the same up to the rounding of sums. Parallel edges count once, as in
NetworkX.
"""

from collections import Counter
from functools import cached_property

import networkx as nx
import numpy as np

from tcgpu import api
from tcgpu.cpu.neighbours import neighbour_pairs, shares, sum_at_ends, sum_over_neighbours
from tcgpu.cpu_costs import MIN_SHARE
from tcgpu.directions import census, directions_of, local_clustering, roots_of
from tcgpu.errors import GraphError
from tcgpu.foreign_graphs import networkx_edges
from tcgpu.graph import Graph, names_of

CHUNK = 1 << 14  # triangles listed at a time
NUMBERS = {bool, int, float, np.int64, np.float64}  # weights of other types may be divided with another precision


class BackendGraph:
    """An immutable tcgpu Graph that NetworkX's functions take, with the results that were computed for it.

    `nx.triangles(BackendGraph(tcgpu.read(path)))` needs no NetworkX graph in between.

    source: the NetworkX graph it was converted from, which has the loops and attributes. directions: of a directed
    graph, FORWARDS, BACKWARDS or both for each of `graph.edges()` (uint8). roots: by the name of an edge attribute, of
    each edge the cube root of its weight over the largest weight, added up over its directions (float64); those that
    are missing are read from the source.
    """

    __networkx_backend__ = "tcgpu"

    # NetworkX's methods, for their error messages; they use `_adj` and `_node` only to look up nodes
    nbunch_iter, __contains__ = nx.Graph.nbunch_iter, nx.Graph.__contains__
    _adj = _node = property(lambda self: self.number)

    def __init__(self, graph: Graph, source: nx.Graph | None = None, directions=None, roots=None):
        self.graph, self.source, self.directions, self.roots = graph, source, directions, roots or {}
        self._clustering: dict[str | None, list] = {}
        self._asked = 0  # nodes of which `triangles_of` was asked

    def __len__(self):
        return self.graph.n

    number_of_nodes = __len__

    def __iter__(self):
        return iter(self.nodes)

    def __repr__(self):
        return f"BackendGraph({self.graph!r})"

    def is_directed(self):
        return self.directions is not None

    def is_multigraph(self):
        return False

    def number_of_edges(self):
        return self.graph.m if self.directions is None else int(np.bitwise_count(self.directions).sum())

    @cached_property
    def nodes(self):
        """The nodes in their order, as Python objects."""
        return names_of(self.graph)

    @cached_property
    def number(self):
        return {node: v for v, node in enumerate(self.nodes)}

    @cached_property
    def total(self):
        return api.count(self.graph)

    @cached_property
    def triangles(self):
        """How many triangles each vertex is in, as a list."""
        return api.triangles(self.graph).tolist()

    def triangles_of(self, nodes):
        """The function of a vertex number that returns its triangles; those of a few nodes in all are counted alone."""
        self._asked += 1 if nodes in self else len(nodes) if hasattr(nodes, "__len__") else len(self)
        if "triangles" in vars(self) or self._asked >= MIN_SHARE * len(self):
            return self.triangles.__getitem__
        return lambda v: int(api.triangles(self.graph, v)[0])

    def clustering(self, weight=None):
        """The clustering of each vertex, as a list; a vertex without triangles has an int 0, as in NetworkX."""
        if weight not in self._clustering:
            if weight is not None and weight not in self.roots:
                self.roots[weight] = convert_from_nx(self.source, edge_attrs={weight: 1}).roots[weight]
            if weight is None and not self.is_directed():
                local = shares(np.array(self.triangles, np.int64), neighbour_pairs(self.graph))
            else:
                local = local_clustering(self.graph, self.directions, self.roots.get(weight))
            self._clustering[weight] = [c or 0 for c in local.tolist()]
        return self._clustering[weight]

    @cached_property
    def square_clustering(self):
        """The share of possible squares at each vertex that exist, as a list, by NetworkX's formula."""
        from tcgpu.subgraphs.four_at_edges import cycles_at

        own = self.graph.ordered("degree")  # in which cycles are found fastest
        cycles = cycles_at(own)
        squares = sum_at_ends(own, cycles, cycles)[own.rank] // 2
        degrees = self.graph.degrees.astype(np.int64)
        around = sum_over_neighbours(self.graph, degrees)
        possible = (around - degrees) * (degrees - 1) - 2 * np.array(self.triangles, np.int64) - squares
        return [s / p if p > 0 else 0 for s, p in zip(squares.tolist(), possible.tolist(), strict=True)]

    @cached_property
    def supports(self):
        """The supports of each vertex's edges, each one once, how often they occur, and each vertex's start: lists."""
        ends = np.concatenate(self.graph.edges()).astype(np.int64)
        keys, times = np.unique(ends << 32 | np.tile(api.support(self.graph), 2), return_counts=True)
        start = np.searchsorted(keys, np.arange(len(self) + 1) << 32)
        return (keys & 0xFFFFFFFF).tolist(), times.tolist(), start.tolist()

    def per_node(self, nodes, value):
        """`value(v)` as NetworkX returns it: the value of one node, or a dict for several, or for all (None)."""
        if nodes is None:
            return dict(zip(self.nodes, map(value, range(len(self))), strict=True))
        if nodes in self:
            return value(self.number[nodes])
        return {node: value(self.number[node]) for node in self.nbunch_iter(nodes)}


# --------------------------------------- what NetworkX dispatches, by its names and parameters; `G` is a BackendGraph


def convert_from_nx(graph, *, edge_attrs=None, preserve_edge_attrs=False, **attributes):
    """Convert a NetworkX graph; it is kept as the source if it has directions, or attributes that are needed.

    NotImplementedError leaves the call to NetworkX, which then tries the next backend or its own code.
    """
    try:
        labels, u, v, data = networkx_edges(graph)
    except GraphError as error:
        raise NotImplementedError(str(error)) from None
    if hasattr(graph, "_graph"):  # a view changes with its graph, and NetworkX does not clear its cache then
        graph.__networkx_cache__ = None
    own = Graph.from_edges(u, v, len(graph), labels=labels, name=graph.name or None)
    keep, directions, roots = graph if preserve_edge_attrs or edge_attrs else None, None, {}
    if graph.is_directed():
        keep, directions = graph, directions_of(own, u, v)
    data = list(data) if edge_attrs else ()
    try:
        for name in edge_attrs or ():
            weights = [of_edge.get(name, 1) for of_edge in data]
            if not {*map(type, weights)} <= NUMBERS:
                raise NotImplementedError("edge weights that are not all int or float are not supported")
            roots[name] = roots_of(own, u, v, weights)
    except GraphError:
        says = "edge weights of which the largest is 0, or one is not finite, are not supported"
        raise NotImplementedError(says) from None
    return BackendGraph(own, keep, directions, roots)


def convert_to_nx(result, *, name=None):
    """Convert a BackendGraph to a NetworkX graph; other results are returned unchanged."""
    if not isinstance(result, BackendGraph):
        return result
    return result.graph.to_networkx() if result.source is None else result.source.copy()


def triangles(G, nodes=None):
    return G.per_node(nodes, G.triangles_of(nodes))


def clustering(G, nodes=None, weight=None):
    return G.per_node(nodes, G.clustering(weight).__getitem__)


def average_clustering(G, nodes=None, weight=None, count_zeros=True):
    found = G.per_node(nodes, G.clustering(weight).__getitem__)
    values = [value for value in found.values() if value or count_zeros]
    return sum(values) / len(values)


def transitivity(G):
    degrees = G.graph.degrees
    return 6 * G.total / int(degrees @ (degrees - 1)) if G.total else 0


def triadic_census(G, nodelist=None):
    nodes = set(G.nbunch_iter(nodelist))
    if nodelist is not None and len(nodelist) != len(nodes):
        raise ValueError("nodelist includes duplicate nodes or nodes not in G")
    chosen = None if nodelist is None else [G.number[node] for node in nodes]
    return census(G.graph, G.directions, chosen)


def square_clustering(G, nodes=None):
    return G.per_node(nodes, G.square_clustering.__getitem__)


def generalized_degree(G, nodes=None):
    supports, times, start = G.supports

    def counter(v):
        part, counts = slice(start[v], start[v + 1]), Counter()
        dict.update(counts, zip(supports[part], times[part], strict=True))  # in half the time of Counter(...)
        return counts

    return G.per_node(nodes, counter)


def all_triangles(G, nbunch=None):
    chunks = api.list_triangles(G.graph, chunk=CHUNK) if nbunch is None else _triangles_of(G, nbunch)
    for chunk in chunks:
        for triangle in chunk.tolist():
            yield tuple(map(G.nodes.__getitem__, triangle))


def k_truss(G, k):
    if G.graph.cleaned.loops and G.source is not None:
        return nx.k_truss(G.source, k, backend="networkx")  # for NetworkX's error message
    from tcgpu.truss import k_truss

    found = k_truss(G.graph, max(k, 2))
    return BackendGraph(found) if G.source is None else _copied_part(G.source, found.to_networkx())


def _copied_part(graph, kept):
    """A copy of the nodes and edges of a NetworkX graph that `kept` has, with their attributes and in their order."""
    part = graph.__class__()
    part.graph.update(graph.graph)
    part.add_nodes_from((node, data.copy()) for node, data in graph.nodes.items() if node in kept)
    part.add_edges_from((u, v, graph.adj[u][v].copy()) for u in part for v in graph.adj[u] if kept.has_edge(u, v))
    return part


def _triangles_of(G, nbunch):
    """The triangles with a node of `nbunch`; in each, these nodes come first, in the order in `nbunch`."""
    given = list(dict.fromkeys(map(G.number.__getitem__, G.nbunch_iter(nbunch))))
    place = np.arange(len(G), 2 * len(G))
    place[given] = np.arange(len(given))
    for chunk in api.list_triangles(G.graph, chunk=CHUNK, nodes=given):
        yield np.take_along_axis(chunk, np.argsort(place[chunk], axis=1), axis=1)
