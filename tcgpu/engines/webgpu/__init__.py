"""The engine "webgpu": kernels on any GPU, by WebGPU; natively through the package wgpu, and in a browser.

device      finds the devices, opens one, and says what it can do
wgpu_native a device through the package wgpu: Vulkan, Metal or Direct3D 12
browser     a device of the browser that Python runs in
engine      the engine: its arrays, launches and times
translator  a kernel in WGSL, WebGPU's shader language; with numbers, its types and operations, and prelude, its helpers
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Engine":  # see `runtime.named`
        from tcgpu.engines.webgpu.engine import Engine

        return Engine
    raise AttributeError(name)
