"""The NetworkX backend: `nx.triangles(G, backend="tcgpu")`, or unasked once `nx.config.backend_priority` names it.

NetworkX finds `backend` through the entry point `networkx.backends`. It hands over its graphs as BackendGraphs, made by
`convert_from_nx` and kept in NetworkX's own cache for as long as the graph is not changed. Every answer is the one that
NetworkX gives: the same keys in the same order, the same Python types, the same errors. Directed graphs, multigraphs
and weights stay NetworkX's own; `can_run` says why.
"""

import inspect
from collections import Counter
from functools import cache, cached_property
from numbers import Integral

import networkx as nx
import numpy as np

from tcgpu import api
from tcgpu.api import k_truss
from tcgpu.graph import Graph

SMALL = 1_000  # edges; below that NetworkX takes milliseconds
FEW = 50  # of every so many nodes less than one: their neighbourhoods alone are less work than the graph
CHUNK = 1 << 14  # triangles listed at a time


class BackendGraph:
    """A tcgpu Graph as NetworkX's functions take it, with what was counted on it so far. It never changes.

    It has no loops and no attributes, but may have the NetworkX graph that has them, `source`, at hand.
    `BackendGraph(tcgpu.read(path))` goes straight into `nx.triangles` and the others, without a NetworkX graph in
    between.
    """

    __networkx_backend__ = "tcgpu"

    # NetworkX's own, for its errors; all it asks of `_adj` is which nodes there are
    nbunch_iter = nx.Graph.nbunch_iter
    _adj = property(lambda self: self.number)

    def __init__(self, graph, source=None):
        self.graph, self.source = graph, source

    def __len__(self):
        return self.graph.n

    def __iter__(self):
        return iter(self.nodes)

    def __contains__(self, node):
        try:
            return node in self.number
        except TypeError:  # what has no hash, such as a list of nodes, is no node
            return False

    def __repr__(self):
        return f"BackendGraph({self.graph!r})"

    def is_directed(self):
        return False

    def is_multigraph(self):
        return False

    def number_of_nodes(self):
        return self.graph.n

    def number_of_edges(self):
        return self.graph.m

    @cached_property
    def nodes(self):
        """The nodes in their order, as Python objects."""
        labels = self.graph.labels
        if labels is None:
            return range(self.graph.n)
        return labels.tolist() if isinstance(labels, np.ndarray) else labels

    @cached_property
    def number(self):
        """The vertex number of each node."""
        return {node: v for v, node in enumerate(self.nodes)}

    @cached_property
    def total(self):
        return api.count(self.graph)

    @cached_property
    def triangles(self):
        """How many triangles each vertex is in: a list."""
        return api.triangles(self.graph).tolist()

    @cached_property
    def clustering(self):
        """The clustering of each vertex: a list, in which a vertex of no triangles has NetworkX's int 0."""
        closed = 2 * np.array(self.triangles, np.int64)
        pairs = self.graph.degrees * (self.graph.degrees - 1)
        share = np.divide(closed, pairs, out=np.zeros(len(self)), where=closed > 0)
        return [c or 0 for c in share.tolist()]

    @cached_property
    def supports(self):
        """How many triangles each edge of a vertex is in: the vertices' lists, end to end, and where each starts."""
        ends = np.concatenate(self.graph.edges())
        start = np.concatenate(([0], np.cumsum(self.graph.degrees)))
        support = api.support(self.graph)
        return np.tile(support, 2)[np.argsort(ends, kind="stable")].tolist(), start.tolist()

    def answer(self, nodes, value):
        """`value(v)` as NetworkX returns it: of one node its value, of several or (None) of all a dict."""
        if nodes is None:
            return dict(zip(self.nodes, map(value, range(len(self)))))
        if nodes in self:
            return value(self.number[nodes])
        return {node: value(self.number[node]) for node in self.nbunch_iter(nodes)}


class Backend:
    """The functions that NetworkX dispatches, by their names in NetworkX; `G` is a BackendGraph."""

    @staticmethod
    def convert_from_nx(graph, *, preserve_node_attrs=False, **attributes):
        """A BackendGraph of an undirected nx.Graph; what returns a part of a graph asks for its attributes, too."""
        if reason := _unlike(graph):
            raise NotImplementedError(reason)
        return BackendGraph(Graph.from_networkx(graph), graph if preserve_node_attrs else None)

    @staticmethod
    def convert_to_nx(result, *, name=None):
        """An nx.Graph of a BackendGraph; any other result is NetworkX's kind already."""
        return result.graph.to_networkx() if isinstance(result, BackendGraph) else result

    @staticmethod
    def can_run(name, args, kwargs):
        """Whether the answer is the same here: True, or the reason why not."""
        asked = _arguments(name, args, kwargs)
        if asked is None:
            return "these are not the function's arguments"
        if asked.get("weight") is not None:
            return "edge weights are not used here"
        if "k" in asked and not isinstance(asked["k"], Integral):
            return "k is no whole number"
        return _unlike(asked["G"]) or True

    @staticmethod
    def should_run(name, args, kwargs):
        """Whether the answer comes sooner from here, conversion included: True, or the reason why not."""
        asked = _arguments(name, args, kwargs)
        graph, nodes = asked["G"], asked.get("nodes", asked.get("nbunch"))
        if nodes is not None and _few(nodes, graph):
            return "NetworkX looks at the neighbourhoods of few nodes alone"
        if len(graph) < SMALL and graph.number_of_edges() < SMALL:
            return f"NetworkX is quick enough below {SMALL} edges"
        return True

    @staticmethod
    def triangles(G, nodes=None):
        return G.answer(nodes, G.triangles.__getitem__)

    @staticmethod
    def clustering(G, nodes=None, weight=None):
        return G.answer(nodes, G.clustering.__getitem__)

    @staticmethod
    def average_clustering(G, nodes=None, weight=None, count_zeros=True):
        values = G.answer(nodes, G.clustering.__getitem__).values()
        if not count_zeros:
            values = [value for value in values if value]
        return sum(values) / len(values)

    @staticmethod
    def transitivity(G):
        degrees = G.graph.degrees
        return 6 * G.total / int(degrees @ (degrees - 1)) if G.total else 0

    @staticmethod
    def generalized_degree(G, nodes=None):
        supports, start = G.supports
        return G.answer(nodes, lambda v: Counter(supports[start[v] : start[v + 1]]))

    @staticmethod
    def all_triangles(G, nbunch=None):
        chunks = _all_triangles(G) if nbunch is None else _triangles_of(G, nbunch)
        for chunk in chunks:
            for triangle in chunk.tolist():
                yield tuple(map(G.nodes.__getitem__, triangle))

    @staticmethod
    def k_truss(G, k):
        if G.graph.cleaned.loops and G.source is not None:
            return nx.k_truss(G.source, k, backend="networkx")  # which refuses loops in its own words
        found = k_truss(G.graph, max(k, 2))
        return BackendGraph(found) if G.source is None else _part(G.source, found.to_networkx())


backend = Backend()


@cache
def _signature(name):
    return inspect.signature(getattr(Backend, name))


def _arguments(name, args, kwargs):
    """The arguments of a call by their names; None if they do not fit."""
    try:
        return _signature(name).bind(*args, **kwargs).arguments
    except TypeError:
        return None


def _unlike(graph):
    """Why a graph is not one of ours; empty if it is."""
    if graph.is_directed():
        return "directed triangles are not counted here"
    if graph.is_multigraph():
        return "multigraphs are not counted here"
    return ""


def _part(graph, kept):
    """A copy of the part of a NetworkX graph that another one shows, with its attributes and in its order."""
    part = graph.__class__()
    part.graph.update(graph.graph)
    part.add_nodes_from((node, data.copy()) for node, data in graph.nodes.items() if node in kept)
    part.add_edges_from((u, v, graph.adj[u][v].copy()) for u in part for v in graph.adj[u] if kept.has_edge(u, v))
    return part


def _few(nodes, graph):
    """Whether `nodes` is one node of the graph, or a small container of them."""
    return nodes in graph or (hasattr(nodes, "__len__") and len(nodes) * FEW < len(graph))


def _all_triangles(G):
    return api.list_triangles(G.graph, chunk=CHUNK)


def _triangles_of(G, nbunch):
    """The triangles with a node of `nbunch`, which are found among these nodes and their neighbours.

    In each, the nodes of `nbunch` come first, in the order in which they were given.
    """
    asked = list(dict.fromkeys(map(G.number.__getitem__, G.nbunch_iter(nbunch))))
    place = np.arange(len(G), 2 * len(G))
    place[asked] = np.arange(len(asked))
    for chunk in api.list_triangles(_around(G.graph, asked), chunk=CHUNK):
        chunk = np.take_along_axis(chunk, np.argsort(place[chunk], axis=1), axis=1)
        yield chunk[place[chunk[:, 0]] < len(asked)]


def _around(graph, vertices):
    """The graph without the edges that join anything but these vertices and their neighbours."""
    rows, cols = graph.edges()
    inside = np.zeros(graph.n, bool)
    inside[vertices] = True
    near = inside.copy()
    near[rows[inside[cols]]] = True
    near[cols[inside[rows]]] = True
    return graph.kept(near[rows] & near[cols])
