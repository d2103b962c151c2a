"""The card that picks a graph: one that comes with tcgpu, a generated one, a file, or the one that was given."""

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
GIVEN = "given"


@dataclass(frozen=True)
class Recipe:
    """How a graph is made: `code` says it in Python, `make` takes its time, `content` is what was uploaded."""

    code: str
    make: Callable[[], Graph] = field(compare=False)
    content: bytes = b""


class GraphChoice(widgets.VBox):
    """Which graph. `recipe()` is how to make it; `facts` shows what is known of it.

    source: a toggle of SOURCES. order: how vertices are numbered. bundled, generator: names. parameters: generator ->
    parameter -> control. path, upload: of a file. changed: called when another graph is picked.
    """

    def __init__(self, graph=None, order=None, changed=lambda: None):
        self._given = self._uploaded = None
        self._changed = lambda: None  # until all is there
        self.source = widgets.ToggleButtons(options=SOURCES, layout={"width": "auto"})
        self.source.style.button_width = "auto"
        self._make_bundled()
        self._make_generated()
        self._make_file()
        self.given_page = elements.text("", "tcgpu-words")
        pages = [self.bundled_page, self.generated_page, self.file_page, self.given_page]
        self.page = widgets.Stack(pages, selected_index=0, layout={"height": "228px"})
        self.facts = elements.text("", "tcgpu-words", height="52px")
        self.order = widgets.Dropdown(options=labels.ORDERS)
        self.order.value = elements.known("order", order or labels.OWN, labels.ORDERS.values())
        numbered = elements.row(self.order, "of the vertices", "order")
        super().__init__([elements.heading("Graph"), self.source, self.page, self.facts, numbered])
        self.add_class("tcgpu-card")
        if graph is not None:
            self._begin_with(graph)
        self.source.observe(self._turn, "value")
        self._changed = changed

    def recipe(self):
        """The Recipe of what is picked; GraphError where a file is yet to be named."""
        kind = self.source.value
        if kind == GIVEN:
            return Recipe("graph", lambda: self._given)
        if kind == "bundled":
            name = self.bundled.value
            return Recipe(f"tcgpu.load({name!r})", lambda: datasets.load(name))
        if kind == "generated":
            name, sizes = self.generator.value, self._sizes()
            said = ", ".join(f"{key}={value!r}" for key, value in sizes.items())
            return Recipe(f"tcgpu.generate.{name}({said})", lambda: GENERATORS[name](**sizes))
        if self._uploaded is not None:
            name, content = self._uploaded
            return Recipe(f"tcgpu.read({name!r})", lambda: _read_content(name, content), content)
        path = self.path.value.strip()
        if not path:
            raise GraphError("name a file, or upload one")
        return Recipe(f"tcgpu.read({path!r})", lambda: formats.read(Path(path).expanduser()))

    def describe(self, graph):
        """Show the facts of the graph that is picked."""
        said = f"{graph.n:,} vertices, {graph.m:,} edges, {graph.nonzeros_per_column:.2f} nonzeros per column"
        longest = f"longest column {graph.max_column:,}; {graph.cleaned}"
        self.facts.value = f"<b>{html.escape(said)}</b><br>{html.escape(longest)}"

    # ----------------------------------------------------------------------------------------------------- the pages

    def _make_bundled(self):
        entries = [entry for entry in datasets.catalogue() if entry.family in ("generated", "local")]
        known = [(f"{entry.name}: {entry.edges:,} edges", entry.name) for entry in entries]
        self.bundled = widgets.Select(options=known, layout={"width": "calc(100% - 4px)", "height": "178px"})
        self.bundled.tooltip = "graphs that come with tcgpu, and those of the folder that TCGPU_GRAPHS names"
        self._made = {entry.name: entry.source for entry in entries}
        self.origin = elements.text("", "tcgpu-words")
        self.bundled_page = elements.box([self.bundled, self.origin], width="100%")
        self.bundled.observe(self._pick_bundled, "value")
        self._tell_origin()

    def _make_generated(self):
        self.generator = widgets.Dropdown(options=list(labels.START), layout={"width": "250px"})
        self.generator.description, self.generator.style.description_width = "generator", elements.LABEL
        self.parameters = elements.Made(self._make_controls)
        self.about = elements.text("", "tcgpu-words")
        self._sliders = elements.box([], "tcgpu-scroll", height="150px")
        self.generated_page = elements.box([self.generator, self.about, self._sliders], width="100%")
        self.generator.observe(self._turn_generator, "value")

    def _make_controls(self, generator):
        """A control for each parameter of a generator; for its seed, where chance has a part in it."""
        made = {}
        for name, parameter in inspect.signature(GENERATORS[generator]).parameters.items():
            begin = labels.START[generator].get(name, parameter.default)
            if name != "seed" or generator in labels.BY_CHANCE:
                made[name] = _control(*labels.PARAMETERS[name][0], begin=begin)
                made[name].observe(lambda change: self._changed(), "value")
        return made

    def _make_file(self):
        self.path = widgets.Text(placeholder="a path, such as ../data/graphs/rmat_8.mtx", continuous_update=False)
        self.path.description, self.path.layout.width = "path", "auto"
        self.path.style.description_width = "50px"
        self.upload = widgets.FileUpload(description="or upload a file", layout={"width": "170px"})
        told = "Matrix Market, edge lists (SNAP, CSV), METIS and .npz files, plain or compressed (.gz .bz2 .xz). "
        told += "A large file is better named by its path: a browser hands over some megabytes at most."
        self.file_page = elements.box([self.path, self.upload, elements.text(told, "tcgpu-words")], width="100%")
        self.path.observe(self._pick_path, "value")
        self.upload.observe(self._pick_upload, "value")

    # ------------------------------------------------------------------------------------------------ what was picked

    def _begin_with(self, graph):
        if not isinstance(graph, (str, Path)):
            self._given = as_graph(graph)
            self.given_page.value = html.escape(self._given.name or "the graph that tcgpu.explore was given")
            self.source.options = (*SOURCES, GIVEN)
            self.source.value, self.page.selected_index = GIVEN, len(SOURCES)
        elif str(graph) in self._made:
            self.bundled.value = str(graph)
        else:
            self.source.value, self.page.selected_index = "a file", SOURCES.index("a file")
            self.path.value = str(graph)

    def _sizes(self):
        """What the generator is to be called with: its sizes, and of the rest what is not as it comes."""
        name = self.generator.value
        known = inspect.signature(GENERATORS[name]).parameters
        values = {parameter: control.value for parameter, control in self.parameters[name].items()}
        return {parameter: value for parameter, value in values.items() if value != known[parameter].default}

    def _turn(self, change):
        if change.new == "generated":
            self._show_sliders()
        self.page.selected_index = self.source.options.index(change.new)
        self._changed()

    def _pick_bundled(self, change):
        self._tell_origin()
        self._changed()

    def _tell_origin(self):
        self.origin.value = html.escape(self._made[self.bundled.value])

    def _turn_generator(self, change):
        self._show_sliders()
        self._changed()

    def _show_sliders(self):
        name = self.generator.value
        self.about.value = html.escape((inspect.getdoc(GENERATORS[name]) or name).splitlines()[0].replace("`", ""))
        self._sliders.children = [
            elements.row(control, labels.PARAMETERS[parameter][1], parameter.replace("_", " "))
            for parameter, control in self.parameters[name].items()
        ]

    def _pick_path(self, change):
        self._uploaded = None
        self._changed()

    def _pick_upload(self, change):
        if change.new:
            file = change.new[0]
            self._uploaded = file["name"], bytes(file["content"])
            self._changed()


def _control(kind, *values, begin):
    if kind == "any":
        return widgets.BoundedIntText(begin, min=values[0], max=values[1])
    if kind == "one of":
        return widgets.Dropdown(options=values, value=begin)
    if kind == "sizes":
        sizes = [size for size in _sizes(values[1]) if values[0] <= size <= values[1]]
        return widgets.SelectionSlider(options=[(f"{x:,}", x) for x in sizes], value=begin, continuous_update=False)
    if kind == "whole":
        return widgets.IntSlider(begin, min=values[0], max=values[1], continuous_update=False)
    low, high, step = values or (0, 1, 0.01)
    return widgets.FloatSlider(value=begin, min=low, max=high, step=step, continuous_update=False)


def _sizes(largest):
    """1, 2, 5, 10, 20, 50, ..."""
    return [digit * 10**zeros for zeros in range(len(str(largest))) for digit in (1, 2, 5)]


def _read_content(name, content):
    """The graph in the content of a file of this name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(content)
        try:
            return formats.read(path)
        except TcgpuError as error:
            raise GraphError(str(error).replace(f"{folder}/", "")) from None
