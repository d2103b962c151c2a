"""The Explorer: two cards that pick a graph and methods, Run and Stop, three pages of results, the code of the run."""

import contextlib
import inspect
import time
from pathlib import Path

import ipywidgets as widgets
import traitlets

from tcgpu.declarations import check_integer
from tcgpu.engines import runtime
from tcgpu.errors import SMALLER, GraphError, MethodError, TcgpuError
from tcgpu.figures import counted
from tcgpu.graph import Graph
from tcgpu.hardware import webgpu_device
from tcgpu.kernels import simulated
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.graph_card import DEFAULT, GraphCard, GraphSource
from tcgpu.lab.explorer.job_thread import JobThread, Stopped
from tcgpu.lab.explorer.method_card import MethodCard
from tcgpu.lab.explorer.method_run import MethodRun
from tcgpu.lab.explorer.pages import ComparePage, Page
from tcgpu.lab.explorer.sweep_page import KernelPage, SweepPage
from tcgpu.lab.explorer.trace_page import TracePage
from tcgpu.markup import Markup, element
from tcgpu.measurement import check_agreement
from tcgpu.progress import part
from tcgpu.records import Rows
from tcgpu.suggest import check_known

STYLE = element("style", Markup(Path(__file__).with_name("style.css").read_text()))
DRAW_EVERY = 1.0  # seconds, while a run goes on
RUN_LIMIT = 120.0  # seconds that a run may take in the simulator, unless another limit is entered
MOST_SECONDS = 1_000_000  # that can be entered
EXPECTED = (TcgpuError, OSError)  # errors that need no traceback: the message is enough


class Explorer(widgets.VBox):
    """A panel that counts triangles, in a notebook or on a page made by Voila.

    A program can use it, too: set the controls, call `run` and `stop`, read `rows`.
    """

    busy: bool = traitlets.Bool(False)  # whether a run is in progress
    message: str = traitlets.Unicode("")  # what went wrong, in words

    def __init__(self, graph, methods, *, order, engine, page, settings, kernel):
        self.failure: Exception | None = None  # that ended the last run, if it was none of EXPECTED
        self._problems = {}  # "graph", "methods" or "run" -> what is wrong with it
        self._picked = None  # the GraphSource that is picked
        self._made = None, None  # the GraphSource that was picked and made last, and its graph
        self._started = 0.0  # when the run began, in seconds
        self._drawn = 0.0  # when its charts were drawn last
        self._activity = ""  # what is being done
        self._forecast = ""  # how long the run takes in the simulator, in words; empty if that is not long
        self._thread = JobThread(self._show_progress)
        self.graphs = GraphCard(graph, order, self._graph_changed)
        self.methods = MethodCard(methods, self._methods_changed)
        elements.when_set(self._methods_changed, self.graphs.order)
        self.kernel, self._first = kernel, {}  # the only method; setting -> its first value
        self.sweep = KernelPage(kernel) if kernel else SweepPage()
        self.compare, self.traces = ComparePage(), TracePage()
        self.pages = widgets.Tab([self.sweep] if kernel else [self.sweep, self.compare, self.traces])
        self.pages.titles = titles = [page.title for page in self.pages.children]
        self.pages.selected_index = titles.index(check_known("page", page, titles, MethodError))
        elements.when_set(self._page_changed, self.pages, trait="selected_index")
        elements.when_set(self._show_code, self.sweep.limits, self.sweep.edges, self.sweep.way, self.sweep.gpu)
        elements.when_set(self._place, self.sweep.way, self.sweep.gpu)
        self.python = elements.text("", "tcgpu-python")
        self.problems = elements.text("", "tcgpu-message")
        self.view = elements.text("", "tcgpu-view")
        main = [self._bar(engine), self.problems, self.sweep if kernel else self.pages, self.view, self.python]
        cards = [self.graphs, elements.box(main, "tcgpu-main"), *([] if kernel else [self.methods])]
        tips = {page.title: (inspect.getdoc(page) or "").partition("\n")[0] for page in self.pages.children}
        shown = [each for card in cards for each in elements.everything(card)]
        tips |= {each.description: each.tooltip for each in shown if getattr(each, "tooltip", "")}
        grid = elements.box(cards, "tcgpu-grid", kind=widgets.GridBox)
        super().__init__([widgets.HTML(STYLE), elements.Names(tips=tips), grid])
        self.add_class("tcgpu-explorer")
        self._run_last = elements.RunLast(run=self.run_button, panel=self)
        self._methods_changed()
        self._set(settings)
        self._graph_changed()
        self._page_changed()

    @property
    def page(self) -> Page:
        return self.pages.children[self.pages.selected_index]

    @property
    def code(self) -> str:
        """The line of Python that opens an explorer like this one: its graph, methods, page and settings."""
        runs, settings = self.method_runs(), {}
        for name, control in self._settings().items():
            if control.value != self._first.get(name, control.value):  # of methods at first; of others, see below
                settings[name] = control.value
        settings |= {f"{run.method}.{knob}": value for run in runs for knob, value in run.knobs.items()}
        what = {"kernel": self.kernel} if self.kernel else {"methods": self.methods.chosen, "page": self.page.title}
        given = what | {"order": runs[0].order, "engine": runs[0].engine, "settings": settings}
        said = "".join(f", {name}={value!r}" for name, value in given.items() if value)
        return f"tcgpu.explore({self.graphs.named()}{said})"

    def _settings(self):
        """The controls that `settings` can set: name -> control."""
        controls = {"runs": self.repeats, "max seconds": self.max_seconds}
        for page in self.pages.children:
            controls |= {f"{page.title.lower()}.{name}": getattr(page, name) for name in page.settings}
        for method in self.methods.chosen:
            controls |= {f"{method}.{knob}": control for knob, control in self.methods.knobs[method].items()}
        return controls

    def _set(self, settings):
        controls = self._settings()
        self._first = {name: control.value for name, control in controls.items()}
        for name, value in settings.items():
            control = controls[check_known("setting", name, controls, MethodError)]
            control.value = str(value) if isinstance(control, elements.NumberField) else value

    @property
    def rows(self) -> Rows:
        return self.page.rows

    def method_runs(self) -> list[MethodRun]:
        """The picked methods with their settings; TcgpuError if a control has an invalid value."""
        order, engine = self.graphs.order.value, self.engine.value
        return self.methods.runs(
            None if order == DEFAULT else order,
            None if engine == DEFAULT else engine,
            self.repeats.number,
            self.max_seconds.number,
        )

    @elements.one_at_a_time
    def run(self) -> None:
        """Start the run of the page that is shown, in the background; does nothing while a run is in progress."""
        if self.busy:
            return
        page, self.failure = self.page, None
        self._clear_problems("methods", "run")
        try:
            sources, runs = page.begin(self.graphs, self.method_runs())
        except TcgpuError as reason:
            self._add_problem(reason)
            self.progress.value = 0.0
            self._show_activity("not started: see below")
            return
        self.busy, self.progress.value = True, 0.0
        self._show_code()
        self._thread.submit("run", lambda: self._run(page, sources, runs))

    def stop(self) -> None:
        """Stop the run at its next launch or simulated thread. The rows that it has measured stay."""
        if self._thread.stop("run"):
            self.busy = False
            self._show_activity("stopped before it began")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing runs, for at most `seconds`; returns whether nothing runs."""
        return self._thread.wait(seconds)

    def __repr__(self) -> str:
        of, methods = (f" of {self.kernel}", []) if self.kernel else ("", self.methods.chosen)
        return f"<Explorer{of}: {', '.join([f'{self.graphs.source.value} graph', *methods])}>"

    # ----------------------------------------------------------------------------------- jobs, in the explorer's thread

    def _run(self, page, sources, runs):
        """Measure the methods on the graphs, then say how it ended and which methods were refused."""
        outcome, refused, rows_before = "failed", {}, len(page.rows)
        self._started = self._drawn = time.monotonic()
        try:
            limit = runs[0].max_seconds or simulated.LIMIT  # of each measurement
            with simulated.limited(limit, MOST_SECONDS):
                planned = self._forecast_all(page, sources, runs, refused)
                for k, (source, kept) in enumerate(planned):
                    with part(k, len(planned)):
                        self._measure_all(page, source, kept, refused)
            outcome = "done" if len(page.rows) > rows_before else "refused"
        except Stopped:
            outcome = "stopped"
        except Exception as problem:
            self._add_problem(problem)
        finally:
            seconds = time.monotonic() - self._started
            self._forecast = ""
            self.progress.value = (len(page.rows) - rows_before) / (len(sources) * len(runs))
            try:
                page.draw()
                self._show_code()
            except Exception as problem:
                self._add_problem(problem)
                outcome = "failed"
            names = f"; refused: {', '.join(refused)}" if refused and outcome != "refused" else ""
            self._show_activity(f"{outcome} after {seconds:.1f} s: {counted(len(page.rows), 'row')}{names}")
            self.busy = False

    def _forecast_all(self, page, sources, runs, refused):
        """Forecast how long the run takes in the simulator; returns pairs: a graph's source, the methods to run on it.

        `refused` collects the methods that cannot run. There are none to run if all together would take too long.
        """
        self._show_activity("forecasting the time of the run")
        seconds, planned = 0.0, []
        for source in sources:
            kept, graph = [], None
            if any(page.simulates(source, run) for run in runs):
                try:
                    graph = self._graph(source)
                except TcgpuError:  # reported when it is measured, after the graphs before it
                    planned.append((source, runs))
                    break
            for run in runs:
                with self._refusing(run, refused):
                    seconds += page.forecast(source, graph, run)
                    kept.append(run)
            planned.append((source, kept))
        try:
            with simulated.limited(runs[0].max_seconds or RUN_LIMIT):
                simulated.check("this run", seconds, "take fewer methods or a smaller graph")
        except GraphError as reason:
            self._add_problem(reason)
            return []
        if seconds > simulated.NOTICE:
            self._forecast = f" of about {simulated.duration(seconds)}"
        return [(source, kept) for source, kept in planned if kept]

    def _measure_all(self, page, source, runs, refused):
        """Measure each method on one graph; `refused` collects the methods that cannot run."""
        rows = [page.known(source, run) for run in runs]
        graph = None if all(rows) else self._graph(source)
        for k, run in enumerate(runs):
            if page.rows and time.monotonic() - self._drawn > DRAW_EVERY:  # a chart takes longer to draw than a count
                page.draw()
                self._drawn = time.monotonic()
            self._show_activity(page.describe(source, run))
            with part(k, len(runs)), self._refusing(run, refused):
                rows[k] = rows[k] or page.measure(source, graph, run)
                page.rows.append(rows[k])
        check_agreement([row for row in rows if row and "triangles" in row])

    @contextlib.contextmanager
    def _refusing(self, run, refused):
        """A TcgpuError inside the `with` ends it, is reported, and stored in `refused` for the method."""
        try:
            yield
        except TcgpuError as reason:
            if run.label not in refused:
                refused[run.label] = reason
                self._add_problem(f"{run.label} was refused: {reason}")

    def _describe_graph(self, source):
        """Make the picked graph, show its size and, on the page that has it, its place on the curve."""
        self._started, before = time.monotonic(), (self.progress.value, self.status.value)
        try:
            graph = self._graph(source)
            with elements.LOCK:
                if source is self._picked:  # still
                    self.graphs.show_facts(graph)
            if source is self._picked and self.page is self.sweep:
                self._show_activity("estimating the graph's place on the curve")
                self.sweep.place(source, graph)
        except Exception as problem:
            if source is self._picked:
                self._add_problem(problem, "graph")
        self.progress.value, self.status.value = before

    def _graph(self, source: GraphSource) -> Graph:
        """Make the graph of a source. The one that is picked is made once."""
        if self._made[0] == source:
            return self._made[1]
        self._show_activity(f"making {source.code}")
        graph = source.make()
        if source == self._picked:
            self._made = source, graph
        return graph

    # ------------------------------------------------------------------------------------------- when a control changes

    def _graph_changed(self):
        self._clear_problems("graph", "run")
        self.graphs.facts.show()
        self._picked, self.sweep.star = None, []
        if not self.busy:
            self.progress.value, self.status.value = 0.0, ""
        try:
            self._picked = source = self.graphs.picked()
            self._thread.submit("describe", lambda: self._describe_graph(source))
        except GraphError as reason:  # no file is named yet
            self.graphs.facts.show(str(reason))
        except TcgpuError as reason:
            self._add_problem(reason, "graph")
        if not self._picked:
            self.sweep.draw()
        self._show_code()

    def _place(self):
        """Have the picked graph described again: it may have another place on the curve."""
        if self._picked and self.page is self.sweep:
            self._thread.submit("describe", lambda source=self._picked: self._describe_graph(source))

    def _methods_changed(self):
        self._clear_problems("methods", "run")
        try:
            runs = self.method_runs()
        except TcgpuError as reason:
            self._add_problem(reason, "methods")
        else:
            for page in self.pages.children:
                page.methods_changed(runs)
            self._place()
        self._show_code()

    def _page_changed(self):
        for page in self.pages.children:
            page.show(page is self.page)
        self._place()
        self._show_code()

    # ---------------------------------------------------------------------------------------------- what the panel says

    def _bar(self, engine):
        """The row of controls: Run, Stop, the settings of a run, and its progress."""
        self.run_button = widgets.Button(description="Run", icon="play", button_style="primary")
        self.run_button.tooltip = "measure or trace the picked methods, as the page below says"
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.stop_button.tooltip = "stop the run at its next launch or simulated thread"
        for button in (self.run_button, self.stop_button):
            button.layout = {"width": "76px", "flex": "none"}
        own = webgpu_device()
        missing = f". Your GPU, by WebGPU: {runtime.why_missing('webgpu')}" if own is None else ""
        tooltip = f"what runs the kernels: a GPU if there is one, else the simulator{missing}"
        engines = {"best available": DEFAULT, "GPU": "gpu", _label(own): "webgpu", "simulator": "sim", "CPU": "cpu"}
        self.engine = elements.dropdown("on", 150, tooltip, engines)
        self.engine.value = check_known("engine", engine or DEFAULT, engines.values(), MethodError)
        self.repeats = elements.NumberField(
            5, lambda number: check_integer("runs", number, 1, 99), description="runs", layout={"width": "84px"}
        )
        self.repeats.tooltip = "the number of runs that a time is the median of; the simulator runs once"
        self.repeats.style.description_width = "initial"
        self.max_seconds = elements.NumberField(
            None,
            lambda number: elements.check_number("max seconds", number, 1, MOST_SECONDS),
            placeholder="automatic",
            description="max seconds",
            layout={"width": "172px"},
        )
        self.max_seconds.style.description_width = "initial"
        self.max_seconds.tooltip = (
            "the seconds that a run may take in the simulator, by its forecast; automatic: "
            f"{simulated.LIMIT:g} for a measurement, {RUN_LIMIT:g} for all of a run"
        )
        elements.when_set(self._methods_changed, self.engine, self.repeats, self.max_seconds)
        self.progress = widgets.FloatProgress(value=0.0, min=0.0, max=1.0, layout={"width": "130px", "flex": "none"})
        self.status = elements.text("", "tcgpu-status", flex="1 1 260px", min_height="22px")
        self.csv = elements.text("", width="auto")
        share = widgets.Button(description="share", icon="link", layout={"width": "80px", "flex": "none"})
        share.tooltip = "show the line of Python that opens an explorer like this one"
        share.on_click(lambda button: self._show_view())
        self.run_button.on_click(lambda button: self.run())
        self.stop_button.on_click(lambda button: self.stop())
        settings = [self.engine, self.repeats, self.max_seconds]
        controls = [self.run_button, self.stop_button, *settings, share, self.progress, self.status, self.csv]
        return elements.box(controls, "tcgpu-bar", kind=widgets.HBox)

    def _show_activity(self, words):
        self._activity = words
        self.status.show(f"{words}: {self._time()}" if self._forecast else words)

    def _show_progress(self, share):
        self.progress.value = share
        self.status.show(f"{self._activity}: {self._time()}")

    def _time(self):
        """The time that the run has taken so far and, if it is long, its forecast."""
        fixed = "" if self._thread.stoppable else "; this browser cannot stop it"
        return f"{time.monotonic() - self._started:.1f} s{self._forecast}{fixed}"

    @elements.one_at_a_time
    def _show_code(self):
        """Show the code of the page's run and, if controls changed since, of the next; and the link to its rows."""
        ran = code = self.page.run_code
        with contextlib.suppress(TcgpuError):
            code = self.page.code(self.graphs, self.method_runs())
        if ran and code != ran:
            code = f"# the run above\n{ran}\n\n# the next run\n{code}"
        self.python.show(element("pre", code) if code else "")
        name, rows = f"tcgpu-{self.page.title.lower()}.csv", self.rows
        words = f"{counted(len(rows), 'row')} as CSV"
        self.csv.show(elements.download_link(name, elements.cited(rows).csv().encode(), words) if rows else "")

    @elements.one_at_a_time
    def _show_view(self):
        """Show the line that opens this view again, or say why there is none."""
        try:
            self.view.show(element("pre", self.code))
        except TcgpuError as reason:
            self._add_problem(reason, "graph")

    @elements.one_at_a_time
    def _add_problem(self, problem, about="run"):
        """Say what is wrong with the "graph", the "methods" or the "run", below what was said before."""
        words = str(problem)
        if isinstance(problem, OSError) and problem.filename:
            words = f"{problem.filename}: {problem.strerror}"
        elif isinstance(problem, MemoryError) and not isinstance(problem, TcgpuError):
            words = f"this takes more memory than there is ({problem}): {SMALLER}"
        elif isinstance(problem, Exception) and not isinstance(problem, EXPECTED):
            self.failure, words = problem, f"{type(problem).__name__}: {problem}"
        if words not in self.message:
            self._problems[about] = f"{self._problems.get(about, '')}\n{words}".strip()
            self.message = "\n".join(self._problems.values())

    def _clear_problems(self, *about):
        """Remove the problems with these, but not those of a run in progress."""
        for each in about:
            if each != "run" or not self.busy:
                self._problems.pop(each, None)
        self.message = "\n".join(self._problems.values())

    @traitlets.observe("busy")
    def _switch_buttons(self, change):
        self.run_button.disabled, self.stop_button.disabled = change.new, not change.new

    @traitlets.observe("message")
    def _show_message(self, change):
        self.problems.show(change.new)


def _label(device):
    """The entry of the engine "webgpu" in the menu: it names the device."""
    if device is None:
        return "your GPU"
    return f"{device.name}, software" if device.kind == "software" else f"your GPU: {device.name}"
