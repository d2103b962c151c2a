"""The native engine: exact counts on all cores of a CPU, of a whole graph or of a part of its edges.

`finding` finds the triangles at each edge (u, v): the rows that the columns of u and v share. Its loops are compiled
for an emitter, which says what becomes of a triangle: it is added to edges or vertices (`edge_tally`), or listed
(`per_vertex`); or for none: then they count. A count picks a vertex order (`orders`), then a design (`choose`), and
runs that design (`counting`):

    design  graphs                                             how the columns are intersected
    short   no column is over 32 rows; and not "words":        16 rows are compared with one instruction
            meshes, roads
    words   most columns, or few that take most of the time,   non-zero 64-bit words of the columns are ANDed
            have rows of close numbers: overlapping cliques,
            bands, cliques with tails
    hubs    all others: above all skewed graphs in degree      if v is a hub (one of the last vertices), rows of bits
            order                                              are ANDed; else, by the lengths of the columns, rows are
                                                               compared, or looked up in a bitmap, or v's is searched;
                                                               edges between long columns are put off, sorted by v, and
                                                               looked up in bitmaps of the columns of v

`per_vertex` finds triangles per vertex, per edge and one by one. `edges` describes a part of a graph. `cleaning` sorts
raw edges, `compact` numbers ids, `draws` draws edges.

All of these are compiled by Numba. `small` serves small graphs without it, also in `count` and its neighbours here;
`wedges` estimates without it.

In compiled functions an array index is cast to uint64 (`U64`), because Numba checks signed ones for being negative.
"""

from importlib import import_module

import numpy as np

from tcgpu.built_in import planner
from tcgpu.cpu import small
from tcgpu.graph import as_graph

_HOMES = {
    "choose": "Design design edge_work hub_rows",
    "counting": "count_by",
    "edges": "Edges",
    "orders": "in_order",
    "per_vertex": "in_edge_order_of tally widened",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name):
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tcgpu.cpu.{_HOME_OF[name]}"), name)


def count(graph, part=None, workers=None):
    """The number of triangles of a Graph (int), as `counting.count` finds it."""
    if small.serves(graph, part):
        return small.count(graph, part)
    from tcgpu.cpu import counting

    return counting.count(graph, part, workers)


def finds_triangle(graph):
    """Whether a triangle is found without counting all of them: True is certain."""
    return _serving(graph, "counting").finds_triangle(graph)


def triangles(graph, order="auto"):
    """The number of triangles at each vertex (int64), in the graph's own order. order: the order to count in."""
    return _serving(graph, "per_vertex").triangles(graph, order)


def support(graph, order="auto"):
    """The number of triangles at each edge (int64), in the order of `row_idx`. order: as in `triangles`."""
    return _serving(graph, "per_vertex").support(graph, order)


def list_triangles(graph, chunk=1 << 20, order="auto"):
    """Yield every triangle once, as int32 arrays of shape (at most `chunk`, 3). A row holds vertices j < i < k."""
    return _serving(graph, "per_vertex").list_triangles(graph, chunk, order)


def _serving(graph, home):
    """The module that serves a graph: `small`, or else the compiled one."""
    return small if small.serves(graph) else import_module(f"tcgpu.cpu.{home}")


class Plan:
    """A native count with the stages of a count on a GPU (`tcgpu.kernels.Plan`). It allocates nothing."""

    method = "cpu"
    device_bytes = 0

    def __init__(self, graph):
        self.graph = graph

    def allocate(self):
        return Plan(self.graph)  # as the run

    def reset(self):
        pass

    free = reset

    def launch(self):
        self.total = count(self.graph)

    def result(self):
        return self.total

    def count(self):
        return count(self.graph)


def prepare(graph, order):
    """A Graph in the given order, made of anything that `as_graph` takes.

    With order "auto", raw edges are sorted in the order that a sample of them suggests, and again only if the costs of
    both orders then disagree.
    """
    if order != "auto":
        return as_graph(graph, order)
    raw = isinstance(graph, (tuple, np.ndarray)) or hasattr(graph, "__cuda_array_interface__")
    made = as_graph(graph, "auto" if raw else "natural")
    if small.serves(made):  # which orders by itself
        return made
    from tcgpu.cpu import orders

    return orders.in_order(made, "auto", "count")


plan = planner("cpu", prepare)(Plan)
