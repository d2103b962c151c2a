"""WebGPU's devices: what each has to do, on one in software; which there are; and what is said where there is none."""

import _thread
import importlib.util
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import webgpu_checks
from webgpu_checks import ADD, ROUNDS, launch, raised, words

from tcgpu.engines.webgpu import device as devices
from tcgpu.engines.webgpu import wgpu_native
from tcgpu.engines.webgpu.device import DeviceInfo
from tcgpu.errors import EngineError

GOOD = {"vendor": "", "backend": "Vulkan", "driver": ""}
NVIDIA = {"name": "NVIDIA H100", "kind": "discrete", **GOOD}
INTEL = {"name": "Intel Arc", "kind": "integrated", **GOOD}
SWIFTSHADER = {"name": "SwiftShader Device", "kind": "software", **GOOD}
LLVMPIPE = {"name": "llvmpipe (LLVM 15)", "kind": "software", **GOOD}


@pytest.fixture(scope="module")
def device():
    """SwiftShader's device; where it is not, the best one."""
    reason = devices.why_missing()
    if reason:
        pytest.skip(reason)
    software = [info for info in devices.devices() if "SwiftShader" in info.name]
    return devices.open_device(*software[:1])


@pytest.mark.parametrize("check", webgpu_checks.CHECKS, ids=lambda check: check.__name__)
def test_a_device(device, check):
    check(device)


def test_a_device_says_what_it_is(device):
    assert device.info in devices.devices() and device.info.name in repr(device)
    limits = device.limits
    assert limits.threads_per_block >= 256 and limits.shared_bytes >= 16 << 10 and limits.buffers_per_kernel >= 8
    assert limits.buffer_bytes >= 128 << 20 and limits.blocks_per_dimension >= 65_535
    assert device.features <= {"int64", "int64-atomics", "ordered-barriers", "subgroups-of-32", "timestamps"}


def test_a_device_is_opened_once(device):
    assert devices.open_device(device.info) is device


def test_threads_share_a_device(device):
    """Each thread launches on a buffer of its own, and reads it."""
    found = {}

    def work(number):
        buffer = device.buffer(256)
        for _ in range(20):
            for _ in range(20):
                launch(device, ADD, 64, number, buffer)
            found.setdefault(number, []).append(words(device.read(buffer, 0, 4))[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number * 20 * k for k in range(1, 21)] for number in range(1, 5)}


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this machine does not say how much memory is used")
def test_memory_is_returned(device):
    """Buffers that were freed, and what writes kept of them, do not add up."""
    if "SwiftShader" not in device.info.name:
        pytest.skip("the memory of a GPU is not this process's")

    def used():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = used()
    for _ in range(20):
        buffer = device.buffer(64 << 20)
        device.clear(buffer, 0, buffer.nbytes)
        device.write(buffer, 0, bytes(64 << 20))
        assert used() - before < 1 << 30
    del buffer
    device.synchronize()
    assert used() - before < 300 << 20


def test_a_wait_can_be_interrupted(device):
    """And the device works afterwards."""
    if device.info.kind != "software":
        pytest.skip("how long a GPU takes is not known")
    buffer = device.buffer(256)
    launch(device, ROUNDS, 64, 2_000_000, buffer)
    device.flush()
    began = time.perf_counter()
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        device.synchronize()
    timer.join()
    interrupted = time.perf_counter() - began
    assert words(device.read(buffer, 0, 8)) == [2_000_000] * 2
    assert interrupted < (time.perf_counter() - began) / 2


def test_what_is_called_back_is_not_lost(device, monkeypatch):
    """Ctrl-C in a callback of the library would have the wait go on for ever."""
    told = "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)"
    monkeypatch.setattr(device, "_mapped", device._api.ffi.callback(told, lambda *given: _thread.interrupt_main()))
    buffer, began = device.buffer(256), time.perf_counter()
    timer = threading.Timer(10, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        device.read(buffer, 0, 4)
    timer.cancel()
    assert time.perf_counter() - began < 9


def test_recording_is_not_interrupted(device):
    """In a process of its own: to submit what uses memory that was freed would end it."""
    code = """if True:
        import _thread, swiftshader, conftest
        swiftshader.offer(conftest.browser())
        from tcgpu.engines.webgpu import device as devices
        from webgpu_checks import FILL, launch, words
        class Held(list):
            def add(self, more):
                if self.armed:
                    _thread.interrupt_main()
                return super().__iadd__(more)
            __iadd__ = append = add
        device = devices.open_device()
        buffer = device.buffer(256)
        launch(device, FILL, 64, 1, buffer)
        device.flush()
        lost = device.buffer(256)
        for call in (lambda: launch(device, FILL, 64, 2, lost), lambda: device.copy(lost, 0, buffer, 0, 4)):
            device._held = Held(device._held)
            device._held.armed = True
            try:
                call()
                raise AssertionError("it was not interrupted")
            except KeyboardInterrupt:
                device._held.armed = False
        del lost, call
        launch(device, FILL, 32, 3, buffer)
        assert words(device.read(buffer, 0, 256)) == [3] * 32 + [1] * 32, words(device.read(buffer, 0, 256))
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr


def test_a_device_that_is_lost_says_so(device):
    """In a process of its own: others use the device."""
    code = """if True:
        import swiftshader, conftest
        swiftshader.offer(conftest.browser())
        from tcgpu.engines.webgpu import device as devices
        from webgpu_checks import FILL, ONE, launch, raised
        from tcgpu.errors import EngineError
        device = devices.open_device()
        buffer = device.buffer(256)
        launch(device, FILL, 64, 1, buffer)
        device.raw.destroy()
        for call, *args in ((device.read, buffer, 0, 8), (device.buffer, 8), (device.write, buffer, 0, b"1234")):
            assert "lost" in raised(EngineError, call, *args)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr


def test_a_forked_process_is_told(device):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            message = raised(EngineError, device.synchronize)
        except BaseException as error:
            message = repr(error)
        os.write(write, message.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"forked process" in os.read(read, 1000)


@pytest.fixture
def found(monkeypatch):
    """A function that pretends that these adapters were found, in this order."""
    monkeypatch.delenv("TCGPU_WEBGPU", raising=False)
    monkeypatch.setattr(wgpu_native, "missing", lambda: None)
    monkeypatch.setattr(devices, "_found", devices._found.__wrapped__)
    return lambda *facts: monkeypatch.setattr(wgpu_native, "adapters", lambda: [(each, object()) for each in facts])


def test_the_best_device_is_first(found, monkeypatch):
    found(SWIFTSHADER, LLVMPIPE, INTEL, NVIDIA | {"backend": "D3D12"}, NVIDIA)
    assert devices.devices() == [
        DeviceInfo(**NVIDIA, number=0),
        DeviceInfo(**NVIDIA | {"backend": "D3D12"}, number=1),
        DeviceInfo(**INTEL, number=2),
        DeviceInfo(**SWIFTSHADER, number=3),
    ]
    assert devices.why_missing() is None


@pytest.mark.parametrize("choice, name", [("", "NVIDIA H100"), ("1", "Intel Arc"), ("swift", "SwiftShader Device")])
def test_a_device_is_chosen(found, monkeypatch, choice, name):
    found(SWIFTSHADER, INTEL, NVIDIA)
    monkeypatch.setenv("TCGPU_WEBGPU", choice)
    monkeypatch.setattr(wgpu_native, "Device", lambda info, adapter: info)
    monkeypatch.setattr(devices, "_open", {})
    assert devices.open_device().name == name


@pytest.mark.parametrize("choice", ["7", "²", "radeon", "llvm"])
def test_a_choice_that_is_not_there(found, monkeypatch, choice):
    found(NVIDIA, INTEL)
    monkeypatch.setenv("TCGPU_WEBGPU", choice)
    there = f"TCGPU_WEBGPU={choice} is none of the WebGPU devices here: 0 NVIDIA H100, 1 Intel Arc"
    assert devices.why_missing() == there == raised(EngineError, devices.open_device)


def test_llvmpipe_is_there_only_if_chosen(found, monkeypatch):
    found(LLVMPIPE)
    assert devices.devices() == [] and "TCGPU_WEBGPU=llvmpipe" in devices.why_missing()
    monkeypatch.setenv("TCGPU_WEBGPU", "llvmpipe")
    assert [info.name for info in devices.devices()] == [LLVMPIPE["name"]] and devices.why_missing() is None


def test_without_an_adapter_there_is_a_sentence(found):
    found()
    assert devices.devices() == [] and "install a driver for Vulkan" in devices.why_missing()


def test_without_the_package_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert devices.devices() == [] and "pip install 'tcgpu[webgpu]'" in devices.why_missing()
    assert raised(EngineError, devices.open_device) == devices.why_missing()
