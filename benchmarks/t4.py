"""Hold `tcgpu.estimate` against the only published times of a Tesla T4: the report's table.

    python benchmarks/t4.py [--into FOLDER]      anywhere

The report's kernels are here as it prints them, for they do more than those of `tcgpu`: `simple` merges both columns
from their first rows on, and each thread of `shared` adds up the lengths of its k columns, and again for each nonzero.
The report's times include all launches: they fill the column pointers with -1, find them, count, and add up the counts.

The record, t4-GPU.csv, has a row for each graph and kernel: the estimate for a T4, and the published time. Graphs of
the same class stand in for the report's; once more with their vertices in random order.
"""

import argparse
import itertools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import papers
from estimates import recorded

import tcgpu
from tcgpu import Graph, cuda, datasets, int32, int64, measurement, records, uint32
from tcgpu.generators import GENERATORS
from tcgpu.kernels import Plan, Step
from tcgpu.kernels.report.column_block import longest_group

LANE_STEPS = 2_000_000  # that are traced for a time

# Positions are unsigned: Numba checks whether a signed one is below 0, which the report's compiler does not.


@tcgpu.kernel("void(int32[::1])")
def forget(col_ptr):
    for j in range(cuda.grid(1), uint32(col_ptr.size), cuda.gridsize(1)):
        col_ptr[j] = -1


@tcgpu.kernel("void(int32[::1], int32[::1])")
def find_col_ptr(col_of, col_ptr):
    for e in range(cuda.grid(1) + 1, uint32(col_of.size), cuda.gridsize(1)):
        before, j = uint32(col_of[e - 1]), uint32(col_of[e])
        if before != j:
            col_ptr[j] = e
            if before + 1 != j:
                col_ptr[before + 1] = e


@tcgpu.kernel("void(int32[::1], int32[::1], int32[::1], int32[::1])")
def simple_kernel(row_idx, col_of, col_ptr, counts):
    """Both columns of a nonzero are merged whole. The branches are so short that a compiler makes none of them."""
    for e in range(cuda.grid(1), uint32(row_idx.size), cuda.gridsize(1)):
        i, j = uint32(row_idx[e]), uint32(col_of[e])
        p, q = uint32(col_ptr[i]), uint32(col_ptr[j])
        p_end, q_end = uint32(col_ptr[i + 1]), uint32(col_ptr[j + 1])
        common = int32(0)
        while p < p_end and q < q_end:
            x, y = row_idx[p], row_idx[q]
            common += x == y
            p += x <= y
            q += y <= x
        counts[e] = common


@cuda.jit(device=True)
def common_rows(near, p, p_end, row_idx, q, q_end):
    """Merge rows in shared memory with others. A row is read when its pointer advances, in a branch of its own."""
    common = int32(0)
    if p >= p_end or q >= q_end:
        return common
    x, y = near[p], row_idx[q]
    while True:
        if x == y:
            common += 1
            p += 1
            q += 1
            if p >= p_end or q >= q_end:
                return common
            x, y = near[p], row_idx[q]
        elif x > y:
            q += 1
            if q >= q_end:
                return common
            y = row_idx[q]
        else:
            p += 1
            if p >= p_end:
                return common
            x = near[p]


@tcgpu.kernel("void(int32[::1], int32[::1], uint32, int32[::1])")
def shared_kernel(row_idx, col_ptr, columns, counts):
    near = cuda.shared.array(0, int32)  # the lengths of the columns, later the threads' sums; then the columns' rows
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    n, count = uint32(col_ptr.size - 1), int32(0)
    for group in range(cuda.blockIdx.x, (n + columns - 1) // columns, cuda.gridDim.x):
        begin, rows = uint32(col_ptr[columns * group]), uint32(0)
        for k in range(columns):
            j, length = columns * group + k, uint32(0)
            if j < n:
                length = uint32(col_ptr[j + 1]) - uint32(col_ptr[j])
            if thread < 32:
                near[k] = length
            rows += length
        cuda.syncthreads()
        for r in range(thread, rows, threads):
            near[threads + r] = row_idx[begin + r]
        cuda.syncthreads()
        for r in range(thread, rows, threads):
            end = uint32(0)
            for k in range(columns):
                end += uint32(near[k])
                if r < end:
                    break
            i = uint32(near[threads + r])
            q, q_end = uint32(col_ptr[i]), uint32(col_ptr[i + 1])
            count += common_rows(near, threads + r + 1, threads + end, row_idx, q, q_end)
        cuda.syncthreads()
    near[thread] = count
    cuda.syncthreads()
    half = threads >> 1
    while half > 0:
        if thread < half:
            near[thread] += near[thread + half]
        cuda.syncthreads()
        half >>= 1
    if thread == 0:
        counts[cuda.blockIdx.x] = near[0]


@tcgpu.kernel("void(int32[::1], int64[::1])")
def add_up(counts, total):
    found = int64(0)
    for e in range(cuda.grid(1), uint32(counts.size), cuda.gridsize(1)):
        found += counts[e]
    cuda.atomic.add(total, 0, found)


def launches(graph, count, counts):
    """The Plan of the report's launches, of which `count` is the one that counts."""
    some = max(1, count.blocks // 4), 256  # a library chooses these
    return Plan(
        method="report",
        copied={"row_idx": graph.row_idx, "col_of": graph.col_of, "col_ptr": graph.col_ptr.astype(np.int32)},
        created={"counts": (counts, np.int32, 0), "found": (graph.n + 1, np.int32, 0)},
        steps=[
            Step(forget, *some, ("found",)),
            Step(find_col_ptr, count.blocks, count.threads, ("col_of", "found")),
            count,
            Step(add_up, *some, ("counts", "total")),
        ],
    )


@tcgpu.method("simple", order="natural", tasks=("nonzeros", "merge"), threads=512, blocks=256)
def simple(graph, threads, blocks):
    return launches(
        graph, Step(simple_kernel, blocks, threads, ("row_idx", "col_of", "col_ptr", "counts")), max(1, graph.m)
    )


@tcgpu.method("shared", order="natural", tasks=("columns", "merge"), threads=128, blocks=1024, columns=27)
def shared(graph, threads, blocks, columns):
    near = 4 * (max(threads, columns) + longest_group(graph.col_ptr, columns))
    return launches(
        graph, Step(shared_kernel, blocks, threads, ("row_idx", "col_ptr", columns, "counts"), shared=near), blocks
    )


METHODS = {"simple": simple, "shared": shared}


def in_random_order(graph):
    """The same graph, its vertices numbered at random: no column is near those that are merged with it."""
    number = np.random.default_rng(0).permutation(graph.n)
    return Graph.from_edges(number[graph.row_idx], number[graph.col_of], graph.n)


STAND_INS = {"class": lambda graph: graph, "class, in random order": in_random_order}


def rows_of(name, stand_in, kernel):
    """The row of a kernel on a stand-in for one of the report's graphs."""
    generator, size, columns = papers.REPORT[name]
    graph = STAND_INS[stand_in](GENERATORS[generator](**size))
    [published] = [row for row in datasets.published("report_matrices") if row["graph"] == name]
    knobs = {"columns": columns} if kernel == "shared" else {}
    found = tcgpu.estimate(graph, METHODS[kernel], gpu="Tesla T4", lane_steps=4 * LANE_STEPS, **knobs)
    return {
        "graph": name, "stand_in": stand_in, "vertices": graph.n, "edges": graph.m, "kernel": kernel,
        "estimated_for": found.gpu, "estimated_ms": round(found.ms, 4), "published_ms": published[f"{kernel}_ms"],
        "limit": found.row()["limit"],
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", metavar="FOLDER", default="data/measured", help="where the record goes")
    arguments = parser.parse_args()
    machine = {"engine": "gpu", **measurement.machine("gpu")}
    about = machine | {key: value for key, value in recorded("launches", "NVIDIA H200")[0].items() if "gpu_" in key}
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.map(rows_of, *zip(*itertools.product(papers.REPORT, STAND_INS, METHODS), strict=True))
        rows = records.Rows(row | about for row in found)
    rows.write_csv(Path(arguments.into, records.record_path("t4", rows).name))


if __name__ == "__main__":
    main()
