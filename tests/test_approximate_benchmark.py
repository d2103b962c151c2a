"""The benchmark of estimates: its processes are new, a wrong estimate ends it, and what the page says of its record."""

import pytest

import tcgpu
from tcgpu.records import Rows

pytestmark = pytest.mark.full

GRAPH = tcgpu.generate.watts_strogatz(6000, 20, seed=1)


@pytest.fixture
def benchmark(load_benchmark):
    return load_benchmark("approximate")


@pytest.fixture(scope="module")
def record(root):
    rows = Rows.read_csv(root / "data/measured/approximate-amd-epyc.csv")
    return {(row["graph"], row["way"]): row for row in rows}


def test_each_way_has_a_row(benchmark):
    rows = list(benchmark.measured("small", GRAPH, 1))
    assert [row["way"] for row in rows] == [*benchmark.WAYS]
    for row in rows:
        assert row["off"] == 0 if row["samples"] == 0 else row["off"] < 0.3
        assert 0 < min(row[time] for time in ("empty_s", "first_s", "again_s"))
    assert rows[0]["triangles"] == tcgpu.count(GRAPH) and rows[0]["samples"] == 0 < rows[1]["samples"]


def test_a_wrong_estimate_ends_the_script(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "WAYS", {"wrong": {"approximate": 1e-9}})
    monkeypatch.setattr(benchmark, "PROGRAM", benchmark.PROGRAM.replace('"triangles": found', '"triangles": found + 1'))
    with pytest.raises(SystemExit, match="on small wrong is "):
        list(benchmark.measured("small", GRAPH, 1))


def test_the_first_estimate_does_not_wait_for_the_compiler(benchmark, record):
    for name in benchmark.GRAPHS:
        if not name.startswith("Barabasi-Albert"):
            for way in ("within 10 %", "within 1 %"):
                row, exact = record[name, way], record[name, "exact"]
                assert row["samples"] and 5 * row["empty_s"] < exact["empty_s"]


def test_where_few_wedges_are_closed_the_record_has_exact_counts(record):
    rows = [row for (name, _), row in record.items() if name.startswith("Barabasi-Albert")]
    assert len(rows) == 4 and {row["samples"] for row in rows} == {0}


def test_the_estimates_of_the_record_are_as_near_as_they_say(record):
    for (_, way), row in record.items():
        assert row["off"] <= {"exact": 0, "within 10 %": 0.1}.get(way, 0.01)


def test_what_the_page_says_of_the_record_is_so(record):
    """Where all is compiled: an exact count that is faster than an estimate; and what degree order saves."""
    faster = {
        name for name, way in record if record[name, "exact"]["again_s"] < 0.9 * record[name, "within 1 %"]["again_s"]
    }
    assert faster == {"R-MAT, 1 million", "R-MAT, 8 million"}
    for (graph, way), row in record.items():
        if way == "within 1 %" and row["samples"]:
            by_degree = record[graph, "within 1 %, degree order"]["samples"]
            assert by_degree < row["samples"] / 5 if graph.startswith("R-MAT") else by_degree > 0.99 * row["samples"]
