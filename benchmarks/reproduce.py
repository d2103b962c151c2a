"""The papers measured again on this machine's GPU within a time limit: one record, and a page of verdicts.

    python benchmarks/reproduce.py [--minutes 15] [--engine gpu] [--into reproduced]
    python benchmarks/reproduce.py --check FILE ...

The record is INTO/MACHINE.csv: rows of the suites of `papers.py`. `suite` and `item` say which part of one a row is of,
`scaled` how large its graph is, as a share of the suite's full size. All items are measured on their smallest graphs
first, which compiles their kernels. Then each gets a share of the time that is left, by the weight of its suite, and
larger graphs while the time that it takes says that the next fits; and so on, until nothing grows. The record is
written after each item, and Ctrl-C ends the run: the same command goes on where the last one ended, with as much time
again, also for larger graphs. The page is INTO/index.html. Both tell what could not be measured, and why.

`--engine` names what runs the kernels: NVIDIA's GPU (gpu), else any GPU (webgpu). The simulator (sim) or a device in
software can be named, to try this: `--most 0.0001` for small graphs. Such a record says so, and `--check` refuses it.
"""

import argparse
import math
import re
import sys
import tempfile
import time
from functools import partial
from itertools import chain, pairwise, repeat
from pathlib import Path

import numpy as np
import papers
import streaming
import verdict_page

from tcgpu import datasets, generate, hardware, measurement, records
from tcgpu.distributed.worker import method_of
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.errors import EngineError, GraphError, TcgpuError
from tcgpu.graph import as_graph
from tcgpu.progress import progress, watched
from tcgpu.records import Rows, gpu_of

HERE = Path(__file__).resolve().parent
# The suites in the order of the run, with their parts of the time. `cache` needs a driver that divides the fast memory.
WEIGHTS = {"report": 4, "sweep": 3, "table1": 2, "levels": 2, "lengths": 1, "tricore": 1.5, "truss3": 1, "ladder": 1,
           "samples": 1, "trusses": 1, "streaming": 0.5, "cache": 0.5}  # fmt: skip
FIRST = 1 / 256  # the size of the first graph of an item, as a share of the largest
GROWTH = 16  # how many times as large the next one is at most
POWER = 1.5  # time grows with the size to this power at most, by estimate
FETCHING, FETCHED = 0.2, 5_000_000  # of the time, for downloads; edges of a graph of Table I at most
COMPILING, PATIENCE = 60, 0.1  # what the first run of an item may take: seconds, and of the time that is left
LATE = "the time was over before its smallest graph was measured"
CEILING = "ceiling"  # the suite of the row with the machine's own limits
COPIES = tuple(1 << k for k in range(18, 29, 2))  # words to copy
BLOCKS, THREADS = 1024, 256  # of the copy, at most
COPYING_MS = 5  # a copy that takes longer is the last
READING = "naive", "column_block"  # methods that read every nonzero, four bytes, at least once
NOISE = 1.1  # how many times as long as the whole a part may seem: both are medians
SLACK = 2  # how many times as fast as the ceilings a kernel may be: a copy reads and writes
TEXTS = ("gpu_name", "cpu", "system", "python", "numba", "tcgpu", "date")  # that a record has


class OutOfTime(Exception):
    """An item has had its time."""


# ----------------------------------------------------------------------------------------------------------- the record


def reproduce(path, *, engine, minutes, most=1.0, repeats=3, show=True):
    """Measure what the record at this path lacks, and write it after each item; returns its Rows.

    most: the size of the largest graphs, as a share of the suites' full size.
    """
    found, end = begun(path, engine), time.monotonic() + 60 * minutes
    if most == 1:
        fetch_graphs(time.monotonic() + 60 * minutes * FETCHING)
    items = {suite: SUITES[suite][0](most) for suite in suites_of(engine)}
    every = [(suite, k) for suite in items for k in range(len(items[suite]))]
    with runtime.using(engine), progress(show, 60 * minutes, "reproducing") as bar:
        if not found:
            found[CEILING, 0] = Rows([{"suite": CEILING, "item": 0, "engine": engine} | ceilings() | facts(engine)])
        for growing in chain([False], repeat(True)):  # rounds; the first one compiles
            before = dict(found)
            places = [place for place in every if not done(found.get(place), most, growing)]
            weights = [WEIGHTS[suite] / len(items[suite]) for suite, _ in places]
            for k, (suite, number) in enumerate(places):
                item, now = items[suite][number], time.monotonic()
                left = max(0, end - now)
                seconds = left * weights[k] / sum(weights[k:]) if growing else min(COMPILING, left * PATIENCE)
                measure = partial(SUITES[suite][1], item, engine=engine, repeats=repeats if growing else 1)
                there = found.get((suite, number))
                rows = sized(measure, smallest(suite, item, most), most, seconds, growing, there)
                if rows is not there:
                    about = {"suite": suite, "item": number}
                    found[suite, number] = Rows(about | row | facts(row.get("engine", engine)) for row in rows)
                    Rows(chain(*found.values())).write_csv(path)
                bar.add(time.monotonic() - now)
            if growing and found == before:
                return Rows(chain(*found.values()))


def begun(path, engine):
    """The rows of the record at this path by suite and item; none if another revision or GPU made it."""
    rows = Rows.read_csv(path) if path.exists() else Rows()
    now, found = facts(engine), {}
    for row in rows if rows and all(rows[0][key] == now[key] for key in ("tcgpu", "gpu_name")) else ():
        if row.get("refused") != LATE:
            found.setdefault((row["suite"], row["item"]), Rows()).append(row)
    return found


def facts(engine):
    """The facts of this machine, as `measurement.machine` has them, of the simulator, too, which is software."""
    if engine != "sim":
        return measurement.machine(engine)
    return measurement.machine("cpu") | {"gpu_name": "CUDA simulator", "gpu_kind": "software"}


def sized(measure, share, most, seconds, growing, before=None):
    """The rows of an item, of a graph of this share of its full size or larger; one with the reason if there are none.

    The graph grows, up to `most`, where it is too small to be one, and if `growing` while the time allows. before: the
    rows of an earlier round, which are returned if the time is over before there are better ones.
    """
    end, found, reason = time.monotonic() + seconds, Rows(), LATE
    if size(before):
        share, took = before[0]["scaled"], before[0]["seconds"]
        if not before[0].get("first"):
            if (growth := fitting(took, seconds, most / share)) < 2:
                return before
            share *= growth
    while True:
        begin, growth = time.monotonic(), min(GROWTH, most / share)
        try:
            with watched(partial(stop, end)):
                rows = measure(share=share)
        except GraphError as error:  # as a rule, there is no graph of the kind that is so small
            rows, reason = Rows(), str(error)
        except OutOfTime:
            break
        except (TcgpuError, MemoryError) as error:
            reason = str(error)
            break
        except Exception as error:  # counts differ, or a driver fails
            return Rows([{"scaled": share, "wrong": f"{type(error).__name__}: {error}"}])
        if rows:
            now = time.monotonic()
            about = {"scaled": share, "seconds": round(now - begin, 3)} | ({} if growing else {"first": 1})
            found = Rows(row | about for row in rows)
            growth = fitting(now - begin, end - now, most / share) if growing else 1
        if growth < 2 or (found and not rows):
            break
        share *= growth
    if found or size(before):
        return found or before
    return Rows([{"scaled": share, "refused": " ".join(reason.split())}])


def fitting(took, seconds, most):
    """How many times as large a graph may be, at most, that is measured in these seconds if this one took so many."""
    growth = (max(seconds, 0) / max(took, 1e-3)) ** (1 / POWER)
    return min(GROWTH, most, 2 ** math.floor(math.log2(max(growth, 1))))


def smallest(suite, item, most):
    """The size of the first graph of an item. One that has a name is there at full size alone."""
    name = item[1] if suite == "levels" else item
    return most if suite in ("table1", "truss3", "levels") and isinstance(name, str) else most * FIRST


def size(rows):
    """The size of the graph that rows of an item are of, as a share of its full size; 0 if there are none."""
    return rows[0]["scaled"] if rows and not rows[0].get("refused") else 0


def done(rows, most, growing):
    """Whether nothing more is to be measured of an item; before graphs grow, nothing at all."""
    if not rows or not growing:
        return bool(rows)
    if rows[0].get("first") or rows[0].get("refused") == LATE:
        return False
    return bool(rows[0].get("refused") or rows[0].get("wrong") or rows[0]["scaled"] == most)


def suites_of(engine):
    """The suites that an engine has, in the order of the run."""
    return [suite for suite in WEIGHTS if suite != "cache" or engine == "gpu"]


def stream(name, *, engine, repeats, share):
    """TriCore's streaming: a graph of the ladder through limited memory of the device, as `streaming.py` has it."""
    method_of(streaming.KERNEL, engine, {})  # refuses an engine that does not count in parts
    raw = generate.edges("rmat", **papers.scaled(papers.LADDER_GRAPHS[name], share))
    with tempfile.TemporaryDirectory() as folder:
        rows = streaming.measured(name, as_graph(raw).ordered("degree"), Path(folder, "graph"), repeats, [])
        return Rows(row | {"order": "degree"} for row in rows)


SUITES = papers.SUITES | {"streaming": (lambda share: ["rmat20"], stream)}


def stop(end, _):
    """OutOfTime if this time is past."""
    if time.monotonic() > end:
        raise OutOfTime


def fetch_graphs(end):
    """Download the graphs of the report and of Table I until this time, or until a download fails; the rest are
    generated graphs of their class, and the record says so."""
    there = {entry.name for entry in datasets.here()}
    snap = [entry for entry in datasets.catalogue() if "SNAP" in entry.source and entry.edges <= FETCHED]
    names = *papers.REPORT, *(entry.name for entry in sorted(snap, key=lambda entry: entry.edges))
    for name in (name for name in names if name not in there):
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
    for words in COPIES if runtime.engine() != "sim" else (THREADS,):
        if 16 * words > runtime.memory_free():
            break
        source, target = (runtime.device_array(words, np.int32, 0) for _ in range(2))
        shape = min(BLOCKS, words // THREADS), THREADS
        ms = fastest(partial(copy.launch, *shape, source, target))
        best = max(best, 8e3 * words / ms)
        if ms > COPYING_MS:
            break
    launch = fastest(partial(copy.launch, 1, 32, *small))
    return {"copy_bytes_per_second": round(best), "launch_us": round(1e3 * launch, 3)}


def fastest(work):
    """The least milliseconds of ten runs, after one that compiles."""
    return min([runtime.elapsed_ms(work, lambda: None) for _ in range(11)][1:])


# ------------------------------------------------------------------------------------------------------------ the check


def faults(rows):
    """What is wrong with a record that is to be added to `data/reproduced`, as sentences."""
    first = rows[0] if rows else {}
    if first.get("suite") != CEILING or not all(first.get(key) for key in TEXTS):
        yield f"its first row is not of suite {CEILING!r}, with {', '.join(TEXTS)}"
        return
    if first.get("gpu_kind") == "software" or first["engine"] not in ("gpu", "webgpu"):
        yield f"software made it: {first['gpu_name']}"
    if str(first["tcgpu"]).endswith("+"):
        yield f"changed files made it, of revision {first['tcgpu']}"
    if len({(row["gpu_name"], row["tcgpu"]) for row in rows if row.get("gpu_name")}) > 1:
        yield "it is of several GPUs or revisions"
    there = {(row["suite"], row["item"]) for row in rows if row.get("refused") != LATE}
    for suite in suites_of(first["engine"]):
        many = len(papers.GRAPH500) if suite in ("table1", "truss3") else len(SUITES[suite][0](1))
        lacking = [str(item) for item in range(many) if (suite, item) not in there]
        if lacking:
            yield f"rows are missing: {suite} {', '.join(lacking)}"
    known = {
        (name, row["edges"]): row["triangles"]
        for graphs in records.counts().values()
        for name, found in graphs.items()
        for row in found
    }
    counted = {}
    for place, row in enumerate(rows, 2):  # as an editor counts the lines
        if row.get("wrong"):
            yield f"line {place}: {row['wrong']}"
        elif row["suite"] != CEILING and not row.get("refused"):
            yield from (f"line {place}: {said}" for said in faults_of_row(row, first))
        name = row.get("graph"), row.get("edges")
        for what, key in (("triangles", name), ("kept", (*name, row.get("k")))):
            count = row.get(what, "")
            if count != "" and count != counted.setdefault((row["suite"], row["item"], what, key), count):
                yield f"line {place}: counts of {row['graph']} differ"
        if row.get("triangles", "") not in ("", known.get(name, row.get("triangles"))):
            yield f"line {place}: {row['graph']} has {known[name]:,} triangles, not {row['triangles']:,}"


def faults_of_row(row, first):
    """What is impossible in a row with times."""
    ms = [row.get(f"{what}_ms", "") for what in ("kernel", "process", "total")]
    ms = [each for each in ms if each != ""]
    if not ms or not all(isinstance(each, (int, float)) and 0 < each < math.inf for each in ms):
        yield "it has no times"
    elif any(whole * NOISE < part for part, whole in pairwise(ms)):
        yield f"parts take longer than the whole: {', '.join(f'{each:g}' for each in ms)} ms"
    elif row["engine"] == first["engine"] and row.get("kernel_ms", "") != "":
        if 1e3 * row["kernel_ms"] * SLACK < first["launch_us"]:
            yield f"{row['kernel_ms']:g} ms are less than a launch takes, {first['launch_us']:g} microseconds"
        bytes_read = 4 * row["edges"] if row.get("method") in READING else 0
        if bytes_read > SLACK * first["copy_bytes_per_second"] * row["kernel_ms"] * 1e-3:
            yield f"{row['kernel_ms']:g} ms: faster than the columns can be read"


def check(paths):
    """Print what is wrong with the records; returns how many have faults."""
    wrong = 0
    for path in paths:
        try:
            said = list(faults(Rows.read_csv(path)))
        except (OSError, KeyError, TypeError, ValueError) as error:
            said = [f"it is no record: {type(error).__name__}: {error}"]
        print(*(f"{path}: {each}" for each in said or ["no faults"]), sep="\n")
        wrong += bool(said)
    return wrong


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
    parser.add_argument("--check", metavar="FILE", type=Path, nargs="+", help="say what is wrong with records")
    arguments = parser.parse_args(argv)
    if arguments.check:
        return min(1, check(arguments.check))
    if not arguments.minutes > 0 or not 0 < arguments.most <= 1:
        parser.error("--minutes is above 0, and --most above 0 and at most 1")
    try:
        engine = chosen_engine(arguments.engine)
        path = arguments.into / record_name(engine)
        code = 0
        try:
            reproduce(path, engine=engine, minutes=arguments.minutes, most=arguments.most)
        except KeyboardInterrupt:
            print("\nstopped; the same command goes on from here", file=sys.stderr)
            code = 130
    except TcgpuError as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 2
    if path.exists():
        verdict_page.write(Rows.read_csv(path), arguments.into / "index.html")
        print(f"written to {path} and {arguments.into / 'index.html'}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
