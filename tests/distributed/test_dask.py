"""Counting by a Dask cluster of real processes on this machine, some of which are killed."""

import random
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import tcgpu
from tcgpu import EngineError, GraphError, MethodError
from tcgpu.distributed import executors, pool, slices
from tcgpu.errors import WorkerLost

pytest.importorskip("distributed", reason="Dask is not installed")

GRAPH = tcgpu.generate.rmat(10, seed=6)
TRIANGLES = tcgpu.count(GRAPH, "cpu")


@pytest.fixture(scope="module")
def cluster(faults):
    with faults.cluster(2) as (started, client):
        yield started, client


@pytest.fixture
def client(cluster):
    return cluster[1]


@pytest.mark.parametrize("options", [{}, {"parts": 1}, {"parts": 100}, {"order": "natural"}])
def test_workers_count(client, options):
    assert pool.count(GRAPH, client.get_executor(), engine="cpu", **options) == TRIANGLES


def test_workers_count_per_edge_and_vertex(client):
    executor = client.get_executor(pure=False)
    assert np.array_equal(pool.tally("triangles", GRAPH, executor, engine="cpu"), tcgpu.triangles(GRAPH, method="cpu"))
    assert np.array_equal(pool.tally("support", GRAPH, executor, engine="cpu"), tcgpu.support(GRAPH, method="cpu"))


def test_a_scheduler_is_found_at_its_address(cluster):
    address = cluster[0].scheduler_address.replace("tcp://", "dask://")
    assert pool.count(GRAPH, address, engine="cpu") == TRIANGLES


def test_an_address_without_a_scheduler(monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.3)
    with pytest.raises(OSError, match="127.0.0.1:1"):
        pool.count(GRAPH, "dask://127.0.0.1:1", engine="cpu")


def test_dask_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(GraphError, match=r"pip install 'tcgpu\[dask\]'"):
        pool.count(GRAPH, "dask://127.0.0.1:1")


def test_a_client_is_refused_with_a_hint(client):
    with pytest.raises(EngineError, match="client.get_executor"):
        pool.count(GRAPH, client)


def test_the_number_and_engine_of_workers(client):
    own = executors.Workers(client.get_executor())
    assert own.number == 2 and own.engine() in ("gpu", "sim")


def test_columns_are_sent_as_a_task(client, monkeypatch):
    """Dask moves them between workers, and restores them if their workers die."""
    monkeypatch.setattr("tcgpu.distributed.shared_arrays._folder_with_space", lambda size: None)
    sent = []
    send = executors.Workers.sendable
    monkeypatch.setattr(executors.Workers, "sendable", lambda self, each: sent.append(send(self, each)) or sent[-1])
    graph = tcgpu.generate.rmat(10, seed=7)
    assert pool.count(graph, client.get_executor(), engine="cpu") == tcgpu.count(graph, "cpu")
    assert [type(columns).__name__ for columns in sent] == ["Future"]


def test_an_error_in_a_worker_is_raised(client):
    with pytest.raises(MethodError, match="counts whole graphs"):
        list(pool.results(GRAPH, client.get_executor(), slices(GRAPH, 3), method="naive"))


@pytest.mark.parametrize("trial", range(4))
def test_the_count_is_right_if_a_worker_is_killed(faults, cluster, trial):
    """`benchmarks/faults.py` does it more often, and records it."""
    started, client = cluster
    chance = random.Random(trial)
    graph = tcgpu.generate.rmat(14, seed=trial)
    executor = client.get_executor()
    count = lambda: pool.count(graph, executor, engine="cpu", parts=64)  # noqa: E731
    victim, moment = chance.choice(faults.processes(started)), 0.3 * chance.random()
    found, took, killed = faults.with_a_death(count, victim, moment)
    assert found == tcgpu.count(graph, "cpu")
    faults.until_whole(started, client, victim)


def test_a_closed_client_raises_worker_lost(faults):
    with faults.cluster(1) as (started, client):
        executor = client.get_executor()
        close = lambda done, total: client.close() if done else None  # noqa: E731
        with pytest.raises(WorkerLost, match="parts are not counted"):
            pool.count(tcgpu.generate.rmat(15), executor, engine="cpu", parts=60, progress=close)
        with pytest.raises(GraphError, match="Dask client is closed"):
            pool.count(GRAPH, executor, engine="cpu")


@pytest.mark.full
def test_the_benchmark_of_faults_detects_a_wrong_count(faults, monkeypatch, cluster):
    monkeypatch.setattr(faults, "cluster", lambda workers: nullcontext(cluster))
    rows = list(faults.trials(1, 2, 12, 3))
    assert [row["right"] for row in rows] == [True]
    assert {"trial", "killed_ms", "count_ms", "during", "workers", "parts"} <= rows[0].keys()
    monkeypatch.setattr(faults, "with_a_death", lambda *args: (rows[0]["triangles"] + 1, 1.0, 0.5))
    monkeypatch.setattr(faults, "until_whole", lambda *args: None)
    assert [row["right"] for row in faults.trials(1, 2, 12, 3)] == [False]
