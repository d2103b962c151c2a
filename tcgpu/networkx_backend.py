"""The NetworkX backend: `nx.triangles(G, backend="tcgpu")`, or by default if `nx.config.backend_priority` names it.

NetworkX finds `backend` through the entry point `networkx.backends`. It converts its graphs to BackendGraphs with
`convert_from_nx`, and caches them until a graph is changed. Every result is the one that NetworkX returns: the same
keys in the same order, the same Python types, the same errors. Parallel edges count once, as in NetworkX. Directed
graphs and weights are left to NetworkX; `can_run` says why.
"""

import inspect
from collections import Counter
from functools import cached_property
from numbers import Integral

import networkx as nx
import numpy as np

from tcgpu import api, cpu
from tcgpu.cpu.four_at_edges import cycles_at_edges
from tcgpu.graph import Graph
from tcgpu.networkx_info import FUNCTIONS

MIN_EDGES = 1_000  # NetworkX takes milliseconds for fewer edges (and nodes)
MIN_SHARE = 1 / 50  # for a smaller share of the nodes, their neighbourhoods are less work than the graph
CHUNK = 1 << 14  # triangles listed at a time
MULTIGRAPHS = {"all_triangles", "square_clustering", "triangles"}  # which NetworkX takes; triangles only of all nodes


class BackendGraph:
    """An immutable tcgpu Graph that NetworkX's functions take, with the results that were computed for it.

    `nx.triangles(BackendGraph(tcgpu.read(path)))` needs no NetworkX graph in between.

    Parameters
    ----------
    graph : Graph
    source : networkx.Graph, optional
        The graph it was converted from, which has the loops and attributes.
    """

    __networkx_backend__ = "tcgpu"

    # NetworkX's method, for its error messages; it uses `_adj` only to look up nodes
    nbunch_iter = nx.Graph.nbunch_iter
    _adj = property(lambda self: self.number)

    def __init__(self, graph: Graph, source: nx.Graph | None = None):
        self.graph, self.source = graph, source

    def __len__(self):
        return self.graph.n

    def __iter__(self):
        return iter(self.nodes)

    def __contains__(self, node):
        try:
            return node in self.number
        except TypeError:  # not hashable, such as a list of nodes
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
        """How many triangles each vertex is in, as a list."""
        return api.triangles(self.graph).tolist()

    @cached_property
    def clustering(self):
        """The clustering of each vertex, as a list; a vertex without triangles has an int 0, as in NetworkX."""
        closed = 2 * np.array(self.triangles, np.int64)
        pairs = self.graph.degrees * (self.graph.degrees - 1)
        share = np.divide(closed, pairs, out=np.zeros(len(self)), where=closed > 0)
        return [c or 0 for c in share.tolist()]

    @cached_property
    def square_clustering(self):
        """The share of possible squares at each vertex that exist, as a list, by NetworkX's formula."""
        own = self.graph.ordered("degree")  # in which cycles are found fastest
        cycles = cpu.in_edge_order_of(self.graph, own, cycles_at_edges(own))
        squares = self.sum_at_vertices(np.tile(cycles, 2)) // 2
        degrees = self.graph.degrees.astype(np.int64)
        around = self.sum_at_vertices(degrees[np.concatenate(self.graph.edges()[::-1])])  # degrees of the neighbours
        possible = (around - degrees) * (degrees - 1) - 2 * np.array(self.triangles, np.int64) - squares
        return [s / p if p > 0 else 0 for s, p in zip(squares.tolist(), possible.tolist())]

    @cached_property
    def supports(self):
        """The triangles of each edge of vertex 0, then of vertex 1, ..., and the start of each vertex: two lists."""
        ends = np.concatenate(self.graph.edges()).astype(np.int64)
        keys = np.sort(ends << 32 | np.tile(api.support(self.graph), 2))
        start = np.concatenate(([0], np.cumsum(self.graph.degrees)))
        return (keys & 0xFFFFFFFF).tolist(), start.tolist()

    def sum_at_vertices(self, values):
        """Of each vertex: the sum (int64) of the `values` of its edges, for the rows first, then for the columns."""
        total = np.zeros(len(self), np.int64)
        np.add.at(total, np.concatenate(self.graph.edges()), values)
        return total

    def per_node(self, nodes, value):
        """`value(v)` as NetworkX returns it: the value of one node, or a dict for several, or for all (None)."""
        if nodes is None:
            return dict(zip(self.nodes, map(value, range(len(self)))))
        if nodes in self:
            return value(self.number[nodes])
        return {node: value(self.number[node]) for node in self.nbunch_iter(nodes)}


class Backend:
    """The functions that NetworkX dispatches, under NetworkX's names and parameters. `G` is a BackendGraph."""

    @staticmethod
    def convert_from_nx(graph, *, preserve_node_attrs=False, **attributes):
        """Convert an undirected NetworkX graph; it is kept as the source if the function called needs attributes."""
        if graph.is_directed():
            raise NotImplementedError("directed graphs are not supported")
        return BackendGraph(Graph.from_networkx(graph), graph if preserve_node_attrs else None)

    @staticmethod
    def convert_to_nx(result, *, name=None):
        """Convert a BackendGraph to an nx.Graph; other results are returned unchanged."""
        return result.graph.to_networkx() if isinstance(result, BackendGraph) else result

    @staticmethod
    def can_run(name, args, kwargs):
        """Whether this backend returns NetworkX's result: True, or the reason why not."""
        try:
            given = _arguments(name, args, kwargs)
        except TypeError:
            return "these are not the function's arguments"
        if given.get("weight") is not None:
            return "edge weights are not supported"
        if "k" in given and not isinstance(given["k"], Integral):
            return "k is not a whole number"
        if given["G"].is_directed():
            return "directed graphs are not supported"
        if given["G"].is_multigraph():
            taken = name in MULTIGRAPHS and (name != "triangles" or given.get("nodes") is None)
            return taken or "NetworkX takes no multigraphs here"
        return True

    @staticmethod
    def should_run(name, args, kwargs):
        """Whether this backend is faster, conversion included: True, or the reason why not."""
        given = _arguments(name, args, kwargs)
        graph, nodes = given["G"], given.get("nodes", given.get("nbunch"))
        if nodes is not None:
            if nodes in graph or hasattr(nodes, "__len__") and len(nodes) < MIN_SHARE * len(graph):
                return "NetworkX reads only the neighbourhoods of these few nodes"
        if len(graph) < MIN_EDGES and graph.number_of_edges() < MIN_EDGES:
            return f"NetworkX is fast enough below {MIN_EDGES} edges"
        return True

    @staticmethod
    def triangles(G, nodes=None):
        return G.per_node(nodes, G.triangles.__getitem__)

    @staticmethod
    def clustering(G, nodes=None, weight=None):
        return G.per_node(nodes, G.clustering.__getitem__)

    @staticmethod
    def average_clustering(G, nodes=None, weight=None, count_zeros=True):
        values = G.per_node(nodes, G.clustering.__getitem__).values()
        if not count_zeros:
            values = [value for value in values if value]
        return sum(values) / len(values)

    @staticmethod
    def transitivity(G):
        degrees = G.graph.degrees
        return 6 * G.total / int(degrees @ (degrees - 1)) if G.total else 0

    @staticmethod
    def square_clustering(G, nodes=None):
        return G.per_node(nodes, G.square_clustering.__getitem__)

    @staticmethod
    def generalized_degree(G, nodes=None):
        supports, start = G.supports
        return G.per_node(nodes, lambda v: Counter(supports[start[v] : start[v + 1]]))

    @staticmethod
    def all_triangles(G, nbunch=None):
        chunks = api.list_triangles(G.graph, chunk=CHUNK) if nbunch is None else _triangles_of(G, nbunch)
        for chunk in chunks:
            for triangle in chunk.tolist():
                yield tuple(map(G.nodes.__getitem__, triangle))

    @staticmethod
    def k_truss(G, k):
        if G.graph.cleaned.loops and G.source is not None:
            return nx.k_truss(G.source, k, backend="networkx")  # for NetworkX's error message
        found = api.k_truss(G.graph, max(k, 2))
        return BackendGraph(found) if G.source is None else _copied_part(G.source, found.to_networkx())


backend = Backend()
_SIGNATURES = {name: inspect.signature(getattr(Backend, name)) for name in FUNCTIONS}


def _arguments(name, args, kwargs):
    """The arguments of a call by their names; TypeError if they do not fit."""
    return _SIGNATURES[name].bind(*args, **kwargs).arguments


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
    for chunk in api.list_triangles(_around(G.graph, given), chunk=CHUNK):
        chunk = np.take_along_axis(chunk, np.argsort(place[chunk], axis=1), axis=1)
        yield chunk[place[chunk[:, 0]] < len(given)]


def _around(graph, vertices):
    """The graph with only the edges between these vertices and their neighbours."""
    rows, cols = graph.edges()
    inside = np.zeros(graph.n, bool)
    inside[vertices] = True
    near = inside.copy()
    near[rows[inside[cols]]] = True
    near[cols[inside[rows]]] = True
    return graph.kept(near[rows] & near[cols])
