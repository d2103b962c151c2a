"""The WebGPU device of a browser, in the kernel of a live notebook: what each device has to do, and what it says."""

import json
import re
from pathlib import Path

import pytest
import sampling
import webgpu_checks
from chromium import WITH_WEBGPU, Panel, screenshot
from live import SOON, browsing, serving

pytestmark = pytest.mark.browser

# The checks are the source of a module; each is run, and its name and error are kept
RUN_CHECKS = """
import json, sys, traceback, types
from tcgpu.engines.webgpu import device as devices
checks = types.ModuleType("webgpu_checks")
exec({source!r}, checks.__dict__)
device, found = devices.open_device(), {{}}
for check in checks.CHECKS:
    try:
        check(device)
        found[check.__name__] = ""
    except Exception:
        found[check.__name__] = traceback.format_exc()
print(json.dumps([repr(device), sorted(device.features), found]))
"""

# All methods whose kernels need no more than WebGPU has, on graphs of several kinds: those that count otherwise
COUNT = """
import tcgpu
from tcgpu import generate
graphs = [generate.empty(3), generate.clique(30), generate.star(40), generate.mesh(12, 17), generate.road(20, 20),
          generate.rmat(8), generate.random(300, 2000), generate.barabasi_albert(200, 5), generate.copapers(60, 12),
          generate.complete_bipartite(20, 30)]
wrong = [
    (name, graph.name, found)
    for name in {methods!r} for graph in graphs
    if (found := tcgpu.count(graph, name, engine="webgpu")) != tcgpu.count(graph)
]
print(len(graphs), wrong)
"""
METHODS = (
    "naive", "column_block", "bitmap", "bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global",
    "merge_path", "thread_search", "warp_search", "levels",
)  # fmt: skip
# A barrier on a path that a vote of the block decides
VOTE = """
import numpy as np
from tcgpu import cuda, kernel
from tcgpu.engines import runtime
@kernel("void(int64[::1])")
def turned(values):
    thread, kept = cuda.threadIdx.x, cuda.shared.array(64, np.int64)
    if cuda.syncthreads_count(thread < 5) == 5:
        kept[thread] = values[thread]
        cuda.syncthreads()
        values[thread] = kept[63 - thread]
with runtime.using("webgpu"):
    values = runtime.to_device(np.arange(64, dtype=np.int64))
    turned.launch(1, 64, values)
    print(runtime.to_host(values).tolist() == [*range(63, -1, -1)])
"""


def test_the_device_of_a_browser_methods_on_it_and_the_explorer(live_site, chromium, root):
    """Chromium's compiler of WGSL is not wgpu's: it refuses barriers that the other one takes."""
    from playwright.sync_api import expect

    expect.set_options(timeout=SOON)
    checks = RUN_CHECKS.format(source=Path(webgpu_checks.__file__).read_text())
    with serving(live_site) as address, browsing(address, chromium, WITH_WEBGPU) as live:
        page = live.open("explorer.ipynb")
        live.run(page)
        printed = live.execute(page, COUNT.format(methods=METHODS if sampling.full else METHODS[::3]))
        voted, checked = live.execute(page, VOTE), live.execute(page, checks)
        assert (printed.strip(), voted.strip()) == ("10 []", "True")
        assert checked.startswith("["), checked
        text, features, errors = json.loads(checked)
        assert "through browser" in text and set(features) <= {"timestamps", "subgroups-of-32"}
        assert len(errors) == len(webgpu_checks.CHECKS) and "".join(errors.values()) == ""

        live.scroll_to(page, ".tcgpu-explorer")
        panel = Panel(page)
        menu = panel.whole.locator(".tcgpu-bar select")
        expect(menu).to_contain_text("swiftshader", ignore_case=True)
        labels = menu.locator("option").all_text_contents()
        (place,) = [k for k, label in enumerate(labels) if "swiftshader" in label.lower()]
        assert labels[place].endswith("software"), labels  # and so it is not the default
        menu.select_option(index=place)
        panel.turn_to("Compare")
        panel.click("cpu")
        panel.click("Run")
        expect(panel.status).to_have_text(re.compile("^done after .* 2 rows$"))
        rows = panel.saved()
        assert {(row["engine"], row["gpu_backend"], row["triangles"]) for row in rows} == {("webgpu", "browser", "450")}
        assert 0 < float(rows[0]["kernel_ms"]) <= float(rows[0]["process_ms"])
        expect(panel.table).to_contain_text("swiftshader", ignore_case=True)
        screenshot(root, page, "live_webgpu")
        panel.turn_to("Sweep")
        panel.whole.locator("select:visible", has_text="run on the engine above").select_option(
            "run on the engine above"
        )
        panel.whole.locator(".noUi-handle-upper:visible").press("Home")
        panel.click("Run")
        expect(panel.status).to_have_text(re.compile("^done after .* 3 rows$"))
        screenshot(root, page, "live_webgpu_sweep")
        assert live.errors == []
