"""Which methods the stepper shows, with which knobs: `steps` yields the frames of one."""

import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tcgpu.declarations import check_choice, check_integer
from tcgpu.errors import GraphError, MethodError
from tcgpu.graph import as_graph, known_order
from tcgpu.lab.stepper import adaptive_steps, bitmap_steps, level_steps, merge_path_steps, merge_steps, search_steps
from tcgpu.lab.stepper.frames import Frame, FrameBuilder, Scene
from tcgpu.lab.stepper.vertex_positions import spring_points
from tcgpu.registry import METHODS

MAX_VERTICES, MAX_EDGES = 64, 400  # that a picture has room for


class Shown(NamedTuple):
    """How a method is shown."""

    frames: Callable  # generator of frames: takes a FrameBuilder, the nonzeros unless `whole`, and knobs
    unit: str  # what its look-ups are called
    whole: bool = False  # only on a whole graph, not on a column or an edge of it
    points: Callable = spring_points  # graph -> a point per vertex
    order: str = "natural"


SHOWN = {
    "naive": Shown(merge_steps.naive, "comparisons"),
    "column_block": Shown(merge_steps.column_block, "comparisons"),
    "bitmap": Shown(bitmap_steps.bitmap, "look-ups"),
    "bitmap_thread": Shown(bitmap_steps.bitmap_thread, "look-ups"),
    "bitmap_warp": Shown(bitmap_steps.bitmap_warp, "look-ups"),
    "bitmap_block_shared": Shown(bitmap_steps.bitmap_block_shared, "look-ups"),
    "bitmap_block_global": Shown(bitmap_steps.bitmap_block_global, "look-ups"),
    "merge_path": Shown(merge_path_steps.merge_path, "comparisons"),
    "thread_search": Shown(search_steps.thread_search, "look-ups"),
    "warp_search": Shown(search_steps.warp_search, "look-ups"),
    "levels": Shown(level_steps.levels, "combinations", True, level_steps.level_points),
    "adaptive": Shown(adaptive_steps.adaptive, "look-ups", True, order="degree"),
}
AUTOMATIC = ("report_auto", "bitmap_auto")  # shown as the method that they choose
RANGES = {  # knob -> its least and largest value; knobs that are not here are True or False
    "columns": (1, MAX_VERTICES), "threads": (1, 1024), "tile": (1, MAX_EDGES), "lanes": (1, 32), "word": (1, 64),
    "fold": (0, 6), "registers": (1, 16), "near": (0, MAX_VERTICES), "hubs": (0, MAX_VERTICES), "heavy": (0, 2**30),
    "crowd": (1, 2**30), "short": (2, 2**30), "words": (0, MAX_VERTICES),
}  # fmt: skip


def steps(graph, method="naive", *, order=None, column=None, edge=None, **knobs) -> Iterator[Frame]:
    """The frames of a method that counts the triangles of a small graph; see `step` for the parameters."""
    if method in AUTOMATIC:
        method = METHODS[method].plan(as_graph(graph)).method
    if method not in SHOWN:
        what = "runs on cores, not on a GPU" if method in METHODS else "is not a method"
        raise MethodError(f"{method!r} {what}; the stepper shows {', '.join([*SHOWN, *AUTOMATIC])}")
    shown = SHOWN[method]
    check_knobs(method, shown.frames, knobs)
    graph = as_graph(graph).ordered(known_order(order or shown.order))
    if graph.n > MAX_VERTICES or graph.m > MAX_EDGES:
        raise GraphError(
            f"a picture has room for {MAX_VERTICES} vertices and {MAX_EDGES} edges, not for {graph.n:,} and "
            f"{graph.m:,}: take a smaller graph"
        )
    if shown.whole and (column is not None or edge is not None):
        raise MethodError(f"{method} is shown on a whole graph: it takes neither a column nor an edge")
    nonzeros = () if shown.whole else (chosen_nonzeros(graph, column, edge),)
    builder = FrameBuilder(Scene(graph, method, shown.unit, shown.points(graph)))
    return shown.frames(builder, *nonzeros, **knobs)


def check_knobs(method, frames, knobs):
    """MethodError unless `frames` takes these knobs with these values."""
    parameters = inspect.signature(frames).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]
    for name, value in knobs.items():
        if name not in known:
            has = f"its knobs are {', '.join(known)}" if known else "it has none"
            raise MethodError(f"the stepper shows {method} without a knob {name!r}; {has}")
        if name in RANGES:
            check_integer(name, value, *RANGES[name])
        else:
            check_choice(name, value, (False, True))
        if method == "warp_search" and name == "lanes":
            check_choice("lanes", value, (1, 2, 4, 8, 16, 32))


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
