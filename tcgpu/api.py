"""The verbs: count, triangles, support and others; clustering is in `coefficients`, those of a slice in its folder.

Every verb takes the same graphs and the same keywords, which its docstring describes. A keyword that a verb cannot use
raises a MethodError.
"""

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, get_type_hints, overload

import numpy as np

from tcgpu.declarations import check_integer
from tcgpu.engines.choice import ENGINE, Engine
from tcgpu.errors import MethodError, roomy
from tcgpu.graph import Order, as_graph, edge_arrays
from tcgpu.progress import underway
from tcgpu.registry import ENGINES, METHODS, Method, check_engine, choose, choose_for_edges, on_engine, triangles_plan
from tcgpu.suggest import bound, unknown

if TYPE_CHECKING:
    from tcgpu.cpu.wedges import ApproximateCount

Progress = bool | Callable[[float, float], Any] | None
Workers = Executor | str | None
Verb = TypeVar("Verb", bound=Callable)


class Options(TypedDict, total=False):
    """The keywords of every verb, None by default; see `count`."""

    method: str | Method | None
    engine: Engine | None
    order: Order | None
    executor: Workers
    parts: int | None
    progress: Progress
    max_seconds: float | None


def documented(function: Verb) -> Verb:
    """Add to a docstring, where one entry lists parameters that all verbs have, what `count` says of each of them."""
    text, entry = inspect.getdoc(function) or "", r"^(graph, .+)\n((?:    .+\n)+)"
    said = dict(re.findall(r"^(\w+)\n((?:    .+\n)+)", inspect.getdoc(count) or "", re.MULTILINE))

    def filled(match):
        names = match[1].replace("options", ", ".join(Options.__annotations__)).split(", ")
        items = [f"    - {name}: " + said[name].strip().replace("\n", "\n  ") for name in names]
        return "\n".join([match[0], *items, ""])

    function.__doc__ = re.sub(entry, filled, text, flags=re.MULTILINE)
    return function


def verb(function: Verb) -> Verb:
    """Make a function `roomy` and `documented`; its `**options` become the keywords of every verb, None by default."""
    own, function = inspect.signature(function), roomy(documented(function))
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in get_type_hints(Options).items()
    ]
    signature = own.replace(parameters=[*list(own.parameters.values())[:-1], *keywords])

    @functools.wraps(function)
    def checked(*args, **options):
        given = bound(function.__name__, signature, args, options)
        given.apply_defaults()
        return function(*given.args, **given.kwargs)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked  # type: ignore[return-value]


@overload
def count(
    graph: Any, *, approximate: float, seed: int = ..., order: Order | None = ..., progress: Progress = ...
) -> "ApproximateCount": ...


@overload
def count(
    graph: Any, method: str | Method | None = ..., *, engine: Engine | None = ..., order: Order | None = ...,
    executor: Workers = ..., parts: int | None = ..., progress: Progress = ..., max_seconds: float | None = ...,
    device_memory: int | str | None = ..., resume: str | os.PathLike | None = ..., approximate: None = ...,
    **knobs: Any,
) -> int: ...  # fmt: skip


@roomy
def count(
    graph: Any,
    method: str | Method | None = None,
    *,
    engine: Engine | None = None,
    order: Order | None = None,
    executor: Workers = None,
    parts: int | None = None,
    progress: Progress = None,
    max_seconds: float | None = None,
    device_memory: int | str | None = None,
    resume: str | os.PathLike | None = None,
    approximate: float | None = None,
    seed: int | None = None,
    **knobs: Any,
) -> int:
    """Count the triangles of a graph, exactly; or estimate their number.

    Parameters
    ----------
    graph
        A `Graph`, a NetworkX graph, a SciPy sparse matrix, edge arrays `(u, v)`, a list of pairs, or the path of a file
        or folder that `tcgpu.read` reads.
    method
        A name out of `tcgpu.methods()`, or a Method of your own, which `tcgpu.method` made; without one, what is
        fastest on the engine.
    engine
        "gpu", NVIDIA's; "webgpu", any GPU, also in a browser; "sim", the simulator, for small graphs; "cpu". Without
        one, the fastest that the machine has; "webgpu" is for those who name it, and for `tcgpu.measure`.
    order
        The vertex order to work in: "natural", "degree", "bfs", "random" or "auto"; without one, the method's. Results
        are always in the caller's numbering.
    executor
        Workers: an executor of `concurrent.futures`, a Dask client's, an `MPIPoolExecutor`, or the name of one that
        tcgpu keeps: "gpus", "processes", "threads", "dask://HOST:PORT". With "gpus", edge arrays `(u, v)` of 2^28
        edges or more are counted by all GPUs, each of which has a part; `u` and `v` may also be lists of arrays that
        are on the GPUs.
    parts
        Into how many parts the work is cut for the executor.
    progress
        True shows a bar, False none, None one at a terminal only; a function is called with (done, total). Nothing else
        changes.
    max_seconds
        How long the simulator may take by its estimate; 30 seconds without a number. An estimate of 2 seconds or more
        is logged (logger "tcgpu").
    device_memory
        The most memory of the device to use: bytes, or text like "512MB". A graph that needs more is streamed through
        it, part by part. A GPU also cleans edge arrays `(u, v)` of 2^19 edges or more in it, unless it is too little
        for that or there are `resume` or knobs. On engine "cpu", the part of the graph that is read at a time. A graph
        in a folder that `tcgpu.write` made stays in its files, and is counted in the order that they have.
    resume
        The path of a journal. Parts that it holds are not counted again; new parts are added to it.
    approximate
        A relative error, such as .01: at most 5 of 100 estimates are off by more. Pairs of neighbours are drawn at
        random, on the CPU, where nothing is compiled for it. Skewed graphs need far fewer draws with `order="degree"`,
        which has to be made, unless the graph has it. Where an exact count takes less, it is made.
    seed
        Of these draws; 0 without one.
    knobs
        Those of the method: `tcgpu.methods()` lists them.

    Returns
    -------
    int
        The number of triangles; with `approximate`, one that has the interval of the estimate, `low` to `high`, and
        `confidence`, `samples` and `exact`.

    Examples
    --------
    >>> tcgpu.count([(0, 1), (1, 2), (2, 0)])
    1
    """
    if approximate is not None:
        from tcgpu.cpu import wedges

        others = {"method": method, "engine": engine, "executor": executor, "parts": parts, "max_seconds": max_seconds}
        wedges.check(approximate, seed, others | {"device_memory": device_memory, "resume": resume, **knobs})
        graph = opened(graph)
        found = wedges.estimate(graph, float(approximate), seed or 0, order, progress)
        return wedges.ApproximateCount(count(graph, progress=progress)) if found is None else found
    knobs |= {} if seed is None else {"seed": seed}
    _check_parts(executor, parts)
    if executor is not None or device_memory is not None or resume is not None:
        from tcgpu import distributed

        options: dict[str, Any] = {"engine": engine, "order": order, "progress": progress, "max_seconds": max_seconds}
        options |= {} if executor is None else {"executor": executor, "parts": parts}
        return distributed.count(graph, method, device_memory=device_memory, resume=resume, **options, **knobs)
    chosen = choose(method, engine, order, knobs, Options.__annotations__)
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting by {chosen.name}"):
        return chosen.plan(chosen.prepare(opened(graph), order), **knobs).count()


@verb
def triangles(graph: Any, nodes: Any = None, **options: Unpack[Options]) -> np.ndarray:
    """Count the triangles at each vertex, or at some.

    Parameters
    ----------
    graph, options
        As in `count`. Methods are "cpu", "adaptive" and the bitmap methods; with an executor,
        "cpu" and "warp_search".
    nodes
        Numbers of vertices. Only triangles between these and their neighbours are looked for.

    Returns
    -------
    numpy.ndarray
        int64, one number a vertex, or for each of `nodes`.
    """
    if nodes is None:
        return _tally("triangles", graph, **options)
    from tcgpu.cpu import neighbours

    graph = as_graph(opened(graph))
    nodes = neighbours.checked_vertices(graph, nodes)
    return _tally("triangles", neighbours.around(graph, nodes)[0], **options)[nodes]


@verb
def support(graph: Any, **options: Unpack[Options]) -> np.ndarray:
    """Count the triangles at each edge.

    Parameters
    ----------
    graph, options
        As in `count`, with the methods of `triangles`.

    Returns
    -------
    numpy.ndarray
        int64, one number an edge, in the order of `graph.edges()`.
    """
    return _tally("support", graph, **options)


@verb
def list_triangles(
    graph: Any, chunk: int = 1 << 20, nodes: Any = None, **options: Unpack[Options]
) -> Iterator[np.ndarray]:
    """List every triangle once, or those that have some of `nodes`.

    Parameters
    ----------
    graph, options
        As in `count`. There is no method to choose, and no executor. Without an engine, a GPU lists the triangles
        of half a million edges or more, and the CPU all others.
    chunk
        The largest number of triangles to return at a time.
    nodes
        Numbers of vertices. Only triangles between these and their neighbours are looked for.

    Yields
    ------
    numpy.ndarray
        int32, a row a triangle: vertices j < i < k.
    """
    from tcgpu import cpu

    check_only("list_triangles", {"cpu"}, ENGINES, options)
    engine, order, inside = options["engine"], options["order"] or "auto", None
    choose("cpu", engine if options["method"] else None, order)
    if options["method"] or engine is None and ENGINE != "gpu":
        engine = "cpu"
    chunk, graph = check_integer("chunk", chunk, 1, 2**63 - 1), taken(graph, engine)
    if nodes is not None:
        from tcgpu.cpu import neighbours

        graph = as_graph(graph)
        graph, inside = neighbours.around(graph, neighbours.checked_vertices(graph, nodes))
    if engine != "cpu":
        from tcgpu.kernels import device_graph, triangle_lists

        engine = device_graph.engine_for(graph, engine)
    if engine == "cpu":
        chunks = cpu.list_triangles(as_graph(graph), chunk, order)
    else:
        pieces = triangle_lists.pieces(graph, order)
        chunks = _on_device(pieces, chunk, triangle_lists.METHOD, engine, options["max_seconds"])
    if inside is not None:
        chunks = (rows for rows in (rows[inside[rows].any(axis=1)] for rows in chunks) if len(rows))
    return _listed(chunks, options["progress"])


@roomy
def is_triangle_free(graph: Any, **options: Any) -> bool:
    """Return whether no three vertices are neighbours of each other. Options as in `count`."""
    if options.keys() <= {"method", "engine", "order", "progress", "max_seconds"}:
        method = choose(options.get("method"), options.get("engine"), options.get("order"))
        if method.engines == ("cpu",):
            from tcgpu import cpu

            if cpu.finds_triangle(graph := as_graph(opened(graph))):
                return False
    return count(graph, **options) == 0


def opened(graph):
    """Read a graph that is given by its path; return any other as it is."""
    if not isinstance(graph, (str, os.PathLike)):
        return graph
    from tcgpu import formats

    return formats.read(graph, progress=False)  # inside of a verb's own bar


def whole(graph, engine=None, method=None):
    """`opened`, as a Graph. A GPU cleans many raw edges, if there is one and no method or other engine is named."""
    graph = opened(graph)
    if ENGINE == "gpu" and engine in (None, "gpu") and method is None and isinstance(graph, tuple):
        from tcgpu.kernels import adaptive, device_graph  # noqa: F401  all kernels of both are compiled at the same time

        with suppress(TypeError, ValueError):  # the host says what is wrong, if it is not that the GPU has no room
            if device_graph.engine_for(edges := edge_arrays(graph)) == "gpu":
                graph = device_graph.DeviceGraph.from_edges(*edges)
    return as_graph(graph)


def taken(graph, engine):
    """`opened`, as a Graph; edges `(u, v)` and columns that are on a device stay what they are, unless for the CPU."""
    graph = opened(graph)
    stays = engine != "cpu" and (isinstance(graph, tuple) or hasattr(graph, "to_graph"))
    return graph if stays else as_graph(graph)


def _on_device(pieces, chunk, method, engine, max_seconds):
    """Yield at most `chunk` rows at a time; the caller may use another engine in between."""
    while True:
        with on_engine(method, engine, max_seconds):
            rows = next(pieces, None)
        if rows is None:
            return
        yield from (rows[at : at + chunk] for at in range(0, len(rows), chunk))


def _listed(chunks, progress):
    """Yield the chunks. All triangles are counted before the first one, which is most of the work."""
    with underway(progress, "finding triangles"):
        first = roomy(next, "list_triangles")(chunks, None)
    if first is not None:
        yield first
        yield from chunks


def _check_parts(executor, parts):
    if parts is not None and executor is None:
        raise MethodError("parts= says into how many parts an executor's work is cut: give executor=, too")


def check_only(verb, methods, engines, options):
    """MethodError or EngineError if the options are not among a verb's methods and engines, or need an executor."""
    method, engine = getattr(options["method"], "name", options["method"]), options["engine"]
    if options["executor"] is not None or options["parts"] is not None:
        raise MethodError(f"{verb} does not run on an executor: leave executor= and parts= out")
    if method is not None and method not in [*methods]:  # a list, because what is given may have no hash
        if method not in [*METHODS] and not isinstance(options["method"], Method):
            raise MethodError(unknown("method", method, methods))
        raise MethodError(f"{verb} has the methods {', '.join(sorted(methods))}, not {method!r}")
    check_engine(verb, engine, engines)


def _tally(verb, graph, method, engine, order, executor, parts, progress, max_seconds):
    """Count the triangles at each vertex (verb "triangles") or edge ("support")."""
    graph = opened(graph)
    _check_parts(executor, parts)
    if executor is not None:
        from tcgpu.distributed import pool

        options = {"method": method, "engine": engine, "order": order, "max_seconds": max_seconds}
        return pool.tally(verb, graph, executor, parts=parts, progress=progress, **options)
    chosen = choose_for_edges(method, engine, order)
    what = "vertices" if verb == "triangles" else "edges"
    with on_engine(chosen, engine, max_seconds), underway(progress, f"counting triangles of {what} by {chosen.name}"):
        from tcgpu import cpu

        if chosen.engines == ("cpu",):
            return getattr(cpu, verb)(as_graph(graph), order or "auto")
        from tcgpu.kernels import device_graph, results

        given = chosen.prepare(graph, "natural")
        ordered = chosen.prepare(given, device_graph.order_for_tallies(given, order or chosen.order))
        if verb == "triangles":
            return results.vertices_in_order_of(given, triangles_plan(chosen, ordered), ordered).count()
        return cpu.widened(results.edges_in_order_of(given, chosen.support_plan(ordered), ordered).count())
