"""The page that compares methods on graphs that differ in their nonzeros per column only, and the page of one kernel.

The page opens with what is on record: published, measured, estimated. The graph that is picked is estimated as soon as
it is picked: a star beside the curves. Run adds the curves of this machine's GPU; without one it estimates points that
are not on record. The page keeps each point: a wider range measures only the new ones.
"""

import json
from contextlib import suppress

import ipywidgets as widgets

from tcgpu import figures, records
from tcgpu.errors import GraphError, MethodError, TcgpuError
from tcgpu.generators import GENERATORS
from tcgpu.hardware import gpus, timed_engine
from tcgpu.insight.estimates import FILLING_EDGES, caution_for
from tcgpu.insight.gpus import GPUS
from tcgpu.lab import sweep
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.graph_card import GraphSource
from tcgpu.lab.explorer.method_run import label_of, machine_of, times_of
from tcgpu.lab.explorer.pages import POINTS, Page, first_gpu, shown_ms
from tcgpu.lab.explorer.trace_page import with_kernels
from tcgpu.registry import METHODS

NONZEROS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # per column
EDGES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 8_388_608)
FEW, MANY = 2_000, 1_000_000  # edges at first: in the simulator; of what is not on record
LONGEST_OF_FEW = 16  # nonzeros per column: more leave too few vertices
SPEEDUP, EDGE_TIME = "speedup", "nanoseconds per edge"
RUN, FULL, LAUNCH = "run on the engine above", "a full GPU, estimated", "this launch, estimated"
REPORT_GPU = "Tesla T4"
KEPT = ("graph", "vertices", "edges", "nonzeros_per_column", "method", "order", "knobs", "date")  # of a recorded row
FITTING = "fitting"  # the columns of a second curve of `column_block`: as many as give every thread a nonzero


class SweepPage(Page):
    """Shows the speedup of methods over nonzeros per column.

    limits: the least and the most nonzeros per column. edges: of every graph. way: RUN, FULL or LAUNCH. gpu: the one
    that is estimated. quantity: SPEEDUP or EDGE_TIME. baseline: the method whose speedup is 1. machine: the GPU whose
    record is drawn. star: the rows of the picked graph, estimated.
    """

    title = "Sweep"
    settings = ("way", "gpu", "edges", "limits", "quantity", "baseline", "machine")
    columns = {
        "nonzeros per column": "nonzeros", "method": label_of, "order": "order", "runs on": machine_of,
        "edges": "edges", "triangles": "triangles", "kernel ms": shown_ms("kernel_ms"),
    }  # fmt: skip

    def __init__(self):
        super().__init__(190)
        self._measured = {}  # GraphSource, label and settings of the run -> row
        self.star, self._problem = [], ""  # why a row of the star is missing
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
        self.machine.value = first_gpu(self._records) or "none"
        self._set_edges()
        self.chart = elements.Chart("tcgpu-sweep-curves")
        form = {
            "range of nonzeros per column": self.limits,
            "edges of every graph (run in the simulator: up to 5,000)": self.edges,
            "the times are those of": self.way,
            "the GPU that is estimated": self.gpu,
            "the curves show": self.quantity,
            "the speedup is over": self.baseline,
            "measured on (beside the report's T4)": self.machine,
        }
        fields = []
        for help_text, control in form.items():
            control.tooltip, control.layout.width = help_text, "auto"
            fields.append(elements.box([elements.text(help_text, "tcgpu-help"), control], "tcgpu-row"))
        fields = elements.box(fields, "tcgpu-fields", kind=widgets.GridBox)
        self.children = [self.chart, self.note, fields, self.chart.export, self.table]
        elements.when_set(self._set_edges, self.way, self.gpu)
        elements.when_set(self.draw, *form.values())

    def _set_edges(self):
        """Set the number of edges to that of the record, or to one that takes seconds, with columns that it allows."""
        recorded = self._estimates.get(self.gpu.value) if self.way.value != RUN else None
        few = self.way.value == RUN and timed_engine() == "sim"
        self.star = []
        self.edges.value = recorded[0]["edges"] if recorded else FEW if few else MANY
        if few:
            self.limits.value = tuple(min(limit, LONGEST_OF_FEW) for limit in self.limits.value)

    def plan(self, graphs, runs):
        sources, runs = self._sources(), self._planned(runs, self.way.value)
        if self.way.value != RUN:
            with suppress(GraphError):  # no file is named yet
                sources.append(graphs.picked())
        return sources, runs

    def _sources(self):
        return [_source(self.edges.value, nonzeros) for nonzeros in NONZEROS if self._in_range(nonzeros)]

    def _in_range(self, nonzeros):
        low, high = self.limits.value
        return low <= nonzeros <= high

    def _planned(self, runs, way):
        if way != RUN:
            estimated = {"verb": "estimate", "gpu": self.gpu.value, "fill": way == FULL, "engine": None, "repeats": 1}
            runs = [run._replace(**estimated) for run in with_kernels(runs)]
        elif not any(run.is_simulated for run in runs):
            plain = [run for run in runs if run.method == "column_block" and "columns" not in run.knobs]
            runs = runs + [run._replace(knobs=run.knobs | {"columns": FITTING}) for run in plain]
        return [run._replace(order=run.order or "natural") for run in runs]

    def describe(self, source, run):
        return f"{f'{source.nonzeros:g} nonzeros per column' if source.nonzeros else source.code}, {run.label}"

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
        """The row of an estimate that is on record, else None. Graphs that fill the GPU have only one estimate."""
        for row in _of_launch(self._estimates.get(run.gpu, ()), run):
            of_source = source == _source(row["edges"], row["nonzeros_per_column"])
            if of_source and (not run.fill or row["edges"] >= FILLING_EDGES):
                time = {"engine": "estimated", "machine": run.gpu, "estimated_us": row["estimated_ms"] * 1e3}
                return _of_curve({key: row[key] for key in KEPT} | time | {"fill": run.fill}, source, run)
        return None

    def to_draw(self):
        """The rows of the last run, if it ran in the way that is picked; else what is on record."""
        way = (None, None) if self.way.value == RUN else (self.gpu.value, self.way.value == FULL)
        ran = [row for row in super().to_draw() if (row.get("machine"), row.get("fill")) == way]
        return ran or self._on_record(self.way.value)

    def _on_record(self, way):
        """The rows of the estimates on record for the graphs of the sweep."""
        found = [self._recorded(source, run) for source in self._sources() for run in self._runs_of(way)]
        return [row for row in found if row]

    def _runs_of(self, way):
        """The picked methods as they run in one of the three ways; none if none has kernels."""
        with suppress(MethodError):
            return self._planned(self._runs, way) if self._runs else []
        return []

    def place(self, source, graph):
        """Estimate the graph that is picked: its star."""
        self.star, self._problem = [], ""
        star = self.star  # another list, if another graph is picked meanwhile
        # a graph that a GPU runs is far too small for it, as a rule: its star is an estimate of a full GPU
        for run in self._runs_of(FULL if self.way.value == RUN else self.way.value):
            try:
                star.append(self.known(source, run) or self.measure(source, graph, run))
            except TcgpuError as reason:
                self._problem = f"{run.label} has no place on the curve: {reason} "
        self.draw()

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
        self._runs, self.star = runs, []
        elements.set_options(self.baseline, [run.label for run in runs])
        self.draw()

    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """The measurements: method -> [(nonzeros per column, speedup or nanoseconds per edge)].

        A speedup compares methods on the same engine.
        """
        return self._values([row for row in self.to_draw() if not row["picked"] and self._in_range(row["nonzeros"])])

    def picked_points(self) -> dict[str, list[tuple[float, float]]]:
        """The estimates of the picked graph: method -> its point, like one of a curve."""
        return self._values([row for row in self.star if row["edges"]])

    def _values(self, rows):
        """Rows as points: curve -> [(nonzeros per column, speedup or nanoseconds per edge)]."""
        times, machines = {}, {}
        for row in rows:
            times.setdefault(row["curve"], {})[row["nonzeros"]] = times_of(row)["kernel_ms"] * 1e6 / row["edges"]
            machines[row["curve"]] = machine_of(row)
        if self.quantity.value == EDGE_TIME:
            return {name: sorted(points.items()) for name, points in times.items()}
        base, machine = times.get(self.baseline.value, {}), machines.get(self.baseline.value)
        return {
            name: [(x, base[x] / points[x]) for x in sorted(points) if x in base]
            for name, points in times.items()
            if machines[name] == machine and name != self.baseline.value
        }

    def recorded_curves(self) -> dict[str, list[tuple[float, float]]]:
        """The record of the picked GPU, of the same launches as those of the picked methods: method -> its points."""
        rows, runs = self._records.get(self.machine.value, ()), self._runs_of(self.way.value)
        found = [
            row | {"curve": run.label, "nonzeros": row["nonzeros_per_column"]}
            for run in runs
            for row in _of_launch(rows, run)
        ]
        return self._values([row for row in found if self._in_range(row["nonzeros"])])

    def published_curve(self) -> dict[str, list[tuple[float, float]]]:
        """The report's speedups of `column_block` over `naive`, in natural order; {} unless the chart shows that."""
        compared = self.machine.value != "none", self.quantity.value == SPEEDUP, self.baseline.value == "naive"
        if not all(compared) or {run.order or "natural" for run in self._runs} != {"natural"}:
            return {}
        return {"column_block": [point for point in sweep.published_speedups() if self._in_range(point[0])]}

    def draw_charts(self, rows):
        runs, estimates = {}, self.curves()
        if self.way.value == RUN:
            runs, estimates = estimates, self._values(self._on_record(FULL))
        ran_on = " and ".join(dict.fromkeys(map(machine_of, rows)))
        estimated = f"{'this launch on ' if self.way.value == LAUNCH else ''}{self.gpu.value}, estimated"
        named = [
            (sweep.NOW, f"{ran_on}, this run", runs),
            (sweep.ESTIMATED, estimated, estimates),
            (sweep.PICKED, estimated, self.picked_points()),
            (sweep.MEASURED, f"{self.machine.value}, measured", self.recorded_curves()),
            (sweep.PUBLISHED, f"{REPORT_GPU}, published", self.published_curve()),
        ]
        if any(row["engine"] == "sim" for row in rows):  # its times are not beside those of GPUs
            named = named[:1]
        methods = dict.fromkeys(name for *_, of in named for name in of)
        curves = [
            sweep.Curve(name if len(methods) == 1 else f"{method}, {name}", kind, points)
            for kind, name, of in named
            for method, points in of.items()
        ]
        of = next(iter(methods)) if len(methods) == 1 else "each method"
        ax = figures.axes(6.6, 4.1)
        sweep.draw_sweep(
            curves,
            graph=self.star[0]["graph"] if self.star else "",
            limits=self.limits.value,
            ylabel=f"speedup of {of} over {self.baseline.value}" if self.quantity.value == SPEEDUP else EDGE_TIME,
            legend=True,
            size=POINTS,
            ax=ax,
        )
        self.chart.show(ax.figure, [run.method for run in self._runs], sweep.points_of(curves, self.quantity.value))

    def note_of(self, rows):
        caution = caution_for(self.gpu.value) if self.star or self.way.value != RUN else ""
        return " ".join(filter(None, [self.note_of_star(), self.note_of_points(rows), self._problem, caution]))

    def note_of_star(self):
        """Where the picked graph is, in words."""
        points = [(name, *point) for name, found in self.picked_points().items() for point in found]
        if not points or self.quantity.value == EDGE_TIME:
            return ""
        each = ", ".join(f"{name} {y:.2g} times as fast" for name, _, y in points)
        x, graph = points[0][1], self.star[0]["graph"]
        return f"The star: {graph}, {x:.2f} nonzeros per column; by estimate, {each} as {self.baseline.value}."

    def note_of_points(self, rows):
        others = {row["curve"] for row in rows} - {*self.curves(), self.baseline.value}
        if rows and rows[0] not in self.rows:
            return f"The dashed curve was estimated on {rows[0]['date']} and is on record."
        if not others or self.quantity.value == EDGE_TIME:
            return super().note_of(rows)
        return f"Not compared, because another engine ran it: {', '.join(sorted(others))}. {super().note_of(rows)}"


def _source(edges, nonzeros):
    code = f"tcgpu.generate.by_nonzeros({edges}, {nonzeros:g})"
    return GraphSource(code, lambda: GENERATORS["by_nonzeros"](edges, nonzeros), nonzeros=nonzeros)


def _of_launch(rows, run):
    """The rows of a record of this run's method and launch. Knobs that the method has got since have their defaults."""
    usual, order = METHODS[run.method].knobs, run.order or "natural"
    for row in rows:
        knobs = usual | run.knobs
        if knobs.get("columns") == FITTING:
            knobs["columns"] = records.fitting_columns(row["nonzeros_per_column"])
        if (row["method"], row["order"]) == (run.method, order) and knobs == usual | json.loads(row["knobs"]):
            yield row


def _of_curve(row, source, run):
    nonzeros = source.nonzeros or row["nonzeros_per_column"]
    return row | {"curve": run.label, "nonzeros": nonzeros, "picked": not source.nonzeros}


def _code(run):
    return run.code.replace(repr(FITTING), "max(1, round(128 / k))")


class KernelPage(SweepPage):
    """Traces one method on the picked graph and, on a machine with a GPU, measures it, beside the curve of the sweep.

    kernel: the method. It is compared with `naive`; `naive` with `column_block`.
    """

    title = "Kernel"
    settings = ()
    columns = {
        "graph": "graph", "triangles": "triangles", "requests": "load_requests", "sectors each": "sectors_per_request",
        "active lanes": "lanes", "bank conflicts": "bank_conflicts", "ms, this launch": shown_ms("kernel_ms"),
        "runs on": machine_of,
    }  # fmt: skip

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel
        self.table.layout.height = "auto"
        self.children = [self.chart, self.note, self.table, self.chart.export]

    def plan(self, graphs, runs):
        [run] = [run for run in runs if run.method == self.kernel]
        timed = [run] if run.engine or gpus() else []
        return [graphs.picked()], [run._replace(verb="trace"), *timed]

    def known(self, source, run):
        return super().known(source, run) if run.verb == "estimate" else None

    def measure(self, source, graph, run):
        return super().measure(source, graph, run) if run.verb == "estimate" else Page.measure(self, source, graph, run)

    code, describe = Page.code, Page.describe

    def to_draw(self):
        return self._on_record(self.way.value)

    def lines(self, rows, css_class=""):
        return super().lines(list(self.rows), css_class)
