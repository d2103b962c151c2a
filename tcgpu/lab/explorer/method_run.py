"""One method with its settings: how it is measured and traced, as Python code, and how its rows are labelled."""

import json
import re
from typing import NamedTuple

from tcgpu.engines.choice import ENGINE
from tcgpu.measurement import measure
from tcgpu.registry import METHODS
from tcgpu.tracing import trace


class MethodRun(NamedTuple):
    """A method to run: the knobs that differ from their defaults; order and engine, None for the default."""

    method: str
    knobs: dict
    order: str | None
    engine: str | None
    repeats: int

    @property
    def label(self):
        """The method and its changed knobs."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.knobs.items())])

    @property
    def timed_runs(self):
        """The number of runs to take medians of. In the simulator one is enough: its times mean little."""
        simulated = (self.engine or ENGINE) == "sim" and "sim" in METHODS[self.method].engines
        return 1 if simulated else self.repeats

    @property
    def measure_code(self):
        """The Python code that measures the method."""
        settings = {"knobs": self.knobs or None, "order": self.order, "engine": self.engine}
        return _call("measure", self.method, settings | {"repeats": self.timed_runs})

    @property
    def trace_code(self):
        """The Python code that traces the method."""
        return _call("trace", self.method, {"order": self.order} | self.knobs)

    def measure(self, graph, name=None):
        """Measure the method on a graph that is called `name` in the row that comes back."""
        [row] = measure(graph, self.method, knobs=self.knobs, engine=self.engine, order=self.order,
                        repeats=self.timed_runs, name=name)  # fmt: skip
        return row

    def trace(self, graph):
        """Trace the method on a graph; returns the Trace and a row of its totals."""
        traced = trace(graph, self.method, order=self.order, **self.knobs)
        row = {
            "graph": graph.name or "",
            "vertices": graph.n,
            "edges": graph.m,
            "nonzeros_per_column": round(graph.nonzeros_per_column, 3),
            "triangles": traced.triangles,
            "method": self.method,
            "engine": "traced",
            "order": traced.graph.order,
            "knobs": json.dumps(traced.knobs),
            "machine": traced.machine.name,
        }
        return traced, row | traced.totals()


def _call(verb, method, settings):
    given = "".join(f", {name}={value!r}" for name, value in settings.items() if value is not None)
    return f"tcgpu.{verb}(graph, {method!r}{given})"


def label_of(row):
    """The method of a row and those of its knobs that differ from their defaults."""
    method = METHODS.get(row["method"])
    knobs = json.loads(row.get("knobs") or "{}").items()
    changed = {name: value for name, value in knobs if method is None or method.knobs.get(name, value) != value}
    return " ".join([row["method"], *(f"{name}={value}" for name, value in changed.items())])


def machine_of(row):
    """The name of what ran a row: a GPU, a CPU and its threads, the simulator; or the GPU that a trace estimates."""
    if row["engine"] == "sim":
        return "simulator"
    if row["engine"] == "traced":
        return f"{row['machine']}, estimated"
    cpu = re.sub(r"\(\w+\)|Processor|CPU|@.*", "", row["cpu"])
    return row["gpu_name"] if row["engine"] == "gpu" else f"{row['threads']} threads, {' '.join(cpu.split())}"
