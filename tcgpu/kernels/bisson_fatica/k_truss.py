"""The k-truss of a graph on a GPU: weak edges are removed in rounds (Bisson & Fatica, their Algorithm 3).

The k-truss is the largest subgraph whose every edge is in at least k - 2 of its triangles. The plan for one k returns
which edges are not in it. The plan for all k returns the largest k for each edge whose truss has it.

First `support` counts the support of every edge, the number of its triangles. Then in rounds, until no edge is weak:

    mark_weak      a nonzero in fewer than k - 2 triangles is weak: its support becomes WEAK_NOW
    mark_affected  column j is affected if it has a weak nonzero, or a nonzero (i, j) whose column i has one
    update         the kernel of `support` subtracts broken triangles, which are all in affected columns
    compact        moves the remaining rows of a weak column to its front; `length` is their number

A round allocates nothing: nonzeros past a column's length have the support REMOVED. k = 3 takes one round without
updates, because removing an edge without a triangle breaks none.

In each round, the host reads how many edges are weak, and the least support of the others. From that the plan for all k
computes the next k at which an edge is weak, and skips those between.

`tcgpu.k_truss` finds trusses in another way: see `peeling`.
"""

from functools import partial

import numpy as np

from tcgpu.declarations import Method
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, kernel, uint64
from tcgpu.kernels import ArrayPlan, Run, launch
from tcgpu.kernels.bisson_fatica import algorithm_4, bitmap_auto, support
from tcgpu.kernels.bisson_fatica.support import BLOCKS, LISTED, LOWEST, MAX_INT32, ROUND, THREADS, WEAK, remaining_rows
from tcgpu.kernels.device.warp import ALL_LANES, WARP
from tcgpu.kernels.device_graph import prepare

WEAK_NOW, REMOVED = -1, -2  # supports of nonzeros that are weak in this round, or were removed in an earlier one
ROUND_US = 45  # microseconds in the simulator for an edge in each round, besides its triangles


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32)")
def mark_weak(col_of, support, origin, number, weak, affected, state, k):
    """A thread per nonzero: if it is weak, mark it and set its truss number, k - 1; else update the least support."""
    round, found, lowest = state[ROUND], int32(0), int32(MAX_INT32)
    for p in range(uint64(cuda.grid(1)), uint64(support.size), uint64(cuda.gridsize(1))):  # unsigned, so not unrolled
        triangles = support[p]
        if triangles >= k - 2:
            lowest = min(lowest, triangles)
        elif triangles >= 0:
            support[p] = WEAK_NOW
            number[origin[p]] = k - 1
            weak[col_of[p]] = round
            affected[col_of[p]] = round
            found += 1
    if found > 0:
        cuda.atomic.add(state, WEAK, found)
    if lowest < state[LOWEST]:
        cuda.atomic.min(state, LOWEST, lowest)


@kernel("void(int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def mark_affected(col_of, row_idx, support, weak, affected, state):
    """A thread per nonzero (i, j): column j is affected if column i has a weak nonzero."""
    round = state[ROUND]
    for p in range(cuda.grid(1), support.size, cuda.gridsize(1)):
        if support[p] != REMOVED and weak[row_idx[p]] == round:
            affected[col_of[p]] = round


@kernel("void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def compact(col_ptr, length, row_idx, support, origin, weak, state):
    """A warp per weak column: move its remaining rows to its front, in order. It reads 32 columns' marks at a time."""
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
            begin, end = remaining_rows(col_ptr, length, j)
            put = p = begin
            while p < end:
                at = p + lane
                stays, row, triangles, source = False, int32(0), int32(0), int32(0)
                if at < end:
                    row, triangles, source = row_idx[at], support[at], origin[at]
                    stays = triangles >= 0
                staying = cuda.ballot_sync(ALL_LANES, stays)
                cuda.syncwarp()  # all lanes have read the rows before they are overwritten
                if stays:
                    to = put + cuda.popc(staying & before)
                    row_idx[to], support[to], origin[to] = row, triangles, source
                put += cuda.popc(staying)
                p += WARP
            cuda.syncwarp()
            at = put + lane
            while at < end:
                support[at] = REMOVED
                at += WARP
            if lane == 0:
                length[j] = put - begin
        first += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1], int32[::1])")
def copy_rows(given, row_idx, origin):
    """Copy the rows, which `compact` changes; origin: the position of each nonzero in the given graph."""
    for p in range(cuda.grid(1), given.size, cuda.gridsize(1)):
        row_idx[p], origin[p] = given[p], p


class TrussRun(Run):
    """The Run for one `k`, or, if k is None, for k = 3, 4, ... until no edge is left; counts its `rounds`.

    The result is the truss number of each removed edge, and 0 for the others. `launch` reads from the device in each
    round, and so waits for it.
    """

    def __init__(self, plan, graph, k):
        super().__init__(plan)
        self.graph, self.k = graph, k
        _, self.listing, self.walk = plan.steps  # of the plan of `support`

    def launch(self):
        self.count_supports()
        k, left = self.k or 3, self.graph.m
        while left:
            weak, lowest, columns = self.mark(k)
            if weak:
                self.remove(columns)
            left -= weak
            settled = weak == 0 or k == 3  # an edge in no triangle breaks none
            if settled and self.k:
                break
            if settled:
                k = lowest + 3

    def count_supports(self):
        """Count the first supports."""
        self.rounds = 0
        super().launch()

    def mark(self, k):
        """Mark the weak nonzeros for k, and list the affected columns.

        Returns the number of weak nonzeros, the least support of the others, and how many columns are listed.
        """
        self.rounds += 1
        self.run(support.begin_round, 1, round=self.rounds)
        self.run(mark_weak, self.graph.m, k=k)
        if k > 3:
            self.run(mark_affected, self.graph.m)
            self.listing.run(self.arrays)
        state = runtime.to_host(self.arrays["state"])
        return int(state[WEAK]), int(state[LOWEST]), int(state[LISTED])

    def remove(self, columns):
        """Update the supports of the remaining nonzeros, and remove the weak ones. columns: how many are listed."""
        if columns:
            self.walk.run(self.arrays)
        self.run(compact, self.graph.n)

    def run(self, kernel, tasks, **given):
        """Run a kernel on the arrays."""
        launch(kernel, tasks, THREADS, BLOCKS, **given).run(self.arrays)

    def reset(self):
        super().reset()
        for step in self.plan.setup:
            step.run(self.arrays)


def plan(graph, k=None, *, method=None, published=False):
    """The plan for one k of at least 3, or, if k is None, for all.

    method: one of `support`; None for what Algorithm 5 chooses. published: supports are counted and updated by
    Algorithm 4 as printed.
    """
    if method is None:
        counting = bitmap_auto.support_plan(graph, published)
    else:
        counting = (algorithm_4.support_plan if published else support.plan)(graph, method)
    return ArrayPlan(
        method="bitmaps",
        copied={"col_ptr": graph.col_ptr, "given": graph.row_idx, "col_of": graph.col_of},
        created={
            **counting.created,
            "row_idx": (graph.m, np.int32, None),
            "origin": (graph.m, np.int32, None),
            "number": (graph.m, np.int32, 0),
        },
        setup=[*counting.setup, launch(copy_rows, graph.m, THREADS, BLOCKS)],
        steps=counting.steps,
        refills=dict.fromkeys(("support", "number", "weak", "affected"), 0),
        work=simulated_work(graph, k, counting.work),
        output="number",
        runs=partial(TrussRun, graph=graph, k=k),
        waits=True,
    )


def simulated_work(graph, k, once):
    """Microseconds in the simulator. once: those to count all supports.

    The number of rounds is not known: this is what other graphs took. A mesh may take more, a clique fewer.
    """
    counts, rounds = {None: (5, 20), 3: (1.4, 1)}.get(k, (2.5, 4))
    return int(counts * once + rounds * ROUND_US * graph.m)


METHOD = Method(
    name="bitmaps",
    source="Bisson & Fatica",
    summary="support by bitmaps, weak edges removed until none is weak",
    planned=plan,
    prepared=prepare,
)
