"""Measurements as tables (`Rows`), and the records of them in `data/measured`, one CSV file for a suite and a machine.

A row is a dict. Times are those of the kernels, in natural order, unless stated otherwise.
"""

import csv
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tcgpu.built_in import METHODS
from tcgpu.datasets import data_path, parsed
from tcgpu.declarations import Method
from tcgpu.files import as_text, replacing
from tcgpu.markup import element

REFERENCE_GPU = "NVIDIA H200"  # by whose records texts and models go
COUNTS = ("report", "table1", "levels", "gpu")  # suites that time methods on whole graphs
SHOWN = (
    *("graph", "method", "engine", "gpu_kind", "order", "knobs", "triangles", "k", "kept"),
    *("kernel_ms", "process_ms", "total_ms"),
)


class Rows(list[dict[str, Any]]):
    """Measurements as a list of dicts, which a notebook shows as a table of those columns that are `shown`."""

    shown: tuple[str, ...] = SHOWN

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all rows as `csv` has them."""
        path = Path(as_text(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(self.csv().encode("utf-8", "backslashreplace"))

    def csv(self) -> str:
        """All rows as the text of a CSV file, one column for every key."""
        file = io.StringIO()
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in self for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self)
        return file.getvalue()

    @classmethod
    def read_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `write_csv` wrote, numbers as numbers."""
        with open(path, newline="", encoding="utf-8") as file:
            return cls({key: parsed(text) for key, text in row.items()} for row in csv.DictReader(file))

    def table(self) -> list[list[str]]:
        """The shown columns as text: a list of lists of strings, the first one the heading."""
        shown = [key for key in self.shown if any(row.get(key, "") != "" for row in self)]
        body = [[_short(row.get(key, "")) for key in shown] for row in self]
        return [[key.replace("_", " ") for key in shown], *body]

    def __repr__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)

    def _repr_html_(self) -> str:
        kinds = ["th"] + ["td"] * len(self)
        lines = zip(kinds, self.table(), strict=True)
        return element("table", *(element("tr", *(element(kind, cell) for cell in line)) for kind, line in lines))


class Table(Rows):
    """Rows with their own choice of columns to show."""

    def __init__(self, rows: Iterable[dict[str, Any]], *shown: str) -> None:
        super().__init__(rows)
        self.shown = shown


class Methods(list[Method]):
    """Methods. Prints as a table with a row for each."""

    def rows(self) -> Table:
        """Return a row per method."""
        found = []
        for method in self:
            knobs = " ".join(f"{name}={default}" for name, default in method.knobs.items())
            row = {"name": method.name, "source": method.source, "engines": " ".join(method.engines)}
            found.append(row | {"order": method.order, "knobs": knobs, "summary": method.summary})
        return Table(found, *found[0])

    def __repr__(self) -> str:
        return repr(self.rows())

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()


def gpu_of(row):
    """The name of the GPU that ran a row's kernels, and how, if not by CUDA; None if no GPU did."""
    if row["engine"] == "webgpu":
        kind = ", software," if row["gpu_kind"] == "software" else ""
        return f"{row['gpu_name']}{kind} by WebGPU, {row['gpu_backend']}"
    return row["gpu_name"] if row["engine"] == "gpu" else None


def record_path(suite, rows):
    """Where the record of a suite goes: `data/measured/SUITE-MACHINE.csv` of a checkout, else the current folder."""
    machine = gpu_of(rows[0]) or rows[0]["cpu"]
    folder = data_path("measured")
    name = re.sub(r"[^a-z0-9]+", "-", f"{suite} {machine}".lower()).strip("-")
    return (folder if folder.is_dir() else Path()) / f"{name}.csv"


def records(suite):
    """Every record of a suite that a GPU made, by date: what `gpu_of` says -> Rows; of two of a GPU, the later.

    What others contribute to `data/reproduced` is there for GPUs that have none in `data/measured`.
    """
    contributed = map(Rows.read_csv, data_path("measured").with_name("reproduced").glob("*.csv"))
    found = [Rows(row for row in rows if row["suite"] == suite and row["edges"]) for rows in contributed]
    found += [Rows.read_csv(path) for path in data_path("measured").glob(f"{suite}-*.csv")]
    of_gpus = sorted((rows for rows in found if rows and gpu_of(rows[0])), key=_date)
    of_gpu = {gpu_of(rows[0]): rows for rows in sorted(of_gpus, key=lambda rows: "suite" not in rows[0])}
    return dict(sorted(of_gpu.items(), key=lambda item: _date(item[1])))


def reference(suite):
    """The record of a suite that texts and models go by: that of the REFERENCE_GPU, else the latest of another GPU.

    No record that others contribute, unless there are no others: it changes no text.
    """
    found = records(suite)
    found = {gpu: rows for gpu, rows in found.items() if "suite" not in rows[0]} or found
    if not found:
        raise LookupError(f"no record of {suite!r} was made on a GPU; the scripts in benchmarks/ make records")
    return found.get(REFERENCE_GPU) or list(found.values())[-1]


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


def fitting_columns(nonzeros_per_column):
    """How many columns `column_block` has to take at a time to give each of its threads a nonzero."""
    return max(1, round(METHODS["column_block"].knobs["threads"] / nonzeros_per_column))


def _date(rows):
    return rows[0]["date"]


def _short(value):
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
