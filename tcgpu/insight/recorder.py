"""Run a kernel as Python and record what its lanes do, as Events.

A `TracedLane` knows where a thread is: at which statement, in which round of which loops, in which calls. Lanes of a
warp that come to a statement in the same rounds of the same loops, in the same calls, run it in one *step*, and what
they access at one place in it is one *request*. So does the hardware: a warp whose lanes diverge runs one branch after
the other, and goes on together where they meet. A loop goes on with the lanes that have another round; the others wait.

A lane that has read a value by the same expression before, in the same round and on its way here, has *kept* it in a
register, and makes no second request, unless something was written to that memory (global or shared) since, or the lane
has waited for others.

A compiler does more, and then a trace counts what is written and not what runs: it reads two neighbouring words at
once, moves a load into the only branch that needs it, and unrolls loops, whose rounds then diverge.

Blocks take turns: the next to run, up to its next wait, is the one that has done the fewest steps. So blocks that take
tasks from a queue share them as on a GPU, where all blocks run at the same time.
"""

from array import array as typed_array
from itertools import islice

import numpy as np

from tcgpu.engines.simulator import WARP, ThreadEnds
from tcgpu.insight.events import MAX_WARPS, MEMORY_SHIFT, SHARED, Events
from tcgpu.insight.lanes import InstrumentedBlock, InstrumentedCuda, Lane
from tcgpu.insight.rewriting import SITES

COLUMNS = {  # of Events -> type code of the standard library's `array`
    "block": "i", "warp": "h", "step_site": "i", "mask": "I", "in_flight": "b", "step": "q", "site": "i", "size": "B",
    "lanes": "B", "lane": "B", "address": "q",
}  # fmt: skip
SAMPLED = {"weight": "d", "group": "q"}  # of each step, where rounds of loops are left out: see `OneTaskLane`


class Step(dict):
    """What the lanes of a warp did at one place: number of a site, or of a round -> Step or request.

    Sorted by these numbers it is in the order in which the warp does it. A request is a tuple: the bytes of an element,
    the lanes, and the address that each of them accesses.
    """

    __slots__ = ("bursts", "lanes")

    def __missing__(self, number):
        step = self[number] = Step()
        step.lanes = 0  # those that ran it, as bits; 0 if it is a loop, a round or a call
        step.bursts = None  # of a loop of which rounds are left out: its Bursts
        return step


class Warp:
    def __init__(self):
        self.done = Step()
        self.steps = 0
        self.kept = 0


class TracedLane(Lane):
    """Where one thread is and what it does there."""

    def __init__(self, block, number):
        super().__init__(block, number)
        self.of_warp, self.bit = block.warps[self.warp], 1 << self.lane
        self.inside = self.of_warp.done  # the round or call that the thread is in
        self.here = None  # the step that it runs
        self.loops = []  # around it in this call: [what the loop is inside of, the loop, number of the round]
        self.registers = {}, {}  # global, shared: (expression, id of the round or call) -> (address, branches)

    def step(self, site):
        self.here = here = self.inside[site]
        if not here.lanes:
            self.of_warp.steps += 1
        here.lanes |= self.bit

    def enter(self, loop):
        self.loops.append([self.inside, self.inside[loop], -1])

    def again(self, site):
        loop = self.loops[-1]
        loop[2] += 1
        self.inside = loop[1][loop[2]]
        self.step(site)
        return True

    def rounds(self, site, items):
        for item in items:
            TracedLane.again(self, site)
            yield item

    def leave(self):
        self.inside = self.loops.pop()[0]

    def call(self, site, function, /, *args, **named):
        caller = self._enter_call(site)
        result = function(*args, **named)
        self.inside, self.here, self.loops = caller
        return result

    def call_waiting(self, site, function, /, *args, **named):
        caller = self._enter_call(site)
        result = yield from function(*args, **named)
        self.inside, self.here, self.loops = caller
        return result

    def _enter_call(self, site):
        caller = self.inside, self.here, self.loops
        self.inside, self.loops = self.here[site], []
        return caller

    def waited(self, answer):
        for registers in self.registers:
            registers.clear()  # other threads may have written to memory
        return answer

    def reads(self, site, known, offset, index, changed):
        address = known.begin + offset
        if not changed:
            self.launch.index_types.setdefault(site, type(index))
            branches = SITES[site].branches
            registers = self.registers[address >> MEMORY_SHIFT == SHARED]
            register = SITES[site].expression, id(self.inside)
            kept = registers.get(register)
            if kept and kept[0] == address and branches[: len(kept[1])] == kept[1]:
                self.of_warp.kept += 1
                return
            registers[register] = address, branches
        self._request(site, known.bytes, address)

    def wrote(self, site, kind, known, offset, index, old, new):
        address = known.begin + offset
        self.launch.index_types.setdefault(site, type(index))
        self.registers[address >> MEMORY_SHIFT == SHARED].clear()
        self._request(site, known.bytes, address)

    def _request(self, site, size, address):
        request = self.here.get(site)
        if request is None:
            request = self.here[site] = size, [], []
        request[1].append(self.lane)
        request[2].append(address)


class TaskFound(Exception):
    """A block that was only to show whether it has a task has begun one."""


class Bursts:
    """Which rounds of a loop are run: the first `full`, and of those behind them half, a quarter and so on.

    They are divided into groups of 2, 4, 8, ... bursts of `burst` rounds, `full` / 2 rounds of each size; of a group, a
    burst is run that is drawn at random. So a round of it stands for as many as the group has bursts.
    """

    def __init__(self, full, burst, seed):
        self.full, self.burst, self.seed = -(-full // burst) * burst, burst, seed
        self.groups = max(1, self.full // (2 * burst))  # of a size

    def weight(self, number):
        """How many rounds the round of this number stands for."""
        if number < self.full:
            return 1
        return 1 << ((number - self.full) // (self.groups * self.burst) + 2).bit_length() - 1

    def after(self, number):
        """The round that is run after the one of this number."""
        following = number + 1
        if following < self.full or following % self.burst:
            return following
        size = self.weight(number)
        begin = self.full + self.groups * self.burst * (size - 2)  # of the groups of this size
        group = (number - begin) // (self.burst * size) + 1 if size > 1 else self.groups
        if group == self.groups:
            begin, group, size = self.full + self.groups * self.burst * (2 * size - 2), 0, 2 * size
        drawn = hash((self.seed, size, group)) % size
        return begin + self.burst * (size * group + drawn)


class OneTaskLane(TracedLane):
    """A thread that runs one round of its task loop, as one in a grid that has a block for every task.

    Of loops that count, it runs all rounds, or the first `full_rounds` of its block and some of the others: see Bursts.
    It ends after `most_steps` steps of its block, which is cut then.

    It may have a block number past those of the grid. Where that gives an index past an array's end, the index goes on
    from the array's beginning: a block's own piece of memory is that of another block, which does not run.
    """

    def __init__(self, block, number):
        super().__init__(block, number)
        self.steps_left = block.most_steps
        self.entered = 0  # loops that count

    def step(self, site):
        super().step(site)
        self.steps_left -= 1
        if self.steps_left == 0:
            self.block.cut = True
            raise ThreadEnds

    def enter(self, loop):
        super().enter(loop)
        block, node, site = self.block, self.loops[-1][1], SITES[loop]
        if site.burst:
            self.entered += 1
            block.loops = True
            if not node and block.full_rounds:
                # all warps run the same rounds, so that the slowest is not the one that drew those that take long;
                # where they wait for each other, they have to
                seed = block.seed, site.line, 0 if site.barrier else self.entered
                node.bursts = Bursts(block.full_rounds, site.burst, seed)

    def rounds_on(self):
        _, loop, number = self.loops[-1]
        if loop.bursts is None:
            return 1
        more = loop.bursts.after(number) - number
        self.loops[-1][2] += more - 1
        return more

    def task_again(self, site):
        return self.again(site) and self.loops[-1][2] == 0

    def task_rounds(self, site, items):
        return self.rounds(site, islice(items, 1))

    def begin_task(self, meets):
        if self.block.probed:
            raise TaskFound(meets)

    def load(self, site, array, index, changed=False):
        return super().load(site, array, _wrapped(array, index), changed)

    def store(self, site, array, index, value):
        super().store(site, array, _wrapped(array, index), value)

    def atomic(self, site, operation, array, index, *values):
        return super().atomic(site, operation, array, _wrapped(array, index), *values)


def _wrapped(array, index):
    if type(array) is not np.ndarray or type(index) is tuple or 0 <= index < array.shape[0]:
        return index  # the length may be no number of the index's type, such as 65,536 of uint16
    return index % array.shape[0]


class TracedBlock(InstrumentedBlock):
    """A block that runs, and what its warps have done."""

    lane_kind = TracedLane

    def __init__(self, number, recorder, run, args, only=(), most_steps=0, full_rounds=0, probed=False):
        """only: the first warp that runs, and the one behind the last; without it, all run. probed: whether a task that
        begins is to raise TaskFound."""
        self.most_steps, self.cut, self.probed = most_steps, False, probed  # see `OneTaskLane`
        self.full_rounds, self.seed = full_rounds, (number, only)
        self.loops = False  # whether a loop that counts was entered
        self.warps = [Warp() for _ in range(-(-int(recorder.blockDim.x) // WARP))]
        threads = slice(*(WARP * warp for warp in only or (0, MAX_WARPS)))
        super().__init__(number, recorder, run, args, only=threads)

    @property
    def clock(self):
        """How many steps the device has done when this block has done its own so far."""
        return self.begun + max(warp.steps for warp in self.warps)


class OneTaskBlock(TracedBlock):
    lane_kind = OneTaskLane


class Recorder(InstrumentedCuda):
    """Collects what the blocks of a launch do."""

    block_kind = TracedBlock

    def __init__(self, blocks, threads, shared):
        super().__init__(blocks, threads, shared)
        self.columns = {name: typed_array(code) for name, code in (COLUMNS | SAMPLED).items()}
        self.groups = 0  # of rounds that stand for others
        self.kept = 0
        self.index_types = {}  # number of a site -> the type of its index

    def finished(self, block):
        """Add what a block has done to the columns."""
        columns = self.columns
        for number, warp in enumerate(block.warps):
            before = len(columns["mask"])
            self._collect(warp.done)
            steps = len(columns["mask"]) - before
            columns["block"].extend([block.number] * steps)
            columns["warp"].extend([number] * steps)
            self.kept += warp.kept
        # it refers to itself in cycles, and the garbage collector is off
        del block.warps, block.threads, block.ready, block.waiting

    def _collect(self, inside, step=None, weight=1, group=0, in_flight=False):
        """Add what was done in a step, round or call, in the order in which it ran.

        step: the number of the step. weight: for how many of its like it stands. group: the number of its burst of
        rounds, if others were left out. in_flight: as a Site's.
        """
        columns = self.columns
        for site in sorted(inside):
            found = inside[site]
            if type(found) is tuple:
                size, lanes, addresses = found
                for name, value in (("step", step), ("site", site), ("size", size), ("lanes", len(lanes))):
                    columns[name].append(value)
                columns["lane"].extend(lanes)
                columns["address"].extend(addresses)
            elif found.lanes:
                columns["step_site"].append(site)
                columns["mask"].append(found.lanes)
                columns["in_flight"].append(in_flight or SITES[site].in_flight)
                columns["weight"].append(weight)
                columns["group"].append(group)
                self._collect(found, len(columns["mask"]) - 1, weight, group, in_flight)
            elif SITES[site].kind == "call":
                self._collect(found, step, weight, group, in_flight or SITES[site].in_flight)
            else:
                for number in sorted(found):
                    share = found.bursts.weight(number) if found.bursts else 1
                    if share > 1 and number % found.bursts.burst == 0:
                        self.groups += 1
                    of_round = self.groups if share > 1 else group
                    self._collect(found[number], step, weight * share, of_round, in_flight)

    def events(self):
        columns = {name: np.array(self.columns[name]) for name in COLUMNS}
        numbers = np.unique(np.concatenate([columns["step_site"], columns["site"]])).tolist()
        sites = {number: SITES[number] for number in numbers}
        signed = {site for site, kind in self.index_types.items() if not issubclass(kind, np.unsignedinteger)}
        memories = ["shared memory", *(", ".join(names) or "local memory" for names in self.names.values())]
        return Events(self.blockDim.x, memories, sites, signed, self.kept, **columns)
