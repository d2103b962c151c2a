"""Algorithm 1: the chunks of a split, which root it takes, and where the bits of a chunk lie."""

import itertools
import time
from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_shapes import small_graphs
from strategies import sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError, MethodError
from tcgpu.kernels.chatterjee import chunks as chunks_module
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, Search, bits_needed, costs, position, score, split

GRAPHS = small_graphs() | {"road": tcgpu.generate.road(12, 12, 0.7, seed=1), "path": tcgpu.generate.path(50)}
CARD = {"shared_bits": 16 << 13, "machines": 30}  # a C1060


def small(graph, **wishes):
    return split(graph, **{"shared_bits": 60, "machines": 2} | wishes)


def cost(sizes, *, shared_bits, machines, layout="s-utm"):
    """The cost that Algorithm 1 minimizes, for a root from which the levels have these sizes."""
    scores = np.array([score(np.asarray(sizes), shared_bits, layout)])
    return tuple(int(values[0]) for values in costs(scores, shared_bits, machines))


def combinations(chunks):
    """Every combination that the chunks have to test, as a set of vertices."""
    for c, (tests, size) in enumerate(zip(chunks.tests.tolist(), chunks.size.tolist(), strict=True)):
        first = itertools.islice(itertools.combinations(range(size), 3), tests)
        yield from (frozenset(chunks.vertices(c)[list(places)].tolist()) for places in first)


@pytest.mark.parametrize("search", ["_search", "_search_in_numpy"])
@pytest.mark.parametrize("name", GRAPHS)
def test_levels_are_those_of_networkx(monkeypatch, name, search):
    monkeypatch.setattr(chunks_module, "_search", getattr(chunks_module, search))
    graph = GRAPHS[name]
    chunks = small(graph, shared_bits=1000)
    nx_graph = graph.to_networkx()
    nx_graph = nx.relabel_nodes(nx_graph, dict(zip(nx_graph, range(graph.n), strict=True)))
    assert sorted(chunks.order.tolist()) == list(range(graph.n))
    assert chunks.order[chunks.place].tolist() == list(range(graph.n))
    found = [chunks.order[a:b].tolist() for a, b in pairwise(chunks.level_ptr)]
    expected = [sorted(level) for root in chunks.roots.tolist() for level in nx.bfs_layers(nx_graph, [root])]
    assert found == expected
    assert len(chunks.roots) == nx.number_connected_components(nx_graph) if graph.n else not len(chunks.roots)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_chunk_is_two_levels(name):
    graph = GRAPHS[name]
    chunks = small(graph)
    ends = chunks.level_ptr.tolist()
    for c, level in enumerate(ends.index(start) for start in chunks.start):
        depth = np.count_nonzero(chunks.component[c] == component_of_levels(graph, chunks))
        last = chunks.level[c] + 2 >= depth
        end = level + (depth - chunks.level[c] if last else 2)
        assert chunks.vertices(c).tolist() == chunks.order[ends[level] : ends[end]].tolist()
        assert chunks.first[c] == (chunks.size[c] if last else ends[level + 1] - ends[level])
        assert chunks.bits[c] == bits_needed(int(chunks.size[c]), "s-utm")
        assert chunks.fits[c] == (chunks.bits[c] <= chunks.shared_bits)
    assert chunks.too_large == np.count_nonzero(~chunks.fits)
    assert chunks.total_tests == chunks.tests.sum()


def component_of_levels(graph, chunks):
    component, _ = Search(graph).forest()
    return component[chunks.order[chunks.level_ptr[:-1]]]


@given(sparse_graphs(), st.integers(0, 40), st.integers(1, 4))
def test_every_triple_at_most_once_and_every_triangle(graph, shared_bits, roots):
    chunks = small(graph, shared_bits=shared_bits, roots=roots)
    tested = Counter(combinations(chunks))
    assert sum(tested.values()) == chunks.total_tests and max(tested.values(), default=1) == 1
    triangles = (clique for clique in nx.enumerate_all_cliques(graph.to_networkx()) if len(clique) == 3)
    assert all(frozenset(triangle) in tested for triangle in triangles)


def test_chunks_too_small_for_a_combination_are_left_out():
    path = tcgpu.generate.path(10)
    assert len(small(path)) == small(path).total_tests == 0
    star = small(tcgpu.generate.star(3))
    assert [star.vertices(c).tolist() for c in range(len(star))] == [[0, 1, 2]] and star.tests.tolist() == [1]


def test_the_cost_of_a_root_by_hand():
    assert cost([1, 3, 4, 2], shared_bits=20, machines=2) == (1, 2 * 20 - 6 - 15)  # 4, 7 and 6 vertices
    assert cost([1, 3, 4, 2], shared_bits=25, machines=2) == (0, 2 * 2 * 25 - 6 - 21 - 15)  # two rounds
    assert cost([5], shared_bits=25, machines=2, layout="matrix") == (0, 2 * 25 - 25)
    assert cost([5, 9], shared_bits=25, machines=2) == (1, 0)


def test_of_all_roots_the_best_is_taken():
    for seed in range(5):
        graph = tcgpu.generate.watts_strogatz(60, 4, 0.1, seed=seed)
        search = Search(graph)
        every = [cost(np.bincount(search(root)[1]), shared_bits=100, machines=2) for root in range(graph.n)]
        chunks = split(graph, shared_bits=100, machines=2, roots=graph.n)
        assert (chunks.tried.tolist(), every[chunks.roots[0]]) == ([graph.n], min(every))
        assert chunks.too_large == min(every)[0]
        few = split(graph, shared_bits=100, machines=2, roots=4)
        assert few.tried.tolist() == [4] and every[few.roots[0]] >= min(every)
        assert few.order.tolist() == split(graph, shared_bits=100, machines=2, roots=4).order.tolist()


def test_an_end_of_a_long_graph_is_found_from_its_middle():
    rung = np.roll(np.arange(200), 100)  # a ladder whose vertex 0 is in its middle
    sides = 2 * rung, 2 * rung + 1
    edges = [sides, *((side[:-1], side[1:]) for side in sides)]
    ladder = Graph.from_edges(np.concatenate([np.stack(pair, axis=1) for pair in edges]))
    chunks = split(ladder, shared_bits=10, machines=4, roots=2)  # room for 5 vertices
    assert chunks.roots[0] // 2 in (rung[0], rung[-1]) and chunks.too_large == 0
    chunks = split(ladder, shared_bits=10, machines=4, roots=1)
    assert chunks.roots[0] == 0 and chunks.too_large > 90


def test_roots_may_be_given():
    graph = GRAPHS["road"]
    component, _ = Search(graph).forest()
    inside = np.flatnonzero(component == np.bincount(component).argmax())
    chunks = split(graph, shared_bits=10, machines=2, roots=inside[[7]].astype(np.int32))
    assert inside[7] in chunks.roots and chunks.tried.tolist() == [1] * chunks.roots.size
    assert split(graph, shared_bits=10, machines=2, roots=np.empty(0, np.int32)).roots[0] == 0


def test_of_equal_costs_the_root_with_fewer_combinations_is_taken():
    graph = GRAPHS["random"]
    scores = Search(graph).scores(np.arange(graph.n), 0, "s-utm")  # all chunks are too large, nothing is wasted
    fewest = scores[:, 0].min()
    tests = scores[scores[:, 0] == fewest, 2]
    assert tests.min() < tests.max()
    assert split(graph, shared_bits=0, machines=1, roots=graph.n).total_tests == tests.min()


def test_more_tests_than_63_bits_are_counted_but_not_numbered():
    chunks = split(tcgpu.generate.star(4_000_000), shared_bits=10, machines=1, roots=1)
    assert chunks.total_tests > 2**63
    with pytest.raises(GraphError, match=r"a chunk has .* combinations to test, more than 2\^63"):
        chunks.tests.sum()


@pytest.mark.parametrize("roots", [0, 1.5, True])
def test_invalid_numbers_of_roots_are_refused(roots):
    with pytest.raises(MethodError, match="roots is a whole number from 1"):
        small(GRAPHS["road"], roots=roots)


def test_unknown_layouts_are_refused():
    with pytest.raises(MethodError, match="layout is one of 'matrix', 'utm', 's-utm', not 'lower'"):
        small(GRAPHS["road"], layout="lower")


def test_a_large_graph_is_split_in_no_time():
    graph = tcgpu.generate.rmat(15, 8, seed=1)
    split(graph, **CARD)
    begin = time.process_time()
    chunks = split(graph, **CARD, roots=8)
    assert time.process_time() - begin < 2  # 0.05 s; a search from every vertex would take a minute
    assert chunks.tried.max() == 8


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
def test_positions_are_every_bit_once_row_after_row(layout, n):
    diagonal = {"matrix": None, "utm": 0, "s-utm": 1}[layout]
    i, j = np.indices((n, n)).reshape(2, -1) if diagonal is None else np.triu_indices(n, diagonal)
    assert position(i, j, n, layout).tolist() == list(range(bits_needed(n, layout)))
