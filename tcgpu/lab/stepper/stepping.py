"""Which methods the stepper shows, with which knobs: `steps` yields the frames of one.

A built-in method has frames of its own, for few lanes; one of a user's has those of its trace.
"""

from collections.abc import Callable, Iterator
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from tcgpu import plots
from tcgpu.declarations import check_choice, check_integer
from tcgpu.errors import GraphError, MethodError
from tcgpu.graph import as_graph, known_order
from tcgpu.lab.stepper.adaptive_steps import adaptive
from tcgpu.lab.stepper.bitmap_steps import LOADS, bit_steps, register_steps
from tcgpu.lab.stepper.frames import BOX, GLOBAL, SHARED, Frame, FrameBuilder, Scene
from tcgpu.lab.stepper.level_steps import level_points, levels
from tcgpu.lab.stepper.merge_steps import column_block, merge_path, naive
from tcgpu.lab.stepper.search_steps import search
from tcgpu.lab.stepper.trace_steps import traced
from tcgpu.registry import BUILT_IN, METHODS, Method, choose, named

MAX_VERTICES, MAX_EDGES = 64, 400  # of a graph that fits a picture
KNOBS = {  # knob -> its default, least and largest value; or its default, True or False
    "columns": (3, 1, MAX_VERTICES), "threads": (4, 1, 1024), "tile": (32, 1, MAX_EDGES), "lanes": (4, 1, 32),
    "word": (8, 1, 64), "fold": (3, 0, 6), "registers": (12, 1, 16), "near": (12, 0, MAX_VERTICES),
    "hubs": (6, 0, MAX_VERTICES), "heavy": (4, 0, 2**30), "crowd": (4, 1, 2**30), "short": (3, 2, 2**30),
    "words": (2, 0, MAX_VERTICES), "cached": (True,), "skip": (False,),
}  # fmt: skip


def spring_points(graph, rounds=200):
    """Joined vertices near each other, the longer side upright: stretched to fill the box, then pushed apart."""
    if graph.n < 2:
        return np.tile(BOX / 2, (graph.n, 1))
    points = plots.layout(graph)
    points = points - points.mean(axis=0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T[:, ::-1]
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    points = np.divide(points - low, size, out=np.full(points.shape, 0.5), where=size > 1e-6) * BOX
    space = min(0.55, 0.8 * np.sqrt(BOX.prod() / graph.n))
    for _ in range(rounds):
        between = points[:, None] - points
        distance = np.hypot(between[..., 0], between[..., 1]) + np.eye(graph.n)
        push = np.maximum(space - distance, 0)
        points += 0.4 * (between / np.maximum(distance, 1e-9)[..., None] * push[..., None]).sum(axis=1)
        points = np.clip(points, 0, BOX)
    return points


class Shown(NamedTuple):
    frames: Callable  # generator of frames: takes a FrameBuilder, what `each` says, `settings`, and knobs
    unit: str  # what its look-ups are called
    each: str = "nonzero"  # what is shown at a time: a "nonzero", a "column" with its nonzeros, "nonzeros", a "graph"
    knobs: tuple = ()
    settings: tuple = ()
    points: Callable = spring_points  # graph -> a point per vertex
    order: str = "natural"


SHOWN = {
    "naive": Shown(naive, "comparisons"),
    "column_block": Shown(column_block, "comparisons", "nonzeros", ("columns", "threads", "tile")),
    "bitmap": Shown(bit_steps, "look-ups", "column", ("lanes", "word"), ("block", GLOBAL, 1)),
    "bitmap_thread": Shown(register_steps, "look-ups", "column", ("registers",)),
    "bitmap_warp": Shown(bit_steps, "look-ups", "column", ("lanes", "word", "fold"), ("warp", GLOBAL, LOADS)),
    "bitmap_block_shared": Shown(bit_steps, "look-ups", "column", ("lanes", "word"), ("block", SHARED, LOADS)),
    "bitmap_block_global": Shown(bit_steps, "look-ups", "column", ("lanes", "word", "fold"), ("block", GLOBAL, LOADS)),
    "merge_path": Shown(merge_path, "comparisons", knobs=("lanes",)),
    "thread_search": Shown(search, "look-ups", settings=("thread",)),
    "warp_search": Shown(search, "look-ups", knobs=("lanes", "cached"), settings=("warp",)),
    "levels": Shown(levels, "combinations", "graph", ("skip",), points=level_points),
    "adaptive": Shown(
        adaptive, "look-ups", "graph", ("near", "hubs", "heavy", "crowd", "short", "words", "word"), order="degree"
    ),
}
AUTOMATIC = ("report_auto", "bitmap_auto")  # shown as the method that they choose


def steps(graph, method="naive", *, order=None, column=None, edge=None, **knobs) -> Iterator[Frame]:
    """The frames of a method that counts the triangles of a small graph; see `step` for the parameters."""
    own = named(method) if isinstance(method, Method) or method in METHODS else None
    if own is not None and own.name in BUILT_IN:
        method, own = own.name, None
    if method in AUTOMATIC:
        method = METHODS[method].plan(as_graph(graph)).method
    if own is None and method not in SHOWN:
        what = "runs on cores, not on a GPU" if method in METHODS else "is not a method"
        raise MethodError(f"{method!r} {what}; the stepper shows {', '.join([*SHOWN, *AUTOMATIC])}")
    if own is None:
        shown = SHOWN[method]
        knobs = checked_knobs(method, shown.knobs, knobs)
    else:
        method = own.name
        shown = Shown(traced, "requests", "graph", order=choose(own, "sim", order, knobs).order)
    graph = as_graph(graph).ordered(known_order(order or shown.order))
    if graph.n > MAX_VERTICES or graph.m > MAX_EDGES:
        raise GraphError(
            f"a picture has room for {MAX_VERTICES} vertices and {MAX_EDGES} edges, not for {graph.n:,} and "
            f"{graph.m:,}: take a smaller graph"
        )
    if shown.each == "graph" and (column is not None or edge is not None):
        raise MethodError(f"{method} is shown on a whole graph: it takes neither a column nor an edge")
    if own is not None:
        return traced(Scene(graph, method, shown.unit, shown.points(graph), finds=False), own, knobs)
    builder = FrameBuilder(Scene(graph, method, shown.unit, shown.points(graph)))
    nonzeros = chosen_nonzeros(graph, column, edge)
    parts = {
        "nonzero": ((e,) for e in nonzeros),
        "column": ((j, list(edges)) for j, edges in groupby(nonzeros, lambda e: builder.ends[e][1])),
        "nonzeros": [(nonzeros,)],
        "graph": [()],
    }[shown.each]
    return chain.from_iterable(shown.frames(builder, *part, *shown.settings, **knobs) for part in parts)


def checked_knobs(method, names, given):
    """The knobs with these names: the `given` values and the defaults; MethodError if a value is not allowed."""
    for name, value in given.items():
        if name not in names:
            has = f"its knobs are {', '.join(names)}" if names else "it has none"
            raise MethodError(f"the stepper shows {method} without a knob {name!r}; {has}")
        _, *limits = KNOBS[name]
        if limits:
            check_integer(name, value, *limits)
        else:
            check_choice(name, value, (False, True))
        if method == "warp_search" and name == "lanes":
            check_choice("lanes", value, (1, 2, 4, 8, 16, 32))
    return {name: given.get(name, KNOBS[name][0]) for name in names}


def chosen_nonzeros(graph, column, edge):
    """The numbers of the nonzeros of a column, of an edge (i, j), or of the whole graph."""
    if column is not None and edge is not None:
        raise GraphError("a column or an edge, not both")
    if column is not None:
        column = check_integer("column", column, 0, graph.n - 1)
        return list(range(graph.col_ptr[column], graph.col_ptr[column + 1]))
    if edge is None:
        return list(range(graph.m))
    j, i = sorted(check_integer("edge", v, 0, graph.n - 1) for v in edge)
    found = np.flatnonzero((graph.row_idx == i) & (graph.col_of == j)).tolist()
    if not found:
        raise GraphError(f"vertices {i} and {j} are not joined")
    return found
