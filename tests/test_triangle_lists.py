"""Lists of triangles from GPUs and the simulator: those of the CPU, in numbers of the caller, in pieces of any size."""

import numpy as np
import pytest

import tcgpu
from tcgpu import EngineError, GraphError, MethodError
from tcgpu.insight.faults import check_launch
from tcgpu.kernels import triangle_lists

pages = np.arange(2, 70)
GRAPHS = {
    "skewed": tcgpu.generate.rmat(6, 4, seed=3),
    "long columns": tcgpu.Graph.from_edges([0, *0 * pages, *pages], [1, *pages, *0 * pages + 1]),
    "clique": tcgpu.generate.clique(12),
    "mesh": tcgpu.generate.mesh(5, 6),
    "no triangle": tcgpu.generate.star(40),
    "no edge": tcgpu.generate.empty(3),
}
engines = pytest.mark.parametrize(
    "engine",
    [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("sim", "gpu", "webgpu")],
)


def in_order(chunks):
    rows = np.concatenate([np.empty((0, 3), np.int32), *chunks])
    assert rows.dtype == np.int32 and (np.diff(rows, axis=1) > 0).all()
    return rows[np.lexsort(rows.T[::-1])].tolist()


@engines
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("order", [None, "degree", "random"])
def test_the_triangles_are_those_of_the_cpu(name, order, engine, monkeypatch):
    graph = GRAPHS[name]
    expected = in_order(tcgpu.list_triangles(graph, engine="cpu"))
    monkeypatch.setattr(triangle_lists, "MOST_ROWS", 100)  # in several pieces
    chunks = [*tcgpu.list_triangles(graph, 7, engine=engine, order=order, max_seconds=300)]
    assert all(1 <= len(rows) <= 7 for rows in chunks)
    assert in_order(chunks) == expected


@engines
def test_raw_edges_and_some_vertices(engine):
    graph = GRAPHS["skewed"]
    v, u = graph.edges()
    edges = np.append(v, u[:9]), np.append(u, v[:9])  # some of them twice
    assert in_order(tcgpu.list_triangles(edges, engine=engine)) == in_order(tcgpu.list_triangles(graph, engine="cpu"))
    some = in_order(tcgpu.list_triangles(graph, nodes=[60, 5], engine=engine))
    assert some == in_order(tcgpu.list_triangles(graph, nodes=[60, 5], engine="cpu"))


@engines
def test_chunks_that_are_kept_stay_as_they_are_and_other_engines_run_in_between(engine, monkeypatch):
    graph = GRAPHS["skewed"]
    monkeypatch.setattr(triangle_lists, "MOST_ROWS", 50)
    kept, counted = [], set()
    for rows in tcgpu.list_triangles(graph, 11, engine=engine):
        kept.append(rows)
        counted |= {tcgpu.count(graph, engine="cpu"), tcgpu.count(graph, "naive", engine="sim")}
    assert counted == {sum(map(len, kept))}
    assert in_order(kept) == in_order(tcgpu.list_triangles(graph, engine="cpu"))
    again = np.concatenate([*tcgpu.list_triangles(graph, engine=engine)])
    assert np.array_equal(np.concatenate(kept), again)  # in the same order, in pieces or at once


@pytest.mark.gpu
def test_large_graphs_of_the_host_and_of_the_device():
    import cupy

    graph = tcgpu.generate.rmat(16, seed=3)
    expected = tcgpu.triangles(graph, engine="cpu")
    for given in (graph, graph.edges(), tuple(map(cupy.asarray, graph.edges()))):
        rows = np.concatenate([*tcgpu.list_triangles(given)])  # by the GPU
        assert np.array_equal(np.bincount(rows.ravel(), minlength=graph.n), expected)
        assert (np.diff(rows, axis=1) > 0).all() and len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.sim
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_launches_have_no_faults(order, monkeypatch):
    def checked(function, blocks, threads, args, *, shared=0):
        launched.append(function.__name__)
        assert not list(map(str, check_launch(function, 3, 64, args, shared=shared)))

    launched = []
    monkeypatch.setattr("tcgpu.kernels.simulated.check", lambda *args: None)
    monkeypatch.setattr("tcgpu.engines.sim.simulate", checked)
    listed = [*tcgpu.list_triangles(GRAPHS["skewed"], engine="sim", order=order)]
    assert listed and launched.count("common_rows") == 2


def test_what_cannot_be_is_refused():
    with pytest.raises(EngineError, match="method 'cpu' runs on cpu, not on 'sim'"):
        tcgpu.list_triangles(GRAPHS["mesh"], method="cpu", engine="sim")
    with pytest.raises(MethodError, match="chunk is a whole number from 1 to .*, not 0"):
        tcgpu.list_triangles(GRAPHS["mesh"], 0, engine="sim")
    with pytest.raises(GraphError, match="list_triangles .* in the simulator"):
        next(tcgpu.list_triangles(tcgpu.generate.rmat(14, seed=1), engine="sim", max_seconds=1))
