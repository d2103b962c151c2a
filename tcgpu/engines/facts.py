"""The properties of an engine's device."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Facts:
    """Properties of a device; sizes in bytes. The simulator, the default, has the limits of a T4."""

    memory_bytes: int
    numba: str = ""
    numba_cuda: str = ""
    name: str = "CUDA simulator"
    compute_capability: str = "7.5"
    sms: int = 1
    threads_per_sm: int = 1024
    shared_per_block: int = 48 << 10
    shared_per_sm: int = 64 << 10
    l2_bytes: int = 4 << 20
    threads_per_block: int = 1024
    clock_mhz: int = 0
    driver: str = ""
    cuda: str = ""
    backend: str = ""  # of WebGPU: Vulkan, Metal, D3D12, browser
    kind: str = ""  # of WebGPU: discrete, integrated, software, other

    def asdict(self):
        return asdict(self)


class OutOfMemory(MemoryError):
    """The device has too little free memory for an array."""
