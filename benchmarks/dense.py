"""Counts of dense graphs beside five lines of PyTorch on the same GPU: a matrix product of bytes on its tensor cores.

Each row is a way to count a random graph whose raw edges are on the GPU, in random order:

    way         "tcgpu"; or "PyTorch": L is the matrix of bytes with a 1 for each edge, and L L * L is summed
    kernel_ms   of the count alone, where the columns, or L, are made; the fastest of the repeats
    raw_ms      from the edges on: of tcgpu.count, or of making L and counting; the median of calls by turns

Before it measures, the GPU is kept busy for two seconds: an idle one is slower.

    python benchmarks/dense.py [--repeats 21] [--into FOLDER]

Written to dense-MACHINE.csv in the folder. It needs PyTorch and CuPy.
"""

import argparse
import statistics
import time
from pathlib import Path

import cupy
import torch
from raw_calls import keep_busy

import tcgpu
from tcgpu import measurement, records
from tcgpu.engines import runtime
from tcgpu.registry import METHODS

VERTICES = 512, 1000, 2000, 4000, 8192, 16384  # PyTorch takes multiples of 8
DENSITIES = 0.05, 0.1, 0.3, 0.5, 1.0
UNTIMED = 5  # turns


def edges_of(n, density, random):
    """Raw edges of a random graph: (u, v), in random order."""
    v, u = cupy.nonzero(cupy.triu(random.random((n, n), dtype=cupy.float32) < density, 1))
    order = cupy.argsort(random.random(u.size, dtype=cupy.float32))
    return tuple(ends[order].astype(cupy.int32) for ends in (u, v))


def lower(u, v, n):
    """PyTorch's matrix L, and the same in the layout that tensor cores take on the right."""
    made = torch.zeros((n, n), dtype=torch.int8, device="cuda")
    high, low = torch.maximum(u, v).long(), torch.minimum(u, v).long()
    made[high, low] = 1
    return made, made.t().contiguous().t()


def product(left, right):
    return (torch._int_mm(left, right) * left).sum(dtype=torch.int64)


def medians_ms(calls, repeats):
    """The result of each call, and the median of its milliseconds; called by turns, the first turns are not timed."""
    times = [[] for _ in calls]
    for _turn in range(UNTIMED + repeats):
        for call, own in zip(calls, times, strict=True):
            begin = time.perf_counter()
            found = int(call())
            own.append((found, 1e3 * (time.perf_counter() - begin)))
    return [(own[0][0], statistics.median(ms for _, ms in own[UNTIMED:])) for own in times]


def measured(n, density, repeats, random):
    """The rows of a graph, one of each way."""
    u, v = edges_of(n, density, random)
    graph = {"graph": f"{n:,} vertices, density {density:g}", "vertices": n, "edges": u.size, "engine": "gpu"}
    method, given = METHODS["adaptive"], tuple(map(torch.from_dlpack, (u, v)))
    calls = (lambda: tcgpu.count((u, v))), (lambda: product(*lower(*given, n)))
    (found, raw_ms), (expected, raw_ms_there) = medians_ms(calls, repeats)
    if found != expected:
        raise SystemExit(f"of {n} vertices and density {density:g}: {found:,} and {expected:,} triangles")
    run = method.plan(method.prepare(tcgpu.DeviceGraph.from_edges(u, v, n), None)).allocate()
    kernel_ms = min(runtime.elapsed_ms(run.launch, prepare=run.reset) for _ in range(repeats))
    run.free()
    yield graph | {"way": "tcgpu", "triangles": found, "kernel_ms": kernel_ms, "raw_ms": raw_ms}
    left, right = lower(*given, n)
    kernel_ms = min(runtime.elapsed_ms(lambda: product(left, right)) for _ in range(repeats))
    yield graph | {"way": "PyTorch", "triangles": expected, "kernel_ms": kernel_ms, "raw_ms": raw_ms_there}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--into", type=Path, help="folder for the record")
    arguments = parser.parse_args()
    machine = measurement.machine("gpu") | {"torch": torch.__version__}
    random, rows = cupy.random.default_rng(1), []
    keep_busy()
    for n in VERTICES:
        for density in DENSITIES:
            for row in measured(n, density, arguments.repeats, random):
                row = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
                print(*(f"{key} {row[key]}" for key in row if key not in ("triangles", "engine")), flush=True)
                rows.append(row | machine)
            cupy.get_default_memory_pool().free_all_blocks()
            torch.cuda.empty_cache()
    if arguments.into:
        records.Rows(rows).write_csv(arguments.into / records.record_path("dense", rows).name)


if __name__ == "__main__":
    main()
