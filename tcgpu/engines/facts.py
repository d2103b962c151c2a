"""The properties of an engine's device."""

from dataclasses import asdict, dataclass

UNKNOWN = "memory_bytes", "sms", "threads_per_sm", "shared_per_sm", "l2_bytes"  # WebGPU does not say: plans assume


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
        """What the device says of itself."""
        unknown = UNKNOWN if self.backend else ()
        return {name: value for name, value in asdict(self).items() if value not in ("", 0) and name not in unknown}


class OutOfMemory(MemoryError):
    """The device has too little free memory for an array."""
