"""What follows from triangles and degrees: clustering, similarity; and with directions or weights (`directions`)."""

from typing import Any, Literal, Unpack

import numpy as np

from tcgpu.api import Options, check_only, count, opened, support, triangles, verb, whole
from tcgpu.arrays import sum_exactly
from tcgpu.cpu.neighbours import checked_vertices, common_neighbours, neighbour_pairs, shares
from tcgpu.declarations import CUDA
from tcgpu.errors import GraphError, roomy
from tcgpu.graph import checked_edges, two_columns
from tcgpu.suggest import check_known

KINDS = "jaccard", "overlap", "common"


@verb
def clustering(
    graph: Any, nodes: Any = None, *, weights: Any = None, directed: bool = False, **options: Unpack[Options]
) -> np.ndarray:
    """Compute each vertex's clustering coefficient: the share of pairs of its neighbours that are joined.

    Parameters
    ----------
    graph, options
        As in `tcgpu.count`, with the methods of `tcgpu.triangles`; with weights or directions as in
        `tcgpu.reduce_triangles`.
    nodes
        Numbers of vertices, as in `tcgpu.triangles`.
    weights
        A number for each edge, in the order of `graph.edges()` or of the arrays `(u, v)`, which have each edge once; or
        the name of an attribute of a NetworkX graph. A triangle counts as the geometric mean of its edges' weights,
        over the largest weight of the graph.
    directed
        Whether edges lead from u to v. The graph is edge arrays, pairs or a NetworkX DiGraph then; a Graph has no
        directions. By Fagiolo's formula, as in NetworkX.

    Returns
    -------
    numpy.ndarray
        float64, one number a vertex, or for each of `nodes`; 0 where a vertex has fewer than two neighbours.
    """
    if weights is None and not directed:
        graph = whole(graph, options["engine"], options["method"])
        pairs = neighbour_pairs(graph)
        chosen = pairs if nodes is None else pairs[checked_vertices(graph, nodes)]
        return shares(triangles(graph, nodes, **options), chosen)
    from tcgpu.directions import described, local_clustering

    check_only("clustering with weights or directions", {"cpu"}, (*CUDA, "cpu"), options)
    graph, directions, roots = described(opened(graph), directed, weights)
    local = local_clustering(graph, directions, roots, **options)
    return local if nodes is None else local[checked_vertices(graph, nodes)]


@verb
def average_clustering(
    graph: Any, nodes: Any = None, *, weights: Any = None, directed: bool = False, **options: Unpack[Options]
) -> float:
    """Compute the mean of `clustering`, whose parameters it has; 0 for a graph without vertices."""
    local = clustering(graph, nodes, weights=weights, directed=directed, **options)
    return float(local.mean()) if local.size else 0.0


@roomy
def transitivity(graph: Any, **options: Any) -> float:
    """Compute three times the triangles over the paths of two edges; 0 without them. Options as in `tcgpu.count`."""
    graph = whole(graph, options.get("engine"), options.get("method"))
    paths = sum_exactly(neighbour_pairs(graph))
    return 3 * count(graph, **options) / paths if paths else 0.0


@verb
def similarity(
    graph: Any, kind: Literal["jaccard", "overlap", "common"] = "jaccard", pairs: Any = None, **options: Unpack[Options]
) -> np.ndarray:
    """Compare the neighbours of two vertices, for each edge or for given pairs.

    Parameters
    ----------
    graph, options
        As in `tcgpu.support`; with `pairs`, the method and the engine are "cpu", and there is no executor.
    kind
        "common": the number of common neighbours; "jaccard": over that of the vertices that are a neighbour of either;
        "overlap": over the smaller number of neighbours.
    pairs
        Two arrays of vertex numbers `(a, b)`, or a list or array of pairs; without them, the edges.

    Returns
    -------
    numpy.ndarray
        A number for each of `graph.edges()`, or of the pairs: int64 for "common", else float64, 0 where both have no
        neighbours.
    """
    check_known("kind", kind, KINDS, GraphError)
    graph = whole(graph, options["engine"] if pairs is None else "cpu", options["method"])
    if pairs is None:
        (a, b), common = graph.edges(), support(graph, **options)
    else:
        check_only("similarity of pairs", {"cpu"}, {"cpu"}, options)
        a, b = pairs if isinstance(pairs, tuple) else two_columns(pairs)
        a, b, _ = checked_edges(a, b, graph.n)
        common = common_neighbours(graph, a, b)
    if kind == "common":
        return common
    first, second = graph.degrees[a].astype(np.int64), graph.degrees[b].astype(np.int64)
    return shares(common, np.minimum(first, second) if kind == "overlap" else first + second - common)


@roomy
def triad_census(graph: Any, nodes: Any = None) -> dict[str, int]:
    """Count the triads of each of the 16 types: sets of three vertices, by the directions of the edges between them.

    Parameters
    ----------
    graph
        Edge arrays `(u, v)`, pairs, or a NetworkX DiGraph: each edge leads from u to v.
    nodes
        Numbers of vertices: only triads that have some of these.

    Returns
    -------
    dict
        "003" to "300", as in NetworkX: how many pairs are joined in both directions, in one, and not; then "D", "U",
        "C" or "T" by where these lead.
    """
    from tcgpu.directions import census, described

    graph, directions, _ = described(opened(graph), True)
    return census(graph, directions, None if nodes is None else checked_vertices(graph, nodes))
