"""One method with its settings: how it is measured, traced and estimated; its Python code; labels of its rows."""

import json
import re
from typing import NamedTuple

from tcgpu.hardware import timed_engine
from tcgpu.insight import trace
from tcgpu.insight.estimates import estimate
from tcgpu.kernels import simulated
from tcgpu.measurement import measure
from tcgpu.records import gpu_of
from tcgpu.registry import METHODS

TIMINGS = ("total_ms", "process_ms", "kernel_ms")  # each is part of the one before
LANE_STEPS = 200_000  # that are traced for an estimate
ESTIMATE_SECONDS = 0.8  # for them, on the machine that the costs of `simulated` were measured on


class MethodRun(NamedTuple):
    """A method to run: the knobs that differ from their defaults; order and engine, None for the default.

    max_seconds: that it may take in the simulator; None for the default. verb: "measure", "trace" or "estimate"; times
    of the last two are estimated for a GPU, and if `fill` for one that copies of the graph fill.
    """

    method: str
    knobs: dict
    order: str | None
    engine: str | None
    repeats: int
    max_seconds: float | None = None
    verb: str = "measure"
    gpu: str = ""
    fill: bool = False

    @property
    def label(self):
        """The method and its changed knobs."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.knobs.items())])

    @property
    def is_simulated(self):
        """Whether the simulator runs all of the method."""
        if self.verb != "measure":
            return self.verb == "trace"
        return (self.engine or timed_engine()) == "sim" and "sim" in METHODS[self.method].engines

    @property
    def estimate_seconds(self):
        """About how long an estimate takes, for large graphs."""
        return simulated.seconds(0, ESTIMATE_SECONDS * 1e6)

    @property
    def settings(self):
        """What the verb takes besides the graph and the method. The simulator measures once: its times mean little."""
        if self.verb == "trace":
            of_gpu = {"gpu": self.gpu} if self.gpu else {}
            return of_gpu | {"order": self.order, "max_seconds": self.max_seconds} | self.knobs
        if self.verb == "estimate":
            of_gpu = {"gpu": self.gpu, "fill": self.fill}
            return of_gpu | {"order": self.order, "lane_steps": LANE_STEPS} | self.knobs
        settings = {"knobs": self.knobs or None, "order": self.order, "engine": self.engine}
        if self.is_simulated:
            return settings | {"repeats": 1, "max_seconds": self.max_seconds}
        return settings | {"repeats": self.repeats}

    @property
    def code(self):
        """The Python code that does the same as `run`."""
        given = "".join(f", {name}={value!r}" for name, value in self.settings.items() if value is not None)
        return f"tcgpu.{self.verb}(graph, {self.method!r}{given})"

    def run(self, graph, name=None):
        """Run the method on a graph that is called `name`: the row, and what the verb returned."""
        if self.verb == "measure":
            found = measure(graph, self.method, name=name, **self.settings)
            return found[0], found
        traces = self.verb == "trace"
        found = (trace if traces else estimate)(graph, self.method, **self.settings)
        row = {
            "graph": name or graph.name or "",
            "vertices": graph.n,
            "edges": graph.m,
            "nonzeros_per_column": round(graph.nonzeros_per_column, 3),
            **({"triangles": found.triangles} if traces else {}),
            "method": self.method,
            "engine": "traced" if traces else "estimated",
            "order": found.graph.order if traces else found.order,
            "knobs": json.dumps(METHODS[self.method].knobs | self.knobs),
            "machine": found.gpu,
        }
        return row | (found.totals() if traces else {"estimated_us": found.ms * 1e3, "fill": self.fill}), found


def label_of(row):
    """The method of a row and those of its knobs that differ from their defaults."""
    method = METHODS.get(row["method"])
    knobs = json.loads(row.get("knobs") or "{}").items()
    changed = {name: value for name, value in knobs if method is None or method.knobs.get(name, value) != value}
    return " ".join([row["method"], *(f"{name}={value}" for name, value in changed.items())])


def times_of(row):
    """Timing -> milliseconds. Of a trace or an estimate only the time of the kernels is known."""
    if "estimated_us" in row:
        return {"kernel_ms": row["estimated_us"] / 1e3}
    return {timing: row[timing] for timing in TIMINGS}


def machine_of(row):
    """The name of what ran a row: a GPU, a CPU and its threads, the simulator; or the GPU that it is estimated for."""
    if row["engine"] == "sim":
        return "simulator"
    if row["engine"] in ("traced", "estimated"):
        return f"{'a full ' if row.get('fill') else ''}{row['machine']}, estimated"
    cpu = re.sub(r"\(\w+\)|Processor|CPU|@.*", "", row["cpu"])
    return gpu_of(row) or f"{row['threads']} threads, {' '.join(cpu.split())}"
