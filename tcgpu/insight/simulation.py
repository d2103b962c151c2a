"""`tcgpu.simulate`: run any kernel in the style of `numba.cuda` without a GPU, and tell what is wrong with it."""

import math
from typing import Any

from tcgpu.engines.simulator import simulate as run
from tcgpu.errors import KernelError
from tcgpu.insight.faults import Fault, check_launch

MOST_THREADS = 1024  # of a block


class Faults(list[Fault]):
    """The faults of a launch. Prints as a sentence for each."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no faults"


def simulate(
    kernel: Any,
    blocks: int | tuple[int, ...],
    threads: int | tuple[int, ...],
    *args: Any,
    shared: int = 0,
    faults: bool = True,
    seed: int | None = None,
) -> Faults:
    """Run a kernel in the simulator: a function as one would decorate with `numba.cuda.jit`, or one that is decorated.

    A thread runs at a time, as Python; so a kernel may be debugged, and may print. Barriers, atomic operations, shared
    memory, warp shuffles and votes work as on a GPU. A thread that spins until another one writes never ends.

    Parameters
    ----------
    kernel
        The function. In it, `cuda` is `tcgpu.cuda` or the module `numba.cuda`.
    blocks, threads
        How many, as a number or as a tuple with one for each of up to three dimensions.
    *args
        The kernel's arguments: NumPy arrays, which it changes, and numbers.
    shared
        Bytes of dynamic shared memory of a block.
    faults
        Whether to look for faults, which takes three to five times as long: indices out of bounds, memory that is read
        and was not written, data races, barriers that not all threads reach, overflow of integers. Without it, an error
        in the kernel is raised.
    seed
        For threads that run in a random order, without looking for faults.
    """
    function = getattr(kernel, "py_func", kernel)
    if not hasattr(function, "__code__"):
        raise KernelError(f"a kernel is a function, not {kernel!r}")
    for what, sizes in (("blocks", blocks), ("threads", threads)):
        sizes = sizes if isinstance(sizes, tuple) else (sizes,)
        if not 1 <= len(sizes) <= 3 or not all(isinstance(size, int) and size >= 1 for size in sizes):
            raise KernelError(f"{what} are a number from 1 on, or up to three of them, not {sizes!r}")
        if what == "threads" and math.prod(sizes) > MOST_THREADS:
            raise KernelError(f"a block has at most {MOST_THREADS:,} threads, not {math.prod(sizes):,}")
    if faults and seed is None:
        return Faults(check_launch(function, blocks, threads, args, shared=shared))
    run(function, blocks, threads, args, shared=shared, seed=seed)
    return Faults()
