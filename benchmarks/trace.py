"""Compare traces with a GPU: the counts of `tcgpu.trace` beside the GPU's counters.

A trace runs kernels in the simulator. Here the same launches, with the same arrays and shapes, run on a GPU under
NVIDIA's profiler too, and the record has a row per launch: traced_X and counted_X are the same quantity from the trace
and from the profiler. Besides launches of methods, the stage "pattern" tests the rules of a trace: one request of one
warp to addresses of a certain kind.

    python benchmarks/trace.py [--graph NAME ...] [--into FOLDER]     writes trace-GPU.csv
"""

import argparse
import csv
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import gpu
import probes

from tcgpu import generate, measurement, records
from tcgpu.engines import runtime
from tcgpu.insight import trace_plan
from tcgpu.kernels import Step
from tcgpu.registry import METHODS

sys.path.append(str(Path(__file__).resolve().parents[1] / "notebooks"))
from helpers import trace_accuracy

COUNTERS = {  # measure of a trace -> the metrics of ncu that add up to it
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "atomic_requests": tuple(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("red", "atom")),
    "atomic_sectors": tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("red", "atom")),
    "shared_loads": ("smsp__inst_executed_op_shared_ld.sum",),
    "shared_load_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
    "shared_stores": ("smsp__inst_executed_op_shared_st.sum",),
    "shared_store_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
    "shared_atomics": ("smsp__inst_executed_op_shared_atom.sum",),
    "shared_atomic_conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",),
}
EXTRA_COUNTERS = {  # that a trace does not have
    "instructions": ("smsp__inst_executed.sum",),
    "lane_instructions": ("smsp__thread_inst_executed.sum",),
    "generic_loads": ("smsp__inst_executed_op_generic_ld.sum",),
    "us": ("gpu__time_duration.sum",),
}
PATIENCE = 300  # seconds that ncu may take

GRAPHS = {
    "rmat 6": lambda: generate.rmat(6, 8, seed=1),
    "delaunay 150": lambda: generate.delaunay(150, seed=1),
    "clique 32": lambda: generate.clique(32),
    "rmat 8": lambda: generate.rmat(8, 8, seed=1),
    "road 20 x 20": lambda: generate.road(20, 20, seed=1),
}
KNOBS = {  # how each method is launched: shapes that do not depend on the device
    "naive": ({}, {"threads": 64}, {"threads": 64, "blocks": 3}),
    "column_block": ({}, {"columns": 1}, {"threads": 64, "blocks": 4, "columns": 8}),
    "bitmap": ({}, {"threads": 64, "blocks": 8, "lanes": 1}),
    "bitmap_thread": ({},),
    "bitmap_warp": ({"blocks": 8}, {"blocks": 3, "threads": 64, "lanes": 32}),
    "bitmap_block_shared": ({"blocks": 4}, {"blocks": 16, "threads": 64}),
    "bitmap_block_global": ({"blocks": 4},),
    "warp_search": ({}, {"cached": False}),
    "thread_search": ({},),
    "merge_path": ({},),
    "levels": ({},),
    "adaptive": ({"crowd": 8, "heavy": 4},),
}
ORDERS = {"adaptive": "degree"}


class Case(NamedTuple):
    """Something to launch: a method on a graph, or a pattern."""

    stage: str  # "count" or "pattern"
    subject: str
    method: str
    knobs: str


def cases(graphs):
    """Everything to launch: patterns, and the methods on these graphs."""
    yield from (Case("pattern", pattern, kernel, "{}") for kernel, pattern in probes.patterns())
    for graph in graphs:
        for method in KNOBS:
            if method in METHODS and (method != "levels" or graph_of(graph).m <= 500):  # it tests all combinations
                yield from (Case("count", graph, method, json.dumps(knobs)) for knobs in KNOBS[method])


@cache
def graph_of(name):
    return GRAPHS[name]()


def plan_of(case):
    """The plan of a case, made for the simulator, whose launch shapes do not depend on the device."""
    with runtime.using("sim"):
        if case.stage == "pattern":
            return probes.pattern_plan(case.method, case.subject)
        method = METHODS[case.method]
        graph = method.prepare(graph_of(case.subject), ORDERS.get(case.method))
        return method.plan(graph, **json.loads(case.knobs))


# --------------------------------------------------------------------------------------------------- traced and counted


def traced(case):
    """A row for each kernel that the case launches: what the trace measures."""
    with runtime.using("sim"):
        launches, _ = trace_plan(plan_of(case))
    found = []
    for launch in launches:
        measures = launch.totals()
        row = {
            "stage": "setup" if launch.stage == "setup" else case.stage,
            "subject": case.subject,
            "method": case.method,
            "knobs": case.knobs,
            "kernel": launch.kernel,
            "blocks": launch.blocks,
            "threads_per_block": launch.threads,
            "shared_bytes": launch.shared,
            "steps": measures["steps"],
            "lanes": round(measures["lane_steps"] / measures["steps"], 3),
        }
        found.append(row | {f"traced_{name}": measures[name] for name in COUNTERS})
    return found


def run_profiled(selected):
    """Run every kernel of every case once, with the profiler on; in the process that `ncu` profiles."""
    for case in selected:
        plan = plan_of(case)
        run = replace(plan, setup=()).allocate()
        for step in (*plan.setup, *plan.steps):
            if isinstance(step, Step):
                with gpu.profiled():
                    step.run(run.arrays)
                    runtime.synchronize()
            else:
                step.run(run.arrays)
        run.free()


def counted(graphs):
    """[(kernel, {counter: number})] of all launches, in order; SystemExit with the reason if there is none."""
    metrics = [metric for names in (COUNTERS | EXTRA_COUNTERS).values() for metric in names]
    profiled = [sys.executable, __file__, "--profiled"] + [word for name in graphs for word in ("--graph", name)]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "counters.csv")
        command = [*gpu.NCU, "--log-file", log, "--metrics", ",".join(metrics), *profiled]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        text = log.read_text() if log.exists() else ""
    found = read_counters(text)
    if not found:
        said = [line for line in (text + done.stdout + done.stderr).splitlines() if line.strip()]
        raise SystemExit(f"ncu counts nothing: {' / '.join(said[-3:])}")
    return found


def read_counters(text):
    """[(kernel, measures)] from the CSV file of ncu, with the names of a trace, times in microseconds."""
    lines = text.splitlines()
    heads = [k for k, line in enumerate(lines) if line.startswith('"ID"')]
    rows = csv.DictReader(lines[heads[0] :]) if heads else []
    found = []
    for row in rows:
        if row["ID"]:  # the line of units has none
            sums = {
                name: sum(gpu.number(row[metric]) for metric in of) for name, of in (COUNTERS | EXTRA_COUNTERS).items()
            }
            found.append((row["Kernel Name"], sums | {"us": round(sums["us"] / 1e3, 3)}))
    return found


def compared(of_trace, of_gpu):
    """The rows of the record: the measures of the trace and of the GPU for each launch."""
    if len(of_trace) != len(of_gpu):
        raise SystemExit(f"ncu saw {len(of_gpu)} launches, the trace has {len(of_trace)}")
    rows = []
    for row, (kernel, sums) in zip(of_trace, of_gpu, strict=True):
        if row["kernel"] not in kernel:
            raise SystemExit(f"ncu saw {kernel} where {row['kernel']} was to come")
        rows.append(row | {f"counted_{name}": value for name, value in sums.items()})
    return rows


# ----------------------------------------------------------------------------------------------------------------- main


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", choices=GRAPHS, help="only this one; may be repeated")
    parser.add_argument("--into", metavar="FOLDER", help="where the records go")
    parser.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    graphs = arguments.graph or list(GRAPHS)
    selected = list(cases(graphs))
    if arguments.profiled:
        run_profiled(selected)
        return
    if runtime.ENGINE != "gpu" or not shutil.which("ncu"):
        raise SystemExit(f"nothing is counted: {runtime.REASON if runtime.ENGINE != 'gpu' else 'ncu is not installed'}")
    workers = max(1, (os.cpu_count() or 1) - 2)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        tracing = pool.map(traced, selected)  # goes on while the GPU counts
        of_gpu = counted(graphs)
        of_trace = [launch for launches in tracing for launch in launches]
    about = {"engine": "gpu", **measurement.machine("gpu")}
    rows = records.Rows(row | about for row in compared(of_trace, of_gpu))
    print(trace_accuracy.by_kernel(rows))
    if arguments.into:
        rows.write_csv(Path(arguments.into, records.record_path("trace", rows).name))


if __name__ == "__main__":
    main()
