"""The live notebooks of the site in a browser with nothing installed, as a visitor has them; see live.py.

Without --full only the first two notebooks, the puzzles, the one with an own kernel, and the explorer, in whose page
all methods count in the simulator. Python starts anew in each page: a test does all that one page is needed for.
"""

import json
import re
import time
from pathlib import Path

import nbformat
import pytest
from chromium import OPENS, Panel, screenshot
from live import SHOWN, SOON, browsing, serving

from helpers import run

pytestmark = [pytest.mark.browser, pytest.mark.sim]
OWN_KERNEL, EXPLORER = "10_your_kernel", "explorer"  # they have tests of their own
ALWAYS = ("00", "01", "02_puzzles")
NAMES = sorted({path.stem for path in run.HERE.glob("*.ipynb")} - {OWN_KERNEL, EXPLORER})
KERNEL_PLUGIN = "@jupyterlite/pyodide-kernel-extension:kernel"
FIRST_CODE = (
    "jupyterapp.shell.currentWidget.content.widgets.find(({ model }) => model.type === 'code').model.sharedModel"
)
DIRTY = "jupyterapp.shell.currentWidget.context.model.dirty"

# All methods that have kernels, in the simulator: those that count otherwise
SIMULATED = """
graph, wrong = tcgpu.generate.rmat(5, 6, seed=1), []
for method in tcgpu.methods():
    knobs = {key: min(32, value) for key, value in method.knobs.items() if key in ("threads", "blocks") and value}
    if "sim" in method.engines:
        found = tcgpu.count(graph, method, engine="sim", max_seconds=600, **knobs)
        wrong += [(method.name, found)] if found != tcgpu.count(graph, "cpu") else []
print(wrong)
"""
KERNEL = """\
@tcgpu.method(threads=64, blocks=32)
def per_column(col_ptr, row_idx, total):
    count = int64(0)
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
            count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[i], col_ptr[i + 1])
    cuda.atomic.add(total, 0, count)

print(tcgpu.check(per_column).headline)
print(tcgpu.trace(graphs["mesh"], per_column).totals()["load_requests"], "load requests")
"""


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    expect.set_options(timeout=SOON)
    return expect


def outputs(notebook):
    """Of each code cell: its first line, and what strict nbval compares of its outputs."""
    run.keep_comparable(notebook)
    return [
        (cell.source.partition("\n")[0], run.compared(cell.outputs))
        for cell in notebook.cells
        if cell.cell_type == "code" and run.IGNORED not in cell.metadata.get("tags", [])
    ]


def run_and_compare(live, page, name):
    """Run the notebook that is open from its first to its last cell, and compare its outputs with those stored."""
    found = outputs(live.run(page))
    stored = outputs(nbformat.read(run.HERE / f"{name}.ipynb", as_version=4))
    for this, before in zip(found, stored, strict=True):
        assert this == before


@pytest.mark.parametrize(
    "name", [name if name.startswith(ALWAYS) else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)
def test_a_notebook_has_the_outputs_that_are_stored(live, name):
    run_and_compare(live, live.open(f"{name}.ipynb"), name)


def test_what_the_memory_of_a_tab_does_not_hold_is_refused_in_a_sentence(live):
    """Numbers of vertices that 32 bits of addresses do not hold, and then memory that is used up; the kernel lives."""
    page = live.open("00_start_here.ipynb")
    said = live.execute(page, "import numpy as np, tcgpu; tcgpu.count(([0], [1], 2**31 - 1))")
    assert re.search(r"Graph.from_edges takes more memory .*: in a browser Python has at most 4 GB; take a sm", said)
    said = live.execute(page, FILL)
    assert re.search(r"count takes more memory .*Unable to allocate.*: in a browser Python has at most 4 GB", said)
    assert live.execute(page, "held.clear(); print(tcgpu.count(graph))") == "19602\n"


def test_a_kernel_is_edited_checked_and_traced_and_stays_until_it_is_reset(live, root, expect):
    """The first kernel of the notebook, in its cell: made wrong, seen to be, and made right again."""
    page = live.open(f"{OWN_KERNEL}.ipynb")
    stored = page.evaluate(f"{FIRST_CODE}.getSource()")
    look_at_the_links(live, page)
    run_and_compare(live, page, OWN_KERNEL)
    sooner = "from tcgpu.insight import checking; checking.PATIENCE = checking.SHRINKING = 0.5"
    assert live.execute(page, sooner) == ""  # a problem that is found ends the search for others
    cell = page.locator(".jp-CodeCell", has_text="def per_column(").first
    live.scroll_to(page, "a[href^='#Step-1']")  # its heading
    wrong = KERNEL.replace("atomic.add", "atomic.max")
    for kernel, said in ((wrong, "per_column is not right."), (KERNEL, "per_column is right.")):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(kernel)
        page.keyboard.press("Shift+Enter")
        expect(cell.locator(".jp-OutputArea")).to_contain_text(f"{said}\n176 load requests")
    screenshot(root, page, "live_own_kernel")

    page.wait_for_function(f"{DIRTY} === false", timeout=OPENS)
    page.evaluate(f"{FIRST_CODE}.setSource('print(42)')")
    page.wait_for_function(f"{DIRTY} === true", timeout=OPENS)
    page.wait_for_function(f"{DIRTY} === false", timeout=OPENS)
    page.reload()
    page.wait_for_function(SHOWN, timeout=OPENS)
    assert page.evaluate(f"{FIRST_CODE}.getSource()") == "print(42)" != stored
    page.get_by_role("button", name="Reset my changes").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Clear", exact=True).click()
    page.wait_for_function(SHOWN, timeout=OPENS)
    assert page.evaluate(f"{FIRST_CODE}.getSource()") == stored


def test_the_explorer_counts_a_visitors_graph(live, root, expect, tmp_path):
    """Without WebGPU, which a sentence says, and the explorer says how to get it."""
    page = live.open(f"{EXPLORER}.ipynb")
    run_and_compare(live, page, EXPLORER)
    printed = live.execute(page, "from tcgpu.engines.webgpu import device; print(device.why_missing())")
    assert printed.startswith("this browser has")
    printed = live.execute(page, "import tcgpu; print(tcgpu.explore().engine.tooltip)")
    assert "else the simulator. Your GPU, by WebGPU: this browser has " in printed
    assert live.execute(page, SIMULATED) == "[]\n"

    panel, player = Panel(page), page.locator(".tcgpu-player")
    live.scroll_to(page, ".tcgpu-player")
    player.get_by_role("button", name="Next").click()
    expect(player.locator(".count")).to_have_text("picture 2 of 7")

    live.scroll_to(page, ".tcgpu-explorer")

    # a file of the visitor's: uploaded, counted, traced, and a point of the sweep
    (tmp_path / "mine.txt").write_text("0 1\n1 2\n2 0\n2 3\n3 0\n")
    panel.click("a file")
    with page.expect_file_chooser() as chooser:
        panel.whole.locator(".widget-upload").click()
    chooser.value.set_files(tmp_path / "mine.txt")
    expect(panel.whole).to_contain_text("4 vertices, 5 edges")
    panel.turn_to("Compare")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 3 rows$"))
    assert [(row[1], row[4]) for row in panel.rows()] == [("naive", "2"), ("column_block", "2"), ("cpu", "2")]
    panel.turn_to("Trace")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    screenshot(root, page, "live_explorer")
    panel.turn_to("Sweep")
    panel.whole.locator(".noUi-handle-upper:visible").press("Home")
    expect(panel.whole.locator(".widget-readout:visible", has_text="1-1")).to_be_visible()
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 4 rows$"))
    assert [(row[1], row[4]) for row in panel.rows()][2:] == [("naive", "5"), ("column_block", "5")]
    screenshot(root, page, "live_sweep")

    # a long run shows its progress, and is stopped within a second
    panel.turn_to("Compare")
    panel.enter("max seconds", "10000")
    panel.click("generated")
    panel.enter("scale", "15")
    expect(panel.whole).to_contain_text("32,768 vertices")
    panel.whole.locator(".tcgpu-bar select").select_option("simulator")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile(r"^naive: \d+\.\d s of about \d+ \w+$"))
    start = time.monotonic()
    panel.click("Stop")
    expect(panel.status).to_have_text(re.compile("^stopped after .* 0 rows$"))
    assert time.monotonic() - start < 5, "a second, and what a slow or busy machine adds"


def look_at_the_links(live, page):
    """The folder shows notebooks alone, in reading order; pages of the site and live notebooks lead to each other."""
    assert page.locator(".jp-DirListing-itemText").all_text_contents() == run.reading_order()
    assert page.locator("#tcgpu-bar output").text_content().startswith("Python is starting")
    leads_to = page.get_by_text("Read this page without running it").evaluate("link => link.href")
    assert leads_to == f"{live.address}notebooks/{OWN_KERNEL}.html"
    live.context.route(f"{live.address}docs/*", lambda route: route.fulfill(body="a guide"))  # not built here
    with live.context.expect_page() as opened:
        page.locator(".jp-RenderedMarkdown a[href*='your_own_kernel.md']").first.click()
    assert opened.value.url == f"{live.address}docs/your_own_kernel.html"
    opened.value.close()


FILL = """
graph, held = tcgpu.generate.mesh(100, 100), []
for size in (1 << 24, 1 << 16):
    try:
        while True:
            held.append(np.ones(size, np.uint8))
    except MemoryError:
        pass
tcgpu.count(graph)
"""
TRACE = "import tcgpu; print(tcgpu.trace(tcgpu.generate.mesh(8, 8), 'naive').totals()['load_requests'])"


@pytest.mark.full
def test_the_first_trace_comes_soon(live):
    start = time.monotonic()
    page = live.open("00_start_here.ipynb")
    assert live.execute(page, TRACE) == "60\n"
    assert time.monotonic() - start < 45


@pytest.mark.full
def test_without_a_copy_pyodide_comes_from_where_the_kernel_has_it_from(live_site, chromium):
    """What is asked for from elsewhere is answered from the copy. (A service worker would ask past the test.)"""
    copy = live_site / "live" / "pyodide"
    config = json.loads((live_site / "live" / "jupyter-lite.json").read_text())
    del config["jupyter-config-data"]["litePluginSettings"][KERNEL_PLUGIN]["pyodideUrl"]
    with serving(live_site) as address, browsing(address, chromium, service_workers="block") as live:
        live.context.route("**/live/jupyter-lite.json", lambda route: route.fulfill(json=config))
        live.context.route(
            lambda url: not url.startswith(address),
            lambda route: route.fulfill(path=copy / Path(route.request.url).name),
        )
        page = live.open("00_start_here.ipynb")
        assert live.execute(page, TRACE) == "60\n"
        assert len({url.rpartition("/")[0] for url in live.elsewhere()}) == 1


def test_the_site_is_small(live_site):
    """With the other pages, see test_site_browser.py, 29 MB; of Pyodide 57 MB. live.html says what a notebook loads."""

    def megabytes(*folders):
        return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()) / 1e6

    live = live_site / "live"
    pyodide, loaded = megabytes(live / "pyodide"), megabytes(live / "pyodide", live / "wheels")
    assert megabytes(live) - pyodide < 16.9 and 40 < pyodide < 57 and not list(live.rglob("*.map"))
    [said] = re.findall(r"Python is starting: (\d+) MB", (live / "lab" / "index.html").read_text())
    assert float(said) == pytest.approx(loaded, rel=0.1)
