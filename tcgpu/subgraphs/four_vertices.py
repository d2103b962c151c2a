"""Motifs: the induced subgraphs of four vertices, of a whole graph, at each vertex, and at each edge.

Only cycles and cliques of four vertices are enumerated. Of every other kind, all occurrences are counted first, from
degrees and from the triangles at each edge: any three neighbours of a vertex are a star, even if they have edges among
them. Then those inside denser subgraphs are subtracted: a clique has four stars, a diamond two, a paw one.

At an edge and at a vertex the same is done for each orbit: the places in a subgraph that are alike. The orbits, and the
order of the keys, are those of ORCA (Hocevar and Demsar, 2014 and 2016), which numbers them from 0::

    vertices   0 edge                   5 path middle      10 paw base
               1 path of 3 end          6 star leaf        11 paw centre
               2 path of 3 middle       7 star centre      12 diamond tip
               3 triangle               8 cycle            13 diamond middle
               4 path end               9 paw tail         14 clique

    edges      0 path of 3              4 star              8 paw side
               1 triangle               5 cycle             9 diamond rim
               2 path end               6 paw tail         10 diamond middle
               3 path middle            7 paw base         11 clique

A paw is a triangle with a tail at its centre: its base is the edge opposite to the centre, its sides are the two other
edges of the triangle. A diamond is two triangles with a common edge, the middle; the two other vertices are its tips.
"""

from math import comb
from typing import Any, Literal

import numpy as np

from tcgpu import cpu
from tcgpu.api import Progress, documented, whole
from tcgpu.arrays import blocks
from tcgpu.cpu.neighbours import edge_blocks, sum_at_ends, sum_over_neighbours
from tcgpu.declarations import CUDA
from tcgpu.engines.choice import Engine
from tcgpu.errors import GraphError, roomy
from tcgpu.kernels.device_graph import engine_for
from tcgpu.progress import underway
from tcgpu.registry import check_engine, on_engine
from tcgpu.subgraphs import on_device as device_motifs
from tcgpu.subgraphs.four_at_edges import check_time, cliques_at, cycles_at, steps_of_cycles
from tcgpu.subgraphs.of_k_vertices import PATH_OF_3, TRIANGLE, by_formula
from tcgpu.suggest import check_known

CONNECTED = "path", "star", "cycle", "paw", "diamond", "clique"
VERTEX_ORBITS = ("edge", "path of 3 end", "path of 3 middle", "triangle", "path end", "path middle", "star leaf",
                 "star centre", "cycle", "paw tail", "paw base", "paw centre", "diamond tip", "diamond middle",
                 "clique")  # fmt: skip
EDGE_ORBITS = ("path of 3", "triangle", "path end", "path middle", "star", "cycle", "paw tail", "paw base", "paw side",
               "diamond rim", "diamond middle", "clique")  # fmt: skip
PLACES = "graph", "vertex", "edge"
MOST_TREES = 2**61  # paths and stars at a vertex: a sum over its edges is at most three times as large


@documented
@roomy
def motifs(
    graph: Any,
    per: Literal["graph", "vertex", "edge"] = "graph",
    *,
    connected: bool = True,
    engine: Engine | None = None,
    progress: Progress = None,
    max_seconds: float | None = None,
) -> dict[str, Any]:
    """Count the induced subgraphs of four vertices, exactly.

    Parameters
    ----------
    graph, engine, progress, max_seconds
        As in `tcgpu.count`. Without an engine, a GPU counts those of a whole graph with half a million
        edges or more, and the CPU all others.
    per
        "graph"; or "vertex" or "edge", which count each orbit of subgraphs of two to four vertices.
    connected
        False also counts the subgraphs of a whole graph that are not connected.

    Returns
    -------
    dict
        Per graph, Python ints, of any size: "path", "star" (a vertex with three neighbours), "cycle", "paw" (a triangle
        with a tail), "diamond" (a clique less an edge) and "clique"; with `connected=False` before them "empty",
        "edge", "two edges", "path of 3" and "triangle", which leave the other vertices alone. Per vertex or edge, an
        int64 array for each orbit in ORCA's order, which `tcgpu.subgraphs.four_vertices` lists; edges go in the order
        of `graph.edges()`.

    Raises
    ------
    GraphError
        Per vertex, if numbers may not fit 64 bits, which takes a vertex with millions of neighbours.
    """
    check_known("value of per", per, PLACES, GraphError)
    check_engine("motifs", engine, (*CUDA, "cpu"))
    graph = whole(graph, engine if per == "graph" else engine or "cpu")
    if not connected and per != "graph":
        raise GraphError(f"subgraphs that are not connected have no orbits: leave connected= or per={per!r} out")
    title = f"counting motifs of {graph.m:,} edges"
    engine = engine_for(graph, engine) if per == "graph" else engine or "cpu"
    with on_engine(device_motifs.METHOD, engine, max_seconds), underway(progress, title):
        if per == "graph":
            return _of_graph(graph, connected, device_motifs.for_motifs(graph) if engine in CUDA else None)
        return _orbits(graph, per == "edge", engine in CUDA)


def _orbits(graph, by_edge, on_device):
    ordered = graph.ordered("degree")
    if not by_edge:
        _check_trees(ordered)
    if on_device:
        support, *counted = device_motifs.for_orbits(ordered)
    else:
        support = cpu.support(ordered, "natural")
        steps = int(ordered.column_lengths[ordered.row_idx].sum()) + 4 * int(support.sum())
        check_time("counting orbits", ordered, lambda ordered: 3 * steps_of_cycles(ordered, ordered.n) + steps)
        counted = [*cliques_at(ordered, support), cycles_at(ordered)]
    if not by_edge:
        found = _at_vertices(ordered, support, counted)
        return found if ordered is graph else {name: found.pop(name)[ordered.rank] for name in VERTEX_ORBITS}
    counted.insert(0, support)
    del support  # so that one array after the other is freed
    return _at_edges(graph, [cpu.in_edge_order_of(graph, ordered, counted.pop(0)) for _ in range(5)])


def _of_graph(graph, connected, enumerated=None):
    found = by_formula(graph, 4, enumerated)
    joined = path, star, cycle, paw, diamond, clique = tuple(found[4].values())
    if connected:
        return dict(zip(CONNECTED, joined, strict=True))
    n, m, paths, triangles = graph.n, graph.m, found[3][PATH_OF_3], found[3][TRIANGLE]
    triangle = triangles * (n - 3) - paw - 2 * diamond - 4 * clique
    path_of_3 = paths * (n - 3) - 2 * path - 3 * star - 4 * cycle - 2 * paw - 2 * diamond
    # any two edges without a common vertex, of which there are paths and three times the triangles less
    two_edges = comb(m, 2) - paths - 3 * triangles - path - 2 * cycle - paw - 2 * diamond - 3 * clique
    edge = m * comb(n - 2, 2) if m else 0
    edge -= 2 * two_edges + 2 * path_of_3 + 3 * (triangle + path + star) + 4 * (cycle + paw) + 5 * diamond + 6 * clique
    empty = comb(n, 4) - edge - two_edges - path_of_3 - triangle - sum(joined)
    names = "empty", "edge", "two edges", "path of 3", "triangle", *CONNECTED
    return dict(zip(names, (empty, edge, two_edges, path_of_3, triangle, *joined), strict=True))


def _at_edges(graph, counted):
    """The orbits of the edges, from the triangles at each and what `_orbits_of` takes last.

    They are computed in blocks, and written over the numbers that they are computed from: that takes less memory.
    """
    arrays = [*counted, *(np.empty(graph.m, np.int64) for _ in EDGE_ORBITS[len(counted) :])]
    found = dict(zip(EDGE_ORBITS, arrays, strict=True))
    for block, _, _, terms in _terms(graph, counted[0]):
        for name, values in _orbits_of(*terms, *(each[block].copy() for each in counted[1:])).items():
            found[name][block] = values
    return found


def _at_vertices(graph, support, counted):
    """The orbits of the vertices, from the triangles at each edge and the other numbers of `_at_edges`, summed up.

    As there, orbits are written over the numbers that they are computed from.
    """
    arrays = [np.zeros(graph.n, np.int64) for _ in VERTEX_ORBITS]
    sums = arrays[: len(EDGE_ORBITS)]
    for block, rows, columns, terms in _terms(graph, support):
        for total, values in zip(sums, (*terms, *(each[block] for each in counted)), strict=True):
            np.add.at(total, rows, values)
            np.add.at(total, columns, values)
    found = dict(zip(VERTEX_ORBITS, arrays, strict=True))
    for block in blocks(graph.n):
        at = _orbits_of(*(each[block].copy() for each in sums))
        for name, values in _vertex_orbits_of(graph.degrees[block], at).items():
            found[name][block] = values
    return found


def _terms(graph, support):
    """Yield blocks of edges: a slice, the rows, the columns, and of each edge what `_orbits_of` takes first."""
    beyond = sum_over_neighbours(graph, graph.degrees - 1)  # of each vertex: the paths of two edges that it ends
    triangles = sum_at_ends(graph, support, support) // 2
    for block, i, j in edge_blocks(graph):
        s, a, b = support[block].copy(), graph.degrees[i] - 1, graph.degrees[j] - 1  # the other edges at both ends
        pairs, stars = s * (s - 1) // 2, (a * (a - 1) + b * (b - 1)) // 2
        of_ends = triangles[i] + triangles[j], a + b, a * b, stars, beyond[i] + beyond[j]
        yield block, i, j, (s, pairs, s * (a + b - 2), *of_ends)


def _orbits_of(triangle, pairs, sides, tails, others, middles, stars, ends, clique, beside, beyond, cycles):
    """The orbits of edges, or of each vertex the sums over its edges, from numbers of edges or from such sums.

    The first eight are those of `_terms`, then those that `cliques_at` and `cycles_at` find.
    """
    diamond_middle = pairs - clique
    diamond_rim = beside - 4 * clique
    paw_side = sides - 4 * diamond_middle - diamond_rim - 4 * clique
    paw_base = beyond - diamond_rim - 2 * clique
    paw_tail = tails - 2 * triangle - diamond_rim - 2 * clique
    cycle = cycles - diamond_rim - 2 * clique
    star = stars - paw_tail - paw_side - 2 * diamond_middle - diamond_rim - 2 * clique
    path_middle = middles - triangle - cycle - paw_side - 2 * diamond_middle - diamond_rim - 2 * clique
    path_end = ends - others - 2 * triangle
    path_end -= 2 * (cycle + paw_tail + paw_base) + 3 * diamond_rim + 4 * clique
    orbits = (others - 2 * triangle, triangle, path_end, path_middle, star, cycle, paw_tail, paw_base, paw_side,
              diamond_rim, diamond_middle, clique)  # fmt: skip
    return dict(zip(EDGE_ORBITS, orbits, strict=True))


def _vertex_orbits_of(degree, at):
    """The orbits of vertices, from those of their edges: a star has three edges at its centre, one at a leaf."""
    triangle, clique = at["triangle"] // 2, at["clique"] // 3
    diamond_middle = at["diamond middle"]
    paw_base = at["paw base"]
    paw_centre = (at["paw side"] - paw_base) // 2
    stars = degree.astype(np.uint64)
    stars = stars * (stars - 1) * (stars - 2) // 6  # less than MOST_TREES, so that six times as many fit uint64
    star_centre = stars.astype(np.int64) - paw_centre - diamond_middle - clique
    path_of_3_middle = degree * (degree - 1) // 2 - triangle
    return {
        "edge": degree,
        "path of 3 end": at["path of 3"] - 2 * path_of_3_middle,
        "path of 3 middle": path_of_3_middle,
        "triangle": triangle,
        "path end": at["path end"] - at["path middle"],
        "path middle": at["path middle"],
        "star leaf": at["star"] - 3 * star_centre,
        "star centre": star_centre,
        "cycle": at["cycle"] // 2,
        "paw tail": at["paw tail"] - paw_centre,
        "paw base": paw_base,
        "paw centre": paw_centre,
        "diamond tip": at["diamond rim"] // 2 - diamond_middle,
        "diamond middle": diamond_middle,
        "clique": clique,
    }


def _check_trees(graph):
    """GraphError if more trees of four vertices hang at a vertex than sums of orbits can hold.

    Each connected subgraph of four vertices contains a path or a star of four.
    """
    degree = graph.degrees.astype(float)
    beyond, stars = (sum_over_neighbours(graph, each) for each in (degree - 1, (degree - 1) ** 2 / 2))
    trees = (degree - 1) * beyond + sum_over_neighbours(graph, beyond) + degree**3 / 6 + stars
    if trees.size and trees.max() >= MOST_TREES:
        raise GraphError(
            f"up to {trees.max():.2g} subgraphs of four vertices have a vertex in common, which may be too many for "
            'int64; the numbers of per="graph" and per="edge" are exact for every graph'
        )
