"""The papers measured again on this machine's GPU within a time limit: one record, and a page of verdicts.

    python benchmarks/reproduce.py [--minutes 15] [--engine gpu] [--into reproduced]
    python benchmarks/reproduce.py --check FILE ...

The record is INTO/MACHINE.csv: rows of the suites of `papers.py`. `suite` and `item` say which part of one a row is of,
`scaled` how large its graph is, as a share of the suite's full size. Each item gets a share of the time that is left,
by the weight of its suite. It is measured on a small graph first, and on larger ones while the time that it takes says
that the next fits. The record is written after each item, and Ctrl-C ends the run: the same command goes on where the
last one ended, with as much time again. The page is INTO/index.html. Both tell what could not be measured, and why.

`--engine` names what runs the kernels: NVIDIA's GPU (gpu), else any GPU (webgpu). The simulator (sim) or a device in
software can be named, to try this: `--most 0.0001` for small graphs. Such a record says so, and `--check` refuses it.
"""

import argparse
import math
import re
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import papers

from tcgpu import datasets, hardware, measurement
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.errors import EngineError, GraphError, TcgpuError
from tcgpu.progress import progress, watched
from tcgpu.records import Rows, gpu_of

HERE = Path(__file__).resolve().parent
# The suites in the order of the run, with their parts of the time. `cache` needs a driver that divides the fast memory.
WEIGHTS = {"report": 4, "sweep": 3, "table1": 2, "levels": 2, "lengths": 1, "tricore": 1.5, "truss3": 1, "ladder": 1,
           "samples": 1, "trusses": 1, "cache": 0.5}  # fmt: skip
FIRST = 1 / 256  # the size of the first graph of an item, as a share of the largest
GROWTH = 16  # how many times as large the next one is at most
POWER = 1.5  # time grows with the size to this power at most, by estimate
FETCHING = 0.2  # of the time, for downloads
COMPILING = 60  # seconds that the first run of an item may take
LATE = "the time was over before its smallest graph was measured"
CEILING = "ceiling"  # the suite of the row with the machine's own limits
COPIES = tuple(1 << k for k in range(18, 29, 2))  # words to copy
RULES = "counts that differ", "faster than this machine copies", "missing"


class OutOfTime(Exception):
    """An item has had its time."""


# ----------------------------------------------------------------------------------------------------------- the record


def reproduce(path, *, engine, minutes, most=1.0, repeats=3, show=True):
    """Measure what the record at this path lacks, and write it after each item; returns its Rows.

    most: the size of the largest graphs, as a share of the suites' full size.
    """
    rows, end = begun(path, engine), time.monotonic() + 60 * minutes
    there = {(row["suite"], row["item"]) for row in rows}
    if most == 1:
        fetch_graphs(time.monotonic() + 60 * minutes * FETCHING)
    items = {suite: papers.SUITES[suite][0](most) for suite in WEIGHTS if suite != "cache" or engine == "gpu"}
    left = [(suite, k) for suite in items for k in range(len(items[suite])) if (suite, k) not in there]
    weights = [WEIGHTS[suite] / len(items[suite]) for suite, _ in left]
    with runtime.using(engine), progress(show, len(left), "reproducing") as bar:
        if (CEILING, 0) not in there:
            rows.append({"suite": CEILING, "item": 0} | ceilings() | facts(engine))
        for k, (suite, item) in enumerate(left):
            now = time.monotonic()
            seconds = max(0, end - now) * weights[k] / sum(weights[k:])
            found = sized(suite, items[suite][item], engine, repeats, most, seconds)
            rows += ({"suite": suite, "item": item} | row | facts(row.get("engine", engine)) for row in found)
            rows.write_csv(path)
            bar.add(1)
    return rows


def begun(path, engine):
    """The rows of the record at this path that stay: none of another revision or GPU, and none that came too late."""
    rows = Rows.read_csv(path) if path.exists() else Rows()
    now = facts(engine)
    same = all(row["tcgpu"] == now["tcgpu"] and row["gpu_name"] == now["gpu_name"] for row in rows[:1])
    return Rows(row for row in rows if same and row.get("refused") != LATE)


def facts(engine):
    """The facts of this machine, as `measurement.machine` has them, of the simulator, too, which is software."""
    if engine != "sim":
        return measurement.machine(engine)
    return measurement.machine("cpu") | {"gpu_name": "CUDA simulator", "gpu_kind": "software"}


def sized(suite, item, engine, repeats, most, seconds):
    """The rows of an item on the largest graph that the time allows; one with the reason if it can't be measured."""
    measure, share, found, reason = papers.SUITES[suite][1], most * FIRST, Rows(), LATE
    end = time.monotonic() + seconds
    while True:
        begin, rows, compiled = time.monotonic(), Rows(), bool(found)
        try:
            with watched(partial(stop, end if compiled else max(end, begin + COMPILING))):
                rows = measure(item, engine=engine, repeats=repeats if compiled else 1, share=share)
        except GraphError as error:  # as a rule, there is no graph of the kind that is so small
            reason = str(error)
        except OutOfTime:
            break
        except (TcgpuError, MemoryError) as error:
            reason = str(error)
            break
        except Exception as error:  # counts differ, or a driver fails
            return Rows([{"scaled": share, "wrong": f"{type(error).__name__}: {error}"}])
        now = time.monotonic()
        fitting = (max(end - now, 0) / max(now - begin, 1e-3)) ** (1 / POWER)
        growth = min(most / share, GROWTH, 2 ** math.floor(math.log2(max(fitting, 1))))
        if rows:
            same = compiled and rows[0]["edges"] == found[0]["edges"]  # a graph of one size
            found = Rows(row | {"scaled": share} for row in rows)
            if not compiled and now < end:
                continue  # the same again, to know how long it takes
            if same and share > most * FIRST:
                break
        if growth < 2:
            break
        share *= growth
    return found or Rows([{"scaled": share, "refused": " ".join(reason.split())}])


def stop(end, _):
    """OutOfTime if this time is past."""
    if time.monotonic() > end:
        raise OutOfTime


def fetch_graphs(end):
    """Download the graphs of the report and of Table I until this time, or until a download fails; the rest are
    generated graphs of their class, and the record says so."""
    there = {entry.name for entry in datasets.here()}
    snap = sorted((entry for entry in datasets.catalogue() if "SNAP" in entry.source), key=lambda entry: entry.edges)
    for name in (name for name in (*papers.REPORT, *(entry.name for entry in snap)) if name not in there):
        if time.monotonic() > end:
            return
        try:
            print(f"downloading {name}", file=sys.stderr)
            datasets.fetch(name)
        except TcgpuError as error:
            print(
                f"{error}\nGraphs of the same classes are generated in place of those that are missing.",
                file=sys.stderr,
            )
            return


# --------------------------------------------------------------------------------------------------------- the ceilings


@kernel("void(int32[::1], int32[::1])")
def copy(source, target):
    for k in range(cuda.grid(1), source.size, cuda.gridsize(1)):
        target[k] = source[k]


def ceilings():
    """The machine's own limits: bytes read and written a second by the fastest copy, and microseconds of a launch."""
    best, small = 0.0, [runtime.device_array(1, np.int32, 0) for _ in range(2)]
    for words in COPIES[: 1 if runtime.engine() == "sim" else None]:
        if 16 * words > runtime.memory_free():
            break
        source, target = (runtime.device_array(words, np.int32, 0) for _ in range(2))
        best = max(best, 8e3 * words / fastest(lambda a=source, b=target: copy.launch(1024, 256, a, b)))
    launch = fastest(lambda: copy.launch(1, 32, *small))
    return {"copy_bytes_per_second": round(best), "launch_us": round(1e3 * launch, 3)}


def fastest(work):
    """The least milliseconds of ten runs, after one that compiles."""
    return min([runtime.elapsed_ms(work, lambda: None) for _ in range(11)][1:])


# ----------------------------------------------------------------------------------------------------------------- main


def record_name(engine):
    """The name of the file of this machine's record."""
    gpu = gpu_of({"engine": engine} | facts(engine)) or "CUDA simulator"
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".csv"


def chosen_engine(name):
    """The engine to measure on. EngineError with what to do if no GPU is here, and none is named."""
    name = name or next(iter(hardware.gpus()), None)
    if name is None:
        missing = runtime.why_missing("webgpu") or "the only device is software"
        raise EngineError(
            f"no GPU is here to measure on. NVIDIA's: {runtime.why_missing('gpu')}. Any other: {missing}. `tcgpu "
            "devices` lists what there is; `--engine sim --most 0.0001` tries this in the simulator"
        )
    if runtime.why_missing(name):
        raise EngineError(f"no engine {name!r} here: {runtime.why_missing(name)}")
    return name


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--minutes", metavar="M", type=float, default=15, help="how long it may take; default: 15")
    parser.add_argument("--engine", metavar="E", help="gpu, webgpu or sim; default: the GPU that is here")
    parser.add_argument("--most", metavar="X", type=float, default=1.0, help="the largest graphs, of their full size")
    parser.add_argument("--into", metavar="FOLDER", type=Path, default=Path("reproduced"), help="default: reproduced")
    arguments = parser.parse_args(argv)
    if not arguments.minutes > 0 or not 0 < arguments.most <= 1:
        parser.error("--minutes is above 0, and --most above 0 and at most 1")
    try:
        engine = chosen_engine(arguments.engine)
        path = arguments.into / record_name(engine)
        reproduce(path, engine=engine, minutes=arguments.minutes, most=arguments.most)
    except TcgpuError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    print(f"written to {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
