"""Edge support and k-trusses by kernels: NetworkX's and brute force's on small graphs, the native engine's on large."""

from functools import partial
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import run_shuffled, small_graphs, well_known, with_few_blocks

import tcgpu
from tcgpu import EngineError, Graph, GraphError, MethodError, cpu
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels.bisson_fatica import algorithm_4, bitmap_block_shared, k_truss, support
from tcgpu.truss import native_peeling

METHODS = list(support.KERNELS)
KNOBS = {
    "thread": [{}, {"threads": 1, "blocks": 1}, {"threads": 33, "blocks": 3}],
    "warp": [{}, {"threads": 32, "fold": 5, "blocks": 1}, {"threads": 128, "fold": 6, "blocks": 3}],
    "block_shared": [{}, {"threads": 32}, {"threads": 96, "blocks": 3}],
    "block_global": [{"threads": 64, "blocks": 3}, {"threads": 32, "fold": 5, "blocks": 1}],
}


def graphs():
    """More than ten graphs: real, random and constructed ones, none with more than 350 edges."""
    made = {name: graph for name, graph in small_graphs().items() if graph.m <= 350}
    dense = nx.gnp_random_graph(26, 0.5, seed=3)
    return made | {
        "karate": Graph.from_networkx(nx.karate_club_graph()),
        "les miserables": Graph.from_networkx(nx.les_miserables_graph()),
        "florentine": Graph.from_networkx(nx.florentine_families_graph()),
        "dense": Graph.from_networkx(dense),
        "two cliques": Graph.from_networkx(nx.barbell_graph(7, 2)),
        "clique": tcgpu.generate.clique(16),
        "caveman": Graph.from_networkx(nx.relaxed_caveman_graph(6, 6, 0.2, seed=2)),
        "R-MAT": tcgpu.generate.rmat(5, 6, seed=1),
    }


GRAPHS = graphs()


def brute_force(graph):
    """The support of each edge by a product of dense matrices."""
    dense = graph.to_scipy().toarray().astype(float)  # NumPy multiplies integers slowly
    rows, cols = graph.edges()
    return (dense @ dense)[rows, cols].astype(np.int64)


def numbers_of_networkx(graph):
    """Each edge's truss number: how far up `nx.k_truss` keeps it, k by k."""
    plain = nx.Graph(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
    found, k = np.full(graph.m, 2), 3
    while plain.size():
        plain = nx.k_truss(plain, k)
        found[[plain.has_edge(i, j) for i, j in zip(*graph.edges(), strict=True)]] = k
        k += 1
    return found


@pytest.fixture
def simulator():
    with runtime.using("sim"):
        yield


@pytest.mark.sim
@pytest.mark.usefixtures("compiled_kernels")
class TestWithoutAGpu:
    @pytest.mark.parametrize("name", GRAPHS)
    @pytest.mark.parametrize("method", METHODS)
    def test_support_is_that_of_brute_force_for_every_shape(self, method, name):
        graph = GRAPHS[name]
        expected = brute_force(graph)
        for knobs in KNOBS[method]:
            assert np.array_equal(support.plan(graph, method, **knobs).count(), expected), knobs
        assert np.array_equal(algorithm_4.support_plan(graph, method).count(), expected)

    @pytest.mark.parametrize("name", GRAPHS)
    def test_truss_numbers_and_trusses_are_those_of_networkx(self, name):
        graph = GRAPHS[name]
        expected = numbers_of_networkx(graph)
        assert np.array_equal(k_truss.plan(graph).count(), expected)
        for k in range(3, int(expected.max(initial=2)) + 2):
            assert np.array_equal(k_truss.plan(graph, k).count() == 0, expected >= k), k

    @pytest.mark.parametrize("name", ["karate", "dense", "two cliques"])
    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_finds_the_same_truss(self, method, name):
        for published in (False, True):
            found = k_truss.plan(GRAPHS[name], method=method, published=published).count()
            assert np.array_equal(found, numbers_of_networkx(GRAPHS[name]))

    @pytest.mark.parametrize("method", METHODS)
    def test_no_order_of_threads_changes_a_support(self, method):
        graph = GRAPHS["R-MAT"]
        for seed in range(3):
            for plan in (support.plan(graph, method, **KNOBS[method][-1]), algorithm_4.support_plan(graph, method)):
                run = with_few_blocks(plan).allocate()
                run_shuffled(run, seed)
                assert np.array_equal(run.result(), brute_force(graph))

    @settings(max_examples=15)
    @given(st.integers(0, 12), st.data())
    def test_small_graphs_of_any_kind(self, n, data):
        pairs = st.tuples(st.integers(0, max(n - 1, 0)), st.integers(0, max(n - 1, 0)))
        edges = data.draw(st.lists(pairs, max_size=40)) if n else []
        graph = Graph.from_edges(*np.array(edges, np.int64).reshape(-1, 2).T, n)
        expected = numbers_of_networkx(graph)
        assert np.array_equal(support.plan(graph, "warp", fold=5).count(), brute_force(graph))
        assert np.array_equal(k_truss.plan(graph).count(), expected)
        assert np.array_equal(k_truss.plan(graph, 4).count() == 0, expected >= 4)

    def test_well_known_graphs(self, graphs_folder):
        tried = [name for name, graph, triangles in well_known(graphs_folder, 500) if same_as_native(graph, triangles)]
        assert len(tried) >= 2

    def test_a_truss_is_found_again_after_a_reset(self):
        run = k_truss.plan(GRAPHS["karate"], 4).allocate()
        run.launch()
        first, rounds = run.result().copy(), run.rounds
        run.reset()
        run.launch()
        assert np.array_equal(run.result(), first) and run.rounds == rounds > 1

    def test_one_round_is_enough_for_k_3(self):
        with k_truss.plan(GRAPHS["karate"], 3).carried_out() as run:
            assert run.rounds == 1

    def test_numbers_skip_k_at_which_no_edge_is_removed(self):
        with k_truss.plan(tcgpu.generate.clique(12)).carried_out() as run:
            assert (run.result() == 12).all() and run.rounds == 2  # k = 3, and then 13 at once

    def test_compacting_keeps_the_order_of_remaining_edges(self):
        graph = GRAPHS["R-MAT"]
        rng = np.random.default_rng(3)
        for seed in range(3):
            supports = rng.integers(-1, 3, graph.m).astype(np.int32)
            rows, origin = graph.row_idx.copy(), np.arange(graph.m, dtype=np.int32)
            length = graph.column_lengths.astype(np.int32)
            stays = supports >= 0
            weak = np.zeros(graph.n, np.int32)
            weak[graph.col_of[~stays]] = 7
            state = np.zeros(support.STATE_SIZE, np.int32)
            state[support.ROUND] = 7
            args = (graph.col_ptr, length, rows, supports, origin, weak, state)
            simulate(k_truss.compact.py_func, 2, 64, args, seed=seed)
            assert np.array_equal(length, np.bincount(graph.col_of[stays], minlength=graph.n))
            for j in range(graph.n):
                here = slice(graph.col_ptr[j], graph.col_ptr[j] + length[j])
                expected = np.flatnonzero(stays & (graph.col_of == j))
                assert np.array_equal(origin[here], expected) and np.array_equal(rows[here], graph.row_idx[expected])
                assert (supports[here] >= 0).all()
                assert (supports[here.stop : graph.col_ptr[j + 1]] == k_truss.REMOVED).all()

    def test_broken_triangles_count_once_however_many_of_their_edges_are_weak(self):
        """A clique of four of whose six edges some go: what stays loses one for each triangle with one that goes."""
        graph = tcgpu.generate.clique(4)
        triangles = [{(i, j), (k, j), (k, i)} for j, i, k in combinations(range(4), 3)]
        edges = list(zip(*(ends.tolist() for ends in graph.edges()), strict=True))
        for going in range(1, 64):
            weak = {edge for k, edge in enumerate(edges) if going >> k & 1}
            broken = [triangle for triangle in triangles if triangle & weak]
            expected = [-1 if edge in weak else 2 - sum(edge in triangle for triangle in broken) for edge in edges]
            for method in METHODS:
                for published in (False, True):
                    found = updated(graph, method, weak, edges, published).tolist()
                    assert found == expected, (method, weak, published)

    def test_fewer_blocks_run_if_their_bitmaps_do_not_fit(self, monkeypatch):
        graph = GRAPHS["les miserables"]
        plan = support.plan(graph, "block_global")
        needed = 4 * (8 * graph.n + 7 * graph.m) + graph.nbytes + 3 * (8 * -(-graph.n // 32))
        monkeypatch.setattr(runtime, "memory_free", lambda: needed * 16 // 15)
        assert plan.steps[-1].blocks > 3 == support.plan(graph, "block_global").steps[-1].blocks
        monkeypatch.setattr(runtime, "memory_free", lambda: 100)
        with pytest.raises(GraphError, match="support by block_global needs .* bytes"):
            support.plan(graph, "block_global").count()

    def test_more_edges_than_can_be_numbered_are_refused(self):
        graph = Graph(GRAPHS["karate"].col_ptr, GRAPHS["karate"].row_idx)
        graph.m = 2**31
        with pytest.raises(GraphError, match="2,147,483,648 edges are too many"):
            support.plan(graph, "warp")


@pytest.mark.sim
def test_long_simulator_runs_are_refused_with_the_estimate():
    with pytest.raises(GraphError, match="would take about .* in the simulator: take engine='cpu'"):
        tcgpu.support(tcgpu.generate.rmat(16), engine="sim")


def updated(graph, method, weak, edges, published):
    """The supports after one update, with the edges in `weak` marked."""
    run = k_truss.plan(graph, 5, method=method, published=published).allocate()
    supports = run.arrays["support"]
    supports[:] = [k_truss.WEAK_NOW if edge in weak else 2 for edge in edges]
    columns = [j for edge, (_, j) in enumerate(edges) if supports[edge] < 0]
    run.arrays["weak"][columns] = run.arrays["affected"][columns] = 1
    run.run(support.begin_round, 1, round=1)
    run.run(k_truss.mark_affected, graph.m)
    run.listing.run(run.arrays)
    run.walk.run(run.arrays)
    return supports


def same_as_native(graph, triangles):
    """Support and truss numbers are the native engine's, and three supports make a triangle."""
    found = tcgpu.registry.METHODS["bitmap_auto"].support_plan(graph).count()
    assert int(found.sum()) == 3 * triangles and np.array_equal(found, cpu.support(graph))
    numbers = k_truss.plan(graph).count()
    assert np.array_equal(numbers, native_peeling.numbers(graph))
    for k in (3, 4, int(numbers.max(initial=3))):
        assert np.array_equal(k_truss.plan(graph, k).count() == 0, numbers >= k)
    return True


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.mark.parametrize("name", GRAPHS)
    @pytest.mark.parametrize("method", METHODS)
    def test_small_graphs(self, method, name):
        graph = GRAPHS[name]
        for knobs in KNOBS[method]:
            assert np.array_equal(support.plan(graph, method, **knobs).count(), brute_force(graph)), knobs
        assert np.array_equal(algorithm_4.support_plan(graph, method).count(), brute_force(graph))
        for published in (False, True):
            numbers = k_truss.plan(graph, method=method, published=published).count()
            assert np.array_equal(numbers, native_peeling.numbers(graph))

    def test_well_known_graphs(self, graphs_folder):
        tried = [name for name, graph, triangles in well_known(graphs_folder) if same_as_native(graph, triangles)]
        assert len(tried) >= 20

    @pytest.mark.parametrize("order", ["natural", "degree", "random"])
    @pytest.mark.parametrize("method", METHODS[1:])
    def test_a_large_graph_in_any_order(self, method, order):
        graph = tcgpu.generate.rmat(15, seed=2).ordered(order)
        stays = native_peeling.numbers(graph) >= 8
        for published, plan in ((False, support.plan), (True, algorithm_4.support_plan)):
            assert np.array_equal(plan(graph, method).count(), cpu.support(graph))
            assert np.array_equal(k_truss.plan(graph, 8, method=method, published=published).count() == 0, stays)

    def test_the_verbs_take_the_gpu(self):
        graph = tcgpu.generate.copapers(5000)
        assert np.array_equal(tcgpu.support(graph), cpu.support(graph))
        assert np.array_equal(tcgpu.triangles(graph, engine="gpu", order="degree"), cpu.triangles(graph))

    def test_shared_memory_has_as_many_words_as_the_device_gives(self):
        graph = tcgpu.generate.random(bitmap_block_shared.most_for_support(), 1_000_000)
        assert np.array_equal(with_few_blocks(support.plan(graph, "block_shared"), 64).count(), cpu.support(graph))


# ------------------------------------------------------------------------------------------- the verbs that lead here


@pytest.mark.sim
@pytest.mark.parametrize("order", [None, "degree", "random"])
@pytest.mark.parametrize("method", [None, "bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_auto"])
def test_support_and_triangles_by_methods_in_any_order(method, order, compiled_kernels):
    graph = GRAPHS["karate"]
    found = tcgpu.support(graph, method=method, engine="sim", order=order)
    assert found.dtype == np.int64 and np.array_equal(found, brute_force(graph))
    assert np.array_equal(tcgpu.triangles(graph, method=method, engine="sim", order=order), cpu.triangles(graph))


@pytest.mark.parametrize(
    "engine, name", [("sim", "adaptive"), ("gpu", "adaptive"), ("webgpu", "bitmap_auto"), ("cpu", "cpu")]
)
def test_the_engine_says_who_finds_supports_if_no_method_is_named(engine, name, monkeypatch):
    monkeypatch.setattr(tcgpu.registry, "check_engine", lambda *args: None)
    assert tcgpu.registry.choose_for_edges(None, engine, None).name == name
    assert tcgpu.registry.choose_for_edges("bitmap_warp", engine, None).name == "bitmap_warp"


@pytest.mark.sim
def test_the_heuristic_chooses_for_supports_as_for_counts(simulator):
    for graph, name in ((GRAPHS["wheel"], "block_shared"), (tcgpu.generate.road(9, 9), "thread")):
        plan = tcgpu.registry.METHODS["bitmap_auto"].support_plan(graph, mean_warp=0)
        assert plan.method == f"support by {name}"
    assert tcgpu.registry.METHODS["bitmap_auto"].support_plan(GRAPHS["wheel"]).method == "support by warp"
    printed = tcgpu.registry.METHODS["bitmap_auto"].support_plan(GRAPHS["wheel"], published=True)
    assert printed.method == "support by warp as published" and printed.count().sum() == 3 * 49


@pytest.mark.sim
def test_bits_that_shared_memory_has_no_room_for_are_refused_or_not_chosen(monkeypatch):
    monkeypatch.setattr(bitmap_block_shared, "most_vertices", lambda threads=256: 66)
    graph, verb = GRAPHS["karate"], partial(tcgpu.support, engine="sim")
    with pytest.raises(GraphError, match="has room for 33 vertices .*, not for 34: take bitmap_block_global"):
        verb(graph, method="bitmap_block_shared")
    assert np.array_equal(verb(graph, method="bitmap_block_global"), brute_force(graph))
    with runtime.using("sim"):
        chosen = tcgpu.registry.METHODS["bitmap_auto"].support_plan(graph, mean_warp=0)
    assert chosen.method == "support by block_global"


def test_methods_that_only_count_are_refused_by_name():
    with pytest.raises(MethodError, match="method 'naive' does not tell edge from edge"):
        tcgpu.support(GRAPHS["karate"], method="naive", engine="sim")
    with pytest.raises(EngineError, match="'bitmap_warp' runs on gpu or sim or webgpu, not on 'cpu'"):
        tcgpu.support(GRAPHS["karate"], method="bitmap_warp", engine="cpu")
    with pytest.raises(MethodError, match="no order 'alphabetical'"):
        tcgpu.support(GRAPHS["karate"], order="alphabetical")
