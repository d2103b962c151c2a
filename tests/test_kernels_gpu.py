"""Every kernel on a real GPU: the native engine's counts, at any shape; timing, memory and facts of `runtime`."""

from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from kernel_shapes import MOST_EDGES, settings, small_graphs, well_known

import tcgpu
from tcgpu import Graph, GraphError, cpu
from tcgpu.engines import runtime
from tcgpu.kernels import device_graph
from tcgpu.kernels.device import columns
from tcgpu.kernels.report import column_block, naive
from tcgpu.registry import METHODS

pytestmark = pytest.mark.gpu
ON_GPU = [name for name, method in METHODS.items() if "gpu" in method.engines]


@pytest.fixture(scope="module")
def large():
    """A graph of a few million edges with some long columns."""
    rng = np.random.default_rng(5)
    n = 200_000
    u = (n * rng.random(4_000_000) ** 3).astype(np.int64)
    return Graph.from_edges(u, rng.integers(0, n, u.size), n)


@pytest.mark.parametrize(
    "verb", [tcgpu.motifs, partial(tcgpu.cliques, k=4), tcgpu.clustering, tcgpu.transitivity, tcgpu.similarity]
)
def test_many_raw_edges_are_cleaned_on_the_gpu(verb, monkeypatch):
    """With loops and repeats; what is no graph is refused in the words of the host."""
    u, v = np.random.default_rng(3).integers(0, 9_000, (2, device_graph.MANY_EDGES + 9))
    made = []
    clean = device_graph.DeviceGraph.from_edges
    monkeypatch.setattr(device_graph.DeviceGraph, "from_edges", lambda *edges: made.append(edges) or clean(*edges))
    found, expected = verb((u, v)), verb((u, v), engine="cpu")
    assert np.array_equal(found, expected) if isinstance(found, np.ndarray) else found == expected
    assert len(made) == 1
    for given in ((u, v, 8_000), (1, 2), (None, None), 2 * (np.full(u.size, "name"),), 2 * (u.astype(object),)):
        said = []
        for engine in (None, "cpu"):
            with pytest.raises(GraphError) as error:
                verb(given, engine=engine)
            said.append(str(error.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("name, graph", small_graphs().items())
@pytest.mark.parametrize("method", ON_GPU)
def test_counts_for_every_shape(method, name, graph):
    expected = cpu.plan(graph).count()
    for knobs in settings(method):
        assert METHODS[method].plan(graph, **knobs).count() == expected, knobs


@pytest.mark.parametrize("method", ON_GPU)
def test_counts_of_well_known_graphs(method, graphs_folder):
    tried = 0
    for name, graph, expected in well_known(graphs_folder, MOST_EDGES["gpu"].get(method, float("inf"))):
        for knobs in settings(method, graph):
            if graph.m <= 50_000 or knobs.get("threads") != 1:
                assert METHODS[method].plan(graph, **knobs).count() == expected, (name, knobs)
        tried += 1
    assert tried >= (7 if method in MOST_EDGES["gpu"] else 20)


@pytest.mark.parametrize("order", ["natural", "degree", "random"])
@pytest.mark.parametrize("method", [method for method in ON_GPU if method not in MOST_EDGES["gpu"]])
def test_counts_of_a_large_graph(method, order, large):
    assert METHODS[method].plan(large.ordered(order)).count() == cpu.plan(large).count()


def test_the_simulator_runs_beside_the_gpu():
    graph = small_graphs()["skewed"]
    assert tcgpu.count(graph, "naive", engine="sim") == tcgpu.count(graph, "naive", engine="gpu")


def test_col_ptr_is_found_on_the_device(large):
    col_of = runtime.to_device(large.col_of)
    col_ptr = runtime.device_array(large.n + 1, np.int64, -1)
    for step in columns.col_ptr_steps(large.n, large.m):
        step.run({"col_of": col_of, "col_ptr": col_ptr})
    assert np.array_equal(runtime.to_host(col_ptr), large.col_ptr)


def test_a_block_may_have_all_of_its_shared_memory(large):
    plan = column_block.plan(large, columns=1)
    full = replace(plan, steps=[replace(plan.steps[0], shared=runtime.facts().shared_per_block)])
    assert full.count() == cpu.plan(large).count()


def test_a_smaller_cache_changes_times_and_no_counts(large):
    kernel = naive.naive_kernel
    try:
        for percent in (0, 100, 50):
            kernel.carve_out(percent)
            assert naive.plan(large).count() == cpu.plan(large).count()
    finally:
        kernel.carve_out(-1)


def test_a_graph_that_does_not_fit_is_refused(large):
    blocks = runtime.memory_free() // (large.n // 8) + 1000
    assert blocks < 2**31
    plan = METHODS["bitmap"].plan(large, blocks=10**6)
    more = {**plan.created, "bits": (blocks * (large.n // 32), np.uint32, 0)}
    with pytest.raises(GraphError, match="bitmap needs .* bytes on the device"):
        replace(plan, created=more).count()


def test_memory_is_freed(large):
    pool = import_module("cupy").get_default_memory_pool()  # this process's own; others may use the GPU
    METHODS["naive"].plan(large).count()
    before = pool.total_bytes()
    for _ in range(20):
        METHODS["naive"].plan(large).count()
    assert pool.total_bytes() == before


def test_events_measure_the_device_and_not_python(large):
    run = METHODS["naive"].plan(large).allocate()
    run.launch()

    def least(work):
        return min(runtime.elapsed_ms(work, run.reset) for _ in range(5))

    ratios = (least(lambda: [run.launch() for _ in range(3)]) / least(run.launch) for _ in range(10))
    assert any(2 < ratio < 4.5 for ratio in ratios)  # other processes may use the same GPU


def test_facts_of_a_gpu():
    facts = runtime.facts()
    assert "NVIDIA" in facts.name or "Tesla" in facts.name or facts.name
    assert facts.sms > 1 and facts.shared_per_block > 48 << 10 and facts.driver and facts.numba_cuda


def test_arrays_of_other_libraries():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    pairs = cupy.asarray([[0, 1], [0, 2], [1, 2]], dtype=cupy.int32)
    assert Graph.from_edges(pairs[:, 0], pairs[:, 1]).m == 3
    assert runtime.to_host(pairs[:, 1]).tolist() == [1, 2, 2]
    assert runtime.to_device(pairs).data.ptr == pairs.data.ptr, "used where it lies"
