"""The methods by name, and which of them runs on which engine."""

import copyreg
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

from tcgpu.built_in import METHODS as BUILT_IN_METHODS
from tcgpu.declarations import GPU, Method
from tcgpu.engines.choice import ENGINE, NUMBA
from tcgpu.errors import EngineError, MethodError
from tcgpu.graph import Graph, known_order
from tcgpu.suggest import did_you_mean, unknown

log = logging.getLogger("tcgpu")

ENGINES = (*GPU, "cpu")
METHODS: dict[str, Method] = dict(BUILT_IN_METHODS)  # and those that are registered
BUILT_IN = frozenset(METHODS)
ENTRY_POINTS = "tcgpu.methods"  # the group by which a package registers its methods


def methods() -> list[Method]:
    """Return every method there is, built-in, of an installed package, or registered: a list that prints as a table."""
    from tcgpu.records import Methods  # only who lists them needs it

    for point in list(_entry_points().values()):
        _load(point)
    return Methods(METHODS.values())


def register(method: Method) -> Method:
    """Let what `tcgpu.method` made be named everywhere, as `tcgpu.count(graph, "mine")`; returns it.

    A method that was registered before under the same name is replaced; MethodError for the name of a built-in one.
    A package registers its methods by entry points of the group "tcgpu.methods".
    """
    _check_name(method)
    METHODS[method.name] = method
    return method


def unregister(name: str | Method) -> None:
    """Remove a method that was registered; MethodError if there is none of this name, or it is a built-in one."""
    name = name.name if isinstance(name, Method) else name
    if name in BUILT_IN:
        raise MethodError(f"{name!r} is a built-in method: it stays")
    if name not in METHODS:
        raise MethodError(unknown("registered method", name, METHODS.keys() - BUILT_IN))
    del METHODS[name]


def named(method: str | Method) -> Method:
    """Return the method that is given, or the one of this name; MethodError if there is none."""
    if not isinstance(method, str):
        if not isinstance(method, Method) or METHODS.get(method.name) is not method:
            _check_name(method)
        return method
    if method not in METHODS:
        points = _entry_points()  # their names are mostly those of the methods
        for point in [points[method]] if method in points else [*points.values()]:
            _load(point)
    if method not in METHODS:
        raise MethodError(unknown("method", method, METHODS))
    return METHODS[method]


def as_list(methods: str | Method | Iterable[str | Method]) -> list[str | Method]:
    """Return one method or several as a list."""
    return list(methods) if isinstance(methods, Iterable) and not isinstance(methods, str) else [methods]


def choose(
    method: str | Method | None = None,
    engine: str | None = None,
    order: str | None = None,
    knobs: Iterable[str] = (),
    keywords: Iterable[str] = (),
) -> Method:
    """Return the method that `count` runs with these keywords; MethodError or EngineError if there is none.

    keywords: those of `count`, where it is called: one may have been meant by a knob that the method does not have.
    """
    chosen = named(fastest(engine) if method is None else method)
    if order is not None:
        known_order(order)
    for knob in knobs:
        if knob not in chosen.knobs:
            has = f"its knobs are {', '.join(chosen.knobs)}" if chosen.knobs else "it has none"
            hint = did_you_mean(knob, [*chosen.knobs, *keywords])
            where = "count(): " if keywords else ""
            raise MethodError(f"{where}method {chosen.name!r} has no knob {knob!r}{hint}; {has}")
    check_engine(f"method {chosen.name!r}", engine, chosen.engines)
    return chosen


def knobs_by_method(methods: Iterable[str | Method], knobs: dict[str, Any]) -> dict[Method, dict[str, Any]]:
    """Return each method with those of the knobs that it has; MethodError if none has one, or there is no method."""
    chosen = [named(method) for method in methods]
    if not chosen:
        raise MethodError("no method to trace is named")
    for knob in knobs:
        if not any(knob in method.knobs for method in chosen):
            hint = did_you_mean(knob, {known for method in chosen for known in method.knobs})
            raise MethodError(f"no knob {knob!r} in {' or '.join(method.name for method in chosen)}{hint}")
    return {method: {knob: value for knob, value in knobs.items() if knob in method.knobs} for method in chosen}


def choose_for_edges(method: str | Method | None, engine: str | None, order: str | None) -> Method:
    """Return the method that finds the triangles of edges; without a name, what is fastest on the engine."""
    if method is None:
        method = "bitmap_auto" if engine == "webgpu" else fastest(engine)
    return choose(method, engine, order)


def triangles_plan(method: Method, graph: Graph, **knobs: Any) -> Any:
    """Return the plan that finds each vertex's triangles; MethodError if the method only counts."""
    from tcgpu.kernels import results

    own = method.tallies.get("vertices")
    return own(graph, **knobs) if own else results.sums_at_vertices(method.support_plan(graph, **knobs), graph)


def fastest(engine: str | None = None) -> str:
    """Return the name of the fastest method on an engine that takes any graph; without one, on what this machine has.

    A WebGPU device is for those who name it. It has no 16-bit integers, which `adaptive` needs for many graphs; of the
    others, `warp_search` is never far behind the fastest: long columns do not hold it up.
    """
    if engine == "webgpu":
        return "warp_search"
    return "adaptive" if engine in GPU or engine is None and ENGINE == "gpu" else "cpu"


def check_engine(verb: str, engine: str | None, engines: Iterable[str] = ("cpu",)) -> None:
    """EngineError unless a verb, or a method, runs on the engine that is named; None is any."""
    if engine is not None and engine not in engines:
        if engine not in ENGINES:
            raise EngineError(unknown("engine", engine, ENGINES))
        raise EngineError(f"{verb} runs on {' or '.join(sorted(engines))}, not on {engine!r}")


def engine_of(method: Method, engine: str | None = None) -> str:
    """Return what runs a method here: the engine that is named, or the fastest of its own that this machine has."""
    check_engine(f"method {method.name!r}", engine, method.engines)
    if engine == "cpu" or method.engines == ("cpu",):
        return "cpu"
    from tcgpu.engines import runtime

    if engine is None:
        return runtime.engine()
    reason = runtime.why_missing(engine)
    if reason:
        raise EngineError(f"no engine {engine!r} here: {reason}; engine 'sim' is for small graphs")
    return engine


@contextmanager
def on_engine(method: Method, engine: str | None = None, max_seconds: float | None = None) -> Iterator[None]:
    """Run a method on an engine inside the `with`, in the simulator or without Numba for at most `max_seconds`.

    GraphError, with the way out, where the device's memory does not suffice.
    """
    name = engine_of(method, engine)
    if name == "cpu" and max_seconds is None and NUMBA:
        yield
        return
    from tcgpu.engines import runtime
    from tcgpu.kernels import fitting, simulated

    with simulated.limited(max_seconds):
        if name == "cpu":
            yield
            return
        with runtime.using(name), fitting(method.name):
            yield


def _check_name(method):
    """MethodError unless it is a Method with a name that no built-in method has."""
    if not isinstance(method, Method):
        hint = "; decorate it with @tcgpu.method" if callable(method) else ""
        raise MethodError(f"a method is what tcgpu.method makes of a function, not {method!r}{hint}")
    if method.name in BUILT_IN:
        raise MethodError(f"there is a built-in method {method.name!r}: give yours another name, tcgpu.method('mine')")


@cache
def _entry_points():
    """The methods of installed packages that are not loaded: name -> entry point."""
    from importlib.metadata import entry_points  # slow to import

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _load(point):
    """Register the method of an installed package, under the name of its entry point; what fails is logged."""
    try:
        found = point.load()
        _check_name(found)
        METHODS.setdefault(found.name, found)
    except Exception as error:  # of a package that we do not know: the others' methods still work
        log.warning("the method %r of an installed package is left out: %s", point.value, error)
    _entry_points().pop(point.name)


def _reduced(method):
    """How a Method is sent to another process: a built-in one by its name, any other with its function and source."""
    if METHODS.get(method.name) is method and method.name in BUILT_IN:
        return named, (method.name,)
    from tcgpu.engines import by_value

    return _received, (by_value.dumps(method.function, method.arguments),)


@lru_cache(maxsize=32)
def _received(data):
    """The Method that another process sent; the same one each time, so that it is compiled once."""
    from tcgpu.engines import by_value
    from tcgpu.kernels.method import method as method_of

    function, arguments = by_value.loads(data)
    declared = dict(arguments)
    return method_of(declared.pop("name"), **declared)(function)


copyreg.pickle(Method, _reduced)
