"""The NetworkX backend: `nx.triangles(G, backend="tcgpu")`, or by default if `nx.config.backend_priority` names it.

NetworkX finds this module as `backend` through the entry point `networkx.backends`, and asks it for each call whether
it can run it and should. Both are answered here without NumPy, whose import takes longer than NetworkX for a small
graph. The functions are in `networkx_graph`, which the first call that runs here imports.
"""

import inspect
import sys
from functools import partial
from numbers import Integral

import networkx as nx

from tcgpu.cpu_costs import CALL_US, CONVERTED_US, EDGE_US, IMPORT_US, MIN_SHARE, NETWORKX_US, NUMBA_US, WEIGHED
from tcgpu.networkx_info import FUNCTIONS

DIRECTED = {"average_clustering", "clustering", "triadic_census"}
# functions for which NetworkX takes multigraphs; triangles only of all nodes
MULTIGRAPHS = {"all_triangles", "square_clustering", "triadic_census", "triangles"}

backend = sys.modules[__name__]
_lost = 0.0  # microseconds that NetworkX took longer, for lack of a first call here


def __getattr__(name):
    if name == "BackendGraph":
        from tcgpu.networkx_graph import BackendGraph

        return BackendGraph
    if name not in FUNCTIONS and name not in ("convert_from_nx", "convert_to_nx"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(_run, name)


def can_run(name, args, kwargs):
    """Whether this backend returns NetworkX's result: True, or the reason why not."""
    try:
        given = _given(name, args, kwargs)
    except TypeError:
        return "these are not the function's arguments"
    graph, weight = given["G"], given.get("weight")
    if "k" in given and not isinstance(given["k"], Integral):
        return "k is not a whole number"
    if graph.is_directed() and name not in DIRECTED:
        return "NetworkX follows edges in one direction only here"
    if graph.is_multigraph() and (name not in MULTIGRAPHS or name == "triangles" and given.get("nodes") is not None):
        return "NetworkX takes no multigraphs here"
    if weight is not None and not graph.is_directed() and _views_directed(graph):
        return "this view has edges in both directions, whose weights may differ"
    ours = getattr(graph, "__networkx_backend__", "") == "tcgpu"
    if ours and graph.source is None and weight not in (None, *graph.roots):
        return "this graph was converted without its attributes"
    if given.get("nodelist") is not None:
        if graph.graph.cleaned.loops if ours else any(nx.selfloop_edges(graph)):
            return "with a nodelist, NetworkX counts loops as edges between two nodes"
    return True


def should_run(name, args, kwargs):
    """Whether this backend is faster, conversion and first calls included: True, or the reason why not.

    What a first call takes is paid once NetworkX has taken as much longer for calls before.
    """
    global _lost
    given = _given(name, args, kwargs)
    graph, nodes = given["G"], given.get("nodes", given.get("nbunch"))
    if nodes is not None:
        if nodes in graph or hasattr(nodes, "__len__") and len(nodes) < MIN_SHARE * len(graph):
            return "NetworkX reads only the neighbourhoods of these few nodes"
    edges, weighed = graph.number_of_edges(), 1 if given.get("weight") is None else WEIGHED
    converted = "tcgpu" in getattr(graph, "__networkx_cache__", {}).get("backends", ())
    ours = CALL_US + edges * (EDGE_US[name] + (0 if converted else CONVERTED_US * weighed))
    theirs = NETWORKX_US[name] * weighed * edges
    if theirs <= ours:
        return f"NetworkX takes about {theirs / 1e3:.1f} ms for these {edges:,} edges, and tcgpu {ours / 1e3:.1f}"
    _lost += theirs - ours
    first = 0 if "tcgpu.networkx_graph" in sys.modules else IMPORT_US
    if _lost > first and "numba" not in sys.modules:
        from tcgpu.engines.choice import in_numpy  # it looks for GPUs

        if name == "square_clustering" or not in_numpy(int(edges * (2 * edges) ** 0.5)):  # as `cpu.small.serves`
            first += NUMBA_US
    if _lost <= first:
        return f"NetworkX takes about {theirs / 1e3:.1f} ms, and a first call of tcgpu {first / 1e3:,.0f}"
    return True


def _run(name, /, *args, **kwargs):
    from tcgpu import networkx_graph

    return getattr(networkx_graph, name)(*args, **kwargs)


def _given(name, args, kwargs):
    """The arguments by their names; TypeError if they are not NetworkX's."""
    return inspect.signature(getattr(nx, name).orig_func).bind(*args, **kwargs).arguments


def _views_directed(graph):
    """Whether a NetworkX graph is a view of a directed one, or of such a view."""
    while isinstance(graph := getattr(graph, "_graph", None), nx.Graph):
        if graph.is_directed():
            return True
    return False
