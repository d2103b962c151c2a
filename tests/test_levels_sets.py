"""Algorithm 1: what a split holds, which root it takes, and chunks over multiprocessors."""

import itertools
import time
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_shapes import small_graphs
from strategies import sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError, levels
from tcgpu.engines import runtime
from tcgpu.levels.sets import cost

GRAPHS = small_graphs() | {"road": tcgpu.generate.road(12, 12, 0.7, seed=1), "path": tcgpu.generate.path(50)}
CARD = {"shared_bits": 16 << 13, "machines": 30}  # a C1060


def small(graph, **wishes):
    return levels.split(graph, **{"shared_bits": 60, "machines": 2} | wishes)


def combinations(split):
    """Every combination that the chunks have to test, as a set of vertices."""
    for c, chunk in enumerate(split):
        indices = np.arange(split.tests[c])
        locals_ = levels.unranked(indices, chunk.vertices.size, split.k)
        yield from map(frozenset, chunk.vertices[locals_].tolist())


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("whole", [False, True], ids=["cut", "whole where it fits"])
def test_levels_are_those_of_networkx(name, whole):
    graph = GRAPHS[name]
    split = small(graph, shared_bits=1000, whole=whole)
    nx_graph = graph.to_networkx()
    nx_graph = nx.relabel_nodes(nx_graph, dict(zip(nx_graph, range(graph.n))))
    assert sorted(split.order.tolist()) == list(range(graph.n))
    assert split.order[split.place].tolist() == list(range(graph.n))
    found = [split.order[a:b].tolist() for a, b in zip(split.level_ptr, split.level_ptr[1:])]
    expected = [sorted(level) for root in split.roots.tolist() for level in nx.bfs_layers(nx_graph, [root])]
    assert found == expected
    assert len(split.roots) == nx.number_connected_components(nx_graph) if graph.n else not len(split.roots)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("span", [2, 3, 5])
def test_a_chunk_is_what_it_says(name, span):
    graph = GRAPHS[name]
    split = small(graph, levels=span)
    begins = [split.level_ptr.tolist().index(start) for start in split.start]
    for c, (chunk, level) in enumerate(zip(split, begins)):
        depth = np.count_nonzero(split.component[c] == component_of_levels(graph, split))
        last = chunk.level + span >= depth
        end = level + (depth - chunk.level if last else span)
        assert chunk.vertices.tolist() == split.order[split.level_ptr[level] : split.level_ptr[end]].tolist()
        of_level = int(split.level_ptr[level + 1] - split.level_ptr[level])
        assert chunk.first == (chunk.vertices.size if last else of_level)
        assert chunk.bits == levels.bits_needed(chunk.vertices.size, "s-utm")
        assert chunk.fits == (chunk.bits <= split.shared_bits)
    assert split.too_large == sum(not chunk.fits for chunk in split)
    assert split.total_tests == split.tests.sum()


def component_of_levels(graph, split):
    component, _ = levels.Search(graph).forest()
    return component[split.order[split.level_ptr[:-1]]]


@given(sparse_graphs(), st.integers(0, 40), st.booleans(), st.integers(1, 4))
def test_every_triple_at_most_once_and_every_connected_one(graph, shared_bits, whole, roots):
    split = small(graph, levels=3, shared_bits=shared_bits, whole=whole, roots=roots)
    tested = Counter(combinations(split))
    assert sum(tested.values()) == split.total_tests and max(tested.values(), default=1) == 1
    nx_graph = graph.to_networkx()
    for triple in itertools.combinations(range(graph.n), 3):
        if nx.is_connected(nx_graph.subgraph(triple)):
            assert frozenset(triple) in tested


@given(sparse_graphs(), st.integers(0, 40), st.integers(2, 4))
def test_two_levels_hold_every_clique(graph, shared_bits, k):
    tested = Counter(combinations(small(graph, k=k, shared_bits=shared_bits)))
    cliques = [frozenset(c) for c in nx.enumerate_all_cliques(graph.to_networkx()) if len(c) == k]
    assert [tested[clique] for clique in cliques] == [1] * len(cliques)


def test_a_component_that_fits_may_stay_whole():
    graph = tcgpu.generate.cycle(50)
    (chunk,) = small(graph, shared_bits=2000, whole=True)
    assert chunk.vertices.size == chunk.first == 50
    assert len(small(graph, shared_bits=2000)) == 25
    assert len(small(graph, shared_bits=1200, whole=True)) == 25  # 50 * 49 / 2 bits do not fit


def test_chunks_too_small_for_a_combination_are_left_out():
    path = tcgpu.generate.path(10)
    assert len(small(path)) == small(path).total_tests == 0
    split = small(path, levels=3)
    assert [chunk.vertices.tolist() for chunk in split] == [[j, j + 1, j + 2] for j in range(8)]
    assert split.tests.tolist() == [1] * 8
    with pytest.raises(IndexError, match="there are 8 chunks, none is number 8"):
        split[8]


def test_the_cost_of_a_root_by_hand():
    assert cost([1, 3, 4, 2], 2, shared_bits=20, machines=2) == (1, 2 * 20 - 6 - 15)  # 4, 7 and 6 vertices
    assert cost([1, 3, 4, 2], 2, shared_bits=25, machines=2) == (0, 2 * 2 * 25 - 6 - 21 - 15)  # two rounds
    assert cost([5], 2, shared_bits=25, machines=2, layout="matrix") == (0, 2 * 25 - 25)
    assert cost([5, 9], 3, shared_bits=25, machines=2) == (1, 0)


def test_of_all_roots_the_best_is_taken():
    for seed in range(5):
        graph = tcgpu.generate.watts_strogatz(60, 4, 0.1, seed=seed)
        search = levels.Search(graph)
        costs = [cost(np.diff(search(root)[1]), 2, 100, 2) for root in range(graph.n)]
        split = levels.split(graph, shared_bits=100, machines=2, roots=graph.n)
        assert (split.tried.tolist(), costs[split.roots[0]]) == ([graph.n], min(costs))
        assert split.too_large == min(costs)[0]
        few = levels.split(graph, shared_bits=100, machines=2, roots=4)
        assert few.tried.tolist() == [4] and costs[few.roots[0]] >= min(costs)
        assert few.order.tolist() == levels.split(graph, shared_bits=100, machines=2, roots=4).order.tolist()


def test_an_end_of_a_long_graph_is_found_from_its_middle():
    rung = np.roll(np.arange(200), 100)  # a ladder whose vertex 0 is in its middle
    sides = 2 * rung, 2 * rung + 1
    edges = [sides, *((side[:-1], side[1:]) for side in sides)]
    ladder = Graph.from_edges(np.concatenate([np.stack(pair, axis=1) for pair in edges]))
    split = levels.split(ladder, shared_bits=10, machines=4, roots=2)  # room for 5 vertices
    assert split.roots[0] // 2 in (rung[0], rung[-1]) and split.too_large == 0
    split = levels.split(ladder, shared_bits=10, machines=4, roots=1)
    assert split.roots[0] == 0 and split.too_large > 90


def test_roots_may_be_given():
    graph = GRAPHS["road"]
    component, _ = levels.Search(graph).forest()
    inside = np.flatnonzero(component == np.bincount(component).argmax())
    split = levels.split(graph, shared_bits=10, machines=2, roots=inside[[7]].astype(np.int32))
    assert inside[7] in split.roots and split.tried.tolist() == [1] * split.roots.size
    assert levels.split(graph, shared_bits=10, machines=2, roots=np.empty(0, np.int32)).roots[0] == 0


class Shuffled(levels.Search):
    """A search that finds a level's vertices in another order, as a GPU does."""

    calls = 0

    def __call__(self, root):
        self.calls += 1
        vertices, level_ptr = super().__call__(root)
        for a, b in zip(level_ptr, level_ptr[1:]):
            np.random.default_rng(1).shuffle(vertices[a:b])
        return vertices, level_ptr


@pytest.mark.parametrize("name", ["road", "random", "clique"])
def test_another_search_makes_the_same_split(name):
    graph = GRAPHS[name]
    search = Shuffled(graph)
    split = levels.split(graph, shared_bits=50, machines=2)
    other = levels.split(graph, shared_bits=50, machines=2, search=search)
    assert search.calls == sum(split.tried[split.tried > 1]) > 0
    for field in ("order", "level_ptr", "roots", "tried", "start", "size", "first"):
        assert getattr(split, field).tolist() == getattr(other, field).tolist()


def test_the_device_at_hand_is_what_is_not_given():
    with runtime.using("sim"):
        split = levels.split(tcgpu.generate.path(4))
    assert (split.shared_bits, split.machines) == (8 * (48 << 10), 1)


def test_tests_past_63_bits_are_told_but_not_numbered():
    split = levels.split(tcgpu.generate.star(3000), 8, shared_bits=10, machines=1)
    assert split.total_tests > 2**63
    with pytest.raises(GraphError, match=r"a chunk has .* combinations to test, more than 2\^63"):
        split.tests.sum()


@pytest.mark.parametrize("wish", [{"k": 0}, {"levels": 0}, {"roots": 0}, {"roots": 1.5}, {"k": True}])
def test_wishes_that_make_no_sense_are_refused(wish):
    with pytest.raises(GraphError, match=f"{next(iter(wish))} is a whole number of at least 1"):
        small(GRAPHS["road"], **wish)


def test_a_large_graph_is_split_in_no_time():
    graph = tcgpu.generate.rmat(15, 8, seed=1)
    levels.split(graph, **CARD)
    begin = time.perf_counter()
    split = levels.split(graph, **CARD, roots=8)
    assert time.perf_counter() - begin < 2  # 0.05 s on an idle core; a search from every vertex would take a minute
    assert split.tried.max() == 8


# ----------------------------------------------------------------------------------------------------------- makespan


def best_makespan(weights, machines):
    """The shortest there is, by trying every assignment."""
    loads = (
        np.bincount(assignment, weights=weights, minlength=machines).max()
        for assignment in itertools.product(range(machines), repeat=len(weights))
    )
    return min(loads, default=0)


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(1, 3))
def test_the_bound_is_one_and_longest_first_within_a_third(weights, machines):
    best = best_makespan(weights, machines)
    longest = levels.schedule(weights, machines)
    assert longest.bound <= best <= longest.makespan <= best * (4 / 3 - 1 / (3 * machines)) + 1e-9
    given_order = levels.schedule(weights, machines, order="given")
    assert best <= given_order.makespan <= best * (2 - 1 / machines) + 1e-9
    assert longest.bound == levels.lower_bound(weights, machines)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 9), st.sampled_from(["longest", "given"]))
def test_a_machine_works_without_a_break_on_one_job_at_a_time(weights, machines, order):
    plan = levels.schedule(weights, machines, order)
    for machine in range(machines):
        jobs = np.flatnonzero(plan.machine == machine)
        jobs = jobs[np.argsort(plan.begin[jobs])]
        ends = np.concatenate(([0], np.cumsum(plan.weights[jobs])))
        assert plan.begin[jobs].tolist() == ends[:-1].tolist()
        assert plan.loads[machine] == ends[-1]


def test_the_bound_knows_crowds_and_long_jobs():
    assert levels.lower_bound([7, 1, 1], 3) == 7
    assert levels.lower_bound([5, 5, 5, 5], 3) == 10  # two of them share a machine
    assert levels.lower_bound([3, 3, 3], 2) == 6
    assert levels.lower_bound([1, 2, 3], 1) == 6
    assert levels.lower_bound([], 4) == 0
    assert levels.schedule([], 4).above_bound == levels.schedule([], 4).makespan == 0


@pytest.mark.parametrize("span", [2, 3])
@pytest.mark.parametrize("graph", [
    tcgpu.generate.road(150, 150, 0.7, 1.5, seed=1), tcgpu.generate.mesh(220, 260), tcgpu.generate.path(4000),
    tcgpu.generate.watts_strogatz(20_000, 6, 0.0005, seed=1),
], ids=["road", "mesh", "path", "small world"])  # fmt: skip
def test_longest_first_is_within_five_percent_of_the_bound(graph, span):
    split = levels.split(graph, levels=span, **CARD)
    assert len(split) >= 200
    for weights in split.bits, split.tests:
        assert levels.schedule(weights, split.machines).above_bound < 0.05


def test_the_order_given_may_be_further_from_the_bound():
    """A chunk that is long and comes late keeps one machine at work when all others are done."""
    graph = tcgpu.generate.watts_strogatz(20_000, 6, 0.0005, seed=1)
    split = levels.split(graph, shared_bits=227 << 13, machines=132)
    longest, given_order = (levels.schedule(split.bits, 132, order).above_bound for order in ("longest", "given"))
    assert len(split) >= 200 and longest < 0.01 < 0.05 < given_order


def test_equation_six():
    assert levels.estimate(31, 4, 2.0, 10.0) == 2 * 2.0 + 4 * 10.0
    assert levels.estimate(30, 0, 2.0, 10.0) == 2.0
    assert levels.estimate(5, 1, 1.0, 3.0, machines=2) == 3 + 3


def test_both_kinds_at_once_never_take_longer_than_one_after_the_other():
    split = levels.split(tcgpu.generate.rmat(12, 4, seed=1), levels=2, **CARD)
    road = levels.split(tcgpu.generate.delaunay(20_000, seed=1), levels=3, **CARD)
    for each in split, road:
        shared = int(each.fits.sum())
        at_once = levels.schedule(np.where(each.fits, 2, 9), each.machines).makespan
        assert at_once <= levels.estimate(shared, len(each) - shared, 2, 9, each.machines)


def test_schedules_that_make_no_sense_are_refused():
    with pytest.raises(GraphError, match="no order 'shortest'; there are longest, given"):
        levels.schedule([1], 1, order="shortest")
    for call in (levels.schedule, levels.lower_bound):
        with pytest.raises(GraphError, match="at least 1 machine, not 0"):
            call([1], 0)
