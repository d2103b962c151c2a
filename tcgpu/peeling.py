"""k-trusses on all cores of a CPU: edges are peeled off, those in the fewest triangles first."""

import numpy as np

from tcgpu import cpu
from tcgpu._native import jit

I64 = np.int64


def peel(graph, k):
    """Which edges the k-truss keeps: bool, edge by edge as in `row_idx`."""
    support = cpu.support(graph)
    if k <= 3:
        return support >= k - 2
    return numbers(graph) >= k


def numbers(graph):
    """The truss number of each edge (int32), edge by edge as in `row_idx`."""
    support = cpu.support(graph).astype(np.int32)
    indptr, indices = graph.adjacency
    edge = np.empty(indices.size, np.int64)
    found = np.empty(graph.m, np.int32)
    if graph.m:
        _number_edges(graph.col_ptr, graph.row_idx, indptr, indptr[:-1].copy(), edge)
        _peel_all(graph.col_of, graph.row_idx, indptr, indices, edge, support, found)
    return found


@jit
def _number_edges(col_ptr, row_idx, indptr, put, edge):
    for j in range(col_ptr.size - 1):
        for k in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[k]
            edge[put[i]] = k
            put[i] += 1
    for j in range(col_ptr.size - 1):
        for k in range(col_ptr[j], col_ptr[j + 1]):
            edge[put[j]] = k
            put[j] += 1


@jit
def _peel_all(ends, others, indptr, indices, edge, support, found):
    m = support.size
    order = np.argsort(support)
    place = np.empty(m, np.int64)
    start = np.zeros(support.max() + 2, np.int64)
    for at in range(m):
        place[order[at]] = at
        start[support[order[at]] + 1] += 1
    start = np.cumsum(start)
    gone = np.zeros(m, np.bool_)
    for at in range(m):
        e = order[at]
        level = support[e]
        found[e] = level + 2
        gone[e] = True
        p, q = indptr[ends[e]], indptr[others[e]]
        while p < indptr[ends[e] + 1] and q < indptr[others[e] + 1]:
            if indices[p] < indices[q]:
                p += 1
            elif indices[p] > indices[q]:
                q += 1
            else:
                if not gone[edge[p]] and not gone[edge[q]]:
                    for f in (edge[p], edge[q]):
                        if support[f] > level:
                            first = max(start[support[f]], at + 1)
                            other = order[first]
                            order[place[f]], place[other] = other, place[f]
                            order[first], place[f] = f, first
                            start[support[f]] = first + 1
                            support[f] -= 1
                p += 1
                q += 1
