"""Everything `make test` runs, part after part, and one summary of them all at the end.

Each part is a process of its own, so that a fault on a GPU, which spoils all later work of its process, spoils no other
part. A part that fails does not keep the later ones from running. The browser's tests often wait, and run beside the
others. Usage: [FULL=1] python tests/suite.py [PART ...]
"""

import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tcgpu.engines.choice import ENGINE

ROOT = Path(__file__).resolve().parent.parent
NO_TESTS = 5  # pytest's exit code
FULL = bool(os.environ.get("FULL"))  # all combinations, not a sample, and what guards the repository
RECORDS = ROOT / "report" / "tests"  # one JUnit file for each pytest process


@dataclass
class Part:
    """A Python module to run, with its arguments; pytest also leaves a record of each test."""

    name: str
    arguments: list
    beside: bool = False  # it often waits, and runs while the others do; what it prints comes after theirs

    @property
    def record(self):
        return RECORDS / f"{self.name}.xml"

    def command(self):
        extra = [f"--junitxml={self.record}", "--durations=5", "-rfE"] if self.arguments[0] == "pytest" else []
        extra += ["--full"] if FULL and self.name in ("core", "gpu", "browser") else []
        gives_way = [] if self.beside or not shutil.which("nice") else ["nice"]  # pages have limits of time
        return [*gives_way, sys.executable, "-m", *self.arguments, *extra]


WORKERS = "--numprocesses=auto"
QUICKLY = "-p", "no:nbval"  # it takes seconds to import
BROWSING = sorted(map(str, ROOT.glob("tests/**/test_*_browser.py")))  # to look at all files takes ten seconds more
GPU = ENGINE == "gpu"
BUT_FOR_GPUS = "not gpu and " if GPU else ""  # without a GPU, the core says of each of these why it is skipped
PARTS = [
    Part("style", ["ruff", "check", "."]),
    Part("types", ["mypy"]),
    Part("core", ["pytest", *QUICKLY, "-m", BUT_FOR_GPUS + "not browser", WORKERS, "--dist=worksteal"]),
    Part("gpu", ["pytest", *QUICKLY, "-m", "gpu"]),
    Part(
        "notebooks",
        [
            "pytest",
            "--nbval",
            "--nbval-current-env",
            "--nbval-cell-timeout=300",
            "notebooks",
            WORKERS,
            "--dist=loadfile",
        ],
    ),
    # a page waits for several things in turn, each of which says what it is
    Part(
        "browser",
        ["pytest", *BROWSING, *QUICKLY, "-m", "browser", WORKERS, "--dist=worksteal", "-o", "faulthandler_timeout=900"],
        beside=True,
    ),
]


@dataclass
class Outcome:
    """The result of a part; `skipped` counts reasons."""

    name: str
    seconds: float
    passed: int = 0
    failed: list = field(default_factory=list)
    skipped: Counter = field(default_factory=Counter)
    output: str = ""  # that is still to be shown


def run(part):
    """Run a part with its output shown as it comes, or, beside others, at its end; return its Outcome."""
    heading = f"\n=== {part.name}"
    print(heading + ", beside the others" * part.beside, flush=True)
    part.record.unlink(missing_ok=True)
    start = time.monotonic()
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if part.beside else {}
    done = subprocess.run(part.command(), cwd=ROOT, text=True, **kept)
    code, outcome = done.returncode, Outcome(part.name, time.monotonic() - start)
    if part.beside:
        outcome.output = f"{heading}\n{done.stdout}"
    if part.record.exists():
        read_record(part.record, outcome)
    elif code == 0:
        outcome.passed = 1
    if code != 0 and not outcome.failed:  # a crash, or a part without any test: there is no record
        outcome.failed.append("no test was found" if code == NO_TESTS else f"exit code {code}")
    return outcome


def read_record(path, outcome):
    """Add the tests of one JUnit file to an Outcome."""
    for test in ElementTree.parse(path).iter("testcase"):
        name = f"{test.get('classname')}::{test.get('name')}"
        skip = test.find("skipped")
        if test.find("failure") is not None or test.find("error") is not None:
            outcome.failed.append(name)
        elif skip is not None:
            outcome.skipped[skip.get("message")] += 1
        else:
            outcome.passed += 1


def summarise(outcomes):
    """Print the table of parts, what was not run and why, what failed, and the totals as the last line."""
    print(f"\n{'part':<12}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for o in outcomes:
        print(f"{o.name:<12}{o.passed:>8}{len(o.failed):>8}{o.skipped.total():>9}{o.seconds:>9.0f}")
    if any(o.skipped for o in outcomes):
        print("\nNot run on this machine:")
    for o in outcomes:
        for reason, count in o.skipped.most_common():
            print(f"  {o.name}: {count} skipped: {reason}")
    if any(o.failed for o in outcomes):
        print("\nFailed:")
    for o in outcomes:
        for name in o.failed:
            print(f"  {o.name}: {name}")
    passed, failed = sum(o.passed for o in outcomes), sum(len(o.failed) for o in outcomes)
    print(f"\n{passed} passed, {failed} failed, {sum(o.skipped.total() for o in outcomes)} skipped")
    return failed == 0


def main(names):
    unknown = set(names) - {part.name for part in PARTS}
    if unknown:
        sys.exit(f"no part {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in PARTS)}")
    RECORDS.mkdir(parents=True, exist_ok=True)
    parts = [part for part in PARTS if part.name in names or not names and (GPU or part.name != "gpu")]
    with ThreadPoolExecutor() as pool:
        beside = [pool.submit(run, part) for part in parts if part.beside]
        outcomes = [run(part) for part in parts if not part.beside]
        for outcome in (future.result() for future in beside):
            print(outcome.output, end="")
            outcomes.append(outcome)
    sys.exit(not summarise(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
