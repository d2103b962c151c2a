"""The record of traces and of a GPU's counters: what is traced today is what the GPU counted."""

import subprocess
import sys

import numpy as np
import pytest

from helpers import trace_accuracy
from tcgpu import records
from tcgpu.engines import runtime
from tcgpu.insight import trace_plan

pytestmark = pytest.mark.sim
LIKE_NCU = """==PROF== Connected to process 7
"ID","Process ID","Kernel Name",{metrics}
"","",{units}
{rows}
"""
CLOSE = {  # kernels whose every global load is as written -> how far a trace may be off
    "naive_kernel": 0,
    "column_block_kernel": 0,
    "bitmap_kernel": 0,
    "bitmap_thread_kernel": 0,
    "merge_path_kernel": 0,
    "warp_search_kernel": 0.001,
    "bitmap_block_shared_kernel": 0,
    "bitmap_block_global_kernel": 0.001,
    "bitmap_warp_kernel": 0.02,
    "hub_kernel": 0,
    "window_kernel": 0.001,
}


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("trace")


@pytest.fixture(scope="module")
def record():
    return records.reference("trace")


def of(record, *stages):
    return [row for row in record if row["stage"] in stages]


# ---------------------------------------------------------------------------------------------------------- the record


def test_the_rules_of_requests_hold_on_the_gpu(benchmark, record):
    """Every pattern, traced now, against what the GPU counted: sectors, conflicts, atomic operations, exactly."""
    case = benchmark.Case
    rows = of(record, "pattern")
    assert len(rows) > 150 and len({row["method"] for row in rows}) > 10
    off = []
    for row in rows:
        (traced,) = benchmark.traced(case("pattern", row["subject"], row["method"], "{}"))
        for name in benchmark.COUNTERS:
            if traced[f"traced_{name}"] != row[f"counted_{name}"]:
                off.append((row["method"], row["subject"], name))
    assert off in ([], [("add and keep", "out of 1024", "atomic_sectors")]), "29 sectors, of which the GPU counted 30"


@pytest.mark.parametrize("kernel, far", CLOSE.items())
def test_global_loads_are_those_that_the_gpu_counted(record, kernel, far):
    rows = [row for row in of(record, "count") if row["kernel"] == kernel]
    assert len(rows) >= 3
    for name in ("load_requests", "load_sectors"):
        traced, counted = (sum(row[f"{side}_{name}"] for row in rows) for side in ("traced", "counted"))
        assert counted > 0 and abs(traced - counted) <= far * counted


@pytest.mark.parametrize("method", ["naive", "column_block", "bitmap", "warp_search"])
def test_a_new_trace_agrees_with_the_recorded_counters(benchmark, record, method):
    """The same launches as in the record, traced now."""
    chosen = [row for row in of(record, "count", "setup") if (row["method"], row["subject"]) == (method, "rmat 6")]
    cases = dict.fromkeys(benchmark.Case("count", row["subject"], method, row["knobs"]) for row in chosen)
    now = [row for case in cases for row in benchmark.traced(case)]
    assert [row["kernel"] for row in now] == [row["kernel"] for row in chosen]
    for row, then in zip(now, chosen, strict=True):
        for name in ("load_requests", "load_sectors", "atomic_requests", "store_sectors"):
            assert row[f"traced_{name}"] == pytest.approx(then[f"counted_{name}"], rel=0.1), (row["knobs"], name)


def test_a_new_trace_takes_about_as_long_as_the_gpu_did(benchmark, record):
    """The profiler's times include what every launch takes: the least time of any is that of a pattern."""
    launching = min(row["counted_us"] for row in of(record, "pattern"))
    off = []
    for method in ("naive", "column_block", "bitmap", "warp_search", "thread_search", "merge_path"):
        for row in [row for row in of(record, "count") if (row["method"], row["subject"]) == (method, "rmat 6")]:
            with runtime.using("sim"):
                (*_, launch), _ = trace_plan(benchmark.plan_of(benchmark.Case("count", "rmat 6", method, row["knobs"])))
            off.append(abs((1e3 * launch.estimate.ms + launching) / row["counted_us"] - 1))
    assert len(off) > 10 and np.median(off) < 0.2 and max(off) < 0.5


def test_the_record_is_added_up_by_kernel(record):
    table = trace_accuracy.by_kernel()
    assert {row["kernel"] for row in table} >= set(CLOSE)
    for row in table:
        own = [launch for launch in of(record, "count", "setup") if launch["kernel"] == row["kernel"]]
        counted = sum(launch["counted_load_sectors"] for launch in own)
        expected = round(sum(launch["traced_load_sectors"] for launch in own) / counted, 3) if counted else ""
        assert (row["launches"], row["load_sectors"]) == (len(own), expected)
        if row["kernel"] in CLOSE:
            assert row["lanes"] == pytest.approx(1, abs=0.15), "as many lanes idle"
    lines = repr(table).splitlines()
    assert lines[0].split()[:4] == ["kernel", "launches", "load", "requests"] and len(lines) == 1 + len(table)
    assert [row["kernel"] for row in trace_accuracy.by_kernel(None, "bitmap_kernel")] == ["bitmap_kernel"]


def test_the_times_of_the_record_are_drawn():
    rows = [row for row in records.reference("estimates") if row["estimated_for"] == "NVIDIA H100" and row["kernel_ms"]]
    (ax,) = trace_accuracy.draw_times("NVIDIA H100").axes
    for line, fitted in zip(ax.lines[:2], ("False", "True"), strict=True):
        own = [row for row in rows if row["fitted"] == fitted]
        assert line.get_xdata().tolist() == [row["kernel_ms"] for row in own] != []
        assert line.get_ydata().tolist() == [row["estimated_ms"] for row in own]
    half, most = trace_accuracy.times_off("NVIDIA H100")
    assert 1 < half < most


# ------------------------------------------------------------------------------------------------------- the benchmark


@pytest.fixture(scope="module")
def traced(benchmark):
    cases = [case for case in benchmark.cases(["rmat 6"]) if case.method in ("naive", "bitmap")]
    return [launch for case in cases for launch in benchmark.traced(case)]


@pytest.fixture(scope="module")
def counted(benchmark, traced):
    """What ncu would print for a GPU that does exactly as traced."""
    metrics = [metric for names in (benchmark.COUNTERS | benchmark.EXTRA_COUNTERS).values() for metric in names]
    lines = []
    for k, row in enumerate(traced):
        expected = {name: row[f"traced_{name}"] for name in benchmark.COUNTERS}
        expected |= {"instructions": 1, "lane_instructions": 1, "generic_loads": 0, "us": 1}
        numbers = []
        for name, names in (benchmark.COUNTERS | benchmark.EXTRA_COUNTERS).items():
            numbers += [expected[name]] + [0] * (len(names) - 1)
        lines.append(",".join([f'"{k}"', '"7"', f'"tcgpu::{row["kernel"]}"', *(f'"{number:,}"' for number in numbers)]))
    heads = ",".join(f'"{metric}"' for metric in metrics)
    units = ",".join(['""'] * (1 + len(metrics)))
    return benchmark.read_counters(LIKE_NCU.format(metrics=heads, units=units, rows="\n".join(lines)))


@pytest.mark.full
def test_counters_are_read_and_compared(benchmark, traced, counted):
    rows = benchmark.compared(traced, counted)
    assert len(rows) == len(traced)
    assert all(row[f"counted_{name}"] == row[f"traced_{name}"] for row in rows for name in benchmark.COUNTERS)
    with pytest.raises(SystemExit, match="ncu saw .* launches, the trace has"):
        benchmark.compared(traced, counted[1:])
    with pytest.raises(SystemExit, match="where .* was to come"):
        benchmark.compared(traced, counted[::-1])
    assert benchmark.read_counters("==ERROR== nothing") == []


@pytest.mark.full
def test_without_a_gpu_the_benchmark_exits_with_a_message(benchmark, root):
    if runtime.ENGINE == "gpu":
        pytest.skip("there is a GPU: the benchmark would run")
    ran = subprocess.run(
        [sys.executable, "benchmarks/trace.py", "--graph", "rmat 6"], cwd=root, capture_output=True, text=True
    )
    assert ran.returncode == 1 and ran.stderr.startswith("nothing is counted: ")
