"""The verdicts on the papers' claims: the rule, and what the records of an H200 say."""

import math

import pytest

from helpers import measured, verdicts
from helpers.verdicts import HOLDS, IN_ORDER, MISSING, REVERSED, Evidence, Figure
from tcgpu import records
from tcgpu.datasets import published
from tcgpu.records import Rows

CHARTED = {row["id"]: row for row in published("claims") if row["charted"] == "yes"}
SUITES = "report sweep table1 truss3 trusses samples levels lengths tricore streaming ladder".split()


@pytest.fixture(scope="module")
def found():
    """The verdicts on the records of the reference GPU: claim -> row."""
    rows = Rows({"suite": suite} | row for suite in SUITES for row in records.reference(suite))
    return {row["id"]: row for row in verdicts.table(rows)}


@pytest.mark.parametrize(
    "low, high, here, order, expected",
    [
        (3, 3, 3, [], HOLDS),
        (3, 3, 4.5, [False], HOLDS),
        (3, 3, 4.6, [True], IN_ORDER),
        (3, 3, 1.9, [True, False], REVERSED),
        (3, 3, math.nan, [True, False, True], IN_ORDER),
        (5, 6, 9, [], HOLDS),
        (1, math.inf, 1000, [], HOLDS),
        (1, math.inf, 0.99, [False], REVERSED),
        (0, 32, 33, [False], REVERSED),
        (0, 32, 32, [], HOLDS),
        (math.nan, math.nan, 5, [True], MISSING),
        (3, 3, 30, [], MISSING),
    ],
)
def test_the_rule(low, high, here, order, expected):
    assert verdicts.verdict(Evidence([Figure("x", low, high, here)], order)) == expected


def test_without_figures_nothing_is_said():
    assert verdicts.verdict(None) == verdicts.verdict(Evidence([], [])) == MISSING


def test_times_are_compared_in_pairs_that_are_apart():
    theirs, here = {"a": 1.0, "b": 1.05, "c": 4.0, "d": None}, {"a": 3.0, "b": 2.0, "c": 2.5, "d": 1.0}
    assert verdicts.times(theirs, here).order == [False, True]  # a and c, b and c
    of_a = verdicts.times(theirs, here, of="a")
    assert of_a.order == [False] and [figure.what for figure in of_a.figures] == ["a, ms"]


@pytest.mark.parametrize("here, expected", [(7, HOLDS), (8, REVERSED)])
def test_what_is_counted_is_equal_or_is_not(here, expected):
    assert verdicts.verdict(verdicts.equal([("triangles", 7, here), ("edges", 3, 3), ("vertices", 3, 3)])) == expected


def test_ratios_are_on_a_side_or_near_one():
    assert verdicts.ratios({"a": 3, "b": 0.5}, 2).order == [True, False]
    assert verdicts.ratios({"a": 1.05, "b": 0.95, "c": 1.2}, 1).order == [True, True, False]


def test_each_evidence_is_of_a_charted_claim():
    assert verdicts.EVIDENCE.keys() <= CHARTED.keys() and len(verdicts.EVIDENCE) > 60


def test_every_charted_claim_has_a_verdict(found):
    assert found.keys() == CHARTED.keys() and {row["verdict"] for row in found.values()} == verdicts.MEANING.keys()


def test_what_an_h200_reverses_is_known_to_differ(found):
    """But for the figure of all four speedups, of which two differ: claims.csv says how it was drawn."""
    reverses = {name for name, row in found.items() if row["verdict"] == REVERSED}
    assert {"I50", "I53", "I57"} <= reverses and {CHARTED[name]["state"] for name in reverses - {"I55"}} == {"differs"}


def test_figures_are_those_of_the_records(found):
    table = {row["graph"]: row for row in measured.report_table(records.reference("report"))}
    here = verdicts.number(table["delaunay_n22"]["speedup"])
    assert (found["I44"]["published"], found["I44"]["here"]) == ("0.41", here)
    assert (found["C18"]["published"], found["C18"]["verdict"]) == ("362 to 512", HOLDS)


def test_times_of_smaller_graphs_are_scaled_to_the_published_edges():
    """The report's: a graph of half the edges that takes half the time is as fast."""
    rows = [row for row in records.reference("report") if row["order"] == "natural"]
    half = [row | {"edges": row["edges"] / 2, "kernel_ms": row["kernel_ms"] / 2} for row in rows]
    for key in ("simple", "shared"):
        whole, scaled = (verdicts.report_times({"report": of})[key][1] for of in (rows, half))
        assert scaled == pytest.approx(whole)


def test_an_empty_record_measures_nothing_but_what_is_computed():
    table = verdicts.table(Rows([{"suite": "ceiling", "gpu_compute_capability": ""}]))
    measurable = [row["id"] for row in table if row["verdict"] != MISSING]
    assert len(measurable) > 10 and {CHARTED[name]["kind"] for name in measurable} == {"table", "number"}


def test_a_claim_says_how_small_the_graphs_are():
    rows = [{"suite": "report"} | row for row in records.reference("report")]
    for share, said in ((1, "100"), (2**-8, "0.391")):
        sized = Rows(row | {"scaled": share if "delaunay" in row["graph"] else 1} for row in rows)
        found = {row["id"]: row for row in verdicts.table(sized)}
        assert found["I42"]["of full size"] == said + "\N{NO-BREAK SPACE}%" and found["B80"]["of full size"] == ""
