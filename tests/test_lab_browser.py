"""JupyterLab as a person meets it: the first notebook, opened in a real browser and run from top to bottom."""

import contextlib
import json
import os
import subprocess
import sys
import time

import nbformat
import pytest

pytestmark = pytest.mark.browser

FIRST = "00_start_here.ipynb"
# Chromium as root in a container: no sandbox, no screen, no calls home.
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# No question whether to fetch news.
SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}


@pytest.fixture
def lab(root, tmp_path):
    """JupyterLab over a copy of the notebooks without outputs; yields its folder and the address of a notebook."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for path in root.glob("notebooks/*.ipynb"):
        nbformat.write(without_outputs(nbformat.read(path, as_version=4)), folder / path.name)
    environment = {**os.environ, "PYTHONPATH": str(root)}
    for kind in ("JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME", "JUPYTERLAB_SETTINGS", "JUPYTERLAB_WORKSPACES"):
        environment[f"{kind}_DIR"] = str(tmp_path / kind)
    for name, values in SETTINGS.items():
        path = tmp_path / "JUPYTERLAB_SETTINGS" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(values))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        facts = facts_of(server, tmp_path)
        yield folder, f"{facts['url']}lab/tree/{{}}?token={facts['token']}"
    finally:
        server.terminate()
        server.wait(30)


def without_outputs(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def facts_of(server, folder, seconds=60):
    """What the server writes down about itself when it listens."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(StopIteration, json.JSONDecodeError):
            return json.loads(next(folder.glob("JUPYTER_RUNTIME/jpserver-*.json")).read_text())
        time.sleep(0.2)
    raise AssertionError("JupyterLab did not start:\n" + (folder / "log").read_text())


def texts(path):
    """Of each code cell: its execution count, and the text of its outputs unless it is tagged as changing."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [
        (cell.execution_count, "nbval-ignore-output" in cell.metadata.get("tags", []) or text_of(cell.outputs))
        for cell in cells
    ]


def text_of(outputs):
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_the_first_notebook_runs_in_jupyterlab(lab, root, chromium):
    from playwright.sync_api import expect, sync_playwright

    folder, address = lab
    errors = []
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM).new_page()
        page.set_viewport_size({"width": 1400, "height": 1000})
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address.format(FIRST), timeout=60_000)
        expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible(timeout=60_000)

        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        cells = len(texts(folder / FIRST))
        expect(page.locator(".jp-InputPrompt", has_text=f"[{cells}]:")).to_be_visible(timeout=120_000)
        page.keyboard.press("Control+s")

        shots = root / "report" / "screenshots"
        shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=shots / "start_here.png")
        until = time.monotonic() + 30
        while texts(folder / FIRST)[-1][0] is None and time.monotonic() < until:
            page.wait_for_timeout(200)
    assert texts(folder / FIRST) == texts(root / "notebooks" / FIRST)
    assert errors == []
