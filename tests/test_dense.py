"""Rows of bits from raw edges: every kernel on graphs of few vertices, and when a count takes them."""

import numpy as np
import pytest

import tcgpu
from tcgpu import GraphError, generate
from tcgpu.insight.faults import check_launch
from tcgpu.kernels.adaptive import dense
from tcgpu.registry import METHODS, on_engine

ADAPTIVE = METHODS["adaptive"]
GRAPHS = {
    "no edge": generate.empty(3),
    "one tile": generate.clique(64),
    "a vertex more": generate.clique(65),
    "random": generate.random(150, 3000, seed=2),
    "bipartite": generate.complete_bipartite(40, 90),
    "sparse": generate.rmat(9, 4, seed=1),
}
ways = pytest.mark.parametrize("by_tiles", [True, False], ids=["tiles", "edges"])


def raw(graph, dtype=np.int32):
    """Edges in both directions, in random order, some of them several times, with loops: (u, v)."""
    random = np.random.default_rng(3)
    v, u = graph.edges()
    u, v = np.concatenate([u, v, u[::3], [0, graph.n - 1]]), np.concatenate([v, u, v[::3], [0, graph.n - 1]])
    order = random.permutation(u.size)
    return u[order].astype(dtype), v[order].astype(dtype)


@ways
@pytest.mark.parametrize("name", GRAPHS)
def test_counts_of_raw_edges(name, by_tiles, processor):
    graph = GRAPHS[name]
    with processor.instead_of_the_simulator(seed=5):
        assert dense.plan(*raw(graph), graph.n, by_tiles).count() == tcgpu.count(graph, engine="cpu")


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64])
def test_ends_of_any_type(dtype, processor):
    graph = GRAPHS["sparse"]
    with processor.instead_of_the_simulator():
        assert dense.plan(*raw(graph, dtype), graph.n, False).count() == tcgpu.count(graph, engine="cpu")


@pytest.fixture
def launched(monkeypatch):
    """The names of the kernels that the simulator launches, each of which must have no faults."""

    def checked(function, blocks, threads, args, *, shared=0):
        names.append(function.__name__)
        assert not list(map(str, check_launch(function, 2, threads, args, shared=shared)))

    names = []
    monkeypatch.setattr("tcgpu.engines.sim.simulate", checked)
    return names


@pytest.mark.sim
@ways
def test_launches_have_no_faults(by_tiles, launched):
    graph = generate.random(70, 300, seed=2)
    with on_engine(ADAPTIVE, "sim"):
        dense.plan(*raw(graph), graph.n, by_tiles).count()
    assert launched == ["fill_bits", "tiles_kernel" if by_tiles else "edges_kernel"]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [300, 1000, 5000])
@pytest.mark.parametrize("density", [0.02, 0.3, 1])
def test_raw_edges_on_a_gpu(n, density):
    import cupy

    joined = np.triu(np.random.default_rng(n).random((n, n)) < density, 1)
    edges = raw(tcgpu.Graph.from_edges(*np.nonzero(joined), n))
    expected = tcgpu.count(edges, engine="cpu")
    assert tcgpu.count(tuple(map(cupy.asarray, edges))) == expected
    assert tcgpu.count((*edges, n), engine="gpu") == expected
    assert tcgpu.count(edges, engine="gpu", hubs=64) == expected  # with a knob columns are made
    assert tcgpu.count(tcgpu.Graph.from_edges(*edges), engine="gpu") == expected
    with pytest.raises(GraphError, match=f"vertices are numbered from 0 to n - 1 = {n - 2:,}; the edges have"):
        tcgpu.count((*edges, n - 1), engine="gpu")


@pytest.mark.gpu
def test_which_graphs_have_rows_of_bits():
    def kernels(given, **knobs):
        return [step.kernel.__name__ for step in ADAPTIVE.plan(ADAPTIVE.prepare(given, None), **knobs).steps]

    few, clique = generate.rmat(12, seed=1), generate.clique(1500)
    assert kernels(few.edges()) == ["edges_kernel"]
    assert kernels(clique.edges()) == kernels(clique) == ["tiles_kernel"]
    for given, knobs in ((few, {}), (few.edges(), {"words": 0}), (clique, {"share": (0, 2)})):
        assert not {"tiles_kernel", "edges_kernel"} & {*kernels(given, **knobs)}
    assert "fill_bits" not in kernels(generate.mesh(200, 200).edges())
    bipartite = generate.complete_bipartite(1000, 1000)
    assert kernels(bipartite) != ["tiles_kernel"]  # merging finds in no time that there is nothing to find
