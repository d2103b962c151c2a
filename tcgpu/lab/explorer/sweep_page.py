"""The page that compares methods on graphs that differ in their nonzeros per column only.

Without a GPU it estimates their times, of the picked graph, too: a star beside the curves. It keeps each point that it
measured: a wider range measures only the new ones. Points on record, "curve", are not estimated again: the page opens
with them, and Run adds the star.
"""

import json

import ipywidgets as widgets

from tcgpu import figures, records
from tcgpu.errors import GraphError, MethodError
from tcgpu.generators import GENERATORS
from tcgpu.hardware import timed_engine
from tcgpu.insight.estimates import FILLING_EDGES, caution_for
from tcgpu.insight.gpus import GPUS
from tcgpu.lab import sweep
from tcgpu.lab.explorer import charts, elements
from tcgpu.lab.explorer.graph_card import GraphSource
from tcgpu.lab.explorer.method_run import label_of, machine_of
from tcgpu.lab.explorer.pages import Page
from tcgpu.lab.explorer.trace_page import with_kernels
from tcgpu.registry import METHODS

NONZEROS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # per column
EDGES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 8_388_608)
FEW, MANY = 2_000, 1_000_000  # edges at first: in the simulator; of what is not on record
LONGEST_OF_FEW = 16  # nonzeros per column: more leave too few vertices
SPEEDUP, EDGE_TIME = "speedup", "nanoseconds per edge"
RUN, FULL, LAUNCH = "run on the engine above", "a full GPU, estimated", "this launch, estimated"
# the recorded settings of `column_block`: how many columns a block takes
COLUMNS = {"1 column": 1, "27 columns": 27, "a nonzero for every thread": "fitting"}
REPORT = "the report's four graphs, Tesla T4"
KEPT = ("graph", "vertices", "edges", "nonzeros_per_column", "method", "order", "knobs", "date")  # of a recorded row
FITTING = "fitting"  # the columns of a second curve of `column_block`: as many as give every thread a nonzero


class SweepPage(Page):
    """Shows the speedup of methods over nonzeros per column.

    limits: the least and the most nonzeros per column. edges: of every graph. way: RUN, FULL or LAUNCH. gpu: the one
    that is estimated. quantity: SPEEDUP or EDGE_TIME. baseline: the method whose speedup is 1. machine: the GPU whose
    record is drawn in grey.
    """

    title = "Sweep"
    columns = {
        "nonzeros per column": "nonzeros", "method": label_of, "order": "order", "runs on": machine_of,
        "edges": "edges", "triangles": "triangles", "kernel µs": lambda row: _milliseconds(row) * 1e3,
    }  # fmt: skip

    def __init__(self):
        super().__init__(190)
        self._measured = {}  # GraphSource, label and settings of the run -> row
        self._order = "natural"  # of the record that is drawn
        self._records = records.records("sweep") | records.records("webgpu-sweep")
        self._estimates, self._runs = records.records("curve"), []
        simulated = timed_engine() == "sim"
        nonzeros, edges = [(f"{k:g}", k) for k in NONZEROS], [(f"{m:,}", m) for m in EDGES]
        self.limits = widgets.SelectionRangeSlider(options=nonzeros, value=(1, 64), continuous_update=False)
        self.edges = widgets.SelectionSlider(options=edges, continuous_update=False)
        self.way = widgets.Dropdown(options=(RUN, FULL, LAUNCH), value=FULL if simulated else RUN)
        self.gpu = widgets.Dropdown(options=list(GPUS))
        self.quantity = widgets.Dropdown(options=(SPEEDUP, EDGE_TIME))
        self.baseline = widgets.Dropdown()
        self.machine = widgets.Dropdown(options=[*self._records, "none"])
        self._set_edges()
        self.chart = elements.Chart("tcgpu-sweep-curves")
        form = {
            "range of nonzeros per column": self.limits,
            "edges of every graph (run in the simulator: up to 5,000)": self.edges,
            "the times are those of": self.way,
            "the GPU that is estimated": self.gpu,
            "the curves show": self.quantity,
            "the speedup is over": self.baseline,
            "measured on (grey, with the report's T4)": self.machine,
        }
        fields = []
        for help_text, control in form.items():
            control.tooltip, control.layout.width = help_text, "auto"
            fields += [elements.text(help_text, "tcgpu-help"), control]
        drawn = elements.box([self.chart, self.chart.export])
        above = elements.box([drawn, elements.box(fields, flex="1 1 250px")], "tcgpu-charts", kind=widgets.Box)
        self.children = [above, self.note, self.table]
        elements.when_set(self._set_edges, self.way, self.gpu)
        elements.when_set(self.draw, *form.values())

    def _set_edges(self):
        """Set the number of edges to that of the record, or to one that takes seconds, with columns that it allows."""
        recorded = self._estimates.get(self.gpu.value) if self.way.value != RUN else None
        few = self.way.value == RUN and timed_engine() == "sim"
        self.edges.value = recorded[0]["edges"] if recorded else FEW if few else MANY
        if few:
            self.limits.value = tuple(min(limit, LONGEST_OF_FEW) for limit in self.limits.value)

    def plan(self, graphs, runs):
        sources, runs = self._sources(), self._planned(runs)
        return sources + (_picked(graphs) if self.way.value != RUN else []), runs

    def _sources(self):
        low, high = self.limits.value
        return [_source(self.edges.value, nonzeros) for nonzeros in NONZEROS if low <= nonzeros <= high]

    def _planned(self, runs):
        if self.way.value != RUN:
            estimated = {"verb": "estimate", "gpu": self.gpu.value, "fill": self.way.value == FULL}
            runs = [run._replace(**estimated) for run in with_kernels(runs)]
        elif not any(run.is_simulated for run in runs):
            plain = [run for run in runs if run.method == "column_block" and "columns" not in run.knobs]
            runs = runs + [run._replace(knobs=run.knobs | {"columns": FITTING}) for run in plain]
        return [run._replace(order=run.order or "natural") for run in runs]

    def begin(self, graphs, runs):
        self.methods_changed(runs)
        return super().begin(graphs, runs)

    def describe(self, source, run):
        return f"{f'{source.nonzeros:g} nonzeros per column' if source.nonzeros else source.code}, {run.label}"

    def simulates(self, source, run):
        return run.is_simulated and self.known(source, run) is None

    def forecast(self, source, graph, run):
        return super().forecast(source, graph, run) if self.known(source, run) is None else 0.0

    def known(self, source, run):
        return self._measured.get(self._key(source, run)) or self._recorded(source, run)

    def measure(self, source, graph, run):
        knobs = run.knobs
        if knobs.get("columns") == FITTING:
            knobs = knobs | {"columns": records.fitting_columns(source.nonzeros)}
        row = super().measure(source, graph, run._replace(knobs=knobs))
        return self._measured.setdefault(self._key(source, run), _of_curve(row, source, run))

    def _key(self, source, run):
        """What a measurement is kept by: the settings that its row depends on."""
        return source, run.label, run._replace(knobs=(), max_seconds=None)

    def _recorded(self, source, run):
        """The row of an estimate that is on record, else None.

        Knobs that the method has got since have their defaults. Graphs that fill the GPU have only one estimate.
        """
        usual = METHODS[run.method].knobs
        for row in self._estimates.get(run.gpu, ()):
            same = (run.method, run.order) == (row["method"], row["order"])
            same = same and source == _source(row["edges"], row["nonzeros_per_column"])
            if same and usual | run.knobs == usual | json.loads(row["knobs"]):
                if not run.fill or row["edges"] >= FILLING_EDGES:
                    time = {"engine": "estimated", "machine": run.gpu, "estimated_us": row["estimated_ms"] * 1e3}
                    return _of_curve({key: row[key] for key in KEPT} | time | {"fill": run.fill}, source, run)
        return None

    def to_draw(self):
        """The rows of the last run; before the first, what is on record of it."""
        if self.rows or not self._runs:
            return super().to_draw()
        try:
            runs = self._planned(self._runs)
        except MethodError:  # none has kernels
            return []
        found = [self._recorded(source, run) for source in self._sources() for run in runs]
        return [row for row in found if row]

    def code(self, graphs, runs):
        sources, runs = self.plan(graphs, runs)
        swept = [source for source in sources if source.nonzeros]
        new = [run for run in runs if not all(self._recorded(source, run) for source in swept)]
        code = []
        if len(new) < len(runs):
            code = ["# the curves are on record, in data/measured: python benchmarks/estimates.py curve"]
        if new:
            steps = ", ".join(f"{source.nonzeros:g}" for source in swept)
            made = f"graph = tcgpu.generate.by_nonzeros({self.edges.value}, k)"
            code.append("\n    ".join([f"for k in [{steps}]:", made, *map(_code, new)]))
        if not sources[-1].nonzeros:
            code += [f"graph = {sources[-1].code}", *map(_code, runs)]
        return "\n".join(code)

    def methods_changed(self, runs):
        self._runs = runs
        self._order = "degree" if runs[0].order == "degree" else "natural"
        elements.set_options(self.baseline, [run.label for run in runs])
        self.draw()

    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """The measurements: method -> [(nonzeros per column, speedup or nanoseconds per edge)].

        A speedup compares methods on the same engine.
        """
        low, high = self.limits.value
        return self._values([row for row in self.to_draw() if not row["picked"] and low <= row["nonzeros"] <= high])

    def picked_points(self) -> dict[str, list[tuple[float, float]]]:
        """The estimates of the picked graph: method -> its point, like one of a curve."""
        return self._values([row for row in list(self.rows) if row["picked"] and row["edges"]])

    def _values(self, rows):
        times, machines = {}, {}
        for row in rows:
            times.setdefault(row["curve"], {})[row["nonzeros"]] = _milliseconds(row) * 1e6 / row["edges"]
            machines[row["curve"]] = machine_of(row)
        if self.quantity.value == EDGE_TIME:
            return {name: sorted(points.items()) for name, points in times.items()}
        base, machine = times.pop(self.baseline.value, {}), machines.get(self.baseline.value)
        return {
            name: [(x, base[x] / points[x]) for x in sorted(points) if x in base]
            for name, points in times.items()
            if machines[name] == machine
        }

    def recorded_curves(self) -> dict[str, list[tuple[float, float]]]:
        """The record, in the picked order: `column_block` over `naive`, or the times per edge of both."""
        rows, order = self._records.get(self.machine.value), self._order
        if not rows or (self.quantity.value == SPEEDUP and self.baseline.value != "naive"):
            return {}
        settings = {f"column_block, {name}": columns for name, columns in COLUMNS.items()}
        if self.quantity.value == SPEEDUP:
            return {name: records.speedup_curve(rows, columns, order=order) for name, columns in settings.items()}
        naive = {"naive": records.edge_times(rows, "naive", order=order)}
        return naive | {
            name: records.edge_times(rows, "column_block", columns, order=order) for name, columns in settings.items()
        }

    def published_curve(self) -> dict[str, list[tuple[float, float]]]:
        """The report's speedups of `column_block` over `naive` on four graphs, in natural order; {} if not asked."""
        asked = self.machine.value != "none", self.quantity.value == SPEEDUP, self.baseline.value == "naive"
        if not all(asked) or self._order != "natural":
            return {}
        return {REPORT: sweep.published_speedups()}

    def draw_charts(self, rows):
        recorded = self._in_range(self.recorded_curves())
        estimated = bool(rows) and rows[0]["engine"] == "estimated"
        named = {
            sweep.MEASURED: recorded,
            sweep.PUBLISHED: self._in_range(self.published_curve()),
            sweep.ESTIMATED if estimated else sweep.NOW: self.curves(),
            sweep.PICKED: self.picked_points(),
        }
        curves = [sweep.Curve(name, kind, points) for kind, of in named.items() for name, points in of.items()]
        machines = " and ".join(dict.fromkeys(map(machine_of, rows)))
        ax = figures.axes(4.7, 3.9)
        charts.draw_title(f"{machines or 'press Run'}{'; grey: measured' if recorded else ''}", ax)
        sweep.draw_sweep(
            curves,
            behind=(sweep.MEASURED, sweep.PUBLISHED),
            graph=next((row["graph"] for row in rows if row["picked"]), ""),
            limits=self.limits.value,
            ylabel=f"speedup over {self.baseline.value}" if self.quantity.value == SPEEDUP else EDGE_TIME,
            legend=True,
            size=charts.POINTS,
            ax=ax,
        )
        self.chart.show(ax.figure, sweep.points_of(curves, self.quantity.value))

    def _in_range(self, curves):
        low, high = self.limits.value
        return {name: [point for point in points if low <= point[0] <= high] for name, points in curves.items()}

    def note_of(self, rows):
        caution = caution_for(rows[0]["machine"]) if rows and rows[0]["engine"] == "estimated" else ""
        return " ".join(filter(None, [self.note_of_points(rows), caution]))

    def note_of_points(self, rows):
        others = {row["curve"] for row in rows} - {*self.curves(), self.baseline.value}
        if rows and not self.rows:
            return f"Dashed: estimated on {rows[0]['date']}, on record. Run adds the graph that is picked, as a star."
        if not others or self.quantity.value == EDGE_TIME:
            return super().note_of(rows)
        return f"Not compared, because another engine ran it: {', '.join(sorted(others))}. {super().note_of(rows)}"


def _source(edges, nonzeros):
    code = f"tcgpu.generate.by_nonzeros({edges}, {nonzeros:g})"
    return GraphSource(code, lambda: GENERATORS["by_nonzeros"](edges, nonzeros), nonzeros=nonzeros)


def _of_curve(row, source, run):
    """The row with its place in the chart."""
    nonzeros = source.nonzeros or row["nonzeros_per_column"]
    return row | {"curve": run.label, "nonzeros": nonzeros, "picked": not source.nonzeros}


def _code(run):
    return run.code.replace(repr(FITTING), "max(1, round(128 / k))")


def _milliseconds(row):
    return row["estimated_us"] / 1e3 if "estimated_us" in row else row["kernel_ms"]


def _picked(graphs):
    """The source of the graph that is picked, in a list; none if no file is named yet."""
    try:
        return [graphs.picked()]
    except GraphError:
        return []
