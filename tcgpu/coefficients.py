"""Clustering coefficients: of each vertex, their mean, and of the whole graph."""

from typing import Any, Unpack

import numpy as np

from tcgpu.api import Options, count, opened, triangles, verb
from tcgpu.arrays import sum_exactly
from tcgpu.errors import roomy
from tcgpu.graph import as_graph


@verb
def clustering(graph: Any, **options: Unpack[Options]) -> np.ndarray:
    """Compute each vertex's clustering coefficient: the share of pairs of its neighbours that are joined.

    Parameters
    ----------
    graph, options
        As in `tcgpu.count`, with the methods of `tcgpu.triangles`.

    Returns
    -------
    numpy.ndarray
        float64, one number a vertex; 0 where a vertex has fewer than two neighbours.
    """
    graph = as_graph(opened(graph))
    pairs = _neighbour_pairs(graph)
    return np.divide(triangles(graph, **options), pairs, out=np.zeros(graph.n), where=pairs > 0)


@verb
def average_clustering(graph: Any, **options: Unpack[Options]) -> float:
    """Compute the mean of `clustering` over all vertices; 0 for a graph without vertices.

    Parameters
    ----------
    graph, options
        As in `tcgpu.count`, with the methods of `tcgpu.triangles`.
    """
    local = clustering(graph, **options)
    return float(local.mean()) if local.size else 0.0


@roomy
def transitivity(graph: Any, **options: Any) -> float:
    """Compute three times the triangles over the paths of two edges; 0 without them. Options as in `tcgpu.count`."""
    graph = as_graph(opened(graph))
    paths = sum_exactly(_neighbour_pairs(graph))
    return 3 * count(graph, **options) / paths if paths else 0.0


def _neighbour_pairs(graph):
    """How many pairs of neighbours each vertex has."""
    degree = np.asarray(graph.degrees, np.int64)
    return degree * (degree - 1) // 2
