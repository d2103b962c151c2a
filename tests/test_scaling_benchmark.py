"""The benchmark of scaling, on processes of the CPU and in the simulator; and what is read from its record."""

import json
import os

import numpy as np
import pytest

import tcgpu
from helpers import measured
from tcgpu.datasets import data_path
from tcgpu.distributed import executors, shared_arrays
from tcgpu.engines import runtime
from tcgpu.records import Rows

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        module = load_benchmark("scaling")
        patch.setattr(shared_arrays, "MEMORY", str(tmp_path_factory.mktemp("memory")))  # not that of other processes
        patch.setattr(module, "ENGINE", "sim")
        patch.setattr(module, "WORKERS", (3,))
        yield module


@pytest.fixture(scope="module")
def rows(benchmark):
    """Of a small graph, on one process and on two."""
    edges = tcgpu.generate.edges("rmat", 4, 6)
    with runtime.using("sim"), executors.processes(1) as one, executors.processes(2) as two:
        return list(benchmark.measured("small", edges, {1: one, 2: two}, 1, benchmark.Deadline(600)))


def test_a_graph_is_timed_on_every_pool_and_in_every_cut(benchmark, rows):
    graph = tcgpu.Graph.from_edges(*tcgpu.generate.edges("rmat", 4, 6))
    assert {row["triangles"] for row in rows} == {tcgpu.count(graph, "cpu")}
    assert {(row["vertices"], row["edges"], row["engine"]) for row in rows} == {(graph.n, graph.m, "sim")}
    counts = [row for row in rows if "gpus" in row]
    settings = [(row["method"], row["gpus"], row["parts"]) for row in counts]
    assert settings == [("adaptive", 1, 1), ("adaptive", 2, 2), ("warp_search", 1, 8), ("warp_search", 2, 16)]
    assert all(row["wall_ms"] > 0 and row["dispatch_ms"] > 0 for row in counts)
    assert all(row["worker_ms"] > 0 and row["kernel_ms"] > 0 for row in counts[:2])
    cuts = [(row["method"], row["parts"]) for row in rows if "parts_ms" in row]
    assert cuts == [("adaptive", 1), ("adaptive", 3), ("warp_search", 8), ("warp_search", 24)]
    for row in rows:
        if row["method"] == "adaptive" and "parts_ms" in row:
            assert len(json.loads(row["parts_ms"])) == row["parts"]


def test_it_leaves_no_folder(rows):
    assert not [name for name in os.listdir(shared_arrays.MEMORY) if name.startswith("scaling-")]


def test_different_counts_end_the_benchmark(benchmark, rows):
    benchmark.check(rows)
    with pytest.raises(SystemExit, match="the counts of small differ: .*24 parts"):
        benchmark.check([*rows, rows[-1] | {"triangles": 1}])


def test_nothing_starts_after_the_time_limit(benchmark):
    with runtime.using("sim"), executors.processes(1) as one:
        edges = tcgpu.generate.edges("rmat", 4, 4)
        assert list(benchmark.measured("small", edges, {1: one}, 1, benchmark.Deadline(-1))) == []


def test_speedups_and_simulations_of_a_record():
    about = {"graph": "A", "method": "adaptive"}
    rows = Rows([about | {"gpus": gpus, "wall_ms": ms, "kernel_ms": ms - 1} for gpus, ms in ((4, 3), (1, 9), (2, 5))])
    rows += [about | {"parts": 1, "parts_ms": "[8.0]"}, about | {"parts": 4, "parts_ms": "[2.0, 1.0, 2.5, 2.0]"}]
    rows += [{"graph": "A", "method": "warp_search", "parts": 4, "parts_ms": "[1.0, 1.0, 4.0, 2.0]"}]
    assert measured.speedups(rows) == {"A": [(1, 1), (2, 1.8), (4, 3)]}
    assert measured.speedups(rows, key="kernel_ms") == {"A": [(1, 1), (2, 2), (4, 4)]}
    assert measured.projected_speedups(rows, "A") == [(1, 1), (4, 3.2)]
    assert measured.part_times(rows, "A", "warp_search")[4].tolist() == [1, 1, 4, 2]


@pytest.mark.parametrize("workers, over", [(1, 1), (2, 1.25), (4, 2), (8, 4)])
def test_parts_in_the_order_of_a_queue(workers, over):
    """1 and 1 first, then 4 beside 2 as soon as a worker is free."""
    assert measured.above_ideal(np.array([1.0, 1, 4, 2]), workers) == pytest.approx(over)


def test_no_part_at_all_takes_no_time():
    assert measured.above_ideal(np.zeros(0), 3) == 1


def test_the_record_is_of_graphs_that_were_counted_before():
    """By one GPU and other methods: the counts are the same."""
    suites = (Rows.read_csv(data_path("measured") / f"{suite}-nvidia-h200.csv") for suite in ("scaling", "gpu"))
    rows, before = ({(row["graph"], row["triangles"]) for row in suite} for suite in suites)
    assert len(rows) == 2 and rows <= before
