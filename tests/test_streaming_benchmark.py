"""The benchmark of streaming, in the simulator."""

import mmap

import pytest

import tcgpu
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def benchmark(load_benchmark):
    with pytest.MonkeyPatch.context() as patch:
        module = load_benchmark("streaming")
        patch.setattr(module, "SHARES", (0.4, 2.0))
        patch.setattr(module, "MAPPED", 0.4)
        yield module


@pytest.fixture(scope="module")
def rows(benchmark, tmp_path_factory):
    graph = tcgpu.generate.rmat(scale=6, seed=1).ordered("degree")
    lanes, folder = [], tmp_path_factory.mktemp("streaming") / "graph"
    with runtime.using("sim"):
        return list(benchmark.measured("small", graph, folder, 1, lanes)), graph, lanes


def test_each_way_counts_the_same_within_its_memory(rows):
    rows, graph, _ = rows
    assert [row["way"] for row in rows] == ["in memory"] * 2 + ["streamed, 40%", "streamed, 200%", "mapped, 40%"]
    assert {row["triangles"] for row in rows} == {tcgpu.count(graph, "cpu")}
    for row in rows[2:]:
        assert 0 < row["device_bytes"] <= row["limit_bytes"] and row["parts"] > 0
        assert row["kernels_ms"] > 0 and 0 <= row["hidden"] <= 1
    assert rows[2]["parts"] > rows[3]["parts"] >= 1
    assert rows[1]["to_memory"] == rows[0]["to_default"] == 1


def test_copies_and_kernels_of_one_share_are_recorded(rows):
    rows, _, lanes = rows
    assert {lane["share"] for lane in lanes} == {0.4} and {lane["what"] for lane in lanes} == {"copies", "kernels"}
    assert sum(lane["what"] == "kernels" for lane in lanes) == rows[2]["parts"]
    for what in ("copies", "kernels"):
        times = [(lane["begin_ms"], lane["end_ms"]) for lane in lanes if lane["what"] == what]
        total = sum(end - begin for begin, end in times)
        assert times == sorted(times) and total == pytest.approx(rows[2][f"{what}_ms"], abs=0.01 + 0.001 * len(times))


def test_different_counts_end_the_benchmark(benchmark, rows):
    benchmark.check(rows[0])
    with pytest.raises(SystemExit, match="the counts of small differ"):
        benchmark.check([*rows[0], rows[0][0] | {"triangles": 1}])


def test_the_memory_of_the_process_is_measured(benchmark):
    """With new memory: an array may reuse memory that the process had before."""
    with benchmark.HostMemory() as memory, mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        for page in range(0, len(block), mmap.PAGESIZE):
            block[page] = 1
        memory._over.wait(0.1)
    assert memory.grown > 48 << 20
