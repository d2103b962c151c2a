"""The page of the small explorer of one kernel: what it does on the picked graph, and where that is on the curve."""

from tcgpu.hardware import gpus
from tcgpu.lab.explorer.method_run import machine_of
from tcgpu.lab.explorer.pages import Page, shown_ms
from tcgpu.lab.explorer.sweep_page import SweepPage


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
