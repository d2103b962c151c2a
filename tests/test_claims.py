"""data/published/claims.csv: every claim of the four papers has a state, and each state has what it needs."""

import importlib.util
import json
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from test_errata import ERRATA, TEXTS, one_line

import tcgpu
from helpers import measured
from tcgpu import records
from tcgpu.datasets import published
from tcgpu.engines import kernel_compiler
from tcgpu.kernels.bisson_fatica import support

CLAIMS = published("claims")
SHOWN = "notebooks/", "tests/", "data/measured/", "docs/measured.md"  # where something is computed, run or measured
KINDS = {"number", "table", "figure", "equation", "algorithm", "kernel", "statement"}
BESIDE = "errata", "checksums", "claims"  # tables of data/published that no paper prints


@pytest.fixture(scope="module")
def site(root):
    spec = importlib.util.spec_from_file_location("claims_page", root / "docs" / "site" / "claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def text_of(path):
    """The text of a file; of a notebook, that of its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def is_there(root, file, part):
    """Whether a file has a part: a test, a heading or the beginning of a line of a notebook or page, an erratum."""
    path = root / file
    if not path.is_file() or not part:
        return path.is_file()
    if path.name == "errata.csv":
        return part in ERRATA
    if path.suffix == ".py":
        return re.search(rf"^ *def {re.escape(part)}\(", text_of(path), re.MULTILINE) is not None
    lines = [line.strip() for line in text_of(path).splitlines()]
    headings = {line.lstrip("# ") for line in lines if line.startswith("#")}
    return part in headings or (len(part) > 15 and any(line.startswith(part) for line in lines))


def test_each_place_exists(root, site):
    places = {(row["id"], *place) for row in CLAIMS for place in site.places(row)}
    assert [place for place in sorted(places) if not is_there(root, *place[1:])] == []


def test_a_place_that_is_not_there_is_noticed(root):
    notebook = "notebooks/07_levels.ipynb"
    assert is_there(root, notebook, "Algorithm 2") and not is_there(root, notebook, "Algorithm 9")
    assert is_there(root, "tests/test_claims.py", "is_there") and not is_there(root, "tests/test_claims.py", "is_ther")
    assert not is_there(root, "data/measured/report-nobody.csv", "")
    assert not is_there(root, "data/published/errata.csv", "no-erratum")


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row["id"])
def test_each_state_has_what_it_needs(site, row):
    places = site.places(row)
    files = [file for file, _ in places]
    assert row["paper"] in TEXTS and row["place"] and row["claim"] and row["kind"] in KINDS
    assert row["charted"] in ("yes", "no")
    if row["state"] in ("reproduced", "measured again", "differs"):
        assert any(file.startswith(SHOWN) or (file.endswith(".py") and row["kind"] == "kernel") for file in files)
    if row["state"] in ("reproduced", "quoted"):
        assert files
    if row["state"] == "measured again":
        assert row["charted"] == "yes" and any(file.startswith("data/measured/") for file in files)
    if row["state"] in ("differs", "erratum", "unknown", "not reproduced"):
        assert row["note"]
    if row["state"] == "erratum":
        assert any(ERRATA[part]["paper"] == row["paper"] for file, part in places if file.endswith("errata.csv"))
    if row["charted"] == "yes":
        assert any(file.startswith(SHOWN) for file in files)


def test_there_are_all_claims_and_few_are_not_reproduced(site):
    assert len({row["id"] for row in CLAIMS}) == len({(row["paper"], row["claim"]) for row in CLAIMS}) == len(CLAIMS)
    assert len(CLAIMS) >= 184 and sum(row["charted"] == "yes" for row in CLAIMS) >= 40
    states = Counter(row["state"] for row in CLAIMS)
    assert states.keys() == site.STATES.keys() and states["not reproduced"] <= 10
    assert states["reproduced"] > len(CLAIMS) / 2


def test_every_erratum_is_a_claim(site):
    named = {part for row in CLAIMS for file, part in site.places(row) if file.endswith("errata.csv")}
    assert named == ERRATA.keys()


def test_every_published_table_is_named_by_a_claim(root, site):
    named = {file for row in CLAIMS for file, _ in site.places(row)}
    tables = {f"data/published/{path.name}" for path in (root / "data" / "published").glob("*.csv")}
    assert tables - named == {f"data/published/{name}.csv" for name in BESIDE} - named


@pytest.mark.parametrize(
    "table, paper, columns",
    [
        ("report_matrices", "Iakovidis", ("nonzeros_per_column", "simple_ms", "shared_ms", "speedup")),
        ("tricore_prices", "TriCore", ("processor", "dollars")),
        ("tricore_datasets", "TriCore", ("graph",)),
        ("tricore_speedups", "TriCore", ("against", "times_faster")),
        ("tricore_scaling", "TriCore", ("gpus", "speedup")),
        ("levels_cards", "Chatterjee et al.", ("card", "cores", "global_gb", "shared_kb", "banks")),
        ("levels_sizes", "Chatterjee et al.", ("card", "vertices")),
        ("levels_transactions", "Chatterjee et al.", ("compute_capability", "transactions")),
        ("levels_results", "Chatterjee et al.", ("low", "high")),
    ],
)
def test_what_a_published_table_holds_is_claimed(table, paper, columns):
    claimed = " ".join(row["claim"] for row in CLAIMS if row["paper"] == paper).replace(",", "").replace("–", " ")
    words = set(re.findall(r"[\w.-]*\w", claimed.replace("x as", " as")))
    for row in published(table):
        wanted = {word for column in columns for word in str(row[column]).split()}
        assert wanted <= words, wanted - words


@pytest.mark.parametrize("paper", TEXTS)
def test_each_number_of_a_claim_is_in_the_paper(papers_folder, paper):
    text = one_line((papers_folder / TEXTS[paper]).read_text(encoding="utf-8"))
    rows = [row for row in CLAIMS if row["paper"] == paper and (row["kind"], row["place"]) != ("table", "Table I")]
    numbers = [(row["id"], number) for row in rows for number in re.findall(r"\d+(?:[.,]\d+)*", row["claim"])]
    assert [number for number in numbers if number[1] not in text] == []


def test_the_page_is_that_of_the_table(site):
    assert site.PAGE.read_text(encoding="utf-8") == site.page(CLAIMS), "write it anew: python docs/site/claims.py"


def test_what_notes_say_of_records():
    """Of the report's speedups, of k-trusses, of searches by length, and of levels."""
    for gpu in "NVIDIA H200", "NVIDIA H100 80GB HBM3":
        speedups = {row["graph"]: row["speedup"] for row in measured.report_table(records.records("report")[gpu])}
        assert max(speedups.values()) < 1 and min(speedups, key=speedups.get) == "great-britain_osm"
    cache = [dict(measured.cache_speedups(records.reference("cache"), 75, threads, threads)) for threads in (128, 512)]
    assert all(curve[8] < 1 < 1.5 < curve[32] for curve in cache)
    count = {row["graph"]: row for row in records.reference("table1") if row["method"] == "bitmap_auto"}
    trusses = [row for row in records.reference("truss3") if row["method"] == "bitmaps"]
    quicker = {row["graph"] for row in trusses if row["kernel_ms"] < count[row["graph"]]["kernel_ms"]}
    assert not quicker and len(trusses) > 20
    each = {name: times[4096, 4096] for name, times in measured.length_times(records.reference("lengths")).items()}
    assert each["warp_search"] < each["merge_path"] < each["thread_search"]
    levels = records.reference("levels")
    gains = measured.level_gains(levels)
    assert gains[200] < 1 < 10 < gains[1000] < gains[1200] < 100 < 500 < gains[5000] < gains[25_000] < 5000
    pairs = {(row["what"], row["vertices"]): row["times"] for row in measured.level_pairs(levels)}
    assert all(1 <= times < 1.06 for (what, _), times in pairs.items() if what == "a matrix for each chunk")
    assert all(0.9 < times < 1.1 for (what, _), times in pairs.items() if what == "bits in shared memory")
    wall = [dict(points)[4] for points in measured.speedups(records.reference("scaling")).values()]
    assert max(wall) < 4


@pytest.mark.ptx
def test_registers_of_the_thread_that_keeps_twelve_rows():
    """Bisson & Fatica's takes no more than 32 of their GPU. Ours has none to spill, either, but takes more."""
    kernel = support.support_thread
    found = [
        kernel_compiler.facts(kernel.py_func, signature, capability, kernel.most_threads)
        for signature in kernel.signatures
        for capability in ((7, 5), (8, 0), (9, 0))
    ]
    assert support.IN_REGISTERS == 12 and not any(each.spilled or each.local for each in found)
    (row,) = [row for row in CLAIMS if "32 registers" in row["claim"]]
    low, high = min(each.registers for each in found), max(each.registers for each in found)
    assert row["note"].startswith(f"ours takes {low} to {high},") and low > 32


@pytest.mark.parametrize("scale", [13, 15])
def test_pairs_of_long_lists_take_most_of_the_steps(scale):
    """TriCore's, by binary searches: of pairs of 32 rows or more each, which are fewer than half of all pairs."""
    graph = tcgpu.generate.rmat(scale, seed=1).ordered("degree")
    i, j = graph.edges()
    both = np.sort([graph.column_lengths[i], graph.col_ptr[j + 1] - np.arange(graph.m) - 1], axis=0)
    steps = both[0] * np.ceil(np.log2(both[1] + 1))
    assert steps[both[0] >= 32].sum() > 0.6 * steps.sum() and np.mean(both[0][both[0] > 0] >= 32) < 0.4
