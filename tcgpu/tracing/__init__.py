"""Tracing: the very same kernels in the simulator, every access written down. What the hardware would do, seen.

    trace = tcgpu.trace(graph, "naive", threads=64)
    trace.lines()                  a row for each line of the source, `trace.totals()` for all together
    trace.show()                   the pictures; each alone is `trace.draw_source()`, `draw_raster()`, ...
    tcgpu.trace(graph, ["naive", "bitmap"])        a row for each method

Kernels know nothing of it: their source is rewritten before it runs (`rewriting`), and what lanes then do falls into
warps' steps and requests by the rules of the hardware (`recorder`, `events`). A simple model of a GPU makes times of
that (`machine`). All rules and times are held against the counters of a GPU by `benchmarks/trace.py`.
"""

from tcgpu.errors import GraphError
from tcgpu.kernels import Step, simulated
from tcgpu.registry import choose, on_engine
from tcgpu.tracing.events import Collector
from tcgpu.tracing.machine import Machine
from tcgpu.tracing.recorder import record
from tcgpu.tracing.result import Launch, Trace, Traces

__all__ = ["Trace", "Traces", "trace", "trace_launch", "trace_plan"]

SLOWDOWN = 4  # times the simulator


def trace(graph, method, *, order=None, max_seconds=None, **knobs):
    """Count the triangles of a small graph in the simulator and record every access: a Trace.

    method: a name out of `methods()`; or several names, for Traces, where a knob is for the methods that have it.
    order, max_seconds: as in `count`. A trace takes a few times as long as the simulator: a few seconds for a few
    hundred edges.
    """
    if not isinstance(method, str):
        wish = {"order": order, "max_seconds": max_seconds}
        return Traces(trace(graph, name, **wish, **own) for name, own in _of_each(method, knobs))
    chosen = choose(method, "sim", order, knobs)
    with on_engine(chosen, "sim", max_seconds):
        prepared = chosen.prepare(graph, order)
        plan = chosen.plan(prepared, **knobs)
        launches = trace_plan(plan)
        return Trace(method, prepared, chosen.knobs | knobs, launches, plan.result())


def _of_each(names, knobs):
    """(name, its knobs) of each method; GraphError if there is none, or none that has a knob."""
    known = {name: choose(name).knobs for name in names}
    for knob in knobs:
        if not any(knob in own for own in known.values()):
            raise GraphError(f"no knob {knob!r} in {' or '.join(known)}")
    if not known:
        raise GraphError("no method to trace is named")
    return [(name, {knob: knobs[knob] for knob in knobs if knob in own}) for name, own in known.items()]


def trace_plan(plan):
    """Carry a plan out in the simulator: its launches, traced. What it found is `plan.result()` then.

    Scans, which a library does on a GPU, are carried out, but nothing is known of them.
    """
    simulated.check(f"tracing {plan.method}", SLOWDOWN * plan.simulated_seconds, "take a smaller graph")
    setup, plan.setup = plan.setup, []
    plan.allocate()
    launches = []
    for stage, steps in (("setup", setup), ("count", plan.steps)):
        for step in steps:
            if isinstance(step, Step):
                args = [plan.arrays[arg] if isinstance(arg, str) else arg for arg in step.args]
                shape = step.kernel, step.blocks, step.threads
                launches.append(trace_launch(*shape, *args, shared=step.shared, stage=stage))
            else:
                step.run(plan.arrays)
    return launches


def trace_launch(kernel, blocks, threads, *args, shared=0, stage="count"):
    """Run one kernel on NumPy arrays, which it changes, and record it: a Launch."""
    done = Collector()
    at_a_time = Machine.recorded().blocks_at_a_time(threads, shared)
    memories = record(kernel.py_func, blocks, threads, args, shared=shared, at_a_time=at_a_time, done=done)
    return Launch(stage, kernel.__name__, blocks, threads, shared, done.events(threads, memories))
