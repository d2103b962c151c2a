"""Records of GPUs: which are found, and that curves are taken from the right rows."""

import csv
import itertools
import re
from collections import Counter

import pytest
from recorded import REPORT, SWEEP, row

from tcgpu import records


@pytest.fixture
def measured(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "data_path", lambda *parts: tmp_path.joinpath(*parts[1:]))
    return tmp_path


def test_records_are_of_gpus_the_latest_of_each_and_one_is_the_reference(measured):
    on_cpu = records.Rows(entry | {"engine": "cpu"} for entry in REPORT)
    later = records.Rows(entry | {"date": "2026-02-02"} for entry in REPORT)
    other = records.Rows(entry | {"gpu_name": "GPU Y"} for entry in REPORT)
    for name, rows in {"report-a": later, "report-b": REPORT, "report-c": other, "report-d": on_cpu,
                       "sweep-a": SWEEP}.items():  # fmt: skip
        rows.write_csv(measured / f"{name}.csv")
    assert records.records("report") == {"GPU X": later, "GPU Y": other}
    assert records.records("sweep") == {"GPU X": SWEEP}
    assert records.reference("report") == later
    of_reference = records.Rows(entry | {"gpu_name": records.REFERENCE_GPU, "date": "2020-01-01"} for entry in REPORT)
    of_reference.write_csv(measured / "report-e.csv")
    assert records.reference("report") == of_reference
    assert records.records("nothing") == {}
    with pytest.raises(LookupError, match="no record of 'nothing' .* scripts in benchmarks"):
        records.reference("nothing")


def test_counts_of_all_suites_are_found_by_machine_and_graph(measured):
    """Of a method and an order the best setting; rows without a count are left out; the native engine is included."""
    times = {"process_ms": 1.0, "total_ms": 1.0}
    slow, fast = row("naive", 3.0), row("naive", 2.0, columns=5)
    native, nothing = row("cpu", 5.0) | {"engine": "cpu"}, row("levels", 1.0) | {"triangles": ""}
    records.Rows(r | times for r in (slow, fast, native, nothing)).write_csv(measured / "report-gpu-x.csv")
    records.Rows([row("bitmap_warp", 4.0) | times]).write_csv(measured / "table1-gpu-x.csv")
    found = records.counts()
    assert list(found) == ["GPU X"] and list(found["GPU X"]) == ["auto class"]
    rows = found["GPU X"]["auto class"]
    assert [(r["method"], r["kernel_ms"]) for r in rows] == [("naive", 2.0), ("cpu", 5.0), ("bitmap_warp", 4.0)]


def test_the_records_here_have_all_three_timings():
    rows = [r for graphs in records.counts().values() for found in graphs.values() for r in found]
    assert rows and all(0 < r["kernel_ms"] <= r["process_ms"] <= r["total_ms"] for r in rows)


# ---------------------------------------------------------------------------------------------- the records of tcgpu


def ours(suite):
    """The records of a suite in data/measured; others' may lack what their machines cannot measure."""
    return [rows for rows in records.records(suite).values() if "suite" not in rows[0]]


@pytest.mark.parametrize(
    "suite, keys",
    [
        ("report", ("graph", "method", "order")),
        ("trusses", ("graph", "k", "method")),
        ("truss3", ("graph", "method")),
        ("published", ("case", "version")),
    ],
)
def test_a_record_has_each_combination_once(suite, keys):
    for rows in ours(suite):
        combinations = itertools.product(*({row[key] for row in rows} for key in keys))
        assert Counter(tuple(row[key] for key in keys) for row in rows) == Counter(combinations)


@pytest.mark.parametrize(
    "suite, keys, each",
    [
        ("sweep", ["nonzeros_per_column", "order", "method"], {1, 3}),
        ("lengths", ["method", "knobs"], {28}),
        ("cache", ["nonzeros_per_column", "shared_percent", "method"], {2}),
    ],
)
def test_a_record_has_as_many_rows_of_each_kind(suite, keys, each):
    for rows in ours(suite):
        assert {*Counter(tuple(row[key] for key in keys) for row in rows).values()} == each


@pytest.mark.parametrize("suite", ["report", "table1", "levels", "sweep", "cache", "tricore", "gpu", "published"])
def test_methods_agree_on_a_recorded_graph(suite):
    for rows in records.records(suite).values():
        counts = {}
        for one in rows:
            counts.setdefault((one["graph"], one["edges"]), set()).add(one["triangles"])
        assert all(len(found - {""}) == 1 for found in counts.values())


def test_both_ways_to_a_truss_keep_as_many_edges():
    for suite in ("trusses", "truss3"):
        kept = {}
        for one in records.reference(suite):
            kept.setdefault((one["graph"], one["k"]), set()).add(one["kept"])
        assert all(len(found) == 1 for found in kept.values())


def test_what_notebooks_say_of_other_records_than_they_show():
    """Notebook 7: of which sets of vertices there are times. Notebook 8: what two ideas save on a large graph."""
    sets = [row for row in records.reference("combinations") if row["way"] == "levels" and row["process_ms"] != ""]
    assert max(row["vertices"] for row in sets) == 800 and {row["k"] for row in sets} == {3, 4, 5}
    large = [row for row in records.reference("classes") if row["graph"] == "graph500-scale25-ef16"]
    ms = {(row["crowd"], row["short"]): row["kernel_ms"] for row in large}
    assert min(ms[512, 2**30], ms[2**30, 32]) > 1.05 * ms[512, 32]


def test_the_page_of_measurements_names_every_record(root):
    page = (root / "docs" / "measured.md").read_text(encoding="utf-8").partition("## All records")[2]
    named = {name for line in page.splitlines() if line.startswith("|") for name in line.split("|")[1].split(", ")}
    files = {path.stem for path in (root / "data" / "measured").glob("*.csv")}
    named = {name.strip() for name in named} - {"name", "---"}
    assert named and {name for name in named if any(file.startswith(f"{name}-") for file in files)} == named
    assert not [file for file in files if not any(file.startswith(f"{name}-") for name in named)]


# ------------------------------------------------------------------------------------------------- what lies in data/

TABLES = "measured/*.csv", "published/*.csv", "graphs/INDEX.tsv"
COMMON = "Columns of many records"
SECTION = re.compile(r"^##+ (.+)\n\n\| columns \| what \|\n\|---\|---\|\n((?:\|.+\n)+)", re.MULTILINE)


def described(page):
    """Of each section of data/README.md, the columns that it describes: title -> names."""
    tables = {title: re.findall(r"^\| (.+?) \| .+ \|$", lines, re.MULTILINE) for title, lines in SECTION.findall(page)}
    return {title: {name for cell in cells for name in cell.split(", ")} for title, cells in tables.items()}


def undescribed(root):
    """What data/README.md says nothing of, and what it describes that is not there, as sentences."""
    sections = described((root / "data" / "README.md").read_text(encoding="utf-8"))
    titles = {name.strip("`"): title for title in sections for name in title.split(", ")}
    unused = {title: set(names) for title, names in sections.items()}
    for path in sorted(path for pattern in TABLES for path in (root / "data").glob(pattern)):
        with path.open(newline="", encoding="utf-8") as file:
            columns = set(next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")))
        name = f"{path.parent.name}/{path.name}"
        suites = [suite for suite in titles if name.startswith(f"measured/{suite}-")]
        for title in [titles.get(max(suites, key=len, default=name)), COMMON if name.startswith("measured/") else None]:
            unused.get(title, set()).difference_update(columns)
            columns -= sections.get(title, set())
        yield from (f"the column {column!r} of {name} has no description" for column in sorted(columns))
    yield from (
        f"no file of {title} has a column {name!r}" for title, names in unused.items() for name in sorted(names)
    )


def test_every_column_in_data_is_described(root):
    """A new record or column needs a line in data/README.md, and one that went has none."""
    assert list(undescribed(root)) == []


def test_a_column_without_description_is_noticed(root, tmp_path):
    page = (root / "data" / "README.md").read_text(encoding="utf-8")
    for name in "measured/report-gpu-x.csv", "measured/new-gpu-x.csv", "published/new.csv", "published/errata.csv":
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("graph,made,novelty\n")
        (tmp_path / "data" / "README.md").write_text(page, encoding="utf-8")
        said = list(undescribed(tmp_path))
        assert f"the column 'novelty' of {name} has no description" in said
        assert (f"the column 'made' of {name} has no description" in said) == ("report" not in name)
        assert "no file of `published/errata.csv` has a column 'printed'" in said
