"""Estimate how long the simulator takes for a plan, and enforce a time limit.

An estimate has two parts. A plan knows how many threads it starts, how many iterations their outer loops have and how
many rows these read; each method has its own cost of an iteration and of a row, measured on one machine. How fast this
machine and this version of the simulator are is measured once, by a short run of one kernel.

A run of more than NOTICE seconds is announced in the log "tcgpu", which goes to stderr. A run of more than LIMIT
seconds is refused. The user can set another limit, `max_seconds`; then nothing is announced.
"""

import logging
import math
import time
from contextvars import Context, ContextVar
from functools import cache

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda
from tcgpu.errors import GraphError
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to

LIMIT = 30.0  # seconds that a simulated run may take, unless `max_seconds` is given
NOTICE = 2.0 if hasattr(time, "thread_time") else LIMIT  # from which on it is announced; a browser is slow
THREAD_US = 7.0  # microseconds to start a thread, and to add its count to those of its block
SECONDS_OF_TRIAL = 1.47e-3  # what `_trial` takes on the machine that the costs were measured on

log = logging.getLogger("tcgpu")
_clock = getattr(time, "thread_time", time.perf_counter)  # a browser counts no processor time
_limit = ContextVar("limit", default=None)  # the `limited` in force; None outside of any
_forecasting = ContextVar("forecasting", default=False)  # whether `forecast` asks how long a run would take


class limited:
    """Limit a simulated run inside the `with` to this many seconds, of which `most` can be allowed.

    None keeps what holds outside of it. The limit is checked, and announced, only once.
    """

    seconds, most, checked = None, math.inf, False

    def __init__(self, max_seconds=None, most=None):
        outer = _limit.get() or type(self)
        if max_seconds is None:
            max_seconds = outer.seconds
        elif (
            isinstance(max_seconds, bool) or not isinstance(max_seconds, (int, float, np.number)) or not max_seconds > 0
        ):
            raise GraphError(f"max_seconds is a number of seconds above 0, not {max_seconds!r}")
        self.seconds, self.most = max_seconds, outer.most if most is None else most

    def __enter__(self):
        self.token = _limit.set(self)

    def __exit__(self, *error):
        _limit.reset(self.token)


class _Forecast(Exception):
    """Ends a call of `forecast` before the simulator begins."""

    def __init__(self, seconds):
        self.seconds = seconds


def forecast(run):
    """Seconds that the simulator would take for `run()`, which is ended where it begins; GraphError beyond the limit.

    0 if it uses no simulator; then it is run.
    """
    token = _forecasting.set(True)
    try:
        run()
    except _Forecast as found:
        return found.seconds
    finally:
        _forecasting.reset(token)
    return 0.0


def check(
    what,
    seconds,
    way_out="take engine='cpu' without a method, or a smaller graph, or run it on a GPU",
    where="in the simulator",
):
    """Announce a long run in the simulator, or somewhere else; GraphError if it needs more than the limit.

    way_out: what may be done instead, in every verb that runs this. Methods for GPUs do not run on engine "cpu".

    Nothing is announced if `max_seconds` is given, or if a plan is run without one of the verbs.
    """
    limit = _limit.get()
    if limit is not None and limit.checked:
        return
    allowed, most = (None, math.inf) if limit is None else (limit.seconds, limit.most)
    if seconds > (allowed or LIMIT):
        enough = min(math.ceil(1.5 * seconds), most)  # the estimate may be somewhat larger next time
        allow = f", or allow it by max_seconds={enough}"
        if seconds > most:
            allow = f"; at most {most:,} seconds can be allowed"
        raise GraphError(f"{what} would take about {duration(seconds)} {where}: {way_out}{allow}")
    if _forecasting.get():
        raise _Forecast(seconds)
    if limit is not None:
        limit.checked = True
        if seconds > NOTICE and allowed is None:
            log.warning("%s takes about %s %s; if that is too long, %s", what, duration(seconds), where, way_out)


def work(graph, microseconds=0, row_us=0):
    """Microseconds that a plan's threads work in the simulator, on the machine where the costs were measured.

    microseconds: the work besides reading rows. row_us: of reading one row; each nonzero (i, j) reads all rows of
    column i. Returns 0 on a GPU, where the column lengths may be on the device.
    """
    if not runtime.current().estimates_time:
        return 0
    return int(microseconds + row_us * int(graph.column_lengths[graph.row_idx].sum()))


def search_work(graph, edge_us, step_us):
    """The same, where each edge's shorter column is looked up in its longer one by binary search.

    edge_us, step_us: microseconds of an edge, and of a step of a search.
    """
    if not runtime.estimates_time:
        return 0
    after = graph.col_ptr[1:][graph.col_of] - np.arange(1, graph.m + 1)  # of column j only the rows after row i
    lookups = int(np.minimum(graph.column_lengths[graph.row_idx], after).sum())
    return int(edge_us * graph.m + step_us * lookups * graph.max_column.bit_length())


def column_rounds(graph, passing=0.2):
    """The number of iterations of threads that go over all columns together; 0 on a GPU.

    One for each column with at least two rows, which a triangle needs; and `passing` for every column.
    """
    return np.count_nonzero(graph.column_lengths > 1) + passing * graph.n if runtime.estimates_time else 0


def seconds(threads, microseconds):
    """Seconds that the simulator takes on this machine to start `threads` and do `microseconds` of work."""
    return (threads * THREAD_US + microseconds) / 1e6 * slowness()


@cache
def slowness():
    """How many times as long the simulator takes here as on the machine where the costs were measured."""
    return min(Context().run(_trial) for _ in range(8)) / SECONDS_OF_TRIAL  # no part of the caller's progress


def _trial():
    """Processor seconds of a short run, by two blocks of 32 threads."""
    from tcgpu.engines.simulator import simulate

    arrays = np.arange(64, dtype=np.int32), np.zeros(1, np.int64)
    begin = _clock()
    simulate(_trial_kernel, 2, 32, arrays, shared=32 * BYTES_PER_THREAD)
    return _clock() - begin


def _trial_kernel(rows, total):
    """A thread merges all rows with those up to its number: what kernels do most, so that its time tells theirs."""
    e = cuda.grid(1)
    add_block_to(total, common_values(rows, 0, rows.size, rows, 0, e))


def duration(seconds):
    """Seconds in words, in the largest unit that they are at least two of."""
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
