"""The benchmark of a new process's first count: its steps are those of the process, and its caches are its own."""

import os

import pytest

import tcgpu

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def rows(load_benchmark):
    return list(load_benchmark("first_answer").measured("cpu", 6, 1))


def test_steps_add_up_to_the_answer(rows):
    for row in rows:
        steps = sum(row[name] for name in ("python_s", "edges_s", "tcgpu_s", "count_s"))
        assert row["answer_s"] == pytest.approx(steps, abs=0.005) and row["answer_s"] < row["exit_s"]


def test_counts_are_right_and_caches_are_named(rows):
    u, v, _ = tcgpu.generate.edges("rmat", 6, 16)
    assert {row["triangles"] for row in rows} == {tcgpu.count((u, v), engine="cpu")}
    assert [row["caches"] for row in rows] == ["empty", "filled"] and rows[0]["engine"] == "cpu"


def test_a_small_graph_waits_for_no_compiler(rows):
    assert rows[0]["count_s"] < 1


def test_the_first_process_compiles_and_the_second_does_not(load_benchmark):
    first, second = load_benchmark("first_answer").measured("cpu", 15, 1)
    assert second["count_s"] < first["count_s"] / 2


def test_the_users_own_caches_are_left_alone(load_benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.fspath(tmp_path))
    list(load_benchmark("first_answer").measured("cpu", 4, 0))
    assert not list(tmp_path.iterdir())
