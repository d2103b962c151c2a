"""How many subgraphs of k vertices, for small k: cliques, connected ones, independent sets.

Two ways, which check each other:

    combinations  the paper's: every combination of k vertices of every chunk is tested
    growth        only what may still become one is put together, from each vertex on; the same levels, no matrix

With vertices numbered by level, a clique's first vertex sees all others in its column: in its own level and the next. A
connected subgraph grows from its first vertex through larger numbers only: it never leaves the k levels from there.

Independent vertices lie anywhere, in any levels. Yet their number follows from connected subgraphs: let i_k count the
independent sets of k vertices, and I(x) be the sum of all i_k x^k. For a graph of several parts I is the product of
theirs and log I the sum. So log I is a sum over connected induced subgraphs S of what S adds beyond its own
subgraphs, and a term x^j takes no S of more than j vertices. Those all lie in k consecutive levels; they are counted by
shape, log I is summed up, and its exponential taken.
"""

from math import comb

import numpy as np

from tcgpu.engines.native import MANY, fetch_add, jit, run_threads, stopped, threads
from tcgpu.errors import GraphError
from tcgpu.graph import as_graph
from tcgpu.levels.combinations import numbered, successor, unrank_into
from tcgpu.levels.search import Search
from tcgpu.levels.sets import in_levels, split
from tcgpu.levels.storage import LAYOUTS, bits_needed, empty_words, fill, row_of, words_needed
from tcgpu.suggest import unknown

KINDS = ("clique", "independent", "connected")
WAYS = ("growth", "combinations")
MOST_GROWN = {"clique": 255, "independent": 6, "connected": 32}  # vertices: bytes mark them, 15 bits hold a shape
MOST_TESTED = 32
MOST_TESTS = 2**40  # combinations: hours on one core
TAKEN = 64  # vertices a worker takes at a time
CLIQUE, INDEPENDENT = KINDS.index("clique"), KINDS.index("independent")
S_UTM = LAYOUTS.index("s-utm")

I64 = np.int64
U32 = np.uint32


def count_subgraphs(graph, k, kind="clique", *, by="growth"):
    """How many sets of k vertices are a clique, "independent" (no two are neighbours), or "connected": a Python int.

    by: "growth" takes about as long as there are cliques of k - 1, or connected sets of up to k, to find; connected
    sets become very many where some vertex has thousands of neighbours. "combinations" tests every one that the levels
    allow, and for independent sets, which levels do not confine, every one there is.
    """
    graph = as_graph(graph)
    if kind not in KINDS:
        raise GraphError(unknown("kind", kind, KINDS))
    if by not in WAYS:
        raise GraphError(f"subgraphs are counted by {' or '.join(WAYS)}, not {by!r}")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise GraphError(f"k is a whole number of at least 1, not {k!r}")
    most = MOST_TESTED if by == "combinations" else MOST_GROWN[kind]
    if k > most:
        raise GraphError(f"by {by}, subgraphs of kind {kind!r} are counted up to {most} vertices, not {k}")
    if by == "combinations":
        return _tested(graph, int(k), kind)
    return {"clique": _cliques, "connected": _connected, "independent": _independent}[kind](graph, int(k))


def is_triangle_free(graph):
    """Whether no three vertices are neighbours of each other.

    Of three vertices in two adjacent levels, two share a level. So only edges inside a level are looked at, for a
    common neighbour of their ends, and none is left to look at in a bipartite graph.
    """
    graph = as_graph(graph)
    _, level = Search(graph).forest()
    workers = threads() if graph.m >= MANY else 1
    found, queue = np.zeros(1, np.int64), np.zeros(1, np.int64)
    run_threads(_any_triangle, *graph.adjacency, level, queue, np.zeros((workers, graph.n), np.uint8), found,
                workers=workers, queue=queue)  # fmt: skip
    return not found.any()


# ---------------------------------------------------------------------------------------------------------- by growth


def _by_level(graph):
    """The same graph with its vertices numbered level by level."""
    component, level = Search(graph).forest()
    order, *_ = in_levels(component, level, int(component.max(initial=-1)) + 1)
    place = np.empty(graph.n, np.int32)
    place[order] = np.arange(graph.n, dtype=np.int32)
    return graph.reordered(place)


def _cliques(graph, k):
    if k <= 2:
        return graph.m if k == 2 else graph.n
    own = _by_level(graph)
    if k > own.max_column + 1:
        return 0
    workers = threads() if own.m >= MANY else 1
    marks = np.zeros((workers, own.n), np.uint8)
    lists = np.empty((workers, k, own.max_column), np.int32)
    found = np.zeros(workers, np.int64)
    queue = np.zeros(1, np.int64)
    run_threads(_grow_cliques, own.col_ptr, own.row_idx, k, queue, marks, lists, found,
                workers=workers, queue=queue)  # fmt: skip
    return int(found.sum())


def _connected(graph, k):
    if k == 1:
        return graph.n
    return int(_shapes(graph, k, False)[0])


def _independent(graph, k):
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


def _first_shape(size):
    """Where the shapes of so many vertices begin: before them are those of 2, 3, ... vertices."""
    return sum(1 << comb(smaller, 2) for smaller in range(2, size))


def _shapes(graph, k, shaped):
    """How many connected induced subgraphs have each shape, from 2 to k vertices; or of k vertices, whatever the shape.

    A shape says of each vertex which of those before it are its neighbours: bit j (j - 1) / 2 + i for i < j.
    """
    own = _by_level(graph)
    workers = threads() if own.m >= MANY else 1
    first = np.array([_first_shape(size) if shaped else 0 for size in range(k + 2)], np.int64)
    found = np.zeros((workers, max(first[-1], 1)), np.int64)
    seen, links = np.zeros((2, workers, own.n), np.uint8)
    near = np.empty((workers, own.n), np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_grow_connected, *own.adjacency, k, shaped, first, queue, seen, links, near, found,
                workers=workers, queue=queue)  # fmt: skip
    return found.sum(axis=0)


def _added_to_log(size, shape, k):
    """j times what each shape (connected graphs of `size` vertices) adds to the x^j of log I, j = 1..k: (shapes, k)."""
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
    """`marks[u]` is how many of the vertices chosen so far see u, if all of them do."""
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
            depth = 0  # depth + 1 vertices are chosen, lists[depth] are those that all of them see
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

    `near` holds the neighbours of the vertices chosen so far, in the order in which they came in sight; those before
    `at` have had their turn at this depth. `links[u]` says which of the chosen vertices u is a neighbour of.
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
            end[0] = _look_around(indptr, indices, root, root, 0, 0, shaped, seen, links, near)
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
                    after = _look_around(indptr, indices, w, root, depth + 1, end[depth], shaped, seen, links, near)
                    depth += 1
                    chosen[depth], at[depth], end[depth], shape[depth] = w, at[depth - 1], after, now
    if not shaped:
        found[worker, 0] = total


@jit
def _look_around(indptr, indices, v, root, depth, end, shaped, seen, links, near):
    """v was chosen: its neighbours past root that were out of sight come into it. Returns how many are in sight."""
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


@jit
def _any_triangle(worker, workers, indptr, indices, level, queue, all_marks, found):
    marks = all_marks[worker]
    n = I64(marks.size)
    while not found[0]:
        first = fetch_add(queue, 0, TAKEN)
        if first >= n:
            break
        for u in range(first, min(first + TAKEN, n)):
            length = indptr[u + 1] - indptr[u]
            marked = False
            for k in range(indptr[u], indptr[u + 1]):
                v = indices[k]
                if level[v] != level[u] or (indptr[v + 1] - indptr[v], v) > (length, u):
                    continue  # the end with more neighbours marks them, the other looks its own up
                if not marked:
                    marked = True
                    for q in range(indptr[u], indptr[u + 1]):
                        marks[indices[q]] = 1
                for q in range(indptr[v], indptr[v + 1]):
                    if marks[indices[q]]:
                        found[0] = 1
                        return
            if marked:
                for q in range(indptr[u], indptr[u + 1]):
                    marks[indices[q]] = 0


# ---------------------------------------------------------------------------------------------------- by combinations


def _tested(graph, k, kind):
    """Every combination of every chunk; independent sets have the whole graph for a chunk."""
    if kind == "independent":
        sizes, firsts, starts = [graph.n], [graph.n], [0]
        order = place = np.arange(graph.n, dtype=np.int32)
    else:
        chunks = split(graph, k, levels=max(2, k if kind == "connected" else 2), shared_bits=0, machines=1, roots=2)
        sizes, firsts, starts = chunks.size.tolist(), chunks.first.tolist(), chunks.start.tolist()
        order, place = chunks.order, chunks.place
    tests = [numbered(n, k) - comb(n - first, k) for n, first in zip(sizes, firsts)]
    if sum(tests) > MOST_TESTS:
        raise GraphError(f"{sum(tests):,} combinations would have to be tested: take by='growth'")
    words = empty_words(bits_needed(max(sizes, default=0), "s-utm"))
    total = 0
    for n, start, many in zip(sizes, starts, tests):
        words[: words_needed(bits_needed(n, "s-utm"))] = 0
        fill(words, graph, order, place, [start], [n], [0], "s-utm")
        total += _count_tested(words, n, k, KINDS.index(kind), many)
    return int(total)


@jit
def _count_tested(words, n, k, kind, tests):
    """How many of the first combinations of k out of n are of a kind."""
    found = I64(0)
    if tests == 0:
        return found
    combination, near = np.empty(k, np.int64), np.empty(k, np.int64)
    unrank_into(0, n, k, combination)
    for _ in range(tests):
        near[:] = 0
        edges = 0
        for i in range(k):
            row = row_of(combination[i], I64(n), S_UTM)
            for j in range(i + 1, k):
                bit = row + combination[j]
                if words[bit >> 5] >> U32(bit & 31) & U32(1):
                    near[i] |= 1 << j
                    near[j] |= 1 << i
                    edges += 1
        if kind == CLIQUE:
            found += edges == k * (k - 1) // 2
        elif kind == INDEPENDENT:
            found += edges == 0
        else:
            found += _hangs_together(near)
        successor(combination, n, k)
    return found


@jit
def _hangs_together(near):
    """Whether every vertex is reached from the first."""
    reached = before = 1
    while True:
        for i in range(near.size):
            if reached >> i & 1:
                reached |= near[i]
        if reached == before:
            return reached == (1 << near.size) - 1
        before = reached
