"""Trusses by a queue of edges: NetworkX's on small graphs, the native engine's on large ones."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import well_known
from test_kernels_k_truss import GRAPHS, numbers_of_networkx

import tcgpu
from tcgpu import DeviceGraph, Graph, GraphError, generate
from tcgpu.engines import runtime
from tcgpu.truss import peeling
from tcgpu.truss.native_peeling import numbers as native_numbers

# what `peeling` chooses by the size of a graph
CHOICES = {
    "one launch": {},
    "a round a launch": {"WORK": 1},
    "a warp a block": {"THREADS": 32},
    "a smaller graph after each level": {"SHRINK": 0.999, "SMALL_TRUSS": 0},
    "smaller graphs": {"SMALL_TRUSS": 0},
    "supports counted in each round": {"FEW_WEAK": 0},
    "supports counted before each round": {"FEW_WEAK": 0, "SMALL_TRUSS": 0},
    "supports counted once": {"FEW_WEAK": 1},
}


def windmill(blades):
    """Triangles that share vertex 0."""
    ends = 1 + 2 * np.arange(blades)
    zero = np.zeros(blades, int)
    return Graph.from_edges(np.concatenate([zero, zero, ends]), np.concatenate([ends, ends + 1, ends + 1]))


def book(pages):
    """Triangles that share the edge between vertices 0 and 1."""
    pages = 2 + np.arange(pages)
    return Graph.from_edges(np.concatenate([[0], 0 * pages, 0 * pages + 1]), np.concatenate([[1], pages, pages]))


def whole(graph):
    """All edges of a graph, before the first round."""
    number, origin = np.zeros(graph.m, np.int32), np.arange(graph.m, dtype=np.int32)
    return peeling.remaining(graph, peeling.supports(graph), origin, number, -1)


def peeled(graph, k):
    """Which edges are in the k-truss, on the host."""
    return runtime.to_host(peeling.peel(graph, k))


def same_as(expected, graph):
    """Whether the truss numbers and all trusses of a graph are those of `expected`, the truss numbers."""
    found = peeling.numbers(graph)
    trusses = range(2, int(expected.max(initial=2)) + 2)
    return (
        found.dtype == np.int32
        and np.array_equal(found, expected)
        and all(np.array_equal(peeled(graph, k), expected >= k) for k in trusses)
    )


@pytest.mark.sim
@pytest.mark.usefixtures("compiled_kernels")
class TestWithoutAGpu:
    @pytest.mark.parametrize("name", GRAPHS)
    def test_trusses_are_those_of_networkx(self, name):
        assert same_as(numbers_of_networkx(GRAPHS[name]), GRAPHS[name])

    @pytest.mark.parametrize("choice", CHOICES)
    @pytest.mark.parametrize("name", ["karate", "les miserables", "dense", "two cliques"])
    def test_every_choice_finds_the_same(self, name, choice, monkeypatch):
        for constant, value in CHOICES[choice].items():
            monkeypatch.setattr(peeling, constant, value)
        assert same_as(native_numbers(GRAPHS[name]), GRAPHS[name])

    @settings(max_examples=25)
    @given(st.integers(0, 12), st.data())
    def test_small_graphs_of_any_kind(self, n, data):
        pairs = st.tuples(st.integers(0, max(n - 1, 0)), st.integers(0, max(n - 1, 0)))
        edges = data.draw(st.lists(pairs, max_size=40)) if n else []
        graph = Graph.from_edges(*np.array(edges, np.int64).reshape(-1, 2).T, n)
        assert same_as(numbers_of_networkx(graph), graph)

    def test_each_edge_is_peeled_once_and_those_of_a_round_together(self):
        graph = GRAPHS["les miserables"]
        rest = whole(graph)
        state = peeling.peel_until(rest, graph.m, graph.m)
        assert np.array_equal(np.sort(rest.queue), rest.origin) and state[peeling.END] == graph.m
        assert (np.diff(rest.peeled[rest.queue]) >= 0).all() and rest.peeled.max() <= state[peeling.ROUND]
        assert (np.diff(rest.number[rest.queue]) >= 0).all() and np.array_equal(rest.number, native_numbers(graph))

    def test_a_launch_ends_after_its_work_and_the_next_one_goes_on(self):
        """So that the host can be interrupted."""
        graph = generate.mesh(12, 12)
        rest = whole(graph)
        peeling.peel_edges.launch(1, 64, *rest, graph.m, graph.m, 1)
        assert 0 < rest.state[peeling.BEGIN] < rest.state[peeling.END] < graph.m
        peeling.peel_until(rest, graph.m, graph.m)
        assert np.array_equal(rest.number, native_numbers(graph))

    def test_threads_race_only_where_it_changes_nothing(self):
        """A thread may see that an edge goes in the next round, or not yet: it remains in this one."""
        graph = GRAPHS["R-MAT"]
        faults = tcgpu.simulate(peeling.peel_edges.py_func, 1, 64, *whole(graph), graph.m, graph.m, peeling.WORK)
        assert {(fault.kind, fault.array) for fault in faults} == {("race", "peeled")}

    def test_edges_that_go_together_are_peeled_in_one_round(self):
        for graph, k in ((windmill(40), 4), (windmill(40), 90), (generate.clique(12), 13), (generate.mesh(9, 9), 5)):
            with peeling.plan(graph, k).carried_out() as run:
                assert run.result().all() and (run.rounds, run.counts) == (1, 1)
        with peeling.plan(generate.clique(12)).carried_out() as run:
            assert (run.result() == 12).all() and run.rounds == 3  # no edge has level 0 or 1, all have level 10

    def test_edges_in_no_triangle_break_none(self):
        with peeling.plan(GRAPHS["karate"], 3).carried_out() as run:
            assert np.array_equal(run.result() == 0, native_numbers(GRAPHS["karate"]) >= 3)
            assert (run.rounds, run.counts) == (1, 1)

    @pytest.mark.parametrize("k", [None, 4])
    def test_a_truss_is_found_again_after_a_reset(self, k):
        run = peeling.plan(GRAPHS["karate"], k).allocate()
        run.launch()
        first, rounds = run.result().copy(), run.rounds
        run.reset()
        assert not run.arrays["number"].any()
        run.launch()
        assert np.array_equal(run.result(), first) and run.rounds == rounds > 1

    @pytest.mark.parametrize("order", ["natural", "degree", "random"])
    def test_a_graph_may_be_peeled_in_another_order(self, order, monkeypatch):
        monkeypatch.setattr(peeling, "order_for_tallies", lambda graph, wish: order)
        assert same_as(native_numbers(GRAPHS["karate"]), GRAPHS["karate"])

    def test_no_edge_is_in_a_truss_of_a_huge_k(self):
        assert not peeling.peel(GRAPHS["karate"], 10**12).any()

    def test_more_edges_than_32_bits_number_are_refused(self):
        graph = Graph(GRAPHS["karate"].col_ptr, GRAPHS["karate"].row_idx)
        graph.m = 2**31
        with pytest.raises(GraphError, match="2,147,483,648 edges are too many for trusses on a GPU"):
            peeling.plan(graph)

    def test_well_known_graphs(self, graphs_folder):
        tried = [name for name, graph, _ in well_known(graphs_folder, 500) if same_as(native_numbers(graph), graph)]
        assert len(tried) >= 2


@pytest.mark.sim
def test_long_simulator_runs_are_refused_with_the_estimate():
    with pytest.raises(GraphError, match="would take about .* in the simulator: take engine='cpu'"):
        tcgpu.truss_numbers(generate.rmat(13), engine="sim")


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.mark.parametrize("name", GRAPHS)
    def test_small_graphs(self, name):
        assert same_as(native_numbers(GRAPHS[name]), GRAPHS[name])

    def test_well_known_graphs(self, graphs_folder):
        tried = [name for name, graph, _ in well_known(graphs_folder) if agrees(graph)]
        assert len(tried) >= 20

    @pytest.mark.parametrize(
        "make",
        [
            partial(generate.rmat, 16),
            partial(generate.copapers, 20_000),
            partial(generate.mesh, 500, 500),
            partial(windmill, 200_000),
            partial(book, 200_000),
            partial(generate.clique, 900),
        ],
    )
    def test_large_graphs(self, make):
        assert agrees(make())

    @pytest.mark.parametrize("choice", CHOICES)
    def test_every_choice_finds_the_same(self, choice, monkeypatch):
        for constant, value in CHOICES[choice].items():
            monkeypatch.setattr(peeling, constant, value)
        assert agrees(generate.rmat(13))

    def test_a_graph_on_the_device_stays_as_it_is(self):
        graph = generate.rmat(10, seed=6)
        given = peeling.prepare(graph, "natural")
        first = peeled(given, 5)
        assert np.array_equal(runtime.to_host(given.row_idx), graph.row_idx)
        assert np.array_equal(peeled(given, 5), first) and np.array_equal(first, native_numbers(graph) >= 5)

    def test_the_verbs_take_the_gpu(self):
        graph = generate.copapers(5000)
        assert tcgpu.k_truss(graph, 9, engine="gpu").equals(tcgpu.k_truss(graph, 9, engine="cpu"))

    def test_vertices_keep_their_names(self):
        graph = generate.copapers(300)
        ids = np.arange(graph.n) * 1000 + 7
        u, v = (runtime.named("gpu").arrays.asarray(ids[ends]) for ends in graph.edges())
        given = {
            "text": Graph(graph.col_ptr, graph.row_idx, labels=[f"vertex {id}" for id in ids]),
            "ids": Graph(graph.col_ptr, graph.row_idx, labels=ids),
            "on the device": DeviceGraph.from_edges(u, v, relabel=True),
        }
        for each in given.values():
            found, expected = (tcgpu.k_truss(each, 20, engine=engine) for engine in ("gpu", "cpu"))
            assert 0 < found.n < graph.n and found.equals(expected)

    def test_edges_that_are_on_the_device_stay_there(self, monkeypatch):
        graph = generate.copapers(2000)
        u, v = (runtime.named("gpu").arrays.asarray(ends) for ends in graph.edges())
        monkeypatch.setattr(DeviceGraph, "to_graph", None)
        monkeypatch.setattr(Graph, "from_edges", None)
        assert tcgpu.k_truss((u, v), 9, engine="gpu").m == tcgpu.k_truss(graph, 9, engine="cpu").m


def agrees(graph):
    """Whether truss numbers and some trusses are the native engine's."""
    expected = native_numbers(graph)
    some = {3, 4, 8, 30, int(expected.max(initial=3))}
    return np.array_equal(peeling.numbers(graph), expected) and all(
        np.array_equal(peeled(graph, k), expected >= k) for k in some
    )
