"""How long the simulator takes for a plan, and how long it may take.

An estimate has two parts. A plan knows how many threads it starts, how often they go round their outer loops and how
many rows they read there; each method has its own cost of a round and of a row, measured on one machine. How fast this
machine and this version of the simulator are is measured once, by a short run of one kernel.

What takes longer than NOTICE seconds is announced in the log "tcgpu", which goes to stderr. What takes longer than
LIMIT seconds is refused. With `max_seconds` its user says how long it may take: nothing is announced then.
"""

import logging
import math
import time
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import numpy as np

from tcgpu.engines import runtime
from tcgpu.errors import GraphError

NOTICE = 2.0  # seconds from which on a simulated run is announced
LIMIT = 30.0  # seconds that a simulated run may take, unless more is asked for
THREAD_US = 7.0  # microseconds to start a thread, and to add up its count with the others of its block
SECONDS_OF_TRIAL = 1.31e-3  # what `_trial` takes on the machine that the costs were measured on

log = logging.getLogger("tcgpu")
_limit = ContextVar("limit", default=None)  # the Limit in force; None outside of `limited`


class Limit:
    """The seconds that a simulated run may take. What has been checked once is not checked, or announced, again."""

    def __init__(self, seconds):
        self.seconds, self.checked = seconds, False


@contextmanager
def limited(max_seconds=None):
    """Let a simulated run inside the `with` take so many seconds; without a number, as many as outside of it."""
    if max_seconds is None:
        outer = _limit.get()
        max_seconds = None if outer is None else outer.seconds
    elif isinstance(max_seconds, bool) or not isinstance(max_seconds, (int, float, np.number)) or not max_seconds > 0:
        raise GraphError(f"max_seconds is a number of seconds above 0, not {max_seconds!r}")
    token = _limit.set(Limit(max_seconds))
    try:
        yield
    finally:
        _limit.reset(token)


def check(what, seconds, way_out="take engine='cpu' or a smaller graph, or run it on a GPU"):
    """Announce a run that the simulator needs seconds for; GraphError if it needs more than is allowed.

    Nothing is announced to who has said how long it may take, or carries out a plan without one of the verbs.
    """
    limit = _limit.get()
    if limit is not None and limit.checked:
        return
    allowed = None if limit is None else limit.seconds
    if seconds > (allowed or LIMIT):
        asked = math.ceil(1.5 * seconds)  # an estimate may be somewhat larger at the next try
        raise GraphError(
            f"{what} would take about {duration(seconds)} in the simulator: {way_out}, or allow it by "
            f"max_seconds={asked}"
        )
    if limit is not None:
        limit.checked = True
        if seconds > NOTICE and allowed is None:
            log.warning("%s takes about %s in the simulator; if that is too long, %s", what, duration(seconds), way_out)


def work(graph, microseconds=0, row_us=0):
    """Microseconds that a plan's threads work in the simulator, on the machine that the costs were measured on.

    microseconds: without reading rows. row_us: of each row read, of which there is one for each row of column i of each
    nonzero (i, j). 0 on a GPU, where the column lengths may lie on the device.
    """
    if runtime.engine() != "sim":
        return 0
    return int(microseconds + row_us * int(graph.column_lengths[graph.row_idx].sum()))


def search_work(graph, edge_us, step_us):
    """The same, where each edge's shorter column is looked up in its longer one by binary search.

    edge_us, step_us: microseconds of an edge, and of a step of a search.
    """
    if runtime.engine() != "sim":
        return 0
    after = graph.col_ptr[1:][graph.col_of] - np.arange(1, graph.m + 1)  # of column j only the rows after row i
    lookups = int(np.minimum(graph.column_lengths[graph.row_idx], after).sum())
    return int(edge_us * graph.m + step_us * lookups * graph.max_column.bit_length())


def column_rounds(graph, passing=0.2):
    """How many rounds the threads take that go over all columns together; 0 on a GPU.

    A round for each column with the two rows that a triangle takes; any column costs the share `passing` of that.
    """
    return np.count_nonzero(graph.column_lengths > 1) + passing * graph.n if runtime.engine() == "sim" else 0


def seconds(threads, microseconds):
    """Seconds that the simulator takes here to start so many threads and to do so much work."""
    return (threads * THREAD_US + microseconds) / 1e6 * slowness()


@cache
def slowness():
    """How many times as long the simulator takes here as on the machine that the costs were measured on."""
    return min(_trial() for _ in range(8)) / SECONDS_OF_TRIAL


def _trial():
    """Processor seconds of a short run: a clique of 16 vertices, counted by two blocks of 32 threads."""
    from tcgpu.kernels.report.naive import naive_kernel

    col_of, row_idx = np.triu_indices(16, 1)
    col_ptr = np.searchsorted(col_of, np.arange(17))
    arrays = col_ptr, row_idx.astype(np.int32), col_of.astype(np.int32), np.zeros(1, np.int64)
    begin = time.thread_time()
    runtime.simulate(naive_kernel.py_func, 2, 32, arrays, shared=8 * 32)
    return time.thread_time() - begin


def duration(seconds):
    """Seconds in words, in the largest unit of which there are two."""
    for unit, size in (("years", 31_557_600), ("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
