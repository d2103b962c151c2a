"""The record of `benchmarks/cugraph.py`, which needs cuGraph and a GPU, and what the pages say of it."""

from statistics import median

import pytest

from tcgpu import records

TASKS = {"count_ms": "counts", "raw_ms": "counts of raw edges", "vertices_ms": "triangles of vertices",
         "truss_ms": "4-trusses", "raw_truss_ms": "4-trusses of raw edges"}  # fmt: skip


@pytest.fixture(scope="module")
def programs():
    """Program -> graph -> row of the record."""
    rows = records.reference("cugraph")
    return {name: {row["graph"]: row for row in rows if row["program"] == name} for name in ("tcgpu", "cuGraph")}


def ratios(programs, ms):
    """How many times as long cuGraph takes, on the graphs on which it gives an answer."""
    ours, theirs = programs["tcgpu"], programs["cuGraph"]
    return sorted(row[ms] / ours[graph][ms] for graph, row in theirs.items() if row[ms] != "")


def test_both_find_the_same(programs):
    ours, theirs = programs["tcgpu"], programs["cuGraph"]
    assert len(ours) == 64 and set(ours) == set(theirs)
    for graph, row in theirs.items():
        for key in ("triangles", "truss_edges"):
            assert row[key] in ("", ours[graph][key]), (graph, key)
        assert row["failed"] or "" not in [row[ms] for ms in TASKS]


def test_cugraph_is_ahead_on_no_kind(programs):
    assert {ms: ratios(programs, ms)[0] > 1 for ms in TASKS} == dict.fromkeys(TASKS, True)


def test_a_truss_takes_five_times_as_long_there_and_truss_numbers_25_counts_at_most(programs):
    assert median(ratios(programs, "truss_ms")) >= 5
    assert median(row["numbers_ms"] / row["count_ms"] for row in programs["tcgpu"].values()) <= 25


def test_what_the_page_says_is_the_record(programs, root):
    page = " ".join((root / "docs/measured.md").read_text(encoding="utf-8").split())
    for ms, what in TASKS.items():
        found = ratios(programs, ms)
        assert f"{what} {median(found):.1f} times, {found[0]:.1f} at least" in page
    numbers = median(row["numbers_ms"] / row["count_ms"] for row in programs["tcgpu"].values())
    assert f"Truss numbers of all edges take {numbers:.0f} times as long as a count in the median" in page
    failed = [graph for graph, row in programs["cuGraph"].items() if row["failed"]]
    assert f"On {len(failed)} of the graphs" in page
