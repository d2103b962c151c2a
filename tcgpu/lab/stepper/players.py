"""Which methods can be played, by whom, and with which knobs: `steps`."""

import inspect
from typing import NamedTuple

import numpy as np

from tcgpu.errors import GraphError
from tcgpu.graph import as_graph, known_order
from tcgpu.kernels import check_choice, check_knob
from tcgpu.lab.stepper import (
    adaptive_steps,
    bitmap_steps,
    level_steps,
    merge_path_steps,
    merge_steps,
    search_steps,
    vertex_positions,
)
from tcgpu.lab.stepper.frames import Recorder, Scene
from tcgpu.registry import METHODS

MOST_VERTICES, MOST_EDGES = 64, 400  # that a picture has room for
MOST_FRAMES = 4000


class Played(NamedTuple):
    """How a method is played: what makes its frames, and what they count."""

    frames: object  # a function of a Recorder, the nonzeros unless `whole`, and knobs
    unit: str
    whole: bool = False  # plays a graph and nothing less
    points: object = vertex_positions.springs
    order: str = "natural"


PLAYED = {
    "naive": Played(merge_steps.naive, "comparisons"),
    "column_block": Played(merge_steps.column_block, "comparisons"),
    "bitmap": Played(bitmap_steps.bitmap, "look-ups"),
    "bitmap_thread": Played(bitmap_steps.bitmap_thread, "look-ups"),
    "bitmap_warp": Played(bitmap_steps.bitmap_warp, "look-ups"),
    "bitmap_block_shared": Played(bitmap_steps.bitmap_block_shared, "look-ups"),
    "bitmap_block_global": Played(bitmap_steps.bitmap_block_global, "look-ups"),
    "merge_path": Played(merge_path_steps.merge_path, "comparisons"),
    "thread_search": Played(search_steps.thread_search, "look-ups"),
    "warp_search": Played(search_steps.warp_search, "look-ups"),
    "levels": Played(level_steps.levels, "combinations", True, level_steps.points),
    "adaptive": Played(adaptive_steps.adaptive, "look-ups", True, order="degree"),
}
AUTOMATIC = ("report_auto", "bitmap_auto")  # those that they choose are played
NUMBERS = {  # knob -> the least and the most that it may be
    "columns": (1, MOST_VERTICES), "threads": (1, 1024), "tile": (1, MOST_EDGES), "lanes": (1, 32), "word": (1, 64),
    "fold": (0, 6), "registers": (1, 16), "near": (0, MOST_VERTICES), "hubs": (0, MOST_VERTICES), "heavy": (0, 2**30),
    "crowd": (1, 2**30), "short": (2, 2**30), "words": (0, MOST_VERTICES),
}  # fmt: skip


def steps(graph, method="naive", *, order=None, column=None, edge=None, **knobs):
    """The frames of a method at work on a small graph, one after the other; GraphError if it cannot be played.

    order: how the vertices are numbered; without one, as they come, for "adaptive" by degree. column, edge: only the
    nonzeros of this column, or only this one, (i, j), by the numbers that the vertices have in this order. knobs: those
    of the function that plays the method (see `PLAYED`), small, so that there is something to see on a small graph: a
    warp of 4 lanes, words of 8 bits.
    """
    method, played = known(graph, method, knobs)
    graph = as_graph(graph).ordered(known_order(order or played.order))
    if graph.n > MOST_VERTICES or graph.m > MOST_EDGES:
        raise GraphError(
            f"a picture has room for {MOST_VERTICES} vertices and {MOST_EDGES} edges, not for {graph.n:,} and "
            f"{graph.m:,}: take a smaller graph"
        )
    nonzeros = chosen(graph, method, played, column, edge)
    recorder = Recorder(Scene(graph, method, played.unit, played.points(graph)))
    return played.frames(recorder, **knobs) if played.whole else played.frames(recorder, nonzeros, **knobs)


def known(graph, method, knobs):
    """The method that is played, its `Played`, and the knobs checked."""
    if method in AUTOMATIC:
        method = METHODS[method].plan(as_graph(graph)).method
    if method not in PLAYED:
        what = "runs on cores, not on a GPU" if method in METHODS else "is not a method"
        raise GraphError(f"{method!r} {what}; these can be played: {', '.join([*PLAYED, *AUTOMATIC])}")
    played = PLAYED[method]
    takes = [
        name for name, knob in inspect.signature(played.frames).parameters.items() if knob.kind == knob.KEYWORD_ONLY
    ]
    for name, value in knobs.items():
        if name not in takes:
            has = f"its knobs are {', '.join(takes)}" if takes else "it has none"
            raise GraphError(f"{method} is played without a knob {name!r}; {has}")
        if name in NUMBERS:
            check_knob(name, value, *NUMBERS[name])
        else:
            check_choice(name, value, (False, True))
    if method == "warp_search" and "lanes" in knobs:
        check_choice("lanes", knobs["lanes"], (1, 2, 4, 8, 16, 32))
    return method, played


def chosen(graph, method, played, column, edge):
    """The nonzeros to play, as their numbers."""
    if played.whole and (column is not None or edge is not None):
        raise GraphError(f"{method} is played on a whole graph: it takes neither a column nor an edge")
    if column is not None and edge is not None:
        raise GraphError("a column or an edge, not both")
    if column is not None:
        column = check_knob("column", column, 0, graph.n - 1)
        return np.arange(graph.col_ptr[column], graph.col_ptr[column + 1])
    if edge is None:
        return np.arange(graph.m)
    j, i = sorted(check_knob("edge", v, 0, graph.n - 1) for v in edge)
    found = np.flatnonzero((graph.row_idx == i) & (graph.col_of == j))
    if not found.size:
        raise GraphError(f"vertices {i} and {j} are not joined")
    return found
