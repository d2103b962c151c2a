"""The benchmark of the GAP suite's graphs, in the simulator."""

from types import SimpleNamespace

import pytest

import tcgpu
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.fixture
def benchmark(load_benchmark, monkeypatch):
    module = load_benchmark("gap")
    sizes = iter(range(100))  # what a pool of device memory has at each call
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: next(sizes))
    library = SimpleNamespace(get_default_memory_pool=lambda: pool)
    monkeypatch.setattr(module.large, "import_module", {"cupy": library}.get)
    return module


@pytest.mark.parametrize("name", ["gap_kron", "gap_urand"])
def test_every_way_counts_the_same(benchmark, name):
    with runtime.using("sim"):
        row = benchmark.measured(name, 4, 1)
    graph = tcgpu.generate.GENERATORS[name](4)
    assert (row["graph"], row["edges"], row["triangles"]) == (f"{name} 4", graph.m, tcgpu.count(graph, "cpu"))
    assert (row["records"], row["checked_by"], row["peak_bytes"], row["published"]) == (256, "warp_search", 1, "")
    assert all(value > 0 for key, value in row.items() if key.endswith(("_ms", "_s")))


def test_another_count_than_the_published_one_is_refused(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "PUBLISHED", {("gap_kron", 4): 1})
    with runtime.using("sim"), pytest.raises(SystemExit, match=r"the counts of gap_kron 4 differ: .*, published 1$"):
        benchmark.measured("gap_kron", 4, 1)
