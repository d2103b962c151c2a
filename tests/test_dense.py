"""Rows of bits from raw edges: every kernel on graphs of few vertices, and when a count takes them."""

import numpy as np
import pytest

import tcgpu
from tcgpu import GraphError, generate, records
from tcgpu.engines import runtime
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
        blocks = 1 if function is dense.few_kernel.py_func else 2  # its blocks wait for each other
        assert not list(map(str, check_launch(function, blocks, threads, args, shared=shared)))

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


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Raw edges are taken by the simulator as by a GPU."""
    monkeypatch.setattr(runtime.named("sim"), "in_main_memory", False, raising=False)
    with runtime.using("sim"):
        yield


@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize("name", GRAPHS)
def test_few_vertices_are_counted_before_their_number_is_known(name, dtype, processor, as_on_a_gpu):
    graph = GRAPHS[name]
    edges, expected = raw(graph, dtype), tcgpu.count(graph, engine="cpu")
    with processor.instead_of_the_simulator(seed=5):
        for given in (edges, (*edges, graph.n)):
            prepared = ADAPTIVE.prepare(given, None)
            assert (prepared.n, prepared.found) == (graph.n, expected)
            plan = ADAPTIVE.plan(prepared)
            run = plan.allocate()
            for _ in range(2):  # and again, on bits that are set
                run.launch()
                assert plan.count() == run.result() == expected
                run.reset()
        with pytest.raises(GraphError, match=f"from 0 to n - 1 = {graph.n - 2:,}; the edges have {graph.n - 1:,}"):
            ADAPTIVE.prepare((*edges, graph.n - 1), None)


@pytest.mark.sim
@pytest.mark.parametrize("last", [63, 64, 127, 128])
def test_more_vertices_than_few_are_counted_in_other_ways(last, as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(dense, "MOST_FEW", 128)
    u, v = np.array([0, 1, 2, last, 2], np.int32), np.array([1, 2, 0, 1, last], np.int32)
    prepared = ADAPTIVE.prepare((u, v), None)
    assert prepared.found == (2 if last < 128 else None) and prepared.n == last + 1
    assert ADAPTIVE.plan(prepared).count() == 2
    for wrong in (-1, -(2**40)):
        with pytest.raises(GraphError, match=f"the edges have {wrong:,}"):
            ADAPTIVE.prepare((np.append(u, 0).astype(np.int64), np.append(v, wrong)), None)


@pytest.mark.sim
def test_the_launch_for_few_vertices_has_no_faults(launched):
    graph = generate.random(70, 300, seed=2)
    u, v = raw(graph)
    with runtime.using("sim"):
        assert dense.count_few(u, v) == [-1, 69, tcgpu.count(graph, engine="cpu")]
    assert launched == ["few_kernel"]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [300, 1000, 2048, 2049, 5000])
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


@pytest.mark.parametrize("time", ["kernel_ms", "raw_ms"])
def test_no_dense_graph_of_the_record_takes_longer_than_in_pytorch(time):
    ours, theirs = (
        {row["graph"]: row[time] for row in records.reference("dense") if row["way"] == way}
        for way in ("tcgpu", "PyTorch")
    )
    assert ours.keys() == theirs.keys() and len(ours) == 30
    assert all(ours[graph] < theirs[graph] for graph in ours)


@pytest.mark.gpu
def test_which_graphs_have_rows_of_bits():
    def kernels(given, **knobs):
        return [step.kernel.__name__ for step in ADAPTIVE.plan(ADAPTIVE.prepare(given, None), **knobs).steps]

    sparse, clique = generate.rmat(12, seed=1), generate.clique(1500)
    assert kernels(sparse.edges()) == ["edges_kernel"]
    assert kernels(clique.edges()) == ["few_kernel"]
    assert kernels(generate.clique(2100).edges()) == kernels(clique) == ["tiles_kernel"]
    for given, knobs in ((sparse, {}), (sparse.edges(), {"words": 0}), (clique.edges(), {"share": (0, 2)})):
        assert not {"tiles_kernel", "edges_kernel", "few_kernel"} & {*kernels(given, **knobs)}
    assert "fill_bits" not in kernels(generate.mesh(200, 200).edges())
    bipartite = generate.complete_bipartite(1000, 1000)
    assert kernels(bipartite) != ["tiles_kernel"]  # merging finds in no time that there is nothing to find
