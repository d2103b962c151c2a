"""The explorer: cards to pick a graph and methods, Run and Stop, and pages of what came of it."""

import html
import time

import ipywidgets as widgets
import traitlets

from tcgpu.errors import GraphError, TcgpuError
from tcgpu.lab.explorer import elements, labels
from tcgpu.lab.explorer.graph_card import GraphChoice
from tcgpu.lab.explorer.job_thread import Stopped, Worker
from tcgpu.lab.explorer.method_card import MethodChoice
from tcgpu.lab.explorer.pages import Compare
from tcgpu.lab.explorer.style import STYLE
from tcgpu.lab.explorer.sweep_page import Sweep
from tcgpu.lab.explorer.trace_page import TracePage

FORESEEN = (GraphError, OSError)  # what is wrong with what a person gave: the words tell it all


class Explorer(widgets.VBox):
    """A panel to count triangles with, in a notebook or on the page that Voila makes of it.

    A program may do all that a person does: `graphs`, `methods` and the pages `compare`, `sweep` and `traces` hold the
    controls, `run()` and `stop()` are the buttons, `wait()` waits until nothing runs. `rows` are those of the page that
    is shown, `message` says in words what went wrong, and `failure` is the exception if that was not foreseen.
    """

    busy = traitlets.Bool(False)
    message = traitlets.Unicode("")

    def __init__(self, graph=None, methods=(), *, order=None, engine=None, page="Compare"):
        self.failure = None
        self._wrong = {}  # what was said to be wrong: "graph", "methods", "run" -> words
        self._picked = None  # the Recipe of the graph that is picked
        self._made = None  # the graph that was made last: its Recipe's code, and itself
        self._begun = 0.0
        self._said = ""
        self._worker = Worker(self._progress)
        self.graphs = GraphChoice(graph, order, self._follow_graph)
        self.methods = MethodChoice(methods, self._follow_methods)
        self.graphs.order.observe(lambda change: self._follow_methods(), "value")
        self.compare, self.sweep, self.traces = Compare(), Sweep(), TracePage()
        self.pages = widgets.Tab([self.compare, self.sweep, self.traces])
        self.pages.titles = titles = [page.title for page in self.pages.children]
        self.pages.selected_index = titles.index(elements.known("page", page, titles))
        self.pages.observe(lambda change: self._turn(), "selected_index")
        for control in (self.sweep.reach, self.sweep.edges, self.sweep.way):
            control.observe(lambda change: self._tell(), "value")
        self.python = elements.text("", "tcgpu-python")
        self.complaint = elements.text("", "tcgpu-message")
        cards = elements.box([self.graphs, self.methods], "tcgpu-cards", kind=widgets.Box)
        super().__init__([widgets.HTML(STYLE), cards, self._bar(engine), self.complaint, self.pages, self.python])
        self.add_class("tcgpu-explorer")
        self._follow_methods()
        self._follow_graph()
        self._turn()

    @property
    def page(self):
        """The page that is shown."""
        return self.pages.children[self.pages.selected_index]

    @property
    def rows(self):
        return self.page.rows

    def wishes(self):
        """What is to be run, in which way; GraphError where a control says what cannot be."""
        order = None if self.graphs.order.value == labels.OWN else self.graphs.order.value
        engine = None if self.engine.value == labels.BEST else self.engine.value
        return self.methods.wishes(order, engine, self.repeats.value)

    def run(self):
        """Begin what Run does on the page that is shown; nothing while a run is under way."""
        if self.busy:
            return
        page, self.failure = self.page, None
        self._forget("methods", "run")
        try:
            job = page.begin(self.graphs, self.wishes())
        except TcgpuError as wrong:
            self.complain(wrong)
            return
        self.busy = True
        self._begun, self.progress.value = time.monotonic(), 0.0
        self._worker.do("run", lambda: self._run(page, job))

    def stop(self):
        """End the run that is under way, at its next launch or simulated thread; its rows so far stay."""
        if self._worker.stop("run"):
            self.busy = False
            self.say("stopped before it began")

    def wait(self, seconds=None):
        """Wait until nothing runs any more; whether that came to be in time."""
        return self._worker.wait(seconds)

    # --------------------------------------------------------------------------------------- what a job asks for

    def graph(self, recipe):
        """The graph of a recipe: the last one again, if it is the same."""
        if self._made is None or self._made[0] != recipe:
            self.say(f"making {recipe.code}")
            self._made = recipe, recipe.make()
        return self._made[1]

    def say(self, words):
        """Tell what is under way."""
        self._said = words
        self.status.value = html.escape(words)

    def complain(self, wrong, about="run"):
        """Tell what is wrong, about "graph", "methods" or "run", under what else is."""
        said = f"{wrong.filename}: {wrong.strerror}" if isinstance(wrong, OSError) and wrong.filename else str(wrong)
        known = self._wrong.get(about, "")
        if said not in self.message:
            self._wrong[about] = f"{known}\n{said}".strip()
            self._show_wrong()

    # ------------------------------------------------------------------------------------------------------ inside

    def _bar(self, engine):
        self.run_button = widgets.Button(description="Run", icon="play", button_style="primary")
        self.run_button.tooltip = "measure, as the page below says"
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.stop_button.tooltip = "end the run at its next launch or simulated thread"
        for button in (self.run_button, self.stop_button):
            button.layout = {"width": "76px", "flex": "none"}
        self.engine = widgets.Dropdown(options=labels.ENGINES, description="on", layout={"width": "150px"})
        self.engine.value = elements.known("engine", engine or labels.BEST, labels.ENGINES.values())
        self.engine.tooltip = "what runs the kernels: a GPU where there is one, else the simulator"
        self.repeats = widgets.BoundedIntText(5, min=1, max=99, description="runs", layout={"width": "94px"})
        self.repeats.tooltip = "how many runs medians are taken of; the simulator runs once"
        for control in (self.engine, self.repeats):
            control.style.description_width = "initial"
            control.observe(lambda change: self._follow_methods(), "value")
        self.progress = widgets.FloatProgress(value=0.0, min=0.0, max=1.0, layout={"width": "140px", "flex": "none"})
        self.status = elements.text("", "tcgpu-status", flex="1 1 120px")
        self.csv = elements.text("", width="auto")
        self.run_button.on_click(lambda button: self.run())
        self.stop_button.on_click(lambda button: self.stop())
        controls = [self.run_button, self.stop_button, self.engine, self.repeats, self.progress, self.status, self.csv]
        return elements.box(controls, "tcgpu-bar", kind=widgets.HBox)

    def _run(self, page, job):
        """In the worker's thread: the job, what is to be told of it, and the buttons as they were."""
        ended = "failed"
        try:
            job(self)
            ended = "done"
            self.progress.value = 1.0
        except Stopped:
            ended = "stopped"
            self.progress.value = 0.0
        except FORESEEN as wrong:
            self.complain(wrong)
        except Exception as failure:
            self._fail(failure)
        finally:
            seconds = time.monotonic() - self._begun
            page.draw()
            self._tell()
            count = f"{len(page.rows)} row{'s' * (len(page.rows) != 1)}"
            self.say(f"{ended} after {seconds:.1f} s: {count}")
            self.busy = False

    def _look(self, recipe):
        """In the worker's thread: make the graph that was picked and show what it is."""
        try:
            graph = self.graph(recipe)
            if recipe is self._picked:  # still
                self.graphs.describe(graph)
        except FORESEEN as wrong:
            if recipe is self._picked:
                self.complain(wrong, "graph")
        except Exception as failure:
            self._fail(failure)
        self.say("")

    def _fail(self, failure):
        """Whatever went wrong in a job, a person is told, and the panel stays whole."""
        self.failure = failure
        self.complain(f"{type(failure).__name__}: {failure}")

    def _follow_graph(self):
        self._forget("graph", "run")
        self.graphs.facts.value = ""
        try:
            self._picked = recipe = self.graphs.recipe()
        except TcgpuError as missing:
            self._picked = None
            self.graphs.facts.value = html.escape(str(missing))
        else:
            self._worker.do("look", lambda: self._look(recipe))
        self._tell()

    def _follow_methods(self):
        self._forget("methods", "run")
        try:
            wishes = self.wishes()
        except TcgpuError as wrong:
            self.complain(wrong, "methods")
            return
        for page in self.pages.children:
            page.follow(wishes)
        self._tell()

    def _forget(self, *about):
        """What was wrong with these is no longer of interest; of a run that is under way it is."""
        for each in about:
            if each != "run" or not self.busy:
                self._wrong.pop(each, None)
        self._show_wrong()

    def _show_wrong(self):
        self.message = "\n".join(self._wrong.values())

    def _turn(self):
        for page in self.pages.children:
            page.turn(page is self.page)
        self._tell()

    def _progress(self, share):
        self.progress.value = share
        self.status.value = html.escape(f"{self._said}: {time.monotonic() - self._begun:.1f} s")

    def _tell(self):
        """Bring the code and the link to the rows up to date with the page that is shown."""
        try:
            code = self.page.code(self.graphs, self.wishes())
        except TcgpuError:
            code = ""
        self.python.value = f"<pre>{html.escape(code)}</pre>" if code else ""
        name = f"tcgpu-{self.page.title.lower()}.csv"
        self.csv.value = elements.download(name, self.rows.csv(), f"{len(self.rows)} rows as CSV") if self.rows else ""

    @traitlets.observe("busy")
    def _switch(self, change):
        self.run_button.disabled, self.stop_button.disabled = change.new, not change.new

    @traitlets.observe("message")
    def _show_message(self, change):
        self.complaint.value = html.escape(change.new)

    def __repr__(self):
        return f"<Explorer: {self.graphs.source.value} graph, {', '.join(self.methods.chosen)}>"
