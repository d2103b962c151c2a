"""Count the subgraphs of k vertices, for small k: cliques, connected subgraphs, independent sets.

Cliques are grown from each vertex by vertices of larger numbers, so that each is found once: its first vertex has all
others in its column. The common neighbours of the vertices so far are rows of bits, ANDed; popcounts find the last two.
Connected subgraphs of up to 4 vertices follow from the degrees, the triangles of each edge, and the numbers of cliques
and of cycles of 4 vertices. Larger ones are grown.

Independent sets are too many to be grown; up to 6 vertices, their number follows from connected subgraphs. Let i_k be
the number of independent sets of k vertices, and I(x) the sum of all i_k x^k. For a graph of several components I is
the product of theirs, so log I is the sum of theirs. Hence log I is a sum over connected induced subgraphs S of what S
adds beyond its own subgraphs, and the term x^j gets nothing from an S of more than j vertices. The subgraphs are
counted by shape, log I is summed up, and its exponential taken. Larger independent sets are cliques of the complement.
"""

from math import comb
from typing import Any, Literal

import numpy as np

from tcgpu import cpu
from tcgpu.api import Progress, documented, whole
from tcgpu.arrays import bincount, sum_exactly
from tcgpu.cpu import small
from tcgpu.cpu.choose import hub_limit, hub_rows
from tcgpu.cpu.edges import marking_workers, vertices
from tcgpu.cpu.neighbours import edge_blocks
from tcgpu.cpu_costs import FEW_WORDS, LONG_COLUMN, MANY_BITS
from tcgpu.declarations import GPU
from tcgpu.engines.choice import NUMBA, Engine, in_numpy
from tcgpu.engines.native import CACHE_LINE, common_bits, jit, lowest_bit, popcount, run_threads, stoppable, stopped
from tcgpu.errors import GraphError, MethodError, roomy
from tcgpu.graph import Graph
from tcgpu.kernels.chatterjee import combinations
from tcgpu.kernels.device_graph import engine_for
from tcgpu.progress import underway
from tcgpu.registry import ENGINES, check_engine, named, on_engine
from tcgpu.subgraphs import on_device as device_motifs
from tcgpu.subgraphs.cliques import sets_of_rows
from tcgpu.subgraphs.four_at_edges import check_time, count_cycles, first_in_bits, steps_of_cycles
from tcgpu.suggest import check_known

KINDS = ("clique", "independent", "connected")
METHODS = ("cpu", "levels")
MOST_VERTICES = {"clique": 255, "independent": 32, "connected": 32}  # of a subgraph
MAX_HUBS = 1 << 16
MOST_BY_SHAPE = 6  # vertices whose shape fits 15 bits
MOST_COMBINATIONS = 2**40  # to choose a larger independent set from: hours of work
MOST_BY_FORMULA = 4  # vertices of connected and independent sets that are not grown
VERTEX, EDGE, PATH_OF_3, TRIANGLE = 0, 0b1, 0b011, 0b111  # one of the shapes, see `_shapes`, of each kind
SHAPES_OF_4 = 0b100011, 0b001011, 0b110011, 0b001111, 0b011111, 0b111111  # path, star, cycle, paw, diamond, clique

I64 = np.int64
U64 = np.uint64


@documented
@roomy
def count_subgraphs(
    graph: Any,
    k: int,
    kind: Literal["clique", "independent", "connected"] = "clique",
    *,
    method: Literal["levels"] | None = None,
    engine: Engine | None = None,
    progress: Progress = None,
    max_seconds: float | None = None,
) -> int:
    """Count the sets of k vertices that are a "clique", "independent" (no two are neighbours), or "connected".

    Up to k = 4 it takes seconds for millions of edges, whatever the graph. Beyond, it takes about as long as there are
    cliques of k - 1 vertices, or connected sets of up to k, to find; connected sets are very many where some vertex has
    thousands of neighbours. Independent sets of more than 6 vertices are for small graphs.

    Parameters
    ----------
    graph, engine, progress, max_seconds
        As in `tcgpu.count`. The CPU counts, and cliques of up to 8 vertices also a GPU: without an
        engine, if the graph has half a million edges or more.
    method
        "levels" tests every combination of 3, 4 or 5 vertices that may be such a set, on engine "gpu" or "sim": see
        `tcgpu.kernels.chatterjee.combinations`. It is the way of a paper, to be compared with: it is slower but for
        the smallest graphs.
    """
    if method not in (None, *METHODS):
        raise MethodError(f"count_subgraphs has the methods {', '.join(METHODS)}, not {method!r}")
    check_known("kind", kind, KINDS, GraphError)
    if method != "levels":
        engines = ENGINES if kind == "clique" and method is None else ("cpu",)
        check_engine(f"count_subgraphs of kind {kind!r}", engine, engines)
    graph = whole(graph, engine if kind == "clique" else "cpu", method)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise GraphError(f"k is a whole number of at least 1, not {k!r}")
    if k > MOST_VERTICES[kind]:
        raise GraphError(f"subgraphs of kind {kind!r} are counted up to {MOST_VERTICES[kind]} vertices, not {k}")
    chosen = device_motifs.METHOD
    if method == "levels":
        chosen = named(method)
    elif kind == "clique" and method is None and k <= device_motifs.cliques.MOST:
        engine = engine_for(graph, engine)
    else:
        engine = engine or "cpu"
    with underway(progress, f"counting subgraphs of {graph.m:,} edges"), on_engine(chosen, engine, max_seconds):
        if method == "levels":
            return combinations.plan(graph, int(k), kind).count()
        if engine in GPU:
            return device_motifs.count_cliques(graph, int(k))
        return {"clique": _cliques, "connected": _connected, "independent": _independent}[kind](graph, int(k))


def cliques(
    graph: Any,
    k: int,
    *,
    method: Literal["levels"] | None = None,
    engine: Engine | None = None,
    progress: Progress = None,
    max_seconds: float | None = None,
) -> int:
    """Count the cliques of k vertices: sets of k vertices that are all neighbours of each other.

    The same as `count_subgraphs(graph, k, "clique")`, with its parameters.
    """
    options: dict[str, Any] = {"engine": engine, "progress": progress, "max_seconds": max_seconds}
    return count_subgraphs(graph, k, "clique", method=method, **options)


def _cliques(graph, k):
    if k <= 3:
        return (graph.n, graph.m, 0)[k - 1] or cpu.count(cpu.in_order(graph, "auto", "count"))
    check_time(f"counting cliques of {k} vertices", graph, lambda ordered: steps_of_cliques(ordered, k))
    ordered = graph.ordered("degree")  # which makes the longest column short
    if NUMBA and small.serves(ordered) and in_numpy(steps_of_cliques(ordered, k)):
        return small.cliques(ordered, k)
    workers, longest = marking_workers(ordered), ordered.max_column
    if k > longest + 1:
        return 0
    first = max(0, ordered.n - hub_limit(ordered, MAX_HUBS)) // 64 * 64 if longest >= LONG_COLUMN else ordered.n
    hubs = hub_rows(ordered, first)
    places, at = np.zeros((workers, ordered.n), np.int32), np.empty((workers, longest), np.int64)
    local = np.empty((workers, longest * (longest // 64 + CACHE_LINE)), np.uint64)
    masks = np.empty((workers, k, max(longest, ordered.n - hubs.base) // 64 + CACHE_LINE), np.uint64)
    word, left = np.empty((2, workers, k + CACHE_LINE), np.int64)  # in cache lines of each worker's own
    found, queue = np.zeros(workers, np.int64), np.zeros(1, np.int64)
    run_threads(_grow_cliques, ordered.col_ptr, ordered.row_idx, k, *hubs, queue, places, local, at, masks, word,
                left.view(np.uint64), found, workers=workers,
                queue=stoppable(queue, ordered.m) if k == 4 else queue)  # fmt: skip
    return int(found.sum())


def steps_of_cliques(graph, k):
    """How many steps `_grow_cliques` takes, at most, about: rows that are read, and sets of rows."""
    lengths = graph.column_lengths
    read = lengths[graph.row_idx[lengths[graph.col_of] >= k - 1]]
    return 4 * read.size + int(read.sum()) + sets_of_rows(graph, k - 2)


def _connected(graph, k):
    return sum(by_formula(graph, k)[k].values()) if k <= MOST_BY_FORMULA else int(_shapes(graph, k, False)[0])


def _independent(graph, k):
    if k > MOST_BY_SHAPE:
        return _cliques_of_complement(graph, k)
    log = k * [0]  # j times the terms of log I: so they are whole
    for size, shapes in (by_formula if k <= MOST_BY_FORMULA else _by_growing)(graph, k).items():
        for j, added in enumerate(_added_to_log(size, np.array([*shapes], np.int64), k).T.tolist()):
            log[j] += sum(a * many for a, many in zip(added, shapes.values(), strict=True))
    sets = [1]
    for j in range(1, k + 1):
        sets.append(sum(log[i] * sets[j - 1 - i] for i in range(j)) // j)
    return sets[k]


def _by_growing(graph, k):
    """How many connected induced subgraphs have each shape: {size: {shape: number}}, of sizes 1 to k."""
    found, numbers = _shapes(graph, k, True), {1: {VERTEX: graph.n}}
    for size in range(2, k + 1):
        many = found[_first_shape(size) : _first_shape(size + 1)]
        numbers[size] = {int(shape): int(many[shape]) for shape in np.flatnonzero(many)}
    return numbers


def by_formula(graph, k, enumerated=None):
    """As `_by_growing`, for k up to 4, from the triangles of each edge, the cliques and the cycles of 4 vertices.

    enumerated: these three, for k = 4, if they are known; else the native engine counts them.

    First all occurrences of a shape are counted, induced or not; then those inside denser subgraphs are subtracted.
    """
    found = {1: {VERTEX: graph.n}, 2: {EDGE: graph.m}}
    if k >= 3:
        degree, support = graph.degrees, enumerated[0] if enumerated else cpu.support(graph)
        sums = np.zeros(4, object)  # over the edges: their triangles, diamonds, paws, and paths of four
        for block, rows, columns in edge_blocks(graph):
            s, u, v = support[block], degree[rows], degree[columns]
            sums += [*map(sum_exactly, (s, s * (s - 1) // 2, s * (u + v - 4), (u - 1) * (v - 1)))]
        del support
        triangles = int(sums[0]) // 3
        paths = sum_exactly(degree * (degree - 1) // 2) - 3 * triangles
        found[3] = {PATH_OF_3: paths, TRIANGLE: triangles}
    if k >= 4:
        if not enumerated:
            steps = lambda made: steps_of_cycles(made, first_in_bits(made)) + steps_of_cliques(made, 4)  # noqa: E731
            check_time("counting subgraphs of 4 vertices", graph, steps)
        cliques, cycles = enumerated[1:] if enumerated else (_cliques(graph, 4), count_cycles(graph))
        diamonds = sums[1] - 6 * cliques
        cycles -= diamonds + 3 * cliques
        paws = sums[2] // 2 - 4 * diamonds - 12 * cliques
        paths = sums[3] - 3 * triangles - 2 * paws - 4 * cycles - 6 * diamonds - 12 * cliques
        many = bincount(degree)
        stars = sum(comb(d, 3) * int(many[d]) for d in np.flatnonzero(many).tolist())
        stars -= paws + 2 * diamonds + 4 * cliques
        found[4] = dict(zip(SHAPES_OF_4, (paths, stars, cycles, paws, diamonds, cliques), strict=True))
    return found


def _cliques_of_complement(graph, k):
    if comb(graph.n, k) > MOST_COMBINATIONS:
        raise GraphError(
            f"independent sets of more than {MOST_BY_SHAPE} vertices are found one by one: of {graph.n:,} vertices "
            f"there are {comb(graph.n, k):,} combinations of {k}, more than 2^40"
        )
    apart = np.tri(graph.n, k=-1, dtype=bool)
    apart[graph.edges()] = False
    return _cliques(Graph.from_edges(*np.nonzero(apart), graph.n), k)


def _first_shape(size):
    """Where the shapes of this number of vertices begin, after those of 2, 3, ... vertices."""
    return sum(1 << comb(smaller, 2) for smaller in range(2, size))


def _shapes(graph, k, shaped):
    """How many connected induced subgraphs have each shape, from 2 to k vertices; or of k vertices, whatever the shape.

    A shape says of each vertex which of those before it are its neighbours: bit j (j - 1) / 2 + i for i < j.
    """
    workers = marking_workers(graph)
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
    subsets = np.arange(1 << size)
    pairs_in = sum((subsets >> i & subsets >> j & 1) << comb(j, 2) + i for j in range(size) for i in range(j))
    members = np.bitwise_count(subsets)
    independent = shape[:, None] & pairs_in == 0
    sets = (independent & (members == np.arange(k + 1)[:, None, None])).astype(np.int64)  # in each subset, by size
    for v in range(size):
        having = np.flatnonzero(subsets >> v & 1)
        sets[:, :, having] += sets[:, :, having ^ (1 << v)]
    log = np.zeros_like(sets)
    for j in range(1, k + 1):
        log[j] = j * sets[j] - sum((log[i] * sets[j - i] for i in range(1, j)), np.zeros_like(sets[0]))
    sign = np.where((size - members) % 2, -1, 1)
    return (log[1:] * sign).sum(axis=2).T


@jit
def _grow_cliques(
    worker, workers, col_ptr, row_idx, k, base, start, bits, queue, all_places, all_local, all_at, all_masks, all_words,
    all_left, found,
):  # fmt: skip
    """Count cliques by their first vertex u: the cliques of k - 1 vertices among the rows of u's column.

    These rows are numbered 0, 1, ... and the edges among them become rows of bits. But if most later vertices are in
    the column of a hub u, the rows of bits of all hubs are used as they are.
    """
    places, local, at, masks = all_places[worker], all_local[worker], all_at[worker], all_masks[worker]
    word, left = all_words[worker], all_left[worker]
    n = I64(col_ptr.size - 1)
    hub_words = (n - base + 63) // 64
    total = I64(0)
    for u in vertices(queue, n):
        begin, end = col_ptr[U64(u)], col_ptr[U64(u + 1)]
        length = end - begin
        if length < k - 1:
            continue
        by_hubs = u >= base and length * MANY_BITS >= n - u  # no literal: these are compiled for each
        words = hub_words if by_hubs else (length + 63) // 64
        if words > FEW_WORDS:
            words = -(-words // CACHE_LINE) * CACHE_LINE  # whole cache lines
        for w in range(words):
            masks[0, U64(w)] = U64(0)
        if by_hubs:
            for i in range(begin, end):
                bit = U64(row_idx[U64(i)] - base)
                masks[0, bit >> U64(6)] |= U64(1) << (bit & U64(63))
            total += _cliques_within(bits, start, by_hubs, masks, word, left, (u - base) // 64, words, k - 1, queue)
            continue
        for w in range(length * words):
            local[U64(w)] = U64(0)
        for i in range(length):
            places[U64(row_idx[U64(begin + i)])] = i + 1
            at[U64(i)] = i * words
            masks[0, U64(i >> 6)] |= U64(1) << U64(i & 63)
        for i in range(length):
            v = I64(row_idx[U64(begin + i)])
            v_begin, v_end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
            if v >= base and length - i < v_end - v_begin:
                row = start[U64(v - base)] - (v - base) // 64 // CACHE_LINE * CACHE_LINE
                for j in range(i + 1, length):
                    bit = U64(row_idx[U64(begin + j)] - base)
                    joined = bits[U64(row) + (bit >> U64(6))] >> (bit & U64(63)) & U64(1)
                    local[U64(i * words + (j >> 6))] |= joined << U64(j & 63)
            else:
                for q in range(v_begin, v_end):
                    j = I64(places[U64(row_idx[U64(q)])]) - 1
                    if j >= 0:
                        local[U64(i * words + (j >> 6))] |= U64(1) << U64(j & 63)
        total += _cliques_within(local, at, by_hubs, masks, word, left, I64(0), words, k - 1, queue)
        for i in range(begin, end):
            places[U64(row_idx[U64(i)])] = 0
    found[worker] = total


@jit
def _cliques_within(bits, start, hubs, masks, word, left, first, words, k, queue):
    """The number of cliques of k vertices, k > 2, among those whose bits are set in masks[0], from word `first` on.

    Only bits of larger vertices count in the row of bits of vertex v, which is at `start[v]` in `bits`. hubs: the row
    begins with the cache line that holds bit v, and not with word 0. word, left: where depth d is in masks[d], and the
    bits that are left there.
    """
    word[0], left[0] = first, masks[0, first]
    depth = 0
    total = I64(0)
    while depth >= 0 and not stopped(queue):
        while left[depth] == U64(0) and word[depth] < words - 1:
            word[depth] += 1
            left[depth] = masks[depth, word[depth]]
        if left[depth] == U64(0):
            depth -= 1
            continue
        here = word[depth]
        line = here // CACHE_LINE * CACHE_LINE
        row = start[here * 64 + lowest_bit(left[depth])] - (line if hubs else 0)
        left[depth] &= left[depth] - U64(1)
        for w in range(line, words):
            masks[depth + 1, U64(w)] = masks[depth, U64(w)] & bits[U64(row + w)]
        if depth + 3 == k:
            total += _edges_within(bits, start, hubs, masks[depth + 1], here, words)
        else:
            depth += 1
            word[depth], left[depth] = here, masks[depth, here]
    return total


@jit
def _edges_within(bits, start, hubs, mask, first, words):
    """As `_cliques_within`, of two vertices."""
    total = U64(0)
    for here in range(first, words):
        left = mask[U64(here)]
        line = here // CACHE_LINE * CACHE_LINE
        while left != U64(0):
            row = start[U64(here * 64 + lowest_bit(left))] - (line if hubs else 0)
            left &= left - U64(1)
            if words % CACHE_LINE == 0:
                for w in range(line, words, CACHE_LINE):
                    total += common_bits(mask, w, bits, row + w)
            else:
                for w in range(here, words):
                    total += popcount(mask[U64(w)] & bits[U64(row + w)])
    return I64(total)


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
    total = I64(0)
    for root in vertices(queue, I64(seen.size)):
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
    """Append the neighbours of v above `root` to `near`, from `end` on, each once; returns the new end."""
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
