"""The GPU methods, each in a file with its contract, kernels and plan. This module defines the `Plan`.

A file's `plan(graph, **knobs)` allocates nothing. It decides which arrays the device will hold and which kernels run on
them, with how many blocks and threads. `plan.count()` runs the plan. A benchmark times its stages:

    run = plan.allocate()   memory, copies, set-up kernels      } process
    run.launch()            the counting kernels   } kernel     }
    run.result()            reads the total back                }
    run.free()
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from inspect import signature
from types import MappingProxyType
from typing import Any

import numpy as np

from tcgpu.declarations import check_integer
from tcgpu.engines import runtime
from tcgpu.errors import GraphError, MethodError, TcgpuError
from tcgpu.kernels import simulated
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD
from tcgpu.progress import each_part

MOST_SHARED = 227 << 10  # bytes of a block, on a GPU of compute capability 9.0
BLOCKS, THREADS = 2112, 256  # of a launch by `run`: blocks at most, and the threads of each
NO_ROOM = "OutOfMemory", "OutOfMemoryError"  # on a device: the names of our exception and of CuPy's
MAX_EDGES = 2**32 - 2**13  # a 32-bit position runs past the last edge, by up to four times 1024 threads


@dataclass(frozen=True)
class Step:
    """One kernel launch; a str among `args` names an array of the plan, anything else is passed as it is."""

    kernel: runtime.Kernel
    blocks: int
    threads: int
    args: tuple
    shared: int = 0  # bytes of dynamic shared memory a block
    most_blocks: int = 0  # that a larger graph would have

    def values(self, arrays):
        """What the kernel gets."""
        return [arrays[arg] if isinstance(arg, str) else arg for arg in self.args]

    def run(self, arrays):
        self.kernel.launch(self.blocks, self.threads, *self.values(arrays), shared=self.shared)


def launch(kernel: Any, grid_threads: int, threads: int, max_blocks: int = 2112, shared: int = 0, **given: Any) -> Step:
    """A Step that launches `grid_threads` threads in blocks of `threads`, but at most `max_blocks` blocks.

    shared: bytes of shared memory a block; a kernel with a parameter `total` gets at least what `add_block_to` needs.
    given: values, or names of arrays, for parameters of the kernel; any other gets the plan's array of its own name.
    """
    names = _parameter_names(kernel)
    sums = threads * BYTES_PER_THREAD if "total" in names else 0
    args = tuple(map(given.get, names, names))
    return Step(kernel, enough_blocks(max_blocks, grid_threads, threads), threads, args, max(shared, sums), max_blocks)


@cache
def _parameter_names(kernel):
    return tuple(signature(kernel.py_func).parameters)


@dataclass(frozen=True)
class Scan:
    """An exclusive prefix sum of the array `counts` into `starts`, which has one element more, and into `copy`."""

    counts: str
    starts: str
    copy: str = ""
    shared = 0
    blocks = threads = 1  # it costs the simulator almost nothing

    @property
    def written(self):
        """The names of the arrays that it writes."""
        return [self.starts, self.copy] if self.copy else [self.starts]

    def run(self, arrays):
        from tcgpu.kernels.prefix_sum import scan  # many plans have none

        scan(arrays[self.counts], arrays[self.starts])
        if self.copy:
            arrays[self.copy][:] = arrays[self.starts]


@dataclass(frozen=True)
class Sized:
    """A set-up step that creates an array as long as the last element of `starts`, for which the host waits.

    fill: as in `Plan.created`. view: (name, dtype) of the same memory as another type.
    """

    name: str
    starts: str
    dtype: type
    fill: int | None = None
    view: tuple | None = None
    shared = 0
    blocks = threads = 1
    written = ()

    def run(self, arrays):
        made = arrays[self.name] = runtime.device_array(int(arrays[self.starts][-1]), self.dtype, self.fill)
        if self.view:
            name, dtype = self.view
            arrays[name] = made.view(dtype)


class Run:
    """A plan on the device: its arrays, and the stages of its count."""

    def __init__(self, plan):
        self.plan, self.arrays = plan, {}

    def allocate(self):
        """Copy, create and set up the arrays: see `Plan.allocate`."""
        plan, arrays = self.plan, self.arrays
        plan.check_fits()
        for name, array in plan.copied.items():
            arrays[name] = runtime.to_device(array)
        arrays |= runtime.device_arrays(plan.created)
        for name, (created, dtype) in plan.views.items():
            arrays[name] = arrays[created].view(dtype)
        each_part([partial(step.run, arrays) for step in plan.setup])

    def launch(self):
        """Launch the counting kernels and nothing else, without waiting for a GPU."""
        each_part([partial(step.run, self.arrays) for step in self.plan.steps])

    def reset(self):
        """Fill the arrays again that `launch` adds to, so that it can be run and timed again."""
        for name, fill in self.plan.refills.items():
            if name in self.arrays:
                runtime.refill(self.arrays[name], fill)

    def result(self):
        """The number of triangles that `launch` found; of an ArrayPlan, the array that it computed."""
        plan, found = self.plan, self.arrays[self.plan.output]
        if plan.output == "total":
            return int(runtime.reading(found)()[0])
        return runtime.to_host_halved(found) if plan.halved else runtime.to_host(found)

    def free(self):
        """Free the device's memory."""
        self.arrays.clear()


@dataclass(frozen=True, eq=False)
class Plan:
    """One count, decided but not begun. Nothing changes a plan: `allocate` returns a Run, which has the arrays.

    Every plan has an array `total` (int64, one element), to which its steps add the number of triangles.
    """

    method: str
    copied: Mapping  # name -> host array
    created: Mapping  # name -> (length, dtype, fill); fill is None, 0 or -1
    steps: Sequence[Step | Scan]
    setup: Sequence[Step | Scan | Sized] = ()
    views: Mapping = field(default_factory=dict)  # name -> (created array, dtype): the same memory as another type
    work: int = 0  # microseconds in the simulator, besides starting threads: see `simulated.work`
    refills: Mapping = field(default_factory=lambda: {"total": 0})  # name -> fill, before `launch` is run again
    runs: Callable = Run  # makes a Run of the plan
    waits: bool = False  # whether its `launch` reads from the device, and so waits for it
    launch_bytes: int = 0  # of device memory that its `launch` takes besides the arrays
    output: str = "total"  # the array that is the result,
    halved: bool = False  # and whether its values are twice the result

    def __getattr__(self, name):
        if name in ("launch", "reset", "result", "free", "arrays"):
            raise AttributeError(f"a plan has no {name!r}, its run has: run = plan.allocate(), then run.{name}")
        return object.__getattribute__(self, name)  # raises what a property raises, or that there is no such attribute

    def __post_init__(self):
        created = {**self.created, "total": (1, np.int64, 0)}
        arrays = {"copied": self.copied, "created": created, "views": self.views, "refills": self.refills}
        vars(self).update({name: MappingProxyType(dict(given)) for name, given in arrays.items()})
        vars(self).update(steps=tuple(map(self._checked, self.steps)), setup=tuple(map(self._checked, self.setup)))

    def _checked(self, step):
        """The step; if its kernel has no signature, with the kernel for the types of its arguments."""
        if not (1 <= step.threads <= 1024 and 1 <= step.blocks < 2**31):
            shape = f"{step.blocks!r} of {step.threads!r}"
            raise MethodError(f"a launch has 1 to 2^31 - 1 blocks of 1 to 1024 threads, not {shape}")
        if step.shared > MOST_SHARED:
            raise MethodError(
                f"a block has at most {MOST_SHARED:,} bytes of shared memory, and fewer on older GPUs, not "
                f"{step.shared:,}"
            )
        if not isinstance(step, Step) or step.kernel.signatures:
            return step
        return replace(step, kernel=step.kernel.of_types(self._type(arg) for arg in step.args))

    def _type(self, arg):
        """The type of an argument of a step, as text."""
        if not isinstance(arg, str) or arg in self.copied:
            return runtime.type_of(self.copied[arg] if isinstance(arg, str) else arg)
        return runtime.array_type(self.views[arg][1] if arg in self.views else self.created[arg][1])

    @property
    def device_bytes(self) -> int:
        """Bytes of device memory that `allocate` needs, at least: arrays that are on the device are not copied, and how
        long Sized ones are is not known before."""
        made = sum([length * np.dtype(dtype).itemsize for length, dtype, _ in self.created.values()])
        copied = [array.nbytes for array in self.copied.values() if isinstance(array, np.ndarray)]
        return made + sum(copied) + self.launch_bytes

    def check_fits(self) -> None:
        """GraphError unless the device has enough memory, and the simulator stays below its time limit."""
        if not runtime.fits(self.device_bytes):
            free = f"{runtime.memory_free():,} free"
            raise GraphError(
                f"{self.method} needs {self.device_bytes:,} bytes on the device, which has {free}: {elsewhere()}"
            )
        if runtime.current().estimates_time:
            simulated.check(self.method, self.simulated_seconds)

    @property
    def simulated_seconds(self) -> float:
        """About how long the simulator takes."""
        return simulated.seconds(sum(step.blocks * step.threads for step in (*self.setup, *self.steps)), self.work)

    def allocate(self) -> Run:
        """The Run, its arrays copied, created and set up; GraphError before the first of them if they do not fit."""
        run = self.runs(self)
        try:
            run.allocate()
        except BaseException:
            run.free()
            raise
        return run

    @contextmanager
    def carried_out(self) -> Iterator[Run]:
        """The Run, launched inside the `with`, and freed at its end."""
        run = self.runs(self)
        try:
            each_part([run.allocate, run.launch])
            yield run
        finally:
            run.free()

    def count(self) -> Any:
        """Allocate, launch, read the result, free."""
        with self.carried_out() as run:
            return run.result()


@dataclass(frozen=True, eq=False)
class ArrayPlan(Plan):
    """A plan whose result is an array: a number for each edge or vertex."""

    refills: Mapping = field(
        default_factory=lambda: dict.fromkeys(("support", "slot_support", "slot_support16", "twice", "found"), 0)
    )
    output: str = "support"

    def then(self, step, output, *, copied=None, created=None, work=0, halved=None):
        """A plan with the launches of this one, then `step`, which computes the array `output`.

        copied, created: the arrays that it needs besides this plan's; work: microseconds in the simulator; halved: None
        for this plan's value.
        """
        return replace(
            self, copied={**self.copied, **(copied or {})}, created={**self.created, **(created or {})},
            steps=[*self.steps, step], work=self.work + work, output=output,
            halved=self.halved if halved is None else halved,
        )  # fmt: skip


def elsewhere():
    """What helps where the device has too little memory; WebGPU counts in no parts."""
    host = "engine='cpu' takes the memory of the host"
    if runtime.engine() == "webgpu":
        return host
    return f"without a method, device_memory= streams the graph through it where triangles are counted, and {host}"


class fitting(ContextDecorator, AbstractContextManager):
    """Raise GraphError, with the alternatives, where the device has no memory left for `what`: a method, columns."""

    def __init__(self, what):
        self.what = what

    def __exit__(self, kind, error, traceback):
        no_room = kind is not None and (kind.__name__ in NO_ROOM or "OUT_OF_MEMORY" in str(error))
        if no_room and not isinstance(error, TcgpuError):  # its message names the alternatives already
            free = f"{runtime.memory_free():,} bytes free"
            raise GraphError(f"{self.what} does not fit this device, which has {free}: {elsewhere()}") from error


def check_positions(graph, method="this method"):
    """GraphError unless 32 bits are enough for every position that a kernel computes: see MAX_EDGES."""
    if graph.m > MAX_EDGES:
        raise GraphError(f"{graph.m:,} edges are too many for {method}, which takes {MAX_EDGES:,}: count it in parts")


def check_share(share):
    """Return the two numbers of a share, (index, of), index counted from 0; MethodError if they are not a share."""
    try:
        index, of = share
    except (TypeError, ValueError):
        raise MethodError(f"share is two whole numbers, which of how many, not {share!r}") from None
    of = check_integer("the second number of share", of, 1, 2**20)
    return check_integer("the first number of share", index, 0, of - 1), of


def run(kernel, tasks, *args, shared=0, blocks=BLOCKS):
    """Launch a kernel with a thread for each task, or as many threads as `blocks` blocks have."""
    kernel.launch(enough_blocks(blocks, tasks, THREADS), THREADS, *args, shared=shared)


def enough_blocks(blocks, tasks, tasks_per_block):
    """`blocks`, or only as many as have tasks: the simulator would spend most of its time on idle blocks."""
    return max(1, min(blocks, -(-tasks // tasks_per_block)))
