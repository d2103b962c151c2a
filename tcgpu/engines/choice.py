"""Which engine this process has for kernels: "gpu" or "sim", the simulator. "webgpu" is for those who name it.

It is "gpu" if a driver shows a GPU and the packages numba-cuda and CuPy are installed; NUMBA_ENABLE_CUDASIM=1 selects
the simulator on any machine. This module queries NVML, which leaves CUDA uninitialised: a process may still fork until
its first kernel. It imports no large packages, and asks WebGPU for no devices: see `hardware`.
"""

import ctypes
import importlib.util
import os
import sys
from itertools import takewhile
from typing import Literal

Engine = Literal["gpu", "webgpu", "sim", "cpu"]  # what counts: the first three run kernels
ENGINES = ("gpu", "webgpu", "sim")
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
# Whether functions for the CPU can be compiled; TCGPU_NUMPY=1 does without, as where there is no Numba
WITHOUT = "TCGPU_NUMPY", "NUMBA_DISABLE_JIT"
NUMBA = (
    all(os.environ.get(name, "0") in ("", "0") for name in WITHOUT) and importlib.util.find_spec("numba") is not None
)
# Elements that NumPy passes over in a piece of work, and in all of it until now: Numba compiles for more
MAX_IN_NUMPY, MAX_IN_NUMPY_IN_ALL = 1_000_000, 5_000_000  # they take .1 and .5 s; a call takes as long as 1,000

_passed, has_compiled = 0, False  # elements until now; whether any code for the CPU was compiled, or loaded


def visible_gpus():
    """The number of GPUs that this process may use. Queries NVML, which leaves CUDA uninitialised for later forks."""
    named = named_gpus()
    return _gpus_here() if named is None else min(len(named), _gpus_here())


def named_gpus():
    """The GPUs that CUDA_VISIBLE_DEVICES names, up to the first invalid one; None if it restricts nothing."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return None
    names = [name.strip() for name in visible.split(",")]
    return list(takewhile(lambda name: name not in ("", "-1"), names))


def _gpus_here():
    nvml, count = shared_library("libnvidia-ml.so.1"), ctypes.c_uint()
    if nvml is not None:
        found = nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    else:
        driver = shared_library("libcuda.so.1")  # a driver without NVML, as on a Jetson
        found = driver is not None and driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if found else 0


def gpu_names():
    """The names of the machine's GPUs, by NVML, which leaves CUDA uninitialised."""
    nvml, found = shared_library("libnvidia-ml.so.1"), []
    count, handle, name = ctypes.c_uint(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
    if nvml is not None and nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
        for number in range(count.value):
            nvml.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle))
            nvml.nvmlDeviceGetName(handle, name, 96)
            found.append(name.value.decode())
    return found


def driver_version():
    """The version of NVIDIA's driver, such as "580.159.04"; "" if NVML does not return it."""
    nvml = shared_library("libnvidia-ml.so.1")
    text = ctypes.create_string_buffer(96)
    found = nvml is not None and nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0
    return text.value.decode() if found else ""


def shared_library(name):
    """A shared library by its name; None if there is none."""
    if sys.platform == "emscripten":  # it finds one of any name, with nothing in it
        return None
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def in_numpy(elements, compiled=None):
    """Whether NumPy does work on so many elements; not if code for it is `compiled`, by default if any code is."""
    global _passed
    if not NUMBA or (has_compiled if compiled is None else compiled):
        return not NUMBA
    if elements > MAX_IN_NUMPY or _passed + elements > MAX_IN_NUMPY_IN_ALL:
        return False
    _passed += 1000 + elements
    return True


def _choose_engine():
    if SIMULATED:
        return "sim", "NUMBA_ENABLE_CUDASIM selects the simulator"
    if not visible_gpus():
        return "sim", "there is no NVIDIA GPU here"
    for module, package in (("numba_cuda", "numba-cuda"), ("cupy", "CuPy")):
        if importlib.util.find_spec(module) is None:
            return "sim", f"there is a GPU, but not the package {package}: pip install 'tcgpu[cu13]' (or cu12)"
    return "gpu", "there is an NVIDIA GPU"


ENGINE, REASON = _choose_engine()
