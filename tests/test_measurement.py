"""Measuring: rows with three timings and the machine's name, counts that are checked, CSV there and back."""

import inspect
import json

import numpy as np
import pytest

import tcgpu
from tcgpu import cpu, measurement, records, registry
from tcgpu.engines import runtime
from tcgpu.kernels.adaptive import dense
from tcgpu.progress import watched

EDGES = np.array([0, 0, 1, 2, 3, 3, 1]), np.array([1, 2, 2, 3, 1, 3, 0])
SMALL = {"threads": 8, "blocks": 2}


@pytest.fixture(scope="module")
def graph():
    return tcgpu.Graph.from_edges(*EDGES, name="kite")


@pytest.mark.sim
def test_every_method_measures_the_same_count(graph):
    names = [method.name for method in tcgpu.methods()]
    rows = tcgpu.measure(graph, names, knobs=SMALL, repeats=2)
    assert [row["method"] for row in rows] == names
    for row in rows:
        assert (row["graph"], row["vertices"], row["edges"], row["triangles"]) == ("kite", 4, 5, 2)
        assert 0 < row["kernel_ms"] <= row["process_ms"] <= row["total_ms"]
        assert row["kernel_ms_spread"] >= 0 and row["repeats"] == 2
        assert row["engine"] in registry.METHODS[row["method"]].engines
        assert row["date"] and row["cpu"] and row["numba"]


@pytest.mark.sim
@pytest.mark.parametrize("repeats", [1, 3])
def test_progress_goes_on_from_the_first_run_to_the_last(graph, repeats):
    shares = []
    with watched(shares.append):
        tcgpu.measure(graph, "adaptive", order="degree", engine="sim", repeats=repeats)
    shares = [share for share in shares if share is not None]
    assert shares == sorted(shares) and {k / (1 + repeats) for k in range(1 + repeats)} <= set(shares)


def test_knobs_may_be_swept_and_methods_take_those_they_have(graph):
    rows = tcgpu.measure(graph, ["naive", "cpu"], knobs=[{"threads": 4}, {"threads": 8}], repeats=1)
    assert [(row["method"], json.loads(row["knobs"]).get("threads")) for row in rows] == [
        ("naive", 4),
        ("naive", 8),
        ("cpu", None),
    ]


def test_totals_start_from_raw_edges_where_those_are_given():
    (row,) = tcgpu.measure(EDGES, "cpu", order="degree", repeats=1, name="raw")
    assert (row["graph"], row["edges"], row["triangles"], row["order"]) == ("raw", 5, 2, "degree")


@pytest.mark.sim
def test_kernels_are_those_of_columns_where_raw_edges_need_none(large, monkeypatch):
    """As on a GPU, where few raw edges are counted in rows of bits or a hash table."""

    def run_plan(plan, method):
        ran.append([step.kernel.__name__ for step in plan.steps])
        return own(plan, method)

    wrong, ran, own, graph = 0, [], measurement.run_plan, tcgpu.generate.rmat(7, 4, seed=1)
    monkeypatch.setattr(measurement, "run_plan", run_plan)
    monkeypatch.setattr(dense.Counted, "count", lambda raw: ran.append("raw") or raw.edges.found + wrong)
    monkeypatch.setattr(runtime.current(), "in_main_memory", False, raising=False)
    monkeypatch.setattr(measurement, "engine_of", lambda *_: "gpu")
    (row,) = tcgpu.measure(graph, "adaptive", repeats=3)
    assert ran[0] != ["few_kernel"] and ran == [ran[0], *3 * ["raw", ran[0]]]
    assert row["triangles"] == tcgpu.count(graph, "cpu") and row["total_ms"] > 0
    wrong = 1
    with pytest.raises(RuntimeError, match="does not repeat itself"):
        tcgpu.measure(graph, "adaptive", repeats=1)


def test_methods_that_disagree_are_an_error(graph, monkeypatch):
    wrong = registry.Method("wrong", "", "", "natural", ("cpu",), planned=plan)
    monkeypatch.setitem(registry.METHODS, "wrong", wrong)
    with pytest.raises(RuntimeError, match="methods disagree on kite: cpu 2, wrong 3"):
        tcgpu.measure(graph, ["cpu", "wrong"], repeats=1)


def plan(graph):
    """The plan of the method `wrong`, which counts one too many."""
    made, run = cpu.plan(graph), cpu.plan(graph).allocate()
    run.result = lambda: run.total + 1
    made.allocate, made.count = lambda: run, lambda: cpu.count(graph) + 1
    return made


def test_a_single_run_has_three_timings(graph):
    once = measurement.time_once(graph)
    assert once.triangles == 2 and 0 < once.kernel_ms <= once.process_ms <= once.total_ms


def test_rows_go_to_csv_and_back_and_show_as_a_table(graph, tmp_path):
    rows = tcgpu.measure(graph, repeats=1)
    rows.write_csv(tmp_path / "deep" / "rows.csv")
    back = records.Rows.read_csv(tmp_path / "deep" / "rows.csv")
    assert [{key: str(value) for key, value in row.items()} for row in back] == [
        {key: str(value) for key, value in row.items()} for row in rows
    ]
    assert back[0]["kernel_ms"] == rows[0]["kernel_ms"] and back[0]["edges"] == 5
    table = rows._repr_html_()
    assert "<th>kernel ms</th>" in table and "<td>kite</td>" in table


@pytest.mark.parametrize("method", registry.METHODS.values(), ids=lambda method: method.name)
def test_each_plan_takes_the_knobs_that_its_method_declares(method):
    parameters = list(inspect.signature(method.planned if method.function is None else method.function).parameters)
    assert [name for name in parameters[1:] if name != "share"] == list(method.knobs)  # a share is no knob


@pytest.mark.parametrize("method", registry.METHODS.values(), ids=lambda method: method.name)
def test_each_declared_default_is_a_value_that_the_knob_can_have(method):
    for knob in method.declared:
        assert knob.check(knob.default) == knob.default and knob.help
        with pytest.raises(tcgpu.MethodError, match=knob.name):
            knob.check("nonsense")


@pytest.mark.sim
@pytest.mark.parametrize("method", [m.name for m in registry.METHODS.values() if "sim" in m.engines])
def test_an_engine_may_be_named(graph, method):
    knobs = {name: value for name, value in SMALL.items() if name in registry.METHODS[method].knobs}
    assert tcgpu.count(graph, method=method, engine="sim", **knobs) == 2


@pytest.mark.skipif(runtime.ENGINE == "gpu", reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_the_reason(graph):
    with pytest.raises(tcgpu.EngineError, match="no engine 'gpu' here: .*; engine 'sim' is for small graphs"):
        tcgpu.count(graph, method="naive", engine="gpu")


def test_records_are_named_after_the_suite_and_the_machine():
    rows = [{"engine": "gpu", "gpu_name": "NVIDIA H200", "cpu": "some CPU"}]
    assert records.record_path("report", rows).name == "report-nvidia-h200.csv"
    assert records.record_path("sweep", [rows[0] | {"engine": "cpu"}]).name == "sweep-some-cpu.csv"


def test_a_record_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("old")
    path.chmod(0o600)
    rows = records.Rows([{"a": 1}])
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(tcgpu.GraphError, match="rows.csv: cannot be written: No space left"):
            rows.write_csv(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    rows.write_csv(path)
    assert path.read_text() == "a\n1\n" and path.stat().st_mode & 0o777 == 0o600


def test_a_copy_without_git_takes_its_commit_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement, "__file__", str(tmp_path / "tcgpu" / "measurement.py"))
    monkeypatch.delenv("TCGPU_COMMIT", raising=False)
    assert measurement.revision.__wrapped__() == tcgpu.__version__
    monkeypatch.setenv("TCGPU_COMMIT", "0123456789ab")
    assert measurement.revision.__wrapped__() == f"{tcgpu.__version__} 0123456789ab"
