"""The card that picks methods and sets their knobs."""

from functools import partial

import ipywidgets as widgets

from tcgpu.errors import MethodError
from tcgpu.lab.explorer import elements
from tcgpu.lab.explorer.method_run import MethodRun
from tcgpu.registry import METHODS
from tcgpu.suggest import check_known


class MethodCard(widgets.VBox):
    """Picks methods and sets their knobs.

    chips: method -> its button. knobs: method -> knob -> control. knobs_of: the method whose knobs are shown.
    """

    def __init__(self, methods=(), on_change=lambda: None):
        self._on_change = lambda: None  # until all controls are made
        self.chips = {
            name: widgets.ToggleButton(description=name, tooltip=f"{method.summary} ({method.source})")
            for name, method in METHODS.items()
        }
        self.knobs = elements.LazyDict(self._make_controls)
        tooltip = "the method whose knobs are shown below"
        self.knobs_of = elements.dropdown("knobs of", 250, tooltip, label_width=elements.LABEL_WIDTH)
        self.shown_knobs = elements.box([])
        title = elements.text("Methods", "tcgpu-heading")
        super().__init__([title, *self._chips_by_source(), self.knobs_of, self.shown_knobs])
        self.add_class("tcgpu-card")
        elements.when_set(self._show_knobs, self.knobs_of)
        for chip in self.chips.values():
            elements.when_set(partial(self._chip_pressed, chip), chip)
        self.choose(*methods)
        self._on_change = on_change

    @property
    def chosen(self) -> list[str]:
        """The names of the picked methods, in the order of `tcgpu.methods()`."""
        return [name for name, chip in self.chips.items() if chip.value]

    def choose(self, *names: str) -> None:
        """Pick these methods and no others."""
        for name in names:
            check_known("method", name, self.chips, MethodError)
        for name, chip in self.chips.items():
            chip.value = name in names

    def runs(self, order=None, engine=None, repeats=1, max_seconds=None) -> list[MethodRun]:
        """A MethodRun for each picked method; MethodError if none is picked, or a knob has an invalid value."""
        if not self.chosen:
            raise MethodError("pick a method")
        settings = order, engine, repeats, max_seconds
        return [MethodRun(name, self._changed_knobs(name), *settings) for name in self.chosen]

    def _changed_knobs(self, method):
        values = {name: elements.value_of(control) for name, control in self.knobs[method].items()}
        return {name: value for name, value in values.items() if value not in (None, METHODS[method].knobs[name])}

    def _make_controls(self, method):
        """A control for each knob: a list for a few choices, else a field."""
        controls = {}
        for knob in METHODS[method].declared:
            settings = {"choices": [(str(choice), choice) for choice in knob.choices]}
            if not knob.choices:
                default = "automatic" if knob.default is None else f"{knob.default:g}"
                settings = {"check": knob.check, "placeholder": default}
            controls[knob.name] = elements.form_control(
                knob.name.replace("_", " "), knob.help, knob.default, tooltip=f"{knob.help}: {knob.values}", **settings
            )
        elements.when_set(lambda: self._on_change(), *controls.values())
        return controls

    def _chips_by_source(self):
        for source in dict.fromkeys(method.source for method in METHODS.values()):
            chips = [self.chips[name] for name, method in METHODS.items() if method.source == source]
            label = elements.text(source, "tcgpu-source")
            yield elements.box([label, elements.box(chips, "tcgpu-chips", kind=widgets.Box)], kind=widgets.HBox)

    def _chip_pressed(self, chip):
        chip.button_style = "primary" if chip.value else ""
        elements.set_options(self.knobs_of, self.chosen)
        self._show_knobs()
        self._on_change()

    def _show_knobs(self):
        method = self.knobs_of.value
        rows = [control.row for control in self.knobs[method].values()] if method else []
        none = "this method has no knobs" if method else "pick a method"
        self.shown_knobs.children = rows or [elements.text(none, "tcgpu-help")]
