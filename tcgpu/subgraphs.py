"""Count the subgraphs of k vertices, for small k: cliques, connected subgraphs, independent sets.

Cliques and connected subgraphs are grown from each vertex through larger numbers, so that each is found once: a
clique's first vertex has all others in its column.

Independent sets are too many to be grown; up to 6 vertices, their number follows from connected subgraphs. Let i_k be
the number of independent sets of k vertices, and I(x) the sum of all i_k x^k. For a graph of several components I is
the product of theirs, so log I is the sum of theirs. Hence log I is a sum over connected induced subgraphs S of what S
adds beyond its own subgraphs, and the term x^j gets nothing from an S of more than j vertices. The subgraphs are
counted by shape, log I is summed up, and its exponential taken. Larger independent sets are cliques of the complement.
"""

from math import comb
from typing import Any

import numpy as np

from tcgpu.engines.native import MANY, fetch_add, jit, run_threads, stopped, threads
from tcgpu.errors import GraphError
from tcgpu.graph import Graph, as_graph
from tcgpu.suggest import unknown

KINDS = ("clique", "independent", "connected")
MOST_VERTICES = {"clique": 255, "independent": 32, "connected": 32}  # of a subgraph: bytes hold their marks
MOST_BY_SHAPE = 6  # vertices whose shape fits 15 bits
MOST_COMBINATIONS = 2**40  # to choose a larger independent set from: hours of work
TAKEN = 64  # vertices a worker takes at a time

I64 = np.int64


def count_subgraphs(graph: Any, k: int, kind: str = "clique") -> int:
    """Count the sets of k vertices that are a "clique", "independent" (no two are neighbours), or "connected".

    It takes about as long as there are cliques of k - 1 vertices, or connected sets of up to k, to find; connected sets
    are very many where some vertex has thousands of neighbours. Independent sets of more than 6 vertices are for small
    graphs.
    """
    graph = as_graph(graph)
    if kind not in KINDS:
        raise GraphError(unknown("kind", kind, KINDS))
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise GraphError(f"k is a whole number of at least 1, not {k!r}")
    if k > MOST_VERTICES[kind]:
        raise GraphError(f"subgraphs of kind {kind!r} are counted up to {MOST_VERTICES[kind]} vertices, not {k}")
    return {"clique": _cliques, "connected": _connected, "independent": _independent}[kind](graph, int(k))


def _workers(graph):
    return threads() if graph.m >= MANY else 1


def _cliques(graph, k):
    if k <= 2:
        return graph.m if k == 2 else graph.n
    own = graph.ordered("degree")  # which makes the longest column short
    if k > own.max_column + 1:
        return 0
    workers = _workers(own)
    marks = np.zeros((workers, own.n), np.uint8)
    lists = np.empty((workers, k, own.max_column), np.int32)
    found = np.zeros(workers, np.int64)
    queue = np.zeros(1, np.int64)
    run_threads(_grow_cliques, own.col_ptr, own.row_idx, k, queue, marks, lists, found,
                workers=workers, queue=queue)  # fmt: skip
    return int(found.sum())


def _connected(graph, k):
    return graph.n if k == 1 else int(_shapes(graph, k, False)[0])


def _independent(graph, k):
    return _independent_by_shape(graph, k) if k <= MOST_BY_SHAPE else _cliques_of_complement(graph, k)


def _independent_by_shape(graph, k):
    log = [(-1) ** (j + 1) * graph.n for j in range(1, k + 1)]  # j times the terms of log I: so they are whole
    if k > 1:
        shapes = _shapes(graph, k, True)
        for size in range(2, k + 1):
            here = shapes[_first_shape(size) : _first_shape(size + 1)]
            shape = np.flatnonzero(here)
            for j, added in enumerate(_added_to_log(size, shape, k).T.tolist()):
                log[j] += sum(a * many for a, many in zip(added, here[shape].tolist()))
    sets = [1]
    for j in range(1, k + 1):
        sets.append(sum(log[i] * sets[j - 1 - i] for i in range(j)) // j)
    return sets[k]


def _cliques_of_complement(graph, k):
    if comb(graph.n, k) > MOST_COMBINATIONS:
        raise GraphError(
            f"independent sets of more than {MOST_BY_SHAPE} vertices are found one by one: of {graph.n:,} vertices "
            f"there are {comb(graph.n, k):,} combinations of {k}, more than 2^40"
        )
    return _cliques(Graph.from_edges(*np.nonzero(np.triu(graph.to_scipy().toarray() == 0, 1)), graph.n), k)


def _first_shape(size):
    """Where the shapes of this number of vertices begin, after those of 2, 3, ... vertices."""
    return sum(1 << comb(smaller, 2) for smaller in range(2, size))


def _shapes(graph, k, shaped):
    """How many connected induced subgraphs have each shape, from 2 to k vertices; or of k vertices, whatever the shape.

    A shape says of each vertex which of those before it are its neighbours: bit j (j - 1) / 2 + i for i < j.
    """
    workers = _workers(graph)
    first = np.array([_first_shape(size) if shaped else 0 for size in range(k + 2)], np.int64)
    found = np.zeros((workers, max(first[-1], 1)), np.int64)
    seen, links = np.zeros((2, workers, graph.n), np.uint8)
    near = np.empty((workers, graph.n), np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_grow_connected, *graph.adjacency, k, shaped, first, queue, seen, links, near, found,
                workers=workers, queue=queue)  # fmt: skip
    return found.sum(axis=0)


def _added_to_log(size, shape, k):
    """J times what each shape (connected graphs of `size` vertices) adds to the x^j of log I, j = 1..k: (shapes, k)."""
    if shape.size > 2048:  # so much memory at a time
        half = shape.size // 2
        return np.concatenate([_added_to_log(size, part, k) for part in (shape[:half], shape[half:])])
    subsets = 1 << size
    independent = np.ones((shape.size, subsets), np.int64)
    for j in range(size):
        for i in range(j):
            both = np.arange(subsets) >> i & np.arange(subsets) >> j & 1
            independent &= ~((shape[:, None] >> (j * (j - 1) // 2 + i)) & both) & 1
    members = np.array([subset.bit_count() for subset in range(subsets)])
    sets = np.zeros((k + 1, shape.size, subsets), np.int64)  # of each subset of the vertices: independent sets by size
    for j in range(min(k, size) + 1):
        sets[j] = np.where(members == j, independent, 0)
        for v in range(size):
            having = np.flatnonzero(np.arange(subsets) >> v & 1)
            sets[j][:, having] += sets[j][:, having ^ (1 << v)]
    log = np.zeros_like(sets)
    for j in range(1, k + 1):
        log[j] = j * sets[j] - sum((log[i] * sets[j - i] for i in range(1, j)), np.zeros_like(sets[0]))
    sign = np.where((size - members) % 2, -1, 1)
    return (log[1:] * sign).sum(axis=2).T


@jit
def _grow_cliques(worker, workers, col_ptr, row_idx, k, queue, all_marks, all_lists, found):
    """`marks[u]`: how many vertices are chosen, if all of them are neighbours of u."""
    marks, lists = all_marks[worker], all_lists[worker]
    length, at = np.zeros(k, np.int64), np.zeros(k, np.int64)
    n = I64(marks.size)
    total = I64(0)
    while True:
        first = fetch_add(queue, 0, TAKEN)
        if first >= n:
            break
        for v in range(first, min(first + TAKEN, n)):
            length[0], at[0] = col_ptr[v + 1] - col_ptr[v], 0
            if length[0] < k - 1:
                continue
            for i in range(length[0]):
                lists[0, i] = row_idx[col_ptr[v] + i]
                marks[lists[0, i]] = 1
            depth = 0  # depth + 1 vertices are chosen, lists[depth] are their common neighbours
            while depth >= 0 and not stopped(queue):
                if at[depth] == length[depth]:
                    for i in range(length[depth]):
                        marks[lists[depth, i]] = depth
                    depth -= 1
                    continue
                w = lists[depth, at[depth]]
                at[depth] += 1
                if depth + 3 == k:
                    for q in range(col_ptr[w], col_ptr[w + 1]):
                        total += marks[row_idx[q]] == depth + 1
                    continue
                put = 0
                for q in range(col_ptr[w], col_ptr[w + 1]):
                    u = row_idx[q]
                    if marks[u] == depth + 1:
                        marks[u] = depth + 2
                        lists[depth + 1, put] = u
                        put += 1
                depth += 1
                length[depth], at[depth] = put, 0
    found[worker] = total


@jit
def _grow_connected(
    worker, workers, indptr, indices, k, shaped, first_shape, queue, all_seen, all_links, all_near, found
):
    """From each vertex through larger ones: every connected set once, at its smallest vertex.

    `near` holds the neighbours of the chosen vertices in the order in which they were reached; those before `at` are
    done at this depth. Bit i of `links[u]`: whether u is a neighbour of the i-th chosen vertex.
    """
    seen, links, near = all_seen[worker], all_links[worker], all_near[worker]
    chosen, at, end, shape = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64)
    n = I64(seen.size)
    total = I64(0)
    while True:
        first = fetch_add(queue, 0, TAKEN)
        if first >= n:
            break
        for root in range(first, min(first + TAKEN, n)):
            depth = 0  # the place of the last vertex that is chosen
            chosen[0], at[0] = root, 0
            end[0] = _reach(indptr, indices, root, root, 0, 0, shaped, seen, links, near)
            while depth >= 0 and not stopped(queue):
                if depth + 2 == k and not shaped:
                    total += end[depth] - at[depth]
                    at[depth] = end[depth]
                if at[depth] == end[depth]:
                    if shaped:
                        for q in range(indptr[chosen[depth]], indptr[chosen[depth] + 1]):
                            links[indices[q]] &= ~(1 << depth)
                    for i in range(end[depth - 1] if depth else 0, end[depth]):
                        seen[near[i]] = 0
                    depth -= 1
                    continue
                w = near[at[depth]]
                at[depth] += 1
                now = I64(0)
                if shaped:
                    now = shape[depth] | I64(links[w]) << (depth * (depth + 1) // 2)
                    found[worker, first_shape[depth + 2] + now] += 1
                if depth + 2 < k:
                    after = _reach(indptr, indices, w, root, depth + 1, end[depth], shaped, seen, links, near)
                    depth += 1
                    chosen[depth], at[depth], end[depth], shape[depth] = w, at[depth - 1], after, now
    if not shaped:
        found[worker, 0] = total


@jit
def _reach(indptr, indices, v, root, depth, end, shaped, seen, links, near):
    """V was chosen: append its neighbours above `root` to `near`, each once. Returns how many there are."""
    for q in range(indptr[v], indptr[v + 1]):
        u = indices[q]
        if u > root:
            if shaped:
                links[u] |= 1 << depth
            if not seen[u]:
                seen[u] = 1
                near[end] = u
                end += 1
    return end
