"""How a method is declared: a `Method` beside its kernel, with a `Knob` for everything that a user may set.

The API, the command line, the explorer and the documentation read names, defaults, ranges and help from here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self, TypeVar

import numpy as np

from tcgpu.errors import MethodError
from tcgpu.graph import as_graph
from tcgpu.suggest import did_you_mean

GPU = ("gpu", "webgpu", "sim")
CUDA = ("gpu", "sim")  # those with operations on whole arrays, which motifs, trusses and parts need
LATER = "planned", "prepared", "function", "tallies"  # what a Method with a `home` gets when that is imported

Planner = TypeVar("Planner", bound=Callable[..., Any])


@dataclass(frozen=True)
class Knob:
    """A parameter of a method: a whole number from `low` to `high`, or one of `choices`.

    default: None where the method chooses the value by the graph and the device. real: any number from `low` on. name:
    that of the parameter, which `tcgpu.method` fills in.

        >>> @tcgpu.method(lanes=tcgpu.Knob(8, "threads that share a column", 1, 32))
        ... def mine(col_ptr, row_idx, lanes, total): ...
    """

    default: object
    help: str
    low: int = 0
    high: int = 2**31 - 1
    choices: tuple = ()
    real: bool = False
    name: str = ""

    def check(self, value: Any) -> Any:
        """Return `value`; MethodError if the knob can't have it."""
        if value is None and self.default is None:
            return None
        if self.choices:
            return check_choice(self.name, value, self.choices)
        if self.real:
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value >= 0:
                raise MethodError(f"{self.name} is a number, 0 or more, not {value!r}")
            return value
        return check_integer(self.name, value, self.low, self.high)

    @property
    def values(self) -> str:
        """Which values the knob can have, in words."""
        if self.choices:
            return ", ".join(map(repr, self.choices))
        return f"{self.low:,} or more" if self.real else f"{self.low:,} to {self.high:,}"


# those of most kernels, without a default
USUAL_KNOBS = {
    "threads": Knob(None, "threads of a block", 1, 1024),
    "blocks": Knob(None, "blocks of a launch, at most", 1),
}


@dataclass(frozen=True)
class Method:
    """A way to count triangles: its source, what can run it, its knobs. `tcgpu.method` makes it of a function.

    order: the vertex order of its source; "auto" where the method looks at the graph. tasks: how the tasks of its
    kernel share the graph, what takes them time, and what lanes take in turns if they do, as `insight.sampling` names
    them. planned: called with a graph and the value of each knob, it decides a count and begins nothing (see
    `tcgpu.kernels.Plan`). prepared: called with whatever `as_graph` takes and an order, it makes the graph that
    `planned` takes. shares: whether it can count one of several shares of a graph. function: the kernel or plan as its
    author wrote it; arguments: those of `tcgpu.method` that make the same method of it. tallies: "edges" or "vertices"
    -> the function that plans what it finds for each. home: of a built-in method, the module with its kernels, which is
    imported when `planned`, `prepared`, `function` or `tallies` is first read.
    """

    name: str
    source: str
    summary: str
    order: str = "natural"
    engines: tuple[str, ...] = GPU
    tasks: tuple[str, ...] | None = None
    declared: tuple[Knob, ...] = ()
    planned: Any = field(default_factory=lambda: None, compare=False)
    prepared: Callable[..., Any] = field(default_factory=lambda: as_graph, compare=False)
    shares: bool = False
    function: Callable | None = field(default_factory=lambda: None, compare=False)
    arguments: dict = field(default_factory=dict, compare=False)
    tallies: dict = field(default_factory=dict, compare=False)
    home: str = ""

    def __repr__(self):
        return f"<method {self.name!r}: {self.summary}>"

    def __post_init__(self):
        if self.home:
            for name in LATER:
                object.__delattr__(self, name)
        elif self.function is not None:
            self._show(self.function)

    def __getattr__(self, name):
        """What the module of a built-in method sets, by `with_plan`."""
        if name not in LATER or not self.__dict__.get("home"):
            raise AttributeError(f"a method has no {name!r}")
        import_module(self.home)
        return self.__dict__[name]

    def with_plan(self, function: Callable[..., Any], prepare: Callable[[Any, str], Any]) -> Self:
        """Return this method: `function` plans its counts, `prepare` makes the graphs for that."""
        for name, value in zip(LATER, (function, prepare, function, {}), strict=True):
            object.__setattr__(self, name, value)
        self._show(function)
        return self

    def _show(self, function):
        """Make `inspect.getsource` and `help` show what the author wrote."""
        object.__setattr__(self, "__wrapped__", function)
        object.__setattr__(self, "__doc__", function.__doc__)

    @property
    def knobs(self) -> dict[str, Any]:
        """The default of each knob, by name."""
        return {knob.name: knob.default for knob in self.declared}

    def settings(self, given: dict[str, Any]) -> dict[str, Any]:
        """The value of each knob: the default unless it is given; MethodError if it can't have that value.

        The default of `threads` is at most what a block of this device may have.
        """
        defaults = self.knobs
        if defaults.get("threads") and self.engines != ("cpu",):
            from tcgpu.engines import runtime  # only kernels need it

            defaults["threads"] = min(defaults["threads"], runtime.facts().threads_per_block)
        checked = {knob.name: knob.check(given[knob.name]) for knob in self.declared if knob.name in given}
        return defaults | given | checked

    def prepare(self, graph: Any, order: str | None = None) -> Any:
        """Whatever `as_graph` takes, made a graph in an order, as `plan` takes it."""
        return self.prepared(graph, order or self.order)

    def plan(self, graph: Any, **knobs: Any) -> Any:
        """The plan of one count of `graph` in the order that it has; with `share`, of a share of it."""
        if "share" in knobs and not self.shares:
            raise MethodError(
                f"method {self.name!r} counts whole graphs, not shares of one: for that, its kernel needs parameters "
                "'worker' and 'workers', or its plan a parameter 'share'"
            )
        share = {"share": (0, 1)} if self.shares else {}
        return self.planned(graph, **self.settings(share | knobs))

    __call__ = plan

    def for_edges(self, plan: Planner) -> Planner:
        """Decorate a function of a graph that plans how each edge's triangles are found, for `tcgpu.support`.

        It returns a `tcgpu.kernels.ArrayPlan`: a plan whose result is an array, `support`. Its edges are in the order
        of `row_idx` and `col_of`.
        """
        self.tallies["edges"] = plan
        return plan

    def for_vertices(self, plan: Planner) -> Planner:
        """Decorate a function that plans the same for each vertex; without one, each edge's triangles are added up."""
        self.tallies["vertices"] = plan
        return plan

    def support_plan(self, graph: Any, **knobs: Any) -> Any:
        """The plan that finds each edge's triangles; MethodError if the method only counts."""
        if "edges" not in self.tallies:
            others = "cpu, adaptive and the bitmap methods do"
            raise MethodError(f"method {self.name!r} does not tell edge from edge; {others}")
        return self.tallies["edges"](graph, **knobs)


def check_integer(name, value, low, high):
    """Return `value` as an int; MethodError unless it is a whole number in this range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
        raise MethodError(f"{name} is a whole number from {low:,} to {high:,}, not {value!r}")
    return int(value)


def check_choice(name, value, choices):
    """Return `value`; MethodError unless it is one of `choices`."""
    if value not in choices:
        hint = did_you_mean(value, choices)
        raise MethodError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}{hint}")
    return value
