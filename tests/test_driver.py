"""The door to CUDA's driver: how arguments are packed, who launches what, events and copies in their order."""

import ctypes
import importlib
import pkgutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import tcgpu.kernels
from tcgpu import _cuda

pytest.importorskip("cuda.bindings.driver", reason="no bindings of CUDA's driver here: pip install 'tcgpu[test]'")

from numba import types  # noqa: E402
from numba.core.sigutils import normalize_signature  # noqa: E402
from numba.cuda import dispatcher  # noqa: E402

from tcgpu import _driver  # noqa: E402

KINDS = types.int32[::1], types.uint64[:, ::1], types.int64, types.uint64, types.int32, types.boolean, types.float64


class Array:
    """A device array, as far as a launch looks at it; no memory stands behind it."""

    __cuda_memory__ = True

    def __init__(self, shape, dtype, address=0x7F00_1234_5678_9AB0, contiguous=True):
        self.like = np.empty(shape, dtype)
        self.shape, self.strides, self.dtype, self.ndim = shape, self.like.strides, self.like.dtype, self.like.ndim
        self.size, self.contiguous = self.like.size, contiguous
        self.device_ctypes_pointer = ctypes.c_void_p(address)

    def is_c_contiguous(self):
        return self.contiguous

    @property
    def _strided_memory_view_shim(self):
        layout = SimpleNamespace(strides_in_bytes=self.strides)
        where = self.device_ctypes_pointer.value
        return SimpleNamespace(ptr=where, shape=self.shape, dtype=self.dtype, size=self.size, _layout=layout)


class Overload:
    """A kernel that Numba has compiled, as far as a launch looks at it: Numba's own code sets out the arguments."""

    argument_types, extensions = KINDS, ()
    _codelibrary = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=77))
    _prepare_args = dispatcher._Kernel._prepare_args


@pytest.fixture
def asked(monkeypatch):
    """What the driver was asked to launch: (function, shape, shared, stream, the arguments' eight bytes each)."""
    asked = []

    def launch(function, *rest):
        *shape, shared, stream, places, extra = rest
        count = sum(5 + 2 * kind.ndim if hasattr(kind, "ndim") else 1 for kind in KINDS)
        pointers = (ctypes.c_void_p * count).from_address(places)
        words = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers]
        asked.append((int(function), shape, shared, stream, words))
        return (asked.error,) if hasattr(asked, "error") else (_driver.driver.CUresult.CUDA_SUCCESS,)

    class Asked(list):
        pass

    asked = Asked()
    monkeypatch.setattr(_driver.driver, "cuLaunchKernel", launch)
    return asked


def args(first=None, second=None, number=-5, large=2**64 - 1, small=-7):
    return [first or Array((6,), np.int32), second or Array((3, 4), np.uint64, 4096), number, large, small, True, 0.5]


def test_arguments_are_packed_as_compiled_code_takes_them(asked):
    assert _driver.Launcher(Overload()).launch(13, 64, args(), 512, 9)
    ((function, shape, shared, stream, words),) = asked
    assert (function, shape, shared, stream) == (77, [13, 1, 1, 64, 1, 1], 512, 9)
    assert words[:7] == [0, 0, 6, 4, 0x7F00_1234_5678_9AB0, 6, 4]
    assert words[7:16] == [0, 0, 12, 8, 4096, 3, 4, 32, 8]
    assert words[16:18] == [2**64 - 5, 2**64 - 1] and words[18] & 0xFFFFFFFF == 2**32 - 7
    assert words[19] == 1 and words[20] == 0x3FE0_0000_0000_0000


def test_an_array_without_elements_is_nowhere(asked):
    assert _driver.Launcher(Overload()).launch(1, 32, args(Array((0,), np.int32, None)), 0, 0)
    assert asked[0][-1][:6] == [0, 0, 0, 4, 0, 0]


@pytest.mark.parametrize(
    "first",
    [Array((6,), np.int64), Array((6,), np.uint32), Array((2, 3), np.int32), Array((6,), np.int32, contiguous=False)],
    ids=["wider", "unsigned", "two dimensions", "strided"],
)
def test_what_the_code_is_not_for_is_not_launched(asked, first):
    assert not _driver.Launcher(Overload()).launch(1, 32, args(first), 0, 0) and not asked


def test_what_the_driver_refuses_was_not_launched(asked):
    asked.error = _driver.driver.CUresult.CUDA_ERROR_INVALID_VALUE
    assert not _driver.Launcher(Overload()).launch(0, 32, args(), 0, 0)


def test_a_numba_that_has_arguments_otherwise_launches_by_itself(asked):
    class Later(Overload):
        def _prepare_args(self, kind, value, stream, retr, found):
            if not isinstance(kind, types.Array):
                return super()._prepare_args(kind, value, stream, retr, found)
            found += [value.size, value.device_ctypes_pointer.value]

    launcher = _driver.Launcher(Later())
    assert not launcher.launch(1, 32, args(), 0, 0) and not launcher.launch(1, 32, args(), 0, 0) and not asked


def test_too_many_arguments_are_refused(asked):
    with pytest.raises(ValueError, match="argument"):
        _driver.Launcher(Overload()).launch(1, 32, [*args(), 0], 0, 0)


def test_what_every_kernel_takes_is_known_here():
    found = 0
    for module in pkgutil.iter_modules(tcgpu.kernels.__path__, "tcgpu.kernels."):
        for kernel in vars(importlib.import_module(module.name)).values():
            for signature in kernel.signatures if isinstance(kernel, _cuda.Kernel) else ():
                kinds, _ = normalize_signature(signature)
                launcher = _driver.Launcher(SimpleNamespace(argument_types=kinds, _codelibrary=Overload._codelibrary))
                assert launcher.form.size % 8 == 0
                found += 1
    assert found > 50


# ------------------------------------------------------------------------------------------------------- on a real GPU


@_cuda.kernel("void(int64[::1], int64)", "void(int32[::1], int64)")
def add_to_each(numbers, more):
    place = _cuda.cuda.grid(1)
    if place < numbers.size:
        numbers[place] += more


@pytest.fixture
def no_numba(monkeypatch):
    """Numba's own launch is not to be used."""

    def refuse(*args):
        raise AssertionError("launched by Numba")

    monkeypatch.setattr(dispatcher._Kernel, "launch", refuse)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_code_for_the_arguments_is_launched(no_numba, dtype):
    numbers = _cuda.device_array(100, dtype, 0)
    add_to_each.launch(4, 32, numbers, -3)
    add_to_each.launch(4, 32, numbers, np.int64(1))
    assert (_cuda.to_host(numbers) == -2).all()


@pytest.mark.gpu
def test_numba_launches_what_is_not_known_here(monkeypatch):
    monkeypatch.setattr(_driver.Launcher, "launch", lambda *args: False)
    numbers = _cuda.device_array(100, np.int64, 0)
    add_to_each.launch(4, 32, numbers, 3)
    assert (_cuda.to_host(numbers) == 3).all()


@pytest.mark.gpu
def test_a_launch_that_no_device_has_room_for_is_an_error():
    with pytest.raises(Exception, match="INVALID_VALUE|invalid"):
        add_to_each.launch(1, 1 << 20, _cuda.device_array(1, np.int64, 0), 1)


@pytest.mark.gpu
def test_many_threads_launch_a_kernel_at_once(no_numba):
    arrays = [_cuda.device_array(1000, np.int64, 0) for _ in range(8)]

    def work(k):
        stream = _cuda.Stream()
        for _ in range(200):
            add_to_each.launch(32, 32, arrays[k], k, stream=stream)
        stream.event().synchronize()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((_cuda.to_host(array) == 200 * k).all() for k, array in enumerate(arrays))


@pytest.mark.gpu
def test_events_say_how_far_a_stream_has_come():
    _cuda._stay_busy.launch(1, 1, 0)  # compiled before time counts
    first, second = _cuda.Stream(), _cuda.Stream()
    begin = first.event(timing=True)
    _cuda._stay_busy.launch(1, 1, 30_000, stream=first)
    end = first.event(timing=True)
    assert not end.query()
    second.wait(end)
    behind = second.event()
    assert not behind.query()
    behind.synchronize()
    assert end.query() and behind.query() and 25 < end.ms_since(begin) < 500


@pytest.mark.gpu
def test_an_event_without_timing_has_no_time():
    stream = _cuda.Stream()
    event = stream.event()
    event.synchronize()
    with pytest.raises(_driver.DriverError, match="cuEventElapsedTime"):
        event.ms_since(event)
