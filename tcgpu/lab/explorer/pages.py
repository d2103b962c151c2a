"""The pages below the cards: the measurements that Run makes for each page, their rows, and the charts of these.

Run calls `begin`, which reads the controls. Then, in the explorer's thread, it calls `forecast` and then `measure` for
each method on each graph, and `draw` at the end; in a long run, now and then before.
"""

import ipywidgets as widgets

from tcgpu import records
from tcgpu.figures import BLUE, DARK, GREY, ORANGE, PALE, PURPLE, SKY, axes, plain_ticks
from tcgpu.insight.estimates import caution_for
from tcgpu.insight.gpus import GPUS
from tcgpu.kernels import simulated
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.method_run import TIMINGS, label_of, machine_of, times_of
from tcgpu.records import Rows, Table
from tcgpu.registry import METHODS

SHOWN = (  # of the rows of a page: what was measured, traced or estimated
    *("graph", "nonzeros", "method", "engine", "machine", "order", "knobs", "triangles"),
    *("kernel_ms", "process_ms", "total_ms", "estimated_us", "fill"),
    *("steps", "lanes", "load_requests", "sectors_per_request", "bytes_moved", "bank_conflicts", "atomics"),
)
TIMINGS_NOTE = (
    "Kernel: from the first to the last kernel. Process: with allocation, set-up and reading the result. "
    "Total: with cleaning and ordering the edges. All three are of the same runs."
)
SIMULATOR_NOTE = "The simulator is a Python program: its times are not a GPU's, and never drawn beside those of one. "
SOFTWARE_NOTE = "A software device is a program: its counts are right, its times are not a GPU's times."
HEIGHTS = 0.86, 0.62, 0.38  # of the nested bars
SHADES = {  # engine -> its name, if it is not that of the device; the colours of the nested bars
    "gpu": ("GPU", ("#bee3f8", "#63b3ed", BLUE)),
    "webgpu": ("", ("#fed7e2", "#ed64a6", PURPLE)),
    "cpu": ("CPU", ("#feebc8", "#f6ad55", ORANGE)),
    "sim": ("simulator", ("#edf2f7", "#a0aec0", DARK)),
    "traced": ("", (PALE, PALE, SKY)),
}
POINTS = 8  # size of the letters
MAX_TITLE, MAX_LABEL = 48, 36  # letters


def first_gpu(recorded):
    """The GPU whose record is shown at first; None if there is no record."""
    return records.REFERENCE_GPU if records.REFERENCE_GPU in recorded else next(iter(recorded), None)


def shown_ms(timing):
    """A function of a row: its time, measured or estimated; None for the simulator's, which is no GPU's time."""
    return lambda row: None if row["engine"] == "sim" else times_of(row).get(timing)


class Page(widgets.VBox):
    """A page with charts, a note and a table. rows: the measurements. run_code: the Python code of their run."""

    title = ""  # of the tab
    columns = {}  # of the table: heading -> the key of a row, or a function of a row
    settings = ()  # the names of the controls that `explore` can set

    def __init__(self, table_height):
        super().__init__()
        self.rows, self.run_code = Table((), *SHOWN), ""
        self._shown = False
        self._left_out = ""  # which methods were left out of the run
        self.note = elements.text("", "tcgpu-help", min_height="22px")
        self.table = elements.text("", "tcgpu-rows", height=f"{table_height}px")

    def plan(self, graphs, runs):
        """Read the controls: the sources of the graphs and the method runs that Run measures on each of them."""
        return [graphs.picked()], runs

    def begin(self, graphs, runs):
        """Clear the rows and begin a run; returns the result of `plan`."""
        sources, planned = self.plan(graphs, runs)
        without_kernels = {run.method for run in runs if "sim" not in METHODS[run.method].engines}
        left_out = without_kernels - {run.method for run in planned}
        self._left_out = f"Left out, because it runs no kernel: {', '.join(sorted(left_out))}. " if left_out else ""
        self.rows, self.run_code = Table((), *SHOWN), self.code(graphs, runs)
        return sources, planned

    def describe(self, source, run):
        """The description of a measurement while it runs."""
        return f"tracing {run.label}" if run.verb == "trace" else run.label

    def simulates(self, source, run):
        """Whether the simulator has to run the method."""
        return run.is_simulated and not self.known(source, run)

    def forecast(self, source, graph, run):
        """Seconds that a measurement or an estimate takes in the simulator; GraphError if that is beyond the limit.

        graph: None if the page simulates none of the methods on it.
        """
        if not self.simulates(source, run):
            return run.estimate_seconds if run.verb == "estimate" and not self.known(source, run) else 0.0
        return simulated.forecast(lambda: self.measure(source, graph, run))

    def known(self, source, run):
        """The row of a measurement that need not be made again; None if it has to be made."""

    def measure(self, source, graph, run):
        return run.run(graph, graph.name or source.code)[0]

    def code(self, graphs, runs):
        """Python code that does the same as Run."""
        [source], runs = self.plan(graphs, runs)
        return "\n".join([f"graph = {source.code}", *(run.code for run in runs)])

    def methods_changed(self, runs):
        """Called when other methods, knobs, orders or engines are picked."""

    def show(self, shown):
        """Show or hide the page. A hidden page does not draw."""
        self._shown = shown
        self.draw()

    @elements.one_at_a_time
    def draw(self):
        """Update charts, which each kind of page draws in its own `draw_charts`, note and table."""
        if self._shown:
            rows = self.to_draw()
            self.draw_charts(rows)
            self.note.show(self.note_of(rows))
            self.table.show(elements.table(list(self.columns), self.lines(rows)))

    def to_draw(self):
        return list(self.rows)

    def note_of(self, rows):
        simulated = any(row["engine"] == "sim" for row in rows)
        software = any(row.get("gpu_kind") == "software" and row["engine"] == "webgpu" for row in rows)
        return self._left_out + SIMULATOR_NOTE * simulated + SOFTWARE_NOTE * software

    def lines(self, rows, css_class=""):
        """The table's lines, as pairs (CSS class, cells)."""
        of_row = self.columns.values()
        return [(css_class, [of(row) if callable(of) else row.get(of) for of in of_row]) for row in rows]


class ComparePage(Page):
    """Compares methods on one graph, next to records from GPUs. Without a GPU it traces kernels and estimates times.

    gpu: the GPU that is estimated. machine, graph: the GPU and the graph of the record that is shown. keep: whether a
    run keeps earlier rows.
    """

    title = "Compare"
    settings = ("gpu", "machine", "graph", "keep")
    columns = {
        "graph": "graph", "method": label_of, "order": "order",
        "runs on": lambda row: f"{machine_of(row)}, {row['date']}", "triangles": "triangles",
        "kernel ms": shown_ms("kernel_ms"), "requests": "load_requests", "sectors each": "sectors_per_request",
        "process ms": shown_ms("process_ms"), "total ms": shown_ms("total_ms"),
    }  # fmt: skip

    def __init__(self):
        super().__init__(190)
        self._records = records.counts()
        self._drawn = None  # the record that is in its chart
        self.gpu = elements.dropdown("without a GPU, estimate an", 130, "the GPU whose times are estimated", list(GPUS))
        self.machine = elements.dropdown("on", 150, "the GPU of the record", list(self._records))
        self.machine.value = first_gpu(self._records)
        self.graph = elements.dropdown("recorded", 234, "the graph of the record")
        self.keep = widgets.Checkbox(description="keep the rows of earlier runs", indent=False)
        self.keep.tooltip = "draw and save what the next run measures with the rows that are there"
        self.live_chart, self.recorded_chart = elements.Chart("tcgpu-times"), elements.Chart("tcgpu-recorded-times")
        columns = [
            elements.box([self.gpu, self.keep, self.live_chart, self.live_chart.export]),
            elements.box([self.graph, self.machine, self.recorded_chart, self.recorded_chart.export]),
        ]
        self.children = [elements.box(columns, "tcgpu-charts", kind=widgets.Box), self.note, self.table]
        elements.when_set(self._show_machine, self.machine)
        elements.when_set(self.draw, self.graph)
        self._show_machine()

    @property
    def recorded(self) -> Rows:
        return self._records.get(self.machine.value, {}).get(self.graph.value, Rows())

    def plan(self, graphs, runs):
        """What the simulator would run only because there is no GPU is traced: its own times are not a GPU's."""
        traced = {"verb": "trace", "gpu": self.gpu.value}
        runs = [run._replace(**traced) if run.is_simulated and run.engine is None else run for run in runs]
        return [graphs.picked()], runs

    def begin(self, graphs, runs):
        kept = self.rows if self.keep.value else Table((), *SHOWN)
        planned = super().begin(graphs, runs)
        self.rows = kept
        return planned

    def draw_charts(self, rows):
        alone = [row for row in rows if row["engine"] != "sim"] or rows
        title = f"now: {rows[-1]['graph']}" if rows else "now: press Run"
        self.live_chart.show(draw_timings(alone, title), {row["method"] for row in alone}, alone)
        if self._drawn != (self.machine.value, self.graph.value):
            self._drawn = self.machine.value, self.graph.value
            title = f"recorded on {self.recorded[0]['date']}" if self.recorded else "nothing was recorded"
            shown = {row["method"] for row in self.recorded}
            self.recorded_chart.show(draw_timings(self.recorded, title), shown, self.recorded)

    def note_of(self, rows):
        estimated = {row["machine"] for row in rows if row["engine"] == "traced"}
        words = [f"Kernels were traced, and their time estimated for an {gpu}." for gpu in estimated]
        return " ".join([TIMINGS_NOTE, *words, *map(caution_for, estimated), super().note_of(rows)])

    def lines(self, rows):
        return super().lines([row | {"date": "now"} for row in rows]) + super().lines(self.recorded, "recorded")

    def _show_machine(self):
        elements.set_options(self.graph, self._records.get(self.machine.value, {}))
        self.draw()


def draw_timings(rows, title):
    """Draw a bar for each row: its total time, in it the process time, in that the kernel time. Returns the figure.

    The label of a row names the order only if the rows differ in it.
    """
    several, ax = len({row["order"] for row in rows}) > 1, axes(3.4, 2.8)
    for place, row in enumerate(rows):
        kernel = times_of(row)["kernel_ms"]
        for timing, height, color in zip(TIMINGS, HEIGHTS, SHADES[row["engine"]][1], strict=True):
            ax.barh(place, times_of(row).get(timing, 0), height, color=color, lw=0)
        words = f"{kernel:,.0f}" if kernel >= 1000 else f"{kernel:.3g}"
        ax.annotate(words, (kernel, place), (3, 0), textcoords="offset points", size=POINTS, va="center")
    engines = {row["engine"]: row for row in rows}
    for engine, row in engines.items():
        name, shades = SHADES[engine]
        ax.barh(0, 0, color=shades[-1], label=name or machine_of(row))
    if rows:
        columns = 1 if engines.keys() & {"webgpu", "traced"} else 3  # the names of devices are long
        ax.figure.legend(frameon=False, fontsize=POINTS, loc="outside lower right", ncols=columns)
    times = [ms for row in rows for ms in times_of(row).values() if ms > 0]
    low, high = (min(times) / 3, max(times) * 4) if times else (0.1, 100)
    ax.set(xscale="log", xlim=(low, high), ylim=(max(len(rows), 4) - 0.5, -0.5), yticks=range(len(rows)))
    labels = (f"{label_of(row)}, {row['order']}" if several else label_of(row) for row in rows)
    ax.set_yticklabels([_cut(label, MAX_LABEL) for label in labels])
    ax.set_xlabel("milliseconds: kernel (dark), process, total (light)", size=POINTS, loc="right")
    ax.tick_params(labelsize=POINTS)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    plain_ticks(ax.xaxis)
    ax.set_title(_cut(title, MAX_TITLE), size=POINTS + 1, loc="left")
    return ax.figure


def _cut(text, most):
    return text if len(text) <= most else f"{text[: most - 1]}…"
