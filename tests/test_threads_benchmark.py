"""The benchmark of many threads, on a small graph, with a public program that is made up."""

import shlex
import sys

import pytest

import tcgpu

pytestmark = pytest.mark.full
PROGRAM = """
import json, os, sys
reps, path = sys.argv[1:]
with open(path, "rb") as file:
    n, edges = (int.from_bytes(file.read(8), "little") for _ in range(2))
    ends = len(file.read()) // 8
assert reps in ("--reps=1", "--reps=2") and ends == edges and os.environ["OMP_NUM_THREADS"] == "2"
print(json.dumps({"triangles": TRIANGLES, "raw_s": 0.5, "count_s": 0.125, "preprocess_s": 0.25}))
"""


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("threads")


@pytest.fixture(scope="module")
def edges():
    return tcgpu.generate.edges("rmat", scale=9, seed=2)


def command(folder, triangles):
    script = folder / "program.py"
    script.write_text(PROGRAM.replace("TRIANGLES", str(triangles)))
    return shlex.join([sys.executable, str(script)])


def test_programs_are_timed_beside_all_threads_and_one(benchmark, edges, tmp_path):
    triangles = tcgpu.count(edges)
    rows = list(benchmark.measured("small", edges, {"other": command(tmp_path, triangles)}, 2, 2))
    assert [(row["program"], row["threads"]) for row in rows] == [("tcgpu", 2), ("tcgpu, 1 thread", 1), ("other", 2)]
    assert {(row["triangles"], row["edges"]) for row in rows} == {(triangles, tcgpu.Graph.from_edges(*edges).m)}
    assert all(min(row["raw_s"], row["graph_s"], row["count_s"]) > 0 and row["cpu"] for row in rows)
    assert (rows[2]["raw_s"], rows[2]["graph_s"], rows[2]["count_s"]) == (0.5, 0.375, 0.125)


def test_different_counts_end_the_benchmark(benchmark, edges, tmp_path):
    with pytest.raises(SystemExit, match="the counts differ on small: .*other 7"):
        list(benchmark.measured("small", edges, {"other": command(tmp_path, 7)}, 2, 1))
