"""JupyterLab and Voila as a user sees them: servers of a copy of the notebooks, and a Chromium that opens them.

A test uses the fixture `lab` (see conftest.py). Screenshots go to report/screenshots, for a build server to keep.
"""

import contextlib
import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from functools import cached_property
from pathlib import Path

import nbformat

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
# With WebGPU, on SwiftShader, a GPU in software.
WITH_WEBGPU = [option for option in CHROMIUM if option != "--disable-gpu"] + [
    "--enable-unsafe-webgpu",
    "--use-vulkan=swiftshader",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan,WebGPU",
]
SETTINGS = Path("helpers", "jupyter_settings")  # of the notebooks' folder: what `make lab` has Jupyter read
# Where Jupyter keeps things: all in a folder of the test's own.
PLACES = ("JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME", "JUPYTERLAB_SETTINGS", "JUPYTERLAB_WORKSPACES")
OPENS = 60_000  # milliseconds in which a page opens, on a machine that is busy, too
RUNS = 120_000  # and in which a notebook has run


class Servers:
    """A JupyterLab, started when the first page opens, over a copy of the notebooks without outputs, in `folder`."""

    def __init__(self, root, tmp_path, stack):
        self.root, self.folder, self._tmp, self._stack = root, tmp_path / "notebooks", tmp_path, stack
        shutil.copytree(root / "notebooks", self.folder, ignore=shutil.ignore_patterns("*.ipynb", "__pycache__"))
        self._without_outputs = {
            path.name: nbformat.writes(without_outputs(nbformat.read(path, as_version=4)))
            for path in root.glob("notebooks/*.ipynb")
        }

    @cached_property
    def jupyterlab(self):
        """What the server says of itself: its address and its token."""
        command = ["jupyterlab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
        return facts_of(self.serve(command, self._stack), self._tmp)

    def end_kernels(self):
        for session in self._ask("api/sessions") if "jupyterlab" in vars(self) else ():
            self._ask(f"api/sessions/{session['id']}", "DELETE")

    def begin_anew(self):
        """End all kernels; the notebooks, and what JupyterLab has open, are again as they were at first."""
        self.end_kernels()
        for path in self.folder.glob("*.ipynb"):
            path.unlink()
        for name, text in self._without_outputs.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        shutil.rmtree(self._tmp / "JUPYTERLAB_WORKSPACES", ignore_errors=True)

    def _ask(self, path, method="GET"):
        """The answer of JupyterLab's server to a request."""
        headers = {"Authorization": f"token {self.jupyterlab['token']}"}
        request = urllib.request.Request(self.jupyterlab["url"] + path, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

    def serve(self, arguments, stack):
        environment = {**os.environ, "PYTHONPATH": f"{self.folder}:{self.root}"}
        environment |= {f"{place}_DIR": str(self._tmp / place) for place in PLACES}
        environment["JUPYTER_CONFIG_PATH"] = str(self.folder / SETTINGS)
        log = stack.enter_context(open(self._tmp / "log", "a"))
        command = [sys.executable, "-m", *arguments]
        server = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log)
        stack.callback(server.wait, 30)
        stack.callback(server.terminate)
        return server


class Lab:
    """A page of JupyterLab, or of Voila, over the notebooks in `folder`; `errors` are those of the console."""

    def __init__(self, servers, chromium, stack):
        self.root, self.folder, self.errors = servers.root, servers.folder, []
        self._servers, self._chromium, self._stack = servers, chromium, stack
        servers.begin_anew()

    def open(self, notebook, *, width=1400, height=1000):
        """A page with a notebook in JupyterLab, its kernel idle."""
        facts = self._servers.jupyterlab
        page = self._page(width, height)
        page.goto(f"{facts['url']}lab/tree/{notebook}?token={facts['token']}", timeout=OPENS)
        self._until_idle(page)
        return page

    def open_again(self, page):
        """Open the notebook of the page from its file, with a new kernel."""
        address = page.url
        page.goto("about:blank")
        self._servers.end_kernels()
        page.goto(address, timeout=OPENS)
        self._until_idle(page)

    def _until_idle(self, page):
        from playwright.sync_api import expect

        expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible(timeout=OPENS)

    def restore(self, notebook):
        """Have the notebook with its stored outputs in the folder; returns its file."""
        return Path(shutil.copy(self.root / "notebooks" / notebook, self.folder))

    def render(self, notebook, *, width=1400, height=1000):
        """A page that Voila makes of a notebook of the folder that it serves.

        Requests to other hosts, such as for icons, get an empty response.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._servers.serve(["voila", ".", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1"], self._stack)
        listening("127.0.0.1", port)
        page, own = self._page(width, height), f"http://127.0.0.1:{port}/"
        page.route(lambda url: not url.startswith((own, "data:", "blob:")), lambda route: route.fulfill(body=""))
        page.goto(f"{own}voila/render/{notebook}", timeout=RUNS)
        return page

    def run_all(self, page, notebook):
        """Clear the outputs and numbers of all cells of the notebook that is open, run all, and wait for the last."""
        from playwright.sync_api import expect

        self.clear(page)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        cells = len(texts(self.folder / notebook))
        expect(page.locator(".jp-InputPrompt", has_text=f"[{cells}]:")).to_be_visible(timeout=RUNS)

    def clear(self, page):
        """Clear the outputs of all cells."""
        page.get_by_role("menuitem", name="Edit", exact=True).click()
        page.get_by_role("menuitem", name="Clear Outputs of All Cells", exact=True).click()

    def screenshot(self, page, name):
        """page: the page, or a part of it."""
        screenshot(self.root, page, name)

    def _page(self, width, height):
        from playwright.sync_api import sync_playwright

        playwright = self._stack.enter_context(sync_playwright())
        page = playwright.chromium.launch(executable_path=self._chromium, args=CHROMIUM).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page


class Panel:
    """The explorer at this place of a page."""

    def __init__(self, page, place=0):
        self.page, self.whole = page, page.locator(".tcgpu-explorer").nth(place)
        self.status, self.message = self.whole.locator(".tcgpu-status"), self.whole.locator(".tcgpu-message")
        self.table = self.whole.locator(".tcgpu-table:visible")
        self.chart = self.whole.locator("img:visible").first

    def click(self, name):
        self.whole.locator("button", has_text=re.compile(f"^\\s*{name}$")).click()

    def turn_to(self, page):
        self.whole.get_by_role("tab", name=page, exact=True).click()

    def pick(self, label, option):
        self.whole.get_by_label(label, exact=True).select_option(option)

    def enter(self, label, entry):
        """Enter something into a field; returns what it had before."""
        field = self.whole.get_by_label(label, exact=True)
        before = field.input_value()
        field.fill(entry)
        field.press("Enter")
        assert field.input_value() == entry  # not drawn anew while it was typed
        return before

    def rows(self):
        """The cells of the measured rows, without the recorded ones."""
        lines = self.table.locator("tr:not(.recorded)").all()[1:]
        return [line.locator("td").all_text_contents() for line in lines]

    def saved(self):
        """Click the link that saves the rows: the rows of the file."""
        with self.page.expect_download() as download:
            self.whole.locator("a.tcgpu-download").click()
        with open(download.value.path(), newline="") as file:
            return list(csv.DictReader(file))


def screenshot(root, page, name):
    """Keep a picture of a page, or of a part of it, for a build server."""
    shots = root / "report" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"{name}.png")


def without_outputs(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def facts_of(server, folder, seconds=60):
    """The file that JupyterLab writes about itself once it listens."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(StopIteration, json.JSONDecodeError):
            return json.loads(next(folder.glob("JUPYTER_RUNTIME/jpserver-*.json")).read_text())
        time.sleep(0.2)
    raise AssertionError("JupyterLab did not start:\n" + (folder / "log").read_text())


def listening(host, port, seconds=60):
    """Wait until something listens there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on port {port} after {seconds} seconds")


def texts(path):
    """Of each code cell: its execution count, and the text of its outputs unless it is tagged as changing."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [
        (cell.execution_count, "nbval-ignore-output" in cell.metadata.get("tags", []) or text_of(cell.outputs))
        for cell in cells
    ]


def text_of(outputs):
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
