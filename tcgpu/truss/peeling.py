"""k-trusses and truss numbers on a GPU: weak edges are peeled off round by round, and each triangle is broken once.

A level is a number of triangles: an edge peeled at level s has the truss number s + 2.

First the support of each edge is counted, the number of triangles that it is in. Edges in no triangle break none: they
are removed at once, which makes a smaller graph. From then on one kernel updates the supports of the remaining edges.
It appends the edges of a level to a queue. A round finds the triangles of those that were appended before: their other
edges lose one each, and are appended if as few are left as the level says. Between rounds all blocks wait for each
other. So hundreds of rounds take one launch.

`peeled` holds for each edge the round in which it is peeled. A triangle with an edge of an earlier round is broken
already. If two of its edges are in the same round, the one with the lower number breaks it.

To find an edge's triangles, a warp reads the neighbours of the end that has fewer, and looks up each among those of the
other end, by binary search. So an edge to a hub takes no longer. Peeled edges are still listed: when half of the edges
are peeled, the others become a smaller graph.

Where many edges are weak at a time, the supports of the others are counted again: that is faster than to break all
triangles of the weak.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from tcgpu.built_in import K_TRUSS
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.errors import GraphError
from tcgpu.gpu_costs import FEW_WEAK, SHRINK, SMALL_TRUSS
from tcgpu.kernels import ArrayPlan, Run, adaptive, enough_blocks, results, run, simulated
from tcgpu.kernels.adjacency import adjacency
from tcgpu.kernels.device.grid import wait_for_grid
from tcgpu.kernels.device.warp import WARP, append_lanes
from tcgpu.kernels.device_graph import order_for_tallies, prepare
from tcgpu.kernels.picking import Marked, between

__all__ = ["numbers", "peel", "plan", "prepare"]

MAX_INT32 = 2**31 - 1
MAX_EDGES = 2**31 - 2**19  # the position of a neighbour, and of the next one of the same thread, fit 32 bits
NEVER = MAX_INT32  # the round of an edge that remains
THREADS, BLOCKS_PER_SM = 768, 2
WORK, ROUND_WORK = 1 << 22, 128  # edges that a launch peels, about; a round counts as so many edges
EDGE_BYTES = 100  # of device memory for each edge, besides the graph that is given
EDGE_US, EDGE_US_FOR_ALL = 300, 1000  # in the simulator, for an edge besides its support: for one k, for all

# `state`, int64: the ROUND peels queue[BEGIN:END] at LEVEL; LOWEST: what `find_level` finds. ARRIVED counts the blocks
# that have come to `wait_for_grid`. APPENDED + r % 3: how many edges were appended for round r.
LEVEL, LOWEST, ROUND, BEGIN, END, ARRIVED, APPENDED, STATE_SIZE = *range(7), 9


class Remaining(NamedTuple):
    """The graph that is peeled; edge e joins vertices row_idx[e] and col_of[e]."""

    row_idx: np.ndarray
    col_of: np.ndarray
    indptr: np.ndarray  # int64: vertex v has the neighbours indices[indptr[v]:indptr[v + 1]], ascending
    indices: np.ndarray
    edge: np.ndarray  # the edges to these
    support: np.ndarray
    peeled: np.ndarray  # the round in which each edge is peeled, or NEVER
    origin: np.ndarray  # each edge's position in `number`
    number: np.ndarray  # the truss number of each peeled edge
    queue: np.ndarray  # edges in the order in which they are peeled
    state: np.ndarray


# ----------------------------------------------------------------------------------------------------- device functions


@cuda.jit(device=True)
def degree(graph, v):
    return uint32(graph.indptr[v + 1]) - uint32(graph.indptr[v])


@cuda.jit(device=True)
def find_edge(graph, v, w):
    """The edge between vertex v, which has a neighbour, and vertex w; -1 if there is none."""
    p, length = uint32(graph.indptr[v]), degree(graph, v)
    while length > 1:
        half = length >> 1
        if graph.indices[p + half] <= w:
            p += half
        length -= half
    return graph.edge[p] if graph.indices[p] == w else int32(-1)


@cuda.jit(device=True)
def find_level(graph, thread, threads):
    """Find the least support of the edges that remain."""
    least = int32(MAX_INT32)
    for e in range(thread, graph.support.size, threads):
        if graph.peeled[e] == NEVER:
            least = min(least, graph.support[e])
    if least < graph.state[LOWEST]:
        cuda.atomic.min(graph.state, LOWEST, int64(least))


@cuda.jit(device=True)
def collect(graph, level, round, end, thread, threads):
    """Append the edges that are in no more triangles than the level to queue[:end], to be peeled in a round."""
    lane, e = thread % WARP, thread
    while e - lane < graph.support.size:  # whole warps
        weak = False
        if e < graph.support.size:
            weak = graph.peeled[e] == NEVER and graph.support[e] <= level
        if weak:
            graph.peeled[e] = round
            graph.number[graph.origin[e]] = level + 2
        append_lanes(weak, int32(e), graph.queue[end:], graph.state, APPENDED + round % 3)
        e += threads


@cuda.jit(device=True)
def lose_triangle(graph, e, level, round, end):
    """Take one off the support of edge e. If it is weak from now on, append it to queue[:end], as `collect` does."""
    if cuda.atomic.add(graph.support, e, -1) == level + 1:
        graph.peeled[e] = round
        graph.number[graph.origin[e]] = level + 2
        graph.queue[end + cuda.atomic.add(graph.state, APPENDED + round % 3, 1)] = e


@cuda.jit(device=True)
def break_triangles(graph, level, round, begin, end, thread, threads):
    """Break the triangles of the edges queue[begin:end]. Where there are more warps than edges, several share one."""
    peeled = graph.peeled
    lanes = max(1, threads // WARP // (end - begin)) * WARP  # for an edge
    at = begin + thread // lanes
    while at < end and thread // lanes < threads // lanes:
        e = graph.queue[at]
        u, v = graph.row_idx[e], graph.col_of[e]
        if degree(graph, u) > degree(graph, v):
            u, v = v, u
        p, last = uint32(graph.indptr[u]) + thread % lanes, uint32(graph.indptr[u + 1])
        while p < last:
            f = graph.edge[p]
            if f != e and peeled[f] >= round:  # other threads append edges to the next round now: later than this one
                g = find_edge(graph, v, graph.indices[p])
                if g >= 0 and peeled[g] >= round:
                    f_goes, g_goes = peeled[f] == round, peeled[g] == round
                    if not f_goes and (not g_goes or e < g):
                        lose_triangle(graph, f, level, round + 1, end)
                    if not g_goes and (not f_goes or e < f):
                        lose_triangle(graph, g, level, round + 1, end)
            p += lanes
        at += threads // lanes


# ----------------------------------------------------------------------------------------------------------- the kernel


@kernel(
    "void(int32[::1], int32[::1], int64[::1], " + 7 * "int32[::1], " + "int64[::1], int64, int64, int64)",
    most_threads=(THREADS, BLOCKS_PER_SM), cooperative=True,
)  # fmt: skip
def peel_edges(row_idx, col_of, indptr, indices, edge, support, peeled, origin, number, queue, state, stop, many, work):
    """Peel level by level, until `many` edges are about to be peeled in a round, or this launch has done its work.

    stop: it also returns when a level is done and as many edges are peeled. work: how many a launch peels, so that the
    host can be interrupted in between; a round counts as ROUND_WORK edges.
    """
    graph = Remaining(
        row_idx, col_of, indptr, indices, edge, support, peeled, origin, number, queue, state
    )  # fmt: skip
    thread, threads = uint32(cuda.grid(1)), uint32(cuda.gridsize(1))
    level, round = int32(state[LEVEL]), int32(state[ROUND])
    begin, end = uint32(state[BEGIN]), uint32(state[END])
    stepped = False  # whether the level was raised by one, and no edge is peeled at it yet
    while True:
        if begin < end:
            break_triangles(graph, level, round, begin, end, thread, threads)
            work -= end - begin + ROUND_WORK
            stepped = False
        else:
            if stepped:  # no edge has the next level
                find_level(graph, thread, threads)
                wait_for_grid(state[ARRIVED:])
                level = int32(state[LOWEST])
            else:
                level += 1
            collect(graph, level, round + 1, end, thread, threads)
            stepped = not stepped
        wait_for_grid(state[ARRIVED:])
        round += 1
        begin, end = end, end + uint32(state[APPENDED + round % 3])
        if thread == 0:
            state[APPENDED + (round + 2) % 3] = 0  # no thread reads it or adds to it in this round
            if begin < end:
                state[LOWEST] = MAX_INT32
        if end == support.size or work <= 0 or (begin == end and end >= stop and not stepped) or end - begin >= many:
            break
    if thread == 0:
        state[LEVEL], state[ROUND], state[BEGIN], state[END] = level, round, begin, end


@kernel("void(int32[::1], int64, int32[::1], int32[::1])")
def number_weak(support, least, origin, number):
    """A thread per edge: write the truss number of one in fewer than `least` triangles."""
    for e in range(cuda.grid(1), support.size, cuda.gridsize(1)):
        if support[e] < least:
            number[origin[e]] = least + 1


# ------------------------------------------------------------------------------------------------------------- the plan


class PeelingRun(Run):
    """The Run for one `k`, or, if k is None, for all.

    The result is the truss number of each peeled edge, and, for one k, 0 for the others. `launch` reads from the
    device, and so waits for it. rounds: how often it peeled edges or looked for those of the next level; counts: how
    often it counted supports.
    """

    def __init__(self, plan, graph, k):
        super().__init__(plan)
        self.graph, self.k = graph, k

    def launch(self):
        number, graph, least = runtime.to_device_library(self.arrays["number"]), self.graph, (self.k or 3) - 2
        origin = runtime.arrays_of(number).arange(graph.m, dtype=np.int32)
        self.rounds = self.counts = weak = 0
        while graph.m:
            found = supports(graph)
            stays = between(found, least, MAX_INT32)
            left = Marked(stays)
            weak = graph.m - left.size
            self.counts += 1
            if least > 1 and weak <= FEW_WEAK * graph.m:
                break
            run(number_weak, graph.m, found, least, origin, number)
            graph, origin, found = graph.kept(stays), left.of(origin), left.of(found)
            self.rounds += 1
            if least == 1:  # an edge in no triangle breaks none
                break
        if graph.m and (self.k is None or weak and least > 1):
            self.peel(graph, found, origin, number)
        super().launch()  # returns the numbers in the caller's order

    def peel(self, graph, found, origin, number):
        """Peel at the level of k, or, if k is None, level by level until no edge remains."""
        level = (self.k or 4) - 4  # one less than the first level, k - 3 or 1
        while graph.m:
            rest = remaining(graph, found, origin, number, level)
            share, many = (1 - SHRINK, FEW_WEAK) if graph.m > SMALL_TRUSS else (1, 1)
            state = peel_until(rest, 0 if self.k else int(share * graph.m), 1 + int(many * graph.m))
            level = int(state[LEVEL])
            self.rounds += int(state[ROUND])
            unbroken = state[BEGIN] < state[END]
            if state[END] == graph.m or self.k and not unbroken:
                break
            stays = between(rest.peeled, NEVER, NEVER)
            left = Marked(stays)
            graph, origin = graph.kept(stays), left.of(origin)
            if unbroken:  # the rest is counted again, and may have weak edges of the same level
                found, level = supports(graph), level - 1
                self.counts += 1
            else:
                found = left.of(rest.support)


def peel_until(rest, stop, many):
    """Peel until a level is done and `stop` edges are peeled, or `many` are about to be; returns the state."""
    m = rest.support.size
    threads = WARP * enough_blocks(THREADS // WARP, m, 16)
    at_a_time = peel_edges.blocks_at_a_time(threads)
    while True:
        peel_edges.launch(enough_blocks(at_a_time, m, threads), threads, *rest, stop, many, WORK)
        state = runtime.to_host(rest.state)
        if state[END] == m or state[BEGIN] == state[END] >= stop or state[END] - state[BEGIN] >= many:
            return state


def supports(graph):
    with adaptive.support_plan(graph).carried_out() as done:
        return runtime.to_device_library(done.arrays[done.plan.output])


def remaining(graph, support, origin, number, level):
    """A graph before its first round. support: of each edge, which changes; level: the last one that is done."""
    xp, m = runtime.arrays_of(number), graph.m
    _, indptr, indices, edge = adjacency(graph)
    row_idx, col_of = map(runtime.to_device_library, (graph.row_idx, graph.col_of))
    state = np.zeros(STATE_SIZE, np.int64)
    state[LEVEL], state[LOWEST] = level, MAX_INT32
    return Remaining(
        row_idx, col_of, indptr, indices, edge, support, xp.full(m, NEVER, np.int32), origin,
        number, xp.empty(m, np.int32), runtime.to_device(state),
    )  # fmt: skip


def plan(graph, k=None):
    """The plan for one k of at least 3, or, if k is None, for all."""
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for trusses on a GPU, which takes up to {MAX_EDGES:,}")
    given = prepare(graph, "natural")
    ordered = prepare(given, order_for_tallies(given, "auto"))
    made = ArrayPlan(
        method="k_truss",
        copied={"col_ptr": ordered.col_ptr, "row_idx": ordered.row_idx},
        created={"number": (ordered.m, np.int32, 0)},
        steps=[],
        refills={"number": 0},
        work=simulated_work(ordered, k),
        output="number",
        runs=partial(PeelingRun, graph=ordered, k=k),
        waits=True,
        launch_bytes=EDGE_BYTES * ordered.m,
    )
    return results.edges_in_order_of(given, made, ordered)


def simulated_work(graph, k):
    """Microseconds in the simulator. The number of rounds is not known: this is what other graphs took."""
    return int(simulated.work(graph, (EDGE_US_FOR_ALL if k is None else EDGE_US) * graph.m, row_us=9.1))


def peel(graph, k):
    """Which edges are in the k-truss: a bool on the device for each nonzero of a prepared graph."""
    if k < 3 or graph.m == 0:
        return runtime.arrays_of(graph.row_idx).ones(graph.m, bool)
    with plan(graph, min(k, MAX_INT32)).carried_out() as done:
        return between(runtime.to_device_library(done.arrays[done.plan.output]), 0, 0)


def numbers(graph):
    """The truss number of each edge: an int32 for each nonzero."""
    if graph.m == 0:
        return np.zeros(0, np.int32)
    return plan(graph).count()


METHOD = K_TRUSS.with_plan(plan, prepare)
