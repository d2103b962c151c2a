"""The engine "webgpu": kernels on any GPU, by WebGPU; natively through the package wgpu, and in a browser."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Engine":  # see `runtime.named`
        from tcgpu.engines.webgpu.engine import Engine

        return Engine
    raise AttributeError(name)
