"""Hypothesis strategies that several test files use, and what they are compared with."""

import itertools
from math import comb

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from tcgpu import Graph


@st.composite
def sparse_graphs(draw, most_vertices=14):
    """Small graphs of about as many edges as vertices: several components, levels, a triangle now and then."""
    n = draw(st.integers(1, most_vertices))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=2 * n))
    return Graph.from_edges(np.array(edges, np.int64).reshape(-1, 2), n=n)


def brute_force(graph, k, kind):
    """Every combination of k vertices, tested with NetworkX."""
    nx_graph = graph.to_networkx()
    test = {
        "clique": lambda part: part.number_of_edges() == comb(k, 2),
        "independent": lambda part: part.number_of_edges() == 0,
        "connected": nx.is_connected,
    }[kind]
    return sum(test(nx_graph.subgraph(chosen)) for chosen in itertools.combinations(nx_graph, k))
