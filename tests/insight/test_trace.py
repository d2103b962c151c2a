"""`tcgpu.trace`: every method counts right while it is traced, and the measures add up."""

import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from sampling import share

import tcgpu
from tcgpu import GraphError, TcgpuError, cuda
from tcgpu.engines import runtime
from tcgpu.insight import trace_plan
from tcgpu.insight.result import REQUEST_MEASURES
from tcgpu.kernels.report import column_block, naive
from tcgpu.progress import watched
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
ON_GPU = [name for name, method in METHODS.items() if "sim" in method.engines]
ADDED = ("steps", "lane_steps", "barriers", *REQUEST_MEASURES)


@pytest.fixture(scope="module")
def traces():
    return tcgpu.trace(CLUB, ON_GPU)


@pytest.fixture(scope="module")
def trace():
    return tcgpu.trace(CLUB, "naive", threads=32)


def test_progress_goes_on_from_the_first_launch_to_the_last():
    shares = []
    with watched(shares.append):
        launches = tcgpu.trace(CLUB, "adaptive", order="degree").launches
    shares = [share for share in shares if share is not None]
    assert len(launches) > 2 and shares == sorted(shares) and 0.5 < shares[-1] <= 1


@pytest.mark.parametrize("method", ON_GPU)
def test_every_method_counts_correctly_while_it_is_traced(traces, method):
    trace = traces[ON_GPU.index(method)]
    assert (trace.method, trace.triangles) == (method, 45)
    assert {launch.stage for launch in trace.launches} <= {"setup", "count"}
    totals = trace.totals()
    assert totals["load_requests"] > 0 and totals["atomics"] > 0, "it reads the graph and adds to the total"
    assert 1 <= totals["lanes"] <= 32 and 1 <= totals["sectors_per_request"] <= 32
    assert totals["estimated_us"] > 1


@pytest.mark.parametrize("graph", ["nothing", "one edge", "star"])
@pytest.mark.parametrize("method", ON_GPU)
def test_graphs_without_triangles_are_traced(method, graph):
    from kernel_shapes import small_graphs

    trace = tcgpu.trace(small_graphs()[graph], method)
    assert trace.triangles == 0
    assert repr(trace) and trace.totals()["estimated_us"] > 1


@pytest.mark.parametrize("method", ON_GPU)
def test_lines_launches_and_threads_add_up_to_the_totals(traces, method):
    trace = traces[ON_GPU.index(method)]
    for stage in ("setup", "count"):
        totals, lines = trace.totals(stage), trace.lines(stage)
        kernels = [row for row in trace.kernels() if row["stage"] == stage]
        for name in ADDED:
            expected = totals.get(name, 0)
            assert sum(row[name] for row in lines) == expected, name
            assert sum(row[name] for row in kernels) == expected, name
    assert sum(row["share"] for row in trace.lines()) == pytest.approx(1, abs=0.01)
    alone = sum(row["estimated_us"] for row in trace.kernels("count"))
    assert 0 < alone < trace.totals()["estimated_us"], "which includes launching"
    launch = trace.main()
    row = next(row for row in trace.kernels("count") if row["kernel"] == launch.kernel)
    for of in ("loads", "atomics", "steps"):
        expected = row["lane_steps" if of == "steps" else of]
        assert trace.balance("thread", of).sum() == expected
        assert trace.balance("block", of).sum() == row[of]
    assert trace.balance("thread").size == launch.blocks * launch.threads


@pytest.mark.parametrize("method", ON_GPU)
def test_tracing_does_not_change_what_a_plan_computes(method):
    """A traced plan computes the same arrays as one that runs, up to the order in lists."""
    with runtime.using("sim"):
        plan = METHODS[method].plan(METHODS[method].prepare(CLUB))
        plain = plan.allocate()
        plain.launch()
        _, recorded = trace_plan(plan)
    assert plain.result() == recorded.result() == 45
    assert plain.arrays.keys() == recorded.arrays.keys()
    for name in plan.created:
        if name not in ("queue", "in_edges", "heavy_columns"):  # in the order in which threads come
            assert np.array_equal(np.sort(plain.arrays[name]), np.sort(recorded.arrays[name])), name


@pytest.mark.parametrize("method", share(["naive", "column_block", "bitmap", "merge_path", "warp_search"], "times"))
def test_a_trace_takes_as_long_as_the_estimate_of_the_same_launch(method):
    graph = tcgpu.generate.rmat(6, 8, seed=1)
    for gpu in ("NVIDIA H200", "Tesla T4"):
        trace, estimate = tcgpu.trace(graph, method, gpu=gpu), tcgpu.estimate(graph, method, gpu=gpu)
        [kernel] = estimate.kernels
        assert (trace.main().blocks, trace.main().threads) == (kernel.blocks, kernel.threads)
        assert trace.totals()["estimated_us"] == pytest.approx(1e3 * estimate.ms, rel=0.1)


def test_naive_reads_as_many_elements_as_two_pointers_do():
    """The elements that two pointers read, counted in plain Python."""
    trace = tcgpu.trace(CLUB, "naive", threads=64, blocks=1)
    ptr, rows = CLUB.col_ptr.tolist(), CLUB.row_idx.tolist()
    moves = 0
    for j in range(CLUB.n):
        for e in range(ptr[j], ptr[j + 1]):
            p, q = e + 1, ptr[rows[e]]
            while p < ptr[j + 1] and q < ptr[rows[e] + 1]:
                x, y = rows[p], rows[q]
                p, q, moves = p + (x <= y), q + (y <= x), moves + 1
    merge = next(row for row in trace.lines() if row["text"] == "x, y = a[p], b[q]")
    assert merge["loads"] == 2 * moves
    assert trace.totals()["loads"] == 2 * moves + 5 * CLUB.m  # row, column, where two columns begin and end
    assert merge["load_requests"] == 2 * merge["steps"] and merge["lane_steps"] == moves


def test_lines_are_those_of_the_source(trace):
    lines = trace.lines()
    source = open(naive.__file__).read().splitlines()
    assert [row["text"] for row in lines if row["function"] == "naive_kernel"] == [
        source[row["line"] - 1].strip() for row in lines if row["function"] == "naive_kernel"
    ]
    assert list(dict.fromkeys(row["function"] for row in lines)) == ["naive_kernel", "common_values", "add_block_to"]


def test_a_trace_prints_as_a_table(trace):
    assert repr(trace).startswith("naive traced on 78 edges: 45 triangles; its counting kernels would take about ")
    head = repr(trace).splitlines()[1].split()
    assert head[:4] == ["function", "line", "steps", "lanes"] and head[-1] == "text"
    assert "<table>" in trace._repr_html_() and "<p>naive traced on" in trace._repr_html_()
    assert repr(trace.kernels()).splitlines()[-1].split()[:4] == ["count", "naive_kernel", "3", "32"]


@tcgpu.method(threads=32, blocks=1)
def counts_edges(m, total):
    if cuda.grid(1) == 0:
        total[0] = m


def test_a_wrong_count_is_told(tmp_path):
    graph = tcgpu.generate.clique(6)
    trace = tcgpu.trace(graph, counts_edges)
    says = "15 triangles, which is wrong: the graph has 20"
    assert trace.headline.startswith(f"counts_edges traced on 15 edges: {says}; its counting kernels")
    traces = tcgpu.trace(graph, [counts_edges, "naive"])
    assert repr(traces).endswith(f"\ncounts_edges: {says}.") and f"<p>counts_edges: {says}.</p>" in traces._repr_html_()
    trace.save(tmp_path / "trace")
    assert says in tcgpu.load_trace(tmp_path / "trace").headline


def test_several_methods_are_traced():
    traces = tcgpu.trace(CLUB, ["naive", "column_block"], columns=1, threads=32)
    assert [trace.knobs for trace in traces] == [
        METHODS["naive"].knobs | {"threads": 32},
        METHODS["column_block"].knobs | {"threads": 32, "columns": 1},
    ]
    assert [row["method"] for row in traces.totals()] == ["naive", "column_block"]
    assert len(repr(traces).splitlines()) == 3 and "<table>" in traces._repr_html_()


def test_knobs_and_orders_are_as_in_count():
    with runtime.using("sim"):
        step = column_block.plan(CLUB, columns=3, threads=64).steps[0]
    trace = tcgpu.trace(CLUB, "column_block", order="degree", columns=3, threads=64)
    assert (trace.main().blocks, trace.main().threads) == (step.blocks, step.threads)
    assert trace.graph.order == "degree"


def test_neighbouring_lanes_share_a_request():
    wide, narrow = (
        next(row for row in tcgpu.trace(CLUB, "bitmap", lanes=lanes).lines() if "+= bits[mine" in row["text"])
        for lanes in (8, 1)
    )
    lengths = CLUB.column_lengths
    looked_up = lengths[CLUB.row_idx[lengths[CLUB.col_of] > 1]]  # a column of one row is stepped over
    assert wide["loads"] == narrow["loads"] == looked_up.sum()
    assert wide["load_requests"] < narrow["load_requests"]


def test_a_trace_can_be_pickled(trace):
    again = pickle.loads(pickle.dumps(trace))
    assert again.lines() == trace.lines() and again.totals() == trace.totals()


@pytest.mark.parametrize(
    "method, knobs, said",
    [
        ("fastest", {}, "no method 'fastest'"),
        ("cpu", {}, "method 'cpu' runs on cpu, not on 'sim'"),
        ("naive", {"columns": 3}, "method 'naive' has no knob 'columns'"),
        ("naive", {"order": "sideways"}, "no order 'sideways'"),
        ("naive", {"gpu": "H2O"}, "no GPU 'H2O'"),
        (["naive", "bitmap"], {"columns": 3}, "no knob 'columns' in naive or bitmap"),
        (["naive", "fastest"], {}, "no method 'fastest'"),
        ([], {}, "no method to trace is named"),
    ],
)
def test_unknown_methods_knobs_and_orders_are_refused(method, knobs, said):
    with pytest.raises(TcgpuError, match=said):
        tcgpu.trace(CLUB, method, **knobs)


def test_a_large_graph_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(runtime, "to_device", lambda array: pytest.fail("copied something"))
    with pytest.raises(GraphError, match=r"tracing naive would take about \d+ \w+ in the simulator: take a smaller"):
        tcgpu.trace(tcgpu.generate.clique(1500), "naive")


@pytest.mark.parametrize(
    "ask, said",
    [
        (lambda trace: trace.totals("later"), "stage is 'setup', 'count' or None"),
        (lambda trace: trace.lines(kernel="bitmap_kernel"), "no kernel 'bitmap_kernel' in this trace; there are find"),
        (lambda trace: trace.balance("warp", "luck"), "balance is per thread, warp or block"),
        (lambda trace: trace.balance("grid"), "balance is per thread, warp or block"),
    ],
)
def test_unknown_stages_kernels_and_units_are_refused(trace, ask, said):
    with pytest.raises(GraphError, match=said):
        ask(trace)


def test_a_trace_reports_progress_and_can_be_cancelled():
    pulses = []

    def stop(share):
        pulses.append(share)
        if len(pulses) > 100:
            raise KeyboardInterrupt

    with watched(stop), pytest.raises(KeyboardInterrupt):
        tcgpu.trace(CLUB, "bitmap")
    assert len(pulses) == 101
    assert tcgpu.trace(CLUB, "bitmap").triangles == 45


def test_a_trace_needs_no_matplotlib():
    program = (
        "import sys, tcgpu\n"
        "trace = tcgpu.trace(tcgpu.generate.clique(5), 'naive')\n"
        "print(trace.triangles, repr(trace) != '', 'matplotlib' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "10 True False\n", ran.stderr


def test_a_graph_in_a_file_is_traced(tmp_path):
    tcgpu.write(tcgpu.generate.clique(5), tmp_path / "clique.txt")
    assert tcgpu.trace(tmp_path / "clique.txt", "naive").triangles == 10
