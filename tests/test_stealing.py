"""Work stealing beside notebook `scaling`: an executor of tcgpu.count, and its simulation."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgpu
from helpers import stealing


@pytest.mark.parametrize("workers", [1, 3])
def test_every_part_is_counted_once_by_workers_that_steal(workers):
    graph = tcgpu.generate.rmat(9, seed=1)
    with stealing.Pool(workers) as pool:
        assert tcgpu.count(graph, engine="cpu", executor=pool, parts=40) == tcgpu.count(graph, engine="cpu")
        assert tcgpu.triangles(graph, engine="cpu", executor=pool).sum() == 3 * tcgpu.count(graph)
    assert pool.submitted >= 40 and not any(thread.is_alive() for thread in pool.threads)


def test_a_worker_that_is_kept_busy_is_robbed():
    """Of two workers one waits until the other has done all the rest, half of which is not its own."""
    done = threading.Event()
    with stealing.Pool(2) as pool:
        first = pool.submit(done.wait, 60)
        others = [pool.submit(threading.get_ident) for _ in range(20)]
        ran = {each.result(60) for each in others}
        done.set()
        assert first.result(60) and len(ran) == 1
    assert pool.stolen >= 9


def test_errors_and_cancelled_tasks_end_no_worker():
    with stealing.Pool(1) as pool:
        started, go_on = threading.Event(), threading.Event()
        running = pool.submit(lambda: (started.set(), go_on.wait(60)))
        started.wait(60)
        cancelled, wrong, right = pool.submit(int), pool.submit(int, "x"), pool.submit(int, "7")
        assert cancelled.cancel()
        go_on.set()
        assert running.result(60) and right.result(60) == 7
        with pytest.raises(ValueError, match="invalid literal"):
            wrong.result(60)


def test_without_threads_tasks_run_at_once(monkeypatch):
    monkeypatch.setattr(stealing.sys, "platform", "emscripten")
    with stealing.Pool(4) as pool:
        assert [pool.submit(int, k).done() for k in range(5)] == [True] * 5
        assert tcgpu.count(tcgpu.generate.clique(9), engine="cpu", executor=pool, parts=4) == 84
    assert not pool.threads


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 6))
def test_no_worker_waits_while_a_part_is_left(times, workers):
    end, stolen = stealing.steals(np.array(times), workers)
    longest = max(times, default=0)
    assert max(longest, sum(times) / workers) <= end <= sum(times) / workers + longest
    assert stolen <= len(times) and (workers > 1 or not stolen)


def test_stealing_by_hand():
    assert stealing.steals(np.array([1, 1, 5, 5]), 2) == (7, 1), "the first is done at 2, and takes the last 5"
    assert stealing.steals(np.array([3, 3, 3, 3]), 2) == (6, 0)
    (row,) = stealing.compare({1: np.ones(1), 4: np.array([1.0, 1, 5, 5])}, 2)
    assert list(row.values()) == [4, 2, 1.0, 1.17, 4, 1]
