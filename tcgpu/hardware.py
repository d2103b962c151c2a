"""What runs kernels and counts on this machine: a list, and which of it is for measurements.

To look for the devices of WebGPU takes .1 to .3 seconds, once.
"""

import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcgpu.engines import runtime
from tcgpu.engines.choice import NUMBA, SIMULATED, driver_version, gpu_names
from tcgpu.errors import EngineError
from tcgpu.records import Table

SHOWN = "engine", "number", "name", "kind", "backend", "driver", "needs"


def devices() -> Table:
    """List what runs kernels and counts here: NVIDIA's GPUs, WebGPU's devices, the simulator, the CPU.

    `engine` is what `count` and `measure` take; `kind` is "discrete", "integrated", "other" or, where WebGPU has no
    hardware, "software"; `needs` says why an engine is not there, and what to do. The environment variable
    TCGPU_WEBGPU, the `number` of a WebGPU device or a part of its name, chooses among those.
    """
    from tcgpu.engines import native

    cpu = {"engine": "cpu", "name": f"{cpu_name()}, {native.threads()} threads"}
    without = {} if NUMBA else {"needs": "without Numba, NumPy counts: pip install numba"}
    rows = [*_nvidia(), *_webgpu(), {"engine": "sim", "name": "CUDA in Python"}, cpu | without]
    return Table(({name: row.get(name, "") for name in SHOWN} for row in rows), *SHOWN)


def _nvidia():
    names = gpu_names() or ["NVIDIA GPU"] * runtime.visible_gpus()
    about = {"engine": "gpu", "needs": runtime.why_missing("gpu") or ""}
    found = about | {"backend": "CUDA", "driver": driver_version()}
    return [found | {"number": number, "name": name} for number, name in enumerate(names)] or [about]


def _webgpu():
    from tcgpu.engines.webgpu import device

    missing = device.why_missing()
    found = [{"engine": "webgpu"} | vars(info) for info in device.devices()]
    return found + [{"engine": "webgpu", "needs": missing}] * bool(missing)


def timed_engine() -> str:
    """Return the name of the engine for measurements: `runtime.engine`, but before the simulator WebGPU's hardware."""
    if runtime.named_engine() or runtime.ENGINE == "gpu":
        return runtime.engine()
    return next(iter(gpus()), runtime.ENGINE)


def gpus() -> list[str]:
    """Return the names of the engines that are GPUs here, NVIDIA's first; a software device is none."""
    if SIMULATED:
        return []
    device = webgpu_device()
    return ["gpu"] * (runtime.ENGINE == "gpu") + ["webgpu"] * (device is not None and device.kind != "software")


def webgpu_device() -> Any:
    """Return the DeviceInfo of the device of the engine "webgpu", which is not opened for it; None if there is none."""
    from tcgpu.engines.webgpu import device

    with suppress(EngineError):
        return device.chosen_device()
    return None


def cpu_name() -> str:
    """Return the model of the processor, as the system calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
