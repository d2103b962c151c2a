"""Counting raw edges by several GPUs together, none of which holds the whole graph.

The edges lie in the memory of the host, or in parts on the GPUs. The workers of executor "gpus", or those of Dask
(`dask_members`), are the members of a group. Each takes a part of the edges, and after that owns some of the columns
(`own_columns`). It counts the edges in these in steps: with the near columns of all, its own far ones, and those that
each other member sends in turn (`divided`).

The processes stay members of their group for the next count: NCCL takes most of a second to connect them. If a member
dies, the others are ended, and all count again in new processes.
"""

import os
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import pairwise
from queue import Empty, SimpleQueue
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu.arrays import unmasked
from tcgpu.distributed import divided, worker
from tcgpu.distributed.executors import LOSSES, RESTARTS, gpu_names
from tcgpu.distributed.groups import GpuGroup, nccl
from tcgpu.engines import runtime
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import GraphError, WorkerLost
from tcgpu.gpu_costs import DIVIDED_EDGES
from tcgpu.graph import edge_arrays
from tcgpu.kernels import fitting
from tcgpu.kernels.own_columns import own_columns

CHECK_SECONDS = 1  # between two looks whether a member is gone
NOTICE_SECONDS = 5  # after an error of NCCL, until it is known whether a member died
KNOBS = {"near", "hubs", "heavy", "crowd"}  # of `adaptive`, that a divided count takes


@dataclass(frozen=True)
class MemberResult:
    """What a member counted, how long it took, and how many bytes it sent to the others."""

    triangles: int
    vertices: int
    edges: int  # in its own columns
    columns_seconds: float
    counting_seconds: float
    sent_bytes: int


@dataclass(frozen=True)
class Division:
    """A count by a group: what every member gets of it."""

    key: object  # of a GpuGroup
    members: tuple  # names of their GPUs, as in CUDA_VISIBLE_DEVICES
    edges: object  # DeviceEdges or MemberEdges
    n: int | None
    knobs: dict = field(default_factory=dict)
    rank: int | None = None  # of the member; by default that of its GPU among the names


@dataclass(frozen=True)
class MemberEdges:
    """The raw edges of one member, in arrays of its host."""

    u: np.ndarray
    v: np.ndarray

    def of_member(self, rank):
        """[u, v] of a member, as arrays on its device."""
        return [runtime.to_device_library(ends) for ends in (self.u, self.v)]


@dataclass(frozen=True)
class DeviceEdges:
    """Raw edges that lie on the GPUs: for each member, pairs of arrays that another process shares."""

    pairs: tuple

    def of_member(self, rank):
        """As that of MemberEdges."""
        ends = [[runtime.named("gpu").opened_array(array) for array in pair] for pair in self.pairs[rank]]
        if not ends:
            return [runtime.device_array(0, np.int32), runtime.device_array(0, np.int32)]
        xp = runtime.arrays_of(ends[0][0])
        return [each[0] if len(each) == 1 else xp.concatenate(each) for each in zip(*ends, strict=True)]


# ------------------------------------------------------------------------------------------------------------ a member


def count_as_member(division):
    """The MemberResult of this worker."""
    worker.forget_graphs()
    with runtime.using("gpu"):
        runtime.release_device_memory()  # that of graphs it kept: NCCL takes memory from the driver
        with _group(division) as group:
            result = _count(group, division.edges, division.n, division.knobs)
        # Other processes may have edges on this GPU. The result need not wait: the driver takes a tenth of the count.
        threading.Thread(target=copy_context().run, args=(runtime.release_device_memory,)).start()
    return result


_joined: dict[object, GpuGroup] = {}  # by key; one at most, as all counts of a process have the same key


def _group(division):
    """The group of this worker: the one of its earlier counts."""
    key, names = division.key, division.members
    if key not in _joined:
        rank = names.index(os.environ["CUDA_VISIBLE_DEVICES"]) if division.rank is None else division.rank
        _joined[key] = GpuGroup(key, rank, len(names))
    return _joined[key]


@fitting("the graph, divided among the GPUs,")
def _count(group, edges, n, knobs):
    begin = time.perf_counter()
    n, *columns = own_columns(group, edges.of_member(group.rank), n)
    runtime.synchronize()
    middle, own_edges = time.perf_counter(), columns[1].size
    own = divided.lay_out(n, group.size, *columns, **_only(knobs, "near", "hubs", "heavy"))
    columns.clear()
    triangles = sum(plan.count() for plan in _plans(group, own, knobs))
    seconds = middle - begin, time.perf_counter() - middle
    return MemberResult(triangles, n, own_edges, *seconds, group.sent_bytes)


def _plans(group, own, knobs):
    """The plan of each step of this member."""
    far = own.far_columns(group.rank)
    yield divided.near_plan(own, *_near_columns(group, own, far), **_only(knobs, "crowd"))
    crowd = _only(knobs, "crowd")
    yield divided.far_plan(own, group.rank, 0, divided.QuadColumns.of_counts(*own.part(0, far)), **crowd)
    pieces = 2 if group.size == 2 else 1  # two members and all columns of both would be the whole graph
    bounds = _bounds(own.far_ptr, far, pieces)
    bounds_of_all = runtime.to_host(group.gather(runtime.to_device(bounds))[0]).reshape(group.size, -1)
    for distance in range(1, group.size):
        source, target = (group.rank + distance) % group.size, (group.rank - distance) % group.size
        for (begin, end), theirs in zip(pairwise(bounds), bounds_of_all[source, :-1].tolist(), strict=True):
            received = divided.QuadColumns.of_counts(*_received(group, target, own.part(begin, end)))
            yield divided.far_plan(own, source, theirs, received, **crowd)


def _bounds(far_ptr, columns, pieces):
    """The bounds of `pieces` ranges of the first columns, which have about equal numbers of far rows."""
    ends = np.linspace(0, int(far_ptr[columns]), pieces + 1)[1:-1].astype(np.int64)
    cuts = runtime.to_host(runtime.arrays_of(far_ptr).searchsorted(far_ptr, runtime.to_device(ends)))
    return np.array([0, *np.minimum(cuts, columns), columns])


def _received(group, target, arrays):
    """Send arrays to member `target`; returns those that the one to which this member is the target sends."""
    return [group.exchange([array if k == target else array[:0] for k in range(group.size)])[0] for array in arrays]


def _near_columns(group, own, far):
    """What `near_plan` takes of the near columns of all members; `far` of this member's are far."""
    _, counts, _, quads = own.part(far, own.far_count.size)
    counts, sizes = group.gather(counts)
    ends = np.cumsum(sizes).tolist()
    counts = [counts[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    return divided.near_columns(own, counts, group.gather(quads)[0])


def _only(knobs, *names):
    """Those of the knobs that have these names."""
    return {name: value for name, value in knobs.items() if name in names}


# --------------------------------------------------------------------------------------------------------- all members

one_at_a_time = fork_safe_lock()  # all workers of a pool count together, one graph at a time
_keys: WeakKeyDictionary[Executor, object] = WeakKeyDictionary()  # of the GpuGroup of a pool's processes


def is_on_gpus(edges):
    """Whether raw edges (u, v) lie in parts on GPUs: u and v are lists of arrays there."""
    return (
        isinstance(edges, tuple)
        and len(edges) in (2, 3)
        and all(
            isinstance(ends, list) and ends and all(hasattr(each, "__cuda_array_interface__") for each in ends)
            for ends in edges[:2]
        )
    )


def divides(edges, workers, method, order, parts, resume, knobs):
    """Whether the workers count these edges as a group; GraphError if they cannot, and the edges are on GPUs.

    Of Dask's workers only whether they may: `dask_members` knows which of them can.
    """
    on_gpus = is_on_gpus(edges)
    raw = isinstance(edges, tuple) and len(edges) in (2, 3)
    if not on_gpus and not (raw and workers.number > 1 and np.size(edges[0]) >= DIVIDED_EDGES):
        return False  # before NCCL is looked for: where there is none, CuPy warns
    plain = method in (None, "adaptive") and order in (None, "auto", "degree") and parts is None and not resume
    able = plain and set(knobs) <= KNOBS
    if workers.dask is not None and not on_gpus:
        return able
    able = able and workers.name == "gpus" and nccl() is not None
    if on_gpus and not able:
        raise GraphError(
            "edges in parts on GPUs are counted by executor='gpus', with method 'adaptive' in degree order, and NCCL "
            f"(pip install nvidia-nccl-cu13, or cu12); knobs are {', '.join(sorted(KNOBS))}; nothing is resumed"
        )
    return able


def results(edges, workers, **knobs):
    """The MemberResult of each worker."""
    u, v, *n = edge_arrays(edges)
    names = gpu_names()
    if is_on_gpus((u, v)):
        u, v = ([runtime.named("gpu").contiguous_there(part) for part in ends] for ends in (u, v))
        shared = nullcontext(_device_edges(u, v, names))  # of copies that stay to the end
    else:
        shared = _uploaded(*on_host(u, v), names)

    def count(lost):
        task = Division(_key(workers.executor), tuple(names), source, n[0] if n else None, knobs)
        try:
            futures = [workers.executor.submit(count_as_member, task) for _ in range(workers.number)]
        except RuntimeError as error:  # the pool is broken; or another thread has ended it, as after an interrupt
            raise error if isinstance(error, BrokenExecutor) else BrokenExecutor(str(error)) from None
        return results_of(futures)

    def end(error):
        workers.restart()  # the members that are left wait for the others
        return isinstance(error, LOSSES)

    with shared as source:
        return all_count(count, end)


def all_count(count, end):
    """What `count(lost)` returns; they count again if a member is lost, with the error that said so.

    end(error): ends all members after an error, and returns whether one was lost.
    """
    lost = None
    with one_at_a_time:
        for _ in range(1 + RESTARTS):
            try:
                return count(lost)
            except BaseException as error:
                if not end(error):
                    raise
                lost = error
    raise WorkerLost(f"workers died {1 + RESTARTS} times while they counted a graph together: {lost}") from lost


def results_of(futures, check=lambda: None):
    """The results of all members; raises the error of one. `check` is called now and then while they count."""
    finished, errors, left, noticed = SimpleQueue(), [], len(futures), 0.0
    for future in futures:  # `wait` does not end for what a pool's shutdown cancelled
        future.add_done_callback(finished.put)
    while left and not any(map(is_own, errors)):  # the others wait for this one
        try:
            future = finished.get(timeout=CHECK_SECONDS)
        except Empty:
            check()
            if errors and time.monotonic() > noticed + NOTICE_SECONDS:
                break
            continue
        left -= 1
        error = CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            errors.append(error)
            noticed = time.monotonic()
    if errors:
        raise max(errors, key=is_own)
    return [future.result() for future in futures]


def _key(executor):
    """The key of the group of an executor's processes. After an error they are ended, so that it is not used again."""
    if executor not in _keys:
        _keys[executor] = GpuGroup.new_key()
    return _keys[executor]


def is_own(error):
    """False for an error that may say only that another member failed or died: then that one's comes, too."""
    return type(error).__name__ != "NcclError"


# ----------------------------------------------------------------------------------------------------- edges of members


def on_host(u, v):
    """The ends of edges as contiguous NumPy arrays of equal length."""
    u, v = (np.ascontiguousarray(unmasked(runtime.to_host(ends), name)) for ends, name in ((u, "u"), (v, "v")))
    _check_equal(u, v)
    return u, v


@contextmanager
def _uploaded(u, v, names):
    """The DeviceEdges of arrays of the host: an equal part for each GPU, which a thread of its own copies there."""

    def upload(gpu):
        runtime.use_gpu(gpu)
        begin, end = range_of(u.size, gpu, len(names))
        with fitting("the list of raw edges, divided among the GPUs,"):
            return [runtime.to_device(ends[begin:end]) for ends in (u, v)]

    def give_back(gpu):
        runtime.use_gpu(gpu)
        runtime.release_device_memory()

    gpus, parts = range(len(names)), []
    with ThreadPoolExecutor(len(names)) as threads:
        try:
            parts += threads.map(upload, gpus)
            yield _device_edges(*map(list, zip(*parts, strict=True)), names)
        finally:
            parts.clear()
            list(threads.map(give_back, gpus))


def range_of(size, rank, of):
    """The bounds of one of some equal ranges."""
    return size * rank // of, size * (rank + 1) // of


def _device_edges(u, v, names):
    """The DeviceEdges of contiguous parts on GPUs: each member takes those on its own GPU."""
    pairs = [[] for _ in names]
    if len(u) != len(v):
        raise GraphError(f"u has {len(u)} parts and v has {len(v)}")
    for ends in zip(u, v, strict=True):
        _check_equal(*ends)
        if not ends[0].size:  # it has no memory
            continue
        one, other = map(runtime.named("gpu").shared_array, ends)
        if one.gpu != other.gpu:
            raise GraphError(f"a part of u is on GPU {one.gpu}, and that of v on GPU {other.gpu}")
        pairs[one.gpu].append((one, other))
    return DeviceEdges(tuple(map(tuple, pairs)))


def _check_equal(u, v):
    if u.shape != v.shape or u.ndim != 1:
        raise GraphError(f"u and v are the two ends of edges, not arrays of shapes {u.shape} and {v.shape}")
