"""Killed processes leave no files behind, and a count changes no other files in the temporary folders."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def memory():
    """A folder of shared memory that no other process uses."""
    root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=root) as folder:
        yield Path(folder)


@pytest.mark.full
def test_killed_parents_and_workers_leave_no_files_and_change_none(load_benchmark, memory):
    benchmark = load_benchmark("leftovers")
    rows = list(benchmark.trials(4, scale=12, seed=3, memory=memory))
    assert [row["killed"] for row in rows] == ["parent", "worker"] * 2
    assert all(benchmark.fine(row) for row in rows), rows
    assert not list(memory.iterdir())


def test_the_benchmark_detects_files_that_are_left_or_changed(load_benchmark, memory, monkeypatch):
    """With a script that leaves a file and changes a folder of others."""
    benchmark = load_benchmark("leftovers")
    spoiling = (
        "import pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        "(folder / 'left').touch()\n"
        "next(folder.glob('tcgpu-*/graph.json')).unlink()\n"
        "print('workers')\n"
        "while True:\n"
        "    print('shared', flush=True)\n"
    )
    monkeypatch.setattr(benchmark, "SCRIPT", spoiling)
    monkeypatch.setattr(benchmark, "PATIENCE", 1)
    (row,) = benchmark.trials(1, scale=6, seed=1, memory=memory)
    assert row["left"] == [str(memory / "left")] and row["touched"] and not benchmark.fine(row)
