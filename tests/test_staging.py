"""Copies of large arrays to and from a device: complete, in any order of events, and all resources are freed."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from late_device import Device, LateEvent

from tcgpu.declarations import CUDA
from tcgpu.engines import native, runtime, sim, staging

WORDS, SLOTS = 16, 3
SLOT = 8 * WORDS  # bytes
DTYPES = [np.int32, np.int64, np.uint16, np.uint8, np.float32, bool]
SIZES = [0, 1, SLOT - 8, SLOT, SLOT + 8, 2 * SLOT, 25 * SLOT - 8]  # bytes


pytestmark = pytest.mark.usefixtures("own_rings")


class Copying(staging.Staged, sim.Engine):
    """The simulator, if it copied as a GPU does."""


def upload(array):
    return runtime.current().upload(array)


def download(array, halved=False):
    return runtime.current().download(array, halved)


@pytest.fixture
def small(monkeypatch):
    """Slots so small that every array takes many, in the simulator."""
    engine = Copying()
    monkeypatch.setattr(runtime, "named", lambda name: engine)
    monkeypatch.setattr(staging, "SLOT_WORDS", WORDS)
    monkeypatch.setattr(staging, "SLOTS", SLOTS)
    monkeypatch.setattr(staging, "PIECE_WORDS", 5)
    with runtime.using("sim"):
        yield


@pytest.fixture
def late(monkeypatch, small, request):
    """A device that does all work as late as allowed."""
    device = Device(getattr(request, "param", 0))
    monkeypatch.setattr(runtime.current(), "Stream", device.stream)
    return device


def some(size, dtype=np.int64):
    return np.random.default_rng(size).integers(0, 2 if dtype is bool else 251, size).astype(dtype)


@pytest.fixture(autouse=True)
def earlier_threads():
    """The threads that other tests have left, like those of a pool that is kept."""
    global _earlier
    _earlier = set(threading.enumerate())


def feeding():
    """The threads that fill rings, of this test."""
    return [thread for thread in set(threading.enumerate()) - _earlier if "tcgpu-feeder" in thread.name]


def kept():
    return list(vars(staging.kept).get("rings", {}).values())


# --------------------------------------------------------------------------------------------------------- the copies


@pytest.mark.sim
@pytest.mark.parametrize("late", range(3), indirect=True)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nbytes", SIZES)
def test_an_upload_is_complete_in_any_order_of_events(late, nbytes, dtype):
    for more in (-1, 0, 1):
        array = some(max(0, nbytes // np.dtype(dtype).itemsize + more), dtype)
        there = upload(array)
        assert there.dtype == dtype and np.array_equal(there, array)
    assert len(late.streams) <= 1, "the ring is kept for the next array"


@pytest.mark.sim
@pytest.mark.parametrize("late", range(3), indirect=True)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nbytes", SIZES)
def test_a_download_is_complete_in_any_order_of_events(late, nbytes, dtype):
    for more in (-1, 0, 1):
        array = some(max(0, nbytes // np.dtype(dtype).itemsize + more), dtype)
        for shaped in (array, array[: array.size // 2 * 2].reshape(-1, 2)):
            here = download(shaped)
            assert here.dtype == dtype and np.array_equal(here, shaped) and not np.shares_memory(here, shaped)
            if np.issubdtype(dtype, np.integer):
                halves = download(shaped, halved=True)
                assert halves.dtype == dtype and np.array_equal(halves, shaped >> 1)
    assert len(late.streams) <= 1, "the ring is kept for the next array"


@pytest.mark.sim
def test_a_slot_is_not_written_to_while_a_thread_reads_it(late):
    """Slow threads still read the right piece."""
    array, here = some(20 * WORDS), np.zeros(20 * WORDS, np.int64)

    def take(first, piece):
        time.sleep(0.003)
        here[first : first + piece.size] = piece

    with runtime.kept_ring(WORDS) as ring:
        staging.fetch(ring, array, take)
        assert np.array_equal(here, array)
        with pytest.raises(ZeroDivisionError):
            staging.fetch(ring, array, lambda first, piece: 1 // 0)


@pytest.mark.sim
@pytest.mark.parametrize("waits", ["event", "thread"])
def test_the_late_device_detects_missing_waits_of_downloads(late, monkeypatch, waits):
    """A piece is read before it is copied, or a slot is overwritten before it is read."""
    array = some(40 * WORDS)
    if waits == "event":
        monkeypatch.setattr(LateEvent, "synchronize", lambda event: None)
        assert not np.array_equal(download(array), array)
    else:
        seen, fetched = np.zeros(array.size, np.int64), threading.Event()

        def take(first, piece):
            fetched.wait()
            seen[first : first + piece.size] = piece

        with runtime.kept_ring(WORDS) as ring:
            monkeypatch.setattr(Future, "result", lambda future: None)
            staging.fetch(ring, array, take)
            fetched.set()
            ring.threads.shutdown()
        assert not np.array_equal(seen, array)


@pytest.mark.sim
def test_the_late_device_detects_missing_waits_of_uploads(late, monkeypatch):
    """A slot is filled again before it is copied."""
    monkeypatch.setattr(LateEvent, "query", lambda event: True)
    array = some(40 * WORDS)
    assert not np.array_equal(upload(array), array)


@pytest.mark.sim
@pytest.mark.parametrize(
    "shaped",
    [
        lambda a: a[::3],
        lambda a: a[::-1],
        lambda a: a.reshape(-1, 2)[:, 1],
        lambda a: a.reshape(10, -1),
        lambda a: a.reshape(10, -1).T,
        lambda a: a.reshape(5, 4, -1)[:, 1:3],
    ],
)
def test_arrays_of_any_layout(late, shaped):
    array = shaped(some(40 * WORDS))
    there = upload(array)
    assert there.shape == array.shape and there.flags.c_contiguous and np.array_equal(there, array)


@pytest.mark.sim
def test_files_mapped_into_memory(late, tmp_path):
    array = some(33 * WORDS, np.int32)
    np.save(tmp_path / "array.npy", array)
    assert np.array_equal(upload(np.load(tmp_path / "array.npy", mmap_mode="r")), array)


@pytest.mark.sim
def test_loads_are_copied_in_order(late):
    """Even if pieces of the next one are filled before."""
    arrays = [some(size * WORDS + size) for size in (7, 1, 0, 12)]
    there = [np.zeros(array.size, np.int64) for array in arrays]
    with runtime.kept_ring(WORDS) as ring:
        feeder = staging.Feeder(ring)
        loads = [
            feeder.request(staging.Load(target, array.size, partial(staging.read_piece, array)))
            for target, array in zip(there, arrays, strict=True)
        ]
        for load, target, array in zip(loads, there, arrays, strict=True):
            ready = feeder.copy(load)
            if array.size:
                ready.synchronize()
            assert np.array_equal(target, array) and load.not_copied == load.without_slot == 0


@pytest.mark.sim
def test_a_load_with_slots_does_not_wait_for_the_next_load(late, monkeypatch):
    """It is enqueued at once, even if earlier copies take long, so that kernels can be launched after it."""
    monkeypatch.setattr(LateEvent, "query", lambda event: False)
    monkeypatch.setattr(LateEvent, "synchronize", lambda event: pytest.fail("waited for a copy"))
    there, goes_on = np.zeros(SLOTS * WORDS, np.int64), threading.Event()

    def fill(first, piece):
        assert not first or goes_on.wait(60)

    with runtime.kept_ring(WORDS) as ring:
        feeder = staging.Feeder(ring)
        load = feeder.request(staging.Load(there, there.size, fill))
        feeder.request(staging.Load(there, there.size, fill))
        threading.Timer(0.3, goes_on.set).start()
        feeder.copy(load)
    assert load.not_copied == 0


def test_which_arrays_are_copied_through_a_ring():
    """Large arrays of plain numbers; CuPy copies the others."""
    large = np.zeros(staging.LARGE_COPY, np.uint8)
    assert staging.is_large(large) and not staging.is_large(large[1:])
    assert staging.is_large(large.view(np.int64)) and not staging.is_large(large.view(">i8"))
    assert not staging.is_large(large.view("S8")) and not staging.is_large(large.view("i4,i4"))


@pytest.mark.sim
@pytest.mark.parametrize(
    "words, pieces", [(0, []), (4, [4]), (6, [5, 1]), (15, [5, 5, 5]), (30, [10, 10, 10]), (50, [16, 16, 16, 2])]
)
def test_a_small_load_is_spread_over_the_slots(small, words, pieces):
    filled = {}
    runtime.fill_from_host(np.zeros(words, np.int64), lambda at, piece: filled.setdefault(at, piece.size))
    assert [filled[at] for at in sorted(filled)] == pieces and sorted(filled) == np.cumsum([0, *pieces])[:-1].tolist()
    halves = {}
    runtime.fill_from_host(np.zeros(4 * words, np.int16), lambda at, piece: halves.setdefault(at, piece.size))
    assert [halves[at] for at in sorted(halves)] == [4 * size for size in pieces]


def test_the_number_of_slots_and_threads_of_a_ring(monkeypatch):
    monkeypatch.setattr(staging, "SLOTS", 5)
    for fillers, cores, expected in ((4, 9, 4), (9, 9, 5), (4, 2, 2)):
        monkeypatch.setattr(staging, "FILLERS", fillers)
        monkeypatch.setattr(native, "_threads", cores)
        with runtime.using("sim"), runtime.kept_ring(128) as ring:
            assert ring.threads._max_workers == expected and sum(slot.nbytes for slot in ring.slots) == 5 * 1024
        staging.end_rings()
        runtime.release_device_memory()


@pytest.mark.sim
def test_a_ring_is_kept_until_a_larger_one_is_needed(small):
    sizes = []
    for words in (4, 2, 5, 3, 100):
        with runtime.kept_ring(words) as ring:
            sizes.append(ring.slots[0].size)
            assert len(feeding()) <= SLOTS
    assert sizes == [4, 4, 8, 8, WORDS]


# ----------------------------------------------------------------------------------------------- resources are freed


@pytest.mark.sim
def test_a_ring_is_kept_until_memory_is_released(small):
    upload(some(400))
    (own,) = kept()
    upload(some(400, np.int32))
    assert kept() == [own] and feeding()
    staging.end_rings()
    runtime.release_device_memory()
    assert not kept() and not feeding()


@pytest.mark.sim
@pytest.mark.parametrize("piece", [0, 1, 5, 24])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_in_a_thread_is_raised_and_the_ring_is_freed(late, piece, error):
    def fill(first, words):
        if first == piece * WORDS:
            raise error("a fault")

    with pytest.raises(error, match="a fault"):
        runtime.fill_from_host(np.zeros(25 * WORDS, np.int64), fill)
    assert not kept() and not feeding()
    assert np.array_equal(upload(some(400)), some(400))


@pytest.mark.sim
def test_the_ring_is_freed_after_an_interruption(late, monkeypatch):
    """Here while the host waits for the device."""

    def interrupted(event):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LateEvent, "synchronize", interrupted)
        upload(some(400))
    assert not kept() and not feeding()
    assert np.array_equal(upload(some(400)), some(400))


@pytest.mark.sim
def test_a_copy_during_another_one_has_its_own_ring(small):
    inner = []

    def fill(first, piece):
        piece[:] = first

    upload(some(300))
    there = np.zeros(4 * WORDS, np.int64)
    with runtime.kept_ring(WORDS) as own:
        feeder = staging.Feeder(own)
        load = feeder.request(staging.Load(there, there.size, fill))
        inner.append(upload(some(300)))
        feeder.copy(load)
    assert np.array_equal(inner[0], some(300)) and np.array_equal(there, np.arange(4 * WORDS) // WORDS * WORDS)
    assert kept() == [own]


@pytest.mark.sim
def test_each_thread_has_its_own_ring(small):
    def send(seed):
        arrays = [some(size, np.int32) for size in range(seed, 4000, 397)]
        same = all(np.array_equal(upload(array), array) for array in arrays)
        return same, kept()[0]

    with ThreadPoolExecutor(4) as pool:
        meeting = threading.Barrier(4)
        found = list(pool.map(lambda seed: meeting.wait() and None or send(seed), range(1, 5)))
    assert all(same for same, _ in found) and len({id(own) for _, own in found}) == 4


UPLOAD = """
import os, sys, threading
from functools import partial
import numpy as np
from tcgpu.engines import runtime, staging
array = np.arange(1 << 20)
def same():
    there = runtime.device_array(array.size, array.dtype)
    with runtime.kept_ring(1 << 10) as ring:
        feeder = staging.Feeder(ring)
        load = staging.Load(there, array.size, partial(staging.read_piece, array))
        feeder.copy(feeder.request(load)).synchronize()
    return np.array_equal(runtime.to_host(there), array)
"""
PROCESS = """
with runtime.using(sys.argv[1]):
    print(same(), any("tcgpu-feeder" in thread.name for thread in threading.enumerate()))
"""
FORK = """
with runtime.using("sim"):
    same()
    child = os.fork()
    found = same()
if not child: os._exit(not found)
print(found, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("engine", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in CUDA])
def test_a_process_with_a_ring_can_end(engine):
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UPLOAD + PROCESS, engine], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout.split(), ran.stderr) == (0, ["True", "True"], "")


@pytest.mark.sim
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_forked_child_makes_its_own_ring():
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UPLOAD + FORK], capture_output=True, text=True, timeout=120, check=True
    )
    assert ran.stdout.split() == ["True", "0"], ran.stderr


# ----------------------------------------------------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_uploads_to_a_gpu_are_complete(dtype):
    slot = 8 * staging.SLOT_WORDS // np.dtype(dtype).itemsize
    for size in (0, 1, slot - 1, slot, slot + 1, (staging.SLOTS + 1) * slot + 3):
        array = some(size, dtype)
        for there in (runtime.to_device(array), upload(array)):
            found = runtime.to_host(there)
            assert found.dtype == dtype and np.array_equal(found, array), size


@pytest.mark.gpu
def test_arrays_of_any_layout_on_a_gpu(tmp_path):
    array = some(8 << 20, np.int32)
    np.save(tmp_path / "array.npy", array)
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    for shaped in (array.reshape(-1, 2)[:, 1], array[::-1], array.reshape(1 << 10, -1), mapped):
        assert np.array_equal(runtime.to_host(runtime.to_device(shaped)), shaped)
        library = pytest.importorskip("cupy", reason="CuPy is not installed")
        there = runtime.to_device_library(shaped)
        assert isinstance(there, library.ndarray) and np.array_equal(runtime.to_host(there), shaped)


@pytest.mark.gpu
def test_uploads_are_ordered_with_kernels():
    """Memory may be reused for the next array while a kernel still reads it: the copy waits for the kernel."""
    size = 16 << 20
    ones, twos = np.full(size, 1, np.uint8), np.full(size, 2, np.uint8)
    for _ in range(20):
        first, copy = runtime.to_device(ones), runtime.device_array(size, np.uint8)
        runtime.current().sleep(3000)
        copy[:] = first
        del first
        second, again = runtime.to_device(twos), runtime.device_array(size, np.uint8)
        again[:] = second
        assert (runtime.to_host(copy) == 1).all() and (runtime.to_host(again) == 2).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_arrays_are_downloaded(dtype):
    """Of any library and shape, after the kernels that were launched before."""
    cupy = pytest.importorskip("cupy")
    array = some(5 * staging.LARGE_COPY // np.dtype(dtype).itemsize, dtype)
    there = cupy.asarray(array)
    runtime.current().sleep(5000)
    twice = there ^ there if dtype is bool else there + there
    assert np.array_equal(runtime.to_host(twice), array ^ array if dtype is bool else array + array)
    assert np.array_equal(runtime.to_host(there.reshape(5, -1)), array.reshape(5, -1))
    assert np.array_equal(runtime.to_host(there.reshape(5, -1).T), array.reshape(5, -1).T)
    assert np.array_equal(runtime.to_host(there[::2]), array[::2])
    assert np.array_equal(runtime.to_host(runtime.to_device(array)), array)
    if np.issubdtype(dtype, np.integer):
        for each in (slice(None), slice(None, None, 2), slice(9)):
            assert np.array_equal(runtime.to_host_halved(there[each]), array[each] >> 1)


@pytest.mark.gpu
def test_pinned_memory_is_released():
    """The driver refuses to pin what is pinned, and to unpin what is not."""
    cuda = pytest.importorskip("cupy").cuda.runtime
    runtime.to_device(np.zeros(2 * staging.LARGE_COPY, np.uint8))
    (own,) = kept()
    addresses = [slot.ctypes.data for slot in own.slots]
    with pytest.raises(cuda.CUDARuntimeError, match="AlreadyRegistered"):
        cuda.hostRegister(addresses[0], own.slots[0].nbytes, 0)
    del own
    staging.end_rings()
    runtime.release_device_memory()
    for address in addresses:
        with pytest.raises(cuda.CUDARuntimeError, match="NotRegistered"):
            cuda.hostUnregister(address)
    assert not kept() and not feeding()


@pytest.mark.gpu
def test_two_threads_at_once_on_a_gpu():
    def send(seed):
        arrays = [some(size, np.int32) for size in range((1 << 20) + seed, 1 << 24, (1 << 22) + 1)]
        return all(np.array_equal(runtime.to_host(runtime.to_device(array)), array) for array in arrays)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(send, range(2)))
