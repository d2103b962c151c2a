"""The benchmark of `adaptive`: what it measures and checks, on small graphs in the simulator."""

import subprocess
import sys

import numpy as np
import pytest

import tcgpu
from helpers import measured
from tcgpu import records
from tcgpu.engines import runtime
from tcgpu.kernels import Step, device_graph
from tcgpu.kernels.device_graph import DeviceGraph

pytestmark = pytest.mark.full


# as ncu writes it: lines of its own, a head, units, a line a kernel
LOG = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name","gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active"
"","","","ns","%"
"0","7","tcgpu::kernels::adaptive::hub_kernel","1,234","62.25"
"1","7","tcgpu::kernels::adaptive::far_kernel","99","n/a"
"""


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("gpu")


@pytest.fixture(autouse=True)
def simulator():
    with runtime.using("sim"):
        yield


@pytest.fixture(scope="module")
def skewed():
    return tcgpu.generate.edges("rmat", 5, 8, permuted=False)


@pytest.fixture(scope="module")
def row(benchmark, skewed):
    with runtime.using("sim"):
        return benchmark.measured("skewed", *skewed, 1, 1e9)


def test_a_graph_is_timed_from_each_kind_of_input(benchmark, row, skewed):
    found, graph = row
    plain = tcgpu.Graph.from_edges(*skewed)
    assert (found["vertices"], found["edges"], found["triangles"]) == (plain.n, plain.m, tcgpu.count(plain))
    assert found["records"] == skewed[0].size > plain.m
    assert (found["order"], found["checked_by"], graph.order) == ("degree", "bitmap_auto", "degree")
    assert all(found[key] > 0 and found[f"{key}_spread"] >= 0 for key in benchmark.TIMES)
    assert found["columns_ms"] == pytest.approx(graph.nbytes / 1e9 * 1e3, abs=1e-4)


def test_the_bandwidth_of_copies_is_plausible(benchmark):
    assert 1e8 < benchmark.copy_bandwidth() < 1e14


@pytest.mark.gpu
def test_the_bandwidth_of_copies_on_a_gpu_is_plausible(benchmark):
    with runtime.using("gpu"):
        assert 1e10 < benchmark.copy_bandwidth() < 1e14


def test_look_ups_are_those_of_the_order(benchmark):
    club = tcgpu.load("barabasi_albert_300")
    by_degree = club.ordered("degree")
    lengths = [by_degree.column(j).size for j in range(club.n)]
    assert benchmark.lookups(by_degree) == sum(d * (d - 1) // 2 for d in lengths)
    natural = club.ordered("natural")
    shorter = [min(natural.column(i).size, natural.column(j).size) for i, j in zip(*natural.edges(), strict=True)]
    assert benchmark.lookups(natural) == sum(shorter)


def test_every_kernel_is_timed_alone(benchmark, row):
    found, graph = row
    rows = list(benchmark.kernel_rows(found, graph, 1))
    plan = benchmark.ADAPTIVE.plan(graph)
    assert [r["kernel"] for r in rows if r["stage"] == "count"] == [step.kernel.__name__ for step in plan.steps]
    assert len(rows) == len(plan.setup) + len(plan.steps) and all(r["kernel_ms"] > 0 for r in rows)
    with pytest.raises(SystemExit, match="step by step, skewed has"):
        list(benchmark.kernel_rows(found | {"triangles": 1}, graph, 1))


def test_every_launch_from_raw_edges_has_its_place_on_the_time_line(benchmark, row, skewed):
    found, graph = row
    rows = list(benchmark.timeline_rows(found, skewed, 3))
    names = [r["kernel"] for r in rows]
    assert names[-len(benchmark.ADAPTIVE.plan(graph).steps) :] == [
        step.kernel.__name__ for step in benchmark.ADAPTIVE.plan(graph).steps
    ]
    assert "lay_out" in names and [r["place"] for r in rows] == list(range(len(rows)))
    times = [time for r in rows for time in (r["begin_ms"], r["end_ms"])]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= rows[0]["whole_ms"]
    with pytest.raises(SystemExit, match="from raw edges, skewed has"):
        list(benchmark.timeline_rows(found | {"triangles": 1}, skewed, 1))
    u, v, n = skewed
    with benchmark.launches_timed() as launches:  # in the simulator, counts take columns of the host
        DeviceGraph.from_edges(u, v, n, order="degree")
    assert {"pack_edges", "sort", "unpack"} <= {name for name, *_ in launches}


def test_the_steps_of_a_count_name_the_kernels_of_all_ways(benchmark, skewed, monkeypatch):
    """Each way from raw edges to the count is of kernels whose step `measured` has."""
    monkeypatch.setattr(device_graph, "SMALL", 0)
    clique, mesh = np.triu_indices(40, 1), tcgpu.generate.edges("mesh", 6, 6)
    seen = set()
    for (u, v), order in ((clique, "natural"), (mesh[:2], "natural"), (skewed[:2], "degree"), (skewed[:2], "auto")):
        with benchmark.launches_timed() as launches:
            DeviceGraph.from_edges(u, v, order=order)
        names = [name for name, *_ in launches]
        seen |= set(zip(names, measured.launch_steps([*names, "merge_kernel"]), strict=False))
    assert {("sort_columns", "columns"), ("unpack", "columns")} <= seen
    assert {("sort", "ranks"), ("sort", "keys and their sort"), ("find_hubs", "extent and costs")} <= seen
    for knobs in ({}, {"merge": 0}, {"words": 32}, {"crowd": 1}):
        for graph in (tcgpu.Graph.from_edges(*skewed).ordered(order) for order in ("natural", "degree")):
            plan = benchmark.ADAPTIVE.plan(graph, **knobs)
            before = [step.kernel.__name__ for step in plan.setup if isinstance(step, Step)]
            counting = [step.kernel.__name__ for step in plan.steps]
            assert set(measured.launch_steps(before)) <= {"set-up"}
            assert set(measured.launch_steps(counting)) <= {"counting"}


def test_cliques_overlap(benchmark):
    u, v, n = benchmark.cliques(2000, 60, 30)
    graph = tcgpu.Graph.from_edges(u, v, n)
    assert u.dtype == np.int32 and 0 < graph.m < u.size and graph.n == 2000
    assert tcgpu.average_clustering(graph) > 0.1


def test_counters_are_read_as_the_profiler_writes_them(benchmark):
    (hub, of_hub), (far, of_far) = benchmark.read_counters(LOG)
    assert "hub_kernel" in hub and "far_kernel" in far
    assert (of_hub["ncu_ns"], of_hub["occupancy_percent"], of_hub["instructions"]) == (1234, 62.25, "")
    assert (of_far["ncu_ns"], of_far["occupancy_percent"]) == (99, "")
    assert benchmark.read_counters("==ERROR== nothing was profiled\n") == []


def rows_of(*kernels):
    return records.Rows({"graph": "g", "kernel": kernel} for kernel in kernels)


def test_counters_go_to_their_kernels(benchmark, monkeypatch):
    def ncu(command, **_):
        assert command[-2:] == ["--profile", "g"]
        command[command.index("--log-file") + 1].write_text(LOG)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(benchmark.shutil, "which", lambda name: name)
    monkeypatch.setattr(benchmark.subprocess, "run", ncu)
    rows = rows_of("scan", "hub_kernel", "far_kernel")
    assert benchmark.add_counters(["g"], rows) == ""
    assert [row.get("ncu_ns") for row in rows] == [None, 1234, 99]
    with pytest.raises(SystemExit, match="where far_kernel was to come"):
        benchmark.add_counters(["g"], rows_of("far_kernel", "hub_kernel"))
    assert "2 kernels of 1" in benchmark.add_counters(["g"], rows_of("hub_kernel"))


def test_without_a_profiler_there_are_no_counters_but_a_reason(benchmark, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    rows = rows_of("hub_kernel")
    assert benchmark.add_counters(["g"], rows) == "ncu is not installed"
    assert rows[0]["counters"] == "no ncu"


def test_a_record_keeps_the_rows_of_other_graphs(benchmark, tmp_path):
    path = tmp_path / "gpu.csv"
    benchmark.keep(path, [{"graph": "a", "x": 1}, {"graph": "b", "x": 2}])
    benchmark.keep(path, [{"graph": "a", "x": 3, "y": 4}])
    rows = records.Rows.read_csv(path)
    assert [(row["graph"], row["x"], row["y"]) for row in rows] == [("b", 2, ""), ("a", 3, 4)]


def test_its_help_lists_its_options(root):
    command = [sys.executable, root / "benchmarks" / "gpu.py", "--help"]
    assert "--graph" in subprocess.check_output(command, text=True, cwd=root)
