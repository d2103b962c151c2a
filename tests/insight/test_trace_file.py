"""Traces in files: what is read is what was saved, and damage is refused."""

import numpy as np
import pytest

import tcgpu
from tcgpu import __main__ as command_line
from tcgpu.errors import FormatError
from tcgpu.formats import binary
from tcgpu.insight import trace_file

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def traced():
    return tcgpu.trace(tcgpu.generate.rmat(5, 4, seed=1), "bitmap_warp", gpu="Tesla T4", threads=32, blocks=2)


@pytest.fixture
def path(traced, tmp_path):
    traced.save(tmp_path / "a.trace")
    return tmp_path / "a.trace"


def test_a_trace_that_is_read_says_the_same(traced, path):
    read = tcgpu.load_trace(path)
    assert repr(read) == repr(traced) and read.totals(None) == traced.totals(None)
    assert list(read.lines()) == list(traced.lines()) and list(read.kernels()) == list(traced.kernels())
    assert np.array_equal(read.balance("warp", "steps"), traced.balance("warp", "steps"))
    for name in ("method", "knobs", "triangles", "gpu"):
        assert getattr(read, name) == getattr(traced, name)
    assert np.array_equal(read.graph.row_idx, traced.graph.row_idx) and read.graph.order == traced.graph.order
    assert len(read.show().axes) == len(traced.show().axes)


def test_a_trace_is_replaced_only_by_a_whole_one(traced, path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(binary.np.lib.format, "write_array", lambda *args, **more: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        traced.save(path)
    assert path.read_bytes() == before and [file.name for file in path.parent.iterdir()] == ["a.trace"]


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.999])
def test_a_part_of_a_file_is_refused(path, kept):
    whole = path.read_bytes()
    path.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    with pytest.raises(FormatError, match=path.name):
        tcgpu.load_trace(path)


def test_damage_is_refused_or_does_no_harm(traced, path):
    """Flip bits all over the file: what is read either is the same, or is refused with the file's name."""
    whole, refused = bytearray(path.read_bytes()), 0
    for place in np.linspace(0, len(whole) - 1, 150).astype(int).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 16
        path.write_bytes(damaged)
        try:
            assert tcgpu.load_trace(path).totals(None) == traced.totals(None)
        except FormatError as error:
            assert path.name in str(error)
            refused += 1
    assert refused > 100


def test_a_file_of_another_version_is_refused(traced, tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "MADE_BY", "tcgpu trace 1")
    traced.save(tmp_path / "old.trace")
    monkeypatch.undo()
    with pytest.raises(FormatError, match="old.trace: made by 'tcgpu trace 1'; this version reads 'tcgpu trace 3'"):
        tcgpu.load_trace(tmp_path / "old.trace")


def test_other_archives_are_refused(tmp_path):
    tcgpu.write(tcgpu.generate.clique(5), tmp_path / "k5.npz")
    with pytest.raises(FormatError, match="k5.npz: no trace of tcgpu in it"):
        tcgpu.load_trace(tmp_path / "k5.npz")


def test_the_shell_keeps_and_opens_traces(tmp_path, capsys):
    tcgpu.write(tcgpu.generate.clique(6), tmp_path / "k6.txt")
    assert (
        command_line.main(["trace", str(tmp_path / "k6.txt"), "--method", "naive", "-o", str(tmp_path / "k6.trace")])
        == 0
    )
    first = capsys.readouterr().out
    assert command_line.main(["trace", str(tmp_path / "k6.trace"), "--open"]) == 0
    assert capsys.readouterr().out == first and "20 triangles" in first
    assert command_line.main(["trace", str(tmp_path / "k6.trace"), "--open", "--method", "naive"]) == 2
