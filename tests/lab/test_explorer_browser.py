"""The notebook `explorer` in a browser: in JupyterLab, and as a page by Voila."""

import re

import nbformat
import pytest
from chromium import Panel
from nbformat.v4 import new_code_cell, new_notebook

from tcgpu import hardware
from tcgpu.engines import runtime
from tcgpu.lab.explorer import sweep_page

pytestmark = pytest.mark.browser

NOTEBOOK = "explorer.ipynb"
SOON = 240_000  # milliseconds, on a machine that is busy, too
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
KERNEL_CELLS = [
    """\
import tcgpu
from tcgpu import cuda, int64

@tcgpu.method(threads=64, blocks=8)
def mine(col_ptr, row_idx, total):
    count = int64(0)
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
            for p in range(e + 1, col_ptr[j + 1]):
                for q in range(col_ptr[i], col_ptr[i + 1]):
                    count += row_idx[p] == row_idx[q]
    cuda.atomic.add(total, 0, count)
""",
    "tcgpu.check(mine)",
    "tcgpu.explore('mesh_16x16', methods=[mine, 'naive'])",
]
UNNAMED = """(panel) => [...panel.querySelectorAll("input, select, button, [role=slider], [role=tab]")]
  .filter((each) => each.offsetParent && !each.title).map((each) => each.outerHTML)"""  # without a tooltip
SLOW_CELLS = [  # an explorer whose kernel takes its time
    "import tcgpu; tcgpu.explore(methods=['naive'])",
    """\
import time
from ipykernel.comm.comm import BaseComm

send = BaseComm.publish_msg

def send_late(comm, kind, data=None, *args, **more):
    of_slider = data and data.get("method") == "echo_update" and "index" in data["state"]
    time.sleep(1 if of_slider else 0.02)
    send(comm, kind, data, *args, **more)

BaseComm.publish_msg = send_late
""",
]
ENTRIES = {  # label of a field -> an entry, and how the code of the run shows it
    **{"scale": ("9", "scale=9"), "edge factor": ("7", "edge_factor=7"), "a": ("0.5", "a=0.5")},
    **{"b": ("0.2", "b=0.2"), "c": ("0.25", "c=0.25"), "seed": ("3", "seed=3")},
    **{"threads": ("64", "threads=64"), "blocks": ("8", "blocks=8"), "max seconds": ("999", "max_seconds=999")},
}


@pytest.fixture
def expect():
    from playwright.sync_api import expect

    expect.set_options(timeout=SOON)
    return expect


def open_cells(lab, name, sources):
    """A page with a new notebook of these cells."""
    cells = [new_code_cell(source) for source in sources]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), lab.folder / name)
    return lab.open(name, width=1280, height=1300)


def press(handle, *keys):
    handle.focus()
    for key in keys:
        handle.press(key)


def test_the_explorer_in_jupyterlab(lab, expect):
    page = lab.open(NOTEBOOK, width=1280, height=1300)
    lab.run_all(page, NOTEBOOK)
    panel = Panel(page)

    # the first page, as the text speaks of it: a small mesh, three methods, the star
    expect(panel.whole.locator("select").first).to_have_value(re.compile("^mesh_16x16: 705 edges"))
    expect(panel.whole).to_contain_text("256 vertices, 705 edges")
    assert panel.whole.locator(".tcgpu-chips .mod-primary").all_text_contents() == ["naive", "column_block", "cpu"]
    expect(panel.whole).to_contain_text("The star: mesh_16x16, 2.75 nonzeros per column")
    page.set_viewport_size({"width": 1650, "height": 1700})
    lab.screenshot(panel.whole, "explorer_panel")  # notebooks/helpers/explorer.png is such a picture, in 64 colours
    page.set_viewport_size({"width": 1280, "height": 1300})
    panel.turn_to("Compare")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 3 rows$"))
    measured = [row for row in panel.saved() if row["kernel_ms"]]  # without a GPU, the others are traced
    for row in measured:
        assert 0 < float(row["kernel_ms"]) <= float(row["process_ms"]) <= float(row["total_ms"])
    assert "cpu" in [row["method"] for row in measured]
    expect(panel.whole).to_contain_text("All three are of the same runs.")

    # numbers out of range
    for label, entry, said in (
        ("threads", "100000", "threads is a whole number from 1 to 1,024, not 100000"),
        ("runs", "1000", "runs is a whole number from 1 to 99, not 1000"),
        ("max seconds", "-1", "max seconds is a number from 1 to 1,000,000, not -1"),
    ):
        before = panel.enter(label, entry)
        expect(panel.message).to_have_text(said)
        panel.click("Run")
        expect(panel.status).to_have_text("not started: see below")
        expect(panel.message).to_have_text(said)
        assert panel.enter(label, before) == entry
        expect(panel.message).to_have_text("")

    # two methods
    panel.click("cpu")
    before = panel.chart.get_attribute("src")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    assert panel.chart.get_attribute("src") != before
    assert [(row[1], row[4]) for row in panel.rows()] == [("naive", "450"), ("column_block", "450")]
    assert [row["triangles"] for row in panel.saved()] == ["450", "450"]
    lab.screenshot(page, "explorer_compare")

    # another record
    recorded = panel.whole.locator("img:visible").nth(1)
    before = recorded.get_attribute("src")
    panel.pick("recorded", "coPapersCiteseer class")
    expect(panel.table).to_contain_text("coPapersCiteseer class")
    assert recorded.get_attribute("src") != before

    # a sweep, which is on record
    panel.turn_to("Sweep")
    expect(panel.whole).to_contain_text("and is on record.")
    lab.screenshot(page, "explorer_sweep_opened")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 38 rows$"))
    lab.screenshot(page, "explorer_sweep")

    # one that is not, which is forecast, and its slider
    panel.whole.locator("select:visible", has_text="Tesla T4").first.select_option("Tesla T4")
    expect(panel.whole.locator(".widget-readout:visible", has_text="1,000,000")).to_be_visible()
    press(panel.whole.locator(".noUi-handle-upper:visible"), *["ArrowLeft"] * 12)
    expect(panel.whole.locator(".widget-readout:visible", has_text="1-5")).to_be_visible()
    panel.enter("max seconds", "1")
    panel.click("Run")
    expect(panel.message).to_have_text(
        re.compile(r"^this run would take about \d+ \w+ in the simulator: take fewer .* allow it by max_seconds=\d+$")
    )
    expect(panel.status).to_have_text(re.compile("^refused after .* 0 rows$"))
    lab.screenshot(page, "explorer_refused")
    panel.enter("max seconds", re.search(r"\d+$", panel.message.text_content())[0])
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile(r", naive: \d+\.\d s of about \d+ \w+$"))
    expect(panel.status).to_have_text(re.compile("^done after .* 14 rows$"))
    before = panel.chart.get_attribute("src")
    press(panel.whole.locator(".noUi-handle-upper:visible"), "ArrowLeft", "ArrowLeft")
    expect(panel.whole.locator(".widget-readout:visible", has_text="1-3")).to_be_visible()
    expect(panel.chart).not_to_have_attribute("src", before)

    # traces
    panel.turn_to("Trace")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    panel.pick("show", "a warp: what its lanes do")
    expect(panel.table).to_contain_text("naive")
    lab.screenshot(page, "explorer_trace")

    # a long run, stopped
    panel.turn_to("Compare")
    panel.enter("max seconds", "10000")
    panel.click("generated")
    expect(panel.whole).to_contain_text("256 vertices, 1,037 edges")  # the generated graph is shown, with its fields
    panel.enter("edge factor", "100")
    expect(panel.message).to_have_text("edge factor is a whole number from 1 to 64, not 100")
    panel.enter("edge factor", "6")
    expect(panel.message).to_have_text("")
    press(panel.whole.get_by_role("slider").first, *["ArrowRight"] * 5)
    expect(panel.whole).to_contain_text("8,192 vertices")
    panel.whole.locator(".tcgpu-bar select").select_option("simulator")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile(r"^naive: \d+\.\d s of about \d+ \w+$"))
    panel.click("Stop")
    expect(panel.status).to_have_text(re.compile("^stopped after .* 0 rows$"))
    expect(panel.message).to_have_text("")

    # the other explorer is unchanged
    other = Panel(page, 1)
    expect(other.whole).to_contain_text("34 vertices, 78 edges")
    expect(other.status).to_have_text("")
    other.click("Run")
    expect(other.status).to_have_text(re.compile("^done after .* 3 rows$"))
    lab.screenshot(page, "explorer_karate")

    # the stepper, by keys, in JupyterLab's theme
    stepper = page.locator(".tcgpu-player")
    count, drawing = stepper.locator(".count"), stepper.locator("svg.drawing")
    expect(drawing).to_be_visible()
    expect(count).to_have_text("picture 1 of 7")
    before = drawing.inner_html()
    stepper.locator(".title").click()
    page.keyboard.press("ArrowRight")
    expect(count).to_have_text("picture 2 of 7")
    assert drawing.inner_html() != before
    cells = page.locator(".jp-Cell:visible").count()
    for focused in (stepper.get_by_role("slider"), stepper.get_by_role("button", name="Next")):
        focused.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowRight")
    expect(count).to_have_text("picture 4 of 7")
    assert page.locator(".jp-Cell:visible").count() == cells  # JupyterLab would have collapsed the section
    page.keyboard.press("End")
    expect(stepper.locator(".caption")).to_contain_text("8 look-ups, 7 triangles")

    # the theme is JupyterLab's
    paper = "getComputedStyle(document.querySelector('.tcgpu-player')).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert page.evaluate(paper) == "rgb(17, 21, 28)"
    lab.screenshot(page, "stepper")
    assert lab.errors == []


def test_every_entry_is_taken_by_a_kernel_that_is_slow(lab, expect):
    page = open_cells(lab, "slow.ipynb", SLOW_CELLS)
    lab.run_all(page, "slow.ipynb")
    panel = Panel(page)
    code = panel.whole.locator(".tcgpu-python")
    for seconds in ("1000", "2000"):  # JupyterLab sends a control's first entry to the main thread, others to another
        panel.enter("max seconds", seconds)
        expect(code).to_contain_text(f"max_seconds={seconds}")
    panel.click("generated")
    panel.enter("max seconds", "3000")
    for label, (entry, _) in ENTRIES.items():
        panel.enter(label, entry)
    for label, (entry, shown) in ENTRIES.items():
        expect(code).to_contain_text(shown)
        expect(panel.whole.get_by_label(label, exact=True)).to_have_value(entry)
    press(panel.whole.get_by_role("slider").first, "ArrowRight")  # and at once a number is typed beside it
    scale = panel.whole.get_by_label("scale", exact=True)
    scale.select_text()
    scale.press_sequentially("12", delay=1000)
    assert scale.input_value() == "12"
    scale.press("Enter")
    expect(code).to_contain_text("scale=12")
    expect(scale).to_have_value("12")
    press(panel.whole.get_by_role("slider").first, "ArrowLeft")  # the slider has followed
    expect(scale).to_have_value("11")
    expect(code).to_contain_text("scale=11")
    panel.click("a file")
    panel.enter("path", "nowhere.mtx")
    expect(panel.message).to_have_text("nowhere.mtx: No such file or directory")
    assert lab.errors == []


def test_the_first_sight_by_keyboard_and_by_name(lab, expect):
    """Run and the curve are on the first screen; every control has a name and a tooltip; Run by keyboard alone."""
    page = open_cells(lab, "first.ipynb", ["import tcgpu; tcgpu.explore()"])
    page.set_viewport_size({"width": 1280, "height": 900})
    lab.run_all(page, "first.ipynb")
    panel = Panel(page)
    expect(panel.whole).to_contain_text("The star: mesh_16x16")
    run = panel.whole.get_by_role("button", name="Run", exact=True)
    assert run.bounding_box()["y"] < 400 and panel.chart.bounding_box()["y"] < 400
    for width in (1280, 700):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => window.innerWidth === width", arg=width)
        assert panel.whole.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")  # nothing is cut off
        lab.screenshot(page, f"explorer_first_{width}")
    panel.click("generated")
    expect(panel.whole.get_by_label("seed", exact=True)).to_be_visible()
    for name in ("Sweep", "Compare", "Trace"):
        panel.turn_to(name)
        expect(panel.chart).to_be_visible()
        page.wait_for_timeout(500)  # names are given after the controls are drawn
        assert panel.whole.evaluate(UNNAMED) == []
        tree = panel.whole.aria_snapshot()
        assert re.findall(r"- (?:slider|textbox|combobox|button|tab|checkbox|listbox)\b(?! \").*", tree) == []
    panel.turn_to("Compare")
    panel.whole.get_by_label("order", exact=True).focus()
    while not run.evaluate("(button) => button === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(panel.status).to_have_text(re.compile("^done after .* 3 rows$"))
    assert lab.errors == []


def test_a_small_explorer_and_one_whose_kernel_is_slow(lab, expect):
    """A click on Run is handled after what was entered before, by a kernel that is still at what came before that."""
    slow = "panel.pages.observe(lambda change: time.sleep(2), 'selected_index')"
    cells = ["import tcgpu; tcgpu.explore(kernel='bitmap')",
             f"import time; panel = tcgpu.explore(page='Compare'); {slow}; panel"]  # fmt: skip
    page = open_cells(lab, "two.ipynb", cells)
    lab.run_all(page, "two.ipynb")
    panel = Panel(page)
    expect(panel.whole).to_contain_text("The star: mesh_16x16")
    panel.whole.locator("select").first.select_option(index=1)
    expect(panel.whole).to_contain_text("The star: rmat_8")
    panel.click("Run")
    expect(panel.table).to_contain_text("2,487")
    panel.click("share")
    expect(panel.whole).to_contain_text("tcgpu.explore('rmat_8', kernel='bitmap')")
    lab.screenshot(page, "explorer_small")

    panel = Panel(page, 1)
    expect(panel.chart).to_be_visible()
    panel.turn_to("Trace")
    page.wait_for_timeout(500)
    panel.turn_to("Compare")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 3 rows$"))
    assert lab.errors == []


def test_voila_makes_a_page_of_it(lab, expect):
    page = lab.render(NOTEBOOK, width=1280, height=1300)
    panel = Panel(page)
    expect(panel.whole).to_contain_text("256 vertices, 705 edges")
    expect(page.locator("body")).not_to_contain_text("import tcgpu")
    panel.turn_to("Compare")
    panel.click("cpu")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    assert [row["triangles"] for row in panel.saved()] == ["450", "450"]
    stepper = page.locator(".tcgpu-player")
    stepper.get_by_role("button", name="Next").click()
    expect(stepper.locator(".count")).to_have_text("picture 2 of 7")
    lab.screenshot(page, "explorer_voila")

    # links to other notebooks are of pages that Voila makes, too
    links = page.evaluate("() => [...document.querySelectorAll('a[href*=\".ipynb\"]')].map((one) => one.href)")
    own = page.url.removesuffix(NOTEBOOK)
    assert links and {link.removeprefix(own) for link in links} <= {path.name for path in lab.folder.glob("*.ipynb")}
    assert lab.errors == []


def test_a_kernel_written_in_a_cell_is_checked_and_in_the_explorer(lab, expect):
    """The cells that a person would type: the method, `tcgpu.check`, `tcgpu.explore`."""
    name = "mine.ipynb"
    page = open_cells(lab, name, ["" for _ in KERNEL_CELLS])
    for k, source in enumerate(KERNEL_CELLS):
        editor = page.locator(".jp-CodeCell .cm-content").nth(k)
        editor.click()
        page.keyboard.insert_text(source)
    lab.run_all(page, name)
    expect(page.locator(".jp-OutputArea-output", has_text="mine is right.").first).to_be_visible()
    panel = Panel(page)
    assert panel.whole.locator(".tcgpu-chips .mod-primary").all_text_contents() == ["naive", "mine"]
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    assert [(row[1], row[4]) for row in panel.rows()] == [("naive", "450"), ("mine", "450")]
    lab.screenshot(page, "own_kernel")
    assert lab.errors == []


def test_a_sweep_has_the_devices_curves_beside_the_records(lab, expect):
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    webgpu = hardware.webgpu_device()
    page = open_cells(
        lab, "own_gpu.ipynb", ["import tcgpu; tcgpu.explore(methods=['naive', 'column_block'], page='Sweep')"]
    )
    lab.run_all(page, "own_gpu.ipynb")
    panel = Panel(page)
    expect(panel.whole).to_contain_text("256 vertices, 705 edges")
    menu = panel.whole.get_by_label("on", exact=True).first
    label = f"{webgpu.name}, software" if webgpu.kind == "software" else f"your GPU: {webgpu.name}"
    menu.select_option(label)
    panel.whole.locator("select:visible", has_text=sweep_page.RUN).select_option(sweep_page.RUN)
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 36 rows$"))
    rows = panel.saved()
    assert {(row["engine"], row["gpu_name"], row["gpu_kind"]) for row in rows} == {("webgpu", webgpu.name, webgpu.kind)}
    assert len({row["curve"] for row in rows}) == 3
    expect(panel.table).to_contain_text(webgpu.name)
    lab.screenshot(page, "explorer_webgpu_sweep")
    panel.turn_to("Compare")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
    lab.screenshot(page, "explorer_webgpu")
    assert lab.errors == []
