"""Processes killed while they count with workers: they must leave no files behind, and change no others.

Each trial starts a script that counts graph after graph with executor="processes", and kills it (SIGKILL) at a random
moment, or one of its workers, in turn. A script whose worker was killed goes on for some counts, and all have to be
right. Once all processes of the trial have ended, the temporary folder and shared memory must hold what they held
before: no new name, and folders of other programs, older and named like ours, as they were.

    python benchmarks/leftovers.py [--trials 20] [--scale 16] [--seed 1]
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEMORY = Path("/dev/shm")
AFTER = 3  # counts that a script still does after one of its workers was killed
PATIENCE = 60  # seconds for processes to end, and for what they had to be gone
DECOYS = ("tcgpu-results", "tcgpu-0a1b2c3d", "graph")  # folders that look like what some version of ours might leave
SCRIPT = """
import signal, sys
from contextlib import contextmanager
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
from tcgpu import cpu, generate
from tcgpu.distributed import executors, pool, shared_arrays

shared_arrays.MEMORY = sys.argv[2]
share = pool.shared_file

@contextmanager
def announced(graph):
    with share(graph) as found:
        print("shared", flush=True)
        yield found

pool.shared_file = announced
warm = generate.rmat(6)
pool.count(warm, "processes", engine="cpu")
print("workers", *executors.own_pool("processes")._processes, flush=True)
for seed in range(1000):
    graph = generate.rmat(int(sys.argv[1]), seed=seed)
    right = pool.count(graph, "processes", engine="cpu", order="natural", parts=8) == cpu.count(graph)
    print("right" if right else "WRONG", flush=True)
"""


def trials(number, scale, seed, memory=MEMORY):
    """A row a trial. memory: the folder of shared memory that is used and looked at, beside an own temporary folder."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="leftovers-") as temporary:
        places = [Path(temporary), *([memory] if memory.is_dir() else [])]
        decoys = [place / f"{name}-{os.getpid()}" for place in places for name in DECOYS]
        try:
            for decoy in decoys:
                _make_decoy(decoy)
            for trial in range(number):
                yield {"trial": trial} | _trial(places, decoys, ("parent", "worker")[trial % 2], scale, chance)
        finally:
            for decoy in decoys:
                shutil.rmtree(decoy, ignore_errors=True)


def _trial(places, decoys, victim, scale, chance):
    names, state = _names(places), _state(decoys)
    command = [sys.executable, "-c", SCRIPT, str(scale), str(places[-1])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(places[0])}, **pipes) as script:
        while not (line := script.stdout.readline()).startswith("workers"):
            if not line:
                raise RuntimeError(script.stderr.read())
        workers = [int(number) for number in line.split()[1:]]
        for _ in range(chance.randrange(1, 4)):
            while script.stdout.readline() != "shared\n":
                pass
        time.sleep(chance.random() * 0.02)
        os.kill(script.pid, signal.SIGSTOP)
        shared = _shared(script.pid)
        os.kill(script.pid if victim == "parent" else chance.choice(workers), signal.SIGKILL)
        os.kill(script.pid, signal.SIGCONT)
        said = []
        while victim == "worker" and len(said) < AFTER and (line := script.stdout.readline()):
            said += [line.strip()] if line.strip() in ("right", "WRONG") else []
        script.send_signal(signal.SIGINT)
        script.communicate(timeout=PATIENCE)
    ended = _until(lambda: not any(map(_runs, workers)))
    _until(lambda: not _left(places, names))
    return {
        "killed": victim,
        "shared_bytes": shared,
        "right": said == ["right"] * (AFTER if victim == "worker" else 0),
        "ended": ended,
        "left": sorted(map(str, _left(places, names))),
        "touched": _state(decoys) != state,
    }


def _make_decoy(folder):
    (folder / "deep").mkdir(parents=True)
    for name in ("graph.json", "col_ptr.npy", "row_idx.npy", "deep/mine.txt"):
        (folder / name).write_text("{}\n")
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (0, 0))


def _names(places):
    return {path for place in places for path in place.iterdir()}


def _left(places, names):
    """The paths that are new and that no running process has mapped, as others' semaphores in shared memory are."""
    new = _names(places) - names
    maps = "".join(map(_mapped, Path("/proc").glob("[0-9]*"))) if new else ""
    return {path for path in new if str(path) not in maps}


def _mapped(process):
    try:
        return (process / "maps").read_text()
    except OSError:  # another user's, or ended
        return ""


def _state(folders):
    """The mode, size, time and content of all that is in some folders."""
    paths = [path for folder in folders if folder.exists() for path in (folder, *folder.rglob("*"))]
    facts = [(str(path), path.stat().st_mode, path.stat().st_mtime_ns) for path in paths]
    return facts, [path.read_bytes() for path in paths if path.is_file()]


def _shared(process):
    """Bytes of the files without a name that a process has open."""
    total = 0
    for link in Path(f"/proc/{process}/fd").iterdir():
        if os.readlink(link).endswith("(deleted)"):
            total += link.stat().st_size
    return total


def _runs(process):
    """Whether a process runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _until(holds):
    """Wait for a condition; return whether it became true in time."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def fine(row):
    """Whether a trial succeeded."""
    return row["right"] and row["ended"] and not row["left"] and not row["touched"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--scale", type=int, default=16, help="of the R-MAT graphs")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    for row in trials(arguments.trials, arguments.scale, arguments.seed):
        rows.append(row)
        print(f"trial {row['trial']}: killed the {row['killed']}, {row['shared_bytes']:,} bytes shared: "
              f"{'fine' if fine(row) else row}", flush=True)  # fmt: skip
    good, during = sum(map(fine, rows)), sum(row["shared_bytes"] > 0 for row in rows)
    print(f"{good} of {len(rows)} kills left nothing and touched nothing; {during} came while a graph was shared")
    raise SystemExit(good < len(rows))


if __name__ == "__main__":
    main()
