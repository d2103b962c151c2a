"""Records of GPUs: which are found, and that the report's tables and curves are taken from the right rows."""

import json

import pytest

from tcgpu import bench, records


def row(method, milliseconds, *, graph="auto class", order="natural", columns=None, nonzeros=4.0, date="2026-01-01"):
    """A row as `measure` makes it on a GPU, as far as it is read."""
    knobs = {"threads": 128} | ({} if columns is None else {"columns": columns})
    facts = {"vertices": 25, "edges": 100, "triangles": 7, "nonzeros_per_column": nonzeros}
    where = {"engine": "gpu", "gpu_name": "GPU X", "date": date}
    return {"graph": graph, "method": method, "order": order, "knobs": json.dumps(knobs)} | facts | where | {
        "kernel_ms": milliseconds
    }  # fmt: skip


REPORT = bench.Rows([
    row("naive", 3.0), row("column_block", 2.0, columns=27), row("bitmap", 5.0),
    row("naive", 1.0, graph="road class"), row("column_block", 4.0, graph="road class", columns=27),
    row("naive", 8.0, order="degree"), row("column_block", 2.0, order="degree", columns=27),
])  # fmt: skip
SWEEP = bench.Rows([
    row("naive", 1.0, graph="few"), row("column_block", 4.0, graph="few", columns=1),
    row("column_block", 2.0, graph="few", columns=27), row("column_block", 1.0, graph="few", columns=32),
    row("naive", 9.0, graph="many", nonzeros=64.0), row("column_block", 3.0, graph="many", nonzeros=64.0, columns=2),
])  # fmt: skip


@pytest.fixture
def measured(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "data_path", lambda *parts: tmp_path.joinpath(*parts[1:]))
    return tmp_path


def test_records_are_of_gpus_and_the_latest_of_each(measured):
    on_cpu = bench.Rows(entry | {"engine": "cpu"} for entry in REPORT)
    later = bench.Rows(entry | {"date": "2026-02-02"} for entry in REPORT)
    other = bench.Rows(entry | {"gpu_name": "GPU Y"} for entry in REPORT)
    for name, rows in {"report-a": later, "report-b": REPORT, "report-c": other, "report-d": on_cpu,
                       "sweep-a": SWEEP}.items():  # fmt: skip
        rows.write_csv(measured / f"{name}.csv")
    assert records.records("report") == {"GPU X": later, "GPU Y": other}
    assert records.records("sweep") == {"GPU X": SWEEP}
    assert records.latest("report") == later
    assert records.records("nothing") == {}
    with pytest.raises(LookupError, match="no record of 'nothing' .* `tcgpu bench nothing`"):
        records.latest("nothing")


def test_measured_and_published_tables_have_the_same_keys():
    found, road = records.report_table(REPORT)
    (expected,) = [row for row in records.published_table() if row["graph"] == "auto"]
    assert set(found) <= set(expected)
    assert (found["simple_ms"], found["shared_ms"], found["speedup"]) == (3.0, 2.0, 1.5)
    assert (road["graph"], road["speedup"]) == ("road", 0.25)
    assert records.report_table(REPORT, order="degree")[0]["speedup"] == 4


def test_times_of_every_method_by_graph():
    times = {"naive": {"auto": 3.0, "road": 1.0}, "column_block": {"auto": 2.0, "road": 4.0}, "bitmap": {"auto": 5.0}}
    assert records.method_times(REPORT) == times
    assert set(records.method_times(REPORT, order="degree")) == {"naive", "column_block"}


def test_curves_are_of_one_number_of_columns():
    assert records.curve(SWEEP, 1) == [(4.0, 0.25)]
    assert records.curve(SWEEP, 27) == [(4.0, 0.5)]
    assert records.curve(SWEEP, "fitting") == [(4.0, 1.0), (64.0, 3.0)]
    assert records.curve(SWEEP, 1, order="degree") == []
    assert records.nanoseconds(SWEEP, "naive") == [(4.0, 10_000.0), (64.0, 90_000.0)]
    assert records.nanoseconds(SWEEP, "column_block", 27) == [(4.0, 20_000.0)]


def test_the_best_launch_shape_counts_while_the_cache_shrinks():
    rows = [row("naive", ms) | {"shared_percent": percent} for percent, ms in ((50, 4), (50, 3), (0, 2), (-1, 1))]
    assert records.cache_curve(rows, "naive") == [(0, 2), (50, 3)]
    assert records.cache_curve(rows, "naive", order="degree") == records.cache_curve(rows, "column_block") == []


def test_curves_cross_where_a_straight_line_between_logarithms_does():
    assert records.crossings([(1, 0.5), (4, 2.0)]) == pytest.approx([2.0])
    assert records.crossings([(1, 0.5), (2, 1.0), (4, 2.0), (8, 0.5)]) == pytest.approx([2.0, 4 * 2**0.5])
    assert records.crossings([(1, 2.0), (2, 3.0)]) == records.crossings([(1, 0.5)]) == records.crossings([]) == []


def test_the_figures_of_the_levels_are_told_apart_by_engine_and_knobs():
    def of(figure, engine, vertices, graph="small world", **knobs):
        about = {"figure": figure, "engine": engine, "vertices": vertices, "graph": f"{graph} {vertices}"}
        return about | {"knobs": json.dumps(knobs), "total_ms": 2.0 * vertices, "kernel_ms": 1.0}

    rows = [of(11, "gpu", 9, lanes=1), of(11, "gpu", 5, lanes=32), of(11, "cpu", 9)]
    rows += [of("11", "gpu", 7, "ca-Y", lanes=1), of("memory", "gpu", 9, lanes=1)]
    assert records.level_times(rows, "11") == [(5, 10.0), (9, 18.0)]
    assert records.level_times(rows, "11", lanes=1) == [(9, 18.0)]
    assert records.level_times(rows, "11", engine="cpu", key="kernel_ms") == [(9, 1.0)]
    assert records.level_times(rows, "memory") == [(9, 18.0)] and records.level_times(rows, "12") == []


def test_counts_of_all_suites_are_found_by_machine_and_graph(measured):
    """Of a method and an order the best setting; what counted nothing is left out, the native engine is not."""
    times = {"process_ms": 1.0, "total_ms": 1.0}
    slow, fast = row("naive", 3.0), row("naive", 2.0, columns=5)
    native, nothing = row("cpu", 5.0) | {"engine": "cpu"}, row("levels", 1.0) | {"triangles": ""}
    bench.Rows(r | times for r in (slow, fast, native, nothing)).write_csv(measured / "report-gpu-x.csv")
    bench.Rows([row("bitmap_warp", 4.0) | times]).write_csv(measured / "table1-gpu-x.csv")
    found = records.counts()
    assert list(found) == ["GPU X"] and list(found["GPU X"]) == ["auto class"]
    rows = found["GPU X"]["auto class"]
    assert [(r["method"], r["kernel_ms"]) for r in rows] == [("naive", 2.0), ("cpu", 5.0), ("bitmap_warp", 4.0)]


def test_what_is_recorded_here_has_all_three_timings():
    rows = [r for graphs in records.counts().values() for found in graphs.values() for r in found]
    assert rows and all(0 < r["kernel_ms"] <= r["process_ms"] <= r["total_ms"] for r in rows)


def test_what_an_edge_costs_by_the_lengths_of_its_columns():
    about = {"shorter": 4, "longer": 64, "asking": 1000, "kernel_ms": 2.0}
    rows = [about | {"method": method, "knobs": knobs} for method, knobs in
            (("naive", "{}"), ("warp_search", "{}"), ("warp_search", '{"cached": false}'))]  # fmt: skip
    assert records.length_times(rows) == dict.fromkeys(
        ("naive", "warp_search", "warp_search, no top"), {(4, 64): 2000.0}
    )


def test_speed_for_the_same_money_follows_from_printed_speedups_and_prices():
    found = {(row["against"], round(row["faster"], 1)): row for row in records.per_dollar()}
    assert list(found) == [("Green", 5.9), ("Green", 2.2), ("Shun", 2.5), ("Shun", 8.5), ("PDTL", 6.5)]
    assert found["Green", 5.9]["dearer"] == 1 and found["Shun", 8.5]["per_dollar"] == pytest.approx(85)
    assert found["PDTL", 6.5]["dearer"] == pytest.approx(6 * 1256 / (6 * 900))
