"""One method with its settings: how it is measured, traced and estimated; its Python code; labels of its rows."""

import json
import re
from typing import NamedTuple

from tcgpu.engines.choice import ENGINE
from tcgpu.insight import trace
from tcgpu.insight.estimates import estimate
from tcgpu.kernels import simulated
from tcgpu.measurement import measure
from tcgpu.registry import METHODS

LANE_STEPS = 200_000  # that are traced for an estimate
ESTIMATE_SECONDS = 0.8  # for them, on the machine that the costs of `simulated` were measured on


class MethodRun(NamedTuple):
    """A method to run: the knobs that differ from their defaults; order and engine, None for the default.

    max_seconds: that it may take in the simulator; None for the default.
    """

    method: str
    knobs: dict
    order: str | None
    engine: str | None
    repeats: int
    max_seconds: float | None = None

    @property
    def label(self):
        """The method and its changed knobs."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.knobs.items())])

    @property
    def is_simulated(self):
        """Whether the simulator runs the method."""
        return (self.engine or ENGINE) == "sim" and "sim" in METHODS[self.method].engines

    @property
    def timed_runs(self):
        """The number of runs to take medians of. In the simulator one is enough: its times mean little."""
        return 1 if self.is_simulated else self.repeats

    @property
    def estimate_seconds(self):
        """About how long an estimate takes, for large graphs."""
        return simulated.seconds(0, ESTIMATE_SECONDS * 1e6)

    @property
    def measure_code(self):
        """The Python code that measures the method."""
        settings = {"knobs": self.knobs or None, "order": self.order, "engine": self.engine}
        limit = self.max_seconds if self.is_simulated else None
        return _call("measure", self.method, settings | {"repeats": self.timed_runs, "max_seconds": limit})

    @property
    def trace_code(self):
        """The Python code that traces the method."""
        return _call("trace", self.method, {"order": self.order, "max_seconds": self.max_seconds} | self.knobs)

    def estimate_code(self, gpu, fill):
        """The Python code that estimates the method's time."""
        settings = {"gpu": gpu, "fill": fill, "order": self.order, "lane_steps": LANE_STEPS}
        return _call("estimate", self.method, settings | self.knobs)

    def measure(self, graph, name=None):
        """Measure the method on a graph that is called `name` in the row that comes back."""
        [row] = measure(graph, self.method, knobs=self.knobs, engine=self.engine, order=self.order,
                        repeats=self.timed_runs, name=name, max_seconds=self.max_seconds)  # fmt: skip
        return row

    def trace(self, graph):
        """Trace the method on a graph; returns the Trace and a row of its totals."""
        traced = trace(graph, self.method, order=self.order, max_seconds=self.max_seconds, **self.knobs)
        row = facts_of(graph) | {
            "triangles": traced.triangles,
            "method": self.method,
            "engine": "traced",
            "order": traced.graph.order,
            "knobs": json.dumps(traced.knobs),
            "machine": traced.gpu,
        }
        return traced, row | traced.totals()

    def estimate(self, graph, gpu, fill, name=None):
        """Estimate the method's time on a GPU: the row of it. fill: whether copies of the graph fill the GPU."""
        found = estimate(graph, self.method, gpu=gpu, fill=fill, order=self.order, lane_steps=LANE_STEPS, **self.knobs)
        return facts_of(graph, name) | {
            "method": self.method,
            "engine": "estimated",
            "order": found.order,
            "knobs": json.dumps(METHODS[self.method].knobs | self.knobs),
            "machine": gpu,
            "estimated_us": found.ms * 1e3,
            "fill": fill,
        }


def facts_of(graph, name=None):
    """The name and the size of a graph, as a row has them."""
    return {
        "graph": name or graph.name or "",
        "vertices": graph.n,
        "edges": graph.m,
        "nonzeros_per_column": round(graph.nonzeros_per_column, 3),
    }


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
    """The name of what ran a row: a GPU, a CPU and its threads, the simulator; or the GPU that it is estimated for."""
    if row["engine"] == "sim":
        return "simulator"
    if row["engine"] in ("traced", "estimated"):
        return f"{'a full ' if row.get('fill') else ''}{row['machine']}, estimated"
    cpu = re.sub(r"\(\w+\)|Processor|CPU|@.*", "", row["cpu"])
    return row["gpu_name"] if row["engine"] == "gpu" else f"{row['threads']} threads, {' '.join(cpu.split())}"
