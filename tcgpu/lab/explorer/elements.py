"""Building blocks of the panel: boxes, rows of a form, charts, tables, a link that saves a file."""

import base64
import html

import ipywidgets as widgets

from tcgpu import figures
from tcgpu.errors import MethodError
from tcgpu.suggest import unknown

LABEL_WIDTH = "96px"  # of the labels in a form


class LazyDict(dict):
    """A dict that makes each value with `make(key)` when it is first looked up: most controls are never shown."""

    def __init__(self, make):
        self._make = make

    def __missing__(self, key):
        self[key] = self._make(key)
        return self[key]


def text(value="", *classes, **layout):
    """A widget that shows HTML, with these CSS classes."""
    widget = widgets.HTML(value, layout=layout)
    for name in classes:
        widget.add_class(name)
    return widget


def box(children, *classes, kind=widgets.VBox, **layout):
    """A box of widgets, with these CSS classes."""
    widget = kind(children, layout=layout)
    for name in classes:
        widget.add_class(name)
    return widget


def dropdown(label, width, options=(), label_width="initial"):
    """A drop-down list, `width` pixels wide."""
    style, layout = {"description_width": label_width}, {"width": f"{width}px"}
    return widgets.Dropdown(options=options, description=label, style=style, layout=layout)


def when_set(function, *controls):
    """Call `function()` whenever the value of one of these controls is set."""
    for control in controls:
        control.observe(lambda change: function(), "value")


def row(control, label, help_text):
    """A row of a form: label, control, help text."""
    wide = not isinstance(control, (widgets.Text, widgets.BoundedIntText))
    control.description, control.style.description_width = label, LABEL_WIDTH
    control.tooltip = control.tooltip or help_text
    control.layout = {"width": "262px" if wide else "200px", "flex": "0 0 auto"}
    return box([control, text(html.escape(help_text), "tcgpu-help", flex="1 1 0")], kind=widgets.HBox, flex="none")


def check_known(what, value, values):
    """Return the value; MethodError if it is not one of `values`."""
    if value not in values:
        raise MethodError(unknown(what, value, values))
    return value


def set_options(dropdown, options):
    """Replace a dropdown's options. It keeps its value if that is still an option; else it shows the first."""
    value, options = dropdown.value, tuple(options)
    if dropdown.options != options:
        dropdown.options = options
        dropdown.value = value if value in options else next(iter(options), None)


class Chart(widgets.Image):
    """Shows a figure. The picture has twice as many pixels per inch, for screens of high resolution."""

    def __init__(self, pixels_per_inch=100):
        super().__init__(format="png", layout={"flex": "none"})
        self._pixels = pixels_per_inch

    def show(self, figure):
        width, height = (round(inches * self._pixels) for inches in figure.get_size_inches())
        self.layout.width, self.layout.height = f"{width}px", f"{height}px"
        self.value = figures.png(figure, 2 * self._pixels)


def table(head, rows):
    """An HTML table: `rows` are pairs (CSS class, cells). Columns of numbers are aligned on the right."""
    first = rows[0][1] if rows else head
    aligned = ["" if isinstance(cell, str) else " class=number" for cell in first]

    def line(css_class, cells, tag):
        inside = (f"<{tag}{side}>{html.escape(formatted(cell))}</{tag}>" for side, cell in zip(aligned, cells))
        return f'<tr class="{css_class}">{"".join(inside)}</tr>'

    lines = [line("", head, "th"), *(line(css_class, cells, "td") for css_class, cells in rows)]
    return f'<table class="tcgpu-table">{"".join(lines)}</table>'


def formatted(value):
    """A value as a table shows it: four digits of a small float, thousands separated, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def download_link(name, content, words):
    """A link that saves `content` as a CSV file. The link holds the data, so that it works in Voila, too."""
    data = base64.b64encode(content.encode()).decode()
    return f'<a class="tcgpu-download" download="{name}" href="data:text/csv;base64,{data}">{html.escape(words)}</a>'
