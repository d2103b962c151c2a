"""Run the benchmarks that this machine can run, and print what got slower since the last record of such a machine.

    python benchmarks/watch.py [SUITE ...] [--minutes 60] [--rounds 3] [--into FOLDER]

Times are compared as ratios to a reference, since a machine is not equally fast every day. The reference is measured
before and after each run of a suite: NumPy's sort, by processor time; for suites that need a GPU, a copy on the device.

Each suite runs `--rounds` times, in turns with the others. A time varies by the largest less the smallest of its
ratios, over their median. It is slower if its median is above that of the last record by 10 %, and by more than it
varies, now or then. A suite with slower times runs again, up to twice as often, before they are reported. No run starts
that would end after `--minutes`. Suites without records are trials that must succeed; they run once.

The records are FOLDER/TIME-RECORD.csv, by default in the folder `watched` beside this script, which git ignores: the
rows of the suite, which name the machine and tcgpu's revision, with the number of the run, the reference and its
milliseconds. The last record is of the same GPU, or of the same CPU, cores and threads, from FOLDER or data/measured;
if it has no such reference, plain times are compared. The exit status is 1 if something is slower, or a suite fails.
"""

import argparse
import datetime
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tcgpu.datasets import data_path
from tcgpu.engines import runtime
from tcgpu.records import Rows, Table

HERE = Path(__file__).resolve().parent
LIMIT = 0.1  # by how much a time may grow
SORTED, REPEATS = 1 << 22, 5  # how many numbers the reference sorts, and of how many runs the fastest counts
SHOWN = 20  # changes of a record to print
VERSIONS = ("python", "numba", "gpu_driver", "gpu_numba_cuda")  # printed where they differ


class Columns(NamedTuple):
    """What is compared of a record: its `times`, in rows with the same `keys`."""

    keys: tuple[str, ...]
    times: tuple[str, ...]
    library: str = ""  # the column that names the library of a row, where there are others beside tcgpu


class Suite(NamedTuple):
    """A benchmark: what to run, in an empty folder, and its records there by name. gpu: whether it needs one."""

    command: str
    minutes: float  # about how long on 2 cores or one GPU, until a run has shown it
    records: dict[str, Columns]
    gpu: bool = False


COUNTS = ("kernel_ms", "process_ms")
TALLIES = tuple(f"{verb} by {way} ms" for verb in ("triangles", "support") for way in ("natural", "merged", "degree"))


def paper(name, minutes, keys, times=COUNTS):
    """A suite of papers.py."""
    return Suite(f"papers.py {name} --output {name}.csv", minutes, {name: Columns(keys, times)}, gpu=True)


SUITES = {
    "first-answer": Suite(
        "first_answer.py --into .", 0.5,
        {"first-answer": Columns(("graph", "engine", "caches"), ("count_s", "answer_s"))},
    ),
    "first-use": Suite(
        "first_use.py --into .", 5,
        {"first-use": Columns(("task", "graph", "caches"), ("processor_s",))},
    ),
    "approximate": Suite(
        "approximate.py --into .", 5,
        {"approximate": Columns(("graph", "way"), ("empty_s", "first_s", "again_s"))},
    ),
    "cpu": Suite(
        "cpu.py --peer none --output cpu.csv", 1,
        {"cpu": Columns(("graph", "edges", "library"), ("count_s", "raw_s"), "library")},
    ),
    "threads": Suite(
        "threads.py --into .", 4,
        {"threads": Columns(("graph", "edges", "program"), ("raw_s", "graph_s"), "program")},
    ),
    "truss": Suite(
        "truss.py --peer none --output truss.csv", 0.5,
        {"truss": Columns(("task", "edges", "library"), ("seconds",), "library")},
    ),
    "networkx": Suite(
        "networkx_backend.py --peer none --output networkx.csv", 0.5,
        {"networkx": Columns(("function", "nodes", "edges"), ("tcgpu_s", "converted_s"))},
    ),
    "parse": Suite(
        "parse.py --output parse.csv", 3, {"parse": Columns(("file", "megabytes", "reader"), ("seconds",), "reader")}
    ),
    "families": Suite(
        "families.py --output families.csv", 25,
        {"families": Columns(("kind", "edges", "verb", "order"), ("first_cpu", "again_cpu"))},
    ),
    "faults": Suite("faults.py", 1, {}),
    "leftovers": Suite("leftovers.py", 1, {}),
    "journals": Suite("journals.py", 0.5, {}),
    "damage": Suite("damage.py", 3, {}),
    "foreign": Suite("foreign.py", 1, {}),
    "gpu": Suite(
        "gpu.py --into .", 10,
        {"gpu": Columns(("graph", "edges"), ("kernel_ms", "process_ms", "order_ms", "total_ms", "device_total_ms"))},
        gpu=True,
    ),
    "ablation": Suite(
        "ablation.py --into .", 10,
        {"ablation": Columns(("graph", "edges", "result", "without"), ("kernel_ms",))}, gpu=True,
    ),
    "classes": Suite(
        "classes.py --into .", 5, {"classes": Columns(("graph", "edges", "crowd", "short"), ("kernel_ms",))}, gpu=True
    ),
    "tallies": Suite(
        "tallies.py --into .", 5, {"tallies": Columns(("graph", "edges", "what", "kernel"), COUNTS)}, gpu=True
    ),
    "combinations": Suite(
        "combinations.py --into .", 5,
        {"combinations": Columns(("graph", "edges", "kind", "k", "way"), ("process_ms", "kernel_ms"))}, gpu=True,
    ),
    "motifs": Suite(
        "motifs.py --into .", 4, {"motifs": Columns(("graph", "edges", "what"), (*COUNTS, "native_ms"))}, gpu=True
    ),
    "streaming": Suite(
        "streaming.py --into .", 5,
        {"streaming": Columns(("graph", "edges", "way", "method"), ("process_ms",))}, gpu=True,
    ),
    "pieces": Suite(
        "pieces.py --into .", 2,
        {"pieces": Columns(("graph", "records", "way"), ("process_ms",))}, gpu=True,
    ),
    "scaling": Suite(
        "scaling.py --into .", 10,
        {"scaling": Columns(("graph", "edges", "method", "gpus", "parts"), ("wall_ms", "kernel_ms"))}, gpu=True,
    ),
    "large": Suite(
        "large.py --scales 25 26 --into .", 2,
        {"large": Columns(("graph", "edges"), ("device_total_ms", "kernel_ms"))}, gpu=True,
    ),
    "raw-calls": Suite(
        "raw_calls.py --into .", 1, {"raw-calls": Columns(("graph",), ("raw_ms", "again_ms"))}, gpu=True,
    ),
    "orders": Suite(
        "orders.py measure --into .", 10,
        {"orders": Columns(("kind", "edges"), ("natural 0 ms", "merged ms", "degree ms", *TALLIES))}, gpu=True,
    ),
    "launches": Suite(
        "estimates.py launches --into .", 5, {"launches": Columns(("graph", "edges", "method"), ("kernel_ms",))},
        gpu=True,
    ),
    "report": paper("report", 5, ("graph", "method", "order")),
    "sweep": paper("sweep", 5, ("graph", "method", "order", "knobs")),
    "cache": paper("cache", 5, ("graph", "method", "order", "knobs", "shared_percent"), ("kernel_ms",)),
    "table1": paper("table1", 10, ("graph", "method")),
    "samples": paper("samples", 5, ("graph", "method"), ("kernel_ms",)),
    "truss3": paper("truss3", 10, ("graph", "method")),
    "trusses": paper("trusses", 10, ("graph", "method", "k")),
    "levels": paper("levels", 10, ("figure", "graph", "engine", "knobs")),
    "lengths": paper("lengths", 10, ("graph", "method", "knobs"), ("kernel_ms",)),
    "tricore": paper("tricore", 5, ("graph", "method", "knobs")),
    "ladder": paper("ladder", 5, ("graph", "edges", "idea", "method", "order", "knobs"), ("kernel_ms",)),
}  # fmt: skip
UNWATCHED = {  # script -> why it is no suite
    "divided.py": "ends with an error where there is one GPU",
    "kinds.py": "graphs for others",
    "probes.py": "launches for trace.py",
    "gap.py": "minutes, 128 GB of memory and 80 GB of a GPU; large.py measures the same on smaller graphs",
    "cugraph.py": "beside cuGraph, which the package does not install",
    "dense.py": "beside PyTorch, which the package does not install",
    "reproduce.py": "suites of papers.py, as large as the time allows",
    "t4.py": "estimates, not times",
    "trace.py": "counters, not times",
    "verdict_page.py": "the page of reproduce.py",
    "watch.py": "this script",
}


# ------------------------------------------------------------------------------------------------------------ measuring


def sort_ms():
    """Milliseconds of processor time that NumPy's sort takes."""
    numbers = np.random.default_rng(0).integers(0, 1 << 63, SORTED, np.uint64)
    times = []
    for _ in range(REPEATS):
        copy = numbers.copy()
        begin = time.process_time()
        copy.sort()
        times.append((time.process_time() - begin) * 1e3)
    return min(times)


def copy_ms():
    """Milliseconds that the device takes to copy 10^9 bytes, measured in a process of its own, as suites are."""
    program = "import gpu; print(2e12 / gpu.copy_bandwidth())"  # the bandwidth counts bytes read and bytes written
    done = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True, check=True)
    return float(done.stdout)


REFERENCES = {True: ("copy on the device", copy_ms), False: (f"sort by NumPy {np.__version__}", sort_ms)}  # by `gpu`


def run(suite):
    """Run a suite once; returns its records, name -> Rows, with the reference. RuntimeError with the reason if not."""
    name, reference_ms = REFERENCES[suite.gpu]
    script, *arguments = suite.command.split()
    with tempfile.TemporaryDirectory() as folder:
        before = reference_ms()
        done = subprocess.run([sys.executable, HERE / script, *arguments], cwd=folder, capture_output=True, text=True)
        about = {"reference": name, "reference_ms": round((before + reference_ms()) / 2, 4)}
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise RuntimeError(f"{suite.command}: exit status {done.returncode}: {' / '.join(said[-3:])}")
        found = {}
        for record in suite.records:
            paths = list(Path(folder).glob(f"{record}[.-]*csv"))
            if len(paths) != 1:
                raise RuntimeError(f"{suite.command} wrote {len(paths)} records {record}")
            found[record] = Rows(row | about for row in Rows.read_csv(paths[0]))
    return found


# ------------------------------------------------------------------------------------------------------------ comparing


class Change(NamedTuple):
    """One time of one row: its ratio, now over then, and by what share it varies."""

    row: tuple
    time: str
    ratio: float
    varies: float

    @property
    def slower(self):
        return self.ratio > 1 + max(LIMIT, self.varies)

    @property
    def faster(self):
        return 1 / self.ratio > 1 + max(LIMIT, self.varies)


def kind_of_machine(row):
    """What two rows must agree in to be compared: the GPU, or the CPU, its cores and the threads on them."""
    return row.get("gpu_name") or tuple(row.get(key) for key in ("cpu", "cores", "threads"))


def last_record(name, rows, into, stamp):
    """The last record of the same kind of machine before this one, or None."""
    watched = [path for path in sorted(into.glob(f"[0-9]*-{name}.csv")) if not path.name.startswith(stamp)]
    found = [Rows.read_csv(path) for path in (*data_path("measured").glob(f"{name}-*.csv"), *watched)]
    found = [each for each in found if each and kind_of_machine(each[0]) == kind_of_machine(rows[0])]
    return max(enumerate(found), key=lambda item: (item[1][0]["date"], item[0]), default=(0, None))[1]


def same_reference(rows, last):
    return rows[0]["reference"] == last[0].get("reference")


def times_of(rows, columns, relative):
    """(row, column) -> the median of its times, of ratios to the reference if `relative`, and by what share it varies.

    Rows with the same keys are repeats. A row without repeats varies by its column `*_spread`, if it has that. The
    median of runs that were all ended, without a time, is infinite.
    """
    found = defaultdict(list)
    for row in rows:
        if columns.library and not str(row[columns.library]).startswith("tcgpu"):
            continue
        for column in columns.times:
            repeats = found[tuple(row.get(key, "") for key in columns.keys), column]
            if row.get(column):
                unit = row["reference_ms"] if relative else 1
                repeats.append((row[column] / unit, (row.get(f"{column}_spread") or 0) / unit))
    medians = {}
    for key, repeats in found.items():
        times, spreads = zip(*repeats, strict=True) if repeats else ((float("inf"),), (0,))
        median = statistics.median(times)
        medians[key] = median, (max(times) - min(times) if len(times) > 1 else spreads[0]) / median
    return medians


def changes(columns, rows, last):
    """A Change for each time of both records, the slowest first; how many times one record alone has, now and then."""
    now, then = (times_of(each, columns, same_reference(rows, last)) for each in (rows, last))
    timed_now, timed_then = ({key for key in each if each[key][0] < float("inf")} for each in (now, then))
    both = [key for key in now if key in timed_then]
    found = [Change(*key, now[key][0] / then[key][0], max(now[key][1], then[key][1])) for key in both]
    return sorted(found, key=lambda change: -change.ratio), len(timed_now - set(then)), len(timed_then - set(now))


def report(name, columns, rows, last):
    """Print what changed in a record; returns whether something is slower."""
    if last is None:
        print(f"{name}: no earlier record of such a machine, {kind_of_machine(rows[0])}, to compare with")
        return False
    found, only_now, only_then = changes(columns, rows, last)
    print(f"{name}: {len(found)} times compared with {last[0]['date']}, tcgpu {last[0].get('tcgpu', 'not named')}; "
          f"now {rows[0]['tcgpu']}")  # fmt: skip
    reference = [
        statistics.median(row["reference_ms"] for row in each) for each in (rows, last) if "reference" in each[0]
    ]
    if same_reference(rows, last):
        print(f"  as ratios to the {rows[0]['reference']}: {reference[0]:.4g} ms now, {reference[1]:.4g} ms then")
    else:
        print(f"  as plain times: that record has another reference, or none (now {reference[0]:.4g} ms, "
              f"{rows[0]['reference']})")  # fmt: skip
    for key in VERSIONS:
        if key in rows[0] and rows[0][key] != last[0].get(key, ""):
            print(f"  {key} {rows[0][key]} now, {last[0].get(key, 'not named')} then")
    slower, faster = ([each for each in found if getattr(each, how)] for how in ("slower", "faster"))
    for how, some in (("slower", slower), ("faster", faster[::-1])):
        shown = [each._asdict() | {"row": ", ".join(map(str, each.row)), how: f"{each.ratio:.2f}x",
                                   "varies": f"{each.varies:.0%}"} for each in some[:SHOWN]]  # fmt: skip
        if shown:
            print("  " + repr(Table(shown, how, "varies", "time", "row")).replace("\n", "\n  "))
    noisy = sum(each.varies > LIMIT for each in found)
    print(f"  {len(slower)} slower, {len(faster)} faster (at most {SHOWN} of each are shown); {noisy} vary by more "
          f"than {LIMIT:.0%}, too much to see less; only now {only_now}, only then {only_then}")  # fmt: skip
    return bool(slower)


# ----------------------------------------------------------------------------------------------------------------- main


def time_stamp():
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S}"


def watch(suites, into, rounds=3, minutes=float("inf")):
    """Run suites in turns and report; returns whether nothing is slower and nothing failed."""
    stamp, end = time_stamp(), time.monotonic() + minutes * 60
    rows, seconds, failed = defaultdict(Rows), {}, {}

    def compared(suite):
        """Name, columns, rows and last record of each record of a suite that has been measured."""
        for name, columns in suite.records.items():
            if name in rows:
                yield name, columns, rows[name], last_record(name, rows[name], into, stamp)

    def slower(suite):
        return any(
            change.slower
            for _, columns, new, last in compared(suite)
            if last is not None
            for change in changes(columns, new, last)[0]
        )

    for number in range(1, 2 * rounds + 1):
        for name, suite in suites.items():
            if name in failed or number > 1 and not suite.records or number > rounds and not slower(suite):
                continue
            expected = seconds.get(name, suite.minutes * 60)
            if time.monotonic() + expected > end:
                print(f"{name}: run {number} is left out: it takes about {expected / 60:.2g} min", flush=True)
                continue
            print(f"{name}: run {number}, about {expected / 60:.2g} min", flush=True)
            begin = time.monotonic()
            try:
                for record, found in run(suite).items():
                    rows[record] += [row | {"run": number} for row in found]
                    rows[record].write_csv(into / f"{stamp}-{record}.csv")
            except (RuntimeError, subprocess.CalledProcessError) as reason:
                failed[name] = reason
            seconds[name] = time.monotonic() - begin
    worse = [report(*each) for suite in suites.values() for each in compared(suite)]
    for reason in failed.values():
        print(f"failed: {reason}")
    return not any(worse) and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"all, or some of {', '.join(SUITES)}")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="how long all of it may take")
    parser.add_argument("--rounds", type=int, default=3, help="how often each suite runs")
    parser.add_argument("--into", type=Path, default=HERE / "watched", metavar="FOLDER", help="where records are kept")
    options = parser.parse_args()
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    suites = {name: SUITES[name] for name in options.suites or SUITES}
    if runtime.ENGINE != "gpu" and any(suite.gpu for suite in suites.values()):
        print("left out:", ", ".join(name for name in suites if suites[name].gpu), f"({runtime.REASON})")
        suites = {name: suite for name, suite in suites.items() if not suite.gpu}
    raise SystemExit(not watch(suites, options.into, options.rounds, options.minutes))


if __name__ == "__main__":
    main()
