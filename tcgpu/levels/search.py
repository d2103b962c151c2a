"""Breadth first on one core: connected components, and which vertices a root reaches, level by level.

Anything with the two methods of a `Search` may stand in for it in `split`: a search on a GPU does.
"""

import numpy as np

from tcgpu.engines.native import jit


class Search:
    """What Algorithm 1 asks of a graph; none of it depends on the order in which a level's vertices are found."""

    def __init__(self, graph):
        self.adjacency = graph.adjacency
        self.seen = np.zeros(graph.n, np.uint8)
        self.queue = np.empty(graph.n, np.int32)
        self.level_ptr = np.empty(graph.n + 1, np.int64)

    def forest(self):
        """`(component, level)` of every vertex (int32): a tree from the first vertex of each component.

        Components are numbered 0, 1, ... by their first vertices.
        """
        component, level = np.full((2, self.seen.size), -1, np.int32)
        _forest(*self.adjacency, self.queue, component, level)
        return component, level

    def __call__(self, root):
        """`(vertices, level_ptr)`: whom `root` reaches (int32), in any order inside a level, and where levels begin.

        Level l is `vertices[level_ptr[l]:level_ptr[l + 1]]`, level 0 the root. It costs what it reaches, not n.
        """
        levels = _search(*self.adjacency, root, self.seen, self.queue, self.level_ptr)
        level_ptr = self.level_ptr[: levels + 1].copy()
        return self.queue[: level_ptr[-1]].copy(), level_ptr


@jit
def _search(indptr, indices, root, seen, queue, level_ptr):
    """Fill the queue and where its levels begin; returns how many there are. `seen` comes and leaves as zeros."""
    queue[0] = root
    seen[root] = 1
    levels, begin, end = 0, 0, 1
    while begin < end:
        level_ptr[levels] = begin
        levels += 1
        put = end
        for at in range(begin, end):
            for k in range(indptr[queue[at]], indptr[queue[at] + 1]):
                w = indices[k]
                if not seen[w]:
                    seen[w] = 1
                    queue[put] = w
                    put += 1
        begin, end = end, put
    level_ptr[levels] = end
    for at in range(end):
        seen[queue[at]] = 0
    return levels


@jit
def _forest(indptr, indices, queue, component, level):
    found = 0
    for root in range(component.size):
        if component[root] >= 0:
            continue
        queue[0] = root
        component[root] = found
        level[root] = 0
        done, seen = 0, 1
        while done < seen:
            v = queue[done]
            done += 1
            for k in range(indptr[v], indptr[v + 1]):
                w = indices[k]
                if component[w] < 0:
                    component[w] = found
                    level[w] = level[v] + 1
                    queue[seen] = w
                    seen += 1
        found += 1
