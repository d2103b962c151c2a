"""The page that traces kernels: a simulator records every memory access, on any machine."""

import ipywidgets as widgets

from tcgpu import figures
from tcgpu.errors import MethodError, TcgpuError
from tcgpu.insight import Traces
from tcgpu.insight.estimates import caution_for
from tcgpu.insight.pictures import BY
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.method_run import label_of
from tcgpu.lab.explorer.pages import Page
from tcgpu.registry import METHODS

SOURCE, ALL_METHODS = "the source: where its time goes", "the methods side by side"
PICTURES = {
    SOURCE: lambda trace, kernel, by: trace.draw_source(by, stage=None, kernel=kernel),
    "a warp: what its lanes do": lambda trace, kernel, by: trace.draw_raster(kernel=kernel),
    "the request with the most sectors": lambda trace, kernel, by: trace.draw_request(kernel=kernel),
    "the request with the most bank conflicts": lambda trace, kernel, by: trace.draw_request(
        "conflicts", kernel=kernel
    ),
    "the work of each thread": lambda trace, kernel, by: trace.draw_balance("thread", "steps", kernel=kernel),
    "the work of each block": lambda trace, kernel, by: trace.draw_balance("block", "steps", kernel=kernel),
}


def with_kernels(runs):
    """The method runs that have kernels; MethodError if none has."""
    kept = [run for run in runs if "sim" in METHODS[run.method].engines]
    if not kept:
        raise MethodError("pick a method that runs kernels: cpu runs none")
    return kept


class TracePage(Page):
    """Shows the memory accesses of kernels on a small graph, line by line and lane by lane.

    traces: method -> Trace. picture, of, kernel: the picture, the method and the kernel that are shown. by: the
    quantity beside the source.
    """

    title = "Trace"
    settings = ("picture", "by")
    columns = {
        "method": label_of,
        "order": "order",
        "triangles": "triangles",
        "estimated µs": "estimated_us",
        "steps": "steps",
        "lanes": "lanes",
        "load requests": "load_requests",
        "sectors each": "sectors_per_request",
        "bytes moved": "bytes_moved",
        "bank conflicts": "bank_conflicts",
        "atomics": "atomics",
    }

    def __init__(self):
        super().__init__(130)
        self.traces = {}
        self.picture = elements.dropdown("show", 264, "the picture that is shown", [*PICTURES, ALL_METHODS])
        self.of = elements.dropdown("of", 146, "the method that it is of")
        self.kernel = elements.dropdown("kernel", 190, "the kernel that it is of")
        self.by = elements.dropdown("by", 130, "the quantity beside the source", list(BY))
        self._switch()
        self.chart = elements.Chart("tcgpu-trace", 88)
        picks = elements.box([self.picture, self.of, self.kernel, self.by], "tcgpu-charts", kind=widgets.Box)
        shown = elements.box([self.chart], "tcgpu-rows", height="430px")
        self.children = [self.note, self.table, picks, shown, self.chart.export]
        elements.when_set(self._switch, self.picture)
        elements.when_set(self._method_changed, self.of)
        elements.when_set(self.draw, self.picture, self.kernel, self.by)

    def plan(self, graphs, runs):
        return [graphs.picked()], [run._replace(verb="trace") for run in with_kernels(runs)]

    def begin(self, graphs, runs):
        planned = super().begin(graphs, runs)
        self.traces = {}
        return planned

    def measure(self, source, graph, run):
        row, trace = run.run(graph)
        self.traces[label_of(row)] = trace
        with elements.LOCK:  # the run draws, not each control that is set
            shown, self._shown = self._shown, False
            elements.set_options(self.of, self.traces)
            self._shown = shown
        return row

    def note_of(self, rows):
        machines = dict.fromkeys(row["machine"] for row in rows)
        if not machines:
            return self._left_out
        estimated = f"Times of kernels are estimated from the trace, for an {' and '.join(machines)}."
        return " ".join([self._left_out + estimated, *filter(None, map(caution_for, machines))])

    def draw_charts(self, rows):
        try:
            figure = self._figure(dict(self.traces))
        except TcgpuError as reason:  # the trace has nothing that the picture shows
            figure = _figure_of_words(str(reason))
        self.chart.show(figure, [row["method"] for row in rows])

    def _figure(self, traces):
        if not traces:
            return _figure_of_words("Press Run to trace the picked methods on the picked graph.")
        if self.picture.value == ALL_METHODS:
            return Traces(traces.values()).draw(("estimated_us", "load_requests", "lanes"))
        trace = traces.get(self.of.value) or next(iter(traces.values()))
        kernel = self.kernel.value if self.kernel.value in _kernels(trace) else trace.main().kernel
        return PICTURES[self.picture.value](trace, kernel, self.by.value)

    def _switch(self):
        """Switch on the lists that change the picture."""
        self.by.disabled = self.picture.value != SOURCE
        self.of.disabled = self.kernel.disabled = self.picture.value == ALL_METHODS

    def _method_changed(self):
        trace, shown = self.traces.get(self.of.value), self._shown
        self._shown = False
        self.kernel.options = _kernels(trace) if trace else ()
        self.kernel.value = trace.main().kernel if trace else None
        self.show(shown)


def _kernels(trace):
    return tuple(dict.fromkeys(launch.kernel for launch in trace.launches))


def _figure_of_words(words):
    ax = figures.axes(6, 0.6)
    ax.text(0, 0.5, words, size=9, color="#718096")
    ax.set_axis_off()
    return ax.figure
