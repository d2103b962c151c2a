"""The page that sweeps over nonzeros per column: graphs that differ in nothing else, and how methods compare on them.

Points that were measured are kept: a further reach measures only what is new.
"""

import ipywidgets as widgets

from tcgpu import records
from tcgpu._watch import part
from tcgpu.bench import SWEEP, Rows, check_agreement
from tcgpu.explorer import drawing, look
from tcgpu.explorer.views import View, label_of, machine_of, measured
from tcgpu.generators import GENERATORS
from tcgpu.graph import GraphError

EDGES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000, 8_388_608)
SPEEDUP, COST = "speedup", "ns an edge"
WAYS = {"1 column": 1, "27 columns": 27, "a nonzero for every thread": "fitting"}  # of the recorded column_block


class Sweep(View):
    """Speedup against nonzeros per column.

    reach: from how many nonzeros per column to how many. edges: of every graph. quantity: the speedup, or what an edge
    costs. against: the method that is 1. machine: whose record is drawn beside, in grey.
    """

    title = "Sweep"

    def __init__(self):
        self._found = {}  # what was measured: (edges, nonzeros per column, Wish) -> row
        self._wishes = []
        self._records = records.records("sweep")
        labels = [(f"{nonzeros:g}", nonzeros) for nonzeros in SWEEP]
        self.reach = widgets.SelectionRangeSlider(options=labels, value=(1, 16), continuous_update=False)
        sizes = [(f"{m:,}", m) for m in EDGES]
        self.edges = widgets.SelectionSlider(options=sizes, value=1_000, continuous_update=False)
        self.against = widgets.Dropdown()
        self.quantity = widgets.Dropdown(options=(SPEEDUP, COST))
        self.machine = widgets.Dropdown(options=[*self._records, "none"])
        self.chart = look.image(470, 320)
        self.table = look.text("", "tcgpu-rows", height="190px")
        form = look.box([
            look.field(self.reach, "from so many nonzeros per column to so many"),
            look.field(self.edges, "edges of every graph: about 1,000 for the simulator"),
            look.field(self.quantity, "what the curves say"),
            look.field(self.against, "the method that is 1"),
            look.field(self.machine, "recorded, in grey"),
        ], flex="1 1 250px")  # fmt: skip
        self.note = look.text("", "tcgpu-words", height="22px")
        super().__init__([look.box([self.chart, form], "tcgpu-charts", kind=widgets.Box), self.note, self.table])
        for control in (self.reach, self.against, self.quantity, self.machine):
            control.observe(lambda change: self.draw(), "value")

    def begin(self, graphs, wishes):
        self.follow(wishes)
        low, high = self.reach.value
        edges, order = self.edges.value, wishes[0].order or "natural"
        places = [nonzeros for nonzeros in SWEEP if low <= nonzeros <= high]
        self.rows = Rows()

        def job(run):
            for k, nonzeros in enumerate(places):
                run.say(f"{nonzeros:g} nonzeros per column")
                with part(k, len(places)):
                    self._measure(edges, nonzeros, [wish._replace(order=order) for wish in wishes], run)
                self.draw()

        return job

    def code(self, graphs, wishes):
        low, high = self.reach.value
        order = wishes[0].order or "natural"
        return "\n".join([
            f"for k in [{', '.join(f'{k:g}' for k in SWEEP if low <= k <= high)}]:",
            f"    graph = tcgpu.generate.by_nonzeros({self.edges.value}, k)",
            *(f"    {wish._replace(order=order).code}" for wish in wishes),
        ])  # fmt: skip

    def follow(self, wishes):
        self._wishes = wishes
        look.offer(self.against, [wish.label for wish in wishes])
        self.draw()

    def _draw(self):
        live, recorded = self.curves(), self.recorded_curves()
        reach, quantity = self.reach.value, self.quantity.value
        ylabel = f"speedup over {self.against.value}" if quantity == SPEEDUP else "nanoseconds an edge"
        machines = " and ".join(dict.fromkeys(map(machine_of, list(self.rows))))
        title = f"measured now, {machines}" if machines else "measured now: Run shows it here"
        if recorded:
            title += f"; recorded, {self.machine.value}"
        ax = look.panel(self.chart)
        drawing.draw_sweep(live, recorded, reach=reach, ylabel=ylabel, title=title, ax=ax)
        look.show(self.chart, ax.figure)
        others = {label_of(row) for row in list(self.rows)} - {*live, self.against.value}
        left_out = f"Not compared, since another engine ran it: {', '.join(sorted(others))}. "
        self.tell(left_out if others and quantity == SPEEDUP else "")
        head = ["nonzeros per column", "method", "order", "runs on", "edges", "triangles", "kernel ms"]
        keys = ("edges", "triangles", "kernel_ms")
        lines = [
            ("", [row["nonzeros"], label_of(row), row["order"], machine_of(row), *map(row.get, keys)])
            for row in list(self.rows)
        ]
        self.table.value = look.table(head, lines)

    def curves(self):
        """What was measured: method -> [(nonzeros per column, speedup or nanoseconds)].

        Only what the same engine ran is compared.
        """
        low, high = self.reach.value
        costs, engine = {}, {}
        for row in list(self.rows):
            if low <= row["nonzeros"] <= high:
                costs.setdefault(label_of(row), {})[row["nonzeros"]] = row["kernel_ms"] * 1e6 / row["edges"]
                engine[label_of(row)] = row["engine"]
        if self.quantity.value == COST:
            return {name: sorted(of.items()) for name, of in costs.items()}
        base = costs.pop(self.against.value, {})
        alike = {name: of for name, of in costs.items() if engine[name] == engine.get(self.against.value)}
        return {name: [(x, base[x] / of[x]) for x in sorted(of) if x in base] for name, of in alike.items()}

    def recorded_curves(self):
        """What was recorded: of `column_block` over `naive`, or what an edge costs either; in the order picked."""
        rows = self._records.get(self.machine.value, ())
        order = "degree" if self._wishes and self._wishes[0].order == "degree" else "natural"
        if self.quantity.value == COST:
            of_block = {f"column_block, {way}": ("column_block", columns) for way, columns in WAYS.items()}
            ways = {"naive": ("naive", None)} | of_block if rows else {}
            return {name: records.nanoseconds(rows, *way, order=order) for name, way in ways.items()}
        if self.against.value != "naive" or not rows:
            return {}
        return {f"column_block, {way}": records.curve(rows, columns, order=order) for way, columns in WAYS.items()}

    def _measure(self, edges, nonzeros, wishes, run):
        found = []
        graph = None
        for k, wish in enumerate(wishes):
            key = edges, nonzeros, wish._replace(knobs=tuple(sorted(wish.knobs.items())))
            with part(k, len(wishes)):
                if key not in self._found:
                    try:
                        graph = graph or GENERATORS["by_nonzeros"](edges, nonzeros)
                        self._found[key] = measured(graph, wish, graph.name) | {"nonzeros": nonzeros}
                    except GraphError as refusal:
                        run.complain(refusal)
                        continue
            found.append(self._found[key])
        check_agreement(found)
        self.rows += found
