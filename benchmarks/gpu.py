"""`adaptive` on one GPU, from raw edges to the counters of each kernel. Every count is checked by another method.

A row a graph:

    kernel_ms          the counting kernels, by the device's events
    process_ms         from columns in the right order on the device to the count: plan, memory, set-up, read-back
    order_ms           from clean columns in natural order on the device to the input of the counting kernels
    list_ms            the same from the list of these edges, whose vertex numbers are checked first
    total_ms           from two arrays of raw edges in host memory to the count: copying, cleaning, ordering, counting
    device_total_ms    the same from raw edges that are on the device
    lookups            in degree order d (d - 1) / 2 for each column of length d; in natural order, for each nonzero
                       (i, j), the length of the shorter one of columns i and j
    bytes_needed       device memory of the plan, the columns themselves not included
    columns_ms         the time to read the columns once at the bandwidth of a copy, which is measured, too

A row a kernel: its time alone, after the kernels before it have run, and hardware counters where `ncu` can read
them.

A row for each launch on the way from raw edges on the device to the count: when it began and ended, by events before
and after it, which lengthen the whole by some microseconds each. Between launches the device waits for the host, or
does what CuPy launches.

    python benchmarks/gpu.py [--graph NAME ...] [--repeats 7] [--into FOLDER]

Written to gpu-GPU.csv, kernels-GPU.csv and timeline-GPU.csv in the folder; rows of other graphs that are there stay.
"""

import argparse
import csv
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from tcgpu import generate, measurement, records
from tcgpu.engines import runtime
from tcgpu.kernels import Run, Sized, Step
from tcgpu.kernels.device_graph import DeviceGraph
from tcgpu.registry import METHODS

ADAPTIVE, CHECK = METHODS["adaptive"], METHODS["bitmap_auto"]
TIMES = ("kernel_ms", "process_ms", "order_ms", "list_ms", "total_ms", "device_total_ms")
LARGE = 1 << 28  # records from which on two repeats are enough, and counters would take too long

# What ncu calls what a row has: how busy the units are, and what keeps a kernel from making them busier.
COUNTERS = {
    "ncu_ns": "gpu__time_duration.sum",
    "cycles_per_second": "smsp__cycles_elapsed.avg.per_second",
    "registers": "launch__registers_per_thread",
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "instructions": "smsp__inst_executed.sum",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_elapsed",
    "load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "shared_loads": "smsp__inst_executed_op_shared_ld.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1_hit_percent": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_percent": "lts__t_sector_hit_rate.pct",
    "l2_percent": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "l2_bytes": "lts__t_bytes.sum",
    "dram_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "waits_for_memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "waits_for_shared": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "waits_for_barrier": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
}
NCU = ("ncu", "--csv", "--page", "raw", "--print-units", "base", "--kernel-name-base", "function",
       "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off")  # fmt: skip
PATIENCE = 240  # seconds that ncu may take


def cliques(n=434_102, count=60_000, largest=400, seed=3):
    """Overlapping cliques: sizes by Zipf's law, each takes its vertices from a range four times its size."""
    chance = np.random.default_rng(seed)
    sizes = np.minimum(3 + chance.zipf(1.75, count), largest)
    found = []
    for size in np.unique(sizes):
        many = np.count_nonzero(sizes == size)
        begin = chance.integers(0, n - 4 * size, (many, 1))
        members = (begin + chance.integers(0, 4 * size, (many, size))).astype(np.int32)
        found.append([members[:, end].ravel() for end in np.triu_indices(size, 1)])
    return *map(np.concatenate, zip(*found, strict=True)), n


GRAPHS = {  # name -> raw edges; R-MAT as it is drawn, and as graph500 has it, permuted
    "rmat20": lambda: generate.edges("rmat", 20, permuted=False),
    "rmat22": lambda: generate.edges("rmat", 22, permuted=False),
    "overlapping cliques": cliques,
    "mesh 2048 x 2048": lambda: generate.edges("mesh", 2048, 2048),
    "road-like 2048 x 2048": lambda: generate.edges("road", 2048, 2048),
    "graph500-scale22-ef16": lambda: generate.edges("rmat", 22),
    "graph500-scale24-ef16": lambda: generate.edges("rmat", 24),
    "graph500-scale25-ef16": lambda: generate.edges("rmat", 25),
}


def measured(name, u, v, n, repeats, bandwidth):
    """The row of one graph, and its columns as the kernels take them."""
    raw = *map(runtime.to_device_library, (u, v)), n
    graph = ADAPTIVE.prepare(raw)
    natural = DeviceGraph.from_edges(*raw)
    plan = ADAPTIVE.plan(graph)
    plan.count()  # compiles, loads
    run = plan.allocate()
    sized = (run.arrays[step.name] for step in plan.setup if isinstance(step, Sized))
    bytes_needed = plan.device_bytes + sum(array.nbytes for array in sized)
    run.free()
    kernel = kernel_times(plan, repeats)
    times = {
        "kernel_ms": kernel,
        "process_ms": by_clock(lambda: ADAPTIVE.plan(graph).count(), repeats),
        "order_ms": by_events(lambda: from_columns(natural, graph.order), repeats, graph.order == "natural"),
        "list_ms": by_events(lambda: from_list(natural, graph.order), repeats, True),
        "total_ms": by_clock(lambda: ADAPTIVE.plan(ADAPTIVE.prepare((u, v, n))).count(), repeats),
        "device_total_ms": by_clock(lambda: ADAPTIVE.plan(ADAPTIVE.prepare(raw)).count(), repeats),
    }
    found, other = ADAPTIVE.plan(graph).count(), CHECK.plan(graph).count()
    if found != other:
        raise SystemExit(f"the counts differ on {name}: {ADAPTIVE.name} {found:,}, {CHECK.name} {other:,}")
    look_ups = lookups(graph)
    row = {
        "graph": name,
        "vertices": n,
        "edges": graph.m,
        "records": u.size,
        "triangles": found,
        "checked_by": CHECK.name,
        "method": ADAPTIVE.name,
        "engine": runtime.engine(),
        "order": graph.order,
        **{key: round(statistics.median(ms), 4) for key, ms in times.items()},
        **{f"{key}_spread": round(max(ms) - min(ms), 4) for key, ms in times.items()},
        "repeats": repeats,
        "lookups": look_ups,
        "lookups_per_second": round(look_ups / statistics.median(kernel) * 1e3),
        "columns_ms": round(graph.nbytes / bandwidth * 1e3, 4),
        "copy_bytes_per_second": round(bandwidth),
        "bytes_needed": bytes_needed,
    }
    return row, graph


def kernel_times(plan, repeats):
    """Milliseconds of a plan's launches, in each run."""
    run = plan.allocate()
    times = [runtime.elapsed_ms(run.launch, run.reset) for _ in range(repeats)]
    run.free()
    return times


def by_clock(work, repeats):
    """Milliseconds of each run, after one that does not count."""
    times = []
    for _ in range(1 + repeats):
        runtime.synchronize()
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return times[1:]


def by_events(work, repeats, waits):
    """Milliseconds of the device for each run, after one that does not count; see `elapsed_ms`."""
    return [runtime.elapsed_ms(work, waits=waits) for _ in range(1 + repeats)][1:]


def from_columns(natural, order):
    """The input of the kernels, made of a graph's columns in natural order."""
    fresh = DeviceGraph(natural.n, natural.col_ptr, natural.row_idx, natural.col_of)
    ADAPTIVE.plan(fresh.ordered(order)).allocate()


def from_list(natural, order):
    """The input of the kernels, made of a list of clean edges."""
    ends = natural.row_idx, natural.col_of
    ADAPTIVE.plan(DeviceGraph.from_edges(*ends, natural.n, order=order, clean=True)).allocate()


def lookups(graph):
    """The number of look-ups of single rows in a count; see above."""
    xp = runtime.arrays_of(graph.col_ptr)
    lengths = xp.diff(graph.col_ptr)
    if graph.order == "degree":
        return int((lengths * (lengths - 1) // 2).sum())
    return int(xp.minimum(lengths[graph.row_idx], lengths[graph.col_of]).sum())


# ------------------------------------------------------------------------------------------------------------- kernels


def stages(plan):
    """All that a plan launches, in order: (stage, step); and the Run of a plan that sets up nothing, without arrays."""
    found = [("set-up", step) for step in plan.setup] + [("count", step) for step in plan.steps]
    return found, Run(replace(plan, setup=()))


def begin(run, steps):
    """New arrays of a run, after these steps."""
    run.free()
    run.allocate()
    for step in steps:
        step.run(run.arrays)


def alone(run, steps, repeats):
    """Milliseconds of the last of these steps on the device, each time after all others."""
    run_last = lambda: steps[-1].run(run.arrays)  # noqa: E731
    return [runtime.elapsed_ms(run_last, lambda: begin(run, steps[:-1])) for _ in range(repeats)]


def name_of(step):
    return step.kernel.__name__ if isinstance(step, Step) else "scan"


def kernel_rows(row, graph, repeats):
    """A row for each kernel of `adaptive`, each timed alone, as often as the graph's."""
    launched, run = stages(ADAPTIVE.plan(graph))
    steps = [step for _, step in launched]
    for k, (stage, step) in enumerate(launched):
        ms = alone(run, steps[: k + 1], repeats)
        shape = (step.blocks, step.threads, step.shared) if isinstance(step, Step) else ("", "", "")
        yield {
            **{key: row[key] for key in ("graph", "vertices", "edges", "engine", "order", "copy_bytes_per_second")},
            "stage": stage,
            "kernel": name_of(step),
            "kernel_ms": round(statistics.median(ms), 4),
            "kernel_ms_spread": round(max(ms) - min(ms), 4),
            "repeats": repeats,
            **dict(zip(("blocks", "threads_per_block", "shared_bytes"), shape, strict=True)),
        }
    if run.result() != row["triangles"]:
        raise SystemExit(f"step by step, {row['graph']} has {run.result():,} triangles, else {row['triangles']:,}")
    run.free()


def profiled():
    """A context in which ncu, started with `--profile-from-start off`, records the launches."""
    return import_module("cupyx.profiler").profile() if runtime.engine() == "gpu" else nullcontext()


def copy_bandwidth():
    """Measured bytes a second, read and written together, of a device-to-device copy much larger than the caches."""
    size = min(1 << 30 if runtime.engine() == "gpu" else 1 << 26, runtime.memory_free() // 8)
    source, target = (runtime.device_array(size, np.uint8, 0) for _ in range(2))
    copy = partial(runtime.arrays_of(target).copyto, target, source)
    copy()
    return 2 * size / (min(runtime.elapsed_ms(copy) for _ in range(5)) * 1e-3)


def profile(name):
    """Runs in the process that `ncu` profiles: every kernel of one graph once, the profiler on for these alone."""
    graph = ADAPTIVE.prepare((*map(runtime.to_device_library, (ends := GRAPHS[name]())[:2]), ends[2]))
    plan = ADAPTIVE.plan(graph)
    plan.count()
    launched, run = stages(plan)
    run.allocate()
    for _, step in launched:
        if isinstance(step, Step):
            with profiled():
                step.run(run.arrays)
                runtime.synchronize()
        else:
            step.run(run.arrays)


def add_counters(names, rows):
    """Add the counters that `ncu` reads to the rows of these graphs' kernels; return the reason if it cannot."""
    rows = [row for row in rows if row["kernel"] != "scan" and row["graph"] in names]
    for row in rows:
        row["counters"] = "no ncu"
    if not shutil.which(NCU[0]):
        return "ncu is not installed"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "counters.csv")
        watched = [sys.executable, __file__] + [word for name in names for word in ("--profile", name)]
        command = [*NCU, "--log-file", log, "--metrics", ",".join(COUNTERS.values()), *watched]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"ncu is not done within {PATIENCE} s"
        text = log.read_text() if log.exists() else ""
    read = read_counters(text)
    if len(read) != len(rows):
        said = [line for line in (text + done.stdout + done.stderr).splitlines() if line.strip()]
        return f"ncu saw {len(read)} kernels of {len(rows)}: {' / '.join(said[-3:])}"
    for row, (kernel, values) in zip(rows, read, strict=True):
        if row["kernel"] not in kernel:
            raise SystemExit(f"ncu saw {kernel} where {row['kernel']} was to come")
        row |= values | {"counters": "ncu"}
    return ""


def read_counters(text):
    """The CSV output of ncu: [(kernel, {name: number})], with nothing for a counter that it does not have."""
    lines = text.splitlines()
    heads = [k for k, line in enumerate(lines) if line.startswith('"ID"')]
    if not heads:
        return []
    rows = [row for row in csv.DictReader(lines[heads[0] :]) if row["ID"]]  # the line of units has none
    return [(row["Kernel Name"], {key: number(row.get(metric)) for key, metric in COUNTERS.items()}) for row in rows]


def number(text):
    """A number as ncu writes it, with commas; empty if it is none."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return ""
    return int(value) if value.is_integer() else round(value, 4)


# ----------------------------------------------------------------------------------------------------------- time line


@contextmanager
def launches_timed():
    """A list of (name, event before, event after) of each launch and sort inside the `with`."""
    found, kernel, sort = [], runtime.Kernel.launch, runtime.sort

    def timed(name, function, *args, **options):
        before = runtime.event(timing=True)
        function(*args, **options)
        found.append((name, before, runtime.event(timing=True)))

    runtime.Kernel.launch = lambda self, *args, **options: timed(self.__name__, kernel, self, *args, **options)
    runtime.sort = lambda keys: timed("sort", sort, keys)
    try:
        yield found
    finally:
        runtime.Kernel.launch, runtime.sort = kernel, sort


def timeline_rows(row, raw, repeats):
    """A row for each launch from raw edges to the count, of the run whose whole time is the median."""
    raw = *map(runtime.to_device_library, raw[:2]), raw[2]
    runs = []
    for _ in range(1 + repeats):  # the first compiles and loads
        runtime.synchronize()
        begin = runtime.event(timing=True)
        with launches_timed() as launches:
            found = ADAPTIVE.plan(ADAPTIVE.prepare(raw)).count()
        end = runtime.event(timing=True)
        end.synchronize()
        times = [(name, before.ms_since(begin), after.ms_since(begin)) for name, before, after in launches]
        runs.append((end.ms_since(begin), times))
    if found != row["triangles"]:
        raise SystemExit(f"from raw edges, {row['graph']} has {found:,} triangles, else {row['triangles']:,}")
    whole, times = sorted(runs[1:], key=lambda run: run[0])[repeats // 2]
    for place, (name, begin, end) in enumerate(times):
        yield {
            **{key: row[key] for key in ("graph", "vertices", "edges", "engine", "order")},
            "place": place,
            "kernel": name,
            "begin_ms": round(begin, 4),
            "end_ms": round(end, 4),
            "whole_ms": round(whole, 4),
            "repeats": repeats,
        }


# ---------------------------------------------------------------------------------------------------------------- main


def keep(path, rows):
    """Write rows, and the file's rows of other graphs, in the order of GRAPHS."""
    measured, place = {row["graph"] for row in rows}, {name: k for k, name in enumerate(GRAPHS)}
    before = [row for row in (records.Rows.read_csv(path) if path.exists() else []) if row["graph"] not in measured]
    rows = sorted([*before, *rows], key=lambda row: place.get(row["graph"], len(place)))
    records.Rows(rows).write_csv(path)
    print(f"written to {path}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--into", metavar="FOLDER", help="where the records go")
    parser.add_argument("--profile", action="append", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.profile or ():
        profile(name)
    if arguments.profile:
        return
    machine, bandwidth = measurement.machine("gpu"), copy_bandwidth()
    graphs, kernels, timeline = (records.Rows() for _ in range(3))
    print(f"{'graph':<24}" + "".join(f"{key:>16}" for key in TIMES))
    for name in GRAPHS:
        if arguments.graph and not any(part.lower() in name.lower() for part in arguments.graph):
            continue
        u, v, n = GRAPHS[name]()
        repeats = min(2, arguments.repeats) if u.size >= LARGE else arguments.repeats
        row, graph = measured(name, u, v, n, repeats, bandwidth)
        print(f"{name:<24}" + "".join(f"{row[key]:16.3f}" for key in TIMES), flush=True)
        graphs.append(row | machine)
        kernels += [kernel | machine for kernel in kernel_rows(row, graph, min(5, repeats))]
        if u.size < LARGE:
            timeline += [launch | machine for launch in timeline_rows(row, (u, v, n), repeats)]
        del u, v, graph
    small = [row["graph"] for row in graphs if row["records"] < LARGE]
    reason = small and add_counters(small, kernels)
    if reason:
        print(f"no hardware counters: {reason}")
    for kind, rows in (("gpu", graphs), ("kernels", kernels), ("timeline", timeline)):
        if rows and arguments.into:
            keep(Path(arguments.into, records.record_path(kind, rows).name), rows)


if __name__ == "__main__":
    main()
