"""The k-truss of a graph on a GPU: weak edges go, round by round (Bisson & Fatica, their Algorithm 3).

Contract: `peel` says which edges are in the k-truss, the largest subgraph whose every edge is in at least k - 2 of its
triangles; `numbers` gives each edge the largest k whose truss has it. Both in the order of the columns.

It begins with the support of every edge: of a graph of some size that of `adaptive`, which orders it as it likes. A
round begins with the support of every edge that is left, and goes:

    mark_weak      a nonzero with less than k - 2 triangles is weak: its support becomes -1
    mark_near      a column is near if it has a weak nonzero, or meets a column that has: triangles that break are there
    update         walks the near columns and takes 1 off what is left of each broken triangle (see `support`)
    compact        a warp a weak column moves what stays to the front; `length` says how much that is

until no edge is weak. No array is built anew: what lies behind a column's length has the support GONE. For k = 3 there
is one round, and nothing to update, for an edge without a triangle breaks none.

The host asks once a round how many edges are weak. It also learns the least support of the others, from which `numbers`
knows the next k at which one will be: it skips those at which none would go.

A large graph with hubs goes another way, until so little of it is left that the above is faster. There next to all
columns meet one that has lost an edge, so that to update supports is as much work as to count them by bitmaps, which
is many times as much as `adaptive` has. It counts what stays anew in each round, as a graph of its own, whose vertices
keep the numbers that suited it at first.
"""

from dataclasses import dataclass, replace

import numpy as np

from tcgpu.declarations import Method
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel
from tcgpu.kernels import ArrayPlan, Plan, Step, adaptive, results, simulated
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.bisson_fatica.support import (
    HIGHEST,
    LISTS,
    LOWEST,
    MIDDLING,
    ROUND,
    THREADS,
    WEAK,
    bounds,
    over,
)
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import prepare

__all__ = ["numbers", "peel", "plan", "prepare"]

MARKED, GONE = -1, -2  # supports of what is weak in this round, and of what went in an earlier one
ROUND_US = 45  # microseconds in the simulator of an edge in each round, beside its triangles
BYTES_ANEW = 40  # an edge, beside what `adaptive` takes: two graphs, marks, and where the edges were


METHOD = Method(
    name="k_truss",
    source="Bisson & Fatica",
    summary="support by bitmaps, weak edges removed until none is weak; large graphs are counted anew each round",
    module=__name__,
)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32)")
def mark_weak(col_of, support, origin, number, weak, near, state, k):
    """Mark what is weak for k; its number is k - 1. Counts it, and finds the least support of the rest."""
    round, found, lowest = state[ROUND], int32(0), int32(HIGHEST)
    for p in range(cuda.grid(1), support.size, cuda.gridsize(1)):
        triangles = support[p]
        if triangles >= k - 2:
            lowest = min(lowest, triangles)
        elif triangles >= 0:
            support[p] = MARKED
            number[origin[p]] = k - 1
            weak[col_of[p]] = round
            near[col_of[p]] = round
            found += 1
    if found > 0:
        cuda.atomic.add(state, WEAK, found)
    if lowest < state[LOWEST]:
        cuda.atomic.min(state, LOWEST, lowest)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def mark_near(col_of, row_idx, support, weak, near, state):
    round = state[ROUND]
    for p in range(cuda.grid(1), support.size, cuda.gridsize(1)):
        if support[p] != GONE and weak[row_idx[p]] == round:
            near[col_of[p]] = round


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def compact(col_ptr, length, row_idx, support, origin, weak, state):
    """What stays of a weak column moves to its front, in order: a warp a column, of 32 that it looks at in one go."""
    lane = cuda.laneid
    before = (1 << lane) - 1  # the lanes before this one
    round = state[ROUND]
    first = cuda.grid(1) // WARP * WARP
    while first < length.size:
        is_weak = False
        if first + lane < length.size:
            is_weak = weak[first + lane] == round
        todo = cuda.ballot_sync(ALL_LANES, is_weak)
        while todo:
            j = first + cuda.ffs(todo) - 1
            todo &= todo - 1
            begin, end = bounds(col_ptr, length, j)
            free = p = begin  # where the next that stays goes
            while p < end:
                at = p + lane
                stays, row, triangles, source = False, int32(0), int32(0), int32(0)
                if at < end:
                    row, triangles, source = row_idx[at], support[at], origin[at]
                    stays = triangles >= 0
                staying = cuda.ballot_sync(ALL_LANES, stays)
                cuda.syncwarp()  # all have read what is now written over
                if stays:
                    to = free + cuda.popc(staying & before)
                    row_idx[to], support[to], origin[to] = row, triangles, source
                free += cuda.popc(staying)
                p += WARP
            cuda.syncwarp()
            at = free + lane
            while at < end:
                support[at] = GONE
                at += WARP
            if lane == 0:
                length[j] = free - begin
        first += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1])")
def copy_supports(found, support):
    for p in range(cuda.grid(1), support.size, cuda.gridsize(1)):
        support[p] = found[p]


@kernel("void(int32[::1], int32[::1], int32[::1])")
def copy_rows(given, row_idx, origin):
    """The rows to work on, and where each is from: what is given may be somebody's graph."""
    for p in range(cuda.grid(1), given.size, cuda.gridsize(1)):
        row_idx[p], origin[p] = given[p], p


@dataclass
class Truss(ArrayPlan):
    """A plan for one `k`, or, without one, for k = 3, 4, ... until nothing is left; counts its `rounds`.

    Its result is the number of each edge that went, and 0 for those that stayed. `launch` reads back a few numbers in
    each round, and so waits for the device.
    """

    waits = True
    output: str = "number"
    k: int | None = None
    rounds: int = 0

    def stays(self):
        """Of the result which edges stayed: bool, a quarter of the bytes."""
        return runtime.to_host(runtime.to_device_library(self.arrays[self.output]) == 0)


@dataclass
class TrussPlan(Truss):
    """Algorithm 3 on a graph of so many edges and columns.

    start: a plan of the supports to begin with; without one, or room for it, the steps find them. least: the first k,
    where there are many. listing: the launch that lists columns. update: those that walk the columns of each list.
    """

    edges: int = 0
    columns: int = 0
    start: Plan | None = None
    least: int = 3
    listing: Step | None = None
    update: tuple = ()

    def launch(self):
        self.count_supports()
        k, left = self.k or self.least, self.edges
        while left:
            weak, lowest, lists = self.mark(k)
            if weak:
                self.remove(lists)
            left -= weak
            settled = weak == 0 or k == 3  # an edge in no triangle breaks none
            if settled and self.k:
                break
            if settled:
                k = lowest + 3

    def count_supports(self):
        self.rounds = 0
        if self.start is None or self.start.device_bytes > runtime.memory_free():
            super().launch()
            return
        with self.start.carried_out():
            self.run(copy_supports, over(self.edges), self.start.arrays[self.start.output], "support")

    def mark(self, k):
        """Mark what is weak for k and list the columns that lose by it.

        Returns how many are weak, the least support of the others, and how many columns each list has.
        """
        self.rounds += 1
        self.run(support.begin_round, 1, "state", self.rounds)
        self.run(mark_weak, over(self.edges), "col_of", "support", "origin", "number", "weak", "near", "state", k)
        if k > 3:
            self.run(mark_near, over(self.edges), "col_of", "row_idx", "support", "weak", "near", "state")
            self.listing.run(self.arrays)
        state = runtime.to_host(self.arrays["state"])
        return int(state[WEAK]), int(state[LOWEST]), state[:LISTS]

    def remove(self, lists):
        """Take what is marked out of the supports of what stays, and out of the columns."""
        for step, columns in zip(self.update, lists):
            if columns:
                step.run(self.arrays)
        blocks = over(self.columns)
        self.run(compact, blocks, "col_ptr", "length", "row_idx", "support", "origin", "weak", "state")

    def run(self, kernel, blocks, *args):
        Step(kernel, blocks, THREADS, args).run(self.arrays)

    def reset(self):
        for name in ("support", "number", "weak", "near"):
            runtime.refill(self.arrays[name], 0)
        for step in self.setup:
            step.run(self.arrays)


@dataclass
class TrussAnew(Truss):
    """What stays is counted anew: by `adaptive`, round by round, until Algorithm 3 has the little that is left."""

    graph: object = None

    def reset(self):
        runtime.refill(self.arrays["number"], 0)

    def launch(self):
        self.rounds = 0
        number, graph = runtime.to_device_library(self.arrays["number"]), self.graph
        origin, k, found = runtime.arrays_of(number).arange(graph.m, dtype=np.int32), 3, None
        while graph.m > MIDDLING[1]:
            self.rounds += 1
            found = supports(graph) if found is None else found
            k = self.k or max(k, int(found.min()) + 3)
            stays = found >= k - 2
            number[origin[~stays]] = k - 1
            before, graph, origin = graph.m, graph.kept(stays), origin[stays]
            if self.k and (self.k == 3 or graph.m == before):
                break
            found = found[stays] if k == 3 else None  # an edge in no triangle breaks none
        else:
            self.finish(graph, origin, number, k)
        super().launch()  # hands the numbers out in the order asked for

    def finish(self, graph, origin, number, k):
        """Algorithm 3 on what is left, from this k on."""
        if graph.m:
            rest = replace(plan(graph, self.k), least=k)
            with rest.carried_out():
                number[origin] = runtime.to_device_library(rest.arrays["number"])
            self.rounds += rest.rounds


def supports(graph):
    """The support of each edge by `adaptive`, on the device."""
    with adaptive.support_plan(graph).carried_out() as done:
        return runtime.to_device_library(done.arrays[done.output])


def plan(graph, k=None, *, method=None):
    """For one k of at least 3, or for all; `method` is one of those of `support`, for the first supports, too.

    "bitmaps" is the one of these that suits the graph: Algorithm 3 as it is published, whatever the graph's size.
    """
    if method is None and graph.m > MIDDLING[1]:
        back = prepare(graph, "natural")
        own = prepare(back, "auto")
        start = adaptive.support_plan(own)
        if own.order == "degree" and start.device_bytes + BYTES_ANEW * graph.m <= runtime.memory_free():
            return _anew(own, back, k)
        return _in_place(graph, k, method, results.edges_in_order_of(back, start, own))
    return _in_place(graph, k, None if method == "bitmaps" else method)


def _anew(own, back, k):
    made = TrussAnew(
        method="k_truss",
        copied={"col_ptr": own.col_ptr, "row_idx": own.row_idx},
        created={"number": (own.m, np.int32, 0)},
        steps=[],
        work=_simulated_work(own, k, simulated.work(own, row_us=9.1)),
        k=k,
        graph=own,
    )
    return results.edges_in_order_of(back, made, own)


def _in_place(graph, k, method, start=None):
    counting = support.plan(graph, method)
    return TrussPlan(
        method="k_truss",
        copied={"col_ptr": graph.col_ptr, "given": graph.row_idx, "col_of": graph.col_of},
        created={
            **counting.created,
            "row_idx": (graph.m, np.int32, None),
            "origin": (graph.m, np.int32, None),
            "number": (graph.m, np.int32, 0),
        },
        setup=[*counting.setup, Step(copy_rows, over(graph.m), THREADS, ("given", "row_idx", "origin"))],
        steps=counting.steps,
        work=_simulated_work(graph, k, counting.work),
        k=k,
        edges=graph.m,
        columns=graph.n,
        start=start,
        listing=counting.listing,
        update=counting.walks,
    )


def _simulated_work(graph, k, once):
    """Microseconds in the simulator, of which it takes `once` to count all supports.

    How many rounds there will be is not known beforehand: so many as other graphs took. A mesh may take more, a clique
    takes fewer.
    """
    counts, rounds = {None: (5, 20), 3: (1.4, 1)}.get(k, (2.5, 4))
    return int(counts * once + rounds * ROUND_US * graph.m)


def peel(graph, k, *, method=None):
    """Which edges the k-truss keeps: bool, one a nonzero."""
    if k < 3 or graph.m == 0:
        return np.ones(graph.m, bool)
    with plan(graph, min(k, HIGHEST), method=method).carried_out() as done:
        return done.stays()


def numbers(graph, *, method=None):
    """The truss number of each edge: int32, one a nonzero."""
    if graph.m == 0:
        return np.zeros(0, np.int32)
    return plan(graph, method=method).count()
