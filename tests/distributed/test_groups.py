"""GpuGroup without a GPU: threads are the members, a module in the place of NCCL's copies their memory."""

import ctypes
import gc
import os
import threading
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Queue
from types import SimpleNamespace

import compiled
import numpy as np
import pytest
from kernel_shapes import raw
from sampling import share
from test_division import CLASSES, GRAPHS, few_blocks, of_member
from thread_group import HostEdges

from tcgpu import GraphError, cpu, generate
from tcgpu.distributed import division, groups
from tcgpu.distributed.groups import GpuGroup
from tcgpu.engines import runtime
from tcgpu.kernels import own_columns

WAIT_SECONDS = 20  # for a member that never comes

_ = few_blocks  # a fixture of every test here, too


class OnDevice(np.ndarray):
    """A NumPy array that tells its address as CuPy's do, and like these is contiguous where NCCL takes it."""

    @property
    def data(self):
        assert self.flags.c_contiguous
        return SimpleNamespace(ptr=self.ctypes.data)


class FakeNccl:
    """What `groups` uses of `cupy.cuda.nccl`. Operations of all members meet, and must fit each other.

    log: (rank, name) of each operation; failing: one that fails. A member whose counterpart does not come gets
    BrokenBarrierError.
    """

    NCCL_UINT8, NCCL_INT32, NCCL_INT64, NCCL_SUM = 1, 2, 4, 0  # as in nccl.h

    def __init__(self):
        self.keys, self.log, self.failing = 0, [], None
        self.meetings, self.lock, self.queued = {}, threading.Lock(), threading.local()

    def get_unique_id(self):
        self.keys += 1
        return bytes([self.keys]) * 128

    def groupStart(self):
        assert not hasattr(self.queued, "operations"), "a group within a group"
        self.queued.operations, self.queued.communicator = [], None

    def groupEnd(self):
        operations, communicator = self.queued.operations, self.queued.communicator
        del self.queued.operations
        if communicator is not None:
            communicator.transfer(operations)

    def NcclCommunicator(self, size, key, rank):
        assert type(size) is type(rank) is int and 0 <= rank < size and type(key) is bytes and len(key) == 128
        assert os.environ["NCCL_NVLS_ENABLE"] == "0"
        with self.lock:
            meeting = self.meetings.setdefault(key, Meeting(size))
            assert meeting.size == size and rank not in meeting.ranks, "a member's number is used twice"
            meeting.ranks.add(rank)
        return Communicator(self, meeting, rank)


class Meeting:
    """Where the communicators of one key meet."""

    def __init__(self, size):
        self.size, self.ranks, self.posted = size, set(), [None] * size
        self.barrier = threading.Barrier(size, timeout=WAIT_SECONDS)
        self.sent = {(source, target): Queue() for source in range(size) for target in range(size)}


class Communicator:
    def __init__(self, nccl, meeting, rank):
        self.nccl, self.meeting, self.rank = nccl, meeting, rank
        self._note("init")
        meeting.barrier.wait()

    def _note(self, name):
        self.nccl.log.append((self.rank, name))
        if self.nccl.failing == (self.rank, name):
            raise GraphError(f"member {self.rank} fails")

    def _all(self, posted):
        """What each member posted here."""
        self.meeting.posted[self.rank] = posted
        self.meeting.barrier.wait()
        found = list(self.meeting.posted)
        self.meeting.barrier.wait()
        return found

    def allReduce(self, source, target, count, kind, operation, stream):
        assert type(source) is type(target) is type(count) is int and operation == FakeNccl.NCCL_SUM and stream == 0
        self._note("allReduce")
        dtype = {FakeNccl.NCCL_INT32: np.int32, FakeNccl.NCCL_INT64: np.int64}[kind]
        found = self._all((count, kind, read(source, count * np.dtype(dtype).itemsize)))
        assert len({each[:2] for each in found}) == 1, "members add arrays of other sizes or types"
        write(target, sum(np.frombuffer(values, dtype) for _, _, values in found).tobytes())

    def send(self, source, count, kind, peer, stream):
        self._queue("send", source, count, kind, peer, stream)

    def recv(self, target, count, kind, peer, stream):
        self._queue("recv", target, count, kind, peer, stream)

    def _queue(self, name, at, count, kind, peer, stream):
        assert type(at) is type(count) is type(peer) is int and kind == FakeNccl.NCCL_UINT8 and stream == 0
        assert at and count > 0 and peer != self.rank and 0 <= peer < self.meeting.size
        self._note(name)
        self.nccl.queued.operations.append((name, at, count, peer))
        self.nccl.queued.communicator = self

    def transfer(self, operations):
        """Send and receive what the operations of a group say; BrokenBarrierError for one without a counterpart."""
        for name, at, count, peer in operations:
            if name == "send":
                self.meeting.sent[self.rank, peer].put(read(at, count))
        for name, at, count, peer in operations:
            if name == "recv":
                values = self._sent_by(peer)
                assert len(values) == count, "a member sends another number of bytes than one receives"
                write(at, values)

    def _sent_by(self, peer):
        for _ in range(20 * WAIT_SECONDS):
            with suppress(Empty):
                return self.meeting.sent[peer, self.rank].get(timeout=0.05)
            if self.meeting.barrier.broken:
                break
        raise threading.BrokenBarrierError(f"member {peer} has sent nothing to member {self.rank}")

    def destroy(self):
        raise AssertionError("destroy waits for members that may wait for this one, and so does abort")

    abort = destroy


def read(address, size):
    return ctypes.string_at(address, size)


def write(address, values):
    ctypes.memmove(address, values, len(values))


@pytest.fixture
def nccl(monkeypatch):
    """A FakeNccl, and arrays of the simulator that are OnDevice where a group takes or makes them."""
    fake = FakeNccl()
    device_array, total, exchange = runtime.named("sim").device_array, GpuGroup._sum, GpuGroup._exchange
    monkeypatch.setattr(groups, "nccl", lambda: fake)
    monkeypatch.setattr(runtime.named("sim"), "device_array", lambda *args: device_array(*args).view(OnDevice))
    monkeypatch.setattr(GpuGroup, "_sum", lambda group, array: total(group, array.view(OnDevice)))
    monkeypatch.setattr(
        GpuGroup,
        "_exchange",
        lambda group, pieces, places: exchange(group, [piece.view(OnDevice) for piece in pieces], places),
    )
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "")
    return fake


def members(number, work, nccl):
    """What `work(group)` returns in each of `number` members of a GpuGroup; a member's error ends the others."""
    key = nccl.get_unique_id()

    def member(rank):
        try:
            with runtime.using("sim"), GpuGroup(key, rank, number) as group:
                return work(group)
        except BaseException:
            nccl.meetings[key].barrier.abort()  # the processes of the others are ended
            raise

    with ThreadPoolExecutor(number) as threads:
        futures = [threads.submit(member, rank) for rank in range(number)]
    errors = [future.exception() for future in futures if future.exception() is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    assert all(queue.empty() for queue in nccl.meetings[key].sent.values()), "what was sent was not received"
    return [future.result() for future in futures]


def test_a_group_of_gpus_sums_and_exchanges_arrays(nccl):
    def work(group):
        total = group.sum(np.full(3, 10**group.rank))
        received, sizes = group.exchange([np.full(group.rank + k, group.rank, np.int32) for k in range(3)])
        nothing, none = group.gather(np.zeros(0, np.uint64))
        assert nothing.dtype == np.uint64 and nothing.size == 0 and none == [0] * 3
        return total.tolist(), received.tolist(), sizes, group.gather(np.array([group.rank]))[0].tolist()

    for rank, (total, received, sizes, gathered) in enumerate(members(3, work, nccl)):
        assert total == [111] * 3 and gathered == [0, 1, 2]
        assert sizes == [rank, rank + 1, rank + 2] and received == [0] * rank + [1] * (rank + 1) + [2] * (rank + 2)


def test_nothing_of_no_elements_is_sent(nccl):
    def work(group):  # only member 0 sends, and only to member 1
        return group.exchange([np.ones(2 if (group.rank, k) == (0, 1) else 0, np.int32) for k in range(3)])[1]

    assert members(3, work, nccl) == [[0, 0, 0], [2, 0, 0], [0, 0, 0]]
    assert Counter(nccl.log) == Counter(
        [(rank, name) for rank in range(3) for name in ("init", "allReduce")] + [(0, "send"), (1, "recv")]
    )


def test_large_bytes_arrive_as_they_were(nccl):
    values = np.random.default_rng(0).integers(0, 2**64, 1 << 16, np.uint64)
    first, second = members(2, lambda group: group.exchange([values[group.rank :], values[: 1 + group.rank]])[0], nccl)
    assert np.array_equal(first, np.append(values, values[1:]))
    assert np.array_equal(second, np.append(values[:1], values[:2]))


@pytest.mark.parametrize("name", ["init", "allReduce", "send", "recv"])
def test_a_member_that_fails_waits_for_nobody(name, nccl):
    """It tells so at once, and is then in no operation."""
    nccl.failing = 1, name
    with pytest.raises(GraphError, match="member 1 fails"):
        members(2, lambda group: group.gather(np.zeros(5)), nccl)
    assert [called for rank, called in nccl.log if rank == 1][-1] == name


def test_a_group_that_failed_is_not_used_again(nccl):
    group = GpuGroup(nccl.get_unique_id(), 0, 1)
    with group:
        group.gather(np.zeros(5))
    nccl.failing = 0, "allReduce"
    with pytest.raises(GraphError, match="member 0 fails"), group:
        group.gather(np.zeros(5))
    calls = len(nccl.log)
    with pytest.raises(RuntimeError, match="a group that has failed"), group:
        group.gather(np.zeros(5))
    assert len(nccl.log) == calls


def test_python_never_deletes_a_communicator(nccl):
    """CuPy's then waits for all members, also at the end of a process."""
    group = GpuGroup(nccl.get_unique_id(), 0, 1)
    seen = weakref.ref(group._communicator)
    del group
    gc.collect()
    assert seen() is not None


def counted(number, edges, nccl, **knobs):
    """What the members of a group of GPUs count together."""
    u, v, n = edges
    results = members(number, lambda group: division._count(group, HostEdges(u, v, number), n, knobs), nccl)
    calls = Counter(name for _, name in nccl.log)
    assert calls["init"] == number and calls["send"] == calls["recv"]
    assert {result.vertices for result in results} == {n}
    return sum(result.triangles for result in results)


@pytest.mark.sim
def test_a_group_serves_several_counts(nccl):
    names = "R-MAT", "cliques", "R-MAT"

    def work(group):
        results = []
        for u, v, n in (raw(GRAPHS[name]) for name in names):
            with group:
                results.append(division._count(group, HostEdges(u, v, 2), n, {"near": 20}))
        return results

    found = members(2, work, nccl)
    for name, *results in zip(names, *found, strict=True):
        assert sum(result.triangles for result in results) == cpu.count(GRAPHS[name])
    for first, second, third in found:
        assert 0 < first.sent_bytes == third.sent_bytes != second.sent_bytes
    assert Counter(name for _, name in nccl.log)["init"] == 2


@pytest.mark.sim
@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("name", ["R-MAT", "cliques"])
def test_a_group_of_gpus_counts(name, number, nccl):
    knobs = {"near": 40, "hubs": 12, "heavy": 4, "crowd": 9, "short": 5}
    assert counted(number, raw(GRAPHS[name]), nccl, **knobs) == cpu.count(GRAPHS[name])


@pytest.mark.sim
@pytest.mark.parametrize("name", share(CLASSES, "groups"))
def test_each_class_is_counted_by_two_gpus(name, nccl):
    assert counted(2, raw(GRAPHS["R-MAT"]), nccl, **CLASSES[name]) == cpu.count(GRAPHS["R-MAT"])


@pytest.mark.sim
@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.uint64])
def test_raw_edges_of_any_integers_are_counted(dtype, nccl):
    u, v, n = raw(GRAPHS["cliques"])
    assert counted(2, (u.astype(dtype), v.astype(dtype), n), nccl, near=20) == cpu.count(GRAPHS["cliques"])


@pytest.mark.sim
def test_members_without_edges_count(nccl):
    assert counted(4, (np.array([0, 1, 2]), np.array([1, 2, 0]), 3), nccl) == 1


def test_compiled_kernels_count_in_a_group(nccl, processor):
    graph = generate.rmat(12, seed=1)
    with processor.instead_of_the_simulator(seed=1, **compiled.LARGE):
        assert counted(2, raw(graph), nccl, near=1000, hubs=200, short=20) == cpu.count(graph)


@pytest.mark.sim
def test_members_own_the_same_columns_as_threads_do(nccl):
    edges = raw(GRAPHS["R-MAT"])

    def work(group):
        *ends, n = of_member(edges, group)
        _, _, row_idx, _ = own_columns.own_columns(group, ends, n)
        return row_idx.size

    assert sum(members(3, work, nccl)) == GRAPHS["R-MAT"].m


@pytest.mark.sim
def test_an_error_in_a_step_is_raised(nccl, monkeypatch):
    plans = division._plans

    def fail(group, *args):
        if group.rank == 1:
            raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")
        yield from plans(group, *args)

    monkeypatch.setattr(division, "_plans", fail)
    with pytest.raises(GraphError, match="the graph, divided among the GPUs, does not fit this device"):
        counted(2, raw(GRAPHS["cliques"]), nccl, near=20)


@pytest.mark.sim
def test_a_worker_keeps_its_group(nccl, monkeypatch):
    using = runtime.using
    monkeypatch.setattr(runtime, "using", lambda name: using("sim"))
    monkeypatch.setattr(division, "_joined", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
    u, v, n = raw(GRAPHS["cliques"])
    for joined, key in enumerate((b"1" * 128, b"2" * 128), 1):
        for _ in range(2):
            count = division.Division(key, ("GPU-a",), HostEdges(u, v, 1), n)
            assert division.count_as_member(count).triangles == cpu.count(GRAPHS["cliques"])
            assert nccl.log.count((0, "init")) == joined


def test_a_worker_joins_as_the_member_of_its_gpu(nccl, monkeypatch):
    made = []
    monkeypatch.setattr(division, "GpuGroup", lambda *args: made.append(args))
    monkeypatch.setattr(division, "_joined", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-b")
    division._group(division.Division(b"key", ("GPU-a", "GPU-b", "GPU-c"), None, None))
    assert made == [(b"key", 1, 3)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-d")
    with suppress(ValueError):
        division._group(division.Division(b"another key", ("GPU-a",), None, None))
        pytest.fail("this worker is no member")
