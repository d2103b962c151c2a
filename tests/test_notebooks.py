"""The rules that every notebook keeps, so that strict nbval compares something and compares the same everywhere."""

import base64
import copy
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CODE_LINES, CELL_LINES, KERNEL_LINES = 110, 12, 18
TITLE = r"^(?:##+ |\*\*(?=Predict:))(?!The answer$)(.*)"  # of a section, or a question in bold letters
FOLDED_PROSE = r"##+ The answer|<details><summary>.*</details>"

spec = importlib.util.spec_from_file_location("notebooks_run", FOLDER / "helpers" / "run.py")
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def lines_of(cell):
    return [line for line in cell.source.splitlines() if line.strip()]


def of_question(cell):
    return cell.cell_type == "code" and "answers.verdict(" in cell.source


def of_exercise(cell):
    return of_question(cell) or "exercise" in cell.metadata.get("tags", [])


@every_notebook
def test_has_a_title(path):
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# "), "the first cell is not a title"


@every_notebook
def test_code_is_short(path):
    own = [cell for cell in code_cells(path) if run.ELSEWHERE not in cell.metadata.get("tags", [])]
    sizes = [len(lines_of(cell)) for cell in own]
    for k, (cell, size) in enumerate(zip(own, sizes, strict=True)):
        most = KERNEL_LINES if "puzzle" in cell.metadata.get("tags", []) else CELL_LINES  # a kernel to fill in
        assert size <= most, f"cell {k} has {size} lines"
    text = [size for cell, size in zip(own, sizes, strict=True) if not of_exercise(cell)]
    assert sum(text) <= CODE_LINES


def predictions(cells):
    """For each question of a prediction the cells that follow it, up to the next heading; "The answer" is none."""
    found, section = [], None
    for cell in cells:
        before, *titled = re.split(TITLE, cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else [""]
        if section is not None and (not titled or before.strip()):
            section.append(cell)
        if titled:
            section = [] if titled[-2].startswith("Predict") else None
            found += [section] if section is not None else []
    return found


@every_notebook
def test_predictions_hold_their_breath(path):
    """What answers a prediction's question is folded, up to the next heading: see CONTRIBUTING.md."""
    for section in predictions(nbformat.read(path, as_version=4).cells):
        asked = [of_question(cell) for cell in section]
        assert any(asked), "a prediction has no cell with answers.verdict"
        for cell in section[asked.index(True) + 1 :]:
            if cell.get("outputs"):
                assert cell.source.startswith(run.FOLD) and cell.metadata.jupyter.outputs_hidden, cell.source
            elif cell.cell_type == "markdown" and run.FOOTER not in cell.metadata.get("tags", []):
                assert re.fullmatch(FOLDED_PROSE, cell.source, re.DOTALL), cell.source


def test_a_prediction_ends_at_the_next_heading_and_not_before():
    texts = ["## A\n\n### Predict\n\nWhich?", "## The answer", "It is x.", "And so.\n\n## B", "**Predict:** y?", "z"]
    found = predictions([new_markdown_cell(text) for text in texts])
    assert [[cell.source for cell in section] for section in found] == [texts[1:4], texts[5:]]


@every_notebook
def test_was_run_from_top_to_bottom(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(cell.outputs for cell in cells), "no output is stored: nbval would compare nothing"


@every_notebook
def test_stores_text_and_small_pictures(path):
    notebook = nbformat.read(path, as_version=4)
    assert "widgets" not in notebook.metadata and path.stat().st_size < 1_000_000
    for cell in code_cells(path):
        for data in (output.get("data", {}) for output in cell.outputs):
            assert set(data) <= {"text/plain", "text/html", "text/markdown", "image/png"}
            text = data.get("text/plain", "")
            assert ("image/png" in data) == text.startswith(("<Picture", "<Stepper", "<Player", "<Figure")), text
            if "image/png" in data:
                picture = base64.b64decode(data["image/png"])
                assert picture.startswith(b"\x89PNG") and not re.search(rb"tEXt|iTXt|zTXt|eXIf", picture)


@every_notebook
def test_skips_no_check(path):
    for cell in code_cells(path):
        tags = cell.metadata.get("tags", [])
        assert "nbval-skip" not in tags and "NBVAL" not in cell.source
        assert "raises-exception" in tags or all(output.output_type != "error" for output in cell.outputs)


@every_notebook
def test_ignores_only_what_this_machine_measures(path):
    for cell in code_cells(path):
        if run.IGNORED in cell.metadata.get("tags", []):
            assert not re.search(r"\brecords\.|\bpublished\(", cell.source), "records are the same everywhere"


@every_notebook
def test_names_no_path_of_one_machine(path):
    assert not re.search(r"(?<![\w.:/])/(home|root|Users|tmp|work|opt)/", path.read_text(encoding="utf-8"))


@every_notebook
def test_uses_no_widget_that_prints(path):
    source = "\n".join(cell.source for cell in code_cells(path))
    assert not re.search(r"\binteract(ive|_manual)?\(|\bOutput\(", source)


@every_notebook
def test_badges_are_those_of_the_project(path):
    """Badges and the cell that installs are those of the address in pyproject.toml; without one there are none."""
    notebook = nbformat.read(path, as_version=4)
    before = [cell.source for cell in notebook.cells]
    run.with_badges(notebook, path.name, run.address())
    assert [cell.source for cell in notebook.cells] == before, "`make notebooks` brings them up to date"


def test_the_first_notebook_lists_all_others():
    assert sorted(run.reading_order()) == sorted(path.name for path in NOTEBOOKS)


def test_the_path_takes_an_hour_and_its_notebooks_say_how_much_of_it():
    path, _ = run.contents()
    cards = re.findall(r"\*\*\d · (.*)\*\*\n\n(\d+) minutes", path.source)
    plan = (FOLDER.parent / "docs" / "teaching.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert [minutes for _, minutes in cards] == re.findall(r"^\| (\d+) \|", plan, re.MULTILINE)
    assert sum(int(minutes) for _, minutes in cards) == 60
    for card, minutes in cards[:2]:
        title = nbformat.read(FOLDER / re.search(r"\((.*)\)", card)[1], as_version=4).cells[0].source
        assert f"It takes about {minutes} minutes" in title


WORDS = re.findall(
    r"^### (.+)\n\n[^#]*\(\.\./notebooks/(\w+\.ipynb)\)",
    (FOLDER.parent / "docs" / "glossary.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize("word, name", WORDS)
def test_a_word_of_the_glossary_is_linked_where_it_is_said_first(word, name):
    """No text on the path of the hour uses it before that: up to the notebook that the glossary names."""
    path = re.findall(r"\]\((\w+\.ipynb)\)", run.contents()[0].source)
    if name not in path:
        pytest.skip("after the hour")
    link = f"](../docs/glossary.md#{word.replace(' ', '-')})"
    for one in path[: path.index(name) + 1]:
        cells = nbformat.read(FOLDER / one, as_version=4).cells
        said = "\n".join(
            cell.source for cell in cells if cell.cell_type == "markdown" and not cell.metadata.get("tags")
        )
        said = said.partition("\n## More")[0] if one != name else said.partition(link)[0].rpartition("[")[0]
        said = re.sub(r"^#+ .*$|`[^`]*`|\[[^]]*\]\([^)]*(\.ipynb|glossary[^)]*)\)", "", said, flags=re.MULTILINE)
        found = re.search(rf"\b{word}s?\b.*", said, re.IGNORECASE)
        assert not found, f"{one}: {found[0]}"
    assert link in "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_teachers_have_three_questions_for_each_notebook_and_where_it_answers_them():
    text = (FOLDER.parent / "docs" / "teaching.md").read_text(encoding="utf-8")
    parts = (part.partition(")\n") for part in re.split(r"\n## (?=\[)", text)[1:])
    sections = {heading.partition("(../notebooks/")[2]: questions for heading, _, questions in parts}
    assert list(sections) == run.reading_order()
    for name, section in sections.items():
        assert re.findall(r"^(\d)\. \*\*[^*]+\?\*\* \S", section, re.MULTILINE) == ["1", "2", "3"], name
        cells = nbformat.read(FOLDER / name, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        places = re.findall(r"\[In: \*(.*?)\*\]", " ".join(section.split()))
        assert len(places) == 3, name
        named = {place for each in places for place in each.split("*, *")}
        assert named <= set(re.findall(r"^##+ (.*)$", text, re.MULTILINE)), name


@every_notebook
def test_ends_with_links_to_its_neighbours(path):
    notebook = nbformat.read(path, as_version=4)
    last = notebook.cells[-1].source
    run.with_footer(notebook, path.name)
    assert notebook.cells[-1].source == last, "`notebooks/helpers/run.py store` brings it up to date"
    assert f"({run.CONTENTS})" in last and all(
        (FOLDER / name).is_file() for name in re.findall(r"\((\w+\.ipynb)\)", last)
    )


def draw_into(folder):
    """The file of a notebook that prints, draws and shows a widget, not yet run."""
    path = folder / "a drawing.ipynb"
    cells = [
        new_markdown_cell("# Squares & lines\n\nFour *squares*,\nas a `line`.\n\nMore."),
        new_code_cell("print([i * i for i in range(4)])"),
        new_code_cell("import matplotlib.pyplot as plt\n\n_ = plt.plot([0, 1, 4, 9])"),
        new_code_cell("import ipywidgets\n\nipywidgets.IntSlider(3)"),
    ]
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.fixture
def drawing(tmp_path):
    return draw_into(tmp_path)


@pytest.fixture(scope="module")
def stored_and_run(tmp_path_factory):
    """What the file of such a notebook has once it is stored, and the notebook after another run; for all tests."""
    path = draw_into(tmp_path_factory.mktemp("stored"))
    run.store(path)
    return path.read_bytes(), run.execute(nbformat.read(path, as_version=4))


def nbval(path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", path]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent)


@pytest.mark.full
def test_a_stored_notebook_passes_nbval_until_its_output_is_wrong(drawing):
    run.store(drawing)
    for rule in (test_was_run_from_top_to_bottom, test_stores_text_and_small_pictures):
        rule(drawing)
    text = drawing.read_text()
    assert "[0, 1, 4, 9]" in text and "<Figure size" in text and "IntSlider" in text
    result = nbval(drawing)
    assert "3 passed" in result.stdout, result.stdout

    drawing.write_text(text.replace("[0, 1, 4, 9]\\n", "[0, 1, 4, 8]\\n"))
    assert "1 failed" in nbval(drawing).stdout


def saved(model, path):
    """Save the model of a notebook as JupyterLab does, with `keep_stored` before it."""
    manager = SimpleNamespace(_get_os_path=lambda name: str(path.parent / name))
    run.keep_stored(model, path.name, manager)
    nbformat.write(nbformat.from_dict(model["content"]), path)


@pytest.fixture
def live(drawing, stored_and_run, monkeypatch):
    """The model of a stored notebook that was run in JupyterLab, with other ids, pictures and metadata than stored."""
    drawing.write_bytes(stored_and_run[0])
    monkeypatch.setattr(run, "HERE", drawing.parent.resolve())
    notebook = copy.deepcopy(stored_and_run[1])
    for cell in notebook.cells:
        cell.id, cell.metadata["collapsed"] = f"id-{cell.id}", False
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = A_PIXEL
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    printed = notebook.cells[1].outputs[0]
    notebook.cells[1].outputs = [{**printed, "text": "[0, 1, "}, {**printed, "text": "4, 9]\n"}]
    return {"type": "notebook", "content": notebook}


A_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def test_to_run_and_save_a_notebook_changes_nothing(drawing, live):
    before = drawing.read_bytes()
    saved(live, drawing)
    assert drawing.read_bytes() == before


def test_what_the_user_changes_is_saved(drawing, live):
    notebook = live["content"]
    notebook.cells[1].outputs = [{**notebook.cells[1].outputs[0], "text": "[0, 1, 4, 8]\n"}]
    notebook.cells[2].source += "  # another chart"
    saved(live, drawing)
    after = nbformat.read(drawing, as_version=4)
    assert after.cells[1].outputs[0].text == "[0, 1, 4, 8]\n"
    assert after.cells[2].source.endswith("# another chart")
    assert after.cells[2].outputs[0].data["image/png"] == run.smaller(A_PIXEL)


def test_times_of_another_machine_stay(drawing, live):
    stored = nbformat.read(drawing, as_version=4)
    stored.cells[1].metadata.tags = live["content"].cells[1].metadata["tags"] = [run.IGNORED]
    nbformat.write(stored, drawing)
    before = drawing.read_bytes()
    live["content"].cells[1].outputs = [{**live["content"].cells[1].outputs[0], "text": "12 ms\n"}]
    saved(live, drawing)
    assert drawing.read_bytes() == before


def test_a_cell_that_was_not_run_stays(drawing, live):
    before = drawing.read_bytes()
    for cell in live["content"].cells[2:]:
        cell.outputs, cell.execution_count = [], None
    saved(live, drawing)
    assert drawing.read_bytes() == before


def test_notebooks_of_other_folders_are_saved_as_they_are(drawing, live, tmp_path):
    other = tmp_path / "elsewhere" / "mine.ipynb"
    other.parent.mkdir()
    nbformat.write(nbformat.from_dict(live["content"]), other)
    before = other.read_bytes()
    saved(live, other)
    assert other.read_bytes() == before


REPOSITORY = "https://github.com/somebody/tcgpu"


@pytest.mark.full
def test_a_public_project_has_badges_and_a_cell_that_installs_nothing_here(drawing, monkeypatch):
    monkeypatch.setattr(run, "address", lambda: REPOSITORY)
    monkeypatch.setenv("PATH", "")  # no pip, no nvidia-smi
    run.store(drawing)
    title, badges, install, *rest = nbformat.read(drawing, as_version=4).cells
    assert title.source.startswith("# Squares")
    opens = re.findall(r"\]\((https://[^)]+)\)", badges.source)
    assert opens[1::2] == [
        "https://colab.research.google.com/github/somebody/tcgpu/blob/main/notebooks/a drawing.ipynb",
        "https://mybinder.org/v2/gh/somebody/tcgpu/main?urlpath=lab/tree/notebooks/a drawing.ipynb",
    ]
    assert "git clone --quiet --depth 1 https://github.com/somebody/tcgpu checkout" in install.source
    assert install.execution_count == 1 and install.outputs == []
    assert "4 passed" in nbval(drawing).stdout
    for rule in (test_has_a_title, test_was_run_from_top_to_bottom, test_stores_text_and_small_pictures):
        rule(drawing)

    run.store(drawing)
    assert len(nbformat.read(drawing, as_version=4).cells) == 3 + len(rest)
    monkeypatch.setattr(run, "address", lambda: None)
    run.store(drawing)
    assert len(nbformat.read(drawing, as_version=4).cells) == 1 + len(rest)


def test_the_cell_installs_where_tcgpu_is_not(monkeypatch):
    """Run as IPython would, where nothing is called tcgpu: a clone of the repository, installed with CUDA on a GPU."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    commands = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shell, "system", commands.append)
    for magic in ("cd", "pip"):
        shell.register_magic_function(commands.append, "line", magic)
    for gpu, extra in (None, ""), ("/usr/bin/nvidia-smi", "[cu12]"):
        monkeypatch.setattr(shutil, "which", lambda name, found=gpu: found)
        shell.run_cell(run.elsewhere("x.ipynb", REPOSITORY)[1].source).raise_error()
        assert commands == [f"git clone --quiet --depth 1 {REPOSITORY} checkout", "-q checkout/notebooks",
                         f'install --quiet "..{extra}" anywidget ipywidgets matplotlib scipy']  # fmt: skip
        commands.clear()


def test_storing_again_changes_nothing(drawing, stored_and_run):
    drawing.write_bytes(stored_and_run[0])
    run.store(drawing)
    assert drawing.read_bytes() == stored_and_run[0]
