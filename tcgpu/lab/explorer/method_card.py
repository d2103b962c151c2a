"""The card that picks methods and sets their knobs."""

import html
from typing import NamedTuple

import ipywidgets as widgets

from tcgpu.engines.choice import ENGINE
from tcgpu.errors import GraphError
from tcgpu.lab.explorer import elements, labels
from tcgpu.registry import METHODS


class Wish(NamedTuple):
    """A method to be run, with the knobs that are not as they come."""

    method: str
    knobs: dict
    order: str | None
    engine: str | None
    repeats: int

    @property
    def label(self):
        """The method, and what of it is not as it comes."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.knobs.items())])

    @property
    def runs(self):
        """How many runs a median is taken of: one of the simulator's, whose time tells little."""
        simulated = self.engine == "sim" or self.engine is None and ENGINE == "sim"
        return 1 if simulated and "sim" in METHODS[self.method].engines else self.repeats

    @property
    def code(self):
        """What measures it, as Python."""
        said = {"knobs": self.knobs or None, "order": self.order, "engine": self.engine, "repeats": self.runs}
        more = "".join(f", {name}={value!r}" for name, value in said.items() if value is not None)
        return f"tcgpu.measure(graph, {self.method!r}{more})"

    @property
    def traced(self):
        """What traces it, as Python."""
        said = {"order": self.order} if self.order else {}
        more = "".join(f", {name}={value!r}" for name, value in (said | self.knobs).items())
        return f"tcgpu.trace(graph, {self.method!r}{more})"


class MethodChoice(widgets.VBox):
    """Which methods, with which knobs. `wishes(...)` is what is to be run.

    chips: method -> a toggle. knobs: method -> knob -> control. of: whose knobs are shown. changed: called when
    anything is set.
    """

    def __init__(self, methods=(), changed=lambda: None):
        self._changed = lambda: None  # until all is there
        self.chips = {name: _chip(method) for name, method in METHODS.items()}
        self.knobs = elements.Made(self._make_controls)
        self._forms = elements.Made(lambda method: _form(method, self.knobs[method]))
        self.of = widgets.Dropdown(description="knobs of", layout={"width": "250px"})
        self.of.style.description_width = elements.LABEL
        self.shown = elements.box([], "tcgpu-scroll", height="150px")
        super().__init__([elements.heading("Methods"), *self._by_source(), self.of, self.shown])
        self.add_class("tcgpu-card")
        self.of.observe(self._show_knobs, "value")
        for chip in self.chips.values():
            chip.observe(self._press, "value")
        self.choose(*methods)
        self._changed = changed

    @property
    def chosen(self):
        """The names of the methods that are picked, in the order of `tcgpu.methods()`."""
        return [name for name, chip in self.chips.items() if chip.value]

    def choose(self, *names):
        """Pick these methods and no others."""
        for name in names:
            elements.known("method", name, self.chips)
        for name, chip in self.chips.items():
            chip.value = name in names

    def wishes(self, order=None, engine=None, repeats=1):
        """A Wish for each method that is picked; GraphError where there is none, or a knob is no number."""
        if not self.chosen:
            raise GraphError("pick a method")
        return [Wish(name, self._set(name), order, engine, repeats) for name in self.chosen]

    def _set(self, method):
        """The knobs of a method that are not as they come."""
        values = {name: _value(name, control) for name, control in self.knobs[method].items()}
        return {name: value for name, value in values.items() if value not in (None, METHODS[method].knobs[name])}

    def _make_controls(self, method):
        """A control for each knob of a method: a list where there are few values, else a line of text."""
        made = {}
        for name, default in METHODS[method].knobs.items():
            values = labels.knob(method, name)[1]
            if values:
                made[name] = widgets.Dropdown(options=[(str(value), value) for value in values], value=default)
            else:
                shown = "" if default is None else f"{default:g}"
                made[name] = widgets.Text(shown, placeholder=shown or "automatic", continuous_update=False)
            made[name].observe(lambda change: self._changed(), "value")
        return made

    def _by_source(self):
        sources = dict.fromkeys(method.source for method in METHODS.values())
        for source in sources:
            chips = [self.chips[name] for name, method in METHODS.items() if method.source == source]
            named = elements.text(html.escape(source), "tcgpu-source")
            yield elements.box([named, elements.box(chips, "tcgpu-chips", kind=widgets.Box)], kind=widgets.HBox)

    def _press(self, change):
        change.owner.button_style = "primary" if change.new else ""
        elements.offer(self.of, self.chosen)
        self._show_knobs()
        self._changed()

    def _show_knobs(self, change=None):
        name = self.of.value
        none = elements.text("it has no knobs" if name else "pick a method above", "tcgpu-words")
        self.shown.children = (self._forms[name] if name else []) or [none]


def _chip(method):
    return widgets.ToggleButton(description=method.name, tooltip=f"{method.summary} ({method.source})")


def _form(method, controls):
    said = {name: labels.knob(method, name)[0] for name in controls}
    return [elements.row(control, said[name], name.replace("_", " ")) for name, control in controls.items()]


def _value(name, control):
    """What a control says: a value of its list, a number, or None where a line is empty."""
    if isinstance(control, widgets.Dropdown):
        return control.value
    said = control.value.strip().replace(",", "").replace("_", "")
    if not said:
        return None
    for kind in (int, float):
        try:
            return kind(said)
        except ValueError:
            pass
    raise GraphError(f"{name.replace('_', ' ')} is a number, not {control.value!r}")
