"""The page of traces: the picked kernels run in a simulator that writes every access down, which needs no GPU."""

import html
import json

import ipywidgets as widgets

from tcgpu.errors import GraphError, TcgpuError
from tcgpu.figures import axes
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.pages import View, label_of
from tcgpu.measurement import check_agreement
from tcgpu.progress import part
from tcgpu.records import Rows
from tcgpu.registry import METHODS
from tcgpu.tracing import Traces, trace
from tcgpu.tracing.pictures import BY

SOURCE, TOGETHER = "the source: where its time goes", "the methods side by side"
PICTURES = {
    SOURCE: lambda traced, kernel, by: traced.draw_source(by, stage=None, kernel=kernel),
    "a warp: what its lanes do": lambda traced, kernel, by: traced.draw_raster(kernel=kernel),
    "a request that reads most sectors": lambda traced, kernel, by: traced.draw_request(kernel=kernel),
    "a request with most bank conflicts": lambda traced, kernel, by: traced.draw_request("conflicts", kernel=kernel),
    "the work of each thread": lambda traced, kernel, by: traced.draw_balance("thread", "steps", kernel=kernel),
    "the work of each block": lambda traced, kernel, by: traced.draw_balance("block", "steps", kernel=kernel),
}
MEASURES = ("estimated_us", "steps", "lanes", "load_requests", "sectors_per_request", "bytes_moved", "bank_conflicts",
            "atomics")  # fmt: skip
HEAD = ("method", "order", "triangles", "estimated µs", "steps", "lanes", "load requests", "sectors each",
        "bytes moved", "bank conflicts", "atomics")  # fmt: skip


def traced(graph, wish):
    """The Trace of a Wish, and its row."""
    found = trace(graph, wish.method, order=wish.order, **wish.knobs)
    about = {"graph": graph.name or "", "vertices": graph.n, "edges": graph.m}
    about |= {"nonzeros_per_column": round(graph.nonzeros_per_column, 3), "triangles": found.triangles}
    way = {"method": wish.method, "engine": "traced", "order": found.graph.order, "knobs": json.dumps(found.knobs)}
    return found, about | way | {"machine": found.machine.name} | found.totals()


def of_kernels(wishes):
    """Those of the wishes that run kernels, and what is to be said of the others."""
    kept = [wish for wish in wishes if "sim" in METHODS[wish.method].engines]
    left = ", ".join(wish.method for wish in wishes if wish not in kept)
    return kept, f"There is nothing to trace in {left}, which runs no kernels. " if left else ""


class TracePage(View):
    """What the methods' kernels do on a small graph, line by line and lane by lane.

    picture: which one is drawn. of: of which method. kernel: of which of its kernels. by: what the bars beside the
    source tell. traces: method -> its Trace.
    """

    title = "Trace"

    def __init__(self):
        super().__init__(130)
        self.traces, self._left_out = {}, ""
        self.picture = widgets.Dropdown(options=[*PICTURES, TOGETHER], description="show")
        self.of = widgets.Dropdown(description="of")
        self.kernel = widgets.Dropdown(description="kernel")
        self.by = widgets.Dropdown(options=list(BY), description="by")
        for control, width in ((self.picture, 264), (self.of, 146), (self.kernel, 190), (self.by, 130)):
            control.layout.width, control.style.description_width = f"{width}px", "initial"
        self.chart = widgets.Image(format="png", layout={"flex": "none", "max_width": "none"})
        controls = [self.picture, self.of, self.kernel, self.by]
        shown = elements.box(controls, "tcgpu-charts", kind=widgets.Box)
        self.children = [self.note, self.table, shown, elements.box([self.chart], "tcgpu-rows", height="430px")]
        self.of.observe(self._turn_method, "value")
        for control in (self.picture, self.kernel, self.by):
            control.observe(lambda change: self.draw(), "value")

    def begin(self, graphs, wishes):
        recipe = graphs.recipe()
        kept, self._left_out = of_kernels(wishes)
        if not kept:
            raise GraphError("pick a method that runs kernels: there is nothing to trace in native threads")
        self.rows, self.traces = Rows(), {}
        rows, traces = self.rows, self.traces

        def job(run):
            graph = run.graph(recipe)
            for k, wish in enumerate(kept):
                run.say(f"tracing {wish.label}")
                with part(k, len(kept)):
                    try:
                        found, row = traced(graph, wish)
                    except TcgpuError as refusal:
                        run.complain(refusal)
                        continue
                traces[label_of(row)] = found
                rows.append(row)
                elements.offer(self.of, traces)
                self.draw()
            check_agreement(rows)

        return job

    def code(self, graphs, wishes):
        kept, _ = of_kernels(wishes)
        return "\n".join([f"graph = {graphs.recipe().code}", *(wish.traced for wish in kept)])

    def _draw(self):
        rows, traces = list(self.rows), dict(self.traces)
        self.note.value = html.escape(self._left_out + _estimated(traces))
        cells = ([label_of(row), row["order"], row["triangles"], *map(row.get, MEASURES)] for row in rows)
        self.table.value = elements.table(HEAD, [("", list(line)) for line in cells])
        try:
            figure = self._figure(traces)
        except TcgpuError as missing:
            figure = _said(str(missing))
        elements.show_whole(self.chart, figure)

    def _figure(self, traces):
        if not traces:
            return _said("Run traces the methods that are picked, on the graph that is picked.")
        if self.picture.value == TOGETHER:
            return Traces(traces.values()).draw(("estimated_us", "load_requests", "lanes"))
        found = traces.get(self.of.value) or next(iter(traces.values()))
        kernel = self.kernel.value if self.kernel.value in _kernels(found) else found.main().kernel
        return PICTURES[self.picture.value](found, kernel, self.by.value)

    def _turn_method(self, change):
        found = self.traces.get(change.new)
        self.kernel.options = _kernels(found) if found else ()
        self.kernel.value = found.main().kernel if found else None
        self.draw()


def _kernels(found):
    return tuple(dict.fromkeys(launch.kernel for launch in found.launches))


def _estimated(traces):
    machines = {found.machine.name for found in traces.values()}
    return f"Times are estimates for an {' and '.join(machines)}, made of what was traced." if machines else ""


def _said(words):
    """A picture of nothing but these words."""
    ax = axes(6, 0.6)
    ax.text(0, 0.5, words, size=9, color="#718096")
    ax.set_axis_off()
    return ax.figure
