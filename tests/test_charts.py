"""The modules beside the notebooks: what their charts draw, read from the axes, and which rows they use."""

import json

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from recorded import REPORT, row

import tcgpu
from helpers import calibration, charts, measured
from helpers.charts import KERNELS
from helpers.level_models import schedule
from tcgpu import datasets, records
from tcgpu.insight.gpus import GPUS
from tcgpu.kernels import order_costs
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, position, split
from tcgpu.lab.sweep import Curve

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
TABLE = {row["graph"]: row for row in datasets.published("bisson_table1")}


# ------------------------------------------------------------------------------------------------- tables and curves


def test_measured_and_published_tables_have_the_same_keys():
    found, road = measured.report_table(REPORT)
    (expected,) = [row for row in measured.published_table() if row["graph"] == "auto"]
    assert set(found) - {"made"} <= set(expected) and found["made"] == ""
    assert (found["simple_ms"], found["shared_ms"], found["speedup"]) == (3.0, 2.0, 1.5)
    assert (road["graph"], road["speedup"]) == ("road", 0.25)
    assert measured.report_table(REPORT, order="degree")[0]["speedup"] == 4


def test_times_of_every_method_by_graph():
    times = {"naive": {"auto": 3.0, "road": 1.0}, "column_block": {"auto": 2.0, "road": 4.0}, "bitmap": {"auto": 5.0}}
    assert measured.method_times(REPORT) == times
    assert set(measured.method_times(REPORT, order="degree")) == {"naive", "column_block"}


def test_speedups_in_the_record_of_the_cache_are_of_one_launch_shape():
    def of(method, ms, percent, threads, x):
        return row(method, ms) | {
            "shared_percent": percent, "knobs": json.dumps({"threads": threads}), "nonzeros_per_column": x
        }  # fmt: skip

    rows = [of("naive", 6, 50, 128, 8), of("column_block", 2, 50, 128, 8), of("naive", 1, 50, 128, 2)]
    rows += [of("column_block", 4, 50, 128, 2), of("naive", 9, 50, 512, 8), of("column_block", 9, 25, 128, 8)]
    rows += [of("naive", 2, 50, 512, 2)]
    assert measured.cache_speedups(rows, 50, 128, 128) == [(2, 0.25), (8, 3.0)]
    assert measured.cache_speedups(rows, 50, 512, 128) == [(2, 0.5), (8, 4.5)]


def test_the_figures_of_the_levels_are_distinguished_by_engine_and_knobs():
    def of(figure, engine, vertices, graph="small world", **knobs):
        about = {"figure": figure, "engine": engine, "vertices": vertices, "graph": f"{graph} {vertices}"}
        return about | {"knobs": json.dumps(knobs), "total_ms": 2.0 * vertices, "kernel_ms": 1.0}

    rows = [of(11, "gpu", 9, lanes=1), of(11, "gpu", 5, lanes=32), of(11, "cpu", 9)]
    rows += [of("11", "gpu", 7, "ca-Y", lanes=1), of("memory", "gpu", 9, lanes=1)]
    assert measured.level_times(rows, "11") == [(5, 10.0), (9, 18.0)]
    assert measured.level_times(rows, "11", lanes=1) == [(9, 18.0)]
    assert measured.level_times(rows, "11", engine="cpu", key="kernel_ms") == [(9, 1.0)]
    assert measured.level_times(rows, "memory") == [(9, 18.0)] and measured.level_times(rows, "12") == []


def test_what_an_edge_costs_by_the_lengths_of_its_columns():
    about = {"shorter": 4, "longer": 64, "asking": 1000, "kernel_ms": 2.0}
    rows = [about | {"method": method, "knobs": knobs} for method, knobs in
            (("naive", "{}"), ("warp_search", "{}"), ("warp_search", '{"cached": false}'))]  # fmt: skip
    assert measured.length_times(rows) == dict.fromkeys(
        ("naive", "warp_search", "warp_search, no top"), {(4, 64): 2000.0}
    )


def test_speed_for_the_same_money_follows_from_printed_speedups_and_prices():
    found = {(row["against"], round(row["faster"], 1)): row for row in measured.per_dollar()}
    assert list(found) == [("Green", 5.9), ("Green", 2.2), ("Shun", 2.5), ("Shun", 8.5), ("PDTL", 6.5)]
    assert found["Green", 5.9]["dearer"] == 1 and found["Shun", 8.5]["per_dollar"] == pytest.approx(85)
    assert found["PDTL", 6.5]["dearer"] == pytest.approx(6 * 1256 / (6 * 900))


def test_an_estimated_sweep_is_compared_with_the_record_of_its_gpu():
    found = measured.describe_sweep([
        Curve("ACME 1", "estimated", [(1, 0.5), (4, 2.0), (8, 3.0)]),
        Curve("ACME 2", "measured", [(1, 9.0), (4, 9.0)]),
        Curve("ACME 1", "measured", [(1, 0.4), (2, 0.5), (4, 1.0), (8, 0.9)]),
    ])  # fmt: skip
    assert found == [
        "The estimate for an ACME 1 is within a factor of 1.5 of the measured speedup at 1 of 3 places from 1 "
        "to 8 nonzeros per column, not at 4, 8.",
        "It is furthest off at 8: 3.00 instead of 0.90.",
        "The estimate is largest at 8, the measured speedup at 4.",
        "Nonzeros per column at which a speedup passes 1: 2.0 (ACME 1, estimated); none (ACME 2, measured); "
        "4.0, 4.0 (ACME 1, measured).",
    ]
    [first, *_] = measured.describe_sweep([Curve("A", kind, [(1, 2.0)]) for kind in ("estimated", "measured")])
    assert first.endswith("at 1 of 1 places from 1 to 1 nonzeros per column.")


# ------------------------------------------------------------------------------------------------------- calibration


def timed(vertices, edges, longest, **milliseconds):
    """Rows of a record about one graph, the kernels called by the last word of their names."""
    names = {name.rpartition("_")[2]: name for name in KERNELS}
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


def test_a_fit_keeps_the_papers_constants_where_the_record_allows_them():
    rows = timed(10**6, 3 * 10**6, 40, thread=9, warp=1, shared=5, **{"global": 5})
    assert calibration.fit(rows) == calibration.PAPER


def test_a_threshold_is_fitted_to_where_a_curve_goes_through_1():
    assert calibration.fit_threshold([(1, 0.5), (2, 0.9), (4, 1.1), (8, 2)]) == 4
    assert calibration.fit_threshold([(1, 1.5), (2, 2)]) == 1
    assert calibration.fit_threshold([(1, 0.5), (2, 1.1), (4, 0.5)]) == np.inf, "4 loses more than 2 gains"


def test_kernels_without_a_timing_are_not_chosen():
    rows = timed(10**6, 10**6, 5, warp=2, **{"global": 1})
    knobs = calibration.fit(rows)
    assert calibration.choices(rows, **knobs)[0]["chosen"] == "bitmap_block_global"


def test_regions_show_each_graph_once_as_its_fastest_kernel():
    knobs = calibration.PAPER
    small, large = charts.draw_regions(calibration.choices(RECORD), **knobs).axes
    assert small.get_title() == "fewer than 131,072 vertices" and large.get_title() == "at least 131,072 vertices"
    shown = [{line.get_label(): line.get_xydata() for line in panel.lines} for panel in (small, large)]
    places = {kernel: np.isfinite(np.asarray(xy, float)).all(axis=1).sum() for kernel, xy in shown[0].items()}
    assert places == dict(zip(KERNELS, (2, 1, 1, 0), strict=True))
    assert sorted(shown[1]["bitmap_block_global"].tolist()) == [[11, 5000], [12, 50]]
    assert len(small.collections) == len(large.collections) == 3, "a region for each choice"


def test_rates_are_sorted_by_kernel_and_leave_out_missing_values():
    about = {"method": "bitmap_auto", "edges": 1000, "process_ms": 4.0, "total_ms": 8.0}
    rates = measured.rates([about | {"graph": "B", "kernel_ms": 1.0}, about | {"graph": "A", "kernel_ms": 2.0}])
    assert rates == [
        {"graph": "A", "kernel": 500_000, "process": 250_000, "total": 125_000},
        {"graph": "B", "kernel": 1_000_000, "process": 250_000, "total": 125_000},
    ]
    printed = measured.published_rates()
    assert len(printed) == len(TABLE) and printed[-1]["graph"].startswith("roadNet")
    ours, theirs = charts.draw_rates({"ours": rates, "theirs": printed}).axes
    assert [label.get_text() for label in ours.get_yticklabels()] == ["A", "B"]
    assert [(line.get_label(), line.get_xydata().tolist()) for line in ours.lines[:2]] == [
        ("kernel", [[500_000, 0], [1_000_000, 1]]), ("process", [[250_000, 0], [250_000, 1]])
    ]  # fmt: skip
    kernel = theirs.lines[0].get_xdata()
    assert len(kernel) == sum(row["kernel_seconds"] is not None for row in TABLE.values())
    assert (np.diff(kernel) >= 0).all()
    of_c = {"graph": "C", "kernel": 1}
    assert measured.common_rates([rates[1], of_c], rates) == ([rates[1]], [rates[1]])


# ------------------------------------------------------------------------------------------------------------ charts


def test_levels_stand_side_by_side_and_each_chunk_lies_under_its_own():
    chunks = split(CLUB, shared_bits=299, machines=2, roots=1)
    upper, lower = charts.draw_levels(CLUB, chunks).axes
    (dots,) = upper.collections
    at = dict(zip(chunks.order.tolist(), dots.get_offsets().tolist(), strict=True))
    assert len({tuple(point) for point in at.values()}) == CLUB.n
    assert {v for v, (x, _) in at.items() if x == 1} == set(CLUB.column(0).tolist()), "the neighbours of the root"
    assert len([text for text in upper.texts if not text.get_text()]) == CLUB.m
    assert len(lower.patches) == len(chunks) and len({bar.get_facecolor() for bar in lower.patches}) == 2
    texts = zip(chunks.tests, lower.texts, strict=True)
    assert all(f"{tests:,} combinations" in text.get_text() for tests, text in texts)


def test_layouts_say_where_the_bit_of_each_stored_pair_is():
    panels = charts.draw_layouts(LAYOUTS, position, n=4).axes
    shown = {panel.get_title(): [int(text.get_text()) for text in panel.texts] for panel in panels}
    assert shown == {layout: list(range(size)) for layout, size in (("matrix", 16), ("utm", 10), ("s-utm", 6))}


def test_half_warps_are_drawn_with_the_segments_and_words_that_they_read():
    lanes = np.arange(16)
    apart, side = charts.draw_half_warps({"apart": 128 * lanes[::-1], "side by side": 256 + 4 * lanes}).axes
    assert apart.get_title() == "apart: 16 segments of 128 bytes"
    assert side.get_title() == "side by side: 1 segment of 128 bytes"
    ends = np.array([line.get_xdata() for line in apart.lines])
    assert (np.diff(ends[:, 0]) > 0).all() and (np.diff(ends[:, 1]) < 0).all()
    assert len(side.patches) == 1 + 16 and len({patch.get_x() for patch in side.patches[1:]}) == 16


def test_memory_and_queues_name_the_chunks_at_each_partition():
    one, each = charts.draw_memory({"one": {0: [0, 1], 1: [1]}, "each": {0: [0], 9: [1]}}, 8).axes
    assert [text.get_text() for text in one.texts] == ["0, 1", "1"] + 6 * [""]
    assert [text.get_text() for text in each.texts] == ["0"] + 8 * [""] + ["1"] + 6 * [""]
    colours = [to_rgba(charts.ORANGE), to_rgba(charts.BLUE), to_rgba("white")]
    assert [patch.get_facecolor() for patch in one.patches[:3]] == colours

    (panel,) = charts.draw_queues({"camping": {0: [3, 4, 5], 1: []}}, 2).axes
    assert panel.get_title() == "camping: 3 transactions, the longest queue 3"
    assert [text.get_text() for text in panel.texts] == ["3", "4", "5"]
    assert [patch.get_facecolor() for patch in panel.patches] == [to_rgba(charts.BLUE)] * 2 + [to_rgba(charts.ORANGE)]
    assert panel.lines[0].get_ydata()[0] == 1.5


def test_schedules_show_every_job_on_its_machine_and_the_mean():
    schedules = {order: schedule([1, 1, 4, 2], 2, order) for order in ("given", "longest")}
    given, longest = charts.draw_schedules(schedules).axes
    jobs = [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in given.patches]
    assert jobs == [(0, 0, 1), (1, 0, 1), (0, 1, 4), (1, 1, 2)]
    assert max(bar.get_x() + bar.get_width() for bar in longest.patches) == 4
    assert [list(ax.lines[0].get_xdata()) for ax in (given, longest)] == [[4, 4]] * 2
    assert "25.0% above" in given.get_title() and "0.0% above" in longest.get_title()

    (uneven,) = charts.draw_schedules({"one long job": schedule([1, 1, 4], 2, "given")}).axes
    assert "66.7% above the mean" in uneven.get_title() and list(uneven.lines[0].get_xdata()) == [3, 3]


def test_a_timeline_shows_each_piece_where_it_began_and_ended():
    (panel,) = charts.draw_timeline({"copies": [(0, 2), (3, 4)], "kernels": [(2.5, 7)], "nothing": []}).axes
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in panel.patches] == [
        (0, 0, 2), (0, 3, 1), (1, 2.5, 4.5),
    ]  # fmt: skip
    assert [label.get_text() for label in panel.get_yticklabels()] == ["copies", "kernels", "nothing"]


def test_time_lines_share_their_lanes_and_point_out_one():
    timelines = {name: {"one": [(0, 2)], "other": [(2, 3), (4, 5)]} for name in ("A", "B", "C")}
    picture = charts.draw_timelines(timelines, orange="other")
    panels = [ax for ax in picture.axes if ax.has_data()]
    assert [ax.get_title() for ax in panels] == ["A", "B", "C"] and len(picture.axes) == 4
    for ax in panels:
        drawn = [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in ax.patches]
        assert drawn == [(0, 0, 2), (1, 2, 1), (1, 4, 1)] and ax.yaxis_inverted()
        assert [to_hex(bar.get_facecolor()) for bar in ax.patches] == [charts.BLUE, charts.ORANGE, charts.ORANGE]


def test_bars_stand_in_groups_with_their_numbers_and_differ_by_more_than_colour():
    picture = charts.draw_bars({"one": {"A": 1.0, "B": 2500.0}, "two": {"A": 0.125, "B": None}}, level=1)
    (ax,) = picture.axes
    drawn = [[(round(bar.get_x() + 0.2, 9), bar.get_height()) for bar in bars] for bars in ax.containers]
    assert drawn == [[(-0.2, 1), (0.8, 2500)], [(0.2, 0.125)]]
    assert {text.get_text() for text in ax.texts} == {"1", "0.12", "2,500"}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["A", "B"]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    assert [list(line.get_ydata()) for line in ax.lines] == [[1, 1]]


def test_curves_differ_by_marker_and_dash_and_their_axes_have_plain_numbers():
    curves = {name: [(1, 0.5), (k + 2, 2)] for k, name in enumerate("abcd")}
    picture = charts.draw_curves(curves, xlabel="across", ylabel="up")
    (ax,) = picture.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("across", "up")
    assert {line.get_label(): [tuple(xy) for xy in line.get_xydata()] for line in ax.lines} == curves
    assert len({(line.get_marker(), line.get_linestyle()) for line in ax.lines}) == 4
    picture.draw_without_rendering()
    assert {"1", "2", "5"} <= {label.get_text() for label in ax.get_xticklabels()}
    assert charts.draw_curves({"linear": [(0, 0), (1, 1)], "none": []}, log="").axes[0].get_xscale() == "linear"


def test_the_reports_charts_show_every_machine():
    table = [
        {"graph": "auto", "vertices": 1, "edges": 7, "simple_ms": 2.0, "shared_ms": 1.0, "speedup": 2.0},
        {"graph": "coPapersCiteseer", "vertices": 1, "edges": 37, "simple_ms": 9.0, "shared_ms": 3.0, "speedup": 3.0},
    ]
    times = charts.draw_times({"X": table, "Y": table[:1]})
    assert [ax.get_title() for ax in times.axes] == ["X", "Y"]
    assert [len(ax.patches) for ax in times.axes] == [4, 2]
    simple, shared = ([bar.get_height() for bar in bars] for bars in times.axes[0].containers)
    assert (simple, shared) == ([2, 9], [1, 3])
    assert [text.get_text() for text in times.axes[0].get_legend().get_texts()][0].startswith("simple")
    speedups = charts.draw_speedups({"X": table, "Y": table[:1]}).axes[0]
    assert sorted(bar.get_height() for bar in speedups.patches) == [2, 2, 3]


def test_a_gpu_has_lanes_caches_and_a_request_of_four_sectors():
    gpu = GPUS["NVIDIA H200"]
    (ax,) = charts.draw_gpu(gpu).axes
    of = {color: [patch for patch in ax.patches if patch.get_facecolor() == to_rgba(color)]
          for color in (charts.BLUE, charts.ORANGE)}  # fmt: skip
    assert len(of[charts.ORANGE]) == 32 + 4 * 8, "the lanes of one warp, and the words of its request"
    assert len(of[charts.BLUE]) == 7 * 32 + 10 * 8
    said = "\n".join(text.get_text() for text in ax.texts)
    sizes = "132 SMs", "L1 cache: 256 KB", "L2 cache of all SMs: 60 MB", "141 GB, 4,800 GB/s"
    for fact in (*sizes, "answers in 349 ns", "4 sectors"):
        assert fact in said


def test_lanes_show_the_longest_and_fill_up_with_waiting():
    mesh, even = charts.draw_lanes({"mesh": np.arange(32), "even": np.full(32, 3)}).axes
    assert sum(bar.get_height() for bar in mesh.patches) == 31 * 32
    waits, works = mesh.containers
    assert [bar.get_y() for bar in waits] == [bar.get_height() for bar in works] == list(range(32))
    assert [to_hex(bar.get_facecolor()) for bar in works] == [charts.BLUE] * 31 + [charts.ORANGE]
    assert mesh.get_title() == "mesh\n50% of its steps are used" and "100%" in even.get_title()


def test_peeling_shows_removed_edges_and_leaves_them_out_of_the_next_round():
    numbers = np.zeros((2, CLUB.m), int)
    numbers[:, :10] = 2
    numbers[1, 10:15] = 3
    first, second = charts.draw_peeling(CLUB, numbers).axes
    stays, goes = (len(lines.get_segments()) for lines in first.collections[:2])
    assert (stays, goes) == (CLUB.m - 10, 10) and "10 of 78 edges go" in first.get_title()
    stays, goes = (len(lines.get_segments()) for lines in second.collections[:2])
    assert (stays, goes) == (CLUB.m - 15, 5) and "5 of 68 edges go" in second.get_title()


def test_truss_numbers_have_different_colours_and_are_counted():
    numbers = tcgpu.truss_numbers(CLUB)
    (ax,) = charts.draw_truss_numbers(CLUB, numbers).axes
    assert len(ax.collections[0].get_segments()) == CLUB.m
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said == [f"{k}: {np.count_nonzero(numbers == k)} edges" for k in np.unique(numbers)]


def test_trusses_are_a_line_a_graph():
    rows = [{"graph": name, "k": k, "total_ms": 5.0 * k, "gpu_name": "GPU X"} for name in "AB" for k in (3, 30, 100)]
    (ax,) = charts.draw_trusses(rows).axes
    assert [list(line.get_xdata()) for line in ax.lines] == [[3, 30, 100]] * 2 and "GPU X" in ax.get_title()


def test_a_roofline_has_a_dot_a_kernel_under_a_roof():
    """Two kernels: one that moves much for what it computes, one that computes."""
    facts = {"gpu_sms": 100, "cycles_per_second": 2e9, "copy_bytes_per_second": 4e12, "dram_write_bytes": 0}
    rows = [
        facts | {"kernel": "moves", "kernel_ms": 1, "instructions": 10**6, "dram_read_bytes": 10**8, "ncu_ns": 10**5},
        facts | {"kernel": "counts", "kernel_ms": 4, "instructions": 10**8, "dram_read_bytes": 10**6, "ncu_ns": 10**6},
    ]
    (ax,) = charts.draw_roofline(rows).axes
    roof, moves, counts = ax.lines
    assert max(roof.get_ydata()) == 800 and roof.get_ydata()[0] < 800
    assert [text.get_text() for text in ax.texts] == ["moves", "counts"]
    assert moves.get_xydata().round(4).tolist() == [[0.01, 10]]
    assert counts.get_ydata().tolist() == [100] and counts.get_markersize() > moves.get_markersize()


def test_each_kernel_is_in_one_step_of_a_count():
    names = [kernel for kernels in measured.STEPS.values() for kernel in kernels.split()]
    assert len(set(names)) == len(names) and not {*measured.SORT, *measured.SCAN} & set(names)
    launches = ["find_extent", "pack_degrees", "sort", "number_vertices", "pack_edges", "sort", "sum_parts"]
    assert measured.launch_steps([*launches, "write_starts", "unpack", "hub_kernel"]) == [
        "extent and costs", *["ranks"] * 3, *["keys and their sort"] * 2, *["columns"] * 3, "counting"
    ]  # fmt: skip
    with pytest.raises(LookupError, match="'spin', launch 1, is in no step"):
        measured.launch_steps(["find_extent", "spin", "hub_kernel"])
    for nowhere in (["sort", "hub_kernel"], ["hub_kernel", "sum_parts"]):
        with pytest.raises(LookupError, match="in no step"):
            measured.launch_steps(nowhere)


def test_a_time_line_has_all_launches_and_what_is_between_them():
    times = (("find_extent", 1.0, 2.0), ("sum_parts", 2.5, 3.0), ("sort_columns", 3.0, 5.0), ("merge_kernel", 6.0, 7.0))
    rows = [
        {"graph": "flat", "place": place, "kernel": kernel, "begin_ms": begin, "end_ms": end}
        | {"whole_ms": 8.0, "gpu_name": "GPU X"}
        for place, (kernel, begin, end) in enumerate(times)
    ]
    lanes = measured.timelines(rows[::-1])
    assert list(lanes["flat"]) == [*measured.STEPS, measured.BETWEEN]
    assert lanes["flat"]["columns"] == [(2.5, 3.0), (3.0, 5.0)] and lanes["flat"]["ranks"] == []
    assert lanes["flat"][measured.BETWEEN] == [(0, 1.0), (2.0, 2.5), (3.0, 3.0), (5.0, 6.0), (7.0, 8.0)]
    table = {row["step"]: row["flat"] for row in measured.step_times(lanes)}
    assert (table["columns"], table["all launches"], table[measured.BETWEEN], table["whole"]) == (2.5, 4.5, 3.5, 8.0)
    head, said = measured.describe_timelines(rows, {"GPU X": [{"graph": "flat", "device_total_ms": 7.5}]})
    assert head == "On one GPU X:" and "alone take 4.50 of 8.00 ms, 56%. The longest step: columns, 2.50 ms." in said
    assert "Of 5 gaps, half are at most 1000.0 µs long. Without events the whole takes 7.50 ms." in said


def test_the_recorded_time_lines_are_as_notebook_8_says():
    rows = records.reference("timeline")
    lanes = measured.timelines(rows)
    kernels = {graph: [row["kernel"] for row in rows if row["graph"] == graph] for graph in lanes}
    assert (min(map(len, kernels.values())), max(map(len, kernels.values()))) == (15, 40)
    ms = {row["step"]: row for row in measured.step_times(lanes)}
    launched = list(measured.STEPS)
    for graph in ("rmat20", "rmat22"):
        assert {*sorted(launched, key=lambda step: ms[step][graph])[-2:]} == {"keys and their sort", "counting"}
        assert kernels[graph].count("sort") == 3  # of degrees, and of keys of both lengths
    for flat in ("mesh 2048 x 2048", "road-like 2048 x 2048"):
        assert {"scatter_rows", "sort_columns"} < {*kernels[flat]}
        assert not any(lanes[flat][step] for step in ("ranks", "keys and their sort", "set-up"))
    assert {"pack_edges", "unpack"} < {*kernels["overlapping cliques"]}
    assert "number_vertices" not in kernels["overlapping cliques"]
    assert kernels["overlapping cliques"].count("measure_vertices") == 2
    for own in lanes.values():
        assert np.median(np.diff(own[measured.BETWEEN])) < 7e-3


def order_row(kind, merged, pairs, natural, degree, **others):
    """A row of the record "orders" with four sums."""
    names = (*order_costs.NATURAL, *order_costs.DEGREE, *order_costs.LONGEST)
    sums = dict.fromkeys(names, 0) | {"merged": merged, "distant": 1, "pairs": pairs, "merged by degree": 4 * merged}
    sums["looked up"] = 5 * merged
    facts = {"vertices": 10, "edges": 0, "max_column": 5, "words": 0, "sums": json.dumps(sums), "merged ms": 9.0}
    facts["looked ms"] = 8.0
    return {"kind": kind, "natural 0 ms": natural, "natural 32 ms": "", "degree ms": degree} | facts | others


def test_orders_are_estimated_from_sums_and_held_against_the_times(monkeypatch):
    for name, ns in (("NATURAL_NS", 1.0), ("MERGED_NS", 1.0), ("LOOKED_NS", 1.0), ("DEGREE_NS", 2.0)):
        table = dict.fromkeys(getattr(order_costs, name), ns)
        free = dict.fromkeys({"begin", "distant"} & set(table), 0.0)
        monkeypatch.setattr(order_costs, name, table | free)
    rows = [
        order_row("right", 10**6, 10**6, 3.0, 6.0),
        order_row("wrong", 10**6, 10**6, 3.0, 2.0),
        order_row("wider", 10**6, 10**6, 3.0, 6.0, **{"natural 32 ms": 2.0}),
    ]
    sums = measured.order_sums(rows, ["wrong"])
    assert [(row["way"], row["sum"], row["count"], row["ms"]) for row in sums] == [
        ("natural", "merged", "1,000,000", 1.0), ("merged", "merged", "4,000,000", 4.0),
        ("looked", "looked up", "5,000,000", 5.0), ("degree", "all pairs", "1,000,000", 2.0),
    ]  # fmt: skip
    times = measured.order_times(rows)
    assert [(row["kind"], row["wrong"], row["slower"]) for row in times] == [
        ("right", False, 1.0), ("wrong", True, 1.5), ("wider", False, 1.5)
    ]  # fmt: skip
    assert times[0]["estimated"] == {"natural": 1.0, "merged": 4.0, "looked": 5.0, "degree": 2.0}

    left, right = charts.draw_orders(times).axes
    assert [line.get_xydata().tolist() for line in left.lines[:4]] == [[[1, 3]], [[4, 9]], [[5, 8]], [[2, 6]]]
    assert [line.get_xydata().tolist() for line in right.lines[:2]] == [[[0.5, 0.5]], [[0.5, 1.5]]]
    assert [line.get_color() for line in right.lines[:3]] == [charts.BLUE, charts.ORANGE, charts.BLUE]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["wrong"]


def test_lengths_are_cells_with_their_numbers_blue_where_the_first_wins():
    ratios = {"one over another": {(1, 1): 0.25, (1, 64): 8, (64, 64): 2.5}, "same": {(4, 4): 1}}
    first, second = charts.draw_lengths(ratios).axes
    numbers = {text.get_position(): text.get_text() for text in first.texts}
    assert numbers == {(0, 0): "0.25", (1, 0): "8", (1, 1): "2.5"}
    cells = first.images[0].get_array()
    assert cells[0].tolist() == [0.25, 8] and np.isnan(cells.filled(np.nan)[1, 0])
    assert [to_hex(first.images[0].cmap(end)) for end in (0.0, 1.0)] == [charts.ORANGE, charts.BLUE]
    assert first.images[0].norm([1]) == 0.5 and [tick.get_text() for tick in first.get_xticklabels()] == ["1", "64"]
    assert second.get_title() == "same" and len(second.texts) == 1


def test_scaling_has_points_that_were_measured_simulated_and_published():
    """A line in one colour for what was measured and simulated of one graph."""
    measured = {"A": [(1, 1), (4, 3.7)], "B": [(1, 1), (2, 1.9)]}
    (ax,) = charts.draw_scaling(measured, {"A": [(8, 7), (64, 40)]}, {"slides": [(6, 4.4)]}, title="GPU X").axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["ideal", "A, simulated", "A, measured", "B, measured", "slides"]
    assert lines["ideal"].get_xydata().tolist() == [[1, 1], [64, 64]]
    assert lines["A, simulated"].get_color() == lines["A, measured"].get_color() != lines["B, measured"].get_color()
    assert lines["slides"].get_xydata().tolist() == [[6, 4.4]] and ax.get_title() == "GPU X"
