"""Building blocks of the panel: boxes, rows of a form, charts, tables, a link that saves a file."""

import base64
import functools
import threading
from pathlib import Path

import anywidget
import ipywidgets as widgets
import traitlets

from tcgpu import __version__, figures
from tcgpu.datasets import parsed
from tcgpu.errors import MethodError
from tcgpu.markup import element, joined
from tcgpu.records import Rows
from tcgpu.registry import METHODS

LABEL_WIDTH = "96px"  # of the labels in a form
LIST_WIDTH, FIELD_WIDTH = 262, 164  # pixels of a control in a form, with its label: a list, or a field for a number
FILE_TYPES = {"csv": "text/csv", "png": "image/png", "svg": "image/svg+xml"}
LOCK = threading.RLock()
TCGPU = f"The tcgpu authors: tcgpu {__version__}, counting the triangles of a graph on a GPU."
TRICORE = "Y. Hu, H. Liu, H. H. Huang: TriCore: Parallel Triangle Counting on GPUs, SC 2018."
PAPERS = {  # the source of a method -> its paper, which is cited with a figure or rows
    "report": "I. Iakovidis: Finding the number of triangles in a Graph, 2019.",
    "Bisson & Fatica": "M. Bisson, M. Fatica: Static Graph Challenge on GPU, HPEC 2017.",
    "TriCore": TRICORE,
    "TriCore's baseline": TRICORE,
    "Chatterjee et al.": "A. Chatterjee, S. Radhakrishnan, J. K. Antonio: On Analyzing Large Graphs Using GPUs, "
    "IPDPSW 2013.",
}


def one_at_a_time(function):
    """Wrap a function that reads or sets controls: at any time, one thread is in such a function.

    JupyterLab sends what a user enters to two threads of a kernel, its main thread and a subshell. A run has a third.
    """

    @functools.wraps(function)
    def locked(*args, **settings):
        with LOCK:
            return function(*args, **settings)

    return locked


class LazyDict(dict):
    """A dict that makes each value with `make(key)` when it is first looked up: most controls are never shown."""

    def __init__(self, make):
        self._make = make

    @one_at_a_time
    def __missing__(self, key):
        if key not in self:  # no other thread made it meanwhile
            self[key] = self._make(key)
        return self[key]


class Words(widgets.HTML):
    def show(self, *parts):
        """Show texts and pieces of Markup, one behind the other."""
        self.value = joined(*parts)


def text(words="", *classes, **layout):
    """A widget that shows these words, with these CSS classes."""
    return Words(joined(words), layout=layout, _dom_classes=classes)


def box(children, *classes, kind=widgets.VBox, **layout):
    """A box of widgets, with these CSS classes."""
    return kind(children, layout=layout, _dom_classes=classes)


def everything(widget):
    """The widget and all that it contains."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from everything(child)


def dropdown(label, width, tooltip, options=(), label_width="initial"):
    """A drop-down list, as wide as its longest option and at least `width` pixels."""
    style = {"description_width": label_width}
    layout = {"min_width": f"{width}px", "width": "max-content", "max_width": "100%"}
    return widgets.Dropdown(options=options, description=label, tooltip=tooltip, style=style, layout=layout)


def when_set(function, *controls, trait="value"):
    """Call `function()`, one at a time, whenever the value (or another trait) of one of these controls is set."""
    function = one_at_a_time(function)
    for control in controls:
        control.observe(lambda change: function(), trait)


class Names(anywidget.AnyWidget):
    """Names the controls of a panel for screen readers, and gives them their tooltips: see `names.js`.

    tips: the label of a control, or what it says -> its tooltip. ipywidgets shows it only where there is no label.
    """

    _esm = Path(__file__).with_name("names.js")
    tips = traitlets.Dict().tag(sync=True)


class SliderLink(anywidget.AnyWidget):
    """Moves a field and its slider, over numbers `steps`, with each other: see `slider_link.js`."""

    _esm = Path(__file__).with_name("slider_link.js")
    field = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)
    slider = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)
    steps = traitlets.List().tag(sync=True)


class RunLast(anywidget.AnyWidget):
    """Has a click on `run` be handled after what was entered in its `panel` before: see `run_last.js`."""

    _esm = Path(__file__).with_name("run_last.js")
    run = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)
    panel = traitlets.Instance(widgets.Widget).tag(sync=True, **widgets.widget_serialization)


class NumberField(widgets.Text):
    """A text field for a number. It keeps whatever is entered, so that a number out of range is reported, not replaced.

    check: a function that returns a valid number, and raises MethodError for anything else. steps: the numbers of
    `slider`, which in a browser moves with the field; without them there is none. placeholder: what an empty field
    means.
    """

    def __init__(self, value, check, steps=(), **settings):
        super().__init__("" if value is None else f"{value:.15g}", continuous_update=False, **settings)
        self._check, self.slider = check, None
        if steps:
            self.slider = widgets.SelectionSlider(options=steps, readout=False, continuous_update=False)
            self.slider.layout = {"width": "92px", "flex": "none"}
            self._link = SliderLink(field=self, slider=self.slider, steps=list(steps))

    @property
    def number(self):
        """The number that is entered; None for an empty field with a placeholder. MethodError if it is invalid."""
        entered = self.value.strip().replace(",", "").replace("_", "")
        if not entered and self.placeholder:
            return None
        number = parsed(entered)
        return self._check(self.value if isinstance(number, str) else number)


def check_number(name, value, low, high):
    """Return the value; MethodError unless it is a number in this range."""
    if not isinstance(value, (int, float)) or not low <= value <= high:
        raise MethodError(f"{name} is a number from {low:,} to {high:,}, not {value!r}")
    return value


def value_of(control):
    """The value of a list, or the number of a NumberField."""
    return control.number if isinstance(control, NumberField) else control.value


def form_control(label, help_text, value, *, choices=(), tooltip=None, **of_field):
    """A control of a form: a list of `choices`, or else a NumberField with these settings. Its `row` has the help text.

    It gets all settings when it is made: a browser that hears of new ones drops what is being typed into the field.
    """
    kind = widgets.Dropdown if choices else NumberField
    settings = {"options": choices, "value": value} if choices else {"value": value} | of_field
    width = LIST_WIDTH if choices else FIELD_WIDTH
    control = kind(
        description=label, tooltip=tooltip or help_text, style={"description_width": LABEL_WIDTH},
        layout={"width": f"{width}px", "flex": "0 0 auto"}, **settings,
    )  # fmt: skip
    slider = [control.slider] if getattr(control, "slider", None) else []
    help_box = text(help_text, "tcgpu-help", flex="1 1 108px")
    control.row = box([control, *slider, help_box], "tcgpu-row", kind=widgets.HBox, flex="none")
    return control


@one_at_a_time
def set_options(dropdown, options):
    """Replace a dropdown's options. It keeps its value if that is still an option; else it shows the first."""
    value, options = dropdown.value, tuple(options)
    if dropdown.options != options:
        dropdown.options = options
        dropdown.value = value if value in options else next(iter(options), None)


class Chart(widgets.Image):
    """Shows a figure. The picture has twice as many pixels per inch, for screens of high resolution.

    name: of the files that it is saved as. save: a button that shows `links` to them. export: the box of both.
    """

    def __init__(self, name, pixels_per_inch=100):
        super().__init__(format="png", layout={"flex": "none"})
        self._name, self._pixels = name, pixels_per_inch
        self._figure, self._rows = None, None
        self.save = widgets.Button(description="save", icon="download", layout={"width": "76px", "flex": "none"})
        self.save.tooltip = "show links that save this chart: as a picture and, of curves and bars, as numbers"
        self.save.on_click(lambda button: self._show_links())
        self.links = text(width="auto")
        self.export = box([self.save, self.links], kind=widgets.HBox, flex="none")

    def show(self, figure, methods=(), rows=None):
        """Show a figure, of these methods. rows: what it draws, Rows of numbers."""
        self._figure, self._rows, self._cite = figure, rows, citation(methods)
        self.links.show()
        width, height = (round(inches * self._pixels) for inches in figure.get_size_inches())
        self.layout.width, self.layout.height = f"{width}px", f"{height}px"
        self.value = figures.png(figure, 2 * self._pixels, self._cite)

    def _show_links(self):
        if self._figure is not None:
            files = {"png": bytes(self.value), "svg": figures.svg(self._figure, self._cite)}
            if self._rows:
                files["csv"] = Rows(row | {"cite": self._cite} for row in self._rows).csv().encode()
            links = (download_link(f"{self._name}.{kind}", file, kind.upper()) for kind, file in files.items())
            cite = element("div", f"Cite: {self._cite}", class_="tcgpu-cite")
            self.links.show(joined(*links, between=" &nbsp; "), cite)


def table(head, rows):
    """An HTML table: `rows` are pairs (CSS class, cells). Columns of numbers are aligned on the right."""
    first = rows[0][1] if rows else head
    sides = [{} if isinstance(cell, str) else {"class_": "number"} for cell in first]

    def line(css_class, cells, tag):
        inside = (element(tag, formatted(cell), **side) for side, cell in zip(sides, cells, strict=True))
        return element("tr", *inside, class_=css_class)

    lines = [line("", head, "th"), *(line(css_class, cells, "td") for css_class, cells in rows)]
    return element("table", *lines, class_="tcgpu-table")


def formatted(value):
    """A value as a table shows it: four digits of a small float, thousands separated, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def download_link(name, content, words):
    """A link that saves `content`, bytes, as a file. The link holds the data, so that it works in Voila, too."""
    data, kind = base64.b64encode(content).decode(), FILE_TYPES[name.rpartition(".")[2]]
    return element("a", words, class_="tcgpu-download", download=name, href=f"data:{kind};base64,{data}")


def citation(methods) -> str:
    """Return what to cite for these methods."""
    sources = {METHODS[name].source for name in methods if name in METHODS}
    return " ".join(dict.fromkeys([TCGPU, *(paper for source, paper in PAPERS.items() if source in sources)]))


def cited(rows) -> Rows:
    """Return rows with what to cite for the method of each."""
    return Rows(row | {"cite": citation([row["method"]])} for row in rows)
