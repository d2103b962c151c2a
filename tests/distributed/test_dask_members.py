"""Workers of Dask that count raw edges together: in the simulator, and as processes that die or fail."""

import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_shapes import raw
from sampling import share
from test_division import GRAPHS, several_gpus, triangles
from thread_group import Meeting, ThreadGroup

import tcgpu
from tcgpu import GraphError, WorkerLost, cpu
from tcgpu.distributed import dask_members, division
from tcgpu.distributed.executors import Workers
from tcgpu.engines import runtime

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

EDGES = np.arange(10), np.arange(10)


@pytest.fixture
def all_are_able(monkeypatch):
    def members_of(client):
        processes = client.run(lambda: dask_members.PROCESS, on_error="ignore")
        return [dask_members.Member(address, 0, processes[address]) for address in sorted(processes)]

    monkeypatch.setattr(dask_members, "members_of", members_of)


# ------------------------------------------------------------------------------------------------------- the simulator


@pytest.fixture
def three_threads(all_are_able, monkeypatch):
    """A client of three workers that are threads of this process, and count in the simulator."""
    meetings = {}

    def new_key():
        meetings[key := secrets.token_hex()] = Meeting(3)
        return key

    def count_as_member(task):
        with runtime.using("sim"), ThreadGroup(meetings[task.key], task.rank, 3) as group:
            return division._count(group, task.edges, task.n, task.knobs)

    monkeypatch.setattr(dask_members.GpuGroup, "new_key", new_key)
    monkeypatch.setattr(division, "count_as_member", count_as_member)
    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None, protocol="inproc://"
    )
    with cluster, distributed.Client(cluster) as client:
        client.meetings = meetings
        yield client


@pytest.mark.sim
def test_workers_count_together(three_threads):
    for name, knobs in (("R-MAT", {"near": 40, "hubs": 12}), ("cliques", {})):
        edges = raw(GRAPHS[name])
        found = dask_members.results(edges, Workers(three_threads.get_executor()), **knobs)
        assert triangles(found) == cpu.count(GRAPHS[name])
    assert len(three_threads.meetings) == 1  # the group stays


@pytest.mark.sim
def test_an_error_of_all_members_is_raised(three_threads):
    with pytest.raises(GraphError, match="numbered from 0 to n - 1 = 4"):
        dask_members.results((np.arange(9), np.arange(9), 5), Workers(three_threads.get_executor()))


@pytest.mark.sim
def test_large_raw_edges_are_divided(three_threads, monkeypatch):
    monkeypatch.setattr(division, "DIVIDED_EDGES", 1)
    counted, results = [], dask_members.results

    def noted(*args, **knobs):
        found = results(*args, **knobs)
        counted.append(triangles(found))
        return found

    monkeypatch.setattr(dask_members, "results", noted)
    edges, executor = raw(GRAPHS["R-MAT"]), three_threads.get_executor(pure=False)
    assert tcgpu.count(edges, executor=executor) == cpu.count(GRAPHS["R-MAT"]) == counted[0]
    for options in ({"method": "cpu"}, {"engine": "cpu"}, {"parts": 3, "engine": "cpu"}):
        assert tcgpu.count(edges, executor=executor, **options) == counted[0] and len(counted) == 1
    monkeypatch.setattr(dask_members, "members_of", lambda client: [dask_members.Member("only one", 0, "")])
    monkeypatch.setattr(dask_members, "RESTART_SECONDS", 0)
    assert tcgpu.count(edges, executor=executor, engine="cpu") == counted[0] and len(counted) == 1
    with pytest.raises(GraphError, match="1 of Dask's workers have a GPU and NCCL"):
        results(edges, Workers(executor))


# -------------------------------------------------------------------------------------------------- deaths and failures


@pytest.fixture(scope="module")
def cluster_of_two(faults):
    """A cluster and its client, for all tests: its nannies replace the workers that die."""
    with faults.cluster(2) as both:
        yield both


@pytest.fixture
def two_processes(faults, cluster_of_two, all_are_able, monkeypatch, tmp_path):
    """A function that returns what two workers return; `fails` tells what the second one does, `times` how often."""

    def member(task, gpu, u, v):
        failed = len(list(Path(tmp_path).glob("failed*")))
        meeting = Path(tmp_path, task.knobs["count"] + "-".join(member.process for member in task.members))
        meeting.mkdir(exist_ok=True)
        Path(meeting, str(task.rank)).touch()
        while len(os.listdir(meeting)) < 2:
            time.sleep(0.01)
        if failed < task.knobs["times"]:
            if task.rank == 0:
                time.sleep(600)
            Path(tmp_path, f"failed{failed}").touch()
            if task.knobs["fails"] == "raises":
                raise ValueError("member 1 fails")
            os.kill(os.getpid(), signal.SIGKILL)
        return int(u.sum()), os.getpid(), task.key

    monkeypatch.setattr(dask_members, "_count", member)
    monkeypatch.setattr(dask_members, "_new_key", lambda: secrets.token_hex())
    monkeypatch.setattr(dask_members, "_groups", {})  # of other tests
    monkeypatch.setattr(division, "CHECK_SECONDS", 0.1)
    started, client = cluster_of_two
    faults.until_whole(started, client, None)

    def results(fails="never", times=0):
        for file in tmp_path.glob("failed*"):
            file.unlink()
        knobs = {"fails": fails, "times": times, "count": secrets.token_hex()}
        workers = SimpleNamespace(dask=client)
        sums, processes, keys = zip(*dask_members.results(EDGES, workers, **knobs), strict=True)
        assert sorted(sums) == [sum(range(5)), sum(range(5, 10))] and len(set(keys)) == 1
        return set(processes), keys[0]

    results.started, results.client = started, client
    return results


class Cluster:
    """A Client whose workers see these GPUs."""

    def __init__(self, gpus):
        self.gpus = gpus

    def run(self, function, on_error):
        assert on_error == "ignore"
        return self.gpus


def test_members_of_one_machine_use_different_gpus():
    a, b = "tcp://10.0.0.1:", "tcp://10.0.0.2:"
    gpus = {a + "1": (None, 2), a + "2": (None, 2), a + "3": (None, 2), b + "9": (None, 1)}
    same = {address: ("p", *seen) for address, seen in gpus.items()} | {b + "8": None}
    assert dask_members.members_of(Cluster(same)) == [(a + "1", 0, "p"), (a + "2", 1, "p"), (b + "9", 0, "p")]
    own = {a + "1": ("p", "0,1", 2), a + "2": ("q", "1,0", 2)}
    assert dask_members.members_of(Cluster(own)) == [(a + "1", 0, "p"), (a + "2", 0, "q")]


def test_workers_without_a_gpu_are_no_members(faults):
    with faults.cluster(1) as (_, client):
        assert dask_members.members_of(client) == [] or runtime.ENGINE == "gpu"


def test_processes_and_their_group_serve_several_counts(two_processes):
    first, second = two_processes(), two_processes()
    assert first == second and len(first[0]) == 2


def test_all_count_again_if_one_dies(two_processes):
    (old, old_key), (new, key) = two_processes(), two_processes("dies", 1)
    assert not old & new and key != old_key
    assert two_processes() == (new, key)


@pytest.mark.parametrize("rank", share([0, 1], "while sent", of=2))
def test_all_count_again_if_one_dies_while_edges_are_sent(two_processes, monkeypatch, rank):
    """The one that has its part already, or the one that gets it next."""
    old, _ = two_processes()
    client, ranges, range_ = two_processes.client, [], division.range_of

    def range_of(*args):
        ranges.append(args)
        if len(ranges) == 2:
            os.kill(client.run(os.getpid)[sorted(client.nthreads())[rank]], signal.SIGKILL)
            time.sleep(0.5)
        return range_(*args)

    monkeypatch.setattr(division, "range_of", range_of)
    new, _ = two_processes()
    assert not old & new and len(ranges) == 4


def test_a_new_group_is_made_if_a_worker_is_replaced_between_counts(faults, two_processes):
    _, old_key = two_processes()
    victim = faults.processes(two_processes.started)[0]
    os.kill(victim, signal.SIGKILL)
    faults.until_whole(two_processes.started, two_processes.client, victim)
    processes, key = two_processes()
    assert victim not in processes and key != old_key


def test_without_nannies_a_death_is_told(all_are_able, monkeypatch, tmp_path):
    """There is no nanny to restart the other, which waits for the one that died."""

    def member(task, gpu, u, v):
        if task.rank == 0:
            os._exit(1)
        time.sleep(600)

    monkeypatch.setattr(dask_members, "_count", member)
    monkeypatch.setattr(dask_members, "_new_key", lambda: secrets.token_hex())
    command = [sys.executable, "-m", "distributed.cli.dask_worker"]
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=60) as cluster:
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)]
        started = [subprocess.Popen([*command, cluster.scheduler_address, *options]) for _ in range(2)]
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(2, timeout=60)
                with pytest.raises(WorkerLost, match="nannies would restart the others, but these have none"):
                    dask_members.results(EDGES, SimpleNamespace(dask=client))
        finally:
            for process in started:
                process.kill()
                process.wait()


def test_a_worker_may_die_at_any_moment(faults, two_processes):
    two_processes()
    usual = faults.seconds(two_processes)[1]
    for tenths in share((0, 2, 4, 6, 8, 10), "deaths"):
        victim = faults.processes(two_processes.started)[tenths // 2 % 2]
        faults.with_a_death(two_processes, victim, usual * tenths / 10)
        faults.until_whole(two_processes.started, two_processes.client, victim)


@pytest.mark.parametrize("setting, reached, sent", [(None, True, True), (None, False, False), (False, True, False)])
def test_edges_are_sent_past_the_scheduler_where_this_works(two_processes, monkeypatch, setting, reached, sent):
    how, scatter = [], distributed.Client.scatter

    def noted(client, data, **options):
        if len(data) == 2:
            how.append(options["direct"])
        elif not reached:
            raise OSError("the worker cannot be reached")
        return scatter(client, data, **options)

    monkeypatch.setattr(distributed.Client, "scatter", noted)
    monkeypatch.setattr(two_processes.client, "direct_to_workers", setting)
    two_processes()
    assert how == [sent, sent]


def test_the_others_are_restarted_if_one_fails(two_processes):
    old, _ = two_processes()
    with pytest.raises(ValueError, match="member 1 fails"):
        two_processes("raises", 1)
    new, _ = two_processes()
    assert len(new) == 2 and not old & new


def test_workers_that_die_again_and_again_are_lost(two_processes, monkeypatch):
    monkeypatch.setattr(division, "RESTARTS", 1)
    with pytest.raises(WorkerLost, match="died 2 times while they counted a graph together"):
        two_processes("dies", 2)


# -------------------------------------------------------------------------------------------------------------- on GPUs


@pytest.mark.gpu
@several_gpus
def test_gpus_of_dask_count_together_after_a_death_too(faults, monkeypatch):
    monkeypatch.setattr(division, "DIVIDED_EDGES", 1)
    graph = tcgpu.generate.rmat(18, seed=1)
    expected, edges = cpu.count(graph), raw(graph)
    with faults.cluster(2) as (started, client):
        count = lambda: tcgpu.count(edges, executor=client.get_executor())  # noqa: E731
        assert count() == count() == expected
        victim = faults.processes(started)[0]
        found, _, _ = faults.with_a_death(count, victim, 0.05)
        assert found == expected
        faults.until_whole(started, client, victim)
        assert count() == expected
