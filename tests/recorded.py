"""Invented rows in the form of a GPU's records, for the tests of records and of their charts."""

import json

from tcgpu.records import Rows


def row(method, milliseconds, *, graph="auto class", order="natural", columns=None, nonzeros=4.0, date="2026-01-01"):
    """A row as `measure` makes it on a GPU, with only the fields that are read."""
    knobs = {"threads": 128} | ({} if columns is None else {"columns": columns})
    facts = {"vertices": 25, "edges": 100, "triangles": 7, "nonzeros_per_column": nonzeros}
    where = {"engine": "gpu", "gpu_name": "GPU X", "date": date}
    return {"graph": graph, "method": method, "order": order, "knobs": json.dumps(knobs)} | facts | where | {
        "kernel_ms": milliseconds
    }  # fmt: skip


REPORT = Rows([
    row("naive", 3.0), row("column_block", 2.0, columns=27), row("bitmap", 5.0),
    row("naive", 1.0, graph="road class"), row("column_block", 4.0, graph="road class", columns=27),
    row("naive", 8.0, order="degree"), row("column_block", 2.0, order="degree", columns=27),
])  # fmt: skip
SWEEP = Rows([
    row("naive", 1.0, graph="few"), row("column_block", 4.0, graph="few", columns=1),
    row("column_block", 2.0, graph="few", columns=27), row("column_block", 1.0, graph="few", columns=32),
    row("naive", 9.0, graph="many", nonzeros=64.0), row("column_block", 3.0, graph="many", nonzeros=64.0, columns=2),
])  # fmt: skip
