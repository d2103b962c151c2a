"""What was measured: the records of GPUs in `data/measured`, and what the report's charts take from them.

A table is a list of dicts with the keys of `data/published/report_matrices.csv`, so that published and measured numbers
are drawn and printed by the same functions. Times are of the kernels, in natural order, where nothing else is said.
"""

import json
import math

from tcgpu.bench import Rows, fitting_columns
from tcgpu.datasets import data_path, published

CLASS = " class"  # what `measure_report` calls a generated graph, after the name of the report's


def records(suite):
    """Every record of a suite that was made on a GPU: the machine's name -> Rows; of two for a machine, the later."""
    found = [Rows.read_csv(path) for path in sorted(data_path("measured").glob(f"{suite}-*.csv"))]
    by_date = sorted((rows for rows in found if rows and rows[0]["engine"] == "gpu"), key=lambda rows: rows[0]["date"])
    return {rows[0]["gpu_name"]: rows for rows in by_date}


def published_table():
    """The report's table as it is printed, with the facts of the matrices beside it."""
    return published("report_matrices")


def report_table(rows, *, order="natural", key="kernel_ms"):
    """The report's table out of the rows of `measure_report`: `naive` is its simple, `column_block` its shared."""
    table = []
    for row in rows:
        if row["method"] == "naive" and row["order"] == order:
            shared = _of(rows, "column_block", row)[0]
            facts = {name: row[name] for name in ("vertices", "edges", "triangles", "nonzeros_per_column")}
            times = {"simple_ms": row[key], "shared_ms": shared[key], "speedup": row[key] / shared[key]}
            table.append({"graph": row["graph"].removesuffix(CLASS), **facts, **times})
    return table


def method_times(rows, *, order="natural", key="kernel_ms"):
    """method -> graph -> milliseconds, out of the rows of `measure_report`."""
    times = {}
    for row in rows:
        if row["order"] == order:
            times.setdefault(row["method"], {})[row["graph"].removesuffix(CLASS)] = row[key]
    return times


def curve(rows, columns, *, order="natural", key="kernel_ms"):
    """How much faster `column_block` is than `naive` in the rows of `measure_sweep`: (nonzeros per column, speedup).

    columns: how many it takes at a time: 1, 27, or "fitting", as many as give every thread a nonzero.
    """
    points = []
    for row in rows:
        if row["method"] == "naive" and row["order"] == order:
            nonzeros = row["nonzeros_per_column"]
            wanted = fitting_columns(nonzeros) if columns == "fitting" else columns
            taken = [shared for shared in _of(rows, "column_block", row) if _columns(shared) == wanted]
            points += [(nonzeros, row[key] / shared[key]) for shared in taken]
    return sorted(points)


def crossings(points, level=1.0):
    """Where a curve, straight between its points on logarithmic axes, goes through `level`: a list of x."""
    found = []
    for (x, y), (next_x, next_y) in zip(points, points[1:]):
        if (y < level) != (next_y < level):
            part = math.log(level / y) / math.log(next_y / y)
            found.append(x * (next_x / x) ** part)
    return found


def _of(rows, method, like):
    """The rows of a method on the same graph in the same order as another row."""
    return [row for row in rows if row["method"] == method and all(row[k] == like[k] for k in ("graph", "order"))]


def _columns(row):
    return json.loads(row["knobs"])["columns"]
