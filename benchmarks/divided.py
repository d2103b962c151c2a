"""graph500 graphs counted by all visible GPUs together, none of which holds the whole graph. A row for each scale.

    total_ms       from raw edges, which lie in parts on the GPUs, to the count; one_gpu_ms: the same on the first GPU
                   alone, where the edges then lie; nothing if they do not fit. Both take their memory from the driver,
                   and give it back after the count
    host_ms        the same of edges in arrays of the host, up to scale 27; one_gpu_host_ms: of one GPU
    columns_ms     until the slowest member has its columns
    counting_ms    the slowest member's counting, with the columns that it gets meanwhile
    sent_bytes     from all GPUs to others
    checked_by     what counted the same triangles: one GPU; or the record of large graphs, and all GPUs again by the
                   kernels for far rows alone

    python benchmarks/divided.py [--scales 24 25 26 27 28] [--repeats 3] [--into FOLDER]

CUDA_VISIBLE_DEVICES chooses the GPUs.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from large import ADAPTIVE, EDGE_FACTOR, FIRST, draw, options

from tcgpu import measurement, records
from tcgpu.distributed import division, executors
from tcgpu.distributed.executors import workers_of
from tcgpu.engines import runtime
from tcgpu.errors import GraphError

ONE_GPU = 27  # the largest scale that is also counted on one GPU
GIVEN_BACK_SECONDS = 0.3  # after a count; before each, one GPU or several, no memory is kept from the last
FAR_ALONE = {"near": 0}  # no rows of bits and no windows: hash tables of far rows count all triangles


def drawn(scale, gpus):
    """The raw edges, a part on each GPU: (u, v, n)."""
    parts = []
    for gpu in range(gpus):
        runtime.use_gpu(gpu)
        runtime.release_device_memory()  # the edges of the last scale
        parts.append(draw(scale, 0, gpu, gpus))
        runtime.synchronize()
    runtime.use_gpu(0)
    return *map(list, zip(*parts, strict=True)), 1 << scale


def on_one_gpu(scale, host):
    """(triangles, milliseconds) on the first GPU alone, of edges that lie there or in `host` arrays."""
    try:
        runtime.release_device_memory()
        edges = host or draw(scale)
        runtime.synchronize()
        begin = time.perf_counter()
        found = ADAPTIVE.plan(ADAPTIVE.prepare((*edges, 1 << scale))).count()
        return found, (time.perf_counter() - begin) * 1e3
    except (GraphError, MemoryError):
        return None, ""


def on_all(edges, workers):
    """(triangles, milliseconds, results) of all GPUs together."""
    time.sleep(GIVEN_BACK_SECONDS)
    begin = time.perf_counter()
    results = division.results(edges, workers)
    return sum(each.triangles for each in results), (time.perf_counter() - begin) * 1e3, results


def median(runs):
    """The median milliseconds of runs, rounded; nothing without any."""
    times = [run[1] for run in runs if run[1] != ""]
    return round(statistics.median(times), 2) if times else ""


def counted_before(scale):
    """The triangles that the record of large graphs has; None without a row."""
    rows = records.reference("large")
    return next((row["triangles"] for row in rows if row["graph"] == f"graph500-scale{scale}-ef16"), None)


def measured(scale, gpus, repeats, workers):
    """The row of one scale."""
    times = range(repeats if scale <= ONE_GPU else 0)
    alone = [on_one_gpu(scale, None) for _ in times]
    edges = drawn(scale, gpus)
    together = [on_all(edges, workers) for _ in range(repeats)]
    if median(alone):
        check = [found for found, _ in alone]
    else:
        check = [counted_before(scale), sum(each.triangles for each in division.results(edges, workers, **FAR_ALONE))]
    host = [np.concatenate([runtime.to_host(part) for part in ends]) for ends in edges[:2]] if times else None
    del edges
    from_host = [on_all((*host, 1 << scale), workers) for _ in times]
    from_host_alone = [on_one_gpu(scale, host) for _ in times]
    triangles = {*check, *(run[0] for run in (*together, *from_host, *from_host_alone))} - {None}
    if len(triangles) != 1:
        raise SystemExit(f"the counts differ at scale {scale}: {triangles}")
    results = sorted(together, key=lambda run: run[1])[repeats // 2][2]
    sent, edges = (sum(getattr(each, name) for each in results) for name in ("sent_bytes", "edges"))
    return {
        "graph": f"graph500-scale{scale}-ef16", "gpus": gpus, "vertices": 1 << scale, "records": EDGE_FACTOR << scale,
        "edges": edges, "triangles": triangles.pop(), "engine": "gpu", "total_ms": median(together),
        "one_gpu_ms": median(alone), "host_ms": median(from_host), "one_gpu_host_ms": median(from_host_alone),
        "columns_ms": round(1e3 * max(each.columns_seconds for each in results), 2),
        "counting_ms": round(1e3 * max(each.counting_seconds for each in results), 2),
        "sent_bytes": sent, "sent_bytes_per_edge": round(sent / edges, 2), "repeats": repeats,
        "checked_by": "one GPU" if median(alone) else "far rows alone" + ", large" * (check[0] is not None),
    }  # fmt: skip


def main():
    arguments = options(__doc__.splitlines()[0])
    gpus = runtime.visible_gpus()
    if runtime.engine() != "gpu" or gpus < 2 or runtime.nccl() is None:
        sys.exit("this needs several GPUs, and NCCL")
    about, rows = measurement.machine("gpu"), records.Rows()
    path = None
    with workers_of("gpus") as workers:
        measured(FIRST, gpus, 1, workers)  # compiles, and connects the GPUs
        for scale in arguments.scales:
            rows.append(measured(scale, gpus, arguments.repeats, workers) | about)
            shown = "graph", "gpus", "edges", "triangles", "total_ms", "one_gpu_ms", "host_ms", "one_gpu_host_ms"
            print(*(rows[-1][name] for name in (*shown, "sent_bytes_per_edge", "checked_by")), flush=True)
            path = path or Path(arguments.into, records.record_path("divided", rows).name)
            rows.write_csv(path)
    executors.close()


if __name__ == "__main__":
    main()
