"""Motifs: per graph, per vertex and per edge, against brute force and against each other."""

from functools import partial
from itertools import combinations
from math import comb

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import EngineError, Graph, GraphError
from tcgpu.cpu import edges
from tcgpu.engines.native import set_threads

MANY, MOST = 1000, 8  # graphs, and vertices of each
# the graphs on four vertices by the degrees of their vertices, which no two share
BY_DEGREES = {
    (0, 0, 0, 0): "empty", (0, 0, 1, 1): "edge", (1, 1, 1, 1): "two edges", (0, 1, 1, 2): "path of 3",
    (0, 2, 2, 2): "triangle", (1, 1, 2, 2): "path", (1, 1, 1, 3): "star", (2, 2, 2, 2): "cycle", (1, 2, 2, 3): "paw",
    (2, 2, 3, 3): "diamond", (3, 3, 3, 3): "clique",
}  # fmt: skip
# so are the orbits: of a vertex by its degree in the subgraph, of an edge by those of its ends
VERTEX_ORBITS = {
    ("path", 1): "path end", ("path", 2): "path middle", ("star", 1): "star leaf", ("star", 3): "star centre",
    ("cycle", 2): "cycle", ("paw", 1): "paw tail", ("paw", 2): "paw base", ("paw", 3): "paw centre",
    ("diamond", 2): "diamond tip", ("diamond", 3): "diamond middle", ("clique", 3): "clique",
}  # fmt: skip
EDGE_ORBITS = {
    ("path", 1, 2): "path end", ("path", 2, 2): "path middle", ("star", 1, 3): "star", ("cycle", 2, 2): "cycle",
    ("paw", 1, 3): "paw tail", ("paw", 2, 2): "paw base", ("paw", 2, 3): "paw side",
    ("diamond", 2, 3): "diamond rim", ("diamond", 3, 3): "diamond middle", ("clique", 3, 3): "clique",
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn():
    """Random adjacency matrices, of all densities: bool, (MANY, MOST, MOST). The first graphs have fewer vertices."""
    rng = np.random.default_rng(5)
    upper = np.triu(rng.random((MANY, MOST, MOST)) < rng.random((MANY, 1, 1)), 1)
    vertices = np.minimum(np.arange(MANY) // 10, MOST)
    upper &= (np.arange(MOST) < vertices[:, None])[:, None, :]
    return upper | upper.transpose(0, 2, 1), vertices


@pytest.fixture(scope="module")
def brute_force(drawn):
    """Every four vertices of every graph, looked at: counts by graph, by vertex and by edge, {name: array}."""
    joined, vertices = drawn
    by_graph = {name: np.zeros(MANY, int) for name in BY_DEGREES.values()}
    by_vertex = {name: np.zeros((MANY, MOST), int) for name in VERTEX_ORBITS.values()}
    by_edge = {name: np.zeros((MANY, MOST, MOST), int) for name in EDGE_ORBITS.values()}
    for four in combinations(range(MOST), 4):
        part = joined[:, four][:, :, four]
        degree = part.sum(axis=2)
        for degrees, name in BY_DEGREES.items():
            here = (np.sort(degree, axis=1) == degrees).all(axis=1) & (vertices > max(four))
            by_graph[name] += here
            for i in range(4):
                for d in {*degrees} if (name, max(degrees)) in VERTEX_ORBITS else ():
                    by_vertex[VERTEX_ORBITS[name, d]][:, four[i]] += here & (degree[:, i] == d)
                for j in range(4):
                    for (shape, low, high), orbit in EDGE_ORBITS.items():
                        if shape == name:
                            ends = np.sort(degree[:, [i, j]], axis=1) == (low, high)
                            by_edge[orbit][:, four[i], four[j]] += here & part[:, i, j] & ends.all(axis=1)
    return by_graph, by_vertex, by_edge


def test_motifs_of_a_thousand_graphs_are_those_of_brute_force(drawn, brute_force):
    for which, (joined, n) in enumerate(zip(*drawn, strict=True)):
        expected = {name: int(values[which]) for name, values in brute_force[0].items()}
        graph = Graph.from_edges(*np.nonzero(np.triu(joined)), int(n))
        assert tcgpu.motifs(graph, connected=False) == expected


@pytest.mark.parametrize("order", ["natural", "random"])
def test_orbits_of_a_thousand_graphs_are_those_of_brute_force(drawn, brute_force, order):
    """All of them side by side in one graph."""
    which, i, j = np.nonzero(np.triu(drawn[0]))
    place = np.arange(MANY * MOST) if order == "natural" else np.random.default_rng(6).permutation(MANY * MOST)
    graph = Graph.from_edges(place[which * MOST + i], place[which * MOST + j], MANY * MOST)
    found = tcgpu.motifs(graph, "vertex")
    assert {name: found[name][place].tolist() for name in VERTEX_ORBITS.values()} == {
        name: values.ravel().tolist() for name, values in brute_force[1].items()
    }
    found = tcgpu.motifs(graph, "edge")
    rows, columns = (np.argsort(place)[ends] for ends in graph.edges())
    assert (rows // MOST == columns // MOST).all()
    at = rows // MOST, rows % MOST, columns % MOST
    assert {name: found[name].tolist() for name in EDGE_ORBITS.values()} == {
        name: values[at].tolist() for name, values in brute_force[2].items()
    }


def assert_consistent(graph):
    """Every subgraph has four vertices and as many edges as its shape, each in one of the shape's orbits."""
    motifs, by_vertex, by_edge = (tcgpu.motifs(graph, per) for per in ("graph", "vertex", "edge"))
    assert sum(motifs.values()) == tcgpu.count_subgraphs(graph, 4, "connected")
    sizes = {"path": 3, "star": 3, "cycle": 4, "paw": 4, "diamond": 5, "clique": 6}
    for name, size in sizes.items():
        assert sum(int(by_vertex[orbit].sum()) for (of, *_), orbit in VERTEX_ORBITS.items() if of == name) == (
            4 * motifs[name]
        )
        assert sum(int(by_edge[orbit].sum()) for (of, *_), orbit in EDGE_ORBITS.items() if of == name) == (
            size * motifs[name]
        )
    paths = by_vertex["path of 3 middle"].sum()
    assert by_vertex["path of 3 end"].sum() == by_edge["path of 3"].sum() == 2 * paths
    assert tcgpu.count_subgraphs(graph, 3, "connected") == tcgpu.count(graph) + paths
    assert np.array_equal(by_vertex["edge"], graph.degrees)
    assert np.array_equal(by_vertex["triangle"], tcgpu.triangles(graph))
    assert np.array_equal(by_edge["triangle"], tcgpu.support(graph))
    return by_vertex, by_edge


@pytest.mark.parametrize("threads", [2, 6], ids=["an array for each thread", "one array for all"])
def test_orbits_add_up_on_any_number_of_threads(threads, monkeypatch):
    graph = tcgpu.generate.rmat(9, 16, seed=2)
    expected = assert_consistent(graph)
    monkeypatch.setattr(edges, "MANY", 1)
    set_threads(threads)
    try:
        for found, before in zip(assert_consistent(graph), expected, strict=True):
            assert all(np.array_equal(found[name], before[name]) for name in before)
    finally:
        set_threads(None)


@pytest.mark.parametrize("name", ["as20000102.txt", "ca-GrQc.mtx", "polblogs.graph"])
def test_orbits_of_known_graphs_add_up(graphs_folder, name):
    assert_consistent(tcgpu.read(graphs_folder / name))


def test_keys_go_in_the_order_of_orca():
    motifs = tcgpu.motifs([(0, 1)], "vertex"), tcgpu.motifs([(0, 1)], "edge")
    assert [*motifs[0]] == ["edge", "path of 3 end", "path of 3 middle", "triangle", *VERTEX_ORBITS.values()]
    assert [*motifs[1]] == [
        "path of 3", "triangle", "path end", "path middle", "star", "cycle", "paw tail", "paw base", "paw side",
        "diamond rim", "diamond middle", "clique",
    ]  # fmt: skip


def test_karate_club():
    """Cycles and cliques as NetworkX finds them, at each vertex and edge."""
    club = nx.karate_club_graph()
    graph = Graph.from_networkx(club)
    cycles = [cycle for cycle in nx.chordless_cycles(club, length_bound=4) if len(cycle) == 4]
    cliques = [clique for clique in nx.enumerate_all_cliques(club) if len(clique) == 4]
    found, by_vertex, by_edge = (tcgpu.motifs(graph, per) for per in ("graph", "vertex", "edge"))
    assert (found["cycle"], found["clique"]) == (len(cycles), len(cliques))
    for name, subgraphs in (("cycle", cycles), ("clique", cliques)):
        assert by_vertex[name].tolist() == [sum(v in four for four in subgraphs) for v in club]
        joined = [club.subgraph(four) for four in subgraphs]
        edges = zip(*graph.edges(), strict=True)
        assert by_edge[name].tolist() == [sum(part.has_edge(*ends) for part in joined) for ends in edges]


def test_numbers_beyond_64_bits():
    leaves = 4_000_000
    star = tcgpu.generate.star(leaves + 1)
    assert comb(leaves, 3) >= 2**63
    assert tcgpu.motifs(star) == {"path": 0, "star": comb(leaves, 3), "cycle": 0, "paw": 0, "diamond": 0, "clique": 0}
    assert tcgpu.motifs(star, connected=False)["empty"] == comb(leaves, 4)
    with pytest.raises(GraphError, match="subgraphs of four vertices have a vertex in common, .* too many for int64"):
        tcgpu.motifs(star, "vertex")
    at_edges = tcgpu.motifs(star, "edge")["star"]
    assert at_edges.min() == at_edges.max() == comb(leaves - 1, 2)


def test_numbers_of_nearly_64_bits():
    star = tcgpu.generate.star(2_000_001)
    by_vertex = tcgpu.motifs(star, "vertex")
    centre = int(star.degrees.argmax())
    assert by_vertex["star centre"][centre] == comb(2_000_000, 3) > 2**60
    assert by_vertex["star leaf"].sum() == 3 * comb(2_000_000, 3)


def test_cliques():
    graph = tcgpu.generate.clique(12)
    assert [tcgpu.cliques(graph, k) for k in range(1, 14)] == [comb(12, k) for k in range(1, 14)]
    graph = tcgpu.generate.watts_strogatz(60, 16, 0.2, seed=1)
    by_size = np.bincount([len(clique) for clique in nx.enumerate_all_cliques(graph.to_networkx())], minlength=9)
    assert [tcgpu.cliques(graph, k) for k in range(1, 9)] == by_size[1:9].tolist()


@pytest.mark.parametrize("options, message", [
    ({"per": "node"}, "no value of per 'node'; there are graph, vertex, edge"),
    ({"per": "edge", "connected": False}, "not connected have no orbits: leave connected= or per='edge' out"),
])  # fmt: skip
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(GraphError, match=message):
        tcgpu.motifs([(0, 1)], **options)


@pytest.mark.parametrize("verb", [tcgpu.motifs, partial(tcgpu.cliques, k=4), partial(tcgpu.count_subgraphs, k=4)])
def test_engines_and_progress(verb):
    shown = []
    assert verb([(0, 1)], engine="cpu", progress=lambda *done: shown.append(done)) == verb([(0, 1)])
    assert shown[-1] == (1.0, 1.0)
    with pytest.raises(EngineError, match="no engine 'cuda'; there are gpu, webgpu, sim, cpu"):
        verb([(0, 1)], engine="cuda")


def test_graphs_may_be_given_by_their_paths(graphs_folder):
    path = graphs_folder / "as20000102.txt"
    assert tcgpu.motifs(path) == tcgpu.motifs(tcgpu.read(path))
    assert tcgpu.cliques(str(path), 4) == tcgpu.motifs(path)["clique"]
