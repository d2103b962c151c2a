"""`benchmarks/watch.py`: what it calls slower, what it compares, and what its records say."""

import sys
from collections import Counter

import pytest

from tcgpu import measurement
from tcgpu.engines import runtime
from tcgpu.records import Rows

pytestmark = pytest.mark.full
TIMES = {f"graph {k}": 10.0 * (k + 1) for k in range(4)}
REPEATED = ("first-answer",)  # records in which rows with the same keys are repeats


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("watch")


@pytest.fixture
def watch(benchmark, tmp_path, monkeypatch):
    """A function that watches an invented suite: `factors` of its times in each run, NaN for one that was ended.

    Returns whether all is well, and in how many runs. Each call is one second later.
    """
    suite = benchmark.Suite("none.py", 0, {"invented": benchmark.Columns(("graph",), ("kernel_ms",))})
    monkeypatch.setattr(benchmark, "data_path", lambda *parts: tmp_path / "measured")
    second = iter(range(60))

    def watch_once(*factors, reference_ms=2.0, noisy=1.0, minutes=1.0, **machine):
        runs = iter(factors)

        def run(suite):
            factor = next(runs)
            about = measurement.machine("cpu") | {"reference": "sort", "reference_ms": reference_ms} | machine
            times = {graph: ms * factor for graph, ms in TIMES.items()}
            times["graph 0"] *= noisy if factor == factors[0] else 1
            rows = ({"graph": graph, "kernel_ms": "" if ms != ms else ms} | about for graph, ms in times.items())
            return {"invented": Rows(rows)}

        stamp = f"20300101T0000{next(second):02}"
        monkeypatch.setattr(benchmark, "run", run)
        monkeypatch.setattr(benchmark, "time_stamp", lambda: stamp)
        well = benchmark.watch({"invented": suite}, tmp_path / "watched", rounds=len(factors) // 2, minutes=minutes)
        return well, len(factors) - len(list(runs))

    return watch_once


def test_the_first_record_is_kept_and_compared_with_nothing(watch, tmp_path, capsys):
    assert watch(1, 1, 1, 1) == (True, 2)
    assert "no earlier record of such a machine" in capsys.readouterr().out
    (path,) = (tmp_path / "watched").glob("*-invented.csv")
    rows = Rows.read_csv(path)
    assert Counter(row["run"] for row in rows) == {1: 4, 2: 4}
    assert {row["tcgpu"] for row in rows} == {measurement.revision()} and {row["reference_ms"] for row in rows} == {2.0}


def test_a_slow_down_is_found_and_noise_is_not(watch, capsys):
    assert watch(1, 1.02, 1, 1) == (True, 2)
    assert watch(1.05, 1.0, 1, 1) == (True, 2)
    assert "0 slower, 0 faster" in capsys.readouterr().out
    assert watch(1.2, 1.18, 1.19, 1.17) == (False, 4)  # twice as many runs before it is reported
    said = capsys.readouterr().out
    assert "4 slower, 0 faster" in said and "graph 3" in said and "1.16x" in said


def test_15_percent_are_found(watch):
    watch(1, 1, 1, 1)
    assert watch(1.15, 1.15, 1.15, 1.15) == (False, 4)
    assert watch(1.15, 1.15, 1.15, 1.15) == (True, 2)  # compared with the last record, not with the first


def test_a_row_that_recovers_in_more_runs_is_not_slower(watch):
    watch(1, 1, 1, 1)
    assert watch(1.2, 1.2, 1, 1) == (True, 4)


def test_a_row_that_varies_is_counted_and_not_slower(watch, capsys):
    watch(1, 1.001, 1, 1)
    assert watch(1, 1.001, 1, 1, noisy=1.5) == (True, 2)
    assert "0 slower, 0 faster" in (said := capsys.readouterr().out) and "1 vary by more than 10%" in said


def test_what_is_ended_now_and_was_not_is_slower(watch, benchmark, capsys):
    watch(1, 1, 1, 1)
    assert watch(float("nan"), 1, 1, 1) == (True, 2)  # one of two runs was ended
    assert watch(float("nan"), float("nan"), float("nan"), float("nan")) == (False, 4)
    assert "4 slower" in (said := capsys.readouterr().out) and "infx" in said
    assert watch(1, 1, 1, 1) == (True, 2)  # of what was ended before, nothing can be said
    assert "0 times compared" in capsys.readouterr().out


def test_what_gets_faster_is_shown(watch, capsys):
    watch(1, 1, 1, 1)
    assert watch(0.8, 0.8, 1, 1) == (True, 2)
    assert "0 slower, 4 faster" in (said := capsys.readouterr().out) and "0.80x" in said


def test_times_are_ratios_to_the_reference(watch, capsys):
    watch(1, 1, 1, 1)
    assert watch(2, 2, 2, 2, reference_ms=4.0) == (True, 2)  # all of the machine is slower today
    assert "ratios to the sort: 4 ms now, 2 ms then" in capsys.readouterr().out
    assert watch(2, 2, 2, 2, reference_ms=2.0) == (False, 4)


def test_another_reference_is_not_divided_by(watch, capsys):
    watch(1, 1, 1, 1)
    assert watch(1, 1, 1, 1, reference="another sort", reference_ms=40.0) == (True, 2)
    assert "plain times" in capsys.readouterr().out


@pytest.mark.parametrize("other", [{"cpu": "another"}, {"cores": 99}, {"threads": 99}, {"gpu_name": "GPU X"}])
def test_a_machine_of_another_kind_is_not_compared(watch, other, capsys):
    watch(1, 1, 1, 1)
    assert watch(9, 9, 9, 9, **other) == (True, 2)
    assert capsys.readouterr().out.count("no earlier record of such a machine") == 2


def test_an_old_record_without_a_reference_is_compared_by_plain_times(watch, tmp_path, capsys):
    facts = {key: value for key, value in measurement.machine("cpu").items() if key != "tcgpu"}
    old = Rows({"graph": graph, "kernel_ms": ms, "kernel_ms_spread": 0.3 * ms} | facts for graph, ms in TIMES.items())
    old.write_csv(tmp_path / "measured" / "invented-some-cpu.csv")
    assert watch(1.2, 1.2, 1, 1) == (True, 2)  # its repeats varied by 30 %
    said = capsys.readouterr().out
    assert "tcgpu not named" in said and "plain times" in said and "4 vary by more than 10%" in said


def test_no_run_starts_that_would_not_end_in_time(watch, capsys):
    assert watch(1, 1, minutes=-1) == (True, 0)
    assert "run 1 is left out" in capsys.readouterr().out


# --------------------------------------------------------------------------------------------------- suites and scripts


def test_each_script_is_watched_or_says_why_not(benchmark, root):
    scripts = {path.name for path in (root / "benchmarks").glob("*.py")}
    watched = {suite.command.split()[0] for suite in benchmark.SUITES.values()}
    assert watched | set(benchmark.UNWATCHED) == scripts and not watched & set(benchmark.UNWATCHED)
    for suite in benchmark.SUITES.values():
        script, *arguments = suite.command.split()
        text = (root / "benchmarks" / script).read_text()
        assert all(f'"{word}"' in text for word in arguments if word.startswith("--"))


def test_the_columns_of_each_suite_are_those_of_its_records(benchmark, root):
    """Rows with the same keys would be taken for repeats."""
    seen = set()
    for suite in benchmark.SUITES.values():
        for name, columns in suite.records.items():
            for path in (root / "data" / "measured").glob(f"{name}-*.csv"):
                rows = Rows.read_csv(path)
                assert {*columns.keys, *columns.times} <= set(rows[0])
                if columns.library:
                    assert any(str(row[columns.library]).startswith("tcgpu") for row in rows)
                (_, most), *_ = Counter(tuple(row[key] for key in columns.keys) for row in rows).most_common(1)
                assert most == 1 or name in REPEATED
                seen.add(name)
    assert len(seen) > 15


SCRIPT = """
import json, sys
if sys.argv[1:] == ["fail"]:
    sys.exit("the counts differ")
with open("fake.csv", "w") as file:
    file.write("graph,seconds\\nmesh,0.25\\n")
"""


def test_a_suite_runs_in_a_folder_of_its_own(benchmark, tmp_path, monkeypatch):
    (tmp_path / "fake.py").write_text(SCRIPT)
    monkeypatch.setattr(benchmark, "HERE", tmp_path)
    monkeypatch.setattr(benchmark, "REFERENCES", {False: ("sort", iter([2.0, 4.0] * 3).__next__)})
    columns = benchmark.Columns(("graph",), ("seconds",))
    found = benchmark.run(benchmark.Suite("fake.py", 1, {"fake": columns}))
    assert found == {"fake": [{"graph": "mesh", "seconds": 0.25, "reference": "sort", "reference_ms": 3.0}]}
    with pytest.raises(RuntimeError, match="fake.py fail: exit status 1: the counts differ"):
        benchmark.run(benchmark.Suite("fake.py fail", 1, {"fake": columns}))
    with pytest.raises(RuntimeError, match="wrote 0 records other"):
        benchmark.run(benchmark.Suite("fake.py", 1, {"other": columns}))


def test_a_suite_that_fails_is_reported_and_runs_once(benchmark, tmp_path, monkeypatch, capsys):
    (tmp_path / "fake.py").write_text(SCRIPT)
    monkeypatch.setattr(benchmark, "HERE", tmp_path)
    monkeypatch.setattr(benchmark, "REFERENCES", {False: ("sort", lambda: 2.0)})
    suites = {"trial": benchmark.Suite("fake.py", 0, {}), "bad": benchmark.Suite("fake.py fail", 0, {})}
    assert not benchmark.watch(suites, tmp_path, rounds=2)
    said = capsys.readouterr().out
    assert said.count("trial: run") == said.count("bad: run") == 1 and "failed: fake.py fail" in said
    assert benchmark.watch({"trial": suites["trial"]}, tmp_path, rounds=2)


def test_a_real_suite_is_watched_on_a_small_graph(benchmark, root, tmp_path, monkeypatch):
    """With the reference of NumPy's sort; its record names tcgpu's revision."""
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setattr(benchmark, "SORTED", 1 << 12)
    small = "families.py --kind tripartite --verb count --edges 3000 --repeats 1 --limit 600 --output families.csv"
    suite = benchmark.SUITES["families"]._replace(command=small)
    assert benchmark.watch({"families": suite}, tmp_path, rounds=1)
    (path,) = tmp_path.glob("*-families.csv")
    rows = Rows.read_csv(path)
    assert [row["order"] for row in rows] == ["natural", "degree", "auto"]
    for row in rows:
        assert row["tcgpu"] == measurement.revision() and row["reference"].startswith("sort by NumPy")
        assert row["reference_ms"] > 0 and row["first_cpu"] > 0 and row["run"] == 1


def test_the_reference_of_a_gpu_is_measured(benchmark, root, monkeypatch):
    """Where there is no GPU, by the simulator's copy."""
    monkeypatch.setenv("PYTHONPATH", str(root))
    assert 0 < benchmark.copy_ms() < 10_000


def test_an_unknown_suite_is_refused_and_suites_of_gpus_are_left_out(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["watch.py", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        benchmark.main()
    assert "no suite nothing" in capsys.readouterr().err
    if runtime.ENGINE != "gpu":
        monkeypatch.setattr(sys, "argv", ["watch.py", "sweep", "gpu"])
        with pytest.raises(SystemExit, match="0|False"):
            benchmark.main()
        assert "left out: sweep, gpu (" in capsys.readouterr().out
