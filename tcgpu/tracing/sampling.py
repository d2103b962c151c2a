"""Sample the tasks of a launch that is too large to trace whole.

The blocks of a launch take tasks in turns (see `task_loops`), and a block of a higher number takes a later task. A unit
is a task of one warp, or of a whole block where its threads wait for each other in a task. Units are drawn at random,
those that take long more often than others. How long a unit takes is guessed from the columns of the graph: there are
several guesses, and the one that agrees best with the first units is taken.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls

from tcgpu.engines.simulator import WARP, Dim3
from tcgpu.tracing.events import Events
from tcgpu.tracing.recorder import TaskSampler

PILOTS = 24  # units by which a guess is chosen
LARGEST = 2  # units that are always drawn of each guess: those that take longest
GROUPS, GROUP = 4, 4  # blocks whose first warps are traced together, and how many warps
MAX_TASKS = 1 << 31


@dataclass(frozen=True, eq=False)
class Sample:
    """Some units of a launch, traced: unit k of the sample is block k of `events`.

    Behind them come a block without a task that has the threads of a unit, a whole block without a task, and `groups`
    blocks in which GROUP warps ran together. A launch without a task loop has none of these: its units are its blocks.
    """

    events: Events
    units: int  # of the launch
    warps: int  # units of one task: the warps of a block, or 1 if a unit is a whole block
    chosen: np.ndarray  # the numbers of the units
    expected: np.ndarray  # the probability with which each of them was drawn
    guesses: tuple[np.ndarray, ...]  # of the time of every unit: by its steps, by its largest column or nonzero
    has_tasks: bool
    groups: int = 0
    queued: bool = False  # whether blocks take tasks off a queue


def whole(events):
    """The Sample of a launch that was traced whole: its units are its blocks."""
    blocks = 1 + int(events.block.max(initial=0))
    one = np.ones(blocks)
    return Sample(events, blocks, 1, np.arange(blocks), one, (one, one), has_tasks=False)


def sample(step, arrays, graph, *, lane_steps, seed=0):
    """Trace a sample of the units of a plan's step: about `lane_steps` steps of lanes, but at least two units."""
    args = step.kernel.typed([arrays[arg] if isinstance(arg, str) else arg for arg in step.args])
    queues = [arrays[arg] for arg in step.args if arg in ("queue", "queues")]
    sampler = TaskSampler(step.kernel.py_func, step.blocks, step.threads, args, step.shared, queues)
    tasks = count_tasks(sampler, step.blocks)
    if tasks == step.blocks:  # perhaps the kernel compares block numbers with the size of the grid
        one = np.uint32(1)
        sampler.recorder.gridDim = Dim3(np.uint32(min(MAX_TASKS - 1, 16 * (graph.m + graph.n + 1))), one, one)
        tasks = count_tasks(sampler, step.blocks)
    whole = tasks == 0 or sampler.meets or step.threads <= WARP
    warps = 1 if whole else -(-step.threads // WARP)
    units = max(1, tasks or step.blocks) * warps
    chosen, cost = [], []

    def run(unit):
        task, warp = divmod(int(unit), warps)
        before = sampler.lane_steps
        sampler.block(task, len(chosen), only=None if whole else (warp, warp + 1))
        chosen.append(int(unit))
        cost.append(sampler.lane_steps - before)

    random = np.random.default_rng(seed)
    for unit in random.permutation(units)[:PILOTS]:
        run(unit)
        if sum(cost) > lane_steps * (0.5 if len(cost) >= 6 else 2) and len(cost) > 1:
            break
    pilots, guessed = np.array(chosen), guesses(graph, units)
    agreed = {name: agreement(guess[pilots], cost) for name, guess in guessed.items()}
    steps = fitted(guessed[max(agreed, key=agreed.get)], pilots, cost)
    largest = guessed[max((name for name in guessed if "largest" in name), key=agreed.get)]
    drawn = chances(steps, max(0, lane_steps - sum(cost)))
    for guess in (steps, *(guess for name, guess in guessed.items() if "largest" in name)):
        drawn[np.argsort(guess)[-LARGEST:]] = 1
    more = np.setdiff1d(np.flatnonzero(random.random(units) < drawn), pilots)
    for unit in sorted(random.permutation(more), key=lambda unit: drawn[unit] < 1):
        if sum(cost) > 2 * lane_steps:
            break
        run(unit)
    groups = 0
    if tasks:
        sampler.block(tasks + 5, len(chosen), only=None if whole else (0, 1))
        sampler.block(tasks + 5, len(chosen) + 1)
        for task in [] if whole else random.permutation(tasks)[:GROUPS].tolist():
            sampler.block(task, len(chosen) + 2 + groups, only=(0, min(warps, GROUP)))
            groups += 1
    expected = 1 - (1 - min(1.0, pilots.size / units)) * (1 - drawn)
    chosen = np.array(chosen)
    return Sample(
        sampler.recorder.events(),
        units,
        warps,
        chosen,
        expected[chosen],
        (steps, largest),
        tasks > 0,
        groups,
        bool(queues),
    )


def count_tasks(sampler, blocks):
    """How many tasks a launch has: the least number whose block finds none. 0 if it has no task loop."""
    if not any(sampler.has(block) for block in {0, blocks - 1}):
        return 0
    low, high = 0, 1
    while high < MAX_TASKS and sampler.has(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sampler.has(middle) else (low, middle)
    return high


def agreement(guess, found):
    """The correlation of two lists of numbers; 0 if one of them is constant."""
    if np.ptp(guess) == 0 or np.ptp(found) == 0:
        return 0.0
    return float(np.corrcoef(np.asarray(guess, float), found)[0, 1])


def fitted(guess, chosen, found, weights=1.0):
    """a + b guess for all units, with a, b >= 0 so that it comes closest to what was `found` for those chosen."""
    scale = float(np.mean(guess[chosen])) or 1.0
    root = np.sqrt(weights) * np.ones(len(chosen))
    (a, b), _ = nnls(np.stack([root, root * guess[chosen] / scale], axis=1), root * np.asarray(found, float))
    return np.maximum(a + b / scale * guess.astype(float), 1e-9)


def chances(cost, total):
    """Probabilities of units to be drawn that grow with the root of their cost, and cost `total` together.

    Units that cost a third of `total` alone are not drawn.
    """
    if cost.sum() <= total:
        return np.ones(cost.size)
    low, high = 0.0, 1 / np.sqrt(cost.min())
    for _ in range(50):
        middle = (low + high) / 2
        drawn = np.where(cost > total / 3, 0.0, np.minimum(1, middle * np.sqrt(cost)))
        low, high = (middle, high) if drawn @ cost < total else (low, middle)
    return drawn


def guesses(graph, units):
    """Guesses of how long each unit takes: name -> an array of as many numbers as there are units.

    Units share the nonzeros, or the columns, of the graph evenly: from the first on or backwards, once or twice. A unit
    takes as long as all of its nonzeros or columns, or as the largest one.
    """
    found = {"even, largest": np.ones(units, np.float32)}
    for name, work in work_of_nonzeros(graph).items() if graph.m else ():
        columns = np.zeros(graph.n, np.float32)
        filled = np.flatnonzero(np.diff(graph.col_ptr))
        if filled.size:
            columns[filled] = np.add.reduceat(work, graph.col_ptr[filled])
        for what, values in (("nonzeros", work), ("columns", columns)):
            ends = np.linspace(0, values.size, units + 1).astype(np.int64)
            total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
            found[f"{name}, {what}"] = np.diff(total[ends]).astype(np.float32)
            found[f"{name}, {what}, largest"] = np.maximum.reduceat(values, np.minimum(ends[:-1], values.size - 1))
        found[f"{name}, columns backwards"] = found[f"{name}, columns"][::-1]
        twice = np.linspace(0, 2 * graph.n, units + 1).astype(np.int64)
        total = np.concatenate([[0.0], np.cumsum(np.tile(columns, 2), dtype=np.float64)])
        found[f"{name}, columns twice"] = np.diff(total[twice]).astype(np.float32)
        begins = np.minimum(twice[:-1], 2 * graph.n - 1)
        found[f"{name}, columns twice, largest"] = np.maximum.reduceat(np.tile(columns, 2), begins)
    return found


@lru_cache(maxsize=2)
def work_of_nonzeros(graph):
    """Guesses of the work that each nonzero makes, by name: that of a merge of two columns, and of a search."""
    lengths = np.diff(graph.col_ptr).astype(np.float32)
    rest = (graph.col_ptr[1:][graph.col_of] - np.arange(1, graph.m + 1)).astype(np.float32)
    of_row = lengths[graph.row_idx]
    few, many = np.minimum(of_row, rest), np.maximum(of_row, rest)
    return {"merge": of_row + rest + 1, "search": few * np.log2(2 + many) + 1}
