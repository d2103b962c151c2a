"""The card that picks a graph (bundled with tcgpu, generated, from a file, or passed to `explore`) and its order."""

import inspect
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import ipywidgets as widgets

from tcgpu import datasets
from tcgpu.api import opened
from tcgpu.declarations import check_integer
from tcgpu.errors import GraphError, MethodError, TcgpuError
from tcgpu.generators import GENERATORS
from tcgpu.graph import Graph, as_graph
from tcgpu.lab.explorer import elements
from tcgpu.markup import element
from tcgpu.suggest import check_known

SOURCES = ("bundled", "generated", "a file")
SOURCE_TOOLTIPS = (
    "a graph that is on this machine: from tcgpu, from your folder TCGPU_GRAPHS, or downloaded",
    "a graph that is drawn at random or has a shape",
    "a graph of your own: its path, or the file",
    "the graph that was passed to tcgpu.explore",
)
GIVEN = "given"  # the graph that was passed to `explore`
# The control of a generator's parameter, and its help text. Controls: ("choice", ...) is a list; the others are fields
# for a number between two others. ("integer", least, most) has a slider over all whole numbers, ("scale", least, most)
# one over 1, 2, 5, 10, 20, ..., ("field", least, most) none; ("number", least, most, step) is for a real number.
PARAMETERS = {
    "scale": (("integer", 1, 22), "2^scale vertices"),
    "edge_factor": (("integer", 1, 64), "edges drawn per vertex"),
    "a": (("number", 0, 1, 0.01), "probability, upper left"),
    "b": (("number", 0, 1, 0.01), "probability, upper right"),
    "c": (("number", 0, 1, 0.01), "probability, lower left"),
    "permuted": (("choice", True, False), "numbered at random"),
    "n": (("scale", 1, 5_000_000), "vertices"),
    "m": (("scale", 1, 20_000_000), "edges"),
    "k": (("integer", 1, 64), "neighbours that a vertex starts with"),
    "rows": (("scale", 1, 2_000), "rows of the grid"),
    "cols": (("scale", 1, 2_000), "columns of the grid"),
    "planes": (("scale", 1, 200), "planes of the grid"),
    "left": (("scale", 1, 5_000), "vertices on one side"),
    "right": (("scale", 1, 5_000), "vertices on the other side"),
    "kept": (("number", 0, 1, 0.01), "fraction of the roads that are kept"),
    "bends": (("number", 0, 20, 0.5), "mean number of vertices along a road"),
    "rewired": (("number", 0, 1, 0.01), "fraction of the edges with a random end"),
    "mean_degree": (("number", 1, 150, 0.5), "mean number of neighbours"),
    "nonzeros_per_column": (("number", 1, 64, 0.5), "mean number of nonzeros in a column"),
    "seed": (("field", 0, 2**31 - 1), "seed of the random numbers"),
    "numbering": (("choice", "multiscale", "spatial", "random"), "how the points are numbered"),
}

# The first values of each generator's controls: graphs that are small enough for the simulator.
FIRST_VALUES = {
    "rmat": {"scale": 8, "edge_factor": 6},
    **dict.fromkeys(("gap_kron", "gap_urand"), {"scale": 6}),
    "delaunay": {"n": 500},
    "mesh": {"rows": 20, "cols": 20},
    "mesh3d": {"planes": 5, "rows": 5, "cols": 10, "nonzeros_per_column": 7.5},
    "road": {"rows": 20, "cols": 20, "bends": 1},
    "copapers": {"n": 200, "mean_degree": 16},
    "by_nonzeros": {"m": 1_000, "nonzeros_per_column": 5},
    "random": {"n": 100, "m": 1_000},
    "barabasi_albert": {"n": 200, "k": 5},
    "watts_strogatz": {"n": 200, "k": 8},
    "empty": {"n": 100},
    **dict.fromkeys(("path", "cycle", "star"), {"n": 500}),
    "clique": {"n": 20},
    "complete_bipartite": {"left": 20, "right": 20},
    "grid": {"rows": 20, "cols": 20},
}
WITHOUT_SEED = {"mesh", "empty", "path", "cycle", "star", "clique", "complete_bipartite", "grid"}  # not random
DEFAULT = "default"  # the method chooses the order, tcgpu the engine
ORDERS = {  # label -> order
    "each method's own": DEFAULT,
    "natural": "natural",
    "by degree": "degree",
    "breadth first": "bfs",
    "random": "random",
    "automatic": "auto",
}


@dataclass(frozen=True)
class GraphSource:
    """How to make a graph: Python code, and a function that does the same.

    nonzeros: nonzeros per column of a graph in a sweep.
    """

    code: str
    make: Callable[[], Graph] = field(compare=False)
    nonzeros: float = 0.0


class GraphCard(widgets.VBox):
    """Picks a graph and its order, and shows the graph's size.

    source: a toggle of SOURCES, and GIVEN if a graph was passed. bundled, generator: names. parameters: generator ->
    parameter -> control. path, upload: of a file. order: how vertices are numbered. facts: the graph's size.
    """

    def __init__(self, graph, order, on_change):
        self._given = self._uploaded = None
        self._on_change = lambda: None  # until all controls are made
        self.source = widgets.ToggleButtons(options=SOURCES, tooltips=SOURCE_TOOLTIPS, layout={"width": "auto"})
        self.source.style.button_width = "auto"
        self.given_page = elements.text("", "tcgpu-help")
        pages = [self._bundled_page(), self._generated_page(), self._file_page(), self.given_page]
        self._stack = widgets.Stack(pages, selected_index=0)
        self.facts = elements.text("", "tcgpu-help", min_height="52px")
        order = check_known("order", order or DEFAULT, ORDERS.values(), MethodError)
        self.order = elements.form_control("order", "of the vertices", order, choices=ORDERS)
        title = elements.text("Graph", "tcgpu-heading")
        super().__init__([title, self.source, self._stack, self.facts, self.order.row])
        self.add_class("tcgpu-card")
        elements.when_set(self._source_changed, self.source)
        if graph is not None:
            self._pick(graph)
        self._on_change = on_change

    def picked(self) -> GraphSource:
        """The source of the graph that is picked.

        GraphError if no file is named yet, MethodError if a parameter of the generator is not a number in its range.
        """
        kind = self.source.value
        if kind == GIVEN:
            return self._given
        if kind == "bundled":
            name = self.bundled.value
            return GraphSource(f"tcgpu.load({name!r})", lambda: datasets.load(name))
        if kind == "generated":
            name = self.generator.value
            defaults = inspect.signature(GENERATORS[name]).parameters
            values = {parameter: elements.value_of(control) for parameter, control in self.parameters[name].items()}
            arguments = {each: value for each, value in values.items() if value != defaults[each].default}
            said = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            return GraphSource(f"tcgpu.generate.{name}({said})", lambda: GENERATORS[name](**arguments))
        if self._uploaded:
            path = str(next(Path(self._uploaded.name).iterdir()))
            return GraphSource(f"tcgpu.read({path!r})", lambda: _read_uploaded(Path(path)))
        path = self.path.value.strip()
        if not path:
            raise GraphError("name a file, or upload one")
        return GraphSource(f"tcgpu.read({path!r})", lambda: opened(Path(path).expanduser()))

    def named(self) -> str:
        """The picked graph as `tcgpu.explore` takes it: a name or a path, or else the code that makes it."""
        named = {"bundled": self.bundled.value, "a file": "" if self._uploaded else self.path.value.strip()}
        name = named.get(self.source.value)
        return repr(name) if name else self.picked().code

    def show_facts(self, graph: Graph) -> None:
        """Show the size of the picked graph, and what cleaning dropped."""
        size = f"{graph.n:,} vertices, {graph.m:,} edges, {graph.nonzeros_per_column:.2f} nonzeros per column"
        more = f"longest column {graph.max_column:,}; {graph.cleaned}"
        self.facts.show(element("b", size), element("div", more))

    def _bundled_page(self):
        entries = datasets.here()
        names = {entry.name for entry in entries}
        self._elsewhere = [entry.name for entry in datasets.catalogue() if entry.name not in names]
        sizes = ["" if entry.edges is None else f": {entry.edges:,} edges" for entry in entries]
        options = [(f"{entry.name}{size}", entry.name) for entry, size in zip(entries, sizes, strict=True)]
        self._origins = {entry.name: entry.source for entry in entries}
        self.bundled = widgets.Select(options=options, layout={"width": "calc(100% - 4px)", "height": "180px"})
        self.bundled.tooltip = "graphs that come with tcgpu, those in the folder that TCGPU_GRAPHS names, and downloads"
        origin = elements.text("", "tcgpu-help")

        def picked():
            origin.show(self._origins[self.bundled.value])
            self._on_change()

        picked()
        elements.when_set(picked, self.bundled)
        return elements.box([self.bundled, origin], width="100%")

    def _generated_page(self):
        of_form = list(FIRST_VALUES), elements.LABEL_WIDTH
        self.generator = elements.dropdown("generator", 250, "what makes the graph", *of_form)
        self.parameters = elements.LazyDict(self._make_controls)
        self._about = elements.text("", "tcgpu-help")
        self._controls = elements.box([])

        elements.when_set(self._show_generator, self.generator)
        return elements.box([self.generator, self._about, self._controls], width="100%")

    def _file_page(self):
        self.path = widgets.Text(placeholder="a path, such as ../data/graphs/rmat_8.mtx", continuous_update=False)
        self.path.description, self.path.layout.width, self.path.tooltip = "path", "auto", "where the file is"
        self.path.style.description_width = "50px"
        self.upload = widgets.FileUpload(description="or upload a file", layout={"width": "170px"})
        self.upload.tooltip = "send a file from this computer"
        help_text = (
            "Matrix Market, edge lists (SNAP, CSV), METIS and .npz files, plain or compressed (.gz .bz2 .xz). "
            "Give the path of a large file: a browser uploads a few megabytes at most."
        )

        def named():
            self._uploaded = None
            self._on_change()

        def uploaded():
            for file in self.upload.value[:1]:
                self._uploaded = tempfile.TemporaryDirectory()  # for as long as the kernel runs
                Path(self._uploaded.name, Path(file["name"]).name).write_bytes(file["content"])
                self._on_change()

        elements.when_set(named, self.path)
        elements.when_set(uploaded, self.upload)
        return elements.box([self.path, self.upload, elements.text(help_text, "tcgpu-help")], width="100%")

    def _pick(self, graph):
        """Set the controls to a graph that was passed: a listed one's name, a path, or the graph itself."""
        code = "graph"
        if isinstance(graph, str) and graph in self._elsewhere:
            code, graph = f"tcgpu.load({graph!r})", datasets.load(graph)
        if not isinstance(graph, (str, Path)):
            graph = as_graph(graph)
            self._given = GraphSource(code, lambda: graph)
            self.given_page.show(graph.name or "the graph that was passed to tcgpu.explore")
            self.source.options = (*SOURCES, GIVEN)
            self.source.value = GIVEN
        elif str(graph) in self._origins:
            self.bundled.value = str(graph)
        else:
            self.source.value = "a file"
            self.path.value = str(graph)

    def _source_changed(self):
        self._stack.selected_index = self.source.options.index(self.source.value)
        if self.source.value == "generated":
            self._show_generator()
        else:
            self._on_change()

    def _make_controls(self, generator):
        """A control for each parameter of a generator; for the seed only if the generator uses it."""
        defaults = {name: each.default for name, each in inspect.signature(GENERATORS[generator]).parameters.items()}
        if generator in WITHOUT_SEED:
            defaults.pop("seed")
        controls = {name: _control(name, value) for name, value in (defaults | FIRST_VALUES[generator]).items()}
        elements.when_set(lambda: self._on_change(), *controls.values())
        return controls

    def _show_generator(self):
        name = self.generator.value
        summary = (inspect.getdoc(GENERATORS[name]) or name).splitlines()[0]
        self._about.show(summary.replace("`", ""))
        self._controls.children = [control.row for control in self.parameters[name].values()]
        self._on_change()


def _control(name, value):
    """The control of a parameter, as `PARAMETERS` describes it."""
    (kind, *values), help_text = PARAMETERS[name]
    label = name.replace("_", " ")
    if kind == "choice":
        return elements.form_control(label, help_text, value, choices=values)
    low, high, *step = values
    steps = ()
    if kind == "number":
        steps = [round(low + k * step[0], 9) for k in range(round((high - low) / step[0]) + 1)]
    elif kind == "integer":
        steps = range(low, high + 1)
    elif kind == "scale":
        decades = [digit * 10**zeros for zeros in range(len(str(high))) for digit in (1, 2, 5)]
        steps = [step for step in decades if low <= step <= high]
    check = elements.check_number if kind == "number" else check_integer
    settings = {"check": lambda entered: check(label, entered, low, high), "steps": tuple(steps)}
    return elements.form_control(label, help_text, value, **settings)


def _read_uploaded(path):
    """Read an uploaded file. Error messages name the file without the temporary folder."""
    try:
        return opened(path)
    except TcgpuError as error:
        raise GraphError(str(error).replace(f"{path.parent}/", "")) from None
