"""The suites of benchmarks/papers.py: each measures its graphs, methods and settings, and checks the counts."""

import json

import networkx as nx
import numpy as np
import pytest
from kernel_shapes import small_graphs

import tcgpu
from helpers import lengths
from tcgpu import cpu, datasets, formats
from tcgpu.engines import runtime
from tcgpu.generators import GENERATORS
from tcgpu.kernels.bisson_fatica import bitmap_block_shared
from tcgpu.records import Rows
from tcgpu.truss import native_peeling

pytestmark = [pytest.mark.full, pytest.mark.sim]
GRAPHS = small_graphs()
CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())


@pytest.fixture(autouse=True)
def simulator():
    with runtime.using("sim"):
        yield


@pytest.fixture(scope="module")
def papers(load_benchmark):
    return load_benchmark("papers")


def test_the_report_is_measured_on_its_four_classes_in_two_orders(papers):
    rows = papers.run("report", ["cpu"], share=0.01, repeats=1)
    assert [(row["graph"], row["order"]) for row in rows] == [
        (f"{name} class", order) for name in papers.REPORT for order in ("natural", "degree")
    ]
    # shares shrink a graph, and leave its nonzeros per column near what the matrix of its class has
    published = {row["graph"]: row["edges"] / row["vertices"] for row in datasets.published("report_matrices")}
    for row in rows:
        assert row["nonzeros_per_column"] == pytest.approx(published[row["graph"].removesuffix(" class")], rel=0.2)
        generator, size, _ = papers.REPORT[row["graph"].removesuffix(" class")]
        assert row["made"] == GENERATORS[generator](**papers.scaled(size, 0.01)).name


def test_the_report_is_measured_on_its_own_matrices_where_they_are_here(papers, monkeypatch, tmp_path):
    """Here two of them, of other sizes, in a folder of the user's and among downloads."""
    small = {
        name: entry for name, entry in papers.REPORT.items() if name in ("auto", "delaunay_n22", "great-britain_osm")
    }
    monkeypatch.setattr(papers, "REPORT", {name: (call, papers.scaled(size, 1e-4), columns)
                                           for name, (call, size, columns) in small.items()})  # fmt: skip
    matrices = {"auto": tcgpu.generate.mesh(9, 9), "delaunay_n22": tcgpu.generate.mesh(8, 8)}
    known = datasets.published("report_matrices")
    mine = [row | {"vertices": matrices[row["graph"]].n, "edges": matrices[row["graph"]].m} if row["graph"] in matrices
            else row for row in known]  # fmt: skip
    published = datasets.published
    monkeypatch.setattr(datasets, "published", lambda table: mine if table == "report_matrices" else published(table))
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("TCGPU_GRAPHS", str(tmp_path))
    formats.write(matrices["auto"], tmp_path / "auto.mtx")
    (tmp_path / "cache").mkdir()
    formats.write(matrices["delaunay_n22"], f"{tmp_path}/cache/delaunay_n22/")
    rows = papers.run("report", ["cpu"], repeats=1)[::2]
    assert [row["graph"] for row in rows] == ["delaunay_n22", "great-britain_osm class", "auto"]
    assert [row["edges"] for row in rows[::2]] == [matrices["delaunay_n22"].m, matrices["auto"].m]
    assert rows[0]["made"] == rows[2]["made"] == "" and rows[1]["made"].startswith("road(rows=18, cols=18, kept=0.535")
    assert [row["graph"] for row in papers.run("report", ["cpu"], repeats=1, share=0.9)][4] == "auto class"


def test_the_classes_have_the_sizes_that_the_report_used(papers):
    published = {row["graph"]: row["vertices"] for row in datasets.published("report_matrices")}
    for name, (_, size, _) in papers.REPORT.items():
        vertices = np.prod([size.get(key, 1) for key in ("n", "planes", "rows", "cols")])
        vertices *= 1 + 2.125 * size.get("kept", 0) * size.get("bends", 0)  # a road to the right, one down, diagonals
        assert vertices == pytest.approx(published[name], rel=0.1)


def test_the_sweep_keeps_the_edges_and_varies_the_columns(papers, monkeypatch):
    monkeypatch.setattr(papers, "SWEEP", (8, 16))
    rows = papers.run("sweep", ["naive", "column_block"], share=1 / (1 << 12), repeats=1, engine="sim")
    assert {row["edges"] for row in rows} == {papers.SWEEP_EDGES >> 12}
    assert {row["nonzeros_per_column"] for row in rows} == {8, 16}
    columns = {json.loads(row["knobs"]).get("columns") for row in rows if row["nonzeros_per_column"] == 16}
    assert columns == {None, 1, 27, 8}


def test_the_cache_is_measured_in_equal_shapes(papers, monkeypatch):
    monkeypatch.setattr(papers, "SHARED_PERCENT", (-1, 50))
    monkeypatch.setattr(papers, "CACHE", (2, 4))
    monkeypatch.setattr(papers, "CACHE_SHAPES", ({"threads": 32, "blocks": 4, "columns": 27},))
    rows = papers.run("cache", share=1 / (1 << 13), repeats=1, engine="sim")
    assert [(row["nonzeros_per_column"], row["shared_percent"], row["method"]) for row in rows] == [
        (nonzeros, percent, method)
        for nonzeros in (2, 4)
        for percent in (-1, 50)
        for method in ("naive", "column_block")
    ]
    shapes = [{key: json.loads(row["knobs"])[key] for key in ("threads", "blocks")} for row in rows]
    assert shapes == [{"threads": 32, "blocks": 4}] * len(rows) and json.loads(rows[1]["knobs"])["columns"] == 27


def test_table_1_is_measured_on_known_graphs_and_generated_ones(papers, graphs_folder, monkeypatch):
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    monkeypatch.setattr(papers, "GRAPH500", (18,))
    rows = papers.run("table1", engine="sim", share=2**-15, repeats=1)
    graphs = list(dict.fromkeys(row["graph"] for row in rows))
    assert graphs == ["graph500-scale3-ef16", "karate"]
    assert [row["method"] for row in rows if row["graph"] == "karate"] == [*papers.FOUR, "bitmap_auto"]
    assert {row["longest_column"] for row in rows if row["graph"] == "karate"} == {16}
    assert {row["triangles"] for row in rows if row["graph"] == "karate"} == {45}


def test_table_1_needs_no_known_graphs(papers, monkeypatch):
    monkeypatch.delenv("TCGPU_GRAPHS", raising=False)
    monkeypatch.setattr(papers, "GRAPH500", (18, 19))
    rows = papers.run("table1", ["bitmap_thread"], engine="sim", share=2**-14, repeats=1)
    assert [row["graph"] for row in rows] == ["graph500-scale4-ef16", "graph500-scale5-ef16"]


def test_the_3_trusses_of_table_1(papers, graphs_folder, monkeypatch):
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    monkeypatch.setattr(papers, "GRAPH500", (18,))
    rows = papers.run("truss3", engine="sim", share=2**-15, repeats=1)
    assert [row["graph"] for row in rows] == 2 * ["graph500-scale3-ef16"] + 2 * ["karate"]
    assert [(row["method"], row["k"]) for row in rows] == 2 * [("k_truss", 3), ("bitmaps", 3)]
    assert rows[2]["kept"] == tcgpu.k_truss(datasets.load("karate"), 3, engine="cpu").m < rows[2]["edges"]
    monkeypatch.setattr(cpu, "support", lambda graph: np.zeros(graph.m, np.int64))
    with pytest.raises(RuntimeError, match="k_truss keeps .* edges of graph500-scale3-ef16, in triangles are 0"):
        papers.run("truss3", engine="sim", share=2**-15, repeats=1)


def test_a_method_that_refuses_a_graph_or_takes_too_long_is_left_out(papers, monkeypatch):
    graph = GRAPHS["two long columns"]
    assert papers.methods_that_fit(papers.FOUR, graph, "sim") == list(papers.FOUR)
    monkeypatch.setitem(papers.LONGEST_ALONE, "bitmap_thread", 100)
    monkeypatch.setattr(bitmap_block_shared, "most_vertices", lambda threads=256: 10)
    assert papers.methods_that_fit(papers.FOUR, graph, "sim") == ["bitmap_warp", "bitmap_block_global"]


def test_a_wrong_count_in_table_1_is_an_error(papers, monkeypatch):
    monkeypatch.setattr(papers, "GRAPH500", (18,))
    monkeypatch.delenv("TCGPU_GRAPHS", raising=False)
    monkeypatch.setattr(cpu, "count", lambda graph: -1)
    with pytest.raises(RuntimeError, match="bitmap_thread counts .* on graph500-scale4-ef16, cpu -1"):
        papers.run("table1", ["bitmap_thread"], engine="sim", share=2**-14, repeats=1)


def test_trusses_are_measured_for_each_k(papers, monkeypatch):
    monkeypatch.setattr(papers, "TRUSS_KS", (3, 4))
    rows = papers.run("trusses", repeats=1, share=1e-5)
    assert [row["k"] for row in rows] == [3, 3, 4, 4] * len(papers.TRUSSES)
    assert [row["method"] for row in rows] == ["k_truss", "bitmaps"] * 2 * len(papers.TRUSSES)
    for row in rows:
        assert 0 <= row["kept"] <= row["edges"] and 0 < row["kernel_ms"] <= row["process_ms"] and row["total_ms"] > 0
    kept = int((native_peeling.numbers(CLUB) >= 4).sum())
    for row in papers.measure_truss(CLUB, (4,), repeats=1, name="club"):
        assert (row["graph"], row["kept"], row["engine"]) == ("club", kept, "sim")


def test_the_figures_are_measured_beside_a_native_thread(papers, monkeypatch):
    monkeypatch.setattr(papers, "LEVELS", (("10", (200,), ({},), True), ("12", (300,), ({"memory": "global"},), False)))
    monkeypatch.setattr(papers, "LEVELS_NATIVE", 300)
    rows = papers.run("levels", share=0.1, repeats=1)
    assert [(row["figure"], row["engine"], row["vertices"]) for row in rows] == [
        ("10", runtime.engine(), 20), ("10", "cpu", 20), ("12", runtime.engine(), 30),
    ]  # fmt: skip
    gpu, native, other = rows
    assert (
        gpu["tests"] == native["tests"] > 300 and gpu["share"] == 1 and native["share"] == 1 / -(-gpu["tests"] // 300)
    )
    assert native["triangles"] == "" and gpu["triangles"] > 0 and native["total_ms"] > native["kernel_ms"] > 0
    assert json.loads(other["knobs"])["memory"] == "global" and other["chunks"] > 0 and other["largest"] <= 30


def test_the_suite_measures_every_pair_of_lengths(papers, monkeypatch):
    monkeypatch.setattr(papers, "LENGTHS", (2, 9))
    rows = papers.run("lengths", share=1e-5, repeats=1, engine="sim")
    assert {(row["shorter"], row["longer"]) for row in rows} == {(2, 2), (2, 9), (9, 9)}
    assert all(row["asking"] > 0 and row["kernel_ms"] > 0 for row in rows)
    settings = {(row["method"], row["knobs"]) for row in rows}
    assert {method for method, _ in settings} == set(papers.LENGTHS_METHODS)
    assert len([knobs for method, knobs in settings if method == "warp_search"]) == 2, "with and without the top"


def test_the_suite_of_the_slides_measures_what_is_done_in_time(papers, monkeypatch):
    small = tuple((name, size | {"scale": 6}, runs) for name, size, runs in papers.TRICORE)
    monkeypatch.setattr(papers, "TRICORE", small)
    rows = papers.run("tricore", ["merge_path", "thread_search", "warp_search"], repeats=1, engine="sim")
    per_graph = {name: [row["method"] for row in rows if row["graph"] == name] for name, _, _ in papers.TRICORE}
    every = ["merge_path", "thread_search", "warp_search", "warp_search"]
    assert list(per_graph.values()) == [every, every, [name for name in every if name != "thread_search"]]
    assert {row["order"] for row in rows} == {"degree"}
    graph = tcgpu.generate.rmat(6, permuted=False).ordered("degree")
    assert {key: rows[0][key] for key in lengths.work(graph)} == lengths.work(graph)


def test_what_is_published_is_measured_beside_ours_in_one_shape(papers, monkeypatch):
    some = "auto class", "graph500-scale18-ef16", "rmat20", "small world 1000"
    monkeypatch.setattr(papers, "PUBLISHED", tuple(one for one in papers.PUBLISHED if one[0] in some))
    monkeypatch.setattr(papers, "PUBLISHED_TRUSSES", (18,))
    rows = papers.run("published", engine="sim", share=2**-14, repeats=1)
    by_case = {}
    for row in rows:
        by_case.setdefault(row["case"], []).append(row)
    assert {case.partition(":")[0] for case in by_case} == {
        "naive", "column_block", "report_auto", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global",
        "warp_search", "warp_search, no top", "levels", "3-truss", "4-truss",
    }  # fmt: skip
    for pair in by_case.values():
        assert [row["version"] for row in pair] == ["published", "ours"]
        knobs = [json.loads(row.get("knobs", "{}")) for row in pair]
        assert [one.pop("published", None) for one in knobs] in ([True, False], [None, None])
        assert knobs[0] == knobs[1] and pair[0].get("kept") == pair[1].get("kept")


def test_each_rung_of_the_ladder_counts_the_same(papers, monkeypatch):
    monkeypatch.setattr(papers, "LADDER", papers.LADDER[:3] + papers.LADDER[7:10])
    rows = papers.run("ladder", share=2**-14, repeats=1)
    rungs = [(row["idea"], row["method"], row["order"], json.loads(row["knobs"])) for row in rows]
    assert rungs == list(papers.LADDER) * len(papers.LADDER_GRAPHS)
    assert all(row["kernel_ms"] > 0 for row in rows)
    counted = papers.best_kernel_time
    monkeypatch.setattr(papers, "best_kernel_time", lambda *given: (counted(*given)[0], given[1]))
    with pytest.raises(RuntimeError, match="methods disagree on rmat20"):
        papers.run("ladder", share=2**-14, repeats=1)


def test_the_ladder_names_methods_and_knobs(papers):
    for _, method, order, knobs in papers.LADDER:
        tcgpu.registry.choose(method, "sim", order, knobs)


def test_a_suite_writes_its_record(papers, tmp_path, capsys):
    record = tmp_path / "report.csv"
    papers.main(["report", "--methods", "cpu", "--share", "0.001", "--repeats", "1", "--output", str(record)])
    assert len(Rows.read_csv(record)) == 8
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 9 and err == f"written to {record}\n"


@pytest.mark.parametrize(
    "words, said",
    [
        (["nothing"], "invalid choice: 'nothing'"),
        (["truss3", "--methods", "naive"], "--methods: the suite truss3 has methods of its own"),
        (["cache", "--methods", "naiv"], "no method 'naiv' (did you mean 'naive'?)"),
        (["truss3", "--engine", "cpuu"], "no engine 'cpuu' (did you mean 'cpu'?)"),
        (["trusses", "--engine", "cpu"], "method 'k_truss' runs on gpu or sim or webgpu, not on 'cpu'"),
        (["truss3", "--repeats", "0"], "repeats must be at least 1, not 0"),
        (["table1", "--share", "nan"], "share must be above 0 and at most 1, not nan"),
        ("report --share 1e-5 --methods naive --engine sim --max-seconds 1e-9".split(), "max_seconds="),
    ],
)
def test_a_suite_refuses_unknown_names(papers, capsys, words, said):
    with pytest.raises(SystemExit) as end:
        papers.main(words)
    assert end.value.code == 2 and said in capsys.readouterr().err
