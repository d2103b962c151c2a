"""Algorithm 2 on one core, and subgraphs of k vertices: against brute force, and one way against another."""

import itertools
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import small_graphs, well_known
from strategies import sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError, levels
from tcgpu.engines.native import set_threads
from tcgpu.levels import subgraphs

GRAPHS = small_graphs()
CARD = {"shared_bits": 16 << 13, "machines": 30}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("layout", levels.LAYOUTS)
@pytest.mark.parametrize("shared_bits", [0, 300, 10**6])
@pytest.mark.parametrize("whole", [False, True], ids=["cut", "whole where it fits"])
def test_algorithm_two_is_exact(name, layout, shared_bits, whole):
    graph = GRAPHS[name]
    split = levels.split(graph, shared_bits=shared_bits, machines=4, layout=layout, whole=whole)
    assert levels.count_triangles(graph, split) == tcgpu.count(graph)
    assert levels.count_triangles(graph, split, skip=True) == tcgpu.count(graph)


@given(sparse_graphs(), st.integers(0, 40), st.integers(1, 5))
def test_algorithm_two_on_any_graph(graph, shared_bits, span):
    split = levels.split(graph, levels=span + 1, shared_bits=shared_bits, machines=2)
    assert levels.count_triangles(graph, split) == sum(nx.triangles(graph.to_networkx()).values()) // 3


@pytest.mark.parametrize("approach", levels.APPROACHES)
@pytest.mark.parametrize("skip", [False, True])
def test_every_approach_counts_the_same(approach, skip):
    clustered = tcgpu.generate.watts_strogatz(70, 6, 0.1, seed=1)
    for graph in (clustered, GRAPHS["wheel"], GRAPHS["one edge"], GRAPHS["empty columns between"]):
        split = levels.split(graph, **CARD)
        wish = {"approach": approach, "threads": 7, "skip": skip}
        assert levels.count_triangles(graph, split, **wish) == tcgpu.count(graph)
        most = max((levels.ranges(approach, n, 3, 7, f).size for n, f in zip(split.size, split.first)), default=1)
        parts = [levels.count_triangles(graph, split, only=thread, **wish) for thread in range(most)]
        assert sum(parts) == tcgpu.count(graph)


def test_well_known_graphs(graphs_folder):
    for name, graph, triangles in well_known(graphs_folder, most_edges=40_000):
        split = levels.split(graph, **CARD)
        assert levels.count_triangles(graph, split, skip=True) == triangles, name
        if split.total_tests < 10**9:
            assert levels.count_triangles(graph, split) == triangles, name


def test_a_split_for_something_else_is_refused():
    graph = GRAPHS["wheel"]
    for wish, said in (({"k": 4}, "4 in 2"), ({"levels": 1}, "3 in 1")):
        with pytest.raises(GraphError, match=f"triangles are 3 vertices in 2 levels; this split is for {said}"):
            levels.count_triangles(graph, levels.split(graph, **CARD, **wish))


# ---------------------------------------------------------------------------------------------------------- subgraphs


def brute_force(graph, k, kind):
    """Every combination of k vertices, tested with NetworkX."""
    nx_graph = graph.to_networkx()
    test = {
        "clique": lambda part: part.number_of_edges() == comb(k, 2),
        "independent": lambda part: part.number_of_edges() == 0,
        "connected": nx.is_connected,
    }[kind]
    return sum(test(nx_graph.subgraph(chosen)) for chosen in itertools.combinations(nx_graph, k))


@settings(max_examples=40)
@given(sparse_graphs(most_vertices=9), st.integers(1, 6), st.sampled_from(levels.KINDS))
def test_both_ways_against_brute_force(graph, k, kind):
    expected = brute_force(graph, k, kind)
    for by in subgraphs.WAYS:
        assert tcgpu.count_subgraphs(graph, k, kind, by=by) == expected


@pytest.mark.parametrize("kind", levels.KINDS)
@pytest.mark.parametrize("name", ["random", "skewed", "clique", "bipartite", "wheel", "star", "empty columns between"])
def test_one_way_against_the_other(name, kind):
    graph = GRAPHS[name]
    for k in (1, 2, 3, 4):
        if comb(graph.n, k) < 10**7:
            growth, combinations = (tcgpu.count_subgraphs(graph, k, kind, by=by) for by in subgraphs.WAYS)
            assert growth == combinations


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
    monkeypatch.setattr(subgraphs, "MANY", 1)
    graph = tcgpu.generate.watts_strogatz(900, 6, 0.1, seed=2)
    expected = [tcgpu.count_subgraphs(graph, 4, kind) for kind in levels.KINDS]
    set_threads(threads)
    try:
        assert [tcgpu.count_subgraphs(graph, 4, kind) for kind in levels.KINDS] == expected
        assert not tcgpu.is_triangle_free(graph)
    finally:
        set_threads(None)


def test_known_numbers():
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(12), 5) == comb(12, 5)
    assert tcgpu.count_subgraphs(tcgpu.generate.clique(12), 13) == 0
    assert tcgpu.count_subgraphs(tcgpu.generate.path(100), 20, "connected") == 81
    assert tcgpu.count_subgraphs(tcgpu.generate.cycle(100), 32, "connected") == 100
    assert tcgpu.count_subgraphs(tcgpu.generate.star(20), 4, "connected") == comb(19, 3)
    for k in range(1, 7):  # on a path of n, C(n - k + 1, k) sets of k have no two side by side
        assert tcgpu.count_subgraphs(tcgpu.generate.path(500), k, "independent") == comb(501 - k, k)
        assert tcgpu.count_subgraphs(tcgpu.generate.empty(10**6), k, "independent") == comb(10**6, k)


def test_what_levels_do_not_hold_together():
    """Independent vertices far apart: in no k consecutive levels, and yet counted."""
    path = tcgpu.generate.path(40)
    split = levels.split(path, 3, levels=3, **CARD)
    within = sum(
        np.abs(np.diff(chunk.vertices[list(local)])).min() > 1
        for chunk in split
        for local in itertools.combinations(range(chunk.vertices.size), 3)
    )
    assert within == 0 < tcgpu.count_subgraphs(path, 3, "independent") == comb(38, 3)


@given(sparse_graphs())
def test_triangle_free_is_to_have_none(graph):
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


@pytest.mark.parametrize("wish, said", [
    ({"k": 0}, "k is a whole number of at least 1, not 0"),
    ({"k": True}, "k is a whole number of at least 1, not True"),
    ({"k": 3, "kind": "cycle"}, "no kind 'cycle'; there are clique, independent, connected"),
    ({"k": 3, "by": "luck"}, "counted by growth or combinations, not 'luck'"),
    ({"k": 7, "kind": "independent"}, "by growth, subgraphs of kind 'independent' are counted up to 6 vertices, not 7"),
    ({"k": 256}, "by growth, subgraphs of kind 'clique' are counted up to 255 vertices, not 256"),
    ({"k": 33, "by": "combinations"}, "by combinations, subgraphs of kind 'clique' are counted up to 32 vertices"),
])  # fmt: skip
def test_wishes_that_make_no_sense_are_refused(wish, said):
    with pytest.raises(GraphError, match=said):
        tcgpu.count_subgraphs(GRAPHS["wheel"], **wish)


def test_more_combinations_than_can_be_tested_are_refused():
    with pytest.raises(GraphError, match="combinations would have to be tested: take by='growth'"):
        tcgpu.count_subgraphs(tcgpu.generate.star(40_000), 3, by="combinations")
