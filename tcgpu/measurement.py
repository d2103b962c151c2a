"""Time methods on one graph: three timings of each, every count checked, the machine named.

kernel    from the first to the last kernel, by the device's events
process   kernel, plus allocation, set-up and reading the result back
total     process, plus everything from raw edges to columns: cleaning and ordering; or a count without columns
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tcgpu.api import documented
from tcgpu.engines import runtime
from tcgpu.engines.choice import Engine
from tcgpu.errors import GraphError, KernelError, roomy
from tcgpu.graph import Order, as_graph
from tcgpu.hardware import cpu_name, timed_engine
from tcgpu.progress import part
from tcgpu.records import Rows
from tcgpu.registry import Method, as_list, choose, engine_of, fastest, on_engine

REPEATS = 5


class Timing(NamedTuple):
    """One run's three timings in milliseconds, and what it counted."""

    triangles: int
    kernel_ms: float
    process_ms: float
    total_ms: float


@documented
@roomy
def measure(
    graph: Any,
    methods: str | Method | Iterable[str | Method] | None = None,
    *,
    knobs: dict[str, Any] | list[dict[str, Any]] | None = None,
    engine: Engine | None = None,
    order: Order | None = None,
    repeats: int = REPEATS,
    name: str | None = None,
    max_seconds: float | None = None,
) -> Rows:
    """Time methods on a graph, and check that their counts agree: if any two differ, a RuntimeError says so.

    Parameters
    ----------
    graph, engine, order, max_seconds
        As in `tcgpu.count`, but no path. `total_ms` starts from the edge arrays if `graph` is a pair of them. Without
        an engine, kernels run on NVIDIA's GPU, else on a WebGPU device that is hardware, else in the simulator, as do
        those that WebGPU cannot run.
    methods
        One method or several, by name or as an object; without one, the fastest that this machine has.
    knobs
        A dict, or a list of dicts to try in turn. A method ignores knobs that it does not have.
    repeats
        The number of runs to time, after one to warm up.
    name
        The name of the graph in the rows.

    Returns
    -------
    Rows
        A row for each method and each setting of its knobs: `kernel_ms`, `process_ms` and `total_ms` are medians in
        milliseconds, `*_spread` the largest less the smallest. A row names the machine and tcgpu's revision. `gpu_kind`
        is "software" where WebGPU has no hardware: such times are not a GPU's.
    """
    methods = [fastest(engine)] if methods is None else as_list(methods)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise GraphError(f"repeats must be at least 1, and a whole number, not {repeats!r}")
    graph = graph if isinstance(graph, tuple) else as_graph(graph)
    plain = as_graph(graph)
    about = {
        "graph": name or plain.name or "",
        "vertices": plain.n,
        "edges": plain.m,
        "nonzeros_per_column": round(plain.nonzeros_per_column, 3),
    }
    rows, outside = Rows(), runtime.named_engine()
    on_cpu = all(choose(method).engines == ("cpu",) for method in methods)
    with nullcontext() if engine is not None or on_cpu else runtime.using(timed_engine()):
        for method in methods:
            for setting in settings_of(method, knobs):
                given = graph, plain, method, setting, engine, order, repeats, max_seconds
                try:
                    rows.append(about | _measure_method(*given) | machine(engine))
                except KernelError:  # some kernels use what WebGPU has not
                    if engine is not None or runtime.engine() != "webgpu" or runtime.named_engine() == outside:
                        raise
                    with runtime.using(runtime.ENGINE):
                        rows.append(about | _measure_method(*given) | machine(engine))
    check_agreement(rows)
    return rows


def check_agreement(rows):
    """RuntimeError if the rows of one graph do not all have the same count."""
    if len({row["triangles"] for row in rows}) > 1:
        found = ", ".join(f"{row['method']} {row['triangles']}" for row in rows)
        raise RuntimeError(f"methods disagree on {rows[0]['graph'] or 'the graph'}: {found}")


def time_once(graph, method=None, *, engine=None, order=None, max_seconds=None, **knobs):
    """Run one count, once, and return its Timing. The first run of a method compiles it. Keywords as in `count`."""
    chosen = choose(method, engine, order, knobs)
    with on_engine(chosen, engine, max_seconds):
        begin = time.perf_counter()
        plan = chosen.plan(chosen.prepare(graph, order), **knobs)
        kernel, process, found = run_plan(plan, chosen)
        return Timing(found, kernel, process, (time.perf_counter() - begin) * 1e3)


def machine(engine=None):
    """The facts of this machine that a record names: date, CPU, versions and, unless engine is "cpu", the GPU.

    engine: what runs kernels; without it, the engine that runs them now.
    """
    from tcgpu.engines import native
    from tcgpu.engines.kernel_compiler import version

    facts = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": native.threads(),
        "python": platform.python_version(),
        "system": platform.system(),
        "numba": version("numba"),
        "tcgpu": revision(),
    }
    if engine != "cpu":
        name = engine or runtime.engine()
        if name != "sim":
            facts |= {f"gpu_{key}": value for key, value in runtime.named(name).facts().asdict().items()}
    return facts


@cache
def revision():
    """Tcgpu's version, and the commit if it runs from a checkout, with a "+" behind where files are changed.

    In a copy of a checkout without .git, as on another machine, the environment variable TCGPU_COMMIT names the commit.
    """
    root = Path(__file__).resolve().parent.parent
    released = sys.modules["tcgpu"].__version__
    if not (root / ".git").exists():
        return f"{released} {os.environ.get('TCGPU_COMMIT', '')}".strip()
    try:
        git = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        return f"{released} {subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()}"
    except (OSError, subprocess.CalledProcessError):  # no git here, or a checkout that it does not trust
        return released


def settings_of(method, knobs):
    """The distinct settings of a method's knobs to try, each without the knobs that it does not have: a list of dicts.

    knobs: as in `measure`.
    """
    known = choose(method).knobs
    given = [knobs or {}] if knobs is None or isinstance(knobs, dict) else knobs
    settings = [{key: value for key, value in setting.items() if key in known} for setting in given]
    return [setting for k, setting in enumerate(settings) if setting not in settings[:k]]


def run_plan(plan, method):
    """Run a plan stage by stage; returns kernel and process milliseconds and the result."""
    native = method.engines == ("cpu",)
    with part(0, 2):
        begin = time.perf_counter()
        run = plan.allocate()
        if not native:
            runtime.synchronize()
        allocation = time.perf_counter() - begin
    try:
        with part(1, 2):
            begin = time.perf_counter()
            if native:
                run.launch()
                kernel = (time.perf_counter() - begin) * 1e3
            else:
                kernel = runtime.elapsed_ms(run.launch, prepare=run.reset, waits=plan.waits)
            launched = time.perf_counter()
            found = run.result()
            reading = time.perf_counter() - launched
        return kernel, (allocation + reading) * 1e3 + kernel, found
    finally:
        run.free()


def timed_runs(method, raw, order, knobs, repeats, summary=int, clean=None):
    """Run a method `repeats` times from raw edges on, after a run to warm up.

    Returns a tuple for each run: its kernel, process and total milliseconds, all of this run, and `summary` of the
    result. If raw edges are counted without columns, the first two are of a run of the plan `clean`, if there is one.
    """
    runs = []
    for k in range(repeats):
        with part(1 + k, 1 + repeats):
            begin = time.perf_counter()
            prepared = method.prepare(raw, order)
            plan = method.plan(prepared, **knobs)
            if clean is not None and isinstance(prepared, tuple):
                found = plan.count()
                total = (time.perf_counter() - begin) * 1e3
                kernel, process, again = run_plan(clean, method)
                common_result(method.name, [(kernel, process, total, summary(each)) for each in (found, again)])
            else:
                prepared_ms = (time.perf_counter() - begin) * 1e3
                kernel, process, found = run_plan(plan, method)
                total = prepared_ms + process
        runs.append((kernel, process, total, summary(found)))
    return runs


def common_result(method, runs):
    """The result that all runs of `timed_runs` found; RuntimeError if they differ."""
    counts = {run[3] for run in runs}
    if len(counts) > 1:
        raise RuntimeError(f"{method} does not repeat itself: it counted {sorted(counts)}")
    return counts.pop()


def medians(runs):
    """The medians and spreads of kernel, process and total milliseconds, the first three items of each run."""
    timings = dict(zip(("kernel_ms", "process_ms", "total_ms"), list(zip(*runs, strict=True))[:3], strict=True))
    return {
        **{key: round(statistics.median(times), 4) for key, times in timings.items()},
        **{f"{key}_spread": round(max(times) - min(times), 4) for key, times in timings.items()},
    }


def raw_edges(graph, plain):
    """The arrays that `total` starts from: those given, or the edges and the size of the Graph made of them."""
    return graph if isinstance(graph, tuple) else (*plain.edges(), plain.n)


def _measure_method(graph, plain, method, knobs, engine, order, repeats, max_seconds):
    """The row of one method with one setting of its knobs, without the facts of the graph and the machine."""
    chosen = choose(method, engine, order, knobs)
    order = order or chosen.order
    with on_engine(chosen, engine, max_seconds):
        ordered = chosen.prepare(plain, order)
        plan = chosen.plan(ordered, **knobs)
        if engine_of(chosen, engine) == "sim":
            from tcgpu.kernels import simulated

            runs = 1 + repeats
            simulated.check(f"{plan.method}, measured by {runs} runs,", runs * plan.simulated_seconds)
        with part(0, 1 + repeats):
            run_plan(plan, chosen)  # warm up: compiles, loads, fills caches
        runs = timed_runs(chosen, raw_edges(graph, plain), order, knobs, repeats, clean=plan)
        settings = chosen.settings(knobs)
    return {
        "triangles": common_result(chosen.name, runs),
        "method": chosen.name,
        "engine": engine_of(chosen, engine),
        "order": ordered.order,
        "knobs": json.dumps(settings),
        **medians(runs),
        "repeats": repeats,
    }
