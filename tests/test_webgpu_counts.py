"""Every kernel of the papers by WebGPU: the native engine's counts, whatever the graph and the shape of the launch.

`pytest --full` tries all combinations, and well-known graphs up to 200,000 edges; else a sample: SwiftShader is slow.
"""

import random

import numpy as np
import pytest
import sampling
from kernel_shapes import KNOBS, PUBLISHED, QUICK, settings, small_graphs, well_known
from sampling import share

import tcgpu
from tcgpu import EngineError, Graph, KernelError, cpu
from tcgpu.engines import runtime
from tcgpu.kernels.bisson_fatica import k_truss
from tcgpu.registry import METHODS
from tcgpu.truss import native_peeling

GRAPHS = small_graphs()
OF_PAPERS = [
    name for name, method in METHODS.items() if "webgpu" in method.engines and name not in ("adaptive", "levels")
]
WITH_SUPPORT = [name for name in OF_PAPERS if name.startswith("bitmap_")]
MOST_EDGES = 200_000
THREADS = 1, 2, 3, 7, 31, 32, 33, 64, 65, 100, 127, 128, 255, 256
CHOICES = {  # settings of the methods that choose the shape themselves
    "report_auto": [{}, {"threshold": 0}, {"threshold": 10**9}, {"published": True}],
    "bitmap_auto": [
        {}, {"longest_thread": 10**6}, {"longest_thread": 0}, {"longest_thread": 0, "mean_warp": 0},
        {"longest_thread": 0, "mean_warp": 0, "vertices_shared": 0},
        {"published": True},
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def webgpu():
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    with runtime.using("webgpu"):
        yield


@pytest.mark.parametrize("method", [*OF_PAPERS, "adaptive"])
def test_counts_for_every_shape(method):
    combined = [(name, graph, knobs) for name, graph in GRAPHS.items() for knobs in settings(method, graph)]
    for name, graph, knobs in share(combined, method, of=len(combined) // 2):
        assert METHODS[method].plan(graph, **knobs).count() == cpu.plan(graph).count(), (name, knobs)


def test_levels():
    """Its kernel takes seconds to compile in software."""
    for name, graph in share(GRAPHS.items(), "levels", of=len(GRAPHS)):
        for knobs in share(settings("levels", graph), name, of=10**6):
            assert METHODS["levels"].plan(graph, **knobs).count() == cpu.plan(graph).count(), (name, knobs)


@pytest.mark.parametrize("method", OF_PAPERS)
def test_counts_of_well_known_graphs(method, graphs_folder):
    for name, graph, expected in well_known(graphs_folder, MOST_EDGES if sampling.full else 100):
        assert METHODS[method].plan(graph, **QUICK.get(method, {})).count() == expected, name


def drawn(seed):
    """A random graph, and settings of a few methods, with odd shapes."""
    draw, random_edges = random.Random(seed), np.random.default_rng(seed)
    n, m = draw.choice([1, 2, 3, 10, 40, 100, 300, 700]), draw.choice([0, 1, 3, 20, 100, 500, 1500, 3000])
    u, v = random_edges.integers(0, n, (2, m))
    if draw.random() < 0.3:
        u = np.minimum(u, v) // 3  # few long columns
    methods = []
    for method in draw.sample(OF_PAPERS, 4):
        knobs = draw.choice(CHOICES.get(method, [{}]))
        names = METHODS[method].knobs
        knobs |= {"threads": draw.choice(THREADS)} if "threads" in names else {}
        knobs |= {"blocks": draw.choice([1, 2, 3, 7, 100, max(1, n), 1000])} if "blocks" in names else {}
        knobs |= {"lanes": draw.choice([1, 2, 3, 5, 7, 8, 16, 31, 32])} if "lanes" in names else {}
        methods.append((method, knobs | draw.choice([{}, *KNOBS.get(method, [{}]), *PUBLISHED.get(method, [])])))
    return Graph.from_edges(u, v, n), methods


@pytest.mark.parametrize("seeds", share([range(k, k + 25) for k in range(0, 500, 25)], "random", of=20), ids=str)
def test_counts_of_random_graphs_with_odd_shapes(seeds):
    for seed in seeds if sampling.full else seeds[:2]:
        graph, methods = drawn(seed)
        expected = cpu.plan(graph).count()
        for method, knobs in methods:
            assert METHODS[method].plan(graph, **knobs).count() == expected, (seed, method, knobs)


@pytest.mark.parametrize("method", [*WITH_SUPPORT, "adaptive"])
def test_supports(method):
    for name, graph in share(GRAPHS.items(), method, of=len(GRAPHS)):
        expected = cpu.support(graph, "natural")
        assert np.array_equal(tcgpu.support(graph, method=method, engine="webgpu"), expected), name
        if method in WITH_SUPPORT:
            assert np.array_equal(METHODS[method].support_plan(graph, published=True).count(), expected), name


def test_trusses():
    for name, graph in share(GRAPHS.items(), "k_truss", of=len(GRAPHS)):
        numbers = native_peeling.numbers(graph)
        assert np.array_equal(k_truss.plan(graph).count(), numbers), name
        assert np.array_equal(k_truss.plan(graph, 5).count() == 0, numbers >= 5), name
        printed = k_truss.plan(graph, 5, method="block_global", published=True)
        assert np.array_equal(printed.count() == 0, numbers >= 5), name


@pytest.mark.parametrize("method", [*OF_PAPERS, "adaptive"])
def test_graphs_of_no_and_one_vertex(method):
    for graph in (Graph.from_edges([], [], 0), Graph.from_edges([], [], 1), Graph.from_edges([0], [1])):
        assert tcgpu.count(graph, method, engine="webgpu") == 0


def test_adaptive_says_what_it_needs():
    """Where its plan has arrays of 16 bits: if some columns are long, and most are not."""
    skewed = 3000 * np.random.default_rng(1).random(60_000) ** 3
    graph = Graph.from_edges(np.repeat(np.arange(3000), 20), skewed.astype(np.int64), 3000)
    with pytest.raises(KernelError, match=r"adaptive.*line \d+: kernel \w+: near is an array of uint16"):
        tcgpu.count(graph, "adaptive", engine="webgpu")


def test_too_little_memory_is_reported_with_a_way_out_that_works(monkeypatch):
    monkeypatch.setattr(runtime.named("webgpu"), "memory_free", lambda: 100)
    for method in ("naive", "bitmap_block_global"):
        with pytest.raises(tcgpu.GraphError, match="100 free.*: engine='cpu' takes the memory of the host$"):
            tcgpu.count(GRAPHS["wheel"], method, engine="webgpu")


@pytest.mark.parametrize("verb, more", [(tcgpu.k_truss, (4,)), (tcgpu.truss_numbers, ()), (tcgpu.motifs, ())])
def test_verbs_that_need_more_than_kernels_say_so(verb, more):
    with pytest.raises(EngineError, match="webgpu"):
        verb(GRAPHS["wheel"], *more, engine="webgpu")
