"""The four bitmap kernels and their heuristic: memory, limits, choices, calibration, Table I's counts and kernels."""

import math

import numpy as np
import pytest
from kernel_shapes import small_graphs

import tcgpu
from tcgpu import Graph, GraphError, bench, calibration, cpu, datasets, records
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels.bisson_fatica import (
    bitmap_auto,
    bitmap_block_global,
    bitmap_block_shared,
    bitmap_thread,
    bitmap_warp,
)
from tcgpu.kernels.device import bits
from tcgpu.lab import plots
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
    """Makes the device have just that much memory free for what is not the graph, after what is left alone."""

    def set_free(graph, room):
        monkeypatch.setattr(runtime, "memory_free", lambda: math.ceil((graph.nbytes + room) * 16 / 15) + 1)

    return set_free


# ------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("word", [32, 64])
def test_blocks_are_as_many_as_bitmaps_fit_down_to_one(free, word):
    graph = GRAPHS["random"]
    each = math.ceil(graph.n / word) * word // 8
    for fitting in (1, 2, 3):
        free(graph, fitting * each + each // 2)
        plan = bitmap_block_global.plan(graph, blocks=50, word=word, threads=32)
        assert plan.steps[-1].blocks == fitting
        assert plan.created["bits"][0] * word // 8 == fitting * each
    free(graph, each)
    assert bitmap_block_global.plan(graph, blocks=50, word=word, threads=32).count() == cpu.plan(graph).count()


def test_warps_are_as_many_as_bitmaps_fit_down_to_one(free):
    graph = GRAPHS["random"]
    each = math.ceil(graph.n / 32) * 4
    for fitting, blocks, threads in ((1, 1, 32), (3, 1, 96), (4, 1, 128), (9, 2, 128)):
        free(graph, fitting * each + each // 2)
        (step,) = bitmap_warp.plan(graph, blocks=50, threads=128).steps
        assert (step.blocks, step.threads) == (blocks, threads)
    free(graph, each)
    assert bitmap_warp.plan(graph, blocks=50, threads=128).count() == cpu.plan(graph).count()


@pytest.mark.parametrize("module", [bitmap_warp, bitmap_block_global])
def test_a_graph_that_does_not_fit_with_one_bitmap_is_refused_before_anything_is_made(free, module):
    graph = GRAPHS["random"]
    free(graph, -2)
    with pytest.raises(GraphError, match=r"bitmap_\w+ needs [\d,]+ bytes on the device, for the graph and one bitmap"):
        module.plan(graph)
    with pytest.raises(GraphError, match="count the graph in parts"):
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
    with pytest.raises(GraphError, match=f"room for {most:,} vertices .* not for {most + 1:,}: take"):
        bitmap_block_shared.plan(path)
    assert [bits.fold_bits_of(fold, n) for fold, n in ((5, 1), (17, 1000), (10, 1000), (17, 1 << 20))] == [
        32, 1024, 1024, 1 << 17,
    ]  # fmt: skip
    path = Graph.from_edges([0, 0, 1], [1, 2, 2], 1 << 20)
    with pytest.raises(GraphError, match="fold=20 takes [0-9,]+ bytes of shared memory; a block has at most"):
        bitmap_block_global.plan(path, fold=20)


# ------------------------------------------------------------------------------------------- bitmaps after the kernel


@pytest.mark.parametrize("module", [bitmap_warp, bitmap_block_global])
@pytest.mark.parametrize("word", [32, 64])
def test_every_bitmap_is_left_as_it_was_found(module, word):
    plan = module.plan(GRAPHS["clique"], threads=64, blocks=3, word=word)
    plan.allocate()
    plan.launch()
    assert not plan.arrays["bits"].any()


@pytest.mark.parametrize("module", [bitmap_block_shared, bitmap_block_global])
def test_a_launch_takes_its_queue_from_the_start(module):
    graph = GRAPHS["skewed"]
    plan = module.plan(graph, threads=32, blocks=2)
    plan.allocate()
    plan.launch()
    plan.launch()
    assert plan.result() == 2 * cpu.plan(graph).count()


def test_long_columns_come_before_short_ones():
    """By when the single thread of a single block first reads each column."""
    short, long = np.arange(40), np.repeat([60, 61], 600)
    graph = Graph.from_edges(np.r_[short, short, long], np.r_[short + 1, short + 2, np.tile(np.arange(100, 700), 2)])
    seen = []

    class Watched(np.ndarray):
        def __getitem__(self, place):
            seen.append(int(place))
            return super().__getitem__(place)

    plan = bitmap_block_shared.plan(graph, threads=1, blocks=1)
    plan.allocate()
    arrays = plan.arrays | {"row_idx": plan.arrays["row_idx"].view(Watched)}
    step = plan.steps[-1]
    args = [arrays[arg] if isinstance(arg, str) else arg for arg in step.args]
    simulate(step.kernel.py_func, 1, 1, args, shared=step.shared)
    assert plan.result() == cpu.plan(graph).count()
    first = [seen.index(int(graph.col_ptr[j])) for j in (60, 61, *short[:-1])]
    assert graph.max_column >= bits.LONG_ROW and max(first[:2]) < min(first[2:])


# ------------------------------------------------------------------------------------------------------ Algorithm 5


def test_the_algorithm_chooses_as_it_is_printed():
    choice = bitmap_auto.choice
    assert choice(10**6, 10**7, 12) == "bitmap_thread"
    assert choice(10**6, 8 * 10**6 - 1, 13) == "bitmap_warp"
    assert choice((128 << 10) - 1, 10**7, 13) == "bitmap_block_shared"
    assert choice(128 << 10, 10**7, 13) == "bitmap_block_global"
    assert METHODS["bitmap_auto"].knobs == bitmap_auto.PAPER


def test_a_graph_too_large_for_shared_memory_goes_to_global_memory_whatever_the_constants(monkeypatch):
    graph = GRAPHS["clique"]
    knobs = {"longest_thread": 0, "mean_warp": 0, "vertices_shared": 10**6}
    assert bitmap_auto.plan(graph, **knobs).method == "bitmap_block_shared"
    monkeypatch.setattr(bitmap_block_shared, "most_vertices", lambda threads=256: graph.n - 1)
    assert bitmap_auto.plan(graph, **knobs).method == "bitmap_block_global"


def test_its_constants_are_checked():
    for knobs in ({"longest_thread": -1}, {"vertices_shared": 0.5}, {"mean_warp": float("nan")}):
        with pytest.raises(GraphError, match=next(iter(knobs))):
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
    rows = [row for row in records.latest("table1") if row["graph"] in TABLE]
    known = [row for row in rows if not row["graph"].startswith("graph500")]
    assert len({row["graph"] for row in known}) >= 9
    for row in known:
        assert row["triangles"] == TABLE[row["graph"]]["triangles"], row["graph"]
    (large,) = [row for row in rows if row["graph"] == "graph500-scale22-ef16" and row["method"] == "bitmap_auto"]
    printed = TABLE["graph500-scale22-ef16"]
    assert large["edges"] / large["kernel_ms"] >= 10 * printed["edges"] / printed["kernel_seconds"] / 1e3
    assert large["total_ms"] < 2 * large["kernel_ms"], "neither cleaning nor Python takes most of the time"


# ------------------------------------------------------------------------------------------------------ calibration


def timed(vertices, edges, longest, **milliseconds):
    """Rows of a record about one graph, the kernels called by the last word of their names."""
    names = {name.rpartition("_")[2]: name for name in bench.FOUR}
    about = {"graph": f"{vertices} {edges}", "vertices": vertices, "edges": edges, "longest_column": longest}
    return [about | {"method": names[name], "kernel_ms": took} for name, took in milliseconds.items()]


RECORD = [
    *timed(1000, 2000, 8, thread=1, warp=3, shared=4, **{"global": 5}),
    *timed(1000, 3000, 30, thread=1, warp=2, shared=4, **{"global": 5}),
    *timed(1000, 4000, 40, thread=9, warp=1, shared=2, **{"global": 5}),
    *timed(1000, 6000, 40, thread=9, warp=3, shared=2, **{"global": 5}),
    *timed(300_000, 6_000_000, 50, thread=9, warp=3, shared=1.0, **{"global": 5}),
    *timed(500_000, 6_000_000, 50, thread=9, warp=30, shared=6, **{"global": 5}),
    *timed(900_000, 9_900_000, 5000, **{"global": 5}),
]


def test_a_fit_finds_the_constants_that_choose_best():
    found = calibration.fit(RECORD)
    assert 30 <= found["longest_thread"] < 40
    assert 4 < found["mean_warp"] <= 6
    assert 300_000 < found["vertices_shared"] <= 500_000
    assert calibration.share_best(RECORD, **found) == 1
    assert calibration.share_best(RECORD) == pytest.approx(4 / 7)
    slower = {row["graph"]: row["slowdown"] for row in calibration.choices(RECORD) if row["slowdown"] > 1}
    assert slower == {"1000 3000": 2, "1000 6000": 1.5, "300000 6000000": 5}


def test_a_fit_stays_with_the_paper_where_nothing_speaks_against_it():
    rows = timed(10**6, 3 * 10**6, 40, thread=9, warp=1, shared=5, **{"global": 5})
    assert calibration.fit(rows) == bitmap_auto.PAPER


def test_what_was_not_timed_is_not_chosen():
    rows = timed(10**6, 10**6, 5, warp=2, **{"global": 1})
    knobs = calibration.fit(rows)
    assert calibration.choices(rows, **knobs)[0]["chosen"] == "bitmap_block_global"


def test_calibrated_knobs_are_measured_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TCGPU_CACHE", str(tmp_path))
    monkeypatch.setattr(bench, "SAMPLES", (("delaunay", {"n": 60}), ("clique", {"n": 20}), ("rmat", {"scale": 5})))
    knobs = tcgpu.calibrate(engine="sim", repeats=1)
    assert set(knobs) == set(bitmap_auto.PAPER)
    assert [path.name for path in tmp_path.rglob("*.json")] == ["cuda-simulator.json"]
    monkeypatch.setattr(bench, "measure_samples", lambda **wish: RECORD)
    assert tcgpu.calibrate(engine="sim") == knobs, "what is kept is not measured again"
    assert tcgpu.calibrate(engine="sim", again=True) == tcgpu.calibrate(engine="sim") == calibration.fit(RECORD)
    graph = GRAPHS["skewed"]
    assert tcgpu.count(graph, "bitmap_auto", engine="sim", **tcgpu.calibrate(engine="sim")) == cpu.plan(graph).count()


# ------------------------------------------------------------------------------------------------------ its pictures


def test_regions_show_each_graph_once_as_its_fastest_kernel():
    knobs = bitmap_auto.PAPER
    small, large = plots.draw_regions(calibration.choices(RECORD), **knobs).axes
    assert small.get_title() == "fewer than 131,072 vertices" and large.get_title() == "at least 131,072 vertices"
    shown = [{line.get_label(): line.get_xydata() for line in panel.lines} for panel in (small, large)]
    places = {kernel: np.isfinite(np.asarray(xy, float)).all(axis=1).sum() for kernel, xy in shown[0].items()}
    assert places == dict(zip(bench.FOUR, (2, 1, 1, 0)))
    assert sorted(shown[1]["bitmap_block_global"].tolist()) == [[11, 5000], [12, 50]]
    assert len(small.collections) == len(large.collections) == 3, "a region for each choice"


def test_rates_are_sorted_by_the_kernel_and_leave_out_what_was_not_printed():
    about = {"method": "bitmap_auto", "edges": 1000, "process_ms": 4.0, "total_ms": 8.0}
    rates = records.rates([about | {"graph": "B", "kernel_ms": 1.0}, about | {"graph": "A", "kernel_ms": 2.0}])
    assert rates == [
        {"graph": "A", "kernel": 500_000, "process": 250_000, "total": 125_000},
        {"graph": "B", "kernel": 1_000_000, "process": 250_000, "total": 125_000},
    ]
    printed = records.published_rates()
    assert len(printed) == len(TABLE) and printed[-1]["graph"].startswith("roadNet")
    ours, theirs = plots.draw_rates({"ours": rates, "theirs": printed}).axes
    assert [label.get_text() for label in ours.get_xticklabels()] == ["A", "B"]
    kernel = theirs.lines[0].get_ydata()
    assert len(kernel) == sum(row["kernel_seconds"] is not None for row in TABLE.values())
    assert (np.diff(kernel) >= 0).all()


# ------------------------------------------------------------------------------------------------------ the suites


def test_table_1_is_measured_on_known_graphs_and_generated_ones(graphs_folder, monkeypatch):
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    monkeypatch.setattr(bench, "GRAPH500", (18,))
    seen = []
    rows = bench.measure_table1(engine="sim", share=2**-15, repeats=1, tell=seen.append)
    assert sum(seen, []) == rows
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    assert graphs == ["karate", "graph500-scale3-ef16"]
    assert [row["method"] for row in rows if row["graph"] == "karate"] == [*bench.FOUR, "bitmap_auto"]
    assert {row["longest_column"] for row in rows if row["graph"] == "karate"} == {16}
    assert {row["triangles"] for row in rows if row["graph"] == "karate"} == {45}


def test_table_1_needs_no_known_graphs(monkeypatch):
    monkeypatch.delenv("TCGPU_GRAPHS", raising=False)
    monkeypatch.setattr(bench, "GRAPH500", (18, 19))
    rows = bench.measure_table1(["bitmap_thread"], engine="sim", share=2**-14, repeats=1)
    assert [row["graph"] for row in rows] == ["graph500-scale4-ef16", "graph500-scale5-ef16"]


def test_the_3_trusses_of_table_1(graphs_folder, monkeypatch):
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    monkeypatch.setattr(bench, "GRAPH500", (18,))
    rows = bench.measure_truss3(engine="sim", share=2**-15, repeats=1)
    assert [row["graph"] for row in rows] == 2 * ["karate"] + 2 * ["graph500-scale3-ef16"]
    assert [(row["method"], row["k"]) for row in rows] == 2 * [("k_truss", 3), ("bitmaps", 3)]
    assert rows[0]["kept"] == tcgpu.k_truss(datasets.load("karate"), 3, engine="cpu").m < rows[0]["edges"]
    monkeypatch.setattr(cpu, "support", lambda graph: np.zeros(graph.m, np.int64))
    with pytest.raises(RuntimeError, match="k_truss keeps .* edges of karate, in triangles are 0"):
        bench.measure_truss3(engine="sim", share=2**-15, repeats=1)


def test_a_method_that_refuses_a_graph_or_would_take_for_ever_is_left_out(monkeypatch):
    graph = GRAPHS["two long columns"]
    assert bench._fitting(bench.FOUR, graph, "sim") == list(bench.FOUR)
    monkeypatch.setitem(bench.LONGEST_ALONE, "bitmap_thread", 100)
    monkeypatch.setattr(bitmap_block_shared, "most_vertices", lambda threads=256: 10)
    assert bench._fitting(bench.FOUR, graph, "sim") == ["bitmap_warp", "bitmap_block_global"]


def test_a_wrong_count_in_table_1_is_an_error(monkeypatch):
    monkeypatch.setattr(bench, "GRAPH500", (18,))
    monkeypatch.delenv("TCGPU_GRAPHS", raising=False)
    monkeypatch.setattr(cpu, "count", lambda graph: -1)
    with pytest.raises(RuntimeError, match="bitmap_thread counts .* on graph500-scale4-ef16, cpu -1"):
        bench.measure_table1(["bitmap_thread"], engine="sim", share=2**-14, repeats=1)
