"""Estimate how long a method's kernels take on a GPU, from a sample of what they do: `tcgpu.estimate`.

A launch takes as long as the busiest of the parts of the GPU that all blocks share: the schedulers that issue
instructions, the caches, the memory. And it takes as long as its blocks need one after the other in the places that
they have: what a block waits for is hidden only by the other blocks of its multiprocessor. `Bounds` has these times.
The estimate is a little more than the largest of them: two that are nearly equal hinder each other.

`benchmarks/estimates.py` holds estimates against the clocks of GPUs.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

import numpy as np

from tcgpu.api import documented
from tcgpu.engines import runtime
from tcgpu.errors import roomy
from tcgpu.gpu_costs import ALL_RUNNING, FILLING_EDGES, LEAST_DEMAND
from tcgpu.graph import Order, as_graph
from tcgpu.insight.demand import Steps, each_takes, join
from tcgpu.insight.events import SECTOR
from tcgpu.insight.gpus import PROBED, SCHEDULERS, gpu_of, probes, registers_of
from tcgpu.insight.sampling import BESIDE, expected_of, fit, sample
from tcgpu.insight.set_up import prepare, set_up
from tcgpu.kernels import Step
from tcgpu.markup import element
from tcgpu.records import Table
from tcgpu.registry import METHODS, Method, choose, knobs_by_method, on_engine

LANE_STEPS = 1_000_000  # that are traced for a method: a few seconds
SHOWN = ("method", "order", "edges", "gpu", "estimate_of", "estimated_ms", "limit", "units", "sampled")
NAMES = {False: "this launch", True: "a full GPU"}


@dataclass(frozen=True)
class Bounds:
    """Nanoseconds that a launch takes at least, by what limits it."""

    issue: float  # the schedulers issue instructions
    l1: float  # the L1 caches deliver wavefronts
    shared: float  # shared memory delivers wavefronts
    l2: float
    memory: float
    atomics: float  # one address, at which every block adds its count
    blocks: float  # the blocks, one after the other in the places for them

    @property
    def limit(self) -> str:
        """What limits the launch most."""
        return max(asdict(self), key=asdict(self).get)

    @property
    def joined(self) -> float:
        """How long the launch takes, in nanoseconds."""
        return join(*asdict(self).values())


@dataclass(frozen=True)
class KernelEstimate:
    """One launch."""

    kernel: str
    blocks: int
    threads: int
    units: int  # a unit is a task of a warp, or of a block whose threads wait for each other in a task
    sampled: int  # units
    bounds: Bounds
    ms: float


@dataclass(frozen=True, repr=False)
class Estimate:
    """How long the counting kernels of a method take, by estimate."""

    method: str
    order: str
    gpu: str
    edges: int
    fill: bool  #: whether it is the time of one copy of the graph, of as many as fill the GPU
    ms: float  #: from the first to the last kernel
    kernels: list[KernelEstimate]

    def row(self) -> dict[str, Any]:
        """Return the estimate as the row of a table."""
        longest = max(self.kernels, key=lambda kernel: kernel.ms, default=None)
        return {
            "method": self.method, "order": self.order, "edges": self.edges, "gpu": self.gpu,
            "estimate_of": NAMES[self.fill], "estimated_ms": round(self.ms, 6),
            "limit": longest.bounds.limit if longest else "",
            "units": sum(kernel.units for kernel in self.kernels),
            "sampled": sum(kernel.sampled for kernel in self.kernels),
        }  # fmt: skip

    def __repr__(self):
        return repr(Estimates([self]))


def caution_for(gpu: str) -> str:
    """Return what to know of estimates for a GPU: "" if they were held against the clock of one of its generation."""
    generation = gpu_of(gpu).generation
    if generation.measured:
        return ""
    return f"Unverified: no GPU of the {generation.name} generation was measured; see docs/measured.md."


class Estimates(list[Estimate]):
    """Estimates of several methods. Prints as a table with a row for each."""

    def rows(self) -> Table:
        """Return a row per method."""
        return Table((estimate.row() for estimate in self), *SHOWN)

    def cautions(self) -> list[str]:
        """Return what to know of these estimates, each once."""
        return sorted({caution_for(each.gpu) for each in self} - {""})

    def __repr__(self):
        return "\n".join([repr(self.rows()), *self.cautions()])

    def _repr_html_(self):
        return "".join([self.rows()._repr_html_(), *(element("p", caution) for caution in self.cautions())])


@overload
def estimate(
    graph: Any, method: str | Method, *, gpu: str = ..., fill: bool = ..., order: Order | None = ...,
    lane_steps: int = ..., **knobs: Any,
) -> Estimate: ...  # fmt: skip


@overload
def estimate(graph: Any, method: Sequence[str | Method], **options: Any) -> Estimates: ...


@roomy
@documented
def estimate(
    graph: Any,
    method: str | Method | Sequence[str | Method],
    *,
    gpu: str = "NVIDIA H200",
    fill: bool = False,
    order: Order | None = None,
    lane_steps: int = LANE_STEPS,
    **knobs: Any,
) -> Estimate | Estimates:
    """Estimate how long the counting kernels of a method take on a GPU. No GPU is needed.

    Parameters
    ----------
    graph, method, order, knobs
        As in `tcgpu.count`; or several methods: a knob is for those that have it.
    gpu
        The name of a GPU whose data sheet is known: see `tcgpu.insight.gpus.GPUS`.
    fill
        False: this launch. True: the time that each of many copies of the graph takes, which together fill the GPU; so
        small graphs can be compared by what large ones of their kind would show.
    lane_steps
        Steps of threads to trace, about; a second traces some 1,000,000.

    Raises
    ------
    MethodError
        If set-up kernels would have to be simulated for a large graph.
    """
    device = gpu_of(gpu)
    graph = as_graph(graph)
    if isinstance(method, Iterable) and not isinstance(method, str):
        options = {"gpu": gpu, "fill": fill, "order": order, "lane_steps": lane_steps}
        known = knobs_by_method(method, knobs)
        return Estimates(estimate(graph, each, **options, **own) for each, own in known.items())
    chosen = choose(method, "sim", order, knobs)
    with on_engine(chosen, "sim", float("inf")), runtime.as_device(device):
        prepared = prepare(chosen, graph, order)
        plan = chosen.plan(prepared, **knobs)
        tasks = METHODS.get(plan.method, chosen).tasks  # a method may choose another one
        found, copies = [], max(1.0, FILLING_EDGES / max(1, graph.m)) if fill else 1.0
        arrays = set_up(plan, prepared).arrays
        for step in plan.steps:
            if isinstance(step, Step):
                share = lane_steps // len(plan.steps)
                steps = Steps(sample(step, arrays, prepared, lane_steps=share, tasks=tasks))
                most = chosen.knobs | knobs
                most = most["blocks"] if "blocks" in most else step.most_blocks
                found.append(of_launch(step, steps, device, plan.device_bytes, copies, most))
            else:
                step.run(arrays)
    return Estimate(chosen.name, prepared.order, gpu, graph.m, fill, total_ms(found, device, copies), found)


def total_ms(kernels, gpu, copies=1.0):
    """How long these launches take, one after the other."""
    overhead = gpu.ns("launch") + gpu.ns("next launch") * (len(kernels) - 1)
    return sum(kernel.ms for kernel in kernels) + overhead / copies / 1e6


def of_launch(step, steps, gpu, touched_bytes, copies=1.0, most_blocks=None):
    """The KernelEstimate of a Step or a traced Launch: a copy's share of a launch of `copies` copies of its tasks.

    most_blocks: of that launch; None for as many as run at a time.
    """
    sampled = steps.sample
    kernel = getattr(step.kernel, "__name__", step.kernel)  # a Launch has only the name
    units = int(sampled.units * copies)
    resident = gpu.resident_blocks(step.threads, step.shared, registers_of(kernel))
    in_shared = gpu.in_shared(resident, step.shared)
    blocks = step.blocks
    if copies > 1:
        blocks = min(most_blocks or resident * gpu.sms, max(1, units // sampled.warps))
    resident = min(resident, -(-blocks // gpu.sms))
    rounds = max(1, units // (blocks * sampled.warps))

    def run(running):
        demand = steps.demand(gpu, resident, in_shared, touched_bytes * copies, running, rounds)
        times, overhead = spread(sampled, demand.longest(demand.times(gpu)), 1)
        places = resident * gpu.sms
        ends = in_places(times, overhead, sampled.warps, blocks, places, copies, sampled.queued)
        return demand, ends, times.sum() * copies / max(1e-9, ends * min(blocks, places) * sampled.warps)

    demand, ends, running = run(1.0)
    if running < ALL_RUNNING:
        demand, ends, _ = run(running)
    issued = demand.kinds @ each_takes("instructions")
    busy = min(gpu.sms, blocks)
    total = {name: spread(sampled, values) for name, values in (
        ("issue", issued), ("l1", demand.l1), ("shared", demand.shared), ("l2", demand.l2), ("memory", demand.memory)
    )}  # fmt: skip
    sums = {name: values.sum() * copies + beside * blocks for name, (values, beside) in total.items()}
    cycles = gpu.clock_ghz * busy
    bounds = Bounds(
        issue=sums["issue"] / (SCHEDULERS * cycles),
        l1=sums["l1"] * gpu.generation.l1_cycles / cycles,
        shared=sums["shared"] / cycles,
        l2=sums["l2"] / (probes()["L2 sectors"] * gpu.sms * gpu.clock_ghz / (PROBED.sms * PROBED.clock_ghz)),
        memory=sums["memory"] * SECTOR / gpu.delivered,
        atomics=blocks / probes()["atomics"],
        blocks=ends + gpu.ns("block") * blocks / gpu.sms,
    )
    each = Bounds(**{name: float(time) / copies for name, time in asdict(bounds).items()})
    return KernelEstimate(kernel, blocks, step.threads, sampled.units, sampled.chosen.size, each, each.joined / 1e6)


def spread(sample, of_blocks, features=0):
    """The demand of each unit of a launch, and of a block apart from its tasks.

    of_blocks: the demand of each block of the sample. features: 1 if the largest item may decide, else 0.
    """
    size = sample.chosen.size
    of_first, of_other, beside = of_blocks[size : size + BESIDE] if sample.has_tasks else np.zeros(BESIDE)
    found = np.maximum(0.0, of_blocks[:size] - np.where(sample.chosen % sample.warps == 0, of_first, of_other))
    tried = [(each, *fit(each, sample.chosen, found)) for each in sample.features[: 1 + features]]
    values = expected_of(*min(tried, key=lambda way: way[2])[:2])
    values = np.maximum(values, LEAST_DEMAND * values.mean())  # of which others are a multiple
    known = values[sample.chosen]
    missing = sample.units * np.average(found - known, weights=1 / sample.expected)
    missing = np.clip(missing, -values.sum() / 2, values.sum() / 2)
    total = max(values.sum() + missing, found.sum())
    if size < sample.units:  # the others vary as those do that were traced, and are expected to take as long
        order = np.argsort(known, kind="stable")
        factors = np.append((found / known)[order], 1.0)
        near = np.searchsorted(known[order], values)
        inside = near < size
        near[inside] += np.random.default_rng(0).integers(-2, 3, inside.sum())
        values = np.minimum(values * factors[np.clip(near, 0, size)], max(found.max(), values.max()))
        rest = values.sum() - values[sample.chosen].sum()
        values = values * max(0.0, total - found.sum()) / rest if rest > 0 else values
    values[sample.chosen] = found
    return values, beside


def in_places(times, overhead, warps, blocks, places, copies, queued):
    """When the last block is done, if `places` blocks run at a time and each begins as soon as one has ended.

    times: of all units, of which blocks take tasks of `warps` units in turns, or, if they are `queued`, as each gets
    done; overhead: of a block beside its tasks.
    """
    tasks = times.size // warps
    if queued:
        of_tasks = times.reshape(tasks, warps).max(axis=1)
        return max(of_tasks.sum() * copies / min(places, blocks), of_tasks.max()) + overhead * max(1, blocks / places)
    if copies > 1:  # blocks have about the same
        mean = times.reshape(tasks, warps).sum(axis=0).max() * copies / blocks + overhead
        return mean * max(1.0, blocks / places)
    rounds = -(-tasks // blocks)
    padded = np.zeros((rounds * blocks, warps))
    padded[:tasks] = times.reshape(tasks, warps)
    of_blocks = padded.reshape(rounds, blocks, warps).sum(axis=0).max(axis=1) + overhead
    if blocks <= places:
        return of_blocks.max()
    ends = np.sort(of_blocks[:places]).tolist()
    for time in of_blocks[places:].tolist():
        heapq.heapreplace(ends, ends[0] + time)
    return max(ends)
