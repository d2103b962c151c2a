"""The engine "webgpu" in the verbs: who gets it, what its rows say, what is refused in words."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import tcgpu
from tcgpu import cuda, hardware, int64, records, registry
from tcgpu.engines import runtime
from tcgpu.engines.webgpu import engine as webgpu_engine
from tcgpu.engines.webgpu.device import DeviceInfo

GRAPH = tcgpu.generate.rmat(7, 4, seed=1)
HARDWARE = DeviceInfo("Arc 9", "Intel", "Vulkan", "discrete", "mesa 30")
SOFTWARE = DeviceInfo("Soft", "", "Vulkan", "software", "")


@pytest.fixture
def webgpu():
    """Skip where there is no WebGPU device; SwiftShader's comes with Chromium."""
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    return hardware.webgpu_device()


@pytest.fixture
def found(monkeypatch):
    """A function that says what WebGPU finds on a machine without NVIDIA's GPU."""
    for module in (runtime, registry):
        monkeypatch.setattr(module, "ENGINE", "sim")
    monkeypatch.setattr(hardware, "SIMULATED", False)
    return lambda device: monkeypatch.setattr(hardware, "webgpu_device", lambda: device)


def test_devices_are_listed_without_the_packages_of_cuda(root):
    """As in a browser, and after `pip install .`."""
    code = """if 1:
        import sys
        sys.modules.update(dict.fromkeys(("cuda", "cupy", "numba_cuda")))
        import tcgpu
        print(*(row["engine"] for row in tcgpu.devices()))
    """
    listed = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert set(listed.stdout.split()) == {"gpu", "webgpu", "sim", "cpu"}


@pytest.mark.parametrize("device, gpus", [(None, []), (SOFTWARE, []), (HARDWARE, ["webgpu"])])
def test_hardware_goes_before_the_simulator(found, monkeypatch, device, gpus):
    found(device)
    assert hardware.gpus() == gpus and hardware.timed_engine() == (gpus or ["sim"])[0]
    with runtime.using("sim"):
        assert hardware.timed_engine() == "sim"
    assert registry.fastest() == "cpu" and runtime.engine() == "sim"
    monkeypatch.setattr(runtime, "ENGINE", "gpu")
    assert hardware.gpus() == ["gpu", *gpus] and hardware.timed_engine() == "gpu"
    monkeypatch.setattr(hardware, "SIMULATED", True)
    assert hardware.gpus() == []


def test_nobody_looks_for_webgpu_who_does_not_ask():
    code = "import sys, tcgpu; g = [(0, 1), (1, 2), (0, 2)]; tcgpu.count(g); tcgpu.count(g, 'naive', engine='sim')"
    code += "; tcgpu.measure(g, 'cpu', repeats=1); print(sorted(name for name in sys.modules if 'wgpu' in name))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_verbs_that_count_triangles_run_there(webgpu):
    assert tcgpu.count(GRAPH, engine="webgpu") == tcgpu.count(GRAPH.edges(), engine="webgpu") == tcgpu.count(GRAPH)
    assert tcgpu.count(GRAPH, "naive", engine="webgpu", threads=64) == tcgpu.count(GRAPH)
    assert np.array_equal(tcgpu.triangles(GRAPH, engine="webgpu"), tcgpu.triangles(GRAPH))
    assert np.array_equal(tcgpu.support(GRAPH, engine="webgpu"), tcgpu.support(GRAPH))
    assert tcgpu.transitivity(GRAPH, engine="webgpu") == tcgpu.transitivity(GRAPH)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: tcgpu.motifs(GRAPH, engine="webgpu"), "motifs runs on cpu or gpu or sim, not on 'webgpu'"),
        (lambda: tcgpu.truss_numbers(GRAPH, engine="webgpu"), "truss_numbers runs on cpu or gpu or sim, not"),
        (lambda: tcgpu.count(GRAPH, engine="webgpu", device_memory="1MB"), "a count in parts runs on cpu or gpu or"),
        (lambda: tcgpu.count(GRAPH, engine="webgpu", executor="threads"), "a count in parts runs on cpu or gpu or"),
        (lambda: tcgpu.check("naive", engine="sim"), "a check, after the simulator, runs on gpu or webgpu, not"),
    ],
)
def test_what_does_not_run_there_is_refused_by_name(call, said):
    with pytest.raises(tcgpu.EngineError, match=said):
        call()


def test_where_there_is_none_it_says_why_and_what_to_do(monkeypatch):
    from tcgpu.engines.webgpu import device

    monkeypatch.setattr(device, "why_missing", lambda: "WebGPU needs the package wgpu, which is not installed: pip i")
    with pytest.raises(tcgpu.EngineError, match="no engine 'webgpu' here: WebGPU needs the package wgpu, .*: pip i; "):
        tcgpu.count(GRAPH, "naive", engine="webgpu")
    assert hardware.webgpu_device() is None


def test_rows_say_what_ran_them(webgpu):
    rows = tcgpu.measure(GRAPH, ["naive", "report_auto"], engine="webgpu", repeats=2)
    for row in rows:
        assert (row["engine"], row["triangles"]) == ("webgpu", tcgpu.count(GRAPH))
        assert 0 < row["kernel_ms"] <= row["process_ms"] <= row["total_ms"]
        assert (row["gpu_name"], row["gpu_backend"], row["gpu_kind"]) == (webgpu.name, webgpu.backend, webgpu.kind)
        assert row.get("gpu_driver", "") == webgpu.driver and "gpu_sms" not in row  # WebGPU does not tell those
    assert "gpu kind" in repr(rows) and webgpu.kind in rows._repr_html_()
    assert records.gpu_of(rows[0]).endswith(f"by WebGPU, {webgpu.backend}")
    assert "webgpu-vulkan" in records.record_path("sweep", rows).name or webgpu.backend != "Vulkan"


def test_a_record_of_a_software_device_says_so():
    row = {"engine": "webgpu", "gpu_name": "Soft", "gpu_backend": "Vulkan", "gpu_kind": "software", "cpu": "C"}
    assert records.gpu_of(row) == "Soft, software, by WebGPU, Vulkan"
    assert records.record_path("sweep", [row]).name == "sweep-soft-software-by-webgpu-vulkan.csv"
    assert records.gpu_of(row | {"gpu_kind": "discrete"}) == "Soft by WebGPU, Vulkan"


def test_measure_takes_hardware_unasked(webgpu, found):
    found(HARDWARE)
    rows = tcgpu.measure(GRAPH, ["naive", "cpu"], repeats=1)
    assert [row["engine"] for row in rows] == ["webgpu", "cpu"] and rows[0]["gpu_name"] == webgpu.name


def test_measure_takes_the_simulator_for_what_webgpu_cannot_run(webgpu, found):
    found(HARDWARE)
    rows = tcgpu.measure(GRAPH, [sixteen, "naive"], repeats=1)
    assert [row["engine"] for row in rows] == ["sim", "webgpu"] and "gpu_name" not in rows[0]
    with pytest.raises(tcgpu.KernelError, match="32 or 64 bits"):
        tcgpu.measure(GRAPH, sixteen, engine="webgpu", repeats=1)


# -------------------------------------------------------------------------------------------------------------- checks


@cuda.jit(device=True)
def add_triangles(col_ptr, row_idx, col_of, total):
    count = int64(0)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i = row_idx[e]
        for p in range(e + 1, col_ptr[col_of[e] + 1]):
            for q in range(col_ptr[i], col_ptr[i + 1]):
                count += row_idx[p] == row_idx[q]
    cuda.atomic.add(total, 0, count)


@tcgpu.method(threads=64, blocks=4)
def mine(col_ptr, row_idx, col_of, total):
    add_triangles(col_ptr, row_idx, col_of, total)


@tcgpu.method(threads=64, blocks=4)
def sixteen(col_ptr, row_idx, col_of, total):
    kept = cuda.shared.array(8, np.uint16)
    kept[cuda.threadIdx.x % 8] = 0
    add_triangles(col_ptr, row_idx, col_of, total)


def test_a_check_runs_on_the_device_that_is_named(webgpu):
    report = tcgpu.check(mine, engine="webgpu")
    assert report and report.notes[-1] == f"On {webgpu.name} by WebGPU: 99 counts, all right."


def test_a_check_takes_hardware_unasked_and_finds_wrong_counts(webgpu, found, monkeypatch):
    found(HARDWARE)
    from tcgpu.insight import checking

    monkeypatch.setattr(checking.Check, "run_in_simulator", lambda self: None)
    monkeypatch.setattr(checking.cpu, "count", lambda graph: 3)
    (problem, *_) = tcgpu.check(mine, threads=32, blocks=2).problems
    assert problem.says == "on Arc 9 by WebGPU it counts 0 triangles, there are 3"


def test_a_kernel_that_webgpu_cannot_take_is_told_and_no_problem(webgpu, monkeypatch):
    from tcgpu.insight import checking

    monkeypatch.setattr(checking.Check, "run_in_simulator", lambda self: None)
    report = tcgpu.check(sixteen, engine="webgpu")
    assert report and report.notes[-1].startswith(f"Not run on {webgpu.name} by WebGPU: ")
    assert "integers of 32 or 64 bits" in report.notes[-1]


@pytest.mark.parametrize("kind", ["discrete", "software"])
def test_hardware_is_kept_at_work_before_it_is_timed(webgpu, monkeypatch, kind):
    """A GPU that has nothing to do lowers its clock."""
    engine, blocks = runtime.named("webgpu"), []
    monkeypatch.setattr(engine.device, "info", replace(engine.device.info, kind=kind))
    monkeypatch.setattr(engine, "fastest_spin", None)
    monkeypatch.setattr(webgpu_engine, "SPIN_BLOCKS", 1)
    monkeypatch.setattr(webgpu_engine, "FIRST_WAKE", 0)
    dispatch = engine.device.dispatch
    monkeypatch.setattr(engine.device, "dispatch", lambda *given: (blocks.append(given[1]), dispatch(*given)))
    engine.elapsed_ms(lambda: None)
    assert (blocks[:1], engine.fastest_spin is None) == (([1], False) if kind == "discrete" else ([], True))
