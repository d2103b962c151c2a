"""The slips in data/published/errata.csv: the words are those of the papers, and each number is computed again."""

import re

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex

import tcgpu
from helpers import costs, level_models, printed_figures
from tcgpu import datasets, figures, records

ERRATA = {row["name"]: row for row in datasets.published("errata")}
TEXTS = {
    "Iakovidis": "report_columns.txt",
    "Bisson & Fatica": "static_graph_challenge.txt",
    "TriCore": "tricore_slides.txt",
    "Chatterjee et al.": "large_graphs_levels.txt",
}
CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
A, L = CLUB.to_scipy().toarray(), CLUB.lower().toarray()
TRIANGLES = 45
checks = {}


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name", ERRATA)
def test_what_is_printed_is_in_the_paper(papers_folder, name):
    row = ERRATA[name]
    text = (papers_folder / TEXTS[row["paper"]]).read_text(encoding="utf-8")
    assert one_line(row["printed"]) in one_line(text)


def test_lines_of_algorithm_4(papers_folder):
    text = one_line((papers_folder / TEXTS["Bisson & Fatica"]).read_text(encoding="utf-8"))
    lines = "2: for (s = blockIdx.x; s < n; s += gridDim.x) do", "6: for (io = io_s; io < io_e; io += blockDim.x) do"
    assert lines[0] in text and lines[1].removeprefix("6: ") in text


def check(*names):
    def add(function):
        checks.update(dict.fromkeys(names, function))
        return function

    return add


def test_every_erratum_is_checked():
    assert checks.keys() == ERRATA.keys()
    assert all(row["paper"] in TEXTS and row["place"] and row["right"] and row["why"] for row in ERRATA.values())


@pytest.mark.parametrize("name", ERRATA)
def test_each_erratum_is_one(name):
    checks[name](ERRATA[name])


def test_the_drawings_of_figures_1_and_3_hold_what_they_draw():
    product = printed_figures.draw_product(CLUB).axes[2]
    grey = [int(text.get_text()) for text, cell in zip(product.texts, product.patches, strict=True)
            if to_hex(cell.get_facecolor()) == figures.GREY]  # fmt: skip
    assert len(grey) == CLUB.m and sum(grey) == TRIANGLES and "45 in grey" in product.get_title()
    (panel,) = printed_figures.draw_places(CLUB, triangle=(13, 3, 2), threads=2).axes
    marked = [cell.get_xy() for cell in panel.patches if to_hex(cell.get_facecolor()) == figures.ORANGE]
    assert [y for _, y in marked] == [0, 0, 4, 2], "two in the list of 13, one in that of 3, a bit"
    said = " ".join(text.get_text() for text in panel.texts)
    assert "thread 1 hands out j = 3" in said and "thread 0 reads k = 2" in said


# ------------------------------------------------------------------------------------------------------------ Iakovidis


@check("swapped-delaunay", "swapped-road")
def _(erratum):
    name, printed = erratum["printed"].rsplit(" ", 1)
    row, other = (
        next(row for row in datasets.published("report_matrices") if (row["name_in_report"] == name) == same)
        for same in (True, False)
    )
    assert row["nonzeros_per_column"] == float(printed)
    assert f"{row['edges'] / row['vertices']:.2f}" == f"{erratum['right']:.2f}" != f"{float(printed):.2f}"
    assert f"{row['vertices']:,} vertices and {row['edges']:,} edges" in erratum["why"]
    assert f"{other['nonzeros_per_column']:g} is printed" in erratum["why"]


@check("transpose")
def _(erratum):
    printed, right = (L @ L + (L @ L).T + L.T @ L + last for last in ((L.T @ L).T, L @ L.T))
    assert (right == A @ A).all() and (printed != A @ A).any()
    assert (printed * A).sum() == (right * A).sum() == 6 * TRIANGLES


@check("first-vertex")
def _(erratum):
    dot = [sum(L[k, i] * L[k, j] for k in range(CLUB.n)) for i, j in zip(*CLUB.edges(), strict=True)]
    without_last = [sum(L[k, i] * L[k, j] for k in range(CLUB.n - 1)) for i, j in zip(*CLUB.edges(), strict=True)]
    assert sum(dot) == TRIANGLES > sum(without_last), "k from 0 to n - 1 leaves out vertex n, if the first one is 1"


@check("pointers")
def _(erratum):
    assert len(CLUB.col_ptr) == CLUB.n + 1
    with pytest.raises(IndexError):
        CLUB.col_ptr[: CLUB.n][CLUB.n]  # where the last column ends


@check("sum-not-reset")
def _(erratum):
    assert costs.printed_count(CLUB, columns=3, blocks=4) > TRIANGLES
    assert costs.printed_count(CLUB, columns=3, blocks=CLUB.n) == TRIANGLES, "right while each block has one group"


@check("last-store")
def _(erratum):
    threads = int(re.search(r"tid < (\d+)", erratum["printed"])[1])
    assert erratum["why"].startswith(f"{threads} threads")

    def out(order):  # what all threads leave there, by the order in which they read and write
        word, register = 0, {}
        for thread, step in order:
            if step == "read":
                register[thread] = word
            else:
                word = register[thread] + TRIANGLES
        return word

    together = [(thread, step) for step in ("read", "write") for thread in range(threads)]
    in_turn = [(thread, step) for thread in range(threads) for step in ("read", "write")]
    assert out(together) == TRIANGLES and out(in_turn) == threads * TRIANGLES


# ------------------------------------------------------------------------------------------------------ Bisson & Fatica


@check("mask")
def _(erratum):
    wedges = L @ L.T
    np.fill_diagonal(wedges, 0)
    assert wedges[wedges > 0].sum() // 2 > TRIANGLES == (wedges * A).sum() // 2


@check("weak-edges")
def _(erratum):
    for k in (3, 4, 5):
        truss = tcgpu.k_truss(CLUB, k)
        assert tcgpu.support(truss).min() == k - 2, "an edge of the truss that the printed output leaves out"


def printed_supports(slip):
    """Algorithm 4 on the club, by one thread, as printed (`slip`: "broadcast" or "row-offset") or right (None)."""
    rows = [np.flatnonzero(L[i]) for i in range(CLUB.n)]
    total = 0
    for i, row in enumerate(rows):
        for j in row:
            looked_up = rows[i][: len(rows[j])] if slip == "row-offset" else rows[i if slip == "broadcast" else j]
            total += 3 * np.isin(looked_up, row).sum()
    return total


@check("broadcast", "row-offset")
def _(erratum):
    assert printed_supports(None) == 3 * TRIANGLES == tcgpu.support(CLUB).sum()
    assert printed_supports(erratum["name"]) > 3 * TRIANGLES


@check("line-number")
def _(erratum):
    """`test_lines_of_algorithm_4` has the lines themselves."""
    assert re.search(r"\((line \d)\)", erratum["printed"])[1] == "line 6" and erratum["right"] == "line 2"


@check("closing-edge")
def _(erratum):
    edges = re.findall(r"\((\w),(\w)\)", erratum["printed"])
    assert len(set(edges)) == 2, "one of the triangle's three edges is named twice"
    assert {*edges, *re.findall(r"\((\w),(\w)\)", erratum["right"])} == {("i", "j"), ("i", "k"), ("j", "k")}


# -------------------------------------------------------------------------------------------------------------- TriCore


def dataset(name):
    return next(row for row in datasets.published("tricore_datasets") if row["graph"] == name)


@check("kron-triangles")
def _(erratum):
    small, large = (dataset(name) for name in ("Kron-30-16", "Kron-31-16"))
    assert large["edges"] > 2 * small["edges"] and large["triangles"] < small["triangles"] / 2
    graphs = {row["graph"]: row for row in datasets.published("bisson_table1")}
    scales = range(21, 26)
    counted = np.log([graphs[f"graph500-scale{scale}-ef16"]["triangles"] for scale in scales])
    at_30, at_31 = np.exp(np.polyval(np.polyfit(scales, counted, 2), (30, 31)))
    assert at_30 == pytest.approx(large["triangles"], rel=0.15)
    assert at_31 == pytest.approx(small["triangles"], rel=0.15)


@check("kronecker1-triangles")
def _(erratum):
    row = dataset("Kronecker1")
    ours = [found for found in records.reference("tricore") if found["graph"] == "rmat22 of degree 64"]
    assert len({found["method"] for found in ours}) == 3 and len({found["triangles"] for found in ours}) == 1
    assert ours[0]["edges"] == pytest.approx(row["edges"], rel=0.01) and ours[0]["vertices"] == 1 << 22
    assert f"{ours[0]['triangles'] / 1e9:.1f}B" == erratum["right"] and row["triangles"] == 5.3e9
    small = next(row for row in datasets.published("bisson_table1") if "scale18" in row["graph"])
    assert round(row["triangles"] / row["edges"]) == round(small["triangles"] / small["edges"]) == 22


@check("random-triangles")
def _(erratum):
    """A random graph of n vertices and m edges has d³ / 6 triangles in the mean, where d = 2 m / n."""
    small = [tcgpu.count(tcgpu.generate.random(1 << 12, 1 << 17, seed=seed)) for seed in range(8)]
    assert np.mean(small) == pytest.approx(64**3 / 6, rel=0.05)
    row = dataset("Random")
    as_printed, halved = ((2 * m / row["vertices"]) ** 3 / 6 for m in (row["edges"], row["edges"] / 2))
    assert row["triangles"] == pytest.approx(halved, rel=0.01) and as_printed > 7 * row["triangles"]
    assert erratum["right"] == f"{row['edges'] / 2e6}M edges, or {as_printed / 1e6:.1f}M triangles"
    assert f"{as_printed / 1e6:.1f}M with 511M edges, {halved / 1e3:.0f}K with half" in erratum["why"]


# ---------------------------------------------------------------------------------------------------- Chatterjee et al.


def results(figure):
    return next(row for row in datasets.published("levels_results") if row["figure"] == figure)


@check("at-least-ten")
def _(erratum):
    assert (results(10)["low"], results(10)["high"], results(11)["low"]) == (5, 6, 10)
    assert f"from {results(10)['smallest_vertices']:,} vertices on" in erratum["why"]


@check("hundred-thousand")
def _(erratum):
    assert results(11)["largest_vertices"] == 25_000
    row = next(row for row in datasets.published("levels_results") if row["smallest_vertices"] == 100_000)
    assert (row["figure"], row["quantity"], row["low"], row["high"]) == (None, "seconds on the GPU", 170, 180)


@check("first-level-twice")
def _(erratum):
    chunks = level_models.split(CLUB, shared_bits=8 * 48 * 1024, machines=4, roots=1)
    number = np.empty(CLUB.n, int)
    number[chunks.order] = np.repeat(np.arange(len(chunks.level_ptr) - 1), np.diff(chunks.level_ptr))
    triangles = number[np.concatenate(list(tcgpu.list_triangles(CLUB)))]
    printed = 0
    for level in range(number.max()):
        inside = (triangles == level).all(axis=1).sum()
        here = ((triangles == level) | (triangles == level + 1)).all(axis=1)
        printed += inside + (here & (triangles == level).any(axis=1)).sum()
    printed += (triangles == number.max()).all(axis=1).sum()
    assert len(triangles) == TRIANGLES < printed


@check("whole-component")
def _(erratum):
    chunks = level_models.split(CLUB, shared_bits=100, machines=4)
    assert 0 < chunks.too_large < len(chunks), "a split in which some chunks fit, and not all"


@check("independent-sets")
def _(erratum):
    path = tcgpu.generate.path(7)
    chunks = level_models.split(path, shared_bits=8 * 48 * 1024, machines=4, roots=np.array([0]), width=3)
    every_second = {0, 2, 4, 6}
    assert all(not every_second <= set(chunks.vertices(c).tolist()) for c in range(len(chunks)))
    assert tcgpu.count_subgraphs(path, 4, "independent") == 1


@check("partitions-of-a-warp")
def _(erratum):
    """Eight warps at one partition (Fig. 6), and at one each (Fig. 7)."""
    camping = np.zeros((8, 1, 32), np.int64)
    even = camping + 256 * np.arange(8).reshape(8, 1, 1)
    (turns, together, alone), (fewer, spread, same) = map(level_models.partition_turns, (camping, even))
    assert turns == 8 * fewer and together == 8 * spread and alone == same
