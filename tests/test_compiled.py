"""The compiled simulator itself: it runs kernels as a GPU would, and reports undefined behaviour."""

import compiled
import numpy as np
import pytest

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.engines.simulator import simulate
from tcgpu.kernels.report import naive

pytestmark = pytest.mark.sim
ALL = 0xFFFFFFFF


@kernel("void(uint64[::1])")
def every_intrinsic(found):
    lane = uint32(cuda.laneid)
    value = int32(7 * lane + cuda.blockIdx.x)
    at = cuda.grid(1) * 13
    found[at] = cuda.shfl_sync(ALL, value, 5)
    found[at + 1] = cuda.shfl_up_sync(ALL, value, 3)
    found[at + 2] = cuda.shfl_down_sync(ALL, value, 30)
    found[at + 3] = cuda.shfl_xor_sync(ALL, value, 6)
    found[at + 4] = uint32(cuda.ballot_sync(ALL, value % 3 == 0))
    found[at + 5] = cuda.all_sync(ALL, value >= 7)
    found[at + 6] = cuda.any_sync(ALL, value == 8)
    found[at + 7] = cuda.popc(uint32(value)) + 100 * cuda.ffs(uint32(value))
    found[at + 8] = cuda.shfl_sync(ALL, int64(value) << int64(40), 9)
    found[at + 9] = cuda.gridsize(1) + cuda.gridDim.x + cuda.blockDim.x
    found[at + 10] = cuda.threadIdx.x + cuda.threadIdx.y + cuda.blockDim.z
    cuda.syncwarp()
    cuda.syncthreads()
    if lane % 2 == 1:
        found[at + 11] = uint32(cuda.ballot_sync(0xAAAAAAAA, lane > 6))
    else:
        found[at + 11] = cuda.shfl_xor_sync(0x55555555, value, 2)
    found[at + 12] = cuda.blockIdx.x


@kernel("void(int64[::1], int32[::1], uint32[::1])")
def every_atomic(sums, extremes, words):
    thread = cuda.grid(1)
    cuda.atomic.add(sums, thread % 3, thread)
    cuda.atomic.max(extremes, 0, int32(thread))
    cuda.atomic.min(extremes, 1, int32(-thread))
    cuda.atomic.or_(words, 0, uint32(1) << uint32(thread % 32))
    cuda.atomic.inc(words, 1, 9)
    cuda.atomic.cas(words, 2 + thread % 4, 0, thread + 1)
    cuda.atomic.exch(words, 6 + thread, thread)


@kernel("void(int32[::1])")
def shared_sum(found):
    """Each block's sum of its threads' numbers, by way of both kinds of shared memory."""
    dynamic, same = cuda.shared.array(0, int32), cuda.shared.array(0, uint32)
    fixed = cuda.shared.array(1, int32)
    thread = cuda.threadIdx.x
    dynamic[thread] = thread
    if thread == 0:
        fixed[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(fixed, 0, int32(same[cuda.blockDim.x - 1 - thread]))
    cuda.syncthreads()
    if thread == 0:
        found[cuda.blockIdx.x] = fixed[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
class TestRunsWhatTheSimulatorDoes:
    def test_intrinsics(self, processor, seed, monkeypatch):
        monkeypatch.setattr(processor, "seed", seed)
        expected, found = (np.zeros(13 * 128, np.uint64) for _ in range(2))
        simulate(every_intrinsic.py_func, 2, 64, (expected,))
        processor.launch(every_intrinsic, 2, 64, found)
        assert np.array_equal(found, expected) and len(set(found.tolist())) > 100

    def test_atomics(self, processor, seed, monkeypatch):
        monkeypatch.setattr(processor, "seed", seed)
        given = np.zeros(3, np.int64), np.array([5, -5], np.int32), np.zeros(6 + 128, np.uint32)
        expected, found = ([array.copy() for array in given] for _ in range(2))
        simulate(every_atomic.py_func, 2, 64, expected)
        processor.launch(every_atomic, 2, 64, *found)
        for _, _, words in (expected, found):
            words[2:6] %= 4  # all the same, whoever came first
        assert all(map(np.array_equal, found, expected))

    def test_shared_memory(self, processor, seed, monkeypatch):
        monkeypatch.setattr(processor, "seed", seed)
        found = np.zeros(5, np.int32)
        processor.launch(shared_sum, 5, 100, found, shared=400)
        assert found.tolist() == 5 * [4950]


# ------------------------------------------------------------------------------------------ what no kernel may do


@kernel("void(int32[::1])")
def reads_outside(found):
    found[0] = found[cuda.grid(1)]


@kernel("void(int32[::1])")
def adds_outside(found):
    cuda.atomic.add(found, cuda.grid(1), 1)


@kernel("void(int32[::1])")
def writes_outside_shared_memory(found):
    words = cuda.shared.array(0, int32)
    words[cuda.threadIdx.x] = found[0]


@kernel("void(int32[::1])")
def meets_at_different_collectives(found):
    if cuda.laneid < 4:
        cuda.syncwarp()
    else:
        found[0] = cuda.shfl_sync(ALL, found[0], 0)


@kernel("void(int32[::1])")
def waits_for_a_block_that_waits_for_a_warp(found):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()
    else:
        cuda.syncwarp()


@kernel("void(int32[::1])")
def comes_to_what_is_not_for_it(found):
    cuda.syncwarp(0xFF)


@kernel("void(int32[::1])")
def takes_from_a_lane_that_is_not_there(found):
    found[cuda.threadIdx.x] = cuda.shfl_xor_sync(ALL, cuda.threadIdx.x, 8)


@kernel("void(int32[::1])")
def reads_before_it_writes(found):
    words = cuda.shared.array(64, int32)
    found[cuda.threadIdx.x] = words[cuda.threadIdx.x]


@kernel("void(int32[::1])")
def forgets_a_barrier(found):
    words = cuda.shared.array(64, int32)
    words[cuda.threadIdx.x] = cuda.threadIdx.x
    found[cuda.threadIdx.x] = words[63 - cuda.threadIdx.x]


@kernel("void(int32[::1])")
def forgets_that_others_still_read(found):
    """Right in an order that lets each lane of a warp go as far as it can, one after the other."""
    word = cuda.shared.array(1, int32)
    if cuda.laneid == 30:
        word[0] = 1
    cuda.syncwarp()
    found[cuda.threadIdx.x] = word[0]
    if cuda.laneid == 30:
        word[0] = 2


FAULTS = {
    reads_outside: "reads_outside, thread 10 of block 0: index 10 of an array of 10 elements",
    adds_outside: "adds_outside, thread 10 of block 0: index 10 of an array of 10 elements",
    writes_outside_shared_memory: "thread 8 of block 0: index 8 of an array of 8 elements",
    meets_at_different_collectives: "wait for others in vain; 0 at a syncwarp of the lanes ffffffff; "
    "4 at a shfl of the lanes ffffffff; 32 at a syncwarp of the lanes ffffffff",
    waits_for_a_block_that_waits_for_a_warp: "wait for others in vain; 0 at a syncthreads; "
    "32 at a syncthreads; 40 at a syncwarp of the lanes ffffffff",
    comes_to_what_is_not_for_it: "thread 8 of block 0: comes to a collective of the lanes 000000ff",
}


@pytest.mark.parametrize("faulty", FAULTS, ids=lambda faulty: faulty.__name__)
def test_faults_are_reported(faulty, processor):
    for _ in range(2):  # and leave nothing behind
        with pytest.raises(compiled.KernelFault, match=FAULTS[faulty]):
            processor.launch(faulty, 3, 64, np.zeros(10, np.int32), shared=32)
    found = np.zeros(2, np.int32)
    processor.launch(shared_sum, 2, 64, found, shared=256)
    assert found.tolist() == [2016, 2016]


@pytest.mark.parametrize(
    "faulty", [takes_from_a_lane_that_is_not_there, reads_before_it_writes], ids=lambda faulty: faulty.__name__
)
def test_uninitialized_memory_is_filled_with_a_pattern(faulty, processor):
    found = np.zeros(40, np.int32)
    processor.launch(faulty, 1, 40, found)
    assert np.uint32(found[-1]) == 0xA5A5A5A5


def test_a_missing_barrier_is_detected(processor):
    found = np.zeros(64, np.int32)
    processor.launch(forgets_a_barrier, 1, 64, found)
    assert found.tolist() != list(range(64))[::-1]


def test_a_random_order_detects_more(processor, monkeypatch):
    results = []
    for seed in (0, 1):
        monkeypatch.setattr(processor, "seed", seed)
        found = np.zeros(32, np.int32)
        processor.launch(forgets_that_others_still_read, 1, 32, found)
        results.append(found.tolist())
    assert results[0] == 32 * [1] and set(results[1]) == {1, 2}


def test_arguments_that_fit_no_signature_are_refused(processor):
    with pytest.raises(TypeError, match=r"naive_kernel takes no \[dtype\('int32'\)"):
        processor.launch(naive.naive_kernel, 1, 1, np.zeros(3, np.int32))
    with pytest.raises(TypeError, match="reads_outside takes no"):
        processor.launch(reads_outside, 1, 1, np.zeros(6, np.int32)[::2])


def test_a_missing_compiler_is_reported(monkeypatch):
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    assert "C compiler" in compiled.missing()
