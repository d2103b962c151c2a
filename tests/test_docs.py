"""The pages in docs/ are true: examples and commands print what they show, files that they name are there."""

import re

import pytest
from pages import check_python

import tcgpu


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


def test_the_examples_of_the_reference_print_what_it_shows(reference, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_python(reference, "reference.md") > 60
