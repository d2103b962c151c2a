"""The verbs take the same graphs and the same keywords, and refuse by name what they do not have."""

import inspect

import numpy as np
import pytest

import tcgpu
from tcgpu import EngineError, Graph, GraphError, MethodError, api
from tcgpu.engines import runtime
from tcgpu.kernels import device_graph

KITE = [(0, 1), (1, 2), (2, 0), (2, 3)]
VERBS = (
    tcgpu.count, tcgpu.triangles, tcgpu.support, tcgpu.list_triangles, tcgpu.reduce_triangles, tcgpu.k_truss,
    tcgpu.truss_numbers,
)  # fmt: skip
SAME = {"method", "engine", "order", "executor", "parts", "progress", "max_seconds"}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_every_verb_takes_the_same_keywords(verb):
    assert set(inspect.signature(verb).parameters) >= SAME


def test_a_graph_may_be_a_path(tmp_path):
    path = tmp_path / "kite.mtx"
    tcgpu.write(tcgpu.Graph.from_edges(np.array(KITE)), path)
    assert tcgpu.count(path) == tcgpu.count(str(path)) == 1
    assert tcgpu.triangles(path).tolist() == [1, 1, 1, 0]
    assert tcgpu.support(path).sum() == 3 and tcgpu.truss_numbers(path).max() == 3
    assert tcgpu.transitivity(path, engine="cpu") == 3 / 5 and not tcgpu.is_triangle_free(path)
    assert [rows.tolist() for rows in tcgpu.list_triangles(path)] == [[[0, 1, 2]]]
    assert tcgpu.clustering(path, method="cpu", order="degree").tolist() == [1, 1, 1 / 3, 0]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: tcgpu.count(KITE, parts=3), MethodError, "give executor="),
        (lambda: tcgpu.triangles(KITE, parts=3), MethodError, "give executor="),
        (lambda: tcgpu.list_triangles(KITE, executor="threads"), MethodError, "does not run on an executor"),
        (lambda: tcgpu.list_triangles(KITE, method="naive"), MethodError, "list_triangles has the methods cpu, not"),
        (lambda: tcgpu.list_triangles(KITE, method=["cpu"]), MethodError, r"no method \['cpu'\]"),
        (lambda: tcgpu.list_triangles(KITE, method="cpu", engine="sim"), EngineError, "runs on cpu, not on 'sim'"),
        (lambda: tcgpu.list_triangles(KITE, 0), MethodError, "chunk is a whole number from 1 to .*, not 0"),
        (lambda: tcgpu.list_triangles(KITE, 2.5), MethodError, "chunk is a whole number from 1 to .*, not 2.5"),
        (lambda: tcgpu.truss_numbers(KITE, order="degree"), MethodError, "works in the graph's own order"),
        (lambda: tcgpu.k_truss(KITE, 3, method="naive"), MethodError, "k_truss has the methods cpu, k_truss, not"),
        (lambda: tcgpu.k_truss(KITE, 3, method="cpu", engine="sim"), EngineError, "does not run on 'sim'"),
        (lambda: tcgpu.k_truss(KITE, 3, executor="threads"), MethodError, "does not run on an executor"),
        (
            lambda: tcgpu.triangles(KITE, vertices=[1]),
            TypeError,
            r"triangles\(\) got .* 'vertices'; it takes graph, nodes, method, e",
        ),
        (lambda: tcgpu.support(KITE, [1]), TypeError, r"support\(\) too many .*; it takes graph, method"),
        (lambda: tcgpu.generate.clique(5, m=1), TypeError, r"clique\(\) got .* 'm'; it takes n, seed"),
        (lambda: tcgpu.count(KITE, engine_="cpu"), MethodError, r"no knob 'engine_' \(did you mean 'engine'\?\)"),
        (lambda: tcgpu.trace(KITE, 3), MethodError, "a method is what tcgpu.method makes of a function, not 3"),
        (lambda: tcgpu.estimate(KITE, len), MethodError, "decorate it with @tcgpu.method"),
        (lambda: tcgpu.estimate(KITE, ["naive", "bitmap"], warp=3), MethodError, "no knob 'warp' in naive or bitmap"),
    ],
)
def test_what_a_verb_does_not_have_is_refused_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.sim
def test_a_truss_may_name_its_method():
    assert tcgpu.truss_numbers(KITE, method="cpu").tolist() == [3, 3, 3, 2]
    assert tcgpu.truss_numbers(KITE, method="k_truss", engine="sim").tolist() == [3, 3, 3, 2]


RAW = np.random.default_rng(3).integers(0, 40, (2, 500))
NO_GRAPHS = {
    "a number too high": (*RAW, 30),
    "numbers": (1, 2),
    "nothing": (None, None),
    "names": 2 * (np.full(500, "name"),),
    "objects": 2 * (RAW[0].astype(object),),
}


@pytest.fixture
def cleaned(monkeypatch):
    """Where there is a GPU: the raw edges that it is given to clean."""
    found, clean = [], device_graph.DeviceGraph.from_edges
    monkeypatch.setattr(api, "ENGINE", "gpu")
    monkeypatch.setattr(device_graph, "engine_for", lambda edges: len(edges[0]) and "gpu")
    monkeypatch.setattr(device_graph.DeviceGraph, "from_edges", lambda *edges: found.append(edges) or clean(*edges))
    with runtime.using("sim"):
        yield found


def test_raw_edges_become_the_same_graph_on_a_gpu(cleaned):
    expected = Graph.from_edges(*RAW)
    for named in ({}, {"engine": "cpu"}, {"engine": "sim"}, {"method": "cpu"}):
        found = api.whole(tuple(RAW), **named)
        assert np.array_equal(found.col_ptr, expected.col_ptr) and np.array_equal(found.row_idx, expected.row_idx)
        assert found.labels is None and len(cleaned) == 1


@pytest.mark.parametrize("given", NO_GRAPHS.values(), ids=NO_GRAPHS)
def test_what_is_no_graph_is_refused_in_the_words_of_the_host(given, cleaned):
    said = []
    for engine in (None, "cpu"):
        with pytest.raises(GraphError) as error:
            api.whole(given, engine)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: tcgpu.clustering(tuple(RAW), method="cpu"), lambda: tcgpu.transitivity(tuple(RAW), method="cpu"),
        lambda: tcgpu.similarity(tuple(RAW), method="cpu"),
        lambda: tcgpu.similarity(tuple(RAW), pairs=tuple(RAW[:, :9])),
        lambda: tcgpu.reduce_triangles(tuple(RAW), lambda u, v, w: 1), lambda: tcgpu.motifs(tuple(RAW), "vertex"),
        lambda: tcgpu.count_subgraphs(tuple(RAW), 4, "connected"),
    ],
)  # fmt: skip
def test_what_the_cpu_counts_it_cleans(call, cleaned):
    call()
    assert not cleaned
