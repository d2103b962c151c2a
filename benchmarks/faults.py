"""Workers killed in the middle of a count: the count must still be right.

Each trial has Dask count a graph in parts, and kills one worker process (SIGKILL) at a random moment of the count.
The record has a row a trial: when the worker was killed, how long the count took, its result, and whether that is
right.

    python benchmarks/faults.py [--trials 20] [--workers 2] [--scale 17] [--seed 1] [--into FOLDER]
"""

import argparse
import os
import random
import signal
import statistics
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
from distributed import Client, LocalCluster

from tcgpu import cpu, generate, measurement, records
from tcgpu.distributed import pool

PARTS = 64


def trials(number, workers, scale, seed):
    """A row a trial."""
    chance = random.Random(seed)
    graph = generate.rmat(scale, seed=seed)
    triangles = cpu.count(graph.ordered("auto"))
    with cluster(workers) as (dask_cluster, client):
        executor = client.get_executor(pure=False)
        count = lambda: pool.count(graph, executor, engine="cpu", parts=PARTS)  # noqa: E731
        usual = statistics.median(seconds(count)[1] for _ in range(4))
        for trial in range(number):
            victim, moment = chance.choice(processes(dask_cluster)), chance.random() * usual
            found, took, killed = with_a_death(count, victim, moment)
            yield {
                "trial": trial,
                "graph": graph.name,
                "edges": graph.m,
                "engine": "cpu",
                "executor": type(executor).__name__,
                "workers": workers,
                "parts": PARTS,
                "killed_ms": round(killed * 1e3, 2),
                "count_ms": round(took * 1e3, 2),
                "usual_ms": round(usual * 1e3, 2),
                "during": killed < took,
                "triangles": found,
                "right": found == triangles,
            }
            until_whole(dask_cluster, client, victim)


@contextmanager
def cluster(workers):
    """Worker processes with a thread each, and a client."""
    patience = {
        # how long the scheduler tries to reach a worker that may be gone, before it has a result computed once more
        "distributed.comm.timeouts.connect": "3s",
        # so long after it has lost a worker a cluster looks again, and gives up for good one that is away just then
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}
    with dask.config.set(patience), LocalCluster(**options) as started, Client(started) as client:
        yield started, client


def with_a_death(count, victim, moment):
    """The count, its seconds, and the seconds after which the process was killed."""
    killed = []

    def kill():
        time.sleep(moment)
        os.kill(victim, signal.SIGKILL)
        killed.append(time.perf_counter())

    killer = threading.Thread(target=kill)
    begin = time.perf_counter()
    killer.start()
    found, took = seconds(count)
    killer.join()
    return found, took, killed[0] - begin


def seconds(work):
    begin = time.perf_counter()
    return work(), time.perf_counter() - begin


def processes(started):
    """The process numbers of a cluster's workers."""
    return [nanny.pid for nanny in started.workers.values()]


def until_whole(started, client, victim, patience=60):
    """Wait until another process has replaced the one that was killed.

    A nanny that cannot end its worker within Dask's minute closes; then the cluster gets another one.
    """
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        for name in [name for name, nanny in started.workers.items() if nanny.status.name == "closed"]:
            del started.workers[name]
            started.scale(len(started.worker_spec))  # as many as before, of which one is missing now
        expected, missing = processes(started), len(started.worker_spec) - len(started.workers)
        with suppress(OSError):  # the scheduler may not have noticed yet that it is gone
            if not missing and victim not in expected and set(client.run(os.getpid).values()) == set(expected):
                return
        time.sleep(0.05)
    raise TimeoutError("no worker came in the place of the one that was killed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scale", type=int, default=17, help="of the R-MAT graph")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    rows = records.Rows()
    for row in trials(arguments.trials, arguments.workers, arguments.scale, arguments.seed):
        rows.append(row | measurement.machine("cpu"))
        when = "during" if row["during"] else "after"
        print(f"trial {row['trial']}: killed {row['killed_ms']} ms in, {when} a count of {row['count_ms']} ms: "
              f"{'right' if row['right'] else 'WRONG'}", flush=True)  # fmt: skip
    right, during = (sum(row[key] for row in rows) for key in ("right", "during"))
    print(f"{right} of {len(rows)} counts right; {during} workers were killed before their count was done")
    if arguments.into:
        rows.write_csv(Path(arguments.into, records.record_path("faults", rows).name))
    raise SystemExit(right < len(rows))


if __name__ == "__main__":
    main()
