"""Hold `tcgpu.estimate` against the clocks and counters of a GPU.

    python benchmarks/estimates.py probes launches counters [--into FOLDER]      on a GPU
    python benchmarks/estimates.py fit score curve [--into FOLDER]               anywhere, from these records

probes      micro-benchmarks: latencies of the caches and of memory, how much they deliver, launches, blocks
launches    the kernel times of every method on every graph of GRAPHS
counters    instructions, sectors, misses and registers of single launches, by ncu
fit         how many instructions the operations of a source take, from the counters; how many cycles a warp takes for
            each, which share of a cache's or memory's latency it waits, and how the bounds of a launch are joined, from
            the times: only of FITTED, every other one of the first graphs. Times are taken to be linear near the last
            record, at which a fit begins: a second one goes on from the first
score       estimates of all launches; those of the other graphs are scored, and by themselves those of LATER and LAST
curve       estimates of the launches of the record "sweep" that the report's curve is made of

Each writes a record, NAME-GPU.csv; that of `fit` is called "instructions", that of `score` "estimates".
"""

import argparse
import csv
import itertools
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import gpu
import kinds
import numpy as np
from scipy.optimize import lsq_linear, minimize

import tcgpu
from tcgpu import Graph, generate, measurement, records
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import TcgpuError
from tcgpu.insight import demand, estimates, gpus, sampling
from tcgpu.kernels import Step, simulated
from tcgpu.lab import sweep
from tcgpu.registry import METHODS


def of_kind(name, edges):
    """A graph of one of `kinds`."""
    return Graph.from_edges(*kinds.KINDS[name](edges, seed=7)[:2])


GRAPHS = {
    "1K edges, 4 per column": lambda: generate.by_nonzeros(1_000, 4),
    "10K edges, 8 per column": lambda: generate.by_nonzeros(10_000, 8),
    "100K edges, 2 per column": lambda: generate.by_nonzeros(100_000, 2),
    "100K edges, 24 per column": lambda: generate.by_nonzeros(100_000, 24),
    "1M edges, 6 per column": lambda: generate.by_nonzeros(1_000_000, 6),
    "8M edges, 1 per column": lambda: generate.by_nonzeros(8_388_608, 1),
    "8M edges, 4 per column": lambda: generate.by_nonzeros(8_388_608, 4),
    "8M edges, 12 per column": lambda: generate.by_nonzeros(8_388_608, 12),
    "8M edges, 32 per column": lambda: generate.by_nonzeros(8_388_608, 32),
    "R-MAT 8": lambda: generate.rmat(8, 8, seed=1),
    "R-MAT 11": lambda: generate.rmat(11, 16, seed=2),
    "R-MAT 14": lambda: generate.rmat(14, 16, seed=1),
    "R-MAT 16": lambda: generate.rmat(16, 16, seed=1),
    "R-MAT 18": lambda: generate.rmat(18, 8, seed=3),
    "mesh 40 x 40": lambda: generate.mesh(40, 40, seed=1),
    "mesh 300 x 300": lambda: generate.mesh(300, 300, seed=1),
    "mesh 1500 x 1500": lambda: generate.mesh(1500, 1500, seed=1),
    "Delaunay 30K": lambda: generate.delaunay(30_000, seed=1),
    "Delaunay 1M, random": lambda: generate.delaunay(1_000_000, "random", seed=1),
    "road 100 x 100": lambda: generate.road(100, 100, seed=1),
    "road 2000 x 2000": lambda: generate.road(2000, 2000, seed=1),
    "co-papers 3K": lambda: generate.copapers(3_000, seed=1),
    "co-papers 50K": lambda: generate.copapers(50_000, seed=1),
    "Barabasi-Albert 100K": lambda: generate.barabasi_albert(100_000, 10, seed=1),
    "Watts-Strogatz 200K": lambda: generate.watts_strogatz(200_000, 12, seed=1),
    "clique 60": lambda: generate.clique(60),
    "clique 800": lambda: generate.clique(800),
    "random 1M": lambda: generate.random(100_000, 1_000_000, seed=1),
    "mesh 60 x 60 x 60": lambda: generate.mesh3d(60, 60, 60, seed=1),
    "R-MAT 20": lambda: generate.rmat(20, 16, seed=1),
}
FITTED = tuple(GRAPHS)[::2]
COUNTED = tuple(name for name in GRAPHS if name not in ("8M edges, 32 per column", "R-MAT 18", "R-MAT 20"))
# Chosen, measured and scored once after the model was finished: the graphs above were looked at while it was made.
LATER = {
    "R-MAT 13": lambda: generate.rmat(13, 24, seed=77),
    "R-MAT 17": lambda: generate.rmat(17, 8, seed=78),
    "Barabasi-Albert 300K": lambda: generate.barabasi_albert(300_000, 4, seed=79),
    "Watts-Strogatz 50K": lambda: generate.watts_strogatz(50_000, 30, seed=80),
    "co-papers 15K": lambda: generate.copapers(15_000, seed=81),
    "road 700 x 700": lambda: generate.road(700, 700, seed=82),
    "3M edges, 10 per column": lambda: generate.by_nonzeros(3_000_000, 10),
    "web-like": lambda: of_kind("web-like, crawl order", 1e6),
    "blocks": lambda: of_kind("blocks", 1.5e6),
    "power law": lambda: of_kind("Chung-Lu power law", 5e5),
    "clique 300": lambda: generate.clique(300),
    "mesh 120 x 90": lambda: generate.mesh(120, 90, seed=84),
}
# The same again, after what LATER showed: none of them was looked at before the estimates were scored.
LAST = {
    "R-MAT 19": lambda: generate.rmat(19, 12, seed=101),
    "Barabasi-Albert 60K": lambda: generate.barabasi_albert(60_000, 25, seed=102),
    "Delaunay 400K": lambda: generate.delaunay(400_000, seed=103),
    "geometric": lambda: of_kind("geometric random", 8e5),
    "bipartite power law": lambda: of_kind("bipartite power law", 2e6),
    "co-papers 90K": lambda: generate.copapers(90_000, 50, seed=104),
}
GRAPHS |= LATER | LAST
NAMES = (
    "naive", "column_block", "bitmap", "bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global",
    "merge_path", "thread_search", "warp_search", "adaptive",
)  # fmt: skip
LIMIT = 60  # seconds of a processor that a method may be sampled for on a graph
CURVE_STEPS = 4_000_000  # that are traced for a point of the curve: many more change it little
PATIENT = 200  # milliseconds from which on a launch is timed once; counted are launches of a tenth of that
COUNTERS = {
    "instructions": "smsp__inst_executed.sum",
    "load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "load_hits": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "memory_bytes": "dram__bytes_read.sum",
    "registers": "launch__registers_per_thread",
    "ns": "gpu__time_duration.sum",
}

# -------------------------------------------------------------------------------------------------------------- probes

ARGUMENTS = "void(int32[::1], uint32, uint32, int64[::1])"


@kernel(ARGUMENTS)
def chase(after, rounds, stride, out):
    """Each thread follows a chain of loads."""
    i = after[(cuda.grid(1) * stride) % uint32(after.size)]
    for _ in range(rounds):
        i = after[i]
    out[cuda.grid(1)] = i


@kernel(ARGUMENTS)
def shared_chase(after, rounds, stride, out):
    near = cuda.shared.array(0, int32)
    for k in range(cuda.threadIdx.x, after.size, cuda.blockDim.x):
        near[k] = after[k]
    cuda.syncthreads()
    i = (cuda.threadIdx.x * stride) % uint32(after.size)
    for _ in range(rounds):
        i = near[i]
    out[cuda.grid(1)] = i


@kernel(ARGUMENTS)
def stream(data, rounds, part, out):
    """Each block reads its own `part` elements, four at a time."""
    found, begin = int64(0), int64(cuda.blockIdx.x) * part
    for turn in range(rounds):
        p = cuda.threadIdx.x
        while p + 3 * cuda.blockDim.x < part:
            a, b = data[begin + p], data[begin + p + cuda.blockDim.x]
            c, d = data[begin + p + 2 * cuda.blockDim.x], data[begin + p + 3 * cuda.blockDim.x]
            found += (a ^ turn) + (b ^ turn) + (c ^ turn) + (d ^ turn)
            p += 4 * cuda.blockDim.x
    out[cuda.grid(1)] = found


@kernel(ARGUMENTS)
def gather(data, rounds, mask, out):
    """Every thread reads random sectors, four at a time."""
    x, found = uint32(cuda.grid(1)) * uint32(2654435761) + uint32(12345), int64(0)
    for _ in range(rounds):
        a, x = data[((x >> 5) & mask) * 8], x * uint32(1664525) + uint32(1013904223)
        b, x = data[((x >> 5) & mask) * 8], x * uint32(1664525) + uint32(1013904223)
        c, x = data[((x >> 5) & mask) * 8], x * uint32(1664525) + uint32(1013904223)
        d, x = data[((x >> 5) & mask) * 8], x * uint32(1664525) + uint32(1013904223)
        found += a + b + c + d
    out[cuda.grid(1)] = found


@kernel(ARGUMENTS)
def add_to_one(data, rounds, stride, out):
    """The first thread of each block adds to one address, as `add_block_to` does."""
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, int64(rounds))


@kernel(ARGUMENTS)
def add_again(data, rounds, stride, out):
    """Each thread adds to an element of its own, over and over."""
    for _ in range(rounds):
        cuda.atomic.add(data, cuda.threadIdx.x, int32(rounds))


@kernel(ARGUMENTS)
def meet(data, rounds, stride, out):
    for _ in range(rounds):
        cuda.syncthreads()
    out[cuda.grid(1)] = 0


@kernel(ARGUMENTS)
def nothing(data, rounds, stride, out):
    if rounds == 77:
        out[0] = 1


def nanoseconds(probe, blocks, threads, data, rounds, number, shared=0, launches=1):
    """The least time of three of a probe."""
    given = runtime.to_device(data), uint32(rounds), uint32(number), runtime.device_array(blocks * threads, np.int64, 0)

    def run():
        for _ in range(launches):
            probe.launch(blocks, threads, *given, shared=shared)

    return 1e6 * min(runtime.elapsed_ms(run) for _ in range(3))


def per_round(probe, blocks, threads, data, few, many, number, shared=0):
    """Nanoseconds of a round: of two launches, the longer less the shorter."""
    short, long = (nanoseconds(probe, blocks, threads, data, k, number, shared) for k in (few, many))
    return (long - short) / (many - few)


def ring(size, step=64):
    """`size` bytes of elements, of which each at a multiple of `step` bytes leads to another one, at random."""
    places = np.random.default_rng(0).permutation(np.arange(0, size // 4, step // 4))
    after = np.zeros(size // 4, np.int32)
    after[places] = np.roll(places, -1)
    return after


def probes():
    """Yield probe, value, unit."""
    facts, line = runtime.facts(), np.arange(1024, dtype=np.int32)
    small = np.zeros(64, np.int32)
    yield "L1", per_round(chase, 1, 1, ring(1 << 16), 2000, 12000, 0), "ns"
    yield "L2", per_round(chase, 1, 1, ring(1 << 24), 300_000, 900_000, 0), "ns"
    yield "memory", per_round(chase, 1, 1, ring(1 << 30), 1_000_000, 2_500_000, 0), "ns"
    yield "shared", per_round(shared_chase, 1, 32, line, 500, 4500, 1, 4096), "ns"
    yield "barrier", per_round(meet, 1, 128, small, 200, 2200, 1), "ns"
    empty = [nanoseconds(nothing, facts.sms * k, 128, small, 1, 1) for k in (64, 512)]
    yield "block", (empty[1] - empty[0]) / (512 - 64), "ns of a multiprocessor"
    yield "launch", nanoseconds(nothing, 1, 32, small, 1, 1), "ns"
    one, nine = (nanoseconds(nothing, 1, 32, small, 1, 1, launches=launches) for launches in (1, 9))
    yield "next launch", (nine - one) / 8, "ns"
    yield "atomic", per_round(add_again, 1, 32, small, 100, 1100, 1), "ns"
    yield "atomics", 65536 / nanoseconds(add_to_one, 65536, 32, small, 1, 1), "a ns"
    sectors = 1 << 19
    round_ns = per_round(gather, facts.sms * 2, 1024, np.zeros(8 * sectors, np.int32), 8, 40, sectors - 1)
    yield "L2 sectors", facts.sms * 2 * 1024 * 4 / round_ns, "a ns"
    blocks = facts.sms * 8
    part = (1 << 28) // blocks // 1024 * 1024
    round_ns = per_round(stream, blocks, 256, np.zeros(1 << 28, np.int32), 1, 3, part)
    bandwidth = next(gpu.bandwidth for name, gpu in gpus.GPUS.items() if facts.name.startswith(name))
    yield "memory efficiency", 4 * part * blocks / round_ns / bandwidth, "of the data sheet"


# -------------------------------------------------------------------------------------------------- times and counters


def plans(graphs):
    """Yield name of a graph, graph, name of a method, plan; methods that refuse the graph are left out."""
    for name in graphs:
        graph = GRAPHS[name]()
        for method in NAMES:
            try:
                plan = METHODS[method].plan(METHODS[method].prepare(graph, None))
            except TcgpuError as refusal:
                print(f"{name}, {method}: {refusal}", file=sys.stderr)
                continue
            yield name, graph, method, plan


def launches():
    for name, graph, method, plan in plans(GRAPHS):
        if name == "R-MAT 20" and method in ("bitmap_thread", "bitmap_block_shared"):
            continue  # they take a minute
        run = plan.allocate()
        run.reset()
        times = [runtime.elapsed_ms(run.launch, run.reset)]
        times = [runtime.elapsed_ms(run.launch, run.reset) for _ in range(9)] if times[0] < PATIENT else times
        run.free()
        yield {
            "graph": name, "vertices": graph.n, "edges": graph.m, "method": method,
            "kernel_ms": round(statistics.median(times), 5), "kernel_ms_spread": round(max(times) - min(times), 5),
            "repeats": len(times),
        }  # fmt: skip


def run_profiled(times):
    """Run single launches with the profiler on; in the process that ncu profiles. Prints what it runs."""
    for name, _, method, plan in plans(COUNTED):
        if not times.get((name, method), PATIENT) < PATIENT / 10:
            continue
        run = plan.allocate()
        run.launch()
        run.reset()
        for step in plan.steps:
            if isinstance(step, Step):
                with gpu.profiled():
                    step.run(run.arrays)
                    runtime.synchronize()
                print("LAUNCH", name, method, step.kernel.__name__, sep="|", flush=True)
            else:
                step.run(run.arrays)
        run.free()


def counters():
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "counters.csv")
        command = [*gpu.NCU, "--log-file", log, "--metrics", ",".join(COUNTERS.values())]
        done = subprocess.run([*command, sys.executable, __file__, "--profiled"], capture_output=True, text=True)
        lines = log.read_text().splitlines()
    heads = [k for k, line in enumerate(lines) if line.startswith('"ID"')]
    counted = [row for row in csv.DictReader(lines[heads[0] :]) if row["ID"]] if heads else []
    ran = [line.split("|")[1:] for line in done.stdout.splitlines() if line.startswith("LAUNCH|")]
    if not ran or len(ran) != len(counted):
        raise SystemExit(f"ncu saw {len(counted)} launches of {len(ran)}: {done.stderr[-300:]}")
    for (name, method, launched), row in zip(ran, counted, strict=True):
        found = {key: gpu.number(row[metric]) for key, metric in COUNTERS.items()}
        yield {"graph": name, "method": method, "kernel": launched} | found


# ------------------------------------------------------------------------------------------------------- fit and score

# instructions of an operation, at most
MOST = dict(zip(demand.KINDS, (2, 2, 6, 30, 2, 8, 16, 4, 8, 10, 20, 12), strict=True))
CYCLES, LEAST_CYCLES = 3, 0.3  # of an instruction, and of an operation at least, where the times do not say otherwise
STEP = 0.2  # by which a constant is moved, to see what it does
STAY = 0.004  # what it costs to move a constant from there, by the square of its logarithm
FACTOR = 3  # by which a fit changes a constant, at most
MOST_UNITS = 700_000  # of a launch that is fitted to: more take long


class TooLong(Exception):
    """A method was not sampled within LIMIT seconds."""


def _stop(*_):
    raise TooLong(f"not sampled within {LIMIT} seconds of a processor: a single task is too large")


def traced(name):
    """Yield method, [(step, Steps)], bytes of the plan: what `tcgpu.estimate` samples of a graph, for all methods."""
    signal.signal(signal.SIGPROF, _stop)
    graph = GRAPHS[name]()
    device = gpus.GPUS["NVIDIA H200"]
    for method in NAMES:
        try:
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            with runtime.using("sim"), runtime.as_device(device), simulated.limited(float("inf")):
                found = sampled(METHODS[method], graph)
        except (TcgpuError, TooLong) as refusal:
            print(f"{name}, {method}: {refusal}", file=sys.stderr)
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        yield method, *found


def sampled(method, graph):
    """[(step, Steps)] of a method's launches, and the bytes of its plan."""
    prepared = estimates.prepare(method, graph)
    plan = method.plan(prepared)
    arrays = estimates.set_up(plan, prepared).arrays
    launched, steps = [step for step in plan.steps if isinstance(step, Step)], []
    for step in plan.steps:
        if step in launched:
            share = estimates.LANE_STEPS // len(launched)
            found = sampling.sample(step, arrays, prepared, lane_steps=share, tasks=method.tasks)
            steps.append((step, demand.Steps(found)))
        else:
            step.run(arrays)
    return steps, plan.device_bytes


def operations(name):
    """[(graph, method, kernel, how many operations of each of KINDS)] of a graph's launches."""
    found = []
    for method, launched, size in traced(name):
        for step, steps in launched:
            if steps.sample.units > 1:
                kinds = steps.demand(gpus.GPUS["NVIDIA H200"], 1, step.shared, size).kinds
                sums = [values.sum() + beside * step.blocks for values, beside in (
                    estimates.spread(steps.sample, kind, 0) for kind in kinds.T
                )]  # fmt: skip
                found.append((name, method, step.kernel.__name__, sums))
    return found


def fit(pool):
    """Yield the constants that come closest to what was counted and timed on the fitted graphs."""
    counted = {}
    for row in records.reference("counters"):
        counted.setdefault((row["graph"], row["method"], row["kernel"]), row["instructions"])
    of_launches = [launch for found in pool.map(operations, FITTED) for launch in found]
    known = [(sums, counted[tuple(key)]) for *key, sums in of_launches if tuple(key) in counted]
    sums, numbers = (np.array(part, float) for part in zip(*known, strict=True))
    # as many for an access to shared memory as for another one: fitted alone, it would take none
    access, shared = (demand.KINDS.index(kind) for kind in ("access", "shared access"))
    sums[:, access], sums[:, shared] = sums[:, access] + sums[:, shared], 0
    instructions = lsq_linear(sums / numbers[:, None], np.ones(numbers.size), (0, list(MOST.values()))).x
    instructions[shared] = instructions[access]
    by_kind = zip(demand.KINDS, instructions, strict=True)
    constants = demand.constants() | {("instructions", kind): value for kind, value in by_kind}
    times = {(row["graph"], row["method"]): row["kernel_ms"] for row in recorded("launches", "NVIDIA H200")}
    slopes = [row for rows in pool.map(slopes_of, FITTED, itertools.repeat(constants)) for row in rows]
    slopes = [(times[key], *bounds) for key, *bounds in slopes if key in times]
    constants |= fit_times(slopes, constants)
    for (what, kind), value in constants.items():
        launches = numbers.size if what == "instructions" else len(slopes)
        yield {"what": what, "kind": kind, "value": round(float(value), 3), "launches": launches}


def of_blocks(constants):
    """The constants that say how long blocks take."""
    return [name for name in constants if name[0] in ("cycles", "share")]


def find_demand_once(steps):
    """Let Steps keep its demand, that with all blocks running and that with a share: the constants change it little."""
    kept, of = {}, steps.demand

    def demand_of(*launch):
        running = len(launch) > 4 and launch[4] < 1
        if running not in kept:
            kept[running] = of(*launch)
        return kept[running]

    steps.demand = demand_of


def slopes_of(name, constants):
    """[((graph, method), overhead, others, blocks, slopes)] of a graph's launches, in milliseconds; a row per kernel.

    overhead: of launching; blocks, others: the estimate's bound of that name, and its other ones; slopes: how much more
    `blocks` is if one of the constants `of_blocks` doubles.
    """
    machine, found = gpus.GPUS["NVIDIA H200"], []

    def bounds(launched, size, changed):
        demand.constants = lambda: constants | changed
        return [estimates.of_launch(*each, machine, size).bounds for each in launched]

    for method, launched, size in traced(name):
        samples = [steps.sample for _, steps in launched]
        if any(each.units > MOST_UNITS for each in samples):
            continue
        for _, steps in launched:
            find_demand_once(steps)
        base = bounds(launched, size, {})
        others = np.array([list(asdict(replace(each, blocks=0.0)).values()) for each in base]) / 1e6
        slopes = np.zeros((len(launched), len(of_blocks(constants))))
        for k, constant in enumerate(of_blocks(constants)):
            moved = bounds(launched, size, {constant: (1 + STEP) * constants[constant]})
            slopes[:, k] = [(new.blocks - old.blocks) / STEP / 1e6 for new, old in zip(moved, base, strict=True)]
        overhead = estimates.total_ms([], machine) + machine.ns("next launch") * len(launched) / 1e6
        blocks = np.array([each.blocks for each in base]) / 1e6
        found.append(((name, method), overhead, others, blocks, slopes))
    return found


def fit_times(slopes, constants):
    """The constants of times that bring the estimates closest to the clock, and stay near what the instructions say."""
    measured, overhead, others, blocks, slope = zip(*slopes, strict=True)
    first = np.cumsum([0, *map(len, others[:-1])])
    others, blocks, slope = map(np.concatenate, (others, blocks, slope))
    names = of_blocks(constants)
    near = [
        max(LEAST_CYCLES, CYCLES * constants["instructions", kind]) if what == "cycles" else 1.0 for what, kind in names
    ]
    near, start = np.log(near), np.log([constants[name] for name in [*names, demand.POWER]])

    def off(logs):
        moved, power = np.maximum(0.0, blocks + slope @ np.expm1(logs[:-1] - start[:-1])), np.exp(logs[-1])
        kernels = ((others**power).sum(axis=1) + moved**power) ** (1 / power)
        ms = np.add.reduceat(kernels, first) + overhead
        return np.abs(ms / measured - 1).mean() + STAY * ((logs[:-1] - near) ** 2).sum()

    most = np.log(FACTOR)
    found = minimize(off, start, method="Powell", bounds=[(each - most, each + most) for each in start])
    return dict(zip([*names, demand.POWER], np.exp(found.x), strict=True))


def recorded(suite, name):
    """The record of a suite of the GPU whose name begins so."""
    return next((rows for gpu_name, rows in records.records(suite).items() if gpu_name.startswith(name)), [])


def estimated(name):
    """[(graph, method, GPU, estimate in ms, limit)] of a graph's launches."""
    found = []
    for method, launched, size in traced(name):
        for machine in gpus.GPUS.values():
            kernels = [estimates.of_launch(*launch, machine, size) for launch in launched]
            longest = max(kernels, key=lambda kernel: kernel.ms)
            found.append((name, method, machine.name, estimates.total_ms(kernels, machine), longest.bounds.limit))
    return found


def score(pool):
    """Yield a row for each estimate, beside the measured time if there is one."""
    times = {
        (row["graph"], row["method"], name): row["kernel_ms"]
        for name in gpus.GPUS
        for row in recorded("launches", name)
    }
    for rows in pool.map(estimated, GRAPHS):
        for graph, method, name, ms, limit in rows:
            chosen = "later" if graph in LATER else "last" if graph in LAST else "first"
            yield {
                "graph": graph, "method": method, "estimated_for": name, "fitted": graph in FITTED, "chosen": chosen,
                "estimated_ms": round(ms, 5), "kernel_ms": times.get((graph, method, name), ""), "limit": limit,
            }  # fmt: skip


def curve():
    """Yield the rows of the record "sweep" in natural order whose columns are the report's, each with an estimate."""
    for row in records.reference("sweep"):
        knobs = json.loads(row["knobs"])
        if row["order"] == "natural" and knobs.get("columns") in (None, sweep.REPORT_COLUMNS):
            graph = generate.by_nonzeros(row["edges"], row["nonzeros_per_column"])
            gpu_name, settings = row["gpu_name"], knobs | {"order": "natural", "lane_steps": CURVE_STEPS}
            found = tcgpu.estimate(graph, row["method"], gpu=gpu_name, **settings)
            kept = ("graph", "vertices", "edges", "nonzeros_per_column", "method", "order", "knobs")
            yield {key: row[key] for key in kept} | {"estimated_ms": round(found.ms, 5), "kernel_ms": row["kernel_ms"]}


def summary(rows):
    """Print how far off the estimates are, and how many pairs of methods they rank right."""
    rows = [row for row in rows if row["kernel_ms"] != ""]
    for name, fitted, chosen in itertools.product(gpus.GPUS, (True, False), ("first", "later", "last")):
        own = [row for row in rows if (row["estimated_for"], row["fitted"], row["chosen"]) == (name, fitted, chosen)]
        if not own:
            continue
        ratios = np.array([row["estimated_ms"] / row["kernel_ms"] for row in own])
        off = np.abs(ratios - 1)
        pairs = [
            (low["estimated_ms"] < high["estimated_ms"])
            for low, high in itertools.permutations(own, 2)
            if low["graph"] == high["graph"] and high["kernel_ms"] >= 1.2 * low["kernel_ms"]
        ]
        which = "fitted" if fitted else f"not fitted, chosen {chosen}"
        print(f"{name}, {which}: {off.size} launches, MAPE {off.mean():.3f}, median "
              f"{np.median(off):.3f}, worst {off.max():.2f}; {sum(pairs)} of {len(pairs)} pairs right")  # fmt: skip
        for method in NAMES:
            of = np.array([ratio for ratio, row in zip(ratios, own, strict=True) if row["method"] == method])
            if of.size:
                print(f"  {method:20} MAPE {np.abs(of - 1).mean():.3f}, mean ratio {np.exp(np.log(of).mean()):.2f}")


def write(suite, rows, into):
    records.Rows(rows).write_csv(Path(into, records.record_path(suite, rows).name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=("probes", "launches", "counters", "fit", "score", "curve"))
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the records go")
    parser.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    about = {"engine": "gpu", **measurement.machine("gpu")}
    if arguments.profiled:
        run_profiled({(row["graph"], row["method"]): row["kernel_ms"] for row in records.reference("launches")})
    for what in arguments.what:
        if what == "probes":
            found = [{"probe": probe, "value": round(value, 4), "unit": unit} for probe, value, unit in probes()]
            write(what, [row | about for row in found], arguments.into)
        elif what in ("launches", "counters"):
            write(what, [row | about for row in (launches() if what == "launches" else counters())], arguments.into)
        else:
            of_gpu = {key: value for key, value in recorded("launches", "NVIDIA H200")[0].items() if "gpu_" in key}
            if what == "curve":
                write(what, [row | about | of_gpu for row in curve()], arguments.into)
                continue
            with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
                found = list(fit(pool) if what == "fit" else score(pool))
            if what == "score":
                summary(found)
            suite = {"fit": "instructions", "score": "estimates"}[what]
            write(suite, [row | about | of_gpu for row in found], arguments.into)


if __name__ == "__main__":
    main()
