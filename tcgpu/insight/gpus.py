"""GPUs that launches are estimated for: their data sheets, and what micro-benchmarks say of the architecture.

Latencies were measured on one GPU, by `benchmarks/estimates.py probes`; they are kept in cycles, and those of another
GPU are as many cycles of its clock. So a GPU needs no more than its data sheet.
"""

from dataclasses import dataclass
from functools import cache

from tcgpu import records
from tcgpu.engines.facts import Facts
from tcgpu.engines.simulator import WARP
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown

SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction a cycle
L1_SECTORS = 4  # that the L1 cache delivers in a cycle
MAX_BLOCKS = 32  # of a multiprocessor
REGISTERS = 65536  # of a multiprocessor
BLOCK_SHARED = 1024  # bytes of shared memory that a block takes beside its own


@dataclass(frozen=True, kw_only=True)
class Gpu(Facts):
    """A data sheet: the Facts of a device, by which plans choose their launches, and more. Sizes in bytes."""

    l1_bytes: int  # shared memory included
    bandwidth: float  # of the memory, in bytes a nanosecond

    @property
    def clock_ghz(self) -> float:
        return self.clock_mhz / 1000

    def ns(self, probe: str) -> float:
        """A measured latency in nanoseconds of this GPU's clock."""
        return probes()[probe] * PROBED.clock_ghz / self.clock_ghz

    def resident_blocks(self, threads: int, shared: int, registers: int) -> int:
        """How many blocks of this shape a multiprocessor runs at a time."""
        warps = -(-threads // WARP)
        of_warp = -(-registers * WARP // 256) * 256
        return max(1, min(
            MAX_BLOCKS,
            self.threads_per_sm // (warps * WARP),
            self.shared_per_sm // (shared + BLOCK_SHARED),
            REGISTERS // (of_warp * warps),
        ))  # fmt: skip


SHEET = (
    "name", "sms", "clock_mhz", "threads_per_sm", "shared_per_block", "shared_per_sm", "l1_bytes", "l2_bytes",
    "bandwidth", "memory_bytes", "compute_capability",
)  # fmt: skip
GPUS = {
    sheet[0]: Gpu(**dict(zip(SHEET, sheet, strict=True)))
    for sheet in (
        ("NVIDIA H200", 132, 1980, 2048, 227 << 10, 228 << 10, 256 << 10, 60 << 20, 4800.0, 141 << 30, "9.0"),
        ("NVIDIA H100", 132, 1980, 2048, 227 << 10, 228 << 10, 256 << 10, 50 << 20, 3350.0, 80 << 30, "9.0"),
        ("Tesla T4", 40, 1590, 1024, 48 << 10, 64 << 10, 96 << 10, 4 << 20, 320.0, 16 << 30, "7.5"),
    )
}

PROBED = GPUS["NVIDIA H200"]  # the GPU that the micro-benchmarks ran on


def gpu_of(name: str) -> Gpu:
    """Return the GPU of this name; GraphError if no data sheet is known."""
    if name not in GPUS:
        raise GraphError(unknown("GPU", name, GPUS))
    return GPUS[name]


@cache
def probes():
    """What the micro-benchmarks measured: probe -> value, in nanoseconds, or a nanosecond."""
    return {row["probe"]: row["value"] for row in records.records("probes")[PROBED.name]}


@cache
def registers_of(kernel: str) -> int:
    """Registers a thread of a kernel takes, as counted on a GPU; 32 of one that was not counted."""
    rows = [row for row in records.reference("counters") if row["kernel"] == kernel]
    return int(max((row["registers"] for row in rows), default=32))
