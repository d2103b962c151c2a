"""Trusses of small graphs in NumPy, from a list of all triangles: nothing is compiled, nor is Numba imported."""

import numpy as np

from tcgpu.arrays import bincount
from tcgpu.cpu import small


def peel(graph, k):
    """Which edges are in the k-truss: an array of bool, in the order of `row_idx`."""
    return numbers(graph) >= k


def numbers(graph):
    """The truss number of each edge (int32), in the order of `row_idx`."""
    listed = [positions for _, positions in small.with_edges(graph)]
    triangles = np.concatenate([np.empty((3, 0), np.int64), *listed], axis=1)
    support, found, k = bincount(triangles.ravel(), minlength=graph.m), np.zeros(graph.m, np.int32), 2
    while (found == 0).any():
        k = max(k, int(support[found == 0].min()) + 2)
        weak = (found == 0) & (support <= k - 2)
        found[weak] = k
        broken = weak[triangles].any(axis=0)
        support -= bincount(triangles[:, broken].ravel(), minlength=graph.m)
        triangles = triangles[:, ~broken]
    return found
