"""Sample the tasks of a launch that is too large to trace whole.

The blocks of a launch take tasks in turns (see `task_loops`), and a block of a higher number takes a later task. A unit
is a task of one warp, or of a whole block where its threads wait for each other in a task. Units are drawn at random,
those that take long more often than others.

What a unit does follows from the nonzeros or columns of the graph that it takes. A method declares how its tasks share
them and what takes time; of others, several ways are fitted to the first units, and the one that agrees best is taken.

Of a unit that takes too long to trace, rounds of loops are left out, if the loops count: those that are run stand for
others (see `recorder.Bursts`). If it still takes too long, it is cut: its threads end after a number of steps. It then
stands for the rest of itself, too. How much that is follows from the other units: by how often lanes access memory,
and, for the time, by how many steps the slowest warp takes.
"""

from dataclasses import dataclass

import numpy as np

from tcgpu.arrays import bincount, blocks, repeat
from tcgpu.engines.simulator import WARP, extent_of, simulated
from tcgpu.errors import MethodError
from tcgpu.insight.events import Events
from tcgpu.insight.recorder import SAMPLED, OneTaskBlock, Recorder, TaskFound
from tcgpu.kernels.device.bits import LONG_COLUMN
from tcgpu.suggest import check_known

PILOTS = 32  # units that are drawn first: half of them of every size, half by their work
CUTS = 4  # a unit is cut if it takes more than 1 / CUTS of the steps to trace,
UNCUT = 250_000  # and more than UNCUT steps
FULL_ROUNDS = 0, 16, 4, 1  # first rounds of loops that are all run: 0 for all rounds; the next one if that is too long
LAST_TRY = 4  # how many times as many steps a block may take when the most rounds are left out
LARGEST = 2  # units that are always drawn: those with most work in all, and those with the largest single item
BESIDE = 3  # blocks without a task that are traced, see `Sample`
GROUPS, GROUP = 4, 4  # blocks whose first warps are traced together, and how many warps
MAX_TASKS = 1 << 31
# how units may share the graph: each takes neighbouring nonzeros or columns
SHARINGS = ("nonzeros", "columns", "columns, backwards", "columns, long ones first")
# what may take them time: rows of a nonzero's column to look up, steps of a merge, steps of binary searches
WORK = ("lookups", "merge", "search", "lookups by search")
# what each lane of a warp may take for itself, in turns, of a task that has several columns
LANES = ("columns", "nonzeros")


@dataclass(frozen=True, eq=False)
class Sample:
    """Some units of a launch, traced: unit k of the sample is block k of `events`.

    Behind them come BESIDE blocks without a task: the threads of the first unit, those of another, a whole block. And
    `groups` blocks in which GROUP warps ran together. A launch without a task loop has none of these: its units are its
    blocks.
    """

    events: Events
    units: int  # of the launch
    warps: int  # units of one task: the warps of a block, or 1 if a unit is a whole block
    chosen: np.ndarray  # the numbers of the units
    expected: np.ndarray  # the probability with which each of them was drawn
    weight: np.ndarray  # of each step of a warp in `events`: for how many steps it stands
    group: np.ndarray  # of each step: the number of its rounds of loops, if others were left out; else 0
    scale: np.ndarray  # of each unit: how many times as many steps it takes as those that were traced stand for
    time_scale: np.ndarray  # of each unit: how many times as many steps its slowest warp takes
    features: tuple[np.ndarray, ...]  # of every unit, a row each: of all of its items, of the largest of them
    has_tasks: bool
    groups: int = 0
    queued: bool = False  # whether blocks take tasks off a queue
    sizes: dict | None = None  # of arrays: number of a memory -> bytes


def whole(events):
    """The Sample of a launch that was traced whole: its units are its blocks."""
    blocks = 1 + int(events.block.max(initial=0))
    one, of_steps = np.ones(blocks), np.ones(events.block.size)
    return Sample(
        events, blocks, 1, np.arange(blocks), one, of_steps, 0 * of_steps, one, one, (one[:, None], one[:, None]),
        has_tasks=False,
    )  # fmt: skip


class Units(Recorder):
    """The units of a launch: how to trace one, and what has been traced so far."""

    def __init__(self, step, arrays, graph, most_cost):
        """most_cost: steps of lanes in a unit, from which on its threads end."""
        super().__init__(step.blocks, step.threads, step.shared)
        self.args = step.kernel.typed(step.values(arrays))
        # of one element each, from which warps or blocks take the numbers of their tasks
        self.queues = [arrays[arg] for arg in step.args if arg in ("queue", "queues")]
        self.taken = 0  # how many tasks a block takes off a queue at a time: known when the first was found
        self.meets = False  # whether the threads of a block wait for each other in a task: known when one was found
        self.function = simulated(step.kernel.py_func, self)
        self.name(step.kernel.py_func, self.args)
        self.spent = 0  # steps of lanes
        self.tasks = self.count_tasks(step.blocks)
        if self.tasks == step.blocks:  # perhaps the kernel compares block numbers with the size of the grid
            self.gridDim = extent_of(min(MAX_TASKS - 1, 16 * (graph.m + graph.n + 1)))
            self.tasks = self.count_tasks(step.blocks)
        self.are_blocks = self.tasks == 0 or self.meets or step.threads <= WARP
        self.of_task = 1 if self.are_blocks else -(-step.threads // WARP)
        self.number = max(1, self.tasks or step.blocks) * self.of_task
        self.most_cost = most_cost
        self.most_steps = max(1, most_cost // (step.threads if self.are_blocks else WARP))
        self.chosen, self.cut = [], []
        self.least = {}  # of FULL_ROUNDS -> the least work of a unit that was too large with these
        self.cost, self.accesses, self.longest = [], [], []  # steps of lanes; accesses; steps of the slowest warp

    def count_tasks(self, blocks):
        """How many tasks the launch has: the least number whose block finds none. 0 if it has no task loop."""
        if not any(self.has(block) for block in {0, blocks - 1}):
            return 0
        low, high = 0, 1
        while high < MAX_TASKS and self.has(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.has(middle) else (low, middle)
        return high

    def has(self, task):
        try:
            self.run(task, probed=True)
        except TaskFound as found:
            (self.meets,) = found.args
            if task == 0:
                self.taken = max((int(queue[0]) for queue in self.queues), default=0)
            return True
        return False

    def run(self, task, only=(), most_steps=0, full_rounds=(0,), probed=False):
        """The block with this task, which has run.

        only: the first warp to run, and the one behind the last. most_steps: of a thread, which ends then; 0 for any
        number. full_rounds: of a loop that counts, from which on some are left out; 0 for none; the next one is tried
        if the block was cut, and the last one with LAST_TRY times the steps. probed: raise TaskFound when a task
        begins.
        """
        tries = list(full_rounds)
        while True:
            full = tries.pop(0)
            for queue in self.queues:
                queue[:] = task * self.taken
            most = most_steps * (LAST_TRY if full and not tries else 1)
            block = OneTaskBlock(task, self, self.function, self.args, only, most, full, probed)
            with np.errstate(**self.errors):
                while block.run():
                    pass
            if not (block.cut and tries):
                return block
            self.spent += WARP * sum(warp.steps for warp in block.warps)  # as if all lanes ran each step
            if not block.loops:  # no other try would be any different, but for the last one
                del tries[:-1]

    def record(self, block, number):
        """Keep what a block has done, as block `number`: its steps of lanes, accesses, steps of the slowest warp."""
        columns = self.columns
        block.number, steps, requests = number, len(columns["mask"]), len(columns["lanes"])
        self.finished(block)
        weight = np.array(columns["weight"][steps:])
        lanes = np.bitwise_count(np.array(columns["mask"][steps:]))
        self.spent += int(lanes.sum(dtype=np.int64))
        of_request = weight[np.array(columns["step"][requests:], int) - steps]
        accesses = np.array(columns["lanes"][requests:]) @ of_request
        return float(lanes @ weight), float(accesses), bincount(columns["warp"][steps:], weight, minlength=1).max()

    def trace(self, unit, work, whole=False):
        """Trace a unit; if it is large, leave out rounds of loops, and then cut it, unless it is to be traced whole.

        work: of the unit: another one of as much work is as large.
        """
        task, warp = divmod(int(unit), self.of_task)
        only = () if self.are_blocks else (warp, warp + 1)
        tries = tuple(full for full in FULL_ROUNDS if work < self.least.get(full, np.inf)) or FULL_ROUNDS[-1:]
        block = self.run(task, only, 0 if whole else self.most_steps, tries)
        for full in tries[: tries.index(block.full_rounds) + block.cut]:
            self.least[full] = work
        found = self.record(block, len(self.chosen))
        self.chosen.append(int(unit))
        self.cut.append(block.cut)
        for values, value in zip((self.cost, self.accesses, self.longest), found, strict=True):
            values.append(value)

    def fit(self, features, found):
        """As `fit`, to what was found for the units; those that were cut have at least as much."""
        units, found, known = np.array(self.chosen), np.array(found), ~np.array(self.cut)
        while True:
            weights, off = fit(features, units[known], found[known])
            more = ~known & (features[units] @ weights < found)
            if not more.any():
                return weights, off
            known |= more

    def cut_scale(self, features, found):
        """How many times as much each unit has as was found, if it was cut."""
        expected = features[self.chosen] @ self.fit(features, found)[0]
        return np.where(self.cut, np.maximum(1, expected / np.maximum(1, found)), 1.0)

    def trace_others(self, random):
        """Trace what a Sample has behind its units; returns the number of groups."""
        if not self.tasks:
            return 0
        first, other = ((), ()) if self.of_task == 1 else ((0, 1), (1, 2))
        for k, warps in enumerate((first, other, ())):
            self.record(self.run(self.tasks + 5, warps), len(self.chosen) + k)
        grouped = [] if self.are_blocks else random.permutation(self.tasks)[:GROUPS].tolist()
        for number, task in enumerate(grouped, len(self.chosen) + BESIDE):
            self.record(self.run(task, (0, min(self.of_task, GROUP)), self.most_steps), number)
        return len(grouped)


def sample(step, arrays, graph, *, lane_steps, tasks=None, seed=0):
    """Trace a sample of the units of a plan's step: about `lane_steps` steps of lanes, but at least one unit.

    tasks: how they share the graph, what takes them time, and what a lane takes, see `features`; None if not known.
    """
    random, units = np.random.default_rng(seed), Units(step, arrays, graph, max(UNCUT, lane_steps // CUTS))
    ways = list(features(graph, units.number, units.of_task, tasks))
    work = np.sum([sums[:, -1] / max(1, sums[:, -1].sum()) for sums, _ in ways], axis=0)
    pilots, of_size = of_every_size(work, PILOTS // 2, random)
    most = np.unique([ordered(each)[-LARGEST:] for _, largest in ways for each in (work, *largest.T[1:])])
    of_size[most] = 1
    for unit in np.setdiff1d(pilots, most)[ordered(work[np.setdiff1d(pilots, most)])]:
        units.trace(unit, work[unit], whole=max(units.cost, default=0) <= units.most_cost)  # until one is too large
    for unit in most:
        units.trace(unit, work[unit])
    pilots = units.chosen.copy()
    of_work = inclusion(work, min(units.number, PILOTS // 2))
    for unit in random.permutation(np.setdiff1d(np.flatnonzero(random.random(units.number) < of_work), pilots)):
        if units.spent > lane_steps:
            of_work[:] = 0
            break
        units.trace(unit, work[unit])
    sums, largest = min(ways, key=lambda way: units.fit(way[0], units.cost)[1])
    steps = expected_of(sums, units.fit(sums, units.cost)[0])
    paid, left = np.minimum(steps, units.most_cost), max(0, lane_steps - units.spent)
    of_cost = np.ones(steps.size) if paid.sum() <= left else inclusion(np.sqrt(steps), left, paid)  # by the root
    for most in (steps, *largest.T[1:]):
        of_cost[ordered(most)[-LARGEST:]] = 1
    more = np.setdiff1d(np.flatnonzero(random.random(units.number) < of_cost), units.chosen)
    for unit in sorted(random.permutation(more), key=lambda unit: of_cost[unit] < 1):
        if units.spent < 2 * lane_steps:
            units.trace(unit, work[unit])
    lane_each = not units.are_blocks and (sums.shape[1] == 1 or sums[:, 1].max() >= WARP)  # lanes with their own items
    of_slowest = largest if lane_each or tasks and len(tasks) > 2 else sums
    chosen = np.array(units.chosen)
    return Sample(
        units=units.number,
        warps=units.of_task,
        chosen=chosen,
        expected=np.maximum(
            1 - np.prod([1 - each[chosen] for each in (of_size, of_work, of_cost)], axis=0), 1 / units.number
        ),
        scale=units.cut_scale(sums, units.accesses),
        time_scale=units.cut_scale(of_slowest, units.longest),
        features=(sums, largest),
        has_tasks=units.tasks > 0,
        groups=units.trace_others(random),
        queued=bool(units.queues),
        sizes=units.sizes,
        events=units.events(),
        **{name: np.array(units.columns[name]) for name in SAMPLED},
    )


def ordered(values):
    """Places by their values; of equal ones the first: other sorts order these as the processor's instructions do."""
    return np.argsort(values, kind="stable")


def nnls(features, found):
    """The weights, none below 0, with which `features @ weights` is nearest to `found`, and how far off that is.

    By Lawson and Hanson: the weight that helps most is freed, then the best free ones are found, as far as none is
    below 0; until no other weight helps.
    """
    weights, free = np.zeros(features.shape[1]), np.zeros(features.shape[1], bool)
    least = 10 * max(features.shape) * np.finfo(float).eps * np.linalg.norm(features, 1)
    for _ in range(3 * weights.size):  # rounding may let one be freed again and again
        helps = np.where(free, -np.inf, features.T @ (found - features @ weights))
        if helps.max() <= least:
            break
        free[helps.argmax()] = True
        while free.any():
            best = np.zeros_like(weights)
            best[free] = np.linalg.lstsq(features[:, free], found, rcond=None)[0]
            below = free & (best <= 0)
            if not below.any():
                weights = best
                break
            share = weights[below] / (weights[below] - best[below])
            weights += share.min() * (best - weights)
            free[np.flatnonzero(below)[share == share.min()]] = False
            weights[~free] = 0
    return weights, float(np.linalg.norm(features @ weights - found))


def fit(features, chosen, found):
    """Weights of the features, none below 0, that come closest to what was `found` for the chosen units; how far off
    these are. Large units may differ more: by the root of what is found."""
    known = features[chosen].astype(float)
    scale = np.maximum(known.mean(axis=0), 1e-9)
    found = np.asarray(found, float)
    certain = 1 / np.sqrt(found + 0.1 * found.mean() + 1e-9)
    weights, off = nnls(known / scale * certain[:, None], found * certain)
    return weights / scale, off


def expected_of(features, weights):
    """What is expected of all units."""
    return np.maximum(features @ weights.astype(np.float32), 1e-9).astype(float)


def inclusion(size, total, costs=1):
    """Probabilities, proportional to `size` but at most 1, of units to be drawn, which cost `total` together."""
    low, high = 0.0, 1 / size[size > 0].min(initial=np.inf)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (np.minimum(1, middle * size) * costs).sum() < total else (low, middle)
    return np.minimum(1, high * size)


def of_every_size(size, number, random):
    """A unit of each of `number` classes of sizes, whose bounds are a geometric sequence; the probability of each unit
    to be drawn."""
    most = size.max() or 1
    least = size[size > 0].min(initial=most) / 2
    classes = (number * np.log2(np.maximum(size, least) / least) / np.log2(most / least)).astype(int)
    classes = np.minimum(classes, number - 1)
    order = np.argsort(classes, kind="stable")
    begins = np.flatnonzero(np.diff(classes[order], prepend=-1))
    counts = np.diff(begins, append=size.size)
    return order[begins + (random.random(begins.size) * counts).astype(int)], 1 / bincount(classes)[classes]


def features(graph, units, warps, tasks=None):
    """Yield (features of all items of each unit, features of its slowest lane) for each way to share the graph.

    tasks: one of SHARINGS, one of WORK, and one of LANES where lanes take turns: only that way; None for all of them.
    Features are 1, how many items a unit has, and the work of these items. The slowest lane has the largest item, or,
    if lanes take turns, the largest of each turn.
    """
    if graph.m == 0 or units == 1:
        tasks = None
    if tasks is None:
        ones = np.ones((units, 1), np.float32)
        yield ones, ones
    for name, names in zip(tasks or (), (SHARINGS, WORK, LANES), strict=False):
        check_known("kind of tasks", name, names, MethodError)
    if tasks and not may_share(graph, tasks[0], units, warps):  # another kernel of the method
        yield from features(graph, units, warps)
        return
    for sharing in (SHARINGS if tasks is None else tasks[:1]) if graph.m else ():
        if not may_share(graph, sharing, units, warps):
            continue
        size, twice = graph.n if "columns" in sharing else graph.m, "long" in sharing
        ends = shares(size, units // (1 + twice), warps)
        ends = np.concatenate([ends[:-1], graph.n + ends]) if twice else ends
        ends = np.append(ends, repeat(ends[-1], units + 1 - ends.size))
        items = items_of(graph, sharing, WORK if tasks is None else tasks[1:2])
        sums, largest = of_units(items, ends)
        if tasks and len(tasks) > 2:
            largest = of_turns(graph, ends, units, work_of_nonzeros(graph, tasks[1]), tasks[2])
        yield sums, largest


def may_share(graph, sharing, units, warps):
    """Whether this number of units may have the graph's nonzeros or columns: none has less than one."""
    size, times = graph.n if "columns" in sharing else graph.m, 2 if "long" in sharing else 1
    return times <= units <= times * (size + warps)


def items_of(graph, sharing, kinds):
    """Yield an array a feature: of each nonzero or column, in turn, its nonzeros, then its work of each kind."""
    for kind in (None, *kinds):
        if "columns" not in sharing:
            yield np.ones(graph.m, np.float32) if kind is None else work_of_nonzeros(graph, kind)
            continue
        lengths = graph.column_lengths
        items = lengths.astype(np.float32) if kind is None else added(graph.col_ptr, work_of_nonzeros(graph, kind))
        if "long" in sharing:
            items = np.concatenate([items * (lengths >= LONG_COLUMN), items * (lengths < LONG_COLUMN)])
        yield items[::-1] if "backwards" in sharing else items


def added(ends, values, of=np.float32, **options):
    """The sums of the values between each two of `ends`, where there are any; 0 where there are none."""
    found = np.zeros(ends.size - 1, of)
    filled = np.flatnonzero(np.diff(ends))
    found[filled] = np.add.reduceat(values, ends[filled].astype(np.intp), **options)
    return found


def shares(items, units, warps):
    """Where the items of each unit begin, and where those of the last end: each has as many, or nearly."""
    for each in (1, WARP) if warps > 1 else ():
        if -(-items // (each * warps)) * warps == units:
            return np.minimum(np.arange(units + 1) * each, items)
    each = -(-items // units)
    if -(-items // each) > units - warps:  # the last block may have fewer
        return np.minimum(np.arange(units + 1) * each, items)
    return np.linspace(0, items, units + 1).astype(np.int64)


def of_units(items, ends):
    """The features of units: 1, how many items they have, and what the items have; of all items, and the largest.

    items: an array a feature, for one at a time to be in memory. ends: the first item of each unit, and the last's end.
    """
    counts = np.diff(ends)
    ones = np.ones(counts.size, np.float32)
    sums, largest = [ones, counts.astype(np.float32)], [ones, np.minimum(1, counts).astype(np.float32)]
    for item in items:
        sums.append(added(ends, item, dtype=float))
        largest.append(np.maximum.reduceat(item, np.minimum(ends[:-1], item.size - 1).astype(np.intp)))
    return np.stack(sums, axis=1), np.stack(largest, axis=1)


def of_turns(graph, ends, units, work, lanes):
    """The features of units whose lanes take turns: 1, how many turns, and the most work of a lane in each of them.

    ends: the first column of each unit, and the last column's end. lanes: "columns" if a lane takes the nonzeros of a
    column of its own, one a turn; "nonzeros" if neighbouring lanes take neighbouring nonzeros of the unit.
    """
    index = np.int32 if graph.m < 2**31 else np.int64
    first = graph.col_ptr[ends].astype(index)
    unit = repeat(np.arange(units, dtype=np.int32), np.diff(first))
    begins = graph.col_ptr[:-1].astype(index)[graph.col_of] if lanes == "columns" else first[unit]
    turn = np.subtract(np.arange(graph.m, dtype=index), begins, out=begins)
    if lanes == "nonzeros":
        turn //= WARP
    turns = np.zeros(units, index)
    np.maximum.at(turns, unit, turn)
    turns[np.diff(first) > 0] += 1
    begins = np.append(0, np.cumsum(turns, dtype=np.int64))
    turn += begins[:-1].astype(index)[unit]  # of all turns
    most = np.zeros(begins[-1], np.float32)
    np.maximum.at(most, turn, work)
    return np.stack([np.ones(units), turns, added(begins, most, float, dtype=float)], axis=1)


def work_of_nonzeros(graph, kind):
    """How much work of a kind, one of WORK, each nonzero is (float32)."""
    lengths, work = graph.column_lengths.astype(np.float32), np.empty(graph.m, np.float32)
    for block in blocks(graph.m):
        of_row, ends = lengths[graph.row_idx[block]], graph.col_ptr[1:][graph.col_of[block]]
        rest = (ends - np.arange(block.start + 1, block.stop + 1)).astype(np.float32)
        if kind == "lookups":
            work[block] = of_row
        elif kind == "merge":
            work[block] = of_row + rest
        elif kind == "search":
            work[block] = np.minimum(of_row, rest) * np.log2(2 + np.maximum(of_row, rest))
        else:
            work[block] = of_row * np.log2(2 + rest)
    return work
