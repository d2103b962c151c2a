"""At each edge: the cycles and cliques of 4 vertices, and sums over triangles, of a graph in degree order.

A cycle of 4 vertices is two paths of two edges with the same ends. The paths are found from their larger end, and a
counter for each vertex holds those to the other end. A clique is found at its first vertex u: a row of bits for each
vertex of u's column says which others of the column it is joined to; the cliques of a triangle u, v, w are the bits
that two rows share. Each worker adds to an array of its own, or atomically to one that they share. `count_cycles`
only counts the cycles of a graph, and those of dense vertices by rows of bits.
"""

from functools import partial

import numpy as np

from tcgpu.arrays import bincount, repeat
from tcgpu.cpu import small
from tcgpu.cpu.edge_tally import add
from tcgpu.cpu.edges import marking_workers, vertices
from tcgpu.cpu.neighbourhoods import dense_rows, first_dense
from tcgpu.cpu.neighbours import neighbour_pairs
from tcgpu.cpu.per_vertex import MAX_COPIES
from tcgpu.engines.choice import NUMBA, in_numpy
from tcgpu.engines.native import I64, U64, jit, popcount, run_threads, stoppable, stopped, uncounted
from tcgpu.kernels import simulated

STEP_US = 2  # microseconds of a step of the loops here without Numba; each edge takes four


def check_time(what, graph, steps):
    """Without Numba, announce long work; GraphError beyond the limit. steps(graph in degree order): their number."""
    if not NUMBA:
        seconds = simulated.seconds(0, STEP_US * steps(graph.ordered("degree")))
        simulated.check(what, seconds, "take a smaller graph, or a Python that has Numba", "without Numba")


def steps_of_cycles(graph, base):
    """How many steps `_add_cycles` takes, about: paths of two edges, and words of pairs of dense vertices."""
    lengths, dense = graph.column_lengths, graph.n - base
    before = graph.degrees - lengths  # neighbours to which a path may go on: below `base` where both others are not
    before[base:] = bincount(graph.row_idx[: graph.col_ptr[base]], minlength=graph.n)[base:]
    before[:base] += (lengths[:base] - 1) // 2
    return 4 * graph.m + int(before @ lengths) + dense**2 * (dense + 128) // 256


def count_cycles(graph):
    """The number of cycles of 4 vertices, whether they are joined across or not, of a graph in any order."""
    if NUMBA and in_numpy(graph.m) and in_numpy(int(neighbour_pairs(graph).sum())):
        return small.cycles(graph)
    ordered = graph.ordered("degree")  # so that a path over a hub begins at a larger hub
    return _find_cycles(ordered, first_in_bits(ordered))


def first_in_bits(graph):
    """The first of the vertices whose cycles `count_cycles` counts by rows of bits: all dense ones, or none."""
    return min(first_dense(graph), graph.n, key=partial(steps_of_cycles, graph))


def cycles_at(graph):
    """The cycles of 4 vertices that each edge is part of, whether they are joined across or not (int64)."""
    workers = marking_workers(graph)
    shared = workers > MAX_COPIES
    found = np.zeros((1 if shared else workers, 2 * graph.m), np.int64)
    _find_cycles(graph, graph.n, True if shared else None, found)
    at = found.sum(axis=0)
    indptr, indices = graph.adjacency  # of each edge some cycles are found at its one end, and some at the other
    to_larger = indices > repeat(np.arange(graph.n, dtype=np.int32), np.diff(indptr))
    total = at[to_larger]
    total[np.argsort(graph.row_idx, kind="stable")] += at[~to_larger]
    return total


def _find_cycles(graph, base, shared=None, found=None):
    """The number of cycles; `base` and `found` are those of `_add_cycles`."""
    workers, queue = marking_workers(graph), np.zeros(1, np.int64)
    paths, totals = np.zeros((workers, graph.n), np.int32), np.zeros(workers, np.int64)
    run_threads(_add_cycles, *graph.adjacency, base, dense_rows(graph, base, workers), queue, paths, shared, found,
                totals, workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip
    return int(totals.sum())


def cliques_at(graph, support):
    """Three int64 arrays with a number for each edge: its cliques of 4 vertices, and two sums over its triangles.

    support: the triangles at each edge. The first sum adds, for each triangle, how many more triangles its two other
    edges are in; the second, how many neighbours its third vertex has outside the triangle.
    """
    workers, queue = marking_workers(graph), np.zeros(1, np.int64)
    shared, longest = workers > MAX_COPIES, graph.max_column
    places = np.zeros((workers, graph.n), np.int32)
    bits = np.empty((workers, longest * (longest // 64 + 1)), np.uint64)
    sums = np.empty((workers, 3, longest), np.int64)
    found = np.zeros((1 if shared else workers, 3, graph.m), np.int64)
    run_threads(_add_cliques, graph.col_ptr, graph.row_idx, graph.degrees, support, queue, places, bits, sums,
                True if shared else None, found, workers=workers, queue=stoppable(queue, graph.m))  # fmt: skip
    return [found[:, k].sum(axis=0) for k in range(3)]


@jit
def _add_cycles(worker, workers, indptr, indices, base, bits, queue, all_paths, shared, all_found, totals):
    """Find each cycle at its last vertex x, as two paths x, v, u over different v to a smaller u.

    Paths of three dense vertices, from `base` on, are counted as common bits of two rows. If there is `all_found`, no
    vertex may be dense.
    """
    paths = all_paths[worker]  # the paths to each u so far
    n = I64(indptr.size - 1)
    words = bits.size // max(1, n - base)
    total = I64(0)
    for taken in vertices(queue, n):
        x, steps = n - 1 - taken, I64(0)
        for k in range(indptr[U64(x)], indptr[U64(x + 1)]):
            v = I64(indices[U64(k)])
            if v > x or stopped(queue):
                break
            last = base if x >= base and v >= base else x
            for q in range(indptr[U64(v)], indptr[U64(v + 1)]):
                u = I64(indices[U64(q)])
                if u >= last:
                    break
                total += I64(paths[U64(u)])
                paths[U64(u)] += 1
                steps += 1
        if stopped(queue):
            return
        if all_found is not None and steps:
            found = uncounted(all_found[worker if shared is None else 0])
            _add_paths(indptr, indices, x, paths, found, shared)
        for u in range(base, x):
            common = U64(0)
            for w in range((x - base) >> 6):
                common += popcount(bits[U64((u - base) * words + w)] & bits[U64((x - base) * words + w)])
            w = (x - base) >> 6
            both = bits[U64((u - base) * words + w)] & bits[U64((x - base) * words + w)]
            common += popcount(both & ((U64(1) << U64(x - base & 63)) - U64(1)))
            total += I64(common) * (I64(common) - 1) // 2 + I64(common) * I64(paths[U64(u)])
        if steps > x // 8:
            for u in range(x):
                paths[U64(u)] = 0
        elif steps:
            for k in range(indptr[U64(x)], indptr[U64(x + 1)]):
                v = I64(indices[U64(k)])
                if v > x:
                    break
                last = base if x >= base and v >= base else x
                for q in range(indptr[U64(v)], indptr[U64(v + 1)]):
                    u = I64(indices[U64(q)])
                    if u >= last:
                        break
                    paths[U64(u)] = 0
    totals[worker] = total


@jit
def _add_paths(indptr, indices, x, paths, found, shared):
    """Add to both edges of each path x, v, u the cycles that it is in: one less than there are paths from x to u.

    `found` has an element for each entry in the neighbourhoods: those of the path are in those of x and of v.
    """
    for k in range(indptr[U64(x)], indptr[U64(x + 1)]):
        v, of_v = I64(indices[U64(k)]), I64(0)
        if v > x:
            break
        for q in range(indptr[U64(v)], indptr[U64(v + 1)]):
            u = I64(indices[U64(q)])
            if u >= x:
                break
            others = I64(paths[U64(u)]) - 1
            of_v += others
            add(found, q, others, shared)
        add(found, k, of_v, shared)


@jit
def _add_cliques(
    worker, workers, col_ptr, row_idx, degrees, support, queue, all_places, all_bits, all_sums, shared, all_found
):  # fmt: skip
    """Find the triangles u < v < w of each u, and add what `cliques_at` returns.

    To (v, w) it adds for each triangle, to an edge of u once, for all of its triangles.
    """
    places, bits, sums = all_places[worker], all_bits[worker], all_sums[worker]
    found = all_found[worker if shared is None else 0]
    cliques, triangles, neighbours = uncounted(found[0]), uncounted(found[1]), uncounted(found[2])
    for u in vertices(queue, I64(col_ptr.size - 1)):
        begin, end = col_ptr[U64(u)], col_ptr[U64(u + 1)]
        length, words = end - begin, (end - begin + 63) >> 6
        if length < 2:
            continue
        if stopped(queue):
            return
        bits[: length * words] = 0
        sums[:, :length] = 0
        for i in range(length):
            places[U64(row_idx[U64(begin + i)])] = i + 1
        for i in range(length):
            v = U64(row_idx[U64(begin + i)])
            for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                j = I64(places[U64(row_idx[U64(q)])]) - 1
                if j >= 0:
                    bits[U64(i * words + (j >> 6))] |= U64(1) << U64(j & 63)
                    bits[U64(j * words + (i >> 6))] |= U64(1) << U64(i & 63)
        for i in range(length):
            v = U64(row_idx[U64(begin + i)])
            for q in range(col_ptr[v], col_ptr[v + U64(1)]):
                w = U64(row_idx[U64(q)])
                j = I64(places[w]) - 1
                if j < 0:
                    continue
                common = U64(0)
                for word in range(words):
                    common += popcount(bits[U64(i * words + word)] & bits[U64(j * words + word)])
                at_uv, at_uw, at_vw = support[U64(begin + i)] - 1, support[U64(begin + j)] - 1, support[U64(q)] - 1
                add(cliques, q, I64(common), shared)
                add(triangles, q, at_uv + at_uw, shared)
                add(neighbours, q, I64(degrees[U64(u)]) - 2, shared)
                sums[0, U64(i)] += I64(common)
                sums[0, U64(j)] += I64(common)
                sums[1, U64(i)] += at_uw + at_vw
                sums[1, U64(j)] += at_uv + at_vw
                sums[2, U64(i)] += I64(degrees[w]) - 2
                sums[2, U64(j)] += I64(degrees[v]) - 2
        for i in range(length):
            add(cliques, begin + i, sums[0, U64(i)] >> 1, shared)  # each was found at two w
            add(triangles, begin + i, sums[1, U64(i)], shared)
            add(neighbours, begin + i, sums[2, U64(i)], shared)
            places[U64(row_idx[U64(begin + i)])] = 0
