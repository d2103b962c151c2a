"""The page that sweeps over nonzeros per column: graphs that differ in nothing else, and how methods compare on them.

Points that were measured are kept: a further reach measures only what is new.
"""

import ipywidgets as widgets

from tcgpu import records
from tcgpu.engines.choice import ENGINE
from tcgpu.errors import GraphError, TcgpuError
from tcgpu.generators import GENERATORS
from tcgpu.lab.explorer import charts, elements
from tcgpu.lab.explorer.pages import View, label_of, machine_of, measured
from tcgpu.lab.explorer.trace_page import of_kernels, traced
from tcgpu.measurement import check_agreement
from tcgpu.progress import part
from tcgpu.records import Rows

NONZEROS = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)  # per column
EDGES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 8_388_608)
SPEEDUP, COST = "speedup", "nanoseconds an edge"
RUN, TRACED = "run, on the engine above", "traced: the time of a GPU, estimated"
WAYS = {"1 column": 1, "27 columns": 27, "a nonzero for every thread": "fitting"}  # of the recorded column_block
HEAD = ("nonzeros per column", "method", "order", "runs on", "edges", "triangles", "kernel ms")


class Sweep(View):
    """Speedup against nonzeros per column.

    reach: from how many nonzeros per column to how many. edges: of every graph. way: whether kernels are run, or traced
    and their time estimated. quantity: the speedup, or what an edge costs. against: the method that is 1. machine:
    whose record is drawn beside, in grey.
    """

    title = "Sweep"

    def __init__(self):
        super().__init__(190)
        self._found = {}  # what was measured: (way, edges, nonzeros per column, Wish) -> row
        self._wishes, self._left_out = [], ""
        self._records = records.records("sweep")
        labels, sizes = [(f"{k:g}", k) for k in NONZEROS], [(f"{m:,}", m) for m in EDGES]
        self.reach = widgets.SelectionRangeSlider(options=labels, value=(1, 16), continuous_update=False)
        self.edges = widgets.SelectionSlider(options=sizes, value=1_000, continuous_update=False)
        self.way = widgets.Dropdown(options=(RUN, TRACED), value=RUN if ENGINE == "gpu" else TRACED)
        self.quantity = widgets.Dropdown(options=(SPEEDUP, COST))
        self.against = widgets.Dropdown()
        self.machine = widgets.Dropdown(options=[*self._records, "none"])
        self.chart = elements.image(470, 330)
        form = elements.box([
            elements.field(self.reach, "from so many nonzeros per column to so many"),
            elements.field(self.edges, "edges of every graph: some thousand without a GPU"),
            elements.field(self.way, "the kernels are"),
            elements.field(self.quantity, "the curves are"),
            elements.field(self.against, "the method that is 1"),
            elements.field(self.machine, "recorded, in grey"),
        ], flex="1 1 250px")  # fmt: skip
        self.children = [elements.box([self.chart, form], "tcgpu-charts", kind=widgets.Box), self.note, self.table]
        for control in (self.reach, self.quantity, self.against, self.machine):
            control.observe(lambda change: self.draw(), "value")

    def begin(self, graphs, wishes):
        self.follow(wishes)
        way, edges, places = self.way.value, self.edges.value, self._places()
        wishes, self._left_out = self._to_run(wishes)
        if not wishes:
            raise GraphError("pick a method that runs kernels: there is nothing to trace in native threads")
        self.rows = Rows()

        def job(run):
            for k, nonzeros in enumerate(places):
                run.say(f"{nonzeros:g} nonzeros per column")
                graph = GENERATORS["by_nonzeros"](edges, nonzeros)
                with part(k, len(places)):
                    self._measure(graph, way, nonzeros, wishes, run)
                self.draw()

        return job

    def code(self, graphs, wishes):
        lines = [wish.traced if self.way.value == TRACED else wish.code for wish in self._to_run(wishes)[0]]
        return "\n".join([
            f"for k in [{', '.join(f'{k:g}' for k in self._places())}]:",
            f"    graph = tcgpu.generate.by_nonzeros({self.edges.value}, k)",
            *(f"    {line}" for line in lines),
        ])  # fmt: skip

    def follow(self, wishes):
        self._wishes = wishes
        elements.offer(self.against, [wish.label for wish in wishes])
        self.draw()

    def curves(self):
        """What was measured: method -> [(nonzeros per column, speedup or nanoseconds)].

        Only what the same engine ran is compared.
        """
        low, high = self.reach.value
        costs, machines = {}, {}
        for row in list(self.rows):
            if low <= row["nonzeros"] <= high:
                costs.setdefault(label_of(row), {})[row["nonzeros"]] = _milliseconds(row) * 1e6 / row["edges"]
                machines[label_of(row)] = machine_of(row)
        if self.quantity.value == COST:
            return {name: sorted(of.items()) for name, of in costs.items()}
        base, machine = costs.pop(self.against.value, {}), machines.get(self.against.value)
        alike = {name: of for name, of in costs.items() if machines[name] == machine}
        return {name: [(x, base[x] / of[x]) for x in sorted(of) if x in base] for name, of in alike.items()}

    def recorded_curves(self):
        """What was recorded: of `column_block` over `naive`, or what an edge costs either; in the order picked."""
        rows = self._records.get(self.machine.value, ())
        order = "degree" if self._wishes and self._wishes[0].order == "degree" else "natural"
        if not rows:
            return {}
        if self.quantity.value == COST:
            of_block = {f"column_block, {way}": ("column_block", columns) for way, columns in WAYS.items()}
            ways = {"naive": ("naive", None)} | of_block
            return {name: records.edge_times(rows, *way, order=order) for name, way in ways.items()}
        if self.against.value != "naive":
            return {}
        curves = {way: records.speedup_curve(rows, columns, order=order) for way, columns in WAYS.items()}
        return {f"column_block, {way}": curve for way, curve in curves.items()}

    def _places(self):
        low, high = self.reach.value
        return [nonzeros for nonzeros in NONZEROS if low <= nonzeros <= high]

    def _to_run(self, wishes):
        """The wishes in one order for all, and what is to be said of those that are left out."""
        wishes = [wish._replace(order=wish.order or "natural") for wish in wishes]
        return of_kernels(wishes) if self.way.value == TRACED else (wishes, "")

    def _measure(self, graph, way, nonzeros, wishes, run):
        found = []
        for k, wish in enumerate(wishes):
            key = way, graph.m, nonzeros, wish.label, wish[2:]
            with part(k, len(wishes)):
                try:
                    if key not in self._found:
                        row = traced(graph, wish)[1] if way == TRACED else measured(graph, wish, graph.name)
                        self._found[key] = row | {"nonzeros": nonzeros}
                except TcgpuError as refusal:
                    run.complain(refusal)
                else:
                    found.append(self._found[key])
        check_agreement(found)
        self.rows += found

    def _draw(self):
        rows, live, recorded = list(self.rows), self.curves(), self.recorded_curves()
        speedup = self.quantity.value == SPEEDUP
        ylabel = f"speedup over {self.against.value}" if speedup else COST
        machines = " and ".join(dict.fromkeys(map(machine_of, rows)))
        title = f"now: {machines}" if rows else "now: Run shows it here"
        title += "; grey: recorded" if recorded else ""  # of which machine is said beside it
        ax = elements.panel(self.chart)
        charts.draw_sweep(live, recorded, reach=self.reach.value, ylabel=ylabel, title=title, ax=ax)
        elements.show(self.chart, ax.figure)
        others = {label_of(row) for row in rows} - {*live, self.against.value}
        compared = f"Not compared, since another engine ran it: {', '.join(sorted(others))}. "
        self.tell(self._left_out + (compared if others and speedup else ""))
        self.table.value = elements.table(HEAD, [("", _cells(row)) for row in rows])


def _milliseconds(row):
    return row["estimated_us"] / 1e3 if "estimated_us" in row else row["kernel_ms"]


def _cells(row):
    about = [row["nonzeros"], label_of(row), row["order"], machine_of(row)]
    return [*about, row["edges"], row["triangles"], round(_milliseconds(row), 6)]
