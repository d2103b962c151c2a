"""The README is true: its commands and examples print what it shows. Tables of it and of docs/ are those of records."""

import itertools
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from pages import blocks, check_console, check_python

import tcgpu
from helpers import measured, readme_picture
from tcgpu import records
from tcgpu.lab import sweep
from tcgpu.records import Rows

# the comment above a table of records: which file, which column is shown, by which columns its rows and columns go; or
# which columns are shown, by which its rows go
RECORDED = re.compile(r"<!-- (data/measured/\S+): ([\w, ]+) by (\w+)(?: and (\w+))? -->\n\n((?:\|.*\n)+)")
DRAW_AGAIN = "draw the picture again: python notebooks/helpers/readme_picture.py"


@pytest.fixture(scope="module")
def text(root):
    return (root / "README.md").read_text(encoding="utf-8")


def cells(lines):
    """A table's rows as lists of cells, without the line that separates its head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if set("".join(row)) - set("-:")]


def as_table(rows):
    """Rows of cells as the lines of a table, to be pasted where they are missing."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def test_the_two_commands_are_make_targets(root, text):
    if not shutil.which("make"):
        pytest.skip("no make on this machine")
    commands = [line.partition("#")[0].split() for block in blocks(text, "sh") for line in block.splitlines()]
    assert commands == [["make", "lab"], ["make", "test"]]
    for command in commands:
        subprocess.run([*command, "--dry-run"], cwd=root, check=True, capture_output=True)


def test_every_other_target_it_names_exists(root, text):
    targets = re.findall(r"^(\w+):.* ## ", (root / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`make (\w+)`", text)) <= set(targets)


def test_every_file_it_names_exists(root, text):
    links = re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r"`((?:data|notebooks|tests)/[^`]+|\w+\.yml)`", text)
    assert links and not [link for link in links if not (root / link).exists()]


def test_its_python_examples_print_what_it_shows(text):
    assert check_python("\n".join(blocks(text, "python")), "README.md") >= 5


def test_its_shell_commands_print_what_it_shows(root, text, tmp_path):
    assert check_console(text, root, tmp_path)


def test_every_subcommand_it_names_exists(root, text):
    named = set(re.findall(r"`tcgpu (\w+)", text))
    usage = subprocess.check_output([sys.executable, "-m", "tcgpu", "--help"], cwd=root, text=True)
    assert named and all(re.search(rf"\b{name}\b", usage) for name in named)


def test_figures_are_the_recorded_ones(root):
    """Every table of measurements, cell by cell; of several records for a cell, with other knobs, the best."""
    text = (root / "docs" / "measured.md").read_text(encoding="utf-8")
    sections = {part: RECORDED.findall(part) for part in re.split(r"^##", text, flags=re.MULTILINE)}
    assert len([table for tables in sections.values() for table in tables]) >= 20
    for said, tables in sections.items():
        if tables:  # all tables here show records
            assert sum(len(table.splitlines()) for *_, table in tables) == said.count("\n|")
        for file, shown, down, across, table in tables:
            records = Rows.read_csv(root / file)
            assert cells(table.splitlines()) == recorded(records, shown, down, across, cells(table.splitlines()))
            assert re.search(rf"\]\((\.\./)*{re.escape(file)}\)", said), f"the section has no link to {file}"
            facts = {r.get("gpu_name") or r["cpu"] for r in records} | {r["date"] for r in records}
            assert all(fact in " ".join(said.split()) for fact in facts), f"the section does not name {facts}"


def recorded(records, shown, down, across, table):
    """A table of cells as the records have it, for the heading and the first column of `table`."""
    head, *rows = table
    if across:
        columns = [(shown, {across: column.strip("`")}) for column in head[1:]]
    else:
        columns = [(value, {}) for value in shown.split(", ")]
    expected = [head if across else [down, *(value.replace("_", " ") for value, _ in columns)]]
    for name, *_ in rows:
        row = [r for r in records if r[down] == name]
        found = [[r[v] for r in row if all(str(r[key]) == value for key, value in w.items())] for v, w in columns]
        found = [[value for value in values if value != ""] for values in found]
        expected.append([name, *(f"{min(values):.3g}" if values else "-" for values in found)])
    print(f"the table should be\n{as_table(expected)}")
    return expected


def test_the_tables_of_webgpu_are_the_records(root):
    """Kernel times by WebGPU over those by CUDA; and the speedups of the sweep by both, for the rows of the table."""
    page = (root / "docs" / "measured.md").read_text(encoding="utf-8")
    section = page.partition("\n## WebGPU\n")[2].partition("\n## ")[0]
    ratios, curves = (cells(part.splitlines()) for part in section.split("### The sweep"))
    head, *rows = measured.ratio_table(measured.webgpu_over_cuda(records.reference("webgpu"))).table()
    expected = [head, *([f"`{name}`", *(times or "-" for times in row)] for name, *row in rows)]
    assert ratios == expected, f"the table should be\n{as_table(expected)}"
    found = [
        dict(measured.speedup_curve(records.records(suite)[gpu + by], sweep.REPORT_COLUMNS))
        for gpu in ("NVIDIA H200", "NVIDIA H100 80GB HBM3")
        for suite, by in (("sweep", ""), ("webgpu-sweep", " by WebGPU, Vulkan"))
    ]
    expected = [[x, *(f"{curve[float(x)]:.3f}" for curve in found)] for x, *_ in curves[1:]]
    assert len(expected) > 10 and curves[1:] == expected, f"the table should be\n{as_table(expected)}"


def test_the_count_of_gap_kron_is_the_recorded_one(root, text):
    rows = Rows.read_csv(root / "data/measured/gap-nvidia-h200.csv")
    (kron,) = (row for row in rows if row["graph"] == "gap_kron 27")
    device, host = kron["device_total_ms"] / 1e3, kron["total_ms"] / 1e3
    said = " ".join(text.split())
    assert kron["triangles"] == kron["published"] and f"{kron['triangles']:,} triangles" in said
    assert f"{kron['records'] / 1e9:.1f} billion raw edges" in said
    assert f"counts them in {device:.2f} s" in said and f"in {host:.1f} s from the host's memory" in said
    assert kron["gpus"] == 2 and f"two H200 in {kron['divided_ms'] / 1e3:.2f} s" in said


def test_the_table_of_methods_has_all_of_them(root):
    table = cells((root / "docs" / "methods.md").read_text(encoding="utf-8").splitlines())
    expected = [[f"`{method.name}`", method.source, method.summary] for method in tcgpu.methods()]
    assert table[1:] == expected, f"the table should be\n{as_table(expected)}"


OTHERS = {"first": "others", "later": "chosen later", "last": "chosen last"}


def test_what_the_page_on_checks_says_of_estimates_is_the_record(root):
    """The table of errors, and the sentence on launches that nothing was fitted to."""
    text = (root / "docs" / "checks.md").read_text(encoding="utf-8")
    scored = [row for row in records.reference("estimates") if row["kernel_ms"] != ""]
    ranked = [
        (low["estimated_ms"] < high["estimated_ms"], low)
        for low, high in itertools.permutations(scored, 2)
        if (low["graph"], low["estimated_for"]) == (high["graph"], high["estimated_for"])
        and high["kernel_ms"] >= 1.2 * low["kernel_ms"]
    ]

    def graphs_of(row):
        return "fitted to" if row["fitted"] == "True" else OTHERS[row["chosen"]]

    def errors(gpu, *graphs, long=False):
        own = [row for row in scored if row["estimated_for"] == gpu and graphs_of(row) in graphs]
        own = [row for row in own if not long or 1 <= row["kernel_ms"] <= 100]
        return 100 * np.array([abs(row["estimated_ms"] / row["kernel_ms"] - 1) for row in own])

    expected = []
    for gpu, graphs in itertools.product(("NVIDIA H200", "NVIDIA H100"), ("fitted to", *OTHERS.values())):
        off = errors(gpu, graphs)
        if off.size:
            right = [hit for hit, row in ranked if (row["estimated_for"], graphs_of(row)) == (gpu, graphs)]
            pairs = f"{100 * np.mean(right):.1f} % of {len(right)}"
            expected.append([gpu, graphs, f"{off.size}", f"{np.median(off):.1f} %", f"{off.mean():.1f} %", pairs])
    table = [row for row in cells(text.splitlines()) if row[0].startswith("NVIDIA H") and len(row) == 6]
    assert table == expected, f"the table should be\n{as_table(expected)}"
    whole, long, of_h100 = (
        errors(gpu, *OTHERS.values(), long=long)
        for gpu, long in (("NVIDIA H200", False), ("NVIDIA H200", True), ("NVIDIA H100", True))
    )
    said = (
        f"Over all {whole.size} launches on an H200 that nothing was fitted to, the mean error is {whole.mean():.1f} %"
        f"; for kernels of 1 to 100 ms it is {long.mean():.1f} %, on the H100 {of_h100.mean():.1f} %."
    )
    assert said in " ".join(text.split())


@pytest.mark.full
def test_its_picture_is_the_one_that_is_drawn_now(tmp_path):
    """Records are shown as they are; an estimate may differ by a tenth before the picture has to be drawn again."""
    readme_picture.draw(tmp_path / "again.svg")
    stored, again = (readme_picture.curves_in(path) for path in (readme_picture.PICTURE, tmp_path / "again.svg"))
    assert [curve[:2] for curve in stored] == [curve[:2] for curve in again], DRAW_AGAIN
    for old, new in zip(stored, again, strict=True):
        tolerance = 0.1 if new.kind == "estimated" else 1e-9
        assert np.array(old.points) == pytest.approx(np.array(new.points), rel=tolerance), DRAW_AGAIN


def test_the_lines_of_its_picture_lie_where_its_numbers_say():
    """In both directions, places are proportional to the logarithms of the numbers."""
    numbers, places = [], []
    for curve in readme_picture.curves_in(readme_picture.PICTURE):
        name = f"{curve.name} {curve.kind}".replace(" ", "-")
        path = ElementTree.parse(readme_picture.PICTURE).find(f".//*[@id='{name}']/{{http://www.w3.org/2000/svg}}path")
        places += re.findall(r"[ML] (\S+) (\S+)", path.get("d"))
        numbers += curve.points
    for number, place in zip(np.log(numbers).T, np.array(places, float).T, strict=True):
        assert np.polyval(np.polyfit(number, place, 1), number) == pytest.approx(place, abs=0.01)


def test_it_says_of_its_picture_what_the_numbers_say(root, text):
    """In short; the page of measurements says all that there is to say of the curves."""
    curves = readme_picture.curves_in(readme_picture.PICTURE)
    page = (root / "docs" / "measured.md").read_text(encoding="utf-8")
    assert readme_picture.described(page) == page, "python notebooks/helpers/readme_picture.py writes it"
    assert measured.describe_sweep(curves)[0] in " ".join(page.split())
    passes = {(curve.name, curve.kind): sweep.crossings(curve.points) for curve in curves}
    assert "](data/measured/sweep.svg)" in text
    said = "a Tesla T4, it is from about {:.0f} nonzeros per column on; on an H200, measured here, nowhere"
    assert said.format(*passes["Tesla T4", "published"]) in " ".join(text.split())
    assert passes["NVIDIA H200", "measured"] == []
