"""Clustering of some vertices, with directions and weights, similarity, and the census of triads, as in NetworkX."""

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import GraphError, MethodError

GRAPHS = {
    "R-MAT": tcgpu.generate.rmat(8, seed=1),
    "clique": tcgpu.generate.clique(12),
    "roads": tcgpu.generate.road(8, 8, seed=2),
    "no edges": tcgpu.generate.empty(3),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]


@pytest.fixture(scope="module")
def weighted():
    """A directed NetworkX graph with weights, some pairs joined in both directions; and its edges as arrays."""
    made, random = nx.gnp_random_graph(40, 0.2, seed=3, directed=True), np.random.default_rng(4)
    for _, _, attributes in made.edges(data=True):
        attributes["weight"] = float(random.random())
    u, v, weights = zip(*made.edges(data="weight"), strict=True)
    return made, (np.array(u), np.array(v)), np.array(weights)


@pytest.mark.parametrize("many", [0, 1, 3])
def test_nodes_have_the_results_that_they_have_among_all(graph, many):
    nodes = np.random.default_rng(many).permutation(graph.n)[:many]
    assert tcgpu.triangles(graph, nodes).tolist() == tcgpu.triangles(graph)[nodes].tolist()
    assert tcgpu.clustering(graph, nodes=nodes).tolist() == tcgpu.clustering(graph)[nodes].tolist()
    chunks = [*tcgpu.list_triangles(graph, chunk=7, nodes=nodes)]
    assert all(1 <= len(rows) <= 7 for rows in chunks)
    listed = sorted(tuple(row) for rows in chunks for row in rows.tolist())
    every = (tuple(row) for rows in tcgpu.list_triangles(graph) for row in rows.tolist())
    assert listed == sorted(row for row in every if {*row} & {*nodes.tolist()})


def test_nodes_go_with_every_engine():
    graph = GRAPHS["clique"]
    assert tcgpu.triangles(graph, [3, 5], method="bitmap_warp", engine="sim").tolist() == [55, 55]
    assert tcgpu.triangles(graph, nodes=4, executor="threads", parts=2).tolist() == [55]


def test_similarity_of_pairs_is_networkx_s(graph):
    pairs = np.random.default_rng(5).integers(0, graph.n, (200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    expected = [value for _, _, value in nx.jaccard_coefficient(graph.to_networkx(), pairs.tolist())]
    assert tcgpu.similarity(graph, pairs=pairs).tolist() == pytest.approx(expected)
    both = graph.to_scipy()
    common = tcgpu.similarity(graph, "common", pairs=(pairs[:, 0], pairs[:, 1]))
    assert common.tolist() == np.asarray((both @ both)[pairs[:, 0], pairs[:, 1]]).ravel().tolist()


@pytest.mark.parametrize("kind", ["jaccard", "overlap", "common"])
def test_edges_are_as_alike_as_the_same_pairs(graph, kind):
    assert tcgpu.similarity(graph, kind).tolist() == tcgpu.similarity(graph, kind, pairs=graph.edges()).tolist()


def test_pairs_of_many_neighbours_are_compared_in_blocks(monkeypatch):
    from tcgpu.cpu import neighbours

    graph = GRAPHS["R-MAT"]
    whole = neighbours.common_neighbours(graph, *graph.edges())
    monkeypatch.setattr(neighbours, "AT_ONCE", 50)
    found = neighbours.common_neighbours(graph, *graph.edges()).tolist()
    assert found == whole.tolist() == tcgpu.support(graph).tolist()


@pytest.mark.parametrize("weight", [None, "weight"])
def test_directed_clustering_is_networkx_s(weighted, weight):
    made, edges, weights = weighted
    expected = pytest.approx([*nx.clustering(made, weight=weight).values()])
    assert tcgpu.clustering(made, directed=True, weights=weight).tolist() == expected
    assert tcgpu.clustering(edges, directed=True, weights=weights if weight else None).tolist() == expected
    found = tcgpu.average_clustering(made, [5, 2], directed=True, weights=weight)
    assert found == pytest.approx(nx.average_clustering(made, [5, 2], weight=weight))


def test_weighted_clustering_is_networkx_s(weighted):
    made = nx.Graph(weighted[0])
    graph = tcgpu.Graph.from_networkx(made)
    by_edge = [made.edges[edge]["weight"] for edge in zip(*(ends.tolist() for ends in graph.edges()), strict=True)]
    expected = pytest.approx([*nx.clustering(made, weight="weight").values()])
    assert tcgpu.clustering(made, weights="weight").tolist() == expected
    assert tcgpu.clustering(graph, weights=by_edge).tolist() == expected
    assert tcgpu.clustering(graph, weights=by_edge, engine="sim").tolist() == expected


@pytest.mark.parametrize("nodes", [None, [4], [1, 5, 30]])
def test_the_census_of_triads_is_networkx_s(weighted, nodes):
    made, edges, _ = weighted
    expected = nx.triadic_census(made, nodes)
    assert tcgpu.triad_census(edges, nodes) == tcgpu.triad_census(made, nodes) == expected
    assert all(type(triads) is int for triads in tcgpu.triad_census(edges).values())


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda g, n: tcgpu.triangles(g, [12]), GraphError, r"nodes are whole numbers from 0 to 11, not \[12\]"),
        (lambda g, n: tcgpu.clustering(g, nodes=[0.5]), GraphError, "nodes are whole numbers"),
        (lambda g, n: tcgpu.triangles(nx.star_graph("abc"), "a"), GraphError, r"index\(name\) is the number of a name"),
        (lambda g, n: tcgpu.clustering(g, directed=True), GraphError, r"no directions: give edge arrays \(u, v\)"),
        (lambda g, n: tcgpu.triad_census(n), GraphError, "no directions"),
        (lambda g, n: tcgpu.clustering(n, weights=[1, 2]), GraphError, "the name of an attribute"),
        (lambda g, n: tcgpu.clustering(g, weights=[1, 2]), GraphError, "a finite number for each of 66 edges"),
        (lambda g, n: tcgpu.clustering(g, weights="weight"), GraphError, "a finite number for each of 66 edges"),
        (lambda g, n: tcgpu.clustering(g, weights=[0] * 66), GraphError, "the largest of which is not 0"),
        (lambda g, n: tcgpu.clustering(([0, 1], [1, 0]), weights=[1, 2]), GraphError, "given twice"),
        (lambda g, n: tcgpu.clustering(([0], [1]), directed=True, executor="threads"), MethodError, "on an executor"),
        (lambda g, n: tcgpu.similarity(g, "cosine"), GraphError, "no kind 'cosine'"),
        (lambda g, n: tcgpu.similarity(g, pairs=[(0, 12)]), GraphError, r"\(0, 12\); with n = 12"),
        (lambda g, n: tcgpu.similarity(g, pairs=[(0, 1, 2)]), GraphError, r"shape \(edges, 2\)"),
        (
            lambda g, n: tcgpu.similarity(g, pairs=[(0, 1)], engine="sim"),
            tcgpu.EngineError,
            "runs on cpu, not on 'sim'",
        ),
    ],
)
def test_what_is_refused_says_what_is_expected(call, error, says):
    with pytest.raises(error, match=says):
        call(GRAPHS["clique"], nx.Graph([(0, 1), (1, 2)]))
