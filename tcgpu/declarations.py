"""How a method is declared: a `Method` beside its kernel, with a `Knob` for everything that a user may set.

The API, the command line, the explorer and the documentation read names, defaults, ranges and help from here.
"""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from tcgpu.errors import MethodError
from tcgpu.graph import as_graph
from tcgpu.suggest import did_you_mean

GPU = ("gpu", "sim")


@dataclass(frozen=True)
class Knob:
    """A parameter of a method: a whole number from `low` to `high`, or one of `choices`.

    default: None where the method chooses the value by the graph and the device. real: any number from `low` on.
    """

    name: str
    default: object
    help: str
    low: int = 0
    high: int = 2**31 - 1
    choices: tuple = ()
    real: bool = False

    def check(self, value):
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
    def values(self):
        """Which values the knob can have, in words."""
        if self.choices:
            return ", ".join(map(repr, self.choices))
        return f"{self.low:,} or more" if self.real else f"{self.low:,} to {self.high:,}"


def threads_knob(default, **more):
    """The knob `threads`."""
    return Knob("threads", default, "threads of a block", 1, 1024, **more)


def blocks_knob(default, **more):
    """The knob `blocks`."""
    return Knob("blocks", default, "blocks of a launch, at most", 1, **more)


@dataclass(frozen=True)
class Method:
    """A way to count triangles: its source, what can run it, its knobs.

    order: the vertex order of its source; "auto" where the method looks at the graph. module: the name of the module
    that has its `plan(graph, **knobs)`, which decides a count and begins nothing (see `tcgpu.kernels.Plan`). tasks: how
    the tasks of its kernel share the graph, and what takes them time, as `tracing.sampling` names them. planned: its
    `plan`, of a method that has no module. function: the kernel or plan as its author wrote it; arguments: those of
    `tcgpu.method` that make the same method of it. shares: whether it can count one of several shares of a graph.
    """

    name: str
    source: str
    summary: str
    order: str = "natural"
    engines: tuple[str, ...] = GPU
    module: str = ""
    tasks: tuple[str, str] | None = None
    declared: tuple[Knob, ...] = ()
    planned: Callable | None = field(default=None, repr=False)
    function: Callable | None = field(default=None, repr=False)
    arguments: dict = field(default_factory=dict, repr=False, compare=False)
    shares: bool = False

    def __repr__(self):
        return f"<method {self.name!r}: {self.summary}>"

    def __post_init__(self):
        if self.function is not None:  # so `inspect.getsource` shows what its author wrote
            object.__setattr__(self, "__wrapped__", self.function)
            object.__setattr__(self, "__doc__", self.function.__doc__)

    def with_plan(self, plan):
        """The method with this function as its `plan`."""
        return replace(self, planned=self.planner(plan))

    @property
    def knobs(self):
        """The default of each knob, by name."""
        return {knob.name: knob.default for knob in self.declared}

    def planner(self, plan):
        """Decorate the method's `plan`: fill in the defaults of its knobs, and check each value."""

        @functools.wraps(plan)
        def checked(graph, **given):
            given = self.knobs | given
            for knob in self.declared:
                given[knob.name] = knob.check(given[knob.name])
            return plan(graph, **given)

        return checked

    def imported(self):
        """The module that has the method's `plan`; the method itself if it has none."""
        return importlib.import_module(self.module) if self.module else self

    def prepare(self, graph, order=None):
        """Whatever `as_graph` takes, made a Graph in an order; the method's own `prepare` does it if it has one."""
        own = getattr(self.imported(), "prepare", as_graph) if self.module else as_graph
        return own(graph, order or self.order)

    def plan(self, graph, **knobs):
        """The plan of one count of `graph` in the order that it has."""
        return (self.planned or self.imported().plan)(graph, **knobs)

    def support_plan(self, graph, **knobs):
        """The plan that finds each edge's triangles; MethodError if the method only counts."""
        if not self.module or not hasattr(self.imported(), "support_plan"):
            others = "cpu, adaptive and the bitmap methods do"
            raise MethodError(f"method {self.name!r} does not tell edge from edge; {others}")
        return self.imported().support_plan(graph, **knobs)


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
