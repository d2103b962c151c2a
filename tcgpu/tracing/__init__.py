"""Tracing: run the kernels in the simulator and record every memory access, to see what the hardware would do.

    trace = tcgpu.trace(graph, "naive", threads=64)
    trace.lines()                  a row per line of the source; `trace.totals()` for all together
    trace.show()                   all charts; each alone is `trace.draw_source()`, `draw_raster()`, ...
    trace.save_page("x.html")      the same as a web page, with all steps of the warps, for a reader without Python
    tcgpu.trace(graph, ["naive", "bitmap"])        a row per method

The kernels are not changed for it: their source is instrumented before it runs (`rewriting`), and what lanes do is
grouped into steps and requests of warps by the rules of the hardware (`recorder`, `events`), which
`benchmarks/trace.py` compares with the counters of a GPU. From those the model of `tcgpu.estimate` estimates times.
"""

from collections.abc import Sequence

from tcgpu.errors import MethodError
from tcgpu.kernels import Step, simulated
from tcgpu.progress import part
from tcgpu.registry import Method, choose, on_engine
from tcgpu.tracing.gpus import PROBED, Gpu, gpu_of, registers_of
from tcgpu.tracing.recorder import record
from tcgpu.tracing.result import Launch, Trace, Traces

__all__ = ["Trace", "Traces", "trace", "trace_launch", "trace_plan"]

SLOWDOWN = 4  # of the simulator while it records


def trace(
    graph,
    method: str | Method | Sequence[str | Method],
    *,
    gpu: str = "NVIDIA H200",
    order: str | None = None,
    max_seconds: float | None = None,
    **knobs,
) -> Trace | Traces:
    """Count the triangles of a small graph in the simulator and record every memory access.

    It takes a few seconds for a few hundred edges.

    Parameters
    ----------
    graph
        A Graph, or anything else that `tcgpu.count` takes.
    method
        A name from `tcgpu.methods()`, or a Method of your own; or several.
    gpu
        The name of a GPU; see `tcgpu.estimate`. Times are estimated for the launches as they are traced: a kernel that
        has as many blocks as the device runs at a time has fewer of them in the simulator.
    order
        How the vertices are numbered; without it, as the method's source did.
    max_seconds
        How many seconds it may take by its estimate; see `tcgpu.count`.
    **knobs
        Knobs of the method. With several methods, a knob is for those that have it.

    Returns
    -------
    Trace or Traces
        A Trace, or Traces if `method` is not a single one.

    Raises
    ------
    MethodError
        If there is no such method or knob.
    GraphError
        If the graph is too large, or the GPU is not known.
    """
    if not isinstance(method, (str, Method)):
        options = {"gpu": gpu, "order": order, "max_seconds": max_seconds}
        return Traces(trace(graph, each, **options, **own) for each, own in knobs_by_method(method, knobs).items())
    device = gpu_of(gpu)
    chosen = choose(method, "sim", order, knobs)
    with on_engine(chosen, "sim", max_seconds):
        prepared = chosen.prepare(graph, order)
        plan = chosen.plan(prepared, **knobs)
        launches = trace_plan(plan, device)
        return Trace(chosen.name, prepared, chosen.knobs | knobs, launches, plan.result(), gpu)


def knobs_by_method(methods, knobs):
    """Method -> those of the knobs that it has; MethodError if there is no method, or none has one of the knobs."""
    chosen = [choose(method) for method in methods]
    for knob in knobs:
        if not any(knob in method.knobs for method in chosen):
            raise MethodError(f"no knob {knob!r} in {' or '.join(method.name for method in chosen)}")
    if not chosen:
        raise MethodError("no method to trace is named")
    return {method: {knob: value for knob, value in knobs.items() if knob in method.knobs} for method in chosen}


def trace_plan(plan, gpu: Gpu = PROBED) -> list[Launch]:
    """Run a plan in the simulator and trace its launches; afterwards `plan.result()` has the count.

    Its scans, which a library does on a GPU, are run, but not traced.
    """
    simulated.check(f"tracing {plan.method}", SLOWDOWN * plan.simulated_seconds, "take a smaller graph")
    setup, plan.setup = plan.setup, []
    plan.allocate()
    launches = []
    stages = [("setup", step) for step in setup] + [("count", step) for step in plan.steps]
    for k, (stage, step) in enumerate(stages):
        with part(k, len(stages)):
            if isinstance(step, Step):
                args = [plan.arrays[arg] if isinstance(arg, str) else arg for arg in step.args]
                shape = step.kernel, step.blocks, step.threads
                launches.append(trace_launch(*shape, *args, shared=step.shared, stage=stage, gpu=gpu))
            else:
                step.run(plan.arrays)
    return launches


def trace_launch(
    kernel, blocks: int, threads: int, *args, shared: int = 0, stage: str = "count", gpu: Gpu = PROBED
) -> Launch:
    """Run one kernel on NumPy arrays, which it changes, and trace it; `shared`: bytes of dynamic shared memory."""
    at_a_time = gpu.sms * gpu.resident_blocks(threads, shared, registers_of(kernel.__name__))
    events = record(kernel.py_func, blocks, threads, kernel.typed(args), shared=shared, at_a_time=at_a_time)
    return Launch(stage, kernel.__name__, blocks, threads, shared, events, gpu)
