"""Launches on a GPU: how arguments are packed, which code is launched for them, the order of events."""

import ctypes
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_shapes import every_kernel

from tcgpu.engines import cuda_driver, runtime
from tcgpu.engines.kernel_language import cuda

SIGNATURE = "void(int32[::1], uint64[:, ::1], int64, uint64, int32, boolean, float64)"


class Array:
    """What a launch uses of a CuPy array; it has no memory."""

    def __init__(self, shape, dtype, address=0x7F00_1234_5678_9AB0, contiguous=True):
        like = np.empty(shape, dtype) if contiguous else np.empty((*shape, 2), dtype)[..., 0]
        self.shape, self.strides, self.dtype, self.ndim = shape, like.strides, like.dtype, like.ndim
        self.size, self.itemsize = like.size, like.itemsize
        self.flags, self.data = SimpleNamespace(c_contiguous=contiguous), SimpleNamespace(ptr=address)


class Driver:
    """What `cupy.cuda.driver` has for launches.

    launched: those that it received: (which, function, shape, shared, stream, eight bytes of each argument).
    """

    count = len("".join(parameter.form for parameter in cuda_driver.parameters(SIGNATURE)))

    def __init__(self):
        self.launched = []

    def launchKernel(self, *launch):
        assert launch[-1] == 0
        self.launchCooperativeKernel(*launch[:-1], which="plain")

    def launchCooperativeKernel(self, function, *rest, which="cooperative"):
        *shape, shared, stream, places = rest
        pointers = (ctypes.c_void_p * self.count).from_address(places)
        words = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers]
        self.launched.append((which, function, shape, shared, stream, words))


def args(first=None, second=None, number=-5, large=2**64 - 1, small=-7):
    return [first or Array((6,), np.int32), second or Array((3, 4), np.uint64, 4096), number, large, small, True, 0.5]


def launched(cooperative=False):
    driver = Driver()
    launcher = cuda_driver.Launcher(driver, 77, SIGNATURE, cooperative)
    launcher.launch(13, 64, cuda_driver.passed(SIGNATURE, args()), 512, 9)
    (launch,) = driver.launched
    return launch


def test_arguments_are_packed_as_compiled_code_takes_them():
    which, function, shape, shared, stream, words = launched()
    assert (which, function, shape, shared, stream) == ("plain", 77, [13, 1, 1, 64, 1, 1], 512, 9)
    assert words[:7] == [0, 0, 6, 4, 0x7F00_1234_5678_9AB0, 6, 4]
    assert words[7:16] == [0, 0, 12, 8, 4096, 3, 4, 32, 8]
    assert words[16:18] == [2**64 - 5, 2**64 - 1] and words[18] & 0xFFFFFFFF == 2**32 - 7
    assert words[19] == 1 and words[20] == 0x3FE0_0000_0000_0000


def test_a_cooperative_launch_is_the_same_to_another_function():
    plain, cooperative = launched(), launched(cooperative=True)
    assert (plain[0], cooperative[0]) == ("plain", "cooperative") and plain[1:] == cooperative[1:]


@pytest.mark.parametrize(
    "first",
    [
        Array((6,), np.int64),
        Array((6,), np.uint32),
        Array((2, 3), np.int32),
        Array((6,), np.int32, contiguous=False),
        np.int32(6),
    ],
    ids=["wider", "unsigned", "two dimensions", "strided", "a number"],
)
def test_other_arguments_do_not_fit(first):
    assert cuda_driver.passed(SIGNATURE, args()) is not None
    assert cuda_driver.passed(SIGNATURE, args(first)) is None


def test_more_or_fewer_arguments_do_not_fit():
    assert cuda_driver.passed(SIGNATURE, [*args(), 0]) is None and cuda_driver.passed(SIGNATURE, args()[:-1]) is None


def test_an_array_does_not_fit_a_number():
    assert cuda_driver.passed(SIGNATURE, args(number=Array((1,), np.int64))) is None


def test_every_kernel_can_be_packed():
    found = 0
    for kernel in every_kernel():
        for signature in kernel.signatures:
            assert cuda_driver.Launcher(None, 0, signature).form.size % 8 == 0
            found += 1
    assert found > 50


# ------------------------------------------------------------------------------------------------------- on a real GPU


@runtime.kernel("void(int64[::1], int64)", "void(int32[::1], int64)")
def add_to_each(numbers, more):
    place = cuda.grid(1)
    if place < numbers.size:
        numbers[place] += more


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_code_for_the_arguments_is_launched(dtype):
    numbers = runtime.device_array(100, dtype, 0)
    add_to_each.launch(4, 32, numbers, -3)
    add_to_each.launch(4, 32, numbers, np.int64(1))
    assert (runtime.to_host(numbers) == -2).all()


@pytest.mark.gpu
def test_arguments_that_fit_no_signature_are_refused():
    with pytest.raises(TypeError, match=r"add_to_each takes void\(int64.* or void\(int32.*, not \(float64 \(3,\), int"):
        add_to_each.launch(1, 32, runtime.device_array(3, np.float64, 0), 1)


@pytest.mark.gpu
def test_a_launch_that_is_too_large_is_an_error():
    with pytest.raises(RuntimeError, match="INVALID_VALUE"):
        add_to_each.launch(1, 1 << 20, runtime.device_array(1, np.int64, 0), 1)


@pytest.mark.gpu
def test_many_threads_launch_a_kernel_at_once():
    arrays = [runtime.device_array(1000, np.int64, 0) for _ in range(8)]

    def work(k):
        stream = runtime.Stream()
        for _ in range(200):
            add_to_each.launch(32, 32, arrays[k], k, stream=stream)
        stream.event().synchronize()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((runtime.to_host(array) == 200 * k).all() for k, array in enumerate(arrays))


@pytest.mark.gpu
def test_events_tell_how_far_a_stream_is():
    runtime.current().sleep(0)  # compiled before time counts
    first, second = runtime.Stream(), runtime.Stream()
    begin = first.event(timing=True)
    runtime.current().sleep(30_000, first)
    end = first.event(timing=True)
    assert not end.query()
    second.wait(end)
    behind = second.event()
    assert not behind.query()
    behind.synchronize()
    assert end.query() and behind.query() and 25 < end.ms_since(begin) < 500


@pytest.mark.gpu
def test_an_event_without_timing_has_no_time():
    stream = runtime.Stream()
    event = stream.event()
    event.synchronize()
    with pytest.raises(RuntimeError, match="cudaErrorInvalidResourceHandle"):
        event.ms_since(event)
