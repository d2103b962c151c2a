"""What was measured: the records of GPUs in `data/measured`, and what the report's charts take from them.

A table is a list of dicts with the keys of `data/published/report_matrices.csv`, so that published and measured numbers
are drawn and printed by the same functions. Times are of the kernels, in natural order, where nothing else is said.
"""

import json
import math

from tcgpu.bench import Rows, fitting_columns
from tcgpu.datasets import data_path, published

COUNTS = ("report", "table1", "levels", "gpu")  # suites that time methods on whole graphs
CLASS = " class"  # what `measure_report` calls a generated graph, after the name of the report's


def records(suite):
    """Every record of a suite that was made on a GPU, by date: the GPU's name -> Rows; of two of a GPU, the later."""
    found = [Rows.read_csv(path) for path in data_path("measured").glob(f"{suite}-*.csv")]
    by_date = sorted((rows for rows in found if rows and rows[0]["engine"] == "gpu"), key=_date)
    of_gpu = {rows[0]["gpu_name"]: rows for rows in by_date}
    return dict(sorted(of_gpu.items(), key=lambda item: _date(item[1])))


def latest(suite):
    """The latest record of a suite that was made on a GPU; every row names it."""
    found = list(records(suite).values())
    if not found:
        raise LookupError(f"no record of {suite!r} was made on a GPU; `tcgpu bench {suite}` makes one")
    return found[-1]


def counts():
    """Every recorded count with its three timings: the GPU's name -> graph -> Rows, the best of a method and an order.

    What the native engine took on the same machine is among them.
    """
    best = {}
    for suite in COUNTS:
        for machine, rows in records(suite).items():
            for row in (row for row in rows if row["triangles"] != ""):
                place = best.setdefault(machine, {}).setdefault(row["graph"], {})
                way = row["method"], row["engine"], row["order"]
                place[way] = min(row, place.get(way, row), key=lambda row: row["kernel_ms"])
    return {machine: {graph: Rows(ways.values()) for graph, ways in found.items()} for machine, found in best.items()}


def published_table():
    """The report's table as it is printed, with the facts of the matrices beside it."""
    return published("report_matrices")


def report_table(rows, *, order="natural", key="kernel_ms"):
    """The report's table out of the rows of `measure_report`: `naive` is its simple, `column_block` its shared."""
    times = method_times(rows, order=order, key=key)
    table = []
    for row in rows:
        if (row["method"], row["order"]) == ("naive", order):
            graph = row["graph"].removesuffix(CLASS)
            simple, shared = times["naive"][graph], times["column_block"][graph]
            facts = {name: row[name] for name in ("vertices", "edges", "triangles", "nonzeros_per_column")}
            measured = {"simple_ms": simple, "shared_ms": shared, "speedup": simple / shared}
            table.append({"graph": graph, **facts, **measured})
    return table


def method_times(rows, *, order="natural", key="kernel_ms"):
    """method -> graph -> milliseconds, out of the rows of `measure_report`."""
    times = {}
    for row in rows:
        if row["order"] == order:
            times.setdefault(row["method"], {})[row["graph"].removesuffix(CLASS)] = row[key]
    return times


def rates(rows, method="bitmap_auto"):
    """Edges a second out of rows of `measure_table1` or, of "bitmaps", `measure_truss3`: a dict a graph, the fastest
    kernel last, as in Figure 6."""
    found = []
    for row in rows:
        if row["method"] == method:
            times = {name: row["edges"] / row[f"{name}_ms"] * 1e3 for name in ("kernel", "process", "total")}
            found.append({"graph": row["graph"], **times})
    return sorted(found, key=lambda rate: rate["kernel"])


def published_rates(method="bitmap_auto"):
    """The same out of Table I as it is printed; None where a time could not be read."""
    found, half = [], "truss_" if method == "k_truss" else ""
    for row in published("bisson_table1"):
        times = {name: row[f"{half}{name}_seconds"] for name in ("kernel", "process", "total")}
        found.append({"graph": row["graph"], **{name: t and row["edges"] / t for name, t in times.items()}})
    return sorted(found, key=lambda rate: rate["kernel"] or rate["process"] or 0)


def curve(rows, columns, *, order="natural", key="kernel_ms"):
    """How much faster `column_block` is than `naive` in the rows of `measure_sweep`: [(nonzeros per column, speedup)].

    columns: how many it takes at a time: 1, 27, or "fitting", as many as give every thread a nonzero.
    """
    shared = dict(nanoseconds(rows, "column_block", columns, order=order, key=key))
    return [(x, simple / shared[x]) for x, simple in nanoseconds(rows, "naive", order=order, key=key) if x in shared]


def nanoseconds(rows, method, columns=None, *, order="natural", key="kernel_ms"):
    """What an edge costs a method in the rows of `measure_sweep`: [(nonzeros per column, nanoseconds an edge)]."""
    points = []
    for row in rows:
        wanted = fitting_columns(row["nonzeros_per_column"]) if columns == "fitting" else columns
        if (row["method"], row["order"]) == (method, order) and json.loads(row["knobs"]).get("columns") == wanted:
            points.append((row["nonzeros_per_column"], row[key] * 1e6 / row["edges"]))
    return sorted(points)


def cache_curve(rows, method, *, order="natural", key="kernel_ms"):
    """The best time of a method in the rows of `measure_cache`: [(percent of the fast memory kept from the L1, ms)]."""
    best = {}
    for row in rows:
        if (row["method"], row["order"]) == (method, order) and row["shared_percent"] >= 0:
            percent = row["shared_percent"]
            best[percent] = min(row[key], best.get(percent, math.inf))
    return sorted(best.items())


def level_times(rows, figure, *, engine="gpu", key="total_ms", **knobs):
    """Times of one figure's small worlds in the rows of `measure_levels`: [(vertices, milliseconds)].

    Of several settings, those rows whose knobs have these values.
    """
    points = []
    for row in rows:
        of_figure = (str(row["figure"]), row["engine"]) == (figure, engine) and row["graph"].startswith("small world")
        if of_figure and knobs.items() <= json.loads(row["knobs"]).items():
            points.append((row["vertices"], row[key]))
    return sorted(points)


def length_times(rows):
    """What an edge costs in the rows of `measure_lengths`: method -> {(m, n): nanoseconds an edge that asks}.

    `warp_search` without the top of its search tree is a method of its own here, "warp_search, no top".
    """
    times = {}
    for row in rows:
        name = row["method"] if json.loads(row["knobs"]).get("cached", True) else f"{row['method']}, no top"
        times.setdefault(name, {})[row["shorter"], row["longer"]] = row["kernel_ms"] * 1e6 / row["asking"]
    return times


def per_dollar():
    """What TriCore's slides say of speed and price, put together: for each comparison whose processors they name, how
    many times faster theirs was, how many times dearer, and how many times faster for the same money."""
    price = {row["processor"]: row["dollars"] for row in published("tricore_prices")}
    found = []
    for row in published("tricore_speedups"):
        if row["ours"]:
            dearer = row["ours_count"] * price[row["ours"]] / (row["theirs_count"] * price[row["theirs"]])
            machines = f"{row['ours_count']} x {row['ours']} over {row['theirs_count']} x {row['theirs']}"
            found.append({"against": row["against"], "machines": machines, "faster": row["times_faster"],
                          "dearer": dearer, "per_dollar": row["times_faster"] / dearer})  # fmt: skip
    return found


def crossings(points, level=1.0):
    """Where a curve, straight between its points on logarithmic axes, goes through `level`: a list of x."""
    found = []
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if (y < level) != (next_y < level):
            part = math.log(level / y) / math.log(next_y / y)
            found.append(x * (next_x / x) ** part)
    return found


def _date(rows):
    return rows[0]["date"]
