"""The explorer on a WebGPU device: what its menu says, counts, measurements, a sweep."""

import re

import pytest

import tcgpu
from tcgpu import hardware
from tcgpu.engines import runtime
from tcgpu.engines.webgpu.device import DeviceInfo
from tcgpu.lab.explorer import method_run, panel, sweep_page

SOON = 100.0
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
