"""The first notebook, opened in JupyterLab in a real browser and run from top to bottom."""

import contextlib
import json
import time

import pytest
from chromium import texts

pytestmark = pytest.mark.browser

FIRST = "00_start_here.ipynb"


def save(page, file):
    """Save the notebook that is open, and wait until its file is written, to the end."""
    written, until = file.stat().st_mtime_ns, time.monotonic() + 30
    page.keyboard.press("Control+s")
    while not (new := file.stat().st_mtime_ns != written and is_whole(file)) and time.monotonic() < until:
        page.wait_for_timeout(200)
    assert new, "it was not saved"


def is_whole(file):
    with contextlib.suppress(json.JSONDecodeError):
        return bool(json.loads(file.read_text()))
    return False


def test_the_first_notebook_runs_in_jupyterlab(lab, root):
    page = lab.open(FIRST)
    lab.run_all(page, FIRST)
    lab.screenshot(page, "start_here")
    save(page, lab.folder / FIRST)
    assert texts(lab.folder / FIRST) == texts(root / "notebooks" / FIRST)
    assert lab.errors == []


def test_to_open_run_and_save_a_notebook_changes_nothing(lab):
    file = lab.restore(FIRST)
    before = file.read_bytes()
    page = lab.open(FIRST)
    lab.run_all(page, FIRST)
    save(page, file)
    assert file.read_bytes() == before
    assert page.get_by_text("official Jupyter news").count() == 0
    assert lab.errors == []
