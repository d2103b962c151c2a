"""Cliques, cycles and motifs by kernels: the native engine's counts, on graphs of many kinds, within small limits."""

from dataclasses import replace
from functools import partial
from math import comb

import compiled
import networkx as nx
import numpy as np
import pytest
import sampling
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import sparse_graphs

import tcgpu
from tcgpu import EngineError, Graph, GraphError, cpu, generate
from tcgpu.engines import runtime
from tcgpu.insight.faults import check_launch
from tcgpu.kernels import device_graph
from tcgpu.subgraphs import cliques, cycles, four_at_edges, tiles
from tcgpu.subgraphs import on_device as motifs


def hub_over(graph):
    """One more vertex, the first, which is joined to all vertices of a graph."""
    u, v = graph.edges()
    rim = np.arange(1, graph.n + 1)
    return Graph.from_edges(np.concatenate([u + 1, 0 * rim]), np.concatenate([v + 1, rim]))


GRAPHS = {
    "karate": lambda: Graph.from_networkx(nx.karate_club_graph()),
    "R-MAT": lambda: generate.rmat(6, 5),
    "mesh": lambda: generate.mesh(5, 5),
    "grid": lambda: generate.grid(12, 11),  # many more vertices than a vertex has paths
    "two cliques": lambda: Graph.from_edges(*np.hstack([np.triu_indices(9, 1), 6 + np.array(np.triu_indices(7, 1))])),
    "star": lambda: generate.star(40),
    "hub over a mesh": lambda: hub_over(generate.mesh(10, 7)),  # its column has three groups of rows
    "bipartite": lambda: generate.complete_bipartite(20, 4),
    "vertices without edges": lambda: Graph.from_edges([3, 3, 3, 9, 9, 11], [9, 11, 20, 11, 20, 20], 40),
    "three vertices": lambda: generate.clique(3),
    "one edge": lambda: generate.path(2),
    "no edges": lambda: generate.empty(5),
    "no vertices": lambda: generate.empty(0),
}  # fmt: skip
LIMITS = {  # the hubs, the tiles of a chunk, and the shared memory of a block: (HUBS, POOL, bytes)
    "as they are": (tiles.HUBS, tiles.POOL, 227 << 10),
    "no hubs, a column at a time": (0, 1, 256),
    "some hubs, a few columns": (17, 5, 40 << 10),
}
LARGE = {
    "R-MAT": partial(generate.rmat, 10, 8),
    "co-papers": partial(generate.copapers, 500, 20),
    "mesh": partial(generate.mesh, 30, 30),
    "clique": partial(generate.clique, 140),
    "bipartite": partial(generate.complete_bipartite, 300, 40),
}


@pytest.fixture
def simulator():
    with runtime.using("sim"):
        yield


def limit(patch, limits):
    """Make plans work within limits; returns the properties of the device that are for cycles."""
    hubs, pool, shared = LIMITS[limits]
    patch.setattr(tiles, "HUBS", hubs)
    patch.setattr(tiles, "POOL", pool)
    return {"shared_per_block": shared, "sms": 2}


def check_at_edges(graph):
    """The kernels find the cliques and cycles of each edge that the native engine finds."""
    expected = four_at_edges.cliques_at(graph, cpu.support(graph, "natural"))[0]
    assert np.array_equal(cliques.plan(graph, 4, at_edges=True).count(), expected)
    assert np.array_equal(cycles.plan(graph, at_edges=True).count(), four_at_edges.cycles_at(graph))


def same_orbits(graph, per, engine):
    """Whether an engine finds the native engine's orbits."""
    found, expected = tcgpu.motifs(graph, per, engine=engine), tcgpu.motifs(graph, per)
    same = [np.array_equal(found[name], values) and found[name].dtype == np.int64 for name, values in expected.items()]
    return all(same) and [*found] == [*expected]


@pytest.mark.sim
@pytest.mark.usefixtures("compiled_kernels")
class TestWithoutAGpu:
    @pytest.mark.parametrize("limits", LIMITS)
    @pytest.mark.parametrize("name", GRAPHS)
    def test_counts_are_those_of_the_native_engine(self, name, limits, monkeypatch):
        graph, device = GRAPHS[name](), limit(monkeypatch, limits)
        own = graph.ordered("degree")
        with runtime.as_device(replace(runtime.facts(), **device)):
            assert cycles.plan(own).count() == four_at_edges.count_cycles(graph)
        for k in (4, 5):
            assert cliques.plan(graph, k).count() == tcgpu.cliques(graph, k)  # in any order, also with long columns

    @pytest.mark.parametrize("name", GRAPHS)
    def test_numbers_at_edges_are_those_of_the_native_engine(self, name, monkeypatch):
        for limits in LIMITS:
            with runtime.as_device(replace(runtime.facts(), **limit(monkeypatch, limits))):
                check_at_edges(GRAPHS[name]())  # in any order, also with long columns

    @pytest.mark.parametrize("k", [6, 7, 8])
    def test_larger_cliques(self, k):
        for name in ("karate", "two cliques"):
            assert tcgpu.cliques(GRAPHS[name](), k, engine="sim") == tcgpu.cliques(GRAPHS[name](), k)
        assert tcgpu.cliques(generate.clique(8), k, engine="sim") == comb(8, k)

    @settings(max_examples=15)
    @given(sparse_graphs(most_vertices=9), st.integers(1, 8))
    def test_small_graphs_of_any_kind(self, graph, k):
        assert tcgpu.motifs(graph, engine="sim", connected=False) == tcgpu.motifs(graph, connected=False)
        assert tcgpu.cliques(graph, k, engine="sim") == tcgpu.cliques(graph, k)

    def test_a_count_is_found_again_after_a_reset(self):
        graph = GRAPHS["karate"]().ordered("degree")
        for plan, found in ((cliques.plan(graph, 4), 11), (cliques.plan(graph, 5), 2), (cycles.plan(graph), 154)):
            run = plan.allocate()
            for _ in range(2):
                run.launch()
                assert run.result() == found
                run.reset()
        for plan, found in ((cliques.plan(graph, 4, True), 6 * 11), (cycles.plan(graph, True), 4 * 154)):
            run = plan.allocate()
            for _ in range(2):
                run.launch()
                assert run.result().sum() == found
                run.reset()

    def test_less_memory_makes_more_chunks_and_too_little_is_refused(self):
        graph = GRAPHS["hub over a mesh"]()
        for fitting in (64, 6):
            with runtime.as_device(replace(runtime.facts(), memory_bytes=4 * fitting * tiles.TILE_BYTES)):
                sizes = [size for _, size in tiles.chunks(graph, 3)[1]]
            assert sum(sizes) == 60 and max(sizes) == min(60, fitting)
        with runtime.as_device(replace(runtime.facts(), memory_bytes=1000)):
            for plan in (cliques.plan(graph, 4), cycles.plan(graph)):
                with pytest.raises(GraphError, match="bytes on the device, which has 1,000 free"):
                    plan.allocate()


@pytest.mark.sim
@pytest.mark.parametrize("limits", LIMITS)
def test_no_launch_has_a_fault(limits, simulator, monkeypatch):
    """No races, no index out of bounds, nothing read that was not written: in several blocks and chunks."""
    graph, device, launched = GRAPHS["karate"]().ordered("degree"), limit(monkeypatch, limits), set()

    def checked(function, blocks, threads, args, *, shared=0):
        launched.add(function.__name__)
        assert not check_launch(function, blocks, threads, args, shared=shared)

    monkeypatch.setattr("tcgpu.engines.sim.simulate", checked)
    with runtime.as_device(replace(runtime.facts(), **device)):
        assert cycles.plan(graph).count() == 154
        check_at_edges(graph)
        check_at_edges(generate.complete_bipartite(40, 3).ordered("degree"))  # paths for several warps of a block
    assert [cliques.plan(graph, k).count() for k in (4, 5, 6)] == [11, 2, 0]
    assert launched >= {"list_tiles", "fill_tiles", "count_fours", "fours_at_edges", "count_larger", "count_cycles"}


@pytest.mark.sim
@pytest.mark.parametrize("name, k", [("R-MAT", 5), ("co-papers", 4), ("mesh", 4), ("clique", 4), ("bipartite", 4)])
def test_larger_graphs_compiled_for_the_processor(name, k, processor, monkeypatch):
    """Threads take turns at random."""
    graph = LARGE[name]()
    expected = four_at_edges.count_cycles(graph), tcgpu.cliques(graph, k)
    for limits in sampling.share(LIMITS, name, of=2):
        device = limit(monkeypatch, limits)
        with processor.instead_of_the_simulator(seed=7, **(compiled.LARGE | device)):
            own = motifs.prepare(graph, "degree")
            assert (cycles.plan(own).count(), cliques.plan(own, k).count()) == expected
            check_at_edges(own)


class TestVerbs:
    def test_motifs_of_all_engines_are_the_same(self, compiled_kernels):
        graph = nx.les_miserables_graph()
        assert tcgpu.motifs(graph, engine="sim") == tcgpu.motifs(graph, engine="cpu") == tcgpu.motifs(graph)
        for k in range(1, 6):
            assert tcgpu.count_subgraphs(graph, k, engine="sim") == tcgpu.count_subgraphs(graph, k)

    def test_a_gpu_counts_graphs_with_many_edges(self, monkeypatch):
        graph, many = generate.grid(3, 3), generate.grid(600, 600)
        assert [device_graph.engine_for(*given) for given in ((graph,), (many,), (many, "sim"))] == [
            "cpu", "gpu" if runtime.ENGINE == "gpu" else "cpu", "sim"
        ]  # fmt: skip
        monkeypatch.setattr(runtime, "ENGINE", "gpu")
        assert [device_graph.engine_for(each) for each in (graph, many)] == ["cpu", "gpu"]

    @pytest.mark.parametrize("name, per", [("karate", "edge"), ("no edges", "edge"), ("two cliques", "vertex")])
    def test_orbits_of_all_engines_are_the_same(self, name, per):
        assert same_orbits(GRAPHS[name](), per, "sim")

    @pytest.mark.parametrize("verb, message", [
        (partial(tcgpu.count_subgraphs, k=4, kind="connected"), "kind 'connected' runs on cpu, not on 'sim'"),
        (partial(tcgpu.count_subgraphs, k=4, kind="independent"), "kind 'independent' runs on cpu, not on 'sim'"),
    ])  # fmt: skip
    def test_what_only_the_cpu_counts_is_refused(self, verb, message):
        with pytest.raises(EngineError, match=message):
            verb([(0, 1)], engine="sim")

    @pytest.mark.skipif(runtime.ENGINE == "gpu", reason="there is a GPU")
    def test_a_gpu_that_there_is_not_is_refused(self):
        for verb in (tcgpu.motifs, partial(tcgpu.cliques, k=4)):
            with pytest.raises(EngineError, match="no engine 'gpu' here"):
                verb([(0, 1)], engine="gpu")

    def test_large_cliques_are_for_the_native_engine(self):
        with pytest.raises(GraphError, match="cliques of up to 8 vertices are counted on a GPU, not of 9: "):
            tcgpu.cliques(generate.clique(10), 9, engine="sim")
        assert tcgpu.cliques(generate.clique(10), 9) == 10

    @pytest.mark.parametrize("verb, graph", [
        (tcgpu.motifs, generate.rmat(12)), (partial(tcgpu.motifs, per="edge"), generate.rmat(11)),
        (partial(tcgpu.cliques, k=4), generate.rmat(13)), (partial(tcgpu.cliques, k=8), generate.clique(30)),
    ])  # fmt: skip
    def test_long_simulator_runs_are_refused_with_the_estimate(self, verb, graph):
        with pytest.raises(GraphError, match="would take about .* in the simulator: .* or allow it by max_seconds="):
            verb(graph, engine="sim")

    def test_more_edges_than_32_bits_number_are_refused(self):
        graph = GRAPHS["karate"]()
        graph.m = 2**33
        for plan in (partial(cliques.plan, k=4), cycles.plan):
            with pytest.raises(GraphError, match="8,589,934,592 edges are too many for c.* on a GPU"):
                plan(graph)


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.mark.parametrize("limits", LIMITS)
    @pytest.mark.parametrize("name", [*GRAPHS, *(f"large {name}" for name in LARGE)])
    def test_counts_are_those_of_the_native_engine(self, name, limits, monkeypatch):
        graph = LARGE[name.removeprefix("large ")]() if name.startswith("large ") else GRAPHS[name]()
        limit(monkeypatch, limits)
        assert tcgpu.motifs(graph, engine="gpu") == tcgpu.motifs(graph)
        assert same_orbits(graph, "vertex", "gpu") and same_orbits(graph, "edge", "gpu")
        for k in (4, 5):
            assert tcgpu.cliques(graph, k, engine="gpu") == tcgpu.cliques(graph, k)

    @pytest.mark.parametrize("make", [
        partial(generate.rmat, 16), partial(generate.mesh, 500, 500), partial(generate.clique, 900),
        partial(generate.copapers, 20_000), partial(generate.star, 300_000), partial(generate.road, 300, 300),
    ])  # fmt: skip
    def test_large_graphs(self, make):
        graph = make()
        assert tcgpu.motifs(graph, engine="gpu", connected=False) == tcgpu.motifs(graph, connected=False)
        assert same_orbits(graph, "edge", "gpu")

    @pytest.mark.parametrize("k", [5, 6, 7, 8])
    def test_larger_cliques(self, k):
        for graph in (generate.rmat(11, 8), generate.clique(40), generate.watts_strogatz(20_000, 24, 0.1, seed=1)):
            assert tcgpu.cliques(graph, k, engine="gpu") == tcgpu.cliques(graph, k)
