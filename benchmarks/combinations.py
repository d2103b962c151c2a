"""Subgraphs of 3, 4 and 5 vertices: all combinations of a few levels tested, as Chatterjee et al. do, against growing.

    python benchmarks/combinations.py [--kind NAME ...] [--vertices 200 400 800] [--most 1e11] [--repeats 5]
                                      [--into FOLDER]

The graphs are small worlds of 10 neighbours a vertex, of the sizes of the paper's Fig. 10. A row is a way to count:

    levels        `method="levels"` on this machine's GPU; its times are empty for more than `--most` combinations
    rows of bits  cliques, grown by rows of bits on the GPU
    cpu           the native engine, which also grows cliques by rows of bits

Without a GPU only the last one has times.

    tests         combinations that levels tests: the same number in all rows
    subgraphs     how many of them count
    process_ms    from the graph to the number, with everything between: for levels, the search and the chunks
    kernel_ms     the kernels of levels, by the device's events

Times are medians; `*_spread` is the largest less the smallest. All ways must find the same. Written to
combinations-MACHINE.csv in the folder.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import tcgpu
from tcgpu import measurement, records
from tcgpu.engines import runtime
from tcgpu.kernels.chatterjee import combinations
from tcgpu.subgraphs.of_k_vertices import KINDS


def measured(graph, kind, k, *, engine, repeats, most=1e11):
    """The rows of one graph, kind and k. engine: what runs levels, or None if nothing does."""
    with runtime.using(engine or "sim"):
        tests = combinations.split_for(graph, k, kind).total_tests
    about = {"graph": graph.name, "vertices": graph.n, "edges": graph.m, "kind": kind, "k": k, "tests": tests}
    ways = {
        "levels": {"engine": engine, "method": "levels"},
        "rows of bits": {"engine": engine},
        "cpu": {"engine": "cpu"},
    }
    if kind != "clique":
        del ways["rows of bits"]
    found = {}
    for way, options in ways.items():
        row = about | {
            "way": way,
            "engine": options["engine"] or "none",
            "process_ms": "",
            "kernel_ms": "",
            "repeats": 0,
        }
        if options["engine"] and (way != "levels" or tests <= most):
            runs = [timed(graph, k, kind, options) for _ in range(1 + repeats)][1:]
            row["repeats"], found[way] = repeats, {count for count, _ in runs}
            row |= summary("process_ms", [ms for _, ms in runs])
        if way in found and way == "levels":
            row |= summary("kernel_ms", kernel_times(graph, k, kind, engine, repeats))
        yield row | {"subgraphs": min(found.get(way, [""]))}
    if len(set.union(*found.values())) > 1:
        raise SystemExit(f"on {graph.name}, {kind} of {k}: {found}")


def timed(graph, k, kind, options):
    """(subgraphs, milliseconds) of one call with a Graph of which nothing is known."""
    graph = tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False)
    begin = time.perf_counter()
    found = tcgpu.count_subgraphs(graph, k, kind, **options)
    return found, (time.perf_counter() - begin) * 1e3


def kernel_times(graph, k, kind, engine, repeats):
    """Milliseconds of the kernel in each run."""
    with runtime.using(engine), combinations.plan(graph, k, kind).carried_out() as run:
        return [runtime.elapsed_ms(run.launch, run.reset) for _ in range(repeats)]


def summary(name, times):
    """The columns of some times."""
    return {name: round(statistics.median(times), 4), f"{name}_spread": round(max(times) - min(times), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated")
    parser.add_argument("--vertices", type=int, nargs="+", default=[200, 400, 800])
    parser.add_argument("--most", type=float, default=1e11, help="combinations that levels may test")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    engine = "gpu" if runtime.ENGINE == "gpu" else None
    machine, rows = measurement.machine(engine or "cpu"), records.Rows()
    if engine is None:
        print(f"only the native engine is timed: {runtime.REASON}")
    print(
        f"{'graph':<18}{'kind':<13}{'k':<3}{'way':<13}{'tests':>19}{'subgraphs':>19}{'process ms':>12}{'kernel ms':>12}"
    )
    for n in arguments.vertices:
        graph = tcgpu.generate.watts_strogatz(n, 10, 0.1)
        graph.name = f"small world {n}"
        for kind in arguments.kind or KINDS:
            for k in combinations.SIZES:
                for row in measured(graph, kind, k, engine=engine, repeats=arguments.repeats, most=arguments.most):
                    number = f"{row['subgraphs']:>19,}" if row["subgraphs"] != "" else " " * 19
                    print(f"{graph.name:<18}{kind:<13}{k:<3}{row['way']:<13}{row['tests']:>19,}{number}"
                          f"{row['process_ms']:>12}{row['kernel_ms']:>12}", flush=True)  # fmt: skip
                    rows.append(row | machine)
    if arguments.into:
        path = Path(arguments.into, records.record_path("combinations", rows).name)
        rows.write_csv(path)
        print(f"written to {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
