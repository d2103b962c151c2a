"""`tcgpu trace`: tables, JSON, a picture, and messages about bad arguments."""

import json

import pytest

import tcgpu
from tcgpu import __main__ as command_line

pytestmark = pytest.mark.sim


@pytest.fixture
def club(tmp_path):
    path = tmp_path / "club.edges"
    tcgpu.write(tcgpu.generate.clique(9), path)
    return str(path)


def run(*words):
    return command_line.main(["trace", *words])


def test_one_method_prints_a_row_per_line(club, capsys):
    assert run(club, "--method", "naive", "--knob", "threads=32") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("naive traced on 36 edges: 84 triangles; ")
    assert said[1].split()[:2] == ["function", "line"] and any("x, y = a[p], b[q]" in line for line in said)


def test_several_methods_print_a_row_each(club, capsys):
    assert run(club, "--method", "naive,bitmap") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["method", "naive", "bitmap"]


def test_json_has_totals_and_lines(club, capsys):
    times = []
    for gpu in ("NVIDIA H200", "Tesla T4"):
        assert run(club, "--method", "column_block", "--order", "degree", "--json", "--gpu", gpu) == 0
        (found,) = json.loads(capsys.readouterr().out)
        times.append(found["estimated_us"])
    assert 0 < times[0] < times[1]
    assert (found["method"], found["triangles"]) == ("column_block", 84)
    assert sum(row["load_sectors"] for row in found["lines"]) == found["load_sectors"] > 0


def test_a_picture_is_drawn(club, tmp_path, capsys):
    path = tmp_path / "trace.svg"
    assert run(club, "--method", "naive", "-o", str(path), "--by", "load_sectors") == 0
    assert "<svg" in path.read_text()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words, said",
    [
        (["--method", "cpu"], "method 'cpu' runs on cpu, not on 'sim'"),
        (["--method", "naive,fastest"], "no method 'fastest'"),
        (["--method", "naive", "--knob", "columns=3"], "no knob 'columns' in naive"),
        (["--method", "naive", "-o", "trace.jpg.x"], "-o takes a file that ends in .png, .svg, .pdf, .html or .trace"),
        (["--method", "naive", "-o", "trace.png", "--by", "luck"], "no measure 'luck'; there are time, steps"),
        (["--method", "naive", "--gpu", "H2O"], "no GPU 'H2O'"),
        (["--method", "naive", "--knob", "threads=0"], "threads is a whole number from 1 to 1,024, not 0"),
    ],
)
def test_bad_arguments_print_one_line(club, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert run(club, *words) == 2
    found = capsys.readouterr()
    assert found.out == "" and found.err.startswith("tcgpu: ") and said in found.err and found.err.count("\n") == 1
    assert not list(tmp_path.glob("trace*"))
