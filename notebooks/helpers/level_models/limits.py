"""How large a graph may be whose sets of k adjacent levels fit the multiprocessors' shared memory (section III)."""

import numpy as np

from helpers.level_models.arrangement import max_vertices
from tcgpu import Graph, arrays


def worst_case(k, *, shared_bits, machines, layout="s-utm"):
    """The smallest graph with as many sets of k adjacent levels as there are `machines`, the first of which is full.

    The first k levels have as many vertices as fit, each further level has a single one. All pairs that may be joined
    are.
    """
    full = max_vertices(shared_bits, layout)
    sizes = [1, *[(full - 1) // (k - 1)] * (k - 1), *[1] * (machines - 1)]
    sizes[1] += full - sum(sizes[:k])
    level = arrays.repeat(np.arange(len(sizes)), sizes)
    i, j = np.triu_indices(level.size, 1)
    near = level[j] - level[i] < 2
    return Graph.from_edges(i[near], j[near], level.size)
