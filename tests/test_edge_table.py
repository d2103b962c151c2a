"""Few raw edges, counted in a hash table: every kernel, and when a count takes them."""

from importlib import import_module

import numpy as np
import pytest
from test_dense import launched, raw  # noqa: F401  launched: a fixture

import tcgpu
from tcgpu import GraphError, generate, records
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, uint32
from tcgpu.kernels.adaptive import dense, edge_table
from tcgpu.registry import METHODS, on_engine

ADAPTIVE = METHODS["adaptive"]
SIZES = 100_000, 300_000, 1_000_000  # in the record
GRAPHS = {
    "no edge": generate.empty(3),
    "an edge": generate.path(2),
    "clique": generate.clique(70),
    "random": generate.random(150, 3000, seed=2),
    "bipartite": generate.complete_bipartite(40, 90),
    "star": generate.star(300),
    "skewed": generate.rmat(9, 6, seed=1),
    "mesh": generate.mesh(20, 30),
}
hubs = pytest.mark.parametrize("neighbours", [1, 20, 10_000], ids=["all hubs", "some hubs", "no hub"])


@hubs
@pytest.mark.parametrize("name", GRAPHS)
def test_counts_of_raw_edges(name, neighbours, processor, monkeypatch):
    monkeypatch.setattr(edge_table, "NEIGHBOURS", neighbours)
    graph = GRAPHS[name]
    with processor.instead_of_the_simulator(seed=5):
        assert edge_table.plan(*raw(graph), graph.n).count() == tcgpu.count(graph, engine="cpu")


@hubs
def test_counts_of_many_sparse_graphs(neighbours, processor, monkeypatch):
    """In some, vertex 0 is the second one of an edge whose rows are those of the first: it has no edge to itself."""
    monkeypatch.setattr(edge_table, "NEIGHBOURS", neighbours)
    with processor.instead_of_the_simulator(seed=5):
        for seed in range(40):
            graph = generate.random(40, 90, seed=seed)
            assert edge_table.plan(*raw(graph), graph.n).count() == tcgpu.count(graph, engine="cpu"), seed


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64])
def test_ends_of_any_type(dtype, processor):
    graph = GRAPHS["skewed"]
    with processor.instead_of_the_simulator():
        assert edge_table.plan(*raw(graph, dtype), graph.n).count() == tcgpu.count(graph, engine="cpu")


@pytest.mark.sim
@hubs
def test_launches_have_no_faults(neighbours, launched, monkeypatch):  # noqa: F811
    monkeypatch.setattr(edge_table, "NEIGHBOURS", neighbours)
    graph = generate.rmat(6, 6, seed=2)
    with on_engine(ADAPTIVE, "sim"):
        assert edge_table.plan(*raw(graph), graph.n).count() == tcgpu.count(graph, engine="cpu")
    assert launched == ["count_degrees", "number_hubs", "insert_edges", "place_columns", "list_rows", "find_edges"]


@pytest.mark.sim
def test_edges_that_all_want_the_last_entry_are_found(monkeypatch):
    @cuda.jit(device=True)
    def last_entry(a, b, shift):
        return (uint32(1) << uint32(32 - shift)) - uint32(1)

    graph = generate.rmat(5, 4, seed=2)
    monkeypatch.setattr(edge_table, "entry_of", last_entry)
    with runtime.using("sim"):
        assert edge_table.plan(*raw(graph), graph.n).count() == tcgpu.count(graph, engine="cpu") > 0


@pytest.mark.sim
@hubs
def test_rows_are_written_once_and_the_fewer_ones_looked_up(neighbours, monkeypatch):
    monkeypatch.setattr(edge_table, "NEIGHBOURS", neighbours)
    graph = GRAPHS["skewed"]
    u, v = raw(graph)
    with runtime.using("sim"):
        arrays = edge_table.plan(u, v, graph.n).allocate().arrays
    number = (arrays["vertices"] & np.uint64(2**32 - 1)).astype(int)
    assert sorted(number[number >= graph.n]) == list(range(graph.n, graph.n + arrays["sizes"][edge_table.HUBS]))
    a, b = np.array(graph.edges())
    a, b = number[np.where(arrays["vertices"][a] < arrays["vertices"][b], (a, b), (b, a))]
    starts, lengths = (arrays["columns"] >> np.uint64(32)).astype(int), arrays["lengths"]
    written = [(j, row) for j in range(lengths.size) for row in arrays["rows"][starts[j] : starts[j] + lengths[j]]]
    assert sorted(written) == sorted(zip(a, b, strict=True))
    few, many, *_ = (int(size) for size in arrays["sizes"])
    listed = np.append(arrays["pieces"][:few], arrays["pieces"][u.size - many :]) & np.uint64(2**32 - 1)
    expected = np.minimum(lengths[a], lengths[b])[lengths[a] > 1]
    assert sorted(listed) == sorted(expected[expected > 0])


def kernels(given, **knobs):
    """The names of the counting kernels that are chosen."""
    return [step.kernel.__name__ for step in ADAPTIVE.plan(ADAPTIVE.prepare(given, None), **knobs).steps]


@pytest.mark.sim
def test_few_raw_edges_of_many_vertices_are_counted_so(large, monkeypatch):
    monkeypatch.setattr(runtime.current(), "in_main_memory", False, raising=False)
    few, edges = (tuple(end.astype(np.int32) for end in generate.mesh(8, n).edges()) for n in (8, 300))
    assert kernels(few) == ["few_kernel"] and kernels(edges) == ["edges_kernel"]
    monkeypatch.setattr(dense, "MOST_ROWS", 10)
    assert kernels(edges) == ["find_edges"]
    assert "find_edges" not in kernels(edges, words=0) + kernels(edges, share=(0, 2))
    monkeypatch.setattr(import_module("tcgpu.kernels.adaptive.plan"), "FEW_RAW", 10)
    assert "find_edges" not in kernels(edges)


def test_what_the_page_says_of_calls_is_the_record(root):
    page = " ".join((root / "docs/measured.md").read_text(encoding="utf-8").split())
    rows = records.reference("raw-calls")
    raw, again = (
        [[row[ms] for row in rows if row["asked"] == size] for size in SIZES] for ms in ("raw_ms", "again_ms")
    )
    assert {len(each) for each in raw} == {64}
    median, longest, of_graphs = (
        "{:.2f}, {:.2f} and {:.2f}".format(*map(what, of))
        for what, of in ((np.median, raw), (max, raw), (np.median, again))
    )
    assert f"raw edges take {median} ms, at most {longest}; the graph again takes {of_graphs}." in page
    assert {row["kernel"] for row in rows if row["vertices"] > dense.MOST_ROWS} == {"find_edges"}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize(
    "draw",
    [
        lambda: generate.rmat(15, 16, seed=3), lambda: generate.random(50_000, 400_000, seed=1),
        lambda: generate.mesh(300, 300), lambda: generate.star(30_000), lambda: generate.path(100_000),
    ],
    ids=["R-MAT", "random", "mesh", "star", "path"],
)  # fmt: skip
def test_raw_edges_on_a_gpu(draw, dtype):
    import cupy

    graph = draw()
    edges = raw(graph, dtype)
    expected = tcgpu.count(graph, engine="cpu")
    on_gpu = tuple(map(cupy.asarray, edges))
    assert kernels(on_gpu) == ["find_edges"]
    assert tcgpu.count(on_gpu) == expected
    assert tcgpu.count((*edges, graph.n + 5), engine="gpu") == expected
    with pytest.raises(GraphError, match=f"vertices are numbered from 0 to n - 1 = {graph.n - 2:,}; the edges have"):
        tcgpu.count((*edges, graph.n - 1), engine="gpu")
