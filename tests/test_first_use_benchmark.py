"""The benchmark of first calls: its processes are new, and the bars that the record holds."""

import os

import numpy as np
import pytest

from tcgpu.records import Rows

pytestmark = pytest.mark.full

CLIQUE = np.array([(u, v) for v in range(9) for u in range(v)]).T


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("first_use")


@pytest.fixture(scope="module")
def record(root):
    return Rows.read_csv(root / "data/measured/first-use-amd-epyc.csv")


def test_a_function_of_networkx_is_compared_with_its_own_code(benchmark):
    row = benchmark.of_networkx("triangles", repeats=1)
    assert (
        row["task"] == "nx.triangles"
        and row["ratio"] == row["seconds"] / row["networkx_s"]
        and row["compiler"] == "not imported"
    )


def test_a_verb_that_compiles_says_so(benchmark):
    names = "count", "cliques", "motifs", "reduce_triangles"
    small, *few, compiled = (benchmark.of_verb(name, "clique", CLIQUE) for name in names)
    assert small["compiler"] == "not imported" and small["says"] == ""
    assert [row["says"] for row in few] == ["", ""]
    assert compiled["compiler"] == "imported" and compiled["says"].startswith("compiling reduce_triangles, about ")


def test_the_users_own_caches_are_left_alone(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.fspath(tmp_path))
    benchmark.of_verb("reduce_triangles", "clique", CLIQUE)
    assert not list(tmp_path.iterdir())


def test_small_graphs_of_networkx_take_at_most_five_times_its_own_time(record):
    rows = [row for row in record if row["task"].startswith("nx.")]
    assert len(rows) == 7 and all(row["ratio"] <= 5 and row["compiler"] == "not imported" for row in rows)


def test_a_first_count_of_a_small_graph_takes_less_than_a_second(record):
    rows = {row["task"]: row for row in record if row["graph"] == "small" and row["caches"] == "empty"}
    for task in ("count", "triangles", "support", "clustering", "list_triangles", "truss_numbers", "k_truss", "read"):
        assert rows[task]["seconds"] < 1 and rows[task]["compiler"] == "not imported"


def test_each_first_use_that_compiles_says_so(record):
    rows = [row for row in record if row["says"]]
    assert len(rows) == 12 and all(row["compiler"] == "imported" and row["caches"] == "empty" for row in rows)
    assert all(row["says"].startswith("compiling ") for row in rows)


def test_each_first_use_takes_at_most_five_seconds(record):
    assert max(row["seconds"] for row in record) <= 5


def test_first_uses_on_a_gpu_say_that_they_compile_and_the_next_ones_wait_for_nothing(root):
    rows = Rows.read_csv(root / "data/measured/first-use-nvidia-h200.csv")
    by_caches = {caches: [row for row in rows if row["caches"] == caches] for caches in ("empty", "filled")}
    assert [row["task"] for row in by_caches["empty"]] == [row["task"] for row in by_caches["filled"]] and len(
        rows
    ) == 18
    assert all(row["says"].startswith("compiling ") for row in by_caches["empty"])
    assert all(row["says"] == "" and row["seconds"] < 2 for row in by_caches["filled"])
