"""The pages below the cards. Each knows what Run does on it, keeps the rows that came of it, and draws them.

A run goes through three steps: `begin` in the notebook's thread, which reads the controls; the job that it returns, in
the explorer's thread; `draw`, whenever there is more to see.
"""

import html
import json
import re

import ipywidgets as widgets

from tcgpu import records
from tcgpu.errors import TcgpuError
from tcgpu.lab.explorer import charts, elements
from tcgpu.measurement import check_agreement, measure
from tcgpu.progress import part
from tcgpu.records import Rows
from tcgpu.registry import METHODS

TIMINGS = ("kernel_ms", "process_ms", "total_ms")
SIMULATED = "The simulator is a Python program: its milliseconds tell of the work there is, not of a GPU's time."
HEAD = ("graph", "method", "order", "measured on", "triangles", "kernel ms", "process ms", "total ms")


class View(widgets.VBox):
    """A page: `rows` is what was measured on it, `title` what its tab says. Every page has a note and a table."""

    title = ""

    def __init__(self, height):
        super().__init__()
        self.rows = Rows()
        self.shown = False
        self.note = elements.text("", "tcgpu-words", min_height="22px")
        self.table = elements.text("", "tcgpu-rows", height=f"{height}px")

    def turn(self, shown):
        """The page is shown, or no longer: only a page that is shown draws."""
        self.shown = shown
        self.draw()

    def begin(self, graphs, wishes):
        """Read the controls, and the graph's if it matters; returns the job `job(run)`: `run` is the Explorer."""
        raise NotImplementedError

    def follow(self, wishes):
        """Other methods were picked: show those that can be shown already."""

    def draw(self):
        """Show the rows that there are."""
        if self.shown:
            self._draw()

    def _draw(self):
        raise NotImplementedError

    def tell(self, words=""):
        """Show a note under the charts, and what the times of a simulator are."""
        if any(row["engine"] == "sim" for row in list(self.rows)):
            words += SIMULATED
        self.note.value = html.escape(words)

    def code(self, graphs, wishes):
        """What Run does, as Python."""
        raise NotImplementedError


def measured(graph, wish, name=None):
    """The row of a Wish."""
    [row] = measure(graph, wish.method, knobs=wish.knobs, engine=wish.engine, order=wish.order, repeats=wish.runs,
                    name=name)  # fmt: skip
    return row


def machine_of(row):
    """What ran a row, as a person calls it."""
    if row["engine"] == "sim":
        return "simulator"
    if row["engine"] == "traced":
        return f"{row['machine']}, estimated"
    cpu = re.sub(r"\(\w+\)|Processor|CPU|@.*", "", row["cpu"])
    return row["gpu_name"] if row["engine"] == "gpu" else f"{row['threads']} threads, {' '.join(cpu.split())}"


def label_of(row):
    """A row's method, and which of its knobs are not as they come."""
    method = METHODS.get(row["method"])
    set_here = json.loads(row.get("knobs") or "{}").items()
    own = {name: value for name, value in set_here if method is None or method.knobs.get(name, value) != value}
    return " ".join([row["method"], *(f"{name}={value}" for name, value in own.items())])


class Compare(View):
    """Methods on one graph: their three timings and counts, beside what was recorded of GPUs.

    machine, graph: of which record. keep: whether a run adds to the rows of the runs before it.
    """

    title = "Compare"

    def __init__(self):
        super().__init__(190)
        self._records = records.counts()
        self._drawn = None  # which record is in its chart
        self.machine = widgets.Dropdown(options=list(self._records), description="on", layout={"width": "150px"})
        self.graph = widgets.Dropdown(description="recorded", layout={"width": "234px"})
        for control in (self.machine, self.graph):
            control.style.description_width = "initial"
        self.keep = widgets.Checkbox(description="keep the rows of earlier runs", indent=False)
        self.live_chart, self.recorded_chart = elements.image(392, 280), elements.image(392, 280)
        charts = [
            elements.box([self.keep, self.live_chart]),
            elements.box([elements.box([self.graph, self.machine], kind=widgets.HBox), self.recorded_chart]),
        ]
        self.children = [elements.box(charts, "tcgpu-charts", kind=widgets.Box), self.note, self.table]
        self.machine.observe(self._turn, "value")
        self.graph.observe(lambda change: self.draw(), "value")
        self._turn()

    @property
    def recorded(self):
        """The recorded rows that are shown."""
        return self._records.get(self.machine.value, {}).get(self.graph.value, Rows())

    def begin(self, graphs, wishes):
        recipe = graphs.recipe()
        if not self.keep.value:
            self.rows = Rows()
        rows = self.rows

        def job(run):
            graph, found = run.graph(recipe), []
            for k, wish in enumerate(wishes):
                run.say(wish.label)
                with part(k, len(wishes)):
                    try:
                        found.append(measured(graph, wish, graph.name or recipe.code))
                    except TcgpuError as refusal:
                        run.complain(refusal)
                        continue
                rows.append(found[-1])
                self.draw()
            check_agreement(found)

        return job

    def code(self, graphs, wishes):
        return "\n".join([f"graph = {graphs.recipe().code}", *(wish.code for wish in wishes)])

    def _draw(self):
        rows = list(self.rows)
        title = f"measured now: {rows[-1]['graph']}" if rows else "measured now: Run shows it here"
        _draw_bars(self.live_chart, rows, title)
        if self._drawn != (self.machine.value, self.graph.value):
            self._drawn = self.machine.value, self.graph.value
            there = f"recorded, {self.recorded[0]['date']}" if self.recorded else "no GPU was recorded"
            _draw_bars(self.recorded_chart, self.recorded, there)
        self.tell()
        lines = [("", _cells(row, "now")) for row in rows]
        lines += [("recorded", _cells(row, row["date"])) for row in self.recorded]
        self.table.value = elements.table(HEAD, lines)

    def _turn(self, change=None):
        elements.offer(self.graph, self._records.get(self.machine.value, {}))
        self.draw()


def _draw_bars(image, rows, title):
    """Bars that are called after their method, and after their order where that makes a difference."""
    orders = len({row["order"] for row in rows}) > 1
    labels = [label_of(row) + (f", {row['order']}" if orders else "") for row in rows]
    ax = elements.panel(image)
    charts.draw_timings(labels, rows, title=title, ax=ax)
    elements.show(image, ax.figure)


def _cells(row, when):
    about = [row["graph"], label_of(row), row["order"], f"{machine_of(row)}, {when}"]
    return [*about, row["triangles"], *map(row.get, TIMINGS)]
