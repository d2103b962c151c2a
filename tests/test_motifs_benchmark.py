"""The benchmark of cliques, cycles and motifs: what it measures and checks, in the simulator."""

import subprocess
import sys

import pytest

import tcgpu
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    return load_benchmark("motifs")


@pytest.mark.sim
def test_each_number_has_a_row(benchmark):
    edges = tcgpu.generate.edges("rmat", 4, 5)
    with runtime.using("sim"):
        rows = list(benchmark.measured("small", edges, (4, 5), 1))
    found = {row["what"]: row["found"] for row in rows}
    graph = tcgpu.Graph.from_edges(*edges)
    assert [*found] == ["triangles", "cliques of 4", "cliques of 5", "cycles of 4", "motifs"]
    assert found["triangles"] == tcgpu.count(graph) > 0 and found["cliques of 4"] == tcgpu.cliques(graph, 4) > 0
    assert found["motifs"] == tcgpu.count_subgraphs(graph, 4, "connected")
    assert all(row["process_ms"] > 0 and row["native_ms"] > 0 for row in rows) and rows[0]["to_count"] == 1
    assert all(row["kernel_ms"] > 0 and row["launches"] > 0 for row in rows[:-1])


def test_different_numbers_end_the_benchmark(benchmark):
    benchmark.check("cliques of 4", 5, 5)
    with pytest.raises(SystemExit, match="cliques of 4: kernels find 4, the native engine 5"):
        benchmark.check("cliques of 4", 4, 5)


def test_its_help_lists_its_options(root):
    command = [sys.executable, root / "benchmarks" / "motifs.py", "--help"]
    assert "--graph" in subprocess.check_output(command, text=True, cwd=root)
