"""The card that picks a graph (bundled with tcgpu, generated, from a file, or passed to `explore`) and its order."""

import html
import inspect
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import ipywidgets as widgets

from tcgpu import datasets, formats
from tcgpu.errors import GraphError, TcgpuError
from tcgpu.generators import GENERATORS
from tcgpu.graph import Graph, as_graph
from tcgpu.lab.explorer import elements, labels

SOURCES = ("bundled", "generated", "a file")
GIVEN = "given"  # the graph that was passed to `explore`


@dataclass(frozen=True)
class GraphSource:
    """How to make a graph: Python code, and a function that does the same.

    content: of an uploaded file. nonzeros: per column, of a graph in a sweep.
    """

    code: str
    make: Callable[[], Graph] = field(compare=False)
    content: bytes = b""
    nonzeros: float = 0.0


class GraphCard(widgets.VBox):
    """Picks a graph and its order, and shows the graph's size.

    source: a toggle of SOURCES, and GIVEN if a graph was passed. bundled, generator: names. parameters: generator ->
    parameter -> control. path, upload: of a file. order: how vertices are numbered. facts: the graph's size.
    """

    def __init__(self, graph=None, order=None, on_change=lambda: None):
        self._given = self._uploaded = None
        self._on_change = lambda: None  # until all controls are made
        self.source = widgets.ToggleButtons(options=SOURCES, layout={"width": "auto"})
        self.source.style.button_width = "auto"
        self.given_page = elements.text("", "tcgpu-help")
        pages = [self._bundled_page(), self._generated_page(), self._file_page(), self.given_page]
        self._stack = widgets.Stack(pages, selected_index=0, layout={"height": "228px"})
        self.facts = elements.text("", "tcgpu-help", min_height="52px")
        self.order = widgets.Dropdown(options=labels.ORDERS)
        self.order.value = elements.check_known("order", order or labels.DEFAULT, labels.ORDERS.values())
        order_row = elements.row(self.order, "order", "of the vertices")
        super().__init__([elements.text("Graph", "tcgpu-heading"), self.source, self._stack, self.facts, order_row])
        self.add_class("tcgpu-card")
        if graph is not None:
            self._pick(graph)
        self.source.observe(self._source_changed, "value")
        self._on_change = on_change

    def picked(self) -> GraphSource:
        """The source of the graph that is picked; GraphError if no file is named yet."""
        kind = self.source.value
        if kind == GIVEN:
            return GraphSource("graph", lambda: self._given)
        if kind == "bundled":
            name = self.bundled.value
            return GraphSource(f"tcgpu.load({name!r})", lambda: datasets.load(name))
        if kind == "generated":
            name, arguments = self.generator.value, self._changed_arguments()
            said = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            return GraphSource(f"tcgpu.generate.{name}({said})", lambda: GENERATORS[name](**arguments))
        if self._uploaded is not None:
            name, content = self._uploaded
            return GraphSource(f"tcgpu.read({name!r})", lambda: _read_content(name, content), content)
        path = self.path.value.strip()
        if not path:
            raise GraphError("name a file, or upload one")
        return GraphSource(f"tcgpu.read({path!r})", lambda: formats.read(Path(path).expanduser()))

    def show_facts(self, graph: Graph) -> None:
        """Show the size of the picked graph, and what cleaning dropped."""
        size = f"{graph.n:,} vertices, {graph.m:,} edges, {graph.nonzeros_per_column:.2f} nonzeros per column"
        more = f"longest column {graph.max_column:,}; {graph.cleaned}"
        self.facts.value = f"<b>{html.escape(size)}</b><br>{html.escape(more)}"

    def _bundled_page(self):
        entries = [entry for entry in datasets.catalogue() if entry.family in ("generated", "local")]
        options = [(f"{entry.name}: {entry.edges:,} edges", entry.name) for entry in entries]
        self._origins = {entry.name: entry.source for entry in entries}
        self.bundled = widgets.Select(options=options, layout={"width": "calc(100% - 4px)", "height": "178px"})
        self.bundled.tooltip = "graphs that come with tcgpu, and those in the folder that TCGPU_GRAPHS names"
        origin = elements.text(html.escape(self._origins[self.bundled.value]), "tcgpu-help")

        def picked(change):
            origin.value = html.escape(self._origins[change.new])
            self._on_change()

        self.bundled.observe(picked, "value")
        return elements.box([self.bundled, origin], width="100%")

    def _generated_page(self):
        self.generator = widgets.Dropdown(options=list(labels.FIRST_VALUES), layout={"width": "250px"})
        self.generator.description, self.generator.style.description_width = "generator", elements.LABEL_WIDTH
        self.parameters = elements.LazyDict(self._make_controls)
        self._about = elements.text("", "tcgpu-help")
        self._controls = elements.box([], "tcgpu-scroll", height="150px")

        def picked(change):
            self._show_generator()
            self._on_change()

        self.generator.observe(picked, "value")
        return elements.box([self.generator, self._about, self._controls], width="100%")

    def _file_page(self):
        self.path = widgets.Text(placeholder="a path, such as ../data/graphs/rmat_8.mtx", continuous_update=False)
        self.path.description, self.path.layout.width = "path", "auto"
        self.path.style.description_width = "50px"
        self.upload = widgets.FileUpload(description="or upload a file", layout={"width": "170px"})
        help_text = (
            "Matrix Market, edge lists (SNAP, CSV), METIS and .npz files, plain or compressed (.gz .bz2 .xz). "
            "Give the path of a large file: a browser uploads a few megabytes at most."
        )

        def path_changed(change):
            self._uploaded = None
            self._on_change()

        def uploaded(change):
            if change.new:
                file = change.new[0]
                self._uploaded = file["name"], bytes(file["content"])
                self._on_change()

        self.path.observe(path_changed, "value")
        self.upload.observe(uploaded, "value")
        return elements.box([self.path, self.upload, elements.text(help_text, "tcgpu-help")], width="100%")

    def _pick(self, graph):
        """Set the controls to a graph that was passed: a bundled one's name, a path, or the graph itself."""
        if not isinstance(graph, (str, Path)):
            self._given = as_graph(graph)
            self.given_page.value = html.escape(self._given.name or "the graph that was passed to tcgpu.explore")
            self.source.options = (*SOURCES, GIVEN)
            self.source.value = GIVEN
        elif str(graph) in self._origins:
            self.bundled.value = str(graph)
        else:
            self.source.value = "a file"
            self.path.value = str(graph)
        self._stack.selected_index = self.source.options.index(self.source.value)

    def _source_changed(self, change):
        if change.new == "generated":
            self._show_generator()
        self._stack.selected_index = self.source.options.index(change.new)
        self._on_change()

    def _make_controls(self, generator):
        """A control for each parameter of a generator; for the seed only if the generator uses it."""
        controls = {}
        for name, parameter in inspect.signature(GENERATORS[generator]).parameters.items():
            if name == "seed" and generator in labels.WITHOUT_SEED:
                continue
            value = labels.FIRST_VALUES[generator].get(name, parameter.default)
            controls[name] = _control(*labels.PARAMETERS[name][0], value=value)
            controls[name].observe(lambda change: self._on_change(), "value")
        return controls

    def _changed_arguments(self):
        """The arguments of the generator that differ from its defaults."""
        name = self.generator.value
        defaults = inspect.signature(GENERATORS[name]).parameters
        values = {parameter: control.value for parameter, control in self.parameters[name].items()}
        return {parameter: value for parameter, value in values.items() if value != defaults[parameter].default}

    def _show_generator(self):
        name = self.generator.value
        summary = (inspect.getdoc(GENERATORS[name]) or name).splitlines()[0]
        self._about.value = html.escape(summary.replace("`", ""))
        self._controls.children = [
            elements.row(control, parameter.replace("_", " "), labels.PARAMETERS[parameter][1])
            for parameter, control in self.parameters[name].items()
        ]


def _control(kind, *values, value):
    """A control of one of the kinds of `labels.PARAMETERS`."""
    if kind == "choice":
        return widgets.Dropdown(options=values, value=value)
    if kind == "field":
        return widgets.BoundedIntText(value, min=values[0], max=values[1])
    if kind == "scale":
        steps = [digit * 10**zeros for zeros in range(len(str(values[1]))) for digit in (1, 2, 5)]
        options = [(f"{step:,}", step) for step in steps if values[0] <= step <= values[1]]
        return widgets.SelectionSlider(options=options, value=value, continuous_update=False)
    slider, step = (widgets.IntSlider, 1) if kind == "integer" else (widgets.FloatSlider, values[2])
    return slider(value=value, min=values[0], max=values[1], step=step, continuous_update=False)


def _read_content(name, content):
    """Read an uploaded file. Error messages name the file without the temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(content)
        try:
            return formats.read(path)
        except TcgpuError as error:
            raise GraphError(str(error).replace(f"{folder}/", "")) from None
