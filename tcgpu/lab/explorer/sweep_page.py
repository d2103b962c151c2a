"""The page that compares methods on graphs that differ in their nonzeros per column only.

It keeps each point that it measured: a wider range measures only the new ones.
"""

import ipywidgets as widgets

from tcgpu import figures, records
from tcgpu.engines.choice import ENGINE
from tcgpu.generators import GENERATORS
from tcgpu.lab.explorer import charts, elements
from tcgpu.lab.explorer.graph_card import GraphSource
from tcgpu.lab.explorer.method_run import label_of, machine_of
from tcgpu.lab.explorer.pages import Page
from tcgpu.lab.explorer.trace_page import with_kernels

NONZEROS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # per column
EDGES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 8_388_608)
SPEEDUP, EDGE_TIME = "speedup", "nanoseconds per edge"
RUN, TRACED = "run on the engine above", "traced: a GPU's time is estimated"
# the recorded settings of `column_block`: how many columns a block takes
COLUMNS = {"1 column": 1, "27 columns": 27, "a nonzero for every thread": "fitting"}


class SweepPage(Page):
    """Shows the speedup of methods over nonzeros per column.

    limits: the least and the most nonzeros per column. edges: of every graph. way: RUN or TRACED. quantity: SPEEDUP or
    EDGE_TIME. baseline: the method whose speedup is 1. machine: the GPU whose record is drawn in grey.
    """

    title = "Sweep"
    head = ("nonzeros per column", "method", "order", "runs on", "edges", "triangles", "kernel ms")

    def __init__(self):
        super().__init__(190)
        self._measured = {}  # (traced or run, GraphSource, label and settings of the run) -> row
        self._running_way = RUN  # the `way` of the run in progress
        self._order = "natural"  # of the record that is drawn
        self._records = records.records("sweep")
        nonzeros, edges = [(f"{k:g}", k) for k in NONZEROS], [(f"{m:,}", m) for m in EDGES]
        self.limits = widgets.SelectionRangeSlider(options=nonzeros, value=(1, 16), continuous_update=False)
        self.edges = widgets.SelectionSlider(options=edges, value=1_000, continuous_update=False)
        self.way = widgets.Dropdown(options=(RUN, TRACED), value=RUN if ENGINE == "gpu" else TRACED)
        self.quantity = widgets.Dropdown(options=(SPEEDUP, EDGE_TIME))
        self.baseline = widgets.Dropdown()
        self.machine = widgets.Dropdown(options=[*self._records, "none"])
        self.chart = elements.Chart()
        form = {
            "range of nonzeros per column": self.limits,
            "edges of every graph (without a GPU: up to 5,000)": self.edges,
            "the kernels are": self.way,
            "the curves show": self.quantity,
            "the speedup is over": self.baseline,
            "recorded on (grey)": self.machine,
        }
        fields = []
        for help_text, control in form.items():
            control.tooltip, control.layout.width = help_text, "auto"
            fields += [elements.text(help_text, "tcgpu-help"), control]
        above = elements.box([self.chart, elements.box(fields, flex="1 1 250px")], "tcgpu-charts", kind=widgets.Box)
        self.children = [above, self.note, self.table]
        elements.when_set(self.draw, self.limits, self.quantity, self.baseline, self.machine)

    def plan(self, graphs, runs):
        low, high = self.limits.value
        sources = [_source(self.edges.value, nonzeros) for nonzeros in NONZEROS if low <= nonzeros <= high]
        runs = with_kernels(runs) if self.way.value == TRACED else runs
        return sources, [run._replace(order=run.order or "natural") for run in runs]

    def begin(self, graphs, runs):
        self.methods_changed(runs)
        self._running_way = self.way.value
        return super().begin(graphs, runs)

    def describe(self, source, run):
        return f"{source.nonzeros:g} nonzeros per column, {run.label}"

    def measure(self, source, graph, run):
        key = self._running_way, source, run.label, run[2:]
        if key not in self._measured:
            row = run.trace(graph)[1] if self._running_way == TRACED else run.measure(graph)
            self._measured[key] = row | {"nonzeros": source.nonzeros}
        return self._measured[key]

    def code(self, graphs, runs):
        sources, runs = self.plan(graphs, runs)
        loop = f"for k in [{', '.join(f'{source.nonzeros:g}' for source in sources)}]:"
        lines = [run.trace_code if self.way.value == TRACED else run.measure_code for run in runs]
        return "\n    ".join([loop, f"graph = tcgpu.generate.by_nonzeros({self.edges.value}, k)", *lines])

    def methods_changed(self, runs):
        self._order = "degree" if runs[0].order == "degree" else "natural"
        elements.set_options(self.baseline, [run.label for run in runs])
        self.draw()

    def curves(self) -> dict[str, list[tuple[float, float]]]:
        """What was measured: method -> [(nonzeros per column, speedup or nanoseconds per edge)].

        A speedup is of methods that the same engine ran.
        """
        low, high = self.limits.value
        times, machines = {}, {}
        for row in list(self.rows):
            if low <= row["nonzeros"] <= high:
                times.setdefault(label_of(row), {})[row["nonzeros"]] = _milliseconds(row) * 1e6 / row["edges"]
                machines[label_of(row)] = machine_of(row)
        if self.quantity.value == EDGE_TIME:
            return {name: sorted(points.items()) for name, points in times.items()}
        base, machine = times.pop(self.baseline.value, {}), machines.get(self.baseline.value)
        return {
            name: [(x, base[x] / points[x]) for x in sorted(points) if x in base]
            for name, points in times.items()
            if machines[name] == machine
        }

    def recorded_curves(self) -> dict[str, list[tuple[float, float]]]:
        """What was recorded, in the picked order: `column_block` over `naive`, or the times per edge of both."""
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

    def draw_charts(self, rows):
        live, recorded = self.curves(), self.recorded_curves()
        speedup = self.quantity.value == SPEEDUP
        machines = " and ".join(dict.fromkeys(map(machine_of, rows)))
        title = f"now: {machines}" if rows else "now: press Run"
        title += "; grey: recorded" if recorded else ""
        ylabel = f"speedup over {self.baseline.value}" if speedup else EDGE_TIME
        ax = figures.axes(4.7, 3.3)
        charts.draw_sweep(live, recorded, limits=self.limits.value, ylabel=ylabel, title=title, ax=ax)
        self.chart.show(ax.figure)

    def note_of(self, rows):
        others = {label_of(row) for row in rows} - {*self.curves(), self.baseline.value}
        if not others or self.quantity.value == EDGE_TIME:
            return super().note_of(rows)
        return f"Not compared, because another engine ran it: {', '.join(sorted(others))}. {super().note_of(rows)}"

    def lines(self, rows):
        return [("", _cells(row)) for row in rows]


def _source(edges, nonzeros):
    code = f"tcgpu.generate.by_nonzeros({edges}, {nonzeros:g})"
    return GraphSource(code, lambda: GENERATORS["by_nonzeros"](edges, nonzeros), nonzeros=nonzeros)


def _milliseconds(row):
    return row["estimated_us"] / 1e3 if "estimated_us" in row else row["kernel_ms"]


def _cells(row):
    about = [row["nonzeros"], label_of(row), row["order"], machine_of(row)]
    return [*about, row["edges"], row["triangles"], round(_milliseconds(row), 6)]
