"""Beside notebook 11: the shapes of four vertices, graphs that are alike, random graphs of the same degrees."""

from math import comb

import networkx as nx
import numpy as np
import pytest

import tcgpu
from helpers import charts, shapes

CLUB = nx.karate_club_graph()


def test_shapes_are_all_graphs_on_four_vertices():
    every = shapes.APART | shapes.CONNECTED
    assert list(every) == list(tcgpu.motifs(CLUB, connected=False)) and list(shapes.CONNECTED) == [*tcgpu.motifs(CLUB)]
    for name, pairs in every.items():
        assert shapes.shape_of(pairs) == name
        motifs = tcgpu.motifs(tcgpu.Graph.from_edges(*np.reshape(pairs, (-1, 2)).T.astype(int), 4), connected=False)
        assert motifs == dict.fromkeys(every, 0) | {name: 1}


def test_parts_of_a_clique():
    parts = shapes.parts_of(shapes.CONNECTED["clique"])
    assert parts.total() == 2**6
    assert parts == {
        "empty": 1, "edge": 6, "two edges": 3, "path of 3": 12, "triangle": 4, "path": 12, "star": 4, "cycle": 3,
        "paw": 12, "diamond": 6, "clique": 1,
    }  # fmt: skip


def test_orbits_by_brute_force():
    of_vertex = tcgpu.motifs(CLUB, "vertex")
    assert list(shapes.ORBITS.values()) == list(of_vertex)[4:]
    found = shapes.orbits_at(CLUB, 2)
    assert found.total() == comb(33, 3)
    assert {name: found[name] for name in shapes.ORBITS.values()} == {
        name: of_vertex[name][2] for name in shapes.ORBITS.values()
    }


def test_graphs_that_are_alike_but_for_cycles_or_cliques():
    cube, twisted = shapes.cubes()
    assert nx.is_isomorphic(cube.to_networkx(), nx.hypercube_graph(3))
    assert nx.is_isomorphic(twisted.to_networkx(), nx.circulant_graph(8, [1, 4]))  # the Wagner graph
    rook, shrikhande = shapes.on_board((1, 0), (2, 0), (0, 1), (0, 2)), shapes.on_board((1, 0), (0, 1), (1, 1))
    assert nx.is_isomorphic(rook.to_networkx(), nx.line_graph(nx.complete_bipartite_graph(4, 4)))
    assert nx.is_strongly_regular(shrikhande.to_networkx()) and tcgpu.cliques(shrikhande, 4) == 0


def test_swaps_keep_degrees_and_are_the_same_for_a_seed():
    one, same, other = (shapes.swapped(CLUB, seed) for seed in (1, 1, 2))
    assert dict(one.degree) == dict(other.degree) == dict(CLUB.degree)
    assert nx.utils.graphs_equal(one, same) and not nx.utils.graphs_equal(one, other)


def test_a_profile_is_between_fewer_and_more(monkeypatch):
    monkeypatch.setattr(shapes, "swapped", lambda graph, seed: nx.cycle_graph(4 + seed))
    paw = nx.Graph(shapes.CONNECTED["paw"])
    assert shapes.profile(paw, tries=2) == {"path": -1, "cycle": -1, "paw": 1}
    assert shapes.profile(nx.cycle_graph(4), tries=2) == {"path": -1, "cycle": pytest.approx(1 / 3)}


def test_shapes_are_drawn_with_their_degrees():
    figure = charts.draw_motifs({"paw": shapes.CONNECTED["paw"], "empty": []})
    paw, empty = figure.axes
    assert [text.get_text() for text in paw.texts] == ["3", "2", "2", "1"] and paw.get_title() == "paw"
    assert len(paw.collections[0].get_paths()) == 4 and len(empty.collections[0].get_paths()) == 0


@pytest.mark.parametrize("edge, areas", [(None, 0), ((0, 1), 2)])
def test_graphs_side_by_side_show_the_triangles_at_an_edge(edge, areas):
    graphs = {"clique": tcgpu.generate.clique(4), "path": tcgpu.generate.path(4)}
    clique, path = charts.draw_side_by_side(graphs, charts.CORNERS, edge=edge).axes
    for panel, expected in (clique, areas), (path, 0):
        filled = [each for each in panel.collections if type(each).__name__ == "PolyCollection"]
        assert sum(len(each.get_paths()) for each in filled) == expected
