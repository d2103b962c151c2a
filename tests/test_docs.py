"""The pages in docs/ are true: examples and commands print what they show, files that they name are there."""

import importlib.util
import re
import socket
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pages import blocks, check_console, check_python, shell
from test_rooms import ROOMS

import tcgpu

DOCS = Path(__file__).resolve().parent.parent / "docs"
TESTED_ELSEWHERE = {"your_own_kernel.md", "simulator.md"}  # with methods and faults, whose tests they are
PAGES = sorted(f"docs/{path.name}" for path in DOCS.glob("*.md") if path.name not in TESTED_ELSEWHERE)


@pytest.fixture
def reference(root):
    return (root / "docs" / "site" / "reference.md").read_text(encoding="utf-8")


def test_the_reference_has_every_public_name(reference):
    named = set(re.findall(r"tcgpu\.(\w+)\s", reference)) | set(
        re.findall(r"^## `tcgpu\.(\w+)`", reference, re.MULTILINE)
    )
    assert named >= set(tcgpu.__all__)


def test_the_reference_has_an_example_for_every_public_name(reference):
    lines = "\n".join(
        line for line in reference.splitlines() if line.lstrip().startswith((">>> ", "... ", "tcgpu.errors"))
    )
    shown = set(re.findall(r"tcgpu\.(?:errors\.)?(\w+)", lines))
    assert shown >= set(tcgpu.__all__), set(tcgpu.__all__) - shown


@pytest.mark.full
def test_the_examples_of_the_reference_print_what_it_shows(reference, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_python(reference, "reference.md") > 60


def test_the_glossary_has_words_that_adaptive_uses(root):
    rows = (root / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## In `adaptive`")[2]
    words = re.findall(r"^\| ([a-z-]+(?: [a-z]{3,})*)", rows, re.MULTILINE)[1:]
    files = [*(root / "tcgpu/kernels/adaptive").glob("*.py"), root / "docs/adaptive.md"]
    text = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in files)
    assert {"near", "quad", "far window"} <= {*words}
    assert not [word for word in words if word not in text and word.replace(" ", "_") not in text]


@pytest.fixture(scope="module")
def diagrams(root):
    spec = importlib.util.spec_from_file_location("diagrams", root / "docs" / "site" / "diagrams.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_diagrams_are_those_that_are_drawn_now(root, diagrams):
    for name, draw in diagrams.PICTURES.items():
        stored = (root / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == draw(), "draw them again: python docs/site/diagrams.py"
        ElementTree.fromstring(stored)


def test_the_diagram_of_rooms_has_them_in_their_order(diagrams):
    shown = [room for _, _, rooms in diagrams.LAYERS for room in rooms]
    assert shown == ROOMS[::-1]


@pytest.mark.parametrize("name", ["edge", "kernel"])
def test_files_named_in_a_diagram_exist(root, diagrams, name):
    files = set(re.findall(r"\b\w+/(?:\w+\.py)?|\b\w+\.py", re.sub(r"<[^<>]*>", " ", diagrams.PICTURES[name]())))
    known = {path.relative_to(root / "tcgpu").as_posix() for path in (root / "tcgpu").rglob("*.py")}
    known |= {f"{path.parent}/" for path in map(Path, known)} | {"choose.py"}
    assert len(files) > 6 and files <= known


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(root, page):
    text = (root / page).read_text(encoding="utf-8")
    folder = (root / page).parent
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert not [link for link in links if not (folder / link).exists()]
    named = re.findall(r"`((?:tcgpu|benchmarks|tests|data|notebooks|docs|release)/[\w./-]*\w/?)`", text)
    assert not [name for name in named if not (root / name).exists() and "NAME" not in name]


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_print_what_it_shows(root, page, tmp_path, monkeypatch):
    text = (root / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(text, "python"))
    if ">>>" in code:
        check_python(code, page)
    if "```console" in text:
        check_console(text, root, tmp_path)


@pytest.mark.full
def test_the_sessions_of_large_graphs_work_with_a_small_one(root, tmp_path):
    """All commands of the how-tos in one shell: on a smaller file, without GPUs, on a port that is free."""
    text = (root / "docs" / "how_to.md").read_text(encoding="utf-8")
    sessions = re.findall(r"^```shell-session\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    script = "\n".join(line[2:] for lines in sessions for line in lines.splitlines() if line.startswith("$ "))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    for old, new in (("scale=22 edge_factor=26", "scale=10"), ("executor gpus", "executor processes"), ("8786", port)):
        assert old in script
        script = script.replace(old, new)
    script = f"trap 'kill 0' EXIT\n{script}\n"  # the scheduler and its workers would go on
    options = {"cwd": tmp_path, "env": shell(root, tmp_path), "text": True, "start_new_session": True}
    done = subprocess.run(["sh", "-ec", script], capture_output=True, timeout=280, **options)
    expected = tcgpu.count(tmp_path / "big.txt")
    counts = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert counts == [expected] * 5, done.stderr
