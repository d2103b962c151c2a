"""The four bitmap kernels and their heuristic: memory, limits, choices, Table I's counts and kernels."""

import math

import numpy as np
import pytest
from kernel_shapes import small_graphs

import tcgpu
from tcgpu import Graph, GraphError, MethodError, cpu, datasets, records
from tcgpu.engines import runtime
from tcgpu.kernels.bisson_fatica import (
    algorithm_4,
    bitmap_auto,
    bitmap_block_global,
    bitmap_block_shared,
    bitmap_thread,
    bitmap_warp,
    support,
)
from tcgpu.kernels.device import bits
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
GRAPHS = small_graphs()
TABLE = {row["graph"]: row for row in datasets.published("bisson_table1")}
KERNEL_OF = {"thr": bitmap_thread, "wrp": bitmap_warp, "bsh": bitmap_block_shared, "blk": bitmap_block_global}


@pytest.fixture(autouse=True)
def simulator():
    with runtime.using("sim"):
        yield


@pytest.fixture
def free(monkeypatch):
    """A function that sets the free memory of the device: the graph, the margin, and this many bytes more."""

    def set_free(graph, room):
        monkeypatch.setattr(runtime, "memory_free", lambda: math.ceil((graph.nbytes + room) * 16 / 15) + 1)

    return set_free


# ------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("word, published", [(32, False), (64, False), (64, True)])
def test_blocks_are_as_many_as_bitmaps_fit_down_to_one(free, word, published):
    graph, knobs = GRAPHS["random"], {"blocks": 50, "word": word, "threads": 32, "published": published}
    each, lists = math.ceil(graph.n / word) * word // 8, published * 4 * (3 * graph.n + support.STATE_SIZE)
    for fitting in (1, 2, 3):
        free(graph, lists + fitting * each + each // 2)
        plan = bitmap_block_global.plan(graph, **knobs)
        assert plan.steps[-1].blocks == fitting
        assert plan.created["bitmap" if published else "bits"][0] * word // 8 == fitting * each
    free(graph, lists + each)
    assert bitmap_block_global.plan(graph, **knobs).count() == cpu.plan(graph).count()


@pytest.mark.parametrize("word, published", [(32, False), (64, True)])
def test_warps_are_as_many_as_bitmaps_fit_down_to_one(free, word, published):
    graph, knobs = GRAPHS["random"], {"blocks": 50, "threads": 128, "published": published}
    each, lists = math.ceil(graph.n / word) * word // 8, published * 4 * (3 * graph.n + support.STATE_SIZE)
    for fitting, blocks, threads in ((1, 1, 32), (3, 1, 96), (4, 1, 128), (9, 2, 128)):
        free(graph, lists + fitting * each + each // 2)
        (step,) = bitmap_warp.plan(graph, **knobs).steps
        assert (step.blocks, step.threads) == (blocks, threads)
    free(graph, lists + each)
    assert bitmap_warp.plan(graph, **knobs).count() == cpu.plan(graph).count()


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("module", [bitmap_warp, bitmap_block_global])
def test_a_graph_that_does_not_fit_with_one_bitmap_is_refused_before_any_allocation(free, module, published):
    graph = GRAPHS["random"]
    free(graph, -2)
    with pytest.raises(GraphError, match=r"bitmap_\w+ needs [\d,]+ bytes on the device, for the graph and one bitmap"):
        module.plan(graph, published=published)
    with pytest.raises(GraphError, match="without a method, device_memory= streams"):
        tcgpu.count(graph, module.__name__.rpartition(".")[2], engine="sim")


@pytest.mark.parametrize("module", [bitmap_warp, bitmap_block_shared, bitmap_block_global])
def test_edges_that_cannot_be_numbered_with_32_bits_are_refused(module):
    graph = Graph(GRAPHS["wheel"].col_ptr, GRAPHS["wheel"].row_idx)
    graph.m = 2**32 - 1
    with pytest.raises(GraphError, match=r"4,294,967,295 edges are too many for bitmap_\w+, which takes 4,294,959,104"):
        module.plan(graph)


def test_shared_memory_bounds_the_vertices_and_the_fold():
    most = bitmap_block_shared.most_vertices()
    assert most % 32 == 0 and bitmap_block_shared.shared_bytes(most, 256) <= runtime.facts().shared_per_block
    assert bitmap_block_shared.shared_bytes(most + 1, 256) > runtime.facts().shared_per_block
    path = Graph.from_edges([0, 0, 1], [1, 2, 2], most + 1)
    for published in (False, True):
        with pytest.raises(GraphError, match=f"room for {most:,} vertices .* not for {most + 1:,}: take"):
            bitmap_block_shared.plan(path, published=published)
    assert [bits.fold_bits_of(fold, n) for fold, n in ((5, 1), (17, 1000), (10, 1000), (17, 1 << 20))] == [
        32, 1024, 1024, 1 << 17,
    ]  # fmt: skip
    path = Graph.from_edges([0, 0, 1], [1, 2, 2], 1 << 20)
    with pytest.raises(GraphError, match="fold=20 takes [0-9,]+ bytes of shared memory; a block has at most"):
        bitmap_block_global.plan(path, fold=20)


# ------------------------------------------------------------------------------------------- bitmaps after the kernel


@pytest.mark.parametrize("module", [bitmap_warp, bitmap_block_global])
@pytest.mark.parametrize("knobs", [{"word": 32}, {"word": 64}, {"published": True}], ids=str)
def test_every_bitmap_is_zero_again_after_a_count(module, knobs):
    run = module.plan(GRAPHS["clique"], threads=64, blocks=3, **knobs).allocate()
    run.launch()
    assert not run.arrays["bitmap" if "published" in knobs else "bits"].any()


@pytest.mark.parametrize("module", [bitmap_block_shared, bitmap_block_global])
def test_a_launch_resets_its_queue(module):
    graph = GRAPHS["skewed"]
    run = module.plan(graph, threads=32, blocks=2).allocate()
    run.launch()
    run.launch()
    assert run.result() == 2 * cpu.plan(graph).count()


def test_long_columns_come_before_short_ones():
    """By when the single thread of a single block first reads each column."""
    short, long = np.arange(40), np.repeat([60, 61], 600)
    graph = Graph.from_edges(np.r_[short, short, long], np.r_[short + 1, short + 2, np.tile(np.arange(100, 700), 2)])
    seen = []

    class Watched(np.ndarray):
        def __getitem__(self, place):
            seen.append(int(place))
            return super().__getitem__(place)

    run = bitmap_block_shared.plan(graph, threads=1, blocks=1).allocate()
    run.arrays["row_idx"] = run.arrays["row_idx"].view(Watched)
    run.plan.steps[-1].run(run.arrays)
    assert run.result() == cpu.plan(graph).count()
    first = [seen.index(int(graph.col_ptr[j])) for j in (60, 61, *short[:-1])]
    assert graph.max_column >= bits.LONG_COLUMN and max(first[:2]) < min(first[2:])


# ------------------------------------------------------------------------------------------------------ Algorithm 5


def test_the_heuristic_chooses_as_in_the_paper():
    choice = bitmap_auto.choice
    assert choice(10**6, 10**7, 12) == "bitmap_thread"
    assert choice(10**6, 8 * 10**6 - 1, 13) == "bitmap_warp"
    assert choice((128 << 10) - 1, 10**7, 13) == "bitmap_block_shared"
    assert choice(128 << 10, 10**7, 13) == "bitmap_block_global"
    assert choice.__kwdefaults__ | {"published": False} == METHODS["bitmap_auto"].knobs


def test_a_graph_too_large_for_shared_memory_goes_to_global_memory_whatever_the_constants(monkeypatch):
    graph = GRAPHS["clique"]
    knobs = {"longest_thread": 0, "mean_warp": 0, "vertices_shared": 10**6}
    assert bitmap_auto.plan(graph, **knobs).method == "bitmap_block_shared"
    kernels = {bitmap_auto.plan(graph, **knobs, published=published).steps[-1].kernel for published in (False, True)}
    assert kernels == {bitmap_block_shared.bitmap_block_shared_kernel, algorithm_4.count_in_shared}
    monkeypatch.setattr(bitmap_block_shared, "most_vertices", lambda threads=256: graph.n - 1)
    assert bitmap_auto.plan(graph, **knobs).method == "bitmap_block_global"


def test_its_constants_are_checked():
    for knobs in ({"longest_thread": -1}, {"vertices_shared": 0.5}, {"mean_warp": float("nan")}):
        with pytest.raises(MethodError, match=next(iter(knobs))):
            bitmap_auto.plan(GRAPHS["wheel"], **knobs)


@pytest.fixture
def table_graphs(graphs_folder, monkeypatch):
    """(row of Table I, Graph) of each that is in the folder of well-known graphs."""
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    return [(TABLE[entry.name], datasets.load(entry.name)) for entry in datasets.own() if entry.name in TABLE]


def test_the_counts_of_table_1_and_its_choices_of_a_kernel(table_graphs):
    assert len(table_graphs) >= 9
    for row, graph in table_graphs:
        assert cpu.count(graph) == row["triangles"], row["graph"]
        chosen = bitmap_auto.choice(row["vertices"], row["edges"], graph.max_column)
        assert chosen == KERNEL_OF[row["kernel_type"]].__name__.rpartition(".")[2], row["graph"]


def test_the_recorded_counts_are_those_of_table_1_and_graph500_is_counted_ten_times_as_fast():
    """Its edges a second, for the random numbers of graph500 are not the paper's; a GPU of ten times the bandwidth."""
    rows = [row for row in records.reference("table1") if row["graph"] in TABLE]
    known = [row for row in rows if not row["graph"].startswith("graph500")]
    assert len({row["graph"] for row in known}) >= 9
    for row in known:
        assert row["triangles"] == TABLE[row["graph"]]["triangles"], row["graph"]
    (large,) = [row for row in rows if row["graph"] == "graph500-scale22-ef16" and row["method"] == "bitmap_auto"]
    printed = TABLE["graph500-scale22-ef16"]
    assert large["edges"] / large["kernel_ms"] >= 10 * printed["edges"] / printed["kernel_seconds"] / 1e3
    assert large["total_ms"] < 2 * large["kernel_ms"], "neither cleaning nor Python takes most of the time"
