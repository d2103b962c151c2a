"""The explorer on a WebGPU device: what its menu says, counts, measurements, a sweep."""

import re

import nbformat
import pytest
from chromium import Panel
from nbformat.v4 import new_code_cell, new_notebook

import tcgpu
from tcgpu import hardware
from tcgpu.engines import runtime
from tcgpu.engines.webgpu.device import DeviceInfo
from tcgpu.lab.explorer import method_run, panel, sweep_page

SOON = 100.0
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
HARDWARE = DeviceInfo("Arc 9", "Intel", "Vulkan", "discrete", "mesa 30")


@pytest.fixture
def webgpu():
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    return hardware.webgpu_device()


def ran(explorer):
    explorer.run_button.click()
    assert explorer.wait(SOON)
    if explorer.failure:
        raise explorer.failure
    return explorer.rows


def test_the_menu_names_the_device(monkeypatch):
    monkeypatch.setattr(panel, "webgpu_device", lambda: HARDWARE)
    assert tcgpu.explore().engine.options["your GPU: Arc 9"] == "webgpu"
    software = DeviceInfo("Soft", "", "Vulkan", "software", "")
    monkeypatch.setattr(panel, "webgpu_device", lambda: software)
    explorer = tcgpu.explore()
    assert explorer.engine.options["Soft, software"] == "webgpu" and explorer.engine.value != "webgpu"


def test_the_menu_says_how_to_get_one(monkeypatch):
    from tcgpu.engines.webgpu import device

    monkeypatch.setattr(device, "why_missing", lambda: "WebGPU needs the package wgpu: pip install it")
    explorer = tcgpu.explore(methods=["naive"], engine="webgpu")
    assert explorer.engine.tooltip.endswith("Your GPU, by WebGPU: WebGPU needs the package wgpu: pip install it")
    assert ran(explorer) == [] and "no engine 'webgpu' here: WebGPU needs the package wgpu" in explorer.message


def test_a_count_names_its_device(webgpu):
    explorer = tcgpu.explore(methods=["naive", "column_block"], engine="webgpu")
    rows = ran(explorer)
    assert [(row["engine"], row["triangles"]) for row in rows] == [("webgpu", 450)] * 2
    assert method_run.machine_of(rows[0]).startswith(webgpu.name) and webgpu.name in explorer.compare.table.value
    for said in (explorer.compare.table.value, explorer.compare.note.value):
        assert ("software" in said) == (webgpu.kind == "software")


def test_hardware_is_the_default(webgpu, monkeypatch):
    monkeypatch.setattr(runtime, "ENGINE", "sim")
    monkeypatch.setattr(hardware, "webgpu_device", lambda: HARDWARE)
    explorer = tcgpu.explore(methods=["naive", "cpu"])
    assert explorer.sweep.way.value == sweep_page.RUN
    assert [row["engine"] for row in ran(explorer)] == ["webgpu", "cpu"]


def test_a_sweep_has_the_reports_columns_and_those_that_fit(webgpu):
    explorer = tcgpu.explore(methods=["naive", "column_block"], engine="webgpu", page="Sweep")
    page = explorer.sweep
    page.way.value, page.edges.value, page.limits.value = sweep_page.RUN, 2_000, (2, 4)
    explorer.repeats.value = "1"
    rows = ran(explorer)
    assert len(rows) == 9 and {row["engine"] for row in rows} == {"webgpu"}
    assert list(page.curves()) == ["column_block", "column_block columns=fitting"]
    columns = [re.search(r'"columns": (\d+)', row["knobs"])[1] for row in rows if "fitting" in row["curve"]]
    assert columns == ["64", "43", "32"]
    code = re.sub("<[^>]*>", "", explorer.python.value).replace("&#x27;", "'")
    exec(code.replace("4]:", "]:"), {"tcgpu": tcgpu})  # of two of the graphs
    explorer.engine.value = "sim"
    assert len(page.plan(explorer.graphs, explorer.method_runs())[1]) == 2


@pytest.mark.browser
def test_a_sweep_in_jupyterlab_has_the_devices_curves_beside_the_records(lab, webgpu):
    from playwright.sync_api import expect

    cell = new_code_cell("import tcgpu; tcgpu.explore(methods=['naive', 'column_block'], page='Sweep')")
    nbformat.write(new_notebook(cells=[cell], metadata={"kernelspec": KERNELSPEC}), lab.folder / "own_gpu.ipynb")
    page = lab.open("own_gpu.ipynb", width=1280, height=1300)
    lab.run_all(page, "own_gpu.ipynb")
    panel = Panel(page)
    expect(panel.whole).to_contain_text("256 vertices, 705 edges")
    menu = panel.whole.get_by_label("on", exact=True).first
    label = f"{webgpu.name}, software" if webgpu.kind == "software" else f"your GPU: {webgpu.name}"
    menu.select_option(label)
    panel.whole.locator("select:visible", has_text=sweep_page.RUN).select_option(sweep_page.RUN)
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 36 rows$"), timeout=240_000)
    rows = panel.saved()
    assert {(row["engine"], row["gpu_name"], row["gpu_kind"]) for row in rows} == {("webgpu", webgpu.name, webgpu.kind)}
    assert len({row["curve"] for row in rows}) == 3
    expect(panel.table).to_contain_text(webgpu.name)
    lab.screenshot(page, "explorer_webgpu_sweep")
    panel.turn_to("Compare")
    panel.click("Run")
    expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"), timeout=240_000)
    lab.screenshot(page, "explorer_webgpu")
    assert lab.errors == []
