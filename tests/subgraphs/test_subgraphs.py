"""Subgraphs of k vertices: against brute force, formulas, and one way against another."""

from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import small_graphs
from strategies import brute_force, sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError
from tcgpu.cpu import edges
from tcgpu.engines.native import set_threads
from tcgpu.subgraphs import four_at_edges
from tcgpu.subgraphs import of_k_vertices as subgraphs

GRAPHS = small_graphs()


@settings(max_examples=40)
@given(sparse_graphs(most_vertices=9), st.integers(1, 9), st.sampled_from(subgraphs.KINDS))
def test_counts_are_those_of_brute_force(graph, k, kind):
    assert tcgpu.count_subgraphs(graph, k, kind) == brute_force(graph, k, kind)


@pytest.mark.parametrize("name", ["random", "skewed", "clique", "bipartite", "wheel", "star", "empty columns between"])
def test_independent_sets_by_shape_are_those_that_are_found_one_by_one(name, monkeypatch):
    graph = GRAPHS[name]
    sizes = [k for k in (2, 3, 4) if comb(graph.n, k) < 10**7]
    by_shape = [tcgpu.count_subgraphs(graph, k, "independent") for k in sizes]
    monkeypatch.setattr(subgraphs, "MOST_BY_SHAPE", 1)
    assert [tcgpu.count_subgraphs(graph, k, "independent") for k in sizes] == by_shape


@given(sparse_graphs(), st.integers(1, 6))
def test_cliques_are_independent_in_the_complement(graph, k):
    complement = Graph.from_networkx(nx.complement(graph.to_networkx()))
    assert tcgpu.count_subgraphs(graph, k, "clique") == tcgpu.count_subgraphs(complement, k, "independent")


def test_triples_from_degrees_and_triangles():
    """Of three vertices: no edge, one, two or three; the four numbers follow from m, the paths and the triangles."""
    graph = tcgpu.generate.rmat(13, 8, seed=4)  # large enough for several threads
    triangles = tcgpu.count(graph)
    degree = graph.degrees.astype(np.int64)
    paths = int((degree * (degree - 1) // 2).sum())
    assert tcgpu.count_subgraphs(graph, 3) == triangles
    assert tcgpu.count_subgraphs(graph, 3, "connected") == paths - 2 * triangles
    independent = comb(graph.n, 3) - graph.m * (graph.n - 2) + paths - triangles
    assert tcgpu.count_subgraphs(graph, 3, "independent") == independent


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_finds_the_same(threads, monkeypatch):
    monkeypatch.setattr(edges, "MANY", 1)
    graph = tcgpu.generate.watts_strogatz(900, 6, 0.1, seed=2)
    expected = [tcgpu.count_subgraphs(graph, 4, kind) for kind in subgraphs.KINDS]
    set_threads(threads)
    try:
        assert [tcgpu.count_subgraphs(graph, 4, kind) for kind in subgraphs.KINDS] == expected
        assert not tcgpu.is_triangle_free(graph)
    finally:
        set_threads(None)


def by_matrices(graph):
    """The 4-cliques: a fourth of the triangles among the neighbours of each vertex."""
    joined = graph.to_scipy().toarray() != 0
    among = (joined[np.ix_(row, row)].astype(np.float64) for row in joined)
    return round(sum(np.sum(near @ near * near) for near in among)) // 24


def dense(n, density, seed=3):
    return Graph.from_edges(*np.nonzero(np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)), n)


@pytest.mark.parametrize("hub_share", [0, 0.4, 1])
def test_cliques_are_found_among_hubs_and_others(hub_share, monkeypatch):
    """By rows of bits of hubs, of single columns, and by both, of few words and of many."""
    monkeypatch.setattr(subgraphs, "hub_limit", lambda graph, most: int(graph.n * hub_share))
    for graph in (dense(230, 0.5), dense(350, 0.2), dense(700, 0.08), tcgpu.generate.rmat(9, 16, seed=3)):
        assert tcgpu.count_subgraphs(graph, 4) == by_matrices(graph)
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(600), 4) == comb(600, 4)
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(75), 5) == comb(75, 5)


@pytest.mark.parametrize("graph", [tcgpu.generate.rmat(9, 16, seed=2), dense(300, 0.5), dense(700, 0.1)])
def test_cycles_of_four_are_found_among_dense_vertices_and_others(graph):
    """Two vertices are opposite ends of as many cycles as there are pairs of their common neighbours."""
    joined = graph.to_scipy().toarray().astype(np.int64) != 0
    common = np.triu(joined.astype(np.int64) @ joined, 1)
    assert four_at_edges.count_cycles(graph) == (common * (common - 1) // 2).sum() // 2


@pytest.mark.parametrize("name", GRAPHS)
def test_formulas_give_what_growing_gives(name):
    """By kinds of subgraphs: a shape's kind is its number of edges and its largest degree."""
    graph = GRAPHS[name]
    if (graph.degrees.astype(float) ** 3).sum() > 1e8:
        pytest.skip("too many subgraphs to be grown")

    def by_kind(shapes):
        totals = {}
        for shape, many in shapes.items():
            degrees = np.zeros(4, int)
            for bit, (j, i) in enumerate((high, low) for high in range(4) for low in range(high)):
                degrees[[i, j]] += shape >> bit & 1
            about = degrees.sum(), degrees.max()
            totals[about] = totals.get(about, 0) + many
        return {about: many for about, many in totals.items() if many}

    formula, grown = subgraphs.by_formula(graph, 4), subgraphs._by_growing(graph, 4)
    assert {size: by_kind(formula[size]) for size in formula} == {size: by_kind(grown[size]) for size in grown}


def test_subgraphs_of_four_vertices_of_hubs_and_dense_graphs():
    """Their number says that none is found one by one; of a star's it does not fit 64 bits."""
    leaves = 4_000_000
    star = tcgpu.generate.star(leaves + 1)
    assert tcgpu.count_subgraphs(star, 4, "connected") == comb(leaves, 3)
    assert tcgpu.count_subgraphs(star, 4, "independent") == comb(leaves, 4)
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(900), 4, "connected") == comb(900, 4)
    parts = tcgpu.generate.complete_bipartite(700, 500)
    assert tcgpu.count_subgraphs(parts, 4, "independent") == comb(700, 4) + comb(500, 4)
    assert tcgpu.count_subgraphs(parts, 4, "connected") == comb(1200, 4) - comb(700, 4) - comb(500, 4)


def test_known_numbers():
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(12), 5) == comb(12, 5)
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(12), 13) == 0
    assert tcgpu.count_subgraphs(tcgpu.generate.path(100), 20, "connected") == 81
    assert tcgpu.count_subgraphs(tcgpu.generate.cycle(100), 32, "connected") == 100
    assert tcgpu.count_subgraphs(tcgpu.generate.star(20), 4, "connected") == comb(19, 3)
    for k in range(1, 7):  # on a path of n, C(n - k + 1, k) sets of k have no two side by side
        assert tcgpu.count_subgraphs(tcgpu.generate.path(500), k, "independent") == comb(501 - k, k)
        assert tcgpu.count_subgraphs(tcgpu.generate.empty(10**6), k, "independent") == comb(10**6, k)
    assert tcgpu.count_subgraphs(tcgpu.generate.path(30), 10, "independent") == comb(21, 10)


@given(sparse_graphs())
def test_triangle_free_graphs_have_no_triangle(graph):
    assert tcgpu.is_triangle_free(graph) == (tcgpu.count(graph) == 0)


def test_graphs_with_and_without_triangles():
    generate = tcgpu.generate
    for graph in (generate.empty(3), generate.cycle(5), generate.complete_bipartite(30, 40), generate.grid(300, 200),
                  nx.mycielski_graph(6), nx.petersen_graph()):  # fmt: skip
        assert tcgpu.is_triangle_free(graph) is True
    for graph in (generate.clique(3), generate.mesh(200, 200), nx.karate_club_graph()):
        assert tcgpu.is_triangle_free(graph) is False


def test_one_triangle_anywhere_is_found():
    grid = tcgpu.generate.grid(30, 30)
    u, v = grid.edges()
    for corner, across in ((0, 31), (433, 464), (898, 869)):
        extra = Graph.from_edges(np.append(u, corner), np.append(v, across), grid.n)
        assert tcgpu.count(extra) == 2
        assert not tcgpu.is_triangle_free(extra)


@pytest.mark.parametrize("options, message", [
    ({"k": 0}, "k is a whole number of at least 1, not 0"),
    ({"k": True}, "k is a whole number of at least 1, not True"),
    ({"k": 3, "kind": "cycle"}, "no kind 'cycle'; there are clique, independent, connected"),
    ({"k": 33, "kind": "independent"}, "subgraphs of kind 'independent' are counted up to 32 vertices, not 33"),
    ({"k": 256}, "subgraphs of kind 'clique' are counted up to 255 vertices, not 256"),
])  # fmt: skip
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(GraphError, match=message):
        tcgpu.count_subgraphs(GRAPHS["wheel"], **options)


def test_large_independent_sets_of_a_large_graph_are_refused():
    with pytest.raises(GraphError, match="more than 6 vertices are found one by one: .* combinations of 7, more than"):
        tcgpu.count_subgraphs(tcgpu.generate.star(40_000), 7, "independent")
