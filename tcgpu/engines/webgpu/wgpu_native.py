"""A WebGPU device through the package wgpu, which brings wgpu-native: Vulkan, Metal or Direct3D 12."""

import importlib.util
import os
import re
import time
from contextlib import contextmanager
from itertools import count

from tcgpu.engines.facts import OutOfMemory
from tcgpu.engines.webgpu import device as common
from tcgpu.errors import EngineError, KernelError
from tcgpu.progress import uninterrupted

NO_ADAPTER = (
    "WebGPU finds no GPU here: install a driver for Vulkan (Debian: libvulkan1, and mesa-vulkan-drivers or NVIDIA's)"
)
BOUNDS_CHECKS = True  # an index beyond an array reads or writes inside it, as in a browser
KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "software"}
# wgpu's features -> ours
FEATURES = {
    "shader-int64": "int64",
    "shader-int64-atomic-all-ops": "int64-atomics",
    "timestamp-query": "timestamps",
    "subgroup": "subgroups",
    "subgroup-barrier": "subgroup-barriers",
}
WARPS = "NVIDIA", "Apple"  # their groups of threads are always 32; others choose for each kernel


def missing():
    """Why there is no WebGPU, in a sentence; None if the package is there."""
    if importlib.util.find_spec("wgpu") is None:
        return "WebGPU needs the package wgpu, which is not installed: pip install 'tcgpu[webgpu]'"
    return None


def adapters():
    """Pairs: what DeviceInfo says of an adapter, but for its number, and the adapter."""
    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ.setdefault("NODEVICE_SELECT", "1")  # Mesa's choice among GPUs complains where there is no screen
    import wgpu
    from wgpu.backends.wgpu_native import extras

    try:
        extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])  # to look for OpenGL would take half a second
    except RuntimeError:
        pass  # something else in this process uses wgpu already
    found = wgpu.gpu.enumerate_adapters_sync()
    return [(_facts(each.info), each) for each in found if each.info["backend_type"] in common.BACKENDS]


def _facts(info):
    return {
        "name": info["device"],
        "vendor": info["vendor"],
        "backend": info["backend_type"],
        "kind": KINDS.get(info["adapter_type"], "other"),
        "driver": info["description"],
    }


class Device(common.Device):
    """See `device.Device`. What the package wgpu lacks is called in its C library."""

    def __init__(self, info, adapter):
        from wgpu.backends.wgpu_native import _api

        self._ffi, self._lib, self._checked = _api.ffi, _api.lib, _api.libf  # `_checked` raises errors
        self._api = _api
        names = [name for name in FEATURES if name in adapter.features]
        raw = adapter.request_device_sync(required_features=names)  # with all of the adapter's limits
        features = {FEATURES[name] for name in names}
        period = _api.lib.wgpuQueueGetTimestampPeriod(raw.queue._internal)
        super().__init__(info, raw, features - {"subgroups", "subgroup-barriers"}, period)
        self._mapped = self._ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", self._tell)
        self._worked = self._ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)", self._tell)
        self._numbers, self._called_back = count(1), set()  # of what the library calls back for
        if {"subgroups", "subgroup-barriers"} <= features and info.name.startswith(WARPS):
            self.features |= {"subgroups-of-32"} if common.has_subgroups_of_32(self) else set()
        if info.backend == "Vulkan" and info.name.startswith("NVIDIA"):  # PTX says it of bar.sync
            self.features |= {"ordered-barriers"}

    @contextmanager
    def _errors(self):
        import wgpu

        try:
            yield
        except wgpu.GPUError as error:
            # wgpu 0.32 calls it a validation error, too
            if isinstance(error, wgpu.GPUOutOfMemoryError) or "Not enough memory" in str(error):
                raise OutOfMemory(f"{self.info.name} has too little free memory") from None
            raise EngineError(f"{self.info.name}: {error}") from None

    def _compile(self, text, layout, name):
        import wgpu

        try:
            return self.raw.create_compute_pipeline(
                label=name,
                layout=self.raw.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": self._module(text, name), "entry_point": "main"},
            )
        except wgpu.GPUError as error:
            place = re.search(r"wgsl:(\d+):", str(error))
            line = f"\nline {place[1]}: {text.splitlines()[int(place[1]) - 1].strip()}" if place else ""
            raise KernelError(f"kernel {name} in WGSL: {error}{line}") from None

    def _module(self, text, name):
        """The module of a text, compiled without counters in its loops: they would end long ones."""
        code, label = self._ffi.new("char[]", text.encode()), self._ffi.new("char[]", name.encode())
        source = self._ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = self._lib.WGPUSType_ShaderSourceWGSL
        source.code.data, source.code.length = code, len(code) - 1
        described = self._ffi.new("WGPUShaderModuleDescriptor *")
        described.nextInChain = self._ffi.addressof(source, "chain")
        described.label.data, described.label.length = label, len(label) - 1
        checks = self._lib.WGPUShaderRuntimeChecks_BoundsChecks if BOUNDS_CHECKS else 0
        made = self._checked.wgpuDeviceCreateShaderModuleTrusted(self.raw._internal, described, checks)
        return self._api.GPUShaderModule(name, made, self.raw)

    # The package's own functions for this wait for a thread, which takes five times as long, or do not work

    def _map(self, raw, target):
        callback, number = self._callback("WGPUBufferMapCallbackInfo *", self._mapped)
        self._checked.wgpuBufferMapAsync(raw._internal, common.MAP_READ, 0, target.nbytes, callback[0])
        self._poll_until(number)
        found = self._checked.wgpuBufferGetConstMappedRange(raw._internal, 0, target.nbytes)
        if not found:
            raise EngineError(f"{self.info.name} was lost")
        target[:] = self._ffi.buffer(found, target.nbytes)
        self._checked.wgpuBufferUnmap(raw._internal)

    def _wait(self):
        callback, number = self._callback("WGPUQueueWorkDoneCallbackInfo *", self._worked)
        self._checked.wgpuQueueOnSubmittedWorkDone(self.queue._internal, callback[0])
        self._poll_until(number)

    def _callback(self, kind, function):
        """How the library is to call back, and the number that it calls back with."""
        number = next(self._numbers)
        callback = self._ffi.new(kind)
        callback.mode, callback.callback = self._lib.WGPUCallbackMode_AllowProcessEvents, function
        callback.userdata1 = self._ffi.cast("void *", number)
        return callback, number

    def _tell(self, status, message, number, nothing):
        self._called_back.add(int(self._ffi.cast("uintptr_t", number)))

    def _poll_until(self, number):
        """Wait until the library has called back: in Python, so that Ctrl-C ends it."""
        began = time.perf_counter()
        while number not in self._called_back:
            with uninterrupted():  # or what it calls back may be lost
                self._checked.wgpuDevicePoll(self.raw._internal, False, self._ffi.NULL)
            waited = time.perf_counter() - began
            if waited > 5e-5 and number not in self._called_back:
                time.sleep(min(waited / 8, 1e-3))
        self._called_back.discard(number)
