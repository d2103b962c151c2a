"""Both engines of kernels: arrays, intrinsics, timing, plans, and errors in kernels."""

import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from contextlib import nullcontext
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest

from tcgpu import Graph, GraphError, MethodError
from tcgpu.declarations import check_integer
from tcgpu.distributed.stream import freed_afterwards
from tcgpu.engines import runtime
from tcgpu.engines.choice import named_gpus
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.engines.simulator import simulate
from tcgpu.kernels import Plan, Step, enough_blocks
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to
from tcgpu.kernels.report import naive

THREADS = 40  # a whole warp and a part of one


# ------------------------------------------------------------------------------------------------------------- engines


def test_the_engine_of_the_process_has_a_reason():
    assert runtime.ENGINE in runtime.ENGINES and runtime.REASON
    assert runtime.engine() == runtime.ENGINE


def test_using_an_engine_ends_with_the_with():
    with runtime.using("sim"):
        assert runtime.engine() == "sim"
        assert naive.plan(Graph.from_edges([0, 0, 1], [1, 2, 2])).count() == 1
    assert runtime.engine() == runtime.ENGINE


@pytest.mark.parametrize("name", ["cpu", "tpu", ""])
def test_an_unknown_engine_is_refused(name):
    with pytest.raises(ValueError, match="no engine"), runtime.using(name):
        pass


@pytest.mark.parametrize("visible", ["", "-1", " "])
def test_no_gpu_is_visible_if_the_environment_hides_them(monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert runtime.visible_gpus() == 0


@pytest.mark.parametrize(
    "visible, named", [("0", ["0"]), ("2, 3", ["2", "3"]), ("1,-1,2", ["1"]), ("-1", []), ("", [])]
)
def test_the_environment_restricts_visible_gpus(visible, named, monkeypatch):
    """The list ends at -1."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("tcgpu.engines.choice._gpus_here", lambda: 4)
    assert named_gpus() == named and runtime.visible_gpus() == len(named)


def test_all_gpus_are_visible_by_default(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("tcgpu.engines.choice._gpus_here", lambda: 4)
    assert named_gpus() is None and runtime.visible_gpus() == 4


@pytest.mark.parametrize("value, engine", [("1", "sim"), ("0", runtime.ENGINE)])
def test_numbas_variable_selects_the_simulator(value, engine, monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", value)
    code = "from tcgpu.engines import runtime; from tcgpu.kernels.report import naive; from tcgpu import Graph; " + (
        "print(runtime.ENGINE, naive.plan(Graph.from_edges([0, 0, 1], [1, 2, 2])).count())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [engine, "1"]


def test_a_child_forked_after_the_import_counts():
    code = (
        "import os, tcgpu\n"
        "from tcgpu.engines import runtime\n"
        "graph = tcgpu.Graph.from_edges([0, 0, 1], [1, 2, 2])\n"
        "child = os.fork()\n"
        "found = tcgpu.count(graph, 'naive')\n"
        "if not child: os._exit(found)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found)\n"
    )
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["1", "1"], ran.stderr


def test_facts_of_the_device():
    facts = runtime.facts().asdict()
    assert facts["name"] and facts["sms"] >= 1 and facts["shared_per_block"] >= 48 << 10
    assert facts["memory_bytes"] >= runtime.memory_free() > 0


# -------------------------------------------------------------------------------------------------------------- arrays


class OnlyDLPack:
    """An array of a library that supports DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [np.asarray, list, OnlyDLPack, memoryview])
def test_arrays_of_any_library_are_copied_to_the_host(wrap):
    array = np.arange(7, dtype=np.int32)
    found = runtime.to_host(wrap(array))
    assert isinstance(found, np.ndarray) and np.array_equal(found, array)


@pytest.mark.parametrize("fill", [None, 0, -1])
def test_device_arrays_are_created_filled_and_read(fill):
    array = runtime.device_array(5, np.int64, fill)
    if fill is not None:
        assert runtime.to_host(array).tolist() == [fill] * 5
    runtime.refill(array, -1)
    assert runtime.to_host(array).tolist() == [-1] * 5
    runtime.refill(runtime.device_array(0, np.int32, 0), 0)


def test_arrays_made_at_once_are_as_long_and_filled_as_those_made_alone():
    created = {
        "zeros": (5, np.int64, 0), "any": (3, np.int32, None), "none": (0, np.int64, 0), "ones": (7, np.uint8, -1),
        "more": (700, np.uint32, 0), "all": (9, np.int64, -1),
    }  # fmt: skip
    for large in ({}, {"large": (1 << 28, np.uint8, None)}):  # with which each has memory of its own
        made = runtime.device_arrays(created | large)
        for name, (length, dtype, fill) in created.items():
            assert made[name].shape == (length,) and made[name].dtype == dtype
            if fill is not None:
                assert set(runtime.to_host(made[name]).astype(np.int64)) <= {np.int64(fill).astype(dtype)}
        made["any"][:] = 7
        runtime.refill(made["zeros"], -1)
        assert not runtime.to_host(made["more"]).any() and set(runtime.to_host(made["all"])) == {-1}


def test_a_device_array_is_a_copy():
    array = np.arange(4)
    there = runtime.to_device(array)
    array[:] = 9
    assert runtime.to_host(there).tolist() == [0, 1, 2, 3]


# -------------------------------------------------------------------------------------------- intrinsics, on any engine


@kernel("void(int64[:, ::1])")
def every_intrinsic(out):
    thread = cuda.threadIdx.x
    lane = thread % 32
    lanes = uint32(0xFFFFFFFF) if thread < 32 else uint32(0xFF)  # the second warp has 8 lanes
    out[0, thread] = cuda.shfl_sync(lanes, thread, 3)
    out[1, thread] = cuda.shfl_down_sync(lanes, thread, 2)
    out[2, thread] = cuda.shfl_up_sync(lanes, thread, 1)
    out[3, thread] = cuda.shfl_xor_sync(lanes, thread, 1)
    out[4, thread] = uint32(cuda.ballot_sync(lanes, lane % 3 == 0))
    out[5, thread] = cuda.any_sync(lanes, thread == 33)
    out[6, thread] = cuda.all_sync(lanes, thread > 31)
    cuda.syncwarp(lanes)
    out[7, thread] = cuda.syncthreads_count(int32(thread > 4))
    out[8, thread] = cuda.syncthreads_and(int32(thread >= 0)) != 0
    out[9, thread] = cuda.syncthreads_or(int32(thread == 39)) != 0
    out[10, thread] = uint32(cuda.match_any_sync(lanes, int32(lane // 4)))


def test_intrinsics_follow_cuda():
    out = runtime.device_array(11 * THREADS, np.int64, 0).reshape(11, THREADS)
    every_intrinsic.launch(1, THREADS, out)
    found = runtime.to_host(out)
    thread = np.arange(THREADS)
    first, last = thread // 32 * 32, np.where(thread < 32, 31, 39)
    same_four = sum(np.where(thread // 4 == other // 4, 1 << other % 32, 0) for other in range(THREADS))
    expected = [
        first + 3,
        np.where(thread + 2 > last, np.where(thread < 32, thread, found[1]), thread + 2),  # past 8 lanes: undefined
        np.where(thread == first, thread, thread - 1),
        thread ^ 1,
        np.where(thread < 32, sum(1 << lane for lane in range(0, 32, 3)), 0b01001001),
        thread > 31,
        thread > 31,
        np.full(THREADS, THREADS - 5),
        np.ones(THREADS),
        np.ones(THREADS),
        same_four,
    ]
    for k, row in enumerate(expected):
        assert np.array_equal(found[k], row), k


@kernel("void(int64[::1], int64[::1])")
def add_all(values, total):
    thread = cuda.grid(1)
    value = int64(0)
    if thread < values.size:
        value = values[thread]
    add_block_to(total, value)


@pytest.mark.parametrize("threads", [1, 2, 3, 31, 33, 64, 100, 255, 1024])
def test_the_reduction_adds_up_blocks_of_any_size(threads):
    values = np.arange(2500, dtype=np.int64) * (1 << 33)
    total = runtime.device_array(1, np.int64, 0)
    blocks = -(-values.size // threads)
    add_all.launch(blocks, threads, runtime.to_device(values), total, shared=threads * BYTES_PER_THREAD)
    assert runtime.to_host(total)[0] == values.sum()


def test_a_kernel_is_timed():
    values, total = runtime.to_device(np.ones(64, np.int64)), runtime.device_array(1, np.int64, 0)
    prepared = []
    took = runtime.elapsed_ms(
        lambda: add_all.launch(1, 64, values, total, shared=64 * BYTES_PER_THREAD), lambda: prepared.append(1)
    )
    assert 0 < took < 5000 and prepared


# ------------------------------------------------------------------------------------------------ what a simulator sees


def reads_before_writing(out):
    memory = cuda.shared.array(4, int32)
    out[cuda.threadIdx.x] = memory[cuda.threadIdx.x]


def forgets_the_barrier(out):
    memory = cuda.shared.array(8, int32)
    memory[cuda.threadIdx.x] = cuda.threadIdx.x
    out[cuda.threadIdx.x] = memory[7 - cuda.threadIdx.x]


def has_the_barrier(out):
    memory = cuda.shared.array(8, int32)
    memory[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = memory[7 - cuda.threadIdx.x]


def waits_forever(out):
    if cuda.threadIdx.x == 0:
        cuda.syncthreads()
    else:
        cuda.syncwarp()


def writes_outside(out):
    if cuda.grid(1) == 9:
        out[99] = 1


def returns_early(out):
    if cuda.threadIdx.x >= 3:
        return
    cuda.syncthreads()
    out[cuda.threadIdx.x] = cuda.ballot_sync(uint32(0xFFFFFFFF), True)


def has_two_arrays_in_a_line(out):
    one, two = cuda.shared.array(1, int32), cuda.shared.array(1, int32)
    one[0] = 1
    two[0] = 2
    out[0] = one[0]


def test_shared_memory_is_uninitialized():
    out = np.zeros(4, np.int32)
    simulate(reads_before_writing, 1, 4, (out,))
    assert (out != 0).all()


def test_a_missing_barrier_changes_results_in_some_order_of_the_threads():
    def results(function):
        found = set()
        for seed in range(10):
            out = np.zeros(8, np.int32)
            simulate(function, 1, 8, (out,), seed=seed)
            found.add(tuple(out))
        return found

    assert len(results(forgets_the_barrier)) > 1
    assert results(has_the_barrier) == {(7, 6, 5, 4, 3, 2, 1, 0)}


def test_a_barrier_that_is_never_reached_is_an_error():
    with pytest.raises(RuntimeError, match="never reach"):
        simulate(waits_forever, 1, 3, (np.zeros(3),))


def test_an_error_names_the_thread_and_the_line():
    with pytest.raises(IndexError) as caught:
        simulate(writes_outside, 3, 4, (np.zeros(8),))
    assert caught.value.__notes__ == ["in thread 1 of block 2"]
    assert caught.traceback[-1].lineno + 1 == writes_outside.__code__.co_firstlineno + 2


def test_barriers_do_not_wait_for_threads_that_have_returned():
    out = np.zeros(8, np.int64)
    simulate(returns_early, 1, 8, (out,))
    assert out.tolist() == [7, 7, 7, 0, 0, 0, 0, 0]


def test_two_shared_arrays_in_one_line_are_different():
    out = np.zeros(1, np.int32)
    simulate(has_two_arrays_in_a_line, 1, 1, (out,))
    assert out[0] == 1


# --------------------------------------------------------------------------------------------------------------- plans


@pytest.fixture
def triangle():
    return Graph.from_edges([0, 0, 1], [1, 2, 2])


def test_a_plan_allocates_its_arrays_and_frees_them(triangle):
    plan = naive.plan(triangle)
    assert plan.device_bytes == 3 * 4 + 3 * 4 + 4 * 8 + 8  # row_idx, col_of, col_ptr, total
    run, other = plan.allocate(), plan.allocate()
    assert sum(array.nbytes for array in run.arrays.values()) == plan.device_bytes
    for _ in range(2):
        run.launch()
    assert run.result() == 2
    run.reset()
    run.launch()
    assert run.result() == 1
    run.free()
    assert not run.arrays and other.result() == 0


def test_nothing_changes_a_plan(triangle):
    created = {"more": (4, np.int32, 0)}
    plan = Plan("some", {}, created, [Step(add_all, 1, 32, ())])
    assert list(created) == ["more"] and list(plan.created) == ["more", "total"]
    with pytest.raises(FrozenInstanceError):
        plan.setup = []
    with pytest.raises(TypeError, match="does not support item assignment"):
        plan.created["more"] = 1, np.int32, 0
    with pytest.raises(AttributeError, match=r"run = plan\.allocate\(\), then run\.launch"):
        plan.launch()


def test_a_plan_that_does_not_fit_is_refused_before_any_copy(triangle, monkeypatch):
    monkeypatch.setattr(runtime, "memory_free", lambda: 10)
    monkeypatch.setattr(runtime, "to_device", lambda array: pytest.fail("copied something"))
    with pytest.raises(GraphError, match="naive needs 64 bytes on the device, which has 10 free"):
        naive.plan(triangle).count()


def test_the_simulator_refuses_a_plan_that_takes_hours(triangle):
    plan = replace(naive.plan(triangle), work=10**13)
    with runtime.using("sim"), pytest.raises(GraphError, match=r"about \d+ days in the simulator.*engine='cpu'"):
        plan.count()


@pytest.mark.parametrize("blocks, threads", [(0, 32), (1, 0), (1, 1025), (2**31, 1)])
def test_an_invalid_launch_shape_is_refused(blocks, threads):
    with pytest.raises(MethodError):
        Plan("some", {}, {}, [Step(add_all, blocks, threads, ())])


@pytest.mark.parametrize("value", [0, -1, 11, 2.5, "3", True, None])
def test_a_knob_out_of_range_is_refused(value):
    with pytest.raises(MethodError, match="columns is a whole number from 1 to 10"):
        check_integer("columns", value, 1, 10)


def test_no_more_blocks_than_there_is_work():
    assert [enough_blocks(256, tasks, 512) for tasks in (0, 1, 512, 513, 10**9)] == [1, 1, 1, 2, 256]


# ------------------------------------------------------------------------------------------------------- several GPUs


@pytest.mark.gpu
@pytest.mark.skipif(runtime.visible_gpus() < 2, reason="takes two GPUs")
def test_a_process_that_used_two_gpus_can_end():
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import tcgpu\n"
        "graph = tcgpu.generate.rmat(12, seed=1)\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    print(tcgpu.count(graph, executor=pool) == tcgpu.count(graph, engine='cpu'))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == ("True\n", 0), ended.stderr


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.fixture
def copies(monkeypatch):
    """The engine "gpu" without a GPU, for `reading`: the (target, source, size) of copies that it begins are in
    `begun`, until an event ends them all."""
    gpu = pytest.importorskip("tcgpu.engines.gpu")
    begun = []

    class Event:
        def record(self):
            pass

        def synchronize(self):
            for target, source, size in begun:
                ctypes.memmove(target, source, size)
            begun.clear()

    monkeypatch.setattr(gpu, "_copy", lambda *copy: begun.append(copy))
    monkeypatch.setattr(gpu, "Event", Event)
    monkeypatch.setattr(gpu, "_thread", threading.local())
    monkeypatch.setattr(gpu, "this_gpu", lambda: 3)
    engine = gpu.Engine()
    engine.pinned, engine.begun, engine.pages = np.empty, begun, lambda: vars(gpu._thread)[3]
    return engine


class OnDevice(np.ndarray):
    """A NumPy array that tells its address as CuPy's do."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def test_arrays_are_read_at_the_same_time(copies):
    arrays = [np.arange(length).astype(dtype).view(OnDevice) for length, dtype in ((5, np.int64), (9, np.int32))]
    reads = [copies.reading(array) for array in arrays]
    for _ in range(2):  # the second time, too, none has the other's memory
        assert [read().tolist() for read in reads] == [list(range(5)), list(range(9))]
    del reads
    assert len(copies.pages()) == 2
    again = copies.reading(arrays[0])().tolist()
    assert again == list(range(5)) and len(copies.pages()) == 2


def test_a_copy_that_is_never_read_ends_before_its_memory_is_used_again(copies):
    def fails():
        read = copies.reading(np.arange(3).view(OnDevice))
        raise MethodError(str(read))

    with pytest.raises(MethodError):
        fails()
    gc.collect()
    assert not copies.begun and len(copies.pages()) == 1


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_memory_is_freed_after_an_error_that_is_handled_later(error, monkeypatch):
    """Local variables of the functions that the error ended do not keep their arrays."""
    arrays, freed = [], []

    def work():
        local = runtime.device_array(10, np.int64)
        arrays.append(weakref.ref(local))
        if error:
            raise error

    monkeypatch.setattr(runtime.named("sim"), "release_device_memory", lambda: freed.append(arrays[0]() is None))
    with runtime.using("sim"), pytest.raises(error) if error else nullcontext() as caught:
        with freed_afterwards():
            work()
    assert freed == [True] and (caught is None) == (error is None)
