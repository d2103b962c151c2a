"""The benchmark of raw edges that are cleaned in pieces, in the simulator."""

import pytest

import tcgpu
from tcgpu import generate, records
from tcgpu.engines import runtime
from tcgpu.kernels import columns_in_pieces

pytestmark = pytest.mark.full


@pytest.fixture
def benchmark(load_benchmark, monkeypatch):
    monkeypatch.setattr(columns_in_pieces, "LEAST_PIECE", 1)
    return load_benchmark("pieces")


@pytest.mark.sim
def test_each_way_counts_the_same(benchmark):
    with runtime.using("sim"):
        rows = list(benchmark.measured(5, (10**6, 8000), 1))
    assert [row["way"] for row in rows] == ["no limit", "0.001 GB", "8e-06 GB", "0.001 GB, host"]
    assert {row["triangles"] for row in rows} == {tcgpu.count(generate.edges("rmat", 5), "cpu")}
    assert all(row["process_ms"] > 0 for row in rows)


@pytest.mark.sim
def test_different_counts_end_the_benchmark(benchmark, monkeypatch):
    counts = iter(range(9))
    monkeypatch.setattr(benchmark.api, "count", lambda *args, **options: next(counts))
    with runtime.using("sim"), pytest.raises(SystemExit, match="the counts differ: 0, 1"):
        list(benchmark.measured(5, (10**6,), 1))


def test_the_record_keeps_what_the_texts_say():
    """If the device cleans, a count takes about a fifth of the time, and no more memory than it may."""
    rows = {row["way"]: row for row in records.reference("pieces")}
    assert 0.18 < rows["4 GB"]["process_ms"] / rows["4 GB, host"]["process_ms"] < 0.22
    assert [round(rows[way]["process_ms"] / 1e3, 1) for way in ("4 GB", "4 GB, host")] == [1.2, 5.8]
    assert all(row["peak_bytes"] <= row["limit_bytes"] for row in rows.values() if row["limit_bytes"] != "")
