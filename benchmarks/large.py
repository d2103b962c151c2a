"""Large graph500 graphs on one GPU: from raw edges on the device to the count, time and memory. A row for each scale.

    device_total_ms   from two arrays of raw edges, which are on the device, to the count
    peak_bytes        the most device memory besides these edges
    kernel_ms         the counting kernels alone
    checked_by        another method that counts the same triangles; nothing if there is no memory for both

    python benchmarks/large.py [--scales 24 25 26 27 28] [--repeats 3] [--into FOLDER]

The edges are drawn on the device, by the same random numbers as those of `tcgpu.generate`.
"""

import argparse
import gc
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from tcgpu import draws_in_numpy, measurement, records
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel, uint64
from tcgpu.kernels import enough_blocks
from tcgpu.registry import METHODS

ADAPTIVE, CHECK = METHODS["adaptive"], METHODS["warp_search"]
GOLDEN = int(draws_in_numpy.GOLDEN)
EDGE_FACTOR = 16
CHECKED = 25  # the largest scale that is checked by another method
FIRST = 18  # the scale of a graph for which kernels are compiled


@cuda.jit(device=True)
def mixed(x):
    """As `draws_in_numpy.mixed`."""
    x = (x ^ (x >> 30)) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> 27)) * uint64(0x94D049BB133111EB)
    return x ^ (x >> 31)


@cuda.jit(device=True)
def permuted(x, bits, key):
    """As `draws_in_numpy.permuted_id`."""
    mask, fold = (uint64(1) << bits) - 1, (bits + 1) // 2
    for _ in range(3):
        key = mixed(key)
        x = (x * (key | 1) + (key >> 32)) & mask
        x ^= x >> fold
    return x


@kernel("void(uint64, uint64, uint64, uint64, uint64, uint64, int32[::1], int32[::1])")
def draw_rmat(scale, a, ab, abc, seed, first, u, v):
    """A thread per edge, from edge `first` on: draw it, as `draws_in_numpy.draw_rmat`; each random number decides two
    levels."""
    key = mixed(seed + uint64(GOLDEN))
    draws, odd = (scale + 1) // 2, scale & 1
    k = uint64(cuda.grid(1))
    while k < u.size:
        i = j = uint64(0)
        for level in range(draws):
            x = mixed(key + ((first + k) * draws + uint64(level)) * uint64(GOLDEN))
            for shift in (32, 0):
                half = (x >> uint64(shift)) & 0xFFFFFFFF
                low = uint64(half >= ab)
                i = i << 1 | low
                j = j << 1 | (uint64(half >= a) ^ low ^ uint64(half >= abc))
        u[k], v[k] = permuted(i >> odd, scale, key), permuted(j >> odd, scale, key)
        k += uint64(cuda.gridsize(1))


def draw(scale, seed=0, part=0, parts=1):
    """The raw edges of `generate.rmat(scale)`, or one of `parts` equal parts of them, on the device."""
    first, end = ((EDGE_FACTOR << scale) * k // parts for k in (part, part + 1))
    u, v = (runtime.device_array(end - first, np.int32) for _ in range(2))
    bounds = np.round(np.cumsum([0.57, 0.19, 0.19]) * 2**32).astype(int)
    draw_rmat.launch(enough_blocks(2112, u.size, 256), 256, scale, *map(int, bounds), seed, first, u, v)
    return u, v


def measured(scale, repeats):
    """The row of one scale."""
    return of_edges(f"graph500-scale{scale}-ef16", lambda: (*draw(scale), 1 << scale), repeats, scale <= CHECKED)


def of_edges(name, drawn, repeats, checked):
    """The row of a graph: `drawn` returns its raw edges `(u, v, n)` on the device."""
    pool = import_module("cupy").get_default_memory_pool()
    *edges, n = drawn()
    runtime.synchronize()
    times, records = [], edges[0].size
    for _ in range(repeats):
        pool.free_all_blocks()
        before = pool.total_bytes()
        begin = time.perf_counter()
        graph = ADAPTIVE.prepare((*edges, n))
        found = ADAPTIVE.plan(graph).count()
        times.append((time.perf_counter() - begin) * 1e3)
        peak = pool.total_bytes() - before  # the pool keeps what it has had
        del graph
    pool.free_all_blocks()
    graph = ADAPTIVE.prepare((*edges, n))
    del edges
    gc.collect()
    pool.free_all_blocks()
    run = ADAPTIVE.plan(graph).allocate()
    kernel_ms = runtime.elapsed_ms(run.launch, run.reset)
    run.free()
    if checked and CHECK.plan(graph).count() != found:
        raise SystemExit(f"{CHECK.name} counts another number of triangles of {name}")
    return {
        "graph": name, "vertices": n, "records": records, "edges": graph.m, "triangles": found, "order": graph.order,
        "engine": runtime.engine(), "device_total_ms": round(statistics.median(times), 2),
        "kernel_ms": round(kernel_ms, 2), "device_total_ms_spread": round(max(times) - min(times), 2),
        "repeats": repeats, "input_bytes": 8 * records, "peak_bytes": peak, "checked_by": CHECK.name if checked else "",
    }  # fmt: skip


def options(description, scales=(24, 25, 26, 27, 28), **flags):
    """The arguments of the command line, with default `scales`. flags: of others, what each says."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scales", type=int, nargs="*", default=scales)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the record goes")
    for name, said in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=said)
    return parser.parse_args()


def main():
    arguments = options(__doc__.splitlines()[0])
    if runtime.engine() != "gpu":
        sys.exit("graphs of this size need a GPU")
    about, rows = measurement.machine("gpu"), records.Rows()
    measured(FIRST, 1)
    for scale in arguments.scales:
        rows.append(measured(scale, arguments.repeats) | about)
        shown = ("graph", "edges", "triangles", "device_total_ms", "kernel_ms", "peak_bytes")
        print(*(rows[-1][name] for name in shown), flush=True)
        rows.write_csv(Path(arguments.into, records.record_path("large", rows).name))


if __name__ == "__main__":
    main()
