"""benchmarks/reproduce.py: what it does with the time, what it keeps, which records it refuses, and its page."""

import re
import subprocess
import sys
import time

import pytest

from tcgpu import datasets, records
from tcgpu.engines import runtime
from tcgpu.errors import GraphError, KernelError
from tcgpu.progress import pulse
from tcgpu.records import Rows

pytestmark = [pytest.mark.full, pytest.mark.sim]


@pytest.fixture(scope="module")
def reproduce(load_benchmark):
    return load_benchmark("reproduce")


@pytest.fixture
def items(reproduce, monkeypatch, tmp_path):
    """A function that takes what measures an item, and measures two; returns the rows, and the shares asked for."""

    def run(measure, minutes=1.0, most=1.0):
        shares = []

        def measured(item, *, engine, repeats, share):
            shares.append((item, share))
            return Rows({"graph": "g", "edges": round(1000 * share)} | row for row in measure(item, share))

        monkeypatch.setattr(reproduce, "SUITES", {"fake": (lambda share: ["a", "b"], measured)})
        monkeypatch.setattr(reproduce, "WEIGHTS", {"fake": 1})
        monkeypatch.setattr(reproduce, "fetch_graphs", lambda end: None)
        path = tmp_path / "record.csv"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reproduce, "PATIENCE", 0.5)
            reproduce.reproduce(path, engine="sim", minutes=minutes, most=most, show=False)
        return [row for row in Rows.read_csv(path) if row["suite"] == "fake"], shares

    return run


def test_graphs_grow_to_full_size_while_there_is_time(items):
    rows, shares = items(lambda item, share: [{"ms": 1}])
    assert [(row["item"], row["scaled"], row["edges"]) for row in rows] == [(0, 1, 1000), (1, 1, 1000)]
    assert [share for item, share in shares if item == "a"] == [1 / 256, 1 / 256, 1 / 16, 1]


def test_what_takes_long_stays_small_and_the_time_is_kept(items):
    def slow(item, share):
        time.sleep(30 * share)
        return [{"ms": 1}]

    begin = time.monotonic()
    rows, _ = items(slow, minutes=0.05)
    assert time.monotonic() - begin < 2 * 3 and [row["scaled"] < 0.25 for row in rows] == [True, True]


def test_a_run_that_reports_can_be_ended_and_is_tried_again_the_next_time(items, reproduce):
    def endless(item, share):
        while item == "b":
            pulse()
        return [{"ms": 1}]

    rows, _ = items(endless, minutes=0.02)
    assert rows[1]["refused"] == reproduce.LATE and rows[0]["scaled"] == 1
    rows, shares = items(lambda item, share: [{"ms": 1}])
    assert {item for item, _ in shares} == {"b"} and [row["ms"] for row in rows] == [1, 1]


def test_all_are_measured_once_before_any_grows(items):
    _, shares = items(lambda item, share: [{"ms": 1}])
    assert shares[:2] == [("a", 1 / 256), ("b", 1 / 256)]


@pytest.mark.parametrize("last, kept", [(0, {0: 1}), (1 / 256, {0: "", 1: 1})])
def test_an_interrupt_keeps_what_was_measured(items, tmp_path, last, kept):
    """In the first round, or while graphs grow: `first` says which rows are of the first round."""

    def interrupted(item, share):
        if item == "b" and share > last:
            raise KeyboardInterrupt
        return [{"ms": 1}]

    with pytest.raises(KeyboardInterrupt):
        items(interrupted)
    found = [row for row in Rows.read_csv(tmp_path / "record.csv") if row["suite"] == "fake"]
    assert {row["item"]: row.get("first") for row in found} == kept
    rows, shares = items(lambda item, share: [{"ms": 1}])
    assert [row["scaled"] for row in rows] == [1, 1] and not any(row.get("first") for row in rows)
    assert {item for item, _ in shares} == ({"a", "b"} if last == 0 else {"b"})


def test_what_stayed_small_grows_in_the_next_run(items):
    def slow(item, share):
        time.sleep(30 * share)
        return [{"ms": 1}]

    rows, _ = items(slow, minutes=0.02)
    assert all(row["scaled"] < 1 for row in rows)
    rows, shares = items(lambda item, share: [{"ms": 2}])
    assert [(row["scaled"], row["ms"]) for row in rows] == [(1, 2), (1, 2)]


def test_time_that_others_leave_is_for_those_that_stayed_small(items):
    """The first of two has half of the time in a round; what it needs is more than that."""

    def slow(item, share):
        time.sleep(share * 1.2 if item == "a" else 0)
        return [{"ms": 1}]

    rows, shares = items(slow, minutes=0.06)
    assert [row["scaled"] for row in rows] == [1, 1] and shares.index(("b", 1)) < shares.index(("a", 1))
    assert rows[0]["seconds"] >= 1.2 > rows[1]["seconds"]


def test_a_graph_that_has_a_name_has_one_size(reproduce):
    of = {suite: reproduce.SUITES[suite][0](1) for suite in ("levels", "report")}
    full = [what[1] for what in of["levels"] if reproduce.smallest("levels", what, 1) == 1]
    assert full == list(reproduce.papers.LEVELS_SNAP)
    assert {reproduce.smallest("report", name, 1) for name in of["report"]} == {1 / 256}


def test_another_revision_begins_anew(items, reproduce, monkeypatch):
    items(lambda item, share: [{"ms": 1}])
    facts = reproduce.facts
    monkeypatch.setattr(reproduce, "facts", lambda engine: facts(engine) | {"tcgpu": "another"})
    _, shares = items(lambda item, share: [{"ms": 1}])
    assert {item for item, _ in shares} == {"a", "b"}


def test_what_cannot_be_measured_has_a_reason(items):
    def none(item, share):
        if item == "a":
            raise KernelError("no such kernel")
        if share < 1:
            raise GraphError("too small")
        return [{"ms": 1}]

    rows, _ = items(none)
    assert rows[0]["refused"] == "no such kernel" and (rows[1]["refused"], rows[1]["scaled"]) == ("", 1)


def test_a_wrong_count_is_recorded_as_such(items):
    def wrong(item, share):
        raise RuntimeError("methods disagree")

    rows, _ = items(wrong)
    assert [row["wrong"] for row in rows] == 2 * ["RuntimeError: methods disagree"]


# ------------------------------------------------------------------------------------------------------------ a record


def small_record(reproduce, engine, path):
    """The record of a reduced run: a graph of the report, two of the sweep and two lengths of columns."""
    papers = reproduce.papers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(papers, "REPORT", {"auto": papers.REPORT["auto"]})
        patch.setattr(papers, "SWEEP", (2, 8))
        patch.setattr(papers, "LENGTHS", (4,))
        patch.setattr(reproduce, "WEIGHTS", dict.fromkeys(("report", "sweep", "lengths"), 1))
        return reproduce.reproduce(path, engine=engine, minutes=0.2, most=2**-14, repeats=1, show=False)


def test_a_software_device_makes_a_record_that_says_so(reproduce, tmp_path):
    """By WebGPU: SwiftShader or llvmpipe on a machine without a GPU."""
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    rows = small_record(reproduce, "webgpu", tmp_path / "x.csv")
    assert {row["suite"] for row in rows} == {"ceiling", "report", "sweep", "lengths"}
    assert rows[0]["launch_us"] > 0 < rows[0]["copy_bytes_per_second"]
    measured = [row for row in rows if "refused" not in row]  # on a busy machine some are too late
    assert {row["engine"] for row in measured} == {"webgpu"} and "report" in {row["suite"] for row in measured}
    if rows[0]["gpu_kind"] == "software":
        assert any(said.startswith("software made it") for said in reproduce.faults(rows))


@pytest.fixture(scope="module")
def of_simulator(reproduce, tmp_path_factory):
    return small_record(reproduce, "sim", tmp_path_factory.mktemp("record") / "x.csv")


@pytest.fixture
def sound(reproduce, of_simulator, monkeypatch):
    """A record of the simulator, as if a GPU had made it, and all that is asked for were in it."""
    monkeypatch.setattr(reproduce, "WEIGHTS", dict.fromkeys(("report", "sweep", "lengths"), 1))
    counts = {"report": 1, "sweep": 2, "lengths": 1}
    suites = {suite: (lambda share, n=n: list(range(n)), None) for suite, n in counts.items()}
    monkeypatch.setattr(reproduce, "SUITES", suites)
    gpu = {"engine": "gpu", "gpu_name": "GPU X", "gpu_driver": "1", "tcgpu": "0.3 abc"}
    return Rows({key: row[key] for key in row if key != "gpu_kind"} | gpu for row in of_simulator)  # CUDA knows none


def test_a_sound_record_has_no_faults(reproduce, sound, tmp_path, capsys):
    assert list(reproduce.faults(sound)) == []
    page = reproduce.verdict_page.page(sound)
    assert "GPU X" in page and "A device in software" not in page
    sound.write_csv(tmp_path / "sound.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert reproduce.main(["--check", str(tmp_path / "sound.csv")]) == 0
    assert reproduce.main(["--check", str(tmp_path / "other.csv"), str(tmp_path / "none.csv")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("sound.csv: no faults") and "its first row is not" in out[1] and "it is no record" in out[2]


@pytest.mark.parametrize(
    "of, change, said",
    [
        (0, {"gpu_kind": "software"}, "software made it: GPU X"),
        (0, {"tcgpu": "0.3 abc+"}, "changed files made it"),
        (0, {"cpu": ""}, "its first row is not of suite 'ceiling'"),
        (2, {"gpu_name": "GPU Y"}, "several GPUs"),
        (2, {"triangles": 1}, "counts of .* differ"),
        (2, {"kernel_ms": 1e-9}, "less than a launch takes"),
        (0, {"copy_bytes_per_second": 1}, "faster than the columns can be read"),
        (2, {"kernel_ms": 1e9}, "parts take longer than the whole"),
        (2, {"kernel_ms": -1}, "it has no times"),
        (2, {"wrong": "counts differ"}, "line 4: counts differ"),
        (-1, {"refused": "the time was over before its smallest graph was measured"}, "rows are missing: lengths 0"),
    ],
)
def test_what_cannot_be_is_refused(reproduce, sound, of, change, said):
    if "refused" in change:
        sound = Rows(row for row in sound if row["suite"] != "lengths") + [sound[of]]
    sound[of] |= change
    assert any(re.search(said, fault) for fault in reproduce.faults(sound)), list(reproduce.faults(sound))


def test_a_count_that_is_not_ours_is_refused(reproduce, sound, monkeypatch):
    known = {"graph": "auto class", "edges": 1}
    monkeypatch.setattr(records, "counts", lambda: {"GPU": {"auto class": Rows([known | {"triangles": 5}])}})
    next(row for row in sound if row["suite"] == "sweep").update(known | {"triangles": 6})
    assert any("auto class has 5 triangles, not 6" in said for said in reproduce.faults(sound))


def test_a_contributed_record_is_found_beside_ours_and_never_in_place_of_it(tmp_path, monkeypatch, sound):
    (tmp_path / "measured").mkdir()
    own = Rows([{"engine": "gpu", "gpu_name": "GPU Y", "date": "2020-01-01", "edges": 1}])
    own.write_csv(tmp_path / "measured" / "lengths-y.csv")
    sound.write_csv(tmp_path / "reproduced" / "gpu-x.csv")
    Rows(row | {"gpu_name": "GPU Y"} for row in sound).write_csv(tmp_path / "reproduced" / "gpu-y.csv")
    monkeypatch.setattr(records, "data_path", lambda *parts: tmp_path.joinpath(*parts))
    found = records.records("lengths")
    assert found["GPU Y"] == own and {row["suite"] for row in found["GPU X"]} == {"lengths"}
    assert records.reference("lengths") == own and records.reference("report")[0]["suite"] == "report"
    assert "auto class" in records.counts()["GPU X"]


# -------------------------------------------------------------------------------------------------------- the command


def test_without_a_gpu_it_says_what_to_do(reproduce, monkeypatch, capsys):
    monkeypatch.setattr(reproduce.hardware, "gpus", lambda: [])
    assert reproduce.main([]) == 2
    said = capsys.readouterr().err
    assert "no GPU is here to measure on" in said and "`tcgpu devices`" in said and "--engine sim" in said
    assert reproduce.main(["--engine", "tpu"]) == 2 and "no engine 'tpu' here" in capsys.readouterr().err


def test_the_command_writes_a_record_and_a_page(reproduce, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(reproduce, "WEIGHTS", {"sweep": 1})
    monkeypatch.setattr(reproduce.papers, "SWEEP", (2,))
    monkeypatch.setattr(reproduce, "fetch_graphs", lambda end: None)
    assert reproduce.main(["--engine", "sim", "--most", "0.0001", "--minutes", "0.1", "--into", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    charted = [row for row in datasets.published("claims") if row["charted"] == "yes"]
    assert all(row["id"] in page for row in charted) and "prefers-color-scheme: dark" in page
    assert "A device in software ran the kernels" in page and "http" not in page
    assert [path.name for path in tmp_path.glob("*.csv")] == ["cuda-simulator.csv"]

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "sized", stopped)
    (tmp_path / "cuda-simulator.csv").unlink()
    assert reproduce.main(["--engine", "sim", "--into", str(tmp_path)]) == 130
    assert "the same command goes on from here" in capsys.readouterr().err


def test_the_verb_needs_a_checkout(root, monkeypatch, tmp_path):
    from tcgpu import __main__ as command

    monkeypatch.setattr(command.tcgpu, "__file__", str(tmp_path / "tcgpu" / "__init__.py"))
    assert command.main(["reproduce"]) == 2
    result = subprocess.run([sys.executable, "-m", "tcgpu", "reproduce", "--check", "none.csv"], cwd=tmp_path,
                            capture_output=True, text=True, env={"PYTHONPATH": str(root), "PATH": ""})  # fmt: skip
    assert result.returncode == 1 and "none.csv: it is no record: FileNotFoundError" in result.stdout
