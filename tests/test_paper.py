"""The paper is in the form of its journal, and each of its figures is that of a record."""

import csv
import re

import numpy as np
import pytest
import yaml
from test_order_costs import beside_public_programs, kinds

from helpers import readme_picture
from tcgpu import records
from tcgpu.lab import sweep
from tcgpu.records import Rows

SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Research impact statement",
    "AI usage disclosure",
    "Acknowledgements",
    "References",
]
CITATION = re.compile(r"\[(@[^\]]+)\]")
NO_FIGURE = re.compile(r"Tesla T4|H100|H200")


@pytest.fixture(scope="module")
def paper(root):
    """The fields at the head of the paper, and its text."""
    _, head, body = (root / "paper" / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def of_cpu(root, name):
    """The only record of a benchmark that ran on a CPU."""
    [path] = (root / "data" / "measured").glob(f"{name}-*.csv")
    return Rows.read_csv(path)


def said_of_gpus():
    own, best = beside_public_programs(records.records("peers")["NVIDIA H100 80GB HBM3"])
    ratios = [best[kind] / own[kind] for kind in own if kind in kinds.KINDS]
    ahead = sum(ratio > 1 for ratio in ratios)
    yield f"five public programs on {ahead} of {len(ratios)} kinds of graphs with 8 million edges"
    yield f"in the median the fastest other program took {np.median(ratios):.1f} times as long"
    largest = max(records.records("large")["NVIDIA H200"], key=lambda row: row["edges"])
    seconds = largest["device_total_ms"] / 1000
    yield f"One H200 counts a graph of {largest['edges']:,} edges in {seconds:.2f} s from raw edges in its memory."


def said_of_cpus(root):
    raw = {(row["graph"], row["program"]): row["raw_s"] for row in of_cpu(root, "threads")}
    graphs = {graph for graph, _ in raw}
    gap, gktc = (
        sorted(raw[graph, name] / raw[graph, "tcgpu"] for graph in graphs if (graph, name) in raw)
        for name in ("GAP", "gktc")
    )
    assert (len(gap), len(gktc)) == (6, 5)
    yield "With 16 threads of a CPU, from raw edges to the count"
    yield f"took {gap[0]:.1f} to {gap[-1]:.0f} times as long on six graphs"
    yield f"that of Karypis' group {gktc[0]:.1f} to {gktc[-1]:.1f} times on five"
    backend = of_cpu(root, "networkx")
    assert len(backend) == 8 and {row["nodes"] for row in backend} == {5000}
    ratios = [row["ratio"] for row in backend]
    yield "Of eight functions on graphs of 5,000 nodes"
    yield f"NetworkX's own code took {min(ratios):.0f} to {max(ratios):,.0f} times the processor time of the backend"


def said_of_models_and_papers(root):
    scored = [row for row in records.reference("estimates") if row["kernel_ms"] != "" and row["fitted"] != "True"]
    errors = [abs(r["estimated_ms"] / r["kernel_ms"] - 1) for r in scored if r["estimated_for"] == "NVIDIA H200"]
    yield f"Over {len(errors)} launches on an H200 that nothing was fitted to, its mean error is"
    yield f"{100 * np.mean(errors):.1f} %"
    t4 = [r["published_ms"] / r["estimated_ms"] for r in records.reference("t4") if r["stand_in"] == "class"]
    yield f"a Tesla T4, estimates are {min(t4):.1f} to {max(t4):.1f} times too short"
    with open(root / "data" / "published" / "claims.csv", newline="", encoding="utf-8") as file:
        states = [row["state"] for row in csv.DictReader(file)]
    yield f"All {len(states)} numbers, tables, figures"
    yield f"{states.count('erratum')} of them are errors that we found in print"
    curves = {(curve.name, curve.kind): curve.points for curve in readme_picture.curves_in(readme_picture.PICTURE)}
    assert sweep.crossings(curves["NVIDIA H200", "measured"]) == []
    [crossing] = sweep.crossings(curves["Tesla T4", "published"])
    yield f"from about {crossing:.0f} nonzeros per column on"


def test_its_figures_are_the_recorded_ones_and_there_are_no_others(root, paper):
    """What is left without them, without citations and names of GPUs, has no digit."""
    rest = " ".join(paper[1].split())
    for said in (*said_of_gpus(), *said_of_cpus(root), *said_of_models_and_papers(root)):
        assert said in rest, f"the paper should say: {said}"
        rest = rest.replace(said, "")
    assert not re.findall(r".{0,20}\d.{0,20}", NO_FIGURE.sub("", CITATION.sub("", rest)))


def test_it_has_the_form_of_its_journal(paper):
    head, body = paper
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} == set(head)
    assert {author["affiliation"] for author in head["authors"]} == {one["index"] for one in head["affiliations"]}
    assert re.findall(r"^# (.*)$", body, re.MULTILINE) == SECTIONS
    assert 750 <= len(body.split()) <= 1750


def test_it_cites_every_entry_and_no_other(root, paper):
    cited = {key.strip(" @") for group in CITATION.findall(paper[1]) for key in group.split(";")}
    assert cited == set(re.findall(r"^@\w+\{(\w+),$", (root / "paper" / "paper.bib").read_text(), re.MULTILINE))


def test_contributing_names_what_its_authors_have_to_fill_in(root, paper):
    head, body = paper
    [author], [affiliation] = head["authors"], head["affiliations"]
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The paper\n")[2].partition("\n## ")[0]
    open_fields = {author["name"], author["orcid"], affiliation["name"], "FUNDING", "AI usage disclosure"}
    assert all(field in text for field in open_fields) and "\nFUNDING\n" in body and "THE AUTHORS NAME" in body
