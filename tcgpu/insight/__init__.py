"""Tracing: run the kernels in the simulator and record every memory access, to see what the hardware would do.

The kernels are not changed for it: their source is instrumented before it runs (`rewriting`), and what lanes do is
grouped into steps and requests of warps by the rules of the hardware (`recorder`, `events`), which
`benchmarks/trace.py` compares with the counters of a GPU. From those the model of `tcgpu.estimate` estimates times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, overload

from tcgpu.api import documented, opened
from tcgpu.errors import KernelError, roomy
from tcgpu.graph import Order
from tcgpu.insight.faults import CheckedRecorder, CheckedRun
from tcgpu.insight.gpus import PROBED, Gpu, gpu_of, registers_of
from tcgpu.insight.recorder import Recorder
from tcgpu.insight.result import Launch, Trace, Traces
from tcgpu.kernels import Run, Step, simulated
from tcgpu.progress import part
from tcgpu.registry import Method, choose, knobs_by_method, on_engine

__all__ = ["Trace", "Traces", "trace", "trace_launch", "trace_plan"]

SLOWDOWN = 4  # of the simulator while it records


@overload
def trace(
    graph: Any, method: str | Method, *, gpu: str = ..., order: Order | None = ...,
    max_seconds: float | None = ..., faults: bool = ..., **knobs: Any,
) -> Trace: ...  # fmt: skip


@overload
def trace(graph: Any, method: Sequence[str | Method], **options: Any) -> Traces: ...


@roomy
@documented
def trace(
    graph: Any,
    method: str | Method | Sequence[str | Method],
    *,
    gpu: str = "NVIDIA H200",
    order: Order | None = None,
    max_seconds: float | None = None,
    faults: bool = False,
    **knobs: Any,
) -> Trace | Traces:
    """Count the triangles of a small graph in the simulator and record every memory access.

    It takes a few seconds for a few hundred edges.

    Parameters
    ----------
    graph, method, order, max_seconds, knobs
        As in `tcgpu.count`; or several methods: a knob is for those that have it.
    gpu
        The name of a GPU; see `tcgpu.estimate`. Times are estimated for the launches as they are traced: a kernel that
        has as many blocks as the device runs at a time has fewer of them in the simulator.
    faults
        Whether to look for faults, too, in the same run, which takes up to twice as long: indices out of bounds, reads
        of memory that nothing has written, data races, barriers that not all threads reach. `Trace.faults` lists them,
        each a sentence; see `tcgpu.insight.faults`. One that ends its kernel is raised, as a KernelError.
    """
    if isinstance(method, Iterable) and not isinstance(method, str):
        options = {"gpu": gpu, "order": order, "max_seconds": max_seconds, "faults": faults}
        return Traces(trace(graph, each, **options, **own) for each, own in knobs_by_method(method, knobs).items())
    device = gpu_of(gpu)
    chosen = choose(method, "sim", order, knobs)
    with on_engine(chosen, "sim", max_seconds):
        prepared = chosen.prepare(opened(graph), order)
        launches, run = trace_plan(chosen.plan(prepared, **knobs), device, faults)
        found = run.faults if faults else None
        return Trace(chosen.name, prepared, chosen.knobs | knobs, launches, run.result(), gpu, found)


def trace_plan(plan, gpu: Gpu = PROBED, faults: bool = False) -> tuple[list[Launch], Run]:
    """Run a plan in the simulator and trace its launches; returns them and the Run.

    Its scans, which a library does on a GPU, are run, but not traced. With `faults` the Run is a CheckedRun, and a
    fault that ends a launch is a KernelError.
    """
    seconds = (1 + faults) * SLOWDOWN * plan.simulated_seconds
    simulated.check(f"tracing {plan.method}", seconds, "take a smaller graph")
    run, launches = CheckedRun(plan) if faults else replace(plan, setup=()).allocate(), []
    stages = [("setup", step) for step in plan.setup] + [("count", step) for step in plan.steps]
    for k, (stage, step) in enumerate(stages):
        with part(k, len(stages)):
            if not isinstance(step, Step):
                run.run(step) if faults else step.run(run.arrays)
                continue
            shape = step.blocks, step.threads
            recorder = run.launch_of(step, CheckedRecorder) if faults else Recorder(*shape, step.shared)
            known = {"shared": step.shared, "stage": stage, "gpu": gpu, "recorder": recorder}
            launches.append(trace_launch(step.kernel, *shape, *step.values(run.arrays), **known))
            for fault in recorder.faults.values() if faults else ():
                if fault.ends:
                    raise KernelError(str(fault))
                run.faults.append(fault)
    return launches, run


def trace_launch(
    kernel, blocks: int, threads: int, *args, shared: int = 0, stage: str = "count", gpu: Gpu = PROBED, recorder=None
) -> Launch:
    """Run one kernel on NumPy arrays, which it changes, and trace it; `shared`: bytes of dynamic shared memory.

    recorder: a Recorder of its shape that runs it.
    """
    recorder = recorder or Recorder(blocks, threads, shared)
    at_a_time = gpu.sms * gpu.resident_blocks(threads, shared, registers_of(kernel.__name__))
    recorder.simulate(kernel.py_func, kernel.typed(args), at_a_time)
    return Launch(stage, kernel.__name__, blocks, threads, shared, recorder.events(), gpu)
