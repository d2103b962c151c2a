"""Find the faults of a kernel while it runs in the simulator: what a GPU would do without a word.

`check_launch` returns a `Fault` for each thing that a kernel must not do; docs/simulator.md lists their kinds.
"""

import linecache
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from types import SimpleNamespace

import numpy as np

from tcgpu.arrays import repeat
from tcgpu.engines.simulator import BLOCK, WARP, numpy_type
from tcgpu.engines.statements import array_of, guards, is_update, may_not_wrap
from tcgpu.insight.events import MEMORY_SHIFT, SHARED
from tcgpu.insight.lanes import InstrumentedCuda, owner_of
from tcgpu.insight.mistakes import explained, sentence
from tcgpu.insight.races import Accesses, first_race, is_known, unordered
from tcgpu.insight.recorder import Recorder, TracedBlock, TracedLane
from tcgpu.insight.rewriting import LANE, SITES, Function, Site
from tcgpu.insight.shadow_memory import CheckedBlock, CheckedLane, Written
from tcgpu.kernels import Plan, Run, Scan, Sized, Step
from tcgpu.progress import part

MOST_ROUNDS = 20_000_000  # of all loops of a thread, before it is taken for endless
VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


@dataclass(frozen=True)
class Fault:
    """Something that a kernel must not do. `str` tells it in a sentence.

    kind: as docs/simulator.md names them. kernel: its name. function, line, source: the place; a line of the file.
    block, thread: which one did it, or the first of them. array, index: what it accessed, if it did. says: what is
    wrong there.
    """

    kind: str
    kernel: str
    function: str
    line: int
    source: str
    block: int
    thread: int
    says: str
    array: str = ""
    index: int | tuple | None = None
    ends: bool = False  # whether the launch ended with it

    @property
    def lane(self) -> int:
        """The number of the thread in its warp."""
        return self.thread % WARP

    def __str__(self):
        return sentence(self.kernel, self.function, self.line, self.source, self.says)


class Ended(Exception):
    """Ends a launch; its argument is the Fault."""


class Checker(InstrumentedCuda):
    """Looks for the faults of one launch."""

    block_kind = CheckedBlock

    def __init__(self, blocks, threads, shared, kernel, written, most_rounds=MOST_ROUNDS):
        super().__init__(blocks, threads, shared)
        self.kernel, self.written, self.most_rounds = kernel, written, most_rounds
        self.errors = self.errors | {"over": "call", "call": self.overflow}
        self.local = SimpleNamespace(array=self.local_array)
        self.smallest, self.widths = {}, {}  # number of a memory -> log2 of bytes of its elements
        self.faults = {}  # what and where -> Fault
        self.messages = {}  # block of a shared element or None, address, block it is for or None -> what is known
        self.of_blocks = []  # (number of a block, what it accessed in global memory)

    def threadfence(self):
        self.thread.fence()

    threadfence_system = threadfence

    def threadfence_block(self):
        self.thread.fence(self.block.number)

    def local_array(self, shape, dtype):
        array = np.empty(shape, numpy_type(dtype))
        self.block.written[id(array)] = bytearray(array.nbytes)
        self.block.layout(array)  # which keeps it alive
        return array

    def layout(self, array, block):
        known = super().layout(array, block)
        owner, number, size = owner_of(array), known.begin >> MEMORY_SHIFT, max(0, array.itemsize - 1).bit_length()
        if number == SHARED:
            known.written = block.written.setdefault(id(owner), bytearray(owner.nbytes))
        elif block is not None and id(owner) in block.written:
            known.logged, known.written = False, block.written[id(owner)]
        else:
            known.written = self.written.of(owner)
        known.size = size << 1
        self.widths.setdefault(number, set()).add(size)
        if len(self.widths[number]) > 1:
            self.smallest[number] = min(self.widths[number])
        return known

    def name_of(self, memory, site):
        """The name of the array in a memory; of one that the kernel was not called with, as a site has it."""
        return next(iter(self.names.get(memory, ())), "") or array_of(site)

    # ---------------------------------------------------------------------------------------------------------- faults

    def end(self, *what):
        """Report a fault and end the launch."""
        raise Ended(self.report(*what, ends=True))

    def report(self, kind, site, lane, says, array="", index=None, key=None, ends=False):
        """Keep a fault, unless it is known; returns it."""
        function, line = site.function, site.line
        source = linecache.getline(function.file, line).strip()
        who = lane.block_number, lane.number
        fault = Fault(kind, self.kernel, function.name, line, source, *who, says, array, index, ends)
        place = function.file, function.name, line, site.kind, site.expression
        return self.faults.setdefault((kind, place, key), fault)

    def element(self, site, array, index):
        """An element in words, and the name of its array."""
        known = self.block.arrays[id(array)]
        memory = known.begin >> MEMORY_SHIFT
        source = array_of(site)
        name = self.name_of(memory, site)
        where = " in shared memory" if memory == SHARED else "" if known.logged else " in local memory"
        also = f" ({source} there)" if name != source else ""
        return name, f"{name}[{_inside(index)}]{where}{also}"

    def outside(self, lane, number, array, index):
        site = SITES[number]
        name, element = self.element(site, array, index)
        verb = VERBS[site.kind]
        sizes = " x ".join(f"{length:,}" for length in array.shape)
        says = f"{lane} {verb} {element}, out of bounds: the array has {sizes} element{'s' * (sizes != '1')}"
        if owner_of(array) is self.block.shared.dynamic:
            says += f", since the launch asks for {self.dynamic_bytes:,} bytes of shared memory"
        if min(index if isinstance(index, tuple) else (index,)) < 0:
            why = "an index below 0, which NumPy and Numba count from the end"
            says = f"{lane} {verb} {element}, out of bounds: {why}"
        self.end("bounds", site, lane, says, name, index)

    def unwritten(self, lane, number, array, index):
        site = SITES[number]
        index = tuple(map(int, index)) if isinstance(index, tuple) else int(index)
        name, element = self.element(site, array, index)
        says = f"{lane} {VERBS[site.kind]} {element}, uninitialized: nothing was written to it"
        self.report("unwritten", site, lane, says, name, index)

    def endless(self, lane, number):
        says = f"{lane} has gone round its loops {lane.gone_round - 1:,} times, and is taken for endless"
        self.end("endless", SITES[number], lane, says)

    def not_in_mask(self, lane, barrier):
        says = f"{lane} waits with the mask {barrier.mask:#x}, in which its own lane {lane.lane} is not"
        self.end("barrier", SITES[lane.at_site], lane, says)

    def passed(self, barrier_of):
        block, lanes = self.block, list(barrier_of)
        barrier = next(iter(barrier_of.values()))
        other = next((lane for lane in lanes if lane.at_site != lanes[0].at_site), None)
        if other:
            here, there = (SITES[lane.at_site] for lane in (lanes[0], other))
            says = f"{lanes[0]} waits here, but {other} waits at line {there.line}, {there.expression}"
            self.report("barrier", here, lanes[0], f"{says}: all must wait at the same place")
        if barrier.mask is not BLOCK:
            if barrier.orders:
                block.passed_warp(lanes)
            return
        if len(lanes) < len(block.threads):
            gone = next(lane for lane in block.threads if lane not in barrier_of)
            site = SITES[lanes[0].at_site]
            must = f"all threads of a block must reach {site.expression}"
            self.report("barrier", site, lanes[0], f"{lanes[0]} waits here, but {gone} has returned: {must}")
        block.passed_block()

    def stuck(self, waiting):
        lanes = [next(iter(barrier_of)) for barrier_of in waiting]
        first, *others = lanes
        sites = [SITES[lane.at_site] for lane in lanes]
        missing = f"{first} waits for ever at {sites[0].expression}, which others that it waits for never reach"
        if others:
            missing += f": {others[0]} waits at line {sites[1].line}, {sites[1].expression}"
        self.end("barrier", sites[0], first, missing)

    def overflow(self, *_):
        if any(fault.kind == "unwritten" for fault in self.faults.values()):
            return  # of arbitrary values
        frame = sys._getframe(1)
        while frame is not None and LANE not in frame.f_locals:
            frame = frame.f_back
        if frame is not None and may_not_wrap(frame):
            site = site_of("overflow", frame.f_code, frame.f_lineno)
            self.report("overflow", site, self.thread, f"in {self.thread} a result does not fit its integer type")

    def failed(self, error):
        """A Python exception in the kernel; raises it again if it is not from there."""
        trace, site, frame = error.__traceback__, None, None
        while trace is not None:
            if LANE in trace.tb_frame.f_locals:
                frame = trace.tb_frame
                site = site_of("error", frame.f_code, trace.tb_lineno)
            trace = trace.tb_next
        if site is None:
            raise error
        kind, says = "error", f"in {self.thread}: {explained(error, frame)}"
        if isinstance(error, OverflowError):
            what = str(error).replace("Python integer ", "")
            kind, says = "overflow", f"in {self.thread} a value does not fit the type that it is written as: {what}"
        self.report(kind, site, self.thread, says, ends=True)

    # ----------------------------------------------------------------------------------------------------- the launch

    def simulate(self, function, args, at_a_time=64):
        try:
            super().simulate(function, args, at_a_time)
        except Ended:
            pass
        except Exception as error:
            self.failed(error)
        for _, _, block in sorted(self.running, key=itemgetter(1)):  # those that a fault ended
            self.keep_log(block)
        self.look_for_races_between_blocks()

    # ----------------------------------------------------------------------------------------------------------- races

    def finished(self, block):
        self.keep_log(block)
        super().finished(block)

    def keep_log(self, block):
        """Look for races between the threads of a block; keep what it accessed in global memory."""
        accesses, intervals = block.log(), block.intervals
        number, of_block, of_warp = np.array([(each.thread.number, each.phase, each.of_warp) for each in intervals]).T
        found, first = accesses.sharing(accesses.address, number)
        for phases in (of_block, of_warp):
            groups = np.zeros(found.address.size, np.int64)
            groups[first] = 1
            groups = np.cumsum(groups)
            own = phases[found.interval]
            if phases is of_warp:  # which tells nothing where threads of other warps take part
                warp = number[found.interval] // WARP
                size = np.diff(first, append=groups.size)
                alone = [repeat(reduce.reduceat(warp, first), size) for reduce in (np.minimum, np.maximum)]
                own = np.where(alone[0] == alone[1], own, 0)
            found, first = found.sharing(groups * (own.max(initial=0) + 1) + own, number)
            if first.size == 0:
                break
        self.races(found, first, lambda one, two: unordered(intervals[one], intervals[two]), intervals, block)
        in_global = accesses[accesses.address >> MEMORY_SHIFT != SHARED].distinct()
        own = [intervals[k] for k in in_global.interval.tolist()]
        self.of_blocks.append((block.number, in_global, own))

    def look_for_races_between_blocks(self):
        if len(self.of_blocks) < 2:
            return
        found = (found for _, found, _ in self.of_blocks)
        columns = Accesses(*map(np.concatenate, zip(*found, strict=True)))
        intervals = [interval for *_, own in self.of_blocks for interval in own]
        columns = columns._replace(interval=np.arange(len(intervals)))  # here each access has its own
        columns = columns.in_units(self.smallest)
        blocks = repeat([number for number, *_ in self.of_blocks], [len(own) for *_, own in self.of_blocks])
        found, first = columns.sharing(columns.address, blocks)

        def are_unordered(one, two):
            if blocks[one] == blocks[two]:
                return False
            one, two = intervals[one], intervals[two]
            return not is_known(one, two) and not is_known(two, one)

        self.races(found, first, are_unordered, intervals)

    def races(self, found, first, are_unordered, intervals, block=None):
        """Report two accesses of each group that race; first: where the groups begin."""
        known = set()
        for begin, end in pairwise([*first.tolist(), found.address.size]):
            rows = list(zip(*(column[begin:end].tolist() for column in tuple(found)), strict=True))
            sites = frozenset(row[5] for row in rows)
            if sites in known:
                continue
            race = first_race(rows, are_unordered)
            if race:
                known.add(sites)
                one, two = (intervals[row[6]].thread for row in race)
                self.race(race[0], one, race[1], two, block)

    def race(self, one, thread, two, other, block):
        """Report a race of two accesses; each is a row of Accesses."""
        here, there = SITES[one[5]], SITES[two[5]]
        if there.kind != "load" and here.kind == "load" and here.line != there.line:
            one, here, there, thread, other = two, there, here, other, thread  # the write first
        if {here.kind, there.kind} == {"load", "atomic"} and guards(here, there):
            return
        same = (here.function, here.line) == (there.function, there.line)
        if "atomic" in (here.kind, there.kind):
            missing = "one of them is not atomic"
        elif same and is_update(here):
            missing = "so an update is lost; it lacks an atomic operation such as cuda.atomic.add"
        elif thread.block_number != other.block_number:
            missing = "and blocks do not wait for each other: it lacks an atomic operation, or a launch in between"
        elif same and here.kind == there.kind == "store":
            missing = "so one of the two values is lost; it lacks an atomic operation, or an element for each thread"
        elif thread.warp == other.warp:
            missing = "with no cuda.syncthreads in between, or cuda.syncwarp: they are lanes of a warp"
        else:
            missing = "with no cuda.syncthreads in between"
        name, index = self.element_at(one, here, block)
        where = " in shared memory" if block and one[0] >> MEMORY_SHIFT == SHARED else ""
        element = f"{name}[{_inside(index)}]{where}"
        if same and is_update(here):
            says = f"{thread} and {other} both read and write {element}"
        else:
            at_line = "" if same else f" at line {there.line}"
            says = f"{thread} {VERBS[here.kind]} {element}, {other} {VERBS[there.kind]} it{at_line}"
        self.report("race", here, thread, f"a race: {says}, {missing}", name, index, key=there.line)

    def element_at(self, access, site, block):
        """The name of an array, and the index of the element that was accessed."""
        address, size, *_ = access
        layouts = self.arrays if block is None else block.arrays
        inside = [each for each in layouts.values() if 0 <= address - each.begin < each.array.nbytes]
        inside.sort(key=lambda each: each.size != size << 1)  # first those with elements of this size
        if not inside:
            return array_of(site), 0
        known = inside[0]
        number = (address - known.begin) // known.bytes
        shape = known.array.shape
        index = number if len(shape) == 1 else tuple(int(k) for k in np.unravel_index(number, shape))
        return self.name_of(address >> MEMORY_SHIFT, site), index


def site_of(kind, code, line):
    return Site(kind, Function(code.co_name, code.co_firstlineno, (), code.co_filename), line)


def _inside(index):
    """An index as it is written in brackets."""
    return ", ".join(map(str, index)) if isinstance(index, tuple) else str(index)


class CheckedRecorder(Checker, Recorder):
    """Records a launch, and looks for its faults."""

    class block_kind(CheckedBlock, TracedBlock):
        class lane_kind(CheckedLane, TracedLane):
            pass


def check_launch(function, blocks, threads, args, *, shared=0, written=None, most_rounds=MOST_ROUNDS) -> list[Fault]:
    """Run the Python function of a kernel on NumPy arrays, which it changes; returns its faults.

    blocks, threads: a number, or a tuple with one for each dimension. shared: bytes of dynamic shared memory of a
    block. written: a Written, which knows what earlier launches have written; without it, all arrays are.
    """
    checker = Checker(blocks, threads, shared, function.__name__, written or Written(), most_rounds)
    checker.simulate(function, args)
    return list(checker.faults.values())


class CheckedRun(Run):
    """A Run in the simulator that knows what its launches have written so far, and their faults."""

    def __init__(self, plan: Plan, most_rounds: int = MOST_ROUNDS) -> None:
        """most_rounds: of the loops of a thread, before it is taken for endless."""
        super().__init__(replace(plan, setup=()))
        self.most_rounds = most_rounds
        self.faults: list[Fault] = []
        self.steps = [*plan.setup, *plan.steps]
        self.allocate()
        self.written = Written(self.arrays[name] for name, (_, _, fill) in plan.created.items() if fill is None)

    def launch_of(self, step: Step, kind: type[Checker] = Checker) -> Checker:
        """What runs a step's kernel and looks for faults."""
        shape = step.blocks, step.threads, step.shared
        return kind(*shape, step.kernel.__name__, self.written, self.most_rounds)

    def run(self, step: Step | Scan | Sized) -> None:
        """Run a step of the plan; its faults are added to `faults`."""
        if isinstance(step, Step):
            launch = self.launch_of(step)
            launch.simulate(step.kernel.py_func, step.kernel.typed(step.values(self.arrays)))
            self.faults += launch.faults.values()
        else:
            step.run(self.arrays)
            for name in step.written:
                self.written.fill(self.arrays[name])

    def run_all(self) -> int:
        """Run all steps, up to one that ends with a fault; returns the count."""
        for k, step in enumerate(self.steps):
            with part(k, len(self.steps)):
                self.run(step)
            if any(fault.ends for fault in self.faults):
                break
        return self.result()
