"""The first notebook, opened in JupyterLab in a real browser and run from top to bottom."""

import time

import nbformat
import pytest
from chromium import texts
from nbformat.v4 import new_code_cell, new_notebook

from helpers import run

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
    """Its last line comes after all the rest."""
    return file.read_text().endswith("}\n")


def test_the_first_notebook_runs_and_is_saved_as_it_is_stored(lab, root):
    """First from a file without outputs, then from the stored one, which does not change."""
    page, file = lab.open(FIRST), lab.folder / FIRST
    listed = page.locator(".jp-DirListing-itemText").all_text_contents()
    assert (lab.folder / "helpers" / "charts.py").is_file() and listed == run.reading_order()
    lab.run_all(page, FIRST)
    lab.screenshot(page, "start_here")
    save(page, file)
    assert texts(file) == texts(root / "notebooks" / FIRST)

    before = lab.restore(FIRST).read_bytes()
    lab.open_again(page)
    lab.run_all(page, FIRST)
    save(page, file)
    assert file.read_bytes() == before
    assert page.get_by_text("official Jupyter news").count() == 0
    assert lab.errors == []


def test_an_answer_is_folded_when_all_cells_run_until_it_is_opened(lab):
    """Outputs of all kinds; and those of the cell after it, which is no answer, are there."""
    from playwright.sync_api import expect

    cells = ["import matplotlib.pyplot as plt\n\nfrom helpers import answers",
             'answers.fold()\nprint("it is 42")\n_ = plt.plot([4, 2])', 'print("what follows")']  # fmt: skip
    fold = new_notebook(cells=[new_code_cell(cell) for cell in cells], metadata={"kernelspec": run.KERNEL})
    nbformat.write(fold, lab.folder / "fold.ipynb")
    page = lab.open("fold.ipynb")
    lab.run_all(page, "fold.ipynb")
    expect(page.get_by_text("what follows", exact=True)).to_be_visible()
    answer, picture = page.get_by_text("it is 42", exact=True), page.locator(".jp-OutputArea img")
    lab.screenshot(page, "fold_closed")
    assert answer.count() == 1 and not answer.is_visible() and not picture.is_visible()
    page.get_by_text("The answer (decide first)").click()
    expect(answer).to_be_visible()
    expect(picture).to_be_visible()
    lab.screenshot(page, "fold_open")
