"""The test run itself: a skip has a reason, every part is counted, and the totals come last."""

import re
import shutil
import subprocess
import sys

import pytest
import suite

pytestmark = pytest.mark.full

TESTS = """
import pytest

def test_passes(): pass

def test_fails(): assert False

def test_skips_with_a_reason(): pytest.skip("it rains")

@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.skipif(True, reason="it pours")
def test_skips_by_mark(again): pass

@pytest.mark.skip
def test_skips_by_mark_without_a_reason(): pass

def test_skips_without_a_reason(): pytest.skip()

@pytest.fixture
def broken(): raise RuntimeError

def test_errs(broken): pass
"""


@pytest.fixture
def record(root, tmp_path):
    """The record of a pytest run over TESTS under the rules of this folder's conftest."""
    for name in ("conftest.py", "sampling.py", "swiftshader.py"):
        shutil.copy(root / "tests" / name, tmp_path)
    (tmp_path / "test_weather.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--rootdir", tmp_path, "--junitxml=record.xml", "-p", "no:cacheprovider"]
    subprocess.run([*command, tmp_path], cwd=tmp_path, capture_output=True, env={"PYTHONPATH": str(root)})
    return tmp_path / "record.xml"


def test_a_skip_without_a_reason_fails(record):
    outcome = suite.Outcome("weather", seconds=1)
    suite.read_record(record, outcome)
    assert outcome.passed == 1
    assert outcome.skipped == {"it rains": 1, "it pours": 2}
    names = {name.partition("::")[2] for name in outcome.failed}
    unsaid = {"test_skips_by_mark_without_a_reason", "test_skips_without_a_reason"}
    assert names == {"test_fails", "test_errs"} | unsaid


def test_the_summary_lists_skips_and_failures_and_ends_with_totals(record, capsys):
    outcome = suite.Outcome("weather", seconds=1)
    suite.read_record(record, outcome)
    assert not suite.summarise([outcome, suite.Outcome("style", seconds=0, passed=1)])
    lines = capsys.readouterr().out.splitlines()
    assert "  weather: 2 skipped: it pours" in lines and "  weather: test_weather::test_fails" in lines
    assert lines[-1] == "2 passed, 4 failed, 3 skipped"


@pytest.mark.parametrize(
    "arguments, passed, failed",
    [
        (["this"], 1, []),
        (["antigravity_is_no_module"], 0, ["exit code 1"]),
        (["pytest", "-m", "gpu", "tests/test_suite.py"], 0, ["no test was found"]),
    ],
)
def test_a_part_without_a_record_counts_by_its_exit_code(tmp_path, monkeypatch, arguments, passed, failed):
    monkeypatch.setattr(suite, "RECORDS", tmp_path)
    outcome = suite.run(suite.Part("part", arguments))
    assert (outcome.passed, outcome.failed) == (passed, failed)


def test_a_part_beside_others_is_shown_after_them(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(suite, "RECORDS", tmp_path)
    parts = suite.Part("poem", ["this"], beside=True), suite.Part("wrong", ["antigravity_is_no_module"])
    monkeypatch.setattr(suite, "PARTS", parts)
    with pytest.raises(SystemExit, match="True"):
        suite.main([])
    out, errors = capfd.readouterr()
    places = [out.index(said) for said in ("=== wrong", "Beautiful is better", "\nwrong ", "\npoem ", "1 passed, 1 f")]
    assert places == sorted(places) and "No module named antigravity_is_no_module" in errors


def test_every_mark_has_a_part_that_runs_it(root):
    chosen = " ".join(" ".join(part.arguments) for part in suite.PARTS)
    assert "-m gpu" in chosen and "-m browser" in chosen
    marked = re.compile(r"mark\.browser")
    assert suite.BROWSING == sorted(str(p) for p in root.glob("tests/**/test_*.py") if marked.search(p.read_text()))
    assert "not browser" in chosen and ("not gpu" in chosen) == suite.GPU


def test_an_unknown_part_is_refused():
    with pytest.raises(SystemExit, match="no part cores; there are style, types, core"):
        suite.main(["cores"])
