"""Counting raw edges by a group whose members own columns: arrays, counts, and what happens if a member fails."""

import os
import secrets
import signal
import threading
import time
import weakref
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pool_work
import pytest
from kernel_shapes import raw, small_graphs, with_few_blocks
from test_adaptive import BY_DEGREE
from thread_group import HostEdges, Meeting, NcclError, ThreadGroup, members

import tcgpu
from tcgpu import Graph, GraphError, WorkerLost, cpu, generate
from tcgpu.built_in import NEAR
from tcgpu.distributed import divided, division, executors, groups
from tcgpu.distributed.executors import Workers
from tcgpu.engines import runtime
from tcgpu.engines.facts import OutOfMemory
from tcgpu.insight.faults import check_launch
from tcgpu.kernels import own_columns
from tcgpu.kernels import run as division_run
from tcgpu.kernels.adaptive import layout

GRAPHS = small_graphs() | {"R-MAT": generate.rmat(7, 6, seed=2), "cliques": generate.copapers(60, 15)}
CLASSES = {name: knobs for name, knobs in BY_DEGREE.items() if not {"merge", "long", "short"} & set(knobs)}


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch):
    """In the simulator a launch has only the blocks that a small graph needs."""
    make = divided._plan

    def plan(*args):
        made = make(*args)
        return with_few_blocks(made, 2) if runtime.engine() == "sim" else made

    monkeypatch.setattr(divided, "_plan", plan)


def triangles(results):
    """The sum of what all members counted."""
    return sum(result.triangles for result in results)


def of_member(edges, group):
    u, v, n = edges
    return u[group.rank :: group.size], v[group.rank :: group.size], n


# ------------------------------------------------------------------------------------------------------------- groups


def test_a_group_sums_and_exchanges_arrays():
    def work(group):
        total = group.sum(np.full(3, 10**group.rank))
        received, sizes = group.exchange([np.full(group.rank + k, group.rank, np.int32) for k in range(3)])
        return total.tolist(), received.tolist(), sizes, group.gather(np.array([group.rank]))[0].tolist()

    for rank, (total, received, sizes, gathered) in enumerate(members(3, work)):
        assert total == [111] * 3 and gathered == [0, 1, 2]
        assert sizes == [rank, rank + 1, rank + 2] and received == [0] * rank + [1] * (rank + 1) + [2] * (rank + 2)


def test_what_a_member_sends_is_known():
    sent = members(2, lambda group: (group.exchange([np.zeros(5, np.int32)] * 2), group.sent_bytes)[1])
    assert sent == [20 + 4 * 8] * 2  # five numbers, and half of the sizes twice


def test_members_end_with_the_first_that_fails():
    def work(group):
        if group.rank == 1:
            raise KeyError("a member's own")
        group.sum(np.zeros(1))

    with pytest.raises(KeyError, match="a member's own"):
        members(3, work)


# ------------------------------------------------------------------------------------------------------------- columns


@pytest.mark.sim
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("name", ["R-MAT", "cliques"])
def test_members_own_every_column_once(name, number):
    edges = raw(GRAPHS[name])

    def work(group):
        *ends, n = of_member(edges, group)
        n, col_ptr, row_idx, col_of = own_columns.own_columns(group, ends, n)
        assert col_ptr.size - 1 == len(range(group.rank, n, number))
        assert np.array_equal(np.repeat(np.arange(col_ptr.size - 1), np.diff(col_ptr)), col_of)
        return n, row_idx, group.rank + number * col_of

    found = members(number, work)
    edges = [np.concatenate(ends) for ends in zip(*(own for _, *own in found), strict=True)]
    graph = Graph.from_edges(*edges, found[0][0])
    assert cpu.count(graph) == cpu.count(GRAPHS[name])
    assert graph.n == GRAPHS[name].n and graph.m == GRAPHS[name].m == edges[0].size
    assert sorted(graph.degrees) == sorted(GRAPHS[name].degrees)


@pytest.mark.sim
def test_raw_edges_are_freed_before_their_keys_are_sorted(monkeypatch):
    u, v, n = raw(GRAPHS["R-MAT"])
    ends, freed, sort = [u.copy(), v.copy()], [], runtime.sort
    seen = [weakref.ref(each) for each in ends]
    monkeypatch.setattr(runtime, "sort", lambda keys: (freed.append([ref() is None for ref in seen]), sort(keys)))
    members(1, lambda group: own_columns.own_columns(group, ends, n)[0])
    assert freed == [[False, False], [True, True]]  # degrees are sorted first


@pytest.mark.sim
def test_parts_of_columns_are_sent(compiled_kernels):
    """Their far rows, and the quads of their near rows without those of the far ones in front."""
    graph, near, of, index = GRAPHS["R-MAT"].ordered("degree"), 40, 3, 1
    own = graph.col_of % of == index
    row_idx, col_of, columns = graph.row_idx[own], graph.col_of[own] // of, len(range(index, graph.n, of))
    member = divided.lay_out(graph.n, of, np.searchsorted(col_of, np.arange(columns + 1)), row_idx, col_of, near=near)
    first = graph.n - near
    for begin, end in ((0, columns), (2, 2), (columns // 2, columns - 1)):
        columns_sent = divided.QuadColumns.of_counts(*member.part(begin, end))
        rows = [row_idx[col_of == c] for c in range(begin, end)]
        assert columns_sent.far_rows.tolist() == [i for each in rows for i in each if i < first]
        assert columns_sent.far_count.tolist() == [np.count_nonzero(each < first) for each in rows]
        numbers = columns_sent.quads.view(np.uint16)
        for each, (at, at_end) in zip(rows, pairwise(4 * columns_sent.quad_ptr), strict=True):
            near_rows = each[each >= first] - (graph.n - 1 - NEAR)
            padding = -near_rows.size % 4
            assert numbers[at:at_end].tolist() == [0] * padding + near_rows.tolist()


@pytest.mark.sim
@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_ranges_of_columns_have_about_equal_rows(pieces):
    far_ptr = np.array([0, 2, 2, 3, 6, 6, 20])
    with runtime.using("sim"):
        bounds = division._bounds(far_ptr, 5, pieces)
    assert bounds[0] == 0 and bounds[-1] == 5 and bounds.size == pieces + 1 and all(np.diff(bounds) >= 0)
    assert max(np.diff(far_ptr[bounds])) <= 6 / pieces + 3


@pytest.mark.sim
@pytest.mark.parametrize("near", [1, 7, 40])
def test_near_columns_of_all_members_are_put_in_order(near):
    n, of = 50, 3
    chance = np.random.default_rng(near)
    counts = chance.integers(0, 4, near).astype(np.int32)
    quads = chance.integers(0, 1 << 60, counts.sum()).astype(np.uint64)
    starts = np.append(0, np.cumsum(counts))
    owners = [[v for v in range(n - near, n) if v % of == index] for index in range(of)]
    sent = [quads[starts[v - n + near] : starts[v - n + near + 1]] for own in owners for v in own]
    own = SimpleNamespace(n=n, of=of, first_near=n - near)
    with runtime.using("sim"):
        found = divided.near_columns(own, [counts[np.array(own, int) - (n - near)] for own in owners],
                                     np.concatenate(sent))  # fmt: skip
    assert all(map(np.array_equal, found, (counts, starts, quads)))


@pytest.mark.sim
@pytest.mark.parametrize("edges, n, message", [
    (([0, 1], [1, -2]), None, "numbered from 0"),
    (([0, 1], [1, 7]), 5, "the edges have 7"),
])  # fmt: skip
def test_vertex_numbers_out_of_range_are_refused_by_all_members(edges, n, message):
    u, v = (np.array(ends, np.int32) for ends in edges)
    with pytest.raises(GraphError, match=message):
        members(2, lambda group: own_columns.own_columns(group, [u[group.rank :], v[group.rank :]], n))


def test_too_many_members_are_refused():
    with pytest.raises(GraphError, match="at most 32 devices"):
        own_columns.own_columns(Meeting(33).join(), [[0], [1]])


# -------------------------------------------------------------------------------------------------------------- counts


def counted(edges, number, **knobs):
    """What members that are threads count together."""
    u, v, *n = edges
    edges = HostEdges(*division.on_host(u, v), number)
    return triangles(members(number, lambda group: division._count(group, edges, n[0] if n else None, knobs)))


@pytest.fixture
def few_hubs(monkeypatch):
    """Columns with few hubs are heavy."""
    monkeypatch.setattr(layout, "FEWEST_HUBS", 2)


@pytest.mark.sim
@pytest.mark.parametrize("name", CLASSES)
def test_each_class_is_counted_by_two_members(name, compiled_kernels, few_hubs):
    for graph in (GRAPHS["R-MAT"], GRAPHS["cliques"]):
        assert counted(raw(graph), 2, **CLASSES[name]) == cpu.count(graph)


@pytest.mark.sim
@pytest.mark.parametrize("number", [1, 3, 4])
def test_groups_of_other_sizes_count(number, compiled_kernels, few_hubs):
    knobs = {"near": 40, "hubs": 12, "heavy": 4, "crowd": 9}
    assert counted(raw(GRAPHS["R-MAT"]), number, **knobs) == cpu.count(GRAPHS["R-MAT"])


@pytest.mark.sim
@pytest.mark.parametrize("name", small_graphs())
def test_difficult_graphs_are_counted_by_a_group(name, compiled_kernels):
    graph = GRAPHS[name]
    assert counted(raw(graph), 2, near=5) == cpu.count(graph)


@pytest.mark.sim
def test_a_step_has_only_a_part_of_the_graph(compiled_kernels, monkeypatch):
    """Also with two members: columns of the other one come in two pieces."""
    graph, sizes, make = generate.rmat(8, 8, seed=1), [], divided.far_plan

    def far_plan(own, index, begin, columns, **knobs):
        rows = own.far_rows
        sizes.append(rows.size + columns.far_rows.size * (not np.shares_memory(rows, columns.far_rows)))
        return make(own, index, begin, columns, **knobs)

    monkeypatch.setattr(divided, "far_plan", far_plan)
    assert counted(raw(graph), 2, near=20) == cpu.count(graph)
    whole = np.count_nonzero(graph.ordered("degree").row_idx < graph.n - 20)
    assert len(sizes) == 2 * 3 and 0.4 * whole < min(sizes) and max(sizes) < 0.85 * whole


@pytest.mark.sim
def test_a_step_with_too_many_near_rows_is_refused(monkeypatch):
    monkeypatch.setattr(divided, "MAX_QUADS", 10)
    with pytest.raises(GraphError, match="too many for its near rows: more GPUs"):
        counted(raw(GRAPHS["R-MAT"]), 2)


@pytest.mark.sim
def test_a_result_does_not_wait_for_memory_to_be_given_back(monkeypatch):
    has_result, given_back, calls = threading.Event(), threading.Event(), []

    def release():
        calls.append(release)
        if len(calls) == 2:  # the first comes before the count
            assert has_result.wait(60)
            given_back.set()

    using, (u, v, n) = runtime.using, raw(GRAPHS["cliques"])
    monkeypatch.setattr(runtime, "using", lambda name: using("sim"))
    monkeypatch.setattr(division, "GpuGroup", ThreadGroup)
    monkeypatch.setattr(division, "_joined", {})
    monkeypatch.setattr(runtime.named("sim"), "release_device_memory", release)
    task = division.Division(Meeting(1), ("GPU-a",), HostEdges(u, v, 1), n, rank=0)
    found = division.count_as_member(task).triangles
    assert found == cpu.count(GRAPHS["cliques"]) and not given_back.is_set()
    has_result.set()
    assert given_back.wait(60)


@pytest.mark.sim
def test_an_error_of_a_member_is_raised(monkeypatch):
    def fail(*args, **knobs):
        raise GraphError("no room in this member")

    monkeypatch.setattr(divided, "far_plan", fail)
    with pytest.raises(GraphError, match="no room"):
        counted(raw(GRAPHS["R-MAT"]), 2)


@pytest.mark.parametrize("edges, message", [
    (([1, 2], [3]), "two ends of edges"), (([[1, 2]], [[3, 4]]), "two ends of edges"),
])  # fmt: skip
def test_unequal_ends_are_refused(edges, message):
    with pytest.raises(GraphError, match=message):
        counted(tuple(map(np.array, edges)), 1)


def test_only_large_raw_edges_on_several_gpus_are_divided(monkeypatch):
    class Pool:
        name, number, dask = "gpus", 4, None

    monkeypatch.setattr(division, "nccl", lambda: "NCCL")
    monkeypatch.setattr(division, "DIVIDED_EDGES", 3)
    edges = np.arange(3), np.arange(3)

    def divides(edges=edges, method=None, order=None, parts=None, resume=None, knobs=(), **pool):
        workers = type("Workers", (Pool,), pool)
        return division.divides(edges, workers, method, order, parts, resume, dict(knobs))

    assert divides() and divides((*edges, 9)) and divides(method="adaptive", order="degree", knobs={"near": 3})
    assert not divides((edges[0][:2], edges[1][:2])) and not divides([(0, 1)] * 9) and not divides("file.mtx")
    assert not divides(name="threads") and not divides(name=None) and not divides(number=1)
    assert not divides(order="natural") and not divides(method="naive") and not divides(knobs={"merge": 1})
    assert not divides(parts=4) and not divides(resume="journal")
    monkeypatch.setattr(division, "nccl", lambda: None)
    assert not divides()


class OnGpu:
    """What tells an array on a GPU."""

    __cuda_array_interface__ = None


def test_edges_in_parts_on_gpus_need_executor_gpus():
    parts = [OnGpu(), OnGpu()], [OnGpu(), OnGpu()]
    assert division.is_on_gpus(parts) and division.is_on_gpus((*parts, 7))
    assert (
        not division.is_on_gpus(([0, 1], [1, 2])) and not division.is_on_gpus(([], [])) and not division.is_on_gpus(())
    )
    with pytest.raises(GraphError, match="counted by executor='gpus'"):
        division.divides(parts, Workers(None, "threads"), None, None, None, None, {})


class Dying:
    """A pool of our own whose workers die in their first counts."""

    name, number, dask = "gpus", 2, None

    def __init__(self, deaths, way="broken"):
        self.deaths, self.restarts, self.executor, self.way, self.keys = deaths, 0, Pool(self), way, []

    def submit(self, function, task):
        self.keys.append(task.key)
        future = Future()
        if self.deaths > self.restarts:
            if self.way == "found broken":
                raise BrokenExecutor("a process is gone")
            if self.way == "ended by another thread":
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self.way == "cancelled":
                future.cancel()
            elif self.way == "noticed by NCCL":  # by the first member
                self.way = "broken"
                future.set_exception(NcclError("remote process exited"))
            else:
                future.set_exception(BrokenExecutor("a process is gone"))
        else:
            future.set_result(division.MemberResult(5, 9, 9, 0.1, 0.1, 0))
        return future

    def restart(self):
        self.restarts += 1
        self.executor = Pool(self)
        return True


class Pool:
    """The executor of Dying workers, until they are restarted."""

    def __init__(self, workers):
        self.submit = workers.submit


@pytest.fixture
def two_gpus(monkeypatch):
    """Two GPUs are named, and the edges of the host are sent to their processes."""
    monkeypatch.setattr(division, "gpu_names", lambda: ["a", "b"])
    monkeypatch.setattr(division, "_uploaded", lambda u, v, names: nullcontext(HostEdges(u, v, len(names))))


@pytest.mark.parametrize("deaths", [0, 1, 3, 4])
def test_all_members_count_again_if_one_dies(deaths, two_gpus, monkeypatch):
    monkeypatch.setattr(division.GpuGroup, "new_key", secrets.token_hex)
    workers = Dying(deaths)
    with pytest.raises(WorkerLost, match="died 4 times") if deaths > executors.RESTARTS else nullcontext():
        assert triangles(division.results((np.zeros(4, int), np.ones(4, int)), workers)) == 10
    assert workers.restarts == deaths
    assert len(workers.keys) == 2 * len(set(workers.keys)) == 2 * (deaths + 1 if deaths <= executors.RESTARTS else 4)


@pytest.mark.parametrize("way", ["found broken", "ended by another thread", "cancelled", "noticed by NCCL"])
def test_a_loss_of_workers_shows_in_many_ways(way, two_gpus, monkeypatch):
    monkeypatch.setattr(division.GpuGroup, "new_key", lambda: b"key")
    workers = Dying(2, way)
    assert triangles(division.results((np.zeros(4, int), np.ones(4, int)), workers)) == 10 and workers.restarts == 2


@pytest.mark.parametrize("error", [GraphError("no room"), NcclError("no network")])
def test_an_error_of_a_gpu_is_raised_while_the_others_wait(error, two_gpus, monkeypatch):
    class Failing(Dying):
        def submit(self, function, task):
            future = Future()
            if self.deaths:
                self.deaths = 0
                future.set_exception(error)
            return future  # else it never ends

    monkeypatch.setattr(division, "NOTICE_SECONDS", 0.01)
    monkeypatch.setattr(division.GpuGroup, "new_key", lambda: b"key")
    workers = Failing(1)
    with pytest.raises(type(error), match=str(error)):
        triangles(division.results((np.zeros(4, int), np.ones(4, int)), workers))
    assert workers.restarts == 1


@pytest.fixture
def two_members(two_gpus, monkeypatch, tmp_path):
    """A function that returns the results of two processes that run `pool_work.member`, as a dict."""
    own = executors.process_pool
    monkeypatch.setitem(executors.POOLS, "gpus", lambda: own([{"CUDA_VISIBLE_DEVICES": name} for name in ("a", "b")]))
    monkeypatch.setattr(division.GpuGroup, "new_key", secrets.token_hex)
    monkeypatch.setattr(division, "count_as_member", pool_work.member)

    def results(fails):
        knobs = {"fails": fails, "folder": tmp_path, "count": secrets.token_hex()}
        with executors.workers_of("gpus") as workers:
            return dict(division.results((np.arange(10), np.arange(10)), workers, **knobs))

    yield results
    executors.terminate("gpus")


def processes_and_key(found):
    """The processes of members, and the key that all of them were given."""
    processes, keys = map(set, zip(*found.values(), strict=True))
    (key,) = keys
    return processes, key


def check_replaced(before, after):
    """Check that all processes of a count are others than before, in another group."""
    (old, old_key), (new, new_key) = map(processes_and_key, (before, after))
    assert len(old) == len(new) == 2 and not old & new and old_key != new_key


def test_processes_and_their_group_serve_several_counts(two_members):
    first, second = two_members("never"), two_members("never")
    processes, _ = processes_and_key(first)
    assert len(processes) == 2 and second == first


def test_processes_that_wait_for_a_dead_member_are_ended(two_members):
    before, found = two_members("never"), two_members("once")
    assert sorted(found) == [sum(range(5)), sum(range(5, 10))]
    check_replaced(before, found)
    assert two_members("never") == found  # the new processes stay


def test_processes_that_wait_for_a_member_that_failed_are_ended(two_members):
    before = two_members("never")
    with pytest.raises(ValueError, match="member 1 fails"):
        two_members("raises")
    check_replaced(before, two_members("never"))
    for process in processes_and_key(before)[0]:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_process_that_died_between_two_counts_is_replaced(two_members):
    before = two_members("never")
    os.kill(max(processes_and_key(before)[0]), signal.SIGKILL)
    check_replaced(before, two_members("never"))


def test_an_error_while_members_count_ends_them(two_members, monkeypatch):
    """As one that a handler of signals raises here."""

    def late(*args):
        raise TimeoutError

    before = two_members("never")
    with monkeypatch.context() as patched, pytest.raises(TimeoutError):
        patched.setattr(division, "SimpleQueue", late)
        two_members("never")
    check_replaced(before, two_members("never"))


@pytest.mark.parametrize("size", [0, 2, 100])
def test_each_gpu_gets_a_part_of_raw_edges_while_they_are_counted(size, monkeypatch):
    """With engine "sim", arrays on a GPU are copies on the host."""
    here, released, arrays = threading.local(), [], {}

    def shared(array):
        arrays[id(array)] = weakref.ref(array)
        return id(array)

    def device_edges(u, v, names):
        assert names == ["a", "b", "c"] and len(u) == len(v) == 3
        assert [len(part) for part in u] == [len(part) for part in v]
        assert np.array_equal(np.concatenate(u), ends[0]) and np.array_equal(np.concatenate(v), ends[1])
        return [[shared(part) for part in pair] for pair in zip(u, v, strict=True)]

    monkeypatch.setattr(runtime, "use_gpu", lambda gpu: setattr(here, "gpu", gpu))
    monkeypatch.setattr(runtime, "to_device", lambda array: array.copy())
    monkeypatch.setattr(runtime.current(), "release_device_memory", lambda: released.append(here.gpu))
    monkeypatch.setattr(division, "_device_edges", device_edges)
    ends = np.arange(size), np.arange(size)[::-1].copy()
    with division._uploaded(*ends, ["a", "b", "c"]):
        assert len(arrays) == 6 and all(array() is not None for array in arrays.values()) and not released
    assert sorted(released) == [0, 1, 2] and all(array() is None for array in arrays.values())


def test_raw_edges_that_a_gpu_has_no_room_for_are_refused(monkeypatch):
    def upload(array):
        if array[0]:
            raise OutOfMemory("no room")
        return array

    monkeypatch.setattr(runtime, "to_device", upload)
    with pytest.raises(GraphError, match="the list of raw edges, divided among the GPUs, does not fit"):
        with division._uploaded(np.arange(9), np.arange(9), ["a", "b"]):
            pass


def test_each_member_takes_the_parts_on_its_own_gpu(monkeypatch):
    def shared(array):
        assert array.size  # CUDA has no handle of nothing
        return gpu.SharedArray(int(array[0]), b"", 0, array.size, array.dtype.str)

    gpu = pytest.importorskip("tcgpu.engines.gpu")
    monkeypatch.setattr(runtime.named("gpu"), "shared_array", shared)
    u = [np.full(size, gpu) for size, gpu in ((3, 1), (0, 0), (5, 0), (7, 1))]
    found = division._device_edges(u, u, ["GPU-a", "GPU-b", "GPU-c"])
    assert [[one.size for one, other in pairs if one == other] for pairs in found.pairs] == [[5], [3, 7], []]
    with pytest.raises(GraphError, match="u has 4 parts and v has 3"):
        division._device_edges(u, u[1:], ["0", "1"])
    with pytest.raises(GraphError, match="a part of u is on GPU 1, and that of v on GPU 0"):
        division._device_edges([np.ones(2, int)], [np.zeros(2, int)], ["0", "1"])


class Cuda:
    """What is used of CuPy for arrays that processes share; the memory is that of this process."""

    def __init__(self):
        self.calls, self.gpu = [], 0  # the GPU in use
        self.cuda = self.runtime = self

    @contextmanager
    def Device(self, gpu=None):
        self.gpu, before = gpu, self.gpu
        yield
        self.gpu = before

    def pointerGetAttributes(self, address):
        return SimpleNamespace(device=1)

    def asarray(self, array):
        self.calls.append(("asarray", self.gpu))
        return array.values

    def ascontiguousarray(self, array):
        return np.ascontiguousarray(array)

    def ipcGetMemHandle(self, address):
        return str(address).encode()

    def ipcOpenMemHandle(self, handle):
        return int(handle)

    def ipcCloseMemHandle(self, address):
        self.calls.append(("close", address))

    def deviceSynchronize(self):
        self.calls.append("wait")

    def UnownedMemory(self, address, size, owner):
        self.calls.append(("memory", size))
        return address, owner

    def MemoryPointer(self, memory, offset):
        return (memory[0] + offset, *memory)

    def ndarray(self, size, dtype, pointer):
        return SimpleNamespace(size=size, dtype=dtype, pointer=pointer)


def test_a_copy_of_an_array_stays_on_its_gpu(monkeypatch):
    cuda, gpu = Cuda(), pytest.importorskip("tcgpu.engines.gpu")
    monkeypatch.setattr(gpu, "_cupy", lambda: cuda)
    values = np.arange(8)[::2]
    array = SimpleNamespace(values=values, __cuda_array_interface__={"data": (values.ctypes.data, False)})
    found = gpu.Engine().contiguous_there(array)
    assert found.flags.c_contiguous and found.tolist() == [0, 2, 4, 6] and cuda.calls == [("asarray", 1)]


def test_memory_of_another_process_is_closed_with_its_array(monkeypatch):
    cuda, gpu = Cuda(), pytest.importorskip("tcgpu.engines.gpu")
    monkeypatch.setattr(gpu, "_cupy", lambda: cuda)
    monkeypatch.setattr(gpu, "cuda_driver", SimpleNamespace(allocation=lambda address: 1000))
    device = nullcontext()
    device.id = 2
    data, dtype = SimpleNamespace(ptr=1024), np.dtype(np.int32)
    shared = gpu.Engine().shared_array(SimpleNamespace(device=device, data=data, size=5, dtype=dtype))
    assert shared == gpu.SharedArray(2, b"1000", 24, 5, "<i4") and cuda.calls == ["wait"]
    array = gpu.Engine().opened_array(shared)
    assert array.pointer[:2] == (1024, 1000) and (array.size, array.dtype) == (5, "<i4")
    assert cuda.calls[1:] == [("memory", 24 + 5 * 4)]
    del array
    assert cuda.calls[2:] == ["wait", ("close", 1000)]


# -------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.sim
@pytest.mark.parametrize("number", [1, 3])
def test_keys_are_counted_and_scattered_without_faults(number):
    u, v, n = raw(GRAPHS["R-MAT"])
    rank = np.random.default_rng(1).permutation(n).astype(np.int32)
    parts = -(-u.size // own_columns.PART)
    counts, starts = np.full(number * parts, -1), np.zeros(number * parts + 1, np.int64)
    packed = np.zeros(u.size, np.uint64)
    assert not check_launch(own_columns.pack_and_count.py_func, 1, 64, (u, v, rank, number, packed, counts))
    np.cumsum(counts, out=starts[1:])
    low, high = np.minimum(rank[u], rank[v]).astype(np.int64), np.maximum(rank[u], rank[v]).astype(np.int64)
    expected = sorted((j % number, j // number, i) for j, i in zip(low.tolist(), high.tolist(), strict=True) if i != j)
    keys = np.zeros(len(expected), np.uint64)
    assert starts[-1] == keys.size
    assert not check_launch(own_columns.scatter_keys.py_func, 1, 64, (packed, number, starts, keys))
    owner = np.searchsorted(starts[::parts], np.arange(keys.size), side="right") - 1
    owned = zip(owner.tolist(), keys.tolist(), strict=True)
    assert sorted((k, key >> 32, key & 0xFFFFFFFF) for k, key in owned) == expected


@pytest.mark.sim
def test_steps_have_no_faults(few_hubs, monkeypatch):
    """Of a member of three: each kernel of `divided`, and those of windows as it launches them."""
    graph, (index, of) = GRAPHS["R-MAT"].ordered("degree"), (1, 3)
    own = graph.col_of % of == index
    col_of, row_idx = graph.col_of[own] // of, graph.row_idx[own]
    col_ptr = np.searchsorted(col_of, np.arange(len(range(index, graph.n, of)) + 1))
    seen = set()

    def checked(kernel, args, shared=0, threads=64):
        arrays = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        assert not check_launch(kernel.py_func, 2, threads, kernel.typed(arrays), shared=shared)
        seen.add(kernel)

    monkeypatch.setattr(
        divided, "run", lambda kernel, tasks, *args: (checked(kernel, args), division_run(kernel, tasks, *args))
    )
    with runtime.using("sim"):
        member = divided.lay_out(graph.n, of, col_ptr, row_idx, col_of, near=40, hubs=10, heavy=4)
        counts = [np.ones(len([v for v in range(graph.n - 40, graph.n) if v % of == k]), np.int32) for k in range(of)]
        divided.near_columns(member, counts, np.arange(40, dtype=np.uint64))
        far = member.far_columns(index)
        plan = divided.far_plan(member, index, 0, divided.QuadColumns.of_counts(*member.part(0, far)))
        arrays = plan.allocate().arrays
        for step in plan.steps:
            checked(step.kernel, step.values(arrays), step.shared, step.threads)
    names = {"measure_columns", "count_in_edges", "lay_out", "copy_quads", "window_kernel", "far_window_kernel"}
    assert names <= {kernel.__name__ for kernel in seen}


# ----------------------------------------------------------------------------------------------------------------- GPU

several_gpus = pytest.mark.skipif(
    executors.ENGINE != "gpu" or runtime.visible_gpus() < 2 or groups.nccl() is None, reason="no two GPUs with NCCL"
)


@pytest.fixture
def gpus():
    yield
    executors.close()


@pytest.mark.gpu
@several_gpus
def test_gpus_count_raw_edges_together(gpus, monkeypatch):
    monkeypatch.setattr(division, "DIVIDED_EDGES", 1)
    for name, graph in GRAPHS.items():
        assert tcgpu.count(raw(graph), executor="gpus") == cpu.count(graph), name
    graph = generate.rmat(16, seed=4)
    for knobs in ({}, {"near": 4000, "hubs": 500}, {"near": 0}):
        assert tcgpu.count(raw(graph), executor="gpus", **knobs) == cpu.count(graph)


@pytest.mark.gpu
@several_gpus
def test_gpus_count_edges_that_lie_in_parts_on_them(gpus):
    graph, parts = generate.rmat(15, seed=4), []
    u, v, n = raw(graph)
    for gpu in (1, 0, 1):
        runtime.use_gpu(gpu)
        pairs = runtime.to_device(np.stack([u[len(parts) :: 3], v[len(parts) :: 3]], axis=1))
        parts.append([pairs[:, 0], pairs[:, 1]])  # not contiguous
    parts += [[ends.copy() for ends in parts[2]], [ends[:0] for ends in parts[2]]]
    runtime.use_gpu(0)
    edges = tuple(map(list, zip(*parts, strict=True)))
    assert tcgpu.count((*edges, n), executor="gpus") == tcgpu.count(edges, executor="gpus") == cpu.count(graph)


@pytest.mark.gpu
@several_gpus
def test_an_error_of_one_gpu_is_raised_while_the_others_wait(gpus):
    def parts(dtype):
        found = []
        for gpu, (u, v) in enumerate((([0], [1]), ([1, 2], [2, 0]))):
            runtime.use_gpu(gpu)
            found.append([runtime.to_device(np.array(ends, dtype if gpu else np.int32)) for ends in (u, v)])
        runtime.use_gpu(0)
        return tuple(map(list, zip(*found, strict=True)))

    with pytest.raises(GraphError, match="whole numbers"):
        tcgpu.count(parts(np.float32), executor="gpus")
    assert tcgpu.count(parts(np.int64), executor="gpus") == 1


@pytest.mark.gpu
@several_gpus
def test_a_count_goes_on_after_a_member_was_killed(gpus, monkeypatch):
    monkeypatch.setattr(division, "DIVIDED_EDGES", 1)
    graph = generate.rmat(18, seed=1)
    expected = cpu.count(graph)
    assert tcgpu.count(raw(graph), executor="gpus") == expected
    process = next(iter(executors.own_pool("gpus")._processes))
    killer = threading.Timer(0.05, os.kill, (process, signal.SIGKILL))
    killer.start()
    for _ in range(3):
        assert tcgpu.count(raw(graph), executor="gpus") == expected
    killer.join()
    time.sleep(0.1)
    assert process not in executors.own_pool("gpus")._processes
