"""`tcgpu.add_edges`: the graph and the count are those of all edges together."""

import networkx as nx
import numpy as np
import pytest
import sampling

import tcgpu
from tcgpu import Graph
from tcgpu.engines import native


def together(graph, u, v):
    """The graph of the edges of both, made anew."""
    rows, columns = graph.edges()
    n = max(graph.n, 1 + int(max(np.max(u, initial=-1), np.max(v, initial=-1))))
    return Graph.from_edges(np.append(rows, u), np.append(columns, v), n)


def check(graph, u, v):
    """Add edges; the graph with them."""
    grown, closed = tcgpu.add_edges(graph, (u, v))
    expected = together(graph, u, v)
    assert np.array_equal(grown.col_ptr, expected.col_ptr) and np.array_equal(grown.row_idx, expected.row_idx)
    assert type(closed) is int and closed == tcgpu.count(expected) - tcgpu.count(graph)
    assert not grown.row_idx.flags.writeable and not grown.col_ptr.flags.writeable
    return grown


def test_random_batches_of_random_graphs():
    """With loops, repeats, edges that are there, new vertices, and no edges at all."""
    random = np.random.default_rng(4)
    for _ in range(20_000 if sampling.full else 500):
        n, wider = int(random.integers(0, 30)), int(random.integers(0, 4))
        ends = random.integers(0, max(n, 1), (2, int(random.integers(0, 4 * n + 1)) if n else 0))
        batch = random.integers(0, max(n + wider, 1), (2, int(random.integers(0, 60)) if n + wider else 0))
        check(Graph.from_edges(*ends, n), *batch)


@pytest.mark.parametrize("share", [0.01, 0.5, 1])
@pytest.mark.parametrize("name, sizes", [("rmat", (13, 8)), ("copapers", (2000, 40)), ("delaunay", (5000,))])
def test_a_stream_of_batches_ends_with_the_whole_graph(name, sizes, share):
    """By several threads, of which each counts a part; what is there already comes again."""
    whole = tcgpu.generate.GENERATORS[name](*sizes, seed=2)
    last = np.random.default_rng(1).random(whole.m) < share
    graph, ends = whole.kept(~last), np.array(whole.edges())[:, last]
    total = tcgpu.count(graph)
    try:
        native.set_threads(3)
        for batch in np.array_split(ends, 3, axis=1):
            graph, closed = tcgpu.add_edges(graph, (*batch, whole.n))
            total += closed
            assert total == tcgpu.count(graph)
            assert tcgpu.add_edges(graph, (*batch[::-1], whole.n))[1] == 0
    finally:
        native.set_threads(None)
    assert graph.equals(whole)


def test_a_triangle_counts_once_whether_one_or_two_or_three_of_its_edges_are_new():
    triangle = [(0, 1), (1, 2), (2, 0)]
    for old in range(3):
        grown, closed = tcgpu.add_edges(Graph.from_edges(triangle[:old], n=3), triangle[old:])
        assert (closed, grown.m) == (1, 3)
    assert tcgpu.add_edges(triangle, [(0, 1), (1, 1), (2, 1), (2, 3)])[1] == 0


def test_whatever_is_a_graph_can_be_added_to_and_be_added():
    club = nx.karate_club_graph()
    grown, closed = tcgpu.add_edges(club, club.subgraph(range(9)).to_undirected())
    assert (grown.m, closed) == (78, 0)
    named, _ = tcgpu.add_edges(nx.relabel_nodes(club, str), club)
    assert named.m == 78 and named.labels == [str(node) for node in club]
    missing = nx.complement(club)
    grown, closed = tcgpu.add_edges(club, Graph.from_networkx(missing))
    assert grown.m == 34 * 33 // 2 and closed == 34 * 33 * 32 // 6 - 45


def test_an_order_stays_the_numbering_and_a_graph_stays_as_it_is():
    graph = tcgpu.generate.rmat(8, 4, seed=1)
    ordered, before = graph.ordered("degree"), graph.row_idx.copy()
    grown = check(ordered, [0, 1, 250], [255, 200, 3])
    assert np.array_equal(grown.labels, ordered.labels) and grown.order == "natural"
    assert np.array_equal(graph.row_idx, before) and grown.name is None


def test_vertices_without_names_are_refused():
    named = Graph.from_edges([("Ann", "Bo"), ("Bo", "Cy")], relabel=True)
    assert tcgpu.add_edges(named, [(0, 2)])[0].labels == ["Ann", "Bo", "Cy"]
    with pytest.raises(tcgpu.GraphError, match="3 labels do not name 4 vertices"):
        tcgpu.add_edges(named, [(0, 3)])


def test_a_few_edges_of_a_graph_with_many_vertices_say_their_number():
    graph = Graph.from_edges([0, 4_999_999], [4_999_999, 4_999_998], 5_000_000)
    with pytest.raises(tcgpu.GraphError, match="if all are meant, say n=5000000"):
        tcgpu.add_edges(graph, [(0, 4_999_999)])
    grown, closed = tcgpu.add_edges(graph, ([0], [4_999_998], graph.n))
    assert (grown.n, grown.m, closed) == (5_000_000, 3, 1)
