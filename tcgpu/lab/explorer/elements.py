"""Pieces that the panel is made of: rows of a form, tables, pictures of a fixed size, a link to save rows by."""

import base64
import html

import ipywidgets as widgets

from tcgpu import figures
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown

LABEL = "96px"  # how wide the labels of a form are
PER_INCH = 88  # pixels of the screen for an inch of a picture that is shown in its own size
DPI = 200  # of a picture that is shown at half that: sharp on fine screens


class Made(dict):
    """Controls that are made when they are first asked for: there are hundreds, of which a person looks at few."""

    def __init__(self, make):
        self._make = make

    def __missing__(self, name):
        self[name] = self._make(name)
        return self[name]


def text(value="", *names, **layout):
    """A piece of HTML that carries these style names."""
    box = widgets.HTML(value, layout=layout)
    for name in names:
        box.add_class(name)
    return box


def heading(words):
    return text(html.escape(words), "tcgpu-heading")


def box(children, *names, kind=widgets.VBox, **layout):
    """A box of widgets that carries these style names."""
    made = kind(children, layout=layout)
    for name in names:
        made.add_class(name)
    return made


def row(control, words, label):
    """A row of a form: a control with its label on the left, and on the right what it means."""
    wide = not isinstance(control, (widgets.Text, widgets.BoundedIntText))
    control.description, control.tooltip, control.style.description_width = label, words, LABEL
    control.layout = {"width": "262px" if wide else "200px", "flex": "0 0 auto"}
    return box([control, text(html.escape(words), "tcgpu-words", flex="1 1 0")], kind=widgets.HBox, flex="none")


def field(control, words):
    """A control under what it means."""
    control.tooltip, control.layout.width = words, "auto"
    return box([text(html.escape(words), "tcgpu-words"), control])


def known(what, value, values):
    """The value; GraphError if it is not among those there are."""
    if value not in values:
        raise GraphError(unknown(what, value, values))
    return value


def offer(dropdown, options):
    """Give a dropdown other options; it keeps what it shows if that is still among them, and else shows the first."""
    kept, options = dropdown.value, tuple(options)
    if dropdown.options != options:
        dropdown.options = options
        dropdown.value = kept if kept in options else next(iter(options), None)


def image(width, height):
    """An image that keeps its place, whatever it shows; sizes in pixels."""
    return widgets.Image(format="png", layout={"width": f"{width}px", "height": f"{height}px", "flex": "0 0 auto"})


def panel(picture):
    """A pair of axes for an `image`, as large as that."""
    width, height = (float(size.removesuffix("px")) for size in (picture.layout.width, picture.layout.height))
    return figures.axes(width / DPI * 2, height / DPI * 2)


def show(picture, figure):
    """Have an `image` show a figure."""
    picture.value = figures.png(figure, DPI)


def show_whole(picture, figure):
    """Have an image show a figure in the figure's own size; what is around it scrolls."""
    width, height = (round(PER_INCH * inches) for inches in figure.get_size_inches())
    picture.layout.width, picture.layout.height = f"{width}px", f"{height}px"
    picture.value = figures.png(figure, 2 * PER_INCH)


def table(head, rows):
    """An HTML table: `rows` are (name of a style, cells); numbers stand on the right."""
    lines = [_line("th", "", head, [not isinstance(cell, str) for cell in rows[0][1]] if rows else [])]
    lines += [_line("td", name, cells, [not isinstance(cell, str) for cell in cells]) for name, cells in rows]
    return f'<table class="tcgpu-table">{"".join(lines)}</table>'


def _line(kind, name, cells, numbers):
    numbers = [*numbers, *[False] * (len(cells) - len(numbers))]
    inside = "".join(
        f"<{kind}{' class=number' * right}>{html.escape(short(cell))}</{kind}>" for cell, right in zip(cells, numbers)
    )
    return f'<tr class="{name}">{inside}</tr>'


def short(value):
    """A number as a person reads it; None, where there is none."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def download(name, content, words):
    """A link that saves `content` as a file: in JupyterLab and in Voila, without the server's help."""
    data = base64.b64encode(content.encode()).decode()
    return f'<a class="tcgpu-download" download="{name}" href="data:text/csv;base64,{data}">{html.escape(words)}</a>'
