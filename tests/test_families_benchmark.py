"""The kinds of graphs of the benchmark: every verb is right on each, and the record holds the bars."""

import sys

import numpy as np
import pytest
from test_cpu import by_scipy

import tcgpu
from tcgpu import Graph, cpu
from tcgpu.engines.native import set_threads
from tcgpu.records import Rows


@pytest.fixture(scope="module")
def kinds(load_benchmark):
    return load_benchmark("kinds").KINDS


@pytest.fixture(scope="module")
def families(load_benchmark):
    return load_benchmark("families")


def pytest_generate_tests(metafunc):
    """A test for each kind, by name."""
    if "kind" in metafunc.fixturenames:
        names = (metafunc.config.rootpath / "benchmarks" / "kinds.py").read_text().split('@kind("')[1:]
        metafunc.parametrize("kind", [name.split('"')[0] for name in names])


@pytest.mark.parametrize("edges", [300, 4000])
def test_every_verb_is_right_on_every_kind(kinds, kind, edges, monkeypatch):
    """In every order, by one thread and by two; against the matrix A: the supports are (A A) * A."""
    u, v, n = kinds[kind](edges, seed=edges)
    graph = Graph.from_edges(u, v, n)
    assert graph.m > edges / 20 and n == graph.n
    support = by_scipy(graph)
    vertices = np.bincount(graph.row_idx, support, n) + np.bincount(graph.col_of, support, n)
    monkeypatch.setattr(cpu.edges, "MANY", 100)
    for threads in (1, 2):
        set_threads(threads)
        for order in ("natural", "degree", "auto"):
            fresh = Graph(graph.col_ptr, graph.row_idx)
            assert 3 * tcgpu.count(fresh, "cpu", order=order) == support.sum()
            assert np.array_equal(tcgpu.triangles(fresh, method="cpu", order=order), vertices // 2)
            assert np.array_equal(tcgpu.support(fresh, method="cpu", order=order), support)
    set_threads(None)
    numbers = tcgpu.truss_numbers(graph, engine="cpu")
    assert (numbers <= support + 2).all()
    for k in (3, 4, 6):
        assert tcgpu.k_truss(graph, k, engine="cpu").m == (numbers >= k).sum()


def test_the_benchmark_measures_verbs_in_every_order(families, kinds):
    graph = Graph.from_edges(*kinds["windmill"](3000))
    rows = list(families.measure("windmill", graph, None, repeats=1, limit=10))
    assert [row["order"] for row in rows if row["verb"] == "support"] == ["natural", "degree", "auto"]
    assert {row["triangles"] for row in rows} == {1000} and {row["edges"] for row in rows} == {3000}
    assert all(row["first_wall"] > 0 and row["first_cpu"] > 0 for row in rows)
    assert all(row["again_cpu"] > 0 for row in rows if row["order"])
    found = families.ratios(rows, "first_cpu")
    assert set(found) == set(families.BARS) and min(found.values()) > 0


def test_a_run_over_the_limit_is_ended(families, kinds):
    graph = Graph.from_edges(*kinds["clique"](300_000))
    rows = list(families.measure("clique", graph, ["truss_numbers", "count"], repeats=1, limit=-1))
    assert {row["first_wall"] for row in rows} == {""} and {row["triangles"] for row in rows} == {""}
    assert families.ratios(rows, "first_cpu")["seconds"] == np.inf


def test_a_record_is_written_kind_by_kind_and_resumed(families, tmp_path, monkeypatch):
    """Rows of other kinds stay; kinds that this commit has measured are not measured again."""
    path = tmp_path / "record.csv"
    options = ["--edges", "300", "--repeats", "0", "--verb", "count", "--output", str(path)]

    def measured(revision, *more):
        monkeypatch.setattr(families.measurement, "revision", lambda: revision)
        monkeypatch.setattr(sys, "argv", ["families", *options, *more])
        families.main()
        return {row["kind"]: row["tcgpu"] for row in Rows.read_csv(path)}

    both = ("--kind", "threshold", "--kind", "hyper")
    try:
        assert measured("a", *both) == {"threshold": "a", "hypercube": "a"}
        assert measured("b", "--kind", "threshold") == {"threshold": "b", "hypercube": "a"}
        assert measured("b+", *both, "--resume") == {"threshold": "b", "hypercube": "b+"}
    finally:
        set_threads(None)


@pytest.fixture(scope="module")
def record(root):
    (path,) = (root / "data" / "measured").glob("families-amd*.csv")
    return Rows.read_csv(path)


@pytest.mark.parametrize("key", ["first_cpu", "again_cpu"])
def test_the_record_holds_the_bars_on_every_kind(families, kinds, record, key):
    by_kind = {kind: [row for row in record if row["kind"] == kind] for kind in kinds}
    assert all(by_kind.values())
    over = {
        (kind, key, name): value
        for kind, rows in by_kind.items()
        for name, value in families.over_bars(rows, key).items()
    }
    assert over == {}


def test_the_record_is_of_graphs_of_millions_of_edges(record):
    """Their triangles are not counted again: the random numbers of NumPy's versions may differ."""
    assert all(2e6 < row["edges"] < 5e6 and row["cores"] == 2 for row in record)
