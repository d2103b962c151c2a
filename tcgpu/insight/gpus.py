"""GPUs that launches are estimated for: their data sheets, and what micro-benchmarks say of the architecture.

Latencies were measured on one GPU, by `benchmarks/estimates.py probes`; they are kept in cycles, and those of another
GPU are as many cycles of its clock. So a GPU of the same generation needs no more than its data sheet. What another
generation has otherwise is in GENERATIONS, from published micro-benchmarks.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tcgpu import records
from tcgpu.engines.facts import Facts
from tcgpu.engines.simulator import WARP
from tcgpu.errors import GraphError
from tcgpu.suggest import check_known

SCHEDULERS = 4  # of a multiprocessor, each of which issues an instruction a cycle
REGISTERS = 65536  # of a multiprocessor
BLOCK_SHARED = 1024  # bytes of shared memory that a block takes beside its own


class Generation(NamedTuple):
    """What the GPUs of a compute capability have in common."""

    name: str
    measured: bool  # whether estimates were held against the clock of such a GPU
    max_blocks: int  # of a multiprocessor
    l1_cycles: int  # of a wavefront of the L1 cache
    shared_sizes: tuple  # KB of a multiprocessor's fast memory that may be shared memory; the rest is L1 cache
    l2_used: float  # of the L2 cache
    l2_line: int  # sectors that the L2 cache loads together
    memory_efficiency: float  # of the bandwidth; 0: as probed
    more_cycles: dict  # than probed, that a latency has


# Hopper: as probed; sizes of shared memory: CUDA C++ Programming Guide, compute capability 9.0; the halves of its L2
# cache keep copies of what the other half has.
# Turing, by column:
# - 16 blocks; 32 or 64 KB of shared memory: NVIDIA, Turing Tuning Guide. When a driver takes 64 is not known: above 32,
#   we let it be what the blocks need
# - 64 bytes a cycle of L1, half a wavefront: Y. K. Tian, AmpereArchViaMicroBenchMark, from the T4's table of Jia et
#   al., "Dissecting the NVidia Turing T4 GPU via Microbenchmarking", 2019
# - L2 lines of 64 bytes: S. J. Feng, gpu-arch-microbenchmark, on an RTX 2070
# - 239.6 of 320 GB/s: bandwidthTest of a T4, in the notes `router-gao/cuda-demo`
# - latencies: the differences between what GPGPU-Sim's configurations of an RTX 2060 and an H200 have for L1 (32, 41),
#   shared memory (30, 29), L2 (194, 237) and for memory behind L2 (96, 194), tuned by micro-benchmarks
GENERATIONS = {
    "9.0": Generation("Hopper", True, 32, 1, (0, 8, 16, 32, 64, 100, 132, 164, 196, 228), 0.62, 1, 0, {}),
    "7.5": Generation(
        "Turing", False, 16, 2, (32,), 0.9, 2, 239.6 / 320, {"L1": -9, "shared": 1, "L2": -43, "memory": -141}
    ),
}


@dataclass(frozen=True, kw_only=True)
class Gpu(Facts):
    """A data sheet: the Facts of a device, by which plans choose their launches, and more. Sizes in bytes."""

    l1_bytes: int  # shared memory included
    bandwidth: float  # of the memory, in bytes a nanosecond

    @property
    def clock_ghz(self) -> float:
        return self.clock_mhz / 1000

    @property
    def generation(self) -> Generation:
        return GENERATIONS[self.compute_capability]

    def ns(self, probe: str) -> float:
        """A latency in nanoseconds of this GPU's clock."""
        cycles = probes()[probe] * PROBED.clock_ghz + self.generation.more_cycles.get(probe, 0)
        return cycles / self.clock_ghz

    @property
    def delivered(self) -> float:
        """Bytes that the memory delivers in a nanosecond."""
        return self.bandwidth * (self.generation.memory_efficiency or probes()["memory efficiency"])

    def resident_blocks(self, threads: int, shared: int, registers: int) -> int:
        """How many blocks of this shape a multiprocessor runs at a time."""
        warps = -(-threads // WARP)
        of_warp = -(-registers * WARP // 256) * 256
        return max(1, min(
            self.generation.max_blocks,
            self.threads_per_sm // (warps * WARP),
            self.shared_per_sm // (shared + BLOCK_SHARED),
            REGISTERS // (of_warp * warps),
        ))  # fmt: skip

    def in_shared(self, blocks: int, shared: int) -> int:
        """Bytes of a multiprocessor's fast memory that are shared memory: as many as so many blocks take at least."""
        needed, sizes = blocks * (shared + BLOCK_SHARED), (size << 10 for size in self.generation.shared_sizes)
        return next((size for size in sizes if size >= needed), needed)


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
    return GPUS[check_known("GPU", name, GPUS, GraphError)]


@cache
def probes():
    """What the micro-benchmarks measured: probe -> value, in nanoseconds, or a nanosecond."""
    return {row["probe"]: row["value"] for row in records.records("probes")[PROBED.name]}


@cache
def registers_of(kernel: str) -> int:
    """Registers a thread of a kernel takes, as counted on a GPU; 32 of one that was not counted."""
    rows = [row for row in records.reference("counters") if row["kernel"] == kernel]
    return int(max((row["registers"] for row in rows), default=32))
