"""What docs/site/build.py makes of a notebook, and which folders it writes to; the pages are tested in a browser."""

import base64
import importlib.util
import json
import re
import subprocess
import sys
import zlib

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import tcgpu
from tcgpu.lab.stepper import Stepper, steps

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def build(root):
    spec = importlib.util.spec_from_file_location("site_build", root / "docs" / "site" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stepper():
    return Stepper(steps(tcgpu.generate.clique(4), "naive"))


def notebook_of(data, state):
    """A notebook as it is after a run: with a cell that has this output, and the state of its widgets."""
    cell = new_code_cell("...", outputs=[new_output("display_data", data)])
    widgets = {"application/vnd.jupyter.widget-state+json": {"state": {"one": {"state": state}}}}
    return new_notebook(cells=[new_markdown_cell("# A title\n\nText."), cell], metadata={"widgets": widgets})


def test_a_stepper_becomes_a_player_with_a_picture_for_those_without_scripts(build, stepper):
    data, _ = stepper._repr_mimebundle_()
    data[build.WIDGET]["model_id"] = "one"
    notebook = notebook_of(data, {"recording": stepper.recording, "step": 0})
    build.make_playable(notebook)
    found = notebook.cells[1].outputs[0].data
    assert set(found) == {"text/plain", "text/html"} and "widgets" not in notebook.metadata
    kept = re.search(r'<script type="text/plain">(.*)</script>', found["text/html"])[1]
    assert json.loads(zlib.decompress(base64.b64decode(kept))) == json.loads(json.dumps(stepper.recording))
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', found["text/html"])[1]
    assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_a_panel_says_that_it_needs_python(build):
    notebook = notebook_of({build.WIDGET: {"model_id": "one"}, "text/plain": "<Explorer>"}, {"children": []})
    build.make_playable(notebook)
    assert notebook.cells[1].outputs[0].data["text/html"] == build.NO_PANEL


def test_formulas_of_a_table_become_mathml(build):
    notebook = notebook_of({"text/html": r"<td>$a \notin b$, at most 3 $ and 4 $</td><td>$</td>"}, {})
    build.make_playable(notebook)
    found = notebook.cells[1].outputs[0].data["text/html"]
    assert found.count("<math") == 1 and "∉" in found and "at most 3 $ and 4 $" in found


def test_the_text_of_a_picture_is_its_alternative_text(build):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    notebook = notebook_of({"image/png": dot, "text/plain": "<Picture of a line>"}, {})
    build.make_playable(notebook)
    assert notebook.cells[1].metadata.mystnb == {"image": {"alt": "<Picture of a line>"}}


def test_each_part_of_the_reference_becomes_a_page_and_no_name_is_lost(build, root, tmp_path):
    build.add_reference(tmp_path)
    whole = (root / "docs" / "site" / "reference.md").read_text(encoding="utf-8")
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "reference").glob("*.md")}
    assert {"counts_and_what_follows_from_them", "graphs", "generate", "errors"} <= pages.keys()
    named = [name for text in pages.values() for name in build.NAMED.findall(text)]
    assert sorted(named) == sorted(build.NAMED.findall(whole)) and len(named) > 40
    front = (tmp_path / "reference.md").read_text(encoding="utf-8")
    assert all(f"](reference/{page}.md)" in front and f"\nreference/{page}\n" in front for page in pages)
    assert "`list_triangles`" in front and "| |" not in front


def test_the_page_of_commands_has_each_option_of_each(build, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    build.add_commands(tmp_path)
    text = (tmp_path / "commands.md").read_text(encoding="utf-8")
    for command in ("count", "truss", "generate", "estimate"):
        shown = text.partition(f"## `tcgpu {command}`\n")[2].partition("\n## ")[0]
        printed = subprocess.check_output([sys.executable, "-m", "tcgpu", command, "--help"], text=True)
        options = set(re.findall(r"--[a-z-]+", printed))
        assert options and options <= set(re.findall(r"--[a-z-]+", shown))


@pytest.mark.parametrize("name", ["index.html", "mine.html"])
def test_other_pages_are_not_changed(build, tmp_path, monkeypatch, name):
    (tmp_path / name).write_text("<p>mine")
    monkeypatch.setattr("sys.argv", ["build.py", "--stored", "--into", str(tmp_path)])
    with pytest.raises(SystemExit, match="left as"):
        build.main()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["<p>mine"]


def test_notebooks_of_other_folders_are_refused(build, tmp_path, monkeypatch, capsys):
    nbformat.write(new_notebook(), tmp_path / "mine.ipynb")
    monkeypatch.setattr("sys.argv", ["build.py", str(tmp_path / "mine.ipynb")])
    with pytest.raises(SystemExit):
        build.main()
    assert "a NOTEBOOK is one of" in capsys.readouterr().err


@pytest.mark.parametrize("options, said", [(["--pyodide", "{}"], "no copy of Pyodide"), (["--into", "{}"], "left as")])
def test_live_notebooks_need_a_pyodide_and_a_folder_of_their_own(root, tmp_path, options, said):
    (tmp_path / "mine").touch()
    command = [sys.executable, root / "docs" / "site" / "live.py", *(text.format(tmp_path) for text in options)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2 and said in result.stderr and (tmp_path / "mine").exists()
